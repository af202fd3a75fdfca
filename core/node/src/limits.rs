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

/// How long a channel that broke is left alone before it is tried again, times the attempts that failed.
pub const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// The pause grows up to so many times: a node that comes back is found within a second.
pub const RECONNECT_PAUSES_MAX: u32 = 10;

/// How often a node whose guests use a disk asks its owner to let go.
pub const YIELD_INTERVAL: Duration = Duration::from_millis(200);

/// How long a forwarded request that nobody took waits before it is sent again.
pub const FORWARD_RETRY: Duration = Duration::from_millis(50);

/// How long the owner of a disk that guests here wait for may be unreachable before it is taken over. Its node was silent
/// or gone before that already.
pub const TAKE_OVER_AFTER: Duration = Duration::from_millis(500);

/// How often the record of a disk is read that is older than what a component has promised: a person has to see to it.
pub const OLDER_RECORD_RETRY: Duration = Duration::from_millis(1000);

/// Losses that lengthen that wait: up to some seconds.
pub const TAKE_OVER_LOSSES_MAX: u32 = 6;

/// The same where no guest waits, for the first of the nodes that hold the disk; each further one waits as long again.
pub const CARE_AFTER: Duration = Duration::from_secs(3);

/// Most parts that one step of a control operation trims at once.
pub const CONTROL_TRIMS_MAX: usize = 256;

/// How often owners are granted bytes to copy: often enough that copies do not come in bursts.
pub const COPY_GRANT_PERIOD: Duration = Duration::from_millis(5);

/// Bytes of copies that may be under way at any pace: one copy is written while the next is read. Each more would stand in the
/// queue of a slow device before what guests ask of it.
pub const COPY_IN_FLIGHT_MIN: u64 = 2 << 20;

/// And no more than the pace brings in this time, which is what a copy takes on a loaded device.
pub const COPY_IN_FLIGHT_TIME: Duration = Duration::from_millis(20);

/// How long a slice of a copy waits for the next one of its part: what a busy device takes to read it. Longer, and a copy that was
/// given up would hold what its owner does next with the part.
pub const GATHER_WAIT: Duration = Duration::from_millis(100);

/// How long guests' latency is measured before shares change: some hundred requests of a busy guest.
pub const SHARES_PERIOD: Duration = Duration::from_millis(100);

/// Bytes a second that a node's owners copy at least, unless it is set otherwise, and at first: 1 TiB in nine hours, for a
/// disk with a copy less is not safe.
pub const COPY_RATE_FLOOR: u64 = 32 << 20;

/// At the floor this part is granted in addition, so that a component of a GiB is whole, from the decision to its record, as soon
/// as if it had been copied at the floor all the time: decisions come once a second.
pub const COPY_FLOOR_MARGIN: u64 = 32;

/// And at most: what a 40 GbE network carries.
pub const COPY_RATE_CEILING: u64 = 4 << 30;

/// What is added when guests do not feel it, each time that enough of them have told so.
pub const COPY_RATE_STEP: u64 = 8 << 20;

/// Requests that are heard before the next step: fewer say nothing of what one of a hundred takes. With a step in each period a guest
/// with 300 requests a second had copies at three times the floor before it could tell that it felt twice the floor.
pub const COPY_STEP_REQUESTS: u64 = 100;

/// Periods that are waited for so many at most, a second: a guest that asks for less than that feels copies less often, too.
pub const COPY_STEP_PERIODS: u32 = 10;

/// Of a hundred requests one may be late. Those that were late too often count as so many at most, or as many as may be late in so
/// many periods: what went wrong once is forgotten after a second or, of a quiet guest, after a thousand requests.
pub const LATE_OWED_MIN: i64 = 10;

/// See [`LATE_OWED_MIN`].
pub const LATE_OWED_PERIODS: i64 = 10;

/// What one of a hundred of guests' requests may take beside copies, in percent of what it took without. Less than the 200 that
/// guests are promised: the way to the node and back gets longer, too, and the node does not see it. With 150 clients had to wait for
/// 1.7 to 2.8 times as long at 44 to 104 MiB/s (perf/README.md, "Beside copies").
pub const COPY_TAIL_PERCENT: u64 = 125;

/// Requests after which it is looked at what one of a hundred of them took; ten of them lie above.
pub const TAIL_WINDOW: u32 = 1_000;

/// Windows that are remembered: a load that grows is followed after four of them.
pub const TAIL_WINDOWS: usize = 7;

/// Periods after which it is looked at all the same, two seconds.
pub const TAIL_WINDOW_PERIODS: u32 = 20;

/// What others may add to guests' latency whatever it is; beyond, they may double it.
pub const GOAL_SLACK: Duration = Duration::from_micros(500);

/// What copies may add to what one of a hundred of guests' requests takes, whatever that is. Less than to the mean: on devices in
/// memory one of a hundred takes 0.8 to 1.2 ms, and half a millisecond more at the node was over twice as long at the client.
pub const TAIL_SLACK: Duration = Duration::from_micros(100);

/// The goal of a node that has not served guests yet.
pub const COPY_GOAL_UNKNOWN: Duration = Duration::from_millis(5);

/// Back-pressure of a component above which copies slow down: guests' writes are delayed by an eighth of the most then.
pub const COPY_CONGESTION_MAX: u8 = 128;
