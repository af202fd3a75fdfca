//! `lab audit` and `lab compare`: what can be concluded from results, ours and others'.

mod folder;

use super::baseline::BaselineFolder;
use super::kept::{self, Found};
use super::{CommandError, ErrorKind, World};
use clap::Args;
use results::{Auditor, Claims, ResultSet};
use statistics::compare::Verdict;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Options of `lab audit`.
#[derive(Debug, Clone, Args)]
pub struct AuditOptions {
    /// Result files or folders of fio, DiskSPD, Vdbench, Iometer, HCIBench, esxtop or this lab, or tables as CSV.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// I/Os in flight per VM (threads times queue depth), as the results claim.
    #[arg(long, value_name = "N")]
    pub outstanding: Option<f64>,
    /// Settings published beside a table, as text: `threads = 4, outstanding = 16` [default: from a README in the same folder].
    #[arg(long, value_name = "TEXT")]
    pub caption: Option<String>,
    /// Bound of the mean latency, for sweeps.
    #[arg(long, value_name = "MILLISECONDS")]
    pub latency: Option<f64>,
}

/// Says what can be concluded.
pub fn audit(options: &AuditOptions, world: &mut World) -> Result<(), CommandError> {
    let claims = Claims {
        outstanding_per_vm: options.outstanding,
        objective: options.latency.map(|ms| statistics::knee::Objective::Mean(ms / 1e3)),
    };
    let mut auditor = Auditor::new(claims);
    for file in &options.files {
        // Set by set: a folder may hold more than memory does.
        visit(file, options.caption.as_deref(), &mut |set| auditor.add(&set))?;
    }
    let audit = auditor.finish();
    match world.json {
        true => world.say_json(&audit),
        false => world.say(&audit.to_string()),
    }
}

/// Reads a result, or a folder of them.
pub fn read(path: &Path, caption: Option<&str>) -> Result<Vec<ResultSet>, CommandError> {
    let mut sets = Vec::new();
    visit(path, caption, &mut |set| sets.push(set))?;
    Ok(sets)
}

/// Reads a result, or a folder of them, and gives every set to `each` as soon as it is read.
fn visit(path: &Path, caption: Option<&str>, each: &mut dyn FnMut(ResultSet)) -> Result<(), CommandError> {
    if path.is_dir() {
        return folder::visit(path, each);
    }
    file_sets(path, &path.display().to_string(), caption)?.into_iter().for_each(each);
    Ok(())
}

/// The results of one file, under this name.
fn file_sets(path: &Path, name: &str, caption: Option<&str>) -> Result<Vec<ResultSet>, CommandError> {
    if let Some(found) = kept::read(path)? {
        return Ok(sets_of(name, &found));
    }
    let text = text_of(path)?;
    let beside = caption.map(str::to_owned).or_else(|| caption_beside(path));
    results::read(name, &text, beside.as_deref()).map(|set| vec![set]).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Refused, error.to_string())
}

/// A text, whatever it is encoded in.
pub fn text_of(path: &Path) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    kept::open(path)?
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::failed(format!("read {}", path.display()), error))?;
    Ok(super::job::decode(&bytes))
}

/// Runs go by their stages, those of experiments by their cells.
fn sets_of(source: &str, found: &Found) -> Vec<ResultSet> {
    let mut sets: Vec<ResultSet> =
        found.runs.iter().map(|(_, run)| super::ours::result_set(source, run)).collect();
    for cell in found.experiments.iter().flat_map(|(_, experiment)| &experiment.cells) {
        sets.extend(cell.runs.iter().map(|run| {
            let mut set = super::ours::result_set(source, run);
            set.runs.iter_mut().for_each(|run| run.label = cell.label());
            set
        }));
    }
    if let Some(first) = sets.first_mut() {
        first.notes.extend(found.problems.iter().map(results::Note::new));
    }
    sets
}

