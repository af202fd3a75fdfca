//! Components that stand in for absent ones, as the server lets them (design 0013), and the loss that they are there for.
//!
//! *A double loss*: the host of a component goes away for long; when another stands in for it, the hosts of all active
//! components of its place go, too, and the first one comes back. All that was acknowledged must then be read, and before
//! the others are back. Variants: the first one is the owner's own, so that it has changes that nobody else got, and these
//! are decided to be void by a read of everything; it comes back for a moment and begins to be brought up to date before;
//! the others are not dead but isolated, and their owner goes on to read.

use super::faults::RESTART_AFTER;
use super::members::PLACE_MEMBERS_MAX;
use super::plan::MS;
use super::world::{Event, World};
use base::{ComponentId, DiskId, WriteId};
use replication::{Member, Role, Roster, Standing};

/// How often records are looked at for components that need a stand-in, or need it no more.
const TEND_EVERY: u64 = 40 * MS;

/// How long a component stays away at most until it has a stand-in.
const STAND_IN_WITHIN: u64 = 6000 * MS;

/// How long after all others are lost a disk is read again, where guests rested until then.
const READ_AGAIN: u64 = 2000 * MS;

/// What stood in for others.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    /// The answers that guests had had when all active components of a place were lost last.
    struck: Option<u64>,
}

/// What happens to stand-ins.
#[derive(Debug)]
pub(crate) enum StandInEvent {
    /// Records are looked at.
    Tend,
    /// The host of a component goes away.
    Lose,
    /// It does.
    Down { host: usize, until: u64 },
    /// Whether the component has a stand-in by now.
    Wait { disk: DiskId, absent: ComponentId, until: u64 },
    /// All of a disk is read.
    Read { disk: DiskId },
    /// The host of the component comes back for a moment.
    Return { disk: DiskId, absent: ComponentId },
    /// Whether the component is being brought up to date: then its host goes away again.
    Watch { disk: DiskId, absent: ComponentId, until: u64 },
    /// It does.
    Fall { disk: DiskId, absent: ComponentId },
    /// The hosts of all active components of its place go away, and its own comes back.
    Strike { disk: DiskId, absent: ComponentId },
    /// They are about to come back.
    Look,
}

impl World {
    pub(crate) fn begin_stand_ins(&mut self) {
        if self.plan.stand_ins > 0 {
            self.later(TEND_EVERY, Event::StandIn(StandInEvent::Tend));
        }
        if self.plan.double_losses {
            let delay = 200 * MS + self.random.below(1500 * MS);
            self.later(delay, Event::StandIn(StandInEvent::Lose));
        }
    }

    pub(crate) fn stand_in_event(&mut self, event: StandInEvent) {
        match event {
            StandInEvent::Tend => {
                for disk in self.directory.disks() {
                    self.tend_stand_ins(disk);
                }
                self.later(TEND_EVERY, Event::StandIn(StandInEvent::Tend));
            }
            _ if !self.is_faulty => {}
            StandInEvent::Lose => self.lose_first(),
            StandInEvent::Down { host, until } => {
                self.let_rest(true);
                self.take_down(host, until);
            }
            StandInEvent::Wait { disk, absent, until } => self.wait_for_stand_in(disk, absent, until),
            StandInEvent::Read { disk } => self.read_all(disk),
            StandInEvent::Return { disk, absent } => self.come_back(disk, absent),
            StandInEvent::Watch { disk, absent, until } => self.watch_return(disk, absent, until),
            StandInEvent::Fall { disk, absent } => self.fall_again(disk, absent),
            StandInEvent::Strike { disk, absent } => self.lose_others(disk, absent),
            StandInEvent::Look => {
                if let Some(before) = self.stand_ins.struck.take() {
                    let more = self.answers() - before;
                    self.summary.answered_without = self.summary.answered_without.max(more);
                }
            }
        }
    }

    /// Begins, changes or ends one stand-in of a disk, if there is something to be done.
    fn tend_stand_ins(&mut self, disk: DiskId) {
        let Some((version, roster)) = self.directory.get(disk) else { return };
        let of_role = |one: &&Member| one.role.of().is_some();
        for one in roster.members.iter().filter(of_role) {
            let of = one.role.of().and_then(|of| roster.member(of));
            let is_over = one.standing == Standing::Stale
                || (one.standing == Standing::Absent && of.is_none_or(|of| of.standing != Standing::Absent))
                || (one.standing == Standing::StandIn && of.is_none());
            let (id, is_in) = (one.component, one.standing == Standing::StandIn);
            if is_over && self.random.chance(1, 4) {
                return self.remove(disk, version, roster, id);
            }
            if self.is_faulty
                && is_in
                && matches!(one.role, Role::StandIn { .. })
                && !self.plan.is_plain
                && !self.plan.rests
                && self.random.chance(1, 60)
            {
                return self.inherit(disk, version, roster.clone(), id);
            }
        }
        if !self.is_faulty || !self.random.chance(self.plan.stand_ins, 1000) {
            return;
        }
        let needs = |one: &&Member| {
            let is_first = !self.is_comer(one.component) || one.base > WriteId::default();
            let is_away = one.standing == Standing::Absent && one.role == Role::Copy && is_first;
            is_away && !roster.members.iter().any(|other| other.role.of() == Some(one.component))
        };
        if let Some(one) = roster.members.iter().find(needs).cloned() {
            self.begin_stand_in(disk, version, roster, &one);
        }
    }

