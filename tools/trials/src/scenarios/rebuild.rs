//! `rebuild`: what a guest feels while a copy of its disk is made anew elsewhere, beside what it feels when nothing is: both in
//! one run, by the same client under the same load. What it feels when nothing is copied is measured before and after: what a disk
//! takes for itself changes within minutes, most of all a virtual one.
//!
//! A round beside which other machines took more than a twentieth of the processors' time is told and not judged, and done again.
//! The limit is of all I/Os. What it would be without those beside which the device under the hosts' files stood still
//! ([`crate::standstills`]) is told beside it, so that it can be seen what a round that is over it has found.

use crate::bench::{Bench, DISK, Ground, Plan, Settings};
use crate::cluster::wait_looking;
use crate::failure::Failure;
use crate::load::{Load, Shape};
use crate::meter::{Answered, summary};
use crate::report::{Report, Round};
use crate::standstills::Standstills;
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
/// A device that has answered nothing for longer than this stands still: it answers within 1 to 3 ms beside copies and without.
const STOOD_STILL_MS: f64 = 10.0;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { ground: Ground::Apart, area_bytes: 2 * GIB, ..Plan::usual("rebuild") };
    let bench = Bench::start(settings, plan)?;
    Ok(bench.run(|bench| {
        let first = bench.disk.holders()[0].clone();
        let standstills = Standstills::start(&bench.settings.folder)?;
        // Holes would be copied for nothing.
        bench.fill(&first)?;
        let wanted = bench.rounds("rebuild", 5);
        let mut rounds = Rounds::default();
        for index in 0..2 * wanted {
            once(bench, index, &standstills, &mut rounds)?;
            if rounds.judged == wanted {
                break;
            }
        }
        bench.report.notes.push(rounds.in_words());
        match rounds.judged {
            0 => Err(Failure::Refused(format!(
                "no round can be judged: other machines took more than {STOLEN_MAX} % of the processors' time in each"
            ))),
            _ => Ok(()),
        }
    }))
}

/// What was felt in a time: microseconds of I/Os.
#[derive(Default)]
struct Felt {
    /// Of those beside which the device went on.
    took_us: Vec<u32>,
    /// Of those beside which it stood still.
    stood_us: Vec<u32>,
}

impl Felt {
    fn add(&mut self, other: &Felt) {
        self.took_us.extend(&other.took_us);
        self.stood_us.extend(&other.stood_us);
    }

    /// Of two times together.
    fn of(one: &Felt, other: &Felt) -> Felt {
        let mut both = Felt::default();
        [one, other].iter().for_each(|felt| both.add(felt));
        both
    }

    /// What 99 of 100 of those beside which it went on took at most.
    fn p99_going_ms(&self) -> f64 {
        summary(self.took_us.clone()).p99_ms
    }

    /// What 99 of 100 of all took at most.
    fn p99_ms(&self) -> f64 {
        summary([self.took_us.as_slice(), &self.stood_us].concat()).p99_ms
    }

    /// Percent of I/Os beside which it stood still.
    fn stood(&self) -> f64 {
        self.stood_us.len() as f64 * 100.0 / (self.took_us.len() + self.stood_us.len()).max(1) as f64
    }
}

/// What was felt beside copies, and idle.
struct Compared<'a> {
    beside: &'a Felt,
    idle: &'a Felt,
}

impl Compared<'_> {
    fn ratio(&self) -> f64 {
        self.beside.p99_ms() / self.idle.p99_ms()
    }

    /// The same without the I/Os beside which the device stood still.
    fn ratio_going(&self) -> f64 {
        self.beside.p99_going_ms() / self.idle.p99_going_ms()
    }

    fn in_words(&self) -> String {
        let (beside, idle) = (self.beside, self.idle);
        format!(
            "99 % of I/Os within {:.2} ms, {:.2} ms idle: {:.2} times (the device stood still beside {:.1} %, {:.1} % idle; without these \
             {:.2} ms, {:.2} ms idle: {:.2} times)",
            beside.p99_ms(),
            idle.p99_ms(),
            self.ratio(),
            beside.stood(),
            idle.stood(),
            beside.p99_going_ms(),
            idle.p99_going_ms(),
            self.ratio_going()
        )
    }
}

/// One round's idle time is a few thousand I/Os: what a disk takes for itself within them is most of how rounds differ.
#[derive(Default)]
struct Rounds {
    judged: usize,
    idle: Felt,
    beside: Felt,
}

impl Rounds {
    fn in_words(&self) -> String {
        let compared = Compared { beside: &self.beside, idle: &self.idle };
        format!("the {} rounds that are judged: {}", self.judged, compared.in_words())
    }
}

/// A stretch of the load.
struct Stretch {
    felt: Felt,
    /// Percent of the processors' time that other machines took.
    stolen: f64,
    /// The longest that the device under the hosts' files stood still.
    still_ms: f64,
}

impl Stretch {
    /// Watches a client while something goes on.
    fn watch(
        bench: &mut Bench,
        (load, standstills): (&Load, &Standstills),
        during: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    ) -> Result<Stretch, Failure> {
        load.answered(); // What was before is no part of it.
        standstills.take();
        let ticks = Ticks::now();
        during(bench)?;
        let (stolen, answered, still) =
            (Ticks::now().stolen_since(ticks), load.answered(), standstills.take());
        let mut felt = Felt::default();
        for Answered { begun, took_us } in answered {
            let sent = bench.ledger.at(begun);
            let still_ms = still.beside_ms(sent, sent + Duration::from_micros(took_us.into()));
            let of = if still_ms > STOOD_STILL_MS { &mut felt.stood_us } else { &mut felt.took_us };
            of.push(took_us);
        }
        bench.latencies_us.extend(felt.took_us.iter().chain(&felt.stood_us));
        Ok(Stretch { felt, stolen, still_ms: still.longest_ms() })
    }

