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
