//! `replace`: one of the two capacity devices of a host dies while guests write, and is replaced in the steps of the guide.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::device::Condition;
use crate::failure::Failure;
use crate::guide;
use crate::report::Report;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// How long it is dead before anybody does something.
const ILL: Duration = Duration::from_secs(4);
/// Where the guide tells of it, and how it calls the devices.
const HEADING: &str = "A device died";
const FORMER: &str = "/dev/disk/by-id/nvme-two";
const NEW: &str = "/dev/disk/by-id/nvme-four";
/// How its words about a log device begin, which this is not.
const LOG_DEVICE: &str = "systemctl restart drystone";
/// Which of a host's devices lies beside at first.
const BESIDE: usize = 3;

/// A device, as its host lists it.
#[derive(Debug, Clone, Deserialize)]
struct Listed {
    path: String,
    group: String,
    component_count: u32,
    failure: Option<String>,
}

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Pair, ..Plan::usual("replace") })?;
    let mut beside = BTreeMap::new();
    Ok(bench.run(|bench| {
        (0..bench.rounds("one of two capacity devices dies", 5))
            .try_for_each(|round| once(bench, round, &mut beside))
    }))
}

fn listed(bench: &Bench, host: &str) -> Result<Vec<Listed>, Failure> {
    bench.cluster.api(host).get("/api/v1/devices")
}

/// `beside`: by host, the device that it does not use.
fn once(bench: &mut Bench, round: usize, beside: &mut BTreeMap<String, usize>) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[round % 2].clone(), holders[(round + 1) % 2].clone());
    let new = beside.get(&victim).copied().unwrap_or(BESIDE);
    let paths = bench.cluster.apart()?.device_paths(&victim);
    let is_used = |one: &Listed| one.component_count > 0 && one.path != paths[0];
    let found = listed(bench, &victim)?.into_iter().find(is_used);
    let found = found.ok_or_else(|| Failure::Refused(format!("host {victim} holds nothing")))?;
    let dead = paths.iter().position(|path| *path == found.path);
    let dead = dead.ok_or_else(|| Failure::Refused(format!("{} is none of ours", found.path)))?;
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault =
        Fault { name: "one of two capacity devices dies", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[dead].set(Condition::Dead);
        sleep(ILL);
        // Its components are made anew elsewhere, before it is replaced.
        bench.cluster.wait_until_whole(DISK).map(drop)
    };
    let mend = |bench: &mut Bench| replace(bench, &victim, &found, &paths[new]);
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    // It lies beside from now on, and is blank the next time.
    bench.cluster.apart()?.devices(&victim)?[dead].replace()?;
    beside.insert(victim.clone(), dead);
    bench.read_back(&victim)
}

/// Types what the guide tells, in its order.
fn replace(bench: &mut Bench, host: &str, former: &Listed, new: &str) -> Result<(), Failure> {
    let typed = guide::commands(guide::OPERATING, HEADING)?;
    // The new device is blank.
    let of_blank = typed.iter().filter(|line| !line.ends_with("--force"));
    for line in of_blank.take_while(|line| !line.starts_with(LOG_DEVICE)) {
        let words = guide::words(line, &[(FORMER, &former.path), (NEW, new)])?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        bench.cluster.apart()?.say(host, &words)?;
    }
    // "and in the configuration, so that it is found at the next start"
    bench.cluster.apart()?.replace_in_config(host, &former.path, new)?;
    restart(bench, host)?;
    wait_for("the host has the new device, and not the former one", || {
        let devices = listed(bench, host)?;
        let has = |path: &str| devices.iter().any(|one| one.path == path && one.group == former.group);
        let is_well = devices.iter().all(|one| one.failure.is_none());
        Ok((has(new) && !has(&former.path) && is_well).then_some(()))
    })
}

fn restart(bench: &mut Bench, host: &str) -> Result<(), Failure> {
    bench.cluster.stop(host)?;
    bench.cluster.start_host(host)?;
    bench.cluster.wait_until_served(host, DISK)
}
