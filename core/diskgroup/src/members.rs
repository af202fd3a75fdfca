//! The devices of a group by their indices: who is there, who failed, and what their superblocks say.

use crate::format::superblock::Superblock;
use crate::log::BatchStart;
use crate::member::{Member, Standing};
use base::DeviceId;
use std::ops::{Index, IndexMut};

/// All devices of a group by index, vacant indices among them. Index 0 holds the log.
#[derive(Debug)]
pub(crate) struct Members {
    list: Vec<Member>,
    superblocks: Vec<Superblock>,
    /// Bit *i*: the device with index *i* failed, and the anchor is to tell so.
    failed: u8,
}

impl Index<u8> for Members {
    type Output = Member;

    fn index(&self, index: u8) -> &Member {
        &self.list[index as usize]
    }
}

impl IndexMut<u8> for Members {
    fn index_mut(&mut self, index: u8) -> &mut Member {
        &mut self.list[index as usize]
    }
}

impl Members {
    /// The devices with these superblocks, which come in the order of their indices.
    pub(crate) fn new(superblocks: Vec<Superblock>) -> Members {
        let is_in_order = superblocks.iter().enumerate().all(|(index, one)| one.index as usize == index);
        assert!(is_in_order, "superblocks come in the order of their indices");
        let list = superblocks.iter().map(Member::new).collect();
        Members { list, superblocks, failed: 0 }
    }

    pub(crate) fn len(&self) -> u8 {
        self.list.len() as u8
    }

    pub(crate) fn get(&self, index: u8) -> Option<&Member> {
        self.list.get(index as usize)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, index: u8) -> Option<&mut Member> {
        self.list.get_mut(index as usize)
    }

    /// The members by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, &Member)> {
        (0..).zip(&self.list)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.list.iter_mut()
    }

    /// The superblocks as they are in force, by index.
    pub(crate) fn superblocks(&self) -> &[Superblock] {
        &self.superblocks
    }

    /// Takes over superblocks that were written again with another membership.
    pub(crate) fn set_superblocks(&mut self, superblocks: Vec<Superblock>) {
        assert!(superblocks.len() == self.superblocks.len(), "indices do not come or go by this");
        self.superblocks = superblocks;
    }

    /// A device comes to a vacant index, or to the one behind the last.
    pub(crate) fn add(&mut self, superblock: Superblock) {
        let index = superblock.index as usize;
        assert!(index <= self.list.len(), "indices are taken in order");
        assert!(self.list.get(index).is_none_or(Member::is_vacant), "a device comes to a vacant index");
        assert!(superblock.geometry.log.len == 0, "a group has one log");
        let mut member = Member::new(&superblock);
        (0..superblock.geometry.extent_count()).for_each(|extent| member.space.release(extent));
        if index == self.list.len() {
            self.list.push(member);
            self.superblocks.push(superblock);
        } else {
            (self.list[index], self.superblocks[index]) = (member, superblock);
        }
    }

    /// A device leaves: its index is vacant.
    pub(crate) fn remove(&mut self, index: u8) {
        let empty = Superblock::vacant(&self.superblocks[0], index);
        self.list[index as usize] = Member::new(&empty);
        self.superblocks[index as usize] = empty;
        self.failed &= !(1 << index);
    }

    /// The index of a device.
    pub(crate) fn index_of(&self, device: DeviceId) -> Option<u8> {
        let is_it = |member: &Member| member.id == device && device != DeviceId(0);
        self.list.iter().position(is_it).map(|index| index as u8)
    }

    /// Whether the index has a device which was not there when the group was opened, given up by now or not.
    pub(crate) fn is_absent(&self, index: u8) -> bool {
        self.superblocks.get(index as usize).is_some_and(Superblock::is_away)
    }

    /// Bit *i*: the device with index *i* failed.
    pub(crate) fn failed(&self) -> u8 {
        self.failed
    }

    /// A capacity device failed: the anchor will tell so.
    pub(crate) fn fail(&mut self, index: u8, why: String) {
        assert!(index > 0, "without its log device a group has failed as a whole");
        self.list[index as usize].fail(why);
        self.failed |= 1 << index;
    }

    /// The anchor tells which devices failed before.
    pub(crate) fn recover_failed(&mut self, failed: u8) {
        self.failed = failed;
        for (index, member) in self.list.iter_mut().enumerate() {
            if failed >> index & 1 == 1 {
                member.fail("it failed before and must be replaced".to_owned());
            }
        }
    }

    /// What the anchor said of devices that have left since is not said of the next ones with their indices.
    pub(crate) fn forget_failed_leavers(&mut self) {
        for (index, member) in self.list.iter().enumerate().filter(|(_, member)| member.is_vacant()) {
            debug_assert!(member.component_count == 0, "nothing stands on a vacant index");
            self.failed &= !(1 << index);
        }
    }

    /// The first batch of the log that speaks of a member that is away and may come back.
    pub(crate) fn away_since(&self) -> Option<BatchStart> {
        self.list.iter().filter_map(Member::away_since).min_by_key(|start| start.position)
    }

    /// A member that is away has failed from now on. False if it is not away.
    pub(crate) fn give_up(&mut self, index: u8) -> bool {
        let is_away = matches!(self.list[index as usize].standing(), Standing::Away { .. });
        if is_away {
            let why =
                "it was away until the log needed the space of what was kept for it: it must be replaced";
            self.fail(index, why.to_owned());
        }
        is_away
    }

    /// Whether `tail` is past all that the log says of devices that are leaving.
    pub(crate) fn is_past_leavers(&self, tail: u64) -> bool {
        self.list.iter().filter_map(Member::leaves_at).all(|position| tail >= position)
    }

    /// Whether a device is leaving.
    pub(crate) fn has_leavers(&self) -> bool {
        self.list.iter().any(|member| member.leaves_at().is_some())
    }
}
