//! The bounds of what clients send and read.

use std::time::Duration;

/// Longest name of a disk or a policy: what file names and NBD exports carry everywhere.
pub const NAME_LENGTH_MAX: usize = 128;
/// Longest answer that a client reads, in bytes: 20,000 disks of about 2 KiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long a client waits for an answer: a shrink or a deletion of 64 TiB may take a while.
pub const ANSWER_WAIT: Duration = Duration::from_secs(120);
/// How long a connection waits in a pool for the next request: longer than pages wait until they ask again.
pub const POOL_WAIT: Duration = Duration::from_secs(70);
/// Connections to a host that wait in a pool at most: a page asks for a few things at once.
pub const POOL_IDLE_MAX: usize = 4;
/// Longest event of a stream that a client reads, in bytes: 20,000 disks of a host, all with guests.
pub const EVENT_BYTES_MAX: usize = 64 << 20;
/// How long nothing may come on a stream of events; hosts send a sign of life every ten seconds.
pub const EVENTS_SILENCE_MAX: Duration = Duration::from_secs(25);
/// Longest key of a label.
pub const LABEL_KEY_LENGTH_MAX: usize = 63;
/// Longest value of a label, in bytes.
pub const LABEL_VALUE_LENGTH_MAX: usize = 255;
/// Most labels of a disk.
pub const LABELS_MAX: usize = 32;
