//! Held against texts that the server's own forms gave: a line each in `server.txt`.

use super::*;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, NodeId, WriteId};
use cluster::NodeRecord;
use layout::{Component, Layout};
use placement::{Percent, Policy};
use replication::OwnedBy;
use replication::owner::LeftBecause;

fn node(h: u128) -> NodeId {
    NodeId { host: HostId(h), shard: 0 }
}
fn host() -> HostRecord {
    let device = |id: u128| DeviceRecord {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        group: GroupId(2),
        node: node(1),
        capacity_bytes: 8 << 40,
        free_bytes: 5 << 30,
        reserved_bytes: 1,
        component_count: 2,
        component_count_max: 4096,
        state: DeviceState::InService,
        leaving: None,
        spins: false,
    };
    HostRecord {
        id: HostId(1),
        name: "host001".into(),
        nodes: vec![NodeRecord {
            id: node(1),
            peer_addresses: vec!["10.0.0.1:7001".into()],
            incarnation: 12,
        }],
        api_address: "https://10.0.0.1:7000".into(),
        fault_domain: None,
        maintenance: Maintenance::Off,
        devices: vec![device(1), device(2)],
        release: "0.1.0".into(),
        clock_ahead_ns: 0,
        data_trouble: Vec::new(),
        reports: cluster::DeviceReports::default(),
        last_seen: Instant(0),
    }
}
fn disk() -> DiskRecord {
    let component = |id: u64| Component {
        id: ComponentId(id),
        device: DeviceId(u128::from(id) * 11),
        size: 1 << 30,
        position: 0,
    };
    let member = |id: u64, standing, role| Member {
        component: ComponentId(id),
        node: node(u128::from(id)),
        place: 0,
        rows: None,
        standing,
        base: WriteId { epoch: 3, sequence: id },
        role,
        ceiling: replication::Ceiling::Unknown,
        lacks: Default::default(),
    };
    let policy: Policy = "default,stripes=1,failures_to_tolerate=2".parse().unwrap();
    DiskRecord {
        version: 9,
        id: DiskId(5),
        name: "web".into(),
        size: 1 << 30,
        space_reservation: Percent::ZERO,
        policy,
        layout: Layout::of_copies(vec![component(1), component(2), component(6)]),
        read_only: false,
        access: cluster::Access::default(),
        state: DiskState::Active,
        roster: Roster {
            epoch: 4,
            owner: Some(OwnedBy { node: node(1), incarnation: 77 }),
            members: vec![
                member(1, Standing::Active, Role::Copy),
                member(2, Standing::Stale, Role::Copy),
                member(6, Standing::Absent, Role::Copy),
                member(3, Standing::Absent, Role::Heir { of: ComponentId(2) }),
                member(4, Standing::StandIn, Role::StandIn { of: ComponentId(6) }),
            ],
            ..Roster::default()
        },
        incoming: vec![Incoming {
            place: 0,
            component: component(3),
            replaces: Some(ComponentId(2)),
            reason: Reason::Repair,
        }],
        stand_ins: vec![StandIn { place: 0, component: component(4), of: ComponentId(6) }],
        growth: None,
        moving: None,
        surplus: None,
        follows: None,
        snapshots: Default::default(),
        rollback: None,
        origin: None,
        clones: Default::default(),
        debts: vec![Debt { rule: "failures_to_tolerate", wanted: "2".into(), got: "1".into() }],
    }
}
fn owner() -> OwnerState {
    let m = |id: u64, resync, trouble, is_open| MemberState {
        component: ComponentId(id),
        node: node(1),
        place: 0,
        standing: Standing::Active,
        role: Role::Copy,
        is_open,
        is_passed_over: false,
        read_time: std::time::Duration::ZERO,
        resync,
        looked_through: None,
        trouble,
        retry_in: None,
    };
    OwnerState {
        phase: Phase::Serving,
        epoch: 4,
        members: vec![
            m(1, None, None, true),
            m(2, None, Some(LeftBecause::Unreachable), false),
            m(3, Some((5, 6)), None, true),
        ],
        waits_for_directory: false,
        copied_bytes: 7,
        repaired_blocks: 0,
        held_blocks: 0,
        folded_blocks: 0,
        row_checks: Default::default(),
    }
}

#[test]
fn records_and_heartbeats_have_the_bytes_that_the_server_writes() {
    let mut plain = disk();
    plain.debts.clear();
    plain.incoming.clear();
    plain.stand_ins.clear();
    plain.roster.members.truncate(3);
    plain.roster.owner = None;
    let links = [(HostId(2), true), (HostId(3), false)];
    let ours = [
        disk_text(&disk(), &host()),
        disk_text(&plain, &host()),
        host_text(&host()),
        beat_text(HostId(1), &links, &[(DiskId(5), owner())]),
    ];
    let servers: Vec<&str> = include_str!("server.txt").lines().collect();
    assert_eq!(ours.iter().map(String::as_str).collect::<Vec<_>>(), servers);
}
