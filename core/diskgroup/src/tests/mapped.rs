//! Mapped parts (docs/design/0044): what scrubbing finds, rollback, parts that become plain again, and pages that are lost.

use super::{Bench, id};
use crate::format::batch::Origin;
use crate::format::map::MapPage;
use crate::format::page::{Compression, Page, PageContent};
use crate::{Completion, ComponentKey, Event, GroupError, Input, Op, OpenError, Rule, Settings};
use base::request::{Piece, StatusOf};
use base::units::BLOCK_SIZE;
use base::{ComponentId, DeviceId, Instant, RequestTag};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Some seconds: more than scrubbing rests between two rounds.
const LONG: u64 = 60_000_000_000;

/// A component of a mapped group, with a way to say what its blocks hold.
pub(super) struct Stage {
    pub(super) bench: Bench,
    pub(super) component: ComponentKey,
    op: u64,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let mut bench = Bench::mapped(Bench::blank());
        let component = bench.create();
        Stage { bench, component, op: 10 }
    }

    pub(super) fn restart(self) -> Stage {
        self.restart_without(None)
    }

    /// The same without a rule.
    pub(super) fn restart_without(self, removed: Option<Rule>) -> Stage {
        let Bench { format, devices, .. } = self.bench;
        let settings = Settings { rules: removed.into(), ..Settings::default() };
        let bench = Bench::start_of(format, devices, settings, (BTreeSet::new(), false));
        let component = bench.group.component(ComponentId(1)).expect("it is there");
        Stage { bench, component, op: self.op }
    }

    pub(super) fn next(&mut self) -> (Op, u64) {
        self.op += 1;
        (Op(self.op), self.op)
    }

    pub(super) fn write(&mut self, block: u16, count: usize, value: u8) {
        self.write_part(0, block, count, value);
    }

    pub(super) fn write_part(&mut self, part: u32, block: u16, count: usize, value: u8) {
        let (component, (op, sequence)) = (self.component, self.next());
        let mut buffer = self.bench.pool.take(count * BLOCK_SIZE as usize).expect("memory");
        buffer.bytes_mut().fill(value);
        self.bench.ask(Input::Write {
            op,
            component,
            part,
            layer: 0,
            block,
            data: [buffer].into_iter().collect(),
            id: id(1, sequence),
            origin: Origin::Guest(RequestTag(sequence)),
            checksums: SmallVec::new(),
            ends: SmallVec::new(),
        });
        assert!(matches!(self.bench.done[&op.0], Ok(Completion::Done)), "{:?}", self.bench.done[&op.0]);
    }

    /// The first byte of each block as a snapshot sees it.
    pub(super) fn read(&mut self, block: u16, count: u16, snapshot: u32) -> Result<Vec<u8>, GroupError> {
        self.read_part(0, block, count, snapshot)
    }

    pub(super) fn read_part(
        &mut self,
        part: u32,
        block: u16,
        count: u16,
        snapshot: u32,
    ) -> Result<Vec<u8>, GroupError> {
        let (component, (op, _)) = (self.component, self.next());
        let (layer, verify) = (0, true);
        self.bench.ask(Input::Read { op, component, part, layer, block, count, snapshot, verify });
        match self.bench.done[&op.0].clone()? {
            Completion::Data(pieces, _) => {
                let bytes = pieces.iter().flat_map(|piece| match piece {
                    Piece::Bytes(buffer) => buffer.to_vec(),
                    Piece::Hole(len) => vec![0; *len as usize],
                });
                Ok(bytes.step_by(BLOCK_SIZE as usize).collect())
            }
            other => panic!("a read was answered {other:?}"),
        }
    }

    pub(super) fn snapshot(&mut self, number: u32) {
        let (component, (op, sequence)) = (self.component, self.next());
        let tag = RequestTag(sequence);
        self.bench.ask(Input::Snapshot { op, component, number, id: id(1, sequence), tag });
        assert!(matches!(self.bench.done[&op.0], Ok(Completion::Done)), "{:?}", self.bench.done[&op.0]);
    }

    pub(super) fn compress(&mut self, compression: Compression) {
        let (component, (op, _)) = (self.component, self.next());
        self.bench.ask(Input::Compress { op, component, compression });
        assert!(
            matches!(self.bench.done[&op.0], Ok(Completion::Component(_))),
            "{:?}",
            self.bench.done[&op.0]
        );
    }

    /// The blocks of the first eight for which the answer is yes.
    fn survey(&mut self, of: StatusOf) -> Result<Vec<u16>, GroupError> {
        for _ in 0..50 {
            let mut out = Vec::new();
            let told = self.bench.group.block_states(self.component, 0, of, &mut out);
            if let Some(told) = told {
                return told.map(|states| (0..8u16).filter(|block| states[usize::from(*block)]).collect());
            }
            self.bench.settle(out);
        }
        panic!("no page comes")
    }

    pub(super) fn roll_back(&mut self, number: u32) -> Result<(), GroupError> {
        let (component, (op, sequence)) = (self.component, self.next());
        let tag = RequestTag(sequence);
        self.bench.ask(Input::Rollback { op, component, number, id: id(1, sequence), tag });
        self.bench.done[&op.0].clone().map(drop)
    }

    pub(super) fn drop_snapshot(&mut self, number: u32) {
        let (component, (op, _)) = (self.component, self.next());
        self.bench.ask(Input::DropSnapshot { op, component, number });
        assert!(matches!(self.bench.done[&op.0], Ok(Completion::Done)));
    }

    /// All stands at rest, and in pages on the device.
    pub(super) fn drain(&mut self) {
        let (_, sequence) = self.next();
        self.bench.decide(sequence, self.component, id(1, sequence), 1);
        self.bench.group.drain();
        for _ in 0..50 {
            self.bench.settle(Vec::new());
        }
        assert!(self.bench.group.is_drained());
        assert_ne!(self.bench.group.frames_agree(), Some(false), "frames are those that pages name");
    }

    /// Damages the only place on the capacity device at which a block holds that value.
    pub(super) fn damage(&mut self, value: u8) {
        let blocks = self.bench.devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
        let mut found: Vec<&mut [u8]> =
            blocks.filter(|block| block.iter().all(|byte| *byte == value)).collect();
        assert_eq!(found.len(), 1, "blocks of {value}");
        found[0][77] ^= 1;
    }

    pub(super) fn scrub(&mut self) {
        let before = self.bench.group.state().counters.scrub_rounds;
        for _ in 0..2000 {
            self.bench.now += LONG;
            self.bench.settle(Vec::new());
            if self.bench.group.state().counters.scrub_rounds > before + 1 {
                return;
            }
        }
        panic!("no round of scrubbing ends");
    }

    /// The blocks that were told to be damaged, each with the snapshot that sees it.
    pub(super) fn damaged(&self) -> Vec<(u16, u32)> {
        let found = self.bench.events.iter().filter_map(|event| match event {
            Event::BlockDamaged { block, snapshot, .. } => Some((*block, *snapshot)),
            _ => None,
        });
        found.collect()
    }
}

