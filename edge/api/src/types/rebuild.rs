//! Bodies about a directory that was lost and is made anew.

use super::words::RebuildWord;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A host's copy of the directory is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyRequest {
    /// Whether a new directory is made of it: then the host takes nothing more from the former one.
    #[serde(default)]
    pub seal: bool,
}

/// What a host and its devices know of the directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CopyView {
    /// The host's id.
    pub host: String,
    /// Why the directory is of no use to it; left out: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_away: Option<String>,
    /// Its copy of the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<KeptCopy>,
    /// The components that stand on it.
    pub components: Vec<PromisedView>,
}

/// A host's copy of the directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptCopy {
    /// The record of the cluster, as text.
    pub cluster: String,
    /// Which directory of the cluster it is of.
    pub generation: u64,
    /// No change up to this revision is missing.
    pub revision: u64,
    /// The records: key, version and value.
    #[schema(value_type = Vec<Object>)]
    pub records: Vec<(String, u64, serde_json::Value)>,
}

/// What a component promised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromisedView {
    /// Its id.
    pub component: String,
    /// Its disk's id.
    pub disk: String,
    /// The greatest epoch that it promised.
    pub promised: u32,
    /// The numbers of its snapshots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<u32>,
}

/// A lost directory is to be made anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildDirectory {
    /// Only say what would come of it.
    #[serde(default)]
    pub dry_run: bool,
    /// Hosts, by name or id, without whose copies it is done.
    #[serde(default)]
    pub without: Vec<String>,
    /// Disks, by name or id, that are taken though nobody can prove that their record is the last.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Disks, by name or id, that are given up because nobody can prove that their record is the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
}

/// What comes of it, or came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RebuildView {
    /// The cluster.
    pub cluster: String,
    /// The generation of the new directory.
    pub generation: u64,
    /// Whether it was made.
    pub is_made: bool,
    /// What prevents it.
    pub obstacles: Vec<String>,
    /// All hosts.
    pub hosts: Vec<RebuildHost>,
    /// All disks.
    pub disks: Vec<RebuildDisk>,
    /// Components of disks of which there is no record: they stay.
    pub unknown: Vec<UnknownDisk>,
    /// Policies that are taken.
    pub policies: usize,
    /// Authorities that are taken.
    pub authorities: usize,
    /// Hosts and people whose certificates count no more, that are taken.
    pub revoked: usize,
    /// Join tokens that are not.
    pub tokens_dropped: usize,
    /// Other records that are left out because they cannot be read.
    pub unreadable: Vec<String>,
}

/// A host, for a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RebuildHost {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Whether it answered.
    pub answers: bool,
    /// The generation and revision of its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<(u64, u64)>,
    /// Whether it is done without its copy.
    pub is_left_out: bool,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A disk, for a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RebuildDisk {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// What becomes of it.
    pub outcome: RebuildWord,
    /// What is to be known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A disk without a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownDisk {
    /// Its id.
    pub id: String,
    /// Where components of it stand.
    pub hosts: Vec<String>,
}
