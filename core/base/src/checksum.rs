//! CRC-32C (Castagnoli), the checksum of every block, header and table page.
//!
//! `crc-fast` picks carry-less multiplication at run time; one release of it once crashed on CPUs without AVX-512
//! (awesomized/crc-fast-rust#14), so `self_test` compares it with known answers and belongs at program start.

/// CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC-32C of 4,096 zero bytes: the checksum of a block of zeroes.
pub const CRC32C_OF_ZERO_BLOCK: u32 = 0x98f9_4189;

/// Whether the checksum gives known answers on this machine (RFC 3720, appendix B.4, and a zero block).
pub fn self_test() -> bool {
    crc32c(b"123456789") == 0xe306_9283
        && crc32c(&[0u8; 32]) == 0x8a91_36aa
        && crc32c(&[0xffu8; 32]) == 0x62a8_ab43
        && crc32c(&[0u8; 4096]) == CRC32C_OF_ZERO_BLOCK
}

/// Writes the checksum of `bytes` into the four bytes at `place`, which count as zero.
pub fn seal(bytes: &mut [u8], place: usize) {
    bytes[place..place + 4].fill(0);
    let checksum = crc32c(bytes);
    bytes[place..place + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// Whether the four bytes at `place` are the checksum of the rest, as [`seal`] left them.
pub fn is_sealed(bytes: &[u8], place: usize) -> bool {
    let Some(stored) = bytes.get(place..place + 4) else { return false };
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&bytes[..place]);
    digest.update(&[0; 4]);
    digest.update(&bytes[place + 4..]);
    stored == (digest.finalize() as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sealed_block_is_recognised_and_any_flipped_bit_breaks_the_seal() {
        let mut bytes = [7u8; 64];
        super::seal(&mut bytes, 12);
        assert!(super::is_sealed(&bytes, 12));
        for bit in 0..64 * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!super::is_sealed(&damaged, 12), "bit {bit}");
        }
    }

    #[test]
    fn the_checksum_gives_the_answers_of_its_specification() {
        assert!(super::self_test());
    }
}
