//! The state of one engine: its node, and what its thread keeps beside the node.
//!
//! Relies on the parts that the state consists of. The methods that join these parts stand in the files that rely on this one.

use crate::client::Client;
use crate::command::{Answer, OrderFailure, Told};
use crate::compute::Computing;
use crate::descriptors::clients_max;
use crate::devices::OpenDevice;
use crate::encryption::Encryption;
use crate::listener::Listener;
use crate::mailbox::{Inbox, Mailbox};
use crate::overdue::Overdue;
use crate::pass::Passes;
use crate::peers::Peers;
use crate::registry::Registry;
use crate::ring::{Door, Ring};
use crate::settings::Settings;
use crate::siblings::Siblings;
use crate::sizes::Sizes;
use base::request::{Request, RequestError};
use base::{DiskId, Instant, Pool};
use frontends::Event;
use node::{DiskKey, Node, Output};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

/// Clients of one host at most: each may hold a few buffers.
const CLIENTS_MAX: usize = 4096;

/// Whose request a token stands for.
pub(crate) enum Target {
    /// The request of a client, by the session's cookie.
    Guest { client: u32, cookie: u64, since: Instant, bytes: u64 },
    /// A guest's request that ended with an error for want of an answer.
    Overdue { disk: DiskId, bytes: u64 },
    /// Whoever waits until a disk is closed.
    Closing(Answer<()>),
    /// Whoever waits for a node to do something with a component.
    Component(Answer<Result<(), OrderFailure>>),
    /// The pass with that serial number.
    Pass(u64),
    /// Whoever asks about blocks of a disk.
    Survey(Answer<Told>),
    /// Whoever has a clone copy what it shares with its origin.
    CopyUp(Answer<Result<(), RequestError>>),
    /// Whoever has blocks of a disk written again as they were in a snapshot.
    CopyBack(Box<CopyBack>),
}

/// A range of a disk that is written again as it was in a snapshot.
pub(crate) struct CopyBack {
    pub(crate) disk: DiskKey,
    /// Where the bytes belong that are read.
    pub(crate) at: u64,
    /// What is still to be asked of the node.
    pub(crate) requests: VecDeque<Request>,
    pub(crate) answer: Answer<Result<(), RequestError>>,
}

/// A device of an open group.
pub(crate) struct Device {
    pub(crate) open: OpenDevice,
    /// Its number in the ring; `None` while it is not there.
    pub(crate) slot: Option<u32>,
}

/// The state of an engine. Its thread alone has it.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    /// Which of the host's engines it is.
    pub(crate) shard: u8,
    pub(crate) siblings: Arc<Siblings>,
    pub(crate) ring: Ring,
    pub(crate) node: Node,
    pub(crate) pool: Pool,
    /// By group key, then by place.
    pub(crate) devices: Vec<Vec<Option<Device>>>,
    pub(crate) clients: Slab<Client>,
    pub(crate) targets: Slab<Target>,
    pub(crate) registry: Registry,
    pub(crate) outputs: Vec<Output>,
    pub(crate) mailbox: Mailbox,
    pub(crate) computing: Computing,
    pub(crate) passes: Passes,
    pub(crate) sizes: Sizes,
    pub(crate) started: std::time::Instant,
    pub(crate) is_stopping: bool,
    /// Other nodes.
    pub(crate) peers: Peers,
    /// Tickets that clients got.
    pub(crate) tickets: u64,
    pub(crate) encryption: Encryption,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) inbox: Inbox,
    /// Clients that the process may have in all.
    pub(crate) clients_max: usize,
    /// Doors at which nobody is let in, for want of descriptors, until then or until a client leaves.
    pub(crate) closed_doors: Vec<Door>,
    pub(crate) doors_open_at: std::time::Instant,
    /// When it was last told that connections wait or are refused.
    pub(crate) complained_at: Option<std::time::Instant>,
    /// Requests that ended with an error for want of an answer.
    pub(crate) overdue: BTreeMap<DiskId, Overdue>,
    /// Disks that cannot be used any more: a device with their only copy of something is out of service.
    pub(crate) lost: BTreeSet<DiskId>,
    /// When to look for more of them.
    pub(crate) overdue_at: Option<Instant>,
    /// Clients to look after at the end of the turn.
    pub(crate) touched: Vec<u32>,
    pub(crate) client_events: Vec<Event>,
}

/// What an engine is made of, once its thread runs.
pub(crate) struct Parts {
    /// The shard's own.
    pub(crate) settings: Settings,
    /// When the host's engines started.
    pub(crate) started: std::time::Instant,
    pub(crate) siblings: Arc<Siblings>,
    pub(crate) encryption: Encryption,
    /// Where clients connect.
    pub(crate) listeners: Vec<Listener>,
    /// Where other nodes connect.
    pub(crate) peers: Option<TcpListener>,
    pub(crate) mailbox: Mailbox,
    pub(crate) inbox: Inbox,
}

impl Engine {
    /// An engine that has done nothing yet.
    ///
    /// # Errors
    /// When the kernel gives no ring.
    pub(crate) fn new(parts: Parts) -> io::Result<Engine> {
        let Parts { settings, started, siblings, encryption, listeners, peers, mailbox, inbox } = parts;
        let pool = Pool::new(settings.buffer_bytes as usize);
        let fabric = &settings.fabric;
        let peers = Peers::new(fabric, peers);
        let node = Node::new(pool.clone(), Instant(1), fabric.settings(settings.scrub_bytes_per_second));
        Ok(Engine {
            registry: Registry::new(),
            shard: fabric.node.shard,
            settings,
            siblings,
            ring: Ring::new()?,
            node,
            pool,
            devices: Vec::new(),
            clients: Slab::new(),
            targets: Slab::new(),
            outputs: Vec::new(),
            sizes: Sizes::start(mailbox.clone()),
            computing: Computing::new(mailbox.clone()),
            passes: Passes::default(),
            mailbox,
            started,
            is_stopping: false,
            peers,
            tickets: 0,
            encryption,
            listeners,
            inbox,
            clients_max: CLIENTS_MAX.min(clients_max()),
            closed_doors: Vec::new(),
            doors_open_at: started,
            complained_at: None,
            overdue: BTreeMap::new(),
            lost: BTreeSet::new(),
            overdue_at: None,
            touched: Vec::new(),
            client_events: Vec::new(),
        })
    }

    /// The time since the start, as the node counts it: never zero.
    pub(crate) fn now(&self) -> Instant {
        Instant(1 + self.started.elapsed().as_nanos() as u64)
    }
}
