//! Bodies about what is copied for disks, and what that waits for.

use super::words::CopyWord;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is copied for disks, or is to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResyncsView {
    /// Bytes still to be copied in all, as far as that is known.
    pub left_bytes: u64,
    /// The pace of all of it.
    pub bytes_per_second: f64,
    /// The disks of which a component does not count, by name.
    pub disks: Vec<DiskResyncView>,
}

/// A disk of which a component does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskResyncView {
    /// Its name.
    pub disk: String,
    /// What there is to say of it, in one line.
    pub line: Option<String>,
    /// Bytes still to be copied, as far as that is known.
    pub left_bytes: u64,
    /// When that will be done at the pace of now, if something is copied and all that is left is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// The components.
    pub components: Vec<ComponentResyncView>,
}

/// A component that does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComponentResyncView {
    /// Identity.
    pub component: String,
    /// The place that it is a copy of.
    pub place: usize,
    /// Its device, with its host.
    pub device: String,
    /// Why it is copied.
    pub cause: CopyWord,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes still to be copied, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_bytes: Option<u64>,
    /// The pace over the last seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// When it will end at that pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// What it waits for; nothing while it is being copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}
