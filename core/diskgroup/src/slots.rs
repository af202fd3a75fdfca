//! Compressed blocks: their bytes in slots of 512-byte units, and how slots are packed into frames of 4 KiB (docs/design/0049).
//!
//! A slot begins with the length of what follows (2 bytes), for LZ4 does not tell where its bytes end. The rest of its last unit is
//! zeroes. No slot crosses a frame, so that a block is one read of 4 KiB.

use crate::format::map::{Algorithm, Form};
use base::units::{BLOCK_SIZE, SECTOR_SIZE};
use std::fmt;
use zstd::bulk::{Compressor, Decompressor};

/// Level of zstd. Level 3 saves 1 to 3 % more on blocks this small and takes 1.5 times as long.
const ZSTD_LEVEL: i32 = 1;
/// Bytes of the length at the start of a slot.
const LENGTH_SIZE: usize = 2;
const UNIT: usize = SECTOR_SIZE as usize;
/// Units of a frame.
pub(crate) const UNITS_PER_FRAME: u8 = (BLOCK_SIZE / SECTOR_SIZE) as u8;
/// Most bytes of a compressed block: one unit of eight is saved, and its length stands beside it.
const PACKED_SIZE_MAX: usize = (UNITS_PER_FRAME as usize - 1) * UNIT - LENGTH_SIZE;

/// Compresses blocks of 4 KiB, one after the other. Gives the bytes of each slot without its zeroes, or nothing where not even one unit
/// would be saved.
///
/// # Panics
/// If it is asked to compress by no algorithm.
pub(crate) fn pack_blocks<'a>(
    blocks: impl Iterator<Item = &'a [u8]>,
    algorithm: Algorithm,
) -> Vec<Option<Box<[u8]>>> {
    // Both want room for the worst case.
    let bound = lz4_flex::block::get_maximum_output_size(BLOCK_SIZE as usize);
    let bound = bound.max(zstd::zstd_safe::compress_bound(BLOCK_SIZE as usize));
    let mut output = vec![0; LENGTH_SIZE + bound];
    let mut zstd = match algorithm {
        Algorithm::Zstd => Some(Compressor::new(ZSTD_LEVEL).expect("zstd knows its first level")),
        Algorithm::Lz4 => None,
        Algorithm::Plain => unreachable!("what is stored as it is is not compressed"),
    };
    let mut pack = |block: &[u8]| {
        let bytes = &mut output[LENGTH_SIZE..];
        let len = match &mut zstd {
            Some(zstd) => zstd.compress_to_buffer(block, bytes).ok()?,
            None => lz4_flex::block::compress_into(block, bytes).ok()?,
        };
        if len > PACKED_SIZE_MAX {
            return None;
        }
        output[..LENGTH_SIZE].copy_from_slice(&(len as u16).to_le_bytes());
        Some(output[..LENGTH_SIZE + len].into())
    };
    blocks.map(&mut pack).collect()
}

/// Units that a slot with so many bytes takes.
pub(crate) fn units_of(slot: &[u8]) -> u8 {
    slot.len().div_ceil(UNIT) as u8
}

/// Takes blocks out of their slots, with memory that it keeps.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: Option<Decompressor<'static>>,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacker")
    }
}

impl Unpacker {
    /// Fills `block` from the bytes of a slot. False if they are none of a block of 4 KiB: what `block` holds then means nothing.
    #[must_use]
    pub(crate) fn unpack(&mut self, slot: &[u8], algorithm: Algorithm, block: &mut [u8]) -> bool {
        assert!(block.len() as u64 == BLOCK_SIZE, "a block is whole");
        if algorithm == Algorithm::Plain {
            block.copy_from_slice(slot);
            return true;
        }
        let len = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
        let Some(bytes) = slot.get(LENGTH_SIZE..LENGTH_SIZE + len) else { return false };
        let unpacked = match algorithm {
            Algorithm::Lz4 => lz4_flex::block::decompress_into(bytes, block).ok(),
            Algorithm::Zstd => {
                let zstd = self.zstd.get_or_insert_with(|| Decompressor::new().expect("there is memory"));
                zstd.decompress_to_buffer(bytes, block).ok()
            }
            Algorithm::Plain => unreachable!("told apart above"),
        };
        unpacked == Some(block.len())
    }
}

/// Where a slot stands within frames that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRead {
    /// The unit, from the first one that was read.
    pub(crate) unit: u32,
    pub(crate) form: Form,
}

impl SlotRead {
    /// Its bytes among those of the frames.
    pub(crate) fn bytes(self, frames: &[u8]) -> &[u8] {
        let start = self.unit as usize * UNIT;
        &frames[start..(start + usize::from(self.form.units) * UNIT).min(frames.len())]
    }

    /// The frame, from the first one that was read.
    pub(crate) fn frame(self) -> usize {
        self.unit as usize / usize::from(UNITS_PER_FRAME)
    }
}

/// Where a block goes: the frame, of those that are to be taken, and the unit in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: usize,
    pub(crate) unit: u8,
}

/// Whether a slot may go beyond the end of its frame: never, but where the simulator removes that rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Border {
    Kept,
    Crossed,
}

/// Blocks whose slots are packed together: neighbours are then found near each other, and by a model 4 % of the space are lost.
const WINDOW: usize = 64;

