//! An engine's thread: takes completions and commands in batches, tells the node, performs what it asks for.

use super::client::{self, Client};
use super::commands::Registry;
use super::compute::Computing;
use super::devices::{OpenDevice, is_bad_sector};
use super::encryption::Encryption;
use super::listener::{Accepted, Listener};
use super::overdue::Overdue;
use super::peers::{self, Peers};
use super::ring::{Completion, DeviceCall, DeviceFlight, Door, Flight, Ring, Socket};
use super::shards::Siblings;
use super::sizes::Sizes;
use super::{Command, Endpoint, EngineError, Fabric, Settings};
use crate::descriptors::clients_max;
use base::request::{Buffers, Outcome, Request};
use base::{Buffer, DeviceId, Instant, Pool};
use diskgroup::{Event as GroupEvent, IoFailure};
use frontends::{Event, Session};
use node::{GroupKey, Node, Output, Token};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Clients of one host at most: each may hold a few buffers.
const CLIENTS_MAX: usize = 4096;

/// Time between two lines about connections that wait or are refused.
const COMPLAINT_PERIOD: Duration = Duration::from_secs(60);
/// How long nobody is let in where descriptors are short.
const DOOR_RETRY: Duration = Duration::from_secs(1);

/// A message to the engine's thread.
pub(crate) enum Message {
    /// From the control plane.
    Command(Command),
    /// From a thread that prepared devices.
    Prepared(Box<super::prepared::Prepared>),
    /// A device has become shorter than its datastore.
    Shrunk(DeviceId, String),
    /// From the thread that computes: work that was handed out, and what came of it.
    Computed(u32, diskgroup::Computed),
    /// From the shard that listens: somebody connected.
    Client(Accepted),
}

/// The way to the engine's thread from others.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    sender: Sender<Message>,
    event: Arc<OwnedFd>,
}

impl Mailbox {
    /// A mailbox without an engine, and what arrives in it.
    #[cfg(test)]
    pub(crate) fn detached() -> (Mailbox, Receiver<Message>) {
        // SAFETY: a fresh descriptor that nobody else has.
        let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let (sender, inbox) = channel();
        (Mailbox { sender, event: Arc::new(event) }, inbox)
    }

    /// Delivers a message and wakes the thread.
    pub(crate) fn send(&self, message: Message) -> Result<(), EngineError> {
        self.sender.send(message).map_err(|_| EngineError::Stopped)?;
        let one = 1u64.to_ne_bytes();
        // SAFETY: the descriptor is open as long as this is, and eight bytes are handed in.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        Ok(())
    }
}

/// Whose request a token stands for.
pub(crate) enum Target {
    Guest {
        client: u32,
        cookie: u64,
        since: Instant,
        bytes: u64,
    },
    /// A guest's request that ended with an error for want of an answer.
    Overdue {
        disk: base::DiskId,
        bytes: u64,
    },
    /// Whoever waits until a disk is closed.
    Closing(super::Answer<()>),
    Component(super::Answer<Result<(), super::OrderFailure>>),
}

/// A device of an open group.
pub(crate) struct Device {
    pub(crate) open: OpenDevice,
    /// Its number in the ring; `None` while it is not there.
    pub(crate) slot: Option<u32>,
}

/// The engine.
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
    pub(crate) sizes: Sizes,
    pub(crate) started: std::time::Instant,
    pub(crate) is_stopping: bool,
    /// Other nodes.
    pub(crate) peers: Peers,
    /// Tickets that clients got.
    pub(crate) tickets: u64,
    encryption: Encryption,
    listeners: Vec<Listener>,
    event: Arc<OwnedFd>,
    inbox: Receiver<Message>,
    /// Clients that the process may have in all.
    clients_max: usize,
    /// Doors at which nobody is let in, for want of descriptors, until then or until a client leaves.
    closed_doors: Vec<Door>,
    doors_open_at: std::time::Instant,
    /// When it was last told that connections wait or are refused.
    complained_at: Option<std::time::Instant>,
    /// Requests that ended with an error for want of an answer.
    pub(crate) overdue: BTreeMap<base::DiskId, Overdue>,
    /// Disks that cannot be used any more: a device with their only copy of something is out of service.
    pub(crate) lost: BTreeSet<base::DiskId>,
    /// When to look for more of them.
    pub(crate) overdue_at: Option<Instant>,
    /// Clients to look after at the end of the turn.
    touched: Vec<u32>,
    client_events: Vec<Event>,
}

