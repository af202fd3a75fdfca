//! What a run must not change: files that are only read, targets that hold data.

use crate::fixtures::*;
use std::path::Path;
use std::process::Command;

const READS: &str = "[r]\nrw=randread\nbs=4k\nruntime=1\ntime_based\nioengine=psync\n";
const WRITES: &str = "[w]\nrw=randwrite\nbs=4k\nsize=64k\nnumber_ios=4\nioengine=psync\n";

fn made_by(program: &str, arguments: &[&str], file: &Path) {
    let status = Command::new(program).args(arguments).arg(file).output().expect("the program is installed");
    assert!(status.status.success(), "{program}: {status:?}");
}

/// A job of 8 MiB on a file of 1 MiB made the file larger and filled it with random data, although it only read.
#[test]
fn a_job_that_only_reads_leaves_a_file_as_it_is_whatever_size_it_asks_for() {
    let folder = Folder::new();
    let file = folder.file("small.img", 1 << 20);
    let before = std::fs::read(&file).expect("the file");
    let target = text_of(&file);
    let check = |words: &[&str]| {
        let error = lab(words).expect_err("the file is too small");
        assert!(error.text.contains("8 MiB") && error.text.contains("1 MiB"), "both sizes: {error}");
        assert_eq!(std::fs::read(&file).expect("the file"), before);
    };
    check(&["run", &folder.job("r.fio", &format!("{READS}size=8m\n")), "-t", &target]);
    check(&["run", &folder.job("s.fio", READS), "-t", &target, "--size", "8MiB"]);
    let verifies = format!("{READS}size=8m\nverify=crc32c\n");
    check(&["run", &folder.job("v.fio", &verifies), "-t", &target]);
    let only = "[o]\nrw=write\nbs=4k\nsize=8m\nverify=crc32c\nverify_only=1\nioengine=psync\n";
    check(&["run", &folder.job("o.fio", only), "-t", &target]);
    lab(&["run", &folder.job("fits.fio", &format!("{READS}size=1m\n")), "-t", &target]).expect("it fits");
    assert_eq!(std::fs::read(&file).expect("the file"), before);
}

/// A file system that nobody has mounted was overwritten without a question.
#[test]
fn data_that_its_signature_tells_is_overwritten_only_if_the_target_is_named() {
    let folder = Folder::new();
    let job = folder.job("w.fio", WRITES);
    let check = |name: &str, expected: &str| {
        let target = text_of(&folder.path(name));
        let before = std::fs::read(&target).expect("the target");
        let error = lab(&["run", &job, "-t", &target]).expect_err(expected);
        assert!(error.text.contains(expected), "{error}");
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains(&format!("--destroy-data {target}")), "{hint}");
        assert!(lab(&["run", &job, "-t", &target, "--destroy-data", "another"]).is_err());
        assert_eq!(std::fs::read(&target).expect("the target"), before, "nothing was changed");
        lab(&["run", &job, "-t", &target, "--destroy-data", &target]).expect("its name was given");
        assert_ne!(std::fs::read(&target).expect("the target"), before);
    };
    std::fs::File::create(folder.path("ext4")).and_then(|file| file.set_len(8 << 20)).expect("a file");
    made_by("mkfs.ext4", &["-q", "-F", "-L", "accounts"], &folder.path("ext4"));
    check("ext4", "holds ext4 data \"accounts\", and the job would overwrite it");
    made_by("qemu-img", &["create", "-q", "-f", "qcow2", "-o", "size=8M"], &folder.path("qcow2"));
    check("qcow2", "holds a QCOW2 image");
    let mut ours = vec![0; 1 << 20];
    ours[..8].copy_from_slice(b"DRYSTONE");
    std::fs::write(folder.path("ours"), ours).expect("a file");
    check("ours", "holds a device of a Drystone host");
    lab(&["run", &job, "-t", &text_of(&folder.file("random.img", 1 << 20))]).expect("nothing is known there");
}

#[test]
fn data_behind_nbd_is_found_at_both_ends_of_the_export() {
    let folder = Folder::new();
    let job = folder.job("w.fio", WRITES);
    let file = folder.path("disk.img");
    std::fs::File::create(&file).and_then(|file| file.set_len(64 << 20)).expect("a file");
    made_by("mkfs.ext4", &["-q", "-F"], &file);
    let server = nbdkit(&folder, &["file", &text_of(&file)]);
    let error = lab(&["run", &job, "-t", &server.address]).expect_err("a file system");
    assert!(error.text.contains("holds ext4 data"), "{error}");
    drop(server);
    // md of version 1.0 keeps what it is within the last 12 KiB.
    std::fs::remove_file(folder.path("nbdkit.sock")).expect("the socket of the server that ended");
    std::fs::write(&file, with_md_at_the_end(64 << 20)).expect("a file");
    let server = nbdkit(&folder, &["file", &text_of(&file)]);
    let error = lab(&["run", &job, "-t", &server.address]).expect_err("a member of an array");
    assert!(error.text.contains("holds a member of an md array"), "{error}");
    let read = lab(&["run", &folder.job("r.fio", &format!("{READS}size=1m\n")), "-t", &server.address]);
    read.expect("reading harms nobody");
}

/// A superblock of md, version 1.0, at its place of a device of this size (`md_p.h` of the kernel).
fn with_md_at_the_end(size: u64) -> Vec<u8> {
    let sector = ((size / 512) - 16) & !7;
    let mut superblock = [0u8; 256];
    let mut set = |at: usize, bytes: &[u8]| superblock[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, &0xa92b_4efcu32.to_le_bytes());
    set(4, &1u32.to_le_bytes());
    set(144, &sector.to_le_bytes());
    let words = superblock.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let sum: u64 = words.map(u64::from).sum();
    let checksum = (sum as u32).wrapping_add((sum >> 32) as u32);
    superblock[216..220].copy_from_slice(&checksum.to_le_bytes());
    let mut bytes = vec![0; size as usize];
    bytes[sector as usize * 512..sector as usize * 512 + 256].copy_from_slice(&superblock);
    bytes
}

/// `nothing is written` stood beside a file that the run was about to create, and after it had done so.
#[test]
fn a_plan_tells_what_it_creates_and_creates_nothing() {
    let folder = Folder::new();
    let target = folder.path("new.img");
    let told = |job: &str, target: &str| lab(&["plan", job, "-t", target]).expect("a plan");
    let sized = folder.job("s.fio", &format!("{READS}size=8m\n"));
    let text = told(&sized, &text_of(&target));
    assert!(text.contains("the file is created and filled with random data; 8 MiB are read"), "{text}");
    assert!(!text.contains("nothing is written") && !target.exists(), "{text}");
    let text = told(&folder.job("n.fio", READS), "/dev/there-is-none");
    assert!(!text.contains("created"), "nobody says how large it would be: {text}");
    let small = text_of(&folder.file("small.img", 1 << 20));
    let writes = folder.job("w.fio", &WRITES.replace("size=64k", "size=4m"));
    assert!(told(&writes, &small).contains("the file is extended from 1 MiB"));
    assert!(told(&writes, &small).contains("4 MiB will be overwritten"));
}
