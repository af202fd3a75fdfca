//! The stream: what changes, and figures once a second, as server-sent events.

use super::figures::RateView;
use super::words::TopicWord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// What a stream is to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// Whose figures, with commas between: `cluster`, `host/NAME`, `disk/NAME`.
    #[serde(default)]
    pub figures: String,
    /// Which topics, with commas between: see `Changed`. Left out: all.
    #[serde(default)]
    pub topics: Option<String>,
}

/// Something has changed: event `changed` of the stream. What it is now, a request tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// What kind of thing.
    pub topic: TopicWord,
    /// The name of the one that has changed; nothing where it is the topic as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What guests did in the last second: event `figures` of the stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StreamFigures {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// By what was asked for. What does not exist is left out.
    pub of: BTreeMap<String, LoadView>,
    /// Hosts from which nothing came in the last three seconds: what their guests do is missing.
    pub silent: Vec<String>,
}

/// What the guests of a disk, of a host or of the cluster did in a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadView {
    /// Reads.
    pub read: RateView,
    /// Writes.
    pub write: RateView,
    /// Requests under way.
    pub outstanding: u32,
    /// Clients attached.
    pub client_count: usize,
}

/// What the guests at one host did in a second: the only event of a host's stream to other hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSamples {
    /// Seconds that it is about.
    pub seconds: f64,
    /// By the ids of disks: those with clients here.
    pub disks: BTreeMap<String, DiskSample>,
}

/// What the guests of a disk at one host did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskSample {
    /// The bytes of docs/formats/statistics.md in hexadecimal; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encoded: String,
    /// Requests under way.
    pub outstanding: u32,
    /// Clients attached.
    pub client_count: usize,
}
