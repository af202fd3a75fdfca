//! Snapshots of disks that are taken, read and deleted while all else goes on (docs/design/0047).
//!
//! What a view reads is fixed by who reads it first, and the same for good; and there must be a moment, between the asking and the record's word that it is
//! taken, at which the disk read so.

use super::ends::check_rows;
use super::faults::TURNS;
use super::plan::MS;
use super::world::World;
use crate::model::joined_pieces;
use base::request::{Request, StatusOf};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{ComponentId, DiskId};
use node::Token;
use replication::{NotTaken, Origin, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};
use wire::Answer;

/// Names of inspections that nothing else has.
const FIRST_TOKEN: u64 = 1 << 50;

/// Snapshots that a disk has at most.
const MOST: usize = 6;

/// What became of a disk's snapshots with one version of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Asked,
    Cancelled,
    Taken(u32),
    Deleted(u32),
}

/// What a record says of snapshots that the one before it did not.
pub(crate) fn changes(before: &Roster, after: &Roster) -> Vec<Change> {
    let (before, after) = (&before.snapshots, &after.snapshots);
    let taken = after.taken.iter().filter(|number| !before.has(**number)).map(|one| Change::Taken(*one));
    let gone = before.taken.iter().filter(|number| !after.has(**number)).map(|one| Change::Deleted(*one));
    let mut all: Vec<Change> = taken.chain(gone).collect();
    match (before.asked, after.asked) {
        (None, Some(_)) => all.push(Change::Asked),
        (Some(_), None) if all.is_empty() => all.push(Change::Cancelled),
        _ => {}
    }
    all
}

/// Whether a component that counts lacks a snapshot that another one of its place could give it.
fn lacks_what_others_have(roster: &Roster, needed: usize) -> bool {
    let active = || roster.members.iter().filter(|one| one.standing == Standing::Active);
    active().any(|one| {
        let mut lacked = roster.snapshots.taken.iter().filter(|number| one.lacks.contains(**number));
        lacked.any(|number| {
            let beside = active().filter(|other| other.place == one.place && !other.lacks.contains(*number));
            // Two of one position are one: a row needs several.
            let positions =
                beside.map(|other| other.rows.map_or(0, |rows| rows.position)).collect::<BTreeSet<u8>>();
            positions.len() >= needed
        })
    })
}

impl World {
    /// A snapshot of a disk is asked for, deleted or not wanted any more, as drawn from a stream of its own.
    pub(crate) fn change_snapshots(&mut self) {
        if self.plan.snapshots == 0 || !self.snapshots.chance(self.plan.snapshots, 1000 * TURNS) {
            return;
        }
        if let Some(host) = self.hosts.iter().position(|host| !host.is_converted()) {
            self.say(|| format!("host {host} is converted"));
            return self.hosts[host].convert();
        }
        let index = self.snapshots.below(self.disks.len() as u64) as usize;
        if self.awaits_origin(index) {
            return;
        }
        let disk = self.disks[index].id;
        let Some((version, mut roster)) = self.directory.get(disk).filter(|_| !self.directory.is_lost) else {
            return;
        };
        let count = roster.snapshots.taken.len();
        let choice = self.snapshots.below(8);
        let is_changed = match choice {
            0 if roster.snapshots.asked.is_some() => {
                (roster.snapshots.asked, roster.snapshots.together) = (None, None);
                roster.snapshots.to_sweep = true;
                true
            }
            1..3 if count > 0 => self.delete_one(disk, &mut roster),
            _ if count >= MOST => self.delete_one(disk, &mut roster),
            // A disk that moves has none taken.
            _ if roster.moving.is_some() => false,
            _ => roster.snapshots.ask(),
        };
        if is_changed {
            self.say(|| format!("snapshots of {disk:?}: {:?}", roster.snapshots));
            self.directory.commit(disk, version, roster);
            self.push_record(disk);
        }
    }

    fn delete_one(&mut self, of: DiskId, roster: &mut Roster) -> bool {
        let index = self.snapshots.below(roster.snapshots.taken.len() as u64) as usize;
        let number = roster.snapshots.taken[index];
        let is_origin = self
            .disks
            .iter()
            .any(|disk| disk.origin.is_some_and(|origin| origin.disk == of && origin.snapshot == number));
        !is_origin && roster.snapshots.delete(number)
    }

