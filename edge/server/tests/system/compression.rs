//! Compression of disks: by the policy, while they are used.

use super::host::{Shape, Site};
use super::tools::{run, text, wait_for};
use base::units::MIB;

/// The sum of a metric over all disk groups.
fn metric(site: &Site, name: &str) -> f64 {
    let metrics = site.metrics();
    let values = metrics.lines().filter(|line| line.starts_with(name));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn a_disk_takes_less_space_once_its_policy_compresses_it_and_reads_as_it_was_written() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "256MiB", "--policy", "single,compression=lz4"]);
    let uri = format!("nbd+unix:///web?socket={}", text(&site.path("d/nbd.sock")));
    let qemu_io = |commands: &[&str]| {
        let mut all = vec!["-f", "raw"];
        commands.iter().for_each(|command| all.extend(["-c", *command]));
        all.push(&uri);
        run("qemu-io", &all)
    };
    // The group is converted in the first seconds, and the component is told then.
    qemu_io(&["write -P 1 0 4M"]);
    let mut turn = 0;
    wait_for("blocks are compressed", 60, || {
        turn += 1;
        let pattern = format!("write -P {} 8M 48M", 2 + turn % 200);
        qemu_io(&[&pattern]);
        (metric(&site, "drystone_packed_bytes_total") > 0.0).then_some(())
    });
    qemu_io(&["write -P 0xa1 0 64M", "write -P 0xa2 64M 64M", "write -P 0xa3 128M 64M"]);
    let (before, after) =
        (metric(&site, "drystone_compressed_bytes_total"), metric(&site, "drystone_packed_bytes_total"));
    assert!(before >= 7.0 * after, "{before} bytes became {after}");
    let shown = site.json(&["disk", "set", "web", "compression=zstd"]);
    assert_eq!(shown["rules"]["compression"], "zstd");
    qemu_io(&["write -P 0xa4 192M 64M", "write -P 0xa5 1M 4k", "discard 2M 1M"]);
    let check = || {
        qemu_io(&["read -P 0xa1 0 1M", "read -P 0xa5 1M 4k", "read -P 0xa1 1028k 1020k", "read -P 0 2M 1M"]);
        qemu_io(&["read -P 0xa1 3M 61M", "read -P 0xa2 64M 64M", "read -P 0xa3 128M 64M"]);
        qemu_io(&["read -P 0xa4 192M 64M"]);
    };
    check();
    server.stop();
    let server = site.start();
    check();
    let used: u64 = site
        .json(&["device", "list"])
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|device| device["used_bytes"].as_u64())
        .sum();
    assert!(used < 160 * MIB, "256 MiB take {} MiB", used / MIB);
    let refused = site.cli(&["disk", "set", "web", "compression=best"]);
    assert!(!refused.status.success());
    site.ask(&["disk", "set", "web", "compression=off"]);
    check();
    server.stop();
}

#[test]
fn what_was_written_before_a_disk_was_compressed_takes_less_space_once_it_is_written_anew() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "128MiB", "--policy", "single"]);
    let uri = format!("nbd+unix:///web?socket={}", text(&site.path("d/nbd.sock")));
    let qemu_io = |commands: &[&str]| {
        let mut all = vec!["-f", "raw"];
        commands.iter().for_each(|command| all.extend(["-c", *command]));
        all.push(&uri);
        run("qemu-io", &all)
    };
    qemu_io(&["write -P 0xb1 0 32M", "write -P 0xb2 32M 64M", "write -P 0xb3 5M 4k", "discard 7M 1M"]);
    let used = || -> u64 {
        let devices = site.json(&["device", "list"]);
        devices.as_array().expect("a list").iter().filter_map(|device| device["used_bytes"].as_u64()).sum()
    };
    wait_for("all stands in extents", 30, || (used() >= 95 * MIB).then_some(()));
    let refused = site.cli(&["disk", "rewrite", "web"]);
    assert!(!refused.status.success(), "it is not compressed");
    site.ask(&["disk", "snapshot", "create", "web", "before"]);
    qemu_io(&["write -P 0xb4 40M 1M"]);
    site.ask(&["disk", "set", "web", "compression=lz4"]);
    // The component is told in the first seconds.
    wait_for("what stands there is written anew", 120, || {
        let begun = site.cli(&["--json", "disk", "rewrite", "web"]);
        assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
        std::thread::sleep(std::time::Duration::from_secs(3));
        let shown = site.json(&["disk", "show", "web"]);
        let compressed = shown["compressed"]["compressed_bytes"].as_u64().unwrap_or_default();
        (compressed > 80 * MIB).then_some(())
    });
    let shown = site.json(&["disk", "show", "web"]);
    assert!(shown["compressed"]["ratio"].as_f64().is_some_and(|ratio| ratio > 6.0), "{shown}");
    let check = || {
        qemu_io(&["read -P 0xb1 0 5M", "read -P 0xb3 5M 4k", "read -P 0xb1 5124k 1020k", "read -P 0 7M 1M"]);
        qemu_io(&["read -P 0xb2 32M 8M", "read -P 0xb4 40M 1M", "read -P 0xb2 41M 55M"]);
        let view = uri.replace("///web?", "///web@before?");
        run("qemu-io", &["-r", "-f", "raw", "-c", "read -P 0xb2 32M 64M", "-c", "read -P 0xb1 0 5M", &view]);
    };
    check();
    wait_for("the space comes back", 60, || (used() <= 40 * MIB).then_some(()));
    server.stop();
    let server = site.start();
    check();
    server.stop();
}
