//! `directory`: members of etcd die, all of them do, hosts are cut off from them, its data is gone: guests feel nothing.

use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::fio::Fio;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// While no host fails nothing waits for the directory: what is seen is what a busy machine does by itself.
const UNFELT_LIMIT_MS: f64 = 250.0;
/// How long it is away, if nothing else was asked for: longer than leases and watches last.
const AWAY: Duration = Duration::from_secs(15);
/// Between the end of the directory and that of a component's host: all have noticed the one.
const MISSED: Duration = Duration::from_secs(3);
/// Bytes of a disk that a victim does not hold.
const SPARED_BYTES: u64 = 64 << 20;
/// Disks that are made to find one.
const SPARED_TRIES: usize = 8;
/// How long after its return nothing may be felt either.
const AFTER: Duration = Duration::from_secs(3);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("directory") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("member killed", 20)).try_for_each(|round| member(bench, round))?;
        (0..bench.rounds("all members killed", 5)).try_for_each(|_| all(bench))?;
        (0..bench.rounds("cut off from all members", 5)).try_for_each(|_| parted(bench))?;
        (0..bench.rounds("wiped, and brought back", 5)).try_for_each(|_| wiped(bench))?;
        let rounds = bench.rounds("component dies meanwhile", 5);
        if rounds > 0 { component(bench, rounds) } else { Ok(()) }
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

/// A component's host dies while nobody can record that. The disks that it holds wait, and their hosts say why; others go on;
/// when the directory is back all do, still without that host.
fn component(bench: &mut Bench, rounds: usize) -> Result<(), Failure> {
    let (user, victim) = (bench.disk.holders()[0].clone(), bench.disk.holders()[1].clone());
    let spared = spared_disk(bench, &victim)?;
    let pause = away(bench);
    for _ in 0..rounds {
        let load = bench.attach_load(&user)?;
        bench.cluster.wait_for_owner(DISK, &user)?;
        let fio =
            Fio::start(&bench.cluster.uri(&user, &spared), SPARED_BYTES, (MISSED + pause).as_secs() + 3)?;
        // Who owns a disk is recorded: until then it waits for the directory, too.
        bench.cluster.wait_for_owner(&spared, &user)?;
        sleep(WARM_UP);
        let strike = |bench: &mut Bench| {
            bench.cluster.apart()?.kill_members(&MEMBERS)?;
            sleep(MISSED);
            bench.cluster.kill(std::slice::from_ref(&victim))?;
            sleep(pause);
            let said = bench.cluster.directory_trouble(&user)?;
            bench.report.notes.push(format!("host {user} said: {said}"));
            start_all(bench)?;
            load.catch_up()
        };
        let fault =
            Fault { name: "component dies meanwhile", hosts: std::slice::from_ref(&victim), limit_ms: None };
        let mend = |bench: &mut Bench| {
            bench.cluster.start_host(&victim)?;
            bench.cluster.wait_for_directory()
        };
        bench.round(&fault, &[&load], strike, mend)?;
        bench.stop(load)?;
        bench.read_back(&user)?;
        let seen = fio.finish()?;
        bench.report.notes.push(format!(
            "a disk that it does not hold: {} writes and {} reads verified by fio, longest {:.0} ms",
            seen.writes, seen.reads, seen.longest_ms
        ));
        if seen.longest_ms > UNFELT_LIMIT_MS {
            return Err(Failure::Refused(format!(
                "a disk that host {victim} does not hold stood still for {:.0} ms",
                seen.longest_ms
            )));
        }
    }
    Ok(())
}

/// A disk of which a host holds nothing.
fn spared_disk(bench: &mut Bench, victim: &String) -> Result<String, Failure> {
    for number in 0..SPARED_TRIES {
        let name = format!("spared-{number}");
        let disk = bench.cluster.create_disk(&name, SPARED_BYTES, "default,stripes=1")?;
        if !disk.holders().contains(victim) {
            return Ok(name);
        }
    }
    Err(Failure::Refused(format!("each of {SPARED_TRIES} disks has a copy on host {victim}")))
}

impl crate::cluster::Cluster {
    /// What a host says of the directory that it cannot reach.
    fn directory_trouble(&self, host: &str) -> Result<String, Failure> {
        let away = self.local(host)?.directory_away;
        away.ok_or_else(|| Failure::Refused(format!("host {host} does not say that the directory is away")))
    }

    /// Waits until all hosts say that the directory answers.
    pub fn wait_for_directory(&self) -> Result<(), Failure> {
        wait_for("the directory answers all hosts", || {
            let hosts = self.others(&[]);
            Ok(hosts
                .iter()
                .all(|host| self.local(host).is_ok_and(|local| local.directory_away.is_none()))
                .then_some(()))
        })
    }
}
