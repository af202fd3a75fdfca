//! Every number below a bound once, in random order, with no memory: a Feistel network over the next power of four, walked
//! until it lands below the bound (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).

use base::Random;

/// Rounds: four make the order look random to any test of a disk.
const ROUNDS: usize = 4;

/// An order of `0..count`.
#[derive(Debug, Clone)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
    next: u64,
}

impl Permutation {
    /// An order of `0..count` that depends on `random` alone; `count` is not 0.
    pub fn new(count: u64, random: &mut Random) -> Permutation {
        assert!(count > 0, "nothing has no order");
        let bits = u64::BITS - (count - 1).leading_zeros();
        Permutation {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys: [(); ROUNDS].map(|()| random.bits()),
            next: 0,
        }
    }

    /// The next number; after the last one a new order begins, and `random` gives its keys.
    pub fn next(&mut self, random: &mut Random) -> u64 {
        if self.next == self.count {
            self.keys = [(); ROUNDS].map(|()| random.bits());
            self.next = 0;
        }
        let mut value = self.next;
        self.next += 1;
        loop {
            value = self.encipher(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn encipher(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits & mask, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
            let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 20;
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_in_every_round_and_rounds_differ() {
        for count in [1, 2, 3, 5, 64, 1000, 4097] {
            let mut random = Random::new(count);
            let mut permutation = Permutation::new(count, &mut random);
            let mut round = || {
                let numbers: Vec<u64> = (0..count).map(|_| permutation.next(&mut random)).collect();
                let mut sorted = numbers.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<u64>>());
                numbers
            };
            let (first, second) = (round(), round());
            assert!(count < 64 || first != second, "the same order twice for {count}");
        }
    }
}
