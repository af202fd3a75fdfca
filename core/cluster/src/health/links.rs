//! Findings about hosts that are there and do not reach each other.
//!
//! A host that nobody reaches is suspect, and told of as such. Here are the others: of whom some are reached and others
//! are not, which no host can see of its own.

use super::{Code, Finding, Severity, Subject, Surroundings};
use crate::limits::{HEARTBEAT_SILENCE, LINK_DOWN_AFTER};
use crate::liveness::{LinkReport, Liveness};
use crate::status::{ago, listed};
use crate::view::View;
use base::{HostId, Instant};
use std::collections::BTreeMap;

/// Since when hosts that are heard of have not reached each other.
#[derive(Debug, Clone, Default)]
pub struct Links {
    down: BTreeMap<(HostId, HostId), Instant>,
}

impl Links {
    /// Takes in what hosts said last, and when each was last heard of.
    pub fn step(&mut self, now: Instant, reports: &[LinkReport], heard: &BTreeMap<HostId, Instant>) {
        let is_heard = |host: &HostId| heard.get(host).is_some_and(|at| now.since(*at) <= HEARTBEAT_SILENCE);
        let is_down = |one: &&LinkReport| !one.is_up && is_heard(&one.reporter) && is_heard(&one.about);
        let down = reports.iter().filter(is_down).map(|one| {
            let key = (one.reporter, one.about);
            (key, self.down.get(&key).copied().unwrap_or(now))
        });
        self.down = down.collect();
    }
}

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let mut of_host: BTreeMap<HostId, Vec<(HostId, Instant)>> = BTreeMap::new();
    let is_there = |host: HostId| {
        view.hosts.contains_key(&host) && !matches!(view.liveness(host), Liveness::Away { .. })
    };
    for ((reporter, about), since) in &around.links.down {
        let is_old = around.now.since(*since) >= LINK_DOWN_AFTER;
        if is_old && is_there(*reporter) && is_there(*about) {
            of_host.entry(*reporter).or_default().push((*about, *since));
        }
    }
    for (reporter, others) in of_host {
        let name = view.host_name(reporter);
        let names = listed(&others.iter().map(|(about, _)| view.host_name(*about)).collect::<Vec<_>>());
        let since = others.iter().map(|(_, since)| *since).min().unwrap_or(around.now);
        found.push(Finding {
            code: Code::LinkDown,
            severity: Severity::Warning,
            subject: Subject::Host(reporter),
            cause: format!(
                "{name} has not reached {names} for {}, though both sides tell the directory that they are there",
                ago(around.now, since)
            ),
            remedy: format!(
                "look at the network between {name} and {names}: cables, switches, and firewalls at the ports of `peers`"
            ),
        });
    }
}
