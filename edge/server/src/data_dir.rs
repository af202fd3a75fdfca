//! Whether the file system of a host's data directory runs full, told before something cannot be written.
//!
//! What stands there is small (an identity, certificates, events, a copy of the directory), but the file system is often that of
//! the whole machine.

use base::units::{MIB, format_bytes};
use std::path::Path;

/// Below this it is told: what a host with 10,000 disks writes anew of its copy of the directory fits several times.
const LOW_BYTES: u64 = 64 * MIB;
/// Of a small file system, only below this share.
const LOW_SHARE: u64 = 20;

/// In words, that little is left, if so. Nothing if the file system does not tell: what is wrong with it is told when it is written to.
pub fn low(data_dir: &Path) -> Option<String> {
    let found = rustix::fs::statvfs(data_dir).ok()?;
    let (size, left) = (found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize);
    is_low(size, left).then(|| {
        // The bound and not what is left: hosts tell each other of it each time that the text changes.
        let (low, size) = (format_bytes(low_bytes(size)), format_bytes(size));
        format!("less than {low} are left in its file system of {size}")
    })
}

fn low_bytes(size: u64) -> u64 {
    LOW_BYTES.min(size / LOW_SHARE)
}

fn is_low(size: u64, left: u64) -> bool {
    left < low_bytes(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_told_of_large_and_of_small_file_systems() {
        assert!(is_low(1 << 40, LOW_BYTES - 1) && !is_low(1 << 40, LOW_BYTES));
        assert!(is_low(40 * MIB, 2 * MIB - 1) && !is_low(40 * MIB, 2 * MIB));
        assert!(is_low(40 * MIB, 0));
    }

    #[test]
    fn a_folder_that_is_not_there_tells_nothing() {
        assert_eq!(low(Path::new("/no/such/folder")), None);
    }
}
