//! `upgrade`: every host changes from one release to the next, and back, while guests write; then the level of the records is
//! raised, and the former release is refused. Where the new level has snapshots, the disk then gets one, for which the disk groups of
//! all hosts are converted to their present format under load, and is compressed; each host is killed and started again with that.
//!
//! The two are given by `--program` and `--next`: builds of two commits, or of one, the next with `--features server/next-level`,
//! which stands for a release with a later level. Where the next understands no later level than the former, nothing is raised.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::nbd;
use crate::report::Report;
use base::checksum::crc32c;
use base::units::MIB;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Raising the level is one small record: nothing is felt but what a busy machine does by itself.
const UNFELT_LIMIT_MS: f64 = 250.0;
/// How long a host is gone that is killed once its groups are converted.
const GONE: Duration = Duration::from_millis(1500);
/// The level from which on disks have snapshots (docs/formats/directory.md).
const SNAPSHOTS_LEVEL: u64 = 4;

/// Runs it: all hosts to the next release, and for every further round all back and on again; then the raise.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let (former, next) = (settings.program.clone(), settings.next.clone());
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("upgrade") })?;
    Ok(bench.run(|bench| {
        let rounds = bench.rounds("upgrade", 5);
        for round in 0..rounds {
            if round > 0 {
                change_all(bench, "go back", &former)?;
            }
            change_all(bench, "upgrade", &next)?;
        }
        if rounds == 0 {
            return Ok(());
        }
        raise(bench, &former, &next)?;
        let host = bench.cluster.names()[0].clone();
        let level = asked(bench, &host, &["cluster", "upgrade", "--dry-run"])?["level"].as_u64();
        if level < Some(SNAPSHOTS_LEVEL) { Ok(()) } else { convert(bench) }
    }))
}

/// Every host in its turn runs another release.
fn change_all(bench: &mut Bench, name: &str, program: &Path) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    for (index, host) in hosts.iter().enumerate() {
        let user = &hosts[(index + 1) % hosts.len()];
        change(bench, name, (host, user), program)?;
        if name == "upgrade" && index + 1 < hosts.len() {
            is_refused_to_raise(bench, host, &hosts[index + 1..])?;
        }
    }
    Ok(())
}

/// As the guide tells: maintenance, the other program in the place of the former, a restart, the end of the maintenance. The
/// host owns the disk before, which a guest at another one uses.
fn change(bench: &mut Bench, name: &str, (host, user): (&str, &str), program: &Path) -> Result<(), Failure> {
    let anchor = bench.attach_load(host)?;
    bench.cluster.wait_for_owner(DISK, host)?;
    let load = bench.attach_load(user)?;
    sleep(WARM_UP);
    anchor.may_break();
    let hosts = [host.to_owned()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        let mode = ["host", "maintenance", host, "--mode", "ensure-accessibility"];
        bench.cluster.apart()?.say(host, &mode)?;
        wait_for(&format!("host {host} is in maintenance"), || {
            let shown = maintenance_of(bench, host)?;
            Ok(shown.starts_with("in maintenance").then_some(()))
        })?;
        bench.cluster.stop(host)
    };
    bench.round(&fault, &[&load], strike, |bench| start(bench, host, program))?;
    bench.abandon(anchor);
    bench.stop(load)?;
    bench.read_back(host)
}

/// Starts a host with a program, and ends its maintenance once it serves.
fn start(bench: &mut Bench, host: &str, program: &Path) -> Result<(), Failure> {
    bench.cluster.apart()?.use_program(host, program);
    bench.cluster.start_host(host)?;
    bench.cluster.wait_until_served(host, DISK)?;
    bench.cluster.apart()?.say(host, &["host", "maintenance", host, "--end"]).map(drop)
}

fn asked(bench: &mut Bench, host: &str, words: &[&str]) -> Result<Value, Failure> {
    let told = bench.cluster.apart()?.say(host, &[&["--json"], words].concat())?;
    serde_json::from_str(&told).map_err(|error| Failure::Refused(format!("{}: {error}", words.join(" "))))
}

