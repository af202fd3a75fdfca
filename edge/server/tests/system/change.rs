//! Disks of a cluster that get another name, access or size, from any host, whatever is away meanwhile; and what is said of
//! their holes.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::repair::{stamped, third};
use super::tools::{command, run, said, text, wait_for};
use base::units::{GIB, MIB};
use serde_json::Value;
use std::process::{Child, Stdio};

/// Error numbers of the protocol.
const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

impl Cluster {
    fn resize(&self, at: &str, disk: &str, size: &str) {
        self.json(at, &["disk", "resize", disk, size, "--confirm", disk]);
    }

    /// Makes a disk smaller once the clients that left it are gone.
    fn resize_unused(&self, at: &str, disk: &str, size: &str) {
        wait_for("nobody uses the disk", SECONDS, || {
            self.cli(at, &["disk", "resize", disk, size, "--confirm", disk]).status.success().then_some(())
        });
    }

    /// Waits until a client that attaches at a host sees that size.
    fn wait_for_size(&self, host: &str, disk: &str, size: u64) {
        wait_for(&format!("{disk} has {size} bytes at {host}"), SECONDS, || {
            (self.attach_soon(host, disk).size == size).then_some(())
        });
    }

    /// Asks a host's API for another size, and does not wait for the answer.
    fn begin_resize(&self, host: &str, disk: &str, size: u64) -> Child {
        let mut curl = command("curl");
        curl.args(["-sS", "--unix-socket", text(&self.path(host).join("d/api.sock")), "-X", "PATCH"]);
        curl.args(["-H", "content-type: application/json", "-d"]);
        curl.arg(format!("{{\"size\": {size}, \"confirm\": \"{disk}\", \"detach_clients\": true}}"));
        curl.arg(format!("http://localhost/api/v1/disks/{disk}"));
        curl.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("curl, of the Debian package curl")
    }

    /// Runs of a disk as a client at a host sees them: where, how long, and whether it is a hole.
    fn map(&self, host: &str, disk: &str) -> Vec<(u64, u64, bool)> {
        let found = run("nbdinfo", &["--json", "--map", &self.uri(host, disk)]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let number = |one: &Value, key: &str| one[key].as_u64().expect("a number");
        let run = |one: &Value| (number(one, "offset"), number(one, "length"), number(one, "type") != 0);
        found.as_array().expect("runs").iter().map(run).collect()
    }
}

#[test]
fn a_disk_is_changed_from_a_host_that_does_not_own_it_under_load() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, other, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    cluster.wait_for_owner("web", user);
    client.write(48 * MIB, &stamped(1)).expect("it writes");
    let load = verified_load(&cluster.uri(user, "web"), 12);
    cluster.wait_for_load(user, "web"); // By a name that the disk has for a moment still.
    cluster.json(third, &["disk", "rename", "web", "site"]);
    let taken = cluster.cli(other, &["disk", "create", "site", "1GiB"]);
    assert_eq!(taken.status.code(), Some(5), "{}", said(&taken));
    drop(cluster.mirrored("web", "64MiB"));
    let taken = cluster.cli(third, &["disk", "rename", "web", "site"]);
    assert_eq!(taken.status.code(), Some(5), "{}", said(&taken));

    cluster.resize(third, "site", "128MiB");
    for host in ["a", "b", "c"] {
        cluster.wait_for_size(host, "site", 128 * MIB);
    }
    let mut far = cluster.attach(third, "site");
    far.write(120 * MIB, &stamped(2)).expect("the new part can be written");
    assert!(cluster.attach(user, "site").read(120 * MIB, 4096) == Ok(stamped(2)));
    assert!(far.read(48 * MIB, 4096) == Ok(stamped(1)));

