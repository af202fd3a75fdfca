//! Who was heard of when: what hosts tell every second, kept in memory only.
//!
//! A heartbeat is no transaction: it is not stable, wakes no watch, and costs the directory no write. Its answer tells the
//! directory's clock, by which all hosts count, and what every other host told last.

use ::cluster::{DamagedDevice, DeviceEncryption, DeviceReports, Encryption, EncryptionReport};
use api::types::ReplicationView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a host tells of itself every second. One of a later version may tell more, which is not looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// Its id.
    pub host: String,
    /// Other hosts, and whether it reaches them.
    pub links: BTreeMap<String, bool>,
    /// How far its clock is ahead of the directory's, in nanoseconds, as far as it knows.
    pub clock_ahead_ns: i64,
    /// What it tells, as their owner, of disks that are not whole.
    pub owned: Vec<ReplicationView>,
    /// What is wrong with its data directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_trouble: Vec<String>,
    /// What it tells of its devices and groups beside their records.
    #[serde(default, skip_serializing_if = "DeviceBeat::is_empty")]
    pub devices: DeviceBeat,
}

/// [`DeviceReports`] in a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceBeat {
    /// Devices with damaged blocks: id, path, blocks found damaged, blocks of these that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<(String, String, u64, u64)>,
    /// Log devices of groups without capacity devices, and the groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lone_logs: Vec<(String, String)>,
    /// Log devices out of service, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed_logs: Vec<(String, String)>,
    /// Number of devices that are encrypted at rest.
    #[serde(default, skip_serializing_if = "is_zero")]
    encrypted: u64,
    /// Number of devices that are not, or partly.
    #[serde(default, skip_serializing_if = "is_zero")]
    unencrypted: u64,
    /// Some of these: path, whether it is a log device, encryption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unencrypted_named: Vec<(String, bool, String)>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl DeviceBeat {
    fn is_empty(&self) -> bool {
        *self == DeviceBeat::default()
    }

    /// For a heartbeat.
    pub fn of(reports: &DeviceReports) -> DeviceBeat {
        let (damaged, named) = (reports.damaged.iter(), reports.encryption.named.iter());
        DeviceBeat {
            damaged: damaged
                .map(|one| (one.id.to_string(), one.name.clone(), one.damaged_blocks, one.read_errors))
                .collect(),
            lone_logs: reports.lone_logs.clone(),
            failed_logs: reports.failed_logs.clone(),
            encrypted: reports.encryption.encrypted,
            unencrypted: reports.encryption.unencrypted,
            unencrypted_named: named
                .map(|one| (one.name.clone(), one.is_log, one.encryption.as_str().to_owned()))
                .collect(),
        }
    }

    /// What a heartbeat says; a device whose id cannot be read is left out.
    pub fn read(&self) -> DeviceReports {
        let device = |(id, name, damaged, unread): &(String, String, u64, u64)| {
            let (name, damaged_blocks, read_errors) = (name.clone(), *damaged, *unread);
            Some(DamagedDevice { id: id.parse().ok()?, name, damaged_blocks, read_errors })
        };
        let named = |(name, is_log, encryption): &(String, bool, String)| DeviceEncryption {
            name: name.clone(),
            is_log: *is_log,
            encryption: Encryption::read(encryption),
        };
        DeviceReports {
            damaged: self.damaged.iter().filter_map(device).collect(),
            lone_logs: self.lone_logs.clone(),
            failed_logs: self.failed_logs.clone(),
            encryption: EncryptionReport {
                encrypted: self.encrypted,
                unencrypted: self.unencrypted,
                named: self.unencrypted_named.iter().map(named).collect(),
            },
        }
    }
}

/// A host's last heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// When it came, by the directory's clock: nanoseconds since 1970.
    pub at_ns: u64,
    /// What it said.
    pub beat: Beat,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attendees {
    /// Now, by the directory's clock.
    pub now_ns: u64,
    /// Since when heartbeats are counted: who was not heard of since then may have been heard of before.
    pub since_ns: u64,
    /// Whether this time is exact: a host that has just begun to follow a clock that others write may be late by seconds.
    #[serde(default = "is_certain", skip_serializing_if = "Clone::clone")]
    pub is_certain: bool,
    /// Every host's last one.
    pub heard: Vec<Heard>,
}

fn is_certain() -> bool {
    true
}

/// The last heartbeats.
pub struct Presence {
    since_ns: u64,
    heard: BTreeMap<String, Heard>,
}

impl Presence {
    /// Nobody was heard of yet.
    pub fn new() -> Presence {
        Presence { since_ns: now_ns(), heard: BTreeMap::new() }
    }

    /// Notes a heartbeat, and tells of all. `is_member`: which hosts have a record; others are forgotten.
    pub fn take(&mut self, beat: Beat, is_member: impl Fn(&str) -> bool) -> Attendees {
        let at_ns = now_ns();
        self.heard.insert(beat.host.clone(), Heard { at_ns, beat });
        self.heard.retain(|host, _| is_member(host));
        Attendees {
            now_ns: at_ns,
            since_ns: self.since_ns,
            is_certain: true,
            heard: self.heard.values().cloned().collect(),
        }
    }
}

/// Nanoseconds since 1970, by this machine's clock.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    u64::try_from(now).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_tells_of_its_devices_arrives_as_it_was() {
        let device =
            |name: &str, is_log, encryption| DeviceEncryption { name: name.to_owned(), is_log, encryption };
        let devices = [
            device("/dev/mapper/store1", false, Encryption::Luks2),
            device("/dev/sdb", true, Encryption::None),
            device("/dev/md0", false, Encryption::Partly),
            device("/dev/zd0", false, Encryption::Unknown),
        ];
        let encryption = EncryptionReport::of(devices.into_iter());
        assert_eq!((encryption.encrypted, encryption.unencrypted), (1, 2));
        let reports = DeviceReports { encryption, ..DeviceReports::default() };
        let told = serde_json::to_string(&DeviceBeat::of(&reports)).expect("it is plain");
        let read: DeviceBeat = serde_json::from_str(&told).expect("it is a heartbeat");
        assert_eq!(read.read(), reports);
        assert!(!read.is_empty());
    }

    #[test]
    fn a_heartbeat_of_an_earlier_release_says_nothing_of_encryption() {
        let read: DeviceBeat =
            serde_json::from_str(r#"{"lone_logs":[["/dev/sda","g7"]]}"#).expect("it is read");
        assert_eq!(read.read().encryption, EncryptionReport::default());
        assert_eq!(serde_json::to_string(&DeviceBeat::default()).expect("it is plain"), "{}");
    }
}
