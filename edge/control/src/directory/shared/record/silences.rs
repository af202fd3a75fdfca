//! What people do not want to be told again for a while: one record of the cluster, and the same on a host alone.

use super::super::{Change, Entry};
use ::cluster::{Code, Silence};
use base::Instant;
use failure::Failure;
use serde::{Deserialize, Serialize};

/// The record of the silences.
pub const SILENCES: &str = "silences";

/// All of them. Those that have ended go when another is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silences {
    /// Them, in the order in which they were set.
    pub silences: Vec<StoredSilence>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredSilence {
    /// The code of the findings.
    pub code: String,
    /// What they are about; nothing: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// When it was set, in nanoseconds since 1970 by the clock of the host that set it.
    pub since_ns: u64,
    /// When it ends.
    pub until_ns: u64,
    /// Who set it.
    pub who: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl StoredSilence {
    /// As findings are compared with it; nothing for a code of a later release.
    pub fn silence(&self) -> Option<Silence> {
        let code = Code::read(&self.code)?;
        Some(Silence { code, about: self.about.clone(), until: Instant(self.until_ns) })
    }
}

impl Silences {
    /// Those that have not ended.
    pub fn at(&self, now_ns: u64) -> impl Iterator<Item = &StoredSilence> {
        self.silences.iter().filter(move |one| one.until_ns > now_ns)
    }

    /// The change that makes this the record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        super::set(SILENCES.to_owned(), expected, self)
    }

    /// What a record tells.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<Silences, String> {
        super::read(entry)
    }
}
