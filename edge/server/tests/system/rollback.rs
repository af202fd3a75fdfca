//! Rollbacks of disks to snapshots, where hosts and copies are lost in the middle.

use super::cluster::{Cluster, SECONDS};
use super::host::{Shape, Site};
use super::nbd::Client;
use super::tools::{qemu_io, said, wait_for};
use serde_json::Value;
use std::time::Duration;

/// Bytes that are copied in a second: so few that there is a middle.
const SLOW: &str = "bytes_limit=16MiB";

/// What a snapshot `monday` holds, and what is written over it then.
const MONDAY: [&str; 3] = ["write -P 1 0 48M", "write -P 2 60M 4M", "write -P 3 80M 16M"];
const SINCE: [&str; 4] = ["write -P 9 0 40M", "discard 60M 4M", "write -P 8 64M 8M", "write -z 80M 16M"];
const IS_MONDAY: [&str; 6] = [
    "read -P 1 0 48M",
    "read -P 0 48M 12M",
    "read -P 2 60M 4M",
    "read -P 0 64M 16M",
    "read -P 3 80M 16M",
    "read -P 0 96M 32M",
];
const IS_SINCE: [&str; 5] =
    ["read -P 9 0 40M", "read -P 1 40M 8M", "read -P 0 48M 16M", "read -P 8 64M 8M", "read -P 0 72M 56M"];

const ROLL_BACK: [&str; 6] = ["disk", "snapshot", "rollback", "web", "monday", "--confirm"];

fn roll_back<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ROLL_BACK[..], &["web"], more].concat()
}

fn names(listed: &Value) -> Vec<String> {
    let all = listed.as_array().expect("a list").iter();
    all.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// Waits until a rollback is in its middle, by what `disk show` says.
fn wait_for_middle(show: impl Fn() -> Value) {
    wait_for("the rollback is in its middle", SECONDS, || {
        let rollback = &show()["rollback"];
        let copied = rollback["copied_bytes"].as_u64().unwrap_or(0);
        (copied > 4 << 20 && copied < rollback["changed_bytes"].as_u64()?).then_some(())
    });
}

#[test]
fn a_rollback_whose_host_is_killed_is_told_and_repeated_and_no_client_gets_the_disk_before() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "128MiB"]);
    let uri = site.uri("web");
    qemu_io(&uri, &MONDAY);
    // The group is converted in the first second.
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "web", "monday"]).status.success().then_some(())
    });
    qemu_io(&uri, &SINCE);
    site.ask(&["disk", "set", "web", SLOW]);
    std::thread::scope(|scope| {
        let done = scope.spawn(|| {
            wait_for("the client is gone", 30, || {
                let done = site.cli(&roll_back(&["--keep", "before"]));
                (!said(&done).contains("in use")).then_some(done)
            })
        });
        wait_for_middle(|| site.json(&["disk", "show", "web"]));
        let again = site.cli(&roll_back(&[]));
        assert!(!again.status.success() && said(&again).contains("being rolled back"), "{}", said(&again));
        qemu_io(&site.uri("web@monday"), &["read -P 1 0 1M"]);
        let killer = server.kill_after(Duration::ZERO);
        server.killed(killer);
        let done = done.join().expect("it ends");
        assert!(!done.status.success() && said(&done).contains("repeat"), "{}", said(&done));
    });
    let server = site.start();
    let refused = Client::attach(&site.path("d/nbd.sock"), "web");
    assert!(refused.is_err(), "the disk holds parts of two states");
    let shown = site.json(&["disk", "show", "web"]);
    assert_eq!(shown["rollback"]["state"], "unfinished", "{shown}");
    let shown = site.ask(&["disk", "show", "web"]);
    assert!(shown.contains("to snapshot monday was cut short"), "{shown}");
    let health = wait_for("health tells", 30, || {
        let health = said(&site.cli(&["--json", "health"]));
        health.contains("rollback.unfinished").then_some(health)
    });
    assert!(health.contains("drystone disk snapshot rollback web before"), "{health}");
    let refusals: [&[&str]; 4] = [
        &["disk", "snapshot", "create", "web", "other"],
        &["disk", "snapshot", "delete", "web", "monday", "--confirm", "monday"],
        &["disk", "snapshot", "delete", "web", "before", "--confirm", "before"],
        &["disk", "clone", "web", "copy"],
    ];
    for words in refusals {
        let refused = site.cli(words);
        assert!(
            !refused.status.success() && said(&refused).contains("roll"),
            "{words:?}: {}",
            said(&refused)
        );
    }
    // What guests had written last can be had all the same.
    qemu_io(&site.uri("web@before"), &IS_SINCE);
    site.ask(&["disk", "set", "web", "bytes_limit=none"]);
    let done = site.json(&roll_back(&[]));
    assert_eq!((done["state"].as_str(), done["kept"].as_str()), (Some("done"), Some("before")), "{done}");
    assert_eq!(done["copied_bytes"], done["changed_bytes"], "{done}");
    qemu_io(&uri, &IS_MONDAY);
    assert_eq!(names(&site.json(&["disk", "snapshot", "list", "web"])), ["monday", "before"]);
    assert!(!said(&site.cli(&["--json", "health"])).contains("rollback.unfinished"));
    let events = site.ask(&["events", "--kind", "disk"]);
    assert!(events.contains("is as it was in snapshot monday"), "{events}");
    // Back to what it held before the first attempt, and nothing is kept of what it holds now.
    wait_for("the client is gone", 30, || {
        let words = ["disk", "snapshot", "rollback", "web", "before", "--confirm", "web", "--no-keep"];
        site.cli(&words).status.success().then_some(())
    });
    qemu_io(&uri, &IS_SINCE);
    assert_eq!(names(&site.json(&["disk", "snapshot", "list", "web"])), ["monday", "before"]);
    server.stop();
}

