//! What the columns of a table hold, by their names and the units in them.

use crate::model::Direction;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Column {
    Vms,
    Pattern,
    Tool,
    Threads,
    Depth,
    Outstanding,
    Block,
    ReadPercent,
    RandomPercent,
    /// What it ran on: it tells cells apart.
    Target,
    /// I/Os per second that were asked for.
    Rate,
    Iops(Direction),
    /// Throughput of all directions; the bytes of its unit, or `None` for "MB/s", which may be MiB/s.
    Throughput(Option<f64>),
    /// The mean latency, and how many of its unit a second has.
    Latency(Direction, f64),
    /// A percentile (0..=1) of the latency, and how many of its unit a second has.
    Percentile(f64, f64),
    Label,
    /// Which repeat it is, or when it was: it names no cell.
    Repeat,
}

/// Milliseconds in a second.
const MS: f64 = 1e3;

/// The names that a column goes by, in lower case, without its unit and without anything but letters and digits.
const NAMES: &[(&[&str], Column)] = &[
    (&["vms", "vm", "vmcount", "numbervm", "clients", "hosts", "nodes"], Column::Vms),
    (&["pattern", "workload", "test", "profile", "accesspattern", "rw", "mode"], Column::Pattern),
    (&["tool", "generator", "benchmark"], Column::Tool),
    (&["threads", "thread", "workers", "numjobs", "jobs"], Column::Threads),
    (&["queuedepth", "depth", "qd", "iodepth", "outstandingperthread", "oioperthread"], Column::Depth),
    (
        &["outstanding", "outstandingio", "outstandingios", "oio", "toio", "totaloutstanding"],
        Column::Outstanding,
    ),
    (&["blocksize", "bs", "block", "iosize", "xfersize", "size", "bytesio"], Column::Block),
    (&["readpct", "readpercent", "read", "reads", "rdpct", "rwmixread", "readshare"], Column::ReadPercent),
    (&["randompct", "randompercent", "random", "seekpct", "rand", "randompercentage"], Column::RandomPercent),
    (&["target", "lun", "device", "disk", "volume", "datastore", "filename", "file", "sd"], Column::Target),
    (&["iorate", "reqrate", "requestedrate", "targetrate", "rateiops", "offered"], Column::Rate),
    (&["label", "name", "case"], Column::Label),
    (&["run", "repeat", "iteration", "round", "date", "time", "timestamp"], Column::Repeat),
];

const IOPS: &[&str] = &["iops", "ios", "iopersecond", "iopers", "iosec", "iosecond", "iorateactual", "rate"];
const THROUGHPUT: &[&str] = &["bw", "bandwidth", "throughput", "mb", "mib", "kb", "kib", "gb", "gib"];
const LATENCY: &[&str] =
    &["lat", "latency", "latencies", "resp", "response", "responsetime", "resptime", "clat", "svctime"];
/// What stands before or after these names and changes nothing.
const MEANS: &[&str] = &["total", "t", "avg", "average", "mean", "all"];

/// The units that headers name: their bytes, or how many of them a second has. "MB/s" is often MiB/s: the figures themselves tell.
const UNITS: &[(&[&str], Unit)] = &[
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], Unit::Seconds(MS)),
    (&["us", "usec", "usecs", "µs", "μs", "microsecond", "microseconds"], Unit::Seconds(1e6)),
    (&["ns", "nsec", "nanoseconds"], Unit::Seconds(1e9)),
    (&["s", "sec", "secs", "seconds"], Unit::Seconds(1.0)),
    (&["kb/s", "kbps", "kib/s", "kibps", "kbs", "kibs", "kb/sec"], Unit::Bytes(Some(1024.0))),
    (&["mb/s", "mbps", "mbs", "mb/sec", "mbsec"], Unit::Bytes(None)),
    (&["mib/s", "mibps", "mibs", "mib/sec"], Unit::Bytes(Some(1_048_576.0))),
    (&["gib/s", "gibps"], Unit::Bytes(Some(1_073_741_824.0))),
    (&["gb/s", "gbps"], Unit::Bytes(Some(1e9))),
    (&["b/s", "bytes/s", "bytes/sec"], Unit::Bytes(Some(1.0))),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Seconds(f64),
    Bytes(Option<f64>),
}

/// What a column holds by its name; `None` when that is not known.
pub(super) fn column(name: &str) -> Option<Column> {
    let lower = name.trim().to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || "_-()[]{}:".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let unit = words.iter().rev().find_map(|word| unit_of(word));
    let joined =
        |words: &[&str]| -> String { words.concat().chars().filter(|c| c.is_ascii_alphanumeric()).collect() };
    let plain = joined(&words);
    let named = NAMES.iter().find(|(names, _)| names.contains(&plain.as_str())).map(|(_, column)| *column);
    if named.is_some() {
        return named;
    }
    let without: Vec<&str> = words.iter().copied().filter(|word| unit_of(word).is_none()).collect();
    let seconds = match unit {
        Some(Unit::Seconds(seconds)) => seconds,
        Some(Unit::Bytes(_)) | None => MS,
    };
    if let Some(share) = percentile(&without) {
        return Some(Column::Percentile(share, seconds));
    }
    // "mb_s", "Total MB/s" and "TBW" are throughput whatever else is in the name.
    let base = joined(&without);
    let bytes = match unit {
        Some(Unit::Bytes(bytes)) => Some(bytes),
        Some(Unit::Seconds(1.0)) => split_unit(&plain),
        Some(Unit::Seconds(_)) | None => None,
    };
    let (direction, base) = direction(&base);
    if IOPS.contains(&base) {
        return Some(Column::Iops(direction));
    }
    if direction == Direction::Total && (THROUGHPUT.contains(&base) || (base.is_empty() && bytes.is_some())) {
        return Some(Column::Throughput(bytes.flatten()));
    }
    LATENCY.contains(&base).then_some(Column::Latency(direction, seconds))
}

