//! Held blocks of mapped parts, and of components with snapshots (docs/design/0053).

use super::Bench;
use super::holding::{Layers, at, range};
use crate::format::FORMAT_VERSION;
use crate::format::page::{ComponentRecord, Compression};
use crate::io::Backfill;
use crate::{Completion, Giving, GroupError, Input, Op, ROW_LAYER, Rule, Settings};
use base::request::Piece;
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{ComponentId, RequestTag};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// Parts that are taken back in one step.
const PARTS_OF_STEP: u32 = 8;

impl Layers {
    /// A component of a mapped group.
    fn mapped() -> Layers {
        Layers::mapped_without(None)
    }

    fn mapped_without(removed: Option<Rule>) -> Layers {
        let settings = Settings { rules: removed.into(), ..Settings::default() };
        let bench = Bench::start_of(FORMAT_VERSION, Bench::blank(), settings, (BTreeSet::new(), false));
        Layers::of(bench)
    }

    fn mark(&mut self, number: u32, sequence: u64) -> Result<(), GroupError> {
        let (op, component) = (self.op(), self.component);
        self.last = sequence;
        let (id, tag) = (super::id(1, sequence), RequestTag(sequence));
        self.bench.ask(Input::Snapshot { op: Op(op), component, number, id, tag });
        self.end(op).map(drop)
    }

    fn roll_back(&mut self, number: u32, sequence: u64) -> Result<(), GroupError> {
        let (op, component) = (self.op(), self.component);
        self.last = sequence;
        let (id, tag) = (super::id(1, sequence), RequestTag(sequence));
        self.bench.ask(Input::Rollback { op: Op(op), component, number, id, tag });
        self.end(op).map(drop)
    }

    fn compress(&mut self, compression: Compression) {
        let (op, component) = (self.op(), self.component);
        self.bench.ask(Input::Compress { op: Op(op), component, compression });
        assert!(self.end(op).is_ok());
    }

    /// The byte that a block is full of as a snapshot sees it.
    fn view(&mut self, snapshot: u32, block: u16) -> Result<u8, GroupError> {
        let (op, component) = (self.op(), self.component);
        let (part, layer, count, verify) = (0, 0, 1, true);
        self.bench.ask(Input::Read { op: Op(op), component, part, layer, block, count, snapshot, verify });
        match self.end(op)? {
            Completion::Data(pieces, _) => Ok(match &pieces[0] {
                Piece::Bytes(buffer) => buffer[0],
                Piece::Hole(_) => 0,
            }),
            other => panic!("a read brings data: {other:?}"),
        }
    }

    fn views(&mut self, snapshot: u32) -> [u8; 4] {
        [0, 1, 2, 3].map(|block| self.view(snapshot, block).expect("it can be read"))
    }

    fn contents(&mut self) -> [u8; 4] {
        [0, 1, 2, 3].map(|block| self.read(0, block).expect("it can be read"))
    }

    /// Damages the first block of the capacity device that is full of a byte.
    fn damage_first(&mut self, fill: u8) {
        let mut blocks = self.bench.devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
        let found = blocks.find(|block| block.iter().all(|byte| *byte == fill));
        found.expect("it is at rest")[77] ^= 1;
    }

    fn mend(&mut self, block: u16, fill: u8) -> Result<(), GroupError> {
        let (op, component) = (self.op(), self.component);
        let mut buffer = self.bench.pool.take(BLOCK_SIZE as usize).expect("memory");
        buffer.bytes_mut().fill(fill);
        let (part, number, count, giving) = (0, 0, 1, Giving::Mend);
        let (data, checksums) = (smallvec![buffer], SmallVec::new());
        let backfill = Backfill { part, number, block, count, data, checksums, giving };
        self.bench.ask(Input::Backfill { op: Op(op), component, backfill });
        for _ in 0..50 {
            self.bench.settle(Vec::new());
        }
        self.end(op).map(drop)
    }

