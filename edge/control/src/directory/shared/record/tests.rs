//! Records as they are stored: read back as they were, with everything that can stand in them.

use super::super::Entry;
use super::*;
use ::cluster::{
    Access, Claim, DeviceRecord, DeviceState, DiskRecord, DiskState, HostRecord, Incoming, Level, Limit,
    Maintenance, Mode, NodeRecord, Reason, StandIn,
};
use base::units::GIB;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, NodeId, WriteId};
use layout::{Component, Layout};
use placement::{Debt, Policy};
use replication::Together;
use replication::{Member, OwnedBy, Role, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// The level from which on all is there.
const NEWEST: Level = Level::LABELS;

fn node(host: u128) -> NodeId {
    NodeId { host: HostId(host), shard: 0 }
}

fn component(id: u64) -> Component {
    Component { id: ComponentId(id), device: DeviceId(u128::from(id) * 11), size: GIB, position: 0 }
}

fn member(id: u64, standing: Standing) -> Member {
    Member {
        component: ComponentId(id),
        node: node(u128::from(id)),
        place: 0,
        rows: None,
        standing,
        base: WriteId { epoch: 3, sequence: id },
        role: Role::Copy,
        ceiling: replication::Ceiling::Unknown,
        lacks: replication::Numbers::default(),
    }
}

/// A disk of two copies, of which the second is being replaced.
fn disk() -> ClusterDisk {
    let policy: Policy = "default,stripes=1,failures_to_tolerate=2".parse().expect("a policy");
    let layout = Layout::of_copies(vec![component(1), component(2)]);
    let members = vec![member(1, Standing::Active), member(2, Standing::Stale), member(3, Standing::Absent)];
    let owner = Some(OwnedBy { node: node(1), incarnation: 77 });
    let incoming = Incoming {
        place: 0,
        component: component(3),
        replaces: Some(ComponentId(2)),
        reason: Reason::Repair,
    };
    let debt = Debt { rule: "failures_to_tolerate", wanted: "2".to_owned(), got: "1".to_owned() };
    ClusterDisk {
        record: DiskRecord {
            version: 9,
            id: DiskId(5),
            name: "web".to_owned(),
            size: GIB,
            space_reservation: policy.space_reservation,
            policy,
            layout,
            read_only: false,
            access: Access {
                is_shared: true,
                limit: Some(Limit {
                    people: BTreeSet::from(["ann".to_owned()]),
                    hosts: BTreeSet::from([HostId(2)]),
                }),
            },
            state: DiskState::Active,
            roster: Roster { epoch: 4, owner, members, ..Roster::default() },
            incoming: vec![incoming],
            stand_ins: Vec::new(),
            growth: None,
            moving: None,
            surplus: None,
            follows: Some("gold".to_owned()),
            snapshots: ::cluster::Snapshots::default(),
            rollback: None,
            origin: None,
            clones: BTreeMap::new(),
            debts: vec![debt],
        },
        created: 1_700_000_000,
        maker: (HostId(1), 76),
        gone: BTreeSet::from([ComponentId(8)]),
        labels: BTreeMap::from([("team".to_owned(), "db".to_owned())]),
    }
}

fn stored(change: super::super::Change, version: u64) -> Entry {
    Entry { key: change.key, version, value: change.value.expect("it is set") }
}

#[test]
fn a_disk_is_read_as_it_was_written() {
    let disk = disk();
    let change = disk.change(8).expect("plain text");
    assert_eq!((change.key.clone(), change.expected), (ClusterDisk::key(DiskId(5)), 8));
    assert_eq!(ClusterDisk::read(&stored(change, 9)), Ok(disk.clone()));
    let shrunk = disk.with(DiskRecord { size: GIB / 2, surplus: Some(GIB), ..disk.record.clone() });
    assert_eq!(ClusterDisk::read(&stored(shrunk.change(8).expect("plain text"), 9)), Ok(shrunk));
}

#[test]
fn a_disk_that_moves_is_read_as_it_was_written_with_its_boundary() {
    let mut disk = disk();
    disk.record.incoming.clear();
    disk.record.roster.members.retain(|member| member.component != ComponentId(3));
    let value = disk.change(8).expect("plain text").value.expect("it is set").to_string();
    assert!(!value.contains("moving"), "as it was before there were any: {value}");
    let new = Layout::Component(Component { id: ComponentId(7), ..component(1) });
    disk.record.layout = disk.record.layout.clone().moving_to(new);
    disk.record.layout.set_boundary(64 << 20);
    let member = disk.record.roster.members[0].clone();
    disk.record.roster.members.push(Member { component: ComponentId(7), place: 1, ..member });
    disk.record.roster.moving = Some(replication::Moved { boundary: 64 << 20, trimmed: 32 << 20 });
    let error = ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)).expect_err("refused");
    assert!(error.contains("does not move"), "{error}");
    disk.record.moving = Some(::cluster::Moving {
        policy: "single,iops_limit=500".parse().unwrap_or_default(),
        space_reservation: placement::Percent::ZERO,
        debts: Vec::new(),
        is_back: true,
        is_paused: true,
        trimmed: 32 << 20,
        followed: Some("gold".to_owned()),
    });
    assert_eq!(ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)), Ok(disk.clone()));
}

