//! What the fuzz targets share: sealing of bytes, so that a decoder's checks behind its checksum are reached, an executor of
//! NBD sessions in memory, the other end of a connection between nodes, and the devices of a disk group.

pub mod group;
pub mod mapped;
pub mod nbd;
pub mod wire;

/// `bytes` with a right checksum at `place`, as [`base::checksum::seal`] writes it; as they are if they are too short.
pub fn sealed(bytes: &[u8], place: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= place + 4 {
        base::checksum::seal(&mut bytes, place);
    }
    bytes
}

/// `body` in a structure of a disk group: magic and format version before it, zeroes after it up to `len`, and a right
/// checksum at `place`. The four bytes of the checksum are not taken from `body`.
pub fn framed(magic: &[u8], place: usize, body: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend_from_slice(&diskgroup::format::FORMAT_VERSION.to_le_bytes());
    bytes.resize(place + 4, 0);
    bytes.extend_from_slice(body);
    bytes.resize(len, 0);
    sealed(&bytes, place)
}
