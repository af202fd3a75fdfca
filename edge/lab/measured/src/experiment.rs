//! What an experiment measured: its cells, each with its runs, and what was concluded.

use crate::expected::Expected;
use crate::run::Run;
use serde::{Deserialize, Serialize};
use statistics::compare::{Better, Comparison};
use statistics::{Histogram, words};
use std::collections::BTreeMap;

/// The version of [`ExperimentRun`] as JSON.
pub const EXPERIMENT_VERSION: u32 = 1;

/// One execution of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRun {
    /// [`EXPERIMENT_VERSION`] of whoever wrote it.
    pub experiment_version: u32,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Its file, word for word.
    pub source: String,
    /// Which program ran it.
    pub program: String,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// What was measured.
    pub cells: Vec<Cell>,
    /// What follows from it.
    pub conclusions: Vec<Conclusion>,
    /// What it was expected to show, and whether it did.
    pub expectations: Vec<Expected>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One combination of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The workload.
    pub workload: String,
    /// The parameters that were varied, and their values.
    pub parameters: BTreeMap<String, String>,
    /// Which side of a comparison: `a` or `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// I/Os outstanding.
    pub outstanding: u64,
    /// Virtual machines.
    pub vms: u64,
    /// Its runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

impl Cell {
    /// `4k random read, outstanding 32, side a`.
    pub fn label(&self) -> String {
        self.label_without(&[])
    }

    /// The label of both sides of a comparison: `4k random read, outstanding 32`.
    pub fn label_of_both_sides(&self) -> String {
        self.workload_and_parameters(&[])
    }

    fn label_without(&self, left_out: &[&str]) -> String {
        let side = self.side.as_ref().map_or(String::new(), |side| format!(", side {side}"));
        self.workload_and_parameters(left_out) + &side
    }

    /// The workload and its parameters but for these.
    fn workload_and_parameters(&self, left_out: &[&str]) -> String {
        let mut label = self.workload.clone();
        for (name, value) in self.parameters.iter().filter(|(name, _)| !left_out.contains(&name.as_str())) {
            label.push_str(&format!(", {name} {value}"));
        }
        label
    }

    /// The latencies of all its runs, merged: percentiles of several runs are those of all their I/Os, never an average.
    pub fn latency(&self) -> Histogram {
        let stages = self.runs.iter().filter_map(|run| run.stages.first());
        let groups = stages.flat_map(|stage| &stage.groups);
        Histogram::merged(groups.flat_map(|group| &group.operations).map(|of| &of.latency))
    }

    /// A figure of each run.
    pub fn figures(&self, figure: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(figure).collect()
    }
}

/// Cells that differ in nothing but these parameters, by the label of all that they have in common.
pub fn series<'a>(cells: &'a [Cell], varied: &[&str]) -> BTreeMap<String, Vec<&'a Cell>> {
    let mut all: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        all.entry(cell.label_without(varied)).or_default().push(cell);
    }
    all
}

/// A sentence that follows from cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// What it is about.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// The comparison that the sentence is about. Conclusions of other kinds have none, and neither have those of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Box<Compared>>,
}

impl Conclusion {
    /// A conclusion that compares nothing.
    pub fn new(about: impl Into<String>, text: impl Into<String>) -> Conclusion {
        Conclusion { about: about.into(), text: text.into(), compared: None }
    }
}

/// One figure of side B against that of side A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Which figure.
    pub figure: ComparedFigure,
    /// The runs of both sides (IOPS, or milliseconds) and the verdict, corrected for the number of comparisons of the experiment.
    pub comparison: Comparison,
}

/// A figure that sides are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// I/Os per second.
    Iops,
    /// The mean latency in ms.
    MeanLatency,
    /// The 99th percentile of the latency in ms.
    P99Latency,
}

impl ComparedFigure {
    /// All of them.
    pub const ALL: [ComparedFigure; 3] =
        [ComparedFigure::Iops, ComparedFigure::MeanLatency, ComparedFigure::P99Latency];

    /// `IOPS`, `mean latency`, `p99 latency`.
    pub fn name(self) -> &'static str {
        match self {
            ComparedFigure::Iops => "IOPS",
            ComparedFigure::MeanLatency => "mean latency",
            ComparedFigure::P99Latency => "p99 latency",
        }
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        match self {
            ComparedFigure::Iops => Better::Higher,
            ComparedFigure::MeanLatency | ComparedFigure::P99Latency => Better::Lower,
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            ComparedFigure::Iops => words::rate(value),
            ComparedFigure::MeanLatency | ComparedFigure::P99Latency => words::milliseconds(value / 1e3),
        }
    }
}
