//! What a host knows of its cluster, and what it is in it.

use super::attachments::Attachments;
use super::kept::Keeper;
use super::pools::Pools;
use super::progress::Progress;
use super::view::View;
use crate::config::Config;
use crate::directory::shared::{Copied, Shared};
use crate::events::EventLog;
use crate::security::Security;
use ::cluster::{DeviceReports, SilentMember};
use base::{ClusterId, HostId};
use engine::EngineHandle;
use failure::Failure;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};
use tokio::sync::watch;

/// The file of the copy of the directory in a data directory.
pub(super) const COPY_FILE: &str = "directory-copy.redb";

/// The cluster as one of its hosts knows it.
pub struct Cluster {
    /// The cluster.
    pub(super) id: ClusterId,
    /// This host.
    pub me: HostId,
    /// This start of it.
    pub incarnation: u64,
    /// What happened here.
    pub events: Arc<EventLog>,
    pub(super) standing: RwLock<Arc<Standing>>,
    pub(super) engine: EngineHandle,
    pub(super) view: RwLock<Arc<View>>,
    pub(super) revision: watch::Sender<u64>,
    /// Whether the view has taken in hosts that the engine was not told of.
    pub(super) is_untold: AtomicBool,
    pub(super) progress: Mutex<Progress>,
    /// Who is there, and what is decided about repairs.
    pub(super) keeper: Mutex<Keeper>,
    /// Clients of this host.
    pub(super) attachments: Mutex<Attachments>,
    /// What heartbeats tell of this host's devices and groups.
    pub(super) reports: Mutex<DeviceReports>,
    /// Connections to other hosts.
    pub(super) pools: Pools,
    /// Members of the directory that did not answer when they were last asked.
    pub(super) silent_members: Mutex<Vec<SilentMember>>,
    /// Members of etcd as they were last told; nothing before they were, or where etcd tells hosts nothing of them.
    pub(super) told_members: Mutex<Option<Vec<::etcd::Member>>>,
    /// What runs the process of this host's own member of etcd, where this program does.
    pub(super) member: Mutex<Option<::etcd::process::Supervisor>>,
    /// Why the directory does not answer, while it does not.
    pub(super) away: Mutex<Option<Failure>>,
    /// Whether this host has taken itself out of the cluster.
    pub(super) has_left: AtomicBool,
    /// Whether this host has a certificate.
    pub(super) certificates_came: watch::Sender<bool>,
    /// Why this host must not go on, once it is so: the records are at a level that its program does not understand.
    pub(super) outgrown: watch::Sender<Option<Failure>>,
}

/// What a host has of its cluster by its configuration.
#[derive(Clone)]
pub(super) struct Standing {
    /// The host's configuration.
    pub config: Arc<Config>,
    pub directory: Shared,
    /// What this host keeps of the directory, where it stands in etcd.
    pub copy: Option<Arc<Copied>>,
    /// This host's certificate; nothing in a cluster whose hosts have none.
    pub security: Option<Arc<Security>>,
    /// Where other hosts connect to this one's nodes, in their order; nothing on a host that stands alone.
    pub peers: Vec<Option<SocketAddr>>,
}
