//! What one host knows of the cluster and decides: as `edge/control/src/cluster/keeper.rs` drives `core/cluster`.

use super::creation::DATA_BYTES;
use super::directory::{Beat, News};
use base::{ComponentId, HostId, Instant, Random};
use cluster::{
    Action, Attendance, Balancer, HostRecord, LinkReport, Liveness, Repairs, Settings, StandIns, View,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often devices are looked at to even them out, as in the server.
const BALANCE_NS: u64 = 10_000_000_000;

/// A host's knowledge, and what its decisions remember.
#[derive(Clone)]
pub(super) struct Keeper {
    me: HostId,
    /// The records of the hosts; those of the disks are in `facts` alone.
    hosts: BTreeMap<HostId, Arc<HostRecord>>,
    pub facts: View,
    attendance: Attendance,
    repairs: Repairs,
    stand_ins: StandIns,
    balancer: Balancer,
    balanced_ns: Option<u64>,
}

/// What the decisions of one moment took.
pub(super) struct Decided {
    pub actions: Vec<Action>,
    /// Whether the devices were looked at to even them out.
    pub has_balanced: bool,
}

impl Keeper {
    pub fn new(me: HostId, settings: Settings) -> Keeper {
        Keeper {
            me,
            hosts: BTreeMap::new(),
            facts: View::default(),
            attendance: Attendance::default(),
            repairs: Repairs::new(settings),
            stand_ins: StandIns::default(),
            balancer: Balancer::default(),
            balanced_ns: None,
        }
    }

    /// Takes a record over that changed.
    pub fn take(&mut self, news: &News) {
        match news {
            News::Disk(disk) => {
                let known = self.facts.disks.get(&disk.id);
                if known.is_none_or(|known| known.version < disk.version) {
                    let places = disk.layout.place_count();
                    self.facts.used_bytes.insert(disk.id, vec![DATA_BYTES / places as u64; places]);
                    self.facts.disks.insert(disk.id, (**disk).clone());
                }
            }
            News::Host(host) => drop(self.hosts.insert(host.id, Arc::clone(host))),
        }
    }

    /// Takes over who is there. `down`: the hosts that this one does not reach.
    pub fn refresh(&mut self, now_ns: u64, beats: &BTreeMap<HostId, Beat>, down: &BTreeSet<HostId>) {
        let now = Instant(now_ns);
        self.facts.hosts = self.hosts.iter().map(|(id, host)| (*id, HostRecord::clone(host))).collect();
        for (id, beat) in beats {
            let at = Instant(beat.heard_ns(now_ns));
            if let Some(host) = self.facts.hosts.get_mut(id) {
                host.last_seen = at;
            }
            for (about, is_up) in &beat.links {
                self.attendance.reported(LinkReport { reporter: *id, about: *about, is_up: *is_up, at });
            }
        }
        self.facts.owners.clear();
        for beat in beats.values() {
            self.facts.owners.extend(beat.owned.iter().cloned());
        }
        self.facts.liveness = self.attendance.step(now, &self.facts.hosts);
        for host in down {
            let liveness = self.facts.liveness.get_mut(host);
            if let Some(liveness) = liveness.filter(|liveness| **liveness == Liveness::Alive) {
                *liveness = Liveness::Suspect { since: now };
            }
        }
        self.facts.liveness.insert(self.me, Liveness::Alive);
    }

    /// What this host is to do now.
    pub fn decide(&mut self, now_ns: u64, has_stand_ins: bool, random: &mut Random) -> Decided {
        let (now, seed) = (Instant(now_ns), random.bits());
        let mut ids = || ComponentId(random.bits() | 1);
        let mut actions = self.repairs.step(now, &self.facts, &mut ids, seed).actions;
        let (facts, repairs) = (&self.facts, &self.repairs);
        actions.extend(self.stand_ins.step(now, facts, repairs, has_stand_ins, &mut ids, seed).actions);
        actions.retain(|action| action.actor.host == self.me);
        let is_due = self.balanced_ns.is_none_or(|at| now_ns - at >= BALANCE_NS);
        let has_balanced = is_due && self.coordinator() == Some(self.me);
        if has_balanced {
            self.balanced_ns = Some(now_ns);
            actions.extend(self.balancer.step(&self.facts, &mut ids, seed));
        }
        Decided { actions, has_balanced }
    }

    /// The one host that decides what needs no owner.
    fn coordinator(&self) -> Option<HostId> {
        let alive = self.facts.liveness.iter().filter(|(_, liveness)| **liveness == Liveness::Alive);
        alive.map(|(id, _)| *id).next()
    }
}
