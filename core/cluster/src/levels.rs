//! Levels of the directory's records: which forms a program understands, and when a cluster may raise its level.
//!
//! A level is a number for all forms that records may have. A program that understands a level understands every
//! record of the levels below, down to its lowest (`docs/design/0018-versions.md`). Must never let a cluster raise
//! its level beyond what one of its hosts understands.

use base::HostId;
use placement::{Compression, Method, Policy, ReadLocality};
use std::collections::BTreeMap;
use std::fmt;

/// A level; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u16);

impl Default for Level {
    fn default() -> Level {
        Level::FIRST
    }
}

impl Level {
    /// The level of a cluster whose directory names none.
    pub const FIRST: Level = Level(1);

    /// The level of that number, if there can be one.
    pub const fn new(number: u16) -> Option<Level> {
        if number == 0 { None } else { Some(Level(number)) }
    }

    /// The level from which on disks may have parity, policies have limits of bytes and `read_locality=auto`, and disks follow named policies.
    pub const LIMITS: Level = Level(3);

    /// The level from which on disks may have snapshots or be compressed, and disk groups are of the format that has them (docs/design/0044, 0047).
    pub const SNAPSHOTS: Level = Level(4);

    /// The level from which on disks with parity may have snapshots or be compressed (docs/design/0053).
    pub const SNAPSHOTS_OF_ROWS: Level = Level(5);

    /// The level from which on disks have labels, and can be handed over to another host.
    pub const LABELS: Level = Level(6);

    /// The level from which on people have passwords (docs/design/0057).
    pub const PASSWORDS: Level = Level(6);

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The one after it; of the last, itself.
    pub fn next(self) -> Level {
        Level(self.0.saturating_add(1))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", self.0)
    }
}

/// Why a policy cannot be recorded at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{rule} needs records of {needs}, and those of this cluster are at {level}")]
pub struct TooEarly {
    /// The rule, with its value where only that one is new.
    pub rule: &'static str,
    /// The level that it needs.
    pub needs: Level,
    /// The level of the records.
    pub level: Level,
}

impl Level {
    /// A policy as it is meant at this level where nobody said otherwise: hosts of a former release do not know `read_locality=auto`.
    pub fn usual(self, policy: Policy) -> Policy {
        let is_early = self < Level::LIMITS && policy.read_locality == ReadLocality::Auto;
        let read_locality = if is_early { ReadLocality::Spread } else { policy.read_locality };
        Policy { read_locality, ..policy }
    }

    /// Refuses snapshots of disks that hosts of a former release would not hold changes of. A policy may ask for them at any level.
    ///
    /// # Errors
    /// When disks with parity, as this one is, have none at this level.
    pub fn check_snapshots(self, has_parity: bool) -> Result<(), TooEarly> {
        match has_parity && self < Level::SNAPSHOTS_OF_ROWS {
            true => Err(TooEarly {
                rule: "a snapshot of a disk with parity",
                needs: Level::SNAPSHOTS_OF_ROWS,
                level: self,
            }),
            false => Ok(()),
        }
    }

    /// Refuses a policy that records of this level cannot say.
    ///
    /// # Errors
    /// The first such rule.
    pub fn check(self, policy: &Policy) -> Result<(), TooEarly> {
        if self < Level::SNAPSHOTS && !policy.snapshots.is_empty() {
            return Err(TooEarly { rule: "snapshots", needs: Level::SNAPSHOTS, level: self });
        }
        if self < Level::SNAPSHOTS && policy.compression != Compression::Off {
            return Err(TooEarly { rule: "compression", needs: Level::SNAPSHOTS, level: self });
        }
        if policy.method == Method::Parity
            && self < Level::SNAPSHOTS_OF_ROWS
            && policy.compression != Compression::Off
        {
            let rule = "compression of a disk with parity";
            return Err(TooEarly { rule, needs: Level::SNAPSHOTS_OF_ROWS, level: self });
        }
        let rule = match (policy.method, policy.bytes_limit, policy.read_locality) {
            _ if self >= Level::LIMITS => return Ok(()),
            (Method::Parity, ..) => "method=parity",
            (Method::Mirror, Some(_), _) => "bytes_limit",
            (Method::Mirror, None, ReadLocality::Auto) => "read_locality=auto",
            (Method::Mirror, None, ReadLocality::Spread | ReadLocality::Local) => return Ok(()),
        };
        Err(TooEarly { rule, needs: Level::LIMITS, level: self })
    }
}

/// The levels that a program understands: all from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    lowest: Level,
    /// Not below the lowest.
    highest: Level,
}

impl Levels {
    /// The levels of a program that reports none.
    pub const FIRST: Levels = Levels { lowest: Level::FIRST, highest: Level::FIRST };

    /// All from one to another, if the first is not above the second.
    pub const fn new(lowest: Level, highest: Level) -> Option<Levels> {
        if lowest.0 <= highest.0 { Some(Levels { lowest, highest }) } else { None }
    }

    /// The lowest.
    pub const fn lowest(self) -> Level {
        self.lowest
    }

    /// The highest.
    pub const fn highest(self) -> Level {
        self.highest
    }

