//! `model`: looks at all states of a configuration, or shows how a removed rule is missed.

use clap::{Parser, ValueEnum};
use model::search::{Outcome, search};
use model::world::World;
use model::{moves, parity, protocol};
use std::process::ExitCode;
use std::time::Instant;

/// Checks the replication protocol state by state.
#[derive(Debug, Parser)]
struct Arguments {
    /// Model to check.
    #[arg(long, value_enum, default_value_t = Model::Protocol)]
    of: Model,
    /// Owners, one after the other.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    epochs: u8,
    /// Writes in all.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=7))]
    writes: u8,
    /// Components of the protocol's mirror.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    components: u8,
    /// Parity members beside the two data members of `parity`.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    parity: u8,
    /// How often the move of `moves` may be turned round.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    turns: u8,
    /// Guests of `protocol` wait for a component in resync all the time, not only at its end.
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

/// A model, by the name that commands take.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Model {
    /// The protocol of a mirror.
    Protocol,
    /// A place with parity.
    Parity,
    /// A disk that moves from one layout to another.
    Moves,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Arguments { epochs, writes, .. } = arguments;
    match arguments.of {
        Model::Protocol => {
            let components = usize::from(arguments.components);
            let is_early = !arguments.late;
            run(&arguments, protocol::action::Config { components, epochs, writes, is_early, without: None })
        }
        Model::Parity => {
            let parity = usize::from(arguments.parity);
            run(&arguments, parity::config::Config { parity, epochs, writes, without: None })
        }
        Model::Moves => {
            let turns = arguments.turns;
            run(&arguments, moves::config::Config { epochs, writes, turns, without: None })
        }
    }
}

fn run<W: World>(arguments: &Arguments, world: W) -> ExitCode {
    if arguments.each_rule {
        return each_rule(world, arguments.states);
    }
    let Some(name) = &arguments.without else {
        return show(&world, arguments.states, false);
    };
    match W::RULES.iter().find(|(known, _)| known == name) {
        Some((_, rule)) => show(&world.without(*rule), arguments.states, true),
        None => {
            eprintln!("model: there is no rule `{name}`; the rules are:");
            W::RULES.iter().for_each(|(name, _)| eprintln!("  {name}"));
            ExitCode::from(2)
        }
    }
}

/// Searches a world in which a violation is wanted or not, and tells what was found.
fn show<W: World>(world: &W, states: usize, is_violation_wanted: bool) -> ExitCode {
    let started = Instant::now();
    let outcome = search(world, states);
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
    let is_violated = matches!(outcome, Outcome::Violated { .. });
    if is_violated == is_violation_wanted { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn each_rule<W: World>(world: W, states: usize) -> ExitCode {
    let mut all_missed = true;
    for &(name, rule) in W::RULES {
        if !world.can_miss(rule) {
            println!("{name}: needs a larger configuration");
            continue;
        }
        match search(&world.without(rule), states) {
            Outcome::Violated { violation, trace } => {
                println!("{name}: missed after {} steps: {violation:?}", trace.len());
            }
            Outcome::Exhausted { states, .. } | Outcome::Stopped { states, .. } => {
                all_missed = false;
                println!("{name}: not missed in {states} states");
            }
        }
    }
    if all_missed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
