//! The level of the records: a program that does not understand it neither starts, joins nor goes on, and what cannot be read is
//! told. Levels that no release has are written into etcd by the test itself.

use super::cluster::SECONDS;
use super::host::{Server, Site};
use super::members::{config, expect, free_port, init, join, join_all, site, token, wait_until_all_reach};
use super::tools::{said, wait_for};
use ::etcd::testing::Members;
use ::etcd::{Change, Committed};
use serde_json::{Value, json};
use std::time::Duration;

pub const LEVEL: &str = "revoked/older-programs";

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// All records of the cluster: key, version, and what they say.
pub fn records(etcd: &Members) -> Vec<(String, u64, Value)> {
    let all = run(async { etcd.etcd("/drystone/").list().await }).expect("etcd answers").records;
    let read = |value: &[u8]| serde_json::from_slice(value).expect("JSON");
    all.into_iter().map(|one| (one.key, one.version, read(&one.value))).collect()
}

fn version(etcd: &Members, key: &str) -> u64 {
    records(etcd).into_iter().find(|(known, ..)| known == key).map_or(0, |(_, version, _)| version)
}

/// Sets a record, or removes it.
pub fn set(etcd: &Members, key: &str, value: Option<&Value>) {
    let value = value.map(|value| value.to_string().into_bytes());
    let change = Change { key: key.to_owned(), expected: version(etcd, key), value };
    let done = run(async { etcd.etcd("/drystone/").commit(&[change], Duration::from_secs(4)).await });
    assert!(matches!(done, Ok(Committed::Done { .. })), "{done:?}");
}

/// The highest level that the program tells of itself.
fn highest(etcd: &Members) -> u64 {
    let all = records(etcd);
    let program =
        all.iter().find(|(key, ..)| key.starts_with("programs/")).expect("a host tells of its program");
    assert_eq!(program.2["lowest"], json!(1), "{program:?}");
    program.2["highest"].as_u64().expect("a number")
}

fn two() -> (Members, Vec<Site>, Vec<Server>) {
    let etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let servers = join_all(&sites);
    (etcd, sites, servers)
}

/// When each device was written last.
fn written(site: &Site) -> Vec<std::time::SystemTime> {
    let files = ["log", "data"];
    let when =
        |name: &&str| std::fs::metadata(site.path(name)).and_then(|file| file.modified()).expect("a file");
    files.iter().map(when).collect()
}

