//! `model`: looks at all states of a configuration, or shows how a removed rule is missed.

use clap::Parser;
use model::action::{Config, Method};
use model::rule::Rule;
use model::search::{Outcome, search};
use std::process::ExitCode;
use std::time::Instant;

/// Checks the replication protocol state by state.
#[derive(Debug, Parser)]
struct Arguments {
    /// Owners, one after the other.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    epochs: u8,
    /// Writes in all.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=7))]
    writes: u8,
    /// Components.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    components: u8,
    /// Uncertain writes are rolled back, as with parity, and not forward, as with mirrors.
    #[arg(long)]
    parity: bool,
    /// Guests wait for a component in resync all the time, not only at its end.
    #[arg(long)]
    late: bool,
    /// Takes one rule out.
    #[arg(long, value_name = "RULE")]
    without: Option<String>,
    /// Takes each rule out in turn, and shows how soon it is missed.
    #[arg(long, conflicts_with = "without")]
    each_rule: bool,
    /// States to look at, at most.
    #[arg(long, default_value_t = 60_000_000)]
    states: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut config = Config {
        components: usize::from(arguments.components),
        epochs: arguments.epochs,
        writes: arguments.writes,
        method: if arguments.parity { Method::Parity } else { Method::Mirror },
        is_early: !arguments.late,
        without: None,
    };
    if arguments.each_rule {
        return each_rule(config, arguments.states);
    }
    if let Some(name) = &arguments.without {
        let Some(rule) = Rule::named(name) else {
            eprintln!("model: there is no rule `{name}`; the rules are:");
            Rule::ALL.iter().for_each(|(name, _)| eprintln!("  {name}"));
            return ExitCode::from(2);
        };
        config.without = Some(rule);
    }
    let started = Instant::now();
    let outcome = search(&config, arguments.states);
    match &outcome {
        Outcome::Exhausted { states, depth } => {
            println!("all {states} states, {depth} steps deep: no violation")
        }
        Outcome::Stopped { states, depth } => {
            println!("{states} states, {depth} steps deep, not all: no violation")
        }
        Outcome::Violated { violation, trace } => {
            println!("{violation:?}, after:");
            trace.iter().enumerate().for_each(|(step, action)| println!("{:>4}  {action:?}", step + 1));
        }
    }
    println!("{:.1} s", started.elapsed().as_secs_f64());
    // With a rule removed, a violation is what is wanted.
    let is_violated = matches!(outcome, Outcome::Violated { .. });
    if is_violated == config.without.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn each_rule(config: Config, states: usize) -> ExitCode {
    let mut all_missed = true;
    for (name, rule) in Rule::ALL {
        match search(&Config { without: Some(rule), ..config }, states) {
            Outcome::Violated { violation, trace } => {
                println!("{name}: missed after {} steps: {violation:?}", trace.len());
            }
            Outcome::Exhausted { .. } | Outcome::Stopped { .. } => {
                all_missed = false;
                println!("{name}: not missed");
            }
        }
    }
    if all_missed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
