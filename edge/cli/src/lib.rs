//! The command line: what can be asked for, and how it is shown.
//!
//! Every command is a client of the API, but those that a [`Program`] does on its own machine. Everything that is shown can also be
//! had as JSON. Failures go to the standard error output and decide the exit code.

mod arguments;
mod attach;
mod cluster;
pub mod demo;
mod devices;
mod disks;
mod estimate;
mod events;
mod examples;
mod find;
mod health;
mod hosts;
mod manual;
mod me;
mod measure;
mod members;
mod policies;
mod program;
mod rebuild;
mod resync;
mod series;
mod shell;
mod snapshots;
mod sorting;
mod support;
mod tasks;
mod text;
mod top;
mod transfer;
mod upgrade;
mod what_if;

pub use arguments::{Cli, Command, HostOptions};
pub use disks::histograms_text;
pub use program::Program;
pub use shell::Shell;
pub use text::table;
pub use transfer::import_image;

use clap::FromArgMatches;
use demo::{DemoCommand, DemoOptions};
use failure::Failure;
use find::find_api;
use std::io::IsTerminal;

/// What the program was called with. Prints what was asked for and ends the program where that is help, or an error of usage.
pub fn parse() -> Cli {
    let matches = examples::command().get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
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
        Command::Watcher(options) => program.watch(options.pid, &options.data_dir),
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
        Command::Whoami => me::run(shell).await,
        Command::Console => me::console(shell).await,
        Command::Health(options) => health::run(shell, options).await,
        Command::Status => devices::status(shell).await,
        Command::Events(options) => events::run(shell, options).await,
        Command::Host(HostOptions { command: Some(command), .. }) => hosts::run(shell, command).await,
        Command::Demo(DemoOptions { command: Some(DemoCommand::Host(options)), .. }) => {
            demo::order(shell, &options).await
        }
        Command::WhatIf(command) => what_if::run(shell, command).await,
        Command::Resync => resync::run(shell).await,
        Command::Tasks(options) => tasks::run(shell, options).await,
        Command::SupportBundle(options) => support::run(shell, options).await,
        Command::Series(options) => series::run(shell, options).await,
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
