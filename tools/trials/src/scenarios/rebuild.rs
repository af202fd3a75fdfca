//! `rebuild`: what a guest feels while a copy of its disk is made anew elsewhere, beside what it feels when nothing is: both in
//! one run, by the same client under the same load. What it feels when nothing is copied is measured before and after: what a disk
//! takes for itself changes within minutes, most of all a virtual one.
//!
//! A round beside which other machines took more than a twentieth of the processors' time is told and not judged, and done again.

use crate::bench::{Bench, DISK, Ground, Plan, Settings};
use crate::cluster::wait_looking;
use crate::failure::Failure;
use crate::load::{Load, Shape};
use crate::meter::summary;
use crate::report::{Report, Round};
use crate::stolen::Ticks;
use base::units::{GIB, MIB};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A guest that is busy, and has room left.
const IOS_PER_SECOND: u32 = 300;
/// How long it is watched while nothing is copied, before and after.
const IDLE: Duration = Duration::from_secs(15);
/// How long it takes until the disk is the guest's host's own, and what filled it is forgotten.
const SETTLED: Duration = Duration::from_secs(10);
/// How long it takes in the end until what the emptied host had is gone.
const CLEARED: Duration = Duration::from_secs(5);
/// How often it is looked whether the copy is made: an answer takes every host's word, and guests would feel more looks than these.
const LOOK: Duration = Duration::from_millis(500);
/// What 99 of 100 I/Os may take, compared with then.
const RATIO_MAX: f64 = 2.0;
/// What is copied in a second at least, whatever guests feel (docs/design/0007, "The pace of copies").
const FLOOR_BYTES: f64 = 32.0 * MIB as f64;
/// Percent of the processors' time that other machines may take of a round that is judged.
const STOLEN_MAX: f64 = 5.0;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { ground: Ground::Apart, area_bytes: 2 * GIB, ..Plan::usual("rebuild") };
    let bench = Bench::start(settings, plan)?;
    Ok(bench.run(|bench| {
        let first = bench.disk.holders()[0].clone();
        // Holes would be copied for nothing.
        bench.fill(&first)?;
        let wanted = bench.rounds("rebuild", 5);
        let (mut all, mut judged) = (Latencies::default(), 0);
        for index in 0..2 * wanted {
            judged += usize::from(once(bench, index, &mut all)?);
            if judged == wanted {
                break;
            }
        }
        bench.report.notes.push(all.in_words(judged));
        match judged {
            0 => Err(Failure::Refused(format!(
                "no round can be judged: other machines took more than {STOLEN_MAX} % of the processors' time in each"
            ))),
            _ => Ok(()),
        }
    }))
}

/// Microseconds of the I/Os of all rounds.
#[derive(Default)]
struct Latencies {
    idle: Vec<u32>,
    beside: Vec<u32>,
}

impl Latencies {
    /// One round's idle time is a few thousand I/Os: what a disk takes for itself within them is most of how rounds differ.
    fn in_words(self, judged: usize) -> String {
        let [idle, beside] = [self.idle, self.beside].map(|one| summary(one).p99_ms);
        format!(
            "the {judged} rounds that are judged: 99 % of I/Os within {beside:.2} ms, {idle:.2} ms idle: {:.2} times",
            beside / idle
        )
    }
}

/// A stretch of the load.
struct Stretch {
    latencies_us: Vec<u32>,
    /// Percent of the processors' time that other machines took.
    stolen: f64,
    /// The longest that the file system took for a flush by itself.
    flush_ms: f64,
}

impl Stretch {
    /// Watches a client while something goes on.
    fn watch(
        bench: &mut Bench,
        load: &Load,
        during: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    ) -> Result<Stretch, Failure> {
        load.latencies(); // What was before is no part of it.
        bench.flushes.take();
        let ticks = Ticks::now();
        during(bench)?;
        let (stolen, latencies_us) = (Ticks::now().stolen_since(ticks), load.latencies());
        bench.latencies_us.extend(&latencies_us);
        Ok(Stretch { latencies_us, stolen, flush_ms: bench.flushes.take().longest_ms() })
    }

