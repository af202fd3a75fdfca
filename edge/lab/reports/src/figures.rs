//! The figures that people look for, from what was measured.

use measured::{GroupRun, Measured, StageRun};
use statistics::{Histogram, words};

/// The percentiles of every table: share and name.
pub const PERCENTILES: [(f64, &str); 6] =
    [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// With fewer values beyond it a percentile means little.
const BEYOND_MIN: f64 = 10.0;

/// Names of operations, in the order of `GroupRun::operations`.
pub const OPERATIONS: [&str; 3] = ["read", "write", "trim"];

/// One row of a table: a group's reads, or a whole stage.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which group; `all` for the stage.
    pub group: String,
    /// `read`, `write`, `trim` or `all`.
    pub operation: &'static str,
    /// I/Os that were to be outstanding.
    pub outstanding: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// What was measured.
    pub measured: Measured,
}

/// The rows of a stage: each group's operations, then all together where there are several rows.
pub fn rows(stage: &StageRun) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in &stage.groups {
        rows.extend(operation_rows(group));
    }
    if rows.len() != 1 {
        rows.push(total(stage));
    }
    rows
}

/// The operations that a group did, a row each.
pub fn operation_rows(group: &GroupRun) -> impl Iterator<Item = Row> {
    let done = OPERATIONS.into_iter().zip(&group.operations).filter(|(_, of)| of.ios + of.errors > 0);
    done.map(|(operation, of)| Row {
        group: group.name.clone(),
        operation,
        outstanding: group.outstanding,
        iops: per_second(of.ios, group.seconds),
        bytes_per_second: per_second(of.bytes, group.seconds),
        measured: of.clone(),
    })
}

/// A stage as one row.
pub fn total(stage: &StageRun) -> Row {
    Row {
        group: "all".to_owned(),
        operation: "all",
        outstanding: stage.outstanding(),
        iops: stage.iops(),
        bytes_per_second: stage.bytes_per_second(),
        measured: stage.total(),
    }
}

/// A stage in words: `4k random read: 67.8 k IOPS, 265 MiB/s, mean 0.47 ms, p99 1.2 ms with 32 outstanding`. Where it has several
/// groups, a few of them follow. `place` is what the stage is called.
pub fn headlines(place: &str, stage: &StageRun) -> Vec<String> {
    const GROUPS_TOLD_MAX: usize = 4;
    match stage.groups.len() {
        0 | 1 => vec![headline(place, &total(stage))],
        count => {
            let mut lines = vec![headline(&format!("{place}, {count} groups together"), &total(stage))];
            let told = stage.groups.iter().filter(|_| count <= GROUPS_TOLD_MAX);
            lines.extend(told.map(|group| headline(&group.name, &group_total(group))));
            lines
        }
    }
}

fn headline(name: &str, of: &Row) -> String {
    let time = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), duration);
    format!(
        "{name}: {} IOPS, {} MiB/s, mean {}, p99 {} with {} outstanding",
        words::rate(of.iops),
        mebibytes(of.bytes_per_second),
        time(of.measured.latency.mean_ns()),
        time(of.measured.latency.percentile(0.99).map(|ns| ns as f64)),
        of.outstanding,
    )
}

/// A group's reads, writes and trims as one row.
pub fn group_total(group: &GroupRun) -> Row {
    Row {
        group: group.name.clone(),
        operation: "all",
        outstanding: group.outstanding,
        iops: group.iops(),
        bytes_per_second: group.bytes_per_second(),
        measured: group.total(),
    }
}

/// Whether a percentile has enough values beyond it to mean something.
pub fn means_something(histogram: &Histogram, share: f64) -> bool {
    histogram.count() as f64 * (1.0 - share) >= BEYOND_MIN
}

/// Nanoseconds with three digits: `1.23 µs`, `45.6 ms`, `2.01 s`.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = match value {
        value if value >= 100.0 || unit == "ns" => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// Bytes as MiB with three digits.
pub fn mebibytes(bytes: f64) -> String {
    words::number(bytes / f64::from(1 << 20))
}

/// A count by time; 0 without time.
pub fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Milliseconds since 1970 as `2026-11-22 01:41:46 UTC`.
pub fn moment(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's days-to-civil: years begin in March, so that the leap day is a year's last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        // By `date -u -d @…`.
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (1_795_311_706, "2026-11-22 01:41:46 UTC"),
        ] {
            assert_eq!(moment(seconds * 1000), expected);
        }
    }

    #[test]
    fn durations_have_three_digits() {
        for (ns, expected) in
            [(5.0, "5 ns"), (1_234.0, "1.23 µs"), (45_600_000.0, "45.6 ms"), (2_010_000_000.0, "2.01 s")]
        {
            assert_eq!(duration(ns), expected);
        }
    }
}
