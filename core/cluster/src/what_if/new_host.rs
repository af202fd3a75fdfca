//! A host that does not exist yet, to forecast a cluster with it.

use crate::device::{DeviceRecord, DeviceState};
use crate::host::{DeviceReports, HostRecord, Maintenance, NodeRecord};
use crate::view::View;
use base::{DeviceId, GroupId, HostId, Instant, NodeId};

/// A hypothetical host with empty devices of these sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHost {
    /// Its name.
    pub name: String,
    /// Its fault domain.
    pub fault_domain: Option<String>,
    /// Bytes that each of its capacity devices can take.
    pub capacities: Vec<u64>,
}

impl NewHost {
    /// A host as large as another.
    pub fn like(host: &HostRecord, name: String) -> NewHost {
        NewHost {
            name,
            fault_domain: host.fault_domain.clone(),
            capacities: host.devices.iter().map(|one| one.capacity_bytes).collect(),
        }
    }

    /// Its record, with ids that are free in the cluster.
    pub fn record(&self, view: &View) -> HostRecord {
        let devices = || view.hosts.values().flat_map(|host| &host.devices);
        let id = HostId(fresh(|id| view.hosts.contains_key(&HostId(id))));
        let node = NodeId { host: id, shard: 0 };
        let group = GroupId(fresh(|id| devices().any(|one| one.group == GroupId(id))));
        let free_ids = (0..=u128::MAX).rev().map(DeviceId).filter(|id| !devices().any(|one| one.id == *id));
        let component_count_max = devices().map(|one| one.component_count_max).max().unwrap_or(COMPONENTS);
        let device = |(index, (id, capacity)): (usize, (DeviceId, &u64))| DeviceRecord {
            id,
            name: format!("device {}", index + 1),
            group,
            node,
            capacity_bytes: *capacity,
            free_bytes: *capacity,
            reserved_bytes: 0,
            component_count: 0,
            component_count_max,
            state: DeviceState::InService,
            leaving: None,
            spins: false,
        };
        HostRecord {
            id,
            name: self.name.clone(),
            nodes: vec![NodeRecord { id: node, peer_addresses: Vec::new(), incarnation: 1 }],
            api_address: String::new(),
            fault_domain: self.fault_domain.clone(),
            maintenance: Maintenance::Off,
            devices: free_ids.zip(&self.capacities).enumerate().map(device).collect(),
            release: String::new(),
            clock_ahead_ns: 0,
            data_trouble: Vec::new(),
            reports: DeviceReports::default(),
            last_seen: Instant(0),
        }
    }
}

/// Components of a device, where no other device tells.
const COMPONENTS: u32 = 4096;

/// A free id.
fn fresh(is_taken: impl Fn(u128) -> bool) -> u128 {
    let mut ids = (0..=u128::MAX).rev();
    ids.find(|id| !is_taken(*id)).expect("there are more ids than things")
}
