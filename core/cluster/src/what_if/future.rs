//! A view that proceeds by itself: decisions are carried out at once, and copies arrive.

use super::forecast::{Change, Evens};
use crate::balance::Balancer;
use crate::disk::{DiskRecord, DiskState, MovePlan, Objection, Transition};
use crate::limits::{FORECAST_ROUNDS_MAX, REFUSED_RETRY};
use crate::repair::{Action, Repairs, Settings, Step};
use crate::view::{Ground, View};
use base::{ComponentId, DeviceId, DiskId, Instant};
use layout::Component;
use placement::{Balance, DeviceSpace, Footprint, Policy};
use replication::{Moved as Boundary, Numbers, OwnedBy, Role, Standing};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes copied for a disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Moved {
    pub(super) bytes: u64,
    pub(super) targets: BTreeMap<DeviceId, u64>,
}

/// The reason for a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Need,
    Evenness,
}

pub(super) struct Future {
    pub(super) view: View,
    pub(super) moved: BTreeMap<DiskId, Moved>,
    pub(super) bytes_to_copy: u64,
    pub(super) bytes_to_even: u64,
    pub(super) bytes_freed: u64,
    repairs: Repairs,
    balancer: Balancer,
    now: Instant,
    seed: u64,
    last_id: u64,
}

impl Future {
    pub(super) fn new(view: View, now: Instant, seed: u64) -> Future {
        // Every missing component is replaced at once, without bounds: only the outcome matters.
        let at_once = Settings {
            delay: Duration::ZERO,
            replacements_max: usize::MAX / 2,
            replacements_per_host_max: usize::MAX / 2,
            evens_out: true,
        };
        Future {
            view,
            moved: BTreeMap::new(),
            bytes_to_copy: 0,
            bytes_to_even: 0,
            bytes_freed: 0,
            repairs: Repairs::new(at_once),
            balancer: Balancer::default(),
            now,
            seed,
            last_id: u64::MAX,
        }
    }

