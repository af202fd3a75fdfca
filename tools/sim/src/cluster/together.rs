//! Snapshots of all disks at one moment (docs/design/0047, "Several disks").
//!
//! The coordinator is here: it is slow at times, and at times it goes away in the middle. The oracle: there is one moment, between the asking
//! and the records' word, at which all disks read as their snapshots do. So a write that was acknowledged before another began is never
//! missing in one of them while the other is there.

use super::faults::TURNS;
use super::plan::MS;
use super::register::at_one_moment;
use super::world::{Event, World};
use base::{DiskId, Random};
use replication::{Roster, Snapshots, Together};

/// How long the coordinator waits until all owners hold changes back, and then until all have taken it.
const PATIENCE: [u64; 2] = [1000 * MS, 3000 * MS];
/// When what a coordinator left behind is called off.
const CALLED_OFF_AFTER: u64 = 20_000 * MS;
/// Snapshots that a disk has at most when another one of all disks is asked for.
const MOST: usize = 6;

/// How far the coordinator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Holding,
    Marking,
    /// It is gone.
    Gone,
}

/// A snapshot of all disks that is asked for.
#[derive(Debug, Clone)]
struct UnderWay {
    numbers: Vec<(DiskId, u32)>,
    asked: u64,
    /// Since when it is at this step.
    since: u64,
    step: Step,
}

/// One that was taken.
#[derive(Debug, Clone)]
struct Moment {
    numbers: Vec<(DiskId, u32)>,
    asked: u64,
    taken: u64,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Moments {
    pub(crate) random: Random,
    under_way: Option<UnderWay>,
    taken: Vec<Moment>,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { random: Random::new(0), under_way: None, taken: Vec::new() }
    }
}

impl World {
    /// A snapshot of all disks is asked for, as drawn from a stream of its own.
    pub(crate) fn begin_together(&mut self) {
        let is_possible = self.plan.together > 0 && self.disks.len() > 1 && self.moments.under_way.is_none();
        let is_possible = is_possible && !self.awaits_origin(1);
        if !is_possible || !self.moments.random.chance(self.plan.together, 1000 * TURNS) {
            return;
        }
        let has_room = |snapshots: &Snapshots| snapshots.asked.is_none() && snapshots.taken.len() < MOST;
        // A disk that moves has none taken.
        let is_ready = |roster: &Roster| has_room(&roster.snapshots) && roster.moving.is_none();
        let records: Vec<_> = self
            .directory
            .disks()
            .into_iter()
            .filter_map(|disk| Some((disk, self.directory.get(disk)?)))
            .collect();
        let are_ready = records.iter().all(|(_, (_, roster))| is_ready(roster));
        if !are_ready || self.is_directory_away() || !self.hosts.iter().all(|host| host.is_converted()) {
            return;
        }
        let mut numbers = Vec::new();
        for (disk, (version, mut roster)) in records {
            roster.snapshots.ask_together();
            numbers.push((disk, roster.snapshots.last));
            self.directory.commit(disk, version, roster);
            self.push_record(disk);
        }
        self.say(|| format!("a snapshot of all disks: {numbers:?}"));
        let (asked, since) = (self.now, self.now);
        self.moments.under_way = Some(UnderWay { numbers, asked, since, step: Step::Holding });
        self.look_later();
    }

    fn is_directory_away(&self) -> bool {
        self.directory.is_away_until() > self.now
    }

    /// The coordinator looks at the records again: soon, or late.
    fn look_later(&mut self) {
        let usual = 1 + self.moments.random.below(20 * MS);
        let late = if self.moments.random.chance(1, 40) { self.moments.random.below(2500 * MS) } else { 0 };
        self.later(usual + late, Event::Together);
    }

