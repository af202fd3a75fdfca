//! Reads: under a shared range lock, with the leases of all that may be active, from one of them.

use super::Owner;
use super::asked::{Asked, Step, Unanswered};
use super::copy::{Holes, Purpose};
use super::data::Data;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::interface::{Failure, Leases, LeftBecause, Output, Reply, Token};
use super::member::{At, Member, OutAs};
use super::member_set::MemberSet;
use super::place::Place;
use super::rows::row_of;
use super::steering::{Readable, Reading};
use super::work::{Key, ReadWork, Reader};
use crate::limits;
use crate::locks::{Hold, Range};
use crate::rules::Rule;
use base::WriteId;
use base::request::Pieces;
use layout::Unit;
use smallvec::SmallVec;
use wire::{Refusal, Request, layer};

impl Owner {
    /// Reads blocks; `snapshot`: of that view, 0: as they are.
    pub(crate) fn read(
        &mut self,
        (token, snapshot): (Token, u32),
        place: u16,
        range: Range,
        unit: Option<u8>,
        leases: &Leases,
    ) {
        let Range { part, block, count } = range;
        assert!(count >= 1 && block + count <= 256, "a read lies within its part");
        let code = self.places[usize::from(place)].code;
        if unit.is_some() != code.is_some() {
            // The layout that it was split by is not the one of this record.
            return self.out.push(Output::Done { token, result: Err(Failure::Unowned) });
        }
        let position =
            unit.zip(code).map(|(unit, code)| code.position(row_of(part, block), Unit::Data(unit)));
        let key = self.works.add_read(ReadWork {
            token,
            place,
            range,
            damaged: MemberSet::EMPTY,
            began: self.now,
            position,
            step: count,
            read: 0,
            pieces: Pieces::new(),
            mends: Vec::new(),
            is_lost: false,
            snapshot,
        });
        let lock = self.works.reads.lock_key(key);
        let is_locked =
            !self.holds(Rule::ReadAfterWrites) || self.locks.lock(lock, Hold::Read, &[(place, range)]);
        if is_locked {
            self.read_again(key, leases);
        }
    }

    /// Reads that wait for a lease or a component try again.
    pub(crate) fn retry_reads(&mut self, leases: &Leases) {
        for _ in 0..self.reads_waiting.len() {
            let Some(reader) = self.reads_waiting.pop_front() else { return };
            let is_asked = match reader {
                Reader::Read(key) => self.try_read(key, leases),
                Reader::Status(key) => self.try_status(key, leases),
            };
            if !is_asked {
                self.reads_waiting.push_back(reader);
            }
        }
    }

    /// Asks a component, if that may be done now.
    fn try_read(&mut self, key: Key<ReadWork>, leases: &Leases) -> bool {
        let ReadWork { place, damaged, position, snapshot, .. } = self.works.reads[key];
        if snapshot != 0 {
            return self.try_view(key, leases);
        }
        if position.is_none() && self.is_damaged_on_all(place, damaged) {
            self.read_narrower(key, leases);
            return true;
        }
        if self.works.reads[key].is_lost {
            self.end_read(key, false);
            return true;
        }
        let range = self.works.reads[key].next();
        let may_read = !self.holds(Rule::ReadUnderLeases) || self.has_leases(place, leases);
        if !may_read {
            return false;
        }
        let member = match position {
            None => self.choose(place, range.part, damaged),
            Some(position) => self.choose_at(place, position, damaged),
        };
        let Some(member) = member else {
            let Some(position) = position else { return false };
            if !self.has_enough_open(place) || !self.may_gather(place, range) {
                return false;
            }
            if !self.places[usize::from(place)].held.is_clear(&range) && self.holds(Rule::FoldBeforeDecoding)
            {
                self.fold_for_read(key, range);
                return true;
            }
            let mut gather =
                Gather::new(place, range, MemberSet::of(position), damaged, GatherFor::Read(key));
            gather.is_damaged = !damaged.is_empty();
            self.gather(gather);
            return true;
        };
        let at = At { place, member };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let Range { part, block, count } = range;
        let part = layer::layered(self.read_layer(place, range, position), part);
        // What comes from another node is verified whatever the policy says.
        // What is moved into another layout gets checksums anew: damage must not become right that way.
        let is_moved = self.recording.roster.moving.is_some();
        let verify = self.settings.verifies || is_moved || node != self.me.node;
        let request = Request::Read { component, epoch: self.epoch, part, block, count, verify };
        self.send(node, Asked::Step(Step::Read { work: key, at }), request);
        true
    }

