//! What to run: the lab's one model of a workload, whichever dialect it was written in.
//!
//! A [`Plan`] is stages, one after another; a [`Stage`] is groups of workers that run together; a [`Group`] says how many
//! workers there are, how many I/Os each keeps outstanding on which targets, and what these I/Os are ([`Pattern`], [`Data`],
//! [`Rate`]). Importers make plans, exporters write them, the generator runs them, and [`Outline`] tells a person what a plan
//! would do before anything runs.
//!
//! Relies on `base` alone. Must never open a file or ask for the time: a plan is a value.

mod check;
pub mod content;
mod describe;
mod label;
mod note;
mod outline;
pub mod pace;
pub mod pattern;
pub mod profiles;
mod structure;
mod text;

pub use check::Problem;
pub use content::{Caching, Content, Data, FlushRule, Verify, VerifyWhen, WriteThrough};
pub use note::{Note, NoteKind, Place};
pub use outline::{Growth, Outline, StageOutline, TargetOutline, format_seconds};
pub use pace::{
    Amount, Arrivals, LatencyTarget, Length, Loop, Pace, PauseStart, Rate, RateOf, RatePer, Steady, SteadyOf,
    Think, Timing,
};
pub use pattern::{
    AtEnd, Cursor, Distribution, Extent, HitArea, Line, Pattern, Reuse, Sequence, Size, Span, Zone,
};
pub use structure::{Batch, Depth, Engine, Group, Plan, Seed, Stage, StageEnd, Target, Workers};
pub use text::fold_notes;

/// Durations as seconds in JSON and TOML.
pub mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    /// Writes a duration as seconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    /// Reads seconds.
    ///
    /// # Errors
    /// When the number is negative, not a number, or beyond what a duration can be.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(|error| {
            serde::de::Error::custom(format!("{seconds} is not a number of seconds: {error}"))
        })
    }
}
