//! How components are compressed: as the policy says that the label of their disk tells.
//!
//! A component is told when its record is made or changed, and again now and then: its disk group may have been of a format without compressed blocks
//! until then (docs/design/0049).

use crate::interface::{GroupKey, Output};
use crate::label::DiskLabel;
use crate::node::{Node, Waiter};
use base::{DiskId, Instant};
use diskgroup::format::page::Compression;
use diskgroup::{ComponentKey, Input};
use placement::Policy;

impl Node {
    /// Tells all components whose disk is to be compressed in another way, in groups that can do it.
    pub fn follow_policies(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.now = now;
        let components = |(key, group): (GroupKey, &diskgroup::Group)| {
            let components: Vec<ComponentKey> = group.components().into_iter().map(|(of, _)| of).collect();
            components.into_iter().map(move |component| (key, component))
        };
        let all: Vec<(GroupKey, ComponentKey)> =
            self.groups().filter(|(_, group)| !group.is_opening()).flat_map(components).collect();
        for (group, component) in all {
            self.follow_policy(group, component, out);
        }
    }

    /// Has all components of a disk that are here written anew, where that takes less space. Tells how many they are.
    pub fn rewrite_disk(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) -> usize {
        self.now = now;
        let mut found: Vec<(GroupKey, ComponentKey)> = Vec::new();
        for (key, group) in self.groups().filter(|(_, group)| group.state().is_open) {
            let components = group.components().into_iter();
            let own =
                components.filter(|(of, state)| state.record.disk == disk && group.failure_of(*of).is_none());
            found.extend(own.map(|(component, _)| (key, component)));
        }
        for &(group, component) in &found {
            self.ask(group, Waiter::Compression, |op| Input::Rewrite { op, component }, out);
        }
        found.len()
    }

    /// Tells a component how it is compressed, if its label says otherwise than its record.
    pub(crate) fn follow_policy(&mut self, group: GroupKey, component: ComponentKey, out: &mut Vec<Output>) {
        let Some(state) = self.group(group).and_then(|group| group.component_state(component)) else {
            return;
        };
        let label = DiskLabel::decode(&state.record.disk_label);
        let policy: Option<Policy> = label.and_then(|label| label.policy.parse().ok());
        let Some(compression) = policy.map(|policy| wanted(policy.compression)) else { return };
        let is_able = compression == Compression::Off || !self.is_plain(group);
        if compression != state.record.compression && is_able {
            let input = |op| Input::Compress { op, component, compression };
            self.ask(group, Waiter::Compression, input, out);
        }
    }
}

fn wanted(compression: placement::Compression) -> Compression {
    match compression {
        placement::Compression::Off => Compression::Off,
        placement::Compression::Lz4 => Compression::Lz4,
        placement::Compression::Zstd => Compression::Zstd,
    }
}
