//! Snapshots of a disk in its record: asked for, taken by the owner, deleted (docs/design/0047).

use super::parts::{NoSnapshot, Snapshot};
use super::{DiskRecord, Objection, Transition};
use crate::limits::SNAPSHOTS_MAX;
use base::ComponentId;
use replication::{Member, Roster, Standing};

impl DiskRecord {
    /// Copies of each part that have a snapshot as a whole and count, and copies that there are to be; the least of all parts of each.
    pub fn copies_with(&self, number: u32) -> (usize, usize) {
        let places = 0..self.layout.place_count();
        let with_it = |place: usize| {
            let members = self.roster.members.iter().filter(|one| usize::from(one.place) == place);
            members.filter(|one| one.standing == Standing::Active && !one.lacks.contains(number)).count()
        };
        let wanted = |place: usize| self.layout.place(place).map_or(0, <[_]>::len);
        (places.clone().map(with_it).min().unwrap_or(0), places.map(wanted).min().unwrap_or(0))
    }

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
            return Err(Objection::Snapshot(NoSnapshot::NotAsked));
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
        if let Some(count) = next.clones.get(&next.snapshots.taken[index].number) {
            return Err(Objection::Snapshot(NoSnapshot::HasClones { name: name.to_owned(), count: *count }));
        }
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
        self.expect_snapshots_stay(member.place, |id| id != component)
    }

    /// Refuses that of a place only those components stay, if a snapshot of one that goes is on none of them that is active.
    pub(super) fn expect_snapshots_stay(
        &self,
        place: u16,
        stays: impl Fn(ComponentId) -> bool,
    ) -> Result<(), Objection> {
        let here = || self.roster.members.iter().filter(|one| one.place == place);
        for snapshot in &self.snapshots.taken {
            let has_it = |one: &&Member| !one.lacks.contains(snapshot.number);
            let is_kept =
                here().any(|one| stays(one.component) && one.standing == Standing::Active && has_it(&one));
            let mut going = here().filter(|one| !stays(one.component) && one.standing != Standing::Stale);
            if let Some(one) = going.find(has_it).filter(|_| !is_kept) {
                let (component, name) = (one.component, snapshot.name.clone());
                return Err(Objection::Snapshot(NoSnapshot::OnlyOn { component, name }));
            }
        }
        Ok(())
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
