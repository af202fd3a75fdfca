//! Parameters as definitions: general ones, then `hd`, `sd`, `wd`, `rd`, in this order.

use super::keys::{Found, GENERAL, HD, PARAMETERS, RD, SD, WD, find};
use super::lex::Parameter;
use super::settings::{Flags, General, Goal, Job, Loop, Part, Rd, Sd, Seek, Setting, Transfer, Wd};
use crate::error::Fault;
use crate::findings::{Findings, refused, unit_trap, unsupported};
use crate::keys::{Key, Treatment};
use crate::limits;
use crate::source::{Options, Source};
use plan::{Arrivals, NoteKind, Place, WriteThrough};

/// Where the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    General,
    Hosts,
    Storage,
    Workloads,
    Runs,
}

struct Reader<'a> {
    job: Job,
    section: Section,
    sd: Sd,
    wd: Wd,
    rd: Rd,
    in_default: bool,
    /// Keys of the definition so far.
    given: Vec<&'static str>,
    /// Whether the rest of the line belongs to a definition that cannot stand here.
    is_skipping: bool,
    options: &'a Options<'a>,
}

/// All definitions.
pub(crate) fn read(
    source: &Source,
    parameters: Vec<Parameter>,
    options: &Options<'_>,
    findings: &mut Findings,
) -> Job {
    let place = Place { file: source.name.clone(), line: 1, column: 1 };
    let mut reader = Reader::new(place, options);
    for parameter in &parameters {
        if let Err(fault) = reader.parameter(parameter, findings) {
            findings.fault(fault);
        }
    }
    reader.finish_sd(findings);
    reader.additions(findings);
    reader.job.wd_default = reader.wd;
    reader.job
}

impl<'a> Reader<'a> {
    fn new(place: Place, options: &'a Options<'a>) -> Reader<'a> {
        let wd = Wd {
            name: "default".into(),
            place: place.clone(),
            sds: None,
            hosts: None,
            transfer: Transfer::Mix(vec![(4096, 100.0)]),
            reads: 100.0,
            seek: Seek { random: 100.0, stops: false },
            read_hits: 0.0,
            write_hits: 0.0,
            skew: None,
            part: None,
            flags: None,
        };
        Reader {
            job: Job {
                place: place.clone(),
                hosts: Vec::new(),
                wd_default: wd.clone(),
                general: General { compression: 1.0, deduplication: 1.0, unit: 128 << 10 },
                sds: Vec::new(),
                wds: Vec::new(),
                rds: Vec::new(),
            },
            section: Section::General,
            sd: Sd {
                name: String::new(),
                place: place.clone(),
                luns: Vec::new(),
                hosts: Vec::new(),
                size: None,
                flags: Flags::default(),
                threads: 8,
                part: None,
                hit_area: 1 << 20,
                offset: 0,
                align: None,
                count: None,
            },
            wd,
            rd: Rd {
                name: String::new(),
                place,
                wds: Vec::new(),
                sds: None,
                goals: Vec::new(),
                curve: vec![10.0, 50.0, 70.0, 80.0, 90.0, 100.0],
                elapsed: 30,
                interval: 1,
                warmup: None,
                pause: 0,
                bytes_max: None,
                arrivals: Arrivals::Poisson,
                flags: None,
                loops: Vec::new(),
            },
            in_default: false,
            given: Vec::new(),
            is_skipping: false,
            options,
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
        let scope = match self.section {
            Section::General => GENERAL,
            Section::Hosts => HD,
            Section::Storage => SD,
            Section::Workloads => WD,
            Section::Runs => RD,
        };
        let key = known(scope, parameter)?;
        if key.treatment == Treatment::Carried {
            self.given_once(key, parameter, findings)?;
        }
        match key.treatment {
            Treatment::Carried => {}
            Treatment::Noted => {
                findings.note(NoteKind::NotCarried, &parameter.place, key.name, key.sentence);
                return Ok(());
            }
            Treatment::Refused if parameter.values == ["no"] => return Ok(()),
            Treatment::Refused => {
                return Err(unsupported(&parameter.place, format!("`{}`", parameter.shown()), key.sentence));
            }
        }
        match self.section {
            Section::General => self.general(key, parameter),
            Section::Hosts => Ok(()),
            Section::Storage => self.storage(key, parameter, findings),
            Section::Workloads => self.workload(key, parameter, findings),
            Section::Runs => self.run(key, parameter, findings),
        }
    }

