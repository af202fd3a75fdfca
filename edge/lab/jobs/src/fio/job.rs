//! A job with all its options, as fio would hold it.

use super::lex::Entry;
use super::rules::{find, rules};
use super::value::Value;
use crate::error::{Fault, FaultKind};
use crate::findings::{Findings, unsupported};
use crate::keys::{Key, Treatment, nearest};
use crate::source::Options;
use plan::{
    Batch, Distribution, Extent, LatencyTarget, NoteKind, PauseStart, Place, Steady, Verify, WriteThrough,
};
use std::borrow::Cow;
use std::time::Duration;

/// Reads, writes and trims: the order of fio's triples.
pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const TRIM: usize = 2;

/// fio's seed of a job that names none, with `randrepeat=1`.
pub(crate) const DEFAULT_SEED: u64 = 0xb189_9bed;

/// `rw=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mode {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) trim: bool,
    pub(crate) random: bool,
}

/// `rw=…:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Jump {
    #[default]
    None,
    /// So many I/Os between seeks.
    Every(u32),
    /// A gap of so many bytes behind each sequential I/O.
    Gap(i64),
}

/// Sizes of one direction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sizes {
    One(u64),
    Range {
        min: u64,
        max: u64,
    },
    /// Size and percent.
    Split(Vec<(u64, f64)>),
}

/// How often the span is done: `loops=`, and the I/Os that end a pass (`number_ios=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passes {
    pub(crate) count: u32,
    pub(crate) ios: Option<u32>,
}

/// How `verify=` is done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Verification {
    /// `do_verify=0`: nothing is read again at the end.
    pub(crate) without_end: bool,
    pub(crate) backlog: u32,
    pub(crate) interval: Option<u64>,
    pub(crate) fatal: bool,
    pub(crate) only: bool,
    /// `verify=pattern`: blocks have no checksums, only `verify_pattern=`.
    pub(crate) by_pattern: bool,
}

/// A job with all its options.
#[derive(Debug, Clone, Default)]
pub(crate) struct Job {
    /// What it is called: `name=`, or its section.
    pub(crate) name: String,
    /// What its files are called after.
    pub(crate) section: String,
    pub(crate) place: Place,
    /// What `k` multiplies by.
    pub(crate) kilo: u64,
    pub(crate) engine: Option<&'static str>,
    /// Its engine does no I/O that the lab has; told already, and with it all that is unknown of the job.
    pub(crate) is_no_io: bool,
    /// `zonemode=` is another than none; told already.
    pub(crate) is_zoned: bool,
    pub(crate) uri: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) jump: Jump,
    pub(crate) mix_read: f64,
    pub(crate) block: [u64; 3],
    pub(crate) range: [Option<(u64, u64)>; 3],
    pub(crate) range_unaligned: bool,
    pub(crate) split: Option<[Vec<(u64, f64)>; 3]>,
    pub(crate) align: [Option<u64>; 3],
    pub(crate) random_percent: [f64; 3],
    pub(crate) distribution: Distribution,
    pub(crate) each_once: bool,
    pub(crate) repeatable: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) depth: u32,
    /// `iodepth_low`: a full queue drains to it; 0 where it does not.
    pub(crate) depth_low: u32,
    pub(crate) batch: Batch,
    pub(crate) count: u32,
    pub(crate) files: Vec<String>,
    pub(crate) files_count: u32,
    /// `file_service_type=`, where it is not to go round.
    pub(crate) file_choice: Option<(String, Place)>,
    pub(crate) file_format: Option<String>,
    pub(crate) directories: Vec<String>,
    pub(crate) size: Option<Extent>,
    pub(crate) file_size: Option<u64>,
    pub(crate) io_size: Option<Extent>,
    pub(crate) fill: bool,
    pub(crate) offset: Extent,
    pub(crate) offset_step: Extent,
    pub(crate) runtime: Duration,
    pub(crate) time_based: bool,
    pub(crate) ramp: Duration,
    pub(crate) delay: Duration,
    pub(crate) passes: Passes,
    pub(crate) stonewall: Option<Place>,
    pub(crate) wait_for: Option<(String, Place)>,
    pub(crate) exit_all: bool,
    pub(crate) rate_bytes: [Option<u64>; 3],
    pub(crate) rate_iops: [Option<u64>; 3],
    pub(crate) poisson: bool,
    pub(crate) offload: bool,
    pub(crate) think: Duration,
    pub(crate) think_spin: Duration,
    pub(crate) think_after: u32,
    pub(crate) think_start: PauseStart,
    pub(crate) flow: u32,
    pub(crate) direct: Option<bool>,
    pub(crate) write_through: WriteThrough,
    pub(crate) flush_every: u32,
    pub(crate) flush_data_every: u32,
    pub(crate) flush_end: bool,
    pub(crate) zeroes: bool,
    pub(crate) refill: bool,
    pub(crate) pattern: Option<Vec<u8>>,
    pub(crate) compress: u32,
    pub(crate) compress_unit: Option<u64>,
    pub(crate) duplicates: u32,
    pub(crate) verify: Option<Verify>,
    pub(crate) verification: Verification,
    pub(crate) latency_target: Option<Duration>,
    pub(crate) latency_window: Option<Duration>,
    pub(crate) latency_percentile: f64,
    pub(crate) steady: Option<Steady>,
    pub(crate) steady_window: Duration,
}

