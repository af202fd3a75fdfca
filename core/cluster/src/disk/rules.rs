//! Changing the policy of a disk.
//!
//! Copies are added and removed, and reservations change. No blocks move between columns: that would be a new disk.

use super::parts::{Incoming, Reason};
use super::{DiskRecord, Nodes, Objection, Transition, node_of};
use base::{ComponentId, DeviceId, HostId, NodeId};
use placement::{Addition, Breach, Debt, DeviceSpace, Method, Policy, add_copies, check, check_reservation};
use replication::Member;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl DiskRecord {
    /// Changes the policy: surplus copies are removed and missing ones added. With `force_provisioning`, a copy for
    /// which there is no room is a debt.
    ///
    /// # Errors
    /// When a rule of the policy cannot be kept.
    pub fn with_policy(
        &self,
        policy: &Policy,
        devices: &[DeviceSpace],
        nodes: &Nodes,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        policy.check_supported().map_err(placement::Cause::Unsupported).map_err(Objection::Cause)?;
        if self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing"));
        }
        let is_reshaped = policy.method != self.policy.method
            || (policy.method == Method::Parity
                && policy.failures_to_tolerate != self.policy.failures_to_tolerate);
        if is_reshaped {
            return Err(Objection::Shape);
        }
        let mut next = DiskRecord { policy: *policy, ..self.clone() };
        next.keep_stripes(devices)?;
        next.seat_arrived();
        next.drop_copies();
        let stay = next.clone();
        let gone = |member: &&Member| stay.roster.member(member.component).is_none();
        let delete = self.roster.members.iter().filter(gone).map(|one| (one.node, one.component)).collect();
        next.set_reservation(devices)?;
        let coming = next.copies_to_come(devices, nodes, ids, seed)?;
        let begun = next.begin_incoming(&coming)?;
        let transition = self.changed(begun.record);
        let is_new: BTreeSet<ComponentId> = begun.create.iter().map(|(_, one)| one.id).collect();
        let mut update = transition.record.components();
        update.retain(|(_, one)| !is_new.contains(&one.id));
        Ok(Transition { create: begun.create, update, delete, ..transition })
    }

    /// Changes rules that change at once, while guests use the disk, and the named policy that it follows. A larger
    /// reservation needs room on every device of the disk; with `force_provisioning`, what has none is a debt.
    ///
    /// # Errors
    /// When a rule cannot be kept, or does not change at once: then nothing changes.
    pub fn change_rules(
        &self,
        policy: &Policy,
        follows: Option<String>,
        devices: &[DeviceSpace],
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        policy.check_supported().map_err(placement::Cause::Unsupported).map_err(Objection::Cause)?;
        for rule in policy.differences(&self.policy) {
            if let Some(needs) = rule.change.needs() {
                let value = |policy: &Policy| policy.get(rule.name).unwrap_or_default();
                let (from, to) = (value(&self.policy), value(policy));
                return Err(Objection::NotLive { rule: rule.name, from, to, needs });
            }
        }
        let reserves = policy.space_reservation != self.policy.space_reservation;
        if reserves && self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing"));
        }
        let mut next = DiskRecord { policy: *policy, follows, ..self.clone() };
        if reserves {
            next.set_reservation(devices)?;
        }
        let transition = self.changed(next);
        let update = transition.record.components();
        Ok(Transition { update, ..transition })
    }

    /// The copies that the policy asks for beyond the present and the incoming ones.
    fn copies_to_come(
        &self,
        devices: &[DeviceSpace],
        nodes: &Nodes,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Result<Vec<(NodeId, Incoming)>, Objection> {
        let layout = self.layout_to_come();
        let devices = self.without_leaving(devices, &BTreeSet::new());
        let mut coming = Vec::new();
        for Addition { place, outcome } in add_copies(&self.placed(&layout, &[]), &devices, ids, seed) {
            match outcome {
                Ok(component) => {
                    let place = place as u16;
                    let one = Incoming { place, component, replaces: None, reason: Reason::Policy };
                    coming.push((node_of(nodes, component.device)?, one));
                }
                Err(_) if self.policy.force_provisioning => {}
                Err(cause) => return Err(Objection::Cause(cause)),
            }
        }
        Ok(coming)
    }

    /// The devices as the disk may use them. The `lost` devices and those that a component of the disk leaves count
    /// as out of service: until it has left, they would hold two components of one place.
    pub(crate) fn without_leaving(
        &self,
        devices: &[DeviceSpace],
        lost: &BTreeSet<DeviceId>,
    ) -> Vec<DeviceSpace> {
        let leaves = |one: &Incoming| self.component(one.replaces?).map(|(_, component)| component.device);
        let leaving: BTreeSet<DeviceId> =
            self.incoming.iter().filter_map(leaves).chain(lost.clone()).collect();
        let mut devices = devices.to_vec();
        devices.iter_mut().filter(|one| leaving.contains(&one.id)).for_each(|one| one.in_service = false);
        devices
    }

    fn keep_stripes(&mut self, devices: &[DeviceSpace]) -> Result<(), Objection> {
        self.debts.retain(|debt| debt.rule != "stripes");
        let breaches = check(&self.placed(&self.layout, &[]), devices);
        let Some(Breach::Stripes { wanted, found }) =
            breaches.iter().find(|breach| matches!(breach, Breach::Stripes { .. }))
        else {
            return Ok(());
        };
        let (wanted, got) = (wanted.to_string(), found.to_string());
        if !self.policy.force_provisioning {
            return Err(Objection::Stripes(wanted));
        }
        self.debts.push(Debt { rule: "stripes", wanted, got });
        Ok(())
    }

    fn set_reservation(&mut self, devices: &[DeviceSpace]) -> Result<(), Objection> {
        let share = self.policy.space_reservation;
        let layout = self.layout_to_come();
        match check_reservation(&self.placed(&layout, &[]), share, devices) {
            Ok(()) => self.space_reservation = share,
            Err(_) if self.policy.force_provisioning => {
                self.space_reservation = self.space_reservation.min(share);
            }
            Err(cause) => return Err(Objection::Cause(cause)),
        }
        Ok(())
    }

    /// Seats arrived components, so that all active ones are in the layout.
    fn seat_arrived(&mut self) {
        let coming = self.incoming.iter().map(|one| one.component.id);
        let arrived: Vec<ComponentId> = coming.filter(|id| self.is_active(*id)).collect();
        for component in arrived {
            *self = self.finish_incoming(component).expect("it is active and comes").record;
        }
    }

    /// Removes surplus copies: of each place those with the least worth.
    fn drop_copies(&mut self) {
        let wanted = self.policy.copies();
        let hosts = if self.policy.keeps_to_one_host() { self.places_of_hosts() } else { BTreeMap::new() };
        let has_copies = |place: &usize| self.layout.place_code(*place).is_none();
        for place in (0..self.layout.place_count()).filter(has_copies).collect::<Vec<usize>>() {
            let copies = self.layout.place(place).expect("the place is there").to_vec();
            let further = self.incoming.iter().filter(|one| usize::from(one.place) == place);
            let further = further.filter(|one| one.replaces.is_none()).map(|one| one.component.id);
            let mut ranked: Vec<ComponentId> = copies.iter().map(|copy| copy.id).chain(further).collect();
            ranked.sort_by_key(|id| Reverse((self.worth(*id), self.places_with(*id, &hosts))));
            let dropped: BTreeSet<ComponentId> = ranked.into_iter().skip(wanted).collect();
            self.incoming.retain(|one| {
                !dropped.contains(&one.component.id)
                    && one.replaces.is_none_or(|lost| !dropped.contains(&lost))
            });
            let kept = copies.into_iter().filter(|copy| !dropped.contains(&copy.id)).collect();
            self.layout = self.layout.with_place(place, kept);
        }
        self.drop_stand_ins();
    }

    /// The number of places of which each host has an active copy.
    fn places_of_hosts(&self) -> BTreeMap<HostId, usize> {
        let mut places: BTreeMap<HostId, BTreeSet<u16>> = BTreeMap::new();
        for member in self.roster.members.iter().filter(|one| self.is_active(one.component)) {
            places.entry(member.node.host).or_default().insert(member.place);
        }
        places.into_iter().map(|(host, places)| (host, places.len())).collect()
    }

    /// The number of places of which the host of a copy has one, so that a disk without redundancy is left on as few
    /// hosts as possible. Ties are broken by host id, so that the same host wins at each place.
    fn places_with(&self, id: ComponentId, hosts: &BTreeMap<HostId, usize>) -> (usize, Option<HostId>) {
        let host = self.roster.member(id).map(|member| member.node.host);
        match host.and_then(|host| hosts.get(&host)) {
            Some(places) => (*places, host),
            None => (0, None),
        }
    }

    /// The worth of a copy. An active one of the layout, of which there is always one, is worth most.
    fn worth(&self, id: ComponentId) -> u8 {
        let stands = self.layout.components().any(|(_, one)| one.id == id);
        match (self.is_active(id), self.incoming_for(id).is_some(), stands) {
            (true, false, _) => 3,
            (true, true, _) => 2,
            (false, _, true) => 1,
            (false, _, false) => 0,
        }
    }
}
