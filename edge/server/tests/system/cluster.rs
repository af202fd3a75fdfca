//! Several hosts on one machine: real processes, real TCP between them, clients that verify what they wrote.

use super::host::PROGRAM;
use super::nbd::Client;
use super::tools::{command, output, run, said, text, wait_for, wait_for_writes};
use base::{ClusterId, HostId, NodeId};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use wire::{HELLO_SIZE, Hello, HelloError, HelloRefusal, Identity, Role, VersionRange};

/// How long anything may take on a busy machine.
pub const SECONDS: u64 = 90;

/// The hosts of a demo that does nothing by itself. Dropped, it is killed, and the kernel kills its hosts.
pub struct Cluster {
    folder: tempfile::TempDir,
    demo: Child,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.demo.kill();
        let _ = self.demo.wait();
        if std::thread::panicking() {
            for name in ["a", "b", "c", "d"] {
                let log = std::fs::read_to_string(self.path(name).join("log")).unwrap_or_default();
                eprintln!("host {name} said:\n{log}");
            }
        }
    }
}

impl Cluster {
    /// Starts so many hosts: `a`, `b`, ….
    pub fn start(hosts: usize) -> Cluster {
        Cluster::start_with(hosts, &[])
    }

    /// The same with more options of the demo.
    pub fn start_with(hosts: usize, options: &[&str]) -> Cluster {
        let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
        Cluster::spawn(folder, hosts, options)
    }

    /// Starts so many hosts in a folder, where the configuration of some may stand already.
    pub fn start_in(folder: tempfile::TempDir, hosts: usize) -> Cluster {
        Cluster::spawn(folder, hosts, &[])
    }

