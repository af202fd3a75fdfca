//! What a host keeps, and what the hosts of a cluster share.
//!
//! A host keeps one file of an embedded store ([`HostStore`]): who it is, and where its disk groups are. The records of disks,
//! policies and hosts are the cluster's ([`shared`]); those of a host that stands alone are in that same file. Must never be
//! asked on the way of a guest's I/O.

mod file;
mod former;
mod host;
mod record;
mod records;
pub mod shared;
#[cfg(test)]
mod tests;

pub use file::File;
pub use former::BEFORE_ALL;
pub use host::{GroupEntry, HostStore, INCARNATION_STEP};
pub use record::{DiskEntry, PolicyEntry, State};
pub use records::Records;
