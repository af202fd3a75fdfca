//! The record of a virtual disk in the directory, and its transitions.
//!
//! The layout says where the disk stands, the roster which of its components are active. A component on its way in (a
//! replacement or one more copy) is in the roster, so that the owner fills it, but in no layout. It is kept beside
//! the layout as [`Incoming`] until it is active and takes its seat. Putting it into the layout at once was rejected:
//! a place with four copies has no room for a fifth, and the layout would promise copies without data. In the same
//! way a larger size is a [`Growth`] beside the layout until its components exist.
//!
//! A transition does not change the record that it starts from. It gives the next record, and the orders that nodes
//! carry out *after* that record is stored. All orders may be repeated, and follow from the record alone
//! ([`DiskRecord::components`], [`DiskRecord::deletions`]). So none is lost with the host that stored the record.

mod cloned;
mod clones;
pub(crate) mod diverged;
pub(crate) mod life;
mod moves;
mod parts;
mod recovered;
mod replace;
mod resize;
mod rollback;
mod rules;
mod snapshots;
mod stand_in;

use crate::attaching::Access;
use base::{ComponentId, DeviceId, DiskId, NodeId};
use layout::{Component, Invalid, Layout, Side};
use placement::{Cause, Debt, PlacedDisk, Policy, Refusal, reservation};
use replication::{InRows, Member, Moved, Origin, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};
use wire::NewComponent;

pub use cloned::Clones;
pub use parts::{
    DiskState, Growth, Incoming, MovePlan, MoveRoom, Moving, NoSnapshot, Reason, Rollback, Snapshot,
    Snapshots, StandIn,
};

/// The node that serves each device.
pub type Nodes = BTreeMap<DeviceId, NodeId>;

/// A virtual disk. Changed only by compare-and-set on its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskRecord {
    /// Grows with every change.
    pub version: u64,
    /// Its identity.
    pub id: DiskId,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its policy, as it was asked for.
    pub policy: Policy,
    /// The named policy that it follows: its rules change with that one. None if it was made with rules of its own.
    pub follows: Option<String>,
    /// The share of every component that is reserved on its device: the policy's, or less while that is a debt.
    pub space_reservation: placement::Percent,
    /// Where it stands.
    pub layout: Layout,
    /// Whether guests may only read it.
    pub read_only: bool,
    /// Who may attach to it, and at how many hosts at once.
    pub access: Access,
    /// How far it has come.
    pub state: DiskState,
    /// Its owner, and the standing of its components: those of the layout, the incoming ones and the stand-ins, by
    /// place.
    pub roster: Roster,
    /// Components on their way in.
    pub incoming: Vec<Incoming>,
    /// Components that stand in for absent ones.
    pub stand_ins: Vec<StandIn>,
    /// The larger size that is being made.
    pub growth: Option<Growth>,
    /// The move into another layout.
    pub moving: Option<Moving>,
    /// The former, larger size. The space between the end of the disk and this size is still to be freed.
    pub surplus: Option<u64>,
    /// Its snapshots.
    pub snapshots: Snapshots,
    /// The rollback to one of them, until it is done.
    pub rollback: Option<Rollback>,
    /// What it is a clone of, as long as not all of that is copied.
    pub origin: Option<Origin>,
    /// By the number of a snapshot: how many disks are clones of it. It stays as long as any is.
    pub clones: BTreeMap<u32, u32>,
    /// What the policy asks for and the disk lacks.
    pub debts: Vec<Debt>,
}

/// The next record, and the orders for nodes once it is stored. The `disk_label` of components is empty: the layer
/// that knows its format fills it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The record.
    pub record: DiskRecord,
    /// Components to make, and the nodes that make them.
    pub create: Vec<(NodeId, NewComponent)>,
    /// Components whose size, reservation or label changes.
    pub update: Vec<(NodeId, NewComponent)>,
    /// Components to delete. A node that is away does so later, when it finds that no record names them.
    pub delete: Vec<(NodeId, ComponentId)>,
}

