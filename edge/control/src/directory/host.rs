//! What a host keeps for itself: its identity, its starts, its cluster, and where its disk groups were last.

use super::File;
use super::file::broke;
use super::former;
use super::shared::{Entry, Store};
use base::{ClusterId, GroupId, HostId};
use failure::Failure;
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the file that this program writes. Version 1 kept disks and policies of a host alone in tables of their own.
const FORMAT: u128 = 2;

pub(super) const META: TableDefinition<&str, u128> = TableDefinition::new("meta");
const GROUPS: TableDefinition<u128, &[u8]> = TableDefinition::new("groups");

const KEY_FORMAT: &str = "format";
const KEY_HOST: &str = "host";
const KEY_CLUSTER: &str = "cluster";
const KEY_INCARNATION: &str = "incarnation";
/// There once the host's directory stands elsewhere: the records of its own count no more.
const KEY_ELSEWHERE: &str = "elsewhere";
/// Sessions that one start may begin before they would reach those of the next, whose clock stood still: an hour of one a
/// nanosecond.
pub const INCARNATION_STEP: u64 = 3_600_000_000_000;

/// A disk group: where its devices were last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEntry {
    /// Its identity.
    pub id: GroupId,
    /// The log device.
    pub log: PathBuf,
    /// The capacity devices.
    pub capacity: Vec<PathBuf>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredGroup {
    id: String,
    log: PathBuf,
    capacity: Vec<PathBuf>,
}

/// The host's own records.
pub struct HostStore {
    file: Arc<File>,
    groups: RwLock<Arc<BTreeMap<GroupId, GroupEntry>>>,
    /// The host's identity, drawn when the file was made.
    pub host: HostId,
}

impl HostStore {
    /// Opens the file at `path`, or makes it with `fresh_host` as the host's identity. A file of the former version is converted.
    ///
    /// # Errors
    /// When the file is damaged, in use, or of a newer program.
    pub fn open(path: &Path, fresh_host: HostId) -> Result<HostStore, Failure> {
        let what = format!("open the directory {}", path.display());
        let file = File::open(path)?;
        let host = file.write(|transaction| prepare(transaction, &what, fresh_host))?;
        let groups = file.read(|transaction| {
            let table = transaction.open_table(GROUPS).map_err(broke)?;
            let rows = table.iter().map_err(broke)?;
            rows.map(|row| read_group(row.map_err(broke)?.1.value())).collect::<Result<BTreeMap<_, _>, _>>()
        })?;
        Ok(HostStore { file: Arc::new(file), groups: RwLock::new(Arc::new(groups)), host })
    }

    /// The file, for the records of a host that stands alone.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// The disk groups by their ids.
    pub fn groups(&self) -> Arc<BTreeMap<GroupId, GroupEntry>> {
        Arc::clone(&self.groups.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cluster that the host and its devices belong to, once it is known.
    ///
    /// # Errors
    /// When the store fails.
    pub fn cluster(&self) -> Result<Option<ClusterId>, Failure> {
        self.file.read(|transaction| {
            let table = transaction.open_table(META).map_err(broke)?;
            let found = table.get(KEY_CLUSTER).map_err(broke)?;
            Ok(found.map(|value| ClusterId(value.value())))
        })
    }

    /// Whether the host's directory has ever stood elsewhere.
    ///
    /// # Errors
    /// When the store fails.
    pub fn is_elsewhere(&self) -> Result<bool, Failure> {
        self.file.read(|transaction| {
            let table = transaction.open_table(META).map_err(broke)?;
            Ok(table.get(KEY_ELSEWHERE).map_err(broke)?.is_some())
        })
    }

    /// Records that the host's directory stands elsewhere from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_elsewhere(&self) -> Result<(), Failure> {
        if self.is_elsewhere()? {
            return Ok(());
        }
        self.file.write(|transaction| {
            let mut table = transaction.open_table(META).map_err(broke)?;
            table.insert(KEY_ELSEWHERE, 1).map_err(broke)?;
            Ok(())
        })
    }

    /// The records of the time when the host stood alone, if it did and does still, and the version of the last change.
    ///
    /// # Errors
    /// When the store fails.
    pub fn alone(&self) -> Result<Option<(Vec<Entry>, u64)>, Failure> {
        match self.cluster()? {
            Some(cluster) if !self.is_elsewhere()? => Store::former(self.file(), cluster),
            Some(_) | None => Ok(None),
        }
    }

    /// Records the cluster.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_cluster(&self, cluster: ClusterId) -> Result<(), Failure> {
        self.file.write(|transaction| {
            let mut table = transaction.open_table(META).map_err(broke)?;
            table.insert(KEY_CLUSTER, cluster.0).map_err(broke)?;
            Ok(())
        })
    }

