//! `device`: a device of a host fails, hangs or is slow while guests write.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::device::{Condition, Device};
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// How long a device is not well.
const ILL: Duration = Duration::from_secs(4);
/// What slow is.
const SLOW: Duration = Duration::from_millis(300);

/// How a device becomes well again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// It does so by itself.
    None,
    /// Its host is started anew, as somebody would who has seen to a cable.
    Restart,
    /// A blank one is put in.
    Replace,
}

/// Which device of a host: as in `Apart::devices`.
const LOG: usize = 0;
const CAPACITY: usize = 1;

/// What happens to which device, what that is called, and what helps.
const FAULTS: [(usize, Condition, &str, Remedy); 8] = [
    (LOG, Condition::Dead, "log device dies", Remedy::Restart),
    (LOG, Condition::Full, "log device refuses writes", Remedy::Restart),
    (LOG, Condition::Hung, "log device hangs", Remedy::None),
    (LOG, Condition::Slow(SLOW), "log device is slow", Remedy::None),
    (CAPACITY, Condition::Dead, "capacity device dies", Remedy::Replace),
    (CAPACITY, Condition::Unreadable, "capacity device cannot be read", Remedy::Replace),
    (CAPACITY, Condition::Full, "capacity device refuses writes", Remedy::Replace),
    (CAPACITY, Condition::Hung, "capacity device hangs", Remedy::None),
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

/// A device of the host with the other component.
fn once(
    bench: &mut Bench,
    round: usize,
    &(which, condition, name, remedy): &(usize, Condition, &str, Remedy),
) -> Result<(), Failure> {
    // A device that dies is replaced by one elsewhere, so the holders change.
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[round % 2].clone(), holders[(round + 1) % 2].clone());
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    // A device that is slow but answers is waited for.
    let limit_ms = (!matches!(condition, Condition::Slow(_))).then_some(SILENCE_LIMIT_MS);
    let fault = Fault { name, hosts: &hosts, limit_ms };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.devices(&victim)?[which].set(condition);
        sleep(ILL);
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |bench| mend(bench, &victim, which, remedy))?;
    bench.stop(load)?;
    bench.read_back(&victim)
}

fn mend(bench: &mut Bench, victim: &str, which: usize, remedy: Remedy) -> Result<(), Failure> {
    let device = &bench.cluster.apart()?.devices(victim)?[which];
    match remedy {
        Remedy::None => {
            device.set(Condition::Well);
            Ok(())
        }
        Remedy::Restart => {
            device.set(Condition::Well);
            bench.cluster.kill(&[victim.to_owned()])?;
            bench.cluster.start_host(victim)?;
            bench.cluster.wait_until_served(victim, DISK)
        }
        Remedy::Replace => replace(bench, victim),
    }
}

/// The host is started anew with its device as it is, and serves; later the device is replaced, and the group made anew, as
/// it was the only one for capacity. By the commands that the guide tells.
fn replace(bench: &mut Bench, victim: &str) -> Result<(), Failure> {
    bench.cluster.stop(victim)?;
    bench.cluster.start_host(victim)?;
    bench.cluster.wait_until_served(victim, DISK)?;
    bench.cluster.stop(victim)?;
    bench.cluster.apart()?.devices(victim)?.iter().try_for_each(Device::replace)?;
    bench.cluster.start_host(victim)?;
    bench.cluster.wait_until_served(victim, DISK)?;
    let apart = bench.cluster.apart()?;
    let paths = apart.device_paths(victim);
    apart.say(victim, &["device", "add", "--log", &paths[LOG], &paths[CAPACITY]]).map(drop)
}
