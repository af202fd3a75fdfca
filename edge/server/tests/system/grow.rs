//! One host today, three next month: a host that stood alone becomes the first of a cluster, with all its disks.

use super::cluster::{SECONDS, assert_verified, verified_load};
use super::host::{PROGRAM, Server, Site};
use super::members::{config, expect, free_port, init, join_all, site, wait_until_all_reach};
use super::nbd::Client;
use super::tools::{command, output, said, text, wait_for};
use ::etcd::testing::Members;
use base::units::MIB;
use std::process::Output;

/// The configuration of a host that stands alone, made from that of one of several: it listens at its sockets.
fn alone(config: &str) -> String {
    let (own, _) = config.split_once("[cluster]").expect("it is one of several");
    let at_sockets = own.lines().map(|line| match line.split_once(", \"127.0.0.1") {
        Some((socket, _)) => format!("{socket}]"),
        None => line.to_owned(),
    });
    at_sockets.collect::<Vec<_>>().join("\n")
}

/// The commands that the guide names for a host that grows: those of each of its blocks.
fn words_of_the_guide() -> Vec<Vec<String>> {
    let guide = std::fs::read_to_string("../../docs/guide/cluster.md").expect("the guide");
    let (_, section) = guide.split_once("\n## One host today, three next month\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks
        .map(|block| {
            block.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        })
        .collect()
}

const INIT: &str = "drystone cluster init --config /etc/drystone/host.toml";

/// Does what a line of the guide says on a host.
fn follow(site: &Site, line: &str) -> Output {
    let path = config(site);
    let line = line.replace("/etc/drystone/host.toml", text(&path)).replace("100GiB", "64MiB");
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("drystone"), "{line}");
    let api = format!("unix:{}", text(&site.path("d/api.sock")));
    output(command(PROGRAM).env("DRYSTONE_API", api).args(words))
}

