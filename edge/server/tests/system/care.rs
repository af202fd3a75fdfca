//! Hosts that are serviced, hosts that are gone for good, and devices that are evened out: nothing is lost by any of it.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::repair::{configure, stamped, third};
use super::tools::{said, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::path::Path;

impl Cluster {
    fn host(&self, at: &str, name: &str) -> Value {
        let hosts = self.json(at, &["host", "list"]);
        let found = hosts.as_array().expect("hosts").iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("host {name} is in {hosts}")).clone()
    }

    fn wait_for_maintenance(&self, at: &str, host: &str) {
        wait_for("the host may go", SECONDS, || {
            let state = self.host(at, host)["maintenance"].as_str().map(str::to_owned);
            state.filter(|state| state.starts_with("in maintenance"))
        });
    }
}

#[test]
fn a_host_is_emptied_under_load_and_may_go() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, leaving, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    client.write(48 * MIB, &stamped(1)).expect("it writes");
    // Nothing happens by asking.
    let dry = cluster.json(user, &["host", "maintenance", leaving, "--mode", "full-evacuation", "--dry-run"]);
    assert_eq!((&dry["is_possible"], &dry["is_begun"]), (&Value::Bool(true), &Value::Bool(false)), "{dry}");
    assert_eq!(dry["disks"][0]["components"][0]["fate"], "moves", "{dry}");
    assert!(dry["bytes_to_move"].as_u64() >= Some(MIB), "{dry}");
    assert!(cluster.host(user, leaving)["maintenance"].is_null());
    let load = verified_load(&cluster.uri(user, "web"), 6);
    cluster.json(user, &["host", "maintenance", leaving, "--mode", "full-evacuation"]);
    cluster.wait_until_on(user, "web", &[user, third]);
    cluster.wait_until_empty(user, leaving);
    cluster.wait_for_maintenance(user, leaving);
    let finding = cluster.wait_for_finding(user, "host.maintenance");
    assert_eq!(finding["subject"], format!("host {leaving}"));
    // Nothing new comes to it: a mirrored disk has place on the two others alone.
    assert!(!cluster.mirrored("other", "64MiB").iter().any(|holder| holder == leaving));
    // A host tells every second what it has; what was told before may have been older.
    cluster.wait_until_empty(user, leaving);
    cluster.order("stop", leaving);
    assert_verified(load);
    assert!(client.read(48 * MIB, 4096) == Ok(stamped(1)));
    cluster.order("start", leaving);
    cluster.json(user, &["host", "maintenance", leaving, "--end"]);
    assert!(cluster.host(user, leaving)["maintenance"].is_null());
}