#[test]
fn scrubbing_finds_damage_to_what_the_live_disk_and_what_only_a_snapshot_sees() {
    let mut stage = Stage::new();
    stage.write(3, 1, 0xa1);
    stage.write(9, 1, 0xa2);
    stage.snapshot(1);
    stage.write(3, 1, 0xb1);
    stage.drain();
    stage.scrub();
    assert_eq!(stage.damaged(), []);
    stage.damage(0xa1);
    stage.scrub();
    assert_eq!(stage.damaged(), [(3, 1)], "only the snapshot sees it");
    stage.damage(0xa2);
    stage.damage(0xb1);
    stage.scrub();
    let mut damaged = stage.damaged();
    damaged.sort_unstable();
    assert_eq!(damaged, [(3, 0), (3, 1), (9, 0)]);
}

#[test]
fn a_rollback_takes_back_what_is_at_rest_and_what_the_log_has_and_nothing_that_comes_later() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    stage.write(8, 1, 0xb8);
    stage.drain();
    let mut stage = stage.restart();
    stage.write(1, 1, 0xc0);
    assert_eq!(stage.read(0, 4, 0), Ok(vec![0xb0, 0xc0, 0xa0, 0xa0]));
    assert_eq!(stage.roll_back(1), Ok(()));
    assert_eq!(stage.read(0, 4, 0), Ok(vec![0xa0; 4]));
    assert_eq!(stage.read(8, 1, 0), Ok(vec![0]));
    stage.write(2, 1, 0xd0);
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 4, 0), Ok(vec![0xa0, 0xa0, 0xd0, 0xa0]), "once more after a crash");
    stage.drain();
    assert_eq!(stage.read(0, 4, 0), Ok(vec![0xa0, 0xa0, 0xd0, 0xa0]));
    assert_eq!(stage.read(0, 4, 1), Ok(vec![0xa0; 4]), "the snapshot stays what it is");
}

