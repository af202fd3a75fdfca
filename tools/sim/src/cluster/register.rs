//! What a block may read as while several clients write it: a register, checked for linearizability.
//!
//! Every write has a value of its own. A write takes effect once, between its beginning and its answer: when a read has
//! seen it, that has happened, and once something else has taken its place it must not come back.
//!
//! One exception is known and counted (docs/design/0007, "A request takes effect once"): of rows few members know which requests have
//! happened. If these are replaced while a request goes unanswered for long, it is done again.

use crate::model::Value;
use std::collections::BTreeMap;

/// For how long a request must be unanswered to be done again.
const LONG_NS: u64 = 3_000_000_000;

/// In a block of a clone: what it has from its origin, which nobody has read yet. No value of a write.
const INHERITED: Value = Value::MAX;

/// A block of a disk.
pub type Block = u64;

/// A write that has not been answered.
#[derive(Debug, Clone)]
struct Pending {
    value: Value,
    began: u64,
    asked_at: u64,
    /// Whether somebody has read it: it has taken effect.
    is_seen: bool,
    /// Since when its client is gone and known to be: a read that begins after that decides whether it took effect.
    undecided_since: Option<u64>,
}

#[derive(Debug, Clone)]
struct State {
    /// What may stand there by the writes that were answered or seen, each with the time at which it was.
    current: Vec<(Value, u64)>,
    pending: Vec<Pending>,
}

impl State {
    fn new(is_of_clone: bool) -> State {
        State { current: vec![(if is_of_clone { INHERITED } else { 0 }, 0)], pending: Vec::new() }
    }
}

/// From when on a value may stand in a block, and until when.
type Lasting = (u64, u64);

/// A write as a view may have it or not.
#[derive(Debug, Clone, Copy)]
struct Written {
    value: Value,
    began: u64,
    /// When it was acknowledged.
    ended: Option<u64>,
    /// The same in the time that all disks share.
    moments: (u64, Option<u64>),
}

/// What a view was read as, block by block, and when that may have stood there.
type Found<'a> = (&'a Block, &'a Value, Vec<Lasting>);

/// Whether there is one moment between `asked` and `taken` at which each disk read as its view was read.
///
/// # Errors
/// The blocks of the disks that contradict one another at each moment.
pub(crate) fn at_one_moment(
    views: &[(&Registers, &BTreeMap<Block, Value>)],
    asked: u64,
    taken: u64,
) -> Result<(), String> {
    let found: Vec<Vec<Found<'_>>> = views.iter().map(|(registers, view)| registers.moments(view)).collect();
    let begins = found.iter().flatten().flat_map(|(_, _, spans)| spans.iter().map(|span| span.0));
    let mut moments: Vec<u64> = begins.filter(|at| (asked..=taken).contains(at)).chain([asked]).collect();
    moments.sort_unstable();
    moments.dedup();
    // What begins and ends within one nanosecond may have come in either order.
    let fits = |at: u64, spans: &[Lasting]| spans.iter().any(|span| span.0 <= at && at <= span.1);
    let wrong = |at: u64| {
        let disks = found.iter().enumerate();
        disks
            .flat_map(|(disk, all)| all.iter().map(move |one| (disk, one)))
            .find(|(_, one)| !fits(at, &one.2))
    };
    let mut all = Vec::new();
    for at in moments {
        match wrong(at) {
            None => return Ok(()),
            Some((disk, (block, value, spans))) => {
                all.push(format!("not at {at}: block {block} of disk {disk} reads {value:x}, {spans:?}"));
            }
        }
    }
    Err(format!("at no moment from {asked} to {taken} did all disks read so: {}", all.join("; ")))
}

/// All blocks of a disk.
#[derive(Debug, Default)]
pub struct Registers {
    blocks: BTreeMap<Block, State>,
    /// All writes that ever were, for the views of snapshots; none if there are none.
    history: Option<BTreeMap<Block, Vec<Written>>>,
    clock: u64,
    /// Nanoseconds since the run began.
    now: u64,
    /// Whether blocks that nobody wrote read as those of another disk's snapshot, which whoever reads them first tells.
    is_clone: bool,
    /// What was told of these.
    inherited: BTreeMap<Block, Value>,
    /// The time that all disks share.
    moment: u64,
    /// Whether a write that was long unanswered may be done again.
    may_repeat: bool,
    /// Times that one was.
    repeated: u64,
}

