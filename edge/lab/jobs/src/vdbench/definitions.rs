//! Parameters as definitions: general ones, then `hd`, `sd`, `wd`, `rd`, in this order.

use super::keys::{Apply, PARAMETERS, Rule, find};
use super::lex::Parameter;
use super::settings::{General, Job, Loop, Rd, Sd, Seek, Setting, Wd};
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, unsupported};
use crate::keys::Treatment;
use crate::limits;
use crate::source::{Options, Source};
use plan::{Arrivals, NoteKind, Place};

/// Where the reader is; the number is that of its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    General,
    Hosts,
    Storage,
    Workloads,
    Runs,
}

/// What has been read so far.
pub(crate) struct Reader<'a> {
    pub(super) job: Job,
    pub(super) options: &'a Options<'a>,
    /// Whether the definition is a `default`.
    pub(super) in_default: bool,
    section: Section,
    sd: Sd,
    wd: Wd,
    rd: Rd,
    /// Keys of the definition so far, and whether each was a loop.
    given: Vec<(&'static str, bool)>,
    /// Whether the rest of the line belongs to a definition that cannot stand here.
    is_skipping: bool,
}

/// All definitions.
pub(crate) fn read(
    source: &Source,
    parameters: Vec<Parameter>,
    options: &Options<'_>,
    findings: &mut Findings,
) -> Job {
    let mut reader = Reader::new(source.start(), options);
    for parameter in &parameters {
        if let Err(fault) = reader.parameter(parameter, findings) {
            findings.fault(fault);
        }
    }
    reader.finish_sd(findings);
    reader.additions(findings);
    for rd in &mut reader.job.rds {
        rd.elapsed = options.elapsed.unwrap_or(rd.elapsed);
        rd.interval = options.interval.unwrap_or(rd.interval);
    }
    reader.job.wd_default = reader.wd;
    reader.job
}

