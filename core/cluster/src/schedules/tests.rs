//! Schedules over long spans, with owners that take what is asked for, or do not.

use super::*;
use crate::testing::{NEWEST, cluster};
use base::Random;
use base::units::GIB;
use placement::{Method, Policy};
use std::collections::BTreeSet;

/// 2026-11-29 07:00:00, a Sunday.
const START: u64 = 1_795_935_600;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A cluster with disks, whose owners take snapshots at once, and hosts that decide.
struct World {
    view: View,
    schedulers: Vec<Scheduler>,
    /// The time of day that each of them has.
    clocks: Vec<u64>,
    steady: u64,
    /// All that was taken by a schedule, by name.
    taken: Vec<String>,
    owners_take: bool,
}

impl World {
    fn new(disks: u128, rules: &str) -> World {
        let mut view = cluster(3, 1);
        (1..=disks).for_each(|id| drop(view.add_disk(id, rules)));
        World {
            view,
            schedulers: vec![Scheduler::default()],
            clocks: vec![START],
            steady: 0,
            taken: Vec::new(),
            owners_take: true,
        }
    }

    fn disk(&self) -> &DiskRecord {
        self.view.disk(1)
    }

    fn set(&mut self, change: impl FnOnce(&DiskRecord) -> DiskRecord) {
        let next = change(self.disk());
        self.view.disks.insert(next.id, next);
    }

    /// Lets time pass for everybody.
    fn pass(&mut self, seconds: u64) {
        self.steady += seconds;
        self.clocks.iter_mut().for_each(|clock| *clock += seconds);
    }

    /// One of the hosts decides, by what it knew before if it is `before`.
    fn decide(&mut self, host: usize, before: Option<&View>) -> Vec<Scheduled> {
        let (seconds, steady) = (self.clocks[host], Instant(self.steady * 1_000_000_000));
        let steps = self.schedulers[host].step(seconds, steady, before.unwrap_or(&self.view));
        for (id, step) in &steps {
            let disk = &self.view.disks[id];
            let changed = match step {
                Scheduled::Ask { every, name } => {
                    disk.ask_scheduled(name, (*every, seconds), NEWEST).map(Some)
                }
                Scheduled::Cancel => disk.cancel_snapshot().map(Some),
                Scheduled::Delete { name, .. } => disk.expire_snapshot(name, &Clones::default()),
            };
            if let Ok(Some(changed)) = changed {
                self.view.disks.insert(*id, changed.record);
            }
        }
        if self.owners_take {
            let ids: Vec<DiskId> = self.view.disks.keys().copied().collect();
            ids.into_iter().for_each(|id| self.take(id));
        }
        steps.into_iter().map(|(_, step)| step).collect()
    }

    /// The owner takes what is asked for.
    fn take(&mut self, id: DiskId) {
        let disk = &self.view.disks[&id];
        let mut roster = disk.roster.clone();
        let Some(number) = roster.snapshots.asked.take() else { return };
        roster.snapshots.taken.push(number);
        let next = disk.with_roster(&roster, self.steady).expect("it is taken").record;
        let newest = next.snapshots.taken.last().expect("there is one");
        if newest.schedule.is_some() {
            self.taken.push(newest.name.clone());
        }
        self.view.disks.insert(id, next);
    }

    /// Decides until there is nothing to do.
    fn settle(&mut self) {
        let rounds = (0..20).take_while(|_| !self.decide(0, None).is_empty()).count();
        assert!(rounds < 20, "it comes to an end");
    }

    fn names(&self) -> Vec<&str> {
        self.disk().snapshots.taken.iter().map(|one| one.name.as_str()).collect()
    }
}

