//! A job as a group of workers.

use super::job::{Job, Jump, READ, Sizes, TRIM, WRITE};
use crate::builder::{self, Builder};
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused};
use crate::limits;
use crate::source::Options;
use plan::{
    Amount, Arrivals, AtEnd, Batch, Caching, Content, Cursor, Data, Depth, Distribution, Engine, Extent,
    FlushRule, Group, Length, Line, Loop, NoteKind, Pace, Pattern, Rate, RateOf, RatePer, Reuse, Sequence,
    Size, Span, Think, Timing, Verify, VerifyWhen, Workers,
};
use std::time::Duration;

/// Where a job's I/Os go: one group of files for all clones, or one for each clone.
struct Files {
    names: Vec<Vec<String>>,
    generated: bool,
}

impl Job {
    /// The groups of this job: one, or one per clone where clones have several files of their own each.
    pub(crate) fn groups(
        &self,
        builder: &mut Builder,
        options: &Options<'_>,
        findings: &mut Findings,
    ) -> Result<Vec<Group>, Fault> {
        self.check()?;
        self.remark(findings);
        let files = self.target_names()?;
        let each = files.names.first().map_or(1, Vec::len).max(1) as u64;
        let mut pattern = self.pattern(each, findings)?;
        if self.verification.only {
            // Never writes, whatever rw= says (fio's HOWTO: verify_only).
            pattern.lines.iter_mut().for_each(|line| (line.reads, line.trims) = (100.0, 0.0));
        }
        if files.generated {
            self.lay_out(&mut pattern.span, each, findings);
        }
        let size = self.file_length(&pattern.span, each);
        if self.fill && self.size.is_none() && self.file_size.is_none() && !options.has_targets {
            let named = files.names.iter().flatten().all(|name| (options.is_device)(name));
            if !named {
                return Err(crate::findings::unsupported(
                    &self.place,
                    format!("the job {} writes until the file system is full (fill_device=1)", self.name),
                    "add size=, or name a device with --target",
                ));
            }
        }
        if files.generated && size.is_none() && self.uri.is_none() && !options.has_targets {
            return Err(refused(
                &self.place,
                format!("the job {} has neither size= nor filename=", self.name),
                "fio says `you need to specify size=`",
                "add size=, or filename= of something that has a size, or name a target with --target",
            ));
        }
        let mut indices: Vec<Vec<usize>> = Vec::new();
        for names in &files.names {
            let mut group = Vec::new();
            for name in names {
                let size = size.filter(|_| !(options.is_device)(name) && self.uri.is_none());
                group.push(builder.target(None, name, size));
                builder.room(0, 0, 0, &self.place)?;
            }
            indices.push(group);
        }
        let caching = self.caching(findings);
        let mut group = builder::group(&self.name, Vec::new(), pattern, self.timing(), caching);
        group.depth = Depth::PerWorker(self.depth);
        group.rates = self.rates();
        group.data = self.data();
        group.verify = self.verification(findings);
        if self.verification.only {
            group.rates.iter_mut().for_each(|rate| rate.of = RateOf::All);
            group.caching.flush = None;
        }
        group.engine = self.engine();
        group.batch = self.batch();
        Ok(self.spread(group, indices))
    }

    /// The group over its files. Clones with one file each are workers of their targets.
    fn spread(&self, group: Group, indices: Vec<Vec<usize>>) -> Vec<Group> {
        match indices.len() {
            1 => {
                let targets = indices.into_iter().next().expect("its length is 1");
                vec![Group { targets, workers: Workers::Together(self.count), ..group }]
            }
            _ if indices.iter().all(|files| files.len() == 1) => {
                let targets = indices.into_iter().flatten().collect();
                vec![Group { targets, workers: Workers::PerTarget(1), ..group }]
            }
            _ => (indices.into_iter().enumerate())
                .map(|(clone, targets)| {
                    let mut group = Group { targets, workers: Workers::Together(1), ..group.clone() };
                    group.pattern.span.offset =
                        shifted(group.pattern.span.offset, group.pattern.span.worker_step, clone);
                    group.pattern.span.worker_step = Extent::Bytes(0);
                    group
                })
                .collect(),
        }
    }

