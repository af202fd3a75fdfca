//! Findings about the releases that hosts run, and about the level of the records.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::Surroundings;
use crate::levels::Raise;
use crate::view::View;
use crate::words::listed;
use std::collections::BTreeMap;

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    releases(view, found);
    raise(around, found);
    outdated(view, around, found);
    unreadable(around, found);
}

fn releases(view: &View, found: &mut Vec<Finding>) {
    let mut hosts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for host in view.hosts.values() {
        hosts.entry(&host.release).or_default().push(host.name.clone());
    }
    if hosts.len() < 2 {
        return;
    }
    let text = |(release, hosts): (&&str, &Vec<String>)| format!("{release} on {}", listed(hosts));
    let texts: Vec<String> = hosts.iter().map(text).collect();
    found.push(Finding {
        code: Code::VersionsMixed,
        severity: Severity::Notice,
        subject: Subject::Cluster,
        cause: format!("an upgrade is under way: hosts run {} releases: {}", hosts.len(), texts.join("; ")),
        remedy: "bring all hosts to one release, one host after the other".to_owned(),
    });
}

fn raise(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let Raise::Possible { to } = around.levels.raise() else { return };
    found.push(Finding {
        code: Code::LevelBehind,
        severity: Severity::Notice,
        subject: Subject::Cluster,
        cause: format!(
            "all hosts understand records of {to}, and the cluster writes {}",
            around.levels.level
        ),
        remedy: "run `drystone cluster upgrade`, once no host is to go back to its former release".to_owned(),
    });
}

/// Hosts whose program does not understand the records any more. None starts so, so somebody forced the level.
fn outdated(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let level = around.levels.level;
    for (id, levels) in around.levels.hosts.iter().filter(|(_, levels)| !levels.contains(level)) {
        let release = view.hosts.get(id).map_or("", |host| host.release.as_str());
        found.push(Finding {
            code: Code::HostOutdated,
            severity: Severity::Critical,
            subject: Subject::Host(*id),
            cause: format!(
                "{} last ran drystone {release}, which understands records of {levels}, and the cluster's are at {level}",
                view.host_name(*id)
            ),
            remedy: format!("install a release on {} that understands {level}, and start it", view.host_name(*id)),
        });
    }
}

fn unreadable(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let Some(first) = around.levels.unreadable.first() else { return };
    let count = match around.levels.unreadable.len() {
        1 => "a record".to_owned(),
        count => format!("{count} records"),
    };
    found.push(Finding {
        code: Code::RecordsUnreadable,
        severity: Severity::Critical,
        subject: Subject::Cluster,
        cause: format!("{count} of the directory cannot be read, so this host knows the state of before: {first}"),
        remedy: "see with `drystone cluster upgrade --dry-run` which releases run, and install the latest of them here"
            .to_owned(),
    });
}
