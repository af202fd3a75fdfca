//! What the command line has done by the program that it is part of.

use crate::demo::DemoOptions;
use api::types::{FoundCluster, FoundedView, JoinedView};
use failure::Failure;
use std::path::Path;

/// What is done on this machine, and not by asking a host that serves: whoever puts the program together says how.
pub trait Program {
    /// Runs a host until it is told to stop. `force`: devices are formatted even if they hold other data.
    ///
    /// # Errors
    /// Why it cannot start, or what ended it.
    fn run_host(&self, config: &Path, force: bool, json: bool) -> Result<(), Failure>;

    /// Watches over the process of a host, its parent, and tells the other hosts when it has ended. `data_dir`: where the host's
    /// certificate is.
    ///
    /// # Errors
    /// When the process cannot be watched.
    fn watch(&self, pid: u32, data_dir: &Path) -> Result<(), Failure>;

    /// Runs a demo.
    ///
    /// # Errors
    /// What stood in the way, and what to do.
    fn run_demo(&self, options: &DemoOptions, json: bool) -> Result<(), Failure>;

    /// Makes a cluster of the host of a configuration.
    ///
    /// # Errors
    /// When there is a cluster already, or something cannot be written.
    fn init(&self, asked: &FoundCluster) -> Result<FoundedView, Failure>;

    /// Gets the certificate of the host of a configuration. `is_again`: in place of one that it has.
    ///
    /// # Errors
    /// When the token is not good, nobody answers, or the host belongs to a cluster already.
    fn join(&self, config: &Path, token: &str, is_again: bool) -> Result<JoinedView, Failure>;

    /// Runs the member of etcd of the host of a configuration, until it is told to stop.
    ///
    /// # Errors
    /// When the configuration makes no sense, or the member's folder cannot be used.
    fn run_etcd(&self, config: &Path) -> Result<(), Failure>;

    /// The OpenAPI document of the API.
    fn document(&self) -> serde_json::Value;
}
