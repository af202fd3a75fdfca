//! Dealing the copies of equal columns out to devices.
//!
//! First how many each device takes, then which copy of which column. Both steps find an answer whenever there is one:
//! with `c` columns, a fault domain can take at most `c` components, one of each column, and if the domains take
//! `copies × c` in all, then taking for column after column the domains with the most left to place always ends even.

use crate::candidate::Candidate;
use crate::device::{DeviceSpace, reservation};
use crate::policy::Policy;
use crate::refusal::Cause;
use base::ComponentId;
use layout::{Code, Component, Layout, striping};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a column consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// So many copies.
    Mirror(usize),
    /// Rows with parity.
    Parity(Code),
}

impl Shape {
    /// Components of a column, each in a fault domain of its own.
    pub fn components(self) -> usize {
        match self {
            Shape::Mirror(copies) => copies,
            Shape::Parity(code) => usize::from(code.members()),
        }
    }

    /// Components whose sizes make up that of the column.
    pub fn data(self) -> u64 {
        match self {
            Shape::Mirror(_) => 1,
            Shape::Parity(code) => u64::from(code.data()),
        }
    }

    /// The least number of columns that hold `size` bytes.
    pub fn columns_min(self, size: u64) -> usize {
        striping::component_count_min(size.div_ceil(self.data())) as usize
    }
}

/// The equal columns of a plan, each with its copies or its members of rows.
pub(crate) struct Columns {
    /// How many columns.
    pub count: usize,
    shape: Shape,
    size: u64,
    reserve: u64,
}

/// Where every copy of every column stands.
pub(crate) struct Places {
    shape: Shape,
    /// Bytes of one component.
    size: u64,
    /// For each column the devices of its copies, by their index in the caller's list.
    columns: Vec<Vec<usize>>,
}

impl Places {
    /// The layout with fresh ids.
    pub fn layout(&self, devices: &[DeviceSpace], ids: &mut impl FnMut() -> ComponentId) -> Layout {
        let is_of_rows = matches!(self.shape, Shape::Parity(_));
        let mut column = |chosen: &Vec<usize>| {
            let component = |(position, index): (u8, &usize)| Component {
                id: ids(),
                device: devices[*index].id,
                size: self.size,
                position: if is_of_rows { position } else { 0 },
            };
            let components = (0u8..).zip(chosen).map(component).collect();
            match self.shape {
                Shape::Mirror(_) => Layout::of_copies(components),
                Shape::Parity(code) => Layout::Parity { code, members: components },
            }
        };
        let layout = striping::stripe(self.columns.iter().map(&mut column).collect());
        assert!(layout.validate().is_ok(), "a plan is a valid layout");
        layout
    }

    /// How many components the device with the most of them takes.
    pub fn busiest(&self) -> usize {
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        self.columns.iter().flatten().for_each(|index| *taken.entry(*index).or_default() += 1);
        taken.values().max().copied().unwrap_or(0)
    }
}

impl Columns {
    /// `count` columns of a shape that hold `size` bytes together, with the policy's reservation.
    pub fn new(size: u64, count: usize, shape: Shape, policy: &Policy) -> Columns {
        let size = striping::column_size(size, count as u64 * shape.data());
        Columns { count, shape, size, reserve: reservation(size, policy.space_reservation) }
    }

    /// Components in all.
    fn component_count(&self) -> usize {
        self.count * self.shape.components()
    }

    /// How many components a device can take.
    pub fn room_on(&self, candidate: &Candidate<'_>) -> u64 {
        let reservations = candidate.device.available_bytes().checked_div(self.reserve).unwrap_or(u64::MAX);
        reservations.min(u64::from(candidate.device.component_room()))
    }

    /// What the fault domains of `chosen` can take in all, when each device has the room that `room` says.
    fn room_in_domains(&self, chosen: &[&Candidate<'_>], room: impl Fn(&Candidate<'_>) -> u64) -> u64 {
        let mut domains: BTreeMap<usize, u64> = BTreeMap::new();
        for candidate in chosen {
            let sum = domains.entry(candidate.domain).or_default();
            *sum = sum.saturating_add(room(candidate)).min(self.count as u64);
        }
        domains.values().sum()
    }

