//! Answers questions about the allocation of a component, or what changed in it: runs for stretches without any, and single blocks for so
//! many other parts that a turn of the engine takes no longer for it.

use super::translate::refusal;
use crate::interface::GroupKey;
use crate::runs::push_run;
use base::request::{StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use diskgroup::{ComponentKey, Group};
use replication::components::{StoreOp, Stored};
use wire::limits::ALLOCATION_LOOKUPS_MAX;

/// A question under way.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) op: StoreOp,
    pub(crate) group: GroupKey,
    component: ComponentKey,
    /// What is asked of them.
    of: StatusOf,
    /// The next part, and the one behind the last.
    part: u32,
    end: u32,
    /// Parts that the component has: nothing is behind them.
    parts: u32,
    /// Parts of which each block was looked up.
    looked_up: usize,
    runs: Vec<StatusRun>,
}

impl Survey {
    /// A question about `count` parts from `part` on.
    pub(crate) fn new(
        (op, group, component): (StoreOp, GroupKey, ComponentKey),
        of: StatusOf,
        (part, count): (u32, u16),
        parts: u32,
    ) -> Survey {
        let end = part.saturating_add(u32::from(count));
        Survey { op, group, component, of, part, end, parts, looked_up: 0, runs: Vec::new() }
    }

    /// Looks parts up in the group, whose outputs are appended to `outputs`. The answer, or `None` while a page of
    /// the group's table is being read.
    pub(crate) fn go_on(
        &mut self,
        group: &mut Group,
        outputs: &mut Vec<diskgroup::Output>,
    ) -> Option<Stored> {
        while self.part < self.end && self.looked_up < ALLOCATION_LOOKUPS_MAX {
            let there = self.part..self.end.min(self.parts);
            let backed = group.first_of_survey(self.component, there, self.of).unwrap_or(self.end);
            if backed > self.part {
                push_run(&mut self.runs, u64::from(backed - self.part) * EXTENT_SIZE, false);
                self.part = backed;
                continue;
            }
            match group.block_states(self.component, self.part, self.of, outputs)? {
                Err(error) => return Some(Stored::Failed(refusal(error))),
                Ok(blocks) => {
                    blocks.iter().for_each(|block| push_run(&mut self.runs, BLOCK_SIZE, *block));
                    self.part += 1;
                    self.looked_up += 1;
                }
            }
        }
        Some(Stored::Allocation(std::mem::take(&mut self.runs)))
    }
}