#[test]
fn a_host_with_an_only_copy_is_serviced_after_that_was_copied_or_with_consent() {
    let cluster = Cluster::start(2);
    let disk = cluster.json("a", &["disk", "create", "solo", "64MiB", "--policy", "single,stripes=1"]);
    let holder = disk["components"][0]["host"].as_str().expect("a host").to_owned();
    let other = if holder == "a" { "b" } else { "a" };
    let mut client = cluster.attach_soon(&holder, "solo");
    client.write(0, &stamped(5)).expect("it writes");
    drop(client);
    let refused = cluster.cli("a", &["host", "maintenance", &holder, "--mode", "none"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("cannot be used: solo"), "{}", said(&refused));
    cluster.json("a", &["host", "maintenance", &holder, "--mode", "none", "--yes"]);
    cluster.wait_for_maintenance("a", &holder);
    assert_eq!(cluster.holders("a", "solo"), [holder.as_str()], "nothing was copied");
    cluster.json("a", &["host", "maintenance", &holder, "--end"]);
    // A disk of one copy has no owner by now: it gets one, for it is to be copied.
    cluster.json("a", &["host", "maintenance", &holder, "--mode", "ensure-accessibility"]);
    cluster.wait_until_on("a", "solo", &[other]);
    cluster.wait_for_maintenance("a", &holder);
    cluster.order("kill", &holder);
    assert!(cluster.attach_soon(other, "solo").read(0, 4096) == Ok(stamped(5)));
    let missing = cluster.cli(other, &["host", "maintenance", "nobody", "--mode", "none"]);
    assert_eq!(missing.status.code(), Some(4), "{}", said(&missing));
}

#[test]
fn a_host_that_is_gone_for_good_is_removed_but_not_with_an_only_copy() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, gone, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    client.write(0, &stamped(3)).expect("it writes");
    let refused = cluster.cli(user, &["host", "remove", gone, "--yes"]);
    assert_eq!(refused.status.code(), Some(3), "it is there: {}", said(&refused));
    cluster.order("kill", gone);
    wait_for("it is told when the copy is replaced", SECONDS, || {
        let finding = cluster.wait_for_finding(user, "disk.reduced");
        finding["cause"].as_str()?.contains("replaced in 60 min").then_some(())
    });
    cluster.wait_for_finding(user, "host.away");
    cluster.json(user, &["host", "remove", gone, "--yes"]);
    // What stood there is made anew at once, not after an hour.
    cluster.wait_until_on(user, "web", &[user, third]);
    let hosts = cluster.json(user, &["host", "list"]);
    assert_eq!(hosts.as_array().map(Vec::len), Some(2), "{hosts}");
    client.write(4096, &stamped(4)).expect("it writes");
    // The copy that is left alone counts: its host is not given up.
    cluster.order("kill", third);
    client.write(8192, &stamped(5)).expect("it writes");
    drop(client);
    cluster.order("kill", user);
    cluster.order("start", third);
    wait_for("the other is gone", SECONDS, || {
        let refused = cluster.cli(third, &["host", "remove", user, "--yes"]);
        let text = said(&refused);
        assert_eq!(
            refused.status.code(),
            Some(if text.contains("no host answers") { 6 } else { 3 }),
            "{text}"
        );
        text.contains("the only current copy of something of web").then_some(())
    });
    cluster.order("start", user);
    drop(cluster.attach_soon(user, "web"));
    // A host serves guests a moment before it answers questions.
    wait_for("its API answers", SECONDS, || cluster.cli(user, &["status"]).status.success().then_some(()));
    cluster.wait_until_whole(user, "web");
    let expected = [stamped(3), stamped(4), stamped(5)].concat();
    assert!(cluster.attach_soon(third, "web").read(0, 12288) == Ok(expected));
}

#[test]
fn devices_that_differ_by_much_are_evened_out_if_that_is_wanted() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    for name in ["a", "b"] {
        configure(folder.path(), name, Path::new("capacity.img"), "512MiB");
    }
    let cluster = Cluster::start_in(folder, 2);
    cluster.set("balance", "off");
    let names: Vec<String> = (0..12).map(|number| format!("disk{number}")).collect();
    for name in &names {
        cluster.json("a", &["disk", "create", name, "64MiB", "--policy", "single,stripes=1"]);
    }
    let on_a: Vec<&String> = names.iter().filter(|name| cluster.holders("a", name) == ["a"]).collect();
    assert!(on_a.len() >= 4, "placement spreads: {on_a:?}");
    let content: Vec<u8> = (0..256).flat_map(stamped).collect();
    let mut clients = Vec::new();
    for name in &on_a[..4] {
        let mut client = cluster.attach_soon("a", name);
        for part in 0..64 {
            client.write(part * MIB, &content).expect("it writes");
        }
        clients.push(client);
    }
    let spread = || {
        let balance = cluster.json("a", &["cluster", "balance"]);
        let percents = balance["devices"].as_array().expect("devices").iter();
        let percents: Vec<f64> = percents.map(|one| one["percent"].as_f64().expect("a number")).collect();
        percents[0] - percents[percents.len() - 1]
    };
    wait_for("the space is taken", SECONDS, || (spread() > 35.0).then_some(()));
    assert_eq!(cluster.json("a", &["cluster", "balance"])["mode"], "off");
    cluster.set("balance", "proactive");
    wait_for("devices are evened out", SECONDS, || (spread() < 16.0).then_some(()));
    for (name, client) in on_a.iter().zip(&mut clients) {
        for part in 0..64 {
            assert!(client.read(part * MIB, MIB as u32).as_ref() == Ok(&content), "disk {name} differs");
        }
    }
}
