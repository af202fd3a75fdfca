//! Disks of rows with parity on real hosts: RAID-5 on three and on four, RAID-6 on six. Hosts are killed under a load that verifies.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::repair::stamped;
use super::tools::{run, said, text, wait_for};
use base::units::MIB;

const KIB: u64 = 1024;

const RAID5: &str = "default,method=parity,stripes=1";
const RAID6: &str = "default,failures_to_tolerate=2,method=parity,stripes=1";

impl Cluster {
    /// A disk with parity; gives its hosts.
    fn with_parity(&self, name: &str, size: &str, policy: &str) -> Vec<String> {
        self.json("a", &["disk", "create", name, size, "--policy", policy, "--share"]);
        self.attach_soon("a", name);
        self.holders("a", name)
    }
}

/// What is written in all sizes and shapes reads the same with every host lost in turn, and from where it was not written.
#[test]
fn what_is_written_reads_the_same_without_any_one_host() {
    let cluster = Cluster::start(4);
    let holders = cluster.with_parity("web", "24MiB", RAID5);
    assert_eq!(holders, ["a", "b", "c", "d"]);
    let shown = said(&cluster.cli("a", &["disk", "show", "web"]));
    assert!(shown.contains("RAID-5 3+1"), "{shown}");
    let mut expected = vec![0u8; 24 * MIB as usize];
    let mut client = cluster.attach("a", "web");
    let writes: [(u64, u64); 9] = [
        (0, 4 * KIB),
        (64 * KIB - 512, 1024),
        (192 * KIB, 192 * KIB),
        (3 * MIB - 4 * KIB, 3 * MIB + 8 * KIB),
        (10 * MIB + 512, 7 * KIB),
        (12 * MIB, 6 * MIB),
        (20 * MIB + 60 * KIB, 8 * KIB),
        (23 * MIB, MIB),
        (4 * KIB, 200 * KIB),
    ];
    let put = |client: &mut super::nbd::Client, expected: &mut Vec<u8>, number: u64, at: u64, len: u64| {
        let bytes: Vec<u8> = (0..len).map(|byte| (byte / 7 + at + number * 31) as u8).collect();
        client.write(at, &bytes).expect("it writes");
        expected[at as usize..(at + len) as usize].copy_from_slice(&bytes);
    };
    for (number, (at, len)) in (0..).zip(writes) {
        put(&mut client, &mut expected, number, at, len);
    }
    client.trim(13 * MIB, 2 * MIB as u32).expect("it trims");
    expected[13 * MIB as usize..15 * MIB as usize].fill(0);
    drop(client);
    for (number, victim) in (10..).zip(["b", "c", "d"]) {
        cluster.order("kill", victim);
        let mut client = cluster.attach("a", "web");
        let read_all = |client: &mut super::nbd::Client| -> Vec<u8> {
            (0..24).flat_map(|part| client.read(part * MIB, MIB as u32).expect("it reads")).collect()
        };
        assert!(read_all(&mut client) == expected, "without {victim} it reads otherwise");
        put(&mut client, &mut expected, number, number * MIB + 100 * KIB, 900 * KIB);
        put(&mut client, &mut expected, number, number * 8 * KIB, 4 * KIB);
        assert!(read_all(&mut client) == expected, "what was written without {victim} reads otherwise");
        drop(client);
        cluster.order("start", victim);
        cluster.wait_until_on("a", "web", &["a", "b", "c", "d"]);
    }
    // The host that owned it goes, and another one serves.
    cluster.order("kill", "a");
    let mut client = cluster.attach_soon("b", "web");
    for part in 0..24 {
        let found = client.read(part * MIB, MIB as u32).expect("it reads");
        assert!(found == expected[(part * MIB) as usize..((part + 1) * MIB) as usize], "part {part}");
    }
}

