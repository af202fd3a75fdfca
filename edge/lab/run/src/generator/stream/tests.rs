//! What a stream does next, for every kind of pattern and pace.

use super::*;
use plan::{Arrivals, Loop, Pace, Rate, RateOf, RatePer, Timing};

const ALONE: Sharing = Sharing { of_worker: 1, of_group: 1, index: 0, reached: 0.0 };

fn stream(depth: u32, change: impl FnOnce(&mut Group)) -> Stream {
    let mut group = Group::new("g", 0, depth, Pattern::simple(4096, 100.0, 100.0), Timing::seconds(1));
    change(&mut group);
    let of = StreamPlan {
        group: 0,
        worker: WorkerNumber { in_group: 0, on_target: 0 },
        targets: group.targets.clone(),
        depth,
        sharing: ALONE,
    };
    let shared: Vec<Arc<AtomicU64>> = (0..3).map(|_| Arc::default()).collect();
    Stream::new(&group, &of, &[1 << 20; 3], &shared, 0, Random::new(9)).expect("there is room")
}

fn begun(next: Next) -> Io {
    match next {
        Next::Begin(io) => io,
        other => panic!("not an I/O: {other:?}"),
    }
}

#[test]
fn a_stream_keeps_its_depth_outstanding_and_no_more() {
    let mut stream = stream(3, |_| ());
    for _ in 0..3 {
        begun(stream.next(0));
    }
    assert_eq!(stream.next(0), Next::Full);
    stream.ended();
    begun(stream.next(5));
    assert_eq!(stream.next(5), Next::Full);
}

#[test]
fn the_mix_of_reads_writes_trims_and_sizes_is_what_was_asked_for() {
    let mut stream = stream(1, |group| {
        group.pattern.lines = vec![Line::new(3.0, Size::Fixed(512), 70.0, 100.0), {
            let mut line = Line::new(1.0, Size::Range { min: 4096, max: 16384, step: 4096 }, 0.0, 100.0);
            line.trims = 10.0;
            line
        }];
    });
    let mut counts = [0f64; 3];
    let mut small = 0f64;
    for _ in 0..40_000 {
        let io = begun(stream.next(0));
        counts[io.operation as usize] += 1.0 / 40_000.0;
        small += f64::from(u8::from(io.size == 512)) / 40_000.0;
        assert!(io.size == 512 || io.size.is_multiple_of(4096) && io.size <= 16384);
        assert!(io.offset + io.size <= 1 << 20);
        stream.ended();
    }
    for (found, expected) in [(counts[0], 0.525), (counts[1], 0.45), (counts[2], 0.025), (small, 0.75)] {
        assert!((found - expected).abs() < 0.01, "{found} of {expected}");
    }
}

#[test]
fn an_amount_ends_a_stream_once_its_last_io_has_ended() {
    let mut stream = stream(2, |group| {
        group.timing.length = plan::Length::Amount(Amount::Bytes(3 * 4096));
    });
    begun(stream.next(0));
    begun(stream.next(0));
    stream.ended();
    begun(stream.next(0));
    stream.ended();
    assert_eq!(stream.next(0), Next::Full);
    stream.ended();
    assert_eq!(stream.next(0), Next::Finished);
}

#[test]
fn an_open_loop_keeps_the_intended_times_of_what_had_to_wait() {
    let mut stream = stream(1, |group| {
        group.rates = vec![Rate {
            pace: Pace::Iops(1e6),
            per: RatePer::Worker,
            of: RateOf::All,
            arrivals: Arrivals::Even,
            clock: Loop::Open,
        }];
    });
    assert_eq!(begun(stream.next(0)).intended, Some(0));
    assert_eq!(stream.next(5_000), Next::Full);
    assert_eq!(stream.backlog(5_500).floor(), 4.0);
    stream.ended();
    for expected in [1_000, 2_000, 3_000] {
        assert_eq!(begun(stream.next(5_500)).intended, Some(expected));
        stream.ended();
    }
    begun(stream.next(5_500));
    stream.ended();
    begun(stream.next(5_500));
    stream.ended();
    assert_eq!(stream.next(5_500), Next::Wait(6_000));
}

#[test]
fn a_closed_rate_counts_from_the_beginning_and_catches_up() {
    let mut stream = stream(1, |group| {
        group.rates = vec![Rate {
            pace: Pace::Iops(1e6),
            per: RatePer::Worker,
            of: RateOf::All,
            arrivals: Arrivals::Even,
            clock: Loop::Closed,
        }];
    });
    assert_eq!(begun(stream.next(0)).intended, None);
    stream.ended();
    assert_eq!(stream.next(0), Next::Wait(1_000));
    begun(stream.next(3_000));
    stream.ended();
    begun(stream.next(3_000));
}

