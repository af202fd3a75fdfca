//! A pass over the components of an engine that samples what they hold (docs/design/0048): its state, and when it goes on.
//!
//! One request is under way at a time. What it does is in `sampling.rs`.

use crate::compute::ChosenBlock;
use crate::limits::{PASS_PACE, RUN_MAX};
use crate::state::{PassResult, PassRunning, PassState};
use base::units::BLOCK_SIZE;
use base::{ComponentId, Instant};
use diskgroup::Share;
use reduction::{Choice, HostSample, Rates};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The pass of an engine that is under way, and the last one that came to its end.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    running: Option<Pass>,
    result: Option<PassResult>,
    /// Of the last one that began.
    serial: u64,
}

/// A pass that is under way.
#[derive(Debug)]
pub(crate) struct Pass {
    /// Its name in this engine: answers to a former pass are dropped.
    pub(crate) serial: u64,
    number: u64,
    began: std::time::Instant,
    /// `None` while the thread that computes has it.
    pub(crate) sample: Option<Box<HostSample>>,
    /// The components to come; the first one is being looked at.
    pub(crate) components: VecDeque<ComponentId>,
    /// The next part of the first component to look at.
    pub(crate) next_part: u32,
    pub(crate) step: Step,
    /// When it goes on, if nothing is under way.
    next_at: Instant,
    parts: u64,
    parts_total: u64,
    pub(crate) read_bytes: u64,
}

/// What a pass does.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: it rests between two parts.
    Idle,
    /// It waits for the checksums of the part.
    Census { part: u32 },
    /// It waits for the first of these runs of blocks.
    Reading { part: u32, runs: VecDeque<Vec<Choice>>, read: Vec<ChosenBlock> },
    /// It rests before it reads the next of these runs.
    Resting { part: u32, runs: VecDeque<Vec<Choice>>, read: Vec<ChosenBlock> },
    /// The blocks wait for the thread that computes.
    Waiting(Vec<ChosenBlock>),
    /// They are being measured.
    Measuring,
}

impl Passes {
    /// Begins a pass over components that have so many parts in all. One that is under way ends.
    pub(crate) fn begin(
        &mut self,
        number: u64,
        rates: Rates,
        components: VecDeque<ComponentId>,
        parts_total: u64,
    ) {
        self.serial += 1;
        self.running = Some(Pass {
            serial: self.serial,
            number,
            began: std::time::Instant::now(),
            sample: Some(Box::new(HostSample::new(rates))),
            components,
            next_part: 0,
            step: Step::Idle,
            next_at: Instant(0),
            parts: 0,
            parts_total,
            read_bytes: 0,
        });
    }

    /// Ends the pass that is under way, without a result.
    pub(crate) fn end(&mut self) {
        self.running = None;
    }

    /// The pass that is under way has looked at everything.
    pub(crate) fn finish(&mut self) {
        if let Some(pass) = self.running.take()
            && let Some(sample) = pass.sample
        {
            self.result = Some(PassResult {
                number: pass.number,
                sample: Arc::new(*sample),
                read_bytes: pass.read_bytes,
                took: pass.began.elapsed(),
                ended: std::time::Instant::now(),
            });
        }
    }

    /// The pass that is under way.
    pub(crate) fn running(&mut self) -> Option<&mut Pass> {
        self.running.as_mut()
    }

    /// The same, if it has that serial number.
    pub(crate) fn of_serial(&mut self, serial: u64) -> Option<&mut Pass> {
        self.running.as_mut().filter(|pass| pass.serial == serial)
    }

    /// When it goes on by itself.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let pass = self.running.as_ref()?;
        pass.step.is_at_rest().then_some(pass.next_at)
    }

    pub(crate) fn state(&self) -> PassState {
        let running = self.running.as_ref().map(|pass| PassRunning {
            parts: pass.parts,
            parts_total: pass.parts_total.max(pass.parts),
            read_bytes: pass.read_bytes,
            elapsed: pass.began.elapsed(),
        });
        PassState { running, result: self.result.clone() }
    }
}

impl Step {
    /// Whether nothing is under way: it goes on when its time comes.
    fn is_at_rest(&self) -> bool {
        match self {
            Step::Idle | Step::Resting { .. } | Step::Waiting(_) => true,
            Step::Census { .. } | Step::Reading { .. } | Step::Measuring => false,
        }
    }
}

