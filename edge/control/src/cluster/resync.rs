//! What is copied for disks, as the crate `cluster` tells it, with the pace that owners tell.

use super::status::pace_of;
use super::{Cluster, Locals};
use crate::words;
use ::cluster::{DiskRecord, Resync, explain_disk, resyncs};
use api::types::{ComponentResyncView, DiskResyncView, ResyncView, ResyncsView};
use base::{ComponentId, DiskId};
use engine::ClusterState;

impl Cluster {
    /// All disks of which a component does not count.
    pub fn resyncs(&self, state: &ClusterState, locals: &Locals) -> ResyncsView {
        self.refresh(state);
        let keeper = self.keeper();
        let (facts, known) = (&keeper.facts, keeper.known());
        let device = |one: &Resync| match facts.device(one.device) {
            Some((host, device)) => format!("{} of host {}", device.name, host.name),
            None => format!("device {}", one.device),
        };
        let component = |disk: &DiskRecord, one: &Resync| {
            let told = told(disk, one.component, locals);
            ComponentResyncView {
                component: one.component.to_string(),
                place: one.place,
                device: device(one),
                cause: words::copy(one.motive),
                copied_bytes: one.copied_bytes,
                left_bytes: one.left_bytes,
                bytes_per_second: told.and_then(|told| told.bytes_per_second),
                seconds_left: seconds_left(told, one),
                waits_for: one.waits_for.clone(),
            }
        };
        let view = |(id, disk): (&DiskId, &DiskRecord)| {
            let found = resyncs(facts, disk, known.repairs, known.now);
            if found.is_empty() {
                return None;
            }
            let pace = pace_of(*id, disk, locals);
            let left_bytes = found.iter().filter_map(|one| one.left_bytes).sum();
            let is_counted = found.iter().all(|one| one.left_bytes.is_some());
            Some(DiskResyncView {
                disk: disk.name.clone(),
                line: explain_disk(facts, disk, &known, pace),
                left_bytes,
                seconds_left: pace.filter(|_| is_counted).map(|pace| left_bytes as f64 / pace as f64),
                components: found.iter().map(|one| component(disk, one)).collect(),
            })
        };
        let mut disks: Vec<DiskResyncView> = facts.disks.iter().filter_map(view).collect();
        disks.sort_by(|a, b| a.disk.cmp(&b.disk));
        let components = disks.iter().flat_map(|disk| &disk.components);
        ResyncsView {
            left_bytes: disks.iter().map(|disk| disk.left_bytes).sum(),
            bytes_per_second: components.filter_map(|one| one.bytes_per_second).sum(),
            disks,
        }
    }
}

/// When a component is filled at the pace that its owner tells.
fn seconds_left(told: Option<&ResyncView>, one: &Resync) -> Option<f64> {
    let pace = told?.bytes_per_second?;
    Some(one.left_bytes? as f64 / pace)
}

/// What the owner of a disk tells of a component that it fills.
fn told<'a>(disk: &DiskRecord, component: ComponentId, locals: &'a Locals) -> Option<&'a ResyncView> {
    let owner = disk.roster.owner?;
    let (disk, component) = (disk.id.to_string(), component.to_string());
    let owned = locals.get(&owner.node.host)?.owned.iter().find(|one| one.disk == disk)?;
    owned.members.iter().find(|one| one.component == component)?.resync.as_ref()
}
