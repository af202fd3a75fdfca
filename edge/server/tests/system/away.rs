//! A capacity device that is not there when the host starts: the others serve, and it comes back whole, unless the log
//! needed the space of what it kept for it.

use super::host::{LOG_MIB, Server, Shape, Site};
use super::tools::{text, wait_for};
use base::Random;
use base::units::{BLOCK_SIZE, MIB};
use std::path::PathBuf;
use std::time::Duration;

/// Small writes that reach a disk before its device goes; they stand in the log alone.
const BLOCKS: u64 = 64;

fn block(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_SIZE as usize];
    Random::new(number).fill(&mut bytes);
    bytes
}

/// A group of a log and two capacity devices with a disk on each, and the device of the disk `gone`.
fn two_disks() -> (Site, Server, PathBuf) {
    let mut site = Site::new(&Shape::Two { size_mib: 256 });
    let config = site.config().replace("\"data\"", "\"data\", \"more\"");
    site.set_config(&config);
    let server = site.start();
    for name in ["gone", "kept"] {
        site.ask(&["disk", "create", name, "64MiB", "--policy", "single,stripes=1"]);
    }
    let shown = site.ask(&["disk", "show", "gone"]);
    let devices = ["data", "more"].map(|name| site.path(name));
    let device = devices.iter().find(|path| shown.contains(text(path))).expect("it stands somewhere");
    assert!(!site.ask(&["disk", "show", "kept"]).contains(text(device)), "each has a device of its own");
    let mut client = site.attach("gone");
    for number in 0..BLOCKS {
        client.write(number * 3 * BLOCK_SIZE, &block(number)).expect("it is written");
    }
    drop(client);
    (site, server, device.clone())
}

fn kill(server: Server) {
    let killer = server.kill_after(Duration::ZERO);
    server.killed(killer);
}

#[test]
fn a_device_that_was_away_comes_back_whole() {
    let (site, server, device) = two_disks();
    let aside = site.path("aside");
    kill(server);
    std::fs::rename(&device, &aside).expect("it is moved");
    for round in 0..2 {
        let server = site.start();
        let status = site.json(&["status"]);
        assert!(status["unavailable"]["gone"].is_string(), "{status}");
        assert!(status["warnings"].to_string().contains(text(&device)), "{status}");
        let (code, message) = {
            let output = site.cli(&["device", "remove", text(&device)]);
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert!(code != Some(0) && message.contains("gone"), "{message}");
        // A name needs no device.
        site.ask(&["disk", "rename", "gone", "other"]);
        site.ask(&["disk", "rename", "other", "gone"]);
        let mut kept = site.attach("kept");
        for number in 0..BLOCKS {
            kept.write((number * 5 + round) * BLOCK_SIZE, &block(number)).expect("it goes on");
        }
        drop(kept);
        if round == 0 { kill(server) } else { server.stop() }
    }
    std::fs::rename(&aside, &device).expect("it is moved back");
    let server = site.start();
    let mut client = site.attach("gone");
    for number in 0..BLOCKS {
        let found = client.read(number * 3 * BLOCK_SIZE, BLOCK_SIZE as u32).expect("it is readable");
        assert!(found == block(number), "block {number} differs");
    }
    drop(client);
    server.stop();
}

#[test]
fn a_device_that_is_away_for_too_long_is_given_up_and_can_be_removed() {
    let (site, server, device) = two_disks();
    let aside = site.path("aside");
    server.stop();
    std::fs::rename(&device, &aside).expect("it is moved");
    let server = site.start();
    let mut kept = site.attach("kept");
    let piece = vec![7; 64 << 10];
    let mut random = Random::new(3);
    for _ in 0..3 * LOG_MIB * MIB / piece.len() as u64 {
        let offset = random.below(63 * MIB / BLOCK_SIZE) * BLOCK_SIZE;
        kept.write(offset, &piece).expect("it goes on");
    }
    drop(kept);
    let reason = wait_for("it is given up", 10, || {
        let devices = site.json(&["device", "list"]);
        let failures = devices.as_array()?.iter().filter_map(|device| device["failure"].as_str());
        failures.filter(|why| why.contains("must be replaced")).map(str::to_owned).next()
    });
    assert!(reason.contains("away"), "{reason}");
    server.stop();

    std::fs::rename(&aside, &device).expect("it is moved back");
    let server = site.start();
    let status = site.json(&["status"]);
    assert!(
        status["unavailable"]["gone"].is_string(),
        "what was dropped is not served as if it were whole: {status}"
    );
    site.ask(&["disk", "delete", "gone", "--confirm", "gone"]);
    site.ask(&["device", "remove", text(&device)]);
    let devices = site.json(&["device", "list"]);
    assert_eq!(devices.as_array().map(Vec::len), Some(2), "{devices}");
    site.ask(&["disk", "create", "next", "64MiB"]);
    server.stop();
}
