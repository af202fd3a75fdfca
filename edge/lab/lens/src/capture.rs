//! A capture: several disks over time.

use iostats::{Kind, Operations, Statistics};
use serde::{Deserialize, Serialize};

use crate::window::Window;

/// What several disks did over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Where it comes from, for people: a file's name, a run's.
    pub source: String,
    /// Each of its own name.
    pub disks: Vec<Disk>,
    /// Notes: dropped lines, reset counters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One disk over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// What people call it.
    pub name: String,
    /// In order of time, none overlapping another. Between them may be time without any.
    pub windows: Vec<Window>,
    /// Times without data although the disk was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// A time without data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// When it began, in seconds after the capture did.
    pub at_s: f64,
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// Why.
    pub reason: String,
}

impl Capture {
    /// When its last window ends, in seconds after it began; 0 without any.
    pub fn end_s(&self) -> f64 {
        self.disks.iter().filter_map(|disk| disk.windows.last()).map(Window::end_s).fold(0.0, f64::max)
    }

    /// When its first window begins, in seconds (below 0 in the ramp of a run); 0 without any.
    pub fn begin_s(&self) -> f64 {
        let begins = self.disks.iter().filter_map(|disk| disk.windows.first()).map(|window| window.at_s);
        begins.reduce(f64::min).unwrap_or(0.0)
    }
}

impl Disk {
    /// A disk whose samples are `(at, seconds, statistics)`: when each began, how long it lasted (above 0; others are left
    /// out), and the statistics of that interval alone. They are put in order of time.
    pub fn from_statistics<'a>(
        name: impl Into<String>,
        samples: impl IntoIterator<Item = (f64, f64, &'a Statistics)>,
    ) -> Disk {
        let mut windows: Vec<Window> = samples
            .into_iter()
            .filter(|(at, seconds, _)| at.is_finite() && seconds.is_finite() && *seconds > 0.0)
            .map(|(at, seconds, statistics)| Window::from_statistics(at, seconds, statistics))
            .collect();
        windows.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        Disk { name: name.into(), windows, gaps: Vec::new() }
    }

    /// All windows as one; nothing without any.
    pub fn whole(&self) -> Option<Window> {
        let (first, others) = self.windows.split_first()?;
        let mut whole = first.clone();
        others.iter().for_each(|window| whole.append(window));
        Some(whole)
    }

    /// One histogram over all windows that know it; nothing if none does.
    pub fn counts(&self, kind: Kind, operations: Operations) -> Option<Vec<u64>> {
        let mut result: Option<Vec<u64>> = None;
        for counts in self.windows.iter().filter_map(|window| window.counts(kind, operations)) {
            match &mut result {
                Some(all) => crate::window::add(all, counts),
                None => result = Some(counts.to_vec()),
            }
        }
        result
    }

    /// The same disk with neighbouring windows joined until there are at most `count` (at least 1).
    pub fn thinned(&self, count: usize) -> Disk {
        let group = self.windows.len().div_ceil(count.max(1)).max(1);
        let windows = self
            .windows
            .chunks(group)
            .map(|part| {
                let mut joined = part[0].clone();
                part[1..].iter().for_each(|window| joined.append(window));
                joined
            })
            .collect();
        Disk { name: self.name.clone(), windows, gaps: self.gaps.clone() }
    }
}
