//! `flush`: the flushes of a host's capacity devices take five seconds each while devices come to it and go from it. Those are flushes of
//! superblocks: the host goes on meanwhile, and so do the copies on it.

use crate::bench::{Bench, DISK, Fault, Ground, KILL_LIMIT_MS, Plan, Settings, WARM_UP};
use crate::device::Condition;
use crate::failure::Failure;
use crate::load::Shape;
use crate::report::Report;
use serde::Deserialize;
use std::thread::sleep;
use std::time::{Duration, Instant};

const FLUSH: Duration = Duration::from_secs(5);
const NAME: &str = "devices come and go, flushes take 5 s";
/// I/Os of the guest.
const PER_SECOND: u32 = 100;
/// Which of a host's devices it does not use.
const BESIDE: usize = 3;

#[derive(Debug, Deserialize)]
struct Listed {
    path: String,
    group: String,
}

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Pair, ..Plan::usual("flush") })?;
    Ok(bench.run(|bench| (0..bench.rounds(NAME, 5)).try_for_each(|round| once(bench, round))))
}

fn once(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[round % 2].clone(), holders[(round + 1) % 2].clone());
    // Far less than fills the log while the devices below are flushed: nothing but the flushes may be felt.
    let load = bench.attach(&user, &Shape { per_second: Some(PER_SECOND), ..Shape::random(4) })?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault = Fault { name: NAME, hosts: &hosts, limit_ms: Some(KILL_LIMIT_MS) };
    let mut note = String::new();
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[1..]
            .iter()
            .for_each(|one| one.set(Condition::Flushing(FLUSH)));
        note = come_and_go(bench, &victim)?;
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[1..].iter().for_each(|one| one.set(Condition::Well));
        Ok(())
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.note(note);
    bench.stop(load)?;
    bench.cluster.apart()?.devices(&victim)?[BESIDE].replace()?;
    bench.read_back(&victim)
}

/// Adds a device and removes it again; how long each took, and whether every copy counted all the time.
fn come_and_go(bench: &mut Bench, host: &str) -> Result<String, Failure> {
    let new = bench.cluster.apart()?.device_paths(host)[BESIDE].clone();
    let listed: Vec<Listed> = bench.cluster.api(host).get("/api/v1/devices")?;
    let group = listed.first().map(|one| one.group.clone());
    let group = group.ok_or_else(|| Failure::Refused(format!("host {host} has no devices")))?;
    let began = Instant::now();
    bench.cluster.apart()?.say(host, &["device", "add", &new, "--group", &group])?;
    let added = began.elapsed();
    let is_listed = |listed: &[Listed]| listed.iter().any(|one| one.path == new);
    if !is_listed(&bench.cluster.api(host).get::<Vec<Listed>>("/api/v1/devices")?) {
        return Err(Failure::Refused(format!("{new} was added and is not listed")));
    }
    bench.cluster.apart()?.say(host, &["device", "remove", &new])?;
    let removed = began.elapsed().saturating_sub(added);
    if !bench.cluster.disk(DISK)?.is_whole() {
        return Err(Failure::Refused("a copy was taken out while devices came and went".to_owned()));
    }
    if added < FLUSH {
        return Err(Failure::Refused(format!(
            "a device was added after {} ms: no flush was slow",
            added.as_millis()
        )));
    }
    Ok(format!(
        "host {host}: added in {:.1} s, removed in {:.1} s",
        added.as_secs_f64(),
        removed.as_secs_f64()
    ))
}
