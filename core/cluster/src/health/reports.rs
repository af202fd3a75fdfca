//! Findings from reports of hosts that are in no record: damaged devices, and groups that store nothing.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use crate::host::{DamagedDevice, HostRecord};
use crate::limits::DAMAGED_BLOCKS_MAX;
use crate::view::View;

pub(super) fn find(view: &View, found: &mut Vec<Finding>) {
    let is_alone = view.hosts.len() == 1;
    for host in view.hosts.values() {
        found.extend(host.reports.damaged.iter().map(|device| damaged(host, device, is_alone)));
        found.extend(host.reports.failed_logs.iter().map(|(log, why)| failed_log(host, log, why)));
        found.extend(lone_logs(host));
    }
}

/// A damaged block is repaired from another copy, if there is one. A few repaired blocks are harmless; many mean that
/// the device is about to fail.
fn damaged(host: &HostRecord, device: &DamagedDevice, is_alone: bool) -> Finding {
    let blocks = |count: u64| if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") };
    let (name, count) = (format!("{} of {}", device.name, host.name), device.damaged_blocks);
    let is_bad = is_alone || count >= DAMAGED_BLOCKS_MAX;
    let unread = match device.read_errors {
        0 => String::new(),
        unread => format!(", {} of which could not be read", blocks(unread.min(count))),
    };
    let mended = match is_alone {
        true => "a damaged block without another copy answers with an I/O error until it is written again",
        false => "damaged blocks are written again from other copies, where there are any",
    };
    let path = &device.name;
    let remedy = match is_bad {
        true => format!(
            "copy what is on {name} elsewhere, or empty it with `drystone device evacuate {path}`, and put another in its place: \
             `drystone device replace {path} NEW`"
        ),
        false => format!(
            "watch the count in `drystone device list`; if it grows, replace {name}: `drystone device replace {path} NEW`"
        ),
    };
    Finding {
        code: Code::DeviceDamaged,
        severity: if is_bad { Severity::Warning } else { Severity::Notice },
        subject: Subject::Device(device.id),
        cause: format!(
            "{} of {name} {} found damaged since the service started{unread}; {mended}",
            blocks(count),
            if count == 1 { "was" } else { "were" }
        ),
        remedy,
    }
}

fn failed_log(host: &HostRecord, log: &str, why: &str) -> Finding {
    Finding {
        code: Code::LogFailed,
        severity: Severity::Critical,
        subject: Subject::Host(host.id),
        cause: format!(
            "the log device {log} of {} is out of service, and its disk group with it: {why}",
            host.name
        ),
        remedy: format!(
            "restart drystone on {} and make the group anew: `drystone device replace {log} NEW`; what stood in the group is made anew \
             from other copies",
            host.name
        ),
    }
}

/// One finding for each host: a subject has one finding of a kind.
fn lone_logs(host: &HostRecord) -> Option<Finding> {
    let logs = &host.reports.lone_logs;
    let (first, group) = logs.first()?;
    let paths: Vec<&str> = logs.iter().map(|(log, _)| log.as_str()).collect();
    let groups = if logs.len() == 1 { "a disk group" } else { "disk groups" };
    Some(Finding {
        code: Code::GroupNoCapacity,
        severity: Severity::Warning,
        subject: Subject::Host(host.id),
        cause: format!(
            "{} has {groups} with a log device and no capacity device, which store nothing: log {}",
            host.name,
            paths.join(", ")
        ),
        remedy: format!(
            "add a capacity device: `drystone device add DEVICE --group {group}`; or take the group out: `drystone device \
             remove {first} --group`"
        ),
    })
}
