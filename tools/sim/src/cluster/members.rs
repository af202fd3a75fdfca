//! Members that come and go, as repairs let them: by the rules of the server (design 0008).
//!
//! A record names a component before a node makes it, and names it no more before the node deletes it. Each node tends what
//! it holds: it makes what comes to it and was never active, and deletes what no record names. It lists first and reads the
//! record after that, and keeps what has promised a later epoch than the record knows.

use super::plan::MS;
use super::world::{Event, World};
use base::{ComponentId, DiskId, NodeId, WriteId};
use node::Token;
use replication::owner::Committed;
use replication::{Member, Role, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Answer, NewComponent, Request};

/// As many components answer for a place at most.
pub(crate) const PLACE_MEMBERS_MAX: usize = 8;

/// Tokens of what nodes are asked for, apart from those of inspections.
const FIRST_TOKEN: u64 = 1 << 32;

/// Components have these identities when they come; those of the beginning have lesser ones.
const FIRST_COMER: u64 = 1000;

/// What came and what goes.
#[derive(Debug, Default)]
pub struct Members {
    /// Components that came, and whose seat each takes.
    came: BTreeMap<ComponentId, Option<ComponentId>>,
    /// Requests to nodes so far.
    tokens: u64,
    /// Deletions under way: where, and of what.
    deletions: BTreeMap<u64, (usize, ComponentId)>,
}

/// A component as its node lists it: its disk, and what it promised.
type Listed = BTreeMap<ComponentId, (DiskId, u32)>;

/// What happens to members.
#[derive(Debug)]
pub(crate) enum MemberEvent {
    /// A record is to change; then a component is to be made.
    Change { disk: DiskId, expected: u64, roster: Roster, make: Option<ComponentId> },
    /// A node looks at what it holds.
    Tend { host: usize, incarnation: u64 },
    /// The records are read after that.
    Listed { host: usize, incarnation: u64, listed: Listed },
    /// What they do not name goes.
    Delete { host: usize, incarnation: u64, components: Vec<ComponentId> },
}

impl MemberEvent {
    /// The host at which it happens; the rest happens in the directory.
    pub(crate) fn host(&self) -> Option<usize> {
        match self {
            MemberEvent::Tend { host, .. } | MemberEvent::Delete { host, .. } => Some(*host),
            MemberEvent::Change { .. } | MemberEvent::Listed { .. } => None,
        }
    }
}

/// Whether the active ones of some members of a place are all that it takes to have its data.
fn is_enough<'a>(members: impl Iterator<Item = &'a Member>) -> bool {
    let active: Vec<&Member> = members.filter(|one| one.standing == Standing::Active).collect();
    let positions = active.iter().filter_map(|one| Some(one.rows?.position)).collect::<BTreeSet<u8>>();
    let needed = active.iter().find_map(|one| one.rows).map(|rows| usize::from(rows.code.data()));
    needed.map_or(!active.is_empty(), |needed| positions.len() >= needed)
}

impl World {
    /// Draws what comes and goes in one turn of the faults.
    pub(crate) fn repair(&mut self, (comes, goes, stales): (bool, bool, bool)) {
        if comes {
            self.begin_coming();
        }
        if goes {
            self.leave();
        }
        if stales {
            self.distrust();
        }
        let comers: Vec<(ComponentId, Option<ComponentId>)> =
            self.members.came.iter().map(|(id, replaced)| (*id, *replaced)).collect();
        for (comer, replaced) in comers {
            self.finish_or_cancel(comer, replaced);
        }
    }

    /// How many places a disk has.
    pub(crate) fn places(&self, of: DiskId) -> u64 {
        let disk = self.disks.iter().find(|one| one.id == of).expect("every record is of a disk");
        disk.layout.place_count() as u64
    }

    /// A disk and one of its places, with its record.
    fn draw_place(&mut self) -> (DiskId, u16, u64, Roster) {
        let disk = self.disks[self.random.below(self.disks.len() as u64) as usize].id;
        let place = self.random.below(self.places(disk)) as u16;
        let (version, roster) = self.directory.get(disk).expect("every disk has a record");
        (disk, place, version, roster)
    }

