//! Backups of what changed between snapshots: with our own files, with images on top of one another, and by what other programs ask over NBD.

use super::cluster::Cluster;
use super::host::{Shape, Site};
use super::tools::{run, said, text, wait_for};
use base::units::MIB;
use serde_json::Value;
use std::path::{Path, PathBuf};

const SIZE: u64 = 64 * MIB;

fn take(site: &Site, disk: &str, name: &str) {
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", disk, name]).status.success().then_some(())
    });
}

fn qemu_io(uri: &str, commands: &[&str]) {
    let mut all = vec!["-f", "raw"];
    commands.iter().for_each(|command| all.extend(["-c", *command]));
    all.push(uri);
    run("qemu-io", &all);
}

/// Exports something, and gives the file.
fn export(site: &Site, words: &[&str], file: &str) -> PathBuf {
    let path = site.path(file);
    let mut all = vec!["disk", "export", words[0], text(&path)];
    all.extend(&words[1..]);
    site.ask(&all);
    path
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("it can be read")
}

/// The runs that `nbdinfo` tells of a context, those of one state.
fn mapped(uri: &str, context: &str, state: u64) -> Vec<(u64, u64)> {
    let told = run("nbdinfo", &["--json", &format!("--map={context}"), uri]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let runs = told.as_array().expect("runs").iter().filter(|run| run["type"] == state);
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (offset, length) in runs.map(|run| (number(&run["offset"]), number(&run["length"]))) {
        match joined.last_mut() {
            Some(last) if last.0 + last.1 == offset => last.1 += length,
            _ => joined.push((offset, length)),
        }
    }
    joined
}

/// The runs that the command tells.
fn changes(answer: &Value) -> Vec<(u64, u64)> {
    let runs = answer["runs"].as_array().expect("runs").iter();
    runs.map(|run| (run["offset"].as_u64().expect("an offset"), run["length"].as_u64().expect("a length")))
        .collect()
}

/// A disk with four snapshots, and what was done in between.
fn history(site: &Site) {
    site.ask(&["disk", "create", "web", "64MiB"]);
    let web = site.uri("web");
    qemu_io(&web, &["write -P 1 0 8M", "write -P 2 20M 4M"]);
    take(site, "web", "sunday");
    qemu_io(&web, &["write -P 3 4k 4k", "write -P 4 1M 64k", "discard 20M 1M"]);
    take(site, "web", "monday");
    qemu_io(&web, &["write -P 5 4k 512", "write -z -u 2M 1M", "write -P 6 63M 1M"]);
    take(site, "web", "tuesday");
    qemu_io(&web, &["write -P 7 30M 3M", "write -P 1 1M 64k"]);
    take(site, "web", "wednesday");
    // What comes after the last snapshot is in none of them.
    qemu_io(&web, &["write -P 9 0 64M"]);
}

#[test]
fn a_full_backup_and_what_changed_since_restore_every_snapshot() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    history(&site);
    let names = ["sunday", "monday", "tuesday", "wednesday"];
    let whole = |name: &str| bytes_of(&export(&site, &[&format!("web@{name}")], &format!("{name}.raw")));
    let expected: Vec<Vec<u8>> = names.iter().map(|name| whole(name)).collect();
    assert!(expected[0][..8 << 20].iter().all(|byte| *byte == 1) && expected[0].len() as u64 == SIZE);
    assert!(expected.windows(2).all(|two| two[0] != two[1]));
    // Deltas, and images on top of one another.
    let full = export(&site, &["web@sunday", "--format", "qcow2"], "sunday.qcow2");
    let mut overlays = vec![full.clone()];
    let mut deltas: Vec<PathBuf> = Vec::new();
    for two in names.windows(2) {
        let name = format!("web@{}", two[1]);
        deltas.push(export(&site, &[&name, "--since", two[0]], &format!("{}.delta", two[1])));
        let backing = text(overlays.last().expect("one is there")).to_owned();
        let words = [&name, "--since", two[0], "--format", "qcow2", "--backing", &backing];
        overlays.push(export(&site, &words, &format!("{}.qcow2", two[1])));
    }
    let small = |path: &PathBuf| std::fs::metadata(path).expect("it is there").len() < 5 * MIB;
    assert!(deltas.iter().all(small) && overlays[1..].iter().all(small));
    for (overlay, expected) in overlays.iter().zip(&expected) {
        let flat = site.path("flat.raw");
        run("qemu-img", &["convert", "-O", "raw", text(overlay), text(&flat)]);
        assert!(bytes_of(&flat) == *expected, "{}", overlay.display());
    }
    // Restored by our program alone, point by point.
    site.ask(&["disk", "import", "restored", text(&full)]);
    let content = |file: &str| {
        let path = export(&site, &["restored"], file);
        let bytes = bytes_of(&path);
        std::fs::remove_file(path).expect("it can go");
        bytes
    };
    let apply = |delta: &Path| {
        site.cli(&["disk", "import", "restored", text(delta), "--apply", "--confirm", "restored"])
    };
    let early = apply(&deltas[1]);
    assert!(!early.status.success() && said(&early).contains("Nothing was changed"), "{}", said(&early));
    assert!(content("a.raw") == expected[0], "nothing was changed");
    for (delta, expected) in deltas.iter().zip(&expected[1..]) {
        // The second time it changes nothing: an apply that was interrupted can be repeated.
        for _ in 0..2 {
            let applied = apply(delta);
            assert!(applied.status.success(), "{}", said(&applied));
            assert!(content("a.raw") == *expected, "{}", delta.display());
        }
    }
    // A file that is cut off, or of which a byte is wrong, changes nothing.
    let cut = site.path("cut.delta");
    let whole = bytes_of(&deltas[0]);
    let mut wrong = whole.clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 1;
    for bytes in [&whole[..whole.len() - 1], &wrong] {
        std::fs::write(&cut, bytes).expect("it is written");
        let refused = apply(&cut);
        assert!(!refused.status.success() && said(&refused).contains("damaged"), "{}", said(&refused));
    }
    assert!(content("a.raw") == expected[3]);
    let unconfirmed = site.cli(&["disk", "import", "restored", text(&deltas[0]), "--apply"]);
    assert!(!unconfirmed.status.success());
    server.stop();
}

