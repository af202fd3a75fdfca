//! What a report is made of.

use lens::Capture;
use measured::{ExperimentRun, Run};
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Names without what tells nobody anything: folders and the endings of our own files, unless two would then be called alike.
pub(crate) fn short_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let short = |name: &'a str| -> &'a str {
        let file = name.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or(name);
        [".json", ".tar.zst"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file)
    };
    let is_path = |name: &str| name.ends_with(".json") || name.ends_with(".tar.zst");
    let names: Vec<&str> = names.collect();
    let called: Vec<&str> = names.iter().map(|name| if is_path(name) { short(name) } else { name }).collect();
    let is_unique = |name: &str| called.iter().filter(|other| **other == name).count() == 1;
    let choose = |(name, called): (&&str, &&str)| if is_unique(called) { *called } else { *name }.to_owned();
    names.iter().zip(&called).map(choose).collect()
}

/// What a stage is called where those of other runs are, too: by its run, and by its own name where the run has several.
pub(crate) fn place(name: &str, run: &Run, stage: &measured::StageRun) -> String {
    let at = stage_name(run, stage);
    if run.stages.len() == 1 || at == name { name.to_owned() } else { format!("{name}: {at}") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_folders_and_endings_unless_two_would_be_alike() {
        let check =
            |names: &[&str], expected: &[&str]| assert_eq!(short_names(names.iter().copied()), expected);
        check(&["out/before.json", "out/after.json"], &["before", "after"]);
        check(&["a/run.json", "b/run.json", "run/x.json"], &["a/run.json", "b/run.json", "x"]);
        check(&["70/30 read", "/"], &["70/30 read", "/"]);
    }
}
