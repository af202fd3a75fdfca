//! The command line: what can be asked for, and how it is shown.
//!
//! Every command but `host` and `demo` is a client of the API. Everything that is shown can also be had as JSON. Failures go to the
//! standard error output and decide the exit code.

mod attach;
mod cluster;
mod devices;
mod disks;
mod events;
mod examples;
mod health;
mod hosts;
mod manual;
mod measure;
mod members;
mod policies;
mod rebuild;
mod resync;
mod sorting;
mod support;
#[cfg(test)]
mod tests;
mod text;
mod top;
mod transfer;
mod upgrade;
mod what_if;

pub use manual::run as write_manual;
pub use measure::measure;

pub use disks::{histograms_text, path as disks_path};
pub use text::table;
pub use transfer::import_image;

use crate::client::Client;
use crate::security;
use base::units::parse_bytes;
use clap::builder::TypedValueParser;
use clap::{Args, FromArgMatches, Parser, Subcommand};
use failure::{Code, Failure};
use lab::commands::{LabCommand, LensOptions};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const AFTER_HELP: &str = "\
Exit codes: 0 success, 1 failure (of `health`: something needs attention), 2 malformed input, 3 refused in the present state, 4 not
found, 5 exists already or changed meanwhile, 6 no host answers, 7 not allowed.

Sizes: 512, 4K, 10GiB, 1.5T; units are powers of 1024.";

/// Run virtual disks with a policy each on the local disks of Linux hosts.
#[derive(Debug, Parser)]
#[command(name = "drystone", version = crate::release::RELEASE, after_help = AFTER_HELP)]
pub struct Cli {
    /// Address of the host's API: `https://ADDRESS:PORT`, `unix:PATH` or `127.0.0.1:PORT`.
    #[arg(long, global = true, env = "DRYSTONE_API", value_name = "ADDRESS")]
    api: Option<String>,
    /// Folder with the certificate to show there [default: drystone/identity in the user's data directory].
    #[arg(long, global = true, env = "DRYSTONE_IDENTITY", value_name = "DIR", value_parser = clap::builder::OsStringValueParser::new().map(PathBuf::from))]
    identity: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try Drystone: a datastore in a directory, a disk, real data and a real load.
    Demo(DemoOptions),
    /// Run a storage host until it is told to stop (SIGTERM, Ctrl-C); or list the hosts of a cluster.
    Host(HostOptions),
    #[command(name = crate::watcher::COMMAND, hide = true)]
    Watcher(crate::watcher::WatcherOptions),
    #[command(name = manual::COMMAND, hide = true)]
    Manual(manual::ManualOptions),
    /// Manage the devices of hosts.
    #[command(subcommand)]
    Device(devices::DeviceCommand),
    /// Manage virtual disks.
    #[command(subcommand)]
    Disk(disks::DiskCommand),
    /// Show how guests attach to a disk: its address, and text to paste into QEMU, libvirt, Proxmox.
    Attach(attach::AttachOptions),
    /// Manage policies.
    #[command(subcommand)]
    Policy(policies::PolicyCommand),
    /// Manage the cluster as a whole: settings, balance, certificates, upgrades.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Manage the people who work with the cluster.
    #[command(subcommand)]
    Person(members::PersonCommand),
    /// Get your certificate with a token.
    Login(members::LoginOptions),
    /// Show what is wrong and what to do about it. Exit code 1 if something needs attention.
    Health(health::HealthOptions),
    /// Show the host, its disk groups and devices; in a cluster also what is not compliant, and when it will be.
    Status,
    /// List what happened on all hosts: when, of which kind, to what, and why.
    Events(events::EventOptions),
    /// Forecast a change of the cluster: space, disks, resync. Nothing is changed.
    #[command(subcommand, name = "what-if")]
    WhatIf(what_if::WhatIfCommand),
    /// Show the resync of disks: what is copied, how much is left, and what waits for what.
    Resync,
    /// Write a support bundle: configuration, status, events, metrics and logs in one file, without secrets.
    SupportBundle(support::SupportOptions),
    /// Show the load of every disk now.
    Top(top::TopOptions),
    /// Print the OpenAPI document of the API.
    Openapi,
    /// Measure any datastore with the jobs of fio, DiskSPD, Vdbench and Iometer.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Show what disks did: from vscsiStats captures, traces, results of the lab, or live from a block device.
    Lens(LensOptions),
}

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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=16))]
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
    Host(hosts::OrderOptions),
}

