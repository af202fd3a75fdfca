//! The state of destaging: the round under way, the extents that it moves, and how much may be in flight.

use crate::format::batch::ExtentLocation;
use crate::format::map::Form;
use crate::index::{Index, IndexEntry, Newest};
use crate::limits;
use crate::log::{BatchStart, Log};
use crate::read::UNITS_PER_BLOCK;
use crate::share::Share;
use crate::unreadable::BadBlocks;
use base::checksum::crc32c;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, MIB};
use base::{Buffer, Instant, WriteId};
use slab::Slab;
use smallvec::SmallVec;

/// One round over the oldest part of the log.
#[derive(Debug)]
struct Round {
    boundary: BatchStart,
    /// Extents to visit, in order; the next one is at `next`.
    queue: Vec<Due>,
    next: usize,
    active: usize,
    started: Instant,
    bytes: u64,
    /// Whether it takes all trims that are stable at its start.
    covers_all: bool,
}

/// The state of destaging.
#[derive(Debug, Default)]
pub(crate) struct Destaging {
    round: Option<Round>,
    /// The extents on their way.
    moves: Slab<Destage>,
    bytes_in_flight: u64,
    /// Bytes a second in the last round that moved any.
    pace: f64,
    /// Boundary of the last round; a tail that is about to move there counts as moved.
    reached: u64,
    /// Whether a round has ended whose checkpoint would gain nothing.
    is_held: bool,
    /// A round has ended up to here and its checkpoint has not begun.
    finished: Option<BatchStart>,
    /// Destagings that wait for memory.
    waiting: Vec<u32>,
    /// Whether everything is to be destaged, however little there is.
    is_draining: bool,
}

/// How much is kept in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    bytes: u64,
    extents: usize,
}

impl Depth {
    pub(crate) const MAX: Depth =
        Depth { bytes: limits::DESTAGE_BYTES_MAX, extents: limits::DESTAGE_EXTENTS_MAX };

    /// That of a log so full.
    pub(crate) fn at(fill_percent: u64) -> Depth {
        let above = fill_percent.saturating_sub(limits::DESTAGE_START_PERCENT);
        let share = (above as f64 / 50.0).min(1.0);
        let between = |min: f64, max: f64| min + (max - min) * share;
        Depth {
            bytes: between(limits::DESTAGE_BYTES_MIN as f64, Depth::MAX.bytes as f64) as u64,
            extents: between(8.0, Depth::MAX.extents as f64) as usize,
        }
    }

    /// Held back for guests, the less the fuller the log is: where congestion begins it is not held back at all, for a full
    /// log slows guests more than destaging does. Between, it finds the fill at which it keeps up with them.
    pub(crate) fn held(self, fill_permille: u64, share: Share) -> Depth {
        let (start, urgent) = (limits::DESTAGE_START_PERCENT * 10, limits::CONGESTION_START_PERCENT * 10);
        let relief = (fill_permille.saturating_sub(start) as f64 / (urgent - start) as f64).min(1.0);
        let part = share.fraction() + (1.0 - share.fraction()) * relief;
        Depth {
            bytes: (self.bytes as f64 * part) as u64,
            extents: ((self.extents as f64 * part) as usize).max(1),
        }
    }
}

/// A block that is moved.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) block: u8,
    pub(crate) id: WriteId,
    pub(crate) position: u64,
    /// `None`: trimmed.
    pub(crate) checksum: Option<u32>,
    /// `None` until it was read, and for good if it is damaged or trimmed.
    pub(crate) data: Option<Buffer>,
    /// The unit (512 bytes) of the device to which its data go; 0 until that is chosen.
    pub(crate) unit: u64,
    /// What its slot begins with, if it is compressed.
    pub(crate) packed: Option<Box<[u8]>>,
    /// How it is stored.
    pub(crate) form: Form,
}

impl Item {
    /// Whether it has to be read from the log.
    pub(crate) fn is_missing(&self) -> bool {
        self.checksum.is_some() && self.data.is_none()
    }

    /// Whether its data could not be read, once that was tried.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_missing()
    }
}

/// Blocks side by side in the log, to be read at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRun {
    pub(crate) position: u64,
    pub(crate) count: u64,
}

/// Blocks side by side on a device, to be written at once.
#[derive(Debug)]
pub(crate) struct RestRun {
    pub(crate) unit: u64,
    pub(crate) count: u64,
    pub(crate) buffers: Buffers,
}