    /// The layer that has the newest version of what a position of rows has.
    fn read_layer(&self, place: u16, range: Range, position: Option<u8>) -> u8 {
        let code = self.places[usize::from(place)].code;
        let unit = code.zip(position).map(|(code, one)| code.unit(row_of(range.part, range.block), one));
        match unit {
            Some(Unit::Data(unit)) => layer::COPY_FIRST + unit,
            Some(Unit::Parity(_)) | None => layer::CONTENT,
        }
    }

    /// Parity is made to count what is held of columns that a read decodes. Meanwhile they are locked for that, not for the read.
    fn fold_for_read(&mut self, key: Key<ReadWork>, range: Range) {
        let ReadWork { place, range: whole, .. } = self.works.reads[key];
        let lock = self.works.reads.lock_key(key);
        self.unlock(lock, place, whole);
        self.fold(place, range, Some(lock));
    }

    /// Whether as many members are active and open as a row has data units.
    fn has_enough_open(&self, place: u16) -> bool {
        let place = &self.places[usize::from(place)];
        place.is_enough(place.active().filter(|(_, one)| one.is_open()))
    }

    /// The member of a position of rows, if it can be asked. One that owes an answer for long is not, where the others do without it.
    pub(crate) fn choose_at(&self, place: u16, position: u8, except: MemberSet) -> Option<u8> {
        let place = &self.places[usize::from(place)];
        let is_fit = |index: u8, one: &Member| one.is_open() && !except.contains(index);
        let mut fit = place.active().filter(|(index, one)| one.position == position && is_fit(*index, one));
        let (member, one) = fit.next()?;
        let prompt =
            place.active().filter(|(index, one)| one.is_prompt() && is_fit(*index, one) && *index != member);
        (one.is_prompt() || !place.is_enough(prompt)).then_some(member)
    }

    /// What a read asks for was put together from other members of the row, or cannot be.
    pub(crate) fn read_gathered(&mut self, key: Key<ReadWork>, result: Result<Found, GatherFailure>) {
        let position = self.works.reads[key].position.expect("it reads from rows");
        match result {
            Ok(mut found) => self.read_part(key, found.take(position).pieces),
            Err(GatherFailure::Damaged) => {
                let read = &mut self.works.reads[key];
                if read.next().count == 1 {
                    return self.end_read(key, false);
                }
                (read.step, read.damaged) = (1, MemberSet::EMPTY);
                self.reads_waiting.push_back(Reader::Read(key));
            }
            Err(GatherFailure::Unreachable | GatherFailure::Memory) => {
                self.works.reads[key].damaged = MemberSet::EMPTY;
                self.reads_waiting.push_back(Reader::Read(key));
            }
        }
    }

    /// Whether every component that may count has granted that no other owner is served (invariant 11): an active one, a
    /// stand-in, for another owner may be served by it with the one that it stands in for, and one that is about to join.
    pub(crate) fn has_leases(&self, place: u16, leases: &Leases) -> bool {
        let skips_stand_ins = !self.holds(Rule::ReadUnderStandInLeases);
        let counts = |one: &&Member| one.may_count() && !(skips_stand_ins && one.stands_in_for().is_some());
        let holders = self.places[place as usize].members.iter().filter(counts);
        let is_held =
            |one: &Member| one.is_open() && (one.node == self.me.node || leases.is_live(one.node, self.now));
        let mut holders = holders.peekable();
        holders.peek().is_some() && holders.all(is_held)
    }

    /// The component to read what is copied from, of those that may give it.
    pub(crate) fn copy_source(
        &self,
        place: u16,
        part: u32,
        may_give: impl Fn(u8, &Member) -> bool,
    ) -> Option<u8> {
        let members = &self.places[place as usize].members;
        let fit = || (0u8..).zip(members).filter(|(index, one)| may_give(*index, one) && one.is_open());
        let has_prompt = fit().any(|(_, one)| one.is_prompt());
        let readable: SmallVec<[Readable; 4]> = fit()
            .filter(|(_, one)| one.is_prompt() || !has_prompt)
            .map(|(index, one)| Readable {
                index,
                is_own: one.node.host == self.me.node.host,
                read_ns: one.read_ns,
                recent: one.recent,
            })
            .collect();
        source(&readable, part)
    }

