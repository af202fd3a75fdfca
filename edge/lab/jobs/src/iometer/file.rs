//! What stands in an `.icf` file, section by section.

use super::keys::{Apply, KEYS, MANAGER, SECTION, SPECS, WORKER, find, scope_of};
use super::lex::{Line, Lines, leading_number};
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, shown, unit_trap, unsupported};
use crate::keys::Treatment;
use crate::limits;
use crate::source::Source;
use plan::{NoteKind, Place};
use std::time::Duration;

/// How a number grows from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Linear,
    Exponential,
}

/// Start, step, growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) step: u64,
    pub(crate) growth: Growth,
}

impl Cycle {
    /// The steps up to the end (or `most`, where there is no end), at least one of them.
    pub(crate) fn steps(&self, most: u64) -> Vec<u64> {
        let end = if self.end == 0 { most } else { self.end };
        let mut steps = Vec::new();
        let mut value = self.start.max(1);
        while value <= end && steps.len() < limits::LIST_MAX {
            steps.push(value);
            let next = match self.growth {
                Growth::Linear => value.saturating_add(self.step.max(1)),
                Growth::Exponential => value.saturating_mul(self.step.max(2)),
            };
            if next == value {
                break;
            }
            value = next;
        }
        if steps.is_empty() { vec![self.start.max(1).min(end.max(1))] } else { steps }
    }
}

/// What a test cycles through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TestType {
    #[default]
    Normal,
    CycleTargets,
    CycleWorkers,
    IncrementParallel,
    IncrementSerial,
    CycleWorkersAndTargets,
    CycleDepth,
    CycleDepthAndTargets,
}

/// A line of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessLine {
    pub(crate) size: u64,
    pub(crate) percent: u64,
    pub(crate) reads: u64,
    pub(crate) random: u64,
    pub(crate) delay: u64,
    pub(crate) burst: u64,
    pub(crate) align: u64,
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) lines: Vec<AccessLine>,
}

/// A worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) depth: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) sectors: u64,
    pub(crate) start: u64,
    pub(crate) data: u64,
    pub(crate) specs: Vec<(String, Place)>,
    pub(crate) targets: Vec<String>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) workers: Vec<Worker>,
}

/// All of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) place: Place,
    pub(crate) old: bool,
    pub(crate) description: String,
    pub(crate) run_time: Duration,
    pub(crate) ramp: Duration,
    pub(crate) worker_cycle: Option<Cycle>,
    pub(crate) target_cycle: Option<Cycle>,
    pub(crate) depth_cycle: Option<Cycle>,
    pub(crate) test_type: TestType,
    pub(crate) specs: Vec<Spec>,
    pub(crate) managers: Vec<Manager>,
}

/// A file as far as it is read.
pub(crate) struct Reader<'a> {
    pub(super) file: File,
    lines: Lines<'a>,
}

/// Reads all sections, in whatever order they stand.
pub(crate) fn read(source: &Source, findings: &mut Findings) -> File {
    let place = source.start();
    let file = File { place: place.clone(), ..File::default() };
    let mut reader = Reader { file, lines: Lines::of(source) };
    match reader.lines.take() {
        Some(line) => reader.file.old = version(&line, findings),
        None => findings.fault(malformed(&place, "the file is empty", "start with `Version 1.1.0`")),
    }
    // Without a version the first line was another one, and all that it begins would be told of.
    if findings.faults.is_empty() {
        reader.section(SECTION, None, findings);
    }
    reader.file
}

impl<'a> Reader<'a> {
    /// Reads a section up to its end.
    pub(super) fn section(&mut self, scope: &'static str, end: Option<&str>, findings: &mut Findings) {
        while let Some(line) = self.lines.peek().cloned() {
            let key = line.key();
            if let Some(key) = key.as_deref().filter(|key| begins_another(scope, key)) {
                let found = format!("'{key} stands within {scope}");
                findings.fault(malformed(&line.place, found, "end the section above it with its 'End line"));
                return;
            }
            self.lines.take();
            match key {
                _ if findings.is_full() => return,
                None => self.outside(&line, scope, findings),
                Some(key) if end.is_some_and(|end| key.starts_with(end)) => return,
                Some(key) if key.starts_with("end ") => {}
                Some(key) => {
                    let applied = self.apply(scope, &key, &line, findings);
                    findings.take(applied);
                }
            }
        }
    }

    /// A line that is no key and no value of one.
    fn outside(&mut self, line: &Line<'_>, scope: &str, findings: &mut Findings) {
        let text = line.text.trim();
        let is_version = scope == SECTION && text.to_ascii_lowercase().starts_with("version");
        if text.is_empty() || is_version {
            return;
        }
        if self.file.old && scope == SPECS {
            old_spec(line, &mut self.file, findings);
            return;
        }
        let shown = shown(text);
        let remedy = "write the value below its key; a key starts with '";
        findings.fault(malformed(&line.place, format!("`{shown}` belongs to no key"), remedy));
    }

