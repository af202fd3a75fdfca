//! The streams of a stage: which workers there are, and which thread each belongs to.

use super::arrivals::Sharing;
use super::places::WorkerNumber;
use super::stream::StreamPlan;
use plan::{Depth, Engine, Group, Stage, Workers};

/// All streams of a stage, group after group.
pub fn of_stage(stage: &Stage, reached: &[f64]) -> Vec<StreamPlan> {
    stage.groups.iter().enumerate().flat_map(|(index, group)| of_group(index, group, reached)).collect()
}

fn of_group(index: usize, group: &Group, reached: &[f64]) -> Vec<StreamPlan> {
    let depth = match (group.engine, group.depth) {
        (Engine::Blocking, _) => 1,
        (_, Depth::PerTarget(depth)) | (_, Depth::PerWorker(depth)) => depth,
    };
    let mut streams = Vec::new();
    let mut add = |worker: WorkerNumber, targets: Vec<usize>, of_worker: u64| {
        let sharing = Sharing { of_worker, of_group: 0, index: streams.len() as u64, reached: 0.0 };
        streams.push(StreamPlan { group: index, worker, targets, depth, sharing });
    };
    match (group.workers, group.depth) {
        (Workers::PerTarget(count), _) => {
            for (place, &target) in group.targets.iter().enumerate() {
                for worker in 0..count {
                    let number = WorkerNumber { in_group: place as u32 * count + worker, on_target: worker };
                    add(number, vec![target], 1);
                }
            }
        }
        (Workers::Together(count), Depth::PerTarget(_)) => {
            for worker in 0..count {
                for &target in &group.targets {
                    let number = WorkerNumber { in_group: worker, on_target: worker };
                    add(number, vec![target], group.targets.len() as u64);
                }
            }
        }
        (Workers::Together(count), Depth::PerWorker(_)) => {
            for worker in 0..count {
                let number = WorkerNumber { in_group: worker, on_target: worker };
                add(number, group.targets.clone(), 1);
            }
        }
    }
    let share_of = group.rates.iter().find_map(|rate| match rate.pace {
        plan::Pace::PercentOf { stage, .. } => reached.get(stage).copied(),
        plan::Pace::Iops(_) | plan::Pace::Bytes(_) => None,
    });
    let count = streams.len() as u64;
    for stream in &mut streams {
        stream.sharing.of_group = count;
        stream.sharing.reached = share_of.unwrap_or(0.0);
    }
    streams
}

/// What a thread does its I/Os with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One call an I/O; such a thread has one stream.
    Blocking,
    /// Linux AIO.
    Aio,
    /// io_uring.
    Ring,
}

/// Spreads streams over threads: blocking ones alone, the others evenly over at most `processors` threads of each kind.
/// `kind` tells what a stream needs. Returns indices of streams.
pub fn spread(
    streams: &[StreamPlan],
    kind: impl Fn(&StreamPlan) -> Kind,
    processors: usize,
) -> Vec<(Kind, Vec<usize>)> {
    let mut threads: Vec<(Kind, Vec<usize>)> = Vec::new();
    for wanted in [Kind::Blocking, Kind::Aio, Kind::Ring] {
        let members: Vec<usize> =
            (0..streams.len()).filter(|&index| kind(&streams[index]) == wanted).collect();
        let count =
            if wanted == Kind::Blocking { members.len() } else { processors.clamp(1, members.len().max(1)) };
        for thread in 0..count {
            let mine: Vec<usize> = members.iter().copied().skip(thread).step_by(count).collect();
            if !mine.is_empty() {
                threads.push((wanted, mine));
            }
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Pattern, Timing};

    fn streams(workers: Workers, depth: Depth, targets: usize) -> Vec<(u32, Vec<usize>, u32)> {
        let mut group = Group::new("g", 0, 1, Pattern::simple(4096, 100.0, 0.0), Timing::seconds(1));
        (group.workers, group.depth) = (workers, depth);
        group.targets = (0..targets).collect();
        let stage = Stage::new("s", vec![group]);
        let streams = of_stage(&stage, &[]);
        assert_eq!(streams.iter().map(|stream| u64::from(stream.depth)).sum::<u64>(), stage.outstanding());
        streams.into_iter().map(|stream| (stream.worker.in_group, stream.targets, stream.depth)).collect()
    }

    #[test]
    fn each_dialects_way_of_counting_becomes_streams_of_the_same_total() {
        let per_target = streams(Workers::PerTarget(2), Depth::PerTarget(8), 2);
        assert_eq!(per_target, [(0, vec![0], 8), (1, vec![0], 8), (2, vec![1], 8), (3, vec![1], 8)]);
        let together = streams(Workers::Together(2), Depth::PerWorker(8), 2);
        assert_eq!(together, [(0, vec![0, 1], 8), (1, vec![0, 1], 8)]);
        let total = streams(Workers::Together(2), Depth::PerTarget(8), 2);
        assert_eq!(total, [(0, vec![0], 8), (0, vec![1], 8), (1, vec![0], 8), (1, vec![1], 8)]);
    }

    #[test]
    fn blocking_streams_have_threads_of_their_own_and_others_share() {
        let stage = Stage::new(
            "s",
            vec![{
                let mut group = Group::new("g", 0, 1, Pattern::simple(4096, 100.0, 0.0), Timing::seconds(1));
                group.workers = Workers::Together(5);
                group
            }],
        );
        let all = of_stage(&stage, &[]);
        assert_eq!(spread(&all, |_| Kind::Blocking, 2).len(), 5);
        let ring = spread(&all, |_| Kind::Ring, 2);
        assert_eq!(ring, [(Kind::Ring, vec![0, 2, 4]), (Kind::Ring, vec![1, 3])]);
    }
}
