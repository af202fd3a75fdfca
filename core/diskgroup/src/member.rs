//! One device of a group: whether it can be used, its extents and who owns them.

use crate::effort::Meter;
use crate::format::map::Entry;
use crate::format::page::{CHUNK, DESCRIPTORS_PER_PAGE, Descriptor, PAGES_PER_CHUNK};
use crate::format::superblock::{Geometry, Superblock};
use crate::io::DamagedBlock;
use crate::log::BatchStart;
use crate::pools::{Frame, Pools, Slot};
use crate::read::{BlockLocation, UNITS_PER_BLOCK};
use crate::space::Space;
use crate::table::{Content, Table};
use crate::unreadable::FailedReads;
use base::units::{BLOCK_SIZE, EXTENT_SIZE, SECTOR_SIZE};
use base::{ComponentId, DeviceId};
use std::collections::{BTreeSet, VecDeque};

/// Who owns an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Owner {
    /// `ComponentId(0)`: nobody.
    pub(crate) component: ComponentId,
    pub(crate) part: u32,
}

impl Owner {
    pub(crate) fn is_free(self) -> bool {
        self.component.0 == 0
    }

    /// The descriptor of its extent, if nobody knows what stands there.
    fn of_unknown(self) -> Descriptor {
        Descriptor { component: self.component, part: self.part, ..Descriptor::LOST }
    }

    /// Whether a part of a component has the extent.
    pub(crate) fn is_part(self) -> bool {
        !self.is_free() && !self.is_chunk() && self.component != Descriptor::LOST.component
    }

    /// Whether the extent holds pages of the table.
    pub(crate) fn is_chunk(self) -> bool {
        self.component == CHUNK
    }
}

/// Whether a device can be used.
#[derive(Debug)]
pub(crate) enum Standing {
    InService,
    /// It was not there when the group was opened, and may come back whole.
    Away {
        why: String,
        /// The first batch of the log that speaks of it.
        since: Option<BatchStart>,
    },
    /// It is out of service until it is replaced.
    Failed {
        why: String,
    },
}

/// What becomes of the chunk that is being made on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkMaking {
    /// Its extent is taken; its descriptor's page is to be read, and memory to be had.
    Begun { extent: u32 },
    /// It is being filled with zeroes, and then told to the log.
    OnItsWay { extent: u32 },
}

/// One device of the group. A mere log device has no extents.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: DeviceId,
    pub(crate) geometry: Geometry,
    standing: Standing,
    /// While it is being taken out: the position that the log's tail must reach first.
    leaves_at: Option<u64>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) space: Space,
    /// The extents in which mapped parts have their blocks.
    pub(crate) pools: Pools,
    pub(crate) table: Table,
    /// Extents of which nobody knows what the part has in them to which they belong, until their descriptors say so.
    doubted: BTreeSet<u32>,
    /// The chunk that is being made.
    pub(crate) chunk: Option<ChunkMaking>,
    /// Extents of chunks that were being made when the group ended, whose records are in the log: they are made before others.
    pub(crate) chunks_made: VecDeque<u32>,
    /// Extents of which nobody knows what they hold, since the page that told was damaged. While there are any, a part
    /// without an extent is not known to be a hole.
    pub(crate) lost_extents: u32,
    /// Pages of chunks of which nobody knows what they told: counted above, too. While there are any, a snapshot may see other blocks than its
    /// pages say.
    pub(crate) lost_pages: u32,
    pub(crate) component_count: u32,
    /// Whether writes have completed since the last flush was asked for.
    pub(crate) is_unsynced: bool,
    pub(crate) damaged_blocks: u64,
    /// Blocks that its device could not read.
    pub(crate) failed_reads: FailedReads,
    /// How long it works for what it does.
    pub(crate) meter: Meter,
    /// By component, part, block and snapshot (0: the live disk).
    pub(crate) damaged_named: Vec<(ComponentId, u32, u16, u32)>,
    /// What was found, or found again, since whoever mends damage was told.
    pub(crate) damaged_untold: BTreeSet<(ComponentId, DamagedBlock)>,
}

