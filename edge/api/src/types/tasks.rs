//! Bodies about what runs: what people asked for, or the cluster began by itself.

use super::words::TaskWord;
use super::{ActionView, EventView, HostPassView, RollbackView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything that runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TasksView {
    /// The tasks, by kind and subject.
    pub tasks: Vec<TaskView>,
    /// Hosts that did not answer: tasks that only they know of are missing.
    pub silent: Vec<String>,
}

/// Something that runs for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Its id, which stays the same while it runs: `move/web`.
    pub id: String,
    /// What it is.
    pub kind: TaskWord,
    /// What it is about: `disk web`, `host b`, `device /dev/sdb of host b`.
    pub subject: String,
    /// What it does and how far it is, in one sentence.
    pub text: String,
    /// Who asked for it; nothing where the cluster began it by itself, or the event that tells so is no longer kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// When it was begun, in seconds since 1970, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Bytes that are done, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_bytes: Option<u64>,
    /// Bytes that are left, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_bytes: Option<u64>,
    /// Share that is done, 0 to 1, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Seconds that it still takes at the pace of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// What it waits for; nothing while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The request that stops it, if it can be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<ActionView>,
    /// Other requests that steer it: pause, resume.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionView>,
}

/// What one host knows of tasks: for the host that gathers them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostTasksView {
    /// The events by which tasks were begun here, the newest of each kind and subject.
    pub begun: Vec<EventView>,
    /// Imports that go through this host.
    pub imports: Vec<HostImportView>,
    /// Rollbacks that this host carries out.
    pub rollbacks: Vec<RollbackView>,
    /// The pass that samples this host's data, if one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<HostPassView>,
}

/// An import that goes through a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostImportView {
    /// Name of the disk.
    pub disk: String,
    /// What is imported, for people: a file, its format and size.
    pub source: String,
}
