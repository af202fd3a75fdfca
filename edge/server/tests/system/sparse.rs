//! What is allocated, told of disks far larger than what stands on them: by runs, and beside guests who feel nothing.

use super::cluster::Cluster;
use super::host::{Shape, Site};
use super::nbd::Client;
use super::tools::{run, text, wait_for};
use base::units::{GIB, MIB};
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of the largest disk.
const LARGEST: u64 = 64 << 40;
/// How long its map may take, on a machine that builds and tests at the same time. The map of an empty disk takes a client 16,384 requests.
const MAP_SECONDS: u64 = 10;
/// Where the sparse disk has data: 64 KiB each, in different components and stripes, and at both ends.
const WRITTEN: [u64; 5] = [0, 7 * MIB, 300 * GIB + 5 * MIB, 40 << 40, LARGEST - 64 * 1024];

/// The map of a disk as ranges that hold data, and how long it took.
fn data_of(socket: &Path, disk: &str) -> (Vec<(u64, u64)>, Duration) {
    let began = Instant::now();
    let uri = format!("nbd+unix:///{disk}?socket={}", text(socket));
    let map = run("nbdinfo", &["--map", &uri]);
    let took = began.elapsed();
    let (mut data, mut end) = (Vec::new(), 0);
    for line in map.lines() {
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
        let (offset, len, kind) = (number(), number(), number());
        assert_eq!(offset, end, "the map has no gap: {map}");
        end = offset + len;
        if kind == 0 {
            data.push((offset, len));
        }
    }
    assert_eq!(end, LARGEST, "the map covers the disk: {map}");
    (data, took)
}

fn check(socket: &Path) {
    let (data, took) = data_of(socket, "empty");
    assert_eq!(data, []);
    assert!(took < Duration::from_secs(MAP_SECONDS), "the map of the empty disk took {took:?}");
    let mut client = Client::attach(socket, "sparse").expect("it is served");
    assert_eq!(data_of(socket, "sparse").0, [], "nothing was written yet");
    for offset in WRITTEN {
        client.write(offset, &[7; 64 << 10]).expect("it is written");
    }
    let (data, took) = data_of(socket, "sparse");
    assert_eq!(data, WRITTEN.map(|offset| (offset, 64 << 10)));
    assert!(took < Duration::from_secs(MAP_SECONDS), "the map of the sparse disk took {took:?}");
    client.write(GIB, &[7; 4096]).expect("it is written");
    client.trim(0, 64 << 10).expect("it is trimmed");
    let mut expected = WRITTEN.map(|offset| (offset, 64 << 10)).to_vec();
    expected.remove(0);
    expected.insert(1, (GIB, 4096));
    assert_eq!(data_of(socket, "sparse").0, expected, "what is known ends with changes");
}

/// The map of an empty disk of 64 TiB took half a minute, MiB by MiB, in turns of the engine in which nobody else was served.
#[test]
fn the_map_of_a_sparse_disk_of_64_tib_takes_a_host_a_moment() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    for name in ["empty", "sparse"] {
        site.ask(&["disk", "create", name, "64TiB", "--policy", "single"]);
    }
    check(&site.path("d/nbd.sock"));
    server.stop();
}

/// In a cluster each 127 MiB took a question to a component, and its answer.
#[test]
fn the_map_of_a_sparse_disk_of_64_tib_takes_a_cluster_a_moment() {
    let cluster = Cluster::start(3);
    for name in ["empty", "sparse"] {
        cluster.json("a", &["disk", "create", name, "64TiB", "--share"]);
    }
    check(&cluster.path("a").join("d/nbd.sock"));
}

/// Zeroes that a client writes take no space and give back what stood there, unless the client keeps it.
#[test]
fn zeroes_that_qemu_writes_take_no_space() {
    let site = Site::new(&Shape::Two { size_mib: 256 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let uri = format!("nbd+unix:///web?socket={}", text(&site.path("d/nbd.sock")));
    let qemu_io = |command: &str| run("qemu-io", &["-f", "raw", "-c", command, &uri]);
    let allocated = || site.json(&["disk", "show", "web"])["allocated_bytes"].as_u64().expect("a number");
    let is_freed = |most: u64| wait_for("space comes back", 30, || (allocated() <= most).then_some(()));
    qemu_io("write -P 0 0 8M");
    assert_eq!(allocated(), 0, "nothing was written yet");
    qemu_io("write -P 7 0 8M");
    let full = allocated();
    assert!(full >= 8 * MIB, "{full} bytes are allocated");
    qemu_io("write -P 0 0 4M");
    is_freed(full / 2);
    qemu_io("read -P 0 0 4M");
    qemu_io("read -P 7 4M 4M");
    // `write -z` keeps the space, with `-u` it need not.
    qemu_io("write -z 0 4M");
    assert_eq!(allocated(), full);
    qemu_io("write -z -u 0 8M");
    is_freed(0);
    assert!(site.metrics().contains("drystone_disk_zero_bytes_trimmed_total{disk=\"web\"} 12582912"));
    server.stop();
}
