//! One stage, from its streams to what they measured.

use super::backend::aio::Aio;
use super::backend::blocking::Blocking;
use super::backend::ring::{Ring, RingError};
use super::backend::{Backend, Door};
use super::bytes::Filler;
use super::ledger::{Compare, Ledger};
use super::merge;
use super::places::NoRoom;
use super::steady::Judge;
use super::stream::{Stream, StreamPlan};
use super::streams::{self, Kind};
use super::tally::{GroupTally, Tally, Window};
use super::thread::{Failure, Member, Orders, Thread};
use crate::clock;
use crate::target::{Target, TargetError};
use base::Random;
use measured::{Ended, Interval, StageRun};
use plan::{Group, Length, Loop, Plan, Seed, Stage, VerifyWhen};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Threads are ready this long before they begin, so that the last to be told is not late.
const LEAD: u64 = 20_000_000;

/// Why a stage could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A target could not be opened.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A job does not fit on its target.
    #[error("group {group} on {target}: {source}; use a larger target, or reduce the span of the job")]
    NoRoom {
        /// Which group.
        group: String,
        /// Which target.
        target: String,
        /// What is missing.
        source: NoRoom,
    },
    /// io_uring or a connection.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// What is written cannot be verified.
    #[error("{target}: {reason}")]
    Verification {
        /// Which target.
        target: String,
        /// Why not.
        reason: String,
    },
    /// Whoever says when to begin has gone.
    #[error("the stage was cancelled before it started")]
    CalledOff,
    /// The kernel has not enough of something.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// How stages are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Threads for asynchronous streams.
    pub processors: usize,
    /// Whether I/Os that fail are counted, instead of ending the run.
    pub go_on: bool,
    /// Set to end the run.
    pub interrupted: Arc<AtomicBool>,
    /// Records of verified writes, one for each of the plan's targets; empty: nothing is verified.
    pub ledgers: Vec<Option<Arc<Ledger>>>,
    /// Asked when all threads are ready; none: the stage begins at once.
    pub gate: Option<Gate>,
}

/// Says when a stage begins that is ready (nanoseconds of [`clock`]), or that it never does.
#[derive(Clone)]
pub struct Gate(pub Arc<dyn Fn() -> Option<u64> + Send + Sync>);

impl std::fmt::Debug for Gate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Gate")
    }
}

/// What a running stage tells once a second.
#[derive(Debug, Clone)]
pub struct Second {
    /// Which group.
    pub group: usize,
    /// What one of its threads measured in that second.
    pub interval: Interval,
}

enum Message {
    Ready(Result<(), StageError>),
    Second(Second),
    Done(Box<(Tally, Option<Failure>)>),
}

struct Shared<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    targets: &'a [Target],
    settings: &'a Settings,
    orders: Orders,
    start: AtomicU64,
    started: Mutex<Vec<u64>>,
}

/// Runs one stage. `reached` are the IOPS of the plan's earlier stages; `second` is told what happens while it happens.
///
/// # Errors
/// When it cannot begin. What fails later is part of what it measured.
pub fn run(
    plan: &Plan,
    index: usize,
    targets: &[Target],
    reached: &[f64],
    settings: &Settings,
    second: &mut dyn FnMut(Second),
) -> Result<StageRun, StageError> {
    let stage = &plan.stages[index];
    let streams = streams::of_stage(stage, reached);
    let count_of = |group: usize| streams.iter().filter(|stream| stream.group == group).count() as u32;
    let counts: Vec<u32> = (0..stage.groups.len()).map(count_of).collect();
    let shares: Vec<Option<f64>> = stage.groups.iter().map(|group| group.share).collect();
    let mut orders = Orders::new(&counts, &shares);
    orders.go_on = settings.go_on;
    orders.ends_with_first = stage.ends == plan::StageEnd::First;
    let shared = Shared {
        plan,
        stage,
        targets,
        settings,
        orders,
        start: AtomicU64::new(0),
        started: Mutex::new(Vec::new()),
    };
    let threads = streams::spread(&streams, |stream| kind_of(stage, targets, stream), settings.processors);
    let positions: Vec<Vec<Arc<AtomicU64>>> =
        stage.groups.iter().map(|_| targets.iter().map(|_| Arc::new(AtomicU64::new(0))).collect()).collect();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for (kind, members) in &threads {
            let (sender, shared, streams, positions) = (sender.clone(), &shared, &streams, &positions);
            scope.spawn(move || run_thread(shared, *kind, streams, members, positions, &sender));
        }
        drop(sender);
        conduct(&shared, index, threads.len(), &receiver, second)
    })
}

