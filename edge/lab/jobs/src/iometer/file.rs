//! What stands in an `.icf` file, section by section.

use super::keys;
use super::lex::{Line, Lines, leading_number};
use crate::findings::{Findings, malformed, refused, unsupported};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestType {
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Reads all sections, in whatever order they stand.
pub(crate) fn read(source: &Source, findings: &mut Findings) -> File {
    let place = Place { file: source.name.clone(), line: 1, column: 1 };
    let mut file = File {
        place: place.clone(),
        old: false,
        description: String::new(),
        run_time: Duration::ZERO,
        ramp: Duration::ZERO,
        worker_cycle: None,
        target_cycle: None,
        depth_cycle: None,
        test_type: TestType::Normal,
        specs: Vec::new(),
        managers: Vec::new(),
    };
    let mut lines = Lines::of(source);
    match lines.take() {
        Some(line) => file.old = version(&line, findings),
        None => findings.fault(malformed(&place, "the file is empty", "begin it with `Version 1.1.0`")),
    }
    // Without a version the first line was another one, and all that it begins would be told of.
    if !findings.faults.is_empty() {
        return file;
    }
    while let Some(line) = lines.take() {
        let Some(found) = line.key() else {
            let text = line.text.trim();
            if !text.is_empty() && !text.to_ascii_lowercase().starts_with("version") {
                findings.fault(stray(&line));
            }
            continue;
        };
        match keys::find(&found).map(|key| key.name) {
            Some("test setup") => setup(&mut lines, &mut file, findings),
            Some("results display") => {
                let text = "what Iometer's window shows; it has no effect on the run";
                findings.note(NoteKind::NotCarried, &line.place, "'RESULTS DISPLAY", text);
                skip(&mut lines);
            }
            Some("access specifications") => specs(&mut lines, &mut file, findings),
            Some("manager list") => managers(&mut lines, &mut file, findings),
            _ => findings.fault(unknown(&line, &found)),
        }
    }
    file
}

fn stray(line: &Line<'_>) -> crate::Fault {
    let shown: String = line.text.trim().chars().take(60).collect();
    malformed(
        &line.place,
        format!("`{shown}` belongs to no key"),
        "a value stands below its key, and a key begins with '",
    )
}

fn unknown(line: &Line<'_>, found: &str) -> crate::Fault {
    let shown: String = found.chars().take(60).collect();
    let near = crate::keys::nearest(&shown, keys::KEYS.iter().map(|key| key.name));
    let remedy = match near {
        Some(near) => format!("did you mean '{near}?"),
        None => "take it out, or write a key that docs/guide/job-keys.md lists".to_owned(),
    };
    refused(
        &line.place,
        format!("the key '{shown} is unknown here"),
        "Iometer says that the file is improperly formatted",
        remedy,
    )
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
            let text = "Iometer means this to be 1998.01.05, and reads it as the newest version all the same";
            findings.note(NoteKind::Trap, &line.place, "Version", text);
        }
        return false;
    }
    let date = part(0) * 10_000 + part(1) * 100 + part(2);
    if date < 19_980_105 {
        let text = "Iometer warns that the version is too old, and reads on";
        findings.note(NoteKind::Trap, &line.place, "Version", text);
    }
    date < 19_980_521
}

/// Everything up to the section's end.
fn skip(lines: &mut Lines<'_>) {
    while let Some(line) = lines.take() {
        if line.key().is_some_and(|key| key.starts_with("end ")) {
            return;
        }
    }
}

fn setup(lines: &mut Lines<'_>, file: &mut File, findings: &mut Findings) {
    while let Some(line) = lines.take() {
        let Some(found) = line.key() else {
            if !line.text.trim().is_empty() {
                findings.fault(stray(&line));
            }
            continue;
        };
        if found.starts_with("end test setup") {
            return;
        }
        let Some(key) = keys::find(&found) else {
            // Comments of a value stand between keys: `hours minutes seconds` below the run time.
            findings.fault(unknown(&line, &found));
            continue;
        };
        let Some(value) = lines.value() else {
            findings.fault(malformed(
                &line.place,
                format!("the key '{found} has no value"),
                "write one in the line below it",
            ));
            continue;
        };
        set_setup(key, &line, &value, file, findings);
    }
}

