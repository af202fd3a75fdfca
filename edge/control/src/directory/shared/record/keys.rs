//! The keys of records, and how a record is read and set.

use super::super::Change;
use failure::Failure;
use serde::Serialize;

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

/// What a text says.
///
/// # Errors
/// What is wrong with it.
pub fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The change that sets a record.
///
/// # Errors
/// Never in practice: it is plain text.
pub fn set(key: String, expected: u64, record: &impl Serialize) -> Result<Change, Failure> {
    let value = serde_json::to_value(record).map_err(|error| Failure::failed("write a record", error))?;
    Ok(Change { key, expected, value: Some(value) })
}
