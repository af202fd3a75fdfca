//! Layers beside the content of a part: each order, crashes around it, damage, bounds, and many rounds of the log.

use super::{Bench, LOG_SIZE, id, superblock};
use crate::format::batch::{BatchHeader, Origin, Record};
use crate::{
    Completion, ComponentKey, Event, GroupError, HeldBlocks, Input, LayerRange, LayerRanges, Op, ROW_LAYER,
    Rule, Settings, Versions,
};
use base::request::{Piece, StatusOf};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{ComponentId, RequestTag, WriteId};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

const LOG_BLOCKS: u64 = LOG_SIZE / BLOCK_SIZE;
const ANY: WriteId = WriteId { epoch: u32::MAX, sequence: u64::MAX };

/// Operations are numbered, so that each answer is found.
pub(super) struct Layers {
    pub(super) bench: Bench,
    pub(super) component: ComponentKey,
    next: u64,
    /// The last change.
    pub(super) last: u64,
    /// The epoch of the changes that are put.
    epoch: u32,
}

/// Where blocks of the layer are.
#[derive(Clone, Copy)]
pub(super) struct At {
    part: u32,
    layer: u8,
    block: u16,
    count: u16,
}

impl At {
    pub(super) fn of_part(self, part: u32) -> At {
        At { part, ..self }
    }
}

pub(super) const fn at(layer: u8, block: u16, count: u16) -> At {
    At { part: 0, layer, block, count }
}

pub(super) fn range(layer: u8, block: u16, count: u16) -> LayerRange {
    LayerRange { layer, block, count, through: ANY }
}

