//! Hosts that fail together.

use crate::host::HostRecord;
use crate::liveness::{Absence, Liveness};
use crate::status::{Condition, conditions};
use crate::view::View;
use crate::words::{disks, listed, verb};
use base::{HostId, Instant};
use placement::FaultDomain;
use std::collections::BTreeSet;

/// The hosts of a fault domain by its name. A host outside any domain is one by itself.
pub fn hosts_of_domain(view: &View, name: &str) -> BTreeSet<HostId> {
    let is_of = |host: &&HostRecord| match host.domain() {
        FaultDomain::Named(domain) => domain == name,
        FaultDomain::Host(_) | FaultDomain::Group(_) => host.name == name,
    };
    view.hosts.values().filter(is_of).map(|host| host.id).collect()
}

/// Warns of disks that the rest of the fault domains of `lost` would take with it; none if these are no more.
pub(super) fn warning(view: &View, lost: &BTreeSet<HostId>) -> Option<String> {
    let domains: BTreeSet<FaultDomain<'_>> =
        lost.iter().filter_map(|host| view.hosts.get(host)).map(HostRecord::domain).collect();
    let is_there = |host: &&HostRecord| !matches!(view.liveness(host.id), Liveness::Away { .. });
    let together = view.hosts.values().filter(|host| domains.contains(&host.domain()));
    let others: Vec<&HostRecord> =
        together.filter(|host| !lost.contains(&host.id)).filter(is_there).collect();
    if others.is_empty() {
        return None;
    }
    let mut without = view.clone();
    let gone = Liveness::Away { since: Instant(0), why: Absence::Unexpected };
    lost.iter().for_each(|host| {
        without.liveness.insert(*host, gone);
    });
    let before = conditions(&without);
    others.iter().for_each(|host| {
        without.liveness.insert(host.id, gone);
    });
    let dead: Vec<String> = conditions(&without)
        .into_iter()
        .filter(|(disk, then)| *then == Condition::Inaccessible && before[disk] != Condition::Inaccessible)
        .map(|(disk, _)| view.disks[&disk].name.clone())
        .collect();
    if dead.is_empty() {
        return None;
    }
    let names: BTreeSet<String> = others.iter().filter_map(|host| host.fault_domain.clone()).collect();
    let others: Vec<String> = others.iter().map(|host| host.name.clone()).collect();
    Some(format!(
        "{} {} in fault domain {}, too: if {} lost with it, {} cannot be used: {}",
        listed(&others),
        verb(others.len(), "is", "are"),
        listed(&names.into_iter().collect::<Vec<_>>()),
        verb(others.len(), "that host is", "these hosts are"),
        disks(dead.len()),
        listed(&dead)
    ))
}
