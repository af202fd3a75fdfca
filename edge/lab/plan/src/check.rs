//! Whether a plan makes sense, before anything opens a target.

use crate::content::Data;
use crate::pace::{Length, Pace, Rate};
use crate::pattern::{Distribution, Extent, Line, Pattern, Size};
use crate::structure::{Depth, Group, Plan, Stage, Workers};

/// The most workers of a plan's stage: each has a thread's share and memory of its own.
pub const WORKERS_MAX: u64 = 65_536;
/// The most outstanding I/Os of a stage: each has a buffer.
pub const OUTSTANDING_MAX: u64 = 1 << 20;
/// The largest I/O in bytes: what Linux takes in one call, rounded down to a power of two.
pub const IO_SIZE_MAX: u64 = 1 << 30;

/// Something in a plan that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {found}: {remedy}")]
pub struct Problem {
    /// Where: stage and group.
    pub at: String,
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: String,
}

impl Plan {
    /// All that keeps this plan from being run, whatever its targets are.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems { at: "the plan".to_owned(), found: Vec::new() };
        if self.stages.is_empty() {
            problems.add("it has no stage", "name at least one job");
        }
        for (index, stage) in self.stages.iter().enumerate() {
            problems.at = format!("stage {} ({})", index + 1, stage.name);
            self.check_stage(index, stage, &mut problems);
        }
        problems.found
    }

    fn check_stage(&self, index: usize, stage: &Stage, problems: &mut Problems) {
        let at = problems.at.clone();
        if stage.groups.is_empty() {
            problems.add("it has no group of workers", "give it one");
        }
        if stage.repeats == 0 {
            problems.add("it is to be repeated 0 times", "leave it out, or repeat it at least once");
        }
        for group in &stage.groups {
            problems.at = format!("{at}, group {}", group.name);
            if let Some(target) = group.targets.iter().find(|&&target| target >= self.targets.len()) {
                problems.add(
                    &format!("it names target {target} of {}", self.targets.len()),
                    "name a target of the plan",
                );
            }
            check_group(group, problems);
            group.rates.iter().for_each(|rate| check_rate(rate, index, problems));
        }
        problems.at = at;
        let workers: u64 = stage.groups.iter().map(Group::worker_count).fold(0, u64::saturating_add);
        if workers > WORKERS_MAX {
            problems
                .add(&format!("it has {workers} workers"), &format!("at most {WORKERS_MAX} are possible"));
        }
        if workers <= WORKERS_MAX && stage.outstanding() > OUTSTANDING_MAX {
            problems.add(
                &format!("it keeps {} I/Os outstanding", stage.outstanding()),
                &format!("at most {OUTSTANDING_MAX} are possible"),
            );
        }
    }
}

struct Problems {
    at: String,
    found: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, found: &str, remedy: &str) {
        self.found.push(Problem { at: self.at.clone(), found: found.to_owned(), remedy: remedy.to_owned() });
    }
}

fn check_group(group: &Group, problems: &mut Problems) {
    if group.targets.is_empty() {
        problems.add("it has no target", "name one");
    }
    let (Workers::PerTarget(workers) | Workers::Together(workers)) = group.workers;
    let (Depth::PerTarget(depth) | Depth::PerWorker(depth)) = group.depth;
    if workers == 0 {
        problems.add("it has no worker", "ask for at least one");
    }
    if depth == 0 {
        problems.add("its depth is 0", "each worker needs at least one I/O outstanding");
    }
    if group.batch.complete == 0 {
        problems.add("it waits for 0 completions at a time", "1 is the least");
    }
    if group.share.is_some_and(|share| !is_percent(share) || share == 0.0) {
        problems.add("its share of the I/Os is not within 0..=100 %", "write a share above 0");
    }
    if let Length::Time(time) | Length::First { time, .. } = group.timing.length
        && time.is_zero()
    {
        problems.add("it counts for 0 s", "give it a duration");
    }
    check_pattern(&group.pattern, problems);
    check_data(&group.data, problems);
}

fn check_rate(rate: &Rate, stage: usize, problems: &mut Problems) {
    match rate.pace {
        Pace::Iops(amount) | Pace::Bytes(amount) if !(amount.is_finite() && amount > 0.0) => {
            problems.add(
                &format!("its rate is {amount}"),
                "a rate is above 0; leave it out for as fast as possible",
            );
        }
        Pace::PercentOf { stage: of, .. } if of >= stage => {
            problems.add(
                &format!("its rate is a share of stage {}", of + 1),
                "it must be a stage that ran before",
            );
        }
        Pace::PercentOf { percent, .. } if !(percent.is_finite() && percent > 0.0) => {
            problems.add(&format!("its rate is {percent} % of another stage"), "write a share above 0 %");
        }
        Pace::Iops(_) | Pace::Bytes(_) | Pace::PercentOf { .. } => {}
    }
}

