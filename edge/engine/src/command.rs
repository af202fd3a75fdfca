//! What the control plane may ask of the engine, and what it says with that.
//!
//! Each command carries the place for its answer.

use crate::error::EngineError;
use crate::notice::Ticket;
use crate::settings::{Endpoint, Fabric};
use crate::state::{ClusterState, DeviceLoad, DiskState, HostState, PassState};
use base::request::{RequestError, StatusOf, StatusRun};
use base::{ComponentId, DeviceId, DiskId, GroupId, NodeId};
use cluster::Access;
use diskgroup::Lost;
use layout::Layout;
use node::{Course, DiskSpec, FoundDisk, Limits};
use placement::{Percent, PlacedDisk, Policy, ReadLocality};
use replication::Roster;
use replication::owner::{Committed, Reading};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<T>;

/// What is told about blocks of a disk.
pub type Told = Result<Vec<StatusRun>, RequestError>;

/// What the control plane may ask.
#[derive(Debug)]
#[expect(missing_docs, reason = "what each command says names its fields; `answer` is where the answer goes")]
pub enum Command {
    /// Opens (or first makes) a disk group. Devices in use by another process are refused.
    OpenGroup { spec: GroupSpec, answer: Answer<Result<GroupId, EngineError>> },
    /// Makes one more capacity device part of a group.
    AddCapacity {
        group: GroupId,
        path: PathBuf,
        file_size: Option<u64>,
        create: Create,
        answer: Answer<Result<DeviceId, EngineError>>,
    },
    /// Takes an empty capacity device out of its group, or (named by its log device) an empty group out of the host. Components
    /// that stood on it when it failed are given up if that is said.
    RemoveDevice { device: DeviceId, lost: Lost, answer: Answer<Result<(), EngineError>> },
    /// Begins to convert disk groups to the format that has snapshots and compressed blocks, those that are not yet; tells how many that are. Has
    /// components compressed as the policies of their disks say.
    Convert { answer: Answer<usize> },
    /// Begins to write the components of a disk anew, where that takes less space; tells how many they are.
    Rewrite { disk: DiskId, answer: Answer<usize> },
    /// All of the host.
    Host { answer: Answer<HostState> },
    /// What every device has done since its group was opened.
    Loads { answer: Answer<Vec<DeviceLoad>> },
    /// Keeps clients from a disk. Any number of engines may be asked; each answers for its own clients.
    Lock { disk: DiskId, lock: DiskLock, answer: Answer<Locking> },
    /// Lets clients have a disk again.
    Unlock { disk: DiskId, answer: Answer<()> },
    /// The live state of one disk, or of all.
    Disks { only: Option<DiskId>, answer: Answer<Vec<DiskState>> },
    /// Disks that stand on the opened devices by the devices' own account (to rebuild a lost directory from).
    Found { answer: Answer<Vec<FoundDisk>> },
    /// Tells about blocks of a disk, as guests may ask it; the first ones of the range alone, if telling more takes long.
    Survey { disk: DiskId, of: StatusOf, range: Range<u64>, answer: Answer<Told> },
    /// Has a clone copy what it shows of its origin in a range of at most 1 MiB.
    CopyUp { disk: DiskId, range: Range<u64>, answer: Answer<Result<(), RequestError>> },
    /// Writes a range of at most 1 MiB of a disk again, as it was in a snapshot of it; without one, zeroes.
    CopyBack {
        disk: DiskId,
        snapshot: Option<u32>,
        range: Range<u64>,
        answer: Answer<Result<(), RequestError>>,
    },
    /// A pass that samples what the devices hold, for estimates: begins it, ends it, or only tells of it.
    Pass { order: PassOrder, answer: Answer<PassState> },
    /// What has to do with the cluster.
    Cluster(Box<ClusterCommand>),
    /// Stops: no new requests, waits for those under way, makes a checkpoint, ends the thread.
    Stop { answer: Answer<()> },
}

impl Command {
    /// What has to do with the cluster.
    pub fn cluster(command: ClusterCommand) -> Command {
        Command::Cluster(Box::new(command))
    }
}

