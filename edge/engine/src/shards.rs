//! Several engines on one host: each a node of the cluster with a thread, a ring, disk groups and clients of its own.
//!
//! They are nodes to each other as to those of other hosts, and share no state that I/O goes through. What is here belongs
//! to the control plane's side: which engine a command is for, one answer out of several, and who takes a new client. A
//! group belongs to the same engine always, for the records of disks name the node of each component.

use super::listener::Accepted;
use super::run::{self, Mailbox, Message};
use super::{
    Answer, ClusterCommand, ClusterState, Command, EngineError, EngineHandle, Fabric, HostState, Settings,
    Started,
};
use base::{DeviceId, DiskId, GroupId, NodeId};
use replication::owner::OwnerState;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Most engines of one host.
pub const SHARDS_MAX: u8 = 16;

/// How often it is looked whether an engine has ended by itself.
const WATCH_PERIOD: Duration = Duration::from_millis(50);

/// What the engines of a host know of each other.
#[derive(Debug)]
pub(crate) struct Siblings {
    mailboxes: OnceLock<Vec<Mailbox>>,
    /// Clients that each has.
    clients: Vec<AtomicUsize>,
    homes: Mutex<Homes>,
    is_stopping: AtomicBool,
}

/// Which engine has what.
#[derive(Debug, Default)]
struct Homes {
    groups: BTreeMap<GroupId, u8>,
    devices: BTreeMap<DeviceId, u8>,
}

impl Siblings {
    fn new(count: u8, groups: BTreeMap<GroupId, u8>) -> Siblings {
        Siblings {
            mailboxes: OnceLock::new(),
            clients: (0..count).map(|_| AtomicUsize::new(0)).collect(),
            homes: Mutex::new(Homes { groups, devices: BTreeMap::new() }),
            is_stopping: AtomicBool::new(false),
        }
    }

    fn homes(&self) -> MutexGuard<'_, Homes> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine of a group; a group that none has yet goes to the one that has fewest.
    pub(crate) fn home_of(&self, group: GroupId) -> u8 {
        let mut homes = self.homes();
        if let Some(home) = homes.groups.get(&group) {
            return *home;
        }
        let count = |shard: u8| homes.groups.values().filter(|home| **home == shard).count();
        let home = (0..self.clients.len() as u8).min_by_key(|shard| count(*shard)).unwrap_or(0);
        homes.groups.insert(group, home);
        home
    }

    /// Notes whose a device is.
    pub(crate) fn note_device(&self, device: DeviceId, shard: u8) {
        self.homes().devices.insert(device, shard);
    }

    /// Delivers a message to one of the engines.
    pub(crate) fn send(&self, shard: u8, message: Message) -> Result<(), EngineError> {
        let mailbox = self.mailboxes.get().and_then(|all| all.get(usize::from(shard)));
        mailbox.ok_or(EngineError::Stopped)?.send(message)
    }

    /// Gives a new client to the engine that has fewest: to `shard` itself by giving it back.
    pub(crate) fn seat(&self, shard: u8, client: Accepted) -> Option<Accepted> {
        let fewest = (0u8..).zip(&self.clients).min_by_key(|(_, count)| count.load(Ordering::Relaxed));
        let to = fewest.map_or(shard, |(to, _)| to);
        self.clients[usize::from(to)].fetch_add(1, Ordering::Relaxed);
        if to == shard {
            return Some(client);
        }
        // An engine that is gone ends the host.
        let _ = self.send(to, Message::Client(client));
        None
    }

