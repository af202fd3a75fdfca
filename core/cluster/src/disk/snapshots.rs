//! Snapshots of a disk in its record: asked for, taken by the owner, deleted (docs/design/0047).

use super::cloned::Clones;
use super::clones::has_parity;
use super::parts::{NoSnapshot, Snapshot};
use super::{DiskRecord, Objection, Transition};
use crate::levels::Level;
use crate::limits::SNAPSHOTS_MAX;
use base::ComponentId;
use layout::Side;
use placement::Every;
use replication::{Member, Roster, Standing, Together};
use std::collections::BTreeSet;

impl Snapshot {
    /// Whether it is one of those that a schedule keeps and deletes.
    fn is_kept_by(&self, every: Every) -> bool {
        self.schedule == Some(every) && !self.is_pinned
    }
}

impl DiskRecord {
    /// Copies of each part, or members of rows, that have a snapshot as a whole and count, and those that there are to be; the least of all parts of each. While the disk moves:
    /// those of the layout that it had, from which the other one gets them last.
    pub fn copies_with(&self, number: u32) -> (usize, usize) {
        let wanted = |place: usize| self.layout.place(place).map_or(0, <[_]>::len);
        let with_it = |place: usize| self.members_with(place, number);
        let places = || self.places_with_snapshots();
        (places().map(with_it).min().unwrap_or(0), places().map(wanted).min().unwrap_or(0))
    }

    /// Whether a snapshot can be read as a whole, as far as components are there that count: of each part from one copy, or from as many members of rows as they have data units.
    pub fn is_readable(&self, number: u32) -> bool {
        self.places_with_snapshots().all(|place| self.members_with(place, number) >= self.needed_of(place))
    }

    /// Components of a place that it takes to read what stands in it.
    fn needed_of(&self, place: usize) -> usize {
        self.layout.place_code(place).map_or(1, |code| usize::from(code.data()))
    }

    fn places_with_snapshots(&self) -> std::ops::Range<usize> {
        0..self.layout.side(Side::New).map_or(self.layout.place_count(), |(first, _)| first)
    }

    fn members_with(&self, place: usize, number: u32) -> usize {
        let members = self.roster.members.iter().filter(|one| usize::from(one.place) == place);
        members.filter(|one| one.standing == Standing::Active && !one.lacks.contains(number)).count()
    }

    /// Asks for a snapshot of that name. The owner takes it as soon as it can.
    ///
    /// # Errors
    /// When the disk cannot have one now.
    pub fn ask_snapshot(&self, name: &str, level: Level) -> Result<Transition, Objection> {
        if self.snapshots.named(name).is_some() {
            return Err(Objection::Snapshot(NoSnapshot::Taken(name.to_owned())));
        }
        self.expect_snapshots_possible(level)?;
        self.asked(name)
    }

    /// The record with a snapshot of that name asked for, whatever else the disk is doing.
    pub(super) fn asked(&self, name: &str) -> Result<Transition, Objection> {
        let mut next = self.clone();
        if !next.roster.snapshots.ask() {
            let other = self.snapshots.last_asked.clone().unwrap_or_default();
            return Err(Objection::Snapshot(NoSnapshot::Asked(other)));
        }
        next.snapshots.last_asked = Some(name.to_owned());
        next.snapshots.asked_for = None;
        Ok(self.changed(next))
    }

    /// Asks for a snapshot that the disk is to have at one moment with others: its owner holds changes back until those of all do.
    ///
    /// # Errors
    /// When the disk cannot have one now.
    pub fn ask_together(&self, name: &str, level: Level) -> Result<Transition, Objection> {
        let mut asked = self.ask_snapshot(name, level)?;
        asked.record.roster.snapshots.together = Some(Together::Hold);
        Ok(asked)
    }

    /// Has the owner take a snapshot that the disk is to have at one moment with others: the owners of all hold changes back.
    ///
    /// # Errors
    /// When its owner does not say so.
    pub fn mark_together(&self, number: u32) -> Result<Transition, Objection> {
        self.expect_together(number, Together::Held)?;
        let mut next = self.clone();
        next.roster.snapshots.together = Some(Together::Mark);
        Ok(self.changed(next))
    }

    /// The snapshot is there: the owners of all disks that are to have it at one moment say that they have taken it. To be stored for all
    /// of them in one transaction.
    ///
    /// # Errors
    /// When its owner does not say so.
    pub fn finish_together(&self, number: u32, taken_ns: u64) -> Result<Transition, Objection> {
        self.expect_together(number, Together::Marked)?;
        let mut next = self.clone();
        next.roster.snapshots.taken.push(number);
        (next.roster.snapshots.asked, next.roster.snapshots.together) = (None, None);
        next.follow_snapshots(&self.roster, taken_ns);
        Ok(self.changed(next))
    }