#[track_caller]
fn succeed(done: Output) -> String {
    assert!(done.status.success(), "{}", said(&done));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

#[test]
fn a_host_that_serves_grows_to_three_as_the_guide_says_and_its_guest_notices_nothing() {
    let etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let several = sites[0].config().to_owned();
    let mut sites = sites.into_iter();
    let mut first = sites.next().expect("three");
    first.set_config(&alone(&several));
    let mut servers = vec![first.start()];
    first.ask(&["disk", "create", "web", "64MiB"]);
    let mut held = first.attach("web");
    held.write(48 * MIB, &[7; 65536]).expect("it writes");
    let load = verified_load(&first.uri("web"), 20);

    let [on_first, on_others, after] = &words_of_the_guide()[..] else { panic!("three blocks") };
    // Before the configuration names etcd, and when it says too much.
    let [dry, made, token] = &on_first[..] else { panic!("{on_first:?}") };
    expect(&follow(&first, made), 2, "names no etcd");
    first.set_config(&format!("{several}\n[memory]\nbuffers = \"300MiB\"\n"));
    expect(&follow(&first, made), 3, "by more than");
    first.set_config(&several);
    let would = succeed(wait_for("etcd answers", SECONDS, || {
        let done = follow(&first, dry);
        (done.status.code() != Some(6)).then_some(done)
    }));
    assert!(would.contains("nothing was changed"), "{would}");
    expect(&first.cli(&["host", "token"]), 3, "no certificates");
    let before = first.json(&["disk", "show", "web"]);
    let told = succeed(follow(&first, made));
    assert!(told.contains("its disk is the cluster's first") && told.contains("goes on serving"), "{told}");
    expect(&follow(&first, made), 5, "already");

    let mut all = vec![first];
    for other in sites {
        let token = succeed(follow(&all[0], token));
        let [join, start] = &on_others[..] else { panic!("{on_others:?}") };
        assert_eq!(start, "systemctl start drystone");
        succeed(follow(&other, &join.replace("TOKEN", &token)));
        servers.push(other.start());
        all.push(other);
    }
    wait_until_all_reach(&all);
    for line in after {
        succeed(follow(&all[0], line));
    }
    let disk = all[1].json(&["disk", "show", "db"]);
    let hosts = disk["components"].as_array().expect("components").iter().map(|one| one["host"].to_string());
    assert_eq!(
        hosts.collect::<std::collections::BTreeSet<String>>().len(),
        3,
        "stripes of copies on all: {disk}"
    );

    // What was attached all the time, and what fio has written and read.
    held.write(56 * MIB, &[8; 4096]).expect("it goes on");
    assert_verified(load);
    let after = all[2].json(&["disk", "show", "web"]);
    assert_eq!((&after["id"], &after["created"]), (&before["id"], &before["created"]));
    drop(held);
    for site in &all {
        let mut client = wait_for("every host serves it", SECONDS, || {
            Client::attach(&site.path("d/nbd.sock"), "web").ok()
        });
        assert_eq!(client.read(48 * MIB, 65536), Ok(vec![7; 65536]));
        assert_eq!(client.read(56 * MIB, 4096), Ok(vec![8; 4096]));
    }
    let events = all[0].ask(&["events"]);
    assert!(events.contains("cluster.founded"), "{events}");
    // It starts with what it has become, and with nothing else.
    servers.remove(0).stop();
    all[0].set_config(&alone(&several));
    let (code, refused) = all[0].refused(&[]);
    assert!(code == 3 && refused.contains("names no directory"), "{refused}");
    all[0].set_config(&several);
    let again = all[0].start();
    wait_until_all_reach(&all);
    again.stop();
    servers.into_iter().for_each(Server::stop);
}

#[test]
fn a_host_that_cannot_grow_stands_alone_as_before_and_grows_later() {
    let etcd = Members::spawn(1);
    let mut site = site(&etcd, "a", free_port());
    let several = site.config().to_owned();
    site.set_config(&alone(&several));
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let mut client = site.attach("web");
    // Nobody answers there.
    site.set_config(&several.replace(etcd.url(0), "http://127.0.0.1:1"));
    expect(&follow(&site, INIT), 6, "does not answer");
    // Somebody else listens where other hosts were to connect.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port();
    site.set_config(&several.replace("[cluster]\n", &format!("[cluster]\npeers = \"127.0.0.1:{port}\"\n")));
    let failed = wait_for("etcd answers", SECONDS, || {
        let done = follow(&site, INIT);
        (done.status.code() != Some(6)).then_some(done)
    });
    assert!(!failed.status.success() && said(&failed).contains("in use"), "{}", said(&failed));
    client.write(0, &[5; 4096]).expect("it serves");
    site.ask(&["disk", "create", "more", "64MiB"]);
    drop(taken);
    let made = init(&site);
    assert!(made.status.success() && said(&made).contains("its 2 disks"), "{}", said(&made));
    client.write(4096, &[6; 4096]).expect("it serves still");
    drop(client);
    // The versions of records go on: what was changed before is changed again.
    site.ask(&["disk", "rename", "more", "less"]);
    site.ask(&["disk", "delete", "less", "--confirm", "less"]);
    server.stop();
    let server = site.start();
    let mut client = site.attach("web");
    assert_eq!(client.read(0, 4096), Ok(vec![5; 4096]));
    assert_eq!(client.read(4096, 4096), Ok(vec![6; 4096]));
    server.stop();
}

#[test]
fn a_host_that_stood_alone_becomes_the_first_of_three_and_keeps_its_disks() {
    let etcd = Members::spawn(1);
    let mut sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let several = sites[0].config().to_owned();
    sites[0].set_config(&alone(&several));
    let server = sites[0].start();
    sites[0].ask(&["policy", "create", "slow", "single", "iops_limit=100000"]);
    sites[0].ask(&["disk", "create", "web", "64MiB", "--policy", "slow"]);
    let mut client = sites[0].attach("web");
    for part in 0..8 {
        client.write(part * 8 * MIB, &[part as u8 + 1; 65536]).expect("it writes");
    }
    drop(client);
    let before = sites[0].json(&["disk", "show", "web"]);
    server.stop();

    sites[0].set_config(&several);
    let made = init(&sites[0]);
    assert!(
        made.status.success() && said(&made).contains("its disk is the cluster's first"),
        "{}",
        said(&made)
    );
    // The records are in etcd now, and nowhere else.
    sites[0].set_config(&alone(&several));
    let (code, refused) = sites[0].refused(&[]);
    assert!(code == 3 && refused.contains("names no directory"), "{refused}");
    sites[0].set_config(&several);
    expect(&init(&sites[0]), 5, "holds the cluster");

    let servers = join_all(&sites);
    let after = sites[0].json(&["disk", "show", "web"]);
    assert_eq!(
        (&after["id"], &after["created"], &after["rules"]),
        (&before["id"], &before["created"], &before["rules"])
    );
    assert_eq!(sites[1].json(&["policy", "show", "slow"])["rules"]["iops_limit"], "100000");
    for site in &sites {
        let mut client = wait_for("every host serves it", SECONDS, || {
            Client::attach(&site.path("d/nbd.sock"), "web").ok()
        });
        for part in 0..8 {
            assert_eq!(client.read(part * 8 * MIB, 65536), Ok(vec![part as u8 + 1; 65536]), "part {part}");
        }
        client.write(MIB, &[99; 4096]).expect("it goes on");
    }
    let disk = sites[2].json(&["disk", "create", "new", "64MiB", "--policy", "default,stripes=1"]);
    let hosts = disk["components"].as_array().expect("components").iter().map(|one| one["host"].to_string());
    let hosts: std::collections::BTreeSet<String> = hosts.collect();
    assert_eq!(hosts.len(), 2, "{disk}");
    servers.into_iter().for_each(super::host::Server::stop);
}