    let refused = cluster.cli(third, &["disk", "resize", "site", "40MiB"]);
    assert_eq!(refused.status.code(), Some(3), "it destroys data: {}", said(&refused));
    // Nor is it done while clients have the disk.
    let refused = cluster.cli(third, &["disk", "resize", "site", "40MiB", "--confirm", "site"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("disk site is in use"), "{}", said(&refused));
    assert_verified(load);
    drop((client, far));
    cluster.resize_unused(third, "site", "40MiB");
    for host in ["a", "b", "c"] {
        cluster.wait_for_size(host, "site", 40 * MIB);
    }
    let (mut client, mut far) = (cluster.attach(user, "site"), cluster.attach(third, "site"));
    for client in [&mut client, &mut far] {
        assert_eq!(client.read(48 * MIB, 4096), Err(EINVAL));
        assert_eq!(client.write(48 * MIB, &stamped(3)), Err(ENOSPC));
        assert!(client.read(40 * MIB - 4096, 4096).is_ok());
    }
    let mut load = verified_load(&cluster.uri(user, "site"), 15);
    let shown = cluster.json(user, &["disk", "show", "site"]);
    assert_eq!(
        (&shown["debts"], shown["size"].as_u64()),
        (&Value::Array(Vec::new()), Some(40 * MIB)),
        "{shown}"
    );
    wait_for("the space is given back", SECONDS, || {
        let shown = cluster.json(user, &["disk", "show", "site"]);
        shown["under_way"].is_null().then_some(())
    });
    // It once came back when nobody wrote any more.
    assert!(load.try_wait().expect("it is our child").is_none(), "while guests write before the end");
    // What was there does not come back.
    cluster.resize(other, "site", "128MiB");
    cluster.wait_for_size(third, "site", 128 * MIB);
    assert_eq!(far.read(48 * MIB, 4096), Ok(vec![0; 4096]));
    let mut far = cluster.attach(third, "site");
    assert_eq!(far.read(120 * MIB, 4096), Ok(vec![0; 4096]));
    assert_verified(load);

    cluster.json(third, &["disk", "set", "site", "read-only", "on"]);
    wait_for("the owner's host has heard of it", SECONDS, || {
        (client.write(0, &stamped(4)) == Err(EPERM)).then_some(())
    });
    cluster.json(third, &["disk", "set", "site", "read-only", "off"]);
    wait_for("the owner's host has heard of it", SECONDS, || client.write(0, &stamped(4)).ok());
    far.write(60 * MIB, &stamped(5)).expect("it writes");
    // Each copy alone has it all.
    cluster.wait_until_whole(user, "site");
    cluster.order("kill", other);
    assert!(far.read(60 * MIB, 4096) == Ok(stamped(5)));
    cluster.order("start", other);
    cluster.wait_until_whole(third, "site");
    drop(client);
    cluster.order("kill", user);
    let mut far = cluster.attach(third, "site");
    for (offset, expected) in [(0, stamped(4)), (48, vec![0; 4096]), (60, stamped(5)), (120, vec![0; 4096])] {
        assert!(far.read(offset * MIB, 4096) == Ok(expected), "at {offset} MiB");
    }
}

#[test]
fn a_disk_grows_while_a_copy_is_away_that_has_all_of_it_when_it_returns() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, away, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(third, "web");
    client.write(32 * MIB, &stamped(1)).expect("it writes");
    cluster.order("kill", away);
    cluster.resize(third, "web", "128MiB");
    cluster.wait_for_size(third, "web", 128 * MIB);
    drop(client);
    let mut client = cluster.attach(third, "web");
    client.write(100 * MIB, &stamped(2)).expect("one copy is enough");
    // It shrinks and grows again, too: what it was trimmed of is trimmed on the copy that is away.
    drop(client);
    cluster.resize_unused(third, "web", "16MiB");
    cluster.resize(third, "web", "160MiB");
    cluster.wait_for_size(third, "web", 160 * MIB);
    let mut client = cluster.attach(third, "web");
    client.write(150 * MIB, &stamped(3)).expect("it writes");
    cluster.order("start", away);
    cluster.attach_soon(away, "web");
    cluster.wait_until_whole(third, "web");
    for gone in [user, away] {
        cluster.order("kill", gone);
        let zero = vec![0; 4096];
        for (offset, expected) in [(32, &zero), (100, &zero), (150, &stamped(3)), (159, &zero)] {
            assert!(
                client.read(offset * MIB, 4096).as_ref() == Ok(expected),
                "without {gone}, at {offset} MiB"
            );
        }
        cluster.order("start", gone);
        cluster.attach_soon(gone, "web");
        cluster.wait_until_whole(third, "web");
    }
}

