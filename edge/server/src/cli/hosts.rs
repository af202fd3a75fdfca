//! `host list`, `events`, and orders to the hosts of a demo.

use super::{Shell, text};
use crate::api::types::{EventView, HostSummary};
use crate::client::Client;
use crate::demo::{self, Action};
use crate::failure::Failure;
use base::units::format_bytes;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What can be done with hosts.
#[derive(Debug, Clone, Subcommand)]
pub enum HostCommand {
    /// All hosts of the cluster.
    List,
    /// Start a host of a demo, or let it go on after a pause.
    Start(DemoHost),
    /// Tell a host of a demo to end, and wait until it has.
    Stop(DemoHost),
    /// Let a host of a demo stand still.
    Pause(DemoHost),
    /// End a host of a demo at once, as a crash does.
    Kill(DemoHost),
}

/// A host of a demo.
#[derive(Debug, Clone, Args)]
pub struct DemoHost {
    /// Its name.
    name: String,
    /// The demo's folder [default: drystone/demo-hosts in the user's data directory].
    #[arg(long, value_name = "DIR")]
    demo: Option<PathBuf>,
}

/// An order to a host of a demo.
#[derive(Debug, Clone, Args)]
pub struct OrderOptions {
    /// What.
    action: Action,
    /// The host's name.
    name: String,
    /// The demo's folder [default: drystone/demo-hosts in the user's data directory].
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Does it.
///
/// # Errors
/// What the host or the demo says.
pub async fn run(shell: &mut Shell<'_>, command: HostCommand) -> Result<(), Failure> {
    let (action, host) = match command {
        HostCommand::List => return list(shell).await,
        HostCommand::Start(host) => (Action::Start, host),
        HostCommand::Stop(host) => (Action::Stop, host),
        HostCommand::Pause(host) => (Action::Pause, host),
        HostCommand::Kill(host) => (Action::Kill, host),
    };
    order(shell, &OrderOptions { action, name: host.name, dir: host.demo }).await
}

/// Orders something of a host of a demo.
///
/// # Errors
/// What the demo says, or that it does not run.
pub async fn order(shell: &mut Shell<'_>, options: &OrderOptions) -> Result<(), Failure> {
    let folder = demo::folder_of(options.dir.as_deref(), true)?;
    let client = Client::Unix(demo::socket(&folder));
    let path = format!("/demo/v1/hosts/{}/{}", options.name, options.action.name());
    let done: String = client.post(&path, &()).await.map_err(|failure| match failure.code {
        crate::failure::Code::Unreachable => {
            failure.hint("start one with `drystone demo --hosts N`, or name its folder")
        }
        _ => failure,
    })?;
    shell.show(&serde_json::json!({ "done": done }), |_| done.clone())
}

async fn list(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
    shell.show(&hosts, |hosts| host_table(hosts))
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

/// `events`.
///
/// # Errors
/// What the host says.
pub async fn events(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let events: Vec<EventView> = shell.client.get("/api/v1/events").await?;
    shell.show(&events, |events| {
        let line = |event: &EventView| {
            let (hours, minutes) = (event.time / 3600 % 24, event.time / 60 % 60);
            format!("{hours:02}:{minutes:02}:{:02} UTC  disk {}: {}", event.time % 60, event.disk, event.text)
        };
        events.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}
