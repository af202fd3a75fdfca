//! One run: a disk group, its virtual devices, a load, faults, and the oracle.

use crate::compression::Compressing;
use crate::computing::Computing;
use crate::device::{Device, joined};
use crate::faults::Faults;
use crate::features::{Features, Streams};
use crate::formatting::{LOG_SIZE, format_devices};
use crate::holding::Holdings;
use crate::ledger::Ledger;
use crate::model::{Key, Model, joined_pieces, value_of};
use crate::operation::Operation;
use crate::snapshots::Snapshots;
use crate::zeroes::Zeroes;
use base::checksum::crc32c;
use base::request::Piece;
use base::units::BLOCK_SIZE;
use base::{ComponentId, DeviceId, Instant, Pool, Random};
use diskgroup::format::FORMAT_VERSION;
use diskgroup::format::page::Compression;
use diskgroup::format::superblock::Superblock;
use diskgroup::{
    Completion, ComponentKey, Event, Group, GroupError, Input, Io, IoFailure, Op, Origin, Output, Rule,
    Settings, Share, Shares,
};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// How a run ended well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Checksum over everything that happened, in order.
    pub trace: u64,
    /// Steps taken.
    pub steps: u64,
    /// Operations answered.
    pub answered: u64,
    /// Crashes survived.
    pub crashes: u64,
    /// Answers "damaged" (only where bits were flipped).
    pub damaged: u64,
    /// Blocks that could not be read until they were written again.
    pub bad_sectors: u64,
    /// Dead devices that were replaced.
    pub renewed: u64,
    /// Answers "no space".
    pub no_space: u64,
    /// Devices that were away until the log needed the space of what it kept for them.
    pub given_up: u64,
    /// Components that were rolled back to a snapshot.
    pub rolled_back: u64,
    /// Checkpoints in all lives of the group.
    pub checkpoints: u64,
    /// Blocks that were written anew to take less space.
    pub rewritten: u64,
    /// Works of the processor that ended.
    pub computed: u64,
    /// Those of them during which a device was lost.
    pub computed_after_loss: u64,
    /// And a component deleted.
    pub computed_after_deletion: u64,
}

/// A device request on its way; ordered by time, then by number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    at: u64,
    ticket: u64,
    io: Io,
    member: u8,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Read { offset: u64, buffer: base::Buffer },
    Write { range: std::ops::Range<u64> },
    Flush,
    Discard,
}

impl PartialEq for Kind {
    fn eq(&self, _: &Kind) -> bool {
        true
    }
}
impl Eq for Kind {}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (other.at, other.ticket).cmp(&(self.at, self.ticket))
    }
}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Component {
    pub(crate) id: ComponentId,
    pub(crate) member: u8,
    pub(crate) parts: u32,
    /// How it may be compressed by now: as it was told to last and, behind that, as it is being told.
    pub(crate) compressions: Vec<Compression>,
    pub(crate) key: Option<ComponentKey>,
    pub(crate) is_deleting: bool,
}

/// One run.
pub struct World {
    pub(crate) random: Random,
    pub(crate) settings: Settings,
    pub(crate) superblocks: Vec<Superblock>,
    pub(crate) devices: Vec<Device>,
    pub(crate) group: Option<Group>,
    pub(crate) pool: Pool,
    pub(crate) now: u64,
    pub(crate) tickets: u64,
    pub(crate) queue: BinaryHeap<Pending>,
    pub(crate) computing: Computing,
    pub(crate) model: Model,
    pub(crate) ledger: Ledger,
    pub(crate) holdings: Holdings,
    pub(crate) snapshots: Snapshots,
    pub(crate) zeroes: Zeroes,
    pub(crate) compressing: Compressing,
    /// When a host that crashes often does, and the checkpoints that it had seen last.
    restless: (Random, u64),
    pub(crate) components: BTreeMap<u32, Component>,
    pub(crate) next_component: u32,
    pub(crate) operations: BTreeMap<u64, Operation>,
    pub(crate) next_op: u64,
    pub(crate) sequence: u64,
    pub(crate) epoch: u32,
    pub(crate) is_open: bool,
    pub(crate) has_rot: bool,
    /// Where bad sectors come from, and how many there were.
    pub(crate) bad_sectors: Random,
    /// When dead devices are replaced, and the place of one that is leaving.
    pub(crate) renewals: Random,
    pub(crate) renewing: Option<u8>,
    /// The step at which the host crashes, soon after a device was replaced.
    pub(crate) crash_due: Option<u64>,
    pub(crate) bad_sector_count: usize,
    /// Blocks that were answered as damaged when they were read alone.
    pub(crate) damaged_alone: BTreeSet<Key>,
    /// Where the newest batch stands that is stable.
    pub(crate) last_batch: std::ops::Range<u64>,
    pub(crate) dead_members: u8,
    /// Members that are not there in this life.
    pub(crate) away_members: u8,
    /// Members that were away for too long. Whether they stay out is known when the anchor has told so.
    pub(crate) given_up: u8,
    pub(crate) faults: Faults,
    pub(crate) features: Features,
    pub(crate) latency_max: u64,
    pub(crate) summary: Summary,
    /// Step at which the host crashes, for runs that crash at each step in turn.
    pub(crate) crash_at: Option<u64>,
    pub(crate) verbose: bool,
    pub(crate) failure: Option<String>,
}

