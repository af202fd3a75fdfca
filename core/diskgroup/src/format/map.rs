//! Pages of mapped parts (docs/design/0044): where each block of such a part stands, what snapshots see of it beside that, and
//! which snapshots a component has.

use super::id::{HEADER_SIZE, PAGE_SIZE, read_id, write_id};
use super::{FormatError, RESERVED};
use base::bytes::{Reader, Writer};
use base::units::{BLOCKS_PER_EXTENT, REGIONS_PER_EXTENT, SECTOR_SIZE};
use base::{ComponentId, WriteId};
use std::fmt;

/// Bytes of a page behind its header.
const BODY_SIZE: usize = PAGE_SIZE - HEADER_SIZE;
/// Bytes of an entry.
const ENTRY_SIZE: usize = 14;
/// Bytes of a delta page before its groups.
const DELTA_HEAD_SIZE: usize = 14;
/// Bytes of a group of a delta page before its entries.
const GROUP_HEAD_SIZE: usize = 6;
/// Bytes of a snapshot in a list.
const SNAPSHOT_SIZE: usize = 36;
/// Snapshots in one page of a list.
pub const SNAPSHOTS_PER_PAGE: usize = 100;
/// Most snapshots of a component, those that are being deleted among them.
pub const SNAPSHOTS_MAX: usize = 512;

const _: () =
    assert!(8 + 4 + 4 + 8 + 8 + REGIONS_PER_EXTENT * 12 + BLOCKS_PER_EXTENT * ENTRY_SIZE <= BODY_SIZE);
const _: () = assert!(DELTA_HEAD_SIZE + GROUP_HEAD_SIZE + BLOCKS_PER_EXTENT * (1 + ENTRY_SIZE) <= BODY_SIZE);
const _: () = assert!(20 + SNAPSHOTS_PER_PAGE * SNAPSHOT_SIZE <= BODY_SIZE);

/// How a block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// As it is.
    Plain,
    /// By LZ4.
    Lz4,
    /// By Zstandard.
    Zstd,
}

/// In how many units of 512 bytes a block is stored, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// 1 to 8; fewer than 8 if it is compressed.
    pub units: u8,
    /// How.
    pub algorithm: Algorithm,
}

impl Form {
    /// As it is.
    pub const PLAIN: Form = Form { units: UNITS_PER_BLOCK, algorithm: Algorithm::Plain };

    /// The entry of a block in that form at that unit of the device.
    pub fn entry_at(self, unit: u64, checksum: u32) -> Entry {
        Entry::stored(unit, self.units, self.algorithm, checksum)
    }

    /// Whether it is compressed.
    pub fn is_packed(self) -> bool {
        self.algorithm != Algorithm::Plain
    }
}

/// Where a block of a mapped part stands, and since when: one entry of a map or delta page.
///
/// The low 48 bits of `place` are the six bytes of the device: the place in units of 512 bytes (40 bits, 0: a hole), units less one (3),
/// algorithm (2), shared (1), key (2; always 0 now).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    place: u64,
    /// CRC-32C of the block as it was written.
    pub checksum: u32,
    /// The number of the component's newest snapshot when it was written; 0: none, or it is not known.
    pub born: u32,
}

const UNIT_BITS: u32 = 40;
const UNIT_MASK: u64 = (1 << UNIT_BITS) - 1;
const UNITS_SHIFT: u32 = 40;
const ALGORITHM_SHIFT: u32 = 43;
const SHARED_BIT: u64 = 1 << 45;
/// The place of a block whose map page was damaged.
const LOST: u64 = UNIT_MASK;
/// Units of a block that is stored as it is.
const UNITS_PER_BLOCK: u8 = (base::units::BLOCK_SIZE / SECTOR_SIZE) as u8;

impl Entry {
    /// A block that never was written.
    pub const HOLE: Entry = Entry { place: 0, checksum: 0, born: 0 };
    /// A block of which nobody knows where it stands.
    pub const LOST: Entry = Entry { place: LOST, checksum: 0, born: 0 };

    /// The same of a delta page that was damaged: nor is it known which older snapshots saw the block otherwise.
    pub const LOST_PAGE: Entry = Entry { place: LOST, checksum: 0, born: u32::MAX };

    /// A block that is stored as it is, at that unit (512 bytes) of the device.
    pub fn plain(unit: u64, checksum: u32, born: u32) -> Entry {
        Entry::stored(unit, UNITS_PER_BLOCK, Algorithm::Plain, checksum).born(born)
    }