    fn expect_together(&self, number: u32, said: Together) -> Result<(), Objection> {
        self.expect_active()?;
        let snapshots = &self.roster.snapshots;
        match snapshots.asked == Some(number) && snapshots.together == Some(said) {
            true => Ok(()),
            false => Err(Objection::Snapshot(NoSnapshot::NotAsked)),
        }
    }

    /// Asks for a snapshot of a schedule that is due at `seconds` since 1970.
    ///
    /// # Errors
    /// When none is due any more, or the disk cannot have one now.
    pub fn ask_scheduled(
        &self,
        name: &str,
        (every, seconds): (Every, u64),
        level: Level,
    ) -> Result<Transition, Objection> {
        let due = self.snapshot_due(every, seconds).ok_or(Objection::Snapshot(NoSnapshot::NotDue))?;
        let mut asked = self.ask_snapshot(name, level)?;
        asked.record.snapshots.asked_for = Some((every, due));
        Ok(asked)
    }

    /// When the snapshot of a schedule was due that is missing at `seconds` since 1970; none if none is missing. However many times have
    /// passed, one is missing.
    ///
    /// A record that tells of a later time than now was written while a clock was ahead. By less than the schedule's period it is waited for;
    /// by more the snapshot is due, or a clock that was ahead by a year would end snapshots for a year.
    pub fn snapshot_due(&self, every: Every, seconds: u64) -> Option<u64> {
        self.policy.snapshots.of(every)?;
        let due = every.due_at(seconds);
        let is_missing = self
            .snapshots
            .served
            .get(&every)
            .is_none_or(|served| *served < due || self.is_served_ahead(every, seconds));
        is_missing.then_some(due)
    }

    /// Whether the last snapshot of a schedule was due later than now by more than the schedule's period.
    pub(crate) fn is_served_ahead(&self, every: Every, seconds: u64) -> bool {
        let ahead = self.snapshots.served.get(&every).and_then(|served| served.checked_sub(seconds));
        ahead.is_some_and(|ahead| ahead > every.period().as_secs())
    }

    /// When the next snapshot of a schedule is taken: now, or later; in seconds since 1970.
    pub fn next_snapshot(&self, every: Every, seconds: u64) -> u64 {
        let served = self.snapshots.served.get(&every).copied().unwrap_or(0);
        match self.snapshot_due(every, seconds) {
            Some(_) => seconds,
            None => every.due_after(seconds.max(served)),
        }
    }

    /// Refuses a snapshot that the disk cannot have as it is, or does not have room for, or that records of the cluster's level cannot say.
    pub(crate) fn expect_snapshots_possible(&self, level: Level) -> Result<(), Objection> {
        let early = level.check_snapshots(has_parity(&self.layout));
        early.map_err(|early| Objection::Snapshot(NoSnapshot::TooEarly(early)))?;
        self.expect_room_for_snapshot()
    }

    /// Refuses a snapshot that the disk cannot have as it is.
    pub(super) fn expect_room_for_snapshot(&self) -> Result<(), Objection> {
        self.expect_active()?;
        self.expect_one_layout()?;
        if self.snapshots.taken.len() >= SNAPSHOTS_MAX {
            return Err(Objection::Snapshot(NoSnapshot::TooMany));
        }
        if self.growth.as_ref().is_some_and(|growth| growth.layout.boundary().is_some()) {
            return Err(Objection::Moving);
        }
        self.expect_not_rolling_back()
    }

    /// The snapshots that schedules keep no longer, the oldest first: of each schedule of the policy all but the newest that it keeps. Those
    /// of schedules that the policy no longer has stay, as pinned ones do, and those that disks are clones of or a rollback needs.
    pub fn expired_snapshots(&self, clones: &Clones) -> Vec<&Snapshot> {
        let expired = |snapshot: &&Snapshot| {
            let Some(schedule) = snapshot.schedule.and_then(|every| self.policy.snapshots.of(every)) else {
                return false;
            };
            let is_newer = |one: &&Snapshot| one.number > snapshot.number && one.is_kept_by(schedule.every);
            let newer = self.snapshots.taken.iter().filter(is_newer).count();
            let is_needed = self.clones_of(snapshot.number, clones) > 0
                || self.rollback.is_some_and(|rollback| rollback.needs(snapshot.number));
            snapshot.is_kept_by(schedule.every) && !is_needed && newer >= usize::from(schedule.keep)
        };
        self.snapshots.taken.iter().filter(expired).collect()
    }

    /// Deletes a snapshot, if its schedule keeps it no longer.
    ///
    /// # Errors
    /// When the disk is being made or deleted.
    pub fn expire_snapshot(&self, name: &str, clones: &Clones) -> Result<Option<Transition>, Objection> {
        match self.expired_snapshots(clones).iter().any(|one| one.name == name) {
            true => self.delete_snapshot(name, clones).map(Some),
            false => Ok(None),
        }
    }

