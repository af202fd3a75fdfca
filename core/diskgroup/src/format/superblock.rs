//! The superblock: what a device is, whose it is, and where its regions stand.
//!
//! Two copies, at 0 and 4 KiB; the valid one with the greatest `revision` counts. Written when a device is formatted
//! and when its group's membership changes; the other copy is written first to last, never both at once.

use super::{FormatError, RESERVED, SEAL_AT, enter};
use base::bytes::Writer;
use base::checksum;
use base::units::BLOCK_SIZE;
use base::{ClusterId, DeviceId, GroupId, HostId};

/// First bytes of every Drystone device.
pub const MAGIC: [u8; 8] = *b"DRYSTONE";
/// Bytes of one copy.
pub const SUPERBLOCK_SIZE: usize = BLOCK_SIZE as usize;
/// Devices of one group: one with the log and up to seven more.
pub const MEMBERS_MAX: usize = 8;

/// A run of bytes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero if the device has no such region.
    pub len: u64,
}

impl Region {
    /// The first byte after it.
    pub fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// Where everything stands on one device. All in bytes, all multiples of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Geometry {
    /// The log; empty on devices without it.
    pub log: Region,
    /// The table: for every page two copies side by side. Component pages first, then descriptor pages.
    pub table: Region,
    /// How many of the table's pages are component pages.
    pub component_slots: u32,
    /// The extents.
    pub extents: Region,
}

/// The content of a superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// The version of the structures of its group: [`super::FORMAT_PLAIN`] to [`super::FORMAT_VERSION`].
    pub format: u32,
    /// Grows with every writing of it.
    pub revision: u64,
    /// The cluster that the device belongs to.
    pub cluster: ClusterId,
    /// The host that formatted it.
    pub host: HostId,
    /// Its disk group.
    pub group: GroupId,
    /// Its identity.
    pub device: DeviceId,
    /// Its index in `members`; 0 holds the log.
    pub index: u8,
    /// The devices of the group by index; zero where an index has none.
    pub members: [DeviceId; MEMBERS_MAX],
    /// Marks this formatting of the log: batches with another mark are left-overs. Zero on devices without a log.
    pub log_mark: u64,
    /// Bytes of the device that Drystone uses.
    pub size: u64,
    /// Its regions.
    pub geometry: Geometry,
}

