//! Who is believed in a cluster: its authorities, join tokens, and whose certificates count no more.
//!
//! No secret stands in them: of a token its hash, of an authority its certificate.

use super::super::{Change, Entry};
use super::level::{LEVEL, read};
use super::set;
use base::HostId;
use failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trust::{Identity, Name, Revoked, TokenRecord};

/// The record of the authorities.
pub const AUTHORITIES: &str = "authorities";
/// Where the records of join tokens begin.
pub const TOKENS: &str = "tokens/";
/// Where the records begin of hosts and people whose certificates count no more.
pub const REVOKED: &str = "revoked/";

/// The authorities of a cluster, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorities {
    /// Them.
    pub authorities: Vec<AuthorityRecord>,
    /// Hosts take another certificate if theirs was issued before this, in nanoseconds since 1970; zero: when it is time.
    #[serde(default)]
    pub renew_before_ns: u64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityRecord {
    /// Its certificate, PEM.
    pub certificate: String,
    /// The host that has its key, by id.
    pub keeper: String,
    /// When it was made, in nanoseconds since 1970.
    pub created_ns: u64,
    /// Whether it signs already: all hosts that were there believed it, and its keeper has its key.
    pub signs: bool,
}

impl Authorities {
    /// Their certificates as PEM, one after the other.
    pub fn pem(&self) -> String {
        self.authorities.iter().map(|one| one.certificate.as_str()).collect()
    }

    /// The one whose certificates hosts want: the newest that signs.
    pub fn signing(&self) -> Option<&AuthorityRecord> {
        self.authorities.iter().rev().find(|one| one.signs)
    }

    /// The change that makes this the record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        set(AUTHORITIES.to_owned(), expected, self)
    }
}

/// That somebody's certificates count no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// Those that were issued before this, in nanoseconds since 1970.
    pub before_ns: u64,
    /// Whose they are, for people.
    pub who: String,
}

/// The key of the record that says that somebody's certificates count no more.
pub fn revoked_key(who: &Identity) -> String {
    match who {
        Identity::Host { host, .. } => format!("{REVOKED}hosts/{host}"),
        Identity::Person { name, .. } => revoked_person(name.as_str()),
    }
}

/// The same of a person.
pub fn revoked_person(name: &str) -> String {
    format!("{REVOKED}people/{name}")
}

/// The key of a token's record.
pub fn token_key(record: &TokenRecord) -> String {
    format!("{TOKENS}{}", record.id)
}

/// All of these records, as a host last heard of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Believed {
    /// The authorities and the version of their record; nothing in a cluster without certificates.
    pub authorities: Option<(u64, Authorities)>,
    /// By their keys: whose certificates count no more.
    pub revoked: BTreeMap<String, Revocation>,
    /// By their keys: tokens, and the versions of their records.
    pub tokens: BTreeMap<String, (u64, TokenRecord)>,
}

impl Believed {
    /// Takes a record in; whether it is one of these.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn put(&mut self, entry: &Entry) -> Result<bool, String> {
        if entry.key == LEVEL {
            return Ok(false);
        }
        if entry.key == AUTHORITIES {
            self.authorities = Some((entry.version, read(entry)?));
        } else if entry.key.starts_with(TOKENS) {
            self.tokens.insert(entry.key.clone(), (entry.version, read(entry)?));
        } else if entry.key.starts_with(REVOKED) {
            self.revoked.insert(entry.key.clone(), read(entry)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// A record is gone.
    pub fn remove(&mut self, key: &str) {
        self.tokens.remove(key);
        self.revoked.remove(key);
        if key == AUTHORITIES {
            self.authorities = None;
        }
    }

    /// Whose certificates count no more.
    pub fn revoked(&self) -> Revoked {
        let mut revoked = Revoked::default();
        for (key, record) in &self.revoked {
            let Some((kind, whose)) = key.strip_prefix(REVOKED).and_then(|rest| rest.split_once('/')) else {
                continue;
            };
            match (kind, whose.parse::<HostId>(), whose.parse::<Name>()) {
                ("hosts", Ok(host), _) => drop(revoked.hosts.insert(host, record.before_ns)),
                ("people", _, Ok(name)) => drop(revoked.people.insert(name, record.before_ns)),
                (..) => tracing::error!("the record {key} names nobody"),
            }
        }
        revoked
    }
}
