//! Disks that the only host of a cluster finds on its devices after its directory was lost.
//!
//! A component carries its disk's label, the greatest epoch that it promised, and the watermark up to which its
//! changes are decided. That is enough where a host stands alone, because no other host can have owned the disk
//! since. In each place the copy that is furthest ahead becomes active, and the others are filled from it. Must never
//! be used where other hosts may know more: there the directory is [rebuilt](crate::rebuild) from the copies that
//! they kept.

use crate::attaching::Access;
use crate::disk::{Clones, Disagreement, DiskRecord, DiskState, Snapshots};
use base::{ComponentId, DiskId, NodeId, WriteId};
use layout::Layout;
use placement::{Percent, Policy};
use replication::{Ceiling, Member, Numbers, Origin, Role, Roster, Standing};
use std::collections::BTreeMap;

/// Epochs that a host of release 0.1 can have used, one at each start. Its components promised none.
const EPOCHS_BEFORE_PROMISES: u32 = 1 << 24;

/// A component that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The component.
    pub component: ComponentId,
    /// The node that holds it.
    pub node: NodeId,
    /// The place that it answers for.
    pub place: u16,
    /// The greatest epoch that it promised.
    pub promised: u32,
    /// Its watermark: all its changes up to this one are decided.
    pub watermark: WriteId,
    /// The numbers of its snapshots.
    pub snapshots: Vec<u32>,
}

/// A disk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Adopted {
    /// Its identity.
    pub id: DiskId,
    /// Its name, which no other disk may have.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its policy.
    pub policy: Policy,
    /// Whether guests may only read it.
    pub read_only: bool,
    /// What it is a clone of, if it is one.
    pub origin: Option<Origin>,
    /// Its layout, over the components that were found.
    pub layout: Layout,
    /// Those components.
    pub components: Vec<Found>,
    /// What other disks are clones of.
    pub origins: Vec<Origin>,
    /// The time, in nanoseconds since 1970.
    pub now_ns: u64,
}

