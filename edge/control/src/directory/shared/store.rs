//! The embedded store: records in a file of redb, all of them in memory too.

use super::presence::Presence;
use super::record::{ClusterLevel, HOSTS, OURS};
use super::{Attendees, Beat, Change, Changes, Entry, Outcome};
use crate::directory::File;
use crate::directory::file::broke;
use crate::limits::{SHARED_GONE_MAX, SHARED_RECORDS_MAX, WATCH_WAIT};
use base::ClusterId;
use failure::Failure;
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The version of the file that this program writes.
const FORMAT: u128 = 1;
const META: TableDefinition<&str, u128> = TableDefinition::new("meta");
const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
const KEY_FORMAT: &str = "format";
const KEY_CLUSTER: &str = "cluster";
const KEY_REVISION: &str = "revision";

/// The store.
pub struct Store {
    file: Arc<File>,
    state: Mutex<State>,
    revision: watch::Sender<u64>,
    presence: Mutex<Presence>,
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
}

#[derive(Default)]
struct State {
    records: BTreeMap<String, Entry>,
    revision: u64,
    /// Records that are gone, with the revision that removed them, oldest first.
    gone: VecDeque<(u64, String)>,
    /// What went up to this revision is not known any more.
    forgotten: u64,
    /// Whether the records are on their way elsewhere: nothing is changed here meanwhile.
    is_held: bool,
}

/// Keeps the records of a store as they are while they are on their way elsewhere, until it is dropped.
pub struct Hold<'a> {
    store: &'a Store,
    /// All records.
    pub records: Vec<Entry>,
    /// The version of the last change.
    pub revision: u64,
    is_for_good: bool,
}

impl Hold<'_> {
    /// The records are elsewhere now: nothing is ever changed here again. Who waits for changes is answered.
    pub fn keep(mut self) {
        self.is_for_good = true;
        self.store.revision.send_modify(|_| {});
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.store.lock().is_held = self.is_for_good;
    }
}

/// Why nothing is changed.
const HELD: &str = "the directory is moving into etcd";

impl Store {
    /// Opens the file at `path`, or makes it for the cluster `fresh`: for a process that serves it to others.
    ///
    /// # Errors
    /// When it is damaged, in use, or of a newer program.
    pub fn open(path: &Path, fresh: ClusterId) -> Result<Store, Failure> {
        let what = format!("open the shared directory {}", path.display());
        let file = File::open(path)?;
        let cluster = file.write(|transaction| {
            let mut meta = transaction.open_table(META).map_err(broke)?;
            let format = meta.get(KEY_FORMAT).map_err(broke)?.map(|value| value.value());
            match format {
                Some(format) if format > FORMAT => {
                    return Err(Failure::refused(format!(
                        "{what}: it has format {format}; this program reads format {FORMAT}"
                    )));
                }
                Some(_) => {}
                None => {
                    meta.insert(KEY_FORMAT, FORMAT).map_err(broke)?;
                    meta.insert(KEY_CLUSTER, fresh.0).map_err(broke)?;
                }
            }
            let cluster = meta.get(KEY_CLUSTER).map_err(broke)?;
            Ok(cluster.map_or(fresh, |value| ClusterId(value.value())))
        })?;
        Store::over(Arc::new(file), cluster)
    }

    /// The records of a cluster in a file that holds other things, too. Its records begin at the newest level.
    ///
    /// # Errors
    /// When the file fails, or a record is damaged.
    pub fn within(file: Arc<File>, cluster: ClusterId) -> Result<Store, Failure> {
        let store = Store::over(file, cluster)?;
        store.begin()?;
        Ok(store)
    }

    /// Has records begin at the newest level where there are none yet.
    ///
    /// # Errors
    /// When the file fails.
    pub fn begin(&self) -> Result<(), Failure> {
        if self.lock().revision == 0 {
            self.commit(&[ClusterLevel::default().raise(OURS.highest())?])?;
        }
        Ok(())
    }

    /// All records of a file in which there have been some, and the version of the last change.
    ///
    /// # Errors
    /// When the file fails, or a record is damaged.
    pub fn former(file: Arc<File>, cluster: ClusterId) -> Result<Option<(Vec<Entry>, u64)>, Failure> {
        let store = Store::over(file, cluster)?;
        let hold = store.hold();
        let hold = hold.ok_or_else(|| Failure::failed("read the directory", HELD))?;
        Ok((hold.revision > 0).then(|| (hold.records.clone(), hold.revision)))
    }

