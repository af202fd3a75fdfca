//! Records, changes of them, and what came of these.

use base::ClusterId;
use failure::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A record as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name: `disks/…`.
    pub key: String,
    /// The revision of the directory that changed it last; never used twice.
    pub version: u64,
    /// What it says.
    pub value: Value,
}

/// One record that a transaction sets or removes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its name.
    pub key: String,
    /// The version that it must have; zero: it must not be there.
    pub expected: u64,
    /// What it shall say; nothing: it goes.
    pub value: Option<Value>,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All is as asked; the records that were set have this version.
    Done {
        /// It.
        version: u64,
    },
    /// Nothing was changed: a record has another version. What those of the transaction that are there say now.
    Conflict {
        /// Them.
        current: Vec<Entry>,
    },
    /// Nothing was changed: it could not be written, for want of room in most cases.
    Unwritten {
        /// What came back.
        why: String,
    },
    /// Nobody answered: it happened, or not, or it still may.
    Unknown,
}

/// The failure of who asked for a change that could not be written.
pub fn unwritten(why: String) -> Failure {
    Failure::new(Code::Failed, why).hint("see that the host's data_dir can be written and has room")
}

/// What changed since a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// The cluster that the directory belongs to.
    pub cluster: String,
    /// From where to go on.
    pub revision: u64,
    /// Whether these are all records there are, because what went since then is not known any more.
    pub is_complete: bool,
    /// Records as they are now.
    pub entries: Vec<Entry>,
    /// Names of records that are gone.
    pub gone: Vec<String>,
}

/// The cluster that changes tell of.
///
/// # Errors
/// When it is no id.
pub fn cluster_of(changes: &Changes) -> Result<ClusterId, Failure> {
    changes.cluster.parse().map_err(|error| Failure::failed("read the directory's cluster", error))
}
