//! Jobs as people give them: a file, the standard input, or the words of a command line.

use super::{CommandError, ErrorKind};
use clap::Args;
use jobs::{Dialect, Options, Source};
use measured::SourceText;
use plan::{Length, Plan, Target, Verify, VerifyWhen};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The job and the changes to it.
#[derive(Debug, Clone, Args)]
pub struct JobOptions {
    /// Job file of fio, DiskSPD, Vdbench or Iometer; `-` for the standard input; or a command line in quotes.
    #[arg(allow_hyphen_values = true)]
    pub job: String,
    /// Dialect of the job [default: detected].
    #[arg(long, value_name = "fio|diskspd|diskspd-xml|vdbench|iometer")]
    pub dialect: Option<String>,
    /// Target to use in place of the job's: a file, a block device, an NBD address or disk:NAME. Give one for all of them, one for
    /// each in order, or NAME=TARGET (HOST:NAME=TARGET where hosts have the same path).
    #[arg(long = "target", short = 't', value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Size of a target file to create, e.g. 10GiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Measured seconds of every stage, in place of the job's.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Ramp-up seconds of every stage, in place of the job's.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub ramp: Option<Duration>,
    /// Number of times to run every stage.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Verify written data: reads during the run, and everything at the end.
    #[arg(long)]
    pub verify: bool,
    /// Show every stage, group and note of the plan [default: what fits on a screen].
    #[arg(long, short = 'v')]
    pub verbose: bool,
    /// Variable of the job, as `$NAME` of Vdbench or `${NAME}` of fio.
    #[arg(long = "define", short = 'D', value_name = "NAME=VALUE")]
    pub definitions: Vec<String>,
}

fn size(text: &str) -> Result<u64, String> {
    base::units::parse_bytes(text).map_err(|error| error.to_string())
}

/// `90`, `1.5`, `90s`, `5m`, `1h`.
fn seconds(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    let value: Option<f64> = number.parse().ok();
    value
        .and_then(|value| Duration::try_from_secs_f64(value * factor).ok())
        .ok_or_else(|| format!("`{text}` is not a duration: write for example 60, 60s, 5m or 1h"))
}

/// A job that was read.
pub struct Job {
    /// What it does, with the changes that the options name.
    pub plan: Plan,
    /// What was read: the job itself, then what it includes.
    pub sources: Vec<SourceText>,
}

/// Reads the job and makes the changes that the options name.
pub fn read(options: &JobOptions) -> Result<Job, CommandError> {
    let (source, folder) = source_of(&options.job)?;
    let definitions =
        options.definitions.iter().map(|text| definition(text)).collect::<Result<Vec<_>, _>>()?;
    let environment = |name: &str| {
        definitions
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .or_else(|| std::env::var(name).ok())
    };
    let included = RefCell::new(Vec::new());
    let include = |name: &str| {
        // Includes of a job file are named with its folder already; files that a command line names are not.
        let path = match Path::new(name).starts_with(&folder) {
            true => PathBuf::from(name),
            false => folder.join(name),
        };
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        included.borrow_mut().push(SourceText { name: path.display().to_string(), text: text.clone() });
        Ok(text)
    };
    let machine = crate::runner::this_machine();
    let reading = Options {
        environment: &environment,
        include: &include,
        variables: definitions.clone(),
        has_targets: !options.targets.is_empty(),
        duration: options.duration.map(|duration| duration.as_secs().max(1)),
        is_device: &is_device,
        page_size: 4096,
        cpu_count: machine.processors,
        memory_bytes: memory_bytes(),
        ..Options::default()
    };
    let imported = match dialect_of(options)? {
        Some(dialect) => jobs::import_as(dialect, &source, &reading),
        None => jobs::import(&source, &reading),
    };
    let mut plan = imported.map_err(|error| CommandError::new(ErrorKind::Usage, error.to_string()))?.plan;
    change(&mut plan, options);
    stand_in(&mut plan, &options.targets)?;
    let mut sources = vec![SourceText { name: source.name, text: source.text }];
    sources.extend(included.into_inner());
    Ok(Job { plan, sources })
}

fn dialect_of(options: &JobOptions) -> Result<Option<Dialect>, CommandError> {
    options.dialect.as_deref().map(dialect_named).transpose()
}

/// The dialect of this name.
fn dialect_named(name: &str) -> Result<Dialect, CommandError> {
    Dialect::from_name(name).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("`{name}` is not a dialect of job files"))
            .hint("write fio, diskspd, diskspd-xml, vdbench or iometer")
    })
}

/// The text of a job, and the folder that its includes are sought in.
fn source_of(job: &str) -> Result<(Source, PathBuf), CommandError> {
    let here = PathBuf::from(".");
    if job == "-" {
        let text = std::io::read_to_string(std::io::stdin())
            .map_err(|error| CommandError::failed("read the job from the standard input", error))?;
        return Ok((Source::new("standard input", text), here));
    }
    let path = Path::new(job);
    if !path.exists() && jobs::is_command_line(job) {
        return Ok((Source::new("command line", job), here));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Failed,
        };
        CommandError::new(kind, format!("read {job}: {error}"))
            .hint("name a job file, `-`, or a command line in quotes")
    })?;
    Ok((Source::new(job, decode(&bytes)), path.parent().map_or(here, Path::to_owned)))
}

/// Text in UTF-8, or in UTF-16 with its mark as Windows writes it; other bytes are taken for Latin-1.
pub(super) fn decode(bytes: &[u8]) -> String {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
        },
    }
}