    /// Records have changed: the guests of their disks know what views may read as.
    pub(crate) fn note_snapshots(&mut self) -> Result<(), String> {
        for (disk, change) in std::mem::take(&mut self.directory.snapshot_changes) {
            let Some(guest) = self.guests.iter_mut().find(|guest| guest.disk == disk) else { continue };
            match change {
                Change::Asked => guest.views.asked(guest.registers.clock()),
                Change::Cancelled => guest.views.cancelled(),
                Change::Taken(number) => {
                    guest.views.taken(number, guest.registers.clock());
                    self.summary.snapshots += 1;
                    if disk == self.disks[0].id && self.awaits_origin(1) {
                        self.clone_disk(number);
                    }
                }
                Change::Deleted(number) => {
                    guest.check_view(number)?;
                    self.check_moments(Some((disk, number)))?;
                    let guest = self.guests.iter_mut().find(|guest| guest.disk == disk);
                    guest.into_iter().for_each(|guest| guest.views.deleted(number));
                }
            }
        }
        Ok(())
    }

    /// Somebody reads some of a view through some host.
    pub(crate) fn read_view(&mut self, guest: usize) {
        let Some((_, roster)) = self.directory.get(self.guests[guest].disk) else { return };
        let taken = &roster.snapshots.taken;
        if self.plan.snapshots == 0 || taken.is_empty() || !self.snapshots.chance(1, 4) {
            return;
        }
        let number = taken[self.snapshots.below(taken.len() as u64) as usize];
        let host = self.snapshots.below(self.hosts.len() as u64) as usize;
        let is_running = self.hosts[host].node.is_some() && self.hosts[host].paused_until <= self.now;
        if is_running && self.guests[guest].observers() < 6 {
            let older: Vec<u32> = taken.iter().copied().filter(|one| *one < number).collect();
            let (token, request) = match (self.snapshots.below(6), older.is_empty()) {
                (0, _) => self.guests[guest].survey(host, StatusOf::Snapshot(number), &mut self.snapshots),
                (1 | 2, false) => {
                    let since = older[self.snapshots.below(older.len() as u64) as usize];
                    let of = StatusOf::Changes { since, snapshot: number };
                    self.guests[guest].survey(host, of, &mut self.snapshots)
                }
                _ => self.guests[guest].view(host, number, &mut self.snapshots),
            };
            self.asks(host, guest, token, request);
        }
    }

    /// Some view of a disk was not there, or damaged: that is fair where nobody who counts has it.
    pub(crate) fn check_missing_views(&mut self, guest: usize) {
        let disk = self.guests[guest].disk;
        for number in std::mem::take(&mut self.guests[guest].views.missing) {
            let of_origin = self.guests[guest].origin.map(|origin| self.may_lack(self.disks[0].id, origin));
            if !self.may_lack(disk, number) && of_origin != Some(true) {
                self.fail(format!(
                    "the view of snapshot {number} of {disk:?} is not there, and some that count have it"
                ));
            }
        }
    }

    /// Whether nobody who counts may have had a snapshot as a whole at some time, or the record has lost it.
    fn may_lack(&self, disk: DiskId, number: u32) -> bool {
        let is_known = self.directory.get(disk).is_some_and(|(_, roster)| roster.snapshots.has(number));
        let is_strange = self.summary.rolled_back + self.summary.rebuilt > 0;
        // A disk that moves has its snapshots where they were taken.
        let index = self.disks.iter().position(|one| one.id == disk);
        let places = index.map_or(0, |index| self.first_of_other(index)) as u16;
        let layout = index.map(|index| &self.disks[index].layout);
        let needed = |place: u16| {
            let code = layout.and_then(|layout| layout.place_code(usize::from(place)));
            code.map_or(1, |code| usize::from(code.data()))
        };
        let lacks_somewhere = |roster: &Roster| {
            roster.snapshots.has(number)
                && (0..places).any(|place| {
                    let here = roster.members.iter().filter(|one| one.place == place);
                    let have =
                        here.filter(|one| one.standing == Standing::Active && !one.lacks.contains(number));
                    let positions = have.map(|one| one.rows.map_or(0, |rows| rows.position));
                    positions.collect::<BTreeSet<u8>>().len() < needed(place)
                })
        };
        !is_known
            || is_strange
            || self.may_damage()
            || self.plan.spoils > 0
            || self.directory.all_of(disk).any(lacks_somewhere)
    }

    /// An owner says that a snapshot cannot be taken.
    pub(crate) fn snapshot_not_taken(&mut self, disk: DiskId, why: NotTaken) {
        let is_strange = self.summary.rolled_back + self.summary.rebuilt > 0;
        let is_fair = matches!(why, NotTaken::NoSpace | NotTaken::NotHeld | NotTaken::Unready);
        if !is_fair && !is_strange {
            self.fail(format!("a snapshot of {disk:?} is refused: {why}"));
        }
    }

