//! Rebuilds a lost directory from the copies that hosts kept and the epochs that their components promised
//! (docs/design/0016).
//!
//! Relies on two rules of the hosts: a copy is complete up to its revision, and a host acts on a record only once its
//! copy has the record on stable storage. Must never give a record as proven when a component shows that a host acted
//! on a later one.

use crate::disk::{Clones, DiskRecord, DiskState};
use crate::orphans::Listed;
use base::{ComponentId, DiskId, HostId};
use replication::{Origin, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// A host's copy of the directory: by key, each record with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<R> {
    /// The generation of the directory.
    pub generation: u64,
    /// No change up to this revision is missing. Single records may be newer.
    pub revision: u64,
    /// The records.
    pub records: BTreeMap<String, (u64, R)>,
}

impl<R> Kept<R> {
    /// Merges the copies of two hosts: the newest version of each record. A record that only one has, and to whose
    /// version the other is complete, was removed. Of different generations only the later counts.
    pub fn merged(self, other: Kept<R>) -> Kept<R> {
        if self.generation != other.generation {
            return if self.generation > other.generation { self } else { other };
        }
        let (revisions, generation) = ((self.revision, other.revision), self.generation);
        let mut others = other.records;
        let mut records = BTreeMap::new();
        for (key, own) in self.records {
            let newest = match others.remove(&key) {
                Some(theirs) if theirs.0 > own.0 => Some(theirs),
                Some(_) => Some(own),
                None => (own.0 > revisions.1).then_some(own),
            };
            records.extend(newest.map(|newest| (key, newest)));
        }
        records.extend(others.into_iter().filter(|(_, (version, _))| *version > revisions.0));
        Kept { generation, revision: revisions.0.max(revisions.1), records }
    }
}

/// Facts beside the records.
#[derive(Debug, Clone, Default)]
pub struct Testimony {
    /// The components of each host that answered.
    pub components: BTreeMap<HostId, BTreeMap<ComponentId, Listed>>,
    /// Hosts whose copy of the records is missing, whether they answered or not.
    pub without: BTreeSet<HostId>,
    /// Disks to be taken although nothing proves that their record is the last.
    pub accepted: BTreeSet<DiskId>,
    /// Disks to be given up for the same reason.
    pub left_out: BTreeSet<DiskId>,
    /// The time, in nanoseconds since 1970.
    pub now_ns: u64,
}

/// Why nothing proves that a disk's record is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unproven {
    /// The component that promised a later epoch.
    pub component: ComponentId,
    /// Where it stands.
    pub host: HostId,
    /// The epoch that it promised.
    pub promised: u32,
    /// The epoch that the record knows.
    pub known: u32,
}

/// An obstacle that a person has to remove before a directory is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing proves that the disk's record is the last, and nobody decided about the disk. If it were left out it
    /// would be lost, because no host keeps a record that the new directory lacks.
    Undecided,
    /// It is to be given up although its record can be taken.
    LeftOutForNothing,
}

/// The fate of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Its record for the new directory; its version means nothing.
    pub record: DiskRecord,
    /// Why the record is not proven to be the last. Such a record goes to the new directory only if a person accepted
    /// it.
    pub unproven: Option<Unproven>,
    /// Whether a person accepted it.
    pub is_accepted: bool,
    /// The obstacle to making the directory.
    pub obstacle: Option<Obstacle>,
    /// Hosts without a copy that owned it or held an active component: changes of theirs may be missing.
    pub at_risk: Vec<HostId>,
    /// Active components that will be absent unless their host, which did not answer, is there when the disk is
    /// opened.
    pub made_absent: Vec<ComponentId>,
    /// Places without an active component on the hosts that answered.
    pub places_missing: Vec<usize>,
    /// Numbers of snapshots that its components have and its record did not know.
    pub recovered: Vec<u32>,
    /// Its former name, if another disk has that name.
    pub renamed_from: Option<String>,
}

impl Restored {
    /// Whether the new directory gets the record.
    pub fn is_taken(&self) -> bool {
        self.unproven.is_none() || self.is_accepted
    }
}

/// The fate of all disks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Disks that have a record.
    pub disks: BTreeMap<DiskId, Restored>,
    /// Disks without a record of which hosts have components, with those hosts.
    pub unknown: BTreeMap<DiskId, BTreeSet<HostId>>,
}

/// Decides about the disks whose newest records are `disks`.
pub fn rebuild(disks: impl IntoIterator<Item = DiskRecord>, testimony: &Testimony) -> Rebuilt {
    let promises = Promises::of(testimony);
    let mut rebuilt = Rebuilt::default();
    for record in disks {
        rebuilt.disks.insert(record.id, restored(record, testimony, &promises));
    }
    give_names(&mut rebuilt.disks);
    settle_snapshots(&mut rebuilt.disks, testimony);
    for (host, components) in &testimony.components {
        for listed in components.values().filter(|listed| !rebuilt.disks.contains_key(&listed.disk)) {
            rebuilt.unknown.entry(listed.disk).or_default().insert(*host);
        }
    }
    rebuilt
}

