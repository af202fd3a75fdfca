//! A datastore in a folder of its own, the server on it, and the command line that asks it.
//!
//! Nothing outlives the test: the server dies with the thread that started it, and the folder is removed.

use super::nbd::Client;
use super::tools::{command, output, said, text, wait_for};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_drystone");
/// How long a start or an orderly stop may take on a busy machine.
const START_SECONDS: u64 = 60;

/// A datastore with its configuration, running or not.
pub struct Site {
    folder: tempfile::TempDir,
    config: String,
}

/// What the devices of a group are.
pub enum Shape {
    /// One file for log and data.
    One { size_mib: u64 },
    /// A file for the log, and one for the data.
    Two { size_mib: u64 },
}

/// Size of the log in the tests' groups: small, so that it goes round often.
pub const LOG_MIB: u64 = 32;

impl Site {
    /// A datastore with one group of files.
    pub fn new(shape: &Shape) -> Site {
        let mut site = Site::bare();
        site.add_group(shape, "");
        site
    }

    /// A datastore with one group of files in memory, for what is timed: a disk may stand still for half a second.
    pub fn in_memory(shape: &Shape) -> Site {
        let mut site = Site::bare();
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            site.folder =
                tempfile::Builder::new().prefix("drystone-").tempdir_in(memory).expect("room for a folder");
        }
        site.add_group(shape, "");
        site
    }

    /// A datastore with no group yet.
    pub fn bare() -> Site {
        let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
        let config = "data_dir = \"d\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n".to_owned();
        Site { folder, config }
    }

    /// Adds a group of files with names that begin with `name`.
    pub fn add_group(&mut self, shape: &Shape, name: &str) {
        let (log, capacity, size) = match shape {
            Shape::One { size_mib } => ("all", String::new(), *size_mib),
            Shape::Two { size_mib } => ("log", format!("\"{name}data\""), *size_mib),
        };
        self.add_config(&format!(
            "[[group]]\nlog = \"{name}{log}\"\ncapacity = [{capacity}]\nlog_size = \"{LOG_MIB}MiB\"\n\
             file_size = \"{size}MiB\"\ncreate = \"if-blank\"\n"
        ));
    }

    /// Adds lines to the configuration.
    pub fn add_config(&mut self, lines: &str) {
        self.config += lines;
    }

    /// Writes another configuration.
    pub fn set_config(&mut self, config: &str) {
        config.clone_into(&mut self.config);
    }

    /// The configuration as it is.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// A place in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program as it would be started, with its standard error output to `said`.
    fn host_command(&self, options: &[&str], said: File) -> Command {
        let config = self.path("host.toml");
        std::fs::write(&config, &self.config).expect("room for the configuration");
        let mut host = Command::new(PROGRAM);
        host.arg("host").arg("--config").arg(config).args(options);
        host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        // SAFETY: between fork and exec only `prctl` is called, which is async-signal-safe.
        unsafe {
            host.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        host
    }

    /// Starts the server and waits until it serves.
    pub fn start(&self) -> Server {
        self.start_with(&[])
    }

    /// Starts the server and waits for nothing.
    pub fn launch(&self) -> Server {
        self.spawn(&[], |_| {})
    }

    /// The same with more options.
    pub fn start_with(&self, options: &[&str]) -> Server {
        self.start_changed(options, |_| {})
    }

    /// The same where the process may have so many descriptors: at first, and at most.
    pub fn start_limited(&self, (soft, hard): (u64, u64)) -> Server {
        self.start_changed(&[], |host| {
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            // SAFETY: between fork and exec only `setrlimit` is called, which is async-signal-safe.
            unsafe {
                host.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                });
            }
        })
    }

    fn spawn(&self, options: &[&str], change: impl FnOnce(&mut Command)) -> Server {
        let log = self.path("server.log");
        let file = File::create(&log).expect("room for the server's messages");
        let mut command = self.host_command(options, file);
        change(&mut command);
        let child = command.spawn().expect("the program is there");
        Server { child, log }
    }

    fn start_changed(&self, options: &[&str], change: impl FnOnce(&mut Command)) -> Server {
        let mut server = self.spawn(options, change);
        wait_for("the server serves", START_SECONDS, || {
            let ended = server.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "the server ended: {}", server.messages());
            server.messages().contains(" disks: nbd at").then_some(())
        });
        server
    }

    /// Starts the server where it must refuse to; gives its exit code and what it said.
    pub fn refused(&self, options: &[&str]) -> (i32, String) {
        let log = self.path("refused.log");
        let file = File::create(&log).expect("room for the server's messages");
        let child = self.host_command(options, file).spawn().expect("the program is there");
        let mut server = Server { child, log };
        let status = wait_for("the server refuses to start", START_SECONDS, || {
            assert!(!server.messages().contains(" disks: nbd at"), "it serves: {}", server.messages());
            server.child.try_wait().expect("it is our child")
        });
        let code = status.code().unwrap_or_else(|| panic!("{status}: {}", server.messages()));
        (code, server.messages())
    }

    /// Asks the server by the command line.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        output(&mut self.cli_command(arguments))
    }

    /// The command that does so.
    pub fn cli_command(&self, arguments: &[&str]) -> Command {
        let api = format!("unix:{}", text(&self.path("d/api.sock")));
        let mut command = command(PROGRAM);
        command.env("DRYSTONE_API", api).args(arguments);
        command
    }

    /// The same where it must succeed.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let done = self.cli(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", said(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Asks with something on the standard input.
    pub fn cli_with(&self, input: &str, arguments: &[&str]) -> Output {
        let mut command = self.cli_command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        let mut stdin = child.stdin.take().expect("it is piped");
        // It may have ended without reading.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it is our child")
    }

    /// The same as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.ask(&[&["--json"], arguments].concat());
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {answer}"))
    }

    /// `/metrics`.
    pub fn metrics(&self) -> String {
        let socket = self.path("d/api.sock");
        super::tools::run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/metrics"])
    }

    /// The URI of a disk at the unix socket.
    pub fn uri(&self, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", text(&self.path("d/nbd.sock")))
    }

    /// Attaches to a disk.
    pub fn attach(&self, disk: &str) -> Client {
        Client::attach(&self.path("d/nbd.sock"), disk)
            .unwrap_or_else(|error| panic!("attach {disk}: {error}"))
    }
}

