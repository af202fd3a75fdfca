//! Bodies about the care for a cluster: settings, health, maintenance, removal, balance.

use super::settings::BalanceMode;
use super::words::{BalanceWord, FateWord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// The cluster's settings; in a change, what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSettings {
    /// Seconds that a component may be missing before another takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_delay_seconds: Option<u64>,
    /// Components of the whole cluster that are filled at once; 0: none, and what is on its way is called off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacements_max: Option<usize>,
    /// Components of one host that are filled at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacements_per_host_max: Option<usize>,
    /// Which devices are evened out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<BalanceMode>,
    /// Whether components stand in for absent ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_ins: Option<bool>,
}

/// A host is to be serviced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginMaintenance {
    /// What happens to the disks that stand on it.
    pub mode: MaintenanceMode,
    /// Only tell what would happen.
    #[serde(default)]
    pub dry_run: bool,
    /// The host's name: needed when disks cannot be used meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

/// What servicing a host does to the disks that stand on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MaintenanceMode {
    /// Only what a disk cannot be used without is copied elsewhere first.
    EnsureAccessibility,
    /// All that stands on it is copied elsewhere first.
    FullEvacuation,
    /// Nothing is copied first.
    None,
}

/// What servicing a host would do, or does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceView {
    /// Name of the host.
    pub host: String,
    /// How.
    pub mode: MaintenanceMode,
    /// Whether it was begun; else it was only asked for.
    pub is_begun: bool,
    /// Whether all that has to move has a place.
    pub is_possible: bool,
    /// What has no place, and why.
    pub obstacles: Vec<String>,
    /// Bytes that are copied first.
    pub bytes_to_move: u64,
    /// Disks that cannot be used while the host is away.
    pub inaccessible: Vec<String>,
    /// Every disk that stands on the host.
    pub disks: Vec<TouchedView>,
}

/// A device to be emptied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvacuateDevice {
    /// Its path on the host that is asked, `HOST:PATH`, or its id.
    pub device: String,
    /// Only tell what that would do.
    #[serde(default)]
    pub dry_run: bool,
}

/// A device that is not to be emptied any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepDevice {
    /// As in [`EvacuateDevice`].
    pub device: String,
}

/// What emptying a device does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EvacuationView {
    /// Its path.
    pub device: String,
    /// Name of its host.
    pub host: String,
    /// Whether it was begun; else it was only asked for.
    pub is_begun: bool,
    /// Whether all that stands on it has a place elsewhere.
    pub is_possible: bool,
    /// What has no place, and why.
    pub obstacles: Vec<String>,
    /// Bytes that are copied.
    pub bytes_to_move: u64,
    /// Every disk that stands on it.
    pub disks: Vec<TouchedView>,
}

/// A disk that stands on a host to be serviced, or a device to be emptied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TouchedView {
    /// Its name.
    pub disk: String,
    /// What happens to it, in one sentence.
    pub summary: String,
    /// Its components there.
    pub components: Vec<FateView>,
}

/// What happens to a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FateView {
    /// Identity.
    pub component: String,
    /// The place that it is a copy of.
    pub place: usize,
    /// What becomes of it.
    pub fate: FateWord,
    /// The device that it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Bytes that are copied.
    pub bytes: u64,
}

/// What a host says that is to leave and has something of disks on it still, behind its name.
pub const NOT_EMPTIED: &str = "is not emptied";

/// A host was removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RemovedHost {
    /// Its name.
    pub host: String,
    /// Disks whose copies on it are made on other hosts.
    pub disks: Vec<String>,
    /// Disks that keep fewer copies than their policies ask for until there is a place for others, and why there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_replaced: BTreeMap<String, String>,
    /// What is left to be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How even the devices are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BalanceView {
    /// Which devices are evened out.
    pub mode: BalanceMode,
    /// How even they are; unknown until it was looked at, and at hosts that do not decide.
    pub state: BalanceWord,
    /// The host that decides; it looks every few seconds.
    pub decided_by: Option<String>,
    /// Why nothing new moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// What stays uneven within the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
    /// Components on their way to even devices out.
    pub moving: usize,
    /// Devices, the fullest first.
    pub devices: Vec<FullnessView>,
}

/// How full a device is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FullnessView {
    /// Name of its host.
    pub host: String,
    /// Its path.
    pub device: String,
    /// Percent of its space that is taken or promised.
    pub percent: f64,
    /// Whether something new may come to it.
    pub in_service: bool,
}

/// Whether the caller knows what is asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ConfirmHost {
    /// The name of the host that goes.
    #[serde(default)]
    pub confirm: Option<String>,
}
