//! What a host keeps of the directory in etcd, so that it can be made anew from the copies of all hosts (docs/design/0016).
//!
//! All that comes from etcd is written here before anybody learns of it: what no copy has was acted on by nobody. A copy that
//! cannot be written stops nothing; it is deleted, for one that is wrong is worse than none. Must never tell of a record that
//! its directory did not have, nor leave out a change that was told of.

use super::record::HOSTS;
use super::{Changes, Entry};
use crate::limits::{COPY_LAG_MAX, COPY_RETRY};
use failure::Failure;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The version of the file that this program writes.
const FORMAT: u64 = 1;
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
/// Under one key, the value of the record `cluster`, byte by byte.
const BOND: TableDefinition<&str, &[u8]> = TableDefinition::new("bond");
const KEY_FORMAT: &str = "format";
const KEY_GENERATION: &str = "generation";
const KEY_REVISION: &str = "revision";
const KEY_BOND: &str = "cluster";

/// A host's copy of the directory.
pub struct Copied {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    held: Held,
    /// Whether it was given away for a new directory: nothing more of the former one counts.
    is_sealed: bool,
}

enum Held {
    Whole(Box<Whole>),
    /// There is none.
    Nothing {
        why: String,
        /// When it was last tried to make one.
        tried: Option<Instant>,
    },
}

struct Whole {
    database: Database,
    bond: Vec<u8>,
    generation: u64,
    /// No change up to this one is missing, here or in `pending`.
    revision: u64,
    versions: BTreeMap<String, u64>,
    /// What is not in the file yet: nothing that anybody's data hang on.
    pending: BTreeMap<String, (u64, Value)>,
    pending_since: Option<Instant>,
}

/// All of a copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The value of the record `cluster`.
    pub bond: Vec<u8>,
    /// Which directory of the cluster it is of.
    pub generation: u64,
    /// No change up to this revision is missing.
    pub revision: u64,
    /// The records, that of the cluster apart.
    pub entries: Vec<Entry>,
}

