//! Scenes: faults that follow each other so closely that chance alone hardly ever draws them one after the other.
//!
//! Each of these faults happens to real hosts. Some seeds play one of the scenes on top of what their plan draws; they
//! notice rules that matter in such a moment only:
//!
//! - *A late join* (the record found unchanged must not be trusted). An owner asks the record to count a component that it
//!   has brought up to date, and loses the component's node. It is told that nobody knows, and finds the record unchanged. If
//!   it gives the component up then, and acknowledges changes that this one lacks, and the transaction takes effect after
//!   that, whoever owns the disk next takes the component for one that has them all.
//! - *A long join* (the window of a component is bounded whatever the directory does). The directory goes away just as it is asked to
//!   count a component, before that takes effect or after. Guests write far more until it is back than a window may have
//!   undecided. Then the component, or its owner, begins a new session, or starts anew: it must be able to tell what it holds, and
//!   where it counts, that it lacks nothing.
//! - *A shaky opening* (a component is told the first watermark in each session). While a place of the disk is ready and
//!   another is not, a component of the ready place begins a new session. If it is not told the first watermark in it, it
//!   takes no watermark of that session for its own, but forgets what they cover; after more changes than it remembers
//!   besides, with no pause between, it looks like one that has lost them when its next session begins.
//! - *A late word* (what is said of a process that ended counts for that process alone). A host's process was killed and is
//!   back, and owns disks. The host is isolated, and goes on reading by what it was granted, when the others hear that its
//!   former process has ended, and its guests are started elsewhere (`watchers`).

use super::plan::MS;
use super::world::{Event, World};
use base::{DiskId, NodeId};
use replication::Standing;
use replication::owner::{OwnerState, Phase};
use std::collections::BTreeMap;

/// How often an owner that opens its disk is looked at.
const LOOK_EVERY: u64 = 5 * MS;

/// How long a host is isolated: longer than what it was granted lasts.
const ISOLATED_NS: u64 = 3000 * MS;

/// How long the directory is away in a long join, with guests that write some ten thousand times.
const LONG_JOIN_NS: u64 = 1200 * MS;

/// What happens in a scene.
#[derive(Debug)]
pub(crate) enum SceneEvent {
    /// An owner that opens a disk is looked at. `broken`: to which node its connection was broken meanwhile.
    Look { host: usize, incarnation: u64, disk: DiskId, broken: Option<NodeId> },
    /// The connections between two nodes end.
    Break { one: NodeId, other: NodeId },
    /// The process of a host is killed, if it is still the same.
    Kill { host: usize, incarnation: u64 },
    /// A host is isolated, if its process is still the same.
    Isolate { host: usize, incarnation: u64 },
}

impl World {
    pub(crate) fn scene_event(&mut self, event: SceneEvent) {
        if !self.is_faulty {
            return;
        }
        match event {
            SceneEvent::Look { host, incarnation, disk, broken } => {
                self.look_at_opening((host, incarnation), disk, broken);
            }
            SceneEvent::Break { one, other } => self.break_between(one, other),
            SceneEvent::Kill { host, incarnation } if self.hosts[host].incarnation == incarnation => {
                let with_power = self.random.chance(1, 2);
                self.kill(host, with_power);
            }
            SceneEvent::Isolate { host, incarnation } if self.hosts[host].incarnation == incarnation => {
                self.isolate(host, self.now + ISOLATED_NS, 600 * MS);
            }
            SceneEvent::Kill { .. } | SceneEvent::Isolate { .. } => {}
        }
    }

    /// The connections between two nodes end, and both notice.
    pub(crate) fn break_between(&mut self, one: NodeId, other: NodeId) {
        for (from, session) in self.network.of(one) {
            let to = self.network.connections[&(from, session)].to;
            if from == other || to == other {
                self.network.connections.remove(&(from, session));
                self.later(1, Event::Closed { from, to, session, at_acceptor: true });
                self.later(1, Event::Closed { from, to, session, at_acceptor: false });
            }
        }
    }

    /// A transaction that makes a component count takes effect at `at`, late. Its node is lost to the owner before this learns
    /// that nobody knows, and is back when the transaction takes effect; then the owner may go.
    pub(crate) fn late_join(&mut self, host: usize, joining: NodeId, at: u64) {
        let owner = self.hosts[host].id;
        self.say(|| format!("{joining:?} is lost to its owner until {}", at / MS));
        self.network.cut(owner, joining, at);
        self.network.cut(joining, owner, at);
        self.break_between(owner, joining);
        if self.random.chance(2, 3) {
            let delay = at - self.now + 1 + self.random.below(20 * MS);
            let incarnation = self.hosts[host].incarnation;
            self.later(delay, Event::Scene(SceneEvent::Kill { host, incarnation }));
        }
    }

