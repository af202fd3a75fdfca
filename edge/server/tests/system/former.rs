//! A datastore of release 0.1 on one host, as that release left it when it was killed: it opens as it is, and nothing is lost.
//!
//! `tests/fixtures/one-host-0.1.tar.zst` was written by that release: two groups (one of a log and two capacity devices, one of one
//! device), a striped disk, one that had grown, one that had another name, one that may only be read, one that was deleted, trims, a
//! policy, and writes that were in the log when the process got `kill -9`.

use super::cluster::SECONDS;
use super::host::Site;
use super::members::{self, become_one_of_several, init, join, token, wait_until_all_reach};
use super::nbd::Client;
use super::tools::{run, said, seed, text, wait_for};
use ::etcd::testing::{Members, free_port};
use base::Random;
use base::units::MIB;
use std::io::Read;
use std::time::Duration;

const KIB: u64 = 1024;
/// What was written: byte, from, length. A byte of zero was trimmed.
type Write = (u8, u64, u64);
/// `(name, MiB, what was written in its order)`.
const DISKS: &[(&str, u64, &[Write])] = &[
    (
        "plain",
        24,
        &[
            (0x11, 0, 8 * MIB),
            (0x12, 4 * MIB, 64 * KIB),
            (0, MIB, 256 * KIB),
            (0x13, 1100 * KIB, 12 * KIB),
            (0x14, 16 * MIB, MIB),
            (0x15, 5000 * KIB, 100 * KIB),
            (0, 6 * MIB, 64 * KIB),
        ],
    ),
    ("striped", 20, &[(0x21, 0, 16 * MIB), (0x22, 512, 512), (0x23, 10 * MIB, 3 * KIB)]),
    ("grown", 12, &[(0x31, 0, 4 * MIB), (0x32, 8 * MIB, 2 * MIB), (0x33, 64 * KIB, 4 * KIB)]),
    ("renamed", 8, &[(0x41, 0, 3 * MIB)]),
    ("frozen", 2, &[(0x61, 0, 2 * MIB)]),
];

/// The datastore in a folder of its own.
fn site() -> Site {
    let mut site = Site::bare();
    let packed = include_bytes!("../fixtures/one-host-0.1.tar.zst");
    let archive = site.path("former.tar");
    std::fs::write(&archive, zstd::decode_all(&packed[..]).expect("it was packed")).expect("room for it");
    // Holes stay holes.
    run("tar", &["--sparse", "-xf", text(&archive), "-C", text(site.folder())]);
    std::fs::remove_file(&archive).expect("it was unpacked");
    site.add_config(
        "[memory]\nbuffers = \"64MiB\"\ntables = \"16MiB\"\n\
         [[group]]\nlog = \"log-a.img\"\ncapacity = [\"cap-a1.img\", \"cap-a2.img\"]\n\
         [[group]]\nlog = \"both-b.img\"\n",
    );
    site
}

fn check_content(client: &mut Client, name: &str) {
    check_changed(client, name, &[]);
}

/// The same of a disk that was written since.
fn check_changed(client: &mut Client, name: &str, since: &[Write]) {
    let (_, mib, writes) = DISKS.iter().find(|(disk, ..)| *disk == name).expect("it is one of them");
    let mut expected = vec![0; (mib * MIB) as usize];
    for (byte, from, len) in writes.iter().chain(since) {
        expected[*from as usize..(from + len) as usize].fill(*byte);
    }
    for part in 0..*mib {
        let found = client.read(part * MIB, MIB as u32).unwrap_or_else(|code| panic!("{name}: error {code}"));
        let wanted = &expected[(part * MIB) as usize..][..MIB as usize];
        let differs = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
        assert_eq!(differs, None, "{name}: MiB {part} differs from this byte on");
    }
}

fn check_all(site: &Site) {
    for (name, ..) in DISKS {
        check_content(&mut site.attach(name), name);
    }
}

