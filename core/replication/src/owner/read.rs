//! Reads: under a shared range lock, with the leases of all that may be active, from one of them.

use super::member_set::MemberSet;
use super::state::{At, Member, Place};
use super::work::Work;
use super::{Asked, Failure, Leases, Lost, Owner, Reply, Token};
use crate::lanes::{Hold, Range};
use crate::limits;
use crate::rules::Rule;
use base::WriteId;
use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::BLOCK_SIZE;
use smallvec::SmallVec;
use wire::{Answer, Refusal, Request};

impl Owner {
    pub(crate) fn read(
        &mut self,
        token: Token,
        place: u16,
        part: u32,
        block: u16,
        count: u16,
        leases: &Leases,
    ) {
        let range = Range { part, block, count };
        assert!(count >= 1 && block + count <= 256, "a read lies within its part");
        let work = Work::Read {
            token,
            place,
            range,
            damaged: MemberSet::EMPTY,
            began: self.now,
            step: count,
            read: 0,
            pieces: Pieces::new(),
            mends: Vec::new(),
        };
        let key = self.works.insert(work) as u32;
        let is_locked = !self.holds(Rule::ReadAfterWrites)
            || self.places[place as usize].lanes.lock(range, Hold::Shared, key);
        if is_locked && !self.try_read(key, leases) {
            self.reads_waiting.push_back(key);
        }
    }

    /// Reads that wait for a lease or a component try again.
    pub(crate) fn retry_reads(&mut self, leases: &Leases) {
        for _ in 0..self.reads_waiting.len() {
            let Some(key) = self.reads_waiting.pop_front() else { return };
            if !self.try_read(key, leases) {
                self.reads_waiting.push_back(key);
            }
        }
    }

    /// Asks a component, if that may be done now.
    fn try_read(&mut self, key: u32, leases: &Leases) -> bool {
        if let Work::Status { .. } = self.works[key as usize] {
            return self.try_status(key, leases);
        }
        let Work::Read { place, damaged, .. } = self.works[key as usize] else {
            unreachable!("only reads wait to read")
        };
        if self.is_damaged_on_all(place, damaged) {
            self.read_narrower(key, leases);
            return true;
        }
        let range = self.next_of_read(key);
        let may_read = !self.holds(Rule::ReadUnderLeases) || self.has_leases(place, leases);
        let Some(member) = self.choose(place, range.part, damaged).filter(|_| may_read) else {
            return false;
        };
        let at = At { place, member };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let Range { part, block, count } = range;
        let request = Request::Read { component, epoch: self.epoch, part, block, count };
        self.send(node, Asked::Read { work: key, at }, request);
        true
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
                is_near: one.node.host == self.me.node.host,
                read_ns: one.read_ns,
            })
            .collect();
        source(&readable, part)
    }

    /// The component to read from.
    pub(crate) fn choose(&mut self, place: u16, part: u32, except: MemberSet) -> Option<u8> {
        let nearest = self.settings.prefers_local.then_some(self.me.node.host);
        let place: &Place = &self.places[place as usize];
        let fit = || place.active().filter(|(index, one)| one.is_open() && !except.contains(*index));
        let has_prompt = fit().any(|(_, one)| one.is_prompt());
        let fit = fit().filter(|(_, one)| one.is_prompt() || !has_prompt);
        let readable: SmallVec<[Readable; 4]> = fit
            .map(|(index, one)| Readable {
                index,
                is_near: nearest == Some(one.node.host),
                read_ns: one.read_ns,
            })
            .collect();
        let (chosen, is_passed_over) = spread(&readable, part)?;
        if !is_passed_over {
            return Some(chosen.index);
        }
        self.passed_over += 1;
        let is_probe = self.passed_over.is_multiple_of(limits::SLOW_PROBE);
        let quickest = readable.iter().min_by_key(|one| one.read_ns)?;
        Some(if is_probe { chosen.index } else { quickest.index })
    }

    pub(crate) fn read_answered(&mut self, key: u32, at: At, answer: Result<Answer, Lost>, leases: &Leases) {
        match answer {
            Ok(Answer::Data { pieces, checksums }) => {
                let is_remote = self.member(at).node != self.me.node;
                if is_remote && !verify(&pieces, &checksums) {
                    return self.read_again(key, leases); // Damaged on the way.
                }
                self.read_done(key, at, pieces, leases);
            }
            Ok(Answer::Refused(Refusal::Damaged)) => self.read_damaged(key, at, leases),
            Ok(Answer::Refused(Refusal::NotOpen)) => {
                self.lost_session(at);
                self.reads_waiting.push_back(key);
            }
            Ok(Answer::Refused(refusal)) => {
                self.unreadable(at, refusal);
                self.reads_waiting.push_back(key);
            }
            Err(Lost) => self.reads_waiting.push_back(key),
            Ok(other) => unreachable!("a read is not answered by {other:?}"),
        }
    }

    /// What a read asks for now.
    fn next_of_read(&self, key: u32) -> Range {
        let Work::Read { range: Range { part, block, count }, step, read, .. } = self.works[key as usize]
        else {
            unreachable!("only reads read")
        };
        Range { part, block: block + read, count: step.min(count - read) }
    }

    fn read_again(&mut self, key: u32, leases: &Leases) {
        if !self.try_read(key, leases) {
            self.reads_waiting.push_back(key);
        }
    }

    /// A component's device is out of service: it can hold nothing any more.
    pub(crate) fn unreadable(&mut self, at: At, refusal: Refusal) {
        let why = super::LeftBecause::Refused(refusal);
        self.member_mut(at).trouble = Some(why);
        self.want_out(at, crate::roster::Standing::Absent, why);
        let now = self.now;
        self.member_mut(at).down(now, now + limits::RESYNC_RETRY);
    }

    fn read_done(&mut self, key: u32, at: At, found: Pieces, leases: &Leases) {
        let now_read = self.next_of_read(key);
        let now = self.now;
        let Work::Read { place, range, damaged, began, read, pieces, mends, .. } =
            &mut self.works[key as usize]
        else {
            unreachable!("only reads read")
        };
        let took = now.since(*began).as_nanos() as u64;
        let bad = std::mem::take(damaged);
        mends.extend(bad.iter().map(|member| (member, now_read)));
        pieces.extend(found);
        *read += now_read.count;
        *began = now;
        let (place, is_all) = (*place, *read == range.count);
        let member = self.member_mut(at);
        member.read_ns = if member.read_ns == 0 { took } else { (member.read_ns * 7 + took) / 8 };
        if !is_all {
            return self.read_again(key, leases);
        }
        let Work::Read { pieces, mends, .. } = &mut self.works[key as usize] else {
            unreachable!("only reads read")
        };
        let (pieces, mends) = (std::mem::take(pieces), std::mem::take(mends));
        self.end_work(key, Ok(Reply::Data(pieces)));
        self.mend(place, mends);
    }

    /// Has damaged blocks written again.
    fn mend(&mut self, place: u16, mends: Vec<(u8, Range)>) {
        for (member, range) in mends {
            self.copy(At { place, member }, range, WriteId::default(), None);
        }
    }

    /// Blocks are damaged on one component: another is asked, and what it has mends the damage. Where all have damaged blocks,
    /// each block is asked for by itself: they may be different ones.
    fn read_damaged(&mut self, key: u32, at: At, leases: &Leases) {
        let Work::Read { damaged, .. } = &mut self.works[key as usize] else {
            unreachable!("only reads read")
        };
        damaged.insert(at.member);
        self.read_again(key, leases);
    }

    /// Whether no component is left that could have what a read asks for now. The one that was to be asked may have left meanwhile: then
    /// nobody else would ever be.
    fn is_damaged_on_all(&self, place: u16, damaged: MemberSet) -> bool {
        let mut active = self.places[place as usize].active();
        !damaged.is_empty() && active.all(|(index, _)| damaged.contains(index))
    }

    /// All have damaged blocks in what a read asks for: it asks for each block by itself, or ends if it did.
    fn read_narrower(&mut self, key: u32, leases: &Leases) {
        let is_narrow = self.next_of_read(key).count == 1 || !self.holds(Rule::ReadBlockByBlock);
        let Work::Read { place, damaged, step, mends, .. } = &mut self.works[key as usize] else {
            unreachable!("only reads read")
        };
        if !is_narrow {
            (*step, *damaged) = (1, MemberSet::EMPTY);
            return self.read_again(key, leases);
        }
        let (place, mends) = (*place, std::mem::take(mends));
        self.end_work(key, Err(Failure::Damaged));
        self.mend(place, mends);
    }
}

