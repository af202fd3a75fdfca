//! Bits that flip at rest on one host are mended from another one, whether the live disk sees them or only a snapshot, and though nobody reads them.

use super::cluster::Cluster;
use super::tools::{run, said, text, wait_for};
use base::units::{BLOCK_SIZE, MIB};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The block that only the snapshot sees, and the one that the live disk sees, too.
const OF_SNAPSHOT: u64 = 20;
const OF_BOTH: u64 = 300;
/// Blocks that are written before the snapshot.
const BLOCKS: u64 = 512;

/// A block that can be found again on a device: no other has its content.
fn stamped(number: u64) -> Vec<u8> {
    let words = (0..BLOCK_SIZE / 8).map(|word| (0x3e_d5_7a << 40 | number << 16 | word).to_le_bytes());
    words.flatten().collect()
}

/// The ranges of a file that are no holes.
fn data_of(file: &File) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        // SAFETY: the descriptor is open as long as the file is borrowed.
        let seek = |from: i64, whence| unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
        let start = seek(at, libc::SEEK_DATA);
        if start < 0 {
            return found; // Nothing but a hole is left.
        }
        at = seek(start, libc::SEEK_HOLE);
        found.push((start as u64, at as u64));
    }
}

/// Where on a device a block stands.
fn places_of(device: &Path, block: &[u8]) -> Vec<u64> {
    let file = File::open(device).expect("the device is there");
    let mut places = Vec::new();
    for (start, end) in data_of(&file) {
        let mut content = vec![0; (end - start) as usize];
        file.read_exact_at(&mut content, start).expect("the device is readable");
        let blocks = content.chunks(BLOCK_SIZE as usize).enumerate();
        places.extend(
            blocks.filter(|(_, found)| *found == block).map(|(index, _)| start + index as u64 * BLOCK_SIZE),
        );
    }
    places
}

fn flip(device: &Path, block: u64) {
    let places = places_of(device, &stamped(block));
    assert!(!places.is_empty(), "block {block} stands on {}", device.display());
    let file = File::options().read(true).write(true).open(device).expect("the device is there");
    for place in places {
        let mut byte = [0];
        file.read_exact_at(&mut byte, place + 99).expect("the device is long enough");
        file.write_all_at(&[byte[0] ^ 0x10], place + 99).expect("the device is writable");
    }
    file.sync_all().expect("it is stable");
}

fn read_all(cluster: &Cluster, host: &str, export: &str) -> Vec<u8> {
    let target = cluster.path("a").join("copy.raw");
    let _ = std::fs::remove_file(&target);
    run("nbdcopy", &[&cluster.uri(host, export), text(&target)]);
    std::fs::read(&target).expect("it was copied")
}

#[test]
fn what_rots_on_one_host_is_mended_from_another_for_snapshots_and_disk() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "32MiB");
    let (rotten, whole) = (&holders[1], &holders[0]);
    let stamps: PathBuf = cluster.path("a").join("stamps.raw");
    std::fs::write(&stamps, (0..BLOCKS).flat_map(stamped).collect::<Vec<u8>>()).expect("room for it");
    let uri = cluster.uri("a", "web");
    run("qemu-io", &["-f", "raw", "-c", &format!("write -s {} 0 2M", text(&stamps)), "-c", "flush", &uri]);
    wait_for("a snapshot is taken", 60, || {
        cluster.cli("a", &["disk", "snapshot", "create", "web", "one"]).status.success().then_some(())
    });
    run("qemu-io", &["-f", "raw", "-c", "write -P 6 0 1M", "-c", "flush", &uri]);
    // What ends orderly has all at rest.
    cluster.order("stop", rotten);
    let device = cluster.path(rotten).join("capacity.img");
    for block in [OF_SNAPSHOT, OF_BOTH] {
        flip(&device, block);
        assert!(places_of(&device, &stamped(block)).is_empty());
    }
    cluster.order("start", rotten);
    cluster.wait_until_whole(whole, "web");
    wait_for("scrubbing has found it, and it is mended", 180, || {
        let is_there = |block: u64| !places_of(&device, &stamped(block)).is_empty();
        (is_there(OF_SNAPSHOT) && is_there(OF_BOTH)).then_some(())
    });
    wait_for("events tell of it", 30, || {
        let told = said(&cluster.cli("a", &["events", "--kind", "copy.repaired"]));
        (told.matches("copy.repaired").count() >= 2).then_some(())
    });
    cluster.order("kill", whole);
    let reader = ["a", "b", "c"].into_iter().find(|host| host != whole).expect("there are three");
    let view = read_all(&cluster, reader, "web@one");
    assert!(view[..(BLOCKS * BLOCK_SIZE) as usize] == std::fs::read(&stamps).expect("it is there")[..]);
    let live = read_all(&cluster, reader, "web");
    assert!(live[..MIB as usize].iter().all(|byte| *byte == 6));
    assert!(live[MIB as usize..2 * MIB as usize] == view[MIB as usize..2 * MIB as usize]);
}
