//! The effect of maintenance of a host on every disk that stands on it, and its progress.
//!
//! The dry run and the moves themselves ([`crate::Repairs`]) share one rule for the components that have to leave, so
//! that the dry run is true. Must never change anything.

use crate::device::Leaving;
use crate::disk::{DiskRecord, DiskState};
use crate::host::{HostRecord, Maintenance, Mode};
use crate::limits::REPLACEMENTS_MAX;
use crate::repair::Settings;
use crate::repair::leaving::must_leave;
use crate::view::View;
use base::units::format_bytes;
use base::{ComponentId, DeviceId, DiskId, HostId, Instant};
use placement::{Cause, DeviceSpace, repair};
use std::collections::{BTreeMap, BTreeSet};

/// The fate of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It stays, and its disk goes on with the other copies of its place.
    Missed {
        /// Sound copies elsewhere.
        copies_left: usize,
        /// Copies in the layout.
        copies: usize,
    },
    /// It has to be copied first.
    Moves {
        /// Where it stands.
        source: DeviceId,
        /// Where it goes.
        target: DeviceId,
        /// Bytes to be copied.
        bytes: u64,
    },
    /// It has to be copied first and cannot be.
    Stuck {
        /// Why not.
        cause: Cause,
        /// Bytes that would be copied.
        bytes: u64,
    },
    /// It is the only sound copy and stays: its disk cannot be used while the host is away.
    Inaccessible,
    /// It cannot be used now, and neither it nor another copy can be read.
    Lost,
}

/// A disk that stands on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The disk.
    pub disk: DiskId,
    /// Its name.
    pub name: String,
    /// Its components on the host with their fate, by place.
    pub components: Vec<(usize, ComponentId, Fate)>,
    /// The consequence for the disk, in one sentence.
    pub summary: String,
}

/// The effect of maintenance of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The host.
    pub host: HostId,
    /// How.
    pub mode: Mode,
    /// Every disk that stands on the host.
    pub disks: Vec<Touched>,
    /// Bytes to be copied first, in all.
    pub bytes_to_move: u64,
    /// Obstacles to the mode, in one sentence each; none when it is possible.
    pub obstacles: Vec<String>,
}

/// The effect of maintenance of the host in that mode. Nothing is changed. All moves together find room on the
/// targets.
pub fn assess(view: &View, host: HostId, mode: Mode, seed: u64) -> Assessment {
    let mut view = view.clone();
    let Some(record) = view.hosts.get_mut(&host) else {
        let obstacles = vec![format!("there is no host {host}")];
        return Assessment { host, mode, disks: Vec::new(), bytes_to_move: 0, obstacles };
    };
    record.maintenance = Maintenance::Entering { mode, since: Instant(0) };
    let devices = record.devices.iter().map(|device| device.id).collect();
    of_devices(&view, host, mode, &devices, seed)
}

/// The effect of emptying a device, as [`assess`]. None when no host has it.
pub fn assess_device(view: &View, device: DeviceId, seed: u64) -> Option<Assessment> {
    let mut view = view.clone();
    let host = view.device(device)?.0.id;
    let devices = &mut view.hosts.get_mut(&host).expect("it has the device").devices;
    let leaves = devices.iter_mut().filter(|one| one.id == device);
    leaves.for_each(|one| one.leaving = Some(Leaving { since: Instant(0), fault: None }));
    Some(of_devices(&view, host, Mode::FullEvacuation, &BTreeSet::from([device]), seed))
}

/// The fate of all components on some devices of a host.
fn of_devices(view: &View, host: HostId, mode: Mode, devices: &BTreeSet<DeviceId>, seed: u64) -> Assessment {
    let record = &view.hosts[&host];
    let mut spaces = view.spaces();
    let mut assessment =
        Assessment { host, mode, disks: Vec::new(), bytes_to_move: 0, obstacles: Vec::new() };
    let mut next = u64::MAX;
    let mut ids = || {
        next -= 1;
        ComponentId(next)
    };
    for disk in view.disks.values().filter(|disk| disk.state == DiskState::Active) {
        let components = fates(view, devices, disk, &mut spaces, &mut ids, seed);
        if components.is_empty() {
            continue;
        }
        assessment.count(view, record, disk, components);
    }
    assessment
}

impl Assessment {
    /// Whether the mode is possible.
    pub fn is_possible(&self) -> bool {
        self.obstacles.is_empty()
    }

    /// The same by these settings: with `replacements` 0 nothing is copied elsewhere.
    #[must_use]
    pub fn by(mut self, settings: Settings) -> Assessment {
        if settings.replacements_max == 0 && self.bytes_to_move > 0 {
            self.obstacles.push(format!(
                "the setting `replacements` is 0, so nothing is copied elsewhere until `drystone cluster set replacements {REPLACEMENTS_MAX}`"
            ));
        }
        self
    }

