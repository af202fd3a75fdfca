//! Images that come in and go out: which files are read for them, and that the bytes are the same.

use super::host::{Server, Shape, Site};
use super::members::{self, expect, free_port, init, login, remote};
use super::tools::{command, output, run, said, text, wait_for};
use ::etcd::testing::Members;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

const SECRET: &str = "root:secret-of-this-host";

fn site() -> (Site, Server) {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    (site, server)
}

fn secret(site: &Site) -> PathBuf {
    let path = site.path("secret");
    std::fs::write(&path, format!("{SECRET}\n").repeat(4096)).expect("room for a secret");
    path
}

/// Whether any disk has the secret.
fn leaks(site: &Site) -> bool {
    let disks = site.json(&["disk", "list"]);
    let names = disks.as_array().expect("disks").iter().map(|disk| disk["name"].as_str().expect("a name"));
    names.into_iter().any(|name| {
        let mut client = site.attach(name);
        let len = client.size.min(64 << 10);
        let read = client.read(0, len as u32).expect("it reads");
        String::from_utf8_lossy(&read).contains(SECRET)
    })
}

fn import(site: &Site, name: &str, file: &Path, more: &[&str]) -> Output {
    site.cli(&[&["disk", "import", name, text(file)], more].concat())
}

/// `disk import` had `qemu-img` find the format out and follow what an image names: a qcow2 that somebody sent could name any file
/// of the host as its backing file, its data file or an extent, and the guest of the new disk read that file. The same happened
/// with a raw disk on which a guest had written the header of such a qcow2.
#[test]
fn an_image_reads_no_other_file_of_the_host_unless_that_is_asked_for() {
    let (site, server) = site();
    let secret = secret(&site);
    let at = |name: &str| site.path(name);
    let create = |arguments: &[&str]| drop(run("qemu-img", &[&["create", "-q"], arguments].concat()));
    create(&["-f", "qcow2", "-b", text(&secret), "-F", "raw", text(&at("backed.qcow2"))]);
    expect(&import(&site, "one", &at("backed.qcow2"), &[]), 3, "it needs the backing file");
    // A data file: the image is made with one of its own, which is then replaced by the secret.
    let data = at("apart.raw");
    create(&[
        "-f",
        "qcow2",
        "-o",
        &format!("data_file={},data_file_raw=on", text(&data)),
        text(&at("apart.qcow2")),
        "64k",
    ]);
    std::fs::copy(&secret, &data).expect("the data file is replaced");
    expect(&import(&site, "two", &at("apart.qcow2"), &[]), 3, "its data are in another file");
    // A raw disk that begins like the first image. Its name or the option says that it is raw; a name that says nothing is refused.
    for name in ["guest.raw", "guest.img", "guest"] {
        std::fs::copy(at("backed.qcow2"), at(name)).expect("a copy");
    }
    expect(&import(&site, "three", &at("guest"), &[]), 2, "does not tell the format of the image");
    expect(&import(&site, "three", &at("guest.img"), &[]), 3, "looks like an image of format qcow2");
    expect(&import(&site, "three", &at("guest.raw"), &[]), 0, "three");
    expect(&import(&site, "four", &at("guest"), &["--format", "raw"]), 0, "four");
    // A descriptor of VMware that names a file as its extent.
    let sectors = std::fs::metadata(&secret).expect("it is there").len() / 512;
    let descriptor = format!(
        "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType=\"monolithicFlat\"\n\
         RW {sectors} FLAT \"{}\" 0\n",
        text(&secret)
    );
    std::fs::write(at("extent.vmdk"), descriptor).expect("room for a descriptor");
    expect(&import(&site, "five", &at("extent.vmdk"), &[]), 3, "names other files");
    create(&["-f", "vmdk", text(&at("base.vmdk")), "1M"]);
    create(&["-f", "vmdk", "-b", text(&at("base.vmdk")), "-F", "vmdk", text(&at("child.vmdk"))]);
    expect(&import(&site, "five", &at("child.vmdk"), &[]), 3, "it needs its parent");
    // A VHDX whose parameters say that it has a parent.
    create(&["-f", "vhdx", text(&at("whole.vhdx")), "4M"]);
    let mut bytes = std::fs::read(at("whole.vhdx")).expect("the image");
    let id = [0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b];
    let table = bytes.windows(8).position(|part| part == b"metadata").expect("its metadata");
    let item = table + bytes[table..].windows(16).position(|part| part == id).expect("its parameters");
    let offset = u32::from_le_bytes(bytes[item + 16..item + 20].try_into().expect("four bytes")) as usize;
    bytes[table + offset + 4] |= 2;
    std::fs::write(at("child.vhdx"), bytes).expect("room for an image");
    expect(&import(&site, "five", &at("child.vhdx"), &[]), 3, "needs its parent");
    assert!(!leaks(&site), "a file of the host is in a disk");
    // Whoever made the image himself may say so.
    expect(&import(&site, "six", &at("backed.qcow2"), &["--with-backing"]), 0, "six");
    assert!(leaks(&site), "this one was asked for");
    server.stop();
}

