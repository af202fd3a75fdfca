//! `rolling`: every host is restarted in its turn, and certificates change, while guests write: no error, hardly a stall.

use super::owned_elsewhere;
use crate::bench::{Bench, DISK, Fault, Ground, Plan, SILENCE_LIMIT_MS, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::report::Report;
use std::thread::sleep;
use std::time::Duration;

/// Certificates change under load: nothing is felt but what a busy machine does by itself.
const UNFELT_LIMIT_MS: f64 = 250.0;
/// Certificates name seconds: what was made in another one is another one.
const SECOND: Duration = Duration::from_millis(1100);

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("rolling") })?;
    Ok(bench.run(|bench| {
        (0..bench.rounds("restart", 21)).try_for_each(|round| restart(bench, round))?;
        (0..bench.rounds("renew certificates", 10)).try_for_each(|_| renew(bench))?;
        (0..bench.rounds("replace the authority", 10)).try_for_each(|round| replace(bench, round))
    }))
}

/// A host with a component, or the owner whose disk is used elsewhere, ends as for an upgrade and starts again.
fn restart(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let (owner, user) = owned_elsewhere(bench, round)?;
    let anchor = bench.attach_load(&owner)?;
    bench.cluster.wait_for_owner(DISK, &owner)?;
    let load = bench.attach_load(&user)?;
    sleep(WARM_UP);
    anchor.may_break();
    let hosts = [owner.clone()];
    let fault = Fault { name: "restart", hosts: &hosts, limit_ms: Some(SILENCE_LIMIT_MS) };
    let strike = |bench: &mut Bench| bench.cluster.stop(&owner);
    bench.round(&fault, &[&load], strike, |bench| bench.cluster.start_host(&owner))?;
    bench.abandon(anchor);
    bench.stop(load)?;
    bench.read_back(&owner)
}

/// When each host's certificate was made, and by which authority.
fn certificates(bench: &mut Bench) -> Result<Vec<(String, String)>, Failure> {
    let host = bench.cluster.names()[0].clone();
    let told = bench.cluster.apart()?.say(&host, &["--json", "cluster", "certificates", "list"])?;
    let told: serde_json::Value = serde_json::from_str(&told)
        .map_err(|error| Failure::Refused(format!("the list of certificates: {error}")))?;
    let hosts = told["hosts"].as_array().cloned().unwrap_or_default();
    Ok(hosts.iter().map(|host| (host["issued"].to_string(), host["authority"].to_string())).collect())
}

/// Changes certificates under load, and waits until every host has another one.
fn change(bench: &mut Bench, name: &str, host: &str, words: &[&str]) -> Result<(), Failure> {
    let user = bench.disk.holders()[0].clone();
    let load = bench.attach_load(&user)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(WARM_UP);
    let before = certificates(bench)?;
    sleep(SECOND);
    let fault = Fault { name, hosts: &[], limit_ms: Some(UNFELT_LIMIT_MS) };
    let strike = |bench: &mut Bench| {
        bench.cluster.apart()?.say(host, words)?;
        wait_for("all hosts have another certificate", || {
            let now = certificates(bench)?;
            Ok((now.len() == before.len() && now.iter().all(|one| !before.contains(one))).then_some(()))
        })
    };
    bench.round(&fault, &[&load], strike, |_| Ok(()))?;
    bench.stop(load)?;
    bench.read_back(&user)
}

fn renew(bench: &mut Bench) -> Result<(), Failure> {
    let host = bench.cluster.names()[1].clone();
    change(bench, "renew certificates", &host, &["cluster", "certificates", "renew"])
}

/// Another host keeps the next authority, and the former one is dropped.
fn replace(bench: &mut Bench, round: usize) -> Result<(), Failure> {
    let names = bench.cluster.names();
    let keeper = names[(round + 1) % names.len()].clone();
    let former = certificates(bench)?.first().map(|(_, authority)| authority.trim_matches('"').to_owned());
    let former = former.ok_or_else(|| Failure::Refused("no host has a certificate".to_owned()))?;
    change(bench, "replace the authority", &keeper, &["cluster", "certificates", "add-authority"])?;
    let drop = ["cluster", "certificates", "drop-authority", &former, "--yes"];
    bench.cluster.apart()?.say(&keeper, &drop).map(std::mem::drop)
}
