//! The write buffer: the batch that is being gathered, the one that is being written, and what waits for room.
//!
//! One batch is written at a time. What waits keeps its order within its kind: records that a checkpoint waits for, for they
//! make room; the group's other records; guests' work.

use crate::format::batch::{BatchHeader, Record};
use crate::io::Op;
use crate::log::{BatchStart, Gather, Log};
use crate::work::{AWAITING, OwnRecord, Then, Work};
use base::Buffer;
use base::request::Buffers;
use std::collections::VecDeque;

/// The batch that is being written.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) start: BatchStart,
    pub(crate) header_blocks: u64,
    pub(crate) then: Vec<Then>,
}

/// A batch on its way to the log.
#[derive(Debug)]
pub(crate) struct BatchWrite {
    pub(crate) start: BatchStart,
    /// Blocks with the header.
    pub(crate) blocks: u64,
    pub(crate) buffers: Buffers,
}

/// All that was on its way to the log when that failed, in the order in which it is answered.
#[derive(Debug)]
pub(crate) struct Undone {
    pub(crate) gathered: Vec<Op>,
    pub(crate) waiting: VecDeque<Work>,
    pub(crate) records: VecDeque<OwnRecord>,
}

/// The write buffer.
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    gather: Gather<Then>,
    sealed: Option<Sealed>,
    /// Guests' work that found no room in the log or the next batch.
    waiting: VecDeque<Work>,
    /// Records of the group's own that found no room there, by who waits for them.
    records_waiting: [VecDeque<OwnRecord>; AWAITING],
}

impl WriteBuffer {
    /// Takes all guests' work that waits.
    pub(crate) fn take_waiting(&mut self) -> VecDeque<Work> {
        std::mem::take(&mut self.waiting)
    }

    /// Whether a batch is being written.
    pub(crate) fn is_writing(&self) -> bool {
        self.sealed.is_some()
    }

    /// Whether nothing is gathered for the next batch.
    pub(crate) fn is_empty(&self) -> bool {
        self.gather.is_empty()
    }

