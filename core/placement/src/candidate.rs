//! The devices that a plan may use, and the order in which it takes them.

use crate::device::DeviceSpace;
use crate::refusal::Cause;
use base::Random;
use base::units::EXTENT_SIZE;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A device that could be used.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// Its place in the caller's list.
    pub index: usize,
    /// Its lot among equals, drawn from the seed and its id alone: the order of the list does not change a plan.
    pub lot: u64,
    /// Its fault domain, counted among those of all candidates.
    pub domain: usize,
    /// The device.
    pub device: &'a DeviceSpace,
}

/// The lot of a device among equals.
pub(crate) fn lot(device: &DeviceSpace, seed: u64) -> u64 {
    let mixed = (device.id.0 as u64) ^ ((device.id.0 >> 64) as u64).rotate_left(32) ^ seed;
    Random::new(mixed).bits()
}

/// The devices in service that have at least one free extent.
pub(crate) fn candidates(devices: &[DeviceSpace], seed: u64) -> Result<Vec<Candidate<'_>>, Cause> {
    if !devices.iter().any(|device| device.in_service) {
        return Err(Cause::NoDevice);
    }
    let usable = |device: &DeviceSpace| device.in_service && device.available_bytes() >= EXTENT_SIZE;
    let domains: BTreeSet<_> = devices.iter().filter(|d| usable(d)).map(DeviceSpace::domain).collect();
    let numbers: BTreeMap<_, usize> = domains.into_iter().zip(0..).collect();
    let candidate = |(index, device)| Candidate {
        index,
        lot: lot(device, seed),
        domain: numbers[&device.domain()],
        device,
    };
    let found: Vec<Candidate<'_>> =
        devices.iter().enumerate().filter(|(_, device)| usable(device)).map(candidate).collect();
    if found.is_empty() { Err(Cause::Full) } else { Ok(found) }
}

/// How many devices to take, in all and of what.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    /// In all.
    pub count: usize,
    /// At most so many of one group.
    pub per_group: usize,
    /// At most so many of one fault domain.
    pub per_domain: usize,
}

/// Takes devices one after the other: of the fault domain used least, then of the host, then of the group used least,
/// then with the most room and the fewest components.
pub(crate) fn spread<'a>(mut rest: Vec<&'a Candidate<'a>>, how: Spread) -> Vec<&'a Candidate<'a>> {
    let mut chosen = Vec::new();
    let mut domains = BTreeMap::new();
    let mut hosts = BTreeMap::new();
    let mut groups = BTreeMap::new();
    for candidate in &rest {
        domains.insert(candidate.domain, 0usize);
        hosts.insert(candidate.device.host, 0usize);
        groups.insert(candidate.device.group, 0usize);
    }
    while chosen.len() < how.count {
        let key = |candidate: &Candidate<'_>| {
            let device = candidate.device;
            let used = (domains[&candidate.domain], hosts[&device.host], groups[&device.group]);
            (used, Reverse(device.available_bytes()), device.component_count, candidate.lot, device.id)
        };
        let allowed = rest.iter().enumerate().filter(|(_, candidate)| {
            groups[&candidate.device.group] < how.per_group && domains[&candidate.domain] < how.per_domain
        });
        let Some((place, _)) = allowed.min_by_key(|(_, candidate)| key(candidate)) else { break };
        let taken = rest.swap_remove(place);
        *domains.entry(taken.domain).or_default() += 1;
        *hosts.entry(taken.device.host).or_default() += 1;
        *groups.entry(taken.device.group).or_default() += 1;
        chosen.push(taken);
    }
    chosen
}
