//! Doubts about a stage's figures: what a reader must know before using them.

use crate::run::{Ended, GroupRun, Interval, StageRun, Stall};
use serde::{Deserialize, Serialize};
use statistics::{Histogram, doubts, little, words};

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The stage did not end as planned.
    Ended,
    /// An agent was lost, or began late.
    Agents,
    /// I/Os failed, or data was wrong.
    Errors,
    /// Throughput and latency contradict what was outstanding.
    Little,
    /// A stall that a closed loop hides.
    HiddenStall,
    /// A stall that an open loop shows, or that is too short to hide anything.
    Stall,
    /// A rate could not be kept.
    Backlog,
    /// Seconds differ much.
    Noise,
    /// It was not steady.
    Trend,
    /// Too few I/Os for the percentiles.
    FewIos,
}

/// One thing to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// Whether the figures cannot be used as they are, rather than with care.
    pub serious: bool,
    /// A sentence with numbers.
    pub text: String,
}

/// A percentile means little with fewer values beyond it.
const BEYOND_MIN: f64 = 10.0;
/// What lasts no longer than so many I/Os of its time is no stall.
const STALL_IOS: f64 = 5.0;
/// An I/O has waited for a stall when it took this part of it.
const STALLED_PART: f64 = 0.9;
/// A stall hides something when the p99.9 would be so many times larger with what it kept from being sent.
const HIDDEN_MIN: f64 = 1.1;
/// How long before a stall it is looked for what is usual, in seconds.
const EARLIER_MAX: f64 = 60.0;
/// A stage that counted for less is mostly its own beginning and end.
const SECONDS_MIN: f64 = 1.0;
/// A backlog of more than so many seconds of I/Os is told.
const BACKLOG_SECONDS: f64 = 0.05;
/// A rate is kept when this part of what is due completes in time.
const KEPT_MIN: f64 = 0.98;

