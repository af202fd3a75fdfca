//! The next steps of a remedy that a request can do, as data: every client offers the same ones.
//!
//! A finding has at most a few. Where the remedy is outside of the software (a cable, a device to buy, a guest to be trimmed) there is none.

use super::code::Code;
use super::finding::{Finding, Subject};
use crate::disk::{DiskRecord, Snapshot};
use crate::limits::REPLACEMENTS_MAX;
use crate::maintenance::emptying;
use crate::view::View;
use base::{DeviceId, DiskId, HostId};
use std::collections::BTreeSet;

/// A step by which people remedy a finding. Names are those of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// End the maintenance of a host.
    EndMaintenance {
        /// Its name.
        host: String,
    },
    /// Remove a host from the cluster that will not return: what is only there is lost.
    RemoveHost {
        /// Its name.
        host: String,
    },
    /// Set how many components of the cluster are replaced at once.
    SetReplacements {
        /// So many.
        count: usize,
    },
    /// Resume a paused move of a disk into another layout.
    ResumeMove {
        /// The disk's name.
        disk: String,
    },
    /// Turn such a move round.
    TurnMove {
        /// The disk's name.
        disk: String,
        /// Whether it then moves back into the layout that it had.
        is_back: bool,
    },
    /// Roll a disk back to a snapshot.
    RollBack {
        /// The disk's name.
        disk: String,
        /// The snapshot's name.
        to: String,
    },
    /// Move everything off a device.
    Evacuate(NamedDevice),
    /// Stop doing so.
    Keep(NamedDevice),
    /// Take an empty device out of its disk group.
    RemoveDevice(NamedDevice),
    /// Raise the level of the cluster's records.
    RaiseLevel,
    /// Add an authority that signs certificates.
    AddAuthority,
}

/// A device, by the name of its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedDevice {
    /// Its identity.
    pub id: DeviceId,
    /// The name of its host.
    pub host: String,
    /// Its path there.
    pub path: String,
}

/// The steps that remedy a finding, the best first.
pub fn remedies(view: &View, finding: &Finding) -> Vec<Remedy> {
    match finding.subject {
        Subject::Cluster => of_cluster(finding.code),
        Subject::Host(host) => of_host(view, finding.code, host),
        Subject::Device(device) => of_device(view, finding.code, device),
        Subject::Disk(disk) => of_disk(view, finding.code, disk),
    }
}

fn of_cluster(code: Code) -> Vec<Remedy> {
    match code {
        Code::RepairOff => vec![Remedy::SetReplacements { count: REPLACEMENTS_MAX }],
        Code::LevelBehind => vec![Remedy::RaiseLevel],
        Code::AuthorityEnding => vec![Remedy::AddAuthority],
        _ => Vec::new(),
    }
}

fn of_host(view: &View, code: Code, id: HostId) -> Vec<Remedy> {
    let host = view.host_name(id);
    match code {
        Code::HostMaintenance => vec![Remedy::EndMaintenance { host }],
        Code::HostAway => vec![Remedy::RemoveHost { host }],
        _ => Vec::new(),
    }
}

fn of_device(view: &View, code: Code, id: DeviceId) -> Vec<Remedy> {
    let Some(device) = named(view, id) else { return Vec::new() };
    match code {
        Code::DeviceLeaving if emptying(view, id).is_done() => {
            vec![Remedy::RemoveDevice(device.clone()), Remedy::Keep(device)]
        }
        Code::DeviceLeaving => vec![Remedy::Keep(device)],
        // Alone there is no other place.
        Code::DeviceDamaged if view.hosts.values().map(|host| host.devices.len()).sum::<usize>() > 1 => {
            vec![Remedy::Evacuate(device)]
        }
        _ => Vec::new(),
    }
}

fn of_disk(view: &View, code: Code, id: DiskId) -> Vec<Remedy> {
    let Some(disk) = view.disks.get(&id) else { return Vec::new() };
    let name = disk.name.clone();
    match code {
        Code::ComponentStale => {
            let stale = disk.roster.members.iter().filter(|one| one.standing == replication::Standing::Stale);
            let devices = stale.filter_map(|one| disk.component(one.component));
            let devices: BTreeSet<NamedDevice> =
                devices.filter_map(|(_, component)| named(view, component.device)).collect();
            devices.into_iter().map(Remedy::Evacuate).collect()
        }
        Code::MovePaused => vec![Remedy::ResumeMove { disk: name }, turn(disk)],
        Code::MoveStuck => vec![turn(disk)],
        Code::RollbackUnfinished => {
            let Some(rollback) = disk.rollback else { return Vec::new() };
            let there =
                |number: &u32| disk.snapshots.taken.iter().any(|one: &Snapshot| one.number == *number);
            let ways = [rollback.to, rollback.before].into_iter().filter(there);
            ways.map(|number| Remedy::RollBack { disk: name.clone(), to: disk.snapshot_name(number) })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn turn(disk: &DiskRecord) -> Remedy {
    let is_back = disk.moving.as_ref().is_none_or(|moving| !moving.is_back);
    Remedy::TurnMove { disk: disk.name.clone(), is_back }
}

fn named(view: &View, id: DeviceId) -> Option<NamedDevice> {
    let (host, device) = view.device(id)?;
    Some(NamedDevice { id, host: host.name.clone(), path: device.name.clone() })
}
