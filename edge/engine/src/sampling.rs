//! What a pass does: it looks at the checksums of each part, reads the blocks that are chosen, and has them measured elsewhere.

use crate::command::PassOrder;
use crate::compute::{Batch, ChosenBlock, Computing};
use crate::engine::{Engine, Target};
use crate::limits::{CENSUS_COST, COMPUTE_RETRY};
use crate::pass::{Step, blocks_of, bytes_of, runs_of};
use crate::state::PassState;
use base::ComponentId;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, EXTENT_SIZE};
use diskgroup::Share;
use node::Token;
use reduction::{Choice, HostSample, Rates};
use std::collections::VecDeque;
use wire::{Answer, Refusal};

impl Engine {
    pub(crate) fn order_pass(&mut self, order: PassOrder) -> PassState {
        match order {
            PassOrder::Begin { number, rates } => self.begin_pass(number, rates),
            PassOrder::End => self.passes.end(),
            PassOrder::Nothing => {}
        }
        self.passes.state()
    }

    fn begin_pass(&mut self, number: u64, rates: Rates) {
        self.passes.end();
        if self.is_stopping || !Computing::can_measure() {
            return;
        }
        let components = self.node.groups().flat_map(|(_, group)| group.components());
        let mut used = 0;
        let mut ids: Vec<ComponentId> = Vec::new();
        for (_, state) in components {
            used += state.used_bytes;
            ids.push(state.record.id);
        }
        self.passes.begin(number, rates, ids.into(), used / EXTENT_SIZE);
    }

    /// Lets the pass go on, if it is due.
    pub(crate) fn advance_pass(&mut self) {
        let now = self.now();
        let Some(pass) = self.passes.running().filter(|pass| pass.is_due(now)) else { return };
        match std::mem::replace(&mut pass.step, Step::Idle) {
            Step::Waiting(blocks) => return self.measure(blocks),
            Step::Resting { part, runs, read } => return self.read_next(part, runs, read),
            Step::Idle => {}
            step @ (Step::Census { .. } | Step::Reading { .. } | Step::Measuring) => {
                unreachable!("a pass that waits for an answer is not due: {step:?}")
            }
        }
        while let Some(component) = pass.components.front().copied() {
            let Some(part) = self.node.next_backed_part(component, pass.next_part) else {
                // One without data has a sample as well: there is nothing in it.
                pass.sample().visit(component);
                pass.components.pop_front();
                pass.next_part = 0;
                continue;
            };
            pass.next_part = part + 1;
            pass.step = Step::Census { part };
            let token = Token(self.targets.insert(Target::Pass(pass.serial)) as u64);
            return self.node.inspect_checksums(now, token, component, part, &mut self.outputs);
        }
        self.passes.finish();
    }

    /// A component was inspected for a pass.
    pub(crate) fn inspected(&mut self, serial: u64, answer: Option<Answer>) {
        let (now, share) = (self.now(), self.share_of_pass());
        let Some(pass) = self.passes.of_serial(serial) else { return };
        let Some(component) = pass.components.front().copied() else { return };
        match (std::mem::replace(&mut pass.step, Step::Idle), answer) {
            (Step::Census { part }, Some(Answer::Checksums(checksums))) => {
                pass.rest(now, CENSUS_COST, share);
                let runs = runs_of(pass.sample().take_census(component, part, &checksums));
                self.read_next(part, runs, Vec::new());
            }
            (Step::Census { .. }, answer) => {
                pass.rest(now, CENSUS_COST, share);
                if !matches!(answer, Some(Answer::Refused(Refusal::NoComponent))) {
                    pass.sample().note_unreadable(component, BLOCKS_PER_EXTENT as u64);
                }
                pass.end_part();
            }
            (Step::Reading { part, mut runs, mut read }, answer) => {
                let run = runs.pop_front().unwrap_or_default();
                pass.read_bytes += bytes_of(&run);
                pass.rest(now, bytes_of(&run), share);
                match answer {
                    Some(Answer::Data { pieces, .. }) => {
                        let gone = take_blocks(&run, &pieces, &mut read);
                        pass.sample().note_gone(component, gone);
                    }
                    _ => pass.sample().note_unreadable(component, run.len() as u64),
                }
                match runs.is_empty() {
                    true => self.measure(read),
                    false => pass.step = Step::Resting { part, runs, read },
                }
            }
            (step @ (Step::Idle | Step::Resting { .. } | Step::Waiting(_) | Step::Measuring), _) => {
                unreachable!("an inspection ends while the pass does something else: {step:?}")
            }
        }
    }

