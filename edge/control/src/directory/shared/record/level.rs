//! The level of the cluster's records, and which levels the program of each host understands (docs/design/0018).
//!
//! The level is a record of its own, which is there from level 2 on. What hosts understand stands in records that programs
//! without levels do not look at, so that those go on beside later ones. Must never read more of the level's record than its
//! number: programs of all times have to understand that much.
//!
//! # To add a level
//!
//! This is the place, and the records that change are the only other one.
//!
//! 1. [`HIGHEST`] becomes one more. The feature `next-level`, which stands for a level that is not there yet, follows by itself.
//! 2. A field or a kind of record that is new is read at any level, and written only where the record is of that level:
//!    `StoredHost` (`host.rs`) has one for tests that shows how. A new field is left out where it has its default, and a record
//!    that is read and written again keeps the level that it had.
//! 3. What the forms of the level below were must be read on, for records are written anew only when they change. [`LOWEST`]
//!    may follow only after something has written all records anew.
//! 4. `docs/formats/directory.md` says of the new field from which level on it is there, and a test in `record/tests.rs` reads a
//!    record of each level.

use super::super::{Change, Entry};
use super::set;
use ::cluster::{Level, Levels};
use api::program::RELEASE;
use base::HostId;
use failure::Failure;
use serde::{Deserialize, Serialize};

/// The lowest level that this program understands.
const LOWEST: Level = Level::FIRST;
/// The highest. Level 2 has what a component that does not count may know at most (`ceiling` of a disk's members). Level 3 has disks with
/// parity, limits of bytes, `read_locality=auto`, the named policy that a disk follows, and devices that spin. Level 4 has snapshots of disks, and compression;
/// level 5 both of disks with parity, too: no field is new then, but what the devices hold (docs/design/0053). Level 6 has labels of disks,
/// disks that are handed over, and people with passwords.
const HIGHEST: u16 = if cfg!(feature = "next-level") { 7 } else { 6 };

/// The level from which on records have ceilings.
pub const CEILINGS: Level = match Level::new(2) {
    Some(level) => level,
    None => panic!("there is no level 0"),
};

/// The levels that this program understands.
pub const OURS: Levels = match Level::new(HIGHEST) {
    Some(highest) => match Levels::new(LOWEST, highest) {
        Some(levels) => levels,
        None => panic!("the lowest level is above the highest"),
    },
    None => panic!("there is no level 0"),
};

/// The record of the level. It stands where programs without levels look for certificates that count no more: they cannot
/// read it, and so refuse to start.
pub const LEVEL: &str = "revoked/older-programs";
/// Where the records begin of what the programs of hosts understand.
pub const PROGRAMS: &str = "programs/";

/// The level of a cluster's records, as it was last heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterLevel {
    /// The version of the record that says so; zero: there is none.
    pub version: u64,
    /// It.
    pub level: Level,
}

impl Default for ClusterLevel {
    fn default() -> ClusterLevel {
        ClusterLevel { version: 0, level: Level::FIRST }
    }
}

#[derive(Serialize)]
struct StoredLevel {
    level: u16,
    /// A program without levels says this when it refuses: it expects a time here.
    before_ns: String,
}

impl ClusterLevel {
    /// The level that is named among records; the first if none is.
    ///
    /// # Errors
    /// When the record names none.
    pub fn among(entries: &[Entry]) -> Result<ClusterLevel, String> {
        let found = entries.iter().find(|entry| entry.key == LEVEL);
        found.map_or(Ok(ClusterLevel::default()), ClusterLevel::read)
    }

    /// The level that the record names.
    ///
    /// # Errors
    /// When it names none.
    pub fn read(entry: &Entry) -> Result<ClusterLevel, String> {
        let number = entry.value.get("level").and_then(serde_json::Value::as_u64);
        let level = number.and_then(|number| Level::new(u16::try_from(number).ok()?));
        let level =
            level.ok_or_else(|| unread(&entry.key, format_args!("it names no level: {}", entry.value)))?;
        Ok(ClusterLevel { version: entry.version, level })
    }

    /// The change that makes another level the record's, if it has this version still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn raise(self, to: Level) -> Result<Change, Failure> {
        let before_ns = format!(
            "the records of this cluster are at {to}, which this program does not understand; install a later release"
        );
        set(LEVEL.to_owned(), self.version, &StoredLevel { level: to.number(), before_ns })
    }

    /// Refuses a level that this program does not understand.
    ///
    /// # Errors
    /// [`failure::Code::Refused`] with the way out.
    pub fn check(self) -> Result<(), Failure> {
        self.check_for(OURS)
    }

    fn check_for(self, ours: Levels) -> Result<(), Failure> {
        let level = self.level;
        if ours.contains(level) {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "the records of this cluster are at {level}, and drystone {RELEASE} understands {ours} only"
        ))
        .hint(format!(
            "install a release that understands {level} on this host, and start it again; `drystone cluster upgrade --dry-run` on \
             another host shows what those run"
        )))
    }
}

/// Refuses records at a level that this program does not understand.
///
/// # Errors
/// As [`ClusterLevel::check`]; or when the level cannot be read at all.
pub fn check(entries: &[Entry]) -> Result<(), Failure> {
    let found = ClusterLevel::among(entries)
        .map_err(|why| Failure::refused(why).hint("a later release may read it"))?;
    found.check()
}

/// What a host tells of its program. A later one may tell more, which is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The release.
    pub release: String,
    /// The start of the host that told it: of another start nothing is known by it.
    pub incarnation: u64,
    lowest: u16,
    highest: u16,
}

