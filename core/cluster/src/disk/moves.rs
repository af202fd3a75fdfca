//! Moving a disk into another layout while it is used (docs/design/0041).
//!
//! A move begins as a growth does: the components of the new layout are made, then the layout has two sides. The owner takes the boundary
//! on from there. Once it has reached its end, the side that nothing counts on is dropped.

use super::clones::has_parity;
use super::parts::{Growth, MovePlan, MoveRoom, Moving, NoSnapshot, Snapshot};
use super::{DiskRecord, Nodes, Objection, Transition, node_of};
use crate::words::snapshots;
use base::units::format_bytes;
use base::{ComponentId, DeviceId};
use layout::{Component, Layout, Side};
use placement::{DeviceSpace, Method, Policy};
use replication::{Member, Standing};
use std::collections::BTreeMap;

impl DiskRecord {
    /// Whether a policy asks for another layout than a disk of this one has: its data has to move.
    pub fn needs_move(&self, policy: &Policy) -> bool {
        policy.differences(&self.policy).any(|rule| rule.change.needs(self.policy.method).is_some())
    }

    /// Begins to move into the layout of another policy: its components are to be made, then [`DiskRecord::finish_growth`] gives the disk
    /// two layouts. `used_bytes` is the data by place, if known.
    ///
    /// # Errors
    /// When it moves, grows or gives space back already, when placement finds no place, or a device would not have room for it.
    pub fn begin_move(
        &self,
        policy: &Policy,
        follows: Option<String>,
        devices: &[DeviceSpace],
        used_bytes: &[u64],
        nodes: &Nodes,
        ids: &mut impl FnMut() -> ComponentId,
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        self.expect_one_layout()?;
        self.expect_snapshots_can_move(policy)?;
        self.expect_no_origin("cannot be moved into another layout")?;
        if self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing"));
        }
        if self.surplus.is_some() {
            return Err(Objection::Growth("the space beyond the end of the disk is still being freed"));
        }
        let plan = placement::plan(policy, self.size, devices, ids, self.placement_seed())?;
        self.plan_room(&plan.layout, devices, used_bytes)?;
        let mut new = BTreeMap::new();
        for (_, component) in plan.layout.components() {
            new.insert(component.id, node_of(nodes, component.device)?);
        }
        let layout = self.layout.clone().moving_to(plan.layout);
        let moving = Moving {
            policy: *policy,
            space_reservation: plan.space_reservation,
            debts: plan.debts,
            is_back: false,
            is_paused: false,
            trimmed: 0,
            followed: self.follows.clone(),
        };
        let transition = self.changed(DiskRecord {
            follows,
            growth: Some(Growth { size: self.size, layout, nodes: new.clone() }),
            moving: Some(moving),
            ..self.clone()
        });
        let create = transition.record.components().into_iter().filter(|(_, one)| new.contains_key(&one.id));
        Ok(Transition { create: create.collect(), ..transition })
    }

    /// What it would take to move a disk into the layout of a policy now.
    ///
    /// # Errors
    /// As [`DiskRecord::begin_move`].
    pub fn plan_move(
        &self,
        policy: &Policy,
        devices: &[DeviceSpace],
        used_bytes: &[u64],
    ) -> Result<MovePlan, Objection> {
        self.expect_active()?;
        self.expect_one_layout()?;
        self.expect_snapshots_can_move(policy)?;
        self.expect_no_origin("cannot be moved into another layout")?;
        let mut last = 0;
        let mut ids = || {
            last += 1;
            ComponentId(last)
        };
        let plan = placement::plan(policy, self.size, devices, &mut ids, self.placement_seed())?;
        self.plan_room(&plan.layout, devices, used_bytes)
    }

    /// Refuses a move of a disk with snapshots into rows with parity or out of them, and of one that is about to have one.
    fn expect_snapshots_can_move(&self, policy: &Policy) -> Result<(), Objection> {
        if self.roster.snapshots.asked.is_some() {
            let asked = self.snapshots.last_asked.clone().unwrap_or_default();
            return Err(Objection::Snapshot(NoSnapshot::Asked(asked)));
        }
        self.expect_not_rolling_back()?;
        match [self.policy.method, policy.method].contains(&Method::Parity) || has_parity(&self.layout) {
            false => Ok(()),
            true => self.expect_no_snapshots("cannot be moved into rows with parity or out of them"),
        }
    }

    /// Decides among devices that are equal, so that a forecast names those that the move takes.
    fn placement_seed(&self) -> u64 {
        self.id.0 as u64 ^ (self.id.0 >> 64) as u64
    }

    /// Lets a disk that moves move the other way, pause, or go on. A disk that moves back has rules of its own from then on, those that it
    /// had before: the policy that it followed would only begin the move again.
    ///
    /// # Errors
    /// When it does not move.
    pub fn steer_move(&self, is_back: bool, is_paused: bool) -> Result<Transition, Objection> {
        self.expect_active()?;
        let Some(moving) = &self.moving else { return Err(Objection::NotMoving) };
        let turns_back = is_back && !moving.is_back;
        let follows = self.follows.clone().filter(|_| !turns_back);
        let moving = Some(Moving { is_back, is_paused, ..moving.clone() });
        Ok(self.changed(DiskRecord { moving, follows, ..self.clone() }))
    }

    /// Whether all of a disk that moves has come to the side that it moves to, its snapshots too.
    pub fn has_moved(&self) -> bool {
        self.has_passed() && self.snapshots_to_move().is_empty()
    }

    /// Whether all that the disk has now stands on the side that it moves to.
    pub(crate) fn has_passed(&self) -> bool {
        let (Some(moving), Some(boundary)) = (&self.moving, self.layout.boundary()) else { return false };
        boundary == if moving.is_back { 0 } else { self.layout.size() }
    }

    /// Snapshots that a component of the side that the disk moves to does not have yet; a component that is away gets them when it is back. On the way back there are none:
    /// those of the layout that it had have them all.
    pub fn snapshots_to_move(&self) -> Vec<&Snapshot> {
        self.snapshots.taken.iter().filter(|one| self.awaiting(one.number) > 0).collect()
    }

    /// How many components of the side that the disk moves to are to get a snapshot.
    pub(crate) fn awaiting(&self, number: u32) -> usize {
        let is_on = self.moving.as_ref().is_some_and(|moving| !moving.is_back);
        let Some((first, _)) = self.layout.side(Side::New).filter(|_| is_on) else { return 0 };
        let is_new = |one: &&Member| usize::from(one.place) >= first && one.standing == Standing::Active;
        self.roster.members.iter().filter(is_new).filter(|one| one.lacks.contains(number)).count()
    }

    /// Ends the move: the disk has one layout again, and what the other one named is deleted.
    ///
    /// # Errors
    /// When not all of it has moved.
    pub fn end_move(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let Some(moving) = self.moving.clone().filter(|_| self.has_moved()) else {
            return Err(Objection::NotMoving);
        };
        let side = if moving.is_back { Side::Old } else { Side::New };
        let (first, layout) = self.layout.side(side).expect("it has two sides");
        let first = first as u16;
        let places = first..first + layout.place_count() as u16;
        let mut next = DiskRecord { layout: layout.clone(), moving: None, ..self.clone() };
        next.incoming.retain(|one| places.contains(&one.place));
        next.incoming.iter_mut().for_each(|one| one.place -= first);
        next.stand_ins.retain(|one| places.contains(&one.place));
        next.stand_ins.iter_mut().for_each(|one| one.place -= first);
        let (kept, gone): (Vec<_>, Vec<_>) =
            next.roster.members.into_iter().partition(|one| places.contains(&one.place));
        next.roster.members = kept;
        next.roster.shape += 1;
        next.roster.members.iter_mut().for_each(|one| one.place -= first);
        if !moving.is_back {
            next.policy = moving.policy;
            next.space_reservation = moving.space_reservation;
            next.debts = moving.debts;
        }
        let delete = gone.iter().map(|one| (one.node, one.component)).collect();
        let transition = self.changed(next);
        Ok(Transition { update: transition.record.components(), delete, ..transition })
    }

    /// How far a disk has moved that moves: bytes that have, and all of them.
    pub fn moved_bytes(&self) -> Option<(u64, u64)> {
        let moving = self.moving.as_ref()?;
        let (size, boundary) = (self.layout.size(), self.layout.boundary().unwrap_or(0));
        Some((if moving.is_back { size - boundary } else { boundary }, size))
    }

    /// What is said of a disk that moves: how far it is, and whether it goes on.
    pub fn move_text(&self) -> Option<String> {
        let moving = self.moving.as_ref()?;
        let (moved, all) = self.moved_bytes()?;
        let to = match moving.is_back {
            true => "back into the layout that it had".to_owned(),
            false => moving.policy.short(),
        };
        let pauses = if moving.is_paused { ", and pauses" } else { "" };
        Some(match self.layout.boundary() {
            None => format!("the components of its new layout are made ({to})"),
            Some(_) => {
                let snapshots = match self.snapshots_to_move().len() {
                    0 => String::new(),
                    count if moved < all => format!(", then {}", snapshots(count)),
                    count => format!(", {} to go", snapshots(count)),
                };
                let (moved, all) = (format_bytes(moved), format_bytes(all));
                format!("it moves: {to}; {moved} of {all} moved{snapshots}{pauses}")
            }
        })
    }

    pub(super) fn expect_one_layout(&self) -> Result<(), Objection> {
        if self.moving.is_none() { Ok(()) } else { Err(Objection::Moving) }
    }

    /// What each device has of the disk is linear in the boundary, so it has most at an end, or two granules from it: one that is copied,
    /// and one that is not given back yet.
    pub(crate) fn plan_room(
        &self,
        new: &Layout,
        devices: &[DeviceSpace],
        used_bytes: &[u64],
    ) -> Result<MovePlan, Objection> {
        let data = self.data_bytes(used_bytes);
        let share = |layout: &Layout, of: DeviceId, data: u64| -> u64 {
            let here = layout.components().filter(|(_, one)| one.device == of);
            let bytes = |size: u64| (u128::from(data) * u128::from(size) / u128::from(layout.size())) as u64;
            here.map(|(_, one)| bytes(one.size)).sum()
        };
        // An extent of rows has a part of each data member's: one that is written alone takes an extent of each member.
        let scattered = |of: DeviceId, data: u64| -> u64 {
            let of_place = |(place, members): (usize, &[Component])| -> u64 {
                let data_members = new.place_code(place).map_or(1, |code| u128::from(code.data()));
                let all = u128::from(data) * data_members;
                let bytes = |size: u64| (all * u128::from(size) / u128::from(new.size())) as u64;
                members.iter().filter(|one| one.device == of).map(|one| bytes(one.size).min(one.size)).sum()
            };
            new.places().map(of_place).sum()
        };
        let granules = 2 * self.layout.clone().moving_to(new.clone()).granule_max();
        let mut plan = MovePlan { bytes_to_copy: 0, devices: Vec::new() };
        for device in devices {
            let comes = share(new, device.id, data);
            if comes == 0 {
                continue;
            }
            // What snapshots see is freed with the layout that the disk had, once all has moved.
            let leaves = if self.has_snapshots() { 0 } else { share(&self.layout, device.id, data) };
            let used = device.capacity_bytes.saturating_sub(device.free_bytes);
            let meanwhile = share(new, device.id, data.min(granules));
            let after = (used + comes).saturating_sub(leaves) + meanwhile;
            let peak = after.max(used + meanwhile);
            let (most_comes, most_meanwhile) =
                (scattered(device.id, data), scattered(device.id, data.min(granules)));
            let scattered_peak = (used + most_comes).saturating_sub(leaves) + most_meanwhile;
            let most = device.capacity_bytes / 100 * FULL_PERCENT;
            // A device that is fuller than that already, and is so no more once all has moved, needs room for the granules alone.
            let missing = after.saturating_sub(most).max(peak.saturating_sub(device.capacity_bytes));
            if missing > 0 {
                return Err(Objection::NoRoomToMove {
                    device: format!("{} of host {}", device.name, device.host_name),
                    missing: format_bytes(missing),
                });
            }
            plan.bytes_to_copy += comes;
            plan.devices.push(MoveRoom {
                device: device.id,
                used_bytes: used,
                peak_bytes: peak,
                scattered_peak_bytes: scattered_peak.max(used + most_meanwhile).max(peak),
                limit_bytes: most,
            });
        }
        Ok(plan)
    }

    /// Bytes of the disk that are in use, as far as known; else its size.
    pub(crate) fn data_bytes(&self, used_bytes: &[u64]) -> u64 {
        if used_bytes.is_empty() {
            return self.size;
        }
        let of_place = |(place, used): (usize, &u64)| {
            let units = self.layout.place_code(place).map_or(1, |code| u64::from(code.data()));
            used.saturating_mul(units)
        };
        used_bytes.iter().enumerate().map(of_place).sum::<u64>().min(self.size)
    }
}

/// How full a move may leave a device.
const FULL_PERCENT: u64 = 95;
