//! What a group tells about itself.

use super::{Group, Phase};
use crate::effort::{Effort, Latencies};
use crate::io::ComponentKey;
use crate::limits;
use crate::member::{ChunkMaking, Standing};
use crate::state::{ComponentState, GroupState, MemberState};
use base::units::{BLOCK_SIZE, EXTENT_SIZE, SECTOR_SIZE};
use base::{DeviceId, Instant};
use std::ops::Range;

/// Why no device of a group serves whose log device failed.
const LOG_FAILED: &str = "the log of its disk group failed";

impl Group {
    /// Buffers are short: gives some back in which it keeps data of the log, which it reads again when it needs it. Says whether it kept any.
    pub fn relieve(&mut self) -> bool {
        self.index.give_back(limits::RELIEF_BLOCKS)
    }

    /// All figures of the group, as of the last thing that happened in it.
    pub fn state(&self) -> GroupState {
        self.state_at(self.now)
    }

    /// The same as of `now`: on a device that hangs nothing happens, and its work goes on.
    pub fn state_at(&self, now: Instant) -> GroupState {
        let tables = |member: &crate::member::Member| {
            member.table.memory_bytes() + member.owners.len() * 21 + member.pools.memory_bytes()
        };
        let memory = self.members.iter().map(|(_, member)| tables(member)).sum::<usize>()
            + self.index.memory_bytes()
            + self.held.memory_bytes()
            + self.rewriting.memory_bytes();
        GroupState {
            is_open: matches!(self.phase, Phase::Open),
            members: self.members.iter().map(|(_, member)| self.member_state(member, now)).collect(),
            log_bytes: self.log.blocks() * BLOCK_SIZE,
            log_used_bytes: self.log.used_blocks() * BLOCK_SIZE,
            destage_pending_bytes: self.index.entry_count() as u64 * BLOCK_SIZE,
            held_bytes: self.held.count() as u64 * BLOCK_SIZE,
            congestion: self.congestion(),
            memory_bytes: memory as u64,
            counters: self.counters,
        }
    }

    /// The bytes of a device in which pages of its table stand beside the fixed table, or will: for those who check the group from outside.
    pub fn chunks(&self, member: u8) -> Vec<Range<u64>> {
        let Some(member) = self.members.get(member) else { return Vec::new() };
        let known = (0..member.table.chunk_count()).filter_map(|number| member.table.extent_of_chunk(number));
        let coming = member.chunk.map(|chunk| match chunk {
            ChunkMaking::Begun { extent } | ChunkMaking::OnItsWay { extent } => extent,
        });
        let bytes = |extent| member.geometry.block_offset(extent, 0);
        known.chain(coming).map(|extent| bytes(extent)..bytes(extent) + EXTENT_SIZE).collect()
    }

    /// Whether it is still being opened: then nobody knows what stands in it.
    pub fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening(_))
    }

    /// How many parts (MiB) a component has.
    pub fn part_count(&self, key: ComponentKey) -> u32 {
        self.components.get(key.0).map_or(0, crate::component::Component::part_count)
    }

    /// All components, those being deleted left out, in the order of their keys.
    pub fn components(&self) -> Vec<(ComponentKey, ComponentState)> {
        let living = self.components.iter().filter(|(_, one)| one.is_stable && !one.record.is_deleting);
        let state = |(key, _): (u32, &crate::component::Component)| {
            let key = ComponentKey(key);
            Some((key, self.component_state(key)?))
        };
        living.filter_map(state).collect()
    }

    /// Why the device of a component is out of service, if it is.
    pub fn failure_of(&self, key: ComponentKey) -> Option<&str> {
        if matches!(self.phase, Phase::Failed) {
            return Some(LOG_FAILED);
        }
        let component = self.components.get(key.0)?;
        self.members[component.member].failure()
    }

    /// One component.
    pub fn component_state(&self, key: ComponentKey) -> Option<ComponentState> {
        let component = self.components.get(key.0)?;
        Some(ComponentState {
            record: component.record.clone(),
            device: self.members[component.member].id,
            used_bytes: u64::from(component.used) * EXTENT_SIZE,
            compressed_bytes: component.packed.blocks * BLOCK_SIZE,
            packed_bytes: component.packed.units * SECTOR_SIZE,
            rewriting_part: self.rewriting.asked(key.0),
            snapshots: component.lineage.sizes(),
        })
    }

    /// How long reads and writes of each device took, in the order of the members.
    pub fn latencies(&self) -> impl Iterator<Item = (DeviceId, Effort, &Latencies)> {
        let members = self.members.iter().map(|(_, member)| member);
        members.map(|member| (member.id, member.meter.at(self.now), member.meter.latencies()))
    }

    /// No device of a group serves without its log.
    fn member_state(&self, member: &crate::member::Member, now: Instant) -> MemberState {
        let state = member_state(member, now);
        let lost = matches!(self.phase, Phase::Failed).then(|| LOG_FAILED.to_owned());
        MemberState { failure: state.failure.or(lost), ..state }
    }
}

fn member_state(member: &crate::member::Member, now: Instant) -> MemberState {
    let extents = member.owners.len() as u64;
    MemberState {
        device: member.id,
        capacity_bytes: extents * EXTENT_SIZE,
        used_bytes: (extents - u64::from(member.space.free_count())) * EXTENT_SIZE,
        reserved_bytes: member.space.reserved() * EXTENT_SIZE,
        component_count: member.component_count,
        component_count_max: member.geometry.component_slots,
        failure: member.failure().map(str::to_owned),
        is_away: matches!(member.standing(), Standing::Away { .. }),
        damaged_blocks: member.damaged_blocks,
        read_errors: member.failed_reads.count(),
        effort: member.meter.at(now),
        lost_extents: member.lost_extents,
    }
}