#[test]
fn a_disk_that_grows_by_another_part_is_used_meanwhile() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "200GiB");
    let (user, third) = (holders[0].as_str(), third(&holders));
    let load = verified_load(&cluster.uri(user, "web"), 8);
    cluster.resize(third, "web", "300GiB");
    cluster.wait_for_size(third, "web", 300 * GIB);
    let mut client = cluster.attach(third, "web");
    client.write(280 * GIB, &stamped(1)).expect("the new part can be written");
    client.write(100 * GIB, &stamped(2)).expect("the old one, too");
    assert_verified(load);
    let shown = cluster.json(user, &["disk", "show", "web"]);
    assert_eq!(shown["components"].as_array().map(Vec::len), Some(4), "{shown}");
    for host in [user, third] {
        let mut client = cluster.attach(host, "web");
        assert!(client.read(280 * GIB, 4096) == Ok(stamped(1)), "at {host}");
        assert!(client.read(100 * GIB, 4096) == Ok(stamped(2)), "at {host}");
        assert_eq!(client.read(299 * GIB, 4096), Ok(vec![0; 4096]));
    }
}

#[test]
fn what_a_host_that_ends_has_begun_is_ended_by_others() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "64MiB");
    let (user, paused, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    cluster.wait_for_owner("web", user);
    client.write(48 * MIB, &stamped(1)).expect("it writes");
    // The growth waits for the copy that stands still when its host ends.
    cluster.order("pause", paused);
    let mut growth = cluster.begin_resize(third, "web", 128 * MIB);
    wait_for("the record says that it grows", SECONDS, || {
        let shown = cluster.json(user, &["disk", "show", "web"]);
        shown["under_way"].as_str().is_some_and(|text| text.contains("it grows to 128 MiB")).then_some(())
    });
    cluster.order("kill", third);
    let _ = growth.wait();
    cluster.order("start", paused);
    cluster.wait_for_size(user, "web", 128 * MIB);
    cluster.order("start", third);
    cluster.attach_soon(third, "web");
    // Clients are served a moment before people are.
    wait_for("it answers", SECONDS, || cluster.cli(third, &["status"]).status.success().then_some(()));
    cluster.wait_until_whole(user, "web");
    client.write(127 * MIB, &stamped(2)).expect("it writes");

    // The owner's host ends while it gives back.
    let mut shrinking = cluster.begin_resize(third, "web", 16 * MIB);
    wait_for("the record says so", SECONDS, || {
        (cluster.json(third, &["disk", "show", "web"])["size"] == 16 * MIB).then_some(())
    });
    cluster.order("kill", user);
    let _ = shrinking.wait();
    wait_for("it has given back and grows again", SECONDS, || {
        cluster.cli(third, &["disk", "resize", "web", "128MiB"]).status.success().then_some(())
    });
    cluster.wait_for_size(third, "web", 128 * MIB);
    let mut client = cluster.attach(third, "web");
    for offset in [48 * MIB, 127 * MIB] {
        assert_eq!(client.read(offset, 4096), Ok(vec![0; 4096]));
    }
}

#[test]
fn holes_are_told_where_the_owner_has_no_copy_of_its_own() {
    let cluster = Cluster::start(3);
    let holders = cluster.mirrored("web", "512MiB");
    let third = third(&holders);
    let mut client = cluster.attach(third, "web");
    cluster.wait_for_owner("web", third);
    client.write(300 * MIB, &stamped(1)).expect("it writes");
    let data: Vec<u8> = (0..256).flat_map(stamped).collect();
    client.write(16 * MIB, &data).expect("it writes");
    let expected = [
        (0, 16 * MIB, true),
        (16 * MIB, MIB, false),
        (17 * MIB, 283 * MIB, true),
        (300 * MIB, 4096, false),
        (300 * MIB + 4096, 212 * MIB - 4096, true),
    ];
    for host in [third, holders[0].as_str()] {
        assert_eq!(cluster.map(host, "web"), expected, "at {host}");
    }
    client.trim(16 * MIB, MIB as u32).expect("it trims");
    wait_for("the trim is told", SECONDS, || (cluster.map(third, "web")[0].1 == 300 * MIB).then_some(()));
    // As long as one copy can be asked.
    cluster.order("kill", &holders[0]);
    assert_eq!(cluster.map(third, "web")[0], (0, 300 * MIB, true));
}
