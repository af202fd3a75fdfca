//! Snapshots that are given later what they see (docs/design/0051).

use super::mapped::Stage;
use crate::{Backfill, Completion, Giving, GroupError, Input, Rule};
use base::Random;
use base::units::BLOCK_SIZE;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Blocks that the tests use of one part.
const BLOCKS: u16 = 6;

impl Stage {
    fn late_snapshot(&mut self, number: u32) -> Result<(), GroupError> {
        for _ in 0..20 {
            let (component, (op, _)) = (self.component, self.next());
            self.bench.ask(Input::LateSnapshot { op, component, number });
            let told = self.bench.done[&op.0].clone().map(drop);
            if told != Err(GroupError::NotYet) {
                return told;
            }
        }
        Err(GroupError::NotYet)
    }

    /// Gives a snapshot one block; 0: a hole.
    fn give(
        &mut self,
        number: u32,
        block: u16,
        value: u8,
        as_seen_by: Option<u32>,
    ) -> Result<(), GroupError> {
        let giving = as_seen_by.map_or(Giving::New, |newer| Giving::AsSeenBy { newer });
        self.give_for(number, block, value, giving)
    }

    pub(super) fn give_for(
        &mut self,
        number: u32,
        block: u16,
        value: u8,
        giving: Giving,
    ) -> Result<(), GroupError> {
        let (component, (op, _)) = (self.component, self.next());
        let data = (value > 0).then(|| {
            let mut buffer = self.bench.pool.take(BLOCK_SIZE as usize).expect("memory");
            buffer.bytes_mut().fill(value);
            buffer
        });
        let (data, checksums) = (data.into_iter().collect(), SmallVec::new());
        let backfill = Backfill { number, part: 0, block, count: 1, data, checksums, giving };
        self.bench.ask(Input::Backfill { op, component, backfill });
        for _ in 0..20 {
            if self.bench.done.contains_key(&op.0) {
                break;
            }
            self.bench.now += 10_000_000;
            self.bench.settle(Vec::new());
        }
        self.bench.done[&op.0].clone().map(drop)
    }

    fn sync(&mut self, number: u32) {
        let (component, (op, _)) = (self.component, self.next());
        self.bench.ask(Input::SyncBackfill { op, component, number });
        for _ in 0..20 {
            self.bench.settle(Vec::new());
        }
        assert!(matches!(self.bench.done[&op.0], Ok(Completion::Done)));
    }
}

#[test]
fn a_snapshot_that_comes_late_sees_what_it_is_given_and_the_others_what_they_saw() {
    let mut stage = Stage::new();
    stage.write(0, 4, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xc0); // Snapshot 2 was missed, with 0xb1 in the second block and nothing in the third.
    stage.snapshot(3);
    stage.write(1, 1, 0xd0);
    assert_eq!(stage.late_snapshot(3), Ok(()), "it is there");
    assert_eq!(stage.late_snapshot(2), Ok(()));
    assert_eq!(stage.read(0, 4, 2), Ok(vec![0xc0, 0xa0, 0xa0, 0xa0]), "as the next newer one");
    assert_eq!(stage.give(2, 1, 0xb1, None), Err(GroupError::SnapshotRefused), "the older one would see it");
    for (block, value) in [(0, 0xa0), (1, 0xb1), (2, 0)] {
        let seen = stage.read(block, 1, 1).expect("it can be read")[0];
        assert_eq!(stage.give(1, block, seen, Some(2)), Ok(()));
        assert_eq!(stage.give(2, block, value, None), Ok(()));
    }
    let expected = [
        (1, [0xa0, 0xa0, 0xa0, 0xa0]),
        (2, [0xa0, 0xb1, 0x00, 0xa0]),
        (3, [0xc0, 0xa0, 0xa0, 0xa0]),
        (0, [0xc0, 0xd0, 0xa0, 0xa0]),
    ];
    let check = |stage: &mut Stage| {
        for (snapshot, blocks) in expected {
            assert_eq!(stage.read(0, 4, snapshot), Ok(blocks.to_vec()), "snapshot {snapshot}");
        }
    };
    check(&mut stage);
    let whole = |stage: &Stage| -> Vec<u32> {
        let states = stage.bench.group.components().into_iter();
        states.flat_map(|(_, state)| state.snapshots).map(|(number, _)| number).collect()
    };
    assert_eq!(whole(&stage), [1, 3], "nobody takes the second one for whole");
    stage.sync(2);
    assert_eq!(whole(&stage), [1, 2, 3]);
    let mut stage = stage.restart();
    check(&mut stage);
    stage.drain();
    check(&mut stage);
    stage.drop_snapshot(3);
    stage.drain();
    for (snapshot, blocks) in expected.into_iter().filter(|(snapshot, _)| *snapshot != 3) {
        assert_eq!(stage.read(0, 4, snapshot), Ok(blocks.to_vec()), "snapshot {snapshot} without the third");
    }
    stage.drop_snapshot(2);
    stage.drain();
    assert_eq!(stage.read(0, 4, 1), Ok(vec![0xa0; 4]));
}