impl Job {
    /// A job of fio's defaults.
    pub(crate) fn new() -> Job {
        Job {
            kilo: 1024,
            mode: Mode { read: true, ..Mode::default() },
            mix_read: 50.0,
            block: [4096; 3],
            random_percent: [100.0; 3],
            each_once: true,
            repeatable: true,
            depth: 1,
            batch: Batch { submit: 1, complete: 1, complete_max: 1 },
            count: 1,
            files_count: 1,
            passes: Passes { count: 1, ios: None },
            think_after: 1,
            think_start: PauseStart::Completed,
            latency_percentile: 100.0,
            ..Job::default()
        }
    }

    /// The search for a depth, if one is asked for.
    pub(crate) fn search(&self) -> Option<LatencyTarget> {
        self.latency_target.map(|latency| LatencyTarget {
            percentile: self.latency_percentile,
            latency,
            window: self.latency_window.unwrap_or(Duration::from_secs(5)),
        })
    }

    /// The sizes of a direction: a split before a range before a single size, as fio decides.
    pub(crate) fn sizes(&self, direction: usize) -> Sizes {
        if let Some(split) = &self.split {
            return match split[direction].as_slice() {
                [] => Sizes::One(self.block[direction]),
                [(size, _)] => Sizes::One(*size),
                several => Sizes::Split(several.to_vec()),
            };
        }
        match self.range[direction] {
            Some((min, max)) if min < max => Sizes::Range { min, max },
            Some((min, _)) => Sizes::One(min),
            None => Sizes::One(self.block[direction]),
        }
    }

    /// Applies the options of a section in their order: the last of one key wins.
    pub(crate) fn apply_all(
        &mut self,
        entries: &[Entry],
        options: &Options<'_>,
        unset: &mut Vec<String>,
        findings: &mut Findings,
    ) {
        let base = |entry: &Entry| if entry.value.as_deref() == Some("1000") { 1000 } else { 1024 };
        // fio sorts kb_base before all other options of a section; on a command line the order counts.
        let sorted = entries.iter().rfind(|entry| entry.key == "kb_base" && !entry.is_argument);
        self.kilo = sorted.map_or(self.kilo, base);
        let mut given: Vec<&'static str> = Vec::new();
        for entry in entries {
            if findings.is_full() {
                return;
            }
            if entry.key == "kb_base" {
                self.kilo = if entry.is_argument { base(entry) } else { self.kilo };
            }
            if let Some(rule) = find(&entry.key) {
                repeated(&rule.key, entry, &mut given, findings);
            }
            let result = replaced(entry, options, unset, findings)
                .and_then(|text| text.map_or(Ok(()), |text| self.apply_one(entry, text, findings)));
            if let Err(fault) = result {
                findings.fault(fault);
            }
        }
    }

    fn apply_one(&mut self, entry: &Entry, text: String, findings: &mut Findings) -> Result<(), Fault> {
        let Some(rule) = find(&entry.key) else {
            return if self.is_no_io { Ok(()) } else { Err(unknown(entry)) };
        };
        let value = Value {
            key: entry.key.clone(),
            text,
            given: entry.value.is_some(),
            spaced: entry.spaced,
            place: entry.place.clone(),
            kilo: self.kilo,
        };
        let name = &entry.key;
        if !value.given && !rule.key.alone {
            return Err(value.refused(
                format!("fio says `Option {name} requires an argument`"),
                format!("write {name}=1, or another value"),
            ));
        }
        if value.given && value.text.is_empty() && rule.key.name != "bssplit" {
            return Err(
                value.refused("fio fails to parse an option without a value", "write a value behind the `=`")
            );
        }
        // What switches a thing off may stand there, be it refused.
        if rule.key.treatment == Treatment::Refused && matches!(value.text.as_str(), "0" | "none") {
            return Ok(());
        }
        match rule.admit(name, &value.shown(), &entry.place, findings)? {
            Some(apply) => apply(self, &value, findings),
            None => Ok(()),
        }
    }
}

fn unknown(entry: &Entry) -> Fault {
    let names = rules().flat_map(|rule| rule.key.names());
    let remedy = match nearest(&entry.key, names) {
        Some(near) => format!("did you mean {near}?"),
        None => "take it out, or write a key of fio 3.x (docs/guide/job-keys.md lists them)".to_owned(),
    };
    let shown: String = entry.key.chars().take(60).collect();
    Fault::new(FaultKind::Refused, entry.place.clone(), format!("the option `{shown}` is unknown"), remedy)
        .tool("fio says `Bad option` and drops the job, or the global with all its defaults")
}

