//! Every code appears when something breaks, and disappears when that is mended.

use super::*;
use crate::balance::Balancer;
use crate::device::DeviceState;
use crate::host::{Maintenance, Mode};
use crate::levels::RecordLevels;
use crate::levels::{Level, Levels};
use crate::liveness::{Absence, Liveness};
use crate::moves::{Hindrance, MoveStatus};
use crate::repair::Repairs;
use crate::testing::{at, cluster, counting_from, node, owner_state};
use base::units::GIB;
use base::{DeviceId, DiskId, HostId, Instant};
use replication::{OwnedBy, Standing};
use std::collections::{BTreeMap, BTreeSet};

const NOW: u64 = 100_000;

/// A cluster of four hosts that is well, with two disks.
fn well() -> View {
    let mut view = cluster(4, 1);
    for id in 1..=2 {
        view.add_disk(id, "default,stripes=1");
        let first = view.disk(id).roster.members[0].node;
        let owner = OwnedBy { node: first, incarnation: 1 };
        view.disks.get_mut(&DiskId(id)).unwrap().roster.owner = Some(owner);
    }
    view
}

fn find(view: &View, directory: Directory, earlier: &[u64]) -> Vec<Finding> {
    let (mut repairs, mut balancer) = (Repairs::default(), Balancer::default());
    for second in earlier {
        repairs.step(at(*second), view, &mut counting_from(9000), 1);
    }
    balancer.step(view, &mut counting_from(9000), 1);
    let around = Surroundings {
        now: at(NOW),
        directory,
        repairs: &repairs,
        balancer: &balancer,
        silent_members: &[],
        links: &Links::default(),
        certificates: &[],
        levels: &RecordLevels::default(),
    };
    let found = findings(view, &around);
    assert!(found.is_sorted_by_key(|one| (one.severity, one.code, one.subject)));
    found
}

/// Breaks a cluster that is well: the code appears, with these words in its cause.
fn check(code: Code, words: &str, break_it: impl Fn(&mut View)) {
    let mut view = well();
    assert_eq!(find(&view, Directory::Reachable, &[NOW]), [], "all is well");
    break_it(&mut view);
    let found = find(&view, Directory::Reachable, &[NOW - 1000, NOW]);
    let one = found.iter().find(|one| one.code == code);
    let one = one.unwrap_or_else(|| panic!("{code} is missing in {found:#?}"));
    assert!(one.cause.contains(words), "{}", one.cause);
    assert!(!one.remedy.is_empty() && !one.remedy.ends_with('.') && !one.cause.ends_with('.'));
}

fn failed() -> DeviceState {
    DeviceState::Failed { since: at(NOW - 60), error: "write failed".to_owned() }
}

fn hosts_of(view: &View, disk: u128) -> Vec<u128> {
    view.disk(disk).roster.members.iter().map(|member| member.node.host.0).collect()
}

#[test]
fn every_code_has_a_text_of_its_own() {
    let texts: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(texts.len(), Code::ALL.len());
}

#[test]
fn snapshots_missing() {
    let schedule = |view: &mut View, id: u128, served: Option<u64>| {
        let disk = view.disks.get_mut(&DiskId(id)).unwrap();
        disk.policy.set("snapshots", "hourly keep 24").unwrap();
        disk.snapshots.served.extend(served.map(|due| (placement::Every::Hour, due)));
    };
    let last = NOW - NOW % 3600;
    let mut view = well();
    schedule(&mut view, 1, Some(last));
    schedule(&mut view, 2, None);
    assert_eq!(find(&view, Directory::Reachable, &[NOW]), [], "the first one comes in a moment");
    check(
        Code::SnapshotsMissing,
        "disk1 by its schedule (hourly) are not taken: the last one has been due for",
        |view| {
            schedule(view, 1, Some(last - 3600));
        },
    );
    check(Code::SnapshotsMissing, "less than 5 % of the cluster's space is free", |view| {
        schedule(view, 1, Some(last - 3600));
        (1..=4).for_each(|host| view.host_mut(host).devices[0].free_bytes = GIB);
    });
}

#[test]
fn disk_inaccessible() {
    check(Code::DiskInaccessible, "disk1 cannot be used: waiting for the only current copy", |view| {
        for host in hosts_of(view, 1) {
            view.liveness.insert(HostId(host), away());
        }
    });
}

fn away() -> Liveness {
    Liveness::Away { since: at(NOW - 60), why: Absence::Unexpected }
}

#[test]
fn disk_reduced() {
    check(Code::DiskReduced, "disk1: 1 of 2 components missing", |view| {
        view.stand(view.component_on(1, hosts_of(view, 1)[1]), Standing::Absent);
    });
}

#[test]
fn disk_deleting() {
    check(Code::DiskDeleting, "disk1 is being deleted and waits for /dev/sd", |view| {
        view.liveness.insert(HostId(hosts_of(view, 1)[1]), away());
        view.disks.get_mut(&DiskId(1)).unwrap().state = crate::DiskState::Deleting;
    });
}

#[test]
fn component_stale() {
    check(Code::ComponentStale, "1 component of disk1 lost what", |view| {
        view.stand(view.component_on(1, hosts_of(view, 1)[1]), Standing::Stale);
    });
}

