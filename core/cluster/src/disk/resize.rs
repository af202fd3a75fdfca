//! Resizing. To grow, a disk gets its components first, then its size. To shrink, the size changes first.
//!
//! A layout never becomes smaller: a disk that shrinks frees space but keeps its places. So no component stays larger
//! than the others of its place. A component that was away while the disk shrank is brought up to date as after any
//! other change (docs/design/0009).

use super::parts::Growth;
use super::{DiskRecord, Nodes, Objection, Transition, node_of};
use base::units::SECTOR_SIZE;
use base::{ComponentId, WriteId};
use layout::Component;
use placement::DeviceSpace;
use replication::{Member, Numbers, Role, Standing};
use std::collections::{BTreeMap, BTreeSet};

impl DiskRecord {
    /// Begins to grow: larger components and new ones are to be made. Guests see the old size until
    /// [`finish_growth`](DiskRecord::finish_growth).
    ///
    /// # Errors
    /// When it grows already, the size is not larger, or placement finds no room.
    pub fn begin_growth(
        &self,
        size: u64,
        devices: &[DeviceSpace],
        nodes: &Nodes,
        ids: &mut impl FnMut() -> ComponentId,
        seed: u64,
    ) -> Result<Transition, Objection> {
        self.expect_active()?;
        if self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing already"));
        }
        if self.surplus.is_some() {
            return Err(Objection::Growth("the space beyond the end of the disk is still being freed"));
        }
        self.expect_one_layout()?;
        if size <= self.size {
            return Err(Objection::Size { wanted: "grown", size: self.size, found: size });
        }
        let layout = placement::extend(&self.placed(&self.layout, &[]), size, devices, ids, seed)?;
        let needed = placement::shrink(&layout, size);
        placement::check_more(&self.fitted(), &needed, self.space_reservation, devices)
            .map_err(Objection::Cause)?;
        let mut new = BTreeMap::new();
        for (_, component) in layout.components() {
            if self.roster.member(component.id).is_none() {
                new.insert(component.id, node_of(nodes, component.device)?);
            }
        }
        let transition = self.changed(DiskRecord {
            growth: Some(Growth { size, layout, nodes: new.clone() }),
            ..self.clone()
        });
        let (create, update) =
            transition.record.components().into_iter().partition(|(_, one)| new.contains_key(&one.id));
        Ok(Transition { create, update, ..transition })
    }

    /// Ends the growth: all active components are large enough, and the disk has its new size.
    ///
    /// # Errors
    /// When the disk does not grow.
    pub fn finish_growth(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let Some(growth) = next.growth.take() else {
            return Err(Objection::Growth("the disk is not growing"));
        };
        // Nobody reads a view beyond the size that the disk had then. But what a disk moves into gets all its snapshots.
        let lacks = match growth.layout.boundary() {
            Some(_) => Numbers::through(next.roster.snapshots.last),
            None => Numbers::default(),
        };
        for (place, copies) in growth.layout.places() {
            for copy in copies {
                let Some(node) = growth.nodes.get(&copy.id) else { continue };
                next.roster.members.push(Member {
                    component: copy.id,
                    node: *node,
                    place: place as u16,
                    rows: None,
                    standing: Standing::Active,
                    base: WriteId::default(),
                    role: Role::Copy,
                    ceiling: replication::Ceiling::Unknown,
                    lacks: lacks.clone(),
                });
            }
        }
        next.roster.members.sort_by_key(|member| member.place);
        next.roster.shape += u32::from(next.moving.is_some());
        next.layout = growth.layout;
        next.size = growth.size;
        next.fit_incoming();
        let transition = self.changed(next);
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// Calls the growth off. New components are deleted; those that became larger stay so, all of them.
    ///
    /// # Errors
    /// When the disk does not grow.
    pub fn cancel_growth(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let Some(growth) = next.growth.take() else {
            return Err(Objection::Growth("the disk is not growing"));
        };
        if growth.nodes.is_empty() {
            next.layout = growth.layout;
            next.fit_incoming();
        }
        if let Some(moving) = next.moving.take() {
            next.follows = moving.followed; // It had not begun yet.
        }
        let delete = growth.nodes.into_iter().map(|(id, node)| (node, id)).collect();
        let transition = self.changed(next);
        Ok(Transition { update: transition.record.components(), delete, ..transition })
    }

    /// Shrinks the disk. Data behind the new end is lost, and its space is to be freed before
    /// [`finish_shrink`](DiskRecord::finish_shrink).
    ///
    /// # Errors
    /// When it is growing, or not larger.
    pub fn shrink(&self, size: u64) -> Result<Transition, Objection> {
        self.expect_active()?;
        if self.growth.is_some() {
            return Err(Objection::Growth("the disk is growing"));
        }
        self.expect_one_layout()?;
        self.expect_no_snapshots("cannot be shrunk")?;
        self.expect_no_origin("cannot be shrunk")?;
        if size == 0 || size >= self.size || !size.is_multiple_of(SECTOR_SIZE) {
            return Err(Objection::Size { wanted: "shrunk", size: self.size, found: size });
        }
        let surplus = Some(self.surplus.unwrap_or(self.size));
        let transition = self.changed(DiskRecord { size, surplus, ..self.clone() });
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// Ends the shrinking: the space behind the end of the disk is freed.
    ///
    /// # Errors
    /// When there is no space to free.
    pub fn finish_shrink(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        match self.surplus {
            Some(_) => Ok(self.changed(DiskRecord { surplus: None, ..self.clone() })),
            None => Err(Objection::Growth("the disk has no space to free")),
        }
    }

    /// Gives incoming components and stand-ins the size of their place.
    fn fit_incoming(&mut self) {
        for one in &mut self.incoming {
            let seats = self.layout.place(usize::from(one.place)).expect("what comes has a place");
            one.component = Component { size: seats[0].size, ..one.component };
        }
        for one in &mut self.stand_ins {
            let seats = self.layout.place(usize::from(one.place)).expect("what stands in has a place");
            one.component = Component { size: seats[0].size, ..one.component };
        }
    }

    /// Removes members from the roster that are neither in the layout nor incoming.
    pub(super) fn drop_members(&mut self) {
        let stay: BTreeSet<ComponentId> = self.all_components().map(|(_, one)| one.id).collect();
        let gone = |member: &Member| !stay.contains(&member.component);
        self.roster.members.retain(|member| !gone(member));
    }
}

/// Places keep their index when a disk grows or shrinks, so that incoming components keep their place.
#[cfg(test)]
pub(super) fn keeps_places(before: &layout::Layout, after: &layout::Layout) -> bool {
    let ids = |copies: &[Component]| copies.iter().map(|copy| copy.id).collect::<Vec<_>>();
    before.places().zip(after.places()).all(|((_, old), (_, new))| ids(old) == ids(new))
}