#[test]
fn clients_of_nbd_are_told_what_snapshots_hold_and_what_changed() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    history(&site);
    let check = || {
        let uri = |name: &str| site.uri(&format!("web@{name}"));
        let told = run("nbdinfo", &["--json", &uri("tuesday")]);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let contexts = ["base:allocation", "qemu:dirty-bitmap:sunday", "qemu:dirty-bitmap:monday"];
        assert_eq!(told["exports"][0]["contexts"], serde_json::json!(contexts));
        // The whole of a sector that was written in part; zeroes take no space, and are changes.
        let since_monday = [(4096, 4096), (2 * MIB, MIB), (63 * MIB, MIB)];
        assert_eq!(mapped(&uri("tuesday"), "qemu:dirty-bitmap:monday", 1), since_monday);
        let since_sunday = [(4096, 4096), (MIB, 64 << 10), (2 * MIB, MIB), (20 * MIB, MIB), (63 * MIB, MIB)];
        assert_eq!(mapped(&uri("tuesday"), "qemu:dirty-bitmap:sunday", 1), since_sunday);
        let allocated = [(0, 2 * MIB), (3 * MIB, 5 * MIB), (21 * MIB, 3 * MIB), (63 * MIB, MIB)];
        assert_eq!(mapped(&uri("tuesday"), "base:allocation", 0), allocated);
        let asked = |words: &[&str]| {
            let mut all = vec!["disk", "snapshot", "changes", "web", "tuesday"];
            all.extend(words);
            changes(&site.json(&all))
        };
        assert_eq!(asked(&["--since", "sunday"]), since_sunday);
        assert_eq!(asked(&[]), allocated);
    };
    check();
    server.stop();
    let server = site.start();
    check();
    for (words, why) in [
        (vec!["tuesday", "--since", "wednesday"], "is not older"),
        (vec!["friday"], "has no snapshot `friday`"),
        (vec!["tuesday", "--since", "friday"], "has no snapshot `friday`"),
    ] {
        let mut all = vec!["disk", "snapshot", "changes", "web"];
        all.extend(words);
        let refused = site.cli(&all);
        assert!(!refused.status.success() && said(&refused).contains(why), "{}", said(&refused));
    }
    // The snapshot in between goes: what changed over it is told all the same.
    site.ask(&["disk", "snapshot", "delete", "web", "monday", "--confirm", "monday"]);
    let both = mapped(&site.uri("web@tuesday"), "qemu:dirty-bitmap:sunday", 1);
    assert_eq!(both.iter().map(|run| run.1).sum::<u64>(), 3 * MIB + 4096 + (64 << 10));
    server.stop();
}

