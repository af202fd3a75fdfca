//! Findings about hosts, devices and their space.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::Surroundings;
use crate::device::{DeviceRecord, DeviceState};
use crate::disk::{DiskRecord, DiskState};
use crate::host::{HostRecord, Maintenance};
use crate::limits::{COMPONENTS_LOW, SPACE_CRITICAL, SPACE_LOW, STEADY_AFTER};
use crate::liveness::{Absence, Liveness};
use crate::maintenance::{emptying, progress};
use crate::view::View;
use crate::words::{ago, components, duration, listed};
use base::units::{EXTENT_SIZE, format_bytes};
use base::{DeviceId, Instant};
use layout::Component;
use placement::DeviceSpace;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    for host in view.hosts.values() {
        presence(view, around, host, found);
        maintenance(view, around, host, found);
        data_dir(host, found);
        for device in &host.devices {
            state(around, host, device, found);
            leaving(view, around, host, device, found);
        }
    }
    let spaces = view.spaces();
    for space in spaces.iter().filter(|space| space.in_service) {
        room(view, space, found);
    }
    after_failure(view, found);
    domains(view, &spaces, found);
    if let Some(stuck) = around.balancer.stuck() {
        found.push(Finding {
            code: Code::SpaceUneven,
            severity: Severity::Warning,
            subject: Subject::Cluster,
            cause: stuck.to_owned(),
            remedy: "add capacity devices to the hosts with the fullest ones, or delete or trim disks"
                .to_owned(),
        });
    }
}

fn presence(view: &View, around: &Surroundings<'_>, host: &HostRecord, found: &mut Vec<Finding>) {
    let (code, severity, since, what) = match view.liveness(host.id) {
        Liveness::Alive | Liveness::Away { why: Absence::Maintenance, .. } => return,
        // A host that restarted is back: nothing is wrong.
        Liveness::Suspect { since } if view.returning.contains(&host.id) => {
            return found.push(returning(around, host, since));
        }
        Liveness::Suspect { since } => (Code::HostSuspect, Severity::Warning, since, "has not been well for"),
        Liveness::Away { since, why: Absence::Unexpected } => {
            (Code::HostAway, Severity::Critical, since, "has shown no sign of life for")
        }
    };
    let members = view.disks.values().flat_map(|disk| &disk.roster.members);
    let count = members.filter(|member| member.node.host == host.id).count();
    found.push(Finding {
        code,
        severity,
        subject: Subject::Host(host.id),
        cause: format!("{} {what} {}; {} on it", host.name, ago(around.now, since), components(count)),
        remedy: format!(
            "see that {} runs, that drystone runs on it, and that the other hosts reach {}",
            host.name,
            addresses(host)
        ),
    });
}

fn returning(around: &Surroundings<'_>, host: &HostRecord, since: Instant) -> Finding {
    Finding {
        code: Code::HostSuspect,
        severity: Severity::Notice,
        subject: Subject::Host(host.id),
        cause: format!(
            "{} is back; it was last well {} ago, and counts as alive once it has been there for {}",
            host.name,
            ago(around.now, since),
            duration(STEADY_AFTER)
        ),
        remedy: "wait; nothing new is placed there until then".to_owned(),
    }
}

fn addresses(host: &HostRecord) -> String {
    let addresses: Vec<String> = host.nodes.iter().flat_map(|node| node.peer_addresses.clone()).collect();
    if addresses.is_empty() { "it".to_owned() } else { listed(&addresses) }
}

fn maintenance(view: &View, around: &Surroundings<'_>, host: &HostRecord, found: &mut Vec<Finding>) {
    let cause = match host.maintenance {
        Maintenance::Off => return,
        Maintenance::Entering { mode, since } => {
            let progress = progress(view, host.id);
            format!(
                "{} has been entering maintenance ({mode}) for {}; {} with {} yet to leave it",
                host.name,
                ago(around.now, since),
                components(progress.components_left),
                format_bytes(progress.bytes_left)
            )
        }
        Maintenance::On { mode, since } => {
            format!("{} has been in maintenance ({mode}) for {}", host.name, ago(around.now, since))
        }
    };
    found.push(Finding {
        code: Code::HostMaintenance,
        severity: Severity::Notice,
        subject: Subject::Host(host.id),
        cause,
        remedy: format!("end the maintenance of {} once its work is done", host.name),
    });
}