impl Layers {
    pub(super) fn new() -> Layers {
        Layers::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Layers {
        Layers::of(Bench::open_with(Bench::blank(), settings, BTreeSet::new()))
    }

    pub(super) fn of(mut bench: Bench) -> Layers {
        let component = bench.create();
        Layers { bench, component, next: 100, last: 0, epoch: 1 }
    }

    pub(super) fn op(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn end(&mut self, op: u64) -> Result<Completion, GroupError> {
        self.bench.done.get(&op).cloned().expect("it is answered")
    }

    /// Writes blocks of one byte.
    pub(super) fn put(&mut self, at: At, fill: u8, sequence: u64) -> Result<(), GroupError> {
        self.put_and_end(at, fill, sequence, LayerRanges::new())
    }

    pub(super) fn put_and_end(
        &mut self,
        at: At,
        fill: u8,
        sequence: u64,
        ends: LayerRanges,
    ) -> Result<(), GroupError> {
        let op = self.op();
        self.last = sequence;
        let mut buffer = self.bench.pool.take(usize::from(at.count) * BLOCK_SIZE as usize).expect("memory");
        buffer.bytes_mut().fill(fill);
        let At { part, layer, block, .. } = at;
        let (component, data, checksums) = (self.component, smallvec![buffer], SmallVec::new());
        let (id, origin) = (id(self.epoch, sequence), Origin::Guest(RequestTag(sequence)));
        let op_id = Op(op);
        self.bench.ask(Input::Write {
            op: op_id,
            component,
            part,
            layer,
            block,
            data,
            id,
            origin,
            checksums,
            ends,
        });
        self.end(op).map(drop)
    }

    pub(super) fn trim(&mut self, at: At, sequence: u64) -> Result<(), GroupError> {
        let op = self.op();
        self.last = sequence;
        let At { part, layer, block, count } = at;
        let (id, origin) = (id(1, sequence), Origin::Guest(RequestTag(sequence)));
        self.bench.ask(Input::Trim {
            op: Op(op),
            component: self.component,
            part,
            layer,
            block,
            count,
            id,
            origin,
        });
        self.end(op).map(drop)
    }

    pub(super) fn promote(&mut self, ranges: LayerRanges) {
        let op = self.op();
        self.bench.ask(Input::Promote { op: Op(op), component: self.component, part: 0, ranges });
        assert!(self.end(op).is_ok());
    }

    pub(super) fn finish(&mut self, ranges: LayerRanges) {
        let op = self.op();
        self.bench.ask(Input::End { op: Op(op), component: self.component, part: 0, ranges });
        assert!(self.end(op).is_ok());
    }

    /// The byte that a block is full of, as a layer reads; 0 for a hole.
    pub(super) fn read(&mut self, layer: u8, block: u16) -> Result<u8, GroupError> {
        self.read_part(0, layer, block)
    }

    pub(super) fn read_part(&mut self, part: u32, layer: u8, block: u16) -> Result<u8, GroupError> {
        let op = self.op();
        let (component, count, verify) = (self.component, 1, true);
        self.bench.ask(Input::Read { op: Op(op), component, part, layer, block, count, snapshot: 0, verify });
        match self.end(op)? {
            Completion::Data(pieces, _) => Ok(match &pieces[0] {
                Piece::Bytes(buffer) => {
                    assert!(buffer.iter().all(|byte| *byte == buffer[0]), "a whole block");
                    buffer[0]
                }
                Piece::Hole(_) => 0,
            }),
            other => panic!("a read brings data: {other:?}"),
        }
    }

    pub(super) fn reads(&mut self, block: u16) -> [u8; 3] {
        [0, 1, 2].map(|layer| self.read(layer, block).expect("it can be read"))
    }

    pub(super) fn held(&self) -> Vec<HeldBlocks> {
        self.bench.group.held(self.component, 0)
    }

    pub(super) fn is_held(&self) -> bool {
        !self.held().is_empty()
    }

    /// The version of the first region of the first part.
    pub(super) fn version(&mut self) -> WriteId {
        let op = self.op();
        let (component, since, from_part) = (self.component, WriteId::default(), 0);
        self.bench.ask(Input::Changed { op: Op(op), component, since, from_part });
        match self.end(op) {
            Ok(Completion::Changed { parts, .. }) => match &parts[0].1 {
                Versions::Hole(id) => *id,
                Versions::Regions(regions) => regions[0],
            },
            other => panic!("versions: {other:?}"),
        }
    }

    /// The process ends without a word, and begins again.
    pub(super) fn crash(self) -> Layers {
        self.crash_without(None)
    }

    /// The same without a rule from then on.
    pub(super) fn crash_without(mut self, removed: Option<Rule>) -> Layers {
        let settings = Settings { rules: removed.into(), ..Settings::default() };
        let (format, devices) = (self.bench.format, std::mem::take(&mut self.bench.devices));
        let bench = Bench::start_of(format, devices, settings, (BTreeSet::new(), false));
        let component = bench.group.component(ComponentId(1)).expect("it is there");
        self.with_bench(bench, component)
    }

    /// The same operations on another group, or on that after a start.
    pub(super) fn with_bench(self, bench: Bench, component: ComponentKey) -> Layers {
        Layers { bench, component, next: self.next, last: self.last, epoch: self.epoch }
    }

    /// Destages all that can be. All changes are decided, for windows stay in the log.
    pub(super) fn drain(&mut self) {
        let op = self.op();
        self.bench.decide(op, self.component, id(1, self.last), 1);
        self.bench.group.drain();
        self.bench.settle(Vec::new());
        assert!(self.bench.group.is_drained());
    }

    /// Writes the content of other parts until the log has gone round so many times.
    pub(super) fn go_round(&mut self, times: u64, first_sequence: u64) {
        self.fill_log(times * LOG_BLOCKS / 64, first_sequence);
    }

    /// The same with so many writes of 60 blocks.
    pub(super) fn fill_log(&mut self, writes: u64, first_sequence: u64) {
        let mut sequence = first_sequence;
        while sequence < first_sequence + writes {
            let part = 1 + (sequence % 7) as u32;
            let block = (sequence % 4 * 64) as u16;
            self.put(At { part, layer: 0, block, count: 60 }, 9, sequence).expect("there is room");
            let watermark = id(1, sequence);
            self.bench.ask(Input::Settle { op: None, component: self.component, watermark, from_epoch: 1 });
            sequence += 1;
        }
    }
}

#[test]
fn what_a_layer_holds_is_read_there_alone_until_it_is_promoted_or_ends() {
    let mut layers = Layers::new();
    layers.put(at(0, 0, 4), 7, 1).expect("it is written");
    layers.put(at(1, 1, 2), 8, 2).expect("it is held");
    layers.trim(at(2, 1, 1), 3).expect("it is held");
    for _ in 0..2 {
        assert_eq!([0, 1, 2].map(|block| layers.reads(block)), [[7, 7, 7], [7, 8, 0], [7, 8, 7]]);
        let held = |layer, count, sequence, is_trim| HeldBlocks {
            layer,
            block: 1,
            count,
            id: id(1, sequence),
            is_trim,
        };
        assert_eq!(layers.held(), [held(1, 2, 2, false), held(2, 1, 3, true)]);
        assert_eq!(layers.bench.group.held_parts(layers.component), [0]);
        assert_eq!(layers.version(), id(1, 3));
        layers = layers.crash();
    }
    layers.promote(smallvec![range(1, 1, 1)]);
    layers.finish(smallvec![range(1, 2, 1)]);
    for _ in 0..2 {
        assert_eq!([1, 2].map(|block| layers.reads(block)), [[8, 8, 0], [7, 7, 7]]);
        layers = layers.crash();
    }
    layers.promote(smallvec![range(2, 0, 256)]);
    assert!(!layers.is_held());
    for _ in 0..2 {
        assert_eq!([1, 2].map(|block| layers.reads(block)), [[0, 0, 0], [7, 7, 7]]);
        assert_eq!(layers.version(), id(1, 3), "a promoted block keeps its id");
        layers.drain();
        layers = layers.crash();
    }
}

#[test]
fn an_end_goes_up_to_its_id_and_leaves_the_version_behind() {
    let mut layers = Layers::new();
    layers.put(at(1, 0, 1), 8, 5).expect("it is held");
    let older = LayerRange { through: id(1, 4), ..range(1, 0, 1) };
    layers.finish(smallvec![older]);
    assert_eq!(layers.read(1, 0), Ok(8), "it is newer");
    layers.finish(smallvec![range(1, 0, 1)]);
    for _ in 0..2 {
        assert_eq!((layers.reads(0), layers.version()), ([0, 0, 0], id(1, 5)));
        layers.drain();
        layers = layers.crash();
    }
    let used = layers.bench.group.state().members[1].used_bytes;
    assert_eq!(used, 0, "the extent was given back");
}

/// A trim of a whole part gives its extent back once it is decided, whether it came at once or in pieces, without a round of the log.
#[test]
fn a_part_whose_rows_are_trimmed_gives_its_extent_back_once_that_is_decided() {
    for pieces in [1, 4] {
        let mut layers = Layers::new();
        let used = |layers: &Layers| layers.bench.group.state().members[1].used_bytes;
        for block in [0, 64, 128, 192] {
            layers.put(at(0, block, 64), 7, 1).expect("there is room");
        }
        let count = 256 / pieces;
        for piece in 0..pieces {
            let sequence = 2 + u64::from(piece);
            layers.trim(at(ROW_LAYER, piece * count, count), sequence).expect("there is room");
        }
        assert_eq!((used(&layers), layers.reads(0)[0]), (EXTENT_SIZE, 0), "it may be dropped still");
        for piece in 0..pieces {
            layers.promote(smallvec![range(ROW_LAYER, piece * count, count)]);
        }
        assert_eq!(used(&layers), 0, "in {pieces} pieces");
        layers.put(at(0, 9, 1), 8, 9).expect("there is room");
        assert_eq!((layers.read(0, 9), layers.read(0, 8)), (Ok(8), Ok(0)));
    }
}

#[test]
fn a_row_write_reads_as_content_and_dropped_gives_back_what_it_replaced() {
    let mut layers = Layers::new();
    layers.put(at(0, 0, 1), 7, 1).expect("it is written");
    layers.put(at(1, 0, 1), 8, 2).expect("it is held");
    layers.put(at(ROW_LAYER, 0, 1), 9, 3).expect("it is held");
    for _ in 0..2 {
        assert_eq!(layers.reads(0), [9, 9, 9]);
        layers = layers.crash();
    }
    layers.finish(smallvec![range(ROW_LAYER, 0, 1)]);
    for _ in 0..2 {
        assert_eq!((layers.reads(0), layers.version()), ([7, 8, 7], id(1, 3)));
        layers = layers.crash();
    }
}

#[test]
fn a_watermark_or_a_later_order_decides_a_row_write_and_ends_what_layers_held_before() {
    for is_order in [false, true] {
        let mut layers = Layers::new();
        layers.put(at(1, 0, 2), 8, 2).expect("it is held");
        layers.put(at(ROW_LAYER, 0, 2), 9, 3).expect("it is held");
        match is_order {
            true => layers.put(at(2, 0, 2), 6, 4).expect("it is held"),
            false => layers.bench.decide(50, layers.component, id(1, 3), 1),
        }
        let in_layer = if is_order { 6 } else { 9 };
        for _ in 0..2 {
            assert_eq!(layers.reads(0), [9, 9, in_layer]);
            assert!(layers.held().iter().all(|held| held.layer == 2));
            layers.drain();
            layers = layers.crash();
        }
        layers.finish(smallvec![range(ROW_LAYER, 0, 2)]);
        assert_eq!(layers.read(0, 0), Ok(9), "what is decided is not dropped");
    }
}

#[test]
fn an_order_beside_a_row_write_decides_nothing_of_it() {
    let mut layers = Layers::new();
    layers.put(at(0, 0, 4), 7, 1).expect("it is written");
    layers.put(at(ROW_LAYER, 0, 4), 9, 2).expect("it is held");
    layers.put(at(1, 1, 1), 8, 3).expect("it is held");
    layers.finish(smallvec![range(ROW_LAYER, 0, 256)]);
    assert_eq!([0, 1, 2].map(|block| layers.reads(block)), [[7, 7, 7], [9, 8, 9], [7, 7, 7]]);
}

/// The headers of the batches in the log, with their records.
fn batches(device: &[u8]) -> Vec<Vec<Record>> {
    let log = superblock(0).geometry.log;
    let bytes = &device[log.offset as usize..(log.offset + log.len) as usize];
    let starts = (0..bytes.len()).step_by(BLOCK_SIZE as usize);
    let header = |start| BatchHeader::peek(&bytes[start..], 5).map(|header| (start, header));
    let found = starts.filter_map(header);
    let records = found.map(|(start, header)| {
        let len = header.header_blocks as usize * BLOCK_SIZE as usize;
        header.decode_records(&bytes[start..start + len]).expect("it is whole")
    });
    records.collect()
}

#[test]
fn a_fold_is_one_batch() {
    let mut layers = Layers::new();
    layers.put(at(1, 0, 2), 8, 2).expect("it is held");
    layers.put(at(2, 1, 2), 8, 3).expect("it is held");
    let ends = smallvec![range(1, 0, 2), LayerRange { through: id(1, 3), ..range(2, 1, 2) }];
    layers.put_and_end(at(0, 0, 3), 5, 3, ends).expect("it is folded");
    let last = batches(&layers.bench.devices[0]).pop().expect("there are some");
    let is_end = |record: &&Record| matches!(record, Record::End(_));
    assert_eq!(last.iter().filter(is_end).count(), 2);
    assert!(matches!(last.last(), Some(Record::Write { part: 0, block: 0, .. })), "{last:?}");
    for _ in 0..2 {
        assert_eq!([0, 1, 2].map(|block| layers.reads(block)), [[5; 3]; 3]);
        assert!(!layers.is_held());
        layers = layers.crash();
    }
}

#[test]
fn held_blocks_are_carried_forward_as_the_log_goes_round_and_round() {
    for removed in [None, Some(Rule::CarryHeld)] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        let mut layers =
            Layers::with(Settings { rules: removed.into(), retained_bytes_max: 0, ..Settings::default() });
        layers.put(at(0, 0, 2), 7, 1).expect("it is written");
        layers.put(at(1, 0, 2), 8, 2).expect("it is held");
        layers.trim(at(2, 1, 1), 3).expect("it is held");
        layers.go_round(3, 10);
        assert!(layers.bench.group.state().counters.checkpoints > 6);
        let mut layers = layers.crash();
        let found = [0, 1].map(|block| [0, 1, 2].map(|layer| layers.read(layer, block).ok()));
        let kept = [[Some(7), Some(8), Some(7)], [Some(7), Some(8), Some(0)]];
        assert_eq!(found == kept, removed.is_none(), "{found:?}");
        if removed.is_none() {
            layers.promote(smallvec![range(1, 0, 256)]);
            layers.go_round(2, 2000);
            let mut layers = layers.crash();
            assert_eq!([0, 1].map(|block| layers.reads(block)), [[8, 8, 8], [8, 8, 0]]);
        }
    }
}

/// A log that has let go of a held block still has a record of its content from before the promotion.
#[test]
fn a_promoted_block_has_the_last_word_over_content_written_while_it_was_held() {
    for removed in [None, Some(Rule::RewriteOvertaken)] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        let mut layers = Layers::with(Settings { rules: removed.into(), ..Settings::default() });
        layers.put(at(1, 0, 1), 8, 2).expect("it is held");
        layers.fill_log(10, 10);
        layers.put(at(0, 0, 1), 7, 30).expect("it is written");
        layers.promote(smallvec![range(1, 0, 1)]);
        assert!(!layers.is_held());
        let checkpoints = |layers: &Layers| layers.bench.group.state().counters.checkpoints;
        let mut sequence = 40;
        while checkpoints(&layers) == 0 {
            layers.fill_log(1, sequence);
            sequence += 1;
        }
        let mut layers = layers.crash();
        let last = layers.reads(0)[0];
        assert_eq!(last, if removed.is_none() { 8 } else { 7 }, "{removed:?}");
        if removed.is_none() {
            layers.go_round(3, 1000);
            assert_eq!(layers.crash().reads(0), [8; 3]);
        }
    }
}