    /// The component to read from.
    pub(crate) fn choose(&mut self, place: u16, part: u32, except: MemberSet) -> Option<u8> {
        let (me, now, reading) = (self.me.node.host, self.now, self.settings.reading);
        let place: &mut Place = &mut self.places[place as usize];
        let fit = || place.active().filter(|(index, one)| one.is_open() && !except.contains(*index));
        let has_prompt = fit().any(|(_, one)| one.is_prompt());
        let fit = fit().filter(|(_, one)| one.is_prompt() || !has_prompt);
        let readable: SmallVec<[Readable; 4]> = fit
            .map(|(index, one)| Readable {
                index,
                is_own: one.node.host == me,
                read_ns: one.read_ns,
                recent: one.recent,
            })
            .collect();
        let own = readable.iter().find(|one| one.is_own);
        match (reading, own) {
            (Reading::Local, Some(own)) => return Some(own.index),
            (Reading::Auto, Some(_)) => return place.steering.choose(now, &readable, part),
            (Reading::Spread, _) | (Reading::Local | Reading::Auto, None) => {}
        }
        let (chosen, is_passed_over) = spread(&readable, part)?;
        if !is_passed_over {
            return Some(chosen.index);
        }
        self.passed_over += 1;
        let is_probe = self.passed_over.is_multiple_of(limits::SLOW_PROBE);
        let quickest = readable.iter().min_by_key(|one| one.read_ns)?;
        Some(if is_probe { chosen.index } else { quickest.index })
    }

    pub(crate) fn read_answered(
        &mut self,
        key: Key<ReadWork>,
        at: At,
        answer: Result<Data, Unanswered>,
        leases: &Leases,
    ) {
        match answer {
            Ok(data) => {
                let is_remote = self.member(at).node != self.me.node;
                if is_remote && !data.is_intact() {
                    return self.read_again(key, leases); // Damaged on the way.
                }
                return self.read_done(key, at, data.pieces);
            }
            // One that has lost a snapshot is as one whose blocks are damaged.
            Err(Unanswered::Refused(Refusal::Damaged | Refusal::NoSnapshot)) => {
                // Another is asked, and what it has mends the damage.
                self.works.reads[key].damaged.insert(at.member);
                return self.read_again(key, leases);
            }
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(Unanswered::Refused(refusal)) => self.unreadable(at, refusal),
            Err(Unanswered::Lost) => {}
        }
        self.reads_waiting.push_back(Reader::Read(key));
    }

    fn read_again(&mut self, key: Key<ReadWork>, leases: &Leases) {
        if !self.try_read(key, leases) {
            self.reads_waiting.push_back(Reader::Read(key));
        }
    }

    /// A component's device is out of service: it can hold nothing any more.
    pub(crate) fn unreadable(&mut self, at: At, refusal: Refusal) {
        let why = LeftBecause::Refused(refusal);
        self.member_mut(at).trouble = Some(why);
        self.want_out(at, OutAs::Absent, why);
        let now = self.now;
        self.member_mut(at).down(now, now + limits::RESYNC_RETRY);
    }

    fn read_done(&mut self, key: Key<ReadWork>, at: At, found: Pieces) {
        let now = self.now;
        let took = now.since(self.works.reads[key].began).as_nanos() as u64;
        let member = self.member_mut(at);
        member.read_ns = if member.read_ns == 0 { took } else { (member.read_ns * 7 + took) / 8 };
        member.recent.note(now, took);
        self.read_part(key, found);
    }

    /// Some of what a read asks for is there.
    fn read_part(&mut self, key: Key<ReadWork>, found: Pieces) {
        let now = self.now;
        let read = &mut self.works.reads[key];
        let now_read = read.next();
        let bad = std::mem::take(&mut read.damaged);
        read.mends.extend(bad.iter().map(|member| (member, now_read)));
        read.pieces.extend(found);
        read.read += now_read.count;
        read.began = now;
        match read.read == read.range.count {
            true => self.end_read(key, true),
            false => self.reads_waiting.push_back(Reader::Read(key)),
        }
    }

    /// Answers with what was read, or that blocks are damaged on all; unlocks the range.
    fn end_read(&mut self, key: Key<ReadWork>, is_done: bool) {
        let (lock, read) = self.works.remove_read(key);
        let ReadWork { token, place, range, pieces, mends, snapshot, .. } = read;
        let result = if is_done { Ok(Reply::Data(pieces)) } else { Err(Failure::Damaged) };
        self.out.push(Output::Done { token, result });
        if self.holds(Rule::ReadAfterWrites) {
            self.unlock(lock, place, range);
        }
        match snapshot {
            0 => self.mend(place, mends),
            snapshot => {
                for (member, range) in mends {
                    self.view_is_damaged(At { place, member }, range, snapshot);
                }
            }
        }
    }

    /// Has damaged blocks written again.
    fn mend(&mut self, place: u16, mends: Vec<(u8, Range)>) {
        for (member, range) in mends {
            self.copy(At { place, member }, range, WriteId::default(), Purpose::Repair, Holes::Trim);
        }
    }

