//! Keeping a disk without redundancy on one host.
//!
//! A disk with one copy of its data is lost with any device or host that it stands on, so each further host is another
//! one whose failure takes the disk. Unless stripes are asked for by number, such a disk stays on one host while that host
//! has room. Must share no code with `check`.

use crate::candidate::Candidate;
use crate::device::DeviceSpace;
use crate::disk::PlacedDisk;
use base::HostId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The hosts of the candidates in the order in which a disk takes them: the one with the most room first, then the one
/// with the fewest components.
pub(crate) fn hosts_by_room(candidates: &[Candidate<'_>]) -> Vec<HostId> {
    let mut found: BTreeMap<HostId, (u64, u64, u64)> = BTreeMap::new();
    for candidate in candidates {
        let (bytes, components, lot) = found.entry(candidate.device.host).or_insert((0, 0, u64::MAX));
        *bytes = bytes.saturating_add(candidate.device.available_bytes());
        *components += u64::from(candidate.device.component_count);
        *lot = candidate.lot.min(*lot);
    }
    let mut order: Vec<HostId> = found.keys().copied().collect();
    order.sort_by_key(|host| {
        let (bytes, components, lot) = found[host];
        (Reverse(bytes), components, lot, *host)
    });
    order
}

/// Finds the first host that can take everything, or else as few hosts as can take it together.
///
/// # Errors
/// What `place` says of all candidates together.
pub(crate) fn place_on_fewest<T, E>(
    candidates: &[Candidate<'_>],
    place: impl Fn(&[Candidate<'_>]) -> Result<T, E>,
) -> Result<T, E> {
    let order = hosts_by_room(candidates);
    let place_on = |hosts: &[HostId]| {
        let those: Vec<Candidate<'_>> =
            candidates.iter().filter(|one| hosts.contains(&one.device.host)).copied().collect();
        place(&those)
    };
    if let Some(found) = order.iter().find_map(|host| place_on(&[*host]).ok()) {
        return Ok(found);
    }
    let mut best = place(candidates)?;
    // The first `fails` hosts are too few, the first `holds` are enough.
    let (mut fails, mut holds) = (1, order.len());
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        match place_on(&order[..middle]) {
            Ok(found) => (best, holds) = (found, middle),
            Err(_) => fails = middle,
        }
    }
    Ok(best)
}

/// The devices of the hosts that a disk stands on, where these have room for another `bytes` of it, or at least half the
/// room of the host that has the most: a host that is much fuller would end the whole disk when it is full.
pub(crate) fn home_of(
    disk: &PlacedDisk<'_>,
    bytes: u64,
    devices: &[DeviceSpace],
) -> Option<Vec<DeviceSpace>> {
    let used: BTreeSet<_> = disk.layout.components().map(|(_, one)| one.device).collect();
    let home: BTreeSet<HostId> =
        devices.iter().filter(|device| used.contains(&device.id)).map(|device| device.host).collect();
    let mut room: BTreeMap<HostId, u64> = BTreeMap::new();
    for device in devices.iter().filter(|device| device.in_service && device.component_room() > 0) {
        let sum = room.entry(device.host).or_default();
        *sum = sum.saturating_add(device.available_bytes());
    }
    let best = room.values().max().copied().unwrap_or(0);
    let here =
        home.iter().filter_map(|host| room.get(host)).fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let is_enough = here > 0 && (here >= bytes || here >= best / 2);
    is_enough.then(|| devices.iter().filter(|device| home.contains(&device.host)).cloned().collect())
}
