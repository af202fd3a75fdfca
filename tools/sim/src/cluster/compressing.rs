//! Disks of several hosts that are compressed (docs/design/0049): how, each component is told by its label, which changes beside all else. What guests write becomes
//! smaller to different degrees. Copies must agree whatever each of them has compressed so far.

use super::faults::TURNS;
use super::world::World;
use crate::model::{Value, squeezable};
use base::DiskId;
use base::units::BLOCK_SIZE;
use node::Token;
use node::label::{DiskLabel, PartShape, PlaceShape};
use wire::{NewComponent, Request};

/// Tokens of requests that nobody waits for.
const FIRST_TOKEN: u64 = 1 << 51;
const POLICIES: [&str; 5] =
    ["compression=lz4", "compression=zstd", "compression=lz4", "compression=zstd", "compression=off"];

/// What guests write where disks are compressed.
pub(crate) fn squeeze(values: &mut [Value]) {
    values.iter_mut().for_each(|value| *value = squeezable(*value, *value >> 20 & 3));
}

impl World {
    /// What components carry of a disk.
    pub(crate) fn label_of(&self, disk: DiskId) -> Vec<u8> {
        if self.plan.compressed == 0 {
            return vec![1; 8];
        }
        let label = DiskLabel {
            name: "disk".to_owned(),
            size: self.disks[0].size,
            policy: self.policies.get(&disk).copied().unwrap_or(POLICIES[0]).to_owned(),
            read_only: false,
            place: 0,
            position: 0,
            shape: vec![PartShape { columns: 1, place: PlaceShape::Copies(1) }],
            origin: None,
        };
        label.encode().expect("it is short")
    }

    /// What disk groups have compressed since their hosts started.
    pub(crate) fn count_compressed(&mut self) {
        let nodes = self.hosts.iter().filter_map(|host| host.node.as_ref());
        let groups = nodes.flat_map(|node| node.groups());
        let bytes: u64 = groups.map(|(_, group)| group.state().counters.compressed_bytes).sum();
        self.summary.compressed += bytes / BLOCK_SIZE;
    }

    /// A disk is compressed in another way, as drawn from a stream of its own; or one host looks whether its components know.
    pub(crate) fn change_compression(&mut self) {
        if self.plan.compressed == 0 || !self.compressing.chance(self.plan.compressed, 1000 * TURNS) {
            return;
        }
        let host = self.compressing.below(self.hosts.len() as u64) as usize;
        if self.compressing.chance(1, 2) {
            return self.with_node(host, |node, now, out| node.follow_policies(now, out));
        }
        let disk = self.disks[self.compressing.below(self.disks.len() as u64) as usize].clone();
        let policy = POLICIES[self.compressing.below(POLICIES.len() as u64) as usize];
        self.policies.insert(disk.id, policy);
        self.say(|| format!("{:?} has the policy {policy}", disk.id));
        let Some((_, roster)) = self.directory.get(disk.id) else { return };
        for member in roster.members {
            let size = disk.layout.place(usize::from(member.place)).map_or(0, |copies| copies[0].size);
            let device = self.hosts[self.index_of(member.node)].capacity_device();
            let disk_label = self.label_of(disk.id);
            let id = member.component;
            let new = NewComponent { id, disk: disk.id, device, size, reservation: 0, disk_label };
            self.with_node(host, |node, now, out| {
                node.ask_component(now, Token(FIRST_TOKEN + id.0), member.node, Request::Update(new), out);
            });
        }
    }
}
