//! The records that hosts keep in the directory that they share: hosts, disks, the names of disks, where they are attached,
//! policies, settings, silences, who is believed, the level of all of them, and who understands it.
//!
//! JSON as in the directory of one host; `docs/formats/directory.md` has all keys. What a record means, and what it may
//! become, is the business of the crate `cluster`: here is only its form. A disk's name is a record of its own, so that no
//! two disks get one name.

mod attached;
mod believed;
mod disk;
mod host;
mod level;
mod settings;
mod silences;
#[cfg(test)]
mod tests;

pub use attached::Attached;
pub use believed::{
    AUTHORITIES, Authorities, AuthorityRecord, Believed, REVOKED, Revocation, TOKENS, read, revoked_key, set,
    token_key,
};
pub use disk::{ClusterDisk, engine_record};
pub use host::{ClusterHost, HostCertificate};
pub use level::{CEILINGS, ClusterLevel, LEVEL, OURS, PROGRAMS, Program, check as check_level, unread};
pub use settings::ClusterSettings;
pub use silences::{SILENCES, Silences, StoredSilence};

use super::super::PolicyEntry;
use super::super::record::StoredPolicy;
use super::Entry;
use serde_json::Value;

/// Where the records of hosts begin.
pub const HOSTS: &str = "hosts/";
/// Where the records of disks begin.
pub const DISKS: &str = "disks/";
/// Where the names of disks begin.
pub const NAMES: &str = "names/";
/// Where the records of policies begin.
pub const POLICIES: &str = "policies/";
/// Where the records begin of the hosts at which disks are attached.
pub const ATTACHED: &str = "attached/";
/// The record of the cluster itself, in etcd.
pub const CLUSTER: &str = "cluster";
/// The record of the cluster's settings.
pub const SETTINGS: &str = "settings";

/// The key of a policy.
pub fn policy_key(name: &str) -> String {
    format!("{POLICIES}{name}")
}

/// A policy's record.
///
/// # Errors
/// Never in practice: it is plain text.
pub fn policy_value(policy: &PolicyEntry) -> Result<Value, serde_json::Error> {
    serde_json::to_value(StoredPolicy::from(policy))
}

/// The policy that a record tells of.
///
/// # Errors
/// When it makes no sense.
pub fn read_policy(entry: &Entry) -> Result<PolicyEntry, String> {
    let stored: StoredPolicy = read(entry)?;
    PolicyEntry::try_from(stored)
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