/// Why a disk does not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// It is being created or deleted.
    #[error("the disk is {}", match .0 { DiskState::Creating => "being created", DiskState::Active => "active", DiskState::Deleting => "being deleted" })]
    State(DiskState),
    /// It has no such component.
    #[error("the disk has no component {0}")]
    NoComponent(ComponentId),
    /// The component is already being replaced.
    #[error("component {0} is already being replaced")]
    AlreadyReplaced(ComponentId),
    /// The component lacks acknowledged changes.
    #[error("component {0} is not active yet")]
    NotActive(ComponentId),
    /// No active component of the place would be left.
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
    /// It has not diverged, so there is nothing to decide.
    #[error("the disk has not diverged: all its copies follow from one another")]
    NotDiverged,
    /// The host has no copy of a place that could be kept.
    #[error("the host has no copy of part {0} of the disk that could be kept")]
    NotKept(u16),
    /// No known node serves the device.
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
    /// A person has to decide first which of its copies are kept.
    #[error("the disk has diverged: decide first which copies are kept (`drystone disk resolve`)")]
    Diverged,
    /// Of a place no copy that would stay can be reached.
    #[error(
        "no up-to-date copy of part {0} of the disk is on a host and a device in service: bring one back into service before copies are \
         removed"
    )]
    NoneServes(usize),
    /// It moves into another layout.
    #[error("the disk is being moved into another layout")]
    Moving,
    /// It does not move, or not all of it has.
    #[error("the disk is not being moved into another layout")]
    NotMoving,
    /// A device would be too full with the other layout.
    #[error("device {device} lacks {missing} of room for the other layout")]
    NoRoomToMove {
        /// The device.
        device: String,
        /// Bytes, for people.
        missing: String,
    },
    /// What clones it has, or what it is a clone of, stands in the way.
    #[error("the disk {0}")]
    Clone(&'static str),
    /// It is a clone, which stands in the way.
    #[error(
        "the disk is a clone, and {0} before it has copied what it shares with its origin (`drystone disk flatten`)"
    )]
    OfClone(&'static str),
    /// A snapshot stands in the way, or lacks.
    #[error(transparent)]
    Snapshot(#[from] NoSnapshot),
    /// A rule does not change while the disk is in use.
    #[error("{rule} cannot change from {from} to {to} on a disk in use yet: it needs {needs}")]
    NotLive {
        /// The rule.
        rule: &'static str,
        /// Its value.
        from: String,
        /// The value asked for.
        to: String,
        /// What the change needs.
        needs: &'static str,
    },
    /// There is no room, or no place.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A rule cannot be kept.
    #[error("{0}")]
    Cause(Cause),
}

/// A contradiction in a record: the record was damaged, or another program wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// The layout is not valid, now or with the incoming components.
    #[error("the layout is not valid: {0}")]
    Layout(#[from] Invalid),
    /// The layout is smaller than the disk, or the surplus is not larger than the size.
    #[error("the layout holds less than the disk, or the surplus ends within the disk")]
    Size,
    /// It has two layouts, and nothing says that it moves.
    #[error("the disk has two layouts, and does not move")]
    Moving,
    /// It is a clone with a layout that no clone has, or has clones of a snapshot that is not there.
    #[error(
        "the disk is a clone whose layout no clone can have, or clones of a snapshot are counted that it does not have"
    )]
    Clones,
    /// The names of snapshots and their numbers differ.
    #[error("the snapshots that the record names are not those of its roster")]
    Snapshots,
    /// The roster does not name the components of the layout, or not by place.
    #[error("the roster does not name the components of the layout and the incoming ones by place")]
    Members,
    /// An incoming component has no seat to take, or another size than its place.
    #[error("incoming component {0} does not fit its place")]
    Incoming(ComponentId),
    /// A stand-in has another place or size than the component that it stands in for, or another role in the roster.
    #[error("a stand-in does not fit the component that it stands in for")]
    StandIn,
    /// Two components of one place share a device.
    #[error("two components of place {0} stand on one device")]
    SharedDevice(usize),
    /// A place has more components than an owner can tell apart.
    #[error("too many components answer for place {0}")]
    Crowded(usize),
    /// A place has no active component, or with parity fewer than data units.
    #[error("too few components of place {0} are active")]
    NoActive(usize),
}

