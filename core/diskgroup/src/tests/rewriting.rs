//! Parts that are written anew to take less space (docs/design/0049).

use super::mapped::Stage;
use super::{id, new_component};
use crate::format::page::{ComponentRecord, Compression};
use crate::{Completion, Computation, ComputeId, GroupError, Input, Rule, Task};
use base::units::{BLOCK_SIZE, EXTENT_SIZE, MIB};
use base::{ComponentId, DeviceId, DiskId, Random};

impl Stage {
    /// Asks for the component to be written anew, and waits until that is over.
    fn rewrite(&mut self) {
        let (component, (op, _)) = (self.component, self.next());
        self.bench.ask(Input::Rewrite { op, component });
        assert!(matches!(self.bench.done[&op.0], Ok(Completion::Done)));
        self.wait_for_rewriting();
    }

    fn wait_for_rewriting(&mut self) {
        for _ in 0..200 {
            self.bench.now += 1_000_000_000;
            self.bench.settle(Vec::new());
        }
        assert_eq!(
            self.bench.group.component_state(self.component).expect("it is there").rewriting_part,
            None
        );
        assert_eq!(self.bench.group.packed_agrees(), Some(true));
        assert_ne!(self.bench.group.frames_agree(), Some(false));
    }

    /// Asks for the component to be written anew, up to where the blocks of a part are to be compressed: gives that work, and what it is known by.
    fn rewrite_up_to_computing(&mut self) -> (ComputeId, Task) {
        self.bench.computing.clear();
        self.bench.holds_computing = true;
        let (component, (op, _)) = (self.component, self.next());
        self.bench.ask(Input::Rewrite { op, component });
        for _ in 0..100 {
            for (id, task) in std::mem::take(&mut self.bench.computing) {
                if matches!(task.computation, Computation::Repack { .. }) {
                    self.bench.holds_computing = false;
                    return (id, task);
                }
                self.bench.ask(Input::Computed { id, computed: task.perform() });
            }
            self.bench.now += 10_000_000;
            self.bench.settle(Vec::new());
        }
        panic!("no part is written anew")
    }

    fn rewritten(&self) -> u64 {
        self.bench.group.state().counters.rewritten_bytes / BLOCK_SIZE
    }

    /// Bytes of its compressed blocks, and what they take.
    fn packed(&self) -> (u64, u64) {
        let state = self.bench.group.component_state(self.component).expect("it is there");
        (state.compressed_bytes, state.packed_bytes)
    }

    fn used_bytes(&self) -> u64 {
        self.bench.group.state().members[1].used_bytes
    }

    /// How often blocks were to be compressed anew.
    fn attempts(&self) -> usize {
        let is_repacking =
            |(_, task): &&(ComputeId, Task)| matches!(task.computation, Computation::Repack { .. });
        self.bench.computing.iter().filter(is_repacking).count()
    }

    /// Writes blocks that do not become smaller.
    fn write_noise(&mut self, part: u32) {
        let (component, (op, sequence)) = (self.component, self.next());
        let mut buffer = self.bench.pool.take(64 * BLOCK_SIZE as usize).expect("memory");
        let mut random = Random::new(sequence);
        buffer.bytes_mut().iter_mut().for_each(|byte| *byte = random.bits() as u8);
        self.bench.ask(Input::Write {
            op,
            component,
            part,
            layer: 0,
            block: 0,
            data: [buffer].into_iter().collect(),
            id: id(1, sequence),
            origin: crate::Origin::Guest(base::RequestTag(sequence)),
            checksums: Default::default(),
            ends: Default::default(),
        });
    }
}

/// Six parts that were written before the component compressed.
fn six_plain_parts() -> Stage {
    let mut stage = Stage::new();
    for part in 0..6 {
        stage.write_part(part, 0, 256, 1 + part as u8);
    }
    stage.drain();
    let mut stage = stage.restart();
    stage.compress(Compression::Lz4);
    stage
}

