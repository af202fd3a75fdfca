//! Disks that clients are kept from while something is done that would pull the data from under them.
//!
//! The disk's claim is taken first, so that no other host lets clients in. Must leave no disk locked that nothing is done with.

use super::Control;
use super::state::LockedDisk;
use crate::cluster::{Place, in_use};
use crate::events::Kind;
use crate::limits::{ATTACH_POLL, DETACH_WAIT};
use base::DiskId;
use engine::{Command, DiskLock, DiskRecord, Locking};
use failure::{Code, Failure};
use std::sync::PoisonError;
use std::time::Instant;

impl Control {
    /// Keeps all clients from a disk.
    ///
    /// # Errors
    /// When clients have it and are not to lose it, or something is done with it already. Nothing is locked then.
    pub(super) async fn lock(&self, record: &DiskRecord, lock: DiskLock) -> Result<LockedDisk, Failure> {
        self.reserve(record, &lock)?;
        let locked = match self.cluster.lock_disk(record.id, &lock.why, lock.ends_connections).await {
            Ok(found) => LockedDisk { disk: record.id, found },
            Err(failure) => {
                self.unreserve(record.id);
                return Err(failure);
            }
        };
        match self.lock_here(record, lock).await {
            Ok(()) => Ok(locked),
            Err(failure) => {
                self.unlock(locked).await;
                Err(failure)
            }
        }
    }

    /// Lets clients have the disk again, if it is still there.
    pub(super) async fn unlock(&self, locked: LockedDisk) {
        let disk = locked.disk;
        // An engine that is gone has no locks.
        let _ = self.engine.call(|answer| Command::Unlock { disk, answer }).await;
        self.cluster.unlock_disk(disk, locked.found).await;
        self.unreserve(disk);
    }

    /// One lock of a disk at a time.
    fn reserve(&self, record: &DiskRecord, lock: &DiskLock) -> Result<(), Failure> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = locks.get(&record.id) {
            return Err(Failure::new(Code::Conflict, format!("disk {} {why}", record.name))
                .hint("wait until that has ended"));
        }
        locks.insert(record.id, lock.why.clone());
        Ok(())
    }

    fn unreserve(&self, disk: DiskId) {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).remove(&disk);
    }

    /// Keeps the clients of this host from a disk, and waits until those that lose it are gone with all that they had in flight.
    async fn lock_here(&self, record: &DiskRecord, lock: DiskLock) -> Result<(), Failure> {
        let (disk, name, why) = (record.id, &record.name, lock.why.clone());
        let count = match self.engine.call(|answer| Command::Lock { disk, lock, answer }).await? {
            Locking::Locked(0) => return Ok(()),
            Locking::Locked(count) => count,
            Locking::InUse(count) => {
                let place =
                    Place { host: self.cluster.me, name: self.config().name.clone(), clients: Some(count) };
                return Err(in_use(name, &[place]));
            }
        };
        let text = format!("{} cut off: the disk {why}", were(count));
        self.events.disk(Kind::DiskCutOff, name, text);
        let until = Instant::now() + DETACH_WAIT;
        loop {
            let states = self.disk_states(Some(disk)).await?;
            if states.get(&disk).is_none_or(|state| state.clients.is_empty()) {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::refused(format!(
                    "disk {name} is in use: requests of clients that were cut off are still in flight after {} s",
                    DETACH_WAIT.as_secs()
                ))
                .hint("see `drystone disk show` for what the disk waits for, and try again"));
            }
            tokio::time::sleep(ATTACH_POLL).await;
        }
    }
}

fn were(count: usize) -> String {
    match count {
        1 => "1 client was".to_owned(),
        count => format!("{count} clients were"),
    }
}
