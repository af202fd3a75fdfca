//! The simulator of one host: a disk group on virtual devices in virtual time, with faults, against a simple model. Of
//! several hosts with whole nodes (`cluster`), and of many hosts' decisions alone (`scale`).
//!
//! One seed decides everything: devices, load, latencies, faults. The same seed gives the same trace, bit for bit.

mod bad_sectors;
pub mod campaign;
pub mod cluster;
mod compression;
mod computing;
pub mod device;
mod faults;
pub mod features;
pub mod formatting;
mod holding;
mod holding_marks;
pub mod ledger;
mod load;
pub mod memory;
pub mod model;
mod operation;
pub mod overload;
mod renewal;
pub mod scale;
mod snapshots;
pub mod world;
mod zeroes;

#[cfg(test)]
mod tests;
