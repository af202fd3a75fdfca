//! Other devices for some components of one disk: the search behind repairing, evacuating and rebalancing.
//!
//! A *seat* is one component that needs another device, or with an explicit number of stripes all of one part that left
//! one device together, so that the number of devices stays what it was. A copy that comes on top has a seat too, which
//! nobody left. Seats are given devices one after the other;
//! where one finds no room, those that took it are asked to move on. Must share no code with `check`.

use crate::candidate::lot;
use crate::device::{DeviceSpace, FaultDomain, Footprint};
use crate::disk::{PlacedDisk, parts_of};
use crate::limits::FULL;
use crate::limits::MOVES_ON_MAX;
use crate::policy::Stripes;
use crate::refusal::{Cause, DomainKind};
use base::units::EXTENT_SIZE;
use base::{ComponentId, DeviceId, GroupId, HostId};
use layout::Component;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Components that need one device together.
pub(crate) struct Seat {
    /// Their places, and themselves unless they come on top; no two of one place.
    pub members: Vec<(usize, Option<ComponentId>)>,
    /// The part that they are of.
    part: usize,
    /// Where they stood; none for copies that come on top.
    source: Option<DeviceId>,
    /// What they take of a device together.
    footprint: Footprint,
    /// Where they go, by the index of the device.
    device: Option<usize>,
}

/// What became of a seat.
pub(crate) struct Seated {
    /// The places, and the components unless they come on top.
    pub members: Vec<(usize, Option<ComponentId>)>,
    /// The index of their new device, or why there is none.
    pub outcome: Result<usize, Cause>,
}

/// A disk some of whose components go.
pub(crate) struct Seats<'a> {
    disk: &'a PlacedDisk<'a>,
    devices: &'a [DeviceSpace],
    known: BTreeMap<DeviceId, &'a DeviceSpace>,
    seed: u64,
    /// What the devices have left, with what was given out here taken off.
    rooms: Vec<Room>,
    /// The fault domains of each place, of the components that stay and of those that were given a device.
    domains: Vec<Vec<FaultDomain<'a>>>,
    /// How many components of each part stand on a device or in a group, in the same way.
    used: BTreeMap<(usize, Ground), usize>,
    /// How many components of the disk stand on a host, in the same way.
    hosts: BTreeMap<HostId, usize>,
    seats: Vec<Seat>,
    /// Whether two seats of one part may share a device although the policy says how many there must be.
    shares: bool,
}

/// What components of one part can share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ground {
    Device(DeviceId),
    Group(GroupId),
}

#[derive(Clone, Copy)]
struct Room {
    bytes: u64,
    components: u32,
}