#[test]
fn holds_are_refused_beyond_a_quarter_of_the_log_and_row_writes_are_not() {
    let mut layers = Layers::new();
    let mut sequence = 0;
    let mut put = |layers: &mut Layers, layer, part| {
        sequence += 1;
        layers.put(At { part, layer, block: 0, count: 128 }, 8, sequence)
    };
    for part in 0..8 {
        assert_eq!(layers.bench.group.wants_folds(), part > 4, "an eighth is four times 128 blocks");
        assert_eq!(put(&mut layers, 1, part), Ok(()), "part {part}");
    }
    assert_eq!(layers.bench.group.congestion(), 255);
    assert_eq!(put(&mut layers, 2, 0), Err(GroupError::Full));
    assert_eq!(put(&mut layers, 1, 0), Ok(()), "what takes the place of as much is held");
    assert_eq!(put(&mut layers, ROW_LAYER, 1), Ok(()));
    let oldest = layers.bench.group.oldest_held(2);
    assert_eq!(oldest.iter().map(|(_, part)| *part).collect::<Vec<_>>(), [1, 2]);
    layers.finish(smallvec![range(1, 0, 256)]);
    assert_eq!(put(&mut layers, 2, 0), Err(GroupError::Full), "the row write has its place");
    assert_eq!(put(&mut layers, 1, 3), Ok(()), "what takes the place of as much is held nevertheless");
    layers.bench.decide(90, layers.component, id(1, layers.last), 1);
    assert_eq!(put(&mut layers, 2, 0), Ok(()));
}

