//! Real processes of etcd on loopback, for tests. Needs the program `etcd` (Debian: etcd-server).
//!
//! Panics where a test should fail. Must never stop a process that it did not start.

use crate::{Etcd, Options, Tls};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long etcd may take to answer on a busy machine.
const START_WAIT: Duration = Duration::from_secs(30);

/// The members of one etcd. Its processes and data end with it.
pub struct Members {
    folder: tempfile::TempDir,
    members: Vec<Member>,
}

struct Member {
    child: Option<Child>,
    words: Vec<String>,
    url: String,
}

impl Drop for Members {
    fn drop(&mut self) {
        for index in 0..self.members.len() {
            self.kill(index);
        }
    }
}

/// Where ports of tests are looked for: below those that the kernel gives to whoever connects, so that nobody takes one while
/// its server is down for a moment.
const PORTS: std::ops::Range<u16> = 12_000..18_000;

/// A port of loopback that nobody has.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let room = PORTS.end - PORTS.start;
    // Tests of several processes run at a time; each begins somewhere else.
    let first = (std::process::id().wrapping_mul(97) % u32::from(room)) as u16;
    loop {
        let port = PORTS.start + (first + NEXT.fetch_add(1, Ordering::Relaxed) % room) % room;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Members {
    /// Starts so many, and waits until they answer.
    pub async fn start(count: usize) -> Members {
        let members = Members::spawn(count);
        members.answered().await;
        members
    }

    /// Starts one that speaks TLS only, by these files, and waits for nothing. It serves only clients whose certificates
    /// its authorities signed.
    pub fn start_with_tls(tls: &Tls) -> Members {
        let (certificate, key) = tls.own.clone().expect("a server has a certificate");
        let words =
            [("cert-file", certificate), ("key-file", key), ("trusted-ca-file", tls.authorities.clone())];
        let mut more: Vec<String> =
            words.iter().map(|(name, path)| format!("--{name}={}", path.display())).collect();
        more.push("--client-cert-auth".to_owned());
        Members::spawn_with(1, "https", &more)
    }

    async fn answered(&self) {
        let etcd = self.etcd("/t/");
        let until = Instant::now() + START_WAIT;
        while etcd.get("x").await.is_err() {
            assert!(Instant::now() < until, "etcd starts");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts so many, and waits for nothing.
    pub fn spawn(count: usize) -> Members {
        Members::spawn_with(count, "http", &[])
    }

    fn spawn_with(count: usize, scheme: &str, more: &[String]) -> Members {
        let folder = tempfile::tempdir().expect("a folder");
        let ports: Vec<(u16, u16)> = (0..count).map(|_| (free_port(), free_port())).collect();
        let all: Vec<String> = (ports.iter().enumerate())
            .map(|(index, (_, peer))| format!("m{index}=http://127.0.0.1:{peer}"))
            .collect();
        let member = |(index, (client, peer)): (usize, &(u16, u16))| {
            let (client, peer) =
                (format!("{scheme}://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
            let words = [
                ("name", format!("m{index}")),
                ("data-dir", folder.path().join(format!("m{index}")).display().to_string()),
                ("listen-client-urls", client.clone()),
                ("advertise-client-urls", client.clone()),
                ("listen-peer-urls", peer.clone()),
                ("initial-advertise-peer-urls", peer),
                ("initial-cluster", all.join(",")),
            ];
            let words = words.map(|(name, value)| format!("--{name}={value}"));
            let words = words.into_iter().chain(more.iter().cloned()).collect();
            Member { child: None, words, url: client }
        };
        let members = ports.iter().enumerate().map(member).collect();
        let mut members = Members { folder, members };
        for index in 0..count {
            members.run(index);
        }
        members
    }

    /// Starts a member that was killed.
    pub fn run(&mut self, index: usize) {
        let member = &mut self.members[index];
        let child = Command::new("etcd")
            .args(&member.words)
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd (Debian: etcd-server)");
        member.child = Some(child);
    }

    /// Kills a member.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.members[index].child.take() {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Where a member keeps its data.
    pub fn data(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("m{index}"))
    }

    /// Ends all members and starts them with nothing, at the same addresses.
    pub fn wipe(&mut self) {
        for index in 0..self.members.len() {
            self.kill(index);
            std::fs::remove_dir_all(self.data(index)).expect("its data");
        }
        for index in 0..self.members.len() {
            self.run(index);
        }
    }

    /// Where a member answers.
    pub fn url(&self, index: usize) -> &str {
        &self.members[index].url
    }

    /// How it is reached, without TLS and users.
    pub fn options(&self, prefix: &str) -> Options {
        Options {
            endpoints: self.members.iter().map(|member| member.url.clone()).collect(),
            prefix: prefix.to_owned(),
            tls: None,
            user: None,
        }
    }

    /// A way to the records below a prefix.
    pub fn etcd(&self, prefix: &str) -> Etcd {
        Etcd::new(self.options(prefix)).expect("no file is read")
    }
}
