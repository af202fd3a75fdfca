//! A capture from the events of a trace: the histograms that our own data path would have made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;
use base::units::SECTOR_SIZE;
use iostats::{Arrival, Kind, Operation, Recorder, Statistics};
use statistics::words::counted;

use crate::capture::{Capture, Disk};
use crate::event::Event;
use crate::window::{Total, Window};

/// Windows of each disk; when there would be more, neighbours are joined and the next ones are twice as long.
pub const WINDOWS_MAX: usize = 3_600;
/// Windows of all disks together: they take 3 KiB each.
const WINDOWS_TOTAL_MAX: usize = 100_000;
/// Disks of which there is a capture; I/Os of further ones are counted and left out. Each holds 50 KiB and its windows.
pub const DISKS_MAX: usize = 512;
/// I/Os of a disk that are under way at a time; with more, the one that ends first ends at once.
const UNDER_WAY_MAX: usize = 65_536;

/// Makes a [`Capture`] of events in order of time, in bounded memory.
#[derive(Debug)]
pub struct CaptureBuilder {
    window_ns: u64,
    disks: Vec<Recording>,
    /// The window that events fall in now, counted from 0.
    current: u64,
    end_ns: u64,
    left_out: u64,
}

/// One disk while it is recorded.
#[derive(Debug, Default)]
struct Recording {
    recorder: Recorder,
    before: Statistics,
    under_way: BinaryHeap<Reverse<Ending>>,
    totals: [Total; 2],
    windows: Vec<Window>,
    /// What was the current window before it became twice as long.
    begun: Option<Window>,
}

/// An I/O that ends; ordered by when.
#[derive(Debug)]
struct Ending {
    at_ns: u64,
    arrival: Arrival,
    timed: bool,
}

impl PartialEq for Ending {
    fn eq(&self, other: &Self) -> bool {
        self.at_ns == other.at_ns
    }
}
impl Eq for Ending {}
impl PartialOrd for Ending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at_ns.cmp(&other.at_ns)
    }
}

impl CaptureBuilder {
    /// Windows of `seconds` (at least a millisecond) to begin with; they become longer when there would be more than
    /// [`WINDOWS_MAX`].
    pub fn new(seconds: f64) -> CaptureBuilder {
        let window_ns = (seconds.clamp(0.001, 1e6) * 1e9) as u64;
        CaptureBuilder { window_ns, disks: Vec::new(), current: 0, end_ns: 0, left_out: 0 }
    }

    /// Takes an event. Those of earlier windows count in the current one.
    pub fn event(&mut self, event: &Event) {
        let Some(operation) = event.action.operation() else { return };
        let disk = event.disk as usize;
        if disk >= DISKS_MAX {
            self.left_out += 1;
            return;
        }
        self.advance(event.at_ns);
        while self.disks.len() <= disk {
            while self.current >= (WINDOWS_TOTAL_MAX / (self.disks.len() + 1)) as u64 {
                self.double();
            }
            let mut recording = Recording::default();
            // It did nothing until now, and that is known.
            recording.fill(self.window_ns, self.current);
            self.disks.push(recording);
        }
        self.end_ns = self.end_ns.max(event.at_ns.saturating_add(event.latency_ns.unwrap_or(0)));
        self.disks[disk].arrive(operation, event);
    }

    /// Makes the window of `at_ns` the current one.
    fn advance(&mut self, at_ns: u64) {
        while at_ns / self.window_ns >= self.windows_max() {
            self.double();
        }
        let current = at_ns / self.window_ns;
        if current <= self.current {
            return;
        }
        let (window_ns, ended) = (self.window_ns, self.current);
        for disk in &mut self.disks {
            disk.close(window_ns, ended);
            disk.fill(window_ns, current);
        }
        self.current = current;
    }

    /// Windows that each disk may have.
    fn windows_max(&self) -> u64 {
        (WINDOWS_TOTAL_MAX / self.disks.len().max(1)).min(WINDOWS_MAX) as u64
    }

    /// Joins windows in pairs.
    fn double(&mut self) {
        for disk in &mut self.disks {
            if self.current % 2 == 1
                && let Some(mut begun) = disk.windows.pop()
            {
                // Its partner is the current window, which goes on.
                if let Some(more) = disk.begun.take() {
                    begun.append(&more);
                }
                disk.begun = Some(begun);
            }
            let pairs = disk.windows.chunks(2).map(|pair| {
                let mut joined = pair[0].clone();
                pair[1..].iter().for_each(|window| joined.append(window));
                joined
            });
            disk.windows = pairs.collect();
        }
        self.window_ns *= 2;
        self.current /= 2;
    }

