//! Work of the processor of several hosts, done after a drawn delay; it is lost with its process.

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
        let incarnation = self.hosts[host].incarnation;
        let delay = 10_000 + self.random.below(self.plan.device_ns);
        self.later(delay, Event::Computed(Box::new(Late { host, incarnation, group, id, task })));
    }

    pub(super) fn computed(&mut self, late: &Late) {
        let host = &self.hosts[late.host];
        if host.incarnation == late.incarnation && host.node.is_some() {
            let computed = late.task.perform();
            self.with_node(late.host, |node, now, out| {
                node.computed(now, late.group, late.id, computed, out)
            });
        }
    }
}
