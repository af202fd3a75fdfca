//! The part of a disk's record that replication needs: who owns it, in which epoch, and which components count.

use crate::snapshots::{Numbers, Snapshots};
use base::{ComponentId, NodeId, WriteId};
use layout::Code;

/// Whether a component has all that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It has: it is one of those that every acknowledgement waits for.
    Active,
    /// It missed writes since it was last active, or has never been active.
    Absent,
    /// It lost what it had acknowledged: nothing that it says of itself is relied on.
    Stale,
    /// It has all that was changed since the component that it stands in for was last active: every acknowledgement waits
    /// for it as for an active one, and nobody reads from it (docs/design/0013).
    StandIn,
}

impl Standing {
    /// Whether every acknowledgement waits for it.
    pub fn counts(self) -> bool {
        match self {
            Standing::Active | Standing::StandIn => true,
            Standing::Absent | Standing::Stale => false,
        }
    }
}

/// What a component is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// To be a copy of its place.
    Copy,
    /// To take what is changed while another component of its place is absent.
    StandIn {
        /// That one.
        of: ComponentId,
    },
    /// To replace the component that it stood in for until now: it goes on with that until it is active.
    Heir {
        /// That one.
        of: ComponentId,
    },
}

impl Role {
    /// The component that it stands in for, unless it is a copy like others.
    pub fn of(self) -> Option<ComponentId> {
        match self {
            Role::Copy => None,
            Role::StandIn { of } | Role::Heir { of } => Some(of),
        }
    }
}

/// What a component that does not count may know at most, if the record that says so is the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Ceiling {
    /// That is not known: it left before records told of it, or it has never counted.
    #[default]
    Unknown,
    /// Changes up to this id may be decided as far as it knows, none after it.
    At(WriteId),
    /// It knows later changes to be decided: these were acknowledged by a record that this one does not follow. Its disk is diverged, and
    /// waits for a person (docs/design/0023).
    Passed,
}

/// What a component is in rows with parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InRows {
    /// How the rows of its place are coded.
    pub code: Code,
    /// Which member of each row it is.
    pub position: u8,
}

/// One component in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The component.
    pub component: ComponentId,
    /// The node that holds it.
    pub node: NodeId,
    /// The place it belongs to, depth first.
    pub place: u16,
    /// What it is in the rows of its place; none where that has copies.
    pub rows: Option<InRows>,
    /// Whether it counts.
    pub standing: Standing,
    /// Everything up to this id is on it, whatever its own watermark says: the watermark of its place when it was last made
    /// active, or when it was last taken out of the active set.
    pub base: WriteId,
    /// What it is there for.
    pub role: Role,
    /// What it may know at most, while it does not count.
    pub ceiling: Ceiling,
    /// Snapshots of the disk that it does not have, or not as a whole: they were taken while it did not count.
    pub lacks: Numbers,
}

impl Member {
    /// The component that it stands in for. One that is active is a copy, whatever it was before.
    pub fn stands_in_for(&self) -> Option<ComponentId> {
        if self.standing == Standing::Active { None } else { self.role.of() }
    }
}

/// Who owns a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedBy {
    /// The node.
    pub node: NodeId,
    /// That start of its process.
    pub incarnation: u64,
}

/// How far a disk has moved from one layout into another (docs/design/0041).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Below this byte of the disk the new layout counts, from it on the old one.
    pub boundary: u64,
    /// On the way it moves, everything before this byte is trimmed where it does not count any more.
    pub trimmed: u64,
}

/// The roster of a disk: changed only by compare-and-set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    /// Grows with every change of owner.
    pub epoch: u32,
    /// The owner; none between owners.
    pub owner: Option<OwnedBy>,
    /// Its components, by place.
    pub members: Vec<Member>,
    /// How far it has moved, while it has two layouts.
    pub moving: Option<Moved>,
    /// Grows whenever its places get other numbers: when it begins to move into another layout, and when it has moved. Who maps requests by
    /// a layout of another number maps them wrongly.
    pub shape: u32,
    /// Its snapshots.
    pub snapshots: Snapshots,
}

impl Roster {
    /// How many places there are.
    pub fn place_count(&self) -> usize {
        self.members.iter().map(|member| member.place as usize + 1).max().unwrap_or(0)
    }

    /// A member, by its component.
    pub fn member(&self, component: ComponentId) -> Option<&Member> {
        self.members.iter().find(|member| member.component == component)
    }

    /// The component that has what was changed while `component` was not active: with that one together, it has all that
    /// was acknowledged.
    pub fn stand_in_of(&self, component: ComponentId) -> Option<&Member> {
        let is_it = |one: &&Member| one.standing == Standing::StandIn && one.role.of() == Some(component);
        self.members.iter().find(is_it)
    }

    /// The components that hold acknowledged changes which those that count lack. While there are any, nobody serves the disk.
    pub fn diverged(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.ceiling == Ceiling::Passed)
    }

    /// A person has decided of a place that has diverged: what the components say that count is kept, or what `kept` says, one that holds
    /// changes which those lack. The others of the place are filled anew from that. None if the place, or `kept`, has not diverged.
    pub fn decided_in(&self, place: u16, kept: Option<ComponentId>) -> Option<Roster> {
        let is_diverged = |id: Option<ComponentId>| {
            self.diverged().any(|one| one.place == place && id.is_none_or(|id| one.component == id))
        };
        if !is_diverged(kept) {
            return None;
        }
        let mut next = Roster { owner: None, ..self.clone() };
        for member in next.members.iter_mut().filter(|one| one.place == place) {
            let is_kept = match kept {
                Some(kept) => member.component == kept,
                None => member.ceiling != Ceiling::Passed,
            };
            match (is_kept, kept) {
                (true, Some(_)) => (member.standing, member.role) = (Standing::Active, Role::Copy),
                (true, None) => continue,
                (false, _) => {
                    member.standing = Standing::Stale;
                    member.lacks = Numbers::through(self.snapshots.last);
                }
            }
            (member.ceiling, member.base) = (Ceiling::Unknown, WriteId::default());
        }
        Some(next)
    }

    /// The nodes that hold components, each once, in order.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.members.iter().map(|member| member.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
