//! What one of a hundred requests takes longer than, of late.
//!
//! Times are counted in buckets, eight to each power of two, so that the mark is off by an eighth at most. A window ends after
//! a thousand of them, or after a while if there were a hundred; the mark moves half of the way to what the window says, and all of
//! it where that is twice or half as much: then the load has changed, and a rebuild would be held to what was long ago.

use crate::limits;

const PER_OCTAVE: u32 = 8;
const BUCKETS: usize = (64 * PER_OCTAVE) as usize;

/// What about one of a hundred times lies above.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    counts: Box<[u32; BUCKETS]>,
    count: u32,
    /// Periods since the window began.
    periods: u32,
    mark_ns: Option<u64>,
}

impl Tail {
    pub(crate) fn new() -> Tail {
        Tail { counts: Box::new([0; BUCKETS]), count: 0, periods: 0, mark_ns: None }
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
        let seen = end_of(bucket.expect("fewer are above than there are"));
        self.mark_ns = Some(match self.mark_ns {
            Some(mark) if (mark / 2..=mark * 2).contains(&seen) => mark / 2 + seen / 2,
            _ => seen,
        });
        *self = Tail { mark_ns: self.mark_ns, ..Tail::new() };
    }
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
    fn a_load_that_changes_is_followed_within_two_windows() {
        let (mut random, mut tail) = (Random::new(7), Tail::new());
        let mut after = |most: u64| {
            (0..2 * limits::TAIL_WINDOW).for_each(|_| tail.note(random.below(most)));
            tail.ns().expect("there were times")
        };
        assert!((950_000..1_150_000).contains(&after(1_000_000)));
        assert!((47_500_000..57_500_000).contains(&after(50_000_000)));
        assert!((950_000..1_150_000).contains(&after(1_000_000)));
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
