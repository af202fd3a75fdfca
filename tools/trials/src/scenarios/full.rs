//! `full`: devices are filled to the last byte, and then the file systems of the hosts' data directories. What needs no new
//! room goes on, what does is refused quickly and for that reason, people are told why, and all returns with the room.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::load::{Full, Load, Pattern, Refused, Shape};
use crate::nbd::{self, Command};
use crate::report::{Report, Spread};
use crate::stamp::BLOCK;
use base::units::{GIB, MIB};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The disk is this large, the capacity device of each host half as large.
const AREA_BYTES: u64 = GIB;
/// What is written before, and overwritten and read all the time.
const WORK: Range<u64> = 0..64 * MIB / BLOCK as u64;
/// Where the disk is filled.
const REST: Range<u64> = WORK.end..AREA_BYTES / BLOCK as u64;
/// Fewer bytes than this on a device of 512 MiB are too few to call it full.
const FILLED_BYTES_MIN: u64 = 384 * MIB;
/// A write that finds no room is told so within this.
const REFUSAL_LIMIT_MS: f64 = 2000.0;
/// How long it is tried to write what has no room.
const FULL: Duration = Duration::from_secs(6);
/// What is written once there is room again, in blocks, and what is given back for it.
const MORE: u64 = 16 * MIB / BLOCK as u64;
const GIVEN_BACK: u64 = 4 * MORE;
/// Another disk, whose room is wanted.
const OTHER: &str = "other";
const OTHER_BYTES: u64 = 96 * MIB;
/// The longest trim.
const TRIM_BYTES: u64 = 32 * MIB;
/// What a host keeps its copy of the directory in.
const COPY: &str = "directory-copy.redb";
/// What it says when it keeps none.
const NO_COPY: &str = "no copy of the directory is kept";
/// How long data directories stay full.
const ROOMLESS: Duration = Duration::from_secs(5);
/// What a device is told to be by whoever lists disks.
const NO_ROOM: &str = "no room is left on";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { ground: Ground::Small, area_bytes: AREA_BYTES, ..Plan::usual("full") };
    let bench = Bench::start(settings, plan)?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("devices full, trimmed", 5)).try_for_each(|_| devices(bench, Way::Trim))?;
        (0..bench.rounds("devices full, disk deleted", 5)).try_for_each(|_| devices(bench, Way::Delete))?;
        (0..bench.rounds("data directories full", 5)).try_for_each(|_| directories(bench))
    }))
}

/// Where room comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A part of the disk is given back.
    Trim,
    /// Another disk is deleted.
    Delete,
}

/// What was seen while devices were full.
#[derive(Default)]
struct Seen {
    filled_bytes: u64,
    fill_seconds: f64,
    refused: Refused,
    said: Vec<String>,
    room_seconds: f64,
}

fn bytes_of(blocks: &Range<u64>) -> u64 {
    (blocks.end - blocks.start) * BLOCK as u64
}

fn fill(blocks: Range<u64>, full: Full) -> Shape {
    Shape { within: Some(blocks), full, ..Shape::ordered(Pattern::Fill) }
}

/// Attaches beside the clients that count, for what they do not do.
fn raw(bench: &Bench, host: &str, disk: &str) -> Result<UnixStream, Failure> {
    let attached = nbd::attach(&bench.cluster.socket(host), disk);
    attached.map(|(stream, _)| stream).map_err(Failure::machine(format!("attach to disk {disk} at {host}")))
}

/// Gives blocks back that nobody reads or writes meanwhile.
fn trim(bench: &Bench, host: &str, blocks: Range<u64>) -> Result<(), Failure> {
    let mut stream = raw(bench, host, DISK)?;
    let (mut at, end) = (blocks.start * BLOCK as u64, blocks.end * BLOCK as u64);
    while at < end {
        let length = TRIM_BYTES.min(end - at);
        let error = nbd::call(&mut stream, Command::Trim, at, length as u32, &[]);
        match error.map_err(Failure::machine("trim"))? {
            0 => at += length,
            error => return Err(Failure::Client(format!("a trim was answered with error {error}"))),
        }
    }
    bench.ledger.trimmed(blocks);
    Ok(())
}

