//! Who belongs to a cluster: joining with tokens, what people may do, certificates that are renewed and replaced.

use super::cluster::SECONDS;
use super::host::{PROGRAM, Server, Shape, Site};
use super::nbd::Client;
use super::tools::{command, output, run, said, text, wait_for, wait_for_clock};
use ::etcd::testing::Members;
pub use ::etcd::testing::free_port;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// A host with devices of its own, its directory in etcd, and its API at a port.
pub fn site(etcd: &Members, name: &str, port: u16) -> Site {
    let mut site = Site::new(&Shape::Two { size_mib: 512 });
    become_one_of_several(&mut site, etcd, name, port);
    site
}

/// Configures a host so.
pub fn become_one_of_several(site: &mut Site, etcd: &Members, name: &str, port: u16) {
    let listening = site.config().replace(
        "[listen]\nnbd = [\"unix:nbd.sock\"]\n",
        &format!(
            "[listen]\nhttp = [\"unix:api.sock\", \"127.0.0.1:{port}\"]\nnbd = [\"unix:nbd.sock\", \"127.0.0.1:{}\"]\n",
            free_port()
        ),
    );
    assert!(listening.contains("api.sock"), "{listening}");
    site.set_config(&format!(
        "name = \"{name}\"\n{listening}\n[cluster]\ndirectory = \"etcd\"\n[cluster.etcd]\nendpoints = [\"{}\"]\n",
        etcd.url(0)
    ));
}

/// Writes a host's configuration and gives its place.
pub fn config(site: &Site) -> PathBuf {
    let path = site.path("host.toml");
    std::fs::write(&path, site.config()).expect("room for the configuration");
    path
}

/// `cluster init` on the first host, once etcd answers.
pub fn init(site: &Site) -> Output {
    wait_for("etcd answers", SECONDS, || {
        let done = output(command(PROGRAM).args(["cluster", "init", "--config"]).arg(config(site)));
        (done.status.code() != Some(6)).then_some(done)
    })
}

/// Has a host join with a token.
pub fn join(site: &Site, token: &str) -> Output {
    output(command(PROGRAM).args(["host", "join", "--config"]).arg(config(site)).arg(token))
}

/// A token for one more host.
pub fn token(site: &Site) -> String {
    site.ask(&["host", "token"]).trim().to_owned()
}

/// Starts the first host and has the others join, each with a token of its own.
pub fn join_all(sites: &[Site]) -> Vec<Server> {
    let mut servers = vec![sites[0].start()];
    for site in &sites[1..] {
        let joined = join(site, &token(&sites[0]));
        assert!(joined.status.success(), "{}", said(&joined));
        servers.push(site.start());
    }
    wait_until_all_reach(sites);
    servers
}

/// Waits until the hosts reach each other.
pub fn wait_until_all_reach(sites: &[Site]) {
    wait_for("the hosts find each other", SECONDS, || {
        sites
            .iter()
            .all(|site| {
                let hosts = site.json(&["host", "list"]);
                let hosts = hosts.as_array().expect("hosts");
                hosts.len() == sites.len() && hosts.iter().all(|host| host["is_reachable"] == true)
            })
            .then_some(())
    });
}

/// Three hosts of one cluster, running.
pub struct Three {
    /// Where they are.
    pub sites: Vec<Site>,
    /// Their processes.
    pub servers: Vec<Server>,
    /// Where each has its API.
    pub ports: Vec<u16>,
    _etcd: Members,
}

/// Makes and starts them: `a`, `b` and `c`.
pub fn three() -> Three {
    let etcd = Members::spawn(1);
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let sites: Vec<Site> =
        ["a", "b", "c"].iter().zip(&ports).map(|(name, port)| site(&etcd, name, *port)).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let servers = join_all(&sites);
    Three { sites, servers, ports, _etcd: etcd }
}

/// The command line of somebody elsewhere, with the identity in a folder.
pub fn remote(port: u16, identity: &Path, arguments: &[&str]) -> Output {
    let api = format!("https://127.0.0.1:{port}");
    output(command(PROGRAM).args(["--api", &api, "--identity", text(identity)]).args(arguments))
}

