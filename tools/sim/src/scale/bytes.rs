//! The bytes of records and heartbeats as the server writes them (`docs/formats/directory.md`).
//!
//! The server's forms are JSON made by serde; here the same text is put together by hand, because core has no JSON and the
//! simulator knows nothing of the edge. The tests hold it against texts that the server's own forms gave. Names have no
//! characters that JSON would write otherwise.

use cluster::{
    DeviceRecord, DeviceState, DiskRecord, DiskState, HostRecord, Incoming, Maintenance, Reason, StandIn,
};
use placement::Debt;
use replication::owner::{MemberState, OwnerState, Phase};
use replication::{Member, Role, Roster, Standing};
use std::fmt::{Display, Write};

/// Where keys begin in etcd unless a configuration says otherwise.
const PREFIX: &str = "/drystone/";

/// Bytes of a disk's key and record, made by `maker` in its start of that number.
pub(super) fn of_disk(disk: &DiskRecord, maker: &HostRecord) -> u64 {
    (key("disks/", &disk.id) + disk_text(disk, maker).len()) as u64
}

/// Bytes of the record of a disk's name.
pub(super) fn of_name(disk: &DiskRecord) -> u64 {
    (key("names/", &disk.name) + quoted(&disk.id).len()) as u64
}

/// Bytes of a host's key and record.
pub(super) fn of_host(host: &HostRecord) -> u64 {
    (key("hosts/", &host.id) + host_text(host).len()) as u64
}

/// Bytes of the cluster's clock.
pub(super) fn of_clock(now_ns: u64) -> u64 {
    ("/drystone.present/clock".len() + now_ns.to_string().len()) as u64
}

/// Bytes of a heartbeat's key and value.
pub(super) fn of_beat(
    host: base::HostId,
    links: &[(base::HostId, bool)],
    owned: &[(base::DiskId, OwnerState)],
) -> u64 {
    let key = "/drystone.present/members/".len() + host.to_string().len();
    (key + beat_text(host, links, owned).len()) as u64
}

fn key(kind: &str, id: &impl Display) -> usize {
    PREFIX.len() + kind.len() + id.to_string().len()
}

