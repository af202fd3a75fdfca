//! `handover`: clients at different hosts hand the disk over under load, and its owner follows who stays.

use crate::bench::{Bench, DISK, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::failure::Failure;
use crate::report::{Report, Round};
use std::thread::sleep;

/// Runs it: every host hands over to the next, round and round.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan::usual("handover"))?;
    Ok(bench.run(|bench| {
        let hosts = bench.cluster.names().to_vec();
        let mut load = bench.attach_load(&hosts[0])?;
        bench.cluster.wait_for_owner(DISK, &hosts[0])?;
        for round in 0..bench.rounds("hand over", 20) {
            let (from, to) = (&hosts[round % hosts.len()], &hosts[(round + 1) % hosts.len()]);
            sleep(WARM_UP);
            // Both at once for a while, as when a guest migrates; then the former leaves.
            let next = bench.attach_load(to)?;
            next.open_window();
            sleep(WARM_UP);
            let held = bench.held(std::slice::from_ref(to))?;
            let both = next.close_window();
            next.open_window();
            bench.stop(load)?;
            let moved = bench.cluster.wait_for_owner(DISK, to)?;
            sleep(WARM_UP);
            let mut row = Round {
                number: round + 1,
                fault: "hand over".to_owned(),
                host: format!("{from} to {to}"),
                held,
                stall: both,
                stall_after: next.close_window(),
                limit_ms: Some(SILENCE_LIMIT_MS),
                note: format!("owner moved {:.0} ms after the former client left", moved.as_secs_f64() * 1e3),
                ..Round::default()
            };
            row.judge();
            bench.tell(&row);
            bench.report.rounds.push(row);
            next.check()?;
            load = next;
            if round % 5 == 4 {
                load.drain()?;
                bench.read_back(from)?;
                load.set_depth(bench.settings.depth);
            }
        }
        bench.stop(load)
    }))
}
