//! A disk of the cluster.

use super::super::super::record::{StoredRecord, from_hex, to_hex};
use super::super::super::{DiskEntry, State};
use super::super::{Change, Entry};
use super::level::unread;
use super::rollback::StoredRollback;
use super::snapshots::{StoredSnapshots, lacks};
use super::{DISKS, NAMES, parsed, read};
use ::cluster::{Access, DiskRecord, DiskState, Growth, Incoming, Limit, Moving, Reason, StandIn};
use base::{ComponentId, DiskId, HostId, NodeId, WriteId};
use engine::{Course, DiskRecord as EngineRecord};
use failure::Failure;
use layout::{Component, Layout};
use placement::{Debt, Percent, RULES};
use replication::{Ceiling, Member, Origin, OwnedBy, Role, Roster, Standing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A disk of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterDisk {
    /// The disk; its version is that of the record in the directory.
    pub record: DiskRecord,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The host that made it, and in which of its starts: a creation that was cut short is its to undo.
    pub maker: (HostId, u64),
    /// Of a disk that goes: components that are deleted, or stand on hosts that never come back.
    pub gone: BTreeSet<ComponentId>,
    /// What people and programs say of it, by key. From level 6 on.
    pub labels: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDisk {
    state: State,
    record: StoredRecord,
    created: u64,
    maker: (String, u64),
    #[serde(default, skip_serializing_if = "is_false")]
    share: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowed: Option<StoredLimit>,
    roster: StoredRoster,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    incoming: Vec<StoredIncoming>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stand_ins: Vec<StoredStandIn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    growth: Option<StoredGrowth>,
    /// From level 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving: Option<StoredMoving>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    surplus: Option<u64>,
    /// The named policy that it follows, from level 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<String>,
    /// From level 4 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshots: Option<StoredSnapshots>,
    /// From level 4 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollback: Option<StoredRollback>,
    /// What it is a clone of, from level 4 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<StoredOrigin>,
    /// Disks that are clones of its snapshots, by number, from level 4 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clones: Vec<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    debts: Vec<StoredDebt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    /// From level 6 on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

/// The only ones who may attach.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLimit {
    people: Vec<String>,
    hosts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRoster {
    epoch: u32,
    owner: Option<StoredOwner>,
    members: Vec<StoredMember>,
    /// From level 3 on.
    #[serde(default, skip_serializing_if = "is_zero")]
    shape: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOwner {
    host: String,
    shard: u8,
    incarnation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMember {
    component: String,
    host: String,
    shard: u8,
    place: u16,
    standing: StoredStanding,
    base: (u32, u64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<StoredRole>,
    /// From level 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ceiling: Option<StoredCeiling>,
    /// Ranges of snapshots that it lacks, from level 4 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<(u32, u32)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(position: &u8) -> bool {
    *position == 0
}

/// What a member may know at most that does not count.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredCeiling {
    At(u32, u64),
    Passed,
}

/// What a member is there for, other than to be a copy.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredRole {
    StandInFor(String),
    HeirOf(String),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredStanding {
    Active,
    Absent,
    Stale,
    StandIn,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredIncoming {
    place: u16,
    component: String,
    device: String,
    size: u64,
    /// From level 3 on, of disks with parity.
    #[serde(default, skip_serializing_if = "is_first")]
    position: u8,
    replaces: Option<String>,
    reason: StoredReason,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredStandIn {
    place: u16,
    component: String,
    device: String,
    size: u64,
    /// From level 3 on, of disks with parity.
    #[serde(default, skip_serializing_if = "is_first")]
    position: u8,
    of: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredReason {
    Repair,
    Evacuation,
    Balance,
    Policy,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredGrowth {
    size: u64,
    layout: String,
    nodes: Vec<(String, String, u8)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDebt {
    rule: String,
    wanted: String,
    got: String,
}

/// The disk as an engine takes it.
pub fn engine_record(record: &DiskRecord) -> EngineRecord {
    EngineRecord {
        id: record.id,
        name: record.name.clone(),
        size: record.size,
        policy: record.policy,
        space_reservation: record.space_reservation,
        layout: record.layout.clone(),
        epoch: record.roster.epoch,
        read_only: record.read_only,
        access: record.access.clone(),
        spins: false,
        shape: record.roster.shape,
        snapshots: record.snapshots.taken.clone(),
        origin: record.origin,
        course: record.moving.as_ref().map_or(Course::default(), |moving| Course {
            is_back: moving.is_back,
            is_paused: moving.is_paused,
        }),
    }
}

impl ClusterDisk {
    /// The key of its record.
    pub fn key(id: DiskId) -> String {
        format!("{DISKS}{id}")
    }

    /// The key of a disk's name.
    pub fn name_key(name: &str) -> String {
        format!("{NAMES}{name}")
    }

    /// The disk in the form of a single host's directory.
    pub fn entry(&self) -> DiskEntry {
        DiskEntry {
            version: self.record.version,
            state: state_of(self.record.state),
            record: engine_record(&self.record),
            created: self.created,
            labels: self.labels.clone(),
        }
    }

    /// The same with what a transition made of it.
    pub fn with(&self, record: DiskRecord) -> ClusterDisk {
        ClusterDisk { record, ..self.clone() }
    }

    /// Its components that are still to be deleted before a disk that goes is gone.
    pub fn deletions_left(&self) -> Vec<(NodeId, ComponentId)> {
        self.record.deletions().into_iter().filter(|(_, id)| !self.gone.contains(id)).collect()
    }

    /// The record as it is stored.
    fn value(&self) -> Result<Value, serde_json::Error> {
        let record = EngineRecord { epoch: 0, ..engine_record(&self.record) };
        serde_json::to_value(StoredDisk {
            state: state_of(self.record.state),
            record: StoredRecord::from(&record),
            created: self.created,
            maker: (self.maker.0.to_string(), self.maker.1),
            share: self.record.access.is_shared,
            allowed: self.record.access.limit.as_ref().map(StoredLimit::from),
            roster: StoredRoster::from(&self.record.roster),
            incoming: self.record.incoming.iter().map(StoredIncoming::from).collect(),
            stand_ins: self.record.stand_ins.iter().map(StoredStandIn::from).collect(),
            growth: self.record.growth.as_ref().map(StoredGrowth::from),
            moving: self.record.moving.as_ref().map(StoredMoving::from),
            surplus: self.record.surplus,
            follows: self.record.follows.clone(),
            snapshots: StoredSnapshots::of(&self.record.roster.snapshots, &self.record.snapshots),
            rollback: self.record.rollback.map(StoredRollback::from),
            origin: self.record.origin.map(StoredOrigin::from),
            clones: self.record.clones.iter().map(|(number, count)| (*number, *count)).collect(),
            debts: self.record.debts.iter().map(StoredDebt::from).collect(),
            gone: self.gone.iter().map(ToString::to_string).collect(),
            labels: self.labels.clone(),
        })
    }

    /// The change that makes this the record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        let key = ClusterDisk::key(self.record.id);
        let value = self.value().map_err(|error| Failure::failed("write a record", error))?;
        Ok(Change { key, expected, value: Some(value) })
    }

    /// The disk that a record tells of.
    ///
    /// # Errors
    /// When it makes no sense, or its parts do not fit together.
    pub fn read(entry: &Entry) -> Result<ClusterDisk, String> {
        let stored: StoredDisk = read(entry)?;
        let mut disk = stored.disk(entry.version).map_err(|error| unread(&entry.key, error))?;
        disk.record.note_rows();
        disk.record.check().map_err(|error| unread(&entry.key, error))?;
        Ok(disk)
    }
}

impl StoredDisk {
    fn disk(self, version: u64) -> Result<ClusterDisk, String> {
        let record = EngineRecord::try_from(self.record)?;
        let ids = self.gone.iter().map(|id| parsed(id));
        let (numbers, snapshots) = self.snapshots.map(StoredSnapshots::told).transpose()?.unwrap_or_default();
        Ok(ClusterDisk {
            record: DiskRecord {
                version,
                id: record.id,
                name: record.name,
                size: record.size,
                policy: record.policy,
                space_reservation: record.space_reservation,
                layout: record.layout,
                read_only: record.read_only,
                access: Access {
                    is_shared: self.share,
                    limit: self.allowed.map(StoredLimit::limit).transpose()?,
                },
                state: match self.state {
                    State::Creating => DiskState::Creating,
                    State::Active => DiskState::Active,
                    State::Deleting => DiskState::Deleting,
                },
                roster: replication::Roster { snapshots: numbers, ..self.roster.roster()? },
                snapshots,
                rollback: self.rollback.map(StoredRollback::rollback).transpose()?,
                origin: self.origin.map(StoredOrigin::origin).transpose()?,
                clones: self.clones.into_iter().collect(),
                incoming: self
                    .incoming
                    .into_iter()
                    .map(StoredIncoming::incoming)
                    .collect::<Result<_, _>>()?,
                stand_ins: self
                    .stand_ins
                    .into_iter()
                    .map(StoredStandIn::stand_in)
                    .collect::<Result<_, _>>()?,
                growth: self.growth.map(StoredGrowth::growth).transpose()?,
                moving: self.moving.map(StoredMoving::moving).transpose()?,
                surplus: self.surplus,
                follows: self.follows,
                debts: self.debts.into_iter().map(StoredDebt::debt).collect::<Result<_, _>>()?,
            },
            created: self.created,
            maker: (parsed(&self.maker.0)?, self.maker.1),
            gone: ids.collect::<Result<_, _>>()?,
            labels: self.labels,
        })
    }
}

/// What a disk is a clone of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOrigin {
    disk: String,
    snapshot: u32,
    size: u64,
}

impl From<Origin> for StoredOrigin {
    fn from(Origin { disk, snapshot, size }: Origin) -> StoredOrigin {
        StoredOrigin { disk: disk.to_string(), snapshot, size }
    }
}

impl StoredOrigin {
    fn origin(self) -> Result<Origin, String> {
        Ok(Origin { disk: parsed(&self.disk)?, snapshot: self.snapshot, size: self.size })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(shape: &u32) -> bool {
    *shape == 0
}

/// For serde: what is so of most disks is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

impl From<&Limit> for StoredLimit {
    fn from(limit: &Limit) -> StoredLimit {
        StoredLimit {
            people: limit.people.iter().cloned().collect(),
            hosts: limit.hosts.iter().map(ToString::to_string).collect(),
        }
    }
}

impl StoredLimit {
    fn limit(self) -> Result<Limit, String> {
        let hosts = self.hosts.iter().map(|id| parsed(id));
        Ok(Limit { people: self.people.into_iter().collect(), hosts: hosts.collect::<Result<_, _>>()? })
    }
}

fn state_of(state: DiskState) -> State {
    match state {
        DiskState::Creating => State::Creating,
        DiskState::Active => State::Active,
        DiskState::Deleting => State::Deleting,
    }
}

impl From<&Roster> for StoredRoster {
    fn from(roster: &Roster) -> StoredRoster {
        let member = |member: &Member| StoredMember {
            component: member.component.to_string(),
            host: member.node.host.to_string(),
            shard: member.node.shard,
            place: member.place,
            standing: match member.standing {
                Standing::Active => StoredStanding::Active,
                Standing::Absent => StoredStanding::Absent,
                Standing::Stale => StoredStanding::Stale,
                Standing::StandIn => StoredStanding::StandIn,
            },
            base: (member.base.epoch, member.base.sequence),
            role: match member.role {
                Role::Copy => None,
                Role::StandIn { of } => Some(StoredRole::StandInFor(of.to_string())),
                Role::Heir { of } => Some(StoredRole::HeirOf(of.to_string())),
            },
            ceiling: match member.ceiling {
                Ceiling::Unknown => None,
                Ceiling::At(id) => Some(StoredCeiling::At(id.epoch, id.sequence)),
                Ceiling::Passed => Some(StoredCeiling::Passed),
            },
            lacks: member.lacks.ranges().to_vec(),
        };
        let owner = |owner: OwnedBy| StoredOwner {
            host: owner.node.host.to_string(),
            shard: owner.node.shard,
            incarnation: owner.incarnation,
        };
        StoredRoster {
            epoch: roster.epoch,
            owner: roster.owner.map(owner),
            members: roster.members.iter().map(member).collect(),
            shape: roster.shape,
        }
    }
}

impl StoredRoster {
    fn roster(self) -> Result<Roster, String> {
        let member = |stored: StoredMember| {
            Ok::<Member, String>(Member {
                component: parsed::<ComponentId>(&stored.component)?,
                node: NodeId { host: parsed(&stored.host)?, shard: stored.shard },
                place: stored.place,
                rows: None, // As the layout says, once all of the record is read.
                standing: match stored.standing {
                    StoredStanding::Active => Standing::Active,
                    StoredStanding::Absent => Standing::Absent,
                    StoredStanding::Stale => Standing::Stale,
                    StoredStanding::StandIn => Standing::StandIn,
                },
                base: WriteId { epoch: stored.base.0, sequence: stored.base.1 },
                role: match stored.role {
                    None => Role::Copy,
                    Some(StoredRole::StandInFor(of)) => Role::StandIn { of: parsed(&of)? },
                    Some(StoredRole::HeirOf(of)) => Role::Heir { of: parsed(&of)? },
                },
                ceiling: match stored.ceiling {
                    None => Ceiling::Unknown,
                    Some(StoredCeiling::At(epoch, sequence)) => Ceiling::At(WriteId { epoch, sequence }),
                    Some(StoredCeiling::Passed) => Ceiling::Passed,
                },
                lacks: lacks(stored.lacks)?,
            })
        };
        let owner = |stored: StoredOwner| {
            let node = NodeId { host: parsed(&stored.host)?, shard: stored.shard };
            Ok::<OwnedBy, String>(OwnedBy { node, incarnation: stored.incarnation })
        };
        Ok(Roster {
            epoch: self.epoch,
            owner: self.owner.map(owner).transpose()?,
            members: self.members.into_iter().map(member).collect::<Result<_, _>>()?,
            moving: None, // As the layout says, once all of the record is read.
            shape: self.shape,
            snapshots: replication::Snapshots::default(), // As the record says beside it.
        })
    }
}

/// A move into another layout; where the boundary stands is in the layout.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMoving {
    policy: String,
    space_reservation: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    debts: Vec<StoredDebt>,
    #[serde(default, skip_serializing_if = "is_false")]
    back: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    paused: bool,
    trimmed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    followed: Option<String>,
}

impl From<&Moving> for StoredMoving {
    fn from(moving: &Moving) -> StoredMoving {
        StoredMoving {
            policy: moving.policy.to_string(),
            space_reservation: moving.space_reservation.get(),
            debts: moving.debts.iter().map(StoredDebt::from).collect(),
            back: moving.is_back,
            paused: moving.is_paused,
            trimmed: moving.trimmed,
            followed: moving.followed.clone(),
        }
    }
}

impl StoredMoving {
    fn moving(self) -> Result<Moving, String> {
        let share = Percent::new(self.space_reservation).ok_or("a reservation of more than all")?;
        Ok(Moving {
            policy: self.policy.parse().map_err(|error| format!("the policy that it moves to: {error}"))?,
            space_reservation: share,
            debts: self.debts.into_iter().map(StoredDebt::debt).collect::<Result<_, _>>()?,
            is_back: self.back,
            is_paused: self.paused,
            trimmed: self.trimmed,
            followed: self.followed,
        })
    }
}

impl From<&Incoming> for StoredIncoming {
    fn from(one: &Incoming) -> StoredIncoming {
        StoredIncoming {
            place: one.place,
            component: one.component.id.to_string(),
            device: one.component.device.to_string(),
            size: one.component.size,
            position: one.component.position,
            replaces: one.replaces.map(|id| id.to_string()),
            reason: match one.reason {
                Reason::Repair => StoredReason::Repair,
                Reason::Evacuation => StoredReason::Evacuation,
                Reason::Balance => StoredReason::Balance,
                Reason::Policy => StoredReason::Policy,
            },
        }
    }
}

impl StoredIncoming {
    fn incoming(self) -> Result<Incoming, String> {
        Ok(Incoming {
            place: self.place,
            component: Component {
                id: parsed(&self.component)?,
                device: parsed(&self.device)?,
                size: self.size,
                position: self.position,
            },
            replaces: self.replaces.as_deref().map(parsed).transpose()?,
            reason: match self.reason {
                StoredReason::Repair => Reason::Repair,
                StoredReason::Evacuation => Reason::Evacuation,
                StoredReason::Balance => Reason::Balance,
                StoredReason::Policy => Reason::Policy,
            },
        })
    }
}

impl From<&StandIn> for StoredStandIn {
    fn from(one: &StandIn) -> StoredStandIn {
        StoredStandIn {
            place: one.place,
            component: one.component.id.to_string(),
            device: one.component.device.to_string(),
            size: one.component.size,
            position: one.component.position,
            of: one.of.to_string(),
        }
    }
}

impl StoredStandIn {
    fn stand_in(self) -> Result<StandIn, String> {
        let (id, device) = (parsed(&self.component)?, parsed(&self.device)?);
        let component = Component { id, device, size: self.size, position: self.position };
        Ok(StandIn { place: self.place, component, of: parsed(&self.of)? })
    }
}

impl From<&Growth> for StoredGrowth {
    fn from(growth: &Growth) -> StoredGrowth {
        let node = |(id, node): (&ComponentId, &NodeId)| (id.to_string(), node.host.to_string(), node.shard);
        StoredGrowth {
            size: growth.size,
            layout: to_hex(&growth.layout.encode()),
            nodes: growth.nodes.iter().map(node).collect(),
        }
    }
}

impl StoredGrowth {
    fn growth(self) -> Result<Growth, String> {
        let bytes = from_hex(&self.layout).ok_or("the layout to come is not hexadecimal")?;
        let node = |(id, host, shard): (String, String, u8)| {
            Ok::<_, String>((parsed(&id)?, NodeId { host: parsed(&host)?, shard }))
        };
        Ok(Growth {
            size: self.size,
            layout: Layout::decode(&bytes).map_err(|error| error.to_string())?,
            nodes: self.nodes.into_iter().map(node).collect::<Result<BTreeMap<_, _>, _>>()?,
        })
    }
}

impl From<&Debt> for StoredDebt {
    fn from(debt: &Debt) -> StoredDebt {
        StoredDebt { rule: debt.rule.to_owned(), wanted: debt.wanted.clone(), got: debt.got.clone() }
    }
}

impl StoredDebt {
    fn debt(self) -> Result<Debt, String> {
        let rule = RULES.iter().find(|rule| rule.name == self.rule);
        let rule = rule.ok_or_else(|| format!("`{}` is no rule of a policy", self.rule))?.name;
        Ok(Debt { rule, wanted: self.wanted, got: self.got })
    }
}