#[test]
fn a_level_that_is_not_understood_ends_hosts_and_lets_none_start_or_join() {
    let (etcd, sites, mut servers) = two();
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    let mut client = sites[0].attach("web");
    client.write(0, &[7; 8192]).expect("it writes");
    // As it is with one release: a new cluster is at its level, and nothing is to be raised.
    let highest = highest(&etcd);
    let told = sites[0].json(&["cluster", "upgrade", "--dry-run"]);
    assert_eq!(
        (&told["level"], &told["to"], told["hosts"].as_array().map(Vec::len)),
        (&json!(highest), &json!(null), Some(2))
    );
    let none = sites[0].cli(&["cluster", "upgrade"]);
    assert!(none.status.success() && said(&none).contains("nothing to raise"), "{}", said(&none));
    let all = records(&etcd);
    let level = all.iter().find(|(key, ..)| key == LEVEL).map(|(_, _, value)| value.clone());
    assert_eq!(level.as_ref().map(|level| level["level"].clone()), Some(json!(highest)), "{all:?}");
    for (key, _, host) in all.iter().filter(|(key, ..)| key.starts_with("hosts/")) {
        let program = format!("programs/{}", host["id"].as_str().expect("an id"));
        let (_, _, program) =
            all.iter().find(|(key, ..)| *key == program).expect("each host tells of its program");
        assert_eq!(program["incarnation"], host["incarnation"], "{key}");
        assert_eq!((&program["lowest"], &program["highest"]), (&json!(1), &json!(highest)), "{key}");
        assert!(host.get("level").is_none() && host.get("levels").is_none(), "{host}");
    }
    let (invited, third) = (token(&sites[0]), site(&etcd, "c", free_port()));
    // Somebody forces the level: both hosts stop, as they must not read what stands there.
    drop(client);
    set(&etcd, LEVEL, Some(&json!({ "level": highest + 1, "of a later release": true })));
    let later = format!("at level {}, and drystone", highest + 1);
    for server in servers.drain(..) {
        let (code, messages) = server.ended_by_itself();
        assert!(code == 3 && messages.contains("this host stops serving"), "{code}: {messages}");
        assert!(messages.contains(&later), "{messages}");
    }
    // None starts, and none writes anything, here or there.
    let (before, files) = (records(&etcd), sites.iter().map(written).collect::<Vec<_>>());
    for site in &sites {
        let (code, messages) = site.refused(&[]);
        let (understood, needed) = (
            format!("understands levels 1 to {highest} only"),
            format!("install a release that understands level {}", highest + 1),
        );
        assert!(code == 3 && messages.contains(&understood), "{code}: {messages}");
        assert!(messages.contains(&needed), "{messages}");
    }
    expect(&join(&third, &invited), 3, &later);
    assert!(!third.path("d/identity/certificate.pem").exists(), "{}", config(&third).display());
    assert_eq!(records(&etcd), before);
    assert_eq!(sites.iter().map(written).collect::<Vec<_>>(), files);
    // Nothing was lost by it, the token least of all.
    set(&etcd, LEVEL, level.as_ref());
    let servers: Vec<Server> = sites.iter().map(Site::start).collect();
    wait_until_all_reach(&sites);
    let mut client = wait_for("it is served again", SECONDS, || {
        super::nbd::Client::attach(&sites[1].path("d/nbd.sock"), "web").ok()
    });
    assert_eq!(client.read(0, 8192), Ok(vec![7; 8192]));
    let joined = join(&third, &invited);
    assert!(joined.status.success(), "{}", said(&joined));
    servers.into_iter().for_each(Server::stop);
}

/// The finding about records that cannot be read.
fn unreadable(site: &Site) -> Option<Value> {
    let health = site.cli(&["--json", "health"]);
    let health: Value = serde_json::from_slice(&health.stdout).expect("JSON");
    let found = health["findings"].as_array().cloned().unwrap_or_default();
    found.into_iter().find(|one| one["code"] == "records.unreadable")
}

#[test]
fn records_that_cannot_be_read_are_told_with_the_release_and_its_levels() {
    let (etcd, sites, servers) = two();
    let understood = format!("which understands levels 1 to {}", highest(&etcd));
    assert_eq!(unreadable(&sites[0]), None);
    sites[0].ask(&["policy", "create", "gold", "single", "stripes=1"]);
    for site in &sites {
        wait_for("all know the policy", SECONDS, || {
            site.ask(&["policy", "list"]).contains("gold").then_some(())
        });
    }
    let gold = records(&etcd).into_iter().find(|(key, ..)| key == "policies/gold").expect("it is there").2;
    let mut odd = gold.clone();
    odd["colour"] = json!("red");
    for (key, value, why) in [
        ("policies/gold", odd, "unknown field `colour`"),
        ("gadgets/1", json!({ "wheels": 4 }), "there is no such kind of record"),
        ("programs/x", json!({}), "the record programs/x"),
    ] {
        set(&etcd, key, Some(&value));
        for (site, server) in sites.iter().zip(&servers) {
            let found = wait_for("it is told", SECONDS, || unreadable(site));
            let cause = found["cause"].as_str().expect("a cause");
            assert!(found["severity"] == "critical" && cause.contains(why), "{found}");
            assert!(cause.contains(&format!("the record {key} ")), "{found}");
            assert!(cause.contains("cannot be read by drystone ") && cause.contains(&understood), "{found}");
            assert!(server.messages().contains(why), "{}", server.messages());
            // What it said before counts still.
            assert!(site.ask(&["policy", "list"]).contains("gold"));
        }
        set(&etcd, key, if key == "policies/gold" { Some(&gold) } else { None });
        for site in &sites {
            wait_for("it is so no more", SECONDS, || unreadable(site).is_none().then_some(()));
        }
    }
    servers.into_iter().for_each(Server::stop);
}
