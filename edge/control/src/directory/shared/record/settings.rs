//! What people set for the whole cluster.

use super::super::{Change, Entry};
use super::{SETTINGS, read};
use ::cluster::limits::{REPAIR_DELAY, REPLACEMENTS_MAX, REPLACEMENTS_PER_HOST_MAX};
use api::types::{BalanceMode, SettingsView};
use failure::Failure;
use placement::Balance;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What people set for the whole cluster; what they did not set has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// Seconds that a component may be missing before another takes its place.
    pub repair_delay_seconds: u64,
    /// Components of the whole cluster that are filled at once; 0: none, and what is on its way is called off.
    pub replacements_max: usize,
    /// Components of one host that are filled at once.
    pub replacements_per_host_max: usize,
    /// Which devices are evened out.
    pub balance: BalanceMode,
    /// Whether components stand in for absent ones.
    pub stand_ins: bool,
}

impl Default for ClusterSettings {
    fn default() -> ClusterSettings {
        ClusterSettings {
            repair_delay_seconds: REPAIR_DELAY.as_secs(),
            replacements_max: REPLACEMENTS_MAX,
            replacements_per_host_max: REPLACEMENTS_PER_HOST_MAX,
            balance: BalanceMode::default(),
            stand_ins: false,
        }
    }
}

impl From<ClusterSettings> for SettingsView {
    fn from(settings: ClusterSettings) -> SettingsView {
        let ClusterSettings {
            repair_delay_seconds,
            replacements_max,
            replacements_per_host_max,
            balance,
            stand_ins,
        } = settings;
        SettingsView { repair_delay_seconds, replacements_max, replacements_per_host_max, balance, stand_ins }
    }
}

impl ClusterSettings {
    /// Those of a cluster that `drystone cluster init` makes. They are written out, for what a record leaves out means the
    /// same to all releases.
    pub fn of_new_cluster() -> ClusterSettings {
        ClusterSettings { stand_ins: true, ..ClusterSettings::default() }
    }

    /// What decisions about repairs take of them.
    pub fn of_repairs(&self) -> ::cluster::Settings {
        ::cluster::Settings {
            delay: Duration::from_secs(self.repair_delay_seconds),
            replacements_max: self.replacements_max,
            replacements_per_host_max: self.replacements_per_host_max,
            evens_out: self.balance != BalanceMode::Off,
        }
    }

    /// Whether devices are evened out that are as uneven as that.
    pub fn evens_out(&self, balance: Balance) -> bool {
        self.replacements_max > 0
            && match self.balance {
                BalanceMode::Proactive => true,
                BalanceMode::Reactive => balance == Balance::Reactive,
                BalanceMode::Off => false,
            }
    }

    /// The change that makes this the record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        let value = serde_json::to_value(self).map_err(|error| Failure::failed("write a record", error))?;
        Ok(Change { key: SETTINGS.to_owned(), expected, value: Some(value) })
    }

    /// The settings that a record tells of.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<ClusterSettings, String> {
        read(entry)
    }
}
