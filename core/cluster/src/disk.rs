//! A virtual disk in the directory, and what may become of it.
//!
//! The layout says where the disk stands, the roster which of its components count. A component on its way in (to
//! replace another, or as one more copy) is in the roster, so that the owner fills it, but in no layout: it is kept beside
//! it as [`Incoming`] until it is active and takes its seat. Putting it into the layout at once was rejected: a place with
//! four copies has no room for a fifth, and a layout would promise copies that hold nothing yet. In the same way a larger
//! size is a [`Growth`] beside the layout until its components are there.
//!
//! Every transition leaves the record that it starts from as it is and gives the next one, with what nodes have to do
//! *after* it is stored. All that they have to do may be done again, and follows from the record alone ([`DiskRecord::components`],
//! [`DiskRecord::deletions`]), so that nothing is lost with the one who stored it.

pub(crate) mod diverged;
pub(crate) mod life;
mod parts;
mod replace;
mod resize;
mod rules;
mod stand_in;

use crate::attaching::Access;
use base::{ComponentId, DeviceId, DiskId, NodeId};
use layout::{Component, Invalid, Layout};
use placement::{Cause, Debt, PlacedDisk, Policy, Refusal, reservation};
use replication::{Member, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};
use wire::NewComponent;

pub use parts::{DiskState, Growth, Incoming, Reason, StandIn};

/// The node that serves each device.
pub type Nodes = BTreeMap<DeviceId, NodeId>;

/// A virtual disk. Changed only by compare-and-set on its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskRecord {
    /// Grows with every change.
    pub version: u64,
    /// Its identity.
    pub id: DiskId,
    /// What people and guests call it.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// What was asked for.
    pub policy: Policy,
    /// The share of every component that its device sets aside: the policy's, or less when that is a debt.
    pub space_reservation: placement::Percent,
    /// Where it stands.
    pub layout: Layout,
    /// Whether guests may only read it.
    pub read_only: bool,
    /// Who may attach to it, and at how many hosts at once.
    pub access: Access,
    /// How far it has come.
    pub state: DiskState,
    /// Who owns it, and which components count: those of the layout, the incoming ones and the stand-ins, by place.
    pub roster: Roster,
    /// Components on their way in.
    pub incoming: Vec<Incoming>,
    /// Components that stand in for absent ones.
    pub stand_ins: Vec<StandIn>,
    /// The size that it is getting.
    pub growth: Option<Growth>,
    /// The size that it had: what stands between its end and there is still to be given back.
    pub surplus: Option<u64>,
    /// What the policy asks for and the disk does not have yet.
    pub debts: Vec<Debt>,
}

/// The next record, and what nodes have to do once it is stored. The `disk_label` of components is empty: whoever knows
/// its form fills it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The record.
    pub record: DiskRecord,
    /// Components to make, and the nodes that make them.
    pub create: Vec<(NodeId, NewComponent)>,
    /// Components whose size or reservation changes, or with which another label of the disk is to be kept.
    pub update: Vec<(NodeId, NewComponent)>,
    /// Components to delete. A node that is not there does so when it finds them in no record.
    pub delete: Vec<(NodeId, ComponentId)>,
}