    /// A block that takes so many units from `unit` on.
    pub fn stored(unit: u64, units: u8, algorithm: Algorithm, checksum: u32) -> Entry {
        assert!(unit > 0 && unit < LOST, "a block stands on its device");
        assert!((1..=UNITS_PER_BLOCK).contains(&units), "a block takes 1 to 8 units");
        let place = unit | u64::from(units - 1) << UNITS_SHIFT | (algorithm as u64) << ALGORITHM_SHIFT;
        Entry { place, checksum, born: 0 }
    }

    /// A block that was trimmed.
    pub fn hole(born: u32) -> Entry {
        Entry { born, ..Entry::HOLE }
    }

    /// The same, written when that snapshot was the newest.
    #[must_use]
    pub fn born(self, born: u32) -> Entry {
        Entry { born, ..self }
    }

    /// Where it stands on its device, in units of 512 bytes; `None` for a hole, and for what is lost.
    pub fn unit(self) -> Option<u64> {
        Some(self.place & UNIT_MASK).filter(|unit| *unit != 0 && *unit != LOST)
    }

    /// Whether it reads as zeroes.
    pub fn is_hole(self) -> bool {
        self.place & UNIT_MASK == 0
    }

    /// Whether nobody knows where it stands.
    pub fn is_lost(self) -> bool {
        self.place & UNIT_MASK == LOST
    }

    /// Units that it takes.
    pub fn units(self) -> u8 {
        (self.place >> UNITS_SHIFT & 7) as u8 + 1
    }

    /// How it is stored.
    pub fn algorithm(self) -> Algorithm {
        match self.place >> ALGORITHM_SHIFT & 3 {
            1 => Algorithm::Lz4,
            2 => Algorithm::Zstd,
            _ => Algorithm::Plain,
        }
    }

    /// In how many units, and how, it is stored.
    pub fn form(self) -> Form {
        Form { units: self.units(), algorithm: self.algorithm() }
    }

    fn encode(self, w: &mut Writer) {
        w.u32(self.place as u32);
        w.u16((self.place >> 32) as u16);
        w.u32(self.checksum);
        w.u32(self.born);
    }

    fn decode(r: &mut Reader<'_>) -> Result<Entry, FormatError> {
        let place = u64::from(r.u32()) | u64::from(r.u16()) << 32;
        let entry = Entry { place, checksum: r.u32(), born: r.u32() };
        let (units, algorithm) = (entry.units(), place >> ALGORITHM_SHIFT & 3);
        let is_sane = match entry.unit() {
            None => place & !UNIT_MASK == 0 && entry.checksum == 0,
            Some(unit) => {
                let is_within_frame = unit % u64::from(UNITS_PER_BLOCK) + u64::from(units) <= 8;
                is_within_frame && algorithm < 3 && (algorithm == 0) == (units == UNITS_PER_BLOCK)
            }
        };
        match is_sane && place >> 46 == 0 && place & SHARED_BIT == 0 {
            true => Ok(entry),
            false => Err(FormatError::Damaged("an entry of a map page makes no sense")),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit() {
            Some(unit) => write!(f, "{unit}+{} {:08x}, born {}", self.units(), self.checksum, self.born),
            None if self.is_lost() => write!(f, "lost, born {}", self.born),
            None => write!(f, "hole, born {}", self.born),
        }
    }
}

/// A page about a mapped part: each block as the live disk sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPage {
    /// The component.
    pub component: ComponentId,
    /// Which MiB of it.
    pub part: u32,
    /// It contains all that the log has of the part before this position.
    pub through: u64,
    /// It contains all rollbacks of the component up to the one whose record is in the batch at this position of the log; 0: none.
    pub rolled_back: u64,
    /// The greatest id of a write to each region.
    pub regions: [WriteId; REGIONS_PER_EXTENT],
    /// By block.
    pub entries: Box<[Entry; BLOCKS_PER_EXTENT]>,
}

impl MapPage {
    /// That of a part with nothing in it.
    pub fn empty(component: ComponentId, part: u32) -> MapPage {
        MapPage {
            component,
            part,
            through: 0,
            rolled_back: 0,
            regions: [WriteId::default(); REGIONS_PER_EXTENT],
            entries: Box::new([Entry::HOLE; BLOCKS_PER_EXTENT]),
        }
    }