fn quoted(text: &impl Display) -> String {
    format!("\"{text}\"")
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(text).collect();
    format!("[{}]", items.join(","))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

fn disk_text(disk: &DiskRecord, maker: &HostRecord) -> String {
    let incarnation = maker.nodes.first().map_or(0, |node| node.incarnation);
    let mut text = format!("{{\"created\":{}", 1_700_000_000);
    if !disk.debts.is_empty() {
        write!(text, ",\"debts\":{}", list(&disk.debts, debt_text)).expect("a string takes everything");
    }
    if !disk.incoming.is_empty() {
        write!(text, ",\"incoming\":{}", list(&disk.incoming, incoming_text))
            .expect("a string takes everything");
    }
    let state = match disk.state {
        DiskState::Creating => "creating",
        DiskState::Active => "active",
        DiskState::Deleting => "deleting",
    };
    write!(
        text,
        ",\"maker\":[\"{}\",{incarnation}],\"record\":{},\"roster\":{}",
        maker.id,
        engine_text(disk),
        roster_text(&disk.roster)
    )
    .expect("a string takes everything");
    if !disk.stand_ins.is_empty() {
        write!(text, ",\"stand_ins\":{}", list(&disk.stand_ins, stand_in_text))
            .expect("a string takes everything");
    }
    text + &format!(",\"state\":\"{state}\"}}")
}

/// What an engine is told of a disk.
fn engine_text(disk: &DiskRecord) -> String {
    let less = disk.space_reservation != disk.policy.space_reservation;
    let reservation =
        if less { format!(",\"space_reservation\":{}", disk.space_reservation.get()) } else { String::new() };
    format!(
        "{{\"epoch\":0,\"id\":\"{}\",\"layout\":\"{}\",\"name\":\"{}\",\"policy\":\"{}\",\"read_only\":{},\"size\":{}{reservation}}}",
        disk.id,
        hexadecimal(&disk.layout.encode()),
        disk.name,
        disk.policy,
        disk.read_only,
        disk.size
    )
}

fn roster_text(roster: &Roster) -> String {
    let owner = roster.owner.map_or("null".to_owned(), |owner| {
        let (host, shard) = (owner.node.host, owner.node.shard);
        format!("{{\"host\":\"{host}\",\"incarnation\":{},\"shard\":{shard}}}", owner.incarnation)
    });
    let members = list(&roster.members, member_text);
    format!("{{\"epoch\":{},\"members\":{members},\"owner\":{owner}}}", roster.epoch)
}

fn member_text(member: &Member) -> String {
    let standing = match member.standing {
        Standing::Active => "active",
        Standing::Absent => "absent",
        Standing::Stale => "stale",
        Standing::StandIn => "stand-in",
    };
    let role = match member.role {
        Role::Copy => String::new(),
        Role::StandIn { of } => format!("\"role\":{{\"stand-in-for\":\"{of}\"}},"),
        Role::Heir { of } => format!("\"role\":{{\"heir-of\":\"{of}\"}},"),
    };
    format!(
        "{{\"base\":[{},{}],\"component\":\"{}\",\"host\":\"{}\",\"place\":{},{role}\"shard\":{},\"standing\":\"{standing}\"}}",
        member.base.epoch,
        member.base.sequence,
        member.component,
        member.node.host,
        member.place,
        member.node.shard
    )
}

fn incoming_text(one: &Incoming) -> String {
    let reason = match one.reason {
        Reason::Repair => "repair",
        Reason::Evacuation => "evacuation",
        Reason::Balance => "balance",
        Reason::Policy => "policy",
    };
    let component = one.component;
    format!(
        "{{\"component\":\"{}\",\"device\":\"{}\",\"place\":{},\"reason\":\"{reason}\",\"replaces\":{},\"size\":{}}}",
        component.id,
        component.device,
        one.place,
        one.replaces.map_or("null".to_owned(), |id| quoted(&id)),
        component.size
    )
}

fn stand_in_text(one: &StandIn) -> String {
    let component = one.component;
    format!(
        "{{\"component\":\"{}\",\"device\":\"{}\",\"of\":\"{}\",\"place\":{},\"size\":{}}}",
        component.id, component.device, one.of, one.place, component.size
    )
}

fn debt_text(debt: &Debt) -> String {
    format!("{{\"got\":\"{}\",\"rule\":\"{}\",\"wanted\":\"{}\"}}", debt.got, debt.rule, debt.wanted)
}

/// A host with one node, without a certificate and not in maintenance.
fn host_text(host: &HostRecord) -> String {
    assert!(host.maintenance == Maintenance::Off && host.nodes.len() == 1, "no other is simulated here");
    let domain = host.fault_domain.as_ref().map_or("null".to_owned(), quoted);
    let node = &host.nodes[0];
    format!(
        "{{\"api\":[\"{}\"],\"devices\":{},\"fault_domain\":{domain},\"id\":\"{}\",\"incarnation\":{},\"name\":\"{}\",\"nbd\":[],\"nbd_tls\":false,\"peers\":\"{}\",\"version\":\"{}\"}}",
        host.api_address,
        list(&host.devices, device_text),
        host.id,
        node.incarnation,
        host.name,
        node.peer_addresses[0],
        host.release
    )
}

fn device_text(device: &DeviceRecord) -> String {
    assert!(device.state == DeviceState::InService, "no device fails here");
    format!(
        "{{\"capacity_bytes\":{},\"component_count\":{},\"component_count_max\":{},\"free_bytes\":{},\"group\":\"{}\",\"id\":\"{}\",\"path\":\"{}\",\"reserved_bytes\":{}}}",
        device.capacity_bytes,
        device.component_count,
        device.component_count_max,
        device.free_bytes,
        device.group,
        device.id,
        device.name,
        device.reserved_bytes
    )
}

/// In the order of the fields: a heartbeat is written as it is declared, not by name.
fn beat_text(
    host: base::HostId,
    links: &[(base::HostId, bool)],
    owned: &[(base::DiskId, OwnerState)],
) -> String {
    let links: Vec<String> = links.iter().map(|(id, is_up)| format!("\"{id}\":{is_up}")).collect();
    format!(
        "{{\"host\":\"{host}\",\"links\":{{{}}},\"clock_ahead_ns\":0,\"owned\":{}}}",
        links.join(","),
        list(owned, owned_text)
    )
}

fn owned_text((disk, owner): &(base::DiskId, OwnerState)) -> String {
    let phase = match owner.phase {
        Phase::Claiming => "claiming",
        Phase::Opening => "opening",
        Phase::Serving => "serving",
        Phase::Releasing => "releasing",
        Phase::Ended => "ended",
    };
    format!(
        "{{\"disk\":\"{disk}\",\"phase\":\"{phase}\",\"epoch\":{},\"waits_for_directory\":{},\"copied_bytes\":{},\"repaired_blocks\":{},\"members\":{}}}",
        owner.epoch,
        owner.waits_for_directory,
        owner.copied_bytes,
        owner.repaired_blocks,
        list(&owner.members, told_text)
    )
}

fn told_text(member: &MemberState) -> String {
    let resync = member.resync.map_or("null".to_owned(), |(copied, left)| {
        format!(
            "{{\"copied_bytes\":{copied},\"remaining_bytes\":{left},\"bytes_per_second\":null,\"seconds_left\":null}}"
        )
    });
    let trouble = member.trouble.map_or("null".to_owned(), |why| quoted(&why));
    format!(
        "{{\"component\":\"{}\",\"is_open\":{},\"resync\":{resync},\"trouble\":{trouble}}}",
        member.component, member.is_open
    )
}

#[cfg(test)]
mod tests;
