//! Disks that move between two layouts while guests use them, turn round and pause.

use super::faults::TURNS;
use super::world::{Event, World};
use layout::Side;
use node::Course;
use replication::{Member, Moved, Numbers, Standing};

/// How long a host may take to learn of a change.
const LEARNS_WITHIN: u64 = 50 * super::plan::MS;

impl World {
    /// The move of a disk turns, pauses or goes on, as drawn from a stream of its own. One that has come to an end turns sooner or later,
    /// so that disks move all the time.
    pub(crate) fn change_course(&mut self) {
        if self.plan.other.is_none() {
            return;
        }
        let disk = self.moving.below(self.disks.len() as u64) as usize;
        let id = self.disks[disk].id;
        let moved = self.directory.get(id).and_then(|(_, roster)| roster.moving);
        let Some(moved) = moved else {
            if self.moving.chance(self.plan.turns, 1000 * TURNS) {
                self.begin_to_move(disk);
            }
            return;
        };
        let boundary = moved.boundary;
        let course = self.disks[disk].course;
        let end = if course.is_back { 0 } else { self.disks[disk].layout.size() };
        let has_ended = boundary == end;
        let changes =
            self.moving.chance(self.plan.turns, 1000 * TURNS) || has_ended && self.moving.chance(1, 8);
        if !changes {
            return;
        }
        self.summary.moved_over += u64::from(has_ended);
        let course = match self.moving.below(4) {
            _ if course.is_paused || has_ended => {
                Course { is_paused: false, is_back: course.is_back != has_ended }
            }
            0 => Course { is_paused: true, ..course },
            _ => Course { is_back: !course.is_back, ..course },
        };
        self.say(|| format!("disk {disk} moves {course:?} from now on, boundary {boundary}"));
        self.set_course(disk, course);
    }

    /// Disks that rested begin to move.
    pub(crate) fn begin_all_moves(&mut self) {
        (0..self.disks.len()).for_each(|disk| self.begin_to_move(disk));
    }

    /// A disk that rested begins to move: the components of its other layout have none of the snapshots that were taken until then.
    fn begin_to_move(&mut self, disk: usize) {
        let id = self.disks[disk].id;
        let Some((version, mut roster)) = self.directory.get(id).filter(|_| !self.directory.is_lost) else {
            return;
        };
        let is_taking = roster.snapshots.asked.is_some() || roster.snapshots.to_sweep;
        let moves = self.disks[disk].layout.boundary().is_some();
        if !moves || roster.moving.is_some() || is_taking {
            return;
        }
        let first = self.first_of_other(disk);
        roster.moving = Some(Moved { boundary: 0, trimmed: 0 });
        roster.shape += 1;
        for member in roster.members.iter_mut().filter(|one| usize::from(one.place) >= first) {
            member.lacks = Numbers::through(roster.snapshots.last);
        }
        self.say(|| format!("disk {disk} begins to move"));
        self.directory.commit(id, version, roster);
        self.push_record(id);
        self.disks[disk].shape += 1;
        self.set_course(disk, self.disks[disk].course);
    }

    /// The first place of the layout that a disk moves into, or one beyond the last.
    pub(crate) fn first_of_other(&self, disk: usize) -> usize {
        let layout = &self.disks[disk].layout;
        layout.side(Side::New).map_or(layout.place_count(), |(first, _)| first)
    }

    /// Whether a component of the layout that a disk has come to lacks a snapshot that the other one has as a whole.
    fn has_snapshots_to_move(&self, disk: usize) -> bool {
        let spec = &self.disks[disk];
        let Some((_, roster)) = self.directory.get(spec.id).filter(|_| !spec.course.is_back) else {
            return false;
        };
        let first = self.first_of_other(disk) as u16;
        let active = || roster.members.iter().filter(|one| one.standing == Standing::Active);
        let has = |one: &Member, number: u32| !one.lacks.contains(number);
        let is_whole =
            |number: u32| (0..first).all(|place| active().any(|one| one.place == place && has(one, number)));
        let lacks = |number: u32| active().any(|one| one.place >= first && !has(one, number));
        roster.snapshots.taken.iter().any(|number| is_whole(*number) && lacks(*number))
    }

    /// Whether every disk that moves has come to the side that it moves to: until then what stands in its rows changes.
    pub(crate) fn have_moved(&self) -> bool {
        let has_moved = |(index, disk): (usize, &node::DiskSpec)| {
            let end = if disk.course.is_back { 0 } else { disk.layout.size() };
            let moved = self.directory.get(disk.id).and_then(|(_, roster)| roster.moving);
            moved.map_or(disk.layout.boundary().is_none(), |moved| {
                moved.boundary == end && !self.has_snapshots_to_move(index)
            })
        };
        self.disks.iter().enumerate().all(has_moved)
    }

    /// No move pauses any more.
    pub(crate) fn let_move(&mut self) {
        for disk in 0..self.disks.len() {
            let course = Course { is_paused: false, ..self.disks[disk].course };
            self.set_course(disk, course);
        }
    }

    fn set_course(&mut self, disk: usize, course: Course) {
        if self.disks[disk].layout.boundary().is_none() {
            return;
        }
        self.disks[disk].course = course;
        for host in 0..self.hosts.len() {
            let delay = self.moving.below(LEARNS_WITHIN);
            self.later(delay, Event::Rules { host, disk });
        }
    }
}
