//! What is replaced, when, and by whom.
//!
//! A component on a failed device, one that lost data and one that is to leave its host are replaced at once; one that is
//! missing may come back, and is given the repair delay. Any free space of the cluster is the spare. All nodes decide for
//! all disks, and each performs what is for itself to do: so that the bounds hold for the cluster, as far as the nodes see
//! the same. Two things keep them from waiting for each other: what comes first is told by the records alone and not by what
//! a host has noted for itself, and what nobody has begun for a while takes nobody else's turn. A replacement and the return of what it replaces race: whichever is active first stays. Must never begin
//! what has nothing to be filled from, and never end what the last copy depends on.

mod budget;
mod due;

use self::budget::Budget;
use crate::disk::{Change, DiskRecord, DiskState, Incoming, Objection, Reason, StandIn};
use crate::domains;
use crate::host::{Maintenance, Mode};
use crate::limits::{
    ACTOR_PATIENCE, REFUSED_RETRY, REPAIR_DELAY, REPLACEMENTS_MAX, REPLACEMENTS_PER_HOST_MAX,
};
use crate::view::{Ground, View};
use base::{ComponentId, DeviceId, DiskId, HostId, Instant, NodeId};
use layout::Component;
use placement::{Cause, DeviceSpace, Stripes, add_copies, repair};
use replication::owner::{LeftBecause, MemberState};
use replication::{Role, Standing};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What happens to what is missing while nothing is filled, by the settings.
pub(crate) const NOT_REPLACED: &str = "not replaced while the setting `replacements` is 0";

/// What people may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a component may be missing before another takes its place.
    pub delay: Duration,
    /// Components of the whole cluster that are filled at once. With none, what is on its way is called off, whatever for.
    pub replacements_max: usize,
    /// Components of one host that are filled at once.
    pub replacements_per_host_max: usize,
    /// Whether devices may be evened out. If not, what is on its way for that is called off.
    pub evens_out: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            delay: REPAIR_DELAY,
            replacements_max: REPLACEMENTS_MAX,
            replacements_per_host_max: REPLACEMENTS_PER_HOST_MAX,
            evens_out: true,
        }
    }
}

/// Why a component comes; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The device of another failed.
    DeviceFailed,
    /// Another lost what it had acknowledged.
    Stale,
    /// Another is not on its device any more.
    Gone,
    /// The device of another has no room for it.
    NoRoom,
    /// Another has been missing for longer than the repair delay.
    Absent {
        /// Since when.
        since: Instant,
    },
    /// The host of another is to be serviced, or its device is to be emptied.
    Evacuation,
    /// The policy asks for more copies than the disk has.
    Debt,
    /// Another copy stands in the fault domain of the one that moves.
    Domain,
    /// Devices are evened out.
    Balance,
}

impl Why {
    /// What is more urgent has less of it. Since when something is missing makes no difference: each host counts that for
    /// itself, and all are to begin with the same.
    fn urgency(self) -> u8 {
        match self {
            Why::DeviceFailed => 0,
            Why::Stale => 1,
            Why::Gone => 2,
            Why::NoRoom => 3,
            Why::Absent { .. } => 4,
            Why::Evacuation => 5,
            Why::Debt => 6,
            Why::Domain => 7,
            Why::Balance => 8,
        }
    }
}

/// Why a component does not come after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It is lost itself, or its device has no room.
    Lost,
    /// Its host is to be serviced, or its device is to be emptied.
    Leaving,
    /// What it was to replace, or stands in for, is whole again.
    Returned,
    /// Nothing is to stand in for anything, to be evened out, or to be filled at all.
    Unwanted,
}

/// A component that is to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The node that makes it.
    pub node: NodeId,
    /// The component, and its seat.
    pub incoming: Incoming,
    /// Why.
    pub why: Why,
}

