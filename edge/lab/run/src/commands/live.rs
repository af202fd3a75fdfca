//! A run's figures while it runs, for Prometheus to scrape: counters and histograms of every group, in its text format.

use crate::generator::stage::Second;
use plan::Plan;
use statistics::Histogram;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};

/// Upper bounds of the buckets that are told, in ns: 10 µs to 10 s in steps of 1, 2, 5.
const BOUNDS_NS: &[u64] = &[
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];
const OPERATIONS: [&str; 3] = ["read", "write", "trim"];

/// What was measured so far.
#[derive(Default)]
pub struct Live {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: String,
    groups: Vec<String>,
    totals: BTreeMap<(String, String, usize), Totals>,
}

#[derive(Default)]
struct Totals {
    ios: u64,
    bytes: u64,
    errors: u64,
    latency: Histogram,
}

impl Live {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock held")
    }

    /// A stage begins. A repeat adds to the same counters.
    pub fn begins(&self, plan: &Plan, stage: usize) {
        let of = &plan.stages[stage];
        let mut state = self.state();
        state.stage.clone_from(&of.name);
        state.groups = of.groups.iter().map(|group| group.name.clone()).collect();
    }

    /// A second of a thread of the stage is over.
    pub fn second(&self, second: &Second) {
        let mut state = self.state();
        let (stage, group) =
            (state.stage.clone(), state.groups.get(second.group).cloned().unwrap_or_default());
        let interval = &second.interval;
        for operation in 0..OPERATIONS.len() {
            let latency = &interval.latency[operation];
            if interval.ios[operation] + interval.errors[operation] + latency.count() == 0 {
                continue;
            }
            let totals = state.totals.entry((stage.clone(), group.clone(), operation)).or_default();
            totals.ios += interval.ios[operation];
            totals.bytes += interval.bytes[operation];
            totals.errors += interval.errors[operation];
            totals.latency.merge(&latency.histogram());
        }
    }

    /// All of it in Prometheus' text format.
    pub fn text(&self) -> String {
        let state = self.state();
        let mut text = String::new();
        let mut counter = |name: &str, help: &str, of: &dyn Fn(&Totals) -> u64| {
            head(&mut text, name, help, "counter");
            for (key, totals) in &state.totals {
                put(&mut text, name, key, "", of(totals));
            }
        };
        counter("drystone_lab_ios_total", "I/Os completed in the measured window", &|of| of.ios);
        counter("drystone_lab_bytes_total", "Bytes of these I/Os", &|of| of.bytes);
        counter("drystone_lab_errors_total", "I/Os that failed", &|of| of.errors);
        const LATENCY: &str = "drystone_lab_latency_seconds";
        head(&mut text, LATENCY, "Latency, counted from the time at which an I/O was due", "histogram");
        for (key, totals) in &state.totals {
            let mut buckets = totals.latency.buckets().peekable();
            let mut below = 0;
            for &bound in BOUNDS_NS {
                while let Some(bucket) = buckets.next_if(|bucket| bucket.to_ns <= bound + 1) {
                    below += bucket.count;
                }
                let le = format!(",le=\"{}\"", bound as f64 / 1e9);
                put(&mut text, &format!("{LATENCY}_bucket"), key, &le, below);
            }
            let count = totals.latency.count();
            put(&mut text, &format!("{LATENCY}_bucket"), key, ",le=\"+Inf\"", count);
            let sum = totals.latency.mean_ns().unwrap_or(0.0) * count as f64 / 1e9;
            put(&mut text, &format!("{LATENCY}_sum"), key, "", sum);
            put(&mut text, &format!("{LATENCY}_count"), key, "", count);
        }
        text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("strings take all");
}

fn put(
    text: &mut String,
    name: &str,
    (stage, group, operation): &(String, String, usize),
    more: &str,
    value: impl std::fmt::Display,
) {
    let quoted = |label: &str| label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (stage, group) = (quoted(stage), quoted(group));
    let operation = OPERATIONS[*operation];
    writeln!(text, "{name}{{stage=\"{stage}\",group=\"{group}\",operation=\"{operation}\"{more}}} {value}")
        .expect("strings take all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::{Compact, Interval};
    use plan::{Group, Pattern, Stage, Timing};

    #[test]
    fn counters_grow_over_seconds_and_buckets_are_cumulative() {
        let group = Group::new("a \"b\"", 0, 1, Pattern::simple(4096, 100.0, 0.0), Timing::seconds(1));
        let plan = Plan { stages: vec![Stage::new("s", vec![group])], ..Plan::default() };
        let live = Live::default();
        live.begins(&plan, 0);
        let mut latency = Histogram::default();
        latency.record_many(150_000, 3);
        latency.record(20_000_000_000);
        let none = || Compact::from(&Histogram::default());
        let interval = Interval {
            at: 0.0,
            ios: [4, 0, 0],
            latency: [Compact::from(&latency), none(), none()],
            bytes: [16_384, 0, 0],
            errors: [1, 0, 0],
        };
        live.second(&Second { group: 0, interval: interval.clone() });
        live.second(&Second { group: 0, interval });
        let text = live.text();
        let labels = "{stage=\"s\",group=\"a \\\"b\\\"\",operation=\"read\"";
        for expected in [
            format!("drystone_lab_ios_total{labels}}} 8\n"),
            format!("drystone_lab_errors_total{labels}}} 2\n"),
            format!("drystone_lab_latency_seconds_bucket{labels},le=\"0.0001\"}} 0\n"),
            format!("drystone_lab_latency_seconds_bucket{labels},le=\"0.0002\"}} 6\n"),
            format!("drystone_lab_latency_seconds_bucket{labels},le=\"10\"}} 6\n"),
            format!("drystone_lab_latency_seconds_bucket{labels},le=\"+Inf\"}} 8\n"),
        ] {
            assert!(text.contains(&expected), "{expected} is not in {text}");
        }
    }
}