/// Row writes of an owner that was gone took more than a quarter of a log. Another owner was to give that group a small change, and was
/// refused. It never served: only after that it would have decided the row writes.
#[test]
fn what_a_take_over_rolls_forward_does_not_wait_for_row_writes_that_wait_for_it() {
    let mut layers = Layers::new();
    let mut sequence = 0;
    let mut put = |layers: &mut Layers, epoch, at| {
        sequence += 1;
        layers.epoch = epoch;
        layers.put(at, 8, sequence)
    };
    let rest = |layer, part| At { part, layer, block: 192, count: 64 };
    for part in 0..8 {
        assert_eq!(put(&mut layers, 1, At { part, ..at(ROW_LAYER, 0, 192) }), Ok(()), "part {part}");
    }
    assert_eq!(put(&mut layers, 1, rest(1, 0)), Err(GroupError::Full), "three eighths are held");
    let (op, component) = (layers.op(), layers.component);
    layers.bench.ask(Input::Promise { op: Op(op), component, epoch: 2 });
    assert!(layers.end(op).is_ok());
    for part in 0..7 {
        assert_eq!(put(&mut layers, 1, rest(1, part)), Ok(()), "a copy is rolled forward in part {part}");
    }
    assert_eq!(put(&mut layers, 1, rest(ROW_LAYER, 7)), Ok(()), "a row write is rolled forward");
    assert_eq!(put(&mut layers, 1, rest(2, 0)), Err(GroupError::Full), "half is held");
    layers.bench.decide(90, component, id(2, 0), 1);
    assert_eq!(put(&mut layers, 2, rest(2, 0)), Ok(()), "the row writes are decided");
}

