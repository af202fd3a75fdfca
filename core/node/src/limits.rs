//! Every bound of a node, with its reason.

use base::units::BLOCKS_PER_REGION;
use std::time::Duration;

/// Groups of one node: a host has at most five disk groups in vSAN; their number is a byte in the executor's tags.
pub const GROUPS_MAX: usize = 64;

/// A write waits this long before it enters a group whose congestion is 255; below, by the cube of the share. The cube
/// keeps the delay below a millisecond until the log is nearly three quarters full, and rises smoothly from there to
/// what a slow disk needs: 32 writers that wait 200 ms each bring 160 writes a second.
pub const CONGESTION_DELAY_MAX: Duration = Duration::from_millis(200);

/// Unit of the policy's I/O limit: a larger I/O counts several times.
pub const IOPS_LIMIT_UNIT: u64 = 32 << 10;

/// How much of its limit an idle disk may use at once.
pub const LIMIT_BURST: Duration = Duration::from_secs(1);

/// Idle time that counts as unused share of a limit: guests pause for so long now and then, and still get what they may.
pub const LIMIT_IDLE_CREDIT: Duration = Duration::from_millis(50);

/// Requests that could have begun before get back this much of the time since: their node stood still.
pub const LIMIT_CATCH_UP: Duration = Duration::from_secs(1);

/// A disk counts as limited for so long after a request waited for a limit.
pub const LIMITED_FOR: Duration = Duration::from_secs(2);

/// Waits for limits are told of the last one to two of such periods.
pub const LIMIT_FIGURES_PERIOD: Duration = Duration::from_secs(10);

/// How long a channel that broke is left alone before it is tried again, times the attempts that failed.
pub const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Most pauses between attempts: a node that comes back is found within a second.
pub const RECONNECT_PAUSES_MAX: u32 = 10;

/// How often a node whose guests use a disk asks its owner to release it.
pub const YIELD_INTERVAL: Duration = Duration::from_millis(200);

/// How long a forwarded request that nobody took waits before it is sent again.
pub const FORWARD_RETRY: Duration = Duration::from_millis(50);

/// How long the owner of a disk that guests here wait for may be unreachable before it is taken over. Its node was silent
/// or gone before that already.
pub const TAKE_OVER_AFTER: Duration = Duration::from_millis(500);

/// How often a record is read again that is older than a component's promise: a person has to repair the directory.
pub const OLDER_RECORD_RETRY: Duration = Duration::from_millis(1000);

/// Most losses that lengthen that wait: up to some seconds.
pub const TAKE_OVER_LOSSES_MAX: u32 = 6;

/// The same where no guest waits, for the first of the nodes that hold the disk; each further one waits as long again.
pub const CARE_AFTER: Duration = Duration::from_secs(3);

/// How long a disk without an owner waits for one when a snapshot of it is asked for, and as long again for each node that would be the owner
/// rather: long enough that the first of them is heard of.
pub const SNAPSHOT_CARE_AFTER: Duration = Duration::from_millis(50);

/// Most parts that one step of a control operation trims at once.
pub const CONTROL_TRIMS_MAX: usize = 256;

/// How often owners are granted bytes to copy: often enough that copies do not come in bursts.
pub const COPY_GRANT_PERIOD: Duration = Duration::from_millis(5);

/// Bytes of copies in flight at any pace: one copy is written while the next is read. More would stand in the queue
/// of a slow device before guests' requests.
pub const COPY_IN_FLIGHT_MIN: u64 = 2 << 20;

/// Copies in flight are limited to what the pace brings in this time, which is what a copy takes on a loaded device.
pub const COPY_IN_FLIGHT_TIME: Duration = Duration::from_millis(20);

/// How long a slice of a copy waits for the next slice of its part: the time that a busy device takes to read it.
/// With a longer wait, an abandoned copy would delay the next change of its part.
pub const GATHER_WAIT: Duration = Duration::from_millis(100);

/// How long guests' latency is measured before shares change: some hundred requests of a busy guest.
pub const SHARES_PERIOD: Duration = Duration::from_millis(100);

/// Fewest bytes a second that a node's owners copy, unless a setting says otherwise, and the first pace: 1 TiB in
/// nine hours, because a disk without one of its copies is not safe.
pub const COPY_RATE_FLOOR: u64 = 32 << 20;

/// At the floor one part in this many is granted in addition. So a component of 1 GiB is whole, from the decision to
/// its record, as soon as if it had been copied at the floor all the time: decisions come once a second.
pub const COPY_FLOOR_MARGIN: u64 = 32;

