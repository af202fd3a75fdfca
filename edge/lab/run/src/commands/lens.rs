//! `lens`: what disks did, from captures, traces, results, and live.

use super::watch::watch;
use super::{CommandError, ErrorKind, World, kept, run};
use crate::tracing::Tracing;
use clap::Args;
use lens::analysis::{Analysis, Analyzed, Options};
use lens::trace::{Format, TraceReader, TraceSummary};
use lens::vscsi::{self, Counting};
use lens::{Capture, CaptureBuilder, Disk};
use measured::{Run, StageRun};
use reports::{Report, Section};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Options of `lens`.
#[derive(Debug, Clone, Args)]
pub struct LensOptions {
    /// Captures: output of `vscsiStats` with or without `-c` (several files are one series); traces of blkparse, kernel tracepoints, fio's logs,
    /// MSR, Alibaba, Tencent or biosnoop; results of this lab; `-` for the standard input; virtual disks to watch live (disk:NAME).
    #[arg(required_unless_present = "live")]
    pub files: Vec<PathBuf>,
    /// Trace format [default: detected].
    #[arg(long, value_name = "FORM")]
    pub format: Option<String>,
    /// Seconds between the dumps of a vscsiStats series.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub every: f64,
    /// Counters of each dump start at zero, not at the start of collection.
    #[arg(long)]
    pub separate: bool,
    /// Seconds of each window of a trace.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub window: f64,
    /// Block device to trace live, through the kernel's tracepoints (needs root).
    #[arg(long, value_name = "DEVICE", conflicts_with = "files")]
    pub live: Option<PathBuf>,
    /// Duration of a live trace.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub seconds: u64,
    /// File for an HTML report with surfaces and heat maps.
    #[arg(long, value_name = "FILE", conflicts_with = "to_job")]
    pub html: Option<PathBuf>,
    /// Tool to write a job for that resembles the trace.
    #[arg(long, value_name = "fio", value_parser = ["fio"])]
    pub to_job: Option<String>,
}

/// A capture, and what its single I/Os tell, where they are known.
struct Found {
    capture: Capture,
    analyzed: Option<Analyzed>,
    told: Vec<String>,
}

/// Shows the workload of disks.
pub fn lens(options: &LensOptions, world: &mut World) -> Result<(), CommandError> {
    let found = match &options.live {
        Some(device) => live(device, options)?,
        None => match watched(options)?[..] {
            [] => read(options)?,
            ref disks => {
                let (time, window) = (Duration::from_secs(options.seconds), window_of(options)?);
                Found { capture: watch(disks, time, window, world)?, analyzed: None, told: Vec::new() }
            }
        },
    };
    if options.to_job.is_some() {
        return write_job(&found, options, world);
    }
    for line in found.told.iter().chain(&found.capture.notes) {
        eprintln!("lens: {line}");
    }
    if let Some(path) = &options.html {
        write_html(&found, path, world)?;
    }
    if world.json {
        #[derive(serde::Serialize)]
        struct Answer<'a> {
            capture: &'a Capture,
            analysis: Option<&'a Analyzed>,
            interference: lens::Interference,
            notes: &'a [String],
        }
        let interference = lens::interference(&found.capture);
        let (analysis, notes) = (found.analyzed.as_ref(), &found.told[..]);
        return world.say_json(&Answer { capture: &found.capture, analysis, interference, notes });
    }
    world.say(&lens::text::report(&found.capture, found.analyzed.as_ref()))
}

/// The virtual disks that are to be watched: all that is named, or none.
fn watched(options: &LensOptions) -> Result<Vec<&str>, CommandError> {
    let disks: Vec<&str> =
        options.files.iter().filter_map(|file| file.to_str()?.strip_prefix("disk:")).collect();
    match disks.len() == options.files.len() || disks.is_empty() {
        true => Ok(disks),
        false => Err(CommandError::new(ErrorKind::Usage, "live disks and files cannot be shown together")
            .hint("name only disks, or only files")),
    }
}

