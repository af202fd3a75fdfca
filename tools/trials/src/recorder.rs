//! What each block may hold: every write and read of it, and whether their results have an order that explains them.
//!
//! A block is a register. Each write has a number of its own, so it is known which write every read saw, and whether there
//! is an order that keeps real time (linearizability) shows in the *zones* of the writes: from the first end of an
//! operation with that value (its write, or a read that saw it) to the last begin of one. Where the end comes first, the
//! block held the value all that time, and nothing else; where it does not, some moment between is enough (Gibbons and
//! Korach, "Testing shared memories", SIAM J. Comput. 26, 1997). So an acknowledged write is never missed, an older value
//! is never seen after a newer one, and nothing is said of writes that are under way or whose outcome nobody knows.
//!
//! Blocks count singly: nothing is promised of several blocks written together. Must never wait for anything.

use crate::stamp::WriteNumber;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Nanoseconds since the campaign began.
pub type Moment = u64;

/// Later than all that happens: the end of what has not ended.
const NEVER: Moment = Moment::MAX;

/// One value of a block.
#[derive(Debug, Clone, Copy)]
struct Value {
    write: WriteNumber,
    /// When its write was sent.
    begun: Moment,
    /// First end of an operation with it.
    ended_first: Moment,
    /// Last begin of one.
    begun_last: Moment,
}

/// What is remembered of every write.
#[derive(Debug, Clone, Copy)]
struct Sent {
    client: u32,
    begun: Moment,
    ended: Moment,
}

/// An operation under way.
#[derive(Debug)]
struct Operation {
    begun: Moment,
    blocks: Range<u64>,
    /// Zero for a read.
    write: WriteNumber,
}

/// Names an operation under way; later ones have greater names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId(u64);

/// What a read saw that no order explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The block.
    pub block: u64,
    /// The write that was seen, in words.
    pub seen: String,
    /// When the read began and ended.
    pub read: (Moment, Moment),
    /// Why that cannot be.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |moment: Moment| moment as f64 / 1e6;
        write!(
            f,
            "block {}: a read from {:.3} to {:.3} ms saw write {}, {}",
            self.block,
            ms(self.read.0),
            ms(self.read.1),
            self.seen,
            self.why
        )
    }
}

/// All blocks of an area.
#[derive(Debug)]
pub struct Recorder {
    blocks: Vec<Vec<Value>>,
    under_way: BTreeMap<OperationId, Operation>,
    next_operation: u64,
    /// Each write by number: to tell of what is forgotten otherwise.
    history: Vec<Sent>,
}

impl Recorder {
    /// For an area of so many blocks, all of them zeroes.
    pub fn new(blocks: u64) -> Recorder {
        let zeroes = Value { write: 0, begun: 0, ended_first: 0, begun_last: 0 };
        Recorder {
            blocks: vec![vec![zeroes]; blocks as usize],
            under_way: BTreeMap::new(),
            next_operation: 1,
            history: vec![Sent { client: 0, begun: 0, ended: 0 }],
        }
    }

    /// Blocks of the area.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// A write is about to be sent; gives its number, which is to be stamped into it.
    pub fn begin_write(
        &mut self,
        now: Moment,
        client: u32,
        blocks: Range<u64>,
    ) -> (OperationId, WriteNumber) {
        let write = self.history.len() as WriteNumber;
        self.history.push(Sent { client, begun: now, ended: NEVER });
        for block in blocks.clone() {
            let value = Value { write, begun: now, ended_first: NEVER, begun_last: now };
            self.blocks[block as usize].push(value);
        }
        (self.begin(Operation { begun: now, blocks, write }), write)
    }

    /// A read is about to be sent.
    pub fn begin_read(&mut self, now: Moment, blocks: Range<u64>) -> OperationId {
        assert!(blocks.end <= self.block_count(), "reads stay in the area");
        self.begin(Operation { begun: now, blocks, write: 0 })
    }

    fn begin(&mut self, operation: Operation) -> OperationId {
        let id = OperationId(self.next_operation);
        self.next_operation += 1;
        self.under_way.insert(id, operation);
        id
    }

    /// A write was acknowledged.
    ///
    /// # Errors
    /// When reads had seen another value on both sides of it.
    pub fn end_write(&mut self, now: Moment, id: OperationId) -> Result<(), Violation> {
        let operation = self.under_way.remove(&id).expect("a write ends once");
        self.history[operation.write as usize].ended = now;
        let horizon = self.horizon(now);
        let mut result = Ok(());
        for block in operation.blocks {
            let values = &mut self.blocks[block as usize];
            let value = values.iter_mut().find(|value| value.write == operation.write);
            // It may have been overwritten, seen to be so, and forgotten before its own answer came.
            let Some(value) = value else { continue };
            value.ended_first = value.ended_first.min(now);
            let changed = *value;
            let read = (operation.begun, now);
            let found = conflict(values, changed, &self.history).map(|why| Violation {
                block,
                seen: told(&self.history, changed.write),
                read,
                why,
            });
            prune(values, horizon);
            result = result.and(found.map_or(Ok(()), Err));
        }
        result
    }

