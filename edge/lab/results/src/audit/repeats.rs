//! Whether there are repeats at all, how far they differ, and how steady each run was.

use statistics::fairness::fairness as fairness_of;
use std::collections::BTreeMap;

use statistics::doubts::{NOISE_WITHIN_MAX, doubts};
use statistics::samples::{NOISE_BETWEEN_MAX, mean_of_runs};
use statistics::words;

use super::finding::{Code, Finding, RowName, Severity};
use super::rows::Row;
use crate::model::{Direction, Tool};

/// Tools whose results bear the names of their jobs.
const NAMING: [Tool; 3] = [Tool::Fio, Tool::Vdbench, Tool::Iometer];

/// What makes runs repeats of one cell: the tool, the pattern, VMs, threads, depth, outstanding I/Os, and the job's name where only
/// that tells cells apart.
type Key = (Tool, String, u32, Option<u32>, Option<u32>, Option<u64>, String);

/// The runs of each cell, of all sources: repeats are often given as a file each.
#[derive(Debug, Default)]
pub(super) struct Cells(BTreeMap<Key, Vec<(RowName, f64)>>);

impl Cells {
    /// Adds the rows of a set.
    pub(super) fn add(&mut self, rows: &[Row<'_>]) {
        for row in rows {
            let figure = format!("{} IOPS", words::rate(row.iops));
            self.0.entry(key(row)).or_default().push((row.name(Some(figure)), row.iops));
        }
    }

    /// Whether there are repeats at all, and how far they differ.
    pub(super) fn judge(self, findings: &mut Vec<Finding>) {
        let once: Vec<&RowName> =
            self.0.values().filter(|runs| runs.len() == 1).map(|runs| &runs[0].0).collect();
        findings.extend(unrepeated(&once, self.0.len()));
        for runs in self.0.into_values().filter(|runs| runs.len() > 1) {
            let figures: Vec<f64> = runs.iter().map(|(_, iops)| *iops).collect();
            let Some(mean) = mean_of_runs(&figures, 0.95).filter(|mean| mean.is_noisy()) else { continue };
            let sentence = format!(
                "{} runs of one workload vary by {} of their mean (limit {}). Repeat them before you claim a gain or a loss; compare runs \
                 of different systems with `lab compare`",
                runs.len(),
                words::percent(mean.variation.unwrap_or(0.0)),
                words::percent(NOISE_BETWEEN_MAX)
            );
            let rows = runs.into_iter().map(|(name, _)| name).collect();
            findings.push(Finding { code: Code::NoisyRuns, severity: Severity::Warning, sentence, rows });
        }
    }
}

fn key(row: &Row<'_>) -> Key {
    let job = &row.run.job;
    // Jobs that have names are told apart by them, and others where nothing else tells. The rows of a table are named by their run.
    let is_unnamed = job.pattern.is_none() && job.block_bytes.is_none();
    let is_named = row.run.tool.is_none() && NAMING.contains(&row.tool) && job.pattern.is_none();
    let label = if is_named || is_unnamed { row.run.label.clone() } else { String::new() };
    (row.tool, row.pattern(), row.vms, job.threads, job.depth, row.claimed.map(f64::to_bits), label)
}

/// Cells with one run each, `once` of `all`.
fn unrepeated(once: &[&RowName], all: usize) -> Option<Finding> {
    let (severity, which) = match (once.len(), all) {
        (0, _) => return None,
        (1, 1) => (Severity::Information, "there is one run".to_owned()),
        (count, all) if count == all => (Severity::Warning, format!("all {all} cells have one run each")),
        (1, all) => (Severity::Warning, format!("1 of {all} cells has one run")),
        (count, all) => (Severity::Warning, format!("{count} of {all} cells have one run each")),
    };
    let sentence = format!(
        "{which}. How far runs of the same cell differ is unknown, so no gain or loss can be claimed. Run each cell at least 3 times, \
         better 5 times"
    );
    let mut sources: Vec<&str> = once.iter().map(|row| row.source.as_str()).collect();
    sources.dedup();
    let rows = sources.into_iter().map(RowName::of_source).collect();
    Some(Finding { code: Code::OneRun, severity, sentence, rows })
}

/// How evenly the VMs or workers of a run were served, where each one's figures are known.
pub(super) fn fairness(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    for row in rows {
        let Some(found) = fairness_of(&row.run.workers_iops).filter(|of| of.is_unequal()) else { continue };
        let sentence = format!("the {} workers or VMs were served unequally: {found}", found.members);
        let rows = vec![row.name(None)];
        findings.push(Finding { code: Code::UnequalVms, severity: Severity::Warning, sentence, rows });
    }
}

/// The samples within each run. Those of our own were judged with the run, which knows when its machines began and stopped by plan.
pub(super) fn within(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    for row in rows.iter().filter(|row| row.tool != Tool::Drystone) {
        let doubts = doubts(&samples(row));
        if let Some(noise) = doubts.noise {
            let sentence = format!(
                "IOPS vary by {} of their mean from sample to sample (limit {}): the mean hides these changes",
                words::percent(noise),
                words::percent(NOISE_WITHIN_MAX)
            );
            let rows = vec![row.name(None)];
            findings.push(Finding { code: Code::NoisyWithin, severity: Severity::Warning, sentence, rows });
        }
        if let Some(drift) = doubts.drift {
            let sentence = format!(
                "IOPS {} by {} over the run: it was not in steady state, and its mean depends on its length",
                if drift > 0.0 { "rise" } else { "fall" },
                words::percent(drift.abs())
            );
            let rows = vec![row.name(None)];
            findings.push(Finding { code: Code::Drift, severity: Severity::Warning, sentence, rows });
        }
    }
}

/// IOPS over time, of all directions together.
fn samples(row: &Row<'_>) -> Vec<f64> {
    let intervals = &row.run.intervals;
    let totals: Vec<f64> =
        intervals.iter().filter(|of| of.direction == Direction::Total).filter_map(|of| of.iops).collect();
    if !totals.is_empty() {
        return totals;
    }
    // Directions are logged beside each other: those that begin at the same time are added.
    let mut by_begin: BTreeMap<u64, f64> = BTreeMap::new();
    for (interval, iops) in intervals.iter().filter_map(|of| Some((of, of.iops?))) {
        *by_begin.entry((interval.from_s * 1e3) as u64).or_default() += iops;
    }
    by_begin.into_values().collect()
}