/// A round: the disk is filled beside clients that overwrite and read, and emptied again.
fn devices(bench: &mut Bench, way: Way) -> Result<(), Failure> {
    if way == Way::Delete {
        stay(bench)?;
    }
    let holders = bench.cluster.disk(DISK)?.holders();
    let user = holders[0].clone();
    let other = if way == Way::Delete { Some(make_other(bench, &user)?) } else { None };
    bench.attach(&user, &fill(WORK, Full::Wrong))?.finish()?;
    let depth = bench.settings.depth;
    let load = bench.attach(&user, &Shape { within: Some(WORK), ..Shape::random(depth) })?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let name = match way {
        Way::Trim => "devices full, trimmed",
        Way::Delete => "devices full, disk deleted",
    };
    let fault = Fault { name, hosts: &holders, limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut seen = Seen::default();
    let strike = |bench: &mut Bench| {
        seen = until_full(bench, &user)?;
        while_full(bench, &user, &load, &mut seen)?;
        make_room(bench, &user, other.as_deref(), &mut seen)?;
        // What was written up to here is held to what it must be before it goes.
        read_through(bench, &user)
    };
    let mend = |bench: &mut Bench| trim(bench, &user, REST);
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    judge(bench, &seen);
    holders.iter().try_for_each(|host| bench.read_back(host))
}

/// Every block is read beside the clients that go on, and so verified.
fn read_through(bench: &mut Bench, user: &str) -> Result<(), Failure> {
    bench.attach(user, &Shape::ordered(Pattern::ReadBack))?.finish().map(drop)
}

/// Copies move to roomier hosts no more: else the deletion of another disk gives room to one copy of two, and the other has none
/// still.
fn stay(bench: &mut Bench) -> Result<(), Failure> {
    let host = bench.cluster.names()[0].clone();
    bench.cluster.apart()?.say(&host, &["cluster", "set", "balance", "off"])?;
    wait_for("no copy moves", || Ok((!bench.cluster.has_resyncs(&host)?).then_some(())))
}

/// Another disk with data, its copies on the same hosts; gives its name.
fn make_other(bench: &mut Bench, user: &str) -> Result<String, Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    // Others take nothing new meanwhile.
    let others: Vec<String> =
        bench.cluster.names().iter().filter(|host| !holders.contains(host)).cloned().collect();
    for host in &others {
        bench.cluster.apart()?.say(user, &["host", "maintenance", host, "--mode", "none"])?;
    }
    let name = OTHER.to_owned();
    bench.cluster.create_disk(&name, OTHER_BYTES, "default,stripes=1")?;
    for host in &others {
        bench.cluster.apart()?.say(user, &["host", "maintenance", host, "--end"])?;
    }
    let mut stream = raw(bench, user, &name)?;
    for at in (0..OTHER_BYTES).step_by(MIB as usize) {
        let error = nbd::call(&mut stream, Command::Write, at, MIB as u32, &vec![1; MIB as usize]);
        let error = error.map_err(Failure::machine(format!("fill disk {name}")))?;
        if error != 0 {
            return Err(Failure::Client(format!("a write of disk {name} was answered with error {error}")));
        }
    }
    Ok(name)
}

/// Writes where nothing is, until there is no room.
fn until_full(bench: &mut Bench, user: &str) -> Result<Seen, Failure> {
    let began = Instant::now();
    let done = bench.attach(user, &fill(REST, Full::Ends))?.until_full()?;
    let first = done.refused.first.ok_or_else(|| {
        Failure::Refused(format!("{} found room on devices that are smaller", bytes_of(&REST)))
    })?;
    Ok(Seen {
        filled_bytes: bytes_of(&(WORK.start..first)),
        fill_seconds: began.elapsed().as_secs_f64(),
        refused: bench.count(done),
        ..Seen::default()
    })
}

/// What has no room is tried again and again, while people are told.
fn while_full(bench: &mut Bench, user: &str, load: &Load, seen: &mut Seen) -> Result<(), Failure> {
    let first = seen.refused.first.expect("a write was refused");
    let pattern = Pattern::Random { read_percent: 0, blocks_max: 16 };
    let shape = Shape {
        within: Some(first..REST.end),
        full: Full::Counts,
        per_second: Some(200),
        ..Shape::of(pattern, 4)
    };
    let probe = bench.attach(user, &shape)?;
    let until = Instant::now() + FULL;
    let told = wait_for("health and the disk's line say that there is no room", || {
        let trouble = bench.cluster.disk(DISK)?.trouble.filter(|line| line.contains(NO_ROOM));
        let low = bench.cluster.findings(user, "space.low")?;
        let low = low.into_iter().find(|one| one.starts_with("critical"));
        Ok(trouble.zip(low))
    });
    sleep(until.saturating_duration_since(Instant::now()));
    let done = probe.stop()?;
    load.check()?;
    load.catch_up()?;
    seen.refused.add(bench.count(done));
    let (line, finding) = told?;
    seen.said.extend([line, finding]);
    Ok(())
}

/// Gives room back, by deleting another disk or trimming this one, and writes what had none.
fn make_room(bench: &mut Bench, user: &str, other: Option<&str>, seen: &mut Seen) -> Result<(), Failure> {
    let first = seen.refused.first.expect("a write was refused");
    match other {
        None => trim(bench, user, REST.start..REST.start + GIVEN_BACK)?,
        Some(other) => bench.cluster.delete_disk(other)?,
    }
    let began = Instant::now();
    wait_for("what had no room finds some", || {
        let more = fill(first..(first + MORE).min(REST.end), Full::Ends);
        let done = bench.attach(user, &more)?.until_full()?;
        Ok(bench.count(done).first.is_none().then_some(()))
    })?;
    seen.room_seconds = began.elapsed().as_secs_f64();
    Ok(())
}

