//! Due times of disks: of those with an owner here, and of those without one.

use base::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Due times of disks. Disks are named by their keys; a disk may be gone when its time comes.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Disks whose owner has something to copy.
    copying: BTreeSet<u32>,
    /// Disks whose owner compares rows.
    checking: BTreeSet<u32>,
    /// Disks whose owner is to be advanced now; some several times.
    touched: BinaryHeap<Reverse<u32>>,
    /// Disks whose owner has reads that wait for a lease.
    awaiting_lease: BTreeSet<u32>,
    /// When owners are to be advanced; entries may be out of date.
    alarms: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The soonest alarm of each disk that has one.
    armed: BTreeMap<u32, Instant>,
    /// When disks without an owner here are to be looked at; entries may be out of date.
    looks: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Schedule {
    /// The owner of a disk has a new input.
    pub(crate) fn touch(&mut self, disk: u32) {
        // Most are told of several things in a row.
        if self.touched.peek() != Some(&Reverse(disk)) {
            self.touched.push(Reverse(disk));
        }
    }

    /// The next disk whose owner is to be advanced now, in the order of their keys.
    pub(crate) fn next_touched(&mut self) -> Option<u32> {
        let next = self.touched.pop()?;
        while self.touched.peek() == Some(&next) {
            self.touched.pop();
        }
        Some(next.0)
    }

    /// The owner of a disk has reads that wait for a lease.
    pub(crate) fn await_lease(&mut self, disk: u32) {
        self.awaiting_lease.insert(disk);
    }

    /// A node gave or renewed a lease: owners that wait for one look again.
    pub(crate) fn lease_came(&mut self) {
        self.touched.extend(std::mem::take(&mut self.awaiting_lease).into_iter().map(Reverse));
    }

    /// Sets the alarm of a disk's owner unless an earlier one is set. A later alarm beside an earlier one would be
    /// set again each time, and their number would grow.
    pub(crate) fn arm(&mut self, disk: u32, at: Instant) {
        if self.armed.get(&disk).is_none_or(|armed| at < *armed) {
            self.armed.insert(disk, at);
            self.alarms.push(Reverse((at, disk)));
        }
    }

    /// Touches the disks whose alarms are due.
    pub(crate) fn ring(&mut self, now: Instant) {
        while let Some(&Reverse((at, disk))) = self.alarms.peek()
            && at <= now
        {
            self.alarms.pop();
            if self.armed.get(&disk) == Some(&at) {
                self.armed.remove(&disk);
            }
            self.touch(disk);
        }
    }

    /// Whether the owner of a disk has something to copy.
    pub(crate) fn set_copying(&mut self, disk: u32, is_copying: bool) {
        match is_copying {
            true => self.copying.insert(disk),
            false => self.copying.remove(&disk),
        };
    }

    /// Whether the owner of a disk compares rows.
    pub(crate) fn set_checking(&mut self, disk: u32, is_checking: bool) {
        match is_checking {
            true => self.checking.insert(disk),
            false => self.checking.remove(&disk),
        };
    }

    /// How many owners share the pace of comparing rows, at least one.
    pub(crate) fn checking(&self) -> u64 {
        self.checking.len().max(1) as u64
    }

    /// The disks whose owner had something to copy when it was advanced last, in the order of their keys.
    pub(crate) fn copying(&self) -> Vec<u32> {
        self.copying.iter().copied().collect()
    }

    /// Whether some owner had something to copy.
    pub(crate) fn has_copies(&self) -> bool {
        !self.copying.is_empty()
    }

    /// A disk is to be looked at then.
    pub(crate) fn look(&mut self, disk: u32, at: Instant) {
        self.looks.push(Reverse((at, disk)));
    }

    /// The next disk that is to be looked at by now, and the time that was set.
    pub(crate) fn next_look(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let &Reverse((at, disk)) = self.looks.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.looks.pop();
        Some((at, disk))
    }

    /// When the next disk is due; copies are paced elsewhere.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let touched = (!self.touched.is_empty()).then_some(now);
        let alarm = self.alarms.peek().map(|Reverse((at, _))| *at);
        let look = self.looks.peek().map(|Reverse((at, _))| *at);
        [touched, alarm, look].into_iter().flatten().min()
    }
}