impl Adopted {
    /// Its record, with no version and no owner yet.
    ///
    /// # Errors
    /// When the components' labels contradict one another.
    pub fn record(self) -> Result<DiskRecord, Disagreement> {
        let promised = self.components.iter().map(|one| one.promised).max().unwrap_or(0);
        let epoch = if promised == 0 { EPOCHS_BEFORE_PROMISES } else { promised };
        let is_furthest = |one: &Found| {
            let of_place = self.components.iter().filter(|other| other.place == one.place);
            let rank = |one: &Found| (one.promised, one.watermark, one.component);
            of_place.map(rank).max() == Some(rank(one))
        };
        let member = |one: &Found| Member {
            component: one.component,
            node: one.node,
            place: one.place,
            rows: None,
            standing: if is_furthest(one) { Standing::Active } else { Standing::Stale },
            base: WriteId::default(),
            role: Role::Copy,
            ceiling: Ceiling::Unknown,
            lacks: Numbers::default(),
        };
        let mut members: Vec<Member> = self.components.iter().map(member).collect();
        members.sort_by_key(|member| (member.place, member.component));
        let record = DiskRecord {
            version: 0,
            id: self.id,
            name: self.name,
            size: self.size,
            policy: self.policy,
            space_reservation: Percent::ZERO,
            layout: self.layout,
            read_only: self.read_only,
            access: Access::default(),
            state: DiskState::Active,
            roster: Roster { epoch, owner: None, members, ..Roster::default() },
            incoming: Vec::new(),
            stand_ins: Vec::new(),
            growth: None,
            moving: None,
            surplus: None,
            follows: None,
            snapshots: Snapshots::default(),
            rollback: None,
            origin: self.origin,
            clones: BTreeMap::new(),
            debts: Vec::new(),
        };
        let record = DiskRecord { space_reservation: record.policy.space_reservation, ..record };
        let mut record = record;
        record.note_rows();
        let held = self.components.into_iter().map(|one| (one.component, one.snapshots)).collect();
        record.recover_snapshots(&held, &self.origins, self.now_ns);
        record.count_clones(&Clones::of(self.origins));
        record.check().map(|()| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{node, policy};
    use base::DeviceId;
    use base::units::MIB;
    use layout::Component;

    fn found(component: u64, promised: u32, sequence: u64) -> Found {
        let watermark = WriteId { epoch: promised, sequence };
        Found {
            component: ComponentId(component),
            node: node(1),
            place: 0,
            promised,
            watermark,
            snapshots: Vec::new(),
        }
    }

    fn adopted(components: Vec<Found>) -> DiskRecord {
        with_clones(components, Vec::new())
    }

    fn with_clones(components: Vec<Found>, origins: Vec<Origin>) -> DiskRecord {
        let copy = |one: &Found| Component {
            id: one.component,
            device: DeviceId(one.component.0.into()),
            size: 4 * MIB,
            position: 0,
        };
        let layout = Layout::of_copies(components.iter().map(copy).collect());
        let (name, policy) = ("web".to_owned(), policy("default"));
        let disk = Adopted {
            id: DiskId(7),
            name,
            size: 4 * MIB,
            policy,
            read_only: false,
            origin: None,
            layout,
            components,
            origins,
            now_ns: 77,
        };
        disk.record().expect("it fits together")
    }

    fn standing(record: &DiskRecord, component: u64) -> Standing {
        record.roster.member(ComponentId(component)).expect("it is a member").standing
    }

    #[test]
    fn of_the_copies_of_a_place_the_one_that_is_furthest_counts() {
        // Component 2 missed the last owner; 3 missed what was decided in its epoch.
        let record = adopted(vec![found(1, 4, 90), found(2, 3, 500), found(3, 4, 80)]);
        assert_eq!(record.roster.epoch, 4);
        assert_eq!(
            [1, 2, 3].map(|id| standing(&record, id)),
            [Standing::Active, Standing::Stale, Standing::Stale]
        );
        // Of equal copies one becomes active. The others are filled from it, which changes nothing on them.
        let record = adopted(vec![found(1, 4, 90), found(2, 4, 90)]);
        assert_eq!([1, 2].map(|id| standing(&record, id)), [Standing::Stale, Standing::Active]);
    }

    #[test]
    fn snapshots_that_components_have_are_there_again_and_those_that_were_cloned_are_counted() {
        let with =
            |component, snapshots: &[u32]| Found { snapshots: snapshots.to_vec(), ..found(component, 4, 90) };
        let origin = |disk, snapshot| Origin { disk: DiskId(disk), snapshot, size: MIB };
        let origins = vec![origin(7, 5), origin(7, 5), origin(8, 3), origin(7, 9)];
        let record = with_clones(vec![with(1, &[3, 5]), with(2, &[5, 8])], origins);
        let named: Vec<(&str, u64, u64)> =
            record.snapshots.taken.iter().map(|one| (one.name.as_str(), one.size, one.taken_ns)).collect();
        let recovered = [
            ("recovered-3", 4 * MIB, 77),
            ("recovered-5", MIB, 77),
            ("recovered-8", 4 * MIB, 77),
            // No component has it, but a disk is a clone of it.
            ("recovered-9", MIB, 77),
        ];
        assert_eq!(named, recovered);
        assert_eq!(record.roster.snapshots.last, 9, "no number is given twice");
        assert_eq!(record.clones, BTreeMap::from([(5, 2), (9, 1)]));
        let lacks = |component: u64, number| {
            record.roster.member(ComponentId(component)).expect("a member").lacks.contains(number)
        };
        assert_eq!([3, 5, 8, 9].map(|number| lacks(1, number)), [false, false, true, true]);
        assert_eq!([3, 5, 8, 9].map(|number| lacks(2, number)), [true, false, false, true]);
        assert_eq!(record.copies_with(3), (0, 2), "the copy that has it is not the one that counts");
    }

    #[test]
    fn the_epochs_of_a_host_that_promised_none_are_passed_over() {
        let record = adopted(vec![found(1, 0, 0)]);
        assert_eq!((record.roster.epoch, standing(&record, 1)), (1 << 24, Standing::Active));
    }
}
