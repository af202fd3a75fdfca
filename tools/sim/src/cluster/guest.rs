//! A virtual guest: it reads, writes and trims its disk, moves, and checks what it gets.

use super::register::{Block, Registers};
use super::snapshots::request_of;
use super::views::Views;
use crate::model::{Value, fill, joined_pieces, value_of};
use crate::zeroes::Zeroes;
use base::request::{Buffers, Outcome, Piece, Reply, Request, RequestError, StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, MIB};
use base::{DiskId, Pool, Random};
use std::collections::BTreeMap;

/// A request under way.
#[derive(Debug)]
enum Asked {
    /// `via`: the host of a rival, who writes what the guest is writing.
    Write { blocks: Vec<(Block, Value)>, via: Option<usize> },
    /// `via`: the host of an observer.
    Read { first: u64, count: u64, began: u64, via: Option<usize> },
    /// `via`: the host of whoever reads the view.
    View { number: u32, first: u64, count: u64, via: usize },
    /// The same of whoever asks what views hold, or what changed between two.
    Survey { of: StatusOf, first: u64, count: u64, via: usize },
}

impl Asked {
    /// The host of whoever asked, if that is not the guest.
    fn via(&self) -> Option<usize> {
        match self {
            Asked::Write { via, .. } | Asked::Read { via, .. } => *via,
            Asked::View { via, .. } | Asked::Survey { via, .. } => Some(*via),
        }
    }
}

/// The guest of one disk.
pub struct Guest {
    /// Its disk.
    pub disk: DiskId,
    size_blocks: u64,
    /// The host that it runs on, and the one that it moves to.
    pub host: usize,
    /// See `host`.
    pub moving_to: Option<usize>,
    pub(crate) registers: Registers,
    /// Whether what it writes becomes smaller to different degrees.
    pub(crate) is_compressed: bool,
    /// The number of the snapshot of the first disk that its disk is a clone of.
    pub(crate) origin: Option<u32>,
    /// Whether it was told that this is not there.
    pub(crate) lacks_origin: bool,
    /// What its snapshots read as.
    pub(crate) views: Views,
    asked: BTreeMap<u64, Asked>,
    /// Writes of clients that are gone, and when all that matters knows that they are.
    doubtful: Vec<(u64, Block, Value)>,
    next_token: u64,
    /// When the oldest of `asked` was asked.
    since: BTreeMap<u64, u64>,
    /// The longest that a request took, in nanoseconds.
    pub longest_ns: u64,
    /// Writes acknowledged, of the guest itself.
    pub written: u64,
    /// Requests answered.
    pub answered: u64,
    /// Answers that told of damage, or of no space.
    pub errors: u64,
}

impl Guest {
    /// The guest of a disk of so many bytes, on that host. Of one that has rows, now or when it has moved, a write that was long unanswered may be done again.
    pub fn new(disk: DiskId, size: u64, host: usize, has_rows: bool) -> Guest {
        Guest {
            is_compressed: false,
            disk,
            size_blocks: size / BLOCK_SIZE,
            host,
            moving_to: None,
            registers: if has_rows { Registers::of_rows() } else { Registers::default() },
            origin: None,
            lacks_origin: false,
            views: Views::default(),
            asked: BTreeMap::new(),
            doubtful: Vec::new(),
            next_token: 1,
            since: BTreeMap::new(),
            longest_ns: 0,
            written: 0,
            answered: 0,
            errors: 0,
        }
    }

    /// Writes that were done again after long.
    pub fn repeated(&self) -> u64 {
        self.registers.repeated()
    }

    /// Requests of its own under way.
    pub fn outstanding(&self) -> usize {
        self.asked.values().filter(|asked| asked.via().is_none()).count()
    }

