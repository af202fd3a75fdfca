//! The control plane: what the API can ask for, done with the engine and the directory.
//!
//! One change at a time; readers never wait. A change that needs both is recorded in the directory first, so that a start
//! after a crash finds out how far it came. Must hold no rule of placement or storage: those are core's.

mod actions;
mod care;
mod clones;
mod cluster;
mod console;
mod devices;
mod disks;
mod elsewhere;
mod estimate;
mod events;
mod explained;
mod founding;
mod health;
mod imports;
mod locks;
mod members;
mod overdue;
mod policies;
mod pulse;
mod replace;
mod rewrite;
mod rollback;
mod series;
mod silences;
mod snapshots;
mod space;
mod start;
mod state;
mod support;
mod tasks;
#[cfg(test)]
mod tests;
mod views;
mod what_if;

use crate::config::Config;
use crate::directory::Records;
use crate::events::Kind;
use crate::system::blocking;
use base::DiskId;
use engine::{Command, DeviceLoad, DiskState, HostState};
use failure::Failure;
use placement::DeviceSpace;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

#[cfg(test)]
pub(crate) use actions::sample_actions;
pub use cluster::NamedLocal;
pub use pulse::{Beat, Of};
pub use state::Control;
pub(crate) use views::DiskSpaces;

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

    /// What every device has done since its group was opened.
    ///
    /// # Errors
    /// When the engine is gone.
    pub(crate) async fn device_loads(&self) -> Result<Vec<DeviceLoad>, Failure> {
        Ok(self.engine.call(|answer| Command::Loads { answer }).await?)
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
        blocking(|| self.series.close());
        if self.engine.call(|answer| Command::Stop { answer }).await.is_err() {
            tracing::warn!("the storage engine had stopped before it was asked to");
        }
        // What goes on in the background ends by itself, a moment later than whoever starts the host again.
        self.store.file().close();
    }
}
