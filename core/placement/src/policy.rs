//! The rules of one virtual disk: their names, ranges, defaults and text form.
//!
//! One table, [`RULES`], is what the CLI's help, the API and the guide are made of. The text form, which [`Policy`]'s
//! `Display` writes and `FromStr` reads, is also how records keep a policy.

use crate::limits::{FAILURES_TO_TOLERATE_MAX, STRIPES_MAX};
use crate::schedule::Schedules;
use base::units::{BLOCK_SIZE, parse_bytes};
use layout::Code;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

/// The rules of one virtual disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Failures survived with no data lost.
    pub failures_to_tolerate: u8,
    /// How copies are kept.
    pub method: Method,
    /// Devices that each replica is spread over.
    pub stripes: Stripes,
    /// Share of the size that is set aside at creation.
    pub space_reservation: Percent,
    /// Share of the size that is set aside in read caches.
    pub read_cache_reservation: Percent,
    /// Whether every block is verified against its checksum.
    pub checksum: bool,
    /// I/Os per second, normalised to 32 KiB; the excess waits.
    pub iops_limit: Option<NonZeroU32>,
    /// Bytes per second; the excess waits.
    pub bytes_limit: Option<NonZeroU64>,
    /// Whether the disk is created even if the policy cannot be met now.
    pub force_provisioning: bool,
    /// The site that the disk is bound to.
    pub site_locality: Option<Site>,
    /// Which copies guests read from.
    pub read_locality: ReadLocality,
    /// When snapshots are taken by themselves, and how many are kept.
    pub snapshots: Schedules,
    /// How blocks are stored.
    pub compression: Compression,
}

/// How copies are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Whole replicas.
    Mirror,
    /// RAID-5 3+1 or RAID-6 4+2.
    Parity,
}

/// Devices that each replica is spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stripes {
    /// As many as help: up to four of different hosts or groups; of one host where there is one copy.
    Auto,
    /// Exactly so many different ones, 1..=12.
    Exactly(u8),
}

/// Which copies guests read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLocality {
    /// All, by offset, so that every device does its share.
    Spread,
    /// The one on the host that owns the disk, if it has one: no network, but one device does it all.
    Local,
    /// The one on the host that owns the disk, unless it is slower than another by more than the network costs.
    Auto,
}

/// How blocks are stored on devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    Off,
    /// By LZ4.
    Lz4,
    /// By Zstandard.
    Zstd,
}

/// A site of a stretched cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// The site that stays in charge when the link between the sites fails.
    Preferred,
    /// The other one.
    Secondary,
}

/// A whole share of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Percent(u8);

impl Percent {
    /// Nothing.
    pub const ZERO: Percent = Percent(0);

    /// `value`, when it is at most 100.
    pub fn new(value: u8) -> Option<Percent> {
        (value <= 100).then_some(Percent(value))
    }

    /// The share as a number, 0..=100.
    pub fn get(self) -> u8 {
        self.0
    }

    /// This share of `bytes`, rounded up.
    pub fn of(self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.0)).div_ceil(100) as u64
    }
}

/// A rule as documents and help texts show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Its value in the policy `default`.
    pub default: &'static str,
    /// The values that it takes.
    pub range: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// How it changes on a disk in use.
    pub change: RuleChange,
}

/// How a rule of a disk in use changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleChange {
    /// With the record of the disk, while guests go on.
    AtOnce,
    /// Copies of the disk come or go.
    Copies,
    /// The data of the disk moves to another layout.
    Move,
}

impl RuleChange {
    /// What a change needs that cannot be made while a disk of a method is in use; nothing where it can. With parity the
    /// failures that are tolerated give the rows their form.
    pub fn needs(self, method: Method) -> Option<&'static str> {
        match (self, method) {
            (RuleChange::AtOnce, _) | (RuleChange::Copies, Method::Mirror) => None,
            (RuleChange::Copies, Method::Parity) | (RuleChange::Move, _) => {
                Some("the data to move to another layout")
            }
        }
    }
}

const fn rule(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    change: RuleChange,
    meaning: &'static str,
) -> Rule {
    Rule { name, default, range, meaning, change }
}

