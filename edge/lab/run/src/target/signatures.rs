//! What a target holds already, by the signatures at its start and its end: what may not be overwritten unasked.
//!
//! `wipefs` (util-linux, essential on Debian) knows the signatures of file systems, partition tables, LVM, LUKS, md, ZFS, Ceph and
//! others, for it stands on libblkid. It reads files and devices itself; of what is behind a network it gets both ends in memory,
//! at their places in a file of the target's size. Images of other programs and our own devices are told by their first bytes.

use crate::nbd::{self, Address};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Bytes at each end that are looked at behind a network: the last signatures that libblkid knows stand at 2 MiB (VMFS), and within
/// the last 512 KiB (ZFS).
const END_BYTES: u64 = 4 << 20;

/// Beginnings of things that libblkid does not know.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"DRYSTONE", "a device of a Drystone host"),
    (b"QFI\xfb", "a QCOW2 image"),
    (b"KDMV", "a VMDK image"),
    (b"# Disk DescriptorFile", "a VMDK descriptor"),
    (b"vhdxfile", "a VHDX image"),
    (b"conectix", "a VHD image"),
    (b"<<< ", "a VDI image"),
    (b"RBD image", "an RBD image header"),
];

/// What a target holds, each as a noun phrase; empty if nothing is known by its signature.
///
/// # Errors
/// When it cannot be looked at: nobody can say then that nothing is lost.
pub fn of_path(path: &Path) -> io::Result<Vec<String>> {
    let mut start = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut start)?;
    let mut found = of_beginning(&start);
    found.extend(of_wipefs(path)?);
    Ok(found)
}

/// The same of an export of `size` bytes.
///
/// # Errors
/// When it cannot be read, or `wipefs` cannot be run.
pub fn of_export(address: &Address, size: u64) -> io::Result<Vec<String>> {
    let first = size.min(END_BYTES);
    // Servers may ask for whole blocks.
    let last = size.saturating_sub(END_BYTES).next_multiple_of(4096).clamp(first, size.max(first));
    let parts = nbd::read(address, &[(0, first), (last, size - last)])
        .map_err(|error| io::Error::other(error.to_string()))?;
    let mut found = of_beginning(&parts[0]);
    let copy = memory_file()?;
    copy.set_len(size)?;
    copy.write_all_at(&parts[0], 0)?;
    copy.write_all_at(&parts[1], last)?;
    found.extend(of_wipefs(Path::new(&format!("/proc/{}/fd/{}", std::process::id(), copy.as_raw_fd())))?);
    Ok(found)
}

fn of_beginning(start: &[u8]) -> Vec<String> {
    let known = BEGINNINGS.iter().filter(|(beginning, _)| start.starts_with(beginning));
    known.map(|(_, name)| (*name).to_owned()).collect()
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name ends in a zero; the number that is returned is nobody else's.
    unsafe {
        let fd = libc::memfd_create(c"signatures".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

fn of_wipefs(path: &Path) -> io::Result<Vec<String>> {
    // Where root's programs stand, which are not in everybody's PATH.
    let paths = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("wipefs")
        .env("PATH", paths)
        .env("LC_ALL", "C")
        .args(["--no-act", "--json", "--"])
        .arg(path)
        .output()
        .map_err(|error| io::Error::other(format!("run wipefs (package util-linux): {error}")))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("wipefs: {}", words.trim())));
    }
    named(&output.stdout)
}

/// What a list of `wipefs --json` tells, each kind once: a partition table has a copy at the end, ZFS has four.
fn named(list: &[u8]) -> io::Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct List {
        signatures: Vec<Signature>,
    }
    #[derive(serde::Deserialize)]
    struct Signature {
        r#type: String,
        label: Option<String>,
    }
    if list.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let list: List = serde_json::from_slice(list)
        .map_err(|error| io::Error::other(format!("parse the output of wipefs: {error}")))?;
    let mut names: Vec<String> = Vec::new();
    for signature in list.signatures {
        let label = signature.label.filter(|label| !label.is_empty());
        let name = format!(
            "{}{}",
            phrase(&signature.r#type),
            label.map_or(String::new(), |label| format!(" \"{label}\""))
        );
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A signature's type as people call it.
fn phrase(kind: &str) -> String {
    match kind {
        "gpt" | "dos" | "PMBR" | "sun" | "mac" | "bsd" => format!("a {kind} partition table"),
        "LVM2_member" | "LVM1_member" => "an LVM physical volume".to_owned(),
        "crypto_LUKS" => "a LUKS volume".to_owned(),
        "linux_raid_member" => "a member of an md array".to_owned(),
        "zfs_member" => "a member of a ZFS pool".to_owned(),
        "ceph_bluestore" => "a Ceph OSD".to_owned(),
        "swap" => "swap space".to_owned(),
        other => format!("{other} data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these bytes at this place.
    fn file_with(size: u64, parts: &[(u64, &[u8])]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(size).expect("room");
        for (at, bytes) in parts {
            file.as_file().write_all_at(bytes, *at).expect("room");
        }
        file
    }

    #[test]
    fn what_a_file_holds_is_told_by_its_signatures() {
        let held = |size, parts: &[(u64, &[u8])]| of_path(file_with(size, parts).path()).expect("a list");
        assert_eq!(held(1 << 20, &[]), Vec::<String>::new());
        assert_eq!(held(1 << 20, &[(0, &[7; 4096])]), Vec::<String>::new());
        assert_eq!(held(1 << 20, &[(0, b"DRYSTONE")]), ["a device of a Drystone host"]);
        assert_eq!(held(1 << 20, &[(0, b"QFI\xfb\0\0\0\x03")]), ["a QCOW2 image"]);
        assert_eq!(held(1 << 20, &[(0, b"LUKS\xba\xbe\0\x01")]), ["a LUKS volume"]);
        assert_eq!(
            held(1 << 20, &[(1024, &[1, 0, 0, 0, 255, 0, 0, 0]), (4086, b"SWAPSPACE2")]),
            ["swap space"]
        );
        assert_eq!(
            held(1 << 20, &[(0, b"bluestore block device\n")]),
            ["a Ceph OSD"],
            "by the first bytes of an OSD"
        );
        assert_eq!(held(0, &[]), Vec::<String>::new(), "an empty file");
    }

    #[test]
    fn each_kind_is_named_once() {
        let list = br#"{"signatures": [
            {"device":"x","offset":"0x200","type":"gpt","uuid":null,"label":null},
            {"device":"x","offset":"0xfffe00","type":"gpt","uuid":null,"label":null},
            {"device":"x","offset":"0x1fe","type":"PMBR","uuid":null,"label":null},
            {"device":"x","offset":"0x438","type":"ext4","uuid":"1","label":"root"}]}"#;
        assert_eq!(
            named(list).expect("a list"),
            ["a gpt partition table", "a PMBR partition table", "ext4 data \"root\""]
        );
        assert!(named(b"no list").is_err(), "what is not understood is not taken for nothing");
    }
}