/// `host remove` gives up what stood on the host. That was told as a device that loses writes.
#[test]
fn what_was_given_up_with_its_host_lost_no_writes() {
    let mut view = well();
    let host = hosts_of(&view, 1)[1];
    view.stand(view.component_on(1, host), Standing::Stale);
    let codes = |view: &View| -> Vec<Code> {
        find(view, Directory::Reachable, &[NOW]).iter().map(|one| one.code).collect()
    };
    assert!(codes(&view).contains(&Code::ComponentStale));
    let removed = view.hosts.remove(&HostId(host)).expect("it is there");
    assert!(!codes(&view).contains(&Code::ComponentStale));
    // Its devices are another host's now.
    let again = HostRecord { id: HostId(9), name: "h9".to_owned(), ..removed };
    view.hosts.insert(HostId(9), again);
    view.liveness.insert(HostId(9), Liveness::Alive);
    assert!(!codes(&view).contains(&Code::ComponentStale));
}

#[test]
fn resync_stuck() {
    check(Code::ResyncStuck, "nothing has been copied to 1 component of disk1 on /dev/sd", |view| {
        let id = view.component_on(1, hosts_of(view, 1)[1]);
        view.stand(id, Standing::Absent);
        view.owners.insert(DiskId(1), owner_state(view.disk(1), &[(id, 5, 10)]));
    });
}

#[test]
fn repair_blocked() {
    check(Code::RepairBlocked, "for 1 component of disk1 no place", |view| {
        let hosts = hosts_of(view, 1);
        view.set_device(hosts[1] * 10 + 1, failed());
        for host in (1..=4).filter(|host| !hosts.contains(host)) {
            view.host_mut(host).devices[0].free_bytes = 0;
        }
    });
}

#[test]
fn repair_off() {
    let mut repairs = Repairs::default();
    repairs.set(crate::Settings { replacements_max: 0, ..crate::Settings::default() });
    let around = Surroundings {
        now: at(NOW),
        directory: Directory::Reachable,
        repairs: &repairs,
        balancer: &Balancer::default(),
        silent_members: &[],
        links: &Links::default(),
        certificates: &[],
        levels: &RecordLevels::default(),
    };
    let found = findings(&well(), &around);
    let codes: Vec<(Code, Severity)> = found.iter().map(|one| (one.code, one.severity)).collect();
    assert_eq!(codes, [(Code::RepairOff, Severity::Warning)]);
    assert!(found[0].remedy.ends_with("`drystone cluster set replacements 16`"), "{}", found[0].remedy);
}

#[test]
fn placement_debt() {
    check(Code::PlacementDebt, "failures_to_tolerate is 1, the policy asks for 3", |view| {
        let disk = view.disks.get_mut(&DiskId(1)).unwrap();
        let debt =
            placement::Debt { rule: "failures_to_tolerate", wanted: "3".to_owned(), got: "1".to_owned() };
        disk.debts.push(debt);
    });
}

#[test]
fn missing_copies_are_waited_for_where_there_is_room_for_them() {
    let mut view = well();
    let disk = view.disk(1).clone();
    let more = crate::testing::policy("default,stripes=1,failures_to_tolerate=2");
    let owed = disk.change_rules(&more, None, &view.spaces(), &[]).expect("a third host is there").record;
    view.disks.insert(disk.id, owed);
    let remedy = |view: &View| {
        let found = find(view, Directory::Reachable, &[NOW]);
        let debt = found.into_iter().find(|one| one.code == Code::PlacementDebt).expect("copies are missing");
        debt.remedy
    };
    assert_eq!(remedy(&view), "wait until the missing copies are made (`drystone resync`)");
    let hosts = hosts_of(&view, 1);
    for host in view.hosts.values_mut().filter(|host| !hosts.contains(&host.id.0)) {
        host.devices.clear();
    }
    assert!(remedy(&view).starts_with("add hosts"));
}

#[test]
fn host_away_and_suspect() {
    check(Code::HostAway, "h1 has shown no sign of life for 60 s", |view| {
        view.liveness.insert(HostId(1), away());
    });
    check(Code::HostSuspect, "h1 has not been well for 20 s", |view| {
        view.liveness.insert(HostId(1), Liveness::Suspect { since: at(NOW - 20) });
    });
}

#[test]
fn host_maintenance_is_no_surprise() {
    let maintenance = Maintenance::On { mode: Mode::EnsureAccessibility, since: at(NOW - 120) };
    let service = |view: &mut View| {
        view.host_mut(1).maintenance = maintenance;
        view.lose_host(1, NOW - 60);
    };
    check(Code::HostMaintenance, "h1 has been in maintenance (ensure accessibility) for 2 min", service);
    let mut view = well();
    service(&mut view);
    let found = find(&view, Directory::Reachable, &[NOW]);
    assert!(found.iter().all(|one| one.code != Code::HostAway));
}

#[test]
fn device_failed_and_away() {
    check(Code::DeviceFailed, "/dev/sd11 of h1 with 0 components failed 60 s ago: write failed", |view| {
        view.set_device(11, failed());
    });
    check(Code::DeviceAway, "/dev/sd11 of h1", |view| {
        view.set_device(11, DeviceState::Away { since: at(0) });
    });
}

