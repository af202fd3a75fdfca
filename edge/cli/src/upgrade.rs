//! `cluster upgrade`: which releases hosts run, and the step to the next level of the records.

use crate::shell::Shell;
use crate::text;
use api::types::{HostVersionsView, VersionsView};
use clap::Args;
use failure::Failure;

/// Options of `cluster upgrade`.
#[derive(Debug, Clone, Args)]
pub struct UpgradeOptions {
    /// Show the hosts' releases and what prevents the upgrade, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: &UpgradeOptions) -> Result<(), Failure> {
    let told: VersionsView = shell.client.get("/api/v1/cluster/versions").await?;
    if options.dry_run {
        return shell.show(&told, versions_text);
    }
    if let Some(to) = told.to.filter(|_| told.obstacles.is_empty()) {
        if !shell.json {
            shell.print(&versions_text(&told))?;
        }
        let what = format!(
            "records are written at level {to} from now on, and no host can go back to a release that does not understand it"
        );
        shell.consent(options.yes, &what)?;
    }
    // With obstacles the host refuses, and says which.
    let done: VersionsView = shell.client.post("/api/v1/cluster/upgrade", &()).await?;
    shell.show(&done, |done| match done.is_raised {
        true => format!("the cluster's records are at level {} from now on", done.level),
        false => versions_text(done),
    })
}

fn versions_text(versions: &VersionsView) -> String {
    let host = |host: &HostVersionsView| {
        let levels = match host.lowest == host.highest {
            true => host.lowest.to_string(),
            false => format!("{} to {}", host.lowest, host.highest),
        };
        vec![host.name.clone(), host.release.clone(), levels]
    };
    let next = match (versions.to, versions.obstacles.is_empty()) {
        (None, _) => "no host understands a later level: there is nothing to raise".to_owned(),
        (Some(to), true) => format!("all hosts understand level {to}: `drystone cluster upgrade` raises it"),
        (Some(to), false) => format!("not possible yet: level {to}"),
    };
    let facts = text::facts(&[("level", versions.level.to_string()), ("next", next)]);
    let table = text::table(&["host", "release", "levels"], &[], versions.hosts.iter().map(host).collect());
    let obstacles = versions.obstacles.iter().map(|why| format!("in the way: {why}"));
    [facts, table].into_iter().chain(obstacles).collect::<Vec<_>>().join("\n\n")
}