#[test]
fn what_stands_in_is_read_as_it_was_written_and_a_record_without_it_has_none() {
    let mut disk = disk();
    let value = disk.change(8).expect("plain text").value.expect("it is set").to_string();
    assert!(
        !value.contains("\"role\"") && !value.contains("stand-in") && !value.contains("stand_in"),
        "as it was before there were any: {value}"
    );
    disk.record.roster.members[1].standing = Standing::Absent;
    disk.record.roster.members[2].role = Role::Heir { of: ComponentId(2) };
    assert_eq!(ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)), Ok(disk.clone()));
    disk.record.incoming.clear();
    let of = ComponentId(2);
    let member = &mut disk.record.roster.members[2];
    (member.standing, member.role) = (Standing::StandIn, Role::StandIn { of });
    let error = ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)).expect_err("refused");
    assert!(error.contains("does not name"), "{error}");
    disk.record.stand_ins.push(StandIn { place: 0, component: component(3), of });
    assert_eq!(ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)), Ok(disk.clone()));
    disk.record.stand_ins[0].of = ComponentId(1);
    let error = ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)).expect_err("refused");
    assert!(error.contains("stands in"), "{error}");
}

#[test]
fn a_disk_whose_parts_do_not_fit_together_is_refused() {
    let check = |change: &dyn Fn(&mut ClusterDisk), expected: &str| {
        let mut disk = disk();
        change(&mut disk);
        let error = ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)).expect_err("refused");
        assert!(error.contains(expected), "{error}");
    };
    check(&|disk| disk.record.size *= 2, "holds less than the disk");
    check(&|disk| disk.record.surplus = Some(GIB), "holds less than the disk");
    check(&|disk| disk.record.roster.members.truncate(2), "the roster does not name");
    check(&|disk| disk.record.incoming[0].component.device = DeviceId(11), "device");
    check(&|disk| disk.record.roster.members[0].standing = Standing::Absent, "too few components of place 0");
}