    /// The next request, if the guest finds one to make.
    pub(crate) fn ask(
        &mut self,
        now: u64,
        (random, zeroes): (&mut Random, &mut Zeroes),
        pool: &Pool,
    ) -> Option<(u64, Request)> {
        self.decide(now);
        // Few are large: those cost the simulator most, and bring little that small ones do not.
        let count = match random.below(48) {
            0 => 256,
            1..4 => 40,
            4..10 => 8,
            10..18 => 2,
            _ => 1,
        };
        // Half of the load goes to a few blocks, so that they are written again and again.
        let range = if random.chance(1, 2) { 24.min(self.size_blocks) } else { self.size_blocks };
        let first = random.below(range);
        let count = count.min(self.size_blocks - first);
        let token = self.next_token;
        let request = match random.below(20) {
            0..11 => self.write(first, count, (random, zeroes), pool)?,
            11 | 12 => self.trim(first, count)?,
            _ => {
                let (offset, len) = (first * BLOCK_SIZE, (count * BLOCK_SIZE) as u32);
                let began = self.registers.clock();
                self.asked.insert(token, Asked::Read { first, count, began, via: None });
                Request::Read { offset, len }
            }
        };
        self.next_token += 1;
        self.since.insert(token, now);
        Some((token, request))
    }

    fn is_free(&self, first: u64, count: u64) -> bool {
        (first..first + count).all(|block| !self.registers.is_busy(block))
    }

    fn write(
        &mut self,
        first: u64,
        count: u64,
        random: (&mut Random, &mut Zeroes),
        pool: &Pool,
    ) -> Option<Request> {
        self.is_free(first, count).then_some(())?;
        let (data, blocks) = self.data(first, count, random, pool)?;
        self.asked.insert(self.next_token, Asked::Write { blocks, via: None });
        Some(Request::Write { offset: first * BLOCK_SIZE, data })
    }

    /// Blocks that nobody has written so before, but for zeroes.
    fn data(
        &mut self,
        first: u64,
        count: u64,
        (random, zeroes): (&mut Random, &mut Zeroes),
        pool: &Pool,
    ) -> Option<(Buffers, Vec<(Block, Value)>)> {
        let all: Vec<Block> = (first..first + count).collect();
        let (mut data, mut blocks) = (Buffers::new(), Vec::new());
        for part in all.chunks((MIB / BLOCK_SIZE) as usize) {
            let mut buffer = pool.take(part.len() * BLOCK_SIZE as usize)?;
            let mut values: Vec<Value> = part.iter().map(|_| random.bits() >> 16 | 1).collect();
            if self.is_compressed {
                super::compressing::squeeze(&mut values);
            }
            zeroes.mix_in(&mut values);
            let parts = buffer.bytes_mut().chunks_exact_mut(BLOCK_SIZE as usize);
            for ((block, bytes), value) in part.iter().zip(parts).zip(values) {
                fill(value, bytes);
                self.registers.begin(*block, value);
                blocks.push((*block, value));
            }
            data.push(buffer);
        }
        Some((data, blocks))
    }

    fn trim(&mut self, first: u64, count: u64) -> Option<Request> {
        self.is_free(first, count).then_some(())?;
        let blocks: Vec<(Block, Value)> = (first..first + count).map(|block| (block, 0)).collect();
        blocks.iter().for_each(|(block, value)| self.registers.begin(*block, *value));
        self.asked.insert(self.next_token, Asked::Write { blocks, via: None });
        Some(Request::Trim { offset: first * BLOCK_SIZE, len: count * BLOCK_SIZE })
    }

