//! One node: the virtual disks that it owns and the disk groups that hold their components.
//!
//! Relies on `layout` for the location of blocks and on `diskgroup` for storing them. Splits guests' requests into
//! pieces by component, joins the answers, turns sectors into blocks, applies limits, records histograms. Must never
//! perform I/O or know a protocol: see [`Node`].

mod changes;
mod compression;
mod control;
mod disk;
mod disks;
mod fabric;
mod holes;
mod interface;
pub mod label;
pub mod limits;
mod mover;
mod moves;
mod node;
mod origin;
mod ownership;
mod pace;
mod pieces;
mod range;
mod request;
mod runs;
mod sampling;
mod shares;
mod tail;
mod zeroes;

pub use interface::{
    Course, DiskActivity, DiskKey, DiskSpec, FabricOutput, FabricSettings, FoundDisk, GroupKey, LinkState,
    MoveState, Output, OwnershipState, Token, Trouble,
};
pub use node::Node;
pub use pace::{LimitFigures, Limits};

#[cfg(test)]
mod tests;
