//! When the I/Os of a rate are meant to begin.

use super::places::Operation;
use super::popularity::unit;
use base::Random;
use plan::{Arrivals, Loop, Pace, Rate, RateOf, RatePer};

/// The schedule of one stream for one of its rates. Times are nanoseconds of the generator's clock.
#[derive(Debug)]
pub struct Schedule {
    of: RateOf,
    arrivals: Arrivals,
    clock: Loop,
    /// Nanoseconds for each I/O, or for each byte.
    interval: Interval,
    /// When the next one is meant to begin.
    due: f64,
}

#[derive(Debug, Clone, Copy)]
enum Interval {
    PerIo(f64),
    PerByte(f64),
}

/// How many streams share a rate, and which of them this one is.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Streams of the same worker.
    pub of_worker: u64,
    /// Streams of the same group.
    pub of_group: u64,
    /// This one among those of the group.
    pub index: u64,
    /// IOPS that the plan's stages reached, for rates that are a share of one.
    pub reached: f64,
}

impl Schedule {
    /// The part of `rate` that one stream has, from `start` on.
    pub fn new(rate: &Rate, sharing: Sharing, start: u64, random: &mut Random) -> Schedule {
        let sharers = match rate.per {
            RatePer::WorkerAndTarget => 1,
            RatePer::Worker => sharing.of_worker,
            RatePer::Group => sharing.of_group,
        } as f64;
        let interval = match rate.pace {
            Pace::Iops(iops) => Interval::PerIo(1e9 * sharers / iops),
            Pace::Bytes(bytes) => Interval::PerByte(1e9 * sharers / bytes),
            Pace::PercentOf { percent, .. } => {
                Interval::PerIo(1e9 * sharers * 100.0 / (percent * sharing.reached.max(1.0)))
            }
        };
        let mut schedule =
            Schedule { of: rate.of, arrivals: rate.arrivals, clock: rate.clock, interval, due: start as f64 };
        // Streams that share a rate take turns; those of a Poisson process begin like any of its intervals.
        schedule.due += match (interval, rate.arrivals) {
            (Interval::PerIo(interval), Arrivals::Even) if rate.per == RatePer::Group => {
                interval * sharing.index as f64 / sharers
            }
            (Interval::PerIo(interval), Arrivals::Poisson) => interval * exponential(random),
            _ => 0.0,
        };
        schedule
    }

    /// Whether it counts I/Os of this kind.
    pub fn counts(&self, operation: Operation) -> bool {
        match self.of {
            RateOf::All => true,
            RateOf::Reads => operation == Operation::Read,
            RateOf::Writes => operation == Operation::Write,
            RateOf::Trims => operation == Operation::Trim,
        }
    }

    /// When the next I/O is meant to begin.
    pub fn due(&self) -> u64 {
        self.due as u64
    }

    /// Whether latency counts from [`Schedule::due`].
    pub fn is_open(&self) -> bool {
        self.clock == Loop::Open
    }

    /// An I/O of `size` bytes begins.
    pub fn begin(&mut self, size: u64, random: &mut Random) {
        let mean = match self.interval {
            Interval::PerIo(interval) => interval,
            Interval::PerByte(interval) => interval * size as f64,
        };
        self.due += match self.arrivals {
            Arrivals::Even => mean,
            Arrivals::Poisson => mean * exponential(random),
        };
    }

    /// I/Os (about) that were meant to begin by `now` and have not.
    pub fn backlog(&self, now: u64, size_mean: f64) -> f64 {
        let mean = match self.interval {
            Interval::PerIo(interval) => interval,
            Interval::PerByte(interval) => interval * size_mean,
        };
        ((now as f64 - self.due) / mean).max(0.0)
    }
}

/// An exponentially distributed number of mean 1.
fn exponential(random: &mut Random) -> f64 {
    -(1.0 - unit(random)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin_times(rate: Rate, sharing: Sharing, count: usize) -> Vec<u64> {
        let mut random = Random::new(5);
        let mut schedule = Schedule::new(&rate, sharing, 1_000_000, &mut random);
        let mut times = Vec::new();
        for _ in 0..count {
            times.push(schedule.due());
            schedule.begin(4096, &mut random);
        }
        times
    }

    fn rate(pace: Pace, per: RatePer, arrivals: Arrivals) -> Rate {
        Rate { pace, per, of: RateOf::All, arrivals, clock: Loop::Open }
    }

    const ALONE: Sharing = Sharing { of_worker: 1, of_group: 1, index: 0, reached: 0.0 };

    #[test]
    fn even_arrivals_are_one_interval_apart_and_streams_of_a_group_take_turns() {
        let alone = rate(Pace::Iops(1000.0), RatePer::Worker, Arrivals::Even);
        assert_eq!(begin_times(alone, ALONE, 3), [1_000_000, 2_000_000, 3_000_000]);
        let shared = rate(Pace::Iops(1000.0), RatePer::Group, Arrivals::Even);
        let second = Sharing { of_group: 4, index: 1, ..ALONE };
        assert_eq!(begin_times(shared, second, 2), [2_000_000, 6_000_000]);
        let bytes = rate(Pace::Bytes(4096.0 * 100.0), RatePer::Worker, Arrivals::Even);
        assert_eq!(begin_times(bytes, ALONE, 2), [1_000_000, 11_000_000]);
        let half = rate(Pace::PercentOf { stage: 0, percent: 50.0 }, RatePer::Group, Arrivals::Even);
        assert_eq!(begin_times(half, Sharing { reached: 2000.0, ..ALONE }, 2), [1_000_000, 2_000_000]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_variance_of_their_law() {
        let times = begin_times(rate(Pace::Iops(1000.0), RatePer::Worker, Arrivals::Poisson), ALONE, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05,
            "mean {mean}, variance {variance}"
        );
    }
}
