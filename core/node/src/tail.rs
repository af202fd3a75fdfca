//! The 99th percentile of recent requests.
//!
//! Times are counted in buckets, eight to each power of two, so that a window is off by an eighth at most. A window
//! ends after a thousand requests, or after a while with at least a hundred. The mark is the median of the last
//! windows. The latest window alone would not do: a device that stalls for a moment lifts one window, and a rebuild
//! that begins then would be allowed to slow guests by as much. If the last two windows are below the median, the
//! load has become lighter and the mark follows at once: a mark that is too low costs a rebuild time, one that is too
//! high costs guests theirs.

use crate::limits;
use std::collections::VecDeque;

const PER_OCTAVE: u32 = 8;
const BUCKETS: usize = (64 * PER_OCTAVE) as usize;

/// The mark: about one of a hundred times lies above it.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    counts: Box<[u32; BUCKETS]>,
    count: u32,
    /// Periods since the window began.
    periods: u32,
    /// Percentiles of the last windows, the oldest first.
    windows: VecDeque<u64>,
    mark_ns: Option<u64>,
}

impl Tail {
    pub(crate) fn new() -> Tail {
        Tail { counts: Box::new([0; BUCKETS]), count: 0, periods: 0, windows: VecDeque::new(), mark_ns: None }
    }

    /// Takes a time in.
    pub(crate) fn note(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
        self.count += 1;
        if self.count >= limits::TAIL_WINDOW {
            self.end_window();
        }
    }

    /// A period ([`limits::SHARES_PERIOD`]) has passed.
    pub(crate) fn end_period(&mut self) {
        self.periods += 1;
        if self.periods >= limits::TAIL_WINDOW_PERIODS && self.count >= 100 {
            self.end_window();
        }
    }

    /// The mark, once enough was seen.
    pub(crate) fn ns(&self) -> Option<u64> {
        self.mark_ns
    }

    fn end_window(&mut self) {
        let mut above = self.count / 100;
        let bucket = (0..BUCKETS).rev().find(|bucket| match above.checked_sub(self.counts[*bucket]) {
            Some(left) => {
                above = left;
                false
            }
            None => true,
        });
        let mut windows = std::mem::take(&mut self.windows);
        if windows.len() == limits::TAIL_WINDOWS {
            windows.pop_front();
        }
        windows.push_back(end_of(bucket.expect("fewer are above than there are")));
        let mark_ns = Some(mark_of(&windows));
        *self = Tail { windows, mark_ns, ..Tail::new() };
    }
}

/// The median of what the windows say, of two in the middle the lesser; or what the last two say if that is less.
fn mark_of(windows: &VecDeque<u64>) -> u64 {
    let mut sorted: Vec<u64> = windows.iter().copied().collect();
    sorted.sort_unstable();
    let median = sorted[(sorted.len() - 1) / 2];
    let of_late = windows.iter().rev().take(2).copied().max();
    of_late.map_or(median, |of_late| of_late.min(median))
}

fn bucket_of(ns: u64) -> usize {
    let ns = ns.max(u64::from(PER_OCTAVE));
    let octave = ns.ilog2();
    let eighth = (ns >> (octave - PER_OCTAVE.ilog2())) as u32 % PER_OCTAVE;
    (octave * PER_OCTAVE + eighth) as usize
}

/// The first time that is too long for a bucket.
fn end_of(bucket: usize) -> u64 {
    let (octave, eighth) = (bucket as u32 / PER_OCTAVE, bucket as u32 % PER_OCTAVE);
    (u64::from(PER_OCTAVE + eighth + 1)) << octave.saturating_sub(PER_OCTAVE.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    #[test]
    fn the_mark_is_where_one_of_a_hundred_is_above() {
        for (seed, most) in [(1, 1_000), (2, 300_000), (3, 50_000_000)] {
            let (mut random, mut tail) = (Random::new(seed), Tail::new());
            let mut above = 0;
            for turn in 0..60_000 {
                let ns = random.below(most);
                above += u64::from(turn >= 20_000 && Some(ns) > tail.ns());
                tail.note(ns);
            }
            assert!(above < 500, "{above} of 40,000 above {:?} of {most}", tail.ns());
            let mark = tail.ns().expect("there were times");
            assert!((most * 95 / 100..most * 115 / 100).contains(&mark), "{mark} of {most}");
        }
    }

    #[test]
    fn a_load_that_becomes_lighter_is_followed_within_two_windows_and_one_that_grows_within_four() {
        let (mut random, mut tail) = (Random::new(7), Tail::new());
        let mut after = |most: u64, windows: u32| {
            (0..windows * limits::TAIL_WINDOW).for_each(|_| tail.note(random.below(most)));
            tail.ns().expect("there were times")
        };
        assert!((950_000..1_150_000).contains(&after(1_000_000, 7)));
        assert!((950_000..1_150_000).contains(&after(50_000_000, 3)));
        assert!((47_500_000..57_500_000).contains(&after(50_000_000, 1)));
        assert!((950_000..1_150_000).contains(&after(1_000_000, 2)));
    }

    #[test]
    fn a_device_that_stands_still_for_a_moment_does_not_lift_the_mark() {
        let mut tail = Tail::new();
        for turn in 0..5 * limits::TAIL_WINDOW {
            let stands_still = turn >= 4 * limits::TAIL_WINDOW && turn % 1_000 < 20;
            tail.note(if stands_still { 40_000_000 } else { 1_000_000 });
        }
        assert!((1_000_000..1_130_000).contains(&tail.ns().expect("there were times")));
    }

    #[test]
    fn a_quiet_guest_is_listened_to_for_a_while() {
        let mut tail = Tail::new();
        assert_eq!(tail.ns(), None);
        for turn in 0..200 {
            tail.note(1_000_000);
            (turn % 2 == 0).then(|| tail.end_period());
        }
        assert!((1_000_000..1_130_000).contains(&tail.ns().expect("two hundred are enough")));
    }

    #[test]
    fn every_time_has_a_bucket_that_ends_after_it() {
        let mut last = 0;
        for ns in
            (0..64).flat_map(|shift| [1u64 << shift, (1 << shift) + (1 << shift) / 3, u64::MAX >> shift])
        {
            let end = end_of(bucket_of(ns));
            assert!(end > ns || ns > u64::MAX / 2, "{ns} {end}");
            assert!(end / 9 * 8 <= ns.max(9), "{ns} {end}");
            last = last.max(bucket_of(ns));
        }
        assert!(last < BUCKETS);
    }
}