    /// Whether owners have done all that records ask for about snapshots.
    pub(crate) fn are_snapshots_done(&self) -> bool {
        let needed = self.plan.code.map_or(1, |code| usize::from(code.data()));
        let is_done = |disk: &DiskId| {
            let record = self.directory.get(*disk);
            record.is_none_or(|(_, roster)| {
                !roster.snapshots.wants_owner() && !lacks_what_others_have(&roster, needed)
            })
        };
        self.directory.disks().iter().all(is_done)
    }

    /// When all is quiet, every view reads as it did before, from every component that has it, and components have no other snapshots.
    pub(crate) fn compare_views(&mut self) -> Result<(), String> {
        if self.plan.snapshots == 0 {
            return Ok(());
        }
        self.read_views_through_owners()?;
        self.compare_origin()?;
        self.check_moments(None)?;
        self.guests.iter().try_for_each(|guest| {
            guest.views.numbers().into_iter().try_for_each(|number| guest.check_view(number))
        })?;
        if self.may_damage() || self.plan.spoils > 0 || self.summary.rolled_back + self.summary.rebuilt > 0 {
            return Ok(());
        }
        self.inspect_views()?;
        self.check_lists()
    }

    /// The second disk is a clone of a snapshot of the first one from now on: every host knows it so, and its guest begins.
    fn clone_disk(&mut self, snapshot: u32) {
        let (disk, size) = (self.disks[0].id, self.disks[0].size);
        // Less than all of it, now and then: beyond, the clone is an ordinary disk.
        let less = if self.snapshots.chance(1, 2) { self.snapshots.below(size / 2 / BLOCK_SIZE) } else { 0 };
        self.disks[1].origin = Some(Origin { disk, snapshot, size: size - less * BLOCK_SIZE });
        self.say(|| format!("{:?} is a clone: {:?}", self.disks[1].id, self.disks[1].origin));
        let guest = &mut self.guests[1];
        guest.origin = Some(snapshot);
        guest.registers.inherit();
        let spec = self.disks[1].clone();
        for host in 0..self.hosts.len() {
            let spec = spec.clone();
            self.with_node(host, |node, now, out| {
                node.update_disk(now, u64::MAX, spec, out);
            });
        }
    }

    /// Whether a disk, and with it its guest, waits until it is a clone.
    pub(crate) fn awaits_origin(&self, guest: usize) -> bool {
        self.plan.clones && guest == 1 && self.guests[1].origin.is_none()
    }

