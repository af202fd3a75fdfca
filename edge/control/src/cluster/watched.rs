//! The watcher of this host's process: started, told where the other hosts are, and started anew if it was killed.

use super::Cluster;
use super::follow::nodes_of;
use crate::watcher::{Testament, Watcher};
use std::sync::Arc;

impl Cluster {
    /// Keeps a watcher that knows where the other hosts are, as long as the cluster is followed.
    pub(super) async fn be_watched(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        let mut watcher: Option<Watcher> = None;
        loop {
            if watcher.is_none() {
                let started = Watcher::start(&self.config().data_dir).inspect_err(|error| {
                    tracing::warn!("nobody will tell the other hosts when this process ends: {error}");
                });
                watcher = started.ok();
            }
            let testament = Testament::new(self.id, self.me, self.incarnation, &nodes_of(&self.view()));
            if watcher.as_mut().is_some_and(|watcher| watcher.tell(testament).is_err()) {
                watcher = None; // It was killed: another is started when there is something new to be told.
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}
