//! Hosts whose directory is in etcd: made, used, away, wiped, and back.

use super::cluster::SECONDS;
use super::host::{Server, Site};
use super::members::{free_port, init, join_all, site, wait_until_all_reach};
use super::nbd::Client;
use super::tools::{said, wait_for};
use ::etcd::testing::Members;
use serde_json::Value;
use std::time::{Duration, Instant};

fn start(sites: &[Site]) -> Vec<Server> {
    let servers: Vec<Server> = sites.iter().map(Site::start).collect();
    wait_until_all_reach(sites);
    servers
}

fn away(site: &Site) -> Option<String> {
    let status = site.json(&["status"]);
    let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
    let warnings = warnings.iter().filter_map(|warning| warning.as_str().map(str::to_owned));
    warnings.into_iter().find(|warning| warning.contains("directory") || warning.contains("etcd"))
}

#[test]
fn hosts_with_their_directory_in_etcd_serve_while_it_is_away_and_forget_nothing_when_it_is_wiped() {
    let mut etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let (code, said_first) = sites[0].refused(&[]);
    assert!(code == 3 && said_first.contains("drystone cluster init"), "{said_first}");
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let again = init(&sites[0]);
    assert_eq!(again.status.code(), Some(5), "{}", said(&again));
    let servers = join_all(&sites);
    let disk = sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    assert_eq!(disk["components"].as_array().map(Vec::len), Some(2), "{disk}");
    for site in &sites {
        wait_for("all hosts serve it", SECONDS, || Client::attach(&site.path("d/nbd.sock"), "web").ok());
    }
    let mut client = sites[0].attach("web");
    client.write(0, &[1; 8192]).expect("it writes");
    // The disk may be about to follow its clients to another owner, which needs the directory.
    let mut owned = (Value::Null, Instant::now());
    wait_for("its owner stays", SECONDS, || {
        let owner = sites[0].json(&["disk", "show", "web"])["owner"].clone();
        if owner != owned.0 {
            owned = (owner, Instant::now());
        }
        (owned.1.elapsed() > Duration::from_secs(3)).then_some(())
    });
    client.write(0, &[1; 8192]).expect("it writes");
    // Away: nothing is felt.
    etcd.kill(0);
    for round in 1..=20 {
        client.write(round * 4096, &[2; 4096]).expect("no host failed");
    }
    wait_for("it is told", SECONDS, || away(&sites[0]));
    etcd.run(0);
    wait_for("it is back", SECONDS, || away(&sites[0]).is_none().then_some(()));
    sites[1].json(&["disk", "create", "other", "64MiB"]);
    for site in &sites {
        wait_for("every host has heard of it", SECONDS, || {
            (site.json(&["disk", "list"]).as_array().map(Vec::len) == Some(2)).then_some(())
        });
    }
    // Wiped: an empty directory is none of this cluster, and no disk is gone for it.
    etcd.kill(0);
    let (data, kept) = (etcd.data(0), etcd.data(0).with_extension("kept"));
    std::fs::rename(&data, &kept).expect("its data");
    etcd.run(0);
    let told = wait_for("it is told", SECONDS, || {
        away(&sites[0]).filter(|warning| warning.contains("does not hold the records of this cluster"))
    });
    assert!(told.contains("/drystone/"), "{told}");
    client.write(0, &[3; 4096]).expect("disks are served as they are");
    for site in &sites {
        assert_eq!(site.json(&["disk", "list"]).as_array().map(Vec::len), Some(2));
    }
    let refused = sites[0].cli(&["disk", "create", "third", "64MiB"]);
    assert!(!refused.status.success(), "{}", said(&refused));
    // A snapshot, or here the data itself, brings it back.
    etcd.kill(0);
    std::fs::remove_dir_all(&data).expect("the empty one");
    std::fs::rename(&kept, &data).expect("the data");
    etcd.run(0);
    wait_for("it is back", SECONDS, || away(&sites[0]).is_none().then_some(()));
    assert_eq!(client.read(0, 8192), Ok([[3; 4096], [2; 4096]].concat()));
    drop(client);
    servers.into_iter().for_each(Server::stop);
    let servers = start(&sites);
    assert_eq!(sites[2].attach("web").read(0, 4096), Ok(vec![3; 4096]));
    servers.into_iter().for_each(Server::stop);
}

/// With one of three members dead `health` said that all was well, and nobody knew that the next loss would stop every change.
#[test]
fn a_member_of_etcd_that_is_dead_is_told_by_its_address_while_all_goes_on() {
    let mut etcd = Members::spawn(3);
    let mut host = site(&etcd, "a", free_port());
    let one = format!("endpoints = [\"{}\"]", etcd.url(0));
    let all = format!("endpoints = [\"{}\", \"{}\", \"{}\"]", etcd.url(0), etcd.url(1), etcd.url(2));
    assert!(host.config().contains(&one), "{}", host.config());
    let config = host.config().replace(&one, &all);
    host.set_config(&config);
    assert!(init(&host).status.success());
    let server = host.start();
    let member = || {
        let health = said(&host.cli(&["--json", "health"]));
        health.contains("\"directory.member\"").then_some(health)
    };
    wait_for("all is well", SECONDS, || member().is_none().then_some(()));
    etcd.kill(2);
    let told = wait_for("it is told", SECONDS, member);
    assert!(told.contains(etcd.url(2)) && told.contains("1 of 3 members of etcd do not answer"), "{told}");
    assert!(told.contains("none of the others may be lost"), "{told}");
    assert!(!told.contains(etcd.url(0)) && !told.contains("directory.unreachable"), "{told}");
    host.json(&["disk", "create", "web", "64MiB", "--policy", "single"]);
    etcd.run(2);
    wait_for("all is well again", SECONDS, || member().is_none().then_some(()));
    server.stop();
}
