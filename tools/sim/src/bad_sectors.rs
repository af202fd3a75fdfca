//! Blocks of one host's devices that cannot be read until they are written again.

use crate::world::World;
use base::units::BLOCK_SIZE;
use diskgroup::format::anchor::anchor_offset;
use diskgroup::format::batch::HEADER_BLOCKS_MAX;

impl World {
    /// A block of a device fails reads from now on. In the log none within reach of another: a header and its copy would be
    /// gone, what they said nobody knows, and the group stays closed. Nor both copies of the
    /// anchor, one of which may be torn while it is written.
    pub(crate) fn spoil_block(&mut self) {
        let has_chunks = self.features.snapshots || self.features.compression;
        let may_hit_pages = self.features.bad_pages || !has_chunks;
        if !may_hit_pages && !self.is_open {
            return; // Nobody knows which extents hold pages.
        }
        let place = self.bad_sectors.below(self.devices.len() as u64) as usize;
        if !may_hit_pages && self.away_members >> place & 1 == 1 {
            return; // Nor of a device that is away.
        }
        let geometry = self.superblocks[place].geometry;
        let extents = geometry.extents.offset..geometry.extents.end();
        let chunks = self.group.as_ref().map(|group| group.chunks(place as u8)).unwrap_or_default();
        let log = geometry.log.offset..geometry.log.end();
        let range = match self.bad_sectors.below(8) {
            0 if place == 0 => anchor_offset(0)..anchor_offset(1) + BLOCK_SIZE,
            1..=3 if place == 0 => log.clone(),
            4 if self.features.bad_pages && !chunks.is_empty() && self.bad_sectors.chance(1, 2) => {
                chunks[self.bad_sectors.below(chunks.len() as u64) as usize].clone()
            }
            4 if self.features.bad_pages => geometry.table.offset..geometry.table.end(),
            _ => extents,
        };
        let is_anchor = range.start == anchor_offset(0);
        let device = &self.devices[place];
        let mut candidates = device.readable_blocks(range.clone());
        candidates.retain(|number| {
            let reach = number.saturating_sub(HEADER_BLOCKS_MAX)..number + HEADER_BLOCKS_MAX;
            !log.contains(&(number * BLOCK_SIZE)) || !device.is_any_unreadable(reach)
        });
        let is_page = |number: &u64| chunks.iter().any(|chunk| chunk.contains(&(number * BLOCK_SIZE)));
        candidates.retain(|number| may_hit_pages || !is_page(number));
        let is_last_anchor = is_anchor
            && (device.is_unreadable(range.start, 2 * BLOCK_SIZE as usize)
                || device.is_being_written(&range));
        if candidates.is_empty() || is_last_anchor {
            return;
        }
        let number = candidates[self.bad_sectors.below(candidates.len() as u64) as usize];
        self.devices[place].spoil(number);
        self.bad_sector_count += 1;
        self.note("bad sector", number * BLOCK_SIZE);
    }

    pub(crate) fn has_bad_sectors(&self) -> bool {
        self.bad_sector_count > 0
    }

    pub(crate) fn has_bad_pages(&self) -> bool {
        self.features.bad_pages && self.bad_sector_count > 0
    }

    pub(crate) fn may_lose_pages(&self) -> bool {
        self.has_rot || self.has_bad_pages()
    }

    /// One bad sector damages one block, unless it is of a page, or a frame in which several compressed blocks stand.
    pub(crate) fn check_damage(&self) -> Result<(), String> {
        let (damaged, bad) = (self.damaged_alone.len(), self.bad_sector_count);
        let blocks_of_sector = if self.features.compression { 8 } else { 1 };
        match self.may_lose_pages() || damaged <= bad * blocks_of_sector {
            true => Ok(()),
            false => Err(format!("{damaged} blocks are damaged by {bad} bad sectors")),
        }
    }
}