    /// Writes all other parts.
    fn overwrite(&mut self, mut sequence: u64) -> u64 {
        for part in 1..8 {
            for block in [0, 64, 128, 192] {
                sequence += 1;
                self.put(at(0, block, 64).of_part(part), 5, sequence).expect("there is room");
                let watermark = super::id(1, sequence);
                let settle = Input::Settle { op: None, component: self.component, watermark, from_epoch: 1 };
                self.bench.ask(settle);
            }
        }
        sequence + 1
    }

    /// Makes the component so many parts large.
    fn grow(&mut self, parts: u32) {
        let (op, component) = (self.op(), self.component);
        let state = self.bench.group.component_state(component).expect("it is there");
        let record = ComponentRecord { size: u64::from(parts) * EXTENT_SIZE, ..state.record };
        self.bench.ask(Input::Update { op: Op(op), component, record });
        assert!(self.end(op).is_ok());
    }

    /// A crash; all that the log has is destaged from the start on, without a rule.
    fn crash_draining(mut self, removed: Option<Rule>) -> Layers {
        let settings = Settings { rules: removed.into(), ..Settings::default() };
        let devices = std::mem::take(&mut self.bench.devices);
        let (mut bench, out) = Bench::begin(FORMAT_VERSION, devices, settings, (BTreeSet::new(), false));
        bench.group.drain();
        bench.settle(out);
        let component = bench.group.component(ComponentId(1)).expect("it is there");
        self.with_bench(bench, component)
    }

    fn destage(&mut self) {
        self.drain();
        assert_eq!(self.bench.group.frames_agree(), Some(true));
    }

    fn promised(&self) -> (u64, u64) {
        self.bench.group.promised(1)
    }
}

#[test]
fn what_is_held_of_a_mapped_part_settles_in_frames() {
    let mut layers = Layers::mapped();
    layers.put(at(0, 0, 4), 7, 1).expect("there is room");
    layers.mark(1, 2).expect("nothing is held");
    layers.put(at(0, 0, 1), 8, 3).expect("there is room");
    layers.destage();
    layers.put(at(1, 1, 2), 9, 4).expect("it is held");
    assert_eq!(layers.promised().0, 2);
    layers = layers.crash();
    assert_eq!((layers.promised().0, layers.reads(1)), (2, [7, 9, 7]));
    layers.promote(smallvec![range(1, 1, 1)]);
    layers.destage();
    for _ in 0..2 {
        assert_eq!((layers.contents(), layers.views(1), layers.promised().0), ([8, 9, 7, 7], [7; 4], 1));
        assert_eq!(layers.read(1, 2), Ok(9), "it is held still");
        layers = layers.crash();
    }
    layers.finish(smallvec![range(1, 2, 1)]);
    layers.destage();
    layers = layers.crash();
    assert_eq!((layers.contents(), layers.views(1), layers.promised()), ([8, 9, 7, 7], [7; 4], (0, 0)));
}

/// What a snapshot sees is content alone, row writes that were answered before it among that.
#[test]
fn row_writes_are_decided_before_a_mark_and_nothing_else_is_held_at_one() {
    let mut layers = Layers::mapped();
    layers.put(at(0, 0, 4), 7, 1).expect("there is room");
    layers.put(at(1, 0, 2), 8, 2).expect("it is held");
    assert_eq!(layers.mark(1, 3), Err(GroupError::SnapshotRefused));
    layers.put(at(ROW_LAYER, 0, 2), 9, 4).expect("it is held");
    assert_eq!(layers.mark(1, 5), Ok(()), "the row write ends what was held before it");
    for _ in 0..2 {
        assert_eq!(
            (layers.contents(), layers.views(1), layers.is_held()),
            ([9, 9, 7, 7], [9, 9, 7, 7], false)
        );
        layers = layers.crash();
    }
    layers.put(at(0, 1, 1), 6, 6).expect("there is room");
    layers.put(at(ROW_LAYER, 2, 1), 5, 7).expect("it is held");
    layers.put(at(1, 3, 1), 4, 8).expect("it is held");
    assert_eq!(layers.roll_back(1, 9), Err(GroupError::SnapshotRefused));
    layers.finish(smallvec![range(1, 3, 1)]);
    assert_eq!(layers.roll_back(1, 10), Ok(()));
    for _ in 0..2 {
        assert_eq!((layers.contents(), layers.views(1)), ([9, 9, 7, 7], [9, 9, 7, 7]));
        layers.destage();
        layers = layers.crash();
    }
}

