//! Disks that clients have: what is refused of them, in which words, and what ends their connections. The rows are those of the
//! guide's table (docs/guide/cluster.md, "A disk in use").

use super::cluster::{Cluster, SECONDS};
use super::host::{Server, Shape, Site};
use super::members::expect;
use super::nbd::Client;
use super::tools::{said, text, wait_for};
use std::path::PathBuf;
use std::process::Output;

/// The words of every refusal.
const REFUSED: &str = "disk web is in use: it is attached";
/// The way out.
const HINT: &str = "add `--detach-clients` to end these connections";

fn site() -> (Site, Server) {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    (site, server)
}

fn image(site: &Site) -> PathBuf {
    let path = site.path("image.raw");
    std::fs::write(&path, vec![9; 1 << 20]).expect("room for an image");
    path
}

/// Deleting a disk, importing over it and making it smaller succeeded while a guest had it: the guest's file system was gone under
/// it, or the guest waited for ever for a disk that was no more. `--confirm` asked for the name alone.
#[test]
fn nothing_pulls_a_disk_from_under_its_clients_on_a_host_alone() {
    let (site, server) = site();
    let image = image(&site);
    let mut client = site.attach("web");
    client.write(0, &[1; 4096]).expect("it writes");
    let rows: [&[&str]; 3] = [
        &["disk", "delete", "web", "--confirm", "web"],
        &["disk", "import", "web", text(&image), "--confirm", "web"],
        &["disk", "resize", "web", "32MiB", "--confirm", "web"],
    ];
    for row in rows {
        let refused = site.cli(row);
        expect(&refused, 3, REFUSED);
        expect(&refused, 3, "(1 client)");
        expect(&refused, 3, HINT);
        assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]), "{row:?}: the client goes on");
    }
    // The API refuses by itself.
    let socket = site.path("d/api.sock");
    let url = "http://localhost/api/v1/disks/web?confirm=web";
    let told = super::tools::run("curl", &["-sS", "-X", "DELETE", "--unix-socket", text(&socket), url]);
    assert!(told.contains("\"refused\"") && told.contains(REFUSED), "{told}");
    // These go on while clients have it.
    site.ask(&["disk", "resize", "web", "96MiB"]);
    site.ask(&["disk", "set", "web", "read-only", "on"]);
    site.ask(&["disk", "set", "web", "read-only", "off"]);
    site.ask(&["disk", "rename", "web", "mail"]);
    site.ask(&["disk", "rename", "mail", "web"]);
    assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]));
    // When asked to, each ends the connections first.
    for row in [rows[2], rows[1], rows[0]] {
        let mut client = site.attach("web");
        assert!(client.read(0, 4096).is_ok());
        expect(&site.cli(&[row, &["--detach-clients"]].concat()), 0, "web");
        assert!(!client.is_served(), "{row:?}: the client was cut off");
        let events = said(&site.cli(&["events", "--kind", "disk.cut_off"]));
        assert!(events.contains("cut off: the disk is being"), "{events}");
    }
    assert!(Client::attach(&site.path("d/nbd.sock"), "web").is_err(), "it is gone");
    server.stop();
}

#[test]
fn nobody_attaches_to_a_disk_while_it_is_imported_and_everybody_may_afterwards() {
    let (site, server) = site();
    let socket = site.path("d/api.sock");
    let post = |path: &str, body: &str| {
        let url = format!("http://localhost/api/v1/disks/web/{path}");
        let json = "content-type: application/json";
        super::tools::run("curl", &["-sS", "--unix-socket", text(&socket), "-H", json, "-d", body, &url])
    };
    let begin =
        |size: u64| format!("{{\"confirm\":\"web\",\"source\":\"x\",\"format\":\"raw\",\"size\":{size}}}");
    assert!(post("import", &begin(65 << 20)).contains("the image has 65 MiB and the disk web only 64 MiB"));
    let begun: serde_json::Value = serde_json::from_str(&post("import", &begin(4096))).expect("JSON");
    let export = begun["export"].as_str().expect("an export").to_owned();
    let at = site.path("d/nbd.sock");
    let refused = Client::attach(&at, "web").expect_err("it is locked").to_string();
    assert!(refused.contains("disk web is being imported"), "{refused}");
    expect(
        &site.cli(&["disk", "delete", "web", "--confirm", "web", "--detach-clients"]),
        5,
        "is being imported",
    );
    let mut importer = Client::attach(&at, &export).expect("it knows the export");
    importer.write(0, &[3; 4096]).expect("it writes");
    drop(importer);
    assert!(post("import/end", "{\"export\":\".import-0\"}").contains("no such import"));
    let ended = post("import/end", &format!("{{\"export\":\"{export}\"}}"));
    assert!(ended.contains("\"name\":\"web\""), "{ended}");
    assert!(Client::attach(&at, &export).is_err(), "the export is no more");
    assert_eq!(site.attach("web").read(0, 4096), Ok(vec![3; 4096]));
    // A program that goes away without a word locks nobody out for long.
    wait_for("nobody has it", SECONDS, || {
        (site.json(&["disk", "show", "web"])["client_count"] == 0).then_some(())
    });
    post("import", &begin(4096));
    assert!(Client::attach(&at, "web").is_err());
    wait_for("the import is given up", SECONDS, || Client::attach(&at, "web").ok());
    let events = said(&site.cli(&["events", "--kind", "disk.imported"]));
    assert!(events.contains("failed: nothing was written for 30 s"), "{events}");
    server.stop();
}