    fn count(
        &mut self,
        view: &View,
        host: &HostRecord,
        disk: &DiskRecord,
        components: Vec<(usize, ComponentId, Fate)>,
    ) {
        for (_, component, fate) in &components {
            match fate {
                Fate::Moves { bytes, .. } => self.bytes_to_move += bytes,
                Fate::Stuck { cause, bytes } => self.obstacles.push(format!(
                    "component {component} of disk {} on {} with {} has no target: {cause}",
                    disk.name,
                    host.name,
                    format_bytes(*bytes)
                )),
                Fate::Lost if self.mode == Mode::FullEvacuation => self.obstacles.push(format!(
                    "component {component} of disk {} has no source to be copied from: bring back the host or device that the disk waits for",
                    disk.name
                )),
                Fate::Missed { .. } | Fate::Inaccessible | Fate::Lost => {}
            }
        }
        let summary = summary(view, &components);
        self.disks.push(Touched { disk: disk.id, name: disk.name.clone(), components, summary });
    }
}

/// The fate of the components of a disk on the devices. Moves are counted in `spaces`.
fn fates(
    view: &View,
    devices: &BTreeSet<DeviceId>,
    disk: &DiskRecord,
    spaces: &mut [DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Vec<(usize, ComponentId, Fate)> {
    let layout = disk.layout_to_come();
    let is_here = |one: &&layout::Component| devices.contains(&one.device);
    let leaving: BTreeSet<ComponentId> = {
        let here = layout.components().map(|(_, one)| one).filter(is_here);
        here.filter(|one| must_leave(view, disk, one)).map(|one| one.id).collect()
    };
    let placed = disk.placed(&layout, view.used(disk.id));
    let allowed = disk.without_leaving(spaces, devices);
    let mut outcomes: BTreeMap<ComponentId, Result<DeviceId, Cause>> = BTreeMap::new();
    if !leaving.is_empty() {
        for one in repair(&placed, &leaving, &allowed, ids, seed) {
            outcomes.insert(one.lost, one.outcome.map(|component| component.device));
        }
    }
    let mut fates = Vec::new();
    for (place, copies) in layout.places() {
        let sound = view.sound(disk, place);
        let footprint = placed.footprint(place);
        for copy in copies.iter().filter(is_here) {
            let device = |id: &ComponentId| disk.component(*id).map(|(_, found)| found.device);
            let elsewhere: Vec<ComponentId> = sound
                .iter()
                .copied()
                .filter(|id| device(id).is_some_and(|found| !devices.contains(&found)))
                .collect();
            let is_readable = disk.left(place, elsewhere.iter().copied()) > 0;
            let elsewhere = elsewhere.len();
            let fate = match outcomes.remove(&copy.id) {
                _ if disk.left(place, sound.iter().copied()) == 0 => Fate::Lost,
                None if !is_readable && sound.contains(&copy.id) => Fate::Inaccessible,
                None => Fate::Missed { copies_left: elsewhere, copies: copies.len() },
                Some(Err(cause)) => Fate::Stuck { cause, bytes: footprint.data_bytes },
                Some(Ok(target)) => {
                    let space = spaces.iter_mut().find(|space| space.id == target);
                    space.expect("it was chosen").add(&footprint);
                    Fate::Moves { source: copy.device, target, bytes: footprint.data_bytes }
                }
            };
            fates.push((place, copy.id, fate));
        }
    }
    fates
}

/// The consequence for a disk, in one sentence: the worst first.
fn summary(view: &View, components: &[(usize, ComponentId, Fate)]) -> String {
    let fates = || components.iter().map(|(_, _, fate)| fate);
    if fates().any(|fate| *fate == Fate::Lost) {
        return "cannot be used already, and waits for its missing components".to_owned();
    }
    if fates().any(|fate| *fate == Fate::Inaccessible) {
        return "cannot be used while the host is away: its only copy stays there".to_owned();
    }
    let stuck =
        fates().find_map(|fate| if let Fate::Stuck { cause, .. } = fate { Some(cause) } else { None });
    if let Some(cause) = stuck {
        return format!("has to move and has no target: {cause}");
    }
    let moves = fates().filter_map(|fate| match fate {
        Fate::Moves { target, bytes, .. } => Some((*target, *bytes)),
        Fate::Missed { .. } | Fate::Stuck { .. } | Fate::Inaccessible | Fate::Lost => None,
    });
    let moves: Vec<(DeviceId, u64)> = moves.collect();
    let missed = fates().filter_map(|fate| match fate {
        Fate::Missed { copies_left, copies } => Some((*copies_left, *copies)),
        Fate::Moves { .. } | Fate::Stuck { .. } | Fate::Inaccessible | Fate::Lost => None,
    });
    let goes_on = missed.min().map(|(left, copies)| format!("goes on with {left} of {copies} copies"));
    let bytes: u64 = moves.iter().map(|(_, bytes)| bytes).sum();
    let name = |(target, _): &(DeviceId, u64)| {
        let found = view.device(*target);
        found.map_or_else(|| target.to_string(), |(host, device)| format!("{} of {}", device.name, host.name))
    };
    let targets: BTreeSet<String> = moves.iter().map(name).collect();
    let targets = crate::words::listed(&targets.into_iter().collect::<Vec<_>>());
    let copied =
        (!moves.is_empty()).then(|| format!("{} are copied to {targets} first", format_bytes(bytes)));
    copied.into_iter().chain(goes_on).collect::<Vec<_>>().join("; ")
}

/// Progress of a host that enters maintenance, or of a device that is being emptied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Components that still have to leave.
    pub components_left: usize,
    /// Bytes that these hold.
    pub bytes_left: u64,
    /// The number of their disks.
    pub disks_left: usize,
    /// Incoming components of other disks that are still being filled there.
    pub incoming_left: usize,
}

impl Progress {
    /// Whether it may stop.
    pub fn is_done(&self) -> bool {
        *self == Progress::default()
    }
}

/// The work left before the host may stop, by the mode in its record. [`crate::Repairs::refused`] says why a
/// component does not move.
pub fn progress(view: &View, host: HostId) -> Progress {
    let mut progress = Progress::default();
    let Some(record) = view.hosts.get(&host) else { return progress };
    let devices: BTreeSet<DeviceId> = record.devices.iter().map(|device| device.id).collect();
    let is_moving = record.maintenance.mode().is_some_and(|mode| mode != Mode::NoAction);
    for disk in view.disks.values().filter(|disk| disk.state == DiskState::Active && is_moving) {
        let mut has_some = false;
        for (place, copies) in disk.layout.places() {
            let bytes = disk.placed(&disk.layout, view.used(disk.id)).footprint(place).data_bytes;
            // A component that cannot be copied holds back full evacuation alone.
            let counts = |one: &&layout::Component| {
                devices.contains(&one.device)
                    && must_leave(view, disk, one)
                    && (record.maintenance.mode() == Some(Mode::FullEvacuation)
                        || view.is_sound(disk, one.id))
            };
            let count = copies.iter().filter(counts).count();
            progress.components_left += count;
            progress.bytes_left += bytes * count as u64;
            has_some |= count > 0;
        }
        progress.disks_left += usize::from(has_some);
        let comes = |one: &&crate::Incoming| devices.contains(&one.component.device);
        progress.incoming_left += disk.incoming.iter().filter(comes).count();
    }
    progress
}

/// The work left before a device that is being emptied is empty.
pub fn emptying(view: &View, device: DeviceId) -> Progress {
    let mut progress = Progress::default();
    for disk in view.disks.values() {
        let mut count = 0;
        for (place, copies) in disk.layout.places() {
            let here = copies.iter().filter(|one| one.device == device).count();
            if here > 0 {
                let footprint = disk.placed(&disk.layout, view.used(disk.id)).footprint(place);
                progress.bytes_left += footprint.data_bytes * here as u64;
                count += here;
            }
        }
        progress.components_left += count;
        progress.disks_left += usize::from(count > 0);
        let incoming = disk.incoming.iter().map(|one| one.component.device);
        let stand_ins = disk.stand_ins.iter().map(|one| one.component.device);
        progress.incoming_left += incoming.chain(stand_ins).filter(|one| *one == device).count();
    }
    progress
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::Repairs;
    use crate::testing::{at, cluster, counting_from};
    use base::units::GIB;
    use replication::Standing;

    /// The summaries and whether the mode is possible.
    fn check(view: &View, host: u128, mode: Mode, expected: &[&str], is_possible: bool) -> Assessment {
        let found = assess(view, HostId(host), mode, 1);
        let summaries: Vec<&str> = found.disks.iter().map(|disk| &*disk.summary).collect();
        assert_eq!(summaries, expected, "{mode}: {found:?}");
        assert_eq!(found.is_possible(), is_possible, "{:?}", found.obstacles);
        found
    }

    /// Host 1 has a copy of disk 1 and all of disk 2.
    fn two_disks(hosts: u128) -> View {
        let mut view = cluster(hosts, 1);
        for host in 3..=hosts {
            view.host_mut(host).devices[0].state = crate::DeviceState::Away { since: at(0) };
        }
        view.add_disk(1, "default,stripes=1");
        view.host_mut(2).devices[0].free_bytes = 0;
        view.add_disk(2, "single,stripes=1");
        view.host_mut(2).devices[0].free_bytes = 100 * GIB;
        for host in 3..=hosts {
            view.host_mut(host).devices[0].state = crate::DeviceState::InService;
        }
        view
    }

    #[test]
    fn with_no_replacements_nothing_can_be_emptied_but_what_is_empty() {
        let none = Settings { replacements_max: 0, ..Settings::default() };
        let full = assess(&two_disks(3), HostId(1), Mode::FullEvacuation, 1);
        assert!(full.bytes_to_move > 0 && full.clone().by(Settings::default()).is_possible());
        assert!(!full.by(none).is_possible());
        let empty = assess(&two_disks(3), HostId(3), Mode::FullEvacuation, 1);
        assert!(empty.by(none).is_possible());
    }

    #[test]
    fn emptying_a_device_is_assessed_like_the_host_and_changes_nothing() {
        let mut view = cluster(3, 2);
        let disk = view.add_disk(1, "default,stripes=1");
        let device = disk.layout.components().next().expect("it has some").1.device;
        let host = view.device(device).expect("it is there").0.id;
        let before = format!("{view:?}");
        let found = assess_device(&view, device, 1).expect("it is there");
        assert_eq!((found.host, found.bytes_to_move, found.is_possible()), (host, GIB, true));
        assert!(found.disks.iter().all(|disk| disk.components.len() == 1), "{found:?}");
        assert_eq!(format!("{view:?}"), before);
        for other in view.hosts.values_mut().flat_map(|host| &mut host.devices) {
            other.free_bytes = 0;
        }
        let found = assess_device(&view, device, 1).expect("it is there");
        assert!(found.obstacles[0].contains("has no target"), "{found:?}");
        assert_eq!(assess_device(&view, DeviceId(99), 1), None);
    }

    #[test]
    fn a_dry_run_tells_of_every_disk() {
        let view = two_disks(3);
        let goes_on = "goes on with 1 of 2 copies";
        let away = "cannot be used while the host is away: its only copy stays there";
        check(&view, 1, Mode::NoAction, &[goes_on, away], true);
        let ensure = check(
            &view,
            1,
            Mode::EnsureAccessibility,
            &[goes_on, "1 GiB are copied to /dev/sd21 of h2 first"],
            true,
        );
        assert_eq!(ensure.bytes_to_move, GIB);
        let full = assess(&view, HostId(1), Mode::FullEvacuation, 1);
        assert_eq!((full.bytes_to_move, full.is_possible()), (2 * GIB, true));
        check(&view, 3, Mode::FullEvacuation, &[], true);
    }

    #[test]
    fn too_few_hosts_or_too_little_room_are_told_before_anything_moves() {
        let view = two_disks(2);
        let full = assess(&view, HostId(1), Mode::FullEvacuation, 1);
        assert_eq!(full.obstacles.len(), 1);
        assert!(full.obstacles[0].contains("needs 2 hosts"), "{:?}", full.obstacles);
        assert!(assess(&view, HostId(1), Mode::EnsureAccessibility, 1).is_possible());

        let mut view = two_disks(3);
        for host in 2..=3 {
            view.host_mut(host).devices[0].free_bytes = GIB / 2;
        }
        let ensure = assess(&view, HostId(1), Mode::EnsureAccessibility, 1);
        assert!(ensure.obstacles[0].contains("disk2"), "{:?}", ensure.obstacles);
        assert!(!assess(&view, HostId(9), Mode::NoAction, 1).is_possible());
    }

    #[test]
    fn a_disk_that_is_already_reduced_moves_its_last_copy() {
        let mut view = two_disks(3);
        view.stand(view.component_on(1, 2), Standing::Absent);
        let ensure = assess(&view, HostId(1), Mode::EnsureAccessibility, 1);
        assert!(matches!(ensure.disks[0].components[0].2, Fate::Moves { .. }), "{ensure:?}");
    }

    #[test]
    fn progress_ends_when_all_has_moved_as_the_dry_run_said() {
        for mode in [Mode::EnsureAccessibility, Mode::FullEvacuation, Mode::NoAction] {
            let mut view = two_disks(3);
            let assessment = assess(&view, HostId(1), mode, 1);
            view.host_mut(1).maintenance = Maintenance::Entering { mode, since: at(0) };
            assert_eq!(progress(&view, HostId(1)).bytes_left, assessment.bytes_to_move);
            let mut repairs = Repairs::default();
            for second in 1..6 {
                let mut ids = counting_from(1000 * second);
                for action in repairs.step(at(second), &view, &mut ids, 1).actions {
                    let disk = view.disks.get_mut(&action.disk).expect("it is there");
                    let change = action.step.apply(disk).expect("nobody else changes it");
                    *disk = change.expect("no claims").record;
                    disk.roster.members.iter_mut().for_each(|one| one.standing = Standing::Active);
                }
            }
            assert!(progress(&view, HostId(1)).is_done(), "{mode}");
        }
    }
}
