//! Damaged blocks that another component mends (docs/design/0052).

use super::mapped::Stage;
#[cfg(feature = "mutants")]
use crate::Rule;
use crate::format::page::Compression;
use crate::{DamagedBlock, Giving, GroupError};

impl Stage {
    fn mend(&mut self, number: u32, block: u16, value: u8) -> Result<(), GroupError> {
        self.give_for(number, block, value, Giving::Mend)
    }

    fn told(&mut self) -> Vec<(u16, u32)> {
        let told = self.bench.group.take_damage(self.component, 100);
        told.into_iter().map(|DamagedBlock { block, snapshot, .. }| (block, snapshot)).collect()
    }
}

/// A block that the live disk and two snapshots see, and one that only the two do.
fn shared() -> Stage {
    let mut stage = Stage::new();
    stage.write(0, 1, 0xa0);
    stage.write(1, 1, 0xa1);
    stage.snapshot(1);
    stage.write(2, 1, 0xa2);
    stage.snapshot(2);
    stage.write(1, 1, 0xb1);
    stage.drain();
    stage.restart()
}

const VIEWS: [(u32, [u8; 3]); 3] = [(1, [0xa0, 0xa1, 0]), (2, [0xa0, 0xa1, 0xa2]), (0, [0xa0, 0xb1, 0xa2])];

fn check(stage: &mut Stage) {
    for (snapshot, blocks) in VIEWS {
        assert_eq!(stage.read(0, 3, snapshot), Ok(blocks.to_vec()), "snapshot {snapshot}");
    }
}

#[test]
fn a_block_is_mended_for_all_who_see_it_and_stays_so() {
    for compression in [Compression::Off, Compression::Lz4] {
        let mut stage = shared();
        stage.compress(compression);
        check(&mut stage);
        stage.damage(0xa0);
        stage.damage(0xa1);
        stage.damage(0xb1);
        for snapshot in [0, 1, 2] {
            assert_eq!(stage.read(0, 1, snapshot), Err(GroupError::Damaged));
        }
        assert_eq!(stage.read(1, 1, 2), Err(GroupError::Damaged));
        assert_eq!(stage.read(1, 1, 0), Err(GroupError::Damaged));
        assert_eq!(stage.told(), [(0, 0), (1, 0), (1, 2)], "each once, and what the live disk sees as that");
        assert_eq!(stage.told(), [], "it was told");
        stage.scrub();
        assert_eq!(stage.told(), [(0, 0), (1, 0), (1, 2)], "it is still so");
        assert_eq!(stage.mend(0, 0, 0xa0), Ok(()));
        assert_eq!(stage.mend(0, 1, 0xb1), Ok(()), "what the snapshot has is another one");
        assert_eq!(stage.mend(1, 1, 0xa1), Ok(()), "whoever sees it may be named");
        check(&mut stage);
        stage.drain();
        let mut stage = stage.restart();
        check(&mut stage);
        stage.scrub();
        assert_eq!(stage.told(), [], "nothing is damaged any more");
        stage.write(0, 1, 0xc0);
        stage.drop_snapshot(2);
        stage.drain();
        assert_eq!(stage.read(0, 2, 1), Ok(vec![0xa0, 0xa1]));
    }
}

#[test]
fn what_is_not_the_block_that_was_damaged_mends_nothing() {
    let mut stage = shared();
    stage.damage(0xa1);
    assert_eq!(stage.mend(2, 1, 0xee), Err(GroupError::Damaged), "its checksum is known");
    assert_eq!(stage.mend(2, 1, 0), Err(GroupError::Damaged), "nor was it a hole");
    assert_eq!(stage.mend(0, 5, 0xa1), Err(GroupError::Damaged), "nor is what was a hole a block");
    assert_eq!(stage.mend(3, 1, 0xa1), Err(GroupError::NoSnapshot));
    assert_eq!(stage.read(1, 1, 2), Err(GroupError::Damaged));
    stage.write(1, 1, 0xd1);
    assert_eq!(stage.mend(0, 1, 0xd1), Err(GroupError::Damaged), "the log has a newer one");
    assert_eq!(stage.mend(2, 1, 0xa1), Ok(()), "which the snapshot does not see");
    assert_eq!(stage.read(1, 1, 1), Ok(vec![0xa1]));
    assert_eq!(stage.read(1, 1, 0), Ok(vec![0xd1]));
    stage.drain();
    assert_ne!(stage.bench.group.frames_agree(), Some(false));
}

