//! Devices that died and are replaced, and groups that are converted, in the words of the guide and beside a load that verifies.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::host::{Shape, Site};
use super::nbd::Client;
use super::tools::{run, said, sparse_file, text, wait_for};
use base::units::{BLOCK_SIZE, MIB};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

const OPERATING: &str = include_str!("../../../../docs/guide/operating.md");
const INSTALLING: &str = include_str!("../../../../docs/guide/installing.md");
/// How the guide calls the devices.
const CAPACITY: &str = "/dev/disk/by-id/nvme-two";
const NEW_CAPACITY: &str = "/dev/disk/by-id/nvme-four";
const LOG: &str = "/dev/disk/by-id/nvme-one";
const NEW_LOG: &str = "/dev/disk/by-id/nvme-five";

/// The blocks of commands below a heading, up to the next one of the same depth, without what is said beside them.
fn blocks(guide: &str, heading: &str) -> Vec<Vec<String>> {
    let mark = heading.split_inclusive(' ').next().expect("a mark");
    let below = guide.lines().skip_while(|line| *line != heading).skip(1);
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let mut is_typed = false;
    for line in below.take_while(|line| !line.starts_with(mark)) {
        if line.starts_with("```") {
            is_typed = line == "```sh";
            blocks.extend(is_typed.then(Vec::new));
            continue;
        }
        let line = line.split_once("  #").map_or(line, |(typed, _)| typed).trim();
        if is_typed && !line.is_empty() {
            blocks.last_mut().expect("it has begun").push(line.to_owned());
        }
    }
    blocks
}

/// The words of a command of the guide, with a reader's own devices.
fn words(line: &str, devices: &[(&str, &Path)]) -> Vec<String> {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("drystone"), "{line}");
    let own = |word: &str| devices.iter().find(|(of_guide, _)| *of_guide == word);
    words.map(|word| own(word).map_or_else(|| word.to_owned(), |(_, path)| text(path).to_owned())).collect()
}

/// The guide has three blocks: for a capacity device, for one that was used before, and for a log device.
fn guide() -> [Vec<String>; 3] {
    let blocks = blocks(OPERATING, "## A device died");
    blocks.try_into().unwrap_or_else(|blocks| panic!("the guide has other blocks: {blocks:#?}"))
}

fn of_role(devices: &Value, role: &str) -> PathBuf {
    let devices = devices.as_array().expect("devices");
    let found = devices.iter().find(|one| one["role"] == role && one["failure"].is_null());
    PathBuf::from(
        found.unwrap_or_else(|| panic!("no {role} in {devices:?}"))["path"].as_str().expect("a path"),
    )
}

fn has_failed(devices: &Value, path: &Path) -> bool {
    let devices = devices.as_array().expect("devices");
    devices.iter().any(|one| one["path"] == text(path) && !one["failure"].is_null())
}

/// What fails a file: it is not there any more behind its first MiB.
fn shrink(path: &Path) -> u64 {
    let file = File::options().write(true).open(path).expect("it is there");
    let size = file.metadata().expect("its size").len();
    file.set_len(8 * MIB).expect("files can shrink");
    size
}

fn replace_in(config: &Path, old: &Path, new: &Path) {
    let name = |path: &Path| path.file_name().expect("a file").to_str().expect("plain text").to_owned();
    let before = std::fs::read_to_string(config).expect("it is there");
    let after = before.replace(&format!("\"{}\"", name(old)), &format!("\"{}\"", name(new)));
    assert_ne!(before, after, "{} stands in the configuration", name(old));
    std::fs::write(config, after).expect("it can be written");
}

/// Types commands at a host of a cluster.
fn type_at(cluster: &Cluster, host: &str, lines: &[String], devices: &[(&str, &Path)]) {
    for line in lines {
        if line == "systemctl restart drystone" {
            cluster.order("stop", host);
            cluster.order("start", host);
            wait_for("the host answers", SECONDS, || {
                cluster.cli(host, &["status"]).status.success().then_some(())
            });
            continue;
        }
        let words = words(line, devices);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = cluster.cli(host, &words);
        // `health` says by its exit code that something is wrong, which it is.
        assert!(done.status.success() || words == ["health"], "{line}: {}", said(&done));
    }
}

fn wait_for_code(cluster: &Cluster, host: &str, code: &str) {
    wait_for(&format!("health says {code}"), SECONDS, || {
        said(&cluster.cli(host, &["--json", "health"])).contains(code).then_some(())
    });
}

