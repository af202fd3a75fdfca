//! `sim`: runs seeds, crashes at every step, hunts mutants.

use clap::Parser;
use diskgroup::Rule;
use iostats::{Kind, Operations};
use sim::campaign::{STEPS, crash_everywhere, hunt, run_pinned};
use sim::cluster::Play;
use sim::features::Features;
use sim::memory::Counting;
use sim::overload::Overload;
use sim::world::World;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Simulates one host with faults, seed after seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seeds to run, from `--seed` on.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first (with `--trace`: the only) seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints every event of the one seed.
    #[arg(long)]
    trace: bool,
    /// Instead of the features that each seed draws: these, as a finding prints them, e.g. `"watchers hangs=317"`, or `none`.
    #[arg(long)]
    features: Option<String>,
    /// Instead of random crashes: this many traces, each crashed at every one of its steps.
    #[arg(long)]
    every_step: Option<u64>,
    /// Steps of a life.
    #[arg(long, default_value_t = STEPS)]
    steps: u64,
    /// Several hosts instead of one.
    #[arg(long)]
    cluster: bool,
    /// With `--cluster`: what is played.
    #[arg(long, value_enum, default_value_t)]
    play: Play,
    /// With `--mutants`: only those whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Removes each safety rule in turn and reports the seeds needed to notice. With `--cluster --trace`: tells the one seed
    /// without the first of `--only`.
    #[arg(long)]
    mutants: bool,
    /// Instead of faults: this many writers against a capacity device that takes 2,000 random writes a second.
    #[arg(long, value_name = "WRITERS")]
    overload: Option<usize>,
    /// Instead of seeds: the decisions of a large cluster that loses a host, and what they cost.
    #[arg(long)]
    scale: bool,
    /// With `--scale`: hosts.
    #[arg(long, default_value_t = 64)]
    hosts: usize,
    /// With `--scale`: disks.
    #[arg(long, default_value_t = 10_000)]
    disks: usize,
    /// With `--scale`: the policy of the disks.
    #[arg(long, default_value = "default")]
    policy: String,
    /// With `--scale`: seconds that a component may be missing before another takes its place.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    repair_delay: u64,
    /// With `--scale`: milliseconds that it takes to fill a component.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    fill: u64,
    /// With `--scale`: components of the cluster that are filled at once.
    #[arg(long, default_value_t = cluster::limits::REPLACEMENTS_MAX)]
    replacements: usize,
    /// With `--scale`: seconds that disks are given to be whole after the repair delay.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    patience: u64,
    /// With `--scale`: of 100 disks, those that guests write to.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    written: u64,
    /// With `--scale`: components stand in for absent ones.
    #[arg(long)]
    stand_ins: bool,
    /// With `--scale`: the figures as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.trace {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let started = Instant::now();
    if arguments.scale {
        return scale(&arguments);
    }
    let is_good = if arguments.cluster {
        several(&arguments)
    } else if arguments.trace {
        trace(&arguments)
    } else if let Some(writers) = arguments.overload {
        overload(writers)
    } else if arguments.mutants {
        hunt_all(&arguments)
    } else if let Some(traces) = arguments.every_step {
        every_step(&arguments, traces)
    } else {
        seeds(&arguments)
    };
    println!("{:.1} s", started.elapsed().as_secs_f64());
    match is_good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("sim: {why}");
            ExitCode::from(2)
        }
    }
}

/// The features that were asked for, if any were.
///
/// # Errors
/// What is no feature.
fn asked<F: FromStr<Err = String>>(arguments: &Arguments) -> Result<Option<F>, String> {
    arguments.features.as_deref().map(str::parse).transpose()
}

fn trace(arguments: &Arguments) -> Result<bool, String> {
    let seed = arguments.seed;
    let features = asked(arguments)?.unwrap_or_else(|| Features::drawn(seed));
    let result = World::with_features(seed, features, None, None).verbose().run(arguments.steps);
    println!("{result:?}");
    Ok(result.is_ok())
}

fn seeds(arguments: &Arguments) -> Result<bool, String> {
    let asked = asked(arguments)?;
    let (mut failed, mut crashes, mut answered, mut checkpoints, mut damaged, mut no_space) =
        (0, 0, 0, 0, 0, 0);
    let mut rewritten = 0;
    let (mut late_for_device, mut late_for_component) = (0, 0);
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        let features = asked.unwrap_or_else(|| Features::drawn(seed));
        match run_pinned(seed, features, None, arguments.steps) {
            Ok(summary) => {
                crashes += summary.crashes;
                answered += summary.answered;
                checkpoints += summary.checkpoints;
                rewritten += summary.rewritten;
                damaged += summary.damaged;
                no_space += summary.no_space;
                late_for_device += summary.computed_after_loss;
                late_for_component += summary.computed_after_deletion;
            }
            Err(why) => {
                failed += 1;
                println!(
                    "seed {seed}: {why}\n  replay: cargo xtask sim --seed {seed} --features \"{features}\" --trace"
                );
            }
        }
    }
    println!(
        "{} seeds, {failed} failed; {answered} operations, {crashes} crashes, {checkpoints} checkpoints, \
         {damaged} answers \"damaged\", {no_space} \"no space\", {rewritten} blocks written anew; results of the processor after a device was lost: \
         {late_for_device}, after a component was deleted: {late_for_component}",
        arguments.seeds
    );
    Ok(failed == 0)
}