#[test]
fn a_rollback_goes_on_without_a_copy_and_another_host_repeats_what_a_lost_one_began() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "128MiB");
    let third = ["a", "b", "c"].into_iter().find(|host| holders.iter().all(|one| one != host)).expect("one");
    qemu_io(&cluster.uri(&holders[0], "web"), &MONDAY);
    wait_for("the snapshot is taken", SECONDS, || {
        let taken = cluster.cli(&holders[0], &["disk", "snapshot", "create", "web", "monday"]);
        taken.status.success().then_some(())
    });
    qemu_io(&cluster.uri(&holders[0], "web"), &SINCE);
    assert!(cluster.cli("a", &["disk", "set", "web", SLOW]).status.success());
    let begin = |host: &str, words: &[&str]| {
        wait_for("the disk is free", SECONDS, || {
            let done = cluster.cli(host, &roll_back(words));
            let waits = ["in use", "attached", "does not answer", "reached"];
            (!waits.iter().any(|word| said(&done).contains(word))).then_some(done)
        })
    };
    // The host that copies has no copy of the disk. One of the two copies is lost meanwhile.
    std::thread::scope(|scope| {
        let done = scope.spawn(|| begin(third, &["--keep", "before"]));
        wait_for_middle(|| cluster.json(&holders[1], &["disk", "show", "web"]));
        let refused = Client::attach(&cluster.path(&holders[1]).join("d/nbd.sock"), "web");
        assert!(refused.is_err(), "no host lets clients in");
        cluster.order("kill", &holders[0]);
        let done = done.join().expect("it ends");
        assert!(done.status.success(), "{}", said(&done));
    });
    qemu_io(&cluster.uri(&holders[1], "web"), &IS_MONDAY);
    cluster.order("start", &holders[0]);
    cluster.wait_until_whole(&holders[1], "web");
    qemu_io(&cluster.uri(&holders[0], "web"), &IS_MONDAY);
    // Now the host that copies is lost. It is repeated at another one, before that host is back.
    qemu_io(&cluster.uri(&holders[0], "web"), &SINCE);
    std::thread::scope(|scope| {
        scope.spawn(|| begin(third, &["--keep", "second"]));
        wait_for_middle(|| cluster.json(&holders[0], &["disk", "show", "web"]));
        cluster.order("kill", third);
    });
    let told = wait_for("health tells", SECONDS, || {
        let health = said(&cluster.cli(&holders[0], &["--json", "health"]));
        health.contains("rollback.unfinished").then_some(health)
    });
    assert!(told.contains("rollback web second"), "{told}");
    let refused = Client::attach(&cluster.path(&holders[0]).join("d/nbd.sock"), "web");
    assert!(refused.is_err(), "the disk holds parts of two states");
    assert!(cluster.cli(&holders[0], &["disk", "set", "web", "bytes_limit=none"]).status.success());
    let done = begin(&holders[0], &[]);
    assert!(done.status.success(), "{}", said(&done));
    cluster.order("start", third);
    for host in [holders[0].as_str(), holders[1].as_str(), third] {
        wait_for("the disk is served", SECONDS, || {
            Client::attach(&cluster.path(host).join("d/nbd.sock"), "web").ok()
        });
        qemu_io(&cluster.uri(host, "web"), &IS_MONDAY);
    }
    let listed = names(&cluster.json(&holders[0], &["disk", "snapshot", "list", "web"]));
    assert_eq!(listed, ["monday", "before", "second"]);
    let second = cluster.uri(&holders[1], "web@second");
    qemu_io(&second, &IS_SINCE);
}