impl Member {
    /// The device with that superblock; away, if that stands in for a device which is not there.
    pub(crate) fn new(superblock: &Superblock) -> Member {
        let Superblock { device: id, geometry, .. } = *superblock;
        let standing = match superblock.is_away() {
            true => Standing::Away { why: "it is not there".to_owned(), since: None },
            false => Standing::InService,
        };
        let extents = geometry.extent_count();
        Member {
            id,
            geometry,
            standing,
            leaves_at: None,
            owners: vec![Owner::default(); extents as usize],
            space: Space::new(extents),
            pools: Pools::default(),
            table: Table::new(&geometry),
            doubted: BTreeSet::new(),
            chunk: None,
            chunks_made: VecDeque::new(),
            lost_extents: 0,
            lost_pages: 0,
            component_count: 0,
            is_unsynced: false,
            damaged_blocks: 0,
            failed_reads: FailedReads::default(),
            meter: Meter::default(),
            damaged_named: Vec::new(),
            damaged_untold: BTreeSet::new(),
        }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn is_in_service(&self) -> bool {
        matches!(self.standing, Standing::InService)
    }

    /// Why it is out of service, if it is.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.standing {
            Standing::InService => None,
            Standing::Away { why, .. } | Standing::Failed { why } => Some(why),
        }
    }

    /// It is out of service until it is replaced.
    pub(crate) fn fail(&mut self, why: String) {
        self.standing = Standing::Failed { why };
    }

    /// Says of a member that is away what was found instead of it.
    pub(crate) fn note_missing(&mut self, found: &str) {
        if let Standing::Away { why, .. } = &mut self.standing {
            *why = found.to_owned();
        }
    }

    /// The log speaks of it from there on, if it is away.
    pub(crate) fn keep_log_from(&mut self, start: BatchStart) {
        if let Standing::Away { since, .. } = &mut self.standing {
            since.get_or_insert(start);
        }
    }

    /// While it is away: the first batch of the log that speaks of it.
    pub(crate) fn away_since(&self) -> Option<BatchStart> {
        match self.standing {
            Standing::Away { since, .. } => since,
            Standing::InService | Standing::Failed { .. } => None,
        }
    }

    /// It is being taken out once the log's tail has reached `position`: no component may be made on it.
    pub(crate) fn leave_at(&mut self, position: u64) {
        self.leaves_at = Some(position);
    }

    /// While it is being taken out: the position that the log's tail must reach first.
    pub(crate) fn leaves_at(&self) -> Option<u64> {
        self.leaves_at
    }

    /// Whether it stands for an index of the group without a device.
    pub(crate) fn is_vacant(&self) -> bool {
        self.id == DeviceId(0)
    }

    pub(crate) fn is_capacity(&self) -> bool {
        self.geometry.extent_count() > 0
    }

    /// Puts a page in memory whose copy does not verify, while the owners of its extents are known: every block counts as
    /// allocated, with a checksum that its data will not match, so that reads say "damaged" until it is written again.
    pub(crate) fn keep_unreadable(&mut self, page: u32) {
        let first = self.table.first_extent(page);
        let descriptor = |extent: u32| match self.owners.get(extent as usize) {
            Some(owner) if !owner.is_free() => owner.of_unknown(),
            Some(_) | None => Descriptor::FREE,
        };
        let descriptors = Box::new([descriptor(first), descriptor(first + 1), descriptor(first + 2)]);
        self.table.keep(page, Content::Descriptors(descriptors));
        self.table.mark_dirty(page);
    }

    /// What stands in an extent is not known, but whose it is. Its descriptor says that from now on, or as soon as its page is read.
    pub(crate) fn doubt(&mut self, extent: u32) {
        let (page, _) = self.table.page_of(extent);
        // A page that was never written tells of no extent that was ever anybody's.
        if self.table.version(page) > 0 {
            self.doubted.insert(extent);
            self.settle_doubts(page);
        }
    }

    /// If a page of descriptors is in memory, those of it that are doubted say so.
    pub(crate) fn settle_doubts(&mut self, page: u32) {
        if self.doubted.is_empty() || page >= self.table.fixed_count() || !self.table.is_in_memory(page) {
            return;
        }
        let first = self.table.first_extent(page);
        for extent in self.doubted.extract_if(first..first + DESCRIPTORS_PER_PAGE as u32, |_| true) {
            let owner = self.owners[extent as usize];
            // Freed since: the log says so, and its descriptor is cleared by that.
            if !owner.is_free() {
                self.table.mark_dirty(page);
                *self.table.descriptor(extent).expect("its page is in memory") = owner.of_unknown();
            }
        }
    }

    /// Where a block of an extent stands, as a location of index `own`.
    pub(crate) fn rest(&self, own: u8, extent: u32, block: u16, checksum: u32) -> BlockLocation {
        let unit = self.geometry.block_offset(extent, usize::from(block)) / SECTOR_SIZE;
        BlockLocation::Rest { member: own, unit, checksum }
    }

    /// The frame at that unit of the device.
    pub(crate) fn frame_at(&self, unit: u64) -> Option<Frame> {
        let beyond = (unit * SECTOR_SIZE).checked_sub(self.geometry.extents.offset)?;
        let extent = u32::try_from(beyond / EXTENT_SIZE).ok()?;
        let block = (beyond % EXTENT_SIZE / BLOCK_SIZE) as u8;
        (extent < self.geometry.extent_count()).then_some(Frame { extent, block })
    }

    /// The slot in which a block with that entry stands.
    pub(crate) fn slot_of(&self, entry: Entry) -> Option<Slot> {
        self.slot_at(entry.unit()?, entry.units())
    }

    /// The slot of so many units at that unit of the device.
    pub(crate) fn slot_at(&self, unit: u64, units: u8) -> Option<Slot> {
        let first = (unit % UNITS_PER_BLOCK) as u8;
        self.frame_at(unit).map(|frame| Slot::of(frame, first, units))
    }

    /// Recovery has read the descriptors: they tell which extents are chunks of the table.
    ///
    /// # Errors
    /// When they cannot all be.
    pub(crate) fn find_chunks(&mut self) -> Result<(), &'static str> {
        let owners = self.owners.iter().zip(0..);
        let chunks: Vec<(u32, u32)> = owners
            .filter(|(owner, _)| owner.is_chunk())
            .map(|(owner, extent)| (owner.part, extent))
            .collect();
        for (number, extent) in chunks {
            if number as usize >= self.owners.len() || self.table.extent_of_chunk(number).is_some() {
                return Err("two extents claim the same pages of the table");
            }
            self.table.add_chunk(number, extent);
        }
        Ok(())
    }

    /// Free pages of chunks, those of chunks that are being made among them: promised pages need no other extent.
    pub(crate) fn pages_had(&self) -> u32 {
        // One that was being made before is both until it is made.
        let is_new = self.chunk.is_some() && self.chunks_made.is_empty();
        let made = u32::from(is_new) + self.chunks_made.len() as u32;
        self.table.free_page_count() + made * PAGES_PER_CHUNK
    }

    /// The unit of the device at which a frame begins.
    pub(crate) fn unit_of(&self, frame: Frame) -> u64 {
        self.geometry.block_offset(frame.extent, usize::from(frame.block)) / SECTOR_SIZE
    }

    /// Where a copy of a page stands; `None` if it is of a chunk whose extent nobody knows.
    pub(crate) fn page_offset(&self, page: u32, copy: u64) -> Option<u64> {
        match self.table.chunk_of(page) {
            None => Some(self.geometry.page_offset(page, copy)),
            Some((extent, index)) => {
                Some(self.geometry.block_offset(extent?, (index * 2) as usize + copy as usize))
            }
        }
    }
}
