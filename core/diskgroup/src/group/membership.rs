//! Devices that come and go while the group is open, and indices without a device.
//!
//! A device that is not there when the group is opened is *away*: its components are lost until it comes back, and the
//! log keeps whatever speaks of it, so that nothing is missing then. When the log needs that space, the device is given
//! up and counts as failed.

use super::{Group, Phase};
use crate::format::superblock::{MEMBERS_MAX, Superblock};
use crate::io::{Event, Output};
use crate::leaving::{Lost, RemoveRefusal};
use crate::limits;
use crate::log::BatchStart;
use crate::member::Member;
use crate::rules::Rule;
use base::{DeviceId, Instant};

impl Group {
    /// The first index without a device, if the group has room for one more. Not one of which the anchor still says that its
    /// device failed: after a crash that would be said of the new one.
    pub fn free_index(&self) -> Option<u8> {
        let failed = self.members.failed() | self.log.anchor().failed_members;
        let is_free = |(index, member): &(u8, &Member)| member.is_vacant() && failed >> index & 1 == 0;
        let empty = self.members.iter().find(is_free).map(|(index, _)| index);
        let count = self.members.len();
        empty.or((usize::from(count) < MEMBERS_MAX).then_some(count))
    }

    /// Takes a freshly formatted capacity device in, at the index that its superblock names: one that
    /// [`Group::free_index`] gave.
    pub fn add_member(&mut self, superblock: Superblock) {
        self.index.set_device(superblock.index, superblock.geometry.extent_count());
        self.members.add(superblock);
    }

    /// Begins to take a device out. One that is away is given up: what the log kept for it is dropped. No component may
    /// stand on it, nor be made on it from now on. The log is destaged
    /// beyond everything that speaks of the device; [`Group::finish_remove`] tells when that is so.
    ///
    /// # Errors
    /// When it cannot go.
    pub fn begin_remove(&mut self, device: DeviceId, lost: Lost) -> Result<(), RemoveRefusal> {
        let index = self.member_of(device).ok_or(RemoveRefusal::Unknown)?;
        let member = &self.members[index];
        if index == 0 {
            return Err(RemoveRefusal::HoldsLog);
        }
        match (member.component_count, member.is_in_service()) {
            (0, _) => {}
            (count, true) => return Err(RemoveRefusal::InUse(count)),
            (_, false) if lost == Lost::GiveUp => {}
            (count, false) => return Err(RemoveRefusal::Lost(count)),
        }
        let is_other = |(at, member): &(u8, &Member)| *at != index && member.away_since().is_some();
        if let Some((_, other)) = self.members.iter().find(is_other) {
            return Err(RemoveRefusal::OtherAway(other.id));
        }
        self.give_up_away(index);
        self.members[index].leave_at(self.log.head());
        Ok(())
    }

    /// Frees the index of a device that is leaving, once nothing in the log speaks of it. False: not yet.
    pub fn finish_remove(&mut self, device: DeviceId) -> bool {
        let Some(index) = self.member_of(device) else { return true };
        let member = &self.members[index];
        let Some(position) = member.leaves_at() else { return false };
        let has_io = self.requests.is_busy(index) || self.destaging.visits(index);
        let is_quiet = self.checkpoint.is_idle() && !has_io && matches!(self.phase, Phase::Open);
        let is_clean = member.table.dirty_count() == 0 || !member.is_in_service();
        let is_named = self.buffer.is_device_named(index) && self.rules.hold(Rule::LeaveAfterLastRecord);
        if self.log.tail() < position || !is_quiet || !is_clean || is_named {
            return false;
        }
        self.drop_held_on(index);
        self.components.forget_device(index);
        self.forget_mapped_of(index);
        self.index.drop_device(index);
        self.index.set_device(index, 0);
        self.members.remove(index);
        true
    }