#[test]
fn whole_images_of_every_format_come_in_and_names_mean_nothing_but_files() {
    let (site, server) = site();
    let raw = site.path("pattern.raw");
    let pattern: Vec<u8> = (0..1u32 << 20).flat_map(|index| (index / 7).to_le_bytes()).collect();
    std::fs::write(&raw, &pattern).expect("room for an image");
    let images = [
        ("raw", "json:{\"driver\":\"null-co\"}.raw"),
        ("qcow2", "nbd:127.0.0.1:1.qcow2"),
        ("vmdk", "a,b:c.vmdk"),
        ("vhdx", "fat:x.vhdx"),
        ("vpc", "y.vhd"),
        ("vdi", "z.vdi"),
    ];
    for (format, name) in images {
        let image = site.path(name);
        run("qemu-img", &["convert", "-f", "raw", "-O", format, text(&raw), text(&image)]);
        // By the bare name: in the folder it could be taken for an address.
        let api = format!("unix:{}", text(&site.path("d/api.sock")));
        let done = output(
            command(super::host::PROGRAM)
                .current_dir(site.folder())
                .args(["--api", &api, "disk", "import", format, name]),
        );
        assert!(done.status.success(), "{format}: {}", said(&done));
        let read = site.attach(format).read(0, pattern.len() as u32).expect("it reads");
        assert!(read == pattern, "{format}: other bytes came in");
    }
    server.stop();
}

#[test]
fn a_raw_disk_that_begins_like_an_image_goes_out_and_comes_in_as_it_is() {
    let (site, server) = site();
    let magic = site.path("magic.qcow2");
    run("qemu-img", &["create", "-q", "-f", "qcow2", text(&magic), "64M"]);
    let head = std::fs::read(&magic).expect("the image");
    site.ask(&["disk", "create", "web", "4MiB"]);
    site.attach("web").write(0, &head[..64 << 10]).expect("it writes");
    let copy = site.path("copy.raw");
    site.ask(&["disk", "export", "web", text(&copy)]);
    site.ask(&["disk", "import", "again", text(&copy)]);
    let again = site.attach("again").read(0, 4 << 20).expect("it reads");
    let web = site.attach("web").read(0, 4 << 20).expect("it reads");
    assert!(again == web && web.starts_with(b"QFI\xfb"), "the copy has other bytes");
    server.stop();
}

/// A smaller image left what stood behind its end, which the guest of the new content then read.
#[test]
fn an_import_over_a_larger_disk_leaves_nothing_of_it_and_tells_who_did_it() {
    let (site, server) = site();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let mut client = site.attach("web");
    for mib in [0u64, 1, 2, 40, 63] {
        client.write(mib << 20, &vec![7; 1 << 20]).expect("it writes");
    }
    drop(client);
    wait_for("nobody has it", 30, || {
        (site.json(&["disk", "show", "web"])["client_count"] == 0).then_some(())
    });
    let image = site.path("small.raw");
    std::fs::write(&image, vec![9; (1 << 20) + 512]).expect("room for an image");
    expect(&import(&site, "web", &image, &[]), 3, "--confirm web");
    let done = site.json(&["disk", "import", "web", text(&image), "--confirm", "web"]);
    assert_eq!(done["allocated_bytes"], 2 << 20, "what stood behind is given back: {done}");
    let mut client = site.attach("web");
    assert_eq!(client.read(1 << 20, 1024), Ok([vec![9; 512], vec![0; 512]].concat()));
    for mib in [2u64, 40, 63] {
        assert_eq!(client.read(mib << 20, 4096), Ok(vec![0; 4096]), "at {mib} MiB");
    }
    let events = site.ask(&["--json", "events", "--kind", "disk.imported"]);
    let event: Value = serde_json::from_str(events.lines().next().expect("an event")).expect("JSON");
    let told = event["text"].as_str().expect("a text");
    assert!(told.contains(text(&image)) && told.contains("raw") && told.contains("1.0"), "{event}");
    assert_eq!(event["who"], "somebody on the host", "{event}");
    server.stop();
}

/// A person elsewhere was told the host's unix socket, which is not on their machine: `qemu-img` said `No such file`.
#[test]
fn a_person_elsewhere_imports_and_exports_by_the_network_or_is_told_what_to_do() {
    let etcd = Members::spawn(1);
    let port = free_port();
    let mut host = members::site(&etcd, "a", port);
    assert!(init(&host).status.success());
    let server = host.start();
    let ann = host.path("ann");
    login(&host, &ann, "ann", "operator");
    host.ask(&["disk", "create", "web", "4MiB", "--policy", "single"]);
    let (image, copy) = (host.path("in.raw"), host.path("out.raw"));
    std::fs::write(&image, vec![5; 4 << 20]).expect("room for an image");
    let export = ["disk", "export", "web", text(&copy)];
    // It serves NBD at its socket and at loopback alone.
    expect(&remote(port, &ann, &export), 3, "at no address that other machines reach");
    assert!(!copy.exists());
    server.stop();
    // What is served beyond loopback is encrypted; a test listens at loopback, and has it so by the configuration.
    host.add_config(
        "[tls]\ncertificate = \"d/identity/certificate.pem\"\nkey = \"d/identity/key.pem\"\n\
         client_authorities = \"d/identity/authorities.pem\"\nrequired = true\n",
    );
    let server = host.start();
    let import = ["disk", "import", "web", text(&image), "--confirm", "web"];
    expect(&remote(port, &ann, &import), 0, "web: 4 MiB");
    expect(&remote(port, &ann, &export), 0, "web: 4 MiB");
    assert!(std::fs::read(&copy).expect("the copy") == std::fs::read(&image).expect("the image"));
    let events = said(&host.cli(&["events", "--kind", "disk.imported"]));
    assert!(events.contains("operator ann"), "{events}");
    server.stop();
}