impl Registers {
    /// Those of a disk with rows, where a write that was long unanswered may be done again.
    pub fn of_rows() -> Registers {
        Registers { may_repeat: true, ..Registers::default() }
    }

    /// Blocks that nobody wrote read as those of another disk's snapshot. Until now nobody has: what was read of it was that it is empty.
    pub fn inherit(&mut self) {
        self.blocks.clear();
        self.is_clone = true;
    }

    /// What blocks of that snapshot were read as.
    pub fn inherited(&self) -> &BTreeMap<Block, Value> {
        &self.inherited
    }

    /// Remembers all writes from now on.
    pub fn remember(&mut self) {
        self.history = Some(BTreeMap::new());
    }

    /// The time goes on.
    pub fn set_time(&mut self, now: u64) {
        self.now = now;
    }

    /// The time that all disks share goes on.
    pub(crate) fn set_moment(&mut self, moment: u64) {
        self.moment = moment;
    }

    /// Writes that were done again.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Whether a write of the block is under way, or one of which nobody knows whether it happened.
    pub fn is_busy(&self, block: Block) -> bool {
        self.blocks.get(&block).is_some_and(|state| !state.pending.is_empty())
    }

    /// The time, for [`Registers::check`].
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// A write begins.
    pub fn begin(&mut self, block: Block, value: Value) {
        self.clock += 1;
        let pending =
            Pending { value, began: self.clock, asked_at: self.now, is_seen: false, undecided_since: None };
        self.blocks.entry(block).or_insert_with(|| State::new(self.is_clone)).pending.push(pending);
        if let Some(history) = &mut self.history {
            let moments = (self.moment, None);
            history.entry(block).or_default().push(Written {
                value,
                began: self.clock,
                ended: None,
                moments,
            });
        }
    }

    /// A write was acknowledged.
    pub fn acknowledge(&mut self, block: Block, value: Value) {
        self.clock += 1;
        let state = self.blocks.get_mut(&block).expect("a write that ends began");
        let index = state.pending.iter().position(|one| one.value == value);
        let ended = state.pending.remove(index.expect("a write that ends began"));
        let written = self.history.as_mut().and_then(|history| history.get_mut(&block));
        if let Some(one) = written.and_then(|all| all.iter_mut().find(|one| one.began == ended.began)) {
            (one.ended, one.moments.1) = (Some(self.clock), Some(self.moment));
        }
        if !ended.is_seen {
            // It took effect after what was known when it began; of what became known since, nobody can tell.
            state.current.retain(|(_, since)| *since > ended.began);
            state.current.push((value, self.clock));
        } else if self.may_repeat
            && self.now > ended.asked_at + LONG_NS
            && !state.current.iter().any(|(current, _)| *current == value)
        {
            // It was done again, or not: the next read tells.
            state.current.push((value, 0));
        }
    }

    /// A write ended, or its client did, without anyone knowing whether it happened: the next read of the block decides.
    pub fn undecide(&mut self, block: Block, value: Value) {
        self.clock += 1;
        let state = self.blocks.get_mut(&block).expect("a write that ends began");
        // A trim's value is not its own: one that was seen, and replaced by another, is not found.
        let pending =
            state.pending.iter_mut().find(|one| one.value == value && one.undecided_since.is_none());
        pending.expect("a write that ends began").undecided_since = Some(self.clock);
    }

