//! Which components stand in for missing ones. A stand-in takes the changes while a component is missing, so that
//! they are kept as often as the policy says (docs/design/0013).
//!
//! A stand-in begins as soon as the record has a component absent, long before that component is given up. It ends
//! when the component is back, or takes its seat when the component is replaced. Must never begin a stand-in without
//! a source. It needs no safety rule of its own: a stand-in that ends too early protects less and loses nothing.

use crate::disk::{DiskRecord, DiskState, StandIn};
use crate::limits::{STAND_IN_AFTER, STAND_IN_RETRY, STAND_INS_BEGUN_MAX};
use crate::repair::actor::{Acting, acting};
use crate::repair::leaving::{is_unwanted_at, mode_of};
use crate::repair::{Action, Because, Decisions, Repairs, Step};
use crate::view::{Ground, Spaces, View};
use base::{ComponentId, DiskId, Instant, NodeId};
use layout::Component;
use placement::{DeviceSpace, FaultDomain, repair};
use replication::owner::LeftBecause;
use replication::{Member, Role, Standing};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Decides about stand-ins. It remembers recent failures; after a restart it only tries again sooner.
#[derive(Debug, Clone, Default)]
pub struct StandIns {
    /// Components without a stand-in until then.
    retry_at: BTreeMap<(DiskId, ComponentId), Instant>,
}

