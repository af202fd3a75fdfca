//! Clones of disks, as their clients see them: on one host, and where hosts are lost meanwhile.

use super::cluster::{Cluster, assert_verified, verified_load};
use super::host::{Shape, Site};
use super::tools::{qemu_io, said, text, wait_for};
use base::units::MIB;

fn allocated(site: &Site, disk: &str) -> u64 {
    site.json(&["disk", "show", disk])["allocated_bytes"].as_u64().expect("a number")
}

/// A disk with a pattern, and a snapshot of it.
fn golden(site: &Site) {
    site.ask(&["disk", "create", "golden", "64MiB"]);
    qemu_io(&site.uri("golden"), &["write -P 1 0 8M", "write -P 2 20M 4M", "write -P 3 63M 1M"]);
    // The group is converted in the first second.
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "golden", "base"]).status.success().then_some(())
    });
}

#[test]
fn a_clone_shows_what_was_cloned_and_takes_space_for_what_is_written_alone() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    golden(&site);
    let made = site.json(&["disk", "clone", "golden@base", "web", "--size", "80MiB"]);
    assert_eq!(made["clone_of"].as_str(), Some("golden@base"));
    let web = site.uri("web");
    let inherited =
        ["read -P 1 0 8M", "read -P 0 8M 12M", "read -P 2 20M 4M", "read -P 0 24M 39M", "read -P 3 63M 1M"];
    qemu_io(&web, &inherited);
    qemu_io(&web, &["read -P 0 64M 16M"]);
    assert!(allocated(&site, "web") <= MIB, "{}", allocated(&site, "web"));
    // What either is written does not show in the other.
    qemu_io(&site.uri("golden"), &["write -P 9 0 64M"]);
    qemu_io(&web, &inherited);
    qemu_io(
        &web,
        &[
            "write -P 4 4k 512",
            "write -P 5 1M 64k",
            "discard 2M 1M",
            "write -z -u 20M 100k",
            "write -P 6 70M 1M",
        ],
    );
    let written = [
        "read -P 1 0 4k",
        "read -P 4 4k 512",
        "read -P 1 4608 1043968",
        "read -P 5 1M 64k",
        "read -P 0 2M 1M",
        "read -P 1 3M 5M",
        "read -P 0 20M 100k",
        "read -P 2 21073920 4091904",
        "read -P 3 63M 1M",
        "read -P 6 70M 1M",
    ];
    qemu_io(&web, &written);
    qemu_io(&site.uri("golden"), &["read -P 9 0 64M"]);
    assert!(allocated(&site, "web") <= 6 * MIB, "{}", allocated(&site, "web"));
    server.stop();
    let server = site.start();
    qemu_io(&web, &written);
    // What it is a clone of stays as long as it is.
    let refused = site.cli(&["disk", "snapshot", "delete", "golden", "base", "--confirm", "base"]);
    assert!(!refused.status.success() && said(&refused).contains("clones"), "{}", said(&refused));
    let refused = site.cli(&["disk", "delete", "golden", "--confirm", "golden"]);
    assert!(!refused.status.success() && said(&refused).contains("clones"), "{}", said(&refused));
    let listed = site.json(&["disk", "list", "--clones-of", "golden"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let flat = site.json(&["disk", "flatten", "web"]);
    assert!(flat["next"].is_null(), "{flat}");
    qemu_io(&web, &written);
    site.ask(&["disk", "snapshot", "delete", "golden", "base", "--confirm", "base"]);
    site.ask(&["disk", "delete", "golden", "--confirm", "golden"]);
    qemu_io(&web, &written);
    server.stop();
    let server = site.start();
    qemu_io(&web, &written);
    server.stop();
}

#[test]
fn clones_have_snapshots_backups_and_clones_of_their_own() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    golden(&site);
    site.ask(&["disk", "clone", "golden@base", "web"]);
    let web = site.uri("web");
    site.ask(&["disk", "snapshot", "create", "web", "fresh"]);
    qemu_io(&web, &["write -P 4 1M 4k", "discard 20M 64k"]);
    site.ask(&["disk", "snapshot", "create", "web", "used"]);
    // Without a name a snapshot is taken.
    site.ask(&["disk", "clone", "web", "test"]);
    qemu_io(&web, &["write -P 7 0 64M"]);
    qemu_io(&site.uri("web@fresh"), &["read -P 1 0 8M", "read -P 2 20M 4M", "read -P 3 63M 1M"]);
    qemu_io(&site.uri("web@used"), &["read -P 1 0 1M", "read -P 4 1M 4k", "read -P 0 20M 64k"]);
    qemu_io(
        &site.uri("test"),
        &["read -P 4 1M 4k", "read -P 0 20M 64k", "read -P 2 21M 3M", "read -P 3 63M 1M"],
    );
    // A backup of a clone is whole, and one of what changed has what changed.
    let (full, delta) = (site.path("full.raw"), site.path("used.delta"));
    site.ask(&["disk", "export", "web@fresh", text(&full)]);
    let bytes = std::fs::read(&full).expect("exported");
    assert!(bytes.len() as u64 == 64 * MIB && bytes[..8 << 20].iter().all(|byte| *byte == 1));
    assert!(bytes[20 << 20..24 << 20].iter().all(|byte| *byte == 2));
    site.ask(&["disk", "export", "web@used", text(&delta), "--since", "fresh"]);
    site.ask(&["disk", "import", "restored", text(&full)]);
    site.ask(&["disk", "import", "restored", text(&delta), "--apply", "--confirm", "restored"]);
    qemu_io(
        &site.uri("restored"),
        &["read -P 4 1M 4k", "read -P 1 1052672 7335936", "read -P 0 20M 64k", "read -P 2 21M 3M"],
    );
    site.ask(&["disk", "snapshot", "rollback", "web", "used", "--confirm", "web"]);
    qemu_io(&web, &["read -P 1 0 1M", "read -P 4 1M 4k", "read -P 0 20M 64k", "read -P 2 21M 3M"]);
    let refused = site.cli(&["disk", "flatten", "web"]);
    assert!(!refused.status.success() && said(&refused).contains("snapshots"), "{}", said(&refused));
    site.ask(&["disk", "flatten", "test"]);
    qemu_io(
        &site.uri("test"),
        &["read -P 4 1M 4k", "read -P 0 20M 64k", "read -P 2 21M 3M", "read -P 3 63M 1M"],
    );
    site.ask(&["disk", "snapshot", "delete", "web", "for-test", "--confirm", "for-test"]);
    for disk in ["test", "restored", "web", "golden"] {
        site.ask(&["disk", "delete", disk, "--confirm", disk]);
    }
    server.stop();
}