    /// A component begins to come to a host that holds none of that place.
    pub(crate) fn begin_coming(&mut self) {
        let (disk, place, version, mut roster) = self.draw_place();
        let here: Vec<Member> = roster.members.iter().filter(|one| one.place == place).cloned().collect();
        let is_held = |host: usize| here.iter().any(|one| one.node == self.hosts[host].id);
        let free: Vec<usize> =
            (0..self.hosts.len()).filter(|&host| !is_held(host) && self.has_room(host)).collect();
        if free.is_empty() || here.len() >= PLACE_MEMBERS_MAX {
            return;
        }
        let host = free[self.random.below(free.len() as u64) as usize];
        let is_replaced = |id: ComponentId| {
            let comer = self.members.came.iter().find(|(_, replaced)| **replaced == Some(id));
            comer.is_some_and(|(comer, _)| roster.member(*comer).is_some())
        };
        let seats: Vec<ComponentId> = seats_of(&here).into_iter().filter(|id| !is_replaced(*id)).collect();
        let seat = self.random.below(seats.len() as u64 + 1) as usize;
        // Rows get nothing on top: whatever comes takes a position that another has.
        let is_of_rows = here.iter().any(|one| one.rows.is_some());
        let replaced = seats.get(seat).or(seats.first().filter(|_| is_of_rows)).copied();
        if is_of_rows && replaced.is_none() {
            return;
        }
        let component = self.next_comer();
        let node = self.hosts[host].id;
        roster = self.with_comer(roster, (component, node, place), replaced, Role::Copy);
        self.say(|| {
            format!("{component:?} comes to host {host} for {replaced:?} of place {place} of {disk:?}")
        });
        self.change(disk, version, roster, Some(component));
    }

    /// The record with one component more, which is absent.
    pub(crate) fn with_comer(
        &mut self,
        mut roster: Roster,
        (component, node, place): (ComponentId, NodeId, u16),
        replaced: Option<ComponentId>,
        role: Role,
    ) -> Roster {
        let base = WriteId::default();
        let ceiling = replication::Ceiling::Unknown;
        let seat = replaced.or(role.of());
        let rows = seat.and_then(|seat| roster.member(seat)).and_then(|one| one.rows);
        let standing = Standing::Absent;
        let lacks = replication::Numbers::through(roster.snapshots.last);
        let member = Member { component, node, place, rows, standing, base, role, ceiling, lacks };
        let behind = roster.members.partition_point(|other| other.place <= place);
        roster.members.insert(behind, member);
        self.members.came.insert(component, replaced);
        roster
    }

    /// The identity of the next component that comes.
    pub(crate) fn next_comer(&self) -> ComponentId {
        ComponentId(FIRST_COMER + self.members.came.len() as u64)
    }

    /// A component that came takes the seat of another from now on.
    pub(crate) fn seat_comer(&mut self, component: ComponentId, seat: ComponentId) {
        self.members.came.insert(component, Some(seat));
    }

    /// Whether a component came, and was not there from the beginning.
    pub(crate) fn is_comer(&self, component: ComponentId) -> bool {
        self.members.came.contains_key(&component)
    }

    /// Whether a host that runs has slots and extents for one more component.
    pub(crate) fn has_room(&self, host: usize) -> bool {
        let most = if self.plan.extents > 20 { 8 } else { 4 };
        let most = most.min(self.hosts[host].component_slots() as usize);
        let there: BTreeSet<ComponentId> = self.named(self.hosts[host].id);
        let listed = self.listed(host).into_keys().collect();
        self.hosts[host].node.is_some() && there.union(&listed).count() < most
    }

