//! Limits over virtual time: rates, bursts, fairness, changes.

use super::*;
use base::HostId;

const MS: Duration = Duration::from_millis(1);

fn host(number: u128) -> HostId {
    HostId(number)
}

fn iops(limit: u64) -> Limits {
    Limits { iops: Some(limit), bytes: None }
}

/// A disk with limits whose clients keep so many requests of so many bytes under way each; a request takes no time.
struct Bench {
    pace: Pace,
    now: Instant,
    next: u32,
    /// By client: requests that may be sent now, and the size of each.
    clients: Vec<(u32, u64)>,
    owners: std::collections::BTreeMap<u32, usize>,
    begun: Vec<u64>,
    /// Whether the clients send nothing more.
    is_quiet: bool,
}

impl Bench {
    fn new(limits: Limits, clients: &[(u32, u64)]) -> Bench {
        let begun = vec![0; clients.len()];
        let (now, owners) = (Instant(1 << 40), Default::default());
        Bench {
            pace: Pace::new(limits),
            now,
            next: 0,
            clients: clients.to_vec(),
            owners,
            begun,
            is_quiet: false,
        }
    }

    /// Runs for so long in steps of 0.1 ms; gives what each client began.
    fn run(&mut self, time: Duration) -> Vec<u64> {
        let until = self.now + time;
        let before = self.begun.clone();
        while self.now < until {
            for client in 0..self.clients.len() {
                let mut left = 1_000_000;
                while !self.is_quiet && self.clients[client].0 > 0 && left > 0 {
                    self.send(client);
                    left -= 1;
                }
            }
            while let Some(request) = self.pace.take_ready(self.now) {
                let client = self.owners.remove(&request).expect("it waits");
                self.begun[client] += 1;
                self.clients[client].0 += 1;
            }
            self.now = self.now + MS / 10;
        }
        self.begun.iter().zip(&before).map(|(after, before)| after - before).collect()
    }

    fn send(&mut self, client: usize) {
        let cost = Cost::of(self.clients[client].1);
        self.next += 1;
        match self.pace.admit(self.now, host(client as u128), self.next, cost) {
            Admission::Begin => self.begun[client] += 1,
            Admission::Wait => {
                self.owners.insert(self.next, client);
                self.clients[client].0 -= 1;
            }
        }
    }
}

/// Whether a number is within so many thousandths of another.
fn is_near(found: u64, wanted: u64, thousandths: u64) -> bool {
    found.abs_diff(wanted) * 1000 <= wanted * thousandths
}

#[test]
fn a_limit_holds_over_ten_seconds_from_the_first_on_and_later_for_small_and_large_requests() {
    for depth in [1, 4, 32] {
        for (len, wanted) in
            [(512, 10_000), (4 << 10, 10_000), (32 << 10, 10_000), (64 << 10, 5_000), (33 << 10, 5_000)]
        {
            let mut bench = Bench::new(iops(1000), &[(depth, len)]);
            let first = bench.run(Duration::from_secs(10))[0];
            assert!(is_near(first, wanted, 10), "depth {depth}, {len} bytes: {first}");
            let later = bench.run(Duration::from_secs(10))[0];
            assert!(is_near(later, wanted, 10), "depth {depth}, {len} bytes, later: {later}");
        }
    }
}

#[test]
fn a_second_of_what_is_allowed_begins_at_once_and_counts_for_that_second() {
    let mut bench = Bench::new(iops(1000), &[(32, 4 << 10)]);
    let first = bench.run(MS)[0];
    assert!((1000..=1100).contains(&first), "{first}");
    assert_eq!(bench.run(MS * 900)[0], 0, "the second is used up");
    let next = bench.run(Duration::from_secs(1))[0];
    assert!(is_near(next, 900, 30), "then at the rate of the limit: {next}");
    bench.is_quiet = true;
    bench.run(Duration::from_secs(3));
    bench.is_quiet = false;
    let again = bench.run(MS)[0];
    assert!((1000..=1100).contains(&again), "an idle disk may burst again: {again}");
}

