//! Devices that come and go while the group is open, and places that are empty.
//!
//! A device that is not there when the group is opened is *away*: its components are lost until it comes back, and the
//! log keeps whatever speaks of it, so that nothing is missing then. When the log needs that space, the device is given
//! up and counts as failed.

use super::{Group, Phase};
use crate::format::batch::Record;
use crate::format::superblock::{Geometry, MEMBERS_MAX, Superblock};
use crate::io::{Event, Output};
use crate::limits;
use crate::log::BatchStart;
use crate::member::Member;
use crate::membership::{Lost, RemoveRefusal};
use crate::rules::Rule;
use base::{DeviceId, Instant};
use std::collections::BTreeSet;

impl Group {
    /// The first place without a device, if the group has room for one more. Not one of which the anchor still says that its
    /// device failed: after a crash that would be said of the new one.
    pub fn free_place(&self) -> Option<u8> {
        let failed = self.failed_members | self.log.anchor().failed_members;
        let may_be_taken = |place: usize| failed >> place & 1 == 0;
        let empty = |(place, member): (usize, &Member)| member.id == DeviceId(0) && may_be_taken(place);
        let empty = self.members.iter().enumerate().position(empty);
        empty.or((self.members.len() < MEMBERS_MAX).then_some(self.members.len())).map(|place| place as u8)
    }

    /// Takes a freshly formatted capacity device in, at the place that its superblock names: one that
    /// [`Group::free_place`] gave.
    pub fn add_member(&mut self, superblock: Superblock) {
        let place = superblock.index as usize;
        let is_free = self.members.get(place).is_none_or(|member| member.id == DeviceId(0));
        assert!(is_free && place <= self.members.len(), "a device comes to a free place");
        assert!(superblock.geometry.log.len == 0, "a group has one log");
        let place = superblock.index as usize;
        let mut member = Member::new(superblock.device, superblock.geometry);
        for extent in 0..superblock.geometry.extent_count() {
            member.space.release(extent);
        }
        self.index.set_device(superblock.index, superblock.geometry.extent_count());
        if place == self.members.len() {
            self.members.push(member);
            self.superblocks.push(superblock);
        } else {
            self.members[place] = member;
            self.superblocks[place] = superblock;
        }
    }

    /// Begins to take a device out. One that is away is given up: what the log kept for it is dropped. No component may
    /// stand on it, nor be made on it from now on. The log is destaged
    /// beyond everything that speaks of the device; [`Group::finish_remove`] tells when that is so.
    ///
    /// # Errors
    /// When it cannot go.
    pub fn begin_remove(&mut self, device: DeviceId, lost: Lost) -> Result<(), RemoveRefusal> {
        let place = self.member_of(device).ok_or(RemoveRefusal::Unknown)?;
        let member = &self.members[place as usize];
        if place == 0 {
            return Err(RemoveRefusal::HoldsLog);
        }
        match (member.component_count, member.is_in_service()) {
            (0, _) => {}
            (count, true) => return Err(RemoveRefusal::InUse(count)),
            (_, false) if lost == Lost::GiveUp => {}
            (count, false) => return Err(RemoveRefusal::Lost(count)),
        }
        if let Some(other) = self.members.iter().find(|one| one.away_since.is_some() && one.id != device) {
            return Err(RemoveRefusal::OtherAway(other.id));
        }
        self.give_up_away(place);
        self.members[place as usize].is_leaving = true;
        self.leaving.push((place, self.log.head()));
        Ok(())
    }

