//! A host leaves its cluster: it is emptied while a guest writes, taken out, ends, and may come anew.

use super::cluster::SECONDS;
use super::host::Site;
use super::members::{expect, free_port, init, join, join_all, site, token, wait_until_all_reach};
use super::tools::{said, wait_for};
use super::upgrade::records;
use ::etcd::testing::Members;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut round = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                round += 1;
                client.write(8192 + round % 8 * 4096, &[round as u8; 4096]).expect("nobody failed");
            }
            client
        }
    });
    let left = sites[leaving].cli(&["host", "leave", "--yes"]);
    assert!(left.status.success() && said(&left).contains("has left the cluster"), "{}", said(&left));
    is_over.store(true, Ordering::Relaxed);
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

/// A host was lost for good and taken out while no other had room for its copies. The machine joined again with the devices that it had:
/// what the record still named there was neither used nor replaced, and the disk stayed with one copy for ever.
#[test]
fn a_host_that_was_removed_joins_again_with_its_old_devices() {
    let etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let mut servers = join_all(&sites);
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    let mut client = sites[0].attach("web");
    client.write(0, &[7; 8192]).expect("it writes");
    drop(servers.remove(1));
    client.write(8192, &[8; 4096]).expect("the other copy goes on");
    let removed = wait_for("nobody hears of it any more", SECONDS, || {
        let removed = sites[0].cli(&["--json", "host", "remove", "b", "--yes"]);
        removed.status.success().then(|| said(&removed))
    });
    assert!(removed.contains("not_replaced") && removed.contains("web"), "{removed}");
    let codes = || {
        // The exit code says that something needs attention.
        let told = sites[0].cli(&["--json", "health"]);
        let found: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
        let findings = found["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().filter_map(|one| one["code"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    wait_for("what it lacks is said", SECONDS, || {
        codes().iter().any(|code| code == "placement.debt").then_some(())
    });
    assert!(!codes().iter().any(|code| code == "component.stale"), "no device lost anything: {:?}", codes());
    // The machine comes again with another identity, and with its old devices.
    for entry in std::fs::read_dir(sites[1].path("d")).expect("it had a data directory") {
        let path = entry.expect("it can be read").path();
        drop(std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)));
    }
    let joined = join(&sites[1], &token(&sites[0]));
    assert!(joined.status.success(), "{}", said(&joined));
    servers.push(sites[1].start());
    wait_until_all_reach(&sites);
    wait_for("it holds a copy again", SECONDS, || {
        let disk = sites[0].json(&["disk", "show", "web"]);
        let components = disk["components"].as_array().cloned().unwrap_or_default();
        let active = components.iter().filter(|one| one["standing"] == "active").count();
        (active == 2).then_some(())
    });
    assert_eq!(client.read(0, 8192), Ok(vec![7; 8192]));
    drop(client);
    wait_for("nothing is wrong", SECONDS, || {
        let codes = codes();
        (!codes.iter().any(|code| code.starts_with("disk.") || code.starts_with("placement."))).then_some(())
    });
    drop(servers.remove(0));
    let mut client = sites[1].attach("web");
    assert_eq!(client.read(8192, 4096), Ok(vec![8; 4096]));
    drop(client);
    servers.into_iter().for_each(super::host::Server::stop);
}