impl RestRun {
    /// A block that is to be written at that unit follows those before, or begins another run.
    pub(crate) fn add(runs: &mut Vec<RestRun>, unit: u64, data: &Buffer) {
        match runs.last_mut() {
            Some(run) if run.unit + run.count * UNITS_PER_BLOCK == unit => {
                run.count += 1;
                if !run.buffers.last_mut().is_some_and(|last| last.try_join(data)) {
                    run.buffers.push(data.clone());
                }
            }
            Some(_) | None => {
                runs.push(RestRun { unit, count: 1, buffers: smallvec::smallvec![data.clone()] });
            }
        }
    }
}

/// What a visit of destaging is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// An extent.
    Extent(ExtentLocation),
    /// A part that is in no extent, of a component on that member.
    Part { member: u8, part: (u32, u32) },
}

impl Due {
    /// The device.
    pub(crate) fn member(self) -> u8 {
        match self {
            Due::Extent(location) => location.member,
            Due::Part { member, .. } => member,
        }
    }
}

/// How the blocks of a visit get their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Where they are in the extent.
    InPlace,
    /// In frames; they were written when snapshot `born` was the newest, and `keeper` may see what they replace. One that comes late meanwhile does not keep it:
    /// nobody knows yet what that sees.
    Mapped { born: u32, keeper: Option<u32> },
}

/// How the visit to an extent begins.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) way: Way,
    /// Pages that are pinned for it.
    pub(crate) pinned: SmallVec<[u32; 2]>,
    /// Pages that it will take.
    pub(crate) pages: u32,
}

/// What has been begun for an extent on its way: its pages are pinned.
#[derive(Debug)]
struct Moving {
    begun: Begun,
    items: Vec<Item>,
    /// Frames with compressed blocks of it, by their units.
    frames: Vec<(u64, Buffer)>,
    /// Frames that were promised to its blocks and that they, compressed, do not need.
    spare: u64,
    /// Whether its blocks were compressed, or tried.
    was_compressed: bool,
    /// Device requests under way.
    outstanding: usize,
    bytes: u64,
}

/// One extent on its way.
#[derive(Debug)]
pub(crate) struct Destage {
    due: Due,
    dirty: u32,
    generation: u32,
    boundary: u64,
    /// `None` while it waits for its page or for memory.
    moving: Option<Moving>,
}

/// How the visit to an extent ended.
#[derive(Debug)]
pub(crate) struct Visited {
    pub(crate) due: Due,
    pub(crate) dirty: u32,
    /// The pages that were pinned for it.
    pub(crate) pinned: SmallVec<[u32; 2]>,
    /// Whether it had its blocks on their way.
    pub(crate) was_begun: bool,
    /// Frames that were promised to its blocks and that they, compressed, did not need.
    pub(crate) spare: u64,
}

impl Destage {
    pub(crate) fn due(&self) -> Due {
        self.due
    }

    /// Up to where in the log it takes blocks.
    pub(crate) fn boundary(&self) -> u64 {
        self.boundary
    }

    /// How its blocks, which are on their way, get their places.
    pub(crate) fn way(&self) -> Way {
        self.moving.as_ref().expect("its device requests were begun").begun.way
    }

    /// The key of what the log has of the extent.
    pub(crate) fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Whether the extent was freed since the visit began.
    pub(crate) fn is_stale(&self, index: &Index) -> bool {
        index.get(self.dirty).generation() != self.generation
    }

    /// What is to be moved of the oldest segment: what is in memory has its data.
    pub(crate) fn due_items(&self, index: &Index, way: Way) -> Vec<Item> {
        let (_, entries) = index.get(self.dirty).oldest_segment();
        let mut items = match way {
            Way::InPlace => due_items(entries, self.boundary),
            Way::Mapped { .. } => exact_items(entries, self.boundary),
        };
        for item in items.iter_mut().filter(|item| item.checksum.is_some()) {
            item.data = index.retained(item.position).cloned();
        }
        items
    }

    fn moving(&mut self) -> &mut Moving {
        self.moving.as_mut().expect("its device requests were begun")
    }

    /// A read of the log brought blocks. Gives back those that are damaged.
    fn take_read(&mut self, run: LogRun, buffer: &Buffer, bad: &BadBlocks) -> Vec<u8> {
        let positions = run.position..run.position + run.count;
        let mut damaged = Vec::new();
        let within = |item: &&mut Item| item.checksum.is_some() && positions.contains(&item.position);
        for item in self.moving().items.iter_mut().filter(within) {
            let index = (item.position - run.position) as usize;
            let data = buffer.slice(index * BLOCK_SIZE as usize, BLOCK_SIZE as usize);
            match !bad.contains(index) && Some(crc32c(&data)) == item.checksum {
                true => item.data = Some(data),
                false => damaged.push(item.block),
            }
        }
        damaged
    }
}