/// What is to be done with a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To own it: nothing is filled without an owner.
    Claim,
    /// To let components come.
    Begin(Vec<Coming>),
    /// To let a component that is active take its seat.
    Finish(ComponentId),
    /// To do without a component whose host is no more one of the cluster, until there is a place for another.
    GiveUp(ComponentId),
    /// To call a component off.
    Cancel(ComponentId, Because),
    /// To let components stand in for absent ones.
    StandIn(Vec<(NodeId, StandIn)>),
    /// To let a component take the seat of the one that it stands in for.
    Inherit(ComponentId),
    /// To let a component stand in no more.
    Dismiss(ComponentId, Because),
}

impl Step {
    /// The change of the disk's record; none for a claim.
    ///
    /// # Errors
    /// When the record has changed since the decision: to be decided anew.
    pub fn apply(&self, disk: &DiskRecord) -> Result<Option<Change>, Objection> {
        match self {
            Step::Claim => Ok(None),
            Step::Begin(coming) => {
                let coming: Vec<_> = coming.iter().map(|one| (one.node, one.incoming.clone())).collect();
                disk.begin_incoming(&coming).map(Some)
            }
            Step::Finish(component) => disk.finish_incoming(*component).map(Some),
            Step::GiveUp(component) => disk.give_up(*component).map(Some),
            Step::Cancel(component, _) => disk.cancel_incoming(*component).map(Some),
            Step::StandIn(coming) => disk.begin_stand_ins(coming).map(Some),
            Step::Inherit(component) => disk.inherit(*component).map(Some),
            Step::Dismiss(component, _) => disk.end_stand_in(*component).map(Some),
        }
    }
}

/// Something for one node to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The disk.
    pub disk: DiskId,
    /// The node: the disk's owner, or the one that shall be.
    pub actor: NodeId,
    /// What.
    pub step: Step,
}

/// What is to be done now, and when to ask again if nothing happens before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decisions {
    /// For all nodes, the most urgent first.
    pub actions: Vec<Action>,
    /// When something becomes due.
    pub wait_until: Option<Instant>,
}

/// What a new component would be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// In place of this one.
    Component(ComponentId),
    /// As a further copy of this place.
    Copy(usize),
}

/// A replacement for which there is no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why not.
    pub cause: Cause,
    /// Since when.
    pub since: Instant,
    /// When it is tried again.
    pub retry_at: Instant,
}

/// Decides about repairs. What it remembers is since when things are as they are; a restart only makes it wait longer.
#[derive(Debug, Clone, Default)]
pub struct Repairs {
    settings: Settings,
    missing: BTreeMap<(DiskId, ComponentId), Instant>,
    /// Bytes copied to components that are there and not active, and since when that has not changed.
    unmoved: BTreeMap<(DiskId, ComponentId), (Option<u64>, Instant)>,
    refused: BTreeMap<(DiskId, Slot), Refused>,
    /// The devices that could take components at the last decision.
    in_service: BTreeSet<DeviceId>,
    /// What was decided to begin and no record has yet, since when.
    awaited: BTreeMap<(DiskId, Slot), Instant>,
    /// The disks that anything may have to be done about, as of the last decision.
    restless: Vec<DiskId>,
}

/// A component that is to be replaced, or a copy to be added.
#[derive(Debug, Clone, Copy)]
struct Due {
    slot: Slot,
    place: usize,
    why: Why,
    /// Sound components of its place.
    sound: usize,
}

/// A disk that is to be worked on.
struct Job<'a> {
    disk: &'a DiskRecord,
    actor: NodeId,
    due: Vec<Due>,
    /// A component that stands in for one that is due, and takes its seat. It is filled as any other is.
    heir: Option<ComponentId>,
}

impl Repairs {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Repairs {
        Repairs { settings, ..Repairs::default() }
    }

    /// Other settings from now on.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Whether nothing is filled, by the settings.
    pub fn are_off(&self) -> bool {
        self.settings.replacements_max == 0
    }

    /// What could not be placed, by disk.
    pub fn refused(&self) -> &BTreeMap<(DiskId, Slot), Refused> {
        &self.refused
    }

    /// The disks that anything may have to be done about, as of the last decision.
    pub(crate) fn restless<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a DiskRecord> {
        self.restless.iter().filter_map(|id| view.disks.get(id))
    }