/// Whether a name stands for a device: what is there says so, else the name does.
fn is_device(name: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::metadata(name) {
        Ok(found) => found.file_type().is_block_device() || found.file_type().is_char_device(),
        Err(_) => jobs::is_device(name),
    }
}

fn definition(text: &str) -> Result<(String, String), CommandError> {
    text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("`{text}` defines nothing")).hint("write NAME=VALUE")
    })
}

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.map_or(16 << 30, |kib| kib << 10)
}

fn change(plan: &mut Plan, options: &JobOptions) {
    for stage in &mut plan.stages {
        if let Some(repeat) = options.repeat {
            stage.repeats = repeat;
        }
        for group in &mut stage.groups {
            if let Some(duration) = options.duration {
                group.timing.length = Length::Time(duration);
            }
            if options.verify && group.verify.is_none() {
                group.verify = Some(Verify { when: VerifyWhen::After, interval: None, fatal: false });
            }
            if let Some(ramp) = options.ramp {
                group.timing.ramp = ramp;
            }
        }
    }
    if let Some(size) = options.size {
        plan.targets.iter_mut().for_each(|target| target.size = Some(size));
    }
}

/// Puts the targets that a person named in the place of the job's.
fn stand_in(plan: &mut Plan, targets: &[String]) -> Result<(), CommandError> {
    let (named, plain): (Vec<&String>, Vec<&String>) = targets.iter().partition(|text| {
        text.split_once('=')
            .is_some_and(|(name, _)| plan.targets.iter().any(|of| of.name == name || of.label() == name))
    });
    for text in named {
        let (name, target) = text.split_once('=').unwrap_or_default();
        plan.targets
            .iter_mut()
            .filter(|of| of.name == name || of.label() == name)
            .for_each(|of| target.clone_into(&mut of.name));
    }
    match plain.as_slice() {
        [] => {}
        [all] => one_for_all(plan, all),
        several if several.len() == plan.targets.len() => {
            plan.targets.iter_mut().zip(several).for_each(|(of, name)| (*name).clone_into(&mut of.name));
        }
        several => {
            let names: Vec<String> = plan.targets.iter().map(Target::label).collect();
            return Err(CommandError::new(
                ErrorKind::Usage,
                format!(
                    "{} targets are given, but the job has {} ({})",
                    several.len(),
                    names.len(),
                    names.join(" ")
                ),
            )
            .hint("give one target for all of them, one target for each, or NAME=TARGET"));
        }
    }
    Ok(())
}

/// All of the job's targets become this one.
fn one_for_all(plan: &mut Plan, name: &str) {
    let size = plan.targets.iter().filter_map(|target| target.size).max();
    plan.targets = vec![Target { size, ..Target::named(name) }];
    for group in plan.stages.iter_mut().flat_map(|stage| &mut stage.groups) {
        // A group keeps as many I/Os outstanding as on the targets that it had.
        group.targets.iter_mut().for_each(|target| *target = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        job: JobOptions,
    }

    fn plan(words: &[&str]) -> Result<Plan, CommandError> {
        let line = Line::try_parse_from(std::iter::once(&"lab").chain(words));
        read(&line.unwrap_or_else(|error| panic!("{words:?}: {error}")).job).map(|job| job.plan)
    }

    #[test]
    fn a_command_line_is_a_job_whatever_it_begins_with() {
        for job in [
            "diskspd -b8K -d60 x.dat",
            "-b8K -d60 x.dat",
            "C:\\Tools\\diskspd.exe -b8K -d60 x.dat",
            "sudo /usr/bin/fio -name=x -bs=8k -size=1m",
        ] {
            let plan = plan(&[job, "--duration", "5", "-v"]).unwrap_or_else(|error| panic!("{job}: {error}"));
            let group = &plan.stages[0].groups[0];
            assert_eq!(
                (group.pattern.size_max(), group.timing.length),
                (8192, Length::Time(Duration::from_secs(5)))
            );
        }
        assert!(plan(&["no-such-file.fio"]).is_err());
    }

    #[test]
    fn what_is_below_dev_is_a_device_if_it_is_one() {
        assert!(is_device("/dev/null") && is_device("/dev/sdzz"));
        assert!(!is_device("/dev") && !is_device("/dev/shm") && !is_device("/dev/shm/new"));
    }

    #[test]
    fn a_target_of_one_host_is_named_with_its_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.vdb");
        let text = "hd=h1\nhd=h2\nsd=sd1,host=h1,lun=/dev/sdb\nsd=sd2,host=h2,lun=/dev/sdb\nwd=w,sd=sd*\nrd=r,wd=w,iorate=max\n";
        std::fs::write(&file, text).expect("it can be written");
        let file = file.display().to_string();
        let names = |targets: &[&str]| {
            let words: Vec<&str> = std::iter::once(file.as_str()).chain(targets.iter().copied()).collect();
            let plan = plan(&words).unwrap_or_else(|error| panic!("{error}"));
            plan.targets.into_iter().map(|target| target.name).collect::<Vec<String>>()
        };
        assert_eq!(names(&["-t", "h1:/dev/sdb=/data/a"]), ["/data/a", "/dev/sdb"]);
        assert_eq!(names(&["-t", "/dev/sdb=/data/a"]), ["/data/a", "/data/a"]);
        assert_eq!(names(&["-t", "/data/a", "-t", "/data/b"]), ["/data/a", "/data/b"]);
    }
}
