//! Moves into another layout in words: how far, how fast, and why one stands still (docs/design/0041).
//!
//! Says it from records, the state of hosts, and what owners report.

use crate::disk::DiskRecord;
use crate::ground::{device_name, ground_of, has_no_room};
use crate::limits::ROOM_NOTICED;
use crate::moves::Hindrance;
use crate::status::{left_at, missing};
use crate::view::View;
use crate::words::listed;
use base::{DeviceId, Instant};
use layout::{Component, Side};
use std::collections::BTreeSet;

/// One line about a disk that moves: where to, how far, and how long it takes, or why it stands still. `pace` is the bytes of the disk that
/// its owner moves in a second.
pub fn explain_move(view: &View, disk: &DiskRecord, pace: Option<u64>, now: Instant) -> Option<String> {
    let text = disk.move_text()?;
    if let Some(why) = standstill(view, disk, now) {
        return Some(format!("{text}; it stands still: {why}"));
    }
    let (moved, all) = disk.moved_bytes()?;
    let is_paused = disk.moving.as_ref().is_some_and(|moving| moving.is_paused);
    let pace = pace.filter(|pace| *pace > 0 && !is_paused);
    Some(match pace {
        Some(pace) => format!("{text}, {}", left_at(all - moved, pace)),
        None => text,
    })
}

/// What keeps a move from going on: what its owner reports, or that a component has left for lack of room.
pub(crate) fn hindrance(view: &View, disk: &DiskRecord) -> Option<Hindrance> {
    let has_left = |one: &Component| has_no_room(view, disk, one.id);
    match missing(view, disk).iter().any(has_left) {
        true => Some(Hindrance::NoSpace),
        false => view.moves.get(&disk.id).and_then(|status| status.hindrance),
    }
}

/// Why a disk that moves stands still; none while it goes on or is paused.
pub fn standstill(view: &View, disk: &DiskRecord, now: Instant) -> Option<String> {
    disk.moving.as_ref().filter(|moving| !moving.is_paused)?;
    disk.layout.boundary()?;
    if disk.has_moved() {
        return None;
    }
    let missing = missing(view, disk);
    let hindrance = view.moves.get(&disk.id).and_then(|status| status.hindrance);
    match hindrance {
        _ if !missing.is_empty() => {
            let grounds: BTreeSet<String> =
                missing.iter().map(|one| ground_of(view, disk, one, now)).collect();
            Some(format!("it waits for all components: {}", listed(&grounds.into_iter().collect::<Vec<_>>())))
        }
        Some(Hindrance::AwaitsComponent) => {
            Some("it waits until a component is up to date that comes or stands in".to_owned())
        }
        Some(Hindrance::NoSpace) => {
            let devices: Vec<String> =
                full_devices(view, disk).into_iter().map(|device| device_name(view, device)).collect();
            Some(format!("no room on {}", listed(&devices)))
        }
        Some(Hindrance::Damaged) => Some("blocks of it are damaged on all copies".to_owned()),
        None => snapshots_that_stay(disk),
    }
}

/// Snapshots that no copy has as a whole cannot move, and the disk keeps both layouts for what is left of them.
fn snapshots_that_stay(disk: &DiskRecord) -> Option<String> {
    let waiting = disk.snapshots_to_move().into_iter().filter(|_| disk.has_passed());
    let lost = waiting.filter(|one| !disk.is_readable(one.number));
    let names: Vec<String> = lost.map(|one| one.name.clone()).collect();
    let text = format!(
        "no copy in service has all of {}: bring back those that are away, or delete it",
        listed(&names)
    );
    (!names.is_empty()).then_some(text)
}

