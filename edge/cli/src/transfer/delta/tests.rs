//! Deltas are read as they were written, and nothing else is.

use super::*;
use base::Random;

fn about(size: u64) -> About {
    let moment = |name: &str, number| Moment { name: name.to_owned(), number, taken: 1_700_000_000 };
    About {
        disk: "web".to_owned(),
        disk_id: "7".to_owned(),
        since: moment("monday", 3),
        snapshot: moment("tuesday", 4),
        size,
    }
}

fn records() -> Vec<Record> {
    let data: Vec<u8> = (0..2 * BLOCK).map(|at| (at / 7) as u8).collect();
    vec![
        Record { offset: BLOCK, length: 2 * BLOCK, before: vec![1, 2], data: Some(data) },
        Record { offset: 5 * BLOCK, length: BLOCK, before: vec![3], data: None },
        Record { offset: 9 * BLOCK, length: 512, before: vec![4], data: Some(vec![9; 512]) },
    ]
}

fn written() -> Vec<u8> {
    let mut writer = DeltaWriter::begin(Vec::new(), &about(9 * BLOCK + 512)).expect("it begins");
    records().iter().for_each(|record| writer.add(record).expect("it is added"));
    writer.end().expect("it ends")
}

fn read(bytes: &[u8]) -> Result<(About, Vec<Record>), Failure> {
    let mut reader = DeltaReader::open(bytes)?;
    let mut all = Vec::new();
    while let Some(record) = reader.next()? {
        all.push(record);
    }
    Ok((reader.about, all))
}

#[test]
fn what_was_written_is_read() {
    assert_eq!(read(&written()), Ok((about(9 * BLOCK + 512), records())));
}

#[test]
fn no_file_that_ends_early_and_none_with_a_wrong_byte_is_taken() {
    let whole = written();
    for length in 0..whole.len() {
        read(&whole[..length]).expect_err("it ends early");
    }
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x10;
        read(&wrong).expect_err("a byte is wrong");
    }
}

#[test]
fn records_that_overlap_or_lie_outside_are_refused() {
    for (offset, length) in
        [(0, 0), (1, BLOCK), (0, 100), (9 * BLOCK, BLOCK), (u64::MAX - 4095, BLOCK), (0, 2 << 20)]
    {
        let mut writer = DeltaWriter::begin(Vec::new(), &about(9 * BLOCK + 512)).expect("it begins");
        let before = vec![0; length.div_ceil(BLOCK) as usize];
        writer.add(&Record { offset, length, before, data: None }).expect("it is added");
        read(&writer.end().expect("it ends")).expect_err("it lies nowhere");
    }
    let mut writer = DeltaWriter::begin(Vec::new(), &about(9 * BLOCK + 512)).expect("it begins");
    for record in [&records()[1], &records()[0]] {
        writer.add(record).expect("it is added");
    }
    read(&writer.end().expect("it ends")).expect_err("they go back");
}

/// One record, or the end, as somebody could write it who wants a reader to fail: each field is right, or one of those that lie at a border.
fn forged(random: &mut Random, size: u64) -> Vec<u8> {
    let kind = [KIND_DATA, KIND_ZEROES, KIND_END, 0, 4, 255][random.below(6).min(random.below(6)) as usize];
    let offset = match random.below(8) {
        0 => u64::MAX - random.below(2 * BLOCK),
        1 => random.bits(),
        2 => size.saturating_sub(random.below(2) * 512),
        _ => random.below(12) * BLOCK,
    };
    let length = match random.below(8) {
        0 => random.bits(),
        1 => [0, 1, RECORD_MAX, RECORD_MAX + 1, u64::MAX][random.below(5) as usize],
        2 => size.saturating_sub(offset),
        _ => (1 + random.below(3)) * BLOCK,
    };
    let data_len = if random.chance(1, 8) { random.below(3 * BLOCK) } else { length.min(2 * RECORD_MAX) };
    let data = vec![7; data_len as usize];
    let zeroes = vec![0; data_len as usize];
    let mut w = Writer::default();
    put_head(&mut w, kind, (offset, length));
    if kind != KIND_END {
        let listed = length.div_ceil(BLOCK).min(1024);
        (0..listed).for_each(|_| w.u32(random.bits() as u32));
        checksums(if kind == KIND_DATA { &data } else { &zeroes }).iter().for_each(|sum| w.u32(*sum));
    }
    let mut bytes = sealed(w);
    if random.chance(1, 40) {
        bytes[1 + random.below(7) as usize] = 1; // What is reserved is set.
        let end = bytes.len() - 4;
        let checksum = crc32c(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    }
    if kind == KIND_DATA {
        bytes.extend(data);
    }
    bytes
}

/// A delta comes from wherever a file comes from. With checksums that match it is read as far as it makes sense, and refused beyond that; nothing that it says
/// has a reader fail, or take more memory than one record has.
#[test]
fn a_file_that_lies_with_checksums_that_match_is_refused_where_it_makes_no_sense() {
    let mut random = Random::new(20_261_129);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..1500 {
        let size = [0, 512, 9 * BLOCK + 512, 64 << 40, u64::MAX][random.below(5) as usize];
        let mut bytes = DeltaWriter::begin(Vec::new(), &about(size)).expect("it begins").out;
        (0..random.below(6)).for_each(|_| bytes.extend(forged(&mut random, size)));
        let Ok(mut reader) = DeltaReader::open(bytes.as_slice()) else { panic!("its head is right") };
        let mut end = 0;
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    assert!(record.offset >= end && record.offset.is_multiple_of(BLOCK));
                    assert!((1..=RECORD_MAX).contains(&record.length));
                    end = record.offset + record.length;
                    assert!(end <= size && (end == size || end.is_multiple_of(BLOCK)));
                    assert_eq!(record.before.len() as u64, record.length.div_ceil(BLOCK));
                    taken += 1;
                }
                Ok(None) => break,
                Err(_) => {
                    refused += 1;
                    break;
                }
            }
        }
    }
    assert!(taken > 100 && refused > 1000, "{taken} records were taken, {refused} files refused");
}
