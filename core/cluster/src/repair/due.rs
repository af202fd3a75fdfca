//! Due components: which are to be replaced or added, and why.

use super::Repairs;
use super::decision::{Due, Slot, Why};
use super::leaving::must_leave;
use crate::disk::DiskRecord;
use crate::domains;
use crate::view::{Ground, View};
use base::{ComponentId, Instant};
use layout::Component;
use replication::Standing;
use replication::owner::LeftBecause;
use std::collections::BTreeSet;

impl Repairs {
    /// The components to be replaced, added or moved to another fault domain, if they have a source. Lost components
    /// come first; the rest waits until these have been replaced.
    pub(super) fn due(&mut self, now: Instant, view: &View, disk: &DiskRecord) -> Vec<Due> {
        let (mut due, mut idle) = (Vec::new(), Vec::new());
        for (place, copies) in disk.layout.places() {
            let sound = view.left(disk, place);
            if sound == 0 {
                continue;
            }
            for copy in copies.iter().filter(|copy| disk.incoming_for(copy.id).is_none()) {
                match self.why(now, view, disk, copy) {
                    Some(why) => due.push(Due { slot: Slot::Component(copy.id), place, why, sound }),
                    None => idle.push(copy.id),
                }
            }
        }
        let sharing = sharing(view, disk, &due);
        for id in idle {
            let slot = Slot::Component(id);
            if !sharing.iter().any(|due| due.slot == slot) {
                self.refused.remove(&(disk.id, slot));
            }
        }
        if !due.is_empty() {
            return due;
        }
        let debts = self.debts(view, disk);
        // A component without a device must not hold up others. Added copies and moved ones are placed by different
        // rules, so only one kind is tried at a time.
        let can_begin = |due: &&Due| {
            let refused = self.refused.get(&(disk.id, due.slot));
            refused.is_none_or(|refused| refused.retry_at <= now)
        };
        match (debts.iter().any(|due| can_begin(&due)), sharing.iter().any(|due| can_begin(&due))) {
            (true, _) => debts,
            (false, true) => sharing,
            (false, false) => debts.into_iter().chain(sharing).collect(),
        }
    }

    /// The copies that the policy asks for and the disk lacks.
    fn debts(&mut self, view: &View, disk: &DiskRecord) -> Vec<Due> {
        let mut debts = Vec::new();
        for (place, copies) in disk.layout_to_come().places() {
            let sound = view.left(disk, place);
            let slot = Slot::Copy(place);
            let is_of_rows = disk.layout.place_code(place).is_some();
            if copies.len() < disk.policy.copies() && sound > 0 && !is_of_rows {
                debts.push(Due { slot, place, why: Why::Debt, sound });
            } else {
                self.refused.remove(&(disk.id, slot));
            }
        }
        debts
    }

    /// Why a component of the layout is to be replaced now.
    pub(super) fn why(&self, now: Instant, view: &View, disk: &DiskRecord, copy: &Component) -> Option<Why> {
        if view.ground_of(disk, copy) == Ground::DeviceFailed {
            return Some(Why::DeviceFailed);
        }
        let member = disk.roster.member(copy.id).expect("the roster names the layout");
        let report = view.member_state(disk.id, copy.id);
        let trouble =
            report.and_then(|report| report.trouble).filter(|_| member.standing != Standing::Active);
        match trouble {
            Some(LeftBecause::LostWrites) => return Some(Why::Stale),
            Some(LeftBecause::Refused(wire::Refusal::NoComponent)) => return Some(Why::Gone),
            // A component that is being filled has got room.
            Some(why) if why.is_no_room() && report.is_some_and(|report| report.resync.is_none()) => {
                return Some(Why::NoRoom);
            }
            Some(
                LeftBecause::Refused(_)
                | LeftBecause::Unreachable
                | LeftBecause::Stuck
                | LeftBecause::Diverged
                | LeftBecause::Directory,
            )
            | None => {}
        }
        if member.standing == Standing::Stale {
            return Some(Why::Stale);
        }
        if must_leave(view, disk, copy) {
            return Some(Why::Evacuation);
        }
        let since = *self.missing.get(&(disk.id, copy.id))?;
        let is_filled = report.is_some_and(|report| report.resync.is_some());
        (!is_filled && now.since(since) >= self.settings.delay).then_some(Why::Absent { since })
    }
}

/// Copies that share a fault domain with others of their place, apart from those that are `due` anyway.
fn sharing(view: &View, disk: &DiskRecord, due: &[Due]) -> Vec<Due> {
    let of = |due: &Due| match due.slot {
        Slot::Component(id) => Some(id),
        Slot::Copy(_) => None,
    };
    let gone: BTreeSet<ComponentId> = due.iter().filter_map(of).collect();
    let due = |(place, copy): (usize, Component)| Due {
        slot: Slot::Component(copy.id),
        place,
        why: Why::Domain,
        sound: view.left(disk, place),
    };
    domains::to_move(view, disk, &gone).into_iter().map(due).collect()
}
