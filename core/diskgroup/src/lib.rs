//! A disk group: write buffer, destaging, checksums, space, scrub and recovery of one log device and its capacity
//! devices.
//!
//! Relies on `base` alone. Decides; performs nothing: see [`Group`] for how it is driven, and
//! `docs/formats/disk-group.md` for what it leaves on its devices.

mod backfill;
mod bits;
mod buffer;
mod carry;
mod checkpoint;
mod component;
mod components;
mod compressing;
mod compute;
mod destage;
mod effort;
mod exclusive;
pub mod format;
pub mod geometry;
mod group;
mod held;
mod index;
mod io;
mod leaving;
pub mod limits;
mod lineage;
mod log;
mod member;
mod members;
mod part_map;
mod pools;
mod read;
mod recovery;
mod requests;
mod retained;
mod rewrite;
mod rules;
mod scarcity;
mod scrub;
mod share;
mod slots;
mod space;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod unmapped;
mod unreadable;
mod versions;
mod watermarks;
mod window;
mod work;

pub use compute::{Computation, ComputeId, Computed, Repacked, Task};
pub use effort::{Effort, Latencies};
pub use format::batch::{Origin, WindowEntry};
pub use group::{Group, Settings};
pub use held::{HeldBlocks, LayerRange, ROW_LAYER, ROW_LAYER_FIRST};
pub use io::{
    Backfill, Completion, ComponentKey, DamagedBlock, Event, Giving, GroupError, Input, Io, IoFailure,
    LayerRanges, Op, OpenError, Output, Versions,
};
pub use leaving::{Lost, RemoveRefusal};
pub use rules::Rule;
pub use share::{Share, Shares};
pub use slots::frames_needed;
pub use state::{ComponentState, Counters, GroupState, MemberState};
