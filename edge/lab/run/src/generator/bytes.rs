//! What is written: bytes with a given part that compresses and a given part that was written before.

use super::popularity::unit;
use base::Random;
use plan::{Content, Data};

/// Seeds of recent units, to be written again as duplicates: enough that one is not always the same unit.
const RECENT: usize = 1024;
/// In each unit of compressible data, pieces of so many bytes begin with random bytes and end with zeroes, as fio's chunks do:
/// any compressor finds them, whatever its block.
const PIECE: usize = 512;

/// Fills buffers for one stream.
#[derive(Debug)]
pub struct Filler {
    data: Data,
    random: Random,
    /// Seeds of units that were written, round robin.
    recent: Vec<u64>,
    recent_next: usize,
    /// For scrambled and windowed contents.
    source: Vec<u8>,
    writes: u64,
}

impl Filler {
    /// For I/Os of at most `size_max` bytes.
    pub fn new(data: &Data, size_max: usize, mut random: Random) -> Filler {
        let bytes = match data.content {
            Content::Scrambled => size_max,
            Content::Window(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX).clamp(size_max, 1 << 30),
            Content::Random | Content::Zeroes | Content::Pattern(_) | Content::Counting => 0,
        };
        let mut source = vec![0; bytes];
        random.fill(&mut source);
        Filler { data: data.clone(), random, recent: Vec::new(), recent_next: 0, source, writes: 0 }
    }

    /// Whether every write has the same bytes, so that a buffer need be filled but once.
    pub fn is_constant(&self) -> bool {
        matches!(self.data.content, Content::Zeroes | Content::Counting | Content::Pattern(_))
    }

    /// Fills `buffer` for a write at `offset`.
    pub fn fill(&mut self, buffer: &mut [u8], offset: u64) {
        self.writes += 1;
        match &self.data.content {
            Content::Zeroes => buffer.fill(0),
            Content::Counting => {
                buffer.iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8);
            }
            Content::Pattern(pattern) if pattern.is_empty() => buffer.fill(0),
            Content::Pattern(pattern) => {
                for chunk in buffer.chunks_mut(pattern.len()) {
                    chunk.copy_from_slice(&pattern[..chunk.len()]);
                }
            }
            Content::Window(_) => {
                let from = self.random.below((self.source.len() - buffer.len() + 1) as u64) as usize;
                buffer.copy_from_slice(&self.source[from..from + buffer.len()]);
            }
            Content::Scrambled if self.data.compressible == 0.0 && self.data.duplicates == 0.0 => {
                self.scramble(buffer, offset);
            }
            Content::Scrambled | Content::Random => self.fill_units(buffer),
        }
    }

    /// The buffer keeps what it had (the stream's random bytes at first); one word of every 512 bytes changes.
    fn scramble(&mut self, buffer: &mut [u8], offset: u64) {
        if self.writes <= 1 || buffer[..8.min(buffer.len())].iter().all(|&byte| byte == 0) {
            buffer.copy_from_slice(&self.source[..buffer.len()]);
        }
        for (index, piece) in buffer.chunks_mut(PIECE).enumerate() {
            let word = (offset + (index * PIECE) as u64) ^ self.writes.rotate_left(40);
            let place = (word as usize % PIECE.min(piece.len())) & !7;
            if let Some(bytes) = piece.get_mut(place..place + 8) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    fn fill_units(&mut self, buffer: &mut [u8]) {
        let unit_size = usize::try_from(self.data.unit).unwrap_or(usize::MAX);
        for chunk in buffer.chunks_mut(unit_size) {
            let seed = self.unit_seed();
            fill_unit(chunk, seed, self.data.compressible);
        }
    }

    fn unit_seed(&mut self) -> u64 {
        let duplicate = self.data.duplicates > 0.0 && unit(&mut self.random) * 100.0 < self.data.duplicates;
        if duplicate && !self.recent.is_empty() {
            return self.recent[self.random.below(self.recent.len() as u64) as usize];
        }
        let seed = self.random.bits();
        if self.data.duplicates > 0.0 {
            match self.recent.len() < RECENT {
                true => self.recent.push(seed),
                false => self.recent[self.recent_next] = seed,
            }
            self.recent_next = (self.recent_next + 1) % RECENT;
        }
        seed
    }
}

/// One unit: in every piece, the part that does not compress is random, the rest zero.
fn fill_unit(unit: &mut [u8], seed: u64, compressible: f64) {
    let mut random = Random::new(seed);
    if compressible == 0.0 {
        random.fill(unit);
        return;
    }
    for piece in unit.chunks_mut(PIECE) {
        let kept = (piece.len() as f64 * (100.0 - compressible) / 100.0).round() as usize;
        let (random_part, zero_part) = piece.split_at_mut(kept.min(piece.len()));
        random.fill(random_part);
        zero_part.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn units(compressible: f64, duplicates: f64) -> Vec<Vec<u8>> {
        let data = Data { compressible, duplicates, ..Data::default() };
        let mut filler = Filler::new(&data, 65536, Random::new(11));
        let mut all = Vec::new();
        for index in 0..200u64 {
            let mut buffer = vec![0; 65536];
            filler.fill(&mut buffer, index * 65536);
            all.extend(buffer.chunks(4096).map(<[u8]>::to_vec));
        }
        all
    }

    #[test]
    fn the_share_of_duplicate_units_is_what_was_asked_for() {
        for duplicates in [0.0, 50.0, 90.0] {
            let units = units(0.0, duplicates);
            let distinct: BTreeSet<&Vec<u8>> = units.iter().collect();
            let found = 100.0 * (1.0 - distinct.len() as f64 / units.len() as f64);
            assert!((found - duplicates).abs() < 3.0, "{found} % of {duplicates} %");
        }
    }

    #[test]
    fn the_compressible_part_is_zero_in_every_piece() {
        for unit in units(50.0, 0.0).iter().take(20) {
            for piece in unit.chunks(PIECE) {
                assert!(piece[256..].iter().all(|&byte| byte == 0));
                assert!(piece[..256].iter().filter(|&&byte| byte == 0).count() < 16);
            }
        }
    }

    #[test]
    fn scrambled_buffers_are_never_twice_the_same_and_patterns_repeat() {
        let data = Data { content: Content::Scrambled, ..Data::default() };
        let mut filler = Filler::new(&data, 4096, Random::new(1));
        let mut buffer = vec![0; 4096];
        let mut seen = BTreeSet::new();
        for index in 0..500u64 {
            filler.fill(&mut buffer, index % 3 * 4096);
            assert!(seen.insert(buffer.clone()), "write {index} repeats another");
        }
        let data = Data { content: Content::Pattern(vec![1, 2, 3]), ..Data::default() };
        let mut filler = Filler::new(&data, 8, Random::new(1));
        let mut buffer = [0; 8];
        filler.fill(&mut buffer, 0);
        assert_eq!(buffer, [1, 2, 3, 1, 2, 3, 1, 2]);
    }
}