    /// Whether the disk read like that at one moment between `asked` and `taken`.
    ///
    /// # Errors
    /// A block that contradicts.
    pub fn check_view(&self, found: &BTreeMap<Block, Value>, asked: u64, taken: u64) -> Result<(), String> {
        let Some(history) = &self.history else { return Ok(()) };
        let mut moments = vec![asked];
        let mut allowed: Vec<(Block, Value, Vec<Lasting>)> = Vec::new();
        for (block, value) in found {
            let written = history.get(block).map_or(&[][..], Vec::as_slice);
            let first = self.before(*block, *value, written);
            let same = written.iter().chain([&first]).filter(|one| one.value == *value);
            // From its beginning on, until something is acknowledged that began after its own end.
            let lasts = |one: &Written| {
                let after = |other: &&Written| one.ended.is_some_and(|ended| other.began > ended);
                let until = written.iter().filter(after).filter_map(|other| other.ended).min();
                (one.began, until.unwrap_or(u64::MAX))
            };
            let spans: Vec<Lasting> = same.map(lasts).collect();
            moments.extend(spans.iter().map(|span| span.0).filter(|at| (asked..=taken).contains(at)));
            allowed.push((*block, *value, spans));
        }
        let is_right = |at: u64| {
            let fits = |span: &Lasting| span.0 <= at && at < span.1;
            allowed.iter().find(|(_, _, spans)| !spans.iter().any(fits))
        };
        moments.sort_unstable();
        let mut wrong = None;
        for at in moments {
            match is_right(at) {
                None => return Ok(()),
                Some(block) => wrong = Some((at, block)),
            }
        }
        let (at, (block, value, spans)) = wrong.expect("there is a moment");
        let written = history.get(block);
        Err(format!(
            "at no moment from {asked} to {taken} did the disk read so: not at {at}, for block {block} reads as {value:x}, {spans:?}; {written:x?}"
        ))
    }

    /// A block of a clone was read: what can be no write of it is what it has from its origin, if it may still have that.
    fn inherit_value(&mut self, block: Block, found: Value) {
        let state = self.blocks.entry(block).or_insert_with(|| State::new(self.is_clone));
        let may_have = self.is_clone && state.current.contains(&(INHERITED, 0));
        if may_have && !state.pending.iter().any(|one| one.value == found) {
            state.current.iter_mut().filter(|one| **one == (INHERITED, 0)).for_each(|one| one.0 = found);
            self.inherited.insert(block, found);
        }
    }

    /// What a block that reads as `value` had before anybody wrote it. Of a clone that is what it has from its origin, as far as that is known.
    fn before(&self, block: Block, value: Value, written: &[Written]) -> Written {
        let is_written = written.iter().any(|one| one.value == value);
        let inherited = self.inherited.get(&block).copied();
        let value = match self.is_clone {
            true => inherited.unwrap_or(if is_written { 0 } else { value }),
            false => 0,
        };
        Written { value, began: 0, ended: Some(0), moments: (0, Some(0)) }
    }

