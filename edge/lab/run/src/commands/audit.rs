//! `lab audit` and `lab compare`: what can be concluded from results, ours and others'.

use super::{CommandError, ErrorKind, World};
use clap::Args;
use results::{Claims, ResultSet};
use std::path::{Path, PathBuf};

/// A file larger than this is no result.
const BYTES_MAX: u64 = 2 << 30;

/// Options of `lab audit`.
#[derive(Debug, Clone, Args)]
pub struct AuditOptions {
    /// Results: of fio, DiskSPD, Vdbench, Iometer, HCIBench (folders), of this lab, or tables as CSV.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// What is said to be outstanding for each VM (threads times depth).
    #[arg(long, value_name = "N")]
    pub outstanding: Option<f64>,
    /// What was published beside a table: a text with `threads = 4, outstanding = 16` [default: what a README beside the file says
    /// of it].
    #[arg(long, value_name = "TEXT")]
    pub caption: Option<String>,
    /// A mean latency that must hold, for sweeps.
    #[arg(long, value_name = "MILLISECONDS")]
    pub latency: Option<f64>,
}

/// Says what can be concluded.
pub fn audit(options: &AuditOptions, world: &mut World) -> Result<(), CommandError> {
    let mut sets = Vec::new();
    for file in &options.files {
        sets.extend(read(file, options.caption.as_deref())?);
    }
    let claims = Claims {
        outstanding_per_vm: options.outstanding,
        objective: options.latency.map(|ms| statistics::knee::Objective::Mean(ms / 1e3)),
        ..Claims::default()
    };
    let audit = results::audit(&sets, &claims);
    match world.json {
        true => world.say_json(&audit),
        false => world.say(&audit.to_string()),
    }
}

/// Reads a result, or a folder of them.
pub fn read(path: &Path, caption: Option<&str>) -> Result<Vec<ResultSet>, CommandError> {
    let name = path.display().to_string();
    if path.is_dir() {
        let files = files_of(path)?;
        let texts: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        return results::read_folder(&texts).map_err(|error| unreadable(&error));
    }
    let text = text_of(path)?;
    if let Some(run) = ours(&text) {
        return Ok(vec![super::ours::result_set(&name, &run?)]);
    }
    if text.starts_with("{\"experiment_version\":") {
        let experiment = experiment(&text)?;
        let sets = experiment.cells.iter().flat_map(|cell| {
            cell.runs.iter().map(|run| {
                let mut set = super::ours::result_set(&name, run);
                set.runs.iter_mut().for_each(|run| run.label = cell.label());
                set
            })
        });
        return Ok(sets.collect());
    }
    let beside = caption.map(str::to_owned).or_else(|| caption_beside(path));
    results::read(&name, &text, beside.as_deref()).map(|set| vec![set]).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Refused, error.to_string())
}

pub fn text_of(path: &Path) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Failed
        };
        CommandError::new(kind, format!("read {}: {error}", path.display()))
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > BYTES_MAX {
        let text =
            format!("{} has {}: no result is so large", path.display(), base::units::format_bytes(size));
        return Err(CommandError::new(ErrorKind::Refused, text));
    }
    Ok(super::job::decode(&std::fs::read(path).map_err(failed)?))
}

/// A result of this lab, if the text is one.
fn ours(text: &str) -> Option<Result<measured::Run, CommandError>> {
    if !text.starts_with("{\"version\":") {
        return None;
    }
    let read = serde_json::from_str::<measured::Run>(text).map_err(|error| {
        CommandError::new(ErrorKind::Refused, format!("a result of this lab that cannot be read: {error}"))
            .hint("it may be cut short, or written by a newer program")
    });
    Some(read.and_then(|run| match run.version <= measured::VERSION {
        true => Ok(run),
        false => Err(CommandError::new(
            ErrorKind::Refused,
            format!(
                "the result has version {}, and this program reads up to {}",
                run.version,
                measured::VERSION
            ),
        )),
    }))
}

/// The runs of a result of this lab: one, or all of an experiment.
pub fn our_runs(path: &Path) -> Result<Vec<measured::Run>, CommandError> {
    let text = text_of(path)?;
    if text.starts_with("{\"experiment_version\":") {
        return Ok(experiment(&text)?.cells.into_iter().flat_map(|cell| cell.runs).collect());
    }
    match ours(&text) {
        Some(run) => Ok(vec![run?]),
        None => {
            Err(CommandError::new(ErrorKind::Refused, format!("{} is no result of this lab", path.display())))
        }
    }
}

/// An experiment's results.
pub fn experiment(text: &str) -> Result<measured::ExperimentRun, CommandError> {
    let read = serde_json::from_str::<measured::ExperimentRun>(text).map_err(|error| {
        CommandError::new(ErrorKind::Refused, format!("an experiment's result that cannot be read: {error}"))
            .hint("it may be cut short, or written by a newer program")
    })?;
    match read.experiment_version <= measured::EXPERIMENT_VERSION {
        true => Ok(read),
        false => Err(CommandError::new(
            ErrorKind::Refused,
            format!("the result has version {}, which this program does not know", read.experiment_version),
        )),
    }
}

/// What a README in the same folder says of the file: its lines that name it.
fn caption_beside(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let readme = std::fs::read_to_string(path.parent()?.join("README.md")).ok()?;
    let lines: Vec<&str> = readme.lines().filter(|line| line.contains(name)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// All files below a folder that are text, with their paths in it.
fn files_of(folder: &Path) -> Result<Vec<(String, String)>, CommandError> {
    const FILES_MAX: usize = 10_000;
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(&next)
            .map_err(|error| CommandError::failed(format!("read the folder {}", next.display()), error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = text_of(&path) {
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                files.push((name, text));
            }
            if files.len() > FILES_MAX {
                let text = format!(
                    "{} has more than {FILES_MAX} files: name a folder with results",
                    folder.display()
                );
                return Err(CommandError::new(ErrorKind::Refused, text));
            }
        }
    }
    Ok(files)
}

/// Options of `lab compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareOptions {
    /// Results to compare: the first with each of the others. Several runs of one side: join them with commas (A1,A2 B1,B2).
    #[arg(required = true, num_args = 2..)]
    pub sides: Vec<String>,
    /// The smallest difference that matters, in percent.
    #[arg(long, default_value_t = 2.0, value_name = "PERCENT")]
    pub effect: f64,
}

/// Compares results.
pub fn compare(options: &CompareOptions, world: &mut World) -> Result<(), CommandError> {
    let mut sides = Vec::new();
    for side in &options.sides {
        let mut sets = Vec::new();
        for file in side.split(',') {
            sets.extend(read(Path::new(file), None)?);
        }
        sides.push((side.clone(), sets));
    }
    let comparison = crate::comparison::compare(&sides, options.effect / 100.0);
    match world.json {
        true => world.say_json(&comparison),
        false => world.say(&comparison.to_string()),
    }
}