    pub(crate) fn begin_stand_in(&mut self, disk: DiskId, version: u64, roster: Roster, absent: &Member) {
        let place = absent.place;
        let here: Vec<_> =
            roster.members.iter().filter(|one| one.place == place).map(|one| one.node).collect();
        let free: Vec<usize> = (0..self.hosts.len())
            .filter(|&host| !here.contains(&self.hosts[host].id) && self.has_room(host))
            .collect();
        if free.is_empty() || here.len() >= PLACE_MEMBERS_MAX {
            return;
        }
        let host = free[self.random.below(free.len() as u64) as usize];
        let (component, node, of) = (self.next_comer(), self.hosts[host].id, absent.component);
        let roster = self.with_comer(roster, (component, node, place), None, Role::StandIn { of });
        self.say(|| format!("{component:?} on host {host} is to stand in for {of:?} of {disk:?}"));
        self.change(disk, version, roster, Some(component));
    }

    /// The absent component is given up: what stands in for it takes its seat.
    pub(crate) fn inherit(&mut self, disk: DiskId, version: u64, mut roster: Roster, heir: ComponentId) {
        let Some(one) = roster.members.iter_mut().find(|one| one.component == heir) else { return };
        let Some(of) = one.role.of() else { return };
        one.role = Role::Heir { of };
        self.seat_comer(heir, of);
        self.say(|| format!("{heir:?} is to take the seat of {of:?}"));
        self.change(disk, version, roster, None);
    }

    /// The host of a component goes away for long.
    fn lose_first(&mut self) {
        let again = 3000 * MS + self.random.below(4000 * MS);
        self.later(again, Event::StandIn(StandInEvent::Lose));
        let disk = self.disks[self.random.below(self.disks.len() as u64) as usize].id;
        let Some((_, roster)) = self.directory.get(disk) else { return };
        let place = self.random.below(self.places(disk)) as u16;
        let is_active = |one: &&Member| one.place == place && one.standing == Standing::Active;
        let active: Vec<&Member> = roster.members.iter().filter(is_active).collect();
        if active.len() < 2 {
            return;
        }
        let owner = roster.owner.map(|owner| owner.node);
        let is_plain = self.plan.is_plain;
        // The owner's own component may have changes that nobody else has.
        let active: Vec<&Member> =
            active.into_iter().filter(|one| !is_plain || Some(one.node) != owner).collect();
        if active.is_empty() {
            return;
        }
        let owner = owner.filter(|_| !is_plain && (self.plan.rests || self.random.chance(1, 2)));
        let drawn = active[self.random.below(active.len() as u64) as usize];
        let chosen = active.into_iter().find(|one| Some(one.node) == owner).unwrap_or(drawn);
        let (absent, host) = (chosen.component, self.index_of(chosen.node));
        let until = self.now + STAND_IN_WITHIN;
        let delay = 1 + self.random.below(60 * MS);
        if Some(self.hosts[host].id) == owner {
            // What its guests write now is on it alone when it goes.
            self.silence(host, self.now + delay + 50 * MS);
        }
        self.later(delay, Event::StandIn(StandInEvent::Down { host, until }));
        self.later(80 * MS, Event::StandIn(StandInEvent::Wait { disk, absent, until }));
    }

    /// Guests ask for something new, or do not, where they rest at all.
    fn let_rest(&mut self, rest: bool) {
        if self.plan.rests {
            self.has_load = !rest;
        }
    }

    fn take_down(&mut self, host: usize, until: u64) {
        self.hosts[host].down_until = until;
        let with_power = self.random.chance(1, 2);
        self.kill(host, with_power);
    }

    fn wait_for_stand_in(&mut self, disk: DiskId, absent: ComponentId, until: u64) {
        let Some((_, roster)) = self.directory.get(disk) else { return };
        if roster.stand_in_of(absent).is_none() {
            match self.now < until {
                true => self.later(20 * MS, Event::StandIn(StandInEvent::Wait { disk, absent, until })),
                false => self.let_rest(false),
            }
            return;
        }
        // By now everybody knows of requests whose hosts were lost: who reads decides whether they happened.
        let delay = self.random.below(1500 * MS);
        self.later(delay, Event::StandIn(StandInEvent::Read { disk }));
        let comes_back = self.plan.relapses || (!self.plan.is_plain && self.random.chance(1, 3));
        let event = match comes_back {
            true => StandInEvent::Return { disk, absent },
            false => StandInEvent::Strike { disk, absent },
        };
        let delay = delay + self.random.below(300 * MS);
        self.later(delay, Event::StandIn(event));
    }

