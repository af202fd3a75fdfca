//! Which component holds which block of a virtual disk.
//!
//! A layout is a tree of concatenations, stripes and places; a place is a lone component, a mirror, or rows with parity. Its mapping is a
//! pure function that never changes for a block once the layout is in use: growing a disk adds to the end, and
//! replacing a copy leaves every block in its place. Relies on `base` only. Must never choose a device (that is
//! `placement`) and never know what a disk is called.

pub mod code;
pub mod encoding;
pub mod limits;
mod mapping;
mod moving;
pub mod rows;
pub mod striping;
mod tree;

pub use code::{Code, Unit};
pub use encoding::DecodeError;
pub use mapping::Span;
pub use moving::Side;
pub use rows::{Piece, Target};
pub use tree::{Component, Invalid, Layout};