/// More parts are to be taken back than in one step, and the last is destaged first: what came behind the rollback has the last word.
fn what_came_behind_a_rollback(removed: Option<Rule>) -> u8 {
    let mut layers = Layers::mapped();
    let last = PARTS_OF_STEP + 1;
    layers.grow(last + 1);
    let mut sequence = 0;
    let mut put_all = |layers: &mut Layers, fill: u8| {
        for part in 0..=last {
            sequence += 1;
            layers.put(at(0, 0, 1).of_part(part), fill, sequence).expect("there is room");
        }
        sequence += 1;
        sequence
    };
    let marked = put_all(&mut layers, 7);
    layers.mark(1, marked).expect("nothing is held");
    put_all(&mut layers, 8);
    layers.destage();
    let mut layers = layers.crash();
    layers.roll_back(1, 100).expect("it is the newest");
    layers.put(at(0, 0, 1).of_part(last), 9, 101).expect("there is room");
    let (op, watermark) = (layers.op(), super::id(1, 101));
    layers.bench.decide(op, layers.component, watermark, 1);
    let mut layers = layers.crash_draining(removed);
    layers.destage();
    assert_eq!((layers.contents()[0], layers.views(1)[0]), (7, 7));
    layers.read_part(last, 0, 0).expect("it can be read")
}

#[test]
fn a_part_is_taken_back_before_what_came_behind_the_rollback_is_destaged() {
    assert_eq!(what_came_behind_a_rollback(None), 9);
    if cfg!(feature = "mutants") {
        assert_eq!(what_came_behind_a_rollback(Some(Rule::RollBackFirst)), 7);
    }
}

#[cfg(feature = "mutants")]
/// A row write that is decided behind the mark that it came before is none of its view.
#[test]
fn without_its_rule_a_snapshot_lacks_a_row_write_that_was_answered() {
    let mut layers = Layers::mapped_without(Some(Rule::DecideRowsBeforeMark));
    layers.put(at(ROW_LAYER, 0, 4), 9, 1).expect("it is held");
    layers.mark(1, 2).expect("nothing else is held");
    layers.destage();
    assert_eq!((layers.contents(), layers.views(1)), ([9; 4], [0; 4]));
}

/// The log begins behind a hold, and ahead of what was written before its promotion: the promoted block has the last word all the same.
#[test]
fn a_promoted_block_of_a_mapped_part_has_the_last_word_over_what_was_written_while_it_was_held() {
    for fill in 0..40 {
        let mut layers = Layers::mapped();
        layers.mark(1, 1).expect("nothing is held");
        layers.put(at(1, 0, 1), 8, 2).expect("it is held");
        layers.put(at(0, 0, 2), 9, 3).expect("there is room");
        layers.fill_log(fill, 4);
        layers.promote(smallvec![range(1, 0, 1)]);
        layers.fill_log(40, 100);
        for _ in 0..2 {
            assert_eq!(layers.contents(), [8, 9, 0, 0], "after {fill}");
            layers = layers.crash();
        }
        layers.destage();
        assert_eq!((layers.contents(), layers.views(1)), ([8, 9, 0, 0], [0; 4]));
    }
}