#[test]
fn a_device_that_is_to_be_emptied_says_why_and_how_far_it_is() {
    let leave = |view: &mut View, fault: Option<&str>| {
        let fault = fault.map(str::to_owned);
        let device = &mut view.host_mut(1).devices[0];
        device.leaving = Some(crate::Leaving { since: at(NOW - 90), fault });
    };
    check(Code::DeviceLeaving, "/dev/sd11 of h1 is being emptied", |view| leave(view, Some("it is slow")));
    let mut view = cluster(2, 1);
    leave(&mut view, None);
    let found = find(&view, Directory::Reachable, &[]);
    let one = found.iter().find(|one| one.code == Code::DeviceLeaving).expect("it is told");
    assert!(one.severity == Severity::Notice && one.cause.ends_with("no component is left on it"), "{one:?}");
    assert!(one.remedy.contains("device remove"), "{one:?}");
    let mut view = well();
    let host = hosts_of(&view, 1)[0];
    view.host_mut(host).devices[0].leaving = Some(crate::Leaving { since: at(0), fault: None });
    let found = find(&view, Directory::Reachable, &[]);
    let one = found.iter().find(|one| one.code == Code::DeviceLeaving).expect("it is told");
    assert!(one.cause.contains("1 GiB yet to leave it"), "{one:?}");
}

#[test]
fn space_low_is_worse_when_nearly_nothing_is_left() {
    for (free, severity) in [(15, Severity::Warning), (4, Severity::Critical)] {
        let fill = |view: &mut View| view.host_mut(1).devices[0].free_bytes = free * GIB;
        check(Code::SpaceLow, "% full", fill);
        let mut view = well();
        fill(&mut view);
        let found = find(&view, Directory::Reachable, &[]);
        let low = found.iter().find(|one| one.code == Code::SpaceLow).expect("it is low");
        assert_eq!(low.severity, severity);
    }
}

#[test]
fn space_after_failure() {
    check(Code::SpaceAfterFailure, "the 79 GiB on it would have to find room in 63 GiB", |view| {
        (1..=4).for_each(|host| view.host_mut(host).devices[0].free_bytes = 21 * GIB);
    });
}

#[test]
fn space_uneven() {
    check(Code::SpaceUneven, "nothing on it may move elsewhere", |view| {
        view.host_mut(1).devices[0].free_bytes = 10 * GIB;
        view.used_bytes.clear();
    });
}

/// A full device was told like one of 95 %, without the disks that it harms.
#[test]
fn a_full_device_says_which_disks_it_harms() {
    let fill = |view: &mut View, hosts: &[u128]| {
        hosts.iter().for_each(|host| view.host_mut(*host).devices[0].free_bytes = 0);
    };
    check(Code::SpaceLow, "is full, with 0 B of 100 GiB free; new data has a copy fewer: disk1", |view| {
        fill(view, &hosts_of(view, 1)[..1]);
    });
    check(Code::SpaceLow, "; writes to places without data fail: disk1", |view| {
        fill(view, &hosts_of(view, 1))
    });
}

#[test]
fn components_low() {
    check(Code::ComponentsLow, "/dev/sd11 of h1 holds 3700 components of the 4096", |view| {
        view.host_mut(1).devices[0].component_count = 3700;
    });
}

#[test]
fn domains_too_few() {
    check(
        Code::DomainsTooFew,
        "copies in 2 fault domains are asked for (disk1, disk2), which are all",
        |view| {
            view.host_mut(3).devices.clear();
            view.host_mut(4).devices.clear();
            view.disks.values_mut().for_each(|disk| disk.state = crate::DiskState::Creating);
        },
    );
}

/// Hosts were given other fault domains, and both copies of a disk then stood in one: all was well by `health`.
#[test]
fn domains_shared() {
    let share = |view: &mut View, others: Option<&str>| {
        let hosts = hosts_of(view, 1);
        for host in 1..=4 {
            let domain = if hosts.contains(&host) { Some("r1") } else { others };
            view.host_mut(host).fault_domain = domain.map(str::to_owned);
        }
    };
    check(Code::DomainsShared, "copies of disk1 share fault domain r1 (/dev/sd", |view| share(view, None));
    check(Code::DomainsShared, "the disk cannot be used without that domain", |view| share(view, None));
    check(Code::DomainsShared, "as soon as its turn comes", |view| share(view, Some("r2")));
    check(Code::DomainsShared, "no copy can move: failures_to_tolerate=1 needs 2 fault domains", |view| {
        share(view, Some("r1"));
    });
    let mut view = well();
    share(&mut view, Some("r1"));
    let found = find(&view, Directory::Reachable, &[NOW - 1000, NOW]);
    assert!(found.iter().all(|one| one.code != Code::RepairBlocked), "it is said once: {found:#?}");
}

/// A disk that moves, and what is found after it stood still for so many seconds.
fn stand_still(view: &mut View, seconds: u64, hindrance: Option<Hindrance>) {
    let id = DiskId(1);
    if view.disk(1).moving.is_none() {
        view.begin_move(id, &"method=parity,stripes=1".parse().unwrap());
    }
    view.moves.insert(id, MoveStatus { still_since: at(NOW - seconds), hindrance });
}