fn set_setup(
    key: &crate::keys::Key,
    line: &Line<'_>,
    value: &Line<'_>,
    file: &mut File,
    findings: &mut Findings,
) {
    let words = value.words();
    let number = |index: usize| words.get(index).copied().map_or(0, leading_number).min(1 << 30);
    match key.name {
        "test description" => file.description = value.text.trim().to_owned(),
        "run time" => {
            file.run_time = Duration::from_secs(number(0) * 3600 + number(1) * 60 + number(2));
            if file.run_time.as_secs_f64() > limits::SECONDS_MAX {
                findings.fault(malformed(&value.place, "the run time is more than ten years", "write less"));
            }
        }
        "ramp up time" => file.ramp = Duration::from_secs(number(0)),
        "worker cycling" => file.worker_cycle = cycle(&words, false, value, findings),
        "disk cycling" => file.target_cycle = cycle(&words, false, value, findings),
        "queue depth cycling" => file.depth_cycle = cycle(&words, true, value, findings),
        "test type" => match test_type(value.text.trim()) {
            Some(found) => file.test_type = found,
            None => findings.fault(refused(
                &value.place,
                format!("the test type `{}`", value.text.trim()),
                "Iometer says that the file is improperly formatted",
                "write NORMAL, or CYCLE_OUTSTANDING_IOS for a sweep of depths",
            )),
        },
        _ => findings.note(NoteKind::NotCarried, &line.place, key.name, key.sentence),
    }
}

fn cycle(words: &[&str], ends: bool, value: &Line<'_>, findings: &mut Findings) -> Option<Cycle> {
    let numbers: Vec<u64> = words.iter().map(|word| leading_number(word).min(1 << 20)).collect();
    let growth = match words.last().map(|word| word.to_ascii_uppercase()).as_deref() {
        Some("LINEAR") => Growth::Linear,
        Some("EXPONENTIAL") => Growth::Exponential,
        _ => {
            let meant = if ends { "`1 32 2 EXPONENTIAL`" } else { "`1 1 LINEAR`" };
            findings.fault(refused(
                &value.place,
                format!("the cycling `{}`", value.text.trim()),
                "Iometer wants LINEAR or EXPONENTIAL at the end",
                format!("write it as {meant}"),
            ));
            return None;
        }
    };
    match (ends, numbers.as_slice()) {
        (true, [start, end, step, _]) => Some(Cycle { start: *start, end: *end, step: *step, growth }),
        (false, [start, step, _]) => Some(Cycle { start: *start, end: 0, step: *step, growth }),
        _ => {
            findings.fault(malformed(
                &value.place,
                format!("the cycling `{}` has {} words", value.text.trim(), words.len()),
                if ends { "write start, end, step and kind" } else { "write start, step and kind" },
            ));
            None
        }
    }
}

fn test_type(text: &str) -> Option<TestType> {
    Some(match text.to_ascii_uppercase().as_str() {
        "NORMAL" => TestType::Normal,
        "CYCLE_TARGETS" => TestType::CycleTargets,
        "CYCLE_WORKERS" => TestType::CycleWorkers,
        "INCREMENT_TARGETS_PARALLEL" => TestType::IncrementParallel,
        "INCREMENT_TARGETS_SERIAL" => TestType::IncrementSerial,
        "CYCLE_WORKERS_AND_TARGETS" => TestType::CycleWorkersAndTargets,
        "CYCLE_OUTSTANDING_IOS" => TestType::CycleDepth,
        "CYCLE_OUTSTANDING_IOS_AND_TARGETS" => TestType::CycleDepthAndTargets,
        // Old files have the number.
        "0" => TestType::Normal,
        "1" => TestType::CycleTargets,
        "2" => TestType::CycleWorkers,
        "3" => TestType::IncrementParallel,
        "4" => TestType::IncrementSerial,
        "5" => TestType::CycleWorkersAndTargets,
        "6" => TestType::CycleDepth,
        "7" => TestType::CycleDepthAndTargets,
        _ => return None,
    })
}