/// A large write leaves a part of its buffer in the log of its host, which keeps all of it in memory.
#[test]
fn large_writes_go_on_when_all_buffers_are_in_use() {
    let cluster = Cluster::start(4);
    cluster.with_parity("web", "64MiB", RAID5);
    let mut client = cluster.attach("a", "web");
    let written = |number: u64| vec![number as u8 + 1; MIB as usize];
    for number in 0..160 {
        client.write(number % 64 * MIB, &written(number)).expect("it writes");
    }
    for number in 96..160 {
        let found = client.read(number % 64 * MIB, MIB as u32).expect("it reads");
        assert!(found == written(number), "write {number}");
    }
}

#[test]
fn raid_5_survives_a_host_that_is_killed_under_load_and_becomes_whole() {
    let cluster = Cluster::start(4);
    cluster.with_parity("web", "48MiB", RAID5);
    for victim in ["c", "d"] {
        let load = verified_load(&cluster.uri("a", "web"), 4);
        cluster.wait_for_load("a", "web");
        cluster.order("kill", victim);
        std::thread::sleep(std::time::Duration::from_secs(1));
        cluster.order("start", victim);
        assert_verified(load);
        cluster.wait_until_on("a", "web", &["a", "b", "c", "d"]);
    }
    run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &cluster.uri("a", "web"), &cluster.uri("d", "web")],
    );
}

#[test]
fn raid_6_survives_two_hosts_that_are_killed_under_load() {
    let cluster = Cluster::start(6);
    let holders = cluster.with_parity("web", "48MiB", RAID6);
    assert_eq!(holders.len(), 6);
    let load = verified_load(&cluster.uri("a", "web"), 6);
    cluster.wait_for_load("a", "web");
    cluster.order("kill", "e");
    std::thread::sleep(std::time::Duration::from_secs(1));
    cluster.order("kill", "f");
    assert_verified(load);
    let mut client = cluster.attach("b", "web");
    client.write(40 * MIB, &stamped(7)).expect("it writes");
    assert!(client.read(40 * MIB, 4096) == Ok(stamped(7)));
    drop(client);
    for host in ["e", "f"] {
        cluster.order("start", host);
    }
    cluster.wait_until_on("a", "web", &["a", "b", "c", "d", "e", "f"]);
}

/// What a lost host had is made anew on another one, at the same place of the rows.
#[test]
fn what_a_lost_host_had_is_made_anew_on_another() {
    let cluster = Cluster::start(5);
    cluster.set("repair-delay", "2s");
    let holders = cluster.with_parity("web", "24MiB", RAID5);
    let all = ["a", "b", "c", "d", "e"];
    let spare = all.into_iter().find(|host| !holders.iter().any(|one| one == host)).expect("one is left");
    let victim = holders.iter().rev().find(|host| *host != "a").expect("several hold it").clone();
    let mut client = cluster.attach("a", "web");
    for number in 0..384 {
        client.write(number * 64 * KIB, &stamped(number)).expect("it writes");
    }
    drop(client);
    cluster.order("kill", &victim);
    let mut expected: Vec<&str> = holders.iter().map(String::as_str).filter(|one| *one != victim).collect();
    expected.push(spare);
    cluster.wait_until_on("a", "web", &expected);
    // Another one goes: what is read now follows from what was made anew.
    let next = expected.iter().find(|host| **host != "a" && **host != spare).expect("several hold it");
    cluster.order("kill", next);
    let mut client = cluster.attach("a", "web");
    for number in 0..384 {
        assert!(client.read(number * 64 * KIB, 4096) == Ok(stamped(number)), "block {number} differs");
    }
}

#[test]
fn a_policy_of_rows_that_the_hosts_cannot_meet_is_refused_with_the_way_out() {
    let cluster = Cluster::start(3);
    let refused = cluster.cli("a", &["disk", "create", "web", "24MiB", "--policy", RAID6]);
    assert!(!refused.status.success());
    let told = said(&refused);
    assert!(told.contains('6') && told.contains("failures_to_tolerate"), "{told}");
    let odd = "default,failures_to_tolerate=3,method=parity";
    let told = said(&cluster.cli("a", &["disk", "create", "web", "24MiB", "--policy", odd]));
    assert!(told.contains("failures_to_tolerate=1 or 2"), "{told}");
    let holders = cluster.with_parity("web", "24MiB", RAID5);
    assert_eq!(holders, ["a", "b", "c"], "2+1");
}

