//! The directory in etcd: the records of a cluster below one prefix, bound to the one that names the cluster.
//!
//! Relies on the crate `etcd` for all that etcd needs. Must never take what another cluster, or nobody, has there for the
//! cluster's own records: an etcd that was wiped looks like one in which every disk was deleted.

use super::record::{AUTHORITIES, Authorities, CLUSTER};
use super::{Attendees, Beat, Change, Changes, Entry, Heard, Outcome};
use crate::failure::{Code, Failure};
use crate::limits::{DIRECTORY_WAIT, WATCH_WAIT};
use base::ClusterId;
use etcd::{Committed, Error, Etcd, News, Options, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What to do when etcd lacks what it had.
const DATA_BACK: &str = "bring back the data that etcd had, or a member that has it: a snapshot from before the last change may call \
                         copies current that are not; nothing is changed, and disks are served as they are, until then";
/// How late the common clock may be, as a host counts it (`edge/etcd/src/clock.rs`): the pause between two heartbeats, and what
/// it may be longer.
const CLOCK_LATE_MAX_NS: i64 = 1_500_000_000;
/// Differences of clocks are told in such steps. Far less than what is worth a finding.
const CLOCK_STEP_NS: i64 = 500_000_000;

/// The record of the cluster itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRecord {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Seconds since 1970.
    pub created: u64,
}

/// The records of one cluster in etcd.
pub struct InEtcd {
    etcd: Etcd,
    /// The endpoints and the prefix, for people.
    place: String,
    /// The cluster, once it is known.
    cluster: Mutex<Option<ClusterRecord>>,
}

impl InEtcd {
    /// A way to it; nothing is connected yet.
    ///
    /// # Errors
    /// When a file for TLS cannot be read.
    pub fn new(options: &Options) -> Result<InEtcd, Failure> {
        let place = format!("etcd at {} below {}", options.endpoints.join(" "), options.prefix);
        let etcd = Etcd::new(options.clone()).map_err(|error| {
            Failure::refused(error.to_string()).hint("correct [cluster.etcd] in the configuration")
        })?;
        Ok(InEtcd { etcd, place, cluster: Mutex::default() })
    }

    /// Whether a cluster can be made there.
    ///
    /// # Errors
    /// [`Code::Conflict`] when there is one already.
    pub async fn check_free(&self) -> Result<(), Failure> {
        if let Some(found) = self.found().await? {
            return Err(Failure::new(
                Code::Conflict,
                format!("{} holds the cluster `{}` ({}) already", self.place, found.name, found.id),
            )
            .hint("a host becomes one of it by the same [cluster] in its configuration; another cluster needs a prefix of its own"));
        }
        let left = self.etcd.list().await.map_err(|error| self.away(&error))?;
        if let Some(left) = left.records.first() {
            return Err(Failure::refused(format!(
                "{} holds records, `{}` for one, but not the one of a cluster",
                self.place, left.key
            ))
            .hint("name another prefix, or remove what is left there"));
        }
        Ok(())
    }

    /// Makes a cluster: the first records, where none are.
    ///
    /// # Errors
    /// [`Code::Conflict`] when there is one already.
    pub async fn make(&self, record: &ClusterRecord, authorities: &Authorities) -> Result<(), Failure> {
        self.check_free().await?;
        let failed = |error: serde_json::Error| Failure::failed("write a record", error);
        let first = [
            (CLUSTER, serde_json::to_vec(record).map_err(failed)?),
            (AUTHORITIES, serde_json::to_vec(authorities).map_err(failed)?),
        ];
        let change = |(key, value): (&str, Vec<u8>)| etcd::Change {
            key: key.to_owned(),
            expected: 0,
            value: Some(value),
        };
        match self.etcd.commit(&first.map(change)).await {
            Ok(Committed::Done { .. }) => Ok(()),
            Ok(Committed::Conflict { .. }) => Err(Failure::new(
                Code::Conflict,
                format!("somebody else made a cluster in {} just now", self.place),
            )),
            // It may have happened all the same.
            Err(error) => match self.found().await? {
                Some(found) if found == *record => Ok(()),
                Some(_) | None => Err(self.away(&error)),
            },
        }
    }

    /// The record of the cluster as it is now.
    async fn found(&self) -> Result<Option<ClusterRecord>, Failure> {
        let record = self.etcd.get(CLUSTER).await.map_err(|error| self.away(&error))?;
        record.as_ref().map(|record| self.read_cluster(record)).transpose()
    }

    fn read_cluster(&self, record: &Record) -> Result<ClusterRecord, Failure> {
        let read: ClusterRecord = serde_json::from_slice(&record.value).map_err(|error| {
            Failure::failed(format!("read the record `{CLUSTER}` of {}", self.place), error)
        })?;
        read.id
            .parse::<ClusterId>()
            .map_err(|error| Failure::failed(format!("read the cluster's id in {}", self.place), error))?;
        Ok(read)
    }

