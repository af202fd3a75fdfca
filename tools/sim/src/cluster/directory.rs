//! A virtual directory: records with versions, compare-and-set, outcomes that get lost.

use super::plan::MS;
use super::snapshots::{Change, changes};
use super::world::{Event, World};
use base::{DiskId, NodeId};
use replication::Roster;
use replication::owner::Committed;
use std::collections::BTreeMap;

/// The incarnation of transactions that take effect late: nobody waits for their answers any more.
const NOBODY: u64 = u64::MAX;

/// Versions of a directory that was made anew have its generation above these bits: none of the former one is among them, as
/// none is of use where the record of the cluster is another.
pub(crate) const GENERATION_BITS: u32 = 40;

/// All records.
#[derive(Debug, Default)]
pub struct Directory {
    records: BTreeMap<DiskId, (u64, Roster)>,
    /// All that records ever were.
    history: BTreeMap<(DiskId, u64), Roster>,
    /// How often it was made anew.
    pub generation: u64,
    /// Whether its records are lost: it answers nobody until it is made anew.
    pub is_lost: bool,
    /// Until when it answers nobody.
    pub away_until: u64,
    /// Transactions that took effect.
    pub commits: u64,
    /// What became of snapshots with them, until somebody looks.
    pub(crate) snapshot_changes: Vec<(DiskId, Change)>,
}

impl Directory {
    /// Puts a record in place, as the creation of a disk does.
    pub fn preset(&mut self, disk: DiskId, roster: Roster) {
        self.history.insert((disk, 1), roster.clone());
        self.records.insert(disk, (1, roster));
    }

    /// It was restored from a snapshot.
    pub fn set_back(&mut self, snapshot: &BTreeMap<DiskId, (u64, Roster)>) {
        self.records = snapshot.clone();
    }

    /// It was lost, and these are its records now.
    pub fn make_anew(&mut self, records: BTreeMap<DiskId, Roster>) {
        self.generation += 1;
        self.is_lost = false;
        let version = (self.generation << GENERATION_BITS) + 1;
        for (disk, roster) in records {
            self.history.insert((disk, version), roster.clone());
            self.records.insert(disk, (version, roster));
        }
    }

    /// A record as it was in a version.
    pub fn was(&self, disk: DiskId, version: u64) -> Option<Roster> {
        self.history.get(&(disk, version)).cloned()
    }

    /// Until when it answers nobody.
    pub fn is_away_until(&self) -> u64 {
        if self.is_lost { u64::MAX } else { self.away_until }
    }

    /// Carries a compare-and-set out.
    pub fn commit(&mut self, disk: DiskId, expected: u64, roster: Roster) -> Committed {
        let (version, current) = self.records.get_mut(&disk).expect("disks are not deleted here");
        if *version != expected {
            return Committed::Conflict { version: *version, roster: current.clone() };
        }
        *version += 1;
        self.snapshot_changes.extend(changes(current, &roster).into_iter().map(|change| (disk, change)));
        self.history.insert((disk, *version), roster.clone());
        *current = roster;
        self.commits += 1;
        Committed::Done { version: *version }
    }

    /// A record.
    pub fn get(&self, disk: DiskId) -> Option<(u64, Roster)> {
        self.records.get(&disk).cloned()
    }

    /// All records that a disk ever had.
    pub fn all_of(&self, disk: DiskId) -> impl Iterator<Item = &Roster> {
        self.history.range((disk, 0)..=(disk, u64::MAX)).map(|(_, roster)| roster)
    }

    /// All disks.
    pub fn disks(&self) -> Vec<DiskId> {
        self.records.keys().copied().collect()
    }
}

impl World {
    /// Until when the directory hears nothing of a host.
    pub(crate) fn unheard_until(&self, host: usize) -> u64 {
        let is_former = self.hosts[host].copy.generation != self.directory.generation;
        let is_strange = is_former || self.has_seen_more(host);
        let until = if is_strange { u64::MAX } else { self.directory.is_away_until() };
        until.max(self.hosts[host].cut_off_until)
    }

    pub(crate) fn fetch_arrives(&mut self, host: usize, incarnation: u64, disk: DiskId) {
        let until = self.unheard_until(host);
        if until > self.now {
            return self.at(until, Event::Fetch { host, incarnation, disk });
        }
        let record = self.directory.get(disk);
        let delay = 1 + self.random.below(self.plan.directory_ns);
        let at = (self.now + delay).max(self.hosts[host].deaf_until);
        self.at(at, Event::Recorded { host, incarnation, disk, record });
    }

