//! `garbage`: whatever bytes come to the ports of a host, guests go on and no process ends.
//!
//! Conversations as the protocols have them, spoilt (`garbage`), in pieces, cut off, many connections at a time, bare and within TLS:
//! at the API without a certificate, at the others with one that nobody signed. What a certificate of the cluster is needed for is
//! never reached from here: those decoders have fuzzers of their own (`fuzz/`).

use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::garbage::Protocol;
use crate::report::Report;
use base::Random;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The ports of a host, by what listens there.
const PORTS: [(&str, u16, Protocol); 3] =
    [("peers", 7400, Protocol::Peers), ("API", 7443, Protocol::Http), ("NBD", 10809, Protocol::Nbd)];
/// How long each gets garbage if nothing else was asked for.
const SECONDS: u64 = 300;
/// What guests may feel of it: it costs processor time.
const LIMIT_MS: f64 = 2000.0;
/// How long one connection may take.
const CONNECTION: Duration = Duration::from_secs(7);
/// Connections at a time that are bare, and that are within TLS, which `openssl` makes: a process each.
const THREADS: usize = 14;
const TLS_THREADS: usize = 2;
/// The largest pipe, which takes the longest of what is said on a connection.
const PIPE_BYTES: libc::c_int = 1 << 20;
/// The option of this program that sends garbage from within a machine of a trial.
pub const OPTION: &str = "--send-garbage";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("garbage") })?;
    Ok(bench.run(|bench| {
        for (what, port, _) in PORTS {
            for _ in 0..bench.rounds(what, 1) {
                once(bench, what, port)?;
            }
        }
        Ok(())
    }))
}