    /// What fio refuses when it looks at a job as a whole.
    fn check(&self) -> Result<(), Fault> {
        let rate = self.rate_bytes.iter().any(Option::is_some);
        if rate && self.rate_iops.iter().any(Option::is_some) {
            return Err(refused(
                &self.place,
                format!("the job {} has rate= and rate_iops=", self.name),
                "fio says `rate and rate_iops are mutually exclusive`",
                "take one of them out",
            ));
        }
        self.check_verification()?;
        if let Some((shown, place)) =
            self.file_choice.as_ref().filter(|_| self.files.len().max(self.files_count as usize) > 1)
        {
            return Err(crate::findings::unsupported(
                place,
                format!("`{shown}` chooses among the files of the job {}", self.name),
                "write a job for each file, or file_service_type=roundrobin",
            ));
        }
        let smallest = self.smallest_block();
        let one_size = self.directions().all(|direction| self.sizes(direction) == Sizes::One(smallest));
        if self.passes.ios.is_some() && (!one_size || self.time_based) {
            return Err(crate::findings::unsupported(
                &self.place,
                format!(
                    "the job {} ends passes after a number of I/Os (number_ios) of several sizes or for a time",
                    self.name
                ),
                "write io_size= for an amount of bytes, or one bs= and no time_based",
            ));
        }
        for size in [self.size, self.file_size.map(Extent::Bytes)].into_iter().flatten() {
            if let Extent::Bytes(size) = size
                && size < smallest
            {
                return Err(refused(
                    &self.place,
                    format!("the job {} has {size} bytes and I/Os of {smallest}", self.name),
                    "fio says `size too small`",
                    "write a larger size=, with its unit (10g)",
                ));
            }
        }
        Ok(())
    }

    /// What cannot be verified without writing it.
    fn check_verification(&self) -> Result<(), Fault> {
        let only = self.verification.only || !(self.mode.write || self.mode.trim);
        if self.verification.only && self.verify.is_none() {
            return Err(malformed(
                &self.place,
                format!("the job {} has verify_only and no verify=", self.name),
                "add verify=crc32c, or take verify_only out",
            ));
        }
        if only && self.verify.is_some() && self.verification.by_pattern {
            return Err(crate::findings::unsupported(
                &self.place,
                format!("the job {} compares what it reads with verify_pattern=", self.name),
                "the lab compares with its own checksums: write the data with verify= in the same run or in an earlier run of the lab",
            ));
        }
        Ok(())
    }

