//! Policies, and where the components of a virtual disk shall stand.
//!
//! [`plan`] chooses devices, [`check`] proves a choice against a policy and shares no code with it, [`explain`] says why a layout
//! is as it is, [`extend`] and [`shrink`] change a disk's size without moving a block. All are pure and, for a seed,
//! deterministic. Relies on `base` and `layout`. Must never perform I/O and never decide what a layout maps where.

mod candidate;
mod check;
mod device;
mod explain;
pub mod limits;
mod plan;
mod policy;
mod refusal;
mod resize;

pub use check::{Breach, check, check_space};
pub use device::{DeviceSpace, reservation};
pub use explain::explain;
pub use plan::{Debt, Plan, plan};
pub use policy::{Method, Percent, Policy, PolicyError, RULES, Rule, Site, Stripes, Unsupported};
pub use refusal::{Cause, Refusal};
pub use resize::{extend, shrink};
