//! Records that make or change a component, as bytes.

use super::{ExtentLocation, Record, location};
use crate::format::FormatError;
use crate::format::page::ComponentRecord;
use base::bytes::{Reader, Writer};

impl Record {
    /// Appends a record about a component in a slot.
    pub(super) fn encode_component(
        w: &mut Writer,
        slot: ExtentLocation,
        record: &ComponentRecord,
        is_change: bool,
    ) {
        location(w, 5, slot, u8::from(is_change), 0);
        record.encode(w);
    }

    /// Reads what follows in a record about a component in a slot; `a` tells whether it is a change.
    pub(super) fn decode_component(
        r: &mut Reader<'_>,
        ExtentLocation { member, extent: slot }: ExtentLocation,
        a: u8,
    ) -> Result<Record, FormatError> {
        Ok(Record::Component { member, slot, record: ComponentRecord::decode(r)?, is_change: a == 1 })
    }
}
