//! What people need who look after hosts: silences, events, forecasts, what is sent to supporters, what disks wait for.

use super::cluster::{Cluster, SECONDS};
use super::host::{PROGRAM, Shape, Site};
use super::members;
use super::tools::{command, output, run, said, text, wait_for};
use ::etcd::testing::Members;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// `/metrics` of a host.
fn metrics(cluster: &Cluster, host: &str) -> String {
    let socket = cluster.path(host).join("d/api.sock");
    run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/metrics"])
}

/// `health` of a host as JSON, whatever its exit code, which comes first.
fn health(cluster: &Cluster, host: &str) -> (i32, Value) {
    let done = cluster.cli(host, &["--json", "health"]);
    let code = done.status.code().expect("it ended");
    (code, serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&done))))
}

fn codes(list: &Value) -> Vec<String> {
    let of = |one: &Value| one["code"].as_str().expect("a code").to_owned();
    list.as_array().expect("findings").iter().map(of).collect()
}

fn state_of<'a>(health: &'a Value, group: &str) -> &'a Value {
    let groups = health["groups"].as_array().expect("groups");
    groups.iter().find(|one| one["group"] == group).unwrap_or_else(|| panic!("{group} is in {health}"))
}

#[test]
fn a_host_logs_an_object_of_json_a_line_where_that_is_asked_for() {
    let site = Site::new(&Shape::One { size_mib: 256 });
    let server = site.start_with(&["--json"]);
    site.json(&["disk", "create", "web", "64MiB"]);
    let line =
        |line: &str| -> Value { serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")) };
    let lines: Vec<Value> = server.messages().lines().map(line).collect();
    let created =
        lines.iter().find(|line| line["kind"] == "disk.created").expect("the disk's event is there");
    assert_eq!(created["level"], "INFO");
    assert!(created["message"].as_str().is_some_and(|text| text.contains("web")), "{created}");
    assert!(created["timestamp"].is_string(), "{created}");
}

#[test]
fn findings_that_people_know_of_are_silenced_on_all_hosts_until_they_are_not() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, gone) = (holders[0].as_str(), holders[1].as_str());
    let other = ["a", "b", "c"].into_iter().find(|host| ![user, gone].contains(host)).expect("a third");
    cluster.attach(user, "web").write(0, &[1; 4096]).expect("it writes");
    wait_for("all is well", SECONDS, || health(&cluster, user).1["is_well"].as_bool().filter(|well| *well));
    cluster.order("kill", gone);
    let (code, found) = wait_for("the host is away", SECONDS, || {
        let (code, found) = health(&cluster, user);
        codes(&found["findings"]).contains(&"host.away".to_owned()).then_some((code, found))
    });
    assert_eq!((code, &found["is_well"]), (1, &Value::Bool(false)));
    assert_eq!(state_of(&found, "network")["state"], "critical", "{found}");
    assert_eq!(state_of(&found, "certificates")["state"], "well", "{found}");
    let unknown = cluster.cli(user, &["health", "silence", "host.gone", "--for", "1h"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    let reason = ["--for", "1h", "--reason", "its power supply is ordered"];
    cluster.json(user, &[&["health", "silence", "host.away", "--about", gone], &reason[..]].concat());
    cluster.json(user, &[&["health", "silence", "disk.reduced"], &reason[..]].concat());
    // What one host was told, all know.
    let quiet = wait_for("the other host knows too", SECONDS, || {
        let (code, quiet) = health(&cluster, other);
        (code == 0).then_some(quiet)
    });
    assert!(quiet["is_well"] == true, "{quiet}");
    let silenced = quiet["silenced"].as_array().expect("silenced ones");
    let away = silenced.iter().find(|one| one["code"] == "host.away").expect("it is still told");
    assert_eq!(away["silenced_because"], "its power supply is ordered");
    assert!(away["silenced_until"].as_u64() > Some(1_600_000_000), "{away}");
    assert_eq!(state_of(&quiet, "network")["silenced"], 1, "{quiet}");
    let told = metrics(&cluster, other);
    for line in [
        "drystone_health_findings{severity=\"critical\"} 0.0",
        "drystone_health_findings_by_code{code=\"host.away\"} 0.0",
        "drystone_health_findings_silenced 2.0",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    let listed = said(&cluster.cli(other, &["health"]));
    assert!(listed.contains("silenced") && listed.contains("its power supply is ordered"), "{listed}");
    cluster.json(other, &["health", "unsilence", "host.away", "--about", gone]);
    assert!(codes(&health(&cluster, other).1["findings"]).contains(&"host.away".to_owned()));
    let twice = cluster.cli(other, &["health", "unsilence", "host.away", "--about", gone]);
    assert_eq!(twice.status.code(), Some(4), "{}", said(&twice));
    let left = cluster.json(other, &["health", "silences"]);
    assert_eq!(codes(&left), ["disk.reduced"], "{left}");
}

#[test]
fn a_silence_of_a_host_alone_outlives_its_process_and_ends_by_itself() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["health", "silence", "space.low", "--for", "1h"]);
    site.ask(&["health", "silence", "device.failed", "--about", "/dev/sdb", "--for", "1s"]);
    server.stop();
    let _server = site.start();
    wait_for("the short one has ended", SECONDS, || {
        let left = site.json(&["health", "silences"]);
        (codes(&left) == ["space.low"]).then_some(())
    });
}

