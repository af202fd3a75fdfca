//! What a group does, in words: all that decides its run, each fact as a part of its own so that what groups share is said once.
//!
//! Relies on the plan's own types. Must never leave out what changes the I/Os: a reader decides by this text.

use crate::content::{Content, VerifyWhen, WriteThrough};
use crate::outline::format_seconds;
use crate::pace::{Amount, Arrivals, Length, Loop, Pace, PauseStart, Rate, RateOf, RatePer};
use crate::pattern::{AtEnd, Cursor, Distribution, Extent, Line, Pattern, Reuse, Size};
use crate::structure::{Engine, Group};
use base::units::format_bytes;
use std::time::Duration;

/// The most kinds of I/O or zones that are told one by one.
const LISTED_MAX: usize = 8;

impl Pattern {
    /// A few words: `4 KiB, 70 % reads, 100 % random`.
    pub fn describe(&self) -> String {
        let used: Vec<&Line> = self.lines.iter().filter(|line| line.weight > 0.0).collect();
        let total: f64 = used.iter().map(|line| line.weight).sum();
        let alike = used.windows(2).all(|pair| kind(pair[0]) == kind(pair[1]));
        if alike || used.len() > LISTED_MAX {
            let sizes = match used.as_slice() {
                [line] => size(line.size),
                lines => {
                    let mut sizes: Vec<(Size, f64)> = Vec::new();
                    for line in lines {
                        match sizes.iter_mut().find(|(size, _)| *size == line.size) {
                            Some((_, weight)) => *weight += line.weight,
                            None => sizes.push((line.size, line.weight)),
                        }
                    }
                    let shares = (sizes.iter().take(LISTED_MAX))
                        .map(|(of, weight)| format!("{} {} %", size(*of), short(100.0 * weight / total)));
                    let shares: Vec<String> = shares.collect();
                    let more = sizes.len().saturating_sub(LISTED_MAX);
                    let more = if more > 0 { format!(", {more} more sizes") } else { String::new() };
                    format!("{}{more} (mean {})", shares.join(", "), format_bytes(self.size_mean() as u64))
                }
            };
            let kinds = if alike { String::new() } else { format!("{} kinds of I/O: ", used.len()) };
            return format!("{kinds}{sizes}, {}", mix(self.reads(), self.trims(), self.random()));
        }
        let kinds: Vec<String> = (used.iter())
            .map(|line| {
                let share = short(100.0 * line.weight / total);
                format!("{share} % are {}, {}", size(line.size), mix(line.reads, line.trims, line.random))
            })
            .collect();
        let all = mix(self.reads(), self.trims(), self.random());
        format!("{}; in all {all}, mean {}", kinds.join("; "), format_bytes(self.size_mean() as u64))
    }

