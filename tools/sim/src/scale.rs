//! A large cluster's control plane: what each host's `core/cluster` sees and decides, on a virtual directory in virtual time.
//!
//! Hosts, disks and their records are real, and so is every decision; what stands on devices is only counted, and owners
//! are played: they have a silent component taken out, and fill those that come within a set time. One host dies. Measured is
//! what that costs: time until all is planned anew, writes of the directory, and what deciding takes of a processor and
//! of memory. Must decide nothing by itself that `core/cluster` decides.

mod bytes;
mod creation;
mod directory;
mod keeper;
mod measured;
mod owners;
mod report;
mod world;

pub use directory::{Traffic, Writes};
pub use measured::{Failure, Report, Span, Times};

use std::time::Duration;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Options {
    /// Hosts, each with one node and four capacity devices of 8 TiB in two groups.
    pub hosts: usize,
    /// Disks of 20 GiB, with 5 GiB of data.
    pub disks: usize,
    /// Decides everything else.
    pub seed: u64,
    /// The policy of the disks.
    pub policy: String,
    /// How disks are repaired.
    pub settings: cluster::Settings,
    /// Whether components stand in for absent ones.
    pub stand_ins: bool,
    /// Of 100 disks, those that are written to all the time: only their owners notice that a component is silent.
    pub written_percent: u64,
    /// How long it takes to fill a component.
    pub fill: Duration,
    /// How long nothing happens before the host dies.
    pub idle: Duration,
    /// How long disks are given to be whole again after the repair delay.
    pub patience: Duration,
    /// Is told how far it is, every ten virtual seconds and where something else begins.
    pub progress: fn(&str),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            hosts: 64,
            disks: 10_000,
            seed: 1,
            policy: "default".to_owned(),
            settings: cluster::Settings { delay: Duration::from_secs(60), ..cluster::Settings::default() },
            stand_ins: false,
            written_percent: 100,
            fill: Duration::from_secs(1),
            idle: Duration::from_secs(20),
            patience: Duration::from_secs(15 * 60),
            progress: |_| {},
        }
    }
}

/// Makes the cluster, loses a host, and waits until all disks are whole again.
///
/// # Errors
/// When the policy is none, or the disks do not fit.
pub fn run(options: &Options) -> Result<Report, String> {
    Ok(world::World::new(options.clone())?.run())
}

#[cfg(test)]
mod tests;