/// What is to become of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassOrder {
    /// Begins one with that number and those rates. One that is under way ends without a result.
    Begin {
        /// Greater than that of the pass before: the engines of a host know by it which results belong together.
        number: u64,
        /// How many blocks are read.
        rates: reduction::Rates,
    },
    /// Ends the pass that is under way, without a result.
    End,
    /// Nothing.
    Nothing,
}

/// What the control plane may ask.
#[derive(Debug)]
#[expect(missing_docs, reason = "what each command says names its fields; `answer` is where the answer goes")]
pub enum ClusterCommand {
    /// The nodes of the cluster, and where they listen.
    Nodes { nodes: Vec<(NodeId, SocketAddr)> },
    /// Begins to serve a disk of the cluster, or takes over what changed of it.
    Open { disk: Box<DiskRecord>, record: (u64, Roster), answer: Answer<()> },
    /// A disk is gone: its clients are detached. What stands of it stays.
    Forget { disk: DiskId, answer: Answer<()> },
    /// A disk's record was read, or changed.
    Recorded { disk: DiskId, record: Option<(u64, Roster)> },
    /// A disk's record could not be read.
    FetchFailed { disk: DiskId },
    /// A commit of a shard ended.
    Committed { shard: u8, disk: DiskId, number: u64, committed: Committed },
    /// Owns a disk that nobody owns, or whose owner is gone.
    Claim { disk: DiskId },
    /// The device of a component has room again.
    Room { disk: DiskId, component: ComponentId },
    /// The shard that owns a disk gives back what stands between its end, at `size`, and `end`. Refused where the disk is not
    /// served, or is known with another size.
    GiveBack { shard: u8, disk: DiskId, size: u64, end: u64, answer: Answer<Result<(), OrderFailure>> },
    /// A request to a node about a component.
    Component { node: NodeId, order: Order, answer: Answer<Result<(), OrderFailure>> },
    /// A client that waits for a disk gets it, or is told why not.
    Admit { ticket: Ticket, refusal: Option<String> },
    /// A client loses its disk: its connection ends.
    CutOff { ticket: Ticket },
    /// Other hosts may connect from now on, at each shard's own port, encrypted; clients from elsewhere show a certificate of the
    /// cluster, also at the endpoints that come along. Says where each shard listens.
    Join {
        fabric: Fabric,
        tls: Arc<rustls::ServerConfig>,
        endpoints: Vec<Endpoint>,
        answer: Answer<Result<Vec<Option<SocketAddr>>, EngineError>>,
    },
    /// What is known of the cluster here.
    State { answer: Answer<ClusterState> },
}

/// What may be done to a device that is not Drystone's yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Nothing: it must be formatted already.
    Never,
    /// Format it if it holds nothing (only zeroes where signatures stand).
    IfBlank,
    /// Format it whatever it holds, unless it belongs to another Drystone cluster or is in use.
    Force,
}

/// The devices of one disk group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// The log device; with no capacity devices, the one device for everything.
    pub log: PathBuf,
    /// The capacity devices, 0..=7.
    pub capacity: Vec<PathBuf>,
    /// Size of the log region in bytes; `None`: the whole log device, or when that is shared, a tenth of it (64 MiB to 16 GiB).
    pub log_size: Option<u64>,
    /// If a path does not exist: make a sparse file of this size. Only used with [`Create::IfBlank`] or `Force`.
    pub file_size: Option<u64>,
    /// What may be done to devices that hold no datastore yet.
    pub create: Create,
    /// A group whose log is lost: a new one is made of its other devices that are there. What stands on them is given up.
    pub remake: Option<GroupId>,
}

