//! What a plan would do, in words and numbers, before anything runs.

use crate::pace::{Amount, Length, Pace, Rate, RatePer};
use crate::pattern::{Distribution, Pattern, Size};
use crate::structure::{Engine, Group, Plan, Stage};
use base::units::format_bytes;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A plan expanded against targets of known sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outline {
    /// The plan's name.
    pub name: String,
    /// Per stage.
    pub stages: Vec<StageOutline>,
    /// Per target that is used.
    pub targets: Vec<TargetOutline>,
    /// The longest that all stages can take together, in seconds; none if one of them ends by amount alone.
    pub seconds: Option<f64>,
}

/// A stage expanded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageOutline {
    /// Its name.
    pub name: String,
    /// How often it runs.
    pub repeats: u32,
    /// I/Os outstanding at most.
    pub outstanding: u64,
    /// Workers.
    pub workers: u64,
    /// How long one repeat takes at most, with its pause, in seconds; none if it ends by amount alone.
    pub seconds: Option<f64>,
    /// A line for each group.
    pub groups: Vec<String>,
}

/// What becomes of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetOutline {
    /// Its name in the plan.
    pub name: String,
    /// Its size in bytes, if known.
    pub size: Option<u64>,
    /// Bytes that may be read or written, all stages together.
    pub touched: Option<u64>,
    /// Bytes that may be overwritten.
    pub destroyed: Option<u64>,
    /// Whether any group writes or trims it.
    pub written: bool,
    /// A span that is asked for beyond the target's end: the bytes that are missing.
    pub missing: Option<u64>,
}

impl Plan {
    /// What the plan would do on targets of these sizes (per target of the plan; none where it is not known).
    pub fn outline(&self, sizes: &[Option<u64>]) -> Outline {
        let stages: Vec<StageOutline> = self.stages.iter().map(|stage| outline_stage(self, stage)).collect();
        let used = |index: usize| {
            self.stages
                .iter()
                .flat_map(|stage| &stage.groups)
                .filter(move |group| group.targets.contains(&index))
        };
        let targets = (self.targets.iter().enumerate())
            .filter(|&(index, _)| used(index).next().is_some())
            .map(|(index, target)| {
                let size = sizes.get(index).copied().flatten();
                let groups: Vec<&Group> = used(index).collect();
                outline_target(&target.name, size, &groups)
            })
            .collect();
        let seconds = stages.iter().map(|stage| Some(stage.seconds? * f64::from(stage.repeats))).sum();
        Outline { name: self.name.clone(), stages, targets, seconds }
    }
}

fn outline_stage(plan: &Plan, stage: &Stage) -> StageOutline {
    let longest = stage.groups.iter().map(|group| group.timing.longest()).collect::<Option<Vec<Duration>>>();
    let seconds = longest.map(|all| (stage.pause + all.into_iter().max().unwrap_or_default()).as_secs_f64());
    StageOutline {
        name: stage.name.clone(),
        repeats: stage.repeats,
        outstanding: stage.outstanding(),
        workers: stage.groups.iter().map(Group::worker_count).sum(),
        seconds,
        groups: stage.groups.iter().map(|group| group.describe(plan)).collect(),
    }
}

fn outline_target(name: &str, size: Option<u64>, groups: &[&Group]) -> TargetOutline {
    let written = groups.iter().any(|group| group.pattern.writes());
    let spans = |writing_only: bool| {
        let size = size?;
        let mut spans: Vec<(u64, u64)> = (groups.iter())
            .filter(|group| !writing_only || group.pattern.writes())
            .flat_map(|group| {
                let workers = u32::try_from(group.worker_count()).unwrap_or(u32::MAX).min(4096);
                (0..workers).map(|worker| group.pattern.span.of(worker, size))
            })
            .collect();
        Some(union(&mut spans))
    };
    let missing = size.and_then(|size| groups.iter().filter_map(|group| beyond(&group.pattern, size)).max());
    TargetOutline {
        name: name.to_owned(),
        size,
        touched: spans(false),
        destroyed: spans(true),
        written,
        missing,
    }
}

/// Bytes of the span beyond the end of a target of `size` bytes.
fn beyond(pattern: &Pattern, size: u64) -> Option<u64> {
    let offset = pattern.span.offset.of(size);
    let length = pattern.span.length.map_or(0, |length| length.of(size));
    let end = offset.saturating_add(length.max(pattern.size_max()));
    (end > size).then(|| end - size)
}

