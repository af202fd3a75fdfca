//! The bounds of a layout. A decoder refuses what lies beyond them; nothing that is planned comes near.

use base::units::{BLOCK_SIZE, COMPONENT_SIZE_MAX, DISK_SIZE_MAX, EXTENT_SIZE};

/// Nodes on the longest way from the root to a place, both counted. Concatenation, stripe, mirror are three; the rest is
/// room.
pub const DEPTH_MAX: usize = 8;
/// Components of one layout. A disk of 64 TiB needs 258 for one copy; four copies or growth need more.
pub const COMPONENTS_MAX: usize = 4096;
/// Fewest copies of a mirror; a place of one component is no mirror.
pub const COPIES_MIN: usize = 2;
/// Most copies of a mirror: one more than the failures that a policy may ask to tolerate (design, section 3).
pub const COPIES_MAX: usize = 4;
/// Most components of a place with parity: six members, and what comes while others go.
pub const MEMBERS_MAX: usize = 16;
/// Children of one node: they are counted with 16 bits in the encoding.
pub const CHILDREN_MAX: usize = COMPONENTS_MAX;
/// The stripe unit of new layouts in bytes: an extent, so that one extent holds one run of the disk (design, section 3).
pub const STRIPE_UNIT: u64 = EXTENT_SIZE;
/// Component sizes and column sizes are multiples of this many bytes.
pub const SIZE_STEP: u64 = EXTENT_SIZE;
/// Stripe units are multiples of this many bytes: a block never stands in two components.
pub const UNIT_STEP: u64 = BLOCK_SIZE;
/// Bytes of a disk that are moved into another layout with one change of its record, rounded up to full stripes of both layouts. The disk
/// is opened anew after each, which guests notice as a pause of a few milliseconds. Fewest: two seconds at the floor of copies.
pub const MOVE_GRANULES: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 30;
/// A disk is moved in so many granules at least, unless they would be smaller than [`MOVE_GRANULES`] allows.
pub const MOVE_GRANULES_OF_DISK: u64 = 16;

const _: () = assert!(CHILDREN_MAX <= u16::MAX as usize);
const _: () =
    assert!(DISK_SIZE_MAX.div_ceil(COMPONENT_SIZE_MAX) * COPIES_MAX as u64 <= COMPONENTS_MAX as u64);
const _: () = assert!(COMPONENT_SIZE_MAX.checked_mul(COMPONENTS_MAX as u64).is_some());
