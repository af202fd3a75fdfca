//! What is wrong with a host that stands alone: the same findings as of a cluster, of one host.

use super::Control;
use crate::cluster::subject_name;
use crate::directory::shared::now_ns;
use crate::directory::{DiskEntry, State};
use crate::engine::{DeviceState, HostState};
use crate::events::Kind;
use crate::failure::Failure;
use crate::limits::HEALTH_PERIOD;
use ::cluster::{
    Balancer, Code, DamagedDevice, DeviceRecord, DeviceReports, Directory, DiskRecord, DiskState, Finding,
    HostRecord, Links, Liveness, Maintenance, NodeRecord, RecordLevels, Repairs, Severity, Subject,
    Surroundings, Turn, View, Watch, findings,
};
use base::{Instant, NodeId, WriteId};
use replication::{Member, OwnedBy, Role, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

impl Control {
    /// All that is wrong here, each with the name of what it is about.
    pub(super) async fn findings_alone(&self) -> Result<Vec<(Finding, String)>, Failure> {
        let view = self.view_alone().await?;
        let states = self.disk_states(None).await?;
        let records = self.records();
        let around = Surroundings {
            now: Instant(now_ns()),
            directory: Directory::Reachable,
            repairs: &Repairs::default(),
            balancer: &Balancer::default(),
            silent_members: &[],
            links: &Links::default(),
            certificates: &[],
            levels: &RecordLevels::default(),
        };
        let mut found = findings(&view, &around);
        for entry in records.disks.values().filter(|entry| entry.state == State::Active) {
            let id = entry.record.id;
            let is_told = found
                .iter()
                .any(|one| one.subject == Subject::Disk(id) && one.severity == Severity::Critical);
            let why = self.unavailable(entry, states.get(&id), None).filter(|_| !is_told);
            found.extend(
                why.map(|why| Finding {
                    code: Code::DiskInaccessible,
                    severity: Severity::Critical,
                    subject: Subject::Disk(id),
                    cause: format!("{} cannot be used: {why}", entry.record.name),
                    remedy: "bring back what is missing; if that cannot be, restore the disk from a backup"
                        .to_owned(),
                }),
            );
        }
        found.sort_by_key(|one| (one.severity, one.code, one.subject));
        let named = found.into_iter().map(|one| {
            let name = subject_name(&view, one.subject);
            (one, name)
        });
        Ok(named.collect())
    }

    /// This host as a cluster of one.
    pub(super) async fn view_alone(&self) -> Result<View, Failure> {
        let host = self.host_state().await?;
        let states = self.disk_states(None).await?;
        let me = NodeId { host: self.directory.host, shard: 0 };
        let mut view = View::default();
        view.hosts.insert(me.host, self.host_record(me, &host));
        view.liveness.insert(me.host, Liveness::Alive);
        for entry in self.records().disks.values() {
            let id = entry.record.id;
            // The engine tells what a disk takes, not where: stripes make it about even.
            let places = entry.record.layout.place_count();
            let bytes = states.get(&id).map_or(0, |state| state.allocated_bytes);
            view.used_bytes.insert(id, vec![bytes.div_ceil(places.max(1) as u64); places]);
            view.disks.insert(id, disk_record(me, entry));
        }
        Ok(view)
    }

    fn host_record(&self, me: NodeId, host: &HostState) -> HostRecord {
        let device = |device: &DeviceState| DeviceRecord {
            id: device.id,
            name: device.path.display().to_string(),
            group: device.group,
            node: me,
            capacity_bytes: device.capacity_bytes,
            free_bytes: device.capacity_bytes.saturating_sub(device.used_bytes),
            reserved_bytes: device.reserved_bytes,
            component_count: device.component_count,
            component_count_max: device.component_count_max,
            state: match (&device.failure, device.is_away) {
                (_, true) => ::cluster::DeviceState::Away { since: Instant(0) },
                (Some(error), false) => {
                    ::cluster::DeviceState::Failed { since: Instant(0), error: error.clone() }
                }
                (None, false) => ::cluster::DeviceState::InService,
            },
            leaving: None,
        };
        HostRecord {
            id: me.host,
            name: self.config.name.clone(),
            nodes: vec![NodeRecord { id: me, peer_addresses: Vec::new(), incarnation: 1 }],
            api_address: String::new(),
            fault_domain: None,
            maintenance: Maintenance::Off,
            devices: host.devices.iter().filter(|device| device.is_capacity).map(device).collect(),
            release: crate::release::RELEASE.to_owned(),
            clock_ahead_ns: 0,
            data_trouble: self.data_trouble(),
            reports: reports_of(host),
            heard: Instant(0),
        }
    }
}

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

/// Tells of what has become wrong, and of what is well again, until the engine is gone: on a host alone, or on the one that
/// decides for the cluster.
pub(super) async fn watch_health(control: Weak<Control>) {
    let mut watch = Watch::default();
    let mut names: BTreeMap<Subject, String> = BTreeMap::new();
    loop {
        tokio::time::sleep(HEALTH_PERIOD).await;
        let Some(control) = control.upgrade() else { return };
        if control.cluster.as_ref().is_some_and(|cluster| !cluster.decides()) {
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

/// A disk of a host alone as one of a cluster of one: all that it has counts.
fn disk_record(me: NodeId, entry: &DiskEntry) -> DiskRecord {
    let record = &entry.record;
    let member = |place: usize, component: base::ComponentId| Member {
        component,
        node: me,
        place: place as u16,
        standing: Standing::Active,
        base: WriteId::default(),
        role: Role::Copy,
        ceiling: replication::Ceiling::Unknown,
    };
    let places = record.layout.places();
    let members = places.flat_map(|(place, copies)| copies.iter().map(move |copy| member(place, copy.id)));
    DiskRecord {
        version: entry.version,
        id: record.id,
        name: record.name.clone(),
        size: record.size,
        policy: record.policy,
        space_reservation: record.space_reservation,
        layout: record.layout.clone(),
        read_only: record.read_only,
        access: record.access.clone(),
        state: match entry.state {
            State::Creating => DiskState::Creating,
            State::Active => DiskState::Active,
            State::Deleting => DiskState::Deleting,
        },
        roster: Roster {
            epoch: record.epoch,
            owner: Some(OwnedBy { node: me, incarnation: 1 }),
            members: members.collect(),
        },
        incoming: Vec::new(),
        stand_ins: Vec::new(),
        growth: None,
        surplus: None,
        debts: Vec::new(),
    }
}