/// Bytes in any of the spans (start, length).
fn union(spans: &mut [(u64, u64)]) -> u64 {
    spans.sort_unstable();
    let mut covered = 0;
    let mut end = 0;
    for &mut (start, length) in spans {
        let stop = start + length;
        if stop > end {
            covered += stop - start.max(end);
            end = stop;
        }
    }
    covered
}

impl Group {
    /// One line that tells what the group does.
    pub fn describe(&self, plan: &Plan) -> String {
        let targets: Vec<&str> = (self.targets.iter())
            .take(3)
            .filter_map(|&index| plan.targets.get(index).map(|target| target.name.as_str()))
            .collect();
        let more = match self.targets.len() {
            0..=3 => String::new(),
            count => format!(" and {} more", count - 3),
        };
        let rates: Vec<String> = self.rates.iter().map(|rate| format!(", {}", describe_rate(rate))).collect();
        let verify = if self.verify.is_some() { ", verified" } else { "" };
        format!(
            "{}: {} on {}{more}, {}, {} outstanding{}{}{verify}",
            self.name,
            self.pattern.describe(),
            targets.join(" "),
            count_of(self.worker_count(), "worker"),
            self.outstanding(),
            rates.concat(),
            describe_length(self),
        ) + match self.engine {
            Engine::IoUring => "",
            Engine::LinuxAio => ", by Linux AIO",
            Engine::Blocking => ", by blocking calls",
        }
    }
}

