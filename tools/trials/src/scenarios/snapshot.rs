//! `snapshot`: an old snapshot of etcd is restored after a copy has missed writes, and hosts restart with it in every order. Nobody may
//! read what is old. Then the directory is made anew as the guide has it, and all that was acknowledged is there.

use crate::apart::MEMBERS;
use crate::bench::{Bench, DISK, Ground, Plan, Settings, WARM_UP, unix_seconds};
use crate::failure::Failure;
use crate::load::Shape;
use crate::report::{Report, Round};
use std::thread::sleep;
use std::time::Duration;

/// How long writes go on that a copy misses.
const MISSED: Duration = Duration::from_secs(3);
/// How long hosts have with the old records: longer than they wait for others that may be starting.
const OLD: Duration = Duration::from_secs(14);
/// How long somebody tries to read at each host then.
const READ: Duration = Duration::from_secs(3);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("snapshot") })?;
    Ok(bench.run(|bench| (0..bench.rounds("old snapshot", 6)).try_for_each(|round| once(bench, round))))
}

fn once(bench: &mut Bench, number: usize) -> Result<(), Failure> {
    let began = unix_seconds();
    let hosts = bench.cluster.names().to_vec();
    let holders = bench.disk.holders();
    let (user, behind) = (holders[number % 2].clone(), holders[(number + 1) % 2].clone());
    let third = hosts.iter().find(|host| !holders.contains(host)).cloned().unwrap_or_else(|| user.clone());
    // Whoever missed the writes starts in any case; with it all others, none, or one of them.
    let restarted: Vec<String> = match number % 4 {
        0 => vec![user.clone(), third],
        1 => Vec::new(),
        2 => vec![user.clone()],
        _ => vec![third],
    };
    let told = bench.report.rounds.len();
    set_back(bench, (&user, &behind), &restarted)?;
    let mut notes = Vec::new();
    for host in &hosts {
        let seen = try_to_read(bench, host);
        let lines = [&["disk", "list"][..], &["status"], &["health"]].map(|words| said(bench, host, words));
        let [list, status, health] = lines;
        let seen = seen.map_or_else(|why| why, |reads| format!("{reads} reads answered"));
        notes.push(format!("host {host}: {seen}; disk list: {list}; status: {status}; health: {health}"));
    }
    recover(bench, &hosts, &user)?;
    for host in &hosts {
        bench.read_back(host)?;
    }
    bench.cluster.wait_until_whole(DISK)?;
    let broken: Vec<String> = bench.new_findings().into_iter().collect();
    let fault = format!("old snapshot; {} of {} hosts restarted", restarted.len() + 1, hosts.len());
    if !broken.is_empty() {
        bench.report.events.extend(bench.cluster.events(began));
    }
    let round = Round { number: told + 1, fault, host: behind, broken, ..Round::default() };
    bench.tell(&round);
    bench.report.rounds.push(round);
    notes.into_iter().for_each(|note| bench.note(note));
    Ok(())
}

/// What a host says, on one line, whether that is well or not.
fn said(bench: &mut Bench, host: &str, words: &[&str]) -> String {
    let said = bench.cluster.apart().and_then(|apart| apart.say_whatever(host, words));
    said.unwrap_or_else(|failure| failure.to_string()).trim().replace('\n', " | ")
}

/// A snapshot is made, a copy misses writes, the snapshot is restored, and hosts restart.
fn set_back(
    bench: &mut Bench,
    (user, behind): (&String, &String),
    restarted: &[String],
) -> Result<(), Failure> {
    let apart = bench.cluster.apart()?;
    apart.kill_members(&MEMBERS)?;
    apart.copy_data()?;
    start_members(bench)?;
    bench.cluster.wait_for_directory()?;
    let load = bench.attach_load(user)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    sleep(WARM_UP);
    bench.cluster.kill(std::slice::from_ref(behind))?;
    sleep(MISSED);
    bench.stop(load)?;
    let apart = bench.cluster.apart()?;
    apart.kill_members(&MEMBERS)?;
    apart.restore_data()?;
    start_members(bench)?;
    bench.cluster.kill(restarted)?;
    bench.cluster.start_host(behind)?;
    restarted.iter().try_for_each(|host| bench.cluster.start_host(host))?;
    sleep(OLD);
    Ok(())
}

/// Reads at a host; what comes is compared with what was acknowledged. The number of reads, or why there is none.
fn try_to_read(bench: &mut Bench, host: &str) -> Result<u64, String> {
    let depth = bench.settings.depth;
    let load = bench.attach(host, &Shape::observer(depth));
    let load = load.map_err(|failure| format!("attaching is refused: {failure}"))?;
    load.may_break();
    sleep(READ);
    let before = bench.report.reads;
    bench.abandon(load);
    match bench.report.reads - before {
        0 => Err("no read is answered".to_owned()),
        count => Ok(count),
    }
}

/// The guide's way out: an empty etcd, a new directory from what the hosts know, and hosts that take it up.
fn recover(bench: &mut Bench, hosts: &[String], user: &str) -> Result<(), Failure> {
    let apart = bench.cluster.apart()?;
    apart.kill_members(&MEMBERS)?;
    apart.forget_data()?;
    MEMBERS.iter().try_for_each(|member| apart.start_member(member, false))?;
    sleep(MISSED);
    apart.say(user, &["cluster", "rebuild-directory", "--yes"])?;
    for host in hosts {
        bench.cluster.kill(std::slice::from_ref(host))?;
        bench.cluster.start_host(host)?;
    }
    bench.cluster.wait_until_reachable()?;
    bench.cluster.wait_for_directory()?;
    bench.cluster.wait_until_served(user, DISK)
}

fn start_members(bench: &mut Bench) -> Result<(), Failure> {
    let apart = bench.cluster.apart()?;
    MEMBERS.iter().try_for_each(|member| apart.start_member(member, true))
}
