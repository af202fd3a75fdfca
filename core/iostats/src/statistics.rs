//! The statistics of one disk, or of several merged: plain data.

use crate::buckets::{
    Kind, LENGTH_BUCKETS, LENGTH_LIMITS, OUTSTANDING_BUCKETS, OUTSTANDING_LIMITS, Operations, SEEK_BUCKETS,
    SEEK_LIMITS, TIME_BUCKETS, TIME_LIMITS,
};
use crate::histogram::{Histogram, Limits};
use crate::latency::{FineLatency, percentile_of};
use std::time::Duration;

/// Index of "reads and writes" where all three are kept; reads are 0 and writes 1.
pub(crate) const BOTH: usize = 2;

/// Plain counters. Arrays hold reads, then writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of I/Os that completed well.
    pub bytes: [u64; 2],
    /// I/Os that failed.
    pub errors: [u64; 2],
    /// Trims and zero-writes.
    pub trims: u64,
    /// Bytes that they covered.
    pub trim_bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

/// Number of counters.
pub(crate) const COUNTERS: usize = 7;

impl Counters {
    pub(crate) fn all(&self) -> [u64; COUNTERS] {
        let Counters { bytes, errors, trims, trim_bytes, flushes } = self;
        [bytes[0], bytes[1], errors[0], errors[1], *trims, *trim_bytes, *flushes]
    }

    pub(crate) fn from_all(all: [u64; COUNTERS]) -> Counters {
        let [read_bytes, write_bytes, read_errors, write_errors, trims, trim_bytes, flushes] = all;
        Counters {
            bytes: [read_bytes, write_bytes],
            errors: [read_errors, write_errors],
            trims,
            trim_bytes,
            flushes,
        }
    }

    fn combine(&self, other: &Counters, operation: fn(u64, u64) -> u64) -> Counters {
        let (mine, others) = (self.all(), other.all());
        Counters::from_all(std::array::from_fn(|index| operation(mine[index], others[index])))
    }
}

/// All histograms and counters. Cumulative as a recorder gives them; an interval as [`Statistics::difference`] does.
///
/// Lengths and latencies of both operations together are the sum of the two; the other kinds depend on how reads and
/// writes mix, so "both" has counts of its own (index 2).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    pub(crate) length: [Histogram<LENGTH_BUCKETS>; 2],
    pub(crate) seek_distance: [Histogram<SEEK_BUCKETS>; 3],
    pub(crate) seek_distance_nearest: Histogram<SEEK_BUCKETS>,
    pub(crate) latency: [Histogram<TIME_BUCKETS>; 2],
    pub(crate) outstanding: [Histogram<OUTSTANDING_BUCKETS>; 3],
    pub(crate) interarrival: [Histogram<TIME_BUCKETS>; 3],
    pub(crate) latency_fine: [FineLatency; 2],
    /// Counters beside the histograms.
    pub counters: Counters,
}

/// One bucket of a [`HistogramView`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The largest value that falls in it; `None` for the last.
    pub limit: Option<i32>,
    /// How many fell in it.
    pub count: u64,
}

/// One histogram, ready to be printed.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramView {
    /// What it counts.
    pub kind: Kind,
    /// Of which I/Os.
    pub operations: Operations,
    /// All buckets, empty ones too.
    pub buckets: Vec<Bucket>,
    /// Number of values.
    pub count: u64,
    /// The smallest value, if there is any.
    pub min: Option<i64>,
    /// The largest value, if there is any.
    pub max: Option<i64>,
    /// The exact mean, if there is any value.
    pub mean: Option<f64>,
}

impl HistogramView {
    fn new<const N: usize>(kind: Kind, operations: Operations, histogram: &Histogram<N>) -> HistogramView {
        let limits = kind.limits().iter().copied().map(Some).chain([None]);
        let count = histogram.count();
        let any = count > 0;
        HistogramView {
            kind,
            operations,
            buckets: limits.zip(histogram.counts).map(|(limit, count)| Bucket { limit, count }).collect(),
            count,
            min: any.then_some(histogram.min),
            max: any.then_some(histogram.max),
            mean: any.then(|| histogram.sum as f64 / count as f64),
        }
    }
}

impl Statistics {
    /// Statistics of nothing.
    pub fn new() -> Statistics {
        Statistics::default()
    }

    /// Adds those of another disk or of another interval.
    pub fn merge(&mut self, other: &Statistics) {
        merge_all(&mut self.length, &other.length);
        merge_all(&mut self.seek_distance, &other.seek_distance);
        self.seek_distance_nearest.merge(&other.seek_distance_nearest);
        merge_all(&mut self.latency, &other.latency);
        merge_all(&mut self.outstanding, &other.outstanding);
        merge_all(&mut self.interarrival, &other.interarrival);
        for (mine, more) in self.latency_fine.iter_mut().zip(&other.latency_fine) {
            mine.merge(more);
        }
        self.counters = self.counters.combine(&other.counters, u64::saturating_add);
    }

