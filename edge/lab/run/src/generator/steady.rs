//! Whether a stage that ends when it is steady is so by now: fio's rule, judged once a second over all that the stage does.

use measured::Interval;
use plan::{Steady, SteadyOf};
use statistics::steady::{FioCriterion, fio_steady_after};
use std::collections::BTreeMap;

/// A second is judged when another has ended so long after it: threads do not tell at the same time.
const SETTLED: i64 = 2;

/// Watches the seconds of a stage.
#[derive(Debug)]
pub struct Judge {
    rule: Steady,
    /// By second since the stage began to count.
    seconds: BTreeMap<i64, Sum>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    ios: u64,
    bytes: u64,
    latencies: u64,
    latency_ns: u64,
}

impl Judge {
    /// By this rule.
    pub fn new(rule: Steady) -> Judge {
        Judge { rule, seconds: BTreeMap::new() }
    }

    /// Takes a second of one thread of one group.
    pub fn take(&mut self, interval: &Interval) {
        if interval.at < 0.0 {
            return;
        }
        let sum = self.seconds.entry(interval.at as i64).or_default();
        sum.ios += interval.completed();
        for (latency, bytes) in interval.latency.iter().zip(interval.bytes) {
            sum.latencies += latency.count();
            sum.latency_ns = sum.latency_ns.saturating_add(latency.sum_ns());
            sum.bytes += bytes;
        }
    }

    /// Whether the last seconds, as many as the rule's window has, are steady.
    pub fn is_steady(&self) -> bool {
        let window = self.rule.window.as_secs().max(1) as usize;
        let Some((&newest, _)) = self.seconds.last_key_value() else { return false };
        let samples: Vec<f64> = self
            .seconds
            .range(..=newest - SETTLED)
            .rev()
            .take(window)
            .map(|(_, sum)| self.figure(*sum))
            .collect();
        let rule = if self.rule.slope { FioCriterion::Slope } else { FioCriterion::Deviation };
        fio_steady_after(&samples, window, rule, self.rule.limit / 100.0).is_some()
    }

    fn figure(&self, sum: Sum) -> f64 {
        match self.rule.of {
            SteadyOf::Iops => sum.ios as f64,
            SteadyOf::Bandwidth => sum.bytes as f64,
            SteadyOf::Latency => sum.latency_ns as f64 / sum.latencies.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::Compact;
    use statistics::Histogram;
    use std::time::Duration;

    /// Whether it is steady after seconds with so many I/Os each.
    fn check(of: SteadyOf, slope: bool, limit: f64, ios: &[u64], expected: bool) {
        let mut judge = Judge::new(Steady { of, slope, limit, window: Duration::from_secs(4) });
        for (second, &count) in ios.iter().enumerate() {
            let mut histogram = Histogram::default();
            histogram.record_many(1000 * count, count);
            let latency = [Compact::from(&histogram), Compact::default(), Compact::default()];
            judge.take(&Interval {
                errors: [0; 3],
                at: second as f64 + 0.4,
                ios: [count, 0, 0],
                latency,
                bytes: [count * 4096, 0, 0],
            });
        }
        assert_eq!(judge.is_steady(), expected, "{of:?} {ios:?}");
    }

    #[test]
    fn the_last_seconds_decide_and_the_newest_two_wait_for_other_threads() {
        check(SteadyOf::Iops, false, 5.0, &[500, 100, 101, 99, 100, 7, 7], true);
        check(SteadyOf::Iops, false, 5.0, &[500, 100, 101, 99, 100, 7], false);
        check(SteadyOf::Iops, false, 5.0, &[100, 100, 101, 80, 100, 100, 100], false);
        check(SteadyOf::Bandwidth, true, 1.0, &[7, 120, 100, 100, 120, 9, 9], true);
        check(SteadyOf::Latency, true, 1.0, &[100, 110, 120, 130, 140, 150, 160], false);
        check(SteadyOf::Iops, false, 5.0, &[], false);
    }
}
