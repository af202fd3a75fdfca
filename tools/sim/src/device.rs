//! A virtual device that forgets and tears like a real one.
//!
//! A write that has completed is visible to reads. It is stable only if it asked for that or a flush that came after it
//! has completed. A crash keeps, for every 512-byte sector on its own, either what was stable or any version written
//! since, completed or still under way: so writes are lost, torn and reordered.

use base::Random;
use base::checksum::{CRC32C_OF_ZERO_BLOCK, crc32c};
use base::units::{BLOCK_SIZE, SECTOR_SIZE};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

type Bytes = Rc<[u8]>;

const SECTORS: usize = (BLOCK_SIZE / SECTOR_SIZE) as usize;

/// The bytes of some buffers, one after the other.
pub fn joined(buffers: &[base::Buffer]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(buffers.iter().map(|buffer| buffer.len()).sum());
    buffers.iter().for_each(|buffer| bytes.extend_from_slice(buffer));
    bytes
}

/// Whether a block has the checksum of zeroes and is none.
fn is_impostor(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| *byte != 0) && crc32c(bytes) == CRC32C_OF_ZERO_BLOCK
}

#[derive(Debug, Default, Clone)]
struct Block {
    stable: Option<Bytes>,
    /// Completed since, oldest first.
    unstable: Vec<Bytes>,
}

/// A write that has been handed in and not completed.
#[derive(Debug)]
struct InFlight {
    ticket: u64,
    offset: u64,
    bytes: Vec<u8>,
    is_stable: bool,
}

/// One virtual device.
#[derive(Debug, Default)]
pub struct Device {
    blocks: BTreeMap<u64, Block>,
    in_flight: Vec<InFlight>,
    /// Flushes under way, with the number of writes completed when each began.
    flushes: Vec<(u64, Vec<(u64, usize)>)>,
    /// Blocks that fail reads until they are written.
    unreadable: BTreeSet<u64>,
    /// Bytes of the device.
    pub size: u64,
    /// Whether every request fails from now on.
    pub is_dead: bool,
}

impl Device {
    /// A device full of zeroes.
    pub fn new(size: u64) -> Device {
        Device { size, ..Device::default() }
    }

    /// Puts stable bytes in place, as a tool would before the start.
    pub fn preset(&mut self, offset: u64, bytes: &[u8]) {
        assert!(offset.is_multiple_of(BLOCK_SIZE), "blocks are preset whole");
        for (index, chunk) in bytes.chunks(BLOCK_SIZE as usize).enumerate() {
            self.blocks.entry(offset / BLOCK_SIZE + index as u64).or_default().stable = Some(chunk.into());
        }
    }