/// Writes, snapshots, some of them late, and deletions, as they come; each snapshot sees what it should all the time.
fn run(seed: u64, removed: Option<Rule>) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut stage = Stage::new().restart_without(removed);
    let mut live = [0u8; BLOCKS as usize];
    let mut seen: BTreeMap<u32, [u8; BLOCKS as usize]> = BTreeMap::new();
    let (mut next, mut value) = (1, 0u8);
    for step in 0..60 {
        value = value.wrapping_add(1).max(1);
        match random.below(12) {
            0..5 => {
                let block = random.below(u64::from(BLOCKS)) as u16;
                stage.write(block, 1, value);
                live[usize::from(block)] = value;
            }
            5 | 6 => {
                stage.snapshot(next);
                seen.insert(next, live);
                next += 1 + random.below(2) as u32; // One may be missed.
            }
            7 => {
                stage.drain();
                stage = stage.restart_without(removed);
            }
            8 => {
                if let Some(number) = seen.keys().nth(random.below(4) as usize).copied() {
                    stage.drop_snapshot(number);
                    seen.remove(&number);
                }
            }
            9 => {
                if let Some(number) = seen.keys().next_back() {
                    stage.sync(*number);
                }
                stage = stage.restart_without(removed);
            }
            _ => {
                let missed: Vec<u32> = (1..next + 1).filter(|number| !seen.contains_key(number)).collect();
                let number = missed[random.below(missed.len() as u64) as usize];
                if stage.late_snapshot(number).is_err() {
                    continue; // It is being deleted.
                }
                next = next.max(number + 1);
                let mut view: [u8; BLOCKS as usize] = stage
                    .read(0, BLOCKS, number)
                    .map_err(|error| error.to_string())?
                    .try_into()
                    .expect("six");
                for block in 0..BLOCKS {
                    if random.below(2) == 0 {
                        continue;
                    }
                    value = value.wrapping_add(1).max(1);
                    let given = if random.below(4) == 0 { 0 } else { value };
                    if let Some((older, _)) = seen.range(..number).next_back() {
                        let kept = stage.give(*older, block, view[usize::from(block)], Some(number));
                        kept.map_err(|error| format!("step {step}: {error}"))?;
                    }
                    if random.below(4) == 0 {
                        stage.write(block, 1, value);
                        live[usize::from(block)] = value;
                    }
                    let told = stage.give(number, block, given, None);
                    told.map_err(|error| format!("step {step}: snapshot {number}: {error}"))?;
                    view[usize::from(block)] = given;
                }
                seen.insert(number, view);
            }
        }
        for (number, blocks) in seen.iter().map(|(number, blocks)| (*number, *blocks)).chain([(0, live)]) {
            let found = stage.read(0, BLOCKS, number).map_err(|error| error.to_string())?;
            if found != blocks {
                return Err(format!(
                    "step {step}: snapshot {number} reads as {found:x?}, expected {blocks:x?}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn whatever_comes_late_each_snapshot_sees_what_it_should() {
    for seed in 0..150 {
        if let Err(why) = run(seed, None) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[cfg(feature = "mutants")]
#[test]
fn without_its_rules_a_late_snapshot_changes_what_others_see() {
    for rule in [Rule::SettleBeforeBackfill, Rule::SyncBackfill] {
        let is_noticed = |seed| {
            let found = std::panic::catch_unwind(|| run(seed, Some(rule)));
            !matches!(found, Ok(Ok(())))
        };
        assert!((0..150).any(is_noticed), "{rule:?}");
    }
    let mut stage = Stage::new().restart_without(Some(Rule::TellOlderApart));
    stage.write(0, 1, 0xa0);
    stage.snapshot(1);
    stage.snapshot(3);
    assert_eq!((stage.late_snapshot(2), stage.give(2, 0, 0xb0, None)), (Ok(()), Ok(())));
    assert_eq!(stage.read(0, 1, 1), Ok(vec![0xb0]), "which it never held then");
}
