//! Which layer of a part a request or an entry is about: the high byte of its `part`.
//!
//! A component of a place with copies has one layer, its content. One of rows with parity holds changes of rows beside its content until
//! they are decided (`docs/design/0040-parity.md`, 17), and small changes of data units until their parity is computed (14). What such a
//! change is of comes with its layer, so that whoever takes a disk over knows which members had a part in it.

/// What a component has.
pub const CONTENT: u8 = 0;
/// A small change of one data unit of rows whose parity does not count it yet: the unit is added. The members of the parity hold a copy of it,
/// that of the unit holds it over what the parity counts.
pub const COPY_FIRST: u8 = 1;
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

/// Whether there is such a layer: the content, one of copies, or one whose changes are not decided.
pub fn is_known(layer: u8) -> bool {
    layer == CONTENT
        || is_of_copies(layer)
        || layer == ROWS
        || (UNIT_FIRST..UNIT_FIRST + UNITS_MAX).contains(&layer)
}

/// Whether what a layer holds are small changes that parity does not count yet.
pub fn is_of_copies(layer: u8) -> bool {
    (COPY_FIRST..COPY_FIRST + UNITS_MAX).contains(&layer)
}

const _: () = assert!(base::units::COMPONENT_SIZE_MAX / base::units::EXTENT_SIZE < PARTS_MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_and_its_layer_come_back_and_other_layers_are_unknown() {
        for (one, part) in
            [(CONTENT, 0), (COPY_FIRST + 1, 3), (UNIT_FIRST + 3, 261_119), (ROWS, PARTS_MAX - 1)]
        {
            assert_eq!(split(layered(one, part)), (one, part));
        }
        let known: Vec<u8> = (0..=u8::MAX).filter(|one| is_known(*one)).collect();
        assert_eq!(known, [0, 1, 2, 3, 4, 128, 129, 130, 131, 255]);
        assert!(crate::check::layered_part(layered(ROWS, 7)).is_ok());
        assert!(crate::check::layered_part(layered(254, 7)).is_err(), "a layer of a group's own");
    }
}
