//! Every bound of replication, with its reason.

use std::time::Duration;

/// How long an answer of a component's node lets the owner's node read (invariant 11). An owner that falls silent is taken
/// over when it has run out: with the opening, a guest elsewhere waits less than 2 s.
pub const GRANT: Duration = Duration::from_millis(1500);

/// What the owner takes off a grant for clocks that run at different speeds: 5 %, a hundred times what quartz does.
pub const DRIFT_ALLOWANCE: Duration = Duration::from_millis(100);

/// How often an owner's node asks for grants when it has nothing else to ask: several times within a grant, and often
/// enough that silence is noticed soon.
pub const HEARTBEAT: Duration = Duration::from_millis(250);

/// How long a node may leave a request unanswered before it counts as silent. With the transaction that follows, the
/// stall of a guest stays below 2 s.
pub const SILENCE: Duration = Duration::from_millis(1000);

/// How often it is looked whether a component has been asked something for too long.
pub const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// How long a read may take before it is asked of another component too: ten times what a loaded disk takes, and a guest's stall
/// stays below a second.
pub const READ_PATIENCE: Duration = Duration::from_millis(500);

/// Where reads of a component take long anyhow, so many times as long, up to [`SILENCE`]: what is merely loaded is not asked twice.
pub const READ_PATIENCE_FACTOR: u32 = 8;

/// How long a component may take to be opened, of which a grant to the former owner may take [`GRANT`].
pub const OPENING_PATIENCE: Duration = Duration::from_millis(3000);

/// How long a component whose node broke the connection may take to come back before it is taken out of the active
/// set: a process that died is noticed at once, and the guest's stall shall stay below 0.5 s.
pub const RECONNECT: Duration = Duration::from_millis(250);

/// How long an owner that hears no other node, and whose disk no guest here uses, waits before it takes out what it does not
/// hear: guests elsewhere have had another owner for a second then, if this node is the one that hears nobody.
pub const ALONE_PATIENCE: Duration = Duration::from_millis(4000);

/// How long after the start of a node's process others may be starting as well. When all hosts restart with a directory that is older
/// than their devices, a component that missed writes must not be served because its node was the first.
pub const START_PATIENCE: Duration = Duration::from_secs(10);

/// Most changes of one place between its watermark and the newest (invariant 7).
pub const WINDOW_CHANGES_MAX: usize = 1024;

/// Most bytes of such changes.
pub const WINDOW_BYTES_MAX: u64 = 64 << 20;

/// How long a place is quiet before its components are told the watermark by itself.
pub const SETTLE_DELAY: Duration = Duration::from_millis(50);

/// How long the number of a small change of rows may wait, for the members that have no part in it, until it goes by itself.
pub const MARK_DELAY: Duration = Duration::from_millis(20);

/// How long an owner waits before it asks again what was refused for now, or a directory that is away.
pub const RETRY: Duration = Duration::from_millis(100);

/// After how long what found no memory tries again.
pub const MEMORY_RETRY: Duration = Duration::from_millis(2);

/// How long small changes of rows are held as copies before their parity is computed: those of one row that come meanwhile are folded
/// together, and whoever takes the disk over has few to ask for.
pub const FOLD_AFTER: Duration = Duration::from_secs(2);

/// Rows of a place that are folded at once.
pub const FOLDS_MAX: usize = 32;

/// Most blocks that members of a place hold as copies, together: 16 MiB of small changes with parity of two. From half of that on they
/// are folded at once.
pub const HELD_BLOCKS_MAX: u64 = 3 * 4096;

/// How long small changes are not held after a group had no room for one.
pub const HELD_PAUSE: Duration = Duration::from_secs(5);

/// How often a group is asked again that has no room for a small change to be held, before that is made without.
pub const HELD_RESENDS_MAX: u8 = 3;

/// How often groups are asked again that have no room for a change of rows, before that is taken back and made again.
pub const ROW_RESENDS_MAX: u8 = 10;

/// Bytes that a pass of comparing rows counts as besides, so that one over little does not begin again at once: 10 s at the usual pace,
/// as between two rounds of scrubbing.
pub const ROW_PASS_BYTES: u64 = 160 << 20;

/// How long a comparison of rows waits that cannot be made now: small changes are folded within [`FOLD_AFTER`].
pub const ROW_CHECK_RETRY: Duration = Duration::from_millis(500);

/// How often it is tried again before the rows are passed over until the next pass: for longer than small changes are held.
pub const ROW_CHECK_TRIES: u8 = 6;

/// How often it is waited for a place to be whole before the rows of the others are compared: 30 s, for a host that starts again.
pub const ROW_CHECK_WAITS: u8 = 60;

/// What comparing the checksums of a part counts as at least, in bytes, at the pace of comparing: an answer costs something, too.
pub const ROW_CHECK_BYTES_MIN: u64 = 64 << 10;

/// Parts that count as freed together: a component remembers the greatest id of a freeing for each GiB.
pub const HOLE_PARTS: u32 = 1024;

/// How long a component that refused to be brought up to date is left alone.
pub const RESYNC_RETRY: Duration = Duration::from_secs(5);

/// How long one that has no room is left alone at most. The wait begins with [`RESYNC_RETRY`] and doubles with each refusal: a
/// full device gets room when people add a device or delete data, and each attempt costs a search of the whole component.
pub const NO_ROOM_RETRY_MAX: Duration = Duration::from_secs(300);

