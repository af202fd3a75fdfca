//! What is measured of a large cluster.

use super::directory::Traffic;
use base::{ComponentId, DiskId, HostId};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long something took each time, by this machine's clock: what other programs take of the processor is in it.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// How often.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        let count = u32::try_from(self.0.len().max(1)).unwrap_or(u32::MAX);
        self.0.iter().sum::<Duration>() / count
    }

    /// What `share` of a hundred stay below.
    pub fn percentile(&self, share: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * share).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }
}

/// A stretch of virtual time, what hosts decided in it, and what that cost.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// How long it was, in virtual nanoseconds.
    pub virtual_ns: u64,
    /// What the directory was asked for.
    pub traffic: Traffic,
    /// What it took a host to take over what is new and to decide, each time.
    pub decide: Times,
    /// The same where the host looked besides whether devices are even: one host does, every 10 s.
    pub balance: Times,
}

/// When the first and the last of several did something, in virtual nanoseconds after the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moments {
    /// The first.
    pub first_ns: u64,
    /// The last.
    pub last_ns: u64,
    /// How many.
    pub count: usize,
}

impl Moments {
    pub(super) fn of(lost_ns: u64, moments: impl Iterator<Item = u64>) -> Moments {
        let all: Vec<u64> = moments.map(|at| at.saturating_sub(lost_ns)).collect();
        Moments {
            first_ns: all.iter().min().copied().unwrap_or(0),
            last_ns: all.iter().max().copied().unwrap_or(0),
            count: all.len(),
        }
    }
}

/// What became of the components of the lost host.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// Components that stood there, and the disks that they were of.
    pub components: usize,
    /// See `components`.
    pub disks: usize,
    /// Disks whose owner was there.
    pub owned: usize,
    /// When hosts suspected it.
    pub suspect: Moments,
    /// When hosts counted it as away.
    pub away: Moments,
    /// When its components were out of the records, of those that were taken out.
    pub shrunk: Moments,
    /// When disks that it owned had another owner.
    pub claimed: Moments,
    /// When components got stand-ins.
    pub stood_in: Moments,
    /// When what replaces its components was recorded.
    pub planned: Moments,
    /// The most often that a component's replacement was recorded.
    pub plans_max: u32,
    /// When its components had been replaced.
    pub replaced: Moments,
    /// The most components of all disks that came at once.
    pub coming_max: usize,
    /// Decisions that no longer fitted to the record when they were to be carried out.
    pub objections: u64,
    /// From the loss until all was whole.
    pub span: Span,
    /// The part of it before anything was due to be replaced.
    pub before_delay: Traffic,
    /// What another ten seconds cost once all was whole.
    pub after: Traffic,
}

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Hosts.
    pub hosts: usize,
    /// Disks, and the components of all of them.
    pub disks: usize,
    /// See `disks`.
    pub components: usize,
    /// Virtual nanoseconds that a component may be missing.
    pub delay_ns: u64,
    /// Virtual nanoseconds that it takes to fill one.
    pub fill_ns: u64,
    /// What making the disks asked of the directory.
    pub creation: Traffic,
    /// What their first owners asked.
    pub opening: Traffic,
    /// How long it took to find a place for a disk while the cluster was filled.
    pub place: Times,
    /// And in the full cluster.
    pub place_full: Times,
    /// While nothing happened.
    pub idle: Span,
    /// Bytes that a host takes for what it knows, the mean and the most; not known where the allocator does not count.
    pub memory: Option<(usize, usize)>,
    /// The same when the repairs were under way.
    pub memory_repairing: Option<(usize, usize)>,
    /// The loss.
    pub failure: Failure,
}

/// What became of one component of the lost host.
#[derive(Debug, Clone, Default)]
pub(super) struct Lost {
    pub out_ns: Option<u64>,
    pub stood_in_ns: Option<u64>,
    pub planned_ns: Option<u64>,
    pub plans: u32,
    pub replaced_ns: Option<u64>,
}

/// What is followed after the loss.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub lost_ns: u64,
    pub lost: BTreeMap<(DiskId, ComponentId), Lost>,
    pub owned: BTreeMap<DiskId, Option<u64>>,
    pub suspect: BTreeMap<HostId, u64>,
    pub away: BTreeMap<HostId, u64>,
    pub coming: usize,
    pub coming_max: usize,
    pub objections: u64,
}

impl Ledger {
    /// Whether every component of the lost host has been replaced.
    pub fn is_done(&self) -> bool {
        self.lost.values().all(|one| one.replaced_ns.is_some())
    }

    /// How far it is at a moment, in words.
    pub fn progress(&self, now: u64) -> String {
        let count = |is: fn(&Lost) -> bool| self.lost.values().filter(|one| is(one)).count();
        format!(
            "{} s after the loss {} of {} components are planned anew, and {} replaced",
            now.saturating_sub(self.lost_ns) / 1_000_000_000,
            count(|one| one.planned_ns.is_some()),
            self.lost.len(),
            count(|one| one.replaced_ns.is_some())
        )
    }

    /// What became of the loss.
    pub fn failure(&self) -> Failure {
        let at = |moment: fn(&Lost) -> Option<u64>| {
            Moments::of(self.lost_ns, self.lost.values().filter_map(moment))
        };
        let disks: std::collections::BTreeSet<DiskId> = self.lost.keys().map(|(disk, _)| *disk).collect();
        Failure {
            components: self.lost.len(),
            disks: disks.len(),
            owned: self.owned.len(),
            suspect: Moments::of(self.lost_ns, self.suspect.values().copied()),
            away: Moments::of(self.lost_ns, self.away.values().copied()),
            shrunk: at(|one| one.out_ns),
            claimed: Moments::of(self.lost_ns, self.owned.values().filter_map(|at| *at)),
            stood_in: at(|one| one.stood_in_ns),
            planned: at(|one| one.planned_ns),
            plans_max: self.lost.values().map(|one| one.plans).max().unwrap_or(0),
            replaced: at(|one| one.replaced_ns),
            coming_max: self.coming_max,
            objections: self.objections,
            ..Failure::default()
        }
    }
}