impl Program {
    /// This one, at a start of its host.
    pub fn ours(incarnation: u64) -> Program {
        let (lowest, highest) = (OURS.lowest().number(), OURS.highest().number());
        Program { release: RELEASE.to_owned(), incarnation, lowest, highest }
    }

    /// The key of a host's record.
    pub fn key(host: HostId) -> String {
        format!("{PROGRAMS}{host}")
    }

    /// The levels that it understands; nothing where what it tells makes no sense.
    pub fn levels(&self) -> Option<Levels> {
        Levels::new(Level::new(self.lowest)?, Level::new(self.highest)?)
    }

    /// The change that makes this the host's record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, host: HostId, expected: u64) -> Result<Change, Failure> {
        set(Program::key(host), expected, self)
    }

    /// The host and the program that a record tells of.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<(HostId, Program), String> {
        let host = super::parsed(entry.key.strip_prefix(PROGRAMS).unwrap_or_default());
        Ok((host.map_err(|why| unread(&entry.key, why))?, super::read(entry)?))
    }
}

/// What a record says.
///
/// # Errors
/// When it makes no sense.
pub fn read<T: serde::de::DeserializeOwned>(entry: &Entry) -> Result<T, String> {
    serde_json::from_value(entry.value.clone()).map_err(|error| unread(&entry.key, error))
}

/// Why a record cannot be read, and by whom: of another level, perhaps.
pub fn unread(key: &str, why: impl std::fmt::Display) -> String {
    format!("the record {key} cannot be read by drystone {RELEASE}, which understands {OURS}: {why}")
}

#[cfg(test)]
mod tests {
    use super::super::{Believed, Revocation};
    use super::*;
    use failure::Code;
    use serde_json::json;

    fn entry(key: &str, value: serde_json::Value) -> Entry {
        Entry { key: key.to_owned(), version: 7, value }
    }

    fn level(number: u16) -> Level {
        Level::new(number).expect("a level")
    }

    #[test]
    fn a_cluster_without_the_record_is_at_level_1() {
        assert_eq!(ClusterLevel::among(&[entry("settings", json!({}))]), Ok(ClusterLevel::default()));
        assert_eq!(ClusterLevel::default().level, Level::FIRST);
        assert_eq!(check(&[]), Ok(()));
    }

    #[test]
    fn a_level_that_was_raised_is_read_back_whatever_else_stands_there() {
        let change = ClusterLevel { version: 7, level: level(2) }.raise(level(3)).expect("plain text");
        assert_eq!((change.key.as_str(), change.expected), (LEVEL, 7));
        let mut value = change.value.expect("it is set");
        value["of a later release"] = json!(true);
        assert_eq!(
            ClusterLevel::among(&[entry(LEVEL, value)]),
            Ok(ClusterLevel { version: 7, level: level(3) })
        );
        for odd in [
            json!(null),
            json!({}),
            json!({ "level": 0 }),
            json!({ "level": "2" }),
            json!({ "level": 70_000 }),
        ] {
            let failure = check(&[entry(LEVEL, odd.clone())]).expect_err("no level");
            assert_eq!(failure.code, Code::Refused, "{odd}");
        }
    }

    #[test]
    fn a_level_that_is_not_understood_is_refused_with_both_and_the_way_out() {
        let ours = Levels::new(level(2), level(3)).expect("levels");
        for (at, is_understood) in [(1, false), (2, true), (3, true), (4, false)] {
            let checked = ClusterLevel { version: 1, level: level(at) }.check_for(ours);
            assert_eq!(checked.is_ok(), is_understood, "{at}");
            let Err(failure) = checked else { continue };
            assert_eq!(failure.code, Code::Refused);
            let told = format!("at level {at}, and drystone {RELEASE} understands levels 2 to 3");
            assert!(failure.error.contains(&told), "{failure}");
            assert!(failure.hint.is_some_and(|hint| hint.contains(&format!("understands level {at}"))));
        }
        let beyond = ClusterLevel::default().raise(OURS.highest().next()).expect("plain text");
        assert!(check(&[entry(LEVEL, beyond.value.expect("it is set"))]).is_err());
    }

    /// A program without levels reads whatever begins with `revoked/` as this, and refuses to start where it cannot.
    #[test]
    fn a_program_without_levels_cannot_read_the_level_and_says_which_it_is() {
        let value = ClusterLevel::default().raise(level(2)).expect("plain text").value.expect("it is set");
        let why = super::super::read::<Revocation>(&entry(LEVEL, value.clone())).expect_err("no time");
        assert!(why.contains("level 2, which this program does not understand; install a later"), "{why}");
        assert!(LEVEL.starts_with(super::super::REVOKED));
        // To one with levels it is nobody's certificate.
        let mut believed = Believed::default();
        assert_eq!(believed.put(&entry(LEVEL, value)), Ok(false));
        assert_eq!(believed, Believed::default());
    }

    #[test]
    fn what_a_host_tells_of_its_program_is_read_back() {
        let program = Program::ours(12);
        assert_eq!(program.levels(), Some(OURS));
        let change = program.change(HostId(5), 0).expect("plain text");
        let mut value = change.value.expect("it is set");
        value["of a later release"] = json!(1);
        assert_eq!(Program::read(&entry(&change.key, value)), Ok((HostId(5), program.clone())));
        assert_eq!(Program { lowest: 3, highest: 2, ..program.clone() }.levels(), None);
        assert_eq!(Program { lowest: 0, ..program }.levels(), None);
        assert!(Program::read(&entry("programs/x", json!({}))).is_err());
    }
}
