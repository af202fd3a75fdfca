//! One bad sector in the log: what a header said is known from its copy, and what its copy said from the header.

use super::{Bench, LOG_SIZE, id, superblock};
use crate::format::batch::{BatchHeader, Origin, Record};
use crate::{Event, OpenError, Rule, Settings};
use base::bytes::Writer;
use base::units::BLOCK_SIZE;
use base::{ComponentId, RequestTag};

const WRITES: u64 = 3;

/// The block of the log device where the log begins.
fn log_start() -> u64 {
    superblock(0).geometry.log.offset / BLOCK_SIZE
}

/// The headers in the log, oldest first.
fn headers(device: &[u8]) -> Vec<BatchHeader> {
    let start = (log_start() * BLOCK_SIZE) as usize;
    let blocks = device[start..start + LOG_SIZE as usize].chunks_exact(BLOCK_SIZE as usize);
    blocks.filter_map(|bytes| BatchHeader::peek(bytes, 5)).collect()
}

/// A component with some writes, each of one block and in a batch of its own; then power fails.
fn written() -> [Vec<u8>; 2] {
    let mut bench = Bench::new();
    let component = bench.create();
    for write in 1..=WRITES {
        bench.write(
            1 + write,
            component,
            write * BLOCK_SIZE,
            (id(1, write), Origin::Guest(RequestTag(write))),
        );
        bench.settle(Vec::new());
    }
    bench.devices
}

/// Opens the group with blocks of the log that cannot be read. What the start said, if it did not open.
fn open(devices: &[Vec<u8>; 2], bad: &[u64], removed: Option<Rule>) -> (Bench, Option<OpenError>) {
    let bad = bad.iter().map(|position| (0, log_start() + position)).collect();
    let settings = Settings { rules: removed.into(), ..Settings::default() };
    let bench = Bench::open_with(devices.clone(), settings, bad);
    let failure = bench.events.iter().find_map(|event| match event {
        Event::OpenFailed(error) => Some(error.clone()),
        _ => None,
    });
    (bench, failure)
}

/// Whether all that was written is there.
fn is_all_there(bench: &mut Bench) -> bool {
    let component = bench.group.component(ComponentId(1)).expect("it was made");
    bench.group.window(component).len() as u64 == WRITES
        && bench.read(90, component, 0, WRITES as u16) == Ok(())
}

/// Before headers had copies, such a sector closed the group; in the newest batch it took an acknowledged write away without a word.
#[test]
fn one_sector_of_the_log_that_cannot_be_read_takes_no_write_away() {
    let devices = written();
    let batches = headers(&devices[0]);
    assert!(batches.len() as u64 > WRITES && batches.iter().all(BatchHeader::has_copy), "{batches:?}");
    for header in &batches {
        for block in header.position..header.position + u64::from(header.header_blocks) {
            let (mut bench, failure) = open(&devices, &[block], None);
            assert_eq!(failure, None, "block {block} of batch {}", header.number);
            assert!(is_all_there(&mut bench), "block {block} of batch {}", header.number);
        }
        if cfg!(feature = "mutants") {
            let (_, failure) = open(&devices, &[header.position], Some(Rule::ReadHeaderCopy));
            let is_newest = header.number == batches.len() as u64;
            assert_eq!(failure.is_none(), is_newest, "without the rule: batch {}", header.number);
        }
    }
}

/// Neither the newest header nor its copy: nobody knows what was acknowledged.
#[test]
fn a_batch_of_which_nothing_tells_keeps_the_group_closed() {
    let devices = written();
    let batches = headers(&devices[0]);
    for header in &batches {
        let bad = [header.position, header.copy_position()];
        let (_, failure) = open(&devices, &bad, None);
        assert_eq!(failure, Some(OpenError::LogDamaged { number: header.number }));
    }
    let newest = batches.last().expect("there are some");
    let bad = [newest.position, newest.copy_position()];
    if cfg!(feature = "mutants") {
        assert_eq!(open(&devices, &bad, Some(Rule::ProveUnreadableEnd)).1, None, "without the rule");
    }
}

/// Behind the last batch nothing is owed.
#[test]
fn a_sector_behind_the_end_of_the_log_keeps_nobody_from_opening() {
    let devices = written();
    let end = headers(&devices[0]).last().map(|last| last.position + last.blocks()).expect("there are some");
    for behind in 0..4 {
        let (mut bench, failure) = open(&devices, &[end + behind], None);
        assert_eq!(failure, None);
        assert!(is_all_there(&mut bench));
    }
}