    fn spawn(folder: tempfile::TempDir, hosts: usize, options: &[&str]) -> Cluster {
        let log = File::create(folder.path().join("demo.log")).expect("room for a log");
        let mut demo = Command::new(PROGRAM);
        demo.args(["demo", "--bare", "--hosts", &hosts.to_string(), "--dir"]).arg(folder.path().join("d"));
        demo.args(options);
        demo.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        // SAFETY: between fork and exec only `prctl` is called, which is async-signal-safe.
        unsafe {
            demo.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let demo = demo.spawn().expect("the program is there");
        let mut cluster = Cluster { folder, demo };
        wait_for("the hosts find each other", SECONDS, || {
            let log = cluster.folder.path().join("demo.log");
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let ended = cluster.demo.try_wait().expect("it is our child");
            assert!(ended.is_none(), "the demo ended: {said}");
            said.contains("Try:").then_some(())
        });
        cluster
    }

    pub fn path(&self, host: &str) -> PathBuf {
        self.folder.path().join("d").join(host)
    }

    /// Asks a host by the command line.
    pub fn cli(&self, host: &str, arguments: &[&str]) -> Output {
        let api = format!("unix:{}", text(&self.path(host).join("d/api.sock")));
        output(command(PROGRAM).env("DRYSTONE_API", api).args(arguments))
    }

    pub fn json(&self, host: &str, arguments: &[&str]) -> Value {
        let done = self.cli(host, &[&["--json"], arguments].concat());
        assert!(done.status.success(), "{arguments:?}: {}", said(&done));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    /// What a host alone knows.
    pub fn local(&self, host: &str) -> Value {
        let socket = self.path(host).join("d/api.sock");
        let answer =
            run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/api/v1/cluster/local"]);
        serde_json::from_str(&answer).expect("JSON")
    }

    /// Stops or continues who serves the directory: the demo.
    pub fn signal_directory(&self, signal: libc::c_int) {
        // SAFETY: the process is our child and not waited for yet, so the id is still its own.
        assert_eq!(unsafe { libc::kill(self.demo.id() as libc::pid_t, signal) }, 0);
    }

    /// Starts, stops, pauses or kills a host.
    pub fn order(&self, action: &str, host: &str) {
        let done = self.try_order(action, host);
        assert!(done.status.success(), "{action} {host}: {}", said(&done));
    }

    /// The same, which may be refused.
    pub fn try_order(&self, action: &str, host: &str) -> Output {
        let folder = self.folder.path().join("d");
        output(command(PROGRAM).args(["host", action, host, "--demo", text(&folder)]))
    }

    /// Makes a mirrored disk of one place, which tests look at from several hosts at once; gives the hosts that hold it.
    pub fn mirrored(&self, name: &str, size: &str) -> Vec<String> {
        let disk =
            self.json("a", &["disk", "create", name, size, "--policy", "default,stripes=1", "--share"]);
        let host = |component: &Value| component["host"].as_str().expect("a host").to_owned();
        let holders: Vec<String> =
            disk["components"].as_array().expect("components").iter().map(host).collect();
        assert_eq!(holders.len(), 2, "{disk}");
        // Other hosts hear of it by the directory.
        for host in ["a", "b", "c"] {
            wait_for("the disk is served by all hosts", SECONDS, || {
                Client::attach(&self.path(host).join("d/nbd.sock"), name).ok()
            });
        }
        holders
    }

    pub fn attach(&self, host: &str, disk: &str) -> Client {
        Client::attach(&self.path(host).join("d/nbd.sock"), disk)
            .unwrap_or_else(|error| panic!("attach {disk} at {host}: {error}"))
    }

    pub fn uri(&self, host: &str, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", text(&self.path(host).join("d/nbd.sock")))
    }

    /// Waits until a load at a host has written to a disk.
    pub fn wait_for_load(&self, host: &str, disk: &str) {
        wait_for_writes(|| self.json(host, &["disk", "histogram", disk]));
    }

    pub fn wait_until_whole(&self, host: &str, disk: &str) {
        wait_for("the disk becomes whole", SECONDS, || {
            let disk = self.json(host, &["disk", "show", disk]);
            let components = disk["components"].as_array().expect("components");
            let is_whole =
                components.iter().all(|one| one["standing"] == "active" && one["trouble"].is_null());
            is_whole.then_some(())
        });
    }

    /// Waits until so many components stand on all hosts together.
    pub fn wait_for_components(&self, expected: u64) {
        wait_for("components are gone", SECONDS, || {
            let hosts = self.json("a", &["host", "list"]);
            let count = |host: &Value| host["component_count"].as_u64().expect("a number");
            (hosts.as_array().expect("hosts").iter().map(count).sum::<u64>() == expected).then_some(())
        });
    }

    pub fn wait_for_owner(&self, disk: &str, owner: &str) {
        wait_for("the owner is another", SECONDS, || {
            (self.json("a", &["disk", "show", disk])["owner"] == owner).then_some(())
        });
    }

    /// What a node of the cluster would say first to the node of host `to`.
    fn hello(&self, from: HostId, to: &str) -> (Hello, String) {
        let status = self.json(to, &["status"]);
        let hosts = status["hosts"].as_array().expect("hosts");
        let found = hosts.iter().find(|host| host["name"] == to).expect("it knows itself");
        let id = |value: &Value| value.as_str().expect("text").to_owned();
        let node = |host| NodeId { host, shard: 0 };
        let cluster: ClusterId = id(&status["cluster"]).parse().expect("an id");
        let receiver = node(id(&found["id"]).parse().expect("an id"));
        let from = Identity { versions: VersionRange::OURS, cluster, node: node(from), incarnation: 7 };
        (Hello { from, receiver, role: Role::NODE, session: u64::MAX }, id(&found["peers"]))
    }
}

/// Says hello and reads the answer.
fn greet(hello: &Hello, address: &str) -> (TcpStream, Result<wire::Accepted, HelloError>) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(SECONDS))).expect("a timeout");
    stream.write_all(&hello.encode()).expect("it takes a hello");
    let mut answer = [0; HELLO_SIZE];
    stream.read_exact(&mut answer).expect("it answers");
    let result = hello.conclude(&answer);
    (stream, result)
}

/// Starts fio, which reads back everything that it writes.
pub fn verified_load(uri: &str, seconds: u64) -> Child {
    let mut fio = command("fio");
    fio.args(["--name=load", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=8", "--size=32m"]);
    fio.args(["--verify=crc32c", "--verify_backlog=64", "--verify_fatal=1", "--serialize_overlap=1"]);
    fio.arg("--verify_state_save=0");
    fio.args(["--time_based", &format!("--runtime={seconds}"), &format!("--uri={uri}")]);
    fio.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("fio, of the Debian package fio")
}

pub fn assert_verified(load: Child) {
    let done = load.wait_with_output().expect("it is our child");
    assert!(done.status.success(), "{}", said(&done));
}

#[test]
fn a_mirrored_disk_survives_a_host_that_is_killed_under_load_and_becomes_whole() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    for (victim, user) in [(&holders[1], &holders[0]), (&holders[0], &holders[1])] {
        let load = verified_load(&cluster.uri(user, "web"), 4);
        cluster.wait_for_load(user, "web");
        cluster.order("kill", victim);
        wait_for("it says what is not whole", SECONDS, || {
            cluster.json(user, &["status"])["not_whole"]["web"].is_array().then_some(())
        });
        cluster.order("start", victim);
        assert_verified(load);
        cluster.wait_until_whole(user, "web");
    }
    let events = String::from_utf8_lossy(&cluster.cli(&holders[1], &["events"]).stdout).into_owned();
    assert!(events.contains("counts again") && events.contains("cannot be reached"), "{events}");
    // All hosts show the same disk, whoever owns it.
    run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &cluster.uri("a", "web"), &cluster.uri("b", "web")],
    );
    run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &cluster.uri("b", "web"), &cluster.uri("c", "web")],
    );
}