#[test]
fn a_host_is_read_as_it_was_written() {
    let device = |id: u128, state| DeviceRecord {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        group: GroupId(2),
        node: node(1),
        capacity_bytes: 100 * GIB,
        free_bytes: GIB,
        reserved_bytes: 1,
        component_count: 2,
        component_count_max: 3,
        state,
        leaving: None,
        spins: false,
    };
    let error = "write failed".to_owned();
    let devices = vec![
        device(1, DeviceState::InService),
        device(2, DeviceState::Away { since: Instant(5) }),
        device(3, DeviceState::Failed { since: Instant(6), error }),
    ];
    for maintenance in [
        Maintenance::Off,
        Maintenance::Entering { mode: Mode::FullEvacuation, since: Instant(7) },
        Maintenance::On { mode: Mode::EnsureAccessibility, since: Instant(8) },
        Maintenance::On { mode: Mode::NoAction, since: Instant(8) },
    ] {
        let peer_addresses = vec!["127.0.0.1:7001".to_owned()];
        let host = ClusterHost {
            record: HostRecord {
                id: HostId(1),
                name: "a".to_owned(),
                nodes: vec![NodeRecord { id: node(1), peer_addresses, incarnation: 12 }],
                api_address: "unix:/a".to_owned(),
                fault_domain: Some("rack1".to_owned()),
                maintenance,
                devices: devices.clone(),
                release: "1.0.0".to_owned(),
                clock_ahead_ns: 0,
                data_trouble: Vec::new(),
                reports: ::cluster::DeviceReports::default(),
                last_seen: Instant(0),
            },
            api: vec!["unix:/a".to_owned(), "http://127.0.0.1:1".to_owned()],
            nbd: vec!["unix:/n".to_owned()],
            nbd_tls: true,
            certificate: Some(HostCertificate {
                authority: "ab".to_owned(),
                issued_ns: 5,
                expires_ns: 6,
                believes: vec!["ab".to_owned(), "cd".to_owned()],
            }),
            member: Some("https://10.0.0.1:2380".to_owned()),
            level: Level::FIRST,
        };
        let written = stored(host.change(0).expect("plain text"), 1);
        assert_eq!(written.value.get("level"), None, "level 1 knows nothing of levels");
        assert_eq!(ClusterHost::read(&written), Ok(host));
        let mut later = written;
        later.value["of a later level"] = serde_json::json!(1);
        let why = ClusterHost::read(&later).expect_err("it may mean something");
        for part in ["hosts/", "unknown field `of a later level`", api::program::RELEASE, &OURS.to_string()] {
            assert!(why.contains(part), "{part} is not in {why}");
        }
    }
}

/// What a program of a level wrote is read by one of the next, which marks what it writes once the cluster is there; and what
/// has that mark is refused by one of the level before.
#[test]
fn a_host_is_read_at_each_level_that_is_understood_and_at_no_other() {
    let record = |level: Option<u16>| {
        let mut value = serde_json::json!({
            "id": HostId(1).to_string(), "name": "a", "version": "0.1.0", "incarnation": 3, "peers": "127.0.0.1:1",
            "api": [], "nbd": [], "nbd_tls": false, "fault_domain": null, "devices": [],
        });
        if let Some(level) = level {
            value["level"] = level.into();
        }
        Entry { key: ClusterHost::key(HostId(1)), version: 1, value }
    };
    assert_eq!(ClusterHost::read(&record(None)).map(|host| host.level), Ok(Level::FIRST));
    let highest = OURS.highest();
    match (cfg!(feature = "next-level"), ClusterHost::read(&record(Some(highest.number())))) {
        (true, Ok(host)) => {
            assert_eq!(host.level, highest);
            let written = stored(host.change(1).expect("plain text"), 2);
            assert_eq!(written.value["level"], highest.number(), "it keeps its level");
        }
        (false, Err(why)) => assert!(why.contains("unknown field `level`"), "{why}"),
        (_, other) => panic!("{other:?}"),
    }
}

#[test]
fn settings_have_defaults_and_unknown_ones_are_refused() {
    let entry = |value| Entry { key: SETTINGS.to_owned(), version: 1, value };
    assert_eq!(ClusterSettings::read(&entry(serde_json::json!({}))), Ok(ClusterSettings::default()));
    let settings = ClusterSettings {
        repair_delay_seconds: 5,
        balance: api::types::BalanceMode::Off,
        ..ClusterSettings::default()
    };
    assert_eq!(ClusterSettings::read(&stored(settings.change(0).expect("plain text"), 1)), Ok(settings));
    assert!(ClusterSettings::read(&entry(serde_json::json!({ "speed": 1 }))).is_err());
}

