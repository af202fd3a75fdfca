//! Servers, files and jobs for the tests.

use lab::commands::{CommandError, ErrorKind, LabCommand, World, perform};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder that goes with the test.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// One that is not in memory, where files are nothing but their cache.
    pub fn on_disk() -> Folder {
        Folder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of random bytes.
    pub fn file(&self, name: &str, bytes: usize) -> PathBuf {
        let mut data = vec![0; bytes];
        base::Random::new(bytes as u64).fill(&mut data);
        std::fs::write(self.path(name), data).expect("a file");
        self.path(name)
    }

    /// A job file.
    pub fn job(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a job");
        text_of(&self.path(name))
    }
}

pub fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// A server that ends with the test.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(&self.child, libc::SIGCONT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(child: &Child, signal: i32) {
    // SAFETY: the call takes numbers only; the child has not been waited for, so its id is its own.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Waits for something that another process does; fails the test if it does not.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen within 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// nbdkit on a unix socket, with these arguments after those of the socket.
pub fn nbdkit(folder: &Folder, arguments: &[&str]) -> Server {
    let socket = folder.path("nbdkit.sock");
    let child = Command::new("nbdkit")
        .args(["-f", "-U", &text_of(&socket)])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nbdkit is installed");
    wait_for("nbdkit's socket", || socket.exists());
    Server { child, address: format!("nbd+unix:///?socket={}", socket.display()) }
}

/// Runs one of the lab's commands as words of a command line; gives what it wrote.
pub fn lab(words: &[&str]) -> Result<String, CommandError> {
    #[derive(clap::Parser)]
    struct Cli {
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: LabCommand,
    }
    let cli = <Cli as clap::Parser>::try_parse_from([&["lab"], words].concat())
        .map_err(|error| CommandError::new(ErrorKind::Usage, error.to_string()))?;
    let mut out = Vec::new();
    let mut world = World {
        out: &mut out,
        json: cli.json,
        interactive: false,
        program: "test".to_owned(),
        disks: std::sync::Arc::new(lab::commands::NoDisks),
        keep: None,
    };
    let done = perform(cli.command, &mut world);
    let text = String::from_utf8(out).expect("answers are text");
    done.map(|()| text)
}

/// The same with `--json`, read.
pub fn lab_json(words: &[&str]) -> serde_json::Value {
    let text = lab(&[words, &["--json"]].concat()).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// A run that is kept in a file, as the library knows it.
pub fn kept_run(folder: &Folder, words: &[&str]) -> (Result<String, CommandError>, measured::Run) {
    let out = text_of(&folder.path("kept.json"));
    let done = lab(&[words, &["--out", &out]].concat());
    let text = std::fs::read_to_string(&out).unwrap_or_else(|error| panic!("{done:?}: {error}"));
    (done, serde_json::from_str(&text).expect("a run"))
}
