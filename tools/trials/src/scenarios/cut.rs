//! `cut`: a host hears nothing of the others and of the directory, or is not heard, while its process goes on.

use super::owned_elsewhere;
use crate::bench::{Bench, DISK, Fault, Ground, OWNER_LIMIT_MS, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::failure::Failure;
use crate::load::Shape;
use crate::namespaces::Cut;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long the links are cut: longer than anybody may wait for the other side.
const CUT: Duration = Duration::from_secs(6);
/// The ways to cut them, with their names.
const WAYS: [(Cut, &str, &str); 3] = [
    (Cut::Both, "cut both ways", "cut owner both ways"),
    (Cut::Sent, "cut what it sends", "cut what the owner sends"),
    (Cut::Received, "cut what it receives", "cut what the owner receives"),
];

/// Runs it: most rounds with a component's host, the others with the owner's.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("cut") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("cut", 21)).try_for_each(|round| component(bench, round))?;
        (0..bench.rounds("cut owner", 12)).try_for_each(|round| owner(bench, round))
    }))
}

fn component(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let holders = bench.disk.holders();
    let (user, victim) = (&holders[round % 2], &holders[(round + 1) % 2]);
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    let (cut, name, _) = WAYS[round % WAYS.len()];
    let hosts = [victim.clone()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.network.cut(victim, cut)?;
        sleep(CUT);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.apart()?.network.mend(victim))?;
    bench.stop(load)?;
    bench.read_back(victim)
}

/// The owner is cut off, and believes so itself; who reads at its host must wait and never see what is old.
fn owner(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let (owner, user) = owned_elsewhere(bench, round)?;
    let observer = bench.attach(&owner, &Shape::observer(4))?;
    bench.cluster.wait_for_owner(DISK, &owner)?;
    let load = bench.attach_load(&user)?;
    sleep(WARM_UP);
    let (cut, _, name) = WAYS[round % WAYS.len()];
    let hosts = [owner.clone()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(OWNER_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.network.cut(&owner, cut)?;
        sleep(CUT);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.apart()?.network.mend(&owner))?;
    sleep(WARM_UP);
    bench.stop(observer)?;
    bench.stop(load)?;
    bench.read_back(&owner)
}
