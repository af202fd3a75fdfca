//! A host among others: what it knows of the cluster by the shared directory, and what the engine wants of it.
//!
//! The directory's records come by a watch and are kept here; the engine is told of those that concern it. Guests' I/O never
//! waits for any of this but where the node says so by itself. Must hold no rule of replication or placement.

mod disks;
mod events;
mod follow;
mod progress;
mod view;

pub use events::EventLog;
pub use view::View;

use crate::config::{ClusterConfig, Config};
use crate::control::listen_text;
use crate::directory::shared::record::{ClusterDisk, DeviceEntry, HOSTS, HostEntry};
use crate::directory::shared::{Change, Changes, Outcome, Remote, Shared, cluster_of};
use crate::directory::{Directory, Records};
use crate::engine::{
    ClusterCommand, ClusterState, Command, EngineError, EngineHandle, Fabric, HostState, Notice,
};
use crate::failure::{Code, Failure};
use crate::limits::{DIRECTORY_PATIENCE, DIRECTORY_RETRY};
use base::{ComponentId, DiskId, NodeId};
use placement::DeviceSpace;
use progress::Progress;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

/// The cluster as one of its hosts knows it.
pub struct Cluster {
    /// This host's node.
    pub me: NodeId,
    /// This start of it.
    pub incarnation: u64,
    /// Where other hosts connect to this one.
    pub peers: SocketAddr,
    /// What happened to the disks that this host owned.
    pub events: EventLog,
    directory: Shared,
    engine: EngineHandle,
    config: Config,
    fault_domain: Option<String>,
    view: RwLock<Arc<View>>,
    revision: watch::Sender<u64>,
    progress: Mutex<Progress>,
    /// Why the directory does not answer, while it does not.
    away: Mutex<Option<String>>,
}

/// What a start has found out before the engine runs.
pub struct Found {
    directory: Shared,
    changes: Changes,
}

/// Waits for the directory that the configuration names, and checks that the host belongs to its cluster.
///
/// # Errors
/// When it does not answer for long, or belongs to another cluster.
pub async fn find(config: &ClusterConfig, own: &Directory) -> Result<Found, Failure> {
    let directory = Shared::Remote(Remote::new(config.directory.clone()));
    let until = Instant::now() + DIRECTORY_PATIENCE;
    let changes = loop {
        match directory.watch(None).await {
            Ok(changes) => break changes,
            Err(failure) if Instant::now() >= until => return Err(failure),
            Err(_) => tokio::time::sleep(DIRECTORY_RETRY).await,
        }
    };
    let cluster = cluster_of(&changes)?;
    if let Some(mine) = own.cluster()?.filter(|mine| *mine != cluster) {
        return Err(Failure::refused(format!(
            "this host belongs to cluster {mine}, and the directory at {} to cluster {cluster}",
            config.directory.display()
        ))
        .hint("correct [cluster] directory, or give the host a data_dir and devices of its own"));
    }
    own.set_cluster(cluster)?;
    Ok(Found { directory, changes })
}

impl Cluster {
    /// Makes the engine one of several. To be called before it opens anything.
    ///
    /// # Errors
    /// When the engine cannot listen for other hosts.
    pub async fn join(
        found: Found,
        config: &Config,
        settings: &ClusterConfig,
        own: &Directory,
        engine: EngineHandle,
    ) -> Result<(Arc<Cluster>, UnboundedReceiver<Notice>), Failure> {
        let me = NodeId { host: own.host, shard: 0 };
        let incarnation = own.next_incarnation()?;
        let fabric = Fabric {
            cluster: cluster_of(&found.changes)?,
            node: me,
            incarnation,
            listen: settings.peers,
            buffer_bytes: config.peer_buffer_bytes(),
            prefers_local: settings.prefers_local,
        };
        let (notices, inbox) = unbounded_channel();
        let join = |answer| Command::cluster(ClusterCommand::Join { fabric, notices, answer });
        let peers = engine.call(join).await??;
        let cluster = Arc::new(Cluster {
            me,
            incarnation,
            peers,
            events: EventLog::default(),
            directory: found.directory,
            engine,
            config: config.clone(),
            fault_domain: settings.fault_domain.clone(),
            view: RwLock::default(),
            revision: watch::Sender::new(0),
            progress: Mutex::default(),
            away: Mutex::default(),
        });
        cluster.check_name(&found.changes)?;
        cluster.take(found.changes);
        Ok((cluster, inbox))
    }

    /// Two hosts of one name would be one to people.
    fn check_name(&self, changes: &Changes) -> Result<(), Failure> {
        let hosts = changes.entries.iter().filter(|entry| entry.key.starts_with(HOSTS));
        let hosts = hosts.filter_map(|entry| serde_json::from_value::<HostEntry>(entry.value.clone()).ok());
        match hosts.into_iter().find(|host| host.name == self.config.name && host.id != self.me.host) {
            None => Ok(()),
            Some(other) => Err(Failure::new(
                Code::Conflict,
                format!("there is a host `{}` in this cluster already, with the id {}", other.name, other.id),
            )
            .hint("give this one another `name`")),
        }
    }