fn kind_of(stage: &Stage, targets: &[Target], stream: &StreamPlan) -> Kind {
    let files = stream.targets.iter().all(|&target| targets[target].path().is_some());
    match stage.groups[stream.group].engine {
        plan::Engine::Blocking if files => Kind::Blocking,
        plan::Engine::LinuxAio if files => Kind::Aio,
        _ => Kind::Ring,
    }
}

/// Waits until all threads are ready, and says when they begin. Returns that moment, and how long after what was agreed on it is.
fn begin(
    shared: &Shared,
    threads: usize,
    receiver: &mpsc::Receiver<Message>,
) -> Result<(u64, u64), StageError> {
    let mut failed = None;
    for _ in 0..threads {
        if let Ok(Message::Ready(Err(error))) = receiver.recv() {
            failed = Some(error);
        }
    }
    if let Some(error) = failed {
        shared.start.store(u64::MAX, Ordering::Release);
        return Err(error);
    }
    let told = match &shared.settings.gate {
        None => Some(0),
        Some(Gate(gate)) => gate(),
    };
    let Some(told) = told else {
        shared.start.store(u64::MAX, Ordering::Release);
        return Err(StageError::CalledOff);
    };
    let start = told.max(clock::now() + if told == 0 { LEAD } else { 0 });
    shared.start.store(start, Ordering::Release);
    Ok((start, if told == 0 { 0 } else { start - told }))
}

