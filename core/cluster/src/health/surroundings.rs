//! What health checks know beside the view: the directory, decisions, links and certificates.

use crate::balance::Balancer;
use crate::levels::RecordLevels;
use crate::limits::HEARTBEAT_SILENCE;
use crate::liveness::LinkReport;
use crate::repair::Repairs;
use base::{HostId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether the directory answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directory {
    /// It does.
    Reachable,
    /// It does not, since then.
    Unreachable {
        /// Since when.
        since: Instant,
    },
}

/// A member of the directory that does not answer this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentMember {
    /// Its address, as hosts are configured with it.
    pub address: String,
    /// Since when, by the directory's clock.
    pub since: Instant,
    /// The error.
    pub why: String,
    /// How many members are configured.
    pub members: usize,
}

/// What is known beside the view.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Now, by the directory's clock.
    pub now: Instant,
    /// Whether the directory answers.
    pub directory: Directory,
    /// What was decided about repairs.
    pub repairs: &'a Repairs,
    /// What was decided about evening out.
    pub balancer: &'a Balancer,
    /// Members of the directory that do not answer, though the directory does.
    pub silent_members: &'a [SilentMember],
    /// Which hosts do not reach each other.
    pub links: &'a Links,
    /// The certificates that are known, by the same clock.
    pub certificates: &'a [Lifespan],
    /// The level of the records, and who understands it.
    pub levels: &'a RecordLevels,
}

/// Links between live hosts that are down, and since when.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// By reporter and the host at the other end.
    pub(super) down: BTreeMap<(HostId, HostId), Instant>,
}

impl Links {
    /// Takes in the last reports of hosts, and when each host was last seen.
    pub fn step(&mut self, now: Instant, reports: &[LinkReport], last_seen: &BTreeMap<HostId, Instant>) {
        let is_seen =
            |host: &HostId| last_seen.get(host).is_some_and(|at| now.since(*at) <= HEARTBEAT_SILENCE);
        let is_down = |one: &&LinkReport| !one.is_up && is_seen(&one.reporter) && is_seen(&one.about);
        let down = reports.iter().filter(is_down).map(|one| {
            let key = (one.reporter, one.about);
            (key, self.down.get(&key).copied().unwrap_or(now))
        });
        self.down = down.collect();
    }
}

/// Whose certificate it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// A host's.
    Host(HostId),
    /// An authority's, by the SHA-256 of its certificate.
    Authority(String),
}

/// The validity of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifespan {
    /// Whose.
    pub holder: Holder,
    /// When it was made.
    pub issued: Instant,
    /// Its end.
    pub ends: Instant,
}

impl Lifespan {
    /// From its beginning to its end.
    pub(super) fn life(&self) -> Duration {
        self.ends.since(self.issued)
    }

    /// When so many hundredths of its life are left.
    pub(super) fn with_left(&self, hundredths: u32) -> Instant {
        self.issued + self.life() / 100 * (100 - hundredths)
    }
}
