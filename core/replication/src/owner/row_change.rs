//! Changes of places with parity, as far as they differ from those of copies (docs/design/0040).
//!
//! A change is of one data unit of a row, or of all units of whole rows. Its blocks are computed for each member before it gets its
//! number: what is written, the parity that follows from it, and nothing for units that stay as they are. All members get the number, so
//! that each of them shows every number, as with copies.

use super::Owner;
use super::fold::FoldFailure;
use super::fold_plan::positions_of;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::interface::{Failure, Payload};
use super::member_set::MemberSet;
use super::place::Place;
use super::row_check::{self, by_block, by_block_of};
use super::rows::{Sent, row_of};
use super::work::{ChangeStage, ChangeWork, Key};
use crate::locks::Range;
use crate::rules::Rule;
use base::checksum::crc32c;
use base::request::{Buffers, cut};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use base::{Buffer, Pool};
use layout::code::{self, UNITS_MAX};
use layout::{Code, Target, Unit};
use smallvec::SmallVec;

const BLOCK: usize = BLOCK_SIZE as usize;

impl Place {
    /// Blocks of each member that a change is of.
    pub(crate) fn range_of(
        &self,
        target: Option<Target>,
        (part, block): (u32, u16),
        payload: &Payload,
    ) -> Range {
        let units = match (target, self.code) {
            (Some(Target::Rows), Some(code)) => u16::from(code.data()),
            _ => 1,
        };
        Range { part, block, count: payload.blocks() / units }
    }
}

impl Owner {
    /// A change of rows has its range: what each member gets is computed. The other data units of the row are read first, for the parity
    /// that follows.
    pub(crate) fn begin_rows(&mut self, key: Key<ChangeWork>, target: Target, payload: Payload) {
        let ChangeWork { place, range, .. } = self.works.changes[key];
        let Some(code) = self.places[usize::from(place)].code else {
            return self.end_change_work(key, Err(Failure::Unowned)); // The layout has changed since it was asked for.
        };
        let unit = match target {
            Target::Rows => return self.rows_known(key, Rows { code, range, payload, others: None }, target),
            Target::Data(unit) => unit,
        };
        if matches!(payload, Payload::Write { .. }) && self.takes_copies(place, &range, unit) {
            let change = &mut self.works.changes[key];
            change.copies = Some(unit);
            return self.change_ready(key, Rows { code, range, payload, others: None }.copies(unit));
        }
        let is_clear = self.places[usize::from(place)].held.is_clear(&range);
        self.works.changes[key].stage = ChangeStage::Gathering { payload };
        match is_clear || !self.holds(Rule::EvenBeforeChange) {
            true => self.gather_others(key),
            false => {
                let lock = self.works.changes.lock_key(key);
                self.fold(place, range, Some(lock));
            }
        }
    }

    /// The other data units of a row are read, of whose columns the parity counts all.
    fn gather_others(&mut self, key: Key<ChangeWork>) {
        let ChangeWork { place, range, target, .. } = self.works.changes[key];
        let (Some(Target::Data(unit)), Some(code)) = (target, self.places[usize::from(place)].code) else {
            unreachable!("it is of one data unit")
        };
        let row = row_of(range.part, range.block);
        let others = (0..code.data()).filter(|other| *other != unit);
        let wanted = others.map(|other| code.position(row, Unit::Data(other))).collect();
        let except = MemberSet::EMPTY;
        self.gather(Gather::new(place, range, wanted, except, GatherFor::Change(key)));
    }

    /// The parity of the columns counts all, or cannot be made to now.
    pub(crate) fn change_folded(&mut self, key: Key<ChangeWork>, result: Result<(), FoldFailure>) {
        match result {
            Ok(()) => self.gather_others(key),
            Err(FoldFailure::Damaged) => self.change_gathered(key, Err(GatherFailure::Damaged)),
            Err(FoldFailure::NotNow) => self.change_gathered(key, Err(GatherFailure::Unreachable)),
        }
    }