fn specs(lines: &mut Lines<'_>, file: &mut File, findings: &mut Findings) {
    while let Some(line) = lines.take() {
        let key = line.key();
        match key.as_deref().map(|found| (found, keys::find(found).map(|key| key.name))) {
            Some((found, _)) if found.starts_with("end access spec") => break,
            Some((_, Some("access specification name"))) => {
                let Some(value) = lines.value() else { continue };
                let name = value.text.trim();
                // The name ends at the last comma; it may have commas of its own.
                let name = name.rsplit_once(',').map_or(name, |(name, _)| name).to_owned();
                if file.specs.len() == limits::DEFINITIONS_MAX {
                    findings.fault(crate::findings::malformed(
                        &value.place,
                        format!("there are more than {} access specifications", limits::DEFINITIONS_MAX),
                        "split the file",
                    ));
                    break;
                }
                file.specs.push(Spec { name, place: value.place, lines: Vec::new() });
            }
            Some((found, _)) if file.old && found.contains("size") => {}
            Some((_, Some("size"))) => access_lines(lines, file, findings),
            Some((found, _)) => findings.fault(unknown(&line, found)),
            None if line.text.trim().is_empty() => {}
            None if file.old => old_spec(&line, file, findings),
            None => findings.fault(stray(&line)),
        }
    }
    for spec in &file.specs {
        let sum: u64 = spec.lines.iter().map(|line| line.percent).sum();
        if sum != 100 {
            findings.fault(refused(
                &spec.place,
                format!("the lines of `{}` add up to {sum} %", spec.name),
                "Iometer says that they must total 100 percent",
                "change the second number of its lines",
            ));
        }
    }
}

fn access_lines(lines: &mut Lines<'_>, file: &mut File, findings: &mut Findings) {
    while !lines.at_key() {
        let Some(line) = lines.take() else { return };
        if line.text.trim().is_empty() {
            continue;
        }
        let parts = line.parts();
        match file.specs.last_mut() {
            Some(spec) if spec.lines.len() < limits::MIX_LINES_MAX => {
                spec.lines.extend(access_line(&parts, &line, findings));
            }
            Some(_) => {
                findings.fault(malformed(&line.place, "the pattern has too many lines", "Iometer takes 100"));
                return;
            }
            None => findings.fault(stray(&line)),
        }
    }
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
            "Iometer takes sizes in bytes and shares of 0 to 100",
            "correct the number",
        ));
        return None;
    }
    if found.size < 512 {
        findings.fault(crate::findings::unit_trap(
            &line.place,
            format!("the size {} is in bytes", found.size),
            format!("Iometer does I/Os of {} bytes, which disks refuse", found.size),
            format!("write {} if {} KiB are meant", found.size.saturating_mul(1024), found.size),
        ));
        return None;
    }
    if number(7) > 0 {
        findings.note(NoteKind::NotCarried, &line.place, "reply", "replies concern network targets alone");
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
        let text = "in the old form each line is a pattern of its own, whatever its share";
        findings.note(NoteKind::Trap, &line.place, "% of size", text);
        found.percent = 100;
    }
    file.specs.push(Spec { name, place: line.place.clone(), lines: vec![found] });
}