fn data_dir(host: &HostRecord, found: &mut Vec<Finding>) {
    if host.data_trouble.is_empty() {
        return;
    }
    found.push(Finding {
        code: Code::HostDataDir,
        severity: Severity::Warning,
        subject: Subject::Host(host.id),
        cause: format!("data_dir of {}: {}", host.name, host.data_trouble.join("; ")),
        remedy: format!(
            "see that the data_dir of {} can be written and has room; disks are served without it meanwhile",
            host.name
        ),
    });
}

fn state(around: &Surroundings<'_>, host: &HostRecord, device: &DeviceRecord, found: &mut Vec<Finding>) {
    let name = format!("{} of {}", device.name, host.name);
    let count = components(device.component_count as usize);
    let (code, severity, cause, remedy) = match &device.state {
        DeviceState::InService => return,
        DeviceState::Away { since } => (
            Code::DeviceAway,
            Severity::Warning,
            format!(
                "{name} with {count} was not there when its group was opened, {} ago",
                ago(around.now, *since)
            ),
            format!("plug {name} in again, or wait until its components are replaced"),
        ),
        DeviceState::Failed { since, error } => (
            Code::DeviceFailed,
            Severity::Critical,
            format!("{name} with {count} failed {} ago: {error}", ago(around.now, *since)),
            format!("replace {name}; its components are rebuilt on other devices meanwhile"),
        ),
    };
    found.push(Finding { code, severity, subject: Subject::Device(device.id), cause, remedy });
}

/// A device that is being emptied: why, its progress, and the next step.
fn leaving(
    view: &View,
    around: &Surroundings<'_>,
    host: &HostRecord,
    device: &DeviceRecord,
    found: &mut Vec<Finding>,
) {
    let Some(leaving) = device.leaving.as_ref().filter(|_| device.state == DeviceState::InService) else {
        return;
    };
    let name = format!("{} of {}", device.name, host.name);
    let left = emptying(view, device.id);
    let since = ago(around.now, leaving.since);
    let how_far = match left.is_done() {
        true => "no component is left on it".to_owned(),
        false => {
            format!(
                "{} with {} yet to leave it",
                components(left.components_left),
                format_bytes(left.bytes_left)
            )
        }
    };
    let why = match &leaving.fault {
        Some(fault) => format!("{name} is being emptied, begun {since} ago: {fault}"),
        None => format!("{name} is being emptied, begun {since} ago by request"),
    };
    let remedy = match (left.is_done(), &leaving.fault) {
        (true, Some(_)) => format!("take {name} out (`drystone device remove`) and put another in its place"),
        (true, None) => format!("take {name} out (`drystone device remove`)"),
        (false, _) => format!(
            "wait; if nothing moves, add capacity; `drystone device evacuate --cancel {}` keeps what is left there",
            device.name
        ),
    };
    found.push(Finding {
        code: Code::DeviceLeaving,
        severity: if leaving.fault.is_some() { Severity::Warning } else { Severity::Notice },
        subject: Subject::Device(device.id),
        cause: format!("{why}; {how_far}"),
        remedy,
    });
}

fn room(view: &View, space: &DeviceSpace, found: &mut Vec<Finding>) {
    let name = format!("{} of {}", space.name, space.host_name);
    let subject = Subject::Device(space.id);
    let fullness = space.fullness();
    if fullness >= SPACE_LOW {
        let full =
            format!("with {} of {} free", format_bytes(space.free_bytes), format_bytes(space.capacity_bytes));
        let (cause, remedy) = match space.free_bytes < EXTENT_SIZE {
            true => (
                format!("{name} is full, {full}{}", harmed_by(view, space.id)),
                format!(
                    "add a capacity device, on {} at best (`drystone device add`), or free space: delete disks, or trim them in their \
                     guests (`fstrim`); copies then move by themselves, or with `drystone device evacuate`",
                    space.host_name
                ),
            ),
            false => (
                format!("{name} is {} % full, {full}", fullness / 100),
                "add capacity devices, or delete or trim disks".to_owned(),
            ),
        };
        found.push(Finding {
            code: Code::SpaceLow,
            severity: if fullness >= SPACE_CRITICAL { Severity::Critical } else { Severity::Warning },
            subject,
            cause,
            remedy,
        });
    }
    let (count, most) = (u64::from(space.component_count), u64::from(space.component_count_max));
    if count * 100 >= most * COMPONENTS_LOW {
        found.push(Finding {
            code: Code::ComponentsLow,
            severity: Severity::Warning,
            subject,
            cause: format!("{name} holds {count} components of the {most} that it can"),
            remedy: "add capacity devices, or delete disks".to_owned(),
        });
    }
}

