//! A copy stays away, and what is written meanwhile stands on a further host, too: so the last active copy may be lost.

use super::cluster::{Cluster, SECONDS};
use super::repair::{stamped, third};
use super::tools::{run, said, text, wait_for};
use base::units::MIB;
use serde_json::Value;

impl Cluster {
    /// Waits until a component stands in for another of a disk; gives its host.
    fn wait_for_stand_in(&self, at: &str, disk: &str) -> String {
        wait_for("a component stands in", SECONDS, || {
            let disk = self.json(at, &["disk", "show", disk]);
            let components = disk["components"].as_array().expect("components").clone();
            let found = components.into_iter().find(|one| one["standing"] == "stand-in")?;
            assert!(found["stands_in_for"].is_string(), "{disk}");
            Some(found["host"].as_str().expect("a host").to_owned())
        })
    }

    /// What a host tells of components that stand in, or did.
    fn stand_in_events(&self, host: &str) -> Vec<Value> {
        let socket = self.path(host).join("d/api.sock");
        let url = "http://localhost/api/v1/events?kind=stand_in";
        let answer = run("curl", &["-sS", "--unix-socket", text(&socket), url]);
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

/// Two hosts of a mirror are lost one after the other, and the first one comes back: nothing that was acknowledged is missing,
/// and clients need not wait for the second.
#[test]
fn what_was_written_while_a_copy_was_away_is_served_when_the_other_one_is_lost() {
    let cluster = Cluster::start(3);
    cluster.set("stand-ins", "on");
    let holders = cluster.mirrored("web", "64MiB");
    let (first, second, third) = (holders[1].as_str(), holders[0].as_str(), third(&holders));
    let mut client = cluster.attach(third, "web");
    for number in 0..64 {
        client.write(number * 4096, &stamped(number)).expect("it writes");
    }
    cluster.order("kill", first);
    client.write(0, &stamped(1000)).expect("it writes before anything stands in");
    assert_eq!(cluster.wait_for_stand_in(third, "web"), third);
    for number in 1..32 {
        client.write(number * 4096, &stamped(1000 + number)).expect("it writes");
    }
    client.write(8 * MIB, &stamped(2000)).expect("it writes");
    cluster.order("kill", second);
    cluster.order("start", first);
    // The one that is back has the rest, what stood in has what was written since.
    let mut client = cluster.attach_soon(third, "web");
    for number in 0..64 {
        let expected = stamped(if number < 32 { 1000 + number } else { number });
        assert!(client.read(number * 4096, 4096) == Ok(expected), "block {number} differs");
    }
    assert!(client.read(8 * MIB, 4096) == Ok(stamped(2000)));
    client.write(9 * MIB, &stamped(3000)).expect("it writes");
    cluster.order("start", second);
    let mut hosts = [first, second];
    hosts.sort_unstable();
    cluster.wait_until_on(third, "web", &hosts);
    cluster.assert_equal("web", [first, second]);
    let events = said(&cluster.cli(third, &["events"]));
    assert!(events.contains("stands in for") || events.contains("is kept on host"), "{events}");
}

/// The same of rows with parity: small writes that were folded without the lost member, and others since, in all shapes.
#[test]
fn rows_of_which_two_members_are_lost_one_after_the_other_are_served_by_the_first_one_and_its_stand_in() {
    let cluster = Cluster::start(5);
    cluster.set("stand-ins", "on");
    let rule = "default,method=parity,stripes=1";
    cluster.json("a", &["disk", "create", "web", "64MiB", "--policy", rule, "--share"]);
    cluster.attach_soon("a", "web");
    let holders = cluster.holders("a", "web");
    let [_, first, second, _] = &holders[..] else { panic!("3 data and 1 parity on {holders:?}") };
    let is_free = |host: &&str| !holders.iter().any(|one| one == host);
    let other = ["a", "b", "c", "d", "e"].into_iter().find(is_free).expect("one is left");
    let mut client = cluster.attach(other, "web");
    for number in 0..512 {
        client.write(number * 4096, &stamped(number)).expect("it writes");
    }
    cluster.order("kill", first);
    client.write(0, &stamped(1000)).expect("it writes before anything stands in");
    assert_eq!(cluster.wait_for_stand_in(other, "web"), other);
    for number in 1..64 {
        client.write(number * 4 * 4096, &stamped(1000 + number)).expect("it writes");
    }
    let large: Vec<u8> = (0..3 * MIB).map(|byte| (byte / 5) as u8).collect();
    client.write(8 * MIB, &large).expect("it writes");
    client.trim(64 * 4096, 16 * 4096).expect("it trims");
    cluster.order("kill", second);
    cluster.order("start", first);
    let mut client = cluster.attach_soon(other, "web");
    for number in 0..512 {
        let expected = match number {
            64..80 => vec![0; 4096],
            _ if number % 4 == 0 && number / 4 < 64 => stamped(1000 + number / 4),
            _ => stamped(number),
        };
        assert!(client.read(number * 4096, 4096) == Ok(expected), "block {number} differs");
    }
    assert!(client.read(8 * MIB, 3 * MIB as u32) == Ok(large));
    client.write(20 * MIB, &stamped(3000)).expect("it writes");
    cluster.order("start", second);
    cluster.wait_until_on(other, "web", &holders.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn what_stands_in_goes_when_the_copy_is_back_and_a_setting_keeps_it_away() {
    let cluster = Cluster::start(3);
    cluster.set("stand-ins", "on");
    let holders = cluster.mirrored("web", "64MiB");
    let (user, victim, third) = (holders[0].as_str(), holders[1].as_str(), third(&holders));
    let mut client = cluster.attach(user, "web");
    client.write(0, &stamped(1)).expect("it writes");
    cluster.order("kill", victim);
    assert_eq!(cluster.wait_for_stand_in(user, "web"), third);
    client.write(4096, &stamped(2)).expect("it writes");
    cluster.order("start", victim);
    cluster.wait_until_on(user, "web", &[user, victim]);
    cluster.wait_until_empty(user, third);
    cluster.set("stand-ins", "off");
    let stood_in = || [user, third].map(|host| cluster.stand_in_events(host));
    let before = stood_in();
    assert!(before.iter().any(|events| !events.is_empty()), "what stood in was told");
    // The repair comes after the moment at which a component would begin to stand in.
    cluster.set("repair-delay", "8s");
    cluster.order("kill", victim);
    client.write(8192, &stamped(3)).expect("it writes");
    cluster.wait_until_on(user, "web", &[user, third]);
    assert_eq!(stood_in(), before);
}
