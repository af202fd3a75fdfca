//! What a host tells of its devices and groups beside their records.

use ::cluster::{DamagedDevice, DeviceEncryption, DeviceReports, EncryptionReport};
use engine::{DeviceState, HostState};

/// What a host tells of its devices and groups beside their records.
pub fn reports_of(host: &HostState) -> DeviceReports {
    let path = |device: &DeviceState| device.path.display().to_string();
    let damaged = host.devices.iter().filter(|device| device.damaged_blocks > 0 && device.failure.is_none());
    let logs = host.devices.iter().filter(|device| device.is_log && !device.is_capacity);
    let has_capacity = |group| host.devices.iter().any(|device| device.group == group && device.is_capacity);
    let failed = logs.clone().filter_map(|log| Some((path(log), log.failure.clone()?)));
    let lone = logs.filter(|log| log.failure.is_none() && !has_capacity(log.group));
    let encryption = |device: &DeviceState| DeviceEncryption {
        name: path(device),
        is_log: device.is_log && !device.is_capacity,
        encryption: device.encryption,
    };
    DeviceReports {
        damaged: damaged
            .map(|device| DamagedDevice {
                id: device.id,
                name: path(device),
                damaged_blocks: device.damaged_blocks,
                read_errors: device.read_errors,
            })
            .collect(),
        lone_logs: lone.map(|log| (path(log), log.group.to_string())).collect(),
        failed_logs: failed.collect(),
        encryption: EncryptionReport::of(host.devices.iter().map(encryption)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;
    use ::cluster::Encryption;
    use base::{DeviceId, GroupId};
    use engine::Command;

    #[tokio::test]
    async fn devices_that_are_not_encrypted_are_reported_log_devices_first() {
        let (engine, fake) = fake::start();
        let device = |id, path: &str, is_log, is_capacity| (DeviceId(id), path.into(), is_log, is_capacity);
        let devices = vec![
            device(1, "/dev/mapper/store1", false, true),
            device(2, "/dev/sdb", false, true),
            device(3, "/dev/sda", true, false),
        ];
        fake.lock().expect("no test panicked with it").groups.insert(GroupId(1), devices);
        let host = engine.call(|answer| Command::Host { answer }).await.expect("it answers");
        let none = Encryption::None;
        let named = |name: &str, is_log| DeviceEncryption { name: name.to_owned(), is_log, encryption: none };
        let expected = EncryptionReport {
            encrypted: 1,
            unencrypted: 2,
            named: vec![named("/dev/sda", true), named("/dev/sdb", false)],
        };
        assert_eq!(reports_of(&host).encryption, expected);
    }
}
