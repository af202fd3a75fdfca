//! Virtual disks, as the program that the lab is part of knows them.

use super::{CommandError, ErrorKind};
use iostats::Statistics;

/// A virtual disk that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDisk {
    /// Its NBD address.
    pub address: String,
    /// Clients that are attached.
    pub clients: u64,
    /// What it is, in lines for people: its policy, its layout, where its components stand. It is kept with every result.
    pub about: Vec<String>,
}

/// Whoever knows virtual disks by their names.
pub trait VirtualDisks: Send + Sync {
    /// A disk by its name.
    ///
    /// # Errors
    /// When there is none, or nobody who knows.
    fn find(&self, name: &str) -> Result<FoundDisk, CommandError>;

    /// The I/O histograms of a disk since its host serves it.
    ///
    /// # Errors
    /// As [`VirtualDisks::find`].
    fn statistics(&self, name: &str) -> Result<Statistics, CommandError>;

    /// Makes a disk of `size` bytes; `policy` is a policy's name, rules, or both, as `drystone disk create --policy` takes them.
    ///
    /// # Errors
    /// When there is one of this name already, or its policy cannot be kept.
    fn create(&self, name: &str, size: u64, policy: &str) -> Result<(), CommandError>;

    /// Deletes a disk with all its data.
    ///
    /// # Errors
    /// When there is none, or it is in use.
    fn delete(&self, name: &str) -> Result<(), CommandError>;
}

/// Nobody: every disk is refused.
#[derive(Debug, Clone, Copy)]
pub struct NoDisks;

impl VirtualDisks for NoDisks {
    fn find(&self, name: &str) -> Result<FoundDisk, CommandError> {
        Err(refusal(name))
    }

    fn statistics(&self, name: &str) -> Result<Statistics, CommandError> {
        Err(refusal(name))
    }

    fn create(&self, name: &str, _size: u64, _policy: &str) -> Result<(), CommandError> {
        Err(refusal(name))
    }

    fn delete(&self, name: &str) -> Result<(), CommandError> {
        Err(refusal(name))
    }
}

fn refusal(name: &str) -> CommandError {
    CommandError::new(ErrorKind::Refused, format!("disk:{name}: this program has no virtual disks"))
        .hint("ask `drystone` on a host, or give the disk's NBD address")
}
