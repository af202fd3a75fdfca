//! Bodies about what happened.

use crate::client::escaped;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use utoipa::{IntoParams, ToSchema};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// Its number among the events of its host.
    pub number: u64,
    /// When, in seconds since 1970, by the clock of its host.
    pub time: u64,
    /// The same in milliseconds.
    pub time_ms: u64,
    /// Name of the host that tells of it.
    pub host: String,
    /// What kind: `copy.left`, `disk.created`, …. Programs may rely on it.
    pub kind: String,
    /// To what it happened: `disk web`, `host a`, `cluster`.
    pub subject: String,
    /// Name of the disk, if it happened to one; else empty.
    pub disk: String,
    /// What happened, and why.
    pub text: String,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

/// What happened on the hosts of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventsView {
    /// It, oldest first.
    pub events: Vec<EventView>,
    /// Hosts that did not answer: what only they know is missing.
    pub silent: Vec<String>,
}

/// Which events are asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Those of the last so many seconds.
    #[serde(default)]
    pub since: Option<u64>,
    /// Those about this: `disk web`, or `web` alone.
    #[serde(default)]
    pub about: Option<String>,
    /// Those of this kind: `copy.left`, or `copy` for all that begin with it.
    #[serde(default)]
    pub kind: Option<String>,
    /// At most so many, the newest; left out: 1,000.
    #[serde(default)]
    pub limit: Option<usize>,
}

impl EventQuery {
    /// As it stands in an address.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let sign = if text.is_empty() { '?' } else { '&' };
                // Writing to a text cannot fail.
                let _ = write!(text, "{sign}{name}={}", escaped(&value));
            }
        };
        add("since", self.since.map(|seconds| seconds.to_string()));
        add("about", self.about.clone());
        add("kind", self.kind.clone());
        add("limit", self.limit.map(|limit| limit.to_string()));
        text
    }
}