/// The owner compares the rows of both codes with their parity, P by checksums and Q by checksums of products, and finds nothing: also of
/// what was written in pieces, trimmed, and folded.
#[test]
fn rows_are_compared_with_their_parity_while_they_are_written() {
    let cluster = Cluster::start(6);
    for (name, policy) in [("five", RAID5), ("six", RAID6)] {
        cluster.with_parity(name, "24MiB", policy);
        let mut client = cluster.attach("a", name);
        for number in 0..300 {
            client.write(number * 76 * KIB, &stamped(number)).expect("it writes");
        }
        client.write(8 * MIB, &vec![7; 3 * MIB as usize]).expect("it writes");
        client.trim(9 * MIB, MIB as u32).expect("it trims");
        drop(client);
        let checked = wait_for("a pass over all rows ends", SECONDS, || {
            let checks = cluster.json("a", &["disk", "show", name])["row_checks"].clone();
            let is_over = checks["passed_seconds"].is_u64() && checks["checked_rows"].as_u64() > Some(50);
            is_over.then_some(checks)
        });
        assert_eq!(
            (&checked["disagreeing_rows"], &checked["skipped_rows"]),
            (&0.into(), &0.into()),
            "{name}"
        );
        let shown = said(&cluster.cli("a", &["disk", "show", name]));
        assert!(shown.contains("checked, 0 disagreed (0 mended), 0 skipped; last pass ended"), "{shown}");
    }
    let socket = cluster.path("a").join("d/api.sock");
    let socket = socket.to_str().expect("a path of letters");
    let metrics = run("curl", &["-sS", "--unix-socket", socket, "http://localhost/metrics"]);
    for name in ["drystone_disk_rows_checked_total", "drystone_disk_rows_disagreeing_total"] {
        assert!(metrics.contains(name), "{name} is missing");
    }
    let health = cluster.json("a", &["health"]);
    assert!(!health.to_string().contains("rows.disagree"), "{health}");
}

