//! Owners of disks, played: what of them the directory and the other hosts see.
//!
//! An owner has a component taken out whose host is silent, as soon as it writes to it; fills the components that come, each
//! in the same time; and tells with its host's heartbeats of disks that are not whole. A claim is one change of the record, and
//! what cannot be reached is taken out by the next one.

use super::world::{By, Commit, Event, MS, World};
use base::{ComponentId, DiskId, HostId, WriteId};
use cluster::DiskRecord;
use replication::owner::{LeftBecause, MemberState, OwnerState, Phase};
use replication::{Member, Role, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// Disks of which a heartbeat tells, as in the server.
const TOLD_MAX: usize = 256;
/// How long owners take, at most, to have a silent component taken out of the record: the next write tells it.
const NOTICE_NS: u64 = 50 * MS;
/// How long a new owner takes to open a disk.
const OPENING_NS: u64 = 100 * MS;

/// A component that is filled, and whether as the heir of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filling {
    disk: DiskId,
    component: ComponentId,
    is_heir: bool,
}

/// What is known of all owners.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Disks that are not whole, by their owner's host.
    unwhole: BTreeMap<HostId, BTreeSet<DiskId>>,
    /// Disks with a change of their owner's under way.
    busy: BTreeSet<DiskId>,
    /// Disks that a new owner opens, or has opened.
    opened: BTreeSet<DiskId>,
    /// Components that are filled, since when.
    filling: BTreeMap<Filling, u64>,
    filled: BTreeSet<Filling>,
}

impl Owners {
    /// A disk has a new owner.
    pub fn opened(&mut self, disk: DiskId) {
        self.opened.insert(disk);
    }
}

impl World {
    /// Nobody reaches a host any more: owners of what stands there notice it.
    pub(super) fn links_break(&mut self, host: HostId) {
        self.silent.insert(host);
        let stands_there = |disk: &DiskRecord| disk.roster.members.iter().any(|one| one.node.host == host);
        let disks: Vec<DiskId> =
            self.directory.disks().values().filter(|disk| stands_there(disk)).map(|disk| disk.id).collect();
        for disk in disks {
            let delay = self.random.below(NOTICE_NS);
            self.later(delay, Event::Owner { disk });
        }
    }

    /// Notes where a disk that is not whole is told of.
    pub(super) fn note_owner(&mut self, disk: &DiskRecord) {
        for disks in self.owners.unwhole.values_mut() {
            disks.remove(&disk.id);
        }
        if let Some(owner) = disk.roster.owner.filter(|_| !disk.is_whole()) {
            self.owners.unwhole.entry(owner.node.host).or_default().insert(disk.id);
        }
    }

    pub(super) fn owner_looks(&mut self, id: DiskId) {
        let Some(disk) = self.directory.disk(id).cloned() else { return };
        let Some(owner) = disk.roster.owner else { return };
        let index = self.hosts.iter().position(|host| host.id == owner.node.host).expect("it is a host");
        if !self.hosts[index].is_up || self.owners.busy.contains(&id) {
            return;
        }
        self.begin_fills(&disk);
        if let Some(roster) = self.wish(&disk) {
            self.owners.busy.insert(id);
            let change = disk.with_roster(&roster, 0).expect("an owner asks for what can be");
            let delay = if self.owners.opened.contains(&id) { OPENING_NS } else { 0 };
            let commit = Commit { host: index, expected: disk.version, record: change.record, by: By::Owner };
            if delay == 0 {
                self.send(commit);
            } else {
                self.later(delay, Event::Commit(Box::new(commit)));
            }
        }
    }

    /// The answer to an owner's change has come.
    pub(super) fn owner_answered(&mut self, disk: DiskId) {
        self.owners.busy.remove(&disk);
        self.owners.opened.remove(&disk);
        self.later(MS, Event::Owner { disk });
    }

    fn begin_fills(&mut self, disk: &DiskRecord) {
        let absent = |id| disk.roster.member(id).is_some_and(|one| one.standing == Standing::Absent);
        for member in &disk.roster.members {
            let comes = disk.incoming.iter().any(|one| one.component.id == member.component);
            let is_wanted = match member.role {
                Role::Copy => comes && member.standing == Standing::Absent,
                Role::StandIn { of } => member.standing == Standing::Absent && absent(of),
                Role::Heir { .. } => member.standing != Standing::Active,
            };
            let filling = filling_of(disk, member);
            let is_known =
                self.owners.filling.contains_key(&filling) || self.owners.filled.contains(&filling);
            if is_wanted && !is_known && !self.silent.contains(&member.node.host) {
                self.owners.filling.insert(filling, self.now);
                let fill = self.options.fill.as_nanos() as u64;
                self.later(fill.max(1), Event::Filled { filling });
            }
        }
    }