    /// The capture so far, for disks of these names (by their index; others are named by it).
    /// I/Os that end later than the last one began are in no latency histogram before the capture is finished.
    pub fn capture(&self, source: impl Into<String>, names: &[String]) -> Capture {
        let (window_ns, current) = (self.window_ns, self.current);
        let last_ns = current * window_ns;
        let disks = self.disks.iter().enumerate().map(|(index, disk)| {
            let mut windows = disk.windows.clone();
            windows.extend(disk.open_window(window_ns, current, self.end_ns.max(last_ns + 1)));
            let name = names.get(index).cloned().unwrap_or_else(|| format!("disk {index}"));
            Disk { name, windows, gaps: Vec::new() }
        });
        let disks = disks.collect();
        let mut notes = Vec::new();
        if self.left_out > 0 {
            let left_out = self.left_out;
            notes.push(format!(
                "{} left out: their disks are beyond the first {DISKS_MAX}.",
                counted(left_out, "I/O")
            ));
        }
        Capture { source: source.into(), disks, notes }
    }
}

impl CaptureBuilder {
    /// The capture of a trace that has ended: what is under way is completed.
    pub fn finish(mut self, source: impl Into<String>, names: &[String]) -> Capture {
        for disk in &mut self.disks {
            disk.complete_until(u64::MAX);
        }
        self.capture(source, names)
    }
}

impl Recording {
    fn arrive(&mut self, operation: Operation, event: &Event) {
        self.complete_until(event.at_ns);
        while self.under_way.len() >= UNDER_WAY_MAX {
            let Reverse(ending) = self.under_way.pop().expect("there are many");
            self.complete(ending);
        }
        let sectors = u32::try_from(event.bytes.div_ceil(SECTOR_SIZE)).unwrap_or(u32::MAX).max(1);
        let arrival =
            self.recorder.arrive(Instant(event.at_ns), operation, event.offset / SECTOR_SIZE, sectors);
        let total = &mut self.totals[operation as usize];
        *total = total.plus(Total {
            ios: 1,
            bytes: event.bytes,
            timed: u64::from(event.latency_ns.is_some()),
            latency_ns: event.latency_ns.unwrap_or(0),
        });
        let ending = Ending {
            at_ns: event.at_ns.saturating_add(event.latency_ns.unwrap_or(0)),
            arrival,
            timed: event.latency_ns.is_some(),
        };
        if ending.timed {
            self.under_way.push(Reverse(ending));
        } else {
            self.complete(ending);
        }
    }

    fn complete_until(&mut self, now_ns: u64) {
        while let Some(Reverse(first)) = self.under_way.peek()
            && first.at_ns <= now_ns
        {
            let Reverse(ending) = self.under_way.pop().expect("it was peeked at");
            self.complete(ending);
        }
    }

    fn complete(&mut self, ending: Ending) {
        // One whose latency is unknown may not count as one that took no time.
        self.recorder.complete(Instant(ending.at_ns), ending.arrival, ending.timed);
    }

    /// Ends window `index`.
    fn close(&mut self, window_ns: u64, index: u64) {
        self.complete_until((index + 1).saturating_mul(window_ns));
        self.windows.extend(self.open_window(window_ns, index, u64::MAX));
        self.begun = None;
        self.before = self.recorder.statistics();
        self.totals = [Total::default(); 2];
    }

    /// What window `index` holds so far, up to its end or `until_ns`.
    fn open_window(&self, window_ns: u64, index: u64, until_ns: u64) -> Option<Window> {
        let from_ns = index * window_ns;
        let to_ns = from_ns.saturating_add(window_ns).min(until_ns);
        let interval = self.recorder.statistics().difference(&self.before);
        let seconds = to_ns.checked_sub(from_ns).filter(|length| *length > 0)? as f64 / 1e9;
        let mut window = Window::from_statistics(from_ns as f64 / 1e9, seconds, &interval);
        window.totals = self.totals;
        let ios = self.totals[0].ios + self.totals[1].ios;
        if ios > 0 && self.totals[0].timed + self.totals[1].timed == 0 {
            window.histograms.retain(|one| !matches!(one.kind, Kind::Latency | Kind::Outstanding));
            (window.latencies, window.outstanding_mean) = (None, None);
        }
        Some(match &self.begun {
            Some(begun) => {
                let mut whole = begun.clone();
                whole.append(&window);
                whole
            }
            None => window,
        })
    }

    /// Windows without I/O until `index`, which is not among them.
    fn fill(&mut self, window_ns: u64, index: u64) {
        let empty = Statistics::new();
        for quiet in self.windows.len() as u64..index {
            let at_s = (quiet * window_ns) as f64 / 1e9;
            self.windows.push(Window::from_statistics(at_s, window_ns as f64 / 1e9, &empty));
        }
    }
}

#[cfg(test)]
mod tests;
