//! The host processes of a demo: started, stopped, paused and killed by a thread of their own.
//!
//! The kernel kills a host when the thread that started it ends: so nothing outlives the demo, and that thread lives as long
//! as the demo.

use cli::demo::Action;
use failure::{Code, Failure};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a host may take to end after it was told to.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// How often that is looked at.
const STOP_POLL: Duration = Duration::from_millis(20);

/// An order and the place for its answer.
struct Order {
    /// Of which host; nothing: all end, and the thread with them.
    name: Option<String>,
    action: Action,
    answer: oneshot::Sender<Result<String, Failure>>,
}

/// The way to the thread; clones share it.
#[derive(Clone)]
pub struct Hosts {
    orders: Sender<Order>,
}

/// A host's process, when there is one.
struct Host {
    name: String,
    config: PathBuf,
    child: Option<Child>,
    is_paused: bool,
}

impl Hosts {
    /// Starts the thread for hosts of these names, with their configuration files; no host yet.
    ///
    /// # Errors
    /// When the machine has no thread left.
    pub fn new(configs: Vec<(String, PathBuf)>) -> Result<Hosts, Failure> {
        let (orders, inbox) = channel();
        let host = |(name, config)| Host { name, config, child: None, is_paused: false };
        let hosts = configs.into_iter().map(host).collect();
        let thread = std::thread::Builder::new().name("hosts".to_owned());
        thread
            .spawn(move || serve(hosts, &inbox))
            .map_err(|error| Failure::failed("start a thread", error))?;
        Ok(Hosts { orders })
    }

    /// Does something with a host, and says what was done.
    ///
    /// # Errors
    /// When there is none of that name, or it is not as the action needs it.
    pub async fn order(&self, name: &str, action: Action) -> Result<String, Failure> {
        self.send(Some(name.to_owned()), action).await
    }

    /// Ends all hosts.
    ///
    /// # Errors
    /// When one does not end by itself; it is killed then.
    pub async fn end(&self) -> Result<String, Failure> {
        self.send(None, Action::Stop).await
    }

    async fn send(&self, name: Option<String>, action: Action) -> Result<String, Failure> {
        let (answer, wait) = oneshot::channel();
        let gone = || Failure::new(Code::Failed, "the demo is ending");
        self.orders.send(Order { name, action, answer }).map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?
    }
}

fn serve(mut hosts: Vec<Host>, inbox: &Receiver<Order>) {
    while let Ok(Order { name, action, answer }) = inbox.recv() {
        let Some(name) = name else {
            drop(answer.send(end_all(&mut hosts)));
            return;
        };
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let done = match hosts.iter_mut().find(|host| host.name == name) {
            Some(host) => host.act(action),
            None => Err(Failure::new(Code::NotFound, format!("there is no host `{name}` in this demo"))
                .hint(format!("there are {}", names.join(", ")))),
        };
        drop(answer.send(done));
    }
}

/// All are told at once, then waited for.
fn end_all(hosts: &mut [Host]) -> Result<String, Failure> {
    for host in hosts.iter_mut() {
        if host.is_running() {
            host.signal(libc::SIGCONT)?;
            host.signal(libc::SIGTERM)?;
        }
    }
    let mut result = Ok("all hosts have ended".to_owned());
    for host in hosts.iter_mut() {
        if let Err(failure) = host.wait() {
            result = Err(failure);
        }
    }
    result
}

impl Host {
    fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        self.child = None;
        self.is_paused = false;
        false
    }

    fn act(&mut self, action: Action) -> Result<String, Failure> {
        let is_running = self.is_running();
        let name = self.name.clone();
        match (action, is_running) {
            (Action::Start, true) if self.is_paused => {
                self.signal(libc::SIGCONT)?;
                self.is_paused = false;
                Ok(format!("host {name} goes on"))
            }
            (Action::Start, true) => Err(Failure::refused(format!("host {name} runs already"))),
            (Action::Start, false) => {
                self.child = Some(spawn(&self.config)?);
                Ok(format!("host {name} starts"))
            }
            (Action::Stop | Action::Pause | Action::Kill, false) => {
                Err(Failure::refused(format!("host {name} does not run")).hint("start it first"))
            }
            (Action::Pause, true) => {
                self.signal(libc::SIGSTOP)?;
                self.is_paused = true;
                Ok(format!("host {name} stands still"))
            }
            (Action::Kill, true) => {
                self.signal(libc::SIGKILL)?;
                self.wait()?;
                Ok(format!("host {name} was killed"))
            }
            (Action::Stop, true) => {
                self.signal(libc::SIGCONT)?;
                self.signal(libc::SIGTERM)?;
                self.wait()?;
                Ok(format!("host {name} has ended"))
            }
        }
    }

    fn signal(&self, signal: libc::c_int) -> Result<(), Failure> {
        let Some(child) = &self.child else { return Ok(()) };
        // SAFETY: the process is our child and not waited for yet, so the id is still its own.
        match unsafe { libc::kill(child.id() as libc::pid_t, signal) } {
            0 => Ok(()),
            _ => Err(Failure::failed(format!("signal host {}", self.name), std::io::Error::last_os_error())),
        }
    }

    /// Waits until it has ended; kills it if that takes too long.
    fn wait(&mut self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::failed("wait for a host", error);
        let Some(mut child) = self.child.take() else { return Ok(()) };
        self.is_paused = false;
        let until = Instant::now() + STOP_PATIENCE;
        loop {
            let ended: Option<ExitStatus> = child.try_wait().map_err(failed)?;
            if ended.is_some() {
                return Ok(());
            }
            if Instant::now() >= until {
                child.kill().and_then(|()| child.wait()).map_err(failed)?;
                return Err(Failure::failed(
                    format!("stop host {}", self.name),
                    "it did not end, and was killed",
                ));
            }
            std::thread::sleep(STOP_POLL);
        }
    }
}

fn spawn(config: &Path) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| Failure::failed("start a host", error);
    let program = std::env::current_exe().map_err(failed)?;
    let log = config.with_file_name("log");
    let log = File::options().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("host").arg("--config").arg(config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // SAFETY: between fork and exec only `prctl` and `setpgid` are called, which are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            // Ctrl-C is the demo's: it ends its hosts in order.
            if libc::setpgid(0, 0) != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.spawn().map_err(failed)
}
