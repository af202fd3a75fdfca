//! `device`: a device of a host fails, hangs or is slow while guests write.

use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::device::Condition;
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
    /// The host is started anew, it is taken out, and a blank one is put in.
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
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
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
        Remedy::Replace => replace(bench, victim, which),
    }
}

/// By the commands that the guide tells.
fn replace(bench: &mut Bench, victim: &str, which: usize) -> Result<(), Failure> {
    bench.cluster.stop(victim)?;
    bench.cluster.start_host(victim)?;
    bench.cluster.wait_until_served(victim, DISK)?;
    let apart = bench.cluster.apart()?;
    let path = apart.device_path(victim, which);
    let words = ["device", "remove", path.as_str()];
    // What stood there must have been given up first, which its owners and the hosts do by themselves.
    let mut refusal = None;
    let removed = wait_for("the device that failed is taken out", || {
        let said = apart.say(victim, &words);
        Ok(said.map_err(|failure| refusal = Some(failure)).ok())
    });
    removed.map_err(|late| refusal.unwrap_or(late))?;
    apart.devices(victim)?[which].replace()?;
    let status: serde_json::Value = serde_json::from_str(&apart.say(victim, &["--json", "device", "list"])?)
        .map_err(|error| Failure::Refused(format!("the list of devices: {error}")))?;
    let group = status[0]["group"].as_str().unwrap_or_default().to_owned();
    apart.say(victim, &["device", "add", &path, "--group", &group]).map(drop)
}
