//! The life of a disk from its plan to its deletion, and changes by its owner and by people.

use super::cloned::Clones;
use super::parts::{DiskState, Snapshots};
use super::{DiskRecord, Nodes, Objection, Transition, node_of};
use crate::attaching::Access;
use base::{DiskId, WriteId};
use placement::{Plan, Policy};
use replication::{Member, Numbers, Origin, Role, Roster, Standing};
use std::collections::BTreeMap;
use wire::NewComponent;

/// A disk to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// Its identity.
    pub id: DiskId,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its policy.
    pub policy: Policy,
    /// The named policy that it follows, if any.
    pub follows: Option<String>,
    /// Whether guests may only read it.
    pub read_only: bool,
    /// Whether clients of several hosts may have it at once.
    pub is_shared: bool,
    /// What it is a clone of, if it is to be one.
    pub origin: Option<Origin>,
}

impl DiskRecord {
    /// A planned disk. All its components are active: they are equally empty.
    ///
    /// # Errors
    /// When no node serves one of the plan's devices.
    pub fn create(new: NewDisk, plan: &Plan, nodes: &Nodes) -> Result<Transition, Objection> {
        let mut members = Vec::new();
        for (place, copies) in plan.layout.places() {
            for copy in copies {
                let node = node_of(nodes, copy.device)?;
                let (place, base) = (place as u16, WriteId::default());
                let (standing, role) = (Standing::Active, Role::Copy);
                let ceiling = replication::Ceiling::Unknown;
                let (component, rows) = (copy.id, None);
                let lacks = Numbers::default();
                members.push(Member { component, node, place, rows, standing, base, role, ceiling, lacks });
            }
        }
        let record = DiskRecord {
            version: 0,
            id: new.id,
            name: new.name,
            size: new.size,
            policy: new.policy,
            follows: new.follows,
            space_reservation: plan.space_reservation,
            layout: plan.layout.clone(),
            read_only: new.read_only,
            access: Access { is_shared: new.is_shared, limit: None },
            state: DiskState::Creating,
            roster: Roster { epoch: 0, owner: None, members, ..Roster::default() },
            incoming: Vec::new(),
            stand_ins: Vec::new(),
            growth: None,
            moving: None,
            surplus: None,
            snapshots: Snapshots::default(),
            rollback: None,
            origin: new.origin,
            clones: BTreeMap::new(),
            debts: plan.debts.clone(),
        };
        record.expect_fit_for_origin()?;
        let transition = record.changed(record.clone());
        Ok(Transition { create: transition.record.components(), ..transition })
    }

    /// All components exist: the disk can be used.
    ///
    /// # Errors
    /// When the disk is not being created.
    pub fn activate(&self) -> Result<Transition, Objection> {
        match self.state {
            DiskState::Creating => Ok(self.changed(DiskRecord { state: DiskState::Active, ..self.clone() })),
            DiskState::Active | DiskState::Deleting => Err(Objection::State(self.state)),
        }
    }

    /// Begins to delete the disk; `clones` are those among all disks. Its record may be removed once its [`deletions`](DiskRecord::deletions) are done,
    /// or all but those on hosts that never come back.
    ///
    /// # Errors
    /// When it is being deleted already, or has clones.
    pub fn begin_delete(&self, clones: &Clones) -> Result<Transition, Objection> {
        self.expect_no_clones(clones)?;
        match self.state {
            DiskState::Creating | DiskState::Active => {
                let transition = self.changed(DiskRecord { state: DiskState::Deleting, ..self.clone() });
                Ok(Transition { delete: transition.record.deletions(), ..transition })
            }
            DiskState::Deleting => Err(Objection::State(self.state)),
        }
    }

    /// Renames the disk. The directory sees to it that no other disk has the name.
    ///
    /// # Errors
    /// When the disk is not there.
    pub fn rename(&self, name: &str) -> Result<Transition, Objection> {
        self.expect_active()?;
        let transition = self.changed(DiskRecord { name: name.to_owned(), ..self.clone() });
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// The disk may only be read from now on.
    ///
    /// # Errors
    /// When the disk is not there.
    pub fn forbid_writes(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let transition = self.changed(DiskRecord { read_only: true, ..self.clone() });
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// The disk may be written from now on.
    ///
    /// # Errors
    /// When the disk is not there.
    pub fn allow_writes(&self) -> Result<Transition, Objection> {
        self.expect_active()?;
        let transition = self.changed(DiskRecord { read_only: false, ..self.clone() });
        Ok(Transition { update: transition.record.components(), ..transition })
    }

    /// Changes who may attach to the disk, and at how many hosts.
    ///
    /// # Errors
    /// When the disk is not there.
    pub fn with_access(&self, access: Access) -> Result<Transition, Objection> {
        self.expect_active()?;
        Ok(self.changed(DiskRecord { access, ..self.clone() }))
    }

    /// Stores what an owner asks for: another owner, or other standings of the same components. A component that
    /// becomes active is updated *before* the record is stored, because it may have been away while the disk grew. `now_ns`: what a snapshot that
    /// the owner has taken says of its time, in nanoseconds since 1970.
    ///
    /// # Errors
    /// When the roster names other components, goes back to an earlier epoch, or leaves a place without an active
    /// component.
    pub fn with_roster(&self, roster: &Roster, now_ns: u64) -> Result<Transition, Objection> {
        let of = |roster: &Roster| -> Vec<_> {
            roster.members.iter().map(|one| (one.place, one.component, one.node, one.role)).collect()
        };
        if of(roster) != of(&self.roster) {
            return Err(Objection::Roster("it names other components"));
        }
        if roster.epoch < self.roster.epoch {
            return Err(Objection::Roster("its epoch is earlier"));
        }
        let mut next = DiskRecord { roster: roster.clone(), ..self.clone() };
        next.follow_snapshots(&self.roster, now_ns);
        match (roster.moving, &mut next.moving, next.layout.boundary()) {
            (Some(moved), Some(moving), Some(_)) => {
                moving.trimmed = moved.trimmed;
                next.layout.set_boundary(moved.boundary);
            }
            (None, _, None) => {}
            _ => return Err(Objection::Roster("it has another number of layouts")),
        }
        if roster.shape != self.roster.shape {
            return Err(Objection::Roster("its places have other numbers"));
        }
        if (0..self.layout.place_count()).any(|place| !next.has_enough(place)) {
            return Err(Objection::Roster("a place has too few active components"));
        }
        let counts = |disk: &DiskRecord, id| disk.roster.member(id).is_some_and(|one| one.standing.counts());
        let joins = |new: &NewComponent| counts(&next, new.id) && !counts(self, new.id);
        let mut update =
            if next.roster.members == self.roster.members { Vec::new() } else { self.components() };
        update.retain(|(_, new)| joins(new));
        Ok(Transition { update, ..self.changed(next.clone()) })
    }
}
