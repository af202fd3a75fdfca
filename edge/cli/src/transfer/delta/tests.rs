//! Deltas are read as they were written, and nothing else is.

use super::*;

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
