//! What people set for the whole cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which devices are evened out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BalanceMode {
    /// Those that are nearly full, and those that differ by much from others.
    #[default]
    Proactive,
    /// Those that are nearly full.
    Reactive,
    /// None.
    Off,
}

/// The settings of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingsView {
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