    fn idle(bench: &mut Bench, watched: (&Load, &Standstills)) -> Result<Stretch, Failure> {
        Stretch::watch(bench, watched, |_| {
            sleep(IDLE);
            Ok(())
        })
    }

    /// Whether it tells anything of what was tried.
    fn tells(&self) -> bool {
        self.stolen <= STOLEN_MAX
    }
}

/// A host that holds a copy, and not the guest, is emptied: the third gets the copy, all of it.
fn once(
    bench: &mut Bench,
    index: usize,
    standstills: &Standstills,
    rounds: &mut Rounds,
) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[index % 2].clone(), holders[(index + 1) % 2].clone());
    let shape = Shape { per_second: Some(IOS_PER_SECOND), ..Shape::random(bench.settings.depth) };
    let load = bench.attach(&user, &shape)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(SETTLED);
    let before = Stretch::idle(bench, (&load, standstills))?;
    let mut seconds = 0.0;
    let beside = Stretch::watch(bench, (&load, standstills), |bench| {
        let began = Instant::now();
        let rebuilt = rebuild(bench, &user, &victim);
        seconds = began.elapsed().as_secs_f64();
        rebuilt
    })?;
    sleep(CLEARED);
    let after = Stretch::idle(bench, (&load, standstills))?;
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
    judge(&mut round, [before, beside, after], copied / seconds, rounds);
    bench.tell(&round);
    bench.report.rounds.push(round);
    bench.read_back(&user)
}

/// Empties a host, and waits until the copy stands elsewhere.
fn rebuild(bench: &mut Bench, user: &str, victim: &str) -> Result<(), Failure> {
    bench.cluster.apart()?.say(user, &["host", "maintenance", victim, "--mode", "full-evacuation"])?;
    wait_looking("the copy stands elsewhere", LOOK, || {
        let disk = bench.cluster.disk(DISK)?;
        Ok((!disk.holders().iter().any(|holder| holder == victim) && disk.is_whole()).then_some(()))
    })
}

/// Compares what a client felt before, beside and after copies of so many bytes a second.
fn judge(round: &mut Round, [before, beside, after]: [Stretch; 3], pace: f64, rounds: &mut Rounds) {
    let idle = Felt::of(&before.felt, &after.felt);
    let compared = Compared { beside: &beside.felt, idle: &idle };
    let (ratio, is_judged) = (compared.ratio(), [&before, &beside, &after].iter().all(|one| one.tells()));
    round.note = format!(
        "{}; idle {:.2} ms before, {:.2} after; {:.0} MiB/s; other machines took {:.1} % of the processors' time, {:.1} and {:.1} % idle; \
         the device stood still for {:.0} ms at most, {:.0} and {:.0} ms idle{}",
        compared.in_words(),
        before.felt.p99_ms(),
        after.felt.p99_ms(),
        pace / MIB as f64,
        beside.stolen,
        before.stolen,
        after.stolen,
        beside.still_ms,
        before.still_ms,
        after.still_ms,
        if is_judged { "" } else { "; not judged" }
    );
    if is_judged && ratio > RATIO_MAX {
        let going = compared.ratio_going();
        round.broken.push(format!(
            "99 % of I/Os took {ratio:.2} times as long, over {RATIO_MAX}; {going:.2} times without those beside which the device stood still"
        ));
    }
    if pace < FLOOR_BYTES {
        round.broken.push(format!("{:.1} MiB were copied a second, below the floor", pace / MIB as f64));
    }
    if is_judged {
        rounds.judged += 1;
        rounds.idle.add(&idle);
        rounds.beside.add(&beside.felt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(took_us: Vec<u32>, stood_us: Vec<u32>, stolen: f64) -> Stretch {
        Stretch { felt: Felt { took_us, stood_us }, stolen, still_ms: 0.0 }
    }

    fn judged(stretches: [Stretch; 3]) -> (Round, Rounds) {
        let (mut round, mut rounds) = (Round::default(), Rounds::default());
        judge(&mut round, stretches, FLOOR_BYTES, &mut rounds);
        (round, rounds)
    }

    #[test]
    fn what_is_over_twice_as_slow_is_broken_whatever_the_device_did() {
        let of = |ms: u32| stretch(vec![ms * 1000; 1000], vec![], 0.0);
        let (round, rounds) = judged([of(1), of(3), of(1)]);
        assert_eq!((round.broken.len(), rounds.judged), (1, 1), "{:?}", round.broken);
        assert!(judged([of(1), of(2), of(1)]).0.broken.is_empty());
        let stood = stretch(vec![1500; 1000], vec![90_000; 90], 0.0);
        let (round, rounds) = judged([of(1), stood, of(1)]);
        assert_eq!((round.broken.len(), rounds.judged), (1, 1));
        assert!(
            round.broken[0].contains("90.00 times as long, over 2; 1.50 times without"),
            "{:?}",
            round.broken
        );
    }

    #[test]
    fn a_round_beside_which_processors_were_taken_is_not_judged() {
        let of = |ms: u32, stolen| stretch(vec![ms * 1000; 1000], vec![], stolen);
        let (round, rounds) = judged([of(1, 0.0), of(9, 0.0), of(1, 6.0)]);
        assert!(round.broken.is_empty() && rounds.judged == 0 && round.note.ends_with("not judged"));
    }
}
