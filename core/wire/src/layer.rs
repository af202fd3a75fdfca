//! Which layer of a part a request or an entry is about: the high byte of its `part`.
//!
//! A component of a place with copies has one layer, its content. One of rows with parity holds changes of rows beside its content until
//! they are decided (`docs/design/0040-parity.md`, 17). What such a change is of comes with its layer, so that whoever takes a disk over
//! knows which members had a part in it.

/// What a component has.
pub const CONTENT: u8 = 0;
/// A change of one data unit of rows, and of their parity, that is not decided: the unit is added.
pub const UNIT_FIRST: u8 = 128;
/// A change of all units of rows that is not decided.
pub const ROWS: u8 = 255;
/// Data units of a row at most.
pub const UNITS_MAX: u8 = 4;
/// Parts of a component: they have 24 bits.
pub const PARTS_MAX: u32 = 1 << 24;

/// A part with its layer.
pub fn layered(layer: u8, part: u32) -> u32 {
    assert!(part < PARTS_MAX, "a component has no such part");
    u32::from(layer) << 24 | part
}

/// The layer, and the part without it.
pub fn split(part: u32) -> (u8, u32) {
    ((part >> 24) as u8, part % PARTS_MAX)
}

/// Whether there is such a layer: the content, or one whose changes are not decided.
pub fn is_known(layer: u8) -> bool {
    layer == CONTENT || layer == ROWS || (UNIT_FIRST..UNIT_FIRST + UNITS_MAX).contains(&layer)
}

const _: () = assert!(base::units::COMPONENT_SIZE_MAX / base::units::EXTENT_SIZE < PARTS_MAX as u64);