    /// The other data units of a row were read, or cannot be.
    pub(crate) fn change_gathered(&mut self, key: Key<ChangeWork>, others: Result<Found, GatherFailure>) {
        let ChangeWork { place, range, target, .. } = self.works.changes[key];
        let stage = std::mem::replace(&mut self.works.changes[key].stage, ChangeStage::InFlight);
        let (ChangeStage::Gathering { payload }, Some(target)) = (stage, target) else {
            unreachable!("it waits for the other units of its row")
        };
        let code = self.places[usize::from(place)].code.expect("it is of rows");
        match others {
            Ok(others) => {
                self.rows_known(key, Rows { code, range, payload, others: Some(others) }, target);
            }
            // What was there is lost, and the parity that it needs cannot be made.
            Err(GatherFailure::Damaged) => self.end_change_work(key, Err(Failure::Damaged)),
            Err(GatherFailure::Unreachable | GatherFailure::Memory) => {
                self.works.changes[key].stage = ChangeStage::Waiting { payload, is_abandoned: false };
                self.stalled.push(key);
            }
        }
    }

    fn rows_known(&mut self, key: Key<ChangeWork>, rows: Rows, target: Target) {
        match rows.computed(target, &self.settings.pool) {
            // Memory fails, or the sum is wrong: such parity would be found when it is needed.
            Some(sent) if !rows.is_proven(&sent) => self.end_change_work(key, Err(Failure::Damaged)),
            Some(sent) => self.change_ready(key, sent),
            None => {
                self.works.changes[key].stage =
                    ChangeStage::Waiting { payload: rows.payload, is_abandoned: false };
                self.stalled.push(key);
                self.memory_is_short();
            }
        }
    }

    fn change_ready(&mut self, key: Key<ChangeWork>, sent: Sent) {
        let change = &mut self.works.changes[key];
        change.stage = ChangeStage::Ready { sent };
        let place = change.place;
        self.places[usize::from(place)].waiting.push_front(key);
        self.begin_changes(place);
    }

    /// Changes of rows that could not be computed are tried again.
    pub(crate) fn retry_stalled(&mut self) {
        for key in std::mem::take(&mut self.stalled) {
            self.change_locked(key);
        }
    }
}

/// A change of rows of which all is known.
struct Rows {
    code: Code,
    range: Range,
    payload: Payload,
    /// The other data units, by position; none where all are written.
    others: Option<Found>,
}

impl Rows {
    /// What each member gets; none if memory is short.
    fn computed(&self, target: Target, pool: &Pool) -> Option<Sent> {
        let nothing = || Payload::Trim { count: 0 };
        let mut sent: Box<[Payload; UNITS_MAX]> = Box::new(std::array::from_fn(|_| nothing()));
        match target {
            Target::Rows => self.whole_rows(&mut sent, pool)?,
            Target::Data(unit) => self.one_unit(unit, &mut sent, pool)?,
        }
        Some(Sent::Each(sent))
    }

    /// Whether the checksums of the first parity unit follow from those of the data units.
    fn is_proven(&self, sent: &Sent) -> bool {
        let of_position = |position: usize| match sent.to(position as u8) {
            Payload::Trim { count: 0 } => self.others.as_ref()?.get(position as u8).map(by_block),
            payload => Some(by_block_of(payload)),
        };
        row_check::is_proven(self.code, self.range, &std::array::from_fn(of_position))
    }

    /// The members of the unit and of the parity get what is written; the parity follows later.
    fn copies(&self, unit: u8) -> Sent {
        let row = row_of(self.range.part, self.range.block);
        let mut sent: Box<[Payload; UNITS_MAX]> =
            Box::new(std::array::from_fn(|_| Payload::Trim { count: 0 }));
        for position in positions_of(self.code, row, unit) {
            sent[usize::from(position)] = self.payload.clone();
        }
        Sent::Each(sent)
    }

