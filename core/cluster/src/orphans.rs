//! Orphans: components that no record names, left behind by a node that was away when they were to be deleted.

use crate::disk::DiskRecord;
use base::{ComponentId, DiskId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A component as its node reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its disk.
    pub disk: DiskId,
    /// The greatest epoch that it promised.
    pub promised: u32,
    /// The numbers of its snapshots.
    pub snapshots: Vec<u32>,
}

/// Orphans of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Orphans to be deleted.
    pub to_delete: BTreeSet<ComponentId>,
    /// Orphans that promised an epoch that their disk's record does not know yet. The directory has lost changes, so
    /// they are kept.
    pub later_than_record: BTreeSet<ComponentId>,
}

/// The components on `node` that their disk's record does not name. Components of a disk without a record are left
/// alone: they may be all that is left of it.
///
/// The node must have listed them *before* the records were read. A record names a component before the component is
/// made, so no listed one is still to be named. A lost directory is rebuilt from the devices before this is asked.
pub fn orphans(
    disks: &BTreeMap<DiskId, DiskRecord>,
    node: NodeId,
    listed: &BTreeMap<ComponentId, Listed>,
) -> Orphans {
    let named = disks.values().flat_map(DiskRecord::components);
    let named: BTreeSet<ComponentId> =
        named.filter(|(at, _)| *at == node).map(|(_, component)| component.id).collect();
    let mut orphans = Orphans::default();
    for (id, one) in listed.iter().filter(|(id, _)| !named.contains(id)) {
        let Some(disk) = disks.get(&one.disk) else { continue };
        match one.promised > disk.roster.epoch {
            true => orphans.later_than_record.insert(*id),
            false => orphans.to_delete.insert(*id),
        };
    }
    orphans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cluster;
    use crate::view::View;

    #[test]
    fn only_what_the_record_of_its_disk_places_elsewhere_is_deleted() {
        let mut view = cluster(2, 1);
        let disk = view.add_disk(1, "default,stripes=1");
        let [first, second] = [0, 1].map(|index| disk.roster.members[index].clone());
        let of = |id: u128| Listed { disk: DiskId(id), promised: disk.roster.epoch, snapshots: Vec::new() };
        let listed = [first.component, second.component, ComponentId(9)].map(|id| (id, of(1)));
        let unknown = (ComponentId(8), of(77));
        let listed: BTreeMap<ComponentId, Listed> = listed.into_iter().chain([unknown]).collect();
        let found = orphans(&view.disks, first.node, &listed);
        assert_eq!(found.to_delete, BTreeSet::from([second.component, ComponentId(9)]));
        assert_eq!(found.later_than_record, BTreeSet::new());
    }

    #[test]
    fn a_record_that_is_older_than_what_a_component_promised_deletes_nothing() {
        let mut view = cluster(2, 1);
        let disk = view.add_disk(1, "default,stripes=1");
        let later = Listed { disk: disk.id, promised: disk.roster.epoch + 1, snapshots: Vec::new() };
        let listed = BTreeMap::from([(ComponentId(9), later)]);
        let found = orphans(&view.disks, disk.roster.members[0].node, &listed);
        assert_eq!(found.to_delete, BTreeSet::new());
        assert_eq!(found.later_than_record, BTreeSet::from([ComponentId(9)]));
    }

    /// Orphans that are kept on a host that joined again are deleted in the end: each new owner raises the record's
    /// epoch.
    #[test]
    fn a_component_that_was_kept_is_deleted_once_the_record_knows_its_epoch() {
        let mut view = cluster(2, 1);
        let disk = view.add_disk(1, "default,stripes=1");
        let node = disk.roster.members[0].node;
        let promised = disk.roster.epoch + 2;
        let listed =
            BTreeMap::from([(ComponentId(9), Listed { disk: disk.id, promised, snapshots: Vec::new() })]);
        let kept = |view: &View| !orphans(&view.disks, node, &listed).later_than_record.is_empty();
        let deleted = |view: &View| !orphans(&view.disks, node, &listed).to_delete.is_empty();
        for (epoch, is_kept) in [(promised - 2, true), (promised - 1, true), (promised, false)] {
            view.disks.get_mut(&disk.id).expect("it is there").roster.epoch = epoch;
            assert_eq!((kept(&view), deleted(&view)), (is_kept, !is_kept), "epoch {epoch}");
        }
    }
}
