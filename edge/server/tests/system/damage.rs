//! Bits that flip at rest are reported and never served, and a device that fails takes nothing else with it.

use super::devices::LoopDevice;
use super::host::{LOG_MIB, Shape, Site};
use super::nbd::errno::EIO;
use super::tools::{text, wait_for};
use base::Random;
use base::units::{BLOCK_SIZE, MIB};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Blocks that are written: an extent of them.
const BLOCKS: u64 = MIB / BLOCK_SIZE;
/// The block whose copy at rest is damaged.
const VICTIM: u64 = 20;

/// A block that can be found again on a device: no other has its content.
fn stamped(number: u64) -> Vec<u8> {
    let words = (0..BLOCK_SIZE / 8).map(|word| (0xd5_7a_3e << 40 | number << 16 | word).to_le_bytes());
    words.flatten().collect()
}

/// Where on a device a block stands at rest.
fn find(device: &Path, block: &[u8]) -> Vec<u64> {
    let content = std::fs::read(device).expect("the device is readable");
    let places = content.chunks(BLOCK_SIZE as usize).enumerate().filter(|(_, found)| *found == block);
    places.map(|(index, _)| index as u64 * BLOCK_SIZE).collect()
}

fn flip(device: &Path, offset: u64) {
    let file = File::options().read(true).write(true).open(device).expect("the device is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("the device is long enough");
    file.write_all_at(&[byte[0] ^ 0x10], offset).expect("the device is writable");
    file.sync_all().expect("it is stable");
}

/// How the stamped blocks come to rest.
#[derive(Clone, Copy)]
enum Way {
    /// By a write that fills an extent, which bypasses the log.
    Directly,
    /// By the log, which other writes then push on until it has gone round.
    ByTheLog,
}

/// A datastore whose stamped blocks all stand at rest and nowhere else; stopped.
fn site_at_rest(shape: &Shape, way: Way, policy: &str) -> Site {
    let mut site = Site::new(shape);
    site.add_config("[scrub]\npace = 0\n");
    let server = site.start();
    site.ask(&["disk", "create", "web", "32MiB", "--policy", policy]);
    let mut client = site.attach("web");
    match way {
        Way::Directly => {
            let all: Vec<u8> = (0..BLOCKS).flat_map(stamped).collect();
            client.write(0, &all).expect("it is written");
        }
        Way::ByTheLog => {
            for number in 0..BLOCKS {
                client.write(number * BLOCK_SIZE, &stamped(number)).expect("it is written");
            }
            let mut random = Random::new(1);
            let mut piece = vec![0; 64 << 10];
            for _ in 0..3 * LOG_MIB * MIB / piece.len() as u64 {
                random.fill(&mut piece);
                let offset = random.range(1..32) * MIB + random.below(15) * piece.len() as u64;
                client.write(offset, &piece).expect("it is written");
            }
        }
    }
    drop(client);
    server.stop();
    site
}

/// Where the victim stands, which must be in one place of one device.
fn place_of_victim(site: &Site, device: &str) -> u64 {
    let places = find(&site.path(device), &stamped(VICTIM));
    assert_eq!(places.len(), 1, "the block stands on {device} at {places:?}");
    places[0]
}

fn damaged_blocks(site: &Site) -> u64 {
    let devices: Value = site.json(&["device", "list"]);
    let counts = devices.as_array().expect("a list").iter();
    counts.map(|device| device["damaged_blocks"].as_u64().expect("a number")).sum()
}

/// Every block but the victim is as it was written.
fn check_neighbours(site: &Site) {
    let mut client = site.attach("web");
    for number in (0..BLOCKS).filter(|number| *number != VICTIM) {
        let found = client.read(number * BLOCK_SIZE, BLOCK_SIZE as u32);
        assert!(found.expect("it is readable") == stamped(number), "block {number} differs");
    }
}

fn a_flipped_bit_is_never_served(shape: &Shape, way: Way, device: &str) {
    let site = site_at_rest(shape, way, "single");
    let path = site.path(device);
    flip(&path, place_of_victim(&site, device) + 1234);
    let server = site.start();
    assert_eq!(damaged_blocks(&site), 0, "nothing was read yet");
    let mut client = site.attach("web");
    for _ in 0..2 {
        assert_eq!(client.read(VICTIM * BLOCK_SIZE, BLOCK_SIZE as u32), Err(EIO));
        assert_eq!(client.read(VICTIM * BLOCK_SIZE + 512, 512), Err(EIO), "nor is a part of it");
    }
    assert_eq!(client.read(0, (BLOCKS * BLOCK_SIZE) as u32), Err(EIO), "nor is it among others");
    check_neighbours(&site);
    assert!(damaged_blocks(&site) > 0, "the damage is told");
    let metrics = site.metrics();
    let told = metrics
        .lines()
        .find(|line| line.starts_with("drystone_device_damaged_blocks_total") && line.contains(text(&path)));
    assert!(told.is_some_and(|line| !line.ends_with(" 0")), "{told:?}");

    // A part of a damaged block cannot be written, for the rest of it is lost; the whole of it can.
    assert_eq!(client.write(VICTIM * BLOCK_SIZE, &[1; 512]), Err(EIO));
    assert_eq!(client.read(VICTIM * BLOCK_SIZE, BLOCK_SIZE as u32), Err(EIO), "and it stays damaged");
    client.write(VICTIM * BLOCK_SIZE, &stamped(VICTIM)).expect("it is written");
    let read = client.read(VICTIM * BLOCK_SIZE, BLOCK_SIZE as u32).expect("it is whole again");
    assert!(read == stamped(VICTIM));
    drop(client);
    server.stop();
    let server = site.start();
    assert!(site.attach("web").read(0, (BLOCKS * BLOCK_SIZE) as u32).is_ok(), "and stays whole");
    server.stop();
}

#[test]
fn a_flipped_bit_on_a_capacity_device_is_never_served() {
    a_flipped_bit_is_never_served(&Shape::Two { size_mib: 128 }, Way::Directly, "data");
}

#[test]
fn a_flipped_bit_in_what_was_destaged_is_never_served() {
    a_flipped_bit_is_never_served(&Shape::Two { size_mib: 128 }, Way::ByTheLog, "data");
}

#[test]
fn a_flipped_bit_on_the_only_device_is_never_served() {
    a_flipped_bit_is_never_served(&Shape::One { size_mib: 128 }, Way::ByTheLog, "all");
}

#[test]
fn a_disk_without_checksums_serves_what_stands_there() {
    let site = site_at_rest(&Shape::Two { size_mib: 128 }, Way::ByTheLog, "single,checksum=off");
    flip(&site.path("data"), place_of_victim(&site, "data") + 77);
    let server = site.start();
    let mut expected = stamped(VICTIM);
    expected[77] ^= 0x10;
    let found = site.attach("web").read(VICTIM * BLOCK_SIZE, BLOCK_SIZE as u32);
    assert!(found.expect("nobody asked for the truth") == expected);
    check_neighbours(&site);
    server.stop();
}

/// Scrubs the site, in which one bit of `device` was flipped, until that is found.
fn scrubbing_finds(site: &mut Site, device: &str) {
    let config = site.config().replace("pace = 0", "pace = \"64MiB\"");
    site.set_config(&config);
    let server = site.start();
    wait_for("scrubbing finds the damage", 60, || (damaged_blocks(site) > 0).then_some(()));
    let devices = site.json(&["device", "list"]);
    let damaged = devices.as_array().expect("a list").iter().filter(|device| device["damaged_blocks"] == 1);
    let damaged: Vec<&Value> = damaged.map(|device| &device["path"]).collect();
    assert_eq!(damaged, [text(&site.path(device))], "{devices}");
    check_neighbours(site);
    server.stop();
}

#[test]
fn scrubbing_finds_a_flipped_bit_that_nobody_reads() {
    for way in [Way::ByTheLog, Way::Directly] {
        let mut site = site_at_rest(&Shape::Two { size_mib: 128 }, way, "single");
        flip(&site.path("data"), place_of_victim(&site, "data") + 77);
        scrubbing_finds(&mut site, "data");
    }
}

#[test]
fn scrubbing_finds_a_flipped_bit_in_the_log() {
    let mut site = site_with_damaged_log(false);
    scrubbing_finds(&mut site, "log");
}

/// Stamped blocks that stand in the log alone, the victim's with a flipped bit; `is_orderly`: after an orderly stop.
fn site_with_damaged_log(is_orderly: bool) -> Site {
    let mut site = Site::new(&Shape::Two { size_mib: 128 });
    site.add_config("[scrub]\npace = 0\n");
    let server = site.start();
    site.ask(&["disk", "create", "web", "32MiB"]);
    let mut client = site.attach("web");
    for number in 0..BLOCKS {
        client.write(number * BLOCK_SIZE, &stamped(number)).expect("it is written");
    }
    drop(client);
    if is_orderly {
        server.stop();
    } else {
        let killer = server.kill_after(Duration::ZERO);
        server.killed(killer);
    }
    assert!(find(&site.path("data"), &stamped(VICTIM)).is_empty(), "the block is destaged already");
    flip(&site.path("log"), place_of_victim(&site, "log") + 500);
    site
}

fn a_flipped_bit_in_the_log_is_never_served(is_orderly: bool) {
    let site = site_with_damaged_log(is_orderly);
    let server = site.start();
    let found = site.attach("web").read(VICTIM * BLOCK_SIZE, BLOCK_SIZE as u32);
    assert!(found == Err(EIO), "a block that was acknowledged and is damaged reads as something else");
    check_neighbours(&site);
    assert!(damaged_blocks(&site) > 0, "the damage is told");
    server.stop();
}

#[test]
fn a_flipped_bit_in_the_log_is_never_served_after_an_orderly_stop() {
    a_flipped_bit_in_the_log_is_never_served(true);
}

#[test]
fn a_flipped_bit_in_the_log_is_never_served_after_a_kill() {
    a_flipped_bit_in_the_log_is_never_served(false);
}

#[test]
fn a_device_that_vanishes_takes_nothing_else_with_it() {
    let mut site = Site::bare();
    let file = site.path("vanishing");
    super::tools::sparse_file(&file, 128 * MIB);
    let device = LoopDevice::attach(&file, &[]);
    site.add_config("[scrub]\npace = 0\n");
    site.add_group(&Shape::Two { size_mib: 128 }, "");
    let config = site.config().replace("\"data\"", &format!("\"{}\"", text(&device.path)));
    site.set_config(&config);
    let server = site.start();
    site.ask(&["disk", "create", "lost", "32MiB"]);
    let mut lost = site.attach("lost");
    let all: Vec<u8> = (0..BLOCKS).flat_map(stamped).collect();
    lost.write(0, &all).expect("it is written");
    site.ask(&["device", "add", text(&site.path("other")), "--file-size", "512MiB", "--log-size", "32MiB"]);
    site.ask(&["disk", "create", "other", "32MiB", "--policy", "single,stripes=1"]);
    let shown = site.ask(&["disk", "show", "other"]);
    assert!(shown.contains(text(&site.path("other"))), "{shown}");
    let mut other = site.attach("other");
    other.write(0, &stamped(1)).expect("it is written");

    File::options().write(true).open(&file).and_then(|file| file.set_len(0)).expect("files can shrink");
    device.look_at_size();
    assert_eq!(lost.read(0, BLOCK_SIZE as u32), Err(EIO));
    assert!(other.read(0, BLOCK_SIZE as u32) == Ok(stamped(1)), "another disk goes on");
    other.write(BLOCK_SIZE, &stamped(2)).expect("another disk goes on");
    let reason = wait_for("the loss is told", 30, || {
        let reason = site.json(&["status"])["unavailable"]["lost"].clone();
        reason.as_str().map(str::to_owned)
    });
    assert!(reason.contains(text(&device.path)), "{reason}");
    let devices = site.json(&["device", "list"]);
    let failed = devices.as_array().expect("a list").iter().filter(|device| !device["failure"].is_null());
    let failed: Vec<&Value> = failed.map(|device| &device["path"]).collect();
    assert_eq!(failed, [text(&device.path)], "{devices}");
    drop((lost, other));
    server.stop();

    // A start without the device serves all that it can.
    let server = site.start();
    assert!(site.attach("other").read(BLOCK_SIZE, BLOCK_SIZE as u32) == Ok(stamped(2)));
    let status = site.json(&["status"]);
    assert!(status["unavailable"]["lost"].is_string(), "{status}");
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains(text(&device.path)), "{warnings}");
    server.stop();
}
