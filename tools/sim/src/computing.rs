//! Work of the processor, done after a drawn delay: mostly soon, in some seeds so late that devices are lost and components
//! deleted meanwhile. A crash loses it.

use crate::world::World;
use base::{Instant, Random};
use diskgroup::{ComputeId, Input, Task};
use std::collections::BTreeMap;

/// How late it is comes of a stream of its own.
const COMPUTING: u64 = 0xc0_4b07_e000_0001;
/// In one of so many seeds the processor has much else to do: there, half of the work takes long.
const BUSY: u64 = 4;
/// How many times the latency of devices work takes at most that takes long, on a processor that is busy and on one that is not.
const LATE: [u64; 2] = [1000, 20];

/// Work under way.
#[derive(Debug)]
struct Late {
    id: ComputeId,
    task: Task,
    /// What was lost, and how many deletions were asked for, when it began.
    dead_members: u8,
    deletions: u64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Computing {
    random: Random,
    is_busy: bool,
    /// By the time at which it ends, then in order.
    queue: BTreeMap<(u64, u64), Late>,
    begun: u64,
    /// Deletions that were asked for.
    pub(crate) deletions: u64,
}

impl Computing {
    pub(crate) fn new(seed: u64) -> Computing {
        let mut random = Random::new(seed ^ COMPUTING);
        let is_busy = random.chance(1, BUSY);
        Computing { random, is_busy, queue: BTreeMap::new(), begun: 0, deletions: 0 }
    }

    /// When the next one ends; the end of time if there is none.
    pub(crate) fn next_at(&self) -> u64 {
        self.queue.keys().next().map_or(u64::MAX, |(at, _)| *at)
    }

    /// The host crashes.
    pub(crate) fn crash(&mut self) {
        self.queue.clear();
    }
}

impl World {
    /// Whether neither a device nor the processor works for the group.
    pub(crate) fn is_still(&self) -> bool {
        self.queue.is_empty() && self.computing.queue.is_empty()
    }

    pub(crate) fn compute(&mut self, id: ComputeId, task: Task) {
        self.note("compute", task.data.len() as u64);
        let computing = &mut self.computing;
        let (one_of, times) = if computing.is_busy { (2, LATE[0]) } else { (8, LATE[1]) };
        let most = self.latency_max * if computing.random.chance(1, one_of) { times } else { 1 };
        let at = self.now + 1 + computing.random.below(most);
        computing.begun += 1;
        let late = Late { id, task, dead_members: self.dead_members, deletions: computing.deletions };
        computing.queue.insert((at, computing.begun), late);
    }

    /// The next work ends.
    pub(crate) fn computed(&mut self) {
        let ((at, _), late) = self.computing.queue.pop_first().expect("just seen");
        self.now = self.now.max(at);
        self.summary.computed += 1;
        self.summary.computed_after_loss += u64::from(late.dead_members != self.dead_members);
        self.summary.computed_after_deletion += u64::from(late.deletions != self.computing.deletions);
        let input = Input::Computed { id: late.id, computed: late.task.perform() };
        let mut out = Vec::new();
        let group = self.group.as_mut().expect("a group lives while work is under way");
        group.step(Instant(self.now), input, &mut out);
        self.perform(out);
    }
}
