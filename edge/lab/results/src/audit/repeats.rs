//! Whether there are repeats at all, how far they differ, and how steady each run was.

use statistics::fairness::fairness as fairness_of;
use statistics::samples::{NOISE_WITHIN_MAX, doubts, mean_of_runs};
use statistics::words;

use super::rows::{Row, grouped};
use super::{Code, Finding, RowName, Severity};
use crate::model::{Direction, Tool};

/// Tools whose results bear the names of their jobs.
const NAMING: [Tool; 3] = [Tool::Fio, Tool::Vdbench, Tool::Iometer];

pub(super) fn audit(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    let cells = grouped(rows, |row| {
        let job = &row.run.job;
        // Jobs that have names are told apart by them, and others where nothing else tells. The rows of a table are named by their run.
        let unnamed = job.pattern.is_none() && job.block_bytes.is_none();
        let label = if (row.run.tool.is_none() && NAMING.contains(&row.tool) && row.run.job.pattern.is_none())
            || unnamed
        {
            row.run.label.clone()
        } else {
            String::new()
        };
        let outstanding = row.claimed.map(f64::to_bits);
        (row.tool, row.pattern(), row.vms, job.threads, job.depth, outstanding, label)
    });
    let once = cells.values().filter(|runs| runs.len() == 1).count();
    if once > 0 {
        let (severity, which) = match (once, cells.len()) {
            (1, 1) => (Severity::Information, "there is one run: it supports".to_owned()),
            (once, all) if once == all => {
                (Severity::Warning, format!("all {all} cells are one run each: they support"))
            }
            (once, all) => {
                (Severity::Warning, format!("{once} of {all} cells are one run each: they support"))
            }
        };
        let sentence = format!(
            "{which} no claim of a gain or a loss, as nobody knows how far two runs of the same cell differ; three runs of each are \
             the least, five are better"
        );
        let rows = rows.first().map(|row| RowName::of_source(&row.set.source)).into_iter().collect();
        findings.push(Finding { code: Code::OneRun, severity, sentence, rows });
    }
    for runs in cells.values().filter(|runs| runs.len() > 1) {
        let figures: Vec<f64> = runs.iter().map(|row| row.iops).collect();
        let Some(mean) = mean_of_runs(&figures, 0.95).filter(|mean| mean.is_noisy()) else { continue };
        let variation = words::percent(mean.variation.unwrap_or(0.0));
        let sentence = format!(
            "{} runs of one cell vary by {variation} of their mean (5 % is the limit): more runs before any claim",
            runs.len()
        );
        let rows = runs.iter().map(|row| row.name(Some(format!("{} IOPS", words::rate(row.iops))))).collect();
        findings.push(Finding { code: Code::NoisyRuns, severity: Severity::Warning, sentence, rows });
    }
}

/// How evenly the VMs or workers of a run were served, where each one's figures are known.
pub(super) fn fairness(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    for row in rows {
        let Some(found) = fairness_of(&row.run.workers_iops).filter(|of| of.is_unequal()) else { continue };
        let sentence = format!("its {} workers or VMs were served unequally: {found}", found.members);
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
                "IOPS vary by {} of their mean from sample to sample ({} is the limit): the mean hides what happened",
                words::percent(noise),
                words::percent(NOISE_WITHIN_MAX)
            );
            let rows = vec![row.name(None)];
            findings.push(Finding { code: Code::NoisyWithin, severity: Severity::Warning, sentence, rows });
        }
        if let Some(drift) = doubts.drift {
            let sentence = format!(
                "IOPS {} by {} over the run: it was not steady, and its mean depends on how long it lasted",
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
    let mut by_begin: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
    for (interval, iops) in intervals.iter().filter_map(|of| Some((of, of.iops?))) {
        *by_begin.entry((interval.from_s * 1e3) as u64).or_default() += iops;
    }
    by_begin.into_values().collect()
}