#[test]
fn each_time_of_two_years_has_one_snapshot_and_the_newest_are_kept() {
    let mut world = World::new(
        1,
        "default,stripes=1,snapshots=hourly keep 24,daily keep 7,weekly keep 4,monthly keep 12",
    );
    let hours = 2 * 365 * 24;
    for _ in 0..hours {
        world.settle();
        world.pass(HOUR);
    }
    assert_eq!(world.taken.iter().collect::<BTreeSet<_>>().len(), world.taken.len(), "no name comes twice");
    let count = |of: &str, names: &[&str]| names.iter().filter(|name| name.starts_with(of)).count();
    let all: Vec<&str> = world.taken.iter().map(String::as_str).collect();
    // The first of each is taken at once, for nothing says when the schedule began.
    let figures = ["hourly", "daily", "weekly", "monthly"].map(|of| count(of, &all));
    assert_eq!(figures, [hours, 1 + 730, 1 + 105, 1 + 24]);
    let kept = world.names();
    assert_eq!(["hourly", "daily", "weekly", "monthly"].map(|of| count(of, &kept)), [24, 7, 4, 12]);
    assert_eq!(kept.last(), Some(&"hourly-2028-11-28T06-00Z"));
    assert!(kept.contains(&"monthly-2027-12-01T00-00Z") && !kept.contains(&"monthly-2027-11-01T00-00Z"));
}

#[test]
fn who_decides_may_change_at_any_time_and_two_may_decide_at_once() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut world = World::new(1, "default,stripes=1,snapshots=every 15m keep 8, hourly keep 4");
        // Their clocks are apart, and each forgets what it knew when it is another's turn.
        world.clocks = vec![START + random.below(90), START + random.below(90), START];
        world.schedulers = vec![Scheduler::default(); 3];
        let (mut before, steps) = (world.view.clone(), 4000);
        for _ in 0..steps {
            let host = random.below(3) as usize;
            if random.below(10) == 0 {
                world.schedulers[host] = Scheduler::default();
            }
            // One that believes that it decides may have seen nothing of the last step.
            let stale = (random.below(3) == 0).then(|| before.clone());
            before = world.view.clone();
            world.decide(host, stale.as_ref());
            world.pass(random.below(30));
        }
        let minutes = (world.clocks[2] - START) / 60;
        let count = |of: &str| world.taken.iter().filter(|name| name.starts_with(of)).count() as u64;
        let times = |minute: u64| minutes / minute;
        for (of, minute) in [("every-15m", 15), ("hourly", 60)] {
            let found = count(of);
            assert!(
                (times(minute)..=times(minute) + 2).contains(&found),
                "{seed} {of}: {found} in {minutes} min"
            );
        }
        let served: BTreeSet<_> = world.taken.iter().collect();
        assert_eq!(served.len(), world.taken.len(), "{seed}: none was taken twice");
    }
}

#[test]
fn times_that_passed_while_nobody_was_there_are_made_up_for_once() {
    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 24, daily keep 7");
    world.settle();
    assert_eq!(world.names(), ["hourly-2026-11-29T07-00Z", "daily-2026-11-29T07-00Z"]);
    world.schedulers = vec![Scheduler::default()];
    world.pass(3 * DAY + 23 * 60);
    world.settle();
    let after = ["hourly-2026-12-02T07-23Z", "daily-2026-12-02T07-23Z"];
    assert_eq!(world.names()[2..], after, "one of each, and its name tells when it was taken");
    world.pass(37 * 60);
    world.settle();
    assert_eq!(world.names()[4..], ["hourly-2026-12-02T08-00Z"], "then as ever");
    assert_eq!(world.disk().next_snapshot(Every::Hour, world.clocks[0]), world.clocks[0] + HOUR);
    assert_eq!(world.disk().next_snapshot(Every::Day, world.clocks[0]), world.clocks[0] + 16 * HOUR);
}

