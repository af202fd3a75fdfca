//! Automatic striping: how many components of which size hold a disk (design, section 3).
//!
//! Pure arithmetic. Must never choose a device.

use crate::limits::{SIZE_STEP, STRIPE_UNIT};
use crate::tree::Layout;
use base::units::COMPONENT_SIZE_MAX;

/// The least number of components that hold `size` bytes: one for every 255 GiB begun, and one for an empty disk.
pub fn component_count_min(size: u64) -> u64 {
    size.div_ceil(COMPONENT_SIZE_MAX).max(1)
}

/// The size of each of `columns` equal components that together hold `size` bytes, rounded up to whole MiB.
pub fn column_size(size: u64, columns: u64) -> u64 {
    assert!(columns > 0, "a disk has at least one column");
    let column_size = size.div_ceil(columns).next_multiple_of(SIZE_STEP).max(SIZE_STEP);
    assert!(column_size <= COMPONENT_SIZE_MAX, "enough columns were chosen for the size");
    column_size
}

/// One place as it is, or several of one size as a stripe of 1 MiB units.
pub fn stripe(mut places: Vec<Layout>) -> Layout {
    assert!(!places.is_empty(), "a layout has at least one place");
    match places.len() {
        1 => places.remove(0),
        _ => Layout::Stripe { unit: STRIPE_UNIT, columns: places },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::units::{DISK_SIZE_MAX, GIB, MIB};

    #[test]
    fn components_are_equal_whole_mebibytes_and_at_most_255_gib() {
        for (size, count, each) in [
            (512, 1, MIB),
            (255 * GIB, 1, 255 * GIB),
            (255 * GIB + 512, 2, 127 * GIB + 513 * MIB),
            (DISK_SIZE_MAX, 258, 260_112 * MIB),
        ] {
            assert_eq!(component_count_min(size), count, "{size}");
            assert_eq!(column_size(size, count), each, "{size}");
            assert!(each * count >= size && each <= COMPONENT_SIZE_MAX);
        }
    }
}
