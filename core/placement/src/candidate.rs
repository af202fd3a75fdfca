//! The devices that a plan may use, and the order in which it takes them.

use crate::device::DeviceSpace;
use crate::refusal::Cause;
use base::Random;
use base::units::EXTENT_SIZE;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A device that could be used.
pub(crate) struct Candidate<'a> {
    /// Its place in the caller's list.
    pub index: usize,
    /// Its lot among equals, drawn from the seed and its id alone: the order of the list does not change a plan.
    pub lot: u64,
    /// The device.
    pub device: &'a DeviceSpace,
}

/// The devices in service that have at least one free extent.
pub(crate) fn candidates(devices: &[DeviceSpace], seed: u64) -> Result<Vec<Candidate<'_>>, Cause> {
    if !devices.iter().any(|device| device.in_service) {
        return Err(Cause::NoDevice);
    }
    let usable = |device: &DeviceSpace| device.in_service && device.available_bytes() >= EXTENT_SIZE;
    let lot = |device: &DeviceSpace| {
        let mixed = (device.id.0 as u64) ^ ((device.id.0 >> 64) as u64).rotate_left(32) ^ seed;
        Random::new(mixed).bits()
    };
    let found: Vec<Candidate<'_>> = devices
        .iter()
        .enumerate()
        .filter(|(_, device)| usable(device))
        .map(|(index, device)| Candidate { index, lot: lot(device), device })
        .collect();
    if found.is_empty() { Err(Cause::Full) } else { Ok(found) }
}

/// Takes up to `count` devices one after the other: of the host used least, then of the group used least, then with the
/// most room and the fewest components. At most `per_group` of one group.
pub(crate) fn spread<'a>(
    mut rest: Vec<&'a Candidate<'a>>,
    count: usize,
    per_group: usize,
) -> Vec<&'a Candidate<'a>> {
    let mut chosen = Vec::new();
    let mut hosts = BTreeMap::new();
    let mut groups = BTreeMap::new();
    for candidate in &rest {
        hosts.insert(candidate.device.host, 0usize);
        groups.insert(candidate.device.group, 0usize);
    }
    while chosen.len() < count {
        let key = |candidate: &Candidate<'_>| {
            let device = candidate.device;
            let room = Reverse(device.available_bytes());
            (
                hosts[&device.host],
                groups[&device.group],
                room,
                device.component_count,
                candidate.lot,
                device.id,
            )
        };
        let allowed = rest.iter().enumerate().filter(|(_, c)| groups[&c.device.group] < per_group);
        let Some((place, _)) = allowed.min_by_key(|(_, candidate)| key(candidate)) else { break };
        let taken = rest.swap_remove(place);
        *hosts.entry(taken.device.host).or_default() += 1;
        *groups.entry(taken.device.group).or_default() += 1;
        chosen.push(taken);
    }
    chosen
}
