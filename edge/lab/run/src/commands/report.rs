//! `lab report`: results as one HTML file.

use super::{CommandError, ErrorKind, World, audit, capture_of};
use clap::Args;
use measured::{ExperimentRun, Run};
use reports::{Report, Section};
use std::path::{Path, PathBuf};

/// Options of `lab report`.
#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// Results of this lab: runs and experiments.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// What stands at its top [default: the name of the first result].
    #[arg(long)]
    pub title: Option<String>,
}

enum Found {
    Run(Box<Run>),
    Experiment(Box<ExperimentRun>),
}

/// Writes reports.
pub fn report(options: &ReportOptions, world: &mut World) -> Result<(), CommandError> {
    let found = options.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = options.files.iter().map(|file| file.display().to_string()).collect();
    let mut report = Report { program: world.program.clone(), ..Report::default() };
    for (name, found) in names.iter().zip(&found) {
        match found {
            Found::Run(run) => report.runs.push(reports::NamedRun { name, run }),
            Found::Experiment(experiment) => {
                report.experiments.push(reports::NamedExperiment { name: &experiment.name, experiment });
            }
        }
    }
    report.title = options.title.clone().unwrap_or_else(|| title_of(&found[0]));
    report.sections = sections(&report);
    let Some(path) = &options.html else {
        return Err(CommandError::new(ErrorKind::Usage, "no form of report is named").hint("add --html FILE"));
    };
    std::fs::write(path, reports::html(&report))
        .map_err(|error| CommandError::failed(format!("write {}", path.display()), error))?;
    world.say(&format!("wrote {}", path.display()))
}

fn read(file: &Path) -> Result<Found, CommandError> {
    let text = audit::text_of(file)?;
    if text.starts_with("{\"experiment_version\":") {
        return audit::experiment(&text).map(|experiment| Found::Experiment(Box::new(experiment)));
    }
    let mut runs = audit::our_runs(file)?;
    Ok(Found::Run(Box::new(runs.remove(0))))
}

fn title_of(found: &Found) -> String {
    match found {
        Found::Run(run) => run.plan.name.clone(),
        Found::Experiment(experiment) => experiment.name.clone(),
    }
}

/// Who slows whom, in every run of several disks.
fn sections(report: &Report) -> Vec<Section> {
    let mut sections = Vec::new();
    for (name, run) in report.all_runs() {
        for stage in run.stages.iter().filter(|stage| stage.disks.len() > 1) {
            let lines = lens::interference(&capture_of(run, stage)).sentences;
            sections.push(Section { title: format!("Who slows whom: {name}"), lines });
        }
    }
    sections
}