/// A change of the epoch in which a component is open is not rolled forward: its share is that of all others.
#[test]
fn a_change_of_the_promised_epoch_gets_no_share_of_what_is_rolled_forward() {
    let mut layers = Layers::new();
    let (op, component) = (layers.op(), layers.component);
    layers.bench.ask(Input::Promise { op: Op(op), component, epoch: 1 });
    assert!(layers.end(op).is_ok());
    for part in 0..8 {
        let rows = At { part, ..at(ROW_LAYER, 0, 192) };
        assert_eq!(layers.put(rows, 8, u64::from(part) + 1), Ok(()), "part {part}");
    }
    assert_eq!(layers.put(at(1, 192, 64), 8, 9), Err(GroupError::Full));
    assert_eq!(layers.put(at(ROW_LAYER, 192, 64), 8, 10), Err(GroupError::Full));
}

#[test]
fn a_log_a_quarter_of_which_is_held_goes_on() {
    let mut layers = Layers::new();
    for part in 0..8 {
        layers.put(At { part, layer: 1, block: 0, count: 128 }, 8, 1 + u64::from(part)).expect("it is held");
    }
    layers.go_round(4, 100);
    let mut layers = layers.crash();
    for part in 0..8 {
        assert_eq!([0, 127].map(|block| layers.read_part(part, 1, block)), [Ok(8); 2], "part {part}");
    }
}