    /// Whether no component is left that could have what a read asks for now. The one that was to be asked may have left meanwhile: then
    /// nobody else would ever be.
    fn is_damaged_on_all(&self, place: u16, damaged: MemberSet) -> bool {
        let mut active = self.places[place as usize].active();
        !damaged.is_empty() && active.all(|(index, _)| damaged.contains(index))
    }

    /// All have damaged blocks in what a read asks for: it asks for each block by itself, for they may be different ones, or ends if it
    /// did.
    pub(crate) fn read_narrower(&mut self, key: Key<ReadWork>, leases: &Leases) {
        let reads_blocks = self.holds(Rule::ReadBlockByBlock);
        let read = &mut self.works.reads[key];
        if read.next().count == 1 || !reads_blocks {
            return self.end_read(key, false);
        }
        (read.step, read.damaged) = (1, MemberSet::EMPTY);
        self.read_again(key, leases);
    }
}

/// Where reads of a part belong that are spread by offset (1 MiB); and whether that component is so slow that reads pass it over.
fn spread(readable: &[Readable], part: u32) -> Option<(Readable, bool)> {
    let chosen = *readable.get(part as usize % readable.len().max(1))?;
    Some((chosen, is_slow(&chosen, readable)))
}

/// Whether a component takes so much longer than the quickest that it is better not asked. Of one that was never read from nobody
/// knows what it takes: it makes no other slow.
fn is_slow(one: &Readable, readable: &[Readable]) -> bool {
    let known = readable.iter().map(|one| one.read_ns).filter(|ns| *ns > 0);
    let quickest = known.min().unwrap_or(0);
    one.read_ns > quickest.saturating_mul(limits::SLOW_FACTOR)
        && one.read_ns > limits::SLOW_LATENCY.as_nanos() as u64
}

/// Where a copy of a part is read from: near, for what is read elsewhere crosses the network twice, unless that is slow; otherwise
/// spread by offset over those that are not.
fn source(readable: &[Readable], part: u32) -> Option<u8> {
    let near = readable.iter().find(|one| one.is_own && !is_slow(one, readable));
    let fit: SmallVec<[&Readable; 4]> = readable.iter().filter(|one| !is_slow(one, readable)).collect();
    let spread = || fit.get(part as usize % fit.len().max(1)).copied();
    near.or_else(spread).map(|one| one.index)
}

#[cfg(test)]
mod tests {
    use super::super::steering::Recent;
    use super::*;

    fn of(read_ns: u64) -> impl Fn(u8) -> Readable {
        move |index| Readable { index, is_own: false, read_ns, recent: Recent::default() }
    }

    #[test]
    fn reads_are_spread_by_offset() {
        let readable = [0, 1, 2].map(of(100_000));
        let chosen: Vec<u8> = (0..6).filter_map(|part| Some(spread(&readable, part)?.0.index)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
        assert!(spread(&[], 7).is_none(), "nobody is there to read from");
    }

    #[test]
    fn a_copy_is_read_near_unless_that_is_slow_and_then_from_those_that_are_not() {
        let mut readable = [0, 1, 2].map(of(100_000));
        let sources = |readable: &[Readable]| (0..4).filter_map(|part| source(readable, part)).collect();
        let chosen: Vec<u8> = sources(&readable);
        assert_eq!(chosen, [0, 1, 2, 0]);
        readable[1].is_own = true;
        let chosen: Vec<u8> = sources(&readable);
        assert_eq!(chosen, [1, 1, 1, 1]);
        readable[1].read_ns = 60_000_000;
        let chosen: Vec<u8> = sources(&readable);
        assert_eq!(chosen, [0, 2, 0, 2]);
        let chosen: Vec<u8> = sources(&readable[1..2]);
        assert_eq!(chosen, [1, 1, 1, 1], "a slow one is better than none");
        (readable[0].read_ns, readable[2].read_ns) = (0, 0);
        let chosen: Vec<u8> = sources(&readable);
        assert_eq!(chosen, [1, 1, 1, 1], "of the others nobody knows whether they are quicker");
        assert_eq!(source(&[], 7), None);
    }

    #[test]
    fn one_that_is_slow_and_much_slower_than_the_best_is_passed_over() {
        let passed_over = |best: u64, own: u64| {
            let (chosen, is_passed_over) = spread(&[of(best)(0), of(own)(1)], 1).expect("two are there");
            assert_eq!(chosen.index, 1, "what is passed over is told, so that it can be asked now and then");
            is_passed_over
        };
        assert!(passed_over(1_000_000, 4_000_001));
        assert!(!passed_over(1_000_000, 4_000_000), "four times as slow is still spread to");
        assert!(!passed_over(100, 1_900_000), "below 2 ms spreading is worth more");
    }
}
