//! `blackout`: all hosts are killed in one moment under load, and started again. What was acknowledged is there, and only
//! what was under way is looked at again.

use crate::bench::{Bench, DISK, Fault, Plan, Settings, WARM_UP, unix_seconds};
use crate::failure::Failure;
use crate::report::Report;
use base::units::REGION_SIZE;
use std::thread::sleep;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan::usual("blackout"))?;
    Ok(bench.run(|bench| (0..bench.rounds("kill all", 10)).try_for_each(|round| once(bench, round))))
}

/// All hosts die and return; every client is gone with them.
///
/// # Errors
/// When what follows does not heal.
pub fn once(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let hosts = bench.cluster.names().to_vec();
    let user = hosts[round % hosts.len()].clone();
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    load.may_break();
    let began = unix_seconds();
    let fault = Fault { name: "kill all", hosts: &hosts, limit_ms: None };
    let strike = |bench: &mut Bench| bench.cluster.kill(&hosts);
    let mend = |bench: &mut Bench| {
        hosts.iter().try_for_each(|host| bench.cluster.start_host(host))?;
        bench.cluster.wait_until_reachable()?;
        bench.cluster.wait_until_served(&user, DISK)
    };
    bench.round(&fault, &[], strike, mend)?;
    bench.abandon(load);
    // It asks for an owner, who looks at what was under way.
    bench.read_back(&user)?;
    bench.cluster.wait_until_whole(DISK)?;
    let disk = bench.disk.clone();
    let rolled = rolled(&bench.cluster.events(began));
    // Each I/O under way is at most 64 KiB and lies in at most two regions.
    let bound = bench.settings.depth as u64 * 2 * REGION_SIZE;
    let before: u64 = bench.report.rounds.iter().map(|round| round.copied_bytes).sum();
    let copied = bench.cluster.copied_bytes(&disk).saturating_sub(before);
    if let Some(round) = bench.report.rounds.last_mut() {
        round.copied_bytes += copied;
        round.note = format!("{rolled} writes rolled forward; bound of copying {} KiB", bound / 1024);
        if round.copied_bytes > bound {
            round.broken.push(format!("{} KiB were copied, over the bound", round.copied_bytes / 1024));
        }
        if rolled > bench.settings.depth as u64 {
            round.broken.push(format!("{rolled} writes rolled forward, more than were under way"));
        }
        eprintln!("trials: {}", round.note);
    }
    for host in &hosts {
        bench.read_back(host)?;
    }
    Ok(())
}

/// Writes that owners say they found undecided.
fn rolled(events: &[String]) -> u64 {
    let number = |event: &String| -> Option<u64> {
        let (before, _) = event.split_once(" writes that were undecided")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    events.iter().filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writes_that_were_rolled_forward_are_read_from_events() {
        let events = [
            "host a: trial: served here from now on, epoch 7; 3 writes that were undecided are on all copies now",
            "host a: trial: served here from now on, epoch 8",
            "host b: trial: served here from now on, epoch 9; 12 writes that were undecided are on all copies now",
        ];
        assert_eq!(rolled(&events.map(str::to_owned)), 15);
    }
}
