//! What messages cost: nanoseconds and allocations for each that is encoded, gathered and decoded.
//!
//! `cargo run --release -p wire --example cost`. Frames are copied once from the sender's buffers to the decoder, as a
//! socket would; that copy is measured alone and subtracted. The CRC-32Cs of blocks are the message's own and not counted,
//! but for guests' data, whose checksums are the frame's.

use base::request::{Buffers, Piece, Reply, Request as GuestRequest};
use base::{ComponentId, DiskId, Pool, WriteId};
use smallvec::smallvec;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use wire::{Answer, Body, Decoder, EntryKind, Message, Outgoing, Request, Step, Version};

/// Counts what is taken from the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn buffers(pool: &Pool, len: usize) -> Buffers {
    let mut rest = len;
    let mut buffers = Buffers::new();
    while rest > 0 {
        let mut buffer = pool.take(rest.min(1 << 20)).expect("the pool has room");
        buffer.bytes_mut().fill(7);
        rest -= buffer.len();
        buffers.push(buffer);
    }
    buffers
}

fn write(pool: &Pool, blocks: usize) -> Request {
    Request::Write {
        marks: 0,
        component: ComponentId(1),
        epoch: 1,
        id: WriteId { epoch: 1, sequence: 1 },
        watermark: WriteId::default(),
        kind: EntryKind::Guest(base::RequestTag(7)),
        part: 0,
        block: 0,
        data: buffers(pool, blocks * 4096),
        checksums: std::iter::repeat_n(7, blocks).collect(),
    }
}

fn data(pool: &Pool, blocks: usize) -> Answer {
    let pieces = buffers(pool, blocks * 4096).into_iter().map(Piece::Bytes).collect();
    Answer::Data { pieces, checksums: std::iter::repeat_n(7, blocks).collect() }
}

/// The best of five rounds: nanoseconds of one turn of `turn`.
fn measure(turns: u32, mut turn: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            (0..turns).for_each(|_| turn());
            start.elapsed().as_nanos() as f64 / f64::from(turns)
        })
        .fold(f64::INFINITY, f64::min)
}

fn check<T: Body>(name: &str, body: T, batch: usize) {
    let message = Message { session: 1, sequence: 1, stamp: 1, token: 1, body };
    let pool = Pool::new(64 << 20);
    let mut outgoing = Outgoing::new(Version::LATEST);
    let mut decoder = Decoder::<T>::new(Version::LATEST, pool);
    let push = |outgoing: &mut Outgoing| {
        (0..batch).for_each(|_| outgoing.push(&message).expect("all before it is sent"))
    };
    push(&mut outgoing);
    let bytes: Vec<u8> = outgoing.send().flatten().copied().collect();
    outgoing.sent(bytes.len());
    let turns = (20_000_000 / bytes.len() as u32).clamp(20, 100_000);
    let mut count = 0;
    let mut receive = |decoder: &mut Decoder<T>| {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = &rest[decoder.take(rest)..];
            while let Ok(Step::Message(message)) = decoder.step() {
                std::hint::black_box(&message);
                count += 1;
            }
        }
    };
    receive(&mut decoder);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let encode = measure(turns, || {
        push(&mut outgoing);
        let sent = outgoing.send().map(<[u8]>::len).sum();
        outgoing.sent(sent);
    });
    let encoded = ALLOCATIONS.load(Ordering::Relaxed);
    let decode = measure(turns, || receive(&mut decoder));
    let decoded = ALLOCATIONS.load(Ordering::Relaxed);
    let mut space = vec![0; 64 << 10];
    let copy = measure(turns, || {
        for part in bytes.chunks(space.len()) {
            space[..part.len()].copy_from_slice(part);
            std::hint::black_box(&space);
        }
    });
    assert!(count >= 5 * turns as usize * batch, "every message came");
    let per = |ns: f64| ns / batch as f64;
    let allocations = |from: u64, to: u64| (to - from) as f64 / (5.0 * f64::from(turns) * batch as f64);
    println!(
        "{name:<24} {:>8} {:>9.0} {:>9.0} {:>9.0} {:>8.2} {:>8.2}",
        bytes.len() / batch,
        per(encode),
        per(decode - copy),
        per(copy),
        allocations(before, encoded),
        allocations(encoded, decoded),
    );
}

fn main() {
    let pool = Pool::new(64 << 20);
    let guest = |request| Request::Guest { disk: DiskId(1), tag: base::RequestTag(7), request };
    let read =
        Request::Read { component: ComponentId(1), epoch: 1, part: 0, block: 0, count: 1, verify: true };
    println!(
        "{:<24} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8}",
        "message", "bytes", "send ns", "take ns", "(copy)", "allocs", "allocs"
    );
    for batch in [1, 12] {
        println!("{batch} at once");
        check("heartbeat", Request::Heartbeat, batch);
        check("done", Answer::Done { congestion: 0 }, batch);
        check("read", read.clone(), batch);
        check("write 4 KiB", write(&pool, 1), batch);
        check("data 4 KiB", data(&pool, 1), batch);
        check(
            "data of a hole",
            Answer::Data { pieces: smallvec![Piece::Hole(4096)], checksums: smallvec![] },
            batch,
        );
        check(
            "guest write 4 KiB",
            guest(GuestRequest::Write { offset: 0, data: buffers(&pool, 4096) }),
            batch,
        );
        let pieces = buffers(&pool, 4096).into_iter().map(Piece::Bytes).collect();
        check("guest data 4 KiB", Answer::Guest(Ok(Reply::Data(pieces))), batch);
    }
    println!("1 at once");
    check("write 64 KiB", write(&pool, 16), 1);
    check("write 1 MiB", write(&pool, 256), 1);
    check("guest write 1 MiB", guest(GuestRequest::Write { offset: 0, data: buffers(&pool, 1 << 20) }), 1);
}
