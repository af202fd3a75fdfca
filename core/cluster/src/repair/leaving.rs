//! Which components have to leave their device, and which devices take no component.

use crate::disk::DiskRecord;
use crate::host::Mode;
use crate::view::View;
use base::ComponentId;
use layout::Component;

/// The maintenance mode of a component's host.
pub(crate) fn mode_of(view: &View, disk: &DiskRecord, component: &Component) -> Option<Mode> {
    view.device_of(disk, component).and_then(|(host, _)| host.maintenance.mode())
}

/// Whether the device of a component takes no new ones, because it or its host is to be emptied.
pub(crate) fn is_unwanted_at(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    mode_of(view, disk, component).is_some_and(|mode| mode != Mode::NoAction)
        || is_leaving(view, disk, component)
}

/// Whether the device of a component is to be emptied.
fn is_leaving(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    view.device_of(disk, component).is_some_and(|(_, device)| device.leaving.is_some())
}

/// Whether a component has to leave a device that is to be emptied, or a host that enters maintenance or is in it.
pub(crate) fn must_leave(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    if is_leaving(view, disk, component) {
        return true;
    }
    match mode_of(view, disk, component) {
        None | Some(Mode::NoAction) => false,
        Some(Mode::FullEvacuation) => true,
        Some(Mode::EnsureAccessibility) => {
            let (place, _) = disk.component(component.id).expect("it is the disk's");
            let stays = |id: &ComponentId| {
                let (_, other) = disk.component(*id).expect("it is sound");
                *id != component.id && mode_of(view, disk, &other).is_none()
            };
            disk.left(place, view.sound(disk, place).into_iter().filter(stays)) == 0
        }
    }
}
