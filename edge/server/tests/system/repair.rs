//! What stays away, fails or is to leave is made anew elsewhere, while clients write; and what returns is put right.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::devices::LoopDevice;
use super::members::free_port;
use super::nbd::Client;
use super::tools::{run, said, sparse_file, text, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::fs::File;
use std::path::Path;

/// Blocks that can be found again: none has another's content.
pub fn stamped(number: u64) -> Vec<u8> {
    (0..512u64).flat_map(|word| (0x5e_a1 << 40 | number << 16 | word).to_le_bytes()).collect()
}

impl Cluster {
    pub fn set(&self, setting: &str, value: &str) {
        self.json("a", &["cluster", "set", setting, value]);
    }

    /// Attaches at a host that may only be starting.
    pub fn attach_soon(&self, host: &str, disk: &str) -> Client {
        let socket = self.path(host).join("d/nbd.sock");
        wait_for("the host serves the disk", SECONDS, || Client::attach(&socket, disk).ok())
    }

    /// Hosts that hold a disk, by component.
    pub fn holders(&self, at: &str, disk: &str) -> Vec<String> {
        let disk = self.json(at, &["disk", "show", disk]);
        let components = disk["components"].as_array().expect("components").iter();
        let mut hosts: Vec<String> =
            components.map(|one| one["host"].as_str().expect("a host").to_owned()).collect();
        hosts.sort();
        hosts
    }

    /// Waits until a disk is whole, on exactly these hosts.
    pub fn wait_until_on(&self, at: &str, disk: &str, hosts: &[&str]) {
        let mut hosts: Vec<&str> = hosts.to_vec();
        hosts.sort_unstable();
        wait_for(&format!("disk {disk} is whole on {hosts:?}"), SECONDS, || {
            let shown = self.json(at, &["disk", "show", disk]);
            let is_whole = shown["not_whole"].as_array().is_none_or(Vec::is_empty);
            let components = shown["components"].as_array().expect("components");
            let counts = components.iter().all(|one| one["standing"] == "active" && one["trouble"].is_null());
            (is_whole && counts && self.holders(at, disk) == hosts).then_some(())
        });
    }

    pub fn component_count(&self, at: &str, host: &str) -> u64 {
        let hosts = self.json(at, &["host", "list"]);
        let hosts = hosts.as_array().expect("hosts");
        let found = hosts.iter().find(|one| one["name"] == host).expect("it is there");
        found["component_count"].as_u64().expect("a number")
    }

    pub fn wait_until_empty(&self, at: &str, host: &str) {
        wait_for(&format!("nothing stands on {host} any more"), SECONDS, || {
            (self.component_count(at, host) == 0).then_some(())
        });
    }

    pub fn assert_equal(&self, disk: &str, hosts: [&str; 2]) {
        let [first, second] = hosts.map(|host| self.uri(host, disk));
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &first, &second]);
    }

    /// Finding codes of a host's health.
    pub fn findings(&self, at: &str) -> Vec<Value> {
        let done = self.cli(at, &["--json", "health"]);
        let health: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let findings = health["findings"].as_array().expect("findings").clone();
        let is_bad = findings.iter().any(|one| one["severity"] != "notice");
        assert_eq!(done.status.code(), Some(i32::from(is_bad)), "{}", said(&done));
        assert_eq!(health["is_well"], !is_bad);
        findings
    }

    pub fn wait_for_finding(&self, at: &str, code: &str) -> Value {
        wait_for(&format!("{code} is found"), SECONDS, || {
            self.findings(at).into_iter().find(|one| one["code"] == code)
        })
    }
}

pub fn third<'a>(holders: &[String]) -> &'a str {
    ["a", "b", "c"].into_iter().find(|host| !holders.iter().any(|one| one == host)).expect("one is left")
}

