//! Results of this lab in the form in which all results are audited and compared.

use measured::{GroupRun, Measured, Run as Measurement, StageRun};
use results::{Direction, Figures, Interval, Job, Latencies, Note, ResultSet, Run, Tool};
use std::collections::BTreeMap;

/// A run of ours: a run for each stage and repeat.
pub fn result_set(source: &str, run: &Measurement) -> ResultSet {
    ResultSet {
        source: source.to_owned(),
        tool: Tool::Drystone,
        version: Some(run.program.clone()),
        runs: run.stages.iter().map(|stage| stage_run(run, stage)).collect(),
        notes: run.notes.iter().map(Note::new).collect(),
    }
}

fn stage_run(run: &Measurement, stage: &StageRun) -> Run {
    let planned = run.plan.stages.get(stage.stage);
    let label = planned.map_or_else(|| format!("stage {}", stage.stage + 1), |planned| planned.name.clone());
    let mut directions = BTreeMap::new();
    for (direction, index) in [(Direction::Read, 0), (Direction::Write, 1), (Direction::Trim, 2)] {
        let mut sum = Measured::default();
        stage.groups.iter().for_each(|group| sum.merge(&group.operations[index]));
        if sum.ios > 0 {
            directions.insert(direction, figures(&sum, stage.seconds));
        }
    }
    let pattern = planned.and_then(|planned| planned.groups.first()).map(|group| &group.pattern);
    let rated = stage.groups.iter().any(|group| group.rated);
    Run {
        label,
        line: None,
        tool: None,
        vms: vms(&stage.groups),
        workers: planned.map(|planned| planned.groups.iter().map(|group| group.worker_count() as u32).sum()),
        job: Job {
            pattern: pattern.map(plan::Pattern::describe),
            block_bytes: pattern.filter(|of| of.size_min() == of.size_max()).map(plan::Pattern::size_max),
            read_share: pattern.map(|of| of.reads() / 100.0),
            random_share: pattern.map(|of| of.random() / 100.0),
            threads: None,
            depth: None,
            outstanding: (!rated).then(|| stage.outstanding() as f64),
            ..Job::default()
        },
        seconds: Some(stage.seconds),
        directions,
        megabytes_printed: None,
        workers_iops: if planned.is_some_and(are_alike) {
            stage.groups.iter().map(GroupRun::iops).collect()
        } else {
            Vec::new()
        },
        parts: Vec::new(),
        intervals: stage.groups.iter().flat_map(intervals).collect(),
        notes: stage.findings().into_iter().map(|finding| Note::new(finding.text)).collect(),
    }
}

/// Whether all groups do the same at the same time: only then each may expect as much as the others.
fn are_alike(stage: &plan::Stage) -> bool {
    let same = |pair: &[plan::Group]| {
        let [one, other] = pair else { return true };
        one.pattern == other.pattern
            && one.depth == other.depth
            && one.workers == other.workers
            && one.timing == other.timing
            && one.rates == other.rates
    };
    stage.groups.windows(2).all(same)
}

fn figures(of: &Measured, seconds: f64) -> Figures {
    let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    Figures {
        ios: Some(of.ios),
        bytes: Some(of.bytes),
        iops: per_second(of.ios),
        bytes_per_s: per_second(of.bytes),
        latency_s: of.latency.mean_ns().map(|ns| ns / 1e9),
        latencies: Latencies::Exact(of.latency.clone()),
        ..Figures::default()
    }
}

fn vms(groups: &[GroupRun]) -> Option<u32> {
    let mut names: Vec<&str> = groups.iter().filter_map(|group| group.vm.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then_some(names.len() as u32)
}

fn intervals(group: &GroupRun) -> Vec<Interval> {
    let mut all = Vec::new();
    for interval in &group.intervals {
        for (index, direction) in [Direction::Read, Direction::Write, Direction::Trim].into_iter().enumerate()
        {
            let latency = &interval.latency[index];
            if latency.count() == 0 && interval.ios[index] == 0 {
                continue;
            }
            all.push(Interval {
                from_s: interval.at,
                to_s: interval.at + 1.0,
                direction,
                iops: Some(interval.ios[index] as f64),
                bytes_per_s: Some(interval.bytes[index] as f64),
                latency_s: (latency.count() > 0)
                    .then(|| latency.sum_ns() as f64 / 1e9 / latency.count() as f64),
                histogram: Some(latency.histogram()),
            });
        }
    }
    all
}
