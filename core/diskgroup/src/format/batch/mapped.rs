//! Records about mapped parts, snapshots and the table's chunks (docs/design/0044), as bytes.

use super::{ExtentLocation, Record, change, location};
use crate::format::id::read_id;
use base::bytes::{Reader, Writer};
use base::{ComponentId, RequestTag};

impl Record {
    /// Appends a record about mapped parts or the table's chunks (docs/design/0044).
    pub(super) fn encode_mapped(&self, w: &mut Writer) {
        match self {
            Record::Chunk { location: at, number } => {
                location(w, 16, *at, 0, 0);
                w.u32(*number);
            }
            Record::Snapshot { member, component, number, id, tag, is_late } => {
                location(w, 17, ExtentLocation { member: *member, extent: *number }, 0, 0);
                change(w, *component, u32::from(*is_late), *id);
                w.u64(tag.0);
            }
            Record::Rollback { member, component, number, id, tag, since } => {
                location(w, 20, ExtentLocation { member: *member, extent: *number }, 0, 0);
                change(w, *component, 0, *id);
                w.u64(tag.0);
                w.u64(*since);
            }
            Record::SnapshotGone { member, component, number } => {
                location(w, 18, ExtentLocation { member: *member, extent: *number }, 0, 0);
                w.u64(component.0);
            }
            Record::PoolGone { location: at } => location(w, 19, *at, 0, 0),
            _ => unreachable!("records about mapped parts"),
        }
    }

    /// Reads what follows in a record about mapped parts or the table's chunks.
    pub(super) fn decode_mapped(r: &mut Reader<'_>, kind: u8, location: ExtentLocation) -> Record {
        let (member, number) = (location.member, location.extent);
        match kind {
            16 => Record::Chunk { location, number: r.u32() },
            17 => {
                let (component, is_late, id) = (ComponentId(r.u64()), r.u32() == 1, read_id(r));
                Record::Snapshot { member, component, number, id, tag: RequestTag(r.u64()), is_late }
            }
            20 => {
                let (component, _, id) = (ComponentId(r.u64()), r.u32(), read_id(r));
                let tag = RequestTag(r.u64());
                Record::Rollback { member, component, number, id, tag, since: r.u64() }
            }
            18 => Record::SnapshotGone { member, component: ComponentId(r.u64()), number },
            _ => Record::PoolGone { location },
        }
    }
}