#[test]
fn move_stuck_and_paused() {
    let minutes = |count: u64| count * 60;
    check(
        Code::MoveStuck,
        "disk1 into another layout stands still for 61 min, 0 B of 10 GiB moved",
        |view| {
            stand_still(view, minutes(61), None);
        },
    );
    check(Code::MoveStuck, "stands still for 6 min, 0 B of 10 GiB moved: no room on /dev/sd", |view| {
        stand_still(view, minutes(6), Some(Hindrance::NoSpace));
    });
    check(Code::MoveStuck, "blocks of it are damaged on all copies", |view| {
        stand_still(view, minutes(6), Some(Hindrance::Damaged));
    });
    check(Code::MovePaused, "is paused for 25 h, 0 B of 10 GiB moved", |view| {
        stand_still(view, 25 * 3600 - 60, None);
        let paused = view.disk(1).steer_move(false, true).unwrap().record;
        view.disks.insert(DiskId(1), paused);
    });
    let found = |seconds, hindrance, is_paused| {
        let mut view = well();
        stand_still(&mut view, seconds, hindrance);
        let steered = view.disk(1).steer_move(false, is_paused).unwrap().record;
        view.disks.insert(DiskId(1), steered);
        find(&view, Directory::Reachable, &[NOW]).into_iter().map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(found(minutes(59), None, false), []);
    assert_eq!(found(minutes(59), Some(Hindrance::AwaitsComponent), false), []);
    assert_eq!(found(minutes(4), Some(Hindrance::NoSpace), false), []);
    assert_eq!(found(minutes(120), Some(Hindrance::NoSpace), true), [], "somebody paused it");
}

#[test]
fn a_disk_that_waits_for_other_moves_is_a_notice() {
    let mut view = well();
    let gold: placement::Policy = "method=parity,stripes=1".parse().unwrap();
    view.policies.insert("gold".to_owned(), gold);
    view.disks.get_mut(&DiskId(1)).unwrap().follows = Some("gold".to_owned());
    let of = |view: &View| {
        let found = find(view, Directory::Reachable, &[NOW]);
        let found = found.into_iter().find(|one| one.code == Code::PlacementDebt).unwrap();
        (found.severity, found.cause)
    };
    assert_eq!(of(&view).0, Severity::Warning);
    let owner = view.disk(1).roster.owner;
    for id in 11..=14 {
        view.add_disk(id, "default,stripes=1");
        view.disks.get_mut(&DiskId(id)).unwrap().roster.owner = owner;
        view.begin_move(DiskId(id), &gold);
    }
    let (severity, cause) = of(&view);
    assert_eq!(severity, Severity::Notice);
    assert!(cause.contains("it waits for other moves: 4 are under way"), "{cause}");
}

#[test]
fn directory_unreachable() {
    let found = find(&well(), Directory::Unreachable { since: at(NOW - 90) }, &[]);
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), [Code::DirectoryUnreachable]);
    assert!(found[0].cause.contains("for 90 s"));
}

/// What is found of a cluster that is well but for its levels.
fn of_levels(levels: &RecordLevels) -> Vec<(Code, Severity, String)> {
    let around = Surroundings {
        now: at(NOW),
        directory: Directory::Reachable,
        repairs: &Repairs::default(),
        balancer: &Balancer::default(),
        silent_members: &[],
        links: &Links::default(),
        certificates: &[],
        levels,
    };
    findings(&well(), &around).into_iter().map(|one| (one.code, one.severity, one.cause)).collect()
}

#[test]
fn level_behind_host_outdated_and_records_unreadable() {
    let level = |number| Level::new(number).unwrap();
    let upto = |highest| Levels::new(Level::FIRST, level(highest)).unwrap();
    let known = |at, hosts: [u16; 4]| RecordLevels {
        level: level(at),
        hosts: (1..).zip(hosts).map(|(id, highest)| (HostId(id), upto(highest))).collect(),
        unreadable: Vec::new(),
    };
    for quiet in [known(1, [1, 1, 1, 1]), known(1, [2, 2, 1, 2]), known(2, [2, 2, 2, 2])] {
        assert_eq!(of_levels(&quiet), [], "{quiet:?}");
    }
    let behind = "all hosts understand records of level 2, and the cluster writes level 1".to_owned();
    assert_eq!(of_levels(&known(1, [2, 2, 3, 2])), [(Code::LevelBehind, Severity::Notice, behind)]);
    let outdated =
        "h3 last ran drystone 1.0.0, which understands records of level 1, and the cluster's are at level 2";
    let found = of_levels(&known(2, [2, 2, 1, 2]));
    assert_eq!(found, [(Code::HostOutdated, Severity::Critical, outdated.to_owned())]);
    let unreadable =
        vec!["the record disks/1: it is odd".to_owned(), "the record disks/2: so is it".to_owned()];
    let found = of_levels(&RecordLevels { unreadable, ..known(1, [1, 1, 1, 1]) });
    assert_eq!((found.len(), found[0].0, found[0].1), (1, Code::RecordsUnreadable, Severity::Critical));
    assert!(found[0].2.starts_with("2 records of the directory cannot be read"), "{}", found[0].2);
    assert!(found[0].2.ends_with("the record disks/1: it is odd"), "{}", found[0].2);
}

#[test]
fn a_data_directory_that_cannot_be_written() {
    check(Code::HostDataDir, "data_dir of h1: 5 MiB are left; nothing is kept", |view| {
        view.host_mut(1).data_trouble = vec!["5 MiB are left".to_owned(), "nothing is kept".to_owned()];
    });
}