    /// One component to each device while there are any, then each to the device that it fills least; no two copies of
    /// a column in one fault domain.
    pub fn deal(&self, chosen: &[&Candidate<'_>]) -> Option<Places> {
        let dealt = self.deal_counts(chosen)?;
        Some(Places { shape: self.shape, size: self.size, columns: self.arrange(chosen, dealt) })
    }

    /// How many components each of `chosen` takes.
    fn deal_counts(&self, chosen: &[&Candidate<'_>]) -> Option<Vec<u64>> {
        let mut dealt = vec![0u64; chosen.len()];
        let mut in_domain: BTreeMap<usize, u64> = BTreeMap::new();
        let room: Vec<u64> = chosen.iter().map(|candidate| self.room_on(candidate)).collect();
        for _ in 0..self.component_count() {
            let fill = |place: usize| u128::from(if dealt[place] > 0 { dealt[place] + 1 } else { 0 });
            let bytes = |place: usize| u128::from(chosen[place].device.available_bytes());
            let taken = |place: usize| in_domain.get(&chosen[place].domain).copied().unwrap_or(0);
            let place = (0..chosen.len())
                .filter(|place| dealt[*place] < room[*place] && taken(*place) < self.count as u64)
                .min_by(|a, b| (fill(*a) * bytes(*b)).cmp(&(fill(*b) * bytes(*a))))?;
            dealt[place] += 1;
            *in_domain.entry(chosen[place].domain).or_default() += 1;
        }
        Some(dealt)
    }

    /// Which copy of which column stands where. Neighbours stand on different devices as far as the counts allow.
    fn arrange(&self, chosen: &[&Candidate<'_>], mut left: Vec<u64>) -> Vec<Vec<usize>> {
        let mut domains: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, candidate) in chosen.iter().enumerate() {
            domains.entry(candidate.domain).or_default().push(place);
        }
        let mut used_last = vec![0usize; chosen.len()];
        let mut columns = Vec::with_capacity(self.count);
        for turn in 1..=self.count {
            let domain_key = |members: &&Vec<usize>| {
                let rest: u64 = members.iter().map(|place| left[*place]).sum();
                let last = members.iter().map(|place| used_last[*place]).max();
                (Reverse(rest), last, members[0])
            };
            let mut order: Vec<&Vec<usize>> = domains.values().collect();
            order.sort_by_cached_key(domain_key);
            let mut copies = Vec::with_capacity(self.shape.components());
            for members in order.into_iter().take(self.shape.components()) {
                let device_key = |place: &&usize| (Reverse(left[**place]), used_last[**place], **place);
                let place = *members.iter().min_by_key(device_key).expect("a domain has a device");
                assert!(left[place] > 0, "the domains with the most left have some left");
                left[place] -= 1;
                used_last[place] = turn;
                copies.push(chosen[place].index);
            }
            assert!(copies.len() == self.shape.components(), "there are enough fault domains");
            columns.push(copies);
        }
        assert!(left.iter().all(|rest| *rest == 0), "what was dealt is placed");
        columns
    }

    /// The `count` devices that can take the most together.
    pub fn richest<'a>(&self, candidates: &'a [Candidate<'a>], count: usize) -> Vec<&'a Candidate<'a>> {
        let limit = self.count as u64;
        let mut in_domain: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
        let mut rest: Vec<&Candidate<'_>> = candidates.iter().collect();
        let mut chosen = Vec::new();
        while chosen.len() < count {
            let taken =
                |candidate: &Candidate<'_>| in_domain.get(&candidate.domain).copied().unwrap_or((0, 0));
            let key = |candidate: &Candidate<'_>| {
                let room = self.room_on(candidate);
                let gain = room.min(limit - taken(candidate).1);
                (room == 0, Reverse(gain), Reverse(room), candidate.lot, candidate.device.id)
            };
            let allowed = rest.iter().enumerate().filter(|(_, candidate)| taken(candidate).0 < self.count);
            let Some((place, _)) = allowed.min_by_key(|(_, candidate)| key(candidate)) else { break };
            let candidate = rest.swap_remove(place);
            let room = self.room_on(candidate);
            let (devices, sum) = in_domain.entry(candidate.domain).or_default();
            *devices += 1;
            *sum = sum.saturating_add(room).min(limit);
            chosen.push(candidate);
        }
        chosen
    }

    /// Why they do not fit on `chosen`.
    pub fn does_not_fit(&self, chosen: &[&Candidate<'_>]) -> Cause {
        let needed = self.component_count() as u64;
        let components = self.room_in_domains(chosen, |c| u64::from(c.device.component_room()));
        if components < needed {
            return Cause::Components { needed: needed as usize, found: components as usize };
        }
        let held = self.room_in_domains(chosen, |candidate| self.room_on(candidate)).min(needed);
        // Enough in all, but not on as many devices as are asked for: the poorest lacks its one component.
        let missing = if held < needed { needed - held } else { 1 };
        Cause::Space { needed: self.reserve * needed, missing: self.reserve * missing }
    }
}