fn window_of(options: &LensOptions) -> Result<Duration, CommandError> {
    const WINDOW_MIN: f64 = 0.1;
    let window = Duration::try_from_secs_f64(options.window).ok();
    window.filter(|window| window.as_secs_f64() >= WINDOW_MIN).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("a window of {} s is too short", options.window))
            .hint(format!("{WINDOW_MIN} s is the shortest when disks are watched"))
    })
}

/// What is shown, as one HTML file.
fn write_html(found: &Found, path: &Path, world: &World) -> Result<(), CommandError> {
    let mut sections = Vec::new();
    let lines = lens::interference(&found.capture).sentences;
    if !lines.is_empty() {
        sections.push(Section { title: "Who slows whom".to_owned(), lines });
    }
    let report = Report {
        title: found.capture.source.clone(),
        program: world.program.clone(),
        captures: vec![found.capture.clone()],
        sections,
        ..Report::default()
    };
    let mut written = Vec::new();
    super::report::write(path, reports::html(&report).as_bytes(), &mut written)?;
    written.iter().for_each(|path| eprintln!("lens: wrote {path}"));
    Ok(())
}

fn write_job(found: &Found, options: &LensOptions, world: &mut World) -> Result<(), CommandError> {
    let Some(analyzed) = &found.analyzed else {
        return Err(CommandError::new(
            ErrorKind::Refused,
            "histograms do not contain the offsets of I/Os: a job can only be made from a trace",
        ));
    };
    let fitted = lens::fit::fit(analyzed, &found.capture.source, options.seconds);
    for note in &fitted.notes {
        eprintln!("lens: {note}");
    }
    let exported = jobs::export(&fitted.plan)
        .map_err(|error| CommandError::new(ErrorKind::Refused, error.to_string()))?;
    for loss in &exported.losses {
        eprintln!("lost: {loss}");
    }
    world.say(&exported.text)
}

fn unreadable(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Refused, error.to_string())
}

fn read(options: &LensOptions) -> Result<Found, CommandError> {
    let mut dumps = Vec::new();
    let mut found: Option<Found> = None;
    for file in &options.files {
        let name = file.display().to_string();
        let mut input = open(file)?;
        let head = input.fill_buf().map_err(|error| CommandError::failed(format!("read {name}"), error))?;
        let is_kept = kept::is_kept(head);
        let head = String::from_utf8_lossy(&head[..head.len().min(4096)]).into_owned();
        if is_kept && let Some(of) = kept::read(file)? {
            found = Some(ours(file, of)?);
        } else if vscsi::is_dump(&head) {
            let mut text = String::new();
            input
                .read_to_string(&mut text)
                .map_err(|error| CommandError::failed(format!("read {name}"), error))?;
            dumps.extend(vscsi::read_dumps(&name, &text).map_err(|error| unreadable(&error))?);
        } else {
            found = Some(trace(&name, input, options)?);
        }
    }
    if !dumps.is_empty() {
        let times: Vec<f64> = (1..=dumps.len()).map(|index| index as f64 * options.every).collect();
        let counting = if options.separate { Counting::ResetEachTime } else { Counting::Cumulative };
        let source = options.files[0].display().to_string();
        let capture = vscsi::capture(source, &dumps, &times, counting).map_err(|error| unreadable(&error))?;
        return Ok(Found { capture, analyzed: None, told: Vec::new() });
    }
    found.ok_or_else(|| CommandError::new(ErrorKind::Usage, "no file is named"))
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened = std::fs::File::open(file).map_err(|error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Failed
        };
        CommandError::new(kind, format!("read {}: {error}", file.display()))
    })?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, opened)))
}

fn format_of(options: &LensOptions) -> Result<Option<Format>, CommandError> {
    let Some(name) = &options.format else { return Ok(None) };
    let known = Format::ALL.into_iter().find(|format| format.name() == name);
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    known.map(Some).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("`{name}` is not a trace format"))
            .hint(format!("write one of: {}", names.join(", ")))
    })
}

fn trace(name: &str, input: Box<dyn BufRead>, options: &LensOptions) -> Result<Found, CommandError> {
    let mut builder = CaptureBuilder::new(options.window);
    let mut analysis = Analysis::new(Options::default());
    let told = lens::trace::read(name, input, format_of(options)?, |event| {
        builder.event(event);
        analysis.event(event);
    })
    .map_err(|error| unreadable(&error))?;
    Ok(put_together(name, builder, &analysis, &told))
}

