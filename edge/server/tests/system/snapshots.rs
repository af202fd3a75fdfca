//! Snapshots of disks, as clients read them: on one host, and where hosts are lost meanwhile.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::host::{Shape, Site};
use super::tools::{run, said, text, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The bytes of an export, as `nbdcopy` reads them.
fn copied(folder: &Path, uri: &str) -> Vec<u8> {
    let target = folder.join("copy.raw");
    let _ = std::fs::remove_file(&target);
    run("nbdcopy", &[uri, text(&target)]);
    std::fs::read(&target).expect("it was copied")
}

/// Whether a client can have an export.
fn is_there(uri: &str) -> bool {
    Command::new("nbdinfo").args(["--size", uri]).output().expect("nbdinfo runs").status.success()
}

#[test]
fn a_snapshot_reads_as_the_disk_did_whatever_is_written_since() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let uri = |export: &str| format!("nbd+unix:///{export}?socket={}", text(&site.path("d/nbd.sock")));
    let qemu_io = |export: &str, commands: &[&str]| {
        let address = uri(export);
        let mut all = vec!["-f", "raw"];
        all.extend(export.contains('@').then_some("-r"));
        commands.iter().for_each(|command| all.extend(["-c", *command]));
        all.push(&address);
        run("qemu-io", &all)
    };
    // The group is converted in the first second.
    wait_for("the first snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "web", "empty"]).status.success().then_some(())
    });
    qemu_io("web", &["write -P 1 0 8M", "write -P 2 20M 4M"]);
    let made = site.json(&["disk", "snapshot", "create", "web", "monday"]);
    assert_eq!((made["export"].as_str(), made["size"].as_u64()), (Some("web@monday"), Some(64 * MIB)));
    qemu_io("web", &["write -P 3 4k 4k", "write -P 4 1M 3M", "discard 20M 2M", "write -P 5 40M 1M"]);
    site.ask(&["disk", "snapshot", "create", "web", "tuesday"]);
    qemu_io("web", &["write -P 6 0 64M"]);
    let check = || {
        qemu_io("web@empty", &["read -P 0 0 64M"]);
        qemu_io(
            "web@monday",
            &["read -P 1 0 8M", "read -P 0 8M 12M", "read -P 2 20M 4M", "read -P 0 24M 40M"],
        );
        qemu_io(
            "web@tuesday",
            &["read -P 1 0 4k", "read -P 3 4k 4k", "read -P 1 8k 1016k", "read -P 4 1M 3M"],
        );
        qemu_io("web@tuesday", &["read -P 0 20M 2M", "read -P 2 22M 2M", "read -P 5 40M 1M"]);
        qemu_io("web", &["read -P 6 0 64M"]);
    };
    check();
    // All that the first of them sees was replaced since; of the second, what came between is its own.
    let held = wait_for("what snapshots hold is told", 30, || {
        let listed = site.json(&["disk", "snapshot", "list", "web"]);
        let held: Vec<u64> =
            listed.as_array().expect("a list").iter().filter_map(|one| one["bytes"].as_u64()).collect();
        (held.iter().sum::<u64>() >= 40 * MIB).then_some(held)
    });
    assert_eq!(held.len(), 3, "{held:?}");
    let shown = site.ask(&["disk", "show", "web"]);
    assert!(shown.contains("3, the newest tuesday"), "{shown}");
    let metrics = site.metrics();
    assert!(metrics.contains("drystone_disk_snapshots{disk=\"web\"} 3"), "{metrics}");
    let written =
        Command::new("qemu-io").args(["-f", "raw", "-c", "write 0 4k", &uri("web@monday")]).output();
    assert!(!written.expect("qemu-io runs").status.success(), "a snapshot can only be read");
    let refused = site.cli(&["disk", "snapshot", "create", "web", "monday"]);
    assert!(!refused.status.success());
    let listed = site.json(&["disk", "snapshot", "list", "web"]);
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["empty", "monday", "tuesday"]);
    assert!(!site.cli(&["disk", "resize", "web", "32MiB", "--confirm", "web"]).status.success());
    server.stop();
    let server = site.start();
    check();
    assert!(
        !site.cli(&["disk", "snapshot", "delete", "web", "monday"]).status.success(),
        "it is not confirmed"
    );
    site.ask(&["disk", "snapshot", "delete", "web", "monday", "--confirm", "monday"]);
    assert!(!is_there(&uri("web@monday")) && is_there(&uri("web@tuesday")));
    qemu_io("web@empty", &["read -P 0 0 64M"]);
    qemu_io("web@tuesday", &["read -P 1 0 4k", "read -P 3 4k 4k", "read -P 4 1M 3M", "read -P 2 22M 2M"]);
    for name in ["empty", "tuesday"] {
        site.ask(&["disk", "snapshot", "delete", "web", name, "--confirm", name]);
    }
    let allocated = || site.json(&["disk", "show", "web"])["allocated_bytes"].as_u64().expect("a number");
    wait_for("what only snapshots held comes back", 60, || (allocated() <= 66 * MIB).then_some(()));
    qemu_io("web", &["read -P 6 0 64M"]);
    server.stop();
}

