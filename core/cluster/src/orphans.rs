//! Components that no record names: left behind by a node that was away when they were to be deleted.

use crate::disk::DiskRecord;
use base::{ComponentId, DiskId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Those of the components that stand on `node` that are to be deleted.
///
/// The node must have listed them *before* the records were read: a record names a component before the component is
/// made, so that none of the listed ones is still to be named. A directory that was lost is rebuilt from the devices
/// before this is asked.
pub fn orphans(
    disks: &BTreeMap<DiskId, DiskRecord>,
    node: NodeId,
    listed: &BTreeSet<ComponentId>,
) -> BTreeSet<ComponentId> {
    let named = disks.values().flat_map(DiskRecord::components);
    let named: BTreeSet<ComponentId> =
        named.filter(|(at, _)| *at == node).map(|(_, component)| component.id).collect();
    listed.difference(&named).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cluster;

    #[test]
    fn only_what_a_record_places_on_the_node_stays() {
        let mut view = cluster(2, 1);
        let disk = view.add_disk(1, "default,stripes=1");
        let [first, second] = [0, 1].map(|index| disk.roster.members[index].clone());
        let listed = BTreeSet::from([first.component, second.component, ComponentId(9)]);
        let found = orphans(&view.disks, first.node, &listed);
        assert_eq!(found, BTreeSet::from([second.component, ComponentId(9)]));
    }
}