pub fn login(site: &Site, identity: &Path, name: &str, role: &str) {
    let token = site.ask(&["person", "token", name, "--role", role]);
    let done = output(command(PROGRAM).args(["--identity", text(identity), "login", token.trim()]));
    assert!(done.status.success(), "{}", said(&done));
}

#[track_caller]
pub fn expect(done: &Output, code: i32, words: &str) {
    let text = said(done);
    assert!(done.status.code() == Some(code) && text.contains(words), "{:?}: {text}", done.status);
}

#[test]
fn a_host_gets_in_with_a_token_that_is_good_once_and_with_nothing_else() {
    let etcd = Members::spawn(1);
    let (port, other) = (free_port(), free_port());
    let sites = [site(&etcd, "a", port), site(&etcd, "b", other)];
    assert!(init(&sites[0]).status.success());
    let (code, said_by_b) = sites[1].refused(&[]);
    assert!(code == 3 && said_by_b.contains("drystone host join"), "{said_by_b}");
    let servers = vec![sites[0].start()];
    let first = token(&sites[0]);
    let (kept, last) = first.split_at(first.len() - 1);
    let changed = format!("{kept}{}", if last == "0" { "1" } else { "0" });
    expect(&join(&sites[1], &changed), 2, "copy the whole line again");
    let person = sites[0].ask(&["person", "token", "ann", "--role", "admin"]);
    expect(&join(&sites[1], person.trim()), 7, "is for a person");
    // A name that is taken is told before the token is spent.
    let namesake = site(&etcd, "a", other);
    expect(&join(&namesake, &first), 5, "there is a host `a`");
    let joined = join(&sites[1], &first);
    assert!(joined.status.success(), "{}", said(&joined));
    expect(&join(&sites[1], &first), 3, "already");
    let third = site(&etcd, "c", other);
    expect(&join(&third, &first), 7, "good once");
    // Who has lost its certificate gets another, as who it was, and nobody else does as it.
    let server = sites[1].start();
    wait_until_all_reach(&sites);
    server.stop();
    std::fs::remove_dir_all(sites[1].path("d/identity")).expect("it was there");
    let (code, why) = sites[1].refused(&[]);
    assert!(code == 3 && why.contains("drystone host join"), "{why}");
    expect(&join(&sites[1], &token(&sites[0])), 5, "--again");
    let again = sites[0].ask(&["host", "token", "--again", "b"]);
    expect(&join(&third, again.trim()), 7, "is for host b");
    let joined = join(&sites[1], again.trim());
    assert!(joined.status.success(), "{}", said(&joined));
    let server = sites[1].start();
    wait_until_all_reach(&sites);
    server.stop();
    let short = sites[0].ask(&["host", "token", "--for", "1s"]);
    wait_for_clock(2);
    expect(&join(&third, short.trim()), 7, "expired");
    drop(servers);
}

