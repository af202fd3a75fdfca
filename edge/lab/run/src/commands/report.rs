//! `lab report`: results for people (a terminal, one HTML file), for tables (CSV, JSON, Parquet), and for other machines (a
//! bundle).

use super::kept::Found;
use super::{CommandError, ErrorKind, World, capture_of, experiment, show};
use clap::Args;
use reports::{BundleText, Report, Section};
use std::path::{Path, PathBuf};

/// Options of `lab report`.
#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// Results of this lab: runs, experiments, bundles. Without another option they are shown here, with --json as JSON.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// File for a self-contained HTML report: charts, surfaces, figures, conclusions.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Folder for CSV tables: stages.csv, groups.csv, seconds.csv.
    #[arg(long, value_name = "FOLDER")]
    pub csv: Option<PathBuf>,
    /// Folder for Parquet files of every second and every histogram bucket: intervals.parquet, buckets.parquet.
    #[arg(long, value_name = "FOLDER")]
    pub parquet: Option<PathBuf>,
    /// Write a bundle (.tar.zst): jobs, versions, targets and raw histograms, to be shown and compared on another machine.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Text file to add to the bundle, for example a description of the cluster.
    #[arg(long = "with", value_name = "FILE", requires = "bundle")]
    pub with: Vec<PathBuf>,
    /// Title of the report [default: the name of the first result].
    #[arg(long)]
    pub title: Option<String>,
}

/// Writes reports.
pub fn report(options: &ReportOptions, world: &mut World) -> Result<(), CommandError> {
    let mut found = Found::default();
    options.files.iter().try_for_each(|file| found.add(file))?;
    for problem in &found.problems {
        eprintln!("lab: {problem}");
    }
    for path in &options.with {
        found.texts.push(text(path)?);
    }
    let mut report = found.report(options.title.as_deref());
    report.program.clone_from(&world.program);
    add_interference(&mut report);
    let written = write_all(&report, &found.texts, options)?;
    if written.is_empty() {
        return match world.json {
            true => world.say(&reports::json(&report)),
            false => world.say(&terminal(&report)),
        };
    }
    if world.json {
        #[derive(serde::Serialize)]
        struct Answer {
            written: Vec<String>,
        }
        return world.say_json(&Answer { written });
    }
    written.iter().try_for_each(|path| world.say(&format!("wrote {path}")))
}

/// Writes what the options name. Returns the paths.
fn write_all(
    report: &Report,
    texts: &[BundleText],
    options: &ReportOptions,
) -> Result<Vec<String>, CommandError> {
    let mut written = Vec::new();
    if let Some(path) = &options.html {
        write(path, reports::html(report).as_bytes(), &mut written)?;
    }
    if let Some(folder) = &options.csv {
        for file in reports::csv(report) {
            write(&folder.join(format!("{}.csv", file.name)), file.text.as_bytes(), &mut written)?;
        }
    }
    if let Some(folder) = &options.parquet {
        let encode = |bytes: Result<Vec<u8>, reports::ParquetError>| {
            bytes.map_err(|error| CommandError::failed("encode Parquet", error))
        };
        let intervals = encode(reports::parquet_intervals(report))?;
        write(&folder.join("intervals.parquet"), &intervals, &mut written)?;
        let buckets = encode(reports::parquet_buckets(report))?;
        write(&folder.join("buckets.parquet"), &buckets, &mut written)?;
    }
    if let Some(path) = &options.bundle {
        write(path, &reports::bundle(report, texts), &mut written)?;
    }
    Ok(written)
}

/// Writes a file whole or not at all, and the folders that it stands in.
pub(super) fn write(path: &Path, bytes: &[u8], written: &mut Vec<String>) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::failed(format!("write {}", path.display()), error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).map_err(|error| {
        // What was written of it is of no use; that it is there still is no worse than the failure that is told.
        let _ = std::fs::remove_file(&part);
        failed(error)
    })?;
    written.push(path.display().to_string());
    Ok(())
}

fn text(path: &Path) -> Result<BundleText, CommandError> {
    let text = super::audit::text_of(path)?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string());
    match name.is_empty() {
        true => Err(CommandError::new(ErrorKind::Usage, format!("{} has no name", path.display()))),
        false => Ok(BundleText { name, text }),
    }
}

/// Tables and sentences of everything.
fn terminal(report: &Report) -> String {
    let mut text = String::new();
    for named in &report.runs {
        text.push_str(&format!("{}: {}\n", named.name, named.run.plan.name));
        text.push_str(&show::text(named.run));
    }
    for named in &report.experiments {
        text.push_str(&experiment::text(named.experiment));
    }
    for section in &report.sections {
        text.push_str(&format!("{}\n", section.title));
        section.lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// Who slows whom, in every run in which one of several disks changed its load. A bundle says so already.
fn add_interference(report: &mut Report) {
    let mut sections = Vec::new();
    for (name, run) in report.all_runs() {
        let title = format!("Who slows whom: {name}");
        if report.sections.iter().any(|section| section.title == title) {
            continue;
        }
        let stages = run.stages.iter().filter(|stage| stage.disks.len() > 1);
        let found = stages.map(|stage| lens::interference(&capture_of(run, stage)));
        // Where no disk changed its load, there is nothing to tell.
        let lines: Vec<String> =
            found.filter(|found| !found.events.is_empty()).flat_map(|found| found.sentences).collect();
        if !lines.is_empty() {
            sections.push(Section { title, lines });
        }
    }
    report.sections.extend(sections);
}
