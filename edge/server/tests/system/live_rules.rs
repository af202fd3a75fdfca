//! Rules of disks that guests use: limits as fio sees them, changes on the fly, named policies that disks follow, compliance.

use super::cluster::{Cluster, SECONDS, assert_verified, verified_load};
use super::host::{Shape, Site};
use super::members::expect;
use super::tools::{command, said, wait_for};
use serde_json::Value;
use std::process::{Child, Stdio};

/// fio with random I/Os of a size on a disk, for so many seconds.
fn fio(uri: &str, rw: &str, block: &str, seconds: u64) -> Child {
    let mut fio = command("fio");
    fio.args(["--name=load", "--ioengine=nbd", "--iodepth=32", "--size=32m", "--time_based"]);
    fio.args(["--output-format=json", &format!("--rw={rw}"), &format!("--bs={block}")]);
    fio.args([&format!("--runtime={seconds}"), &format!("--uri={uri}")]);
    fio.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("fio, of the Debian package fio")
}

/// The I/Os a second that it did.
fn iops(load: Child) -> f64 {
    let done = load.wait_with_output().expect("it is our child");
    let told = String::from_utf8_lossy(&done.stdout);
    let json = told.find('{').map_or("", |start| &told[start..]);
    let told: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{}", said(&done)));
    let job = &told["jobs"][0];
    let of = |side: &str| job[side]["iops"].as_f64().expect("a figure");
    of("read") + of("write")
}

#[track_caller]
fn assert_near(found: f64, wanted: f64, percent: f64) {
    assert!((found / wanted - 1.0).abs() * 100.0 <= percent, "{found:.1}, not {wanted} within {percent} %");
}

