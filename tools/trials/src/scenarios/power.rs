//! `power`: the power of a host fails, or that of all hosts and members of etcd: processes end at once, and what devices had
//! not made stable is there, is not, or is there in part.

use super::owned_elsewhere;
use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Fault, Ground, OWNER_LIMIT_MS, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long a host is without power.
const DARK: Duration = Duration::from_secs(4);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Virtual, ..Plan::usual("power") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("power of a host", 20)).try_for_each(|round| one(bench, round))?;
        (0..bench.rounds("power of all", 20)).try_for_each(|round| all(bench, round))
    }))
}

/// Takes the power from hosts: nobody is left to tell of their end, as nothing runs there any more.
fn take_power(bench: &mut Bench, hosts: &[String]) -> Result<usize, Failure> {
    for host in hosts {
        bench.cluster.apart()?.network.cut(host, crate::namespaces::Cut::Both)?;
    }
    bench.cluster.kill(hosts)?;
    let mut lost = 0;
    for host in hosts {
        let mut random = base::Random::new(bench.random.bits());
        for device in bench.cluster.apart()?.devices(host)? {
            lost += device.lose_power(&mut random)?;
        }
        bench.cluster.apart()?.network.mend(host)?;
    }
    Ok(lost)
}

/// One host, with a component or as the owner; the client is at another.
fn one(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let is_owner = round % 2 == 1;
    let (victim, user, anchor) = if is_owner {
        let (owner, user) = owned_elsewhere(bench, round)?;
        let anchor = bench.attach_load(&owner)?;
        bench.cluster.wait_for_owner(DISK, &owner)?;
        anchor.may_break();
        (owner, user, Some(anchor))
    } else {
        let holders = bench.disk.holders();
        (holders[round / 2 % 2].clone(), holders[(round / 2 + 1) % 2].clone(), None)
    };
    let load = bench.attach_load(&user)?;
    if !is_owner {
        bench.cluster.wait_for_owner(DISK, &user)?;
    }
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let (name, limit_ms) = match is_owner {
        true => ("power of a host, the owner's", OWNER_LIMIT_MS),
        false => ("power of a host", SILENCE_LIMIT_MS),
    };
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(limit_ms) };
    let mut lost = 0;
    let strike = |bench: &mut Bench| {
        lost = take_power(bench, &hosts)?;
        sleep(DARK);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.start_host(&victim))?;
    bench.note(format!("{lost} blocks were not stable"));
    anchor.into_iter().for_each(|anchor| bench.abandon(anchor));
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// All of them, with the members of etcd.
fn all(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    let user = hosts[round % hosts.len()].clone();
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    load.may_break();
    let fault = Fault { name: "power of all", hosts: &hosts, limit_ms: None };
    let mut lost = 0;
    let strike = |bench: &mut Bench| {
        lost = take_power(bench, &hosts)?;
        bench.cluster.apart()?.kill_members(&MEMBERS)
    };
    let mend = |bench: &mut Bench| {
        let apart = bench.cluster.apart()?;
        MEMBERS.iter().try_for_each(|member| apart.start_member(member, true))?;
        hosts.iter().try_for_each(|host| bench.cluster.start_host(host))?;
        bench.cluster.wait_until_reachable()?;
        bench.cluster.wait_until_served(&user, DISK)
    };
    bench.round(&fault, &[], strike, mend)?;
    bench.note(format!("{lost} blocks were not stable"));
    bench.abandon(load);
    for host in &hosts {
        bench.read_back(host)?;
    }
    bench.cluster.wait_until_whole(DISK).map(drop)
}
