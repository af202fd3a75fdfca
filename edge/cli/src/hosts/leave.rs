//! `host leave`: a host is emptied while everything runs, taken out of its cluster, and ends.

use super::maintenance::maintenance_text;
use crate::shell::Shell;
use api::types::{
    BeginMaintenance, HostSummary, HostView, MaintenanceMode, MaintenanceView, NOT_EMPTIED, RemovedHost,
};
use failure::{Code, Failure};
use std::time::Duration;

/// How often it is looked how far it is.
const POLL: Duration = Duration::from_secs(1);

/// Does it.
///
/// # Errors
/// What stands in the way. A host that is being emptied goes on with that.
pub async fn run(shell: &mut Shell<'_>, dry_run: bool, yes: bool) -> Result<(), Failure> {
    let own: HostView = shell.client.get("/api/v1/host").await?;
    let path = format!("/api/v1/hosts/{}/maintenance", own.name);
    let ask = |dry_run| BeginMaintenance { mode: MaintenanceMode::FullEvacuation, dry_run, confirm: None };
    let told: MaintenanceView = shell.client.post(&path, &ask(true)).await?;
    if dry_run {
        return shell.show(&told, maintenance_text);
    }
    shell.consent(yes, &format!("host {} is emptied and leaves the cluster for good", own.name))?;
    let begin = ask(false);
    let removed = tokio::select! {
        removed = emptied_and_out(shell, &own.name, &begin) => removed?,
        _ = tokio::signal::ctrl_c() => {
            return Err(Failure::new(Code::Failed, format!("host {} is still being emptied, and remains in the cluster", own.name))
                .hint(format!("go on: `drystone host leave`; call it off: `drystone host maintenance {} --end`", own.name)));
        }
    };
    shell.show(&removed, |removed| {
        let first = format!("host {} has left the cluster, and ends", removed.host);
        let last = "before it joins again: `drystone host token` on another host, `drystone host join` here; before it joins another \
                    cluster: remove its data_dir"
            .to_owned();
        [vec![first], removed.notes.clone(), vec![last]].concat().join("\n")
    })
}

async fn emptied_and_out(
    shell: &Shell<'_>,
    name: &str,
    begin: &BeginMaintenance,
) -> Result<RemovedHost, Failure> {
    let out = format!("/api/v1/hosts/{name}?confirm={name}");
    // What stands in the way of all is told before anything is moved.
    match shell.client.delete(&out).await {
        Err(failure) if failure.error.ends_with(NOT_EMPTIED) => {}
        ended => return ended,
    }
    let _: MaintenanceView = shell.client.post(&format!("/api/v1/hosts/{name}/maintenance"), begin).await?;
    let mut said = String::new();
    loop {
        let hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
        let own = hosts.into_iter().find(|host| host.is_this);
        let state = own.and_then(|host| host.maintenance).unwrap_or_default();
        if state.is_empty() {
            return Err(Failure::new(
                Code::Conflict,
                format!("somebody ended the maintenance of host {name}"),
            )
            .hint("nothing was lost: run the same command again"));
        }
        if state.starts_with("in maintenance") {
            return shell.client.delete(&out).await;
        }
        if state != said {
            eprintln!("host {name}: {state}");
            said = state;
        }
        tokio::time::sleep(POLL).await;
    }
}
