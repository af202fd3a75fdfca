//! Snapshots of a disk in its record: asked for, taken by the owner, deleted (docs/design/0047).

use super::parts::{NoSnapshot, Snapshot};
use super::{DiskRecord, Objection, Transition};
use crate::limits::SNAPSHOTS_MAX;
use base::ComponentId;
use replication::{Roster, Standing};

impl DiskRecord {
    /// Asks for a snapshot of that name. The owner takes it as soon as it can.
    ///
    /// # Errors
    /// When the disk cannot have one now.
    pub fn ask_snapshot(&self, name: &str) -> Result<Transition, Objection> {
        self.expect_active()?;
        self.expect_one_layout()?;
        let refuse = |why| Err(Objection::Snapshot(why));
        if self.snapshots.named(name).is_some() {
            return refuse(NoSnapshot::Taken(name.to_owned()));
        }
        if self.snapshots.taken.len() >= SNAPSHOTS_MAX {
            return refuse(NoSnapshot::TooMany);
        }
        if (0..self.layout.place_count()).any(|place| self.layout.place_code(place).is_some()) {
            return refuse(NoSnapshot::Parity);
        }
        if self.growth.as_ref().is_some_and(|growth| growth.layout.boundary().is_some()) {
            return Err(Objection::Moving);
        }
        let mut next = self.clone();
        if !next.roster.snapshots.ask() {
            return refuse(NoSnapshot::Asked(self.snapshots.last_asked.clone().unwrap_or_default()));
        }
        next.snapshots.last_asked = Some(name.to_owned());
        Ok(self.changed(next))
    }

    /// Asks for a snapshot no more that was asked for and is not taken.
    ///
    /// # Errors
    /// When none is asked for.
    pub fn cancel_snapshot(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        if next.roster.snapshots.asked.take().is_none() {
            return Err(Objection::Snapshot(NoSnapshot::Unknown(String::new())));
        }
        next.roster.snapshots.to_sweep = true;
        Ok(self.changed(next))
    }

    /// Deletes a snapshot. It is gone at once; its space comes back by and by.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn delete_snapshot(&self, name: &str) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let index = next.snapshots.taken.iter().position(|one| one.name == name);
        let index = index.ok_or_else(|| Objection::Snapshot(NoSnapshot::Unknown(name.to_owned())))?;
        let gone = next.snapshots.taken.remove(index);
        next.roster.snapshots.delete(gone.number);
        Ok(self.changed(next))
    }

    /// Whether it has snapshots, or is to have one.
    pub fn has_snapshots(&self) -> bool {
        !self.snapshots.taken.is_empty() || self.roster.snapshots.asked.is_some()
    }

    /// Refuses what cannot be done with a disk that has snapshots.
    pub(super) fn expect_no_snapshots(&self, what: &'static str) -> Result<(), Objection> {
        match self.has_snapshots() {
            true => Err(Objection::Snapshot(NoSnapshot::Has(what))),
            false => Ok(()),
        }
    }

    /// Refuses to take a component out that has a snapshot which no other active component of its place has.
    pub(super) fn expect_snapshots_elsewhere(&self, component: ComponentId) -> Result<(), Objection> {
        let Some(member) = self.roster.member(component) else { return Ok(()) };
        let is_other = |one: &&replication::Member| {
            one.place == member.place && one.component != component && one.standing == Standing::Active
        };
        let has_other = |number: u32| {
            self.roster.members.iter().filter(is_other).any(|other| !other.lacks.contains(number))
        };
        let is_only = |number: u32| {
            member.standing != Standing::Stale && !member.lacks.contains(number) && !has_other(number)
        };
        match self.snapshots.taken.iter().find(|one| is_only(one.number)) {
            Some(one) => Err(Objection::Snapshot(NoSnapshot::OnlyOn { component, name: one.name.clone() })),
            None => Ok(()),
        }
    }

    /// Takes over what the owner says of snapshots: one that it has taken gets the name that was asked for.
    pub(super) fn follow_snapshots(&mut self, before: &Roster, taken_ns: u64) {
        let taken = self.roster.snapshots.taken.iter().filter(|number| !before.snapshots.has(**number));
        for number in taken {
            let name = self.snapshots.last_asked.clone().unwrap_or_else(|| format!("snapshot-{number}"));
            self.snapshots.taken.push(Snapshot { number: *number, name, size: self.size, taken_ns });
        }
    }

    /// Whether the names agree with the numbers of the roster.
    pub(super) fn has_fitting_snapshots(&self) -> bool {
        let numbers = &self.roster.snapshots;
        let is_ascending = numbers.taken.windows(2).all(|two| two[0] < two[1]);
        let are_same = self.snapshots.taken.iter().map(|one| one.number).eq(numbers.taken.iter().copied());
        let greatest = numbers.taken.last().copied().max(numbers.asked).unwrap_or(0);
        is_ascending
            && are_same
            && greatest <= numbers.last
            && numbers.taken.first().is_none_or(|one| *one != 0)
    }
}
