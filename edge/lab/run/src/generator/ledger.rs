//! The record of verified writes: which generation of every unit was begun, and which was acknowledged.
//!
//! Every unit that is written carries its offset, its generation and a checksum. A read must find a generation that was
//! acknowledged before the read began or a later one that was begun before it ended; a unit that a write was under way to
//! meanwhile may be torn. After a trim, or a write that carries no checksums, a unit may hold anything. The record is memory, or a file that is
//! mapped: that survives the death of the generator (kill -9) as it is, and the death of its machine as of the last time the
//! kernel wrote it. What is under test usually stands on another machine.

use base::checksum::crc32c;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// `DRYLEDG1`, little-endian, at the start of a record's file.
const MAGIC: u64 = u64::from_le_bytes(*b"DRYLEDG1");
/// Bytes before the first entry: magic, unit, units, seed; the rest is zero.
const HEADER_BYTES: usize = 4096;
/// `DRYUNIT1`, at the start of every unit on a target.
const UNIT_MAGIC: u64 = u64::from_le_bytes(*b"DRYUNIT1");
/// Bytes of a unit that tell what it is: magic, offset, generation, seed, checksum of the rest, zero.
pub const STAMP_BYTES: usize = 40;
/// A write of this unit is under way: the highest bit of an entry.
const UNDER_WAY: u64 = 1 << 63;
/// The first two bytes of a block that fio wrote with `verify=` (fio's `verify.h`: `FIO_HDR_MAGIC`), little-endian.
const FIO_MAGIC: u16 = 0xacca;
const GENERATION_BITS: u32 = 31;
const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

/// The record of one target.
pub struct Ledger {
    memory: NonNull<u8>,
    bytes: usize,
    unit: u64,
    units: u64,
    seed: u64,
    /// Operations begun so far that leave units undefined.
    undefined: AtomicU64,
}

/// What a read that is compared must not miss, as of when it began.
#[derive(Debug, Clone, Default)]
pub struct Floors {
    acknowledged: Vec<u64>,
    undefined: u64,
}

/// Which units of a read are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Units that the record knows a write of.
    Recorded,
    /// All of them: a unit without a record must carry a valid checksum of an earlier run, as fio asks of a job that only verifies.
    All,
}

// SAFETY: the mapping stays in place as long as the ledger, and is only used through atomics after it is made.
unsafe impl Send for Ledger {}
// SAFETY: as above.
unsafe impl Sync for Ledger {}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ledger")
            .field("unit", &self.unit)
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}

/// What became of the units of a read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// Units that were compared.
    pub compared: u64,
    /// Units that are not what they must be.
    pub wrong: u64,
    /// The first of them.
    pub first: Option<Mismatch>,
}

/// What a unit is that is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Not a unit at all.
    #[error("byte {offset}: acknowledged generation {expected} is lost: the unit holds other data")]
    Foreign {
        /// Where.
        offset: u64,
        /// The generation that was acknowledged.
        expected: u64,
    },
    /// No unit of ours, and nothing is recorded of it.
    #[error("byte {offset}: no checksum: no run with verification wrote this unit")]
    Unstamped {
        /// Where.
        offset: u64,
    },
    /// A block that fio wrote.
    #[error(
        "byte {offset}: a header that fio wrote with verify=: the lab cannot check fio's checksums; verify these data with fio"
    )]
    WrittenByFio {
        /// Where.
        offset: u64,
    },
    /// Another place's unit.
    #[error("byte {offset}: misplaced: the unit of byte {found} is here")]
    Misplaced {
        /// Where.
        offset: u64,
        /// Whose unit it is.
        found: u64,
    },
    /// A part of it is of another write.
    #[error(
        "byte {offset}: the checksum of generation {generation} does not match: the unit is torn or damaged"
    )]
    Torn {
        /// Where.
        offset: u64,
        /// Which generation it says to be.
        generation: u64,
    },
    /// An acknowledged write is gone.
    #[error(
        "byte {offset}: a write is lost: generation {acknowledged} was acknowledged, but generation {found} is here"
    )]
    Lost {
        /// Where.
        offset: u64,
        /// What was acknowledged.
        acknowledged: u64,
        /// What is there.
        found: u64,
    },
    /// A write that was never begun.
    #[error("byte {offset}: generation {found} is here, but only {begun} generations were issued")]
    FromNowhere {
        /// Where.
        offset: u64,
        /// What was begun.
        begun: u64,
        /// What is there.
        found: u64,
    },
}

