//! How writes are cut into writes and trims.

use super::*;
use crate::range::{Aim, stretches};
use base::checksum::crc32c;
use base::units::MIB;
use base::{ComponentId, DeviceId, Pool};
use layout::{Code, Component};

const BLOCK: usize = BLOCK_SIZE as usize;

fn component(id: u64) -> Component {
    let position = (id - 1) as u8;
    Component { id: ComponentId(id), device: DeviceId(u128::from(id)), size: 8 * MIB, position }
}

fn one_component() -> Layout {
    Layout::Component(Component { position: 0, ..component(1) })
}

fn rows_of_two() -> Layout {
    Layout::Parity { code: Code::TWO_AND_ONE, members: (1..=3).map(component).collect() }
}

/// A block that is not zero and has the checksum of one that is.
fn impostor() -> Vec<u8> {
    let mut block = vec![7; BLOCK];
    let forced = crc32c(&block[..BLOCK - 4]) ^ crc32c(&[0; BLOCK - 4]);
    block[BLOCK - 4..].copy_from_slice(&forced.to_le_bytes());
    assert!(crc32c(&block) == CRC32C_OF_ZERO_BLOCK && block[0] == 7);
    block
}

/// The bytes of blocks: `0` of zeroes, `d` of data, `x` one with the checksum of zeroes.
fn bytes_of(kinds: &str) -> Vec<u8> {
    let block = |kind: char| match kind {
        '0' => vec![0; BLOCK],
        'x' => impostor(),
        _ => vec![9; BLOCK],
    };
    kinds.chars().flat_map(block).collect()
}

/// The changes of a write from a block of the disk on, as text: `w3` for a write of three blocks, `t16` for a trim of sixteen. Together they
/// must be what was written, each at its place.
fn cut_up(layout: &Layout, first: u64, kinds: &str, zeroes: Zeroes) -> String {
    let (pool, bytes) = (Pool::new(16 << 20), bytes_of(kinds));
    let data: Buffers = bytes
        .chunks(5 * BLOCK) // Of several buffers.
        .map(|part| {
            let mut buffer = pool.take(part.len()).expect("memory");
            buffer.bytes_mut().copy_from_slice(part);
            buffer
        })
        .collect();
    let mut found = Vec::new();
    stretches(layout, first * BLOCK_SIZE, bytes.len() as u64, Aim::Change, &mut |one| found.push(one));
    let (mut words, mut at) = (Vec::new(), first * BLOCK_SIZE);
    for span in found {
        let part = cut(&data, (span.disk_offset - first * BLOCK_SIZE) as usize, span.len as usize);
        for (stretch, payload) in changes_of_write(layout, span, part, zeroes) {
            assert_eq!(stretch.disk_offset, at, "one follows the other");
            let mut placed = Vec::new();
            stretches(layout, at, stretch.len, Aim::Change, &mut |one| {
                placed.push((one.place, one.target, one.offset))
            });
            assert_eq!(placed[0], (stretch.place, stretch.target, stretch.offset), "each at its place");
            let range = (at - first * BLOCK_SIZE) as usize..(at - first * BLOCK_SIZE + stretch.len) as usize;
            at += stretch.len;
            match payload {
                Payload::Trim { count } => {
                    assert_eq!(u64::from(count) * BLOCK_SIZE, stretch.len);
                    let is_zero = bytes[range].iter().all(|byte| *byte == 0);
                    assert!(is_zero || zeroes == Zeroes::Believed, "only zeroes are trimmed");
                    words.push(format!("t{count}"));
                }
                Payload::Write { data, checksums: sums } => {
                    let written: Vec<u8> = data.iter().flat_map(|buffer| buffer.to_vec()).collect();
                    assert!(written == bytes[range] && sums == checksums(&data));
                    words.push(format!("w{}", sums.len()));
                }
            }
        }
    }
    assert_eq!(at, first * BLOCK_SIZE + bytes.len() as u64, "nothing is left out");
    words.join(" ")
}

fn check(layout: &Layout, first: u64, kinds: &str, expected: &str) {
    assert_eq!(cut_up(layout, first, kinds, Zeroes::Trimmed), expected, "{kinds} from block {first} on");
}

#[test]
fn a_stretch_of_zeroes_is_one_trim_and_one_without_a_long_run_one_write() {
    let layout = one_component();
    check(&layout, 0, "0", "t1");
    check(&layout, 3, "d", "w1");
    check(&layout, 3, "000", "t3");
    check(&layout, 3, "0d0", "w3");
    check(&layout, 0, &format!("{}d", "0".repeat(15)), "w16");
    check(&layout, 0, &"0".repeat(256), "t256");
    check(&layout, 200, &"0".repeat(100), "t56 t44");
}

#[test]
fn long_runs_of_zeroes_among_data_are_trimmed() {
    let layout = one_component();
    let run = "0".repeat(16);
    check(&layout, 1, &format!("{run}d"), "t16 w1");
    check(&layout, 1, &format!("d{run}"), "w1 t16");
    check(&layout, 7, &format!("d0d{run}00d00"), "w3 t18 w3");
    check(&layout, 0, &format!("{run}d").repeat(15), &["t16 w1"; 15].join(" "));
    // Of two parts each is for itself.
    check(&layout, 250, &format!("{run}d"), "t6 w11");
}

#[test]
fn whole_rows_of_zeroes_are_trimmed_and_parts_of_rows_stay_data() {
    let layout = rows_of_two();
    let (unit, row) = ("0".repeat(16), "0".repeat(32));
    check(&layout, 0, &row, "t32");
    check(&layout, 0, &unit, "w16");
    check(&layout, 5, "0", "w1");
    check(&layout, 0, &format!("{row}{unit}{}{row}{row}", "d".repeat(16)), "t32 w32 t64");
    check(&layout, 16, &format!("{unit}{row}{unit}"), "w16 t32 w16");
    check(&layout, 0, &"0".repeat(512), "t512");
}

#[test]
fn a_checksum_alone_is_not_believed() {
    for layout in [one_component(), rows_of_two()] {
        check(&layout, 0, &"x".repeat(32), "w32");
        assert_eq!(cut_up(&layout, 0, &"x".repeat(32), Zeroes::Believed), "t32", "the checksums agree");
    }
    check(&one_component(), 0, &format!("{}x{}", "0".repeat(16), "0".repeat(16)), "t16 w1 t16");
}

#[test]
fn zeroes_that_keep_their_space_are_data() {
    for layout in [one_component(), rows_of_two()] {
        assert_eq!(cut_up(&layout, 0, &"0".repeat(32), Zeroes::Kept), "w32");
    }
    let allocate = |allocate| Request::WriteZeroes { offset: 0, len: 4096, allocate };
    assert_eq!(Zeroes::of(&allocate(true), Rules::ALL), Zeroes::Kept);
    assert_eq!(Zeroes::of(&allocate(false), Rules::ALL), Zeroes::Trimmed);
    assert_eq!(Zeroes::of(&Request::Write { offset: 0, data: Buffers::new() }, Rules::ALL), Zeroes::Trimmed);
}
