//! A disk that is made what it was in a snapshot (docs/design/0047, "Rolling back").
//!
//! From the moment when blocks may be copied until all are, the record says so. As long as it does, no guest gets the disk, whoever copies
//! or has copied. Must never let a rollback end that has not copied everything.

use super::cloned::Clones;
use super::parts::{NoSnapshot, Rollback};
use super::{DiskRecord, Objection, Transition};
use crate::attaching::Claim;

impl Rollback {
    /// Whether the rollback needs that snapshot until it is done.
    pub fn needs(&self, number: u32) -> bool {
        [self.to, self.since, self.before].contains(&number)
    }
}

impl DiskRecord {
    /// Refuses what must not be done with a disk that may hold parts of two states.
    ///
    /// # Errors
    /// While a rollback is not done.
    pub fn expect_not_rolling_back(&self) -> Result<(), Objection> {
        match self.rollback {
            Some(rollback) => {
                Err(Objection::Snapshot(NoSnapshot::RollingBack(self.snapshot_name(rollback.to))))
            }
            None => Ok(()),
        }
    }

    /// The name of a snapshot, or its number if there is none.
    pub fn snapshot_name(&self, number: u32) -> String {
        let found = self.snapshots.taken.iter().find(|one| one.number == number);
        found.map_or_else(|| number.to_string(), |one| one.name.clone())
    }

    /// Asks for the snapshot that a rollback takes first. It is not refused where an earlier attempt was cut short.
    ///
    /// # Errors
    /// When the disk cannot have a snapshot now.
    pub fn ask_before_rollback(&self, name: &str) -> Result<Transition, Objection> {
        if self.snapshots.named(name).is_some() {
            return Err(Objection::Snapshot(NoSnapshot::Taken(name.to_owned())));
        }
        DiskRecord { rollback: None, ..self.clone() }.expect_room_for_snapshot()?;
        self.asked(name)
    }

    /// The process `by` begins to copy back what differs between the snapshots `to` and `since`. It has just taken the latter, and nobody else
    /// has written to the disk since then. A former attempt that was cut short is replaced, and what only that one needed is deleted.
    ///
    /// # Errors
    /// When one of the snapshots is not there.
    pub fn begin_rollback(
        &self,
        (to, since): (u32, u32),
        (keeps, was_shared): (bool, bool),
        by: Claim,
        clones: &Clones,
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        for number in [to, since] {
            if !self.roster.snapshots.has(number) {
                return Err(Objection::Snapshot(NoSnapshot::Unknown(number.to_string())));
            }
        }
        let former = self.rollback;
        let (before, keeps) = former.map_or((since, keeps), |former| (former.before, keeps || former.keeps));
        let is_shared = was_shared || former.is_some_and(|former| former.is_shared);
        let mut next = self.clone();
        let rollback = Rollback { to, since, before, keeps, is_shared, by: Some(by) };
        next.rollback = Some(rollback);
        if let Some(former) = former.filter(|former| !rollback.needs(former.since)) {
            next.drop_unless_cloned(former.since, clones);
        }
        Ok(self.changed(next))
    }

    /// Everything is copied: guests may have the disk again. The snapshots that the rollback took go, but for the one that is to be kept.
    ///
    /// # Errors
    /// When another attempt has begun since, or none.
    pub fn finish_rollback(&self, since: u32, clones: &Clones) -> Result<Transition, Objection> {
        let rollback = self.expect_rollback(since)?;
        let mut next = DiskRecord { rollback: None, ..self.clone() };
        next.access.is_shared |= rollback.is_shared;
        if rollback.since != rollback.before && rollback.since != rollback.to {
            next.drop_unless_cloned(rollback.since, clones);
        }
        if !rollback.keeps && rollback.before != rollback.to {
            next.drop_unless_cloned(rollback.before, clones);
        }
        Ok(self.changed(next))
    }

    /// The process that copies cannot go on. The rollback stays unfinished until it is repeated.
    ///
    /// # Errors
    /// When another attempt has begun since, or none.
    pub fn stop_rollback(&self, since: u32) -> Result<Transition, Objection> {
        let rollback = self.expect_rollback(since)?;
        Ok(self.changed(DiskRecord { rollback: Some(Rollback { by: None, ..rollback }), ..self.clone() }))
    }

    fn expect_rollback(&self, since: u32) -> Result<Rollback, Objection> {
        self.expect_active()?;
        let found = self.rollback.filter(|rollback| rollback.since == since);
        found.ok_or(Objection::Snapshot(NoSnapshot::NoRollback))
    }

    /// Deletes a snapshot that a rollback took, unless somebody has made a clone of it meanwhile.
    fn drop_unless_cloned(&mut self, number: u32, clones: &Clones) {
        if self.clones_of(number, clones) == 0 && self.roster.snapshots.delete(number) {
            self.snapshots.taken.retain(|one| one.number != number);
        }
    }
}
