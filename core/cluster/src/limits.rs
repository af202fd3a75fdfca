//! Every bound of the cluster's decisions, with its reason.

use std::time::Duration;

/// Snapshots of one disk, as many as vSAN and Proxmox users keep at most (one an hour for ten days). A disk group has twice the room, for those
/// that are being deleted.
pub const SNAPSHOTS_MAX: usize = 256;

/// Disks of which scheduled snapshots are being taken at once: each is two transactions, and at the full hour many are due.
pub const SCHEDULED_AT_ONCE_MAX: usize = 32;

/// How long an owner may take for a scheduled snapshot before it is asked for no more, as a person waits for one: another host takes
/// a disk over in less.
pub const SCHEDULED_PATIENCE: Duration = Duration::from_secs(20);

/// How long a scheduled snapshot that was not taken is left alone.
pub const SCHEDULED_RETRY: Duration = Duration::from_secs(60);

/// How late a scheduled snapshot is before it is reported.
pub const SCHEDULED_LATE: Duration = Duration::from_secs(5 * 60);

/// Hundredths of the capacity that have to be free for scheduled snapshots: they hold what guests replace.
pub const SCHEDULED_FREE_MIN: u64 = 5;

/// How long a component may be missing before another takes its place, unless a setting says otherwise (vSAN: 60 min): a
/// host that restarts or is serviced comes back within it, and a delta is far less work than a whole copy.
pub const REPAIR_DELAY: Duration = Duration::from_secs(60 * 60);

/// How long a component is missing before another one stands in for it. A process that restarts is back sooner, and
/// most of the blocks written until then are written again soon. The rest is copied.
pub const STAND_IN_AFTER: Duration = Duration::from_secs(2);

/// Stand-ins that begin in one decision, over all disks: each is a transaction.
pub const STAND_INS_BEGUN_MAX: usize = 32;

/// How long a component is left without a stand-in when one failed or no device can take it.
pub const STAND_IN_RETRY: Duration = Duration::from_secs(30);

/// Components of the whole cluster that are filled at once, unless a setting says otherwise.
pub const REPLACEMENTS_MAX: usize = 16;

/// Components of one host that are filled at once, unless a setting says otherwise: its devices serve guests too.
pub const REPLACEMENTS_PER_HOST_MAX: usize = 4;

/// How long a placement that was refused is left alone, unless a device comes that could not take components before.
pub const REFUSED_RETRY: Duration = Duration::from_secs(30);

/// How long a decided replacement counts against the bounds before a record has it. Its actor decides every second
/// and asks the directory, which answers within two. An actor that does neither keeps no other waiting.
pub const ACTOR_PATIENCE: Duration = Duration::from_secs(10);

/// Members of one place, incoming and leaving ones included: twice the copies that a layout can have, so that all may
/// be replaced at once. An owner has room for twice as many (`replication::limits::PLACE_MEMBERS_MAX`).
pub const PLACE_MEMBERS_MAX: usize = 8;

/// How long a host's heartbeat may be missing in the directory before the host is suspected: several heartbeats.
pub const HEARTBEAT_SILENCE: Duration = Duration::from_secs(10);

/// How long a host's report about a link is valid.
pub const LINK_REPORT_LIFE: Duration = Duration::from_secs(10);

/// How long two live hosts may not reach each other before it is reported: by then a process that restarts or ended
/// is known as such.
pub const LINK_DOWN_AFTER: Duration = Duration::from_secs(45);

/// How long a host may be without a sign of life before it is away: a process that restarts is back sooner.
pub const AWAY_AFTER: Duration = Duration::from_secs(30);

/// How long a host shows signs of life without a gap before it is alive again, so that one that comes and goes does not
/// start anew each time. A single heartbeat is not enough.
pub const STEADY_AFTER: Duration = Duration::from_secs(20);

/// How long devices are watched before they are compared: some hundred requests of a device in use.
pub const SLOW_WINDOW: Duration = Duration::from_secs(10);

/// A device that works longer than this for one request may be slow. A hard disk needs 10 to 20 ms; vSAN looks at devices above
/// 50 ms of latency, which is more than this where they have much to do.
pub const SLOW_PACE: Duration = Duration::from_millis(50);

/// It is slow if it works this many times as long as the median of its peers.
pub const SLOW_FACTOR: u32 = 4;

/// A device without peers is slow at this many times the bound.
pub const SLOW_ALONE_FACTOR: u32 = 10;

/// Windows remembered for each device: five minutes of work.
pub const SLOW_HISTORY: usize = 30;

