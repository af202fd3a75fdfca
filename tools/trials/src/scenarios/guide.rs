//! `guide`: the guide of a cluster, typed as it stands: a cluster is made, a disk attached by QEMU, a host lost and replaced, and
//! all is whole again, while what is written is verified.

use super::failover::daemon_words;
use crate::bench::{Bench, Ground, KILL_LIMIT_MS, Plan, Settings, WARM_UP};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::guide;
use crate::ledger::Ledger;
use crate::load::{Load, Pattern, Shape};
use crate::report::{Report, Round};
use crate::stamp::BLOCK;
use base::units::MIB;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The disk of the guide.
const WEB: &str = "web";
/// Bytes of it that are written and read.
const AREA_BYTES: u64 = 64 * MIB;
/// How long the host is gone before anybody does something.
const GONE: Duration = Duration::from_secs(5);

/// Runs it: once, as it replaces a machine.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { ground: Ground::Apart, ..Plan::usual("guide") })?;
    let socket = PathBuf::from(&bench.report.folder).join("guest.sock");
    Ok(bench.run(|bench| once(bench, &socket)))
}

/// Types the commands below a heading that begin so, on a host.
fn type_there(
    bench: &mut Bench,
    host: &str,
    beginning: &str,
    replaced: &[(&str, &str)],
) -> Result<String, Failure> {
    let mut said = Err(Failure::Refused(format!("the guide has no `{beginning}`")));
    for line in guide::commands(guide::CLUSTER, "Use it")?.iter().filter(|line| line.starts_with(beginning)) {
        let mut words = guide::words(line, replaced)?;
        // At a terminal it asks.
        if words.contains(&"remove".to_owned()) {
            words.push("--yes".to_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        said = bench.cluster.apart()?.say(host, &words);
    }
    said
}

fn once(bench: &mut Bench, socket: &Path) -> Result<(), Failure> {
    let first = bench.cluster.names()[0].clone();
    type_there(bench, &first, "drystone disk create", &[])?;
    type_there(bench, &first, "drystone disk show", &[])?;
    // The guide's QEMU is a whole machine; its daemon has the same client of NBD.
    let printed = bench.cluster.apart()?.say(&first, &["attach", WEB, "--format", "qemu"])?;
    bench.cluster.apart()?.start_guest("qemu-storage-daemon", &daemon_words(&printed, socket)?)?;
    wait_for("QEMU hands the disk on", || Ok(crate::nbd::attach(socket, crate::bench::DISK).ok().map(drop)))?;
    let ledger = Arc::new(Ledger::new(AREA_BYTES / BLOCK as u64, bench.random.bits()));
    let load = Load::start(socket, crate::bench::DISK, &ledger, 1, &Shape::random(bench.settings.depth))?;
    sleep(WARM_UP);
    let holders = bench.cluster.disk(WEB)?.holders();
    let lost = holders.into_iter().find(|host| *host != first);
    let lost = lost.ok_or_else(|| Failure::Refused("only one host holds the disk".to_owned()))?;
    let mut round = Round {
        number: 1,
        fault: "a host is lost and replaced".to_owned(),
        host: lost.clone(),
        held: "component".to_owned(),
        limit_ms: Some(KILL_LIMIT_MS),
        ..Round::default()
    };
    load.open_window();
    bench.cluster.kill(std::slice::from_ref(&lost))?;
    sleep(GONE);
    round.stall = load.close_window();
    load.open_window();
    let began = Instant::now();
    replace(bench, &first, &lost)?;
    bench.cluster.wait_until_whole(WEB)?;
    load.catch_up()?;
    round.whole_seconds = began.elapsed().as_secs_f64();
    round.stall_after = load.close_window();
    let done = load.stop()?;
    (bench.report.reads, bench.report.writes) = (done.reads, done.writes);
    let reader = Load::start(socket, crate::bench::DISK, &ledger, 2, &Shape::ordered(Pattern::ReadBack))?;
    ledger.settle(&reader.finish()?);
    let (count, findings) = ledger.findings();
    if count > 0 {
        round.broken.push(format!("{count} reads saw what cannot be: {}", findings.join("; ")));
    }
    round.judge();
    bench.tell(&round);
    bench.report.rounds.push(round);
    bench.cluster.apart()?.end_guest()
}

/// The lost host is taken out as soon as it counts as away, and another joins by the same commands as all did.
fn replace(bench: &mut Bench, first: &str, lost: &str) -> Result<(), Failure> {
    let mut refusal = None;
    let removed = wait_for("the lost host is taken out", || {
        let said = type_there(bench, first, "drystone host remove b", &[("b", lost)]);
        Ok(said.map_err(|failure| refusal = Some(failure)).ok())
    });
    removed.map_err(|late| refusal.unwrap_or(late))?;
    let token = type_there(bench, first, "drystone host token", &[])?;
    bench.cluster.replace(lost, token.trim())
}
