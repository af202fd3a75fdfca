//! Tests of the whole: handshakes in memory, what an authority issues, and bytes of any kind.

mod authority;
mod garbage;
mod handshakes;
mod joining;
mod reloading;
pub(crate) mod world;
