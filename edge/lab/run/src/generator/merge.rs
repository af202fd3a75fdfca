//! What the threads of a stage measured, put together: counts are added, nothing is averaged.

use super::tally::{STALL_MIN, Tally, Window};
use super::thread::Failure;
use iostats::Statistics;
use measured::{Compact, DiskSeries, Ended, GroupRun, Interval, Measured, Sample, StageRun, Stall, Verified};
use plan::{Group, Stage};
use statistics::Histogram;

/// The result of a stage.
pub fn stage(
    stage: &Stage,
    index: usize,
    parts: Vec<(Tally, Option<Failure>)>,
    windows: &[Window],
) -> StageRun {
    let failure = parts.iter().find_map(|(_, failure)| failure.clone());
    let mut tallies: Vec<Tally> = parts.into_iter().map(|(tally, _)| tally).collect();
    let groups: Vec<GroupRun> = stage
        .groups
        .iter()
        .enumerate()
        .map(|(at, group)| group_run(group, at, &tallies, windows[at]))
        .collect();
    let from = windows.iter().map(|window| window.from).min().unwrap_or(0) as f64 / 1e9;
    // Groups may begin one after another: the stage counts from the first to the end of the last.
    let ends = groups.iter().zip(windows).map(|(group, window)| window.from as f64 / 1e9 + group.seconds);
    let seconds = ends.fold(from, f64::max) - from;
    StageRun {
        stage: index,
        repeat: 0,
        started: 0.0,
        seconds,
        ended: failure.map_or(Ended::Done, |failure| Ended::Failed(failure.to_string())),
        first_error: tallies.iter_mut().find_map(|tally| tally.first_error.take()),
        stalls: stalls(&tallies, &groups, from),
        groups,
        disks: disks(&tallies, from),
        cpu_user: 0.0,
        cpu_system: 0.0,
        start_late: 0.0,
        agents: Vec::new(),
    }
}

fn group_run(group: &Group, index: usize, tallies: &[Tally], window: Window) -> GroupRun {
    let parts = || tallies.iter().map(|tally| &tally.groups[index]);
    let mut operations: [Measured; 3] = Default::default();
    for part in parts() {
        operations.iter_mut().zip(&part.operations).for_each(|(sum, of)| sum.merge(of));
    }
    let finished = parts().map(|part| part.finished_at).max().unwrap_or(0);
    let last_end = parts().map(|part| part.last_end).max().unwrap_or(window.from);
    let to = if finished >= window.to { window.to } else { last_end };
    let counted = to.saturating_sub(window.from);
    let residence: u128 = parts().map(|part| part.residence).sum();
    GroupRun {
        name: group.name.clone(),
        vm: group.vm.clone(),
        outstanding: group.outstanding(),
        outstanding_mean: (counted > 0).then(|| residence as f64 / counted as f64),
        seconds: counted as f64 / 1e9,
        operations,
        intervals: intervals(parts().flat_map(|part| &part.intervals)),
        backlog_max: parts().map(|part| part.backlog_max).sum(),
        unsent: parts().map(|part| part.unsent).sum(),
        rated: !group.rates.is_empty(),
        verified: group.verify.is_some().then(|| verified(parts().map(|part| part.verified))),
    }
}

fn verified(parts: impl Iterator<Item = Verified>) -> Verified {
    parts.fold(Verified::default(), |sum, part| Verified {
        compared: sum.compared + part.compared,
        wrong: sum.wrong + part.wrong,
    })
}

/// Intervals of the same second are one.
fn intervals<'a>(all: impl Iterator<Item = &'a Interval>) -> Vec<Interval> {
    let mut all: Vec<&Interval> = all.collect();
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut merged: Vec<Interval> = Vec::new();
    for same in all.chunk_by(|a, b| a.at == b.at) {
        if let [alone] = same {
            merged.push((*alone).clone());
            continue;
        }
        let latency = [0, 1, 2].map(|operation| {
            let mut sum = Histogram::default();
            same.iter().for_each(|interval| sum.merge(&interval.latency[operation].histogram()));
            Compact::from(&sum)
        });
        let sum = |of: fn(&Interval) -> &[u64; 3]| {
            [0, 1, 2].map(|operation| same.iter().map(|interval| of(interval)[operation]).sum())
        };
        let (ios, bytes) = (sum(|interval| &interval.ios), sum(|interval| &interval.bytes));
        let errors = sum(|interval| &interval.errors);
        merged.push(Interval { at: same[0].at, ios, latency, bytes, errors });
    }
    merged
}

