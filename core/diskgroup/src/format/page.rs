//! Pages of the table of a capacity device: descriptors of extents, and components.
//!
//! Each page has two copies, written in turn: version *v* goes to copy `v & 1`. A page intent in the log names the
//! version before it is written, so that a copy that does not verify can be told apart: torn by a crash (the intent is
//! there: the other copy and the log have all) or damaged at rest (no intent: reported). The fixed header has a
//! checksum of its own, so that a damaged *older* copy is known to be the older one.

use super::id::{HEADER_SIZE, read_id, write_id};
use super::map::{Algorithm, DeltaPage, MapPage, SnapshotPage};
use super::{FORMAT_PLAIN, FORMAT_VERSION, FormatError, RESERVED, is_blank};
use base::bytes::{Reader, Writer};
use base::checksum;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{ComponentId, DeviceId, DiskId, WriteId};

pub use super::id::PAGE_SIZE;

const MAGIC: u32 = u32::from_le_bytes(*b"DPGE");
/// The checksum of the header, and that of the whole page.
const HEADER_SEAL_AT: usize = 8;
const PAGE_SEAL_AT: usize = 12;
/// Descriptors of one page.
pub const DESCRIPTORS_PER_PAGE: usize = 3;
const DESCRIPTOR_SIZE: usize = 1328;
/// Most bytes of the label that a component carries of its disk.
pub const DISK_LABEL_SIZE_MAX: usize = 768;
/// The component of a descriptor whose extent is a chunk of the table: 128 more pages, each with two copies; its part is the chunk's number.
pub const CHUNK: ComponentId = ComponentId(u64::MAX - 1);
/// Pages of a chunk.
pub const PAGES_PER_CHUNK: u32 = (base::units::EXTENT_SIZE / (2 * BLOCK_SIZE)) as u32;
/// Parts whose frees share one write id: those of one GiB.
pub const PARTS_PER_HOLE: u32 = 1024;
/// Holes of the largest component.
pub const HOLES_MAX: usize = 255;

const _: () = assert!(HEADER_SIZE + DESCRIPTORS_PER_PAGE * DESCRIPTOR_SIZE <= PAGE_SIZE);
const _: () = assert!(HEADER_SIZE + 80 + DISK_LABEL_SIZE_MAX + HOLES_MAX * 12 <= PAGE_SIZE);

/// What stands in one extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The component; `ComponentId(0)` if the extent is free, [`CHUNK`] if it holds pages.
    pub component: ComponentId,
    /// Which MiB of the component.
    pub part: u32,
    /// Bit *i*: block *i* has been written and not trimmed since.
    pub allocated: [u64; BLOCKS_PER_EXTENT / 64],
    /// The greatest id of a write to each region.
    pub regions: [WriteId; REGIONS_PER_EXTENT],
    /// CRC-32C of each block; meaningless where the block is not allocated.
    pub checksums: [u32; BLOCKS_PER_EXTENT],
}

impl Descriptor {
    /// A free extent.
    pub const FREE: Descriptor = Descriptor {
        component: ComponentId(0),
        part: 0,
        allocated: [0; BLOCKS_PER_EXTENT / 64],
        regions: [WriteId { epoch: 0, sequence: 0 }; REGIONS_PER_EXTENT],
        checksums: [0; BLOCKS_PER_EXTENT],
    };

    /// An extent of which nobody knows what it holds: its page was damaged. All blocks count as allocated, with a
    /// checksum that their data will not match, so that they are never served; and as changed after whatever a resync asks
    /// for, so that they are never taken for up to date.
    pub const LOST: Descriptor = Descriptor {
        component: ComponentId(u64::MAX),
        regions: [WriteId { epoch: u32::MAX, sequence: u64::MAX }; REGIONS_PER_EXTENT],
        allocated: [u64::MAX; BLOCKS_PER_EXTENT / 64],
        checksums: [0x4c4f_5354; BLOCKS_PER_EXTENT],
        ..Descriptor::FREE
    };

    /// Whether block `block` holds data.
    #[inline]
    pub fn is_allocated(&self, block: usize) -> bool {
        self.allocated[block / 64] >> (block % 64) & 1 == 1
    }

    /// Whether no block holds data.
    pub fn is_empty(&self) -> bool {
        self.allocated == [0; BLOCKS_PER_EXTENT / 64]
    }

    /// Blocks that hold data.
    pub fn allocated_count(&self) -> u32 {
        self.allocated.iter().map(|word| word.count_ones()).sum()
    }

