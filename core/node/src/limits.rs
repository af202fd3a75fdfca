//! Every bound of a node, with its reason.

use std::time::Duration;

/// Groups of one node: a host has at most five disk groups in vSAN; their number is a byte in the executor's tags.
pub const GROUPS_MAX: usize = 64;

/// A write waits this long before it enters a group whose congestion is 255; below, by the cube of the share. The cube
/// keeps the delay below a millisecond until the log is nearly three quarters full, and rises smoothly from there to
/// what a slow disk needs: 32 writers that wait 200 ms each bring 160 writes a second.
pub const CONGESTION_DELAY_MAX: Duration = Duration::from_millis(200);

/// Sizes above this count several times against an I/O limit: the policy's unit.
pub const IOPS_LIMIT_UNIT: u64 = 32 << 10;

/// Requests of one disk that wait for its I/O limit at most; sessions have bounds of their own far below.
pub const DELAYED_REQUESTS_MAX: usize = 65_536;

/// Most parts that one step of a control operation trims at once.
pub const CONTROL_TRIMS_MAX: usize = 256;
