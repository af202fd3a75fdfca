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
}

fn refusal(name: &str) -> CommandError {
    CommandError::new(ErrorKind::Refused, format!("disk:{name}: this program has no virtual disks"))
        .hint("ask `drystone` on a host, or give the disk's NBD address")
}