/// Parity that did not agree was written again, and nobody heard of the fault behind it.
#[test]
fn parity_that_did_not_agree_with_its_data_is_told() {
    check(Code::RowsDisagree, "the parity of 2 rows of disk1 did not agree with the data", |view| {
        let checks = replication::owner::RowCheckState { disagreeing: 2, mended: 1, ..Default::default() };
        let owner = owner_state(view.disk(1), &[]);
        view.owners.insert(DiskId(1), replication::owner::OwnerState { row_checks: checks, ..owner });
    });
}

/// The host that copied was lost, and guests waited for a disk of which nobody said what it waited for.
#[test]
fn a_rollback_that_was_cut_short_is_told() {
    let roll_back = |view: &mut View, host| {
        let disk = view.disks.get_mut(&DiskId(1)).expect("it is there");
        for (number, name) in [(1, "monday"), (2, "before")] {
            let (name, size) = (name.to_owned(), disk.size);
            let one = crate::Snapshot { number, name, size, taken_ns: 7, schedule: None, is_pinned: false };
            disk.snapshots.taken.push(one);
            disk.roster.snapshots.taken.push(number);
        }
        disk.roster.snapshots.last = 2;
        let by = Some(crate::Claim { host: HostId(host), incarnation: u64::MAX });
        disk.rollback =
            Some(crate::Rollback { to: 1, since: 2, before: 2, keeps: true, is_shared: false, by });
    };
    check(Code::RollbackUnfinished, "the rollback of disk1 to snapshot monday was cut short", |view| {
        roll_back(view, 77);
    });
    let mut view = well();
    roll_back(&mut view, 1);
    assert_eq!(find(&view, Directory::Reachable, &[NOW]), [], "its host copies");
}

fn damaged(count: u64, unread: u64) -> crate::host::DamagedDevice {
    let (id, name) = (DeviceId(101), "/dev/sdb".to_owned());
    crate::host::DamagedDevice { id, name, damaged_blocks: count, read_errors: unread }
}

/// Health said that all was well while a device damaged what it held.
#[test]
fn a_device_with_damaged_blocks_and_groups_that_store_nothing() {
    let cause = "3 blocks of /dev/sdb of h1 were found damaged since the service started, 1 block of which could not be read";
    check(Code::DeviceDamaged, cause, |view| view.host_mut(1).reports.damaged.push(damaged(3, 1)));
    check(
        Code::LogFailed,
        "the log device /dev/sda of h1 is out of service, and its disk group with it: it is gone",
        |view| {
            view.host_mut(1).reports.failed_logs.push(("/dev/sda".to_owned(), "it is gone".to_owned()));
        },
    );
    check(Code::GroupNoCapacity, "h1 has a disk group with a log device and no capacity device", |view| {
        view.host_mut(1).reports.lone_logs.push(("/dev/sda".to_owned(), "g7".to_owned()));
    });
    let severity = |count, hosts: usize| {
        let mut view = well();
        view.host_mut(1).reports.damaged.push(damaged(count, 0));
        while view.hosts.len() > hosts {
            view.hosts.pop_last();
        }
        let found = find(&view, Directory::Reachable, &[]);
        found.into_iter().find(|one| one.code == Code::DeviceDamaged).expect("it is told").severity
    };
    assert_eq!(severity(1, 4), Severity::Notice, "other copies mend it");
    assert_eq!(severity(16, 4), Severity::Warning, "it is about to fail");
    assert_eq!(severity(1, 1), Severity::Warning, "nobody has another copy");
}

fn encryption(host: u128, devices: &[(&str, bool, crate::Encryption)]) -> crate::EncryptionReport {
    crate::EncryptionReport::of(devices.iter().map(|(name, is_log, encryption)| crate::DeviceEncryption {
        name: format!("/dev/{name}{host}"),
        is_log: *is_log,
        encryption: *encryption,
    }))
}

#[test]
fn devices_that_are_not_encrypted_beside_others_that_are() {
    use crate::Encryption::{Luks2, None as Bare, Partly};
    let set = |view: &mut View, host: u128, devices: &[(&str, bool, crate::Encryption)]| {
        view.host_mut(host).reports.encryption = encryption(host, devices);
    };
    let cause = "1 of 4 devices is not encrypted at rest, and any disk may have data there: /dev/log2 of h2 (log device); a log device";
    check(Code::EncryptionMixed, cause, |view| {
        set(view, 1, &[("log", true, Luks2), ("cap", false, Luks2)]);
        set(view, 2, &[("cap", false, Luks2), ("log", true, Bare)]);
    });
    let cause = "8 of 9 devices are not encrypted at rest, and any disk may have data there: /dev/log3 of h3 (log device), \
                 /dev/a1 of h1 (partly encrypted), /dev/a2 of h2, /dev/b2 of h2, and 4 more; a log";
    check(Code::EncryptionMixed, cause, |view| {
        set(view, 1, &[("a", false, Partly)]);
        set(
            view,
            2,
            &[
                ("a", false, Bare),
                ("b", false, Bare),
                ("c", false, Bare),
                ("d", false, Bare),
                ("e", false, Bare),
            ],
        );
        set(view, 3, &[("a", false, Bare), ("log", true, Bare), ("b", false, Luks2)]);
    });
    let cause = "2 of 2 devices are not encrypted at rest, and any disk may have data there: /dev/b1 of h1 (partly encrypted), /dev/a1";
    check(Code::EncryptionMixed, cause, |view| set(view, 1, &[("a", false, Bare), ("b", false, Partly)]));
}

