//! Repairs: which components are replaced, when, and by which node.
//!
//! A component on a failed device, one that lost data and one that has to leave its host are replaced at once. A
//! missing component may come back, so the repair delay passes first. All free space of the cluster is spare space.
//! All nodes decide for all disks, and each carries out its own part. So the bounds hold for the whole cluster, as
//! far as the nodes see the same view. Two rules keep nodes from waiting for each other: priority follows from the
//! records alone and not from a host's own notes, and a decision that nobody carries out for a while no longer
//! counts. A replacement and the return of the replaced component race: whichever is active first stays. Must never
//! begin a component that has no source, and never remove one that the last copy depends on.

pub(crate) mod actor;
mod budget;
mod decision;
mod due;
mod ends;
pub(crate) mod leaving;

use crate::disk::{DiskRecord, DiskState, Incoming, Reason};
use crate::limits::{ACTOR_PATIENCE, REFUSED_RETRY};
use crate::view::{Ground, View};
use actor::{Acting, acting};
use base::{ComponentId, DeviceId, DiskId, HostId, Instant, NodeId};
use budget::Budget;
use decision::Due;
pub(crate) use decision::NOT_REPLACED;
pub use decision::{Action, Because, Coming, Decisions, Refused, Settings, Slot, Step, Why};
use layout::Component;
use placement::{Cause, DeviceSpace, Stripes, add_copies, repair};
use replication::{Role, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// Decides about repairs. It remembers since when states have lasted; after a restart it only waits longer.
#[derive(Debug, Clone, Default)]
pub struct Repairs {
    settings: Settings,
    missing: BTreeMap<(DiskId, ComponentId), Instant>,
    /// Bytes copied to reachable components that are not active, and since when the number has not changed.
    progress: BTreeMap<(DiskId, ComponentId), (Option<u64>, Instant)>,
    refused: BTreeMap<(DiskId, Slot), Refused>,
    /// The devices that could take components at the last decision.
    in_service: BTreeSet<DeviceId>,
    /// Decided components that no record has yet, since when.
    awaited: BTreeMap<(DiskId, Slot), Instant>,
    /// The disks that anything may have to be done about, as of the last decision.
    to_check: Vec<DiskId>,
}

/// A disk with work to do.
struct Job<'a> {
    disk: &'a DiskRecord,
    actor: NodeId,
    due: Vec<Due>,
    /// The stand-in of a component that is due, which takes its seat. It is filled like any other.
    heir: Option<ComponentId>,
}

impl Repairs {
    /// No repairs and no history.
    pub fn new(settings: Settings) -> Repairs {
        Repairs { settings, ..Repairs::default() }
    }

    /// Changes the settings.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Whether the settings forbid replacements.
    pub fn are_off(&self) -> bool {
        self.settings.replacements_max == 0
    }

    /// Replacements for which no device was found, by disk.
    pub fn refused(&self) -> &BTreeMap<(DiskId, Slot), Refused> {
        &self.refused
    }

    /// The disks that anything may have to be done about, as of the last decision.
    pub(crate) fn disks_to_check<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a DiskRecord> {
        self.to_check.iter().filter_map(|id| view.disks.get(id))
    }

    /// When a missing component is replaced if it does not come back; none if it is not missing.
    pub fn due_at(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.missing.get(&(disk, component)).map(|since| *since + self.settings.delay)
    }

    /// Since when a component is missing.
    pub(crate) fn missing_since(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.missing.get(&(disk, component)).copied()
    }

    /// Since when nothing was copied to a reachable component that is not active.
    pub(crate) fn stalled_since(&self, disk: DiskId, component: ComponentId) -> Option<Instant> {
        self.progress.get(&(disk, component)).map(|(_, since)| *since)
    }

