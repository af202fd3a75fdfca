//! Virtual disks watched while they serve: their own histograms, window by window.

use super::{CommandError, World, run};
use iostats::Statistics;
use lens::{Capture, Disk};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A window: when it began, how long it lasted (s), and what came in it.
type Sample = (f64, f64, Statistics);

/// Watches disks for `time`, a sample every `window`; SIGINT ends it with what was seen so far.
///
/// # Errors
/// When a disk is not there, or its host does not answer.
pub fn watch(
    names: &[&str],
    time: Duration,
    window: Duration,
    world: &World,
) -> Result<Capture, CommandError> {
    let mut earlier = names.iter().map(|name| world.disks.statistics(name)).collect::<Result<Vec<_>, _>>()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); names.len()];
    eprintln!("lens: watching {} for {} s", names.join(", "), time.as_secs_f64());
    let interrupted = run::on_signals();
    let began = Instant::now();
    let mut last = 0.0;
    let mut notes = Vec::new();
    while began.elapsed() < time && !interrupted.load(Ordering::Relaxed) {
        let next = began + Duration::from_secs_f64(last) + window;
        while Instant::now() < next.min(began + time) && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep((next - Instant::now()).min(Duration::from_millis(50)));
        }
        let now = began.elapsed().as_secs_f64();
        for (index, name) in names.iter().enumerate() {
            let state = world.disks.statistics(name)?;
            // Counters that fell began anew: the disk has another owner, or its host was started again.
            let restarted = count(&state) < count(&earlier[index]);
            if restarted {
                notes.push(format!("{name}: its counters were reset at {now:.1} s"));
                earlier[index] = Statistics::default();
            }
            samples[index].push((last, now - last, state.difference(&earlier[index])));
            earlier[index] = state;
        }
        last = now;
    }
    run::end_signals(&interrupted);
    let disks = names.iter().zip(&samples).map(|(name, samples)| {
        Disk::from_statistics(*name, samples.iter().map(|(at, seconds, of)| (*at, *seconds, of)))
    });
    Ok(Capture { source: names.join(", "), disks: disks.collect(), notes })
}

fn count(statistics: &Statistics) -> u64 {
    statistics.completed(iostats::Operations::Both)
}