    /// Keeps all records as they are; nothing where somebody else does.
    pub fn hold(&self) -> Option<Hold<'_>> {
        let mut state = self.lock();
        let is_free = !std::mem::replace(&mut state.is_held, true);
        is_free.then(|| Hold {
            store: self,
            records: state.records.values().cloned().collect(),
            revision: state.revision,
            is_for_good: false,
        })
    }

    fn over(file: Arc<File>, cluster: ClusterId) -> Result<Store, Failure> {
        file.write(|transaction| put_all(transaction, &[], 0))?;
        let state = file.read(load)?;
        let revision = watch::Sender::new(state.revision);
        Ok(Store { file, state: Mutex::new(state), revision, presence: Mutex::new(Presence::new()), cluster })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One record.
    pub fn get(&self, key: &str) -> Option<Entry> {
        self.lock().records.get(key).cloned()
    }

    /// Notes that a host is there, and tells who else is.
    pub fn beat(&self, beat: Beat) -> Attendees {
        let state = self.lock();
        let is_member = |host: &str| state.records.contains_key(&format!("{HOSTS}{host}"));
        self.presence.lock().unwrap_or_else(PoisonError::into_inner).take(beat, is_member)
    }

    /// Makes all changes, or none; stable when it returns.
    ///
    /// # Errors
    /// When the file fails: then it may have happened.
    pub fn commit(&self, changes: &[Change]) -> Result<Outcome, Failure> {
        let mut state = self.lock();
        if state.is_held {
            return Ok(Outcome::Unwritten { why: HELD.to_owned() });
        }
        let version_of = |key: &str| state.records.get(key).map_or(0, |entry| entry.version);
        if changes.iter().any(|change| version_of(&change.key) != change.expected) {
            let current = changes.iter().filter_map(|change| state.records.get(&change.key).cloned());
            return Ok(Outcome::Conflict { current: current.collect() });
        }
        if state.records.len() + changes.len() > SHARED_RECORDS_MAX {
            return Err(Failure::refused(format!(
                "the directory holds {SHARED_RECORDS_MAX} records at most"
            )));
        }
        let version = state.revision + 1;
        if let Err(failure) = self.file.write(|transaction| put_all(transaction, changes, version)) {
            // Whether it happened is read from the file.
            let found = self.file.read(load)?;
            if found.revision != version {
                return Err(failure);
            }
        }
        state.take(changes, version);
        // Under the lock: of two changes the later one must be told last.
        self.revision.send_replace(version);
        Ok(Outcome::Done { version })
    }

    /// What changed after `revision`; waits a while if nothing did.
    pub async fn watch(&self, revision: Option<u64>) -> Changes {
        if let Some(revision) = revision {
            let mut changes = self.revision.subscribe();
            // That nothing changed for so long is an answer too: it shows that the directory is there.
            if *changes.borrow_and_update() == revision {
                let _ = tokio::time::timeout(WATCH_WAIT, changes.changed()).await;
            }
        }
        self.changes(revision)
    }

    fn changes(&self, revision: Option<u64>) -> Changes {
        let state = self.lock();
        let after = revision.filter(|after| (state.forgotten..=state.revision).contains(after));
        let entries = state.records.values().filter(|entry| after.is_none_or(|after| entry.version > after));
        let gone = state.gone.iter().filter(|(at, _)| after.is_some_and(|after| *at > after));
        Changes {
            cluster: self.cluster.to_string(),
            revision: state.revision,
            is_complete: after.is_none(),
            entries: entries.cloned().collect(),
            gone: gone.map(|(_, key)| key).filter(|key| !state.records.contains_key(*key)).cloned().collect(),
        }
    }
}

impl State {
    fn take(&mut self, changes: &[Change], version: u64) {
        self.revision = version;
        for Change { key, value, .. } in changes {
            match value {
                Some(value) => {
                    let entry = Entry { key: key.clone(), version, value: value.clone() };
                    self.records.insert(key.clone(), entry);
                }
                None => {
                    self.records.remove(key);
                    self.gone.push_back((version, key.clone()));
                }
            }
        }
        while self.gone.len() > SHARED_GONE_MAX {
            if let Some((forgotten, _)) = self.gone.pop_front() {
                self.forgotten = forgotten;
            }
        }
    }
}

/// Writes changes, whatever stands there; the records that they set have `version` then. The tables are made.
pub fn put_all(transaction: &WriteTransaction, changes: &[Change], version: u64) -> Result<(), Failure> {
    let mut meta = transaction.open_table(META).map_err(broke)?;
    let mut records = transaction.open_table(RECORDS).map_err(broke)?;
    if version > 0 {
        meta.insert(KEY_REVISION, u128::from(version)).map_err(broke)?;
    }
    for Change { key, value, .. } in changes {
        match value {
            Some(value) => {
                let bytes = serde_json::to_vec(&(version, value)).map_err(broke)?;
                records.insert(key.as_str(), bytes.as_slice()).map_err(broke)?;
            }
            None => drop(records.remove(key.as_str()).map_err(broke)?),
        }
    }
    Ok(())
}

fn load(transaction: &ReadTransaction) -> Result<State, Failure> {
    let meta = transaction.open_table(META).map_err(broke)?;
    let revision = meta.get(KEY_REVISION).map_err(broke)?.map_or(0, |value| value.value());
    let revision = u64::try_from(revision).map_err(broke)?;
    let mut state = State { revision, forgotten: revision, ..State::default() };
    let table = transaction.open_table(RECORDS).map_err(broke)?;
    for row in table.iter().map_err(broke)? {
        let (key, bytes) = row.map_err(broke)?;
        let key = key.value().to_owned();
        let (version, value): (u64, Value) = serde_json::from_slice(bytes.value())
            .map_err(|error| Failure::failed(format!("read the record {key}"), error))?;
        state.records.insert(key.clone(), Entry { key, version, value });
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two changes at once the first could be told last. Whoever watched took it for the newest then and was answered at once,
    /// with nothing, again and again: following the store kept a processor busy, and the host could not end.
    #[test]
    fn whoever_sees_the_records_is_told_of_their_last_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("d"), ClusterId(7)).expect("a store");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..500 {
                    let change = Change { key: format!("{round}"), expected: 0, value: Some(round.into()) };
                    let done = store.commit(&[change]).expect("the file takes it");
                    assert!(matches!(done, Outcome::Done { .. }), "{done:?}");
                }
            });
            while !writer.is_finished() {
                if let Ok(state) = store.state.try_lock() {
                    assert_eq!(*store.revision.borrow(), state.revision);
                }
            }
        });
    }
}
