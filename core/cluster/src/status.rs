//! One line for each disk: why it is degraded or unavailable, what it waits for, and when it will be whole.

use crate::disk::{DiskRecord, DiskState};
use crate::ground::{device_name, ground_of, resync};
use crate::health::surroundings::Directory;
use crate::repair::{NOT_REPLACED, Repairs, Slot};
use crate::view::{Ground, View};
use crate::words::{ago, duration, listed};
use base::units::{EXTENT_SIZE, format_bytes};
use base::{ComponentId, DeviceId, DiskId, Instant};
use layout::{Component, Layout};
use placement::DeviceSpace;
use replication::Standing;
use replication::owner::Phase;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// All components of its layout are active and reachable.
    Whole,
    /// Copies are missing, but every place has one.
    Reduced,
    /// A place has no copy, or too few members of its rows: the disk cannot be used.
    Inaccessible,
}

/// The condition of a disk. Components on a suspect host count as present. An owner that waits for a directory that
/// answers does not make its disk unavailable.
pub fn condition(view: &View, disk: &DiskRecord, directory: Directory) -> Condition {
    let cut = |place: usize| {
        let of_place = disk.roster.members.iter().filter(|one| usize::from(one.place) == place);
        let serving = of_place.map(|one| one.component).filter(|id| serves(view, disk, *id));
        disk.left(place, serving.chain(view.restorable(disk, place))) == 0
    };
    let is_diverged = disk.roster.diverged().next().is_some();
    let is_cut = is_diverged || (0..disk.layout.place_count()).any(cut);
    if is_cut || waits_for_directory(view, disk, directory) {
        return Condition::Inaccessible;
    }
    match missing(view, disk).is_empty() {
        true => Condition::Whole,
        false => Condition::Reduced,
    }
}

/// Facts beside the view.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Now, by the directory's clock.
    pub now: Instant,
    /// Whether the directory answers.
    pub directory: Directory,
    /// The decisions about repairs.
    pub repairs: &'a Repairs,
}

