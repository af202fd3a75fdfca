//! `rebuild`: what a guest feels while a copy of its disk is made anew elsewhere, beside what it feels when nothing is: both in
//! one run, with the same load. What it feels when nothing is copied is measured once more after: what a disk takes for itself
//! changes within minutes, most of all a virtual one. The limit is held against what was before.

use crate::bench::{Bench, DISK, Ground, Plan, Settings};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::load::{Done, Shape};
use crate::meter::{Summary, summary};
use crate::report::{Report, Round};
use crate::stolen::Ticks;
use base::units::{GIB, MIB};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A guest that is busy, and has room left.
const IOS_PER_SECOND: u32 = 300;
/// How long it is watched while nothing is copied, before and after.
const IDLE: Duration = Duration::from_secs(15);
/// How long it then takes until what the emptied host had is gone.
const CLEARED: Duration = Duration::from_secs(5);
/// What 99 of 100 I/Os may take, compared with then.
const RATIO_MAX: f64 = 2.0;
/// What is copied in a second at least, whatever guests feel (docs/design/0007, "How fast").
const FLOOR_BYTES: f64 = 32.0 * MIB as f64;

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
        let mut all = Latencies::default();
        let rounds = (0..bench.rounds("rebuild", 5)).try_for_each(|round| once(bench, round, &mut all));
        bench.report.notes.push(all.in_words());
        rounds
    }))
}

/// Microseconds of the I/Os of all rounds.
#[derive(Default)]
struct Latencies {
    before: Vec<u32>,
    beside: Vec<u32>,
    after: Vec<u32>,
}

impl Latencies {
    /// One round's idle time is a few thousand I/Os: what a disk takes for itself within them is most of how rounds differ.
    fn in_words(self) -> String {
        let [before, beside, after] = [self.before, self.beside, self.after].map(|one| summary(one).p99_ms);
        format!(
            "all rounds: 99 % of I/Os within {beside:.2} ms, {before:.2} ms idle before: {:.2} times; {after:.2} ms idle after, {:.2} \
             times of before",
            beside / before,
            after / before
        )
    }
}

/// A host that holds a copy, and not the guest, is emptied: the third gets the copy, all of it.
fn once(bench: &mut Bench, index: usize, all: &mut Latencies) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[index % 2].clone(), holders[(index + 1) % 2].clone());
    let shape = Shape { per_second: Some(IOS_PER_SECOND), ..Shape::random(bench.settings.depth) };
    let (idle, stolen_idle) = alone(bench, &user, &shape, &mut all.before)?;
    let load = bench.attach(&user, &shape)?;
    let (began, ticks) = (Instant::now(), Ticks::now());
    let empty = ["host", "maintenance", victim.as_str(), "--mode", "full-evacuation"];
    bench.cluster.apart()?.say(&user, &empty)?;
    wait_for("the copy stands elsewhere", || {
        let disk = bench.cluster.disk(DISK)?;
        Ok((!disk.holders().contains(&victim) && disk.is_whole()).then_some(()))
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let stolen = Ticks::now().stolen_since(ticks);
    let busy = counted(bench, load.stop()?, &mut all.beside);
    sleep(CLEARED);
    let (after, stolen_after) = alone(bench, &user, &shape, &mut all.after)?;
    bench.cluster.apart()?.say(&user, &["host", "maintenance", &victim, "--end"])?;
    let copied = (bench.ledger.block_count() * crate::stamp::BLOCK as u64) as f64;
    let (ratio, pace) = (busy.p99_ms / idle.p99_ms, copied / seconds);
    let mut round = Round {
        number: index + 1,
        fault: "rebuild".to_owned(),
        host: victim,
        held: "component".to_owned(),
        copied_bytes: copied as u64,
        whole_seconds: seconds,
        note: format!(
            "99 % of I/Os within {:.2} ms, {:.2} ms idle: {ratio:.2} times; {:.0} MiB/s; {:.2} ms idle after; stolen by other \
             machines: {stolen:.1} % of processors' time, {stolen_idle:.1} % and {stolen_after:.1} % idle",
            busy.p99_ms,
            idle.p99_ms,
            pace / MIB as f64,
            after.p99_ms
        ),
        ..Round::default()
    };
    if ratio > RATIO_MAX {
        round.broken.push(format!("99 % of I/Os took {ratio:.2} times as long, over {RATIO_MAX}"));
    }
    if pace < FLOOR_BYTES {
        round.broken.push(format!("{:.1} MiB were copied a second, below the floor", pace / MIB as f64));
    }
    bench.tell(&round);
    bench.report.rounds.push(round);
    bench.read_back(&user)
}

/// What I/Os take while nothing is copied, and what was stolen meanwhile, in percent.
fn alone(
    bench: &mut Bench,
    user: &str,
    shape: &Shape,
    all: &mut Vec<u32>,
) -> Result<(Summary, f64), Failure> {
    let load = bench.attach(user, shape)?;
    bench.cluster.wait_for_owner(DISK, user)?;
    let ticks = Ticks::now();
    sleep(IDLE);
    let stolen = Ticks::now().stolen_since(ticks);
    Ok((counted(bench, load.stop()?, all), stolen))
}

fn counted(bench: &mut Bench, done: Done, all: &mut Vec<u32>) -> Summary {
    bench.report.reads += done.reads;
    bench.report.writes += done.writes;
    all.extend(&done.latencies_us);
    summary(done.latencies_us)
}