impl StageRun {
    /// What must be known about its figures.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.find_end(&mut found);
        self.find_agents(&mut found);
        self.find_errors(&mut found);
        self.find_little(&mut found);
        self.find_stalls(&mut found);
        self.find_backlog(&mut found);
        self.find_unsteadiness(&mut found);
        self.find_few(&mut found);
        found
    }

    /// I/Os of every second, of all groups and operations. Seconds that are not whole are left out.
    pub fn ios_by_second(&self) -> Vec<f64> {
        let mut seconds: Vec<(f64, f64)> = Vec::new();
        for interval in self.groups.iter().flat_map(|group| &group.intervals) {
            let count = interval.completed() as f64;
            match seconds.iter_mut().find(|(at, _)| *at == interval.at) {
                Some((_, sum)) => *sum += count,
                None => seconds.push((interval.at, count)),
            }
        }
        seconds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let whole = |at: f64| at >= 0.0 && at + 1.0 <= self.seconds + 1e-6;
        seconds.into_iter().filter(|&(at, _)| whole(at)).map(|(_, count)| count).collect()
    }

    fn find_end(&self, found: &mut Vec<Finding>) {
        if let Some(error) = &self.first_error {
            let text = format!("the stage continued after errors; the first one: {error}");
            found.push(Finding { kind: FindingKind::Errors, serious: true, text });
        }
        let text = match &self.ended {
            Ended::Done | Ended::Steady => return,
            Ended::Stopped => "the stage was stopped before its end".to_owned(),
            Ended::Failed(error) => format!("the stage failed: {error}"),
        };
        found.push(Finding { kind: FindingKind::Ended, serious: true, text });
    }

    fn find_agents(&self, found: &mut Vec<Finding>) {
        /// Agents that begin further apart than this are told.
        const APART_MAX: f64 = 0.005;
        for part in &self.agents {
            if let Some(reason) = &part.lost {
                let text = format!("agent {} was lost ({reason}): its results are excluded", part.agent);
                found.push(Finding { kind: FindingKind::Agents, serious: true, text });
            } else if part.start_late + part.clock_error > APART_MAX {
                let text = format!(
                    "agent {} started {} late; its clock is known to within {}",
                    part.agent,
                    words::milliseconds(part.start_late),
                    words::milliseconds(part.clock_error)
                );
                found.push(Finding { kind: FindingKind::Agents, serious: false, text });
            }
        }
    }

    fn find_errors(&self, found: &mut Vec<Finding>) {
        for group in &self.groups {
            let errors: u64 = group.operations.iter().map(|of| of.errors).sum();
            if errors > 0 {
                let text = format!(
                    "{}: {} failed: excluded from IOPS and latency",
                    group.name,
                    words::counted(errors, "I/O")
                );
                found.push(Finding { kind: FindingKind::Errors, serious: true, text });
            }
            if let Some(verified) = group.verified
                && verified.wrong > 0
            {
                let text = format!(
                    "{}: {} of {} compared do not hold the data that was written",
                    group.name,
                    verified.wrong,
                    words::counted(verified.compared, "block")
                );
                found.push(Finding { kind: FindingKind::Errors, serious: true, text });
            }
        }
    }

    fn find_little(&self, found: &mut Vec<Finding>) {
        for group in self.groups.iter().filter(|group| !group.rated) {
            let mean = group.total().latency.mean_ns().unwrap_or(0.0) / 1e9;
            // Where it was measured what was outstanding, it is not to be reckoned: with I/Os that take long against the time that counts,
            // those that end after it have a part in the latency and none in the throughput.
            let latency_s = match group.outstanding_mean {
                Some(outstanding) if group.iops() > 0.0 => outstanding / group.iops(),
                Some(_) | None => mean,
            };
            let implied = group.iops() * latency_s;
            if implied <= 0.0 || group.outstanding == 0 {
                continue;
            }
            let side = little::side_of(implied / group.outstanding as f64, 0.0);
            // I/Os that failed took their time, too, and are in neither figure.
            let has_failed = group.operations.iter().any(|of| of.errors > 0);
            if side == little::Side::Short && !has_failed {
                let text = format!(
                    "{}: {} of {} were outstanding on average. The generator, pauses or a rate limit took the rest of the time; the \
                     target may do more",
                    group.name,
                    words::number(implied),
                    words::counted(group.outstanding, "I/O")
                );
                found.push(Finding { kind: FindingKind::Little, serious: false, text });
            } else if side == little::Side::Above {
                let text = format!(
                    "{}: IOPS × latency gives {} outstanding I/Os and exceeds the queue depth of {}: the figures cannot come from one run",
                    group.name,
                    words::number(implied),
                    group.outstanding
                );
                found.push(Finding { kind: FindingKind::Little, serious: true, text });
            }
        }
    }

    /// The stalls that tell something: a group that stops or waits as planned is none, and neither is what lasts about as long
    /// as I/Os did at that time, or goes on while others are served.
    pub fn stalls_of_note(&self) -> Vec<Stall> {
        self.stalls.iter().copied().filter(|stall| self.is_of_note(stall)).collect()
    }

    fn is_of_note(&self, stall: &Stall) -> bool {
        let (from, to) = (stall.at, stall.at + stall.seconds);
        let active: Vec<(f64, f64)> = self.groups.iter().filter_map(active).collect();
        if active.is_empty() || !from.is_finite() || !to.is_finite() {
            return true;
        }
        let overlap = active.iter().map(|&(begin, end)| to.min(end) - from.max(begin)).fold(0.0, f64::max);
        if overlap < stall.seconds / 2.0 {
            return false;
        }
        let within =
            |from: f64, to: f64| self.groups.iter().flat_map(move |group| intervals_within(group, from, to));
        if within(from.ceil(), to.floor() - 1.0).any(|interval| count(interval) > 0) {
            return false;
        }
        // The second in which it begins, and earlier ones until more I/Os are in them than waited: what comes after may be another
        // load.
        let mut begin = from.floor();
        let earliest = (begin - EARLIER_MAX).max(0.0);
        while begin > earliest && within(begin, from).map(count).sum::<u64>() <= self.outstanding() {
            begin -= 1.0;
        }
        let mut usual = Histogram::default();
        for latency in within(begin, from).flat_map(|interval| &interval.latency) {
            usual.merge(&latency.histogram());
        }
        let usual_s = usual.percentile(0.5).unwrap_or(0) as f64 / 1e9;
        stall.seconds > STALL_IOS * usual_s
    }

    fn find_stalls(&self, found: &mut Vec<Finding>) {
        let stalls = self.stalls_of_note();
        let Some(longest) = stalls.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)) else { return };
        let is_open = self.groups.iter().any(|group| group.operations.iter().any(|of| of.service.is_some()));
        let what = match stalls.len() {
            1 => format!(
                "nothing completed for {} s, from second {:.1} on",
                words::number(longest.seconds),
                longest.at
            ),
            count => format!(
                "nothing completed {count} times, at the longest for {} s from second {:.1} on",
                words::number(longest.seconds),
                longest.at
            ),
        };
        if is_open {
            let text = format!(
                "{what}. The latency of an I/O counts from when it was due, so the percentiles show the stall"
            );
            return found.push(Finding { kind: FindingKind::Stall, serious: false, text });
        }
        let (corrected, hidden) = self.with_hidden(&stalls);
        let (shown, true_p999) = (p999(&self.total().latency), p999(&corrected));
        if true_p999 < shown * HIDDEN_MIN {
            let text = format!("{what}. The stall was too short to change the p99.9");
            return found.push(Finding { kind: FindingKind::Stall, serious: false, text });
        }
        let text = format!(
            "{what}. A closed loop hides this: about {} were not sent during the stall. The p99.9 of {} covers only the I/Os that were \
             sent; independent users would have seen about {}. To measure it, run the job as an open loop with a rate",
            words::counted(hidden, "I/O"),
            words::milliseconds(shown),
            words::milliseconds(true_p999)
        );
        found.push(Finding { kind: FindingKind::HiddenStall, serious: true, text });
    }

    /// The latencies with those put back that stalls kept from being sent, and how many these are. Each of a group's places for an
    /// I/O is a stream that sends one at an interval; one that waited `v` kept back those that were due at each interval since, which would
    /// have waited `v` less one interval, less two, down to one (HdrHistogram's correction for coordinated omission). Of I/Os that
    /// waited less than the shortest stall nothing is put back: they are as slow as the target is.
    fn with_hidden(&self, stalls: &[Stall]) -> (Histogram, u64) {
        let stalled: f64 = stalls.iter().map(|stall| stall.seconds).sum();
        let shortest = stalls.iter().map(|stall| stall.seconds).fold(f64::INFINITY, f64::min);
        let (mut corrected, mut hidden) = (self.total().latency, 0);
        for group in &self.groups {
            let latency = group.total().latency;
            // Who keeps a rate sends after a stall what was due meanwhile, so that its I/Os are those of the whole time.
            let sending = if group.rated { group.seconds } else { group.seconds - stalled };
            let rate = latency.count() as f64 / sending.max(0.001);
            let interval = group.outstanding as f64 / rate;
            let waited =
                latency.buckets().filter(|one| one.middle_ns as f64 / 1e9 >= shortest * STALLED_PART);
            for one in waited.filter(|_| interval > 0.0 && interval.is_finite()) {
                hidden += put_back(&mut corrected, (one.middle_ns, one.count), interval * 1e9);
            }
        }
        (corrected, hidden)
    }

    fn find_backlog(&self, found: &mut Vec<Finding>) {
        for group in &self.groups {
            let due = group.total().latency.count() as f64 / group.seconds.max(f64::MIN_POSITIVE);
            let is_open = group.operations.iter().any(|of| of.service.is_some());
            let seconds = group.backlog_max / group.iops().max(1.0);
            // What is under way at the end of a short run, or due just as it is stopped, is no sign of a target that is too slow.
            let has_waited = group.backlog_max >= 1.0 && seconds > BACKLOG_SECONDS;
            if is_open && has_waited && (group.unsent > 0 || group.iops() < due * KEPT_MIN) {
                let unsent = match group.unsent {
                    0 => String::new(),
                    count => {
                        format!(". Never sent: {}; their waiting time counts", words::counted(count, "I/O"))
                    }
                };
                let text = format!(
                    "{}: {} IOPS were due and {} completed: the target is saturated, or the depth of {} is too small{unsent}. The backlog grows \
                     with time, so the percentiles depend on the length of the run",
                    group.name,
                    words::number(due),
                    words::number(group.iops()),
                    group.outstanding
                );
                found.push(Finding { kind: FindingKind::Backlog, serious: true, text });
            } else if has_waited {
                let text = format!(
                    "{}: up to {} queued in the generator because all its slots were in use. The target was slower than the rate, or the \
                     depth of {} is too small for it",
                    group.name,
                    words::counted(group.backlog_max as u64, "I/O"),
                    group.outstanding
                );
                found.push(Finding { kind: FindingKind::Backlog, serious: false, text });
            }
        }
    }

    /// Whether groups began and stopped one after another: then the level changes because the load does.
    fn is_scheduled(&self) -> bool {
        const APART_MAX: f64 = 1.5;
        let all: Vec<(f64, f64)> = self.groups.iter().filter_map(active).collect();
        all.windows(2).any(|pair| {
            (pair[0].0 - pair[1].0).abs() > APART_MAX || (pair[0].1 - pair[1].1).abs() > APART_MAX
        })
    }

    fn find_unsteadiness(&self, found: &mut Vec<Finding>) {
        if self.is_scheduled() {
            return;
        }
        let doubts = doubts::doubts(&self.ios_by_second());
        if let Some(noise) = doubts.noise {
            let text = format!(
                "IOPS vary by {} of their mean from second to second (limit {}). To show small differences, run longer or on a quieter \
                 machine",
                words::percent(noise),
                words::percent(doubts::NOISE_WITHIN_MAX)
            );
            found.push(Finding { kind: FindingKind::Noise, serious: false, text });
        }
        if let Some(drift) = doubts.drift {
            let text = format!(
                "not in steady state: IOPS {} by {} over the run. Use a longer ramp-up, or precondition the target",
                if drift > 0.0 { "rise" } else { "fall" },
                words::percent(drift.abs())
            );
            found.push(Finding { kind: FindingKind::Trend, serious: false, text });
        }
    }

    fn find_few(&self, found: &mut Vec<Finding>) {
        let count = self.total().latency.count() as f64;
        if count > 0.0 && self.seconds < SECONDS_MIN {
            let text = format!(
                "only {} s inside the measured window: start and end effects dominate. Run longer, or use a larger amount",
                words::number(self.seconds)
            );
            found.push(Finding { kind: FindingKind::FewIos, serious: false, text });
        }
        if count > 0.0 && count * 0.01 < BEYOND_MIN {
            let text = format!(
                "{} are too few for a p99: fewer than 10 lie beyond it",
                words::counted(count as u64, "I/O")
            );
            found.push(Finding { kind: FindingKind::FewIos, serious: false, text });
        }
    }
}