    /// What is to be done about mapped parts of a device that leaves is void.
    fn forget_mapped_of(&mut self, index: u8) {
        let of_device: Vec<u32> =
            self.components.iter().filter(|(_, one)| one.member == index).map(|(key, _)| key).collect();
        for key in of_device {
            self.lists_due.remove(&key);
            self.dropping.remove(&key);
        }
        self.page_seekers.remove(&index);
        self.pages_short.remove(&index);
        self.void_maps.retain(|(of, _)| *of != index);
    }

    /// The sealed batch got its position in the log, which is to be destaged beyond it for a device that it names and that is
    /// leaving: some were gathered before.
    pub(super) fn note_leavers(&mut self) {
        if !self.members.has_leavers() || !self.rules.hold(Rule::LeaveAfterLastRecord) {
            return;
        }
        for index in self.buffer.sealed().iter().filter_map(|one| one.record.device_named()) {
            let member = &mut self.members[index];
            if member.leaves_at().is_some() {
                member.leave_at(self.log.head());
            }
        }
    }

    /// Whether the log has to be destaged further than it is, up to `tail`, for a device that is leaving. Not until it is empty: each
    /// checkpoint logs anew what windows hold, so it never would be.
    pub(super) fn is_destaged_for_leavers(&self, tail: u64) -> bool {
        self.members.is_past_leavers(tail)
    }

    /// Whether a device that is leaving waits for a checkpoint of its table alone.
    pub(super) fn leavers_want_checkpoint(&self) -> bool {
        self.members.iter().any(|(_, member)| {
            let is_past = member.leaves_at().is_some_and(|position| self.log.tail() >= position);
            is_past && member.is_in_service() && member.table.dirty_count() > 0
        })
    }

    /// Takes a member out of service that the executor found to be unfit, as when its file has become too short.
    pub fn fail_member(&mut self, now: Instant, index: u8, why: &str, out: &mut Vec<Output>) {
        self.now = now;
        if matches!(self.phase, Phase::Open) {
            self.member_failed(index, why, out);
        }
    }

    /// Says of a member that is away what was found instead of it.
    pub fn note_missing(&mut self, index: u8, why: &str) {
        self.members[index].note_missing(why);
    }

    /// Where the tail of the log must stay for members that are away and may come back.
    pub(super) fn away_since(&self) -> Option<BatchStart> {
        self.members.away_since().filter(|_| self.rules.hold(Rule::KeepLogForAway))
    }

    /// Gives up members that are away once the log needs the space of what it keeps for them.
    pub(super) fn settle_away(&mut self, out: &mut Vec<Output>) {
        let Some(since) = self.away_since() else { return };
        let nothing_moves = !self.buffer.is_writing() && self.buffer.is_empty();
        // A large write may find no room in a small log long before it is nearly full.
        let is_in_the_way = self.waits_for_log() && nothing_moves && self.log.tail() == since.position;
        if self.log.fill_percent() < limits::AWAY_LOG_PERCENT_MAX && !is_in_the_way {
            return;
        }
        for index in 1..self.members.len() {
            if self.members[index].away_since().is_some() {
                self.give_up_away(index);
                let why = self.members[index].failure().unwrap_or_default().to_owned();
                out.push(Output::Event(Event::MemberFailed { member: index, why }));
            }
        }
    }

    /// A member that is away has failed from now on: what the log kept for it is dropped.
    fn give_up_away(&mut self, index: u8) {
        if self.members.give_up(index) {
            self.destaging.catch_up(&self.log);
        }
    }

    /// The superblocks as they are in force, by index.
    pub fn superblocks(&self) -> &[Superblock] {
        self.members.superblocks()
    }

    /// Takes over superblocks that were written again with another membership, or another format: new structures are of that from the next
    /// checkpoint on (docs/design/0044, "Conversion").
    pub fn set_superblocks(&mut self, superblocks: Vec<Superblock>) {
        self.members.set_superblocks(superblocks);
    }
}
