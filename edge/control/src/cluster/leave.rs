//! A host leaves its cluster for good: once it is emptied, it takes its own record out, and its certificate counts no more.
//!
//! Must never go while something of a disk stands on it, clients have disks here, or the cluster needs what only it has.

use super::Cluster;
use crate::directory::shared::record::ClusterHost;
use crate::directory::shared::{Change, Outcome};
use ::cluster::{Maintenance, Mode};
use api::types::NOT_EMPTIED;
use failure::{Code, Failure};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Whether this host was taken out of its cluster, by itself or by others: it must not write its record any more.
    pub(super) fn is_out(&self) -> bool {
        let trust = self.certified().map(|security| Arc::clone(&security.trust));
        let is_revoked =
            trust.is_some_and(|trust| self.is_revoked(&trust.identity(), trust.certificate().issued_ns()));
        self.has_left.load(Ordering::Relaxed) || is_revoked
    }

    /// Takes this host out of the cluster.
    ///
    /// # Errors
    /// What stands in the way, or that the directory does not answer.
    pub async fn leave(&self) -> Result<(), Failure> {
        let Some((_, own)) = self.fetch_host(self.me).await? else {
            return Err(Failure::refused("this host is none of its cluster any more"));
        };
        self.check_may_leave(&own).await?;
        if let Some(security) = self.certified() {
            // First: what was shown before must not be believed when it is out.
            let (cluster, name) = (security.cluster(), crate::security::name(&own.record.name)?);
            self.revoke(&trust::Identity::Host { cluster, host: self.me, name }).await?;
        }
        self.has_left.store(true, Ordering::Relaxed);
        self.take_out().await
    }

    /// Takes this host's record out of the directory. What was being written to it when that was decided may come before.
    async fn take_out(&self) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some((version, _)) = self.fetch_host(self.me).await? else { return Ok(()) };
            let mut changes = vec![Change { key: ClusterHost::key(self.me), expected: version, value: None }];
            changes.extend(self.program_gone(self.me).await?);
            match self.directory().commit(changes).await {
                Outcome::Done { .. } => return Ok(()),
                Outcome::Conflict { .. } | Outcome::Unwritten { .. } | Outcome::Unknown => {}
            }
        }
        Err(Failure::new(Code::Unreachable, "the directory did not take the record of this host out").hint(
            "try again; other hosts can take it out too, with `drystone host remove`, once it has ended",
        ))
    }

    async fn check_may_leave(&self, own: &ClusterHost) -> Result<(), Failure> {
        let name = &own.record.name;
        let refused = |why: String, hint: &str| Err(Failure::refused(why).hint(hint));
        if self.view().hosts.len() < 2 {
            return refused(
                format!("host {name} is the only one of its cluster"),
                "delete its disks instead",
            );
        }
        let me = self.me.to_string();
        let view = self.view();
        let mut kept = view.believed.authorities.iter().flat_map(|(_, record)| &record.authorities);
        if kept.any(|authority| authority.keeper == me) {
            return refused(
                format!("host {name} keeps an authority of the cluster, which signs its certificates"),
                "on another host: `drystone cluster certificates add-authority`, and then `drop-authority` with the fingerprint that \
                 `drystone cluster certificates list` shows for this one",
            );
        }
        let clients: usize = self.attached_here().values().sum();
        if clients > 0 {
            return refused(
                format!("{clients} clients are attached to disks at host {name}"),
                "move these guests to other hosts first: see `drystone status`",
            );
        }
        match own.record.maintenance {
            Maintenance::On { mode: Mode::FullEvacuation, .. } => {}
            _ => {
                return refused(
                    format!("host {name} {NOT_EMPTIED}"),
                    "`drystone host leave` on it does that first",
                );
            }
        }
        let is_here = |disk: &&std::sync::Arc<crate::directory::shared::record::ClusterDisk>| {
            disk.record.components().into_iter().any(|(node, _)| node.host == self.me)
        };
        let held: Vec<&str> =
            view.disks.values().filter(is_here).map(|disk| disk.record.name.as_str()).collect();
        if !held.is_empty() {
            return refused(
                format!(
                    "something of {} disks stands on host {name} still: {}",
                    held.len(),
                    held[..held.len().min(5)].join(", ")
                ),
                "see `drystone resync` for what is being moved",
            );
        }
        Ok(())
    }
}