    /// Reads the next run of chosen blocks of a part. When there is none, those that were read are measured.
    fn read_next(&mut self, part: u32, runs: VecDeque<Vec<Choice>>, read: Vec<ChosenBlock>) {
        let now = self.now();
        let Some(pass) = self.passes.running() else { return };
        let Some(component) = pass.components.front().copied() else { return };
        let Some(run) = runs.front() else {
            return self.measure(read);
        };
        let blocks = blocks_of(run);
        let token = Token(self.targets.insert(Target::Pass(pass.serial)) as u64);
        pass.step = Step::Reading { part, runs, read };
        self.node.inspect_blocks(now, token, (component, part), blocks, &mut self.outputs);
    }

    /// Hands blocks to the thread that computes. The engine's own thread never compresses: if the other one is busy, the pass waits.
    fn measure(&mut self, blocks: Vec<ChosenBlock>) {
        let now = self.now();
        let Some(pass) = self.passes.running() else { return };
        let Some(component) = pass.components.front().copied() else { return };
        let Some(sample) = pass.sample.take_if(|_| !blocks.is_empty()) else { return pass.end_part() };
        match self.computing.measure(pass.serial, Batch { component, sample, blocks }) {
            Ok(()) => pass.step = Step::Measuring,
            Err(refused) => {
                pass.sample = Some(refused.sample);
                pass.step = Step::Waiting(refused.blocks);
                pass.wait_until(now + COMPUTE_RETRY);
            }
        }
    }

    /// The blocks of a part are measured.
    pub(crate) fn measured(&mut self, serial: u64, sample: Box<HostSample>) {
        let Some(pass) = self.passes.of_serial(serial) else { return };
        pass.sample = Some(sample);
        pass.end_part();
    }

    /// The share of its pace that a pass has now: that of scrubbing, which gives way to guests in the same manner.
    fn share_of_pass(&self) -> Share {
        self.node.groups().map(|(_, group)| group.shares.scrub).min().unwrap_or(Share::FULL)
    }
}

/// Takes the blocks of a run out of what was read. Says how many are holes by now.
fn take_blocks(run: &[Choice], pieces: &Pieces, read: &mut Vec<ChosenBlock>) -> u64 {
    let mut choices = run.iter().copied();
    let mut gone = 0;
    for piece in pieces {
        match piece {
            Piece::Hole(len) => {
                let blocks = u64::from(*len) / BLOCK_SIZE;
                gone += choices.by_ref().take(blocks as usize).count() as u64;
            }
            Piece::Bytes(buffer) => {
                for (block, choice) in buffer.chunks_exact(BLOCK_SIZE as usize).zip(choices.by_ref()) {
                    read.push(ChosenBlock { choice, bytes: block.into() });
                }
            }
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Pool;

    #[test]
    fn blocks_go_to_the_choices_that_they_were_read_for() {
        let choice = |block| Choice { block, checksum: 1, for_compression: true, for_deduplication: true };
        let run: Vec<Choice> = (4..9).map(choice).collect();
        let data = Pool::new(1 << 20).take_zeroed(2 * BLOCK_SIZE as usize).expect("a fresh pool has a MiB");
        data.fill_from(BLOCK_SIZE as usize, &[7]);
        let mut pieces = Pieces::new();
        pieces.push(Piece::Hole(BLOCK_SIZE as u32));
        pieces.push(Piece::Bytes(data));
        pieces.push(Piece::Hole(2 * BLOCK_SIZE as u32));
        let mut read = Vec::new();
        assert_eq!(take_blocks(&run, &pieces, &mut read), 3);
        let found: Vec<(u16, u8)> = read.iter().map(|block| (block.choice.block, block.bytes[0])).collect();
        assert_eq!(found, [(5, 0), (6, 7)]);
    }
}
