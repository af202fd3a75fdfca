//! What happens at the ends: no space left, the largest disk, very many disks.

use super::host::{Shape, Site};
use super::nbd::errno::ENOSPC;
use super::tools::{text, wait_for};
use base::units::MIB;
use std::time::Instant;

/// Disks of one host, as the issue of scale asks for.
const DISKS: usize = 1000;

fn device_field(site: &Site, name: &str, field: &str) -> u64 {
    let devices = site.json(&["device", "list"]);
    let path = site.path(name);
    let device = devices
        .as_array()
        .expect("a list")
        .iter()
        .find(|device| device["path"] == text(&path))
        .unwrap_or_else(|| panic!("{name} is not in {devices}"));
    device[field].as_u64().expect("a number")
}

#[test]
fn a_full_device_refuses_new_space_alone() {
    let site = Site::new(&Shape::Two { size_mib: 96 });
    let server = site.start();
    site.ask(&["disk", "create", "first", "512MiB"]);
    let added = site.path("other");
    let add = ["device", "add", text(&added), "--file-size", "512MiB", "--log-size", "32MiB"];
    site.ask(&add);
    site.ask(&["disk", "create", "other", "64MiB", "--policy", "single,stripes=1"]);
    let shown = site.ask(&["disk", "show", "other"]);
    assert!(shown.contains(text(&added)), "the second disk stands on the roomier device: {shown}");

    let capacity = device_field(&site, "data", "capacity_bytes");
    let mut client = site.attach("first");
    let piece = |number: u64| vec![number as u8 + 1; MIB as usize];
    let mut written = 0;
    let error = loop {
        assert!(written * MIB <= capacity, "more was taken than the device has");
        match client.write(written * MIB, &piece(written)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, ENOSPC);
    assert!(written * MIB >= capacity - 4 * MIB, "{written} MiB of {capacity} bytes: full too early");

    // All that needs no new space goes on, and so do others.
    client.write(5 * MIB + 4096, &[200; 8192]).expect("overwriting needs no space");
    let read = client.read(5 * MIB, 16384).expect("reading goes on");
    assert_eq!([read[0], read[4096], read[12288]], [6, 200, 6]);
    assert_eq!(client.read(written * MIB, 4096).expect("a hole is readable"), [0; 4096]);
    let mut other = site.attach("other");
    other.write(0, &[9; 65536]).expect("another disk has its own space");
    assert_eq!(other.read(0, 65536).expect("it is readable"), [9; 65536]);

    client.trim(10 * MIB, 8 * MIB as u32).expect("trimming goes on");
    assert_eq!(client.read(10 * MIB, 4096).expect("a hole is readable"), [0; 4096]);
    wait_for("trimmed space comes back", 30, || client.write(written * MIB, &piece(written)).ok());
    drop((client, other));
    server.stop();

    let server = site.start();
    let mut client = site.attach("first");
    for number in (0..=written).filter(|number| !(10..18).contains(number) && *number != 5) {
        let read = client.read(number * MIB, MIB as u32).expect("it is readable");
        assert!(read == piece(number), "MiB {number} differs");
    }
    assert_eq!(client.read(10 * MIB, 4096).expect("a hole is readable"), [0; 4096]);
    server.stop();
}

#[test]
fn the_largest_disk_is_made_and_used_to_its_end() {
    let site = Site::new(&Shape::Two { size_mib: 2048 });
    let server = site.start();
    let size = 64u64 << 40;
    let begin = Instant::now();
    site.ask(&["disk", "create", "huge", "64TiB"]);
    println!("64 TiB created in {:.1} ms, command and all", begin.elapsed().as_secs_f64() * 1e3);
    let mut client = site.attach("huge");
    assert_eq!(client.size, size);
    let places = [0, (255 << 30) - 4096, 255 << 30, size / 2, size - 8192];
    for (number, offset) in places.into_iter().enumerate() {
        client.write(offset, &[number as u8 + 1; 8192]).expect("it is written");
    }
    drop(client);
    server.stop();
    let server = site.start();
    let mut client = site.attach("huge");
    for (number, offset) in places.into_iter().enumerate() {
        // The second and the third place overlap: the later one counts there.
        let read = client.read(offset, 4096).expect("it is readable");
        assert_eq!(read, [number as u8 + 1; 4096], "at {offset}");
    }
    assert_eq!(client.read(size / 4, 4096).expect("a hole is readable"), [0; 4096]);
    let begin = Instant::now();
    site.ask(&["disk", "delete", "huge", "--confirm", "huge", "--detach-clients"]);
    println!("and deleted in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    wait_for("its space comes back", 30, || (device_field(&site, "data", "used_bytes") == 0).then_some(()));
    server.stop();
}

#[test]
fn a_thousand_disks_are_made_served_found_again_and_deleted() {
    let site = Site::new(&Shape::Two { size_mib: 4096 });
    let server = site.start();
    let name = |number: usize| format!("disk{number:04}");
    let begin = Instant::now();
    for number in 0..DISKS {
        site.ask(&["disk", "create", &name(number), "1GiB"]);
    }
    println!("{DISKS} disks created in {:.1} s", begin.elapsed().as_secs_f64());
    let in_use: Vec<usize> = (0..DISKS).step_by(DISKS / 10).chain([DISKS - 1]).collect();
    let mut clients: Vec<_> = in_use.iter().map(|&number| site.attach(&name(number))).collect();
    for (client, number) in clients.iter_mut().zip(&in_use) {
        client.write(512, &(*number as u64).to_le_bytes().repeat(64)).expect("it is written");
    }
    drop(clients);
    server.stop();

    let begin = Instant::now();
    let server = site.start();
    println!("the host with {DISKS} disks starts in {:.2} s", begin.elapsed().as_secs_f64());
    let disks = site.json(&["disk", "list"]);
    let disks = disks.as_array().expect("a list");
    assert_eq!(disks.len(), DISKS);
    assert!(disks.iter().all(|disk| disk["unavailable"].is_null()), "all can be used");
    for &number in &in_use {
        let read = site.attach(&name(number)).read(512, 512).expect("it is readable");
        assert_eq!(read, (number as u64).to_le_bytes().repeat(64), "disk {number}");
    }
    let exports = super::tools::run("nbdinfo", &["--list", "--json", &site.uri("")]);
    assert_eq!(exports.matches("\"export-name\"").count(), DISKS, "a client can list them");
    for number in 0..DISKS {
        site.ask(&["disk", "delete", &name(number), "--confirm", &name(number)]);
    }
    assert_eq!(site.json(&["disk", "list"]), serde_json::json!([]));
    wait_for("their space comes back", 30, || (device_field(&site, "data", "used_bytes") == 0).then_some(()));
    server.stop();
}

/// At the limit of descriptors the engine tried to accept the same connection again and again: it took a whole processor,
/// wrote 21 MB of log a second, and `status` got no answer.
#[test]
fn clients_beyond_the_limit_of_descriptors_are_refused_and_all_else_goes_on() {
    use std::os::unix::net::UnixStream;
    let site = Site::new(&Shape::Two { size_mib: 96 });
    let server = site.start_limited((100, 600));
    site.ask(&["disk", "create", "web", "64MiB"]);
    let mut client = site.attach("web");
    let idle: Vec<UnixStream> =
        (0..700).map_while(|_| UnixStream::connect(site.path("d/nbd.sock")).ok()).collect();
    assert!(idle.len() > 400, "{} connections", idle.len());
    client.write(0, &[3; 4096]).expect("who is there is served");
    let status = site.json(&["status"]);
    assert!(status["disk_count"] == 1, "{status}");
    wait_for("it tells that connections are refused", 30, || {
        server.messages().contains("connections of clients are refused").then_some(())
    });
    let before = server.messages().len();
    // Each of them is a turn of the engine, which must not look at the door again.
    for _ in 0..1000 {
        client.read(0, 4096).expect("who is there is served");
    }
    assert!(server.messages().len() < before + 4096, "the log is not flooded: {}", server.messages());
    let told = server.messages().matches("connections of clients are refused").count();
    assert_eq!(told, 1, "{}", server.messages());
    drop(idle);
    wait_for("clients are let in again", 20, || {
        let mut again = super::nbd::Client::attach(&site.path("d/nbd.sock"), "web").ok()?;
        again.read(0, 4096).ok().filter(|read| *read == [3; 4096])
    });
    server.stop();
}