#[test]
fn silences_are_read_back_and_end_and_codes_of_later_releases_are_left_alone() {
    let silence = |code: &str, about: Option<&str>, until_ns| StoredSilence {
        code: code.to_owned(),
        about: about.map(str::to_owned),
        since_ns: 1,
        until_ns,
        who: "operator ann".to_owned(),
        reason: None,
    };
    let all = Silences {
        silences: vec![silence("host.away", Some("host b"), 100), silence("host.on_fire", None, 200)],
    };
    let change = all.change(3).expect("plain data");
    assert_eq!((change.key.as_str(), change.expected), (SILENCES, 3));
    let entry = Entry { key: change.key, version: 4, value: change.value.expect("it is set") };
    assert_eq!(Silences::read(&entry), Ok(all.clone()));
    assert_eq!((all.at(99).count(), all.at(100).count(), all.at(200).count()), (2, 1, 0));
    assert_eq!(all.silences[0].silence().and_then(|one| one.about).as_deref(), Some("host b"));
    assert_eq!(all.silences[1].silence(), None);
}

#[test]
fn where_a_disk_is_attached_reads_back_and_a_record_of_nobody_is_refused() {
    let claims = vec![Claim { host: HostId(2), incarnation: 7 }, Claim { host: HostId(3), incarnation: 9 }];
    let change = Attached::default().change(DiskId(5), &claims).expect("plain text");
    assert_eq!((change.key.as_str(), change.expected), (Attached::key(DiskId(5)).as_str(), 0));
    let entry = Entry { key: change.key, version: 4, value: change.value.expect("a record") };
    let (disk, attached) = Attached::read(&entry).expect("it reads back");
    assert_eq!((disk, &attached), (DiskId(5), &Attached { version: 4, claims, handover: None }));
    // At the level before there is no handover, and a record without one is the same as ever.
    assert!(!entry.value.to_string().contains("handover"), "{}", entry.value);
    let handover = Some(::cluster::Handover { to: HostId(3), until: base::Instant(77) });
    let handed = Attached { handover, ..attached.clone() };
    let change = handed.change(DiskId(5), &handed.claims).expect("plain text");
    let read = Attached::read(&Entry { key: change.key, version: 5, value: change.value.expect("a record") });
    assert_eq!(read, Ok((DiskId(5), Attached { version: 5, ..handed.clone() })));
    let alone = handed.change(DiskId(5), &handed.claims[1..]).expect("plain text").value.expect("a record");
    assert!(!alone.to_string().contains("handover"), "it ended with the host before: {alone}");
    let gone = attached.change(DiskId(5), &[]).expect("plain text");
    assert_eq!((gone.expected, gone.value), (4, None));
    let nobody = Entry { value: serde_json::json!({ "hosts": [] }), ..entry };
    assert!(Attached::read(&nobody).is_err());
}

