//! What a written block holds: where it belongs, which write it is of, and a checksum over all of it.
//!
//! The rest of a block follows from its stamp, so a block that is half of one write and half of another is noticed.

use base::checksum::{is_sealed, seal};
use base::units::BLOCK_SIZE;

/// Bytes of a block.
pub const BLOCK: usize = BLOCK_SIZE as usize;

/// First bytes of a stamped block.
const MAGIC: &[u8; 8] = b"DRYTRIAL";
/// Where the checksum stands.
const CHECKSUM_AT: usize = 8;

/// The identity of a write; zero is what was there before any.
pub type WriteNumber = u64;

/// Which write of which client a block is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The block of the disk.
    pub block: u64,
    /// The write; no two of a campaign have the same.
    pub write: WriteNumber,
    /// The client that wrote it.
    pub client: u32,
    /// Which campaign: an earlier one's data are told from this one's.
    pub campaign: u64,
}

/// Why a block that was read is none that was ever written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// No stamp at all.
    #[error("it begins with {0:02x?}, which is no stamp")]
    NoStamp([u8; 8]),
    /// Torn or damaged.
    #[error("its checksum is wrong")]
    Checksum,
    /// Of somewhere else.
    #[error("it belongs to block {0}")]
    Elsewhere(u64),
    /// Of an earlier campaign.
    #[error("it is of another campaign")]
    Campaign,
}

impl Stamp {
    /// Fills a block.
    pub fn fill(&self, block: &mut [u8]) {
        assert_eq!(block.len(), BLOCK, "a stamp fills one block");
        block[..8].copy_from_slice(MAGIC);
        block[12..16].copy_from_slice(&self.client.to_le_bytes());
        block[16..24].copy_from_slice(&self.block.to_le_bytes());
        block[24..32].copy_from_slice(&self.write.to_le_bytes());
        block[32..40].copy_from_slice(&self.campaign.to_le_bytes());
        // Weyl's sequence: cheap, and different for each write and block. Every other write can be compressed.
        let mut word = self.write.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.block;
        let step = if self.write.is_multiple_of(2) { 0 } else { 0x9e37_79b9_7f4a_7c15 };
        for bytes in block[40..].chunks_exact_mut(8) {
            word = word.wrapping_add(step);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        seal(block, CHECKSUM_AT);
    }

    /// The write that a block of this campaign, read at `place`, is of; zero for a block of zeroes.
    ///
    /// # Errors
    /// When it is of no write that belongs there.
    pub fn read(block: &[u8], place: u64, campaign: u64) -> Result<WriteNumber, StampError> {
        assert_eq!(block.len(), BLOCK, "a stamp is that of one block");
        if block.iter().all(|&byte| byte == 0) {
            return Ok(0);
        }
        let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
        if &block[..8] != MAGIC {
            return Err(StampError::NoStamp(block[..8].try_into().expect("eight bytes")));
        }
        if !is_sealed(block, CHECKSUM_AT) {
            return Err(StampError::Checksum);
        }
        if word(32) != campaign {
            return Err(StampError::Campaign);
        }
        if word(16) != place {
            return Err(StampError::Elsewhere(word(16)));
        }
        Ok(word(24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { block: 7, write: 99, client: 2, campaign: 5 };

    fn filled() -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        STAMP.fill(&mut block);
        block
    }

    #[test]
    fn a_block_tells_which_write_it_is_of() {
        assert_eq!(Stamp::read(&filled(), 7, 5), Ok(99));
        assert_eq!(Stamp::read(&[0; BLOCK], 7, 5), Ok(0));
    }

    #[test]
    fn a_block_of_elsewhere_or_of_an_earlier_campaign_or_torn_is_told() {
        assert_eq!(Stamp::read(&filled(), 8, 5), Err(StampError::Elsewhere(7)));
        assert_eq!(Stamp::read(&filled(), 7, 6), Err(StampError::Campaign));
        let mut torn = filled();
        Stamp { write: 100, ..STAMP }.fill(&mut torn);
        let torn = [&filled()[..2048], &torn[2048..]].concat();
        assert_eq!(Stamp::read(&torn, 7, 5), Err(StampError::Checksum));
        assert_eq!(Stamp::read(&[1; BLOCK], 7, 5), Err(StampError::NoStamp([1; 8])));
    }
}