fn check_pattern(pattern: &Pattern, problems: &mut Problems) {
    let weights: f64 = pattern.lines.iter().map(|line| line.weight).sum();
    if !(weights.is_finite() && weights > 0.0) || pattern.lines.iter().any(|line| line.weight < 0.0) {
        problems.add("its mix has no weight above 0, or one below", "give every line a weight of 0 or more");
    }
    pattern.lines.iter().for_each(|line| check_line(line, problems));
    for extent in
        [Some(pattern.span.offset), pattern.span.length, Some(pattern.span.worker_step)].into_iter().flatten()
    {
        if let Extent::Percent(percent) = extent
            && !is_percent(percent)
        {
            problems.add(&format!("its span has {percent} %"), "write 0 to 100 %");
        }
    }
    if pattern.sequence.stride == Some(0) {
        problems.add("its stride is 0", "leave it out to go on where the I/O before ended");
    }
    let possible = match &pattern.distribution {
        Distribution::Uniform => true,
        Distribution::Zipf { theta, .. } => theta.is_finite() && *theta > 0.0 && *theta != 1.0,
        Distribution::Pareto { h, .. } => *h > 0.0 && *h < 1.0,
        Distribution::Normal { deviation, .. } => deviation.is_finite() && *deviation > 0.0,
        Distribution::Zoned(zones) => {
            let sum: f64 = zones.iter().map(|zone| zone.ios).sum();
            !zones.is_empty() && zones.iter().all(|zone| is_percent(zone.ios)) && (sum - 100.0).abs() < 0.01
        }
    };
    if !possible {
        problems.add(
            &format!("its distribution cannot be: {:?}", pattern.distribution),
            "zipf needs theta above 0 and not 1, pareto a power between 0 and 1, normal a deviation above 0, zones shares that \
             add up to 100 %",
        );
    }
}

fn check_line(line: &Line, problems: &mut Problems) {
    if line.size.min() == 0 || line.size.max() > IO_SIZE_MAX {
        problems.add(
            &format!("an I/O of {} to {} bytes", line.size.min(), line.size.max()),
            "I/Os have 1 byte to 1 GiB",
        );
    }
    if let Size::Range { min, max, step } = line.size
        && (min > max || step == 0 || min < step)
    {
        problems.add(
            &format!("sizes of {min} to {max} bytes in steps of {step}"),
            "the smallest is at least one step and not above the largest",
        );
    }
    for (name, share) in [("reads", line.reads), ("trims", line.trims), ("random I/Os", line.random)] {
        if !is_percent(share) {
            problems.add(&format!("{share} % {name}"), "a share is 0 to 100 %");
        }
    }
    if is_percent(line.reads) && is_percent(line.trims) && line.reads + line.trims > 100.0 {
        problems.add("reads and trims are more than 100 % together", "what is left is writes: it may be 0");
    }
    if line.align == Some(0) {
        problems.add("an alignment of 0", "leave it out to align I/Os to their size");
    }
}

fn check_data(data: &Data, problems: &mut Problems) {
    if !is_percent(data.compressible) || !is_percent(data.duplicates) {
        problems.add("data with a share beyond 0..=100 %", "write 0 to 100 %");
    }
    if data.unit < 512 || !data.unit.is_power_of_two() {
        problems.add(&format!("a data unit of {} bytes", data.unit), "it is a power of two from 512");
    }
}

fn is_percent(value: f64) -> bool {
    (0.0..=100.0).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Timing;

    fn plan(change: impl FnOnce(&mut Plan)) -> Vec<String> {
        let group = Group::new("g", 0, 4, Pattern::simple(4096, 70.0, 100.0), Timing::seconds(10));
        let mut plan = Plan {
            targets: vec![crate::Target::named("t")],
            stages: vec![Stage::new("s", vec![group])],
            ..Plan::default()
        };
        change(&mut plan);
        plan.problems().into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn a_plan_that_makes_sense_has_no_problem() {
        assert_eq!(plan(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn every_number_that_cannot_be_is_named_with_its_place() {
        let check = |change: fn(&mut Group), expected: &str| {
            let found = plan(|plan| change(&mut plan.stages[0].groups[0]));
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
            assert!(found[0].starts_with("stage 1 (s), group g: "), "{found:?}");
        };
        check(|group| group.targets.clear(), "no target");
        check(|group| group.targets = vec![3], "target 3 of 1");
        check(|group| group.depth = Depth::PerWorker(0), "depth is 0");
        check(|group| group.pattern.lines[0].reads = 101.0, "101 % reads");
        check(|group| group.pattern.lines[0].size = Size::Fixed(0), "0 to 0 bytes");
        check(|group| group.pattern.lines[0].size = Size::Range { min: 8, max: 4, step: 4 }, "8 to 4 bytes");
        check(|group| group.timing = Timing::seconds(0), "0 s");
        check(|group| group.data.unit = 1000, "1000 bytes");
        check(|group| group.pattern.distribution = Distribution::Zipf { theta: 1.0, center: None }, "Zipf");
        check(|group| group.pattern.lines[0].weight = 0.0, "weight");
    }

    #[test]
    fn a_share_of_a_stage_that_did_not_run_before_is_refused() {
        let found = plan(|plan| {
            plan.stages[0].groups[0].rates.push(Rate {
                pace: Pace::PercentOf { stage: 0, percent: 50.0 },
                per: crate::RatePer::Group,
                of: crate::RateOf::All,
                arrivals: crate::Arrivals::Poisson,
                clock: crate::Loop::Open,
            });
        });
        assert!(found[0].contains("a stage that ran before"), "{found:?}");
    }
}