impl Ledger {
    /// A record in memory for a target of `size` bytes in units of `unit` bytes.
    ///
    /// # Errors
    /// When the kernel has no such memory.
    pub fn in_memory(size: u64, unit: u64, seed: u64) -> io::Result<Ledger> {
        Ledger::map(size, unit, seed, -1)
    }

    /// A record in a file: a new one, or one that an earlier run left, which goes on.
    ///
    /// # Errors
    /// When the file cannot be made, or is the record of something else.
    pub fn in_file(path: &Path, size: u64, unit: u64, seed: u64) -> io::Result<Ledger> {
        use std::os::fd::AsRawFd;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let wanted = (HEADER_BYTES as u64) + (size / unit) * 8;
        let is_new = file.metadata()?.len() == 0;
        if is_new {
            file.set_len(wanted)?;
        } else if file.metadata()?.len() != wanted {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the record belongs to a target of another size, or is truncated",
            ));
        }
        let mut ledger = Ledger::map(size, unit, seed, file.as_raw_fd())?;
        let header = |index: usize| ledger.word(index).load(Ordering::Relaxed);
        if is_new {
            for (index, value) in [MAGIC, unit, size / unit, seed].into_iter().enumerate() {
                ledger.word(index).store(value, Ordering::Relaxed);
            }
            file.sync_all()?;
        } else if [header(0), header(1), header(2)] != [MAGIC, unit, size / unit] {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a record, or a record with another unit",
            ));
        } else {
            ledger.seed = header(3);
            // Writes that were under way when the earlier run died are so no more.
            (0..ledger.units).for_each(|unit| {
                ledger.entry(unit).fetch_and(!UNDER_WAY, Ordering::Relaxed);
            });
        }
        Ok(ledger)
    }

    /// The record that a run left in a file, for a target of `size` bytes.
    ///
    /// # Errors
    /// When there is none, or it is the record of something else.
    pub fn open(path: &Path, size: u64) -> io::Result<Ledger> {
        use std::io::Read;
        let mut header = [0; 16];
        OpenOptions::new().read(true).open(path)?.read_exact(&mut header)?;
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let unit = word(8);
        if word(0) != MAGIC || !unit.is_power_of_two() || !(512..=1 << 30).contains(&unit) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a record of verified writes"));
        }
        Ledger::in_file(path, size, unit, 0)
    }

    fn map(size: u64, unit: u64, seed: u64, fd: i32) -> io::Result<Ledger> {
        assert!(unit >= 512 && unit.is_power_of_two(), "a unit holds its stamp");
        let units = size / unit;
        let bytes = HEADER_BYTES + usize::try_from(units * 8).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let flags = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ledger { memory, bytes, unit, units, seed, undefined: AtomicU64::new(0) })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!((index + 1) * 8 <= self.bytes, "word {index} lies within the mapping");
        // SAFETY: the word lies within the mapping, which is aligned to a page, and all use of it is atomic.
        unsafe { &*self.memory.as_ptr().cast::<AtomicU64>().add(index) }
    }

    fn entry(&self, unit: u64) -> &AtomicU64 {
        self.word(HEADER_BYTES / 8 + unit as usize)
    }

    /// Bytes of a unit.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Units that lie whole in a range.
    fn units(&self, offset: u64, size: u64) -> std::ops::Range<u64> {
        let last = ((offset + size) / self.unit).min(self.units);
        let first = offset.div_ceil(self.unit).min(last);
        first..last
    }

    /// Begins a write: stamps the units of `buffer`, which goes to `offset`. False if another write of one of them is under way:
    /// then this one must not be done, for nobody could say which of the two stays.
    pub fn begin_write(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let units = self.units(offset, buffer.len() as u64);
        let whole = offset.is_multiple_of(self.unit) && (buffer.len() as u64).is_multiple_of(self.unit);
        if !whole {
            return false;
        }
        for unit in units.clone() {
            if !self.lock(unit) {
                (units.start..unit).for_each(|locked| self.give_back(locked));
                return false;
            }
        }
        for (unit, bytes) in units.zip(buffer.chunks_mut(self.unit as usize)) {
            let begun = begun_of(self.entry(unit).load(Ordering::Acquire));
            stamp(bytes, unit * self.unit, begun, self.seed);
        }
        true
    }

    /// Takes the next generation of a unit, unless a write of it is under way.
    fn lock(&self, unit: u64) -> bool {
        let next = |entry: u64| {
            (entry & UNDER_WAY == 0 && begun_of(entry) < GENERATION_MAX).then(|| (entry + 1) | UNDER_WAY)
        };
        self.entry(unit).fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// A generation that was taken and not used.
    fn give_back(&self, unit: u64) {
        self.entry(unit)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |entry| Some((entry - 1) & !UNDER_WAY))
            .ok();
    }

    /// A write has ended; if well, it is acknowledged.
    pub fn end_write(&self, offset: u64, size: u64, ok: bool) {
        for unit in self.units(offset, size) {
            let ended = |entry: u64| {
                let begun = begun_of(entry);
                let acknowledged = if ok { begun } else { acknowledged_of(entry) };
                Some(begun | acknowledged << GENERATION_BITS)
            };
            self.entry(unit).fetch_update(Ordering::AcqRel, Ordering::Acquire, ended).ok();
        }
    }

    /// Begins a trim, or a write without checksums: from now on the units that it touches may hold anything. False if a write of
    /// one of them is under way.
    pub fn begin_undefined(&self, offset: u64, size: u64) -> bool {
        let touched = self.touched(offset, size);
        for unit in touched.clone() {
            if !self.lock(unit) {
                (touched.start..unit).for_each(|locked| self.give_back(locked));
                return false;
            }
        }
        // Counted before the floors fall: a read that meets a fallen floor knows why.
        self.undefined.fetch_add(1, Ordering::AcqRel);
        for unit in touched {
            let fallen = |entry: u64| Some(begun_of(entry) | UNDER_WAY);
            self.entry(unit).fetch_update(Ordering::AcqRel, Ordering::Acquire, fallen).ok();
        }
        true
    }

    /// What began with [`Ledger::begin_undefined`] has ended, well or not.
    pub fn end_undefined(&self, offset: u64, size: u64) {
        for unit in self.touched(offset, size) {
            self.entry(unit).fetch_and(!UNDER_WAY, Ordering::AcqRel);
        }
    }

    /// Units of which at least a byte lies in a range.
    fn touched(&self, offset: u64, size: u64) -> std::ops::Range<u64> {
        let last = (offset + size).div_ceil(self.unit).min(self.units);
        (offset / self.unit).min(last)..last
    }

    /// The acknowledged generations of the units of a range: what a read that begins now must not miss.
    pub fn begin_read(&self, offset: u64, size: u64, floors: &mut Floors) {
        floors.undefined = self.undefined.load(Ordering::Acquire);
        floors.acknowledged.clear();
        let acknowledged = |unit: u64| acknowledged_of(self.entry(unit).load(Ordering::Acquire));
        floors.acknowledged.extend(self.units(offset, size).map(acknowledged));
    }

    /// Judges what a read found.
    pub fn end_read(&self, offset: u64, bytes: &[u8], floors: &Floors, compare: Compare) -> Judgement {
        let mut judgement = Judgement::default();
        let skip = (offset.next_multiple_of(self.unit) - offset) as usize;
        let units = self.units(offset, bytes.len() as u64);
        let parts = bytes.get(skip..).unwrap_or_default().chunks(self.unit as usize);
        let was_undefined = self.undefined.load(Ordering::Acquire) != floors.undefined;
        for ((unit, part), &floor) in units.zip(parts).zip(&floors.acknowledged) {
            let begun = begun_of(self.entry(unit).load(Ordering::Acquire));
            let found = match (begun, compare) {
                (0, Compare::Recorded) => continue,
                (0, Compare::All) => stamp_of(unit * self.unit, part, None).map(drop),
                // A trim that began after the read may have taken away what was acknowledged before.
                _ if was_undefined => continue,
                _ => self.judge(unit * self.unit, part, floor, begun),
            };
            match found {
                // A write of it was under way while it was read, or failed: no target promises more than sectors then.
                Err(Mismatch::Torn { .. }) if begun > floor => continue,
                Err(mismatch) => {
                    judgement.wrong += 1;
                    judgement.first.get_or_insert(mismatch);
                }
                Ok(()) => {}
            }
            judgement.compared += 1;
        }
        judgement
    }

    fn judge(&self, offset: u64, part: &[u8], floor: u64, begun: u64) -> Result<(), Mismatch> {
        let generation = match stamp_of(offset, part, Some(self.seed)) {
            Ok(generation) => generation,
            Err(mismatch @ (Mismatch::Misplaced { .. } | Mismatch::Torn { .. })) => return Err(mismatch),
            // Before anything was acknowledged, what was there before may still be there.
            Err(_) if floor == 0 => return Ok(()),
            Err(_) => return Err(Mismatch::Foreign { offset, expected: floor }),
        };
        if generation < floor {
            return Err(Mismatch::Lost { offset, acknowledged: floor, found: generation });
        }
        if generation > begun {
            return Err(Mismatch::FromNowhere { offset, begun, found: generation });
        }
        Ok(())
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this very length and is unmapped once.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

fn begun_of(entry: u64) -> u64 {
    entry & GENERATION_MAX
}

fn acknowledged_of(entry: u64) -> u64 {
    entry >> GENERATION_BITS & GENERATION_MAX
}

fn stamp(unit: &mut [u8], offset: u64, generation: u64, seed: u64) {
    for (index, word) in [UNIT_MAGIC, offset, generation, seed].into_iter().enumerate() {
        unit[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    let checksum = checksum_of(unit);
    unit[32..STAMP_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Generation of the unit at `offset`, if it is one of this seed (of any, if none is given), whole, and in its place.
fn stamp_of(offset: u64, part: &[u8], expected: Option<u64>) -> Result<u64, Mismatch> {
    let word = |at: usize| u64::from_le_bytes(part[at..at + 8].try_into().expect("eight bytes"));
    let (magic, place, generation, seed, checksum) = (word(0), word(8), word(16), word(24), word(32));
    match magic {
        UNIT_MAGIC if expected.is_some_and(|expected| expected != seed) => {
            Err(Mismatch::Unstamped { offset })
        }
        UNIT_MAGIC if place != offset => Err(Mismatch::Misplaced { offset, found: place }),
        UNIT_MAGIC if checksum != checksum_of(part) => Err(Mismatch::Torn { offset, generation }),
        UNIT_MAGIC => Ok(generation),
        _ if magic as u16 == FIO_MAGIC => Err(Mismatch::WrittenByFio { offset }),
        _ => Err(Mismatch::Unstamped { offset }),
    }
}

/// Of everything but the checksum's own place.
fn checksum_of(unit: &[u8]) -> u64 {
    u64::from(crc32c(&unit[..32])) << 32 | u64::from(crc32c(&unit[STAMP_BYTES..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: usize = 4096;

    fn written(ledger: &Ledger, offset: u64) -> Vec<u8> {
        let mut bytes = vec![7; UNIT];
        assert!(ledger.begin_write(offset, &mut bytes));
        ledger.end_write(offset, UNIT as u64, true);
        bytes
    }

    fn judged(ledger: &Ledger, offset: u64, bytes: &[u8]) -> Result<u64, Mismatch> {
        let mut floors = Floors::default();
        ledger.begin_read(offset, bytes.len() as u64, &mut floors);
        let judgement = ledger.end_read(offset, bytes, &floors, Compare::Recorded);
        judgement.first.map_or(Ok(judgement.compared), Err)
    }

    #[test]
    fn after_a_trim_a_unit_may_hold_anything_but_another_unit_until_it_is_written_again() {
        let ledger = Ledger::in_memory(1 << 20, UNIT as u64, 99).expect("memory");
        let before = written(&ledger, 4096);
        let mut floors = Floors::default();
        ledger.begin_read(4096, UNIT as u64, &mut floors);
        assert!(ledger.begin_undefined(5000, 10), "a byte of the unit is enough");
        assert!(!ledger.begin_write(4096, &mut vec![1; UNIT]), "the trim is under way");
        assert_eq!(judged(&ledger, 4096, &vec![0; UNIT]), Ok(1));
        ledger.end_undefined(5000, 10);
        assert_eq!(judged(&ledger, 4096, &vec![0; UNIT]), Ok(1));
        assert_eq!(judged(&ledger, 4096, &before), Ok(1), "the target need not forget");
        let elsewhere = written(&ledger, 8192);
        assert!(judged(&ledger, 4096, &elsewhere).is_err());
        let after = written(&ledger, 4096);
        // It began before the trim and may have read at any moment until now.
        let judgement = ledger.end_read(4096, &vec![0; UNIT], &floors, Compare::Recorded);
        assert_eq!(judgement, Judgement::default());
        assert_eq!(judged(&ledger, 4096, &after), Ok(1));
        assert!(matches!(judged(&ledger, 4096, &before), Err(Mismatch::Lost { .. })));
        assert!(judged(&ledger, 4096, &vec![0; UNIT]).is_err());
    }

    #[test]
    fn a_unit_without_a_record_is_judged_by_its_own_checksum_where_all_are_compared() {
        let earlier = Ledger::in_memory(1 << 20, UNIT as u64, 7).expect("memory");
        let bytes = written(&earlier, 4096);
        let ledger = Ledger::in_memory(1 << 20, UNIT as u64, 8).expect("memory");
        let judged = |bytes: &[u8]| {
            let mut floors = Floors::default();
            ledger.begin_read(4096, bytes.len() as u64, &mut floors);
            let judgement = ledger.end_read(4096, bytes, &floors, Compare::All);
            judgement.first.map_or(Ok(judgement.compared), Err)
        };
        assert_eq!(judged(&bytes), Ok(1));
        let mut torn = bytes.clone();
        torn[3000] ^= 1;
        assert!(matches!(judged(&torn), Err(Mismatch::Torn { .. })));
        assert_eq!(judged(&vec![0; UNIT]), Err(Mismatch::Unstamped { offset: 4096 }));
        let mut fio = vec![0; UNIT];
        fio[..2].copy_from_slice(&[0xca, 0xac]);
        assert_eq!(judged(&fio), Err(Mismatch::WrittenByFio { offset: 4096 }));
    }

    #[test]
    fn what_was_acknowledged_last_is_right_and_everything_else_is_told_apart() {
        let ledger = Ledger::in_memory(1 << 20, UNIT as u64, 99).expect("memory");
        let first = written(&ledger, 8192);
        let second = written(&ledger, 8192);
        assert_eq!(judged(&ledger, 8192, &second), Ok(1));
        assert_eq!(
            judged(&ledger, 8192, &first),
            Err(Mismatch::Lost { offset: 8192, acknowledged: 2, found: 1 })
        );
        assert_eq!(
            judged(&ledger, 8192, &vec![0; UNIT]),
            Err(Mismatch::Foreign { offset: 8192, expected: 2 })
        );
        let elsewhere = written(&ledger, 0);
        assert_eq!(judged(&ledger, 8192, &elsewhere), Err(Mismatch::Misplaced { offset: 8192, found: 0 }));
        let mut torn = second.clone();
        torn[2048..].fill(1);
        assert_eq!(judged(&ledger, 8192, &torn), Err(Mismatch::Torn { offset: 8192, generation: 2 }));
        assert_eq!(judged(&ledger, 65536, &vec![0; UNIT]), Ok(0), "nothing was written there");
    }

    #[test]
    fn a_write_that_failed_may_be_there_or_not_and_two_at_a_time_are_not_begun() {
        let ledger = Ledger::in_memory(1 << 20, UNIT as u64, 99).expect("memory");
        let before = written(&ledger, 0);
        let mut after = vec![1; UNIT];
        assert!(ledger.begin_write(0, &mut after));
        assert!(!ledger.begin_write(0, &mut vec![2; UNIT]));
        assert!(!ledger.begin_write(4096 * 2 - 4096, &mut vec![2; UNIT * 2 + 1]), "not whole units");
        ledger.end_write(0, UNIT as u64, false);
        assert_eq!(judged(&ledger, 0, &before), Ok(1));
        assert_eq!(judged(&ledger, 0, &after), Ok(1));
    }

    #[test]
    fn a_unit_may_be_torn_while_a_write_to_it_is_under_way_and_not_after() {
        let ledger = Ledger::in_memory(1 << 20, UNIT as u64, 99).expect("memory");
        let before = written(&ledger, 0);
        let mut after = vec![1; UNIT];
        assert!(ledger.begin_write(0, &mut after));
        let torn = [&after[..512], &before[512..]].concat();
        assert_eq!(judged(&ledger, 0, &torn), Ok(0));
        assert_eq!(judged(&ledger, 0, &before), Ok(1));
        ledger.end_write(0, UNIT as u64, true);
        assert_eq!(judged(&ledger, 0, &torn), Err(Mismatch::Torn { offset: 0, generation: 2 }));
    }

    #[test]
    fn a_record_in_a_file_outlives_its_process_and_is_not_taken_for_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record");
        let bytes = {
            let ledger = Ledger::in_file(&path, 1 << 20, UNIT as u64, 5).expect("a record");
            let bytes = written(&ledger, 4096);
            // Under way when its process dies.
            assert!(ledger.begin_write(0, &mut vec![1; UNIT]));
            bytes
        };
        let ledger = Ledger::in_file(&path, 1 << 20, UNIT as u64, 6).expect("the same record");
        assert_eq!(judged(&ledger, 4096, &bytes), Ok(1));
        assert!(judged(&ledger, 4096, &vec![0; UNIT]).is_err());
        assert_eq!(judged(&ledger, 0, &vec![0; UNIT]), Ok(1), "it was never acknowledged");
        written(&ledger, 0);
        assert!(Ledger::in_file(&path, 1 << 21, UNIT as u64, 5).is_err());
        assert!(Ledger::in_file(&path, 1 << 20, 512, 5).is_err());
    }
}
