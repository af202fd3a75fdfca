//! Shares of a node's devices: guests' I/O, resync, destaging and scrubbing compete for them, and the goal is the
//! latency of guests.
//!
//! The order, and why:
//! 1. *What keeps a log from filling* is never held back: a full log stops every writer. The group sees to that by itself
//!    (`diskgroup::Shares`): destaging has its full depth again where congestion begins.
//! 2. *Guests*: their latency is measured, and compared with what it was without the others: the mean, and with copies also what
//!    one request of a hundred takes. Above the goal all others give way, and return step by step once it is met
//!    (multiplicative decrease, additive increase, as TCP does).
//! 3. *Resync*: while a copy is missing, another loss would be the last. It may double what guests feel, its floor is high
//!    (vSAN keeps a fifth of the bandwidth), and scrubbing gives way to it, too, wherever the copies come from.
//! 4. *Destaging* while the log has room: it only has to happen before the log is full.
//! 5. *Scrubbing* gives way to everything, also to a log that fills, since it disturbs destaging. It keeps a sixteenth of its
//!    pace, so that a round always ends.
//!
//! Two latencies are remembered. The *usual* one is that of times without copies, whatever else went on: copies may double
//! it. The *calm* one is that of times in which nothing was destaged or scrubbed either, or next to nothing: it is what those
//! two are judged by. A time with them only ever lowers it. So where guests simply ask for more than before, destaging and
//! scrubbing give way for a second or two, what guests feel then becomes the calm latency, and both return.
//!
//! No clock and no alarm of its own: it is told the time whenever its node moves on. A node whose guests are elsewhere feels
//! nothing, and gives every part its full share.

use crate::limits;
use crate::tail::Tail;
use base::Instant;
use diskgroup::Share;
use std::time::Duration;

/// Who gets what on one node.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Shares of scrubbing and destaging in the node's groups.
    pub(crate) of_groups: diskgroup::Shares,
    /// Bytes a second that the node's owners may copy.
    copy_rate: u64,
    /// The fewest of them.
    pub(crate) copy_floor: u64,
    /// Latency of guests' requests at the 99th percentile that copies may cause, in percent of that without copies.
    pub(crate) copy_tail_percent: u64,
    /// Mean latency of guests' requests while nothing was copied, smoothed; 0 until there was one.
    usual_ns: u64,
    /// Their 99th percentile then.
    usual_tail: Tail,
    /// Requests measured since the pace of copies changed, and the periods since then.
    measured: (u64, u32),
    /// Hundredths of requests that may still be late beside copies; below zero while more than one of a hundred was
    /// late.
    late_left: i64,
    /// The mean while nothing was destaged or scrubbed either.
    calm_ns: u64,
    period: Period,
    /// The work of the groups up to the beginning of the period, and up to the last look.
    done: (Done, Done),
    granted_at: Option<Instant>,
}

/// Bytes that the groups of a node have moved so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Destaged and scrubbed.
    pub(crate) moved: u64,
    /// Received as copies, whoever owns the disk.
    pub(crate) copied: u64,
}

/// What was measured since.
#[derive(Debug)]
struct Period {
    began: Instant,
    /// Latencies of guests' requests.
    sum_ns: u64,
    count: u64,
    /// The number of requests that took longer than copies may make the 99th percentile.
    late: u64,
    /// The greatest back-pressure of a component that something was copied to, 0..=255.
    copy_congestion: u8,
    /// Whether a log of the node was congested.
    is_log_congested: bool,
}

impl Period {
    fn new(began: Instant) -> Period {
        Period { began, sum_ns: 0, count: 0, late: 0, copy_congestion: 0, is_log_congested: false }
    }

    fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }
}

impl Shares {
    pub(crate) fn new(now: Instant) -> Shares {
        Shares {
            of_groups: diskgroup::Shares::FULL,
            copy_rate: limits::COPY_RATE_FLOOR,
            copy_floor: limits::COPY_RATE_FLOOR,
            copy_tail_percent: limits::COPY_TAIL_PERCENT,
            usual_ns: 0,
            usual_tail: Tail::new(),
            measured: (0, 0),
            late_left: 0,
            calm_ns: 0,
            period: Period::new(now),
            done: (Done::default(), Done::default()),
            granted_at: None,
        }
    }

