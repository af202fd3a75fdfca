//! The process of a member, as its folder wishes it.

use super::{Folder, PROGRAM, Wish, found, read_json};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the folder is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// How long the process may take to end before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// A process that ends by itself is started anew after this time; twice that after the next, and so on up to [`RETRY_MAX`]. One that ran
/// for longer than that counts as the first.
const RETRY_MIN: Duration = Duration::from_millis(500);
/// The longest time before another start.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// A log that is larger at a start is put aside.
const LOG_MAX: u64 = 16 << 20;

/// A folder that nobody else supervises.
#[derive(Debug)]
pub struct Lock {
    folder: Folder,
    _file: File,
}

impl Lock {
    /// Takes it; nothing where another process has it.
    ///
    /// # Errors
    /// When the folder or the file cannot be made.
    pub fn take(folder: &Folder) -> io::Result<Option<Lock>> {
        folder.make()?;
        let file = File::create(folder.path().join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { folder: folder.clone(), _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Runs the process of a folder as the folder says. The process ends when this is dropped.
pub struct Supervisor {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// Begins; `report` is told in words what goes wrong, and what is done.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn begin(lock: Lock, report: impl FnMut(String) + Send + 'static) -> io::Result<Supervisor> {
        let (stop, stopped) = channel();
        // A thread of its own, for the process is told to end when the thread that made it has ended.
        let thread = std::thread::Builder::new().name("etcd".to_owned()).spawn(move || {
            let mut member = Running {
                lock,
                report,
                child: None,
                started: None,
                since: Instant::now(),
                retry: RETRY_MIN,
                due: Instant::now(),
            };
            member.keep(&stopped);
        })?;
        Ok(Supervisor { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has told of whatever broke it.
            let _ = thread.join();
        }
    }
}

/// What a process was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Started {
    words: Vec<String>,
    authorities: Option<String>,
    member: Option<u64>,
}

impl Started {
    /// Whether the process that was started with this is the one that is wished: the first member learns its id while it runs.
    fn is(&self, wished: &Started) -> bool {
        self.words == wished.words
            && self.authorities == wished.authorities
            && (self.member.is_none() || self.member == wished.member)
    }
}

struct Running<R> {
    lock: Lock,
    report: R,
    child: Option<Child>,
    started: Option<Started>,
    /// When it was started.
    since: Instant,
    /// How long the next start waits if the process ends by itself.
    retry: Duration,
    /// When the process may be started.
    due: Instant,
}

impl<R: FnMut(String)> Running<R> {
    fn keep(&mut self, stopped: &Receiver<()>) {
        let mut told = None;
        loop {
            let trouble = self.look().err().map(|error| error.to_string());
            if let Some(trouble) = trouble.clone().filter(|_| trouble != told) {
                (self.report)(format!("etcd: {trouble}"));
            }
            told = trouble;
            if stopped.recv_timeout(LOOK_PERIOD) != Err(RecvTimeoutError::Timeout) {
                self.stop();
                return;
            }
        }
    }

    /// Makes the process what the folder says now.
    fn look(&mut self) -> io::Result<()> {
        self.note_end()?;
        let folder = self.lock.folder.clone();
        let wished = match read_json(&folder.wish_file())? {
            None => None,
            Some(Wish::Run(spec)) => Some(Started {
                words: spec.words(&folder),
                authorities: folder.believed()?,
                member: spec.member,
            }),
            Some(Wish::Left) => {
                self.stop();
                return put_data_aside(&folder);
            }
        };
        let is_same =
            self.started.as_ref().zip(wished.as_ref()).is_some_and(|(started, wished)| started.is(wished));
        if self.child.is_some() && is_same {
            if self.started != wished {
                own_data(&folder, wished.as_ref().and_then(|wished| wished.member))?;
                self.started = wished;
            }
            return Ok(());
        }
        self.stop();
        let Some(wished) = wished.filter(|_| Instant::now() >= self.due) else { return Ok(()) };
        own_data(&folder, wished.member)?;
        self.child = Some(spawn(&wished.words, &folder)?);
        (self.started, self.since) = (Some(wished), Instant::now());
        Ok(())
    }

    /// Finds out whether the process has ended by itself.
    fn note_end(&mut self) -> io::Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let Some(status) = child.try_wait()? else { return Ok(()) };
        self.child = None;
        if self.since.elapsed() > RETRY_MAX {
            self.retry = RETRY_MIN;
        }
        self.due = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        let log = self.lock.folder.log();
        (self.report)(format!(
            "etcd has ended ({status}), and is started anew; it says why in {}",
            log.display()
        ));
        Ok(())
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        self.retry = RETRY_MIN;
        // SAFETY: it is our child, and nobody has waited for it: its number is still its own.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
        let until = Instant::now() + STOP_WAIT;
        while Instant::now() < until {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Both fail only when it has ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn spawn(words: &[String], folder: &Folder) -> io::Result<Child> {
    let log = folder.log();
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > LOG_MAX) {
        std::fs::rename(&log, log.with_extension("log.old"))?;
    }
    let said = File::options().create(true).append(true).open(&log)?;
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(folder.path()).stdin(Stdio::null());
    command.stdout(said.try_clone()?).stderr(said);
    // SAFETY: `prctl` is a plain system call, allowed between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            format!(
                "there is no program `{PROGRAM}` on this host: install it (Debian: apt install etcd-server)"
            ),
        ),
        _ => error,
    })
}

/// What a member knew that was taken out is of no use, and would keep the host from becoming one again.
fn put_data_aside(folder: &Folder) -> io::Result<()> {
    let (data, aside) = (folder.data(), folder.path().join("data.left"));
    if data.exists() {
        found(std::fs::remove_dir_all(&aside))?;
        std::fs::rename(data, aside)?;
    }
    found(std::fs::remove_file(folder.owner_file())).map(drop)
}

/// Before a member is started, or once its id is known: the data are its own. Those of a former member of this host are put aside: it was
/// taken out of the list, and this one has another place there.
fn own_data(folder: &Folder, member: Option<u64>) -> io::Result<()> {
    let Some(member) = member else { return Ok(()) };
    let owner: Option<u64> = read_json(&folder.owner_file())?;
    if owner.is_some_and(|owner| owner != member) {
        put_data_aside(folder)?;
    }
    folder.put(&folder.owner_file(), &serde_json::to_vec(&member)?)
}
