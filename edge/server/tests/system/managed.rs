//! An etcd that the cluster runs for itself: made by one command, spread over three hosts, and mended when one of them is lost.

use super::cluster::{SECONDS, assert_verified, verified_load};
use super::host::{PROGRAM, Server, Shape, Site};
use super::members::{config, expect, join, join_all, token, wait_until_all_reach};
use super::tools::{command, output, said, text, wait_for};
use ::etcd::testing::free_port;
use ::etcd::{Etcd, Options, Tls};
use std::process::Output;

/// A host whose configuration names no endpoints of etcd.
fn site(name: &str) -> Site {
    let mut site = Site::new(&Shape::Two { size_mib: 512 });
    let [api, nbd, clients, peers] = [(); 4].map(|()| free_port());
    let listening = site.config().replace(
        "[listen]\nnbd = [\"unix:nbd.sock\"]\n",
        &format!("[listen]\nhttp = [\"unix:api.sock\", \"127.0.0.1:{api}\"]\nnbd = [\"unix:nbd.sock\", \"127.0.0.1:{nbd}\"]\n"),
    );
    assert!(listening.contains("api.sock"), "{listening}");
    site.set_config(&format!(
        "name = \"{name}\"\n{listening}\n[cluster]\ndirectory = \"etcd\"\n[cluster.etcd]\nclients = \"127.0.0.1:{clients}\"\npeers = \"127.0.0.1:{peers}\"\n"
    ));
    site
}

fn init(site: &Site, more: &[&str]) -> Output {
    output(command(PROGRAM).args(["cluster", "init", "--config"]).arg(config(site)).args(more))
}

/// The hosts whose members count and answer, once they are as many.
#[track_caller]
fn wait_for_members(asked: &Site, expected: &[&str]) {
    wait_for("members are as they should be", 2 * SECONDS, || {
        let directory = asked.json(&["cluster", "directory"]);
        assert_eq!(directory["is_managed"], true, "{directory}");
        let members = directory["members"].as_array().expect("members");
        let counts = |member: &&serde_json::Value| member["role"] == "voter" && member["answers"] == true;
        let mut hosts: Vec<&str> =
            members.iter().filter(counts).filter_map(|member| member["host"].as_str()).collect();
        hosts.sort_unstable();
        (hosts == expected && members.len() == expected.len()).then_some(())
    });
}

#[test]
fn three_hosts_run_etcd_and_a_lost_one_is_replaced_by_the_fourth_under_load() {
    let sites: Vec<Site> = ["a", "b", "c", "d"].map(site).into();
    expect(&init(&sites[0], &[]), 2, "names no endpoints of etcd");
    let would = init(&sites[0], &["--etcd", "managed", "--dry-run"]);
    assert!(would.status.success() && !sites[0].path("d/etcd/member.json").exists(), "{}", said(&would));
    let made = init(&sites[0], &["--etcd", "managed"]);
    assert!(made.status.success(), "{}", said(&made));
    let mut servers = join_all(&sites[..3]);
    wait_for_members(&sites[1], &["a", "b", "c"]);
    let joined = join(&sites[3], &token(&sites[0]));
    assert!(joined.status.success(), "{}", said(&joined));
    servers.push(sites[3].start());
    wait_until_all_reach(&sites);

    let all = || [&sites[0], &sites[1], &sites[2], &sites[3]];
    sites[0].ask(&["cluster", "set", "repair-delay", "5s"]);
    sites[0].ask(&["disk", "create", "web", "64MiB", "--policy", "failures_to_tolerate=1"]);
    let load = verified_load(&sites[0].uri("web"), 25);
    let lost = servers.remove(1);
    let killer = lost.kill_after(std::time::Duration::ZERO);
    lost.killed(killer);
    // What is left is a majority: changes go on, once it has a leader, and another host takes the place.
    wait_for("changes go on", SECONDS, || {
        let made = sites[2].cli(&["disk", "create", "after", "16MiB", "--policy", "failures_to_tolerate=1"]);
        // A change whose answer was lost may have happened.
        (made.status.success() || made.status.code() == Some(5)).then_some(())
    });
    wait_for_members(&sites[0], &["a", "c", "d"]);
    let events = sites[0].ask(&["events"]) + &sites[2].ask(&["events"]) + &sites[3].ask(&["events"]);
    assert!(events.contains("directory.members"), "{events}");
    assert_verified(load);

    // It comes back as a host, and runs no member any more.
    servers.push(sites[1].start());
    wait_until_all_reach(&sites);
    wait_for_members(&sites[1], &["a", "c", "d"]);
    wait_for("its data are put aside", SECONDS, || sites[1].path("d/etcd/data.left").exists().then_some(()));
    let status = sites[1].ask(&["status"]);
    assert!(status.contains("etcd of its own, on "), "{status}");
    assert!(sites[1].metrics().contains("drystone_directory_members 3"), "{}", sites[1].metrics());

    // All hosts at once are off and come back.
    servers.into_iter().for_each(Server::stop);
    let servers: Vec<Server> = all().iter().map(|site| site.launch()).collect();
    wait_for("the directory is back", 2 * SECONDS, || {
        let asked = sites[0].cli(&["disk", "create", "again", "16MiB"]);
        asked.status.success().then_some(())
    });
    servers.into_iter().for_each(Server::stop);
}