/// Gives each block, of so many units, its place, and tells how many frames these take. In each window of blocks the largest are placed first, each
/// into the fullest frame that has room.
pub(crate) fn pack(units: &[u8], border: Border) -> (Vec<Place>, usize) {
    let mut places = vec![Place { frame: 0, unit: 0 }; units.len()];
    let mut frames = 0;
    for (window, first) in units.chunks(WINDOW).zip((0..).step_by(WINDOW)) {
        let mut order: Vec<usize> = (0..window.len()).collect();
        // Blocks that fill a frame stay in their order, and so do those of equal size.
        order.sort_by_key(|at| std::cmp::Reverse(window[*at]));
        let mut used: Vec<u8> = Vec::new();
        for at in order {
            let room = |used: &u8| match border {
                Border::Kept => used + window[at] <= UNITS_PER_FRAME,
                Border::Crossed => *used < UNITS_PER_FRAME,
            };
            let fullest =
                used.iter().enumerate().filter(|(_, used)| room(used)).max_by_key(|(_, used)| **used);
            let frame = fullest.map(|(frame, _)| frame).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            places[first + at] = Place { frame: frames + frame, unit: used[frame] };
            used[frame] = (used[frame] + window[at]).min(UNITS_PER_FRAME);
        }
        frames += used.len();
    }
    (places, frames)
}

/// Frames that blocks of so many units take which are destaged together, for forecasts.
pub fn frames_needed(units: &[u8]) -> usize {
    pack(units, Border::Kept).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    fn text(seed: u64, noisy: usize) -> Vec<u8> {
        let mut random = Random::new(seed);
        let mut block: Vec<u8> = b"a line of a log\n".iter().copied().cycle().take(4096).collect();
        block[..noisy].iter_mut().for_each(|byte| *byte = random.bits() as u8);
        block
    }

    fn slot_bytes(packed: &[u8]) -> Vec<u8> {
        let mut slot = packed.to_vec();
        slot.resize(usize::from(units_of(packed)) * UNIT, 0);
        slot
    }

    #[test]
    fn a_block_comes_back_from_its_slot_and_one_that_saves_no_unit_gets_none() {
        let mut unpacker = Unpacker::default();
        for algorithm in [Algorithm::Lz4, Algorithm::Zstd] {
            let blocks: Vec<Vec<u8>> = (0..=16).map(|step| text(step, step as usize * 256)).collect();
            let packed = pack_blocks(blocks.iter().map(Vec::as_slice), algorithm);
            let mut sizes = Vec::new();
            for (block, packed) in blocks.iter().zip(&packed) {
                let Some(packed) = packed else { continue };
                sizes.push(units_of(packed));
                let mut found = vec![0; 4096];
                assert!(unpacker.unpack(&slot_bytes(packed), algorithm, &mut found));
                assert_eq!(found, *block);
            }
            assert!(sizes.iter().all(|units| (1..=7).contains(units)) && sizes.contains(&7));
            assert_eq!(sizes[0], 1);
            assert!(packed[16].is_none(), "noise");
        }
    }

    #[test]
    fn bytes_of_no_block_are_refused_or_are_of_4_kib() {
        let mut unpacker = Unpacker::default();
        for algorithm in [Algorithm::Lz4, Algorithm::Zstd] {
            let packed = pack_blocks([text(1, 1000).as_slice()].into_iter(), algorithm);
            let slot = slot_bytes(packed[0].as_ref().expect("it becomes smaller"));
            let mut block = vec![0; 4096];
            for bit in (0..slot.len() * 8).step_by(7) {
                let mut damaged = slot.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = unpacker.unpack(&damaged, algorithm, &mut block);
            }
            assert!(unpacker.unpack(&slot, algorithm, &mut block));
            assert_eq!(block, text(1, 1000), "{algorithm:?}: what was damaged before leaves nothing behind");
            for wrong in
                [vec![0; 512], vec![0xff; 3584], b"\x04\x00\x00\x00\x00\x00".repeat(200)[..1024].to_vec()]
            {
                assert!(!unpacker.unpack(&wrong, algorithm, &mut block), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn no_slot_crosses_a_frame_nor_overlaps_another() {
        let mut random = Random::new(3);
        for count in [1, 2, 7, 63, 64, 65, 256] {
            let units: Vec<u8> = (0..count).map(|_| random.range(1..9) as u8).collect();
            let (places, frames) = pack(&units, Border::Kept);
            let mut used = vec![[false; 8]; frames];
            for (place, units) in places.iter().zip(&units) {
                for unit in place.unit..place.unit + units {
                    assert!(!std::mem::replace(&mut used[place.frame][usize::from(unit)], true));
                }
            }
            let least = units.iter().map(|units| usize::from(*units)).sum::<usize>().div_ceil(8);
            assert!(frames <= count && (least..=least * 3 / 2 + 1).contains(&frames), "{frames} for {least}");
        }
    }

    #[test]
    fn blocks_that_are_not_compressed_keep_their_order() {
        let (places, frames) = pack(&[8; 100], Border::Kept);
        assert!(
            frames == 100 && places.iter().zip(0..).all(|(place, at)| place.frame == at && place.unit == 0)
        );
        let (places, frames) = pack(&[8, 3, 8, 5], Border::Kept);
        let found: Vec<(usize, u8)> = places.iter().map(|place| (place.frame, place.unit)).collect();
        assert_eq!((found, frames), (vec![(0, 0), (2, 5), (1, 0), (2, 0)], 3));
    }
}
