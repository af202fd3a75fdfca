//! Histories that a register can have, and some that it cannot.

use super::*;
use base::Random;

/// One block, and operations on it told by their moments.
struct Block(Recorder);

impl Block {
    fn new() -> Block {
        Block(Recorder::new(1))
    }

    fn begin_write(&mut self, now: Moment) -> (OperationId, WriteNumber) {
        self.0.begin_write(now, 1, 0..1)
    }

    fn write(&mut self, begin: Moment, end: Moment) -> WriteNumber {
        let (id, write) = self.begin_write(begin);
        self.0.end_write(end, id).expect("a write alone conflicts with nothing");
        write
    }

    fn read(&mut self, begin: Moment, end: Moment, seen: WriteNumber) -> Result<(), Violation> {
        let id = self.0.begin_read(begin, 0..1);
        self.0.end_read(end, id, &[seen])
    }
}

#[test]
fn the_newest_acknowledged_write_is_read_and_no_older() {
    let mut block = Block::new();
    assert_eq!(block.read(1, 2, 0), Ok(()));
    let first = block.write(3, 4);
    assert_eq!(block.read(5, 6, first), Ok(()));
    let second = block.write(7, 8);
    assert_eq!(block.read(9, 10, second), Ok(()));
    block.read(11, 12, first).expect_err("it was overwritten");
    block.read(13, 14, 0).expect_err("so was the beginning");
}

#[test]
fn a_write_under_way_may_be_seen_or_not_but_not_unseen_again() {
    let mut block = Block::new();
    let first = block.write(1, 2);
    let (id, second) = block.begin_write(10);
    assert_eq!(block.read(11, 12, first), Ok(()));
    assert_eq!(block.read(13, 14, second), Ok(()));
    block.read(15, 16, first).expect_err("the newer one was seen before");
    assert_eq!(block.read(17, 18, second), Ok(()));
    assert_eq!(block.0.end_write(30, id), Ok(()));
}

#[test]
fn two_reads_at_once_may_see_the_old_and_the_new() {
    let mut block = Block::new();
    let first = block.write(1, 2);
    let (write, second) = block.begin_write(10);
    let early = block.0.begin_read(11, 0..1);
    let late = block.0.begin_read(12, 0..1);
    assert_eq!(block.0.end_read(13, late, &[second]), Ok(()));
    assert_eq!(block.0.end_read(14, early, &[first]), Ok(()));
    assert_eq!(block.0.end_write(15, write), Ok(()));
}

#[test]
fn a_read_that_lasts_long_may_still_see_what_was_overwritten_meanwhile() {
    let mut block = Block::new();
    let first = block.write(1, 2);
    let read = block.0.begin_read(3, 0..1);
    block.write(4, 5);
    block.write(6, 7);
    let last = block.write(8, 9);
    assert_eq!(block.0.end_read(20, read, &[first]), Ok(()));
    assert_eq!(block.read(21, 22, last), Ok(()));
}

#[test]
fn a_write_of_unknown_outcome_may_appear_until_all_was_read_back_and_never_after() {
    let mut block = Block::new();
    let first = block.write(1, 2);
    let (id, unknown) = block.begin_write(3);
    block.0.lose(id);
    assert_eq!(block.read(10, 11, first), Ok(()));
    assert_eq!(block.read(12, 13, unknown), Ok(()));
    block.read(14, 15, first).expect_err("the unknown one has been seen");

    let mut block = Block::new();
    let first = block.write(1, 2);
    let (id, unknown) = block.begin_write(3);
    block.0.lose(id);
    assert_eq!(block.read(10, 11, first), Ok(()));
    block.0.settle(11, 0, first);
    block.read(12, 13, unknown).expect_err("it is void");
}

#[test]
fn what_no_one_wrote_is_told() {
    let mut block = Block::new();
    let violation = block.read(1, 2, 77).expect_err("there is no such write");
    assert!(violation.to_string().contains("block 0: a read from"), "{violation}");
}

