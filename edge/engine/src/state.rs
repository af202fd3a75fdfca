//! What the engine tells of itself when it is asked: devices, disk groups, disks with their clients, other nodes.
//!
//! A host's engines are asked one by one. What each of them tells is made one here (`merged`).

use base::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, NodeId};
use cluster::Encryption;
use iostats::FineLatency;
use node::OwnershipState;
use reduction::HostSample;
use replication::owner::OwnerState;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostState {
    /// The cluster that the devices belong to.
    pub cluster: ClusterId,
    /// Time since the engine started.
    pub uptime: Duration,
    /// Its groups.
    pub groups: Vec<GroupState>,
    /// Their devices.
    pub devices: Vec<DeviceState>,
    /// Memory in block buffers, and its bound, in bytes.
    pub buffer_bytes: (u64, u64),
    /// Reads of clients that wait for such buffers.
    pub reads_waiting: u64,
}

impl HostState {
    /// One host out of its engines.
    pub(crate) fn merged(all: Vec<HostState>) -> HostState {
        let mut merged = HostState {
            cluster: all.first().map_or_else(Default::default, |first| first.cluster),
            uptime: all.iter().map(|one| one.uptime).max().unwrap_or_default(),
            groups: Vec::new(),
            devices: Vec::new(),
            buffer_bytes: (0, 0),
            reads_waiting: 0,
        };
        for one in all {
            merged.groups.extend(one.groups);
            merged.devices.extend(one.devices);
            merged.buffer_bytes.0 += one.buffer_bytes.0;
            merged.buffer_bytes.1 += one.buffer_bytes.1;
            merged.reads_waiting += one.reads_waiting;
        }
        merged
    }
}

/// The state of one disk group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupState {
    /// Its identity.
    pub id: GroupId,
    /// Size of its log region in bytes.
    pub log_bytes: u64,
    /// Bytes of the log in use.
    pub log_used_bytes: u64,
    /// Back-pressure, 0..=255.
    pub congestion: u8,
    /// Bytes of data in the log that wait for destaging.
    pub destage_pending_bytes: u64,
    /// Bytes destaged since the start.
    pub destaged_bytes: u64,
    /// Bytes of blocks that were compressed, or tried, when they were destaged, since the start.
    pub compressed_bytes: u64,
    /// Bytes that these blocks took then.
    pub packed_bytes: u64,
    /// Bytes of memory that the group holds for its tables.
    pub memory_bytes: u64,
    /// Scrub: share of the space at rest verified in the present round, 0..=1, and rounds completed since the start.
    pub scrub_progress: f64,
    /// Rounds of scrubbing completed since the start.
    pub scrub_rounds: u64,
}

/// The state of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceState {
    /// Its identity.
    pub id: DeviceId,
    /// Where it was opened.
    pub path: PathBuf,
    /// Its disk group.
    pub group: GroupId,
    /// The engine of that.
    pub shard: u8,
    /// Whether it holds the group's log.
    pub is_log: bool,
    /// Whether it holds data at rest.
    pub is_capacity: bool,
    /// Whether it spins, and its log device does not.
    pub spins: bool,
    /// Its encryption at rest, as it was when the device was opened.
    pub encryption: Encryption,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that extents can take in all (zero for a mere log device).
    pub capacity_bytes: u64,
    /// Bytes in extents that are taken.
    pub used_bytes: u64,
    /// Bytes promised to reservations and not taken yet.
    pub reserved_bytes: u64,
    /// Components that stand on it.
    pub component_count: u32,
    /// Components that it can hold in all.
    pub component_count_max: u32,
    /// `None` while in service; else why it is out of service.
    pub failure: Option<String>,
    /// Whether it was only not there at the start, and whole again when it comes back.
    pub is_away: bool,
    /// Blocks found damaged since the start.
    pub damaged_blocks: u64,
    /// Blocks that failed reads since the start.
    pub read_errors: u64,
    /// Time in which requests were under way, since its group was opened.
    pub busy: Duration,
    /// Requests that ended since then.
    pub requests: u64,
}

