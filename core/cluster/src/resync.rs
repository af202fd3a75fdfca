//! Resyncs: one entry for each component that is not active, with its progress and what it waits for.

use crate::disk::{DiskRecord, DiskState, Reason};
use crate::ground::{device_name, ground_of, resync};
use crate::repair::{NOT_REPLACED, Repairs, Slot};
use crate::view::{Ground, View};
use crate::words::{ago, duration};
use base::units::format_bytes;
use base::{ComponentId, DeviceId, Instant};
use layout::Component;
use replication::owner::{LeftBecause, MemberState};
use replication::{Role, Standing};

/// Why a component is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Motive {
    /// It was away or is behind, and gets the changes that it missed.
    Return,
    /// Another component is lost.
    Repair,
    /// A host or a device is to be emptied.
    Evacuation,
    /// The policy asks for more copies.
    Policy,
    /// Another copy stands in the same fault domain.
    Domain,
    /// Devices are rebalanced.
    Balance,
    /// It stands in for a missing component.
    StandIn,
}

/// A component that is not active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resync {
    /// The component.
    pub component: ComponentId,
    /// Its place.
    pub place: usize,
    /// Its device.
    pub device: DeviceId,
    /// Why it is copied.
    pub motive: Motive,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes still to be copied, if known.
    pub left_bytes: Option<u64>,
    /// The reason for waiting, in a few words; none while it is being copied.
    pub waits_for: Option<String>,
}

/// All resyncs of a disk, by place.
pub fn resyncs(view: &View, disk: &DiskRecord, repairs: &Repairs, now: Instant) -> Vec<Resync> {
    if disk.state != DiskState::Active {
        return Vec::new();
    }
    let mut found = Vec::new();
    for member in &disk.roster.members {
        let (place, component) = disk.component(member.component).expect("the roster names what is there");
        let is_here = matches!(view.ground(component.device), Ground::Here | Ground::Unsure);
        if member.standing == Standing::Active && is_here {
            continue;
        }
        let report = resync(view, disk, component.id);
        let incoming = disk.incoming.iter().find(|one| one.component.id == component.id);
        let is_move = incoming.is_some_and(|one| one.replaces.is_some());
        let motive = match (incoming.map(|one| one.reason), member.role) {
            (Some(Reason::Repair), _) => Motive::Repair,
            (Some(Reason::Evacuation), _) => Motive::Evacuation,
            (Some(Reason::Balance), _) => Motive::Balance,
            (Some(Reason::Policy), _) if is_move => Motive::Domain,
            (Some(Reason::Policy), _) => Motive::Policy,
            (None, Role::Copy) => Motive::Return,
            (None, _) => Motive::StandIn,
        };
        // A stand-in gets new changes; nothing has to be copied to it first.
        let is_replaced = incoming.is_none() && disk.incoming_for(component.id).is_some();
        if report.is_none() && (motive == Motive::StandIn || is_replaced) {
            continue;
        }
        let used = incoming.and_then(|_| view.used(disk.id).get(place).copied());
        found.push(Resync {
            component: component.id,
            place,
            device: component.device,
            motive,
            copied_bytes: report.map_or(0, |(copied, _)| copied),
            left_bytes: report.map(|(_, left)| left).or(used),
            waits_for: report.is_none().then(|| waits_for(view, disk, repairs, &component, now)),
        });
    }
    found
}

/// Why nothing is copied to a component.
fn waits_for(
    view: &View,
    disk: &DiskRecord,
    repairs: &Repairs,
    component: &Component,
    now: Instant,
) -> String {
    let is_here = view.ground(component.device) == Ground::Here;
    if is_here && disk.roster.owner.is_none() {
        return "a host that uses the disk or becomes its owner".to_owned();
    }
    // The reason why it left is void once its host is back.
    let still = |why: &LeftBecause| is_here && *why != LeftBecause::Unreachable;
    let report = view.member_state(disk.id, component.id);
    let trouble = report.and_then(|report| report.trouble).filter(still);
    if let Some(why) = trouble.filter(|why| !why.is_no_room()) {
        return why.to_string();
    }
    if let (Some(_), Some(report)) = (trouble, report) {
        return without_room(view, disk, repairs, component, report);
    }
    let ground = ground_of(view, disk, component, now);
    if let Some(refused) = repairs.refused().get(&(disk.id, Slot::Component(component.id))) {
        return format!(
            "{ground}; no place for another since {}: {}",
            ago(now, refused.since),
            refused.cause
        );
    }
    match repairs.due_at(disk.id, component.id) {
        Some(_) if !is_here && repairs.are_off() => format!("{ground}; {NOT_REPLACED}"),
        Some(due) if due > now => {
            format!("{ground}; another is made in {} unless it comes back", duration(due.since(now)))
        }
        Some(_) if !is_here => format!("{ground}; another is made next"),
        Some(_) | None if is_here => "its turn".to_owned(),
        Some(_) | None => ground,
    }
}

