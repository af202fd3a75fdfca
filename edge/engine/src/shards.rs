//! Several engines on one host: each a node of the cluster with a thread, a ring, disk groups and clients of its own.
//!
//! They are nodes to each other as to those of other hosts, and share no state that I/O goes through. What is here belongs
//! to the control plane's side: which engine a command is for, one answer out of several, and who takes a new client. A
//! group belongs to the same engine always, for the records of disks name the node of each component.

use crate::command::{Answer, ClusterCommand, Command, Locking};
use crate::error::EngineError;
use crate::handle::EngineHandle;
use crate::mailbox::Message;
use crate::run;
use crate::settings::{Fabric, Settings};
use crate::siblings::Siblings;
use crate::state::{ClusterState, DiskState, HostState, PassState};
use base::{DiskId, NodeId};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Most engines of one host.
pub const SHARDS_MAX: u8 = 16;

/// How often it is looked whether an engine has ended by itself.
const WATCH_PERIOD: Duration = Duration::from_millis(50);

/// A host's engines that have started.
pub struct Started {
    /// The way to them.
    pub handle: EngineHandle,
    /// Ends when they have ended.
    pub thread: JoinHandle<()>,
    /// Where each of them listens for other nodes; nothing where there are none.
    pub peers: Vec<Option<SocketAddr>>,
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
    siblings.connect(mailboxes);
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
        let [buffer_bytes, table_bytes] =
            [settings.buffer_bytes, settings.table_bytes].map(|bytes| bytes / u64::from(count));
        Ok(Settings { fabric, buffer_bytes, table_bytes, ..settings.clone() })
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
            if !siblings.is_stopping() {
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
            self.siblings.begin_stop();
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
            // Every engine finds the owner.
            command @ (Command::Survey { .. } | Command::CopyUp { .. } | Command::CopyBack { .. }) => {
                self.to(0, command)
            }
            Command::AddCapacity { group, .. } => self.to(self.siblings.home_of(group), command),
            Command::RemoveDevice { device, .. } => {
                let home = self.siblings.home_of_device(device);
                self.to(home.unwrap_or(0), command)
            }
            Command::Convert { answer } => {
                self.ask_all(answer, |answer| Command::Convert { answer }, |all| all.into_iter().sum())
            }
            Command::Rewrite { disk, answer } => {
                self.ask_all(answer, |answer| Command::Rewrite { disk, answer }, |all| all.into_iter().sum())
            }
            Command::Host { answer } => {
                self.ask_all(answer, |answer| Command::Host { answer }, HostState::merged)
            }
            Command::Loads { answer } => {
                self.ask_all(answer, |answer| Command::Loads { answer }, |all| all.concat())
            }
            Command::Disks { only, answer } => {
                self.ask_all(answer, |answer| Command::Disks { only, answer }, DiskState::merged)
            }
            Command::Lock { disk, lock, answer } => self.ask_all(
                answer,
                |answer| Command::Lock { disk, lock: lock.clone(), answer },
                Locking::merged,
            ),
            Command::Unlock { disk, answer } => {
                self.ask_all(answer, |answer| Command::Unlock { disk, answer }, drop)
            }
            Command::Pass { order, answer } => {
                self.ask_all(answer, |answer| Command::Pass { order, answer }, PassState::merged)
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
