//! A file of an embedded store (redb) that survives a failed write.
//!
//! After a write that failed, as when there is no room, the store takes no other one. It is then opened anew before the next
//! use, and holds what was stable before, with or without that write: who keeps a copy in memory reads it again.

use failure::Failure;
use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file.
pub struct File {
    path: PathBuf,
    held: Mutex<Held>,
}

/// The store as it is now.
enum Held {
    Open(Database),
    /// A write failed: it is opened anew before the next use.
    Broken,
    /// Nobody uses it any more.
    Closed,
}

/// A write, read or opening of the store that failed.
pub(super) fn broke(error: impl std::fmt::Display) -> Failure {
    Failure::failed("use the directory's file", error)
}

impl File {
    /// Opens the file at `path`, or makes it.
    ///
    /// # Errors
    /// When it is damaged, in use, or of a newer program.
    pub fn open(path: &Path) -> Result<File, Failure> {
        let what = format!("open the directory {}", path.display());
        let database = Database::create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => {
                Failure::refused(format!("{what}: another program has it open"))
            }
            DatabaseError::UpgradeRequired(version) => Failure::refused(format!(
                "{what}: its store has version {version}, which this program does not read"
            )),
            other => Failure::failed(&what, other)
                .hint("move the file away to have the directory rebuilt from the devices"),
        })?;
        Ok(File { path: path.to_owned(), held: Mutex::new(Held::Open(database)) })
    }

    /// Reads.
    ///
    /// # Errors
    /// What `look` says, or when the store fails.
    pub fn read<T>(&self, look: impl FnOnce(&ReadTransaction) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        look(&self.opened(&mut held)?.begin_read().map_err(broke)?)
    }

    /// One transaction, stable when this returns.
    ///
    /// # Errors
    /// What `change` says: then nothing is changed. Or when the store fails: then the change may be found when it is read again.
    pub fn write<T>(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = self.opened(&mut held)?.begin_write().map_err(broke)?;
        let done = change(&transaction).and_then(|done| {
            transaction.commit().map_err(broke)?;
            Ok(done)
        });
        if done.is_err() {
            *held = Held::Broken;
        }
        done
    }

    /// Closes it for good: another may open it, and whoever still uses this is refused.
    pub fn close(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Held::Closed;
    }

    fn opened<'a>(&self, held: &'a mut Held) -> Result<&'a Database, Failure> {
        if let Held::Broken = held {
            *held = Held::Open(Database::open(&self.path).map_err(broke)?);
        }
        match held {
            Held::Open(database) => Ok(database),
            Held::Broken | Held::Closed => Err(broke("it is closed")),
        }
    }
}