fn unit_of(word: &str) -> Option<Unit> {
    UNITS.iter().find(|(names, _)| names.contains(&word)).map(|(_, unit)| *unit)
}

/// "mb_s" and "throughput MB s": the unit stands in two words.
fn split_unit(plain: &str) -> Option<Option<f64>> {
    let found = UNITS.iter().find_map(|(names, unit)| match unit {
        Unit::Bytes(bytes) if names.iter().any(|name| plain.ends_with(name)) => Some(*bytes),
        Unit::Bytes(_) | Unit::Seconds(_) => None,
    });
    found.or(plain.ends_with("mbs").then_some(None))
}

/// The direction that a name begins or ends with, and the name without it and without what means "in all".
fn direction(base: &str) -> (Direction, &str) {
    let known = |of: &str| IOPS.contains(&of) || THROUGHPUT.contains(&of) || LATENCY.contains(&of);
    if known(base) || base.is_empty() {
        return (Direction::Total, base);
    }
    let sides = [
        (Direction::Read, &["read", "rd", "r"][..]),
        (Direction::Write, &["write", "wr", "w"][..]),
        (Direction::Total, MEANS),
    ];
    for (direction, names) in sides {
        for name in names {
            let rest = base.strip_prefix(name).or_else(|| base.strip_suffix(name));
            let Some(rest) = rest else { continue };
            // "avgreadlat", "readlatavg".
            let rest = MEANS
                .iter()
                .find_map(|mean| {
                    rest.strip_prefix(mean).or_else(|| rest.strip_suffix(mean)).filter(|rest| known(rest))
                })
                .unwrap_or(rest);
            if known(rest) {
                return (direction, rest);
            }
            if direction == Direction::Total
                && let (side @ (Direction::Read | Direction::Write), rest) = self::direction(rest)
            {
                return (side, rest);
            }
        }
    }
    (Direction::Total, base)
}

/// "p99", "p99.9", "99%", "lat p95": of the latency.
fn percentile(words: &[&str]) -> Option<f64> {
    let is_latency = |word: &&&str| LATENCY.contains(*word);
    let others: Vec<&&str> = words.iter().filter(|word| !is_latency(word)).collect();
    let [word] = others.as_slice() else { return None };
    let word = word.strip_suffix("th").unwrap_or(word);
    let number = word.strip_prefix('p').or_else(|| word.strip_suffix('%'))?;
    let percent: f64 = number.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    // 99.9 / 100 is not 0.999 in binary.
    Some((percent * 1e6).round() / 1e8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Read, Total, Write};

    #[test]
    fn columns_are_known_by_the_names_that_people_give_them() {
        for (names, expected) in [
            (&["iops", "IOPS", "TIOPS", "Total IOPS", "I/Os", "avg_iops", "IO/s"][..], Column::Iops(Total)),
            (&["RIOPS", "read_iops", "IOPS (read)", "r_iops"], Column::Iops(Read)),
            (&["WIOPS", "Write IOPS"], Column::Iops(Write)),
            (
                &[
                    "latency_ms",
                    "TLAT",
                    "Avg Lat (ms)",
                    "Latency",
                    "resp time",
                    "mean latency [ms]",
                    "lat_avg_ms",
                ],
                Column::Latency(Total, 1e3),
            ),
            (&["latency_us", "lat (usec)", "Average Latency µs"], Column::Latency(Total, 1e6)),
            (&["RLAT", "Read Latency (ms)", "avg_read_lat_ms"], Column::Latency(Read, 1e3)),
            (&["WLAT (us)"], Column::Latency(Write, 1e6)),
            (
                &["mb_s", "MB/s", "mbps", "TBW", "Throughput MB/s", "bandwidth_mbs", "MB/sec"],
                Column::Throughput(None),
            ),
            (&["MiB/s", "bw_mib/s", "Throughput (MiB/s)"], Column::Throughput(Some(1_048_576.0))),
            (&["BW (KiB/s)", "bw kb/s"], Column::Throughput(Some(1_024.0))),
            (&["p99_ms", "99% (ms)", "lat p99 ms"], Column::Percentile(0.99, 1e3)),
            (&["p99.9 us"], Column::Percentile(0.999, 1e6)),
            (&["seekpct", "Random %"], Column::RandomPercent),
            (&["xfersize", "Block Size"], Column::Block),
            (&["lun", "Target"], Column::Target),
            (&["iorate"], Column::Rate),
        ] {
            for name in names {
                assert_eq!(column(name), Some(expected), "{name}");
            }
        }
        for name in ["mood", "cpu", "p", "total", "", "s", "stddev"] {
            assert_eq!(column(name), None, "{name}");
        }
    }
}