/// The events that a host gathers, from JSON lines; and what is said beside them.
fn events(cluster: &Cluster, host: &str, options: &[&str]) -> (Vec<Value>, String) {
    let done = cluster.cli(host, &[&["--json", "events"], options].concat());
    assert!(done.status.success(), "{}", said(&done));
    let lines = String::from_utf8(done.stdout).expect("text");
    let events = lines.lines().map(|line| serde_json::from_str(line).expect("one event a line"));
    (events.collect(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn events_of_all_hosts_are_one_story_that_outlives_their_processes() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, gone) = (holders[0].as_str(), holders[1].as_str());
    let api = format!("unix:{}", text(&cluster.path(user).join("d/api.sock")));
    let follower = command(PROGRAM)
        .args(["--api", &api, "--json", "events", "--follow", "--kind", "copy.left"])
        .stdout(Stdio::piped())
        .spawn();
    let mut follower = Ended(follower.expect("the program is there"));
    let followed = BufReader::new(follower.0.stdout.take().expect("it is piped"));
    let mut client = cluster.attach(user, "web");
    client.write(0, &[1; 4096]).expect("it writes");
    cluster.wait_for_owner("web", user);
    let (created, _) = events(&cluster, user, &["--kind", "disk.created", "--about", "web"]);
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(created[0]["who"], "somebody on the host", "{created:?}");
    cluster.order("kill", gone);
    client.write(4096, &[2; 4096]).expect("one copy is enough");
    let line = followed.lines().next().expect("it follows").expect("text");
    let left: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        (&left["kind"], &left["disk"], &left["host"]),
        (&"copy.left".into(), &"web".into(), &user.into())
    );
    let (_, beside) = events(&cluster, user, &["--limit", "1"]);
    assert!(beside.contains(&format!("host {gone} does not answer")), "{beside}");
    wait_for("what is wrong is an event too", SECONDS, || {
        let (found, _) = events(&cluster, user, &["--kind", "health.found", "--about", gone]);
        found
            .iter()
            .any(|one| one["text"].as_str().is_some_and(|text| text.starts_with("host.away")))
            .then_some(())
    });
    cluster.order("start", gone);
    cluster.wait_until_whole(user, "web");
    // Its events of before are still known, and stand before those of now.
    let (starts, _) = wait_for("it tells again", SECONDS, || {
        let found = events(&cluster, user, &["--kind", "host.started", "--about", gone]);
        (found.0.len() == 2).then_some(found)
    });
    assert!(starts[0]["number"].as_u64() < starts[1]["number"].as_u64(), "{starts:?}");
    let (all, _) = events(&cluster, user, &["--since", "1h"]);
    let times: Vec<u64> = all.iter().map(|one| one["time_ms"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "{all:?}");
    let unknown = cluster.cli(user, &["events", "--kind", "nonsense"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    let log = std::fs::read_to_string(cluster.path(user).join("log")).expect("it logs");
    assert!(log.contains("kind=\"copy.left\""), "the log has them too: {log}");
}

#[test]
fn what_would_become_of_the_cluster_is_told_before_it_happens() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let other = super::repair::third(&holders);
    let mut client = cluster.attach("a", "web");
    let content: Vec<u8> = (0..256).flat_map(super::repair::stamped).collect();
    for part in 0..8 {
        client.write(part << 20, &content).expect("it writes");
    }
    let of = |forecast: &Value, disk: &str| {
        let disks = forecast["disks"].as_array().expect("disks").clone();
        disks.into_iter().find(|one| one["disk"] == disk)
    };
    let lost = wait_for("the data has its place on the devices", SECONDS, || {
        let lost = cluster.json("a", &["what-if", "lose-host", &holders[0]]);
        (lost["bytes_to_copy"].as_u64() >= Some(8 << 20)).then_some(lost)
    });
    let web = of(&lost, "web").expect("it loses a copy");
    assert_eq!((&web["at_once"], &web["then"]), (&"reduced".into(), &"whole".into()), "{lost}");
    let target = web["targets"].as_object().expect("targets").keys().next().expect("one").clone();
    assert!(target.ends_with(&format!("of {other}")), "{lost}");
    assert_eq!((&lost["is_harmless"], lost["after"].as_array().map(Vec::len)), (&Value::Bool(true), Some(2)));
    let both = cluster.json("a", &["what-if", "lose-host", &holders[0], &holders[1]]);
    assert_eq!(of(&both, "web").expect("it is lost")["then"], "inaccessible", "{both}");
    assert_eq!(both["is_harmless"], false);
    assert_eq!(of(&cluster.json("a", &["what-if", "lose-host", other]), "web"), None);
    let single = cluster.json("a", &["what-if", "set-policy", "web", "single,stripes=1"]);
    assert!(single["verdict"].as_str().is_some_and(|text| text.contains("are given back")), "{single}");
    let added = cluster.json("a", &["what-if", "add-host", "--like", "b"]);
    assert_eq!(added["after"].as_array().map(Vec::len), Some(4), "{added}");
    let shown = said(
        &cluster.cli("a", &["what-if", "set-policy", "--all", "default,failures_to_tolerate=2,stripes=1"]),
    );
    assert!(shown.contains("1 disk can have") && shown.contains("USED THEN"), "{shown}");
    // Asking has changed nothing.
    assert_eq!(cluster.json("a", &["host", "list"]).as_array().map(Vec::len), Some(3));
    assert_eq!(cluster.holders("a", "web"), {
        let mut sorted = holders.clone();
        sorted.sort();
        sorted
    });
    for (arguments, code) in [
        (&["what-if", "lose-host", "nobody"][..], 4),
        (&["what-if", "set-policy", "nothing", "single"], 4),
        (&["what-if", "set-policy", "web", "nonsense=1"], 2),
        (&["what-if", "add-host", "--like", "nobody"], 4),
    ] {
        let done = cluster.cli("a", arguments);
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {}", said(&done));
    }
}

#[test]
fn a_disk_says_in_one_line_what_it_waits_for_and_resync_how_much_is_left() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, gone) = (holders[0].as_str(), holders[1].as_str());
    let mut client = cluster.attach(user, "web");
    client.write(0, &[1; 4096]).expect("it writes");
    wait_for("nothing is copied", SECONDS, || {
        let idle = cluster.json(user, &["resync"]);
        idle["disks"].as_array().expect("disks").is_empty().then_some(())
    });
    cluster.order("kill", gone);
    client.write(4096, &[2; 4096]).expect("one copy is enough");
    let waiting = wait_for("it says what comes next", SECONDS, || {
        let resync = cluster.json(user, &["resync"]);
        let component = resync["disks"][0]["components"][0].clone();
        let text = component["waits_for"].as_str()?.to_owned();
        text.contains("another is made in 60 min unless it comes back").then_some(component)
    });
    assert_eq!(waiting["cause"], "return", "{waiting}");
    assert!(
        waiting["device"].as_str().is_some_and(|text| text.ends_with(&format!("of host {gone}"))),
        "{waiting}"
    );
    for host in [user, super::repair::third(&holders)] {
        wait_for("the list says why", SECONDS, || {
            let list = said(&cluster.cli(host, &["disk", "list"]));
            list.contains(&format!("not whole: 1 of 2 components missing: {gone} is away for")).then_some(())
        });
        let shown = cluster.json(host, &["disk", "show", "web"]);
        assert!(
            shown["trouble"].as_str().is_some_and(|text| text.contains("1 of 2 components missing")),
            "{shown}"
        );
    }
    cluster.order("start", gone);
    cluster.wait_until_whole(user, "web");
    wait_for("nothing is left to do", SECONDS, || {
        let idle = cluster.json(user, &["resync"]);
        idle["disks"].as_array().expect("disks").is_empty().then_some(())
    });
    assert!(cluster.json(user, &["disk", "show", "web"])["trouble"].is_null());
}

