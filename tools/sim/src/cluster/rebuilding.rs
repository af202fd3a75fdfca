//! A directory that is lost under faults, and made anew by `core/cluster` from what hosts kept and components promised.
//!
//! Hosts keep copies as docs/design/0016 has it: what a node learns of a record, its host's copy has first, and it is there
//! after a crash. A run may break one of the rules ([`Slip`]); then the oracle, or the rebuild itself, must notice.

use super::plan::MS;
use super::world::{Event, World};
use base::{DiskId, HostId, Random};
use cluster::{DiskRecord, DiskState, Kept, Listed, Testimony, rebuild};
use placement::Policy;
use replication::Roster;
use replication::owner::Committed;
use std::collections::BTreeMap;

/// Makes what is drawn here independent of all else that a seed draws.
const REBUILDING: u64 = 0x16_d17e_c702_0000;
/// How often it is looked whether all hosts are there.
const LOOK_EVERY: u64 = 50 * MS;

/// A rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slip {
    /// Of each record the oldest version is taken.
    Oldest,
    /// Nodes act on records that their hosts' copies get later.
    ActsFirst,
    /// Copies are lost, and what components promised is not looked at.
    NoPromises,
}

/// What a directory that is lost is rebuilt from.
#[derive(Debug, Default)]
pub(crate) struct Rebuilding {
    random: Option<Random>,
    slip: Option<Slip>,
    /// Whether all hosts lose power with it.
    with_power: bool,
    is_pending: bool,
    is_on_demand: bool,
}

/// A host's copy.
#[derive(Debug, Default)]
pub(crate) struct HostCopy {
    /// The directory that it is of.
    pub(crate) generation: u64,
    records: BTreeMap<String, (u64, Roster)>,
    /// What it gets later, if the rule is broken, and when.
    unwritten: Vec<(u64, DiskId, u64, Roster)>,
    /// Whether it was given away.
    pub(crate) is_sealed: bool,
    /// Whether it has records that the directory, which was set back, does not have.
    pub(crate) is_ahead: bool,
}

impl HostCopy {
    fn put(&mut self, disk: DiskId, version: u64, roster: Roster) {
        let known = self.records.entry(disk.to_string()).or_insert_with(|| (0, roster.clone()));
        if known.0 < version {
            *known = (version, roster);
        }
    }

    /// Its process ends: what was not written yet never is.
    pub(crate) fn crash(&mut self, now: u64) {
        for (due, disk, version, roster) in std::mem::take(&mut self.unwritten) {
            if due <= now {
                self.put(disk, version, roster);
            }
        }
    }

    /// A record as it has it.
    pub(crate) fn get(&self, disk: DiskId) -> Option<(u64, Roster)> {
        self.records.get(&disk.to_string()).cloned()
    }

    /// It is made anew, of another directory.
    pub(crate) fn restart(&mut self, generation: u64, records: &[(DiskId, (u64, Roster))]) {
        if self.generation != generation {
            *self = HostCopy { generation, ..HostCopy::default() };
        }
        for (disk, (version, roster)) in records {
            self.put(*disk, *version, roster.clone());
        }
    }
}

/// What happens to the directory.
#[derive(Debug)]
pub(crate) enum RebuildEvent {
    /// All its records are gone.
    Lose,
    /// If all hosts are there, it is made anew.
    Look,
    /// A host takes the new one up.
    TakeUp { host: usize },
}

impl Rebuilding {
    /// What a seed draws.
    pub(crate) fn draw(seed: u64, slip: Option<Slip>) -> Rebuilding {
        let mut random = Random::new(seed ^ REBUILDING);
        let with_power = random.chance(1, 2);
        Rebuilding { random: Some(random), slip, with_power, is_pending: true, is_on_demand: false }
    }

    /// One that comes when somebody asks for it.
    pub(crate) fn on_demand() -> Rebuilding {
        Rebuilding { is_on_demand: true, ..Rebuilding::draw(0, None) }
    }
}

impl World {
    /// Draws when the directory is lost.
    pub(crate) fn begin_rebuilding(&mut self) {
        let most = self.plan.faulty_ns / 2;
        let is_drawn = !self.rebuilding.is_on_demand;
        let Some(random) = self.rebuilding.random.as_mut().filter(|_| is_drawn) else { return };
        let delay = most / 2 + random.below(most);
        self.later(delay, Event::Rebuild(RebuildEvent::Lose));
    }