fn maintenance_of(bench: &mut Bench, name: &str) -> Result<String, Failure> {
    let hosts = asked(bench, name, &["host", "list"])?;
    let all = hosts.as_array().cloned().unwrap_or_default();
    let host = all.into_iter().find(|host| host["name"] == name);
    Ok(host.and_then(|host| host["maintenance"].as_str().map(str::to_owned)).unwrap_or_default())
}

/// While some hosts run the former release, nothing is raised, and they are named; as far as there is anything to raise.
fn is_refused_to_raise(bench: &mut Bench, host: &str, former: &[String]) -> Result<(), Failure> {
    if asked(bench, host, &["cluster", "upgrade", "--dry-run"])?["to"].is_null() {
        return Ok(());
    }
    let said = match bench.cluster.apart()?.say(host, &["cluster", "upgrade", "--yes"]) {
        Ok(said) => {
            return Err(Failure::Refused(format!(
                "raised although {} are behind: {said}",
                former.join(", ")
            )));
        }
        Err(refused) => refused.to_string(),
    };
    match former.iter().find(|name| !said.contains(&format!("host {name} last ran"))) {
        Some(name) => Err(Failure::Refused(format!("host {name} is in the way and is not named: {said}"))),
        None => Ok(()),
    }
}

/// The level is raised under load; each host is then refused with the former program, and comes back with the next.
fn raise(bench: &mut Bench, former: &Path, next: &Path) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    let before = asked(bench, &hosts[0], &["cluster", "upgrade", "--dry-run"])?;
    let Some(to) = before["to"].as_u64() else {
        bench.note("the next release understands no later level: nothing was raised".to_owned());
        return Ok(());
    };
    if bench.cluster.apart()?.say(&hosts[0], &["cluster", "upgrade"]).is_ok() {
        return Err(Failure::Refused("raised although nobody confirmed it".to_owned()));
    }
    let load = bench.attach_load(&hosts[1])?;
    sleep(WARM_UP);
    let fault = Fault { name: "raise the level", hosts: &[], limit_ms: Some(UNFELT_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        let done = asked(bench, &hosts[0], &["cluster", "upgrade", "--yes"])?;
        if done["is_raised"] != true || done["level"] != to {
            return Err(Failure::Refused(format!("it was not raised to {to}: {done}")));
        }
        // Hosts write their records anew.
        sleep(WARM_UP);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench.note(format!("the records were at level {} and are at level {to}", before["level"]));
    bench.stop(load)?;
    for (index, host) in hosts.iter().enumerate() {
        let user = &hosts[(index + 1) % hosts.len()];
        fall_back(bench, (host, user), (former, next), to)?;
    }
    Ok(())
}

/// A host is started with the former program, which refuses; then with the next.
fn fall_back(
    bench: &mut Bench,
    (host, user): (&str, &str),
    (former, next): (&Path, &Path),
    level: u64,
) -> Result<(), Failure> {
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    let hosts = [host.to_owned()];
    let fault = Fault { name: "former release", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut said = String::new();
    let strike = |bench: &mut Bench| {
        bench.cluster.stop(host)?;
        bench.cluster.apart()?.use_program(host, former);
        said = refusal(bench, host)?;
        match said.contains(&format!("at level {level}")) {
            true => Ok(()),
            false => Err(Failure::Refused(format!("it does not say which level it cannot read: {said}"))),
        }
    };
    bench.round(&fault, &[&load], strike, |bench| {
        bench.cluster.apart()?.use_program(host, next);
        bench.cluster.start_host(host)?;
        bench.cluster.wait_until_served(host, DISK)
    })?;
    bench.note(format!(
        "refused: {}",
        said.lines().find(|line| line.contains("at level")).unwrap_or_default()
    ));
    bench.stop(load)?;
    bench.read_back(host)
}

/// What a host says that is started and has to end by itself.
fn refusal(bench: &mut Bench, host: &str) -> Result<String, Failure> {
    let path: PathBuf = Path::new(&bench.report.folder).join(host).join("log");
    let read =
        || std::fs::read_to_string(&path).map_err(Failure::machine(format!("read {}", path.display())));
    let before = read()?.len();
    bench.cluster.apart()?.start_host(host)?;
    wait_for(&format!("host {host} ends by itself"), || {
        let said = read()?.split_off(before);
        match said.contains(" disks: nbd at") {
            true => Err(Failure::Refused(format!("host {host} serves with the former release: {said}"))),
            false => Ok((!bench.cluster.runs(host)).then_some(())),
        }
    })?;
    Ok(read()?.split_off(before))
}

/// The first snapshot of the disk, for which disk groups of the former format are converted, and compression, both under load; then every host
/// is killed and opens what that made of its devices.
fn convert(bench: &mut Bench) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    let load = bench.attach_load(&hosts[1])?;
    sleep(WARM_UP);
    let fault = Fault { name: "first snapshot", hosts: &[], limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut took = Duration::ZERO;
    let strike = |bench: &mut Bench| {
        took = snapshot(bench, &hosts[0], "plain")?;
        // What is destaged now gets maps.
        sleep(4 * WARM_UP);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench
        .note(format!("groups were converted and the snapshot was taken within {:.1} s", took.as_secs_f64()));
    let fault = Fault { name: "compress", hosts: &[], limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        let set = ["disk", "set", DISK, "compression=lz4"];
        bench.cluster.apart()?.say(&hosts[0], &set)?;
        sleep(8 * WARM_UP);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| {
        snapshot(bench, &hosts[0], "packed")?;
        sleep(4 * WARM_UP);
        Ok(())
    })?;
    bench.stop(load)?;
    let before = [read_snapshot(bench, &hosts[0], "plain")?, read_snapshot(bench, &hosts[0], "packed")?];
    for (index, host) in hosts.iter().enumerate() {
        open_converted(bench, (host, &hosts[(index + 1) % hosts.len()]), &before)?;
    }
    Ok(())
}

/// A host with converted groups is killed under load and started again; both snapshots read there as before.
fn open_converted(
    bench: &mut Bench,
    (host, user): (&str, &str),
    before: &[Vec<u32>; 2],
) -> Result<(), Failure> {
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    let hosts = [host.to_owned()];
    let fault = Fault { name: "kill, converted", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.kill(&hosts)?;
        sleep(GONE);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| {
        bench.cluster.start_host(host)?;
        bench.cluster.wait_until_served(host, DISK)
    })?;
    bench.stop(load)?;
    for (name, before) in ["plain", "packed"].into_iter().zip(before) {
        let after = read_snapshot(bench, host, name)?;
        if let Some(block) = before.iter().zip(&after).position(|(before, after)| before != after) {
            let what = format!("snapshot {name} reads otherwise at {host} from its block {block} on");
            return Err(Failure::Refused(what));
        }
    }
    bench.read_back(host)
}

/// Takes a snapshot: groups that are not converted yet refuse it, and a busy machine may need more than one attempt. Gives how long it took.
fn snapshot(bench: &mut Bench, host: &str, name: &str) -> Result<Duration, Failure> {
    let began = Instant::now();
    wait_for(&format!("snapshot {name} is taken"), || {
        let taken = bench.cluster.apart()?.say(host, &["disk", "snapshot", "create", DISK, name]);
        Ok(taken.is_ok().then_some(()))
    })?;
    Ok(began.elapsed())
}

/// The checksum of each MiB of a snapshot, as a client at a host reads it.
fn read_snapshot(bench: &Bench, host: &str, name: &str) -> Result<Vec<u32>, Failure> {
    let what = || format!("read snapshot {name} at {host}");
    let export = format!("{DISK}@{name}");
    let socket = bench.cluster.socket(host);
    let (mut stream, size) = nbd::attach(&socket, &export).map_err(Failure::machine(what()))?;
    let mut data = vec![0; MIB as usize];
    let read = |part: u64| {
        nbd::read(&mut stream, part * MIB, &mut data).map_err(Failure::machine(what()))?;
        Ok(crc32c(&data))
    };
    (0..size / MIB).map(read).collect()
}
