//! Several machines as one generator: agents that run parts of a plan, and a driver that starts them together.
//!
//! An agent listens, prints an *invitation* (its address, the fingerprint of its certificate, a secret that is good for one
//! session) and does what the driver that presents the secret says. The driver knows the agent by the fingerprint, the agent
//! the driver by the secret, and both speak TLS: who only listens learns nothing, and who repeats what he heard is refused.
//!
//! Clocks are aligned by exchanging readings: the offset is that of the exchange that took the shortest, and is off by at most
//! half of it. All parts of a stage begin at one moment of the driver's clock.

mod clocks;
mod drive;
mod frame;
mod invitation;
mod message;
mod place;
mod serve;
mod tls;

pub use clocks::Offset;
pub use drive::{DriveError, DriveSettings, Driver};
pub use invitation::{Invitation, InvitationError};
pub use place::{Placement, PlacementError, place};
pub use serve::{Find, ServeError, serve};

/// The version of the conversation. Both sides must have the same.
pub const PROTOCOL: u32 = 4;
