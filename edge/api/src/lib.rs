//! The API of a host as its clients know it: what goes back and forth, and the way there.
//!
//! The control plane answers with these types, the command line and other hosts ask with them. Nothing here knows how anything is done.

pub mod client;
pub mod identity;
mod limits;
pub mod name;
mod pool;
pub mod program;
pub mod stream;
pub mod types;

pub use client::Client;
pub use pool::Pool;
