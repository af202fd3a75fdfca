//! `rebuild`: what a guest feels while a copy of its disk is made anew elsewhere, beside what it feels when nothing is: both in
//! one run, by the same client under the same load. What it feels when nothing is copied is measured before and after: what a disk
//! takes for itself changes within minutes, most of all a virtual one.
//!
//! A round beside which other machines took more than a twentieth of the processors' time is told and not judged, and done again.
//! The limit is of all I/Os. Beside it two things are told, so that it can be seen what a round that is over it has found: what it would
//! be without the I/Os beside which the device under the hosts' files stood still ([`crate::standstills`]), and what fio feels in the same
//! round on plain files, beside as many bytes copied ([`crate::control`]).

use crate::bench::{self, Bench, DISK, Plan, Settings};
use crate::cluster::wait_looking;
use crate::control::{Control, Guest};
use crate::failure::Failure;
use crate::load::{Load, Pattern, Shape};
use crate::meter::{Answered, summary};
use crate::report::{Report, Round};
use crate::spell::Spell;
use crate::standstills::Standstills;
use crate::stolen::Ticks;
use base::units::{GIB, MIB};
use std::path::Path;
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
/// Reads of a hundred I/Os, and the longest, in blocks of 4 KiB.
const READ_PERCENT: u32 = 30;
const BLOCKS_MAX: u64 = 16;

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { ground: bench::Ground::Apart, area_bytes: 2 * GIB, ..Plan::usual("rebuild") };
    let bench = Bench::start(settings, plan)?;
    Ok(bench.run(|bench| {
        let first = bench.disk.holders()[0].clone();
        let standstills = Standstills::start(&bench.settings.folder)?;
        let folder = Path::new(&bench.report.folder);
        let control = standstills.has_device().then(|| Control::prepare(folder)).transpose()?;
        let ground = Ground { standstills, control };
        // Holes would be copied for nothing.
        bench.fill(&first)?;
        let wanted = bench.rounds("rebuild", 5);
        let mut rounds = Rounds::default();
        for index in 0..2 * wanted {
            once(bench, index, &ground, &mut rounds)?;
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

/// What is under the hosts.
struct Ground {
    standstills: Standstills,
    /// Plain files, where there is a device.
    control: Option<Control>,
}

/// What was felt in a time: microseconds of I/Os.
#[derive(Debug, Default)]
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

/// Idle times and times beside copies, of one round or several.
#[derive(Debug, Default)]
struct Times {
    idle: Felt,
    beside: Felt,
}

impl Times {
    fn of([before, beside, after]: &[Stretch; 3]) -> Times {
        let mut times = Times::default();
        [before, after].iter().for_each(|idle| times.idle.add(&idle.felt));
        times.beside.add(&beside.felt);
        times
    }

    fn add(&mut self, other: &Times) {
        self.idle.add(&other.idle);
        self.beside.add(&other.beside);
    }

    /// In words, where there are such.
    fn as_control(&self) -> String {
        match self.beside.took_us.is_empty() {
            true => String::new(),
            false => format!("; fio on plain files beside as much: {}", self.all_in_words()),
        }
    }

    fn ratio(&self) -> f64 {
        self.beside.p99_ms() / self.idle.p99_ms()
    }

    /// The same without the I/Os beside which the device stood still.
    fn ratio_going(&self) -> f64 {
        self.beside.p99_going_ms() / self.idle.p99_going_ms()
    }

    fn all_in_words(&self) -> String {
        let (beside, idle) = (self.beside.p99_ms(), self.idle.p99_ms());
        format!("99 % of I/Os within {beside:.2} ms, {idle:.2} ms idle: {:.2} times", self.ratio())
    }

    fn in_words(&self) -> String {
        let (beside, idle) = (&self.beside, &self.idle);
        format!(
            "{} (the device stood still beside {:.1} %, {:.1} % idle; without these {:.2} ms, {:.2} ms idle: {:.2} times)",
            self.all_in_words(),
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
    own: Times,
    control: Times,
}

impl Rounds {
    fn in_words(&self) -> String {
        let (own, control) = (&self.own, &self.control);
        format!("the {} rounds that are judged: {}{}", self.judged, own.in_words(), control.as_control())
    }
}

/// A stretch of the load.
struct Stretch {
    felt: Felt,
    /// Percent of the processors' time that other machines took.
    stolen: f64,
    /// How the device under the hosts' files stood still: the longest, and percent of the time with all of the longer ones.
    still_ms: f64,
    still_percent: f64,
}

impl Stretch {
    /// Watches a client while something goes on.
    fn watch(
        bench: &mut Bench,
        (load, ground): (&Load, &Ground),
        during: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    ) -> Result<Stretch, Failure> {
        load.answered(); // What was before is no part of it.
        let (looked, still) = ground.look(|| during(bench))?;
        let mut felt = Felt::default();
        for Answered { begun, took_us } in load.answered() {
            let sent = bench.ledger.at(begun);
            let still_ms = still.beside_ms(sent, sent + Duration::from_micros(took_us.into()));
            let of = if still_ms > STOOD_STILL_MS { &mut felt.stood_us } else { &mut felt.took_us };
            of.push(took_us);
        }
        bench.latencies_us.extend(felt.took_us.iter().chain(&felt.stood_us));
        Ok(Stretch { felt, ..looked })
    }

    fn idle(bench: &mut Bench, watched: (&Load, &Ground)) -> Result<Stretch, Failure> {
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

impl Ground {
    /// Looks at the machine while something goes on; nothing is felt.
    fn look(&self, during: impl FnOnce() -> Result<(), Failure>) -> Result<(Stretch, Spell), Failure> {
        self.standstills.take();
        let (ticks, began) = (Ticks::now(), Instant::now());
        during()?;
        let (stolen, still, lasted) =
            (Ticks::now().stolen_since(ticks), self.standstills.take(), began.elapsed());
        let still_percent = still.over_ms(STOOD_STILL_MS) / lasted.as_secs_f64() / 10.0;
        Ok((Stretch { felt: Felt::default(), stolen, still_ms: still.longest_ms(), still_percent }, still))
    }

    /// Before, beside and after as much copied in as long a time, without any host; nothing where there is no device.
    fn control(
        &self,
        depth: usize,
        lasts: Duration,
        per_second: f64,
    ) -> Result<Option<[Stretch; 3]>, Failure> {
        let Some(control) = &self.control else { return Ok(None) };
        let guest = Guest { per_second: IOS_PER_SECOND, read_percent: READ_PERCENT, depth };
        let felt = |settled, lasts, copied| {
            sleep(settled);
            let mut took_us = Vec::new();
            let (looked, _) = self.look(|| {
                took_us = control.measure(guest, lasts, copied)?;
                Ok(())
            })?;
            Ok(Stretch { felt: Felt { took_us, stood_us: Vec::new() }, ..looked })
        };
        let copied = Some(per_second as u64);
        Ok(Some([
            felt(SETTLED, IDLE, None)?,
            felt(Duration::ZERO, lasts, copied)?,
            felt(CLEARED, IDLE, None)?,
        ]))
    }
}

/// A host that holds a copy, and not the guest, is emptied: the third gets the copy, all of it.
fn once(bench: &mut Bench, index: usize, ground: &Ground, rounds: &mut Rounds) -> Result<(), Failure> {
    let holders = bench.cluster.disk(DISK)?.holders();
    let (user, victim) = (holders[index % 2].clone(), holders[(index + 1) % 2].clone());
    let pattern = Pattern::Random { read_percent: READ_PERCENT.into(), blocks_max: BLOCKS_MAX };
    let shape = Shape { per_second: Some(IOS_PER_SECOND), ..Shape::of(pattern, bench.settings.depth) };
    let load = bench.attach(&user, &shape)?;
    bench.cluster.wait_for_owner(DISK, &user)?;
    sleep(SETTLED);
    let before = Stretch::idle(bench, (&load, ground))?;
    let mut seconds = 0.0;
    let beside = Stretch::watch(bench, (&load, ground), |bench| {
        let began = Instant::now();
        let rebuilt = rebuild(bench, &user, &victim);
        seconds = began.elapsed().as_secs_f64();
        rebuilt
    })?;
    sleep(CLEARED);
    let after = Stretch::idle(bench, (&load, ground))?;
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
    let pace = copied / seconds;
    let control = ground.control(bench.settings.depth, Duration::from_secs_f64(seconds), pace)?;
    let is_judged = judge(&mut round, &[before, beside, after], pace, rounds);
    if let Some(control) = control {
        tell_control(&mut round, &control, is_judged, rounds);
    }
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

/// How the device stood still beside copies, before and after.
fn stood_still([before, beside, after]: &[Stretch; 3]) -> String {
    format!(
        "the device stood still for {:.2} % of the time, {:.2} and {:.2} % idle ({:.0} ms at most, {:.0} and {:.0} ms)",
        beside.still_percent,
        before.still_percent,
        after.still_percent,
        beside.still_ms,
        before.still_ms,
        after.still_ms
    )
}

/// Whether what was felt tells anything of what was tried.
fn all_tell(stretches: &[Stretch; 3]) -> bool {
    stretches.iter().all(Stretch::tells)
}

/// Compares what a client felt before, beside and after copies of so many bytes a second. Tells whether it is judged by the limit.
fn judge(round: &mut Round, stretches: &[Stretch; 3], pace: f64, rounds: &mut Rounds) -> bool {
    let [before, beside, after] = stretches;
    let times = Times::of(stretches);
    let (ratio, is_judged) = (times.ratio(), all_tell(stretches));
    round.note = format!(
        "{}; idle {:.2} ms before, {:.2} after; {:.0} MiB/s; other machines took {:.1} % of the processors' time, {:.1} and {:.1} % idle; \
         {}{}",
        times.in_words(),
        before.felt.p99_ms(),
        after.felt.p99_ms(),
        pace / MIB as f64,
        beside.stolen,
        before.stolen,
        after.stolen,
        stood_still(stretches),
        if is_judged { "" } else { "; not judged" }
    );
    if is_judged && ratio > RATIO_MAX {
        let going = times.ratio_going();
        round.broken.push(format!(
            "99 % of I/Os took {ratio:.2} times as long, over {RATIO_MAX}; {going:.2} times without those beside which the device stood still"
        ));
    }
    if pace < FLOOR_BYTES {
        round.broken.push(format!("{:.1} MiB were copied a second, below the floor", pace / MIB as f64));
    }
    if is_judged {
        rounds.judged += 1;
        rounds.own.add(&times);
    }
    is_judged
}

/// Tells what fio felt on plain files; nothing is judged by that. It counts beside rounds that are judged.
fn tell_control(round: &mut Round, stretches: &[Stretch; 3], is_judged: bool, rounds: &mut Rounds) {
    let times = Times::of(stretches);
    round.note.push_str(&format!("{}; {}", times.as_control(), stood_still(stretches)));
    match is_judged && all_tell(stretches) {
        true => rounds.control.add(&times),
        false => round.note.push_str("; not counted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(took_us: Vec<u32>, stood_us: Vec<u32>, stolen: f64) -> Stretch {
        Stretch { felt: Felt { took_us, stood_us }, stolen, still_ms: 0.0, still_percent: 0.0 }
    }

    fn judged(stretches: [Stretch; 3]) -> (Round, Rounds) {
        let (mut round, mut rounds) = (Round::default(), Rounds::default());
        judge(&mut round, &stretches, FLOOR_BYTES, &mut rounds);
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

    #[test]
    fn plain_files_are_told_of_and_judge_nothing() {
        let of = |ms: u32| stretch(vec![ms * 1000; 1000], vec![], 0.0);
        let (mut round, mut rounds) = judged([of(1), of(2), of(1)]);
        assert!(!rounds.in_words().contains("plain files"), "there were none");
        tell_control(&mut round, &[of(1), of(7), of(1)], false, &mut rounds);
        assert!(!rounds.in_words().contains("plain files"), "beside a round that is not judged");
        tell_control(&mut round, &[of(1), of(7), of(1)], true, &mut rounds);
        assert!(
            round.broken.is_empty()
                && round.note.contains("fio on plain files beside as much: 99 % of I/Os within 7.00 ms")
        );
        assert!(rounds.in_words().ends_with("7.00 ms, 1.00 ms idle: 7.00 times"), "{}", rounds.in_words());
    }
}