#[test]
fn only_the_newest_snapshot_is_rolled_back_to() {
    let mut stage = Stage::new();
    stage.snapshot(1);
    stage.snapshot(2);
    assert_eq!(stage.roll_back(1), Err(GroupError::NoSnapshot));
    assert_eq!(stage.roll_back(3), Err(GroupError::NoSnapshot));
    assert_eq!(stage.roll_back(2), Ok(()));
    stage.drop_snapshot(2);
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.roll_back(1), Ok(()));
}

/// A rollback went to the log behind the deletion of its snapshot: nothing was kept for that between the two.
#[test]
fn a_snapshot_whose_deletion_is_on_its_way_to_the_log_is_not_rolled_back_to() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    let (component, (dropping, _), (rolling, sequence)) = (stage.component, stage.next(), stage.next());
    let (now, mut out) = (Instant(stage.bench.now), Vec::new());
    let deletion = Input::DropSnapshot { op: dropping, component, number: 1 };
    stage.bench.group.step(now, deletion, &mut out);
    stage.bench.group.advance(now, &mut out); // Its batch is being written.
    let (id, tag) = (id(1, sequence), RequestTag(sequence));
    stage.bench.group.step(now, Input::Rollback { op: rolling, component, number: 1, id, tag }, &mut out);
    stage.bench.settle(out);
    assert!(matches!(stage.bench.done[&dropping.0], Ok(Completion::Done)));
    assert_eq!(stage.bench.done[&rolling.0].clone().map(drop), Err(GroupError::NoSnapshot));
    stage.drain();
    assert_eq!(stage.read(0, 4, 0), Ok(vec![0xb0, 0xa0, 0xa0, 0xa0]));
}

#[test]
fn a_part_that_no_snapshot_sees_gets_an_extent_of_its_own_when_it_is_written_as_a_whole() {
    let mut stage = Stage::new();
    stage.write(0, 8, 0xa0);
    stage.snapshot(1);
    stage.write(0, 2, 0xb0);
    stage.drain();
    let mut stage = stage.restart();
    stage.write(0, 256, 0xc0);
    assert_eq!(stage.bench.group.state().counters.direct_bytes, 0, "the snapshot sees the part");
    stage.drop_snapshot(1);
    stage.drain();
    let mut stage = stage.restart();
    stage.write(1, 1, 0xd0);
    stage.write(0, 256, 0xe0);
    assert!(stage.bench.group.state().counters.direct_bytes > 0);
    assert_eq!(stage.read(0, 256, 0), Ok(vec![0xe0; 256]));
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 256, 0), Ok(vec![0xe0; 256]), "its map page is void");
    stage.write(5, 1, 0xf0);
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(4, 3, 0), Ok(vec![0xe0, 0xf0, 0xe0]));
    stage.snapshot(2);
    stage.write(5, 1, 0xa5);
    stage.drain();
    assert_eq!((stage.read(5, 1, 0), stage.read(5, 1, 2)), (Ok(vec![0xa5]), Ok(vec![0xf0])));
}

/// Destaging waited for a page while a chunk was made, and what it waited for was forgotten only after the next look at the device: another chunk
/// took an extent that was promised to frames.
#[test]
fn a_visit_that_waited_for_a_page_has_one_chunk_made_and_not_two() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    let (_, sequence) = stage.next();
    stage.bench.decide(sequence, stage.component, id(1, sequence), 1);
    let Bench { format, devices, .. } = stage.bench;
    let (mut bench, out) = Bench::begin(format, devices, Settings::default(), (BTreeSet::new(), false));
    bench.group.drain();
    bench.settle(out);
    assert_eq!(bench.group.chunks(1).len(), 1);
}

/// A part in an extent of its own has what came behind a snapshot that is being deleted in a segment of its own, which no visit of the round took: the log
/// let go of it.
#[test]
fn what_came_behind_a_snapshot_that_is_being_deleted_is_destaged_with_what_came_before_it() {
    let mut stage = Stage::new();
    stage.write(0, 1, 0xa0);
    stage.snapshot(1);
    stage.drop_snapshot(1);
    stage.write(1, 1, 0xb0);
    let mut stage = stage.restart();
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 2, 0), Ok(vec![0xa0, 0xb0]));
}

/// What a lost page told was forgotten with the start after the next: its part was taken for a hole.
#[test]
fn what_a_lost_page_told_is_damaged_and_never_a_hole() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    stage.drain();
    let pages = stage.bench.devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
    let is_map = |page: &&mut [u8]| page[..4] == *b"DPGE" && page[36] == 4;
    let maps: Vec<&mut [u8]> = pages.filter(is_map).collect();
    assert!(!maps.is_empty());
    maps.into_iter().for_each(|page| page[2000] ^= 1);
    for _ in 0..3 {
        stage = stage.restart();
        assert_eq!(stage.read(0, 1, 0), Err(GroupError::Damaged));
        assert_eq!(stage.read(1, 1, 1), Err(GroupError::Damaged));
        stage.drain();
    }
    assert!(!stage.bench.events.iter().any(|event| matches!(event, Event::OpenFailed(_))));
}