fn managers(lines: &mut Lines<'_>, file: &mut File, findings: &mut Findings) {
    while let Some(line) = lines.take() {
        let Some(found) = line.key() else {
            if !line.text.trim().is_empty() {
                findings.fault(stray(&line));
            }
            continue;
        };
        if found.starts_with("end manager list") {
            return;
        }
        if found.starts_with("end ") {
            continue;
        }
        match keys::find(&found).map(|key| key.name) {
            Some("manager id") => {
                let Some(value) = lines.value() else { continue };
                let name = value.text.trim();
                let name = name.split_once(',').map_or(name, |(_, name)| name).trim().to_owned();
                file.managers.push(Manager { name, workers: Vec::new() });
            }
            Some("manager network address") => {
                if let Some(value) = lines.value().filter(|value| !value.text.trim().is_empty()) {
                    let text = "where Dynamo runs; the lab has agents";
                    findings.note(NoteKind::NotCarried, &value.place, "'Manager network address", text);
                }
            }
            Some("worker") => {
                let Some(value) = lines.value() else { continue };
                let Some(manager) = file.managers.last_mut() else {
                    findings.fault(malformed(
                        &line.place,
                        "a worker outside a manager",
                        "write 'Manager ID above it",
                    ));
                    continue;
                };
                let name = value.text.trim().to_owned();
                manager.workers.push(worker(lines, name, line.place.clone(), findings));
            }
            _ => findings.fault(unknown(&line, &found)),
        }
    }
}

fn worker(lines: &mut Lines<'_>, name: String, place: Place, findings: &mut Findings) -> Worker {
    let mut worker = Worker {
        name,
        place,
        depth: 1,
        seed: None,
        sectors: 0,
        start: 0,
        data: 0,
        specs: Vec::new(),
        targets: Vec::new(),
    };
    while let Some(line) = lines.take() {
        let Some(found) = line.key() else {
            if !line.text.trim().is_empty() {
                findings.fault(stray(&line));
            }
            continue;
        };
        if found.starts_with("end worker") || found.starts_with("end manager") {
            break;
        }
        if found.starts_with("end ") {
            continue;
        }
        match keys::find(&found).map(|key| key.name) {
            Some("default target settings for worker") => {}
            Some("target assignments") => {}
            Some("assigned access specs") => {
                while !lines.at_key() {
                    let Some(line) = lines.take() else { break };
                    if !line.text.trim().is_empty() {
                        worker.specs.push((line.text.trim().to_owned(), line.place));
                    }
                }
            }
            Some(_) => {
                if let Some(value) = lines.value() {
                    set_worker(&mut worker, &line, &found, &value, findings);
                }
            }
            None => findings.fault(unknown(&line, &found)),
        }
    }
    worker
}

fn set_worker(worker: &mut Worker, line: &Line<'_>, found: &str, value: &Line<'_>, findings: &mut Findings) {
    let parts = value.parts();
    let text = |index: usize| parts.get(index).copied().unwrap_or_default().to_ascii_uppercase();
    let number = |index: usize| parts.get(index).copied().map_or(0, leading_number);
    let key = keys::find(found);
    match key.map(|key| key.name) {
        Some("worker type") if text(0) == "DISK" => {}
        Some("target type") if text(0) == "DISK" => {}
        Some("worker type" | "target type") => findings.fault(unsupported(
            &value.place,
            format!("a worker or target of type {}", value.text.trim()),
            "the lab measures disks: take network workers out",
        )),
        Some("number of outstanding ios") => {
            worker.depth = number(0).clamp(1, 1 << 20);
            if text(1) == "ENABLED" {
                findings.fault(unsupported(
                    &value.place,
                    "the worker opens and closes its targets after some I/Os (test connection rate)",
                    "write DISABLED in its place",
                ));
            }
            if text(3) == "ENABLED" {
                worker.seed = Some(number(4));
            }
        }
        Some("disk maximum size") => {
            worker.sectors = number(0);
            worker.start = number(1);
            worker.data = number(2);
        }
        Some("target") => worker.targets.push(value.text.trim().to_owned()),
        Some(name) => {
            let sentence = key.map_or("", |key| key.sentence);
            findings.note(NoteKind::NotCarried, &line.place, name, sentence);
        }
        None => {}
    }
}
