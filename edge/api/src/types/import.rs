//! Imports of images, and the end of a disk.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A disk whose content is to be replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginImport {
    /// The disk's name.
    #[serde(default)]
    pub confirm: Option<String>,
    /// Whether the connections of clients that have the disk are ended. Otherwise a disk with clients is refused.
    #[serde(default)]
    pub detach_clients: bool,
    /// Where the content comes from, for people: a file and its machine.
    pub source: String,
    /// Format of the image.
    pub format: String,
    /// Size of the content in bytes.
    pub size: u64,
}

/// An import that has begun. Nobody else can attach to the disk until it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportView {
    /// The disk's name.
    pub disk: String,
    /// The export by which the importing program attaches.
    pub export: String,
    /// Addresses of the export for NBD clients.
    pub addresses: Vec<String>,
}

/// An import that has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndImport {
    /// Its export.
    pub export: String,
    /// Why it failed, if it did.
    #[serde(default)]
    pub failure: Option<String>,
    /// Whether nothing was written to the disk.
    #[serde(default)]
    pub unchanged: bool,
}

/// A disk is to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeleteDisk {
    /// The disk's name.
    #[serde(default)]
    pub confirm: Option<String>,
    /// Whether the connections of clients that have the disk are ended. Otherwise a disk with clients is refused.
    #[serde(default)]
    pub detach_clients: bool,
}