    /// A request of a guest ended that this node served.
    pub(crate) fn guest_done(&mut self, took: Duration) {
        let ns = took.as_nanos() as u64;
        self.period.sum_ns += ns;
        self.period.count += 1;
        self.period.late +=
            u64::from(self.usual_tail.ns().is_some_and(|usual| ns > self.tail_goal_ns(usual)));
        if self.granted_at.is_none() {
            self.usual_tail.note(ns);
        }
    }

    fn tail_goal_ns(&self, usual_ns: u64) -> u64 {
        (usual_ns * self.copy_tail_percent / 100).max(usual_ns + limits::TAIL_SLACK.as_nanos() as u64)
    }

    /// The state of the node's groups: the greatest congestion, and their work so far.
    pub(crate) fn look(&mut self, congestion: u8, done: Done) {
        self.period.is_log_congested |= congestion > 0;
        self.done.1 = done;
    }

    /// Bytes that may be copied from now on, while something is to be copied and so many bytes are on their way already;
    /// nothing before the next grant is due.
    pub(crate) fn grant(&mut self, now: Instant, congestion: u8, in_flight: u64) -> Option<u64> {
        self.period.copy_congestion = self.period.copy_congestion.max(congestion);
        let since = match self.granted_at {
            None => limits::COPY_GRANT_PERIOD,
            Some(at) => now.since(at),
        };
        if since < limits::COPY_GRANT_PERIOD {
            return None;
        }
        if self.granted_at.is_none() {
            self.begin_period(now); // A part of a calm period says little.
        }
        self.granted_at = Some(now);
        if now.since(self.period.began) >= limits::SHARES_PERIOD {
            self.end_period_of_copies(now);
        }
        // After a pause there is no burst.
        let since = since.min(limits::COPY_GRANT_PERIOD * 4);
        // The floor is held whatever a device takes for it.
        let may_begin = self.copy_rate <= self.copy_floor
            || in_flight < self.copied_in(limits::COPY_IN_FLIGHT_TIME).max(limits::COPY_IN_FLIGHT_MIN);
        Some(if may_begin { self.copied_in(since) } else { 0 })
    }

    fn copied_in(&self, time: Duration) -> u64 {
        // The floor is that of a whole rebuild, which begins with a decision and ends with a record.
        let floor = self.copy_floor + self.copy_floor / limits::COPY_FLOOR_MARGIN;
        (u128::from(self.copy_rate.max(floor)) * time.as_nanos() / 1_000_000_000) as u64
    }

    /// Nothing is to be copied now.
    pub(crate) fn rest(&mut self, now: Instant) {
        if self.granted_at.take().is_some() {
            self.begin_period(now); // What was measured belongs to a time of copies.
        } else if now.since(self.period.began) >= limits::SHARES_PERIOD {
            self.end_period(now);
        }
    }