fn count_of(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn describe_length(group: &Group) -> String {
    let ramp = match group.timing.ramp {
        Duration::ZERO => String::new(),
        ramp => format!(" after {} of ramp", format_seconds(ramp.as_secs_f64())),
    };
    let amount = |amount: Amount| match amount {
        Amount::Bytes(bytes) => format!("{} a worker", format_bytes(bytes)),
        Amount::Passes(1.0) => "one pass".to_owned(),
        Amount::Passes(passes) => format!("{passes} passes"),
    };
    match group.timing.length {
        Length::Time(time) => format!(", for {}{ramp}", format_seconds(time.as_secs_f64())),
        Length::Amount(of) => format!(", {}{ramp}", amount(of)),
        Length::First { time, amount: of } => {
            format!(", {} or {}{ramp}, whichever is first", amount(of), format_seconds(time.as_secs_f64()))
        }
        Length::UntilStopped => format!(", until stopped{ramp}"),
    }
}

fn describe_rate(rate: &Rate) -> String {
    let pace = match rate.pace {
        Pace::Iops(iops) => format!("{iops} IOPS"),
        Pace::Bytes(bytes) => format!("{}/s", format_bytes(bytes as u64)),
        Pace::PercentOf { stage, percent } => format!("{percent} % of stage {}", stage + 1),
    };
    let per = match rate.per {
        RatePer::WorkerAndTarget => " a worker and target",
        RatePer::Worker => " a worker",
        RatePer::Group => "",
    };
    let arrivals = match rate.arrivals {
        crate::Arrivals::Even => "",
        crate::Arrivals::Poisson => " (Poisson)",
    };
    let clock = match rate.clock {
        crate::Loop::Closed => "",
        crate::Loop::Open => ", open loop",
    };
    format!("{pace}{per}{arrivals}{clock}")
}

impl Pattern {
    /// A few words: `4 KiB, 70 % reads, 100 % random`.
    pub fn describe(&self) -> String {
        let mut sizes: Vec<String> = (self.lines.iter())
            .map(|line| match line.size {
                Size::Fixed(size) => format_bytes(size),
                Size::Range { min, max, .. } => format!("{} to {}", format_bytes(min), format_bytes(max)),
            })
            .collect();
        sizes.dedup();
        let sizes = match sizes.len() {
            0..=3 => sizes.join("/"),
            count => format!("{count} sizes, mean {}", format_bytes(self.size_mean() as u64)),
        };
        let trims = match self.trims() {
            0.0 => String::new(),
            trims => format!(", {} % trims", short(trims)),
        };
        let distribution = match &self.distribution {
            Distribution::Uniform => String::new(),
            Distribution::Zipf { theta, .. } => format!(" (zipf {theta})"),
            Distribution::Pareto { h, .. } => format!(" (pareto {h})"),
            Distribution::Normal { deviation, .. } => format!(" (normal, deviation {deviation} %)"),
            Distribution::Zoned(zones) => format!(" ({} zones)", zones.len()),
        };
        format!(
            "{sizes}, {} % reads{trims}, {} % random{distribution}",
            short(self.reads()),
            short(self.random())
        )
    }
}

fn short(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}

/// Seconds for people: `45 s`, `2 min 30 s`, `1 h 5 min`.
pub fn format_seconds(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{} s", short(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes, rest) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.seconds.map_or("as long as its amounts take".to_owned(), format_seconds);
        writeln!(formatter, "{}: {}, {time}", self.name, count_of(self.stages.len() as u64, "stage"))?;
        for (index, stage) in self.stages.iter().enumerate() {
            let repeats =
                if stage.repeats == 1 { String::new() } else { format!(", {} times", stage.repeats) };
            let time = stage.seconds.map_or("by amount".to_owned(), format_seconds);
            writeln!(
                formatter,
                "  {}. {}: {time}{repeats}, {} outstanding, {}",
                index + 1,
                stage.name,
                stage.outstanding,
                count_of(stage.workers, "worker")
            )?;
            for group in &stage.groups {
                writeln!(formatter, "     {group}")?;
            }
        }
        for target in &self.targets {
            writeln!(formatter, "  {target}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TargetOutline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map_or("of unknown size".to_owned(), format_bytes);
        write!(formatter, "target {} ({size}): ", self.name)?;
        match (self.written, self.touched, self.destroyed) {
            (false, Some(touched), _) => {
                write!(formatter, "{} are read, nothing is written", format_bytes(touched))?
            }
            (false, None, _) => write!(formatter, "nothing is written")?,
            (true, _, Some(destroyed)) => {
                write!(formatter, "{} are overwritten: what is there is lost", format_bytes(destroyed))?
            }
            (true, _, None) => write!(formatter, "overwritten: what is there is lost")?,
        }
        match self.missing {
            Some(missing) => {
                write!(formatter, "; the job asks for {} more than it has", format_bytes(missing))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Depth, Extent, Span, Target, Timing, Workers};

    fn group(name: &str, reads: f64, span: Span) -> Group {
        let mut group = Group::new(name, 0, 16, Pattern::simple(4096, reads, 100.0), Timing::seconds(60));
        group.pattern.span = span;
        group
    }

    fn of(groups: Vec<Group>, size: u64) -> Outline {
        let plan = Plan {
            name: "p".into(),
            targets: vec![Target::named("disk")],
            stages: vec![Stage::new("s", groups)],
            ..Plan::default()
        };
        plan.outline(&[Some(size)])
    }

    #[test]
    fn overlapping_spans_count_once_and_reads_destroy_nothing() {
        let half = Span { offset: Extent::Bytes(0), length: Some(Extent::Percent(50.0)), ..Span::default() };
        let quarter =
            Span { offset: Extent::Percent(25.0), length: Some(Extent::Percent(25.0)), ..Span::default() };
        let outline = of(vec![group("r", 100.0, half), group("w", 0.0, quarter)], 1 << 30);
        let target = &outline.targets[0];
        assert_eq!((target.touched, target.destroyed), (Some(1 << 29), Some(1 << 28)));
        assert_eq!(outline.seconds, Some(60.0));
        assert!(outline.to_string().contains("256 MiB are overwritten: what is there is lost"), "{outline}");
    }

    #[test]
    fn a_job_of_3_tb_on_10_gb_says_what_is_missing() {
        let span = Span { offset: Extent::Bytes(0), length: Some(Extent::Bytes(3 << 40)), ..Span::default() };
        let outline = of(vec![group("w", 0.0, span)], 10 << 30);
        assert_eq!(outline.targets[0].missing, Some((3 << 40) - (10 << 30)));
    }

    #[test]
    fn outstanding_is_the_total_of_every_dialect() {
        let check = |workers, depth, targets: usize, engine, expected| {
            let mut group = group("g", 100.0, Span::default());
            (group.workers, group.depth, group.engine) = (workers, depth, engine);
            group.targets = vec![0; targets];
            assert_eq!(group.outstanding(), expected);
        };
        check(Workers::PerTarget(4), Depth::PerTarget(16), 3, Engine::IoUring, 192);
        check(Workers::Together(4), Depth::PerTarget(16), 3, Engine::IoUring, 192);
        check(Workers::Together(4), Depth::PerWorker(16), 3, Engine::IoUring, 64);
        check(Workers::Together(4), Depth::PerWorker(16), 3, Engine::Blocking, 4);
    }

    #[test]
    fn times_are_written_for_people() {
        for (seconds, expected) in
            [(45.0, "45 s"), (0.5, "0.5 s"), (150.0, "2 min 30 s"), (3900.0, "1 h 5 min"), (7200.0, "2 h")]
        {
            assert_eq!(format_seconds(seconds), expected);
        }
    }
}
