//! Processor time that a virtual machine did not get though it had work: what lies under it gave it to others.
//!
//! Latencies of a time in which much of it was taken say more about the neighbours than about what was tried.

use std::fs;

/// Ticks of all processors since the machine was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Those until now; none where the machine does not tell.
    pub fn now() -> Ticks {
        fs::read_to_string("/proc/stat").map(|text| Ticks::read(&text)).unwrap_or_default()
    }

    /// From the first line of `/proc/stat`: `cpu`, then ticks of users' programs, of those with less priority, of the kernel, idle,
    /// waiting for devices, of two sorts of interrupts, and stolen (proc(5)).
    fn read(text: &str) -> Ticks {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).filter_map(|one| one.parse().ok()).collect();
        Ticks { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// What was stolen from then until now, of all processors' time, in percent.
    pub fn stolen_since(self, then: Ticks) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        self.stolen.saturating_sub(then.stolen) as f64 * 100.0 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_is_a_part_of_all_time() {
        let then = Ticks::read("cpu  100 0 100 700 50 0 10 40 0 0\ncpu0 1 2 3\n");
        assert_eq!(then, Ticks { all: 1_000, stolen: 40 });
        let now = Ticks::read("cpu  150 0 130 760 50 0 20 90 5 5\n");
        assert!((now.stolen_since(then) - 25.0).abs() < 1e-9, "50 of 200");
        assert_eq!(Ticks::read("").stolen_since(Ticks::read("intr 7")), 0.0);
    }
}
