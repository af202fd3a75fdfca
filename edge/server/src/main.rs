//! The program `drystone`: a storage host, and the command line that talks to one.

mod api;
mod cli;
mod client;
mod cluster;
mod config;
mod control;
mod data_dir;
mod demo;
mod directory;
mod events;
#[cfg(test)]
mod fake;
mod founding;
mod host;
mod limits;
mod lock;
mod log;
mod managed;
mod name;
mod release;
mod sampler;
mod security;
mod watcher;

use failure::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::fmt::time::SystemTime;

fn main() -> ExitCode {
    let cli = cli::parse();
    let json = cli.json;
    let done = match &cli.command {
        cli::Command::Host(options) if options.command.is_none() => {
            begin_log(tracing::Level::INFO, json);
            host::run(options)
        }
        cli::Command::Watcher(options) => watcher::run(options),
        cli::Command::Manual(options) => cli::write_manual(options),
        cli::Command::Demo(options) if options.command.is_none() => {
            begin_log(tracing::Level::WARN, json);
            demo::run(options, json)
        }
        cli::Command::Lab(_) | cli::Command::Lens(_) => cli::measure(cli),
        _ => cli::run(cli),
    };
    log::flush();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, json);
            ExitCode::from(failure.code.exit())
        }
    }
}

/// The log of the control plane goes to the standard error output: lines for people, or one object of JSON a line.
fn begin_log(level: tracing::Level, json: bool) {
    let log = tracing_subscriber::fmt()
        .with_writer(log::Writer::start)
        .with_ansi(!json && std::io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(level)
        .with_timer(SystemTime);
    match json {
        true => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
        false => log.init(),
    }
}

fn report(failure: &Failure, json: bool) {
    if json {
        match serde_json::to_string(failure) {
            Ok(text) => eprintln!("{text}"),
            Err(error) => eprintln!("drystone: {failure} ({error})"),
        }
        return;
    }
    eprintln!("drystone: {failure}");
    if let Some(hint) = &failure.hint {
        eprintln!("  {hint}");
    }
}