    /// What a clone has from its origin must be what the snapshot reads as.
    pub(crate) fn compare_origin(&mut self) -> Result<(), String> {
        let Some(number) = self.guests.get(1).and_then(|guest| guest.origin) else { return Ok(()) };
        if std::mem::take(&mut self.guests[1].lacks_origin) && !self.may_lack(self.disks[0].id, number) {
            return Err(format!("the origin, snapshot {number}, is not there, and some that count have it"));
        }
        let size = self.disks[1].origin.expect("it is a clone").size;
        let inherited: Vec<(u64, u64)> =
            self.guests[1].registers.inherited().iter().map(|(block, value)| (*block, *value)).collect();
        for (block, value) in inherited {
            match block * BLOCK_SIZE {
                // A block of which the origin has a part alone is no value.
                start if start + BLOCK_SIZE <= size => self.guests[0]
                    .views
                    .read(number, block, value)
                    .map_err(|why| format!("as the clone has it, {why}"))?,
                start if start >= size && value != 0 => {
                    return Err(format!("block {block} is beyond the origin, and reads {value:x}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_views_through_owners(&mut self) -> Result<(), String> {
        for guest in 0..self.guests.len() {
            if self.guests[guest].outstanding() > 0 || self.awaits_origin(guest) {
                continue; // The disk cannot be reached, which is fair where devices are lost.
            }
            let surveys = self.guests[guest].whole_surveys();
            for (token, request) in self.guests[guest].whole_views().into_iter().chain(surveys) {
                self.guest_asks(guest, token, request);
            }
        }
        let deadline = self.now + 20_000 * MS;
        while self.guests.iter().any(|guest| guest.observers() > 0) && self.now < deadline {
            self.run_until(self.now + 20 * MS)?;
        }
        Ok(())
    }

    /// Reads the views of every component by itself.
    pub(crate) fn inspect_views(&mut self) -> Result<(), String> {
        self.inspected.clear();
        // Components of a clone do not have all of it.
        let whole = (0..self.guests.len()).filter(|guest| self.guests[*guest].origin.is_none());
        for guest in whole.collect::<Vec<_>>() {
            let (_, roster) = self.directory.get(self.guests[guest].disk).expect("every disk has a record");
            // One after the other: what was read is kept in the memory of the hosts until it is looked at.
            for number in &roster.snapshots.taken {
                self.inspect_view(guest, &roster, *number)?;
            }
        }
        Ok(())
    }

    fn inspect_view(&mut self, guest: usize, roster: &Roster, number: u32) -> Result<(), String> {
        let (disk, layout) = (self.guests[guest].disk, self.disks[guest].layout.clone());
        let mut asked: Vec<(u64, Shown)> = Vec::new();
        for member in roster.members.iter().filter(|one| !one.lacks.contains(number)) {
            let place = layout.place(usize::from(member.place));
            let parts = place.map_or(0, |place| place[0].size / EXTENT_SIZE);
            let host = self.index_of(member.node);
            for part in 0..parts as u32 {
                let token = FIRST_TOKEN + asked.len() as u64;
                self.with_node(host, |node, now, out| {
                    node.inspect(now, Token(token), member.component, (part, number), out);
                });
                let position = member.rows.map(|rows| rows.position);
                let (place, component) = (member.place, member.component);
                asked.push((token, Shown { place, part, component, position }));
            }
        }
        self.run_until(self.now + 500 * MS)?;
        let mut rows: BTreeMap<(u16, u32), Vec<InPosition>> = BTreeMap::new();
        for (token, Shown { place, part, component, position }) in asked {
            let answer = self.inspected.remove(&token);
            let Some(Answer::Data { pieces, .. }) = answer else {
                return Err(format!(
                    "{component:?} of {disk:?} does not show part {part} of snapshot {number}: {answer:?}"
                ));
            };
            if let Some(position) = position {
                // What it is as a whole was read through the owner.
                rows.entry((place, part)).or_default().push((position, Some(joined_pieces(&pieces))));
                continue;
            }
            let mut blocks = Vec::new();
            layout.map(0, self.disks[guest].size, &mut |span| {
                let first = u64::from(part) * EXTENT_SIZE;
                let (start, end) =
                    (span.offset.max(first), (span.offset + span.len).min(first + EXTENT_SIZE));
                if span.place == usize::from(place) && start < end {
                    let at = span.disk_offset + (start - span.offset);
                    let from = ((start - first) / BLOCK_SIZE) as usize;
                    blocks.push((at / BLOCK_SIZE, from, (end - start) / BLOCK_SIZE));
                }
            });
            let told = self.guests[guest].view_read(number, &pieces, &blocks);
            told.map_err(|why| format!("{component:?} of {disk:?}: {why}"))?;
        }
        rows.into_iter().try_for_each(|((place, part), found)| {
            let code = layout.place_code(usize::from(place)).expect("its members have positions");
            check_rows(code, part, &found)
                .map_err(|why| format!("place {place}, part {part} of {disk:?}, snapshot {number}: {why}"))
        })
    }

    /// Components have the snapshots that the record says they have, and none that it does not know. One that it says they lack may be on its way to them.
    fn check_lists(&self) -> Result<(), String> {
        for disk in self.directory.disks() {
            let (_, roster) = self.directory.get(disk).expect("just listed");
            for member in &roster.members {
                let host = &self.hosts[self.index_of(member.node)];
                let groups = host.node.iter().flat_map(|node| node.groups());
                let found =
                    groups.filter_map(|(_, group)| Some(group.snapshots(group.component(member.component)?)));
                let expected: Vec<u32> = roster
                    .snapshots
                    .taken
                    .iter()
                    .copied()
                    .filter(|number| !member.lacks.contains(*number))
                    .collect();
                let is_on_its_way =
                    |number: &u32| roster.snapshots.has(*number) && member.lacks.contains(*number);
                let found: Vec<u32> = found.flatten().filter(|number| !is_on_its_way(number)).collect();
                if found != expected {
                    return Err(format!(
                        "{:?} of {disk:?} has the snapshots {found:?}, the record says {expected:?}",
                        member.component
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A request for some blocks of a view.
pub(crate) fn request_of(snapshot: u32, first: u64, count: u64) -> Request {
    Request::View { snapshot, offset: first * BLOCK_SIZE, len: (count * BLOCK_SIZE) as u32 }
}

/// What a member of rows has of a part, and its position.
type InPosition = (u8, Option<Vec<u8>>);

/// A part of a view, as one component shows it.
struct Shown {
    place: u16,
    part: u32,
    component: ComponentId,
    /// Of a member of rows.
    position: Option<u8>,
}
