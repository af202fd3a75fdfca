//! `moves`: under a load a disk is moved from two copies to RAID-5, to RAID-6, and back to two copies. Each move is turned round once, and a host
//! with a component is killed in the middle of the next attempt, which goes to its end (docs/design/0041).

use crate::api::{Disk, Moving};
use crate::bench::{Bench, DISK, Fault, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::load::Load;
use crate::report::Report;
use base::units::{GIB, MIB};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What the disk is asked for, in this order, and what that is called. It has two copies before.
const LAYOUTS: [(&str, &str); 3] = [
    ("method=parity", "to RAID-5"),
    ("failures_to_tolerate=2", "to RAID-6"),
    ("method=mirror,failures_to_tolerate=1", "to two copies"),
];
/// As many as 4+2 needs.
const HOSTS: usize = 6;
const AREA_BYTES: u64 = GIB;
/// Something is done to a move once so much of it is over: a part, and not all.
const SHARE: u64 = 3;
/// How long the killed host is gone.
const GONE: Duration = Duration::from_millis(1500);

/// Runs it: all moves once in a round.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench =
        Bench::start(settings, Plan { hosts: HOSTS, area_bytes: AREA_BYTES, ..Plan::usual("moves") })?;
    Ok(bench.run(|bench| {
        let user = bench.disk.holders()[0].clone();
        // Holes would be moved for nothing.
        bench.fill(&user)?;
        for _ in 0..bench.rounds("moves", 1) {
            for (wanted, what) in LAYOUTS {
                once(bench, &user, wanted, what)?;
            }
        }
        Ok(())
    }))
}

fn once(bench: &mut Bench, user: &str, wanted: &str, what: &str) -> Result<(), Failure> {
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    turned_round(bench, user, &load, (wanted, what))?;
    with_a_host_killed(bench, user, &load, (wanted, what))?;
    bench.stop(load)?;
    bench.read_back(user)
}

/// The move goes back once a part is over.
fn turned_round(
    bench: &mut Bench,
    user: &str,
    load: &Load,
    (wanted, what): (&str, &str),
) -> Result<(), Failure> {
    let fault = Fault { name: &format!("{what}, and back"), hosts: &[], limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut moved = Moving::default();
    let strike = |bench: &mut Bench| {
        change(bench, user, &json!({ "policy": wanted }))?;
        moved = wait_until_underway(bench)?;
        change(bench, user, &json!({ "move": "back" })).map(drop)
    };
    let mut back = Duration::ZERO;
    let mend = |bench: &mut Bench| {
        back = wait_until_over(bench)?;
        Ok(())
    };
    bench.round(&fault, &[load], strike, mend)?;
    bench.note(format!(
        "turned round after {} MiB, back in {:.1} s",
        moved.moved_bytes / MIB,
        back.as_secs_f64()
    ));
    Ok(())
}

/// A host with a component is killed once a part is over, and comes back; the move goes to its end.
fn with_a_host_killed(
    bench: &mut Bench,
    user: &str,
    load: &Load,
    (wanted, what): (&str, &str),
) -> Result<(), Failure> {
    let began = Instant::now();
    change(bench, user, &json!({ "policy": wanted }))?;
    let moved = wait_until_underway(bench)?;
    let mut holders = bench.cluster.disk(DISK)?.holders();
    holders.retain(|host| host != user);
    let hosts = [holders[bench.random.below(holders.len() as u64) as usize].clone()];
    let fault =
        Fault { name: &format!("{what}, a host is killed"), hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.kill(&hosts)?;
        sleep(GONE);
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        bench.cluster.start_host(&hosts[0])?;
        wait_until_over(bench).map(drop)
    };
    bench.round(&fault, &[load], strike, mend)?;
    let took = began.elapsed().as_secs_f64();
    bench.note(format!("killed after {} MiB, moved and whole after {took:.1} s", moved.moved_bytes / MIB));
    let layout = bench.cluster.disk(DISK)?.compliance.state;
    match layout.as_str() {
        "compliant" => Ok(()),
        _ => Err(Failure::Refused(format!("the disk has moved, and is `{layout}`"))),
    }
}

fn change(bench: &Bench, host: &str, what: &Value) -> Result<Disk, Failure> {
    bench.cluster.api(host).patch(&format!("/api/v1/disks/{DISK}"), what)
}

/// Waits until a part of the disk has moved.
fn wait_until_underway(bench: &Bench) -> Result<Moving, Failure> {
    wait_for("a part of the disk has moved", || match bench.cluster.disk(DISK)?.moving {
        Some(moving) if moving.moved_bytes * SHARE < moving.moved_bytes + moving.remaining_bytes => Ok(None),
        Some(moving) => Ok(Some(moving)),
        None => Err(Failure::Refused("the disk does not move, or all of it has moved already".to_owned())),
    })
}

/// Waits until it does not move any more; how long that took.
fn wait_until_over(bench: &Bench) -> Result<Duration, Failure> {
    let began = Instant::now();
    wait_for("the disk has moved", || Ok(bench.cluster.disk(DISK)?.moving.is_none().then_some(())))?;
    Ok(began.elapsed())
}