fn put_together(name: &str, builder: CaptureBuilder, analysis: &Analysis, told: &TraceSummary) -> Found {
    Found {
        capture: builder.finish(name, &told.disks),
        analyzed: Some(analysis.finish(&told.disks)),
        told: told.sentences(),
    }
}

fn live(device: &Path, options: &LensOptions) -> Result<Found, CommandError> {
    let failed =
        |error: crate::tracing::TracingError| CommandError::new(ErrorKind::Failed, error.to_string());
    let mut tracing = Tracing::start(device).map_err(failed)?;
    let mut reader = TraceReader::new(Format::Tracepoints, 1024);
    let mut builder = CaptureBuilder::new(options.window);
    let mut analysis = Analysis::new(Options::default());
    let interrupted = run::on_signals();
    eprintln!("lens: tracing {} for {} s", device.display(), options.seconds);
    let until = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < until && !interrupted.load(Ordering::Relaxed) {
        let mut take = |event: &lens::Event| {
            builder.event(event);
            analysis.event(event);
        };
        tracing.lines(|line| reader.line(line, &mut take)).map_err(failed)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    run::end_signals(&interrupted);
    let name = device.display().to_string();
    let told = reader
        .finish(&name, &mut |event| {
            builder.event(event);
            analysis.event(event);
        })
        .map_err(|_| {
            let text =
                format!("no I/O on {name} in {} s of tracing ({} lines)", options.seconds, tracing.lines);
            CommandError::new(ErrorKind::Refused, text)
        })?;
    Ok(put_together(&name, builder, &analysis, &told))
}

fn ours(file: &Path, of: kept::Found) -> Result<Found, CommandError> {
    let runs = of.into_runs();
    let stages: Vec<(&Run, &StageRun)> =
        runs.iter().flat_map(|(_, run)| run.stages.iter().map(move |stage| (run, stage))).collect();
    let Some((run, stage)) = stages.first() else {
        return Err(CommandError::new(ErrorKind::Refused, format!("{} holds no stage", file.display())));
    };
    let mut told = Vec::new();
    if stages.len() > 1 {
        told.push(format!("only the first of {} stages is shown", stages.len()));
    }
    let mut capture = capture_of(run, stage);
    capture.source = file.display().to_string();
    Ok(Found { capture, analyzed: None, told })
}

/// What the targets of a stage saw, each under the name of its virtual machine where it is one's alone.
pub fn capture_of(run: &Run, stage: &StageRun) -> Capture {
    let planned = run.plan.stages.get(stage.stage);
    let name_of = |target: &str| -> String {
        let index = run.targets.iter().position(|facts| facts.opened == target || facts.name == target);
        let machines = planned
            .into_iter()
            .flat_map(|planned| &planned.groups)
            .filter(|group| index.is_some_and(|index| group.targets.contains(&index)));
        let mut names: Vec<&str> = machines.filter_map(|group| group.vm.as_deref()).collect();
        names.dedup();
        let alone = |vm: &str| run.targets.len() > 1 && disks_of(run, stage, vm) == 1;
        match names[..] {
            [vm] if alone(vm) => vm.to_owned(),
            _ => target.to_owned(),
        }
    };
    let disks = stage.disks.iter().map(|series| {
        let samples = series.samples.iter().map(|sample| (sample.at, sample.seconds, &sample.statistics));
        Disk::from_statistics(name_of(&series.name), samples)
    });
    Capture { source: run.plan.name.clone(), disks: disks.collect(), notes: Vec::new() }
}

/// Targets that a virtual machine uses.
fn disks_of(run: &Run, stage: &StageRun, vm: &str) -> usize {
    let Some(planned) = run.plan.stages.get(stage.stage) else { return 0 };
    let groups = planned.groups.iter().filter(|group| group.vm.as_deref() == Some(vm));
    let mut targets: Vec<usize> = groups.flat_map(|group| group.targets.iter().copied()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.len()
}
