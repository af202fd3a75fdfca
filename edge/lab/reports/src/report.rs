//! What a report is made of.

use lens::Capture;
use measured::{ExperimentRun, Run};

/// Everything that one report shows. Any part may be empty.
#[derive(Debug, Clone, Default)]
pub struct Report<'a> {
    /// What stands at its top.
    pub title: String,
    /// Which program makes it, with its version.
    pub program: String,
    /// Runs that belong to no experiment.
    pub runs: Vec<NamedRun<'a>>,
    /// Experiments, each with its own runs.
    pub experiments: Vec<NamedExperiment<'a>>,
    /// What virtual disks saw, beyond what the runs themselves hold.
    pub captures: Vec<Capture>,
    /// What others have to say: analyses, comparisons, audits. They stand near the top.
    pub sections: Vec<Section>,
}

/// A run and what to call it: a file's name, or the plan's.
#[derive(Debug, Clone, Copy)]
pub struct NamedRun<'a> {
    /// What to call it.
    pub name: &'a str,
    /// What was measured.
    pub run: &'a Run,
}

/// An experiment and what to call it.
#[derive(Debug, Clone, Copy)]
pub struct NamedExperiment<'a> {
    /// What to call it.
    pub name: &'a str,
    /// What was measured.
    pub experiment: &'a ExperimentRun,
}

/// Sentences under a heading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// A sentence each.
    pub lines: Vec<String>,
}

impl<'a> Report<'a> {
    /// A report about runs.
    pub fn of_runs(
        title: impl Into<String>,
        runs: impl IntoIterator<Item = (&'a str, &'a Run)>,
    ) -> Report<'a> {
        let runs = runs.into_iter().map(|(name, run)| NamedRun { name, run }).collect();
        Report { title: title.into(), runs, ..Report::default() }
    }

    /// A report about one experiment.
    pub fn of_experiment(experiment: &'a ExperimentRun) -> Report<'a> {
        let name = experiment.name.as_str();
        Report {
            title: name.to_owned(),
            experiments: vec![NamedExperiment { name, experiment }],
            ..Report::default()
        }
    }

    /// Every run with the name it goes by: those of experiments are called by their cell.
    pub fn all_runs(&self) -> Vec<(String, &'a Run)> {
        let own = self.runs.iter().map(|named| (named.name.to_owned(), named.run));
        let of_experiments = self.experiments.iter().flat_map(|named| experiment_runs(named.experiment));
        own.chain(of_experiments).collect()
    }
}

/// The runs of an experiment by name: `4k random read, outstanding 32, run 2 of 3`.
pub(crate) fn experiment_runs(experiment: &ExperimentRun) -> impl Iterator<Item = (String, &Run)> {
    experiment.cells.iter().flat_map(|cell| {
        let count = cell.runs.len();
        cell.runs.iter().enumerate().map(move |(index, run)| {
            let which = if count > 1 { format!(", run {} of {count}", index + 1) } else { String::new() };
            (format!("{}{which}", cell.label()), run)
        })
    })
}

/// A stage's name with its repeat where there are several: `4k random read, 2 of 3`. Files may name stages that the plan does
/// not have.
pub(crate) fn stage_name(run: &Run, stage: &measured::StageRun) -> String {
    match run.plan.stages.get(stage.stage) {
        Some(planned) if planned.repeats > 1 => {
            format!("{}, {} of {}", planned.name, stage.repeat + 1, planned.repeats)
        }
        Some(planned) => planned.name.clone(),
        None => format!("stage {}", stage.stage + 1),
    }
}