    /// That of a part of which nobody knows where its blocks stand. They count as changed after whatever a resync asks for.
    pub fn lost(component: ComponentId, part: u32) -> MapPage {
        MapPage {
            regions: [WriteId { epoch: u32::MAX, sequence: u64::MAX }; REGIONS_PER_EXTENT],
            entries: Box::new([Entry::LOST; BLOCKS_PER_EXTENT]),
            ..MapPage::empty(component, part)
        }
    }

    /// The greatest id of any write to it.
    pub fn write_id(&self) -> WriteId {
        self.regions.iter().copied().max().unwrap_or_default()
    }

    pub(super) fn encode(&self, w: &mut Writer) {
        w.u64(self.component.0);
        w.u32(self.part);
        w.u32(0);
        w.u64(self.through);
        w.u64(self.rolled_back);
        self.regions.iter().for_each(|&id| write_id(w, id));
        self.entries.iter().for_each(|entry| entry.encode(w));
    }

    pub(super) fn decode(body: &[u8]) -> Result<MapPage, FormatError> {
        let mut r = Reader::new(body);
        let (component, part) = (ComponentId(r.u64()), r.u32());
        let is_clear = r.reserved(4);
        let (through, rolled_back) = (r.u64(), r.u64());
        let regions = [(); REGIONS_PER_EXTENT].map(|()| read_id(&mut r));
        let mut entries = Box::new([Entry::HOLE; BLOCKS_PER_EXTENT]);
        for entry in entries.iter_mut() {
            *entry = Entry::decode(&mut r)?;
        }
        r.finish()?;
        match is_clear && r.reserved(r.remaining()) {
            true => Ok(MapPage { component, part, through, rolled_back, regions, entries }),
            false => Err(RESERVED),
        }
    }
}

/// Blocks of a part as one snapshot sees them, which later snapshots and the live disk see otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaGroup {
    /// The number of the snapshot.
    pub snapshot: u32,
    /// Each block once, ascending.
    pub entries: Vec<(u8, Entry)>,
}

/// A page with entries of the deltas of a part's snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaPage {
    /// The component.
    pub component: ComponentId,
    /// Which MiB of it.
    pub part: u32,
    /// One for each snapshot, none of them empty, ascending.
    pub groups: Vec<DeltaGroup>,
}

impl DeltaPage {
    /// That of a part without anything in it.
    pub fn empty(component: ComponentId, part: u32) -> DeltaPage {
        DeltaPage { component, part, groups: Vec::new() }
    }

    fn size(&self) -> usize {
        let entries: usize = self.groups.iter().map(|group| group.entries.len()).sum();
        DELTA_HEAD_SIZE + self.groups.len() * GROUP_HEAD_SIZE + entries * (1 + ENTRY_SIZE)
    }

    /// Entries that fit beside those that are there, be they of a snapshot that has none there yet.
    pub fn room(&self) -> usize {
        BODY_SIZE.saturating_sub(self.size() + GROUP_HEAD_SIZE) / (1 + ENTRY_SIZE)
    }

    /// The entry of a block in the delta of a snapshot.
    pub fn find(&self, snapshot: u32, block: u8) -> Option<Entry> {
        let group = self.groups.iter().find(|group| group.snapshot == snapshot)?;
        group.entries.binary_search_by_key(&block, |(block, _)| *block).ok().map(|at| group.entries[at].1)
    }

    /// Puts an entry that is not there, or one that is lost, into the delta of a snapshot. False, and nothing is done, if the page is full.
    pub fn put(&mut self, snapshot: u32, block: u8, entry: Entry) -> bool {
        let at = self.groups.partition_point(|group| group.snapshot < snapshot);
        let is_there = self.groups.get(at).is_some_and(|group| group.snapshot == snapshot);
        let more = 1 + ENTRY_SIZE + if is_there { 0 } else { GROUP_HEAD_SIZE };
        if self.size() + more > BODY_SIZE {
            return false;
        }
        if !is_there {
            self.groups.insert(at, DeltaGroup { snapshot, entries: Vec::new() });
        }
        let entries = &mut self.groups[at].entries;
        match entries.binary_search_by_key(&block, |(block, _)| *block) {
            // The map page was lost: whether the live disk had replaced the block before is not known.
            Ok(_) if entry.is_lost() => {}
            Ok(_) => unreachable!("a delta has a block once"),
            Err(place) => entries.insert(place, (block, entry)),
        }
        true
    }