#[test]
fn a_copy_that_stays_away_is_made_anew_under_load_and_what_returns_is_deleted() {
    let cluster = Cluster::start(3);
    cluster.set("repair-delay", "2s");
    let holders = cluster.mirrored("web", "64MiB");
    let (user, victim, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    for number in 0..256 {
        client.write(48 * MIB + number * 4096, &stamped(number)).expect("it writes");
    }
    let load = verified_load(&cluster.uri(user, "web"), 15);
    cluster.order("kill", victim);
    wait_for("it says what is not whole", SECONDS, || {
        let status = cluster.json(user, &["status"]);
        status["not_whole"]["web"].is_array().then_some(())
    });
    cluster.wait_until_on(user, "web", &[user, third]);
    cluster.order("start", victim);
    cluster.wait_until_empty(user, victim);
    assert_verified(load);
    assert_eq!(cluster.holders(user, "web"), sorted(&[user, third]));
    for host in ["a", "b", "c"] {
        cluster.assert_equal("web", [user, host]);
    }
    // The new copy alone has all that was acknowledged.
    drop(client);
    cluster.order("kill", user);
    let mut client = cluster.attach(third, "web");
    for number in 0..256 {
        assert!(client.read(48 * MIB + number * 4096, 4096) == Ok(stamped(number)), "block {number} differs");
    }
    let events = said(&cluster.cli(third, &["events"]));
    assert!(events.contains("served here"), "{events}");
}

fn sorted(hosts: &[&str]) -> Vec<String> {
    let mut hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    hosts.sort();
    hosts
}

#[test]
fn a_disk_that_nobody_uses_is_repaired_when_its_owner_is_what_is_lost() {
    let cluster = Cluster::start(3);
    cluster.set("repair-delay", "1s");
    let holders = cluster.mirrored("web", "64MiB");
    let (owner, other, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(owner, "web");
    client.write(0, &stamped(7)).expect("it writes");
    cluster.wait_for_owner("web", owner);
    drop(client);
    cluster.order("kill", owner);
    cluster.wait_until_on(third, "web", &[other, third]);
    assert!(cluster.attach(third, "web").read(0, 4096) == Ok(stamped(7)));
    // It returns while all is whole: nothing is left of it.
    cluster.order("start", owner);
    cluster.wait_until_empty(third, owner);
    assert!(cluster.attach_soon(owner, "web").read(0, 4096) == Ok(stamped(7)));
}

#[test]
fn nothing_is_made_anew_while_replacements_are_none_and_that_is_said() {
    let cluster = Cluster::start(3);
    cluster.set("repair-delay", "1s");
    cluster.set("replacements", "0");
    let holders = cluster.mirrored("web", "64MiB");
    let (user, victim, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    client.write(0, &stamped(7)).expect("it writes");
    cluster.order("kill", victim);
    wait_for("it says that it is not replaced", SECONDS, || {
        let shown = said(&cluster.cli(user, &["disk", "show", "web"]));
        shown.contains("not replaced while the setting `replacements` is 0").then_some(())
    });
    let health = said(&cluster.cli(user, &["health"]));
    assert!(
        health.contains("repair.off") && health.contains("drystone cluster set replacements 16"),
        "{health}"
    );
    assert_eq!(cluster.holders(user, "web"), sorted(&[user, victim]));
    cluster.json(user, &["cluster", "set", "replacements", "16"]);
    cluster.wait_until_on(user, "web", &[user, third]);
}

/// The configuration of a host whose capacity device is another than a demo's.
pub fn configure(folder: &Path, name: &str, capacity: &Path, file_size: &str) {
    let own = folder.join("d").join(name);
    std::fs::create_dir_all(&own).expect("room for a folder");
    let port = free_port();
    let text = format!(
        "name = {name:?}\ndata_dir = \"d\"\n[listen]\nnbd = [\"127.0.0.1:{port}\", \"unix:nbd.sock\"]\n\
         [cluster]\ndirectory = \"unix:{}\"\n[memory]\nbuffers = \"256MiB\"\ntables = \"128MiB\"\n\
         [[group]]\nlog = \"log.img\"\ncapacity = [{:?}]\nlog_size = \"128MiB\"\nfile_size = {file_size:?}\n\
         create = \"if-blank\"\n",
        folder.join("d/demo.sock").display(),
        text(capacity),
    );
    std::fs::write(own.join("host.toml"), text).expect("room for a file");
}

#[test]
fn what_stood_on_a_device_that_failed_is_made_anew_at_once() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    let file = folder.path().join("vanishing");
    // Larger than the others, so that something comes to it.
    sparse_file(&file, 64 * 1024 * MIB);
    let device = LoopDevice::attach(&file, &[]);
    configure(folder.path(), "b", &device.path, "1GiB");
    let cluster = Cluster::start_in(folder, 3);
    // One of a few disks stands on it; the repair delay is the default, an hour.
    let names = ["one", "two", "three", "four"];
    names.iter().for_each(|name| drop(cluster.mirrored(name, "64MiB")));
    let stands = |name: &&&str| cluster.holders("a", name).contains(&"b".to_owned());
    let on_it: Vec<&str> = names.iter().filter(stands).copied().collect();
    assert!(!on_it.is_empty(), "a copy of one of four disks stands on b");
    for name in &on_it {
        let mut client = cluster.attach("a", name);
        let all: Vec<u8> = (0..256).flat_map(stamped).collect();
        client.write(0, &all).expect("it writes");
    }
    File::options().write(true).open(&file).and_then(|file| file.set_len(0)).expect("files can shrink");
    device.look_at_size();
    // The device fails when something is asked of it.
    for name in &on_it {
        let mut client = cluster.attach("b", name);
        for round in 0..64 {
            assert!(client.read(round * 4096, 4096) == Ok(stamped(round)), "the other copy serves");
        }
    }
    let finding = cluster.wait_for_finding("a", "device.failed");
    assert!(finding["subject"].as_str().is_some_and(|subject| subject.contains("host b")), "{finding}");
    for name in &on_it {
        cluster.wait_until_on("a", name, &["a", "c"]);
        let all: Vec<u8> = (0..256).flat_map(stamped).collect();
        assert!(cluster.attach("c", name).read(0, MIB as u32) == Ok(all));
    }
}

/// A copy made anew held what the other had, but not that something had been trimmed: one that had been away since before
/// that was brought up to date from it, and kept what was trimmed.
#[test]
fn what_was_trimmed_stays_so_though_one_copy_missed_it_and_the_other_has_moved() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (leaving, away, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(third, "web");
    let content: Vec<u8> = (0..256).flat_map(stamped).collect();
    client.write(16 * MIB, &content).expect("it writes");
    client.write(32 * MIB, &stamped(1)).expect("it writes");
    cluster.order("kill", away);
    client.trim(16 * MIB, MIB as u32).expect("it trims");
    cluster.json(third, &["host", "maintenance", leaving, "--mode", "full-evacuation", "--yes"]);
    wait_for("the other copy has moved", SECONDS, || {
        cluster.holders(third, "web").iter().all(|host| host != leaving).then_some(())
    });
    cluster.order("start", away);
    drop(cluster.attach_soon(away, "web"));
    cluster.wait_until_whole(third, "web");
    drop(client);
    cluster.order("kill", third);
    let mut client = cluster.attach_soon(away, "web");
    assert!(client.read(16 * MIB, MIB as u32) == Ok(vec![0; MIB as usize]), "a trim came undone");
    assert!(client.read(32 * MIB, 4096) == Ok(stamped(1)));
}

/// A write that no copy has room for is told to the copies as a change of nothing, which the bytes between hosts did not allow.
#[test]
fn a_disk_whose_copies_are_all_full_says_so_and_goes_on() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    for name in ["a", "b"] {
        configure(folder.path(), name, Path::new("capacity.img"), "256MiB");
    }
    let cluster = Cluster::start_in(folder, 2);
    cluster.json("a", &["disk", "create", "web", "1GiB", "--policy", "default,stripes=1"]);
    let mut client = cluster.attach_soon("a", "web");
    let content: Vec<u8> = (0..256).flat_map(stamped).collect();
    let fits = (0..1024).find(|part| client.write(part * MIB, &content).is_err()).expect("it becomes full");
    assert!(fits > 100, "{fits} MiB");
    assert_eq!(client.write(fits * MIB, &content), Err(super::nbd::errno::ENOSPC));
    client.trim(0, 8 * MIB as u32).expect("it trims");
    wait_for("there is room again", SECONDS, || client.write(fits * MIB, &content).ok());
    assert!(client.read(fits * MIB, MIB as u32).as_ref() == Ok(&content));
    cluster.wait_until_whole("b", "web");
}

/// One full device of a mirror: the disk was said to fail writes, health did not say which disks it harmed, and the copy was tried again
/// every five seconds for ever.
#[test]
fn a_mirror_with_one_full_device_goes_on_and_says_which_copy_lacks_room() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    configure(folder.path(), "a", Path::new("capacity.img"), "1GiB");
    configure(folder.path(), "b", Path::new("capacity.img"), "256MiB");
    let cluster = Cluster::start_in(folder, 2);
    cluster.json("a", &["disk", "create", "web", "1GiB", "--policy", "default,stripes=1"]);
    let mut client = cluster.attach_soon("a", "web");
    let content: Vec<u8> = (0..256).flat_map(stamped).collect();
    for part in 0..320 {
        client.write(part * MIB, &content).expect("the other copy has room");
    }
    let trouble = wait_for("the disk says what it lacks", SECONDS, || {
        let disks = cluster.json("a", &["disk", "list"]);
        let trouble = disks[0]["trouble"].as_str().map(str::to_owned);
        trouble.filter(|text| text.contains("has no room on"))
    });
    assert!(trouble.contains("of b") && !trouble.contains("writes to places without data fail"), "{trouble}");
    wait_for("health names the device and the disk", SECONDS, || {
        let found = cluster.findings("a");
        let full = found.iter().find(|one| one["code"] == "space.low")?;
        full["cause"].as_str()?.contains("new data has a copy fewer: web").then_some(())
    });
    let waits = wait_for("resync says where and when", SECONDS, || {
        let resync = said(&cluster.cli("a", &["resync"]));
        resync.contains("tried again in").then_some(resync)
    });
    assert!(waits.contains("room on") && waits.contains("of b"), "{waits}");
    // More than a copy may lack, so that it is noticed.
    client.trim(0, 64 * MIB as u32).expect("it trims");
    client.trim(64 * MIB, 64 * MIB as u32).expect("it trims");
    drop(client);
    cluster.wait_until_whole("a", "web");
}