/// The state of a disk in words; none for a disk that is whole and does not move. `pace` is the bytes per second at
/// which its owner copies.
pub fn explain_disk(view: &View, disk: &DiskRecord, known: &Known<'_>, pace: Option<u64>) -> Option<String> {
    let Known { now, repairs, .. } = *known;
    match disk.state {
        DiskState::Creating => return Some("being made".to_owned()),
        DiskState::Deleting => return Some("being deleted".to_owned()),
        DiskState::Active => {}
    }
    if let Some(diverged) = crate::disk::diverged::explain(view, disk) {
        return Some(diverged);
    }
    match condition(view, disk, known.directory) {
        Condition::Inaccessible => {
            let directory = without_directory(known);
            Some(format!("cannot be used: {}{directory}", waits_for(view, disk, known)))
        }
        Condition::Whole => opening(view, disk).or_else(|| {
            let filled = filled(view, disk, pace)?;
            Some(format!("whole; {filled}"))
        }),
        Condition::Reduced => {
            let missing = missing(view, disk);
            let count = disk.layout.component_count();
            let grounds = missing.iter().map(|one| ground_of(view, disk, one, now));
            let grounds = listed(&grounds.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
            let directory = without_directory(known);
            // The next step does not happen while the directory is away.
            let step = || next_step(disk, repairs, &missing, now).filter(|_| directory.is_empty());
            let next = filled(view, disk, pace).or_else(step);
            let next = next.map_or_else(String::new, |next| format!("; {next}"));
            Some(format!("{} of {count} components missing: {grounds}{next}{directory}", missing.len()))
        }
    }
}

/// The consequence of a directory that is away for a disk that lacks components.
fn without_directory(known: &Known<'_>) -> String {
    match known.directory {
        Directory::Reachable => String::new(),
        Directory::Unreachable { since } => {
            format!(
                "; the directory is away for {}: nothing is replaced until it answers",
                ago(known.now, since)
            )
        }
    }
}

/// The consequence of full devices for a disk that can be used; none when no device is full. `counts` says whether a
/// component is an active copy: writes wait for these alone.
pub fn without_room(
    layout: &Layout,
    counts: impl Fn(ComponentId) -> bool,
    spaces: &[DeviceSpace],
) -> Option<String> {
    let full: BTreeMap<DeviceId, &str> = spaces
        .iter()
        .filter(|space| space.capacity_bytes > 0 && space.free_bytes < EXTENT_SIZE)
        .map(|space| (space.id, space.name.as_str()))
        .collect();
    let (mut failing, mut reduced) = (BTreeSet::new(), BTreeSet::new());
    for (place, copies) in layout.places() {
        let active: Vec<&Component> = copies.iter().filter(|copy| counts(copy.id)).collect();
        let (without, with): (Vec<&Component>, Vec<&Component>) =
            active.into_iter().partition(|copy| full.contains_key(&copy.device));
        let needed = layout.place_code(place).map_or(1, |code| usize::from(code.data()));
        match with.len() < needed {
            true => failing.extend(without.iter().map(|copy| full[&copy.device].to_owned())),
            false => reduced.extend(
                without
                    .iter()
                    .map(|copy| format!("component {} has no room on {}", copy.id, full[&copy.device])),
            ),
        }
    }
    let list = |names: BTreeSet<String>| listed(&names.into_iter().collect::<Vec<_>>());
    let failing = (!failing.is_empty())
        .then(|| format!("no room is left on {}: writes to places without data fail", list(failing)));
    let reduced = (!reduced.is_empty())
        .then(|| format!("{}: new data is kept on the other copies alone", list(reduced)));
    let lines: Vec<String> = failing.into_iter().chain(reduced).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Components of the layout that are not active, or cannot be reached.
pub(crate) fn missing(view: &View, disk: &DiskRecord) -> Vec<Component> {
    let components = disk.layout.components().map(|(_, one)| *one);
    components.filter(|one| !serves(view, disk, one.id)).collect()
}

fn serves(view: &View, disk: &DiskRecord, id: ComponentId) -> bool {
    let is_active = disk.roster.member(id).is_some_and(|member| member.standing == Standing::Active);
    let ground = disk.component(id).map(|(_, found)| view.ground(found.device));
    is_active && matches!(ground, Some(Ground::Here | Ground::Unsure))
}

/// The reason why a disk cannot be used.
pub(crate) fn waits_for(view: &View, disk: &DiskRecord, known: &Known<'_>) -> String {
    if waits_for_directory(view, disk, known.directory) {
        return opening(view, disk).unwrap_or_else(|| {
            let owner = disk.roster.owner.map_or_else(String::new, |owner| view.host_name(owner.node.host));
            format!("{owner}, which owns it, waits for the directory to say whether a copy counts that cannot be reached")
        });
    }
    let mut awaited = BTreeSet::new();
    for place in 0..disk.layout.place_count() {
        let of_place = || disk.roster.members.iter().filter(move |one| usize::from(one.place) == place);
        let serving = of_place().map(|one| one.component).filter(|id| serves(view, disk, *id));
        if disk.left(place, serving) > 0 {
            continue;
        }
        for member in of_place().filter(|one| one.standing == Standing::Active) {
            let (_, component) = disk.component(member.component).expect("the roster names what is there");
            awaited.insert(ground_of(view, disk, &component, known.now));
        }
    }
    format!("waiting for the only current copy: {}", listed(&awaited.into_iter().collect::<Vec<_>>()))
}

/// Whether a disk's owner can serve it only once a directory that is away answers again.
fn waits_for_directory(view: &View, disk: &DiskRecord, directory: Directory) -> bool {
    let owner = view.owners.get(&disk.id);
    directory != Directory::Reachable && owner.is_some_and(|owner| owner.waits_for_directory)
}

fn opening(view: &View, disk: &DiskRecord) -> Option<String> {
    let state = view.owners.get(&disk.id)?;
    let host = disk.roster.owner.map_or_else(String::new, |owner| view.host_name(owner.node.host));
    match state.phase {
        Phase::Claiming | Phase::Opening if state.waits_for_directory => {
            Some(format!("being opened by {host}, which waits for the directory"))
        }
        Phase::Claiming | Phase::Opening => Some(format!("being opened by {host}")),
        Phase::Releasing => Some(format!("being released by {host}")),
        Phase::Serving | Phase::Ended => None,
    }
}

/// The components being filled, the bytes left, and the time that this takes.
fn filled(view: &View, disk: &DiskRecord, pace: Option<u64>) -> Option<String> {
    let (mut left, mut is_begun) = (0, false);
    let mut targets = BTreeSet::new();
    for member in disk.roster.members.iter().filter(|one| one.standing != Standing::Active) {
        let (place, component) = disk.component(member.component).expect("the roster names what is there");
        let is_incoming = disk.incoming.iter().any(|one| one.component.id == member.component);
        let bytes = match resync(view, disk, member.component) {
            Some((_, bytes)) => {
                is_begun = true;
                bytes
            }
            None if is_incoming => view.used(disk.id).get(place).copied().unwrap_or(0),
            None => continue,
        };
        left += bytes;
        targets.insert(device_name(view, component.device));
    }
    if targets.is_empty() {
        return None;
    }
    let targets = listed(&targets.into_iter().collect::<Vec<_>>());
    let when = match pace.filter(|pace| *pace > 0) {
        Some(pace) => left_at(left, pace),
        None if is_begun => "being copied".to_owned(),
        None => "nothing is copied at the moment".to_owned(),
    };
    Some(format!("{} left to copy to {targets}, {when}", format_bytes(left)))
}

/// How long it takes to copy what is left at a pace of some bytes a second.
pub(crate) fn left_at(left: u64, pace: u64) -> String {
    let time = duration(Duration::from_secs(left.div_ceil(pace)));
    format!("done in about {time} at {}/s", format_bytes(pace))
}

/// The next step for missing components that are not being filled.
fn next_step(disk: &DiskRecord, repairs: &Repairs, missing: &[Component], now: Instant) -> Option<String> {
    let refused = missing.iter().find_map(|one| repairs.refused().get(&(disk.id, Slot::Component(one.id))));
    if let Some(refused) = refused {
        return Some(format!("no place for another since {}: {}", ago(now, refused.since), refused.cause));
    }
    let due = missing.iter().filter_map(|one| repairs.due_at(disk.id, one.id)).min()?;
    match due > now {
        _ if repairs.are_off() => Some(NOT_REPLACED.to_owned()),
        true => Some(format!("replaced in {} unless it comes back", duration(due.since(now)))),
        false => Some("to be replaced next".to_owned()),
    }
}

/// The condition of every active disk.
pub(crate) fn conditions(view: &View) -> BTreeMap<DiskId, Condition> {
    let active = view.disks.values().filter(|disk| disk.state == DiskState::Active);
    active.map(|disk| (disk.id, condition(view, disk, Directory::Reachable))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, cluster, counting_from, node, owner_state};
    use base::DiskId;
    use base::units::{GIB, MIB};
    use replication::owner::LeftBecause;

    fn check(view: &View, repairs: &Repairs, pace: Option<u64>, second: u64, expected: Option<&str>) {
        let known = Known { now: at(second), directory: Directory::Reachable, repairs };
        let found = explain_disk(view, view.disk(1), &known, pace);
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn a_reduced_disk_says_what_it_waits_for_and_when_it_is_whole() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let mut repairs = Repairs::default();
        check(&view, &repairs, None, 0, None);
        let host = view.disk(1).roster.members[1].node.host.0;
        let name = format!("h{host}");
        view.lose_host(host, 0);
        view.disks.get_mut(&DiskId(1)).unwrap().roster.owner =
            Some(replication::OwnedBy { node: view.disk(1).roster.members[0].node, incarnation: 1 });
        repairs.step(at(600), &view, &mut counting_from(900), 1);
        check(
            &view,
            &repairs,
            None,
            600,
            Some(&format!(
                "1 of 2 components missing: {name} is away for 10 min; replaced in 50 min unless it comes back"
            )),
        );
        let decisions = repairs.step(at(3600), &view, &mut counting_from(900), 1);
        let change = decisions.actions[0].step.apply(view.disk(1)).unwrap().unwrap();
        let target = change.record.incoming[0].component;
        view.disks.insert(DiskId(1), change.record);
        let device = target.device.0;
        let on = format!("/dev/sd{device} of h{}", device / 10);
        check(
            &view,
            &repairs,
            None,
            3600,
            Some(&format!(
                "1 of 2 components missing: {name} is away for 60 min; \
                 1 GiB left to copy to {on}, nothing is copied at the moment"
            )),
        );
        view.owners.insert(DiskId(1), owner_state(view.disk(1), &[(target.id, 512 * MIB, 512 * MIB)]));
        let begun = format!(
            "1 of 2 components missing: {name} is away for 60 min; 512 MiB left to copy to {on}, being copied"
        );
        check(&view, &repairs, None, 3600, Some(&begun));
        check(
            &view,
            &repairs,
            Some(8 * MIB),
            3600,
            Some(&format!(
                "1 of 2 components missing: {name} is away for 60 min; \
                 512 MiB left to copy to {on}, done in about 64 s at 8 MiB/s"
            )),
        );
    }

    #[test]
    fn a_host_that_is_copied_to_is_not_called_suspect() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let (host, component) = {
            let member = &view.disk(1).roster.members[1];
            (member.node.host, member.component)
        };
        view.liveness.insert(host, crate::Liveness::Suspect { since: at(0) });
        view.disks.get_mut(&DiskId(1)).unwrap().roster.members[1].standing = Standing::Absent;
        let found = |view: &View| {
            let repairs = Repairs::default();
            let known = Known { now: at(1), directory: Directory::Reachable, repairs: &repairs };
            explain_disk(view, view.disk(1), &known, None).unwrap()
        };
        assert!(found(&view).contains("is suspect"), "{}", found(&view));
        view.owners.insert(DiskId(1), owner_state(view.disk(1), &[(component, 0, MIB)]));
        assert!(found(&view).contains("is behind; 1 MiB left to copy"), "{}", found(&view));
    }

    #[test]
    fn a_disk_out_of_reach_names_what_has_its_only_copy() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "single,stripes=1");
        let host = view.disk(1).roster.members[0].node.host.0;
        let why = crate::Absence::Unexpected;
        view.liveness.insert(base::HostId(host), crate::Liveness::Away { since: at(0), why });
        let expected = format!("cannot be used: waiting for the only current copy: h{host} is away for 90 s");
        check(&view, &Repairs::default(), None, 90, Some(&expected));
        assert_eq!(condition(&view, view.disk(1), Directory::Reachable), Condition::Inaccessible);
    }

    #[test]
    fn a_disk_whose_owner_waits_for_a_directory_that_is_away_cannot_be_used() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let owner = view.disk(1).roster.members[0].node;
        view.disks.get_mut(&DiskId(1)).unwrap().roster.owner =
            Some(replication::OwnedBy { node: owner, incarnation: 1 });
        let opening = replication::owner::OwnerState {
            phase: Phase::Opening,
            waits_for_directory: true,
            ..owner_state(view.disk(1), &[])
        };
        view.owners.insert(DiskId(1), opening);
        assert_eq!(condition(&view, view.disk(1), Directory::Reachable), Condition::Whole, "for a moment");
        let directory = Directory::Unreachable { since: at(0) };
        let repairs = Repairs::default();
        let known = Known { now: at(17), directory, repairs: &repairs };
        let said = explain_disk(&view, view.disk(1), &known, None).unwrap();
        let host = view.host_name(owner.host);
        let expected = format!(
            "cannot be used: being opened by {host}, which waits for the directory; the directory is away for 17 s: nothing is \
             replaced until it answers"
        );
        assert_eq!(said, expected);
        let serving = owner_state(view.disk(1), &[]);
        view.owners.insert(DiskId(1), serving.clone());
        assert_eq!(
            condition(&view, view.disk(1), directory),
            Condition::Whole,
            "it serves without the directory"
        );
        view.owners
            .insert(DiskId(1), replication::owner::OwnerState { waits_for_directory: true, ..serving });
        let said = explain_disk(&view, view.disk(1), &known, None).unwrap();
        assert!(said.contains("to say whether a copy counts that cannot be reached"), "{said}");
    }

    #[test]
    fn a_refused_repair_says_why() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        view.set_device(21, crate::DeviceState::Failed { since: at(0), error: "write failed".to_owned() });
        view.disks.get_mut(&DiskId(1)).unwrap().roster.owner =
            Some(replication::OwnedBy { node: node(1), incarnation: 1 });
        let mut repairs = Repairs::default();
        repairs.step(at(0), &view, &mut counting_from(900), 1);
        check(
            &view,
            &repairs,
            None,
            180,
            Some(
                "1 of 2 components missing: /dev/sd21 of h2 failed; no place for another since 3 min: \
                 failures_to_tolerate=1 needs 2 hosts with devices in service; there is 1: h1",
            ),
        );
        assert_eq!(view.disk(1).size, 10 * GIB);
    }

    #[test]
    fn what_is_not_replaced_by_the_settings_says_so() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let host = view.disk(1).roster.members[1].node.host.0;
        view.set_device(
            host * 10 + 1,
            crate::DeviceState::Failed { since: at(0), error: "write failed".to_owned() },
        );
        let mut repairs = Repairs::new(crate::Settings { replacements_max: 0, ..crate::Settings::default() });
        repairs.step(at(0), &view, &mut counting_from(900), 1);
        let expected = format!(
            "1 of 2 components missing: /dev/sd{host}1 of h{host} failed; not replaced while the setting `replacements` is 0"
        );
        check(&view, &repairs, None, 180, Some(&expected));
    }

    #[test]
    fn what_waits_for_maintenance_the_directory_or_room_says_so() {
        let mut view = cluster(3, 1);
        view.add_disk(1, "default,stripes=1");
        let host = view.disk(1).roster.members[1].node.host.0;
        let maintenance = crate::Maintenance::On { mode: crate::Mode::EnsureAccessibility, since: at(0) };
        view.host_mut(host).maintenance = maintenance;
        view.lose_host(host, 0);
        let mut repairs = Repairs::default();
        repairs.step(at(60), &view, &mut counting_from(900), 1);
        let line = format!("1 of 2 components missing: h{host} is away for 60 s, in maintenance");
        check(&view, &repairs, None, 60, Some(&format!("{line}; replaced in 59 min unless it comes back")));
        let directory = Directory::Unreachable { since: at(30) };
        let known = Known { now: at(60), directory, repairs: &repairs };
        let found = explain_disk(&view, view.disk(1), &known, None);
        let expected =
            format!("{line}; the directory is away for 30 s: nothing is replaced until it answers");
        assert_eq!(found.as_deref(), Some(expected.as_str()));

        let layout = &view.disk(1).layout;
        let mut spaces = view.spaces();
        assert_eq!(without_room(layout, |_| true, &spaces), None);
        let first = *layout.components().next().expect("it has one").1;
        for space in &mut spaces {
            space.free_bytes = if space.id == first.device { EXTENT_SIZE - 1 } else { GIB };
        }
        let name = format!("/dev/sd{}", first.device.0);
        // Only the other copy is waited for then, or only this one.
        assert_eq!(without_room(layout, |id| id != first.id, &spaces), None);
        let failing = format!("no room is left on {name}: writes to places without data fail");
        assert_eq!(without_room(layout, |id| id == first.id, &spaces).as_deref(), Some(failing.as_str()));
        let reduced = format!(
            "component {} has no room on {name}: new data is kept on the other copies alone",
            first.id
        );
        assert_eq!(without_room(layout, |_| true, &spaces).as_deref(), Some(reduced.as_str()));
        spaces.iter_mut().for_each(|space| space.free_bytes = 0);
        let all = without_room(layout, |_| true, &spaces).expect("nothing has room");
        assert!(all.starts_with("no room is left on /dev/sd") && all.contains(", /dev/sd"), "{all}");
    }

    /// One full device of a mirror was said to fail writes, which went on with the other copy; the copy on it was only "behind".
    #[test]
    fn a_copy_without_room_says_so() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        let id = view.component_on(1, 2);
        view.stand(id, Standing::Absent);
        view.host_mut(2).devices[0].free_bytes = 0;
        let mut owner = owner_state(view.disk(1), &[]);
        let report = owner.members.iter_mut().find(|one| one.component == id).expect("it is a member");
        report.trouble = Some(LeftBecause::Refused(wire::Refusal::NoSpace));
        view.owners.insert(DiskId(1), owner);
        let mut repairs = Repairs::default();
        repairs.step(at(0), &view, &mut counting_from(900), 1);
        let expected = format!(
            "1 of 2 components missing: component {id} has no room on /dev/sd21 of h2; no place for another since 60 s: \
             failures_to_tolerate=1 needs 2 hosts with devices in service; there is 1: h1"
        );
        check(&view, &repairs, None, 60, Some(&expected));
    }
}