    /// Decides. `ids` gives a fresh component id at every call; the same arguments give the same decisions.
    pub fn step(
        &mut self,
        now: Instant,
        view: &View,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Decisions {
        let to_check = view.disks_to_check();
        self.to_check = to_check.iter().map(|disk| disk.id).collect();
        self.note_missing(now, view, &to_check);
        self.note_progress(now, view, &to_check);
        let mut actions = Vec::new();
        let mut jobs = Vec::new();
        for disk in to_check.into_iter().filter(|disk| disk.state == DiskState::Active) {
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
                    // A stand-in takes the seat. Until it is active, this is waited for.
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

    /// Tries refused replacements again once a device can take components that could not before.
    fn note_devices(&mut self, now: Instant, view: &View) {
        let in_service = view.in_service().map(|(_, device)| device.id).collect();
        let former = std::mem::replace(&mut self.in_service, in_service);
        if !self.in_service.is_subset(&former) {
            self.refused.values_mut().for_each(|refused| refused.retry_at = now);
        }
    }

    /// Notes since when components are missing, and forgets those that are back.
    fn note_missing(&mut self, now: Instant, view: &View, to_check: &[&DiskRecord]) {
        let mut missing = BTreeMap::new();
        for disk in to_check {
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
        // A disk without work has nothing due that could be refused.
        let of = |disk: &DiskId| to_check.binary_search_by_key(disk, |one| one.id).map(|at| to_check[at]);
        let is_there = |disk: &DiskId, slot: &Slot| match (of(disk), slot) {
            (Err(_), _) => false,
            (Ok(disk), Slot::Component(id)) => {
                disk.component(*id).is_some() && disk.incoming_for(*id).is_none()
            }
            (Ok(disk), Slot::Copy(place)) => *place < disk.layout.place_count(),
        };
        self.refused.retain(|(disk, slot), _| is_there(disk, slot));
    }

    /// Notes since when the progress that owners report has not changed.
    fn note_progress(&mut self, now: Instant, view: &View, to_check: &[&DiskRecord]) {
        let mut progress = BTreeMap::new();
        for disk in to_check {
            let is_filled = |one: &&replication::Member| !one.standing.counts() && one.role == Role::Copy;
            for member in disk.roster.members.iter().filter(is_filled) {
                let key = (disk.id, member.component);
                let component = disk.component(member.component).map(|(_, found)| found);
                let Some(report) = view.member_state(disk.id, member.component) else { continue };
                if component.is_some_and(|one| view.ground_of(disk, &one) == Ground::Here) {
                    let copied = report.resync.map(|(copied, _)| copied);
                    let before = self.progress.get(&key).filter(|(bytes, _)| *bytes == copied);
                    progress.insert(key, before.copied().unwrap_or((copied, now)));
                }
            }
        }
        self.progress = progress;
    }

    /// Whether the bounds allow a stand-in to be filled.
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

    /// Finds devices for due components, as many as the budget allows.
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

    /// Finds devices for due components, or says why there are none. Hosts that fill as many components as they may
    /// are passed over: otherwise every disk would choose the emptiest device and wait for its host. A component that
    /// only such hosts could take waits.
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

    /// Takes as many as the bounds allow.
    fn admit(
        &mut self,
        now: Instant,
        found: Vec<Coming>,
        disk: &DiskRecord,
        budget: &mut Budget<'_>,
    ) -> Vec<Coming> {
        let Settings { replacements_max, replacements_per_host_max, .. } = self.settings;
        // With an explicit number of stripes, components that left one device together must go to one device
        // together. Chosen one after the other, they would take more devices than the policy says.
        if matches!(disk.policy.stripes, Stripes::Exactly(2..)) {
            if budget.coming > 0 && budget.coming + found.len() > replacements_max {
                return Vec::new();
            }
            found
                .iter()
                .for_each(|one| self.count(now, (disk.id, Slot::of(&one.incoming)), one.node.host, budget));
            return found;
        }
        let mut begun = Vec::new();
        for one in found {
            let of_host = budget.of_host.get(&one.node.host).copied().unwrap_or(0);
            if budget.coming < replacements_max && of_host < replacements_per_host_max {
                self.count(now, (disk.id, Slot::of(&one.incoming)), one.node.host, budget);
                begun.push(one);
            }
        }
        begun
    }

    /// Counts a decided component. One decided a while ago that is in no record yet does not count: its actor cannot
    /// carry it out or sees another view, and others must not wait for it.
    fn count(&mut self, now: Instant, key: (DiskId, Slot), host: HostId, budget: &mut Budget) {
        let since = budget.awaited.get(&key).copied().unwrap_or(now);
        self.awaited.insert(key, since);
        if now.since(since) < ACTOR_PATIENCE {
            budget.coming += 1;
            *budget.of_host.entry(host).or_default() += 1;
        }
    }
}

/// The active stand-in of a component that is to be replaced.
fn heir(disk: &DiskRecord, due: &[Due]) -> Option<ComponentId> {
    let of = |due: &Due| match due.slot {
        Slot::Component(id) => disk.roster.stand_in_of(id).map(|one| one.component),
        Slot::Copy(_) => None,
    };
    due.iter().find_map(of)
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
    // How many copies a place has is a matter of the move while the disk has two layouts.
    let has_two = placed.layout.boundary().is_some();
    let additions = if has_two { Vec::new() } else { add_copies(placed, devices, ids, seed) }.into_iter();
    let wanted = additions.filter(|addition| places.contains(&addition.place));
    wanted.map(|addition| (Slot::Copy(addition.place), addition.outcome)).collect()
}

fn incoming(due: Due, component: Component) -> Incoming {
    let reason = match due.why {
        Why::DeviceFailed | Why::Stale | Why::Gone | Why::NoRoom | Why::Absent { .. } => Reason::Repair,
        Why::Evacuation => Reason::Evacuation,
        // `Policy` stands for two reasons. A move between fault domains replaces a component; an added copy does not.
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
