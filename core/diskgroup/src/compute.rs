//! Work of the processor that takes long beside a request: asked for as an output, so that the executor may do it elsewhere while the group goes on. A guest waits
//! for none of it but large reads of compressed blocks.
//!
//! Small work on a guest's way stays where it is: CRC-32C was measured at 92 GB/s, 45 ns for a block.

use crate::format::map::{Algorithm, Form};
use crate::slots::{SlotRead, UNITS_PER_FRAME, Unpacker, pack_blocks, units_of};
use base::Buffer;
use base::checksum::crc32c;
use base::request::Buffers;
use base::units::BLOCK_SIZE;

/// The group's name for work of the processor; comes back with its result. No other work of the process has the same name in
/// that group, also when it was opened before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeId(pub u64);

/// What is computed of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Computation {
    /// The CRC-32C of each block of 4 KiB.
    Checksums,
    /// The CRC-32C of each block that stands in one of these slots of the frames that were read, which are one buffer.
    SlotChecksums(Box<[SlotRead]>),
    /// Each block of 4 KiB, compressed.
    Compress(Algorithm),
    /// The blocks that stand in these slots, each of that buffer of frames. A guest waits for them.
    Unpack(Box<[(u16, SlotRead)]>),
    /// The blocks that stand in these slots of the frames that were read, which are one buffer: those that stand as they are are compressed, the others keep
    /// their bytes. None that does not match its checksum.
    Repack {
        /// Where they stand.
        slots: Box<[SlotRead]>,
        /// The CRC-32C of each block.
        checksums: Box<[u32]>,
        /// How they are compressed.
        algorithm: Algorithm,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Computed {
    /// One for each whole block, in order.
    Checksums(Box<[u32]>),
    /// One for each slot; `None` where there is no block in it.
    SlotChecksums(Box<[Option<u32>]>),
    /// For each whole block, in order, what its slot begins with; `None` where not even one unit would be saved.
    Compressed(Box<[Option<Box<[u8]>>]>),
    /// The blocks of slots, one after the other.
    Unpacked {
        /// Their bytes.
        blocks: Box<[u8]>,
        /// Those that are none, ascending, by their slots.
        bad: Box<[u16]>,
    },
    /// One for each slot.
    Repacked(Box<[Repacked]>),
}

/// What a block becomes that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repacked {
    /// It does not match its checksum.
    Damaged,
    /// It stands as it is, and compressed it would take no unit less.
    Plain,
    /// It takes fewer units than eight.
    Packed {
        /// What its slot begins with.
        slot: Box<[u8]>,
        /// How it is stored.
        form: Form,
    },
}

impl Repacked {
    /// Whether it takes less than a frame.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Repacked::Packed { .. })
    }

    /// Units that it takes.
    pub(crate) fn units(&self) -> u8 {
        match self {
            Repacked::Packed { form, .. } => form.units,
            Repacked::Plain | Repacked::Damaged => UNITS_PER_FRAME,
        }
    }
}

/// Work of the processor.
#[derive(Debug, Clone)]
pub struct Task {
    /// What to compute.
    pub computation: Computation,
    /// Of what: at most 1 MiB, each buffer a whole number of blocks. It does not change until the result is handed back.
    pub data: Buffers,
}

impl Computation {
    /// Whether a guest waits for it.
    pub fn is_urgent(&self) -> bool {
        matches!(self, Computation::Unpack(_))
    }

    /// Does the work, on any thread.
    pub fn perform(&self, data: &[&[u8]]) -> Computed {
        let blocks = data.iter().flat_map(|bytes| bytes.chunks_exact(BLOCK_SIZE as usize));
        match self {
            Computation::Checksums => Computed::Checksums(blocks.map(crc32c).collect()),
            Computation::SlotChecksums(slots) => Computed::SlotChecksums(slot_checksums(slots, data[0])),
            Computation::Compress(algorithm) => {
                Computed::Compressed(pack_blocks(blocks, *algorithm).into_boxed_slice())
            }
            Computation::Unpack(slots) => unpack(slots, data),
            Computation::Repack { slots, checksums, algorithm } => {
                Computed::Repacked(repack((slots, checksums), data[0], *algorithm))
            }
        }
    }
}

