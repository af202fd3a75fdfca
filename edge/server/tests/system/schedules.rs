//! Snapshots by a schedule: taken once each minute whoever of the hosts is killed, deleted when newer ones are kept, told to people.

use super::cluster::Cluster;
use super::tools::{said, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The snapshots of a disk, as one of these hosts lists them.
fn listed(cluster: &Cluster, hosts: &[&str], disk: &str) -> Option<Vec<Value>> {
    hosts.iter().find_map(|host| {
        let done = cluster.cli(host, &["--json", "disk", "snapshot", "list", disk]);
        let list: Option<Value> = serde_json::from_slice(&done.stdout).ok();
        list.filter(|_| done.status.success())?.as_array().cloned()
    })
}

fn names(list: &[Value]) -> Vec<String> {
    list.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

/// The minute of the day in `every-1m-2026-11-29T07-03Z`.
fn minute_of(name: &str) -> u64 {
    let time =
        name.strip_prefix("every-1m-").expect("it is of the schedule").split_once('T').expect("a time").1;
    let (hour, minute) = time.strip_suffix('Z').expect("UTC").split_once('-').expect("hours and minutes");
    hour.parse::<u64>().expect("an hour") * 60 + minute.parse::<u64>().expect("a minute")
}

#[test]
fn one_snapshot_is_taken_each_minute_whoever_is_killed() {
    let cluster = Cluster::start(4);
    let made = cluster
        .cli("a", &["policy", "create", "safe", "default", "--snapshots", "daily keep 7,every 1m keep 3"]);
    assert!(made.status.success(), "{}", said(&made));
    let shown = cluster.cli("a", &["policy", "show", "safe"]);
    assert!(said(&shown).contains("every 1m keep 3, daily keep 7"), "{}", said(&shown));
    for wrong in
        ["hourly keep 0", "every 7m keep 3", "hourly keep 24, hourly keep 2", "hourly keep 250, daily keep 7"]
    {
        let refused = cluster.cli("a", &["policy", "create", "odd", "--snapshots", wrong]);
        assert!(!refused.status.success() && said(&refused).contains("rule snapshots"), "{}", said(&refused));
    }
    cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", "safe"]);
    cluster.json(
        "a",
        &["disk", "create", "rows", "64MiB", "--policy", "default,method=parity,snapshots=hourly keep 2"],
    );
    // A minute may end between the two: then there are three.
    let first = wait_for("the first ones are taken", 90, || {
        listed(&cluster, &["a"], "web").filter(|list| list.iter().any(|one| one["schedule"] == "daily"))
    });
    assert_eq!(first[0]["schedule"], "every 1m", "the most frequent one comes first: {first:?}");
    wait_for("that of the disk with parity is taken", 90, || {
        listed(&cluster, &["a"], "rows").filter(|list| list.iter().any(|one| one["schedule"] == "hourly"))
    });
    let pinned = names(&first)[0].clone();
    cluster.json("a", &["disk", "snapshot", "pin", "web", &pinned]);
    let mine = cluster.json("a", &["disk", "snapshot", "create", "web", "mine"]);
    assert_eq!((&mine["schedule"], &mine["pinned"]), (&Value::Null, &false.into()));
    let shown = cluster.json("a", &["disk", "show", "web"]);
    let schedule = &shown["schedules"][0];
    assert_eq!((&schedule["every"], &schedule["keep"]), (&"every 1m".into(), &3.into()), "{shown}");
    let (last, next) =
        (schedule["last"].as_u64().expect("a time"), schedule["next"].as_u64().expect("a time"));
    assert_eq!((last % 60, next), (0, last + 60), "{schedule}");
    let text = said(&cluster.cli("a", &["disk", "show", "web"]));
    assert!(text.contains("every 1m keep 3: ") && text.contains("daily keep 7: 1 taken, next "), "{text}");

    // Each of the hosts may be the one that decides: one after another is killed, and started again.
    let all = ["a", "b", "c", "d"];
    let (mut seen, began) = (BTreeSet::new(), Instant::now());
    for round in 0..4 {
        let killed = all[round];
        let others: Vec<&str> = all.into_iter().filter(|host| *host != killed).collect();
        cluster.order("kill", killed);
        let until = began + Duration::from_secs(60 * (round as u64 + 1));
        let mut is_back = false;
        while Instant::now() < until {
            let list = listed(&cluster, &others, "web").unwrap_or_default();
            seen.extend(names(&list).into_iter().filter(|name| name.starts_with("every-1m-")));
            assert!(list.len() <= 1 + 1 + 1 + 4, "pinned, daily, mine, and one more than is kept: {list:?}");
            if !is_back && until.saturating_duration_since(Instant::now()) < Duration::from_secs(25) {
                cluster.order("start", killed);
                is_back = true;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let minutes: Vec<u64> = seen.iter().map(|name| minute_of(name)).collect();
    assert!(minutes.len() >= 5, "{seen:?}");
    let follows = |two: &[u64]| (two[0] + 1) % 1440 == two[1] % 1440;
    assert!(minutes.windows(2).all(follows), "one for each minute: {seen:?}");

    let renamed = wait_for("older ones are deleted", 30, || {
        let list = names(&listed(&cluster, &["a"], "web")?);
        let of_minutes: Vec<String> =
            list.iter().filter(|name| name.starts_with("every-1m-")).cloned().collect();
        let is_kept = list.contains(&pinned) && list.contains(&"mine".to_owned());
        assert!(is_kept, "no schedule deletes those: {list:?}");
        (of_minutes.len() == 4).then(|| of_minutes[1].clone())
    });
    cluster.json("a", &["disk", "snapshot", "rename", "web", &renamed, "good"]);
    let changed = cluster.json("a", &["policy", "set", "safe", "--snapshots", "every 1m keep 1"]);
    assert_eq!(changed["rules"]["snapshots"], "every 1m keep 1");
    let left = wait_for("all but one of the schedule go", 90, || {
        let list = listed(&cluster, &["a"], "web")?;
        (list.iter().filter(|one| one["schedule"] == "every 1m").count() == 2).then_some(list)
    });
    let left = names(&left);
    assert!(["good", "mine", &pinned].iter().all(|name| left.contains(&(*name).to_string())), "{left:?}");
    assert!(left.iter().any(|name| name.starts_with("daily-")), "of a schedule that is no more: {left:?}");
    cluster.json("a", &["disk", "snapshot", "unpin", "web", &pinned]);
    wait_for("the oldest goes when it is not pinned", 30, || {
        (!names(&listed(&cluster, &["a"], "web")?).contains(&pinned)).then_some(())
    });
    let events = said(&cluster.cli("a", &["events", "--kind", "snapshot"]));
    for told in ["is pinned: no schedule deletes it", "is named good", "its schedule is every 1m keep"] {
        assert!(events.contains(told), "{told}: {events}");
    }
}
