//! The directory in etcd: the records of a cluster below one prefix, bound to the one that names the cluster.
//!
//! Relies on the crate `etcd` for all that etcd needs. Must never take what another cluster, or nobody, has there for the
//! cluster's own records: an etcd that was wiped looks like one in which every disk was deleted.

use super::record::{
    AUTHORITIES, Authorities, CLUSTER, ClusterLevel, ClusterSettings, LEVEL, OURS, SETTINGS, check_level,
};
use super::{Attendees, Beat, Change, Changes, Contents, Copied, Entry, Heard, Outcome};
use crate::limits::{COMMIT_WAIT, DIRECTORY_WAIT, WATCH_WAIT};
use crate::system::blocking;
use base::ClusterId;
use etcd::{Committed, Error, Etcd, News, Options, Record};
use failure::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What to do when etcd lacks what it had.
const DATA_BACK: &str = "start a member of etcd that has the data still; if there is none, `drystone cluster rebuild-directory` makes \
                         a new directory in an empty etcd, from what the hosts know; until then nothing is changed, and disks \
                         are served as they are (a snapshot of etcd is no way out: it may call copies current that are not)";
/// What to do when the directory was made anew.
const TAKE_UP: &str =
    "restart this host's service, so that it takes the new directory up; the hosts one after another";
/// How late the common clock may be, as a host counts it (`edge/etcd/src/clock.rs`): the pause between two heartbeats, and what
/// it may be longer.
const CLOCK_LATE_MAX_NS: i64 = 1_500_000_000;
/// Differences of clocks are told in such steps. Far less than what is worth a finding.
const CLOCK_STEP_NS: i64 = 500_000_000;

/// The record of the cluster itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRecord {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Seconds since 1970.
    pub created: u64,
    /// One, and one more each time that the directory was lost and made anew.
    #[serde(default = "first_generation", skip_serializing_if = "is_first_generation")]
    pub generation: u64,
    /// What is added to etcd's revisions: records had versions up to this one while the cluster's only host kept them itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub versions_from: u64,
}

impl ClusterRecord {
    /// A version as everybody knows it, of a revision of etcd.
    fn version(&self, revision: u64) -> u64 {
        self.versions_from + revision
    }

    /// The revision of etcd that a version stands for; nothing for one of the time before etcd.
    fn revision(&self, version: u64) -> Option<u64> {
        version.checked_sub(self.versions_from).filter(|revision| *revision > 0)
    }

    /// What a change expects, in revisions of etcd: a version of the time before etcd is none that a record can have.
    fn expected(&self, version: u64) -> u64 {
        if version == 0 { 0 } else { self.revision(version).unwrap_or(NO_REVISION) }
    }

    /// A record that is no JSON stands for nothing that could be read, and is told of by whoever reads it.
    fn entry(&self, record: Record) -> Entry {
        let value = serde_json::from_slice(&record.value).unwrap_or(Value::Null);
        Entry { key: record.key, version: self.version(record.version), value }
    }
}

/// A revision that etcd never comes to.
const NO_REVISION: u64 = i64::MAX as u64;

