//! Zeroes that a guest writes: they take no space, and what stood there is gone.

use super::*;
use base::checksum::{CRC32C_OF_ZERO_BLOCK, crc32c};
use base::rules::Rules;
use replication::Rule;

/// The runs of a disk from its start on.
fn allocated(bench: &mut Bench, disk: DiskKey, len: u64) -> Vec<(u64, bool)> {
    let Ok(Reply::Status(runs)) = bench.ask(disk, Request::Status { of: StatusOf::Disk, offset: 0, len })
    else {
        panic!("a status is told")
    };
    runs.iter().map(|run| (run.len, run.is_set)).collect()
}

fn zero_bytes_trimmed(bench: &Bench) -> u64 {
    bench.node.ownership(DiskId(1)).expect("it is open").zero_bytes_trimmed
}

fn write(bench: &mut Bench, disk: DiskKey, offset: u64, bytes: &[u8]) -> Outcome {
    let request = bench.write_request(offset, bytes);
    bench.ask(disk, request)
}

#[test]
fn zeroes_that_are_written_take_no_space_and_give_back_what_stood_there() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    let len = 4 * MIB;
    assert!(write(&mut bench, disk, 0, &vec![0; 2 << 20]).is_ok());
    assert_eq!(allocated(&mut bench, disk, len), [(len, false)], "nothing was there, and nothing came");
    assert!(write(&mut bench, disk, 0, &vec![7; 3 << 20]).is_ok());
    assert!(write(&mut bench, disk, MIB, &vec![0; 1 << 20]).is_ok());
    assert_eq!(allocated(&mut bench, disk, len), [(MIB, true), (MIB, false), (MIB, true), (MIB, false)]);
    let bytes = bench.read(disk, 0, 3 << 20);
    assert!(bytes[..1 << 20].iter().chain(&bytes[2 << 20..]).all(|byte| *byte == 7));
    assert!(bytes[1 << 20..2 << 20].iter().all(|byte| *byte == 0));
    assert_eq!(zero_bytes_trimmed(&bench), 3 * MIB);
    // To the guest these were writes.
    let statistics = bench.node.statistics(disk);
    assert_eq!((statistics.counters.bytes[1], statistics.counters.trims), (6 * MIB, 0));
}

/// A block that becomes zero once it is joined with what stood there is trimmed, one that does not is written.
#[test]
fn blocks_that_a_write_covers_in_part_are_trimmed_if_all_of_them_is_zero_then() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    let mut block = [0; 4096];
    block[1024..1536].fill(5);
    assert!(write(&mut bench, disk, 0, &block).is_ok());
    assert!(write(&mut bench, disk, 512, &[0; 512]).is_ok());
    assert_eq!(allocated(&mut bench, disk, 8192), [(4096, true), (4096, false)], "data is left in it");
    assert!(write(&mut bench, disk, 1024, &[0; 512]).is_ok());
    assert_eq!(allocated(&mut bench, disk, 8192), [(8192, false)]);
    assert_eq!(bench.read(disk, 0, 4096), [0; 4096]);
    // With whole blocks between two in part.
    assert!(write(&mut bench, disk, 0, &[9; 4096 * 4]).is_ok());
    assert!(write(&mut bench, disk, 512, &[0; 4096 * 3]).is_ok());
    let expected = [(4096, true), (8192, false), (4096, true)];
    assert_eq!(allocated(&mut bench, disk, 4096 * 4), expected);
    let bytes = bench.read(disk, 0, 4096 * 4);
    let is_zero = |index: usize| (512..512 + 4096 * 3).contains(&index);
    assert!(bytes.iter().enumerate().all(|(index, byte)| *byte == if is_zero(index) { 0 } else { 9 }));
}

#[test]
fn zeroes_whose_space_the_guest_keeps_are_data() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    let keep = |offset, len| Request::WriteZeroes { offset, len, allocate: true };
    assert!(bench.ask(disk, keep(0, MIB)).is_ok());
    assert!(bench.ask(disk, keep(MIB + 512, 8192)).is_ok(), "edges are data, too");
    assert_eq!(allocated(&mut bench, disk, 2 * MIB), [(MIB + 12288, true), (MIB - 12288, false)]);
    assert_eq!(zero_bytes_trimmed(&bench), 0);
}

/// Space that zeroes give back stays that of a disk with a reservation.
#[test]
fn a_reserved_disk_keeps_its_reservation_when_zeroes_are_written() {
    let mut bench = Bench::new(16);
    let spec = Bench::spec(4 * MIB, 1);
    let disk = bench.create(spec.clone());
    let (_, component) = spec.layout.components().next().expect("it has one");
    let reserved = wire::NewComponent { reservation: 4 * MIB, ..described(&spec, 0, component) };
    let update = wire::Request::Update(reserved);
    assert!(is_done(&bench.of_component(update)));
    assert!(write(&mut bench, disk, 0, &vec![7; 4 << 20]).is_ok());
    assert!(write(&mut bench, disk, 0, &vec![0; 4 << 20]).is_ok());
    assert_eq!(allocated(&mut bench, disk, 4 * MIB), [(4 * MIB, false)]);
    let mut other = Bench::spec(64 * MIB, 1);
    other.id = DiskId(2);
    other.layout =
        Layout::Component(Component { id: ComponentId(9), device: DeviceId(1), size: 64 * MIB, position: 0 });
    let other = bench.create(other);
    let mut written = 0;
    while write(&mut bench, other, written, &[1; 4096]).is_ok() {
        written += MIB;
    }
    assert!(written >= 6 * MIB, "{written} bytes of another disk fill the device");
    assert!(write(&mut bench, disk, 0, &vec![8; 4 << 20]).is_ok(), "its own space is still there");
}

/// A block with data whose checksum is that of zeroes was lost where the checksum alone decides.
#[test]
fn a_block_with_the_checksum_of_zeroes_is_kept() {
    let mut block = [3; 4096];
    let forced = crc32c(&block[..4092]) ^ crc32c(&[0; 4092]);
    block[4092..].copy_from_slice(&forced.to_le_bytes());
    assert_eq!(crc32c(&block), CRC32C_OF_ZERO_BLOCK);
    let found = |removed: Option<Rule>| {
        let mut bench = Bench::new(16);
        bench.node.fabric.settings.rules = removed.into();
        let disk = bench.create(Bench::spec(4 * MIB, 1));
        assert!(write(&mut bench, disk, 0, &block).is_ok());
        bench.read(disk, 0, 4096) == block
    };
    assert!(found(None));
    // Only builds for the simulator can remove a rule.
    let is_removed = !Rules::without(Rule::CompareZeroes).hold(Rule::CompareZeroes);
    assert_eq!(found(Some(Rule::CompareZeroes)), !is_removed, "the rule is needed");
}

/// The limit of a disk counts what a guest writes, whatever becomes of it.
#[test]
fn zeroes_count_for_the_limit_of_a_disk() {
    let mut bench = Bench::new(16);
    bench.now = 10_000_000_000;
    let limits = Limits { iops: None, bytes: Some(MIB) };
    let disk = bench.create(DiskSpec { limits, ..Bench::spec(64 * MIB, 1) });
    for number in 0..8 {
        let request = bench.write_request(number * MIB, &vec![0; 1 << 20]);
        let (token, mut out) = (bench.token(), Vec::new());
        bench.node.request(Instant(bench.now), token, disk, request, &mut out);
        bench.run_outputs(out);
    }
    let waiting = bench.node.disk_activity(disk).limits.waiting;
    assert!((5..8).contains(&waiting), "{waiting} wait");
}
