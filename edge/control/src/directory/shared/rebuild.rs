//! A new directory for a cluster that lost its own, written as a whole: without the record `cluster` it is none.
//!
//! Relies on the crate `etcd` for all that etcd needs. Must never change anything where there is a cluster.

use super::etcd::{ClusterRecord, InEtcd};
use super::record::{AUTHORITIES, Authorities, CLUSTER, ClusterSettings, HOSTS, SETTINGS};
use super::{Change, Entry};
use base::{ClusterId, HostId};
use etcd::Committed;
use failure::{Code, Failure};
use serde::Serialize;
use std::time::Duration;

/// The record that is there while a directory is being rebuilt. Each step sets it from the version that the step before gave it.
const REBUILDING: &str = "rebuilding";
/// Records of one step; with the record of the step itself, and the one that must not be there, what one transaction takes.
const STEP_RECORDS: usize = etcd::CHANGES_MAX - 2;
/// Bytes of one step, beyond its first record: a request to etcd is refused above 1.5 MiB.
const STEP_BYTES: usize = 512 << 10;

/// Who rebuilds.
#[derive(Debug, Clone, Serialize)]
struct Rebuilding<'a> {
    generation: u64,
    host: &'a str,
}

/// What stands where a directory is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// Nothing.
    Free,
    /// What an interrupted rebuild left.
    Leftovers(usize),
}

/// A host that stands alone, and its cluster of one.
#[derive(Debug, Clone, Copy)]
pub struct Alone {
    /// The cluster.
    pub cluster: ClusterId,
    /// The host.
    pub host: HostId,
}

impl Alone {
    /// Whether records in etcd were left by an attempt of this host: they are of its cluster, and no other host is in them.
    fn may_replace(self, found: &ClusterRecord, left: &[etcd::Record]) -> bool {
        let hosts = left.iter().filter_map(|record| record.key.strip_prefix(HOSTS));
        let host = self.host.to_string();
        found.id == self.cluster.to_string() && hosts.into_iter().all(|id| id == host)
    }
}

impl InEtcd {
    /// What stands where the new directory is to be. `of_one`: asked by a host that stands alone. What stands there of its
    /// cluster was left by an attempt whose end it did not hear of.
    ///
    /// # Errors
    /// [`Code::Conflict`] when a cluster does, or records of which nobody knows whose they are.
    pub async fn ground(&self, of_one: Option<Alone>) -> Result<Ground, Failure> {
        let left = self.left(of_one).await?;
        Ok(if left.is_empty() { Ground::Free } else { Ground::Leftovers(left.len()) })
    }

    /// What an interrupted rebuild left, and nothing else.
    async fn left(&self, of_one: Option<Alone>) -> Result<Vec<etcd::Record>, Failure> {
        let left = self.etcd.list().await.map_err(|error| self.away(&error))?.records;
        if let Some(record) = left.iter().find(|record| record.key == CLUSTER) {
            let found = self.read_cluster(record)?;
            if of_one.is_some_and(|ours| ours.may_replace(&found, &left)) {
                return Ok(left);
            }
            return Err(Failure::new(
                Code::Conflict,
                format!(
                    "{} holds the cluster `{}` ({}), generation {}",
                    self.place, found.name, found.id, found.generation
                ),
            )
            .hint("if it is this cluster's new directory: restart the hosts' services, one after another; if it is what a snapshot brought back and hosts refuse it: delete these keys with etcdctl, then rebuild"));
        }
        match left.first() {
            Some(first) if left.iter().all(|record| record.key != REBUILDING) => Err(Failure::new(
                Code::Conflict,
                format!("{} holds records, `{}` for one, and no cluster", self.place, first.key),
            )
            .hint("nobody knows whose they are: if they are of no use, delete them with etcdctl")),
            Some(_) | None => Ok(left),
        }
    }

    /// Makes the directory of a cluster of what its only host kept while it stood alone. What it tells of itself comes along: it
    /// may be serving.
    ///
    /// # Errors
    /// As for [`InEtcd::rebuild`].
    pub async fn take_over(
        &self,
        record: &ClusterRecord,
        (alone, host): (Alone, &str),
        records: Vec<Entry>,
        authorities: &Authorities,
    ) -> Result<(), Failure> {
        let mut entries = records;
        let mut add = |key: &str, value| entries.push(Entry { key: key.to_owned(), version: 0, value });
        let failed = |error| Failure::failed("write a record", error);
        add(AUTHORITIES, serde_json::to_value(authorities).map_err(failed)?);
        if !entries.iter().any(|one| one.key == SETTINGS) {
            let settings = ClusterSettings::of_new_cluster();
            let value = serde_json::to_value(settings).map_err(failed)?;
            entries.push(Entry { key: SETTINGS.to_owned(), version: 0, value });
        }
        self.rebuild_over(Some(alone), record, host, entries).await
    }

