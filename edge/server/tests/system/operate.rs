//! What people need who look after hosts: silences, events, forecasts, what is sent to supporters, what disks wait for.

use super::cluster::{Cluster, SECONDS};
use super::host::{PROGRAM, Shape, Site};
use super::tools::{command, run, said, text, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader};
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
