//! Replication: one owner per virtual disk, its components, and what they owe to one another.
//!
//! `docs/design/0006-replication.md` is the protocol; the invariants named here by number are its. An [`Owner`] orders all
//! I/O of one disk; [`Components`] answer for what stands on one node. Both are state machines without clock or I/O.
//! Relies on `base`, `layout` and `wire`. Must never know a disk group or how a message travels.

pub mod components;
pub mod limits;
mod locks;
pub mod owner;
mod roster;
mod rules;
mod snapshots;

pub use components::{Components, Store};
pub use owner::Owner;
pub use roster::{Ceiling, InRows, Member, Moved, OwnedBy, Role, Roster, Standing};
pub use rules::Rule;
pub use snapshots::{NotTaken, Numbers, Origin, Snapshots, Together};