/// The devices without room for the layout that a disk moves to; if hosts report room on all, the one with the least.
fn full_devices(view: &View, disk: &DiskRecord) -> Vec<DeviceId> {
    let is_back = disk.moving.as_ref().is_some_and(|moving| moving.is_back);
    let side = if is_back { Side::Old } else { Side::New };
    let Some((_, layout)) = disk.layout.side(side) else { return Vec::new() };
    let devices: BTreeSet<DeviceId> = layout.components().map(|(_, one)| one.device).collect();
    let free = |id: &DeviceId| view.device(*id).map(|(_, device)| device.free_bytes);
    let full: Vec<DeviceId> =
        devices.iter().copied().filter(|id| free(id).is_some_and(|free| free < ROOM_NOTICED)).collect();
    match full.is_empty() {
        true => devices.into_iter().min_by_key(|id| free(id).unwrap_or(u64::MAX)).into_iter().collect(),
        false => full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moves::MoveStatus;
    use crate::testing::{at, cluster, owner_state, policy};
    use base::DiskId;
    use base::units::{GIB, MIB};
    use replication::Standing;
    use replication::owner::LeftBecause;

    fn moving() -> View {
        let mut view = cluster(5, 1);
        view.add_disk(1, "default,stripes=1");
        view.begin_move(DiskId(1), &policy("method=parity,stripes=1"));
        view.advance_move(DiskId(1), 3 * GIB);
        view
    }

    fn hindered(view: &mut View, hindrance: Option<Hindrance>) -> String {
        view.moves.insert(DiskId(1), MoveStatus { still_since: at(0), hindrance });
        standstill(view, view.disk(1), at(600)).unwrap_or_default()
    }

    #[test]
    fn a_move_says_how_far_it_is_and_how_long_it_takes() {
        let view = moving();
        let line = |pace| explain_move(&view, view.disk(1), pace, at(0)).expect("it moves");
        assert!(line(None).ends_with("3 GiB of 10 GiB moved"), "{}", line(None));
        assert!(line(Some(0)).ends_with("3 GiB of 10 GiB moved"), "nothing is copied at the moment");
        let text = "3 GiB of 10 GiB moved, done in about 12 min at 10 MiB/s";
        assert!(line(Some(10 * MIB)).ends_with(text), "{}", line(Some(10 * MIB)));
        let mut whole = cluster(3, 1);
        let disk = whole.add_disk(1, "default");
        assert_eq!(explain_move(&whole, &disk, Some(MIB), at(0)), None, "it does not move");
    }

    #[test]
    fn a_move_that_stands_still_says_why() {
        let mut view = moving();
        assert_eq!(hindered(&mut view, None), "");
        assert_eq!(hindered(&mut view, Some(Hindrance::Damaged)), "blocks of it are damaged on all copies");
        assert!(
            hindered(&mut view, Some(Hindrance::AwaitsComponent)).starts_with("it waits until a component")
        );
        let (_, new) = view.disk(1).layout.side(Side::New).expect("it has two");
        let devices: Vec<DeviceId> = new.components().map(|(_, one)| one.device).collect();
        let set_free = |view: &mut View, device: DeviceId, bytes| {
            let mut all = view.hosts.values_mut().flat_map(|host| &mut host.devices);
            all.find(|one| one.id == device).expect("it is there").free_bytes = bytes;
        };
        set_free(&mut view, devices[1], 50 * GIB);
        let least = device_name(&view, devices[1]);
        assert_eq!(hindered(&mut view, Some(Hindrance::NoSpace)), format!("no room on {least}"));
        set_free(&mut view, devices[0], 0);
        let full = device_name(&view, devices[0]);
        assert_eq!(hindered(&mut view, Some(Hindrance::NoSpace)), format!("no room on {full}"));
        let line = explain_move(&view, view.disk(1), Some(GIB), at(600)).expect("it moves");
        assert!(line.ends_with(&format!("; it stands still: no room on {full}")), "{line}");
        // Whoever paused it knows why.
        let paused = view.disk(1).steer_move(false, true).expect("it moves").record;
        view.disks.insert(DiskId(1), paused);
        assert_eq!(hindered(&mut view, Some(Hindrance::NoSpace)), "");
    }

    /// A component that left because its device is full was waited for as one that is away: an hour passed before health said so.
    #[test]
    fn a_component_that_has_no_room_hinders_as_a_full_device_does() {
        let mut view = moving();
        let one = view.disk(1).roster.members[0].component;
        view.stand(one, Standing::Absent);
        let mut owner = owner_state(view.disk(1), &[]);
        hindered(&mut view, Some(Hindrance::AwaitsComponent));
        view.owners.insert(DiskId(1), owner.clone());
        assert_eq!(hindrance(&view, view.disk(1)), Some(Hindrance::AwaitsComponent));
        let report = owner.members.iter_mut().find(|report| report.component == one).expect("it is a member");
        report.trouble = Some(LeftBecause::Refused(wire::Refusal::NoSpace));
        view.owners.insert(DiskId(1), owner);
        assert_eq!(hindrance(&view, view.disk(1)), Some(Hindrance::NoSpace));
        let found = hindered(&mut view, Some(Hindrance::AwaitsComponent));
        assert!(found.contains(" has no room on /dev/sd"), "{found}");
    }

    #[test]
    fn a_move_waits_for_components_that_are_missing_whatever_its_owner_reports() {
        let mut view = moving();
        view.lose_host(2, 0);
        let text = "it waits for all components: h2 is away for 10 min";
        assert_eq!(hindered(&mut view, None), text);
        assert_eq!(hindered(&mut view, Some(Hindrance::NoSpace)), text);
        let mut view = moving();
        let one = view.disk(1).roster.members[0].component;
        view.stand(one, Standing::Absent);
        let found = hindered(&mut view, Some(Hindrance::AwaitsComponent));
        assert!(found.starts_with("it waits for all components: the component on /dev/sd"), "{found}");
    }
}
