//! The I/O histograms of a target over time.

use iostats::Statistics;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The I/O histograms of a target, second by second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskSeries {
    /// Which disk: the target's name, or a virtual machine's.
    pub name: String,
    /// One for each second in which there was anything.
    pub samples: Vec<Sample>,
}

/// One second of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it began, in seconds after the stage started to count (before that for the ramp: below 0).
    pub at: f64,
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// What came in it.
    #[serde(with = "encoded")]
    pub statistics: Statistics,
}

/// `iostats`' own bytes (docs/formats/statistics.md), in hexadecimal.
mod encoded {
    use super::*;

    pub fn serialize<S: Serializer>(statistics: &Statistics, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base::hex(&statistics.encode()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Statistics, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = base::unhex(&text)
            .ok_or_else(|| serde::de::Error::custom("statistics that are not hexadecimal"))?;
        Statistics::decode(&bytes).map_err(serde::de::Error::custom)
    }
}
