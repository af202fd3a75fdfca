//! One node: the virtual disks that it owns and the disk groups that hold their components.
//!
//! Relies on `layout` for where a block stands and on `diskgroup` for keeping it. Splits guests' requests into pieces of
//! components, puts the answers together, turns sectors into blocks, keeps to limits, records histograms. Must never
//! perform I/O or know a protocol: see [`Node`].

mod control;
mod disk;
mod disks;
mod fabric;
pub mod limits;
mod node;
mod pace;
mod pieces;
mod range;
pub mod record;
mod request;
mod shares;
mod tail;

pub use control::{DiskSpec, FoundDisk};
pub use disk::{DiskKey, DiskState};
pub use fabric::{ClusterDiskState, FabricOutput, FabricSettings, LinkState};
pub use node::{GroupKey, Node, Output, Token};

#[cfg(test)]
mod tests;