    /// When the next grant is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.granted_at.map(|at| at + limits::COPY_GRANT_PERIOD)
    }

    fn begin_period(&mut self, now: Instant) {
        self.period = Period::new(now);
        self.done.0 = self.done.1;
    }

    /// Ends a period without copies: notes the latency of guests, and compares it with the goal.
    fn end_period(&mut self, now: Instant) {
        let mean = self.period.mean_ns();
        let is_felt = mean.is_some_and(|mean| self.calm_ns > 0 && mean > goal_ns(self.calm_ns));
        if let Some(mean) = mean {
            smooth(&mut self.usual_ns, mean);
            let at_floor = self.of_groups == diskgroup::Shares { scrub: Share::FLOOR, destage: Share::FLOOR };
            if at_floor || self.done.0.moved == self.done.1.moved || mean < self.calm_ns || self.calm_ns == 0
            {
                smooth(&mut self.calm_ns, mean);
            }
        }
        let takes_copies = self.done.0.copied != self.done.1.copied;
        self.share_out(mean, is_felt, takes_copies);
        self.usual_tail.end_period();
        self.copy_rate = self.copy_floor; // What the next copies find is not known.
        self.late_left = 0;
        self.begin_period(now);
    }

    /// Ends a period with copies: compares the latency of guests with the goal.
    fn end_period_of_copies(&mut self, now: Instant) {
        let mean = self.period.mean_ns();
        let goal = match self.usual_ns {
            0 => limits::COPY_GOAL_UNKNOWN.as_nanos() as u64,
            usual => goal_ns(usual),
        };
        let (count, late) = (self.period.count as i64, self.period.late as i64);
        let owed_max = (100 * limits::LATE_OWED_MIN).max(limits::LATE_OWED_PERIODS * count);
        self.late_left = (self.late_left + count - 100 * late).clamp(-owed_max, count.max(100));
        let is_over = self.late_left < 0;
        let is_felt = mean.is_some_and(|mean| mean > goal) || (is_over && late > 0);
        let is_congested = self.period.copy_congestion > limits::COPY_CONGESTION_MAX;
        self.measured = (self.measured.0 + self.period.count, self.measured.1 + 1);
        let is_heard =
            self.measured.0 >= limits::COPY_STEP_REQUESTS || self.measured.1 >= limits::COPY_STEP_PERIODS;
        let rate = match mean {
            _ if is_congested || is_felt => self.copy_rate * 3 / 4,
            None => self.copy_rate * 2,
            Some(_) if is_over => self.copy_rate, // Until a hundred were in time for each that was late.
            Some(_) if is_heard => self.copy_rate + limits::COPY_RATE_STEP,
            Some(_) => self.copy_rate,
        };
        if rate != self.copy_rate {
            self.measured = (0, 0);
        }
        self.copy_rate = rate.clamp(self.copy_floor, limits::COPY_RATE_CEILING);
        self.share_out(mean, is_felt, true);
        self.begin_period(now);
    }

    /// Sets the groups' shares after a period.
    fn share_out(&mut self, mean: Option<u64>, is_felt: bool, has_copies: bool) {
        let next = |share: Share, gives_way: bool| match mean {
            _ if gives_way => share.less(),
            Some(_) => share.more(),
            None => share.twice(),
        };
        let diskgroup::Shares { scrub, destage } = self.of_groups;
        let scrub_gives_way = is_felt || has_copies || self.period.is_log_congested;
        self.of_groups =
            diskgroup::Shares { scrub: next(scrub, scrub_gives_way), destage: next(destage, is_felt) };
    }
}

/// The mean latency that guests may have by the side of others, where it is `alone_ns` without them.
fn goal_ns(alone_ns: u64) -> u64 {
    (alone_ns * 2).max(alone_ns + limits::GOAL_SLACK.as_nanos() as u64)
}

