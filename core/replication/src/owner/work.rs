//! What goes through the range locks: changes, reads, questions about allocation, copies.
//!
//! Each kind has a table of its own, with keys that name nothing else. What locks has a second name besides, its [`LockKey`],
//! by which the locks tell who may begin.

use super::copy::CopyWork;
use super::fold::FoldWork;
use super::happened::Known;
use super::interface::{Asker, Payload, Token};
use super::member::At;
use super::member_set::MemberSet;
use super::row_check::RowCheckWork;
use super::rows::{Sent, layer_of};
use crate::locks::{LockKey, Range};
use base::request::{Pieces, StatusOf, StatusRun};
use base::{Instant, RequestTag};
use layout::Target;
use slab::Slab;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use wire::layer;

/// A guest's change, until all that it was sent to have it.
#[derive(Debug)]
pub(crate) struct ChangeWork {
    pub(crate) token: Token,
    pub(crate) place: u16,
    pub(crate) range: Range,
    /// Of rows, what of them is changed.
    pub(crate) target: Option<Target>,
    pub(crate) tag: RequestTag,
    pub(crate) asker: Asker,
    /// The data unit, where it is held as copies whose parity is computed later.
    pub(crate) copies: Option<u8>,
    pub(crate) stage: ChangeStage,
}

impl ChangeWork {
    /// The layer in which members hold it until it is decided, or counted by the parity.
    pub(crate) fn layer(&self) -> u8 {
        match self.copies {
            Some(unit) => layer::COPY_FIRST + unit,
            None => layer_of(self.target),
        }
    }

    /// By what it is known again.
    pub(crate) fn known(&self) -> Known {
        let Range { part, block, count } = self.range;
        let part = layer::layered(layer_of(self.target), part);
        Known { tag: self.tag, place: self.place, part, block, count }
    }
}

/// How far a guest's change is.
#[derive(Debug)]
pub(crate) enum ChangeStage {
    /// It waits for its range or for room in the window. If whoever asked is gone, it is not begun.
    Waiting { payload: Payload, is_abandoned: bool },
    /// Of rows: the other units are read, for the parity that follows.
    Gathering { payload: Payload },
    /// Of rows: what each member gets is known. It waits for room in the window.
    Ready { sent: Sent },
    /// It has a number, and components were asked for it.
    InFlight,
    /// Its guest has the answer; a component in resync does not have the change. Its range is its own until then, and may be read.
    AcknowledgedPendingResync,
}

/// A guest's read.
#[derive(Debug)]
pub(crate) struct ReadWork {
    pub(crate) token: Token,
    pub(crate) place: u16,
    pub(crate) range: Range,
    /// Members that answered "damaged" to what is being read.
    pub(crate) damaged: MemberSet,
    pub(crate) began: Instant,
    /// The position that it reads from, of rows.
    pub(crate) position: Option<u8>,
    /// Most blocks that are asked for at once: all, until every member has damaged blocks among them.
    pub(crate) step: u16,
    /// Blocks read so far, from the beginning of the range, and what they hold.
    pub(crate) read: u16,
    pub(crate) pieces: Pieces,
    /// What is damaged on members, to be written again.
    pub(crate) mends: Vec<(u8, Range)>,
    /// Whether too many members have damaged blocks there.
    pub(crate) is_lost: bool,
    /// The snapshot whose view it is; 0: none.
    pub(crate) snapshot: u32,
}

impl ReadWork {
    /// What is asked for next.
    pub(crate) fn next(&self) -> Range {
        let Range { part, block, count } = self.range;
        Range { part, block: block + self.read, count: self.step.min(count - self.read) }
    }
}

/// A question about allocation. It locks all its parts at once; changes lock one range each, so nobody waits for it while it
/// waits for them.
#[derive(Debug)]
pub(crate) struct StatusWork {
    pub(crate) token: Token,
    pub(crate) of: StatusOf,
    pub(crate) place: u16,
    pub(crate) part: u32,
    pub(crate) count: u16,
    /// Members that are still to answer.
    pub(crate) outstanding: u8,
    /// What those told that have answered: of rows, whatever one of them calls set.
    pub(crate) told: Option<Vec<StatusRun>>,
    /// Whether it is asked again once all have answered, for one could not.
    pub(crate) is_again: bool,
}

/// Something that locks, by its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Change(Key<ChangeWork>),
    Read(Key<ReadWork>),
    Status(Key<StatusWork>),
    Copy(Key<CopyWork>),
    Fold(Key<FoldWork>),
    RowCheck(Key<RowCheckWork>),
}

/// Something that needs leases, or a component that can be read from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader {
    Read(Key<ReadWork>),
    Status(Key<StatusWork>),
}

/// Names one of a table.
pub(crate) struct Key<T> {
    index: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Key<T> {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.index.fmt(f)
    }
}

/// Works of one kind, each with its name at the locks.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Slab<(LockKey, T)>,
}

impl<T> Table<T> {
    fn insert(&mut self, lock: LockKey, work: T) -> Key<T> {
        Key { index: self.entries.insert((lock, work)) as u32, of: PhantomData }
    }