/// Puts back what `count` I/Os that waited `ns` kept from being sent at an interval; says how many.
fn put_back(histogram: &mut Histogram, (ns, count): (u64, u64), interval_ns: f64) -> u64 {
    /// So many different waits are told apart; the histogram has fewer.
    const STEPS_MAX: u64 = 100_000;
    let missing = ((ns as f64 / interval_ns) as u64).saturating_sub(1);
    let steps = missing.min(STEPS_MAX);
    let upto =
        |step: u64| (u128::from(count) * u128::from(missing) * u128::from(step) / u128::from(steps)) as u64;
    for step in 0..steps {
        let waited = ns as f64 * (1.0 - (step + 1) as f64 / (steps + 1) as f64);
        histogram.record_many(waited as u64, upto(step + 1) - upto(step));
    }
    count * missing
}

/// From when to when a group did something, by its seconds.
fn active(group: &GroupRun) -> Option<(f64, f64)> {
    let busy = || group.intervals.iter().filter(|interval| count(interval) > 0);
    Some((busy().next()?.at, busy().next_back()?.at + 1.0))
}

/// I/Os of one second of a group, also those that count by when they were due alone.
fn count(interval: &Interval) -> u64 {
    interval.completed().max(interval.latency.iter().map(|of| of.count()).sum())
}

