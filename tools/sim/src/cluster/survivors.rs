//! A component that has just been brought up to date, and is all that is left of its place soon after: what it lacks is lost then.
//!
//! Hosts lose power like this when a rack does, or a repair wears out what is left. There are two plays of it, with no other fault beside:
//!
//! - *Caught up* (a component counts only once it has what was acknowledged without it, design 0021). A component is away and comes back to
//!   slow devices. As soon as the record counts it, it and the others of its place lose power, and it is the first that is back.
//! - *An heir* (it gets holes with their versions, design 0013). A component is away while guests trim; then a second one is, and what stands
//!   in for this one takes its seat. As soon as the record counts the heir, all others lose power, and the first comes back: from the heir
//!   alone it must learn what was trimmed meanwhile.

use super::faults::RESTART_AFTER;
use super::plan::MS;
use super::world::{Event, World};
use base::{ComponentId, DiskId};
use replication::{Member, Roster, Standing};
use std::collections::BTreeSet;

/// How often the record is looked at.
const LOOK_EVERY: u64 = MS;
/// How long all is well before a component goes away, at most.
const WELL_NS: u64 = 2000 * MS;
/// How long one is away that comes back by itself.
const AWAY_NS: u64 = 1500 * MS;
/// How long the others are away that lost power.
const LOST_NS: u64 = 6000 * MS;

/// Which of the two is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivor {
    /// One that was away.
    CaughtUp,
    /// One that stood in for another.
    Heir,
}

/// How far a play is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is waited until all components count.
    Waits,
    /// All is well, and goes on so until then.
    Well { until: u64 },
    /// The first is away, which the record need not know yet.
    Away { first: ComponentId },
    /// It knows, and guests go on for a while.
    Used { first: ComponentId, until: u64 },
    /// The second is away.
    TwoAway { first: ComponentId, second: ComponentId },
    /// This one comes in its stead.
    StandsIn { first: ComponentId, heir: ComponentId },
    /// The one that is to be left is brought up to date.
    Joins { first: ComponentId, survivor: ComponentId },
}

impl World {
    pub(crate) fn begin_survivors(&mut self) {
        if self.plan.survivor.is_some() {
            self.later(LOOK_EVERY, Event::Survivor(Step::Waits));
        }
    }

    /// Goes on with a play, or looks again soon.
    pub(crate) fn survivor_event(&mut self, step: Step) {
        let Some(kind) = self.plan.survivor.filter(|_| self.is_faulty) else { return };
        let disk = self.disks[0].id;
        let (_, roster) = self.directory.get(disk).expect("every disk has a record");
        let next = self.next_step(kind, step, disk, &roster).unwrap_or(step);
        self.later(LOOK_EVERY, Event::Survivor(next));
    }

    fn next_step(&mut self, kind: Survivor, step: Step, disk: DiskId, roster: &Roster) -> Option<Step> {
        let stands = |component, standing| {
            roster.member(component).is_some_and(|member: &Member| member.standing == standing)
        };
        let is_whole = roster.members.iter().all(|one| one.standing == Standing::Active);
        let now = self.now;
        match step {
            Step::Waits => {
                let until = now + self.random.below(WELL_NS);
                is_whole.then_some(Step::Well { until })
            }
            Step::Well { .. } if !is_whole => Some(Step::Waits),
            Step::Well { until } if now < until => None,
            Step::Well { .. } => {
                let first = self.one_leaves(kind, roster)?;
                Some(Step::Away { first })
            }
            Step::Away { first } if stands(first, Standing::Active) => None,
            Step::Away { first } => match kind {
                Survivor::CaughtUp => Some(Step::Joins { first, survivor: first }),
                Survivor::Heir => Some(Step::Used { first, until: now + self.random.below(WELL_NS) }),
            },
            Step::Used { until, .. } if now < until => None,
            Step::Used { first, .. } => {
                let second = self.one_leaves(kind, roster)?;
                Some(Step::TwoAway { first, second })
            }
            Step::TwoAway { second, .. } if stands(second, Standing::Active) => None,
            Step::TwoAway { first, second } => {
                let heir = self.one_comes(disk, roster, second)?;
                Some(Step::StandsIn { first, heir })
            }
            Step::StandsIn { heir, .. } if !stands(heir, Standing::StandIn) => None,
            Step::StandsIn { first, heir } => {
                let (version, roster) = self.directory.get(disk)?;
                self.inherit(disk, version, roster, heir);
                Some(Step::Joins { first, survivor: heir })
            }
            Step::Joins { survivor, .. } if !stands(survivor, Standing::Active) => None,
            Step::Joins { first, survivor } => {
                self.all_others_are_lost(roster, first, survivor);
                Some(Step::Waits)
            }
        }
    }

    /// A component that does not stand where its disk is owned loses power.
    fn one_leaves(&mut self, kind: Survivor, roster: &Roster) -> Option<ComponentId> {
        let owner = roster.owner?.node;
        let is_other = |one: &&Member| one.node != owner && one.standing == Standing::Active;
        let others: Vec<&Member> = roster.members.iter().filter(is_other).collect();
        if others.is_empty() {
            return None;
        }
        let chosen = others[self.random.below(others.len() as u64) as usize];
        let (component, host) = (chosen.component, self.index_of(chosen.node));
        self.say(|| format!("{component:?} goes away"));
        match kind {
            Survivor::CaughtUp => {
                self.hosts[host].down_until = self.now + AWAY_NS;
                self.hosts[host].slow_until = u64::MAX;
            }
            Survivor::Heir => self.hosts[host].down_until = u64::MAX,
        }
        self.kill(host, true);
        self.restart_guests(host);
        Some(component)
    }

    /// Another begins to stand in for one that is away.
    fn one_comes(&mut self, disk: DiskId, roster: &Roster, absent: ComponentId) -> Option<ComponentId> {
        let absent = roster.member(absent)?.clone();
        let (version, roster) = self.directory.get(disk)?;
        let heir = self.next_comer();
        self.begin_stand_in(disk, version, roster, &absent);
        self.is_comer(heir).then_some(heir)
    }

    /// All other active components lose power and stay away for long. The survivor, where it was away itself, loses it too and is back
    /// first; else the first one that left comes back to it.
    fn all_others_are_lost(&mut self, roster: &Roster, first: ComponentId, survivor: ComponentId) {
        self.say(|| format!("{survivor:?} counts, and is all that is left"));
        self.summary.left_alone += 1;
        let holder = |world: &World, component| {
            let member: Option<&Member> = roster.member(component);
            member.map(|member| world.index_of(member.node))
        };
        let (back, kept) = (holder(self, first), holder(self, survivor));
        let members = roster.members.iter().map(|one| self.index_of(one.node));
        let away = (0..self.hosts.len()).filter(|&host| self.hosts[host].down_until == u64::MAX);
        let lost: BTreeSet<usize> =
            members.chain(away).filter(|&host| Some(host) != back && Some(host) != kept).collect();
        for host in lost {
            self.lose_until(host, self.now + LOST_NS);
            self.later(RESTART_AFTER, Event::Restart { host });
        }
        if let Some(host) = back {
            self.lose_until(host, self.now);
            self.hosts[host].slow_until = 0;
        }
    }

    fn lose_until(&mut self, host: usize, until: u64) {
        self.hosts[host].down_until = until;
        self.kill(host, true);
        self.at(until + 1, Event::Start { host });
    }
}
