//! Virtual disks, as the program that the lab is part of knows them.

use super::{CommandError, ErrorKind};
use crate::system::Exporter;
use iostats::Statistics;
use std::sync::Arc;

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

/// Makes the text that a scrape is answered with.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// Whoever knows virtual disks by their names, and speaks HTTP for the lab.
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

    /// Metrics of the host whose disks these are, or those at an address (`http://HOST:PORT/PATH`, `unix:PATH`).
    ///
    /// # Errors
    /// When the address is none.
    fn exporter(&self, address: Option<&str>) -> Result<Box<dyn Exporter>, CommandError>;

    /// Serves a text over HTTP as `/metrics` at `address` (ADDRESS:PORT), as long as this program runs. Returns the address.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    fn serve(&self, address: &str, text: MetricsText) -> Result<String, CommandError>;
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

    fn serve(&self, _address: &str, _text: MetricsText) -> Result<String, CommandError> {
        let text = "this program cannot serve metrics";
        Err(CommandError::new(ErrorKind::Refused, text).hint("use `drystone lab`"))
    }

    fn exporter(&self, _address: Option<&str>) -> Result<Box<dyn Exporter>, CommandError> {
        let text = "this program cannot watch metrics";
        Err(CommandError::new(ErrorKind::Refused, text).hint("use `drystone lab`"))
    }
}

fn refusal(name: &str) -> CommandError {
    CommandError::new(ErrorKind::Refused, format!("disk:{name}: this program has no virtual disks"))
        .hint("ask `drystone` on a host, or give the disk's NBD address")
}
