//! An agent: it waits for the driver that it invited, and does what that driver says.

use super::frame::Frames;
use super::invitation::{Invitation, SECRET_BYTES};
use super::message::{ToAgent, ToDriver};
use super::{PROTOCOL, tls};
use crate::clock;
use crate::generator::ledger::Ledger;
use crate::generator::stage::{Gate, Settings};
use crate::runner;
use crate::target::Target;
use plan::Plan;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Who is not known yet has so long to say who he is.
const STRANGER_WAIT: Duration = Duration::from_secs(5);
/// So many may be saying so at a time.
const STRANGERS_MAX: usize = 16;
/// How often the two sides of a session look for something new.
const TURN: Duration = Duration::from_millis(5);
/// A driver hears from its agent at least so often.
const ALIVE: Duration = Duration::from_secs(1);

/// Why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No certificate or secret can be made.
    #[error("{0}")]
    Setup(String),
    /// The socket is of no use.
    #[error("wait for a driver: {0}")]
    Socket(#[from] io::Error),
}

/// Finds the targets of a part: what is not the agent's is absent. The second argument names targets that may be destroyed.
pub type Find = Arc<dyn Fn(&Plan, &[String]) -> Result<Vec<Target>, String> + Send + Sync>;

/// Serves one session: `invite` is told how a driver gets in; it returns when the session has ended.
///
/// # Errors
/// When the socket fails; what a stranger does is no error.
pub fn serve(
    listener: &TcpListener,
    address: &str,
    program: &str,
    find: &Find,
    invite: &mut dyn FnMut(&Invitation),
) -> Result<(), ServeError> {
    let (config, fingerprint) = tls::server().map_err(ServeError::Setup)?;
    let secret = tls::random::<SECRET_BYTES>().map_err(ServeError::Setup)?;
    invite(&Invitation { address: address.to_owned(), fingerprint, secret });
    let door = Arc::new(Door { secret: Mutex::new(Some(secret)), strangers: AtomicUsize::new(0) });
    let (sender, ended) = mpsc::channel();
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                if door.strangers.fetch_add(1, Ordering::Relaxed) >= STRANGERS_MAX {
                    door.strangers.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (door, config, sender) = (door.clone(), config.clone(), sender.clone());
                let (program, find) = (program.to_owned(), find.clone());
                std::thread::spawn(move || {
                    let known = greet(socket, config, &door, &program);
                    door.strangers.fetch_sub(1, Ordering::Relaxed);
                    if let Some(frames) = known {
                        Session {
                            frames,
                            find,
                            plan: None,
                            targets: Vec::new(),
                            ledgers: Vec::new(),
                            running: None,
                        }
                        .run();
                        // Nobody waits any more if the agent was told to end meanwhile.
                        let _ = sender.send(());
                    }
                });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if ended.recv_timeout(TURN).is_ok() {
            return Ok(());
        }
    }
}

struct Door {
    /// Taken by the first who knows it.
    secret: Mutex<Option<[u8; SECRET_BYTES]>>,
    strangers: AtomicUsize,
}

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Lets in who knows the secret, once.
fn greet(socket: TcpStream, config: Arc<ServerConfig>, door: &Door, program: &str) -> Option<Frames<Stream>> {
    socket.set_nonblocking(false).ok()?;
    socket.set_nodelay(true).ok()?;
    socket.set_read_timeout(Some(STRANGER_WAIT)).ok()?;
    socket.set_write_timeout(Some(STRANGER_WAIT)).ok()?;
    let session = ServerConnection::new(config).ok()?;
    let mut frames = Frames::new(StreamOwned::new(session, socket.try_clone().ok()?));
    let Some(ToAgent::Hello { protocol, secret }) = frames.receive().ok()? else { return None };
    let refuse = |frames: &mut Frames<Stream>, reason: String| {
        // It may be gone already.
        let _ = frames.send(&ToDriver::Refused { reason });
        None
    };
    if protocol != PROTOCOL {
        let reason = format!(
            "the driver speaks protocol version {protocol}, this agent version {PROTOCOL}: use the same release of drystone on both"
        );
        return refuse(&mut frames, reason);
    }
    if !takes(door, &secret) {
        return refuse(&mut frames, "the invitation was already used or is not from this agent: use the invitation that the agent printed last".to_owned());
    }
    socket.set_read_timeout(Some(TURN)).ok()?;
    socket.set_write_timeout(Some(Duration::from_secs(30))).ok()?;
    frames.longest = super::frame::MESSAGE_MAX;
    let machine = runner::this_machine();
    frames.send(&ToDriver::Welcome { machine, program: program.to_owned() }).ok()?;
    Some(frames)
}

/// Whether this is the secret, which is good for one session. Digests are compared, so that time tells nothing.
fn takes(door: &Door, given: &str) -> bool {
    let mut secret = door.secret.lock().expect("no thread panics with the lock held");
    let Some(expected) = *secret else { return false };
    let expected = base::hex(&expected);
    let good = tls::fingerprint(expected.as_bytes()) == tls::fingerprint(given.as_bytes());
    if good {
        *secret = None;
    }
    good
}

