//! Snapshots of several disks at one moment: a client writes the disks in turn, and no snapshot has a write that lacks the one before.

use super::cluster::Cluster;
use super::nbd::Client;
use super::tools::{said, wait_for};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BLOCK: u32 = 4096;

/// The number that was last written to an export.
fn number_of(cluster: &Cluster, host: &str, export: &str) -> u64 {
    let data = cluster.attach(host, export).read(0, BLOCK).expect("a snapshot can be read");
    u64::from_le_bytes(data[..8].try_into().expect("eight bytes"))
}

/// A client that writes one number after the other, each to the first disk, and then to the others.
struct Writer {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
}

impl Writer {
    fn start(mut disks: Vec<Client>) -> Writer {
        let (is_over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, counts) = (Arc::clone(&is_over), Arc::clone(&written));
        let thread = std::thread::spawn(move || {
            for number in 1u64.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                for client in &mut disks {
                    let mut data = vec![0; BLOCK as usize];
                    data[..8].copy_from_slice(&number.to_le_bytes());
                    client.write(0, &data).expect("it is acknowledged");
                }
                counts.store(number, Ordering::Relaxed);
            }
        });
        Writer { thread, is_over, written }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("all was answered");
    }
}

fn snapshots(cluster: &Cluster, host: &str, disk: &str) -> Vec<Value> {
    cluster.json(host, &["disk", "snapshot", "list", disk]).as_array().expect("a list").clone()
}

#[test]
fn a_snapshot_of_several_disks_never_lacks_a_write_before_one_that_it_has() {
    let cluster = Cluster::start(3);
    let disks = ["one", "two", "three"];
    for disk in disks {
        cluster.mirrored(disk, "16MiB");
    }
    // Each disk at another host, which owns it.
    let clients = ["a", "b", "c"].iter().zip(disks).map(|(host, disk)| cluster.attach(host, disk)).collect();
    let writer = Writer::start(clients);
    wait_for("each disk is owned where it is written", 60, || {
        let owner = |disk: &str| cluster.json("a", &["disk", "show", disk])["owner"].clone();
        (owner("one") == "a" && owner("two") == "b" && owner("three") == "c").then_some(())
    });
    let (mut taken, rounds) = (0, 25);
    for round in 0..rounds {
        let host = ["a", "b", "c"][round % 3];
        let (name, before) = (format!("s{round}"), writer.written());
        let done = cluster
            .cli(host, &["--json", "disk", "snapshot", "create", "one", "two", "three", "--name", &name]);
        if !done.status.success() {
            // A loaded machine may be slower than guests are made to wait.
            let told = said(&done);
            assert!(told.contains("no disk has the snapshot"), "{told}");
            assert!(
                disks
                    .iter()
                    .all(|disk| snapshots(&cluster, host, disk).iter().all(|one| one["name"] != name))
            );
            continue;
        }
        let made: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(made.as_array().map(Vec::len), Some(3), "{made}");
        let numbers = disks.map(|disk| number_of(&cluster, host, &format!("{disk}@{name}")));
        // A number is written to the disks one after the other.
        let is_of_one_moment = numbers.is_sorted_by(|a, b| a >= b) && numbers[0] - numbers[2] <= 1;
        assert!(
            is_of_one_moment && numbers[2] >= before,
            "{numbers:?} in {name}, {before} were written before"
        );
        taken += 1;
    }
    assert!(taken > rounds / 2, "{taken} of {rounds} were taken");
    println!("{taken} of {rounds} snapshots of 3 disks were taken, {} writes", writer.written());
    let events = said(&cluster.cli("a", &["events", "--kind", "snapshot"]));
    assert!(events.contains("of 3 disks was taken at one moment"), "{events}");
    events.lines().filter(|line| line.contains("writes waited")).take(12).for_each(|line| println!("{line}"));

    // Taken one after the other they differ: what is checked above can fail.
    let differs = (0..20).any(|round| {
        let name = format!("apart{round}");
        for disk in disks {
            cluster.json("a", &["disk", "snapshot", "create", disk, &name]);
        }
        let numbers = disks.map(|disk| number_of(&cluster, "a", &format!("{disk}@{name}")));
        numbers[2] > numbers[0]
    });
    assert!(differs, "the writer is too slow to tell anything");
    writer.end();
}

#[test]
fn an_owner_that_does_not_hold_ends_the_attempt_and_nothing_of_it_is_left_behind() {
    let cluster = Cluster::start(3);
    let disks = ["one", "two"];
    let holders = disks.map(|disk| cluster.mirrored(disk, "16MiB"));
    let create =
        |host: &str, words: &[&str]| cluster.cli(host, &[&["disk", "snapshot", "create"], words].concat());
    for (words, why) in [
        (&["one", "one", "--name", "twice"][..], "named twice"),
        (&["one", "none", "--name", "lacks"], "none"),
        (&["one", "two", "three"], "--name SNAPSHOT"),
        (&["one", "two", "--name", "a b"], "is not a name"),
    ] {
        let refused = create("a", words);
        assert!(!refused.status.success() && said(&refused).contains(why), "{}", said(&refused));
    }
    // Nobody has them: hosts that hold them own them for that.
    wait_for("the first one is taken", 60, || {
        let done = create("a", &["one", "two", "--name", "first"]);
        // A loaded machine may be slower than guests are made to wait.
        assert!(done.status.success() || said(&done).contains("no disk has the snapshot"), "{}", said(&done));
        done.status.success().then_some(())
    });
    let again = create("b", &["one", "two", "--name", "first"]);
    assert!(!again.status.success() && said(&again).contains("first already"), "{}", said(&again));

    // The host of one of the owners stands still.
    let (still, other) = ("a", "b");
    let mut client = cluster.attach(still, "one");
    client.write(0, &[1; BLOCK as usize]).expect("it is acknowledged");
    cluster.wait_for_owner("one", still);
    let writer = Writer::start(vec![cluster.attach(other, "two")]);
    cluster.wait_for_owner("two", other);
    let before = writer.written();
    cluster.order("pause", still);
    let began = Instant::now();
    let second = create(other, &["one", "two", "--name", "second"]);
    // It is tried again, and another host may own the disk by then.
    let (told, is_taken) = (said(&second), second.status.success());
    assert!(is_taken || told.contains("no disk has the snapshot"), "{told}");
    let expected: &[&str] = if is_taken { &["first", "second"] } else { &["first"] };
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    cluster.order("start", still);
    drop(client);
    wait_for("the writer goes on", 30, || (writer.written() > before).then_some(()));
    for disk in disks {
        wait_for("nothing is left behind", 60, || {
            let shown = cluster.cli(other, &["--json", "disk", "snapshot", "list", disk]);
            let list: Value = serde_json::from_slice(&shown.stdout).ok()?;
            let names: Vec<&str> = list.as_array()?.iter().filter_map(|one| one["name"].as_str()).collect();
            (names == expected).then_some(())
        });
    }
    let third = wait_for("the next one is taken", 60, || {
        let done = create(other, &["one", "two", "--name", "third"]);
        done.status.success().then(|| said(&done))
    });
    assert!(third.contains("of 2 disks was taken at one moment"), "{third}");
    writer.end();
    assert!(holders.iter().all(|hosts| hosts.len() == 2));
}