#[test]
fn a_held_block_that_is_damaged_says_so_until_it_is_written_again() {
    let mut layers = Layers::with(Settings { retained_bytes_max: 0, ..Settings::default() });
    layers.put(at(1, 0, 3), 8, 2).expect("it is held");
    let log = superblock(0).geometry.log.offset / BLOCK_SIZE;
    // Each batch before has a header with its copy: the component's, and the hold's own.
    let bad = (0, log + 2 + 2 + 1);
    layers.bench.bad.insert(bad);
    assert_eq!([0, 1, 2].map(|block| layers.read(1, block)), [Ok(8), Err(GroupError::Damaged), Ok(8)]);
    layers.go_round(2, 10);
    layers.bench.bad.clear();
    for _ in 0..2 {
        assert_eq!([0, 1, 2].map(|block| layers.read(1, block)), [Ok(8), Err(GroupError::Damaged), Ok(8)]);
        let held = layers.held();
        assert_eq!(held.iter().map(|held| held.count).sum::<u16>(), 3, "{held:?}");
        layers = layers.crash();
    }
    layers.promote(smallvec![range(1, 0, 2)]);
    layers.drain();
    assert_eq!([0, 1].map(|block| layers.read(0, block)), [Ok(8), Err(GroupError::Damaged)]);
    layers.put(at(1, 1, 1), 6, 5000).expect("it is held");
    assert_eq!(layers.read(1, 1), Ok(6));
}

#[test]
fn scrubbing_finds_damage_to_held_blocks() {
    let settings = Settings { retained_bytes_max: 0, scrub_bytes_per_second: 1 << 30, ..Settings::default() };
    let mut layers = Layers::with(settings);
    layers.put(at(1, 0, 1), 8, 2).expect("it is held");
    let log = superblock(0).geometry.log.offset / BLOCK_SIZE;
    layers.bench.bad.insert((0, log + 4));
    layers.bench.now += 60_000_000_000;
    layers.bench.settle(Vec::new());
    let is_found = |event: &Event| matches!(event, Event::BlockDamaged { part: 0, block: 0, .. });
    assert!(layers.bench.events.iter().any(is_found), "{:?}", layers.bench.events);
}

#[test]
fn the_space_that_a_hold_settles_to_is_promised() {
    let mut layers = Layers::new();
    layers.put(at(0, 5, 1), 7, 1).expect("it is written");
    layers.put(at(1, 0, 1), 8, 2).expect("it is held");
    layers.trim(at(0, 0, 256), 3).expect("it is trimmed");
    layers.drain();
    let used = |layers: &Layers| layers.bench.group.state().members[1].used_bytes;
    assert_eq!(
        (used(&layers), layers.reads(5)),
        (EXTENT_SIZE, [0, 0, 0]),
        "the extent is kept for what is held"
    );
    let mut layers = layers.crash();
    layers.promote(smallvec![range(1, 0, 1)]);
    assert_eq!(layers.reads(0), [8; 3]);
    layers.trim(at(0, 0, 256), 4).expect("it is trimmed");
    layers.drain();
    assert_eq!((used(&layers), layers.reads(0)), (0, [0; 3]));
}