#[test]
fn snapshots_that_are_taken_under_load_read_the_same_from_every_host_whoever_is_killed() {
    let cluster = Cluster::start(3);
    let hosts = cluster.mirrored("web", "128MiB");
    let load = verified_load(&cluster.uri(&hosts[0], "web"), 20);
    cluster.wait_for_load(&hosts[0], "web");
    let take = |host: &str, name: &str| {
        wait_for("a snapshot is taken", 60, || {
            cluster.cli(host, &["disk", "snapshot", "create", "web", name]).status.success().then_some(())
        });
    };
    take(&hosts[0], "one");
    take(&hosts[1], "two");
    let folder = cluster.path("a");
    let read = |host: &str, name: &str| copied(&folder, &cluster.uri(host, &format!("web@{name}")));
    let before: Vec<Vec<u8>> = ["one", "two"].iter().map(|name| read(&hosts[0], name)).collect();
    assert_verified(load);
    cluster.order("kill", &hosts[0]);
    for (name, before) in ["one", "two"].iter().zip(&before) {
        assert!(
            read(&hosts[1], name) == *before,
            "snapshot {name} reads the same from the copy that is left"
        );
    }
    take(&hosts[1], "three");
    let third = read(&hosts[1], "three");
    cluster.order("start", &hosts[0]);
    cluster.wait_until_whole(&hosts[1], "web");
    // The third was taken while one copy was away, and that gets it.
    wait_for_copies(&cluster, &hosts[1], 3);
    let all = || ["one", "two", "three"].into_iter().zip(before.iter().chain([&third]));
    for (name, before) in all() {
        assert!(read(&hosts[0], name) == *before, "snapshot {name} reads the same when the host is back");
    }
    cluster.order("kill", &hosts[1]);
    for (name, before) in all() {
        assert!(
            read(&hosts[0], name) == *before,
            "snapshot {name} reads the same from the copy that was away"
        );
    }
}

/// Waits until both copies of the disk have all of so many snapshots.
fn wait_for_copies(cluster: &Cluster, host: &str, count: usize) {
    wait_for("each copy has all snapshots", SECONDS, || {
        let done = cluster.cli(host, &["--json", "disk", "snapshot", "list", "web"]);
        let list: Value = serde_json::from_slice(&done.stdout).ok()?;
        let copies: Vec<u64> = list.as_array()?.iter().filter_map(|one| one["copies"].as_u64()).collect();
        (copies == vec![2; count]).then_some(())
    });
}

