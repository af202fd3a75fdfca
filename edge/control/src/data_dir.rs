//! Whether the file system of a host's data directory runs full, told before something cannot be written, and a reserve for
//! starts when it has.
//!
//! What stands there is small (an identity, certificates, events, a copy of the directory), but the file system is often that of
//! the whole machine. A host that runs needs no room to serve; one that starts writes its number of the start, at least. So a file
//! of no content keeps some room, which a start takes when nothing else is left, and gives back what it did not need.

use base::units::{MIB, format_bytes};
use failure::{Code, Failure};
use rustix::fs::{FallocateFlags, StatVfs, fallocate, ftruncate, statvfs};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Below this it is told: what a host with 10,000 disks writes anew of its copy of the directory fits several times.
const LOW_BYTES: u64 = 64 * MIB;
/// Of a small file system, only below this share.
const LOW_SHARE: u64 = 20;

/// The file that keeps room for starts.
const RESERVE_FILE: &str = "reserve";
/// What it keeps, and the least that is worth a file. A start writes some tens of KiB, most of them over what it wrote before.
const RESERVE_BYTES: u64 = 4 * MIB;
const RESERVE_BYTES_MIN: u64 = MIB / 4;

/// In words, that little is left, if so. Nothing if the file system does not tell: what is wrong with it is told when it is written to.
pub fn low(data_dir: &Path) -> Option<String> {
    let found = statvfs(data_dir).ok()?;
    let (size, left) = (found.f_blocks * found.f_frsize, left(&found));
    is_low(size, left).then(|| {
        // The bound and not what is left: hosts tell each other of it each time that the text changes.
        let (low, size) = (format_bytes(low_bytes(size)), format_bytes(size));
        format!("less than {low} are left in its file system of {size}")
    })
}

/// Before a start writes anything: where less is left than the reserve keeps, what it keeps is there to be written to. Whether it
/// was taken.
///
/// # Errors
/// When the reserve cannot be removed.
pub fn take_reserve(data_dir: &Path) -> Result<bool, Failure> {
    if statvfs(data_dir).is_ok_and(|found| left(&found) >= RESERVE_BYTES) {
        return Ok(false);
    }
    let path = data_dir.join(RESERVE_FILE);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::failed(format!("remove {}", path.display()), error)),
    }
}

/// After a start: keeps room for the next one, as much as is left and no more than its share.
pub fn keep_reserve(data_dir: &Path) {
    if let Err(error) = try_keep(&data_dir.join(RESERVE_FILE)) {
        // A start without it needs what is left beside it. File systems that cannot keep room are few.
        tracing::warn!("no room is kept for starts when the data directory is full: {error}");
    }
}

/// While the host runs: the reserve is whole again soon after there is room.
pub fn restore_reserve(data_dir: &Path) {
    let path = data_dir.join(RESERVE_FILE);
    let kept = fs::metadata(&path).map_or(0, |file| file.len());
    if kept < RESERVE_BYTES && low(data_dir).is_none() {
        // Why it cannot be was told at the start.
        let _ = try_keep(&path);
    }
}

fn try_keep(path: &Path) -> io::Result<()> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let mut size = RESERVE_BYTES;
    let kept = loop {
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            Err(rustix::io::Errno::NOSPC) if size > RESERVE_BYTES_MIN => size /= 2,
            done => break done,
        }
        // What an attempt took before it failed may stay with the file.
        ftruncate(&file, 0)?;
    };
    if kept.is_err() {
        fs::remove_file(path)?;
    }
    Ok(kept?)
}

/// A failure of a start that wrote there, with what may be behind it.
pub fn explained(data_dir: &Path, failure: Failure) -> Failure {
    match low(data_dir) {
        Some(low) if failure.code == Code::Failed && failure.hint.is_none() => {
            failure.hint(format!("make room for {}: {low}", data_dir.display()))
        }
        Some(_) | None => failure,
    }
}

fn left(found: &StatVfs) -> u64 {
    found.f_bavail * found.f_frsize
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
    fn the_reserve_is_for_starts_without_room() {
        let folder = tempfile::tempdir().expect("a folder");
        keep_reserve(folder.path());
        let reserve = folder.path().join(RESERVE_FILE);
        assert_eq!(fs::metadata(&reserve).expect("it is kept").len(), RESERVE_BYTES);
        assert!(!take_reserve(folder.path()).expect("it is asked"), "there is room beside it");
        assert!(reserve.exists());
        fs::remove_file(&reserve).expect("it is there");
        restore_reserve(folder.path());
        assert_eq!(reserve.exists(), low(folder.path()).is_none());
    }

    #[test]
    fn a_folder_that_is_not_there_tells_nothing() {
        assert_eq!(low(Path::new("/no/such/folder")), None);
    }
}