/// An engine's thread that has started.
pub(crate) struct StartedShard {
    pub(crate) mailbox: Mailbox,
    pub(crate) thread: JoinHandle<()>,
    /// Where it listens for other nodes.
    pub(crate) peers: Option<SocketAddr>,
}

/// Starts an engine's thread; the first shard opens the listeners. `settings` are the shard's own.
///
/// # Errors
/// When a listener or the certificates cannot be opened.
pub(crate) fn start(
    settings: Settings,
    started: std::time::Instant,
    siblings: Arc<Siblings>,
) -> Result<StartedShard, EngineError> {
    if !base::checksum::self_test() {
        return Err(EngineError::Refused(
            "the checksum code gives wrong results on this processor".to_owned(),
        ));
    }
    let shard = settings.fabric.node.shard;
    let doors = settings.endpoints.iter().filter(|_| shard == 0);
    let listeners = doors.map(Listener::open).collect::<Result<Vec<_>, _>>()?;
    let encryption = Encryption::load(&settings)?;
    let peers = settings.fabric.listen.map(peers::listen).transpose()?;
    let address = peers.as_ref().map(peers::address_of).transpose()?;
    // SAFETY: a fresh descriptor that nobody else has.
    let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
    let event = Arc::new(event);
    let (sender, inbox) = channel();
    let mailbox = Mailbox { sender, event: Arc::clone(&event) };
    let own = mailbox.clone();
    let place = (started, siblings);
    let run = move || match Engine::new(settings, place, encryption, (listeners, peers), event, inbox, own) {
        Ok(mut engine) => engine.run(),
        Err(error) => tracing::error!("the storage engine did not start: {error}"),
    };
    let thread = std::thread::Builder::new().name(format!("node-{shard}")).spawn(run);
    let thread =
        thread.map_err(|error| EngineError::Device(format!("start the engine's thread: {error}")))?;
    Ok(StartedShard { mailbox, thread, peers: address })
}