/// Several hosts: seeds, one seed told at length, or the mutants of the protocol.
fn several(arguments: &Arguments) -> Result<bool, String> {
    use sim::cluster::{Features, Summary, hunt, run_pinned};
    let play = arguments.play;
    let asked = asked::<Features>(arguments)?;
    if asked.is_some() && !play.has_features() {
        return Err(format!("--features: `{}` has no fault but its own", play.name()));
    }
    let features = |seed| asked.unwrap_or_else(|| play.features(seed));
    let chosen = |mutant: &replication::Rule| format!("{mutant:?}").contains(&arguments.only);
    if arguments.trace {
        let mutant = replication::Rule::ALL.into_iter().find(|one| arguments.mutants && chosen(one));
        let features = features(arguments.seed);
        println!("features: {features}");
        let result = play.world(arguments.seed, features, mutant).verbose().run();
        println!("{result:?}");
        return Ok(result.is_ok());
    }
    if arguments.mutants {
        let caught = replication::Rule::ALL.into_iter().filter(chosen).map(|mutant| {
            let found = hunt(play, features, mutant, (arguments.seed, arguments.seeds));
            match &found {
                Some((seed, why)) => println!("{mutant:?}: caught by seed {seed}: {why}"),
                None => println!("{mutant:?}: not caught by {} seeds", arguments.seeds),
            }
            found.is_some()
        });
        return Ok(caught.fold(true, |all, is_caught| all & is_caught));
    }
    let (mut failed, mut total) = (0, Summary::default());
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        let features = features(seed);
        match run_pinned(play, seed, features, None) {
            Ok(summary) => total.add(&summary),
            Err(why) => {
                failed += 1;
                let play = play.name();
                let features = if arguments.play.has_features() {
                    format!("--features \"{features}\" ")
                } else {
                    String::new()
                };
                println!(
                    "seed {seed}: {why}\n  replay: cargo xtask sim --cluster --play {play} --seed {seed} {features}--trace"
                );
            }
        }
    }
    println!("{} seeds, {failed} failed; {total}", arguments.seeds);
    Ok(failed == 0)
}

/// A large cluster, and what its decisions cost.
fn scale(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let settings = cluster::Settings {
        delay: Duration::from_secs(arguments.repair_delay),
        replacements_max: arguments.replacements,
        ..cluster::Settings::default()
    };
    let options = sim::scale::Options {
        hosts: arguments.hosts,
        disks: arguments.disks,
        seed: arguments.seed,
        policy: arguments.policy.clone(),
        settings,
        stand_ins: arguments.stand_ins,
        written_percent: arguments.written,
        fill: Duration::from_millis(arguments.fill),
        patience: Duration::from_secs(arguments.patience),
        progress: |text| eprintln!("sim: {text}"),
        ..sim::scale::Options::default()
    };
    let report = match sim::scale::run(&options) {
        Ok(report) => report,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    match arguments.json {
        true => println!("{}", report.json()),
        false => println!("{report}\n{:.1} s", started.elapsed().as_secs_f64()),
    }
    let is_whole = report.failure.replaced.count == report.failure.components;
    if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn every_step(arguments: &Arguments, traces: u64) -> Result<bool, String> {
    let mut failed = 0;
    for seed in arguments.seed..arguments.seed + traces {
        if let Err(why) = crash_everywhere(seed, arguments.steps) {
            failed += 1;
            println!("trace {seed}: {why}");
        }
    }
    println!("{traces} traces of {} steps, {failed} failed", arguments.steps);
    Ok(failed == 0)
}

/// A minute of writers that a fast log takes and a slow capacity device does not.
fn overload(writers: usize) -> Result<bool, String> {
    let load = Overload { writers, seek_ns: 400_000, bandwidth: 100 << 20, log_size: 64 << 20, seconds: 60 };
    let outcome = load.run();
    for (place, seconds) in outcome.per_second.chunks(10).enumerate() {
        let (least, most) = (seconds.iter().min().unwrap_or(&0), seconds.iter().max().unwrap_or(&0));
        println!("second {:>2} and on: {least}..={most} writes a second", place * 10);
    }
    println!("latency in us  writes");
    for bucket in outcome.statistics.histogram(Kind::Latency, Operations::Writes).buckets {
        let limit = bucket.limit.map_or("more".to_owned(), |limit| format!("<= {limit}"));
        println!("{limit:>13}  {}", bucket.count);
    }
    let ms = |ns: u64| ns / 1_000_000;
    println!(
        "longest write {} ms, longest time without an answer {} ms",
        ms(outcome.latency_max_ns),
        ms(outcome.silence_max_ns)
    );
    Ok(outcome.latency_max_ns < 1_000_000_000)
}

fn hunt_all(arguments: &Arguments) -> Result<bool, String> {
    let mut all_caught = true;
    let asked = asked(arguments)?;
    let features = |seed| asked.unwrap_or_else(|| Features::drawn(seed));
    let is_chosen = |rule: &Rule| format!("{rule:?}").contains(&arguments.only);
    for rule in Rule::ALL.into_iter().filter(is_chosen) {
        match hunt(features, rule, (arguments.seed, arguments.seeds)) {
            Some((seed, why)) => println!("{rule:?}: caught by seed {seed}: {why}"),
            None => {
                all_caught = false;
                println!("{rule:?}: not caught by {} seeds", arguments.seeds);
            }
        }
    }
    Ok(all_caught)
}