    /// The guest of a disk reads all of it.
    fn read_all(&mut self, disk: DiskId) {
        let Some(guest) = self.guests.iter().position(|guest| guest.disk == disk) else { return };
        if self.hosts[self.guests[guest].host].node.is_none() {
            return;
        }
        let (now, mut part) = (self.now, 0);
        while let Some((number, request)) = self.guests[guest].read_part(now, part) {
            self.guest_asks(guest, number, request);
            part += 1;
        }
    }

    fn come_back(&mut self, disk: DiskId, absent: ComponentId) {
        let Some((_, roster)) = self.directory.get(disk) else { return };
        let Some(one) = roster.member(absent) else { return };
        let host = self.index_of(one.node);
        self.hosts[host].down_until = self.now;
        if self.plan.relapses {
            self.hosts[host].slow_until = u64::MAX;
        }
        self.start(host);
        // It is told a watermark with what guests write.
        self.let_rest(false);
        let until = self.now + 2000 * MS;
        self.later(MS, Event::StandIn(StandInEvent::Watch { disk, absent, until }));
    }

    fn watch_return(&mut self, disk: DiskId, absent: ComponentId, until: u64) {
        let owners = self.hosts.iter().filter_map(|host| host.node.as_ref()?.ownership(disk)?.owner);
        let mut members = owners.flat_map(|owner| owner.members);
        let is_filled = members.any(|one| one.component == absent && one.resync.is_some());
        if is_filled {
            let delay = self.random.below(80 * MS);
            self.later(delay, Event::StandIn(StandInEvent::Fall { disk, absent }));
        } else if self.now < until {
            self.later(2 * MS, Event::StandIn(StandInEvent::Watch { disk, absent, until }));
        }
    }

    fn fall_again(&mut self, disk: DiskId, absent: ComponentId) {
        let Some((_, roster)) = self.directory.get(disk) else { return };
        let Some(one) = roster.member(absent).filter(|one| one.standing == Standing::Absent) else { return };
        let host = self.index_of(one.node);
        self.let_rest(true);
        if self.plan.relapses {
            self.hosts[host].slow_until = 0;
        }
        self.take_down(host, self.now + STAND_IN_WITHIN);
        let delay = self.random.below(200 * MS);
        self.later(delay, Event::StandIn(StandInEvent::Strike { disk, absent }));
    }

    fn lose_others(&mut self, disk: DiskId, absent: ComponentId) {
        self.let_rest(false);
        let Some((_, roster)) = self.directory.get(disk) else { return };
        let Some(one) = roster.member(absent) else { return };
        let stand_in = roster.stand_in_of(absent).map(|one| one.node);
        let is_lost = |other: &&Member| {
            other.place == one.place && other.standing == Standing::Active && other.node != one.node
        };
        let mut lost: Vec<usize> =
            roster.members.iter().filter(is_lost).map(|one| self.index_of(one.node)).collect();
        // Of rows as many are left as make up what is needed with the one that comes back.
        let left = one.rows.map_or(0, |rows| usize::from(rows.code.data()) - 1);
        let most = lost.len().saturating_sub(left);
        while lost.len() > most {
            lost.swap_remove(self.random.below(lost.len() as u64) as usize);
        }
        let back = self.index_of(one.node);
        if stand_in.is_none() || one.standing != Standing::Absent {
            return;
        }
        self.summary.struck += 1;
        self.say(|| format!("{disk:?}: all but {absent:?} and its stand-in are lost"));
        let until = self.now + 4000 * MS + self.random.below(3000 * MS);
        let cuts = !self.plan.is_plain && self.random.chance(1, 2);
        for host in lost {
            match cuts {
                true => self.isolate(host, until, RESTART_AFTER / 3),
                false => self.take_down(host, until),
            }
        }
        // It comes back at once, in a while, or is being brought up to date already.
        self.hosts[back].down_until = self.now + [0, 100 * MS, 900 * MS][self.random.below(3) as usize];
        let at = self.hosts[back].down_until.max(self.now + 1);
        self.at(at, Event::Start { host: back });
        if self.plan.rests {
            self.later(READ_AGAIN, Event::StandIn(StandInEvent::Read { disk }));
        }
        self.stand_ins.struck = Some(self.answers());
        self.at(until - 1, Event::StandIn(StandInEvent::Look));
    }

    fn answers(&self) -> u64 {
        self.guests.iter().map(|guest| guest.answered).sum()
    }
}