    /// The section of the definition that a parameter begins. Vdbench goes by the key alone, wherever it stands in a line: a
    /// comma before a definition changes nothing, and `sd=` below `wd=` is a key of that workload.
    fn begun(&mut self, parameter: &Parameter) -> Result<Option<Section>, Fault> {
        let (section, names): (_, Vec<&str>) = match parameter.key.as_str() {
            "hd" => (Section::Hosts, self.job.hosts.iter().map(String::as_str).collect()),
            "sd" => (Section::Storage, self.job.sds.iter().map(|sd| sd.name.as_str()).collect()),
            "wd" => (Section::Workloads, self.job.wds.iter().map(|wd| wd.name.as_str()).collect()),
            "rd" => (Section::Runs, Vec::new()),
            _ => return Ok(None),
        };
        if section >= self.section {
            return Ok(Some(section));
        }
        // A definition that comes too late: Vdbench takes it for a key, and complains about the next key.
        let is_new =
            parameter.values.iter().all(|name| !name.contains(['*', '-']) && !names.contains(&name.as_str()));
        if parameter.first && is_new {
            self.is_skipping = true;
            return Err(parameter.refused(
                "Vdbench wants the order general, hd, sd, wd, rd, and complains about another key",
                "move the line up",
            ));
        }
        Ok(None)
    }

    /// What Vdbench makes of a key that a definition has twice.
    fn given_once(
        &mut self,
        key: &'static Key,
        parameter: &Parameter,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let pairs = self.section == Section::Storage && matches!(key.name, "lun" | "host");
        if pairs || !self.given.contains(&key.name) {
            self.given.push(key.name);
            return Ok(());
        }
        if self.section == Section::Runs && key.name == "wd" {
            return Err(parameter
                .refused("Vdbench takes wd= once in a run", "write all of them in one list: wd=(wd1,wd2)"));
        }
        if self.section == Section::Runs && key.name.starts_with("for") {
            return Err(unsupported(
                &parameter.place,
                format!("`{}` is a second loop over the same setting", parameter.shown()),
                "write all values in one list",
            ));
        }
        let text = format!("{}= stands twice in this definition: Vdbench takes the last", key.name);
        findings.note(NoteKind::Trap, &parameter.place, key.name, text);
        Ok(())
    }

    fn begin(&mut self, parameter: &Parameter) -> Result<(), Fault> {
        self.given.clear();
        let name = parameter.one()?.to_owned();
        self.in_default = name.eq_ignore_ascii_case("default");
        let twice = |exists: bool| match exists {
            true => {
                Err(parameter.refused("Vdbench refuses a name that stands twice", "give it another name"))
            }
            false => Ok(()),
        };
        let full = |count: usize| match count >= limits::DEFINITIONS_MAX {
            true => Err(crate::findings::malformed(
                &parameter.place,
                "there are too many definitions",
                "split the file",
            )),
            false => Ok(()),
        };
        match self.section {
            Section::General => {}
            Section::Hosts => {
                twice(self.job.hosts.contains(&name))?;
                if !self.in_default {
                    full(self.job.hosts.len())?;
                    self.job.hosts.push(name);
                }
            }
            Section::Storage => {
                if !self.in_default {
                    let place = parameter.place.clone();
                    full(self.job.sds.len())?;
                    self.job.sds.push(Sd { name, place, ..self.sd.clone() });
                }
            }
            Section::Workloads => {
                twice(self.job.wds.iter().any(|wd| wd.name == name))?;
                if !self.in_default {
                    let place = parameter.place.clone();
                    full(self.job.wds.len())?;
                    self.job.wds.push(Wd { name, place, ..self.wd.clone() });
                }
            }
            Section::Runs => {
                twice(self.job.rds.iter().any(|rd| rd.name == name))?;
                if !self.in_default {
                    let place = parameter.place.clone();
                    full(self.job.rds.len())?;
                    let mut rd = Rd { name, place, ..self.rd.clone() };
                    rd.elapsed = self.options.elapsed.unwrap_or(rd.elapsed);
                    rd.interval = self.options.interval.unwrap_or(rd.interval);
                    self.job.rds.push(rd);
                }
            }
        }
        Ok(())
    }