#[test]
fn a_limit_holds_within_two_percent_for_small_and_large_requests_and_a_neighbour_does_not_feel_it() {
    let site = Site::in_memory(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB", "--policy", "single,iops_limit=1000"]);
    site.ask(&["disk", "create", "free", "64MiB", "--policy", "single"]);
    let (web, free) = (site.uri("web"), site.uri("free"));
    iops(fio(&free, "randwrite", "64k", 1));
    let neighbour = || iops(fio(&free, "randread", "4k", 2));
    for (rw, block, wanted) in
        [("randread", "4k", 1000.0), ("randwrite", "4k", 1000.0), ("randread", "64k", 500.0)]
    {
        let before = neighbour();
        let load = fio(&web, rw, block, 16);
        let beside = [neighbour(), neighbour()];
        let limit = wait_for("it is told", SECONDS, || {
            let limit = site.json(&["disk", "show", "web"])["limit"].clone();
            (limit["is_limited"] == true && limit["wait_us_p99"].is_f64()).then_some(limit)
        });
        // 32 requests share the limit, so each waits for about 32 of its turns.
        let usual_us = 32.0 / wanted * 1e6;
        let wait_us = limit["wait_us_p99"].as_f64().expect("a figure");
        assert!((usual_us / 3.0..usual_us * 40.0).contains(&wait_us), "{limit}");
        let top = site.json(&["top", "--once"]);
        let told = |name: &str| top["disks"].as_array()?.iter().find(|disk| disk["disk"] == name).cloned();
        assert_eq!(told("web").expect("it is there")["limit"]["is_limited"], true, "{top}");
        assert!(told("free").expect("it is there")["limit"].is_null(), "{top}");
        assert!(site.ask(&["top", "--once"]).contains("limited"));
        assert!(
            site.ask(&["disk", "show", "web"]).contains("limited: "),
            "{}",
            site.ask(&["disk", "show", "web"])
        );
        let metrics = site.metrics();
        for name in [
            "drystone_disk_limit_waiting",
            "drystone_disk_limit_waited_total",
            "drystone_disk_limit_wait_p99_seconds",
        ] {
            assert!(metrics.contains(&format!("{name}{{disk=\"web\"}}")), "{name}");
            assert!(!metrics.contains(&format!("{name}{{disk=\"free\"}}")), "{name}");
        }
        let found = iops(load);
        let alone = [before, neighbour()];
        println!(
            "{rw} {block}: {found:.1} IOPS, p99 of waits {wait_us:.0} us; neighbour {beside:.0?}, alone {alone:.0?}"
        );
        assert_near(found, wanted, 2.0);
        // Other work on the machine may take more from any of these than the limited disk does, so
        // the best beside it is compared with the worst without it.
        let (best, worst) = (beside[0].max(beside[1]), alone[0].min(alone[1]));
        assert!(best > worst * 0.5, "the neighbour: {beside:.0?} beside it, {alone:.0?} without it");
    }
    server.stop();
}

#[test]
fn rules_change_on_a_disk_in_use_and_what_needs_a_move_is_refused_with_its_cause() {
    let site = Site::in_memory(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB", "--policy", "single,iops_limit=2000"]);
    let uri = site.uri("web");
    let mut client = site.attach("web");
    client.write(0, &[7; 4096]).expect("it writes");
    let load = fio(&uri, "randwrite", "4k", 12);
    // Figures are of the last second, so those of a busy machine are looked at until they fit.
    let writes_at = |wanted: f64| {
        wait_for("the limit holds", SECONDS, || {
            let now = site.json(&["disk", "show", "web"])["figures"]["write"]["iops"].as_f64()?;
            ((now / wanted - 1.0).abs() < 0.1).then_some(())
        });
    };
    writes_at(2000.0);
    for (rules, wanted) in [
        (&["iops_limit=300"][..], 300.0),
        (&["iops_limit=none", "bytes_limit=4MiB/s"], 1024.0),
        (&["bytes_limit=none", "iops_limit=800"], 800.0),
    ] {
        let told = site.ask(&[&["disk", "set", "web"], rules].concat());
        assert!(told.contains("web has the policy single,"), "{told}");
        writes_at(wanted);
    }
    site.ask(&["disk", "set", "web", "iops_limit=none", "read_locality=spread", "checksum=off"]);
    assert!(iops(load) > 0.0, "the load never ended");
    assert_eq!(client.read(0, 4096).map(|read| read.len()), Ok(4096), "the client kept its disk");
    let before = site.json(&["disk", "show", "web"]);
    assert_eq!(
        (&before["rules"]["read_locality"], &before["rules"]["checksum"]),
        (&"spread".into(), &"off".into())
    );
    for (rule, why) in [
        ("stripes=2", "stripes=2 needs 2 different devices"),
        ("failures_to_tolerate=1", "failures_to_tolerate=1 needs 2 disk groups"),
        ("space_reservation=100", ""),
        ("iops_limit=0", "none, 1.."),
        ("policy=silver", "`silver` is neither"),
    ] {
        let done = site.cli(&["disk", "set", "web", rule]);
        assert!(
            why.is_empty() == done.status.success() && said(&done).contains(why),
            "{rule}: {}",
            said(&done)
        );
    }
    assert_eq!(site.json(&["disk", "show", "web"])["rules"]["space_reservation"], "100");
    let text = said(&site.cli(&["events", "--kind", "disk.changed"]));
    assert!(text.contains("its rules were single,iops_limit=2000 and are single,iops_limit=300"), "{text}");
    // A reservation that has no room on the device.
    let huge = ["disk", "create", "huge", "1TiB", "--policy", "single"];
    site.ask(&huge);
    let refused = site.cli(&["disk", "set", "huge", "space_reservation=100"]);
    assert!(!refused.status.success() && said(&refused).contains("huge"), "{}", said(&refused));
    server.stop();
}

#[test]
fn a_changed_policy_reaches_the_disks_that_follow_it_and_tells_of_those_that_it_does_not() {
    let site = Site::in_memory(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["policy", "create", "gold", "single", "iops_limit=300"]);
    site.ask(&["disk", "create", "one", "64MiB", "--policy", "gold"]);
    site.ask(&["disk", "create", "own", "64MiB", "--policy", "gold,checksum=off"]);
    site.ask(&["disk", "create", "two", "64MiB", "--policy", "single"]);
    let shown = |name: &str| site.json(&["disk", "show", name]);
    assert_eq!((&shown("one")["follows"], &shown("own")["follows"]), (&"gold".into(), &Value::Null));
    site.ask(&["disk", "set", "two", "policy=gold"]);
    assert_eq!(
        (&shown("two")["follows"], &shown("two")["rules"]["iops_limit"]),
        (&"gold".into(), &"300".into())
    );
    site.ask(&["policy", "set", "gold", "iops_limit=400", "bytes_limit=8MiB/s"]);
    let followers = |state: &str| {
        let policy = site.json(&["policy", "show", "gold"]);
        let disks = policy["disks"].as_array().cloned().unwrap_or_default();
        (disks.len() == 2 && disks.iter().all(|disk| disk["state"] == state)).then_some(policy)
    };
    wait_for("both follow", SECONDS, || followers("done"));
    for name in ["one", "two"] {
        let rules = shown(name)["rules"].clone();
        assert_eq!(
            (&rules["iops_limit"], &rules["bytes_limit"]),
            (&"400".into(), &"8MiB/s".into()),
            "{name}"
        );
    }
    assert_eq!(shown("own")["rules"]["iops_limit"], "300", "a disk with rules of its own keeps them");
    assert_eq!(shown("one")["compliance"]["state"], "compliant");
    // What is not possible yet is told, with its cause, wherever people look.
    site.ask(&["policy", "set", "gold", "stripes=2"]);
    let policy = wait_for("both are refused", SECONDS, || followers("refused"));
    let cause = policy["disks"][0]["cause"].as_str().expect("a cause").to_owned();
    assert!(cause.contains("stripes=2 needs 2 different devices"), "{cause}");
    assert!(site.ask(&["policy", "show", "gold"]).contains(&cause));
    let why = "policy gold asks for stripes=2, the disk has auto";
    wait_for("it is told", SECONDS, || {
        let list = site.ask(&["disk", "list"]);
        list.contains(&format!("not compliant: {why}")).then_some(())
    });
    let health = said(&site.cli(&["health"]));
    assert!(health.contains(why) && health.contains("one"), "{health}");
    assert!(site.metrics().contains("drystone_disk_compliant{disk=\"one\"} 0"));
    assert!(site.metrics().contains("drystone_disk_compliant{disk=\"own\"} 1"));
    // A rule of its own ends that a disk follows.
    site.ask(&["disk", "set", "one", "iops_limit=100"]);
    assert_eq!(
        (&shown("one")["follows"], &shown("one")["rules"]["iops_limit"]),
        (&Value::Null, &"100".into())
    );
    site.ask(&["policy", "set", "gold", "stripes=auto"]);
    wait_for("it follows again", SECONDS, || {
        (shown("two")["compliance"]["state"] == "compliant").then_some(())
    });
    expect(&site.cli(&["policy", "set", "single", "iops_limit=1"]), 3, "built-in policy");
    server.stop();
}

/// The hosts with up-to-date copies of a disk, and what is said of the disk.
fn copies(cluster: &Cluster, host: &str, disk: &str) -> (Vec<String>, Value) {
    let shown = cluster.json(host, &["disk", "show", disk]);
    let components = shown["components"].as_array().expect("components").iter();
    let active = components.filter(|one| one["standing"] == "active");
    let mut hosts: Vec<String> = active.map(|one| one["host"].as_str().expect("a host").to_owned()).collect();
    hosts.sort();
    (hosts, shown)
}

/// Waits until a disk has so many up-to-date copies and is compliant; gives the hosts.
fn compliant_with(cluster: &Cluster, host: &str, disk: &str, count: usize) -> Vec<String> {
    wait_for(&format!("{disk} has {count} copies and is compliant"), SECONDS, || {
        let (hosts, shown) = copies(cluster, host, disk);
        (hosts.len() == count && shown["compliance"]["state"] == "compliant").then_some(hosts)
    })
}

#[test]
fn a_mirror_in_use_tolerates_more_failures_and_fewer_again() {
    let cluster = Cluster::start(4);
    let holders = cluster.mirrored("web", "64MiB");
    let user = holders[0].as_str();
    let mut client = cluster.attach(user, "web");
    client.write(48 << 20, &[7; 65536]).expect("it writes");
    let load = verified_load(&cluster.uri(user, "web"), 20);
    cluster.wait_for_load(user, "web");
    let more = "default,stripes=1,failures_to_tolerate=2";
    let forecast = cluster.json(user, &["what-if", "set-policy", "web", more]);
    assert!(forecast["verdict"].as_str().is_some_and(|text| text.contains("1 disk can have")), "{forecast}");
    let shown = cluster.json(user, &["disk", "set", "web", "failures_to_tolerate=2", "read_locality=spread"]);
    let rules = &shown["rules"];
    assert_eq!(
        (&rules["failures_to_tolerate"], &rules["read_locality"]),
        (&"2".into(), &"spread".into()),
        "{shown}"
    );
    let three = compliant_with(&cluster, user, "web", 3);
    assert!(holders.iter().all(|host| three.contains(host)), "{three:?}");
    let events = said(&cluster.cli(user, &["events", "--about", "web"]));
    assert!(events.contains("its policy asks for more copies than it has"), "{events}");
    assert!(events.contains("and are default,failures_to_tolerate=2"), "{events}");

    // A host is lost: reads and the load go on, and a disk that is not whole keeps its up-to-date copies.
    let victim = three.iter().find(|host| *host != user).expect("there are others").as_str();
    cluster.order("kill", victim);
    wait_for("it is not compliant", SECONDS, || {
        (copies(&cluster, user, "web").1["compliance"]["state"] == "not compliant").then_some(())
    });
    assert_eq!(client.read(48 << 20, 65536).expect("it reads"), [7; 65536]);
    cluster.json(user, &["disk", "set", "web", "failures_to_tolerate=1"]);
    let two = compliant_with(&cluster, user, "web", 2);
    assert!(!two.iter().any(|host| host == victim), "{two:?} without {victim}");
    assert_verified(load);
    assert_eq!(client.read(48 << 20, 65536).expect("it reads"), [7; 65536]);
    // The host comes back, and what stood there of the disk is deleted.
    cluster.order("start", victim);
    wait_for("it answers", SECONDS, || cluster.cli(victim, &["host", "list"]).status.success().then_some(()));
    cluster.wait_for_components(2);

    let load = verified_load(&cluster.uri(user, "web"), 8);
    cluster.wait_for_load(user, "web");
    cluster.json(user, &["disk", "set", "web", "failures_to_tolerate=0"]);
    assert_eq!(compliant_with(&cluster, user, "web", 1), [user], "the copy beside the guest stays");
    cluster.wait_for_components(1);
    assert_verified(load);
    assert_eq!(client.read(48 << 20, 65536).expect("it reads"), [7; 65536]);
    let refused = cluster.cli(user, &["disk", "set", "web", "failures_to_tolerate=2", "method=parity"]);
    expect(&refused, 3, "6");
}

#[test]
fn disks_get_the_copies_that_the_policy_which_they_follow_asks_for_or_say_why_not() {
    let cluster = Cluster::start(3);
    cluster.json("a", &["policy", "create", "gold", "default", "stripes=1"]);
    for disk in ["one", "two"] {
        cluster.json("a", &["disk", "create", disk, "64MiB", "--policy", "gold"]);
    }
    cluster.json("a", &["policy", "set", "gold", "failures_to_tolerate=2", "iops_limit=5000"]);
    for disk in ["one", "two"] {
        assert_eq!(compliant_with(&cluster, "a", disk, 3), ["a", "b", "c"]);
    }
    let followers = |state: &str| {
        let policy = cluster.json("a", &["policy", "show", "gold"]);
        let disks = policy["disks"].as_array().cloned().unwrap_or_default();
        (disks.len() == 2 && disks.iter().all(|disk| disk["state"] == state)).then_some(policy)
    };
    wait_for("both follow", SECONDS, || followers("done"));
    cluster.json("a", &["policy", "set", "gold", "failures_to_tolerate=3"]);
    let policy = wait_for("both are refused", SECONDS, || followers("refused"));
    let cause = policy["disks"][0]["cause"].as_str().expect("a cause");
    assert!(cause.contains("failures_to_tolerate=3 needs 4 hosts"), "{cause}");
    cluster.json("a", &["policy", "set", "gold", "failures_to_tolerate=1"]);
    for disk in ["one", "two"] {
        compliant_with(&cluster, "a", disk, 2);
    }
    wait_for("both follow", SECONDS, || followers("done"));
    let refused = cluster.cli("a", &["disk", "set", "one", "failures_to_tolerate=3"]);
    expect(&refused, 3, "add hosts with devices or tolerate fewer failures");
}

#[test]
fn a_limit_is_shared_evenly_by_the_hosts_that_use_a_disk() {
    let cluster = Cluster::start(3);
    cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", "default,iops_limit=600", "--share"]);
    let load = |host: &str| fio(&cluster.uri(host, "web"), "randread", "4k", 8);
    let (first, second) = (load("a"), load("b"));
    let (first, second) = (iops(first), iops(second));
    println!("{first:.1} and {second:.1} IOPS of 600");
    // What begins before both are there, and a burst of a second, go to either.
    assert!((540.0..690.0).contains(&(first + second)), "{first} + {second}");
    assert!((0.5..2.0).contains(&(first / second)), "{first} and {second}");
    cluster.json("c", &["disk", "set", "web", "iops_limit=200"]);
    assert_near(iops(load("b")), 200.0, 12.0);
}

#[test]
fn guests_read_from_the_copy_on_their_host() {
    let cluster = Cluster::start(3);
    cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", "default,failures_to_tolerate=2"]);
    for host in ["a", "b"] {
        // The client before has gone, and its host may not have noticed yet.
        let mut client = cluster.attach_soon(host, "web");
        client.write(0, &[1; 65536]).expect("it writes");
        let shown = wait_for("it owns the disk", SECONDS, || {
            let shown = cluster.json(host, &["disk", "show", "web"]);
            (shown["owner"] == host).then_some(shown)
        });
        assert_eq!(shown["rules"]["read_locality"], "auto");
        let text = wait_for("it is told", SECONDS, || {
            let shown = cluster.json(host, &["disk", "show", "web"]);
            shown["reads_from"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        });
        assert_eq!(text, format!("the copy on host {host}"));
        let before = received(&cluster, host);
        for _ in 0..500 {
            assert!(client.read(0, 65536).is_ok());
        }
        let auto = received(&cluster, host) - before;
        cluster.json(host, &["disk", "set", "web", "read_locality=spread"]);
        let before = received(&cluster, host);
        for round in 0..500 {
            assert!(client.read((round % 60) << 20, 65536).is_ok());
        }
        let spread = received(&cluster, host) - before;
        println!("host {host}: {auto} bytes received for 31 MiB read, {spread} with read_locality=spread");
        assert!(auto < 4 << 20, "{auto} bytes crossed the network");
        cluster.json(host, &["disk", "set", "web", "read_locality=auto"]);
    }
}

/// Bytes that a host received from others.
fn received(cluster: &Cluster, host: &str) -> u64 {
    let local = cluster.local(host);
    local["peers"]["received_bytes"].as_u64().expect("a figure")
}
