//! `slow`: a device of a host becomes slow, or hangs, for good while guests write. It is found by its work for a request, emptied while it goes on
//! serving, and taken out. And no device is found where nothing is wrong but the load.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings};
use crate::device::Condition;
use crate::failure::Failure;
use crate::load::Shape;
use crate::report::Report;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What slow is: twice the bound of docs/design/0019, as a virtual device works on four calls at a time.
const SLOW: Duration = Duration::from_millis(400);
/// A device is found after four minutes; then what stands on it is copied.
const PATIENCE: Duration = Duration::from_secs(8 * 60);
/// How long a load is nothing but a load.
const BUSY: Duration = Duration::from_secs(6 * 60);
/// I/Os under way of a client that is nothing but busy.
const BUSY_DEPTH: usize = 128;
const POLL: Duration = Duration::from_secs(1);

/// Which device of a host, as in `Apart::devices`, what is wrong with it, and what its round is called.
const DEVICES: [(usize, Condition, &str); 3] = [
    (1, Condition::Slow(SLOW), "capacity device becomes slow"),
    (0, Condition::Slow(SLOW), "log device becomes slow"),
    (0, Condition::Hung, "log device hangs for good"),
];
const BUSY_NAME: &str = "devices are busy";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Virtual, ..Plan::usual("slow") })?;
    Ok(bench.run(|bench| {
        for (which, ill, name) in DEVICES {
            (0..bench.rounds(name, 2)).try_for_each(|round| once(bench, round, (which, ill), name))?;
        }
        (0..bench.rounds(BUSY_NAME, 1)).try_for_each(|_| busy(bench))
    }))
}

/// Why a capacity device of a host is being emptied, if it is.
fn leaving(bench: &mut Bench, host: &str) -> Result<Option<String>, Failure> {
    let told = bench.cluster.apart()?.say(host, &["--json", "device", "list"])?;
    let told: serde_json::Value = serde_json::from_str(&told)
        .map_err(|error| Failure::Refused(format!("the list of devices: {error}")))?;
    let devices = told.as_array().cloned().unwrap_or_default();
    Ok(devices.iter().find_map(|device| device["leaving"].as_str().map(str::to_owned)))
}

/// A device of the host with the other component becomes so, and is well again only once nothing stands on it.
fn once(
    bench: &mut Bench,
    round: usize,
    (which, ill): (usize, Condition),
    name: &'static str,
) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[round % 2].clone(), holders[(round + 1) % 2].clone());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    let hosts = [victim.clone()];
    // A device that is slow but answers is waited for: that is why it has to go.
    let fault = Fault { name, hosts: &hosts, limit_ms: None };
    let mut note = String::new();
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[which].set(ill);
        note = emptied(bench, &victim)?;
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        let apart = bench.cluster.apart()?;
        apart.devices(&victim)?[which].set(Condition::Well);
        let capacity = &apart.device_paths(&victim)[1];
        apart.say(&victim, &["device", "evacuate", capacity, "--cancel"]).map(drop)
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.note(note);
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// Waits until a host's device was found to be slow and nothing stands on it; how long that took, and what was said.
fn emptied(bench: &mut Bench, victim: &str) -> Result<String, Failure> {
    let began = Instant::now();
    let mut found: Option<(Duration, String)> = None;
    while began.elapsed() < PATIENCE {
        sleep(POLL);
        if let (None, Some(why)) = (&found, leaving(bench, victim)?) {
            found = Some((began.elapsed(), why));
        }
        let disk = bench.cluster.disk(DISK)?;
        if let Some((after, why)) = &found
            && !disk.holders().iter().any(|holder| holder == victim)
            && disk.is_whole()
        {
            let (after, empty) = (after.as_secs(), began.elapsed().as_secs());
            return Ok(format!("found after {after} s, empty after {empty} s: {why}"));
        }
    }
    let what = found.map_or("it is found to be slow".to_owned(), |(_, why)| format!("it is empty ({why})"));
    Err(Failure::Late { what, seconds: PATIENCE.as_secs() })
}

/// Nothing is wrong, and devices have as much to do as they can: none is called slow.
fn busy(bench: &mut Bench) -> Result<(), Failure> {
    let user = bench.cluster.disk(DISK)?.holders()[0].clone();
    let load = bench.attach(&user, &Shape::random(BUSY_DEPTH))?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    let fault = Fault { name: BUSY_NAME, hosts: &[], limit_ms: None };
    let strike = |bench: &mut Bench| {
        let began = Instant::now();
        while began.elapsed() < BUSY {
            sleep(POLL * 5);
            for host in bench.cluster.names().to_vec() {
                if let Some(why) = leaving(bench, &host)? {
                    return Err(Failure::Refused(format!(
                        "a device of host {host} that is well is emptied: {why}"
                    )));
                }
            }
        }
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench.stop(load)?;
    bench.read_back(&user)
}