    /// Notes that write `id` left `checksum` in `block`, or nothing.
    pub fn set(&mut self, block: usize, checksum: Option<u32>, id: WriteId) {
        match checksum {
            Some(checksum) => {
                self.allocated[block / 64] |= 1 << (block % 64);
                self.checksums[block] = checksum;
            }
            None => self.allocated[block / 64] &= !(1 << (block % 64)),
        }
        let region = &mut self.regions[block / BLOCKS_PER_REGION];
        *region = id.max(*region);
    }

    /// The greatest id of any write to it.
    pub fn write_id(&self) -> WriteId {
        self.regions.iter().copied().max().unwrap_or_default()
    }

    fn encode(&self, w: &mut Writer) {
        let start = w.len();
        w.u64(self.component.0);
        w.u32(self.part);
        w.u32(0);
        self.allocated.iter().for_each(|&word| w.u64(word));
        self.regions.iter().for_each(|&id| write_id(w, id));
        self.checksums.iter().for_each(|&checksum| w.u32(checksum));
        w.pad_to(start + DESCRIPTOR_SIZE);
    }

    fn decode(bytes: &[u8]) -> Result<Descriptor, FormatError> {
        let mut r = Reader::new(bytes);
        let component = ComponentId(r.u64());
        let part = r.u32();
        let is_clear = r.reserved(4);
        let descriptor = Descriptor {
            component,
            part,
            allocated: [(); BLOCKS_PER_EXTENT / 64].map(|()| r.u64()),
            regions: [(); REGIONS_PER_EXTENT].map(|()| read_id(&mut r)),
            checksums: [(); BLOCKS_PER_EXTENT].map(|()| r.u32()),
        };
        match is_clear && r.reserved(r.remaining()) {
            true => Ok(descriptor),
            false => Err(RESERVED),
        }
    }
}

/// Whether blocks of a component are compressed when they are destaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// They are stored as they are.
    #[default]
    Off = 0,
    /// By LZ4.
    Lz4 = 1,
    /// By Zstandard.
    Zstd = 2,
}

impl Compression {
    fn decode(byte: u8) -> Option<Compression> {
        [Compression::Off, Compression::Lz4, Compression::Zstd].into_iter().find(|one| *one as u8 == byte)
    }

    /// How blocks are stored that it makes smaller; `None`: it tries none.
    pub fn algorithm(self) -> Option<Algorithm> {
        match self {
            Compression::Off => None,
            Compression::Lz4 => Some(Algorithm::Lz4),
            Compression::Zstd => Some(Algorithm::Zstd),
        }
    }
}

/// What a component is, as its device keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentRecord {
    /// Its identity, never zero.
    pub id: ComponentId,
    /// The virtual disk that it is a part of.
    pub disk: DiskId,
    /// Its size in bytes, a whole number of extents.
    pub size: u64,
    /// Bytes of space set aside for it.
    pub reservation: u64,
    /// The epoch that it promised: it serves no owner of an earlier one.
    pub promised: u32,
    /// All changes up to this id are decided.
    pub watermark: WriteId,
    /// Whether it is being deleted: its extents are given back one by one, after a restart too.
    pub is_deleting: bool,
    /// How blocks are stored that are destaged from now on.
    pub compression: Compression,
    /// The label of its disk, from which a lost directory can be rebuilt; opaque here.
    pub disk_label: Vec<u8>,
}

impl ComponentRecord {
    /// Appends the record.
    pub(in crate::format) fn encode(&self, w: &mut Writer) {
        assert!(self.disk_label.len() <= DISK_LABEL_SIZE_MAX, "the maker of a record keeps to its limit");
        w.u64(self.id.0);
        w.u128(self.disk.0);
        w.u64(self.size);
        w.u64(self.reservation);
        w.u32(self.promised);
        write_id(w, self.watermark);
        w.u8(u8::from(self.is_deleting));
        w.u8(self.compression as u8);
        w.u16(self.disk_label.len() as u16);
        w.slice(&self.disk_label);
    }

    pub(in crate::format) fn decode(r: &mut Reader<'_>) -> Result<ComponentRecord, FormatError> {
        let (id, disk) = (ComponentId(r.u64()), DiskId(r.u128()));
        let (size, reservation) = (r.u64(), r.u64());
        let (promised, watermark) = (r.u32(), read_id(r));
        let is_deleting = r.u8() != 0;
        let compression = Compression::decode(r.u8()).ok_or(RESERVED)?;
        let len = r.u16() as usize;
        if len > DISK_LABEL_SIZE_MAX {
            return Err(FormatError::Damaged("a component's record is too long"));
        }
        let disk_label = r.slice(len).to_vec();
        r.finish()?;
        let record = ComponentRecord {
            id,
            disk,
            size,
            reservation,
            promised,
            watermark,
            is_deleting,
            compression,
            disk_label,
        };
        match record.makes_sense() {
            true => Ok(record),
            false => Err(FormatError::Damaged("a component's size or identity makes no sense")),
        }
    }

