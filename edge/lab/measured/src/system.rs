//! Metrics and events of the system under test during a run.

use serde::{Deserialize, Serialize};

/// Series and events of the system under test, on the run's own time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct System {
    /// Figures, about one a second.
    pub series: Vec<SystemSeries>,
    /// Events: a failover, the start of a resync.
    pub events: Vec<SystemEvent>,
    /// Notes for the reader: a source that did not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One figure of one part of the system, over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemSeries {
    /// What is measured: `Destaging`. Series of one figure share a chart.
    pub figure: String,
    /// Its unit: `MiB/s`.
    pub unit: String,
    /// Of what: the source's address, and the device or group where there are several.
    pub of: String,
    /// Seconds after the run began, and the value.
    pub points: Vec<(f64, f64)>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemEvent {
    /// Seconds after the run began, by the system's clock.
    pub at: f64,
    /// The part of the system, and what happened to it.
    pub text: String,
}

impl System {
    /// Whether there are no metrics, events and notes.
    pub fn is_empty(&self) -> bool {
        *self == System::default()
    }

    /// The part between two times of the run, with times counted from the first.
    #[must_use]
    pub fn within(&self, from: f64, to: f64) -> System {
        let is_within = |at: f64| at >= from && at <= to;
        let series = self.series.iter().filter_map(|series| {
            let points: Vec<(f64, f64)> = (series.points.iter())
                .filter(|(at, _)| is_within(*at))
                .map(|&(at, value)| (at - from, value))
                .collect();
            (!points.is_empty()).then(|| SystemSeries { points, ..series.clone() })
        });
        let events = self.events.iter().filter(|event| is_within(event.at));
        System {
            series: series.collect(),
            events: events.map(|event| SystemEvent { at: event.at - from, ..event.clone() }).collect(),
            notes: Vec::new(),
        }
    }
}
