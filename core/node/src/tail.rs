//! The slowest hundredth of many times, remembered in one number.
//!
//! Each time above the mark moves it up by a share of itself, each one below moves it down by a ninety-ninth of that: it rests
//! where one of a hundred is above. This is the stochastic approximation of a quantile (Robbins and Monro, 1951) with steps
//! in proportion, so that it works for microseconds and for seconds alike, and follows a load that changes. No sample is kept.

use crate::limits;

/// What about one of a hundred times lies above.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tail {
    /// The mark, 0 before the first time.
    mark_ns: u64,
    /// What it is still to go down by, in nanoseconds of which 99 are one.
    owed: u64,
}

impl Tail {
    /// Takes a time in.
    pub(crate) fn note(&mut self, ns: u64) {
        if self.mark_ns == 0 {
            self.mark_ns = ns.max(1);
            return;
        }
        let step = (self.mark_ns / limits::TAIL_STEP).max(1);
        if ns > self.mark_ns {
            self.mark_ns += step;
        } else {
            self.owed += step;
            self.mark_ns = self.mark_ns.saturating_sub(self.owed / 99).max(1);
            self.owed %= 99;
        }
    }

    /// The mark, once there was a time.
    pub(crate) fn ns(self) -> Option<u64> {
        (self.mark_ns > 0).then_some(self.mark_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    /// Times that are all as likely from 0 to `most`, and one of fifty that is ten times the most.
    fn spread(random: &mut Random, most: u64) -> u64 {
        if random.below(50) == 0 { most * 10 } else { random.below(most) }
    }

    #[test]
    fn it_comes_to_rest_where_one_of_a_hundred_is_above() {
        for (seed, most) in [(1, 1_000), (2, 300_000), (3, 50_000_000)] {
            let (mut random, mut tail) = (Random::new(seed), Tail::default());
            let mut above = 0;
            for turn in 0..60_000 {
                let ns = random.below(most);
                above += u64::from(turn >= 20_000 && Some(ns) > tail.ns());
                tail.note(ns);
            }
            assert!((300..500).contains(&above), "{above} of 40,000 above {:?} of {most}", tail.ns());
        }
    }

    #[test]
    fn a_load_that_changes_is_followed() {
        let (mut random, mut tail) = (Random::new(7), Tail::default());
        for _ in 0..20_000 {
            tail.note(random.below(1_000_000));
        }
        for _ in 0..20_000 {
            tail.note(spread(&mut random, 1_000_000));
        }
        assert!(tail.ns() > Some(2_000_000), "{tail:?}");
        for _ in 0..20_000 {
            tail.note(random.below(1_000_000));
        }
        assert!(tail.ns() < Some(1_300_000), "{tail:?}");
    }

    #[test]
    fn nothing_is_known_before_the_first_time_and_zero_is_a_time() {
        let mut tail = Tail::default();
        assert_eq!(tail.ns(), None);
        tail.note(0);
        assert_eq!(tail.ns(), Some(1));
    }
}
