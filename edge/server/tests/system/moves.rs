//! Disks that get another layout while guests use them: mirrors become rows, rows other rows, and mirrors again. Hosts are killed on the
//! way, moves turn round and pause, under a load that verifies.

use super::cluster::{Cluster, SECONDS, assert_verified};
use super::members::expect;
use super::nbd::Client;
use super::repair::{configure, stamped};
use super::tools::{command, run, said, text, wait_for, wait_or_say};
use base::units::MIB;
use std::collections::BTreeMap;
use std::path::Path;
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
        let asked =
            [&["disk", "show", disk][..], &["--json", "disk", "show", disk], &["health"], &["events"]];
        let say = || asked.map(|arguments| said(&self.cli(host, arguments))).join("\n");
        wait_or_say(&format!("it has become {layout}"), 2 * SECONDS, say, || {
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
        self.check_own_of(host, "web", round);
    }

    /// The same of another disk, or of a snapshot.
    #[track_caller]
    fn check_own_of(&self, host: &str, disk: &str, round: u64) {
        let mut client = self.attach_soon(host, disk);
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

/// Without a guest no host owned a whole disk, and it stood where it was until one came.
#[test]
fn a_disk_that_nobody_has_attached_moves() {
    let cluster = Cluster::start(3);
    cluster.json("a", &["disk", "create", "web", SIZE, "--policy", "default,stripes=1", "--share"]);
    cluster.json("b", &["disk", "set", "web", "method=parity"]);
    cluster.wait_until_moved("b", "web", "RAID-5 2+1");
    cluster.write_own("c", 1);
    cluster.check_own("a", 1);
}

/// Snapshots are read where they were taken until the other layout has them; and clones of one as ever.
#[test]
fn a_disk_moves_with_its_snapshots_under_load() {
    let cluster = Cluster::start(4);
    cluster.json("a", &["disk", "create", "web", SIZE, "--policy", "default,stripes=1", "--share"]);
    cluster.attach_soon("a", "web");
    for round in 1..=2 {
        cluster.write_own("a", round);
        cluster.json("a", &["disk", "snapshot", "create", "web", &format!("s{round}")]);
    }
    cluster.json("a", &["disk", "clone", "web@s1", "twin"]);
    cluster.write_own("a", 3);
    expect(&cluster.cli("a", &["disk", "set", "web", "method=parity"]), 3, "rows with parity");
    let load = load(&cluster.uri("a", "web"), 15);
    cluster.wait_for_load("a", "web");
    cluster.json("a", &["disk", "set", "web", "stripes=2,compression=lz4"]);
    cluster.wait_until_moving("a", "web");
    expect(&cluster.cli("a", &["disk", "snapshot", "create", "web", "s3"]), 3, "moved into another layout");
    let check = |host: &str| {
        for (disk, round) in [("web", 3), ("web@s1", 1), ("web@s2", 2), ("twin", 1)] {
            cluster.check_own_of(host, disk, round);
        }
    };
    check("b");
    cluster.order("kill", "d");
    std::thread::sleep(std::time::Duration::from_secs(1));
    cluster.order("start", "d");
    check("c");
    cluster.wait_until_moved("a", "web", "stripe of 2 columns");
    assert_verified(load);
    check("a");
    let snapshots = cluster.json("b", &["disk", "snapshot", "list", "web"]);
    let copies: Vec<_> =
        snapshots.as_array().expect("a list").iter().map(|one| one["copies"].as_u64()).collect();
    assert_eq!(copies, [Some(2); 2], "{snapshots}");
    // Nothing of the former layout is left: two columns of two copies, and two of the clone.
    cluster.wait_for_components(6);
    for host in ["b", "c", "d"] {
        check(host);
    }
    cluster.json("a", &["disk", "snapshot", "create", "web", "s3"]);
}

/// A disk that moves from the two hosts with much room onto all of them, and another disk with a copy on each, which fills the small ones.
struct Crowded {
    cluster: Cluster,
    load: Child,
    filler: Client,
    moved_bytes: u64,
}

impl Crowded {
    /// Hosts `a` and `b` are large, the others are of this size. The move is paused after its first part while the small devices are filled,
    /// and goes on then.
    fn start(small: &[&str], size: &str) -> Crowded {
        let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
        for name in ["a", "b"] {
            configure(folder.path(), name, Path::new("capacity.img"), "4GiB");
        }
        small.iter().for_each(|name| configure(folder.path(), name, Path::new("capacity.img"), size));
        let hosts = 2 + small.len();
        let cluster = Cluster::start_in(folder, hosts);
        cluster.json("a", &["disk", "create", "web", "384MiB", "--policy", "default,stripes=1", "--share"]);
        cluster.attach_soon("a", "web");
        assert_eq!(cluster.holders("a", "web"), ["a", "b"], "they have the most room");
        let copies = format!("default,failures_to_tolerate={},stripes=1", hosts - 1);
        cluster.json("a", &["disk", "create", "filler", "2GiB", "--policy", &copies, "--share"]);
        let filler = cluster.attach_soon("a", "filler");
        // All of it is allocated, so that its guest needs no room where it has moved to already.
        let content: Vec<u8> = (0..256).flat_map(stamped).collect();
        let mut client = cluster.attach("a", "web");
        (0..384).for_each(|part| client.write(part * MIB, &content).expect("it writes"));
        drop(client);
        cluster.write_own("a", 1);
        let load = load(&cluster.uri("a", "web"), 40);
        cluster.wait_for_load("a", "web");
        cluster.json("a", &["disk", "set", "web", "method=parity"]);
        cluster.wait_until_moving("a", "web");
        cluster.json("a", &["disk", "set", "web", "move", "pause"]);
        let mut crowded = Crowded { cluster, load, filler, moved_bytes: 0 };
        crowded.fill();
        crowded.moved_bytes = crowded.moved_bytes().expect("it is paused");
        crowded.cluster.json("a", &["disk", "set", "web", "move", "resume"]);
        crowded
    }

    fn moved_bytes(&self) -> Option<u64> {
        self.cluster.json("a", &["disk", "show", "web"])["moving"]["moved_bytes"].as_u64()
    }

    /// Writes the filler until the small devices are full: its copies there say so, and its guest feels nothing.
    fn fill(&mut self) {
        let content: Vec<u8> = (0..256).flat_map(stamped).collect();
        for part in 0..2048 {
            self.filler.write(part * MIB, &content).expect("two copies have room");
            let disks = self.cluster.json("a", &["disk", "list"]);
            let filler = disks.as_array().and_then(|all| all.iter().find(|one| one["name"] == "filler"));
            if filler.is_some_and(|one| one["trouble"].to_string().contains("has no room on")) {
                return;
            }
        }
        panic!("2 GiB fill no device");
    }

    /// Waits until the move stands still, and all that tells of it says why: a device that has no room. Of several that have none, those are
    /// named that refused something.
    fn wait_until_it_stands_still(&self, devices: &[&str]) {
        let is_told = |text: &str| {
            text.contains("no room on") && devices.iter().any(|host| text.contains(&format!(" of {host}")))
        };
        let cluster = &self.cluster;
        for host in ["a", "b"] {
            let moving = wait_for("it says why it stands still", SECONDS, || {
                let moving = cluster.json(host, &["disk", "show", "web"])["moving"].clone();
                moving["stands_still"].as_str().is_some_and(is_told).then_some(moving)
            });
            assert_eq!(moving["moved_bytes"], self.moved_bytes, "nothing is passed that a component lacks");
            assert!(moving["bytes_per_second"].is_null() && moving["is_paused"] == false, "{moving}");
            let components = cluster.json(host, &["disk", "show", "web"])["components"].clone();
            let all = components.as_array().expect("a list");
            assert!(
                all.iter().all(|one| one["standing"] == "active"),
                "what has moved is protected: {all:?}"
            );
            let shown = said(&cluster.cli(host, &["disk", "show", "web"]));
            assert!(shown.contains("it stands still: ") && is_told(&shown), "{shown}");
        }
        let metrics = cluster.metrics("a");
        assert!(metrics.contains("drystone_disk_move_stands_still{disk=\"web\"} 1.0"), "{metrics}");
        let findings = cluster.findings("a");
        let full = findings.iter().filter(|one| one["code"] == "space.low").map(|one| one.to_string());
        let full: Vec<String> = full.collect();
        let is_found = |host: &&str| full.iter().any(|one| one.contains(&format!("of {host}")));
        assert!(devices.iter().all(is_found), "{findings:?}");
    }
}

/// A device fills up while a disk moves onto it: guests of that disk feel nothing, the move says what it waits for, and goes on by itself.
#[test]
fn a_move_onto_a_device_that_fills_up_waits_and_goes_on_with_the_room() {
    let crowded = Crowded::start(&["c"], "512MiB");
    let cluster = &crowded.cluster;
    crowded.wait_until_it_stands_still(&["c"]);
    cluster.check_own("b", 1);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(crowded.moved_bytes(), Some(crowded.moved_bytes), "nothing is passed that a component lacks");
    let Crowded { cluster, load, filler, .. } = crowded;
    drop(filler);
    cluster.json("a", &["disk", "delete", "filler", "--confirm", "filler", "--detach-clients"]);
    cluster.wait_until_moved("a", "web", "RAID-5 2+1");
    cluster.check_own("c", 1);
    assert_verified(load);
    cluster.check_own("a", 1);
    cluster.assert_equal("web", ["a", "c"]);
    cluster.wait_for_components(3);
}

/// Two devices are full, so that no row has room for what is copied. The move is turned back while it stands still.
#[test]
fn a_move_that_stands_still_for_lack_of_room_goes_back() {
    let crowded = Crowded::start(&["c", "d"], "512MiB");
    let cluster = &crowded.cluster;
    crowded.wait_until_it_stands_still(&["c", "d"]);
    cluster.check_own("b", 1);
    cluster.json("a", &["disk", "set", "web", "move", "back"]);
    cluster.wait_until_moved("a", "web", "mirror of 2 copies");
    assert_eq!(cluster.holders("a", "web"), ["a", "b"]);
    cluster.check_own("d", 1);
    assert_verified(crowded.load);
    cluster.check_own("a", 1);
    cluster.assert_equal("web", ["a", "b"]);
}

/// Bytes in use by capacity device, as `what-if` names it.
type Used = BTreeMap<String, u64>;

/// What a device holds at most while a disk moves.
struct Peak {
    device: String,
    told: u64,
    /// Told for data that is scattered.
    scattered: u64,
    real: u64,
}

/// A granule of disks as small as here; the told peak has two of them on both sides.
const GRANULE: u64 = 64 * MIB;
/// Extents that a device has promised and not given back yet.
const SLACK: u64 = 16 * MIB;

impl Cluster {
    /// What devices hold now.
    fn used(&self) -> Used {
        let listed = self.json("a", &["device", "list", "--cluster"]);
        let mut found = Used::new();
        for host in listed["hosts"].as_array().expect("hosts") {
            for device in host["devices"].as_array().expect("devices") {
                let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
                let name = format!("{} of {}", text(&device["path"]), text(&host["host"]));
                found.insert(name, device["used_bytes"].as_u64().expect("a number"));
            }
        }
        found
    }

    /// Waits until what was written stands in its extents, and all hosts have heard of it.
    fn settle(&self) {
        let mut last = (self.used(), std::time::Instant::now());
        wait_for("devices settle", SECONDS, || {
            let used = self.used();
            if used != last.0 {
                last = (used, std::time::Instant::now());
            }
            (last.1.elapsed().as_secs() >= 3).then_some(())
        });
    }

    /// Moves a disk, and looks what devices hold meanwhile.
    fn move_and_sample(&self, disk: &str, policy: &str, layout: &str) -> Vec<Peak> {
        self.settle();
        let told = self.json("a", &["what-if", "set-policy", disk, &format!("default,stripes=1,{policy}")]);
        let told = told["move_rooms"].as_array().expect("it moves").clone();
        let now = self.used();
        let mut peaks = now.clone();
        self.json("a", &["disk", "set", disk, policy]);
        wait_for("it has moved", 2 * SECONDS, || {
            for (device, used) in self.used() {
                let peak = peaks.entry(device).or_default();
                *peak = used.max(*peak);
            }
            let shown = self.json("a", &["disk", "show", disk]);
            (shown["moving"].is_null() && shown["compliance"]["state"] == "compliant").then_some(())
        });
        self.wait_until_moved("a", disk, layout);
        let peak = |room: &serde_json::Value| {
            let device = room["device"].as_str().expect("a name").to_owned();
            let bytes = |key: &str| room[key].as_u64().expect("a number");
            assert_eq!(bytes("used_bytes"), now[&device], "{device}");
            let (told, scattered, real) =
                (bytes("peak_bytes"), bytes("scattered_peak_bytes"), peaks[&device]);
            let figures = [now[&device], told, scattered, real].map(|bytes| bytes / MIB);
            println!("{disk} to {layout}, {device}: used, told, if scattered, real peak in MiB {figures:?}");
            Peak { device, told, scattered, real }
        };
        told.iter().map(peak).collect()
    }

    /// Moves a disk, and compares what devices held meanwhile with what was told before. `most` is how much more than that may be told.
    fn move_within_told(&self, disk: &str, policy: &str, layout: &str, most: u64) {
        let peaks = self.move_and_sample(disk, policy, layout);
        assert!(!peaks.is_empty(), "devices get something");
        for Peak { device, told, scattered, real } in peaks {
            assert!(real <= told, "{device}: {} MiB in use, {} MiB were told", real / MIB, told / MIB);
            assert!(told <= real + most, "{device}: {} MiB in use, {} MiB were told", real / MIB, told / MIB);
            assert!(told <= scattered, "{device}");
        }
    }
}

/// What a move takes of each device at most is told before it begins, of a disk that is full and of one that is written in part.
#[test]
fn devices_hold_no_more_while_a_disk_moves_than_was_told() {
    let cluster = Cluster::start(4);
    let content: Vec<u8> = (0..256).flat_map(stamped).collect();
    for (disk, parts) in [("web", 512), ("db", 129)] {
        cluster.json("a", &["disk", "create", disk, "512MiB", "--policy", "default,stripes=1", "--share"]);
        let mut client = cluster.attach_soon("a", disk);
        (0..parts).for_each(|part| client.write(part * MIB, &content).expect("it writes"));
        cluster.move_within_told(disk, "method=parity", "RAID-5 3+1", 2 * GRANULE / 3 + SLACK);
        cluster.move_within_told(disk, "method=mirror", "mirror of 2 copies", 2 * GRANULE + SLACK);
        for part in 0..parts {
            assert!(client.read(part * MIB, MIB as u32).as_ref() == Ok(&content), "part {part} differs");
        }
        drop(client);
        cluster.json("a", &["disk", "delete", disk, "--confirm", disk, "--detach-clients"]);
        cluster.wait_for_components(0);
    }
}

/// Parts of 1 MiB that lie apart take extents of all members of their rows: that they may is told, too.
#[test]
fn a_scattered_disk_takes_no_more_than_was_told_for_one() {
    let cluster = Cluster::start(4);
    cluster.json("a", &["disk", "create", "web", "384MiB", "--policy", "default,stripes=1", "--share"]);
    let mut client = cluster.attach_soon("a", "web");
    (0..128).for_each(|part| client.write(part * 3 * MIB, &stamped(part)).expect("it writes"));
    // A host that has just started is not reckoned with before it was heard.
    wait_for("all hosts are reckoned with", SECONDS, || {
        let told = cluster.json("a", &["what-if", "set-policy", "web", "default,stripes=1,method=parity"]);
        (told["move_rooms"].as_array().map(Vec::len) == Some(4)).then_some(())
    });
    let peaks = cluster.move_and_sample("web", "method=parity", "RAID-5 3+1");
    assert_eq!(peaks.len(), 4, "all devices get something");
    for Peak { device, scattered, real, .. } in &peaks {
        assert!(real <= scattered, "{device}: {real} in use, {scattered} were told");
    }
    assert!(peaks.iter().any(|one| one.real > one.told), "1 MiB of 3 takes more than if it lay together");
}