    fn away(&self, error: &Error) -> Failure {
        match error {
            Error::Silent(_) => {
                Failure::new(Code::Unreachable, format!("the directory does not answer: {error}")).hint(
                    "start etcd, or correct [cluster.etcd]: endpoints, authorities, certificate and key",
                )
            }
            Error::Foreign(_) => {
                let ours = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
                let ours =
                    ours.as_ref().map_or_else(String::new, |ours| format!(" `{}` ({})", ours.name, ours.id));
                Failure::refused(format!(
                    "{} does not hold the records of this cluster{ours} any more",
                    self.place
                ))
                .hint(DATA_BACK)
            }
            Error::Older { .. } => Failure::refused(format!("{}: {error}", self.place)).hint(DATA_BACK),
            Error::Refused(_) | Error::File(..) | Error::TooMany(_) | Error::Odd(_) => {
                Failure::failed(format!("use {}", self.place), error)
            }
        }
    }

    /// See [`super::Shared::get`].
    pub(super) async fn get(&self, key: &str) -> Result<Option<Entry>, Failure> {
        let found = tokio::time::timeout(DIRECTORY_WAIT, self.etcd.get(key)).await;
        let found = found.unwrap_or_else(|_| Err(silent())).map_err(|error| self.away(&error))?;
        Ok(found.map(entry))
    }

    /// See [`super::Shared::commit`].
    pub(super) async fn commit(&self, changes: &[Change]) -> Outcome {
        let changes = changes.iter().map(|change| etcd::Change {
            key: change.key.clone(),
            expected: change.expected,
            value: change.value.as_ref().map(|value| value.to_string().into_bytes()),
        });
        let changes: Vec<etcd::Change> = changes.collect();
        let ended = tokio::time::timeout(DIRECTORY_WAIT, self.etcd.commit(&changes)).await;
        match ended.unwrap_or_else(|_| Err(silent())) {
            Ok(Committed::Done { version }) => Outcome::Done { version },
            Ok(Committed::Conflict { current }) => {
                Outcome::Conflict { current: current.into_iter().map(entry).collect() }
            }
            // Whoever asked reads the record again, and then knows.
            Err(error) => {
                tracing::warn!("a change of the directory was not confirmed: {error}");
                Outcome::Unknown
            }
        }
    }

    /// See [`super::Shared::watch`].
    pub(super) async fn watch(&self, revision: Option<u64>) -> Result<Changes, Failure> {
        let news = self.etcd.watch(revision, WATCH_WAIT).await.map_err(|error| self.away(&error))?;
        let cluster = match news.is_complete {
            true => self.bind(&news)?,
            false => self.known()?,
        };
        Ok(Changes {
            cluster,
            revision: news.revision,
            is_complete: news.is_complete,
            entries: news.records.into_iter().map(entry).collect(),
            gone: news.gone,
        })
    }

    /// The cluster that all records say they are of; from now on no others count.
    fn bind(&self, news: &News) -> Result<String, Failure> {
        let Some(record) = news.records.iter().find(|record| record.key == CLUSTER) else {
            return Err(Failure::refused(format!("{} holds no cluster", self.place))
                .hint("make one with `drystone cluster init --config FILE`, or correct [cluster.etcd]"));
        };
        let read = self.read_cluster(record)?;
        let id = read.id.clone();
        self.etcd.bind(record);
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(id)
    }

    fn known(&self) -> Result<String, Failure> {
        let cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let id = cluster.as_ref().map(|cluster| cluster.id.clone());
        id.ok_or_else(|| Failure::new(Code::Failed, "the directory was watched before it was read"))
    }

    /// See [`super::Shared::beat`].
    pub(super) async fn beat(&self, beat: &Beat) -> Result<Attendees, Failure> {
        let told = Beat { clock_ahead_ns: coarse(beat.clock_ahead_ns), ..beat.clone() };
        let value = serde_json::to_vec(&told).map_err(|error| Failure::failed("write a heartbeat", error))?;
        let seen = tokio::time::timeout(DIRECTORY_WAIT, self.etcd.beat(&beat.host, &value)).await;
        let seen = seen.unwrap_or_else(|_| Err(silent())).map_err(|error| self.away(&error))?;
        // Whoever tells what cannot be read, of another version perhaps, is there all the same.
        let nothing = |host| Beat { host, links: BTreeMap::new(), clock_ahead_ns: 0, owned: Vec::new() };
        let heard = seen.members.into_iter().map(|(host, at_ns, value)| {
            let beat = serde_json::from_slice(&value).unwrap_or_else(|_| nothing(host));
            Heard { at_ns, beat }
        });
        Ok(Attendees { now_ns: seen.now_ns, since_ns: seen.since_ns, heard: heard.collect() })
    }
}

/// A difference of clocks as it is told: what of it is certain, and in steps, so that what changes by microseconds each
/// second is not written each second.
fn coarse(ahead_ns: i64) -> i64 {
    let ahead_ns = if ahead_ns > 0 { (ahead_ns - CLOCK_LATE_MAX_NS).max(0) } else { ahead_ns };
    let half = CLOCK_STEP_NS / 2 * ahead_ns.signum();
    ahead_ns.saturating_add(half) / CLOCK_STEP_NS * CLOCK_STEP_NS
}

fn silent() -> Error {
    Error::Silent(format!("nothing within {} s", DIRECTORY_WAIT.as_secs()))
}

/// A record that is no JSON stands for nothing that could be read, and is told of by whoever reads it.
fn entry(record: Record) -> Entry {
    let value = serde_json::from_slice(&record.value).unwrap_or(Value::Null);
    Entry { key: record.key, version: record.version, value }
}
