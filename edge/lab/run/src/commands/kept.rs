//! What the lab kept: runs, experiments and bundles, found in files.

use super::{CommandError, ErrorKind};
use measured::{ExperimentRun, Kept, KeptError, Run};
use reports::{BundleText, NamedExperiment, NamedRun, Report, Section};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// The first bytes of everything that zstd compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A file larger than this is no result.
const BYTES_MAX: u64 = 2 << 30;

/// What a file holds, or several.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs that belong to no experiment, each under the name of its file, or of its place in a bundle.
    pub runs: Vec<(String, Run)>,
    /// Experiments.
    pub experiments: Vec<(String, ExperimentRun)>,
    captures: Vec<lens::Capture>,
    sections: Vec<Section>,
    /// Jobs and other texts.
    pub texts: Vec<BundleText>,
    /// What is missing or damaged.
    pub problems: Vec<String>,
    title: Option<String>,
}

impl Found {
    /// Reads more.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no result of this lab.
    pub fn add(&mut self, path: &Path) -> Result<(), CommandError> {
        match read(path)? {
            Some(found) => {
                self.join(found);
                Ok(())
            }
            None => Err(CommandError::new(
                ErrorKind::Refused,
                format!("{} is not a result of this lab", path.display()),
            )
            .hint("use `drystone lab audit` or `drystone lab compare` for results of other tools")),
        }
    }

    /// Takes what another holds.
    pub fn join(&mut self, other: Found) {
        self.runs.extend(other.runs);
        self.experiments.extend(other.experiments);
        self.captures.extend(other.captures);
        self.sections.extend(other.sections);
        self.texts.extend(other.texts);
        self.problems.extend(other.problems);
        self.title = self.title.take().or(other.title);
    }

    /// All of it as a report that is called `title`, or as the bundle, the first run or the first experiment is.
    pub fn report(&self, title: Option<&str>) -> Report<'_> {
        let of_run = || self.runs.first().map(|(_, run)| run.plan.name.clone());
        let of_experiment = || self.experiments.first().map(|(_, experiment)| experiment.name.clone());
        Report {
            title: (title.map(str::to_owned))
                .or_else(|| self.title.clone())
                .or_else(of_experiment)
                .or_else(of_run)
                .unwrap_or_default(),
            program: String::new(),
            runs: self.runs.iter().map(|(name, run)| NamedRun { name, run }).collect(),
            experiments: (self.experiments.iter())
                .map(|(name, experiment)| NamedExperiment { name, experiment })
                .collect(),
            captures: self.captures.clone(),
            sections: self.sections.clone(),
        }
    }

    /// All runs, those of experiments too, each with the name it goes by.
    pub fn into_runs(self) -> Vec<(String, Run)> {
        let of_experiments = self.experiments.into_iter().flat_map(|(_, experiment)| {
            (experiment.cells.into_iter()).flat_map(|cell| {
                let label = cell.label();
                cell.runs.into_iter().map(move |run| (label.clone(), run))
            })
        });
        self.runs.into_iter().chain(of_experiments).collect()
    }
}

/// Whether a file that begins so may hold a result of this lab.
pub fn is_kept(head: &[u8]) -> bool {
    head.starts_with(&ZSTD) || measured::is_kept(head)
}

/// Reads a file; nothing if it does not begin as results of this lab do.
///
/// # Errors
/// When it cannot be read, or begins like a result and is none.
pub fn read(path: &Path) -> Result<Option<Found>, CommandError> {
    let name = path.display().to_string();
    let mut file = open(path)?;
    let failed = |error: std::io::Error| CommandError::failed(format!("read {name}"), error);
    let mut head = Vec::new();
    (&mut file).take(64).read_to_end(&mut head).map_err(failed)?;
    file.rewind().map_err(failed)?;
    if head.starts_with(&ZSTD) {
        return bundle(&name, file).map(Some);
    }
    if !measured::is_kept(&head) {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    let kept = measured::read(&text)
        .map_err(|error: KeptError| CommandError::new(ErrorKind::Refused, format!("{name}: {error}")))?;
    let mut found = Found::default();
    match kept {
        Kept::Run(run) => found.runs.push((name, *run)),
        Kept::Experiment(experiment) => found.experiments.push((experiment.name.clone(), *experiment)),
    }
    Ok(Some(found))
}

fn bundle(name: &str, file: File) -> Result<Found, CommandError> {
    let bundle = reports::read_bundle(file)
        .map_err(|error| CommandError::new(ErrorKind::Refused, format!("{name}: {}", causes(&error))))?;
    Ok(Found {
        runs: bundle.runs,
        experiments: bundle.experiments,
        captures: bundle.captures,
        sections: bundle.sections,
        texts: bundle.texts,
        problems: bundle.problems.iter().map(|problem| format!("{name}: {problem}")).collect(),
        title: Some(bundle.manifest.title),
    })
}

/// An error with what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

/// Opens a file that may hold a result.
///
/// # Errors
/// When it is not there, or larger than any result.
pub fn open(path: &Path) -> Result<File, CommandError> {
    let failed = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Failed,
        };
        CommandError::new(kind, format!("read {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > BYTES_MAX {
        let text = format!(
            "{} has {}, which is more than a result can have",
            path.display(),
            base::units::format_bytes(size)
        );
        return Err(CommandError::new(ErrorKind::Refused, text));
    }
    Ok(file)
}
