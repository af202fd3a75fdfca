//! The search for the largest depth that keeps a latency, before the stage that asks for it (fio's `latency_target`).

use measured::StageRun;
use plan::{Depth, LatencyTarget, Length, Plan, Stage, Timing};
use statistics::words;

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The depth to run at: the largest that kept the latency, or 1.
    pub depth: u32,
    /// What was tried and what came of it, for people.
    pub sentence: String,
}

/// Tries depths from 1 up to the stage's own, doubling and then halving what is between, as fio does. `try_depth` runs a plan's
/// stage of this index.
///
/// # Errors
/// Those of `try_depth`.
pub fn search<E>(
    plan: &Plan,
    index: usize,
    target: LatencyTarget,
    mut try_depth: impl FnMut(&Plan) -> Result<StageRun, E>,
) -> Result<Found, E> {
    let most = plan.stages[index].groups.iter().map(|group| count_of(group.depth)).max().unwrap_or(1);
    let (mut kept, mut failed) = (0, most + 1);
    let mut depth = 1;
    let mut tried = Vec::new();
    while failed - kept > 1 {
        let mut plan = at_depth(plan, index, depth);
        shorten(&mut plan.stages[index], target);
        let run = try_depth(&plan)?;
        let latency = run.total().latency.percentile(target.percentile / 100.0);
        let holds = latency.is_some_and(|ns| u128::from(ns) <= target.latency.as_nanos());
        let shown = latency.map_or("nothing ended".to_owned(), |ns| words::milliseconds(ns as f64 / 1e9));
        tried.push(format!("{depth}: {shown}"));
        if holds {
            kept = depth;
        } else {
            failed = depth;
        }
        depth = if failed > most { (kept * 2).clamp(1, most) } else { kept.midpoint(failed).max(1) };
    }
    let limit = format!(
        "{} of I/Os within {}",
        words::percent(target.percentile / 100.0),
        words::milliseconds(target.latency.as_secs_f64())
    );
    let found = match kept {
        0 => format!("no queue depth meets {limit}: the job ran at depth 1"),
        kept if kept == most => format!("the queue depth of the job, {most}, meets {limit}"),
        kept => format!("{kept} is the largest queue depth that meets {limit}: the job ran at this depth"),
    };
    let sentence = format!("{}: {found} (tried {})", plan.stages[index].name, tried.join(", "));
    Ok(Found { depth: kept.max(1), sentence })
}

/// The plan with at most this depth in one of its stages.
pub fn at_depth(plan: &Plan, index: usize, depth: u32) -> Plan {
    let mut plan = plan.clone();
    for group in &mut plan.stages[index].groups {
        group.depth = match group.depth {
            Depth::PerTarget(own) => Depth::PerTarget(own.min(depth)),
            Depth::PerWorker(own) => Depth::PerWorker(own.min(depth)),
        };
        group.batch.submit = group.batch.submit.min(depth);
    }
    plan
}

/// A step of the search lasts as long as the job says, with a ramp of its own.
fn shorten(stage: &mut Stage, target: LatencyTarget) {
    for group in &mut stage.groups {
        group.timing = Timing { length: Length::Time(target.window), ..group.timing };
    }
    stage.steady = None;
}

fn count_of(depth: Depth) -> u32 {
    match depth {
        Depth::PerTarget(count) | Depth::PerWorker(count) => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::{Ended, GroupRun, Measured};
    use plan::{Group, Pattern, Stage, Target};
    use std::time::Duration;

    /// A target that serves one I/O a millisecond: latency is the depth in milliseconds.
    fn found(most: u32, limit_ms: u64) -> Found {
        let group = Group::new("g", 0, most, Pattern::simple(4096, 100.0, 100.0), Timing::seconds(60));
        let plan = Plan {
            name: "p".to_owned(),
            targets: vec![Target::named("t")],
            stages: vec![Stage::new("s", vec![group])],
            seed: plan::Seed::Fixed(1),
            notes: Vec::new(),
        };
        let target = LatencyTarget {
            percentile: 99.0,
            latency: Duration::from_millis(limit_ms) + Duration::from_micros(20),
            window: Duration::from_secs(1),
        };
        search(&plan, 0, target, |plan| {
            let group = &plan.stages[0].groups[0];
            assert_eq!(group.timing.length, Length::Time(Duration::from_secs(1)));
            Ok::<_, ()>(ran(count_of(group.depth)))
        })
        .expect("nothing fails")
    }

    fn ran(depth: u32) -> StageRun {
        let mut reads = Measured::default();
        reads.latency.record_many(u64::from(depth) * 1_000_000, 100);
        let group = GroupRun {
            name: "g".to_owned(),
            vm: None,
            outstanding: u64::from(depth),
            outstanding_mean: None,
            seconds: 1.0,
            operations: [reads, Measured::default(), Measured::default()],
            intervals: Vec::new(),
            backlog_max: 0.0,
            unsent: 0,
            rated: false,
            verified: None,
        };
        StageRun {
            stage: 0,
            repeat: 0,
            started: 0.0,
            seconds: 1.0,
            ended: Ended::Done,
            first_error: None,
            groups: vec![group],
            disks: Vec::new(),
            stalls: Vec::new(),
            cpu_user: 0.0,
            cpu_system: 0.0,
            start_late: 0.0,
            agents: Vec::new(),
        }
    }

    #[test]
    fn the_largest_depth_that_keeps_the_latency_is_found() {
        for (most, limit, expected) in [(32, 11, 11), (32, 100, 32), (1, 5, 1), (64, 1, 1), (48, 47, 47)] {
            assert_eq!(found(most, limit).depth, expected, "of {most} with {limit} ms");
        }
    }

    #[test]
    fn what_was_found_is_said() {
        assert_eq!(
            found(4, 2).sentence,
            "s: 2 is the largest queue depth that meets 99 % of I/Os within 2.02 ms: the job ran at this depth \
             (tried 1: 1.00 ms, 2: 2.00 ms, 4: 4.00 ms, 3: 3.00 ms)"
        );
        assert!(
            found(8, 0)
                .sentence
                .starts_with("s: no queue depth meets 99 % of I/Os within 0.020 ms: the job ran at depth 1")
        );
    }
}
