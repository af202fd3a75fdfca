//! The ground that every crate stands on: units, ids, time, seeded randomness, checksums, aligned buffers.
//!
//! Relies on nothing of Drystone. Holds no rule of the product and performs no I/O.

pub mod allowance;
pub mod buffer;
pub mod bytes;
pub mod calendar;
pub mod checksum;
pub mod id;
pub mod random;
pub mod request;
pub mod rules;
pub mod time;
pub mod units;

mod hex;

pub use allowance::{Allowance, Share};
pub use buffer::{Buffer, Pool};
pub use hex::{hex, unhex};
pub use id::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, NodeId, RequestTag, WriteId};
pub use random::Random;
pub use time::Instant;