    fn idle(bench: &mut Bench, load: &Load) -> Result<Stretch, Failure> {
        Stretch::watch(bench, load, |_| {
            sleep(IDLE);
            Ok(())
        })
    }

    fn p99_ms(&self) -> f64 {
        summary(self.latencies_us.clone()).p99_ms
    }
}

/// A host that holds a copy, and not the guest, is emptied: the third gets the copy, all of it. Says whether the round was judged.
fn once(bench: &mut Bench, index: usize, all: &mut Latencies) -> Result<bool, Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[index % 2].clone(), holders[(index + 1) % 2].clone());
    let shape = Shape { per_second: Some(IOS_PER_SECOND), ..Shape::random(bench.settings.depth) };
    let load = bench.attach(&user, &shape)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(SETTLED);
    let before = Stretch::idle(bench, &load)?;
    let mut seconds = 0.0;
    let beside = Stretch::watch(bench, &load, |bench| {
        let began = Instant::now();
        let rebuilt = rebuild(bench, &user, &victim);
        seconds = began.elapsed().as_secs_f64();
        rebuilt
    })?;
    sleep(CLEARED);
    let after = Stretch::idle(bench, &load)?;
    bench.stop(load)?;
    bench.cluster.apart()?.say(&user, &["host", "maintenance", &victim, "--end"])?;
    let copied = (bench.ledger.block_count() * crate::stamp::BLOCK as u64) as f64;
    let mut round = Round {
        number: index + 1,
        fault: "rebuild".to_owned(),
        host: victim,
        held: "component".to_owned(),
        copied_bytes: copied as u64,
        whole_seconds: seconds,
        ..Round::default()
    };
    let is_judged = judge(&mut round, [before, beside, after], copied / seconds, all);
    bench.tell(&round);
    bench.report.rounds.push(round);
    bench.read_back(&user)?;
    Ok(is_judged)
}

/// Empties a host, and waits until the copy stands elsewhere.
fn rebuild(bench: &mut Bench, user: &str, victim: &str) -> Result<(), Failure> {
    bench.cluster.apart()?.say(user, &["host", "maintenance", victim, "--mode", "full-evacuation"])?;
    wait_looking("the copy stands elsewhere", LOOK, || {
        let disk = bench.cluster.disk(DISK)?;
        Ok((!disk.holders().iter().any(|holder| holder == victim) && disk.is_whole()).then_some(()))
    })
}

/// Compares what a client felt before, beside and after copies of so many bytes a second, and says whether it may be compared.
fn judge(round: &mut Round, [before, beside, after]: [Stretch; 3], pace: f64, all: &mut Latencies) -> bool {
    let idle_us = [&before, &after].map(|one| one.latencies_us.as_slice()).concat();
    let (idle_ms, beside_ms) = (summary(idle_us.clone()).p99_ms, beside.p99_ms());
    let ratio = beside_ms / idle_ms;
    let stolen = [&before, &beside, &after].map(|one| one.stolen);
    let is_judged = stolen.iter().all(|stolen| *stolen <= STOLEN_MAX);
    round.note = format!(
        "99 % of I/Os within {beside_ms:.2} ms, {idle_ms:.2} ms idle ({:.2} before, {:.2} after): {ratio:.2} times; {:.0} MiB/s; other \
         machines took {:.1} % of the processors' time, {:.1} and {:.1} % idle; the longest flush by itself {:.0} ms, {:.0} and {:.0} ms \
         idle{}",
        before.p99_ms(),
        after.p99_ms(),
        pace / MIB as f64,
        stolen[1],
        stolen[0],
        stolen[2],
        beside.flush_ms,
        before.flush_ms,
        after.flush_ms,
        if is_judged { "" } else { "; not judged" }
    );
    if is_judged && ratio > RATIO_MAX {
        round.broken.push(format!("99 % of I/Os took {ratio:.2} times as long, over {RATIO_MAX}"));
    }
    if pace < FLOOR_BYTES {
        round.broken.push(format!("{:.1} MiB were copied a second, below the floor", pace / MIB as f64));
    }
    if is_judged {
        all.idle.extend(idle_us);
        all.beside.extend(beside.latencies_us);
    }
    is_judged
}