/// A virtual disk as the directory records it.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskRecord {
    /// Its identity.
    pub id: DiskId,
    /// Its name: what clients attach to.
    pub name: String,
    /// Size in bytes, a multiple of 512.
    pub size: u64,
    /// Its rules.
    pub policy: Policy,
    /// The share that its devices set aside: the policy's, or less when that is a debt.
    pub space_reservation: Percent,
    /// Where its blocks stand. Component ids and devices are set.
    pub layout: Layout,
    /// The epoch of its last owner.
    pub epoch: u32,
    /// Whether clients may only read it.
    pub read_only: bool,
    /// Who may attach to it.
    pub access: Access,
    /// Whether a component of it stands in a hybrid group: on a device that spins, behind a log device that does not.
    pub spins: bool,
    /// Where it moves, while it has two layouts.
    pub course: Course,
    /// The number of its layout ([`replication::Roster::shape`]).
    pub shape: u32,
    /// Its snapshots.
    pub snapshots: Vec<cluster::Snapshot>,
    /// What it is a clone of, as long as not all of that is copied.
    pub origin: Option<replication::Origin>,
}

impl DiskRecord {
    /// The disk as placement sees it.
    pub fn placed(&self) -> PlacedDisk<'_> {
        PlacedDisk {
            id: self.id,
            layout: &self.layout,
            policy: &self.policy,
            size: self.size,
            space_reservation: self.space_reservation,
            used_bytes: &[],
        }
    }

    /// The disk as the node knows it.
    pub(crate) fn spec(&self) -> DiskSpec {
        DiskSpec {
            id: self.id,
            size: self.size,
            layout: self.layout.clone(),
            verify_checksums: self.policy.checksum,
            reading: match self.policy.read_locality {
                // Where devices spin, each does its share of the disk: two heads are quicker than one.
                ReadLocality::Auto if self.spins => Reading::Spread,
                ReadLocality::Auto => Reading::Auto,
                ReadLocality::Spread => Reading::Spread,
                ReadLocality::Local => Reading::Local,
            },
            limits: Limits {
                iops: self.policy.iops_limit.map(|limit| u64::from(limit.get())),
                bytes: self.policy.bytes_limit.map(NonZeroU64::get),
            },
            course: self.course,
            shape: self.shape,
            origin: self.origin,
        }
    }
}

/// What keeps clients from a disk for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLock {
    /// Why, as the end of a sentence about the disk: `is being deleted`.
    pub why: String,
    /// The name of an export by which a client gets the disk all the same. Whoever is to have it is told the name.
    pub export: Option<String>,
    /// Whether the connections of clients that have the disk are ended. Otherwise a disk with clients is not locked.
    pub ends_connections: bool,
}

impl DiskLock {
    /// Whether it keeps clients out: not those of snapshots, which read the same whatever is written to the disk, where one client may have it.
    pub(crate) fn keeps_out(&self, reads_snapshot: bool) -> bool {
        !(reads_snapshot && self.export.is_some())
    }
}

/// What became of a request for a lock, with the clients that had the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// It is locked. The connections of so many clients are being ended.
    Locked(usize),
    /// It is not: so many clients have the disk.
    InUse(usize),
}

impl Locking {
    /// A disk is locked when all engines have it so: where one of them has clients, the host has.
    pub(crate) fn merged(all: Vec<Locking>) -> Locking {
        let in_use = |one: &Locking| match one {
            Locking::InUse(count) => *count,
            Locking::Locked(_) => 0,
        };
        let ended = |one: &Locking| match one {
            Locking::Locked(count) => *count,
            Locking::InUse(_) => 0,
        };
        match all.iter().map(in_use).sum() {
            0 => Locking::Locked(all.iter().map(ended).sum()),
            count => Locking::InUse(count),
        }
    }
}

/// What a node is asked to do with a component of its own.
#[derive(Debug, Clone)]
pub enum Order {
    /// Make it.
    Create(wire::NewComponent),
    /// Replace what is recorded of it.
    Change(wire::NewComponent),
    /// Delete it; fine if there is none.
    Delete(ComponentId),
}

/// Why a node did not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderFailure {
    /// The node cannot be reached, or was lost before it answered: it may have done it.
    #[error("it cannot be reached")]
    Unreachable,
    /// It refused.
    #[error(transparent)]
    Refused(#[from] wire::Refusal),
}
