//! What a host tells of its devices for health, and events of findings that come and go.

use super::Control;
use crate::events::Kind;
use crate::limits::HEALTH_PERIOD;
use ::cluster::{DamagedDevice, DeviceReports, Finding, Severity, Subject, Turn, Watch};
use engine::{DeviceState, HostState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

/// What a host tells of its devices and groups beside their records.
pub fn reports_of(host: &HostState) -> DeviceReports {
    let path = |device: &DeviceState| device.path.display().to_string();
    let damaged = host.devices.iter().filter(|device| device.damaged_blocks > 0 && device.failure.is_none());
    let logs = host.devices.iter().filter(|device| device.is_log && !device.is_capacity);
    let has_capacity = |group| host.devices.iter().any(|device| device.group == group && device.is_capacity);
    let failed = logs.clone().filter_map(|log| Some((path(log), log.failure.clone()?)));
    let lone = logs.filter(|log| log.failure.is_none() && !has_capacity(log.group));
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
    }
}

/// Tells of what has become wrong, and of what is well again, until the engine is gone: on the host that decides for
/// the cluster.
pub(super) async fn watch_health(control: Weak<Control>) {
    let mut watch = Watch::default();
    let mut names: BTreeMap<Subject, String> = BTreeMap::new();
    loop {
        tokio::time::sleep(HEALTH_PERIOD).await;
        let Some(control) = control.upgrade() else { return };
        if !control.cluster.decides() {
            watch = Watch::default();
            continue;
        }
        let Ok(found) = control.all_findings().await else { return };
        names.extend(found.iter().map(|(finding, name)| (finding.subject, name.clone())));
        let findings: Vec<Finding> = found.into_iter().map(|(finding, _)| finding).collect();
        for turn in watch.step(&findings) {
            let (kind, finding) = match turn {
                Turn::Found(finding) if finding.severity == Severity::Notice => (Kind::HealthNoted, finding),
                Turn::Found(finding) => (Kind::HealthFound, finding),
                Turn::Ended(finding) => (Kind::HealthEnded, finding),
            };
            let name = names.get(&finding.subject).cloned().unwrap_or_default();
            let text = match kind {
                Kind::HealthEnded => format!("{}: it is so no more: {}", finding.code, finding.cause),
                _ => format!("{}: {}", finding.code, finding.cause),
            };
            control.events.other(kind, name, text);
        }
        let stays: BTreeSet<Subject> = findings.iter().map(|finding| finding.subject).collect();
        names.retain(|subject, _| stays.contains(subject) || watch.knows(*subject));
    }
}
