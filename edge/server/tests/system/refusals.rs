//! Who is not who they say: certificates that are over, hosts that take the name of another, configurations that were copied.
//! Nobody of them is heard, and the host's log tells why.

use super::cluster::SECONDS;
use super::host::Server;
use super::members::{Three, expect, free_port, join, login, remote, site, three, token};
use super::tools::{command, output, run, said, text, wait_for};
use ::etcd::testing::Members;
use base::checksum::seal;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Bytes of a hello and of its answer (docs/formats/wire.md).
const HELLO_BYTES: usize = 128;
/// The verdict on a hello that is accepted.
const ACCEPTED: u8 = 1;
/// The role of who saw a host's process end.
const WATCHER: u8 = 2;

/// An id as it stands in bytes between hosts: little-endian.
fn id_bytes(id: &str) -> [u8; 16] {
    u128::from_str_radix(&id.replace('-', ""), 16).expect("an id").to_le_bytes()
}

/// A hello of a host of a cluster to another, with a role.
pub fn greeting(cluster: &str, from: &str, to: &str, role: u8) -> [u8; HELLO_BYTES] {
    let mut hello = [0; HELLO_BYTES];
    hello[..8].copy_from_slice(b"DRYHELLO");
    hello[12..16].copy_from_slice(&[1, 0, 0xff, 0]);
    hello[16..32].copy_from_slice(&id_bytes(cluster));
    hello[32..48].copy_from_slice(&id_bytes(from));
    hello[48..64].copy_from_slice(&id_bytes(to));
    hello[66] = role;
    hello[72] = 9;
    // A session greater than any that there was.
    hello[80..88].copy_from_slice(&(u64::MAX >> 1).to_le_bytes());
    seal(&mut hello, 8);
    hello
}

/// Says a hello at the port for hosts, with the certificate in a folder, if any. Gives what comes in answer: all of it, or
/// nothing where the connection ends before.
pub fn say_hello(peers: &str, identity: Option<&Path>, hello: &[u8; HELLO_BYTES]) -> Vec<u8> {
    let mut client = command("timeout");
    client.args(["20", "openssl", "s_client", "-quiet", "-connect", peers]);
    if let Some(folder) = identity {
        client.arg("-cert").arg(folder.join("certificate.pem")).arg("-key").arg(folder.join("key.pem"));
    }
    client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = client.spawn().expect("openssl is there");
    let mut input = child.stdin.take().expect("it is a pipe");
    // It fails when the handshake was refused before.
    let _ = input.write_all(hello);
    let mut answer = [0; HELLO_BYTES];
    let read = std::io::Read::read_exact(&mut child.stdout.take().expect("it is a pipe"), &mut answer);
    drop(input);
    // Both fail only when it has ended already.
    let _ = child.kill();
    let _ = child.wait();
    match read {
        Ok(()) => {
            assert!(answer.starts_with(b"DRYREPLY"), "not an answer to a hello");
            answer.to_vec()
        }
        Err(_) => Vec::new(),
    }
}

/// What a host is to itself.
fn status(three: &Three, index: usize) -> (String, String) {
    let status = three.sites[index].json(&["status"]);
    let field = |name: &str| status[name].as_str().expect("a text").to_owned();
    (field("cluster"), field("host"))
}

/// Where a host listens for others.
fn peers(three: &Three, index: usize) -> String {
    let hosts = three.sites[0].json(&["host", "list"]);
    hosts[index]["peers"].as_str().expect("an address").to_owned()
}

/// Makes certificates by the authority of the cluster, with times that the product gives to nobody.
struct Forge {
    folder: tempfile::TempDir,
}

/// When a certificate is good.
#[derive(Clone, Copy)]
enum Time {
    /// It was, for a day.
    Over,
    /// It is.
    Good,
    /// It will be.
    Early,
}

impl Forge {
    fn new(three: &Three) -> Forge {
        let folder = tempfile::tempdir().expect("a folder");
        let own = three.sites[0].path("d/identity");
        let config = format!(
            "[ca]\ndefault_ca = d\n[d]\ndatabase = {at}/index\nnew_certs_dir = {at}\nrand_serial = yes\n\
             default_md = sha256\npolicy = any\nunique_subject = no\ncertificate = {authority}\n\
             private_key = {key}\n[any]\ncommonName = supplied\n",
            at = text(folder.path()),
            authority = text(&own.join("authorities.pem")),
            key = text(&own.join("authority-key.pem")),
        );
        std::fs::write(folder.path().join("config"), config).expect("room");
        std::fs::write(folder.path().join("index"), "").expect("room");
        Forge { folder }
    }