#[test]
fn what_stood_as_it_is_takes_less_space_after_it_is_asked_for_and_reads_as_it_was() {
    let mut stage = six_plain_parts();
    assert_eq!((stage.used_bytes(), stage.packed()), (6 * EXTENT_SIZE, (0, 0)));
    stage.rewrite();
    assert_eq!(stage.packed(), (6 * EXTENT_SIZE, 6 * EXTENT_SIZE / 8), "one unit of eight for each block");
    assert_eq!(stage.rewritten(), 6 * 256);
    assert!(stage.used_bytes() <= 2 * EXTENT_SIZE, "one of frames, one of pages: {}", stage.used_bytes());
    for turn in 0..2 {
        for part in 0..6 {
            assert_eq!(stage.read_part(part, 0, 256, 0), Ok(vec![1 + part as u8; 256]), "{turn}");
        }
        stage.scrub();
        stage = stage.restart();
        assert_eq!(stage.packed(), (6 * EXTENT_SIZE, 6 * EXTENT_SIZE / 8));
    }
    assert_eq!(stage.damaged(), []);
    stage.rewrite();
    assert_eq!((stage.rewritten(), stage.attempts()), (0, 0), "there is nothing more to gain");
}

#[test]
fn a_round_of_scrubbing_writes_anew_by_itself() {
    let mut stage = six_plain_parts();
    stage.scrub();
    stage.wait_for_rewriting();
    assert_eq!((stage.rewritten(), stage.packed().0), (6 * 256, 6 * EXTENT_SIZE));
}

#[test]
fn a_component_that_does_not_compress_is_left_as_it_is() {
    let mut stage = six_plain_parts();
    stage.compress(Compression::Off);
    stage.rewrite();
    stage.scrub();
    assert_eq!((stage.rewritten(), stage.attempts()), (0, 0));
}

#[test]
fn blocks_that_found_no_neighbour_when_they_were_destaged_are_put_together() {
    let mut stage = Stage::new();
    stage.compress(Compression::Zstd);
    for block in 0..16 {
        stage.write(block * 16, 1, 1 + block as u8);
        stage.drain();
        stage = stage.restart();
    }
    stage.snapshot(1);
    stage.rewrite();
    assert_eq!(stage.rewritten(), 16);
    stage.rewrite();
    assert_eq!(stage.rewritten(), 16, "they stand together");
    let mut stage = stage.restart();
    for snapshot in [0, 1] {
        for block in 0..16 {
            assert_eq!(stage.read(block * 16, 1, snapshot), Ok(vec![1 + block as u8]));
        }
    }
    stage.write(0, 256, 0xee);
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(16, 1, 1), Ok(vec![2]), "the snapshot keeps what was moved");
}

#[test]
fn blocks_that_do_not_become_smaller_are_not_tried_again_until_they_change() {
    let mut stage = Stage::new();
    stage.write_noise(0);
    stage.drain();
    let mut stage = stage.restart();
    stage.compress(Compression::Lz4);
    for _ in 0..3 {
        stage.scrub();
        stage.wait_for_rewriting();
    }
    assert_eq!((stage.rewritten(), stage.attempts()), (0, 1));
    stage.rewrite();
    assert_eq!((stage.rewritten(), stage.attempts()), (0, 2), "somebody asked for it");
}

/// Blocks are written, and destaged, while their part is compressed anew.
#[test]
fn what_is_written_meanwhile_counts() {
    for removed in [None, Some(Rule::KeepNewerThanRewritten)] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        let mut stage = Stage::new();
        stage.compress(Compression::Lz4);
        for block in 0..16 {
            stage.write(block, 1, 0xa0);
            stage.drain();
            stage = stage.restart_without(removed);
        }
        let component = stage.component;
        let (id, task) = stage.rewrite_up_to_computing();
        stage.write(4, 4, 0xb0);
        let (_, sequence) = stage.next();
        stage.bench.decide(sequence, component, super::id(1, sequence), 1);
        stage.bench.group.drain();
        for _ in 0..50 {
            stage.bench.settle(Vec::new());
        }
        let computed = task.perform();
        stage.bench.ask(Input::Computed { id, computed: computed.clone() });
        stage.bench.ask(Input::Computed { id, computed });
        let now: Vec<u8> = (0..16).map(|block| if (4..8).contains(&block) { 0xb0 } else { 0xa0 }).collect();
        assert_eq!(stage.read(0, 16, 0) == Ok(now.clone()), removed.is_none());
        if removed.is_some() {
            continue;
        }
        assert_eq!((stage.rewritten(), stage.bench.group.packed_agrees()), (12, Some(true)));
        let mut stage = stage.restart();
        assert_eq!(stage.read(0, 16, 0), Ok(now));
        stage.scrub();
        assert_eq!(stage.damaged(), []);
    }
}

