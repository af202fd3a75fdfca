//! Stand-ins of absent components, until these return or are given up (docs/design/0013).

use super::parts::{Growth, Incoming, Reason, StandIn};
use super::{DiskRecord, Objection, Transition};
use crate::limits::PLACE_MEMBERS_MAX;
use base::{ComponentId, NodeId, WriteId};
use replication::{Member, Numbers, Role, Standing};

impl DiskRecord {
    /// The stand-in of a component, whether it counts yet or not.
    pub fn stand_in_for(&self, id: ComponentId) -> Option<&StandIn> {
        self.stand_ins.iter().find(|one| one.of == id)
    }

    /// Begins stand-ins, all of them or none. Each is absent until its owner has written to it what was changed since
    /// the other component left.
    ///
    /// # Errors
    /// When one of them does not fit the disk, or the component that it stands in for is not absent.
    pub fn begin_stand_ins(&self, coming: &[(NodeId, StandIn)]) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let (mut create, fitted) = (Vec::new(), self.fitted());
        for (node, one) in coming {
            next.check_stand_in(one)?;
            next.stand_ins.push(one.clone());
            let member = Member {
                component: one.component.id,
                node: *node,
                place: one.place,
                rows: None,
                standing: Standing::Absent,
                base: WriteId::default(),
                role: Role::StandIn { of: one.of },
                ceiling: replication::Ceiling::Unknown,
                lacks: Numbers::through(self.roster.snapshots.last),
            };
            let behind = next.roster.members.partition_point(|other| other.place <= one.place);
            next.roster.members.insert(behind, member);
            create.push((*node, next.new_component(usize::from(one.place), &one.component, &fitted)));
        }
        Ok(Transition { create, ..self.changed(next) })
    }

    /// Ends a stand-in and deletes it, whether it is active or not: every active component of its place has its data.
    ///
    /// # Errors
    /// When it is not a stand-in.
    pub fn end_stand_in(&self, component: ComponentId) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        next.take_stand_in(component)?;
        next.roster.members.retain(|member| member.component != component);
        Ok(Transition { delete: vec![(self.node(component), component)], ..self.changed(next) })
    }

    /// Makes a stand-in the heir of the component that it stands in for: it is filled with the rest, and stands in
    /// until it is active.
    ///
    /// # Errors
    /// When it is not a stand-in, or another component is incoming for the seat.
    pub fn inherit(&self, component: ComponentId) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        let StandIn { place, component: found, of } = next.take_stand_in(component)?;
        if self.incoming_for(of).is_some() {
            return Err(Objection::AlreadyReplaced(of));
        }
        next.incoming.push(Incoming { place, component: found, replaces: Some(of), reason: Reason::Repair });
        let mut members = next.roster.members.iter_mut();
        let member = members.find(|member| member.component == component);
        member.expect("the roster names every component").role = Role::Heir { of };
        Ok(self.changed(next))
    }

    /// Calls an incoming component or a stand-in off.
    ///
    /// # Errors
    /// As for [`cancel_incoming`](DiskRecord::cancel_incoming) and [`end_stand_in`](DiskRecord::end_stand_in).
    pub fn call_off(&self, component: ComponentId) -> Result<Transition, Objection> {
        match self.stand_ins.iter().any(|one| one.component.id == component) {
            true => self.end_stand_in(component),
            false => self.cancel_incoming(component),
        }
    }

    fn take_stand_in(&mut self, component: ComponentId) -> Result<StandIn, Objection> {
        let index = self.stand_ins.iter().position(|one| one.component.id == component);
        Ok(self.stand_ins.remove(index.ok_or(Objection::NoComponent(component))?))
    }

    fn check_stand_in(&self, one: &StandIn) -> Result<(), Objection> {
        let component = one.component;
        let unfit = |reason| Err(Objection::Unfit { component: component.id, reason });
        let Some(copies) = self.layout.place(usize::from(one.place)) else {
            return unfit("the disk has no such place");
        };
        if !copies.iter().any(|copy| copy.id == one.of) {
            return Err(Objection::NoComponent(one.of));
        }
        if self.stand_in_for(one.of).is_some() || self.incoming_for(one.of).is_some() {
            return Err(Objection::AlreadyReplaced(one.of));
        }
        if self.roster.member(one.of).is_none_or(|member| member.standing != Standing::Absent) {
            return unfit("what it is to stand in for is not absent");
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
        if of_place >= PLACE_MEMBERS_MAX {
            return unfit("its place has all the components that it can have");
        }
        Ok(())
    }

    /// Forgets stand-ins of components that have left the layout.
    pub(super) fn drop_stand_ins(&mut self) {
        let layout = &self.layout;
        self.stand_ins.retain(|one| layout.components().any(|(_, component)| component.id == one.of));
        for member in &mut self.roster.members {
            let is_heir = matches!(member.role, Role::Heir { .. });
            if is_heir && layout.components().any(|(_, component)| component.id == member.component) {
                member.role = Role::Copy;
            }
        }
        self.drop_members();
    }

    /// Whether the roster gives every stand-in and every heir its role, and no other component; each belongs to a
    /// component of its place.
    pub(super) fn has_fitting_roles(&self) -> bool {
        let fits = |member: &Member| {
            let stand_in = self.stand_ins.iter().find(|one| one.component.id == member.component);
            let incoming = self.incoming.iter().find(|one| one.component.id == member.component);
            match member.role {
                Role::Copy => stand_in.is_none() && member.standing != Standing::StandIn,
                Role::StandIn { of } => {
                    stand_in.is_some_and(|one| one.of == of) && member.standing != Standing::Active
                }
                Role::Heir { of } => incoming.is_some_and(|one| one.replaces == Some(of)),
            }
        };
        let has_seat = |one: &StandIn| {
            let seats = self.layout.place(usize::from(one.place)).unwrap_or(&[]);
            seats.iter().any(|seat| seat.id == one.of && seat.size == one.component.size)
        };
        self.roster.members.iter().all(fits) && self.stand_ins.iter().all(has_seat)
    }
}