    /// Reads what is visible now.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        assert!(offset + len as u64 <= self.size, "a read lies within the device");
        assert!(
            offset.is_multiple_of(BLOCK_SIZE) && len.is_multiple_of(BLOCK_SIZE as usize),
            "reads are aligned"
        );
        let mut out = vec![0; len];
        let first = offset / BLOCK_SIZE;
        for (number, block) in self.blocks.range(first..first + len as u64 / BLOCK_SIZE) {
            if let Some(bytes) = block.unstable.last().or(block.stable.as_ref()) {
                let at = ((number - first) * BLOCK_SIZE) as usize;
                out[at..at + BLOCK_SIZE as usize].copy_from_slice(bytes);
            }
        }
        out
    }

    /// Hands a write in.
    pub fn begin_write(&mut self, ticket: u64, offset: u64, bytes: Vec<u8>, is_stable: bool) {
        assert!(offset + bytes.len() as u64 <= self.size, "a write lies within the device");
        assert!(
            offset.is_multiple_of(BLOCK_SIZE) && bytes.len().is_multiple_of(BLOCK_SIZE as usize),
            "writes are aligned"
        );
        self.in_flight.push(InFlight { ticket, offset, bytes, is_stable });
    }

    /// A write completes.
    pub fn end_write(&mut self, ticket: u64) {
        let index = self.in_flight.iter().position(|one| one.ticket == ticket).expect("a write ends once");
        let write = self.in_flight.remove(index);
        for (index, chunk) in write.bytes.chunks(BLOCK_SIZE as usize).enumerate() {
            let number = write.offset / BLOCK_SIZE + index as u64;
            self.unreadable.remove(&number);
            let block = self.blocks.entry(number).or_default();
            if write.is_stable {
                block.unstable.clear();
                block.stable = Some(chunk.into());
                for (_, seen) in &mut self.flushes {
                    seen.retain(|(of, _)| *of != number);
                }
            } else {
                block.unstable.push(chunk.into());
            }
        }
    }

    /// Hands a flush in: it covers what has completed by now.
    pub fn begin_flush(&mut self, ticket: u64) {
        let unstable = self.blocks.iter().filter(|(_, block)| !block.unstable.is_empty());
        let seen = unstable.map(|(number, block)| (*number, block.unstable.len())).collect();
        self.flushes.push((ticket, seen));
    }

    /// A flush completes.
    pub fn end_flush(&mut self, ticket: u64) {
        let index = self.flushes.iter().position(|(one, _)| *one == ticket).expect("a flush ends once");
        let (_, seen) = self.flushes.remove(index);
        for (number, count) in seen {
            let block = self.blocks.get_mut(&number).expect("a block that was written exists");
            let covered: Vec<Bytes> = block.unstable.drain(..count).collect();
            block.stable = covered.last().cloned();
            for (_, others) in &mut self.flushes {
                for (_, left) in others.iter_mut().filter(|(of, _)| *of == number) {
                    *left -= count.min(*left);
                }
                others.retain(|(_, left)| *left > 0);
            }
        }
    }

    /// The power goes: every sector keeps one of the versions that it may have. Of a block with the checksum of zeroes that is none, the newest
    /// version stays where what else would stand there has that checksum, too (`zeroes`).
    pub fn crash(&mut self, random: &mut Random) {
        let mut choices: BTreeMap<u64, Vec<Bytes>> = BTreeMap::new();
        for (number, block) in &self.blocks {
            if !block.unstable.is_empty() {
                choices.insert(*number, block.unstable.clone());
            }
        }
        for write in std::mem::take(&mut self.in_flight) {
            for (index, chunk) in write.bytes.chunks(BLOCK_SIZE as usize).enumerate() {
                choices.entry(write.offset / BLOCK_SIZE + index as u64).or_default().push(chunk.into());
            }
        }
        for (number, versions) in choices {
            let block = self.blocks.entry(number).or_default();
            let zeroes: Bytes = vec![0; BLOCK_SIZE as usize].into();
            let stable = block.stable.take().unwrap_or(zeroes);
            let mut result = stable.to_vec();
            // Mostly whole blocks, at times torn ones.
            let is_torn = random.chance(1, 3);
            let whole = random.below(versions.len() as u64 + 1) as usize;
            for sector in 0..SECTORS {
                let pick = if is_torn { random.below(versions.len() as u64 + 1) as usize } else { whole };
                if let Some(version) = pick.checked_sub(1).map(|index| &versions[index]) {
                    let range = sector * SECTOR_SIZE as usize..(sector + 1) * SECTOR_SIZE as usize;
                    result[range.clone()].copy_from_slice(&version[range]);
                }
            }
            block.unstable.clear();
            let newest = versions.last().expect("only blocks with versions are chosen for");
            let is_mistaken = is_impostor(newest) && crc32c(&result) == CRC32C_OF_ZERO_BLOCK;
            block.stable = Some(if is_mistaken { newest.clone() } else { result.into() });
        }
        self.flushes.clear();
    }

    /// Lets one block fail reads until it is written.
    pub fn spoil(&mut self, number: u64) {
        self.unreadable.insert(number);
    }

    /// What would be read of the blocks that cannot be.
    pub fn unreadable_content(&self) -> impl Iterator<Item = Vec<u8>> {
        self.unreadable.iter().map(|number| self.read(number * BLOCK_SIZE, BLOCK_SIZE as usize))
    }

    /// Whether a read of the range fails.
    pub fn is_unreadable(&self, offset: u64, len: usize) -> bool {
        self.is_any_unreadable(offset / BLOCK_SIZE..(offset + len as u64) / BLOCK_SIZE)
    }

    /// Whether reads of any of these blocks fail.
    pub fn is_any_unreadable(&self, blocks: std::ops::Range<u64>) -> bool {
        self.unreadable.range(blocks).next().is_some()
    }

    /// Whether a write that is under way touches the range.
    pub fn is_being_written(&self, range: &std::ops::Range<u64>) -> bool {
        let touches = |write: &InFlight| {
            write.offset < range.end && range.start < write.offset + write.bytes.len() as u64
        };
        self.in_flight.iter().any(touches)
    }

    /// Blocks of a range that have been written and can be read, ascending.
    pub fn readable_blocks(&self, range: std::ops::Range<u64>) -> Vec<u64> {
        let numbers = range.start / BLOCK_SIZE..range.end / BLOCK_SIZE;
        let written = self.blocks.range(numbers).map(|(number, _)| *number);
        written.filter(|number| !self.unreadable.contains(number)).collect()
    }

    /// Flips one bit of a block that has been written. Says where, if there is one in the range.
    pub fn rot(&mut self, range: std::ops::Range<u64>, random: &mut Random) -> Option<u64> {
        let numbers = range.start / BLOCK_SIZE..range.end / BLOCK_SIZE;
        let candidates: Vec<u64> = self.blocks.range(numbers).map(|(number, _)| *number).collect();
        if candidates.is_empty() {
            return None;
        }
        let number = candidates[random.below(candidates.len() as u64) as usize];
        self.flip(number, random).then_some(number * BLOCK_SIZE)
    }

    /// Flips one bit of that block. False if it was never written.
    pub fn flip(&mut self, number: u64, random: &mut Random) -> bool {
        let Some(block) = self.blocks.get_mut(&number) else { return false };
        let Some(slot) = block.unstable.last_mut().or(block.stable.as_mut()) else { return false };
        let mut bytes = slot.to_vec();
        let bit = random.below(BLOCK_SIZE * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
        *slot = bytes.into();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stable_survives_and_what_is_not_may_be_torn() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut device = Device::new(1 << 20);
            device.begin_write(1, 0, vec![1; 4096], true);
            device.end_write(1);
            device.begin_write(2, 4096, vec![2; 4096], false);
            device.end_write(2);
            device.begin_flush(3);
            device.begin_write(4, 4096, vec![4; 4096], false);
            device.end_write(4);
            device.end_flush(3);
            device.begin_write(5, 8192, vec![5; 4096], true);
            device.crash(&mut Random::new(seed));
            assert_eq!(device.read(0, 4096), vec![1; 4096]);
            assert!(device.read(4096, 4096).iter().all(|&byte| byte == 2 || byte == 4));
            let last = device.read(8192, 4096);
            seen.insert(last.iter().filter(|&&byte| byte == 5).count());
        }
        assert!(
            seen.contains(&0) && seen.contains(&4096) && seen.len() > 4,
            "lost, whole and torn: {seen:?}"
        );
    }
}