fn draw_settings(random: &mut Random, removed: Option<Rule>) -> Settings {
    Settings {
        table_bytes_max: if random.chance(1, 2) { 0 } else { 64 << 20 },
        retained_bytes_max: if random.chance(1, 2) { 0 } else { 2 << 20 },
        scrub_bytes_per_second: if random.chance(1, 3) { 1 << 30 } else { 0 },
        discard: random.chance(1, 2),
        rules: removed.into(),
    }
}

impl World {
    /// The world of `seed`, with the features that it draws; where it crashes at a step of all in turn, without bad sectors and other crashes.
    pub fn new(seed: u64, removed: Option<Rule>, crash_at: Option<u64>) -> World {
        let drawn = Features::drawn(seed);
        let is_random = crash_at.is_none();
        let (bad_sectors, restless) = (drawn.bad_sectors && is_random, drawn.restless && is_random);
        let features = Features { bad_sectors, restless, ..drawn };
        World::with_features(seed, features, removed, crash_at)
    }

    /// The world of `seed` with these features, whatever it draws.
    pub fn with_features(
        seed: u64,
        features: Features,
        removed: Option<Rule>,
        crash_at: Option<u64>,
    ) -> World {
        World::with_streams(seed, features, Features::draw(seed).1, removed, crash_at)
    }

    /// The same with streams of their own for the features.
    pub(crate) fn with_streams(
        seed: u64,
        features: Features,
        streams: Streams,
        removed: Option<Rule>,
        crash_at: Option<u64>,
    ) -> World {
        let mut random = Random::new(seed);
        let faults = Faults::draw(&mut random, crash_at);
        let capacity_count = random.below(3);
        let extents = if faults.full { random.range(10..20) } else { random.range(30..80) };
        // Beside the room that it keeps to write them again, a log that is half full of held blocks must take a large write.
        let log_size = if features.holding { 2 * LOG_SIZE } else { LOG_SIZE };
        let (mut superblocks, devices) =
            format_devices(&mut random, capacity_count, extents, log_size, DeviceId(1));
        let mut snapshots = streams.snapshots;
        let is_mapped = features.snapshots && snapshots.chance(2, 3);
        superblocks.iter_mut().filter(|_| is_mapped).for_each(|one| one.format = FORMAT_VERSION);
        let mut compressing =
            Compressing::new(features.compression.then_some(streams.compression), streams.rewriting);
        let is_mapped = compressing.wants_conversion();
        superblocks.iter_mut().filter(|_| is_mapped).for_each(|one| one.format = FORMAT_VERSION);
        let settings = draw_settings(&mut random, removed);
        let latency_max = [50_000, 200_000, 5_000_000][random.below(3) as usize];
        World {
            random,
            settings,
            superblocks,
            devices,
            group: None,
            pool: Pool::new(64 << 20),
            now: 1,
            tickets: 0,
            queue: BinaryHeap::new(),
            computing: Computing::new(features.busy.then_some(streams.computing)),
            model: Model::default(),
            ledger: Ledger::default(),
            holdings: Holdings::new(streams.holding),
            snapshots: Snapshots::new(snapshots),
            zeroes: Zeroes::without_impostors(features.zeroes.then_some(streams.zeroes)),
            compressing,
            restless: (streams.restless, 0),
            components: BTreeMap::new(),
            next_component: 1,
            operations: BTreeMap::new(),
            next_op: 1,
            sequence: 0,
            epoch: 1,
            is_open: false,
            has_rot: false,
            bad_sectors: streams.bad_sectors,
            renewals: streams.renewals,
            renewing: None,
            crash_due: None,
            bad_sector_count: 0,
            damaged_alone: BTreeSet::new(),
            last_batch: 0..0,
            dead_members: 0,
            away_members: 0,
            given_up: 0,
            faults,
            features,
            latency_max,
            summary: Summary::default(),
            crash_at,
            verbose: false,
            failure: None,
        }
    }