#[test]
fn a_clock_that_jumps_neither_ends_snapshots_nor_deletes_what_is_kept() {
    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 24");
    let day = |world: &mut World| {
        for _ in 0..24 * 60 {
            world.settle();
            world.pass(60);
        }
    };
    (0..2).for_each(|_| day(&mut world));
    let before = world.taken.len();
    // A minute back and forth around the hour.
    for _ in 0..100 {
        world.clocks[0] -= 60;
        world.settle();
        world.pass(60);
        world.settle();
    }
    assert!(world.taken.len() - before <= 3, "{:?}", &world.taken[before..]);
    // A year ahead, then back: one more at each jump, and then as ever.
    let before = world.taken.len();
    world.clocks[0] += 365 * DAY;
    world.settle();
    world.pass(60);
    world.clocks[0] -= 365 * DAY;
    day(&mut world);
    assert!((23..=26).contains(&(world.taken.len() - before)), "{:?}", &world.taken[before..]);
    // To and fro for an hour: two at most, so that hours of old ones are still there.
    let before = world.taken.len();
    for minute in 0..60 {
        world.clocks[0] = if minute % 2 == 0 { world.clocks[0] + 9 * DAY } else { world.clocks[0] - 9 * DAY };
        world.settle();
        world.pass(60);
    }
    assert!(world.taken.len() - before <= 3, "{:?}", &world.taken[before..]);
    assert_eq!(world.names().len(), 24);
}

#[test]
fn retention_deletes_nothing_but_what_its_schedule_took() {
    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 2");
    world.set(|disk| disk.ask_snapshot("hourly-mine", NEWEST).expect("it can have one").record);
    world.take(DiskId(1));
    world.settle();
    let first = "hourly-2026-11-29T07-00Z";
    world.set(|disk| disk.rename_snapshot(first, "before-upgrade").expect("it is there").record);
    world.pass(HOUR);
    world.settle();
    let second = "hourly-2026-11-29T08-00Z";
    world.set(|disk| disk.pin_snapshot(second, true).expect("it is there").record);
    for _ in 0..5 {
        world.pass(HOUR);
        world.settle();
    }
    let kept = ["hourly-2026-11-29T12-00Z", "hourly-2026-11-29T13-00Z"];
    assert_eq!(world.names(), [&["hourly-mine", "before-upgrade", second][..], &kept].concat());
    world.set(|disk| disk.pin_snapshot(second, false).expect("it is there").record);
    world.settle();
    assert_eq!(world.names(), [&["hourly-mine", "before-upgrade"][..], &kept].concat());
    // One that a person deletes is not taken again.
    world.set(|disk| disk.delete_snapshot(kept[1], &Clones::default()).expect("it is there").record);
    world.settle();
    assert_eq!(world.names(), ["hourly-mine", "before-upgrade", kept[0]]);
    // Without the schedule nothing is taken, and nothing goes.
    world.set(|disk| DiskRecord { policy: Policy::DEFAULT, ..disk.clone() });
    world.pass(10 * DAY);
    world.settle();
    assert_eq!(world.names(), ["hourly-mine", "before-upgrade", kept[0]]);
}

#[test]
fn what_cannot_be_taken_is_not_tried_and_told() {
    let late = |world: &World| late_snapshot(&world.view, world.disk(), world.clocks[0]);
    let mut world = World::new(1, "default,method=parity,snapshots=hourly keep 2");
    assert_eq!(world.disk().policy.method, Method::Parity);
    assert_eq!(world.decide(0, None).len(), 1, "a disk with parity has snapshots, too");
    assert_eq!(late(&world), None);

    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 2");
    (0..crate::limits::SNAPSHOTS_MAX).for_each(|number| {
        world.set(|disk| disk.ask_snapshot(&format!("s{number}"), NEWEST).expect("it can have one").record);
        world.take(DiskId(1));
    });
    assert_eq!(world.decide(0, None), []);
    let many = Late::Impossible(Objection::Snapshot(NoSnapshot::TooMany));
    assert_eq!(late(&world), Some((Every::Hour, many)));

    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 2");
    let free = |world: &mut World, bytes| {
        (1..=3).for_each(|host| world.view.host_mut(host).devices[0].free_bytes = bytes);
    };
    free(&mut world, 5 * GIB - 1);
    assert_eq!(world.decide(0, None), [], "of 100 GiB less than 5 % are free");
    assert_eq!(late(&world), Some((Every::Hour, Late::LittleSpace)));
    free(&mut world, 5 * GIB);
    assert_eq!(world.decide(0, None).len(), 1);
    assert_eq!(late(&world), None);
}

