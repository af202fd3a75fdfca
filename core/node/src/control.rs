//! Opening and closing disks, their live state, and disks found by the labels on components.

use crate::disk::Disk;
use crate::interface::{DiskActivity, DiskKey, DiskSpec, FoundDisk, Output, Token};
use crate::label::{DiskLabel, component_count_of, layout_of};
use crate::node::Node;
use base::DiskId;
use diskgroup::ComponentState;
use layout::Component;
use replication::Roster;
use std::collections::BTreeMap;

impl Node {
    /// Opens a disk. `spec` and the roster come from its record of that version. The disk must not be open.
    pub fn open_disk(
        &mut self,
        now: base::Instant,
        spec: DiskSpec,
        (version, roster): (u64, Roster),
    ) -> DiskKey {
        self.now = now;
        let key = self.disks.insert(Disk::new(spec, version, roster));
        self.look_soon(key);
        DiskKey(key)
    }

    /// Closes a deleted disk: requests are refused from now on. [`Output::Closed`] follows once those under way have
    /// ended. Its components stay.
    pub fn close_disk(&mut self, token: Token, id: DiskId, out: &mut Vec<Output>) {
        let Some(DiskKey(key)) = self.disk(id) else { return out.push(Output::Closed { token }) };
        self.disks[key].closing = Some(token);
        // Held until all waiting requests are refused: the last of these would end the disk otherwise.
        self.disks[key].outstanding += 1;
        self.refuse_held(key, out);
        self.release_paced(key, out);
        self.disks[key].outstanding -= 1;
        self.disk_quieter(key, out);
    }

    /// A request of the disk has ended: a disk that is being closed may be idle now.
    pub(crate) fn disk_quieter(&mut self, disk: u32, out: &mut Vec<Output>) {
        let Some(state) = self.disks.get(disk) else { return };
        if let (Some(token), 0) = (state.closing, state.outstanding) {
            self.clear_pace_alarm(disk);
            self.disks.remove(disk);
            out.push(Output::Closed { token });
        }
    }

    /// The open disk of that identity.
    pub fn disk(&self, id: DiskId) -> Option<DiskKey> {
        self.disks.key_of(id).map(DiskKey)
    }

    /// The spec of an open disk.
    pub fn spec(&self, key: DiskKey) -> Option<&DiskSpec> {
        self.disks.get(key.0).map(|disk| &disk.spec)
    }

    /// The live state of all open disks, in the order of their keys.
    pub fn disk_activities(&self) -> Vec<DiskActivity> {
        self.disks.iter().map(|(key, _)| self.disk_activity(DiskKey(key))).collect()
    }

    /// The live state of one disk, which must be open.
    pub fn disk_activity(&self, key: DiskKey) -> DiskActivity {
        let disk = &self.disks[key.0];
        DiskActivity {
            key,
            id: disk.spec.id,
            outstanding: disk.outstanding,
            limits: disk.pace.figures(self.now),
            statistics_version: disk.statistics_version,
        }
    }

    /// Whether an open disk has a place with one component, on a device of this node that is out of service.
    pub fn is_lost(&self, key: DiskKey) -> bool {
        let is_failed = |component: &Component| {
            let group = self.group_of(component.device).and_then(|key| self.group(key));
            group.is_some_and(|group| {
                group.component(component.id).is_some_and(|key| group.failure_of(key).is_some())
            })
        };
        let mut places = self.disks[key.0].spec.layout.places();
        places.any(|(_, copies)| matches!(copies, [only] if is_failed(only)))
    }

    /// The disks with such a place.
    pub fn lost_disks(&self) -> impl Iterator<Item = DiskId> {
        let lost = self.disks.iter().filter(|(key, _)| self.is_lost(DiskKey(*key)));
        lost.map(|(_, disk)| disk.spec.id)
    }

    /// The histograms and counters of an open disk since it was opened.
    pub fn statistics(&self, key: DiskKey) -> iostats::Statistics {
        self.disks[key.0].recorder.statistics()
    }

    /// The disks that the labels on the open groups' components describe: all that is left of a lost directory.
    pub fn found(&self) -> Vec<FoundDisk> {
        let mut by_disk: BTreeMap<DiskId, Vec<(DiskLabel, ComponentState)>> = BTreeMap::new();
        for (_, group) in self.groups() {
            for (_, state) in group.components() {
                let Some(label) = DiskLabel::decode(&state.record.disk_label) else { continue };
                by_disk.entry(state.record.disk).or_default().push((label, state));
            }
        }
        by_disk.into_iter().map(|(id, parts)| found_disk(id, parts)).collect()
    }

    /// Whether no request, closing or device request is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.disks.iter().all(|(_, disk)| disk.closing.is_none())
            && self.groups().all(|(_, group)| group.is_idle())
            && self.fabric.gathers.is_empty()
    }
}

fn found_disk(id: DiskId, mut parts: Vec<(DiskLabel, ComponentState)>) -> FoundDisk {
    parts.sort_by_key(|(label, state)| (label.place, state.record.id));
    let label = parts.first().expect("a disk is found by a component").0.clone();
    let component = |(label, state): &(DiskLabel, ComponentState)| {
        let diskgroup::ComponentState { record, device, .. } = state;
        let one = Component { id: record.id, device: *device, size: record.size, position: label.position };
        (label.place, one)
    };
    let components: Vec<(u16, Component)> = parts.iter().map(component).collect();
    let is_whole = components.len() >= component_count_of(&label.shape);
    let layout = layout_of(&label.shape, &components).filter(|_| is_whole);
    let components = parts.into_iter().map(|(label, state)| (label.place, state)).collect();
    FoundDisk { id, label, layout, components }
}