    /// A component that came is active and takes its seat, or does not come after all.
    fn finish_or_cancel(&mut self, comer: ComponentId, replaced: Option<ComponentId>) {
        let Some((disk, version, roster)) = self.record_of(comer) else { return };
        let standing = roster.member(comer).expect("just seen").standing;
        let seat = replaced.filter(|seat| roster.member(*seat).is_some());
        let gone = match (standing, seat) {
            (Standing::Active, Some(seat)) if self.random.chance(1, 10) => seat,
            (Standing::Absent | Standing::Stale, _) if self.random.chance(1, 250) => comer,
            _ => return,
        };
        self.remove(disk, version, roster, gone);
    }

    /// One copy less is asked for.
    fn leave(&mut self) {
        let (disk, place, version, roster) = self.draw_place();
        let here: Vec<ComponentId> =
            roster.members.iter().filter(|one| one.place == place).map(|one| one.component).collect();
        let gone = here[self.random.below(here.len() as u64) as usize];
        self.remove(disk, version, roster, gone);
    }

    /// The record names a component no more, if something that counts is left of its place.
    pub(crate) fn remove(&mut self, disk: DiskId, version: u64, mut roster: Roster, gone: ComponentId) {
        roster.members.retain(|one| one.component != gone);
        let is_heir = |one: &&mut Member| one.standing == Standing::Active && one.role.of() == Some(gone);
        roster.members.iter_mut().filter(is_heir).for_each(|one| one.role = Role::Copy);
        let places = roster.members.iter().map(|one| one.place).collect::<BTreeSet<u16>>();
        let is_served = |place: &u16| {
            let here = || roster.members.iter().filter(|one| one.place == *place);
            // Who stands in for another has no seat of its own.
            let seated = here().filter(|one| one.role == Role::Copy || one.standing == Standing::Active);
            let all = seated.filter_map(|one| one.rows).map(|rows| rows.position).collect::<BTreeSet<u8>>();
            let code = here().find_map(|one| one.rows).map(|rows| rows.code);
            let has_all = code.is_none_or(|code| all.len() == usize::from(code.members()));
            has_all && is_enough(here())
        };
        if places.len() as u64 == self.places(disk) && places.iter().all(is_served) {
            self.say(|| format!("{gone:?} of {disk:?} is to go"));
            self.change(disk, version, roster, None);
        }
    }

    /// A host is given up: what stands on it counts no more, whatever it says.
    fn distrust(&mut self) {
        let (disk, place, version, mut roster) = self.draw_place();
        let active: Vec<usize> = (0..roster.members.len())
            .filter(|&index| roster.members[index].place == place)
            .filter(|&index| roster.members[index].standing == Standing::Active)
            .collect();
        if active.len() > 1 {
            let index = active[self.random.below(active.len() as u64) as usize];
            let others = active.iter().filter(|one| **one != index).map(|one| &roster.members[*one]);
            if !is_enough(others) {
                return;
            }
            roster.members[index].standing = Standing::Stale;
            self.say(|| format!("{:?} of {disk:?} is not to count", roster.members[index].component));
            self.change(disk, version, roster, None);
        }
    }

    /// Asks the directory for a change from a version that may be out of date when it arrives.
    pub(crate) fn change(&mut self, disk: DiskId, expected: u64, roster: Roster, make: Option<ComponentId>) {
        let delay = 1 + self.random.below(2 * self.plan.directory_ns);
        self.later(delay, Event::Member(MemberEvent::Change { disk, expected, roster, make }));
    }