    fn apply(
        &mut self,
        scope: &'static str,
        key: &str,
        line: &Line<'_>,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let Some(rule) = find(scope, key) else {
            // Old files name the columns of their patterns as they like.
            if self.file.old && scope == SPECS && key.contains("size") {
                return Ok(());
            }
            // What belongs to an unknown key is not told of again.
            let belongs = |line: &Line<'_>| match line.key() {
                Some(key) => scope == SECTION && find(SECTION, &key).is_none(),
                None => true,
            };
            while self.lines.peek().is_some_and(belongs) {
                self.lines.take();
            }
            return Err(unknown(scope, key, line));
        };
        let is_noted = rule.key.treatment == Treatment::Noted;
        if is_noted && scope != SECTION && self.value().is_some_and(|value| value.text.trim().is_empty()) {
            return Ok(());
        }
        match rule.admit(rule.key.name, key, &line.place, findings)? {
            None if is_noted && scope == SECTION => {
                while self.lines.take().is_some_and(|line| !line.is_end()) {}
            }
            None => {}
            Some(Apply::Section(read)) => read(self, line, findings),
            Some(Apply::Value(set)) => {
                let value = self.value().ok_or_else(|| without_value(rule.key.name, line))?;
                set(&mut self.file, &value, findings)?;
            }
        }
        Ok(())
    }

    /// The value of the key just taken: the next line that is no key; none where a key that is known or an end comes first.
    fn value(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.lines.peek() {
            match line.key() {
                Some(key) if line.is_end() || scope_of(&key).is_some() => return None,
                Some(_) => self.lines.take(),
                None => return self.lines.take(),
            };
        }
        None
    }
}

/// `'ACCESS SPECIFICATIONS`.
pub(super) fn specs(reader: &mut Reader<'_>, _: &Line<'_>, findings: &mut Findings) {
    reader.section(SPECS, Some("end access spec"), findings);
    for spec in &reader.file.specs {
        let sum: u64 = spec.lines.iter().map(|line| line.percent).sum();
        if sum != 100 {
            let found = format!("the lines of `{}` total {sum} %", spec.name);
            let remedy = "correct the second number of the lines";
            findings.fault(refused(&spec.place, found, "Iometer requires a total of 100 percent", remedy));
        }
    }
}

/// The lines of a pattern.
pub(super) fn access_lines(reader: &mut Reader<'_>, _: &Line<'_>, findings: &mut Findings) {
    while !reader.file.old && !reader.lines.at_key() {
        let Some(line) = reader.lines.take() else { break };
        let Some(spec) = reader.file.specs.last_mut().filter(|_| !line.text.trim().is_empty()) else {
            reader.outside(&line, SPECS, findings);
            continue;
        };
        if spec.lines.len() == limits::MIX_LINES_MAX {
            findings.fault(malformed(&line.place, "the pattern has too many lines", "write at most 100"));
            return;
        }
        spec.lines.extend(access_line(&line.parts(), &line, findings));
    }
}

/// `'Worker`.
pub(super) fn worker(reader: &mut Reader<'_>, line: &Line<'_>, findings: &mut Findings) {
    let name = findings.take(reader.value().ok_or_else(|| without_value("worker", line)));
    let name = name.map_or("", |name| name.text.trim()).to_owned();
    let worker = Worker { name, place: line.place.clone(), depth: 1, ..Worker::default() };
    if reader.file.managers.is_empty() {
        let remedy = "write 'Manager ID above the worker";
        findings.fault(malformed(&line.place, "the worker belongs to no manager", remedy));
        reader.file.managers.push(Manager { name: String::new(), workers: Vec::new() });
    }
    reader.file.managers.last_mut().expect("there is one").workers.push(worker);
    reader.section(WORKER, Some("end worker"), findings);
}

/// `'Assigned access specs`.
pub(super) fn assigned(reader: &mut Reader<'_>, _: &Line<'_>, _: &mut Findings) {
    while !reader.lines.at_key() {
        let Some(line) = reader.lines.take() else { break };
        let name = line.text.trim();
        if !name.is_empty() {
            reader.file.worker().specs.push((name.to_owned(), line.place));
        }
    }
}

impl File {
    /// The worker that keys belong to.
    pub(super) fn worker(&mut self) -> &mut Worker {
        let worker = self.managers.last_mut().and_then(|manager| manager.workers.last_mut());
        worker.expect("keys of a worker stand below it")
    }
}

/// Whether a key begins a section around this one, which then has no end.
fn begins_another(scope: &str, key: &str) -> bool {
    let around: &[&str] = match scope {
        SECTION => &[],
        WORKER => &[MANAGER, SECTION],
        _ => &[SECTION],
    };
    find(scope, key).is_none() && around.iter().any(|scope| find(scope, key).is_some())
}

