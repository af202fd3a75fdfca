//! The rows that the audit looks at, and how they are grouped.

use super::{Claims, RowName};
use crate::model::{ResultSet, Run, Tool};
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

    /// What was done, in words that are equal for equal work.
    pub(super) fn pattern(&self) -> String {
        let job = &self.run.job;
        if let Some(pattern) = &job.pattern {
            return pattern.clone();
        }
        let part = |value: Option<f64>, of: &str| value.map(|share| format!("{:.0} % {of}", share * 100.0));
        let mut parts: Vec<String> = job.block_bytes.map(|bytes| format!("{bytes} B")).into_iter().collect();
        parts.extend(part(job.read_share, "read"));
        parts.extend(part(job.random_share, "random"));
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
            Some(Row {
                set,
                run,
                tool: run.tool_in(set),
                vms,
                iops: total.iops.filter(positive)?,
                latency_s: total.latency_s.filter(positive),
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

/// Half of the last digit that the set's latencies are printed with, in seconds: a latency of 0.26 ms may be 0.255.
pub(super) fn rounding_s(rows: &[Row<'_>]) -> f64 {
    const DIGITS_MAX: i32 = 6;
    let printed_with = |digits: &i32| {
        let scale = 10f64.powi(*digits);
        rows.iter().filter_map(|row| row.latency_s).all(|latency| {
            let value = latency * 1e3 * scale;
            (value - value.round()).abs() < 1e-6 * value.max(1.0)
        })
    };
    (0..DIGITS_MAX).find(printed_with).map_or(0.0, |digits| 0.5e-3 / 10f64.powi(digits))
}

/// How many different values there are.
pub(super) fn distinct(values: impl Iterator<Item = f64>) -> usize {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values.len()
}