#[test]
fn a_host_that_stands_still_is_passed_over_and_brought_up_to_date() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let mut client = cluster.attach(&holders[0], "web");
    client.write(0, &[1; 8192]).expect("both are there");
    cluster.order("pause", &holders[1]);
    client.write(4096, &[2; 8192]).expect("one is enough");
    assert_eq!(client.read(0, 12288), Ok([[1; 4096], [2; 4096], [2; 4096]].concat()));
    cluster.order("start", &holders[1]);
    cluster.wait_until_whole(&holders[0], "web");
    cluster.order("kill", &holders[0]);
    drop(client);
    let mut client = cluster.attach(&holders[1], "web");
    assert_eq!(client.read(0, 12288), Ok([[1; 4096], [2; 4096], [2; 4096]].concat()));
}

#[test]
fn guests_go_on_while_the_directory_is_away() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let mut client = cluster.attach(&holders[0], "web");
    client.write(0, &[1; 4096]).expect("it writes");
    cluster.wait_for_owner("web", &holders[0]);
    // The demo serves the directory: while it stands still nobody does.
    cluster.signal_directory(libc::SIGSTOP);
    for round in 1..=50 {
        client.write(round * 4096, &[2; 4096]).expect("no host failed");
    }
    wait_for("it is told", SECONDS, || {
        cluster.local(&holders[0])["directory_away"].is_string().then_some(())
    });
    assert_eq!(client.read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
    cluster.signal_directory(libc::SIGCONT);
    wait_for("it is back", SECONDS, || cluster.local(&holders[0])["directory_away"].is_null().then_some(()));
    cluster.order("kill", &holders[1]);
    client.write(0, &[3; 4096]).expect("the directory takes the other copy out");
    cluster.order("start", &holders[1]);
    cluster.wait_until_whole(&holders[0], "web");
}