    fn directions(&self) -> impl Iterator<Item = usize> + '_ {
        [(READ, self.mode.read), (WRITE, self.mode.write), (TRIM, self.mode.trim)]
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(direction, _)| direction)
    }

    fn smallest_block(&self) -> u64 {
        self.directions().map(|direction| smallest(&self.sizes(direction))).min().unwrap_or(1)
    }

    /// Defaults and silent rules that decide something.
    fn remark(&self, findings: &mut Findings) {
        if self.engine.is_none() {
            let text = "fio's default is psync: blocking calls, with one I/O of each job in flight";
            findings.note(NoteKind::Default, &self.place, "ioengine", text);
        }
        if self.engine() == Engine::Blocking && self.depth > 1 {
            let text = format!(
                "iodepth={} has no effect with blocking calls: the depth is 1; use ioengine=io_uring",
                self.depth
            );
            findings.note(NoteKind::Trap, &self.place, "iodepth", text);
        }
        if self.direct.is_none() {
            let text =
                "I/Os go through the page cache, so memory is measured together with the disk; add direct=1";
            findings.note(NoteKind::Default, &self.place, "direct", text);
        } else if self.direct == Some(false) && self.engine() == Engine::LinuxAio {
            let text = "the kernel executes libaio I/Os on buffered files one after another";
            findings.note(NoteKind::Trap, &self.place, "direct", text);
        }
        if self.mode.random && self.visits_each_once() {
            let text = "random I/Os visit every block once before they repeat one, so no cache is hit; norandommap=1 draws each block independently";
            findings.note(NoteKind::Default, &self.place, "norandommap", text);
        }
        if self.time_based && self.runtime.is_zero() {
            let text = "fio ignores time_based without runtime=: the job ends when its size is done";
            findings.note(NoteKind::Trap, &self.place, "time_based", text);
        }
        if self.latency_target.is_some() && self.latency_window.is_none() {
            let text = "latency_window is not set: each step of the search lasts 5 s";
            findings.note(NoteKind::Default, &self.place, "latency_window", text);
        }
        if !self.mode.random && self.random_percent != [100.0; 3] {
            let text = "fio ignores percentage_random where rw= is sequential";
            findings.note(NoteKind::Trap, &self.place, "percentage_random", text);
        }
        if self.count > 1
            && !self.mode.random
            && self.offset_step == Extent::Bytes(0)
            && !self.files.is_empty()
        {
            let text = "all clones start at the same offset, so the later ones may be served from cache; use offset_increment";
            findings.note(NoteKind::Trap, &self.place, "numjobs", text);
        }
    }

    /// The names of the files, for all clones or for each.
    fn target_names(&self) -> Result<Files, Fault> {
        if self.engine == Some("nbd") {
            let Some(uri) = &self.uri else {
                return Err(refused(
                    &self.place,
                    format!("the job {} uses nbd without uri=", self.name),
                    "fio says `uri parameter was not specified`",
                    "add uri=nbd://host/export",
                ));
            };
            return Ok(Files { names: vec![vec![uri.clone()]], generated: false });
        }
        let folder = |clone: u32| match self.directories.len() {
            0 => String::new(),
            count => format!("{}/", self.directories[clone as usize % count].trim_end_matches('/')),
        };
        if self.files.len() > limits::TARGETS_MAX {
            let found = format!("the job {} names {} files", self.name, self.files.len());
            return Err(malformed(&self.place, found, "name fewer"));
        }
        if !self.files.is_empty() {
            let names = (self.files.iter())
                .map(|name| if name.starts_with('/') { name.clone() } else { folder(0) + name })
                .collect();
            return Ok(Files { names: vec![names], generated: false });
        }
        let made = u64::from(self.count) * u64::from(self.files_count);
        if made > limits::TARGETS_MAX as u64 {
            let found = format!("the job {} makes {made} files", self.name);
            return Err(malformed(&self.place, found, "write a smaller numjobs or nrfiles"));
        }
        let format = self.file_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
        let shared = !format.contains("$jobnum");
        let clones = if shared { 1 } else { self.count };
        let names = (0..clones)
            .map(|clone| {
                (0..self.files_count)
                    .map(|file| {
                        let name = format
                            .replace("$jobname", &self.section)
                            .replace("$jobnum", &clone.to_string())
                            .replace("$filenum", &file.to_string());
                        folder(clone) + &name
                    })
                    .collect()
            })
            .collect();
        Ok(Files { names, generated: true })
    }

    /// Percentages of files that fio makes itself are those of their sizes.
    fn lay_out(&self, span: &mut Span, files: u64, findings: &mut Findings) {
        let Some(Extent::Bytes(size)) = self.size else { return };
        let block = self.smallest_block();
        for extent in [&mut span.offset, &mut span.worker_step] {
            if let Extent::Percent(percent) = *extent {
                *extent = Extent::Bytes(Extent::Percent(percent).of(size / files).next_multiple_of(block));
                let text = "fio takes an offset in percent of a file that does not exist yet for 0; the lab takes it as a percentage of size=";
                findings.note(NoteKind::Changed, &self.place, "offset", text);
            }
        }
    }

    /// How long a file must be for the span, if the job says.
    fn file_length(&self, span: &Span, files: u64) -> Option<u64> {
        let bytes = |extent: Extent| match extent {
            Extent::Bytes(bytes) => Some(bytes),
            Extent::Percent(_) => None,
        };
        if let Some(size) = self.file_size {
            return Some(size);
        }
        let length = bytes(self.size?)? / files;
        let steps = bytes(span.worker_step)?.saturating_mul(u64::from(self.count) - 1);
        Some(bytes(span.offset)?.saturating_add(length).saturating_add(steps))
    }

    fn pattern(&self, files: u64, findings: &mut Findings) -> Result<Pattern, Fault> {
        let mut pattern = Pattern::simple(4096, 100.0, 0.0);
        pattern.lines = self.lines()?;
        pattern.distribution = self.distribution.clone();
        pattern.reuse = match self.visits_each_once() {
            true => Reuse::EachBlockOnce,
            false => Reuse::Draws,
        };
        if let Jump::Every(count) = self.jump {
            pattern.follow = count - 1;
        }
        pattern.sequence = self.sequence(findings)?;
        let length = match self.size {
            None => self.file_size.map(Extent::Bytes),
            Some(Extent::Bytes(bytes)) => Some(Extent::Bytes(bytes / files)),
            Some(Extent::Percent(percent)) => Some(Extent::Percent(percent)),
        };
        pattern.span = Span { offset: self.offset, length, worker_step: self.offset_step };
        Ok(pattern)
    }

    /// Whether random I/Os go by a map: alignments and distributions of their own turn it off.
    fn visits_each_once(&self) -> bool {
        let aligned = [READ, WRITE, TRIM].into_iter().any(|direction| {
            self.align[direction].is_some_and(|align| align != smallest(&self.sizes(direction)))
        });
        self.each_once && !aligned && self.distribution == Distribution::Uniform
    }

    fn sequence(&self, findings: &mut Findings) -> Result<Sequence, Fault> {
        let mut sequence = Sequence { cursor: Cursor::PerWorker, at_end: AtEnd::Wrap, ..Sequence::default() };
        if let Jump::Gap(gap) = self.jump {
            let mut sizes = self.directions().map(|direction| self.sizes(direction));
            let first = sizes.next();
            let (Some(Sizes::One(size)), true) = (&first, sizes.all(|size| Some(&size) == first.as_ref()))
            else {
                return Err(crate::findings::unsupported(
                    &self.place,
                    format!("the job {} leaves gaps between I/Os of several sizes", self.name),
                    "write one bs=",
                ));
            };
            let stride = i64::try_from(*size).expect("sizes fit 63 bits").saturating_add(gap);
            if stride == 0 {
                return Err(crate::findings::unsupported(
                    &self.place,
                    format!("the job {} repeats one block", self.name),
                    "write another gap behind rw=",
                ));
            }
            sequence.stride = Some(stride);
            if self.mode.read && self.mode.write {
                let text = "reads and writes continue one shared sequence";
                findings.note(NoteKind::Changed, &self.place, "rw", text);
            }
        }
        Ok(sequence)
    }

    /// The mix: one line for each size where all directions are alike, else lines for each direction.
    fn lines(&self) -> Result<Vec<Line>, Fault> {
        let kind = |direction: usize| {
            let random = if self.mode.random { self.random_percent[direction] } else { 0.0 };
            (self.sizes(direction), random, self.align[direction])
        };
        let think = self.think();
        let line = |size: Size, weight: f64, reads: f64, trims: f64, direction: usize| {
            let (_, random, align) = kind(direction);
            Line { weight, size, reads, trims, random, align, think }
        };
        let directions: Vec<usize> = self.directions().collect();
        let first = *directions.first().expect("every mode has a direction");
        let alike = directions.iter().all(|direction| kind(*direction) == kind(first));
        let (reads, trims) = match (self.mode.read, self.mode.write, self.mode.trim) {
            (true, true, _) => (self.mix_read, 0.0),
            (true, false, _) => (100.0, 0.0),
            (false, _, true) => (0.0, 100.0),
            (false, _, false) => (0.0, 0.0),
        };
        let parts: Vec<(usize, f64, f64, f64)> = if alike {
            vec![(first, 1.0, reads, trims)]
        } else {
            vec![(READ, self.mix_read / 100.0, 100.0, 0.0), (WRITE, 1.0 - self.mix_read / 100.0, 0.0, 0.0)]
        };
        let mut lines = Vec::new();
        for (direction, part, reads, trims) in parts.into_iter().filter(|(_, part, _, _)| *part > 0.0) {
            match self.sizes(direction) {
                Sizes::One(size) => lines.push(line(Size::Fixed(size), part, reads, trims, direction)),
                Sizes::Range { min, max } => {
                    let step = if self.range_unaligned { 1 } else { min };
                    lines.push(line(Size::Range { min, max, step }, part, reads, trims, direction));
                }
                Sizes::Split(sizes) => {
                    lines.extend((sizes.into_iter()).map(|(size, percent)| {
                        line(Size::Fixed(size), part * percent, reads, trims, direction)
                    }))
                }
            }
        }
        if !alike && self.directions().any(|direction| matches!(self.sizes(direction), Sizes::Split(_))) {
            scale_singles(&mut lines, self);
        }
        Ok(lines)
    }

    /// A full queue that drains to `iodepth_low` is filled again after as many completions.
    fn batch(&self) -> Batch {
        let drained = if self.depth_low > 0 { self.depth.saturating_sub(self.depth_low) } else { 0 };
        let complete = self.batch.complete.max(drained);
        Batch { complete, complete_max: complete, ..self.batch }
    }

    fn think(&self) -> Option<Think> {
        (!self.think.is_zero()).then(|| Think {
            after: self.think_after,
            pause: self.think,
            spin: self.think_spin >= self.think,
            start: self.think_start,
        })
    }

    fn timing(&self) -> Timing {
        let amount = match self.io_size {
            Some(Extent::Bytes(bytes)) => {
                // A loop ends with the span, or before it with io_size=; there are so many of them, and more until io_size= is
                // done.
                let pass = match self.size {
                    Some(Extent::Bytes(size)) => bytes.min(size),
                    _ => bytes,
                };
                Amount::Bytes(pass.saturating_mul(u64::from(self.passes.count)).max(bytes))
            }
            Some(Extent::Percent(percent)) => Amount::Passes(percent / 100.0 * f64::from(self.passes.count)),
            None => Amount::Passes(f64::from(self.passes.count)),
        };
        let amount = self.passes.ios.map_or(amount, |ios| self.counted(ios, amount));
        let length = match (self.runtime.is_zero(), self.time_based) {
            (true, _) => Length::Amount(amount),
            (false, true) => Length::Time(self.runtime),
            (false, false) => Length::First { time: self.runtime, amount },
        };
        Timing { delay: self.delay, ramp: self.ramp, length, cooldown: Duration::ZERO }
    }

    /// What `number_ios=` leaves of an amount: each pass ends after so many I/Os of one size, or before.
    fn counted(&self, ios: u32, amount: Amount) -> Amount {
        let pass = u64::from(ios).saturating_mul(self.smallest_block());
        let shorter = match (self.size, self.io_size) {
            (Some(Extent::Bytes(size)), None) => Some(size),
            (_, Some(Extent::Bytes(size))) => Some(size),
            _ => None,
        };
        match shorter {
            Some(size) if size <= pass => amount,
            _ => Amount::Bytes(pass.saturating_mul(u64::from(self.passes.count))),
        }
    }

    fn rates(&self) -> Vec<Rate> {
        let rate = |pace: Pace, of: RateOf| Rate {
            pace,
            per: RatePer::Worker,
            of,
            arrivals: if self.poisson { Arrivals::Poisson } else { Arrivals::Even },
            clock: if self.offload { Loop::Open } else { Loop::Closed },
        };
        let one = self.directions().count() == 1;
        let mut rates = Vec::new();
        for direction in self.directions() {
            let of = match direction {
                _ if one => RateOf::All,
                READ => RateOf::Reads,
                WRITE => RateOf::Writes,
                _ => RateOf::Trims,
            };
            rates.extend(self.rate_bytes[direction].map(|bytes| rate(Pace::Bytes(bytes as f64), of)));
            rates.extend(self.rate_iops[direction].map(|iops| rate(Pace::Iops(iops as f64), of)));
        }
        rates
    }

    fn data(&self) -> Data {
        let content = match &self.pattern {
            _ if self.zeroes => Content::Zeroes,
            Some(bytes) if self.compress == 0 => Content::Pattern(bytes.clone()),
            _ if self.refill || self.compress > 0 || self.duplicates > 0 => Content::Random,
            _ => Content::Scrambled,
        };
        let block = self.smallest_block();
        let unit =
            self.compress_unit.unwrap_or(if self.duplicates > 0 || self.compress > 0 { block } else { 4096 });
        Data {
            content,
            compressible: f64::from(self.compress),
            duplicates: f64::from(self.duplicates),
            unit: unit.max(512).checked_next_power_of_two().unwrap_or(4096).min(1 << 30),
        }
    }

    fn verification(&self, findings: &mut Findings) -> Option<Verify> {
        self.verify.as_ref()?;
        let when = if self.verification.only || !self.mode.write {
            VerifyWhen::Only
        } else if self.verification.backlog > 0 {
            VerifyWhen::Backlog(self.verification.backlog)
        } else if !self.verification.without_end {
            VerifyWhen::After
        } else {
            VerifyWhen::Later
        };
        if when == VerifyWhen::After {
            let text = "written data is read back after the job; these reads take extra time and are not part of the load";
            findings.note(NoteKind::Default, &self.place, "verify", text);
        }
        Some(Verify { when, interval: self.verification.interval, fatal: self.verification.fatal })
    }

    fn caching(&self, findings: &mut Findings) -> Caching {
        if self.flush_every > 0 && self.flush_data_every > 0 {
            let text = "fsync and fdatasync are both set: the lab does the more frequent one";
            findings.note(NoteKind::Changed, &self.place, "fdatasync", text);
        }
        let data_only =
            self.flush_data_every > 0 && (self.flush_every == 0 || self.flush_data_every < self.flush_every);
        let every = if data_only { self.flush_data_every } else { self.flush_every };
        let flush =
            (every > 0 || self.flush_end).then_some(FlushRule { every, data_only, at_end: self.flush_end });
        Caching { direct: self.direct.unwrap_or(false), write_through: self.write_through, flush }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self.engine.unwrap_or("psync") {
            "io_uring" | "nbd" | "posixaio" | "windowsaio" | "solarisaio" => Engine::IoUring,
            "libaio" => Engine::LinuxAio,
            _ => Engine::Blocking,
        }
    }
}

