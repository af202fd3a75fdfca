//! A client with many I/Os under way, each of them recorded: one thread sends, one receives.

use crate::failure::Failure;
use crate::ledger::Ledger;
use crate::meter::{Answered, Meter, Stall};
use crate::nbd::{self, Command};
use crate::recorder::{Moment, OperationId};
use crate::regions::Regions;
use crate::stamp::{BLOCK, WriteNumber};
use base::Random;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An I/O that takes longer than this will never be answered.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// What is read and written.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Random places and lengths.
    Random {
        /// Reads of a hundred I/Os.
        read_percent: u64,
        /// The longest, in blocks.
        blocks_max: u64,
    },
    /// Everything written once, in order.
    Fill,
    /// Everything read once, in order.
    ReadBack,
}

/// The shape of a load.
#[derive(Debug, Clone)]
pub struct Shape {
    /// What is read and written.
    pub pattern: Pattern,
    /// I/Os under way at once.
    pub depth: usize,
    /// At most so many I/Os a second.
    pub per_second: Option<u32>,
    /// These blocks alone; nothing: all.
    pub within: Option<Range<u64>>,
    /// What it means when a write finds no room.
    pub full: Full,
}

/// What it means to a client when a write finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Full {
    /// An error like any other.
    #[default]
    Wrong,
    /// It is counted, and goes on.
    Counts,
    /// It is counted, and is the end.
    Ends,
}

/// What found no room.
#[derive(Debug, Clone, Default)]
pub struct Refused {
    /// How long each of these writes took.
    pub latencies_us: Vec<u32>,
    /// The lowest block of them.
    pub first: Option<u64>,
}

