//! Devices that gain room while components wait for it.
//!
//! An owner asks a component without room less and less often. The node that sees all devices tells the owner when
//! there is room.

use crate::limits::ROOM_NOTICED;
use crate::view::View;
use base::{ComponentId, DeviceId, DiskId};
use replication::Standing;
use replication::owner::LeftBecause;
use std::collections::BTreeMap;

/// Remembers the least room of devices.
#[derive(Debug, Clone, Default)]
pub struct RoomWatch {
    /// The least room of each device that components wait for.
    least: BTreeMap<DeviceId, u64>,
}

impl RoomWatch {
    /// The components to ask again: those without room on devices that have more of it than before.
    pub fn step(&mut self, view: &View) -> Vec<(DiskId, ComponentId)> {
        let mut waiting: BTreeMap<DeviceId, Vec<(DiskId, ComponentId)>> = BTreeMap::new();
        for (id, owner) in &view.owners {
            let Some(disk) = view.disks.get(id) else { continue };
            let has_no_room = |one: &&replication::owner::MemberState| {
                one.standing != Standing::Active && one.trouble.is_some_and(LeftBecause::is_no_room)
            };
            for member in owner.members.iter().filter(has_no_room) {
                if let Some((_, component)) = disk.component(member.component) {
                    waiting.entry(component.device).or_default().push((*id, component.id));
                }
            }
        }
        self.least.retain(|device, _| waiting.contains_key(device));
        let mut found = Vec::new();
        for (id, components) in waiting {
            let Some((_, device)) = view.device(id) else { continue };
            let room = match device.component_count < device.component_count_max {
                true => device.free_bytes.saturating_sub(device.reserved_bytes),
                false => 0,
            };
            let least = self.least.entry(id).or_insert(room);
            if room >= least.saturating_add(ROOM_NOTICED) {
                found.extend(components);
                *least = room;
            } else {
                *least = room.min(*least);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cluster, owner_state};
    use base::units::{GIB, MIB};
    use wire::Refusal;

    #[test]
    fn a_component_is_asked_again_when_its_device_has_more_room() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        let full = view.component_on(1, 2);
        let mut watch = RoomWatch::default();
        let room = |view: &mut View, bytes| view.host_mut(2).devices[0].free_bytes = bytes;
        room(&mut view, 0);
        assert_eq!(watch.step(&view), [], "nothing waits");
        view.stand(full, Standing::Absent);
        let mut owner = owner_state(view.disk(1), &[]);
        let report = owner.members.iter_mut().find(|one| one.component == full).expect("it is a member");
        report.trouble = Some(LeftBecause::Refused(Refusal::NoSpace));
        view.owners.insert(DiskId(1), owner);
        assert_eq!(watch.step(&view), []);
        room(&mut view, MIB);
        assert_eq!(watch.step(&view), [], "hardly anything");
        room(&mut view, GIB);
        assert_eq!(watch.step(&view), [(DiskId(1), full)]);
        assert_eq!(watch.step(&view), [], "once is enough");
        room(&mut view, 0);
        assert_eq!(watch.step(&view), []);
        room(&mut view, GIB);
        assert_eq!(watch.step(&view), [(DiskId(1), full)]);
        view.host_mut(2).devices[0].component_count = 4096;
        assert_eq!(watch.step(&view), []);
    }
}