#[test]
fn clients_of_two_hosts_share_a_disk_and_its_owner_follows_who_stays() {
    let cluster = Cluster::start(3);
    cluster.mirrored("web", "64MiB");
    let mut first = cluster.attach("a", "web");
    first.write(0, &[1; 4096]).expect("it writes");
    cluster.wait_for_owner("web", "a");
    let mut second = cluster.attach("b", "web");
    assert_eq!(second.read(0, 4096), Ok(vec![1; 4096]));
    second.write(4096, &[2; 4096]).expect("it is forwarded");
    assert_eq!(first.read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
    drop(first);
    cluster.wait_for_owner("web", "b");
    assert_eq!(second.read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
    // It is deleted everywhere, with a client attached, where that is asked for.
    cluster.json("c", &["disk", "delete", "web", "--confirm", "web", "--detach-clients"]);
    for host in ["a", "b", "c"] {
        wait_for("the disk is gone", SECONDS, || {
            cluster.json(host, &["disk", "list"]).as_array().expect("disks").is_empty().then_some(())
        });
    }
    cluster.wait_for_components(0);
}

#[test]
fn garbage_at_the_door_of_other_hosts_costs_nothing_but_that_connection() {
    let cluster = Cluster::start(3);
    cluster.mirrored("web", "64MiB");
    let mut client = cluster.attach("a", "web");
    client.write(0, &[1; 4096]).expect("it writes");
    let (hello, address) = cluster.hello(HostId(5), "a");
    let mut stream = TcpStream::connect(&address).expect("it listens");
    stream.write_all(&[0x5a; 4096]).expect("a socket takes bytes");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest); // An end or a reset: both are fine.
    assert!(rest.is_empty(), "garbage is not answered");
    let known: HostId = cluster.local("b")["host"].as_str().expect("an id").parse().expect("an id");
    let hello = Hello { from: Identity { node: NodeId { host: known, shard: 0 }, ..hello.from }, ..hello };
    let (mut stream, accepted) = greet(&hello, &address);
    accepted.expect("a member is let in");
    stream.write_all(&[0x5a; 4096]).expect("a socket takes bytes");
    let _ = stream.read_to_end(&mut rest);
    wait_for("it is counted", SECONDS, || {
        let peers = &cluster.local("a")["peers"];
        let is_counted = peers["garbage"].as_u64() >= Some(1) && peers["refused"].as_u64() >= Some(1);
        is_counted.then_some(())
    });
    let socket = text(&cluster.path("a").join("d/api.sock")).to_owned();
    let metrics = run("curl", &["-sS", "--unix-socket", &socket, "http://localhost/metrics"]);
    for line in [
        "drystone_peer_failures_total{reason=\"garbage\"} 1",
        "drystone_peer_reachable{host=\"b\"} 1.0",
        "drystone_disk_components_not_current{disk=\"web\"} 0.0",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    client.write(4096, &[2; 4096]).expect("it still writes");
    assert_eq!(client.read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
    cluster.wait_until_whole("a", "web");
}

#[test]
fn hosts_that_do_not_belong_here_are_refused_with_the_reason() {
    let cluster = Cluster::start(2);
    let (hello, address) = cluster.hello(HostId(5), "a");
    let check = |hello: Hello, expected: &str| {
        let (_, result) = greet(&hello, &address);
        let error = result.expect_err("it is refused");
        assert!(matches!(error, HelloError::Refused(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(hello, "is not a member of the cluster");
    let newer = VersionRange { lowest: 7, highest: 9 };
    let known: HostId = cluster.local("b")["host"].as_str().expect("an id").parse().expect("an id");
    let node = NodeId { host: known, shard: 0 };
    check(
        Hello { from: Identity { versions: newer, node, ..hello.from }, ..hello },
        "speaks versions 7 to 9",
    );
    let other = ClusterId(hello.from.cluster.0 ^ 1);
    check(Hello { from: Identity { cluster: other, ..hello.from }, ..hello }, "correct the address");
    check(Hello { receiver: NodeId { host: HostId(9), shard: 0 }, ..hello }, "stands at its address");
    let refusal = HelloRefusal::OtherCluster { initiator: other, acceptor: hello.from.cluster }.to_string();
    // The answer may be here before the line is in the log.
    let logged = || {
        let log = std::fs::read_to_string(cluster.path("a").join("log")).expect("it logs");
        (log.matches(&refusal).count() == 1).then_some(())
    };
    wait_for("the refusal in the log", SECONDS, logged);
    // The two that do belong are not disturbed.
    let hosts = cluster.json("b", &["host", "list"]);
    assert!(hosts.as_array().expect("hosts").iter().all(|host| host["is_reachable"] == true), "{hosts}");
}

#[test]
fn the_end_of_a_process_is_told_by_its_watcher_and_a_pause_is_not() {
    let cluster = Cluster::start(3);
    let words = |host: &str| {
        let log = std::fs::read_to_string(cluster.path(host).join("log")).expect("it logs");
        log.matches("has ended: its watcher says so").count()
    };
    let is_silent = |host: &str| {
        let hosts = cluster.json("a", &["host", "list"]);
        let hosts = hosts.as_array().expect("hosts").iter();
        hosts.clone().any(|one| one["name"] == host && one["is_reachable"] == false).then_some(())
    };
    cluster.order("pause", "c");
    wait_for("host c is silent", SECONDS, || is_silent("c"));
    cluster.order("kill", "b");
    wait_for("host a hears of it", SECONDS, || (words("a") == 1).then_some(()));
    cluster.order("start", "c");
    // What was said while it stood still, it hears when it goes on.
    wait_for("host c hears of it", SECONDS, || (words("c") == 1).then_some(()));
    assert_eq!(words("a"), 1, "host c has not ended");
}

#[test]
fn a_policy_that_the_hosts_cannot_meet_is_refused_with_the_way_out() {
    let cluster = Cluster::start(2);
    let refused =
        cluster.cli("b", &["disk", "create", "web", "1GiB", "--policy", "default,failures_to_tolerate=2"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("needs 3 hosts"), "{}", said(&refused));
    assert!(said(&refused).contains("--policy default"), "{}", said(&refused));
    cluster.json("b", &["disk", "create", "web", "1GiB"]);
    let taken = cluster.cli("a", &["disk", "create", "web", "1GiB"]);
    assert_eq!(taken.status.code(), Some(5), "{}", said(&taken));
    let nobody = cluster.cli("a", &["host", "kill", "z", "--demo", text(&cluster.folder.path().join("d"))]);
    assert_eq!(nobody.status.code(), Some(4), "{}", said(&nobody));
}

#[test]
fn a_host_of_another_cluster_is_not_let_in_by_a_directory() {
    let (cluster, other) = (Cluster::start(2), Cluster::start(2));
    cluster.order("stop", "b");
    let own = cluster.path("b").join("host.toml");
    let config = std::fs::read_to_string(&own).expect("its configuration");
    let socket = |cluster: &Cluster| text(&cluster.path("demo.sock")).to_owned();
    assert!(config.contains(&socket(&cluster)), "{config}");
    std::fs::write(&own, config.replace(&socket(&cluster), &socket(&other))).expect("room for it");
    let refused = output(command(PROGRAM).args(["host", "--config", text(&own)]));
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("this host belongs to cluster"), "{}", said(&refused));
    assert!(said(&refused).contains("correct [cluster] directory"), "{}", said(&refused));
}
