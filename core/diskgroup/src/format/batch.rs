//! Batches of the log: a header with records, then the data blocks of the writes among them, in order.
//!
//! One batch is written at a time, so only the last one can be torn. It counts if its header verifies and every data
//! block matches its checksum in the records. Batches are numbered without gaps.
//!
//! What a header says stands twice in its blocks: as the header, and behind it once more as its *copy* with a magic number
//! and a checksum of its own, so that one bad sector does not take away what the batch was (docs/design/0025). A program that
//! knows nothing of copies takes it for padding; headers of such a program have none.

mod components;
mod mapped;

use super::id::{read_id, write_id};
use super::layer::{LayerBlocks, check_range, layered, part_and_held_layer, part_and_layer};
use super::page::ComponentRecord;
use super::{FORMAT_PLAIN, FORMAT_VERSION, FormatError};
use base::bytes::{Reader, Writer};
use base::checksum;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{ComponentId, RequestTag, WriteId};
use smallvec::SmallVec;

pub use super::entry::{ExtentLocation, Origin, WindowEntry};

const MAGIC: u32 = u32::from_le_bytes(*b"DLOG");
const COPY_MAGIC: u32 = u32::from_le_bytes(*b"DLGC");
const SEAL_AT: usize = 8;
/// Bytes before the records.
pub const HEADER_SIZE: usize = 64;
/// Most blocks of a header, with its copy: one buffer.
pub const HEADER_BLOCKS_MAX: u64 = 256;

/// Blocks of a header with `record_bytes` of records, without its copy.
pub fn blocks_of_one(record_bytes: usize) -> u64 {
    ((HEADER_SIZE + record_bytes) as u64).div_ceil(BLOCK_SIZE)
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Blocks of one extent were written; their data follow in this batch. An extent that was free is taken by this.
    Write {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Where that MiB stands.
        location: ExtentLocation,
        /// First block.
        block: u8,
        /// The write's id.
        id: WriteId,
        /// Whose it is.
        origin: Origin,
        /// CRC-32C of each block; as many as there are blocks.
        checksums: SmallVec<[u32; 2]>,
    },
    /// A whole extent was written in place before this batch, to an extent that was free.
    Direct {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Where it stands now.
        location: ExtentLocation,
        /// Where it stood before, on the same member; free from now on.
        replaced: Option<u32>,
        /// The write's id.
        id: WriteId,
        /// Whose it is.
        origin: Origin,
        /// CRC-32C of each block.
        checksums: Box<[u32; BLOCKS_PER_EXTENT]>,
    },
    /// Blocks of one extent read as zeroes from now on.
    Trim {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Where it stands.
        location: ExtentLocation,
        /// First block.
        block: u8,
        /// Blocks less one.
        count_less_one: u8,
        /// The trim's id.
        id: WriteId,
        /// Whose it is.
        origin: Origin,
    },
    /// An extent is free from now on.
    Free {
        /// Whose data stood there.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Where.
        location: ExtentLocation,
        /// The greatest id of a write to it, or the id of the trim that freed it.
        id: WriteId,
        /// Whose doing it is.
        origin: Origin,
    },
    /// A component was made or changed.
    Component {
        /// The member of the group it stands on.
        member: u8,
        /// Its slot there.
        slot: u32,
        /// All of it.
        record: ComponentRecord,
        /// Whether it was there before. A log of before that was told says "no" of all.
        is_change: bool,
    },
    /// A slot became empty.
    ComponentGone {
        /// The member of the group.
        member: u8,
        /// The slot.
        slot: u32,
    },
    /// A page is about to be written.
    PageIntent {
        /// The member of the group.
        member: u8,
        /// The page.
        page: u32,
        /// The version that will be written.
        version: u64,
    },
    /// All changes of a component up to this id are decided.
    Watermark {
        /// The member of the group it stands on.
        member: u8,
        /// Whose.
        component: ComponentId,
        /// The greatest such id.
        id: WriteId,
        /// Those of this epoch and later have happened; of older ones the component may hold what a resync has undone. Releases
        /// that did not tell wrote 0, which is read as the epoch of `id`: that is so of its own changes in any case.
        from_epoch: u32,
    },
    /// A guest's change that must be remembered although its record is no longer in the log, or never was one: the trim
    /// of a part without an extent.
    Entry {
        /// The member of the group that the component stands on.
        member: u8,
        /// Whose.
        component: ComponentId,
        /// Which.
        entry: WindowEntry,
    },
    /// A part has no extent, and had none when a copy of a hole came with this id: a resync from here must tell of it.
    Hole {
        /// The member of the group that the component stands on.
        member: u8,
        /// Whose.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// The greatest id of what made it a hole elsewhere.
        id: WriteId,
    },
    /// A layer of a part holds blocks beside its content (docs/design/0042); their data follow in this batch. They take the place of
    /// what the layer held of them.
    Hold {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// The layer, from 1 on.
        layer: u8,
        /// Where that MiB stands: an extent that was free is taken by this.
        location: ExtentLocation,
        /// First block.
        block: u8,
        /// The write's id.
        id: WriteId,
        /// Whose it is.
        origin: Origin,
        /// CRC-32C of each block; as many as there are blocks.
        checksums: SmallVec<[u32; 2]>,
    },
    /// As a hold, of blocks that were trimmed.
    HoldTrim {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// The layer, from 1 on.
        layer: u8,
        /// Where that MiB stands: an extent that was free is taken by this.
        location: ExtentLocation,
        /// First block.
        block: u8,
        /// Blocks less one.
        count_less_one: u8,
        /// The trim's id.
        id: WriteId,
        /// Whose it is.
        origin: Origin,
    },
    /// What a layer holds of some blocks becomes their content. What stands there of the row layer ends what all layers hold
    /// of these blocks up to `through`, whether or not the log still tells of the row write.
    Promote(LayerBlocks),
    /// A layer holds some blocks no more.
    End(LayerBlocks),
    /// A block is held whose data were found damaged when they were to be written again. It stays held, as damaged.
    HoldDamaged {
        /// Whose data.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// The layer, from 1 on.
        layer: u8,
        /// Where that MiB stands.
        location: ExtentLocation,
        /// The block.
        block: u8,
        /// The write's id.
        id: WriteId,
        /// CRC-32C of the data that are lost.
        checksum: u32,
    },
    /// An extent was filled with zeroes and holds pages of the table from now on.
    Chunk {
        /// Which extent.
        location: ExtentLocation,
        /// Which pages: those of this chunk.
        number: u32,
    },
    /// An extent is no pool any more: what the log says of it before this is void. A part may have had it before it was a pool.
    PoolGone {
        /// Which extent.
        location: ExtentLocation,
    },
    /// A snapshot of a component is made: what the log has of it before this batch is in the snapshot, what comes later is not.
    Snapshot {
        /// The member of the group that the component stands on.
        member: u8,
        /// Whose.
        component: ComponentId,
        /// Its number, greater than that of any earlier one unless it comes late.
        number: u32,
        /// Its place among the component's changes.
        id: WriteId,
        /// Whose request it is.
        tag: RequestTag,
        /// Whether the component did not have it taken, and is given what it sees (note 0051).
        is_late: bool,
    },
    /// What came behind the newest snapshot of a component is void.
    Rollback {
        /// The member of the group.
        member: u8,
        /// The component.
        component: ComponentId,
        /// The snapshot's number.
        number: u32,
        /// The id of the change.
        id: WriteId,
        /// The guest's request.
        tag: RequestTag,
        /// The log position of the batch with the snapshot's record.
        since: u64,
    },
    /// A snapshot is not seen any more: what it alone needs is freed from now on.
    SnapshotGone {
        /// The member of the group that the component stands on.
        member: u8,
        /// Whose.
        component: ComponentId,
        /// Its number.
        number: u32,
    },
}

