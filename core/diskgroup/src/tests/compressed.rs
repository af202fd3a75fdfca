//! Compression of what is destaged (docs/design/0049).

use super::mapped::Stage;
use crate::format::page::Compression;
use crate::{Completion, GroupError, Input, Op};
use base::units::EXTENT_SIZE;

/// Compressible values take few units with either algorithm: all bytes of a block are equal.
const BOTH: [Compression; 2] = [Compression::Lz4, Compression::Zstd];

fn used_bytes(stage: &Stage) -> u64 {
    stage.bench.group.state().members[1].used_bytes
}

#[test]
fn a_group_that_is_not_converted_compresses_nothing_and_says_so() {
    let mut bench = super::Bench::new();
    let component = bench.create();
    bench.ask(Input::Compress { op: Op(5), component, compression: Compression::Lz4 });
    assert_eq!(bench.done[&5].clone().map(drop), Err(GroupError::NotConverted));
    bench.ask(Input::Compress { op: Op(6), component, compression: Compression::Off });
    assert!(matches!(bench.done[&6], Ok(Completion::Component(_))));
}

#[test]
fn blocks_take_less_space_once_they_are_destaged_and_read_as_they_were() {
    for compression in BOTH {
        let mut stage = Stage::new();
        stage.compress(compression);
        for part in 0..8 {
            for block in (0..256).step_by(64) {
                stage.write_part(part, block, 64, 1 + part as u8);
            }
        }
        stage.drain();
        let counters = stage.bench.group.state().counters;
        assert_eq!((counters.compressed_bytes, counters.direct_bytes), (8 * EXTENT_SIZE, 0));
        assert_eq!(counters.packed_bytes, EXTENT_SIZE, "one unit of eight for each block");
        assert!(used_bytes(&stage) <= 3 * EXTENT_SIZE, "one of frames, one of pages: {}", used_bytes(&stage));
        for turn in 0..2 {
            for part in 0..8 {
                assert_eq!(stage.read_part(part, 0, 256, 0), Ok(vec![1 + part as u8; 256]), "{turn}");
                assert_eq!(stage.read_part(part, 77, 1, 0), Ok(vec![1 + part as u8]));
            }
            stage.scrub();
            stage = stage.restart();
        }
        assert_eq!(stage.damaged(), []);
        assert_eq!(
            stage.bench.group.component_state(stage.component).expect("it is there").record.compression,
            compression
        );
    }
}

#[test]
fn a_part_in_an_extent_of_its_own_is_compressed_as_it_is_written_again() {
    let mut stage = Stage::new();
    stage.write(0, 200, 0xa0);
    stage.drain();
    let mut stage = stage.restart();
    stage.compress(Compression::Lz4);
    stage.write(10, 50, 0xb0);
    stage.drain();
    let expected: Vec<u8> = (0..256)
        .map(|block| match block {
            10..60 => 0xb0,
            0..200 => 0xa0,
            _ => 0,
        })
        .collect();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 256, 0), Ok(expected.clone()));
    stage.compress(Compression::Off);
    stage.write(20, 1, 0xc0);
    stage.drain();
    let mut expected = expected;
    expected[20] = 0xc0;
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 256, 0), Ok(expected), "compressed blocks stay when it is turned off");
    stage.scrub();
    assert_eq!(stage.damaged(), []);
    stage.write(0, 256, 0xd0);
    assert!(stage.bench.group.state().counters.direct_bytes > 0, "without compression it becomes plain");
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 256, 0), Ok(vec![0xd0; 256]));
}

#[test]
fn what_was_accepted_before_compression_was_turned_on_goes_to_its_place() {
    let mut stage = Stage::new();
    stage.write(0, 8, 0xa0);
    stage.compress(Compression::Lz4);
    stage.write(4, 8, 0xb0);
    stage.drain();
    let expected: Vec<u8> = [[0xa0; 4].as_slice(), &[0xb0; 8]].concat();
    assert_eq!(stage.read(0, 12, 0), Ok(expected.clone()));
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 12, 0), Ok(expected));
}

#[test]
fn snapshots_keep_compressed_blocks_and_deleting_them_gives_their_frames_back() {
    let mut stage = Stage::new();
    stage.compress(Compression::Zstd);
    stage.write(0, 64, 0xa0);
    stage.snapshot(1);
    stage.drain();
    let mut stage = stage.restart();
    stage.write(0, 32, 0xb0);
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 64, 1), Ok(vec![0xa0; 64]));
    assert_eq!(stage.roll_back(1), Ok(()));
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 64, 0), Ok(vec![0xa0; 64]));
    stage.write(8, 8, 0xc0);
    stage.drain();
    let mut stage = stage.restart();
    stage.drop_snapshot(1);
    stage.drain();
    assert_eq!(stage.bench.group.frames_agree(), Some(true));
    let expected: Vec<u8> = (0..64).map(|block| if (8..16).contains(&block) { 0xc0 } else { 0xa0 }).collect();
    assert_eq!(stage.read(0, 64, 0), Ok(expected));
    stage.scrub();
    assert_eq!(stage.damaged(), []);
}

