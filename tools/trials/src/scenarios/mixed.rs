//! `mixed`: kills, pauses, stops and blackouts by chance, for a given time.

use super::blackout;
use crate::bench::{
    Bench, DISK, Fault, KILL_LIMIT_MS, OWNER_LIMIT_MS, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP,
};
use crate::failure::Failure;
use crate::load::Load;
use crate::report::Report;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it takes if not told.
const MINUTES: u64 = 5;
/// Of so many faults one is a blackout.
const BLACKOUT_OF: u64 = 8;
/// How long a host is away: from shorter than it takes to notice, to longer than it takes to take over.
const AWAY_MS: std::ops::Range<u64> = 100..6000;

/// What is done to a host.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Kill,
    Pause,
    Stop,
}

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { hosts: 4, ..Plan::usual("mixed") })?;
    Ok(bench.run(|bench| {
        let until = Instant::now() + Duration::from_secs(60 * bench.settings.minutes.unwrap_or(MINUTES));
        let mut round = 0;
        while Instant::now() < until {
            if bench.random.chance(1, BLACKOUT_OF) {
                blackout::once(bench, round)?;
            } else {
                one_host(bench)?;
            }
            round += 1;
        }
        Ok(())
    }))
}

/// A client at any host, and half the time another one; a fault of any other host.
fn one_host(bench: &mut Bench) -> Result<(), Failure> {
    let mut hosts = bench.cluster.names().to_vec();
    let mut take = |bench: &mut Bench| hosts.swap_remove(bench.random.below(hosts.len() as u64) as usize);
    let (user, victim) = (take(bench), take(bench));
    // It was there first, so the disk's owner is where it is.
    let other = match bench.random.chance(1, 2) {
        true => Some(bench.attach_load(&victim)?),
        false => None,
    };
    if other.is_some() {
        bench.cluster.wait_for_owner(DISK, &victim)?;
    }
    let load = bench.attach_load(&user)?;
    if other.is_none() {
        bench.cluster.wait_for_owner(DISK, &user)?;
    }
    sleep(WARM_UP);
    let kind = [Kind::Kill, Kind::Pause, Kind::Stop][bench.random.below(3) as usize];
    let is_owner = bench.cluster.disk(DISK)?.owner.as_ref() == Some(&victim);
    strike(bench, kind, &victim, is_owner, (&load, other.as_ref()))?;
    other.into_iter().for_each(|other| bench.abandon(other));
    bench.stop(load)?;
    bench.read_back(&user)?;
    bench.read_back(&victim)
}

fn strike(
    bench: &mut Bench,
    kind: Kind,
    victim: &str,
    is_owner: bool,
    (load, other): (&Load, Option<&Load>),
) -> Result<(), Failure> {
    let (name, limit_ms) = match (kind, is_owner) {
        (Kind::Kill, false) => ("kill", KILL_LIMIT_MS),
        (Kind::Pause, false) => ("pause", SILENCE_LIMIT_MS),
        (Kind::Stop, false) => ("stop", KILL_LIMIT_MS),
        (Kind::Kill, true) => ("kill owner", OWNER_LIMIT_MS),
        (Kind::Pause, true) => ("pause owner", OWNER_LIMIT_MS),
        (Kind::Stop, true) => ("stop owner", OWNER_LIMIT_MS),
    };
    let away = Duration::from_millis(bench.random.range(AWAY_MS));
    let hosts = [victim.to_owned()];
    if let Some(other) = other {
        other.may_break();
    }
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(limit_ms) };
    let strike = |bench: &mut Bench| {
        match kind {
            Kind::Kill => bench.cluster.kill(&hosts)?,
            Kind::Pause => bench.cluster.pause(&hosts)?,
            Kind::Stop => bench.cluster.stop(victim)?,
        }
        sleep(away);
        Ok(())
    };
    let mend = |bench: &mut Bench| match kind {
        Kind::Pause => bench.cluster.go_on(&hosts),
        Kind::Kill | Kind::Stop => bench.cluster.start_host(victim),
    };
    bench.round(&fault, &[load], strike, mend)?;
    if let Some(round) = bench.report.rounds.last_mut() {
        round.note = format!("away {:.1} s", away.as_secs_f64());
    }
    Ok(())
}