fn without_value(key: &str, line: &Line<'_>) -> Fault {
    let found = format!("the key '{key} has no value");
    malformed(&line.place, found, "write the value in the line below the key")
}

fn unknown(scope: &str, key: &str, line: &Line<'_>) -> Fault {
    let shown = shown(key);
    let here =
        KEYS.iter().copied().flatten().filter(|rule| rule.key.scope == scope).map(|rule| rule.key.name);
    let remedy = match (crate::keys::nearest(&shown, here), scope_of(key)) {
        (Some(near), _) => format!("did you mean '{near}?"),
        (None, Some(other)) => format!("the key belongs to {other}"),
        (None, None) => "remove it, or write a key that docs/guide/job-keys.md lists".to_owned(),
    };
    let tool = "Iometer says that the file is improperly formatted";
    refused(&line.place, format!("the key '{shown} is unknown here"), tool, remedy)
}

/// Whether the version is one of before 1998.05.21.
fn version(line: &Line<'_>, findings: &mut Findings) -> bool {
    let text = line.text.trim();
    let number: String = text
        .get(..7)
        .filter(|word| word.eq_ignore_ascii_case("version"))
        .map(|_| text[7..].trim().to_owned())
        .unwrap_or_default();
    if !number.starts_with(|letter: char| letter.is_ascii_digit()) {
        findings.fault(refused(
            &line.place,
            "the first line has no version",
            "Iometer says that the file is improperly formatted",
            "write `Version 1.1.0` in the first line",
        ));
        return false;
    }
    let parts: Vec<u64> = number.split(['.', ' ']).map(leading_number).collect();
    let part = |index: usize| parts.get(index).copied().unwrap_or(0).min(9999);
    // Dates count as y * 10000 + m * 100 + d; whatever does not begin with a year is later than all of them.
    if part(0) <= 1900 {
        if number == "3.26.97" {
            let text = "3.26.97 stands for 1998.01.05, but Iometer reads the file as the newest version";
            findings.note(NoteKind::Trap, &line.place, "Version", text);
        }
        return false;
    }
    let date = part(0) * 10_000 + part(1) * 100 + part(2);
    if date < 19_980_105 {
        let text = "Iometer warns that the version is too old, and continues";
        findings.note(NoteKind::Trap, &line.place, "Version", text);
    }
    date < 19_980_521
}

pub(super) fn run_time(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    let [hours, minutes, seconds] = [0, 1, 2].map(|index| value.number(index));
    file.run_time = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
    if file.run_time.as_secs_f64() > limits::SECONDS_MAX {
        return Err(malformed(&value.place, "the run time exceeds ten years", "write a shorter run time"));
    }
    Ok(())
}

/// How a number is cycled: start, end where `ends`, step and kind.
pub(super) fn cycle(value: &Line<'_>, ends: bool) -> Result<Option<Cycle>, Fault> {
    let text = value.text.trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let meant = if ends { "1 32 2 EXPONENTIAL" } else { "1 1 LINEAR" };
    let growth = match words.last().map(|word| word.to_ascii_uppercase()).as_deref() {
        Some("LINEAR") => Growth::Linear,
        Some("EXPONENTIAL") => Growth::Exponential,
        _ => {
            let tool = "Iometer expects LINEAR or EXPONENTIAL at the end";
            return Err(refused(
                &value.place,
                format!("the cycling `{text}`"),
                tool,
                format!("write `{meant}`"),
            ));
        }
    };
    let numbers: Vec<u64> = words.iter().map(|word| leading_number(word).min(1 << 20)).collect();
    let (start, end, step) = match (ends, numbers.as_slice()) {
        (true, [start, end, step, _]) => (*start, *end, *step),
        (false, [start, step, _]) => (*start, 0, *step),
        _ => {
            let found = format!("the cycling `{text}` has {} words", words.len());
            return Err(malformed(&value.place, found, format!("write `{meant}`")));
        }
    };
    Ok(Some(Cycle { start, end, step, growth }))
}

pub(super) fn test_type(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    let name = value.text.trim();
    let mut types = TEST_TYPES.iter().enumerate();
    // Old files have the number.
    let found = types.find(|(index, (own, _))| own.eq_ignore_ascii_case(name) || index.to_string() == name);
    let Some((_, (_, test_type))) = found else {
        return Err(refused(
            &value.place,
            format!("the test type `{name}`"),
            "Iometer says that the file is improperly formatted",
            "write NORMAL, or CYCLE_OUTSTANDING_IOS for a sweep of queue depths",
        ));
    };
    file.test_type = *test_type;
    Ok(())
}

