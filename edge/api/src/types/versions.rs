//! Bodies about the releases that hosts run, and the level of the records.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The level of the cluster's records, and who understands which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionsView {
    /// The level that records are written in.
    pub level: u16,
    /// The next one; left out: no host understands a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u16>,
    /// Whether this request raised it to the level that is told.
    pub is_raised: bool,
    /// The hosts, by name.
    pub hosts: Vec<HostVersionsView>,
    /// What stands in the way of the next level, one sentence each.
    pub obstacles: Vec<String>,
}

/// What a host runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostVersionsView {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// The release that it runs, or ran last.
    pub release: String,
    /// The lowest level that this understands.
    pub lowest: u16,
    /// The highest.
    pub highest: u16,
}
