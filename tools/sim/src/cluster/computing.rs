//! Work of the processor of several hosts, done at once or, in some seeds, after a drawn delay; it is lost with
//! its process.

use super::world::{Event, World};
use diskgroup::{ComputeId, Task};
use node::GroupKey;

/// Work under way.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) host: usize,
    incarnation: u64,
    group: GroupKey,
    id: ComputeId,
    task: Task,
}

impl World {
    pub(super) fn compute(&mut self, host: usize, group: GroupKey, id: ComputeId, task: Task) {
        let late = Late { host, incarnation: self.hosts[host].incarnation, group, id, task };
        match &mut self.plan.computing {
            None => self.computed(&late),
            Some(random) => {
                let delay = 10_000 + random.below(20 * self.plan.device_ns);
                self.later(delay, Event::Computed(Box::new(late)));
            }
        }
    }

    pub(super) fn computed(&mut self, late: &Late) {
        let Late { host, group, id, .. } = *late;
        if self.hosts[host].incarnation == late.incarnation && self.hosts[host].node.is_some() {
            let computed = late.task.perform();
            self.with_node(host, |node, now, out| node.computed(now, group, id, computed, out));
        }
    }
}