    /// When a missing component is replaced if it does not come back; none if it is not missing.
    pub fn due_at(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.missing.get(&(disk, component)).map(|since| *since + self.settings.delay)
    }

    /// Since when a component is missing.
    pub(crate) fn missing_since(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.missing.get(&(disk, component)).copied()
    }

    /// Since when nothing has been copied to a component that is there and not active.
    pub(crate) fn unmoved_since(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.unmoved.get(&(disk, component)).map(|(_, since)| *since)
    }

    /// Decides. `ids` gives a fresh component id at every call; the same arguments give the same decisions.
    pub fn step(
        &mut self,
        now: Instant,
        view: &View,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Decisions {
        let restless = view.restless();
        self.restless = restless.iter().map(|disk| disk.id).collect();
        self.note_missing(now, view, &restless);
        self.note_unmoved(now, view, &restless);
        let mut actions = Vec::new();
        let mut jobs = Vec::new();
        for disk in restless.into_iter().filter(|disk| disk.state == DiskState::Active) {
            let due = self.due(now, view, disk);
            let acting = acting(view, disk);
            let action = |step, actor| Action { disk: disk.id, actor, step };
            match acting {
                Acting::Nobody => continue,
                Acting::Claims(actor) if !due.is_empty() || !disk.is_whole() => {
                    actions.push(action(Step::Claim, actor));
                }
                Acting::Claims(_) => {}
                Acting::Owner(actor) => {
                    let ends = self.ends(now, view, disk);
                    // What stands in for a component takes its seat; until it counts, that is waited for.
                    let has_heir = |due: &Due| matches!(due.slot, Slot::Component(id) if disk.stand_in_for(id).is_some());
                    let (inherited, due): (Vec<Due>, Vec<Due>) = due.into_iter().partition(has_heir);
                    let heir = heir(disk, &inherited);
                    if ends.is_empty() && (heir.is_some() || !due.is_empty()) {
                        let due = if heir.is_some() { inherited } else { due };
                        jobs.push(Job { disk, actor, due, heir });
                    }
                    actions.extend(ends.into_iter().map(|step| action(step, actor)));
                }
            }
        }
        jobs.sort_by_key(|job| (job.due.iter().map(|due| (due.sound, due.why.urgency())).min(), job.disk.id));
        self.note_devices(now, view);
        let mut budget = Budget::new(view, std::mem::take(&mut self.awaited));
        for job in jobs {
            if !budget.has_room(self.settings) {
                break;
            }
            if let Some(heir) = job.heir {
                if self.may_inherit(now, job.disk, heir, &mut budget) {
                    let step = Step::Inherit(heir);
                    actions.push(Action { disk: job.disk.id, actor: job.actor, step });
                }
                continue;
            }
            let begun = self.begin(now, view, &job, &mut budget, ids, seed);
            if !begun.is_empty() {
                actions.push(Action { disk: job.disk.id, actor: job.actor, step: Step::Begin(begun) });
            }
        }
        let ends_of_delay = self.missing.values().map(|since| *since + self.settings.delay);
        let retries = self.refused.values().map(|refused| refused.retry_at);
        let wait_until = ends_of_delay.chain(retries).filter(|at| *at > now).min();
        Decisions { actions, wait_until }
    }

    /// Where a device can take components that could not before, what was refused is tried again.
    fn note_devices(&mut self, now: Instant, view: &View) {
        let in_service = view.in_service().map(|(_, device)| device.id).collect();
        let former = std::mem::replace(&mut self.in_service, in_service);
        if !self.in_service.is_subset(&former) {
            self.refused.values_mut().for_each(|refused| refused.retry_at = now);
        }
    }

    /// Notes since when components are missing, and forgets what is there again.
    fn note_missing(&mut self, now: Instant, view: &View, restless: &[&DiskRecord]) {
        let mut missing = BTreeMap::new();
        for disk in restless {
            for member in &disk.roster.members {
                let key = (disk.id, member.component);
                let (_, component) =
                    disk.component(member.component).expect("the roster names what is there");
                let comes = disk.incoming.iter().any(|one| one.component.id == member.component)
                    || member.stands_in_for().is_some();
                let is_behind = !comes && member.standing != Standing::Active;
                let before = self.missing.get(&key).copied();
                let since = match view.ground_of(disk, &component) {
                    Ground::HostAway(since) | Ground::DeviceAway(since) => Some(since.min(now)),
                    Ground::Unknown | Ground::DeviceFailed => Some(now),
                    Ground::Unsure if is_behind || before.is_some() => Some(now),
                    Ground::Here if is_behind => Some(now),
                    Ground::Unsure | Ground::Here => None,
                };
                if let Some(since) = since {
                    missing.insert(key, before.map_or(since, |before| before.min(since)));
                }
            }
        }
        self.missing = missing;
        // Of a disk at rest nothing is due that could be refused.
        let of = |disk: &DiskId| restless.binary_search_by_key(disk, |one| one.id).map(|at| restless[at]);
        let is_there = |disk: &DiskId, slot: &Slot| match (of(disk), slot) {
            (Err(_), _) => false,
            (Ok(disk), Slot::Component(id)) => {
                disk.component(*id).is_some() && disk.incoming_for(*id).is_none()
            }
            (Ok(disk), Slot::Copy(place)) => *place < disk.layout.place_count(),
        };
        self.refused.retain(|(disk, slot), _| is_there(disk, slot));
    }

    /// Notes since when what owners tell of their resyncs is the same.
    fn note_unmoved(&mut self, now: Instant, view: &View, restless: &[&DiskRecord]) {
        let mut unmoved = BTreeMap::new();
        for disk in restless {
            let is_filled = |one: &&replication::Member| !one.standing.counts() && one.role == Role::Copy;
            for member in disk.roster.members.iter().filter(is_filled) {
                let key = (disk.id, member.component);
                let component = disk.component(member.component).map(|(_, found)| found);
                let Some(told) = told(view, disk.id, member.component) else { continue };
                if component.is_some_and(|one| view.ground_of(disk, &one) == Ground::Here) {
                    let copied = told.resync.map(|(copied, _)| copied);
                    let before = self.unmoved.get(&key).filter(|(bytes, _)| *bytes == copied);
                    unmoved.insert(key, before.copied().unwrap_or((copied, now)));
                }
            }
        }
        self.unmoved = unmoved;
    }

    /// Components on their way in that have arrived, or shall not come after all.
    fn ends(&self, now: Instant, view: &View, disk: &DiskRecord) -> Vec<Step> {
        let end = |one: &Incoming| {
            let id = one.component.id;
            let member = disk.roster.member(id).expect("the roster names what comes");
            let is_here = view.ground_of(disk, &one.component) == Ground::Here;
            let replaced = one.replaces.and_then(|lost| disk.component(lost)).map(|(_, found)| found);
            let is_replaced_sound = replaced.is_some_and(|found| view.is_sound(disk, found.id));
            if member.standing == Standing::Active {
                return match (is_here, is_replaced_sound) {
                    (true, _) => Some(Step::Finish(id)),
                    (false, true) => Some(Step::Cancel(id, Because::Lost)),
                    (false, false) => None,
                };
            }
            if self.is_lost(now, view, disk, one) {
                return Some(Step::Cancel(id, Because::Lost));
            }
            if is_unwanted_at(view, disk, &one.component) {
                return Some(Step::Cancel(id, Because::Leaving));
            }
            if self.are_off() || (one.reason == Reason::Balance && !self.settings.evens_out) {
                return Some(Step::Cancel(id, Because::Unwanted));
            }
            let is_for_need = matches!(one.reason, Reason::Repair | Reason::Evacuation);
            let is_needed = replaced.is_some_and(|found| self.why(now, view, disk, &found).is_some());
            let place = usize::from(one.place);
            let is_for_domain = one.reason == Reason::Policy && one.replaces.is_some();
            let is_sharing = replaced.is_some_and(|found| domains::is_sharing(view, disk, place, &found));
            let is_idle = is_replaced_sound && !is_needed && (is_for_need || (is_for_domain && !is_sharing));
            is_idle.then_some(Step::Cancel(id, Because::Returned))
        };
        // Only what has no place for another: a replacement needs no time without a seat.
        let is_refused = |id: &ComponentId| self.refused.contains_key(&(disk.id, Slot::Component(*id)));
        let given_up = due::without_host(view, disk).into_iter().filter(is_refused).map(Step::GiveUp);
        disk.incoming.iter().filter_map(end).chain(given_up).collect()
    }

    /// Whether a component that is not active yet will not be.
    fn is_lost(&self, now: Instant, view: &View, disk: &DiskRecord, one: &Incoming) -> bool {
        let id = one.component.id;
        let is_stale = disk.roster.member(id).is_some_and(|member| member.standing == Standing::Stale);
        let has_failed = view.ground_of(disk, &one.component) == Ground::DeviceFailed;
        let is_due = self.due_at(disk.id, id).is_some_and(|at| at <= now);
        let trouble = told(view, disk.id, id).and_then(|told| told.trouble);
        let has_no_room = trouble.is_some_and(LeftBecause::is_no_room);
        is_stale || has_failed || is_due || has_no_room
    }

    /// Whether the bounds let a component be filled that stands in for another until now.
    fn may_inherit(
        &mut self,
        now: Instant,
        disk: &DiskRecord,
        heir: ComponentId,
        budget: &mut Budget<'_>,
    ) -> bool {
        let member = disk.roster.member(heir).expect("the roster names what stands in");
        let of = member.role.of().expect("it stands in for another");
        if budget.is_full(member.node.host, self.settings) {
            return false;
        }
        self.count(now, (disk.id, Slot::Component(of)), member.node.host, budget);
        true
    }

    /// Finds places for what is due, as many as the budget lets begin.
    fn begin(
        &mut self,
        now: Instant,
        view: &View,
        job: &Job<'_>,
        budget: &mut Budget<'_>,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Vec<Coming> {
        let Job { disk, due, .. } = job;
        let waits =
            |due: &Due| self.refused.get(&(disk.id, due.slot)).is_some_and(|refused| refused.retry_at > now);
        if due.iter().all(waits) {
            return Vec::new();
        }
        let layout = disk.layout_to_come();
        let placed = disk.placed(&layout, view.used(disk.id));
        let lost = |due: &Due| match due.slot {
            Slot::Component(id) => disk.component(id).map(|(_, found)| found.device),
            Slot::Copy(_) => None,
        };
        let lost = due.iter().filter_map(lost).collect();
        let devices = disk.without_leaving(budget.spaces.all(), &lost);
        let mut found: Vec<(Due, Component)> = Vec::new();
        for (slot, outcome) in self.places_for(&placed, due, &devices, budget, ids, seed) {
            let due = *due.iter().find(|due| due.slot == slot).expect("only what is due was asked for");
            match outcome {
                Ok(component) => {
                    self.refused.remove(&(disk.id, slot));
                    found.push((due, component));
                }
                Err(cause) => {
                    let since = self.refused.get(&(disk.id, slot)).map_or(now, |refused| refused.since);
                    let retry_at = now + REFUSED_RETRY;
                    self.refused.insert((disk.id, slot), Refused { cause, since, retry_at });
                }
            }
        }
        found.sort_by_key(|(due, _)| (due.sound, due.why.urgency(), due.slot));
        let nodes = view.nodes();
        let coming = |(due, component): (Due, Component)| Coming {
            node: nodes[&component.device],
            incoming: incoming(due, component),
            why: due.why,
        };
        let found = found.into_iter().map(coming).collect();
        let begun = self.admit(now, found, disk, budget);
        for one in &begun {
            let component = one.incoming.component;
            let device = budget.spaces.of(component.device);
            device.expect("it was chosen").add(&placed.footprint(usize::from(one.incoming.place)));
        }
        begun
    }

    /// Places for what is due, or why there are none. Hosts that fill as many as they may are passed over: the emptiest
    /// device would be everybody's choice, and all else would wait for its host. What only they could take waits.
    fn places_for(
        &self,
        placed: &placement::PlacedDisk<'_>,
        due: &[Due],
        devices: &[DeviceSpace],
        budget: &Budget<'_>,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Vec<(Slot, Result<Component, Cause>)> {
        let is_full = |device: &DeviceSpace| budget.is_full(device.host, self.settings);
        if !devices.iter().any(is_full) {
            return outcomes(placed, due, devices, ids, seed);
        }
        let mut idle = devices.to_vec();
        idle.iter_mut().filter(|device| is_full(device)).for_each(|device| device.in_service = false);
        let mut found = outcomes(placed, due, &idle, ids, seed);
        if found.iter().any(|(_, outcome)| outcome.is_err()) {
            let anywhere: BTreeMap<Slot, Result<Component, Cause>> =
                outcomes(placed, due, devices, ids, seed).into_iter().collect();
            found.retain_mut(|(slot, outcome)| match (outcome.is_ok(), anywhere.get(slot)) {
                (true, _) => true,
                (false, Some(Ok(_)) | None) => false,
                (false, Some(Err(cause))) => {
                    *outcome = Err(cause.clone());
                    true
                }
            });
        }
        found
    }

    /// Takes what the bounds allow.
    fn admit(
        &mut self,
        now: Instant,
        found: Vec<Coming>,
        disk: &DiskRecord,
        budget: &mut Budget<'_>,
    ) -> Vec<Coming> {
        let Settings { replacements_max, replacements_per_host_max, .. } = self.settings;
        // With an explicit number of stripes, components that left one device together must come to one device
        // together: chosen one after the other, they would take more devices than the policy says.
        if matches!(disk.policy.stripes, Stripes::Exactly(2..)) {
            if budget.coming > 0 && budget.coming + found.len() > replacements_max {
                return Vec::new();
            }
            found
                .iter()
                .for_each(|one| self.count(now, (disk.id, slot_of(&one.incoming)), one.node.host, budget));
            return found;
        }
        let mut begun = Vec::new();
        for one in found {
            let of_host = budget.of_host.get(&one.node.host).copied().unwrap_or(0);
            if budget.coming < replacements_max && of_host < replacements_per_host_max {
                self.count(now, (disk.id, slot_of(&one.incoming)), one.node.host, budget);
                begun.push(one);
            }
        }
        begun
    }

    /// Counts a component that is to come. What was decided a while ago and is in no record yet does not count: its actor
    /// cannot, or sees things in another way, and others are not to wait for it.
    fn count(&mut self, now: Instant, key: (DiskId, Slot), host: HostId, budget: &mut Budget) {
        let since = budget.awaited.get(&key).copied().unwrap_or(now);
        self.awaited.insert(key, since);
        if now.since(since) < ACTOR_PATIENCE {
            budget.coming += 1;
            *budget.of_host.entry(host).or_default() += 1;
        }
    }
}

/// A component that stands in for one that is to be replaced, and counts.
fn heir(disk: &DiskRecord, due: &[Due]) -> Option<ComponentId> {
    let of = |due: &Due| match due.slot {
        Slot::Component(id) => disk.roster.stand_in_of(id).map(|one| one.component),
        Slot::Copy(_) => None,
    };
    due.iter().find_map(of)
}

/// Who works on a disk.
pub(crate) enum Acting {
    /// Its owner.
    Owner(NodeId),
    /// The node that is to own it.
    Claims(NodeId),
    /// Nobody can.
    Nobody,
}

/// The owner, or else the node with the most sound components, if none of the disk is out of reach.
pub(crate) fn acting(view: &View, disk: &DiskRecord) -> Acting {
    if let Some(owner) = disk.roster.owner {
        let record = view.hosts.get(&owner.node.host);
        let node = record.and_then(|host| host.nodes.iter().find(|node| node.id == owner.node));
        let is_same = node.is_some_and(|node| node.incarnation == owner.incarnation);
        let is_away = matches!(view.liveness(owner.node.host), crate::Liveness::Away { .. });
        if is_same && !is_away {
            return Acting::Owner(owner.node);
        }
    }
    if (0..disk.layout.place_count()).any(|place| !view.is_served(disk, place)) {
        return Acting::Nobody;
    }
    let mut sound: BTreeMap<NodeId, usize> = BTreeMap::new();
    for member in disk.roster.members.iter().filter(|one| view.is_sound(disk, one.component)) {
        *sound.entry(member.node).or_default() += 1;
    }
    let is_serviced =
        |node: &NodeId| view.hosts.get(&node.host).is_some_and(|host| host.maintenance != Maintenance::Off);
    let best =
        sound.into_iter().max_by_key(|(node, count)| (!is_serviced(node), *count, std::cmp::Reverse(*node)));
    best.map_or(Acting::Nobody, |(node, _)| Acting::Claims(node))
}

pub(crate) fn told(view: &View, disk: DiskId, component: ComponentId) -> Option<&MemberState> {
    view.owners.get(&disk)?.members.iter().find(|one| one.component == component)
}

/// How the host of a component is being serviced.
pub(crate) fn mode_of(view: &View, disk: &DiskRecord, component: &Component) -> Option<Mode> {
    view.device_of(disk, component).and_then(|(host, _)| host.maintenance.mode())
}

/// Whether nothing is to come to where a component stands: its device is to be emptied, or its host, as far as needed.
pub(crate) fn is_unwanted_at(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    mode_of(view, disk, component).is_some_and(|mode| mode != Mode::NoAction)
        || is_leaving(view, disk, component)
}

/// Whether the device of a component is to be emptied.
fn is_leaving(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    view.device_of(disk, component).is_some_and(|(_, device)| device.leaving.is_some())
}

/// Whether a component has to leave a device that is to be emptied, or a host that is, or will be, serviced.
pub(crate) fn must_leave(view: &View, disk: &DiskRecord, component: &Component) -> bool {
    if is_leaving(view, disk, component) {
        return true;
    }
    match mode_of(view, disk, component) {
        None | Some(Mode::NoAction) => false,
        Some(Mode::FullEvacuation) => true,
        Some(Mode::EnsureAccessibility) => {
            let (place, _) = disk.component(component.id).expect("it is the disk's");
            let stays = |id: &ComponentId| {
                let (_, other) = disk.component(*id).expect("it is sound");
                *id != component.id && mode_of(view, disk, &other).is_none()
            };
            !view.sound(disk, place).iter().any(stays)
        }
    }
}

/// What a component on its way in is for.
fn slot_of(one: &Incoming) -> Slot {
    one.replaces.map_or(Slot::Copy(usize::from(one.place)), Slot::Component)
}

fn outcomes(
    placed: &placement::PlacedDisk<'_>,
    due: &[Due],
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Vec<(Slot, Result<Component, Cause>)> {
    let lost = |due: &Due| match due.slot {
        Slot::Component(id) => Some(id),
        Slot::Copy(_) => None,
    };
    let lost: BTreeSet<ComponentId> = due.iter().filter_map(lost).collect();
    if !lost.is_empty() {
        let replacements = repair(placed, &lost, devices, ids, seed);
        return replacements.into_iter().map(|one| (Slot::Component(one.lost), one.outcome)).collect();
    }
    let places: BTreeSet<usize> = due.iter().map(|due| due.place).collect();
    let additions = add_copies(placed, devices, ids, seed).into_iter();
    let wanted = additions.filter(|addition| places.contains(&addition.place));
    wanted.map(|addition| (Slot::Copy(addition.place), addition.outcome)).collect()
}

fn incoming(due: Due, component: Component) -> Incoming {
    let reason = match due.why {
        Why::DeviceFailed | Why::Stale | Why::Gone | Why::NoRoom | Why::Absent { .. } => Reason::Repair,
        Why::Evacuation => Reason::Evacuation,
        // A policy asks for copies that fail apart; one that takes the seat of another is told from one that is added.
        Why::Debt | Why::Domain => Reason::Policy,
        Why::Balance => Reason::Balance,
    };
    let replaces = match due.slot {
        Slot::Component(id) => Some(id),
        Slot::Copy(_) => None,
    };
    Incoming { place: due.place as u16, component, replaces, reason }
}

#[cfg(test)]
mod tests;