    /// When what a view was read as may have stood there, in the time that all disks share.
    fn moments<'a>(&self, found: &'a BTreeMap<Block, Value>) -> Vec<Found<'a>> {
        let Some(history) = &self.history else { return Vec::new() };
        let spans = |(block, value): (&'a Block, &'a Value)| {
            let written = history.get(block).map_or(&[][..], Vec::as_slice);
            let first = self.before(*block, *value, written);
            let lasts = |one: &Written| {
                let after = |other: &&Written| one.ended.is_some_and(|ended| other.began > ended);
                let until = written.iter().filter(after).filter_map(|other| other.moments.1).min();
                (one.moments.0, until.unwrap_or(u64::MAX))
            };
            let same = written.iter().chain([&first]).filter(|one| one.value == *value);
            (block, value, same.map(lasts).collect())
        };
        found.iter().map(spans).collect()
    }

    /// Checks what a read that began at `began` found.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&mut self, block: Block, found: Value, began: u64) -> Result<(), String> {
        self.clock += 1;
        let clock = self.clock;
        self.inherit_value(block, found);
        let state = self.blocks.entry(block).or_insert_with(|| State::new(self.is_clone));
        if state.current.iter().any(|(_, since)| *since > began) {
            // Decided while the read was under way: what stood before is a fair answer too.
            return Ok(());
        }
        let is_late = |one: &Pending| one.value == found && one.is_seen && self.now > one.asked_at + LONG_NS;
        if let Some((_, since)) = state.current.iter().find(|(value, _)| *value == found) {
            self.repeated += u64::from(*since == 0 && state.current.len() > 1);
            if state.current.len() > 1 {
                state.current = vec![(found, clock)];
            }
        } else if let Some(pending) = state.pending.iter_mut().find(|one| one.value == found && !one.is_seen)
        {
            pending.is_seen = true;
            state.current = vec![(found, clock)];
        } else if self.may_repeat && state.pending.iter().any(is_late) {
            self.repeated += 1;
            state.current = vec![(found, clock)];
        } else {
            let State { current, pending } = state;
            return Err(format!(
                "reads as {found:x}, expected one of {current:x?} or, not seen yet, {pending:x?}"
            ));
        }
        state.pending.retain(|one| one.undecided_since.is_none_or(|since| began < since));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_was_seen_and_replaced_does_not_come_back() {
        let mut registers = Registers::default();
        registers.begin(7, 1);
        registers.check(7, 1, registers.clock()).expect("it is under way");
        registers.begin(7, 2);
        registers.acknowledge(7, 2);
        registers.check(7, 2, registers.clock()).expect("acknowledged after it");
        registers.acknowledge(7, 1);
        registers.check(7, 1, registers.clock()).expect_err("it took effect before");
        registers.check(7, 2, registers.clock()).expect("still there");
    }

    #[test]
    fn of_rows_a_write_that_was_long_unanswered_may_be_done_again() {
        for answered_at in [LONG_NS, LONG_NS + 1] {
            let mut registers = Registers::of_rows();
            registers.begin(7, 1);
            registers.check(7, 1, registers.clock()).expect("it is under way");
            registers.begin(7, 2);
            registers.acknowledge(7, 2);
            registers.check(7, 2, registers.clock()).expect("acknowledged after it");
            registers.set_time(answered_at);
            registers.acknowledge(7, 1);
            let is_late = answered_at > LONG_NS;
            assert_eq!(registers.check(7, 1, registers.clock()).is_ok(), is_late);
            assert_eq!(registers.repeated(), u64::from(is_late));
            assert_eq!(
                registers.check(7, 2, registers.clock()).is_ok(),
                !is_late,
                "one of them stands there"
            );
        }
    }

    #[test]
    fn of_two_writes_at_once_either_may_be_the_last_until_somebody_reads() {
        let mut registers = Registers::default();
        registers.begin(7, 1);
        registers.begin(7, 2);
        registers.acknowledge(7, 2);
        registers.acknowledge(7, 1);
        registers.check(7, 0, registers.clock()).expect_err("both were acknowledged");
        registers.check(7, 2, registers.clock()).expect("the first may have come before");
        registers.check(7, 1, registers.clock()).expect_err("it is told now that it did");
    }

    #[test]
    fn what_two_disks_read_as_was_so_at_one_moment_or_not() {
        let mut disks = [Registers::default(), Registers::default()];
        disks.iter_mut().for_each(Registers::remember);
        // The first disk is written from 10 to 20, the second from 30 to 40.
        for (disk, (began, ended)) in [(10, 20), (30, 40)].into_iter().enumerate() {
            disks[disk].set_moment(began);
            disks[disk].begin(7, 1);
            disks[disk].set_moment(ended);
            disks[disk].acknowledge(7, 1);
        }
        let check = |values: [Value; 2], is_fair: bool| {
            let found = values.map(|value| BTreeMap::from([(7, value)]));
            let views: Vec<_> = disks.iter().zip(&found).collect();
            assert_eq!(at_one_moment(&views, 5, 50).is_ok(), is_fair, "{values:?}");
        };
        check([0, 0], true);
        check([1, 0], true);
        check([1, 1], true);
        check([0, 1], false);
    }

    #[test]
    fn the_next_read_decides_about_a_write_whose_client_is_gone() {
        let mut registers = Registers::default();
        registers.begin(7, 1);
        registers.undecide(7, 1);
        assert!(registers.is_busy(7));
        registers.check(7, 0, registers.clock()).expect("it did not happen");
        assert!(!registers.is_busy(7));
        registers.check(7, 1, registers.clock()).expect_err("nor does it now");
    }
}
