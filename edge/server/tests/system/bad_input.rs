//! What must be refused: each with its exit code and a message that names what was found.

use super::devices::{LoopDevice, Mount};
use super::host::{Shape, Site};
use super::tools::{run, run_as_root, said, sparse_file, text};
use base::units::MIB;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Exit codes, as `drystone --help` lists them.
const USAGE: i32 = 2;
const REFUSED: i32 = 3;
const NOT_FOUND: i32 = 4;
const CONFLICT: i32 = 5;
const UNREACHABLE: i32 = 6;

const SHAPE: Shape = Shape::Two { size_mib: 96 };

/// Where the format version stands in a superblock: behind the eight bytes of the magic number. See
/// `docs/formats/disk-group.md`.
const VERSION_OFFSET: u64 = 8;
/// The two copies of the superblock stand at 0 and at 4 KiB.
const SUPERBLOCKS: [u64; 2] = [0, 4096];

/// The server must refuse to start, with all of `parts` in what it says.
fn refuses(site: &Site, code: i32, parts: &[&str]) {
    let (found, message) = site.refused(&[]);
    assert_says(found, &message, code, parts);
}

/// The server starts without its device, and all of `parts` are in what it warns of.
fn starts_and_says(site: &Site, parts: &[&str]) {
    let server = site.start();
    let told = site.json(&["status"])["warnings"].to_string();
    assert_says(0, &told, 0, parts);
    server.stop();
}

/// The command line must refuse.
fn cli_refuses(site: &Site, arguments: &[&str], code: i32, parts: &[&str]) {
    let done = site.cli(arguments);
    assert_says(done.status.code().expect("it exits"), &said(&done), code, parts);
}

