//! Devices that come and go while the group is open, and places that are empty.

use crate::format::superblock::{Geometry, MEMBERS_MAX, Superblock};
use crate::group::{Group, Phase};
use crate::member::Member;
use base::DeviceId;

/// Why a device cannot be taken out of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoveRefusal {
    /// It is none of the group's.
    #[error("the device is not part of the group")]
    Unknown,
    /// It holds the log.
    #[error("the device holds the log of its group")]
    HoldsLog,
    /// Components stand on it.
    #[error("{0} components stand on the device")]
    InUse(u32),
}

impl Superblock {
    /// What stands in for a place of the group without a device: it has no regions.
    pub fn empty_place(of: &Superblock, place: u8) -> Superblock {
        Superblock {
            device: DeviceId(0),
            index: place,
            log_mark: 0,
            size: 0,
            geometry: Geometry::default(),
            ..of.clone()
        }
    }
}

impl Group {
    /// The first place without a device, if the group has room for one more.
    pub fn free_place(&self) -> Option<u8> {
        let empty = self.members.iter().position(|member| member.id == DeviceId(0));
        empty.or((self.members.len() < MEMBERS_MAX).then_some(self.members.len())).map(|place| place as u8)
    }

    /// Takes a freshly formatted capacity device in, at the place that its superblock names: one that
    /// [`Group::free_place`] gave.
    pub fn add_member(&mut self, superblock: Superblock) {
        assert!(Some(superblock.index) == self.free_place(), "a device comes to a free place");
        assert!(superblock.geometry.log.len == 0, "a group has one log");
        let place = superblock.index as usize;
        let mut member = Member::new(superblock.device, superblock.geometry);
        for extent in 0..superblock.geometry.extent_count() {
            member.free.insert(extent);
        }
        if place == self.members.len() {
            self.members.push(member);
            self.superblocks.push(superblock);
        } else {
            self.members[place] = member;
            self.superblocks[place] = superblock;
        }
    }

    /// Begins to take a device out. No component may stand on it, nor be made on it from now on. The log is destaged
    /// beyond everything that speaks of the device; [`Group::finish_remove`] tells when that is so.
    ///
    /// # Errors
    /// When it cannot go.
    pub fn begin_remove(&mut self, device: DeviceId) -> Result<(), RemoveRefusal> {
        let place = self.member_of(device).ok_or(RemoveRefusal::Unknown)?;
        let member = &mut self.members[place as usize];
        if place == 0 {
            return Err(RemoveRefusal::HoldsLog);
        }
        if member.component_count > 0 {
            return Err(RemoveRefusal::InUse(member.component_count));
        }
        member.is_leaving = true;
        self.leaving.push((place, self.log.head));
        self.drain();
        Ok(())
    }

    /// Empties the place of a device that is leaving, once nothing in the log speaks of it. False: not yet.
    pub fn finish_remove(&mut self, device: DeviceId) -> bool {
        let Some(place) = self.member_of(device) else { return true };
        let Some(index) = self.leaving.iter().position(|(leaving, _)| *leaving == place) else {
            return false;
        };
        let (_, position) = self.leaving[index];
        let has_io = self.io.iter().any(|(_, pending)| pending.member == place);
        let is_quiet = self.checkpoint.is_idle() && !has_io && matches!(self.phase, Phase::Open);
        let is_lost = !self.members[place as usize].is_in_service();
        let is_clean = self.members[place as usize].dirty_pages.count() == 0 || is_lost;
        if self.log.anchor.tail < position || !is_quiet || !is_clean {
            return false;
        }
        self.leaving.remove(index);
        if self.leaving.is_empty() {
            self.end_drain();
        }
        let placeholder = Superblock::empty_place(&self.superblocks[0], place);
        self.members[place as usize] = Member::new(DeviceId(0), Geometry::default());
        self.superblocks[place as usize] = placeholder;
        self.failed_members &= !(1 << place);
        true
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
