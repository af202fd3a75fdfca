//! Snapshots of disks, as clients read them: on one host, and where hosts are lost meanwhile.

use super::cluster::{Cluster, assert_verified, verified_load};
use super::host::{Shape, Site};
use super::tools::{run, said, text, wait_for};
use base::units::MIB;
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
    let listed = cluster.json(&hosts[1], &["disk", "snapshot", "list", "web"]);
    let copies: Vec<u64> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["copies"].as_u64()).collect();
    assert_eq!(copies, [2, 2, 1], "the third was taken while one copy was away");
    let health = cluster.json(&hosts[1], &["health"]);
    assert!(health.to_string().contains("do not have three"), "{health}");
    for (name, before) in ["one", "two", "three"].iter().zip(before.iter().chain([&third])) {
        assert!(read(&hosts[0], name) == *before, "snapshot {name} reads the same when the host is back");
    }
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