/// Every rule, in the order of the text form.
pub const RULES: [Rule; 13] = [
    rule("failures_to_tolerate", "1", "0..=3", RuleChange::Copies, "failures survived with no data lost"),
    rule("method", "mirror", "mirror, parity", RuleChange::Move, "how copies are kept"),
    rule("stripes", "auto", "auto, 1..=12", RuleChange::Move, "devices that each replica is spread over"),
    rule("space_reservation", "0", "0..=100", RuleChange::AtOnce, "percent of the size set aside on devices"),
    rule(
        "read_cache_reservation",
        "0",
        "0..=100",
        RuleChange::AtOnce,
        "percent of the size set aside in read caches",
    ),
    rule(
        "checksum",
        "on",
        "on, off",
        RuleChange::AtOnce,
        "whether every block that a guest reads is verified against its checksum",
    ),
    rule(
        "iops_limit",
        "none",
        "none, 1..",
        RuleChange::AtOnce,
        "I/Os per second normalised to 32 KiB; the excess waits",
    ),
    rule(
        "bytes_limit",
        "none",
        "none, 4KiB/s..",
        RuleChange::AtOnce,
        "bytes per second, e.g. 64MiB/s; the excess waits",
    ),
    rule(
        "force_provisioning",
        "off",
        "on, off",
        RuleChange::AtOnce,
        "create even if the policy cannot be met now, and show the debt",
    ),
    rule(
        "site_locality",
        "none",
        "none, preferred, secondary",
        RuleChange::Move,
        "the site that the disk is bound to",
    ),
    rule(
        "read_locality",
        "auto",
        "auto, spread, local",
        RuleChange::AtOnce,
        "read from the copy on the guest's host unless it is slow, from all copies, or from that copy always",
    ),
    rule(
        "snapshots",
        "none",
        "none, or lines such as `hourly keep 24, daily keep 7`: every 15m, hourly, daily, weekly, monthly",
        RuleChange::AtOnce,
        "snapshots that are taken by themselves (UTC), and how many of each are kept: 255 at most",
    ),
    rule(
        "compression",
        "off",
        "off, lz4, zstd",
        RuleChange::AtOnce,
        "compress blocks when they leave the write log; lz4 is fast, zstd saves more",
    ),
];

/// Why a text is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No rule has this name.
    #[error("there is no policy rule `{name}`; the rules are {}", rule_names())]
    UnknownRule {
        /// The name given.
        name: String,
    },
    /// The value is not one that the rule takes.
    #[error("`{value}` is not a value of the policy rule {}: {} is expected ({})", rule.name, rule.range, rule.meaning)]
    Value {
        /// The rule.
        rule: Rule,
        /// The value given.
        value: String,
    },
    /// A rule is given twice.
    #[error("the policy rule {name} is given twice")]
    Twice {
        /// The rule's name.
        name: &'static str,
    },
    /// A word stands where `rule=value` is expected, and is no built-in policy.
    #[error("`{word}` is neither `rule=value` nor the name of a built-in policy (default, single)")]
    UnknownName {
        /// The word given.
        word: String,
    },
}

fn rule_names() -> String {
    RULES.map(|rule| rule.name).join(", ")
}

/// A rule that this version does not keep yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this version cannot keep {rule}={value}: {reason}")]
pub struct Unsupported {
    /// The rule.
    pub rule: &'static str,
    /// Its value.
    pub value: &'static str,
    /// Why not.
    pub reason: &'static str,
}

impl Policy {
    /// The policy of the design's table.
    pub const DEFAULT: Policy = Policy {
        failures_to_tolerate: 1,
        method: Method::Mirror,
        stripes: Stripes::Auto,
        space_reservation: Percent(0),
        read_cache_reservation: Percent(0),
        checksum: true,
        iops_limit: None,
        bytes_limit: None,
        force_provisioning: false,
        site_locality: None,
        read_locality: ReadLocality::Auto,
        snapshots: Schedules::NONE,
        compression: Compression::Off,
    };

