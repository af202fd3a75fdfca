//! The replication protocol as models that are checked state by state.
//!
//! A model is a small world of which every order of events is tried: owners of older epochs go on acting, messages arrive late
//! or never, a crash is somebody who is never heard of again. A rule may be removed, and must then be missed. The models know
//! nothing of the product's code: they show that the rules are enough and that each is needed, while the simulator shows that
//! the code keeps them.

pub mod moves;
pub mod parity;
pub mod parts;
pub mod protocol;
pub mod search;
pub mod world;

#[cfg(test)]
mod tests;
