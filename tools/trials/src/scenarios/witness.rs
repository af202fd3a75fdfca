//! `witness`: two hosts, each at a site with a member of etcd, and a third member elsewhere: the witness. A site is lost, or the
//! sites lose each other: service goes on at exactly one.

use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Fault, Ground, OWNER_LIMIT_MS, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long a site is away.
const AWAY: Duration = Duration::from_secs(6);
/// How long the sites do not see each other.
const PARTED: Duration = Duration::from_secs(10);
/// Who is served is silent for no longer meanwhile: until the other is suspected, and with a leader of etcd to be found.
const SERVED_MS: f64 = 5000.0;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { hosts: 2, ground: Ground::Apart, ..Plan::usual("witness") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("site killed", 20)).try_for_each(|round| lost(bench, round))?;
        (0..bench.rounds("witness killed", 4)).try_for_each(|_| without_witness(bench))?;
        (0..bench.rounds("sites parted", 20)).try_for_each(|_| parted(bench))
    }))
}

/// The hosts, and with each the member of etcd that stands at its site.
fn sites(bench: &Bench) -> [(String, &'static str); 2] {
    let names = bench.cluster.names();
    [(names[0].clone(), MEMBERS[0]), (names[1].clone(), MEMBERS[1])]
}

/// A host dies, and the member of etcd beside it in the same moment.
fn lost(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let sites = sites(bench);
    let ((victim, member), (user, _)) = (sites[round % 2].clone(), sites[(round + 1) % 2].clone());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault = Fault { name: "site killed", hosts: &hosts, limit_ms: Some(OWNER_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.kill_members(&[member])?;
        bench.cluster.kill(&hosts)?;
        sleep(AWAY);
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        bench.cluster.apart()?.start_member(member, true)?;
        bench.cluster.start_host(&victim)
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    bench.read_back(&victim)
}

/// The witness alone is not missed.
fn without_witness(bench: &mut Bench) -> Result<(), Failure> {
    let witness = MEMBERS[2];
    let user = bench.cluster.names()[0].clone();
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let fault = Fault { name: "witness killed", hosts: &[], limit_ms: Some(500.0) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.kill_members(&[witness])?;
        sleep(AWAY);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.apart()?.start_member(witness, true))?;
    bench.stop(load)?;
    bench.read_back(&user)
}

/// The sites do not see each other, and both see the witness. Clients at both sites go on to write.
fn parted(bench: &mut Bench) -> Result<(), Failure> {
    let sites = sites(bench);
    let loads = [bench.attach_load(&sites[0].0)?, bench.attach_load(&sites[1].0)?];
    sleep(WARM_UP);
    let hosts = [sites[0].0.clone(), sites[1].0.clone()];
    let fault = Fault { name: "sites parted", hosts: &hosts, limit_ms: None };
    let mut silent = [0.0; 2];
    let strike = |bench: &mut Bench| {
        let network = &bench.cluster.apart()?.network;
        let (far, near) = (&sites[1], &sites[0]);
        let others = [far.0.clone(), far.1.to_owned()];
        network.part(&near.0, &others)?;
        network.part(near.1, &others)?;
        loads.iter().for_each(|load| load.open_window());
        sleep(PARTED);
        silent = [loads[0].close_window().silent_ms, loads[1].close_window().silent_ms];
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        let network = &bench.cluster.apart()?.network;
        network.mend(&sites[0].0)?;
        network.mend(sites[0].1)?;
        loads.iter().try_for_each(|load| load.catch_up())
    };
    bench.round(&fault, &[], strike, mend)?;
    let served = silent.iter().filter(|&&ms| ms < SERVED_MS).count();
    if let Some(round) = bench.report.rounds.last_mut() {
        round.note =
            format!("silent for {:.0} ms at {}, {:.0} ms at {}", silent[0], hosts[0], silent[1], hosts[1]);
        if served != 1 {
            round.broken.push(format!("{served} sites were served, not exactly one"));
        }
        eprintln!("trials: {}", round.note);
    }
    for load in loads {
        bench.stop(load)?;
    }
    bench.read_back(&hosts[0])?;
    bench.read_back(&hosts[1])
}