/// A note on a key that stands twice in one section. Names of files are added up, as fio does.
fn repeated(key: &'static Key, entry: &Entry, given: &mut Vec<&'static str>, findings: &mut Findings) {
    if !given.contains(&key.name) {
        given.push(key.name);
    } else if key.treatment == Treatment::Carried && key.name != "filename" {
        let text = format!("{} stands twice in this section: fio takes the last", entry.key);
        findings.note(NoteKind::Trap, &entry.place, key.name, text);
    }
}

/// An argument with `${NAME}` for `$NAME`, as a shell has it.
///
/// # Errors
/// For what a shell calculates.
fn of_shell(entry: &Entry, value: &str) -> Result<String, Fault> {
    const OF_FIO: [&str; 6] = ["pagesize", "mb_memory", "ncpus", "jobname", "jobnum", "filenum"];
    let mut parts = value.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if part.starts_with('(') {
            let found = format!("`{}` is calculated by the shell", entry.key);
            return Err(unsupported(&entry.place, found, "write its value"));
        }
        let length =
            part.bytes().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == b'_').count();
        let (name, behind) = part.split_at(length);
        let is_variable = name.starts_with(|first: char| !first.is_ascii_digit()) && !OF_FIO.contains(&name);
        out += &if is_variable { format!("${{{name}}}{behind}") } else { format!("${part}") };
    }
    Ok(out)
}

/// The value with `${NAME}` from the environment, `$pagesize`, `$mb_memory`, `$ncpus` by the machine, then what is left to
/// calculate. None where a variable is missing that was told of before.
fn replaced(
    entry: &Entry,
    options: &Options<'_>,
    unset: &mut Vec<String>,
    findings: &mut Findings,
) -> Result<Option<String>, Fault> {
    let mut out = String::new();
    let given = entry.value.as_deref().unwrap_or_default();
    let typed = if entry.is_argument { Cow::from(of_shell(entry, given)?) } else { given.into() };
    let mut rest = typed.as_ref();
    let mut is_whole = true;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else { break };
        out.push_str(&rest[..start]);
        let name = &rest[start + 2..start + end];
        match (options.environment)(name) {
            Some(value) => out.push_str(&value),
            None => {
                is_whole = false;
                if !unset.iter().any(|known| known == name) {
                    unset.push(name.to_owned());
                    let found = format!("`{}` uses ${{{name}}}, which is not set", entry.key);
                    let remedy = format!("give it with the job: --define {name}=value");
                    findings.fault(
                        Fault::new(FaultKind::Refused, entry.place.clone(), found, remedy)
                            .tool("fio puts nothing in its place"),
                    );
                }
            }
        }
        rest = &rest[start + end + 1..];
    }
    if !is_whole {
        return Ok(None);
    }
    out.push_str(rest);
    let keywords = [
        ("$pagesize", options.page_size),
        ("$mb_memory", options.memory_bytes >> 20),
        ("$ncpus", u64::from(options.cpu_count)),
    ];
    let mut keyword_met = false;
    for (keyword, value) in keywords {
        if out.contains(keyword) {
            keyword_met = true;
            out = out.replace(keyword, &value.to_string());
        }
    }
    Ok(Some(if keyword_met { calculated(&out).map_or(out, |value| value.to_string()) } else { out }))
}

/// Whole numbers with + - * /, products first: what fio hands to `bc`.
fn calculated(text: &str) -> Option<u64> {
    let mut sum: i128 = 0;
    let mut sign: i128 = 1;
    for (index, term) in split_keeping(text, &['+', '-']).into_iter().enumerate() {
        let (operator, term) = term;
        if index > 0 {
            sign = if operator == '-' { -1 } else { 1 };
        }
        let mut product: i128 = 1;
        for (operator, factor) in split_keeping(term, &['*', '/']) {
            let factor: i128 = factor.trim().parse::<u64>().ok()?.into();
            product =
                if operator == '/' { product.checked_div(factor)? } else { product.checked_mul(factor)? };
        }
        sum = sum.checked_add(sign.checked_mul(product)?)?;
    }
    u64::try_from(sum).ok()
}

/// The parts between operators, each with the operator before it; the first has `*` or `+`'s meaning.
fn split_keeping<'t>(text: &'t str, operators: &[char]) -> Vec<(char, &'t str)> {
    let mut parts = Vec::new();
    let mut operator = operators[0];
    let mut start = 0;
    for (index, letter) in text.char_indices() {
        if operators.contains(&letter) {
            parts.push((operator, &text[start..index]));
            operator = letter;
            start = index + letter.len_utf8();
        }
    }
    parts.push((operator, &text[start..]));
    parts
}
