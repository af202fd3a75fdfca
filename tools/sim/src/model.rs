//! What a disk may answer: for every block the last value known, and the values that may have replaced it.

use crate::zeroes::is_impostor;
use base::checksum::crc32c;
use base::request::Piece;
use base::units::BLOCK_SIZE;
use std::collections::{BTreeMap, BTreeSet};

/// A block of a component: (component, part, block).
pub type Key = (u32, u32, u16);

/// The content of a block, as a number; 0 stands for zeroes.
pub type Value = u64;

#[derive(Debug, Clone, Default)]
struct State {
    /// What was last acknowledged, or read.
    known: Value,
    /// A write that is under way, or was when the host crashed.
    maybe: Option<Value>,
    /// When `known` was last decided, by the model's clock.
    decided: u64,
    /// Whether the host crashed while `maybe` was under way: the first read decides.
    is_undecided: bool,
}

/// All blocks.
#[derive(Debug, Default)]
pub struct Model {
    blocks: BTreeMap<Key, State>,
    clock: u64,
}

impl Model {
    /// Whether a write or trim of the block is under way.
    pub fn is_busy(&self, key: Key) -> bool {
        self.blocks.get(&key).is_some_and(|state| state.maybe.is_some())
    }

    /// A write begins.
    pub fn begin(&mut self, key: Key, value: Value) {
        let state = self.blocks.entry(key).or_default();
        assert!(state.maybe.is_none(), "the load keeps to one write of a block at a time");
        state.is_undecided = false;
        state.maybe = Some(value);
    }

    /// A write was acknowledged.
    pub fn acknowledge(&mut self, key: Key) {
        self.clock += 1;
        let state = self.blocks.get_mut(&key).expect("a write that ends began");
        state.known = state.maybe.take().expect("a write that ends began");
        state.decided = self.clock;
    }

    /// A write was refused: it has not happened.
    pub fn refuse(&mut self, key: Key) {
        self.blocks.get_mut(&key).expect("a write that ends began").maybe = None;
    }

    /// A write ended without anyone knowing whether it happened: the next read of the block decides.
    pub fn undecide(&mut self, key: Key) {
        self.blocks.get_mut(&key).expect("a write that ends began").is_undecided = true;
    }

    /// The time, for [`Model::check`]: decisions after it are not known to a read that began at it.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Checks what a read that began at `began` found.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&mut self, key: Key, found: Value, began: u64) -> Result<(), String> {
        self.clock += 1;
        let clock = self.clock;
        let state = self.blocks.entry(key).or_default();
        if state.decided > began {
            // Decided while the read was under way: what stood before is a fair answer, and, since that may be zeroes
            // as well, nothing can be told from it about a trim under way.
            return Ok(());
        }
        if found == state.known || state.maybe == Some(found) {
            if found != state.known {
                state.known = found;
                state.decided = clock;
            }
            if state.is_undecided {
                state.maybe = None;
                state.is_undecided = false;
            }
            return Ok(());
        }
        Err(format!("block {key:?} reads as {found:x}, expected {:x} or {:x?}", state.known, state.maybe))
    }

    /// What each block of a component may be now.
    pub fn possible(&self, component: u32) -> BTreeMap<(u32, u16), BTreeSet<Value>> {
        let blocks = self.blocks.range((component, 0, 0)..(component + 1, 0, 0));
        let values = |state: &State| std::iter::once(state.known).chain(state.maybe).collect();
        blocks.map(|((_, part, block), state)| ((*part, *block), values(state))).collect()
    }

    /// The blocks that have ever been written.
    pub fn keys(&self) -> Vec<Key> {
        self.blocks.keys().copied().collect()
    }

    /// The host crashed: every write under way has happened or not, and the next read of its blocks decides.
    pub fn crash(&mut self) {
        for state in self.blocks.values_mut() {
            state.is_undecided = state.maybe.is_some();
        }
    }

    /// A component that was deleted has no blocks.
    pub fn forget_component(&mut self, component: u32) {
        self.blocks.retain(|key, _| key.0 != component);
    }
}

/// Bytes at the end of a block that give it its checksum, where its value asks for one.
const FORCED: usize = 4;