/// Blocks at these positions of the log, neighbours together.
pub(crate) fn log_runs(positions: impl Iterator<Item = u64>, log_blocks: u64) -> Vec<LogRun> {
    let mut runs: Vec<LogRun> = Vec::new();
    for position in positions {
        match runs.last_mut() {
            Some(run)
                if run.position + run.count == position
                    && run.count < MIB / BLOCK_SIZE
                    && !position.is_multiple_of(log_blocks) =>
            {
                run.count += 1;
            }
            Some(_) | None => runs.push(LogRun { position, count: 1 }),
        }
    }
    runs
}

impl Destaging {
    /// Everything is to be destaged from now on, however little there is.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Whether a round may begin: none is under way, nor its end waits for a checkpoint.
    pub(crate) fn may_begin_round(&self) -> bool {
        self.round.is_none() && self.finished.is_none()
    }

    /// Boundary of the last round.
    pub(crate) fn reached(&self) -> u64 {
        self.reached
    }

    /// Where a round has ended whose checkpoint has not begun.
    pub(crate) fn finished(&self) -> Option<BatchStart> {
        self.finished
    }

    /// The checkpoint begins.
    pub(crate) fn take_finished(&mut self) -> Option<BatchStart> {
        self.finished.take()
    }

    /// Whether a round has ended whose checkpoint would gain nothing.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The round that has ended gets no checkpoint: it would gain nothing.
    pub(crate) fn hold(&mut self) {
        self.finished = None;
        self.is_held = true;
    }

    /// A checkpoint gains something again: the next one goes to where destaging has been, if that was held back.
    pub(crate) fn end_hold(&mut self, log: &Log) {
        if std::mem::take(&mut self.is_held) {
            self.catch_up(log);
        }
    }

    /// The tail was held back and may go on: the next checkpoint takes it to where destaging has been.
    pub(crate) fn catch_up(&mut self, log: &Log) {
        if self.finished.is_none() && self.reached > log.tail() {
            self.finished = Some(log.start_at_or_after(self.reached, log.next_start()));
        }
    }

    /// Log blocks of a round: an eighth of the log; when it fills up, no more than goes in a quarter of a second.
    pub(crate) fn round_blocks(&self, log_blocks: u64, fill_percent: u64) -> u64 {
        let eighth = (log_blocks / 8).max(1);
        if fill_percent < limits::CONGESTION_START_PERCENT || self.pace == 0.0 {
            return eighth;
        }
        let blocks = self.pace * limits::DESTAGE_ROUND_SECONDS / BLOCK_SIZE as f64;
        (blocks as u64).clamp(limits::DESTAGE_ROUND_BLOCKS_MIN.min(eighth), eighth)
    }

    /// A round begins over these extents, up to `boundary`. `covers_all`: it takes all trims that are stable now.
    pub(crate) fn begin_round(
        &mut self,
        boundary: BatchStart,
        queue: Vec<Due>,
        covers_all: bool,
        started: Instant,
    ) {
        assert!(self.may_begin_round(), "one round is under way at a time");
        self.round = Some(Round { boundary, queue, next: 0, active: 0, started, bytes: 0, covers_all });
    }

