//! The command line: what can be asked for, and how it is shown.
//!
//! Every command is a client of the API, but those that a [`Program`] does on its own machine. Everything that is shown can also be had as JSON. Failures go to the
//! standard error output and decide the exit code.

mod attach;
mod cluster;
pub mod demo;
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
mod text;
mod top;
mod transfer;
mod upgrade;
mod what_if;

pub use disks::{histograms_text, path as disks_path};
pub use text::table;
pub use transfer::import_image;

use api::Client;
use api::identity::{self, user_data_dir};
use api::types::{FoundCluster, FoundedView, JoinedView};
use base::units::parse_bytes;
use clap::builder::TypedValueParser;
use clap::{Args, FromArgMatches, Parser, Subcommand};
use demo::{DemoCommand, DemoOptions};
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
#[command(name = "drystone", version = api::program::RELEASE, after_help = AFTER_HELP)]
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
    /// Watch over the process of a host; not for people.
    #[command(name = api::program::WATCHER, hide = true)]
    Watcher(WatcherOptions),
    /// Write man pages and completions; for the package.
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

/// What a watcher is started with; not for people.
#[derive(Debug, Clone, Args)]
pub struct WatcherOptions {
    /// The process to watch: the parent.
    #[arg(long)]
    pub pid: u32,
    /// Where the host's certificate is.
    #[arg(long)]
    pub data_dir: PathBuf,
}

/// What is done on this machine, and not by asking a host that serves: whoever puts the program together says how.
pub trait Program {
    /// Runs a host until it is told to stop. `force`: devices are formatted even if they hold other data.
    ///
    /// # Errors
    /// Why it cannot start, or what ended it.
    fn run_host(&self, config: &Path, force: bool, json: bool) -> Result<(), Failure>;

    /// Watches over the process of a host, and tells the other hosts when it has ended.
    ///
    /// # Errors
    /// When the process cannot be watched.
    fn watch(&self, options: &WatcherOptions) -> Result<(), Failure>;

    /// Runs a demo.
    ///
    /// # Errors
    /// What stood in the way, and what to do.
    fn run_demo(&self, options: &DemoOptions, json: bool) -> Result<(), Failure>;

    /// Makes a cluster of the host of a configuration.
    ///
    /// # Errors
    /// When there is a cluster already, or something cannot be written.
    fn init(&self, asked: &FoundCluster) -> Result<FoundedView, Failure>;

    /// Gets the certificate of the host of a configuration. `is_again`: in place of one that it has.
    ///
    /// # Errors
    /// When the token is not good, nobody answers, or the host belongs to a cluster already.
    fn join(&self, config: &Path, token: &str, is_again: bool) -> Result<JoinedView, Failure>;

    /// Runs the member of etcd of the host of a configuration, until it is told to stop.
    ///
    /// # Errors
    /// When the configuration makes no sense, or the member's folder cannot be used.
    fn run_etcd(&self, config: &Path) -> Result<(), Failure>;

    /// The OpenAPI document of the API.
    fn document(&self) -> serde_json::Value;
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

/// Does what `cli` says.
///
/// # Errors
/// What the host or the program says, or that no host answers.
pub fn run(cli: Cli, program: &dyn Program) -> Result<(), Failure> {
    match &cli.command {
        Command::Host(HostOptions { command: None, config, force }) => {
            let config = config.as_deref().ok_or_else(|| Failure::usage("--config FILE is missing"))?;
            program.run_host(config, *force, cli.json)
        }
        Command::Host(HostOptions { command: Some(hosts::HostCommand::Etcd { config }), .. }) => {
            program.run_etcd(config)
        }
        Command::Demo(options) if options.command.is_none() => program.run_demo(options, cli.json),
        Command::Watcher(options) => program.watch(options),
        Command::Manual(options) => manual::run(options),
        Command::Lab(_) | Command::Lens(_) => measure::measure(cli),
        _ => ask(cli, program),
    }
}

/// Does what is done with a host's API, or ends with an answer to be shown.
fn ask(cli: Cli, program: &dyn Program) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    let mut shell = Shell {
        client: find_api(cli.api.as_deref(), cli.identity.as_deref())?,
        identity: cli.identity.filter(|folder| !folder.as_os_str().is_empty()),
        json: cli.json,
        out: &mut out,
        interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
    };
    match cli.command {
        Command::Cluster(cluster::ClusterCommand::Init(options)) => {
            members::init(&mut shell, options, program)
        }
        Command::Host(HostOptions { command: Some(hosts::HostCommand::Join(options)), .. }) => {
            members::join(&mut shell, &options, program)
        }
        Command::Openapi => shell
            .show(&program.document(), |document| serde_json::to_string_pretty(document).unwrap_or_default()),
        command => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::failed("start a runtime", error))?;
            runtime.block_on(dispatch(&mut shell, command))
        }
    }
}

/// Does one command as a client of the API.
///
/// # Errors
/// What the host says, or that none answers.
///
/// # Panics
/// With commands that [`Program`] does.
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
            demo::order(shell, &options).await
        }
        Command::WhatIf(command) => what_if::run(shell, command).await,
        Command::Resync => resync::run(shell).await,
        Command::SupportBundle(options) => support::run(shell, options).await,
        Command::Top(options) => top::run(shell, options).await,
        Command::Demo(_)
        | Command::Host(_)
        | Command::Watcher(_)
        | Command::Manual(_)
        | Command::Openapi
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
    let folder = identity.map(Path::to_owned).or_else(identity::usual_folder);
    if let Some(known) = folder.filter(|_| found.is_none()).and_then(|folder| members::known_api(&folder)) {
        return Client::parse(&known, || identity_in(identity));
    }
    let first = sockets.into_iter().next();
    found.or(first).map(Client::Unix).ok_or_else(|| Failure::new(Code::Unreachable, "no host is known"))
}

/// What is shown to hosts and believed of them: from the folder that is named, or the usual one.
fn identity_in(named: Option<&Path>) -> Result<Arc<trust::Trust>, Failure> {
    let folder = named.map(Path::to_owned).or_else(identity::usual_folder);
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
