//! Disks that get another layout while guests use them: mirrors become rows, rows other rows, and mirrors again. Hosts are killed on the
//! way, moves turn round and pause, under a load that verifies.

use super::cluster::{Cluster, SECONDS, assert_verified};
use super::members::expect;
use super::repair::stamped;
use super::tools::{command, run, said, text, wait_for};
use base::units::MIB;
use std::process::{Child, Stdio};

/// Blocks that only this test writes stand behind those of the load.
const OWN: u64 = 160 * MIB;
const SIZE: &str = "192MiB";

/// fio over most of the disk, with writes of several sizes that it reads back.
fn load(uri: &str, seconds: u64) -> Child {
    let mut fio = command("fio");
    fio.args([
        "--name=load",
        "--ioengine=nbd",
        "--rw=randrw",
        "--rwmixread=30",
        "--iodepth=8",
        "--size=160m",
    ]);
    fio.args(["--bssplit=4k/60:16k/20:64k/15:512k/5", "--verify=crc32c", "--verify_backlog=64"]);
    fio.args(["--verify_fatal=1", "--serialize_overlap=1", "--verify_state_save=0"]);
    fio.args(["--time_based", &format!("--runtime={seconds}"), &format!("--uri={uri}")]);
    fio.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("fio, of the Debian package fio")
}

impl Cluster {
    /// Waits until a disk is as its policy says, with a layout that is described so.
    fn wait_until_moved(&self, host: &str, disk: &str, layout: &str) {
        wait_for(&format!("it has become {layout}"), 2 * SECONDS, || {
            let shown = self.cli(host, &["--json", "disk", "show", disk]);
            let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
            let text = said(&self.cli(host, &["disk", "show", disk]));
            let is_there = shown["compliance"]["state"] == "compliant" && !text.contains("moving: ");
            (is_there && text.contains(layout)).then_some(())
        });
    }

    /// Waits until part of a disk has moved, and not all.
    fn wait_until_moving(&self, host: &str, disk: &str) {
        wait_for("a part of it has moved", SECONDS, || {
            let text = said(&self.cli(host, &["disk", "show", disk]));
            (text.contains("moving: ") && !text.contains("counts below 0 B")).then_some(())
        });
    }

    fn write_own(&self, host: &str, round: u64) {
        let mut client = self.attach(host, "web");
        for number in 0..64 {
            client.write(OWN + number * 384 * 1024, &stamped(round * 1000 + number)).expect("it writes");
        }
    }

    /// All hosts say how far a paused disk is, and its owner's metrics do.
    fn check_paused(&self, disk: &str) {
        let figures = wait_for("both hosts say the same", SECONDS, || {
            let [a, b] = ["a", "b"].map(|host| self.json(host, &["disk", "show", disk])["moving"].clone());
            (a == b).then_some(a)
        });
        if figures.is_null() {
            return; // All had moved before it was to pause.
        }
        let sum = figures["moved_bytes"].as_u64().zip(figures["remaining_bytes"].as_u64());
        assert_eq!(sum.map(|(moved, left)| moved + left), Some(192 * MIB), "{figures}");
        assert_eq!((&figures["is_paused"], &figures["is_back"]), (&true.into(), &false.into()), "{figures}");
        let compliance = self.json("b", &["disk", "show", disk])["compliance"].to_string();
        assert!(compliance.contains("% of it moved, paused"), "{compliance}");
        let metrics = self.metrics("a");
        for (name, value) in [("paused", "1.0".to_owned()), ("stands_still", "0.0".to_owned())] {
            let line = format!("drystone_disk_move_{name}{{disk=\"{disk}\"}} {value}");
            assert!(metrics.contains(&line), "{line}");
        }
        for name in ["moved_bytes", "remaining_bytes"] {
            assert!(metrics.contains(&format!("drystone_disk_move_{name}{{disk=\"{disk}\"}}")), "{name}");
        }
    }

    /// What a host prints for Prometheus.
    fn metrics(&self, host: &str) -> String {
        let socket = self.path(host).join("d/api.sock");
        run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/metrics"])
    }

    #[track_caller]
    fn check_own(&self, host: &str, round: u64) {
        let mut client = self.attach_soon(host, "web");
        for number in 0..64 {
            let found = client.read(OWN + number * 384 * 1024, 4096);
            assert!(found == Ok(stamped(round * 1000 + number)), "round {round}, block {number} differs");
        }
    }
}

