//! Which node acts on a disk.

use crate::disk::DiskRecord;
use crate::host::Maintenance;
use crate::liveness::Liveness;
use crate::view::View;
use base::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The node that acts on a disk.
pub(crate) enum Acting {
    /// Its owner.
    Owner(NodeId),
    /// A node that has to become the owner first.
    Claims(NodeId),
    /// No node can.
    Nobody,
}

/// The owner, or else the node with the most sound components, if every place of the disk can be reached.
pub(crate) fn acting(view: &View, disk: &DiskRecord) -> Acting {
    if let Some(owner) = disk.roster.owner {
        let record = view.hosts.get(&owner.node.host);
        let node = record.and_then(|host| host.nodes.iter().find(|node| node.id == owner.node));
        let is_same = node.is_some_and(|node| node.incarnation == owner.incarnation);
        let is_away = matches!(view.liveness(owner.node.host), Liveness::Away { .. });
        if is_same && !is_away {
            return Acting::Owner(owner.node);
        }
    }
    if (0..disk.layout.place_count()).any(|place| !view.is_served(disk, place)) {
        return Acting::Nobody;
    }
    let mut sound: BTreeMap<NodeId, usize> = BTreeMap::new();
    for member in disk.roster.members.iter().filter(|one| view.is_sound(disk, one.component)) {
        *sound.entry(member.node).or_default() += 1;
    }
    let is_serviced =
        |node: &NodeId| view.hosts.get(&node.host).is_some_and(|host| host.maintenance != Maintenance::Off);
    let best = sound.into_iter().max_by_key(|(node, count)| (!is_serviced(node), *count, Reverse(*node)));
    best.map_or(Acting::Nobody, |(node, _)| Acting::Claims(node))
}
