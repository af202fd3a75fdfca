//! `failover`: QEMU has a disk by a name that stands for all hosts, as `drystone attach --by-name` prints it; the host that it is
//! connected to is lost, and it goes on at another one without an error.
//!
//! QEMU is here `qemu-storage-daemon`: the same block layer and NBD client as of a machine, which hands the disk on to a client
//! that verifies. The disk is not shared: the next host must get it from the one that is lost.

use crate::apart::GUESTS;
use crate::bench::{Bench, DISK, Fault, Ground, Plan, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::load::Load;
use crate::namespaces::Cut;
use crate::report::Report;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The name of all hosts.
const NAME: &str = "storage.trial";
/// How long a killed host is gone: longer than QEMU needs to find another.
const GONE: Duration = Duration::from_secs(6);
/// How long one that is cut off is: it counts as away after 30 s to 45 s, and QEMU asks every 16 s by then.
const CUT: Duration = Duration::from_secs(75);
/// QEMU tries again at once, after 1 s, 2 s and 4 s.
const KILLED_LIMIT_MS: f64 = 5000.0;
/// Until it counts as away, and QEMU asks again.
const CUT_LIMIT_MS: f64 = 75_000.0;
/// What the guide tells to set where guests run: a peer that is silent is given up after some seconds and not after a quarter of
/// an hour, or never where nothing is left to be sent; and an address that does not answer after three.
const PARAMETERS: [(&str, u32); 5] = [
    ("net.ipv4.tcp_retries2", 5),
    ("net.ipv4.tcp_syn_retries", 1),
    ("net.ipv4.tcp_keepalive_time", 10),
    ("net.ipv4.tcp_keepalive_intvl", 2),
    ("net.ipv4.tcp_keepalive_probes", 3),
];

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { ground: Ground::Apart, is_shared: false, ..Plan::usual("failover") };
    let bench = Bench::start(settings, plan)?;
    let socket = PathBuf::from(&bench.report.folder).join("guest.sock");
    Ok(bench.run(|bench| {
        start_daemon(bench, &socket)?;
        let load = bench.attach_load_at(&socket)?;
        for _ in 0..bench.rounds("failover, killed", 6) {
            once(bench, &load, "failover, killed")?;
        }
        for _ in 0..bench.rounds("failover, cut off", 1) {
            once(bench, &load, "failover, cut off")?;
        }
        bench.stop(load)?;
        bench.cluster.apart()?.end_guest()?;
        wait_for("nobody has the disk any more", || {
            Ok(bench.cluster.disk(DISK)?.attached.is_empty().then_some(()))
        })
    }))
}

/// Starts QEMU's daemon with what the guide tells: the name in `/etc/hosts`, and the printed options.
fn start_daemon(bench: &mut Bench, socket: &Path) -> Result<(), Failure> {
    let first = bench.cluster.names()[0].clone();
    let apart = bench.cluster.apart()?;
    let by_name = format!("--by-name={NAME}");
    let hosts = apart.say(&first, &["attach", DISK, &by_name, "--format", "hosts"])?;
    apart.network.set_hosts(GUESTS, hosts.trim())?;
    for (name, value) in PARAMETERS {
        apart.network.set_parameter(GUESTS, name, value)?;
    }
    let printed = apart.say(&first, &["attach", DISK, &by_name, "--format", "qemu"])?;
    apart.start_guest("qemu-storage-daemon", &daemon_words(&printed, socket)?)?;
    wait_for("QEMU hands the disk on", || Ok(crate::nbd::attach(socket, DISK).ok().map(drop)))
}

/// The options of a machine as those of the daemon, which has no devices but exports.
pub(super) fn daemon_words(printed: &str, socket: &Path) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut given = printed.split_whitespace();
    let mut node = None;
    while let (Some(option), Some(value)) = (given.next(), given.next()) {
        if option == "-blockdev" {
            node = value.split(',').find_map(|part| part.strip_prefix("node-name=")).map(str::to_owned);
        }
        if option != "-device" {
            words.extend([format!("-{option}"), value.to_owned()]);
        }
    }
    let node = node.ok_or_else(|| Failure::Refused(format!("no block device is printed: {printed}")))?;
    let server = format!("addr.type=unix,addr.path={}", socket.display());
    let export = format!("type=nbd,id=guest,node-name={node},name={DISK},writable=on");
    words.extend(["--nbd-server".to_owned(), server, "--export".to_owned(), export]);
    Ok(words)
}

/// The host at which QEMU has the disk.
fn attached(bench: &Bench) -> Result<String, Failure> {
    wait_for("the disk is attached at one host", || {
        let attached = bench.cluster.disk(DISK)?.attached;
        Ok(match attached.as_slice() {
            [one] => Some(one.host.clone()),
            _ => None,
        })
    })
}

fn once(bench: &mut Bench, load: &Load, name: &str) -> Result<(), Failure> {
    let is_cut = name.ends_with("cut off");
    sleep(WARM_UP);
    let victim = attached(bench)?;
    let hosts = [victim.clone()];
    let limit_ms = if is_cut { CUT_LIMIT_MS } else { KILLED_LIMIT_MS };
    let fault = Fault { name, hosts: &hosts, limit_ms: Some(limit_ms) };
    let strike = |bench: &mut Bench| {
        if is_cut {
            bench.cluster.apart()?.network.cut(&victim, Cut::Both)?;
            sleep(CUT);
        } else {
            bench.cluster.kill(&hosts)?;
            sleep(GONE);
        }
        Ok(())
    };
    let mend = |bench: &mut Bench| match is_cut {
        true => bench.cluster.apart()?.network.mend(&victim),
        false => bench.cluster.start_host(&victim),
    };
    bench.round(&fault, &[load], strike, mend)?;
    match attached(bench)? {
        host if host == victim => {
            Err(Failure::Refused(format!("the disk is still attached at host {victim}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_options_are_those_of_the_daemon_but_for_the_device() {
        let printed = "-object tls-creds-x509,id=t,dir=/d -blockdev driver=nbd,node-name=disk-web,export=web -device virtio,drive=x";
        let words = daemon_words(printed, Path::new("/s")).expect("a block device");
        let expected = "--object tls-creds-x509,id=t,dir=/d --blockdev driver=nbd,node-name=disk-web,export=web \
                        --nbd-server addr.type=unix,addr.path=/s --export type=nbd,id=guest,node-name=disk-web,name=trial,writable=on";
        assert_eq!(words.join(" "), expected);
        daemon_words("-device x", Path::new("/s")).expect_err("nothing to hand on");
    }
}