    /// Somebody at another host writes a block that the guest is writing: a client that was told to take over, perhaps,
    /// while the former one's host sleeps.
    pub fn rival(&mut self, host: usize, random: &mut Random, pool: &Pool) -> Option<(u64, Request)> {
        let is_single =
            |asked: &&Asked| matches!(asked, Asked::Write { blocks, via: None } if blocks.len() == 1);
        let found = self.asked.values().find(|asked| is_single(asked) && self.has_no_rival(asked))?;
        let Asked::Write { blocks, .. } = found else { return None };
        let block = blocks[0].0;
        // Never zeroes, whose value is that of others, too.
        let (data, blocks) = self.data(block, 1, (random, &mut Zeroes::default()), pool)?;
        let token = self.next_token;
        self.next_token += 1;
        self.asked.insert(token, Asked::Write { blocks, via: Some(host) });
        Some((token, Request::Write { offset: block * BLOCK_SIZE, data }))
    }

    fn has_no_rival(&self, asked: &Asked) -> bool {
        let Asked::Write { blocks, .. } = asked else { return false };
        let is_same = |other: &Asked| match other {
            Asked::Write { blocks: others, via: Some(_) } => others[0].0 == blocks[0].0,
            Asked::Write { .. } | Asked::Read { .. } | Asked::View { .. } | Asked::Survey { .. } => false,
        };
        // A trim's value is that of others too, so that nothing could be told.
        blocks[0].1 != 0 && !self.asked.values().any(is_same)
    }

    /// A read of the whole disk, part by part, for the end.
    pub fn read_part(&mut self, now: u64, part: u64) -> Option<(u64, Request)> {
        self.decide(now);
        let per_part = MIB / BLOCK_SIZE;
        let first = part * per_part;
        if first >= self.size_blocks {
            return None;
        }
        let token = self.next_token;
        self.next_token += 1;
        self.since.insert(token, now);
        let asked = Asked::Read { first, count: per_part, began: self.registers.clock(), via: None };
        self.asked.insert(token, asked);
        Some((token, Request::Read { offset: first * BLOCK_SIZE, len: MIB as u32 }))
    }

    /// The requests of its own that are under way.
    pub fn own_requests(&self) -> Vec<u64> {
        let own = self.asked.iter().filter(|(_, asked)| asked.via().is_none());
        own.map(|(token, _)| *token).collect()
    }

    /// Requests of observers and rivals under way.
    pub fn observers(&self) -> usize {
        self.asked.len() - self.outstanding()
    }

    /// What somebody reads through another host.
    pub fn observe(&mut self, host: usize, random: &mut Random) -> (u64, Request) {
        let token = self.next_token;
        self.next_token += 1;
        let first = random.below(24.min(self.size_blocks));
        let asked = Asked::Read { first, count: 1, began: self.registers.clock(), via: Some(host) };
        self.asked.insert(token, asked);
        (token, Request::Read { offset: first * BLOCK_SIZE, len: BLOCK_SIZE as u32 })
    }

    /// What somebody reads of a view through some host.
    pub(crate) fn view(&mut self, via: usize, number: u32, random: &mut Random) -> (u64, Request) {
        let range = if random.chance(1, 2) { 24.min(self.size_blocks) } else { self.size_blocks };
        let first = random.below(range);
        let count = [1, 2, 8, 300][random.below(4) as usize].min(self.size_blocks - first);
        self.ask_view(via, number, first, count)
    }

    /// Reads of all that there is of its views.
    pub(crate) fn whole_views(&mut self) -> Vec<(u64, Request)> {
        let per_part = MIB / BLOCK_SIZE;
        let parts = self.size_blocks / per_part;
        let mut all = Vec::new();
        for number in self.views.numbers() {
            for part in 0..parts {
                all.push(self.ask_view(self.host, number, part * per_part, per_part));
            }
        }
        all
    }

    fn ask_view(&mut self, via: usize, number: u32, first: u64, count: u64) -> (u64, Request) {
        let token = self.next_token;
        self.next_token += 1;
        self.asked.insert(token, Asked::View { number, first, count, via });
        (token, request_of(number, first, count))
    }

    /// What somebody asks of views through some host.
    pub(crate) fn survey(&mut self, via: usize, of: StatusOf, random: &mut Random) -> (u64, Request) {
        let first = random.below(self.size_blocks);
        let count = [1, 8, 300, 1024][random.below(4) as usize].min(self.size_blocks - first);
        self.ask_survey(via, of, first, count)
    }

