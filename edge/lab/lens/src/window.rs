//! One disk in one window of time.

use iostats::{Kind, Operation, Operations, Statistics};
use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;

/// What one disk did in one window of time. Arrays hold reads, then writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// When it began, in seconds after the capture did.
    pub at_s: f64,
    /// How long it lasted, in seconds; above 0.
    pub seconds: f64,
    /// The histograms that are known: all 16 from our own data path, fewer from some traces.
    pub histograms: Vec<Counted>,
    /// I/Os, bytes and time.
    pub totals: [Total; 2],
    /// Latencies for percentiles; none where only the coarse histograms are known (`vscsiStats`).
    pub latencies: Option<[Latencies; 2]>,
    /// I/Os that were under way when one arrived, itself among them, on average; none where it is unknown.
    pub outstanding_mean: Option<f64>,
}

/// One histogram without its limits, which are those of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// What it counts.
    #[serde(with = "crate::named::kind")]
    pub kind: Kind,
    /// Of which I/Os.
    #[serde(with = "crate::named::operations")]
    pub operations: Operations,
    /// One for each of [`Kind::limits`], and one for what is above the last.
    pub counts: Vec<u64>,
}

/// Sums over the reads or the writes of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// I/Os; those that failed are not among them where that is known.
    pub ios: u64,
    /// Their bytes; 0 where sizes are unknown.
    pub bytes: u64,
    /// I/Os whose latency is known.
    pub timed: u64,
    /// The sum of these latencies, in ns.
    pub latency_ns: u64,
}

impl Total {
    /// Both together.
    pub fn plus(self, other: Total) -> Total {
        Total {
            ios: self.ios.saturating_add(other.ios),
            bytes: self.bytes.saturating_add(other.bytes),
            timed: self.timed.saturating_add(other.timed),
            latency_ns: self.latency_ns.saturating_add(other.latency_ns),
        }
    }
}

impl Window {
    /// What `statistics`, those of an interval, tell of a window.
    pub fn from_statistics(at_s: f64, seconds: f64, statistics: &Statistics) -> Window {
        let histograms = statistics
            .histograms()
            .map(|view| Counted {
                kind: view.kind,
                operations: view.operations,
                counts: view.buckets.iter().map(|bucket| bucket.count).collect(),
            })
            .collect();
        let fine =
            [Operations::Reads, Operations::Writes].map(|operations| statistics.latency_fine(operations));
        let total = |index: usize, operations| Total {
            ios: fine[index].count,
            bytes: statistics.bytes(operations),
            timed: fine[index].count,
            latency_ns: u64::try_from(fine[index].sum_ns).unwrap_or(u64::MAX),
        };
        Window {
            at_s,
            seconds,
            histograms,
            totals: [total(0, Operations::Reads), total(1, Operations::Writes)],
            latencies: Some([Latencies::from(&fine[0]), Latencies::from(&fine[1])]),
            outstanding_mean: statistics.histogram(Kind::Outstanding, Operations::Both).mean,
        }
    }

    /// When it ended, in seconds after the capture began.
    pub fn end_s(&self) -> f64 {
        self.at_s + self.seconds
    }

    /// The counts of one histogram; nothing where it is unknown. The distance from the nearest is one for all operations.
    pub fn counts(&self, kind: Kind, operations: Operations) -> Option<&[u64]> {
        let operations = if kind == Kind::SeekDistanceNearest { Operations::Both } else { operations };
        let found = self.histograms.iter().find(|one| one.kind == kind && one.operations == operations);
        found.map(|one| one.counts.as_slice())
    }

    /// The sums of these operations.
    pub fn total(&self, operations: Operations) -> Total {
        match operations {
            Operations::Reads => self.totals[Operation::Read as usize],
            Operations::Writes => self.totals[Operation::Write as usize],
            Operations::Both => self.totals[0].plus(self.totals[1]),
        }
    }

    /// I/Os per second.
    pub fn iops(&self, operations: Operations) -> f64 {
        self.total(operations).ios as f64 / self.seconds
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self, operations: Operations) -> f64 {
        self.total(operations).bytes as f64 / self.seconds
    }

    /// The mean latency in seconds; nothing when no latency is known.
    pub fn latency_mean_s(&self, operations: Operations) -> Option<f64> {
        let total = self.total(operations);
        (total.timed > 0).then(|| total.latency_ns as f64 / total.timed as f64 / 1e9)
    }

    /// The latencies of these operations together; nothing where only coarse ones are known.
    pub fn latencies(&self, operations: Operations) -> Option<Latencies> {
        let [reads, writes] = self.latencies.as_ref()?;
        Some(match operations {
            Operations::Reads => reads.clone(),
            Operations::Writes => writes.clone(),
            Operations::Both => {
                let mut all = reads.clone();
                all.merge(writes);
                all
            }
        })
    }

    /// A percentile of the latency in seconds, `q` of 0..=1; nothing where only coarse latencies are known, or none.
    pub fn percentile_s(&self, operations: Operations, q: f64) -> Option<f64> {
        self.latencies(operations)?.percentile(q).map(|ns| ns as f64 / 1e9)
    }

    /// Adds a window that begins when this one ends or later. What only one of both knows is dropped if it cannot be said of
    /// both together; a window without any I/O knows everything.
    pub fn append(&mut self, later: &Window) {
        let (mine, others) = (self.total(Operations::Both).ios, later.total(Operations::Both).ios);
        self.seconds = later.end_s() - self.at_s;
        self.outstanding_mean = match (self.outstanding_mean, later.outstanding_mean) {
            (Some(one), Some(two)) if mine + others > 0 => {
                Some((one * mine as f64 + two * others as f64) / (mine + others) as f64)
            }
            (one, two) if others == 0 => one.or(two),
            (_, two) if mine == 0 => two,
            _ => None,
        };
        self.latencies = match (self.latencies.take(), &later.latencies) {
            (Some(mut one), Some(two)) => {
                one.iter_mut().zip(two).for_each(|(one, two)| one.merge(two));
                Some(one)
            }
            (one, _) if others == 0 => one,
            (_, two) if mine == 0 => two.clone(),
            _ => None,
        };
        for (total, more) in self.totals.iter_mut().zip(later.totals) {
            *total = total.plus(more);
        }
        for other in &later.histograms {
            let same = |one: &&mut Counted| one.kind == other.kind && one.operations == other.operations;
            match self.histograms.iter_mut().find(same) {
                Some(one) => add(&mut one.counts, &other.counts),
                None if mine == 0 => self.histograms.push(other.clone()),
                None => {}
            }
        }
        if others > 0 {
            self.histograms.retain(|one| later.counts(one.kind, one.operations).is_some());
        }
    }
}

/// Adds counts bucket by bucket.
pub(crate) fn add(counts: &mut Vec<u64>, more: &[u64]) {
    if counts.len() < more.len() {
        counts.resize(more.len(), 0);
    }
    for (count, more) in counts.iter_mut().zip(more) {
        *count = count.saturating_add(*more);
    }
}