    fn general(&mut self, key: &Key, parameter: &Parameter) -> Result<(), Fault> {
        let general = &mut self.job.general;
        match key.name {
            "compratio" => general.compression = ratio(parameter, parameter.one()?)?,
            "dedupratio" => general.deduplication = ratio(parameter, parameter.one()?)?,
            _ => general.unit = parameter.block_of(parameter.one()?)?,
        }
        Ok(())
    }

    fn storage(&mut self, key: &Key, parameter: &Parameter, findings: &mut Findings) -> Result<(), Fault> {
        let hosts = self.job.host_names();
        let sd = match self.in_default {
            true => &mut self.sd,
            false => self.job.sds.last_mut().unwrap_or(&mut self.sd),
        };
        match key.name {
            "lun" if self.in_default => {
                return Err(parameter.refused("Vdbench takes no lun= in sd=default", "write it in each sd="));
            }
            "lun" => sd.luns.push(parameter.one()?.to_owned()),
            "host" => sd.hosts.push(parameter.names(&hosts)?),
            // A second number divides the first.
            "size" => {
                let [size, parts] = parameter.divided()?;
                sd.size = Some(size / parts);
            }
            "openflags" => sd.flags = flags(parameter, findings)?,
            "threads" => {
                let [threads, parts] = parameter.divided()?;
                sd.threads = parameter.count_of(&(threads / parts).to_string())?;
            }
            "range" => sd.part = Some(part(parameter)?),
            "hitarea" => sd.hit_area = parameter.bytes_of(parameter.one()?)?,
            "offset" => sd.offset = parameter.bytes_of(parameter.one()?)?,
            "align" => sd.align = Some(parameter.block_of(parameter.one()?)?),
            "count" => match parameter.values.as_slice() {
                [start, count] => {
                    sd.count = Some((parameter.bytes_of(start)?, u64::from(parameter.count_of(count)?)));
                }
                _ => return Err(parameter.refused("Vdbench expects two numbers", "write count=(1,5)")),
            },
            _ => {}
        }
        Ok(())
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
                "add lun=; a blank before it makes it a comment",
            )),
            (1, 0 | 1) => None,
            (luns, hosts) if luns == hosts => None,
            _ => Some((
                "has another number of lun= than of host=",
                "Vdbench says that they must be defined in pairs",
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
                    let found = format!("count= makes {count} definitions");
                    findings.fault(crate::findings::malformed(&sd.place, found, "write a smaller number"));
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
            findings.fault(refused(
                &sd.place,
                format!("sd={} stands twice", sd.name),
                "Vdbench refuses a name that stands twice",
                "give it another name",
            ));
        }
    }

    fn workload(&mut self, key: &Key, parameter: &Parameter, findings: &mut Findings) -> Result<(), Fault> {
        let sds = &self.job.sds;
        let known = || sds.iter().map(|sd| sd.name.clone()).collect::<Vec<String>>();
        let hosts = self.job.host_names();
        let wd = match self.in_default {
            true => &mut self.wd,
            false => self.job.wds.last_mut().unwrap_or(&mut self.wd),
        };
        match key.name {
            "sd" => wd.sds = Some(parameter.names(&known())?),
            "xfersize" => wd.transfer = transfer(parameter)?,
            "host" => wd.hosts = Some(parameter.names(&hosts)?),
            "wrpct" => wd.reads = 100.0 - parameter.percent_of(parameter.one()?)?,
            "rdpct" => wd.reads = parameter.percent_of(parameter.one()?)?,
            "seekpct" => wd.seek = seek(parameter, parameter.one()?, findings)?,
            "rhpct" => wd.read_hits = parameter.percent_of(parameter.one()?)?,
            "whpct" => wd.write_hits = parameter.percent_of(parameter.one()?)?,
            "skew" => wd.skew = Some(parameter.percent_of(parameter.one()?)?),
            "range" => wd.part = Some(part(parameter)?),
            "openflags" => wd.flags = Some(flags(parameter, findings)?),
            "threads" => {
                return Err(parameter.refused(
                    "Vdbench takes threads= of a workload with concatenatesds=yes alone",
                    "write threads= into the storage definition, or forthreads= into the run",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self, key: &Key, parameter: &Parameter, findings: &mut Findings) -> Result<(), Fault> {
        let (sds, wds) = (&self.job.sds, &self.job.wds);
        let sds = || sds.iter().map(|sd| sd.name.clone()).collect::<Vec<String>>();
        let wds = || wds.iter().map(|wd| wd.name.clone()).collect::<Vec<String>>();
        let rd = match self.in_default {
            true => &mut self.rd,
            false => self.job.rds.last_mut().unwrap_or(&mut self.rd),
        };
        match key.name {
            "wd" => rd.wds = parameter.names(&wds())?,
            "sd" => rd.sds = Some(parameter.names(&sds())?),
            "iorate" => rd.goals = goals(parameter)?,
            "curve" => {
                rd.curve = parameter
                    .values
                    .iter()
                    .map(|value| parameter.float_of(value))
                    .collect::<Result<_, _>>()?;
                if rd.curve.iter().any(|&percent| percent <= 0.0) {
                    return Err(parameter.refused("Vdbench expects percentages", "write curve=(10,50,100)"));
                }
            }
            "elapsed" if self.options.elapsed.is_none() => rd.elapsed = parameter.seconds()?,
            "interval" if self.options.interval.is_none() => rd.interval = parameter.seconds()?,
            "elapsed" | "interval" => {}
            "warmup" => rd.warmup = Some(parameter.seconds()?),
            "pause" => rd.pause = parameter.seconds()?,
            "maxdata" => rd.bytes_max = Some(parameter.bytes_of(parameter.one()?)?),
            "distribution" => rd.arrivals = arrivals(parameter, findings)?,
            "openflags" => rd.flags = Some(flags(parameter, findings)?),
            name => {
                let found = looped(name, parameter, findings)?;
                rd.loops.retain(|other| other.key != found.key);
                rd.loops.push(found);
            }
        }
        Ok(())
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

fn known(scope: &str, parameter: &Parameter) -> Result<&'static Key, Fault> {
    match find(scope, &parameter.key) {
        Found::One(key) => Ok(key),
        Found::Several(names) => Err(unsupported(
            &parameter.place,
            format!(
                "`{}` stands for several keys, and Vdbench takes the one that it looks at first",
                parameter.shown()
            ),
            format!("write one of: {}", names.join(", ")),
        )),
        Found::None => {
            let names = PARAMETERS.iter().filter(|key| key.scope == scope).map(|key| key.name);
            let shown: String = parameter.key.chars().take(60).collect();
            let remedy = match crate::keys::nearest(&parameter.key, names) {
                Some(near) => format!("did you mean {near}=?"),
                None => match PARAMETERS.iter().find(|key| key.is(&parameter.key)) {
                    Some(other) => format!("it belongs to {}: move it there", other.scope),
                    None => "take it out".to_owned(),
                },
            };
            Err(parameter.refused(format!("Vdbench says `Unknown keyword: {shown}`"), remedy))
        }
    }
}

fn ratio(parameter: &Parameter, text: &str) -> Result<f64, Fault> {
    let ratio = parameter.float_of(text)?;
    if ratio >= 1.0 {
        return Ok(ratio);
    }
    Err(parameter.refused("Vdbench expects 1 or more: n stands for n to 1", "write 2 for 2:1"))
}

fn flags(parameter: &Parameter, findings: &mut Findings) -> Result<Flags, Fault> {
    let mut flags = Flags::default();
    for value in &parameter.values {
        match value.to_ascii_lowercase().as_str() {
            "o_direct" | "directio" => flags.direct = true,
            "o_sync" => flags.through = WriteThrough::All,
            "o_dsync" => flags.through = WriteThrough::Data,
            "fsync" => flags.flush_end = true,
            "directio_off" | "none" => flags.direct = false,
            "o_rsync" | "fadvise" | "clear_cache" => {
                let text = format!("{value} is not carried over");
                findings.note(NoteKind::NotCarried, &parameter.place, "openflags", text);
            }
            _ => {
                return Err(parameter.refused(
                    "Vdbench does not know the flag",
                    "write o_direct, directio, o_sync, o_dsync or fsync",
                ));
            }
        }
    }
    Ok(flags)
}

fn part(parameter: &Parameter) -> Result<Part, Fault> {
    let [low, high] = parameter.values.as_slice() else {
        return Err(parameter.refused("Vdbench expects two values", "write range=(0,50)"));
    };
    let percent = |text: &str| {
        text.trim_end_matches('%').parse::<f64>().ok().filter(|value| (0.0..=200.0).contains(value))
    };
    match (percent(low), percent(high)) {
        (Some(low), Some(high)) if high > 100.0 => Err(unsupported(
            &parameter.place,
            format!("`{}` wraps around the end of the device", parameter.shown()),
            format!("write two workloads, range=({low},100) and range=(0,{})", high - 100.0),
        )),
        (Some(low), Some(high)) if low < high => Ok(Part::Percent(low, high)),
        (Some(0.0), None) => bytes(parameter, "0", high),
        (None, None) => bytes(parameter, low, high),
        _ => Err(parameter.refused("Vdbench expects low and high", "write range=(0,50), or both in bytes")),
    }
}

fn bytes(parameter: &Parameter, low: &str, high: &str) -> Result<Part, Fault> {
    let (low, high) = (parameter.bytes_of(low)?, parameter.bytes_of(high)?);
    if low < high {
        return Ok(Part::Bytes(low, high));
    }
    Err(parameter.refused("Vdbench expects low and high", "write the lower one first"))
}

/// One size, pairs of size and percent, or smallest, largest and alignment.
fn transfer(parameter: &Parameter) -> Result<Transfer, Fault> {
    match parameter.values.as_slice() {
        [size] => Ok(Transfer::Mix(vec![(parameter.block_of(size)?, 100.0)])),
        [min, max, step] => {
            let (min, max) = (parameter.block_of(min)?, parameter.block_of(max)?);
            let step = parameter.block_of(step)?;
            if min >= max || step % 512 != 0 {
                return Err(
                    parameter.refused("Vdbench expects (smallest,largest,alignment)", "write (4k,64k,4k)")
                );
            }
            Ok(Transfer::Range { min, max, step })
        }
        values if values.len() % 2 == 0 && values.len() <= 2 * limits::MIX_LINES_MAX => {
            let mut mix = Vec::new();
            for pair in values.chunks(2) {
                mix.push((parameter.block_of(&pair[0])?, parameter.percent_of(&pair[1])?));
            }
            let sum: f64 = mix.iter().map(|(_, percent)| percent).sum();
            if sum.round() != 100.0 {
                return Err(parameter.refused(
                    format!("Vdbench wants percentages of 100 together, and these are {sum}"),
                    "change them",
                ));
            }
            mix.retain(|&(_, percent)| percent > 0.0);
            Ok(Transfer::Mix(mix))
        }
        _ => Err(parameter.refused("Vdbench expects a size, pairs, or three values", "write (4k,50,8k,50)")),
    }
}

fn seek(parameter: &Parameter, text: &str, findings: &mut Findings) -> Result<Seek, Fault> {
    let lower = text.to_ascii_lowercase();
    let seek = |random: f64, stops: bool| Ok(Seek { random, stops });
    match lower.as_str() {
        "rand" | "random" => seek(100.0, false),
        "seq" | "sequential" | "same" => seek(0.0, false),
        "seqnz" => {
            let text = "Vdbench begins elsewhere than at the start; the lab begins at the start";
            findings.note(NoteKind::Changed, &parameter.place, "seekpct", text);
            seek(0.0, false)
        }
        "eof" | "-1" => seek(0.0, true),
        "poisson" => Err(unsupported(
            &parameter.place,
            "`seekpct=poisson`",
            "write seekpct=100, or zones as workloads with range= and skew=",
        )),
        _ => seek(parameter.percent_of(text)?, false),
    }
}

fn goals(parameter: &Parameter) -> Result<Vec<Goal>, Fault> {
    let mut goals = Vec::new();
    let numeric: Vec<String> = (parameter.values.iter())
        .filter(|value| !matches!(value.to_ascii_lowercase().as_str(), "max" | "curve"))
        .cloned()
        .collect();
    if numeric.len() < parameter.values.len() && numeric.iter().any(|value| value.contains('-')) {
        return Err(parameter.refused("Vdbench takes a range alone", "write the rates one by one"));
    }
    if numeric.len() == parameter.values.len() {
        for number in parameter.numbers()? {
            goals.push(Goal::Iops(number as f64));
        }
    } else {
        for value in &parameter.values {
            goals.push(match value.to_ascii_lowercase().as_str() {
                "max" => Goal::Max,
                "curve" => Goal::Curve,
                _ => Goal::Iops(parameter.bytes_of(value)? as f64),
            });
        }
    }
    if goals.is_empty() || goals.contains(&Goal::Iops(0.0)) {
        return Err(parameter.refused("Vdbench expects a rate above 0", "write iorate=max or a number"));
    }
    if goals.len() > 1 && goals.contains(&Goal::Curve) {
        return Err(parameter.refused("Vdbench takes curve alone", "write iorate=curve"));
    }
    Ok(goals)
}

fn arrivals(parameter: &Parameter, findings: &mut Findings) -> Result<Arrivals, Fault> {
    let text = parameter.values.first().map(|value| value.to_ascii_lowercase()).unwrap_or_default();
    let starts = |word: &str| !text.is_empty() && word.starts_with(&text);
    if starts("exponential") {
        return Ok(Arrivals::Poisson);
    }
    if starts("uniform") {
        let text = "uniformly distributed intervals become exponentially distributed ones";
        findings.note(NoteKind::Changed, &parameter.place, "distribution", text);
        return Ok(Arrivals::Poisson);
    }
    if starts("deterministic") {
        return Ok(Arrivals::Even);
    }
    Err(parameter
        .refused("Vdbench expects exponential, uniform or deterministic", "write distribution=exponential"))
}

/// A loop of a run, or the one value of a key without `for`.
fn looped(name: &str, parameter: &Parameter, findings: &mut Findings) -> Result<Loop, Fault> {
    let key = name.strip_prefix("for").unwrap_or(name).to_owned();
    let named = name.starts_with("for");
    if key == "xfersize" && !named {
        return Ok(Loop {
            key,
            values: vec![(parameter.values.join("/"), Setting::Transfer(transfer(parameter)?))],
            named,
        });
    }
    let mut values = Vec::new();
    if matches!(key.as_str(), "threads" | "xfersize" | "hitarea") {
        for number in parameter.numbers()? {
            let setting = match key.as_str() {
                "threads" => Setting::Threads(parameter.count_of(&number.to_string())?),
                "hitarea" => Setting::HitArea(number),
                _ => {
                    let size = parameter.block_of(&number.to_string())?;
                    Setting::Transfer(Transfer::Mix(vec![(size, 100.0)]))
                }
            };
            values.push((short(number), setting));
        }
    } else {
        for text in expanded(parameter)? {
            let setting = match key.as_str() {
                "rdpct" => Setting::Reads(parameter.percent_of(&text)?),
                "seekpct" => Setting::Seek(seek(parameter, &text, findings)?),
                "rhpct" => Setting::ReadHits(parameter.percent_of(&text)?),
                "whpct" => Setting::WriteHits(parameter.percent_of(&text)?),
                "dedupratio" => Setting::Deduplication(ratio(parameter, &text)?),
                _ => Setting::Compression(ratio(parameter, &text)?),
            };
            values.push((text, setting));
        }
    }
    if values.is_empty() {
        return Err(unit_trap(
            &parameter.place,
            format!("`{}` is empty", parameter.shown()),
            "Vdbench refuses it",
            "write a value",
        ));
    }
    Ok(Loop { key, values, named })
}

/// Texts of a list, or numbers of its ranges.
fn expanded(parameter: &Parameter) -> Result<Vec<String>, Fault> {
    let ranged =
        parameter.values.iter().any(|value| value.split_once('-').is_some_and(|(low, _)| !low.is_empty()));
    if !ranged {
        return Ok(parameter.values.clone());
    }
    Ok(parameter.numbers()?.into_iter().map(|number| number.to_string()).collect())
}

/// A size as Vdbench writes it: `4k`.
fn short(number: u64) -> String {
    for (shift, unit) in [(30, "g"), (20, "m"), (10, "k")] {
        if number > 0 && number.trailing_zeros() >= shift {
            return format!("{}{unit}", number >> shift);
        }
    }
    number.to_string()
}