/// Starts all threads together, passes on what they tell, and puts together what they measured.
fn conduct(
    shared: &Shared,
    index: usize,
    threads: usize,
    receiver: &mpsc::Receiver<Message>,
    second: &mut dyn FnMut(Second),
) -> Result<StageRun, StageError> {
    let (start, told_late) = begin(shared, threads, receiver)?;
    let windows: Vec<Window> = shared.stage.groups.iter().map(window_of).collect();
    let counted_from = start.saturating_add(windows.iter().map(|window| window.from).min().unwrap_or(0));
    let counted_to = start.saturating_add(windows.iter().map(|window| window.to).max().unwrap_or(u64::MAX));
    let mut before = clock::processor_seconds();
    let mut after = None;
    let mut parts = Vec::new();
    let mut bytes = 0u64;
    let mut judge = shared.stage.steady.map(Judge::new);
    while parts.len() < threads {
        let now = clock::now();
        if now < counted_from {
            before = clock::processor_seconds();
        } else if now >= counted_to && after.is_none() {
            after = Some(clock::processor_seconds());
        }
        let next = [counted_from, counted_to].into_iter().find(|&time| time > now).unwrap_or(u64::MAX);
        let patience = Duration::from_nanos((next - now).min(50_000_000));
        match receiver.recv_timeout(patience) {
            Ok(Message::Done(part)) => parts.push(*part),
            Ok(Message::Second(of)) => {
                bytes += of.interval.bytes.iter().sum::<u64>();
                judge.iter_mut().for_each(|judge| judge.take(&of.interval));
                second(of);
            }
            Ok(Message::Ready(_)) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        let enough = shared.stage.bytes_max.is_some_and(|most| bytes >= most);
        let is_steady = judge.as_ref().is_some_and(Judge::is_steady);
        if enough || is_steady || shared.settings.interrupted.load(Ordering::Relaxed) {
            shared.orders.stop.store(true, Ordering::Relaxed);
        }
    }
    let after = after.unwrap_or_else(clock::processor_seconds);
    let mut run = merge::stage(shared.stage, index, parts, &windows);
    run.cpu_user = after.0 - before.0;
    run.cpu_system = after.1 - before.1;
    let latest = shared.started.lock().expect("no thread panics with the lock held").iter().copied().max();
    run.start_late = (latest.unwrap_or(0) + told_late) as f64 / 1e9;
    if run.ended == Ended::Done {
        if shared.settings.interrupted.load(Ordering::Relaxed) {
            run.ended = Ended::Stopped;
        } else if judge.is_some_and(|judge| judge.is_steady()) {
            run.ended = Ended::Steady;
        }
    }
    Ok(run)
}

/// When a group counts.
fn window_of(group: &Group) -> Window {
    let from = clock::ns(group.timing.delay + group.timing.ramp);
    let to = match group.timing.length {
        Length::Time(time) | Length::First { time, .. } => from.saturating_add(clock::ns(time)),
        Length::Amount(_) | Length::UntilStopped => u64::MAX,
    };
    Window { from, to }
}

fn run_thread(
    shared: &Shared,
    kind: Kind,
    streams: &[StreamPlan],
    members: &[usize],
    positions: &[Vec<Arc<AtomicU64>>],
    sender: &mpsc::Sender<Message>,
) {
    // Whoever listens is gone only if the stage has failed: then nothing is to be told.
    let tell = |message| drop(sender.send(message));
    match kind {
        Kind::Blocking => {
            run_with(shared, streams, members, positions, &tell, |doors, _| Ok(Blocking::new(doors)))
        }
        Kind::Aio => run_with(shared, streams, members, positions, &tell, |doors, depth| {
            Aio::new(doors, depth).map_err(|source| StageError::Kernel {
                doing: "set up Linux AIO (see fs.aio-max-nr)",
                source,
            })
        }),
        Kind::Ring => {
            run_with(shared, streams, members, positions, &tell, |doors, depth| Ok(Ring::new(doors, depth)?));
        }
    }
}

fn run_with<B: Backend>(
    shared: &Shared,
    streams: &[StreamPlan],
    members: &[usize],
    positions: &[Vec<Arc<AtomicU64>>],
    tell: &dyn Fn(Message),
    backend: impl FnOnce(Vec<Door>, usize) -> Result<B, StageError>,
) {
    let prepared = prepare(shared, streams, members, positions, backend);
    let thread = match prepared {
        Ok(thread) => thread,
        Err(error) => return tell(Message::Ready(Err(error))),
    };
    tell(Message::Ready(Ok(())));
    let start = loop {
        match shared.start.load(Ordering::Acquire) {
            0 => std::thread::sleep(Duration::from_micros(200)),
            u64::MAX => return,
            start => break start,
        }
    };
    clock::sleep_until(start);
    // What was told may be past already; then the threads begin when they hear of it.
    let late = clock::now() - start;
    shared.started.lock().expect("no thread panics with the lock held").push(late);
    let mut told = vec![0; shared.stage.groups.len()];
    let done = thread.run(start, |tally| {
        for (group, of) in tally.groups.iter().enumerate() {
            for interval in &of.intervals[told[group]..] {
                tell(Message::Second(Second { group, interval: interval.clone() }));
            }
            told[group] = of.intervals.len();
        }
    });
    tell(Message::Done(Box::new(done)));
}

fn prepare<'a, B: Backend>(
    shared: &'a Shared,
    streams: &[StreamPlan],
    members: &[usize],
    positions: &[Vec<Arc<AtomicU64>>],
    backend: impl FnOnce(Vec<Door>, usize) -> Result<B, StageError>,
) -> Result<Thread<'a, B>, StageError> {
    let sizes: Vec<u64> = shared.targets.iter().map(|target| target.size).collect();
    let mut doors = Doors { opened: Vec::new(), known: Vec::new() };
    let mut placed = Vec::new();
    let mut size_max = 0;
    for &member in members {
        let of = &streams[member];
        let group = &shared.stage.groups[of.group];
        let mut random = Random::new(seed_of(shared.plan.seed, member as u64));
        let start = clock::ns(group.timing.delay);
        let stream =
            Stream::new(group, of, &sizes, &positions[of.group], start, random.fork()).map_err(|source| {
                let target = shared.targets[of.targets[0]].name.clone();
                StageError::NoRoom { group: group.name.clone(), target, source }
            })?;
        let size = group.pattern.size_max() as usize;
        size_max = size_max.max(size);
        let window = window_of(group);
        placed.push(Member {
            stream,
            end: window.to.saturating_add(clock::ns(group.timing.cooldown)),
            filler: Filler::new(&group.data, size, random.fork()),
            batch: group.batch,
            doors: doors.of(shared.targets, group, of)?,
            depth: of.depth,
            ledgers: shared.settings.ledgers.clone(),
            verifies: group.verify.as_ref().map(|verify| match verify.when {
                VerifyWhen::Only => Compare::All,
                VerifyWhen::After | VerifyWhen::Backlog(_) | VerifyWhen::Later => Compare::Recorded,
            }),
            mismatch_ends: group.verify.as_ref().is_some_and(|verify| verify.fatal),
            spins: group.pattern.lines.iter().any(|line| line.think.is_some_and(|think| think.spin)),
            flush_data_only: group.caching.flush.is_some_and(|rule| rule.data_only),
        });
    }
    let depth = placed.iter().map(|member| member.depth as usize).sum();
    let names = series_names(shared.plan, shared.targets);
    let origin = shared.stage.groups.iter().map(|group| window_of(group).from).min().unwrap_or(0);
    let is_open = |group: &Group| group.rates.iter().any(|rate| rate.clock == Loop::Open);
    let groups = (shared.stage.groups.iter().enumerate())
        .map(|(index, group)| {
            let is_run = members.iter().any(|&member| streams[member].group == index);
            GroupTally::new(window_of(group), origin, is_open(group), is_run)
        })
        .collect();
    let backend = backend(doors.opened, depth)?;
    Thread::new(backend, placed, size_max, Tally::new(groups, &names), &shared.orders)
        .map_err(|source| StageError::Kernel { doing: "allocate memory for the buffers", source })
}

