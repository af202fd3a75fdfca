//! Sweeps over outstanding I/Os, and over VMs.

use statistics::knee::{Objective, SweepPoint, sweep};
use statistics::scaling::{ScalePoint, linearity, scalability};
use statistics::words;

use super::finding::{Code, Finding, Severity};
use super::rows::{Row, distinct, grouped};

/// Fewer different numbers are no sweep.
const POINTS_MIN: usize = 4;

pub(super) fn audit(rows: &[Row<'_>], objective: Option<Objective>, findings: &mut Vec<Finding>) {
    for ((tool, pattern, vms), rows) in grouped(rows, |row| (row.tool, row.pattern(), row.vms)) {
        let points: Vec<SweepPoint> = rows
            .iter()
            .filter_map(|row| {
                Some(SweepPoint {
                    outstanding: row.claimed?,
                    throughput: row.iops,
                    latency_s: row.latency_s?,
                    percentile_s: row.run.total().latencies.percentile_s(0.99),
                })
            })
            .collect();
        if distinct(points.iter().map(|point| point.outstanding)) < POINTS_MIN {
            continue;
        }
        let mut name = vec![tool.to_string()];
        name.extend((!pattern.is_empty()).then_some(pattern));
        name.extend((vms > 1).then(|| format!("{vms} VMs")));
        let (severity, sentence) = match sweep(&points, objective) {
            Ok(found) => {
                (Severity::Information, format!("{found}. Estimators: {}", found.estimators().join("; ")))
            }
            Err(error) => (Severity::Warning, error.to_string()),
        };
        let sentence = format!("{}, {}: {sentence}", name.join(", "), words::counted(points.len(), "point"));
        findings.push(Finding { code: Code::SweetSpot, severity, sentence, rows: vec![] });
    }
}

/// How throughput grows with VMs, where each has the same to do.
pub(super) fn scale_out(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    for ((tool, pattern, _), rows) in
        grouped(rows, |row| (row.tool, row.pattern(), row.claimed_per_vm().map(f64::to_bits)))
    {
        let points: Vec<ScalePoint> =
            rows.iter().map(|row| ScalePoint { members: f64::from(row.vms), throughput: row.iops }).collect();
        if distinct(points.iter().map(|point| point.members)) < POINTS_MIN {
            continue;
        }
        let linear = linearity(&points);
        let Some((most, share)) = linear.last() else { continue };
        let best = points.iter().map(|point| point.throughput).fold(0.0, f64::max);
        let mut name = vec![tool.to_string()];
        name.extend((!pattern.is_empty()).then_some(pattern));
        // The first that is within 5 % of the best: beyond it, more VMs only share.
        let first = points.iter().filter(|point| point.throughput >= 0.95 * best).map(|point| point.members);
        let first = first.fold(f64::INFINITY, f64::min);
        let law = match scalability(&points) {
            Ok(law) => law.to_string(),
            Err(error) => error.to_string(),
        };
        let sentence = format!(
            "{}: peak {} IOPS, within 5 % of it from {} on; {} reach {} of linear scaling; {law}",
            name.join(", "),
            words::rate(best),
            words::counted(first as u32, "VM"),
            words::counted(*most as u32, "VM"),
            words::percent(*share)
        );
        findings.push(Finding {
            code: Code::ScaleOut,
            severity: Severity::Information,
            sentence,
            rows: vec![],
        });
    }
}