    /// Takes the entry of a block out of the delta of a snapshot.
    pub fn take_block(&mut self, snapshot: u32, block: u8) -> Option<Entry> {
        let at = self.groups.iter().position(|group| group.snapshot == snapshot)?;
        let entries = &mut self.groups[at].entries;
        let found = entries.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        let (_, entry) = entries.remove(found);
        if entries.is_empty() {
            self.groups.remove(at);
        }
        Some(entry)
    }

    /// Takes the delta of a snapshot out.
    pub fn take(&mut self, snapshot: u32) -> Vec<(u8, Entry)> {
        let at = self.groups.iter().position(|group| group.snapshot == snapshot);
        at.map_or_else(Vec::new, |at| self.groups.remove(at).entries)
    }

    pub(super) fn encode(&self, w: &mut Writer) {
        w.u64(self.component.0);
        w.u32(self.part);
        w.u16(self.groups.len() as u16);
        for DeltaGroup { snapshot, entries } in &self.groups {
            w.u32(*snapshot);
            w.u16(entries.len() as u16);
            for (block, entry) in entries {
                w.u8(*block);
                entry.encode(w);
            }
        }
    }

    pub(super) fn decode(body: &[u8]) -> Result<DeltaPage, FormatError> {
        const DISORDER: FormatError = FormatError::Damaged("a delta page is out of order");
        let mut r = Reader::new(body);
        let mut page = DeltaPage::empty(ComponentId(r.u64()), r.u32());
        for _ in 0..r.u16() {
            let (snapshot, count) = (r.u32(), r.u16());
            let follows = page.groups.last().is_none_or(|last| last.snapshot < snapshot);
            if !follows || !(1..=BLOCKS_PER_EXTENT).contains(&usize::from(count)) {
                return Err(DISORDER);
            }
            let mut entries: Vec<(u8, Entry)> = Vec::with_capacity(usize::from(count));
            for _ in 0..count {
                let block = r.u8();
                if entries.last().is_some_and(|(last, _)| *last >= block) {
                    return Err(DISORDER);
                }
                entries.push((block, Entry::decode(&mut r)?));
            }
            page.groups.push(DeltaGroup { snapshot, entries });
        }
        r.finish()?;
        match r.reserved(r.remaining()) {
            true => Ok(page),
            false => Err(RESERVED),
        }
    }
}

/// A snapshot of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// Its number: greater than that of any earlier one of the component.
    pub number: u32,
    /// Whether it is being deleted: its delta is taken apart bit by bit.
    pub is_deleting: bool,
    /// Whether it was made later than others of greater numbers, or may see what was written when one of these was the newest.
    pub is_late: bool,
    /// Whether it was made late, and is not known to have all that it should see.
    pub is_partial: bool,
    /// The log position of the batch with its record: what comes before it is in the snapshot.
    pub position: u64,
    /// The id of the change that made it.
    pub id: WriteId,
    /// The component's size then, in bytes.
    pub size: u64,
}

/// One page of the list of a component's snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPage {
    /// The component.
    pub component: ComponentId,
    /// Which page of its list.
    pub index: u32,
    /// The greatest number that any snapshot of the component ever had.
    pub last_number: u32,
    /// Ascending.
    pub snapshots: Vec<SnapshotRecord>,
}

impl SnapshotPage {
    pub(super) fn encode(&self, w: &mut Writer) {
        assert!(self.snapshots.len() <= SNAPSHOTS_PER_PAGE, "a list goes on in another page");
        w.u64(self.component.0);
        w.u32(self.index);
        w.u32(self.last_number);
        w.u32(self.snapshots.len() as u32);
        for one in &self.snapshots {
            w.u32(one.number);
            let (is_late, is_partial) = (u8::from(one.is_late), u8::from(one.is_partial));
            w.u8(u8::from(one.is_deleting) | is_late << 1 | is_partial << 2);
            w.slice(&[0; 3]);
            w.u64(one.position);
            write_id(w, one.id);
            w.u64(one.size);
        }
    }

