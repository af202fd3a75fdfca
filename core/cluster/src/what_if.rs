//! What would become of a cluster: if hosts were lost, if one were added, if disks had another policy.
//!
//! Nothing is made up for it: the same view, with one thing other, goes through the same decisions ([`crate::Repairs`],
//! [`crate::Balancer`]) and transitions until there is nothing left to do, as if all that is copied had arrived. Must never
//! change anything.

mod domain;
mod future;
mod verdict;

use crate::device::{DeviceRecord, DeviceState};
use crate::disk::DiskState;
use crate::health::Directory;
use crate::host::{HostRecord, Maintenance, NodeRecord};
use crate::liveness::{Absence, Liveness};
use crate::status::{Condition, condition};
use crate::view::View;
use base::{DeviceId, DiskId, GroupId, HostId, Instant, NodeId};
pub use domain::hosts_of_domain;
use future::Future;
use placement::Policy;
use std::collections::{BTreeMap, BTreeSet};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// These hosts are lost at once, and do not come back.
    LoseHosts(BTreeSet<HostId>),
    /// A host is added.
    AddHost(Box<HostRecord>),
    /// Disks have another policy.
    SetPolicy {
        /// The disks.
        disks: Vec<DiskId>,
        /// Their policy.
        policy: Policy,
    },
}

/// Which devices would be evened out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evens {
    /// Those that are nearly full, and those that differ by much from others.
    Uneven,
    /// Those that are nearly full.
    Full,
    /// None.
    Nothing,
}

/// The room of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpace {
    /// The host.
    pub host: HostId,
    /// What people call it.
    pub name: String,
    /// Bytes of its devices in service.
    pub capacity_bytes: u64,
    /// Bytes of these that are taken.
    pub used_bytes: u64,
    /// Bytes that are neither taken nor promised.
    pub free_bytes: u64,
    /// The most of these on one device: what a single component can take.
    pub largest_bytes: u64,
}

/// What would become of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// The disk.
    pub disk: DiskId,
    /// What people call it.
    pub name: String,
    /// How it is now.
    pub now: Condition,
    /// How it is as soon as it happens.
    pub at_once: Condition,
    /// How it is when all has been copied that can be.
    pub then: Condition,
    /// Bytes that are copied.
    pub bytes: u64,
    /// Where to, and how much.
    pub targets: BTreeMap<DeviceId, u64>,
    /// What it does not get, and why.
    pub lacks: Vec<String>,
}

/// What would become of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The room now.
    pub before: Vec<HostSpace>,
    /// The room when all has been copied that can be.
    pub after: Vec<HostSpace>,
    /// The disks that something becomes of, the worst off first.
    pub disks: Vec<Outlook>,
    /// Bytes that are copied because of policies and of what is missing.
    pub bytes_to_copy: u64,
    /// Bytes that are copied to even devices out.
    pub bytes_to_even: u64,
    /// Bytes that are given back where copies go.
    pub bytes_freed: u64,
    /// What people call the devices that something is copied to.
    pub device_names: BTreeMap<DeviceId, String>,
    /// All of it in one sentence.
    pub verdict: String,
}

/// Answers a question. Who is away now counts as staying away, and what is on its way now as arriving. The same arguments
/// give the same answer.
pub fn what_if(view: &View, question: &Question, evens: Evens, now: Instant, seed: u64) -> Forecast {
    let mut changed = view.clone();
    let mut lacks: BTreeMap<DiskId, Vec<String>> = BTreeMap::new();
    match question {
        Question::LoseHosts(hosts) => {
            for host in hosts {
                let gone = Liveness::Away { since: now, why: Absence::Unexpected };
                changed.liveness.insert(*host, gone);
            }
        }
        Question::AddHost(host) => {
            changed.liveness.insert(host.id, Liveness::Alive);
            changed.hosts.insert(host.id, HostRecord::clone(host));
        }
        Question::SetPolicy { .. } => {}
    }
    let at_once = conditions(&changed);
    let evens = if matches!(question, Question::AddHost(_)) { evens } else { Evens::Nothing };
    let mut future = Future::new(changed, now, seed);
    if let Question::SetPolicy { disks, policy } = question {
        for disk in disks {
            lacks.entry(*disk).or_default().extend(future.set_policy(*disk, policy));
        }
    }
    future.unfold(evens);
    for (disk, cause) in future.refused() {
        lacks.entry(disk).or_default().push(cause);
    }
    let then = conditions(&future.view);
    let asked: BTreeSet<DiskId> = match question {
        Question::SetPolicy { disks, .. } => disks.iter().copied().collect(),
        Question::LoseHosts(_) | Question::AddHost(_) => BTreeSet::new(),
    };
    let mut outlooks = Vec::new();
    for (id, now) in conditions(view) {
        let moved = future.moved.remove(&id).unwrap_or_default();
        let lacks = lacks.remove(&id).unwrap_or_default();
        let (at_once, then) = (at_once[&id], then[&id]);
        let is_touched = asked.contains(&id)
            || now != at_once
            || at_once != then
            || !moved.targets.is_empty()
            || (!lacks.is_empty() && now != Condition::Whole);
        if is_touched {
            let name = view.disks[&id].name.clone();
            let (bytes, targets) = (moved.bytes, moved.targets);
            outlooks.push(Outlook { disk: id, name, now, at_once, then, bytes, targets, lacks });
        }
    }
    outlooks.sort_by(|a, b| (b.then, b.at_once, &a.name).cmp(&(a.then, a.at_once, &b.name)));
    let targets = outlooks.iter().flat_map(|one| one.targets.keys());
    let device_names = targets.map(|id| (*id, crate::ground::device_name(&future.view, *id))).collect();
    let mut forecast = Forecast {
        before: space(view),
        after: space(&future.view),
        disks: outlooks,
        bytes_to_copy: future.bytes_to_copy,
        bytes_to_even: future.bytes_to_even,
        bytes_freed: future.bytes_freed,
        device_names,
        verdict: String::new(),
    };
    forecast.verdict = verdict::of(view, question, &forecast);
    if let Question::LoseHosts(hosts) = question {
        forecast.verdict.extend(domain::warning(view, hosts).map(|warning| format!("; {warning}")));
    }
    forecast
}

