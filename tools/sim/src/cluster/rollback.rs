//! A directory that is set back to an old snapshot, and hosts that restart with it in every order.
//!
//! After that the directory lacks changes that hosts acted on: it may call a component active that has missed writes since. A host whose copy
//! has seen a later record counts the directory as away. One that has not, since it was down or late, acts on what it finds. So
//! the rest has to come from what stands on the devices (docs/design/0023). Nothing else goes wrong meanwhile, for a host that hears nobody
//! and finds an old record cannot know better. In the end people have the directory rebuilt.

use super::plan::MS;
use super::rebuilding::Rebuilding;
use super::world::{Event, World};
use base::{DiskId, Random};
use replication::Roster;
use std::collections::BTreeMap;

/// Makes what is drawn here independent of all else that a seed draws.
const ROLLBACK: u64 = 0x01d_5a95_0000;
/// How long hosts live with the old records: longer than a host waits for others that may be starting.
const OLD_NS: u64 = 15_000 * MS;

/// How long the hosts that are there have before that, to hear of all that others did.
const QUIET_NS: u64 = 3_000 * MS;

/// A directory that is set back.
#[derive(Debug, Default)]
pub(crate) struct Rollback {
    random: Option<Random>,
    snapshot: BTreeMap<DiskId, (u64, Roster)>,
    /// Whether the old records are there.
    pub(crate) is_old: bool,
    /// Whether it is played that a component which missed writes is all that starts with it (`left_behind`). Nobody decides then what becomes of
    /// disks that have diverged.
    pub(crate) leaves_behind: bool,
}

/// What happens.
#[derive(Debug)]
pub(crate) enum RollbackEvent {
    /// A snapshot is made.
    Save,
    /// Other faults end; hosts that are down stay down.
    Calm,
    /// It is restored.
    Restore,
    /// A host is restarted.
    Restart { host: usize },
    /// People see to it.
    Rebuild,
    /// They decide what becomes of a disk that has diverged.
    Decide { disk: DiskId },
}

impl Rollback {
    /// What a seed draws.
    pub(crate) fn draw(seed: u64) -> Rollback {
        Rollback { random: Some(Random::new(seed ^ ROLLBACK)), ..Rollback::default() }
    }

    /// Whether the directory is set back in this run.
    pub(crate) fn is_drawn(&self) -> bool {
        self.random.is_some()
    }
}

impl World {
    /// Draws when the snapshot is made.
    pub(crate) fn begin_rollback(&mut self) {
        let most = self.plan.faulty_ns / 2;
        let Some(random) = self.rollback.random.as_mut() else { return };
        let delay = random.below(most);
        self.rebuilding = Rebuilding::on_demand();
        self.later(delay, Event::Rollback(RollbackEvent::Save));
    }

    /// A disk was found to have diverged: people decide that what counts is kept.
    pub(crate) fn decide_later(&mut self, disk: DiskId) {
        if self.rollback.leaves_behind {
            return;
        }
        let delay = self.random.below(2000 * MS);
        self.later(delay, Event::Rollback(RollbackEvent::Decide { disk }));
    }

    /// Whether a host has seen records that the directory does not have any more: it takes nothing from it.
    pub(crate) fn has_seen_more(&self, host: usize) -> bool {
        self.rollback.is_old && self.hosts[host].copy.is_ahead
    }

    pub(crate) fn rollback_event(&mut self, event: RollbackEvent) {
        match event {
            RollbackEvent::Save => {
                self.save_snapshot();
                let most = self.plan.faulty_ns / 2;
                let delay = self.rollback.random.as_mut().expect("it was drawn").below(most);
                self.later(delay, Event::Rollback(RollbackEvent::Calm));
            }
            RollbackEvent::Calm => {
                self.calm_down();
                self.later(QUIET_NS, Event::Rollback(RollbackEvent::Restore));
            }
            RollbackEvent::Restore => self.restore_snapshot(),
            RollbackEvent::Restart { host } => {
                let with_power = self.rollback.random.as_mut().expect("it was drawn").chance(1, 2);
                self.kill(host, with_power);
            }
            RollbackEvent::Rebuild => self.lose_directory(),
            RollbackEvent::Decide { disk } => {
                let Some((version, mut roster)) = self.directory.get(disk) else { return };
                for place in 0..roster.place_count() as u16 {
                    roster = roster.decided_in(place, None).unwrap_or(roster);
                }
                if !self.directory.is_lost {
                    self.directory.commit(disk, version, roster);
                    self.push_record(disk);
                }
            }
        }
    }

    /// A snapshot is made.
    pub(crate) fn save_snapshot(&mut self) {
        let record = |disk| (disk, self.directory.get(disk).expect("just listed"));
        self.rollback.snapshot = self.directory.disks().into_iter().map(record).collect();
    }

    /// It is restored.
    pub(crate) fn set_back(&mut self) {
        self.say(|| "the directory is set back".to_owned());
        let now = self.now;
        for host in &mut self.hosts {
            host.copy.crash(now);
            let is_later = |(disk, (version, _)): (&DiskId, &(u64, Roster))| {
                host.copy.get(*disk).is_some_and(|(seen, _)| seen > *version)
            };
            host.copy.is_ahead = self.rollback.snapshot.iter().any(is_later);
        }
        self.directory.set_back(&self.rollback.snapshot);
        self.rollback.is_old = true;
        self.summary.rolled_back += 1;
    }

    fn restore_snapshot(&mut self) {
        self.set_back();
        for host in 0..self.hosts.len() {
            let random = self.rollback.random.as_mut().expect("it was drawn");
            let delay = 1 + random.below(3000 * MS);
            self.hosts[host].down_until = 0;
            self.later(delay, Event::Start { host });
        }
        // All hosts, some of them, or one alone.
        let mut hosts: Vec<usize> = (0..self.hosts.len()).collect();
        let random = self.rollback.random.as_mut().expect("it was drawn");
        for index in 0..hosts.len() {
            let other = index + random.below((hosts.len() - index) as u64) as usize;
            hosts.swap(index, other);
        }
        let count = 1 + random.below(hosts.len() as u64) as usize;
        let at_once = random.chance(1, 2);
        for host in hosts.into_iter().take(count) {
            let random = self.rollback.random.as_mut().expect("it was drawn");
            let delay = if at_once { 1 } else { random.below(3000 * MS) };
            self.later(delay, Event::Rollback(RollbackEvent::Restart { host }));
        }
        self.later(OLD_NS, Event::Rollback(RollbackEvent::Rebuild));
    }

    /// No other fault from here on. Hosts that are down miss what the others do until then, and one more goes perhaps.
    fn calm_down(&mut self) {
        let count = self.hosts.len() as u64;
        let random = self.rollback.random.as_mut().expect("it was drawn");
        let goes = random.chance(2, 3).then(|| random.below(count) as usize);
        if let Some(host) = goes {
            self.kill(host, true);
        }
        self.is_faulty = false;
        self.network.heal();
        self.directory.away_until = 0;
        for host in 0..self.hosts.len() {
            let one = &mut self.hosts[host];
            one.paused_until = one.paused_until.min(self.now);
            (one.slow_until, one.hung.1, one.down_until) = (0, 0, 0);
            (one.cut_off_until, one.deaf_until) = (0, 0);
            if one.node.is_none() {
                one.down_until = u64::MAX;
            }
            self.with_node(host, |_, _, _| {});
        }
    }
}
