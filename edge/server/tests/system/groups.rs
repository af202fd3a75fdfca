//! A host that stands alone, with two disk groups: copies in both outlive the loss of either.

use super::cluster::{SECONDS, assert_verified, verified_load};
use super::host::{Server, Shape, Site};
use super::tools::{said, text, wait_for, wait_for_writes};
use base::units::MIB;
use serde_json::Value;
use std::fs::File;

/// The files that the components of a disk stand on, and whether all of them are up to date.
fn components(site: &Site, disk: &str) -> (Vec<String>, bool) {
    let disk = site.json(&["disk", "show", disk]);
    let all = disk["components"].as_array().expect("components");
    let device = |one: &Value| one["path"].as_str().unwrap_or_default().to_owned();
    let is_whole = |one: &Value| one["standing"] == "active" && one["trouble"].is_null();
    (all.iter().map(device).collect(), all.iter().all(is_whole))
}

fn wait_until_whole(site: &Site) {
    wait_for("the disk is whole", 2 * SECONDS, || components(site, "web").1.then_some(()));
}

/// Puts a new log device in the place of a lost one, at the next start: its group is made anew, and filled from the other.
fn replace_log(site: &mut Site, name: &str) -> Server {
    let (log, new) = (site.path(&format!("{name}log")), site.path(&format!("{name}new-log")));
    let server = site.start();
    assert!(!components(site, "web").1, "nothing is made anew in a group that is lost");
    let size = ["--file-size", "256MiB", "--confirm", text(&log)];
    site.ask(&[&["device", "replace", text(&log), text(&new)], &size[..]].concat());
    wait_until_whole(site);
    let config = site.config().replace(&format!("\"{name}log\""), &format!("\"{name}new-log\""));
    site.set_config(&config);
    server
}

#[test]
fn a_disk_with_copies_in_two_groups_of_one_host_outlives_either_under_load() {
    let mut site = Site::bare();
    for name in ["one-", "two-"] {
        site.add_group(&Shape::Two { size_mib: 256 }, name);
    }
    let mut server = site.start();
    let refused = site.cli(&["disk", "create", "too-much", "64MiB", "--policy", "failures_to_tolerate=2"]);
    assert!(!refused.status.success() && said(&refused).contains("disk groups"), "{}", said(&refused));
    site.ask(&["disk", "create", "web", "64MiB", "--policy", "failures_to_tolerate=1,stripes=1"]);
    let (devices, is_whole) = components(&site, "web");
    let stand_in = |name: &str| devices.iter().filter(|path| path.ends_with(&format!("/{name}data"))).count();
    assert!(is_whole && devices.len() == 2, "{devices:?}");
    assert_eq!((stand_in("one-"), stand_in("two-")), (1, 1), "{devices:?}");

    for (mark, lost) in [(1, "one-"), (2, "two-")] {
        let place = (48 + mark) * MIB;
        let mut held = site.attach("web");
        held.write(place, &[mark as u8; 4096]).expect("it is written");
        let load = verified_load(&site.uri("web"), 12);
        wait_for_writes(|| site.json(&["disk", "histogram", "web"]));
        // A group is as good as its log: all that stands in it is lost with it.
        let log = File::options().write(true).open(site.path(&format!("{lost}log"))).expect("the log");
        log.set_len(0).expect("files can shrink");
        wait_for("the loss is found", SECONDS, || (!components(&site, "web").1).then_some(()));
        held.write(place + 4096, &[mark as u8; 4096]).expect("the other copy takes it");
        assert_eq!(held.read(place, 8192), Ok(vec![mark as u8; 8192]));
        wait_for("health tells of the disk and of the log", SECONDS, || {
            let health = said(&site.cli(&["health"]));
            (health.contains("disk.reduced") && health.contains("log.failed")).then_some(())
        });
        assert_verified(load);
        drop(held);
        server.stop();
        server = replace_log(&mut site, lost);
    }
    let mut client = site.attach("web");
    for mark in [1, 2] {
        assert_eq!(client.read((48 + mark) * MIB, 8192), Ok(vec![mark as u8; 8192]));
    }
    drop(client);
    server.stop();
}
