//! Reads of a place with slow and quick copies, one after the other.

use super::*;

/// A place with three copies, the first on the owner's host, that is read one read after the other. Times are in microseconds.
struct Bench {
    steering: Steering,
    now: Instant,
    copies: [Readable; 3],
    takes: [u64; 3],
    /// Reads by copy since they were counted last.
    reads: [u64; 3],
}

impl Bench {
    fn new(takes: [u64; 3]) -> Bench {
        let copy = |index| Readable { index, is_own: index == 0, read_ns: 0, recent: Recent::default() };
        let copies = [0, 1, 2].map(copy);
        Bench { steering: Steering::default(), now: Instant(1 << 40), copies, takes, reads: [0; 3] }
    }

    fn read(&mut self) {
        let part = self.reads.iter().sum::<u64>() as u32;
        let chosen = self.steering.choose(self.now, &self.copies, part).expect("three are there");
        let copy = &mut self.copies[usize::from(chosen)];
        let took = self.takes[usize::from(chosen)] * 1000;
        self.now = self.now + Duration::from_nanos(took);
        copy.recent.note(self.now, took);
        copy.read_ns = if copy.read_ns == 0 { took } else { (copy.read_ns * 7 + took) / 8 };
        self.reads[usize::from(chosen)] += 1;
    }

    /// Reads for so long, and gives the share of the reads that went to the copy on the owner's host, in percent.
    fn read_for(&mut self, period: Duration) -> u64 {
        let until = self.now + period;
        self.reads = [0; 3];
        while self.now < until {
            self.read();
        }
        self.reads[0] * 100 / self.reads.iter().sum::<u64>()
    }

    /// Reads until the copy on the owner's host is passed over, or is not; says how long that took.
    fn read_until(&mut self, is_away: bool) -> Duration {
        let since = self.now;
        while self.steering.is_away() != is_away {
            self.read();
            assert!(self.now.since(since) < Duration::from_secs(100), "it never happens");
        }
        self.now.since(since)
    }
}

#[test]
fn a_disk_is_read_from_the_copy_on_its_owners_host() {
    assert_eq!(Bench::new([100, 150, 150]).read_for(Duration::from_secs(10)), 100);
}

#[test]
fn a_copy_on_the_owners_host_that_is_no_slower_than_the_network_stays_in_use() {
    // A device that takes 0.8 ms, and others that take 0.5 ms with the network: less than twice as long.
    let share = Bench::new([800, 500, 500]).read_for(Duration::from_secs(10));
    assert!((95..100).contains(&share), "others are only measured: {share} %");
    assert_eq!(Bench::new([400, 100, 100]).read_for(Duration::from_secs(10)), 100, "too little to care");
}

#[test]
fn a_slow_copy_on_the_owners_host_is_passed_over_within_two_seconds_and_used_again_when_it_is_well() {
    for slow in [2_000, 20_000, 300_000] {
        let mut bench = Bench::new([100, 200, 200]);
        bench.read_for(Duration::from_secs(1));
        bench.takes[0] = slow;
        let took = bench.read_until(true);
        assert!(took < Duration::from_secs(2), "{slow}: {took:?}");
        let share = bench.read_for(Duration::from_secs(5));
        assert!(share <= 3, "{slow}: it is only measured: {share} %");
        assert!(bench.reads[1] > 10 && bench.reads[2] > 10, "both others do their share: {:?}", bench.reads);
        bench.takes[0] = 100;
        let took = bench.read_until(false);
        assert!(took < Duration::from_secs(3), "{slow}: {took:?}");
        assert_eq!(bench.read_for(Duration::from_secs(5)), 100);
    }
}

#[test]
fn a_copy_stays_in_use_while_all_are_equally_slow() {
    let share = Bench::new([5_000, 5_200, 5_200]).read_for(Duration::from_secs(60));
    assert!(share > 85, "{share}");
}

#[test]
fn reads_do_not_go_back_and_forth() {
    // A copy that is slow whenever it is used, and quick whenever it is only measured.
    let mut bench = Bench::new([100, 200, 200]);
    let (mut turns, mut was_away) = (0, false);
    let until = bench.now + Duration::from_secs(120);
    while bench.now < until {
        bench.takes[0] = if bench.steering.is_away() { 100 } else { 5_000 };
        bench.read();
        turns += u32::from(was_away != bench.steering.is_away());
        was_away = bench.steering.is_away();
    }
    assert!((4..=20).contains(&turns), "{turns} turns in two minutes");
}

#[test]
fn without_a_copy_here_or_elsewhere_reads_are_spread() {
    let chosen = |is_own: bool| -> Vec<u8> {
        let copy = |index| Readable { index, is_own, read_ns: 0, recent: Recent::default() };
        let copies = [0, 1, 2].map(copy);
        let mut steering = Steering::default();
        (0..6).filter_map(|part| steering.choose(Instant(1 << 40), &copies, part)).collect()
    };
    assert_eq!(chosen(false), [0, 1, 2, 0, 1, 2]);
    assert_eq!(chosen(true), [0, 1, 2, 0, 1, 2]);
    assert_eq!(Steering::default().choose(Instant(0), &[], 7), None);
}