    pub(crate) fn commit_arrives(
        &mut self,
        (host, incarnation, number): (usize, u64, u64),
        disk: DiskId,
        expected: u64,
        roster: Roster,
    ) {
        let is_late = incarnation == NOBODY;
        let until = if is_late { self.directory.is_away_until() } else { self.unheard_until(host) };
        if until > self.now {
            // The request is lost, or carried out late: its sender is told after a while that nobody knows.
            if self.random.chance(1, 2) {
                self.at(until, Event::Commit { host, incarnation: NOBODY, disk, number, expected, roster });
            }
            let committed = Committed::Unknown;
            return self.later(500 * MS, Event::Committed { host, incarnation, disk, number, committed });
        }
        if let Some(joining) = self.joining(disk, &roster).filter(|_| self.is_faulty && self.plan.long_joins)
        {
            if self.long_join(host, joining) {
                self.directory.commit(disk, expected, roster);
            }
            let committed = Committed::Unknown;
            return self.later(500 * MS, Event::Committed { host, incarnation, disk, number, committed });
        }
        let has_faults = self.is_faulty && self.plan.directory_faults;
        let is_late_join = self.plan.late_joins && self.joining(disk, &roster).is_some();
        let rate = if is_late_join { 6 } else { 1 };
        if has_faults && !is_late && self.random.chance(rate, 16) {
            return self.delay_commit((host, incarnation, number), disk, expected, roster);
        }
        let is_claim = self.directory.get(disk).is_some_and(|(_, before)| before.epoch < roster.epoch);
        let committed = self.directory.commit(disk, expected, roster);
        let is_lost = has_faults && self.random.chance(1, 12) || self.hosts[host].deaf_until > self.now;
        let committed = if is_lost { Committed::Unknown } else { committed };
        let delay = 1 + self.random.below(self.plan.directory_ns);
        let delay = if is_lost { delay + 300 * MS } else { delay };
        self.say(|| format!("host {host}: {disk:?} commit {committed:?}"));
        if is_claim && self.plan.shaky_openings {
            self.shaky_opening(host, disk);
        }
        self.later(delay, Event::Committed { host, incarnation, disk, number, committed });
        self.push_record(disk);
    }

    /// A transaction takes effect long after its sender was told that nobody knows, and has read that nothing changed.
    fn delay_commit(
        &mut self,
        (host, incarnation, number): (usize, u64, u64),
        disk: DiskId,
        expected: u64,
        roster: Roster,
    ) {
        let at = self.now + 500 * MS + self.random.below(1500 * MS);
        self.say(|| format!("host {host}: {disk:?} commit from {expected} is late until {}", at / MS));
        if let Some(joining) = self.joining(disk, &roster).filter(|_| self.plan.late_joins) {
            self.late_join(host, joining, at);
        } else if let Some(joining) = self.joining(disk, &roster).filter(|_| self.random.chance(1, 2)) {
            // What holds it up is the network, which is not better elsewhere.
            let until = at.saturating_sub(self.random.below(300 * MS));
            let owner = self.hosts[host].id;
            self.network.cut(owner, joining, until);
            self.network.cut(joining, owner, until);
        }
        let committed = Committed::Unknown;
        self.later(300 * MS, Event::Committed { host, incarnation, disk, number, committed });
        self.at(at, Event::Commit { host, incarnation: NOBODY, disk, number, expected, roster });
    }

    /// The node of a component that a transaction is to make count.
    fn joining(&self, disk: DiskId, roster: &Roster) -> Option<NodeId> {
        let (_, before) = self.directory.get(disk)?;
        let is_active =
            |roster: &Roster, id| roster.member(id).is_some_and(|member| member.standing.counts());
        let mut joining = roster.members.iter().filter(|one| one.standing.counts());
        joining.find(|one| !is_active(&before, one.component)).map(|one| one.node)
    }

    /// Tells all hosts of a record, sooner or later.
    pub(crate) fn push_record(&mut self, disk: DiskId) {
        for host in 0..self.hosts.len() {
            let delay = 1 + self.random.below(20 * self.plan.directory_ns);
            let unreached_until = self.hosts[host].cut_off_until.max(self.hosts[host].deaf_until);
            let at = (self.now + delay).max(unreached_until);
            let (incarnation, record) = (self.hosts[host].incarnation, self.directory.get(disk));
            self.at(at, Event::Recorded { host, incarnation, disk, record });
        }
    }
}