    /// A read brought these writes, one of each block.
    ///
    /// # Errors
    /// The first block whose value cannot be.
    pub fn end_read(&mut self, now: Moment, id: OperationId, seen: &[WriteNumber]) -> Result<(), Violation> {
        let operation = self.under_way.remove(&id).expect("a read ends once");
        assert_eq!(seen.len() as u64, operation.blocks.end - operation.blocks.start, "a value of each block");
        let horizon = self.horizon(now);
        let mut result = Ok(());
        for (block, &write) in operation.blocks.zip(seen) {
            let values = &mut self.blocks[block as usize];
            let read = (operation.begun, now);
            let found = saw(values, read, write, &self.history);
            let found = found.map(|why| Violation { block, seen: told(&self.history, write), read, why });
            prune(values, horizon);
            result = result.and(found.map_or(Ok(()), Err));
        }
        result
    }

    /// The operation's answer will never come: a read tells nothing, a write may be there or not.
    pub fn lose(&mut self, id: OperationId) {
        self.under_way.remove(&id);
    }

    /// All is quiet and a block was read: from now on it holds this write and nothing else. What nobody saw and nobody
    /// acknowledged is void, and must not come back.
    pub fn settle(&mut self, now: Moment, block: u64, write: WriteNumber) {
        assert!(self.under_way.is_empty(), "nothing is quiet while operations are under way");
        self.blocks[block as usize] = vec![Value { write, begun: 0, ended_first: now, begun_last: now }];
    }

    /// Blocks were given back while nothing of them was under way: from now on they are zeroes, and what they held must not
    /// come back.
    pub fn trimmed(&mut self, now: Moment, blocks: Range<u64>) {
        let overlaps = |one: &Operation| one.blocks.start < blocks.end && blocks.start < one.blocks.end;
        assert!(!self.under_way.values().any(overlaps), "a trim beside operations on the same blocks");
        for values in &mut self.blocks[blocks.start as usize..blocks.end as usize] {
            *values = vec![Value { write: 0, begun: now, ended_first: now, begun_last: now }];
        }
    }

    /// Before this moment nothing that is still under way began.
    fn horizon(&self, now: Moment) -> Moment {
        self.under_way.values().next().map_or(now, |operation| operation.begun)
    }
}

/// A write in words.
fn told(history: &[Sent], write: WriteNumber) -> String {
    let ms = |moment: Moment| moment as f64 / 1e6;
    let Some(sent) = history.get(write as usize) else { return format!("{write}, which nobody sent") };
    let end = match sent.ended {
        NEVER => "never acknowledged".to_owned(),
        ended => format!("acknowledged at {:.3} ms", ms(ended)),
    };
    format!("{write} (client {}, sent at {:.3} ms, {end})", sent.client, ms(sent.begun))
}

/// Notes what a read saw; why that cannot be, if so.
fn saw(
    values: &mut [Value],
    (begun, ended): (Moment, Moment),
    write: WriteNumber,
    history: &[Sent],
) -> Option<String> {
    let newest = values.iter().filter(|value| value.ended_first < begun).max_by_key(|value| value.begun);
    let newest = newest.map_or(0, |value| value.write);
    let Some(value) = values.iter().find(|value| value.write == write) else {
        let newest = told(history, newest);
        return Some(format!("which is void or was overwritten; newest known by then: {newest}"));
    };
    if ended < value.begun {
        return Some("which was sent only afterwards".to_owned());
    }
    let changed = Value {
        ended_first: value.ended_first.min(ended),
        begun_last: value.begun_last.max(begun),
        ..*value
    };
    let found = conflict(values, changed, history);
    // What cannot be is told once, and later reads are held to what can.
    if found.is_none() {
        values.iter_mut().filter(|value| value.write == write).for_each(|value| *value = changed);
    }
    found
}

/// Why a value and another of the same block cannot both have been there, if they cannot.
fn conflict(values: &[Value], changed: Value, history: &[Sent]) -> Option<String> {
    let other = values.iter().find(|other| other.write != changed.write && do_conflict(&changed, other))?;
    let ms = |moment: Moment| moment as f64 / 1e6;
    Some(format!(
        "which was there by {:.3} ms; but write {} was there by {:.3} ms and last looked at from {:.3} ms on",
        ms(changed.ended_first),
        told(history, other.write),
        ms(other.ended_first),
        ms(other.begun_last)
    ))
}

fn do_conflict(one: &Value, other: &Value) -> bool {
    let held = |value: &Value| value.ended_first < value.begun_last;
    match (held(one), held(other)) {
        (true, true) => one.ended_first.max(other.ended_first) < one.begun_last.min(other.begun_last),
        (true, false) => is_within(other, one),
        (false, true) => is_within(one, other),
        (false, false) => false,
    }
}

/// Whether all moments at which `inner` can have been there are moments at which `outer` was.
fn is_within(inner: &Value, outer: &Value) -> bool {
    outer.ended_first < inner.begun_last && inner.ended_first < outer.begun_last
}

/// Forgets values that nothing that ends later may see: another was there after them, before all that is under way.
fn prune(values: &mut Vec<Value>, horizon: Moment) {
    if values.len() == 1 {
        return;
    }
    let successors: Vec<(WriteNumber, Moment)> = values
        .iter()
        .filter(|value| value.ended_first < horizon)
        .map(|value| (value.write, value.begun))
        .collect();
    values.retain(|value| {
        let is_over =
            |&(write, begun): &(WriteNumber, Moment)| write != value.write && value.ended_first < begun;
        !successors.iter().any(is_over)
    });
}

#[cfg(test)]
mod tests;
