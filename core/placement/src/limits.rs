//! The bounds of policies and placement.

/// Most failures that a policy may ask to tolerate (vSAN's own bound).
pub const FAILURES_TO_TOLERATE_MAX: u8 = 3;
/// Most devices that a policy may ask each replica to be spread over (vSAN's own bound).
pub const STRIPES_MAX: u8 = 12;
/// Devices of different hosts or groups that `stripes=auto` takes for a disk that one component could hold (design,
/// section 3): the published gains flatten beyond four.
pub const STRIPES_AUTO_MAX: usize = 4;
/// Names of devices that a refusal lists before it says how many more there are.
pub const DEVICES_NAMED_MAX: usize = 8;