impl DiskRecord {
    /// The layout once all incoming components have arrived.
    pub fn layout_to_come(&self) -> Layout {
        let mut layout = self.layout.clone();
        for one in &self.incoming {
            layout = seated(&layout, one);
        }
        layout
    }

    /// The disk as placement sees it. `layout` is the disk's present or future one; `used_bytes` is by place.
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

    /// A component of the layout, an incoming one or a stand-in, with its place.
    pub fn component(&self, id: ComponentId) -> Option<(usize, Component)> {
        self.all_components().find(|(_, component)| component.id == id)
    }

    /// The component on its way to the seat of another.
    pub fn incoming_for(&self, id: ComponentId) -> Option<&Incoming> {
        self.incoming.iter().find(|one| one.replaces == Some(id))
    }

    /// All components with their places and nodes, as each node has to know them. A node is told this before a
    /// component that was away is opened again.
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

    /// The components to delete before a deleted disk is gone.
    pub fn deletions(&self) -> Vec<(NodeId, ComponentId)> {
        self.components().into_iter().map(|(node, component)| (node, component.id)).collect()
    }

    /// Whether all components of the layout are active, and none is incoming or a stand-in.
    pub fn is_whole(&self) -> bool {
        self.incoming.is_empty() && self.roster.members.iter().all(|one| one.standing == Standing::Active)
    }

