//! The anchor: where the live part of the log begins.
//!
//! Two copies, at 8 KiB and 12 KiB of the log device, written in turn; the valid one with the greatest `revision`
//! counts. Written, stable, at the end of each checkpoint: log space before `tail` may be reused only after that.

use super::superblock::MEMBERS_MAX;
use super::{FORMAT_PLAIN, FORMAT_VERSION, FormatError, RESERVED, SEAL_AT, enter};
use base::bytes::Writer;
use base::checksum;
use base::units::BLOCK_SIZE;

const MAGIC: [u8; 8] = *b"DRYANCHR";
/// Bytes of one copy.
pub const ANCHOR_SIZE: usize = BLOCK_SIZE as usize;
/// Where the stamps begin.
const STAMPS_AT: usize = 64;

/// Where a copy of the anchor stands on the log device, in bytes.
pub fn anchor_offset(revision: u64) -> u64 {
    2 * BLOCK_SIZE + (revision & 1) * BLOCK_SIZE
}

/// The content of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Anchor {
    /// Grows with every writing of it.
    pub revision: u64,
    /// The log that it belongs to.
    pub log_mark: u64,
    /// Log block at which the oldest live batch starts; counts from the log's first use and never wraps.
    pub tail: u64,
    /// Number of that batch.
    pub tail_batch: u64,
    /// Page intents in batches below this number are done: a page that is invalid now is damaged, not torn.
    pub intents_from: u64,
    /// Bit *i*: member *i* of the group failed and what it holds is not current.
    pub failed_members: u8,
    /// By member: the greatest stamp of a page that counts. Pages of a later one belong to a checkpoint that did not end. All zero
    /// in format 1, whose pages have no stamps.
    pub stamps: [u64; MEMBERS_MAX],
}

impl Anchor {
    /// The bytes of one copy.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(ANCHOR_SIZE);
        w.slice(&MAGIC);
        let is_plain = self.stamps == [0; MEMBERS_MAX];
        w.u32(if is_plain { FORMAT_PLAIN } else { FORMAT_VERSION });
        w.u32(0); // the checksum's place
        w.u64(self.revision);
        w.u64(self.log_mark);
        w.u64(self.tail);
        w.u64(self.tail_batch);
        w.u64(self.intents_from);
        w.u8(self.failed_members);
        w.pad_to(STAMPS_AT);
        self.stamps.iter().for_each(|&stamp| w.u64(stamp));
        w.pad_to(ANCHOR_SIZE);
        let mut bytes = w.into_bytes();
        checksum::seal(&mut bytes, SEAL_AT);
        bytes
    }

    /// Reads one copy.
    ///
    /// # Errors
    /// When it is not a valid anchor of the log marked `log_mark`.
    pub fn decode(bytes: &[u8], log_mark: u64) -> Result<Anchor, FormatError> {
        let (mut r, format) = enter(bytes, MAGIC, ANCHOR_SIZE, "the checksum of the anchor does not match")?;
        let mut anchor = Anchor {
            revision: r.u64(),
            log_mark: r.u64(),
            tail: r.u64(),
            tail_batch: r.u64(),
            intents_from: r.u64(),
            failed_members: r.u8(),
            stamps: [0; MEMBERS_MAX],
        };
        let mut is_clear = r.reserved(STAMPS_AT - 57);
        if format > FORMAT_PLAIN {
            anchor.stamps = [(); MEMBERS_MAX].map(|()| r.u64());
        }
        r.finish()?;
        is_clear &= r.reserved(r.remaining());
        if !is_clear {
            return Err(RESERVED);
        }
        match anchor.log_mark == log_mark {
            true => Ok(anchor),
            false => Err(FormatError::Foreign),
        }
    }

    /// The one of two copies that counts. A torn one is passed over: the other, older one is then the truth, for the
    /// space between the two tails is not reused before the newer one is stable.
    ///
    /// # Errors
    /// When neither is valid.
    pub fn choose(copies: [&[u8]; 2], log_mark: u64) -> Result<Anchor, FormatError> {
        match copies.map(|bytes| Anchor::decode(bytes, log_mark)) {
            [Ok(a), Ok(b)] => Ok(if a.revision >= b.revision { a } else { b }),
            [Ok(one), Err(_)] | [Err(_), Ok(one)] => Ok(one),
            [Err(FormatError::Blank), Err(error)] | [Err(error), Err(_)] => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bytes_that_are_set_are_refused() {
        let mut bytes = Anchor { revision: 1, log_mark: 9, ..Anchor::default() }.encode();
        bytes[ANCHOR_SIZE - 1] = 1;
        checksum::seal(&mut bytes, SEAL_AT);
        assert_eq!(Anchor::decode(&bytes, 9), Err(RESERVED));
    }

    #[test]
    fn the_newer_valid_copy_counts() {
        let old = Anchor { revision: 4, log_mark: 9, tail: 100, ..Anchor::default() };
        let new = Anchor { revision: 5, tail: 200, ..old };
        let (a, b) = (old.encode(), new.encode());
        assert_eq!(Anchor::choose([&a, &b], 9), Ok(new));
        let mut torn = b.clone();
        torn[40] ^= 1;
        assert_eq!(Anchor::choose([&a, &torn], 9), Ok(old));
        assert!(Anchor::choose([&a, &b], 8).is_err(), "an anchor of a former formatting");
    }
}