impl Record {
    /// Data blocks that follow in the batch.
    pub fn data_blocks(&self) -> u64 {
        match self {
            Record::Write { checksums, .. } | Record::Hold { checksums, .. } => checksums.len() as u64,
            Record::Direct { .. } | Record::Trim { .. } | Record::Free { .. } => 0,
            Record::Component { .. } | Record::ComponentGone { .. } | Record::PageIntent { .. } => 0,
            Record::Watermark { .. } | Record::Entry { .. } | Record::Hole { .. } => 0,
            Record::HoldTrim { .. } | Record::HoldDamaged { .. } => 0,
            Record::Promote(_) | Record::End(_) => 0,
            Record::Chunk { .. } | Record::PoolGone { .. } => 0,
            Record::Snapshot { .. } | Record::Rollback { .. } | Record::SnapshotGone { .. } => 0,
        }
    }

    /// The member of the group that it speaks of.
    pub fn member(&self) -> u8 {
        match self {
            Record::Write { location, .. }
            | Record::Direct { location, .. }
            | Record::Trim { location, .. }
            | Record::Free { location, .. }
            | Record::Hold { location, .. }
            | Record::HoldTrim { location, .. }
            | Record::HoldDamaged { location, .. }
            | Record::Chunk { location, .. }
            | Record::PoolGone { location } => location.member,
            Record::Snapshot { member, .. }
            | Record::Rollback { member, .. }
            | Record::SnapshotGone { member, .. } => *member,
            Record::Promote(blocks) | Record::End(blocks) => blocks.member,
            Record::Component { member, .. }
            | Record::ComponentGone { member, .. }
            | Record::PageIntent { member, .. }
            | Record::Watermark { member, .. }
            | Record::Entry { member, .. }
            | Record::Hole { member, .. } => *member,
        }
    }