    /// Whether something waits for room in the log, or in the next batch.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.has_records_waiting()
    }

    /// Whether guests' work waits.
    pub(crate) fn has_guests_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the first that waits is to be held.
    pub(crate) fn waits_to_hold(&self) -> bool {
        let is_held = |work: &Work| match work {
            Work::Write { change, .. } | Work::Trim { change, .. } => change.layer > 0,
            Work::Order { .. } | Work::Snapshot { .. } | Work::Rollback { .. } | Work::Compress { .. } => {
                false
            }
        };
        self.waiting.front().is_some_and(is_held)
    }

    /// Whether records of the group's own wait.
    pub(crate) fn has_records_waiting(&self) -> bool {
        self.records_waiting.iter().any(|queue| !queue.is_empty())
    }

    /// Where the next batch that is not yet stable begins.
    pub(crate) fn stable_head(&self, log: &Log) -> BatchStart {
        self.sealed.as_ref().map_or(log.next_start(), |sealed| sealed.start)
    }

    /// Whether a record with its data fits the next batch and the log, and leaves `reserve` log blocks. What needs no reserve, as
    /// a checkpoint does, may go without the header's copy: a release that kept less free may have left the log so full.
    pub(crate) fn has_room(&self, log: &Log, record_bytes: usize, data_blocks: u64, reserve: u64) -> bool {
        let header = self.gather.header_blocks(record_bytes);
        let data = self.gather.data_blocks() + data_blocks;
        let fits = |header: u64| log.cost(header + data) + reserve <= log.free_blocks();
        self.gather.has_room(record_bytes, data_blocks, log.blocks())
            && (fits(2 * header) || (reserve == 0 && fits(header)))
    }

    /// Blocks of the header of the batch that is being gathered, without its copy.
    pub(crate) fn gathered_header_blocks(&self) -> u64 {
        self.gather.header_blocks(0)
    }

    /// Blocks of the header of the batch that is being written; 0 if none is.
    pub(crate) fn sealed_header_blocks(&self) -> u64 {
        self.sealed.as_ref().map_or(0, |sealed| sealed.header_blocks)
    }

    /// Blocks of the header of the batch that is being gathered: with its copy, if there is room for that.
    pub(crate) fn header_to_seal(&self, log: &Log) -> u64 {
        let header = self.gather.header_blocks(0);
        match log.cost(2 * header + self.gather.data_blocks()) <= log.free_blocks() {
            true => 2 * header,
            false => header,
        }
    }

    /// Puts a record with its data into the next batch, in which there is room for it.
    pub(crate) fn push(&mut self, record: Record, op: Option<Op>, data: Buffers) {
        self.push_then(Then { record, op, data, for_checkpoint: false });
    }

    /// Puts a record of the group's own into the next batch, in which there is room for it.
    pub(crate) fn push_own(&mut self, OwnRecord { op, record, for_checkpoint }: OwnRecord) {
        self.push_then(Then { record, op, data: Buffers::new(), for_checkpoint });
    }

    fn push_then(&mut self, then: Then) {
        self.gather.push(then, |then| (&then.record, &then.data));
    }

    /// Takes the position in the log of the batch that was gathered; `header` has as many blocks as
    /// [`WriteBuffer::header_to_seal`] says.
    pub(crate) fn seal(&mut self, log: &mut Log, header_blocks: u64, mut header: Buffer) -> BatchWrite {
        assert!(self.sealed.is_none() && !self.gather.is_empty(), "one batch is written at a time");
        let blocks = header_blocks + self.gather.data_blocks();
        let start = log.take_position(blocks);
        let fixed = BatchHeader {
            format: log.format(),
            log_mark: log.anchor().log_mark,
            number: start.number,
            position: start.position,
            header_blocks: header_blocks as u32,
            data_blocks: self.gather.data_blocks() as u32,
            record_bytes: self.gather.records().len() as u32,
            record_count: self.gather.record_count(),
        };
        fixed.encode(self.gather.records(), header.bytes_mut());
        let (buffers, then) = self.gather.take(header);
        self.sealed = Some(Sealed { start, header_blocks, then });
        BatchWrite { start, blocks, buffers }
    }

    /// What the batch that is being written tells.
    pub(crate) fn sealed(&self) -> &[Then] {
        self.sealed.as_ref().map_or(&[], |sealed| &sealed.then)
    }

    /// The batch that was being written is stable.
    pub(crate) fn take_stable(&mut self, log: &mut Log) -> Sealed {
        let sealed = self.sealed.take().expect("a batch that completes was sealed");
        log.stable(sealed.start);
        sealed
    }

    /// Guests' work waits behind all other.
    pub(crate) fn wait(&mut self, work: Work) {
        self.waiting.push_back(work);
    }

    /// Guests' work waits before all other.
    pub(crate) fn wait_first(&mut self, work: Work) {
        self.waiting.push_front(work);
    }

    /// Takes the guests' work that has waited longest.
    pub(crate) fn next_waiting(&mut self) -> Option<Work> {
        self.waiting.pop_front()
    }

    /// The snapshots of a component that are asked for and wait.
    pub(crate) fn marks_waiting_of(&self, component: u32) -> impl Iterator<Item = u32> {
        self.waiting.iter().filter_map(move |work| work.mark_of(component))
    }

    /// Takes those of one number.
    pub(crate) fn take_marks_waiting(&mut self, component: u32, number: u32) -> Vec<Work> {
        let (taken, left): (VecDeque<Work>, VecDeque<Work>) =
            self.take_waiting().into_iter().partition(|work| work.mark_of(component) == Some(number));
        self.waiting = left;
        Vec::from(taken)
    }

    /// Whether records of that kind wait.
    pub(crate) fn has_waiting_before(&self, record: &OwnRecord) -> bool {
        !self.records_waiting[record.awaiting() as usize].is_empty()
    }

    /// A record waits behind all others of its kind.
    pub(crate) fn wait_record(&mut self, record: OwnRecord) {
        self.record_queue(&record).push_back(record);
    }

    /// A record waits before all others of its kind.
    pub(crate) fn wait_record_first(&mut self, record: OwnRecord) {
        self.record_queue(&record).push_front(record);
    }

    fn record_queue(&mut self, record: &OwnRecord) -> &mut VecDeque<OwnRecord> {
        &mut self.records_waiting[record.awaiting() as usize]
    }

    /// Takes the record that goes next: of those that a checkpoint waits for, then destaging, then others.
    pub(crate) fn next_record_waiting(&mut self) -> Option<OwnRecord> {
        self.records_waiting.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Whether the batch that is being gathered speaks of a component.
    pub(crate) fn gathers(&self, component: base::ComponentId) -> bool {
        self.gather.then().iter().any(|one| one.record.component() == Some(component))
    }

    /// Whether a record that names the device is on its way to the log and has no position there yet.
    pub(crate) fn is_device_named(&self, index: u8) -> bool {
        let waiting = self.records_waiting.iter().flatten().map(|one| &one.record);
        let mut records = self.gather.then().iter().map(|one| &one.record).chain(waiting);
        records.any(|record| record.device_named() == Some(index))
    }

    /// The log is lost: nothing of this gets there.
    pub(crate) fn take_all(&mut self) -> Undone {
        let WriteBuffer { gather, sealed, waiting, records_waiting } = std::mem::take(self);
        let sealed = sealed.map(|sealed| sealed.then).unwrap_or_default();
        let gathered = sealed.iter().chain(gather.then()).filter_map(|then| then.op).collect();
        let records = records_waiting.into_iter().flatten().collect();
        Undone { gathered, waiting, records }
    }
}
