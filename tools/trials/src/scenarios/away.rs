//! `away`: a host is stopped while blocks are written here and there; when it returns, about that is copied and no more.

use crate::bench::{Bench, DISK, Fault, Plan, Settings, WARM_UP};
use crate::failure::Failure;
use crate::load::{Pattern, Shape};
use crate::regions::Regions;
use crate::report::Report;
use base::units::{GIB, format_bytes};
use std::thread::sleep;
use std::time::Duration;

/// How long the host is away, in seconds.
const AWAY_SECONDS: u64 = 60;
/// So many that a third of all regions is written in that time.
const WRITES_PER_SECOND: u32 = 100;
/// What may be copied for each byte of the regions that were written.
const RATIO_MAX: f64 = 1.3;

/// Runs it: once with each holder.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { area_bytes: GIB, ..Plan::usual("away") })?;
    Ok(bench.run(|bench| {
        let first = bench.disk.holders()[0].clone();
        // Holes would be copied for nothing.
        bench.fill(&first)?;
        (0..bench.rounds("stop", 2)).try_for_each(|round| once(bench, round))
    }))
}

fn once(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let holders = bench.disk.holders();
    let (user, victim) = (&holders[round % 2], &holders[(round + 1) % 2]);
    let pattern = Pattern::Random { read_percent: 0, blocks_max: 1 };
    let shape = Shape { per_second: Some(WRITES_PER_SECOND), ..Shape::of(pattern, bench.settings.depth) };
    let load = bench.attach(user, &shape)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    let hosts = [victim.clone()];
    let seconds = bench.settings.seconds.unwrap_or(AWAY_SECONDS);
    load.count_regions();
    let fault = Fault { name: "stop", hosts: &hosts, limit_ms: None };
    let strike = |bench: &mut Bench| {
        bench.cluster.stop(victim)?;
        sleep(Duration::from_secs(seconds));
        Ok(())
    };
    let mut regions = Regions::default();
    let mend = |bench: &mut Bench| {
        regions = load.regions();
        bench.cluster.start_host(victim)
    };
    bench.round(&fault, &[&load], strike, mend)?;
    bench.stop(load)?;
    if let Some(round) = bench.report.rounds.last_mut() {
        let ratio = round.copied_bytes as f64 / regions.bytes() as f64;
        round.note = format!(
            "{} regions written, {}; copied {ratio:.3} of that",
            regions.count(),
            format_bytes(regions.bytes())
        );
        if ratio > RATIO_MAX {
            round
                .broken
                .push(format!("{ratio:.2} times as much was copied as was written, over {RATIO_MAX}"));
        }
        if ratio == 0.0 {
            round.broken.push("nothing was copied".to_owned());
        }
        eprintln!("trials: {}", round.note);
    }
    bench.read_back(victim)
}
