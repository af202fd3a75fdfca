//! Where I/Os go from one to the next: sequential, interleaved streams, random.

use serde::Serialize;

/// Ends of earlier I/Os that are looked at.
const ENDS: usize = 32;
/// The first of them that count as near, as vSCSI does.
const NEAR: usize = 16;
/// Streams that are followed at a time.
const STREAMS: usize = 64;
/// Powers of two of lengths of runs.
const RUNS: usize = 32;

/// Where I/Os go.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequentiality {
    /// The share of I/Os that begin where the last one ended (vSCSI's distance of 1).
    pub after_last: f64,
    /// That begin where one of the last 16 ended. Much more than `after_last`: interleaved streams.
    pub after_last_16: f64,
    /// That begin where one of the last 32 ended.
    pub after_last_32: f64,
    /// That go on a stream, of the 64 latest.
    pub in_streams: f64,
    /// Streams that took turns, on average over the I/Os that go on one; 0 when none does.
    pub streams: f64,
    /// Lengths of runs in I/Os (from 2^k to 2^(k+1) - 1), and how many I/Os were in such. Runs of one are random I/Os.
    pub runs: Vec<(u64, u64)>,
}

/// Whether an I/O goes on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Continues,
    Jumps,
}

#[derive(Debug, Default)]
pub(super) struct Locality {
    /// The latest first.
    ends: std::collections::VecDeque<u64>,
    /// End and length of each stream, the latest first.
    streams: Vec<(u64, u64)>,
    ios: u64,
    after: [u64; 3],
    continued: u64,
    turns: u64,
    runs: [u64; RUNS],
}

impl Locality {
    pub(super) fn io(&mut self, offset: u64, end: u64) -> Step {
        self.ios += 1;
        if let Some(place) = self.ends.iter().position(|&end| end == offset) {
            self.after[0] += u64::from(place == 0);
            self.after[1] += u64::from(place < NEAR);
            self.after[2] += 1;
        }
        self.ends.truncate(ENDS - 1);
        self.ends.push_front(end);
        let (run, step) = match self.streams.iter().position(|&(end, _)| end == offset) {
            Some(place) => {
                let (_, run) = self.streams.remove(place);
                self.continued += 1;
                // Streams that had a turn since, and this one: random I/Os between them are no streams.
                let others = self.streams[..place].iter().filter(|(_, run)| *run > 1).count();
                self.turns += others as u64 + 1;
                (run + 1, Step::Continues)
            }
            None => (1, Step::Jumps),
        };
        if self.streams.len() == STREAMS {
            let (_, run) = self.streams.pop().expect("it is full");
            self.runs[bucket(run)] += run;
        }
        self.streams.insert(0, (end, run));
        step
    }

    pub(super) fn finish(&self) -> Sequentiality {
        let share = |count: u64| if self.ios > 0 { count as f64 / self.ios as f64 } else { 0.0 };
        let mut runs = self.runs;
        self.streams.iter().for_each(|&(_, run)| runs[bucket(run)] += run);
        let last = runs.iter().rposition(|&ios| ios > 0).map_or(0, |last| last + 1);
        Sequentiality {
            after_last: share(self.after[0]),
            after_last_16: share(self.after[1]),
            after_last_32: share(self.after[2]),
            in_streams: share(self.continued),
            streams: if self.continued > 0 { self.turns as f64 / self.continued as f64 } else { 0.0 },
            runs: runs[..last].iter().enumerate().map(|(power, &ios)| (1 << power, ios)).collect(),
        }
    }
}

fn bucket(run: u64) -> usize {
    (63 - run.max(1).leading_zeros() as usize).min(RUNS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use proptest::prelude::*;

    #[test]
    fn streams_that_take_turns_are_counted() {
        for count in [1u64, 4, 20] {
            let mut locality = Locality::default();
            for step in 0..1_000 {
                for stream in 0..count {
                    let offset = (stream << 40) + step * 4096;
                    locality.io(offset, offset + 4096);
                }
            }
            let found = locality.finish();
            assert!((found.streams - count as f64).abs() < 0.1, "{count}: {found:?}");
            assert_eq!(found.after_last > 0.99, count == 1, "{found:?}");
            assert_eq!(found.after_last_16 > 0.99, count <= 16, "{found:?}");
            assert!(found.after_last_32 > 0.99 && found.in_streams > 0.99, "{found:?}");
            // 1,000 lies from 512 to 1,023.
            assert_eq!(found.runs.last(), Some(&(512, 1_000 * count)));
        }
    }

    #[test]
    fn random_ios_are_in_no_stream() {
        let (mut locality, mut random) = (Locality::default(), Random::new(1));
        for _ in 0..10_000 {
            let offset = random.below(1 << 30) * 4096;
            locality.io(offset, offset + 4096);
        }
        let found = locality.finish();
        assert!(found.in_streams < 0.001 && found.runs[0].1 > 9_980, "{found:?}");
    }

    proptest! {
        #[test]
        fn shares_agree_with_a_plain_search(blocks in prop::collection::vec(0u64..40, 1..300)) {
            let mut locality = Locality::default();
            let mut after = [0; 3];
            for (at, &block) in blocks.iter().enumerate() {
                let ended = |back: usize| blocks[at.saturating_sub(back)..at].iter().any(|other| other + 1 == block);
                [1, 16, 32].into_iter().enumerate().for_each(|(index, back)| after[index] += u64::from(ended(back)));
                locality.io(block, block + 1);
            }
            let found = locality.finish();
            let share = |count: u64| count as f64 / blocks.len() as f64;
            prop_assert_eq!(found.after_last, share(after[0]));
            prop_assert_eq!(found.after_last_16, share(after[1]));
            prop_assert_eq!(found.after_last_32, share(after[2]));
            prop_assert_eq!(found.runs.iter().map(|(_, ios)| ios).sum::<u64>(), blocks.len() as u64);
        }
    }
}