#[test]
fn a_slot_that_is_damaged_is_told_when_it_is_read_and_by_scrubbing() {
    for compression in BOTH {
        let mut stage = Stage::new();
        stage.compress(compression);
        stage.write(0, 8, 0xa0);
        stage.drain();
        // The first bytes of a slot, which tell its length.
        let unit = stage.bench.devices[1]
            .chunks_exact_mut(512)
            .skip(2048)
            .find(|unit| unit[..2] != [0, 0] && unit[2..].contains(&0xa0));
        unit.expect("a slot is there")[0] ^= 0x40;
        let damaged = (0..8).filter(|block| stage.read(*block, 1, 0) == Err(GroupError::Damaged)).count();
        assert_eq!(damaged, 1, "{compression:?}: all other blocks of the frame are whole");
        let mut stage = stage.restart();
        stage.scrub();
        assert_eq!(stage.damaged().len(), 1);
        stage.write(0, 8, 0xb0);
        stage.drain();
        assert_eq!(stage.read(0, 8, 0), Ok(vec![0xb0; 8]));
    }
}

#[test]
fn a_component_with_compressed_parts_is_deleted_with_its_pages() {
    let mut stage = Stage::new();
    stage.compress(Compression::Lz4);
    stage.write(0, 64, 0xa0);
    stage.drain();
    let (component, op) = (stage.component, Op(7000));
    stage.bench.ask(Input::Delete { op, component });
    for _ in 0..50 {
        stage.bench.settle(Vec::new());
    }
    assert_eq!(stage.bench.group.state().members[1].component_count, 0);
    let bench = super::Bench::start_of(
        stage.bench.format,
        stage.bench.devices,
        crate::Settings::default(),
        (std::collections::BTreeSet::new(), false),
    );
    assert!(bench.group.component(base::ComponentId(1)).is_none());
    assert!(bench.group.state().is_open, "no page is of a component that does not exist");
}

/// The blocks of a part that are written while others of it are being compressed are not lost, and those that are overtaken are not put back.
#[test]
fn blocks_that_are_written_while_they_are_compressed_count() {
    let mut stage = Stage::new();
    stage.compress(Compression::Lz4);
    stage.write(0, 16, 0xa0);
    stage.bench.holds_computing = true;
    stage.bench.group.drain();
    stage.bench.settle(Vec::new());
    assert_eq!(stage.bench.computing.len(), 1);
    stage.write(4, 4, 0xb0);
    let (id, task) = stage.bench.computing.remove(0);
    stage.bench.holds_computing = false;
    let (_, sequence) = stage.next();
    stage.bench.decide(sequence, stage.component, super::id(1, sequence), 1);
    let computed = task.perform();
    stage.bench.ask(Input::Computed { id, computed: computed.clone() });
    stage.bench.ask(Input::Computed { id, computed });
    stage.drain();
    let expected: Vec<u8> = (0..16).map(|block| if (4..8).contains(&block) { 0xb0 } else { 0xa0 }).collect();
    assert_eq!(stage.read(0, 16, 0), Ok(expected.clone()));
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 16, 0), Ok(expected));
}

/// More than a few compressed blocks of one read are taken out of their slots elsewhere; the group serves on meanwhile.
#[test]
fn a_large_read_is_decompressed_elsewhere_and_a_small_one_at_once() {
    let mut stage = Stage::new();
    stage.compress(Compression::Zstd);
    stage.write(0, 64, 0xa0);
    stage.drain();
    let mut stage = stage.restart();
    stage.bench.computing.clear();
    stage.bench.holds_computing = true;
    let (component, (op, _)) = (stage.component, stage.next());
    let (part, layer, block, count, snapshot, verify) = (0, 0, 0, 64, 0, true);
    stage.bench.ask(Input::Read { op, component, part, layer, block, count, snapshot, verify });
    assert!(!stage.bench.done.contains_key(&op.0));
    assert_eq!(stage.read(3, 16, 0), Ok(vec![0xa0; 16]));
    let (id, task) = stage.bench.computing.pop().expect("it is asked for");
    assert!(task.computation.is_urgent() && stage.bench.computing.is_empty());
    let computed = task.perform();
    stage.bench.ask(Input::Computed { id, computed: computed.clone() });
    assert!(matches!(stage.bench.done[&op.0], Ok(Completion::Data(..))));
    stage.bench.ask(Input::Computed { id, computed });
    stage.bench.holds_computing = false;
    assert_eq!(stage.read(0, 64, 0), Ok(vec![0xa0; 64]));
}

#[test]
fn a_damaged_slot_of_a_large_read_is_told() {
    let mut stage = Stage::new();
    stage.compress(Compression::Lz4);
    stage.write(0, 64, 0xa0);
    stage.drain();
    let unit = stage.bench.devices[1]
        .chunks_exact_mut(512)
        .skip(2048)
        .find(|unit| unit[..2] != [0, 0] && unit[2..].contains(&0xa0));
    unit.expect("a slot is there")[0] ^= 0x40;
    assert_eq!(stage.read(0, 64, 0), Err(GroupError::Damaged));
    let damaged = (0..64).filter(|block| stage.read(*block, 1, 0) == Err(GroupError::Damaged)).count();
    assert_eq!(damaged, 1);
}