#[test]
fn a_mirror_becomes_rows_and_other_rows_and_a_mirror_again_under_load() {
    let cluster = Cluster::start(6);
    cluster.json("a", &["disk", "create", "web", SIZE, "--policy", "default,stripes=1", "--share"]);
    cluster.attach_soon("a", "web");
    let steps = [
        (vec!["method=parity"], "RAID-5"),
        (vec!["failures_to_tolerate=2"], "RAID-6 4+2"),
        (vec!["method=mirror", "failures_to_tolerate=1"], "mirror of 2 copies"),
    ];
    for (round, (rules, layout)) in (1..).zip(steps) {
        cluster.write_own("a", round);
        let load = load(&cluster.uri("a", "web"), 15);
        cluster.wait_for_load("a", "web");
        let mut arguments = vec!["disk", "set", "web"];
        arguments.extend(rules);
        let set = cluster.cli("a", &arguments);
        assert!(set.status.success(), "{}", said(&set));
        cluster.wait_until_moving("a", "web");
        // One that holds some of it goes, and the owner's host does not.
        cluster.order("kill", "d");
        std::thread::sleep(std::time::Duration::from_secs(1));
        cluster.order("start", "d");
        cluster.wait_until_moved("a", "web", layout);
        cluster.check_own("b", round);
        assert_verified(load);
        cluster.check_own("a", round);
    }
    // Nothing of the former layouts is left.
    cluster.wait_for_components(2);
    let events = said(&cluster.cli("b", &["events"]));
    assert!(events.contains("all of it has moved"), "{events}");
}

#[test]
fn a_move_pauses_turns_round_and_outlives_its_owner() {
    let cluster = Cluster::start(4);
    cluster.json("a", &["disk", "create", "web", SIZE, "--policy", "default,stripes=1", "--share"]);
    expect(&cluster.cli("a", &["disk", "set", "web", "move", "pause"]), 5, "is not being moved");
    cluster.attach_soon("a", "web");
    cluster.write_own("a", 1);
    let load = load(&cluster.uri("a", "web"), 12);
    cluster.wait_for_load("a", "web");
    cluster.json("a", &["disk", "set", "web", "method=parity"]);
    cluster.wait_until_moving("a", "web");
    cluster.json("a", &["disk", "set", "web", "move", "pause"]);
    let shown = said(&cluster.cli("a", &["disk", "show", "web"]));
    assert!(shown.contains("pauses") || shown.contains("RAID-5"), "{shown}");
    cluster.check_paused("web");
    cluster.check_own("b", 1);
    expect(&cluster.cli("a", &["disk", "set", "web", "stripes=2"]), 3, "moved into another layout");
    expect(&cluster.cli("a", &["disk", "resize", "web", "256MiB"]), 3, "moved into another layout");
    cluster.json("a", &["disk", "set", "web", "move", "back"]);
    cluster.wait_until_moved("a", "web", "mirror of 2 copies");
    cluster.check_own("c", 1);
    assert_verified(load);
    cluster.json("a", &["disk", "set", "web", "method=parity"]);
    cluster.wait_until_moving("a", "web");
    cluster.order("kill", "a");
    cluster.check_own("b", 1);
    cluster.order("start", "a");
    cluster.wait_until_moved("b", "web", "RAID-5 3+1");
    cluster.check_own("c", 1);
}

/// A disk that moved back began again at once: the policy that it followed still asked for the other layout.
#[test]
fn a_disk_that_moves_back_follows_its_policy_no_more() {
    let cluster = Cluster::start(4);
    cluster.json("a", &["policy", "create", "gold", "default", "stripes=1"]);
    for name in ["web", "db"] {
        cluster.json("a", &["disk", "create", name, SIZE, "--policy", "gold", "--share"]);
        cluster.attach_soon("a", name);
    }
    cluster.write_own("a", 1);
    let asked = ["what-if", "set-policy", "--followers", "gold", "gold,method=parity"];
    let forecast = cluster.json("b", &asked);
    let disks = forecast["disks"].as_array().expect("both follow");
    assert!(disks.len() == 2 && disks.iter().all(|disk| disk["change"] == "moves"), "{forecast}");
    let room = &forecast["move_rooms"][0];
    assert!(room["peak_bytes"].as_u64() >= room["used_bytes"].as_u64(), "{forecast}");
    assert!(forecast["verdict"].as_str().is_some_and(|text| text.contains("2 disks move")), "{forecast}");
    let shown = said(&cluster.cli("b", &asked));
    assert!(shown.contains("USED AT MOST") && shown.contains("moves"), "{shown}");

    cluster.json("a", &["policy", "set", "gold", "method=parity"]);
    wait_for("it moves", SECONDS, || {
        let shown = cluster.json("a", &["disk", "show", "web"]);
        (shown["moving"].is_object() && shown["compliance"]["state"] == "moving").then_some(())
    });
    let back = wait_for("it turns", SECONDS, || {
        // While the components of the other layout are made there is nothing to turn.
        let turned = cluster.cli("a", &["--json", "disk", "set", "web", "move", "back"]);
        turned.status.success().then(|| serde_json::from_slice::<serde_json::Value>(&turned.stdout).ok())?
    });
    assert!(
        back["follows"].is_null()
            && back["warnings"][0] == "web follows policy gold no more: it has rules of its own",
        "{back}"
    );
    cluster.wait_until_moved("a", "db", "RAID-5");
    cluster.wait_until_moved("a", "web", "mirror of 2 copies");
    let policy = cluster.json("b", &["policy", "show", "gold"]);
    assert_eq!(policy["disks"].as_array().map(Vec::len), Some(1), "{policy}");
    let events = said(&cluster.cli("b", &["events", "--about", "web"]));
    assert!(events.contains("it follows policy gold no more and has rules of its own"), "{events}");
    cluster.check_own("b", 1);
}