impl Engine {
    fn new(
        settings: Settings,
        (started, siblings): (std::time::Instant, Arc<Siblings>),
        encryption: Encryption,
        (listeners, peer_listener): (Vec<Listener>, Option<TcpListener>),
        event: Arc<OwnedFd>,
        inbox: Receiver<Message>,
        mailbox: Mailbox,
    ) -> io::Result<Engine> {
        let pool = Pool::new(settings.buffer_bytes as usize);
        let fabric = &settings.fabric;
        let peers = Peers::new(fabric, peer_listener);
        let node = Node::new(pool.clone(), Instant(1), fabric.settings());
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
            mailbox,
            started,
            is_stopping: false,
            peers,
            tickets: 0,
            encryption,
            listeners,
            event,
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

    /// Listens for other hosts from now on, where this one stood alone; says where. Clients that are connected stay.
    pub(crate) fn let_others_join(
        &mut self,
        fabric: Fabric,
        tls: Arc<rustls::ServerConfig>,
        endpoints: Vec<Endpoint>,
    ) -> Result<Option<SocketAddr>, EngineError> {
        self.settings.cluster_tls = Some(tls);
        self.encryption = Encryption::load(&self.settings)?;
        if let Some(opened) = self.peers.let_others_join(&fabric)? {
            self.ring.accept(opened, Door::Peers);
        }
        // The first shard has the listeners. One that is there is of an attempt that was cut short.
        for endpoint in endpoints.into_iter().filter(|_| self.shard == 0) {
            if !self.settings.endpoints.contains(&endpoint) {
                let listener = Listener::open(&endpoint)?;
                self.ring.accept(listener.fd(), Door::Clients(self.listeners.len()));
                self.listeners.push(listener);
                self.settings.endpoints.push(endpoint);
            }
        }
        self.settings.fabric = fabric;
        self.peers.address()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(1 + self.started.elapsed().as_nanos() as u64)
    }

    fn run(&mut self) {
        for index in 0..self.listeners.len() {
            self.ring.accept(self.listeners[index].fd(), Door::Clients(index));
        }
        if let Some(fd) = self.peers.fd() {
            self.ring.accept(fd, Door::Peers);
        }
        self.ring.wait_event(self.event.as_raw_fd());
        let mut completions = Vec::new();
        loop {
            let doors = (!self.closed_doors.is_empty()).then(|| self.now() + DOOR_RETRY);
            let wake_at =
                [self.node.wake_at(), self.deadline(), doors, self.overdue_at].into_iter().flatten().min();
            let timeout = wake_at.map(|at| at.since(self.now()).max(Duration::from_micros(50)));
            if let Err(error) = self.ring.wait(timeout) {
                tracing::error!("the ring failed, the engine stops: {error}");
                return;
            }
            self.ring.take(&mut completions);
            for completion in completions.drain(..) {
                self.complete(completion);
            }
            self.end_overdue();
            self.turn();
            self.registry_turn();
            self.open_doors(false);
            if self.may_end() {
                return;
            }
        }
    }

    /// Lets the node go on, performs what it asks for, and looks after clients, until nothing is left to do at once.
    pub(crate) fn turn(&mut self) {
        loop {
            let now = self.now();
            self.node.advance(now, &mut self.outputs);
            self.perform();
            self.look_after_clients();
            self.look_after_peers();
            if self.outputs.is_empty() && self.touched.is_empty() && !self.peers_are_waiting() {
                return;
            }
        }
    }

    fn complete(&mut self, completion: Completion) {
        match completion.flight {
            Flight::Device(flight) => self.device_done(flight, completion.result),
            Flight::Receive { socket: Socket::Client(client), message } => {
                let Some(state) = self.clients.get_mut(client as usize) else { return };
                let end = state.ended(message, &completion.result);
                state.session.received(end, &mut self.client_events);
                if client::is_gone(end) {
                    self.abandon_requests(client);
                }
                self.dispatch(client);
                self.touch(client);
            }
            Flight::Send { socket: Socket::Client(client), message } => {
                let Some(state) = self.clients.get_mut(client as usize) else { return };
                let end = state.ended(message, &completion.result);
                state.session.transmitted(end, &mut self.client_events);
                self.dispatch(client);
                self.touch(client);
            }
            Flight::Receive { socket: Socket::Peer(key), message } => {
                self.peer_received(key, message, &completion.result);
            }
            Flight::Send { socket: Socket::Peer(key), message } => {
                self.peer_sent(key, message, &completion.result);
            }
            Flight::Connect { peer, .. } => self.peer_connected(peer, &completion.result),
            Flight::Accept { listener: Door::Clients(listener) } => {
                self.accepted(listener, completion.result);
            }
            Flight::Accept { listener: Door::Peers } => self.peer_accepted(completion.result),
            Flight::Wake => {
                while let Ok(message) = self.inbox.try_recv() {
                    match message {
                        Message::Command(command) => self.command(command),
                        Message::Prepared(prepared) => self.prepared(*prepared),
                        Message::Shrunk(device, why) => self.shrunk(device, &why),
                        Message::Computed(ticket, computed) => self.computed(ticket, computed),
                        Message::Client(client) => self.seated(client),
                    }
                }
                self.ring.wait_event(self.event.as_raw_fd());
            }
            Flight::Cancel => {}
        }
    }

    fn device_done(&mut self, flight: DeviceFlight, result: io::Result<i32>) {
        let result = match (flight.call, result) {
            (DeviceCall::Flush | DeviceCall::Discard, Ok(_)) => Ok(()),
            (DeviceCall::Read | DeviceCall::Write { .. }, Ok(bytes)) if bytes as u64 == flight.len => Ok(()),
            (DeviceCall::Read | DeviceCall::Write { .. }, Ok(bytes)) => {
                // The end of the file or device: it has shrunk.
                Err((
                    false,
                    format!("only {bytes} of {} bytes at {}: it has shrunk", flight.len, flight.offset),
                ))
            }
            (_, Err(error)) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                return self.ring.device(flight);
            }
            (call, Err(error)) => {
                let is_local = call == DeviceCall::Read && is_bad_sector(&error);
                Err((is_local, format!("{error}, at byte {}", flight.offset)))
            }
        };
        let what = match flight.call {
            DeviceCall::Read => "read",
            DeviceCall::Write { .. } => "write",
            DeviceCall::Flush => "flush",
            DeviceCall::Discard => "discard",
        };
        let result = result.map_err(|(is_local, why)| {
            let why = format!("{what} failed: {why}");
            if is_local { IoFailure::Unreadable(why) } else { IoFailure::Device(why) }
        });
        let now = self.now();
        self.node.device_done(now, flight.group, flight.io, result, &mut self.outputs);
    }

