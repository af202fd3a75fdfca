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
        let text: String = statistics.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Statistics, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes();
        let bytes: Option<Vec<u8>> = (digits.len() % 2 == 0)
            .then(|| digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect())
            .flatten();
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("statistics that are not hexadecimal"))?;
        Statistics::decode(&bytes).map_err(serde::de::Error::custom)
    }

    fn digit(of: u8) -> Option<u8> {
        char::from(of).to_digit(16).map(|digit| digit as u8)
    }
}