/// A running server. Dropped, it is killed.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// What it said so far.
    pub fn messages(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself, as all is well.
    pub fn ended(mut self) {
        let status = wait_for("the server ends by itself", 60, || self.child.try_wait().expect("its state"));
        assert!(status.success(), "{status}: {}", self.messages());
    }

    /// Waits until it has ended by itself because something is wrong; gives its exit code and what it said.
    pub fn ended_by_itself(mut self) -> (i32, String) {
        let status = wait_for("the server ends by itself", 60, || self.child.try_wait().expect("its state"));
        (status.code().unwrap_or_else(|| panic!("{status}: {}", self.messages())), self.messages())
    }

    /// Ends it as an administrator does, which must be orderly.
    pub fn stop(mut self) {
        self.signal(libc::SIGTERM);
        let status =
            wait_for("the server stops", START_SECONDS, || self.child.try_wait().expect("it is our child"));
        assert!(status.success(), "{status}: {}", self.messages());
    }

    /// `kill -9` after a while, from a thread of its own; the thread ends when the process is told.
    pub fn kill_after(&self, wait: Duration) -> std::thread::JoinHandle<()> {
        let id = self.child.id() as libc::pid_t;
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            // SAFETY: the process is our child and not waited for yet, so the id is still its own.
            unsafe { libc::kill(id, libc::SIGKILL) };
        })
    }

    /// After [`Server::kill_after`]: asserts that nothing but the kill has ended it.
    pub fn killed(mut self, killer: std::thread::JoinHandle<()>) {
        use std::os::unix::process::ExitStatusExt;
        killer.join().expect("the killer does not panic");
        let status = self.child.wait().expect("it is our child");
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}: {}", self.messages());
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is our child and not waited for yet, so the id is still its own.
        let sent = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(sent, 0, "signal the server");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.messages());
        }
    }
}
