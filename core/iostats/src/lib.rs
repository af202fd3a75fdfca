//! What a virtual disk's guest really does, as histograms: recorded with every I/O, merged, subtracted, encoded.
//!
//! A [`Recorder`] sits in the data path of one disk and costs at most 100 ns per I/O. Its [`Statistics`] are cumulative
//! and plain: they can be cloned, merged with those of other disks, subtracted from later ones of the same disk, printed,
//! and turned into a few hundred bytes and back.
//!
//! The bucket limits are vSCSI's own, so that captures of both compare; a fine log-linear latency histogram stands beside
//! them for percentiles. Relies on `base` alone. Must never take a clock, lock or allocate per I/O.

mod buckets;
mod encoding;
mod histogram;
mod interval;
mod latency;
mod recorder;
mod statistics;

pub use buckets::{Kind, Operation, Operations};
pub use encoding::{DecodeError, VERSION};
pub use histogram::Histogram;
pub use interval::{Direction, Interval};
pub use latency::{FineBucket, FineLatency, PERCENTILE_ERROR};
pub use recorder::{Arrival, Recorder};
pub use statistics::{Bucket, Counters, HistogramView, Statistics};