    /// Makes a folder with an identity; `uri` says of whom.
    fn make(&self, name: &str, uri: &str, uses: &str, time: Time) -> PathBuf {
        let own = self.folder.path().join(name);
        std::fs::create_dir(&own).expect("room");
        let key = own.join("key.pem");
        let new =
            ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", text(&key)];
        run("openssl", &new);
        self.sign(&own, uri, uses, time);
        own
    }

    /// Signs a certificate for the key in a folder.
    fn sign(&self, own: &Path, uri: &str, uses: &str, time: Time) {
        let (begin, end) = match time {
            Time::Over => ("20240101000000Z", "20240102000000Z"),
            Time::Good => ("20240101000000Z", "21200101000000Z"),
            Time::Early => ("21190101000000Z", "21200101000000Z"),
        };
        let (request, extensions) = (own.join("request"), own.join("extensions"));
        let said = format!(
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={uses}\n\
             authorityKeyIdentifier=keyid\nsubjectAltName=URI:{uri},DNS:host.drystone.internal\n"
        );
        std::fs::write(&extensions, said).expect("room");
        let (key, config) = (own.join("key.pem"), self.folder.path().join("config"));
        run("openssl", &["req", "-new", "-key", text(&key), "-subj", "/CN=any", "-out", text(&request)]);
        let certificate = own.join("certificate.pem");
        let arguments =
            ["ca", "-batch", "-notext", "-config", text(&config), "-startdate", begin, "-enddate", end];
        let files = ["-extfile", text(&extensions), "-in", text(&request), "-out", text(&certificate)];
        run("openssl", &[&arguments[..], &files].concat());
        for (link, name) in [("client-cert.pem", "certificate.pem"), ("client-key.pem", "key.pem")] {
            let _ = std::os::unix::fs::symlink(name, own.join(link)); // It may be there.
        }
    }
}

