//! Findings about hosts that do not reach each other.
//!
//! A host that no other one reaches is suspect, and reported as such. Here are hosts that some others reach and some
//! do not, which no host can see by itself.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::Surroundings;
use crate::limits::LINK_DOWN_AFTER;
use crate::liveness::Liveness;
use crate::view::View;
use crate::words::{ago, listed};
use base::{HostId, Instant};
use std::collections::BTreeMap;

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