    fn one_unit(&self, unit: u8, sent: &mut [Payload; UNITS_MAX], pool: &Pool) -> Option<()> {
        let (code, row) = (self.code, row_of(self.range.part, self.range.block));
        let others = self.others.as_ref().expect("the other units were read");
        let len = usize::from(self.range.count) * BLOCK;
        let mut of_others = (0..code.data()).filter(|other| *other != unit);
        let has_nothing = |other| others.is_hole(code.position(row, Unit::Data(other)));
        // Nothing of the row is left: the parity goes too, and needs no room where it has none.
        let is_empty = matches!(self.payload, Payload::Trim { .. }) && of_others.all(has_nothing);
        for parity in 0..code.parity() {
            if is_empty {
                sent[usize::from(code.position(row, Unit::Parity(parity)))] = self.payload.clone();
                continue;
            }
            let mut sum = pool.take_zeroed(len)?;
            if let Payload::Write { data, .. } = &self.payload {
                add_buffers(sum.bytes_mut(), data, code.coefficient(parity, unit));
            }
            for other in (0..code.data()).filter(|other| *other != unit) {
                let position = code.position(row, Unit::Data(other));
                others.add_to(sum.bytes_mut(), position, code.coefficient(parity, other));
            }
            sent[usize::from(code.position(row, Unit::Parity(parity)))] = written(sum);
        }
        sent[usize::from(code.position(row, Unit::Data(unit)))] = self.payload.clone();
        Some(())
    }

    /// Of the payload each row follows the one before, and in it unit by unit.
    fn whole_rows(&self, sent: &mut [Payload; UNITS_MAX], pool: &Pool) -> Option<()> {
        let code = self.code;
        let Payload::Write { data, checksums } = &self.payload else {
            (0..code.members()).for_each(|position| {
                sent[usize::from(position)] = Payload::Trim { count: self.range.count };
            });
            return Some(());
        };
        let unit_len = layout::rows::UNIT as usize;
        let rows = usize::from(self.range.count) / BLOCKS_PER_REGION;
        let first = row_of(self.range.part, self.range.block);
        let mut buffers: Vec<Buffers> = vec![Buffers::new(); UNITS_MAX];
        let mut sums: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); UNITS_MAX];
        for row in 0..rows {
            let start = row * usize::from(code.data());
            for unit in 0..code.data() {
                let position = usize::from(code.position(first + row as u64, Unit::Data(unit)));
                let index = start + usize::from(unit);
                buffers[position].extend(cut(data, index * unit_len, unit_len));
                let blocks = index * BLOCKS_PER_REGION..(index + 1) * BLOCKS_PER_REGION;
                sums[position].extend_from_slice(&checksums[blocks]);
            }
            for parity in 0..code.parity() {
                let mut sum = pool.take_zeroed(unit_len)?;
                for unit in 0..code.data() {
                    let part = cut(data, (start + usize::from(unit)) * unit_len, unit_len);
                    add_buffers(sum.bytes_mut(), &part, code.coefficient(parity, unit));
                }
                let position = usize::from(code.position(first + row as u64, Unit::Parity(parity)));
                sums[position].extend(sum.chunks_exact(BLOCK).map(crc32c));
                buffers[position].push(sum);
            }
        }
        for (position, (data, checksums)) in buffers.into_iter().zip(sums).enumerate() {
            if !data.is_empty() {
                sent[position] = Payload::Write { data, checksums };
            }
        }
        Some(())
    }
}

/// A buffer of whole blocks as what a change writes.
fn written(data: Buffer) -> Payload {
    let checksums = data.chunks_exact(BLOCK).map(crc32c).collect();
    Payload::Write { data: smallvec::smallvec![data], checksums }
}

/// Adds what buffers hold one after the other, times a coefficient, to a sum of the same length.
pub(crate) fn add_buffers(sum: &mut [u8], buffers: &[Buffer], coefficient: u8) {
    let mut at = 0;
    for buffer in buffers {
        code::add(&mut sum[at..at + buffer.len()], buffer, coefficient);
        at += buffer.len();
    }
}