#[test]
fn clones_in_a_cluster_go_on_when_hosts_are_lost() {
    let cluster = Cluster::start(4);
    let hosts = cluster.mirrored("golden", "64MiB");
    qemu_io(&cluster.uri(&hosts[0], "golden"), &["write -P 1 0 32M", "write -P 2 63M 1M"]);
    wait_for("the snapshot is taken", 60, || {
        let taken = cluster.cli(&hosts[0], &["disk", "snapshot", "create", "golden", "base"]);
        taken.status.success().then_some(())
    });
    for clone in ["one", "two"] {
        let made = cluster.cli(&hosts[0], &["disk", "clone", "golden@base", clone]);
        assert!(made.status.success(), "{}", said(&made));
    }
    let inherited = ["read -P 1 0 32M", "read -P 0 32M 31M", "read -P 2 63M 1M"];
    for host in ["a", "b", "c", "d"] {
        drop(cluster.attach_soon(host, "two"));
        qemu_io(&cluster.uri(host, "two"), &inherited);
    }
    // A host that has a copy of what was cloned goes away while a clone is written.
    let load = verified_load(&cluster.uri(&hosts[0], "one"), 20);
    std::thread::sleep(std::time::Duration::from_secs(4));
    cluster.order("kill", &hosts[1]);
    std::thread::sleep(std::time::Duration::from_secs(6));
    cluster.order("start", &hosts[1]);
    assert_verified(load);
    for host in ["a", "b", "c", "d"] {
        drop(cluster.attach_soon(host, "two"));
        qemu_io(&cluster.uri(host, "two"), &inherited);
    }
}