/// A group's seconds that begin in this time.
fn intervals_within(group: &GroupRun, from: f64, to: f64) -> impl Iterator<Item = &Interval> {
    let first = group.intervals.partition_point(|interval| interval.at < from);
    group.intervals[first..].iter().take_while(move |interval| interval.at <= to)
}

fn p999(histogram: &Histogram) -> f64 {
    histogram.percentile(0.999).unwrap_or(0) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compact, Measured};

    fn stage(latencies: &[(u64, u64)], outstanding: u64, seconds: f64) -> StageRun {
        let mut measured = Measured::default();
        for &(ns, count) in latencies {
            measured.latency.record_many(ns, count);
            measured.ios += count;
        }
        StageRun {
            stage: 0,
            repeat: 0,
            started: 0.0,
            seconds,
            ended: Ended::Done,
            first_error: None,
            groups: vec![GroupRun {
                name: "g".into(),
                vm: None,
                outstanding,
                outstanding_mean: None,
                seconds,
                operations: [measured, Measured::default(), Measured::default()],
                intervals: Vec::new(),
                backlog_max: 0.0,
                unsent: 0,
                rated: false,
                verified: None,
            }],
            disks: Vec::new(),
            stalls: Vec::new(),
            cpu_user: 0.0,
            cpu_system: 0.0,
            start_late: 0.0,
            agents: Vec::new(),
        }
    }

    fn kinds(stage: &StageRun) -> Vec<FindingKind> {
        stage.findings().into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn figures_that_obey_littles_law_need_no_word() {
        assert_eq!(kinds(&stage(&[(1_000_000, 320_000)], 32, 10.0)), []);
        assert_eq!(kinds(&stage(&[(1_000_000, 160_000)], 32, 10.0)), [FindingKind::Little]);
    }

    #[test]
    fn a_stall_of_a_closed_loop_is_called_hidden_with_what_it_hides() {
        // 1 ms each with one outstanding, and one I/O that took 2 s: 8,000 I/Os in 10 s.
        let mut run = stage(&[(1_000_000, 7_999), (2_000_000_000, 1)], 1, 10.0);
        run.stalls.push(Stall { at: 4.0, seconds: 2.0, waiting: 1 });
        let found = run.findings();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, FindingKind::HiddenStall);
        assert!(found[0].text.contains("about 2003 I/Os"), "{}", found[0].text);
        assert!(found[0].text.contains("p99.9 of 1.00 ms"), "{}", found[0].text);
        let corrected = p999(&run.with_hidden(&run.stalls).0);
        assert!((1.9..2.0).contains(&corrected), "{corrected}");
    }

    /// Two machines: one reads all the time, 1,000 I/Os a second of 1 ms; the other from second 3 to 6, when both get 10 of 100 ms.
    fn scheduled() -> StageRun {
        let mut run = stage(&[(1_000_000, 7_000), (100_000_000, 60)], 1, 10.0);
        let second = |at: f64, ns: u64, count: u64| {
            let mut latency = Histogram::default();
            latency.record_many(ns, count);
            let none = || Compact::from(&Histogram::default());
            Interval {
                errors: [0; 3],
                at,
                ios: [count, 0, 0],
                latency: [Compact::from(&latency), none(), none()],
                bytes: [count * 4096, 0, 0],
            }
        };
        let contended = |at: u32| (3..6).contains(&at);
        let mut other = run.groups[0].clone();
        run.groups[0].rated = true;
        run.groups[0].intervals = (0..10)
            .map(|at| match contended(at) {
                true => second(f64::from(at), 100_000_000, 10),
                false => second(f64::from(at), 1_000_000, 1_000),
            })
            .collect();
        other.intervals = (3..6).map(|at| second(f64::from(at), 100_000_000, 10)).collect();
        other.rated = true;
        other.operations = Default::default();
        run.groups.push(other);
        run
    }

    /// Two machines that overlap for 10 of 30 s: the stage was told the sum of their rates, which was never reached.
    #[test]
    fn machines_one_after_another_have_the_rate_of_the_whole_span() {
        let mut first = stage(&[(1_000_000, 1_000)], 1, 20.0);
        let second = stage(&[(1_000_000, 2_000)], 1, 20.0).begun_later(10.0);
        first.seconds = first.seconds.max(second.seconds);
        first.groups.extend(second.groups);
        assert_eq!((first.groups[0].iops(), first.groups[1].iops()), (50.0, 100.0));
        assert_eq!((first.seconds, first.iops()), (30.0, 100.0));
    }

    /// Of 32 that wait for 10 s each, 32 end in the 15 s that count and 32 after it: throughput times latency is 21 or 43, and 32 were
    /// outstanding all the time.
    #[test]
    fn littles_law_is_held_to_what_was_outstanding_within_the_time_that_counts() {
        let mut run = stage(&[(10_000_000_000, 64)], 32, 15.0);
        run.groups[0].operations[0].ios = 96;
        assert!(
            kinds(&run).contains(&FindingKind::Little),
            "by throughput times latency, 64 were outstanding"
        );
        run.groups[0].outstanding_mean = Some(32.0);
        assert!(!kinds(&run).contains(&FindingKind::Little), "{:?}", run.findings());
    }

    #[test]
    fn what_a_stall_kept_back_is_counted_for_each_place_and_to_the_last() {
        // 2 s with nothing, and else an I/O each 10 us in each of two places: 2 x 200,000 are missing, less one each.
        let mut run = stage(&[(10_000, 1_600_000), (2_000_000_000, 2)], 2, 10.0);
        run.stalls.push(Stall { at: 4.0, seconds: 2.0, waiting: 2 });
        let (corrected, hidden) = run.with_hidden(&run.stalls);
        assert!((395_000..=405_000).contains(&hidden), "{hidden}");
        assert_eq!(corrected.count(), 1_600_002 + hidden);
        // A second group that is slow anyway has its own interval, and hides little.
        let mut slow = run.groups[0].clone();
        slow.operations[0] = Measured::default();
        slow.operations[0].latency.record_many(2_000_000_000, 4);
        run.groups.push(slow);
        let (_, more) = run.with_hidden(&run.stalls);
        assert!(more - hidden <= 4, "{}", more - hidden);
    }

    #[test]
    fn a_machine_that_waits_and_stops_by_plan_does_not_stall() {
        // Reported as a hidden stall: a machine that was stopped at second 6, and the slow seconds in which two shared a disk.
        let mut run = scheduled();
        run.stalls = vec![
            Stall { at: 6.0, seconds: 4.0, waiting: 0 },
            Stall { at: 0.0, seconds: 3.0, waiting: 0 },
            Stall { at: 4.2, seconds: 0.1, waiting: 1 },
            Stall { at: 5.95, seconds: 0.1, waiting: 1 },
            Stall { at: 10.0, seconds: 5.0, waiting: 0 },
        ];
        assert_eq!(run.stalls_of_note(), []);
        assert_eq!(kinds(&run), [], "neither a stall nor unsteadiness: the load changed by plan");
    }

    #[test]
    fn a_stall_among_machines_of_a_schedule_is_told() {
        let mut run = scheduled();
        run.stalls = vec![Stall { at: 7.5, seconds: 0.4, waiting: 1 }];
        assert_eq!(run.stalls_of_note(), run.stalls);
        // One second in which nothing ended, and the next: what waited is no measure of what is usual.
        for group in &mut run.groups {
            group.intervals.retain(|interval| interval.at < 8.0);
        }
        run.stalls = vec![Stall { at: 7.9, seconds: 2.1, waiting: 1 }];
        assert_eq!(run.stalls_of_note(), []);
        run.groups[0].intervals.push({
            let mut latency = Histogram::default();
            latency.record(2_100_000_000);
            let none = || Compact::from(&Histogram::default());
            Interval {
                errors: [0; 3],
                at: 10.0,
                ios: [1, 0, 0],
                latency: [Compact::from(&latency), none(), none()],
                bytes: [4096, 0, 0],
            }
        });
        assert_eq!(run.stalls_of_note(), run.stalls);
    }

    #[test]
    fn a_rate_is_not_kept_only_where_something_had_to_wait() {
        let mut run = stage(&[(1_000_000, 10_000)], 8, 10.0);
        run.groups[0].rated = true;
        run.groups[0].operations[0].service = Some(Histogram::default());
        (run.groups[0].operations[0].ios, run.groups[0].unsent) = (9_000, 1);
        assert_eq!(kinds(&run), [], "they were under way at the end");
        run.groups[0].backlog_max = 900.0;
        assert!(run.findings().iter().any(|one| one.kind == FindingKind::Backlog && one.serious));
        (run.groups[0].operations[0].ios, run.groups[0].unsent) = (10_000, 0);
        assert!(run.findings().iter().any(|one| one.kind == FindingKind::Backlog && !one.serious));
    }

    #[test]
    fn failures_and_few_ios_are_told() {
        let mut run = stage(&[(1_000_000, 100)], 1, 0.1);
        run.groups[0].operations[0].errors = 3;
        run.ended = Ended::Failed("read of 4096 bytes at byte 0: Input/output error".into());
        assert_eq!(
            kinds(&run),
            [FindingKind::Ended, FindingKind::Errors, FindingKind::FewIos, FindingKind::FewIos]
        );
    }
}
