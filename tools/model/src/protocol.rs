//! The protocol of a mirror (`docs/design/0006-replication.md`): two blocks in one region, two or three components.

pub mod action;
pub mod rule;
pub mod state;