fn disks(tallies: &[Tally], from: f64) -> Vec<DiskSeries> {
    let Some(first) = tallies.first() else { return Vec::new() };
    let mut series = Vec::new();
    for (index, disk) in first.disks.iter().enumerate() {
        let mut samples: Vec<&Sample> =
            tallies.iter().flat_map(|tally| &tally.disks[index].samples).collect();
        samples.sort_by(|a, b| a.at.total_cmp(&b.at));
        let samples: Vec<Sample> = samples
            .chunk_by(|a, b| a.at == b.at)
            .map(|same| {
                let mut statistics = Statistics::default();
                same.iter().for_each(|sample| statistics.merge(&sample.statistics));
                let seconds = same.iter().map(|sample| sample.seconds).fold(0.0, f64::max);
                Sample { at: same[0].at - from, seconds, statistics }
            })
            .collect();
        if !samples.is_empty() {
            series.push(DiskSeries { name: disk.name.clone(), samples });
        }
    }
    series
}

/// The times in which no thread completed anything although something was outstanding. One that lasts no longer than I/Os usually take
/// is none.
fn stalls(tallies: &[Tally], groups: &[GroupRun], from: f64) -> Vec<Stall> {
    let mut total = Measured::default();
    groups.iter().flat_map(|group| &group.operations).for_each(|of| total.merge(of));
    let usual = total.latency.percentile(0.5).unwrap_or(0) as f64 / 1e9;
    let least = (5.0 * usual).max(STALL_MIN as f64 / 1e9);
    let quiet = tallies.iter().map(|tally| tally.quiet.clone());
    let mut merged: Vec<Stall> = Vec::new();
    for stall in quiet.reduce(|all, one| common(&all, &one)).unwrap_or_default() {
        match merged.last_mut() {
            _ if stall.waiting == 0 => {}
            Some(last) if stall.at <= last.at + last.seconds + 1e-6 => {
                last.seconds = stall.at + stall.seconds - last.at;
                last.waiting = last.waiting.max(stall.waiting);
            }
            _ => merged.push(stall),
        }
    }
    merged.retain(|stall| stall.seconds > least);
    merged.iter_mut().for_each(|stall| stall.at -= from);
    merged
}

/// The times that are in both lists; each is in order.
fn common(a: &[Stall], b: &[Stall]) -> Vec<Stall> {
    let (mut found, mut i, mut j) = (Vec::new(), 0, 0);
    while let (Some(one), Some(other)) = (a.get(i), b.get(j)) {
        let (one_end, other_end) = (one.at + one.seconds, other.at + other.seconds);
        let (at, end) = (one.at.max(other.at), one_end.min(other_end));
        if end > at {
            found.push(Stall { at, seconds: end - at, waiting: one.waiting + other.waiting });
        }
        if one_end <= other_end {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(quiet: &[(f64, f64, u32)]) -> Tally {
        let mut tally = Tally::new(Vec::new(), &[]);
        tally.quiet =
            quiet.iter().map(|&(at, end, waiting)| Stall { at, seconds: end - at, waiting }).collect();
        tally
    }

    #[test]
    fn it_is_a_stall_of_the_stage_when_no_thread_completes_anything() {
        let busy = [(3.0, 3.2, 1)];
        let stuck = [(1.0, 3.0, 4), (3.0, 6.0, 4)];
        assert_eq!(
            stalls(&[tally(&stuck), tally(&busy)], &[], 0.0),
            [Stall { at: 3.0, seconds: 3.2 - 3.0, waiting: 5 }]
        );
        let idle = [(0.0, 2.0, 0), (4.0, f64::INFINITY, 0)];
        let found = stalls(&[tally(&stuck), tally(&idle)], &[], 1.0);
        assert_eq!(
            found,
            [Stall { at: 0.0, seconds: 1.0, waiting: 4 }, Stall { at: 3.0, seconds: 2.0, waiting: 4 }]
        );
        assert_eq!(stalls(&[tally(&idle), tally(&idle)], &[], 0.0), [], "nothing was outstanding");
        assert_eq!(stalls(&[], &[], 0.0), []);
    }
}