struct Session {
    frames: Frames<Stream>,
    find: Find,
    plan: Option<Plan>,
    targets: Vec<Target>,
    /// Of the plan: a stage may verify what an earlier one wrote.
    ledgers: Vec<Option<Arc<Ledger>>>,
    running: Option<Running>,
}

struct Running {
    events: mpsc::Receiver<ToDriver>,
    begin: mpsc::Sender<u64>,
    interrupted: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Session {
    /// Runs until the driver says goodbye or is gone; what still runs then is stopped.
    fn run(&mut self) {
        let mut told = Instant::now();
        loop {
            match self.frames.receive::<ToAgent>() {
                Ok(Some(ToAgent::Bye)) | Err(_) => break,
                Ok(Some(message)) => {
                    if self.obey(message).is_err() {
                        break;
                    }
                }
                Ok(None) => {}
            }
            match self.pass_on() {
                Ok(0) if told.elapsed() < ALIVE => {}
                Ok(0) => {
                    if self.frames.send(&ToDriver::Alive).is_err() {
                        break;
                    }
                    told = Instant::now();
                }
                Ok(_) => told = Instant::now(),
                Err(_) => break,
            }
        }
        self.stop();
    }

    fn obey(&mut self, message: ToAgent) -> io::Result<()> {
        match message {
            ToAgent::Clock => self.frames.send(&ToDriver::Clock { now: clock::now() }),
            ToAgent::Find { plan, destroy, drop_caches } => self.find(*plan, &destroy, drop_caches),
            ToAgent::Prepare { stage, reached, go_on } => self.prepare(stage, reached, go_on),
            ToAgent::Begin { at } => {
                if let Some(running) = &self.running {
                    // A stage that failed meanwhile has told so.
                    let _ = running.begin.send(at);
                }
                Ok(())
            }
            ToAgent::Stop => {
                if let Some(running) = &self.running {
                    running.interrupted.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
            ToAgent::Hello { .. } | ToAgent::Bye => Ok(()),
        }
    }

    fn find(&mut self, plan: Plan, destroy: &[String], drop_caches: bool) -> io::Result<()> {
        if let Some(problem) = plan.problems().iter().find(|problem| !problem.found.contains("no group")) {
            return self.frames.send(&ToDriver::Refused { reason: problem.to_string() });
        }
        self.stop();
        // What they hold for themselves alone would be in use to those that are found now.
        self.targets.clear();
        let found = (self.find)(&plan, destroy).and_then(|targets| {
            let ledgers = crate::verification::records(&plan, &targets, None);
            ledgers.map(|ledgers| (targets, ledgers)).map_err(|error| error.to_string())
        });
        match found {
            Err(reason) => self.frames.send(&ToDriver::Refused { reason }),
            Ok((targets, ledgers)) => {
                if drop_caches {
                    targets.iter().for_each(Target::drop_cache);
                }
                let facts = |target: &Target| {
                    (!target.is_absent()).then(|| crate::runner::facts(&target.name, target))
                };
                let found = targets.iter().map(facts).collect();
                (self.plan, self.targets, self.ledgers) = (Some(plan), targets, ledgers);
                self.frames.send(&ToDriver::Found { targets: found })
            }
        }
    }

    fn prepare(&mut self, stage: usize, reached: Vec<f64>, go_on: bool) -> io::Result<()> {
        self.stop();
        let Some(plan) = self.plan.clone().filter(|plan| stage < plan.stages.len()) else {
            return self
                .frames
                .send(&ToDriver::Refused { reason: format!("there is no stage {}", stage + 1) });
        };
        let (events, received) = mpsc::channel();
        let (begin, begins) = mpsc::channel::<u64>();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (ready, begins) = (events.clone(), Mutex::new(begins));
        let gate = Gate(Arc::new(move || {
            ready.send(ToDriver::Ready).ok()?;
            begins.lock().ok()?.recv().ok()
        }));
        let settings = Settings {
            processors: runner::this_machine().processors as usize,
            go_on,
            interrupted: interrupted.clone(),
            ledgers: self.ledgers.clone(),
            gate: Some(gate),
        };
        let targets = self.targets.clone();
        let thread = std::thread::spawn(move || {
            let done = runner::run_stage(&plan, stage, &targets, &reached, settings, &mut |second| {
                // The session that listened is over: the stage is being stopped.
                let _ = events.send(second.into());
            });
            let last = match done {
                Ok(run) => ToDriver::Done { run: Box::new(run) },
                Err(error) => ToDriver::Refused { reason: error.to_string() },
            };
            let _ = events.send(last);
        });
        self.running = Some(Running { events: received, begin, interrupted, thread });
        Ok(())
    }

    /// Sends what the stage has told. Returns how many messages.
    fn pass_on(&mut self) -> io::Result<usize> {
        let Some(running) = &self.running else { return Ok(0) };
        let mut count = 0;
        while let Ok(message) = running.events.try_recv() {
            self.frames.send(&message)?;
            count += 1;
        }
        Ok(count)
    }

    fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.interrupted.store(true, Ordering::Relaxed);
        // A stage that waits to begin is called off when nobody can tell it any more.
        drop(running.begin);
        // A thread that panicked has nothing to tell; the driver hears that the agent is gone.
        let _ = running.thread.join();
    }
}