    /// A number for this start of the host, greater than at any before. Time makes it so when the file was lost.
    ///
    /// # Errors
    /// When the store fails.
    pub fn next_incarnation(&self) -> Result<u64, Failure> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        self.file.write(|transaction| {
            let mut table = transaction.open_table(META).map_err(broke)?;
            let last = table.get(KEY_INCARNATION).map_err(broke)?.map_or(0, |value| value.value());
            // Sessions count on from it, far more slowly than a nanosecond each.
            let next = clock.max(last + u128::from(INCARNATION_STEP));
            table.insert(KEY_INCARNATION, next).map_err(broke)?;
            u64::try_from(next).map_err(broke)
        })
    }

    /// Adds or replaces a group; those of `replaced` go.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_group(&self, group: GroupEntry, replaced: &[GroupId]) -> Result<(), Failure> {
        self.change_groups(|table, groups| {
            let bytes = serde_json::to_vec(&StoredGroup::from(&group)).map_err(broke)?;
            table.insert(group.id.0, bytes.as_slice()).map_err(broke)?;
            groups.insert(group.id, group);
            for id in replaced {
                table.remove(id.0).map_err(broke)?;
                groups.remove(id);
            }
            Ok(())
        })
    }

    /// Removes a group.
    ///
    /// # Errors
    /// When the store fails.
    pub fn remove_group(&self, id: GroupId) -> Result<(), Failure> {
        self.change_groups(|table, groups| {
            table.remove(id.0).map_err(broke)?;
            groups.remove(&id);
            Ok(())
        })
    }

    fn change_groups(
        &self,
        change: impl FnOnce(
            &mut redb::Table<'_, u128, &[u8]>,
            &mut BTreeMap<GroupId, GroupEntry>,
        ) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Held while it is written: what is in memory is what was written last.
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeMap::clone(&groups);
        self.file
            .write(|transaction| change(&mut transaction.open_table(GROUPS).map_err(broke)?, &mut next))?;
        *groups = Arc::new(next);
        Ok(())
    }
}

/// Makes the tables, brings the file to this format, and gives the host's identity.
fn prepare(transaction: &WriteTransaction, what: &str, fresh_host: HostId) -> Result<HostId, Failure> {
    let format = {
        let mut meta = transaction.open_table(META).map_err(broke)?;
        let format = meta.get(KEY_FORMAT).map_err(broke)?.map(|value| value.value());
        if format.is_none() {
            meta.insert(KEY_HOST, fresh_host.0).map_err(broke)?;
        }
        meta.insert(KEY_FORMAT, FORMAT).map_err(broke)?;
        format
    };
    transaction.open_table(GROUPS).map_err(broke)?;
    let meta = transaction.open_table(META).map_err(broke)?;
    let host = meta.get(KEY_HOST).map_err(broke)?.map(|value| HostId(value.value()));
    let host = host.ok_or_else(|| Failure::failed(what, "it does not say which host it belongs to"))?;
    drop(meta);
    match format {
        Some(1) => former::convert(transaction, host).map_err(|failure| Failure {
            error: format!("{what}: convert it from format 1: {}", failure.error),
            ..failure
        })?,
        Some(format) if format > FORMAT => {
            return Err(Failure::refused(format!(
                "{what}: it has format {format}; this program reads formats up to {FORMAT}"
            ))
            .hint("use the newer program that wrote it"));
        }
        Some(_) | None => {}
    }
    Ok(host)
}

fn read_group(bytes: &[u8]) -> Result<(GroupId, GroupEntry), Failure> {
    let stored: StoredGroup = serde_json::from_slice(bytes).map_err(broke)?;
    let id = stored.id.parse().map_err(broke)?;
    Ok((id, GroupEntry { id, log: stored.log, capacity: stored.capacity }))
}

impl From<&GroupEntry> for StoredGroup {
    fn from(group: &GroupEntry) -> StoredGroup {
        StoredGroup { id: group.id.to_string(), log: group.log.clone(), capacity: group.capacity.clone() }
    }
}
