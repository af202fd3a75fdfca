//! Held blocks of mapped parts, and of components with snapshots (docs/design/0053).

use super::Bench;
use super::holding::{Layers, at, range};
use crate::format::FORMAT_VERSION;
use crate::format::page::Compression;
use crate::io::Backfill;
use crate::{Completion, Giving, GroupError, Input, Op, ROW_LAYER, Rule, Settings};
use base::RequestTag;
use base::request::Piece;
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use smallvec::smallvec;
use std::collections::BTreeSet;

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
        let (id, tag) = (super::id(1, sequence), RequestTag(sequence));
        self.bench.ask(Input::Snapshot { op: Op(op), component, number, id, tag });
        self.end(op).map(drop)
    }

    fn roll_back(&mut self, number: u32, sequence: u64) -> Result<(), GroupError> {
        let (op, component) = (self.op(), self.component);
        let (id, tag) = (super::id(1, sequence), RequestTag(sequence));
        self.bench.ask(Input::Rollback { op: Op(op), component, number, id, tag });
        self.end(op).map(drop)
    }

    fn drop_snapshot(&mut self, number: u32) {
        let (op, component) = (self.op(), self.component);
        self.bench.ask(Input::DropSnapshot { op: Op(op), component, number });
        assert!(self.end(op).is_ok());
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
