//! `clock`: the clock of a host steps while guests write: nobody feels it.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// What is felt is what a busy machine does by itself.
const UNFELT_LIMIT_MS: f64 = 250.0;
/// How long a clock is wrong.
const WRONG: Duration = Duration::from_secs(6);
/// By how much clocks step, in seconds.
const STEPS: [i64; 4] = [3600, -240, 86_400, -3600];

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Clocks, ..Plan::usual("clock") })?;
    Ok(bench.run(|bench| (0..bench.rounds("clock steps", 20)).try_for_each(|round| once(bench, round))))
}

/// The clock of the owner, of a host with the other component, or of one without, in turn.
fn once(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    let user = bench.disk.holders()[0].clone();
    let victim = hosts[round % hosts.len()].clone();
    let ahead = STEPS[round % STEPS.len()];
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault = Fault { name: "clock steps", hosts: &hosts, limit_ms: Some(UNFELT_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.set_clock(&victim, ahead)?;
        sleep(WRONG);
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        bench.cluster.apart()?.set_clock(&victim, 0)?;
        sleep(WRONG);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.note(format!("by {ahead} s, and back"));
    bench.stop(load)?;
    bench.read_back(&victim)
}
