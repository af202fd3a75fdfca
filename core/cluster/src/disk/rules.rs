//! Changing the rules of a disk in use.
//!
//! Most rules change with the record alone. When a mirror is to tolerate fewer failures, surplus copies leave with the same
//! transition. When it is to tolerate more, the missing copies are a debt from then on: repairs bring them in, within their
//! bounds and after lost copies. No blocks move between columns here.

use super::parts::Incoming;
use super::{DiskRecord, Objection, Transition};
use base::{ComponentId, DeviceId, HostId};
use placement::{DeviceSpace, FaultDomain, Policy, add_copies, check_reservation};
use replication::Member;
use std::collections::{BTreeMap, BTreeSet};

impl DiskRecord {
    /// Changes rules while guests use the disk, and the named policy that it follows. A larger reservation and further
    /// copies need room; with `force_provisioning`, what has none is a debt. `used_bytes` is the data by place, if known.
    /// A copy on a device out of service counts as unreachable: it leaves before the others.
    ///
    /// # Errors
    /// When a rule cannot be kept, or its change needs a move of the data: then nothing changes.
    pub fn change_rules(
        &self,
        policy: &Policy,
        follows: Option<String>,
        devices: &[DeviceSpace],
        used_bytes: &[u64],
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        if self.needs_move(policy) {
            self.expect_one_layout()?;
        }
        policy.check_supported().map_err(placement::Cause::Unsupported).map_err(Objection::Cause)?;
        for rule in policy.differences(&self.policy) {
            if let Some(needs) = rule.change.needs(self.policy.method) {
                let value = |policy: &Policy| policy.get(rule.name).unwrap_or_default();
                let (from, to) = (value(&self.policy), value(policy));
                return Err(Objection::NotLive { rule: rule.name, from, to, needs });
            }
        }
        let reserves = policy.space_reservation != self.policy.space_reservation;
        let copies = policy.copies().cmp(&self.policy.copies());
        if (reserves || copies.is_ne()) && self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing"));
        }
        let mut next = DiskRecord { policy: *policy, follows, ..self.clone() };
        if copies.is_ne() {
            self.expect_one_layout()?;
        }
        if let Some(moving) = &mut next.moving {
            for rule in policy.differences(&self.policy) {
                let value = policy.get(rule.name).unwrap_or_default();
                moving.policy.set(rule.name, &value).expect("another policy has this value");
            }
        }
        if copies.is_lt() {
            next.seat_arrived();
            next.drop_copies(devices)?;
        }
        if reserves {
            next.set_reservation(devices)?;
        }
        if copies.is_gt() && !policy.force_provisioning {
            next.check_copies_to_come(devices, used_bytes)?;
        }
        let gone = |member: &&Member| next.roster.member(member.component).is_none();
        let delete = self.roster.members.iter().filter(gone).map(|one| (one.node, one.component)).collect();
        let transition = self.changed(next);
        let update = transition.record.components();
        Ok(Transition { update, delete, ..transition })
    }

    /// Checks that there are devices for the copies that the policy asks for beyond the present and the incoming ones.
    fn check_copies_to_come(&self, devices: &[DeviceSpace], used_bytes: &[u64]) -> Result<(), Objection> {
        let layout = self.layout_to_come();
        let devices = self.without_leaving(devices, &BTreeSet::new());
        // Whether there is a device does not depend on the ids and the seed.
        let found = add_copies(&self.placed(&layout, used_bytes), &devices, &mut || ComponentId(u64::MAX), 0);
        let refused = found.into_iter().find_map(|addition| addition.outcome.err());
        refused.map_or(Ok(()), |cause| Err(Objection::Cause(cause)))
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

    fn set_reservation(&mut self, devices: &[DeviceSpace]) -> Result<(), Objection> {
        let share = self.policy.space_reservation;
        let layout = self.layout_to_come();
        let kept = match check_reservation(&self.placed(&layout, &[]), share, devices) {
            Ok(()) => share,
            Err(_) if self.policy.force_provisioning => self.space_reservation.min(share),
            Err(cause) => return Err(Objection::Cause(cause)),
        };
        self.space_reservation = kept;
        if let Some(moving) = &mut self.moving {
            moving.space_reservation = kept;
        }
        Ok(())
    }

    /// Seats arrived components, so that all active ones are in the layout.
    fn seat_arrived(&mut self) {
        let coming = self.incoming.iter().map(|one| one.component.id);
        let arrived: Vec<ComponentId> = coming.filter(|id| self.is_active(*id)).collect();
        for component in arrived {
            // What it replaces may have a snapshot that nothing else has: then it waits on.
            if let Ok(seated) = self.finish_incoming(component) {
                *self = seated.record;
            }
        }
    }

    /// Removes surplus copies: of each place those with the least worth.
    fn drop_copies(&mut self, devices: &[DeviceSpace]) -> Result<(), Objection> {
        if self.roster.diverged().next().is_some() {
            return Err(Objection::Diverged);
        }
        let devices: BTreeMap<DeviceId, &DeviceSpace> = devices.iter().map(|one| (one.id, one)).collect();
        let hosts = if self.policy.keeps_to_one_host() { self.places_of_hosts() } else { BTreeMap::new() };
        let has_copies = |place: &usize| self.layout.place_code(*place).is_none();
        for place in (0..self.layout.place_count()).filter(has_copies).collect::<Vec<usize>>() {
            let copies = self.layout.place(place).expect("the place is there").to_vec();
            let further = self.incoming.iter().filter(|one| usize::from(one.place) == place);
            let further = further.filter(|one| one.replaces.is_none()).map(|one| one.component);
            let all =
                copies.iter().copied().chain(further).map(|one| (one.id, devices.get(&one.device).copied()));
            let kept = self.most_worth(all.collect(), &hosts);
            let serves = |(id, device): &(ComponentId, Option<&DeviceSpace>)| {
                self.is_active(*id) && device.is_some_and(|device| device.in_service)
            };
            let stays = |id: ComponentId| kept.iter().any(|(one, _)| *one == id);
            if !kept.iter().any(serves) && !copies.iter().all(|copy| stays(copy.id)) {
                return Err(Objection::NoneServes(place));
            }
            self.expect_snapshots_stay(place as u16, stays)?;
            let leaves = |one: &Incoming| {
                usize::from(one.place) == place && !stays(one.replaces.unwrap_or(one.component.id))
            };
            let layout =
                self.layout.with_place(place, copies.iter().filter(|one| stays(one.id)).copied().collect());
            self.incoming.retain(|one| !leaves(one));
            self.layout = layout;
        }
        self.drop_stand_ins();
        Ok(())
    }

    /// The copies of a place that stay, with their devices: up-to-date copies first, then those in service, then those in
    /// a fault domain that has none yet.
    fn most_worth<'a>(
        &self,
        mut copies: Vec<(ComponentId, Option<&'a DeviceSpace>)>,
        hosts: &BTreeMap<HostId, usize>,
    ) -> Vec<(ComponentId, Option<&'a DeviceSpace>)> {
        let mut kept: Vec<(ComponentId, Option<&DeviceSpace>)> = Vec::new();
        let mut domains: BTreeSet<FaultDomain<'_>> = BTreeSet::new();
        while kept.len() < self.policy.copies() {
            let rank = |(id, device): &(ComponentId, Option<&DeviceSpace>)| {
                let serves = device.is_some_and(|device| device.in_service);
                let is_apart = device.is_none_or(|device| !domains.contains(&device.domain()));
                (self.is_active(*id), serves, is_apart, self.worth(*id), self.places_with(*id, hosts))
            };
            let Some(best) = (0..copies.len()).max_by_key(|index| rank(&copies[*index])) else { break };
            let (id, device) = copies.swap_remove(best);
            domains.extend(device.map(DeviceSpace::domain));
            kept.push((id, device));
        }
        kept
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
    /// hosts as possible. Ties are broken for the owner's host, whose guests read there, then by host id, so that the same
    /// host wins at each place.
    fn places_with(&self, id: ComponentId, hosts: &BTreeMap<HostId, usize>) -> (usize, bool, Option<HostId>) {
        let host = self.roster.member(id).map(|member| member.node.host);
        let places = host.and_then(|host| hosts.get(&host)).copied().unwrap_or(0);
        let is_owner = host.is_some() && self.roster.owner.map(|owner| owner.node.host) == host;
        (places, is_owner, host)
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