/// The doors of a thread: one for each target and way of caching.
struct Doors {
    opened: Vec<Door>,
    known: Vec<(usize, plan::Caching, bool)>,
}

impl Doors {
    /// Door of each of the plan's targets, for a stream; those that it has not get the first.
    fn of(
        &mut self,
        targets: &[Target],
        group: &Group,
        stream: &StreamPlan,
    ) -> Result<Vec<usize>, TargetError> {
        let mut doors = vec![0; targets.len()];
        for &target in &stream.targets {
            let key = (target, plan::Caching { flush: None, ..group.caching }, group.pattern.writes());
            doors[target] = match self.known.iter().position(|known| *known == key) {
                Some(door) => door,
                None => {
                    self.opened.push(targets[target].open(key.1, key.2)?);
                    self.known.push(key);
                    self.known.len() - 1
                }
            };
        }
        Ok(doors)
    }
}

/// What the series of each target is called: as it was opened, or, where several machines have the same, as the plan calls the disk.
fn series_names(plan: &Plan, targets: &[Target]) -> Vec<String> {
    let is_shared = |name: &str| targets.iter().filter(|other| other.name == name).count() > 1;
    let named = targets.iter().zip(&plan.targets);
    named
        .map(|(target, planned)| match is_shared(&target.name) {
            true => planned.label(),
            false => target.name.clone(),
        })
        .collect()
}

fn seed_of(seed: Seed, stream: u64) -> u64 {
    let seed = match seed {
        Seed::Fixed(seed) => seed,
        Seed::Fresh => clock::now() ^ u64::from(std::process::id()) << 40,
    };
    Random::new(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)).bits()
}