/// Snapshots of RAID-5 are taken under load, read without any one host, told what changed between them, rolled back to, and made anew with what a lost host had.
#[test]
fn snapshots_of_raid_5_outlive_any_one_host_and_tell_what_changed() {
    let cluster = Cluster::start(5);
    let holders = cluster.with_parity("web", "48MiB", RAID5);
    let (first, folder) = (holders[0].as_str(), cluster.path("a"));
    let take = |name: &str| {
        wait_for("a snapshot is taken", 60, || {
            cluster.cli(first, &["disk", "snapshot", "create", "web", name]).status.success().then_some(())
        });
    };
    let read = |host: &str, name: &str| -> Vec<u8> {
        let (file, uri) = (folder.join("copied"), cluster.uri(host, &format!("web@{name}")));
        run("nbdcopy", &[&uri, text(&file)]);
        std::fs::read(&file).expect("it was copied")
    };
    let load = verified_load(&cluster.uri(first, "web"), 8);
    cluster.wait_for_load(first, "web");
    take("one");
    assert_verified(load);
    take("two");
    let web = cluster.uri(first, "web");
    run("qemu-io", &["-f", "raw", "-c", "write -P 7 10M 4k", "-c", "write -P 8 30M 1M", &web]);
    take("three");
    let names = ["one", "two", "three"];
    let before: Vec<Vec<u8>> = names.iter().map(|name| read(first, name)).collect();
    assert!(before[2][10 << 20..(10 << 20) + 4096].iter().all(|byte| *byte == 7));
    let check = |host: &str| {
        for (name, before) in names.iter().zip(&before) {
            assert!(read(host, name) == *before, "snapshot {name} reads otherwise at {host}");
        }
    };
    // What is told to be as it was is so, and what was written is told.
    let told = cluster.json(first, &["disk", "snapshot", "changes", "web", "three", "--since", "two"]);
    let mut changed = vec![false; 48 << 20 >> 12];
    for run in told["runs"].as_array().expect("runs") {
        let at = |key: &str| run[key].as_u64().expect("a number") as usize >> 12;
        changed[at("offset")..at("offset") + at("length")].fill(true);
    }
    for (block, changed) in changed.iter().enumerate() {
        let of = |view: &Vec<u8>| view[block << 12..(block + 1) << 12].to_vec();
        assert!(*changed || of(&before[1]) == of(&before[2]), "block {block} is told to be the same");
    }
    let count = changed.iter().filter(|changed| **changed).count();
    assert!((257..=257 * 3 + 96).contains(&count), "{count} of 12288 blocks are told to have changed");
    for victim in &holders[1..] {
        cluster.order("kill", victim);
        check(first);
        cluster.order("start", victim);
        cluster.wait_until_on(first, "web", &holders.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // One is lost for good: what stands in its place gets the snapshots, and can do for another one.
    cluster.set("repair-delay", "1s");
    cluster.order("kill", &holders[3]);
    wait_for("what the lost host had is made anew", SECONDS, || {
        (!cluster.holders(first, "web").contains(&holders[3])).then_some(())
    });
    cluster.wait_until_whole(first, "web");
    wait_for("it has all snapshots", SECONDS, || {
        let list = cluster.json(first, &["disk", "snapshot", "list", "web"]);
        let copies: Vec<u64> = list.as_array()?.iter().filter_map(|one| one["copies"].as_u64()).collect();
        (copies == [4; 3]).then_some(())
    });
    cluster.set("repair-delay", "1h");
    cluster.order("kill", &holders[2]);
    check(first);
    let done = cluster.cli(first, &["disk", "snapshot", "rollback", "web", "two", "--confirm", "web"]);
    assert!(done.status.success(), "{}", said(&done));
    run("nbdcopy", &[&cluster.uri(first, "web"), text(&folder.join("back"))]);
    assert!(std::fs::read(folder.join("back")).expect("it was copied") == before[1]);
    check(first);
}

/// What guests write is compressed below RAID-5, with snapshots of it, and reads as it was without any one host.
#[test]
fn raid_5_is_compressed() {
    let cluster = Cluster::start(3);
    let holders = cluster.with_parity("web", "96MiB", "default,method=parity,stripes=1,compression=lz4");
    let (first, web) = (holders[0].as_str(), cluster.uri(&holders[0], "web"));
    let qemu_io = |uri: &str, commands: &[&str]| {
        let mut all = vec!["-f", "raw"];
        commands.iter().for_each(|command| all.extend(["-c", *command]));
        all.push(uri);
        run("qemu-io", &all);
    };
    let packed = || cluster.json(first, &["disk", "show", "web"])["compressed"]["packed_bytes"].as_u64();
    let mut turn = 0;
    wait_for("blocks are compressed", 60, || {
        turn += 1;
        let pattern = format!("write -P {} 0 48M", 2 + turn % 200);
        qemu_io(&web, &[&pattern, "write -P 1 64M 4k"]);
        packed().filter(|bytes| *bytes > 0)
    });
    qemu_io(&web, &["write -P 0xa1 0 32M", "write -P 0xa2 5M 4k", "write -P 0xa3 64M 68k"]);
    let done = cluster.cli(first, &["disk", "snapshot", "create", "web", "one"]);
    assert!(done.status.success(), "{}", said(&done));
    qemu_io(&web, &["write -P 0xa4 1M 40M", "write -P 0xa5 64M 4k"]);
    for victim in &holders[1..] {
        cluster.order("kill", victim);
        qemu_io(
            &web,
            &["read -P 0xa1 0 1M", "read -P 0xa4 1M 40M", "read -P 0xa5 64M 4k", "read -P 0xa3 65540k 64k"],
        );
        let one = cluster.uri(first, "web@one");
        run(
            "qemu-io",
            &[
                "-r",
                "-f",
                "raw",
                "-c",
                "read -P 0xa1 0 5M",
                "-c",
                "read -P 0xa2 5M 4k",
                "-c",
                "read -P 0xa3 64M 68k",
                &one,
            ],
        );
        cluster.order("start", victim);
        cluster.wait_until_on(first, "web", &holders.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
