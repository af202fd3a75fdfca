//! What stands in a range of some members of rows, read from them or put together from others.
//!
//! Who asks holds the range's lock, so that all that is read is of one moment. A member is asked for its own part; where one cannot give
//! that, as many others are asked as rows have data units, and what is wanted follows from these (`layout::code`).

use super::Owner;
use super::asked::{Asked, Data, Step, Unanswered};
use super::copy::CopyWork;
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::rows::{bytes_in, row_of};
use super::work::{ChangeWork, Key, ReadWork};
use crate::locks::Range;
use crate::rules::Rule;
use base::Pool;
use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use layout::code::{self, PARITY_MAX, UNITS_MAX};
use layout::{Code, Unit};
use smallvec::SmallVec;
use wire::{Refusal, Request};

const BLOCK: usize = BLOCK_SIZE as usize;

/// Who wants to know.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GatherFor {
    Change(Key<ChangeWork>),
    Read(Key<ReadWork>),
    Copy(Key<CopyWork>),
    /// A change that is rolled forward.
    Roll {
        at: At,
        attempt: u32,
        roll: u32,
    },
}

/// Why it cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatherFailure {
    /// Too many members have damaged blocks in the range.
    Damaged,
    /// Too few members can be asked now.
    Unreachable,
    /// There is no memory for it now.
    Memory,
}

/// A gathering under way.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) place: u16,
    pub(crate) range: Range,
    /// The positions that are wanted.
    wanted: MemberSet,
    /// Members that are not asked, or cannot give what they were asked for.
    except: MemberSet,
    is_damaged: bool,
    found: Found,
    outstanding: u8,
    wanted_by: GatherFor,
}

impl Gather {
    pub(crate) fn new(
        place: u16,
        range: Range,
        wanted: MemberSet,
        except: MemberSet,
        wanted_by: GatherFor,
    ) -> Gather {
        let found = Found { range, of: Default::default() };
        Gather { place, range, wanted, except, is_damaged: false, found, outstanding: 0, wanted_by }
    }

    /// Whether it remembers something of a member.
    pub(crate) fn names(&self, at: At) -> bool {
        self.place == at.place && self.except.contains(at.member)
    }
}

/// What was read, by position.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    range: Range,
    of: [Option<Data>; UNITS_MAX],
}

impl Found {
    fn positions(&self) -> MemberSet {
        (0..UNITS_MAX as u8).filter(|position| self.of[usize::from(*position)].is_some()).collect()
    }

    /// Adds what a position has, times a coefficient, to a sum of the range's length.
    pub(crate) fn add_to(&self, sum: &mut [u8], position: u8, coefficient: u8) {
        let data = self.of[usize::from(position)].as_ref().expect("it was read");
        bytes_in(&data.pieces, &mut |at, bytes| {
            code::add(&mut sum[at..at + bytes.len()], bytes, coefficient);
        });
    }

    /// What a position has, which is there.
    pub(crate) fn take(&mut self, position: u8) -> Data {
        self.of[usize::from(position)].take().expect("what was wanted was found")
    }

    /// What a position has, put together from what was read of others. None if memory is short.
    fn decode(&self, code: Code, position: u8, pool: &Pool) -> Option<Data> {
        let mut data = Data { pieces: Pieces::new(), checksums: SmallVec::new() };
        let blocks = usize::from(self.range.count);
        let mut block = 0;
        while block < blocks {
            let at = usize::from(self.range.block) + block;
            let count = (BLOCKS_PER_REGION - at % BLOCKS_PER_REGION).min(blocks - block);
            let row = row_of(self.range.part, at as u16);
            let bytes = block * BLOCK..(block + count) * BLOCK;
            self.decode_row(code, (row, position), bytes, pool, &mut data)?;
            block += count;
        }
        Some(data)
    }

    fn decode_row(
        &self,
        code: Code,
        (row, position): (u64, u8),
        bytes: std::ops::Range<usize>,
        pool: &Pool,
        data: &mut Data,
    ) -> Option<()> {
        let units: SmallVec<[Unit; UNITS_MAX]> =
            self.positions().iter().map(|one| code.unit(row, one)).collect();
        let coefficients =
            code.decode(code.unit(row, position), &units).expect("as many were read as there are data units");
        let mut sum = pool.take_zeroed(bytes.len())?;
        let mut has_bytes: SmallVec<[bool; BLOCKS_PER_REGION]> =
            smallvec::smallvec![false; bytes.len() / BLOCK];
        for unit in &units {
            let coefficient = coefficients[code.index(*unit)];
            if coefficient == 0 {
                continue;
            }
            let source = self.of[usize::from(code.position(row, *unit))].as_ref().expect("it was read");
            bytes_in(&source.pieces, &mut |at, run| {
                let (from, to) = (bytes.start.max(at), bytes.end.min(at + run.len()));
                if from < to {
                    let target = from - bytes.start..to - bytes.start;
                    has_bytes[target.start / BLOCK..target.end / BLOCK].fill(true);
                    code::add(&mut sum.bytes_mut()[target], &run[from - at..to - at], coefficient);
                }
            });
        }
        // Where nothing was ever written to any of them, there is nothing.
        let mut first = 0;
        while first < has_bytes.len() {
            let is_data = has_bytes[first];
            let count = has_bytes[first..].iter().take_while(|one| **one == is_data).count();
            if is_data {
                let run = sum.slice(first * BLOCK, count * BLOCK);
                data.checksums.extend(run.chunks_exact(BLOCK).map(crc32c));
                data.pieces.push(Piece::Bytes(run));
            } else {
                data.pieces.push(Piece::Hole((count * BLOCK) as u32));
            }
            first += count;
        }
        Some(())
    }
}

