//! The faults of one host that every seed draws from the stream of its load, as it draws its devices.

use base::Random;

/// What a seed may bring beside load, crashes and its features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Bits flip at rest.
    pub(crate) rot: bool,
    /// A capacity device dies.
    pub(crate) dead_device: bool,
    /// The devices are nearly too small for the load.
    pub(crate) full: bool,
    /// A capacity device is not there at some starts, and comes back.
    pub(crate) away: bool,
}

impl Faults {
    /// Draws them. A run that crashes at a given step loses nothing but what a crash loses.
    pub(crate) fn draw(random: &mut Random, crash_at: Option<u64>) -> Faults {
        Faults {
            rot: crash_at.is_none() && random.chance(1, 6),
            dead_device: crash_at.is_none() && random.chance(1, 10),
            full: random.chance(1, 4),
            away: random.chance(1, 4),
        }
    }
}