    /// Whether the parts of the record agree. To be asked of every record that was read: the transitions rely on it.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Disagreement> {
        self.layout.validate()?;
        if self.layout.size() < self.size || self.surplus.is_some_and(|end| end <= self.size) {
            return Err(Disagreement::Size);
        }
        if self.layout.boundary().is_some() && self.moving.is_none() {
            return Err(Disagreement::Moving);
        }
        if !self.has_fitting_snapshots() {
            return Err(Disagreement::Snapshots);
        }
        self.check_clones()?;
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
            if !self.has_enough(place) {
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

    /// Active components of a place.
    pub fn active_count(&self, place: usize) -> usize {
        let counts = |one: &&Member| usize::from(one.place) == place && one.standing == Standing::Active;
        self.roster.members.iter().filter(counts).count()
    }

    /// How many of some components of a place could be lost one after the other until its data is: one copy has all, and with parity
    /// as many members as there are data units. 0: they do not have it. The components must be the disk's.
    pub fn left(&self, place: usize, components: impl IntoIterator<Item = ComponentId>) -> usize {
        let components = components.into_iter();
        let Some(code) = self.layout.place_code(place) else { return components.count() };
        let positions: BTreeSet<u8> =
            components.filter_map(|id| Some(self.component(id)?.1.position)).collect();
        (positions.len() + 1).saturating_sub(usize::from(code.data()))
    }

    /// Whether a place has active components enough to be read: one, or with parity as many as it has data units.
    pub fn has_enough(&self, place: usize) -> bool {
        let is_active = |one: &&Member| usize::from(one.place) == place && one.standing == Standing::Active;
        self.left(place, self.roster.members.iter().filter(is_active).map(|one| one.component)) > 0
    }

    /// What a member is in the rows of its place.
    fn in_rows(&self, member: &Member) -> Option<InRows> {
        let code = self.layout.place_code(usize::from(member.place))?;
        let position = self.component(member.component)?.1.position;
        Some(InRows { code, position })
    }

    /// Tells the roster's members what they are in the rows of their places, which the roster itself does not store. To be called
    /// once a record was read.
    pub fn note_rows(&mut self) {
        let trimmed = self.moving.as_ref().map_or(0, |moving| moving.trimmed);
        self.roster.moving = self.layout.boundary().map(|boundary| Moved { boundary, trimmed });
        if (0..self.layout.place_count()).all(|place| self.layout.place_code(place).is_none()) {
            return;
        }
        let rows: Vec<Option<InRows>> = self.roster.members.iter().map(|one| self.in_rows(one)).collect();
        for (member, rows) in self.roster.members.iter_mut().zip(rows) {
            member.rows = rows;
        }
    }

    fn is_active(&self, component: ComponentId) -> bool {
        self.roster.member(component).is_some_and(|member| member.standing == Standing::Active)
    }

    /// The components of the layout, the incoming ones and the stand-ins, with their places.
    pub(crate) fn all_components(&self) -> impl Iterator<Item = (usize, Component)> {
        let standing = self.layout.places();
        let standing = standing.flat_map(|(place, copies)| copies.iter().map(move |copy| (place, *copy)));
        let incoming = self.incoming.iter().map(|one| (usize::from(one.place), one.component));
        let stand_ins = self.stand_ins.iter().map(|one| (usize::from(one.place), one.component));
        standing.chain(incoming).chain(stand_ins)
    }

    /// The components of a place, in whatever role.
    pub(crate) fn place_components(&self, place: usize) -> impl Iterator<Item = Component> {
        self.all_components().filter(move |(at, _)| *at == place).map(|(_, one)| one)
    }

    fn node(&self, component: ComponentId) -> NodeId {
        self.roster.member(component).expect("the roster names every component").node
    }

    /// The layout that the disk would have if it had always had its size, or the one that it grows to: reservations
    /// follow from it. Its first places are those of the layout.
    fn fitted(&self) -> Layout {
        match &self.growth {
            Some(growth) => placement::shrink(&growth.layout, growth.size),
            None => placement::shrink(&self.layout, self.size),
        }
    }

    /// A component as its node has to know it. While the disk grows, the component has its future size.
    fn new_component(&self, place: usize, component: &Component, fitted: &Layout) -> NewComponent {
        let larger = self.growth.as_ref().and_then(|growth| growth.layout.place(place));
        let size = larger.map_or(component.size, |copies| copies[0].size);
        let needed = fitted.place(place).map_or(0, |copies| copies[0].size);
        NewComponent {
            id: component.id,
            disk: self.id,
            device: component.device,
            size,
            reservation: reservation(needed, self.reserved_share(place)),
            disk_label: Vec::new(),
        }
    }

    /// The share of the components of a place that is reserved: what a disk moves to has its own from the beginning.
    fn reserved_share(&self, place: usize) -> placement::Percent {
        let layout = self.growth.as_ref().map_or(&self.layout, |growth| &growth.layout);
        match (&self.moving, layout.side(Side::New)) {
            (Some(moving), Some((first, _))) if place >= first => moving.space_reservation,
            _ => self.space_reservation,
        }
    }

    fn expect_active(&self) -> Result<(), Objection> {
        match self.state {
            DiskState::Active => Ok(()),
            DiskState::Creating | DiskState::Deleting => Err(Objection::State(self.state)),
        }
    }

    /// The transition to `next`, whose version and debts are set here.
    fn changed(&self, mut next: DiskRecord) -> Transition {
        next.version = self.version + 1;
        next.note_rows();
        next.debts = next.debts_now();
        assert_eq!(next.check(), Ok(()), "a transition keeps a record whole");
        Transition { record: next, create: Vec::new(), update: Vec::new(), delete: Vec::new() }
    }

    /// What the policy asks for and the disk lacks. Missing columns are known from the plan only and stay missing,
    /// because no blocks move.
    fn debts_now(&self) -> Vec<Debt> {
        if self.layout.boundary().is_some() {
            return self.debts.clone(); // As before it began to move.
        }
        let mut got = self.policy;
        let fewest = self.layout.places().map(|(_, copies)| copies.len()).min().unwrap_or(1);
        let survived = self.layout.code().map_or(fewest as u8 - 1, |code| code.parity());
        got.failures_to_tolerate = got.failures_to_tolerate.min(survived);
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

/// `layout` with an arrived component in its seat. The component has the size of the place.
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