#[test]
fn what_changed_is_told_at_every_host_and_by_the_copies_that_were_there() {
    let cluster = Cluster::start(3);
    let hosts = cluster.mirrored("web", "64MiB");
    let take = |name: &str| {
        wait_for("the snapshot is taken", 60, || {
            cluster
                .cli(&hosts[0], &["disk", "snapshot", "create", "web", name])
                .status
                .success()
                .then_some(())
        });
    };
    let web = cluster.uri(&hosts[0], "web");
    qemu_io(&web, &["write -P 1 0 4M"]);
    take("one");
    qemu_io(&web, &["write -P 2 1M 1M"]);
    take("two");
    // A copy is away while a third is taken.
    cluster.order("kill", &hosts[1]);
    qemu_io(&web, &["write -P 3 10M 64k"]);
    take("three");
    cluster.order("start", &hosts[1]);
    cluster.wait_until_whole(&hosts[0], "web");
    for host in ["a", "b", "c"] {
        let map = |name: &str, since: &str| {
            mapped(&cluster.uri(host, &format!("web@{name}")), &format!("qemu:dirty-bitmap:{since}"), 1)
        };
        assert_eq!(map("two", "one"), [(MIB, MIB)], "host {host}");
        assert_eq!(map("three", "two"), [(10 * MIB, 64 << 10)], "host {host}");
        assert_eq!(map("three", "one"), [(MIB, MIB), (10 * MIB, 64 << 10)], "host {host}");
        let told = cluster.json(host, &["disk", "snapshot", "changes", "web", "three", "--since", "two"]);
        assert_eq!(changes(&told), [(10 * MIB, 64 << 10)], "host {host}");
    }
}

#[test]
fn a_schedule_leaves_a_snapshot_alone_while_a_disk_is_rolled_back_to_it() {
    let site = Site::new(&Shape::Two { size_mib: 256 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "16MiB", "--policy", "single,snapshots=hourly keep 1"]);
    let listed = || site.json(&["disk", "snapshot", "list", "web"]).as_array().expect("a list").clone();
    let first = wait_for("the schedule takes the first one", 60, || listed().first().cloned());
    let name = first["name"].as_str().expect("a name");
    assert_eq!((first["schedule"].as_str(), first["pinned"].as_bool()), (Some("hourly"), Some(false)));
    let mut client = site.attach("web");
    client.write(0, &[7; 4096]).expect("it is acknowledged");
    drop(client);
    wait_for("the client is gone", 30, || {
        site.cli(&["disk", "snapshot", "rollback", "web", name, "--confirm", "web"])
            .status
            .success()
            .then_some(())
    });
    assert_eq!(site.attach("web").read(0, 4096), Ok(vec![0; 4096]));
    let after = listed().into_iter().find(|one| one["name"] == name).expect("it stays");
    assert_eq!((after["schedule"].as_str(), after["pinned"].as_bool()), (Some("hourly"), Some(false)));
    server.stop();
}

