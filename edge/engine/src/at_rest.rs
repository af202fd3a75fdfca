//! Encryption at rest of a device: the stack of block devices below it, as the kernel shows it in sysfs.
//!
//! [`cluster::Encryption`] decides what the stack means. Blocking calls, made while devices are opened. sysfs is a
//! parameter, so that tests can build a stack. Must never read what a device holds.

use crate::limits::DEVICE_STACK_MAX;
use cluster::Encryption;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The encryption of an open device. Of a regular file it is that of the block device below its file system.
pub(crate) fn encryption(file: &File) -> Encryption {
    let Ok(metadata) = file.metadata() else { return Encryption::Unknown };
    let is_block = metadata.file_type().is_block_device();
    let number = if is_block { metadata.rdev() } else { metadata.dev() };
    encryption_of(Path::new("/sys"), libc::major(number), libc::minor(number))
}

/// The encryption of the block device with this number. File systems without one block device of their own (tmpfs, overlay,
/// network, btrfs, ZFS) have a number that sysfs does not know, and are unknown.
///
/// A path downwards ends where a device encrypts, or at a device without any below. The former need not be followed: whatever
/// is below stores ciphertext.
fn encryption_of(sysfs: &Path, major: u32, minor: u32) -> Encryption {
    let Ok(top) = sysfs.join(format!("dev/block/{major}:{minor}")).canonicalize() else {
        return Encryption::Unknown;
    };
    let mut ends = Vec::new();
    let mut seen = BTreeSet::from([top.clone()]);
    let mut next = vec![top];
    while let Some(device) = next.pop() {
        let below = below(&device, &mut ends);
        next.extend(below.into_iter().filter(|one| seen.insert(one.clone())));
        if seen.len() > DEVICE_STACK_MAX {
            return Encryption::Unknown;
        }
    }
    Encryption::of_paths(&ends)
}