/// Where a value tells how small its block becomes; 0 of values that were drawn without that.
const DEGREE_SHIFT: u32 = 60;
/// Words of a sector, each of which tells the value.
const WORDS_PER_SECTOR: usize = 64;

/// The value of a block that becomes small to a degree: 0, to five units of eight or so; 1, to one; 2, to six or seven; 3, not at all.
pub(crate) fn squeezable(value: Value, degree: u64) -> Value {
    assert!(value >> DEGREE_SHIFT == 0 && degree < 4, "values are drawn without a degree");
    value | degree << DEGREE_SHIFT
}

/// A word of a block that is not zero.
fn word_of(value: Value, index: usize) -> u64 {
    let plain = value ^ (index as u64) << 48;
    let in_sector = index % WORDS_PER_SECTOR;
    match value >> DEGREE_SHIFT {
        1 => value ^ ((index / WORDS_PER_SECTOR) as u64) << 48,
        2 if in_sector >= WORDS_PER_SECTOR / 4 => noise(plain),
        3 if in_sector > 0 => noise(plain),
        _ => plain,
    }
}

/// Bits that follow from others and look like nothing (splitmix64).
fn noise(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The bytes of a value: every 8 bytes tell it, so that a torn block shows. Those of an impostor end so that the block has the checksum of
/// zeroes: CRC-32C is linear, so what the checksums of the bytes before differ by is what the last four must be.
pub fn fill(value: Value, bytes: &mut [u8]) {
    if value == 0 {
        bytes.fill(0);
        return;
    }
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&word_of(value, index).to_le_bytes());
    }
    if is_impostor(value) {
        assert!(bytes.len() == BLOCK_SIZE as usize, "values are whole blocks");
        let (told, forced) = bytes.split_at_mut(BLOCK_SIZE as usize - FORCED);
        let zeroes = [0; BLOCK_SIZE as usize - FORCED];
        forced.copy_from_slice(&(crc32c(told) ^ crc32c(&zeroes)).to_le_bytes());
    }
}

/// The value of a block's bytes.
///
/// # Errors
/// When they are no block that was ever written whole.
pub fn value_of(bytes: &[u8]) -> Result<Value, String> {
    assert!(bytes.len() == BLOCK_SIZE as usize, "values are whole blocks");
    let word =
        |index: usize| u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
    let value = word(0);
    // Each block that a run reads comes here: one comparison of all its bytes takes a tenth of the time of one for each word.
    let mut expected = [0; BLOCK_SIZE as usize];
    fill(value, &mut expected);
    if bytes == expected.as_slice() {
        return Ok(value);
    }
    let differs = bytes.iter().zip(&expected).position(|(found, expected)| found != expected);
    let index = differs.expect("they are not the same") / 8;
    Err(format!("torn block: {value:x} at its start, {:x} at word {index}", word(index)))
}

/// The bytes of what was read.
pub(crate) fn joined_pieces(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(buffer) => bytes.extend_from_slice(buffer),
            Piece::Hole(len) => bytes.resize(bytes.len() + *len as usize, 0),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::checksum::CRC32C_OF_ZERO_BLOCK;

    #[test]
    fn the_value_of_a_block_is_read_as_it_was_filled_and_a_torn_block_shows() {
        let squeezed = (0..4).map(|degree| squeezable(0x1234_5678_9abd, degree));
        for value in [0, 1, 2, 0x1234_5678_9abc].into_iter().chain(squeezed) {
            let mut bytes = [0xa5; BLOCK_SIZE as usize];
            fill(value, &mut bytes);
            assert_eq!(value_of(&bytes), Ok(value));
            let has_sum = crc32c(&bytes) == CRC32C_OF_ZERO_BLOCK;
            assert_eq!(has_sum, value % 2 == 0, "{value:x}");
            for torn in [0, 8, 2048, 4088, 4092, 4095] {
                let mut torn_bytes = bytes;
                torn_bytes[torn] ^= 1;
                assert_ne!(value_of(&torn_bytes), Ok(value), "{value:x} torn at {torn}");
            }
        }
    }
}
