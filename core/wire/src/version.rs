//! Versions of the protocol between nodes.

use std::fmt;

/// The lowest version that this program speaks.
pub const VERSION_MIN: u16 = 1;
/// The highest version that this program speaks.
pub const VERSION_MAX: u16 = 3;

const _: () = assert!(0 < VERSION_MIN && VERSION_MIN <= VERSION_MAX);

/// A version that this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u16);

impl Version {
    /// The first one.
    pub const FIRST: Version = Version(1);

    /// The newest one.
    pub const LATEST: Version = Version(VERSION_MAX);

    /// The version with that number, if this program speaks it.
    pub fn new(number: u16) -> Option<Version> {
        (VERSION_MIN..=VERSION_MAX).contains(&number).then_some(Version(number))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }
}

/// The versions that a program speaks: all from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The lowest; at least 1.
    pub lowest: u16,
    /// The highest; not below the lowest.
    pub highest: u16,
}

impl VersionRange {
    /// What this program speaks.
    pub const OURS: VersionRange = VersionRange { lowest: VERSION_MIN, highest: VERSION_MAX };

    /// The highest version that is in both ranges.
    pub fn highest_common(self, other: VersionRange) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest && highest >= other.lowest).then_some(highest)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "version {}", self.lowest),
            false => write!(f, "versions {} to {}", self.lowest, self.highest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_chosen_if_there_is_one() {
        let range = |lowest, highest| VersionRange { lowest, highest };
        let check = |a: VersionRange, b: VersionRange, expected| {
            assert_eq!(a.highest_common(b), expected);
            assert_eq!(b.highest_common(a), expected);
        };
        check(range(1, 1), range(1, 1), Some(1));
        check(range(1, 4), range(2, 3), Some(3));
        check(range(1, 3), range(3, 7), Some(3));
        check(range(1, 2), range(3, 7), None);
    }

    #[test]
    fn only_versions_that_are_spoken_can_be_named() {
        assert_eq!(Version::new(VERSION_MIN - 1), None);
        assert_eq!(Version::new(VERSION_MAX).map(Version::number), Some(VERSION_MAX));
        assert_eq!(Version::new(VERSION_MAX + 1), None);
    }
}