/// A cluster that is encrypted as a whole, or not at all, is what people decided; a host of an earlier release says nothing.
#[test]
fn encryption_that_is_the_same_everywhere_or_unknown_is_no_finding() {
    use crate::Encryption::{Luks1, Luks2, None as Bare, Unknown};
    for devices in [
        [("a", true, Luks2), ("b", false, Luks2)],
        [("a", true, Luks2), ("b", false, Luks1)],
        [("a", true, Luks2), ("b", false, Unknown)],
        [("a", true, Bare), ("b", false, Bare)],
        [("a", true, Bare), ("b", false, Unknown)],
        [("a", true, Unknown), ("b", false, Unknown)],
    ] {
        let mut view = well();
        // Host 4 says nothing.
        for host in 1..=3 {
            view.host_mut(host).reports.encryption = encryption(host, &devices);
        }
        assert_eq!(find(&view, Directory::Reachable, &[NOW]), [], "{devices:?}");
    }
}

#[test]
fn clock_skew_and_mixed_versions() {
    check(Code::ClockSkew, "the clock of h1 is 3 s behind that of most hosts", |view| {
        view.host_mut(1).clock_ahead_ns = -3_000_000_000;
    });
    check(Code::VersionsMixed, "1.0.0 on h2, h3, h4; 1.1.0 on h1", |view| {
        view.host_mut(1).release = "1.1.0".to_owned();
    });
    assert_eq!(node(1).host, HostId(1));
}

/// The clock that hosts count by is late after restarts, by up to ten seconds: `health` then warned of every host's clock, though all
/// were right.
#[test]
fn a_directory_whose_time_is_late_makes_no_clock_wrong() {
    let mut view = well();
    for host in 1..=4 {
        view.host_mut(host).clock_ahead_ns = 7_000_000_000;
    }
    assert_eq!(find(&view, Directory::Reachable, &[NOW]), []);
    view.host_mut(2).clock_ahead_ns = 12_000_000_000;
    let found = find(&view, Directory::Reachable, &[NOW]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].cause, "the clock of h2 is 5 s ahead of that of most hosts");
    // A host that is not there says nothing of clocks.
    view.liveness.insert(HostId(2), Liveness::Away { since: at(NOW - 60), why: Absence::Maintenance });
    assert!(find(&view, Directory::Reachable, &[NOW]).iter().all(|one| one.code != Code::ClockSkew));
}

/// A host that restarted was warned of as suspect for 20 s after it was back.
#[test]
fn a_host_that_is_back_is_no_warning() {
    let mut view = well();
    view.liveness.insert(HostId(3), Liveness::Suspect { since: at(NOW - 12) });
    let found = find(&view, Directory::Reachable, &[NOW]);
    assert!(found.iter().any(|one| one.code == Code::HostSuspect && one.severity == Severity::Warning));
    view.returning.insert(HostId(3));
    let found = find(&view, Directory::Reachable, &[NOW]);
    let one = found.iter().find(|one| one.code == Code::HostSuspect).expect("it is told of");
    assert_eq!(one.severity, Severity::Notice);
    assert!(one.cause.starts_with("h3 is back; it was last well 12 s ago"), "{}", one.cause);
}

/// A time that nobody noted was shown as an age since 1970: "20783 days".
#[test]
fn a_time_that_nobody_noted_is_no_age() {
    let today = at(1_795_600_000);
    assert_eq!(crate::words::ago(today, Instant(0)), "an unknown time");
    assert_eq!(crate::words::ago(today, at(1_795_599_000)), "17 min");
    let mut view = well();
    view.liveness.remove(&HostId(3));
    let around = Surroundings {
        now: today,
        directory: Directory::Reachable,
        repairs: &Repairs::default(),
        balancer: &Balancer::default(),
        silent_members: &[],
        links: &Links::default(),
        certificates: &[],
        levels: &RecordLevels::default(),
    };
    let found = findings(&view, &around);
    let one = found.iter().find(|one| one.code == Code::HostSuspect).expect("it was not seen of yet");
    assert!(one.cause.starts_with("h3 has not been well for an unknown time"), "{}", one.cause);
}

/// With one of three members of etcd dead, `health` said that all was well: the next loss stopped every change.
#[test]
fn a_member_of_the_directory_that_is_silent_is_told_by_its_address() {
    let view = well();
    let silent = |address: &str| SilentMember {
        address: address.to_owned(),
        since: at(NOW - 300),
        why: "connection refused".to_owned(),
        members: 3,
    };
    let of = |silent_members: &[SilentMember], directory| {
        let around = Surroundings {
            now: at(NOW),
            directory,
            repairs: &Repairs::default(),
            balancer: &Balancer::default(),
            silent_members,
            links: &Links::default(),
            certificates: &[],
            levels: &RecordLevels::default(),
        };
        findings(&view, &around)
    };
    assert_eq!(of(&[], Directory::Reachable), []);
    let found = of(&[silent("http://10.0.0.12:2379")], Directory::Reachable);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].code, found[0].severity), (Code::DirectoryMember, Severity::Warning));
    assert_eq!(
        found[0].cause,
        "1 of 3 members of etcd do not answer: http://10.0.0.12:2379 (for 5 min: connection refused); none of the others may be \
         lost"
    );
    // When nothing answers, that is what there is to say.
    let away = Directory::Unreachable { since: at(NOW - 60) };
    let all = [silent("http://a:1"), silent("http://b:1"), silent("http://c:1")];
    assert!(of(&all, away).iter().all(|one| one.code == Code::DirectoryUnreachable));
}

