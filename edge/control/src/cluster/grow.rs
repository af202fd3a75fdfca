//! A cluster of one becomes one of several while its host serves: other hosts can connect, then the records move into etcd.
//!
//! The records move as a whole, and nothing changes them meanwhile: who tries is told so, and the owners of disks try again. Versions
//! go on where they were, so that nobody takes a record of etcd for an older one. Comes before any other host is let in.

use super::state::Standing;
use super::{COPY_FILE, Cluster};
use crate::config::Config;
use crate::directory::HostStore;
use crate::directory::shared::{Copied, Shared};
use crate::founding::Founding;
use crate::limits::DIRECTORY_PATIENCE;
use crate::security::Security;
use base::NodeId;
use engine::{ClusterCommand, Command, Fabric};
use failure::{Code, Failure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

impl Cluster {
    /// Makes this host the first of a cluster of several, with a configuration that names etcd.
    ///
    /// # Errors
    /// When the engine cannot listen for other hosts, or etcd does not take the records: the host stands alone still.
    pub async fn become_several(
        self: &Arc<Cluster>,
        config: &Config,
        own: &HostStore,
        founding: &Founding<'_>,
    ) -> Result<(), Failure> {
        let Shared::Embedded(store) = self.directory() else {
            return Err(Failure::new(Code::Conflict, "this host is one of a cluster of several already"));
        };
        let authority = founding.authority(true)?;
        let member = founding.run_member(true, &authority).await?;
        let security = Security::load(&config.data_dir)?;
        let security =
            security.ok_or_else(|| Failure::failed("read this host's identity", "there is none"))?;
        let peers = self.let_hosts_connect(config, &security).await?;
        let copy = Arc::new(Copied::open(&config.data_dir.join(COPY_FILE)));
        let directory = Shared::in_etcd(&founding.place(), Some(Arc::clone(&copy)))?;
        let hold = store.hold().ok_or_else(|| {
            Failure::new(Code::Conflict, "this host is becoming one of a cluster of several already")
        })?;
        founding.write(&authority, Some((hold.records.clone(), hold.revision))).await?;
        // From here on there is no way back: the records that count are those in etcd.
        if let Err(failure) = own.set_elsewhere() {
            tracing::warn!("{failure}; the next start tries that again");
        }
        let last = hold.revision;
        let config = Arc::new(config.clone());
        self.stand(Standing { config, directory, copy: Some(copy), security: Some(security), peers });
        hold.keep();
        self.hold_member(member);
        self.certificates_came.send_replace(true);
        tokio::spawn(Arc::clone(self).keep_certificate());
        let mut revision = self.revision.subscribe();
        let followed = revision.wait_for(|revision| *revision > last);
        if tokio::time::timeout(DIRECTORY_PATIENCE, followed).await.is_err() {
            tracing::warn!("the records are in etcd, and it does not answer this host now");
        }
        self.tell_devices().await;
        Ok(())
    }

    /// Has the engine listen for other hosts, encrypted; where they connect.
    async fn let_hosts_connect(
        &self,
        config: &Config,
        security: &Security,
    ) -> Result<Vec<Option<SocketAddr>>, Failure> {
        let fabric = Fabric {
            cluster: self.id,
            stands_alone: false,
            node: NodeId { host: self.me, shard: 0 },
            incarnation: self.incarnation,
            listen: config.peer_listener(),
            tls: Some(security.peer_tls()?),
            buffer_bytes: config.peer_buffer_bytes(),
            prefers_local: config.cluster.prefers_local,
            copy_floor: config.cluster.resync_floor,
            copy_tail_percent: config.cluster.resync_latency_percent,
            groups: BTreeMap::new(),
        };
        let tls = security.nbd_tls()?;
        let known = self.config().endpoints();
        let endpoints = config.endpoints().into_iter().filter(|one| !known.contains(one)).collect();
        let join = |answer| ClusterCommand::Join { fabric, tls, endpoints, answer };
        Ok(self.engine.call(|answer| Command::cluster(join(answer))).await??)
    }

    /// Completes once this host has a certificate.
    pub async fn has_certificate(&self) {
        // The sender lives as long as the cluster.
        let _ = self.certificates_came.subscribe().wait_for(|came| *came).await;
    }
}