/// Most bytes a second that a node's owners copy: the throughput of a 40 GbE network.
pub const COPY_RATE_CEILING: u64 = 4 << 30;

/// Step by which the pace of copies rises, after each [`COPY_STEP_REQUESTS`] that met the goal.
pub const COPY_RATE_STEP: u64 = 8 << 20;

/// Requests measured before the next step: fewer say nothing about the 99th percentile. With a step in each period, a
/// guest with 300 requests a second had copies at three times the floor before its latency showed twice the floor.
pub const COPY_STEP_REQUESTS: u64 = 100;

/// Most periods before the next step, one second: a guest with fewer requests is delayed by copies less often, too.
pub const COPY_STEP_PERIODS: u32 = 10;

/// One of a hundred requests may be late. The debt of late requests is capped at this number, or at the number that
/// may be late in [`LATE_OWED_PERIODS`]. So one bad moment is forgotten after a second or, for a quiet guest, after a
/// thousand requests.
pub const LATE_OWED_MIN: i64 = 10;

/// See [`LATE_OWED_MIN`].
pub const LATE_OWED_PERIODS: i64 = 10;

/// Latency of guests' requests at the 99th percentile beside copies that copies may cause, in percent of that without
/// copies. It is less than the promised 200 because the way to the node and back gets slower too, which the node does
/// not see. With 150, clients waited 1.7 to 2.8 times as long at 44 to 104 MiB/s (perf/README.md, "Beside copies").
pub const COPY_TAIL_PERCENT: u64 = 125;

/// Requests of a window for the 99th percentile; ten of them lie above it.
pub const TAIL_WINDOW: u32 = 1_000;

/// Windows remembered: a load that grows is followed after four of them.
pub const TAIL_WINDOWS: usize = 7;

/// Periods after which a window ends with fewer requests: two seconds.
pub const TAIL_WINDOW_PERIODS: u32 = 20;

/// Latency that other work may add to guests' requests in any case; beyond it, other work may double theirs.
pub const GOAL_SLACK: Duration = Duration::from_micros(500);

/// Latency that copies may add to the 99th percentile in any case. It is less than for the mean: on devices in memory
/// the 99th percentile is 0.8 to 1.2 ms, and 0.5 ms more at the node more than doubled it at the client.
pub const TAIL_SLACK: Duration = Duration::from_micros(100);

/// The goal of a node that has not served guests yet.
pub const COPY_GOAL_UNKNOWN: Duration = Duration::from_millis(5);

/// Back-pressure of a component above which copies slow down: guests' writes are delayed by an eighth of the most then.
pub const COPY_CONGESTION_MAX: u8 = 128;

/// Bytes of a disk that are moved with one change of its record: forecasts of space reckon with them, too.
pub const MOVE_GRANULES: std::ops::RangeInclusive<u64> = layout::limits::MOVE_GRANULES;

/// How long the copy of a granule should take: the next one is longer or shorter.
pub const MOVE_GRANULE_TAKES: std::ops::Range<Duration> = Duration::from_secs(5)..Duration::from_secs(30);

/// Most bytes of a slice of a move: guests' changes of its blocks wait while it is copied.
pub const MOVE_SLICE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of a disk that are trimmed behind a boundary at once.
pub const MOVE_TRIM_BYTES: u64 = 64 << 20;

/// Blocks of zeroes in a row that are trimmed where the rest of a piece is data: a region, for which a change of its own is worth
/// its record in the log and its message to each component. No piece becomes more than 31 changes.
pub const ZERO_RUN_BLOCKS_MIN: usize = BLOCKS_PER_REGION;

/// How long a move waits that did not go on.
pub const MOVE_RETRY: Duration = Duration::from_secs(1);

/// Bytes of a clone that one step of a trim covers at most: the first block of each region may have to be read before.
pub const CLONE_TRIM_WINDOW: u64 = 64 << 20;

/// How long a request of a clone waits whose origin this node has not heard of yet.
pub const ORIGIN_RETRY: Duration = Duration::from_millis(50);

/// Which part of a node's buffers guests' reads may hold: a half. Each holds what it has read until all of it is there, so without a bound each of many
/// could hold some and wait for the rest for ever.
pub const READS_SHARE: u64 = 2;

/// Which part of a node's buffers units of rows may be gathered in for reads: a quarter, beside what reads hold.
pub const GATHERS_SHARE: u64 = 4;