    /// The component that it speaks of, if it changes what stands in one.
    pub fn component(&self) -> Option<ComponentId> {
        match self {
            Record::Write { component, .. }
            | Record::Direct { component, .. }
            | Record::Trim { component, .. }
            | Record::Free { component, .. }
            | Record::Hold { component, .. }
            | Record::HoldTrim { component, .. }
            | Record::HoldDamaged { component, .. }
            | Record::Snapshot { component, .. }
            | Record::Rollback { component, .. }
            | Record::SnapshotGone { component, .. } => Some(*component),
            Record::Promote(blocks) | Record::End(blocks) => Some(blocks.component),
            Record::Component { .. } | Record::ComponentGone { .. } | Record::PageIntent { .. } => None,
            Record::Watermark { .. } | Record::Entry { .. } | Record::Hole { .. } => None,
            Record::Chunk { .. } | Record::PoolGone { .. } => None,
        }
    }

    /// The member of the group of which it names an extent or a slot: such a record means nothing once another device, or
    /// none, has that index.
    pub fn device_named(&self) -> Option<u8> {
        match self {
            Record::Write { .. } | Record::Direct { .. } | Record::Trim { .. } | Record::Free { .. } => {
                Some(self.member())
            }
            Record::Component { .. } | Record::ComponentGone { .. } => Some(self.member()),
            Record::Hold { .. } | Record::HoldTrim { .. } | Record::HoldDamaged { .. } => Some(self.member()),
            Record::PageIntent { .. } | Record::Watermark { .. } => None,
            Record::Entry { .. } | Record::Hole { .. } => None,
            Record::Promote(_) | Record::End(_) => None,
            Record::Chunk { .. } | Record::PoolGone { .. } => Some(self.member()),
            Record::Snapshot { .. } | Record::Rollback { .. } | Record::SnapshotGone { .. } => None,
        }
    }

    /// The guest's change that it tells of, and whose component that is.
    pub fn window_entry(&self) -> Option<(ComponentId, WindowEntry)> {
        let entry = |tag, id, (part, layer), (block, count), is_trim| WindowEntry {
            id,
            part,
            layer,
            block,
            count,
            is_trim,
            tag,
        };
        match self {
            Record::Write { component, part, block, id, origin: Origin::Guest(tag), checksums, .. } => {
                let blocks = (*block, checksums.len() as u16);
                Some((*component, entry(*tag, *id, (*part, 0), blocks, false)))
            }
            Record::Hold {
                component, part, layer, block, id, origin: Origin::Guest(tag), checksums, ..
            } => {
                let blocks = (*block, checksums.len() as u16);
                Some((*component, entry(*tag, *id, (*part, *layer), blocks, false)))
            }
            Record::Direct { component, part, id, origin: Origin::Guest(tag), .. } => {
                Some((*component, entry(*tag, *id, (*part, 0), (0, 256), false)))
            }
            Record::Trim {
                component, part, block, count_less_one, id, origin: Origin::Guest(tag), ..
            } => {
                let blocks = (*block, u16::from(*count_less_one) + 1);
                Some((*component, entry(*tag, *id, (*part, 0), blocks, true)))
            }
            Record::HoldTrim {
                component,
                part,
                layer,
                block,
                count_less_one,
                id,
                origin: Origin::Guest(tag),
                ..
            } => {
                let blocks = (*block, u16::from(*count_less_one) + 1);
                Some((*component, entry(*tag, *id, (*part, *layer), blocks, true)))
            }
            Record::Free { component, part, id, origin: Origin::Guest(tag), .. } => {
                Some((*component, entry(*tag, *id, (*part, 0), (0, 256), true)))
            }
            Record::Entry { component, entry, .. } => Some((*component, *entry)),
            // Where the owner gives it no id it is no entry of the window (docs/design/0047).
            Record::Snapshot { id, .. } if *id == WriteId::default() => None,
            Record::Snapshot { component, id, tag, .. } | Record::Rollback { component, id, tag, .. } => {
                Some((*component, entry(*tag, *id, (0, 0), (0, 0), true)))
            }
            Record::Chunk { .. } | Record::PoolGone { .. } | Record::SnapshotGone { .. } => None,
            Record::Write { .. } | Record::Direct { .. } | Record::Trim { .. } | Record::Free { .. } => None,
            Record::Hold { .. } | Record::HoldTrim { .. } | Record::HoldDamaged { .. } => None,
            Record::Component { .. } | Record::ComponentGone { .. } => None,
            Record::PageIntent { .. } | Record::Watermark { .. } | Record::Hole { .. } => None,
            Record::Promote(_) | Record::End(_) => None,
        }
    }

