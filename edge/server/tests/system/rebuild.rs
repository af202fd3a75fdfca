//! An etcd that lost its data: a new directory is made from what the hosts and their devices know.

use super::cluster::{SECONDS, assert_verified, verified_load};
use super::host::{Server, Site};
use super::members::{free_port, init, join_all, site, wait_until_all_reach};
use super::nbd::Client;
use super::tools::{said, text, wait_for, wait_for_writes};
use super::upgrade::{LEVEL, records, set};
use ::etcd::testing::Members;

/// Three hosts and their etcd.
struct Three {
    etcd: Members,
    sites: Vec<Site>,
    servers: Vec<Option<Server>>,
}

fn three() -> Three {
    let etcd = Members::spawn(1);
    let sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let made = init(&sites[0]);
    assert!(made.status.success(), "{}", said(&made));
    let servers = join_all(&sites).into_iter().map(Some).collect();
    Three { etcd, sites, servers }
}

/// Their names.
const NAMES: [&str; 3] = ["a", "b", "c"];

impl Three {
    /// The two hosts that hold disk `web` keep the copies of the directory that they have now. Gives the third one, and those.
    fn keep_former_copies(&mut self) -> (usize, Vec<usize>) {
        let disk = self.sites[0].json(&["disk", "show", "web"]);
        let holds = |name: &str| {
            let components = disk["components"].as_array().cloned().unwrap_or_default();
            components.iter().any(|one| one["host"] == name)
        };
        let third = (0..3).find(|host| !holds(NAMES[*host])).expect("two of three hold it");
        let others: Vec<usize> = (0..3).filter(|host| *host != third).collect();
        (0..3).for_each(|host| self.stop(host));
        for host in &others {
            std::fs::copy(self.copy_at(*host), self.former_at(*host)).expect("its copy is there");
        }
        (0..3).for_each(|host| self.start(host));
        wait_until_all_reach(&self.sites);
        self.wait_for_disk("web");
        (third, others)
    }

    /// etcd loses all that it had, and those hosts start with their former copies of the directory. Gives the one that is asked.
    fn start_from_former_copies(&mut self, hosts: &[usize]) -> usize {
        (0..3).for_each(|host| self.stop(host));
        self.wipe();
        for host in hosts {
            std::fs::rename(self.former_at(*host), self.copy_at(*host)).expect("the former copy");
            self.start(*host);
        }
        self.wait_for_warning(hosts[0], "does not hold the records of this cluster");
        hosts[0]
    }

    fn copy_at(&self, host: usize) -> std::path::PathBuf {
        self.sites[host].path("d/directory-copy.redb")
    }

    fn former_at(&self, host: usize) -> std::path::PathBuf {
        self.sites[host].path("former.redb")
    }

    /// etcd loses all that it had, and runs again.
    fn wipe(&mut self) {
        self.etcd.kill(0);
        std::fs::remove_dir_all(self.etcd.data(0)).expect("its data");
        self.etcd.run(0);
    }

    fn stop(&mut self, host: usize) {
        self.servers[host].take().expect("it runs").stop();
    }

    fn start(&mut self, host: usize) {
        self.servers[host] = Some(self.sites[host].start());
    }

    fn restart_all(&mut self) {
        for host in 0..3 {
            self.stop(host);
            self.start(host);
        }
        wait_until_all_reach(&self.sites);
    }

    fn warning(&self, host: usize, words: &str) -> Option<String> {
        let status = self.sites[host].json(&["status"]);
        let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
        let mut warnings = warnings.iter().filter_map(|warning| warning.as_str());
        warnings.find(|warning| warning.contains(words)).map(str::to_owned)
    }

    fn wait_for_warning(&self, host: usize, words: &str) -> String {
        wait_for(words, SECONDS, || self.warning(host, words))
    }

    fn make_disk(&self, name: &str) {
        let disk = self.sites[0].json(&["disk", "create", name, "64MiB", "--policy", "default,stripes=1"]);
        assert_eq!(disk["components"].as_array().map(Vec::len), Some(2), "{disk}");
        self.wait_for_disk(name);
    }

    fn wait_for_disk(&self, name: &str) {
        for site in &self.sites {
            wait_for("all hosts serve it", SECONDS, || Client::attach(&site.path("d/nbd.sock"), name).ok());
        }
    }