#[test]
fn a_snapshot_that_its_owner_does_not_take_is_asked_for_each_minute() {
    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 2");
    world.settle();
    world.pass(HOUR);
    world.owners_take = false;
    let mut steps: Vec<(u64, Scheduled)> = Vec::new();
    for second in 0..400 {
        steps.extend(world.decide(0, None).into_iter().map(|step| (second, step)));
        world.pass(1);
    }
    let asked: Vec<u64> =
        steps.iter().filter(|(_, step)| matches!(step, Scheduled::Ask { .. })).map(|(at, _)| *at).collect();
    let cancelled: Vec<u64> =
        steps.iter().filter(|(_, step)| *step == Scheduled::Cancel).map(|(at, _)| *at).collect();
    assert_eq!(asked, [0, 60, 120, 180, 240, 300, 360]);
    assert_eq!(cancelled, [21, 81, 141, 201, 261, 321, 381]);
    let late = late_snapshot(&world.view, world.disk(), world.clocks[0]);
    assert_eq!(late, Some((Every::Hour, Late::For(Duration::from_secs(400)))));
    // Its owner says why.
    world.set(|disk| disk.ask_snapshot("mine", NEWEST).map_or_else(|_| disk.clone(), |asked| asked.record));
    let mut roster = world.disk().roster.clone();
    (roster.snapshots.asked, roster.snapshots.not_taken) = (None, Some(replication::NotTaken::NoSpace));
    world.set(|disk| disk.with_roster(&roster, 0).expect("it is told").record);
    assert_eq!(world.disk().snapshots.asked_for, None);
    let late = late_snapshot(&world.view, world.disk(), world.clocks[0]);
    assert_eq!(late, Some((Every::Hour, Late::NotTaken(replication::NotTaken::NoSpace))));
    world.owners_take = true;
    world.pass(60);
    world.settle();
    assert_eq!(late_snapshot(&world.view, world.disk(), world.clocks[0]), None);
    assert_eq!(world.names().len(), 2);
}

#[test]
fn what_several_disks_are_to_have_is_called_off_when_nobody_sees_to_it() {
    let mut world = World::new(2, "default,stripes=1");
    world.owners_take = false;
    for id in 1..=2 {
        let asked = world.view.disk(id).ask_together("monday", NEWEST).expect("it can have one").record;
        world.view.disks.insert(asked.id, asked);
    }
    for second in 0..=20 {
        let steps = world.decide(0, None);
        assert_eq!(steps, if second < 20 { vec![] } else { vec![Scheduled::Cancel; 2] }, "{second}");
        world.pass(1);
    }
    assert!(world.view.disks.values().all(|disk| disk.roster.snapshots.asked.is_none()));
}

#[test]
fn many_disks_are_served_a_few_at_a_time() {
    let mut world = World::new(50, "default,stripes=1,snapshots=hourly keep 2");
    world.owners_take = false;
    assert_eq!(world.decide(0, None).len(), SCHEDULED_AT_ONCE_MAX);
    assert_eq!(world.decide(0, None), []);
    (1..=10).for_each(|id| world.take(DiskId(id)));
    assert_eq!(world.decide(0, None).len(), 10);
    world.owners_take = true;
    assert_eq!(world.decide(0, None), [], "all places are in use until those are taken");
    world.settle();
    assert_eq!(world.taken.len(), 50);
}

#[test]
fn the_name_of_a_persons_snapshot_is_not_in_the_way() {
    let mut world = World::new(1, "default,stripes=1,snapshots=hourly keep 2");
    world.set(|disk| disk.ask_snapshot("hourly-2026-11-29T07-00Z", NEWEST).expect("it can have one").record);
    assert_eq!(world.decide(0, None), [], "the owner takes it now");
    world.settle();
    assert_eq!(world.names(), ["hourly-2026-11-29T07-00Z", "hourly-2026-11-29T07-00Z-2"]);
}
