//! A disk that cannot be served: its clients wait, and those that ask for errors get them.

use super::cluster::{Cluster, SECONDS};
use super::nbd::{Client, Request, errno};
use super::tools::{command, output, run, said, text, wait_for};
use std::time::Instant;

/// With no copy that could be reached, a disk held its clients' requests without limit, and a client could not ask for anything else.
#[test]
fn a_client_that_asks_for_errors_gets_them_while_no_copy_can_be_reached_and_others_wait() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let user = ["a", "b", "c"].into_iter().find(|host| holders.iter().all(|holder| holder != host));
    let user = user.expect("two of three hold it");
    let socket = cluster.path(user).join("d/nbd.sock");
    let attach = |name: &str| Client::attach(&socket, name);
    let refusal = attach("web@error-after=1s").expect_err("too short").to_string();
    assert!(refusal.contains("`1s` is not a time from 5s to 24h"), "{refusal}");
    let uri = cluster.json(user, &["attach", "web", "--error-after", "5s"]);
    assert_eq!(uri["error_after_seconds"], 5);
    let uri = uri["uri"].as_str().expect("a URI").to_owned();
    assert!(uri.contains("/web@error-after=5s?"), "{uri}");
    let mut hasty = attach("web@error-after=5s").expect("it is let in");
    let mut patient = attach("web").expect("it is let in");
    hasty.write(0, &[1; 4096]).expect("it is served");
    let shown = cluster.json(user, &["disk", "show", "web"]);
    let clients = shown["clients"].as_array().expect("clients");
    assert!(clients.iter().any(|client| client["error_after_seconds"] == 5), "{shown}");

    holders.iter().for_each(|holder| cluster.order("kill", holder));
    patient.send(&Request::Write { offset: 8192, data: vec![3; 4096] }).expect("it is taken");
    let began = Instant::now();
    let cookies: Vec<u64> = [
        Request::Write { offset: 4096, data: vec![2; 4096] },
        Request::Read { offset: 0, len: 4096 },
        Request::Trim { offset: 65536, len: 4096 },
    ]
    .into_iter()
    .map(|request| hasty.send(&request).expect("it is taken"))
    .collect();
    for _ in &cookies {
        let reply = hasty.receive().expect("it answers");
        assert_eq!(reply.error, errno::EIO);
        let took = began.elapsed();
        assert!((4..9).contains(&took.as_secs()), "{took:?}");
    }
    let said = said(&output(command("qemu-io").args(["-f", "raw", "-c", "read 0 4k", &uri])));
    assert!(said.contains("Input/output error"), "{said}");
    let metrics = run(
        "curl",
        &["-sS", "--unix-socket", text(&cluster.path(user).join("d/api.sock")), "http://localhost/metrics"],
    );
    let line = "drystone_disk_timed_out_requests_total{disk=\"web\"} 4";
    assert!(metrics.contains(line), "{metrics}");
    wait_for("an event tells of it", SECONDS, || {
        let events = cluster.cli(user, &["events", "--kind", "disk.timed_out"]);
        super::tools::said(&events).contains("I/O error").then_some(())
    });

    holders.iter().for_each(|holder| cluster.order("start", holder));
    let reply = patient.receive().expect("it answers");
    assert_eq!(reply.error, 0, "who asks for nothing waits");
    wait_for("who asked for errors is served again", SECONDS, || hasty.read(0, 4096).ok());
    assert_eq!(hasty.read(0, 4096).expect("it is readable"), [1; 4096]);
    hasty.write(4096, &[4; 4096]).expect("it is written");
    assert_eq!(patient.read(4096, 4096).expect("it is readable"), [4; 4096]);
    assert_eq!(patient.read(8192, 4096).expect("it is readable"), [3; 4096]);
}