    /// Where I/Os go, as far as the first words do not say.
    fn places(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let is_random = self.random() > 0.0;
        let around = |center: &Option<f64>| {
            center.map_or(String::new(), |center| format!(" around {} % of the span", short(center * 100.0)))
        };
        match &self.distribution {
            Distribution::Uniform => {}
            Distribution::Zipf { theta, center } => parts.push(format!("zipf {theta}{}", around(center))),
            Distribution::Pareto { h, center } => parts.push(format!("pareto {h}{}", around(center))),
            Distribution::Normal { deviation, center } => {
                parts.push(format!("normal, deviation {deviation} %{}", around(center)));
            }
            Distribution::Zoned(zones) => {
                let listed = zones.iter().take(LISTED_MAX);
                let listed: Vec<String> = listed
                    .map(|zone| format!("{} % of the I/Os on {}", short(zone.ios), extent(zone.length)))
                    .collect();
                let more = zones.len().saturating_sub(LISTED_MAX);
                let more = if more > 0 { format!(", {more} more zones") } else { String::new() };
                parts.push(format!("zones: {}{more}", listed.join(", ")));
            }
        }
        if is_random && self.reuse == Reuse::EachBlockOnce {
            parts.push("each block once before any repeats".to_owned());
        }
        let mut aligns: Vec<u64> = self.lines.iter().filter_map(|line| line.align).collect();
        aligns.dedup();
        parts.extend(
            aligns.first().filter(|_| is_random).map(|align| format!("aligned to {}", format_bytes(*align))),
        );
        if self.follow > 0 {
            parts.push(format!("{} in sequence behind each random I/O", self.follow));
        }
        if let Some(hits) = self.hits {
            let (area, reads, writes) = (format_bytes(hits.bytes), short(hits.reads), short(hits.writes));
            parts.push(format!("{reads} % of reads and {writes} % of writes go to the first {area}"));
        }
        if self.random() < 100.0 {
            parts.extend(self.sequence.stride.map(|stride| {
                let way = if stride < 0 { "backwards" } else { "forwards" };
                format!("each sequential I/O {} {way} from the last", format_bytes(stride.unsigned_abs()))
            }));
            if self.sequence.cursor == Cursor::PerTarget {
                parts.push("one shared sequential position".to_owned());
            }
            if self.sequence.worker_step > 0 {
                parts.push(format!("workers begin {} apart", format_bytes(self.sequence.worker_step)));
            }
            if self.sequence.at_end == AtEnd::Stop {
                parts.push("ends at the end of the span".to_owned());
            }
        }
        for line in &self.lines {
            let Some(think) = line.think else { continue };
            let pause = time(think.pause);
            let spin = if think.spin { ", processor busy" } else { "" };
            let start = match think.start {
                PauseStart::Issued => "",
                PauseStart::Drained => ", once all in flight have completed",
                PauseStart::Completed => " completed, once all in flight have completed",
            };
            let part = format!(
                "pause of {pause} after every {}{start}{spin}",
                count_of(u64::from(think.after), "I/O")
            );
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }

    /// The part of each target, where it is not all of it.
    fn span_part(&self) -> Option<String> {
        let span = &self.span;
        let starts = match span.offset {
            Extent::Bytes(0) => None,
            Extent::Percent(0.0) => None,
            offset => Some(extent(offset)),
        };
        let part = match (starts, span.length) {
            (None, None | Some(Extent::Percent(100.0))) => None,
            (None, Some(length)) => Some(format!("first {}", extent(length))),
            (Some(from), None) => Some(format!("from {from} on")),
            (Some(from), Some(length)) => Some(format!("{} from {from} on", extent(length))),
        };
        let step = match span.worker_step {
            Extent::Bytes(0) | Extent::Percent(0.0) => None,
            step => Some(format!("each worker {} further", extent(step))),
        };
        let parts: Vec<String> = part.into_iter().chain(step).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Group {
    /// All that the group does, a part for each fact; where a target has `size` bytes, durations that follow from rates too.
    pub(crate) fn parts(&self, size: Option<u64>) -> Vec<String> {
        let mut parts = vec![self.pattern.describe()];
        parts.extend(self.pattern.span_part());
        parts.extend(self.pattern.places());
        parts.push(self.force());
        parts.extend(self.rates.iter().map(|rate| self.rate(rate)));
        parts.extend(self.share.map(|share| format!("{} % of the stage's I/Os", short(share))));
        parts.push(self.length(size));
        parts.extend(self.paced_duration(size));
        if self.pattern.writes() {
            parts.extend(self.data());
        }
        parts.push(if self.caching.direct { "direct" } else { "page cache" }.to_owned());
        parts.extend(self.durability());
        parts.push(self.engine_part());
        parts
    }

    /// `4 workers × 16 = 64 outstanding`.
    fn force(&self) -> String {
        let (workers, outstanding) = (self.worker_count(), self.outstanding());
        match workers {
            1 => format!("{outstanding} outstanding"),
            _ => format!("{outstanding} outstanding ({workers} workers)"),
        }
    }

    fn rate(&self, rate: &Rate) -> String {
        let of = match rate.of {
            RateOf::All => "",
            RateOf::Reads => "reads ",
            RateOf::Writes => "writes ",
            RateOf::Trims => "trims ",
        };
        let per = match rate.per {
            RatePer::WorkerAndTarget if self.worker_count() > 1 || self.targets.len() > 1 => {
                " per worker and target"
            }
            RatePer::Worker if self.worker_count() > 1 => " per worker",
            RatePer::WorkerAndTarget | RatePer::Worker | RatePer::Group => "",
        };
        let arrivals = match rate.arrivals {
            Arrivals::Even => "",
            Arrivals::Poisson => ", random intervals",
        };
        let clock = match rate.clock {
            Loop::Closed => "",
            Loop::Open => ", open loop",
        };
        let mean = self.pattern.size_mean().max(1.0);
        let (pace, gap) = match rate.pace {
            Pace::Iops(iops) => (format!("{} IOPS", short(iops)), 1.0 / iops),
            Pace::Bytes(bytes) => {
                (format!("{}/s = {} IOPS", format_bytes(bytes as u64), short(bytes / mean)), mean / bytes)
            }
            Pace::PercentOf { stage, percent } => {
                return format!(
                    "at most {of}{} % of stage {}'s IOPS{arrivals}{clock}",
                    short(percent),
                    stage + 1
                );
            }
        };
        // Less than one a second is most likely not what was meant.
        let gap = if gap > 1.0 { format!(" (one I/O in {})", format_seconds(gap)) } else { String::new() };
        format!("at most {of}{pace}{per}{gap}{arrivals}{clock}")
    }

    /// When it starts, ramps up and ends.
    fn length(&self, size: Option<u64>) -> String {
        let amount = |amount: Amount| match (amount, self.bytes_of(amount, size)) {
            (Amount::Bytes(bytes), _) => format!("{} per worker", format_bytes(bytes)),
            (Amount::Passes(passes), bytes) => {
                let bytes =
                    bytes.map_or(String::new(), |bytes| format!(" = {} per worker", format_bytes(bytes)));
                if passes == 1.0 {
                    format!("one pass{bytes}")
                } else {
                    format!("{} passes{bytes}", short(passes))
                }
            }
        };
        let timing = &self.timing;
        let mut text = match timing.length {
            Length::Time(of) => format!("for {}", time(of)),
            Length::Amount(of) => amount(of),
            Length::First { time: of, amount: most } => format!("{}, at most {}", amount(most), time(of)),
            Length::UntilStopped => "until stopped".to_owned(),
        };
        if !timing.ramp.is_zero() {
            text += &format!(" after {} ramp-up", time(timing.ramp));
        }
        if !timing.delay.is_zero() {
            text += &format!(", starts at {}", time(timing.delay));
        }
        if !timing.cooldown.is_zero() {
            text += &format!(", then {} cool-down", time(timing.cooldown));
        }
        text
    }

    /// Bytes of an amount, on a target of this size.
    fn bytes_of(&self, amount: Amount, size: Option<u64>) -> Option<u64> {
        match amount {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Passes(passes) => {
                let span = match self.pattern.span.length {
                    Some(Extent::Bytes(bytes)) => bytes.min(size.unwrap_or(u64::MAX)),
                    _ => self.pattern.span.of(0, size?).1,
                };
                Some((span as f64 * passes * self.targets.len() as f64) as u64)
            }
        }
    }

    /// How long the amount takes at the rates, where both are given: `at this rate 7 h 27 min`.
    fn paced_duration(&self, size: Option<u64>) -> Option<String> {
        let bytes = self.bytes_of(self.timing.length.amount()?, size)? as f64;
        let workers = self.worker_count().max(1) as f64;
        let each = |rate: &Rate| {
            let pace = match rate.pace {
                Pace::Bytes(bytes) => bytes,
                Pace::Iops(iops) => iops * self.pattern.size_mean(),
                Pace::PercentOf { .. } => return None,
            };
            let targets = self.targets.len() as f64;
            Some(match rate.per {
                RatePer::Worker => pace,
                RatePer::WorkerAndTarget => pace * targets,
                RatePer::Group => pace / workers,
            })
        };
        let paces = self.rates.iter().map(each).collect::<Option<Vec<f64>>>()?;
        let pace: f64 = paces.iter().sum();
        (pace > 0.0).then(|| {
            format!("{} at this rate take {}", format_bytes(bytes as u64), format_seconds(bytes / pace))
        })
    }

    fn data(&self) -> Vec<String> {
        let content = match &self.data.content {
            Content::Random => "random data".to_owned(),
            Content::Scrambled => "data: one random buffer, scrambled".to_owned(),
            Content::Zeroes => "data: zeroes".to_owned(),
            Content::Counting => "data: bytes 0 to 255 repeated".to_owned(),
            Content::Pattern(bytes) => {
                format!("data: a pattern of {} repeated", count_of(bytes.len() as u64, "byte"))
            }
            Content::Window(bytes) => format!("data: from a random buffer of {}", format_bytes(*bytes)),
        };
        let unit = format_bytes(self.data.unit);
        let mut parts = vec![content];
        if self.data.compressible > 0.0 {
            parts.push(format!("{} % compressible", short(self.data.compressible)));
        }
        if self.data.duplicates > 0.0 {
            parts.push(format!("{} % duplicates of {unit}", short(self.data.duplicates)));
        }
        parts.extend(self.verify.as_ref().map(|verify| match verify.when {
            VerifyWhen::After => "verified at the end".to_owned(),
            VerifyWhen::Later => "with checksums for a later verification".to_owned(),
            VerifyWhen::Backlog(writes) => format!("verified every {}", count_of(u64::from(writes), "write")),
            VerifyWhen::Only => "verified, nothing is written".to_owned(),
        }));
        parts
    }

    fn durability(&self) -> Vec<String> {
        let mut parts = Vec::new();
        match self.caching.write_through {
            WriteThrough::No => {}
            WriteThrough::Data => parts.push("write-through (O_DSYNC)".to_owned()),
            WriteThrough::All => parts.push("write-through (O_SYNC)".to_owned()),
        }
        if let Some(flush) = self.caching.flush {
            let what = if flush.data_only { "fdatasync" } else { "fsync" };
            if flush.every > 0 {
                parts.push(format!("{what} every {}", count_of(u64::from(flush.every), "write")));
            }
            if flush.at_end {
                parts.push(format!("{what} at the end"));
            }
        }
        parts
    }

    fn engine_part(&self) -> String {
        let engine = match self.engine {
            Engine::IoUring => "io_uring",
            Engine::LinuxAio => "Linux AIO",
            Engine::Blocking => "blocking calls",
        };
        let batch = match (self.batch.submit, self.engine) {
            (0 | 1, _) | (_, Engine::Blocking) => String::new(),
            (submit, _) => format!(", {submit} submitted at once"),
        };
        format!("{engine}{batch}")
    }
}

/// What decides whether lines differ in more than size and weight.
fn kind(line: &Line) -> (f64, f64, f64) {
    (line.reads, line.trims, line.random)
}

fn mix(reads: f64, trims: f64, random: f64) -> String {
    let trims = if trims > 0.0 { format!(", {} % trims", short(trims)) } else { String::new() };
    format!("{} % reads{trims}, {} % random", short(reads), short(random))
}

fn size(size: Size) -> String {
    match size {
        Size::Fixed(size) => format_bytes(size),
        Size::Range { min, max, step } => {
            let step =
                if step == min { String::new() } else { format!(" in steps of {}", format_bytes(step)) };
            format!("{} to {}{step}", format_bytes(min), format_bytes(max))
        }
    }
}

fn extent(extent: Extent) -> String {
    match extent {
        Extent::Bytes(bytes) => format_bytes(bytes),
        Extent::Percent(percent) => format!("{} %", short(percent)),
    }
}

/// A duration, also below a second: `250 us`, `2 ms`, `5 min`.
pub(crate) fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        0.0 => "0 s".to_owned(),
        seconds if seconds < 1e-3 => format!("{} us", short(seconds * 1e6)),
        seconds if seconds < 1.0 => format!("{} ms", short(seconds * 1e3)),
        seconds => format_seconds(seconds),
    }
}

/// `1 worker`, `2 workers`.
pub(crate) fn count_of(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A number with as many digits as say something: 0.33, 12.5, 1500.
pub(crate) fn short(value: f64) -> String {
    let digits: f64 = if value.abs() < 1.0 { 100.0 } else { 10.0 };
    format!("{}", (value * digits).round() / digits)
}
