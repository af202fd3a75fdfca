//! Several nodes on each host: threads with groups and clients of their own, which are one host to people.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::tools::{run, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;

/// Host and device of each component of a disk.
fn places(disk: &Value) -> Vec<(String, String)> {
    let component = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_else(|| panic!("{key} of {one}")).to_owned();
        (text("host"), text("device"))
    };
    disk["components"].as_array().expect("components").iter().map(component).collect()
}

#[test]
fn disks_on_all_nodes_of_a_host_survive_its_death_under_load() {
    let cluster = Cluster::start_with(3, &["--shards", "2"]);
    let names = ["one", "two", "three", "four"];
    let mut devices = BTreeSet::new();
    for name in names {
        cluster.mirrored(name, "64MiB");
        devices.extend(places(&cluster.json("a", &["disk", "show", name])));
    }
    assert!(devices.len() > 3, "a host has components on both of its nodes: {devices:?}");
    // More clients than nodes: each node has some.
    let loads: Vec<_> = names.iter().map(|name| verified_load(&cluster.uri("a", name), 8)).collect();
    names.iter().for_each(|name| cluster.wait_for_load("a", name));
    cluster.order("kill", "b");
    wait_for("it says what is not whole", SECONDS, || {
        let status = cluster.json("a", &["status"]);
        status["not_whole"].as_object().is_some_and(|disks| !disks.is_empty()).then_some(())
    });
    cluster.order("start", "b");
    loads.into_iter().for_each(assert_verified);
    for name in names {
        cluster.wait_until_whole("a", name);
        let (here, there) = (cluster.uri("a", name), cluster.uri("c", name));
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &here, &there]);
    }
    // All nodes take part when a disk goes.
    cluster.json("c", &["disk", "delete", "one", "--confirm", "one", "--detach-clients"]);
    cluster.wait_for_components(6);
}

#[test]
fn a_group_stays_with_its_node() {
    let cluster = Cluster::start_with(3, &["--shards", "2"]);
    let mut client = cluster.attach(&cluster.mirrored("web", "64MiB")[0], "web");
    client.write(0, &[1; 4096]).expect("it writes");
    let config = cluster.path("b").join("host.toml");
    let text = std::fs::read_to_string(&config).expect("the demo wrote it");
    let set = |shards: u8| {
        std::fs::write(&config, text.replace("shards = 2", &format!("shards = {shards}"))).expect("room");
    };
    let log = || std::fs::read_to_string(cluster.path("b").join("log")).unwrap_or_default();
    cluster.order("stop", "b");
    set(1);
    cluster.order("start", "b");
    wait_for("it says what is wrong", SECONDS, || {
        log().contains("set [cluster] shards to at least 2").then_some(())
    });
    set(3);
    wait_for("it has ended, and starts", SECONDS, || {
        cluster.try_order("start", "b").status.success().then_some(())
    });
    cluster.wait_until_whole("a", "web");
    cluster.mirrored("more", "64MiB");
    assert_eq!(cluster.attach_soon("b", "web").read(0, 4096), Ok(vec![1; 4096]));
}