impl Cluster {
    fn at(&self, host: &str) -> PathBuf {
        self.path(host).join("d/nbd.sock")
    }

    fn expect_row(&self, host: &str, row: &[&str], code: i32, words: &str) -> Output {
        let done = self.cli(host, row);
        expect(&done, code, words);
        done
    }
}

/// The same was done from any host of a cluster, whichever host had the clients.
#[test]
fn nothing_pulls_a_disk_from_under_the_clients_of_another_host() {
    let cluster = Cluster::start(3);
    let image = cluster.path("a").join("image.raw");
    std::fs::write(&image, vec![9; 1 << 20]).expect("room for an image");
    let rows: [&[&str]; 3] = [
        &["disk", "resize", "web", "32MiB", "--confirm", "web"],
        &["disk", "import", "web", text(&image), "--confirm", "web"],
        &["disk", "delete", "web", "--confirm", "web"],
    ];
    for share in ["off", "on"] {
        cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", "default,stripes=1"]);
        cluster.json("a", &["disk", "set", "web", "share", share]);
        let mut client =
            wait_for("host b serves it", SECONDS, || Client::attach(&cluster.at("b"), "web").ok());
        client.write(0, &[1; 4096]).expect("it writes");
        for row in rows {
            for host in ["a", "b"] {
                let refused = cluster.expect_row(host, row, 3, REFUSED);
                expect(&refused, 3, "at host b (1 client)");
                expect(&refused, 3, HINT);
            }
            assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]), "{row:?}: the client goes on");
        }
        // Refused locks leave nothing changed.
        assert_eq!(
            cluster.json("a", &["disk", "show", "web"])["share"].as_bool().unwrap_or(false),
            share == "on"
        );
        for row in rows {
            let mut client =
                wait_for("it can be attached", SECONDS, || Client::attach(&cluster.at("b"), "web").ok());
            assert!(client.read(0, 4096).is_ok());
            cluster.expect_row("a", &[row, &["--detach-clients"]].concat(), 0, "web");
            assert!(!client.is_served(), "{row:?}: the client of host b was cut off");
        }
        wait_for("it is gone everywhere", SECONDS, || {
            ["a", "b", "c"].iter().all(|host| Client::attach(&cluster.at(host), "web").is_err()).then_some(())
        });
    }
}

/// A client that attaches while its disk is deleted either keeps the disk, or finds none: never one that goes under it.
#[test]
fn a_client_that_comes_while_a_disk_is_deleted_has_it_or_never_gets_it() {
    let cluster = Cluster::start(3);
    let (mut refused, mut deleted) = (0, 0);
    for round in 0..12 {
        let name = format!("web{round}");
        cluster.json("a", &["disk", "create", &name, "64MiB", "--policy", "default,stripes=1"]);
        drop(wait_for("host b serves it", SECONDS, || Client::attach(&cluster.at("b"), &name).ok()));
        let (socket, disk) = (cluster.at("b"), name.clone());
        let guest = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(5 * (round % 6)));
            Client::attach(&socket, &disk).map(|mut client| {
                let first = client.write(0, &[1; 4096]);
                (first, client)
            })
        });
        let done = cluster.cli("a", &["disk", "delete", &name, "--confirm", &name]);
        match (done.status.code(), guest.join().expect("it does not panic")) {
            (Some(0), guest) => {
                deleted += 1;
                assert!(guest.is_err(), "round {round}: a client had the disk that was deleted");
            }
            (Some(3 | 5), guest) => {
                refused += 1;
                let (first, mut client) = guest.expect("whoever is told of has it");
                first.expect("it writes");
                assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]), "{}", said(&done));
            }
            (code, _) => panic!("{code:?}: {}", said(&done)),
        }
    }
    println!("{deleted} deleted, {refused} refused");
}