/// A host whose only group was empty, or that had none, was said to be well.
#[test]
fn a_host_without_devices_is_told_of() {
    check(Code::DevicesNone, "h4: no capacity device, so no component stands there", |view| {
        view.host_mut(4).devices.clear();
    });
    let mut view = cluster(1, 1);
    assert_eq!(find(&view, Directory::Reachable, &[NOW]), []);
    view.host_mut(1).devices.clear();
    let found = find(&view, Directory::Reachable, &[NOW]);
    assert_eq!((found[0].code, found[0].severity), (Code::DevicesNone, Severity::Warning));
    assert_eq!(found[0].cause, "h1: no capacity device, so no disk can be created");
}

/// Thin disks were promised any size without a word: 10 TiB on 16 GiB.
#[test]
fn space_that_is_promised_beyond_what_there_is_is_told_with_figures() {
    // Two disks of 10 GiB in two copies, on four devices of so much each.
    let of = |capacity: u64, free: u64| {
        move |view: &mut View| {
            for device in view.hosts.values_mut().flat_map(|host| host.devices.iter_mut()) {
                (device.capacity_bytes, device.free_bytes) = (capacity, free);
            }
        }
    };
    let words =
        "disks may take 40 GiB with all copies, which is 125 % of the capacity of 32 GiB; 0 B are used";
    check(Code::SpaceOverCommitted, words, of(8 * GIB, 8 * GIB));
    let severity = |capacity, free| {
        let mut view = well();
        of(capacity, free)(&mut view);
        let found = find(&view, Directory::Reachable, &[NOW]);
        found.iter().find(|one| one.code == Code::SpaceOverCommitted).map(|one| one.severity)
    };
    let view = well();
    let (all, hosts) = (Provisioned::of(&view), Provisioned::of_hosts(&view));
    assert_eq!((all.disks_bytes, all.components_bytes), (20 * GIB, 40 * GIB));
    assert_eq!(hosts.values().map(|one| one.components_bytes).sum::<u64>(), all.components_bytes);
    assert_eq!(hosts.values().map(|one| one.capacity_bytes).sum::<u64>(), all.capacity_bytes);
    assert_eq!(severity(10 * GIB, 10 * GIB), None, "all of it fits");
    assert_eq!(severity(9 * GIB, GIB), Some(Severity::Notice));
    assert_eq!(severity(5 * GIB, 3 * GIB), Some(Severity::Notice), "little is used");
    assert_eq!(severity(5 * GIB, 2 * GIB), Some(Severity::Warning));
}

/// What is said of a certificate of 1,000 hours, so many of which are left; what is negative is over.
fn of_certificate(holder: Holder, hours_left: i64) -> Option<(Severity, String)> {
    const HOUR: i64 = 3600;
    let now = 5000 * HOUR;
    let ends = now + hours_left * HOUR;
    let second = |seconds: i64| at(seconds as u64);
    let certificates = [Lifespan { holder, issued: second(ends - 1000 * HOUR), ends: second(ends) }];
    let around = Surroundings {
        now: second(now),
        directory: Directory::Reachable,
        repairs: &Repairs::default(),
        balancer: &Balancer::default(),
        silent_members: &[],
        links: &Links::default(),
        certificates: &certificates,
        levels: &RecordLevels::default(),
    };
    let found = findings(&well(), &around);
    assert!(found.len() <= 1, "{found:#?}");
    found.into_iter().next().map(|one| {
        assert_eq!(one.code.group(), Group::Certificates);
        (one.severity, one.cause)
    })
}

#[test]
fn certificate_ending() {
    for (hours_left, expected) in [
        (1000, None),
        (330, None),
        (329, Some((Severity::Warning, "h1 ends in 14 days: it has been due for renewal for 60 min"))),
        (101, Some((Severity::Warning, "ends in 5 days"))),
        (100, Some((Severity::Critical, "ends in 5 days"))),
        (0, Some((Severity::Critical, "ended 0 s ago"))),
        (-3, Some((Severity::Critical, "the certificate of h1 ended 3 h ago"))),
    ] {
        let found = of_certificate(Holder::Host(HostId(1)), hours_left);
        assert_eq!(found.as_ref().map(|one| one.0), expected.map(|one| one.0), "{hours_left} h: {found:?}");
        assert!(found.is_none_or(|one| one.1.contains(expected.expect("it is").1)), "{hours_left} h");
    }
}