    fn wait_until_whole(&self, name: &str) {
        wait_for("the disk is whole", SECONDS, || {
            let disk = self.sites[0].json(&["disk", "show", name]);
            let components = disk["components"].as_array().cloned().unwrap_or_default();
            let is_whole = |one: &serde_json::Value| one["standing"] == "active" && one["trouble"].is_null();
            (components.len() == 2 && components.iter().all(is_whole)).then_some(())
        });
    }

    fn rebuild(&self, host: usize, more: &[&str]) -> std::process::Output {
        self.sites[host].cli(&[&["cluster", "rebuild-directory", "--yes"], more].concat())
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        for server in self.servers.iter_mut().filter_map(Option::take) {
            if !std::thread::panicking() {
                server.stop();
            }
        }
    }
}

#[test]
fn a_directory_that_was_wiped_is_rebuilt_while_disks_are_written_to() {
    let mut three = three();
    for name in ["web", "other"] {
        three.make_disk(name);
    }
    let mut client = three.sites[0].attach("other");
    client.write(0, &[7; 8192]).expect("it writes");
    three.sites[0].ask(&["person", "token", "ann"]);
    let whole = three.rebuild(0, &["--dry-run"]);
    assert!(said(&whole).contains("there is nothing to rebuild"), "{}", said(&whole));
    set(&three.etcd, LEVEL, Some(&serde_json::json!({ "level": 1, "kept": true })));
    let socket = three.sites[1].path("d/nbd.sock");
    let load = verified_load(&format!("nbd+unix:///web?socket={}", text(&socket)), 8);
    wait_for_writes(|| three.sites[1].json(&["disk", "histogram", "web"]));
    three.wipe();
    for host in 0..3 {
        let told = three.wait_for_warning(host, "does not hold the records of this cluster");
        assert!(told.contains("rebuild-directory"), "{told}");
    }
    let told = three.sites[2].json(&["cluster", "rebuild-directory", "--dry-run"]);
    assert_eq!(told["obstacles"].as_array().map(Vec::len), Some(0), "{told}");
    assert_eq!((&told["generation"], &told["is_made"]), (&2.into(), &false.into()), "{told}");
    assert_eq!((&told["tokens_dropped"], &told["revoked"]), (&1.into(), &0.into()), "{told}");
    let outcomes = told["disks"].as_array().cloned().unwrap_or_default();
    assert!(outcomes.len() == 2 && outcomes.iter().all(|disk| disk["outcome"] == "taken"), "{told}");
    let made = three.rebuild(2, &[]);
    assert!(made.status.success() && said(&made).contains("generation 2"), "{}", said(&made));
    let level = records(&three.etcd).into_iter().find(|(key, ..)| key == LEVEL);
    assert_eq!(level.map(|(.., value)| value["kept"] == true), Some(true), "the level is that of before");
    let again = three.rebuild(1, &[]);
    assert_eq!(again.status.code(), Some(5), "{}", said(&again));
    let told = three.wait_for_warning(0, "made anew");
    assert!(told.contains("restart this host's service"), "{told}");
    client.write(4096, &[8; 4096]).expect("disks are served as they are");
    assert_verified(load);
    drop(client);
    three.restart_all();
    for host in 0..3 {
        assert_eq!(three.warning(host, "directory"), None);
    }
    assert_eq!(three.sites[1].attach("other").read(0, 8192), Ok([[7; 4096], [8; 4096]].concat()));
    three.make_disk("third");
    // A copy that misses something is brought up to date, by the new directory.
    let mut client = three.sites[0].attach("third");
    client.write(0, &[1; 4096]).expect("it writes");
    three.stop(2);
    client.write(4096, &[2; 4096]).expect("two hosts are enough");
    three.start(2);
    wait_until_all_reach(&three.sites);
    for name in ["web", "other", "third"] {
        three.wait_until_whole(name);
    }
    assert_eq!(client.read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
    // What was there before can get lost again.
    drop(client);
    three.wipe();
    for host in 0..3 {
        three.wait_for_warning(host, "rebuild-directory");
    }
    let made = three.rebuild(1, &[]);
    assert!(made.status.success() && said(&made).contains("generation 3"), "{}", said(&made));
    three.restart_all();
    assert_eq!(three.sites[2].attach("third").read(0, 8192), Ok([[1; 4096], [2; 4096]].concat()));
}

#[test]
fn a_cluster_that_stopped_as_a_whole_and_lost_its_directory_is_rebuilt_with_and_without_a_host() {
    let mut three = three();
    three.make_disk("web");
    let mut client = three.sites[0].attach("web");
    client.write(0, &[7; 8192]).expect("it writes");
    drop(client);
    for host in 0..3 {
        three.stop(host);
    }
    three.wipe();
    // One host has lost its copy: it knows nothing to start from.
    std::fs::remove_file(three.sites[2].path("d/directory-copy.redb")).expect("its copy");
    let (code, told) = three.sites[2].refused(&[]);
    assert!(code == 3 && told.contains("holds no cluster") && told.contains("on another host"), "{told}");
    three.start(0);
    three.start(1);
    for host in [0, 1] {
        three.wait_for_warning(host, "does not hold the records of this cluster");
    }
    let refused = three.rebuild(0, &[]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("--without c"), "{}", said(&refused));
    let nobody = three.rebuild(0, &["--without", "zoe"]);
    assert_eq!(nobody.status.code(), Some(4), "{}", said(&nobody));
    let made = three.rebuild(0, &["--without", "c"]);
    assert!(made.status.success(), "{}", said(&made));
    for host in [0, 1] {
        three.stop(host);
        three.start(host);
    }
    // The host that was left out comes back, and is brought up to date.
    three.start(2);
    wait_until_all_reach(&three.sites);
    three.wait_until_whole("web");
    assert_eq!(three.sites[2].attach("web").read(0, 8192), Ok(vec![7; 8192]));
}

/// What the directory's records knew last is gone with a host; devices tell that there was more.
#[test]
fn a_disk_that_was_owned_later_than_any_record_knows_waits_for_a_persons_word() {
    let mut three = three();
    for name in ["web", "other"] {
        three.make_disk(name);
        let mut client = three.sites[0].attach(name);
        client.write(0, &[7; 8192]).expect("it writes");
    }
    let (third, others) = three.keep_former_copies();
    let mut client = three.sites[third].attach("web");
    client.write(4096, &[8; 4096]).expect("it writes as the next owner");
    drop(client);
    let asked = three.start_from_former_copies(&others);
    let without = ["--without", NAMES[third]];
    let refused = three.rebuild(asked, &without);
    let told = said(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("--accept web") && told.contains("--leave-out web"), "{told}");
    assert!(!told.contains("--accept other"), "{told}");
    let dry = |words: &[&str]| {
        let options = ["cluster", "rebuild-directory", "--dry-run"];
        three.sites[asked].json(&[&options, &without[..], words].concat())
    };
    let obstacles = |told: &serde_json::Value| told["obstacles"].as_array().map(Vec::len);
    let left = dry(&["--leave-out", "web"]);
    assert_eq!(obstacles(&left), Some(0), "{left}");
    let is_unproven = |one: &&serde_json::Value| one["outcome"] == "unproven" && one["name"] == "web";
    assert!(left["disks"].as_array().is_some_and(|all| all.iter().find(is_unproven).is_some()), "{left}");
    let proven = dry(&["--accept", "web", "--leave-out", "other"]);
    assert!(
        proven["obstacles"][0].as_str().is_some_and(|why| why.contains("nothing stands against")),
        "{proven}"
    );
    let made = three.rebuild(asked, &["--without", NAMES[third], "--accept", "web"]);
    assert!(made.status.success() && said(&made).contains("with 2 disks"), "{}", said(&made));
    for host in &others {
        three.stop(*host);
        three.start(*host);
    }
    three.start(third);
    wait_until_all_reach(&three.sites);
    for (name, second) in [("web", 8), ("other", 7)] {
        three.wait_until_whole(name);
        let mut client = three.sites[asked].attach(name);
        assert_eq!(client.read(0, 8192), Ok([[7; 4096], [second; 4096]].concat()), "{name}");
    }
}

#[test]
fn what_an_interrupted_rebuild_left_goes_and_of_two_at_once_one_goes_on() {
    let mut three = three();
    three.make_disk("web");
    let mut client = three.sites[0].attach("web");
    client.write(0, &[7; 4096]).expect("it writes");
    three.wipe();
    (0..3).for_each(|host| drop(three.wait_for_warning(host, "does not hold the records of this cluster")));
    let left = [
        ("rebuilding", serde_json::json!({"generation": 2, "host": "a"})),
        ("policies/half", serde_json::json!({})),
    ];
    for (key, value) in &left {
        set(&three.etcd, key, Some(value));
    }
    let made: Vec<_> = std::thread::scope(|scope| {
        let one = |host| {
            scope.spawn({
                let three = &three;
                move || three.rebuild(host, &[])
            })
        };
        [0, 1, 2].map(one).map(|thread| thread.join().expect("it ends")).into()
    });
    let good = made.iter().filter(|one| one.status.success()).count();
    let told = || made.iter().map(said).collect::<Vec<_>>();
    assert_eq!(good, 1, "{:?}", told());
    assert!(made.iter().all(|one| matches!(one.status.code(), Some(0 | 5))), "{:?}", told());
    let there = records(&three.etcd);
    assert!(there.iter().all(|(key, ..)| left.iter().all(|(left, _)| key != left)), "{there:?}");
    drop(client);
    three.restart_all();
    assert_eq!(three.sites[2].attach("web").read(0, 4096), Ok(vec![7; 4096]));
    three.make_disk("next");
}

/// A snapshot was taken, and the record that says so is gone with the host that knew it.
#[test]
fn a_snapshot_that_no_record_knows_is_found_on_the_devices_and_clones_are_counted_again() {
    let mut three = three();
    three.make_disk("web");
    let mut client = three.sites[0].attach("web");
    client.write(0, &[7; 8192]).expect("it writes");
    drop(client);
    let take = |three: &Three, name: &str| {
        wait_for("the snapshot is taken", SECONDS, || {
            let taken = three.sites[0].cli(&["disk", "snapshot", "create", "web", name]);
            taken.status.success().then_some(())
        });
    };
    take(&three, "first");
    three.sites[0].ask(&["disk", "clone", "web@first", "copy", "--share"]);
    let (third, others) = three.keep_former_copies();
    let mut client = three.sites[third].attach("web");
    client.write(4096, &[8; 4096]).expect("it writes as the next owner");
    take(&three, "second");
    client.write(0, &[9; 4096]).expect("it is written");
    drop(client);
    let listed = |three: &Three, host: usize| {
        let listed = three.sites[host].json(&["disk", "snapshot", "list", "web"]);
        listed.as_array().expect("a list").clone()
    };
    let number = listed(&three, 0)[1]["number"].as_u64().expect("a number");
    let asked = three.start_from_former_copies(&others);
    let (name, without) = (format!("recovered-{number}"), ["--without", NAMES[third]]);
    let options = ["cluster", "rebuild-directory", "--dry-run", "--accept", "web"];
    let told = three.sites[asked].json(&[&options[..], &without].concat()).to_string();
    assert!(told.contains(&format!("names are lost; they are named {name}")), "{told}");
    let accepted: Vec<&str> = ["web", "copy"]
        .into_iter()
        .filter(|disk| {
            let all = three.sites[asked].json(&[
                "cluster",
                "rebuild-directory",
                "--dry-run",
                without[0],
                without[1],
            ]);
            let is_unproven = |one: &serde_json::Value| one["outcome"] == "unproven" && one["name"] == *disk;
            all["disks"].as_array().is_some_and(|all| all.iter().any(is_unproven))
        })
        .flat_map(|disk| ["--accept", disk])
        .collect();
    let made = three.rebuild(asked, &[&without[..], &accepted].concat());
    assert!(made.status.success(), "{}", said(&made));
    for host in &others {
        three.stop(*host);
        three.start(*host);
    }
    three.start(third);
    wait_until_all_reach(&three.sites);
    three.wait_until_whole("web");
    let found = listed(&three, asked);
    let known: Vec<&str> = found.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(known, ["first", name.as_str()]);
    assert_eq!((&found[0]["clones"], &found[1]["clones"]), (&1.into(), &0.into()), "{found:?}");
    assert_eq!((&found[0]["copies"], &found[1]["copies"]), (&2.into(), &2.into()), "{found:?}");
    for site in &three.sites {
        let mut second = site.attach(&format!("web@{name}"));
        assert_eq!(second.read(0, 8192), Ok([[7; 4096], [8; 4096]].concat()));
        assert_eq!(site.attach("web@first").read(0, 8192), Ok(vec![7; 8192]));
        assert_eq!(site.attach("copy").read(0, 8192), Ok(vec![7; 8192]));
    }
    for words in [
        &["disk", "snapshot", "delete", "web", "first", "--confirm", "first"][..],
        &["disk", "delete", "web", "--confirm", "web"],
    ] {
        let refused = three.sites[third].cli(words);
        assert!(!refused.status.success() && said(&refused).contains("clones"), "{}", said(&refused));
    }
    three.sites[third].ask(&["disk", "snapshot", "delete", "web", &name, "--confirm", &name]);
}
