//! Runs an experiment's cells: prepared, preconditioned, in an order that spreads drift evenly.

use super::bench::Bench;
use super::expand::{CellPlan, Chosen, make};
use super::expect::figure;
use super::model::{Experiment, Figure, Fill, Over, Parameter, Search};
use super::{conclude, expand, judge_all};
use crate::runner::Event;
use measured::{Cell, EXPERIMENT_VERSION, Ended, ExperimentRun, Run};
use plan::{Amount, Content, Group, Length, Pattern, Plan, Stage, Timing};
use statistics::steady::{SteadyState, steady_state};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points of a search at most.
const SEARCH_POINTS_MAX: u32 = 24;
/// Bytes of the writes that fill a target: its last part, where they do not divide it, is left as it is.
const FILL_SIZE: u64 = 64 << 10;

/// What an experiment's runs need of the world.
pub struct Conditions<'a> {
    /// What plans run on.
    pub bench: &'a mut dyn Bench,
    /// Set to end the run.
    pub interrupted: Arc<AtomicBool>,
    /// The program's name and version.
    pub program: String,
    /// Told what happens, with the plan that it happens in.
    pub observe: &'a mut dyn FnMut(&Plan, Event),
    /// Told in a sentence what begins.
    pub tell: &'a mut dyn FnMut(&str),
}

/// Runs an experiment. What was measured up to an error is kept.
///
/// # Errors
/// When it cannot begin, in a sentence.
pub fn execute(
    experiment: &Experiment,
    source: &str,
    conditions: &mut Conditions,
) -> Result<ExperimentRun, String> {
    let plans = expand(experiment).map_err(|error| error.to_string())?;
    let mut run = ExperimentRun {
        experiment_version: EXPERIMENT_VERSION,
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        source: source.to_owned(),
        program: conditions.program.clone(),
        started_unix_ms: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        cells: Vec::new(),
        conclusions: Vec::new(),
        expectations: Vec::new(),
        notes: Vec::new(),
    };
    prepare(experiment, &plans, conditions, &mut run.notes)?;
    match &experiment.search {
        Some(of) => search(experiment, of, conditions, &mut run)?,
        None => run_cells(experiment, &plans, conditions, &mut run)?,
    }
    run.conclusions = conclude(experiment, &run.cells);
    run.expectations = judge_all(&experiment.expect, &run.cells);
    Ok(run)
}

fn interrupted(conditions: &Conditions) -> bool {
    conditions.interrupted.load(Ordering::Relaxed)
}

/// Every cell once, then every cell once more from the last to the first, and so on: what changes slowly changes all alike.
fn run_cells(
    experiment: &Experiment,
    plans: &[CellPlan],
    conditions: &mut Conditions,
    run: &mut ExperimentRun,
) -> Result<(), String> {
    run.cells = plans.iter().map(|plan| plan.cell.clone()).collect();
    for repeat in 0..experiment.repeat {
        let order: Vec<usize> = match repeat % 2 {
            0 => (0..plans.len()).collect(),
            _ => (0..plans.len()).rev().collect(),
        };
        for index in order {
            if interrupted(conditions) {
                run.notes.push("the experiment was stopped early: some cells have fewer runs".to_owned());
                return Ok(());
            }
            (conditions.tell)(&format!(
                "run {} of {}, {}",
                run.cells.iter().map(|cell| cell.runs.len()).sum::<usize>() + 1,
                plans.len() * experiment.repeat as usize,
                plans[index].cell.label()
            ));
            let one = run_one(experiment, &plans[index].plan, conditions)?;
            note_failure(&one, &plans[index].cell, &mut run.notes);
            run.cells[index].runs.push(one);
        }
    }
    Ok(())
}

fn note_failure(one: &Run, cell: &Cell, notes: &mut Vec<String>) {
    for stage in &one.stages {
        if let Ended::Failed(error) = &stage.ended {
            notes.push(format!("{}: {error}", cell.label()));
        }
    }
}

