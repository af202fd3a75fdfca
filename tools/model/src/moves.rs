//! A disk that moves from one layout to another (`docs/design/0041-changing-a-policy.md`): two granules of two blocks.

pub mod action;
pub mod config;
pub mod next;
pub mod rule;
pub mod state;