#[test]
fn a_disk_is_rolled_back_to_a_snapshot_and_to_what_it_held_before() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    history(&site);
    let content = |name: &str, file: &str| bytes_of(&export(&site, &[name], file));
    let monday = content("web@monday", "monday.raw");
    let roll_back = |name: &str, words: &[&str]| {
        let mut all = vec!["disk", "snapshot", "rollback", "web", name];
        all.extend(words);
        site.cli(&all)
    };
    assert!(!roll_back("monday", &[]).status.success(), "it is not confirmed");
    assert!(!roll_back("friday", &["--confirm", "web"]).status.success());
    let client = site.attach("web");
    let refused = roll_back("monday", &["--confirm", "web"]);
    assert!(!refused.status.success() && said(&refused).contains("client"), "{}", said(&refused));
    drop(client);
    let done = wait_for("the client is gone", 30, || {
        let done = roll_back("monday", &["--confirm", "web", "--keep", "before"]);
        done.status.success().then(|| said(&done))
    });
    assert!(done.contains("is as it was in snapshot monday"), "{done}");
    assert!(content("web", "a.raw") == monday);
    let back = roll_back("before", &["--confirm", "web"]);
    assert!(back.status.success(), "{}", said(&back));
    assert!(content("web", "b.raw").iter().all(|byte| *byte == 9));
    assert!(content("web@monday", "c.raw") == monday);
    let listed = site.json(&["disk", "snapshot", "list", "web"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(6), "all stay, and two came: {listed}");
    server.stop();
}

/// The Python that Debian's libnbd is for.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";
/// What a backup program does with libnbd: it asks what is dirty since the snapshot before, and reads that.
const INCREMENT: &str = r#"
import nbd, sys
uri, bitmap, target = sys.argv[1:4]
context = "qemu:dirty-bitmap:" + bitmap
h = nbd.NBD()
h.add_meta_context(context)
h.connect_uri(uri)
assert h.can_meta_context(context)
extents = []
def told(name, offset, entries, error):
    assert name == context
    for i in range(0, len(entries), 2):
        extents.append((offset, entries[i], entries[i + 1]))
        offset += entries[i]
size, at = h.get_size(), 0
while at < size:
    extents.clear()
    h.block_status(min(size - at, 1 << 30), at, told)
    dirty = [one for one in extents if one[2] & 1]
    with open(target, "r+b") as f:
        for offset, length, flags in dirty:
            end = offset + length
            while offset < end:
                piece = min(end - offset, 1 << 20)
                f.seek(offset)
                f.write(h.pread(piece, offset))
                offset += piece
                print(piece)
    at = max(offset + length for offset, length, flags in extents)
h.shutdown()
"#;

/// The program virtnbdbackup needs libvirt, which has QEMU tell what is dirty; the same is told here over NBD, to the library that it uses.
#[test]
fn a_backup_program_with_libnbd_reads_increments_from_dirty_bitmaps() {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    history(&site);
    let (script, backup) = (site.path("increment.py"), site.path("backup.raw"));
    std::fs::write(&script, INCREMENT).expect("room for a file");
    let first = site.uri("web@sunday");
    run("nbdcopy", &["--allocated", &first, text(&backup)]);
    let is_same = |snapshot: &str| {
        let export = site.uri(&format!("web@{snapshot}"));
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", text(&backup), &export]);
    };
    is_same("sunday");
    for (since, snapshot) in [("sunday", "monday"), ("monday", "tuesday"), ("tuesday", "wednesday")] {
        let export = site.uri(&format!("web@{snapshot}"));
        let copied = run(SYSTEM_PYTHON, &[text(&script), &export, since, text(&backup)]);
        let bytes: u64 = copied.lines().filter_map(|line| line.parse::<u64>().ok()).sum();
        println!("{snapshot} since {since}: {bytes} bytes");
        assert!(bytes > 0 && bytes < 40 * MIB, "{bytes} bytes are no increment");
        is_same(snapshot);
    }
    // Restored into a new disk.
    site.ask(&["disk", "create", "restored", "64MiB"]);
    let restored = site.uri("restored");
    run("nbdcopy", &[text(&backup), &restored]);
    let last = site.uri("web@wednesday");
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &restored, &last]);
    server.stop();
}