    /// [`Policy::DEFAULT`] with one copy only: what a single host can keep.
    pub const SINGLE: Policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };

    /// The policies that are there from the start, with their names and a line for people.
    pub const BUILT_IN: [(&'static str, Policy, &'static str); 2] = [
        ("default", Policy::DEFAULT, "survives one failure; needs several hosts"),
        ("single", Policy::SINGLE, "one copy on one host: what the device or its host loses is lost"),
    ];

    /// Copies of every block: one more than the failures that are tolerated.
    pub fn copies(&self) -> usize {
        usize::from(self.failures_to_tolerate) + 1
    }

    /// Fault domains that a disk takes at least: one for each copy, or for each member of the narrowest rows.
    pub fn domains_min(&self) -> usize {
        match self.method {
            Method::Mirror => self.copies(),
            Method::Parity => {
                let survives = |code: &Code| code.parity() == self.failures_to_tolerate;
                let members = Code::ALL.into_iter().filter(survives).map(|code| usize::from(code.members()));
                members.min().unwrap_or(self.copies())
            }
        }
    }

    /// Whether a disk stays on one host: with one copy of its data each further host is another one whose failure takes
    /// the disk, so it is spread over hosts only where stripes are asked for by number.
    pub fn keeps_to_one_host(&self) -> bool {
        self.copies() == 1 && self.stripes == Stripes::Auto
    }

    /// The built-in policy of a name.
    pub fn built_in(name: &str) -> Option<Policy> {
        Policy::BUILT_IN.iter().find(|(known, ..)| *known == name).map(|(_, policy, _)| *policy)
    }

    /// Refuses the rules that no cluster can keep with this version. What needs more hosts than there are is found
    /// out by [`plan`](crate::plan), which knows them.
    ///
    /// # Errors
    /// The first such rule.
    pub fn check_supported(&self) -> Result<(), Unsupported> {
        let refuse = |rule, value, reason| Err(Unsupported { rule, value, reason });
        if self.method == Method::Parity && !(1..=2).contains(&self.failures_to_tolerate) {
            let reason = "parity survives one failure (RAID-5) or two (RAID-6): failures_to_tolerate=1 or 2";
            return refuse("method", "parity", reason);
        }
        if self.read_cache_reservation > Percent(0) {
            let reason = "read caches for groups of spinning devices come with a later version";
            return refuse("read_cache_reservation", "1..=100", reason);
        }
        match self.site_locality {
            None => Ok(()),
            Some(site) => {
                refuse("site_locality", site.name(), "stretched clusters come with a later version")
            }
        }
    }

    /// The value of the rule `name` as text; `None` when there is no such rule.
    pub fn get(&self, name: &str) -> Option<String> {
        let on_off = |value: bool| if value { "on" } else { "off" }.to_owned();
        Some(match name {
            "failures_to_tolerate" => self.failures_to_tolerate.to_string(),
            "method" => match self.method {
                Method::Mirror => "mirror".to_owned(),
                Method::Parity => "parity".to_owned(),
            },
            "stripes" => match self.stripes {
                Stripes::Auto => "auto".to_owned(),
                Stripes::Exactly(count) => count.to_string(),
            },
            "space_reservation" => self.space_reservation.get().to_string(),
            "read_cache_reservation" => self.read_cache_reservation.get().to_string(),
            "checksum" => on_off(self.checksum),
            "iops_limit" => self.iops_limit.map_or("none".to_owned(), |limit| limit.to_string()),
            "bytes_limit" => self.bytes_limit.map_or("none".to_owned(), |limit| rate_text(limit.get())),
            "force_provisioning" => on_off(self.force_provisioning),
            "site_locality" => self.site_locality.map_or("none", Site::name).to_owned(),
            "read_locality" => match self.read_locality {
                ReadLocality::Spread => "spread".to_owned(),
                ReadLocality::Local => "local".to_owned(),
                ReadLocality::Auto => "auto".to_owned(),
            },
            "snapshots" => self.snapshots.to_string(),
            "compression" => self.compression.name().to_owned(),
            _ => return None,
        })
    }

    /// Gives the rule `name` the value that `value` says.
    ///
    /// # Errors
    /// When there is no such rule, or it does not take this value; nothing has changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PolicyError> {
        let Some(rule) = RULES.into_iter().find(|rule| rule.name == name) else {
            return Err(PolicyError::UnknownRule { name: name.to_owned() });
        };
        self.set_known(name, value).ok_or_else(|| PolicyError::Value { rule, value: value.to_owned() })
    }

    fn set_known(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "failures_to_tolerate" => {
                self.failures_to_tolerate = number_up_to(value, FAILURES_TO_TOLERATE_MAX)?;
            }
            "method" => {
                self.method = match value {
                    "mirror" => Method::Mirror,
                    "parity" => Method::Parity,
                    _ => return None,
                }
            }
            "stripes" => {
                self.stripes = match value {
                    "auto" => Stripes::Auto,
                    _ => Stripes::Exactly(number_up_to(value, STRIPES_MAX).filter(|count| *count > 0)?),
                }
            }
            "space_reservation" => self.space_reservation = percent(value)?,
            "read_cache_reservation" => self.read_cache_reservation = percent(value)?,
            "checksum" => self.checksum = on_off(value)?,
            "iops_limit" => {
                self.iops_limit = match value {
                    "none" => None,
                    _ => Some(value.parse().ok()?),
                }
            }
            "bytes_limit" => {
                self.bytes_limit = match value {
                    "none" => None,
                    _ => Some(rate(value)?),
                }
            }
            "force_provisioning" => self.force_provisioning = on_off(value)?,
            "site_locality" => {
                self.site_locality = match value {
                    "none" => None,
                    "preferred" => Some(Site::Preferred),
                    "secondary" => Some(Site::Secondary),
                    _ => return None,
                }
            }
            "read_locality" => {
                self.read_locality = match value {
                    "spread" => ReadLocality::Spread,
                    "local" => ReadLocality::Local,
                    "auto" => ReadLocality::Auto,
                    _ => return None,
                }
            }
            "snapshots" => self.snapshots = Schedules::read(value)?,
            "compression" => {
                let all = [Compression::Off, Compression::Lz4, Compression::Zstd];
                self.compression = all.into_iter().find(|one| one.name() == value)?;
            }
            _ => unreachable!("every rule of the table is set here"),
        }
        Some(())
    }

    /// The rules in which this policy differs from another.
    pub fn differences<'a>(&'a self, other: &'a Policy) -> impl Iterator<Item = &'static Rule> + 'a {
        RULES.iter().filter(|rule| self.get(rule.name) != other.get(rule.name))
    }

    /// The shortest text that gives this policy: a built-in name and the rules that differ from it.
    pub fn short(&self) -> String {
        let differences = |base: &Policy| -> Vec<String> {
            let differs = |rule: &&Rule| self.get(rule.name) != base.get(rule.name);
            let text = |rule: &Rule| format!("{}={}", rule.name, self.get(rule.name).unwrap_or_default());
            RULES.iter().filter(differs).map(text).collect()
        };
        let candidates = Policy::BUILT_IN.iter().map(|(name, base, _)| (*name, differences(base)));
        let (name, rules) =
            candidates.min_by_key(|(_, rules)| rules.len()).expect("there are built-in policies");
        std::iter::once(name.to_owned()).chain(rules).collect::<Vec<_>>().join(",")
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::Off => "off",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

impl Site {
    fn name(self) -> &'static str {
        match self {
            Site::Preferred => "preferred",
            Site::Secondary => "secondary",
        }
    }
}

