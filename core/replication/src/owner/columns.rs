//! What the members of a place with parity hold of small changes that the parity does not count yet (docs/design/0040, 14 to 16).
//!
//! A column is one block of every member. Of a small change of data unit `d` the members of the parity hold a copy, and the member of the
//! unit holds it over its base, what the parity counts. Here stands who holds what, by column, as far as the owner knows.

use super::member_set::MemberSet;
use crate::locks::Range;
use base::units::{BLOCKS_PER_EXTENT, BLOCKS_PER_REGION};
use base::{Instant, WriteId};
use layout::code::DATA_MAX;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use wire::{HeldRange, layer};

/// What a member said of what it holds.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) ranges: Vec<HeldRange>,
    pub(crate) next: Option<u32>,
}

/// Some columns of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Columns([u64; BLOCKS_PER_EXTENT / 64]);

impl Columns {
    pub(crate) fn of(range: &Range) -> Columns {
        let mut columns = Columns::default();
        (range.block..range.block + range.count)
            .for_each(|block| columns.0[usize::from(block) / 64] |= bit(block));
        columns
    }

    fn is_empty(self) -> bool {
        self.0 == [0; BLOCKS_PER_EXTENT / 64]
    }

    fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn and(self, other: Columns) -> Columns {
        Columns(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    fn or(self, other: Columns) -> Columns {
        Columns(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn without(self, other: Columns) -> Columns {
        Columns(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    fn blocks(self) -> impl Iterator<Item = u16> {
        (0..BLOCKS_PER_EXTENT as u16).filter(move |block| self.0[usize::from(*block) / 64] & bit(*block) != 0)
    }
}

fn bit(block: u16) -> u64 {
    1 << (block % 64)
}

/// Between which ids is what is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) from: WriteId,
    pub(crate) through: WriteId,
}

impl From<WriteId> for Ids {
    fn from(id: WriteId) -> Ids {
        Ids { from: id, through: id }
    }
}

/// What one member holds of each data unit.
type Units = [Columns; DATA_MAX];

/// What is held of one part.
#[derive(Debug)]
struct Part {
    since: Instant,
    /// No id of what is held is smaller.
    from: WriteId,
    /// The greatest id of what is held.
    through: WriteId,
    members: SmallVec<[(u8, Units); 6]>,
}

impl Part {
    fn of(&self, member: u8) -> Option<&Units> {
        self.members.iter().find(|(index, _)| *index == member).map(|(_, units)| units)
    }

    fn all(&self) -> Columns {
        let units = self.members.iter().flat_map(|(_, units)| units);
        units.fold(Columns::default(), |all, one| all.or(*one))
    }
}

/// Who holds what of a place.
#[derive(Debug, Default)]
pub(crate) struct Held {
    parts: BTreeMap<u32, Part>,
    /// Parts in the order in which something was held of them; some may be clear again.
    queue: VecDeque<u32>,
    /// Blocks that are held, by all members together.
    blocks: u64,
    /// Rows that are being folded.
    folding: SmallVec<[(u32, u16); 4]>,
    /// When what could not be folded is tried again.
    pub(crate) retry_at: Option<Instant>,
    /// Until when small changes are not held, for a group had no room for one.
    pub(crate) full_until: Option<Instant>,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Blocks that are held, by all members together.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// A member holds what a data unit has in some columns.
    pub(crate) fn note(&mut self, now: Instant, (member, unit): (u8, u8), range: &Range, ids: Ids) {
        let Ids { from, through } = ids;
        let part = self.parts.entry(range.part).or_insert_with(|| {
            self.queue.push_back(range.part);
            Part { since: now, from, through, members: SmallVec::new() }
        });
        (part.from, part.through) = (part.from.min(from), part.through.max(through));
        if part.of(member).is_none() {
            part.members.push((member, Units::default()));
        }
        let units = part.members.iter_mut().find(|(index, _)| *index == member);
        let columns = &mut units.expect("just made").1[usize::from(unit)];
        let more = columns.or(Columns::of(range));
        self.blocks += u64::from(more.count() - columns.count());
        *columns = more;
    }

    /// A member holds nothing any more in some columns, of one data unit or of all.
    pub(crate) fn ended(&mut self, member: u8, unit: Option<u8>, range: &Range) {
        let Some(part) = self.parts.get_mut(&range.part) else { return };
        let gone = Columns::of(range);
        for (_, units) in part.members.iter_mut().filter(|(index, _)| *index == member) {
            for (_, columns) in (0u8..).zip(units).filter(|(of, _)| unit.is_none_or(|unit| unit == *of)) {
                let left = columns.without(gone);
                self.blocks -= u64::from(columns.count() - left.count());
                *columns = left;
            }
        }
        if part.all().is_empty() {
            self.parts.remove(&range.part);
        }
    }

    /// What a member holds is not known any more, or does not matter.
    pub(crate) fn forget(&mut self, member: u8) {
        for part in self.parts.values_mut() {
            for (_, units) in part.members.iter().filter(|(index, _)| *index == member) {
                self.blocks -= units.iter().map(|columns| u64::from(columns.count())).sum::<u64>();
            }
            part.members.retain(|(index, _)| *index != member);
        }
        self.parts.retain(|_, part| !part.all().is_empty());
    }

    /// Whether a member holds of a data unit none of some columns (false), all of them (true), or some (none).
    pub(crate) fn holds(&self, member: u8, unit: u8, range: &Range) -> Option<bool> {
        let units = self.parts.get(&range.part).and_then(|part| part.of(member));
        let wanted = Columns::of(range);
        let held = units.map_or(Columns::default(), |units| units[usize::from(unit)].and(wanted));
        match held {
            _ if held.is_empty() => Some(false),
            _ if held == wanted => Some(true),
            _ => None,
        }
    }

    /// Whether anybody holds what a layer of copies is for in some columns.
    pub(crate) fn is_held(&self, layer: u8, range: &Range) -> bool {
        let members = self.parts.get(&range.part).into_iter().flat_map(|part| &part.members);
        let is_its = |(member, _): &(u8, Units)| self.holds(*member, layer - layer::COPY_FIRST, range);
        layer::is_of_copies(layer) && members.map(is_its).any(|holds| holds != Some(false))
    }

    /// Whether a member holds anything in some columns.
    pub(crate) fn holds_any(&self, member: u8, range: &Range) -> bool {
        (0..DATA_MAX as u8).any(|unit| self.holds(member, unit, range) != Some(false))
    }

    /// Whether nobody holds anything in some columns.
    pub(crate) fn is_clear(&self, range: &Range) -> bool {
        self.parts.get(&range.part).is_none_or(|part| part.all().and(Columns::of(range)).is_empty())
    }

    /// No id of what is held is smaller than this one.
    pub(crate) fn least(&self) -> Option<WriteId> {
        self.parts.values().map(|part| part.from).min()
    }

    /// The greatest id of what is held of a part.
    pub(crate) fn through(&self, part: u32) -> WriteId {
        self.parts.get(&part).map_or(WriteId::default(), |part| part.through)
    }

    /// Whether members hold the same of each data unit in some columns, those of parity and that of the unit, or nothing at all.
    pub(crate) fn is_even(&self, range: &Range, members_of: impl Fn(u8) -> MemberSet, data: u8) -> bool {
        let Some(part) = self.parts.get(&range.part) else { return true };
        let wanted = Columns::of(range);
        (0..data).all(|unit| {
            let of = |member| {
                part.of(member).map_or(Columns::default(), |units| units[usize::from(unit)].and(wanted))
            };
            let mut held = members_of(unit).iter().map(of);
            let first = held.next();
            held.all(|one| Some(one) == first)
        })
    }

    /// When the oldest part was first held.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.queue.iter().find_map(|part| self.parts.get(part)).map(|part| part.since)
    }

    /// The next row to fold, of the oldest part first: columns that hold all that is held of it.
    pub(crate) fn take_row(&mut self) -> Option<Range> {
        while self.queue.front().is_some_and(|part| !self.parts.contains_key(part)) {
            self.queue.pop_front();
        }
        let rows = self.queue.iter().filter_map(|part| Some((*part, self.parts.get(part)?.all())));
        let found = rows.flat_map(|(part, columns)| {
            let mut rows: SmallVec<[(u32, u16, u16, u16); 16]> = SmallVec::new();
            for block in columns.blocks() {
                let row = block / BLOCKS_PER_REGION as u16;
                match rows.last_mut() {
                    Some(last) if last.1 == row => last.3 = block,
                    _ => rows.push((part, row, block, block)),
                }
            }
            rows
        });
        let is_free = |one: &(u32, u16, u16, u16)| !self.folding.contains(&(one.0, one.1));
        let (part, row, first, last) = found.into_iter().find(is_free)?;
        self.folding.push((part, row));
        Some(Range { part, block: first, count: last - first + 1 })
    }

    /// Rows that are being folded.
    pub(crate) fn folding(&self) -> usize {
        self.folding.len()
    }

    /// A row is not being folded any more.
    pub(crate) fn give_back(&mut self, range: &Range) {
        let row = (range.part, range.block / BLOCKS_PER_REGION as u16);
        self.folding.retain(|one| *one != row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(block: u16, count: u16) -> Range {
        Range { part: 3, block, count }
    }

    #[test]
    fn what_members_hold_is_known_by_column_and_unit() {
        let (mut held, id) = (Held::default(), WriteId { epoch: 1, sequence: 5 });
        held.note(Instant(7), (0, 2), &range(60, 8), id.into());
        held.note(Instant(9), (3, 2), &range(60, 8), id.into());
        assert_eq!((held.holds(0, 2, &range(62, 4)), held.holds(0, 2, &range(66, 4))), (Some(true), None));
        assert_eq!(
            (held.holds(0, 1, &range(60, 8)), held.blocks(), held.oldest()),
            (Some(false), 16, Some(Instant(7)))
        );
        let all = |_: u8| [0, 3].into_iter().collect();
        assert!(held.is_even(&range(0, 256), all, 3));
        held.ended(3, None, &range(60, 1));
        assert!(!held.is_even(&range(60, 1), all, 3) && held.is_even(&range(61, 7), all, 3));
        // Each row by itself, and one that is being folded not again.
        assert_eq!((held.take_row(), held.take_row()), (Some(range(60, 4)), Some(range(64, 4))));
        assert_eq!(held.take_row(), None);
        held.give_back(&range(64, 4));
        held.ended(0, Some(2), &range(0, 256));
        held.forget(3);
        assert!(held.is_empty() && held.is_clear(&range(0, 256)) && held.oldest().is_none());
    }
}
