//! The directory that several hosts share: small records with versions, changed all or none, and watched.
//!
//! What a record says is its writers' business ([`record`]). It stands in a file of one process, which serves it to others of
//! its machine, or in etcd. The interface is what both have: read, compare-and-set of several records at once, and a watch that goes on from a revision. Every change is stable
//! before its answer. Who gets no answer knows nothing: [`Outcome::Unknown`].

mod copy;
mod etcd;
mod presence;
mod rebuild;
pub mod record;
mod remote;
mod serve;
mod store;
#[cfg(test)]
mod tests;
mod transaction;

pub use copy::{Contents, Copied};
pub use etcd::{ClusterRecord, InEtcd, first_generation};
pub use presence::{Attendees, Beat, DeviceBeat, Heard, now_ns};
pub use rebuild::{Alone, Ground};
pub use remote::Remote;
pub use serve::router;
pub use store::{Store, put_all};
pub use transaction::{Change, Changes, Entry, Outcome, cluster_of, unwritten};

use crate::system::blocking;
use failure::{Code, Failure};
use std::sync::Arc;

/// A way to the directory.
#[derive(Clone)]
pub enum Shared {
    /// In this process, the only host of its cluster.
    Embedded(Arc<Store>),
    /// Served by another process of this machine.
    Remote(Remote),
    /// In etcd.
    Etcd(Arc<InEtcd>),
}

impl Shared {
    /// A way to etcd; nothing is connected yet. `copy` is kept of what stands there.
    ///
    /// # Errors
    /// When a file that is needed for it cannot be read.
    pub fn in_etcd(options: &::etcd::Options, copy: Option<Arc<Copied>>) -> Result<Shared, Failure> {
        let etcd = InEtcd::new(options)?;
        Ok(Shared::Etcd(Arc::new(match copy {
            Some(copy) => etcd.with_copy(copy),
            None => etcd,
        })))
    }

    /// All records of a copy, as if they had just been heard of; only the directory that it is of counts from now on.
    ///
    /// # Errors
    /// When the copy makes no sense.
    pub fn resume_from(&self, kept: Contents) -> Result<Changes, Failure> {
        let Shared::Etcd(etcd) = self else {
            return Err(Failure::new(Code::Failed, "copies are kept of directories in etcd alone"));
        };
        Ok(Changes {
            cluster: etcd.bind_to_copy(&kept)?,
            revision: kept.revision,
            is_complete: true,
            entries: kept.entries,
            gone: Vec::new(),
        })
    }

    /// One record.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, Failure> {
        match self {
            Shared::Embedded(store) => Ok(store.get(key)),
            Shared::Remote(remote) => remote.get(key).await,
            Shared::Etcd(etcd) => etcd.get(key).await,
        }
    }

    /// Makes all changes, or none.
    pub async fn commit(&self, changes: Vec<Change>) -> Outcome {
        match self {
            Shared::Embedded(store) => match blocking(|| store.commit(&changes)) {
                Ok(outcome) => outcome,
                Err(failure) => Outcome::Unwritten { why: failure.error },
            },
            Shared::Remote(remote) => remote.commit(&changes).await,
            Shared::Etcd(etcd) => etcd.commit(&changes).await,
        }
    }

    /// Tells that this host is there, and hears who else is.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn beat(&self, beat: &Beat) -> Result<Attendees, Failure> {
        match self {
            Shared::Embedded(store) => Ok(store.beat(beat.clone())),
            Shared::Remote(remote) => remote.beat(beat).await,
            Shared::Etcd(etcd) => etcd.beat(beat).await,
        }
    }

    /// Members that do not answer, and what came instead; a directory on this machine has none.
    pub async fn silent_members(&self) -> Vec<(String, String)> {
        match self {
            Shared::Embedded(_) | Shared::Remote(_) => Vec::new(),
            Shared::Etcd(etcd) => etcd.etcd.silent_members().await,
        }
    }

    /// How many members are asked.
    pub fn member_count(&self) -> usize {
        match self {
            Shared::Embedded(_) | Shared::Remote(_) => 1,
            Shared::Etcd(etcd) => etcd.etcd.endpoint_count(),
        }
    }

    /// What changed after `revision`; at the first time, or when that is long ago, everything. Waits a while for something
    /// to change.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn watch(&self, revision: Option<u64>) -> Result<Changes, Failure> {
        match self {
            Shared::Embedded(store) => Ok(store.watch(revision).await),
            Shared::Remote(remote) => remote.watch(revision).await,
            Shared::Etcd(etcd) => etcd.watch(revision).await,
        }
    }
}
