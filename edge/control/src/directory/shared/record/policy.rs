//! Policies that people made.

use super::super::super::PolicyEntry;
use super::super::super::record::StoredPolicy;
use super::super::Entry;
use super::keys::POLICIES;
use super::read;
use serde_json::Value;

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
