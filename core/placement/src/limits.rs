//! The bounds of policies and placement.

/// Most failures that a policy may ask to tolerate (vSAN's own bound).
pub const FAILURES_TO_TOLERATE_MAX: u8 = 3;
/// Most devices that a policy may ask each replica to be spread over (vSAN's own bound).
pub const STRIPES_MAX: u8 = 12;
/// Devices of different hosts or groups that `stripes=auto` takes for a disk that one component could hold (design,
/// section 3): the published gains flatten beyond four.
pub const STRIPES_AUTO_MAX: usize = 4;
/// Names of devices, hosts or fault domains that a text lists before it says how many more there are.
pub const NAMED_MAX: usize = 8;
/// Components that move on, one after the other, to make room for one more when components are replaced. Rooms differ
/// little where the devices are alike, so that one step is nearly always enough.
pub const MOVES_ON_MAX: usize = 8;
/// Moves of one call of `rebalance`: what is under way at a time stays small beside what guests do, and every next plan
/// starts from what the devices then tell.
pub const REBALANCE_MOVES_MAX: usize = 8;
/// [`crate::DeviceSpace::fullness`] of a device that is full.
pub const FULL: u64 = 10_000;
/// From here on a device is relieved at once, in hundredths of a percent of its capacity (vSAN: 80 %).
pub const REBALANCE_FULL: u64 = 8_000;
/// Devices are evened out once the fullest and the emptiest differ by this much (vSAN: 30 points of percent) ...
pub const REBALANCE_START: u64 = 3_000;
/// ... and until they differ by no more than this (vSAN: half of it).
pub const REBALANCE_STOP: u64 = 1_500;
/// Lines of a schedule of snapshots: one of each kind.
pub const SCHEDULES_MAX: usize = 5;
/// Snapshots that a schedule may keep in all: one less than a disk can have, for the next one is taken before the oldest goes.
pub const SCHEDULED_SNAPSHOTS_MAX: usize = 255;
/// Minutes between two snapshots of a schedule at least: their names tell the minute.
pub const SCHEDULE_MINUTES_MIN: u16 = 1;

const _: () = assert!(REBALANCE_STOP < REBALANCE_START);
const _: () = assert!(REBALANCE_FULL <= FULL);