    /// Carries the node's outputs out. Answers to guests may bring further requests, and those further outputs.
    fn perform(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Device { group, output } => self.ask_device(group, output),
                Output::Compute { group, id, task } => self.compute(group, id, task),
                Output::Reply { token, outcome } => self.reply(token, outcome),
                Output::Closed { token } => self.disk_closed(token),
                Output::Event { group, event } => self.group_event(group, event),
                Output::Fabric(output) => self.perform_fabric(output),
            }
        }
        if self.outputs.is_empty() {
            self.outputs = outputs; // Keeps its memory.
        }
    }

    fn ask_device(&mut self, group: GroupKey, output: diskgroup::Output) {
        let (io, member, call, offset, buffers, gentle) = match output {
            diskgroup::Output::Read { io, member, offset, buffer, gentle } => {
                (io, member, DeviceCall::Read, offset, smallvec::smallvec![buffer], gentle)
            }
            diskgroup::Output::Write { io, member, offset, buffers, stable, gentle } => {
                (io, member, DeviceCall::Write { stable }, offset, buffers, gentle)
            }
            diskgroup::Output::Flush { io, member } => {
                (io, member, DeviceCall::Flush, 0, Buffers::new(), false)
            }
            diskgroup::Output::Discard { io, member, offset, len } => {
                let Some(file) = self.file_of(group, member) else { return };
                let mut flight =
                    DeviceFlight::new(group, io, file, DeviceCall::Discard, offset, Buffers::new());
                flight.len = len;
                return self.ring.device(flight);
            }
            diskgroup::Output::Compute { .. }
            | diskgroup::Output::Done { .. }
            | diskgroup::Output::Event(_) => {
                unreachable!("the node passes device requests on only")
            }
        };
        let Some(file) = self.file_of(group, member) else { return };
        let buffers = merge(buffers);
        self.ring.device(DeviceFlight::new(group, io, file, call, offset, buffers).gentle(gentle));
    }

    fn file_of(&self, group: GroupKey, member: u8) -> Option<u32> {
        self.devices.get(group.0 as usize)?.get(member as usize)?.as_ref()?.slot
    }

    fn reply(&mut self, token: Token, outcome: Outcome) {
        let (client, cookie) = match self.targets.remove(token.0 as usize) {
            Target::Guest { client, cookie, .. } => (client, cookie),
            Target::Overdue { disk, bytes } => return self.overdue_ended(disk, bytes),
            Target::Closing(_) | Target::Component(_) => {
                unreachable!("guests' tokens are answered as such")
            }
        };
        let Some(state) = self.clients.get_mut(client as usize) else { return };
        state.session.reply(cookie, outcome);
        self.touch(client);
    }

    pub(crate) fn touch(&mut self, client: u32) {
        if let Some(state) = self.clients.get_mut(client as usize)
            && !state.is_listed
        {
            state.is_listed = true;
            self.touched.push(client);
        }
    }

    /// Lets sessions go on that got answers, and starts their sends and receives.
    fn look_after_clients(&mut self) {
        if self.clients.iter().any(|(_, client)| client.session.wants_advance()) {
            let waiting: Vec<u32> = self
                .clients
                .iter()
                .filter(|(_, client)| client.session.wants_advance())
                .map(|(key, _)| key as u32)
                .collect();
            waiting.into_iter().for_each(|client| self.touch(client));
        }
        for client in std::mem::take(&mut self.touched) {
            let Some(state) = self.clients.get_mut(client as usize) else { continue };
            state.is_listed = false;
            state.session.advance(&mut self.client_events);
            let had_events = !self.client_events.is_empty();
            self.dispatch(client);
            if self.clients[client as usize].pump(client, &mut self.ring) {
                self.detach(client);
            } else if had_events {
                self.touch(client);
            }
        }
    }

    /// The client has left: what it asked for and has not begun is not begun later, when its guest may run elsewhere.
    fn abandon_requests(&mut self, client: u32) {
        let is_of = |target: &Target| matches!(target, Target::Guest { client: of, .. } if *of == client);
        let tokens: Vec<Token> = self
            .targets
            .iter()
            .filter(|(_, target)| is_of(target))
            .map(|(key, _)| Token(key as u64))
            .collect();
        let now = self.now();
        for token in tokens {
            self.node.abandon(now, token, &mut self.outputs);
        }
    }

    fn detach(&mut self, client: u32) {
        let gone = self.clients.remove(client as usize);
        self.siblings.left(self.shard);
        tracing::debug!(peer = gone.peer, "client left");
        if let Some((disk, _)) = gone.disk {
            self.note_use(disk);
        }
        self.give_ticket_back(gone.ticket);
        drop(gone.socket);
        self.open_doors(true);
    }

    /// Acts on what a session wants.
    fn dispatch(&mut self, client: u32) {
        let mut events = std::mem::take(&mut self.client_events);
        for event in events.drain(..) {
            match event {
                Event::ListExports => {
                    let exports = self.exports_for(client);
                    self.clients[client as usize].session.exports(&exports);
                }
                Event::Describe { wanted } => {
                    let answer = self.export_for(client, &wanted).map(|found| found.export);
                    self.clients[client as usize].session.export(answer);
                }
                Event::Attach { wanted } => self.attach(client, wanted),
                Event::Request { cookie, request } => {
                    if self.is_overdue_at_once(client, cookie) {
                        continue;
                    }
                    let (now, bytes) = (self.now(), payload_of(&request));
                    let target = Target::Guest { client, cookie, since: now, bytes };
                    let token = Token(self.targets.insert(target) as u64);
                    let (_, disk) =
                        self.clients[client as usize].disk.expect("requests come from attached clients");
                    self.note_patience(client, now);
                    self.node.request(now, token, disk, request, &mut self.outputs);
                }
            }
        }
        self.client_events = events;
    }

    fn accepted(&mut self, listener: usize, result: io::Result<i32>) {
        match result {
            Ok(fd) => {
                let client = self.listeners[listener].accepted(fd);
                if let Some(client) = self.siblings.seat(self.shard, client) {
                    self.seated(client);
                }
            }
            Err(error) if self.is_stopping => drop(error),
            Err(error) => self.close_door(Door::Clients(listener), &error),
        }
    }

    /// Tells that connections wait or are refused, once a minute.
    fn complain(&mut self, text: String) {
        let now = std::time::Instant::now();
        if self.complained_at.is_none_or(|at| now.duration_since(at) >= COMPLAINT_PERIOD) {
            self.complained_at = Some(now);
            tracing::warn!("{text}");
        }
    }

    /// Nobody can be let in at a door now. To try again at once would take the whole processor while descriptors are short.
    pub(crate) fn close_door(&mut self, door: Door, error: &io::Error) {
        self.complain(format!("connections wait: accept a connection: {error}"));
        self.closed_doors.push(door);
        self.doors_open_at = std::time::Instant::now() + DOOR_RETRY;
    }

    /// Lets clients in again: after a while, or because a descriptor came free.
    fn open_doors(&mut self, has_room: bool) {
        if self.closed_doors.is_empty() || (!has_room && std::time::Instant::now() < self.doors_open_at) {
            return;
        }
        for door in std::mem::take(&mut self.closed_doors) {
            let fd = match door {
                Door::Clients(listener) => self.listeners.get(listener).map(Listener::fd),
                Door::Peers => self.peers.fd(),
            };
            if let Some(fd) = fd {
                self.ring.accept(fd, door);
            }
        }
    }

    /// A client is this engine's from now on.
    fn seated(&mut self, client: Accepted) {
        // Each engine has its share of what the process may have open.
        let most = (self.clients_max / usize::from(self.settings.shards.max(1))).max(1);
        if self.clients.len() >= most || self.is_stopping {
            self.complain(format!(
                "connections of clients are refused ({}): {} are connected, and at most {most} are allowed here (see \
                 LimitNOFILE of the service)",
                client.peer,
                self.clients.len()
            ));
            return self.siblings.left(self.shard);
        }
        tracing::debug!(peer = client.peer, shard = self.shard, "client connected");
        let tls = self.encryption.of(client.origin).clone();
        let session = Session::new(client.protocol, tls, self.pool.clone());
        let client = self.clients.insert(Client::new(session, client)) as u32;
        self.touch(client);
    }

    fn group_event(&mut self, group: GroupKey, event: GroupEvent) {
        match &event {
            GroupEvent::Ready | GroupEvent::OpenFailed(_) => self.group_opened(group, event),
            GroupEvent::MemberFailed { member, why } => {
                let path = self.path_of(group, *member);
                tracing::error!(
                    "device {path} is out of service: {why}; its components are lost until it is replaced"
                );
                self.look_for_lost();
            }
            GroupEvent::GroupFailed { why } => {
                let path = self.path_of(group, 0);
                tracing::error!("the log device {path} failed, and with it its disk group: {why}");
                self.look_for_lost();
            }
            GroupEvent::BlockDamaged { member, component, part, block } => {
                let path = self.path_of(group, *member);
                let at = u64::from(*part) * (1 << 20) + u64::from(*block) * 4096;
                tracing::error!(
                    "device {path}: a block of component {component} is damaged, at its byte {at}"
                );
            }
            GroupEvent::PageDamaged { member, page } => {
                let path = self.path_of(group, *member);
                tracing::error!(
                    "device {path}: page {page} of its table is damaged; what it described is not served"
                );
            }
            GroupEvent::ScrubRound { bytes, damaged } => {
                tracing::info!("scrub round: {bytes} bytes verified, {damaged} blocks damaged");
            }
        }
    }

    pub(crate) fn path_of(&self, group: GroupKey, member: u8) -> String {
        let device = self.devices.get(group.0 as usize).and_then(|group| group.get(member as usize));
        device
            .and_then(Option::as_ref)
            .map_or_else(String::new, |device| device.open.path.display().to_string())
    }

    /// Stops taking connections and requests; those under way are answered.
    pub(crate) fn begin_stop(&mut self) {
        self.is_stopping = true;
        for listener in std::mem::take(&mut self.listeners) {
            self.ring.cancel(listener.fd());
        }
        let clients: Vec<u32> = self.clients.iter().map(|(key, _)| key as u32).collect();
        for client in clients {
            self.clients[client as usize].session.drain();
            self.touch(client);
        }
    }
}

/// Joins neighbours in memory, so that fewer vectors are needed than the kernel's limit of 1,024 allows.
fn merge(buffers: Buffers) -> Buffers {
    if buffers.len() < 2 {
        return buffers;
    }
    let mut merged = Buffers::new();
    for buffer in buffers {
        if !merged.last_mut().is_some_and(|last: &mut Buffer| last.try_join(&buffer)) {
            merged.push(buffer);
        }
    }
    merged
}

/// Bytes of memory that a request holds.
fn payload_of(request: &Request) -> u64 {
    match request {
        Request::Write { data, .. } => data.iter().map(|buffer| buffer.len() as u64).sum(),
        Request::Read { .. }
        | Request::Flush
        | Request::Trim { .. }
        | Request::WriteZeroes { .. }
        | Request::Status { .. } => 0,
    }
}
