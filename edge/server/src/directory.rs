//! The directory of a single host: disks, policies and groups in one file of an embedded store.
//!
//! Every change but one ([`Directory::settle_created`]) is a transaction that is stable before it returns, and a change of a disk names the version that it
//! starts from. A copy of all records is kept in memory, which is what readers see. Must never be asked on the way of a
//! guest's I/O. Records are JSON, each with the versions of its parts; `FORMAT` is the version of the whole file.

mod record;
pub mod shared;

pub use record::{DiskEntry, GroupEntry, PolicyEntry, State};

use crate::failure::{Code, Failure};
use base::{ClusterId, DiskId, GroupId, HostId};
use record::{StoredDisk, StoredGroup, StoredPolicy};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::record::Silences;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the file that this program writes.
const FORMAT: u64 = 1;

const META: TableDefinition<&str, u128> = TableDefinition::new("meta");
const DISKS: TableDefinition<u128, &[u8]> = TableDefinition::new("disks");
const GROUPS: TableDefinition<u128, &[u8]> = TableDefinition::new("groups");
const POLICIES: TableDefinition<&str, &[u8]> = TableDefinition::new("policies");
/// Single records by their names.
const SINGLE: TableDefinition<&str, &[u8]> = TableDefinition::new("single");
const KEY_SILENCES: &str = "silences";

const KEY_FORMAT: &str = "format";
const KEY_HOST: &str = "host";
const KEY_CLUSTER: &str = "cluster";
const KEY_INCARNATION: &str = "incarnation";
/// Sessions that one start may begin before they would reach those of the next, whose clock stood still: an hour of one a
/// nanosecond.
pub const INCARNATION_STEP: u64 = 3_600_000_000_000;

/// The records as they are now.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// All disks, also those being made or deleted.
    pub disks: BTreeMap<DiskId, Arc<DiskEntry>>,
    /// Names of disks.
    pub names: BTreeMap<String, DiskId>,
    /// Groups.
    pub groups: BTreeMap<GroupId, GroupEntry>,
    /// Policies that people made, by name.
    pub policies: BTreeMap<String, PolicyEntry>,
    /// What people do not want to be told again for a while.
    pub silences: Silences,
}

impl Records {
    /// The disk of a name, or else of an id.
    pub fn disk(&self, name: &str) -> Option<&Arc<DiskEntry>> {
        let id = self.names.get(name).copied().or_else(|| name.parse().ok())?;
        self.disks.get(&id)
    }

    /// Takes a disk in, or its new record.
    pub fn insert(&mut self, entry: DiskEntry) {
        if let Some(former) = self.disks.get(&entry.record.id) {
            self.names.remove(&former.record.name);
        }
        self.names.insert(entry.record.name.clone(), entry.record.id);
        self.disks.insert(entry.record.id, Arc::new(entry));
    }
}

/// When a transaction is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stable {
    /// Before it returns.
    AtOnce,
    /// With the next one that is stable at once, or when the store is closed.
    WithTheNext,
}

/// The store and the records in memory.
pub struct Directory {
    path: PathBuf,
    /// Nothing after a write that failed: the store takes no other one until it is opened anew.
    database: Mutex<Option<Database>>,
    records: RwLock<Arc<Records>>,
    /// This host's identity, drawn when the directory was made.
    pub host: HostId,
}

fn broke(error: impl std::fmt::Display) -> Failure {
    Failure::failed("write the directory", error)
}

