//! One host today, three next month: a host that stood alone becomes the first of a cluster, with all its disks.

use super::cluster::SECONDS;
use super::host::Site;
use super::members::{expect, free_port, init, join_all, site};
use super::nbd::Client;
use super::tools::{said, wait_for};
use ::etcd::testing::Members;
use base::units::MIB;

/// The configuration of a host that stands alone, made from that of one of several.
fn alone(config: &str) -> String {
    let (own, _) = config.split_once("[cluster]").expect("it is one of several");
    own.to_owned()
}

#[test]
fn a_host_that_stood_alone_becomes_the_first_of_three_and_keeps_its_disks() {
    let etcd = Members::spawn(1);
    let mut sites: Vec<Site> = ["a", "b", "c"].iter().map(|name| site(&etcd, name, free_port())).collect();
    let several = sites[0].config().to_owned();
    sites[0].set_config(&alone(&several));
    let server = sites[0].start();
    sites[0].ask(&["policy", "create", "slow", "single", "iops_limit=100000"]);
    sites[0].ask(&["disk", "create", "web", "64MiB", "--policy", "slow"]);
    let mut client = sites[0].attach("web");
    for part in 0..8 {
        client.write(part * 8 * MIB, &[part as u8 + 1; 65536]).expect("it writes");
    }
    drop(client);
    let before = sites[0].json(&["disk", "show", "web"]);
    server.stop();

    sites[0].set_config(&several);
    let made = init(&sites[0]);
    assert!(
        made.status.success() && said(&made).contains("its disk is the cluster's first"),
        "{}",
        said(&made)
    );
    // The records are in etcd now, and nowhere else.
    sites[0].set_config(&alone(&several));
    let (code, refused) = sites[0].refused(&[]);
    assert!(code == 3 && refused.contains("names no directory"), "{refused}");
    sites[0].set_config(&several);
    expect(&init(&sites[0]), 5, "holds the cluster");

    let servers = join_all(&sites);
    let after = sites[0].json(&["disk", "show", "web"]);
    assert_eq!(
        (&after["id"], &after["created"], &after["rules"]),
        (&before["id"], &before["created"], &before["rules"])
    );
    assert_eq!(sites[1].json(&["policy", "show", "slow"])["rules"]["iops_limit"], "100000");
    for site in &sites {
        let mut client = wait_for("every host serves it", SECONDS, || {
            Client::attach(&site.path("d/nbd.sock"), "web").ok()
        });
        for part in 0..8 {
            assert_eq!(client.read(part * 8 * MIB, 65536), Ok(vec![part as u8 + 1; 65536]), "part {part}");
        }
        client.write(MIB, &[99; 4096]).expect("it goes on");
    }
    let disk = sites[2].json(&["disk", "create", "new", "64MiB", "--policy", "default,stripes=1"]);
    let hosts = disk["components"].as_array().expect("components").iter().map(|one| one["host"].to_string());
    let hosts: std::collections::BTreeSet<String> = hosts.collect();
    assert_eq!(hosts.len(), 2, "{disk}");
    servers.into_iter().for_each(super::host::Server::stop);
}
