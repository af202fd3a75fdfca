//! The share of blocks that a sample takes, and the choice of a block by a hash of what names it.

use base::ComponentId;
use base::random::mix;

/// A share above 0 and up to 1. A block is chosen if its number, spread evenly over 64 bits, is at most this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Every block.
    pub const ALL: Rate = Rate(u64::MAX);

    /// The rate of a share. Shares beyond 0..=1 become the nearest rate.
    pub fn of(share: f64) -> Rate {
        // A conversion to an integer saturates.
        Rate((share * 2f64.powi(64)) as u64)
    }

    /// As a number for other hosts.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From that number.
    pub fn from_bits(bits: u64) -> Rate {
        Rate(bits)
    }

    /// The share of blocks that is chosen.
    pub fn share(self) -> f64 {
        (self.0 as f64 + 1.0) / 2f64.powi(64)
    }

    /// Half of the rate. What it chooses, this rate chooses as well.
    pub fn halved(self) -> Rate {
        Rate(self.0 / 2)
    }

    /// Whether the block at a position is chosen: the same in each pass.
    pub fn chooses_position(self, component: ComponentId, part: u32, block: u16) -> bool {
        mix(mix(component.0) ^ (u64::from(part) << 16 | u64::from(block))) <= self.0
    }

    /// Whether blocks with that checksum are chosen. Equal blocks have equal checksums, so all of them are chosen or none.
    pub fn chooses_content(self, checksum: u32) -> bool {
        // A constant that sets these numbers apart from those of positions.
        mix(0x5e1f_c0de_0000_0000 | u64::from(checksum)) <= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_chooses_its_share_of_positions_and_of_contents() {
        let rate = Rate::of(1.0 / 64.0);
        let blocks = 1u32 << 20;
        let positions =
            (0..blocks).filter(|at| rate.chooses_position(ComponentId(7), at >> 8, *at as u16 & 255));
        let contents = (0..blocks).filter(|checksum| rate.chooses_content(checksum.wrapping_mul(97)));
        for chosen in [positions.count(), contents.count()] {
            // 16,384 expected, with a standard deviation of 127.
            assert!((15_900..16_900).contains(&chosen), "{chosen}");
        }
    }

    #[test]
    fn half_of_a_rate_chooses_part_of_what_the_rate_chooses() {
        let (rate, half) = (Rate::of(0.25), Rate::of(0.25).halved());
        assert!((half.share() - 0.125).abs() < 1e-9);
        assert!(
            (0..10_000).all(|checksum| rate.chooses_content(checksum) || !half.chooses_content(checksum))
        );
    }

    #[test]
    fn the_rate_of_everything_chooses_everything() {
        assert_eq!((Rate::of(1.0), Rate::of(7.0)), (Rate::ALL, Rate::ALL));
        assert!((Rate::ALL.share() - 1.0).abs() < 1e-12);
        assert!((0..10_000).all(|checksum| Rate::ALL.chooses_content(checksum)));
        assert_eq!(Rate::from_bits(Rate::of(0.3).bits()), Rate::of(0.3));
    }
}