/// What a device has done since its group was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceLoad {
    /// Its identity.
    pub id: DeviceId,
    /// Time in which requests were under way.
    pub busy: Duration,
    /// How long reads took, from when they were handed to it.
    pub read: FineLatency,
    /// How long writes took.
    pub write: FineLatency,
}

/// The live state of one disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskState {
    /// Its identity.
    pub id: DiskId,
    /// Clients attached to it.
    pub clients: Vec<ClientState>,
    /// Requests under way.
    pub outstanding: u32,
    /// Requests that ended with an error for want of an answer, since the engine started.
    pub overdue: u64,
    /// Its histograms and counters since the engine started; cumulative, so that a caller may subtract two of them.
    pub statistics: Arc<iostats::Statistics>,
}

impl DiskState {
    /// The disks of a host out of those of its engines, each of which has them all.
    pub(crate) fn merged(all: Vec<Vec<DiskState>>) -> Vec<DiskState> {
        let mut merged: BTreeMap<DiskId, DiskState> = BTreeMap::new();
        for one in all.into_iter().flatten() {
            match merged.get_mut(&one.id) {
                None => drop(merged.insert(one.id, one)),
                Some(whole) => {
                    whole.clients.extend(one.clients);
                    whole.outstanding += one.outstanding;
                    whole.overdue += one.overdue;
                    Arc::make_mut(&mut whole.statistics).merge(&one.statistics);
                }
            }
        }
        merged.into_values().collect()
    }
}

/// A pass that samples what the devices of a host hold.
#[derive(Debug, Clone, Default)]
pub struct PassState {
    /// The pass that is under way.
    pub running: Option<PassRunning>,
    /// What the last one found that came to its end.
    pub result: Option<PassResult>,
}

/// A pass that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassRunning {
    /// Parts (MiB) that were looked at.
    pub parts: u64,
    /// Parts that there were when it began.
    pub parts_total: u64,
    /// Bytes of data that were read.
    pub read_bytes: u64,
    /// How long it has been under way.
    pub elapsed: Duration,
}

/// What a pass found.
#[derive(Debug, Clone)]
pub struct PassResult {
    /// Its number.
    pub number: u64,
    /// What it found.
    pub sample: Arc<HostSample>,
    /// Bytes of data that it read.
    pub read_bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// When it ended.
    pub ended: std::time::Instant,
}

impl PassState {
    /// The pass of a host out of those of its engines. There is a result only where all of them have it of the same pass.
    pub(crate) fn merged(all: Vec<PassState>) -> PassState {
        let count = all.len();
        let (mut running, mut results) = (None, Vec::new());
        for one in all {
            running = match (running, one.running) {
                (Some(a), Some(b)) => Some(PassRunning::merged(a, b)),
                (a, b) => a.or(b),
            };
            results.extend(one.result);
        }
        let newest = results.iter().map(|one| one.number).max();
        results.retain(|one| Some(one.number) == newest);
        let result =
            (results.len() == count).then(|| results.into_iter().reduce(PassResult::merged)).flatten();
        PassState { running, result }
    }
}

impl PassRunning {
    fn merged(a: PassRunning, b: PassRunning) -> PassRunning {
        PassRunning {
            parts: a.parts + b.parts,
            parts_total: a.parts_total + b.parts_total,
            read_bytes: a.read_bytes + b.read_bytes,
            elapsed: a.elapsed.max(b.elapsed),
        }
    }
}

impl PassResult {
    fn merged(mut a: PassResult, b: PassResult) -> PassResult {
        Arc::make_mut(&mut a.sample).join(Arc::unwrap_or_clone(b.sample));
        PassResult {
            read_bytes: a.read_bytes + b.read_bytes,
            took: a.took.max(b.took),
            ended: a.ended.max(b.ended),
            ..a
        }
    }
}

