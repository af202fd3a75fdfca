//! `kill`: the process of a host dies and is started again, under load.

use super::owned_elsewhere;
use crate::bench::{Bench, DISK, Fault, KILL_LIMIT_MS, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::fio::Fio;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long a component's process is gone.
const GONE: Duration = Duration::from_millis(1500);
/// How long an owner's is: another host shall have taken over before it returns.
const OWNER_GONE: Duration = Duration::from_secs(5);
/// The disk that fio writes on.
const FIO_DISK: &str = "fio";

/// Runs it: most rounds with a component's host, the others with the owner's.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan::usual("kill"))?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("kill", 20)).try_for_each(|round| component(bench, round))?;
        (0..bench.rounds("kill owner", 10)).try_for_each(|round| owner(bench, round))?;
        let rounds = bench.rounds("kill, fio", 2);
        if rounds > 0 { with_fio(bench, rounds) } else { Ok(()) }
    }))
}

/// The client at one holder, the other holder dies; they change parts from round to round.
fn component(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let holders = bench.disk.holders();
    let (user, victim) = (&holders[round % 2], &holders[(round + 1) % 2]);
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    kill_one(bench, "kill", victim, (KILL_LIMIT_MS, GONE), &load)?;
    bench.stop(load)?;
    bench.read_back(victim)
}

/// The owner dies, whose own client dies with it; the client that counts is at a third host.
fn owner(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let (owner, user) = owned_elsewhere(bench, round)?;
    let anchor = bench.attach_load(&owner)?;
    bench.cluster.wait_for_owner(DISK, &owner)?;
    let load = bench.attach_load(&user)?;
    sleep(WARM_UP);
    anchor.may_break();
    kill_one(bench, "kill owner", &owner, (KILL_LIMIT_MS, OWNER_GONE), &load)?;
    bench.abandon(anchor);
    bench.stop(load)?;
    bench.read_back(&owner)
}

fn kill_one(
    bench: &mut Bench,
    name: &str,
    victim: &str,
    (limit_ms, gone): (f64, Duration),
    load: &crate::load::Load,
) -> Result<(), Failure> {
    let hosts = [victim.to_owned()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(limit_ms) };
    let strike = |bench: &mut Bench| {
        bench.cluster.kill(&hosts)?;
        sleep(gone);
        Ok(())
    };
    bench.round(&fault, &[load], strike, |bench| bench.cluster.start_host(victim))
}

/// The same once more with fio beside, on a disk of its own, which verifies what it writes by its own means.
fn with_fio(bench: &mut Bench, rounds: usize) -> Result<(), Failure> {
    let disk = bench.cluster.create_disk(FIO_DISK, 64 << 20, "default,stripes=1")?;
    // Of three hosts, at least one holds a copy of both.
    let (ours, theirs) = (bench.disk.holders(), disk.holders());
    let victim = ours.iter().find(|host| theirs.contains(host));
    let victim = victim.ok_or_else(|| Failure::Refused("no host holds a copy of both disks".to_owned()))?;
    let user = if victim == &ours[0] { &ours[1] } else { &ours[0] };
    for _ in 0..rounds {
        let fio = Fio::start(&bench.cluster.uri(user, FIO_DISK), 64 << 20, 8)?;
        let load = bench.attach_load(user)?;
        bench.cluster.wait_for_owner(DISK, user)?;
        sleep(WARM_UP);
        kill_one(bench, "kill, fio", victim, (KILL_LIMIT_MS, GONE), &load)?;
        bench.stop(load)?;
        let seen = fio.finish()?;
        bench.report.notes.push(format!(
            "fio at host {user}: {} writes and {} reads verified, longest {:.0} ms",
            seen.writes, seen.reads, seen.longest_ms
        ));
        bench.cluster.wait_until_whole(FIO_DISK)?;
    }
    Ok(())
}