/// The component of each disk with the greatest promise, whether its record names it or not.
struct Promises(BTreeMap<DiskId, (u32, ComponentId, HostId)>);

impl Promises {
    fn of(testimony: &Testimony) -> Promises {
        let mut greatest = BTreeMap::new();
        for (host, components) in &testimony.components {
            for (id, listed) in components {
                let one = (listed.promised, *id, *host);
                let known = greatest.entry(listed.disk).or_insert(one);
                *known = one.max(*known);
            }
        }
        Promises(greatest)
    }
}

fn restored(mut record: DiskRecord, testimony: &Testimony, promises: &Promises) -> Restored {
    let known = record.roster.epoch;
    let promise = promises.0.get(&record.id).filter(|(promised, ..)| *promised > known);
    let unproven = promise.map(|&(promised, component, host)| Unproven { component, host, promised, known });
    let is_accepted = unproven.is_some() && testimony.accepted.contains(&record.id);
    let obstacle = match (unproven.is_none() || is_accepted, testimony.left_out.contains(&record.id)) {
        (true, true) => Some(Obstacle::LeftOutForNothing),
        (false, false) => Some(Obstacle::Undecided),
        (true, false) | (false, true) => None,
    };
    if let (Some(unproven), true) = (unproven, is_accepted) {
        // The next owner takes a later epoch than this, so that every component promises it.
        (record.roster.epoch, record.roster.owner) = (unproven.promised, None);
    }
    let owner = record.roster.owner.map(|owner| owner.node.host);
    let active = record.roster.members.iter().filter(|one| one.standing == Standing::Active);
    let concerned: BTreeSet<HostId> = active.map(|one| one.node.host).chain(owner).collect();
    let at_risk = concerned.intersection(&testimony.without).copied().collect();
    let (made_absent, places_missing) = without_silent(&record, testimony);
    Restored {
        record,
        unproven,
        is_accepted,
        obstacle,
        at_risk,
        made_absent,
        places_missing,
        recovered: Vec::new(),
        renamed_from: None,
    }
}

/// The components on hosts that did not answer in places that have others, and the places that have none.
fn without_silent(record: &DiskRecord, testimony: &Testimony) -> (Vec<ComponentId>, Vec<usize>) {
    let answers = |host: &HostId| testimony.components.contains_key(host);
    let (mut made_absent, mut missing) = (Vec::new(), Vec::new());
    // A disk that is being created has no data, and one that is being deleted is not served.
    if record.state != DiskState::Active {
        return (made_absent, missing);
    }
    for place in 0..record.layout.place_count() {
        let is_here = |one: &&replication::Member| usize::from(one.place) == place;
        let members = record.roster.members.iter().filter(is_here);
        let active: Vec<_> = members.filter(|one| one.standing == Standing::Active).collect();
        let answering = active.iter().filter(|one| answers(&one.node.host)).map(|one| one.component);
        if record.left(place, answering) == 0 {
            missing.push(place);
            continue;
        }
        // They stay active in the record: the next owner takes out those that it cannot reach, and notes which
        // changes they may know. One of them may be the only one with the last changes.
        for member in active.iter().filter(|one| !answers(&one.node.host)) {
            made_absent.push(member.component);
        }
    }
    (made_absent, missing)
}

/// A record that is older than the devices lacks snapshots, and those of origins may count clones that there are not, or fewer than there are.
fn settle_snapshots(disks: &mut BTreeMap<DiskId, Restored>, testimony: &Testimony) {
    let all = testimony.components.values().flatten();
    let held = all.map(|(id, listed)| (*id, listed.snapshots.clone())).collect();
    let taken = disks.values().filter(|one| one.is_taken());
    let origins: Vec<Origin> = taken.filter_map(|one| one.record.origin).collect();
    let clones = Clones::of(origins.iter().copied());
    for disk in disks.values_mut() {
        disk.recovered = disk.record.recover_snapshots(&held, &origins, testimony.now_ns);
        disk.record.count_clones(&clones);
    }
}

/// Two disks may have one name where a copy was ahead with one of them. The record that changed last keeps the name.
fn give_names(disks: &mut BTreeMap<DiskId, Restored>) {
    let mut order: Vec<(u64, DiskId)> =
        disks.values().filter(|one| one.is_taken()).map(|one| (one.record.version, one.record.id)).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut taken = BTreeSet::new();
    for (_, id) in order {
        let Some(disk) = disks.get_mut(&id) else { continue };
        if !taken.insert(disk.record.name.clone()) {
            let name = format!("recovered-{id}");
            disk.renamed_from = Some(std::mem::replace(&mut disk.record.name, name));
        }
    }
}

#[cfg(test)]
mod tests;
