//! A host leaves its cluster: it is emptied while a guest writes, taken out, ends, and may come anew.

use super::cluster::SECONDS;
use super::host::Site;
use super::members::{expect, free_port, init, join, join_all, site, token, wait_until_all_reach};
use super::tools::{said, wait_for};
use super::upgrade::records;
use ::etcd::testing::Members;
use std::time::Duration;

/// The hosts that hold a copy of the disk.
fn holders(site: &Site) -> Vec<String> {
    let disk = site.json(&["disk", "show", "web"]);
    let components = disk["components"].as_array().cloned().unwrap_or_default();
    let mut hosts: Vec<String> =
        components.iter().filter_map(|one| one["host"].as_str().map(str::to_owned)).collect();
    hosts.sort();
    hosts
}

#[test]
fn a_host_that_leaves_is_emptied_first_and_may_join_anew() {
    let etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let mut servers = join_all(&sites);
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    for site in &sites {
        wait_for("all hosts serve it", SECONDS, || {
            let hosts = holders(site);
            (hosts.len() == 2).then_some(())
        });
    }
    // One of the two that may go; the first keeps the authority.
    let name = holders(&sites[0]).into_iter().find(|host| host != "a").expect("two hosts hold it");
    let leaving = if name == "b" { 1 } else { 2 };
    let stays = 3 - leaving;
    expect(&sites[0].cli(&["host", "leave"]), 3, "must be confirmed");
    let told = sites[leaving].ask(&["host", "leave", "--dry-run"]);
    assert!(told.contains("possible") && told.contains("disk web"), "{told}");
    expect(&sites[0].cli(&["host", "remove", &name, "--yes"]), 3, "`drystone host leave` on it");

    let mut client = sites[stays].attach("web");
    client.write(0, &[7; 8192]).expect("it writes");
    let writer = std::thread::spawn(move || {
        for round in 1..200_u64 {
            client.write(8192 + round % 8 * 4096, &[round as u8; 4096]).expect("nobody failed");
            std::thread::sleep(Duration::from_millis(10));
        }
        client
    });
    let left = sites[leaving].cli(&["host", "leave", "--yes"]);
    assert!(left.status.success() && said(&left).contains("has left the cluster"), "{}", said(&left));
    let mut client = writer.join().expect("the guest felt nothing");
    assert_eq!(client.read(0, 8192), Ok(vec![7; 8192]));
    servers.remove(leaving).ended();
    for stayed in [0, stays] {
        wait_for("it is gone from the list", SECONDS, || {
            let hosts = sites[stayed].json(&["host", "list"]);
            (hosts.as_array().map(Vec::len) == Some(2)).then_some(())
        });
    }
    assert!(!holders(&sites[0]).contains(&name), "nothing of it is left there");
    let programs = records(&etcd).into_iter().filter(|(key, ..)| key.starts_with("programs/"));
    assert_eq!(programs.count(), 2, "nor what it told of its program");
    // Without a certificate it does not start; with a new one it is a host like any other, its devices blank.
    let (code, why) = sites[leaving].refused(&[]);
    assert!(code != 0, "{why}");
    let joined = join(&sites[leaving], &token(&sites[0]));
    assert!(joined.status.success(), "{}", said(&joined));
    servers.push(sites[leaving].start());
    wait_until_all_reach(&sites);
    assert_eq!(client.read(0, 8192), Ok(vec![7; 8192]));
    // Who keeps the authority stays until another does.
    drop(client);
    expect(&sites[0].cli(&["host", "leave", "--yes"]), 3, "keeps an authority");
    servers.into_iter().for_each(super::host::Server::stop);
}
