//! The histograms' kinds and operations by name, in JSON.

/// [`iostats::Kind`] by its name.
pub(crate) mod kind {
    use iostats::Kind;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| serde::de::Error::custom(format!("there is no histogram `{name}`")))
    }
}

/// [`iostats::Operations`] by its name.
pub(crate) mod operations {
    use iostats::Operations;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(operations: &Operations, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(operations.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Operations, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Operations::ALL.into_iter().find(|operations| operations.name() == name);
        found.ok_or_else(|| {
            serde::de::Error::custom(format!("`{name}` are no operations: reads, writes, both are"))
        })
    }
}
