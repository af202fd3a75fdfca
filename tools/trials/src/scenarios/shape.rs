//! `shape`: the links of a host become narrow, or the way of all hosts to etcd, under a load that would fill them: what is
//! slow is not gone, and nothing is wrong or refused.

use super::owned_elsewhere;
use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of a host's link.
const HOST_KILOBITS: u32 = 20_000;
/// Of the way between each host and etcd.
const ETCD_KILOBITS: u32 = 500;
/// How long it is narrow, if nothing else was asked for.
const NARROW: Duration = Duration::from_secs(15);
/// How often hosts are asked meanwhile whom they miss.
const POLL: Duration = Duration::from_millis(500);
/// 16 I/Os of 34 KiB each, seven of ten of them writes, take 0.2 s at 20 Mbit/s when nothing else is on the link, and none is
/// before its turn. Twice over where they come from elsewhere, and with room for what TCP loses.
const NARROW_LIMIT_MS: f64 = 2000.0;
/// No I/O waits for etcd.
const UNFELT_LIMIT_MS: f64 = 250.0;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("shape") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("narrow link", 5)).try_for_each(|round| component(bench, round))?;
        (0..bench.rounds("narrow link of the owner", 5)).try_for_each(|round| owner(bench, round))?;
        (0..bench.rounds("narrow way to etcd", 5)).try_for_each(|_| etcd(bench))
    }))
}

/// Which links are narrow, and how.
struct Links {
    machines: Vec<String>,
    others: Vec<String>,
    kilobits: u32,
}

/// Makes them narrow and looks whom hosts miss; gives how many times somebody was missed, and how long not all copies
/// counted.
fn narrow(bench: &mut Bench, links: &Links) -> Result<String, Failure> {
    let network = &bench.cluster.apart()?.network;
    links.machines.iter().try_for_each(|machine| network.narrow(machine, &links.others, links.kilobits))?;
    let lasts = bench.settings.seconds.map_or(NARROW, Duration::from_secs);
    let until = Instant::now() + lasts;
    let (mut looks, mut reduced) = (0, 0);
    let asked = bench.cluster.names().to_vec();
    while Instant::now() < until {
        sleep(POLL);
        for host in &asked {
            // At its unix socket, which no link slows down.
            let away = bench.cluster.findings(host, "host.away")?;
            if let Some(cause) = away.first() {
                return Err(Failure::Refused(format!(
                    "host {host} takes one for gone that is there: {cause}"
                )));
            }
        }
        looks += 1;
        reduced += usize::from(!bench.cluster.disk(DISK)?.is_whole());
    }
    Ok(format!("not whole {reduced} of {looks} times that it was looked at"))
}

fn widen(bench: &mut Bench, links: &Links) -> Result<(), Failure> {
    let network = &bench.cluster.apart()?.network;
    links.machines.iter().try_for_each(|machine| network.widen(machine))
}

fn round(bench: &mut Bench, (name, limit_ms): (&str, f64), user: &str, links: &Links) -> Result<(), Failure> {
    let load = bench.attach_load(user)?;
    sleep(WARM_UP);
    let fault = Fault { name, hosts: &links.machines, limit_ms: Some(limit_ms) };
    let mut note = String::new();
    let strike = |bench: &mut Bench| {
        note = narrow(bench, links)?;
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| widen(bench, links))?;
    bench.note(note);
    bench.stop(load)
}

/// The host with the other copy.
fn component(bench: &mut Bench, index: usize) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[index % 2].clone(), holders[(index + 1) % 2].clone());
    let links = Links { machines: vec![victim], others: Vec::new(), kilobits: HOST_KILOBITS };
    round(bench, ("narrow link", NARROW_LIMIT_MS), &user, &links)?;
    bench.read_back(&user)
}

/// The owner's host, with the client at a third.
fn owner(bench: &mut Bench, index: usize) -> Result<(), Failure> {
    let (owner, user) = owned_elsewhere(bench, index)?;
    let anchor = bench.attach_load(&owner)?;
    bench.cluster.wait_for_owner(DISK, &owner)?;
    let links = Links { machines: vec![owner], others: Vec::new(), kilobits: HOST_KILOBITS };
    round(bench, ("narrow link of the owner", NARROW_LIMIT_MS), &user, &links)?;
    bench.stop(anchor)?;
    bench.read_back(&user)
}

/// Between every host and every member of etcd.
fn etcd(bench: &mut Bench) -> Result<(), Failure> {
    let user = bench.cluster.disk(DISK)?.holders()[0].clone();
    let links = Links {
        machines: bench.cluster.names().to_vec(),
        others: MEMBERS.map(str::to_owned).to_vec(),
        kilobits: ETCD_KILOBITS,
    };
    round(bench, ("narrow way to etcd", UNFELT_LIMIT_MS), &user, &links)?;
    bench.read_back(&user)
}