impl StandIns {
    /// Decides, after `repairs` has decided for the same view. `is_wanted`: whether stand-ins are allowed. `ids`
    /// gives a fresh component id at every call. The same arguments give the same decisions.
    pub fn step(
        &mut self,
        now: Instant,
        view: &View,
        repairs: &Repairs,
        is_wanted: bool,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Decisions {
        self.retry_at.retain(|(disk, _), at| *at > now && view.disks.contains_key(disk));
        let mut decisions = Decisions::default();
        let mut spaces = Spaces::of_view(view);
        let mut room = STAND_INS_BEGUN_MAX;
        for disk in repairs.disks_to_check(view).filter(|disk| disk.state == DiskState::Active) {
            let Acting::Owner(actor) = acting(view, disk) else { continue };
            let action = |step| Action { disk: disk.id, actor, step };
            if let Some((component, because)) = self.end(now, view, disk, is_wanted) {
                decisions.actions.push(action(Step::Dismiss(component, because)));
                continue;
            }
            let missing = if is_wanted { missing(now, view, repairs, disk) } else { Missing::default() };
            decisions.wait_until = decisions.wait_until.into_iter().chain(missing.next).min();
            let mut due = missing.due;
            due.retain(|id| !self.retry_at.contains_key(&(disk.id, *id)));
            due.truncate(room);
            let begun = self.begin(now, view, disk, &due, &mut spaces, ids, seed);
            room -= begun.len();
            if !begun.is_empty() {
                decisions.actions.push(action(Step::StandIn(begun)));
            }
        }
        decisions.wait_until = decisions.wait_until.into_iter().chain(self.retry_at.values().copied()).min();
        decisions
    }

    /// A stand-in of a disk that is to end, and why.
    fn end(
        &mut self,
        now: Instant,
        view: &View,
        disk: &DiskRecord,
        is_wanted: bool,
    ) -> Option<(ComponentId, Because)> {
        for one in &disk.stand_ins {
            let id = one.component.id;
            let member = disk.roster.member(id).expect("the roster names what stands in");
            let of = disk.roster.member(one.of).expect("the roster names what it stands in for");
            let because = match of.standing {
                Standing::Active | Standing::StandIn => Some(Because::Returned),
                Standing::Absent | Standing::Stale if !is_wanted => Some(Because::Unwanted),
                Standing::Stale if member.standing != Standing::StandIn => Some(Because::GivenUp),
                Standing::Absent | Standing::Stale => why_lost(view, disk, one, member),
            };
            if let Some(because) = because {
                if because == Because::Lost {
                    self.retry_at.insert((disk.id, one.of), now + STAND_IN_RETRY);
                }
                return Some((id, because));
            }
        }
        None
    }

    /// Finds devices for stand-ins of components of a disk.
    #[expect(clippy::too_many_arguments, reason = "as in placement")]
    fn begin(
        &mut self,
        now: Instant,
        view: &View,
        disk: &DiskRecord,
        due: &[ComponentId],
        spaces: &mut Spaces<'_>,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Vec<(NodeId, StandIn)> {
        if due.is_empty() {
            return Vec::new();
        }
        let layout = disk.layout_to_come();
        let placed = disk.placed(&layout, view.used(disk.id));
        let nodes = view.nodes();
        let mut begun = Vec::new();
        for &of in due {
            let devices = allowed(disk, of, spaces.all());
            for found in repair(&placed, &BTreeSet::from([of]), &devices, ids, seed) {
                let chosen = found.outcome.ok().and_then(|one| Some((*nodes.get(&one.device)?, one)));
                let Some((node, component)) = chosen else {
                    self.retry_at.insert((disk.id, of), now + STAND_IN_RETRY);
                    continue;
                };
                let device = spaces.of(component.device);
                device.expect("it was chosen").add(&placed.footprint(found.place));
                begun.push((node, StandIn { place: found.place as u16, component, of }));
            }
        }
        begun
    }
}

/// Why a stand-in is to end although its component is not back.
fn why_lost(view: &View, disk: &DiskRecord, one: &StandIn, member: &Member) -> Option<Because> {
    let ground = view.ground_of(disk, &one.component);
    let trouble = view.member_state(disk.id, one.component.id).and_then(|report| report.trouble);
    let has_no_room = trouble.is_some_and(LeftBecause::is_no_room);
    let is_out = member.standing != Standing::StandIn;
    let is_away = matches!(ground, Ground::HostAway(_) | Ground::DeviceAway(_) | Ground::Unknown);
    if member.standing == Standing::Stale
        || ground == Ground::DeviceFailed
        || (is_out && (is_away || has_no_room))
    {
        return Some(Because::Lost);
    }
    is_unwanted_at(view, disk, &one.component).then_some(Because::Leaving)
}

/// Components of a disk that need a stand-in, and when the next one will need one.
#[derive(Debug, Default)]
struct Missing {
    due: Vec<ComponentId>,
    next: Option<Instant>,
}

fn missing(now: Instant, view: &View, repairs: &Repairs, disk: &DiskRecord) -> Missing {
    let mut missing = Missing::default();
    for (place, copies) in disk.layout.places() {
        if view.left(disk, place) == 0 {
            continue;
        }
        for copy in copies.iter().filter(|copy| may_need(view, repairs, disk, copy, now)) {
            let Some(since) = repairs.missing_since(disk.id, copy.id) else { continue };
            // A host in maintenance is known to be away for longer.
            let patience = if mode_of(view, disk, copy).is_some() { Duration::ZERO } else { STAND_IN_AFTER };
            match since + patience <= now {
                true => missing.due.push(copy.id),
                false => missing.next = missing.next.into_iter().chain([since + patience]).min(),
            }
        }
    }
    missing
}

/// Whether a component is absent, is neither resynced nor replaced, and has no stand-in.
fn may_need(view: &View, repairs: &Repairs, disk: &DiskRecord, copy: &Component, now: Instant) -> bool {
    let member = disk.roster.member(copy.id);
    let is_absent = member.is_some_and(|one| one.standing == Standing::Absent && one.role == Role::Copy);
    let is_filled = view.member_state(disk.id, copy.id).is_some_and(|report| report.resync.is_some());
    is_absent
        && !is_filled
        && view.ground_of(disk, copy) != Ground::DeviceFailed
        && disk.stand_in_for(copy.id).is_none()
        && disk.incoming_for(copy.id).is_none()
        && repairs.due_at(disk.id, copy.id).is_some_and(|at| at > now)
}

/// The devices that a stand-in may use: in no fault domain with a component of the place, the absent one included.
fn allowed(disk: &DiskRecord, of: ComponentId, spaces: &[DeviceSpace]) -> Vec<DeviceSpace> {
    let (place, _) = disk.component(of).expect("it is the disk's");
    let here: BTreeSet<_> = disk.place_components(place).map(|one| one.device).collect();
    let domains: Vec<FaultDomain<'_>> =
        spaces.iter().filter(|device| here.contains(&device.id)).map(DeviceSpace::domain).collect();
    let mut devices = spaces.to_vec();
    devices.iter_mut().filter(|one| domains.contains(&one.domain())).for_each(|one| one.in_service = false);
    devices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskRecord;
    use crate::host::Maintenance;
    use crate::host::Mode;
    use crate::testing::{at, cluster, counting_from, node};

    /// A disk with copies on host 1, which owns it, and another that is told, in a cluster of so many hosts.
    fn one_disk(hosts: u128) -> (View, u128) {
        let mut view = cluster(hosts, 1);
        view.add_disk(1, "default,stripes=1");
        let others: Vec<u128> = view.disk(1).roster.members.iter().map(|one| one.node.host.0).collect();
        let owner = replication::OwnedBy { node: node(others[0]), incarnation: 1 };
        view.disks.get_mut(&DiskId(1)).expect("it is there").roster.owner = Some(owner);
        (view, others[1])
    }

    struct Bench {
        view: View,
        repairs: Repairs,
        stand_ins: StandIns,
        is_wanted: bool,
    }

    impl Bench {
        fn new(view: View) -> Bench {
            Bench { view, repairs: Repairs::default(), stand_ins: StandIns::default(), is_wanted: true }
        }

        /// Decides at a second, and performs it.
        fn decide(&mut self, second: u64) -> Vec<Step> {
            let mut ids = counting_from(10_000 + 100 * second);
            let mut actions = self.repairs.step(at(second), &self.view, &mut ids, 1).actions;
            let of = (&self.view, &self.repairs, self.is_wanted);
            actions.extend(self.stand_ins.step(at(second), of.0, of.1, of.2, &mut ids, 1).actions);
            for action in &actions {
                let disk = self.view.disks.get_mut(&action.disk).expect("it is there");
                if let Some(change) = action.step.apply(disk).expect("nobody else changes it") {
                    *disk = change.record;
                }
            }
            actions.into_iter().map(|action| action.step).collect()
        }

        fn disk(&self) -> &DiskRecord {
            self.view.disk(1)
        }

        fn stand_in(&self) -> ComponentId {
            self.disk().stand_ins[0].component.id
        }
    }

    /// A disk in a cluster of so many hosts, one of its components missing, and the stand-in for it.
    fn with_stand_in(hosts: u128) -> (Bench, ComponentId, ComponentId) {
        let (mut view, host) = one_disk(hosts);
        let lost = view.component_on(1, host);
        view.lose_host(host, 100);
        let mut bench = Bench::new(view);
        bench.decide(102);
        let stand_in = bench.stand_in();
        (bench, lost, stand_in)
    }

    #[test]
    fn what_is_missing_has_a_stand_in_on_a_third_host_soon_and_none_once_it_is_back() {
        let (mut view, host) = one_disk(3);
        let lost = view.component_on(1, host);
        view.lose_host(host, 100);
        let mut bench = Bench::new(view);
        assert_eq!(bench.decide(101), [], "a process that restarts is back sooner");
        let steps = bench.decide(102);
        assert!(matches!(&steps[..], [Step::StandIn(begun)] if begun[0].1.of == lost), "{steps:?}");
        let hosts: BTreeSet<u128> = bench.disk().roster.members.iter().map(|one| one.node.host.0).collect();
        assert_eq!(hosts.len(), 3, "each on a host of its own");
        assert_eq!(bench.decide(103), [], "one is enough");
        let stand_in = bench.stand_in();
        bench.view.stand(stand_in, Standing::StandIn);
        bench.view.stand(lost, Standing::Active);
        assert_eq!(bench.decide(104), [Step::Dismiss(stand_in, Because::Returned)]);
        assert!(bench.disk().is_whole());
    }

    #[test]
    fn without_a_further_host_nothing_stands_in() {
        let (mut view, host) = one_disk(2);
        view.lose_host(host, 100);
        let mut bench = Bench::new(view);
        assert_eq!(bench.decide(110), []);
    }

    #[test]
    fn a_member_of_rows_has_one_while_enough_others_are_there() {
        let mut view = cluster(5, 1);
        view.add_disk(1, "default,method=parity,stripes=1");
        let members = &view.disk(1).roster.members;
        assert_eq!(members.len(), 4, "3 data and 1 parity");
        let hosts: Vec<u128> = members.iter().map(|one| one.node.host.0).collect();
        let owner = replication::OwnedBy { node: node(hosts[0]), incarnation: 1 };
        view.disks.get_mut(&DiskId(1)).expect("it is there").roster.owner = Some(owner);
        let lost = view.component_on(1, hosts[1]);
        view.lose_host(hosts[1], 100);
        let mut too_few = view.clone();
        let mut bench = Bench::new(view);
        let steps = bench.decide(102);
        assert!(matches!(&steps[..], [Step::StandIn(begun)] if begun[0].1.of == lost), "{steps:?}");
        let rows = |id| bench.disk().roster.member(id).and_then(|one| one.rows).expect("it is of rows");
        assert_eq!(rows(bench.stand_in()), rows(lost), "it gets what that one would have got");
        too_few.lose_host(hosts[2], 100);
        assert_eq!(Bench::new(too_few).decide(102), [], "two others do not have what it lacks");
    }

    #[test]
    fn what_stands_in_takes_the_seat_of_what_is_given_up() {
        let (mut bench, lost, stand_in) = with_stand_in(3);
        assert_eq!(bench.decide(100 + 3600), [], "it does not count yet, and soon will");
        bench.view.stand(stand_in, Standing::StandIn);
        assert_eq!(bench.decide(101 + 3600), [Step::Inherit(stand_in)]);
        assert_eq!(bench.disk().roster.member(stand_in).map(|one| one.role), Some(Role::Heir { of: lost }));
        bench.view.stand(stand_in, Standing::Active);
        assert_eq!(bench.decide(102 + 3600), [Step::Finish(stand_in)]);
        assert!(bench.disk().is_whole());
        assert_eq!(bench.disk().roster.member(stand_in).map(|one| one.role), Some(Role::Copy));
    }

    /// A host was removed while a stand-in was being filled. Owners do not fill a stand-in of a stale component, so the replacement waited for it
    /// without end.
    #[test]
    fn a_stand_in_that_does_not_count_yet_ends_when_its_component_is_given_up() {
        let (mut bench, lost, stand_in) = with_stand_in(3);
        bench.view.stand(lost, Standing::Stale);
        assert_eq!(bench.decide(110), [Step::Dismiss(stand_in, Because::GivenUp)]);
        let steps = bench.decide(111);
        assert!(
            matches!(&steps[..], [Step::Begin(coming)] if coming[0].incoming.replaces == Some(lost)),
            "{steps:?}"
        );
        assert_eq!(bench.decide(112), [], "it is waited for, and nothing stands in for what is replaced");
    }

    #[test]
    fn a_stand_in_whose_host_goes_is_replaced_by_another() {
        let (mut bench, _, first) = with_stand_in(4);
        let node = bench.disk().roster.member(first).expect("it is there").node;
        bench.view.lose_host(node.host.0, 110);
        assert_eq!(bench.decide(112), [Step::Dismiss(first, Because::Lost)]);
        assert_eq!(bench.decide(113), [], "not at once again");
        let steps = bench.decide(113 + 30);
        assert!(matches!(&steps[..], [Step::StandIn(begun)] if begun[0].0 != node), "{steps:?}");
    }

    #[test]
    fn hosts_that_are_serviced_take_none_and_keep_none() {
        let (mut bench, _, first) = with_stand_in(4);
        let node = bench.disk().roster.member(first).expect("it is there").node;
        let maintenance = Maintenance::Entering { mode: Mode::EnsureAccessibility, since: at(103) };
        bench.view.host_mut(node.host.0).maintenance = maintenance;
        assert_eq!(bench.decide(104), [Step::Dismiss(first, Because::Leaving)]);
        let steps = bench.decide(105);
        assert!(matches!(&steps[..], [Step::StandIn(begun)] if begun[0].0 != node), "{steps:?}");
    }

    #[test]
    fn when_they_are_not_wanted_none_begins_and_those_that_are_there_go() {
        let (mut bench, _, stand_in) = with_stand_in(3);
        bench.is_wanted = false;
        assert_eq!(bench.decide(103), [Step::Dismiss(stand_in, Because::Unwanted)]);
        assert_eq!(bench.decide(104), []);
    }
}