#[test]
fn bursts_are_followed_by_pauses_and_writes_by_flushes() {
    let mut stream = stream(4, |group| {
        group.pattern.lines[0].reads = 0.0;
        group.pattern.lines[0].think = Some(Think {
            after: 2,
            pause: Duration::from_micros(10),
            spin: false,
            start: PauseStart::Issued,
        });
        group.caching.flush = Some(FlushRule { every: 3, data_only: true, at_end: false });
    });
    begun(stream.next(0));
    begun(stream.next(0));
    assert_eq!(stream.next(0), Next::Wait(10_000));
    begun(stream.next(10_000));
    assert_eq!(stream.next(10_000), Next::Full, "a flush waits for the writes");
    (0..3).for_each(|_| stream.ended());
    assert_eq!(stream.next(10_000), Next::Flush(0));
    assert_eq!(stream.next(10_000), Next::Full);
    stream.ended();
    begun(stream.next(10_000));
}

/// fio waits for all I/Os in flight before it pauses, and counts those that were issued or those that have completed.
#[test]
fn a_pause_of_fio_begins_when_the_queue_has_drained() {
    let paused = |start: PauseStart| {
        stream(4, |group| {
            let pause = Duration::from_micros(10);
            group.pattern.lines[0].think = Some(Think { after: 2, pause, spin: false, start });
        })
    };
    let mut stream = paused(PauseStart::Drained);
    begun(stream.next(0));
    begun(stream.next(0));
    assert_eq!(stream.next(0), Next::Full, "two were issued, and both must complete");
    stream.ended();
    assert_eq!(stream.next(3_000), Next::Full);
    stream.ended();
    assert_eq!(stream.next(5_000), Next::Wait(15_000));
    begun(stream.next(15_000));

    let mut stream = paused(PauseStart::Completed);
    (0..4).for_each(|_| assert!(matches!(stream.next(0), Next::Begin(_))));
    stream.ended();
    begun(stream.next(1_000));
    stream.ended();
    assert_eq!(stream.next(2_000), Next::Full, "two have completed: the other three must complete too");
    (0..3).for_each(|_| stream.ended());
    assert_eq!(stream.next(6_000), Next::Wait(16_000));
    begun(stream.next(16_000));
    begun(stream.next(16_000));
}

#[test]
fn several_targets_take_turns() {
    let mut stream = stream(4, |group| group.targets = vec![0, 1, 2]);
    let targets: Vec<usize> = (0..4).map(|_| begun(stream.next(0)).target).collect();
    assert_eq!(targets, [0, 1, 2, 0]);
}

#[test]
fn the_end_is_flushed_once_on_every_target_after_all_else() {
    let mut stream = stream(2, |group| {
        group.targets = vec![0, 2];
        group.caching.flush = Some(FlushRule { every: 0, data_only: false, at_end: true });
    });
    begun(stream.next(0));
    begun(stream.next(0));
    stream.stop();
    assert_eq!(stream.next(1), Next::Full);
    stream.ended();
    assert_eq!(stream.next(1), Next::Full);
    stream.ended();
    let mut flushed = Vec::new();
    for _ in 0..2 {
        match stream.next(2) {
            Next::Flush(target) => flushed.push(target),
            other => panic!("no flush: {other:?}"),
        }
        assert_eq!(stream.next(2), Next::Full);
        stream.ended();
    }
    flushed.sort_unstable();
    assert_eq!((flushed, stream.next(3)), (vec![0, 2], Next::Finished));
}

#[test]
fn writes_are_read_back_after_so_many_of_them() {
    let mut stream = stream(1, |group| {
        group.pattern = Pattern::simple(4096, 0.0, 100.0);
        group.verify = Some(Verify { when: VerifyWhen::Backlog(3), interval: None, fatal: false });
    });
    for _ in 0..5 {
        let mut one = |expected| {
            let io = begun(stream.next(0));
            stream.ended();
            assert_eq!(io.operation, expected);
            io.offset
        };
        let written: Vec<u64> = (0..3).map(|_| one(Operation::Write)).collect();
        let read: Vec<u64> = (0..3).map(|_| one(Operation::Read)).collect();
        assert_eq!(written, read);
    }
}