/// A host of level 2 refuses fields and rules that it does not know.
/// A number that a component lacks twice made a record that nobody could read.
#[test]
fn snapshots_are_read_as_they_were_written() {
    let mut disk = disk();
    disk.record.incoming.clear();
    disk.record.roster.members.retain(|member| member.component != ComponentId(3));
    let plain = disk.change(8).expect("plain text").value.expect("it is set").to_string();
    assert!(!plain.contains("snapshots") && !plain.contains("lacks"), "as at level 3: {plain}");
    let mut record = disk.record.ask_snapshot("monday", NEWEST).expect("it can have one").record;
    record.roster.members[1].lacks = replication::Numbers::through(record.roster.snapshots.last);
    let mut roster = record.roster.clone();
    roster.snapshots = replication::Snapshots { last: 1, taken: vec![1], ..Default::default() };
    roster.members[1].lacks.add(1);
    disk.record = record.with_roster(&roster, 1_700_000_000_000_000_000).expect("it is taken").record;
    disk.record.version = 9;
    let read = |disk: &ClusterDisk| ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9));
    assert_eq!(read(&disk), Ok(disk.clone()));
    // With a schedule: one is asked for, one was taken, one is pinned.
    let text = disk.change(8).expect("plain text").value.expect("it is set").to_string();
    assert!(!["asked_for", "served", "schedule", "pinned"].iter().any(|new| text.contains(new)), "{text}");
    disk.record.policy.set("snapshots", "every 15m keep 8, daily keep 7").expect("a schedule");
    let every = placement::Every::minutes(15).expect("it divides a day");
    disk.record.snapshots.taken[0].schedule = Some(every);
    disk.record.snapshots.taken[0].is_pinned = true;
    disk.record.snapshots.served.insert(every, 1_795_935_600);
    let now = 1_795_936_500;
    disk.record = disk
        .record
        .ask_scheduled("daily-2026-11-29T07-15Z", (placement::Every::Day, now), NEWEST)
        .expect("due")
        .record;
    disk.record.version = 9;
    assert!(disk.record.snapshots.asked_for.is_some());
    assert_eq!(read(&disk), Ok(disk.clone()));
    for said in [Together::Hold, Together::Held, Together::Mark, Together::Marked] {
        disk.record.roster.snapshots.together = Some(said);
        assert_eq!(read(&disk), Ok(disk.clone()));
    }
    let mut odd = stored(disk.change(8).expect("plain text"), 9);
    odd.value["snapshots"]["taken"][0]["schedule"] = serde_json::json!("every-7m");
    let why = ClusterDisk::read(&odd).expect_err("no such schedule");
    assert!(why.contains("`every-7m` is no schedule"), "{why}");
}

#[test]
fn a_disk_that_has_nothing_of_level_3_is_written_as_at_level_2() {
    let text = |disk: &ClusterDisk| disk.change(8).expect("plain text").value.expect("it is set").to_string();
    let former = |disk: &ClusterDisk| {
        !["follows", "bytes_limit", "read_locality=auto"].iter().any(|new| text(disk).contains(new))
    };
    let mut disk = disk();
    disk.record.follows = None;
    disk.record.policy = "single,read_locality=spread".parse().expect("a policy");
    assert!(former(&disk), "{}", text(&disk));
    for (rules, follows) in [
        ("single,read_locality=spread", Some("gold")),
        ("single,read_locality=spread,bytes_limit=1MiB/s", None),
        ("single", None),
    ] {
        disk.record.policy = rules.parse().expect("a policy");
        disk.record.follows = follows.map(str::to_owned);
        assert!(!former(&disk), "{rules}");
        let read = ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9));
        let read = read.expect("it makes sense").record;
        assert_eq!((read.policy, read.follows), (disk.record.policy, disk.record.follows.clone()));
    }
}

#[test]
fn a_disk_that_is_rolled_back_is_read_as_it_was_written() {
    let mut disk = disk();
    let plain = disk.change(8).expect("plain text").value.expect("it is set").to_string();
    assert!(!plain.contains("rollback"), "as it was before there were any: {plain}");
    for (number, name) in [(3, "monday"), (4, "before")] {
        let one = ::cluster::Snapshot {
            number,
            name: name.to_owned(),
            size: GIB,
            taken_ns: 7,
            schedule: None,
            is_pinned: false,
        };
        disk.record.snapshots.taken.push(one);
        disk.record.roster.snapshots.taken.push(number);
        disk.record.roster.snapshots.last = number;
    }
    let claim = ::cluster::Claim { host: HostId(2), incarnation: 77 };
    for (keeps, by) in [(true, Some(claim)), (false, None)] {
        let rollback = ::cluster::Rollback { to: 3, since: 4, before: 4, keeps, is_shared: keeps, by };
        disk.record.rollback = Some(rollback);
        assert_eq!(ClusterDisk::read(&stored(disk.change(8).expect("plain text"), 9)), Ok(disk.clone()));
    }
}