impl Directory {
    /// Opens the file at `path`, or makes it with `fresh_host` as the host's identity.
    ///
    /// # Errors
    /// When the file is damaged, in use, or of a newer program.
    pub fn open(path: &Path, fresh_host: HostId) -> Result<Directory, Failure> {
        let what = format!("open the directory {}", path.display());
        let database = Database::create(path).map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => {
                Failure::refused(format!("{what}: another program has it open"))
            }
            redb::DatabaseError::UpgradeRequired(version) => Failure::refused(format!(
                "{what}: its store has version {version}, which this program does not read"
            )),
            other => Failure::failed(&what, other)
                .hint("move the file away to have the directory rebuilt from the devices"),
        })?;
        let transaction = database.begin_write().map_err(broke)?;
        let host = prepare(&transaction, &what, fresh_host)?;
        transaction.commit().map_err(broke)?;
        let records = load(&database).map_err(|error| Failure::failed(&what, error))?;
        let (database, records) = (Mutex::new(Some(database)), RwLock::new(Arc::new(records)));
        Ok(Directory { path: path.to_owned(), database, records, host })
    }

    /// The records as they are now.
    pub fn records(&self) -> Arc<Records> {
        Arc::clone(&self.records.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cluster that the devices belong to, once it is known.
    pub fn cluster(&self) -> Result<Option<ClusterId>, Failure> {
        let mut held = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = self.opened(&mut held)?.begin_read().map_err(broke)?;
        let table = transaction.open_table(META).map_err(broke)?;
        let found = table.get(KEY_CLUSTER).map_err(broke)?;
        Ok(found.map(|value| ClusterId(value.value())))
    }

    /// Records the cluster.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_cluster(&self, cluster: ClusterId) -> Result<(), Failure> {
        self.change(|transaction, _| {
            let mut table = transaction.open_table(META).map_err(broke)?;
            table.insert(KEY_CLUSTER, cluster.0).map_err(broke)?;
            Ok(())
        })
    }

    /// A number for this start of the host, greater than at any before. Time makes it so when the directory was lost.
    ///
    /// # Errors
    /// When the store fails.
    pub fn next_incarnation(&self) -> Result<u64, Failure> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        self.change(|transaction, _| {
            let mut table = transaction.open_table(META).map_err(broke)?;
            let last = table.get(KEY_INCARNATION).map_err(broke)?.map_or(0, |value| value.value());
            // Sessions count on from it, far more slowly than a nanosecond each.
            let next = clock.max(last + u128::from(INCARNATION_STEP));
            table.insert(KEY_INCARNATION, next).map_err(broke)?;
            u64::try_from(next).map_err(broke)
        })
    }

    /// Adds a disk. Its name and id must be new.
    ///
    /// # Errors
    /// [`Code::Conflict`] when the name is taken.
    pub fn add_disk(&self, entry: DiskEntry) -> Result<(), Failure> {
        assert!(entry.version == 1, "a new record has version 1");
        self.change(|transaction, records| {
            check_name_is_free(records, &entry)?;
            if records.disks.contains_key(&entry.record.id) {
                return Err(Failure::new(
                    Code::Conflict,
                    format!("there is a disk {} already", entry.record.id),
                ));
            }
            put_disk(transaction, records, entry.clone())
        })
    }

    /// Replaces a disk's record by `entry`, whose version is that of the record it starts from; gives back the new
    /// one.
    ///
    /// # Errors
    /// [`Code::Conflict`] when the record changed meanwhile or the name is taken.
    pub fn replace_disk(&self, entry: DiskEntry) -> Result<Arc<DiskEntry>, Failure> {
        self.replace_disks(vec![entry]).map(|mut entries| entries.remove(0))
    }

    /// The same for several disks in one transaction: all or none.
    ///
    /// # Errors
    /// As for one.
    pub fn replace_disks(&self, entries: Vec<DiskEntry>) -> Result<Vec<Arc<DiskEntry>>, Failure> {
        let ids: Vec<DiskId> = entries.iter().map(|entry| entry.record.id).collect();
        self.change(|transaction, records| {
            for entry in &entries {
                check_version(records, entry.record.id, entry.version)?;
                check_name_is_free(records, entry)?;
                put_disk(transaction, records, DiskEntry { version: entry.version + 1, ..entry.clone() })?;
            }
            Ok(())
        })?;
        let records = self.records();
        Ok(ids.iter().map(|id| Arc::clone(&records.disks[id])).collect())
    }

    /// Records that a disk which was being created is whole. Not stable when this returns, but with the next change or
    /// the end of the program: the creation is whole on the devices, and the next start finds that out.
    ///
    /// # Errors
    /// As for [`Directory::replace_disk`].
    pub fn settle_created(&self, entry: DiskEntry) -> Result<Arc<DiskEntry>, Failure> {
        assert!(entry.state == State::Active, "a disk that was created is active");
        let id = entry.record.id;
        self.change_with(Stable::WithTheNext, |transaction, records| {
            check_version(records, id, entry.version)?;
            put_disk(transaction, records, DiskEntry { version: entry.version + 1, ..entry })
        })?;
        Ok(Arc::clone(&self.records().disks[&id]))
    }

    /// Removes a disk's record that still has `version`.
    ///
    /// # Errors
    /// [`Code::Conflict`] when it changed meanwhile.
    pub fn remove_disk(&self, id: DiskId, version: u64) -> Result<(), Failure> {
        self.change(|transaction, records| {
            check_version(records, id, version)?;
            transaction.open_table(DISKS).map_err(broke)?.remove(id.0).map_err(broke)?;
            if let Some(entry) = records.disks.remove(&id) {
                records.names.remove(&entry.record.name);
            }
            Ok(())
        })
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// [`Code::Conflict`] when the name is taken.
    pub fn add_policy(&self, policy: PolicyEntry) -> Result<(), Failure> {
        self.change(|transaction, records| {
            if records.policies.contains_key(&policy.name) {
                return Err(Failure::new(
                    Code::Conflict,
                    format!("there is a policy `{}` already", policy.name),
                ));
            }
            let bytes = encode(&StoredPolicy::from(&policy))?;
            let mut table = transaction.open_table(POLICIES).map_err(broke)?;
            table.insert(policy.name.as_str(), bytes.as_slice()).map_err(broke)?;
            records.policies.insert(policy.name.clone(), policy.clone());
            Ok(())
        })
    }

    /// Removes a policy; whether it was there.
    ///
    /// # Errors
    /// When the store fails.
    pub fn remove_policy(&self, name: &str) -> Result<bool, Failure> {
        self.change(|transaction, records| {
            transaction.open_table(POLICIES).map_err(broke)?.remove(name).map_err(broke)?;
            Ok(records.policies.remove(name).is_some())
        })
    }

    /// Replaces what people do not want to be told again by what `change` makes of it.
    ///
    /// # Errors
    /// What `change` says, or when the store fails.
    pub fn change_silences(
        &self,
        change: impl FnOnce(Silences) -> Result<Silences, Failure>,
    ) -> Result<(), Failure> {
        self.change(|transaction, records| {
            let silences = change(records.silences.clone())?;
            let bytes = encode(&silences)?;
            let mut table = transaction.open_table(SINGLE).map_err(broke)?;
            table.insert(KEY_SILENCES, bytes.as_slice()).map_err(broke)?;
            records.silences = silences;
            Ok(())
        })
    }

    /// Adds or replaces a group.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_group(&self, group: GroupEntry) -> Result<(), Failure> {
        self.change(|transaction, records| {
            let bytes = encode(&StoredGroup::from(&group))?;
            let mut table = transaction.open_table(GROUPS).map_err(broke)?;
            table.insert(group.id.0, bytes.as_slice()).map_err(broke)?;
            records.groups.insert(group.id, group.clone());
            Ok(())
        })
    }

    /// Removes a group.
    ///
    /// # Errors
    /// When the store fails.
    pub fn remove_group(&self, id: GroupId) -> Result<(), Failure> {
        self.change(|transaction, records| {
            transaction.open_table(GROUPS).map_err(broke)?.remove(id.0).map_err(broke)?;
            records.groups.remove(&id);
            Ok(())
        })
    }

    /// One transaction: `change` alters the store and a copy of the records; both count only if all went well.
    fn change<T>(
        &self,
        change: impl FnOnce(&WriteTransaction, &mut Records) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.change_with(Stable::AtOnce, change)
    }

    fn change_with<T>(
        &self,
        stable: Stable,
        change: impl FnOnce(&WriteTransaction, &mut Records) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // One writer at a time: the copy in memory must not be overtaken between commit and exchange.
        let mut held = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = self.opened(&mut held)?;
        let mut records = Records::clone(&self.records());
        let done = write(database, stable, |transaction| change(transaction, &mut records));
        match &done {
            Ok(_) => *self.records.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(records),
            Err(failure) if failure.code == Code::Failed => *held = None,
            Err(_) => {}
        }
        done
    }

    /// The store. After a failure, as when there was no room, it is opened anew and written as the copy in memory has it: a change
    /// that was told to have failed has not happened, and one that was to be stable with the next is not lost.
    fn opened<'a>(&self, held: &'a mut Option<Database>) -> Result<&'a Database, Failure> {
        if held.is_none() {
            let database = Database::open(&self.path).map_err(broke)?;
            let records = self.records();
            write(&database, Stable::AtOnce, |transaction| put_all(transaction, &records))?;
            *held = Some(database);
        }
        Ok(held.as_ref().expect("it was just opened"))
    }
}