    /// The name at the locks.
    pub(crate) fn lock_key(&self, key: Key<T>) -> LockKey {
        self.entries[key.index as usize].0
    }

    /// Whether it is there; the key of one that is gone may name another.
    pub(crate) fn contains(&self, key: Key<T>) -> bool {
        self.entries.contains(key.index as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, (_, work))| work)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, (_, work))| work)
    }
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Slab::new() }
    }
}

impl<T> Index<Key<T>> for Table<T> {
    type Output = T;

    fn index(&self, key: Key<T>) -> &T {
        &self.entries[key.index as usize].1
    }
}

impl<T> IndexMut<Key<T>> for Table<T> {
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        &mut self.entries[key.index as usize].1
    }
}

/// Everything that locks.
#[derive(Debug, Default)]
pub(crate) struct Works {
    all: Slab<Work>,
    pub(crate) changes: Table<ChangeWork>,
    pub(crate) reads: Table<ReadWork>,
    pub(crate) statuses: Table<StatusWork>,
    pub(crate) copies: Table<CopyWork>,
    pub(crate) folds: Table<FoldWork>,
    pub(crate) row_checks: Table<RowCheckWork>,
}

impl Works {
    pub(crate) fn add_change(&mut self, work: ChangeWork) -> Key<ChangeWork> {
        add(&mut self.all, &mut self.changes, work, Work::Change)
    }

    pub(crate) fn add_read(&mut self, work: ReadWork) -> Key<ReadWork> {
        add(&mut self.all, &mut self.reads, work, Work::Read)
    }

    pub(crate) fn add_status(&mut self, work: StatusWork) -> Key<StatusWork> {
        add(&mut self.all, &mut self.statuses, work, Work::Status)
    }

    pub(crate) fn add_copy(&mut self, work: CopyWork) -> Key<CopyWork> {
        add(&mut self.all, &mut self.copies, work, Work::Copy)
    }

    pub(crate) fn add_fold(&mut self, work: FoldWork) -> Key<FoldWork> {
        add(&mut self.all, &mut self.folds, work, Work::Fold)
    }

    pub(crate) fn add_row_check(&mut self, work: RowCheckWork) -> Key<RowCheckWork> {
        add(&mut self.all, &mut self.row_checks, work, Work::RowCheck)
    }

    pub(crate) fn remove_row_check(&mut self, key: Key<RowCheckWork>) -> (LockKey, RowCheckWork) {
        remove(&mut self.all, &mut self.row_checks, key)
    }

    pub(crate) fn remove_fold(&mut self, key: Key<FoldWork>) -> (LockKey, FoldWork) {
        remove(&mut self.all, &mut self.folds, key)
    }

    pub(crate) fn remove_change(&mut self, key: Key<ChangeWork>) -> (LockKey, ChangeWork) {
        remove(&mut self.all, &mut self.changes, key)
    }

    pub(crate) fn remove_read(&mut self, key: Key<ReadWork>) -> (LockKey, ReadWork) {
        remove(&mut self.all, &mut self.reads, key)
    }

    pub(crate) fn remove_status(&mut self, key: Key<StatusWork>) -> (LockKey, StatusWork) {
        remove(&mut self.all, &mut self.statuses, key)
    }

    pub(crate) fn remove_copy(&mut self, key: Key<CopyWork>) -> (LockKey, CopyWork) {
        remove(&mut self.all, &mut self.copies, key)
    }

    /// What has that name at the locks.
    pub(crate) fn of(&self, lock: LockKey) -> Work {
        self.all[lock.0 as usize]
    }

    /// The tokens of guests that wait for an answer.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        self.all.iter().filter_map(|(_, work)| match *work {
            Work::Change(key) => match &self.changes[key] {
                ChangeWork { stage: ChangeStage::AcknowledgedPendingResync, .. } => None,
                change => Some(change.token),
            },
            Work::Read(key) => Some(self.reads[key].token),
            Work::Status(key) => Some(self.statuses[key].token),
            Work::Copy(_) | Work::Fold(_) | Work::RowCheck(_) => None,
        })
    }

    /// Whether one is about a member, or remembers something of it.
    pub(crate) fn name(&self, at: At) -> bool {
        let is_of_read = |read: &ReadWork| {
            read.place == at.place
                && (read.damaged.contains(at.member)
                    || read.mends.iter().any(|(member, _)| *member == at.member))
        };
        self.reads.iter().any(is_of_read)
            || self.copies.iter().any(|copy| copy.names(at))
            || self.row_checks.iter().any(|check| check.item.place == at.place)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn add<T>(all: &mut Slab<Work>, table: &mut Table<T>, work: T, of: impl FnOnce(Key<T>) -> Work) -> Key<T> {
    let entry = all.vacant_entry();
    let key = table.insert(LockKey(entry.key() as u32), work);
    entry.insert(of(key));
    key
}

fn remove<T>(all: &mut Slab<Work>, table: &mut Table<T>, key: Key<T>) -> (LockKey, T) {
    let (lock, work) = table.entries.remove(key.index as usize);
    all.remove(lock.0 as usize);
    (lock, work)
}