    pub(crate) fn together_event(&mut self) {
        let Some(mut under_way) = self.moments.under_way.take() else { return };
        if self.is_directory_away() {
            self.moments.under_way = Some(under_way);
            return self.later(50 * MS, Event::Together);
        }
        let said: Vec<Option<Together>> = under_way
            .numbers
            .iter()
            .map(|(disk, number)| {
                let (_, roster) = self.directory.get(*disk)?;
                roster.snapshots.together.filter(|_| roster.snapshots.asked == Some(*number))
            })
            .collect();
        let all_say =
            |wanted: &[Together]| said.iter().all(|one| one.is_some_and(|one| wanted.contains(&one)));
        let is_late = |step: usize| under_way.since + PATIENCE[step] < self.now;
        let step = under_way.step;
        match step {
            Step::Gone => return self.call_off(&under_way),
            _ if said.contains(&None) => return self.call_off(&under_way),
            Step::Holding if all_say(&[Together::Held, Together::Marked]) => {
                self.change_all(&under_way, |snapshots, _| {
                    if snapshots.together == Some(Together::Held) {
                        snapshots.together = Some(Together::Mark);
                    }
                });
                (under_way.step, under_way.since) = (Step::Marking, self.now);
            }
            Step::Marking if all_say(&[Together::Marked]) => {
                self.change_all(&under_way, |snapshots, number| {
                    snapshots.taken.push(number);
                    (snapshots.asked, snapshots.together) = (None, None);
                });
                let UnderWay { numbers, asked, .. } = under_way;
                self.moments.taken.push(Moment { numbers, asked, taken: self.now });
                self.summary.together += 1;
                return;
            }
            Step::Holding if is_late(0) => return self.call_off(&under_way),
            Step::Marking if is_late(1) => return self.call_off(&under_way),
            Step::Holding | Step::Marking => {}
        }
        if self.moments.random.chance(1, 200) {
            under_way.step = Step::Gone;
            self.moments.under_way = Some(under_way);
            return self.later(CALLED_OFF_AFTER, Event::Together);
        }
        self.moments.under_way = Some(under_way);
        self.look_later();
    }

    /// Changes what all records say of snapshots, at once.
    fn change_all(&mut self, of: &UnderWay, change: impl Fn(&mut Snapshots, u32)) {
        for (disk, number) in &of.numbers {
            let Some((version, mut roster)) = self.directory.get(*disk) else { continue };
            if roster.snapshots.asked != Some(*number) {
                continue;
            }
            change(&mut roster.snapshots, *number);
            self.directory.commit(*disk, version, roster);
            self.push_record(*disk);
        }
    }

    fn call_off(&mut self, of: &UnderWay) {
        self.say(|| format!("the snapshot of all disks is called off: {:?}", of.numbers));
        self.change_all(of, |snapshots, _| {
            (snapshots.asked, snapshots.together, snapshots.to_sweep) = (None, None, true);
        });
    }

    /// Whether there is a moment at which all disks read as far as anybody has read the snapshots that were taken of them together; of those
    /// that one disk is about to lose, or of all.
    pub(crate) fn check_moments(&mut self, of: Option<(DiskId, u32)>) -> Result<(), String> {
        // What a directory that was set back, or made anew, says of snapshots is of another past.
        let is_strange = self.summary.rolled_back + self.summary.rebuilt > 0;
        let (concerned, others): (Vec<Moment>, Vec<Moment>) = std::mem::take(&mut self.moments.taken)
            .into_iter()
            .partition(|moment| of.is_none_or(|one| moment.numbers.contains(&one)));
        self.moments.taken = others;
        if is_strange {
            return Ok(());
        }
        for moment in concerned {
            let views = moment.numbers.iter().filter_map(|(disk, number)| {
                let guest = self.guests.iter().find(|guest| guest.disk == *disk)?;
                Some((&guest.registers, &guest.views.get(*number)?.found))
            });
            let views: Vec<_> = views.collect();
            at_one_moment(&views, moment.asked, moment.taken)
                .map_err(|why| format!("snapshots {:?}: {why}", moment.numbers))?;
        }
        Ok(())
    }
}