    /// Whether the round under way is to end as soon as it can.
    pub(crate) fn is_urgent(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.covers_all)
    }

    /// The extent to visit next, unless so much is in flight.
    pub(crate) fn next_due(&mut self, depth: Depth) -> Option<Due> {
        let round = self.round.as_mut()?;
        if round.active >= depth.extents || self.bytes_in_flight >= depth.bytes {
            return None;
        }
        let due = *round.queue.get(round.next)?;
        round.next += 1;
        Some(due)
    }

    /// An extent is visited: gives its key.
    pub(crate) fn visit(&mut self, due: Due, dirty: u32, generation: u32) -> u32 {
        let round = self.round.as_mut().expect("destaging happens in rounds");
        round.active += 1;
        let boundary = round.boundary.position;
        self.moves.insert(Destage { due, dirty, generation, boundary, moving: None }) as u32
    }

    /// The round under way visits something once more.
    pub(crate) fn visit_again(&mut self, due: Due) {
        self.round.as_mut().expect("destaging happens in rounds").queue.push(due);
    }

    /// Up to where the round under way takes blocks.
    pub(crate) fn boundary(&self) -> Option<u64> {
        self.round.as_ref().map(|round| round.boundary.position)
    }

    /// Pages that visits take which are on their way on a device.
    pub(crate) fn pages_of_visits(&self, member: u8) -> u32 {
        let of_member = self.moves.iter().filter(|(_, one)| one.due.member() == member);
        of_member.filter_map(|(_, one)| Some(one.moving.as_ref()?.begun.pages)).sum()
    }

    pub(crate) fn get(&self, key: u32) -> &Destage {
        &self.moves[key as usize]
    }

    /// An extent waits for memory, or for free pages.
    pub(crate) fn wait(&mut self, key: u32) {
        self.waiting.push(key);
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a round is under way all of whose visits wait.
    pub(crate) fn only_waits(&self) -> bool {
        !self.waiting.is_empty() && self.waiting.len() == self.moves.len()
    }

    /// Gives back the extents that wait.
    pub(crate) fn take_waiting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.waiting)
    }

    /// A visit whose pages are pinned begins to move blocks, with so many reads of the log.
    pub(crate) fn begin(&mut self, key: u32, begun: Begun, items: Vec<Item>, reads: usize) {
        let bytes = items.iter().filter(|item| item.checksum.is_some()).count() as u64 * BLOCK_SIZE;
        self.bytes_in_flight += bytes;
        let moving = &mut self.moves[key as usize].moving;
        assert!(moving.is_none(), "an extent is moved once in a visit");
        let (frames, spare, was_compressed) = (Vec::new(), 0, false);
        *moving = Some(Moving { begun, items, frames, spare, was_compressed, outstanding: reads, bytes });
    }

    /// A read of the log brought blocks. Gives back those that are damaged, and whether it was the last read.
    pub(crate) fn read_done(
        &mut self,
        key: u32,
        run: LogRun,
        buffer: &Buffer,
        bad: &BadBlocks,
    ) -> (Vec<u8>, bool) {
        let destage = &mut self.moves[key as usize];
        let damaged = destage.take_read(run, buffer, bad);
        let moving = destage.moving();
        moving.outstanding -= 1;
        (damaged, moving.outstanding == 0)
    }

    /// The blocks that a visit is about to give their places, each with its position in the log: damaged ones, which are not written, among them.
    pub(crate) fn items_of(&self, key: u32) -> Vec<(u8, u64)> {
        let moving = self.moves[key as usize].moving.as_ref().expect("its device requests were begun");
        let blocks = moving.items.iter().filter(|item| item.checksum.is_some());
        blocks.map(|item| (item.block, item.position)).collect()
    }

    /// The items of a visit, whose blocks are all read, that are still needed.
    pub(crate) fn retain_items(&mut self, key: u32, is_needed: impl Fn(&Item) -> bool) {
        self.moves[key as usize].moving().items.retain(is_needed);
    }

    /// The items of a visit whose blocks are all read, to be given their places.
    pub(crate) fn items_mut(&mut self, key: u32) -> &mut [Item] {
        &mut self.moves[key as usize].moving().items
    }

    /// The writes of a visit whose blocks all have their places, neighbours together; they are begun now.
    pub(crate) fn begin_writes(&mut self, key: u32) -> Vec<RestRun> {
        let moving = self.moves[key as usize].moving();
        let mut runs: Vec<RestRun> = Vec::new();
        let plain = moving.items.iter().filter(|item| item.packed.is_none());
        let plain = plain.filter_map(|item| Some((item.unit, item.data.as_ref()?)));
        for (unit, data) in plain.chain(moving.frames.iter().map(|(unit, data)| (*unit, data))) {
            RestRun::add(&mut runs, unit, data);
        }
        moving.outstanding = runs.len();
        runs
    }

    /// Whether the blocks of a visit, which are all read, were compressed, or tried; from now on they count as such.
    pub(crate) fn begin_compressing(&mut self, key: u32) -> bool {
        std::mem::replace(&mut self.moves[key as usize].moving().was_compressed, true)
    }

    /// Frames with compressed blocks of a visit, by their units, are to be written, and so many frames less are needed than were promised.
    pub(crate) fn put_frames(&mut self, key: u32, frames: Vec<(u64, Buffer)>, spare: u64) {
        let moving = self.moves[key as usize].moving();
        (moving.frames, moving.spare) = (frames, spare);
    }

    /// Whether any visit to a device is under way.
    pub(crate) fn visits(&self, member: u8) -> bool {
        self.moves.iter().any(|(_, one)| one.due.member() == member)
    }

    /// A write of an extent ended. Says whether it was the last one.
    pub(crate) fn write_done(&mut self, key: u32) -> bool {
        let moving = self.moves[key as usize].moving();
        moving.outstanding -= 1;
        moving.outstanding == 0
    }

    /// Takes what was moved of an extent.
    pub(crate) fn take_items(&mut self, key: u32) -> Vec<Item> {
        std::mem::take(&mut self.moves[key as usize].moving().items)
    }

    /// The visit to an extent ended.
    pub(crate) fn end(&mut self, key: u32) -> Visited {
        let Destage { due, dirty, moving, .. } = self.moves.remove(key as usize);
        let was_begun = moving.is_some();
        let (bytes, spare, pinned) = moving
            .map_or((0, 0, SmallVec::new()), |moving| (moving.bytes, moving.spare, moving.begun.pinned));
        self.bytes_in_flight -= bytes;
        let round = self.round.as_mut().expect("a round lasts until its last extent is done");
        round.active -= 1;
        round.bytes += bytes;
        Visited { due, dirty, pinned, was_begun, spare }
    }

    /// The boundary of a round that has visited all its extents.
    pub(crate) fn visited(&self) -> Option<BatchStart> {
        let is_done = |round: &&Round| round.active == 0 && round.next == round.queue.len();
        self.round.as_ref().filter(is_done).map(|round| round.boundary)
    }

    /// More extents are to be visited by the round that has visited all others.
    pub(crate) fn extend_round(&mut self, queue: Vec<Due>) {
        assert!(self.visited().is_some(), "a round goes through its extents once");
        if let Some(round) = &mut self.round {
            (round.queue, round.next) = (queue, 0);
        }
    }

    /// Ends the round, which has visited all its extents, at a boundary that is no later than its own. Says whether it took all trims
    /// that were stable at its start.
    pub(crate) fn end_round(&mut self, boundary: BatchStart, now: Instant) -> bool {
        assert!(
            self.visited().is_some_and(|own| own.position >= boundary.position),
            "a round ends when it is done"
        );
        let round = self.round.take().expect("it has visited its extents");
        let seconds = now.since(round.started).as_secs_f64();
        if round.bytes > 0 && seconds > 0.0 {
            self.pace = round.bytes as f64 / seconds;
        }
        self.reached = boundary.position;
        self.finished = Some(boundary);
        round.covers_all
    }
}

