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