fn slot_checksums(slots: &[SlotRead], frames: &[u8]) -> Box<[Option<u32>]> {
    let (mut unpacker, mut block) = (Unpacker::default(), [0; BLOCK_SIZE as usize]);
    let mut checksum = |slot: &SlotRead| {
        let bytes = slot.bytes(frames);
        match slot.form.is_packed() {
            false => Some(crc32c(bytes)),
            true => unpacker.unpack(bytes, slot.form.algorithm, &mut block).then(|| crc32c(&block)),
        }
    };
    slots.iter().map(&mut checksum).collect()
}

fn unpack(slots: &[(u16, SlotRead)], data: &[&[u8]]) -> Computed {
    let mut unpacker = Unpacker::default();
    let mut blocks = vec![0; slots.len() * BLOCK_SIZE as usize];
    let mut bad = Vec::new();
    for (index, (block, (of, slot))) in blocks.chunks_exact_mut(BLOCK_SIZE as usize).zip(slots).enumerate() {
        if !unpacker.unpack(slot.bytes(data[usize::from(*of)]), slot.form.algorithm, block) {
            bad.push(index as u16);
        }
    }
    Computed::Unpacked { blocks: blocks.into(), bad: bad.into() }
}

fn repack((slots, checksums): (&[SlotRead], &[u32]), frames: &[u8], algorithm: Algorithm) -> Box<[Repacked]> {
    let found = slot_checksums(slots, frames);
    let is_whole = |at: usize| found[at] == Some(checksums[at]);
    let is_to_be_packed = |at: &usize| is_whole(*at) && !slots[*at].form.is_packed();
    let plain: Vec<usize> = (0..slots.len()).filter(is_to_be_packed).collect();
    let packed = pack_blocks(plain.iter().map(|at| slots[*at].bytes(frames)), algorithm);
    let mut packed = packed.into_iter();
    let mut repacked = |at: usize| {
        let SlotRead { form, .. } = slots[at];
        match is_whole(at) {
            false => Repacked::Damaged,
            true if form.is_packed() => Repacked::Packed { slot: slots[at].bytes(frames).into(), form },
            true => match packed.next().flatten() {
                Some(slot) => Repacked::Packed { form: Form { units: units_of(&slot), algorithm }, slot },
                None => Repacked::Plain,
            },
        }
    };
    (0..slots.len()).map(&mut repacked).collect()
}

impl Task {
    /// The checksums of the blocks of a buffer.
    pub(crate) fn checksums(data: Buffer) -> Task {
        Task { computation: Computation::Checksums, data: smallvec::smallvec![data] }
    }

    /// Does the work here.
    pub fn perform(&self) -> Computed {
        let data: Vec<&[u8]> = self.data.iter().map(|buffer| &buffer[..]).collect();
        self.computation.perform(&data)
    }
}

/// Gives each work its name.
#[derive(Debug)]
pub(crate) struct ComputeIds {
    next: u64,
}

impl ComputeIds {
    /// Names of a group that is opened at that time, in nanoseconds: greater than those of all its openings before.
    pub(crate) fn from(opened_at_ns: u64) -> ComputeIds {
        ComputeIds { next: opened_at_ns }
    }

    pub(crate) fn next(&mut self) -> ComputeId {
        self.next += 1;
        ComputeId(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Pool;

    #[test]
    fn the_checksums_of_a_task_are_those_of_its_blocks() {
        let data = Pool::new(1 << 20).take_zeroed(2 * BLOCK_SIZE as usize).expect("a fresh pool has a MiB");
        data.fill_from(BLOCK_SIZE as usize, &[7]);
        let task = Task::checksums(data.clone());
        let expected = [crc32c(&data[..4096]), crc32c(&data[4096..])];
        assert_eq!(task.perform(), Computed::Checksums(Box::new(expected)));
    }
}
