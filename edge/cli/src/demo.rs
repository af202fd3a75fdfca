//! What the command line knows of a demo: how it is started, and orders to its hosts.

use crate::shell::Shell;
use api::Client;
use api::identity::user_data_dir;
use clap::{Args, Subcommand};
use failure::{Code, Failure};
use std::path::{Path, PathBuf};

/// Options of `demo`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DemoOptions {
    /// Folder of the datastore [default: drystone/demo in the user's data directory].
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// End after the report instead of serving until Ctrl-C.
    #[arg(long)]
    pub exit: bool,
    /// Seconds of load.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Number of hosts on this machine, with a mirrored disk, and a host that is killed under load.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=64))]
    pub hosts: Option<u8>,
    /// Number of nodes on each host, each with a thread and a disk group of its own.
    #[arg(long, value_name = "N", requires = "hosts", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub shards: u8,
    /// Start the hosts and nothing else.
    #[arg(long, requires = "hosts")]
    pub bare: bool,
    /// Operation on a demo that runs.
    #[command(subcommand)]
    pub command: Option<DemoCommand>,
}

/// What can be done with a demo that runs.
#[derive(Debug, Clone, Subcommand)]
pub enum DemoCommand {
    /// Start, stop, pause or kill a host of it.
    Host(OrderOptions),
}

/// A host of a demo.
#[derive(Debug, Clone, Args)]
pub struct DemoHost {
    /// Name of the host.
    pub name: String,
    /// Folder of the demo [default: drystone/demo-hosts in the user's data directory].
    #[arg(long, value_name = "DIR")]
    pub demo: Option<PathBuf>,
}

/// An order to a host of a demo.
#[derive(Debug, Clone, Args)]
pub struct OrderOptions {
    /// Operation on the host.
    pub action: Action,
    /// Name of the host.
    pub name: String,
    /// Folder of the demo [default: drystone/demo-hosts in the user's data directory].
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// What can be done with a host of a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Start it, or let it go on after a pause.
    Start,
    /// Tell it to end, and wait until it has.
    Stop,
    /// Let it stand still (SIGSTOP).
    Pause,
    /// End it at once (SIGKILL), as a crash does.
    Kill,
}

impl Action {
    /// As it stands in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Pause => "pause",
            Action::Kill => "kill",
        }
    }

    /// The action of that name.
    pub fn parse(name: &str) -> Option<Action> {
        [Action::Start, Action::Stop, Action::Pause, Action::Kill].into_iter().find(|one| one.name() == name)
    }
}

/// The socket of a demo: its directory, and orders to its hosts.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("demo.sock")
}

/// The folder of a demo: the named one, or the usual one.
///
/// # Errors
/// When none is named and there is no home directory.
pub fn folder_of(named: Option<&Path>, has_hosts: bool) -> Result<PathBuf, Failure> {
    let usual = if has_hosts { "demo-hosts" } else { "demo" };
    let folder = match (named, user_data_dir()) {
        (Some(folder), _) => folder.to_owned(),
        (None, Some(user)) => user.join(usual),
        (None, None) => return Err(Failure::usage("there is no home directory: say where with --dir")),
    };
    std::path::absolute(&folder)
        .map_err(|error| Failure::usage(format!("{} is not a path: {error}", folder.display())))
}

/// Orders something of a host of a demo.
///
/// # Errors
/// What the demo says, or that it does not run.
pub async fn order(shell: &mut Shell<'_>, options: &OrderOptions) -> Result<(), Failure> {
    let folder = folder_of(options.dir.as_deref(), true)?;
    let client = Client::Unix(socket(&folder));
    let path = format!("/demo/v1/hosts/{}/{}", options.name, options.action.name());
    let done: String = client.post(&path, &()).await.map_err(|failure| match failure.code {
        Code::Unreachable => failure.hint("start one with `drystone demo --hosts N`, or name its folder"),
        _ => failure,
    })?;
    shell.show(&serde_json::json!({ "done": done }), |_| done.clone())
}
