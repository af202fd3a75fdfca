//! What happened in an interval, small enough to be kept for months: requests, bytes, and latencies in coarse buckets.
//!
//! Eight buckets for each power of two from 1.024 us to 137 s, so a percentile is off by at most 1/16 of its value. Intervals are added up
//! without a further error: that of a day has the percentiles that it would have had as one.

use crate::encoding::{DecodeError, put_counts, put_varint, take_counts, take_u64};
use crate::latency::{COARSE_BUCKETS, FineLatency, coarse_range};
use crate::{Operations, Statistics};
use base::bytes::{Reader, Writer};
use std::time::Duration;

/// One direction of an interval: reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Bytes of requests that succeeded.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The sum of all latencies in ns.
    pub sum_ns: u64,
    /// Requests by coarse bucket.
    counts: Box<[u64; COARSE_BUCKETS]>,
}

impl Default for Direction {
    fn default() -> Self {
        Direction { bytes: 0, errors: 0, sum_ns: 0, counts: Box::new([0; COARSE_BUCKETS]) }
    }
}

impl Direction {
    /// Of a fine histogram.
    pub fn new(latency: &FineLatency, bytes: u64, errors: u64) -> Direction {
        let sum_ns = u64::try_from(latency.sum_ns).unwrap_or(u64::MAX);
        Direction { bytes, errors, sum_ns, counts: Box::new(latency.coarse()) }
    }

    /// Requests with a latency.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean latency; nothing without a request.
    pub fn mean(&self) -> Option<Duration> {
        let count = self.count();
        (count > 0).then(|| Duration::from_nanos(self.sum_ns / count))
    }

    /// The latency that the share `q` (0..=1) of all requests did not exceed, within 1/16; nothing without a request.
    pub fn percentile(&self, q: f64) -> Option<Duration> {
        let total = self.count();
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).find_map(|(index, count)| {
            seen = seen.saturating_add(*count);
            let (from, to) = coarse_range(index);
            (seen >= rank).then(|| Duration::from_nanos(from + to.saturating_sub(from) / 2))
        })
    }

    /// Requests that took at least `from_ns` and less than `to_ns`, for limits that are powers of two.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let is_in = |index: usize| {
            let from = coarse_range(index).0;
            from >= from_ns && from < to_ns
        };
        let counts = self.counts.iter().enumerate().filter(|(index, _)| is_in(*index));
        counts.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds what happened in another interval.
    pub fn merge(&mut self, other: &Direction) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors = self.errors.saturating_add(other.errors);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.saturating_add(*more);
        }
    }

    fn is_empty(&self) -> bool {
        self.errors == 0 && self.counts.iter().all(|count| *count == 0)
    }
}

/// What happened in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interval {
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Of a device: nanoseconds in which any request was under way. Of several devices their sum.
    pub busy_ns: u64,
}

impl Interval {
    /// What a disk did.
    pub fn of(statistics: &Statistics) -> Interval {
        let direction = |operations| {
            Direction::new(
                &statistics.latency_fine(operations),
                statistics.bytes(operations),
                statistics.errors(operations),
            )
        };
        Interval { read: direction(Operations::Reads), write: direction(Operations::Writes), busy_ns: 0 }
    }

    /// Adds what happened in another one.
    pub fn merge(&mut self, other: &Interval) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty() && self.busy_ns == 0
    }

    /// As bytes (`docs/formats/series.md`).
    pub fn encode(&self, writer: &mut Writer) {
        put_varint(writer, u128::from(self.busy_ns));
        for part in [&self.read, &self.write] {
            for number in [part.bytes, part.errors, part.sum_ns] {
                put_varint(writer, u128::from(number));
            }
            put_counts(writer, &part.counts[..]);
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are not what [`Interval::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Interval, DecodeError> {
        let busy_ns = take_u64(reader)?;
        let mut interval = Interval { busy_ns, ..Interval::default() };
        for part in [&mut interval.read, &mut interval.write] {
            for number in [&mut part.bytes, &mut part.errors, &mut part.sum_ns] {
                *number = take_u64(reader)?;
            }
            take_counts(reader, &mut part.counts[..])?;
        }
        reader.finish()?;
        Ok(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Recorder};
    use base::{Instant, Random};

    fn busy(seed: u64) -> (Statistics, Vec<u64>) {
        let (mut random, mut recorder) = (Random::new(seed), Recorder::new());
        let mut latencies: Vec<u64> =
            (0..random.range(1..2_000)).map(|_| random.range(2_000..1 << 33)).collect();
        for ns in &latencies {
            let arrival = recorder.arrive(Instant(0), Operation::Write, 0, 8);
            recorder.complete(Instant(*ns), arrival, true);
        }
        latencies.sort_unstable();
        (recorder.statistics(), latencies)
    }

    #[test]
    fn an_interval_is_read_as_it_was_written_and_counts_what_the_disk_did() {
        for seed in 0..30 {
            let (statistics, latencies) = busy(seed);
            let interval = Interval { busy_ns: seed, ..Interval::of(&statistics) };
            assert_eq!(interval.write.count(), latencies.len() as u64);
            assert_eq!(interval.write.bytes, latencies.len() as u64 * 4096);
            assert_eq!(interval.write.sum_ns, latencies.iter().sum::<u64>());
            assert!(interval.read.is_empty() && !interval.is_empty());
            let mut writer = Writer::with_capacity(256);
            interval.encode(&mut writer);
            let bytes = writer.into_bytes();
            assert!(bytes.len() < 700, "{} bytes", bytes.len());
            assert_eq!(Interval::decode(&mut Reader::new(&bytes)), Ok(interval));
            for cut in 0..bytes.len() {
                assert!(Interval::decode(&mut Reader::new(&bytes[..cut])).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn percentiles_are_within_a_sixteenth_also_of_several_intervals() {
        for seed in 0..30 {
            let ((one, mut all), (two, more)) = (busy(seed), busy(seed + 1000));
            let mut interval = Interval::of(&one);
            interval.merge(&Interval::of(&two));
            all.extend(more);
            all.sort_unstable();
            for q in [0.01, 0.5, 0.9, 0.99] {
                let rank = ((q * all.len() as f64).ceil() as usize).clamp(1, all.len());
                let exact = all[rank - 1] as f64;
                let found = interval.write.percentile(q).expect("there are some").as_nanos() as f64;
                assert!((found - exact).abs() <= exact / 16.0 + 1.0, "seed {seed} q {q}: {found} {exact}");
            }
        }
        assert_eq!((Direction::default().percentile(0.5), Direction::default().mean()), (None, None));
    }

    #[test]
    fn what_lies_between_powers_of_two_adds_up() {
        let (statistics, latencies) = busy(7);
        let interval = Interval::of(&statistics);
        for octave in 10..36 {
            let exact = latencies.iter().filter(|ns| (1 << octave..1 << (octave + 1)).contains(*ns)).count();
            assert_eq!(interval.write.between(1 << octave, 1 << (octave + 1)), exact as u64, "{octave}");
        }
        assert_eq!(interval.write.between(0, u64::MAX), latencies.len() as u64);
    }
}