impl Superblock {
    /// The bytes of one copy.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(SUPERBLOCK_SIZE);
        w.slice(&MAGIC);
        w.u32(self.format);
        w.u32(0); // the checksum's place
        w.u64(self.revision);
        w.u128(self.cluster.0);
        w.u128(self.host.0);
        w.u128(self.group.0);
        w.u128(self.device.0);
        w.u8(self.index);
        w.slice(&[0; 7]);
        for member in self.members {
            w.u128(member.0);
        }
        w.u64(self.log_mark);
        w.u64(self.size);
        for region in [self.geometry.log, self.geometry.table, self.geometry.extents] {
            w.u64(region.offset);
            w.u64(region.len);
        }
        w.u32(self.geometry.component_slots);
        w.pad_to(SUPERBLOCK_SIZE);
        let mut bytes = w.into_bytes();
        checksum::seal(&mut bytes, SEAL_AT);
        bytes
    }

    /// Reads one copy.
    ///
    /// # Errors
    /// Tells blank, foreign, newer and damaged apart.
    pub fn decode(bytes: &[u8]) -> Result<Superblock, FormatError> {
        let damage = "the checksum of the superblock does not match";
        let (mut r, format) = enter(bytes, MAGIC, SUPERBLOCK_SIZE, damage)?;
        let revision = r.u64();
        let (cluster, host) = (ClusterId(r.u128()), HostId(r.u128()));
        let (group, device) = (GroupId(r.u128()), DeviceId(r.u128()));
        let index = r.u8();
        let mut is_clear = r.reserved(7);
        let members = [(); MEMBERS_MAX].map(|()| DeviceId(r.u128()));
        let (log_mark, size) = (r.u64(), r.u64());
        let [log, table, extents] = [(); 3].map(|()| Region { offset: r.u64(), len: r.u64() });
        let geometry = Geometry { log, table, component_slots: r.u32(), extents };
        r.finish()?;
        is_clear &= r.reserved(r.remaining());
        if !is_clear {
            return Err(RESERVED);
        }
        let superblock = Superblock {
            format,
            revision,
            cluster,
            host,
            group,
            device,
            index,
            members,
            log_mark,
            size,
            geometry,
        };
        superblock.check()?;
        Ok(superblock)
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.index as usize >= MEMBERS_MAX || self.members[self.index as usize] != self.device {
            return Err(FormatError::Damaged("the superblock's index in its group is wrong"));
        }
        for region in [self.geometry.log, self.geometry.table, self.geometry.extents] {
            let aligned = region.offset.is_multiple_of(BLOCK_SIZE) && region.len.is_multiple_of(BLOCK_SIZE);
            let inside = region.offset.checked_add(region.len).is_some_and(|end| end <= self.size);
            if !aligned || !inside {
                return Err(FormatError::Damaged("a region lies outside the device"));
            }
        }
        let pages = self.geometry.page_count();
        if self.geometry.table.len != pages * 2 * BLOCK_SIZE {
            return Err(FormatError::Damaged("the table has the wrong size"));
        }
        Ok(())
    }

    /// The one of two copies that counts.
    ///
    /// # Errors
    /// When neither is valid: what the first one is, or damage if either shows the magic number.
    pub fn choose(first: &[u8], second: &[u8]) -> Result<Superblock, FormatError> {
        match (Superblock::decode(first), Superblock::decode(second)) {
            (Ok(a), Ok(b)) => Ok(if a.revision >= b.revision { a } else { b }),
            (Err(newer @ FormatError::Newer { .. }), _) | (_, Err(newer @ FormatError::Newer { .. })) => {
                Err(newer)
            }
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(damaged @ FormatError::Damaged(_)), _) | (_, Err(damaged @ FormatError::Damaged(_))) => {
                Err(damaged)
            }
            (Err(FormatError::Blank), Err(other)) => Err(other),
            (Err(foreign), Err(_)) => Err(foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> Superblock {
        let device = DeviceId(4);
        let mut members = [DeviceId(0); MEMBERS_MAX];
        members[0] = device;
        let geometry = Geometry::plan(256 << 20, Some(32 << 20), true).expect("256 MiB are enough");
        Superblock {
            format: crate::format::FORMAT_PLAIN,
            revision: 9,
            cluster: ClusterId(1),
            host: HostId(2),
            group: GroupId(3),
            device,
            index: 0,
            members,
            log_mark: 77,
            size: 256 << 20,
            geometry,
        }
    }

    #[test]
    fn reserved_bytes_that_are_set_are_refused() {
        for at in [89, 95, 2000, SUPERBLOCK_SIZE - 1] {
            let mut bytes = sample().encode();
            bytes[at] = 1;
            checksum::seal(&mut bytes, SEAL_AT);
            assert_eq!(Superblock::decode(&bytes), Err(RESERVED), "byte {at}");
        }
    }

    #[test]
    fn a_superblock_is_read_back_and_no_flipped_byte_is_taken() {
        let superblock = sample();
        let bytes = superblock.encode();
        assert_eq!(Superblock::decode(&bytes), Ok(superblock.clone()));
        for at in 0..SUPERBLOCK_SIZE {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(Superblock::decode(&damaged).is_err(), "byte {at}");
            assert_eq!(Superblock::choose(&damaged, &bytes).is_ok(), !(8..12).contains(&at), "byte {at}");
        }
    }

    #[test]
    fn blank_foreign_and_newer_are_told_apart() {
        let zero = [0u8; SUPERBLOCK_SIZE];
        assert_eq!(Superblock::choose(&zero, &zero), Err(FormatError::Blank));
        let mut ext4 = zero;
        ext4[1080] = 0x53;
        assert_eq!(Superblock::choose(&ext4, &zero), Err(FormatError::Foreign));
        let mut newer = sample().encode();
        newer[8] = 3;
        assert_eq!(Superblock::choose(&newer, &newer), Err(FormatError::Newer { found: 3 }));
    }
}
