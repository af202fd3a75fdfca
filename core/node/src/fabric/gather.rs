//! Slices of a copy, put together to the whole part that they are of.
//!
//! An owner sends the copy of a whole part in slices, so that what guests ask of the same link does not stand behind all of it. Written
//! one by one they would all go through the log, twice to the device; the whole part goes straight to where it stays. So the first
//! slice of a part waits here for the others. It is accepted like any change, but not done: its owner is told when the whole is
//! stable.
//!
//! Nothing relies on the others coming. Where another change of the part comes between, where the component is asked what it is or
//! holds, or where the next slice takes too long, what is there goes to the group as it is; and so does every later slice.

use crate::limits;
use base::request::Buffers;
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, Instant, WriteId};
use replication::components::{Store, StoreOp};
use replication::limits::{COPY_SLICE_BLOCKS, SILENCE};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use wire::EntryKind;

const BLOCKS: u16 = BLOCKS_PER_EXTENT as u16;

// An owner that waits for the first of the slices takes nobody for silent.
const _: () =
    assert!(limits::GATHER_WAIT.as_millis() * (BLOCKS / COPY_SLICE_BLOCKS) as u128 <= SILENCE.as_millis());

/// A part that is not complete.
#[derive(Debug)]
struct Gather {
    id: WriteId,
    /// How many are there, from the first on.
    blocks: u16,
    data: Buffers,
    checksums: SmallVec<[u32; 2]>,
    /// Whom to tell.
    ops: Vec<StoreOp>,
    /// When it is not waited for any more.
    until: Instant,
}

/// A slice that waits with the others of its part, or that was the last of them.
pub(super) struct Taken {
    pub(super) part: u32,
    pub(super) is_whole: bool,
}

/// What waits for the rest of its part.
#[derive(Debug, Default)]
pub(crate) struct Gathers {
    parts: BTreeMap<(ComponentId, u32), Gather>,
    /// Of those handed to a group, by the first of their slices: the others.
    others: BTreeMap<StoreOp, Vec<StoreOp>>,
}

impl Gathers {
    /// Whether nothing waits here.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// When something has waited for long enough.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.parts.values().map(|one| one.until).min()
    }

    /// The parts that have waited for too long.
    pub(super) fn overdue(&self, now: Instant) -> Vec<(ComponentId, u32)> {
        if self.is_empty() {
            return Vec::new();
        }
        self.parts.iter().filter(|(_, one)| one.until <= now).map(|(key, _)| *key).collect()
    }

    /// The other slices that end with that one.
    pub(super) fn ended(&mut self, op: StoreOp) -> Vec<StoreOp> {
        self.others.remove(&op).unwrap_or_default()
    }

    /// Takes a slice in if it is the first of its part, or the next; else gives it back.
    pub(super) fn take(
        &mut self,
        now: Instant,
        op: StoreOp,
        component: ComponentId,
        store: Store,
    ) -> Result<Taken, Store> {
        let Store::Write { id, kind: EntryKind::Copy, part, block, data, checksums } = store else {
            return Err(store);
        };
        let count = checksums.len() as u16;
        let until = now + limits::GATHER_WAIT;
        match self.parts.get_mut(&(component, part)) {
            Some(one) if one.id == id && one.blocks == block && block + count <= BLOCKS => {
                one.data.extend(data);
                one.checksums.extend(checksums);
                one.ops.push(op);
                (one.blocks, one.until) = (block + count, until);
                Ok(Taken { part, is_whole: one.blocks == BLOCKS })
            }
            None if block == 0 && count == COPY_SLICE_BLOCKS => {
                let one = Gather { id, blocks: count, data, checksums, ops: vec![op], until };
                self.parts.insert((component, part), one);
                Ok(Taken { part, is_whole: false })
            }
            _ => Err(Store::Write { id, kind: EntryKind::Copy, part, block, data, checksums }),
        }
    }

    /// Takes out what is there of a part.
    pub(super) fn release(&mut self, (component, part): (ComponentId, u32)) -> Option<(StoreOp, Store)> {
        let Gather { id, data, checksums, mut ops, .. } = self.parts.remove(&(component, part))?;
        let op = ops.remove(0);
        if !ops.is_empty() {
            self.others.insert(op, ops);
        }
        Some((op, Store::Write { id, kind: EntryKind::Copy, part, block: 0, data, checksums }))
    }

    /// The parts of a component that wait, and that a store of it must not overtake.
    pub(super) fn before(&self, component: ComponentId, store: &Store) -> Vec<u32> {
        let of_it = self.parts.range((component, 0)..=(component, u32::MAX)).map(|((_, part), _)| *part);
        match store {
            Store::Write { part, .. } | Store::Trim { part, .. } => of_it.filter(|one| one == part).collect(),
            Store::Read { .. } | Store::Allocation { .. } | Store::Changed { .. } => Vec::new(),
            Store::Settle { .. } | Store::Forget { .. } => Vec::new(),
            Store::State | Store::Promise { .. } | Store::Create(_) | Store::Update(_) | Store::Delete => {
                of_it.collect()
            }
        }
    }
}
