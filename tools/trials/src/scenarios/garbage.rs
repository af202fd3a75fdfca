//! `garbage`: whatever bytes come to the ports of a host, guests go on and no process ends.
//!
//! Random bytes, and such that begin as the protocols do; in pieces, cut off, many connections at a time. What needs a
//! certificate is never reached from here: those decoders have fuzzers of their own (`fuzz/`).

use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use base::Random;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The ports of a host, by what listens there.
const PORTS: [(&str, u16); 3] = [("peers", 7400), ("API", 7443), ("NBD", 10809)];
/// How long each gets garbage if nothing else was asked for.
const SECONDS: u64 = 300;
/// What guests may feel of it: it costs processor time.
const LIMIT_MS: f64 = 2000.0;
/// How long one connection may take.
const CONNECTION: Duration = Duration::from_secs(7);
/// Connections at a time.
const THREADS: usize = 16;
/// The option of this program that sends garbage from within a machine of a trial.
pub const OPTION: &str = "--send-garbage";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("garbage") })?;
    Ok(bench.run(|bench| {
        for (what, port) in PORTS {
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
        round.note = said;
        if !is_same {
            round.broken.push(format!("the process of host {victim} has ended"));
        }
    }
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// What this program does when it is started with [`OPTION`]: sends garbage to an address for so many seconds.
///
/// # Errors
/// When it does not understand what it is told, or nobody listens there at all.
pub fn send(words: &[String]) -> Result<(), Failure> {
    let usage = || Failure::Usage(format!("{OPTION} ADDRESS SECONDS SEED"));
    let [to, seconds, seed] = words else { return Err(usage()) };
    let to: SocketAddr = to.parse().map_err(|_| usage())?;
    let seconds: u64 = seconds.parse().map_err(|_| usage())?;
    let seed: u64 = seed.parse().map_err(|_| usage())?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| std::thread::spawn(move || send_until(to, until, seed.wrapping_add(thread as u64))))
        .collect();
    let counts = threads.into_iter().map(|thread| thread.join().unwrap_or_default());
    let (connections, bytes) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if connections == 0 {
        return Err(Failure::Refused(format!("nobody listens at {to}")));
    }
    println!("{connections} connections, {} MiB", bytes >> 20);
    Ok(())
}

/// Gives connections made and bytes sent.
fn send_until(to: SocketAddr, until: Instant, seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let (mut connections, mut sent) = (0, 0);
    while Instant::now() < until {
        let Ok(mut stream) = TcpStream::connect_timeout(&to, CONNECTION) else { continue };
        connections += 1;
        // A peer that has closed its side lets neither in.
        let _ = stream.set_write_timeout(Some(CONNECTION));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(1 + random.below(300))));
        for _ in 0..1 + random.below(4) {
            let bytes = garbage(&mut random);
            if stream.write_all(&bytes).is_err() {
                break;
            }
            sent += bytes.len() as u64;
            let _ = stream.read(&mut [0; 4096]);
        }
    }
    (connections, sent)
}

/// Bytes that begin as something known, or as nothing.
fn garbage(random: &mut Random) -> Vec<u8> {
    let heads: [&[u8]; 8] = [
        b"",
        // TLS: a handshake, an alert, data.
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0x15, 3, 3, 0, 2, 2, 40],
        &[0x17, 3, 3, 0x40, 0],
        b"DRYSTONE",
        b"GET /api/v1/host HTTP/1.1\r\nhost: localhost\r\n\r\n",
        // NBD: a client's flags, and an option that asks for much.
        &[0, 0, 0, 3, 0x49, 0x48, 0x41, 0x56, 0x45, 0x4f, 0x50, 0x54, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 3, 0x49, 0x48, 0x41, 0x56, 0x45, 0x4f, 0x50, 0x54, 0, 0, 0, 5, 0, 0, 0, 0],
    ];
    let mut bytes = heads[random.below(heads.len() as u64) as usize].to_vec();
    let rest = 1 << random.below(17);
    bytes.extend((0..random.below(rest)).map(|_| random.bits() as u8));
    for _ in 0..random.below(3) {
        if let Some(index) = (!bytes.is_empty()).then(|| random.below(bytes.len() as u64) as usize) {
            bytes[index] ^= 1 << random.below(8);
        }
    }
    bytes
}
