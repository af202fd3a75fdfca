//! Members of etcd that do not answer this host, though etcd as a whole does: a majority hides that the next loss stops everything.

use super::Cluster;
use crate::directory::shared::Shared;
use crate::limits::MEMBERS_PERIOD;
use ::cluster::SilentMember;
use std::sync::{Arc, PoisonError};

impl Cluster {
    /// Looks at the members of the directory until the engine is gone.
    pub(super) async fn watch_members(self: Arc<Cluster>) {
        loop {
            let directory = self.directory();
            if let Shared::Etcd(directory) = &directory {
                self.look_at_members(&directory.etcd).await;
            }
            let found = directory.silent_members().await;
            if self.state().await.is_err() {
                return;
            }
            self.note_silent(found);
            tokio::time::sleep(MEMBERS_PERIOD).await;
        }
    }

    fn note_silent(&self, found: Vec<(String, String)>) {
        let (now, members) = (self.directory_now(), self.directory().member_count());
        let mut silent = self.silent_members.lock().unwrap_or_else(PoisonError::into_inner);
        let known = std::mem::take(&mut *silent);
        let since = |address: &String| known.iter().find(|one| one.address == *address).map(|one| one.since);
        let next = found.into_iter().map(|(address, why)| {
            let since = since(&address).unwrap_or(now);
            SilentMember { address, since, why, members }
        });
        *silent = next.collect();
    }

    /// The members that did not answer when they were last asked.
    pub(super) fn silent_members(&self) -> Vec<SilentMember> {
        self.silent_members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
