//! Clones: disks that show a snapshot of another disk wherever they have no region of their own (docs/design/0050).

use super::cloned::Clones;
use super::parts::NoSnapshot;
use super::{Disagreement, DiskRecord, Objection, Transition};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use layout::Layout;
use replication::Origin;

/// Stripe units, and the parts that a disk is put together from, begin with a region.
const REGION_SIZE: u64 = BLOCKS_PER_REGION as u64 * BLOCK_SIZE;

impl DiskRecord {
    /// How many disks are clones of a snapshot: as the record counts, or as the records of clones say, whichever is more.
    pub fn clones_of(&self, number: u32, clones: &Clones) -> u32 {
        self.clones.get(&number).copied().unwrap_or(0).max(clones.count(self.id, number))
    }

    /// Has the record count the clones that there are, and no others: for records of a directory that is made anew.
    pub(crate) fn count_clones(&mut self, clones: &Clones) {
        let counted = self.snapshots.taken.iter().map(|one| (one.number, clones.count(self.id, one.number)));
        self.clones = counted.filter(|(_, count)| *count > 0).collect();
    }

    /// Another disk becomes a clone of a snapshot of this one: the snapshot, and with it the disk, stays as long as it is.
    ///
    /// # Errors
    /// When there is no such snapshot, or the disk goes.
    pub fn add_clone(&self, name: &str) -> Result<(Transition, Origin), Objection> {
        self.expect_active()?;
        let found = self.snapshots.named(name);
        let found = found.ok_or_else(|| Objection::Snapshot(NoSnapshot::Unknown(name.to_owned())))?;
        let origin = Origin { disk: self.id, snapshot: found.number, size: found.size };
        let mut next = self.clone();
        *next.clones.entry(found.number).or_default() += 1;
        Ok((self.changed(next), origin))
    }

    /// A clone of that snapshot is gone, or shares nothing with it any more.
    ///
    /// # Errors
    /// When none is known.
    pub fn drop_clone(&self, number: u32) -> Result<Transition, Objection> {
        let mut next = self.clone();
        let Some(count) = next.clones.get_mut(&number) else { return Err(Objection::Clone("has no clone")) };
        *count -= 1;
        next.clones.retain(|_, count| *count > 0);
        Ok(self.changed(next))
    }

    /// The disk has copied all that it shared with its origin: it is an ordinary one.
    ///
    /// # Errors
    /// When it is no clone, or has snapshots: they show what they share with the origin, too.
    pub fn leave_origin(&self) -> Result<Transition, Objection> {
        self.expect_leaves_origin()?;
        let transition = self.changed(DiskRecord { origin: None, ..self.clone() });
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// Refuses that a disk is made independent of its origin that is no clone, or has snapshots of its own.
    ///
    /// # Errors
    /// When that is so.
    pub fn expect_leaves_origin(&self) -> Result<(), Objection> {
        self.expect_active()?;
        self.expect_no_snapshots("stays a clone")?;
        match self.origin {
            Some(_) => Ok(()),
            None => Err(Objection::Clone("is no clone")),
        }
    }

    /// Refuses what cannot be done with a clone.
    pub(super) fn expect_no_origin(&self, what: &'static str) -> Result<(), Objection> {
        match self.origin {
            Some(_) => Err(Objection::OfClone(what)),
            None => Ok(()),
        }
    }

    /// Refuses that a disk goes that others are clones of.
    pub(super) fn expect_no_clones(&self, clones: &Clones) -> Result<(), Objection> {
        let mut numbers = self.clones.keys().copied().chain(clones.numbers(self.id));
        numbers.try_for_each(|number| self.expect_not_cloned(number, clones))
    }

    /// Refuses that a snapshot goes that disks are clones of.
    pub(super) fn expect_not_cloned(&self, number: u32, clones: &Clones) -> Result<(), Objection> {
        match self.clones_of(number, clones) {
            0 => Ok(()),
            count => {
                let name = self.snapshot_name(number);
                Err(Objection::Snapshot(NoSnapshot::HasClones { name, count }))
            }
        }
    }

    /// Refuses a clone whose layout cannot be one's.
    pub(super) fn expect_fit_for_origin(&self) -> Result<(), Objection> {
        match self.origin {
            Some(_) if has_parity(&self.layout) => Err(Objection::Clone(
                "cannot have parity as long as it is a clone: give it copies (`--policy method=mirror`)",
            )),
            Some(origin) if self.size < origin.size => {
                Err(Objection::Clone("cannot be smaller than what it is a clone of"))
            }
            Some(_) if !has_whole_regions(&self.layout) => Err(Objection::Clone(
                "has stripe units that are no multiples of 64 KiB, as those of clones must be",
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn check_clones(&self) -> Result<(), Disagreement> {
        let is_there = |number: &u32| self.snapshots.taken.iter().any(|one| one.number == *number);
        let is_right = self.expect_fit_for_origin().is_ok() && self.clones.keys().all(is_there);
        if is_right { Ok(()) } else { Err(Disagreement::Clones) }
    }
}

pub(super) fn has_parity(layout: &Layout) -> bool {
    (0..layout.place_count()).any(|place| layout.place_code(place).is_some())
}

/// Whether no region of the disk stands in two components.
fn has_whole_regions(layout: &Layout) -> bool {
    let is_whole = |bytes: u64| bytes.is_multiple_of(REGION_SIZE);
    match layout {
        Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => true,
        Layout::Stripe { unit, columns } => is_whole(*unit) && columns.iter().all(has_whole_regions),
        Layout::Concatenation { .. } => {
            layout.parts().iter().all(|part| is_whole(part.size()) && has_whole_regions(part))
        }
        Layout::Moving { .. } => false,
    }
}