    /// Prints what happens.
    pub fn verbose(mut self) -> World {
        self.verbose = true;
        println!("features: {}", self.features);
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// What the oracle found.
    pub fn run(mut self, steps: u64) -> Result<Summary, String> {
        let mut lives = if self.crash_at.is_some() { 2 } else { self.random.range(2..6) };
        if self.features.restless && self.crash_at.is_none() {
            lives *= 3;
        }
        for life in 0..lives {
            self.open();
            let is_last = life + 1 == lives;
            let crash_at = match self.crash_at {
                Some(at) if life == 0 => at,
                Some(_) => u64::MAX,
                None if is_last => u64::MAX,
                None if self.features.restless => self.restless.0.below(steps / 2) + 1,
                None => self.random.below(steps) + 1,
            };
            let was_cut = self.live(steps.min(crash_at), crash_at <= steps)?;
            if was_cut {
                self.crash();
                continue;
            }
            self.settle()?;
            self.verify_all()?;
            self.check_damage()?;
            if !is_last {
                self.crash();
            }
        }
        let (bad_sectors, rolled_back) = (self.bad_sector_count as u64, self.snapshots.rolled_back);
        Ok(Summary { bad_sectors, rolled_back, ..self.summary })
    }

    pub(crate) fn note(&mut self, what: &str, value: u64) {
        let mut bytes = Vec::from(what.as_bytes());
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.extend_from_slice(&self.summary.trace.to_le_bytes());
        bytes.extend_from_slice(&self.now.to_le_bytes());
        self.summary.trace =
            u64::from(crc32c(&bytes)) << 32 | u64::from(crc32c(&[&bytes[..], b"x"].concat()));
        if self.verbose {
            println!("{:>12} step {:>5} {what} {value:#x}", self.now, self.summary.steps);
        }
    }

    fn open(&mut self) {
        let mut out = Vec::new();
        self.is_open = false;
        let mut superblocks = self.superblocks.clone();
        self.away_members = 0;
        if self.faults.away && superblocks.len() > 1 && self.random.chance(1, 3) {
            let place = self.random.range(1..superblocks.len() as u64) as u8;
            self.note("away", u64::from(place));
            self.away_members |= 1 << place;
            superblocks[place as usize] = Superblock::away(&superblocks[0], place);
        }
        let mut group =
            Group::open(superblocks, self.settings.clone(), self.pool.clone(), Instant(self.now), &mut out);
        if self.features.held_back {
            group.shares = Shares { scrub: Share::FLOOR, destage: Share::FLOOR };
        }
        self.group = Some(group);
        self.perform(out);
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Hands outputs to devices and answers to the oracle.
    pub(crate) fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Read { io, member, offset, buffer, .. } => {
                    self.note("read", offset);
                    self.enqueue(io, member, Kind::Read { offset, buffer });
                }
                Output::Write { io, member, offset, buffers, stable, .. } => {
                    let bytes: Vec<u8> = joined(&buffers);
                    self.note("write", offset ^ u64::from(crc32c(&bytes)) << 32);
                    let range = offset..offset + bytes.len() as u64;
                    self.devices[member as usize].begin_write(self.tickets, offset, bytes, stable);
                    self.enqueue(io, member, Kind::Write { range });
                }
                Output::Flush { io, member } => {
                    self.note("flush", u64::from(member));
                    self.devices[member as usize].begin_flush(self.tickets);
                    self.enqueue(io, member, Kind::Flush);
                }
                Output::Discard { io, member, offset, .. } => {
                    self.note("discard", offset);
                    self.enqueue(io, member, Kind::Discard);
                }
                Output::Compute { id, task } => self.compute(id, task),
                Output::Done { op, result } => self.done(op, result),
                Output::Event(event) => self.event(event),
            }
        }
    }

    fn enqueue(&mut self, io: Io, member: u8, kind: Kind) {
        let at = self.now + 1 + self.random.below(self.latency_max);
        self.queue.push(Pending { at, ticket: self.tickets, io, member, kind });
        self.tickets += 1;
    }

    fn event(&mut self, event: Event) {
        self.note("event", u64::from(crc32c(format!("{event:?}").as_bytes())));
        if self.verbose {
            println!("{event:?}");
        }
        match event {
            Event::Ready => {
                self.is_open = true;
                self.check_members();
                self.find_components();
            }
            Event::BlockDamaged { .. } | Event::PageDamaged { .. } | Event::OpenFailed(_) if self.has_rot => {
            }
            Event::BlockDamaged { .. } if self.bad_sector_count > 0 => {}
            Event::PageDamaged { .. } if self.has_bad_pages() => {}
            Event::MemberFailed { member, .. } if self.dead_members >> member & 1 == 1 => {}
            Event::MemberFailed { member, .. } if self.away_members >> member & 1 == 1 => {
                self.given_up |= 1 << member;
                self.summary.given_up += 1;
            }
            Event::ScrubRound { damaged: 0, .. } => {}
            Event::ScrubRound { .. } if self.has_rot || self.bad_sector_count > 0 => {}
            Event::OpenFailed(_) | Event::GroupFailed { .. } if self.dead_members != 0 => {}
            other => self.fail(format!("unexpected event: {other:?}")),
        }
    }

    /// After opening, a member that nothing befell is in service.
    fn check_members(&mut self) {
        let excused = self.dead_members | self.away_members | self.given_up;
        let state = self.group.as_ref().expect("a group is open").state();
        let unfit = state.members.iter().enumerate().find_map(|(place, member)| {
            let why = member.failure.as_ref().filter(|_| excused >> place & 1 == 0)?;
            (member.device != DeviceId(0)).then(|| format!("member {place} is out of service: {why}"))
        });
        if let Some(why) = unfit {
            self.fail(why);
        }
    }

    /// After opening: what was created must be there, what was deleted must not.
    fn find_components(&mut self) {
        self.ledger.crashed();
        let undecided: Vec<u32> = self
            .operations
            .values()
            .filter_map(|operation| match operation {
                Operation::Create { component } => Some(*component),
                Operation::Write { .. } | Operation::Changed { .. } | Operation::Holding(_) => None,
                Operation::OnSnapshot(..) | Operation::Compress { .. } | Operation::Rewrite { .. } => None,
                Operation::Read { .. } | Operation::Delete { .. } => None,
            })
            .collect();
        let may_lose_pages = self.may_lose_pages();
        let group = self.group.as_ref().expect("a group is open");
        let mut missing = Vec::new();
        let mut gone = Vec::new();
        let mut wrong = Ok(());
        for (number, component) in &mut self.components {
            component.key = group.component(component.id);
            if let Some(key) = component.key.filter(|_| !may_lose_pages) {
                wrong = wrong.and(self.ledger.check_window(component.id, &group.window(key)));
                wrong = wrong.and(self.ledger.check_decided(component.id, &group.decided_lately(key)));
            }
            let is_dead = (self.dead_members | self.given_up) >> component.member & 1 == 1;
            let is_away = self.away_members >> component.member & 1 == 1;
            if is_away && (component.is_deleting || undecided.contains(number)) {
                gone.push(*number); // Nobody can tell now whether it is there.
            } else if is_away {
                component.key = None;
            } else if component.key.is_none() && component.is_deleting {
                gone.push(*number);
            } else if component.key.is_none() && !is_dead && !may_lose_pages {
                missing.push(*number);
            }
            component.is_deleting = false;
        }
        if let Err(why) = wrong {
            self.fail(why);
        }
        for number in gone {
            self.ledger.forget(ComponentId(u64::from(number)));
            self.components.remove(&number);
            self.model.forget_component(number);
            self.snapshots.forget_component(number);
        }
        for number in missing {
            match undecided.contains(&number) {
                true => drop(self.components.remove(&number)),
                false => self.fail(format!("component {number} is lost")),
            }
        }
        self.operations.clear();
        self.find_compression();
        self.find_holdings();
        self.find_snapshots();
    }

    fn done(&mut self, op: Op, result: Result<Completion, GroupError>) {
        self.summary.answered += 1;
        let Some(operation) = self.operations.remove(&op.0) else {
            return self.fail(format!("operation {op:?} was answered twice"));
        };
        if self.verbose {
            println!("{op:?} ends: {:?}", result.as_ref().err());
        }
        self.note("done", op.0 << 1 | u64::from(result.is_ok()));
        match (operation, result) {
            (Operation::Write { keys, id, origin }, Ok(_)) => {
                keys.iter().for_each(|key| self.model.acknowledge(*key));
                let (component, part, first) = keys[0];
                let blocks = first..first + keys.len() as u16;
                self.ledger.end(ComponentId(u64::from(component)), id, origin, (part, blocks));
            }
            (Operation::Write { keys, id, origin, .. }, Err(error)) => {
                self.check_error(keys[0].0, error);
                if error == GroupError::DeviceLost {
                    return; // Unknown: it may have happened.
                }
                if let Origin::Guest(_) = origin {
                    self.ledger.refuse(ComponentId(u64::from(keys[0].0)), id);
                }
                keys.iter().for_each(|key| self.model.refuse(*key));
            }
            (Operation::Changed { expected, .. }, Ok(Completion::Changed { parts, next })) => {
                if let Err(why) = Ledger::check_changed(&expected, &parts, next) {
                    self.fail(why);
                }
            }
            (Operation::Changed { component, .. }, Err(error)) => self.check_error(component, error),
            (Operation::Read { first, count, began }, Ok(Completion::Data(pieces, _))) => {
                self.check_read(first, count, began, &pieces);
            }
            (Operation::Read { first, count, .. }, Err(error)) => {
                if count == 1 && error == GroupError::Damaged {
                    self.damaged_alone.insert(first);
                }
                self.check_error(first.0, error);
            }
            (Operation::Holding(holding), Ok(Completion::Data(pieces, _))) => {
                self.holding_done(holding, Some(&pieces));
            }
            (Operation::Holding(holding), Ok(Completion::Done)) => self.holding_done(holding, None),
            (Operation::Holding(holding), Err(error)) => self.holding_failed(&holding, error),
            (Operation::OnSnapshot(operation, id), result) => self.on_snapshot_ended(&operation, id, result),
            (Operation::Compress { component, compression }, result) => {
                self.compressing_ended(component, Some(compression), result);
            }
            (Operation::Rewrite { component }, result) => self.compressing_ended(component, None, result),
            (Operation::Create { component }, Ok(Completion::Component(key))) => {
                self.components.get_mut(&component).expect("it was made").key = Some(key);
            }
            (Operation::Create { component }, Err(error)) => {
                self.check_error(component, error);
                self.components.remove(&component);
            }
            (Operation::Delete { component }, Ok(_)) => {
                self.components.remove(&component);
                self.ledger.forget(ComponentId(u64::from(component)));
                self.model.forget_component(component);
                self.snapshots.forget_component(component);
            }
            (Operation::Delete { component }, Err(error)) => self.check_error(component, error),
            (operation, Ok(answer)) => self.fail(format!("{operation:?} was answered {answer:?}")),
        }
    }

    pub(crate) fn check_error(&mut self, component: u32, error: GroupError) {
        let member = self.components.get(&component).map_or(0, |component| component.member);
        let is_fair = match error {
            GroupError::NoSpace => {
                self.summary.no_space += 1;
                true
            }
            GroupError::Damaged => {
                self.summary.damaged += 1;
                self.has_rot || self.bad_sector_count > 0
            }
            GroupError::DeviceLost => (self.dead_members | self.given_up) & (1 << member | 1) != 0,
            GroupError::NoComponent => self.may_lose_pages(),
            GroupError::Full => self.features.holding,
            GroupError::NoSlot | GroupError::Malformed | GroupError::NotConverted | GroupError::NotYet => {
                false
            }
            GroupError::NoSnapshot | GroupError::SnapshotRefused => false,
        };
        if !is_fair {
            self.fail(format!("component {component}: unexpected answer: {error}"));
        }
    }

    fn check_read(&mut self, first: Key, count: u16, began: u64, pieces: &[Piece]) {
        let bytes = joined_pieces(pieces);
        if bytes.len() != count as usize * BLOCK_SIZE as usize {
            return self.fail(format!("a read of {count} blocks brought {} bytes", bytes.len()));
        }
        for (index, block) in bytes.chunks_exact(BLOCK_SIZE as usize).enumerate() {
            let key = (first.0, first.1, first.2 + index as u16);
            let checked = value_of(block).and_then(|found| self.model.check(key, found, began));
            if let Err(why) = checked {
                return self.fail(format!("{why} (block {key:?})"));
            }
        }
    }

    /// Lets the group live under load for so many steps. Says whether it is to crash now.
    fn live(&mut self, steps: u64, ends_in_crash: bool) -> Result<bool, String> {
        for _ in 0..steps {
            if self.is_open && self.operations.len() < 24 && self.random.chance(2, 3) {
                let is_begun = self.begin_on_snapshot()
                    || self.begin_holding()
                    || self.begin_compressing()
                    || self.begin_rewriting();
                if !is_begun {
                    self.begin_operation();
                }
            } else {
                self.step();
            }
            self.maybe_fault();
            self.renew();
            self.after_step()?;
            self.tire();
            if ends_in_crash && self.crash_due.take_if(|due| *due <= self.summary.steps).is_some() {
                return Ok(true);
            }
        }
        Ok(ends_in_crash)
    }

    /// A host that crashes often does so within some steps of the end of a checkpoint.
    fn tire(&mut self) {
        let Some(group) = self.group.as_ref().filter(|_| self.features.restless) else { return };
        let checkpoints = group.state().counters.checkpoints;
        if std::mem::replace(&mut self.restless.1, checkpoints) < checkpoints && self.restless.0.chance(1, 3)
        {
            self.crash_due = Some(self.summary.steps + self.restless.0.below(40));
        }
    }

    fn after_step(&mut self) -> Result<(), String> {
        self.summary.steps += 1;
        let mut out = Vec::new();
        if let Some(group) = &mut self.group {
            group.advance(Instant(self.now), &mut out);
        }
        self.perform(out);
        match self.failure.take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// The next device request completes; or time passes.
    fn step(&mut self) {
        let wake = self.group.as_ref().and_then(Group::wake_at).map_or(u64::MAX, |at| at.0);
        let next = self.queue.peek().map_or(u64::MAX, |pending| pending.at).min(self.computing.next_at());
        if wake.min(next) == u64::MAX {
            return;
        }
        if wake < next {
            self.now = self.now.max(wake);
            return;
        }
        if self.computing.next_at() == next {
            return self.computed();
        }
        let pending = self.queue.pop().expect("just seen");
        self.now = self.now.max(pending.at);
        let device = &mut self.devices[pending.member as usize];
        let mut result = Ok(());
        match pending.kind {
            Kind::Read { offset, buffer } if device.is_unreadable(offset, buffer.len()) => {
                result = Err(IoFailure::Unreadable("input/output error".to_owned()));
            }
            Kind::Read { offset, buffer } => buffer.fill_from(0, &device.read(offset, buffer.len())),
            Kind::Write { range } => {
                device.end_write(pending.ticket);
                let log = self.superblocks[0].geometry.log;
                // What a start writes to the end of the log is no batch.
                if self.is_open && pending.member == 0 && log.offset <= range.start && range.end <= log.end()
                {
                    self.last_batch = range;
                }
            }
            Kind::Flush => device.end_flush(pending.ticket),
            Kind::Discard => {}
        }
        if device.is_dead {
            result = Err(IoFailure::Device("the device is dead".to_owned()));
        }
        let mut out = Vec::new();
        let group = self.group.as_mut().expect("a group lives while requests are under way");
        group.step(Instant(self.now), Input::DeviceDone { io: pending.io, result }, &mut out);
        self.perform(out);
    }

    pub(crate) fn submit(&mut self, operation: Operation, input: impl FnOnce(Op) -> Input) {
        let op = Op(self.next_op);
        self.next_op += 1;
        if self.verbose {
            println!("{op:?} begins: {operation:?}");
        }
        self.operations.insert(op.0, operation);
        let mut out = Vec::new();
        let group = self.group.as_mut().expect("a group is open");
        group.step(Instant(self.now), input(op), &mut out);
        self.perform(out);
    }

    fn maybe_fault(&mut self) {
        if self.faults.rot && self.random.chance(1, 200) {
            let place = self.random.below(self.devices.len() as u64) as usize;
            let geometry = self.superblocks[place].geometry;
            let regions = [geometry.extents, geometry.table, geometry.log];
            let mut region = regions[self.random.below(3) as usize];
            if place == 0 && region == geometry.log && !self.last_batch.is_empty() {
                // Damage to the newest batch before a crash looks like a torn write, with one copy of the log: nobody
                // can tell them apart. So the newest batch is spared, and what stands behind it: all, if it is the first.
                region.len = self.last_batch.start - region.offset;
            }
            if let Some(at) = self.devices[place].rot(region.offset..region.end(), &mut self.random) {
                self.has_rot = true;
                self.note("rot", at);
            }
        }
        // With more of them in the short time of a run, a device goes out of service as a whole.
        let may_spoil = self.bad_sector_count < diskgroup::limits::UNREADABLE_BLOCKS_MAX;
        if self.features.bad_sectors && may_spoil && self.bad_sectors.chance(1, 60) {
            self.spoil_block();
        }
        if self.faults.dead_device && self.dead_members == 0 && self.random.chance(1, 400) {
            let place = self.random.below(self.devices.len() as u64) as usize;
            if self.superblocks[place].device != DeviceId(0) {
                self.devices[place].is_dead = true;
                self.dead_members |= 1 << place;
                self.note("dead", place as u64);
            }
        }
    }

    fn crash(&mut self) {
        self.convert();
        self.note("crash", self.summary.crashes);
        self.summary.crashes += 1;
        if let Some(group) = self.group.take() {
            let counters = group.state().counters;
            self.summary.checkpoints += counters.checkpoints;
            self.summary.rewritten += counters.rewritten_bytes / base::units::BLOCK_SIZE;
        }
        self.queue.clear();
        self.computing.crash();
        let mut random = self.random.fork();
        self.devices.iter_mut().for_each(|device| device.crash(&mut random));
        self.model.crash();
        self.crash_holdings();
        self.snapshots.crashed();
        self.epoch += 1;
        self.sequence = 0;
        self.is_open = false;
        self.renewing = None;
    }

    /// No new load: all that is under way must end.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        for _ in 0..200_000 {
            if self.is_open && self.operations.is_empty() {
                return Ok(());
            }
            if (self.has_rot || self.dead_members != 0) && self.is_still() && !self.is_open {
                return Ok(()); // It could not be opened, and said why.
            }
            if self.dead_members & 1 == 1 && self.is_still() {
                return Ok(());
            }
            self.step();
            self.after_step()?;
        }
        let group = self.group.as_ref().map(Group::state);
        Err(format!(
            "{} operations never end: {:?} {group:?}",
            self.operations.len(),
            self.operations.values().next()
        ))
    }

    /// Every block that was ever written, and its neighbours, must read as the model says.
    fn verify_all(&mut self) -> Result<(), String> {
        if !self.is_open || self.dead_members & 1 == 1 {
            return Ok(());
        }
        let mut parts: Vec<(u32, u32)> = self.model.keys().iter().map(|key| (key.0, key.1)).collect();
        parts.dedup();
        for (number, part) in parts {
            let is_live = self.components.get(&number).is_some_and(|component| component.key.is_some());
            if is_live {
                self.read(number, part, 0, 256);
                self.settle()?;
                if self.has_rot || self.bad_sector_count > 0 {
                    self.verify_blocks(number, part)?;
                }
            }
        }
        self.verify_holdings()?;
        self.verify_snapshots()?;
        if self.features.compression { self.verify_frames() } else { Ok(()) }
    }

    /// Block by block, since one damaged block hides its neighbours in a larger read.
    fn verify_blocks(&mut self, number: u32, part: u32) -> Result<(), String> {
        for block in 0..256 {
            self.read(number, part, block, 1);
        }
        self.settle()
    }
}