/// The rules of a round, and its note.
fn judge(bench: &mut Bench, seen: &Seen) {
    let refusals = seen.refused.latencies_us.iter().map(|us| f64::from(*us) / 1e3).collect();
    let spread = Spread::of(refusals);
    let filled = seen.filled_bytes / MIB;
    let round = bench.report.rounds.last_mut().expect("a round was just run");
    round.note = format!(
        "{filled} MiB filled in {:.0} s, {} writes refused within {:.1} ms (99 %: {:.1}), room again after {:.1} s; {}",
        seen.fill_seconds,
        seen.refused.latencies_us.len(),
        spread.max_ms,
        spread.p99_ms,
        seen.room_seconds,
        seen.said.join(" / ")
    );
    if seen.filled_bytes < FILLED_BYTES_MIN {
        round.broken.push(format!("full after {filled} MiB"));
    }
    if spread.max_ms > REFUSAL_LIMIT_MS {
        round.broken.push(format!(
            "a write without room was answered after {:.0} ms, over {REFUSAL_LIMIT_MS:.0} ms",
            spread.max_ms
        ));
    }
    eprintln!("trials: {}", round.note);
}

/// The data directories of all hosts are full; one host is started anew so.
fn directories(bench: &mut Bench) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[0].clone(), holders[1].clone());
    let hosts = bench.cluster.names().to_vec();
    let depth = bench.settings.depth;
    let load = bench.attach(&user, &Shape { within: Some(WORK), ..Shape::random(depth) })?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let fault = Fault { name: "data directories full", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut said = String::new();
    let strike = |bench: &mut Bench| {
        for host in &hosts {
            bench.cluster.apart()?.room(host)?.fill()?;
        }
        said = wait_for_warnings(bench, &hosts)?;
        wait_for_findings(bench, &user, hosts.len())?;
        sleep(ROOMLESS);
        let gone = hosts.iter().find(|host| !bench.cluster.runs(host));
        if let Some(host) = gone {
            return Err(Failure::Refused(format!("the process of host {host} has ended")));
        }
        bench.cluster.kill(std::slice::from_ref(&victim))?;
        bench.cluster.start_host(&victim)?;
        bench.cluster.wait_until_served(&victim, DISK)?;
        said += &without_copy(bench, &victim)?;
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        for host in &hosts {
            bench.cluster.apart()?.room(host)?.free()?;
        }
        bench.cluster.wait_for_no_warnings(&hosts)?;
        wait_for_findings(bench, &user, 0)
    };
    let began = Instant::now();
    bench.round(&fault, &[&load], strike, mend)?;
    bench.note(format!(
        "all was as before {:.0} s after the beginning; host {user} said: {said}",
        began.elapsed().as_secs_f64()
    ));
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// The same with a host that has no copy of the directory yet: it starts with the room that was kept for that, and has one then
/// or says that it has none; gives what it says.
fn without_copy(bench: &mut Bench, host: &str) -> Result<String, Failure> {
    bench.cluster.stop(host)?;
    let room = bench.cluster.apart()?.room(host)?;
    room.remove(COPY)?;
    room.fill()?;
    bench.cluster.start_host(host)?;
    bench.cluster.wait_until_served(host, DISK)?;
    wait_for(&format!("host {host} has a copy of the directory or says that it has none"), || {
        let told = bench.cluster.warnings(host)?;
        let has_none = told.iter().any(|one| one.contains(NO_COPY));
        let has_one = bench.cluster.apart()?.room(host)?.holds(COPY);
        let kept = if has_one { "a copy of the directory is kept" } else { "none is kept" };
        Ok((has_none || has_one).then(|| format!(" / {kept} / {}", told.join(" / "))))
    })
}

/// Changes records through each host until it says that it can write nothing down; gives the words of the last. The last page
/// of a file may still take something.
fn wait_for_warnings(bench: &mut Bench, hosts: &[String]) -> Result<String, Failure> {
    let mut said = String::new();
    for host in hosts {
        said = wait_for(&format!("host {host} says what it cannot write"), || {
            let apart = bench.cluster.apart()?;
            apart.say(host, &["policy", "create", OTHER, "single"])?;
            apart.say(host, &["policy", "delete", OTHER])?;
            let warnings = bench.cluster.warnings(host)?;
            Ok(warnings.into_iter().find(|one| one.contains("events are kept in memory alone")))
        })?;
    }
    Ok(said)
}

/// One host tells of the data directories of so many.
fn wait_for_findings(bench: &mut Bench, host: &str, count: usize) -> Result<(), Failure> {
    wait_for(&format!("health at host {host} names {count} data directories"), || {
        Ok((bench.cluster.findings(host, "host.data_dir")?.len() == count).then_some(()))
    })
}

impl crate::cluster::Cluster {
    /// Waits until no host has anything to say any more.
    fn wait_for_no_warnings(&self, hosts: &[String]) -> Result<(), Failure> {
        hosts.iter().try_for_each(|host| {
            wait_for(&format!("host {host} writes to its data directory again"), || {
                Ok(self.warnings(host)?.is_empty().then_some(()))
            })
        })
    }
}
