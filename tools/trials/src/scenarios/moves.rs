//! `moves`: moves a disk under load from two copies to RAID-5, to RAID-6 and back to two copies. Each move is turned round once. In the second
//! attempt a host with a component is killed, and the move completes (docs/design/0041).

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

/// A layout that the disk moves to.
#[derive(Clone, Copy)]
struct Layout {
    /// The rules that ask for it.
    rules: &'static str,
    /// Its name in the report.
    name: &'static str,
}

/// The layouts in their order. The disk begins with two copies.
const LAYOUTS: [Layout; 3] = [
    Layout { rules: "method=parity", name: "RAID-5" },
    Layout { rules: "failures_to_tolerate=2", name: "RAID-6" },
    Layout { rules: "method=mirror,failures_to_tolerate=1", name: "two copies" },
];
/// 4+2 needs six hosts.
const HOSTS: usize = 6;
const AREA_BYTES: u64 = GIB;
/// A move is turned round, or loses a host, after one third of the disk.
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
            LAYOUTS.into_iter().try_for_each(|layout| once(bench, &user, layout))?;
        }
        Ok(())
    }))
}

fn once(bench: &mut Bench, user: &str, to: Layout) -> Result<(), Failure> {
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    turned_round(bench, user, &load, to)?;
    with_a_host_killed(bench, user, &load, to)?;
    bench.stop(load)?;
    bench.read_back(user)
}

/// Turns the move round after a third of the disk.
fn turned_round(bench: &mut Bench, user: &str, load: &Load, to: Layout) -> Result<(), Failure> {
    let fault =
        Fault { name: &format!("to {}, and back", to.name), hosts: &[], limit_ms: Some(SILENCE_LIMIT_MS) };
    let mut moved = Moving::default();
    let strike = |bench: &mut Bench| {
        change(bench, user, &json!({ "policy": to.rules }))?;
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

/// Kills a host with a component after a third of the disk and starts it again; the move completes.
fn with_a_host_killed(bench: &mut Bench, user: &str, load: &Load, to: Layout) -> Result<(), Failure> {
    let began = Instant::now();
    change(bench, user, &json!({ "policy": to.rules }))?;
    let moved = wait_until_underway(bench)?;
    let mut holders = bench.cluster.disk(DISK)?.holders();
    holders.retain(|host| host != user);
    let hosts = [holders[bench.random.below(holders.len() as u64) as usize].clone()];
    let fault = Fault {
        name: &format!("to {}, a host is killed", to.name),
        hosts: &hosts,
        limit_ms: Some(SILENCE_LIMIT_MS),
    };
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
    let state = bench.cluster.disk(DISK)?.compliance.state;
    match state.as_str() {
        "compliant" => Ok(()),
        _ => Err(Failure::Refused(format!("the disk has moved, and its compliance is `{state}`"))),
    }
}

fn change(bench: &Bench, host: &str, what: &Value) -> Result<Disk, Failure> {
    bench.cluster.api(host).patch(&format!("/api/v1/disks/{DISK}"), what)
}

/// Waits until a third of the disk has moved.
fn wait_until_underway(bench: &Bench) -> Result<Moving, Failure> {
    wait_for("a third of the disk has moved", || match bench.cluster.disk(DISK)?.moving {
        Some(moving) if moving.moved_bytes * SHARE < moving.moved_bytes + moving.remaining_bytes => Ok(None),
        Some(moving) => Ok(Some(moving)),
        None => Err(Failure::Refused("the disk does not move, or all of it has moved already".to_owned())),
    })
}

/// Waits for the end of the move; returns how long that took.
fn wait_until_over(bench: &Bench) -> Result<Duration, Failure> {
    let began = Instant::now();
    wait_for("the disk has moved", || Ok(bench.cluster.disk(DISK)?.moving.is_none().then_some(())))?;
    Ok(began.elapsed())
}