    /// What came between `earlier` and this, both of the same recorder. Counts, sums and means are exact; a minimum or
    /// maximum that was not reached since is only known as closely as its bucket tells.
    pub fn difference(&self, earlier: &Statistics) -> Statistics {
        Statistics {
            length: difference_all(&self.length, &earlier.length, &LENGTH_LIMITS),
            seek_distance: difference_all(&self.seek_distance, &earlier.seek_distance, &SEEK_LIMITS),
            seek_distance_nearest: self
                .seek_distance_nearest
                .difference(&earlier.seek_distance_nearest, &SEEK_LIMITS),
            latency: difference_all(&self.latency, &earlier.latency, &TIME_LIMITS),
            outstanding: difference_all(&self.outstanding, &earlier.outstanding, &OUTSTANDING_LIMITS),
            interarrival: difference_all(&self.interarrival, &earlier.interarrival, &TIME_LIMITS),
            latency_fine: std::array::from_fn(|index| {
                self.latency_fine[index].difference(&earlier.latency_fine[index])
            }),
            counters: self.counters.combine(&earlier.counters, u64::saturating_sub),
        }
    }

    /// I/Os that completed well.
    pub fn completed(&self, operations: Operations) -> u64 {
        self.fine_of(operations).iter().fold(0, |sum, fine| sum.saturating_add(fine.count))
    }

    /// Bytes of I/Os that completed well.
    pub fn bytes(&self, operations: Operations) -> u64 {
        pick(operations, self.counters.bytes)
    }

    /// I/Os that failed.
    pub fn errors(&self, operations: Operations) -> u64 {
        pick(operations, self.counters.errors)
    }

    /// The latency that the share `q` (0..=1) of the I/Os did not exceed, within
    /// [`PERCENTILE_ERROR`](crate::PERCENTILE_ERROR); nothing when there was no I/O.
    pub fn percentile(&self, operations: Operations, q: f64) -> Option<Duration> {
        percentile_of(&self.fine_of(operations), q)
    }

    /// The exact mean latency.
    pub fn latency_mean(&self, operations: Operations) -> Option<Duration> {
        let parts = self.fine_of(operations);
        let sum = parts.iter().fold(0u128, |sum, fine| sum.saturating_add(fine.sum_ns));
        let count = u128::from(self.completed(operations));
        (count > 0).then(|| Duration::from_nanos((sum / count) as u64))
    }

    /// The fine latency histogram of reads, of writes or of both.
    pub fn latency_fine(&self, operations: Operations) -> FineLatency {
        let mut result = FineLatency::default();
        self.fine_of(operations).into_iter().for_each(|fine| result.merge(fine));
        result
    }

    fn fine_of(&self, operations: Operations) -> Vec<&FineLatency> {
        match operations {
            Operations::Reads => vec![&self.latency_fine[0]],
            Operations::Writes => vec![&self.latency_fine[1]],
            Operations::Both => self.latency_fine.iter().collect(),
        }
    }

    /// One histogram.
    pub fn histogram(&self, kind: Kind, operations: Operations) -> HistogramView {
        let index = match operations {
            Operations::Reads => 0,
            Operations::Writes => 1,
            Operations::Both => BOTH,
        };
        match kind {
            Kind::Length => HistogramView::new(kind, operations, &summed(&self.length, index)),
            Kind::SeekDistance => HistogramView::new(kind, operations, &self.seek_distance[index]),
            Kind::SeekDistanceNearest => {
                HistogramView::new(kind, Operations::Both, &self.seek_distance_nearest)
            }
            Kind::Latency => HistogramView::new(kind, operations, &summed(&self.latency, index)),
            Kind::Outstanding => HistogramView::new(kind, operations, &self.outstanding[index]),
            Kind::Interarrival => HistogramView::new(kind, operations, &self.interarrival[index]),
        }
    }

    /// All 16 histograms in the order of `vscsiStats`.
    pub fn histograms(&self) -> impl Iterator<Item = HistogramView> + '_ {
        Kind::ALL.into_iter().flat_map(move |kind| {
            let count = if kind == Kind::SeekDistanceNearest { 1 } else { 3 };
            Operations::ALL.into_iter().take(count).map(move |operations| self.histogram(kind, operations))
        })
    }
}

fn pick(operations: Operations, [reads, writes]: [u64; 2]) -> u64 {
    match operations {
        Operations::Reads => reads,
        Operations::Writes => writes,
        Operations::Both => reads.saturating_add(writes),
    }
}

fn summed<const N: usize>(parts: &[Histogram<N>; 2], index: usize) -> Histogram<N> {
    if index != BOTH {
        return parts[index].clone();
    }
    let mut result = parts[0].clone();
    result.merge(&parts[1]);
    result
}

fn merge_all<const N: usize, const M: usize>(mine: &mut [Histogram<N>; M], others: &[Histogram<N>; M]) {
    for (histogram, more) in mine.iter_mut().zip(others) {
        histogram.merge(more);
    }
}

fn difference_all<const N: usize, const M: usize>(
    later: &[Histogram<N>; M],
    earlier: &[Histogram<N>; M],
    limits: &Limits<N>,
) -> [Histogram<N>; M] {
    std::array::from_fn(|index| later[index].difference(&earlier[index], limits))
}
