//! Watches over the process of a host, and tells the other hosts when it ends, however it ends.
//!
//! A host that falls silent may come back and still serve: the others wait until what it was granted has run out. One whose
//! process has ended serves nothing more, and whoever saw it end can say so: then nobody waits. That is a process of its own,
//! a child of the host's, which hears from the kernel (pidfd) that the other is gone. It must never say so of a process that
//! lives, and is not needed for anything else: where it is gone too, as when power fails, the others wait as long as for any
//! silent host ([design/0015](../../../docs/design/0015-last-words.md)).

use crate::directory::INCARNATION_STEP;
use crate::security::Security;
use api::program::WATCHER;
use base::{ClusterId, HostId, NodeId};
use failure::Failure;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::{HELLO_SIZE, Hello, Identity, Role, VersionRange};

/// How long a host may take to hear of it: later it has found out by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    host: u128,
    shard: u8,
    address: SocketAddr,
}

/// What is to be said, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testament {
    cluster: u128,
    host: u128,
    incarnation: u64,
    /// The nodes of the host by their shards.
    shards: Vec<u8>,
    others: Vec<Place>,
}

impl Testament {
    /// That of a host, whose nodes are among all of the cluster.
    pub fn new(
        cluster: ClusterId,
        host: HostId,
        incarnation: u64,
        nodes: &[(NodeId, SocketAddr)],
    ) -> Testament {
        let (own, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|(node, _)| node.host == host);
        let place = |(node, address): &(NodeId, SocketAddr)| Place {
            host: node.host.0,
            shard: node.shard,
            address: *address,
        };
        Testament {
            cluster: cluster.0,
            host: host.0,
            incarnation,
            shards: own.iter().map(|(node, _)| node.shard).collect(),
            others: others.iter().map(place).collect(),
        }
    }

    /// What is said to one node, once for each node of the host.
    fn hellos(&self, to: &Place) -> impl Iterator<Item = Hello> {
        let receiver = NodeId { host: HostId(to.host), shard: to.shard };
        let (host, cluster, incarnation) = (HostId(self.host), ClusterId(self.cluster), self.incarnation);
        self.shards.iter().map(move |&shard| Hello {
            from: Identity {
                versions: VersionRange::OURS,
                cluster,
                node: NodeId { host, shard },
                incarnation,
            },
            receiver,
            role: Role::ENDED,
            session: incarnation.saturating_add(INCARNATION_STEP - 1),
        })
    }
}

/// The watcher of this process.
pub struct Watcher {
    child: Child,
    told: Option<Testament>,
}

impl Watcher {
    /// Starts one.
    ///
    /// # Errors
    /// When the machine has no process left.
    pub fn start(data_dir: &Path) -> std::io::Result<Watcher> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WATCHER).arg("--pid").arg(std::process::id().to_string());
        command.arg("--data-dir").arg(data_dir).stdin(Stdio::piped()).stdout(Stdio::null());
        // A signal to the group of the host, as Ctrl-C is one, is not for it.
        command.process_group(0);
        Ok(Watcher { child: command.spawn()?, told: None })
    }

    /// Tells it what there is to be said from now on.
    ///
    /// # Errors
    /// When it is gone.
    pub fn tell(&mut self, testament: Testament) -> std::io::Result<()> {
        if self.told.as_ref() == Some(&testament) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&testament)?;
        line.push(b'\n');
        let pipe = self.child.stdin.as_mut().expect("it was started with a pipe");
        pipe.write_all(&line)?;
        self.told = Some(testament);
        Ok(())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // One that was killed is let go of; one that lives has its work still before it.
        let _ = self.child.try_wait();
    }
}

/// `drystone watcher`: waits until the process `pid`, its parent, ends, and tells the others. `data_dir`: where the host's certificate is.
///
/// # Errors
/// When the process cannot be watched.
pub fn run(pid: u32, data_dir: &Path) -> Result<(), Failure> {
    ignore_signals();
    let ended = pidfd_of(pid).map_err(|error| Failure::failed("watch over the host", error))?;
    let testament: Arc<Mutex<Option<Testament>>> = Arc::default();
    let heard = Arc::clone(&testament);
    // It ends with this process at the latest; at the end of the pipe nothing more can be heard, which says nothing yet.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(next) = serde_json::from_str(&line) {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
            }
        }
    });
    if let Some(pidfd) = ended {
        wait_for(&pidfd).map_err(|error| Failure::failed("watch over the host", error))?;
    }
    let last = testament.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(last) = last else { return Ok(()) };
    let security = Security::load(data_dir)?;
    std::thread::scope(|scope| {
        for to in &last.others {
            for hello in last.hellos(to) {
                let security = security.as_deref();
                scope.spawn(move || {
                    // Whoever cannot be told finds out later, by itself.
                    let _ = say(&hello, to.address, security);
                });
            }
        }
    });
    Ok(())
}

fn say(hello: &Hello, address: SocketAddr, security: Option<&Security>) -> std::io::Result<()> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut answer = [0; HELLO_SIZE];
    match security {
        None => {
            socket.write_all(&hello.encode())?;
            socket.read_exact(&mut answer)
        }
        Some(security) => {
            let mut session = security.peer_session(hello.receiver.host).map_err(std::io::Error::other)?;
            let mut secure = rustls::Stream::new(&mut session, &mut socket);
            secure.write_all(&hello.encode())?;
            secure.read_exact(&mut answer)
        }
    }
}

/// A signal that ends the host must not end who tells of it: it ends by itself soon after.
fn ignore_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: to ignore a signal touches no memory.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// What becomes readable when the process has ended with all its threads; nothing if it has already.
fn pidfd_of(pid: u32) -> std::io::Result<Option<OwnedFd>> {
    // SAFETY: the call takes no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let error = std::io::Error::last_os_error();
    // SAFETY: the kernel has just handed this descriptor out, and nobody else has it.
    let fd = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
    // A process gets another parent when its own has ended; until then the number is the parent's and nobody else's.
    if std::os::unix::process::parent_id() != pid {
        return Ok(None);
    }
    fd.map_or(Err(error), |fd| Ok(Some(fd)))
}

fn wait_for(pidfd: &OwnedFd) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: `poll` is one entry, and lives through the call.
        match unsafe { libc::poll(&raw mut poll, 1, -1) } {
            1.. if poll.revents & libc::POLLIN != 0 => return Ok(()),
            0.. => {}
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
