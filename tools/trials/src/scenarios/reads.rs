//! `reads`: the devices of the host that owns a disk become slow while its guest reads. The copy there is passed over within two seconds, and
//! read again once the devices are well (docs/design/0043).

use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::device::Condition;
use crate::failure::Failure;
use crate::load::Shape;
use crate::report::Report;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What each call takes longer: some hundred times what a read takes otherwise, and far less than what is given up on.
const SLOW: Duration = Duration::from_millis(20);
/// Within this the copy is passed over.
const PASSED_OVER_WITHIN: Duration = Duration::from_secs(2);
/// Within this it is read again: it is passed over for a second at least, and measured ten times a second.
const READ_AGAIN_WITHIN: Duration = Duration::from_secs(10);
/// How long the devices are slow.
const FOR: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
const NAME: &str = "devices of the owner become slow for reads";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Virtual, ..Plan::usual("reads") })?;
    Ok(bench.run(|bench| (0..bench.rounds(NAME, 5)).try_for_each(|round| once(bench, round))))
}

fn once(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let user = bench.cluster.disk(DISK)?.holders()[round % 2].clone();
    bench.fill(&user)?;
    let load = bench.attach(&user, &Shape::observer(4))?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let own = format!("the copy on host {user}");
    reads_from(bench, &user, &own, READ_AGAIN_WITHIN)?;
    let hosts = [user.clone()];
    let fault = Fault { name: NAME, hosts: &hosts, limit_ms: None };
    let mut note = String::new();
    let set = |bench: &mut Bench, condition| {
        let devices = bench.cluster.apart()?.devices(&user)?;
        devices.iter().for_each(|device| device.set(condition));
        Ok::<(), Failure>(())
    };
    let strike = |bench: &mut Bench| {
        set(bench, Condition::Slow(SLOW))?;
        let after = reads_from(bench, &user, "other hosts", PASSED_OVER_WITHIN)?;
        sleep(FOR.saturating_sub(after));
        reads_from(bench, &user, "other hosts", POLL)?;
        set(bench, Condition::Well)?;
        let back = reads_from(bench, &user, &own, READ_AGAIN_WITHIN)?;
        note =
            format!("passed over after {} ms, read again after {} ms", after.as_millis(), back.as_millis());
        Ok(())
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench.note(note);
    bench.stop(load)?;
    bench.read_back(&user)
}

/// Waits until guests read from there; how long that took.
fn reads_from(bench: &mut Bench, host: &str, wanted: &str, within: Duration) -> Result<Duration, Failure> {
    let began = Instant::now();
    loop {
        let shown: serde_json::Value = bench.cluster.api(host).get(&format!("/api/v1/disks/{DISK}"))?;
        let found = shown["reads_from"].as_str().unwrap_or_default().to_owned();
        let took = began.elapsed();
        if found.starts_with(wanted) {
            return Ok(took);
        }
        if took > within {
            let what = format!("guests read from {wanted} (they read from {found})");
            return Err(Failure::Late { what, seconds: within.as_secs() });
        }
        sleep(POLL);
    }
}
