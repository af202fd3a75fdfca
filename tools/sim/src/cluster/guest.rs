//! A virtual guest: it reads, writes and trims its disk, moves, and checks what it gets.

use crate::model::{Key, Model, Value, fill, value_of};
use base::request::{Buffers, Outcome, Piece, Reply, Request, RequestError};
use base::units::{BLOCK_SIZE, MIB};
use base::{DiskId, Pool, Random};
use std::collections::BTreeMap;

/// A request under way.
#[derive(Debug)]
enum Asked {
    Write {
        keys: Vec<Key>,
    },
    /// `via`: the host of an observer, who only reads.
    Read {
        first: u64,
        count: u64,
        began: u64,
        via: Option<usize>,
    },
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
    model: Model,
    asked: BTreeMap<u64, Asked>,
    next_token: u64,
    /// When the oldest of `asked` was asked.
    since: BTreeMap<u64, u64>,
    /// The longest that a request took, in nanoseconds.
    pub longest_ns: u64,
    /// Requests answered.
    pub answered: u64,
    /// Answers that told of damage, or of no space.
    pub errors: u64,
}

impl Guest {
    /// The guest of a disk of so many bytes, on that host.
    pub fn new(disk: DiskId, size: u64, host: usize) -> Guest {
        Guest {
            disk,
            size_blocks: size / BLOCK_SIZE,
            host,
            moving_to: None,
            model: Model::default(),
            asked: BTreeMap::new(),
            next_token: 1,
            since: BTreeMap::new(),
            longest_ns: 0,
            answered: 0,
            errors: 0,
        }
    }

    /// Requests of its own under way.
    pub fn outstanding(&self) -> usize {
        self.asked.values().filter(|asked| !matches!(asked, Asked::Read { via: Some(_), .. })).count()
    }

    fn key(block: u64) -> Key {
        let per_part = MIB / BLOCK_SIZE;
        (0, (block / per_part) as u32, (block % per_part) as u16)
    }

