//! An engine's thread: takes completions and commands in batches, tells the node, performs what it asks for.

use crate::client::{self, Client};
use crate::devices::is_bad_sector;
use crate::encryption::Encryption;
use crate::engine::{Engine, Parts, Target};
use crate::error::EngineError;
use crate::listener::{Accepted, Listener};
use crate::mailbox::{Mailbox, Message};
use crate::peers;
use crate::ring::{Completion, DeviceCall, DeviceFlight, Door, Flight, Socket, is_passing};
use crate::settings::{Endpoint, Fabric, Settings};
use crate::siblings::Siblings;
use base::Buffer;
use base::request::{Buffers, Outcome, Reply, Request};
use diskgroup::{ComputeId, Computed, Event as GroupEvent, IoFailure, Task};
use frontends::{Event, Session};
use node::{GroupKey, Output, Token};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two lines about connections that wait or are refused.
const COMPLAINT_PERIOD: Duration = Duration::from_secs(60);
/// How long nobody is let in where descriptors are short.
const DOOR_RETRY: Duration = Duration::from_secs(1);

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
    let (mailbox, inbox) = Mailbox::new();
    let own = mailbox.clone();
    let parts = Parts { settings, started, siblings, encryption, listeners, peers, mailbox: own, inbox };
    let run = move || match Engine::new(parts) {
        Ok(mut engine) => engine.run(),
        Err(error) => tracing::error!("the storage engine did not start: {error}"),
    };
    let thread = std::thread::Builder::new().name(format!("node-{shard}")).spawn(run);
    let thread =
        thread.map_err(|error| EngineError::Device(format!("start the engine's thread: {error}")))?;
    Ok(StartedShard { mailbox, thread, peers: address })
}

impl Engine {
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

    fn run(&mut self) {
        for index in 0..self.listeners.len() {
            self.ring.accept(self.listeners[index].fd(), Door::Clients(index));
        }
        if let Some(fd) = self.peers.fd() {
            self.ring.accept(fd, Door::Peers);
        }
        self.ring.wait_event(self.inbox.event());
        let mut completions = Vec::new();
        loop {
            let doors = (!self.closed_doors.is_empty()).then(|| self.now() + DOOR_RETRY);
            let alarms =
                [self.node.wake_at(), self.deadline(), doors, self.overdue_at, self.passes.wake_at()];
            let wake_at = alarms.into_iter().flatten().min();
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
            self.advance_pass();
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
            let is_done = self.outputs.is_empty() && self.touched.is_empty() && !self.peers_are_waiting();
            if !self.relieve() && is_done {
                return;
            }
        }
    }

    /// Where somebody had to wait for buffers, those go in which groups keep data that the log has, too. Says whether any went.
    fn relieve(&mut self) -> bool {
        let is_short = [&self.pool, self.peers.pool()].map(base::Pool::was_short).contains(&true);
        is_short && self.node.relieve()
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
                while let Some(message) = self.inbox.next() {
                    match message {
                        Message::Command(command) => self.command(command),
                        Message::Prepared(prepared) => self.prepared(*prepared),
                        Message::Shrunk(device, why) => self.shrunk(device, &why),
                        Message::Computed(ticket, computed) => self.computed(ticket, computed),
                        Message::Measured(serial, sample) => self.measured(serial, sample),
                        Message::Client(client) => self.seated(client),
                    }
                }
                self.ring.wait_event(self.inbox.event());
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
            (_, Err(error)) if is_passing(&error) => {
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

    /// Has work done: elsewhere, or here if there is no room for it.
    fn compute(&mut self, group: GroupKey, id: ComputeId, task: Task) {
        if let Err(task) = self.computing.hand_out(group, id, task) {
            let now = self.now();
            self.node.computed(now, group, id, task.perform(), &mut self.outputs);
        }
    }

    /// Work that was handed out is done.
    fn computed(&mut self, ticket: u32, computed: Computed) {
        let (group, id) = self.computing.ended(ticket);
        let now = self.now();
        self.node.computed(now, group, id, computed, &mut self.outputs);
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
            Target::Survey(answer) => {
                let told = outcome.map(|reply| match reply {
                    Reply::Status(runs) => runs,
                    reply => unreachable!("a question about blocks is not answered by {reply:?}"),
                });
                return drop(answer.send(told));
            }
            Target::CopyUp(answer) => {
                let _ = answer.send(outcome.map(drop));
                return;
            }
            Target::CopyBack(copy) => return self.copied_back(copy, outcome),
            Target::Closing(_) | Target::Component(_) | Target::Pass(_) => {
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
                    let view = self.clients[client as usize].view;
                    let asked = match view {
                        Some(number) => of_view(request, number),
                        None => Ok(request),
                    };
                    let request = match asked {
                        Ok(request) => request,
                        Err(outcome) => {
                            self.clients[client as usize].session.reply(cookie, outcome);
                            continue;
                        }
                    };
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
            GroupEvent::BlockDamaged { member, component, part, block, .. } => {
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
        self.passes.end();
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

/// What a client that has a snapshot asks of the disk; or its answer, where nothing need be asked.
fn of_view(request: Request, snapshot: u32) -> Result<Request, Outcome> {
    match request {
        Request::Read { offset, len } => Ok(Request::View { snapshot, offset, len }),
        // The frontend knows of which snapshot it is.
        request @ Request::Status { .. } => Ok(request),
        Request::Flush => Err(Ok(Reply::Done)),
        request => unreachable!("a snapshot can only be read: {request:?}"),
    }
}

/// Bytes of memory that a request holds.
fn payload_of(request: &Request) -> u64 {
    match request {
        Request::Write { data, .. } => data.iter().map(|buffer| buffer.len() as u64).sum(),
        Request::Read { .. }
        | Request::View { .. }
        | Request::CopyUp { .. }
        | Request::Flush
        | Request::Trim { .. }
        | Request::WriteZeroes { .. }
        | Request::Status { .. } => 0,
    }
}