fn number_up_to(text: &str, greatest: u8) -> Option<u8> {
    text.parse().ok().filter(|value| *value <= greatest)
}

fn percent(text: &str) -> Option<Percent> {
    Percent::new(text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?)
}

/// Bytes a second as `64MiB/s`; less than a block a second would stop a disk.
fn rate(text: &str) -> Option<NonZeroU64> {
    let bytes = parse_bytes(text.strip_suffix("/s").unwrap_or(text)).ok()?;
    NonZeroU64::new(bytes).filter(|bytes| bytes.get() >= BLOCK_SIZE)
}

/// The same as text, exactly.
fn rate_text(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (name, unit) = units.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(("B", 1));
    format!("{}{name}/s", bytes / unit)
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The words of a policy's text, which commas or spaces divide: the name of a policy and `rule=value`. The value of `snapshots` has
/// commas and spaces of its own, and goes on to the next word with `=`.
pub fn policy_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()) {
        match words.last_mut().filter(|last| last.starts_with("snapshots=") && !word.contains('=')) {
            Some(schedule) if schedule.ends_with('=') => schedule.push_str(word),
            Some(schedule) => *schedule += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::DEFAULT
    }
}

/// The rules as `rule=value`, joined by commas, in the order of [`RULES`]. `bytes_limit` is left out where there is none, `snapshots` where
/// there is none and `compression` where it is off: records of levels below 3 and 4 do not have them.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_written = |rule: &&Rule| match rule.name {
            "bytes_limit" => self.bytes_limit.is_some(),
            "snapshots" => !self.snapshots.is_empty(),
            "compression" => self.compression != Compression::Off,
            _ => true,
        };
        for (index, rule) in RULES.iter().filter(is_written).enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", rule.name, self.get(rule.name).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Reads `single`, `stripes=2,iops_limit=500`, `single,stripes=2`: rules that are not given have the value of the
/// named policy, or of `default`. Spaces may stand instead of commas.
impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let mut policy = Policy::DEFAULT;
        let mut given: Vec<&'static str> = Vec::new();
        for (index, word) in policy_words(text).iter().enumerate() {
            let Some((name, value)) = word.split_once('=') else {
                let named = Policy::built_in(word).filter(|_| index == 0);
                policy = named.ok_or_else(|| PolicyError::UnknownName { word: word.clone() })?;
                continue;
            };
            policy.set(name, value)?;
            let rule = RULES.iter().find(|rule| rule.name == name).expect("the rule was set");
            if given.contains(&rule.name) {
                return Err(PolicyError::Twice { name: rule.name });
            }
            given.push(rule.name);
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests;
