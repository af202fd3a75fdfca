//! Incoming components: replacements of lost or leaving ones, and further copies.

use super::parts::{Growth, Incoming};
use super::{DiskRecord, Objection, Transition, seated};
use crate::limits::PLACE_MEMBERS_MAX;
use base::{ComponentId, NodeId, WriteId};
use layout::{Component, Layout};
use replication::{Member, Numbers, Role, Standing};

impl DiskRecord {
    /// Begins to bring components in, all of them or none. Each is absent until its owner has filled it. A component
    /// that is replaced stays in the layout and in the roster until [`finish_incoming`](DiskRecord::finish_incoming).
    ///
    /// # Errors
    /// When one of them does not fit the disk.
    pub fn begin_incoming(&self, coming: &[(NodeId, Incoming)]) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let (mut create, fitted) = (Vec::new(), self.fitted());
        for (node, one) in coming {
            next.check_fit(one)?;
            next.incoming.push(one.clone());
            let member = Member {
                component: one.component.id,
                node: *node,
                place: one.place,
                rows: None,
                standing: Standing::Absent,
                base: WriteId::default(),
                role: Role::Copy,
                ceiling: replication::Ceiling::Unknown,
                lacks: Numbers::through(self.roster.snapshots.last),
            };
            let behind = next.roster.members.partition_point(|other| other.place <= one.place);
            next.roster.members.insert(behind, member);
            create.push((*node, next.new_component(usize::from(one.place), &one.component, &fitted)));
        }
        Ok(Transition { create, ..self.changed(next) })
    }

    /// Gives an active incoming component its seat, and deletes the component that it replaces.
    ///
    /// # Errors
    /// When it is not incoming, or lacks acknowledged changes.
    pub fn finish_incoming(&self, component: ComponentId) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let one = next.take_incoming(component)?;
        if !self.is_active(component) {
            return Err(Objection::NotActive(component));
        }
        if let Some(lost) = one.replaces {
            self.expect_snapshots_elsewhere(lost)?;
        }
        next.layout = seated(&next.layout, &one);
        if let Some(growth) = &mut next.growth {
            growth.layout = seated(&growth.layout, &one);
        }
        let seat = one.replaces.and_then(|lost| self.stand_in_for(lost)).map(|one| one.component.id);
        let gone = one.replaces.into_iter().chain(seat).map(|id| (self.node(id), id)).collect();
        next.drop_stand_ins();
        let transition = self.changed(next);
        Ok(Transition { update: transition.record.components(), delete: gone, ..transition })
    }

    /// Calls an incoming component off.
    ///
    /// # Errors
    /// When it is not incoming, or is the only active one of its place.
    pub fn cancel_incoming(&self, component: ComponentId) -> Result<Transition, Objection> {
        self.expect_active()?;
        // One that cannot be read gives nothing up: a host that is lost must not stay for what comes to it.
        if self.is_active(component) {
            self.expect_snapshots_elsewhere(component)?;
        }
        let mut next = self.clone();
        let one = next.take_incoming(component)?;
        next.roster.members.retain(|member| member.component != component);
        if !next.has_enough(usize::from(one.place)) {
            return Err(Objection::LastCopy(component));
        }
        Ok(Transition { delete: vec![(self.node(component), component)], ..self.changed(next) })
    }

    /// Takes a lost copy out of the layout without a replacement. What the policy then lacks is a debt, which is paid
    /// like any other.
    ///
    /// # Errors
    /// When it is not lost, when another one is incoming for its seat or stands in for it, or when no other one of
    /// its place is active.
    pub fn give_up(&self, component: ComponentId) -> Result<Transition, Objection> {
        self.expect_active()?;
        let standing = self
            .layout
            .places()
            .find_map(|(place, copies)| copies.iter().any(|copy| copy.id == component).then_some(place));
        let place = standing.ok_or(Objection::NoComponent(component))?;
        if self.roster.member(component).is_none_or(|member| member.standing != Standing::Stale) {
            return Err(Objection::StillCounts(component));
        }
        if self.incoming_for(component).is_some() || self.stand_in_for(component).is_some() {
            return Err(Objection::AlreadyReplaced(component));
        }
        if self.layout.place_code(place).is_some() {
            return Err(Objection::LastCopy(component)); // No other one has its units.
        }
        let without = |layout: &Layout| {
            let copies = layout.place(place).expect("a growing disk keeps its places");
            let kept: Vec<Component> = copies.iter().filter(|copy| copy.id != component).copied().collect();
            (!kept.is_empty()).then(|| layout.with_place(place, kept)).ok_or(Objection::LastCopy(component))
        };
        let mut next = self.clone();
        next.layout = without(&next.layout)?;
        if let Some(growth) = &mut next.growth {
            growth.layout = without(&growth.layout)?;
        }
        next.drop_members();
        if !next.has_enough(place) {
            return Err(Objection::LastCopy(component));
        }
        Ok(Transition { delete: vec![(self.node(component), component)], ..self.changed(next) })
    }

    fn take_incoming(&mut self, component: ComponentId) -> Result<Incoming, Objection> {
        let index = self.incoming.iter().position(|one| one.component.id == component);
        Ok(self.incoming.remove(index.ok_or(Objection::NoComponent(component))?))
    }

    fn check_fit(&self, one: &Incoming) -> Result<(), Objection> {
        let component = one.component;
        let unfit = |reason| Err(Objection::Unfit { component: component.id, reason });
        let Some(copies) = self.layout.place(usize::from(one.place)) else {
            return unfit("the disk has no such place");
        };
        if let Some(lost) = one.replaces {
            if !copies.iter().any(|copy| copy.id == lost) {
                return Err(Objection::NoComponent(lost));
            }
            if self.incoming_for(lost).is_some() {
                return Err(Objection::AlreadyReplaced(lost));
            }
        }
        let is_grown = |growth: &Growth| growth.nodes.contains_key(&component.id);
        let is_taken = self.component(component.id).is_some() || self.growth.as_ref().is_some_and(is_grown);
        if component.id == ComponentId(0) || is_taken {
            return unfit("its id is taken");
        }
        if component.size != copies[0].size {
            return unfit("the copies of a place have one size");
        }
        let mut here = self.all_components().filter(|(place, _)| *place == usize::from(one.place));
        if here.any(|(_, other)| other.device == component.device) {
            return unfit("another component of its place stands on the device");
        }
        let of_place = self.roster.members.iter().filter(|member| member.place == one.place).count();
        let to_come = self.layout_to_come();
        let seats = to_come.place(usize::from(one.place)).map_or(0, <[_]>::len);
        let is_crowded =
            of_place >= PLACE_MEMBERS_MAX || (one.replaces.is_none() && seats >= layout::limits::COPIES_MAX);
        if is_crowded { unfit("its place has all the components that it can have") } else { Ok(()) }
    }
}
