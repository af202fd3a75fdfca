//! `pause`: the process of a host stands still for some seconds and goes on, under load.

use super::owned_elsewhere;
use crate::bench::{Bench, DISK, Fault, OWNER_LIMIT_MS, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::failure::Failure;
use crate::load::Shape;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long it stands still.
const STILL: Duration = Duration::from_secs(4);
/// Reads that wait for a paused host when it wakes.
const BURST: usize = 32;

/// Runs it: most rounds with a component's host, the others with the owner's.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan::usual("pause"))?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("pause", 20)).try_for_each(|round| component(bench, round))?;
        (0..bench.rounds("pause owner", 10)).try_for_each(|round| owner(bench, round, false))?;
        (0..bench.rounds("pause owner, both write", 10)).try_for_each(|round| owner(bench, round, true))
    }))
}

fn component(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let holders = bench.disk.holders();
    let (user, victim) = (&holders[round % 2], &holders[(round + 1) % 2]);
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault = Fault { name: "pause", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.pause(&hosts)?;
        sleep(STILL);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.go_on(&hosts))?;
    bench.stop(load)?;
    bench.read_back(victim)
}

/// The owner stands still, with clients at its host and at another, which takes over. When it wakes, what its own client
/// has asked for just before must not be answered from what it still believes.
fn owner(bench: &mut Bench, round: usize, do_both_write: bool) -> Result<(), Failure> {
    let (owner, user) = owned_elsewhere(bench, round)?;
    let (shape, name) = match do_both_write {
        false => (Shape::observer(4), "pause owner"),
        true => (Shape::random(4), "pause owner, both write"),
    };
    let observer = bench.attach(&owner, &shape)?;
    bench.cluster.wait_for_owner(DISK, &owner)?;
    let load = bench.attach_load(&user)?;
    sleep(WARM_UP);
    let hosts = [owner.clone()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(OWNER_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.pause(&hosts)?;
        sleep(STILL);
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        // These begin after much was acknowledged elsewhere, and are the first that the host finds.
        observer.set_depth(BURST);
        sleep(Duration::from_millis(20));
        bench.cluster.go_on(&hosts)
    };
    bench.round(&fault, &[&load], strike, mend)?;
    sleep(WARM_UP);
    bench.stop(observer)?;
    bench.stop(load)?;
    bench.read_back(&owner)
}