fn assert_says(found: i32, message: &str, code: i32, parts: &[&str]) {
    assert!(!message.contains("panicked"), "{message}");
    assert_eq!(found, code, "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// A datastore whose one device is `device`, to be formatted if it is blank.
fn site_on(device: &Path) -> Site {
    let mut site = Site::bare();
    site.add_config(&format!(
        "[[group]]\nlog = \"{}\"\nlog_size = \"32MiB\"\ncreate = \"if-blank\"\n",
        text(device)
    ));
    site
}

/// A folder for device files, beside a datastore's own.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder")
}

fn bytes_at(path: &Path, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let file = File::open(path).expect("the file is there");
    file.read_exact_at(&mut bytes, offset).expect("the file is long enough");
    bytes
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("the file is there");
    file.write_all_at(bytes, offset).expect("room in the file");
}

#[test]
fn a_device_of_a_running_server_is_refused_to_another() {
    let folder = folder();
    let device = folder.path().join("device");
    sparse_file(&device, 128 * MIB);
    let first = site_on(&device);
    let server = first.start();
    refuses(&site_on(&device), REFUSED, &[text(&device), "in use by another Drystone server"]);
    server.stop();
}

#[test]
fn two_servers_on_one_datastore_are_refused() {
    let site = Site::new(&SHAPE);
    let server = site.start();
    let id = server.id().to_string();
    refuses(&site, REFUSED, &["a server is running on it already", &id]);
    site.ask(&["status"]);
    server.stop();
}

#[test]
fn a_device_of_another_cluster_is_refused_even_by_force() {
    let folder = folder();
    let device = folder.path().join("device");
    sparse_file(&device, 128 * MIB);
    site_on(&device).start().stop();
    let other = Site::new(&SHAPE);
    let server = other.start();
    let add = ["device", "add", text(&device), "--force"];
    cli_refuses(&other, &add, REFUSED, &[text(&device), "belongs to another cluster"]);
    server.stop();
}

#[test]
fn a_mounted_device_is_refused_even_by_force_and_left_as_it_was() {
    let folder = folder();
    let file = folder.path().join("file");
    sparse_file(&file, 128 * MIB);
    let device = LoopDevice::attach(&file, &[]);
    run_as_root("mkfs.ext4", &["-q", text(&device.path)]);
    let mount = Mount::new(&device.path, folder.path().join("mounted"));
    let site = site_on(&device.path);
    for options in [&[][..], &["--force"]] {
        let (code, message) = site.refused(options);
        assert_says(code, &message, REFUSED, &[text(&device.path), "in use", "mounted"]);
    }
    mount.unmount();
    run_as_root("fsck.ext4", &["-fn", text(&device.path)]);
}

#[test]
fn a_foreign_device_is_taken_only_by_force() {
    let folder = folder();
    let device = folder.path().join("device");
    sparse_file(&device, 128 * MIB);
    run("mkfs.ext4", &["-q", text(&device)]);
    let before = std::fs::read(&device).expect("the file is there");
    let site = site_on(&device);
    refuses(&site, REFUSED, &[text(&device), "not blank", "--force"]);
    assert!(std::fs::read(&device).expect("the file is there") == before, "it was touched");
    site.start_with(&["--force"]).stop();
}

#[test]
fn a_device_is_never_formatted_unless_the_configuration_says_so() {
    let folder = folder();
    let device = folder.path().join("device");
    sparse_file(&device, 128 * MIB);
    let mut site = Site::bare();
    site.add_config(&format!("[[group]]\nlog = \"{}\"\n", text(&device)));
    refuses(&site, REFUSED, &[text(&device), "holds no datastore"]);
    assert!(bytes_at(&device, 0, 8192).iter().all(|&byte| byte == 0), "it was touched");
}

#[test]
fn a_device_that_is_too_small_is_refused() {
    let folder = folder();
    let device = folder.path().join("device");
    for size in [0, 4096, 63 * MIB] {
        sparse_file(&device, size);
        refuses(&site_on(&device), REFUSED, &[text(&device), "too small", "64 MiB"]);
    }
}

#[test]
fn a_read_only_device_is_refused() {
    let folder = folder();
    let file = folder.path().join("file");
    sparse_file(&file, 128 * MIB);
    let device = LoopDevice::attach(&file, &["--read-only"]);
    refuses(&site_on(&device.path), REFUSED, &[text(&device.path), "read-only"]);
}

#[test]
fn what_is_no_device_is_refused() {
    let folder = folder();
    refuses(&site_on(folder.path()), REFUSED, &["neither a block device nor a regular file"]);
}

#[test]
fn a_vanished_device_is_named_and_is_taken_back_when_it_returns() {
    let site = Site::new(&SHAPE);
    let server = site.start();
    site.ask(&["disk", "create", "web", "32MiB"]);
    site.attach("web").write(0, &[7; 4096]).expect("it is written");
    server.stop();
    for name in ["data", "log"] {
        std::fs::rename(site.path(name), site.path("elsewhere")).expect("it was there");
        starts_and_says(&site, &[text(&site.path(name)), "not there", "device replace"]);
        assert!(!site.path(name).exists(), "a lost device was replaced by a new one");
        std::fs::rename(site.path("elsewhere"), site.path(name)).expect("it was there");
    }
    let server = site.start();
    assert_eq!(site.attach("web").read(0, 4096).expect("it is readable"), [7; 4096]);
    server.stop();
}

#[test]
fn a_newer_format_is_not_used_and_left_as_it_is_even_by_force() {
    let site = Site::new(&SHAPE);
    site.start().stop();
    for copy in SUPERBLOCKS {
        overwrite(&site.path("data"), copy + VERSION_OFFSET, &[200]);
    }
    let before = bytes_at(&site.path("data"), 0, 8192);
    for options in [&[][..], &["--force"]] {
        let server = site.start_with(options);
        let told = site.json(&["status"])["warnings"].to_string();
        assert_says(0, &told, 0, &["data", "format version 200", "newer Drystone"]);
        server.stop();
    }
    assert!(bytes_at(&site.path("data"), 0, 8192) == before, "it was touched");
}

#[test]
fn one_damaged_superblock_copy_is_survived_and_two_take_the_device_out() {
    let site = Site::new(&SHAPE);
    let server = site.start();
    site.ask(&["disk", "create", "web", "32MiB"]);
    site.attach("web").write(0, &[7; 4096]).expect("it is written");
    server.stop();
    let path = site.path("data");
    let whole = SUPERBLOCKS.map(|copy| bytes_at(&path, copy, 4096));
    for (copy, bytes) in SUPERBLOCKS.into_iter().zip(&whole) {
        overwrite(&path, copy + 100, &[bytes[100] ^ 1]);
        let server = site.start();
        assert_eq!(site.attach("web").read(0, 4096).expect("it is readable"), [7; 4096]);
        server.stop();
        overwrite(&path, copy, bytes);
    }
    for (copy, bytes) in SUPERBLOCKS.into_iter().zip(&whole) {
        overwrite(&path, copy + 100, &[bytes[100] ^ 1]);
    }
    starts_and_says(&site, &["data", "damaged"]);
    for (copy, bytes) in SUPERBLOCKS.into_iter().zip(&whole) {
        overwrite(&path, copy, bytes);
    }
    let server = site.start();
    assert_eq!(site.attach("web").read(0, 4096).expect("it is readable"), [7; 4096]);
    server.stop();
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let mut site = Site::new(&SHAPE);
    let usual = site.config().to_owned();
    for (config, parts) in [
        (format!("colour = 1\n{usual}"), &["colour", "unknown"][..]),
        (usual.replace("log_size", "log_sise"), &["log_sise", "unknown"]),
        (usual.replace("log_size = \"32MiB\"", "log_size = \"many\""), &["many"]),
        (usual.replace("data_dir = \"d\"", ""), &["data_dir"]),
        (usual.replace("[\"data\"]", "[\"log\"]"), &["named twice"]),
        ("= = =".to_owned(), &["host.toml"]),
    ] {
        site.set_config(&config);
        refuses(&site, USAGE, parts);
    }
    // It makes sense, but not here: there is no certificate.
    site.set_config(&usual.replace("\"unix:nbd.sock\"", "\"0.0.0.0:10809\""));
    refuses(&site, REFUSED, &["0.0.0.0:10809", "certificate"]);
    assert!(!site.path("log").exists(), "nothing is made before all makes sense");
}

#[test]
fn requests_for_disks_that_make_no_sense_are_refused() {
    let site = Site::new(&SHAPE);
    cli_refuses(&site, &["disk", "list"], UNREACHABLE, &["api.sock"]);
    let server = site.start();
    site.ask(&["disk", "create", "web", "32MiB"]);
    site.ask(&["disk", "create", "mail", "32MiB"]);
    for (arguments, code, parts) in [
        (&["disk", "create", "web", "32MiB"][..], CONFLICT, &["there is a disk `web` already"][..]),
        (&["disk", "rename", "mail", "web"], CONFLICT, &["web"]),
        (&["disk", "create", "odd", "1000"], USAGE, &["multiples of 512"]),
        (&["disk", "create", "none", "0"], USAGE, &["multiples of 512"]),
        (&["disk", "create", "huge", "65TiB"], USAGE, &["64 TiB"]),
        (&["disk", "create", "what", "many"], USAGE, &["many"]),
        (&["disk", "create", "a/b", "1MiB"], USAGE, &["a/b"]),
        (&["disk", "create", "p", "1MiB", "--policy", "gold"], NOT_FOUND, &["gold"]),
        (&["disk", "create", "p", "1MiB", "--policy", "default"], REFUSED, &["failures_to_tolerate"]),
        (&["disk", "create", "p", "1MiB", "--policy", "single,method=parity"], REFUSED, &["method"]),
        (&["disk", "show", "nowhere"], NOT_FOUND, &["there is no disk `nowhere`"]),
        (&["disk", "delete", "nowhere", "--confirm", "nowhere"], NOT_FOUND, &["nowhere"]),
        (&["disk", "delete", "web"], REFUSED, &["--confirm web"]),
        (&["disk", "delete", "web", "--confirm", "mail"], REFUSED, &["`mail` is not the name"]),
        (&["disk", "resize", "web", "16MiB"], REFUSED, &["--confirm web"]),
        (&["disk", "resize", "web", "16MiB", "--confirm", "mail"], REFUSED, &["not the name"]),
        (&["disk", "resize", "web", "33554433"], USAGE, &["multiples of 512"]),
        (&["device", "remove", text(&site.path("data"))], REFUSED, &["has components of", "disk export"]),
        (&["device", "remove", "/dev/nothing"], NOT_FOUND, &["/dev/nothing"]),
        (&["device", "add", "/dev/nothing-of-this-name"], REFUSED, &["not there"]),
    ] {
        cli_refuses(&site, arguments, code, parts);
    }
    let attached = super::nbd::Client::attach(&site.path("d/nbd.sock"), "nowhere");
    let error = attached.expect_err("there is no such export").to_string();
    assert!(error.contains("there is no disk of that name"), "{error}");
    let names: Vec<String> = site
        .json(&["disk", "list"])
        .as_array()
        .expect("a list")
        .iter()
        .map(|disk| disk["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names, ["mail", "web"], "nothing was changed");
    server.stop();
}