    /// The directory goes away as it is asked to make a component count; says whether that takes effect all the same. When it is back
    /// the component's session has ended, or its host's process, or the owner's.
    pub(crate) fn long_join(&mut self, host: usize, joining: NodeId) -> bool {
        let until = self.now + LONG_JOIN_NS;
        self.say(|| format!("the directory leaves as {joining:?} joins, until {}", until / MS));
        self.directory.away_until = until;
        self.rush_until = until;
        self.summary.long_joins += 1;
        let early = self.random.below(100 * MS);
        let (owner, holder) = (self.hosts[host].id, self.index_of(joining));
        let kill = |host: usize, world: &World| {
            let incarnation = world.hosts[host].incarnation;
            SceneEvent::Kill { host, incarnation }
        };
        let next = match self.random.below(3) {
            0 => SceneEvent::Break { one: owner, other: joining },
            1 => kill(holder, self),
            _ => kill(host, self),
        };
        self.at(until - early, Event::Scene(next));
        self.random.chance(1, 2)
    }

    /// The record names a new owner. One of the hosts that it will ask stands still for a moment, so that the places of the
    /// disk are not ready at the same time.
    pub(crate) fn shaky_opening(&mut self, host: usize, disk: DiskId) {
        let Some((_, roster)) = self.directory.get(disk).filter(|_| self.is_faulty) else { return };
        let is_of_one_place = |other: &usize| {
            *other != host
                && roster.members.iter().filter(|one| one.node == self.hosts[*other].id).count() == 1
        };
        let others: Vec<usize> = (0..self.hosts.len()).filter(is_of_one_place).collect();
        if others.is_empty() {
            return;
        }
        let slow = others[self.random.below(others.len() as u64) as usize];
        let until = self.now + self.random.below(600 * MS);
        self.say(|| format!("host {slow} stands still until {}", until / MS));
        self.hosts[slow].paused_until = self.hosts[slow].paused_until.max(until);
        let incarnation = self.hosts[host].incarnation;
        self.later(LOOK_EVERY, Event::Scene(SceneEvent::Look { host, incarnation, disk, broken: None }));
    }

    /// A connection breaks to a component whose place is ready, or about to be, while the disk is not served yet; and once
    /// more soon after it is.
    fn look_at_opening(&mut self, (host, incarnation): (usize, u64), disk: DiskId, broken: Option<NodeId>) {
        if self.hosts[host].incarnation != incarnation {
            return;
        }
        let state = self.hosts[host].node.as_ref().and_then(|node| node.ownership(disk));
        let Some(state) = state.and_then(|state| state.owner) else { return };
        let owner = self.hosts[host].id;
        let mut now_broken = broken;
        match state.phase {
            Phase::Claiming => {}
            Phase::Opening => {
                let complete = complete(&state, owner);
                if broken.is_none() && !complete.is_empty() && self.random.chance(1, 4) {
                    let other = complete[self.random.below(complete.len() as u64) as usize];
                    self.say(|| format!("host {host} loses {other:?} while it opens {disk:?}"));
                    self.break_between(owner, other);
                    now_broken = Some(other);
                }
            }
            Phase::Serving => {
                if let Some(other) = broken {
                    let delay = self.random.range(100 * MS..600 * MS);
                    self.rush_until = self.now + delay;
                    let next = match self.random.chance(1, 3) {
                        true => SceneEvent::Kill { host, incarnation },
                        false => SceneEvent::Break { one: owner, other },
                    };
                    self.later(delay, Event::Scene(next));
                }
                return;
            }
            Phase::Releasing | Phase::Ended => return,
        }
        let look = SceneEvent::Look { host, incarnation, disk, broken: now_broken };
        self.later(LOOK_EVERY, Event::Scene(look));
    }
}

/// The other nodes that hold components of places whose active components all serve the owner.
fn complete(state: &OwnerState, owner: NodeId) -> Vec<NodeId> {
    let mut is_complete: BTreeMap<u16, bool> = BTreeMap::new();
    let active = || state.members.iter().filter(|one| one.standing == Standing::Active);
    for member in active() {
        *is_complete.entry(member.place).or_insert(true) &= member.is_open;
    }
    let nodes = active().filter(|one| is_complete[&one.place] && one.node != owner);
    nodes.map(|one| one.node).collect()
}
