//! `trials`: real hosts under a load that verifies, real faults, and tables of what they cost.
//!
//! Relies on the program `drystone` alone, as any user runs it: its demo, its API, NBD. Must never touch a process or a
//! folder that it did not make.

mod apart;
mod api;
mod archive;
mod bench;
mod cluster;
mod control;
mod device;
mod failure;
mod fio;
mod flushes;
mod garbage;
mod guest;
mod guide;
mod ledger;
mod libvirt;
mod load;
mod machine;
mod meter;
mod namespaces;
mod nbd;
mod recorder;
mod regions;
mod report;
mod room;
mod scenarios;
mod spell;
mod stamp;
mod standstills;
mod stolen;
mod undo;

use bench::Settings;
use clap::{Parser, ValueEnum};
use failure::Failure;
use report::Report;
use scenarios::Scenario;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Tries a real cluster on this machine: faults under a load that verifies every block.
///
/// Ends with 1 when a rule was broken: a read that no order of events explains, an error that a client was answered with, a
/// stall over its limit, more copied than needed, a disk that does not become whole. The folder is kept then.
#[derive(Debug, Parser)]
#[command(name = "trials")]
struct Arguments {
    /// What to try; nothing: everything.
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// Rounds of each kind instead of the usual number.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only the kinds of rounds whose name contains this, as the table has them: `owner`.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Seed of all choices; the moments of the faults differ all the same.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// I/Os that a client has under way.
    #[arg(long, default_value_t = 16)]
    depth: usize,
    /// How long a host is away in `away`, etcd in `directory`, links are narrow in `shape`; how long each port gets garbage.
    #[arg(long)]
    seconds: Option<u64>,
    /// How long `mixed` takes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Where clusters are made; a new folder in the temporary one if left out.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Hosts on machines of their own (network namespaces) with certificates, and an etcd of three members, in all
    /// scenarios; needs root, `ip`, `nft` and `etcd`.
    #[arg(long)]
    apart: bool,
    /// Keeps the folder even when all went well.
    #[arg(long)]
    keep: bool,
    /// Where Debian's package of a kernel for clouds is unpacked, for the guests of `migrate` and `libvirt`; `/`: where it is installed.
    #[arg(long, default_value = "/")]
    kernel: PathBuf,
    /// The program `drystone`; the one beside this program if left out.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The next release of it, for `upgrade`; the same if left out.
    #[arg(long)]
    next: Option<PathBuf>,
    /// Writes all results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let is_guest = std::process::id() == 1 && std::env::args().next().as_deref() == Some(guest::NAME);
    if is_guest {
        guest::run();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|first| first == scenarios::garbage::OPTION) {
        return match scenarios::garbage::send(&words[1..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("trials: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    let arguments = Arguments::parse();
    match undo::on_signals().and_then(|()| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("trials: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no rule was broken.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let began = Instant::now();
    let settings = settings(arguments)?;
    let scenarios =
        if arguments.scenarios.is_empty() { Scenario::ALL.to_vec() } else { arguments.scenarios.clone() };
    let mut reports: Vec<Report> = Vec::new();
    for scenario in scenarios {
        // One that cannot begin keeps no other from it.
        let report = scenario.run(&settings).unwrap_or_else(|failure| Report {
            scenario: scenario
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned()),
            seed: settings.seed,
            folder: settings.folder.display().to_string(),
            failure: Some(failure.to_string()),
            ..Report::default()
        });
        println!("{}", report.text());
        reports.push(report);
        // After each, so that nothing is lost when a later one is ended by hand.
        write_json(arguments, &reports)?;
    }
    // It stays when something in it was kept.
    let _ = std::fs::remove_dir(&settings.folder);
    let broken = reports.iter().filter(|report| !report.is_good()).count();
    println!(
        "\n{} trials, {broken} with a broken rule; {:.0} s",
        reports.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(broken == 0)
}

fn settings(arguments: &Arguments) -> Result<Settings, Failure> {
    if !base::checksum::self_test() {
        return Err(Failure::Usage("checksums are wrong on this machine".to_owned()));
    }
    if arguments.depth == 0 || arguments.rounds == Some(0) {
        return Err(Failure::Usage("--depth and --rounds are at least 1".to_owned()));
    }
    let beside = || -> Result<PathBuf, Failure> {
        let own = std::env::current_exe().map_err(Failure::machine("find this program"))?;
        Ok(own.with_file_name("drystone"))
    };
    let program = arguments.program.clone().map_or_else(beside, Ok)?;
    let next = arguments.next.clone().unwrap_or_else(|| program.clone());
    for (program, option) in [(&program, "--program"), (&next, "--next")] {
        if !program.is_file() {
            let what = format!(
                "there is no program {}: `./x build` makes it; {option} says where it is",
                program.display()
            );
            return Err(Failure::Usage(what));
        }
    }
    let usual = || std::env::temp_dir().join(format!("drystone-trials-{}", std::process::id()));
    let folder = arguments.dir.clone().unwrap_or_else(usual);
    let folder =
        std::path::absolute(&folder).map_err(Failure::machine(format!("find {}", folder.display())))?;
    std::fs::create_dir_all(&folder).map_err(Failure::machine(format!("make {}", folder.display())))?;
    Ok(Settings {
        program,
        next,
        folder,
        seed: arguments.seed,
        depth: arguments.depth,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        minutes: arguments.minutes,
        only: arguments.only.clone(),
        kernel: arguments.kernel.clone(),
        keeps: arguments.keep,
        is_apart: arguments.apart,
    })
}

fn write_json(arguments: &Arguments, reports: &[Report]) -> Result<(), Failure> {
    let Some(path) = &arguments.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(reports).expect("reports are plain data");
    std::fs::write(path, text).map_err(Failure::machine(format!("write {}", path.display())))
}
