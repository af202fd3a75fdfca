//! The embedded store: one file of redb, and all records in memory beside it.

use super::presence::Presence;
use super::record::HOSTS;
use super::{Attendees, Beat, Change, Changes, Entry, Outcome};
use crate::failure::Failure;
use crate::limits::{SHARED_GONE_MAX, SHARED_RECORDS_MAX, WATCH_WAIT};
use base::ClusterId;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    database: Database,
    state: Mutex<State>,
    revision: watch::Sender<u64>,
    presence: Mutex<Presence>,
    /// The cluster that it belongs to, drawn when it was made.
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
}

fn broke(error: impl std::fmt::Display) -> Failure {
    Failure::failed("use the shared directory", error)
}

impl Store {
    /// Opens the file at `path`, or makes it for the cluster `fresh`.
    ///
    /// # Errors
    /// When it is damaged, in use, or of a newer program.
    pub fn open(path: &Path, fresh: ClusterId) -> Result<Store, Failure> {
        let what = format!("open the shared directory {}", path.display());
        let failed = |error: &dyn std::fmt::Display| Failure::failed(&what, error);
        let database = Database::create(path).map_err(|error| failed(&error))?;
        let transaction = database.begin_write().map_err(|error| failed(&error))?;
        let cluster = {
            let mut meta = transaction.open_table(META).map_err(|error| failed(&error))?;
            transaction.open_table(RECORDS).map_err(|error| failed(&error))?;
            let format = meta.get(KEY_FORMAT).map_err(|error| failed(&error))?.map(|value| value.value());
            match format {
                Some(format) if format > FORMAT => {
                    return Err(Failure::refused(format!(
                        "{what}: it has format {format}; this program reads format {FORMAT}"
                    )));
                }
                Some(_) => {}
                None => {
                    meta.insert(KEY_FORMAT, FORMAT).map_err(|error| failed(&error))?;
                    meta.insert(KEY_CLUSTER, fresh.0).map_err(|error| failed(&error))?;
                    meta.insert(KEY_REVISION, 0).map_err(|error| failed(&error))?;
                }
            }
            let cluster = meta.get(KEY_CLUSTER).map_err(|error| failed(&error))?;
            cluster.map_or(fresh, |value| ClusterId(value.value()))
        };
        transaction.commit().map_err(|error| failed(&error))?;
        let state = load(&database).map_err(|error| failed(&error))?;
        let revision = watch::Sender::new(state.revision);
        let presence = Mutex::new(Presence::new());
        Ok(Store { database, state: Mutex::new(state), revision, presence, cluster })
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
        self.write(changes, version)?;
        state.revision = version;
        for Change { key, value, .. } in changes {
            match value {
                Some(value) => {
                    let entry = Entry { key: key.clone(), version, value: value.clone() };
                    state.records.insert(key.clone(), entry);
                }
                None => {
                    state.records.remove(key);
                    state.gone.push_back((version, key.clone()));
                }
            }
        }
        while state.gone.len() > SHARED_GONE_MAX {
            if let Some((forgotten, _)) = state.gone.pop_front() {
                state.forgotten = forgotten;
            }
        }
        drop(state);
        self.revision.send_replace(version);
        Ok(Outcome::Done { version })
    }

    fn write(&self, changes: &[Change], version: u64) -> Result<(), Failure> {
        let transaction = self.database.begin_write().map_err(broke)?;
        {
            let mut meta = transaction.open_table(META).map_err(broke)?;
            meta.insert(KEY_REVISION, u128::from(version)).map_err(broke)?;
            let mut records = transaction.open_table(RECORDS).map_err(broke)?;
            for Change { key, value, .. } in changes {
                match value {
                    Some(value) => {
                        let bytes = serde_json::to_vec(&(version, value)).map_err(broke)?;
                        records.insert(key.as_str(), bytes.as_slice()).map_err(broke)?;
                    }
                    None => drop(records.remove(key.as_str()).map_err(broke)?),
                }
            }
        }
        transaction.commit().map_err(broke)
    }

    /// What changed after `revision`; waits a while if nothing did.
    pub async fn watch(&self, revision: Option<u64>) -> Changes {
        if let Some(revision) = revision {
            let mut changes = self.revision.subscribe();
            // That nothing changed for so long is an answer too: it shows that the directory is there.
            let changed = changes.wait_for(|now| *now != revision);
            let _ = tokio::time::timeout(WATCH_WAIT, changed).await;
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

fn load(database: &Database) -> Result<State, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let transaction = database.begin_read().map_err(|error| text(&error))?;
    let meta = transaction.open_table(META).map_err(|error| text(&error))?;
    let revision = meta.get(KEY_REVISION).map_err(|error| text(&error))?.map_or(0, |value| value.value());
    let revision = u64::try_from(revision).map_err(|error| text(&error))?;
    let mut state = State { revision, forgotten: revision, ..State::default() };
    let table = transaction.open_table(RECORDS).map_err(|error| text(&error))?;
    for row in table.iter().map_err(|error| text(&error))? {
        let (key, bytes) = row.map_err(|error| text(&error))?;
        let key = key.value().to_owned();
        let (version, value): (u64, Value) =
            serde_json::from_slice(bytes.value()).map_err(|error| format!("the record {key}: {error}"))?;
        state.records.insert(key.clone(), Entry { key, version, value });
    }
    Ok(state)
}