fn run_one(experiment: &Experiment, plan: &Plan, conditions: &mut Conditions) -> Result<Run, String> {
    conditions.bench.run(plan, experiment.drop_caches, conditions.observe)
}

/// Fills targets, and runs the preconditioning workload until it is steady.
fn prepare(
    experiment: &Experiment,
    plans: &[CellPlan],
    conditions: &mut Conditions,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let content = match experiment.prepare.fill {
        Fill::None => None,
        Fill::Zero => Some(Content::Zeroes),
        Fill::Random => Some(Content::Random),
    };
    // The largest plan has all the targets.
    let Some(widest) = plans.iter().max_by_key(|plan| plan.plan.targets.len()) else { return Ok(()) };
    if let Some(content) = content {
        fill(experiment, &widest.plan, content, conditions, notes)?;
    }
    let Some(of) = &experiment.precondition else { return Ok(()) };
    let workload = experiment.workloads.iter().find(|workload| workload.name == of.workload);
    let workload = workload.expect("names are checked when the file is read").clone();
    let round = Experiment { seconds: of.seconds, ramp: 0.0, pause: 0.0, ..experiment.clone() };
    let chosen = Chosen { workload, vms: None, outstanding: None, target: None };
    let plan = make(&round, &chosen, BTreeMap::new(), None).map_err(|error| error.to_string())?;
    let mut rounds = Vec::new();
    for number in 1..=of.rounds {
        if interrupted(conditions) {
            break;
        }
        (conditions.tell)(&format!("precondition, round {number} of at most {}", of.rounds));
        let one = run_one(&round, &plan.plan, conditions)?;
        rounds.extend(figure(&one, Figure::Iops));
        if let SteadyState::Reached { .. } = steady_state(&rounds) {
            break;
        }
    }
    notes.push(format!("precondition with {}: {}", of.workload, steady_state(&rounds)));
    Ok(())
}

fn fill(
    experiment: &Experiment,
    widest: &Plan,
    content: Content,
    conditions: &mut Conditions,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let written = match experiment.prepare.always || content == Content::Zeroes {
        true => vec![false; widest.targets.len()],
        false => conditions.bench.written(widest)?,
    };
    let mut plan = Plan { name: "fill".to_owned(), targets: widest.targets.clone(), ..Plan::default() };
    let timing = Timing { length: Length::Amount(Amount::Passes(1.0)), ..Timing::seconds(1) };
    let mut groups = Vec::new();
    let mut filled = vec![false; widest.targets.len()];
    for owner in widest.stages.iter().flat_map(|stage| &stage.groups) {
        for &target in &owner.targets {
            if written[target] || std::mem::replace(&mut filled[target], true) {
                continue;
            }
            let name = format!("fill {}", widest.targets[target].name);
            let mut group = Group::new(name, target, 4, Pattern::simple(FILL_SIZE, 0.0, 0.0), timing);
            group.data.content = content.clone();
            group.vm.clone_from(&owner.vm);
            groups.push(group);
        }
    }
    let skipped: Vec<&str> = widest
        .targets
        .iter()
        .zip(&written)
        .filter(|(_, written)| **written)
        .map(|(target, _)| target.name.as_str())
        .collect();
    if !skipped.is_empty() {
        notes.push(format!("not filled, because they have no unallocated space: {}", skipped.join(" ")));
    }
    if groups.is_empty() {
        return Ok(());
    }
    (conditions.tell)(&format!("fill {} targets", groups.len()));
    plan.stages = vec![Stage::new("fill", groups)];
    let one = conditions.bench.run(&plan, false, conditions.observe)?;
    match one.stages.first().map(|stage| &stage.ended) {
        Some(Ended::Failed(error)) => Err(format!("fill the targets: {error}")),
        _ => Ok(()),
    }
}

