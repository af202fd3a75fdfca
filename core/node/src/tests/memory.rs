//! Reads hold memory until all of what they read is there: only so many begin that all of them end.

use super::*;

/// A disk of 48 MiB, of which each is filled with its number.
fn filled(bench: &mut Bench, spec: &DiskSpec) -> DiskKey {
    let disk = bench.create(spec.clone());
    for part in 0..48u8 {
        let request = bench.write_request(u64::from(part) * MIB, &vec![part + 1; MIB as usize]);
        assert!(matches!(bench.ask(disk, request), Ok(Reply::Done)));
    }
    disk
}

/// A read of each MiB begins.
fn read_all(bench: &mut Bench, disk: DiskKey, out: &mut Vec<Output>) -> Vec<Token> {
    let tokens: Vec<Token> = (0..48).map(|_| bench.token()).collect();
    for (part, token) in (0..).zip(&tokens) {
        let request = Request::Read { offset: part * MIB, len: MIB as u32 };
        bench.node.request(Instant(bench.now), *token, disk, request, out);
    }
    tokens
}

#[test]
fn reads_that_would_hold_more_than_half_of_the_buffers_wait_for_others_in_their_order() {
    let mut bench = Bench::new(64);
    let disk = filled(&mut bench, &Bench::spec(48 * MIB, 1));
    let half = bench.pool.bytes_max() as u64 / 2;
    let mut out = Vec::new();
    let tokens = read_all(&mut bench, disk, &mut out);
    assert_eq!((bench.node.reads.used(), bench.node.reads_waiting.len()), (half, 48 - (half / MIB) as usize));
    // One that would fit waits behind those that came before it.
    let (small, read) = (bench.token(), Request::Read { offset: 0, len: 4096 });
    bench.node.request(Instant(bench.now), small, disk, read, &mut out);
    assert_eq!(bench.node.reads.used(), half);
    bench.settle(out);
    for (part, token) in (1u8..).zip(&tokens) {
        let Some(Ok(Reply::Data(pieces))) = bench.replies.get(&token.0) else {
            panic!("part {part} was not read")
        };
        let is_right =
            |piece: &Piece| matches!(piece, Piece::Bytes(bytes) if bytes.iter().all(|byte| *byte == part));
        assert!(pieces.iter().all(is_right));
    }
    assert_eq!((bench.replies.len(), bench.node.reads.used()), (49, 0));
    bench.replies.clear();
    let large = Request::Read { offset: 0, len: (half + MIB) as u32 };
    assert!(bench.ask(disk, large).is_ok(), "what is larger than all of it goes alone");
}

#[test]
fn reads_that_wait_for_memory_end_with_their_disk_and_once_their_guest_is_gone_read_nothing() {
    let mut bench = Bench::new(64);
    let spec = Bench::spec(48 * MIB, 1);
    let disk = filled(&mut bench, &spec);
    let mut out = Vec::new();
    let tokens = read_all(&mut bench, disk, &mut out);
    bench.node.abandon(Instant(bench.now), tokens[47], &mut out);
    bench.settle(out);
    assert!(bench.replies[&tokens[46].0].is_ok());
    assert!(matches!(bench.replies[&tokens[47].0], Err(RequestError::Stopping)));
    bench.replies.clear(); // They hold what was read.
    let mut out = Vec::new();
    let tokens = read_all(&mut bench, disk, &mut out);
    bench.run_outputs(out);
    bench.delete(&spec);
    assert!(tokens.iter().all(|token| bench.replies.contains_key(&token.0)), "all are answered");
    assert_eq!(bench.node.reads.used(), 0);
}
