//! Estimates of what compression and deduplication would save (docs/design/0048).
//!
//! Chooses the blocks of a sample, measures them, and turns the measurements into figures with their standard errors. Relies on
//! the caller for blocks and checksums. Must never perform I/O, and knows neither disks nor policies.

mod choice;
mod deduplication;
mod estimate;
mod limits;
mod meter;
mod packing;
mod plan;
mod rate;
mod sample;
mod sizes;
mod strata;

pub use choice::{Choice, Measured};
pub use deduplication::{Deduplication, Domain, deduplication};
pub use estimate::Estimate;
pub use limits::{BLOCKS_PER_SAMPLE, CONTENTS_MAX};
pub use meter::Meter;
pub use plan::{PercentError, Rates};
pub use rate::Rate;
pub use sample::{ComponentSample, Content, HostSample};
pub use sizes::{Codec, Sizes, UNITS_PER_BLOCK};
pub use strata::{Compression, compression};
