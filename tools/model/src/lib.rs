//! The replication protocol (`docs/design/0006-replication.md`) as a model that is checked state by state.
//!
//! One disk, two blocks in one region, two or three components, a few epochs and writes. Every order of events is tried:
//! owners of older epochs go on acting, messages arrive late or never, a crash is somebody who is never heard of again.
//! A [`Rule`] may be removed, and must then be missed. The model knows nothing of the product's code: it shows that the
//! rules are enough and that each is needed, while the simulator shows that the code keeps them.

pub mod action;
pub mod rule;
pub mod search;
pub mod state;

#[cfg(test)]
mod tests;
