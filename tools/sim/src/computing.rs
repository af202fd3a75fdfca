//! Work of the processor, done at once or, in some seeds, after a drawn delay: so late that devices are lost and components
//! deleted meanwhile. A crash loses it.

use crate::world::World;
use base::{Instant, Random};
use diskgroup::{ComputeId, Input, Task};
use std::collections::BTreeMap;

/// The stream of this feature (`features`), of one host and of several.
const COMPUTING: u64 = 0xc04b_07e0_0000_0a53;
/// It is busy in one of so many seeds; elsewhere results come at once.
const BUSY: u64 = 8;
/// Half of the work on a busy processor takes up to so many times the latency of devices.
const LATE: u64 = 60;

/// Whether the processor is busy in that seed, and where delays come from where it is.
pub(crate) fn draw(seed: u64) -> (bool, Random) {
    let mut random = Random::new(seed ^ COMPUTING);
    (random.chance(1, BUSY), random)
}

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
    /// Where delays come from, if there are any.
    random: Option<Random>,
    /// By the time at which it ends, then in order.
    queue: BTreeMap<(u64, u64), Late>,
    begun: u64,
    /// Deletions that were asked for.
    pub(crate) deletions: u64,
}

impl Computing {
    pub(crate) fn new(random: Option<Random>) -> Computing {
        Computing { random, queue: BTreeMap::new(), begun: 0, deletions: 0 }
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
    /// Its processor is busy whatever the seed says, it scrubs, and a device dies.
    pub fn with_late_results(mut self, seed: u64) -> World {
        self.computing.random = Some(Random::new(seed ^ COMPUTING));
        self.settings.scrub_bytes_per_second = 1 << 30;
        self.faults.dead_device = true;
        self
    }

    /// Whether neither a device nor the processor works for the group.
    pub(crate) fn is_still(&self) -> bool {
        self.queue.is_empty() && self.computing.queue.is_empty()
    }

    pub(crate) fn compute(&mut self, id: ComputeId, task: Task) {
        let computing = &mut self.computing;
        let late = Late { id, task, dead_members: self.dead_members, deletions: computing.deletions };
        let Some(random) = &mut computing.random else { return self.end_work(&late) };
        let most = self.latency_max * if random.chance(1, 2) { LATE } else { 1 };
        let at = self.now + 1 + random.below(most);
        computing.begun += 1;
        computing.queue.insert((at, computing.begun), late);
    }

    /// The next work ends.
    pub(crate) fn computed(&mut self) {
        let ((at, _), late) = self.computing.queue.pop_first().expect("just seen");
        self.now = self.now.max(at);
        self.end_work(&late);
    }

    fn end_work(&mut self, late: &Late) {
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