#[test]
fn a_hold_without_space_is_refused_for_want_of_it() {
    let mut layers = Layers::new();
    let extents = superblock(1).geometry.extent_count();
    let record = crate::format::page::ComponentRecord {
        id: ComponentId(2),
        reservation: u64::from(extents) * EXTENT_SIZE,
        ..super::new_component()
    };
    layers.bench.ask(Input::Create { op: Op(90), device: base::DeviceId(2), record });
    assert!(layers.end(90).is_ok());
    assert_eq!(layers.put(at(1, 0, 1), 8, 1), Err(GroupError::NoSpace));
    assert_eq!(layers.trim(at(ROW_LAYER, 0, 256), 2), Ok(()), "a hole that becomes a hole takes none");
    assert!(!layers.is_held());
}

#[test]
fn guests_are_told_what_layers_and_content_back_and_nothing_of_row_writes() {
    let mut layers = Layers::new();
    layers.put(at(0, 0, 2), 7, 1).expect("it is written");
    layers.trim(at(1, 0, 1), 2).expect("it is held");
    layers.put(at(1, 2, 1), 8, 3).expect("it is held");
    layers.put(at(ROW_LAYER, 3, 1), 9, 4).expect("it is held");
    let mut out = Vec::new();
    let told = layers.bench.group.block_states(layers.component, 0, StatusOf::Disk, &mut out);
    let backed = told.expect("the page is in memory").expect("nothing is damaged");
    assert_eq!(backed[..4], [false, true, true, false]);
}

#[test]
fn what_is_held_goes_with_its_component() {
    let mut layers = Layers::new();
    layers.put(at(1, 0, 16), 8, 1).expect("it is held");
    layers.bench.ask(Input::Delete { op: Op(90), component: layers.component });
    assert!(layers.end(90).is_ok());
    assert_eq!(layers.bench.group.state().held_bytes, 0);
    let bench = layers.bench.restart();
    assert_eq!((bench.group.state().held_bytes, bench.group.state().members[1].used_bytes), (0, 0));
}

#[test]
fn windows_name_layers() {
    let mut layers = Layers::new();
    layers.put(at(1, 0, 1), 8, 1).expect("it is held");
    layers.trim(at(ROW_LAYER, 4, 2), 2).expect("it is held");
    layers.go_round(0, 10);
    for _ in 0..2 {
        let window = layers.bench.group.window(layers.component);
        let told: Vec<_> =
            window.iter().map(|entry| (entry.layer, entry.block, entry.count, entry.is_trim)).collect();
        assert_eq!(told, [(1, 0, 1, false), (ROW_LAYER, 4, 2, true)]);
        layers = layers.crash();
    }
}

/// Of data in the log and at rest, of holes and of blocks that a row write covers; layers of copies do not count.
#[test]
fn checksums_of_the_content_are_told_without_a_read() {
    let mut layers = Layers::new();
    let of = |fill: u8| Some(base::checksum::crc32c(&[fill; BLOCK_SIZE as usize]));
    let told = |layers: &mut Layers| {
        let (op, component) = (Op(7), layers.component);
        let input = Input::Checksums { op, component, part: 0, block: 0, count: 4 };
        let (now, mut out) = (base::Instant(layers.bench.now), Vec::new());
        layers.bench.group.step(now, input, &mut out);
        match &out[..] {
            [crate::Output::Done { result: Ok(Completion::Checksums(checksums)), .. }] => checksums.clone(),
            other => panic!("only an answer comes: {other:?}"),
        }
    };
    assert_eq!(told(&mut layers), [None; 4], "nothing was written");
    layers.put(at(0, 0, 3), 1, 1).expect("there is room");
    layers.put(at(1, 0, 1), 2, 2).expect("there is room");
    layers.put(at(ROW_LAYER, 1, 1), 3, 3).expect("there is room");
    assert_eq!(told(&mut layers), [of(1), of(3), of(1), None]);
    layers.trim(at(0, 2, 1), 4).expect("there is room");
    assert_eq!(told(&mut layers), [of(1), of(3), None, None]);
    layers.drain();
    assert_eq!(told(&mut layers), [of(1), of(3), None, None], "at rest");
}