    /// Whether it is one that can be read again: what is not must never be written.
    pub(crate) fn makes_sense(&self) -> bool {
        self.id.0 != 0
            && (1..=base::units::COMPONENT_SIZE_MAX).contains(&self.size)
            && self.size.is_multiple_of(base::units::EXTENT_SIZE)
            && self.disk_label.len() <= DISK_LABEL_SIZE_MAX
    }
}

/// What a page holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageContent {
    /// Descriptors of three neighbouring extents.
    Descriptors(Box<[Descriptor; DESCRIPTORS_PER_PAGE]>),
    /// A slot for a component: empty, or the component and for each GiB of it the greatest id of a free of an extent.
    Component(Option<(ComponentRecord, Vec<WriteId>)>),
    /// The blocks of a mapped part.
    Map(Box<MapPage>),
    /// What snapshots see of a mapped part.
    Delta(Box<DeltaPage>),
    /// Snapshots of a component.
    Snapshots(Box<SnapshotPage>),
}

/// A page with what tells it apart from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The device it belongs to.
    pub device: DeviceId,
    /// Its number in the table.
    pub number: u32,
    /// Grows with each writing; a page never written has version 0 and is blank.
    pub version: u64,
    /// The batch before which the intents of its checkpoint stand: it counts once the anchor tells that stamps up to this one do
    /// (docs/design/0044). 0 in format 1, in which each page that verifies counts.
    pub stamp: u64,
    /// What it holds.
    pub content: PageContent,
}

/// What one copy of a page turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    /// Never written (or left over from another formatting).
    Blank,
    /// Valid.
    Valid(Page),
    /// Not valid; the version if at least the header is.
    Invalid(Option<u64>),
}

