//! What runs and what was: tasks with who asked for them, requests that findings and tasks offer, devices of other hosts, series.

use super::cluster::{Cluster, SECONDS};
use super::nbd::Client;
use super::repair::configure;
use super::tools::{run, said, text, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

impl Cluster {
    /// Sends a request that an answer offered, as it stands there, to a host.
    fn act(&self, host: &str, action: &Value) -> Value {
        let socket = self.path(host).join("d/api.sock");
        let url = format!("http://localhost{}", action["path"].as_str().expect("a path"));
        let method = action["method"].as_str().expect("a method");
        let mut arguments = vec!["-sS", "--fail-with-body", "--unix-socket", text(&socket), "-X", method];
        let body = action["body"].to_string();
        if !action["body"].is_null() {
            arguments.extend(["-H", "content-type: application/json", "-d", &body]);
        }
        arguments.push(&url);
        serde_json::from_str(&run("curl", &arguments)).unwrap_or(Value::Null)
    }

    fn task(&self, host: &str, id: &str) -> Option<Value> {
        let tasks = self.json(host, &["tasks"])["tasks"].as_array().expect("a list").clone();
        tasks.into_iter().find(|task| task["id"] == id)
    }

    fn wait_until_no_task(&self, host: &str, id: &str) {
        wait_for(&format!("task {id} has ended"), SECONDS, || self.task(host, id).is_none().then_some(()));
    }

    /// The only capacity device of a host.
    fn capacity_device(&self, host: &str) -> Option<Value> {
        let devices = self.json(host, &["device", "list"]).as_array().expect("a list").clone();
        devices.into_iter().find(|device| device["role"] == "capacity")
    }
}

/// Three hosts with a log and a capacity device each.
fn start() -> Cluster {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    for name in ["a", "b", "c"] {
        configure(folder.path(), name, Path::new("capacity.img"), "1GiB");
    }
    Cluster::start_in(folder, 3)
}

#[test]
fn what_runs_is_told_with_who_asked_and_ends_by_the_request_that_it_offers() {
    let cluster = start();
    cluster.mirrored("web", "64MiB");
    assert_eq!(cluster.json("a", &["tasks"])["tasks"], Value::Array(Vec::new()));
    let device = cluster.capacity_device("b").expect("it has one");
    let (id, path) = (device["id"].as_str().expect("an id"), device["path"].as_str().expect("a path"));
    let (task, named) = (format!("evacuation/{id}"), format!("b:{path}"));
    cluster.json("a", &["device", "evacuate", &named]);
    // Another host is asked than the one that was told to do it.
    let told = wait_for("c tells of it", SECONDS, || cluster.task("c", &task));
    assert_eq!(told["subject"], format!("device {path} of host b"), "{told}");
    assert_eq!(told["who"], "somebody on the host", "{told}");
    assert!(told["since"].as_u64() > Some(1_600_000_000), "{told}");
    assert_eq!(told["stop"]["needs"], "change_cluster", "{told}");
    cluster.json("c", &["tasks", "stop", &task]);
    cluster.wait_until_no_task("a", &task);
    let again = cluster.cli("a", &["tasks", "stop", &task]);
    assert_eq!(again.status.code(), Some(4), "{}", said(&again));

    // Once it is empty, the finding offers to remove it, whichever host is asked.
    cluster.json("a", &["device", "evacuate", &named]);
    let finding = wait_for("it is empty", SECONDS, || {
        let finding = cluster.wait_for_finding("a", "device.leaving");
        (finding["actions"][0]["method"] == "DELETE").then_some(finding)
    });
    assert_eq!(finding["actions"][0]["command"], format!("drystone device remove {named}"), "{finding}");
    wait_for("nothing stands on it", SECONDS, || {
        (cluster.capacity_device("b").expect("it is there")["component_count"] == 0).then_some(())
    });
    cluster.act("c", &finding["actions"][0]);
    assert!(cluster.capacity_device("b").is_none(), "host b has given it back");
    let events = said(&cluster.cli("a", &["events", "--kind", "device.removed"]));
    assert!(events.contains("somebody on the host"), "{events}");
    // It comes back by way of another host, too.
    let group = device["group"].as_str().expect("a group");
    cluster.json("c", &["device", "add", "--host", "b", "--group", group, "--force", path]);
    assert!(cluster.capacity_device("b").is_some());
    let nobody = cluster.cli("c", &["device", "add", "--host", "z", "--group", group, path]);
    assert_eq!(nobody.status.code(), Some(4), "{}", said(&nobody));
}

#[test]
fn findings_offer_the_requests_that_mend_them() {
    let cluster = start();
    cluster.json("a", &["cluster", "set", "replacements", "0"]);
    let finding = cluster.wait_for_finding("b", "repair.off");
    cluster.act("b", &finding["actions"][0]);
    wait_for("it is on again", SECONDS, || {
        cluster.findings("a").iter().all(|one| one["code"] != "repair.off").then_some(())
    });
    cluster.json("a", &["host", "maintenance", "c", "--mode", "ensure-accessibility"]);
    let finding = cluster.wait_for_finding("b", "host.maintenance");
    assert_eq!(finding["actions"][0]["command"], "drystone host maintenance c --end", "{finding}");
    cluster.act("b", &finding["actions"][0]);
    wait_for("it is over", SECONDS, || {
        cluster.findings("a").iter().all(|one| one["code"] != "host.maintenance").then_some(())
    });
    // Nothing that loses anything is offered without a word.
    cluster.order("kill", "c");
    let finding = cluster.wait_for_finding("a", "host.away");
    let remove = &finding["actions"][0];
    assert_eq!((&remove["is_destructive"], &remove["method"]), (&true.into(), &"DELETE".into()), "{finding}");
    assert_eq!(remove["path"], "/api/v1/hosts/c?confirm=c", "{finding}");
    // Each host finds out by itself; all name the command.
    wait_for("host b names it, too", SECONDS, || {
        said(&cluster.cli("b", &["health"])).contains("command: drystone host remove c").then_some(())
    });
}

#[test]
fn disks_have_labels_and_are_found_by_them() {
    let cluster = Cluster::start(3);
    let create = |name: &str, labels: &[&str]| {
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        cluster.json("a", &[&["disk", "create", name, "16MiB"][..], &labels].concat())
    };
    assert_eq!(create("web", &["team=front", "env=test"])["labels"]["team"], "front");
    create("db", &["team=back"]);
    create("spare", &[]);
    let listed = |host: &str, labels: &[&str]| -> Vec<String> {
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        let found = cluster.json(host, &[&["disk", "list"][..], &labels].concat());
        let name = |disk: &Value| disk["name"].as_str().expect("a name").to_owned();
        found.as_array().expect("a list").iter().map(name).collect()
    };
    wait_for("host c hears of them", SECONDS, || (listed("c", &[]).len() == 3).then_some(()));
    assert_eq!(listed("c", &["team"]), ["db", "web"]);
    assert_eq!(listed("c", &["team=back"]), ["db"]);
    assert_eq!(listed("c", &["team", "env=test"]), ["web"]);
    assert_eq!(listed("c", &["team=none"]), [""; 0]);
    let changed = cluster.json("b", &["disk", "label", "web", "env-", "team=all", "tier=1"]);
    assert_eq!(changed["labels"], serde_json::json!({ "team": "all", "tier": "1" }), "{changed}");
    let shown = said(&cluster.cli("b", &["disk", "show", "web"]));
    assert!(shown.contains("team=all, tier=1"), "{shown}");
    let events = said(&cluster.cli("b", &["events", "--about", "web"]));
    assert!(events.contains("its labels are team=all, tier=1"), "{events}");
    for wrong in ["a b=c", "=c", "word", &format!("a={}", "x".repeat(256))] {
        let refused = cluster.cli("b", &["disk", "label", "web", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {}", said(&refused));
    }
    // A creation that is repeated is the same only with the same labels.
    let again = ["disk", "create", "db", "16MiB", "--unless-there", "--label"];
    cluster.json("a", &[&again[..], &["team=back"]].concat());
    let other = cluster.cli("a", &[&again[..], &["team=front"]].concat());
    assert_eq!(other.status.code(), Some(5), "{}", said(&other));
}

#[test]
fn what_guests_and_devices_did_is_told_by_every_host() {
    let cluster = start();
    cluster.json("c", &["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    let socket = cluster.path("b").join("d/nbd.sock");
    let mut client = wait_for("host b serves it", SECONDS, || Client::attach(&socket, "web").ok());
    let began = Instant::now();
    let mut writes = 0u64;
    while began.elapsed() < Duration::from_secs(6) {
        client.write(writes % 1024 * 64 * 1024 % (32 * MIB), &[7; 4096]).expect("it writes");
        writes += 1;
    }
    let sum = |of: &str, host: &str, options: &[&str]| {
        let found = cluster.json(host, &[&["series", of][..], options].concat());
        let step = found["step_seconds"].as_f64().expect("a number");
        let iops = found["write"]["iops"].as_array().expect("a list").clone();
        let heat: u64 = found["heat"]["write"]
            .as_array()
            .expect("rows")
            .iter()
            .flat_map(|row| {
                row.as_array().expect("counts").iter().filter_map(Value::as_u64).collect::<Vec<_>>()
            })
            .sum();
        (iops.iter().filter_map(Value::as_f64).sum::<f64>() * step, heat, found)
    };
    for of in ["disk/web", "host/b", "cluster"] {
        wait_for(&format!("{of} has all of it"), SECONDS, || {
            let (count, heat, _) = sum(of, "a", &["--since", "5m", "--rows", "1000"]);
            (heat == writes && (count - writes as f64).abs() < 1.0).then_some(())
        });
    }
    let (count, _, found) = sum("host/c", "a", &["--since", "1m"]);
    assert_eq!(count, 0.0, "{found}");
    let (_, heat, found) = sum("cluster", "c", &["--since", "1d"]);
    assert_eq!((heat, &found["step_seconds"].as_u64().map(|step| step % 300)), (writes, &Some(0)), "{found}");
    // The devices of a host that has a copy; the other host that the guest is not at may have none.
    let shown = cluster.json("a", &["disk", "show", "web"]);
    let holder = shown["components"][0]["host"].as_str().expect("a host").to_owned();
    let device = cluster.capacity_device(&holder).expect("it has one");
    let log = cluster.json(&holder, &["device", "list"]).as_array().expect("a list").clone();
    let log = log.into_iter().find(|one| one["role"] == "log").expect("a log device");
    for path in [&log["path"], &device["path"]] {
        let of = format!("device/{holder}:{}", path.as_str().expect("a path"));
        let found = cluster.json("a", &["series", &of, "--since", "5m"]);
        assert!(found["busy_percent"].is_array(), "{found}");
    }
    let log = format!("device/{holder}:{}", log["path"].as_str().expect("a path"));
    let (count, _, found) = sum(&log, "a", &["--since", "5m", "--rows", "1000"]);
    assert!(count > 0.0 && found["write"]["bytes_per_second"][0].is_null(), "{found}");
    let socket = cluster.path("b").join("d/api.sock");
    let metrics = run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/metrics"]);
    assert!(metrics.contains("drystone_device_latency_seconds_bucket{"), "devices' latencies are missing");
    for wrong in ["disk/none", "group/x", "device/none", "host/z", "device/b:/none"] {
        let refused = cluster.cli("a", &["series", wrong]);
        assert!(!refused.status.success(), "{wrong}: {}", said(&refused));
    }
    // A host that is gone holds nobody up, and is named.
    cluster.order("kill", "b");
    let began = Instant::now();
    let found = cluster.json("a", &["series", "cluster", "--since", "1m"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(found["silent"], serde_json::json!(["b"]), "{found}");
    // What it had written down it knows again.
    cluster.order("start", "b");
    wait_for("b tells of the rows that it kept", SECONDS, || {
        let (_, heat, found) = sum("disk/web", "a", &["--since", "1d"]);
        (found["silent"] == serde_json::json!([]) && heat <= writes).then_some(())
    });
}