    /// Begins to serve the cluster's disks, and to follow its records. The devices are open.
    ///
    /// # Errors
    /// When the engine is gone, or the directory does not take this host's record.
    pub async fn begin(self: &Arc<Cluster>, notices: UnboundedReceiver<Notice>) -> Result<(), Failure> {
        self.put_host().await?;
        let view = self.view();
        self.tell_nodes(&view)?;
        for disk in view.disks.values() {
            self.tell_disk(disk).await?;
        }
        tokio::spawn(Arc::clone(self).follow());
        tokio::spawn(Arc::clone(self).serve_notices(notices));
        tokio::spawn(Arc::clone(self).keep_record());
        tokio::spawn(Arc::clone(self).clean_up());
        Ok(())
    }

    /// The records as they were last heard of.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Disks and policies in the form of a single host's directory.
    pub fn records(&self) -> Arc<Records> {
        Arc::clone(&self.view().records)
    }

    /// Why the directory does not answer, while it does not.
    pub fn directory_away(&self) -> Option<String> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the engine knows.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn state(&self) -> Result<ClusterState, EngineError> {
        self.engine.call(|answer| Command::cluster(ClusterCommand::State { answer })).await
    }

    /// Bytes per second at which a component is brought up to date, by this host as the disk's owner.
    pub fn pace(&self, component: ComponentId) -> Option<f64> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).pace(component)
    }

    /// A component as people know it: by its host.
    fn component_text(&self, view: &View, disk: DiskId, component: ComponentId) -> String {
        let member = view.disks.get(&disk).and_then(|disk| disk.roster.member(component));
        match member {
            Some(member) => format!("the copy on host {}", view.host_name(member.node.host)),
            None => format!("component {component}"),
        }
    }

    /// All capacity devices of the cluster.
    pub fn all_spaces(&self) -> Vec<DeviceSpace> {
        let view = self.view();
        view.hosts.values().flat_map(|host| host.entry.spaces(true).collect::<Vec<_>>()).collect()
    }

    /// All capacity devices of the cluster; those of hosts that this one cannot reach take nothing new.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn spaces(&self) -> Result<Vec<DeviceSpace>, Failure> {
        let state = self.state().await?;
        let view = self.view();
        let is_reachable = |node: NodeId| node == self.me || state.links.get(&node) == Some(&true);
        let of_host = |host: &HostEntry| host.spaces(is_reachable(host.node())).collect::<Vec<_>>();
        Ok(view.hosts.values().flat_map(|host| of_host(&host.entry)).collect())
    }

    /// Takes records in, and says which disks they change or remove.
    fn take(&self, changes: Changes) -> view::Difference {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        let difference = next.take(changes);
        let revision = next.revision;
        *view = Arc::new(next);
        drop(view);
        self.revision.send_replace(revision);
        difference
    }

    /// Takes a disk's record in that was read or written by this host: the watch would tell of it later.
    fn note(&self, disk: &ClusterDisk) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        next.note(disk);
        *view = Arc::new(next);
    }

    /// Puts this host's record, if it says something new.
    async fn put_host(&self) -> Result<(), Failure> {
        let state = self.engine.call(|answer| Command::Host { answer }).await?;
        let entry = self.host_entry(&state);
        let key = format!("{HOSTS}{}", self.me.host);
        for _ in 0..3 {
            let known = self.view().hosts.get(&self.me.host).cloned();
            if known.as_ref().is_some_and(|known| *known.entry == entry) {
                return Ok(());
            }
            let expected = match self.directory.get(&key).await? {
                Some(found) => found.version,
                None => 0,
            };
            let value =
                serde_json::to_value(&entry).map_err(|error| Failure::failed("write a record", error))?;
            let change = Change { key: key.clone(), expected, value: Some(value) };
            if let Outcome::Done { version } = self.directory.commit(vec![change]).await {
                let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
                let mut next = View::clone(&view);
                next.note_host(version, entry);
                *view = Arc::new(next);
                return Ok(());
            }
        }
        Err(Failure::new(Code::Unreachable, "the directory does not take this host's record"))
    }

    fn host_entry(&self, state: &HostState) -> HostEntry {
        let device = |device: &crate::engine::DeviceState| DeviceEntry {
            id: device.id,
            path: device.path.display().to_string(),
            group: device.group,
            capacity_bytes: device.capacity_bytes,
            free_bytes: device.capacity_bytes.saturating_sub(device.used_bytes),
            reserved_bytes: device.reserved_bytes,
            component_count: device.component_count,
            component_count_max: device.component_count_max,
            failure: device.failure.clone(),
        };
        HostEntry {
            id: self.me.host,
            name: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            incarnation: self.incarnation,
            peers: self.peers,
            api: self.config.http.iter().map(listen_text).collect(),
            nbd: self.config.nbd.iter().map(listen_text).collect(),
            nbd_tls: self.config.tls.as_ref().is_some_and(|tls| tls.required),
            fault_domain: self.fault_domain.clone(),
            devices: state.devices.iter().filter(|device| device.is_capacity).map(device).collect(),
        }
    }
}