impl Page {
    /// The bytes of a copy.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(PAGE_SIZE);
        w.u32(MAGIC);
        w.u32(if self.stamp == 0 { FORMAT_PLAIN } else { FORMAT_VERSION });
        w.u64(0); // the two checksums' places
        w.u128(self.device.0);
        w.u32(self.number);
        w.u32(match self.content {
            PageContent::Descriptors(_) => 1,
            PageContent::Component(None) => 2,
            PageContent::Component(Some(_)) => 3,
            PageContent::Map(_) => 4,
            PageContent::Delta(_) => 5,
            PageContent::Snapshots(_) => 6,
        });
        w.u64(self.version);
        w.u64(self.stamp);
        w.pad_to(HEADER_SIZE);
        match &self.content {
            PageContent::Descriptors(descriptors) => descriptors.iter().for_each(|one| one.encode(&mut w)),
            PageContent::Component(None) => {}
            PageContent::Component(Some((record, holes))) => {
                assert!(holes.len() <= HOLES_MAX, "a component has at most 255 GiB");
                w.u32(holes.len() as u32);
                holes.iter().for_each(|&id| write_id(&mut w, id));
                record.encode(&mut w);
            }
            PageContent::Map(page) => page.encode(&mut w),
            PageContent::Delta(page) => page.encode(&mut w),
            PageContent::Snapshots(page) => page.encode(&mut w),
        }
        w.pad_to(PAGE_SIZE);
        let mut bytes = w.into_bytes();
        checksum::seal(&mut bytes[..HEADER_SIZE], HEADER_SEAL_AT);
        checksum::seal(&mut bytes, PAGE_SEAL_AT);
        bytes
    }

    /// Reads the copy of page `number` of `device`.
    pub fn decode(bytes: &[u8], device: DeviceId, number: u32) -> Copy {
        if is_blank(bytes) {
            return Copy::Blank;
        }
        if bytes.len() != PAGE_SIZE {
            return Copy::Invalid(None);
        }
        // The page's checksum was set after the header's, whose seal must be checked without it.
        let mut header = [0u8; HEADER_SIZE];
        header.copy_from_slice(&bytes[..HEADER_SIZE]);
        header[PAGE_SEAL_AT..PAGE_SEAL_AT + 4].fill(0);
        if !checksum::is_sealed(&header, HEADER_SEAL_AT) {
            return Copy::Invalid(None);
        }
        let mut r = Reader::new(bytes);
        let (magic, format) = (r.u32(), r.u32());
        r.u64();
        let found = (DeviceId(r.u128()), r.u32());
        let kind = r.u32();
        let (version, stamp) = (r.u64(), r.u64());
        let is_clear = r.reserved(HEADER_SIZE - 56) && (stamp == 0) == (format == FORMAT_PLAIN);
        if magic != MAGIC || !(FORMAT_PLAIN..=FORMAT_VERSION).contains(&format) {
            return Copy::Invalid(None);
        }
        if found.0 != device {
            return Copy::Blank;
        }
        if found.1 != number || version == 0 || !is_clear || !checksum::is_sealed(bytes, PAGE_SEAL_AT) {
            return Copy::Invalid((found.1 == number).then_some(version));
        }
        match Page::decode_content(kind, &bytes[HEADER_SIZE..]) {
            Ok(content) => Copy::Valid(Page { device, number, version, stamp, content }),
            Err(_) => Copy::Invalid(Some(version)),
        }
    }

    fn decode_content(kind: u32, body: &[u8]) -> Result<PageContent, FormatError> {
        match kind {
            1 => {
                let at = |i: usize| Descriptor::decode(&body[i * DESCRIPTOR_SIZE..][..DESCRIPTOR_SIZE]);
                Ok(PageContent::Descriptors(Box::new([at(0)?, at(1)?, at(2)?])))
            }
            2 => Ok(PageContent::Component(None)),
            3 => {
                let mut r = Reader::new(body);
                let count = r.u32() as usize;
                if count > HOLES_MAX {
                    return Err(FormatError::Damaged("a component has too many holes"));
                }
                let holes = (0..count).map(|_| read_id(&mut r)).collect();
                Ok(PageContent::Component(Some((ComponentRecord::decode(&mut r)?, holes))))
            }
            4 => Ok(PageContent::Map(Box::new(MapPage::decode(body)?))),
            5 => Ok(PageContent::Delta(Box::new(DeltaPage::decode(body)?))),
            6 => Ok(PageContent::Snapshots(Box::new(SnapshotPage::decode(body)?))),
            _ => Err(FormatError::Damaged("a page of an unknown kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(version: u64) -> Page {
        let mut descriptors = Box::new([Descriptor::FREE, Descriptor::FREE, Descriptor::FREE]);
        descriptors[1].component = ComponentId(5);
        descriptors[1].part = 77;
        descriptors[1].set(3, Some(0xabcd), WriteId { epoch: 1, sequence: 9 });
        descriptors[1].set(255, Some(1), WriteId { epoch: 1, sequence: 8 });
        let content = PageContent::Descriptors(descriptors);
        Page { device: DeviceId(1), number: 70, version, stamp: 0, content }
    }

    #[test]
    fn reserved_bytes_that_are_set_are_refused() {
        for at in [HEADER_SIZE - 1, HEADER_SIZE + 12, HEADER_SIZE + DESCRIPTOR_SIZE - 1] {
            let mut bytes = sample(3).encode();
            bytes[at] = 1;
            bytes[PAGE_SEAL_AT..PAGE_SEAL_AT + 4].fill(0);
            checksum::seal(&mut bytes[..HEADER_SIZE], HEADER_SEAL_AT);
            checksum::seal(&mut bytes, PAGE_SEAL_AT);
            assert_eq!(Page::decode(&bytes, DeviceId(1), 70), Copy::Invalid(Some(3)), "byte {at}");
        }
    }

    #[test]
    fn descriptors_come_back() {
        let page = sample(3);
        assert_eq!(Page::decode(&page.encode(), DeviceId(1), 70), Copy::Valid(page));
    }

    #[test]
    fn the_largest_component_record_fits_and_comes_back() {
        let record = ComponentRecord {
            id: ComponentId(1),
            disk: DiskId(2),
            size: 255 << 30,
            reservation: 1 << 20,
            promised: 9,
            watermark: WriteId { epoch: 8, sequence: 7 },
            is_deleting: true,
            compression: Compression::Lz4,
            disk_label: vec![7; DISK_LABEL_SIZE_MAX],
        };
        let holes = vec![WriteId { epoch: 1, sequence: 2 }; HOLES_MAX];
        let content = PageContent::Component(Some((record, holes)));
        let page = Page { device: DeviceId(1), number: 0, version: 1, stamp: 0, content };
        assert_eq!(Page::decode(&page.encode(), DeviceId(1), 0), Copy::Valid(page));
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_an_intact_header_still_tells_the_version() {
        let bytes = sample(3).encode();
        for at in 0..PAGE_SIZE {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let expected =
                if (HEADER_SIZE..).contains(&at) || (12..16).contains(&at) { Some(3) } else { None };
            assert_eq!(Page::decode(&damaged, DeviceId(1), 70), Copy::Invalid(expected), "byte {at}");
        }
    }

    #[test]
    fn a_page_in_the_wrong_place_is_invalid_and_one_of_a_former_formatting_blank() {
        let bytes = sample(3).encode();
        assert_eq!(Page::decode(&bytes, DeviceId(1), 71), Copy::Invalid(None));
        assert_eq!(Page::decode(&bytes, DeviceId(2), 70), Copy::Blank);
        assert_eq!(Page::decode(&[0; PAGE_SIZE], DeviceId(2), 70), Copy::Blank);
    }
}