/// A client that is attached to a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientState {
    /// `tcp 127.0.0.1:40312`, `unix pid 4711`.
    pub peer: String,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Time since it attached.
    pub attached: Duration,
    /// How long its requests may go without an answer before they end with an error; `None`: they wait.
    pub error_after: Option<Duration>,
}

/// What a host's engine knows of the cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterState {
    /// Other nodes, and whether they can be reached.
    pub links: BTreeMap<NodeId, bool>,
    /// The disks that are open here.
    pub disks: BTreeMap<DiskId, OwnershipState>,
    /// The components that stand here.
    pub components: BTreeMap<ComponentId, HeldComponent>,
    /// Nodes whose process is known to have ended, and the last session that it can have had.
    pub ended: BTreeMap<NodeId, u64>,
    /// Connections that went wrong.
    pub counters: PeerCounters,
}

impl ClusterState {
    /// Other hosts, and whether all their nodes can be reached from all of this one's.
    pub fn links_of_hosts(&self, me: HostId) -> impl Iterator<Item = (HostId, bool)> {
        let mut hosts = BTreeMap::new();
        for (node, is_up) in self.links.iter().filter(|(node, _)| node.host != me) {
            *hosts.entry(node.host).or_insert(true) &= *is_up;
        }
        hosts.into_iter()
    }

    /// What a host knows out of what its engines know.
    pub(crate) fn merged(all: Vec<ClusterState>) -> ClusterState {
        let mut merged = ClusterState::default();
        for one in all {
            for (node, is_up) in one.links {
                *merged.links.entry(node).or_insert(true) &= is_up;
            }
            for (id, disk) in one.disks {
                match merged.disks.get_mut(&id) {
                    None => drop(merged.disks.insert(id, disk)),
                    Some(whole) => {
                        whole.is_used |= disk.is_used;
                        whole.held += disk.held;
                        whole.limits.merge(disk.limits);
                        whole.zero_bytes_trimmed += disk.zero_bytes_trimmed;
                        if disk.version > whole.version {
                            (whole.version, whole.roster) = (disk.version, disk.roster);
                        }
                        // Of two, one has been taken over and does not know it yet.
                        let epoch = |owner: &Option<OwnerState>| owner.as_ref().map(|owner| owner.epoch);
                        if epoch(&disk.owner) > epoch(&whole.owner) {
                            (whole.owner, whole.moving) = (disk.owner, disk.moving);
                        }
                    }
                }
            }
            for (node, through) in one.ended {
                let known = merged.ended.entry(node).or_default();
                *known = through.max(*known);
            }
            merged.components.extend(one.components);
            merged.counters += one.counters;
        }
        merged
    }
}

/// A component that stands on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldComponent {
    /// Its disk.
    pub disk: DiskId,
    /// The shard that it stands on.
    pub shard: u8,
    /// The greatest epoch that it promised.
    pub promised: u32,
    /// Bytes that it has taken.
    pub used_bytes: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that are set aside for it.
    pub reservation: u64,
    /// CRC-32C of what it tells of its disk.
    pub description: u32,
    /// Bytes of its blocks at rest that are compressed, before that.
    pub compressed_bytes: u64,
    /// Bytes that these blocks take.
    pub packed_bytes: u64,
    /// Whether it is being written anew because somebody asked for it.
    pub is_rewriting: bool,
    /// By number: its snapshots, and the bytes of blocks that only they see or older ones.
    pub snapshots: Vec<(u32, u64)>,
}

/// Traffic with other nodes, and connections that went wrong, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Refused in the greeting, or never greeted.
    pub refused: u64,
    /// Ended because what came was no message.
    pub garbage: u64,
    /// Ended because the other node took too little of what it was sent.
    pub slow: u64,
    /// Bytes that came over the network, encryption and all.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
}

impl std::ops::AddAssign for PeerCounters {
    fn add_assign(&mut self, other: PeerCounters) {
        self.refused += other.refused;
        self.garbage += other.garbage;
        self.slow += other.slow;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
    }
}
