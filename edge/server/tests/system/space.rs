//! Space that is promised, and lists of all hosts.

use super::cluster::{Cluster, SECONDS};
use super::host::{Server, Shape, Site};
use super::tools::{said, wait_for};

/// 10 TiB on a device of half a GiB were promised without a word.
#[test]
fn space_that_is_promised_beyond_what_there_is_is_said_at_once_in_status_and_in_health() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    let small = site.cli(&["disk", "create", "small", "64MiB"]);
    assert!(small.status.success() && !said(&small).contains("warning"), "{}", said(&small));
    let huge = site.cli(&["disk", "create", "huge", "10TiB"]);
    assert!(huge.status.success(), "nothing is refused: {}", said(&huge));
    let warning = String::from_utf8_lossy(&huge.stderr).into_owned();
    for part in ["warning: disks may take 10.0 TiB with all copies", "the devices have ", " MiB ("] {
        assert!(warning.contains(part), "{warning}");
    }
    let told = site.json(&["disk", "create", "more", "1TiB"]);
    assert!(told["warnings"][0].as_str().is_some_and(|text| text.contains("11.0 TiB")), "{told}");
    let status = site.json(&["status"]);
    let space = &status["space"];
    assert!(space["disks_bytes"].as_u64() > Some(11 << 40), "{space}");
    assert!(space["provisioned_percent"].as_u64() > Some(1_000_000), "{space}");
    let text = site.ask(&["status"]);
    assert!(text.contains("over-committed") && text.contains("usable"), "{text}");
    let health = site.cli(&["health"]);
    assert!(health.status.success(), "it is to be known, and no more: {}", said(&health));
    assert!(said(&health).contains("space.over_committed"), "{}", said(&health));
    Server::stop(server);
}

#[test]
fn lists_have_all_hosts_and_the_order_that_is_asked_for() {
    let cluster = Cluster::start(3);
    for (name, size) in [("one", "128MiB"), ("two", "64MiB"), ("three", "256MiB")] {
        cluster.json("a", &["disk", "create", name, size, "--policy", "default,stripes=1"]);
    }
    let order = |options: &[&str]| -> Vec<String> {
        let disks = cluster.json("a", &[&["disk", "list"], options].concat());
        let disks = disks.as_array().expect("disks").iter();
        disks.map(|disk| disk["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(order(&[]), ["one", "three", "two"]);
    assert_eq!(order(&["--sort", "size"]), ["three", "one", "two"]);
    assert_eq!(order(&["--sort", "size", "--reverse"]), ["two", "one", "three"]);
    let all = wait_for("all hosts answer", SECONDS, || {
        let all = cluster.json("b", &["device", "list", "--cluster"]);
        (all["hosts"].as_array().map(Vec::len) == Some(3)).then_some(all)
    });
    for (index, name) in ["a", "b", "c"].iter().enumerate() {
        assert_eq!(all["hosts"][index]["host"], *name, "{all}");
        assert!(
            all["hosts"][index]["devices"].as_array().is_some_and(|devices| !devices.is_empty()),
            "{all}"
        );
        // Files of a test stand on whatever the machine has; all of one host stand on the same.
        let devices = all["hosts"][index]["devices"].as_array().expect("devices");
        assert!(devices.iter().all(|device| device["encryption"].is_string()), "{all}");
        assert!(devices.iter().all(|device| device["encryption"] == devices[0]["encryption"]), "{all}");
    }
    let health = cluster.cli("a", &["--json", "health"]);
    assert!(!said(&health).contains("encryption.mixed"), "{}", said(&health));
    let status = cluster.json("c", &["status"]);
    let hosts = status["space"]["hosts"].as_array().expect("hosts");
    let sum: u64 = hosts.iter().map(|host| host["components_bytes"].as_u64().expect("bytes")).sum();
    assert_eq!(Some(sum), status["space"]["components_bytes"].as_u64(), "{status}");
    assert_eq!(sum, 2 * (448 << 20), "two copies of everything");
    cluster.order("kill", "c");
    wait_for("host c is missing", SECONDS, || {
        (cluster.json("b", &["device", "list", "--cluster"])["silent"][0] == "c").then_some(())
    });
}