    pub(super) fn filled(&mut self, filling: Filling) {
        self.owners.filling.remove(&filling);
        self.owners.filled.insert(filling);
        self.owner_looks(filling.disk);
    }

    /// What an owner wants the record to say; nothing if it says so.
    fn wish(&self, disk: &DiskRecord) -> Option<Roster> {
        let is_written = disk.id.0 % 100 < u128::from(self.options.written_percent);
        let notices = is_written || self.owners.opened.contains(&disk.id);
        let mut roster = disk.roster.clone();
        for member in &mut roster.members {
            let is_silent = self.silent.contains(&member.node.host);
            let is_filled = self.owners.filled.contains(&filling_of(disk, member));
            match (member.standing, member.role) {
                (Standing::Active | Standing::StandIn, _) if is_silent => {
                    if notices && self.has_other(disk, member) {
                        member.standing = Standing::Absent;
                        member.base = WriteId { epoch: disk.roster.epoch, sequence: 1_000_000 };
                    }
                }
                (Standing::Absent, Role::StandIn { .. }) if is_filled => member.standing = Standing::StandIn,
                (Standing::Absent, Role::Copy)
                | (Standing::Absent | Standing::StandIn, Role::Heir { .. })
                    if is_filled =>
                {
                    member.standing = Standing::Active;
                }
                (Standing::Active | Standing::Absent | Standing::Stale | Standing::StandIn, _) => {}
            }
        }
        (roster != disk.roster).then_some(roster)
    }

    /// Whether another component of its place is active and can be reached.
    fn has_other(&self, disk: &DiskRecord, member: &Member) -> bool {
        disk.roster.members.iter().any(|other| {
            other.place == member.place
                && other.component != member.component
                && other.standing == Standing::Active
                && !self.silent.contains(&other.node.host)
        })
    }

    /// What a host tells, as their owner, of disks that are not whole.
    pub(super) fn owned_to_tell(&self, host: HostId) -> Vec<(DiskId, OwnerState)> {
        let disks = self.owners.unwhole.get(&host).into_iter().flatten();
        let mut owned: Vec<_> =
            disks.map(|id| (*id, self.owner_state(&self.directory.disks()[id]))).collect();
        owned.sort_by_key(|(_, owner)| !owner.members.iter().any(|one| one.resync.is_some()));
        owned.truncate(TOLD_MAX);
        owned
    }

    fn owner_state(&self, disk: &DiskRecord) -> OwnerState {
        let bytes = super::creation::DATA_BYTES / disk.layout.place_count() as u64;
        let fill = (self.options.fill.as_nanos() as u64).max(1);
        let member = |member: &Member| {
            let since = self.owners.filling.get(&filling_of(disk, member));
            let copied = since.map(|since| {
                u64::try_from(u128::from(bytes) * u128::from((self.now - since).min(fill)) / u128::from(fill))
                    .expect("no more than all")
            });
            let is_silent = self.silent.contains(&member.node.host);
            MemberState {
                component: member.component,
                node: member.node,
                place: member.place,
                standing: member.standing,
                role: member.role,
                is_open: !is_silent,
                is_passed_over: false,
                read_time: std::time::Duration::ZERO,
                resync: copied.map(|copied| (copied, bytes - copied)),
                looked_through: None,
                trouble: is_silent.then_some(LeftBecause::Unreachable),
                retry_in: None,
            }
        };
        OwnerState {
            phase: Phase::Serving,
            epoch: disk.roster.epoch,
            members: disk.roster.members.iter().map(member).collect(),
            waits_for_directory: false,
            copied_bytes: 0,
            repaired_blocks: 0,
            held_blocks: 0,
            folded_blocks: 0,
            row_checks: Default::default(),
        }
    }
}

fn filling_of(disk: &DiskRecord, member: &Member) -> Filling {
    let is_heir = matches!(member.role, Role::Heir { .. });
    Filling { disk: disk.id, component: member.component, is_heir }
}