#[test]
fn a_host_that_serves_moves_its_records_into_an_etcd_of_its_own_and_its_authority_is_replaced() {
    let mut sites: Vec<Site> = ["a", "b", "c"].map(site).into();
    let several = sites[0].config().to_owned();
    let (own, _) = several.split_once("[cluster]").expect("it is one of several");
    sites[0].set_config(own);
    let mut servers = vec![sites[0].start()];
    sites[0].ask(&["disk", "create", "web", "64MiB"]);
    let load = verified_load(&sites[0].uri("web"), 25);
    sites[0].set_config(&several);
    let made = init(&sites[0], &["--etcd", "managed"]);
    assert!(made.status.success() && said(&made).contains("goes on serving"), "{}", said(&made));
    for site in &sites[1..] {
        let joined = join(site, &token(&sites[0]));
        assert!(joined.status.success(), "{}", said(&joined));
        servers.push(site.start());
    }
    wait_until_all_reach(&sites);
    wait_for_members(&sites[2], &["a", "b", "c"]);
    assert_verified(load);

    // Members take the new authority before anybody shows a certificate of it.
    let former = sites[0].json(&["cluster", "certificates", "list"])["authorities"][0]["fingerprint"].clone();
    sites[0].ask(&["cluster", "certificates", "add-authority"]);
    let drop_former = || {
        let former = former.as_str().expect("a fingerprint");
        sites[0].cli(&["cluster", "certificates", "drop-authority", former, "--yes"])
    };
    wait_for("all hosts have certificates of the new authority", 4 * SECONDS, || {
        drop_former().status.success().then_some(())
    });
    let pem = |site: &Site, path: &str| std::fs::read_to_string(site.path(path)).expect("it is there");
    let agrees = |site: &Site| pem(site, "d/etcd/authorities.pem") == pem(site, "d/identity/authorities.pem");
    wait_for("members believe the new one alone", 4 * SECONDS, || sites.iter().all(agrees).then_some(()));
    wait_for_members(&sites[0], &["a", "b", "c"]);
    sites[1].ask(&["disk", "create", "after", "16MiB", "--policy", "failures_to_tolerate=1"]);
    servers.into_iter().for_each(Server::stop);
}

#[test]
fn nobody_but_hosts_reaches_the_clusters_own_etcd() {
    let site = site("a");
    let made = init(&site, &["--etcd", "managed"]);
    assert!(made.status.success(), "{}", said(&made));
    let server = site.start();
    let url = site.json(&["cluster", "directory"])["members"][0]["address"].as_str().expect("it").to_owned();
    let person = site.path("ann");
    let login = site.ask(&["person", "token", "ann", "--role", "admin"]);
    let login = output(command(PROGRAM).args(["login", "--identity", text(&person), login.trim()]));
    assert!(login.status.success(), "{}", said(&login));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let read = |identity: &std::path::Path| {
        let file = |name: &str| identity.join(name);
        let tls = Tls {
            authorities: file("ca-cert.pem"),
            own: Some((file("client-cert.pem"), file("client-key.pem"))),
            name: Some("host.drystone.internal".to_owned()),
        };
        let prefix = "/drystone/".to_owned();
        let options = Options { endpoints: vec![url.clone()], prefix, tls: Some(tls), user: None };
        runtime.block_on(Etcd::new(options).expect("its files").get("cluster"))
    };
    assert!(read(&site.path("d/identity")).is_ok_and(|found| found.is_some()));
    let refused = read(&person);
    assert!(refused.is_err(), "a person's certificate is of no use there: {refused:?}");
    // Something else has the port.
    server.stop();
    let other = self::site("b");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port();
    let mut other = other;
    let changed: Vec<String> = other
        .config()
        .lines()
        .map(|line| match line.starts_with("clients = ") {
            true => format!("clients = \"127.0.0.1:{port}\""),
            false => line.to_owned(),
        })
        .collect();
    other.set_config(&(changed.join("\n") + "\n"));
    expect(&init(&other, &["--etcd", "managed"]), 3, "cannot listen at");
}
