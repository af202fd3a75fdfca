//! Which writes of a plan are verified, in which records, and how they are read again.

use crate::generator::ledger::Ledger;
use crate::generator::stage::StageError;
use crate::target::Target;
use measured::{Ended, StageRun, Verified};
use plan::{
    Amount, Depth, Extent, Group, Length, Pattern, Plan, Span, Stage, Timing, Verify, VerifyWhen, Workers,
};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are read at a time where they divide what is to be read.
const READ_SIZE: u64 = 256 << 10;
/// I/Os outstanding while everything is read again.
const READ_DEPTH: u32 = 16;

/// Records for the targets that verified groups use, in memory or in a folder; empty if there is none.
///
/// # Errors
/// When a record cannot be made, or the units of a plan cannot be verified.
pub fn records(
    plan: &Plan,
    targets: &[Target],
    folder: Option<&Path>,
) -> Result<Vec<Option<Arc<Ledger>>>, StageError> {
    let mut records = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let units = (plan.stages.iter().flat_map(|stage| &stage.groups))
            .filter(|group| group.targets.contains(&index))
            .filter_map(|group| group.verify.as_ref().map(|verify| unit_of(group, verify)));
        let Some(unit) = units.min().filter(|_| !target.is_absent()) else {
            records.push(None);
            continue;
        };
        records.push(Some(Arc::new(record(target, unit, index, folder)?)));
    }
    let any = records.iter().any(Option::is_some);
    Ok(if any { records } else { Vec::new() })
}

fn record(target: &Target, unit: u64, index: usize, folder: Option<&Path>) -> Result<Ledger, StageError> {
    if !unit.is_power_of_two() || unit < 512 {
        return Err(StageError::Verification {
            target: target.name.clone(),
            reason: format!(
                "units of {unit} bytes cannot be verified: the block size must be a power of two of at least 512 bytes"
            ),
        });
    }
    let seed = crate::clock::now() ^ u64::from(std::process::id()) << 32;
    let made = match folder {
        None => Ledger::in_memory(target.size, unit, seed),
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| Ledger::in_file(&record_path(folder, index), target.size, unit, seed)),
    };
    made.map_err(|error| StageError::Verification {
        target: target.name.clone(),
        reason: format!("create the record of writes: {error}"),
    })
}

/// The record of the plan's target of this index.
pub fn record_path(folder: &Path, index: usize) -> std::path::PathBuf {
    folder.join(format!("target-{}.record", index + 1))
}

fn unit_of(group: &Group, verify: &Verify) -> u64 {
    verify.interval.unwrap_or_else(|| group.pattern.size_min())
}

/// A stage that reads again what the verified groups of `stage` may have written, if they are to be read at the end.
pub fn reading(stage: &Stage, records: &[Option<Arc<Ledger>>], targets: &[Target]) -> Option<Stage> {
    let groups: Vec<Group> = (stage.groups.iter())
        .filter(|group| group.pattern.writes())
        .filter(|group| group.verify.as_ref().is_some_and(|verify| is_read_again(verify.when)))
        .flat_map(|group| {
            let spans = group.targets.iter().filter_map(|&target| {
                let record = records.get(target)?.as_ref()?;
                Some(read_group(&group.name, target, whole_span(group, targets[target].size), record.unit()))
            });
            spans.collect::<Vec<Group>>()
        })
        .collect();
    (!groups.is_empty()).then(|| Stage::new("verify", groups))
}

fn is_read_again(when: VerifyWhen) -> bool {
    match when {
        VerifyWhen::After | VerifyWhen::Backlog(_) => true,
        VerifyWhen::Later | VerifyWhen::Only => false,
    }
}

/// What all workers of a group may have written to a target: first and last byte.
fn whole_span(group: &Group, size: u64) -> (u64, u64) {
    let workers = u32::try_from(group.worker_count()).unwrap_or(u32::MAX);
    let first = group.pattern.span.of(0, size);
    let last = group.pattern.span.of(workers.saturating_sub(1), size);
    (first.0, (first.0 + first.1).max(last.0 + last.1))
}

/// A group that reads a span once, in sequence, unit by unit or more.
pub fn read_group(name: &str, target: usize, (from, to): (u64, u64), unit: u64) -> Group {
    let from = from / unit * unit;
    let length = (to - from) / unit * unit;
    let size = if length.is_multiple_of(READ_SIZE) && READ_SIZE >= unit { READ_SIZE } else { unit };
    let timing = Timing { length: Length::Amount(Amount::Passes(1.0)), ..Timing::seconds(1) };
    let mut group = Group::new(name, target, READ_DEPTH, Pattern::simple(size, 100.0, 0.0), timing);
    group.pattern.span =
        Span { offset: Extent::Bytes(from), length: Some(Extent::Bytes(length)), ..Span::default() };
    group.workers = Workers::Together(1);
    group.depth = Depth::PerWorker(READ_DEPTH);
    group.verify = Some(Verify { when: VerifyWhen::Later, interval: None, fatal: false });
    group
}

/// Adds what reading again found to what the stage measured.
pub fn add(run: &mut StageRun, read: &StageRun) {
    for group in &mut run.groups {
        for again in read.groups.iter().filter(|again| again.name == group.name) {
            let found = again.verified.unwrap_or_default();
            let sum = group.verified.get_or_insert_with(Verified::default);
            sum.compared += found.compared;
            sum.wrong += found.wrong;
        }
    }
    if run.ended == Ended::Done && read.ended != Ended::Done {
        run.ended = read.ended.clone();
    }
}

/// A verification that compared nothing is no verification: its stage has failed, as a job of fio would that finds no header.
pub fn judge(stage: &Stage, run: &mut StageRun) {
    if !matches!(run.ended, Ended::Done | Ended::Steady) {
        return;
    }
    let verifies = |group: &&Group| group.verify.as_ref().is_some_and(|of| of.when != VerifyWhen::Later);
    let compared = |name: &str| {
        let runs = run.groups.iter().filter(|group| group.name == name);
        runs.filter_map(|group| group.verified).map(|verified| verified.compared).sum::<u64>()
    };
    let Some(group) = stage.groups.iter().filter(verifies).find(|group| compared(&group.name) == 0) else {
        return;
    };
    let unit = group.verify.as_ref().map_or(0, |verify| unit_of(group, verify));
    let why = match group.pattern.writes() {
        true => "none of the writes completed".to_owned(),
        false => format!("no completed read contained a whole unit of {unit} bytes"),
    };
    let text = format!(
        "{}: the verification compared nothing: {why}; run longer, or set verify_interval to the unit that the data was written with",
        group.name
    );
    run.ended = Ended::Failed(text);
}