impl Owner {
    /// Begins to gather; who wanted it is told, at once if nothing can be asked.
    pub(crate) fn gather(&mut self, gather: Gather) {
        let key = self.gathers.insert(gather) as u32;
        self.gather_on(key);
    }

    /// Asks for what is still needed, or ends.
    fn gather_on(&mut self, key: u32) {
        let gather = &self.gathers[key as usize];
        let place = &self.places[usize::from(gather.place)];
        let Some(code) = place.code else { return self.end_gather(key, Err(GatherFailure::Unreachable)) };
        let found = gather.found.positions();
        let missing = gather.wanted.without(found);
        let mut sources: SmallVec<[(u8, u8); UNITS_MAX]> = SmallVec::new();
        for position in (0..code.members()).filter(|position| !found.contains(*position)) {
            sources.extend(self.source_at(gather, position).map(|member| (position, member)));
        }
        let have = found.iter().count();
        let needed = usize::from(code.data());
        let direct: SmallVec<[(u8, u8); UNITS_MAX]> =
            sources.iter().copied().filter(|(position, _)| missing.contains(*position)).collect();
        let asked = if missing.is_empty() || have >= needed {
            return self.gathered(key, code);
        } else if direct.len() == missing.iter().count() {
            direct
        } else if have + sources.len() >= needed {
            sources.sort_by_key(|(position, _)| !missing.contains(*position));
            sources.truncate(needed - have);
            sources
        } else {
            let why = match gather.is_damaged {
                true => GatherFailure::Damaged,
                false => GatherFailure::Unreachable,
            };
            return self.end_gather(key, Err(why));
        };
        self.gathers[key as usize].outstanding = asked.len() as u8;
        let Gather { place, range, .. } = self.gathers[key as usize];
        let Range { part, block, count } = range;
        for (_, member) in asked {
            let at = At { place, member };
            let (node, component) = (self.member(at).node, self.member(at).component);
            let request = Request::Read { component, epoch: self.epoch, part, block, count, verify: true };
            self.send(node, Asked::Step(Step::Gather { gather: key, at }), request);
        }
    }

    /// The member to ask for what a position has.
    fn source_at(&self, gather: &Gather, position: u8) -> Option<u8> {
        let place = &self.places[usize::from(gather.place)];
        let is_fit = |(index, one): &(u8, &Member)| {
            one.position == position && one.is_open() && !gather.except.contains(*index)
        };
        let takes_any = !self.holds(Rule::DecodeFromActive);
        let members = (0u8..).zip(&place.members).filter(|(_, one)| one.is_active() || takes_any);
        members.filter(is_fit).min_by_key(|(_, one)| !one.is_prompt()).map(|(index, _)| index)
    }

    /// A member gave what it was asked for, or cannot.
    pub(crate) fn gather_answered(&mut self, key: u32, at: At, answer: Result<Data, Unanswered>) {
        let position = self.member(at).position;
        let gather = &mut self.gathers[key as usize];
        gather.outstanding -= 1;
        match answer {
            Ok(data) if data.is_intact() => gather.found.of[usize::from(position)] = Some(data),
            Ok(_) | Err(Unanswered::Lost) => gather.except.insert(at.member),
            Err(Unanswered::Refused(refusal)) => {
                gather.except.insert(at.member);
                match refusal {
                    Refusal::Damaged => gather.is_damaged = true,
                    Refusal::NotOpen => self.lost_session(at),
                    Refusal::NoComponent | Refusal::DeviceLost => self.unreadable(at, refusal),
                    _ => {}
                }
            }
        }
        if self.gathers.get(key as usize).is_some_and(|gather| gather.outstanding == 0) {
            self.gather_on(key);
        }
    }

    /// As much was read as is needed: the rest is put together from it.
    fn gathered(&mut self, key: u32, code: Code) {
        let Gather { found, wanted, .. } = &self.gathers[key as usize];
        let missing = wanted.without(found.positions());
        let decoded = missing.iter().map(|one| Some((one, found.decode(code, one, &self.settings.pool)?)));
        let result = match decoded.collect::<Option<SmallVec<[(u8, Data); PARITY_MAX]>>>() {
            Some(decoded) => {
                let found = &mut self.gathers[key as usize].found;
                decoded.into_iter().for_each(|(one, data)| found.of[usize::from(one)] = Some(data));
                Ok(())
            }
            None => Err(GatherFailure::Memory),
        };
        self.end_gather(key, result);
    }

    fn end_gather(&mut self, key: u32, result: Result<(), GatherFailure>) {
        let Gather { found, wanted_by, .. } = self.gathers.remove(key as usize);
        let result = result.map(|()| found);
        match wanted_by {
            GatherFor::Change(key) => self.change_gathered(key, result),
            GatherFor::Read(key) => self.read_gathered(key, result),
            GatherFor::Copy(key) => self.copy_gathered(key, result),
            GatherFor::Roll { at, attempt, roll } => self.roll_gathered(at, attempt, roll, result),
        }
    }
}
