//! `two`: five hosts and three copies; the hosts of two copies fail at once.

use crate::bench::{Bench, DISK, Fault, KILL_LIMIT_MS, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long they are gone when killed.
const GONE: Duration = Duration::from_millis(1500);
/// How long they stand still when paused.
const STILL: Duration = Duration::from_secs(4);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { hosts: 5, policy: "default,failures_to_tolerate=2,stripes=1", ..Plan::usual("two") };
    let bench = Bench::start(settings, plan)?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("kill two", 10)).try_for_each(|round| both(bench, round, false))?;
        (0..bench.rounds("pause two", 10)).try_for_each(|round| both(bench, round, true))
    }))
}

fn both(bench: &mut Bench, round: usize, is_pause: bool) -> Result<(), Failure> {
    let mut holders = bench.disk.holders();
    let user = holders.remove(round % holders.len());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let (name, limit_ms) =
        if is_pause { ("pause two", SILENCE_LIMIT_MS) } else { ("kill two", KILL_LIMIT_MS) };
    let fault = Fault { name, hosts: &holders, limit_ms: Some(limit_ms) };
    let strike = |bench: &mut Bench| {
        if is_pause {
            bench.cluster.pause(&holders)?;
            sleep(STILL);
        } else {
            bench.cluster.kill(&holders)?;
            sleep(GONE);
        }
        Ok(())
    };
    let mend = |bench: &mut Bench| match is_pause {
        true => bench.cluster.go_on(&holders),
        false => holders.iter().try_for_each(|host| bench.cluster.start_host(host)),
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    bench.read_back(&holders[0])
}