/// What every device of a host in a cluster is replaced by, while another host's client writes and verifies.
#[test]
fn devices_of_a_host_of_a_cluster_are_replaced_by_the_words_of_the_guide_under_load() {
    let [capacity, used, log] = guide();
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, victim) = (holders[0].as_str(), holders[1].as_str());
    let config = cluster.path(victim).join("host.toml");
    let devices = || cluster.json(victim, &["device", "list"]);
    let load = verified_load(&cluster.uri(user, "web"), 45);

    // A capacity device.
    let old = of_role(&devices(), "capacity");
    let new = old.with_file_name("new-capacity.img");
    let former = old.with_file_name("former-capacity.img");
    run("cp", &["--sparse=always", text(&old), text(&former)]);
    let size = shrink(&old);
    wait_for("it is out of service", SECONDS, || has_failed(&devices(), &old).then_some(()));
    wait_for_code(&cluster, user, "device.failed");
    sparse_file(&new, size);
    type_at(&cluster, victim, &capacity, &[(CAPACITY, &old), (NEW_CAPACITY, &new)]);
    replace_in(&config, &old, &new);
    cluster.wait_until_whole(user, "web");

    // The host is lost, and comes back with a disk in that slot that still has what it had in former times.
    cluster.order("kill", victim);
    std::fs::rename(&former, &new).expect("it takes the place");
    cluster.order("start", victim);
    wait_for("it is found missing", SECONDS, || {
        let done = cluster.cli(victim, &["--json", "device", "list"]);
        has_failed(&serde_json::from_slice(&done.stdout).ok().filter(Value::is_array)?, &new).then_some(())
    });
    let refused = cluster.cli(victim, &["device", "replace", text(&new), text(&new)]);
    assert!(!refused.status.success() && said(&refused).contains("--force"), "{}", said(&refused));
    type_at(&cluster, victim, &used, &[(CAPACITY, &new), (NEW_CAPACITY, &new)]);
    cluster.wait_until_whole(user, "web");

    // The log device.
    let old = of_role(&devices(), "log");
    let newer = old.with_file_name("new-log.img");
    let size = shrink(&old);
    wait_for("it is out of service", SECONDS, || has_failed(&devices(), &old).then_some(()));
    wait_for_code(&cluster, user, "log.failed");
    sparse_file(&newer, size);
    type_at(&cluster, victim, &log, &[(LOG, &old), (NEW_LOG, &newer)]);
    replace_in(&config, &old, &newer);
    cluster.wait_until_whole(user, "web");
    assert_verified(load);

    cluster.order("stop", victim);
    cluster.order("start", victim);
    cluster.wait_until_whole(user, "web");
    wait_for("the host serves the disk", SECONDS, || {
        Client::attach(&cluster.path(victim).join("d/nbd.sock"), "web").ok()
    });
    let (a, b) = (cluster.uri(user, "web"), cluster.uri(victim, "web"));
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &a, &b]);
    let devices = devices();
    assert!(devices.as_array().expect("devices").iter().all(|one| one["failure"].is_null()), "{devices}");
}

/// A file with noise at its beginning, as a new mapping of dm-crypt looks.
fn noise(path: &Path, size: u64) {
    sparse_file(path, size);
    let file = File::options().write(true).open(path).expect("it is there");
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xa5; 8192], 4096).expect("it is written");
}

/// How a host gets encrypted devices: its group is emptied, taken out and made anew while guests run. The mappings are files here.
#[test]
fn a_group_is_converted_by_the_words_of_the_guide_under_load() {
    let convert = blocks(INSTALLING, "### Converting a host that has data").swap_remove(0);
    let add = blocks(INSTALLING, "### Adding the devices to Drystone").swap_remove(0);
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, victim) = (holders[0].as_str(), holders[1].as_str());
    let config = cluster.path(victim).join("host.toml");
    let devices = || cluster.json(victim, &["device", "list"]);
    let load = verified_load(&cluster.uri(user, "web"), 20);
    let (log, capacity) = (of_role(&devices(), "log"), of_role(&devices(), "capacity"));
    let is_empty = |device: &Value| {
        device["role"] == "log" || device["leaving"].as_str().is_some_and(|text| text.starts_with("empty"))
    };
    for line in &convert {
        type_at(&cluster, victim, std::slice::from_ref(line), &[(LOG, &log), (CAPACITY, &capacity)]);
        if line == "drystone device list" {
            wait_for("all of them are empty", SECONDS, || {
                devices().as_array().expect("devices").iter().all(is_empty).then_some(())
            });
        }
    }
    assert_eq!(devices().as_array().map(Vec::len), Some(0), "the group is gone");
    let stores = ["store1", "store2", "store3"].map(|name| log.with_file_name(name));
    stores.iter().for_each(|store| noise(store, 1 << 30));
    let mappings = ["/dev/mapper/store1", "/dev/mapper/store2", "/dev/mapper/store3"];
    let own: Vec<(&str, &Path)> = mappings.into_iter().zip(stores.iter().map(PathBuf::as_path)).collect();
    let bare: Vec<String> = words(&add[0], &own).into_iter().filter(|word| word != "--force").collect();
    let refused = cluster.cli(victim, &bare.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!refused.status.success() && said(&refused).contains("--force"), "{}", said(&refused));
    type_at(&cluster, victim, &add, &own);
    replace_in(&config, &log, &stores[0]);
    replace_in(&config, &capacity, &stores[1]);
    assert_eq!(devices().as_array().map(Vec::len), Some(3));
    assert_verified(load);
    type_at(&cluster, victim, &["systemctl restart drystone".to_owned()], &[]);
    cluster.wait_until_whole(user, "web");
    let devices = devices();
    let devices = devices.as_array().expect("devices");
    assert!(devices.len() == 3 && devices.iter().all(|one| one["failure"].is_null()), "{devices:?}");
}

