//! `device`: a device of a host fails, hangs or is slow while guests write.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::device::Condition;
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long a device is not well.
const ILL: Duration = Duration::from_secs(4);
/// What happens: which device (0: the log, 1: the capacity device), how it is then, and what that is called.
const FAULTS: [(usize, Condition, &str); 6] = [
    (0, Condition::Dead, "log device dies"),
    (1, Condition::Dead, "capacity device dies"),
    (1, Condition::Unreadable, "capacity device cannot be read"),
    (0, Condition::Full, "log device refuses writes"),
    (1, Condition::Full, "capacity device refuses writes"),
    (0, Condition::Hung, "log device hangs"),
];

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Virtual, ..Plan::usual("device") })?;
    Ok(bench.run(|bench| {
        FAULTS.iter().try_for_each(|fault| {
            (0..bench.rounds(fault.2, 20)).try_for_each(|round| once(bench, round, fault))
        })
    }))
}

/// A device of the host with the other component. It is well again later, and its host is started anew, as somebody would
/// who has seen to it.
fn once(
    bench: &mut Bench,
    round: usize,
    &(which, condition, name): &(usize, Condition, &str),
) -> Result<(), Failure> {
    // A device that dies is replaced, so the holders change.
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[round % 2].clone(), holders[(round + 1) % 2].clone());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[which].set(condition);
        sleep(ILL);
        Ok(())
    };
    let mend = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[which].set(Condition::Well);
        bench.cluster.kill(&hosts)?;
        bench.cluster.start_host(&victim)?;
        bench.cluster.wait_until_served(&victim, DISK)
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    bench.read_back(&victim)
}
