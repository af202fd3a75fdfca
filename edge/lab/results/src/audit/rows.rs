//! The rows that the audit looks at, and how they are grouped.

use super::claims::Claims;
use super::finding::RowName;
use crate::model::{ResultSet, Run, Tool};
use crate::pattern;
use statistics::words;
use std::collections::BTreeMap;

/// A run with what every check needs of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) set: &'a ResultSet,
    pub(super) run: &'a Run,
    pub(super) tool: Tool,
    /// VMs; one when nobody says.
    pub(super) vms: u32,
    /// Above zero.
    pub(super) iops: f64,
    /// Above zero, in seconds.
    pub(super) latency_s: Option<f64>,
    /// Half of the last digit that the latency was printed with, in seconds: 0.26 ms may be 0.255.
    pub(super) rounding_s: f64,
    /// Outstanding I/Os in total, by claim or job.
    pub(super) claimed: Option<f64>,
}

impl Row<'_> {
    pub(super) fn name(&self, figure: Option<String>) -> RowName {
        RowName {
            source: self.set.source.clone(),
            line: self.run.line,
            label: self.run.label.clone(),
            figure,
        }
    }

    /// What was outstanding on average, by Little's law.
    pub(super) fn implied(&self) -> Option<f64> {
        Some(self.iops * self.latency_s?)
    }

    pub(super) fn claimed_per_vm(&self) -> Option<f64> {
        Some(self.claimed? / f64::from(self.vms))
    }

    /// What was done, in words that are equal for equal work: all that the job says but its depth and its VMs.
    pub(super) fn pattern(&self) -> String {
        let job = &self.run.job;
        // What the words say already is not said again; what contradicts them is.
        let worded = job.pattern.as_deref().map(pattern::job).unwrap_or_default();
        let part = |value: Option<f64>, said: Option<f64>, of: &str| {
            value.filter(|_| value != said).map(|share| format!("{} {of}", words::percent(share)))
        };
        let mut parts: Vec<String> = job.pattern.iter().cloned().collect();
        let bytes = job.block_bytes.filter(|_| job.block_bytes != worded.block_bytes);
        parts.extend(bytes.map(|bytes| format!("{bytes} B")));
        parts.extend(part(job.read_share, worded.read_share, "read"));
        parts.extend(part(job.random_share, worded.random_share, "random"));
        parts.extend(job.rate.map(|rate| format!("at {} IOPS", words::number(rate))));
        parts.extend(job.target.iter().map(|target| format!("on {target}")));
        parts.extend(job.others.iter().cloned());
        parts.join(" ")
    }
}

/// The rows of a set that have figures.
pub(super) fn rows<'a>(set: &'a ResultSet, claims: &Claims) -> Vec<Row<'a>> {
    let positive = |value: &f64| value.is_finite() && *value > 0.0;
    set.runs
        .iter()
        .filter_map(|run| {
            let total = run.total();
            let vms = run.vms.unwrap_or(1).max(1);
            let claimed = claims.outstanding_per_vm.map(|each| each * f64::from(vms)).or(run.job.outstanding);
            // A limited rate holds as much outstanding as its latency needs.
            let claimed = claimed.filter(|_| run.job.rate.is_none());
            Some(Row {
                set,
                run,
                tool: run.tool_in(set),
                vms,
                iops: total.iops.filter(positive)?,
                latency_s: total.latency_s.filter(positive),
                rounding_s: total.steps.latency_s / 2.0,
                claimed: claimed.filter(positive),
            })
        })
        .collect()
}

/// Rows by a key, in its order.
pub(super) fn grouped<'a, 'r, K: Ord>(
    rows: &'r [Row<'a>],
    key: impl Fn(&Row<'a>) -> K,
) -> BTreeMap<K, Vec<&'r Row<'a>>> {
    let mut groups: BTreeMap<K, Vec<&Row<'a>>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

/// How many different values there are.
pub(super) fn distinct(values: impl Iterator<Item = f64>) -> usize {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values.len()
}