/// Why nothing is copied to a component whose device has no room for it.
fn without_room(
    view: &View,
    disk: &DiskRecord,
    repairs: &Repairs,
    component: &Component,
    report: &MemberState,
) -> String {
    let free = view.device(component.device).map_or(0, |(_, device)| device.free_bytes);
    let again = match report.retry_in {
        Some(time) => format!(", tried again in {} or when there is room", duration(time)),
        None => String::new(),
    };
    let other = match repairs.refused().get(&(disk.id, Slot::Component(component.id))) {
        Some(refused) => format!("; no place for another: {}", refused.cause),
        None if repairs.are_off() => format!("; {NOT_REPLACED}"),
        None => String::new(),
    };
    let device = device_name(view, component.device);
    format!("room on {device}, which has {} free{again}{other}", format_bytes(free))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::copied_and_left;
    use crate::testing::{at, cluster, counting_from, owner_state};
    use base::DiskId;
    use base::units::{GIB, MIB};

    /// Of each component that does not count: why, what is left, and what it waits for.
    fn check(view: &View, repairs: &Repairs, second: u64, expected: &[(Motive, Option<u64>, &str)]) {
        let found = resyncs(view, view.disk(1), repairs, at(second));
        let seen: Vec<(Motive, Option<u64>, &str)> = found
            .iter()
            .map(|one| (one.motive, one.left_bytes, one.waits_for.as_deref().unwrap_or("copying")))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_missing_copy_waits_is_replaced_and_is_copied() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let mut repairs = Repairs::default();
        check(&view, &repairs, 0, &[]);
        let (user, gone) = (view.disk(1).roster.members[0].node, view.disk(1).roster.members[1].node.host.0);
        view.disks.get_mut(&DiskId(1)).unwrap().roster.owner =
            Some(replication::OwnedBy { node: user, incarnation: 1 });
        view.lose_host(gone, 0);
        repairs.step(at(600), &view, &mut counting_from(900), 1);
        let text = format!("h{gone} is away for 10 min; another is made in 50 min unless it comes back");
        check(&view, &repairs, 600, &[(Motive::Return, None, &text)]);
        let decisions = repairs.step(at(3600), &view, &mut counting_from(900), 1);
        let change = decisions.actions[0].step.apply(view.disk(1)).unwrap().unwrap();
        let target = change.record.incoming[0].component.id;
        view.disks.insert(DiskId(1), change.record);
        check(&view, &repairs, 3600, &[(Motive::Repair, Some(GIB), "its turn")]);
        view.owners.insert(DiskId(1), owner_state(view.disk(1), &[(target, 24 * MIB, GIB - 24 * MIB)]));
        check(&view, &repairs, 3600, &[(Motive::Repair, Some(GIB - 24 * MIB), "copying")]);
        view.disks.get_mut(&DiskId(1)).unwrap().roster.owner = None;
        view.owners.clear();
        check(
            &view,
            &repairs,
            3600,
            &[(Motive::Repair, Some(GIB), "a host that uses the disk or becomes its owner")],
        );
    }

    /// The owner keeps why it left a copy until the copy counts again. `resync` repeated that of a host which was back and waited for
    /// its turn: "its host cannot be reached".
    #[test]
    fn a_copy_whose_host_is_back_is_not_said_to_be_out_of_reach() {
        let mut view = cluster(3, 1);
        let disk = view.add_disk(1, "default,stripes=1").clone();
        let member = disk.roster.members[1].clone();
        let record = view.disks.get_mut(&DiskId(1)).unwrap();
        record.roster.owner =
            Some(replication::OwnedBy { node: disk.roster.members[0].node, incarnation: 1 });
        record.roster.members[1].standing = Standing::Absent;
        let mut owner = owner_state(view.disk(1), &[]);
        let report = owner.members.iter_mut().find(|one| one.component == member.component).unwrap();
        report.trouble = Some(LeftBecause::Unreachable);
        view.owners.insert(DiskId(1), owner.clone());
        check(&view, &Repairs::default(), 10, &[(Motive::Return, None, "its turn")]);
        // Other reasons hold although the host answers.
        let report = owner.members.iter_mut().find(|one| one.component == member.component).unwrap();
        report.trouble = Some(LeftBecause::Stuck);
        view.owners.insert(DiskId(1), owner);
        let text = LeftBecause::Stuck.to_string();
        check(&view, &Repairs::default(), 10, &[(Motive::Return, None, &text)]);
        view.lose_host(member.node.host.0, 0);
        let found = resyncs(&view, view.disk(1), &Repairs::default(), at(60));
        assert!(found[0].waits_for.as_deref().is_some_and(|why| why.contains("is away for")), "{found:?}");
    }

    #[test]
    fn what_is_left_is_told_of_all_though_a_part_was_looked_through() {
        let mut view = cluster(3, 1);
        let disk = view.add_disk(1, "default,stripes=1").clone();
        let id = disk.roster.members[0].component;
        let report = |looked_through, copied, left| {
            let state = owner_state(&disk, &[(id, copied, left)]);
            MemberState { looked_through, ..state.members[0].clone() }
        };
        let of = |looked_through, copied, left, used| {
            copied_and_left(&report(looked_through, copied, left), 4 * GIB, used)
                .expect("it is being filled")
                .1
        };
        assert_eq!(of(None, GIB, 8 * MIB, Some(4 * GIB)), 8 * MIB, "all was looked through");
        assert_eq!(of(Some(512), 112 * MIB, 400 * MIB, None), 400 * MIB + 3 * GIB + 512 * MIB);
        assert_eq!(
            of(Some(512), 112 * MIB, 400 * MIB, Some(2 * GIB)),
            2 * GIB - 112 * MIB,
            "no more stands there"
        );
        assert_eq!(of(Some(1024), 0, 4 * MIB, Some(2 * GIB)), 16 * MIB, "little was missed");
        assert_eq!(of(Some(0), 0, 0, Some(2 * GIB)), 0, "nothing is known yet");
        let idle = MemberState { resync: None, ..report(None, 0, 0) };
        assert_eq!(copied_and_left(&idle, GIB, None), None);
    }

    /// "no space is left on the device", it said of a copy that was tried in vain every five seconds, and not where or until when.
    #[test]
    fn a_copy_without_room_says_where_and_when_it_is_tried_again() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        view.stand(view.component_on(1, 2), Standing::Absent);
        view.host_mut(2).devices[0].free_bytes = MIB;
        let mut owner = owner_state(view.disk(1), &[]);
        let id = view.component_on(1, 2);
        let report = owner.members.iter_mut().find(|one| one.component == id).unwrap();
        report.trouble = Some(LeftBecause::Refused(wire::Refusal::NoSpace));
        report.retry_in = Some(std::time::Duration::from_secs(160));
        view.owners.insert(DiskId(1), owner);
        let text =
            "room on /dev/sd21 of h2, which has 1 MiB free, tried again in 3 min or when there is room";
        check(&view, &Repairs::default(), 10, &[(Motive::Return, None, text)]);
        let mut repairs = Repairs::default();
        repairs.step(at(10), &view, &mut counting_from(900), 1);
        let text = format!(
            "{text}; no place for another: failures_to_tolerate=1 needs 2 hosts with devices in service; there is 1: h1"
        );
        check(&view, &repairs, 10, &[(Motive::Return, None, &text)]);
    }

    #[test]
    fn what_has_no_place_says_why() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        let failed = crate::DeviceState::Failed { since: at(0), error: "write failed".to_owned() };
        view.set_device(21, failed);
        let mut repairs = Repairs::default();
        repairs.step(at(0), &view, &mut counting_from(900), 1);
        let text = "/dev/sd21 of h2 failed; no place for another since 60 s: failures_to_tolerate=1 needs 2 hosts with \
                    devices in service; there is 1: h1";
        check(&view, &repairs, 60, &[(Motive::Return, None, text)]);
    }
}