    /// The next request, if the guest finds one to make.
    pub fn ask(&mut self, now: u64, random: &mut Random, pool: &Pool) -> Option<(u64, Request)> {
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
            0..11 => self.write(first, count, random, pool)?,
            11 | 12 => self.trim(first, count)?,
            _ => {
                let (offset, len) = (first * BLOCK_SIZE, (count * BLOCK_SIZE) as u32);
                self.asked.insert(token, Asked::Read { first, count, began: self.model.clock(), via: None });
                Request::Read { offset, len }
            }
        };
        self.next_token += 1;
        self.since.insert(token, now);
        Some((token, request))
    }

    fn free_keys(&self, first: u64, count: u64) -> Option<Vec<Key>> {
        let keys: Vec<Key> = (first..first + count).map(Guest::key).collect();
        keys.iter().all(|key| !self.model.is_busy(*key)).then_some(keys)
    }

    fn write(&mut self, first: u64, count: u64, random: &mut Random, pool: &Pool) -> Option<Request> {
        let keys = self.free_keys(first, count)?;
        let mut data = Buffers::new();
        for part in keys.chunks((MIB / BLOCK_SIZE) as usize) {
            let mut buffer = pool.take(part.len() * BLOCK_SIZE as usize)?;
            for (index, block) in buffer.bytes_mut().chunks_exact_mut(BLOCK_SIZE as usize).enumerate() {
                let value: Value = random.bits() >> 16 | 1;
                fill(value, block);
                self.model.begin(part[index], value);
            }
            data.push(buffer);
        }
        self.asked.insert(self.next_token, Asked::Write { keys });
        Some(Request::Write { offset: first * BLOCK_SIZE, data })
    }

    fn trim(&mut self, first: u64, count: u64) -> Option<Request> {
        let keys = self.free_keys(first, count)?;
        keys.iter().for_each(|key| self.model.begin(*key, 0));
        self.asked.insert(self.next_token, Asked::Write { keys });
        Some(Request::Trim { offset: first * BLOCK_SIZE, len: count * BLOCK_SIZE })
    }

    /// A read of the whole disk, part by part, for the end.
    pub fn read_part(&mut self, now: u64, part: u64) -> Option<(u64, Request)> {
        let per_part = MIB / BLOCK_SIZE;
        let first = part * per_part;
        if first >= self.size_blocks {
            return None;
        }
        let token = self.next_token;
        self.next_token += 1;
        self.since.insert(token, now);
        let asked = Asked::Read { first, count: per_part, began: self.model.clock(), via: None };
        self.asked.insert(token, asked);
        Some((token, Request::Read { offset: first * BLOCK_SIZE, len: MIB as u32 }))
    }

    /// The requests of its own that are under way.
    pub fn own_requests(&self) -> Vec<u64> {
        let own = self.asked.iter().filter(|(_, asked)| !matches!(asked, Asked::Read { via: Some(_), .. }));
        own.map(|(token, _)| *token).collect()
    }

    /// Reads of observers under way.
    pub fn observers(&self) -> usize {
        self.asked.len() - self.outstanding()
    }

    /// What somebody reads through another host.
    pub fn observe(&mut self, host: usize, random: &mut Random) -> (u64, Request) {
        let token = self.next_token;
        self.next_token += 1;
        let first = random.below(24.min(self.size_blocks));
        let asked = Asked::Read { first, count: 1, began: self.model.clock(), via: Some(host) };
        self.asked.insert(token, asked);
        (token, Request::Read { offset: first * BLOCK_SIZE, len: BLOCK_SIZE as u32 })
    }

    /// A host is gone, and with it those who read through it.
    pub fn lose_observers(&mut self, host: usize) {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Read { via: Some(via), .. } if *via == host));
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
        let Some(asked) = self.asked.remove(&token) else {
            return Ok(()); // Whoever asked is gone.
        };
        let since = self.since.remove(&token).unwrap_or(now);
        self.longest_ns = self.longest_ns.max(now - since);
        self.answered += 1;
        match (asked, outcome) {
            (Asked::Write { keys }, Ok(Reply::Done)) => {
                keys.iter().for_each(|key| self.model.acknowledge(*key));
            }
            (Asked::Write { keys }, Err(RequestError::NoSpace)) => {
                self.errors += 1;
                // Pieces of it may have happened.
                keys.iter().for_each(|key| self.model.undecide(*key));
            }
            (Asked::Read { first, count, began, .. }, Ok(Reply::Data(pieces))) => {
                self.check(first, count, began, &pieces)?;
            }
            (Asked::Read { .. }, Err(RequestError::Damaged)) if may_damage => self.errors += 1,
            (asked, outcome) => return Err(format!("{asked:?} was answered {outcome:?}")),
        }
        Ok(())
    }

    fn check(&mut self, first: u64, count: u64, began: u64, pieces: &[Piece]) -> Result<(), String> {
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(buffer) => bytes.extend_from_slice(buffer),
                Piece::Hole(len) => bytes.resize(bytes.len() + *len as usize, 0),
            }
        }
        if bytes.len() as u64 != count * BLOCK_SIZE {
            return Err(format!("a read of {count} blocks brought {} bytes", bytes.len()));
        }
        for (block, bytes) in (first..).zip(bytes.chunks_exact(BLOCK_SIZE as usize)) {
            let found = value_of(bytes).map_err(|why| format!("{why} (block {block} of {:?})", self.disk))?;
            self.model
                .check(Guest::key(block), found, began)
                .map_err(|why| format!("{why} (block {block} of {:?})", self.disk))?;
        }
        Ok(())
    }

    /// The host on which it runs is gone: what it had asked has happened or not. It starts elsewhere.
    pub fn lose_host(&mut self, to: usize) {
        self.asked.retain(|_, asked| matches!(asked, Asked::Read { via: Some(_), .. }));
        self.since.clear();
        self.model.crash();
        self.host = to;
        self.moving_to = None;
    }
}