#[test]
fn little_is_kept_of_a_block_that_is_written_again_and_again() {
    let mut block = Block::new();
    for round in 0..1000 {
        block.write(round * 10, round * 10 + 5);
    }
    assert!(block.0.blocks[0].len() <= 2, "{:?}", block.0.blocks[0]);
}

/// An operation of a random history: when it really happens is between its begin and its end.
struct Planned {
    begin: Moment,
    happens: Moment,
    end: Moment,
    is_write: bool,
}

fn plan(random: &mut Random, count: usize) -> Vec<Planned> {
    let mut plan: Vec<Planned> = (0..count)
        .map(|_| {
            let begin = random.below(1000) * 4;
            let happens = begin + 1 + random.below(100) * 4;
            let end = happens + 1 + random.below(100) * 4;
            Planned { begin, happens, end, is_write: random.chance(1, 2) }
        })
        .collect();
    plan.sort_by_key(|one| one.happens);
    plan
}

/// Plays a history of one block; `wrong` makes that read see the value before the one that stood there.
fn play(plan: &[Planned], wrong: Option<usize>) -> Result<bool, Violation> {
    let mut moments: Vec<(Moment, u8, usize)> = Vec::new();
    for (index, one) in plan.iter().enumerate() {
        moments.extend([(one.begin, 0, index), (one.happens, 1, index), (one.end, 2, index)]);
    }
    moments.sort_unstable();
    let mut block = Block::new();
    let mut known = vec![None; plan.len()];
    let mut held: Vec<(WriteNumber, Range<Moment>)> = vec![(0, 0..0)];
    let mut is_wrong = false;
    for (now, step, index) in moments {
        let one = &plan[index];
        match step {
            0 if one.is_write => known[index] = Some(block.begin_write(now)),
            0 => known[index] = Some((block.0.begin_read(now, 0..1), 0)),
            1 if one.is_write => held.push((known[index].expect("it has begun").1, one.begin..one.end)),
            1 => {
                let newest = held.len() - 1;
                // Provably wrong if the one before had ended when the newest began, and that when this read began.
                let is_old = wrong == Some(index)
                    && newest > 0
                    && held[newest - 1].1.end < held[newest].1.start
                    && held[newest].1.end < one.begin;
                is_wrong |= is_old;
                known[index].as_mut().expect("it has begun").1 = held[newest - usize::from(is_old)].0;
            }
            _ => {
                let (id, seen) = known[index].expect("it has begun");
                match one.is_write {
                    true => block.0.end_write(now, id)?,
                    false => block.0.end_read(now, id, &[seen])?,
                }
            }
        }
    }
    Ok(is_wrong)
}

#[test]
fn histories_of_a_real_register_pass_and_one_stale_read_in_them_does_not() {
    let mut caught = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let plan = plan(&mut random, 120);
        play(&plan, None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        for index in 0..plan.len() {
            if plan[index].is_write {
                continue;
            }
            match play(&plan, Some(index)) {
                Ok(is_wrong) => assert!(!is_wrong, "seed {seed}: the stale read {index} passed"),
                Err(_) => caught += 1,
            }
        }
    }
    assert!(caught > 20, "the histories had {caught} stale reads");
}

#[test]
fn what_was_given_back_is_zeroes_and_does_not_return() {
    let mut block = Block::new();
    let first = block.write(1, 2);
    let (lost, second) = block.begin_write(3);
    block.0.lose(lost);
    block.0.trimmed(5, 0..1);
    assert_eq!(block.read(6, 7, 0), Ok(()));
    block.read(8, 9, first).expect_err("it was given back");
    block.read(10, 11, second).expect_err("so was what nobody knew of");
    let third = block.write(12, 13);
    assert_eq!(block.read(14, 15, third), Ok(()));
    block.read(16, 17, 0).expect_err("it was written since");
}
