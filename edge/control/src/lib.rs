//! The control plane of a host: its configuration, its part in the cluster and the directory, what the API can ask for, and the API.
//!
//! Everything that stores or serves data is the engine's, which is reached by its handle alone. What is decided about several hosts
//! is `cluster`'s and `placement`'s.

mod addresses;
mod asked;
mod browsers;
mod cluster;
pub mod config;
mod control;
mod data_dir;
pub mod directory;
mod estimates;
mod events;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod figures;
mod founding;
pub mod host;
pub mod http;
mod limits;
pub mod lock;
mod managed;
pub mod offline;
mod sampler;
mod security;
mod series;
mod sessions;
mod system;
mod unclaimed;
pub mod watcher;
mod words;

pub use system::random_bits;
