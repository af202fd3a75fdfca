//! What a person sees while a job runs: one line that changes, or a line now and then where nobody watches.

use super::live::Live;
use crate::generator::stage::Second;
use base::units::format_bytes;
use plan::{Plan, format_seconds};
use statistics::{Histogram, words};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Seconds between lines where the output is no terminal.
const QUIET_SECONDS: i64 = 10;

/// The line.
pub struct Progress {
    terminal: bool,
    /// Who else is told.
    live: Option<Arc<Live>>,
    stage: String,
    /// Seconds of the stage, its ramp among them, if time ends it.
    seconds: Option<f64>,
    ramp: f64,
    /// Seconds that come after this stage.
    after: f64,
    /// I/Os, bytes and latencies by second.
    rows: BTreeMap<i64, (u64, u64, Histogram)>,
    history: Vec<f64>,
    /// The latest second that was shown: what comes of earlier ones comes too late.
    shown: i64,
}

impl Progress {
    /// Of a run whose errors go to a terminal, or not; `live` is told the same.
    pub fn new(terminal: bool, live: Option<Arc<Live>>) -> Progress {
        Progress {
            terminal,
            live,
            stage: String::new(),
            seconds: None,
            ramp: 0.0,
            after: 0.0,
            rows: BTreeMap::new(),
            history: Vec::new(),
            shown: i64::MIN,
        }
    }

    /// A stage begins.
    pub fn begins(&mut self, plan: &Plan, stage: usize, repeat: u32) {
        if let Some(live) = &self.live {
            live.begins(plan, stage);
        }
        let outline = plan.outline(&[]);
        let of = &outline.stages[stage];
        let repeats =
            if of.repeats > 1 { format!(" ({} of {})", repeat + 1, of.repeats) } else { String::new() };
        self.stage = format!("stage {} of {}, {}{repeats}", stage + 1, plan.stages.len(), of.name);
        self.seconds = of.seconds;
        let timings = plan.stages[stage].groups.iter().map(|group| group.timing.delay + group.timing.ramp);
        self.ramp = timings.min().unwrap_or_default().as_secs_f64();
        let later =
            outline.stages[stage + 1..].iter().map(|of| of.seconds.unwrap_or(0.0) * f64::from(of.repeats));
        self.after = later.sum::<f64>() + of.seconds.unwrap_or(0.0) * f64::from(of.repeats - repeat - 1);
        self.rows.clear();
        self.history.clear();
        self.shown = i64::MIN;
    }

    /// A thread's second is over.
    pub fn second(&mut self, second: &Second) {
        if let Some(live) = &self.live {
            live.second(second);
        }
        let at = second.interval.at.floor() as i64;
        if at <= self.shown {
            return;
        }
        let row = self.rows.entry(at).or_default();
        row.0 += second.interval.completed();
        for (latency, bytes) in second.interval.latency.iter().zip(second.interval.bytes) {
            row.1 += bytes;
            row.2.merge(&latency.histogram());
        }
        // The second before is whole when the next one is heard of.
        if let Some((&whole, _)) = self.rows.range(..at).next_back() {
            self.show(whole);
            self.shown = whole;
            self.rows.retain(|&second, _| second > whole);
        }
    }

    fn show(&mut self, at: i64) {
        let Some((ios, bytes, latency)) = self.rows.get(&at) else { return };
        self.history.push(*ios as f64);
        if !self.terminal && at % QUIET_SECONDS != 0 {
            return;
        }
        let percentile = |p| words::milliseconds(latency.percentile(p).unwrap_or(0) as f64 / 1e9);
        let left = match self.seconds {
            Some(seconds) => {
                let left = (seconds - self.ramp - (at + 1) as f64).max(0.0);
                format!(", {} left", format_seconds((left + self.after).round()))
            }
            None => String::new(),
        };
        let ramp = if at < 0 { " (ramp)" } else { "" };
        let line = format!(
            "{}: {} s{ramp}{left}  {} IOPS  {}/s  p50 {}  p99 {}  {}",
            self.stage,
            at + 1,
            words::rate(*ios as f64),
            format_bytes(*bytes),
            percentile(0.5),
            percentile(0.99),
            sparkline(&self.history[self.history.len().saturating_sub(30)..]),
        );
        let mut errors = std::io::stderr().lock();
        // Nobody can be told that nobody can be told.
        let _ = match self.terminal {
            true => write!(errors, "\r\x1b[K{line}"),
            false => writeln!(errors, "{line}"),
        };
        let _ = errors.flush();
    }

    /// The stage has ended: the line goes.
    pub fn ended(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// Values as eight heights of blocks, the largest at full height.
pub fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| match most > 0.0 {
        true => BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => BLOCKS[0],
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_a_block_for_each_value_and_the_largest_is_full() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0]), "▁▁▄█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