#[test]
fn a_datastore_of_the_release_before_opens_as_it_is_and_goes_on() {
    let site = site();
    let server = site.start();
    let list = site.json(&["disk", "list"]);
    let mut names: Vec<&str> =
        list.as_array().expect("disks").iter().map(|one| one["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["frozen", "grown", "plain", "renamed", "striped"]);
    check_all(&site);
    assert_eq!(site.json(&["policy", "show", "gold"])["rules"]["stripes"], "2");
    let striped = site.json(&["disk", "show", "striped"]);
    assert_eq!(striped["policy"], "single,stripes=2,space_reservation=50,read_locality=spread");
    assert!(site.attach("frozen").write(0, &[1; 4096]).is_err(), "it may only be read");
    let health = site.json(&["health"]);
    assert_eq!(health["is_well"], true, "{health}");

    // Old disks are written, grow and are deleted, and new ones stand beside them.
    site.attach("renamed").write(5 * MIB, &[0x77; 4096]).expect("written");
    site.ask(&["disk", "resize", "renamed", "16MiB"]);
    site.attach("renamed").write(12 * MIB, &[0x78; 4096]).expect("written");
    site.ask(&["disk", "delete", "grown", "--confirm", "grown"]);
    site.ask(&["disk", "create", "new", "4MiB"]);
    site.attach("new").write(0, &[0x79; 4096]).expect("written");
    let killer = server.kill_after(Duration::ZERO);
    server.killed(killer);

    let server = site.start();
    for (name, offset, byte) in [("renamed", 5 * MIB, 0x77), ("renamed", 12 * MIB, 0x78), ("new", 0, 0x79)] {
        assert_eq!(site.attach(name).read(offset, 4096), Ok(vec![byte; 4096]), "{name} at {offset}");
    }
    for name in ["plain", "striped", "frozen"] {
        check_content(&mut site.attach(name), name);
    }
    server.stop();
}

/// What disks of the release before are written once they have snapshots: `(name, algorithm, what)`.
const WRITTEN_SINCE: &[(&str, &str, &[Write])] = &[
    (
        "plain",
        "lz4",
        &[
            (0x51, 0, 3 * MIB),
            (0x52, 5 * MIB + 512, 512),
            (0, 16 * MIB, 512 * KIB),
            (0x53, 20 * MIB, 2 * MIB),
        ],
    ),
    ("striped", "zstd", &[(0x54, 4 * KIB, 12 * MIB), (0, 14 * MIB, MIB)]),
    ("grown", "off", &[(0x55, 7 * MIB, 3 * MIB), (0x56, 60 * KIB, 8 * KIB)]),
    ("renamed", "lz4", &[(0x57, 0, 8 * MIB)]),
];

/// The newest format that a superblock of a device tells (docs/formats/disk-group.md).
fn format_of(site: &Site, device: &str) -> u32 {
    let mut head = [0; 8192];
    let mut file = std::fs::File::open(site.path(device)).expect("the device is a file");
    file.read_exact(&mut head).expect("it has two superblocks");
    let format = |copy: &[u8]| u32::from_le_bytes(copy[8..12].try_into().expect("four bytes"));
    format(&head).max(format(&head[4096..]))
}

/// The groups are of the former format, with changes in their logs that nothing has destaged: the first snapshots convert them.
#[test]
fn a_datastore_of_the_release_before_gets_snapshots_and_is_compressed() {
    let site = site();
    let devices = ["log-a.img", "cap-a1.img", "cap-a2.img", "both-b.img"];
    assert_eq!(devices.map(|device| format_of(&site, device)), [1; 4]);
    let server = site.start();
    check_all(&site);
    assert_eq!(devices.map(|device| format_of(&site, device)), [1; 4], "nothing asked for another format");
    for (name, ..) in DISKS {
        wait_for("the groups are converted and the disk has a snapshot", 60, || {
            site.cli(&["disk", "snapshot", "create", name, "old"]).status.success().then_some(())
        });
    }
    assert_eq!(devices.map(|device| format_of(&site, device)), [2; 4]);
    for (name, algorithm, writes) in WRITTEN_SINCE {
        site.ask(&["disk", "set", name, &format!("compression={algorithm}")]);
        let mut client = site.attach(name);
        for (byte, from, len) in *writes {
            match byte {
                0 => client.trim(*from, *len as u32).expect("trimmed"),
                _ => client.write(*from, &vec![*byte; *len as usize]).expect("written"),
            }
        }
    }
    let check = |site: &Site| {
        for (name, ..) in DISKS {
            let since = WRITTEN_SINCE.iter().find(|(disk, ..)| disk == name).map_or(&[][..], |one| one.2);
            check_changed(&mut site.attach(name), name, since);
        }
    };
    let check_old = |site: &Site| {
        for (name, ..) in DISKS {
            check_content(&mut site.attach(&format!("{name}@old")), name);
        }
    };
    check(&site);
    check_old(&site);
    wait_for("what was written is destaged and compressed", 60, || {
        let metrics = site.metrics();
        let packed = metrics.lines().filter(|line| line.starts_with("drystone_packed_bytes_total"));
        let packed: f64 = packed.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        (packed > 0.0).then_some(())
    });
    let killer = server.kill_after(Duration::ZERO);
    server.killed(killer);
    let server = site.start();
    check(&site);
    check_old(&site);
    // All is at rest then, in maps and frames.
    server.stop();
    let server = site.start();
    check(&site);
    check_old(&site);
    for (name, ..) in DISKS {
        site.ask(&["disk", "snapshot", "delete", name, "old", "--confirm", "old"]);
    }
    check(&site);
    server.stop();
    let server = site.start();
    check(&site);
    let health = site.json(&["health"]);
    assert_eq!(health["is_well"], true, "{health}");
    server.stop();
}

#[test]
fn a_start_that_is_killed_while_it_converts_a_datastore_loses_nothing() {
    let mut random = Random::new(seed("DRYSTONE_CONVERSION_SEED"));
    let site = site();
    let former = std::fs::read(site.path("d/directory.redb")).expect("it was unpacked");
    for _ in 0..20 {
        // No disk was used since, so that the devices are as the release before left them.
        std::fs::write(site.path("d/directory.redb"), &former).expect("written");
        let server = site.launch();
        let killer = server.kill_after(Duration::from_micros(random.below(60_000)));
        server.killed(killer);
    }
    let server = site.start();
    check_all(&site);
    server.stop();
    let server = site.start();
    check_all(&site);
    server.stop();
}

#[test]
fn disks_of_the_release_before_are_found_on_their_devices_when_the_directory_is_lost() {
    let site = site();
    std::fs::remove_file(site.path("d/directory.redb")).expect("it was unpacked");
    let server = site.start();
    check_all(&site);
    site.attach("plain").write(20 * MIB, &[0x7a; 4096]).expect("written");
    server.stop();
    // Once more, now by what the components promised.
    std::fs::remove_file(site.path("d/directory.redb")).expect("it is there");
    let server = site.start();
    assert_eq!(site.attach("plain").read(20 * MIB, 4096), Ok(vec![0x7a; 4096]));
    for name in ["striped", "grown", "renamed", "frozen"] {
        check_content(&mut site.attach(name), name);
    }
    server.stop();
}

/// One host of the release before becomes the first of four, and a disk that it had is changed while it stands attached.
#[test]
fn a_disk_of_the_release_before_becomes_raid_5_once_hosts_have_joined() {
    let etcd = Members::spawn(1);
    let mut first = site();
    first.set_config(&first.config().replace("buffers = \"64MiB\"", "buffers = \"128MiB\""));
    let alone = first.start();
    check_all(&first);
    alone.stop();
    become_one_of_several(&mut first, &etcd, "a", free_port());
    let founded = init(&first);
    assert!(founded.status.success(), "{}", said(&founded));
    let (mut servers, mut sites) = (vec![first.start()], vec![first]);
    for name in ["b", "c", "d"] {
        let other = members::site(&etcd, name, free_port());
        let joined = join(&other, &token(&sites[0]));
        assert!(joined.status.success(), "{}", said(&joined));
        servers.push(other.start());
        sites.push(other);
    }
    wait_until_all_reach(&sites);
    let raised = sites[0].cli(&["cluster", "upgrade"]);
    assert!(matches!(raised.status.code(), Some(0 | 5)), "{}", said(&raised));

    let mut client = sites[0].attach("plain");
    sites[0].ask(&["disk", "set", "plain", "failures_to_tolerate=1", "method=parity"]);
    wait_for("it has become RAID-5", 2 * SECONDS, || {
        let shown = sites[0].json(&["disk", "show", "plain"]);
        let text = sites[0].ask(&["disk", "show", "plain"]);
        let is_there = shown["compliance"]["state"] == "compliant" && !text.contains("moving: ");
        (is_there && text.contains("RAID-5 3+1")).then_some(())
    });
    check_content(&mut client, "plain");
    drop(client);
    servers.remove(1).stop();
    let mut client = wait_for("another host serves it without one of the others", SECONDS, || {
        Client::attach(&sites[2].path("d/nbd.sock"), "plain").ok()
    });
    check_content(&mut client, "plain");
    client.write(100 * KIB, &[0x55; 4096]).expect("written");
    assert_eq!(client.read(100 * KIB, 4096), Ok(vec![0x55; 4096]));
}