#[test]
fn a_part_in_an_extent_of_its_own_is_mended_too() {
    let mut stage = Stage::new();
    stage.write(0, 2, 0xa0);
    stage.write(1, 1, 0xa1);
    stage.drain();
    let mut stage = stage.restart();
    stage.snapshot(1);
    stage.damage(0xa1);
    assert_eq!(stage.read(1, 1, 1), Err(GroupError::Damaged));
    assert_eq!(stage.told(), [(1, 0)]);
    assert_eq!(stage.mend(0, 1, 0xa1), Ok(()));
    for snapshot in [0, 1] {
        assert_eq!(stage.read(0, 3, snapshot), Ok(vec![0xa0, 0xa1, 0]));
    }
    stage.drain();
    let mut stage = stage.restart();
    assert_eq!(stage.read(0, 3, 1), Ok(vec![0xa0, 0xa1, 0]));
}

/// It was told as damage of the live disk, whose block is whole, and nothing was mended: only once the block was at rest did the next round find whose it is.
#[test]
fn what_the_log_has_newer_for_the_live_disk_is_told_for_the_snapshot_that_sees_it() {
    let mut stage = shared();
    stage.write(0, 1, 0xc0);
    stage.snapshot(3);
    stage.damage(0xa0);
    stage.scrub();
    assert_eq!(stage.told(), [(0, 2)]);
    assert_eq!(stage.mend(2, 0, 0xa0), Ok(()));
    for (snapshot, value) in [(0, 0xc0), (1, 0xa0), (2, 0xa0), (3, 0xc0)] {
        assert_eq!(stage.read(0, 1, snapshot), Ok(vec![value]));
    }
}

/// The live disk's block is damaged in the log, and destaged as lost: the snapshot that is taken sees it so, and gets what another component has.
#[test]
fn a_block_whose_checksum_is_lost_is_mended_for_a_snapshot() {
    let mut stage = Stage::new();
    stage.write(0, 1, 0xa0);
    stage.snapshot(1);
    stage.write(0, 1, 0xb0);
    let mut stage = stage.restart();
    let log =
        stage.bench.devices[0].chunks_exact_mut(4096).filter(|block| block.iter().all(|byte| *byte == 0xb0));
    log.for_each(|block| block[9] ^= 1);
    stage.snapshot(2);
    stage.drain();
    assert_eq!(stage.read(0, 1, 1), Ok(vec![0xa0]));
    assert_eq!(stage.read(0, 1, 2), Err(GroupError::Damaged));
    assert_eq!(stage.mend(0, 0, 0xb0), Err(GroupError::Damaged), "nobody knows which version it is");
    stage.told();
    stage.scrub();
    assert_eq!(stage.told(), [(0, 0)], "scrubbing tells of it, too");
    assert_eq!(stage.mend(2, 0, 0xb0), Ok(()));
    for (snapshot, value) in [(0, 0xb0), (1, 0xa0), (2, 0xb0)] {
        assert_eq!(stage.read(0, 1, snapshot), Ok(vec![value]));
    }
}

#[cfg(feature = "mutants")]
#[test]
fn without_its_rule_any_block_mends_another() {
    let mut stage = shared().restart_without(Some(Rule::MendWithTheSame));
    stage.damage(0xa1);
    assert_eq!(stage.mend(2, 1, 0xee), Ok(()));
    assert_eq!(stage.read(1, 1, 1), Ok(vec![0xee]), "which was never written");
}