    pub(super) fn decode(body: &[u8]) -> Result<SnapshotPage, FormatError> {
        let mut r = Reader::new(body);
        let (component, index, last_number) = (ComponentId(r.u64()), r.u32(), r.u32());
        let count = r.u32() as usize;
        if count > SNAPSHOTS_PER_PAGE {
            return Err(FormatError::Damaged("a list of snapshots is too long"));
        }
        let mut is_clear = true;
        let mut snapshots: Vec<SnapshotRecord> = Vec::with_capacity(count);
        for _ in 0..count {
            let number = r.u32();
            let state = r.u8();
            is_clear &= r.reserved(3) && state <= 7;
            let (position, id, size) = (r.u64(), read_id(&mut r), r.u64());
            let follows = snapshots.last().is_none_or(|last| last.number < number);
            if !follows || number == 0 || number > last_number {
                return Err(FormatError::Damaged("a list of snapshots is out of order"));
            }
            let (is_deleting, is_late, is_partial) = (state & 1 > 0, state & 2 > 0, state & 4 > 0);
            snapshots.push(SnapshotRecord { number, is_deleting, is_late, is_partial, position, id, size });
        }
        r.finish()?;
        is_clear &= r.reserved(r.remaining());
        match is_clear {
            true => Ok(SnapshotPage { component, index, last_number, snapshots }),
            false => Err(RESERVED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::{Copy, Page, PageContent};
    use base::DeviceId;

    fn id(sequence: u64) -> WriteId {
        WriteId { epoch: 2, sequence }
    }

    fn comes_back(content: PageContent) {
        let page = Page { device: DeviceId(7), number: 900, version: 4, stamp: 77, content };
        let bytes = page.encode();
        assert_eq!(Page::decode(&bytes, DeviceId(7), 900), Copy::Valid(page));
        for bit in (0..bytes.len() * 8).step_by(61) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Page::decode(&damaged, DeviceId(7), 900), Copy::Valid(_)), "bit {bit}");
        }
    }

    #[test]
    fn a_map_page_comes_back() {
        let mut map = MapPage::empty(ComponentId(5), 77);
        map.through = 1 << 40;
        map.rolled_back = 77;
        map.regions[15] = id(9);
        map.entries[0] = Entry::plain(8, 0xabcd, 3);
        map.entries[17] = Entry::hole(4);
        map.entries[18] = Entry::LOST;
        map.entries[255] = Entry::stored((1 << 40) - 3, 2, Algorithm::Zstd, u32::MAX).born(u32::MAX);
        comes_back(PageContent::Map(Box::new(map)));
    }

    #[test]
    fn a_full_delta_page_comes_back() {
        let mut page = DeltaPage::empty(ComponentId(5), 77);
        let mut count = 0;
        while page.put(3 + count / 200, (count % 200) as u8, Entry::plain(8 * u64::from(count + 1), count, 2))
        {
            count += 1;
        }
        assert!(count >= 260, "a page has room for {count} entries");
        assert_eq!(page.find(4, 5).map(|entry| entry.checksum), Some(205));
        comes_back(PageContent::Delta(Box::new(page.clone())));
        assert_eq!(page.take(3).len(), 200);
        assert_eq!(page.find(3, 5), None);
        comes_back(PageContent::Delta(Box::new(page)));
    }

    #[test]
    fn a_full_list_of_snapshots_comes_back() {
        let one = |number: u32| SnapshotRecord {
            number,
            is_deleting: number.is_multiple_of(2),
            is_late: number.is_multiple_of(3),
            is_partial: number.is_multiple_of(5),
            position: u64::MAX - u64::from(number),
            id: id(u64::from(number)),
            size: 1 << 20,
        };
        let snapshots = (1..=SNAPSHOTS_PER_PAGE as u32).map(one).collect();
        let page = SnapshotPage { component: ComponentId(5), index: 2, last_number: 4711, snapshots };
        comes_back(PageContent::Snapshots(Box::new(page)));
    }

    #[test]
    fn entries_that_make_no_sense_are_refused() {
        let refuse = |place: u64, checksum: u32| {
            let mut w = Writer::with_capacity(ENTRY_SIZE);
            Entry { place, checksum, born: 0 }.encode(&mut w);
            assert!(Entry::decode(&mut Reader::new(w.as_bytes())).is_err(), "{place:x}");
        };
        refuse(0, 1);
        refuse(1 << UNITS_SHIFT, 0); // a hole of two units
        refuse(8, 5); // a block in one unit that is stored as it is
        refuse(9 | 7 << UNITS_SHIFT, 5); // across two frames
        refuse(8 | 7 << UNITS_SHIFT | 1 << ALGORITHM_SHIFT, 5); // compressed to its full size
        refuse(8 | 3 << UNITS_SHIFT | 3 << ALGORITHM_SHIFT, 5);
        refuse(8 | 7 << UNITS_SHIFT | 1 << 46, 5); // a key
        refuse(8 | 7 << UNITS_SHIFT | SHARED_BIT, 5);
    }
}
