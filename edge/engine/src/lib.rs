//! The seam between the control plane (HTTP, CLI, directory; many threads) and the engine (one thread that owns the
//! node, its devices and its client sessions).
//!
//! The control plane sends [`Command`]s; each carries the place for its answer. No answer means that the engine's
//! thread is gone, which [`EngineHandle::call`] reports as [`EngineError::Stopped`].

mod attach;
mod client;
mod cluster;
mod commands;
mod complaints;
mod compute;
pub mod descriptors;
mod devices;
mod encryption;
mod limits;
mod listener;
mod overdue;
mod peers;
mod prepared;
mod ring;
mod run;
mod shards;
mod sizes;

pub use attach::not_named;
pub use cluster::{
    ClusterCommand, ClusterState, Fabric, HeldComponent, Notice, Order, OrderFailure, Ticket, Visitor,
};
pub use complaints::Complaints;
pub use devices::cluster_on;
pub use devices::refusal_to_take;
pub use peers::PeerTls;
pub use shards::{SHARDS_MAX, start};

use ::cluster::Access;
use base::{ClusterId, DeviceId, DiskId, GroupId};
pub use diskgroup::Lost;
use failure::{Code, Failure};
use frontends::Protocol;
use layout::Layout;
pub use node::FoundDisk;
use placement::{Percent, PlacedDisk, Policy};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// What the engine is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where clients connect.
    pub endpoints: Vec<Endpoint>,
    /// Encryption of clients' connections over TCP; `None`: not offered.
    pub tls: Option<TlsFiles>,
    /// What encrypts clients' connections over TCP with the certificates of the cluster, where `tls` names no others: for its members alone.
    pub cluster_tls: Option<Arc<rustls::ServerConfig>>,
    /// Most bytes of memory in block buffers.
    pub buffer_bytes: u64,
    /// Most bytes of memory in descriptors and checksums.
    pub table_bytes: u64,
    /// Pace of scrubbing in bytes per second and group; zero: off.
    pub scrub_bytes_per_second: u64,
    /// Engines, each a node with a thread of its own.
    pub shards: u8,
    /// The host's part in its cluster.
    pub fabric: Fabric,
    /// Where it tells what it wants of the directory.
    pub notices: UnboundedSender<Notice>,
}

/// A host's engines that have started.
pub struct Started {
    /// The way to them.
    pub handle: EngineHandle,
    /// Ends when they have ended.
    pub thread: std::thread::JoinHandle<()>,
    /// Where each of them listens for other nodes; nothing where there are none.
    pub peers: Vec<Option<SocketAddr>>,
}

/// Where clients connect that speak a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Its address.
    pub listen: Listen,
}

/// A place where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A unix socket. A file that a former server left there is replaced.
    Unix(PathBuf),
}

/// The PEM files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and what links it to an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities of clients' certificates; with them a client must have one.
    pub client_authorities: Option<PathBuf>,
    /// Whether clients over TCP must encrypt.
    pub required: bool,
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
    /// Bytes of memory that the group holds for its tables.
    pub memory_bytes: u64,
    /// Scrub: share of the space at rest verified in the present round, 0..=1, and rounds completed since the start.
    pub scrub_progress: f64,
    /// Rounds of scrubbing completed since the start.
    pub scrub_rounds: u64,
}

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

/// What became of a request for a lock, with the clients that had the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// It is locked. The connections of so many clients are being ended.
    Locked(usize),
    /// It is not: so many clients have the disk.
    InUse(usize),
}

/// Why the engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The request made no sense, or the world is not as it needs to be. Says what was found and the way out.
    #[error("{0}")]
    Refused(String),
    /// A device failed.
    #[error("{0}")]
    Device(String),
    /// The engine has stopped or is stopping.
    #[error("the storage engine has stopped")]
    Stopped,
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let code = match error {
            EngineError::Refused(_) => Code::Refused,
            EngineError::Device(_) => Code::Failed,
            EngineError::Stopped => Code::Unreachable,
        };
        Failure::new(code, error.to_string())
    }
}

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<T>;

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
    /// All of the host.
    Host { answer: Answer<HostState> },
    /// Keeps clients from a disk. Any number of engines may be asked; each answers for its own clients.
    Lock { disk: DiskId, lock: DiskLock, answer: Answer<Locking> },
    /// Lets clients have a disk again.
    Unlock { disk: DiskId, answer: Answer<()> },
    /// The live state of one disk, or of all.
    Disks { only: Option<DiskId>, answer: Answer<Vec<DiskState>> },
    /// Disks that stand on the opened devices by the devices' own account (to rebuild a lost directory from).
    Found { answer: Answer<Vec<FoundDisk>> },
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

/// The way to the engine; clones share it.
#[derive(Clone)]
pub struct EngineHandle {
    send: Arc<dyn Fn(Command) -> Result<(), EngineError> + Send + Sync>,
}

impl EngineHandle {
    /// A handle that delivers commands by `send`.
    pub fn new(send: impl Fn(Command) -> Result<(), EngineError> + Send + Sync + 'static) -> EngineHandle {
        EngineHandle { send: Arc::new(send) }
    }

    /// Sends a command that has no answer.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] when the engine is gone.
    pub fn tell(&self, command: Command) -> Result<(), EngineError> {
        (self.send)(command)
    }

    /// Sends the command that `make` builds around the place for its answer, and waits for that answer.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] when the engine is gone.
    pub async fn call<T>(&self, make: impl FnOnce(Answer<T>) -> Command) -> Result<T, EngineError> {
        let (answer, wait) = oneshot::channel();
        (self.send)(make(answer))?;
        wait.await.map_err(|_| EngineError::Stopped)
    }
}