fn conditions(view: &View) -> BTreeMap<DiskId, Condition> {
    let active = view.disks.values().filter(|disk| disk.state == DiskState::Active);
    active.map(|disk| (disk.id, condition(view, disk, Directory::Reachable))).collect()
}

/// The room of the hosts that are not away.
fn space(view: &View) -> Vec<HostSpace> {
    let is_there = |host: &&HostRecord| !matches!(view.liveness(host.id), Liveness::Away { .. });
    let of = |host: &HostRecord| {
        let in_service: Vec<&DeviceRecord> =
            host.devices.iter().filter(|one| one.state == DeviceState::InService).collect();
        let available = |one: &&DeviceRecord| one.free_bytes.saturating_sub(one.reserved_bytes);
        HostSpace {
            host: host.id,
            name: host.name.clone(),
            capacity_bytes: in_service.iter().map(|one| one.capacity_bytes).sum(),
            used_bytes: in_service.iter().map(|one| one.capacity_bytes.saturating_sub(one.free_bytes)).sum(),
            free_bytes: in_service.iter().map(available).sum(),
            largest_bytes: in_service.iter().map(available).max().unwrap_or(0),
        }
    };
    view.hosts.values().filter(is_there).map(of).collect()
}

/// A host that is not there, with empty devices of these sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHost {
    /// What it is called.
    pub name: String,
    /// The hosts that it fails together with.
    pub fault_domain: Option<String>,
    /// Bytes that each of its capacity devices can take.
    pub capacities: Vec<u64>,
}

impl NewHost {
    /// One as large as another.
    pub fn like(host: &HostRecord, name: String) -> NewHost {
        NewHost {
            name,
            fault_domain: host.fault_domain.clone(),
            capacities: host.devices.iter().map(|one| one.capacity_bytes).collect(),
        }
    }

    /// Its record, with ids that nothing of the cluster has.
    pub fn record(&self, view: &View) -> HostRecord {
        let devices = || view.hosts.values().flat_map(|host| &host.devices);
        let id = HostId(fresh(|id| view.hosts.contains_key(&HostId(id))));
        let node = NodeId { host: id, shard: 0 };
        let group = GroupId(fresh(|id| devices().any(|one| one.group == GroupId(id))));
        let free_ids = (0..=u128::MAX).rev().map(DeviceId).filter(|id| !devices().any(|one| one.id == *id));
        let component_count_max = devices().map(|one| one.component_count_max).max().unwrap_or(COMPONENTS);
        let device = |(index, (id, capacity)): (usize, (DeviceId, &u64))| DeviceRecord {
            id,
            name: format!("device {}", index + 1),
            group,
            node,
            capacity_bytes: *capacity,
            free_bytes: *capacity,
            reserved_bytes: 0,
            component_count: 0,
            component_count_max,
            state: DeviceState::InService,
            leaving: None,
        };
        HostRecord {
            id,
            name: self.name.clone(),
            nodes: vec![NodeRecord { id: node, peer_addresses: Vec::new(), incarnation: 1 }],
            api_address: String::new(),
            fault_domain: self.fault_domain.clone(),
            maintenance: Maintenance::Off,
            devices: free_ids.zip(&self.capacities).enumerate().map(device).collect(),
            release: String::new(),
            clock_ahead_ns: 0,
            data_trouble: Vec::new(),
            reports: crate::host::DeviceReports::default(),
            heard: Instant(0),
        }
    }
}

/// Components of a device where no other one tells.
const COMPONENTS: u32 = 4096;

/// An id that nothing has.
fn fresh(is_taken: impl Fn(u128) -> bool) -> u128 {
    let mut ids = (0..=u128::MAX).rev();
    ids.find(|id| !is_taken(*id)).expect("there are more ids than things")
}

#[cfg(test)]
mod tests;