#[test]
fn people_may_do_what_their_role_says_and_nobody_else_anything() {
    let three = three();
    let (sites, port) = (&three.sites, three.ports[1]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for role in ["viewer", "operator", "admin"] {
        login(&sites[0], &at(role), &format!("ann-{role}"), role);
    }
    let ask = |who: &str, words: &[&str]| remote(port, &at(who), words);
    let create = |who: &str, disk: &str| ask(who, &["disk", "create", disk, "16MiB"]);
    assert!(ask("viewer", &["status"]).status.success());
    expect(&create("viewer", "web"), 7, "viewer `ann-viewer`");
    assert!(create("operator", "web").status.success());
    expect(&ask("operator", &["cluster", "set", "repair-delay", "30m"]), 7, "role `admin`");
    expect(&ask("operator", &["person", "token", "eve", "--role", "admin"]), 7, "role `admin`");
    assert!(ask("admin", &["cluster", "set", "repair-delay", "30m"]).status.success());
    // The same rights at a disk's data, wherever a certificate is shown.
    let hosts = sites[1].json(&["host", "list"]);
    let nbd = hosts[1]["nbd"][1].as_str().expect("an address").to_owned();
    let info = |who: &Path| {
        let uri = format!("nbds://{nbd}/web?tls-certificates={}", text(who));
        output(command("nbdinfo").arg(&uri))
    };
    let attached = info(&at("operator"));
    assert!(attached.status.success(), "{}", said(&attached));
    assert!(!info(&at("viewer")).status.success(), "a viewer attaches to nothing");
    assert!(info(&sites[2].path("d/identity")).status.success(), "another host's guest may");
    // The certificate of a host is good to see, and for no change.
    let host = sites[2].path("d/identity");
    assert!(remote(port, &host, &["status"]).status.success());
    expect(&remote(port, &host, &["disk", "create", "x", "16MiB"]), 7, "host `c`");
    // Nobody, and somebody of another authority.
    let url = format!("https://127.0.0.1:{port}/api/v1/host");
    let nobody = run("curl", &["-sk", "-w", "%{http_code}", &url]);
    assert!(nobody.ends_with("403") && nobody.contains("certificate"), "{nobody}");
    let (key, foreign) = (at("key.pem"), at("foreign.pem"));
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ann-admin", "-days", "1"];
    run("openssl", &[&new[..], &["-keyout", text(&key), "-out", text(&foreign)]].concat());
    let refused = output(command("curl").args(["-sk", "--cert", text(&foreign), "--key", text(&key), &url]));
    assert!(!refused.status.success(), "{}", said(&refused));
    // Who was taken out is out at once, and in again with a new certificate.
    sites[0].ask(&["person", "remove", "ann-admin", "--yes"]);
    wait_for("it counts no more", SECONDS, || {
        (ask("admin", &["status"]).status.code() == Some(7)).then_some(())
    });
    wait_for_clock(1);
    let again = at("again");
    login(&sites[0], &again, "ann-admin", "admin");
    assert!(remote(port, &again, &["status"]).status.success());
    three.servers.into_iter().for_each(Server::stop);
}

#[test]
fn certificates_are_renewed_and_the_authority_replaced_while_a_guest_writes() {
    let three = three();
    let sites = &three.sites;
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
    for site in sites {
        wait_for("all hosts serve it", SECONDS, || Client::attach(&site.path("d/nbd.sock"), "web").ok());
    }
    let mut client = sites[0].attach("web");
    let mut write = |byte: u8| client.write(4096, &[byte; 4096]).expect("nothing is felt");
    let all = || sites[0].json(&["cluster", "certificates", "list"]);
    let issued = || -> Vec<String> {
        let hosts = all()["hosts"].as_array().cloned().unwrap_or_default();
        hosts.iter().map(|host| host["issued"].to_string()).collect()
    };
    let before = issued();
    assert_eq!(before.len(), 3, "{before:?}");
    wait_for_clock(1);
    sites[1].ask(&["cluster", "certificates", "renew"]);
    wait_for("all hosts have another certificate", SECONDS, || {
        write(1);
        issued().iter().all(|one| !before.contains(one)).then_some(())
    });
    // Another host keeps the next authority.
    let former = all()["authorities"][0]["fingerprint"].as_str().expect("one").to_owned();
    sites[1].ask(&["cluster", "certificates", "add-authority"]);
    let refused = sites[0].cli(&["cluster", "certificates", "drop-authority", &former, "--yes"]);
    let was_early = !refused.status.success();
    wait_for("all hosts show a certificate of the new one", SECONDS, || {
        write(2);
        let authorities = all()["authorities"].clone();
        let newest = authorities.as_array().and_then(|all| all.last().cloned())?;
        (newest["hosts"].as_array().map(Vec::len) == Some(3) && newest["keeper"] == "b").then_some(())
    });
    if was_early {
        expect(&refused, 3, "still shows a certificate of it");
        sites[0].ask(&["cluster", "certificates", "drop-authority", &former, "--yes"]);
    }
    wait_for("the former one is believed no more", SECONDS, || {
        write(3);
        let authorities = all()["authorities"].clone();
        (authorities.as_array().map(Vec::len) == Some(1)).then_some(())
    });
    let last = all()["authorities"][0]["fingerprint"].as_str().expect("one").to_owned();
    expect(&sites[0].cli(&["cluster", "certificates", "drop-authority", &last, "--yes"]), 3, "");
    drop(client);
    // What was written on disk is what a start uses.
    three.servers.into_iter().for_each(Server::stop);
    let servers: Vec<Server> = sites.iter().map(Site::start).collect();
    wait_until_all_reach(sites);
    assert_eq!(sites[2].attach("web").read(4096, 4096), Ok(vec![3; 4096]));
    servers.into_iter().for_each(Server::stop);
}

/// Adding an authority locked people out at once, QEMU as well as the command line: hosts showed certificates of an authority that
/// people's files did not have. Nobody was told whom dropping the former one locks out.
#[test]
fn a_new_authority_locks_nobody_out_and_who_is_locked_out_by_the_end_of_the_former_is_named() {
    let three = three();
    let (sites, port) = (&three.sites, three.ports[1]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    login(&sites[0], &at("ann"), "ann", "operator");
    sites[0].json(&["disk", "create", "web", "64MiB", "--policy", "default,stripes=1", "--share"]);
    wait_for("host b serves it", SECONDS, || Client::attach(&sites[1].path("d/nbd.sock"), "web").ok());
    let hosts = sites[0].json(&["host", "list"]);
    let nbd = hosts[1]["nbd"][1].as_str().expect("an address").to_owned();
    let opens = |who: &str| {
        let uri = format!("nbds://{nbd}/web?tls-certificates={}", text(&at(who)));
        output(command("nbdinfo").arg(uri)).status.success()
    };
    assert!(remote(port, &at("ann"), &["status"]).status.success() && opens("ann"));
    let early = sites[0].ask(&["person", "token", "bob"]);
    let all = || sites[0].json(&["cluster", "certificates", "list"]);
    let former = all()["authorities"][0]["fingerprint"].as_str().expect("one").to_owned();
    sites[0].ask(&["cluster", "certificates", "add-authority"]);
    wait_for("all hosts take a certificate of the new one", SECONDS, || {
        let newest = all()["authorities"].as_array().and_then(|all| all.last().cloned())?;
        (newest["hosts"].as_array().map(Vec::len) == Some(3)).then_some(())
    });
    // Ann's files know the former one alone.
    expect(&remote(port, &at("ann"), &["status"]), 0, "");
    assert!(opens("ann"), "libnbd believes what host b shows");
    // A token from before is good, one from now is, and so is who comes with it.
    let redeemed = output(command(PROGRAM).args(["--identity", text(&at("bob")), "login", early.trim()]));
    assert!(redeemed.status.success(), "{}", said(&redeemed));
    login(&sites[0], &at("cid"), "cid", "viewer");
    for who in ["bob", "cid"] {
        expect(&remote(port, &at(who), &["status"]), 0, "");
    }
    let people = sites[2].json(&["person", "list"]);
    let people = people.as_array().expect("people");
    let names: Vec<&str> = people.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["ann", "bob", "cid"], "{people:?}");
    // Hosts show the same after a start.
    let mut servers = three.servers;
    servers.remove(1).stop();
    let second = sites[1].start();
    wait_until_all_reach(sites);
    expect(&remote(port, &at("ann"), &["status"]), 0, "");
    let drop_former = ["cluster", "certificates", "drop-authority", &former];
    let refused = sites[0].cli(&[&drop_former[..], &["--yes"]].concat());
    expect(&refused, 3, "these people would be locked out");
    expect(&refused, 3, "ann");
    sites[0].ask(&[&drop_former[..], &["--confirm", &former]].concat());
    wait_for("ann is out", SECONDS, || {
        (!remote(port, &at("ann"), &["status"]).status.success()).then_some(())
    });
    expect(&remote(port, &at("cid"), &["status"]), 0, "");
    second.stop();
    servers.into_iter().for_each(Server::stop);
}

#[test]
fn garbage_at_the_ports_of_a_cluster_harms_nobody() {
    let three = three();
    let hosts = three.sites[0].json(&["host", "list"]);
    let peers = hosts[1]["peers"].as_str().expect("an address").to_owned();
    for address in [peers, format!("127.0.0.1:{}", three.ports[1])] {
        for bytes in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3], &[]]
        {
            let mut stream = TcpStream::connect(&address).expect("it listens");
            stream.write_all(bytes).expect("it takes bytes");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            // An alert, or nothing; then the end.
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
        }
    }
    wait_until_all_reach(&three.sites);
    let counters = three.sites[1].json(&["status"]);
    assert!(counters["name"] == "b", "{counters}");
    three.servers.into_iter().for_each(Server::stop);
}
