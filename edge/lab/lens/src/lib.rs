//! Captures and traces of virtual disks: what was done, by whom, and who suffered from it.
//!
//! A [`Capture`] is histograms per disk and window of time. It is made from samples of [`iostats::Statistics`], from a series
//! of `vscsiStats -c` dumps, or from the events of a trace. All else is computed from it or from the events themselves.
//!
//! Relies on `base`, `iostats`, `plan` and `statistics`. Must never open a file, ask for the time or keep a whole trace: what
//! readers and analyses hold is bounded, whatever comes.

pub mod analysis;
mod builder;
mod capture;
mod divergence;
mod error;
mod event;
pub mod fit;
pub mod interference;
mod latencies;
mod named;
mod surface;
pub mod text;
pub mod trace;
pub mod vscsi;
mod window;

pub use builder::{CaptureBuilder, DISKS_MAX, WINDOWS_MAX};
pub use capture::{Capture, Disk, Gap};
pub use divergence::divergence;
pub use error::ReadError;
pub use event::{Action, Event};
pub use interference::{Interference, interference};
pub use latencies::{Latencies, LatencyBin};
pub use surface::{COLUMNS_MAX, Resolution, Surface, SurfaceGroup, surfaces, surfaces_within};
pub use window::{Counted, Total, Window};