/// Unpacks a bundle, checks its sums, and gives its files with what they say.
fn unpacked(bundle: &Path, into: &Path) -> Vec<(PathBuf, String)> {
    std::fs::create_dir(into).expect("room for a folder");
    run("tar", &["--zstd", "--extract", "--file", text(bundle), "--directory", text(into)]);
    let folder = into.join("drystone-support");
    let checked = output(command("sha256sum").args(["--check", "--strict", "MANIFEST"]).current_dir(&folder));
    assert!(checked.status.success(), "{}", said(&checked));
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(one) = folders.pop() {
        for entry in std::fs::read_dir(&one).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let said = std::fs::read_to_string(&path).expect("text");
                    files.push((path.strip_prefix(&folder).expect("it is in it").to_owned(), said));
                }
            }
        }
    }
    let listed = std::fs::read_to_string(folder.join("MANIFEST")).expect("it is there");
    assert_eq!(listed.lines().count() + 1, files.len(), "every file but the manifest has its sum");
    files
}

#[test]
fn a_support_bundle_has_what_supporters_ask_for_and_no_secret() {
    let etcd = Members::spawn(1);
    let ports = [members::free_port(), members::free_port()];
    let sites = [members::site(&etcd, "a", ports[0]), members::site(&etcd, "b", ports[1])];
    assert!(members::init(&sites[0]).status.success());
    let servers = members::join_all(&sites);
    sites[0].ask(&["disk", "create", "web", "64MiB"]);
    sites[0].attach("web").write(0, &[1; 4096]).expect("it writes");
    let token = sites[0].ask(&["host", "token"]).trim().to_owned();
    // Somebody was careless: it stands where it should not.
    sites[0].ask(&[
        "health",
        "silence",
        "host.away",
        "--for",
        "1h",
        "--reason",
        &format!("wait for {token}"),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let shown = sites[0].json(&["support-bundle", "--cluster", "--out", text(&at("all.tar.zst"))]);
    assert_eq!((&shown["hosts"], &shown["silent"]), (&json!(["a", "b"]), &json!([])), "{shown}");
    let files = unpacked(&at("all.tar.zst"), &at("all"));
    let named = |host: &str, name: &str| files.iter().find(|(path, _)| *path == Path::new(host).join(name));
    for host in ["a", "b"] {
        for name in [
            "configuration.json",
            "status.json",
            "health.json",
            "hosts.json",
            "disks.json",
            "disks/web.json",
            "histograms/web.json",
            "events.jsonl",
            "metrics.txt",
            "resync.json",
            "certificates.json",
            "log.txt",
            "machine/kernel.txt",
            "machine/block-devices.txt",
            "process/limits.txt",
        ] {
            assert!(named(host, name).is_some_and(|(_, said)| !said.is_empty()), "{host}/{name}: {shown}");
        }
        let (_, log) = named(host, "log.txt").expect("it is there");
        assert!(log.contains(&format!("host {host} serves")), "{log}");
    }
    let (_, health) = named("a", "events.jsonl").expect("it is there");
    assert!(health.contains("wait for [removed]"), "it was in there: {health}");
    // Nothing of it is a private key, by its form or word for word, and no token.
    let mut secrets = vec![token.clone(), token.rsplit('/').next().expect("its secret").to_owned()];
    for site in &sites {
        for entry in std::fs::read_dir(site.path("d/identity")).expect("a folder") {
            let said = std::fs::read_to_string(entry.expect("an entry").path()).expect("text");
            if said.contains("PRIVATE KEY") {
                secrets.extend(said.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
            }
        }
    }
    assert!(secrets.len() >= 2 + 3 * 3, "two keys of hosts and one of an authority: {}", secrets.len());
    for (path, said) in &files {
        assert!(!said.contains("PRIVATE KEY"), "{}", path.display());
        for secret in &secrets {
            assert!(!said.contains(secret.as_str()), "{} has a secret", path.display());
        }
    }
    // A viewer gets none; and a host that is gone is named.
    let viewer = at("viewer");
    members::login(&sites[0], &viewer, "ann", "viewer");
    let api = format!("https://127.0.0.1:{}", ports[0]);
    let refused = output(
        command(PROGRAM)
            .args(["--api", &api, "--identity", text(&viewer), "support-bundle"])
            .current_dir(folder.path()),
    );
    assert!(said(&refused).contains("may not look after the cluster"), "{}", said(&refused));
    // A bundle with nothing in it was written, and the exit code was 0.
    assert_eq!(refused.status.code(), Some(7), "{}", said(&refused));
    let left = std::fs::read_dir(folder.path()).expect("the folder").filter_map(Result::ok);
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("drystone-support")), "{left:?}");
    let told = sites[0].metrics();
    for name in super::monitoring::WITH_CERTIFICATES {
        assert!(told.contains(name), "{name} is not in {told}");
    }
    let mut servers = servers.into_iter();
    let first = servers.next().expect("two hosts");
    servers.next().expect("two hosts").stop();
    let shown = sites[0].json(&["support-bundle", "--cluster", "--out", text(&at("one.tar.zst"))]);
    assert_eq!((&shown["hosts"], &shown["silent"][0]["host"]), (&json!(["a"]), &json!("b")), "{shown}");
    let again = sites[0].cli(&["support-bundle", "--out", text(&at("one.tar.zst"))]);
    assert!(said(&again).contains("exists"), "nothing is written over: {}", said(&again));
    first.stop();
}
