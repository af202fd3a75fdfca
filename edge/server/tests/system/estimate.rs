//! Estimates of compression and deduplication, against exact figures that are computed here by the same rule.

use super::cluster::{Cluster, SECONDS};
use super::host::{Shape, Site};
use super::tools::{run, said, text, wait_for};
use base::Random;
use base::units::MIB;
use serde_json::Value;
use std::collections::BTreeSet;

const BLOCK: usize = 4096;
const UNIT: usize = 512;

/// What blocks are made of.
struct Content {
    random: Random,
    /// Contents that come again and again.
    repeated: Vec<Vec<u8>>,
}

impl Content {
    fn new(seed: u64) -> Content {
        let mut content = Content { random: Random::new(seed), repeated: Vec::new() };
        content.repeated = (0..50).map(|_| content.noise(BLOCK)).collect();
        content
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        (0..len.div_ceil(8)).flat_map(|_| self.random.bits().to_le_bytes()).take(len).collect()
    }

    /// Lines of a log, each block with numbers of its own.
    fn text(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let words =
            ["read", "write", "flush", "started", "ended", "disk", "host", "device", "request", "error"];
        while text.len() < BLOCK {
            let mut word = || words[self.random.below(words.len() as u64) as usize];
            let (subject, verb, object) = (word(), word(), word());
            let number = self.random.below(1 << 20);
            text.extend(format!("2026-11-28T21:00:00 {subject} {verb} {object} {number}\n").bytes());
        }
        text.truncate(BLOCK);
        text
    }

    /// A block of any kind. Blocks of zeroes are far from each other, so that a host keeps them as data.
    fn block(&mut self, index: usize) -> Vec<u8> {
        if index.is_multiple_of(8) {
            return vec![0; BLOCK];
        }
        match self.random.below(10) {
            0..4 => self.text(),
            4 => {
                let mut half = self.noise(BLOCK / 2);
                half.resize(BLOCK, 7);
                half
            }
            5..8 => self.noise(BLOCK),
            _ => self.repeated[self.random.below(50) as usize].clone(),
        }
    }

    fn blocks(&mut self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|index| self.block(index)).collect()
    }
}

/// The exact figures of some blocks.
struct Exact {
    blocks: usize,
    zero: usize,
    lz4: f64,
    zstd: f64,
    saved_percent: f64,
}

fn units(compressed: usize) -> usize {
    compressed.div_ceil(UNIT).clamp(1, BLOCK / UNIT)
}

fn exact(blocks: &[&Vec<u8>]) -> Exact {
    let data: Vec<&Vec<u8>> =
        blocks.iter().copied().filter(|block| block.iter().any(|byte| *byte != 0)).collect();
    let ratio = |compressed: &dyn Fn(&[u8]) -> usize| {
        let sum: usize = data.iter().map(|block| units(compressed(block))).sum();
        (BLOCK / UNIT * data.len()) as f64 / sum as f64
    };
    let distinct: BTreeSet<&Vec<u8>> = data.iter().copied().collect();
    Exact {
        blocks: data.len(),
        zero: blocks.len() - data.len(),
        lz4: ratio(&|block| lz4_flex::block::compress(block).len()),
        zstd: ratio(&|block| zstd::bulk::compress(block, 1).expect("it compresses").len()),
        saved_percent: 100.0 * (1.0 - distinct.len() as f64 / data.len() as f64),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("`{value}` is a number"))
}

/// That an estimate lies within four of its standard errors of the exact figure: one of 16,000 does not.
fn assert_near(what: &str, (found, error): (&Value, &Value), exact: f64) {
    let (found, error) = (number(found), number(error));
    assert!((found - exact).abs() <= 4.0 * error + 1e-6, "{what}: {found} ± {error}, exactly {exact}");
}

fn check(view: &Value, exact: &Exact, copies: usize) {
    assert_eq!(view["blocks"], exact.blocks * copies, "{view}");
    assert_eq!(view["zero_bytes"], exact.zero * BLOCK * copies, "{view}");
    assert_eq!(view["allocated_bytes"], (exact.blocks + exact.zero) * BLOCK * copies, "{view}");
    assert_eq!((&view["unreadable_blocks"], &view["changed_blocks"]), (&0.into(), &0.into()), "{view}");
    let (lz4, zstd) = (&view["lz4"], &view["zstd"]);
    assert_near("LZ4", (&lz4["ratio"], &lz4["ratio_error"]), exact.lz4);
    assert_near("zstd", (&zstd["ratio"], &zstd["ratio_error"]), exact.zstd);
    assert!(number(&lz4["packed_ratio"]) <= number(&lz4["ratio"]), "{view}");
    assert!(number(&lz4["packed_ratio"]) > 0.9 * number(&lz4["ratio"]), "{view}");
    let cluster = &view["deduplication_cluster"];
    assert_near("deduplication", (&cluster["saved_percent"], &cluster["error_percent"]), exact.saved_percent);
}