fn broke(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn sealed() -> Failure {
    Failure::refused(
        "this host gave its copy of the directory away for a new one, and takes nothing from the former one",
    )
    .hint("when the new directory is there, restart this host's service; the hosts one after another")
}

impl Copied {
    /// The copy in a file; nothing yet where there is none, or one that cannot be read.
    pub fn open(path: &Path) -> Copied {
        let nothing = |why: String| Held::Nothing { why, tried: None };
        let held = match path.exists() {
            false => nothing("it has not heard of all records yet".to_owned()),
            true => Whole::open(path).map_or_else(
                |why| {
                    tracing::error!("the copy of the directory {} cannot be read: {why}", path.display());
                    nothing(why)
                },
                |whole| Held::Whole(Box::new(whole)),
            ),
        };
        Copied { path: path.to_owned(), state: Mutex::new(State { held, is_sealed: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why there is none, if so.
    pub fn trouble(&self) -> Option<String> {
        match &self.lock().held {
            Held::Whole(_) => None,
            Held::Nothing { why, .. } => Some(why.clone()),
        }
    }

    /// Which generation and revision it has; nothing when there is none.
    pub fn is_at(&self) -> Option<(u64, u64)> {
        match &self.lock().held {
            Held::Whole(whole) => Some((whole.generation, whole.revision)),
            Held::Nothing { .. } => None,
        }
    }

    /// The record of the cluster that it is of, byte by byte; nothing when there is none.
    pub fn bond(&self) -> Option<Vec<u8>> {
        match &self.lock().held {
            Held::Whole(whole) => Some(whole.bond.clone()),
            Held::Nothing { .. } => None,
        }
    }

    /// Whether all records are wanted, to make one anew.
    pub fn wants_all(&self) -> bool {
        match &self.lock().held {
            Held::Whole(_) => false,
            Held::Nothing { tried, .. } => tried.is_none_or(|tried| tried.elapsed() >= COPY_RETRY),
        }
    }

    /// All of it; nothing when there is none. `seals`: from now on nothing more is taken in.
    pub fn contents(&self, seals: bool) -> Option<Contents> {
        let mut state = self.lock();
        state.is_sealed |= seals;
        let Held::Whole(whole) = &state.held else { return None };
        match whole.contents() {
            Ok(contents) => Some(contents),
            Err(why) => {
                state.lose(&self.path, why);
                None
            }
        }
    }

    /// Takes what the directory said; stable when it returns, or there is no copy any more. `bond`: the record of the cluster
    /// that it says this of.
    ///
    /// # Errors
    /// When it was given away: then nobody may learn of it.
    pub fn take(&self, (bond, generation): (&[u8], u64), changes: &Changes) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.is_sealed {
            return Err(sealed());
        }
        let done = match &mut state.held {
            Held::Whole(whole) if whole.bond == bond => whole.take(changes),
            _ if !changes.is_complete => Ok(()),
            held => {
                let former = std::mem::replace(held, Held::Nothing { why: String::new(), tried: None });
                drop(former);
                Whole::make(&self.path, bond, generation, changes)
                    .map(|whole| state.held = Held::Whole(Box::new(whole)))
            }
        };
        done.unwrap_or_else(|why| state.lose(&self.path, why));
        Ok(())
    }

    /// Takes single records that were read or written; as [`Copied::take`].
    ///
    /// # Errors
    /// As [`Copied::take`].
    pub fn note(&self, bond: &[u8], entries: &[Entry]) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.is_sealed {
            return Err(sealed());
        }
        if let Held::Whole(whole) = &mut state.held
            && whole.bond == bond
            && let Err(why) = whole.note(entries)
        {
            state.lose(&self.path, why);
        }
        Ok(())
    }
}

impl State {
    /// One that may lack something is none. It is made anew when all records are heard of again.
    fn lose(&mut self, path: &Path, why: String) {
        tracing::error!("the copy of the directory {} cannot be kept: {why}", path.display());
        let tried = Some(Instant::now());
        // Closed before it is deleted.
        drop(std::mem::replace(&mut self.held, Held::Nothing { why, tried }));
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::error!("it cannot be deleted either, and must not be used: {error}");
        }
    }
}

/// Where the copy of the generation before is kept.
fn former_path(path: &Path) -> PathBuf {
    path.with_extension("former")
}

impl Whole {
    fn open(path: &Path) -> Result<Whole, String> {
        let database = Database::open(path).map_err(broke)?;
        let transaction = database.begin_read().map_err(broke)?;
        let meta = transaction.open_table(META).map_err(broke)?;
        let number = |key: &str| -> Result<u64, String> {
            let found = meta.get(key).map_err(broke)?;
            found.map(|value| value.value()).ok_or_else(|| format!("it has no {key}"))
        };
        let (format, generation, revision) =
            (number(KEY_FORMAT)?, number(KEY_GENERATION)?, number(KEY_REVISION)?);
        if format > FORMAT {
            return Err(format!("it has format {format}; this program reads format {FORMAT}"));
        }
        let bond = transaction.open_table(BOND).map_err(broke)?;
        let bond = bond.get(KEY_BOND).map_err(broke)?.ok_or("it names no cluster")?.value().to_vec();
        drop((meta, transaction));
        let mut whole = Whole {
            database,
            bond,
            generation,
            revision,
            versions: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_since: None,
        };
        let entries = whole.stored()?;
        whole.versions = entries.into_iter().map(|entry| (entry.key, entry.version)).collect();
        Ok(whole)
    }

    /// Makes one of all records. One of a former generation is kept beside it.
    fn make(path: &Path, bond: &[u8], generation: u64, changes: &Changes) -> Result<Whole, String> {
        match std::fs::rename(path, former_path(path)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(broke(error)),
            Ok(()) | Err(_) => {}
        }
        let database = Database::create(path).map_err(broke)?;
        let mut whole = Whole {
            database,
            bond: bond.to_vec(),
            generation,
            revision: 0,
            versions: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_since: None,
        };
        whole.take(changes)?;
        Ok(whole)
    }

    fn take(&mut self, changes: &Changes) -> Result<(), String> {
        // Nothing is missing up to the copy's revision: what it lacks there was removed since this was read.
        if changes.revision < self.revision {
            return Ok(());
        }
        let is_ahead = |version: Option<&u64>| version.is_some_and(|version| *version > changes.revision);
        let mut gone: Vec<String> = changes.gone.clone();
        if changes.is_complete {
            let named: BTreeSet<&String> = changes.entries.iter().map(|entry| &entry.key).collect();
            gone.extend(self.versions.keys().filter(|key| !named.contains(key)).cloned());
        }
        // What was learned ahead of the watch is no news to it, and is not undone by it.
        gone.retain(|key| self.versions.contains_key(key) && !is_ahead(self.versions.get(key)));
        let is_news = |entry: &&Entry| {
            entry.key != KEY_BOND && self.versions.get(&entry.key).is_none_or(|known| *known < entry.version)
        };
        let news: Vec<Entry> = changes.entries.iter().filter(is_news).cloned().collect();
        let is_first = self.revision == 0;
        self.revision = changes.revision;
        self.write(news, &gone, is_first)
    }

    fn note(&mut self, entries: &[Entry]) -> Result<(), String> {
        // Up to its revision nothing is missing: what it lacks there was removed since it was read.
        let known = |key: &str| self.versions.get(key).copied();
        let is_news = |entry: &&Entry| {
            entry.key != KEY_BOND && entry.version > known(&entry.key).unwrap_or(self.revision)
        };
        let news: Vec<Entry> = entries.iter().filter(is_news).cloned().collect();
        self.write(news, &[], false)
    }

    fn write(&mut self, news: Vec<Entry>, gone: &[String], is_first: bool) -> Result<(), String> {
        let may_wait = |entry: &Entry| entry.key.starts_with(HOSTS) && self.versions.contains_key(&entry.key);
        let may_wait = !is_first && gone.is_empty() && news.iter().all(may_wait);
        let has_news = !news.is_empty();
        for entry in news {
            self.versions.insert(entry.key.clone(), entry.version);
            self.pending.insert(entry.key, (entry.version, entry.value));
        }
        for key in gone {
            self.versions.remove(key);
            self.pending.remove(key);
        }
        if has_news {
            self.pending_since.get_or_insert_with(Instant::now);
        }
        let is_late = self.pending_since.is_some_and(|since| since.elapsed() >= COPY_LAG_MAX);
        if may_wait && !is_late {
            return Ok(());
        }
        let transaction = self.database.begin_write().map_err(broke)?;
        self.put(&transaction, gone)?;
        transaction.commit().map_err(broke)?;
        self.pending.clear();
        self.pending_since = None;
        Ok(())
    }

    fn put(&self, transaction: &WriteTransaction, gone: &[String]) -> Result<(), String> {
        let mut meta = transaction.open_table(META).map_err(broke)?;
        for (key, value) in
            [(KEY_FORMAT, FORMAT), (KEY_GENERATION, self.generation), (KEY_REVISION, self.revision)]
        {
            meta.insert(key, value).map_err(broke)?;
        }
        let mut bond = transaction.open_table(BOND).map_err(broke)?;
        bond.insert(KEY_BOND, self.bond.as_slice()).map_err(broke)?;
        let mut records = transaction.open_table(RECORDS).map_err(broke)?;
        for (key, (version, value)) in &self.pending {
            let bytes = serde_json::to_vec(&(version, value)).map_err(broke)?;
            records.insert(key.as_str(), bytes.as_slice()).map_err(broke)?;
        }
        for key in gone {
            records.remove(key.as_str()).map_err(broke)?;
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Entry>, String> {
        let transaction = self.database.begin_read().map_err(broke)?;
        let table = transaction.open_table(RECORDS).map_err(broke)?;
        let mut entries = Vec::new();
        for row in table.iter().map_err(broke)? {
            let (key, bytes) = row.map_err(broke)?;
            let key = key.value().to_owned();
            let (version, value): (u64, Value) = serde_json::from_slice(bytes.value())
                .map_err(|error| format!("the record {key}: {error}"))?;
            entries.push(Entry { key, version, value });
        }
        Ok(entries)
    }

    fn contents(&self) -> Result<Contents, String> {
        let mut entries = self.stored()?;
        entries.retain(|entry| !self.pending.contains_key(&entry.key));
        entries.extend(self.pending.iter().map(|(key, (version, value))| Entry {
            key: key.clone(),
            version: *version,
            value: value.clone(),
        }));
        let (generation, revision) = (self.generation, self.revision);
        Ok(Contents { bond: self.bond.clone(), generation, revision, entries })
    }
}

#[cfg(test)]
mod tests;
