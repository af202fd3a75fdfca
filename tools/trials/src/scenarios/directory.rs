//! `directory`: members of etcd die, all of them do, hosts are cut off from them, its data is gone: guests feel nothing.

use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Fault, Plan, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// While no host fails nothing waits for the directory: what is seen is what a busy machine does by itself.
const UNFELT_LIMIT_MS: f64 = 250.0;
/// How long it is away, if nothing else was asked for: longer than leases and watches last.
const AWAY: Duration = Duration::from_secs(15);
/// How long after its return nothing may be felt either.
const AFTER: Duration = Duration::from_secs(3);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { is_apart: true, ..Plan::usual("directory") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("member killed", 20)).try_for_each(|round| member(bench, round))?;
        (0..bench.rounds("all members killed", 5)).try_for_each(|_| all(bench))?;
        (0..bench.rounds("cut off from all members", 5)).try_for_each(|_| parted(bench))?;
        (0..bench.rounds("wiped, and brought back", 5)).try_for_each(|_| wiped(bench))
    }))
}

/// A round in which the directory is hurt and nobody may feel it.
fn unfelt(
    bench: &mut Bench,
    name: &str,
    strike: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    mend: impl FnOnce(&mut Bench) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let user = bench.disk.holders()[0].clone();
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let fault = Fault { name, hosts: &[], limit_ms: Some(UNFELT_LIMIT_MS) };
    let mend_and_wait = |bench: &mut Bench| {
        mend(bench)?;
        bench.cluster.wait_for_directory()?;
        sleep(AFTER);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, mend_and_wait)?;
    bench.stop(load)?;
    bench.read_back(&user)
}

fn away(bench: &Bench) -> Duration {
    bench.settings.seconds.map_or(AWAY, Duration::from_secs)
}

fn member(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let victim = MEMBERS[round % MEMBERS.len()];
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.kill_members(&[victim])?;
        sleep(Duration::from_secs(4));
        Ok(())
    };
    unfelt(bench, "member killed", strike, |bench| bench.cluster.apart()?.start_member(victim, true))
}

fn all(bench: &mut Bench) -> Result<(), Failure> {
    let pause = away(bench);
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.kill_members(&MEMBERS)?;
        sleep(pause);
        Ok(())
    };
    unfelt(bench, "all members killed", strike, start_all)
}

fn start_all(bench: &mut Bench) -> Result<(), Failure> {
    let apart = bench.cluster.apart()?;
    MEMBERS.iter().try_for_each(|member| apart.start_member(member, true))
}

fn parted(bench: &mut Bench) -> Result<(), Failure> {
    let pause = away(bench);
    let hosts = bench.cluster.names().to_vec();
    let members = MEMBERS.map(str::to_owned);
    let strike = |bench: &mut Bench| {
        let network = &bench.cluster.apart()?.network;
        hosts.iter().try_for_each(|host| network.part(host, &members))?;
        sleep(pause);
        Ok(())
    };
    unfelt(bench, "cut off from all members", strike, |bench| {
        let network = &bench.cluster.apart()?.network;
        hosts.iter().try_for_each(|host| network.mend(host))
    })
}

/// Members with empty folders look like a cluster in which everything was deleted.
fn wiped(bench: &mut Bench) -> Result<(), Failure> {
    let pause = away(bench);
    let strike = |bench: &mut Bench| {
        let apart = bench.cluster.apart()?;
        apart.kill_members(&MEMBERS)?;
        apart.set_data_aside()?;
        MEMBERS.iter().try_for_each(|member| apart.start_member(member, false))?;
        sleep(pause);
        apart.kill_members(&MEMBERS)?;
        apart.bring_data_back()
    };
    unfelt(bench, "wiped, and brought back", strike, start_all)
}

impl crate::cluster::Cluster {
    /// Waits until all hosts say that the directory answers.
    fn wait_for_directory(&self) -> Result<(), Failure> {
        wait_for("the directory answers all hosts", || {
            let hosts = self.others(&[]);
            Ok(hosts
                .iter()
                .all(|host| self.local(host).is_ok_and(|local| local.directory_away.is_none()))
                .then_some(()))
        })
    }
}