/// Writes blocks from the start of a disk, a MiB at a time.
fn fill(client: &mut super::nbd::Client, blocks: &[Vec<u8>]) {
    for (index, part) in blocks.chunks(256).enumerate() {
        client.write(index as u64 * MIB, &part.concat()).expect("it is written");
    }
}

#[test]
fn an_estimate_of_a_host_is_what_the_blocks_are() {
    let site = Site::in_memory(&Shape::Two { size_mib: 512 });
    let server = site.start();
    let nothing = site.ask(&["cluster", "estimate"]);
    assert!(nothing.contains("no host has a sample") && nothing.contains("estimate --start"), "{nothing}");

    site.ask(&["policy", "create", "gold", "single"]);
    site.ask(&["disk", "create", "web", "64MiB", "--policy", "gold"]);
    site.ask(&["disk", "create", "db", "64MiB", "--policy", "single,stripes=1"]);
    site.ask(&["disk", "create", "empty", "64MiB", "--policy", "single,stripes=1"]);
    let mut content = Content::new(48);
    let (web, db) = (content.blocks(10_000), content.blocks(4_000));
    fill(&mut site.attach("web"), &web);
    fill(&mut site.attach("db"), &db);
    let whole = exact(&web.iter().chain(&db).collect::<Vec<_>>());
    assert!(
        whole.zero > 1000 && whole.lz4 > 1.2 && whole.saved_percent > 10.0,
        "the blocks are of all kinds"
    );

    // There are few blocks: all are in the sample, and nothing is left to chance.
    let found = site.json(&["cluster", "estimate", "--start"]);
    check(&found["cluster"], &whole, 1);
    assert_eq!(found["cluster"]["compression_sampled_blocks"], whole.blocks, "{found}");
    assert!(number(&found["cluster"]["lz4"]["ratio_error"]) < 1e-6, "{found}");
    assert!(number(&found["cluster"]["deduplication_cluster"]["error_percent"]) < 1e-6, "{found}");
    let of = |list: &str, name: &str| -> Value {
        let all = found[list].as_array().expect("a list");
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {found}")).clone()
    };
    check(&of("disks", "web"), &exact(&web.iter().collect::<Vec<_>>()), 1);
    check(&of("policies", "gold"), &exact(&web.iter().collect::<Vec<_>>()), 1);
    check(&of("disks", "db"), &exact(&db.iter().collect::<Vec<_>>()), 1);
    let empty = of("disks", "empty");
    assert_eq!((&empty["sampled_components"], &empty["blocks"]), (&1.into(), &0.into()), "{empty}");
    assert!(empty["lz4"].is_null() && empty["deduplication_cluster"].is_null(), "{empty}");
    assert_eq!(site.json(&["disk", "estimate", "db"])["disks"][0], of("disks", "db"));
    assert_eq!(
        (&found["compression_available"], &found["deduplication_available"]),
        (&true.into(), &false.into())
    );

    // A small sample reads no more than it may, and its errors are true.
    let small = site.json(&["cluster", "estimate", "--start", "--sample", "20%"]);
    check(&small["cluster"], &whole, 1);
    check(&small["disks"][2], &exact(&web.iter().collect::<Vec<_>>()), 1);
    let sampled = number(&small["cluster"]["compression_sampled_blocks"]);
    // A sample of 10.6 %, with a standard deviation of 33 blocks.
    assert!((sampled - 0.1056 * whole.blocks as f64).abs() < 170.0, "{small}");
    assert!(number(&small["cluster"]["lz4"]["ratio_error"]) > 0.001, "{small}");
    let read = number(&small["hosts"][0]["read_bytes"]);
    // The samples overlap, and what comes again and again is not read each time.
    assert!(read < 0.21 * (whole.blocks * BLOCK) as f64, "{small}");
    assert!(number(&small["age_seconds"]) < 60.0, "{small}");

    let shown = site.ask(&["cluster", "estimate"]);
    for part in ["policy gold", "disk web", "cluster", " ± ", "no deduplication"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let events = site.ask(&["events", "--kind", "estimate"]);
    assert!(events.contains("estimate.began") && events.contains("estimate.ended"), "{events}");
    let metrics = site.metrics();
    for part in ["drystone_estimate_running 0", "drystone_estimate_compression_ratio{codec=\"lz4\"}"] {
        assert!(metrics.contains(part), "{part}: {metrics}");
    }
    server.stop();
}

#[test]
fn an_estimate_is_refused_with_the_way_out_where_it_cannot_be_made() {
    let site = Site::in_memory(&Shape::Two { size_mib: 512 });
    let server = site.start();
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = site.cli(arguments);
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {}", said(&done));
        assert!(said(&done).contains(part), "`{part}` is not in: {}", said(&done));
    };
    refused(&["cluster", "estimate", "--start", "--sample", "0%"], 2, "use 1%");
    refused(&["cluster", "estimate", "--start", "--sample", "some"], 2, "use 1%");
    refused(&["cluster", "estimate", "--sample", "1%"], 2, "--start");
    refused(&["cluster", "estimate", "--start", "--stop"], 2, "--stop");
    refused(&["disk", "estimate", "nothing"], 4, "there is no disk `nothing`");
    let socket = site.path("d/api.sock");
    let post = |body: &str| {
        let address = "http://localhost/api/v1/estimate";
        let json = "content-type: application/json";
        run("curl", &["-sS", "--unix-socket", text(&socket), "-H", json, "-d", body, address])
    };
    let said_by_api = post("{\"sample_percent\": 101}");
    assert!(said_by_api.contains("above 0 and up to 100"), "{said_by_api}");
    assert!(post("{\"sample\": 1}").contains("sample_percent"), "the field that there is");

    // 100 MiB take more than a second, at the pace of a pass.
    site.ask(&["disk", "create", "web", "128MiB", "--policy", "single,stripes=1"]);
    let mut client = site.attach("web");
    let mut content = Content::new(7);
    for index in 0..100 {
        client.write(index * MIB, &content.noise(MIB as usize)).expect("it is written");
    }
    let begun = site.json(&["cluster", "estimate", "--start", "--sample", "100%", "--no-wait"]);
    assert_eq!(
        (&begun["is_running"], &begun["hosts"][0]["state"]),
        (&true.into(), &"running".into()),
        "{begun}"
    );
    refused(&["cluster", "estimate", "--start"], 3, "estimate --stop");
    client.write(0, &[1; 8192]).expect("guests go on");
    let stopped = site.json(&["cluster", "estimate", "--stop"]);
    assert_eq!(
        (&stopped["is_running"], &stopped["hosts"][0]["state"]),
        (&false.into(), &"none".into()),
        "{stopped}"
    );
    assert!(site.ask(&["events", "--kind", "estimate"]).contains("was stopped"));
    let again = site.json(&["cluster", "estimate", "--start", "--sample", "100%"]);
    assert_eq!(again["cluster"]["blocks"], 100 * 256, "{again}");
    server.stop();
}