/// One transaction.
fn write<T>(
    database: &Database,
    stable: Stable,
    change: impl FnOnce(&WriteTransaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut transaction = database.begin_write().map_err(broke)?;
    if stable == Stable::WithTheNext {
        transaction.set_durability(Durability::None).map_err(broke)?;
    }
    let result = change(&transaction)?;
    transaction.commit().map_err(broke)?;
    Ok(result)
}

/// Puts these records in the place of all that are there.
fn put_all(transaction: &WriteTransaction, records: &Records) -> Result<(), Failure> {
    for table in [DISKS, GROUPS] {
        transaction.delete_table(table).map_err(broke)?;
    }
    for table in [POLICIES, SINGLE] {
        transaction.delete_table(table).map_err(broke)?;
    }
    let mut disks = transaction.open_table(DISKS).map_err(broke)?;
    for entry in records.disks.values() {
        let bytes = encode(&StoredDisk::from(&**entry))?;
        disks.insert(entry.record.id.0, bytes.as_slice()).map_err(broke)?;
    }
    let mut groups = transaction.open_table(GROUPS).map_err(broke)?;
    for group in records.groups.values() {
        let bytes = encode(&StoredGroup::from(group))?;
        groups.insert(group.id.0, bytes.as_slice()).map_err(broke)?;
    }
    let mut policies = transaction.open_table(POLICIES).map_err(broke)?;
    for policy in records.policies.values() {
        let bytes = encode(&StoredPolicy::from(policy))?;
        policies.insert(policy.name.as_str(), bytes.as_slice()).map_err(broke)?;
    }
    let mut single = transaction.open_table(SINGLE).map_err(broke)?;
    let silences = encode(&records.silences)?;
    single.insert(KEY_SILENCES, silences.as_slice()).map_err(broke)?;
    Ok(())
}

fn check_version(records: &Records, id: DiskId, version: u64) -> Result<(), Failure> {
    match records.disks.get(&id) {
        None => Err(Failure::new(Code::NotFound, format!("there is no disk {id}"))),
        Some(entry) if entry.version != version => {
            Err(Failure::new(Code::Conflict, format!("the disk {} changed meanwhile", entry.record.name))
                .hint("look at it and try again"))
        }
        Some(_) => Ok(()),
    }
}

fn check_name_is_free(records: &Records, entry: &DiskEntry) -> Result<(), Failure> {
    match records.names.get(&entry.record.name) {
        Some(id) if *id != entry.record.id => {
            Err(Failure::new(Code::Conflict, format!("there is a disk `{}` already", entry.record.name)))
        }
        _ => Ok(()),
    }
}

fn put_disk(transaction: &WriteTransaction, records: &mut Records, entry: DiskEntry) -> Result<(), Failure> {
    let bytes = encode(&StoredDisk::from(&entry))?;
    let mut table = transaction.open_table(DISKS).map_err(broke)?;
    table.insert(entry.record.id.0, bytes.as_slice()).map_err(broke)?;
    records.insert(entry);
    Ok(())
}

/// Makes the tables, checks the format, and gives the host's identity.
fn prepare(transaction: &WriteTransaction, what: &str, fresh_host: HostId) -> Result<HostId, Failure> {
    let mut meta = transaction.open_table(META).map_err(broke)?;
    let format = meta.get(KEY_FORMAT).map_err(broke)?.map(|value| value.value());
    match format {
        None => {
            meta.insert(KEY_FORMAT, u128::from(FORMAT)).map_err(broke)?;
            meta.insert(KEY_HOST, fresh_host.0).map_err(broke)?;
        }
        Some(format) if format > u128::from(FORMAT) => {
            return Err(Failure::refused(format!(
                "{what}: it has format {format}; this program reads format {FORMAT}"
            ))
            .hint("use the newer program that wrote it"));
        }
        Some(_) => {}
    }
    for table in [DISKS, GROUPS] {
        transaction.open_table(table).map_err(broke)?;
    }
    for table in [POLICIES, SINGLE] {
        transaction.open_table(table).map_err(broke)?;
    }
    let host = meta.get(KEY_HOST).map_err(broke)?.map(|value| HostId(value.value()));
    host.ok_or_else(|| Failure::failed(what, "it does not say which host it belongs to"))
}

fn encode(record: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(record).map_err(broke)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("a record is damaged: {error}"))
}

