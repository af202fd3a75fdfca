//! Disks that move between two layouts while guests use them, turn round and pause.

use super::faults::TURNS;
use super::world::{Event, World};
use node::Course;

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
        let boundary =
            self.directory.get(id).and_then(|(_, roster)| roster.moving).map(|moved| moved.boundary);
        let course = self.disks[disk].course;
        let end = if course.is_back { 0 } else { self.disks[disk].layout.size() };
        let has_ended = boundary == Some(end);
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
        self.say(|| format!("disk {disk} moves {course:?} from now on, boundary {boundary:?}"));
        self.set_course(disk, course);
    }

    /// Whether every disk that moves has come to the side that it moves to: until then what stands in its rows changes.
    pub(crate) fn have_moved(&self) -> bool {
        let has_moved = |disk: &node::DiskSpec| {
            let end = if disk.course.is_back { 0 } else { disk.layout.size() };
            self.directory
                .get(disk.id)
                .and_then(|(_, roster)| roster.moving)
                .is_none_or(|moved| moved.boundary == end)
        };
        self.disks.iter().all(has_moved)
    }

    /// No move pauses any more.
    pub(crate) fn let_move(&mut self) {
        for disk in 0..self.disks.len() {
            let course = Course { is_paused: false, ..self.disks[disk].course };
            self.set_course(disk, course);
        }
    }

    fn set_course(&mut self, disk: usize, course: Course) {
        if self.plan.other.is_none() {
            return;
        }
        self.disks[disk].course = course;
        for host in 0..self.hosts.len() {
            let delay = self.moving.below(LEARNS_WITHIN);
            self.later(delay, Event::Rules { host, disk });
        }
    }
}