/// A part in an extent of its own is written, deleted or trimmed while it is compressed anew.
#[test]
fn a_part_that_changes_as_a_whole_meanwhile_is_left() {
    let mut stage = six_plain_parts();
    let component = stage.component;
    let (computing, task) = stage.rewrite_up_to_computing();
    let (op, sequence) = stage.next();
    stage.bench.ask(Input::Trim {
        op,
        component,
        part: 0,
        layer: 0,
        block: 0,
        count: 256,
        id: id(1, sequence),
        origin: crate::Origin::Guest(base::RequestTag(sequence)),
    });
    stage.bench.ask(Input::Computed { id: computing, computed: task.perform() });
    stage.wait_for_rewriting();
    assert_eq!(stage.rewritten(), 5 * 256);
    assert_eq!(stage.read_part(0, 0, 256, 0), Ok(vec![0; 256]));
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read_part(0, 0, 256, 0), Ok(vec![0; 256]));
    assert_eq!(stage.read_part(5, 0, 256, 0), Ok(vec![6; 256]));
}

#[test]
fn nothing_is_written_anew_where_space_is_short() {
    let mut stage = six_plain_parts();
    let state = stage.bench.group.state().members[1].clone();
    let reservation = state.capacity_bytes - state.used_bytes - EXTENT_SIZE;
    let (op, _) = stage.next();
    let record = ComponentRecord {
        id: ComponentId(2),
        disk: DiskId(2),
        size: 64 * MIB,
        reservation,
        ..new_component()
    };
    stage.bench.ask(Input::Create { op, device: DeviceId(2), record });
    let Some(Ok(Completion::Component(other))) = stage.bench.done.get(&op.0).cloned() else {
        panic!("it is made")
    };
    stage.rewrite();
    assert_eq!((stage.rewritten(), stage.attempts()), (0, 0));
    let (op, _) = stage.next();
    stage.bench.ask(Input::Delete { op, component: other });
    for _ in 0..50 {
        stage.bench.settle(Vec::new());
    }
    stage.rewrite();
    assert_eq!(stage.rewritten(), 6 * 256);
}

#[test]
fn a_component_that_is_not_there_is_not_written_anew() {
    let mut stage = six_plain_parts();
    let (component, (op, _)) = (stage.component, stage.next());
    stage.bench.ask(Input::Delete { op, component });
    let (op, _) = stage.next();
    stage.bench.ask(Input::Rewrite { op, component });
    assert_eq!(stage.bench.done[&op.0].clone().map(drop), Err(GroupError::NoComponent));
}

/// A block that does not match its checksum is left where it is: it stays damaged, and nothing hides that.
#[test]
fn a_damaged_block_is_not_written_anew() {
    let mut stage = Stage::new();
    for block in 0..64 {
        stage.write(block, 1, 1 + block as u8);
    }
    stage.drain();
    let at = stage.bench.devices[1].chunks_exact(4096).position(|block| block.iter().all(|byte| *byte == 9));
    stage.bench.devices[1][at.expect("it is at rest") * 4096 + 7] ^= 1;
    let mut stage = stage.restart();
    stage.compress(Compression::Lz4);
    stage.rewrite();
    assert_eq!(stage.rewritten(), 63);
    assert_eq!(stage.read(8, 1, 0), Err(GroupError::Damaged));
    assert_eq!(stage.read(7, 1, 0), Ok(vec![8]));
}