/// The entries older than the boundary, and those right beside them.
fn due_items(entries: &[IndexEntry], boundary: u64) -> Vec<Item> {
    let mut takes: Vec<bool> = entries.iter().map(|entry| entry.position < boundary).collect();
    let is_beside = |a: usize, b: usize| entries[a].block + 1 == entries[b].block;
    for index in 1..entries.len() {
        takes[index] |= takes[index - 1] && is_beside(index - 1, index);
    }
    for index in (1..entries.len()).rev() {
        takes[index - 1] |= takes[index] && is_beside(index - 1, index);
    }
    let taken = entries.iter().zip(takes).filter(|(_, take)| *take);
    taken.map(|(entry, _)| item(entry)).collect()
}

/// The entries older than the boundary, but those that became content behind it: a map page tells up to where in the log it has all.
fn exact_items(entries: &[IndexEntry], boundary: u64) -> Vec<Item> {
    entries.iter().filter(|entry| entry.position < boundary && !entry.is_late).map(item).collect()
}

fn item(entry: &IndexEntry) -> Item {
    Item {
        block: entry.block,
        id: entry.id,
        position: entry.position,
        checksum: (entry.newest == Newest::Data).then_some(entry.checksum),
        data: None,
        unit: 0,
        packed: None,
        form: Form::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(fill_percent: u64, share: Share) -> Depth {
        Depth::at(fill_percent).held(fill_percent * 10, share)
    }

    #[test]
    fn guests_who_feel_it_have_destaging_held_back_while_the_log_has_room() {
        assert_eq!(held(30, Share::FULL), Depth { bytes: limits::DESTAGE_BYTES_MIN, extents: 8 });
        assert_eq!(held(30, Share::FLOOR), Depth { bytes: limits::DESTAGE_BYTES_MIN / 16, extents: 1 });
        assert!(held(45, Share::FLOOR).bytes < held(45, Share::FULL).bytes);
    }

    #[test]
    fn the_fuller_the_log_the_less_destaging_is_held_back() {
        let part = |fill| held(fill, Share::FLOOR).bytes as f64 / Depth::at(fill).bytes as f64;
        assert!((31..=60).all(|fill| part(fill - 1) < part(fill)));
    }

    #[test]
    fn a_log_that_is_congested_is_destaged_as_deep_as_ever() {
        for fill in limits::CONGESTION_START_PERCENT..=100 {
            assert_eq!(held(fill, Share::FLOOR), Depth::at(fill), "{fill} %");
        }
        let few_bytes = Depth::at(30);
        assert_eq!(few_bytes.held(600, Share::FLOOR), few_bytes, "the index is full of trims");
        assert_eq!(Depth::at(100), Depth::MAX);
    }
}