/// What somebody gets at the API of host `b`: the status of HTTP, or nothing where the handshake is refused.
fn ask_api(three: &Three, identity: &Path) -> Option<String> {
    let url = format!("https://127.0.0.1:{}/api/v1/host", three.ports[1]);
    let mut curl = command("curl");
    curl.args(["-sk", "-o", "/dev/null", "-w", "%{http_code}", &url]);
    curl.arg("--cert").arg(identity.join("certificate.pem")).arg("--key").arg(identity.join("key.pem"));
    let done = output(&mut curl);
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn wait_for_message(server: &Server, words: &[&str]) {
    wait_for(&format!("the log says {words:?}"), SECONDS, || {
        let messages = server.messages();
        messages.lines().any(|line| words.iter().all(|word| line.contains(word))).then_some(())
    });
}

#[test]
fn a_certificate_that_is_over_lets_nobody_in_and_the_log_says_so() {
    let mut three = three();
    let forge = Forge::new(&three);
    let (cluster, _) = status(&three, 0);
    let (_, host) = status(&three, 2);
    let person = format!("drystone://{cluster}/people/ann?role=admin");
    let named = format!("drystone://{cluster}/hosts/{host}?name=c");
    let both = "clientAuth,serverAuth";
    // What is made here is believed, if only its time is right.
    let good = forge.make("good", &person, "clientAuth", Time::Good);
    assert_eq!(ask_api(&three, &good).as_deref(), Some("200"));
    let over = forge.make("over", &person, "clientAuth", Time::Over);
    assert_eq!(ask_api(&three, &over), None);
    wait_for_message(
        &three.servers[1],
        &["a client of the API", "is refused", "the certificate has expired"],
    );
    let early = forge.make("early", &person, "clientAuth", Time::Early);
    assert_eq!(ask_api(&three, &early), None);
    wait_for_message(&three.servers[1], &["a client of the API", "is refused", "not valid before"]);
    // The same at the port for hosts.
    let nobody = "7".repeat(32);
    let hello = greeting(&cluster, &host, &nobody, 1);
    let good = forge.make("good-host", &named, both, Time::Good);
    assert!(!say_hello(&peers(&three, 1), Some(&good), &hello).is_empty());
    let over = forge.make("over-host", &named, both, Time::Over);
    assert!(say_hello(&peers(&three, 1), Some(&over), &hello).is_empty());
    wait_for_message(
        &three.servers[1],
        &["the connection with somebody ends", "the certificate has expired"],
    );
    // And at a disk's data.
    three.sites[0].json(&["disk", "create", "web", "16MiB"]);
    let nbd = three.sites[0].json(&["host", "list"])[1]["nbd"][1].as_str().expect("an address").to_owned();
    let authorities = three.sites[0].path("d/identity/authorities.pem");
    let attach = |folder: &Path| {
        let _ = std::fs::copy(&authorities, folder.join("ca-cert.pem"));
        let uri = format!("nbds://{nbd}/web?tls-certificates={}", text(folder));
        output(command("nbdinfo").arg(uri))
    };
    let done = attach(&good);
    assert!(done.status.success(), "{}", said(&done));
    assert!(!attach(&over).status.success());
    // A host whose own has ended does not start, and is told how it gets another.
    three.servers.remove(2).stop();
    let own = three.sites[2].path("d/identity");
    forge.sign(&own, &named, both, Time::Over);
    let (code, why) = three.sites[2].refused(&[]);
    assert!(code == 3 && why.contains("certificate ended at") && why.contains("--again c"), "{code}: {why}");
    three.servers.into_iter().for_each(Server::stop);
}

#[test]
fn a_host_that_takes_the_name_of_another_is_not_heard() {
    let three = three();
    let (cluster, a) = status(&three, 0);
    let (_, b) = status(&three, 1);
    let (_, c) = status(&three, 2);
    let own = three.sites[1].path("d/identity");
    let at_c = peers(&three, 2);
    // As itself it is heard; what it asks for is refused for another reason.
    let answer = say_hello(&at_c, Some(&own), &greeting(&cluster, &b, &"7".repeat(32), 1));
    assert!(answer.get(49).is_some_and(|verdict| *verdict != ACCEPTED), "{answer:?}");
    // As another one it is not, and nobody believes that the other's process has ended.
    for role in [1, WATCHER] {
        let answer = say_hello(&at_c, Some(&own), &greeting(&cluster, &a, &c, role));
        assert!(answer.is_empty(), "role {role}: verdict {}", answer[49]);
    }
    wait_for_message(&three.servers[2], &["somebody says to be host", &a, "the certificate is of another"]);
    assert!(!three.servers[2].messages().contains("has ended"), "{}", three.servers[2].messages());
    // A person is no host.
    let folder = tempfile::tempdir().expect("a folder");
    let ann = folder.path().join("ann");
    login(&three.sites[0], &ann, "ann", "admin");
    assert!(say_hello(&at_c, Some(&ann), &greeting(&cluster, &a, &c, 1)).is_empty());
    wait_for_message(&three.servers[2], &["a host is expected"]);
    assert!(remote(three.ports[2], &ann, &["status"]).status.success(), "at the API she is who she is");
    three.servers.into_iter().for_each(Server::stop);
}

/// With the certificate of another and a name of its own a host wrote itself into the directory, and no other host listened to it.
#[test]
fn a_configuration_or_an_identity_that_was_copied_makes_no_second_host() {
    let etcd = Members::spawn(1);
    let (port, other) = (free_port(), free_port());
    let sites = [site(&etcd, "a", port), site(&etcd, "b", other)];
    let made = super::members::init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let servers = super::members::join_all(&sites);
    // The configuration of `b` on a machine of its own, which has no certificate: it is nobody, and gets none by that name.
    let copy = site(&etcd, "b", free_port());
    let (code, why) = copy.refused(&[]);
    assert!(code == 3 && why.contains("drystone host join"), "{code}: {why}");
    expect(&join(&copy, &token(&sites[0])), 5, "there is a host `b`");
    // With the certificate of `b` too, by its name or by another one.
    let (from, to) = (sites[1].path("d/identity"), copy.path("d/identity"));
    run("cp", &["-a", text(&from), text(&to)]);
    let (code, why) = copy.refused(&[]);
    assert!(code == 3 && why.contains("is not to be copied") && why.contains("host `b`"), "{code}: {why}");
    let mut renamed = copy;
    let lines = renamed.config().replace("name = \"b\"", "name = \"d\"");
    renamed.set_config(&lines);
    let (code, why) = renamed.refused(&[]);
    assert!(code == 3 && why.contains("is not to be copied"), "{code}: {why}");
    // A host that calls itself as another one.
    let mut servers = servers;
    servers.remove(1).stop();
    let [first, mut second] = sites;
    let lines = second.config().replace("name = \"b\"", "name = \"a\"");
    second.set_config(&lines);
    let (code, why) = second.refused(&[]);
    assert!(code == 5 && why.contains("there is a host `a`"), "{code}: {why}");
    let hosts = first.json(&["host", "list"]);
    assert_eq!(hosts.as_array().map(Vec::len), Some(2), "{hosts}");
    servers.into_iter().for_each(Server::stop);
}
