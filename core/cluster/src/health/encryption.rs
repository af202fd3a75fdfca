//! The finding about devices that are not encrypted at rest beside others that are.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use crate::encryption::Encryption;
use crate::host::{DeviceEncryption, HostRecord};
use crate::limits::NAMED_MAX;
use crate::view::View;
use crate::words::verb;

/// Nothing while all devices are encrypted, or none is: that is what people decided. A mixture means that any disk may have
/// data on an unencrypted device, whatever people believe of it. A device that is partly encrypted is a mixture of its own.
/// Devices whose encryption is unknown count neither way.
pub(super) fn find(view: &View, found: &mut Vec<Finding>) {
    let reports = || view.hosts.values().map(|host| &host.reports.encryption);
    let encrypted: u64 = reports().map(|report| report.encrypted).sum();
    let unencrypted: u64 = reports().map(|report| report.unencrypted).sum();
    let is_partly = |device: &DeviceEncryption| device.encryption == Encryption::Partly;
    let has_partly = reports().any(|report| report.named.iter().any(is_partly));
    if unencrypted == 0 || encrypted == 0 && !has_partly {
        return;
    }
    let hosts = view.hosts.values();
    let of_host = |host: &HostRecord| -> Vec<(DeviceEncryption, String)> {
        host.reports.encryption.named.iter().map(|device| (device.clone(), host.name.clone())).collect()
    };
    let mut named: Vec<(DeviceEncryption, String)> = hosts.flat_map(of_host).collect();
    // Log devices first: the newest writes of all disks of their group stand there.
    named.sort_by_key(|(device, _)| (!device.is_log, !is_partly(device)));
    named.truncate(NAMED_MAX);
    let more = match unencrypted.saturating_sub(named.len() as u64) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let names: Vec<String> = named.iter().map(|(device, host)| name(device, host)).collect();
    let log = match named.iter().any(|(device, _)| device.is_log) {
        true => "; a log device holds the newest writes of all disks of its group",
        false => "",
    };
    found.push(Finding {
        code: Code::EncryptionMixed,
        severity: Severity::Warning,
        subject: Subject::Cluster,
        cause: format!(
            "{unencrypted} of {} devices {} not encrypted at rest, and any disk may have data there: {}{more}{log}",
            encrypted + unencrypted,
            verb(unencrypted as usize, "is", "are"),
            names.join(", ")
        ),
        remedy: format!(
            "encrypt these devices one after the other (`drystone device list --cluster` shows all; the guide: \"Encryption at \
             rest\"), or accept them for now: `drystone health silence {} --for 30d`",
            Code::EncryptionMixed
        ),
    });
}

fn name(device: &DeviceEncryption, host: &str) -> String {
    let what = match (device.is_log, device.encryption == Encryption::Partly) {
        (true, true) => " (log device, partly encrypted)",
        (true, false) => " (log device)",
        (false, true) => " (partly encrypted)",
        (false, false) => "",
    };
    format!("{} of {host}{what}", device.name)
}