/// The most that meets a latency, for every workload: doubled until it does not, then halved in between.
fn search(
    experiment: &Experiment,
    of: &Search,
    conditions: &mut Conditions,
    run: &mut ExperimentRun,
) -> Result<(), String> {
    let machines: u64 = experiment.vms.iter().map(|vm| u64::from(vm.count)).sum();
    for workload in &experiment.workloads {
        let mut good: Option<f64> = None;
        let mut bad: Option<f64> = None;
        for _ in 0..SEARCH_POINTS_MAX {
            let Some(value) = next_value(of, good, bad, machines) else { break };
            if interrupted(conditions) {
                run.notes.push("the search was stopped early".to_owned());
                return Ok(());
            }
            let mut chosen =
                Chosen { workload: workload.clone(), vms: None, outstanding: None, target: None };
            let parameter = match of.over {
                Over::Outstanding => Parameter::Outstanding,
                Over::Rate => Parameter::Rate,
            };
            chosen.set(parameter, &toml::Value::Float(value)).map_err(|error| error.to_string())?;
            let parameters = [(parameter.name().to_owned(), format!("{value}"))].into();
            let plan = make(experiment, &chosen, parameters, None).map_err(|error| error.to_string())?;
            (conditions.tell)(&format!("search, {}", plan.cell.label()));
            let one = run_one(experiment, &plan.plan, conditions)?;
            note_failure(&one, &plan.cell, &mut run.notes);
            let latency = percentile_ms(&one, of.percentile);
            let meets = latency.is_some_and(|latency| latency <= of.latency_ms) && !fell_behind(&one);
            *(if meets { &mut good } else { &mut bad }) = Some(value);
            run.cells.push(Cell { runs: vec![one], ..plan.cell });
        }
    }
    Ok(())
}

/// The next value to be tried; nothing when the answer is known.
fn next_value(of: &Search, good: Option<f64>, bad: Option<f64>, machines: u64) -> Option<f64> {
    let step = match of.over {
        Over::Outstanding => machines as f64,
        Over::Rate => 1.0,
    };
    let whole = |value: f64| ((value / step).round() * step).max(step);
    match (good, bad) {
        (None, None) => Some(whole(of.from)),
        (None, Some(_)) => None,
        (Some(good), None) => {
            (good < of.to).then(|| whole((good * 2.0).min(of.to))).filter(|&value| value > good)
        }
        (Some(good), Some(bad)) => {
            let middle = whole((good + bad) / 2.0);
            // Closer than 3 % is closer than two runs are to each other.
            (middle > good && middle < bad && bad / good > 1.03).then_some(middle)
        }
    }
}

fn percentile_ms(run: &Run, percentile: f64) -> Option<f64> {
    let stage = run.stages.first()?;
    stage.total().latency.percentile(percentile / 100.0).map(|ns| ns as f64 / 1e6)
}

/// Whether a rate could not be kept.
pub(super) fn fell_behind(run: &Run) -> bool {
    run.stages
        .iter()
        .any(|stage| stage.findings().iter().any(|finding| finding.kind == measured::FindingKind::Backlog))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(limit: f64, over: Over, machines: u64) -> (Option<f64>, u32) {
        let of = Search { over, percentile: 99.0, latency_ms: 1.0, from: 1.0, to: 1024.0 };
        let (mut good, mut bad, mut count) = (None, None, 0);
        while let Some(value) = next_value(&of, good, bad, machines) {
            count += 1;
            assert!(count <= SEARCH_POINTS_MAX, "a search ends");
            *(if value <= limit { &mut good } else { &mut bad }) = Some(value);
        }
        (good, count)
    }

    #[test]
    fn a_search_finds_the_largest_value_that_holds() {
        assert_eq!(searched(37.0, Over::Outstanding, 1).0, Some(37.0));
        assert_eq!(searched(2000.0, Over::Outstanding, 1).0, Some(1024.0));
        assert_eq!(searched(0.5, Over::Outstanding, 1), (None, 1));
        let four = searched(100.0, Over::Outstanding, 4).0.expect("an answer");
        assert!(four <= 100.0 && four > 96.0 && four % 4.0 == 0.0, "{four}");
        let rate = searched(700.0, Over::Rate, 4).0.expect("an answer");
        assert!((675.0..=700.0).contains(&rate), "{rate}");
    }
}