/// Options of `host`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HostOptions {
    /// Configuration file of the host.
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// What to do instead of running one.
    #[command(subcommand)]
    pub command: Option<hosts::HostCommand>,
    /// Format the configured devices even if they hold other data, which is destroyed.
    #[arg(long)]
    pub force: bool,
}

/// What the program was called with. Prints what was asked for and ends the program where that is help, or an error of usage.
pub fn parse() -> Cli {
    let matches = examples::command().get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Where answers go, and whom to ask.
pub struct Shell<'a> {
    /// The host.
    pub client: Client,
    /// The folder of the identity, if one was named.
    pub identity: Option<PathBuf>,
    /// Whether JSON is wanted.
    pub json: bool,
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Whether a person can be asked.
    pub interactive: bool,
}

impl Shell<'_> {
    /// Shows an answer: as JSON, or as `text` makes it.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn show<T: Serialize>(&mut self, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let shown = match self.json {
            true => serde_json::to_string_pretty(answer),
            false => Ok(text(answer)),
        };
        self.print(&shown.map_err(|error| Failure::failed("write JSON", error))?)
    }

    /// Shows one of many: as JSON on a line of its own, or as `text` makes it.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn line<T: Serialize>(&mut self, one: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let shown = match self.json {
            true => serde_json::to_string(one),
            false => Ok(text(one)),
        };
        self.print(&shown.map_err(|error| Failure::failed("write JSON", error))?)
    }

    fn print(&mut self, shown: &str) -> Result<(), Failure> {
        match writeln!(self.out, "{}", shown.trim_end()) {
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            written => written.map_err(|error| Failure::failed("write the answer", error)),
        }
    }

    /// Asks a person whether to go on with something that has consequences; `is_given`: it was said already.
    ///
    /// # Errors
    /// When nobody can be asked, or the answer was no.
    fn consent(&mut self, is_given: bool, what: &str) -> Result<(), Failure> {
        if is_given {
            return Ok(());
        }
        if !self.interactive {
            return Err(Failure::refused(format!("{what}; it must be confirmed")).hint("add `--yes`"));
        }
        eprint!("{what}. Type yes to go on: ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|error| Failure::failed("read the answer", error))?;
        match line.trim() == "yes" {
            true => Ok(()),
            false => Err(Failure::refused("not confirmed: nothing was changed")),
        }
    }

    /// The confirmation that a destructive request needs: given, or typed by a person.
    ///
    /// # Errors
    /// When nobody can be asked, or the answer was another.
    fn confirm(&mut self, given: Option<String>, what: &str, name: &str) -> Result<String, Failure> {
        if let Some(given) = given {
            return Ok(given);
        }
        if !self.interactive {
            return Err(Failure::refused(format!("{what}; it must be confirmed"))
                .hint(format!("add `--confirm {name}`")));
        }
        eprint!("{what}. Type the disk's name to go on: ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|error| Failure::failed("read the answer", error))?;
        match line.trim() == name {
            true => Ok(name.to_owned()),
            false => Err(Failure::refused(format!("not confirmed: the name is {name}. Nothing was changed"))),
        }
    }
}

/// Does what `cli` says, as a client.
///
/// # Errors
/// What the host says, or that none answers.
pub fn run(cli: Cli) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    let mut shell = Shell {
        client: find_api(cli.api.as_deref(), cli.identity.as_deref())?,
        identity: cli.identity.filter(|folder| !folder.as_os_str().is_empty()),
        json: cli.json,
        out: &mut out,
        interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("start a runtime", error))?;
    runtime.block_on(dispatch(&mut shell, cli.command))
}

