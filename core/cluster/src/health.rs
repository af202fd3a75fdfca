//! Findings: what is wrong with a cluster, as data, computed by one pure function.
//!
//! Every finding has a code that stays the same between releases, a subject, a cause and a remedy. Cause and remedy
//! are one sentence each, with names and figures. Must never find anything in a healthy cluster.

mod certificates;
mod code;
mod disks;
mod encryption;
mod finding;
mod hosts;
mod links;
mod provisioned;
mod remedies;
mod reports;
mod schedules;
mod silence;
pub(crate) mod surroundings;
mod versions;
mod watch;

use crate::host::HostRecord;
use crate::limits::{CLOCK_SKEW_MAX, REPLACEMENTS_MAX};
use crate::liveness::Liveness;
use crate::view::View;
use crate::wall_clock::ahead_ns;
use crate::words::{ago, duration, listed};
pub use code::{Code, Group};
pub use finding::{Finding, Severity, Subject};
pub use provisioned::Provisioned;
pub use remedies::{NamedDevice, Remedy, remedies};
pub use silence::{Silence, is_about, silenced};
use std::time::Duration;
pub use surroundings::{Directory, Holder, Lifespan, Links, SilentMember, Surroundings};
pub use watch::{Turn, Watch};

/// All findings, the worst first, then by code and subject.
pub fn findings(view: &View, around: &Surroundings<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    hosts::find(view, around, &mut found);
    disks::find(view, around, &mut found);
    schedules::find(view, around, &mut found);
    reports::find(view, &mut found);
    encryption::find(view, &mut found);
    directory(around, &mut found);
    members(around, &mut found);
    provisioned::find(view, &mut found);
    repairs(around, &mut found);
    clocks(view, &mut found);
    versions::find(view, around, &mut found);
    links::find(view, around, &mut found);
    certificates::find(view, around, &mut found);
    found.sort_by_key(|one| (one.severity, one.code, one.subject));
    found
}

fn directory(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    if let Directory::Unreachable { since } = around.directory {
        found.push(Finding {
            code: Code::DirectoryUnreachable,
            severity: Severity::Critical,
            subject: Subject::Cluster,
            cause: format!(
                "the directory has not answered for {}: disks go on, but nothing can be created, moved or declared absent",
                ago(around.now, since)
            ),
            remedy: "see that a majority of its members runs and can be reached from this host".to_owned(),
        });
    }
}

fn repairs(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    if around.repairs.are_off() {
        found.push(Finding {
            code: Code::RepairOff,
            severity: Severity::Warning,
            subject: Subject::Cluster,
            cause: "the setting `replacements` is 0: lost components are not rebuilt, hosts and devices are not emptied, and devices are not rebalanced"
                .to_owned(),
            remedy: format!("end it with `drystone cluster set replacements {REPLACEMENTS_MAX}`"),
        });
    }
}

/// Members of the directory that do not answer while others do: with the next lost one the directory may stop.
fn members(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    if around.directory != Directory::Reachable || around.silent_members.is_empty() {
        return;
    }
    let silent = around.silent_members;
    let one = |member: &SilentMember| {
        format!("{} (for {}: {})", member.address, ago(around.now, member.since), member.why)
    };
    let named: Vec<String> = silent.iter().map(one).collect();
    let total = silent.iter().map(|member| member.members).max().unwrap_or_default();
    let spare = (total.saturating_sub(1) / 2).saturating_sub(silent.len());
    let left = match spare {
        0 => "none of the others may be lost".to_owned(),
        1 => "1 of the others may be lost".to_owned(),
        spare => format!("{spare} of the others may be lost"),
    };
    found.push(Finding {
        code: Code::DirectoryMember,
        severity: Severity::Warning,
        subject: Subject::Cluster,
        cause: format!(
            "{} of {total} members of etcd do not answer: {}; {left}",
            silent.len(),
            listed(&named)
        ),
        remedy:
            "start etcd there, or see why this host does not reach it; `etcdctl endpoint status` tells more"
                .to_owned(),
    });
}

/// Hosts whose clocks differ from those of the others. The directory's clock is no reference: it is counted on from a
/// record and is late after restarts (edge/etcd/src/clock.rs), for all hosts alike.
fn clocks(view: &View, found: &mut Vec<Finding>) {
    let there = |host: &&HostRecord| view.liveness(host.id) == Liveness::Alive;
    let Some(middle) = ahead_ns(view) else { return };
    let names: Vec<String> = view.hosts.values().filter(there).map(|host| host.name.clone()).collect();
    for host in view.hosts.values().filter(there) {
        let difference = host.clock_ahead_ns.saturating_sub(middle);
        let off = Duration::from_nanos(difference.unsigned_abs());
        if off <= CLOCK_SKEW_MAX {
            continue;
        }
        let direction = if difference > 0 { "ahead of" } else { "behind" };
        let others = match names.len() {
            // Of two clocks nobody can tell which is right.
            2 => names.iter().find(|name| **name != host.name).cloned().unwrap_or_default(),
            _ => "most hosts".to_owned(),
        };
        found.push(Finding {
            code: Code::ClockSkew,
            severity: Severity::Warning,
            subject: Subject::Host(host.id),
            cause: format!("the clock of {} is {} {direction} that of {others}", host.name, duration(off)),
            remedy: format!("let {} synchronise its clock, for instance with chrony", host.name),
        });
    }
}

#[cfg(test)]
mod tests;