impl<'a> Seats<'a> {
    /// The seats for the components of `gone`. Those that the disk does not have are left out.
    pub fn new(
        disk: &'a PlacedDisk<'a>,
        gone: &BTreeSet<ComponentId>,
        devices: &'a [DeviceSpace],
        seed: u64,
    ) -> Seats<'a> {
        let mut seats = Seats::empty(disk, devices, seed);
        let mut together: BTreeMap<(usize, DeviceId), usize> = BTreeMap::new();
        for (part, range) in parts_of(disk.layout).into_iter().enumerate() {
            for place in range {
                for component in disk.layout.place(place).expect("a part's places are there") {
                    if !gone.contains(&component.id) {
                        seats.stays(part, place, component);
                        continue;
                    }
                    let key = (part, component.device);
                    let is_exact = matches!(disk.policy.stripes, Stripes::Exactly(_));
                    let found = together.get(&key).copied().filter(|_| is_exact);
                    together.insert(key, found.unwrap_or(seats.seats.len()));
                    seats.join(found, part, Some(component.device), (place, Some(component.id)));
                }
            }
        }
        seats
    }

    /// The seats for the copies that the disk has too few of. With an explicit number of stripes, each replica that
    /// comes on top takes that many devices of its own.
    pub fn on_top(disk: &'a PlacedDisk<'a>, devices: &'a [DeviceSpace], seed: u64) -> Seats<'a> {
        let mut seats = Seats::empty(disk, devices, seed);
        let mut together: BTreeMap<(usize, usize, usize), usize> = BTreeMap::new();
        for (part, range) in parts_of(disk.layout).into_iter().enumerate() {
            let first = range.start;
            for place in range {
                let copies = disk.layout.place(place).expect("a part's places are there");
                copies.iter().for_each(|component| seats.stays(part, place, component));
                // Rows have what they need, or something is replaced.
                let wanted = if disk.layout.place_code(place).is_some() { 0 } else { disk.policy.copies() };
                for copy in copies.len()..wanted {
                    let stripe = match disk.policy.stripes {
                        Stripes::Exactly(stripes) => (place - first) % usize::from(stripes),
                        Stripes::Auto => place - first,
                    };
                    let found = together.get(&(part, copy, stripe)).copied();
                    together.insert((part, copy, stripe), found.unwrap_or(seats.seats.len()));
                    seats.join(found, part, None, (place, None));
                }
            }
        }
        seats
    }

    fn empty(disk: &'a PlacedDisk<'a>, devices: &'a [DeviceSpace], seed: u64) -> Seats<'a> {
        let room = |device: &DeviceSpace| Room {
            bytes: device.available_bytes(),
            components: device.component_room(),
        };
        Seats {
            disk,
            devices,
            known: devices.iter().map(|found| (found.id, found)).collect(),
            seed,
            rooms: devices.iter().map(room).collect(),
            domains: vec![Vec::new(); disk.layout.place_count()],
            used: BTreeMap::new(),
            hosts: BTreeMap::new(),
            seats: Vec::new(),
            shares: false,
        }
    }

    /// Counts a component that stays where it is.
    fn stays(&mut self, part: usize, place: usize, component: &Component) {
        *self.used.entry((part, Ground::Device(component.device))).or_default() += 1;
        if let Some(device) = self.known.get(&component.device).copied() {
            *self.used.entry((part, Ground::Group(device.group))).or_default() += 1;
            self.domains[place].push(device.domain());
            *self.hosts.entry(device.host).or_default() += 1;
        }
    }

    /// Adds a component to a seat, or to a new one.
    fn join(
        &mut self,
        seat: Option<usize>,
        part: usize,
        source: Option<DeviceId>,
        member: (usize, Option<ComponentId>),
    ) {
        let footprint = self.disk.footprint(member.0);
        match seat {
            None => self.seats.push(Seat { members: vec![member], part, source, footprint, device: None }),
            Some(seat) => {
                let seat = &mut self.seats[seat];
                seat.members.push(member);
                seat.footprint.data_bytes += footprint.data_bytes;
                seat.footprint.reservation_bytes += footprint.reservation_bytes;
            }
        }
    }

    /// Gives every seat a device, as far as there are any: the largest first.
    pub fn fill(mut self) -> Vec<Seated> {
        let mut order: Vec<usize> = (0..self.seats.len()).collect();
        order.sort_by_key(|seat| (Reverse(self.seats[*seat].footprint.bytes()), *seat));
        for seat in &order {
            self.seat(*seat, MOVES_ON_MAX, &mut BTreeSet::new());
        }
        // Fewer stripes are the first thing that force_provisioning gives up.
        if self.disk.policy.force_provisioning {
            self.shares = true;
            for seat in &order {
                if self.seats[*seat].device.is_none() {
                    self.seat(*seat, MOVES_ON_MAX, &mut BTreeSet::new());
                }
            }
        }
        let outcome = |seat: &Seat| seat.device.ok_or_else(|| self.cause(seat));
        let outcomes: Vec<Result<usize, Cause>> = self.seats.iter().map(outcome).collect();
        let seated = |(seat, outcome): (Seat, _)| Seated { members: seat.members, outcome };
        self.seats.into_iter().zip(outcomes).map(seated).collect()
    }

    /// Whether the rules and the room let the first seat move to a device, with no fewer devices in use than before and
    /// no more than the policy says.
    pub fn may_move(&self, device: usize) -> bool {
        let seat = &self.seats[0];
        let source = seat.source.expect("what moves stood somewhere");
        let source_stays = self.used.contains_key(&(seat.part, Ground::Device(source)));
        let keeps_spread = match self.disk.policy.stripes {
            Stripes::Exactly(_) => !source_stays && self.count_on(seat, device) == 0,
            Stripes::Auto => source_stays || self.count_on(seat, device) == 0,
        };
        keeps_spread && self.is_allowed(seat, device) && self.has_room(seat, device)
    }

    /// Gives a seat a device, moving up to `depth` others on. `asked` are the devices whose seats were asked already.
    fn seat(&mut self, seat: usize, depth: usize, asked: &mut BTreeSet<usize>) -> bool {
        let fits = |device: &usize| {
            self.is_allowed(&self.seats[seat], *device) && self.has_room(&self.seats[seat], *device)
        };
        let best = (0..self.devices.len()).filter(fits);
        if let Some(best) = best.min_by_key(|device| self.preference(&self.seats[seat], *device)) {
            self.take(seat, best);
            return true;
        }
        if depth == 0 {
            return false;
        }
        for other in 0..self.seats.len() {
            let Some(device) = self.seats[other].device else { continue };
            if asked.contains(&device) {
                continue;
            }
            self.leave(other);
            if self.is_allowed(&self.seats[seat], device) && self.has_room(&self.seats[seat], device) {
                asked.insert(device);
                self.take(seat, device);
                if self.seat(other, depth - 1, asked) {
                    return true;
                }
                self.leave(seat);
            }
            self.take(other, device);
        }
        false
    }

    fn take(&mut self, seat: usize, device: usize) {
        let Seat { members, part, footprint, device: taken, .. } = &mut self.seats[seat];
        assert!(taken.is_none(), "a seat has one device");
        *taken = Some(device);
        self.rooms[device].bytes -= footprint.bytes();
        self.rooms[device].components -= members.len() as u32;
        let found = &self.devices[device];
        for ground in [Ground::Device(found.id), Ground::Group(found.group)] {
            *self.used.entry((*part, ground)).or_default() += members.len();
        }
        *self.hosts.entry(found.host).or_default() += members.len();
        members.iter().for_each(|(place, _)| self.domains[*place].push(found.domain()));
    }

    fn leave(&mut self, seat: usize) {
        let Seat { members, part, footprint, device: taken, .. } = &mut self.seats[seat];
        let device = taken.take().expect("only a seat with a device leaves it");
        self.rooms[device].bytes += footprint.bytes();
        self.rooms[device].components += members.len() as u32;
        let found = &self.devices[device];
        for ground in [Ground::Device(found.id), Ground::Group(found.group)] {
            let rest = self.used[&(*part, ground)] - members.len();
            if rest == 0 {
                self.used.remove(&(*part, ground))
            } else {
                self.used.insert((*part, ground), rest)
            };
        }
        let on_host = self.hosts.get_mut(&found.host).expect("the seat counts on its host");
        *on_host -= members.len();
        for (place, _) in members.iter() {
            let domains = &mut self.domains[*place];
            let added = domains.iter().rposition(|other| *other == found.domain());
            domains.swap_remove(added.expect("it was added when the device was taken"));
        }
    }

    /// Whether the rules let a seat take a device that has room.
    fn is_allowed(&self, seat: &Seat, device: usize) -> bool {
        self.devices[device].in_service
            && !self.shares_domain(seat, device)
            && (self.may_share() || self.count_on(seat, device) == 0)
    }

    fn may_share(&self) -> bool {
        self.shares || self.disk.policy.stripes == Stripes::Auto
    }

    fn shares_domain(&self, seat: &Seat, device: usize) -> bool {
        let domain = self.devices[device].domain();
        seat.members.iter().any(|(place, _)| self.domains[*place].contains(&domain))
    }

    /// How many components of the seat's part stand on a device.
    fn count_on(&self, seat: &Seat, device: usize) -> usize {
        let ground = Ground::Device(self.devices[device].id);
        self.used.get(&(seat.part, ground)).copied().unwrap_or(0)
    }

    fn has_room(&self, seat: &Seat, device: usize) -> bool {
        let room = self.rooms[device];
        let bytes = seat.footprint.bytes().max(EXTENT_SIZE);
        room.components as usize >= seat.members.len() && room.bytes >= bytes
    }

    /// How many components of the disk stand on a device's host.
    fn count_on_host(&self, device: usize) -> usize {
        self.hosts.get(&self.devices[device].host).copied().unwrap_or(0)
    }

    /// Whether the first seat may move to a device without the disk standing on more hosts than before. Only a disk that
    /// keeps to one host cares.
    pub fn keeps_hosts(&self, device: usize) -> bool {
        let source = self.seats[0].source.expect("what moves stood somewhere");
        let stays_on_source = self
            .known
            .get(&source)
            .and_then(|known| self.hosts.get(&known.host))
            .is_some_and(|count| *count > 0);
        !self.disk.policy.keeps_to_one_host() || self.count_on_host(device) > 0 || !stays_on_source
    }

    /// The order in which a seat takes devices: of a disk that keeps to one host those of its hosts first, then those that
    /// bear no other component of its part, then those whose group bears none, then the emptiest.
    fn preference(&self, seat: &Seat, device: usize) -> impl Ord + use<> {
        let found = &self.devices[device];
        let in_group = self.used.get(&(seat.part, Ground::Group(found.group))).copied().unwrap_or(0);
        let used = (self.count_on(seat, device), in_group);
        let left = u128::from(self.rooms[device].bytes.saturating_sub(seat.footprint.bytes()));
        let share = (left * u128::from(FULL)).checked_div(u128::from(found.capacity_bytes)).unwrap_or(0);
        let is_elsewhere = self.disk.policy.keeps_to_one_host() && self.count_on_host(device) == 0;
        (is_elsewhere, used, Reverse(share), lot(found, self.seed), found.id)
    }

    /// Why there is no device for a seat.
    fn cause(&self, seat: &Seat) -> Cause {
        let in_service = |device: &usize| self.devices[*device].in_service;
        let all: Vec<usize> = (0..self.devices.len()).filter(in_service).collect();
        if all.is_empty() {
            return Cause::NoDevice;
        }
        let elsewhere: Vec<usize> = all.iter().copied().filter(|d| !self.shares_domain(seat, *d)).collect();
        if elsewhere.is_empty() {
            return self.too_few_domains(seat, &all);
        }
        let allowed: Vec<usize> = elsewhere.iter().copied().filter(|d| self.is_allowed(seat, *d)).collect();
        if let (Stripes::Exactly(stripes), true) = (self.disk.policy.stripes, allowed.is_empty()) {
            let copies = self.copies(seat);
            let is_device =
                |(part, ground): &&(usize, Ground)| *part == seat.part && matches!(ground, Ground::Device(_));
            let found = self.used.keys().filter(is_device).count();
            return Cause::Devices { stripes: usize::from(stripes), copies, found };
        }
        let needed = seat.members.len();
        let components = allowed.iter().map(|device| self.rooms[*device].components).max().unwrap_or(0);
        if (components as usize) < needed {
            return Cause::Components { needed, found: components as usize };
        }
        let found = allowed.iter().map(|device| self.rooms[*device].bytes).max().unwrap_or(0);
        Cause::Room { needed: seat.footprint.bytes().max(EXTENT_SIZE), found }
    }

    /// How many copies the places of a seat have, or shall have.
    fn copies(&self, seat: &Seat) -> usize {
        let has = self.disk.layout.place(seat.members[0].0).map_or(1, <[_]>::len);
        if seat.source.is_none() { has.max(self.disk.policy.copies()) } else { has }
    }

    fn too_few_domains(&self, seat: &Seat, in_service: &[usize]) -> Cause {
        let place = seat.members[0].0;
        let needed = self.copies(seat);
        let stands_in = |device: &&DeviceSpace| self.domains[place].contains(&device.domain());
        let names = self.devices.iter().filter(stands_in).map(|device| device.domain_name().to_owned());
        let others = in_service.iter().map(|device| self.devices[*device].domain_name().to_owned());
        Cause::Domains {
            failures: (needed - 1) as u8,
            needed,
            kind: DomainKind::of(self.devices.iter()),
            found: names.chain(others).collect::<BTreeSet<String>>().into_iter().collect(),
        }
    }
}
