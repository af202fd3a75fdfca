//! What the engine is started with.

use crate::notice::Notice;
use crate::peers::PeerTls;
use base::{ClusterId, GroupId, NodeId};
use frontends::Protocol;
use node::FabricSettings;
use replication::OwnedBy;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// What the engine is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where clients connect.
    pub endpoints: Vec<Endpoint>,
    /// Encryption of clients' connections over TCP; `None`: not offered.
    pub tls: Option<TlsFiles>,
    /// What encrypts clients' connections over TCP with the certificates of the cluster, where `tls` names no others: for its members alone.
    pub cluster_tls: Option<Arc<rustls::ServerConfig>>,
    /// Most bytes of memory in block buffers.
    pub buffer_bytes: u64,
    /// Most bytes of memory in descriptors and checksums.
    pub table_bytes: u64,
    /// Pace of scrubbing in bytes per second and group, and of comparing rows in bytes of a member per second and node; zero: off.
    pub scrub_bytes_per_second: u64,
    /// Engines, each a node with a thread of its own.
    pub shards: u8,
    /// The host's part in its cluster.
    pub fabric: Fabric,
    /// Where it tells what it wants of the directory.
    pub notices: UnboundedSender<Notice>,
}

/// Where clients connect that speak a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Its address.
    pub listen: Listen,
}

/// A place where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A unix socket. A file that a former server left there is replaced.
    Unix(PathBuf),
}

/// The PEM files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and what links it to an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities of clients' certificates; with them a client must have one.
    pub client_authorities: Option<PathBuf>,
    /// Whether clients over TCP must encrypt.
    pub required: bool,
}

/// A host's part in its cluster.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// The cluster.
    pub cluster: ClusterId,
    /// Whether the host stands alone: nobody else can have owned a disk before.
    pub stands_alone: bool,
    /// The host's node.
    pub node: NodeId,
    /// This start of it: greater than any before.
    pub incarnation: u64,
    /// Where it listens for other nodes, a further shard at the next port; nothing where there are none.
    pub listen: Option<SocketAddr>,
    /// What encrypts connections with other nodes; nothing: they are on this machine, and are not encrypted.
    pub tls: Option<PeerTls>,
    /// Most bytes of memory in buffers for what other nodes send.
    pub buffer_bytes: u64,
    /// Whether reads go to a component on the owner's own host when there is one.
    pub prefers_local: bool,
    /// Bytes a second that owners here copy at least.
    pub copy_floor: u64,
    /// What one of a hundred of guests' requests may take beside copies above that, in percent of what it takes without.
    pub copy_tail_percent: u64,
    /// The shards of this host's groups, as far as they were opened before.
    pub groups: BTreeMap<GroupId, u8>,
}

impl Fabric {
    /// How long other nodes are waited for after a start: not at all where there can be none.
    fn patience(&self, among_others: Duration) -> Duration {
        if self.stands_alone { Duration::ZERO } else { among_others }
    }

    /// What the node is run with.
    pub(crate) fn settings(&self, row_check_pace: u64) -> FabricSettings {
        FabricSettings {
            me: OwnedBy { node: self.node, incarnation: self.incarnation },
            prefers_local: self.prefers_local,
            copy_floor: self.copy_floor,
            copy_blocks_max: replication::limits::COPY_BLOCKS_MAX,
            move_granules: node::limits::MOVE_GRANULES,
            fold_after: Some(replication::limits::FOLD_AFTER),
            row_check_pace,
            copy_tail_percent: self.copy_tail_percent,
            start_patience: self.patience(replication::limits::START_PATIENCE),
            former_grants: self.patience(replication::limits::GRANT),
            rules: base::rules::Rules::ALL,
        }
    }
}