    /// Proceeds until nothing is left to do.
    pub(super) fn unfold(&mut self, evens: Evens) {
        for _ in 0..FORECAST_ROUNDS_MAX {
            self.settle();
            // Refused replacements are tried again: room may have been freed.
            self.now = self.now + REFUSED_RETRY;
            let (actions, cause) = self.decide(evens);
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.perform(&action, cause);
            }
        }
    }

    fn decide(&mut self, evens: Evens) -> (Vec<Action>, Cause) {
        let mut ids = ids_below(&mut self.last_id);
        let actions = self.repairs.step(self.now, &self.view, &mut ids, self.seed).actions;
        if !actions.is_empty() || evens == Evens::Nothing {
            return (actions, Cause::Need);
        }
        let mut actions = self.balancer.step(&self.view, &mut ids, self.seed);
        let is_wanted = evens == Evens::Uneven || self.balancer.balance() == Balance::Reactive;
        actions.retain(|_| is_wanted);
        (actions, Cause::Evenness)
    }

    /// Why disks stay without what they lack.
    pub(super) fn refused(&self) -> Vec<(DiskId, String)> {
        let mut causes: Vec<(DiskId, String)> =
            self.repairs.refused().iter().map(|((disk, _), one)| (*disk, one.cause.to_string())).collect();
        causes.dedup();
        causes
    }

    /// Changes the policy of a disk, as `disk set` does. Missing copies come with the repairs.
    pub(super) fn set_policy(&mut self, id: DiskId, policy: &Policy) -> Change {
        let Some(disk) = self.view.disks.get(&id).cloned() else {
            return Change::Refused("there is no such disk".to_owned());
        };
        if disk.policy == *policy && disk.moving.is_none() {
            return Change::Done;
        }
        let spaces = self.view.spaces();
        let changed = match disk.needs_move(policy) {
            true => self.move_over(&disk, policy, &spaces).map(Change::Moves),
            false => {
                disk.change_rules(policy, disk.follows.clone(), &spaces, self.view.used(id)).map(|change| {
                    self.adopt(&disk, change, Cause::Need);
                    Change::AtOnce
                })
            }
        };
        changed.unwrap_or_else(|objection| Change::Refused(objection.to_string()))
    }

    /// Moves all of a disk into the layout that a policy asks for.
    fn move_over(
        &mut self,
        disk: &DiskRecord,
        policy: &Policy,
        spaces: &[DeviceSpace],
    ) -> Result<MovePlan, Objection> {
        let used_bytes = self.view.used(disk.id).to_vec();
        let (nodes, follows) = (self.view.nodes(), disk.follows.clone());
        let begun = {
            let mut ids = ids_below(&mut self.last_id);
            disk.begin_move(policy, follows, spaces, &used_bytes, &nodes, &mut ids)?
        };
        let mut moved = begun.record.finish_growth()?.record;
        let size = moved.layout.size();
        moved.roster.moving = Some(Boundary { boundary: size, trimmed: size });
        moved.layout.set_boundary(size);
        let first = disk.layout.place_count();
        let made = moved.roster.members.iter_mut().filter(|one| usize::from(one.place) >= first);
        made.for_each(|one| one.lacks = Numbers::default()); // In the end it has all snapshots.
        let Transition { record, delete, .. } = moved.end_move()?;
        let plan = disk.plan_room(&record.layout, spaces, &used_bytes)?;
        let data = disk.data_bytes(&used_bytes);
        let share = |one: &Component| (u128::from(data) * u128::from(one.size) / u128::from(size)) as u64;
        let shares = record.layout.places().map(|(_, components)| share(&components[0])).collect();
        let freed = Transition { record: record.clone(), create: Vec::new(), update: Vec::new(), delete };
        self.adopt(disk, freed, Cause::Need);
        self.view.used_bytes.insert(disk.id, shares);
        let made = Transition { record: record.clone(), delete: Vec::new(), update: Vec::new(), ..begun };
        self.adopt(&record, made, Cause::Need);
        Ok(plan)
    }

    /// What a disk lacks of its policy, by its record.
    pub(super) fn owed(&self, id: DiskId) -> Vec<String> {
        let disk = self.view.disks.get(&id);
        disk.map_or_else(Vec::new, |disk| disk.debts.iter().map(ToString::to_string).collect())
    }

    fn perform(&mut self, action: &Action, cause: Cause) {
        let Some(disk) = self.view.disks.get(&action.disk).cloned() else { return };
        if action.step == Step::Claim {
            let host = self.view.hosts.get(&action.actor.host);
            let node = host.and_then(|host| host.nodes.iter().find(|node| node.id == action.actor));
            let incarnation = node.map_or(0, |node| node.incarnation);
            let known = self.view.disks.get_mut(&action.disk).expect("it was there a moment ago");
            known.roster.owner = Some(OwnedBy { node: action.actor, incarnation });
            return;
        }
        // A step that no longer fits the record is decided again in the next round.
        if let Ok(Some(transition)) = action.step.apply(&disk) {
            self.adopt(&disk, transition, cause);
        }
    }

    /// Takes a transition over, and counts components on devices.
    fn adopt(&mut self, before: &DiskRecord, transition: Transition, cause: Cause) {
        for (_, id) in &transition.delete {
            let Some((_, component)) = before.component(*id) else { continue };
            let footprint = self.footprint(before, *id);
            if self.view.ground(component.device) == Ground::Here {
                self.bytes_freed += footprint.data_bytes;
            }
            self.on_device(component.device, |device| {
                device.component_count = device.component_count.saturating_sub(1);
                device.free_bytes = (device.free_bytes + footprint.data_bytes).min(device.capacity_bytes);
                device.reserved_bytes = device.reserved_bytes.saturating_sub(promised(&footprint));
            });
        }
        for (_, new) in &transition.create {
            let footprint = self.footprint(&transition.record, new.id);
            self.on_device(new.device, |device| {
                device.component_count += 1;
                device.free_bytes = device.free_bytes.saturating_sub(footprint.data_bytes);
                device.reserved_bytes += promised(&footprint);
            });
            let moved = self.moved.entry(before.id).or_default();
            moved.bytes += footprint.data_bytes;
            *moved.targets.entry(new.device).or_default() += footprint.data_bytes;
            match cause {
                Cause::Need => self.bytes_to_copy += footprint.data_bytes,
                Cause::Evenness => self.bytes_to_even += footprint.data_bytes,
            }
        }
        self.view.disks.insert(before.id, transition.record);
    }

    fn footprint(&self, disk: &DiskRecord, id: ComponentId) -> Footprint {
        let layout = disk.layout_to_come();
        let place = disk.component(id).map(|(place, _)| place);
        place.map_or_else(Footprint::default, |place| {
            disk.placed(&layout, self.view.used(disk.id)).footprint(place)
        })
    }

    fn on_device(&mut self, id: DeviceId, change: impl FnOnce(&mut crate::DeviceRecord)) {
        let mut devices = self.view.hosts.values_mut().flat_map(|host| &mut host.devices);
        if let Some(device) = devices.find(|device| device.id == id) {
            change(device);
        }
    }

    /// Fills every component that is reachable, is not active, and has a source.
    fn settle(&mut self) {
        let mut filled: Vec<(DiskId, ComponentId)> = Vec::new();
        for disk in self.view.disks.values().filter(|disk| disk.state == DiskState::Active) {
            for member in disk.roster.members.iter().filter(|one| one.role == Role::Copy) {
                let device = disk.component(member.component).map(|(_, found)| found.device);
                let is_here = device.is_some_and(|device| self.view.ground(device) == Ground::Here);
                let has_source = self.view.left(disk, usize::from(member.place)) > 0;
                if member.standing == Standing::Absent && is_here && has_source {
                    filled.push((disk.id, member.component));
                }
            }
        }
        for (disk, component) in filled {
            let disk = self.view.disks.get_mut(&disk).expect("it was there a moment ago");
            let mut members = disk.roster.members.iter_mut();
            let member = members.find(|one| one.component == component);
            member.expect("it was there a moment ago").standing = Standing::Active;
        }
    }
}

fn promised(footprint: &Footprint) -> u64 {
    footprint.reservation_bytes.saturating_sub(footprint.data_bytes)
}

/// Fresh ids, from the greatest possible one downwards.
fn ids_below(last: &mut u64) -> impl FnMut() -> ComponentId {
    move || {
        *last -= 1;
        ComponentId(*last)
    }
}