#[test]
fn bandwidth_is_limited_beside_requests_and_the_tighter_limit_decides() {
    let limits = |iops, bytes| Limits { iops: Some(iops), bytes: Some(bytes) };
    let per_second = |limits, len| {
        let mut bench = Bench::new(limits, &[(32, len)]);
        bench.run(Duration::from_secs(2));
        bench.run(Duration::from_secs(10))[0] / 10
    };
    assert!(is_near(per_second(limits(1000, 64 << 20), 4 << 10), 1000, 10));
    assert!(is_near(per_second(limits(1000, 1 << 20), 4 << 10), 256, 10));
    assert!(is_near(per_second(Limits { iops: None, bytes: Some(64 << 20) }, 1 << 20), 64, 20));
    // A request that is larger than all of a second still begins, and is paid for.
    assert!(
        is_near(per_second(limits(10, 1 << 20), 4 << 20), 0, 0)
            || per_second(limits(10, 1 << 20), 4 << 20) == 0
    );
    let mut bench = Bench::new(limits(100, 1 << 20), &[(2, 4 << 20)]);
    let begun = bench.run(Duration::from_secs(40))[0];
    assert!((9..=12).contains(&begun), "{begun}");
}

#[test]
fn hosts_share_a_limit_evenly_whatever_each_of_them_asks() {
    let mut bench = Bench::new(iops(1000), &[(128, 4 << 10), (4, 4 << 10), (4, 4 << 10)]);
    bench.run(Duration::from_secs(2));
    let begun = bench.run(Duration::from_secs(9));
    assert!(begun.iter().all(|one| is_near(*one, 3000, 20)), "{begun:?}");
}

#[test]
fn a_limit_changes_at_once_in_both_directions_and_goes() {
    let mut bench = Bench::new(iops(1000), &[(32, 4 << 10)]);
    bench.run(Duration::from_secs(3));
    bench.pace.set(iops(200));
    let slower = bench.run(Duration::from_secs(5))[0];
    assert!(is_near(slower, 1000, 20), "{slower}");
    bench.pace.set(iops(4000));
    let quicker = bench.run(Duration::from_secs(5))[0];
    assert!(is_near(quicker, 20_000, 20), "{quicker}");
    bench.pace.set(Limits::default());
    assert!(bench.pace.take_ready(bench.now).is_some(), "what waits begins");
    assert_eq!(bench.pace.figures(bench.now + LIMITED_FOR * 2).waiting, 31);
}

#[test]
fn a_node_that_was_late_catches_up_and_an_idle_client_does_not_gain() {
    let mut bench = Bench::new(iops(1000), &[(32, 4 << 10)]);
    bench.run(Duration::from_secs(2));
    bench.now = bench.now + MS * 500;
    let after = bench.run(Duration::from_secs(2))[0];
    assert!(is_near(after, 2500, 20), "half a second stood still: {after}");
}

#[test]
fn a_client_that_comes_back_after_a_while_gets_no_more_than_one_that_stayed() {
    for pause in [20, 100, 400, 900, 1500, 5000] {
        let mut bench = Bench::new(iops(1000), &[(32, 4 << 10)]);
        bench.run(Duration::from_secs(3));
        bench.is_quiet = true;
        bench.run(MS * pause);
        bench.is_quiet = false;
        let again = bench.run(Duration::from_secs(10))[0];
        assert!(is_near(again, 10_000, 12), "{pause} ms: {again}");
    }
}

#[test]
fn what_waits_is_told_and_what_is_taken_out_waits_no_more() {
    let mut bench = Bench::new(iops(100), &[(10, 4 << 10)]);
    bench.run(Duration::from_secs(20));
    let figures = bench.pace.figures(bench.now);
    assert_eq!((figures.waiting, figures.is_limited), (10, true));
    assert!(is_near(figures.waited, 2000, 60), "{figures:?}");
    let wait = figures.wait_p99.expect("requests waited");
    assert!((95..=130).contains(&wait.as_millis()), "ten requests at 100 a second wait for 0.1 s: {wait:?}");
    let waiting: Vec<u32> = bench.owners.keys().copied().collect();
    for request in waiting {
        assert!(bench.pace.remove(bench.now, request));
        assert!(!bench.pace.remove(bench.now, request));
    }
    assert_eq!(bench.pace.wake_at(), None);
    let later = bench.pace.figures(bench.now + LIMIT_FIGURES_PERIOD * 2);
    assert_eq!((later.waiting, later.wait_p99, later.is_limited), (0, None, false));
}

#[test]
fn congestion_delays_little_at_first_and_smoothly_more() {
    assert_eq!(congestion_delay(0), Duration::ZERO);
    assert!(congestion_delay(32) < Duration::from_millis(1));
    assert_eq!(congestion_delay(255), CONGESTION_DELAY_MAX);
    assert!((1..255).all(|c| congestion_delay(c) < congestion_delay(c + 1)));
}
