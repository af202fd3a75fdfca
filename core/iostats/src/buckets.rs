//! The histograms that exist, their bucket limits and their names.
//!
//! Limits and titles are those of `vscsiStats` (William Lam's capture of a 6.x host; the 4095/4096 pairs set exact powers
//! of two apart). A value falls in the first bucket whose limit is not below it; the last bucket has no limit.

use crate::histogram::Limits;

/// A read or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Data goes to the guest.
    Read = 0,
    /// Data comes from the guest.
    Write = 1,
}

/// Which I/Os a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operations {
    /// Reads alone.
    Reads,
    /// Writes alone.
    Writes,
    /// Reads and writes.
    Both,
}

impl Operations {
    /// In the order in which vSCSI prints them.
    pub const ALL: [Operations; 3] = [Operations::Both, Operations::Reads, Operations::Writes];

    /// `both`, `reads`, `writes`.
    pub fn name(self) -> &'static str {
        match self {
            Operations::Reads => "reads",
            Operations::Writes => "writes",
            Operations::Both => "both",
        }
    }
}

impl From<Operation> for Operations {
    fn from(operation: Operation) -> Operations {
        match operation {
            Operation::Read => Operations::Reads,
            Operation::Write => Operations::Writes,
        }
    }
}

/// What a histogram counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes of an I/O.
    Length,
    /// Sectors from the last sector of the previous I/O to the first of this one; +1 is sequential, negative is backwards.
    SeekDistance,
    /// The same, from whichever of the previous 16 I/Os ended closest: shows interleaved sequential streams.
    SeekDistanceNearest,
    /// Time from arrival to completion in microseconds, fractions dropped; failed I/Os are not in it.
    Latency,
    /// I/Os under way when one arrives, itself among them.
    Outstanding,
    /// Time since the previous arrival in microseconds, fractions dropped.
    Interarrival,
}

/// Buckets of [`Kind::Length`].
pub(crate) const LENGTH_BUCKETS: usize = 18;
/// Buckets of the two seek distances.
pub(crate) const SEEK_BUCKETS: usize = 34;
/// Buckets of [`Kind::Outstanding`].
pub(crate) const OUTSTANDING_BUCKETS: usize = 13;
/// Buckets of [`Kind::Latency`] and [`Kind::Interarrival`].
pub(crate) const TIME_BUCKETS: usize = 11;

// Each table ends in i32::MAX: no value is above it, for values are clamped to 32 bits before they are compared.
pub(crate) static LENGTH_LIMITS: Limits<LENGTH_BUCKETS> = Limits::new([
    512,
    1024,
    2048,
    4095,
    4096,
    8191,
    8192,
    16383,
    16384,
    32768,
    49152,
    65535,
    65536,
    81920,
    131_072,
    262_144,
    524_288,
    i32::MAX,
]);
pub(crate) static SEEK_LIMITS: Limits<SEEK_BUCKETS> = Limits::new([
    -500_000,
    -100_000,
    -50_000,
    -10_000,
    -5_000,
    -1_000,
    -500,
    -128,
    -64,
    -32,
    -16,
    -8,
    -6,
    -4,
    -2,
    -1,
    0,
    1,
    2,
    4,
    6,
    8,
    16,
    32,
    64,
    128,
    500,
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    i32::MAX,
]);
pub(crate) static OUTSTANDING_LIMITS: Limits<OUTSTANDING_BUCKETS> =
    Limits::new([1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 64, i32::MAX]);
pub(crate) static TIME_LIMITS: Limits<TIME_BUCKETS> =
    Limits::new([1, 10, 100, 500, 1_000, 5_000, 15_000, 30_000, 50_000, 100_000, i32::MAX]);

impl Kind {
    /// In the order in which vSCSI prints them.
    pub const ALL: [Kind; 6] = [
        Kind::Length,
        Kind::SeekDistance,
        Kind::SeekDistanceNearest,
        Kind::Latency,
        Kind::Outstanding,
        Kind::Interarrival,
    ];

    /// A name for commands and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Length => "length",
            Kind::SeekDistance => "seek_distance",
            Kind::SeekDistanceNearest => "seek_distance_nearest",
            Kind::Latency => "latency",
            Kind::Outstanding => "outstanding",
            Kind::Interarrival => "interarrival",
        }
    }

    /// The unit of values and limits.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Length => "bytes",
            Kind::SeekDistance | Kind::SeekDistanceNearest => "sectors",
            Kind::Latency | Kind::Interarrival => "us",
            Kind::Outstanding => "I/Os",
        }
    }

    /// The upper limits of all buckets but the last, which has none.
    pub fn limits(self) -> &'static [i32] {
        let all: &'static [i32] = match self {
            Kind::Length => &LENGTH_LIMITS.values,
            Kind::SeekDistance | Kind::SeekDistanceNearest => &SEEK_LIMITS.values,
            Kind::Latency | Kind::Interarrival => &TIME_LIMITS.values,
            Kind::Outstanding => &OUTSTANDING_LIMITS.values,
        };
        &all[..all.len() - 1]
    }

    /// The text after `Histogram: ` in `vscsiStats -c`.
    pub fn title(self, operations: Operations) -> &'static str {
        use Operations::{Both, Reads, Writes};
        match (self, operations) {
            (Kind::Length, Both) => "IO lengths of commands",
            (Kind::Length, Reads) => "IO lengths of Read commands",
            (Kind::Length, Writes) => "IO lengths of Write commands",
            (Kind::SeekDistance, Both) => "distance (in LBNs) between successive commands",
            (Kind::SeekDistance, Reads) => "distance (in LBNs) between successive Read commands",
            (Kind::SeekDistance, Writes) => "distance (in LBNs) between successive Write commands",
            (Kind::SeekDistanceNearest, _) => {
                "distance (in LBNs) between each command from the closest of previous 16"
            }
            (Kind::Latency, Both) => "latency of IOs in Microseconds (us)",
            (Kind::Latency, Reads) => "latency of Read IOs in Microseconds (us)",
            (Kind::Latency, Writes) => "latency of Write IOs in Microseconds (us)",
            (Kind::Outstanding, Both) => "number of outstanding IOs when a new IO is issued",
            (Kind::Outstanding, Reads) => "number of outstanding Read IOs when a new Read IO is issued",
            (Kind::Outstanding, Writes) => "number of outstanding Write IOs when a new Write IO is issued",
            (Kind::Interarrival, Both) => "latency of IO interarrival time in Microseconds (us)",
            (Kind::Interarrival, Reads) => "latency of IO interarrival time for Reads in Microseconds (us)",
            (Kind::Interarrival, Writes) => "latency of IO interarrival time for Writes in Microseconds (us)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_rise_and_there_are_as_many_as_vscsi_has() {
        for (kind, count) in Kind::ALL.into_iter().zip([17, 33, 33, 10, 12, 10]) {
            assert_eq!(kind.limits().len(), count, "{}", kind.name());
            assert!(kind.limits().is_sorted_by(|a, b| a < b), "{}", kind.name());
        }
    }
}