    /// Appends the record.
    pub fn encode(&self, w: &mut Writer) {
        match self {
            Record::Write { component, part, location: at, block, id, origin, checksums } => {
                assert!((1..=256).contains(&checksums.len()), "a write has 1 to 256 blocks");
                location(w, 1 | origin.bit(), *at, *block, (checksums.len() - 1) as u8);
                change(w, *component, *part, *id);
                origin.encode(w);
                checksums.iter().for_each(|&checksum| w.u32(checksum));
            }
            Record::Direct { component, part, location: at, replaced, id, origin, checksums } => {
                location(w, 2 | origin.bit(), *at, u8::from(replaced.is_some()), 0);
                change(w, *component, *part, *id);
                origin.encode(w);
                w.u32(replaced.unwrap_or(0));
                checksums.iter().for_each(|&checksum| w.u32(checksum));
            }
            Record::Trim { component, part, location: at, block, count_less_one, id, origin } => {
                location(w, 3 | origin.bit(), *at, *block, *count_less_one);
                change(w, *component, *part, *id);
                origin.encode(w);
            }
            Record::Free { component, part, location: at, id, origin } => {
                location(w, 4 | origin.bit(), *at, 0, 0);
                change(w, *component, *part, *id);
                origin.encode(w);
            }
            Record::Component { member, slot, record, is_change } => {
                let at = ExtentLocation { member: *member, extent: *slot };
                Record::encode_component(w, at, record, *is_change);
            }
            Record::ComponentGone { member, slot } => {
                location(w, 6, ExtentLocation { member: *member, extent: *slot }, 0, 0);
            }
            Record::PageIntent { member, page, version } => {
                location(w, 7, ExtentLocation { member: *member, extent: *page }, 0, 0);
                w.u64(*version);
            }
            Record::Watermark { member, component, id, from_epoch } => {
                location(w, 8, ExtentLocation { member: *member, extent: *from_epoch }, 0, 0);
                w.u64(component.0);
                write_id(w, *id);
            }
            Record::Entry { member, component, entry } => {
                let is_span = entry.is_span();
                let flags = u32::from(entry.is_trim) | u32::from(entry.count == 0) << 1;
                let at = ExtentLocation { member: *member, extent: flags | u32::from(is_span) << 2 };
                location(w, 9, at, entry.block, entry.count.saturating_sub(1) as u8);
                // Releases that do not know spans take one for a mark, and look at its part.
                change(w, *component, if is_span { 0 } else { layered(entry.part, entry.layer) }, entry.id);
                w.u64(entry.tag.0);
            }
            Record::Hole { member, component, part, id } => {
                location(w, 10, ExtentLocation { member: *member, extent: 0 }, 0, 0);
                change(w, *component, *part, *id);
            }
            Record::Hold { .. } | Record::HoldTrim { .. } | Record::HoldDamaged { .. } => self.encode_held(w),
            Record::Promote(blocks) => blocks.encode(13, w),
            Record::End(blocks) => blocks.encode(14, w),
            Record::Chunk { .. } | Record::PoolGone { .. } => self.encode_mapped(w),
            Record::Snapshot { .. } | Record::Rollback { .. } | Record::SnapshotGone { .. } => {
                self.encode_mapped(w);
            }
        }
    }

    /// Appends a record about what a layer holds.
    fn encode_held(&self, w: &mut Writer) {
        match self {
            Record::Hold { component, part, layer, location: at, block, id, origin, checksums } => {
                assert!((1..=256).contains(&checksums.len()), "a hold has 1 to 256 blocks");
                location(w, 11 | origin.bit(), *at, *block, (checksums.len() - 1) as u8);
                change(w, *component, layered(*part, *layer), *id);
                origin.encode(w);
                checksums.iter().for_each(|&checksum| w.u32(checksum));
            }
            Record::HoldTrim { component, part, layer, location: at, block, count_less_one, id, origin } => {
                location(w, 12 | origin.bit(), *at, *block, *count_less_one);
                change(w, *component, layered(*part, *layer), *id);
                origin.encode(w);
            }
            Record::HoldDamaged { component, part, layer, location: at, block, id, checksum } => {
                location(w, 15, *at, *block, 0);
                change(w, *component, layered(*part, *layer), *id);
                w.u32(*checksum);
            }
            _ => unreachable!("records of holds"),
        }
    }

