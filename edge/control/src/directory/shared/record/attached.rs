//! At which hosts clients have a disk.
//!
//! One record of each disk that is attached, so that one compare-and-set decides between hosts. What claims mean is the
//! business of the crate `cluster`.

use super::super::{Change, Entry};
use super::level::unread;
use super::{ATTACHED, parsed, read};
use ::cluster::{Claim, Handover};
use base::{DiskId, Instant};
use failure::Failure;
use serde::{Deserialize, Serialize};

/// The claims of a disk, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    /// The version of the record that says so, or of its removal.
    pub version: u64,
    /// Them; none when there is no record.
    pub claims: Vec<Claim>,
    /// The host that may have the disk, too. From level 6 on.
    pub handover: Option<Handover>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAttached {
    hosts: Vec<StoredClaim>,
    /// From level 6 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handover: Option<StoredHandover>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHandover {
    to: String,
    until_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredClaim {
    host: String,
    incarnation: u64,
}

impl Attached {
    /// The key of a disk's record.
    pub fn key(disk: DiskId) -> String {
        format!("{ATTACHED}{disk}")
    }

    /// What the record says with other claims. A handover ends once no other host than that has the disk.
    pub fn with(&self, version: u64, claims: &[Claim]) -> Attached {
        let handover = self.handover.filter(|handover| handover.goes_on(claims));
        Attached { version, claims: claims.to_vec(), handover }
    }

    /// The change that makes `claims` the record, if it says this still. Without claims there is no record.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, disk: DiskId, claims: &[Claim]) -> Result<Change, Failure> {
        let (key, expected) = (Attached::key(disk), if self.claims.is_empty() { 0 } else { self.version });
        if claims.is_empty() {
            return Ok(Change { key, expected, value: None });
        }
        let claim = |one: &Claim| StoredClaim { host: one.host.to_string(), incarnation: one.incarnation };
        let handover = self.with(self.version, claims).handover;
        let handover = handover.map(|one| StoredHandover { to: one.to.to_string(), until_ns: one.until.0 });
        super::set(key, expected, &StoredAttached { hosts: claims.iter().map(claim).collect(), handover })
    }

    /// What a record says.
    ///
    /// # Errors
    /// When it makes no sense, or names nobody.
    pub fn read(entry: &Entry) -> Result<(DiskId, Attached), String> {
        let disk = parsed(entry.key.strip_prefix(ATTACHED).unwrap_or_default());
        let disk = disk.map_err(|why| unread(&entry.key, why))?;
        let stored: StoredAttached = read(entry)?;
        if stored.hosts.is_empty() {
            return Err(unread(&entry.key, "it names no host"));
        }
        let claim = |one: StoredClaim| {
            Ok::<_, String>(Claim { host: parsed(&one.host)?, incarnation: one.incarnation })
        };
        let claims = stored.hosts.into_iter().map(claim).collect::<Result<_, _>>();
        let claims = claims.map_err(|why| unread(&entry.key, why))?;
        let handover = stored
            .handover
            .map(|one| Ok::<_, String>(Handover { to: parsed(&one.to)?, until: Instant(one.until_ns) }));
        let handover = handover.transpose().map_err(|why| unread(&entry.key, why))?;
        Ok((disk, Attached { version: entry.version, claims, handover }))
    }
}
