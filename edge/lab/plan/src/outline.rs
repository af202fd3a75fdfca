//! What a plan would do, in words and numbers, before anything runs.

use crate::describe::{short, time};
use crate::label::contradiction;
use crate::pace::Length;
use crate::pattern::Pattern;
use crate::structure::{Group, Plan, Seed, Stage, StageEnd};
use base::units::format_bytes;
use serde::Serialize;
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
    /// What is so for all groups of all stages.
    pub common: Vec<String>,
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
    /// When groups run, where they do not all run together; how the stage ends; names that say something else.
    pub remarks: Vec<String>,
    /// Whether something else than time may end it before.
    pub ends_early: bool,
    /// The first stage, counted from 0, that does the same.
    pub same_as: Option<usize>,
    #[serde(skip)]
    pub(crate) parts: Vec<GroupParts>,
}

/// What a group does, fact by fact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupParts {
    pub(crate) name: String,
    pub(crate) targets: Vec<String>,
    pub(crate) parts: Vec<String>,
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
    /// What happens to a file before the run.
    pub growth: Option<Growth>,
    #[serde(skip)]
    index: usize,
    #[serde(skip)]
    read: bool,
}

/// What happens to a file before the run. What is read of it is filled with random data then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// It is created.
    Created {
        /// Whether it is filled.
        filled: bool,
    },
    /// It is made larger.
    Extended {
        /// Its bytes before.
        from: u64,
        /// Whether what is added is filled.
        filled: bool,
    },
}

impl Outline {
    /// With what happens to files before the run: for each of the plan's targets, the bytes that its file has now; none for what is no
    /// file, 0 where there is none yet.
    #[must_use]
    pub fn with_files(mut self, files: &[Option<u64>]) -> Outline {
        for target in &mut self.targets {
            let Some(now) = files.get(target.index).copied().flatten() else { continue };
            let filled = target.read;
            target.growth = match now {
                0 => Some(Growth::Created { filled }),
                from if target.size > Some(from) => Some(Growth::Extended { from, filled }),
                _ => None,
            };
        }
        self
    }
}

impl Plan {
    /// What the plan would do on targets of these sizes (per target of the plan; none where it is not known).
    pub fn outline(&self, sizes: &[Option<u64>]) -> Outline {
        let mut stages: Vec<StageOutline> = Vec::new();
        for (index, stage) in self.stages.iter().enumerate() {
            let same_as = self.stages[..index].iter().position(|earlier| does_the_same(earlier, stage));
            stages.push(outline_stage(self, stage, sizes, same_as));
        }
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
                outline_target(index, &target.label(), size, &groups)
            })
            .collect();
        let seconds = stages.iter().map(|stage| Some(stage.seconds? * f64::from(stage.repeats))).sum();
        let mut common = in_common(&stages);
        let is_random =
            self.stages.iter().flat_map(|stage| &stage.groups).any(|group| group.pattern.random() > 0.0);
        if is_random {
            common.push(match self.seed {
                Seed::Fixed(seed) => format!("the same random I/Os in every run (seed {seed})"),
                Seed::Fresh => "different random I/Os in every run".to_owned(),
            });
        }
        Outline { name: self.name.clone(), stages, targets, seconds, common }
    }
}

/// Facts that all groups of a plan of several groups share. The pattern is told of each.
fn in_common(stages: &[StageOutline]) -> Vec<String> {
    let mut groups = stages.iter().flat_map(|stage| &stage.parts);
    let Some(first) = groups.next() else { return Vec::new() };
    let others: Vec<&GroupParts> = groups.collect();
    if others.is_empty() {
        return Vec::new();
    }
    let is_shared = |part: &&String| others.iter().all(|group| group.parts.contains(part));
    first.parts.iter().skip(1).filter(is_shared).cloned().collect()
}

/// Whether two stages differ in nothing but their names.
fn does_the_same(one: &Stage, other: &Stage) -> bool {
    let nameless = |stage: &Stage| {
        let mut stage = Stage { name: String::new(), ..stage.clone() };
        stage.groups.iter_mut().for_each(|group| group.name.clear());
        stage
    };
    one.groups.len() == other.groups.len() && nameless(one) == nameless(other)
}

fn outline_stage(plan: &Plan, stage: &Stage, sizes: &[Option<u64>], same_as: Option<usize>) -> StageOutline {
    let longest = stage.groups.iter().map(|group| group.timing.longest()).collect::<Option<Vec<Duration>>>();
    let seconds = longest.map(|all| (stage.pause + all.into_iter().max().unwrap_or_default()).as_secs_f64());
    let parts: Vec<GroupParts> = (stage.groups.iter())
        .map(|group| {
            let target = |index: &usize| plan.targets.get(*index).map(crate::Target::label);
            let size = group.targets.first().and_then(|index| sizes.get(*index).copied().flatten());
            GroupParts {
                name: match &group.vm {
                    Some(vm) => format!("{} on {vm}", group.name),
                    None => group.name.clone(),
                },
                targets: group.targets.iter().filter_map(target).collect(),
                parts: group.parts(size),
            }
        })
        .collect();
    StageOutline {
        name: stage.name.clone(),
        repeats: stage.repeats,
        outstanding: stage.outstanding(),
        workers: stage.groups.iter().map(Group::worker_count).sum(),
        seconds,
        groups: parts.iter().map(|group| group.line(&[])).collect(),
        remarks: remarks(stage),
        ends_early: ends_early(stage),
        same_as,
        parts,
    }
}