/// How long one that has never counted is left alone when its node does not have it: the record names it before it is made.
pub const NEW_MEMBER_RETRY: Duration = Duration::from_millis(250);

/// Changes of one node's guests that an owner remembers after they ended: several times what the clients of a host have
/// under way on one disk.
pub const HAPPENED_MAX: usize = 4096;

/// And of one request: a large trim is a change for each MiB, and must not take the place of all others.
pub const HAPPENED_OF_REQUEST_MAX: usize = 128;

/// Members of a place: as many as a set of members has room for. Parity of four and two, each with a component that comes or
/// stands in for it, needs 12.
pub const PLACE_MEMBERS_MAX: usize = 16;

/// Copies of one resync that are under way at once; each holds a range lock.
pub const COPIES_MAX: usize = 8;

/// Most blocks of one copy, unless it is set otherwise: a whole part, 1 MiB, for only that goes straight to where it stays. Smaller
/// ones would all go through the log of the group that gets them, and be written twice.
pub const COPY_BLOCKS_MAX: u16 = 256;

/// Blocks of a copy that are read and sent at a time, 128 KiB: a whole part keeps a device, a link and the nodes at its ends busy for
/// longer than a guest's request takes (perf/README.md, "Beside copies").
pub const COPY_SLICE_BLOCKS: u16 = 32;

/// Times that a write whose data was damaged on the way is sent again.
pub const RESENDS_MAX: u8 = 3;

/// A component that takes so many times longer to read from than the best is passed over.
pub const SLOW_FACTOR: u64 = 4;

/// And at least so long: below, spreading the load is worth more.
pub const SLOW_LATENCY: Duration = Duration::from_millis(2);

/// One read of so many goes to a slow component all the same, to notice when it is well again.
pub const SLOW_PROBE: u64 = 64;

/// A copy on the owner's host is passed over only while its reads take longer than this: what a loaded SSD takes.
pub const OWN_SLOW: Duration = Duration::from_micros(500);

/// And so many times as long as those of another copy, the network included: a device that is merely loaded is not left.
pub const OWN_SLOW_FACTOR: u64 = 2;

/// How long such a copy is passed over at least.
pub const PASS_OVER: Duration = Duration::from_secs(1);

/// And at most, where it is slow again each time that reads come back to it.
pub const PASS_OVER_MAX: Duration = Duration::from_secs(32);

/// How often a read measures another copy while the one on the owner's host is slow.
pub const OTHER_PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// How often a read measures the copy on the owner's host while that is passed over: guests wait for such a read.
pub const OWN_PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Times of reads that are older than this say nothing of a copy.
pub const READ_TIME_FRESH: Duration = Duration::from_secs(1);

/// A read that ends so long after the one before counts as much as all before it.
pub const READ_TIME_SPARSE: Duration = Duration::from_millis(40);

/// How long parity may take before a snapshot to count what is held. What is held then is folded as quickly as devices allow.
pub const SNAPSHOT_FOLD_MAX: Duration = Duration::from_secs(60);

/// How often members of rows may refuse a snapshot in a row that holds what its owner did not know of.
pub const SNAPSHOT_REFUSALS: u32 = 8;

/// How long changes wait at most for the first attempt to take a snapshot: several times what a loaded disk takes for a write.
pub const SNAPSHOT_HOLD: Duration = Duration::from_millis(100);

/// And for a later one, each of which may wait twice as long as the one before: what takes longer is no drain but a component that fails, and that leaves
/// before the next attempt.
pub const SNAPSHOT_HOLD_MAX: Duration = Duration::from_millis(1000);

/// Ranges of 128 KiB of a snapshot that a component gets which are compared at once.
pub const BACKFILLS_MAX: usize = 4;

/// Ranges that may differ and wait to be compared, beyond which no more is asked for.
pub const BACKFILL_RANGES: usize = 64;

/// Questions at once about what parts hold that stand apart in another layout.
pub const BACKFILL_SURVEYS: usize = 64;

/// How often ranges begin anew before the snapshot does: while an older one is deleted, or what was asked of a disk group comes to rest.
pub const BACKFILL_TRIES: u32 = 100;

/// How long nothing is heard of a snapshot that a component gets before it is tried anew.
pub const BACKFILL_PATIENCE: Duration = Duration::from_secs(30);

/// How long a component whose device has no room for a snapshot is left alone.
pub const NO_ROOM_RETRY: Duration = Duration::from_secs(60);

/// How often components are asked which blocks they found damaged: scrubbing takes days for a round, so that half a minute more is nothing.
pub const DAMAGE_PERIOD: Duration = Duration::from_secs(30);

/// Damaged blocks that wait to be mended; what is beyond is told again when it is found again.
pub const DAMAGE_WAITING_MAX: usize = 1024;

/// How long nothing is heard of a block that is being mended before it is left to be found again.
pub const MEND_PATIENCE: Duration = Duration::from_secs(10);

const _: () = assert!(RESYNC_RETRY.as_millis() < NO_ROOM_RETRY_MAX.as_millis());
const _: () = assert!(ROW_CHECK_RETRY.as_millis() * ROW_CHECK_TRIES as u128 > FOLD_AFTER.as_millis());
const _: () = assert!(DRIFT_ALLOWANCE.as_millis() * 4 < GRANT.as_millis());
const _: () = assert!(HEARTBEAT.as_millis() * 4 <= SILENCE.as_millis());
