//! A seeded generator of our own, so that a seed in a bug report means the same for ever.
//!
//! xoshiro256++ by Blackman and Vigna (public domain, <https://prng.di.unimi.it>), seeded through splitmix64.
//! Not for secrets.

use std::ops::Range;

/// What splitmix64 adds at each step.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads a number evenly over 64 bits: the step of splitmix64 from it.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of pseudo-random numbers that depends on nothing but its seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Random {
        let mut number = seed;
        let state = [(); 4].map(|()| {
            let mixed = mix(number);
            number = number.wrapping_add(GOLDEN);
            mixed
        });
        Random { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which must not be zero. Multiply-shift; the bias is below 2^-32 for the bounds in use.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no numbers");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `range`, which must not be empty.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// True in `numerator` of `denominator` cases.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// A generator of its own stream, derived from this one.
    pub fn fork(&mut self) -> Random {
        Random::new(self.bits())
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_numbers_for_ever() {
        let mut random = Random::new(42);
        let numbers = [random.bits(), random.bits(), random.bits()];
        assert_eq!(numbers, [15021278609987233951, 5881210131331364753, 18149643915985481100]);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
    }
}
