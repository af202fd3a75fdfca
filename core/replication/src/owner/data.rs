//! What a component read.

use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::BLOCK_SIZE;
use smallvec::SmallVec;

/// What a component read.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) pieces: Pieces,
    /// CRC-32C of the blocks that are not holes.
    pub(crate) checksums: SmallVec<[u32; 2]>,
}

impl Data {
    /// Whether every block is as its checksum says.
    pub(crate) fn is_intact(&self) -> bool {
        let mut expected = self.checksums.iter();
        let bytes = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Bytes(buffer) => Some(buffer),
            Piece::Hole(_) => None,
        });
        let mut blocks = bytes.flat_map(|buffer| buffer.chunks_exact(BLOCK_SIZE as usize));
        blocks.all(|block| expected.next() == Some(&crc32c(block))) && expected.next().is_none()
    }
}