impl Refused {
    /// Adds what another client found.
    pub fn add(&mut self, other: Refused) {
        self.latencies_us.extend(other.latencies_us);
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

/// Blocks of one I/O of the patterns that go in order.
const ORDERED_BLOCKS: u64 = 16;

impl Shape {
    /// Random I/O of 4 to 64 KiB, three of ten reads.
    pub fn random(depth: usize) -> Shape {
        Shape::of(Pattern::Random { read_percent: 30, blocks_max: 16 }, depth)
    }

    /// Random reads of 4 to 64 KiB.
    pub fn observer(depth: usize) -> Shape {
        Shape::of(Pattern::Random { read_percent: 100, blocks_max: 16 }, depth)
    }

    /// In order over everything.
    pub fn ordered(pattern: Pattern) -> Shape {
        Shape::of(pattern, 8)
    }

    /// A pattern over everything, as fast as it goes.
    pub fn of(pattern: Pattern, depth: usize) -> Shape {
        Shape { pattern, depth, per_second: None, within: None, full: Full::Wrong }
    }
}

#[derive(Debug)]
struct UnderWay {
    id: OperationId,
    begun: Moment,
    blocks: Range<u64>,
    is_read: bool,
}

#[derive(Debug, Default)]
struct State {
    depth: usize,
    under_way: HashMap<u64, UnderWay>,
    /// Those that are answered and not noted yet.
    arriving: usize,
    meter: Meter,
    regions: Option<Regions>,
    /// By block, what a read back found.
    seen: Vec<WriteNumber>,
    full: Full,
    refused: Refused,
    reads: u64,
    writes: u64,
    is_over: bool,
    may_break: bool,
    is_broken: bool,
    error: Option<String>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    ledger: Arc<Ledger>,
    client: u32,
}

/// What a client did.
#[derive(Debug, Default)]
pub struct Done {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were answered.
    pub writes: u64,
    /// How long each took.
    pub latencies_us: Vec<u32>,
    /// Writes that found no room, where that may be; they are none of the others.
    pub refused: Refused,
}

/// A client at work.
pub struct Load {
    shared: Arc<Shared>,
    stream: UnixStream,
    threads: Vec<JoinHandle<()>>,
}

impl State {
    /// Whether nothing is under way, and all that was answered is noted.
    fn is_quiet(&self) -> bool {
        self.under_way.is_empty() && self.arriving == 0
    }

    fn done(&mut self) -> Done {
        Done {
            reads: self.reads,
            writes: self.writes,
            latencies_us: self.meter.take().iter().map(|one| one.took_us).collect(),
            refused: std::mem::take(&mut self.refused),
        }
    }

    /// A write that began then found no room; whether that may be.
    fn note_full(&mut self, first: u64, lasted: Moment) -> bool {
        if self.full == Full::Wrong {
            return false;
        }
        self.refused.latencies_us.push(u32::try_from(lasted / 1000).unwrap_or(u32::MAX));
        self.refused.first = Some(self.refused.first.map_or(first, |known| known.min(first)));
        self.is_over |= self.full == Full::Ends;
        true
    }

    /// Takes out what is answered now.
    fn arrived(&mut self, cookie: u64) -> Option<UnderWay> {
        let one = self.under_way.remove(&cookie)?;
        self.arriving += 1;
        Some(one)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is over: what is under way stays unknown.
    fn broke(&self, why: &str) {
        let mut state = self.state();
        for (_, one) in state.under_way.drain() {
            self.ledger.lose(one.id);
        }
        if !state.is_over && !state.may_break && state.error.is_none() {
            state.error = Some(format!("client {}: its connection broke: {why}", self.client));
        }
        state.is_broken = true;
        state.is_over = true;
        self.changed.notify_all();
    }
}

impl Load {
    /// Attaches to a disk at a host's socket and begins. Clients are told apart by their numbers.
    ///
    /// # Errors
    /// When the host does not let it in.
    pub fn start(
        socket: &Path,
        disk: &str,
        ledger: &Arc<Ledger>,
        client: u32,
        shape: &Shape,
    ) -> Result<Load, Failure> {
        let what = format!("attach client {client} to disk {disk} at {}", socket.display());
        let (stream, size) = nbd::attach(socket, disk).map_err(Failure::machine(what.clone()))?;
        if size < ledger.block_count() * BLOCK as u64 {
            return Err(Failure::Client(format!(
                "{what}: it has {size} bytes, less than the area of the load"
            )));
        }
        let mut state = State { depth: shape.depth, full: shape.full, ..State::default() };
        if matches!(shape.pattern, Pattern::ReadBack) {
            state.seen = vec![0; ledger.block_count() as usize];
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            ledger: Arc::clone(ledger),
            client,
        });
        let copy = || stream.try_clone().map_err(Failure::machine("copy a descriptor"));
        let (sending, receiving) = (copy()?, copy()?);
        let mut threads = Vec::new();
        let mut sender = Sender::new(Arc::clone(&shared), sending, shape.clone());
        threads.push(spawn(format!("send-{client}"), move || sender.run())?);
        let own = Arc::clone(&shared);
        threads.push(spawn(format!("receive-{client}"), move || receive(&own, receiving))?);
        Ok(Load { shared, stream, threads })
    }

    /// From now on a stall is measured.
    pub fn open_window(&self) {
        self.shared.state().meter.open(self.shared.ledger.now());
    }

    /// What was measured since.
    pub fn close_window(&self) -> Stall {
        let mut state = self.shared.state();
        let oldest = state.under_way.values().map(|one| (one.begun, one.is_read)).min();
        state.meter.close(self.shared.ledger.now(), oldest)
    }

    /// From now on the regions that are written are counted; those of writes under way count too.
    pub fn count_regions(&self) {
        let mut state = self.shared.state();
        let mut regions = Regions::default();
        state.under_way.values().filter(|one| !one.is_read).for_each(|one| regions.note(one.blocks.clone()));
        state.regions = Some(regions);
    }

    /// The regions written since.
    pub fn regions(&self) -> Regions {
        self.shared.state().regions.take().unwrap_or_default()
    }

    /// The I/Os that were answered since the last time.
    pub fn answered(&self) -> Vec<Answered> {
        self.shared.state().meter.take()
    }

    /// Changes the number of I/Os under way.
    pub fn set_depth(&self, depth: usize) {
        self.shared.state().depth = depth;
        self.shared.changed.notify_all();
    }

    /// The connection may break from now on, for its host is about to be killed.
    pub fn may_break(&self) {
        self.shared.state().may_break = true;
    }

    /// Whether all is well with the client.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.shared.state().error {
            Some(error) => Err(Failure::Client(error.clone())),
            None => Ok(()),
        }
    }

    /// Sends nothing more and waits for what is under way.
    ///
    /// # Errors
    /// When an answer does not come, or was an error.
    pub fn drain(&self) -> Result<(), Failure> {
        self.set_depth(0);
        self.wait(State::is_quiet)
    }

