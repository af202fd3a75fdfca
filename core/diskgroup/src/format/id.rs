//! What pages and records share: write ids, and the size of a page.

use base::WriteId;
use base::bytes::{Reader, Writer};
use base::units::BLOCK_SIZE;

/// Bytes of one copy of a page.
pub const PAGE_SIZE: usize = BLOCK_SIZE as usize;
/// Bytes of a page before what it holds.
pub(super) const HEADER_SIZE: usize = 64;

/// Appends a write id, 12 bytes.
pub(super) fn write_id(w: &mut Writer, id: WriteId) {
    w.u32(id.epoch);
    w.u64(id.sequence);
}

/// Reads a write id.
pub(super) fn read_id(r: &mut Reader<'_>) -> WriteId {
    WriteId { epoch: r.u32(), sequence: r.u64() }
}
