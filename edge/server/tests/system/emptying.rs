//! Devices that are emptied while they go on serving, and are taken out then, on a host that runs.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::repair::{configure, stamped};
use super::tools::{said, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::path::Path;

impl Cluster {
    /// The capacity devices of a host.
    fn capacity_devices(&self, host: &str) -> Vec<Value> {
        let devices = self.json(host, &["device", "list"]);
        let devices = devices.as_array().expect("devices").clone();
        devices.into_iter().filter(|device| device["role"] == "capacity").collect()
    }
}

fn start() -> Cluster {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    for name in ["a", "b", "c"] {
        configure(folder.path(), name, Path::new("capacity.img"), "1GiB");
    }
    Cluster::start_in(folder, 3)
}

#[test]
fn a_device_is_emptied_under_load_and_taken_out_without_a_restart() {
    let cluster = start();
    let holders = cluster.mirrored("web", "64MiB");
    let (user, host) = (holders[0].as_str(), holders[1].as_str());
    let mut client = cluster.attach(user, "web");
    client.write(48 * MIB, &stamped(1)).expect("it writes");
    let device = &cluster.capacity_devices(host)[0];
    let (id, path) = (device["id"].as_str().expect("an id"), device["path"].as_str().expect("a path"));
    let named = format!("{host}:{path}");
    // Another host can be asked, and asking changes nothing.
    let dry = cluster.json(user, &["device", "evacuate", &named, "--dry-run"]);
    assert_eq!((&dry["is_possible"], &dry["is_begun"]), (&Value::Bool(true), &Value::Bool(false)), "{dry}");
    assert_eq!(dry["disks"][0]["components"][0]["fate"], "moves", "{dry}");
    assert!(cluster.capacity_devices(host)[0]["leaving"].is_null());
    let load = verified_load(&cluster.uri(user, "web"), 6);
    cluster.json(user, &["device", "evacuate", &named]);
    let leaving = || cluster.capacity_devices(host)[0]["leaving"].as_str().map(str::to_owned);
    wait_for("it is empty", SECONDS, || leaving().filter(|text| text.starts_with("empty")));
    let finding = cluster.wait_for_finding(user, "device.leaving");
    assert_eq!(finding["severity"], "notice", "{finding}");
    // Nothing new comes to it.
    for number in 0..3 {
        assert!(!cluster.mirrored(&format!("more{number}"), "64MiB").iter().any(|holder| holder == host));
    }
    wait_for("what it told of is gone", SECONDS, || {
        (cluster.capacity_devices(host)[0]["component_count"] == 0).then_some(())
    });
    assert_verified(load);
    cluster.json(host, &["device", "remove", id]);
    assert!(cluster.capacity_devices(host).is_empty());
    assert!(client.read(48 * MIB, 4096) == Ok(stamped(1)));
}

#[test]
fn what_is_not_to_be_emptied_after_all_takes_new_components_again() {
    let cluster = start();
    let holders = cluster.mirrored("web", "64MiB");
    let host = holders[1].as_str();
    let path = cluster.capacity_devices(host)[0]["path"].as_str().expect("a path").to_owned();
    cluster.json(host, &["device", "evacuate", &path]);
    // Twice is as good as once.
    cluster.json(host, &["device", "evacuate", &path]);
    cluster.json(host, &["device", "evacuate", &path, "--cancel"]);
    wait_for("all is well", SECONDS, || cluster.capacity_devices(host)[0]["leaving"].is_null().then_some(()));
    cluster.wait_until_whole(host, "web");
    let names = ["one", "two", "three", "four"].map(|name| cluster.mirrored(name, "64MiB"));
    assert!(names.iter().flatten().any(|holder| holder == host), "{names:?}");
}

#[test]
fn a_device_that_cannot_be_emptied_is_left_as_it_is_with_the_way_out() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    for name in ["a", "b"] {
        configure(folder.path(), name, Path::new("capacity.img"), "1GiB");
    }
    let cluster = Cluster::start_in(folder, 2);
    cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    let path = cluster.capacity_devices("a")[0]["path"].as_str().expect("a path").to_owned();
    let refused = said(&cluster.cli("a", &["device", "evacuate", &path]));
    assert!(refused.contains("cannot be emptied") && refused.contains("add devices"), "{refused}");
    assert!(cluster.capacity_devices("a")[0]["leaving"].is_null());
    let unknown = said(&cluster.cli("a", &["device", "evacuate", "/dev/nothing"]));
    assert!(unknown.contains("no capacity device `/dev/nothing`"), "{unknown}");
}