#[test]
fn settled_blocks_are_compressed_as_any() {
    let mut layers = Layers::mapped();
    layers.compress(Compression::Lz4);
    layers.put(at(1, 0, 64), 8, 1).expect("it is held");
    layers.promote(smallvec![range(1, 0, 64)]);
    layers.destage();
    let state = layers.bench.group.component_state(layers.component).expect("it is there");
    assert_eq!((state.compressed_bytes, layers.promised().0), (64 * BLOCK_SIZE, 0));
    layers = layers.crash();
    assert_eq!(layers.read(0, 63), Ok(8));
}

/// A part whose held blocks settle in its extent stays there until they do.
#[test]
fn a_part_that_held_blocks_before_it_was_to_be_compressed_settles_them_in_its_extent() {
    let mut layers = Layers::mapped();
    layers.put(at(0, 0, 2), 7, 1).expect("there is room");
    layers.put(at(1, 0, 1), 8, 2).expect("it is held");
    layers.compress(Compression::Zstd);
    layers.put(at(0, 1, 1), 9, 3).expect("there is room");
    layers.destage();
    layers.promote(smallvec![range(1, 0, 1)]);
    for _ in 0..2 {
        layers.destage();
        layers = layers.crash();
        assert_eq!(layers.contents(), [8, 9, 0, 0]);
    }
    layers.put(at(0, 2, 1), 6, 4).expect("there is room");
    layers.destage();
    let state = layers.bench.group.component_state(layers.component).expect("it is there");
    assert!(state.compressed_bytes > 0);
}

/// Damage at rest is mended whatever layers hold over it.
#[test]
fn a_block_at_rest_is_mended_below_a_held_one() {
    for is_mapped in [false, true] {
        let mut layers = Layers::mapped();
        if is_mapped {
            layers.mark(1, 1).expect("nothing is held");
        }
        layers.put(at(0, 0, 4), 7, 2).expect("there is room");
        layers.destage();
        layers.put(at(1, 0, 1), 8, 3).expect("it is held");
        layers.damage_first(7);
        assert_eq!((layers.read(0, 0), layers.read(1, 0)), (Err(GroupError::Damaged), Ok(8)));
        layers.mend(0, 7).expect("it is the same");
        for sequence in [4, 5] {
            assert_eq!(layers.reads(0), [7, 8, 7], "mapped: {is_mapped}");
            // The pages are written with a checkpoint.
            layers.put(at(0, 9, 1), 5, sequence).expect("there is room");
            layers.destage();
            layers = layers.crash();
        }
        layers.promote(smallvec![range(1, 0, 1)]);
        layers.destage();
        layers = layers.crash();
        assert_eq!(layers.contents(), [8, 7, 7, 7]);
    }
}

/// What was held settles, folds and is held anew, though the device is full to its last frame.
#[test]
fn neither_a_fold_nor_a_newer_hold_of_a_mapped_part_wants_for_space() {
    let mut layers = Layers::mapped();
    layers.put(at(0, 0, 4), 7, 1).expect("there is room");
    let mut sequence = 2;
    for number in 1..=5 {
        layers.mark(number, sequence).expect("nothing is held");
        if number == 5 {
            layers.put(at(1, 0, 4), 8, sequence + 1).expect("it is held");
        }
        sequence = layers.overwrite(sequence + 2);
    }
    let mut hold_more = |part: u32| {
        sequence += 1;
        layers.put(at(1, sequence as u16 % 250, 1).of_part(part), 5, sequence)
    };
    let full = (0..900).map(|hold| hold_more(1 + hold / 150)).find(Result::is_err);
    assert_eq!(full, Some(Err(GroupError::NoSpace)));
    layers.put(at(1, 0, 4), 9, sequence + 1).expect("it takes the place of as much");
    layers.put_and_end(at(0, 2, 2), 6, sequence + 2, smallvec![range(1, 2, 2)]).expect("it ends as much");
    layers.promote(smallvec![range(1, 0, 4)]);
    layers = layers.crash();
    assert_eq!((layers.contents(), layers.views(5)), ([9, 9, 6, 6], [7; 4]));
}