/// What a README in the same folder says of the file: its lines that name it.
fn caption_beside(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let readme = std::fs::read_to_string(path.parent()?.join("README.md")).ok()?;
    let lines: Vec<&str> = readme.lines().filter(|line| line.contains(name)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Options of `lab compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareOptions {
    /// Results to compare: the first with each of the others. Join repeated runs of one side with commas (A1,A2 B1,B2).
    #[arg(required = true)]
    pub sides: Vec<String>,
    /// Baseline to compare with. The command fails if anything is slower than the baseline.
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Location of the baselines.
    #[command(flatten)]
    pub folder: BaselineFolder,
    /// When to fail (exit code 3): if anything is slower, or also if a comparison is inconclusive [default: slower with --baseline].
    #[arg(long, value_name = "VERDICT")]
    pub fail_on: Option<FailOn>,
    /// Smallest difference that matters, in percent.
    #[arg(long, default_value_t = 2.0, value_name = "PERCENT")]
    pub effect: f64,
    /// File for an HTML report: the verdicts, and the charts of runs of this lab.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Which verdicts make a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Something is slower than on the first side.
    Slower,
    /// Something is slower, or it cannot be told whether it is.
    Unclear,
}

/// Compares results.
pub fn compare(options: &CompareOptions, world: &mut World) -> Result<(), CommandError> {
    let mut options = options.clone();
    if let Some(name) = &options.baseline {
        let files = options.folder.files(name, world)?;
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        options.sides.insert(0, files.join(","));
        options.fail_on.get_or_insert(FailOn::Slower);
    }
    let options = &options;
    if options.sides.len() < 2 {
        let text = "only one side is given, so there is nothing to compare";
        return Err(
            CommandError::new(ErrorKind::Usage, text).hint("add results of another side, or --baseline NAME")
        );
    }
    let mut sides = Vec::new();
    for side in &options.sides {
        let mut sets = Vec::new();
        for file in side.split(',') {
            sets.extend(read(Path::new(file), None)?);
        }
        sides.push((side.clone(), sets));
    }
    let comparison = crate::comparison::compare(&sides, options.effect / 100.0);
    if let Some(path) = &options.html {
        let mut written = Vec::new();
        let report = side_by_side(options, &comparison, &world.program)?;
        super::report::write(path, report.as_bytes(), &mut written)?;
        written.iter().for_each(|path| eprintln!("lab: wrote {path}"));
    }
    match world.json {
        true => world.say_json(&comparison),
        false => world.say(&comparison.to_string()),
    }?;
    options.fail_on.map_or(Ok(()), |fail_on| verdict(&comparison, fail_on))
}

/// The verdict that a CI can use.
fn verdict(comparison: &crate::comparison::Comparisons, fail_on: FailOn) -> Result<(), CommandError> {
    let first = &comparison.sides[0];
    if comparison.rows.is_empty() {
        let text = format!("nothing was compared with {first}: the sides have no job and figure in common");
        return Err(CommandError::new(ErrorKind::Refused, text));
    }
    let count = |is: &dyn Fn(&Verdict) -> bool| {
        comparison.rows.iter().filter(|row| is(&row.comparison.verdict)).count()
    };
    let slower = count(&|verdict| matches!(verdict, Verdict::Slower { .. }));
    let certain = |verdict: &Verdict| {
        matches!(verdict, Verdict::Slower { .. } | Verdict::Faster { .. } | Verdict::NoDifference { .. })
    };
    let unclear = comparison.rows.len() - count(&certain);
    let all = comparison.rows.len();
    let text = match fail_on {
        _ if slower > 0 => format!("{slower} of {all} figures are slower than those of {first}"),
        FailOn::Unclear if unclear > 0 => {
            format!("{unclear} of {all} figures are inconclusive: they may be slower than those of {first}")
        }
        FailOn::Slower | FailOn::Unclear => return Ok(()),
    };
    Err(CommandError::new(ErrorKind::Refused, text))
}

/// A comparison as HTML: the verdicts on top, and all runs of this lab below.
fn side_by_side(
    options: &CompareOptions,
    comparison: &crate::comparison::Comparisons,
    program: &str,
) -> Result<String, CommandError> {
    let mut found = Found::default();
    for file in options.sides.iter().flat_map(|side| side.split(',')) {
        if let Some(of) = kept::read(Path::new(file))? {
            found.join(of);
        }
    }
    let mut report = found.report(Some(&comparison.sides.join(" and ")));
    report.program = program.to_owned();
    let lines = comparison.to_string().lines().map(str::to_owned).collect();
    report.sections.insert(0, reports::Section { title: "What can be said".to_owned(), lines });
    Ok(reports::html(&report))
}