/// The types by their numbers.
const TEST_TYPES: [(&str, TestType); 8] = [
    ("NORMAL", TestType::Normal),
    ("CYCLE_TARGETS", TestType::CycleTargets),
    ("CYCLE_WORKERS", TestType::CycleWorkers),
    ("INCREMENT_TARGETS_PARALLEL", TestType::IncrementParallel),
    ("INCREMENT_TARGETS_SERIAL", TestType::IncrementSerial),
    ("CYCLE_WORKERS_AND_TARGETS", TestType::CycleWorkersAndTargets),
    ("CYCLE_OUTSTANDING_IOS", TestType::CycleDepth),
    ("CYCLE_OUTSTANDING_IOS_AND_TARGETS", TestType::CycleDepthAndTargets),
];

pub(super) fn spec(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    if file.specs.len() == limits::DEFINITIONS_MAX {
        let found = format!("there are more than {} access specifications", limits::DEFINITIONS_MAX);
        return Err(malformed(&value.place, found, "split the file"));
    }
    // The name ends at the last comma; it may have commas of its own.
    let name = value.text.trim();
    let name = name.rsplit_once(',').map_or(name, |(name, _)| name).to_owned();
    file.specs.push(Spec { name, place: value.place.clone(), lines: Vec::new() });
    Ok(())
}

pub(super) fn manager(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    let name = value.text.trim();
    let name = name.split_once(',').map_or(name, |(_, name)| name).trim().to_owned();
    file.managers.push(Manager { name, workers: Vec::new() });
    Ok(())
}

/// The type of a worker or a target.
pub(super) fn kind(_: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    if value.part(0) == "DISK" {
        return Ok(());
    }
    let found = format!("a worker or target of type {}", value.text.trim());
    Err(unsupported(&value.place, found, "the lab measures disks: remove network workers"))
}

pub(super) fn depth(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    let worker = file.worker();
    worker.depth = leading_number(&value.part(0)).clamp(1, 1 << 20);
    if value.part(3) == "ENABLED" {
        worker.seed = Some(leading_number(&value.part(4)));
    }
    if value.part(1) == "ENABLED" {
        return Err(unsupported(
            &value.place,
            "the worker opens and closes its targets repeatedly (test connection rate)",
            "write DISABLED",
        ));
    }
    Ok(())
}

pub(super) fn span(file: &mut File, value: &Line<'_>, _: &mut Findings) -> Result<(), Fault> {
    let worker = file.worker();
    [worker.sectors, worker.start, worker.data] = [0, 1, 2].map(|index| leading_number(&value.part(index)));
    Ok(())
}

fn access_line(parts: &[&str], line: &Line<'_>, findings: &mut Findings) -> Option<AccessLine> {
    if parts.len() < 4 {
        findings.fault(malformed(
            &line.place,
            format!("`{}` has {} numbers", line.text.trim(), parts.len()),
            "write size,share,reads,random,delay,burst,alignment,reply",
        ));
        return None;
    }
    let number = |index: usize| parts.get(index).copied().map_or(0, leading_number);
    let found = AccessLine {
        size: number(0),
        percent: number(1),
        reads: number(2),
        random: number(3),
        delay: number(4),
        burst: number(5),
        align: number(6),
    };
    if found.size == 0 || found.percent > 100 || found.reads > 100 || found.random > 100 {
        findings.fault(refused(
            &line.place,
            format!("`{}` has a size of 0 or a share above 100", line.text.trim()),
            "Iometer expects sizes in bytes and shares of 0 to 100",
            "correct the number",
        ));
        return None;
    }
    if found.size < 512 {
        findings.fault(unit_trap(
            &line.place,
            format!("the size is {} bytes", found.size),
            format!("Iometer does I/Os of {} bytes, which disks reject", found.size),
            format!("write {} for {} KiB", found.size.saturating_mul(1024), found.size),
        ));
        return None;
    }
    if number(7) > 0 {
        findings.note(NoteKind::NotCarried, &line.place, "reply", "replies concern only network targets");
    }
    Some(found)
}

/// A pattern of the old form: one line, no name.
fn old_spec(line: &Line<'_>, file: &mut File, findings: &mut Findings) {
    let words: Vec<&str> = line.text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    let Some(mut found) = access_line(&words, line, findings) else { return };
    found.align = found.size;
    let kind = match found.random {
        100 => "random".to_owned(),
        0 => "sequential".to_owned(),
        random => format!("{random}% random"),
    };
    let size = base::units::format_bytes(found.size);
    let name = format!("{size} {kind} {}% reads", found.reads);
    if found.percent != 100 {
        let text = "in the old format each line is a pattern of its own, whatever its share";
        findings.note(NoteKind::Trap, &line.place, "% of size", text);
        found.percent = 100;
    }
    file.specs.push(Spec { name, place: line.place.clone(), lines: vec![found] });
}
