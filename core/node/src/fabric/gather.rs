//! Reassembles resync slices into full parts.
//!
//! An owner sends the copy of a whole part in slices, so that guests' requests on the same link do not wait behind
//! all of it. Written one by one, slices would all go through the log, and be written twice; a whole part is written
//! straight to its extent. So the first slice of a part waits here for the others. It is accepted like any change, and completes
//! when the whole part is stable.
//!
//! The other slices may never come. The slices are passed to the group as they are when another change of the part
//! comes between, when the component is asked for its state or data, or when the next slice takes too long. Later
//! slices then follow one by one.

use crate::limits;
use base::request::Buffers;
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, Instant, WriteId};
use replication::components::{Store, StoreOp};
use replication::limits::{COPY_SLICE_BLOCKS, SILENCE};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use wire::{EntryKind, layer};

const BLOCKS: u16 = BLOCKS_PER_EXTENT as u16;

// An owner that waits for the first of the slices does not take the node for silent.
const _: () =
    assert!(limits::GATHER_WAIT.as_millis() * (BLOCKS / COPY_SLICE_BLOCKS) as u128 <= SILENCE.as_millis());

/// A part that is not complete.
#[derive(Debug)]
struct Gather {
    id: WriteId,
    /// Number of slices, from the first on.
    blocks: u16,
    data: Buffers,
    checksums: SmallVec<[u32; 2]>,
    /// The waiting requests.
    ops: Vec<StoreOp>,
    /// When the wait ends.
    until: Instant,
}

/// A slice that waits with the others of its part, or that was the last of them.
pub(super) struct Taken {
    pub(super) part: u32,
    pub(super) is_whole: bool,
}

/// Parts that wait for their slices.
#[derive(Debug, Default)]
pub(crate) struct Gathers {
    parts: BTreeMap<(ComponentId, u32), Gather>,
    /// Parts passed to a group: the other slices, by the first one.
    others: BTreeMap<StoreOp, Vec<StoreOp>>,
}

impl Gathers {
    /// Whether nothing waits here.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// When a part has waited for long enough.
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

    /// Takes a slice in if it is the first of its part, or the next; otherwise returns it.
    pub(super) fn take(
        &mut self,
        now: Instant,
        op: StoreOp,
        component: ComponentId,
        store: Store,
    ) -> Result<Taken, Store> {
        let Store::Write { id, kind: EntryKind::Copy, part, layer, block, data, checksums } = store else {
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
            _ => Err(Store::Write { id, kind: EntryKind::Copy, part, layer, block, data, checksums }),
        }
    }

    /// Takes out the slices of a part.
    pub(super) fn release(&mut self, (component, part): (ComponentId, u32)) -> Option<(StoreOp, Store)> {
        let Gather { id, data, checksums, mut ops, .. } = self.parts.remove(&(component, part))?;
        let op = ops.remove(0);
        if !ops.is_empty() {
            self.others.insert(op, ops);
        }
        let (kind, layer) = (EntryKind::Copy, layer::CONTENT);
        Some((op, Store::Write { id, kind, part, layer, block: 0, data, checksums }))
    }

    /// The parts of a component that wait, and that a store of it must not overtake.
    pub(super) fn before(&self, component: ComponentId, store: &Store) -> Vec<u32> {
        let of_it = self.parts.range((component, 0)..=(component, u32::MAX)).map(|((_, part), _)| *part);
        match store {
            Store::Write { part, .. } | Store::Trim { part, .. } => of_it.filter(|one| one == part).collect(),
            Store::Read { .. } | Store::Allocation { .. } | Store::Changed { .. } => Vec::new(),
            Store::Checksums { .. } | Store::View { .. } => Vec::new(),
            Store::DropSnapshot { .. } | Store::Snapshots => Vec::new(),
            Store::LateSnapshot { .. } | Store::Backfill(_) | Store::SyncBackfill { .. } => Vec::new(),
            Store::Damage | Store::Mend(_) => Vec::new(),
            Store::Settle { .. } | Store::Forget { .. } => Vec::new(),
            Store::Promote { part, .. } => of_it.filter(|one| one == part).collect(),
            Store::Held { .. }
            | Store::Snapshot { .. }
            | Store::State
            | Store::Promise { .. }
            | Store::Create(_)
            | Store::Update(_)
            | Store::Delete => of_it.collect(),
        }
    }
}
