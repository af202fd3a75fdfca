//! The records that hosts keep in the directory that they share: hosts, disks, the names of disks, where they are attached,
//! policies, settings, silences, people with passwords, who is believed, the level of all of them, and who understands it.
//!
//! JSON as in the directory of one host; `docs/formats/directory.md` has all keys. What a record means, and what it may
//! become, is the business of the crate `cluster`: here is only its form. A disk's name is a record of its own, so that no
//! two disks get one name.

mod attached;
mod believed;
mod disk;
mod host;
mod keys;
mod level;
mod people;
mod policy;
mod rollback;
mod settings;
mod silences;
mod snapshots;
#[cfg(test)]
mod tests;

pub use attached::Attached;
pub use believed::{
    AUTHORITIES, Authorities, AuthorityRecord, Believed, REVOKED, Revocation, TOKENS, revoked_key,
    revoked_person, token_key,
};
pub use disk::{ClusterDisk, engine_record};
pub use host::{ClusterHost, HostCertificate};
pub use keys::{ATTACHED, CLUSTER, DISKS, HOSTS, NAMES, POLICIES, SETTINGS, parsed, set};
pub use level::{CEILINGS, ClusterLevel, LEVEL, OURS, PROGRAMS, Program, check as check_level, read, unread};
pub use people::{PEOPLE, PersonRecord};
pub use policy::{policy_key, policy_value, read_policy};
pub use settings::ClusterSettings;
pub use silences::{SILENCES, Silences, StoredSilence};
