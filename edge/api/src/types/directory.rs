//! Bodies about where the directory stands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the directory stands, and who keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryView {
    /// Where it stands, in words.
    pub place: String,
    /// Whether the cluster runs etcd for itself.
    pub is_managed: bool,
    /// The members of etcd; none where the directory stands on this machine.
    pub members: Vec<DirectoryMemberView>,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryMemberView {
    /// Its id in etcd, as etcd's own tools show it; left out where etcd does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The host that runs it; left out where the cluster does not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Where clients connect; where other members do, before it has started.
    pub address: String,
    /// What it is.
    pub role: MemberRole,
    /// Whether it answered this host when that last looked.
    pub answers: bool,
}

/// What a member of etcd is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// It counts.
    Voter,
    /// It follows, and counts once it has caught up.
    Learner,
}
