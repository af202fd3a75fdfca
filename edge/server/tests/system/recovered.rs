//! A host that stands alone and has lost its directory: its snapshots are found on the devices, and clones keep what they share.

use super::host::{Shape, Site};
use super::tools::{qemu_io, said, wait_for};
use serde_json::Value;

fn listed(site: &Site, disk: &str) -> Vec<Value> {
    site.json(&["disk", "snapshot", "list", disk]).as_array().expect("a list").clone()
}

fn name_of(one: &Value) -> &str {
    one["name"].as_str().expect("a name")
}

fn refused(site: &Site, words: &[&str], because: &str) {
    let done = site.cli(words);
    assert!(!done.status.success() && said(&done).contains(because), "{words:?}: {}", said(&done));
}

#[test]
fn snapshots_and_what_clones_share_are_there_again_when_the_directory_is_lost() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    site.ask(&["disk", "create", "golden", "64MiB"]);
    qemu_io(&site.uri("golden"), &["write -P 1 0 8M", "write -P 2 20M 4M"]);
    // The group is converted in the first second.
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "golden", "base"]).status.success().then_some(())
    });
    qemu_io(&site.uri("golden"), &["write -P 3 0 4M"]);
    site.ask(&["disk", "snapshot", "create", "golden", "gone"]);
    site.ask(&["disk", "snapshot", "create", "golden", "later"]);
    site.ask(&["disk", "snapshot", "delete", "golden", "gone", "--confirm", "gone"]);
    site.ask(&["disk", "clone", "golden@base", "web"]);
    qemu_io(&site.uri("golden"), &["write -P 9 0 64M"]);
    qemu_io(&site.uri("web"), &["write -P 5 1M 64k"]);
    let numbers: Vec<u64> =
        listed(&site, "golden").iter().map(|one| one["number"].as_u64().expect("a number")).collect();
    let last = numbers[1];
    // The deleted one is gone from the devices, too.
    wait_for("what it held comes back", 60, || {
        let held: Vec<u64> = listed(&site, "golden").iter().filter_map(|one| one["bytes"].as_u64()).collect();
        (held.len() == 2 && held.iter().all(|bytes| *bytes > 0)).then_some(())
    });
    server.stop();
    std::fs::remove_file(site.path("d/directory.redb")).expect("it is there");
    let server = site.start();
    let found = listed(&site, "golden");
    let names: Vec<String> = found.iter().map(|one| name_of(one).to_owned()).collect();
    let expected: Vec<String> = numbers.iter().map(|number| format!("recovered-{number}")).collect();
    assert!(names.ends_with(&expected[1..]) && names.contains(&expected[0]), "{names:?} of {numbers:?}");
    let (base, later) = (expected[0].as_str(), expected[1].as_str());
    let check = || {
        let base_is = ["read -P 1 0 8M", "read -P 0 8M 12M", "read -P 2 20M 4M", "read -P 0 24M 40M"];
        qemu_io(&site.uri(&format!("golden@{base}")), &base_is);
        qemu_io(&site.uri(&format!("golden@{later}")), &["read -P 3 0 4M", "read -P 1 4M 4M"]);
        qemu_io(&site.uri("golden"), &["read -P 9 0 64M"]);
        let web_is = ["read -P 1 0 1M", "read -P 5 1M 64k", "read -P 1 1114112 7274496", "read -P 2 20M 4M"];
        qemu_io(&site.uri("web"), &web_is);
    };
    check();
    let counted = found.iter().find(|one| name_of(one) == base).expect("it is there");
    assert_eq!(counted["clones"], 1, "{counted}");
    refused(&site, &["disk", "snapshot", "delete", "golden", base, "--confirm", base], "clones");
    refused(&site, &["disk", "delete", "golden", "--confirm", "golden"], "clones");
    site.ask(&["disk", "snapshot", "delete", "golden", later, "--confirm", later]);
    let made = site.json(&["disk", "snapshot", "create", "golden", "new"]);
    assert!(made["number"].as_u64().is_some_and(|number| number > last), "{made}");
    server.stop();
    // Owners delete what no record names: nothing that was found.
    let server = site.start();
    site.ask(&["disk", "snapshot", "rename", "golden", base, "base"]);
    qemu_io(&site.uri("golden@base"), &["read -P 1 0 8M", "read -P 2 20M 4M"]);
    site.ask(&["disk", "flatten", "web"]);
    site.ask(&["disk", "snapshot", "delete", "golden", "base", "--confirm", "base"]);
    site.ask(&["disk", "delete", "golden", "--confirm", "golden"]);
    qemu_io(&site.uri("web"), &["read -P 1 0 1M", "read -P 5 1M 64k", "read -P 2 20M 4M"]);
    server.stop();
}