/// The disks of a host alone, by the capacity device that each stands on.
fn on(site: &Site, device: &Path) -> Vec<String> {
    let disks = site.json(&["disk", "list"]);
    let names = disks.as_array().expect("disks").iter().map(|disk| disk["name"].as_str().expect("a name"));
    names.filter(|name| site.ask(&["disk", "show", name]).contains(text(device))).map(str::to_owned).collect()
}

fn type_alone(site: &Site, lines: &[String], devices: &[(&str, &Path)], confirm: &Path) {
    for line in lines.iter().filter(|line| line.starts_with("drystone device")) {
        let mut words = words(line, devices);
        if !words.iter().any(|word| word == "--dry-run") {
            // "To give the data up, add `--confirm` with the old device"
            words.extend(["--confirm".to_owned(), text(confirm).to_owned()]);
        }
        site.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn devices_of_a_host_alone_are_replaced_by_the_words_of_the_guide_under_load() {
    let [capacity, _, log] = guide();
    let mut site = Site::new(&Shape::Two { size_mib: 512 });
    let config = site.config().replace("\"data\"", "\"data\", \"more\"");
    site.set_config(&config);
    site.add_config(
        &config[config.find("[[group]]").expect("a group")..]
            .replace("\"data\", \"more\"", "\"xdata\"")
            .replace("\"log\"", "\"xlog\""),
    );
    let server = site.start();
    for index in 0..6 {
        site.ask(&["disk", "create", &format!("d{index}"), "48MiB", "--policy", "single,stripes=1"]);
    }
    let [data, more, safe] = ["data", "more", "xdata"].map(|name| site.path(name));
    let of = |device: &Path| on(&site, device).first().expect("each device has a disk").clone();
    let (kept, safe) = (of(&more), of(&safe));
    let gone = on(&site, &data);
    site.attach(&kept).write(0, &[7; BLOCK_SIZE as usize]).expect("it is written");
    let health = |site: &Site| said(&site.cli(&["--json", "health"]));

    let load = verified_load(&site.uri(&safe), 12);
    let new = site.path("new-data");
    let size = shrink(&data);
    wait_for("health names it", 30, || health(&site).contains("device.failed").then_some(()));
    sparse_file(&new, size);
    type_alone(&site, &capacity, &[(CAPACITY, &data), (NEW_CAPACITY, &new)], &data);
    gone.iter().for_each(|name| drop(site.ask(&["disk", "delete", name, "--confirm", name])));
    assert_eq!(
        site.attach(&kept).read(0, BLOCK_SIZE as u32).expect("it is served"),
        [7; BLOCK_SIZE as usize]
    );
    assert_verified(load);
    let config = site.config().replace("\"data\", ", "\"new-data\", ");
    site.set_config(&config);

    let (old, newer) = (site.path("log"), site.path("new-log"));
    let load = verified_load(&site.uri(&safe), 6);
    let size = shrink(&old);
    wait_for("health names it", 30, || health(&site).contains("log.failed").then_some(()));
    assert_verified(load);
    server.stop();
    let server = site.start();
    assert!(
        !health(&site).contains("\"findings\":[]"),
        "a group that is closed is nothing that is well: {}",
        health(&site)
    );
    let load = verified_load(&site.uri(&safe), 6);
    sparse_file(&newer, size);
    type_alone(&site, &log, &[(LOG, &old), (NEW_LOG, &newer)], &old);
    assert_verified(load);
    server.stop();
    let config = site.config().replace("log = \"log\"", "log = \"new-log\"");
    site.set_config(&config);
    let server = site.start();
    site.ask(&["disk", "create", "next", "48MiB", "--policy", "single,stripes=1"]);
    site.attach("next").write(0, &[5; 4096]).expect("it is written");
    site.attach(&safe).read(0, 4096).expect("it is served");
    server.stop();
}
