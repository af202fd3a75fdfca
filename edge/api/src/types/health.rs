//! Bodies about what is wrong, and what people do not want to be told again.

use super::ActionView;
use super::words::{HealthGroupWord, HealthWord, SeverityWord};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The health of a host alone, or of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// Whether nothing needs anybody's attention: no finding is worse than a notice. Those that are silenced do not count.
    pub is_well: bool,
    /// Every group of findings, those in which there are none too.
    pub groups: Vec<GroupHealthView>,
    /// What was found, the worst first.
    pub findings: Vec<FindingView>,
    /// What was found too, and nobody wants to be told again for a while.
    pub silenced: Vec<FindingView>,
}

/// How it is in one group of findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GroupHealthView {
    /// Which.
    pub group: HealthGroupWord,
    /// `well`, or the severity of its worst finding.
    pub state: HealthWord,
    /// How many findings it has.
    pub findings: usize,
    /// How many more are silenced.
    pub silenced: usize,
}

/// Something that is wrong, or to be known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// What kind: `disk.reduced`, `host.away`, …. Programs may rely on it.
    pub code: String,
    /// The group that the kind belongs to.
    pub group: HealthGroupWord,
    /// How bad it is.
    pub severity: SeverityWord,
    /// What it is about: `disk web`, `host a`, `device /dev/sdb of host a`, `cluster`.
    pub subject: String,
    /// What is the case.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
    /// Requests that do it, the best first; none where it is to be done outside of the software.
    #[serde(default)]
    pub actions: Vec<ActionView>,
    /// To when it is silenced, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_until: Option<u64>,
    /// Who silenced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_because: Option<String>,
}

/// Findings that nobody wants to be told again for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SilenceView {
    /// Their kind.
    pub code: String,
    /// What they are about; nothing: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// When that was said, in seconds since 1970.
    pub since: u64,
    /// To when, in seconds since 1970.
    pub until: u64,
    /// Who said so.
    pub who: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Findings to be silenced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeSilence {
    /// Their kind.
    pub code: String,
    /// What they are about, as findings name it: `disk web`, or `web` alone. Left out: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// For how long.
    pub seconds: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A silence that is to end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NamedSilence {
    /// The kind of its findings.
    pub code: String,
    /// What they are about, as it was said.
    #[serde(default)]
    pub about: Option<String>,
}
