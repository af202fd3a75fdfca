//! The program `drystone`: a storage host, and the command line that talks to one.
//!
//! It only puts the rooms together: the engine, the control plane, the command line and the demo.

mod log;
#[cfg(test)]
mod tests;

use api::types::{FoundCluster, FoundedView, JoinedView};
use cli::Program;
use cli::demo::DemoOptions;
use control::{host, offline, watcher};
use failure::Failure;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::fmt::time::SystemTime;

fn main() -> ExitCode {
    let cli = cli::parse();
    let json = cli.json;
    let done = cli::run(cli, &Drystone);
    log::flush();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, json);
            ExitCode::from(failure.code.exit())
        }
    }
}

/// The program with all its rooms.
struct Drystone;

impl Program for Drystone {
    fn run_host(&self, config: &Path, force: bool, json: bool) -> Result<(), Failure> {
        begin_log(tracing::Level::INFO, json);
        host::run(config, force, engine::start)
    }

    fn watch(&self, pid: u32, data_dir: &Path) -> Result<(), Failure> {
        watcher::run(pid, data_dir)
    }

    fn run_demo(&self, options: &DemoOptions, json: bool) -> Result<(), Failure> {
        begin_log(tracing::Level::WARN, json);
        demo::run(options, json, engine::start)
    }

    fn init(&self, asked: &FoundCluster) -> Result<FoundedView, Failure> {
        host::runtime()?.block_on(offline::init(asked))
    }

    fn join(&self, config: &Path, token: &str, is_again: bool) -> Result<JoinedView, Failure> {
        host::runtime()?.block_on(offline::join(config, token, is_again))
    }

    fn run_etcd(&self, config: &Path) -> Result<(), Failure> {
        host::runtime()?.block_on(offline::run_etcd(config))
    }

    fn document(&self) -> serde_json::Value {
        serde_json::to_value(control::http::document()).expect("a document is plain JSON")
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