/// The devices that a device stands on. Where a path ends, how goes to `ends`.
fn below(device: &Path, ends: &mut Vec<Encryption>) -> Vec<PathBuf> {
    let uuid = std::fs::read_to_string(device.join("dm/uuid")).unwrap_or_default();
    if let Some(encryption) = Encryption::of_mapping(uuid.trim()) {
        ends.push(encryption);
        return Vec::new();
    }
    // The folder of a partition is in that of its disk.
    if device.join("partition").exists()
        && let Some(disk) = device.parent()
    {
        return vec![disk.to_owned()];
    }
    let entries: Vec<_> = std::fs::read_dir(device.join("slaves")).into_iter().flatten().flatten().collect();
    if entries.is_empty() {
        // With `device`: hardware, or a disk of a hypervisor. Without it: a loop device, a network block device or a volume of
        // ZFS, whose data stands where sysfs does not tell.
        let is_hardware = device.join("device").exists();
        ends.push(if is_hardware { Encryption::None } else { Encryption::Unknown });
    }
    let mut found = Vec::new();
    for entry in entries {
        match entry.path().canonicalize() {
            Ok(path) => found.push(path),
            // It went away in this moment.
            Err(_) => ends.push(Encryption::Unknown),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs: devices in `devices`, and links to them by number in `dev/block`.
    struct Sysfs {
        folder: tempfile::TempDir,
        count: u32,
    }

    impl Sysfs {
        fn new() -> Sysfs {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::create_dir_all(folder.path().join("dev/block")).expect("made");
            Sysfs { folder, count: 0 }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join("devices").join(name)
        }

        /// A device with the next number: 253:0, 253:1, …
        fn add(&mut self, name: &str) {
            std::fs::create_dir_all(self.path(name).join("slaves")).expect("made");
            let link = self.folder.path().join(format!("dev/block/253:{}", self.count));
            symlink(self.path(name), link).expect("linked");
            self.count += 1;
        }

        fn disk(&mut self, name: &str) {
            self.add(name);
            std::fs::create_dir_all(self.path(name).join("device")).expect("made");
        }

        fn partition(&mut self, name: &str) {
            self.add(name);
            std::fs::write(self.path(name).join("partition"), "1\n").expect("written");
        }

        fn stands_on(&mut self, name: &str, below: &str) {
            let link = self.path(name).join("slaves").join(below.replace('/', "!"));
            symlink(self.path(below), link).expect("linked");
        }

        /// A device-mapper device, or without a UUID one of md.
        fn mapped(&mut self, name: &str, uuid: &str, below: &[&str]) {
            self.add(name);
            if !uuid.is_empty() {
                std::fs::create_dir_all(self.path(name).join("dm")).expect("made");
                std::fs::write(self.path(name).join("dm/uuid"), format!("{uuid}\n")).expect("written");
            }
            below.iter().for_each(|below| self.stands_on(name, below));
        }

        /// The encryption of the device that was added last.
        fn last(&self) -> Encryption {
            encryption_of(self.folder.path(), 253, self.count - 1)
        }
    }

    const LUKS2: &str = "CRYPT-LUKS2-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1";
    const LUKS1: &str = "CRYPT-LUKS1-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store2";
    const LVM: &str = "LVM-Kx0d1cE8AqwvW0vAbC2ZNJGmAbUCxaJc";

    #[test]
    fn a_whole_disk_and_its_partitions_are_not_encrypted() {
        let mut sysfs = Sysfs::new();
        sysfs.disk("sda");
        assert_eq!(sysfs.last(), Encryption::None);
        sysfs.partition("sda/sda1");
        assert_eq!(sysfs.last(), Encryption::None);
    }

    #[test]
    fn a_mapping_of_cryptsetup_is_encrypted_whatever_is_below() {
        for (uuid, expected) in [
            (LUKS2, Encryption::Luks2),
            (LUKS1, Encryption::Luks1),
            ("CRYPT-PLAIN-store", Encryption::PlainDmCrypt),
            ("CRYPT-TCRYPT-store", Encryption::Other),
            ("CRYPT-INTEGRITY-store", Encryption::None),
        ] {
            let mut sysfs = Sysfs::new();
            sysfs.disk("sda");
            sysfs.mapped("dm-0", uuid, &["sda"]);
            assert_eq!(sysfs.last(), expected, "{uuid}");
        }
    }

    /// kpartx makes partitions of a mapping as mappings of their own; the kernel makes those of md as partitions.
    #[test]
    fn a_partition_is_encrypted_as_the_device_that_it_is_of() {
        let mut sysfs = Sysfs::new();
        sysfs.disk("sda");
        sysfs.mapped("dm-0", LUKS2, &["sda"]);
        sysfs.mapped("dm-1", &format!("part1-{LUKS2}"), &["dm-0"]);
        assert_eq!(sysfs.last(), Encryption::Luks2);
        sysfs.mapped("md0", "", &["dm-1"]);
        sysfs.partition("md0/md0p1");
        assert_eq!(sysfs.last(), Encryption::Luks2);
    }

    #[test]
    fn lvm_on_crypt_and_crypt_on_lvm_are_encrypted() {
        let mut sysfs = Sysfs::new();
        sysfs.disk("sda");
        sysfs.partition("sda/sda1");
        sysfs.mapped("dm-0", LUKS2, &["sda/sda1"]);
        sysfs.mapped("dm-1", LVM, &["dm-0"]);
        assert_eq!(sysfs.last(), Encryption::Luks2);
        sysfs.mapped("dm-2", LVM, &["sda"]);
        assert_eq!(sysfs.last(), Encryption::None);
        sysfs.mapped("dm-3", LUKS1, &["dm-2"]);
        assert_eq!(sysfs.last(), Encryption::Luks1);
    }

    #[test]
    fn each_leg_counts() {
        let mut sysfs = Sysfs::new();
        for disk in ["sda", "sdb", "sdc"] {
            sysfs.disk(disk);
        }
        sysfs.mapped("dm-0", LUKS2, &["sda"]);
        sysfs.mapped("dm-1", LUKS2, &["sdb"]);
        sysfs.mapped("md0", "", &["dm-0", "dm-1"]);
        assert_eq!(sysfs.last(), Encryption::Luks2, "both legs of the RAID are");
        sysfs.mapped("md1", "", &["dm-0", "sdc"]);
        assert_eq!(sysfs.last(), Encryption::Partly, "one leg is not encrypted");
        sysfs.mapped("dm-2", LVM, &["md0", "md1"]);
        assert_eq!(sysfs.last(), Encryption::Partly, "a volume over both");
        sysfs.mapped("dm-3", LUKS1, &["sdc"]);
        sysfs.mapped("dm-4", LVM, &["dm-0", "dm-3"]);
        assert_eq!(sysfs.last(), Encryption::Other, "two kinds");
    }

    /// The kernel makes no such stacks; what sysfs says is input from outside all the same.
    #[test]
    fn a_circle_and_a_stack_without_end_are_survived() {
        let mut sysfs = Sysfs::new();
        sysfs.disk("sda");
        sysfs.mapped("dm-0", LVM, &[]);
        sysfs.mapped("dm-1", LVM, &["dm-0"]);
        sysfs.stands_on("dm-0", "dm-1");
        assert_eq!(sysfs.last(), Encryption::Unknown, "nothing at its bottom");
        sysfs.stands_on("dm-0", "sda");
        assert_eq!(sysfs.last(), Encryption::None);
        let mut sysfs = Sysfs::new();
        sysfs.disk("sda");
        sysfs.mapped("dm-0", LUKS2, &["sda"]);
        for above in 1..=DEVICE_STACK_MAX {
            assert_eq!(sysfs.last(), Encryption::Luks2, "{above}");
            sysfs.mapped(&format!("dm-{above}"), LVM, &[&format!("dm-{}", above - 1)]);
        }
        assert_eq!(sysfs.last(), Encryption::Unknown, "too many devices");
    }

    #[test]
    fn what_sysfs_does_not_tell_is_unknown() {
        let mut sysfs = Sysfs::new();
        assert_eq!(encryption_of(sysfs.folder.path(), 253, 0), Encryption::Unknown, "no such device");
        assert_eq!(encryption_of(&sysfs.path("nowhere"), 8, 0), Encryption::Unknown, "no sysfs");
        sysfs.add("loop0");
        assert_eq!(sysfs.last(), Encryption::Unknown, "a device without hardware");
        sysfs.disk("sda");
        sysfs.mapped("dm-0", LVM, &["sda", "gone"]);
        assert_eq!(sysfs.last(), Encryption::None, "a leg is missing, and the other one is not encrypted");
        sysfs.mapped("dm-1", LUKS2, &["gone"]);
        assert_eq!(sysfs.last(), Encryption::Luks2, "what is below does not matter");
        sysfs.mapped("dm-2", LVM, &["dm-1", "gone"]);
        assert_eq!(sysfs.last(), Encryption::Unknown, "the missing leg may be unencrypted");
    }

    #[test]
    fn a_file_is_encrypted_as_what_its_file_system_stands_on() {
        let file = tempfile::tempfile().expect("a file");
        let number = file.metadata().expect("its facts").dev();
        let below = encryption_of(Path::new("/sys"), libc::major(number), libc::minor(number));
        assert_eq!(encryption(&file), below);
    }
}