    /// Whether the directory is still to be lost or rebuilt, or hosts have not taken it up.
    pub(crate) fn is_rebuilding(&self) -> bool {
        let is_former = |host: &super::host::Host| host.copy.generation != self.directory.generation;
        self.rebuilding.is_pending || self.hosts.iter().any(is_former)
    }

    /// A node is about to learn of a record; whether it may.
    pub(crate) fn copy_takes(&mut self, host: usize, disk: DiskId, version: u64, roster: &Roster) -> bool {
        if self.rebuilding.random.is_none() {
            return true;
        }
        let is_former = self.hosts[host].copy.generation != version >> super::directory::GENERATION_BITS;
        if self.hosts[host].copy.is_sealed || is_former {
            return false;
        }
        match (self.rebuilding.slip, &mut self.rebuilding.random) {
            (Some(Slip::ActsFirst), Some(random)) => {
                let due = self.now + random.below(1500 * MS);
                self.hosts[host].copy.unwritten.push((due, disk, version, roster.clone()));
            }
            _ => self.hosts[host].copy.put(disk, version, roster.clone()),
        }
        true
    }

    /// The same of what a read or the watch tells.
    pub(crate) fn copy_takes_record(
        &mut self,
        host: usize,
        disk: DiskId,
        record: Option<&(u64, Roster)>,
    ) -> bool {
        record.is_none_or(|(version, roster)| self.copy_takes(host, disk, *version, roster))
    }

    /// The outcome of a node's transaction, as it may learn of it.
    pub(crate) fn copy_takes_outcome(
        &mut self,
        host: usize,
        disk: DiskId,
        committed: Committed,
    ) -> Committed {
        let (version, roster) = match &committed {
            Committed::Done { version } => (*version, self.directory.was(disk, *version)),
            Committed::Conflict { version, roster } => (*version, Some(roster.clone())),
            Committed::Unknown => return committed,
        };
        let roster = roster.expect("every version had a roster");
        if self.copy_takes(host, disk, version, &roster) { committed } else { Committed::Unknown }
    }

    pub(crate) fn rebuild_event(&mut self, event: RebuildEvent) {
        match event {
            RebuildEvent::Lose => self.lose_directory(),
            RebuildEvent::Look => {
                let is_there =
                    |host: &super::host::Host| host.node.is_some() && host.paused_until <= self.now;
                match self.hosts.iter().all(is_there) {
                    true => self.rebuild(),
                    false => self.later(LOOK_EVERY, Event::Rebuild(RebuildEvent::Look)),
                }
            }
            RebuildEvent::TakeUp { host } => {
                if self.hosts[host].copy.generation == self.directory.generation {
                    return; // It was restarted since.
                }
                let with_power = self.rebuilding.random.as_mut().expect("it was drawn").chance(1, 2);
                self.kill(host, with_power);
                self.later(500 * MS, Event::Rebuild(RebuildEvent::TakeUp { host }));
            }
        }
    }

    /// All records of the directory are gone.
    pub(crate) fn lose_directory(&mut self) {
        self.say(|| "the directory is lost".to_owned());
        self.directory.is_lost = true;
        if self.rebuilding.with_power {
            (0..self.hosts.len()).for_each(|host| self.kill(host, true));
        }
        let random = self.rebuilding.random.as_mut().expect("it was drawn");
        let delay = random.below(2000 * MS);
        self.later(delay, Event::Rebuild(RebuildEvent::Look));
    }

    fn rebuild(&mut self) {
        let slip = self.rebuilding.slip;
        let kept = self.all_copies(slip);
        let records = self.disks.clone().into_iter().filter_map(|spec| {
            let (version, roster) = kept.records.get(&spec.id.to_string())?.clone();
            Some(disk_record(spec, version, roster))
        });
        let rebuilt = rebuild(records, &self.testimony());
        for disk in rebuilt.disks.values().filter(|_| slip != Some(Slip::NoPromises)) {
            if let Some(why) = disk.unproven {
                return self.fail(format!("a component promised what no copy knows: {why:?}"));
            }
        }
        let records = rebuilt.disks.into_iter().map(|(id, disk)| (id, disk.record.roster));
        self.directory.make_anew(records.collect());
        self.rebuilding.is_pending = false;
        self.rollback.is_old = false;
        self.summary.rebuilt += 1;
        self.say(|| "the directory is made anew".to_owned());
        for host in 0..self.hosts.len() {
            self.hosts[host].copy.is_sealed = true;
            let delay = self.rebuilding.random.as_mut().expect("it was drawn").below(3000 * MS);
            self.later(delay, Event::Rebuild(RebuildEvent::TakeUp { host }));
        }
    }