impl<'a> Reader<'a> {
    /// Vdbench's defaults.
    fn new(place: Place, options: &'a Options<'a>) -> Reader<'a> {
        let general = General { compression: 1.0, deduplication: 1.0, unit: 128 << 10 };
        let seek = Seek { random: 100.0, stops: false };
        Reader {
            job: Job { place: place.clone(), general, ..Job::default() },
            options,
            in_default: false,
            section: Section::General,
            sd: Sd { threads: 8, hit_area: 1 << 20, ..Sd::default() },
            wd: Wd { name: "default".into(), place, reads: 100.0, seek, ..Wd::default() },
            rd: Rd {
                curve: vec![10.0, 50.0, 70.0, 80.0, 90.0, 100.0],
                elapsed: 30,
                interval: 1,
                arrivals: Arrivals::Poisson,
                ..Rd::default()
            },
            given: Vec::new(),
            is_skipping: false,
        }
    }

    fn parameter(&mut self, parameter: &Parameter, findings: &mut Findings) -> Result<(), Fault> {
        self.is_skipping &= !parameter.first;
        if self.is_skipping {
            return Ok(());
        }
        if let Some(section) = self.begun(parameter)? {
            if self.section == Section::Storage {
                self.finish_sd(findings);
            }
            self.section = section;
            return self.begin(parameter);
        }
        let (rule, name) = find(PARAMETERS[self.section as usize], parameter)?;
        if rule.key.treatment == Treatment::Refused && parameter.values == ["no"] {
            return Ok(());
        }
        let apply = rule.admit(name, &parameter.shown(), &parameter.place, findings)?;
        if rule.key.treatment == Treatment::Carried {
            self.given_once(rule, parameter, findings)?;
        }
        match apply {
            None => {}
            Some(Apply::Ratio(set)) => set(&mut self.job.general, parameter.ratio_of(parameter.one()?)?),
            Some(Apply::Percent(set)) => set(self.wd(), parameter.percent_of(parameter.one()?)?),
            Some(Apply::Bytes(set)) => set(self.sd(), parameter.bytes_of(parameter.one()?)?),
            Some(Apply::Seconds(set)) => set(self.rd(), parameter.seconds()?),
            Some(Apply::Set(set)) => set(self, parameter, findings)?,
            Some(Apply::Loop(read)) => {
                let values = parameter
                    .texts()?
                    .into_iter()
                    .map(|(label, text)| Ok((label, read(parameter, &text, findings)?)));
                let values = values.collect::<Result<_, Fault>>()?;
                self.add_loop(rule.key.name.trim_start_matches("for"), parameter, values)?;
            }
        }
        Ok(())
    }

    /// Adds a loop to the run, in place of another one over the same setting.
    pub(super) fn add_loop(
        &mut self,
        key: &'static str,
        parameter: &Parameter,
        values: Vec<(String, Setting)>,
    ) -> Result<(), Fault> {
        if values.is_empty() {
            return Err(parameter.refused("Vdbench rejects an empty list", "write a value"));
        }
        let loops = &mut self.rd().loops;
        loops.retain(|other| other.key != key);
        loops.push(Loop { key, values, named: parameter.key.starts_with("for") });
        Ok(())
    }

    /// The section of the definition that a parameter begins. Vdbench goes by the key alone, wherever it stands in a line: a
    /// comma before a definition changes nothing, and `sd=` below `wd=` is a key of that workload.
    fn begun(&mut self, parameter: &Parameter) -> Result<Option<Section>, Fault> {
        let section = match parameter.key.as_str() {
            "hd" => Section::Hosts,
            "sd" => Section::Storage,
            "wd" => Section::Workloads,
            "rd" => Section::Runs,
            _ => return Ok(None),
        };
        if section >= self.section {
            return Ok(Some(section));
        }
        // A definition that comes too late: Vdbench takes it for a key, and complains about the next key.
        let is_new =
            parameter.values.iter().all(|name| !name.contains(['*', '-']) && !self.has(section, name));
        if parameter.first && is_new {
            self.is_skipping = true;
            return Err(parameter.refused(
                "Vdbench expects general parameters, hd, sd, wd and rd in this order, and complains about another key",
                "move the line up",
            ));
        }
        Ok(None)
    }

    /// Whether a section has a definition of this name.
    fn has(&self, section: Section, name: &str) -> bool {
        match section {
            Section::General => false,
            Section::Hosts => self.job.hosts.iter().any(|host| host == name),
            Section::Storage => self.job.sds.iter().any(|sd| sd.name == name),
            Section::Workloads => self.job.wds.iter().any(|wd| wd.name == name),
            Section::Runs => self.job.rds.iter().any(|rd| rd.name == name),
        }
    }

    /// What Vdbench makes of a key that a definition has twice.
    fn given_once(
        &mut self,
        rule: &Rule,
        parameter: &Parameter,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        // A loop, and its setting without `for`.
        let name = rule.key.name.trim_start_matches("for");
        let loops = self.section == Section::Runs && parameter.key.starts_with("for");
        let pairs = self.section == Section::Storage && matches!(name, "lun" | "host");
        let earlier = self.given.iter().find(|(given, _)| *given == name).map(|(_, loops)| *loops);
        self.given.push((name, loops));
        let Some(earlier_loops) = earlier.filter(|_| !pairs) else { return Ok(()) };
        if self.section == Section::Runs && name == "wd" {
            return Err(parameter.refused(
                "Vdbench allows wd= once in a run",
                "write all workloads in one list: wd=(wd1,wd2)",
            ));
        }
        if loops || earlier_loops {
            return Err(unsupported(
                &parameter.place,
                format!("`{}` is a second loop over the same setting", parameter.shown()),
                "write all values in one list",
            ));
        }
        let text = format!("the definition has {}= twice: Vdbench takes the last value", parameter.key);
        findings.note(NoteKind::Trap, &parameter.place, name, text);
        Ok(())
    }

    fn begin(&mut self, parameter: &Parameter) -> Result<(), Fault> {
        self.given.clear();
        let name = parameter.one()?.to_owned();
        self.in_default = name.eq_ignore_ascii_case("default");
        // Storage definitions are looked at when they end, with those that count= makes.
        if self.section != Section::Storage && self.has(self.section, &name) {
            return Err(twice(&parameter.place, &parameter.shown()));
        }
        if self.in_default {
            return Ok(());
        }
        let place = parameter.place.clone();
        let job = &mut self.job;
        let most = [job.hosts.len(), job.sds.len(), job.wds.len(), job.rds.len()].into_iter().max();
        if most >= Some(limits::DEFINITIONS_MAX) {
            return Err(too_many(&place));
        }
        match self.section {
            Section::General => {}
            Section::Hosts => job.hosts.push(name),
            Section::Storage => job.sds.push(Sd { name, place, ..self.sd.clone() }),
            Section::Workloads => job.wds.push(Wd { name, place, ..self.wd.clone() }),
            Section::Runs => job.rds.push(Rd { name, place, ..self.rd.clone() }),
        }
        Ok(())
    }

    /// The storage definition that the parameters belong to.
    pub(super) fn sd(&mut self) -> &mut Sd {
        self.job.sds.last_mut().filter(|_| !self.in_default).unwrap_or(&mut self.sd)
    }

    /// The workload definition that the parameters belong to.
    pub(super) fn wd(&mut self) -> &mut Wd {
        self.job.wds.last_mut().filter(|_| !self.in_default).unwrap_or(&mut self.wd)
    }

    /// The run definition that the parameters belong to.
    pub(super) fn rd(&mut self) -> &mut Rd {
        self.job.rds.last_mut().filter(|_| !self.in_default).unwrap_or(&mut self.rd)
    }

    /// Repeats the last storage definition as its `count=` says, and looks at what it needs.
    fn finish_sd(&mut self, findings: &mut Findings) {
        if self.in_default || self.section != Section::Storage {
            return;
        }
        let Some(sd) = self.job.sds.pop() else { return };
        let lacking = match (sd.luns.len(), sd.hosts.len()) {
            (0, _) => Some((
                "has no lun=",
                "Vdbench says `No lun name specified`",
                "add lun=; Vdbench takes everything behind a blank for a comment",
            )),
            (1, 0 | 1) => None,
            (luns, hosts) if luns == hosts => None,
            _ => Some((
                "has another number of lun= than of host=",
                "Vdbench expects lun= and host= in pairs",
                "write host= behind each lun=",
            )),
        };
        if let Some((found, tool, remedy)) = lacking {
            findings.fault(refused(&sd.place, format!("sd={} {found}", sd.name), tool, remedy));
        }
        let first = self.job.sds.len();
        match sd.count {
            None => self.job.sds.push(sd),
            Some((start, count)) => {
                if first as u64 + count > limits::DEFINITIONS_MAX as u64 {
                    findings.fault(too_many(&sd.place));
                    return;
                }
                let numbered = |text: &str, number: u64| match text.contains('*') {
                    true => text.replace('*', &number.to_string()),
                    false => format!("{text}{number}"),
                };
                for number in start..start.saturating_add(count) {
                    let name = numbered(&sd.name, number);
                    let luns = sd.luns.iter().map(|lun| numbered(lun, number)).collect();
                    self.job.sds.push(Sd { name, luns, ..sd.clone() });
                }
            }
        }
        let (before, added) = self.job.sds.split_at(first);
        if let Some(sd) = added.iter().find(|sd| before.iter().any(|other| other.name == sd.name)) {
            findings.fault(twice(&sd.place, &format!("sd={}", sd.name)));
        }
    }

    /// `+key=value` of the command line, for every run.
    fn additions(&mut self, findings: &mut Findings) {
        if self.options.additions.is_empty() {
            return;
        }
        let text: Vec<String> =
            self.options.additions.iter().map(|one| one.trim_start_matches('+').trim().to_owned()).collect();
        let source = Source::new("command line", text.join("\n"));
        let parameters = super::lex::parameters(&source, self.options, findings);
        self.section = Section::Runs;
        self.in_default = false;
        self.given.clear();
        let runs = std::mem::take(&mut self.job.rds);
        let mut done = Vec::new();
        for rd in runs {
            self.job.rds = vec![rd];
            for parameter in &parameters {
                let parameter = Parameter { first: false, ..parameter.clone() };
                if let Err(fault) = self.parameter(&parameter, findings) {
                    findings.fault(fault);
                }
            }
            done.append(&mut self.job.rds);
        }
        self.job.rds = done;
    }
}

/// A name that another definition of the kind has.
fn twice(place: &Place, shown: &str) -> Fault {
    let found = format!("two definitions have the name `{shown}`");
    refused(place, found, "Vdbench rejects duplicate names", "rename one of them")
}

fn too_many(place: &Place) -> Fault {
    let found = format!("there are more than {} definitions of one kind", limits::DEFINITIONS_MAX);
    malformed(place, found, "split the file, or write a smaller count=")
}
