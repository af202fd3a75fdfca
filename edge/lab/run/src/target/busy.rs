//! Who uses a file or a block device already: what may not be overwritten by mistake.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A use of a target by somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use(pub String);

impl std::fmt::Display for Use {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Everybody who uses the file or block device at `path`, as far as the kernel tells; a part of a device counts as the device.
pub fn uses_of(path: &Path) -> Vec<Use> {
    let Ok(data) = fs::metadata(path) else { return Vec::new() };
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut uses = Vec::new();
    if data.file_type().is_block_device() {
        let (major, minor) = (libc::major(data.rdev()), libc::minor(data.rdev()));
        let mut numbers = vec![format!("{major}:{minor}")];
        numbers.extend(partitions(major, minor));
        uses.extend(mounts(&numbers));
        uses.extend(holders(&numbers));
        uses.extend(swaps(&real));
        if uses.is_empty() && is_held(path) {
            uses.push(Use("the kernel or another program holds it exclusively".to_owned()));
        }
    } else {
        uses.extend(loops(&real));
        uses.extend(swaps(&real));
        uses.extend(locks(path));
    }
    uses
}

fn partitions(major: u32, minor: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/sys/dev/block/{major}:{minor}")) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.path().join("partition").exists())
        .filter_map(|entry| fs::read_to_string(entry.path().join("dev")).ok())
        .map(|number| number.trim().to_owned())
        .collect()
}

fn mounts(numbers: &[String]) -> Vec<Use> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounted(&table, numbers).into_iter().map(|place| Use(format!("it is mounted at {place}"))).collect()
}

/// Where devices of these numbers are mounted, by a table of `/proc/self/mountinfo`: `36 35 98:0 /root /place …`.
fn mounted(table: &str, numbers: &[String]) -> Vec<String> {
    table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(2);
            let number = fields.next()?;
            let place = fields.nth(1)?;
            numbers.iter().any(|mine| mine == number).then(|| place.to_owned())
        })
        .collect()
}

fn holders(numbers: &[String]) -> Vec<Use> {
    numbers
        .iter()
        .filter_map(|number| fs::read_dir(format!("/sys/dev/block/{number}/holders")).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| Use(format!("{} stands on it", entry.file_name().to_string_lossy())))
        .collect()
}

fn swaps(path: &Path) -> Option<Use> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let name = path.to_string_lossy();
    table
        .lines()
        .any(|line| line.split_whitespace().next() == Some(&name))
        .then(|| Use("the machine swaps to it".to_owned()))
}

fn is_held(path: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path);
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

fn loops(path: &Path) -> Vec<Use> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
            !backing.is_empty() && backing.trim_end_matches('\n') == path
        })
        .map(|entry| Use(format!("/dev/{} is a loop device over it", entry.file_name().to_string_lossy())))
        .collect()
}

/// Locks of other programs: of the whole file (`flock`), or of parts of it, as QEMU takes them.
fn locks(path: &Path) -> Option<Use> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the call reads and fills the structure, which stays in place.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if asked == 0 && lock.l_type != libc::F_UNLCK as i16 {
        return Some(Use("another program holds a lock on it".to_owned()));
    }
    // SAFETY: the call takes numbers only; the lock ends with the file.
    let taken = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    (taken != 0).then(|| Use("another program holds a lock on it".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_device_and_of_its_parts_are_found() {
        let table = "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n36 22 7:0 /sub /mnt/a\\040b rw - ext4 /dev/loop0 rw\n";
        assert_eq!(mounted(table, &["7:0".to_owned()]), ["/mnt/a\\040b"]);
        assert_eq!(mounted(table, &["254:0".to_owned(), "7:0".to_owned()]), ["/", "/mnt/a\\040b"]);
        assert!(mounted(table, &["7:1".to_owned()]).is_empty());
    }

    #[test]
    fn a_file_that_another_has_locked_is_in_use() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        assert_eq!(uses_of(file.path()), Vec::new());
        // SAFETY: the call takes numbers only.
        unsafe { libc::flock(file.as_file().as_raw_fd(), libc::LOCK_EX) };
        assert_eq!(uses_of(file.path()), [Use("another program holds a lock on it".to_owned())]);
    }
}