#[test]
fn an_estimate_of_a_cluster_tells_copies_from_duplicates() {
    let cluster = Cluster::start(3);
    cluster.json("a", &["disk", "create", "one", "16MiB", "--policy", "default,stripes=1"]);
    cluster.json("a", &["disk", "create", "two", "16MiB", "--policy", "default,stripes=1"]);
    let mut content = Content::new(3);
    let blocks: Vec<Vec<u8>> = (0..2048).map(|_| content.noise(BLOCK)).collect();
    // Both disks hold the same, each block once.
    fill(&mut cluster.attach("a", "one"), &blocks);
    fill(&mut cluster.attach("b", "two"), &blocks);
    let found = cluster.json("c", &["cluster", "estimate", "--start"]);
    let exact = Exact { blocks: 4096, zero: 0, lz4: 1.0, zstd: 1.0, saved_percent: 50.0 };
    check(&found["cluster"], &exact, 2);
    assert_eq!(found["hosts"].as_array().map(Vec::len), Some(3), "{found}");
    assert_eq!(
        (&found["cluster"]["components"], &found["cluster"]["sampled_components"]),
        (&4.into(), &4.into())
    );
    for disk in found["disks"].as_array().expect("disks") {
        assert!(number(&disk["deduplication_cluster"]["saved_percent"]).abs() < 1e-6, "copies stay: {disk}");
    }
    // Two copies of each disk on three hosts: at least one device has both disks.
    assert!(number(&found["cluster"]["deduplication_per_device"]["saved_percent"]) > 24.9, "{found}");

    // A host that is away is told, and its components are in no figure.
    cluster.order("kill", "c");
    wait_for("host c is missing", SECONDS, || {
        let found = cluster.json("a", &["cluster", "estimate"]);
        let hosts = found["hosts"].as_array().expect("hosts");
        hosts.iter().any(|host| host["host"] == "c" && host["state"] == "unreachable").then_some(())
    });
    let shown = cluster.cli("b", &["cluster", "estimate"]);
    assert!(said(&shown).contains("unreachable"), "{}", said(&shown));
    let again = cluster.cli("a", &["cluster", "estimate", "--start", "--sample", "50%"]);
    assert!(again.status.success(), "{}", said(&again));
    assert!(said(&again).contains("host c is left out"), "{}", said(&again));
}

#[test]
fn the_shards_of_a_host_are_sampled_together() {
    let cluster = Cluster::start_with(3, &["--shards", "2"]);
    let mut content = Content::new(11);
    let mut all = Vec::new();
    for name in ["one", "two", "three", "four"] {
        cluster.json("a", &["disk", "create", name, "8MiB", "--policy", "default,stripes=1"]);
        let blocks = content.blocks(1000);
        fill(&mut cluster.attach("a", name), &blocks);
        all.extend(blocks);
    }
    let found = cluster.json("b", &["cluster", "estimate", "--start"]);
    check(&found["cluster"], &exact(&all.iter().collect::<Vec<_>>()), 2);
    assert_eq!(found["cluster"]["sampled_components"], 8, "{found}");
}