    /// Gives a snapshot another name. It belongs to no schedule from then on.
    ///
    /// # Errors
    /// When there is none of that name, or the other name is taken.
    pub fn rename_snapshot(&self, name: &str, to: &str) -> Result<Transition, Objection> {
        if self.snapshots.named(to).is_some() {
            return Err(Objection::Snapshot(NoSnapshot::Taken(to.to_owned())));
        }
        self.change_snapshot(name, |one| {
            one.name = to.to_owned();
            one.schedule = None;
        })
    }

    /// Has no schedule delete a snapshot, or its schedule delete it again.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn pin_snapshot(&self, name: &str, is_pinned: bool) -> Result<Transition, Objection> {
        self.change_snapshot(name, |one| one.is_pinned = is_pinned)
    }

    fn change_snapshot(
        &self,
        name: &str,
        change: impl FnOnce(&mut Snapshot),
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let found = next.snapshots.taken.iter_mut().find(|one| one.name == name);
        change(found.ok_or_else(|| Objection::Snapshot(NoSnapshot::Unknown(name.to_owned())))?);
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
        next.roster.snapshots.together = None;
        next.snapshots.asked_for = None;
        Ok(self.changed(next))
    }

    /// Deletes a snapshot. It is gone at once; its space is freed in the background. `clones` are those among all disks.
    ///
    /// # Errors
    /// When there is none of that name, disks are clones of it, or a rollback needs it.
    pub fn delete_snapshot(&self, name: &str, clones: &Clones) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let index = next.snapshots.taken.iter().position(|one| one.name == name);
        let index = index.ok_or_else(|| Objection::Snapshot(NoSnapshot::Unknown(name.to_owned())))?;
        if self.rollback.is_some_and(|rollback| rollback.needs(next.snapshots.taken[index].number)) {
            return Err(Objection::Snapshot(NoSnapshot::RollbackNeeds(name.to_owned())));
        }
        self.expect_not_cloned(next.snapshots.taken[index].number, clones)?;
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

    /// Refuses to take a component out that has a snapshot which the other active components of its place do not have without it.
    pub(super) fn expect_snapshots_elsewhere(&self, component: ComponentId) -> Result<(), Objection> {
        let Some(member) = self.roster.member(component) else { return Ok(()) };
        self.expect_snapshots_stay(member.place, |id| id != component)
    }

    /// Refuses that of a place only those components stay, if a snapshot of one that goes is not on as many of them that are active as it takes to read it: one copy, or of
    /// rows as many as there are data units.
    pub(super) fn expect_snapshots_stay(
        &self,
        place: u16,
        stays: impl Fn(ComponentId) -> bool,
    ) -> Result<(), Objection> {
        let here = || self.roster.members.iter().filter(|one| one.place == place);
        let needed = self.needed_of(usize::from(place));
        let is_enough = |members: &mut dyn Iterator<Item = &Member>| {
            let positions = members.map(|one| one.rows.map_or(0, |rows| rows.position));
            positions.collect::<BTreeSet<u8>>().len() >= needed
        };
        for snapshot in &self.snapshots.taken {
            let has_it = |one: &&Member| !one.lacks.contains(snapshot.number);
            let is_active = |one: &&Member| one.standing == Standing::Active;
            let is_kept =
                is_enough(&mut here().filter(|one| stays(one.component)).filter(is_active).filter(has_it));
            if !is_enough(&mut here().filter(|one| one.standing != Standing::Stale).filter(has_it)) {
                continue; // Whoever goes, nobody can read it.
            }
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
            let asked_for = self.snapshots.asked_for.take();
            self.snapshots.served.extend(asked_for);
            let schedule = asked_for.map(|(every, _)| every);
            let (number, size) = (*number, self.size);
            self.snapshots.taken.push(Snapshot { number, name, size, taken_ns, schedule, is_pinned: false });
        }
        if self.roster.snapshots.asked.is_none() {
            self.snapshots.asked_for = None; // It could not be taken.
        }
    }

    /// Whether the names agree with the numbers of the roster.
    pub(super) fn has_fitting_snapshots(&self) -> bool {
        let numbers = &self.roster.snapshots;
        let is_ascending = numbers.taken.windows(2).all(|two| two[0] < two[1]);
        let are_same = self.snapshots.taken.iter().map(|one| one.number).eq(numbers.taken.iter().copied());
        let greatest = numbers.taken.last().copied().max(numbers.asked).unwrap_or(0);
        is_ascending
            && (numbers.asked.is_some() || numbers.together.is_none())
            && are_same
            && greatest <= numbers.last
            && numbers.taken.first().is_none_or(|one| *one != 0)
            && self
                .rollback
                .is_none_or(|one| [one.to, one.since, one.before].iter().all(|number| numbers.has(*number)))
    }
}