/// The generation of a directory that was never lost.
pub const fn first_generation() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first_generation(generation: &u64) -> bool {
    *generation == first_generation()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The cluster that a directory is bound to.
#[derive(Debug, Clone)]
struct Bound {
    record: ClusterRecord,
    /// The record, byte by byte.
    bytes: Vec<u8>,
}

/// The records of one cluster in etcd.
pub struct InEtcd {
    /// The members, and what they keep.
    pub etcd: Etcd,
    /// The endpoints and the prefix, for people.
    pub place: String,
    /// The cluster, once it is known.
    cluster: Mutex<Option<Bound>>,
    /// What this host keeps of it; nothing for who only looks.
    copy: Option<Arc<Copied>>,
    /// Whether the last change was not confirmed. While etcd is away one is tried every second, and people are told once.
    has_doubt: AtomicBool,
    /// Whether etcd's history was compared with this host's copy since the start.
    is_history_known: AtomicBool,
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
        Ok(InEtcd {
            etcd,
            place,
            cluster: Mutex::default(),
            copy: None,
            has_doubt: AtomicBool::new(false),
            is_history_known: AtomicBool::new(false),
        })
    }

    /// The same for a host that keeps a copy: nobody learns of a record before the copy has it.
    pub fn with_copy(self, copy: Arc<Copied>) -> InEtcd {
        InEtcd { copy: Some(copy), ..self }
    }

    /// From now on only the directory that a copy is of counts, at no earlier revision than the copy's.
    ///
    /// # Errors
    /// When the copy's record of the cluster makes no sense.
    pub fn bind_to_copy(&self, kept: &Contents) -> Result<String, Failure> {
        let record = Record { key: CLUSTER.to_owned(), version: 1, value: kept.bond.clone() };
        let read = self.read_cluster(&record)?;
        let id = read.id.clone();
        self.etcd.was_seen_at(read.revision(kept.revision).unwrap_or(0));
        self.bind_to(record, read);
        Ok(id)
    }

    fn bind_to(&self, record: Record, read: ClusterRecord) {
        self.etcd.bind(&record);
        let bound = Bound { record: read, bytes: record.value };
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(bound);
    }

    fn bound(&self) -> Option<Bound> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A record as everybody knows it. Before the first look at all of them its version says nothing.
    fn entry(&self, record: Record) -> Entry {
        self.bound().map(|bound| bound.record).unwrap_or_default().entry(record)
    }

    /// Single records that were read or written, for the copy.
    fn note(&self, entries: &[Entry]) -> Result<(), Failure> {
        match (&self.copy, self.bound()) {
            (Some(copy), Some(bound)) if !entries.is_empty() => blocking(|| copy.note(&bound.bytes, entries)),
            (Some(_) | None, _) => Ok(()),
        }
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
        let mut first = vec![
            (CLUSTER, serde_json::to_vec(record).map_err(failed)?),
            (AUTHORITIES, serde_json::to_vec(authorities).map_err(failed)?),
            (SETTINGS, serde_json::to_vec(&ClusterSettings::of_new_cluster()).map_err(failed)?),
        ];
        if let Some(level) = newest()? {
            first.push((LEVEL, serde_json::to_vec(&level).map_err(failed)?));
        }
        let change = |(key, value): (&str, Vec<u8>)| etcd::Change {
            key: key.to_owned(),
            expected: 0,
            value: Some(value),
        };
        let first: Vec<etcd::Change> = first.into_iter().map(change).collect();
        match self.etcd.commit(&first, Duration::ZERO).await {
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

    /// Refuses to become a host of a cluster whose records this program does not understand. Where nobody answers nothing is
    /// known: the start says so.
    ///
    /// # Errors
    /// When it is so.
    pub async fn check_level(&self) -> Result<(), Failure> {
        match tokio::time::timeout(DIRECTORY_WAIT, self.etcd.get(LEVEL)).await {
            Ok(Ok(found)) => check_level(found.map(|found| self.entry(found)).as_slice()),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// The record of the cluster as it is now.
    pub(super) async fn found(&self) -> Result<Option<ClusterRecord>, Failure> {
        let record = self.etcd.get(CLUSTER).await.map_err(|error| self.away(&error))?;
        record.as_ref().map(|record| self.read_cluster(record)).transpose()
    }

    pub(super) fn read_cluster(&self, record: &Record) -> Result<ClusterRecord, Failure> {
        let read: ClusterRecord = serde_json::from_slice(&record.value).map_err(|error| {
            Failure::failed(format!("read the record `{CLUSTER}` of {}", self.place), error)
        })?;
        read.id
            .parse::<ClusterId>()
            .map_err(|error| Failure::failed(format!("read the cluster's id in {}", self.place), error))?;
        Ok(read)
    }

    pub(super) fn away(&self, error: &Error) -> Failure {
        match error {
            Error::Silent(_) => {
                Failure::new(Code::Unreachable, format!("the directory does not answer: {error}")).hint(
                    "start etcd, or correct [cluster.etcd]: endpoints, authorities, certificate and key",
                )
            }
            Error::Foreign(_) => {
                let ours = self.bound().map(|ours| format!(" `{}` ({})", ours.record.name, ours.record.id));
                let ours = ours.unwrap_or_default();
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
        let found = found.map(|found| self.entry(found));
        self.note(found.as_slice())?;
        Ok(found)
    }

    /// See [`super::Shared::commit`].
    pub(super) async fn commit(&self, wanted: &[Change]) -> Outcome {
        // Nothing is changed before all was read once.
        let Some(Bound { record: cluster, .. }) = self.bound() else { return Outcome::Unknown };
        let changes = wanted.iter().map(|change| etcd::Change {
            key: change.key.clone(),
            expected: cluster.expected(change.expected),
            value: change.value.as_ref().map(|value| value.to_string().into_bytes()),
        });
        let changes: Vec<etcd::Change> = changes.collect();
        let ended = self.etcd.commit(&changes, COMMIT_WAIT).await;
        let had_doubt = self.has_doubt.swap(ended.is_err(), atomic::Ordering::Relaxed);
        match ended {
            Ok(Committed::Done { version }) => {
                let version = cluster.version(version);
                let set = |change: &Change| {
                    let value = change.value.clone()?;
                    Some(Entry { key: change.key.clone(), version, value })
                };
                // That a record is gone comes by the watch: until then nothing but its removal hangs on it.
                let set: Vec<Entry> = wanted.iter().filter_map(set).collect();
                self.note(&set).map_or(Outcome::Unknown, |()| Outcome::Done { version })
            }
            Ok(Committed::Conflict { current }) => {
                let current: Vec<Entry> = current.into_iter().map(|one| cluster.entry(one)).collect();
                self.note(&current).map_or(Outcome::Unknown, |()| Outcome::Conflict { current })
            }
            // Whoever asked reads the record again, and then knows.
            Err(error) if had_doubt => {
                tracing::debug!("another change of the directory was not confirmed: {error}");
                Outcome::Unknown
            }
            Err(error) => {
                tracing::warn!("a change of the directory was not confirmed: {error}");
                Outcome::Unknown
            }
        }
    }

    /// See [`super::Shared::watch`].
    pub(super) async fn watch(&self, revision: Option<u64>) -> Result<Changes, Failure> {
        self.look_at_history().await?;
        let wants_all = self.copy.as_ref().is_some_and(|copy| copy.wants_all());
        let revision = revision.filter(|_| !wants_all);
        let after = self.bound().and_then(|bound| bound.record.revision(revision?));
        // Before etcd is asked: the copy may take up what comes after the answer before that is looked at.
        let kept = self.copy.as_ref().and_then(|copy| copy.is_at());
        let news = match self.etcd.watch(after, WATCH_WAIT).await {
            Ok(news) => news,
            Err(error @ Error::Foreign(_)) => {
                return Err(self.made_anew().await.unwrap_or_else(|| self.away(&error)));
            }
            Err(error) => return Err(self.away(&error)),
        };
        if news.is_complete {
            self.bind(&news, kept)?;
        }
        let bound = self.bound();
        let bound = bound
            .ok_or_else(|| Failure::new(Code::Failed, "the directory was watched before it was read"))?;
        let changes = Changes {
            revision: bound.record.version(news.revision),
            is_complete: news.is_complete,
            entries: news.records.into_iter().map(|one| bound.record.entry(one)).collect(),
            gone: news.gone,
            cluster: bound.record.id,
        };
        if let Some(copy) = &self.copy {
            blocking(|| copy.take((&bound.bytes, bound.record.generation), &changes))?;
        }
        Ok(changes)
    }

    /// Compares etcd's history with this host's copy: at the first use, and whenever etcd has been found to have lost changes. One that
    /// was restored from a snapshot comes to the revisions that were seen again, by other changes.
    async fn look_at_history(&self) -> Result<(), Failure> {
        if self.is_history_known.load(atomic::Ordering::Relaxed) && !self.etcd.is_in_doubt() {
            return Ok(());
        }
        let Some(kept) = self.copy.as_ref().and_then(|copy| blocking(|| copy.contents(false))) else {
            // Revisions are all that there is to go by.
            self.etcd.is_trusted_again();
            return Ok(());
        };
        let there = self.etcd.peek(CLUSTER).await.map_err(|error| self.away(&error))?;
        // Of another cluster, or of none: that is said elsewhere.
        if there.is_none_or(|there| there.value != kept.bond) {
            return Ok(());
        }
        let bond: ClusterRecord = serde_json::from_slice(&kept.bond)
            .map_err(|error| Failure::failed("read this host's copy of the directory", error))?;
        match self.etcd.history(bond.revision(kept.revision).unwrap_or(0)).await {
            Ok(Some(past)) if is_another_history(&kept, &bond, &past) => {
                self.etcd.is_not_trusted();
                return Err(Failure::refused(format!(
                    "{}: etcd's records up to revision {} are not those that this host has seen: it was set back to an old snapshot",
                    self.place, kept.revision
                ))
                .hint(DATA_BACK));
            }
            Ok(Some(_) | None) => self.etcd.is_trusted_again(),
            // It has not come to that revision: whoever reads finds out.
            Err(Error::Refused(_)) => return Ok(()),
            Err(error) => return Err(self.away(&error)),
        }
        self.is_history_known.store(true, atomic::Ordering::Relaxed);
        Ok(())
    }

    /// What to say if the cluster has a new directory there.
    async fn made_anew(&self) -> Option<Failure> {
        let ours = self.bound()?.record;
        let found = tokio::time::timeout(DIRECTORY_WAIT, self.etcd.peek(CLUSTER)).await.ok()?.ok()??;
        let found = self.read_cluster(&found).ok()?;
        (found.id == ours.id && found.generation > ours.generation).then(|| {
            Failure::refused(format!(
                "the directory was made anew (generation {}; this host knows generation {})",
                found.generation, ours.generation
            ))
            .hint(TAKE_UP)
        })
    }

    /// The cluster that all records say they are of; from now on no others count. `kept`: the generation and revision of the copy
    /// when they were asked for.
    fn bind(&self, news: &News, kept: Option<(u64, u64)>) -> Result<(), Failure> {
        let Some(record) = news.records.iter().find(|record| record.key == CLUSTER) else {
            return Err(Failure::refused(format!("{} holds no cluster", self.place))
                .hint("make one with `drystone cluster init --config FILE`, or correct [cluster.etcd]"));
        };
        let read = self.read_cluster(record)?;
        if let (Some(copy), Some(kept)) = (&self.copy, kept) {
            self.check_later(copy, kept, &read, news.revision)?;
        }
        self.bind_to(record.clone(), read);
        Ok(())
    }

    /// Refuses a directory that has lost what this host's copy has, and keeps a copy of another cluster from being replaced.
    fn check_later(
        &self,
        copy: &Copied,
        (generation, kept): (u64, u64),
        found: &ClusterRecord,
        revision: u64,
    ) -> Result<(), Failure> {
        let bond = copy.bond();
        let ours = bond.and_then(|bond| serde_json::from_slice::<ClusterRecord>(&bond).ok());
        if let Some(ours) = ours.filter(|ours| ours.id != found.id) {
            return Err(Failure::refused(format!(
                "{} holds cluster {}, and this host belongs to cluster {}",
                self.place, found.id, ours.id
            ))
            .hint("correct [cluster] directory, or give the host a data_dir and devices of its own"));
        }
        match found.generation.cmp(&generation) {
            Ordering::Greater => Ok(()),
            Ordering::Equal if found.version(revision) >= kept => Ok(()),
            Ordering::Equal => {
                let seen = found.revision(kept).unwrap_or(0);
                Err(self.away(&Error::Older { seen, found: revision }))
            }
            Ordering::Less => Err(Failure::refused(format!(
                "{} holds generation {} of this cluster's directory, and this host has seen generation {generation}",
                self.place, found.generation
            ))
            .hint(DATA_BACK)),
        }
    }

    /// See [`super::Shared::beat`].
    pub(super) async fn beat(&self, beat: &Beat) -> Result<Attendees, Failure> {
        let told = Beat { clock_ahead_ns: coarse(beat.clock_ahead_ns), ..beat.clone() };
        let value = serde_json::to_vec(&told).map_err(|error| Failure::failed("write a heartbeat", error))?;
        let seen = tokio::time::timeout(DIRECTORY_WAIT, self.etcd.beat(&beat.host, &value)).await;
        let seen = seen.unwrap_or_else(|_| Err(silent())).map_err(|error| self.away(&error))?;
        // Whoever tells what cannot be read, of another version perhaps, is there all the same.
        let nothing = |host| Beat {
            host,
            links: BTreeMap::new(),
            clock_ahead_ns: 0,
            owned: Vec::new(),
            data_trouble: Vec::new(),
            devices: super::presence::DeviceBeat::default(),
        };
        let heard = seen.members.into_iter().map(|(host, at_ns, value)| {
            let beat = serde_json::from_slice(&value).unwrap_or_else(|_| nothing(host));
            Heard { at_ns, beat }
        });
        Ok(Attendees {
            now_ns: seen.now_ns,
            since_ns: seen.since_ns,
            is_certain: seen.is_certain,
            heard: heard.collect(),
        })
    }
}

/// Whether records of a revision contradict what a host keeps of them. A version is the revision of one change, so two values of one
/// version, or an older version where a newer one was seen, are of two histories. A copy may lag with records of hosts, which proves nothing.
fn is_another_history(kept: &Contents, bond: &ClusterRecord, past: &[Record]) -> bool {
    let past: BTreeMap<&str, &Record> = past.iter().map(|record| (record.key.as_str(), record)).collect();
    kept.entries.iter().filter(|entry| entry.version <= kept.revision).any(|entry| {
        past.get(entry.key.as_str()).is_some_and(|found| {
            match bond.version(found.version).cmp(&entry.version) {
                Ordering::Less => true,
                Ordering::Equal => {
                    serde_json::from_slice::<Value>(&found.value).is_ok_and(|value| value != entry.value)
                }
                Ordering::Greater => false,
            }
        })
    })
}

/// The level of a new cluster: the highest that its first host understands. Nothing where that is the first.
fn newest() -> Result<Option<Value>, Failure> {
    let none = ClusterLevel::default();
    if OURS.highest() == none.level { Ok(None) } else { Ok(none.raise(OURS.highest())?.value) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A snapshot was restored, and etcd came to the revisions again that a host had seen: the host took it for the directory that it knew.
    #[test]
    fn a_history_that_contradicts_what_was_kept_is_another_one() {
        let kept = |version| Contents {
            bond: Vec::new(),
            generation: 1,
            revision: 10,
            entries: vec![Entry { key: "disks/1".to_owned(), version, value: json!({ "epoch": 3 }) }],
        };
        let past = |version, value: Value| {
            vec![Record { key: "disks/1".to_owned(), version, value: value.to_string().into_bytes() }]
        };
        let bond = ClusterRecord::default();
        let check = |version, past: &[Record]| is_another_history(&kept(version), &bond, past);
        assert!(!check(7, &past(7, json!({ "epoch": 3 }))), "the same");
        assert!(check(7, &past(7, json!({ "epoch": 2 }))), "another value of one version");
        assert!(check(7, &past(6, json!({ "epoch": 3 }))), "an older version");
        assert!(!check(7, &past(9, json!({ "epoch": 5 }))), "the copy lags");
        assert!(!check(12, &past(6, json!({ "epoch": 1 }))), "learned ahead of that revision");
        assert!(!check(7, &[]), "nothing is proven by what is not there");
    }

    /// A host that stood alone had given out versions up to a million; etcd begins at one. Whoever knows a record by a version
    /// of before must neither take a record of etcd for an older one nor change it unseen.
    #[test]
    fn versions_go_on_where_those_of_a_host_that_stood_alone_ended() {
        let cluster = ClusterRecord { versions_from: 1_000_000, ..ClusterRecord::default() };
        assert_eq!(cluster.version(1), 1_000_001);
        assert_eq!((cluster.revision(1_000_001), cluster.revision(1_000_000)), (Some(1), None));
        assert_eq!(cluster.expected(0), 0, "it must not be there");
        assert_eq!(cluster.expected(1_000_002), 2);
        assert_eq!(cluster.expected(17), NO_REVISION, "it is never as it was then");
        let text = serde_json::to_string(&ClusterRecord { versions_from: 0, ..cluster }).expect("JSON");
        assert!(!text.contains("versions_from"), "{text}");
    }
}