fn once(bench: &mut Bench, what: &str, port: u16) -> Result<(), Failure> {
    let holders = bench.disk.holders();
    let (user, victim) = (holders[0].clone(), holders[1].clone());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let seconds = bench.settings.seconds.unwrap_or(SECONDS);
    let seed = bench.random.bits();
    let own = std::env::current_exe().map_err(Failure::machine("find this program"))?;
    let before = bench.cluster.apart()?.process(&victim);
    let name = format!("garbage: {what}");
    let hosts = [victim.clone()];
    let fault = Fault { name: &name, hosts: &hosts, limit_ms: Some(LIMIT_MS) };
    let mut said = String::new();
    let strike = |bench: &mut Bench| {
        let network = &bench.cluster.apart()?.network;
        let to = format!("{}:{port}", network.address(&victim));
        let mut command: Command = network.command(&user, &own);
        command.args([OPTION, &to, &seconds.to_string(), &seed.to_string()]).stdin(Stdio::null());
        let done = command.output().map_err(Failure::machine("send garbage"))?;
        said = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        match done.status.success() {
            true => Ok(()),
            false => Err(Failure::Refused(format!(
                "garbage was not sent: {}",
                String::from_utf8_lossy(&done.stderr)
            ))),
        }
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench.cluster.wait_until_reachable()?;
    let is_same = bench.cluster.apart()?.process(&victim) == before && bench.cluster.runs(&victim);
    if let Some(round) = bench.report.rounds.last_mut() {
        round.note = format!("{said}, seed {seed}");
        if !is_same {
            round.broken.push(format!("the process of host {victim} has ended"));
        }
    }
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// What one thread did.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    connections: u64,
    bytes: u64,
}

impl std::ops::Add for Sent {
    type Output = Sent;

    fn add(self, other: Sent) -> Sent {
        Sent { connections: self.connections + other.connections, bytes: self.bytes + other.bytes }
    }
}

/// What this program does when it is started with [`OPTION`]: sends garbage to an address for so many seconds.
///
/// # Errors
/// When it does not understand what it is told, nobody listens there at all, or there is no `openssl`.
pub fn send(words: &[String]) -> Result<(), Failure> {
    let usage = || Failure::Usage(format!("{OPTION} ADDRESS SECONDS SEED"));
    let [to, seconds, seed] = words else { return Err(usage()) };
    let to: SocketAddr = to.parse().map_err(|_| usage())?;
    let seconds: u64 = seconds.parse().map_err(|_| usage())?;
    let seed: u64 = seed.parse().map_err(|_| usage())?;
    let spoken = PORTS.iter().find(|(_, port, _)| *port == to.port());
    let spoken = spoken.map_or(Protocol::Chance, |(_, _, protocol)| *protocol);
    let folder = make_certificate()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let start = |thread: usize| {
        let random = Random::new(seed.wrapping_add(thread as u64));
        let folder = folder.clone();
        std::thread::spawn(move || match thread < THREADS {
            true => send_bare(to, until, random, spoken),
            false => send_within_tls(to, until, random, spoken, &folder),
        })
    };
    let threads: Vec<_> = (0..THREADS + TLS_THREADS).map(start).collect();
    let mut done = threads.into_iter().map(|thread| thread.join().expect("senders do not panic"));
    let bare = done.by_ref().take(THREADS).fold(Sent::default(), |sum, one| sum + one);
    let within = done.fold(Sent::default(), |sum, one| sum + one);
    let _ = std::fs::remove_dir_all(&folder); // What stays is a key that nobody believes.
    if bare.connections == 0 {
        return Err(Failure::Refused(format!("nobody listens at {to}")));
    }
    println!(
        "{} connections with {} MiB, {} more within TLS with {} MiB",
        bare.connections,
        bare.bytes >> 20,
        within.connections,
        within.bytes >> 20
    );
    Ok(())
}

/// A certificate that nobody signed but itself, with the names that hosts have; gives the folder of it.
fn make_certificate() -> Result<PathBuf, Failure> {
    let folder = std::env::temp_dir().join(format!("drystone-garbage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Failure::machine("make a folder for a certificate"))?;
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "1", "-subj", "/CN=a", "-addext"]);
    command.arg("subjectAltName=URI:drystone://1/hosts/1?name=a,DNS:host.drystone.internal");
    command.arg("-keyout").arg(folder.join("key")).arg("-out").arg(folder.join("certificate"));
    let done = command.stdin(Stdio::null()).output().map_err(Failure::machine("run openssl"))?;
    match done.status.success() {
        true => Ok(folder),
        false => Err(Failure::Refused(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// What is said on one connection: most of the time what is spoken there.
fn words(random: &mut Random, spoken: Protocol) -> Vec<Vec<u8>> {
    let other = Protocol::ALL[random.below(Protocol::ALL.len() as u64) as usize];
    let protocol = if random.chance(2, 3) { spoken } else { other };
    protocol.garbage(random)
}

fn send_bare(to: SocketAddr, until: Instant, mut random: Random, spoken: Protocol) -> Sent {
    let mut sent = Sent::default();
    while Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        let patience = CONNECTION.min(left);
        let Ok(mut stream) = TcpStream::connect_timeout(&to, patience) else { continue };
        sent.connections += 1;
        // A peer that has closed its side lets neither in.
        let _ = stream.set_write_timeout(Some(patience));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(1 + random.below(300))));
        let is_patient = random.chance(1, 2);
        for message in words(&mut random, spoken) {
            // In one piece, or in some.
            let piece = if random.chance(1, 4) { 1 + random.below(64) as usize } else { message.len() };
            let pieces = message.chunks(piece.max(message.len() / 64));
            if pieces.into_iter().any(|bytes| stream.write_all(bytes).is_err()) || Instant::now() >= until {
                break;
            }
            sent.bytes += message.len() as u64;
            if is_patient {
                let _ = stream.read(&mut [0; 4096]);
            }
        }
    }
    sent
}

/// The same through the TLS of `openssl s_client`, which does not look at who answers.
fn send_within_tls(
    to: SocketAddr,
    until: Instant,
    mut random: Random,
    spoken: Protocol,
    folder: &Path,
) -> Sent {
    let mut sent = Sent::default();
    while Instant::now() < until {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-connect", &to.to_string()]);
        // The API lets people in who show nothing, as far as what they say is looked at.
        if spoken != Protocol::Http || random.chance(1, 4) {
            command.arg("-cert").arg(folder.join("certificate")).arg("-key").arg(folder.join("key"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { continue };
        sent.connections += 1;
        let mut input = child.stdin.take().expect("it is a pipe");
        // All of it has room in the pipe, so that nobody waits for one that takes nothing.
        // SAFETY: the descriptor is open; the call takes no memory of ours.
        unsafe { libc::fcntl(input.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
        for message in words(&mut random, spoken) {
            if input.write_all(&message).is_err() {
                break;
            }
            sent.bytes += message.len() as u64;
        }
        drop(input);
        end_soon(&mut child, Duration::from_millis(100 + random.below(400)));
    }
    sent
}

/// Lets a process end by itself, for a while.
fn end_soon(child: &mut Child, patience: Duration) {
    let until = Instant::now() + patience;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    // Both fail only when it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}
