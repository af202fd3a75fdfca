//! `host list`, maintenance and removal of hosts, and orders to the hosts of a demo.

mod leave;
mod maintenance;

use super::members::{self, JoinOptions};
use super::sorting::HostSort;
use crate::demo::{self, Action, DemoHost, OrderOptions};
use crate::shell::Shell;
use crate::text;
use api::types::{ConditionWord, ForecastView, HostSummary, RemovedHost, WhatIf};
use base::units::format_bytes;
use clap::Subcommand;
use failure::Failure;
use std::path::PathBuf;

/// What can be done with hosts.
#[derive(Debug, Clone, Subcommand)]
pub enum HostCommand {
    /// List the hosts of the cluster.
    List {
        /// Column to sort by, the largest figure first.
        #[arg(long, value_enum, default_value = "name")]
        sort: HostSort,
        /// Reverse the order.
        #[arg(long)]
        reverse: bool,
    },
    /// Start or end the maintenance of a host, or show what it would do to every disk.
    Maintenance(maintenance::MaintenanceOptions),
    /// Remove a host from the cluster that is lost for good.
    ///
    /// Its copies are rebuilt on other hosts where there is a place for them. Disks without such a place are named first.
    Remove {
        /// Name or id of the host.
        name: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Leave the cluster for good: empty the host that is asked, remove it, end its process.
    Leave {
        /// Show what would happen to every disk, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Print a token with which another machine joins the cluster: drystone host join TOKEN
    Token {
        /// Name or id of a host of the cluster that has lost its certificate or let it expire.
        #[arg(long, value_name = "HOST")]
        again: Option<String>,
        /// Lifetime of the token.
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = crate::shell::seconds)]
        lifetime: u64,
    },
    /// Join this machine to a cluster: get its certificate with a token.
    Join(JoinOptions),
    /// Run this host's member of the cluster's own etcd, as the unit drystone-etcd does.
    ///
    /// Ends at once where the cluster does not run etcd for itself. A host without this unit runs its member by itself.
    Etcd {
        /// Configuration file of this host.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Start a host of a demo, or resume it after a pause.
    Start(DemoHost),
    /// Stop a host of a demo, and wait until it has ended.
    Stop(DemoHost),
    /// Pause a host of a demo.
    Pause(DemoHost),
    /// Kill a host of a demo, as a crash does.
    Kill(DemoHost),
}

/// Does it.
///
/// # Errors
/// What the host or the demo says.
pub async fn run(shell: &mut Shell<'_>, command: HostCommand) -> Result<(), Failure> {
    let (action, host) = match command {
        HostCommand::List { sort, reverse } => return list(shell, sort, reverse).await,
        HostCommand::Maintenance(options) => return maintenance::run(shell, options).await,
        HostCommand::Remove { name, yes } => return remove(shell, &name, yes).await,
        HostCommand::Leave { dry_run, yes } => return leave::run(shell, dry_run, yes).await,
        HostCommand::Token { again, lifetime } => return members::token(shell, None, again, lifetime).await,
        HostCommand::Join(_) | HostCommand::Etcd { .. } => unreachable!("the program itself does these"),
        HostCommand::Start(host) => (Action::Start, host),
        HostCommand::Stop(host) => (Action::Stop, host),
        HostCommand::Pause(host) => (Action::Pause, host),
        HostCommand::Kill(host) => (Action::Kill, host),
    };
    demo::order(shell, &OrderOptions { action, name: host.name, dir: host.demo }).await
}

async fn list(shell: &mut Shell<'_>, sort: HostSort, reverse: bool) -> Result<(), Failure> {
    let mut hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
    sort.apply(&mut hosts, reverse);
    shell.show(&hosts, |hosts| host_table(hosts))
}

async fn remove(shell: &mut Shell<'_>, name: &str, yes: bool) -> Result<(), Failure> {
    let hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
    let found = hosts.iter().find(|host| host.name == name || host.id == name);
    let name = found.map_or(name, |host| host.name.as_str());
    let question = WhatIf::LoseHosts(vec![name.to_owned()]);
    // What cannot be told, the removal tells.
    let forecast: Option<ForecastView> = shell.client.post("/api/v1/what-if", &question).await.ok();
    let disks = forecast.into_iter().flat_map(|forecast| forecast.disks);
    let short: Vec<String> =
        disks.filter(|one| one.then != ConditionWord::Whole).map(|one| one.disk).collect();
    let warning = match short.is_empty() {
        true => String::new(),
        false => {
            format!("; these disks keep fewer copies until there is room for others: {}", short.join(", "))
        }
    };
    shell.consent(yes, &format!("removing host {name} gives up what stands on it{warning}"))?;
    let path = format!("/api/v1/hosts/{name}?confirm={name}");
    let removed: RemovedHost = shell.client.delete(&path).await?;
    shell.show(&removed, removed_text)
}

fn removed_text(removed: &RemovedHost) -> String {
    let mut lines = Vec::new();
    match (removed.disks.is_empty(), removed.not_replaced.is_empty()) {
        (true, true) => lines.push(format!("removed host {}; nothing stood on it", removed.host)),
        (true, false) => lines.push(format!("removed host {}", removed.host)),
        (false, _) => {
            lines.push(format!(
                "removed host {}; copies are made elsewhere of: {}",
                removed.host,
                removed.disks.join(", ")
            ));
        }
    }
    let short = |(disk, why): (&String, &String)| {
        format!("disk {disk} keeps fewer copies until there is room: {why}")
    };
    lines.extend(removed.not_replaced.iter().map(short));
    lines.join("\n")
}

/// Hosts as `host list` and `status` show them.
pub fn host_table(hosts: &[HostSummary]) -> String {
    let row = |host: &HostSummary| {
        let state = match (host.is_this, host.is_reachable) {
            (true, _) => "this one",
            (false, true) => "reachable",
            (false, false) => "cannot be reached",
        };
        let mut state = vec![state.to_owned()];
        state.extend(Some(host.liveness.clone()).filter(|told| !told.is_empty() && told != "alive"));
        state.extend(host.maintenance.clone());
        state.extend(host.failures.iter().map(|failure| format!("out of service: {failure}")));
        vec![
            host.name.clone(),
            state.join("; "),
            host.fault_domain.clone().unwrap_or_else(|| "-".to_owned()),
            host.device_count.to_string(),
            host.component_count.to_string(),
            format_bytes(host.capacity_bytes.saturating_sub(host.free_bytes)),
            format_bytes(host.free_bytes),
            host.version.clone(),
            host.peers.clone(),
        ]
    };
    let headings =
        ["host", "state", "fault domain", "devices", "components", "used", "free", "version", "peers"];
    text::table(&headings, &[3, 4, 5, 6], hosts.iter().map(row).collect())
}