/// The consequences of a full device for the disks on it.
fn harmed_by(view: &View, device: DeviceId) -> String {
    let is_full = |id: DeviceId| view.device(id).is_some_and(|(_, device)| device.free_bytes < EXTENT_SIZE);
    let (mut failing, mut reduced) = (BTreeSet::new(), BTreeSet::new());
    for disk in view.disks.values().filter(|disk| disk.state == DiskState::Active) {
        for (_, copies) in disk.layout.places() {
            if copies.iter().all(|copy| copy.device != device) {
                continue;
            }
            let takes = |copy: &&Component| view.is_sound(disk, copy.id) && !is_full(copy.device);
            match copies.iter().any(|copy| takes(&copy)) {
                true => reduced.insert(disk.name.clone()),
                false => failing.insert(disk.name.clone()),
            };
        }
    }
    let names = |disks: BTreeSet<String>| listed(&disks.into_iter().collect::<Vec<_>>());
    let reduced: BTreeSet<String> = reduced.difference(&failing).cloned().collect();
    let mut text = String::new();
    if !failing.is_empty() {
        text += &format!("; writes to places without data fail: {}", names(failing));
    }
    if !reduced.is_empty() {
        text += &format!("; new data has a copy fewer: {}", names(reduced));
    }
    text
}

/// Whether the data of the fullest host would find room on the others, where copies are rebuilt at all.
fn after_failure(view: &View, found: &mut Vec<Finding>) {
    let is_needed = view.disks.values().any(|disk| disk.policy.domains_min() > 1);
    let sums = |host: &HostRecord| {
        let in_service = host.devices.iter().filter(|device| device.state == DeviceState::InService);
        in_service.fold((0, 0), |(used, free), device| {
            (used + device.capacity_bytes.saturating_sub(device.free_bytes), free + device.free_bytes)
        })
    };
    let hosts: BTreeMap<_, (u64, u64)> = view.hosts.values().map(|host| (host.id, sums(host))).collect();
    let Some((worst, (used, own_free))) = hosts.iter().max_by_key(|(id, (used, _))| (*used, *id)) else {
        return;
    };
    let free: u64 = hosts.values().map(|(_, free)| free).sum::<u64>() - own_free;
    // With fewer hosts than this nothing could be rebuilt, whatever the room.
    if !is_needed || hosts.len() < 3 || *used <= free {
        return;
    }
    let name = view.host_name(*worst);
    found.push(Finding {
        code: Code::SpaceAfterFailure,
        severity: Severity::Warning,
        subject: Subject::Cluster,
        cause: format!(
            "if {name} failed, the {} on it would have to find room in {} on the other hosts",
            format_bytes(*used),
            format_bytes(free)
        ),
        remedy: format!("add {} of capacity, or delete or trim disks", format_bytes(used - free)),
    });
}

fn domains(view: &View, spaces: &[DeviceSpace], found: &mut Vec<Finding>) {
    let domains: BTreeSet<&str> =
        spaces.iter().filter(|space| space.in_service).map(DeviceSpace::domain_name).collect();
    let needed = |disk: &DiskRecord| disk.policy.domains_min();
    let Some(copies) = view.disks.values().map(needed).max().filter(|most| *most > 1) else {
        return;
    };
    let disks = view.disks.values().filter(|disk| needed(disk) == copies);
    let disks = listed(&disks.map(|disk| disk.name.clone()).collect::<Vec<_>>());
    let count = domains.len();
    let (severity, cause) = match count {
        _ if count < copies => (
            Severity::Warning,
            format!(
                "copies in {copies} fault domains are asked for ({disks}), and {count} have devices in service"
            ),
        ),
        _ if count == copies => (
            Severity::Notice,
            format!(
                "copies in {copies} fault domains are asked for ({disks}), which are all there are: after a failure there is \
                 no place for another copy"
            ),
        ),
        _ => return,
    };
    let more = copies + 1 - count;
    found.push(Finding {
        code: Code::DomainsTooFew,
        severity,
        subject: Subject::Cluster,
        cause,
        remedy: match more {
            1 => "add devices in another fault domain, or tolerate fewer failures".to_owned(),
            _ => format!("add devices in {more} more fault domains, or tolerate fewer failures"),
        },
    });
}
