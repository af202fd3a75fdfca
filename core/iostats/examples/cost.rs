//! Measures what recording costs: nanoseconds per I/O, arrival and completion together. The budget is 100 ns.

use base::{Instant, Random};
use iostats::{Operation, Recorder};

fn main() {
    const IOS: u32 = 5_000_000;
    for (name, depth) in [("depth 1", 1), ("depth 32", 32)] {
        let mut recorder = Recorder::new();
        let mut random = Random::new(1);
        let sectors: Vec<u64> = (0..4096).map(|_| random.below(1 << 32)).collect();
        let mut ring: Vec<_> =
            (0..depth).map(|_| recorder.arrive(Instant(0), Operation::Read, 0, 8)).collect();
        let started = std::time::Instant::now();
        for index in 0..IOS {
            let now = Instant(u64::from(index) * 7_919);
            let place = index as usize & (depth - 1);
            recorder.complete(now, ring[place], true);
            let operation = if index & 3 == 0 { Operation::Write } else { Operation::Read };
            ring[place] = recorder.arrive(now, operation, sectors[index as usize % 4096], 8);
        }
        let ns = started.elapsed().as_nanos() as f64 / f64::from(IOS);
        println!(
            "{name}: {ns:.1} ns per I/O ({} recorded)",
            recorder.statistics().completed(iostats::Operations::Both)
        );
    }
}