    /// A client of an engine has left.
    pub(crate) fn left(&self, shard: u8) {
        self.clients[usize::from(shard)].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts the engines of a host: as many as its settings say.
///
/// # Errors
/// When a listener or the certificates cannot be opened.
pub fn start(settings: Settings) -> Result<Started, EngineError> {
    let all = of_shards(&settings)?;
    let count = all.len() as u8;
    let siblings = Arc::new(Siblings::new(count, settings.fabric.groups));
    let started = std::time::Instant::now();
    let (mut engines, mut mailboxes, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for settings in all {
        let shard = run::start(settings, started, Arc::clone(&siblings))?;
        mailboxes.push(shard.mailbox);
        engines.push(shard.thread);
        peers.push(shard.peers);
    }
    // Nothing is sent before this: no engine has a client or a command yet.
    let _ = siblings.mailboxes.set(mailboxes);
    let router = Router {
        count,
        siblings: Arc::clone(&siblings),
        runtime: tokio::runtime::Handle::try_current().ok(),
    };
    let handle = EngineHandle::new(move |command| router.route(command));
    let watch = move || watch(engines, &siblings);
    let watch = std::thread::Builder::new().name("engines".to_owned()).spawn(watch);
    let thread = watch.map_err(|error| EngineError::Device(format!("start the engines' thread: {error}")))?;
    Ok(Started { handle, thread, peers })
}

/// What each engine is started with: its share of memory, and a port of its own for other nodes.
fn of_shards(settings: &Settings) -> Result<Vec<Settings>, EngineError> {
    let (count, fabric) = (settings.shards.max(1), &settings.fabric);
    if let Some((group, shard)) = fabric.groups.iter().find(|(_, shard)| **shard >= count) {
        return Err(EngineError::Refused(format!(
            "disk group {group} belongs to shard {shard} of this host, and it has only {count} now: set [cluster] shards to \
             at least {}",
            shard + 1
        )));
    }
    let of_shard = |shard: u8| {
        let fabric = fabric_of(fabric, shard, count)?;
        Ok(Settings { fabric, buffer_bytes: settings.buffer_bytes / u64::from(count), ..settings.clone() })
    };
    (0..count).map(of_shard).collect()
}

/// A shard's part of what a host is among others: a port of its own, and its share of memory.
fn fabric_of(host: &Fabric, shard: u8, count: u8) -> Result<Fabric, EngineError> {
    let mut listen = host.listen;
    if let Some(address) = listen.as_mut().filter(|address| address.port() != 0) {
        let port = address.port().checked_add(u16::from(shard)).ok_or_else(|| {
            EngineError::Refused(format!("there is no port for shard {shard} beyond {address}"))
        })?;
        address.set_port(port);
    }
    Ok(Fabric {
        node: NodeId { shard, ..host.node },
        listen,
        buffer_bytes: host.buffer_bytes / u64::from(count),
        ..host.clone()
    })
}

/// Waits until all engines have ended as they were told; or one has by itself, which is the end of the host.
fn watch(mut engines: Vec<JoinHandle<()>>, siblings: &Siblings) {
    while !engines.is_empty() {
        if let Some(index) = engines.iter().position(JoinHandle::is_finished) {
            if let Err(panic) = engines.swap_remove(index).join() {
                std::panic::resume_unwind(panic);
            }
            if !siblings.is_stopping.load(Ordering::Relaxed) {
                return;
            }
        }
        std::thread::sleep(WATCH_PERIOD);
    }
}

/// Delivers commands.
struct Router {
    count: u8,
    siblings: Arc<Siblings>,
    /// Where answers of several engines are made one.
    runtime: Option<tokio::runtime::Handle>,
}

impl Router {
    fn route(&self, command: Command) -> Result<(), EngineError> {
        if let Command::Stop { .. } = &command {
            self.siblings.is_stopping.store(true, Ordering::Relaxed);
        }
        if self.count == 1 {
            return match command {
                Command::Cluster(command) => self.route_cluster(*command),
                command => self.to(0, command),
            };
        }
        match command {
            // What is opened finds its home by itself.
            command @ Command::OpenGroup { .. } => self.to(0, command),
            Command::AddCapacity { group, .. } => self.to(self.siblings.home_of(group), command),
            Command::RemoveDevice { device, .. } => {
                let home = self.siblings.homes().devices.get(&device).copied();
                self.to(home.unwrap_or(0), command)
            }
            Command::Host { answer } => {
                self.ask_all(answer, |answer| Command::Host { answer }, HostState::merged)
            }
            Command::Disks { only, answer } => {
                self.ask_all(answer, |answer| Command::Disks { only, answer }, super::DiskState::merged)
            }
            Command::Lock { disk, lock, answer } => self.ask_all(
                answer,
                |answer| Command::Lock { disk, lock: lock.clone(), answer },
                super::Locking::merged,
            ),
            Command::Unlock { disk, answer } => {
                self.ask_all(answer, |answer| Command::Unlock { disk, answer }, drop)
            }
            Command::Stop { answer } => self.ask_all(answer, |answer| Command::Stop { answer }, drop),
            Command::Cluster(command) => self.route_cluster(*command),
            Command::Found { answer } => {
                self.ask_all(answer, |answer| Command::Found { answer }, |all| all.concat())
            }
        }
    }

    fn route_cluster(&self, command: ClusterCommand) -> Result<(), EngineError> {
        match command {
            ClusterCommand::Nodes { nodes } => {
                self.tell_all(|| ClusterCommand::Nodes { nodes: nodes.clone() })
            }
            ClusterCommand::Open { disk, record, answer } => {
                let open =
                    |answer| ClusterCommand::Open { disk: disk.clone(), record: record.clone(), answer };
                self.ask_all(answer, |answer| Command::cluster(open(answer)), drop)
            }
            ClusterCommand::Forget { disk, answer } => {
                let forget = |answer| Command::cluster(ClusterCommand::Forget { disk, answer });
                self.ask_all(answer, forget, drop)
            }
            ClusterCommand::Recorded { disk, record } => {
                self.tell_all(|| ClusterCommand::Recorded { disk, record: record.clone() })
            }
            ClusterCommand::FetchFailed { disk } => self.tell_all(|| ClusterCommand::FetchFailed { disk }),
            ClusterCommand::Room { disk, component } => {
                self.tell_all(|| ClusterCommand::Room { disk, component })
            }
            ClusterCommand::Join { fabric, tls, endpoints, answer } => {
                let all = (0..self.count).map(|shard| fabric_of(&fabric, shard, self.count));
                let mut all = match all.collect::<Result<Vec<_>, _>>() {
                    Ok(all) => all.into_iter(),
                    Err(error) => {
                        let _ = answer.send(Err(error));
                        return Ok(());
                    }
                };
                let join = |answer| {
                    let fabric = all.next().expect("each shard is asked once, in their order");
                    Command::cluster(ClusterCommand::Join {
                        fabric,
                        tls: Arc::clone(&tls),
                        endpoints: endpoints.clone(),
                        answer,
                    })
                };
                self.ask_all(answer, join, |all| {
                    all.into_iter().collect::<Result<Vec<_>, _>>().map(|all| all.concat())
                })
            }
            ClusterCommand::State { answer } => {
                let state = |answer| Command::cluster(ClusterCommand::State { answer });
                self.ask_all(answer, state, ClusterState::merged)
            }
            command => {
                let shard = match &command {
                    ClusterCommand::Committed { shard, .. } | ClusterCommand::GiveBack { shard, .. } => {
                        *shard
                    }
                    ClusterCommand::Admit { ticket, .. } | ClusterCommand::CutOff { ticket } => ticket.shard,
                    ClusterCommand::Claim { disk } => self.claimant(*disk),
                    // Each reaches every node; its own at no cost.
                    ClusterCommand::Component { node, .. } if node.shard < self.count => node.shard,
                    _ => 0,
                };
                self.to(shard, Command::cluster(command))
            }
        }
    }

    /// Disks that nobody uses are shared out among the engines.
    fn claimant(&self, disk: DiskId) -> u8 {
        (disk.0 % u128::from(self.count)) as u8
    }

    fn to(&self, shard: u8, command: Command) -> Result<(), EngineError> {
        self.siblings.send(shard, Message::Command(command))
    }

    fn tell_all(&self, make: impl Fn() -> ClusterCommand) -> Result<(), EngineError> {
        (0..self.count).try_for_each(|shard| self.to(shard, Command::cluster(make())))
    }

    /// Asks all engines, and answers with what their answers make together.
    fn ask_all<T: Send + 'static, R: Send + 'static>(
        &self,
        answer: Answer<R>,
        mut make: impl FnMut(Answer<T>) -> Command,
        merge: impl FnOnce(Vec<T>) -> R + Send + 'static,
    ) -> Result<(), EngineError> {
        let mut waits = Vec::new();
        for shard in 0..self.count {
            let (send, wait) = oneshot::channel();
            self.to(shard, make(send))?;
            waits.push(wait);
        }
        let gather = async move {
            let mut all = Vec::new();
            for wait in waits {
                // Without an answer of one there is none of all: its asker sees a stopped engine.
                let Ok(one) = wait.await else { return };
                all.push(one);
            }
            drop(answer.send(merge(all)));
        };
        self.runtime.as_ref().ok_or(EngineError::Stopped)?.spawn(gather);
        Ok(())
    }
}

impl HostState {
    /// One host out of its engines.
    fn merged(all: Vec<HostState>) -> HostState {
        let mut merged = HostState {
            cluster: all.first().map_or_else(Default::default, |first| first.cluster),
            uptime: all.iter().map(|one| one.uptime).max().unwrap_or_default(),
            groups: Vec::new(),
            devices: Vec::new(),
            buffer_bytes: (0, 0),
        };
        for one in all {
            merged.groups.extend(one.groups);
            merged.devices.extend(one.devices);
            merged.buffer_bytes.0 += one.buffer_bytes.0;
            merged.buffer_bytes.1 += one.buffer_bytes.1;
        }
        merged
    }
}

impl super::Locking {
    /// A disk is locked when all engines have it so: where one of them has clients, the host has.
    fn merged(all: Vec<super::Locking>) -> super::Locking {
        let in_use = |one: &super::Locking| match one {
            super::Locking::InUse(count) => *count,
            super::Locking::Locked(_) => 0,
        };
        let ended = |one: &super::Locking| match one {
            super::Locking::Locked(count) => *count,
            super::Locking::InUse(_) => 0,
        };
        match all.iter().map(in_use).sum() {
            0 => super::Locking::Locked(all.iter().map(ended).sum()),
            count => super::Locking::InUse(count),
        }
    }
}

impl super::DiskState {
    /// The disks of a host out of those of its engines, each of which has them all.
    fn merged(all: Vec<Vec<super::DiskState>>) -> Vec<super::DiskState> {
        let mut merged: BTreeMap<DiskId, super::DiskState> = BTreeMap::new();
        for one in all.into_iter().flatten() {
            match merged.get_mut(&one.id) {
                None => drop(merged.insert(one.id, one)),
                Some(whole) => {
                    whole.clients.extend(one.clients);
                    whole.outstanding += one.outstanding;
                    whole.overdue += one.overdue;
                    Arc::make_mut(&mut whole.statistics).merge(&one.statistics);
                }
            }
        }
        merged.into_values().collect()
    }
}

impl ClusterState {
    /// What a host knows out of what its engines know.
    fn merged(all: Vec<ClusterState>) -> ClusterState {
        let mut merged = ClusterState::default();
        for one in all {
            for (node, is_up) in one.links {
                *merged.links.entry(node).or_insert(true) &= is_up;
            }
            for (id, disk) in one.disks {
                match merged.disks.get_mut(&id) {
                    None => drop(merged.disks.insert(id, disk)),
                    Some(whole) => {
                        whole.is_used |= disk.is_used;
                        whole.held += disk.held;
                        if disk.version > whole.version {
                            (whole.version, whole.roster) = (disk.version, disk.roster);
                        }
                        // Of two, one has been taken over and does not know it yet.
                        let epoch = |owner: &Option<OwnerState>| owner.as_ref().map(|owner| owner.epoch);
                        if epoch(&disk.owner) > epoch(&whole.owner) {
                            whole.owner = disk.owner;
                        }
                    }
                }
            }
            for (node, through) in one.ended {
                let known = merged.ended.entry(node).or_default();
                *known = through.max(*known);
            }
            merged.components.extend(one.components);
            merged.counters += one.counters;
        }
        merged
    }
}