    pub(crate) fn member_event(&mut self, event: MemberEvent) {
        match event {
            MemberEvent::Change { disk, expected, roster, make } => {
                self.change_arrives(disk, expected, roster, make);
            }
            MemberEvent::Tend { host, incarnation } if self.is_current(host, incarnation) => self.tend(host),
            MemberEvent::Listed { host, incarnation, listed } => {
                let until = self.unheard_until(host);
                if until > self.now {
                    return self.at(until, Event::Member(MemberEvent::Listed { host, incarnation, listed }));
                }
                let components = self.unnamed(self.hosts[host].id, &listed);
                let delay = 1 + self.random.below(self.plan.directory_ns);
                self.later(delay, Event::Member(MemberEvent::Delete { host, incarnation, components }));
            }
            MemberEvent::Delete { host, incarnation, components } if self.is_current(host, incarnation) => {
                // They are in no record that was read since: so its copy has these.
                for disk in self.directory.disks() {
                    let (version, roster) = self.directory.get(disk).expect("just listed");
                    if self.directory.is_lost || !self.copy_takes(host, disk, version, &roster) {
                        return;
                    }
                }
                components.into_iter().for_each(|component| self.delete(host, component));
            }
            MemberEvent::Tend { .. } | MemberEvent::Delete { .. } => {} // That process is gone.
        }
    }

    fn is_current(&self, host: usize, incarnation: u64) -> bool {
        self.hosts[host].node.is_some() && self.hosts[host].incarnation == incarnation
    }

    fn change_arrives(&mut self, disk: DiskId, expected: u64, roster: Roster, make: Option<ComponentId>) {
        let until = self.directory.is_away_until();
        if until > self.now {
            if self.random.chance(1, 2) {
                self.at(until, Event::Member(MemberEvent::Change { disk, expected, roster, make }));
            }
            return;
        }
        let before = self.directory.get(disk).map_or(0, |(_, roster)| roster.members.len());
        let after = roster.members.len();
        let Committed::Done { version } = self.directory.commit(disk, expected, roster) else { return };
        self.summary.came += u64::from(after > before);
        self.summary.went += u64::from(after < before);
        self.say(|| format!("the record of {disk:?} changes to version {version}"));
        self.push_record(disk);
        // Whoever stored it may be gone before it asks.
        if let Some(component) = make.filter(|_| self.random.chance(3, 4)) {
            let running =
                |host: &usize| self.hosts[*host].node.is_some() && self.hosts[*host].paused_until <= self.now;
            let running: Vec<usize> = (0..self.hosts.len()).filter(running).collect();
            if !running.is_empty() {
                let by = running[self.random.below(running.len() as u64) as usize];
                self.make(by, component);
            }
        }
    }

    /// A host asks for a component that a record names to be made.
    fn make(&mut self, by: usize, component: ComponentId) {
        let Some((disk, _, roster)) = self.record_of(component) else { return };
        let node = roster.member(component).expect("just seen").node;
        let place = usize::from(roster.member(component).expect("just seen").place);
        let of = self.disks.iter().find(|one| one.id == disk).expect("every record is of a disk");
        let size = of.layout.place(place).map_or(0, |copies| copies[0].size);
        let device = self.hosts[self.index_of(node)].capacity_device();
        let disk_label = self.label_of(disk);
        let new = NewComponent { id: component, disk, device, size, reservation: 0, disk_label };
        let token = self.member_token();
        self.with_node(by, |one, now, out| {
            one.ask_component(now, Token(token), node, Request::Create(new), out);
        });
    }

    fn member_token(&mut self) -> u64 {
        self.members.tokens += 1;
        FIRST_TOKEN + self.members.tokens
    }

    /// A node makes what comes to it, and looks for what no record names.
    fn tend(&mut self, host: usize) {
        let listed = self.listed(host);
        let missing: Vec<ComponentId> = self
            .members
            .came
            .keys()
            .copied()
            .filter(|comer| !listed.contains_key(comer) && self.comes_to(host, *comer))
            .collect();
        missing.into_iter().for_each(|component| self.make(host, component));
        let incarnation = self.hosts[host].incarnation;
        let delay = 1 + self.random.below(2 * self.plan.directory_ns);
        self.later(delay, Event::Member(MemberEvent::Listed { host, incarnation, listed }));
        if self.plan.tend_ns > 0 || !self.is_faulty {
            self.tend_later(host);
        }
    }

