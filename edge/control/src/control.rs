//! The control plane: what the API can ask for, done with the engine and the directory.
//!
//! One change at a time; readers never wait. A change that needs both is recorded in the directory first, so that a start
//! after a crash finds out how far it came. Must hold no rule of placement or storage: those are core's.

mod care;
mod cluster;
mod devices;
mod disks;
mod events;
mod founding;
mod health;
mod imports;
mod locks;
mod members;
mod overdue;
mod policies;
mod replace;
mod silences;
mod space;
pub mod start;
mod support;
#[cfg(test)]
mod tests;
mod views;
mod what_if;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::directory::{HostStore, Records};
use crate::events::{EventLog, Kind};
use crate::http::doors::Doors;
use crate::sampler::Sampler;
use base::{ComponentId, DiskId};
use engine::{Command, DiskState, EngineHandle, HostState, Listen};
use failure::Failure;
use placement::DeviceSpace;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

pub use cluster::NamedLocal;
pub use health::reports_of;
pub use locks::{Place, in_use};
pub use start::now_seconds;

/// Everything that answers API requests.
pub struct Control {
    engine: EngineHandle,
    /// Where the API is served.
    doors: Arc<Doors>,
    /// What this host keeps for itself.
    store: HostStore,
    /// The cluster: of one, where this host stands alone.
    pub cluster: Arc<Cluster>,
    /// What happened here.
    pub events: Arc<EventLog>,
    sampler: Arc<Sampler>,
    warnings: Mutex<Vec<String>>,
    changes: tokio::sync::Mutex<()>,
    /// Disks that clients are kept from, and why.
    locks: Mutex<BTreeMap<DiskId, String>>,
    /// Imports that are under way.
    imports: Mutex<BTreeMap<DiskId, imports::Import>>,
    /// Told when this host has left its cluster: its process ends then.
    left: tokio::sync::Notify,
}

impl Control {
    /// The host's configuration.
    pub fn config(&self) -> Arc<Config> {
        self.cluster.config()
    }

    /// The state of the engine's devices.
    async fn host_state(&self) -> Result<HostState, Failure> {
        Ok(self.engine.call(|answer| Command::Host { answer }).await?)
    }

    /// Completes when this host has left its cluster.
    pub async fn has_left(&self) {
        self.left.notified().await;
    }

    /// Completes when this host's program does not understand the cluster's records any more, with the reason to end.
    pub async fn outgrown(&self) -> Failure {
        self.cluster.outgrown().await
    }

    /// The states of all disks, or of one.
    async fn disk_states(&self, only: Option<DiskId>) -> Result<BTreeMap<DiskId, DiskState>, Failure> {
        let states = self.engine.call(|answer| Command::Disks { only, answer }).await?;
        Ok(states.into_iter().map(|state| (state.id, state)).collect())
    }

    /// Disks, policies and silences of the cluster.
    fn records(&self) -> Arc<Records> {
        self.cluster.records()
    }

    /// The capacity devices that disks stand on. That a host cannot be reached now changes nothing for those.
    fn standing_spaces(&self) -> Vec<DeviceSpace> {
        self.cluster.all_spaces()
    }

    fn warn(&self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Stops the engine: no new requests, those under way are finished, the devices are left clean.
    pub async fn stop(&self) {
        self.events.here(Kind::HostStopping, "it was told to end");
        if self.engine.call(|answer| Command::Stop { answer }).await.is_err() {
            tracing::warn!("the storage engine had stopped before it was asked to");
        }
        // What goes on in the background ends by itself, a moment later than whoever starts the host again.
        self.store.file().close();
    }
}

/// Runs what waits for the directory's file on a thread that may wait.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Random bits from the operating system.
pub fn random_bits() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    let read = |bytes: &mut [u8]| std::fs::File::open("/dev/urandom")?.read_exact(bytes);
    read(&mut bytes).map_err(|error| Failure::failed("read /dev/urandom", error))?;
    Ok(u128::from_le_bytes(bytes))
}

/// A seed for placement.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn blocking_seed() -> Result<u64, Failure> {
    random_bits().map(|bits| bits as u64)
}

/// A source of component ids from one draw of randomness. Never zero; 64 bits make a second use of one id unlikely
/// beyond concern, and the engine refuses it.
pub fn component_ids(seed: u64) -> impl FnMut() -> ComponentId {
    let mut random = base::Random::new(seed);
    move || ComponentId(random.bits().max(1))
}

/// A place to listen as people write it.
pub fn listen_text(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// The address of a disk for NBD clients.
pub fn nbd_address(listen: &Listen, tls: bool, disk: &str) -> String {
    match listen {
        Listen::Tcp(address) => format!("{}://{address}/{disk}", if tls { "nbds" } else { "nbd" }),
        Listen::Unix(path) => format!("nbd+unix:///{disk}?socket={}", path.display()),
    }
}
