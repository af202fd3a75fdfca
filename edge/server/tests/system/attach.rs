//! At which host a disk is attached, who may attach to it, and what becomes of clients that may not any more.

use super::cluster::{Cluster, SECONDS};
use super::host::{Server, Site};
use super::members::{expect, free_port, init, join_all, login, remote, site};
use super::nbd::Client;
use super::tools::{command, output, said, text, wait_for};
use ::etcd::testing::Members;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Output, Stdio};
use std::time::{Duration, Instant};

impl Cluster {
    fn socket(&self, host: &str) -> PathBuf {
        self.path(host).join("d/nbd.sock")
    }

    fn try_attach(&self, host: &str, disk: &str) -> Result<Client, String> {
        Client::attach(&self.socket(host), disk).map_err(|error| error.to_string())
    }

    /// Makes a disk that one host at a time may have, and waits until all serve it.
    fn exclusive(&self, name: &str) {
        self.json("a", &["disk", "create", name, "64MiB", "--policy", "default,stripes=1"]);
        for host in ["a", "b", "c"] {
            wait_for("the disk is served by all hosts", SECONDS, || self.try_attach(host, name).ok());
        }
        // A host whose client has just left refuses others for the moment until it has noticed.
        wait_for("nobody has it", SECONDS, || self.attached("a", name).is_null().then_some(()));
    }

    /// Whether one host reaches another.
    fn is_reachable(&self, at: &str, host: &str) -> bool {
        let hosts = self.json(at, &["host", "list"]);
        let found = hosts.as_array().expect("hosts").iter().find(|one| one["name"] == host);
        found.expect("it is of the cluster")["is_reachable"] == true
    }

    fn attached(&self, at: &str, disk: &str) -> Value {
        self.json(at, &["disk", "show", disk])["attached"].clone()
    }
}