/// Does one command.
///
/// # Errors
/// What the host says, or that none answers.
pub async fn dispatch(shell: &mut Shell<'_>, command: Command) -> Result<(), Failure> {
    match command {
        Command::Device(command) => devices::run(shell, command).await,
        Command::Disk(command) => disks::run(shell, command).await,
        Command::Attach(options) => attach::run(shell, &options).await,
        Command::Policy(command) => policies::run(shell, command).await,
        Command::Cluster(command) => cluster::run(shell, command).await,
        Command::Person(command) => members::person(shell, command).await,
        Command::Login(options) => {
            let folder = shell.identity.clone();
            members::login(shell, &options, folder).await
        }
        Command::Health(options) => health::run(shell, options).await,
        Command::Status => devices::status(shell).await,
        Command::Events(options) => events::run(shell, options).await,
        Command::Host(HostOptions { command: Some(command), .. }) => hosts::run(shell, command).await,
        Command::Demo(DemoOptions { command: Some(DemoCommand::Host(options)), .. }) => {
            hosts::order(shell, &options).await
        }
        Command::WhatIf(command) => what_if::run(shell, command).await,
        Command::Resync => resync::run(shell).await,
        Command::SupportBundle(options) => support::run(shell, options).await,
        Command::Top(options) => top::run(shell, options).await,
        Command::Openapi => shell.show(crate::api::document(), |document| {
            serde_json::to_string_pretty(document).unwrap_or_default()
        }),
        Command::Demo(_)
        | Command::Host(_)
        | Command::Watcher(_)
        | Command::Manual(_)
        | Command::Lab(_)
        | Command::Lens(_) => {
            unreachable!("these are no clients of the API")
        }
    }
}

/// The API that is named, or else one whose socket stands at a usual place.
fn find_api(named: Option<&str>, identity: Option<&Path>) -> Result<Client, Failure> {
    // A variable that is set to nothing says nothing.
    let named = named.filter(|named| !named.is_empty());
    let identity = identity.filter(|folder| !folder.as_os_str().is_empty());
    if let Some(named) = named {
        return Client::parse(named, || identity_in(identity));
    }
    let places = usual_data_dirs();
    let sockets = places.iter().map(|folder| folder.join("api.sock"));
    let found = sockets.clone().find(|path| path.exists());
    let folder = identity.map(Path::to_owned).or_else(security::usual_folder);
    if let Some(known) = folder.filter(|_| found.is_none()).and_then(|folder| members::known_api(&folder)) {
        return Client::parse(&known, || identity_in(identity));
    }
    let first = sockets.into_iter().next();
    found.or(first).map(Client::Unix).ok_or_else(|| Failure::new(Code::Unreachable, "no host is known"))
}

/// What is shown to hosts and believed of them: from the folder that is named, or the usual one.
fn identity_in(named: Option<&Path>) -> Result<Arc<trust::Trust>, Failure> {
    let folder = named.map(Path::to_owned).or_else(security::usual_folder);
    let folder =
        folder.ok_or_else(|| Failure::usage("no folder of an identity is known: name it with --identity"))?;
    trust::Store::new(folder).load().map_err(|error| {
        Failure::because("read your identity", &error).hint(
            "have an admin make a token for you (`drystone person token NAME`), then `drystone login TOKEN`",
        )
    })
}

/// Where hosts usually have their data directory.
fn usual_data_dirs() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/var/lib/drystone")];
    if let Some(user) = user_data_dir() {
        places.push(user.clone());
        places.push(user.join("demo"));
    }
    places
}

/// The user's own data directory for Drystone.
pub fn user_data_dir() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    data.or_else(home).map(|folder| folder.join("drystone"))
}

/// For clap: a size as people write it.
fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// For clap: `90`, `60s`, `5m`, `1h`, `7d` in seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3600),
        Some(number) if text.ends_with('d') => (number, 86_400),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let value: Option<u64> = number.parse().ok();
    value
        .and_then(|value| value.checked_mul(factor))
        .filter(|value| *value > 0)
        .ok_or_else(|| format!("`{text}` is not a time: `60s`, `5m`, `1h` and `7d` are"))
}