/// A page of descriptors had been written over by another page that verifies, and a read of its extents ended the process.
#[test]
fn a_group_whose_table_holds_what_belongs_elsewhere_is_refused() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.drain();
    let geometry = super::superblock(1).geometry;
    let number = geometry.component_slots;
    let content = PageContent::Map(Box::new(MapPage::empty(ComponentId(1), 3)));
    let page = Page { device: DeviceId(2), number, version: 9, stamp: 0, content };
    for copy in 0..2 {
        let at = geometry.page_offset(number, copy) as usize;
        stage.bench.devices[1][at..at + BLOCK_SIZE as usize].copy_from_slice(&page.encode());
    }
    let Bench { format, devices, .. } = stage.bench;
    let bench = Bench::start_of(format, devices, Settings::default(), (BTreeSet::new(), false));
    let why = "a page of the table holds what belongs elsewhere";
    assert_eq!(bench.events, [Event::OpenFailed(OpenError::Contradiction(why))]);
}

/// The page was lost that told what a snapshot sees of a part: its part was not taken back, and what the rollback made void was served.
#[test]
fn a_rollback_beside_a_lost_page_serves_nothing_that_it_made_void() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    stage.drain();
    let pages = stage.bench.devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
    pages.filter(|page| page[..4] == *b"DPGE" && page[36] == 5).for_each(|page| page[2000] ^= 1);
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 1, 0), Ok(vec![0xb0]));
    assert_eq!(stage.roll_back(1), Ok(()));
    for _ in 0..2 {
        assert_eq!(stage.read(0, 1, 0), Err(GroupError::Damaged));
        assert_eq!(stage.read(1, 3, 0), Ok(vec![0xa0; 3]));
        stage.drain();
        stage = stage.restart();
    }
}

#[test]
fn without_its_rule_a_lost_page_is_forgotten() {
    if !cfg!(feature = "mutants") {
        return;
    }
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    stage.drain();
    let pages = stage.bench.devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
    pages.filter(|page| page[..4] == *b"DPGE" && page[36] == 4).for_each(|page| page[2000] ^= 1);
    stage = stage.restart_without(Some(Rule::KeepLostPages));
    assert_eq!(stage.read(0, 1, 0), Err(GroupError::Damaged));
    stage.drain();
    stage = stage.restart_without(Some(Rule::KeepLostPages));
    assert_eq!(stage.read(0, 1, 0), Ok(vec![0]));
}

#[test]
fn what_changed_between_snapshots_is_told_block_by_block_wherever_it_stands() {
    let mut stage = Stage::new();
    let changes = |since, snapshot| StatusOf::Changes { since, snapshot };
    stage.write(0, 4, 1);
    stage.snapshot(3);
    stage.write(1, 1, 2);
    stage.write(5, 1, 2);
    stage.snapshot(5);
    stage.write(0, 1, 3);
    stage.snapshot(9);
    let check = |stage: &mut Stage| {
        assert_eq!(stage.survey(StatusOf::Snapshot(3)), Ok(vec![0, 1, 2, 3]));
        assert_eq!(stage.survey(StatusOf::Snapshot(5)), Ok(vec![0, 1, 2, 3, 5]));
        assert_eq!(stage.survey(changes(3, 5)), Ok(vec![1, 5]));
        assert_eq!(stage.survey(changes(5, 9)), Ok(vec![0]));
        assert_eq!(stage.survey(changes(3, 9)), Ok(vec![0, 1, 5]));
    };
    // In the log, at rest, and with pages that have to be read.
    check(&mut stage);
    stage.drain();
    check(&mut stage);
    let mut stage = stage.restart();
    check(&mut stage);
    stage.write(2, 1, 4);
    check(&mut stage);
    assert_eq!(stage.survey(StatusOf::Disk), Ok(vec![0, 1, 2, 3, 5]));
    assert_eq!(stage.survey(changes(3, 6)), Err(GroupError::NoSnapshot));
    stage.drop_snapshot(5);
    assert_eq!(stage.survey(changes(3, 9)), Ok(vec![0, 1, 5]), "as before");
    assert_eq!(stage.survey(changes(5, 9)), Err(GroupError::NoSnapshot));
    let none = stage.bench.group.first_of_survey(stage.component, 1..9, changes(3, 9));
    assert_eq!(none, None, "no other part has anything");
}
