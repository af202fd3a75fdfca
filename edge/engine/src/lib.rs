//! The engine (one thread that owns a node, its devices and its client sessions), and the seam between it and the control
//! plane (HTTP, CLI, directory; many threads).
//!
//! The control plane sends [`Command`]s; each carries the place for its answer. No answer means that the engine's
//! thread is gone, which [`EngineHandle::call`] reports as [`EngineError::Stopped`].

mod at_rest;
mod attach;
mod client;
mod cluster;
mod command;
mod commands;
mod complaints;
mod compute;
mod copy_back;
pub mod descriptors;
mod devices;
mod encryption;
mod engine;
mod error;
mod handle;
mod limits;
mod listener;
mod mailbox;
mod notice;
mod overdue;
mod pass;
mod patience;
mod peers;
mod prepared;
mod registry;
mod ring;
mod run;
mod sampling;
mod settings;
mod shards;
mod siblings;
mod sizes;
mod state;

pub use attach::not_named;
pub use command::{
    Answer, ClusterCommand, Command, Create, DiskLock, DiskRecord, GroupSpec, Locking, Order, OrderFailure,
    PassOrder,
};
pub use complaints::Complaints;
pub use devices::{cluster_on, refusal_to_take};
pub use diskgroup::Lost;
pub use error::EngineError;
pub use handle::EngineHandle;
pub use node::{Course, FoundDisk, MoveState, Trouble};
pub use notice::{Notice, Ticket, Visitor};
pub use peers::PeerTls;
pub use settings::{Endpoint, Fabric, Listen, Settings, TlsFiles};
pub use shards::{SHARDS_MAX, Started, start};
pub use state::{
    ClientState, ClusterState, DeviceLoad, DeviceState, DiskState, GroupState, HeldComponent, HostState,
    PassResult, PassRunning, PassState,
};