/// Each host that had a copy when the snapshots were taken is lost for good, one after the other: the copies that are made anew elsewhere have them.
#[test]
fn snapshots_outlive_every_copy_that_took_them() {
    let cluster = Cluster::start(4);
    cluster.set("repair-delay", "1s");
    let first = cluster.mirrored("web", "64MiB");
    let folder = cluster.path("a");
    let read = |host: &str, name: &str| copied(&folder, &cluster.uri(host, &format!("web@{name}")));
    let qemu_io = |commands: &[&str]| {
        let address = cluster.uri(&first[1], "web");
        let mut all = vec!["-f", "raw"];
        commands.iter().for_each(|command| all.extend(["-c", *command]));
        all.push(&address);
        run("qemu-io", &all);
    };
    let take = |name: &str| {
        wait_for("a snapshot is taken", 60, || {
            let done = cluster.cli(&first[1], &["disk", "snapshot", "create", "web", name]);
            done.status.success().then_some(())
        });
    };
    qemu_io(&["write -P 1 0 24M", "write -P 2 40M 4M"]);
    take("one");
    qemu_io(&["write -P 3 1M 2M", "discard 41M 1M", "write -P 4 60M 12k"]);
    take("two");
    qemu_io(&["write -P 5 0 2M", "write -P 6 41M 64k", "write -P 1 60M 8k"]);
    take("three");
    qemu_io(&["write -P 7 4k 30M", "write -P 8 60M 4M"]);
    let names = ["one", "two", "three"];
    let before: Vec<Vec<u8>> = names.iter().map(|name| read(&first[1], name)).collect();
    let check = |host: &str| {
        for (name, before) in names.iter().zip(&before) {
            assert!(read(host, name) == *before, "snapshot {name} reads the same at {host}");
        }
    };
    let others: Vec<&str> =
        ["a", "b", "c", "d"].into_iter().filter(|host| !first.iter().any(|one| one == host)).collect();
    cluster.order("kill", &first[0]);
    wait_for("the lost copy is made anew", SECONDS, || {
        (!cluster.holders(&first[1], "web").contains(&first[0])).then_some(())
    });
    cluster.wait_until_whole(&first[1], "web");
    wait_for_copies(&cluster, &first[1], 3);
    cluster.order("kill", &first[1]);
    let survivor = others[0];
    wait_for("the other lost copy is made anew", SECONDS, || {
        let holders = cluster.cli(survivor, &["--json", "disk", "show", "web"]);
        (holders.status.success() && cluster.holders(survivor, "web") == others).then_some(())
    });
    cluster.wait_until_whole(survivor, "web");
    wait_for_copies(&cluster, survivor, 3);
    check(survivor);
    let told = said(&cluster.cli(survivor, &["events", "--kind", "snapshot.copied"]));
    assert!(told.contains("has snapshot three, too"), "{told}");
}

#[test]
fn a_program_has_the_guest_hold_still_while_a_snapshot_is_taken() {
    let site = Site::new(&Shape::Two { size_mib: 256 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "16MiB"]);
    let (hook, log) = (site.path("hook"), site.path("hook.log"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\ntest \"$1 $3\" != 'freeze refused' || exit 3\ntest \"$1 $3\" != 'thaw late'\n",
        text(&log)
    );
    std::fs::write(&hook, script).expect("it can be written");
    run("chmod", &["+x", text(&hook)]);
    let take = |name: &str| {
        let words = ["disk", "snapshot", "create", "web", name, "--freeze-by", text(&hook)];
        site.cli(&words)
    };
    wait_for("the first snapshot is taken", 30, || take("first").status.success().then_some(()));
    std::fs::remove_file(&log).expect("it is there");
    let done = take("monday");
    assert!(done.status.success() && said(&done).contains("frozen by"), "{}", said(&done));
    let refused = take("refused");
    assert!(
        !refused.status.success() && said(&refused).contains("no snapshot was taken"),
        "{}",
        said(&refused)
    );
    let late = take("late");
    assert!(!late.status.success() && said(&late).contains("thaw it by hand"), "{}", said(&late));
    let told = std::fs::read_to_string(&log).expect("it is there");
    let steps = ["freeze web monday", "thaw web monday", "freeze web refused", "thaw web refused"];
    let all: Vec<&str> = steps.into_iter().chain(["freeze web late", "thaw web late"]).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), all);
    let listed = site.ask(&["disk", "snapshot", "list", "web"]);
    assert!(listed.contains("late") && !listed.contains("refused"), "{listed}");
    server.stop();
}