/// A component that a read may go to.
#[derive(Debug, Clone, Copy)]
struct Readable {
    index: u8,
    /// Whether reads are wanted there before all others.
    is_near: bool,
    /// What reads from it took, smoothed; 0 if there was none.
    read_ns: u64,
}

/// Where reads of a part belong: near if that is wanted, otherwise spread by offset (1 MiB); and whether that component is
/// so slow that reads pass it over.
fn spread(readable: &[Readable], part: u32) -> Option<(Readable, bool)> {
    if let Some(near) = readable.iter().find(|one| one.is_near) {
        return Some((*near, false));
    }
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
    let near = readable.iter().find(|one| one.is_near && !is_slow(one, readable));
    let fit: SmallVec<[&Readable; 4]> = readable.iter().filter(|one| !is_slow(one, readable)).collect();
    let spread = || fit.get(part as usize % fit.len().max(1)).copied();
    near.or_else(spread).map(|one| one.index)
}

/// Whether every block in `pieces` is as its checksum says.
pub(crate) fn verify(pieces: &Pieces, checksums: &[u32]) -> bool {
    let mut expected = checksums.iter();
    let bytes = pieces.iter().filter_map(|piece| match piece {
        Piece::Bytes(buffer) => Some(buffer),
        Piece::Hole(_) => None,
    });
    let mut blocks = bytes.flat_map(|buffer| buffer.chunks_exact(BLOCK_SIZE as usize));
    blocks.all(|block| expected.next() == Some(&crc32c(block))) && expected.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(read_ns: u64) -> impl Fn(u8) -> Readable {
        move |index| Readable { index, is_near: false, read_ns }
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
        readable[1].is_near = true;
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
    fn the_near_one_is_read_from_whatever_it_takes() {
        let mut readable = [0, 1, 2].map(of(100_000));
        readable[1] = Readable { index: 1, is_near: true, read_ns: 90_000_000 };
        for part in 0..3 {
            let (chosen, is_passed_over) = spread(&readable, part).expect("three are there");
            assert_eq!((chosen.index, is_passed_over), (1, false));
        }
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