    /// Waits until every I/O that is under way now is answered.
    ///
    /// # Errors
    /// When an answer does not come, or was an error.
    pub fn catch_up(&self) -> Result<(), Failure> {
        let now = self.shared.ledger.now();
        self.wait(|state| state.under_way.values().all(|one| one.begun > now))
    }

    fn wait(&self, is_done: impl Fn(&State) -> bool) -> Result<(), Failure> {
        let mut until = Instant::now() + ANSWER_WAIT;
        let mut state = self.shared.state();
        let mut answered = state.reads + state.writes;
        while !is_done(&state) && state.error.is_none() {
            if state.reads + state.writes != answered {
                answered = state.reads + state.writes;
                until = Instant::now() + ANSWER_WAIT;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("the {} I/Os under way are answered", state.under_way.len());
                return Err(Failure::Late { what, seconds: ANSWER_WAIT.as_secs() });
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match &state.error {
            Some(error) => Err(Failure::Client(error.clone())),
            None => Ok(()),
        }
    }

    /// Waits until a pattern that has an end is through; gives what a read back saw, by block.
    ///
    /// # Errors
    /// When the client fails.
    pub fn finish(mut self) -> Result<Vec<WriteNumber>, Failure> {
        self.wait(|state| state.is_over && state.is_quiet())?;
        let seen = std::mem::take(&mut self.shared.state().seen);
        let is_broken = self.shared.state().is_broken;
        self.end();
        if is_broken {
            return Err(Failure::Client("its connection broke before it was through".to_owned()));
        }
        Ok(seen)
    }

    /// Waits until a write found no room or the pattern is through, detaches, and tells what was done.
    ///
    /// # Errors
    /// As [`Load::stop`].
    pub fn until_full(self) -> Result<Done, Failure> {
        self.wait(|state| state.is_over && state.is_quiet())?;
        self.stop()
    }

    /// Waits for what is under way, detaches, and tells what was done.
    ///
    /// # Errors
    /// When an answer does not come, or was an error.
    pub fn stop(mut self) -> Result<Done, Failure> {
        let drained = self.drain();
        self.shared.state().may_break = true;
        self.end();
        drained?;
        Ok(self.shared.state().done())
    }

    /// Ends the connection, whatever is under way, and tells what was done.
    pub fn abandon(mut self) -> Done {
        self.may_break();
        let _ = self.stream.shutdown(Shutdown::Both); // It fails only when the connection is over already.
        self.end();
        self.shared.state().done()
    }

    fn end(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        // Both fail only when the connection is over already.
        let _ = self.stream.write_all(&nbd::request(Command::Disconnect, 0, 0, 0, &[]));
        let _ = self.stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            thread.join().expect("clients do not panic");
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            // A host that stands still takes nothing more: no parting word, which might wait for ever.
            self.shared.state().is_over = true;
            self.shared.changed.notify_all();
            let _ = self.stream.shutdown(Shutdown::Both); // It fails only when the connection is over already.
        }
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    std::thread::Builder::new().name(name).spawn(work).map_err(Failure::machine("start a thread"))
}

/// The thread that sends.
struct Sender {
    shared: Arc<Shared>,
    stream: UnixStream,
    shape: Shape,
    /// Those that are read and written.
    blocks: Range<u64>,
    random: Random,
    next_cookie: u64,
    /// The next block of a pattern that goes in order.
    next_block: u64,
    /// When the next I/O may be sent.
    next_at: Instant,
}

impl Sender {
    fn new(shared: Arc<Shared>, stream: UnixStream, shape: Shape) -> Sender {
        let random = Random::new(u64::from(shared.client) ^ shared.ledger.campaign());
        let blocks = shape.within.clone().unwrap_or(0..shared.ledger.block_count());
        let next_block = blocks.start;
        Sender { shared, stream, shape, blocks, random, next_cookie: 1, next_block, next_at: Instant::now() }
    }

    fn run(&mut self) {
        while self.wait_for_room() {
            self.pace();
            let Some((is_read, blocks)) = self.choose() else {
                self.shared.state().is_over = true;
                self.shared.changed.notify_all();
                return;
            };
            if let Err(error) = self.send(is_read, blocks) {
                self.shared.broke(&error.to_string());
                return;
            }
        }
    }

    /// Whether there is more to do, once there is room for it.
    fn wait_for_room(&self) -> bool {
        let mut state = self.shared.state();
        loop {
            if state.is_over {
                return false;
            }
            if state.under_way.len() < state.depth {
                return true;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pace(&mut self) {
        let Some(per_second) = self.shape.per_second else { return };
        std::thread::sleep(self.next_at.saturating_duration_since(Instant::now()));
        self.next_at = self.next_at.max(Instant::now()) + Duration::from_secs(1) / per_second;
    }

    fn choose(&mut self) -> Option<(bool, Range<u64>)> {
        let Range { start, end } = self.blocks;
        if let Pattern::Random { read_percent, blocks_max } = self.shape.pattern {
            let length = 1 + self.random.below(blocks_max.min(end - start));
            let first = start + self.random.below(end - start - length + 1);
            return Some((self.random.chance(read_percent, 100), first..first + length));
        }
        let first = self.next_block;
        self.next_block = (first + ORDERED_BLOCKS).min(end);
        let is_read = matches!(self.shape.pattern, Pattern::ReadBack);
        (first < end).then_some((is_read, first..self.next_block))
    }

    fn send(&mut self, is_read: bool, blocks: Range<u64>) -> io::Result<()> {
        let shared = &self.shared;
        let (id, begun, data) = if is_read {
            let (id, begun) = shared.ledger.begin_read(blocks.clone());
            (id, begun, Vec::new())
        } else {
            shared.ledger.begin_write(shared.client, blocks.clone())
        };
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        {
            let mut state = shared.state();
            if state.is_broken || state.error.is_some() {
                shared.ledger.lose(id);
                return Ok(());
            }
            if let (Some(regions), false) = (&mut state.regions, is_read) {
                regions.note(blocks.clone());
            }
            state.under_way.insert(cookie, UnderWay { id, begun, blocks: blocks.clone(), is_read });
        }
        let command = if is_read { Command::Read } else { Command::Write };
        let length = (blocks.end - blocks.start) as u32 * BLOCK as u32;
        self.stream.write_all(&nbd::request(command, cookie, blocks.start * BLOCK as u64, length, &data))
    }
}

/// The thread that receives.
fn receive(shared: &Shared, mut stream: UnixStream) {
    loop {
        let answered = nbd::reply(&mut stream).and_then(|reply| answer(shared, &mut stream, reply));
        if let Err(error) = answered {
            shared.broke(&error.to_string());
            return;
        }
    }
}

fn answer(shared: &Shared, stream: &mut UnixStream, reply: nbd::Reply) -> io::Result<()> {
    let found = shared.state().under_way.get(&reply.cookie).map(|one| (one.is_read, one.blocks.clone()));
    let Some((is_read, blocks)) = found else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("nobody asked {}", reply.cookie)));
    };
    let length = if is_read && reply.error == 0 { (blocks.end - blocks.start) as usize * BLOCK } else { 0 };
    let mut data = vec![0; length];
    stream.read_exact(&mut data)?;
    let now = shared.ledger.now();
    // Only this thread and the end of the connection, which this thread would notice, take it out.
    let Some(one) = shared.state().arrived(reply.cookie) else { return Ok(()) };
    let mut seen = None;
    if reply.error != 0 {
        shared.ledger.lose(one.id);
    } else if is_read {
        seen = shared.ledger.end_read(now, shared.client, one.id, blocks.start, &data);
    } else {
        shared.ledger.end_write(now, shared.client, one.id);
    }
    let mut state = shared.state();
    state.arriving -= 1;
    if reply.error == nbd::NO_SPACE && !is_read && state.note_full(blocks.start, now - one.begun) {
        shared.changed.notify_all();
        return Ok(());
    }
    if reply.error != 0 {
        let kind = if is_read { "a read" } else { "a write" };
        let error = format!(
            "client {}: {kind} of blocks {blocks:?} was answered with error {}",
            shared.client, reply.error
        );
        state.error.get_or_insert(error);
    }
    if let (Some(seen), false) = (seen, state.seen.is_empty()) {
        state.seen[blocks.start as usize..blocks.end as usize].copy_from_slice(&seen);
    }
    state.meter.answered(one.begun, now, is_read);
    if is_read {
        state.reads += 1;
    } else {
        state.writes += 1;
    }
    shared.changed.notify_all();
    Ok(())
}