fn ends_early(stage: &Stage) -> bool {
    stage.bytes_max.is_some()
        || stage.steady.is_some()
        || stage.ends == StageEnd::First
        || stage.groups.iter().any(|group| matches!(group.timing.length, Length::First { .. }))
}

/// How a stage ends, who runs when, where, and what names say otherwise.
fn remarks(stage: &Stage) -> Vec<String> {
    let mut remarks = Vec::new();
    if stage.ends == StageEnd::First && stage.groups.len() > 1 {
        remarks.push("ends when the first group is done".to_owned());
    }
    remarks.extend(stage.bytes_max.map(|bytes| format!("ends after {} in all", format_bytes(bytes))));
    remarks.extend(stage.steady.map(|steady| {
        let of = match steady.of {
            crate::SteadyOf::Iops => "IOPS",
            crate::SteadyOf::Bandwidth => "bandwidth",
            crate::SteadyOf::Latency => "latency",
        };
        let rule = if steady.slope { "slope" } else { "deviation" };
        let window = format_seconds(steady.window.as_secs_f64());
        format!("ends early when the {rule} of {of} is below {} % over {window}", steady.limit)
    }));
    remarks.extend(stage.search.map(|search| {
        format!(
            "searches for the largest queue depth at which {} % of the I/Os complete within {}, in steps of {}",
            short(search.percentile),
            time(search.latency),
            format_seconds(search.window.as_secs_f64())
        )
    }));
    if !stage.pause.is_zero() {
        remarks.push(format!("begins after a pause of {}", format_seconds(stage.pause.as_secs_f64())));
    }
    remarks.extend(hosts(stage));
    remarks.extend(phases(stage));
    for group in &stage.groups {
        let labels = [group.name.as_str(), stage.name.as_str()];
        let labels = &labels[..if stage.groups.len() == 1 && stage.name != group.name { 2 } else { 1 }];
        remarks.extend(labels.iter().filter_map(|label| contradiction(label, group)).take(1));
    }
    remarks
}

/// What is outstanding on each machine, where there are several.
fn hosts(stage: &Stage) -> Option<String> {
    let mut hosts: Vec<(&str, u64)> = Vec::new();
    for group in &stage.groups {
        let name = group.vm.as_deref()?;
        match hosts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += group.outstanding(),
            None => hosts.push((name, group.outstanding())),
        }
    }
    let told: Vec<String> = hosts.iter().take(8).map(|(name, count)| format!("{count} on {name}")).collect();
    let more = if hosts.len() > 8 { format!(", {} more hosts", hosts.len() - 8) } else { String::new() };
    (hosts.len() > 1).then(|| format!("outstanding: {}{more}", told.join(", ")))
}

/// Which groups run together when, where they begin or end at different times.
fn phases(stage: &Stage) -> Option<String> {
    let times: Vec<(Duration, Option<Duration>)> = (stage.groups.iter())
        .map(|group| match group.timing.length {
            Length::Time(_) => (group.timing.delay, group.timing.longest()),
            Length::Amount(_) | Length::First { .. } | Length::UntilStopped => (group.timing.delay, None),
        })
        .collect();
    let mut edges: Vec<Duration> =
        times.iter().flat_map(|(start, end)| [Some(*start), *end]).flatten().collect();
    edges.sort_unstable();
    edges.dedup();
    let is_plain = times.windows(2).all(|pair| pair[0] == pair[1]);
    let all_timed = times.iter().all(|(_, end)| end.is_some());
    if is_plain || edges.len() > 9 {
        return None;
    }
    if !all_timed {
        let late: Vec<String> = (stage.groups.iter())
            .filter(|group| !group.timing.delay.is_zero())
            .map(|group| format!("{} from {}", group.name, format_seconds(group.timing.delay.as_secs_f64())))
            .take(8)
            .collect();
        return (!late.is_empty()).then(|| format!("start late: {}", late.join(", ")));
    }
    let told: Vec<String> = (edges.windows(2))
        .map(|pair| {
            let here = |index: &usize| times[*index].0 <= pair[0] && times[*index].1 >= Some(pair[1]);
            let members: Vec<usize> = (0..times.len()).filter(here).collect();
            let names: Vec<&str> =
                members.iter().take(4).map(|&index| stage.groups[index].name.as_str()).collect();
            let more =
                if members.len() > 4 { format!(" and {} more", members.len() - 4) } else { String::new() };
            let outstanding: u64 = members.iter().map(|&index| stage.groups[index].outstanding()).sum();
            let (from, to) = (format_seconds(pair[0].as_secs_f64()), format_seconds(pair[1].as_secs_f64()));
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(" ") + &more };
            format!("{from} to {to}: {names} ({outstanding} outstanding)")
        })
        .collect();
    Some(format!("not all at once: {}", told.join("; ")))
}

fn outline_target(index: usize, name: &str, size: Option<u64>, groups: &[&Group]) -> TargetOutline {
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
        growth: None,
        index,
        read: groups.iter().any(|group| group.pattern.reads() > 0.0),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Depth, Engine, Extent, Span, Target, Timing, Workers};

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
        assert!(
            outline.to_string().contains("256 MiB will be overwritten; the data there is destroyed"),
            "{outline}"
        );
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
