//! How records of the log name a layer of a part (docs/design/0042): in the high byte of the part.

use super::FormatError;
use super::id::{read_id, write_id};
use base::bytes::{Reader, Writer};
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, WriteId};

/// Blocks of one layer of a part, as a record names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerBlocks {
    /// The member of the group that the component stands on.
    pub member: u8,
    /// Whose.
    pub component: ComponentId,
    /// Which MiB of it.
    pub part: u32,
    /// The layer, from 1 on.
    pub layer: u8,
    /// First block.
    pub block: u8,
    /// Blocks less one.
    pub count_less_one: u8,
    /// Only what is held with ids up to this one.
    pub through: WriteId,
}

impl LayerBlocks {
    /// The blocks.
    pub fn blocks(&self) -> std::ops::Range<u16> {
        let first = u16::from(self.block);
        first..first + u16::from(self.count_less_one) + 1
    }
}

impl LayerBlocks {
    pub(super) fn encode(&self, kind: u8, w: &mut Writer) {
        w.u8(kind);
        w.u8(self.member);
        w.u8(self.block);
        w.u8(self.count_less_one);
        w.u32(0);
        w.u64(self.component.0);
        w.u32(layered(self.part, self.layer));
        write_id(w, self.through);
    }

    pub(super) fn decode(
        member: u8,
        (block, count_less_one): (u8, u8),
        r: &mut Reader<'_>,
    ) -> Result<LayerBlocks, FormatError> {
        check_range(block, count_less_one)?;
        let (component, field, through) = (ComponentId(r.u64()), r.u32(), read_id(r));
        let (part, layer) = part_and_held_layer(field)?;
        Ok(LayerBlocks { member, component, part, layer, block, count_less_one, through })
    }
}

/// Bits of a record's part field that name the part; the 8 above are the layer.
const PART_BITS: u32 = 24;

/// A record's part field that names a layer, too.
pub(super) fn layered(part: u32, layer: u8) -> u32 {
    assert!(part >> PART_BITS == 0, "a component has at most 255 GiB");
    part | u32::from(layer) << PART_BITS
}

/// The part and the layer of a record's part field.
pub(super) fn part_and_layer(field: u32) -> (u32, u8) {
    (field & ((1 << PART_BITS) - 1), (field >> PART_BITS) as u8)
}

/// The same, of a record that is about a layer beside the content.
pub(super) fn part_and_held_layer(field: u32) -> Result<(u32, u8), FormatError> {
    match part_and_layer(field) {
        (_, 0) => Err(FormatError::Damaged("a record holds the content itself")),
        found => Ok(found),
    }
}

/// Blocks of a range from its first block and its count less one.
pub(super) fn check_range(block: u8, count_less_one: u8) -> Result<usize, FormatError> {
    let count = count_less_one as usize + 1;
    match block as usize + count <= BLOCKS_PER_EXTENT {
        true => Ok(count),
        false => Err(FormatError::Damaged("a record leaves its extent")),
    }
}