/// A device is slow once this many of them count against it: four minutes.
pub const SLOW_WINDOWS: usize = 24;

/// A slow device is well again below this number.
pub const WELL_WINDOWS: usize = 6;

/// Damaged blocks since a device was opened from which on it is not reliable. One may be a stray bit; this many are a
/// fault of the device.
pub const DAMAGED_BLOCKS_MAX: u64 = 16;

/// A device's space is low from this share on, in hundredths of a percent. From here on it is also relieved.
pub const SPACE_LOW: u64 = placement::limits::REBALANCE_FULL;

/// A device's space is nearly used up from this share on, in hundredths of a percent.
pub const SPACE_CRITICAL: u64 = 9_500;

/// A device's slots for components are few from this share on, in hundredths.
pub const COMPONENTS_LOW: u64 = 90;

/// How far a host's clock may be off. No promise depends on clocks, but times in logs and samples are compared
/// between hosts.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(1);

/// Hundredths of a certificate's life that are left when its host asks for the next one: the rule of `trust`, rounded
/// down.
pub const CERTIFICATE_RENEWED_AT: u32 = 33;

/// Hundredths of its life left at which a missing renewal is urgent: nine days of a host's 90.
pub const CERTIFICATE_CRITICAL: u32 = 10;

/// How long a renewal may take: hosts try it every few seconds, and the host with the authority's key may be restarting.
pub const RENEWAL_PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Hundredths of its life left at which an authority needs a successor: a year of ten, as long as the certificates
/// that it gives to people.
pub const AUTHORITY_LOW: u32 = 10;

/// Hundredths of its life left at which that is urgent: about the 90 days of a host's certificate.
pub const AUTHORITY_CRITICAL: u32 = 3;

/// How long a resync may copy nothing before it counts as stuck: far longer than a retry (5 s) and a slow device take.
pub const RESYNC_STUCK_AFTER: Duration = Duration::from_secs(5 * 60);

/// Disks that begin to move into another layout with a named policy while this many of the cluster move: as many as components are
/// filled at once (docs/design/0041). Whoever changes a single disk is not bound by it.
pub const MOVES_MAX: usize = 16;

/// The same of the disks that one host owns: their moves share the pace of its copies.
pub const MOVES_PER_HOST_MAX: usize = 4;

/// How long a move may stand still before it counts as stuck: longer than a host is serviced or a component is rebuilt, mostly.
pub const MOVE_STUCK_AFTER: Duration = Duration::from_secs(60 * 60);

/// How long a move may be paused before it is reported: people may have forgotten it.
pub const MOVE_PAUSED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How much room a full device has to gain before components that wait for it are tried again at once: 16 extents, so
/// that guests that trim and write a little do not start a search each second.
pub const ROOM_NOTICED: u64 = 16 * base::units::EXTENT_SIZE;

/// Rounds of decisions that a forecast goes through. A loss takes four; evening devices out takes one for each set of moves.
pub const FORECAST_ROUNDS_MAX: usize = 1000;

/// Names listed in one sentence before the rest is counted.
pub const NAMED_MAX: usize = 4;

const _: () = assert!(PLACE_MEMBERS_MAX == 2 * layout::limits::COPIES_MAX);
const _: () = assert!(placement::limits::SCHEDULED_SNAPSHOTS_MAX < SNAPSHOTS_MAX);
const _: () = assert!(HEARTBEAT_SILENCE.as_millis() < AWAY_AFTER.as_millis());
const _: () = assert!(HEARTBEAT_SILENCE.as_millis() < STEADY_AFTER.as_millis());
const _: () =
    assert!(MOVES_PER_HOST_MAX <= MOVES_MAX && RESYNC_STUCK_AFTER.as_secs() < MOVE_STUCK_AFTER.as_secs());
const _: () = assert!(REPLACEMENTS_PER_HOST_MAX <= REPLACEMENTS_MAX);
const _: () = assert!(AWAY_AFTER.as_millis() < LINK_DOWN_AFTER.as_millis());
const _: () = assert!(SPACE_LOW < SPACE_CRITICAL);
const _: () = assert!(CERTIFICATE_CRITICAL < CERTIFICATE_RENEWED_AT);
const _: () = assert!(AUTHORITY_CRITICAL < AUTHORITY_LOW);

/// Provisioned bytes, in hundredths of the capacity, from which on over-commitment is urgent once much is used: no
/// guest fills half of its disk then without trouble for others.
pub const OVER_COMMITTED_MUCH: u64 = 200;

/// Hundredths of the capacity that count as much used.
pub const OVER_COMMITTED_USED: u64 = 50;