fn load(database: &Database) -> Result<Records, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let transaction = database.begin_read().map_err(|error| text(&error))?;
    let mut records = Records::default();
    let disks = transaction.open_table(DISKS).map_err(|error| text(&error))?;
    for row in disks.iter().map_err(|error| text(&error))? {
        let (_, bytes) = row.map_err(|error| text(&error))?;
        records.insert(DiskEntry::try_from(decode::<StoredDisk>(bytes.value())?)?);
    }
    let groups = transaction.open_table(GROUPS).map_err(|error| text(&error))?;
    for row in groups.iter().map_err(|error| text(&error))? {
        let (_, bytes) = row.map_err(|error| text(&error))?;
        let group = GroupEntry::try_from(decode::<StoredGroup>(bytes.value())?)?;
        records.groups.insert(group.id, group);
    }
    let policies = transaction.open_table(POLICIES).map_err(|error| text(&error))?;
    for row in policies.iter().map_err(|error| text(&error))? {
        let (_, bytes) = row.map_err(|error| text(&error))?;
        let policy = PolicyEntry::try_from(decode::<StoredPolicy>(bytes.value())?)?;
        records.policies.insert(policy.name.clone(), policy);
    }
    let single = transaction.open_table(SINGLE).map_err(|error| text(&error))?;
    if let Some(bytes) = single.get(KEY_SILENCES).map_err(|error| text(&error))? {
        records.silences = decode(bytes.value())?;
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