    /// A node tends what it holds, in a while.
    pub(crate) fn tend_later(&mut self, host: usize) {
        if self.plan.comings == 0 && self.plan.goings == 0 && self.plan.stand_ins == 0 {
            return;
        }
        let incarnation = self.hosts[host].incarnation;
        let most = if self.plan.tend_ns > 0 { self.plan.tend_ns } else { 1000 * MS };
        let delay = 1 + self.random.below(most);
        self.later(delay, Event::Member(MemberEvent::Tend { host, incarnation }));
    }

    /// Whether a component comes to a host and does not count, by what the host knows of the record.
    fn comes_to(&self, host: usize, component: ComponentId) -> bool {
        let Some(node) = &self.hosts[host].node else { return false };
        let of_disk = |disk: &node::DiskSpec| {
            let known = node.ownership(disk.id)?;
            known.roster.member(component).cloned()
        };
        let member = self.disks.iter().find_map(of_disk);
        member.is_some_and(|one| one.node == self.hosts[host].id && one.standing == Standing::Absent)
    }

    /// Components that the records do not name as the node's, and that have promised nothing that they do not know.
    fn unnamed(&self, node: NodeId, listed: &Listed) -> Vec<ComponentId> {
        let named = self.named(node);
        let mut unnamed = Vec::new();
        for (component, (disk, promised)) in listed.iter().filter(|(id, _)| !named.contains(id)) {
            let epoch = self.directory.get(*disk).map_or(0, |(_, roster)| roster.epoch);
            if *promised <= epoch {
                unnamed.push(*component);
            }
        }
        unnamed
    }

    fn delete(&mut self, host: usize, component: ComponentId) {
        self.say(|| format!("host {host} deletes {component:?}"));
        let token = self.member_token();
        self.members.deletions.insert(token, (host, component));
        let node = self.hosts[host].id;
        self.with_node(host, |one, now, out| {
            one.ask_component(now, Token(token), node, Request::Delete { component }, out);
        });
    }

    /// A node answers: what it says it has deleted must be gone.
    pub(crate) fn component_answered(&mut self, token: u64, answer: Option<Answer>) {
        let Some((host, component)) = self.members.deletions.remove(&token) else {
            self.inspected.extend(answer.map(|answer| (token, answer)));
            return;
        };
        let is_done = matches!(answer, Some(Answer::Done { .. }));
        if is_done && self.listed(host).contains_key(&component) {
            self.fail(format!("host {host} says that {component:?} is deleted, and lists it"));
        }
    }

    /// What a node says that it holds.
    pub(crate) fn listed(&self, host: usize) -> Listed {
        let Some(node) = &self.hosts[host].node else { return Listed::new() };
        let components = node.groups().flat_map(|(_, group)| group.components());
        components.map(|(_, one)| (one.record.id, (one.record.disk, one.record.promised))).collect()
    }

    /// The components that records place on a node.
    fn named(&self, node: NodeId) -> BTreeSet<ComponentId> {
        let records = self.directory.disks().into_iter().filter_map(|disk| self.directory.get(disk));
        let members = records.flat_map(|(_, roster)| roster.members);
        members.filter(|one| one.node == node).map(|one| one.component).collect()
    }

    /// The record that names a component.
    fn record_of(&self, component: ComponentId) -> Option<(DiskId, u64, Roster)> {
        self.directory.disks().into_iter().find_map(|disk| {
            let (version, roster) = self.directory.get(disk)?;
            roster.member(component).is_some().then_some((disk, version, roster))
        })
    }

    /// Whether every node holds what the records say, and nothing else.
    pub(crate) fn is_tidy(&self) -> bool {
        let is_tidy = |host: usize| {
            let listed: BTreeSet<ComponentId> = self.listed(host).into_keys().collect();
            listed == self.named(self.hosts[host].id)
        };
        (0..self.hosts.len()).all(is_tidy)
    }
}

/// The components of a place whose seats others may take.
fn seats_of(members: &[Member]) -> Vec<ComponentId> {
    let seated = members.iter().filter(|one| one.stands_in_for().is_none());
    seated.map(|one| one.component).collect()
}