    /// The copies of all hosts as one.
    fn all_copies(&mut self, slip: Option<Slip>) -> Kept<Roster> {
        let now = self.now;
        let mut copies = Vec::new();
        for host in &mut self.hosts {
            host.copy.crash(now); // Writes what is due.
            let copy = &host.copy;
            // Complete up to nothing: no disk is ever deleted here.
            copies.push(Kept { generation: copy.generation, revision: 0, records: copy.records.clone() });
        }
        if slip == Some(Slip::NoPromises) && copies.len() > 1 {
            // Of those that are left, one knows least.
            copies.sort_by_key(|copy| copy.records.values().map(|(version, _)| *version).sum::<u64>());
            copies.truncate(1);
        }
        let merge = |one: Kept<Roster>, other: Kept<Roster>| match slip {
            Some(Slip::Oldest) => oldest(one, &other),
            // Where the directory was set back two records may have the same version: that of the later owner counts.
            None if self.rollback.is_old => later_owner(one, other),
            Some(Slip::ActsFirst | Slip::NoPromises) | None => one.merged(other),
        };
        copies.into_iter().reduce(merge).expect("there are hosts")
    }

    fn testimony(&self) -> Testimony {
        let of_host = |host: &super::host::Host| {
            let listed = self.listed(self.index_of(host.id));
            let listed = listed
                .into_iter()
                .map(|(id, (disk, promised))| (id, Listed { disk, promised, snapshots: Vec::new() }));
            (host.id.host, listed.collect())
        };
        let components: BTreeMap<HostId, _> = self.hosts.iter().map(of_host).collect();
        Testimony { components, ..Testimony::default() }
    }
}

fn later_owner(mut one: Kept<Roster>, other: Kept<Roster>) -> Kept<Roster> {
    for (key, theirs) in other.records {
        let is_later = |own: &(u64, Roster)| (theirs.1.epoch, theirs.0) > (own.1.epoch, own.0);
        if one.records.get(&key).is_none_or(is_later) {
            one.records.insert(key, theirs);
        }
    }
    one
}

fn oldest(mut one: Kept<Roster>, other: &Kept<Roster>) -> Kept<Roster> {
    for (key, record) in &mut one.records {
        if let Some(theirs) = other.records.get(key).filter(|theirs| theirs.0 < record.0) {
            *record = theirs.clone();
        }
    }
    one
}

fn disk_record(spec: node::DiskSpec, version: u64, roster: Roster) -> DiskRecord {
    let policy = Policy::default();
    let moving = roster.moving.map(|moved| ::cluster::Moving {
        policy,
        space_reservation: policy.space_reservation,
        debts: Vec::new(),
        is_back: spec.course.is_back,
        is_paused: spec.course.is_paused,
        trimmed: moved.trimmed,
        followed: None,
    });
    let named = |number: &u32| ::cluster::Snapshot {
        number: *number,
        name: format!("snapshot-{number}"),
        size: spec.size,
        taken_ns: 0,
        schedule: None,
        is_pinned: false,
    };
    let taken = roster.snapshots.taken.iter().map(named).collect();
    DiskRecord {
        version,
        id: spec.id,
        name: format!("disk-{}", spec.id),
        size: spec.size,
        space_reservation: policy.space_reservation,
        policy,
        layout: spec.layout,
        read_only: false,
        access: ::cluster::Access::default(),
        state: DiskState::Active,
        roster,
        incoming: Vec::new(),
        stand_ins: Vec::new(),
        growth: None,
        moving,
        surplus: None,
        follows: None,
        snapshots: ::cluster::Snapshots { taken, ..Default::default() },
        rollback: None,
        origin: None,
        clones: Default::default(),
        debts: Vec::new(),
    }
}