fn smooth(average_ns: &mut u64, mean: u64) {
    *average_ns = if *average_ns == 0 { mean } else { (*average_ns * 7 + mean) / 8 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = limits::COPY_GRANT_PERIOD;

    struct Bench {
        now: Instant,
        shares: Shares,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { now: Instant(1), shares: Shares::new(Instant(1)) }
        }

        fn calm(&mut self, latency: Duration) {
            for _ in 0..500 {
                self.now = self.now + STEP;
                self.shares.guest_done(latency);
                self.shares.rest(self.now);
            }
        }

        /// Copies for a second while guests' requests take so long; bytes that might be copied.
        fn copy(&mut self, latency: Option<Duration>, congestion: u8) -> u64 {
            let mut bytes = 0;
            for _ in 0..Duration::from_secs(1).as_millis() / STEP.as_millis() {
                self.now = self.now + STEP;
                latency.into_iter().for_each(|latency| self.shares.guest_done(latency));
                bytes += self.shares.grant(self.now, congestion, 0).expect("a grant is due");
            }
            bytes
        }
    }

    const QUICK: Duration = Duration::from_micros(300);
    const SLOW: Duration = Duration::from_millis(9);

    #[test]
    fn guests_that_feel_it_slow_copies_down_to_the_floor_and_no_further() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        for _ in 0..3 {
            bench.copy(Some(QUICK), 0);
        }
        let mut rates: Vec<u64> = (0..10).map(|_| bench.copy(Some(SLOW), 0)).collect();
        assert!(rates[0] > rates[1]);
        let last = rates.pop().expect("ten");
        let above = last - limits::COPY_RATE_FLOOR;
        assert!(above > 0 && above <= limits::COPY_RATE_FLOOR / limits::COPY_FLOOR_MARGIN, "{last}");
    }

    #[test]
    fn a_few_requests_that_take_long_slow_copies_where_the_mean_does_not() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let [of_50, of_1000] = [50, 1_000].map(|every| {
            for turn in 1..=10_000u32 {
                bench.now = bench.now + limits::SHARES_PERIOD / 100;
                bench.shares.guest_done(if turn.is_multiple_of(every) { QUICK * 4 } else { QUICK });
                bench.shares.grant(bench.now, 0, 0);
            }
            bench.shares.copy_rate
        });
        assert_eq!(of_50, limits::COPY_RATE_FLOOR);
        assert!(of_1000 > 8 * limits::COPY_RATE_FLOOR, "{of_1000}");
    }

    #[test]
    fn guests_that_do_not_feel_it_let_copies_become_quicker_step_by_step() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let rates: Vec<u64> = (0..5).map(|_| bench.copy(Some(QUICK + limits::TAIL_SLACK), 0)).collect();
        assert!(rates.is_sorted() && rates[4] > rates[0] + 3 * limits::COPY_RATE_STEP, "{rates:?}");
    }

    #[test]
    fn a_guest_that_asks_for_little_is_heard_before_copies_become_quicker_again() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let [of_2, of_25, of_100] = [2, 25, 100].map(|per_period| {
            bench.shares.copy_rate = limits::COPY_RATE_FLOOR;
            for _ in 0..40 * per_period {
                bench.now = bench.now + limits::SHARES_PERIOD / per_period;
                bench.shares.guest_done(QUICK);
                bench.shares.grant(bench.now, 0, 0);
            }
            (bench.shares.copy_rate - limits::COPY_RATE_FLOOR) / limits::COPY_RATE_STEP
        });
        let is_as_told = (3..=4).contains(&of_2) && (8..=10).contains(&of_25) && (38..=40).contains(&of_100);
        assert!(is_as_told, "{of_2} {of_25} {of_100}");
    }

    #[test]
    fn one_late_request_of_a_hundred_is_the_measure_even_where_a_period_has_ten() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let [of_80, of_125] = [80, 125].map(|every| {
            for turn in 1..=20_000u32 {
                bench.now = bench.now + limits::SHARES_PERIOD / 10;
                bench.shares.guest_done(if turn.is_multiple_of(every) { QUICK * 4 } else { QUICK });
                bench.shares.grant(bench.now, 0, 0);
            }
            bench.shares.copy_rate
        });
        assert!(of_80 < limits::COPY_RATE_FLOOR + 2 * limits::COPY_RATE_STEP, "{of_80}");
        assert!(of_125 > 4 * limits::COPY_RATE_FLOOR, "{of_125}");
    }

    #[test]
    fn no_more_is_under_way_than_the_pace_brings_in_a_moment() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let granted = |bench: &mut Bench, in_flight| {
            bench.now = bench.now + STEP;
            bench.shares.grant(bench.now, 0, in_flight).expect("a grant is due")
        };
        assert!(granted(&mut bench, u64::MAX) > 0, "at the floor all may be under way");
        bench.copy(Some(QUICK), 0);
        assert!(granted(&mut bench, limits::COPY_IN_FLIGHT_MIN - 1) > 0);
        assert_eq!(granted(&mut bench, 2 * limits::COPY_IN_FLIGHT_MIN), 0);
        for _ in 0..10 {
            bench.copy(None, 0);
        }
        assert!(granted(&mut bench, 16 * limits::COPY_IN_FLIGHT_MIN) > 0);
    }

    #[test]
    fn without_guests_copies_are_soon_as_quick_as_they_can_be() {
        let mut bench = Bench::new();
        bench.copy(None, 0);
        // Each grant is rounded down to a byte.
        assert!(limits::COPY_RATE_CEILING - bench.copy(None, 0) < 100);
    }

    #[test]
    fn a_log_that_fills_slows_copies_whatever_guests_feel() {
        let mut bench = Bench::new();
        let before = bench.copy(None, 0);
        for _ in 0..5 {
            bench.copy(None, 255);
        }
        assert!(bench.copy(None, 255) < before / 4);
    }

    #[test]
    fn what_guests_feel_during_copies_does_not_become_the_goal() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let usual = bench.shares.usual_ns;
        for _ in 0..3 {
            bench.copy(Some(SLOW), 0);
            bench.shares.rest(bench.now);
        }
        assert_eq!(bench.shares.usual_ns, usual);
    }

    #[test]
    fn grants_are_not_saved_over_a_pause() {
        let mut bench = Bench::new();
        bench.copy(Some(QUICK), 0);
        bench.now = bench.now + Duration::from_secs(30);
        let granted = bench.shares.grant(bench.now, 0, 0).expect("one is due");
        assert!(granted <= limits::COPY_RATE_CEILING / 20, "{granted}");
        assert_eq!(bench.shares.grant(bench.now, 0, 0), None);
    }

    /// Lets so many periods pass without copies, in each of which the groups move so many bytes.
    fn pass(bench: &mut Bench, periods: usize, latency: Option<Duration>, moved_bytes: u64) {
        for _ in 0..periods {
            bench.now = bench.now + limits::SHARES_PERIOD;
            latency.into_iter().for_each(|latency| bench.shares.guest_done(latency));
            let moved = bench.shares.done.1.moved + moved_bytes;
            bench.shares.look(0, Done { moved, ..bench.shares.done.1 });
            bench.shares.rest(bench.now);
        }
    }

    const AT_FLOOR: diskgroup::Shares = diskgroup::Shares { scrub: Share::FLOOR, destage: Share::FLOOR };
    const FULL: diskgroup::Shares = diskgroup::Shares::FULL;

    #[test]
    fn guests_that_feel_it_have_scrubbing_and_destaging_give_way_and_return_when_they_do_not() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        pass(&mut bench, 1, Some(SLOW), 1 << 20);
        assert!(bench.shares.of_groups.scrub < Share::FULL && bench.shares.of_groups.destage < Share::FULL);
        pass(&mut bench, 9, Some(SLOW), 1 << 20);
        assert_eq!(bench.shares.of_groups, AT_FLOOR);
        pass(&mut bench, 14, Some(QUICK), 1 << 20);
        assert!(bench.shares.of_groups.scrub < Share::FULL, "step by step");
        pass(&mut bench, 1, Some(QUICK), 1 << 20);
        assert_eq!(bench.shares.of_groups, FULL);
    }

    #[test]
    fn without_guests_nothing_gives_way_and_what_had_to_is_soon_back() {
        let mut bench = Bench::new();
        pass(&mut bench, 100, None, 64 << 20);
        assert_eq!(bench.shares.of_groups, FULL);
        pass(&mut bench, 1, Some(QUICK), 0);
        pass(&mut bench, 10, Some(SLOW), 1 << 20);
        assert_eq!(bench.shares.of_groups, AT_FLOOR);
        pass(&mut bench, 4, None, 1 << 20);
        assert_eq!(bench.shares.of_groups, FULL);
    }

    #[test]
    fn scrubbing_gives_way_to_copies_even_where_no_guest_is_and_destaging_does_not() {
        let mut bench = Bench::new();
        bench.copy(None, 0);
        bench.copy(None, 0);
        let diskgroup::Shares { scrub, destage } = bench.shares.of_groups;
        assert_eq!((scrub, destage), (Share::FLOOR, Share::FULL));
    }

    #[test]
    fn scrubbing_gives_way_to_copies_that_another_node_sends() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        for copied in 1..20 {
            bench.shares.look(0, Done { copied, ..bench.shares.done.1 });
            pass(&mut bench, 1, Some(QUICK), 0);
        }
        assert_eq!(bench.shares.of_groups, diskgroup::Shares { scrub: Share::FLOOR, destage: Share::FULL });
        pass(&mut bench, 20, Some(QUICK), 0);
        assert_eq!(bench.shares.of_groups, FULL);
    }

    #[test]
    fn scrubbing_gives_way_to_a_log_that_fills_and_destaging_does_not() {
        let mut bench = Bench::new();
        for _ in 0..10 {
            bench.now = bench.now + limits::SHARES_PERIOD;
            bench.shares.look(1, Done::default());
            bench.shares.rest(bench.now);
        }
        let diskgroup::Shares { scrub, destage } = bench.shares.of_groups;
        assert_eq!((scrub, destage), (Share::FLOOR, Share::FULL));
    }

    #[test]
    fn what_guests_feel_beside_scrubbing_does_not_become_the_goal() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let before = bench.shares.calm_ns;
        pass(&mut bench, 50, Some(QUICK * 2), 1 << 20);
        assert_eq!(bench.shares.calm_ns, before);
        assert!(bench.shares.usual_ns > before, "copies do not answer for it");
    }

    #[test]
    fn a_load_that_has_grown_is_the_new_goal_once_the_others_have_given_way() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        pass(&mut bench, 60, Some(SLOW), 1 << 20);
        assert_eq!(bench.shares.of_groups, FULL, "it was not their doing");
    }
}