fn smallest(sizes: &Sizes) -> u64 {
    match sizes {
        Sizes::One(size) | Sizes::Range { min: size, .. } => *size,
        Sizes::Split(sizes) => sizes.iter().map(|(size, _)| *size).min().unwrap_or(1),
    }
}

/// Where one direction has a split in percent and the other one size, both are brought to percent.
fn scale_singles(lines: &mut [Line], job: &Job) {
    for line in lines {
        let direction = if line.reads > 0.0 { READ } else { WRITE };
        if !matches!(job.sizes(direction), Sizes::Split(_)) {
            line.weight *= 100.0;
        }
    }
}

/// Whether a name is most likely that of a block device or an export, which is as large as it is.
pub fn is_device(name: &str) -> bool {
    // Below /dev there are files too.
    (name.starts_with("/dev/")
        && !["/dev/shm/", "/dev/hugepages/", "/dev/mqueue/"].iter().any(|folder| name.starts_with(folder)))
        || name.starts_with("\\\\.\\")
        || name.starts_with("nbd:")
        || name.starts_with("nbd+")
}

fn shifted(offset: Extent, step: Extent, times: usize) -> Extent {
    let count = times as u64;
    match (offset, step) {
        (Extent::Bytes(offset), Extent::Bytes(step)) => {
            Extent::Bytes(offset.saturating_add(step.saturating_mul(count)))
        }
        (Extent::Percent(offset), Extent::Percent(step)) => {
            Extent::Percent((offset + step * count as f64).min(100.0))
        }
        (Extent::Bytes(0), step) => shifted(Extent::Percent(0.0), step, times),
        (offset, _) => offset,
    }
}
