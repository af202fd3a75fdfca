//! The bytes of a disk group on its devices: `docs/formats/disk-group.md` has the same as tables.
//!
//! Every structure is little-endian, carries a magic number, a version and a CRC-32C, and has reserved bytes that are
//! written as zero. Decoders take any bytes without panicking.

pub mod anchor;
pub mod batch;
mod entry;
mod id;
pub mod layer;
pub mod map;
pub mod page;
pub mod superblock;

use base::bytes::Reader;
use base::checksum;

/// The newest version of the structures here. A device with a greater one is refused: it needs a newer Drystone.
pub const FORMAT_VERSION: u32 = 2;
/// The version in which every part stands in an extent of its own. Groups of this version stay as they are until they are
/// converted (docs/design/0044).
pub const FORMAT_PLAIN: u32 = 1;

/// Why bytes are not the structure that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Only zeroes.
    #[error("it holds nothing")]
    Blank,
    /// Something else stands there.
    #[error("it holds something that is not Drystone's")]
    Foreign,
    /// A structure of a later release.
    #[error("it has format version {found}, this program reads up to {FORMAT_VERSION}: use a newer Drystone")]
    Newer {
        /// The version found.
        found: u32,
    },
    /// The structure is there, but its checksum or a field is wrong.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// Bytes that must be zero are not.
pub(crate) const RESERVED: FormatError = FormatError::Damaged("reserved bytes are set");

impl From<base::bytes::Truncated> for FormatError {
    fn from(_: base::bytes::Truncated) -> FormatError {
        FormatError::Damaged("it ends too early")
    }
}

/// Where the checksum of a structure with an eight-byte magic number stands.
pub(crate) const SEAL_AT: usize = 12;

/// Reads what superblock and anchor begin with: magic number, version, checksum. The reader stands behind it. Gives the version, too.
pub(crate) fn enter<'a>(
    bytes: &'a [u8],
    magic: [u8; 8],
    size: usize,
    damage: &'static str,
) -> Result<(Reader<'a>, u32), FormatError> {
    if is_blank(bytes) {
        return Err(FormatError::Blank);
    }
    let mut r = Reader::new(bytes);
    if r.slice(8) != magic {
        return Err(FormatError::Foreign);
    }
    let found = r.u32();
    if found > FORMAT_VERSION {
        return Err(FormatError::Newer { found });
    }
    if found < FORMAT_PLAIN || bytes.len() != size || !checksum::is_sealed(bytes, SEAL_AT) {
        return Err(FormatError::Damaged(damage));
    }
    r.u32();
    Ok((r, found))
}

/// Whether there are only zeroes.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    // SAFETY: any initialised bytes may be seen as u64; `align_to` keeps to the bounds.
    let (head, words, tail) = unsafe { bytes.align_to::<u64>() };
    head.iter().chain(tail).all(|&byte| byte == 0) && words.iter().all(|&word| word == 0)
}
