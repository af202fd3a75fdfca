//! Where the regions of a device go.

use crate::format::page::DESCRIPTORS_PER_PAGE;
use crate::format::superblock::{Geometry, Region};
use crate::limits;
use base::units::{BLOCK_SIZE, EXTENT_SIZE, MIB, format_bytes};

/// Superblocks and anchors end here; the table starts here.
const TABLE_OFFSET: u64 = 64 << 10;

/// A device is too small for what it shall hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} are too small: at least {} are needed", format_bytes(*.found), format_bytes(*.needed))]
pub struct TooSmall {
    /// Its size in bytes.
    pub found: u64,
    /// The least size in bytes.
    pub needed: u64,
}

impl Geometry {
    /// The regions of a device of `size` bytes that holds a log of `log_size` bytes (`None`: no log) and, if
    /// `is_capacity`, extents in all the rest.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn plan(size: u64, log_size: Option<u64>, is_capacity: bool) -> Result<Geometry, TooSmall> {
        let log_len = log_size.unwrap_or(0) / BLOCK_SIZE * BLOCK_SIZE;
        let least = limits::log_size_min().min(log_size.unwrap_or(0));
        let extents_least = if is_capacity { limits::EXTENTS_MIN } else { 0 };
        let needed = MIB + log_len.max(least) + extents_least * (EXTENT_SIZE + 3 * BLOCK_SIZE) + 2 * MIB;
        let too_small = TooSmall { found: size, needed };
        if size < needed {
            return Err(too_small);
        }
        // One extent costs itself and its share of a page with two copies; slots for components come on top.
        let extent_cost = EXTENT_SIZE * DESCRIPTORS_PER_PAGE as u64 + 2 * BLOCK_SIZE;
        let room = (size - log_len) * DESCRIPTORS_PER_PAGE as u64;
        let mut extents = if is_capacity { room / extent_cost } else { 0 };
        loop {
            let component_slots = component_slots(extents);
            let pages = u64::from(component_slots) + extents.div_ceil(DESCRIPTORS_PER_PAGE as u64);
            let table = Region { offset: TABLE_OFFSET, len: pages * 2 * BLOCK_SIZE };
            let log = Region { offset: table.end().next_multiple_of(MIB), len: log_len };
            let extents_offset = log.end().next_multiple_of(MIB);
            let end = extents_offset + extents * EXTENT_SIZE;
            if end <= size {
                let extents = Region { offset: extents_offset, len: extents * EXTENT_SIZE };
                return Ok(Geometry { log, table, component_slots, extents });
            }
            let over = (end - size).div_ceil(EXTENT_SIZE);
            extents =
                extents.checked_sub(over).filter(|&left| left >= extents_least).ok_or(too_small.clone())?;
        }
    }

    /// Extents on the device.
    pub fn extent_count(&self) -> u32 {
        (self.extents.len / EXTENT_SIZE) as u32
    }

    /// Pages of its table.
    pub fn page_count(&self) -> u64 {
        u64::from(self.component_slots) + u64::from(self.extent_count()).div_ceil(DESCRIPTORS_PER_PAGE as u64)
    }

    /// Where a copy of a page stands.
    pub fn page_offset(&self, page: u32, copy: u64) -> u64 {
        assert!(u64::from(page) < self.page_count(), "a page lies in its table");
        assert!(copy < 2, "a page has two copies");
        self.table.offset + (u64::from(page) * 2 + copy) * BLOCK_SIZE
    }

    /// Where a block of an extent stands.
    pub fn block_offset(&self, extent: u32, block: usize) -> u64 {
        assert!(extent < self.extent_count(), "an extent lies on its device");
        self.extents.offset + u64::from(extent) * EXTENT_SIZE + block as u64 * BLOCK_SIZE
    }
}

/// Two components for every extent, 64 to 4,096: enough for a thousand thin disks on a device of 1 GiB, while the slots
/// take at most 1.6 % of it, and never more than 32 MiB.
fn component_slots(extents: u64) -> u32 {
    if extents == 0 { 0 } else { (extents * 2).clamp(64, 4096) as u32 }
}

/// The default size of a log in bytes: a tenth of a device that also holds data, or all of a device of its own; 64 MiB
/// to 16 GiB. A tenth is vSAN's rule for the size of a cache device.
pub fn log_size_default(device_size: u64, is_shared: bool) -> u64 {
    let whole = if is_shared { device_size / 10 } else { device_size.saturating_sub(4 * MIB) };
    (whole / MIB * MIB).clamp(limits::log_size_min().min(device_size / 4 / MIB * MIB), 16 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_never_overlap_and_use_nearly_all() {
        for size_mib in (64..4096).step_by(37).chain([1 << 20, 16 << 20]) {
            let size = size_mib * MIB;
            let log = log_size_default(size, true);
            let geometry = Geometry::plan(size, Some(log), true).expect("64 MiB are enough");
            assert!(geometry.table.offset >= TABLE_OFFSET);
            assert!(geometry.log.offset >= geometry.table.end());
            assert!(geometry.extents.offset >= geometry.log.end() && geometry.extents.end() <= size);
            assert!(geometry.table.len == geometry.page_count() * 2 * BLOCK_SIZE);
            assert!(size - geometry.extents.end() < 16 * MIB, "{size_mib} MiB: the end is wasted");
        }
    }

    #[test]
    fn a_small_device_is_refused_with_the_size_it_needs() {
        let refusal = Geometry::plan(8 * MIB, Some(16 * MIB), true).expect_err("8 MiB are not enough");
        assert!(refusal.needed > 16 * MIB && refusal.to_string().contains("too small"));
    }
}
