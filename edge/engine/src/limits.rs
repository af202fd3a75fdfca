//! The bounds of the engine beside those of `node`. Reaching one is normal and has an answer.

use std::time::Duration;

/// How long a connection between two hosts may take from its first packet to the answer to its hello: two round trips of a
/// bad network, and no longer than a host may be silent.
pub const GREETING_WAIT: Duration = Duration::from_secs(1);
/// Block devices below one device that are looked at for its encryption: more than LVM over RAID over partitions of a full host
/// needs.
pub const DEVICE_STACK_MAX: usize = 256;
/// How long a connection waits for buffers before it looks again: most come back with a completion, which wakes it anyway.
pub const BUFFERS_WAIT: Duration = Duration::from_millis(1);
/// Connections with other hosts at once, both directions and those that do not greet: eight times what 64 hosts need.
pub const PEER_CONNECTIONS_MAX: usize = 1024;
/// Refusals of a host that is not known, before it is worth a line: with the pauses in between, two seconds of them.
pub const JOINING_REFUSALS: u32 = 8;
/// Different complaints about other hosts that are logged; further ones are only counted.
pub const COMPLAINTS_MAX: usize = 256;
/// Bytes a second that a pass over the components of an engine reads while no guest feels it: two to three minutes for the table of a TiB
/// and a sample. With 64 MiB/s and reads of a MiB, guests of a busy machine with two cores felt it.
pub const PASS_PACE: u64 = 32 << 20;
/// Blocks that a pass reads at once: 64 KiB, after which it rests.
pub const RUN_MAX: usize = 16;
/// What looking at the checksums of a part counts for: a page of the table, though it is often in memory.
pub const CENSUS_COST: u64 = 4096;
/// How long a pass waits when the thread that computes has too much to do.
pub const COMPUTE_RETRY: Duration = Duration::from_millis(20);
