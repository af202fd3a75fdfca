//! One clock for all members, kept in one record that is written on now and then.
//!
//! etcd has no clock to ask. Whoever finds the record old writes the time as it counts it; everybody counts on from what was
//! written by a clock of the machine that nobody steps. A reader does not know how long ago a time was written, so what it
//! counts is late by the pause between two looks at most, and it never takes an earlier time than its own: else each change
//! of the writer would set all clocks back by that. Must never run backwards.

use std::time::{Duration, Instant};

/// How old the record may be before it is written on: one write of the whole cluster in so long.
const PERIOD: Duration = Duration::from_secs(10);

/// What one member knows of the clock.
#[derive(Default)]
pub(crate) struct Clock {
    seen: Option<Seen>,
    told_ns: u64,
}

/// A time, and when it was that.
struct Seen {
    /// The revision that wrote the record; zero: there was none.
    version: i64,
    at_ns: u64,
    at: Instant,
    /// When the record was last found changed.
    changed: Instant,
    /// Whether the record changed while this process looked, so that its age is known.
    is_certain: bool,
}

impl Seen {
    fn ns(&self, now: Instant) -> u64 {
        self.at_ns + now.saturating_duration_since(self.at).as_nanos() as u64
    }
}

impl Clock {
    /// Takes in what the record says. With no other member there it may be old, so the machine's own clock counts if it is
    /// later.
    pub(crate) fn read(
        &mut self,
        version: i64,
        written_ns: u64,
        is_alone: bool,
        machine_ns: u64,
        now: Instant,
    ) {
        let (at_ns, is_certain) = match &self.seen {
            Some(seen) if seen.version == version => return,
            Some(seen) => (written_ns.max(seen.ns(now)), true),
            None if is_alone => (written_ns.max(machine_ns), true),
            None => (written_ns, false),
        };
        self.seen = Some(Seen { version, at_ns, at: now, changed: now, is_certain });
    }

    /// The version that the record must have and what to write, if that is due.
    pub(crate) fn due(&self, machine_ns: u64, now: Instant) -> Option<(i64, u64)> {
        match &self.seen {
            Some(seen) if now.saturating_duration_since(seen.changed) < PERIOD => None,
            Some(seen) => Some((seen.version, seen.ns(now))),
            None => Some((0, machine_ns)),
        }
    }

    /// Whether the age of the record is known. It is not until the record changes for the first time, or this process writes it.
    pub(crate) fn is_certain(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.is_certain)
    }

    /// What was due is written.
    pub(crate) fn written(&mut self, version: i64, at_ns: u64, at: Instant) {
        self.seen = Some(Seen { version, at_ns, at, changed: at, is_certain: true });
    }

    /// Now: nanoseconds since 1970. The machine's own clock where the record was never read.
    pub(crate) fn now_ns(&mut self, machine_ns: u64, now: Instant) -> u64 {
        let ns = self.seen.as_ref().map_or(machine_ns, |seen| seen.ns(now));
        self.told_ns = self.told_ns.max(ns);
        self.told_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN_NS: u64 = 1_000_000_000_000_000;

    /// A cluster's record and its members, each of which looks once a second, a little after the one before.
    struct World {
        start: Instant,
        record: Option<(i64, u64)>,
        writes: u64,
        members: Vec<Clock>,
    }

    impl World {
        fn new(members: usize) -> World {
            let members = (0..members).map(|_| Clock::default()).collect();
            World { start: Instant::now(), record: None, writes: 0, members }
        }

        /// Member `index` looks, `ms` after the start, with its machine's clock ahead by `ahead_ns`; what it says the time is.
        fn look(&mut self, index: usize, ms: u64, ahead_ns: u64) -> u64 {
            let now = self.start + Duration::from_millis(ms);
            let machine_ns = BEGIN_NS + ms * 1_000_000 + ahead_ns;
            let is_alone = self.members.len() == 1;
            let clock = &mut self.members[index];
            if let Some((version, at_ns)) = self.record {
                clock.read(version, at_ns, is_alone, machine_ns, now);
            }
            if let Some((expected, at_ns)) = clock.due(machine_ns, now)
                && self.record.map_or(0, |(version, _)| version) == expected
            {
                self.record = Some((expected + 1, at_ns));
                self.writes += 1;
                clock.written(expected + 1, at_ns, now);
            }
            clock.now_ns(machine_ns, now)
        }
    }

    #[test]
    fn it_keeps_time_whoever_writes() {
        let mut world = World::new(3);
        let mut last = [0; 3];
        for second in 0..3_000 {
            // Looks are not quite regular, so that it is not always the same one that writes.
            for (index, jitter) in [(0, second * 7 % 90), (1, second * 13 % 90), (2, second * 29 % 90)] {
                let ms = second * 1_000 + index as u64 * 300 + jitter;
                // The clocks of the others are wrong, and one is set back on the way.
                let ahead = [0, 5_000_000_000, if second < 1_000 { 90_000_000_000 } else { 0 }][index];
                let told = world.look(index, ms, ahead);
                let real = BEGIN_NS + ms * 1_000_000;
                assert!(told <= real && real - told <= 1_300_000_000, "{second} {index}: {told} at {real}");
                assert!(told >= last[index], "{second} {index}: it ran backwards");
                last[index] = told;
            }
        }
        assert!((270..=320).contains(&world.writes), "{} writes in 3,000 s", world.writes);
    }

    /// A host that restarted began with a time that was up to ten seconds old, and told of its own clock that it was ahead by as
    /// much: `health` warned of clocks after each restart.
    #[test]
    fn who_begins_late_says_so_until_the_time_is_written_again() {
        let mut world = World::new(3);
        for second in 0..14 {
            world.look(0, second * 1_000, 0);
            world.look(1, second * 1_000 + 300, 0);
        }
        // The time was written at 10 s; this one comes at 17.5 s and is late by more than seven.
        assert!(world.look(2, 17_500, 0) < BEGIN_NS + 10_500_000_000);
        assert!(!world.members[2].is_certain());
        assert!(world.members[0].is_certain() && world.members[1].is_certain());
        for second in 18..22 {
            world.look(0, second * 1_000, 0);
            world.look(2, second * 1_000 + 600, 0);
        }
        assert!(world.members[2].is_certain());
        let late = BEGIN_NS + 22_000_000_000 - world.look(2, 22_000, 0);
        assert!(late < 1_500_000_000, "{late}");
    }

    #[test]
    fn who_is_alone_after_a_long_time_goes_by_its_own_clock_if_that_is_later() {
        let mut world = World::new(1);
        world.record = Some((7, BEGIN_NS - 3_600_000_000_000));
        assert_eq!(world.look(0, 0, 0), BEGIN_NS);
        let mut world = World::new(1);
        world.record = Some((7, BEGIN_NS + 5));
        assert_eq!(world.look(0, 0, 0), BEGIN_NS + 5, "what was told before is never later");
    }
}