    /// Makes the directory of these records. What an interrupted attempt left goes first.
    ///
    /// # Errors
    /// When somebody else makes one, or etcd does not answer: then it is to be tried again.
    pub async fn rebuild(
        &self,
        record: &ClusterRecord,
        host: &str,
        entries: Vec<Entry>,
    ) -> Result<(), Failure> {
        self.rebuild_over(None, record, host, entries).await
    }

    async fn rebuild_over(
        &self,
        of_one: Option<Alone>,
        record: &ClusterRecord,
        host: &str,
        entries: Vec<Entry>,
    ) -> Result<(), Failure> {
        let step = Rebuilding { generation: record.generation, host };
        let step = serde_json::to_value(&step).map_err(|error| Failure::failed("write a record", error))?;
        // Asked again: somebody else may have made one since.
        let left = self.left(of_one).await?;
        let of_step = left.iter().find(|record| record.key == REBUILDING);
        let mut steps = Steps { etcd: self, step, version: of_step.map_or(0, |found| found.version) };
        if let Some(unused) = left.iter().find(|record| record.key == CLUSTER) {
            steps.begin_over(unused).await?;
        }
        let leftovers = left.iter().filter(|record| ![REBUILDING, CLUSTER].contains(&record.key.as_str()));
        let leftovers =
            leftovers.map(|one| Change { key: one.key.clone(), expected: one.version, value: None });
        steps.all(leftovers.collect()).await?;
        let set = |entry: Entry| Change { key: entry.key, expected: 0, value: Some(entry.value) };
        steps.all(entries.into_iter().map(set).collect()).await?;
        steps.end(record).await
    }
}

struct Steps<'a> {
    etcd: &'a InEtcd,
    step: serde_json::Value,
    version: u64,
}

impl Steps<'_> {
    async fn all(&mut self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for change in changes {
            let change = etcd::Change {
                key: change.key,
                expected: change.expected,
                value: change.value.map(|value| value.to_string().into_bytes()),
            };
            let size = change.key.len() + change.value.as_ref().map_or(0, Vec::len);
            if batch.len() == STEP_RECORDS || (!batch.is_empty() && bytes + size > STEP_BYTES) {
                self.one(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += size;
            batch.push(change);
        }
        self.one(batch).await
    }

    /// The record of a cluster that no host uses goes: from then on its records are leftovers.
    async fn begin_over(&mut self, unused: &etcd::Record) -> Result<(), Failure> {
        let gone = etcd::Change { key: CLUSTER.to_owned(), expected: unused.version, value: None };
        self.commit(vec![gone]).await
    }

    /// One step: these changes, and the record that says that it was done by who did the one before; nothing where there is a
    /// cluster.
    async fn one(&mut self, mut changes: Vec<etcd::Change>) -> Result<(), Failure> {
        changes.push(etcd::Change { key: CLUSTER.to_owned(), expected: 0, value: None });
        self.commit(changes).await
    }

    async fn commit(&mut self, mut changes: Vec<etcd::Change>) -> Result<(), Failure> {
        let value = Some(self.step.to_string().into_bytes());
        changes.push(etcd::Change { key: REBUILDING.to_owned(), expected: self.version, value });
        match self.etcd.etcd.commit(&changes, Duration::ZERO).await {
            Ok(Committed::Done { version }) => {
                self.version = version;
                Ok(())
            }
            Ok(Committed::Conflict { .. }) => Err(somebody_else()),
            Err(error) => Err(again(self.etcd.away(&error))),
        }
    }

    async fn end(self, record: &ClusterRecord) -> Result<(), Failure> {
        let value = serde_json::to_vec(record).map_err(|error| Failure::failed("write a record", error))?;
        let changes = [
            etcd::Change { key: REBUILDING.to_owned(), expected: self.version, value: None },
            etcd::Change { key: CLUSTER.to_owned(), expected: 0, value: Some(value) },
        ];
        match self.etcd.etcd.commit(&changes, Duration::ZERO).await {
            Ok(Committed::Done { .. }) => Ok(()),
            Ok(Committed::Conflict { .. }) => Err(somebody_else()),
            // It may have happened all the same.
            Err(error) => match self.etcd.found().await? {
                Some(found) if found == *record => Ok(()),
                Some(_) | None => Err(again(self.etcd.away(&error))),
            },
        }
    }
}

fn somebody_else() -> Failure {
    Failure::new(Code::Conflict, "somebody else rebuilds the directory at the same time")
        .hint("see `drystone status`; if nobody does, try again")
}

fn again(failure: Failure) -> Failure {
    Failure { error: format!("the new directory is not complete: {}", failure.error), ..failure }
        .hint("run the same command again: what is there is removed first")
}
