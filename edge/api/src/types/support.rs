//! What supporters need of a host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a host gives for a support bundle. Private keys, tokens and passwords are taken out of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SupportView {
    /// Name of the host.
    pub host: String,
    /// Version of its program.
    pub version: String,
    /// When it was asked, in seconds since 1970 by its clock.
    pub time: u64,
    /// Its files.
    pub files: Vec<SupportFile>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// A file of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SupportFile {
    /// Its path in the host's folder.
    pub path: String,
    /// What it says.
    pub text: String,
}
