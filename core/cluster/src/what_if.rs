//! Forecasts for a cluster: if hosts were lost, if one were added, if disks had another policy.
//!
//! No rule is made for it: the same view with one difference goes through the same decisions ([`crate::Repairs`],
//! [`crate::Balancer`]) and transitions until nothing is left to do, as if every copy had arrived. Must never change
//! anything.

mod domain;
mod forecast;
mod future;
mod new_host;
mod verdict;

use crate::device::{DeviceRecord, DeviceState};
use crate::disk::MoveRoom;
use crate::ground::device_name;
use crate::host::HostRecord;
use crate::liveness::{Absence, Liveness};
use crate::status::{Condition, conditions};
use crate::view::View;
use base::{DeviceId, DiskId, Instant};
pub use domain::hosts_of_domain;
pub use forecast::{Change, Evens, Forecast, HostSpace, Outlook, Question};
use future::Future;
pub use new_host::NewHost;
use std::collections::BTreeMap;

/// Answers a question. Hosts that are away count as staying away, and incoming components as arriving. The same
/// arguments give the same answer.
pub fn what_if(view: &View, question: &Question, evens: Evens, now: Instant, seed: u64) -> Forecast {
    let mut start = view.clone();
    let mut lacks: BTreeMap<DiskId, Vec<String>> = BTreeMap::new();
    match question {
        Question::LoseHosts(hosts) => {
            for host in hosts {
                let gone = Liveness::Away { since: now, why: Absence::Unexpected };
                start.liveness.insert(*host, gone);
            }
        }
        Question::AddHost(host) => {
            start.liveness.insert(host.id, Liveness::Alive);
            start.hosts.insert(host.id, HostRecord::clone(host));
        }
        Question::SetPolicy { .. } => {}
    }
    let at_once = conditions(&start);
    let evens = if matches!(question, Question::AddHost(_)) { evens } else { Evens::Nothing };
    let mut future = Future::new(start, now, seed);
    let mut changes: BTreeMap<DiskId, Change> = BTreeMap::new();
    if let Question::SetPolicy { disks, policy } = question {
        // The smallest first, as disks that follow a named policy.
        let mut disks = disks.clone();
        disks.sort_by_key(|id| (view.disks.get(id).map(|disk| disk.size), *id));
        changes.extend(disks.into_iter().map(|disk| (disk, future.set_policy(disk, policy))));
    }
    future.unfold(evens);
    for (disk, change) in &changes {
        let lacks = lacks.entry(*disk).or_default();
        match change {
            Change::Refused(why) => lacks.push(why.clone()),
            Change::Done | Change::AtOnce | Change::Moves(_) => lacks.extend(future.owed(*disk)),
        }
    }
    for (disk, cause) in future.refused() {
        lacks.entry(disk).or_default().push(cause);
    }
    let move_rooms = move_rooms(view, changes.values());
    let outlooks = outlooks(view, &at_once, &mut future, lacks, changes);
    let targets = outlooks.iter().flat_map(|one| one.targets.keys().copied());
    let targets = targets.chain(move_rooms.iter().map(|room| room.device));
    let device_names = targets.map(|id| (id, device_name(&future.view, id))).collect();
    let mut forecast = Forecast {
        before: space(view),
        after: space(&future.view),
        disks: outlooks,
        bytes_to_copy: future.bytes_to_copy,
        bytes_to_even: future.bytes_to_even,
        bytes_freed: future.bytes_freed,
        move_rooms,
        device_names,
        verdict: String::new(),
    };
    forecast.verdict = verdict::of(view, question, &forecast);
    if let Question::LoseHosts(hosts) = question {
        forecast.verdict.extend(domain::warning(view, hosts).map(|warning| format!("; {warning}")));
    }
    forecast
}

/// What moves use of each device: of several disks that move one after the other, the most.
fn move_rooms<'a>(view: &View, changes: impl Iterator<Item = &'a Change>) -> Vec<MoveRoom> {
    let mut rooms: BTreeMap<DeviceId, MoveRoom> = BTreeMap::new();
    let plans = changes.filter_map(|change| match change {
        Change::Moves(plan) => Some(plan),
        Change::Done | Change::AtOnce | Change::Refused(_) => None,
    });
    for one in plans.flat_map(|plan| &plan.devices) {
        let room = rooms.entry(one.device).or_insert(*one);
        room.peak_bytes = room.peak_bytes.max(one.peak_bytes);
        room.scattered_peak_bytes = room.scattered_peak_bytes.max(one.scattered_peak_bytes);
    }
    let used = |device: &DeviceRecord| device.capacity_bytes.saturating_sub(device.free_bytes);
    for room in rooms.values_mut() {
        room.used_bytes = view.device(room.device).map_or(room.used_bytes, |(_, device)| used(device));
    }
    rooms.into_values().collect()
}

/// The forecasts of the disks that are asked about, or to which something happens.
fn outlooks(
    view: &View,
    at_once: &BTreeMap<DiskId, Condition>,
    future: &mut Future,
    mut lacks: BTreeMap<DiskId, Vec<String>>,
    mut changes: BTreeMap<DiskId, Change>,
) -> Vec<Outlook> {
    let then = conditions(&future.view);
    let mut outlooks = Vec::new();
    for (id, now) in conditions(view) {
        let moved = future.moved.remove(&id).unwrap_or_default();
        let lacks = lacks.remove(&id).unwrap_or_default();
        let (at_once, then) = (at_once[&id], then[&id]);
        let change = changes.remove(&id);
        let is_touched = change.is_some()
            || now != at_once
            || at_once != then
            || !moved.targets.is_empty()
            || (!lacks.is_empty() && now != Condition::Whole);
        if is_touched {
            let name = view.disks[&id].name.clone();
            let (bytes, targets) = (moved.bytes, moved.targets);
            outlooks.push(Outlook { disk: id, name, now, at_once, then, bytes, targets, lacks, change });
        }
    }
    outlooks.sort_by(|a, b| (b.then, b.at_once, &a.name).cmp(&(a.then, a.at_once, &b.name)));
    outlooks
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

#[cfg(test)]
mod tests;