    /// Whether a level is one of them.
    pub fn contains(self, level: Level) -> bool {
        (self.lowest..=self.highest).contains(&level)
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "{}", self.lowest),
            false => write!(f, "levels {} to {}", self.lowest.0, self.highest.0),
        }
    }
}

/// The level of a cluster's records, and the programs that read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLevels {
    /// The level that records are written in.
    pub level: Level,
    /// What each host understands.
    pub hosts: BTreeMap<HostId, Levels>,
    /// Why records cannot be read here, one sentence each.
    pub unreadable: Vec<String>,
}

impl Default for RecordLevels {
    fn default() -> RecordLevels {
        RecordLevels { level: Level::FIRST, hosts: BTreeMap::new(), unreadable: Vec::new() }
    }
}

/// Whether a cluster may raise its level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raise {
    /// No host understands a later one.
    Nothing,
    /// All hosts understand it.
    Possible {
        /// The next one.
        to: Level,
    },
    /// Some hosts understand it, and others do not.
    Waits {
        /// The next one.
        to: Level,
        /// Those that do not.
        hosts: Vec<HostId>,
    },
}

impl RecordLevels {
    /// Whether the cluster may raise its level.
    pub fn raise(&self) -> Raise {
        let to = self.level.next();
        let (can, cannot): (Vec<_>, Vec<_>) = self.hosts.iter().partition(|(_, levels)| levels.contains(to));
        match (can.is_empty() || to == self.level, cannot.is_empty()) {
            (true, _) => Raise::Nothing,
            (false, true) => Raise::Possible { to },
            (false, false) => Raise::Waits { to, hosts: cannot.into_iter().map(|(id, _)| *id).collect() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(number: u16) -> Level {
        Level::new(number).expect("a level")
    }

    fn levels(lowest: u16, highest: u16) -> Levels {
        Levels::new(level(lowest), level(highest)).expect("levels")
    }

    #[test]
    fn a_level_is_understood_from_the_lowest_to_the_highest() {
        let check = |number, expected| assert_eq!(levels(2, 4).contains(level(number)), expected, "{number}");
        check(1, false);
        check(2, true);
        check(4, true);
        check(5, false);
        assert_eq!(Level::new(0), None);
        assert_eq!(Levels::new(level(3), level(2)), None);
        assert_eq!(Levels::FIRST.to_string(), "level 1");
        assert_eq!(levels(1, 3).to_string(), "levels 1 to 3");
    }

    #[test]
    fn what_a_level_does_not_know_is_not_meant_and_is_refused() {
        let check = |number: u16, rules: &str, usual: &str, refused: Option<&str>| {
            let policy: Policy = rules.parse().expect("a policy");
            assert_eq!(
                level(number).usual(policy).get("read_locality").as_deref(),
                Some(usual),
                "{number} {rules}"
            );
            let found = level(number).check(&policy).err().map(|early| early.rule);
            assert_eq!(found, refused, "{number} {rules}");
        };
        check(2, "single", "spread", Some("read_locality=auto"));
        check(2, "single,read_locality=local", "local", None);
        check(2, "single,read_locality=spread,bytes_limit=1MiB/s", "spread", Some("bytes_limit"));
        check(2, "default,method=parity,read_locality=spread", "spread", Some("method=parity"));
        check(3, "default,method=parity", "auto", None);
        check(3, "single,bytes_limit=1MiB/s", "auto", None);
        check(3, "single,snapshots=hourly keep 1", "auto", Some("snapshots"));
        check(4, "single,snapshots=hourly keep 1", "auto", None);
        check(4, "default", "auto", None);
        check(3, "single,compression=zstd", "auto", Some("compression"));
        check(4, "single,compression=zstd", "auto", None);
        check(4, "default,method=parity,compression=zstd", "auto", Some("compression of a disk with parity"));
        check(5, "default,method=parity,compression=zstd", "auto", None);
        check(4, "default,method=parity,snapshots=hourly keep 1", "auto", None);
    }

    #[test]
    fn a_cluster_goes_on_only_when_every_host_understands_the_next_level() {
        let check = |at, hosts: &[(u16, u16)], expected| {
            let told =
                (1..).zip(hosts).map(|(id, (lowest, highest))| (HostId(id), levels(*lowest, *highest)));
            let known = RecordLevels { level: level(at), hosts: told.collect(), unreadable: Vec::new() };
            assert_eq!(known.raise(), expected, "{at} {hosts:?}");
        };
        check(1, &[], Raise::Nothing);
        check(1, &[(1, 1), (1, 1)], Raise::Nothing);
        check(1, &[(1, 2), (1, 1)], Raise::Waits { to: level(2), hosts: vec![HostId(2)] });
        check(1, &[(1, 2), (1, 3)], Raise::Possible { to: level(2) });
        check(2, &[(1, 2), (1, 2)], Raise::Nothing);
        check(2, &[(1, 2), (1, 3)], Raise::Waits { to: level(3), hosts: vec![HostId(1)] });
        // A host that no longer understands the next level is in the way as well.
        check(1, &[(1, 2), (3, 4)], Raise::Waits { to: level(2), hosts: vec![HostId(2)] });
        check(u16::MAX, &[(1, u16::MAX)], Raise::Nothing);
    }
}
