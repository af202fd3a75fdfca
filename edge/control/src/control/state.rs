//! What answers API requests.

use super::pulse::Pulse;
use crate::browsers::Browsers;
use crate::cluster::{BeforeLock, Cluster};
use crate::directory::HostStore;
use crate::events::EventLog;
use crate::http::caller::Caller;
use crate::http::doors::Doors;
use crate::sampler::Sampler;
use crate::series::Series;
use crate::sessions::Sessions;
use ::cluster::Snapshot;
use base::DiskId;
use engine::EngineHandle;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Everything that answers API requests.
pub struct Control {
    pub(super) engine: EngineHandle,
    /// Where the API is served.
    pub(super) doors: Arc<Doors>,
    /// What browsers are shown there.
    pub(super) browsers: Arc<Browsers>,
    /// Told to whoever looks at pages: what changes, and figures.
    pub pulse: Arc<Pulse>,
    /// Places for streams.
    pub streams: Arc<Semaphore>,
    /// Who is logged in.
    pub sessions: Sessions<Caller>,
    /// What this host keeps for itself.
    pub(super) store: HostStore,
    /// The cluster: of one, where this host stands alone.
    pub cluster: Arc<Cluster>,
    /// What happened here.
    pub events: Arc<EventLog>,
    pub(super) sampler: Arc<Sampler>,
    /// What guests and devices here did.
    pub(super) series: Arc<Series>,
    pub(super) warnings: Mutex<Vec<String>>,
    pub(super) changes: tokio::sync::Mutex<()>,
    /// Disks that clients are kept from, and why.
    pub(super) locks: Mutex<BTreeMap<DiskId, String>>,
    /// Imports that are under way.
    pub(super) imports: Mutex<BTreeMap<DiskId, Import>>,
    /// The last rollback of each disk that was begun here.
    pub(super) rollbacks: Mutex<BTreeMap<DiskId, Arc<RollbackTask>>>,
    /// Told when this host has left its cluster: its process ends then.
    pub(super) left: tokio::sync::Notify,
}

/// A disk that clients are kept from, until it is [unlocked](Control::unlock).
#[derive(Debug)]
#[must_use]
pub(super) struct LockedDisk {
    pub(super) disk: DiskId,
    pub(super) found: BeforeLock,
}

/// An import that is under way.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) export: String,
    /// What is imported, for people.
    pub(super) what: String,
    pub(super) locked: LockedDisk,
}

/// A rollback that this host carries out, or has.
#[derive(Debug)]
pub(super) struct RollbackTask {
    pub(super) disk: DiskId,
    /// The snapshot that the disk is rolled back to.
    pub(super) to: Snapshot,
    /// The one that was taken first.
    pub(super) since: Snapshot,
    /// The one that has what the disk held before, if it is kept.
    pub(super) kept: Option<String>,
    pub(super) began: Instant,
    /// Bytes that are to be copied, once they are counted.
    pub(super) total: OnceLock<u64>,
    pub(super) copied: AtomicU64,
    /// Why it failed, if it did, and when it ended.
    pub(super) ended: OnceLock<(Option<String>, Instant)>,
}