/// A log that a program without copies of headers left.
#[test]
fn a_log_without_copies_of_headers_is_read_and_its_newest_header_is_missed() {
    let mut devices = written();
    let batches = headers(&devices[0]);
    let (last, before) = (batches[batches.len() - 1], batches[batches.len() - 2]);
    let mut position = before.position;
    for header in [before, last] {
        let len = u64::from(header.header_blocks) * BLOCK_SIZE;
        let from = at(header.position);
        let records = header.decode_records(&devices[0][from..from + len as usize]).expect("it verifies");
        let mut writer = Writer::default();
        records.iter().for_each(|record: &Record| record.encode(&mut writer));
        let alone = BatchHeader { header_blocks: header.header_blocks / 2, position, ..header };
        let mut bytes = vec![0; (u64::from(alone.header_blocks) * BLOCK_SIZE) as usize];
        alone.encode(writer.as_bytes(), &mut bytes);
        let data = from + len as usize..from + (header.blocks() * BLOCK_SIZE) as usize;
        bytes.extend_from_slice(&devices[0][data]);
        devices[0][at(position)..at(position) + bytes.len()].copy_from_slice(&bytes);
        position += alone.blocks();
    }
    let blank = (log_start() + position) * BLOCK_SIZE;
    devices[0][blank as usize..][..4 * BLOCK_SIZE as usize].fill(0);
    let (mut bench, failure) = open(&devices, &[], None);
    assert_eq!(failure, None);
    assert!(is_all_there(&mut bench));
    let newest = position - 1 - u64::from(last.data_blocks);
    let (_, failure) = open(&devices, &[newest], None);
    assert_eq!(failure, Some(OpenError::LogDamaged { number: last.number }));
    if cfg!(feature = "mutants") {
        let (_, failure) = open(&devices, &[newest], Some(Rule::ProveUnreadableEnd));
        assert_eq!(failure, None, "without the rule an acknowledged write is gone");
    }
}

/// Where a block of the log stands on its device.
fn at(position: u64) -> usize {
    ((log_start() + position) * BLOCK_SIZE) as usize
}

/// A batch was torn: of its header nothing was written, and of the copy all but a sector. The start took it for never written. The next batch,
/// which had its number and its place, was torn, too: what it wrote was the sector that was missing, and the start after that took the former batch
/// for whole.
#[test]
fn a_batch_that_a_start_did_not_count_is_not_completed_by_the_next_one() {
    for removed in [None, Some(Rule::EraseRemains)] {
        let mut devices = written();
        let last = *headers(&devices[0]).last().expect("there are some");
        let missing = at(last.copy_position()) + 1024..at(last.copy_position()) + 1536;
        devices[0][at(last.position)..][..BLOCK_SIZE as usize].fill(0xee);
        devices[0][missing.clone()].fill(0xee);
        let (bench, failure) = open(&devices, &[], removed);
        assert_eq!(failure, None);
        let component = bench.group.component(ComponentId(1)).expect("it was made");
        assert_eq!(bench.group.window(component).len() as u64, WRITES - 1);
        let mut devices = bench.devices;
        devices[0][missing].fill(0);
        let (bench, failure) = open(&devices, &[], removed);
        assert_eq!(failure, None);
        let component = bench.group.component(ComponentId(1)).expect("it was made");
        let is_back = bench.group.window(component).len() as u64 == WRITES;
        assert_eq!(is_back, removed.is_some() && cfg!(feature = "mutants"), "without {removed:?}");
    }
}

/// Power tore the copy of the last header, which counted by its header. Years later that sector could not be read: all that the batch had was gone, or
/// the group stayed closed.
#[test]
fn what_the_last_header_says_stands_twice_again_after_a_start() {
    for removed in [None, Some(Rule::MendLastHeader)] {
        let devices = written();
        let last = *headers(&devices[0]).last().expect("there are some");
        for (torn, bad) in [(last.copy_position(), last.position), (last.position, last.copy_position())] {
            let mut devices = devices.clone();
            devices[0][at(torn)..][..BLOCK_SIZE as usize].fill(0xee);
            let (mut bench, failure) = open(&devices, &[], removed);
            assert_eq!(failure, None);
            assert!(is_all_there(&mut bench));
            let component = bench.group.component(ComponentId(1)).expect("it was made");
            bench.write(50, component, BLOCK_SIZE, (id(1, 50), Origin::Guest(RequestTag(50))));
            let (_, failure) = open(&bench.devices, &[bad], removed);
            assert_eq!(
                failure.is_some(),
                removed.is_some() && cfg!(feature = "mutants"),
                "without {removed:?}"
            );
        }
    }
}
