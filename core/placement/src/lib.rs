//! Policies, and where the components of a virtual disk shall stand.
//!
//! [`plan`] chooses devices, [`check`] proves a choice against a policy and shares no code with it, [`explain`] says why
//! a layout is as it is, [`extend`] and [`shrink`] change a disk's size without moving a block. [`repair`] chooses new
//! components for lost ones, [`add_copies`] those that a disk has too few of, [`evacuate`] says what must move when a device goes, [`rebalance`] what should move to even
//! the devices out, [`capacity`] how much disks of a policy can still take. All are pure and, for a seed, deterministic. Relies on `base` and `layout`. Must never perform I/O
//! and never decide what a layout maps where.

mod candidate;
mod capacity;
mod check;
mod columns;
mod device;
mod disk;
mod explain;
pub mod limits;
mod one_host;
mod plan;
mod policy;
mod rebalance;
mod refusal;
mod repair;
mod resize;
mod schedule;
mod seats;
#[cfg(test)]
mod testing;
mod weaken;

pub use capacity::{Capacity, capacity};
pub use check::{Breach, check, check_space};
pub use device::{DeviceSpace, FaultDomain, Footprint, reservation};
pub use disk::PlacedDisk;
pub use explain::explain;
pub use limits::FULL;
pub use plan::{Debt, Plan, plan};
pub use policy::{
    Compression, Method, Percent, Policy, PolicyError, RULES, ReadLocality, Rule, RuleChange, Site, Stripes,
    Unsupported, policy_words,
};
pub use rebalance::{Balance, Move, Rebalance, balance_of, rebalance};
pub use refusal::{Cause, DomainKind, Refusal};
pub use repair::{Addition, Departure, Leaving, Replacement, add_copies, evacuate, repair};
pub use resize::{check_more, check_reservation, extend, shrink};
pub use schedule::{Every, Schedule, Schedules};
