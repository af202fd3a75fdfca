//! The virtual directory: records with versions, changed by compare-and-set, followed by all hosts; heartbeats.
//!
//! It counts what it is asked to write. As in etcd (`docs/design/0012`): a version is the revision that wrote the record, a
//! heartbeat is a lease, and what it says is written when it is something new.

use super::bytes;
use base::{DiskId, HostId};
use cluster::{DiskRecord, HostRecord};
use replication::owner::OwnerState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a host that is silent is still heard of: the lease of `edge/etcd`.
const LEASE_NS: u64 = 5_000_000_000;

/// Writes of the directory, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Writes {
    /// How many.
    pub count: u64,
    /// Bytes of the keys and values that they set.
    pub bytes: u64,
}

impl Writes {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// These without the earlier ones.
    #[must_use]
    pub fn since(self, before: Writes) -> Writes {
        Writes { count: self.count - before.count, bytes: self.bytes - before.bytes }
    }
}

/// What the directory was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Records of disks.
    pub disks: Writes,
    /// Names of disks, in the same transaction as their first record.
    pub names: Writes,
    /// Records of hosts.
    pub hosts: Writes,
    /// What heartbeats said that was new.
    pub beats: Writes,
    /// The clock.
    pub clock: Writes,
    /// Changes that another one came before.
    pub conflicts: u64,
    /// Bytes of the heartbeats that hosts read.
    pub beats_read: u64,
}

impl Traffic {
    /// What came after `before`.
    #[must_use]
    pub fn since(&self, before: &Traffic) -> Traffic {
        Traffic {
            disks: self.disks.since(before.disks),
            names: self.names.since(before.names),
            hosts: self.hosts.since(before.hosts),
            beats: self.beats.since(before.beats),
            clock: self.clock.since(before.clock),
            conflicts: self.conflicts - before.conflicts,
            beats_read: self.beats_read - before.beats_read,
        }
    }
}

/// A record that changed.
#[derive(Debug, Clone)]
pub(super) enum News {
    Disk(Arc<DiskRecord>),
    Host(Arc<HostRecord>),
}

/// What a host said last.
#[derive(Debug, Clone)]
pub(super) struct Beat {
    pub at_ns: u64,
    pub links: Vec<(HostId, bool)>,
    pub owned: Arc<Vec<(DiskId, OwnerState)>>,
    bytes: u64,
}

impl Beat {
    /// When the host was heard of last, as the others see it now.
    pub fn heard_ns(&self, now_ns: u64) -> u64 {
        now_ns.min(self.at_ns + LEASE_NS)
    }
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Directory {
    revision: u64,
    disks: BTreeMap<DiskId, Arc<DiskRecord>>,
    hosts: BTreeMap<HostId, Arc<HostRecord>>,
    /// The host that made each disk.
    makers: BTreeMap<DiskId, HostId>,
    /// All changes since the last call of [`Directory::forget_news`], with their times.
    news: Vec<(u64, News)>,
    beats: BTreeMap<HostId, Beat>,
    pub traffic: Traffic,
}

impl Directory {
    /// A record.
    pub fn disk(&self, id: DiskId) -> Option<&Arc<DiskRecord>> {
        self.disks.get(&id)
    }

    /// All disks.
    pub fn disks(&self) -> &BTreeMap<DiskId, Arc<DiskRecord>> {
        &self.disks
    }

    /// All hosts.
    pub fn hosts(&self) -> &BTreeMap<HostId, Arc<HostRecord>> {
        &self.hosts
    }

    /// Records a new disk with its name.
    pub fn add_disk(&mut self, now_ns: u64, maker: HostId, record: DiskRecord) -> Arc<DiskRecord> {
        assert!(!self.disks.contains_key(&record.id), "ids are drawn once");
        self.traffic.names.add(bytes::of_name(&record));
        self.makers.insert(record.id, maker);
        self.store(now_ns, record)
    }

    /// Sets a disk's record if it has that version still.
    ///
    /// # Errors
    /// The record as it is, when it has another one.
    pub fn set_disk(
        &mut self,
        now_ns: u64,
        expected: u64,
        record: DiskRecord,
    ) -> Result<Arc<DiskRecord>, Arc<DiskRecord>> {
        let current = &self.disks[&record.id];
        if current.version != expected {
            self.traffic.conflicts += 1;
            return Err(Arc::clone(current));
        }
        Ok(self.store(now_ns, record))
    }

    fn store(&mut self, now_ns: u64, record: DiskRecord) -> Arc<DiskRecord> {
        assert_eq!(record.check(), Ok(()), "a record that is stored is whole");
        self.revision += 1;
        let record = Arc::new(DiskRecord { version: self.revision, ..record });
        self.traffic.disks.add(bytes::of_disk(&record, &self.hosts[&self.makers[&record.id]]));
        self.disks.insert(record.id, Arc::clone(&record));
        self.news.push((now_ns, News::Disk(Arc::clone(&record))));
        record
    }

    /// Sets a host's record, which only the host itself writes here, if it says something new.
    pub fn set_host(&mut self, now_ns: u64, record: HostRecord) {
        if self.hosts.get(&record.id).is_some_and(|known| **known == record) {
            return;
        }
        self.revision += 1;
        self.traffic.hosts.add(bytes::of_host(&record));
        let record = Arc::new(record);
        self.hosts.insert(record.id, Arc::clone(&record));
        self.news.push((now_ns, News::Host(record)));
    }

    /// Whether anything changed up to a moment after the first `known` changes.
    pub fn has_news(&self, known: usize, until_ns: u64) -> bool {
        self.news.get(known).is_some_and(|(at, _)| *at <= until_ns)
    }

    /// What changed up to a moment after the first `known` changes.
    pub fn news(&self, known: usize, until_ns: u64) -> impl Iterator<Item = &News> {
        self.news[known..].iter().take_while(move |(at, _)| *at <= until_ns).map(|(_, news)| news)
    }

    /// Forgets what all hosts know by now.
    pub fn forget_news(&mut self) {
        self.news.clear();
    }

    /// A host says that it is there.
    pub fn beat(
        &mut self,
        now_ns: u64,
        host: HostId,
        links: Vec<(HostId, bool)>,
        owned: Vec<(DiskId, OwnerState)>,
    ) {
        let value = bytes::of_beat(host, &links, &owned);
        let is_new = self
            .beats
            .get(&host)
            .is_none_or(|last| last.links != links || last.bytes != value || !is_same(&last.owned, &owned));
        if is_new {
            self.traffic.beats.add(value);
        }
        self.beats.insert(host, Beat { at_ns: now_ns, links, owned: Arc::new(owned), bytes: value });
        self.traffic.beats_read += self.beats.values().map(|beat| beat.bytes).sum::<u64>();
    }

    /// What hosts said last.
    pub fn beats(&self) -> &BTreeMap<HostId, Beat> {
        &self.beats
    }

    /// The clock is written on.
    pub fn write_clock(&mut self, now_ns: u64) {
        self.traffic.clock.add(bytes::of_clock(1_700_000_000_000_000_000 + now_ns));
    }
}

/// Whether two lists of disks say the same, as far as heartbeats tell it.
fn is_same(one: &[(DiskId, OwnerState)], other: &[(DiskId, OwnerState)]) -> bool {
    let told = |list: &[(DiskId, OwnerState)]| -> Vec<_> {
        let members = list.iter().flat_map(|(disk, owner)| {
            owner.members.iter().map(|one| (*disk, one.component, one.resync, one.trouble, one.is_open))
        });
        members.collect()
    };
    told(one) == told(other)
}