#[track_caller]
fn assert_refused(done: Result<Client, String>, words: &[&str]) {
    let why = done.map(drop).expect_err("it is refused");
    for words in words {
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn a_disk_is_attached_at_one_host_at_a_time_unless_it_is_shared() {
    let cluster = Cluster::start(3);
    cluster.exclusive("web");
    let first = cluster.attach("a", "web");
    let second = cluster.attach("a", "web");
    let words = ["disk web is attached at host a, with 2 clients", "`drystone disk set web share on`"];
    assert_refused(cluster.try_attach("b", "web"), &words);
    wait_for("all hosts know where", SECONDS, || {
        (cluster.attached("c", "web") == json!([{ "host": "a", "clients": 2 }])).then_some(())
    });
    drop(second);
    cluster.json("c", &["disk", "set", "web", "share", "on"]);
    let other = wait_for("host b hears of it", SECONDS, || cluster.try_attach("b", "web").ok());
    let refused = cluster.cli("c", &["disk", "set", "web", "share", "off"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("attached at hosts a and b"), "{}", said(&refused));
    drop(first);
    wait_for("host a has let go", SECONDS, || {
        cluster.cli("c", &["disk", "set", "web", "share", "off"]).status.success().then_some(())
    });
    assert_refused(cluster.try_attach("a", "web"), &["host b, with 1 client"]);
    // Whoever waits gets it as soon as the other has let go, even if that is a moment later.
    let asked = Instant::now();
    let (moved, left_after) = std::thread::scope(|scope| {
        let moved = scope.spawn(|| cluster.try_attach("c", "web"));
        std::thread::sleep(Duration::from_millis(100));
        let left_after = asked.elapsed();
        drop(other);
        (moved.join().expect("it ends"), left_after)
    });
    if left_after < Duration::from_millis(500) {
        drop(moved.unwrap_or_else(|why| panic!("host a left after {left_after:?}: {why}")));
    }
    wait_for("nobody has it", SECONDS, || cluster.attached("a", "web").is_null().then_some(()));
    let shared = cluster.json("a", &["disk", "create", "both", "64MiB", "--share"]);
    assert_eq!(shared["share"], true, "{shared}");
}

/// As a hypervisor does it: the guest's disk is open at both hosts for a moment.
#[test]
fn a_disk_that_is_handed_over_is_had_by_one_further_host_until_the_guest_has_moved() {
    let cluster = Cluster::start(3);
    cluster.exclusive("web");
    let nobody = cluster.json("c", &["disk", "handover", "web", "--to", "b"]);
    assert!(nobody.get("until").is_none(), "nobody has it, and nothing is needed: {nobody}");
    let mut from = cluster.attach("a", "web");
    from.write(0, &[1; 4096]).expect("it writes");
    wait_for("all hosts know where", SECONDS, || cluster.attached("c", "web").is_array().then_some(()));
    let made = cluster.json("c", &["disk", "handover", "web", "--to", "b", "--for", "10m"]);
    assert!(made["until"].as_u64() > Some(1_600_000_000), "{made}");
    let mut to = wait_for("host b hears of it", SECONDS, || cluster.try_attach("b", "web").ok());
    assert_refused(cluster.try_attach("c", "web"), &["is attached at host"]);
    assert_eq!(cluster.json("a", &["disk", "show", "web"])["handover"]["host"], "b");
    // What either writes the other reads.
    assert_eq!(to.read(0, 4096), Ok(vec![1; 4096]));
    to.write(4096, &[2; 4096]).expect("it writes");
    assert_eq!(from.read(4096, 4096), Ok(vec![2; 4096]));
    drop(from);
    wait_for("the handover has ended", SECONDS, || {
        let shown = cluster.json("c", &["disk", "show", "web"]);
        (shown.get("handover").is_none() && shown["attached"][0]["host"] == "b").then_some(())
    });
    assert_eq!(to.read(0, 4096), Ok(vec![1; 4096]));
    // The way back needs another one; it can be ended before anybody came, and a time passes by itself.
    assert_refused(cluster.try_attach("a", "web"), &["is attached at host b"]);
    cluster.json("a", &["disk", "handover", "web", "--to", "a"]);
    cluster.json("a", &["disk", "handover", "web", "--cancel"]);
    assert_refused(cluster.try_attach("a", "web"), &["is attached at host b"]);
    cluster.json("a", &["disk", "handover", "web", "--to", "a", "--for", "1s"]);
    std::thread::sleep(Duration::from_secs(2));
    assert_refused(cluster.try_attach("a", "web"), &["is attached at host b"]);
    for wrong in [&["--to", "z"][..], &["--to", "a", "--for", "2h"]] {
        let refused = cluster.cli("a", &[&["disk", "handover", "web"][..], wrong].concat());
        assert!(!refused.status.success(), "{}", said(&refused));
    }
    // Whoever locks the disk lets nobody in by an earlier handover.
    cluster.json("a", &["disk", "handover", "web", "--to", "a"]);
    drop(to);
    wait_for("nobody has it", SECONDS, || cluster.attached("a", "web").is_null().then_some(()));
    cluster.json("c", &["disk", "resize", "web", "32MiB", "--confirm", "web"]);
    drop(wait_for("host c gets it", SECONDS, || cluster.try_attach("c", "web").ok()));
}

#[test]
fn a_host_that_ended_holds_nobody_up_and_one_that_stands_still_only_for_a_while() {
    let cluster = Cluster::start(3);
    cluster.exclusive("web");
    let mut client = cluster.attach("a", "web");
    client.write(0, &[1; 4096]).expect("it writes");
    cluster.order("kill", "a");
    let began = Instant::now();
    let mut client = cluster.attach("b", "web");
    assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    wait_for("host c hears of it", SECONDS, || {
        (cluster.attached("c", "web")[0]["host"] == "b").then_some(())
    });
    cluster.order("start", "a");
    cluster.wait_until_whole("b", "web");
    // Nobody knows whether a host that stands still serves its clients: it counts until it is away.
    cluster.order("pause", "b");
    wait_for("host c hears nothing of host b", SECONDS, || (!cluster.is_reachable("c", "b")).then_some(()));
    let began = Instant::now();
    assert_refused(cluster.try_attach("c", "web"), &["host b, which does not answer now"]);
    assert!(began.elapsed() >= Duration::from_secs(4), "it waits a while first: {:?}", began.elapsed());
    let mut other = wait_for("host b is away", SECONDS, || cluster.try_attach("c", "web").ok());
    other.write(0, &[2; 4096]).expect("it writes");
    cluster.order("start", "b");
    wait_for("the client of host b is cut off", SECONDS, || (!client.is_served()).then_some(()));
    let events = said(&cluster.cli("b", &["events"]));
    assert!(events.contains("a client was cut off: it is attached at host c now"), "{events}");
    assert_eq!(other.read(0, 4096), Ok(vec![2; 4096]));
    wait_for("host a hears of it", SECONDS, || {
        (cluster.attached("a", "web")[0]["host"] == "c").then_some(())
    });
}

#[test]
fn without_the_directory_a_disk_is_attached_where_it_was_or_where_it_is_owned() {
    let cluster = Cluster::start(3);
    cluster.exclusive("web");
    cluster.exclusive("idle");
    let mut client = cluster.attach("a", "web");
    client.write(0, &[1; 4096]).expect("it writes");
    cluster.wait_for_owner("web", "a");
    let mut idle = cluster.attach("b", "idle");
    idle.write(0, &[2; 4096]).expect("it writes");
    cluster.wait_for_owner("idle", "b");
    drop(idle);
    wait_for("nobody has it", SECONDS, || cluster.attached("b", "idle").is_null().then_some(()));
    cluster.signal_directory(libc::SIGSTOP);
    wait_for("it is told", SECONDS, || {
        ["a", "b", "c"].iter().all(|host| cluster.local(host)["directory_away"].is_string()).then_some(())
    });
    drop(client);
    // Host a has it as far as anybody knows.
    let mut again = cluster.attach("a", "web");
    assert_eq!(again.read(0, 4096), Ok(vec![1; 4096]));
    assert_refused(
        cluster.try_attach("c", "idle"),
        &["the directory does not answer", "attach it at host b"],
    );
    let mut idle = cluster.attach("b", "idle");
    assert_eq!(idle.read(0, 4096), Ok(vec![2; 4096]));
    cluster.signal_directory(libc::SIGCONT);
    wait_for("the record follows", SECONDS, || {
        (cluster.attached("c", "idle")[0]["host"] == "b").then_some(())
    });
    assert_eq!(idle.read(0, 4096), Ok(vec![2; 4096]));
    assert_eq!(again.read(0, 4096), Ok(vec![1; 4096]));
}

/// Three hosts with certificates, a disk, and the address at which host b serves it.
struct Three {
    sites: Vec<Site>,
    servers: Vec<Server>,
    nbd: String,
    /// Where host b's API is.
    port: u16,
    folder: tempfile::TempDir,
    _etcd: Members,
}

fn three() -> Three {
    let etcd = Members::spawn(1);
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let sites: Vec<Site> =
        ["a", "b", "c"].iter().zip(&ports).map(|(name, port)| site(&etcd, name, *port)).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let servers = join_all(&sites);
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1", "--share"]);
    for site in &sites {
        wait_for("all hosts serve it", SECONDS, || Client::attach(&site.path("d/nbd.sock"), "web").ok());
    }
    let hosts = sites[0].json(&["host", "list"]);
    let nbd = hosts[1]["nbd"][1].as_str().expect("an address").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    Three { sites, servers, nbd, port: ports[1], folder, _etcd: etcd }
}

impl Three {
    fn identity(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn uri(&self, who: &Path) -> String {
        format!("nbds://{}/web?tls-certificates={}", self.nbd, text(who))
    }

    fn info(&self, who: &Path) -> Output {
        output(command("nbdinfo").arg(self.uri(who)))
    }

    /// Whether the disk is in somebody's list.
    fn is_listed(&self, who: &Path) -> bool {
        let uri = format!("nbds://{}/?tls-certificates={}", self.nbd, text(who));
        said(&output(command("nbdinfo").args(["--list", &uri]))).contains("export=\"web\"")
    }

    /// Words for `qemu-io` that open the disk with somebody's certificate.
    fn words(&self, who: &Path) -> [String; 4] {
        let (address, port) = self.nbd.rsplit_once(':').expect("an address with a port");
        let options = format!(
            "driver=nbd,server.type=inet,server.host={address},server.port={port},tls-creds=t,\
             tls-hostname=host.drystone.internal,export=web"
        );
        let credentials = format!("tls-creds-x509,id=t,endpoint=client,dir={}", text(who));
        ["--object".to_owned(), credentials, "--image-opts".to_owned(), options]
    }

    /// What `qemu-io` says that reads with somebody's certificate.
    fn open(&self, who: &Path) -> Output {
        output(command("qemu-io").args(self.words(who)).args(["-c", "read 0 4k"]))
    }
}

/// A program that has the disk open, and reads on demand.
struct Guest {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<std::process::ChildStdout>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Guest {
    fn start(words: &[String]) -> Guest {
        let mut qemu = command("qemu-io");
        qemu.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = qemu.spawn().expect("qemu-io, of the Debian package qemu-utils");
        let orders = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Guest { process, orders, answers }
    }

    /// Whether a read is answered.
    fn reads(&mut self) -> bool {
        if writeln!(self.orders, "read 0 4k").is_err() {
            return false;
        }
        let mut line = String::new();
        while self.answers.read_line(&mut line).is_ok_and(|count| count > 0) {
            if line.contains("read 4096/4096 bytes") {
                return true;
            }
            if line.contains("read failed") {
                return false;
            }
            line.clear();
        }
        false
    }
}

#[test]
fn a_disk_that_is_for_some_is_not_seen_by_others_and_who_loses_it_is_cut_off() {
    let three = three();
    let (ann, bob) = (three.identity("ann"), three.identity("bob"));
    login(&three.sites[0], &ann, "ann", "operator");
    login(&three.sites[0], &bob, "bob", "operator");
    let c = three.sites[2].path("d/identity");
    for who in [&ann, &bob, &c] {
        assert!(three.info(who).status.success() && three.is_listed(who), "{}", said(&three.info(who)));
    }
    let read = said(&three.open(&bob));
    assert!(read.contains("read 4096/4096 bytes"), "{read}");
    three.sites[2].ask(&["disk", "allow", "web", "--person", "ann"]);
    wait_for("host b hears of it", SECONDS, || (!three.info(&bob).status.success()).then_some(()));
    assert!(three.info(&ann).status.success() && three.is_listed(&ann));
    assert!(!three.is_listed(&bob) && !three.is_listed(&c));
    let refused = said(&three.open(&bob));
    assert!(refused.contains("disk web is only for those who are named with it"), "{refused}");
    // He cannot help himself.
    expect(&remote(three.port, &bob, &["disk", "allow", "web", "--anybody"]), 7, "role `admin`");
    // What runs on a host gets it by the socket, unless other hosts are named.
    drop(three.sites[0].attach("web"));
    three.sites[0].ask(&["disk", "allow", "web", "--host", "c", "--host", "b"]);
    let at_a = three.sites[0].path("d/nbd.sock");
    wait_for("host a hears of it", SECONDS, || Client::attach(&at_a, "web").is_err().then_some(()));
    assert!(three.info(&c).status.success());
    drop(three.sites[1].attach("web"));
    let shown = three.sites[1].ask(&["disk", "show", "web"]);
    assert!(shown.contains("host b, host c") || shown.contains("host c, host b"), "{shown}");
    // A permission that is withdrawn ends the connections that it covered.
    let mut kept = three.sites[1].attach("web");
    let mut lost = three.sites[2].attach("web");
    assert!(kept.read(0, 4096).is_ok() && lost.read(0, 4096).is_ok());
    three.sites[0].ask(&["disk", "allow", "web", "--host", "b"]);
    wait_for("the client at host c is cut off", 5, || (!lost.is_served()).then_some(()));
    assert!(kept.read(0, 4096).is_ok());
    three.sites[0].ask(&["disk", "allow", "web", "--anybody"]);
    wait_for("all may again", SECONDS, || three.info(&bob).status.success().then_some(()));
    let nobody = three.sites[0].cli(&["disk", "allow", "web", "--host", "z"]);
    assert_eq!(nobody.status.code(), Some(4), "{}", said(&nobody));
    three.servers.into_iter().for_each(Server::stop);
}

#[test]
fn who_is_removed_from_the_cluster_loses_the_disks_that_are_open() {
    let three = three();
    let (ann, bob) = (three.identity("ann"), three.identity("bob"));
    login(&three.sites[0], &ann, "ann", "operator");
    login(&three.sites[0], &bob, "bob", "operator");
    let (mut of_ann, mut of_bob) = (Guest::start(&three.words(&ann)), Guest::start(&three.words(&bob)));
    assert!(of_ann.reads() && of_bob.reads());
    three.sites[2].ask(&["person", "remove", "ann", "--yes"]);
    wait_for("ann is cut off", 5, || (!of_ann.reads()).then_some(()));
    assert!(of_bob.reads());
    let events = three.sites[1].ask(&["events"]);
    assert!(events.contains("was removed from this cluster"), "{events}");
    assert!(!three.info(&ann).status.success() && three.info(&bob).status.success());
    three.servers.into_iter().for_each(Server::stop);
}