    /// Empties the place of a device that is leaving, once nothing in the log speaks of it. False: not yet.
    pub fn finish_remove(&mut self, device: DeviceId) -> bool {
        let Some(place) = self.member_of(device) else { return true };
        let Some(index) = self.leaving.iter().position(|(leaving, _)| *leaving == place) else {
            return false;
        };
        let (_, position) = self.leaving[index];
        let has_io = self.requests.is_busy(place);
        let is_quiet = self.checkpoint.is_idle() && !has_io && matches!(self.phase, Phase::Open);
        let is_lost = !self.members[place as usize].is_in_service();
        let is_clean = self.members[place as usize].dirty_pages.count() == 0 || is_lost;
        let is_named = self.buffer.is_place_named(place) && self.rules.hold(Rule::LeaveAfterLastRecord);
        if self.log.tail() < position || !is_quiet || !is_clean || is_named {
            return false;
        }
        self.leaving.remove(index);
        self.components.forget_device(place);
        let placeholder = Superblock::empty_place(&self.superblocks[0], place);
        self.index.drop_device(place);
        self.index.set_device(place, 0);
        self.members[place as usize] = Member::new(DeviceId(0), Geometry::default());
        self.superblocks[place as usize] = placeholder;
        self.failed_members &= !(1 << place);
        true
    }

    /// The sealed batch got its place in the log, which is to be destaged beyond it for a device that it names and that is
    /// leaving: some were gathered before.
    pub(super) fn note_leavers(&mut self) {
        if self.leaving.is_empty() || !self.rules.hold(Rule::LeaveAfterLastRecord) {
            return;
        }
        let records = self.buffer.sealed().iter().map(|one| &one.record);
        let named: BTreeSet<u8> = records.filter_map(Record::place_named).collect();
        for (_, position) in self.leaving.iter_mut().filter(|(place, _)| named.contains(place)) {
            *position = self.log.head();
        }
    }

    /// Whether the log has to be destaged further than it is, up to `tail`, for a device that is leaving. Not until it is empty: each
    /// checkpoint logs anew what windows hold, so it never would be.
    pub(super) fn is_destaged_for_leavers(&self, tail: u64) -> bool {
        self.leaving.iter().all(|(_, position)| tail >= *position)
    }

    /// Whether a device that is leaving waits for a checkpoint of its table alone.
    pub(super) fn leavers_want_checkpoint(&self) -> bool {
        let is_dirty = |place: u8| {
            let member = &self.members[place as usize];
            member.is_in_service() && member.dirty_pages.count() > 0
        };
        self.leaving.iter().any(|(place, position)| self.log.tail() >= *position && is_dirty(*place))
    }

    /// Takes a member out of service that the executor found to be unfit, as when its file has become too short.
    pub fn fail_member(&mut self, now: Instant, place: u8, why: &str, out: &mut Vec<Output>) {
        self.now = now;
        if matches!(self.phase, Phase::Open) {
            self.member_failed(place, why, out);
        }
    }

    /// Says of a member that is away what was found in its place.
    pub fn note_missing(&mut self, place: u8, why: &str) {
        let member = &mut self.members[place as usize];
        if member.is_away {
            member.failure = Some(why.to_owned());
        }
    }

    /// Where the tail of the log must stay for members that are away and may come back.
    pub(super) fn away_since(&self) -> Option<BatchStart> {
        if !self.rules.hold(Rule::KeepLogForAway) {
            return None;
        }
        self.members.iter().filter_map(|member| member.away_since).min_by_key(|start| start.position)
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
        for place in 1..self.members.len() as u8 {
            if self.members[place as usize].away_since.is_some() {
                self.give_up_away(place);
                let why = self.members[place as usize].failure.clone().unwrap_or_default();
                out.push(Output::Event(Event::MemberFailed { member: place, why }));
            }
        }
    }

    /// A member that is away has failed from now on: what the log kept for it is dropped.
    fn give_up_away(&mut self, place: u8) {
        let member = &mut self.members[place as usize];
        if !std::mem::take(&mut member.is_away) {
            return;
        }
        member.away_since = None;
        member.failure = Some(
            "it was away until the log needed the space of what was kept for it: it must be replaced"
                .to_owned(),
        );
        self.failed_members |= 1 << place;
        self.destaging.catch_up(&self.log);
    }

    /// The superblocks as they are in force, by place.
    pub fn superblocks(&self) -> &[Superblock] {
        &self.superblocks
    }

    /// Takes over superblocks that were written again with another membership.
    pub fn set_superblocks(&mut self, superblocks: Vec<Superblock>) {
        assert!(superblocks.len() == self.superblocks.len(), "places do not come or go by this");
        self.superblocks = superblocks;
    }
}