    fn decode(r: &mut Reader<'_>) -> Result<Record, FormatError> {
        let (kind, member, a, b) = (r.u8(), r.u8(), r.u8(), r.u8());
        let location = ExtentLocation { member, extent: r.u32() };
        let (kind, is_copy) = (kind & !Origin::COPY, kind & Origin::COPY != 0);
        let origin =
            |r: &mut Reader<'_>| if is_copy { Origin::Copy } else { Origin::Guest(RequestTag(r.u64())) };
        Ok(match kind {
            1 => {
                let (component, part, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let origin = origin(r);
                let count = check_range(a, b)?;
                let checksums = (0..count).map(|_| r.u32()).collect();
                Record::Write { component, part, location, block: a, id, origin, checksums }
            }
            2 => {
                let (component, part, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let origin = origin(r);
                let replaced = Some(r.u32()).filter(|_| a != 0);
                let checksums = Box::new([(); BLOCKS_PER_EXTENT].map(|()| r.u32()));
                Record::Direct { component, part, location, replaced, id, origin, checksums }
            }
            3 => {
                check_range(a, b)?;
                let (component, part, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let origin = origin(r);
                Record::Trim { component, part, location, block: a, count_less_one: b, id, origin }
            }
            4 => {
                let (component, part, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let origin = origin(r);
                Record::Free { component, part, location, id, origin }
            }
            11 | 12 => Record::decode_held(r, kind, (location, a, b), origin)?,
            _ if is_copy => {
                return Err(FormatError::Damaged("a log record of an unknown kind"));
            }
            5 => Record::decode_component(r, location, a)?,
            6 => Record::ComponentGone { member, slot: location.extent },
            7 => Record::PageIntent { member, page: location.extent, version: r.u64() },
            8 => {
                let (component, id) = (ComponentId(r.u64()), read_id(r));
                let from_epoch = if location.extent == 0 { id.epoch } else { location.extent };
                Record::Watermark { member, component, id, from_epoch }
            }
            9 => {
                let count = check_range(a, b)? as u16;
                let (component, field, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let (part, layer) = part_and_layer(field);
                let (is_trim, is_mark) = (location.extent & 1 != 0, location.extent & 2 != 0);
                let count = if is_mark { 0 } else { count };
                let tag = RequestTag(r.u64());
                let is_span = is_mark && location.extent & 4 != 0;
                if is_span && id.sequence.checked_add(tag.0).is_none() {
                    return Err(FormatError::Damaged("a span of changes beyond all numbers"));
                }
                let entry = match is_span {
                    true => WindowEntry::span(id, tag.0),
                    false => WindowEntry { id, part, layer, block: a, count, is_trim, tag },
                };
                Record::Entry { member, component, entry }
            }
            10 => Record::Hole { member, component: ComponentId(r.u64()), part: r.u32(), id: read_id(r) },
            13 => Record::Promote(LayerBlocks::decode(member, (a, b), r)?),
            14 => Record::End(LayerBlocks::decode(member, (a, b), r)?),
            15 => Record::decode_held(r, kind, (location, a, b), origin)?,
            16..=20 => Record::decode_mapped(r, kind, location),
            _ => return Err(FormatError::Damaged("a log record of an unknown kind")),
        })
    }

    /// Reads what follows in a record about what a layer holds.
    fn decode_held(
        r: &mut Reader<'_>,
        kind: u8,
        (location, a, b): (ExtentLocation, u8, u8),
        origin: impl FnOnce(&mut Reader<'_>) -> Origin,
    ) -> Result<Record, FormatError> {
        let (component, field, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
        let (part, layer) = part_and_held_layer(field)?;
        let count = check_range(a, b)?;
        Ok(match kind {
            11 => {
                let origin = origin(r);
                let checksums = (0..count).map(|_| r.u32()).collect();
                Record::Hold { component, part, layer, location, block: a, id, origin, checksums }
            }
            12 => {
                let origin = origin(r);
                Record::HoldTrim { component, part, layer, location, block: a, count_less_one: b, id, origin }
            }
            _ => Record::HoldDamaged { component, part, layer, location, block: a, id, checksum: r.u32() },
        })
    }
}

/// What every record begins with.
fn location(w: &mut Writer, kind: u8, location: ExtentLocation, a: u8, b: u8) {
    w.u8(kind);
    w.u8(location.member);
    w.u8(a);
    w.u8(b);
    w.u32(location.extent);
}

/// What a change is about, and its id.
fn change(w: &mut Writer, component: ComponentId, part: u32, id: WriteId) {
    w.u64(component.0);
    w.u32(part);
    write_id(w, id);
}

/// The fixed part of a batch's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The version of its group's format.
    pub format: u32,
    /// The log's formatting.
    pub log_mark: u64,
    /// The batch's number.
    pub number: u64,
    /// Log block at which it starts, counted without wrapping.
    pub position: u64,
    /// Blocks of the header.
    pub header_blocks: u32,
    /// Blocks of data after it.
    pub data_blocks: u32,
    /// Bytes of records.
    pub record_bytes: u32,
    /// Records.
    pub record_count: u32,
}

impl BatchHeader {
    /// Log blocks of the whole batch.
    pub fn blocks(&self) -> u64 {
        u64::from(self.header_blocks) + u64::from(self.data_blocks)
    }

    /// Whether the header's blocks hold its copy as well.
    pub fn has_copy(&self) -> bool {
        u64::from(self.header_blocks) == 2 * blocks_of_one(self.record_bytes as usize)
    }

    /// Log block at which the header's copy begins.
    pub fn copy_position(&self) -> u64 {
        self.position + blocks_of_one(self.record_bytes as usize)
    }

    /// Bytes of the header without its copy.
    fn bytes_of_one(&self) -> usize {
        blocks_of_one(self.record_bytes as usize) as usize * BLOCK_SIZE as usize
    }

    /// Fills `bytes` (as long as the header's blocks) with this and the records' bytes: twice, if they are twice as long
    /// as needed.
    pub fn encode(&self, records: &[u8], bytes: &mut [u8]) {
        assert!(
            bytes.len() as u64 == u64::from(self.header_blocks) * BLOCK_SIZE,
            "a header fills its blocks"
        );
        assert!(records.len() == self.record_bytes as usize, "a header counts its records' bytes");
        if self.has_copy() {
            let copy = &mut bytes[self.bytes_of_one()..];
            self.encode_as(COPY_MAGIC, records, copy);
            checksum::seal(copy, SEAL_AT);
            self.encode_as(MAGIC, records, &mut bytes[..self.bytes_of_one()]);
        } else {
            self.encode_as(MAGIC, records, bytes);
        }
        checksum::seal(bytes, SEAL_AT);
    }

    fn encode_as(&self, magic: u32, records: &[u8], bytes: &mut [u8]) {
        let mut w = Writer::with_capacity(HEADER_SIZE);
        w.u32(magic);
        w.u32(self.format);
        w.u32(0); // the checksum's location
        w.u32(self.header_blocks);
        w.u64(self.log_mark);
        w.u64(self.number);
        w.u64(self.position);
        w.u32(self.data_blocks);
        w.u32(self.record_bytes);
        w.u32(self.record_count);
        w.pad_to(HEADER_SIZE);
        bytes[..HEADER_SIZE].copy_from_slice(w.as_bytes());
        bytes[HEADER_SIZE..HEADER_SIZE + records.len()].copy_from_slice(records);
        bytes[HEADER_SIZE + records.len()..].fill(0);
    }

    /// Reads the fixed part from the first bytes of a batch, not yet verified: enough to know how long the header is.
    pub fn peek(bytes: &[u8], log_mark: u64) -> Option<BatchHeader> {
        BatchHeader::peek_as(MAGIC, bytes, log_mark)
    }

    /// The same from the first bytes of a header's copy.
    pub fn peek_copy(bytes: &[u8], log_mark: u64) -> Option<BatchHeader> {
        BatchHeader::peek_as(COPY_MAGIC, bytes, log_mark).filter(BatchHeader::has_copy)
    }

    fn peek_as(magic: u32, bytes: &[u8], log_mark: u64) -> Option<BatchHeader> {
        let mut r = Reader::new(bytes);
        let (found, format) = (r.u32(), r.u32());
        r.u32();
        let header_blocks = r.u32();
        let mark = r.u64();
        let header = BatchHeader {
            format,
            log_mark: mark,
            number: r.u64(),
            position: r.u64(),
            header_blocks,
            data_blocks: r.u32(),
            record_bytes: r.u32(),
            record_count: r.u32(),
        };
        let is_clear = r.reserved(HEADER_SIZE - 52);
        let records_end = HEADER_SIZE as u64 + u64::from(header.record_bytes);
        let sane = r.finish().is_ok()
            && is_clear
            && found == magic
            && (FORMAT_PLAIN..=FORMAT_VERSION).contains(&format)
            && mark == log_mark
            && (1..=HEADER_BLOCKS_MAX).contains(&u64::from(header_blocks))
            && records_end <= u64::from(header_blocks) * BLOCK_SIZE;
        sane.then_some(header)
    }

    /// Verifies the header (`bytes` are all its blocks) and reads the records. What stands in the place of its copy does not
    /// matter where the header itself is whole.
    ///
    /// # Errors
    /// When the checksum or a record is wrong, or the records do not account for the data.
    pub fn decode_records(&self, bytes: &[u8]) -> Result<Vec<Record>, FormatError> {
        if !checksum::is_sealed(bytes, SEAL_AT) && !self.is_whole_without_copy(bytes) {
            return Err(FormatError::Damaged("the checksum of a batch does not match"));
        }
        self.records(bytes)
    }

    /// Whether header and copy are whole (`bytes` are all blocks of both), or there is to be no copy.
    pub fn is_told_twice(&self, bytes: &[u8]) -> bool {
        checksum::is_sealed(bytes, SEAL_AT)
    }

    /// The header's blocks, with these records, as they were written.
    pub fn encode_records(&self, records: &[Record]) -> Vec<u8> {
        let mut w = Writer::with_capacity(self.record_bytes as usize);
        records.iter().for_each(|record| record.encode(&mut w));
        let mut bytes = vec![0; self.header_blocks as usize * BLOCK_SIZE as usize];
        self.encode(w.as_bytes(), &mut bytes);
        bytes
    }

    /// Verifies the header's copy (`bytes` are all its blocks) and reads the records.
    ///
    /// # Errors
    /// As [`BatchHeader::decode_records`].
    pub fn decode_copy(&self, bytes: &[u8]) -> Result<Vec<Record>, FormatError> {
        if bytes.len() != self.bytes_of_one() || !checksum::is_sealed(bytes, SEAL_AT) {
            return Err(FormatError::Damaged("the checksum of a header's copy does not match"));
        }
        self.records(bytes)
    }

    /// Whether only the copy is damaged: the checksum covers both, and the copy follows from the header.
    fn is_whole_without_copy(&self, bytes: &[u8]) -> bool {
        let records = bytes.get(HEADER_SIZE..HEADER_SIZE + self.record_bytes as usize);
        let Some(records) = records.filter(|_| self.has_copy()) else { return false };
        let mut both = vec![0; bytes.len()];
        self.encode(records, &mut both);
        both[..self.bytes_of_one()] == bytes[..self.bytes_of_one()]
    }

    fn records(&self, bytes: &[u8]) -> Result<Vec<Record>, FormatError> {
        let records = bytes.get(HEADER_SIZE..HEADER_SIZE + self.record_bytes as usize);
        let mut r = Reader::new(records.ok_or(FormatError::Damaged("a batch is too short"))?);
        let mut out = Vec::new();
        let mut data_blocks = 0;
        for _ in 0..self.record_count {
            let record = Record::decode(&mut r)?;
            r.finish()?;
            data_blocks += record.data_blocks();
            out.push(record);
        }
        if r.remaining() != 0 || data_blocks != u64::from(self.data_blocks) {
            return Err(FormatError::Damaged("the records of a batch do not account for it"));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::DiskId;

    fn samples() -> Vec<Record> {
        let (component, location) = (ComponentId(3), ExtentLocation { member: 2, extent: 99 });
        let id = WriteId { epoch: 1, sequence: 44 };
        let record = ComponentRecord {
            id: component,
            disk: DiskId(8),
            size: 1 << 20,
            reservation: 0,
            promised: 3,
            watermark: WriteId { epoch: 2, sequence: 7 },
            is_deleting: false,
            compression: crate::format::page::Compression::Zstd,
            disk_label: b"disk".to_vec(),
        };
        let origin = Origin::Guest(RequestTag(0x5afe));
        let blocks = LayerBlocks {
            member: 1,
            component,
            part: 255 * 1024 - 1,
            layer: 1,
            block: 16,
            count_less_one: 15,
            through: id,
        };
        let entry =
            WindowEntry { id, part: 4, layer: 3, block: 255, count: 1, is_trim: true, tag: RequestTag(6) };
        let mark = WindowEntry {
            id,
            part: 4,
            layer: 0,
            block: 0,
            count: 0,
            is_trim: true,
            tag: RequestTag::default(),
        };
        vec![
            Record::Write {
                component,
                part: 4,
                location,
                block: 250,
                id,
                origin,
                checksums: smallvec::smallvec![1, 2, 3, 4, 5, 6],
            },
            Record::Direct {
                component,
                part: 4,
                location,
                replaced: Some(0),
                id,
                origin: Origin::Copy,
                checksums: Box::new([9; 256]),
            },
            Record::Direct {
                component,
                part: 4,
                location,
                replaced: None,
                id,
                origin,
                checksums: Box::new([9; 256]),
            },
            Record::Trim { component, part: 4, location, block: 0, count_less_one: 255, id, origin },
            Record::Free { component, part: 4, location, id, origin: Origin::Copy },
            Record::Component { member: 1, slot: 6, record, is_change: true },
            Record::ComponentGone { member: 1, slot: 6 },
            Record::PageIntent { member: 1, page: 6, version: 1 << 40 },
            Record::Watermark { member: 1, component, id, from_epoch: 3 },
            Record::Entry { member: 1, component, entry },
            Record::Entry { member: 1, component, entry: mark },
            Record::Entry { member: 1, component, entry: WindowEntry::span(id, 49_000) },
            Record::Hole { member: 1, component, part: 4, id },
            Record::Hold {
                component,
                part: 4,
                layer: 1,
                location,
                block: 7,
                id,
                origin,
                checksums: smallvec::smallvec![1, 2],
            },
            Record::Hold {
                component,
                part: 4,
                layer: 255,
                location,
                block: 7,
                id,
                origin: Origin::Copy,
                checksums: smallvec::smallvec![3],
            },
            Record::HoldTrim {
                component,
                part: 4,
                layer: 2,
                location,
                block: 0,
                count_less_one: 255,
                id,
                origin,
            },
            Record::Promote(blocks),
            Record::End(LayerBlocks { layer: 255, ..blocks }),
            Record::HoldDamaged { component, part: 4, layer: 9, location, block: 255, id, checksum: 8 },
            Record::Chunk { location, number: 7 },
            Record::PoolGone { location },
            Record::Snapshot { member: 2, component, number: 9, id, tag: RequestTag(0x5afe), is_late: false },
            Record::Snapshot {
                member: 2,
                component,
                number: 8,
                id: WriteId::default(),
                tag: RequestTag::default(),
                is_late: true,
            },
            Record::SnapshotGone { member: 2, component, number: 9 },
            Record::Rollback { member: 2, component, number: 9, id, tag: RequestTag(0x5afe), since: 1 << 33 },
        ]
    }

    fn encoded(records: &[Record], forms: u32) -> (BatchHeader, Vec<u8>) {
        let mut w = Writer::default();
        records.iter().for_each(|record| record.encode(&mut w));
        let header = BatchHeader {
            format: FORMAT_PLAIN,
            log_mark: 5,
            number: 6,
            position: 7,
            header_blocks: blocks_of_one(w.len()) as u32 * forms,
            data_blocks: records.iter().map(Record::data_blocks).sum::<u64>() as u32,
            record_bytes: w.len() as u32,
            record_count: records.len() as u32,
        };
        let mut bytes = vec![0xff; header.header_blocks as usize * 4096];
        header.encode(w.as_bytes(), &mut bytes);
        (header, bytes)
    }

    #[test]
    fn records_come_back() {
        for forms in 1..=2 {
            let (header, bytes) = encoded(&samples(), forms);
            assert_eq!(BatchHeader::peek(&bytes, 5), Some(header));
            assert_eq!(header.decode_records(&bytes), Ok(samples()));
            assert_eq!(BatchHeader::peek(&bytes, 4), None, "another formatting");
        }
    }

    /// The bytes of `docs/formats/disk-group.md`, kinds 11 to 15 and an entry of a layer.
    #[test]
    fn records_about_layers_have_the_bytes_of_the_format() {
        let (component, location) =
            (ComponentId(0x0807_0605_0403_0201), ExtentLocation { member: 2, extent: 0x99 });
        let id = WriteId { epoch: 0x11, sequence: 0x22 };
        let origin = Origin::Guest(RequestTag(0x5afe));
        let named = LayerBlocks {
            member: 2,
            component,
            part: 0x03_0405,
            layer: 7,
            block: 16,
            count_less_one: 15,
            through: id,
        };
        let (part, layer, block, checksums) = (0x03_0405, 7, 16, smallvec::smallvec![0xaabb_ccdd]);
        let entry =
            WindowEntry { id, part, layer: 255, block, count: 2, is_trim: false, tag: RequestTag(0x5afe) };
        let records = [
            Record::Hold { component, part, layer, location, block, id, origin, checksums },
            Record::HoldTrim {
                component,
                part,
                layer,
                location,
                block,
                count_less_one: 15,
                id,
                origin: Origin::Copy,
            },
            Record::Promote(named),
            Record::End(LayerBlocks { layer: 255, ..named }),
            Record::HoldDamaged { component, part, layer, location, block, id, checksum: 0xaabb_ccdd },
            Record::Entry { member: 2, component, entry },
        ];
        let change = |layer: &str| format!("0102030405060708 050403{layer} 11000000 2200000000000000");
        let tag = "fe5a000000000000";
        let expected = [
            format!("0b 02 10 00 99000000 {} {tag} ddccbbaa", change("07")),
            format!("8c 02 10 0f 99000000 {}", change("07")),
            format!("0d 02 10 0f 00000000 {}", change("07")),
            format!("0e 02 10 0f 00000000 {}", change("ff")),
            format!("0f 02 10 00 99000000 {} ddccbbaa", change("07")),
            format!("09 02 10 01 00000000 {} {tag}", change("ff")),
        ];
        for (record, expected) in records.iter().zip(expected) {
            let mut w = Writer::default();
            record.encode(&mut w);
            let hex: String = w.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected.replace(' ', ""), "{record:?}");
        }
        assert_eq!(encoded_and_read(&records), records);
    }

    fn encoded_and_read(records: &[Record]) -> Vec<Record> {
        let (header, bytes) = encoded(records, 1);
        header.decode_records(&bytes).expect("it verifies")
    }

    #[test]
    fn the_content_is_no_layer_that_holds() {
        let (header, bytes) = encoded(&samples(), 1);
        let hold =
            samples().iter().position(|record| matches!(record, Record::Hold { .. })).expect("there is one");
        let mut before = Writer::default();
        samples()[..hold].iter().for_each(|record| record.encode(&mut before));
        let mut damaged = bytes.clone();
        damaged[HEADER_SIZE + before.len() + 8 + 8 + 3] = 0;
        checksum::seal(&mut damaged, SEAL_AT);
        let found = header.decode_records(&damaged);
        assert_eq!(found, Err(FormatError::Damaged("a record holds the content itself")));
    }

    #[test]
    fn any_flipped_byte_breaks_a_header_without_copy() {
        let (header, bytes) = encoded(&samples(), 1);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(header.decode_records(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn any_flipped_byte_breaks_the_header_or_its_copy_and_never_both() {
        let (header, bytes) = encoded(&samples(), 2);
        let half = bytes.len() / 2;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let is_header_whole = header.decode_records(&damaged) == Ok(samples());
            let copy =
                BatchHeader::peek_copy(&damaged[half..], 5).map(|copy| copy.decode_copy(&damaged[half..]));
            let is_copy_whole = copy == Some(Ok(samples()));
            assert_eq!((is_header_whole, is_copy_whole), (at >= half, at < half), "byte {at}");
        }
    }

    #[test]
    fn a_program_without_copies_reads_headers_that_have_one() {
        let (_, bytes) = encoded(&samples(), 2);
        assert!(
            checksum::is_sealed(&bytes, SEAL_AT),
            "it verifies all blocks of the header, whatever they hold"
        );
    }
}