    /// Questions about all that there is of its views, and what changed from each to the next.
    pub(crate) fn whole_surveys(&mut self) -> Vec<(u64, Request)> {
        let numbers = self.views.numbers();
        let holes = numbers.iter().map(|number| StatusOf::Snapshot(*number));
        let changes = numbers.windows(2).map(|two| StatusOf::Changes { since: two[0], snapshot: two[1] });
        let all: Vec<StatusOf> = holes.chain(changes).collect();
        all.into_iter().map(|of| self.ask_survey(self.host, of, 0, self.size_blocks)).collect()
    }

    fn ask_survey(&mut self, via: usize, of: StatusOf, first: u64, count: u64) -> (u64, Request) {
        let token = self.next_token;
        self.next_token += 1;
        self.asked.insert(token, Asked::Survey { of, first, count, via });
        (token, Request::Status { of, offset: first * BLOCK_SIZE, len: count * BLOCK_SIZE })
    }

    /// Somebody was told about blocks of views, from one on.
    fn survey_told(&mut self, of: StatusOf, first: u64, runs: &[StatusRun]) -> Result<(), String> {
        let mut at = first * BLOCK_SIZE;
        for run in runs {
            if !run.is_set {
                (at / BLOCK_SIZE..(at + run.len) / BLOCK_SIZE)
                    .try_for_each(|block| self.views.told(of, block))?;
            }
            at += run.len;
        }
        Ok(())
    }

    /// Some of a view was read: for each run of blocks its first one on the disk, the first one of what was read, and how many.
    ///
    /// # Errors
    /// When it read otherwise before.
    pub(crate) fn view_read(
        &mut self,
        number: u32,
        pieces: &[Piece],
        runs: &[(u64, usize, u64)],
    ) -> Result<(), String> {
        let bytes = joined_pieces(pieces);
        for (first, from, count) in runs {
            for index in 0..*count {
                let at = (from + index as usize) * BLOCK_SIZE as usize;
                let found = bytes.get(at..at + BLOCK_SIZE as usize).ok_or("a view is too short")?;
                let found = value_of(found)
                    .map_err(|why| format!("{why} (snapshot {number}, block {})", first + index))?;
                self.views.read(number, first + index, found)?;
            }
        }
        Ok(())
    }

    /// Whether the disk read as a view does, at one moment while that was taken.
    ///
    /// # Errors
    /// What contradicts.
    pub(crate) fn check_view(&self, number: u32) -> Result<(), String> {
        let Some(view) = self.views.get(number) else { return Ok(()) };
        let told = self.registers.check_view(&view.found, view.asked, view.taken);
        told.map_err(|why| format!("snapshot {number} of {:?}: {why}", self.disk))
    }

    /// A host is gone, and with it those who read and write through it; by `known_at` everybody has noticed.
    pub fn lose_observers(&mut self, host: usize, known_at: u64) {
        self.lose(known_at, |asked| asked.via() == Some(host));
    }

    /// Clients are gone: what they had asked has happened or not, and does not begin any more after `known_at`.
    fn lose(&mut self, known_at: u64, is_lost: impl Fn(&Asked) -> bool) {
        let Guest { asked, doubtful, .. } = self;
        asked.retain(|_, asked| {
            let is_lost = is_lost(asked);
            if let Asked::Write { blocks, .. } = asked
                && is_lost
            {
                doubtful.extend(blocks.iter().map(|(block, value)| (known_at, *block, *value)));
            }
            !is_lost
        });
    }

    /// What clients that are gone had asked does not begin any more once that is known.
    fn decide(&mut self, now: u64) {
        let Guest { doubtful, registers, .. } = self;
        registers.set_time(now);
        doubtful.retain(|(known_at, block, value)| {
            let is_known = *known_at <= now;
            if is_known {
                registers.undecide(*block, *value);
            }
            !is_known
        });
    }

