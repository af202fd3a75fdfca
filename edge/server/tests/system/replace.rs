//! Devices that died, shrank or were replaced by blank ones: the others serve, and `drystone device replace` puts a new one in
//! their place, as the guide tells.

use super::host::{Server, Shape, Site};
use super::tools::{said, sparse_file, text, wait_for};
use base::units::{BLOCK_SIZE, MIB};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A group of a log and two capacity devices with a disk on each: the site, and the device of the disk `gone`.
fn two_disks() -> (Site, Server, PathBuf) {
    let mut site = Site::new(&Shape::Two { size_mib: 256 });
    site.add_config("[scrub]\npace = 0\n");
    let config = site.config().replace("\"data\"", "\"data\", \"more\"");
    site.set_config(&config);
    let server = site.start();
    for name in ["gone", "kept"] {
        site.ask(&["disk", "create", name, "64MiB", "--policy", "single,stripes=1"]);
        site.attach(name).write(0, &[7; BLOCK_SIZE as usize]).expect("it is written");
    }
    let shown = site.ask(&["disk", "show", "gone"]);
    let devices = ["data", "more"].map(|name| site.path(name));
    let device = devices.iter().find(|path| shown.contains(text(path))).expect("it stands somewhere").clone();
    assert!(!site.ask(&["disk", "show", "kept"]).contains(text(&device)), "each has a device of its own");
    (site, server, device)
}

fn failure_of(site: &Site, device: &Path) -> Option<String> {
    let devices: Value = site.json(&["device", "list"]);
    let mut devices = devices.as_array().expect("a list").iter();
    let device = devices.find(|one| one["path"] == text(device)).expect("it is listed");
    device["failure"].as_str().map(str::to_owned)
}

/// The command is refused, and says all of that.
fn refused(site: &Site, arguments: &[&str], parts: &[&str]) {
    let output = site.cli(arguments);
    let message = said(&output);
    assert!(!output.status.success(), "{message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
}

fn check_kept(site: &Site) {
    let read = site.attach("kept").read(0, BLOCK_SIZE as u32).expect("the other disk is served");
    assert_eq!(read, [7; BLOCK_SIZE as usize]);
}

/// A blank device in the slot of one that was lost closed the whole group at the start, and there was no way on from there.
#[test]
fn a_blank_device_in_the_place_of_a_lost_one_is_that_device_missing_and_is_taken_by_replace() {
    let (site, server, device) = two_disks();
    server.stop();
    std::fs::remove_file(&device).expect("it was there");
    sparse_file(&device, 256 * MIB);
    let server = site.start();
    let failure = failure_of(&site, &device).expect("it is missing");
    assert!(failure.contains("is blank"), "{failure}");
    check_kept(&site);
    let path = text(&device);
    refused(&site, &["device", "replace", path, path], &["only copy of data of gone", "--confirm"]);
    let told = site.json(&["device", "replace", path, path, "--dry-run"]);
    assert_eq!(told["lost_disks"], serde_json::json!(["gone"]), "{told}");
    assert!(failure_of(&site, &device).is_some(), "a dry run changes nothing");
    let done = site.ask(&["device", "replace", path, path, "--confirm", path]);
    assert!(done.contains("takes the place") && done.contains("data is lost of: gone"), "{done}");
    assert_eq!(failure_of(&site, &device), None);
    let events = site.ask(&["--json", "events"]);
    assert!(events.contains("device.replaced"), "{events}");
    check_kept(&site);
    site.ask(&["disk", "delete", "gone", "--confirm", "gone"]);
    site.ask(&["disk", "create", "next", "64MiB", "--policy", "single,stripes=2"]);
    site.attach("next").write(0, &[9; 2 * MIB as usize]).expect("both devices take it");
    server.stop();
    let server = site.start();
    check_kept(&site);
    assert_eq!(site.attach("next").read(MIB, 4096).expect("it is readable"), [9; 4096]);
    server.stop();
}

/// A component whose file was truncated stayed in service, and reads of it failed one by one.
#[test]
fn a_device_that_shrinks_goes_out_of_service_while_it_is_in_use_and_at_a_start() {
    let (site, server, device) = two_disks();
    let file = File::options().write(true).open(&device).expect("the file is there");
    file.set_len(80 * MIB).expect("files can shrink");
    let why = wait_for("it is found", 20, || failure_of(&site, &device));
    assert!(why.contains("it has shrunk") && why.contains("80 MiB"), "{why}");
    check_kept(&site);
    server.stop();
    let server = site.start();
    let why = failure_of(&site, &device).expect("it is out of service");
    assert!(why.contains("shrunk") || why.contains("failed before"), "{why}");
    check_kept(&site);
    let (old, new) = (text(&device), site.path("new"));
    let done = site.ask(&["device", "replace", old, text(&new), "--file-size", "256MiB", "--confirm", old]);
    assert!(done.contains("the configuration file still names"), "{done}");
    assert_eq!(failure_of(&site, &new), None);
    check_kept(&site);
    server.stop();
}

/// Of a lost log device the guide told to erase all others by hand.
#[test]
fn a_group_whose_log_device_is_lost_is_made_anew_on_the_remaining_devices() {
    let (mut site, server, _) = two_disks();
    let log = site.path("log");
    refused(&site, &["device", "remove", text(&log)], &["holds the log", "--group"]);
    refused(&site, &["device", "replace", text(&log), "/dev/null"], &["in service"]);
    server.stop();
    std::fs::remove_file(&log).expect("it was there");
    let server = site.start();
    let new = site.path("newlog");
    let size = ["--file-size", "256MiB"];
    refused(
        &site,
        &[&["device", "replace", text(&log), text(&new)], &size[..]].concat(),
        &["only copy of data of gone, kept", "--confirm"],
    );
    assert!(!new.exists(), "nothing is made before it is confirmed");
    let confirm = ["--confirm", text(&log)];
    let done = site.ask(&[&["device", "replace", text(&log), text(&new)], &size[..], &confirm].concat());
    assert!(done.contains("is made anew") && done.contains("still names"), "{done}");
    let devices = site.json(&["device", "list"]);
    assert_eq!(devices.as_array().map(Vec::len), Some(3), "{devices}");
    for name in ["gone", "kept"] {
        site.ask(&["disk", "delete", name, "--confirm", name]);
    }
    site.ask(&["disk", "create", "next", "64MiB"]);
    site.attach("next").write(0, &[5; 4096]).expect("it is written");
    server.stop();
    let config = site.config().replace("log = \"log\"", "log = \"newlog\"");
    site.set_config(&config);
    let server = site.start();
    assert_eq!(site.attach("next").read(0, 4096).expect("it is readable"), [5; 4096]);
    server.stop();
}
