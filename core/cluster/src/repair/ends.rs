//! Ends of repairs: incoming components that arrived or are called off, and copies that a disk gives up.

use super::Repairs;
use super::decision::{Because, Slot, Step};
use super::leaving::is_unwanted_at;
use crate::disk::{DiskRecord, Incoming, Reason};
use crate::domains;
use crate::view::{Ground, View};
use base::{ComponentId, Instant};
use layout::Component;
use replication::Standing;
use replication::owner::LeftBecause;

impl Repairs {
    /// Incoming components that have arrived or are to be called off.
    pub(super) fn ends(&self, now: Instant, view: &View, disk: &DiskRecord) -> Vec<Step> {
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
        // Only components without a device for a replacement: a replacement needs no time without a seat.
        let is_refused = |id: &ComponentId| self.refused.contains_key(&(disk.id, Slot::Component(*id)));
        let given_up = without_host(view, disk).into_iter().filter(is_refused).map(Step::GiveUp);
        disk.incoming.iter().filter_map(end).chain(given_up).collect()
    }

    /// Whether an incoming component that is not active is lost.
    fn is_lost(&self, now: Instant, view: &View, disk: &DiskRecord, one: &Incoming) -> bool {
        let id = one.component.id;
        let is_stale = disk.roster.member(id).is_some_and(|member| member.standing == Standing::Stale);
        let has_failed = view.ground_of(disk, &one.component) == Ground::DeviceFailed;
        let is_due = self.due_at(disk.id, id).is_some_and(|at| at <= now);
        let trouble = view.member_state(disk.id, id).and_then(|report| report.trouble);
        let has_no_room = trouble.is_some_and(LeftBecause::is_no_room);
        is_stale || has_failed || is_due || has_no_room
    }
}

/// Copies that no host of the cluster will have again: they are stale, their host was taken out, and no component is
/// incoming for their seats. In the record they would keep their device from taking another copy of the place, should
/// it come back with another host.
fn without_host(view: &View, disk: &DiskRecord) -> Vec<ComponentId> {
    let is_out = |copy: &Component| {
        let member = disk.roster.member(copy.id).expect("the roster names the layout");
        member.standing == Standing::Stale && !view.hosts.contains_key(&member.node.host)
    };
    let is_free =
        |copy: &Component| disk.incoming_for(copy.id).is_none() && disk.stand_in_for(copy.id).is_none();
    let mut found = Vec::new();
    for (place, copies) in disk.layout.places() {
        let (out, stay): (Vec<&Component>, Vec<&Component>) =
            copies.iter().partition(|copy| is_out(copy) && is_free(copy));
        if !stay.is_empty() && view.left(disk, place) > 0 {
            found.extend(out.into_iter().map(|copy| copy.id));
        }
    }
    found
}