    /// A request ended.
    ///
    /// # Errors
    /// When the answer is none that may be given.
    pub fn answered(
        &mut self,
        now: u64,
        token: u64,
        outcome: Outcome,
        may_damage: bool,
    ) -> Result<(), String> {
        self.decide(now);
        let Some(asked) = self.asked.remove(&token) else {
            return Ok(()); // Whoever asked is gone.
        };
        let since = self.since.remove(&token).unwrap_or(now);
        self.longest_ns = self.longest_ns.max(now - since);
        self.answered += 1;
        match (asked, outcome) {
            (Asked::Write { blocks, via }, Ok(Reply::Done)) => {
                self.written += u64::from(via.is_none());
                blocks.iter().for_each(|(block, value)| self.registers.acknowledge(*block, *value));
            }
            // Of rows, what stands beside a block may be damaged, and the parity that the block needs cannot be made.
            (Asked::Write { blocks, .. }, Err(error @ (RequestError::NoSpace | RequestError::Damaged)))
                if may_damage || error == RequestError::NoSpace =>
            {
                self.errors += 1;
                // Pieces of it may have happened.
                blocks.iter().for_each(|(block, value)| self.registers.undecide(*block, *value));
            }
            (Asked::Read { first, count, began, .. }, Ok(Reply::Data(pieces))) => {
                self.check(first, count, began, &pieces)?;
            }
            (Asked::Read { .. }, Err(RequestError::Damaged)) if may_damage => self.errors += 1,
            (Asked::Read { .. }, Err(RequestError::NoSnapshot)) if self.origin.is_some() => {
                self.lacks_origin = true;
            }
            (Asked::Write { blocks, .. }, Err(RequestError::NoSnapshot)) if self.origin.is_some() => {
                self.lacks_origin = true;
                blocks.iter().for_each(|(block, value)| self.registers.undecide(*block, *value));
            }
            (Asked::View { number, first, count, .. }, Ok(Reply::Data(pieces))) => {
                self.view_read(number, &pieces, &[(first, 0, count)])?;
            }
            (Asked::View { number, .. }, Err(RequestError::NoSnapshot | RequestError::Damaged)) => {
                self.views.missing.push(number);
            }
            (Asked::Survey { of, first, count, .. }, Ok(Reply::Status(runs)))
                if !runs.is_empty() && runs.iter().map(|run| run.len).sum::<u64>() <= count * BLOCK_SIZE =>
            {
                self.survey_told(of, first, &runs)?;
            }
            (Asked::Survey { .. }, Err(RequestError::NoSnapshot | RequestError::Damaged)) => {}
            (asked, outcome) => return Err(format!("{asked:?} was answered {outcome:?}")),
        }
        Ok(())
    }

    fn check(&mut self, first: u64, count: u64, began: u64, pieces: &[Piece]) -> Result<(), String> {
        let bytes = joined_pieces(pieces);
        if bytes.len() as u64 != count * BLOCK_SIZE {
            return Err(format!("a read of {count} blocks brought {} bytes", bytes.len()));
        }
        for (block, bytes) in (first..).zip(bytes.chunks_exact(BLOCK_SIZE as usize)) {
            let found = value_of(bytes).map_err(|why| format!("{why} (block {block} of {:?})", self.disk))?;
            self.registers
                .check(block, found, began)
                .map_err(|why| format!("{why} (block {block} of {:?})", self.disk))?;
        }
        Ok(())
    }

    /// The host on which it runs is gone: what it had asked has happened or not. It starts elsewhere.
    pub fn lose_host(&mut self, to: usize, known_at: u64) {
        self.lose(known_at, |asked| asked.via().is_none());
        self.since.clear();
        self.host = to;
        self.moving_to = None;
    }
}