/// Why a disk does not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// It is being made or deleted.
    #[error("the disk is {}", match .0 { DiskState::Creating => "being made", DiskState::Active => "there", DiskState::Deleting => "being deleted" })]
    State(DiskState),
    /// It has no such component.
    #[error("component {0} is none of the disk's")]
    NoComponent(ComponentId),
    /// The component is already being replaced.
    #[error("component {0} is already being replaced")]
    AlreadyReplaced(ComponentId),
    /// The component has not all that was acknowledged yet.
    #[error("component {0} is not active yet")]
    NotActive(ComponentId),
    /// Without the component, nothing of a place would be left.
    #[error("component {0} is the only active one of its place")]
    LastCopy(ComponentId),
    /// The component has all that was acknowledged, or can be brought up to date.
    #[error("component {0} is not lost")]
    StillCounts(ComponentId),
    /// The new component cannot stand in its place.
    #[error("component {component} cannot be added: {reason}")]
    Unfit {
        /// The component.
        component: ComponentId,
        /// Why not.
        reason: &'static str,
    },
    /// It has not diverged: there is nothing to decide.
    #[error("the disk has not diverged: all its copies follow from one another")]
    NotDiverged,
    /// The host has no copy of a place that could be kept.
    #[error("the host has no copy of part {0} of the disk that could be kept")]
    NotKept(u16),
    /// The device is served by no node that is known.
    #[error("no host serves device {0}")]
    UnknownDevice(DeviceId),
    /// The roster names other components, or an earlier epoch.
    #[error("the roster does not follow from the record's: {0}")]
    Roster(&'static str),
    /// It is growing already, or not at all.
    #[error("{0}")]
    Growth(&'static str),
    /// The size makes no sense here.
    #[error("a disk of {found} bytes cannot be {wanted} from {size} bytes")]
    Size {
        /// What is done.
        wanted: &'static str,
        /// The size now.
        size: u64,
        /// The size asked for.
        found: u64,
    },
    /// No blocks move when a policy changes.
    #[error("stripes={0} needs other columns than the disk has: copy it to a new disk of this policy")]
    Stripes(String),
    /// There is no room, or no place.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A rule cannot be kept.
    #[error("{0}")]
    Cause(Cause),
}

/// What does not fit together in a record: it was damaged, or written by something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// The layout is none, now or with what comes.
    #[error("the layout is not valid: {0}")]
    Layout(#[from] Invalid),
    /// The layout is smaller than the disk, or what is to be given back is none.
    #[error("the layout holds less than the disk's size, or the disk had no larger one")]
    Size,
    /// Roster and layout name other components or places.
    #[error("the roster does not name what stands in the layout and what comes, by place")]
    Members,
    /// A component on its way in has no seat to take, or not the size of its place.
    #[error("component {0} is on its way in and does not fit its place")]
    Incoming(ComponentId),
    /// What stands in for another does not fit to it, or is not recorded as what it is.
    #[error("what stands in for another component does not fit to it")]
    StandIn,
    /// Two components of one place share a device.
    #[error("two components of place {0} stand on one device")]
    SharedDevice(usize),
    /// More components answer for a place than an owner can tell apart.
    #[error("too many components answer for place {0}")]
    Crowded(usize),
    /// Nothing that counts is left of a place.
    #[error("no component of place {0} is active")]
    NoActive(usize),
}

impl DiskRecord {
    /// The layout once all that is on its way in has arrived.
    pub fn layout_to_come(&self) -> Layout {
        let mut layout = self.layout.clone();
        for one in &self.incoming {
            layout = seated(&layout, one);
        }
        layout
    }

    /// What placement is to know of the disk. `layout` is the disk's, now or to come; `used_bytes` is by place.
    pub fn placed<'a>(&'a self, layout: &'a Layout, used_bytes: &'a [u64]) -> PlacedDisk<'a> {
        PlacedDisk {
            id: self.id,
            layout,
            policy: &self.policy,
            size: self.size,
            space_reservation: self.space_reservation,
            used_bytes,
        }
    }

    /// A component that stands in the layout, is on its way in or stands in for another, with its place.
    pub fn component(&self, id: ComponentId) -> Option<(usize, Component)> {
        self.all_components().find(|(_, component)| component.id == id)
    }

    /// The component on its way to the seat of another.
    pub fn incoming_for(&self, id: ComponentId) -> Option<&Incoming> {
        self.incoming.iter().find(|one| one.replaces == Some(id))
    }

    /// All components with their places, and their nodes: what a node has to have, whatever it missed. Before a component
    /// that was away is opened again, its node is told this of it.
    pub fn components(&self) -> Vec<(NodeId, NewComponent)> {
        let (standing, fitted) = (self.all_components(), self.fitted());
        let new = |place, one: &Component| self.new_component(place, one, &fitted);
        let mut components: Vec<(NodeId, NewComponent)> =
            standing.map(|(place, one)| (self.node(one.id), new(place, &one))).collect();
        if let Some(growth) = &self.growth {
            for (place, copies) in growth.layout.places() {
                for copy in copies {
                    let node = growth.nodes.get(&copy.id);
                    components.extend(node.map(|node| (*node, new(place, copy))));
                }
            }
        }
        components
    }

    /// What has to go before a disk that is being deleted is gone.
    pub fn deletions(&self) -> Vec<(NodeId, ComponentId)> {
        self.components().into_iter().map(|(node, component)| (node, component.id)).collect()
    }

    /// Whether all that the layout promises is there, and nothing is on its way or stands in.
    pub fn is_whole(&self) -> bool {
        self.incoming.is_empty() && self.roster.members.iter().all(|one| one.standing == Standing::Active)
    }

    /// Whether all parts of the record fit together. To be asked of every record that was read: the transitions rely on
    /// it.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), Disagreement> {
        self.layout.validate()?;
        if self.layout.size() < self.size || self.surplus.is_some_and(|end| end <= self.size) {
            return Err(Disagreement::Size);
        }
        self.check_incoming()?;
        self.layout_to_come().validate()?;
        self.check_members()?;
        if !self.has_fitting_roles() {
            return Err(Disagreement::StandIn);
        }
        if let Some(growth) = &self.growth {
            growth.layout.validate()?;
            if growth.layout.size() < growth.size {
                return Err(Disagreement::Size);
            }
        }
        for place in 0..self.layout.place_count() {
            let here: Vec<Component> =
                self.all_components().filter(|(at, _)| *at == place).map(|(_, one)| one).collect();
            if here.iter().map(|one| one.device).collect::<BTreeSet<_>>().len() < here.len() {
                return Err(Disagreement::SharedDevice(place));
            }
            if here.len() > crate::limits::PLACE_MEMBERS_MAX {
                return Err(Disagreement::Crowded(place));
            }
            if self.active_count(place) == 0 {
                return Err(Disagreement::NoActive(place));
            }
        }
        Ok(())
    }

    fn check_incoming(&self) -> Result<(), Disagreement> {
        for (index, one) in self.incoming.iter().enumerate() {
            let seats = self.layout.place(usize::from(one.place)).unwrap_or(&[]);
            let fits_size = seats.first().is_some_and(|seat| seat.size == one.component.size);
            let has_seat = one.replaces.is_none_or(|lost| seats.iter().any(|seat| seat.id == lost));
            let is_taken = one.replaces.is_some()
                && self.incoming[..index].iter().any(|other| other.replaces == one.replaces);
            if !fits_size || !has_seat || is_taken {
                return Err(Disagreement::Incoming(one.component.id));
            }
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), Disagreement> {
        let standing: BTreeSet<(usize, ComponentId)> =
            self.all_components().map(|(place, one)| (place, one.id)).collect();
        let named: BTreeSet<(usize, ComponentId)> =
            self.roster.members.iter().map(|member| (usize::from(member.place), member.component)).collect();
        let is_sorted = self.roster.members.is_sorted_by_key(|member| member.place);
        let is_once = named.len() == self.roster.members.len();
        if standing == named && is_sorted && is_once { Ok(()) } else { Err(Disagreement::Members) }
    }

    /// Components of a place that count.
    pub fn active_count(&self, place: usize) -> usize {
        let counts = |one: &&Member| usize::from(one.place) == place && one.standing == Standing::Active;
        self.roster.members.iter().filter(counts).count()
    }

    fn is_active(&self, component: ComponentId) -> bool {
        self.roster.member(component).is_some_and(|member| member.standing == Standing::Active)
    }

    /// The components of the layout, those on their way in and those that stand in for others, with their places.
    pub(crate) fn all_components(&self) -> impl Iterator<Item = (usize, Component)> {
        let standing = self.layout.places();
        let standing = standing.flat_map(|(place, copies)| copies.iter().map(move |copy| (place, *copy)));
        let incoming = self.incoming.iter().map(|one| (usize::from(one.place), one.component));
        let stand_ins = self.stand_ins.iter().map(|one| (usize::from(one.place), one.component));
        standing.chain(incoming).chain(stand_ins)
    }

    /// The components of a place, whatever they are there for.
    pub(crate) fn place_components(&self, place: usize) -> impl Iterator<Item = Component> {
        self.all_components().filter(move |(at, _)| *at == place).map(|(_, one)| one)
    }

    fn node(&self, component: ComponentId) -> NodeId {
        self.roster.member(component).expect("the roster names every component").node
    }

    /// The layout that the disk would have if it had always had its size, or the one that it is getting: what is set aside
    /// goes by that. The places in front are those of the layout.
    fn fitted(&self) -> Layout {
        match &self.growth {
            Some(growth) => placement::shrink(&growth.layout, growth.size),
            None => placement::shrink(&self.layout, self.size),
        }
    }

    /// What a node is told of a component. While the disk grows, the component has the size that it needs then.
    fn new_component(&self, place: usize, component: &Component, fitted: &Layout) -> NewComponent {
        let larger = self.growth.as_ref().and_then(|growth| growth.layout.place(place));
        let size = larger.map_or(component.size, |copies| copies[0].size);
        let needed = fitted.place(place).map_or(0, |copies| copies[0].size);
        NewComponent {
            id: component.id,
            disk: self.id,
            device: component.device,
            size,
            reservation: reservation(needed, self.space_reservation),
            disk_label: Vec::new(),
        }
    }

    fn expect_active(&self) -> Result<(), Objection> {
        match self.state {
            DiskState::Active => Ok(()),
            DiskState::Creating | DiskState::Deleting => Err(Objection::State(self.state)),
        }
    }

    /// The change to `next`, whose version and debts are set here.
    fn changed(&self, mut next: DiskRecord) -> Transition {
        next.version = self.version + 1;
        next.debts = next.debts_now();
        assert_eq!(next.check(), Ok(()), "a transition keeps a record whole");
        Transition { record: next, create: Vec::new(), update: Vec::new(), delete: Vec::new() }
    }

    /// What the policy asks for beyond what the disk has. That columns are missing is known from the plan only, and
    /// stays so: no blocks move.
    fn debts_now(&self) -> Vec<Debt> {
        let mut got = self.policy;
        let fewest = self.layout.places().map(|(_, copies)| copies.len()).min().unwrap_or(1);
        got.failures_to_tolerate = got.failures_to_tolerate.min(fewest as u8 - 1);
        got.space_reservation = got.space_reservation.min(self.space_reservation);
        let debt = |rule: &'static str| {
            let (wanted, got) = (self.policy.get(rule)?, got.get(rule)?);
            (wanted != got).then_some(Debt { rule, wanted, got })
        };
        let stripes = self.debts.iter().filter(|debt| debt.rule == "stripes").cloned();
        let mut debts: Vec<Debt> = debt("failures_to_tolerate").into_iter().chain(stripes).collect();
        debts.extend(debt("space_reservation"));
        debts
    }
}

/// `layout` with a component that has arrived in its seat. Its size is that of the place.
fn seated(layout: &Layout, one: &Incoming) -> Layout {
    let place = usize::from(one.place);
    let mut copies = layout.place(place).expect("what comes has a place").to_vec();
    let component = Component { size: copies[0].size, ..one.component };
    match one.replaces {
        None => copies.push(component),
        Some(lost) => {
            let seat = copies.iter_mut().find(|copy| copy.id == lost);
            *seat.expect("what is replaced stands in the place") = component;
        }
    }
    layout.with_place(place, copies)
}

fn node_of(nodes: &Nodes, device: DeviceId) -> Result<NodeId, Objection> {
    nodes.get(&device).copied().ok_or(Objection::UnknownDevice(device))
}

#[cfg(test)]
mod tests;