impl Pass {
    /// Whether it goes on now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.step.is_at_rest() && self.next_at <= now
    }

    /// It goes on at that time at the earliest.
    pub(crate) fn wait_until(&mut self, at: Instant) {
        self.next_at = self.next_at.max(at);
    }

    /// Its sample, while the thread that computes does not have it.
    pub(crate) fn sample(&mut self) -> &mut HostSample {
        self.sample.as_mut().expect("nothing is being measured")
    }

    /// It has done work worth so many bytes, and rests so long that it keeps its share of its pace.
    pub(crate) fn rest(&mut self, now: Instant, bytes: u64, share: Share) {
        self.next_at = self.next_at.max(now) + pause(bytes, share);
    }

    /// The part has been looked at.
    pub(crate) fn end_part(&mut self) {
        self.parts += 1;
        self.step = Step::Idle;
    }
}

/// How long a pass rests after so many bytes.
fn pause(bytes: u64, share: Share) -> Duration {
    Duration::from_nanos(bytes * 1_000_000_000 / share.of(PASS_PACE).max(1))
}

/// The chosen blocks of a part, in short runs of neighbours: one read brings a run.
pub(crate) fn runs_of(choices: Vec<Choice>) -> VecDeque<Vec<Choice>> {
    let mut runs: VecDeque<Vec<Choice>> = VecDeque::new();
    for choice in choices {
        let follows = |run: &Vec<Choice>| {
            run.len() < RUN_MAX && run.last().is_some_and(|last| last.block + 1 == choice.block)
        };
        match runs.back_mut().filter(|run| follows(run)) {
            Some(run) => run.push(choice),
            None => runs.push_back(vec![choice]),
        }
    }
    runs
}

/// The blocks of a run.
pub(crate) fn blocks_of(run: &[Choice]) -> Range<u16> {
    run[0].block..run[0].block + run.len() as u16
}

/// Bytes of a run.
pub(crate) fn bytes_of(run: &[Choice]) -> u64 {
    run.len() as u64 * BLOCK_SIZE
}

#[cfg(test)]
mod tests {
    use super::*;
    use reduction::Rate;

    fn choice(block: u16) -> Choice {
        Choice { block, checksum: 1, for_compression: true, for_deduplication: false }
    }

    #[test]
    fn neighbours_are_read_at_once() {
        let runs = runs_of([3, 4, 5, 9, 255].map(choice).to_vec());
        let found: Vec<Range<u16>> = runs.iter().map(|run| blocks_of(run)).collect();
        assert_eq!(found, [3..6, 9..10, 255..256]);
        assert_eq!(bytes_of(&runs[0]), 3 * 4096);
        assert!(runs_of(Vec::new()).is_empty());
        let runs = runs_of((0..40).map(choice).collect());
        assert_eq!(
            runs.iter().map(Vec::len).collect::<Vec<_>>(),
            [16, 16, 8],
            "guests wait for none of them for long"
        );
    }

    #[test]
    fn a_pass_keeps_its_share_of_its_pace() {
        assert_eq!(pause(PASS_PACE, Share::FULL), Duration::from_secs(1));
        assert_eq!(pause(PASS_PACE, Share::FLOOR), Duration::from_secs(16));
    }

    #[test]
    fn answers_to_a_former_pass_are_for_nobody_and_its_result_stays_until_the_next() {
        let rates = Rates { compression: Rate::ALL, deduplication: Rate::ALL };
        let mut passes = Passes::default();
        passes.begin(1, rates, VecDeque::new(), 4);
        passes.finish();
        passes.begin(2, rates, VecDeque::new(), 4);
        assert!(passes.of_serial(1).is_none() && passes.of_serial(2).is_some());
        assert_eq!(passes.wake_at(), Some(Instant(0)), "it begins at once");
        let state = passes.state();
        assert_eq!(state.result.map(|result| result.number), Some(1));
        assert_eq!(state.running.map(|running| (running.parts, running.parts_total)), Some((0, 4)));
        passes.end();
        let state = passes.state();
        assert_eq!((state.running, state.result.map(|result| result.number)), (None, Some(1)));
    }
}