#[test]
fn authority_ending() {
    let print = "0123456789abcdef".repeat(4);
    for (hours_left, expected) in [
        (101, None),
        (100, Some((Severity::Warning, "authority 0123456789ab ends in 5 days"))),
        (30, Some((Severity::Critical, "ends in 30 h"))),
        (-1, Some((Severity::Critical, "ended 60 min ago"))),
    ] {
        let found = of_certificate(Holder::Authority(print.clone()), hours_left);
        assert_eq!(found.as_ref().map(|one| one.0), expected.map(|one| one.0), "{hours_left} h: {found:?}");
        assert!(found.is_none_or(|one| one.1.contains(expected.expect("it is").1)), "{hours_left} h");
    }
}

#[test]
fn link_down() {
    let view = well();
    let report = |reporter: u128, about: u128, is_up| crate::LinkReport {
        reporter: HostId(reporter),
        about: HostId(about),
        is_up,
        at: at(NOW),
    };
    let told = |links: &Links| {
        let around = Surroundings {
            silent_members: &[],
            now: at(NOW),
            directory: Directory::Reachable,
            repairs: &Repairs::default(),
            balancer: &Balancer::default(),
            links,
            certificates: &[],
            levels: &RecordLevels::default(),
        };
        findings(&view, &around).into_iter().map(|one| (one.code, one.cause)).collect::<Vec<_>>()
    };
    let reports = [report(1, 2, false), report(1, 3, false), report(2, 1, true), report(4, 3, false)];
    let last_seen = |all: u64, third: u64| {
        BTreeMap::from([1, 2, 3, 4].map(|host| (HostId(host), at(if host == 3 { third } else { all }))))
    };
    let mut links = Links::default();
    for second in [NOW - 60, NOW - 30, NOW] {
        // Host 3 is silent: that it is not reached is no wonder.
        links.step(at(second), &reports, &last_seen(second, second - 20));
    }
    let expected = "h1 has not reached h2 for 60 s, though both sides tell the directory that they are there";
    assert_eq!(told(&links), [(Code::LinkDown, expected.to_owned())]);
    let mut fresh = Links::default();
    fresh.step(at(NOW - 44), &reports, &last_seen(NOW - 44, 0));
    assert_eq!(told(&fresh), [], "it may be over in a moment");
    links.step(at(NOW), &[report(1, 2, true)], &last_seen(NOW, NOW));
    assert_eq!(told(&links), [], "it is mended");
}

#[test]
fn snapshots_that_copies_lack_are_told() {
    let take = |view: &mut View, lacking: usize| {
        let disk = view.disks.get_mut(&DiskId(1)).unwrap();
        disk.snapshots.taken.push(crate::disk::Snapshot {
            number: 4,
            name: "monday".to_owned(),
            taken_ns: 1,
            size: disk.size,
            schedule: None,
            is_pinned: false,
        });
        disk.roster.members.iter_mut().take(lacking).for_each(|one| one.lacks.add(4));
    };
    let cause = "components of disk1 that were away, or were made later, do not have monday: at worst, 1 of 2 has one";
    check(Code::SnapshotsReduced, cause, |view| take(view, 1));
    check(Code::SnapshotsReduced, "some cannot be read as a whole", |view| take(view, 2));
}

/// The remedies of the finding of a code, where a cluster is broken.
fn remedies_of(code: Code, break_it: impl Fn(&mut View)) -> Vec<Remedy> {
    let mut view = well();
    break_it(&mut view);
    let found = find(&view, Directory::Reachable, &[NOW - 1000, NOW]);
    let one = found.iter().find(|one| one.code == code);
    remedies(&view, one.unwrap_or_else(|| panic!("{code} is missing in {found:#?}")))
}

#[test]
fn what_a_request_can_mend_is_offered_and_nothing_else() {
    let serviced = |view: &mut View| {
        let maintenance = Maintenance::On { mode: Mode::EnsureAccessibility, since: at(NOW - 60) };
        view.host_mut(2).maintenance = maintenance;
    };
    let name = well().host_name(HostId(2));
    assert_eq!(remedies_of(Code::HostMaintenance, serviced), [Remedy::EndMaintenance { host: name.clone() }]);
    let gone = |view: &mut View| {
        view.liveness.insert(HostId(2), away());
    };
    assert_eq!(remedies_of(Code::HostAway, gone), [Remedy::RemoveHost { host: name.clone() }]);
    let leaving = |view: &mut View| {
        let id = view.disk(1).layout.components().next().expect("it has one").1.device;
        let host = view.device(id).expect("it is there").0.id;
        let device = view.hosts.get_mut(&host).unwrap().devices.iter_mut().find(|one| one.id == id);
        device.unwrap().leaving = Some(crate::Leaving { since: at(NOW - 60), fault: None });
    };
    let offered = remedies_of(Code::DeviceLeaving, leaving);
    assert!(matches!(offered[..], [Remedy::Keep(_)]), "it is not empty yet: {offered:?}");
    let stale = |view: &mut View| view.stand(view.component_on(1, hosts_of(view, 1)[1]), Standing::Stale);
    let offered = remedies_of(Code::ComponentStale, stale);
    assert!(matches!(offered[..], [Remedy::Evacuate(_)]), "{offered:?}");
    // A device that failed is replaced by another one, which nobody can name for people.
    let failed = |view: &mut View| view.host_mut(2).devices[0].state = failed();
    assert_eq!(remedies_of(Code::DeviceFailed, failed), []);
}
