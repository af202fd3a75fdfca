//! What is allocated: asked of a component under the rules of a read, for "not allocated" promises zeroes.
//!
//! The parts are locked as for a read, so that no hole is told that a change under way may take back, or may not have
//! made. "Allocated" is never wrong: it is the answer wherever a component cannot say. A component may answer for the first
//! parts alone, so that one question never takes it long; whoever asked goes on from there.

use super::Owner;
use super::asked::{Asked, Step, Unanswered};
use super::interface::{Failure, Leases, Output, Reply, Token};
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::work::{Key, Reader, StatusWork};
use base::request::{StatusOf, StatusRun};
use base::units::EXTENT_SIZE;
use layout::code::UNITS_MAX;
use smallvec::SmallVec;
use wire::limits::ALLOCATION_PARTS_MAX;
use wire::{Refusal, Request};

impl Owner {
    pub(crate) fn status(
        &mut self,
        (token, of): (Token, StatusOf),
        place: u16,
        parts: (u32, u16),
        leases: &Leases,
    ) {
        let (part, count) = parts;
        assert!((1..=ALLOCATION_PARTS_MAX).contains(&usize::from(count)), "some parts, and not too many");
        let (outstanding, told, is_again) = (0, None, false);
        let work = StatusWork { token, of, place, part, count, outstanding, told, is_again };
        let key = self.works.add_status(work);
        let lock = self.works.statuses.lock_key(key);
        let parts = part..part + u32::from(count);
        let is_locked = self.locks.lock_parts(lock, place, parts);
        if is_locked && !self.try_status(key, leases) {
            self.reads_waiting.push_back(Reader::Status(key));
        }
    }

    /// Whether what these places hold may be told now from what is known: under the rules of a read, though nothing is asked.
    pub fn may_tell(&self, places: impl IntoIterator<Item = u16>, leases: &Leases) -> bool {
        places.into_iter().all(|place| self.has_leases(place, leases))
    }

    /// Asks a component, if that may be done now: the one on this node if it can answer, for that is quickest.
    pub(crate) fn try_status(&mut self, key: Key<StatusWork>, leases: &Leases) -> bool {
        let StatusWork { of, place, part, count, .. } = self.works.statuses[key];
        if !self.has_leases(place, leases) {
            return false;
        }
        let Some(lacking) = self.lacking_any(place, of) else {
            self.status_is_gone(key);
            return true;
        };
        let state = &self.places[usize::from(place)];
        let has_both = |(one, _): &(u8, &Member)| !lacking.contains(*one);
        if !state.is_enough(state.active().filter(has_both)) {
            // Too few components have both snapshots: nobody can tell what is the same.
            self.end_status(key, vec![StatusRun { len: u64::from(count) * EXTENT_SIZE, is_set: true }]);
            return true;
        }
        let asked = match state.code {
            None => self.one_to_tell(place, part, lacking).into_iter().collect(),
            Some(_) => self.enough_to_tell(place, lacking),
        };
        if asked.is_empty() {
            return false;
        }
        let work = &mut self.works.statuses[key];
        (work.outstanding, work.told, work.is_again) = (asked.len() as u8, None, false);
        for member in asked {
            let at = At { place, member };
            let (node, component) = (self.member(at).node, self.member(at).component);
            let request = Request::Allocation { component, epoch: self.epoch, of, part, count };
            self.send(node, Asked::Step(Step::Status { work: key, at }), request);
        }
        true
    }

    /// The copy that is asked: the one on this node if it can answer, for that is quickest.
    fn one_to_tell(&mut self, place: u16, part: u32, lacking: MemberSet) -> Option<u8> {
        let is_near = |one: &Member| one.is_open() && one.is_prompt() && one.node == self.me.node;
        let near = {
            let mut active = self.places[usize::from(place)].active();
            active.find(|(member, one)| is_near(one) && !lacking.contains(*member)).map(|(member, _)| member)
        };
        near.or_else(|| self.choose(place, part, lacking))
    }

    /// As many members of rows as there are data units, or none if so many cannot be asked. What these have determines what the others have: where nothing differs in any of
    /// them, nothing does.
    fn enough_to_tell(&self, place: u16, lacking: MemberSet) -> SmallVec<[u8; UNITS_MAX]> {
        let state = &self.places[usize::from(place)];
        let fit = || state.active().filter(|(one, member)| !lacking.contains(*one) && member.is_open());
        let most = state.code.map_or(1, |code| usize::from(code.data()));
        let mut positions = MemberSet::EMPTY;
        let mut asked: SmallVec<[u8; UNITS_MAX]> = SmallVec::new();
        for (one, member) in fit().filter(|_| state.is_enough(fit())) {
            if asked.len() < most && !positions.contains(member.position) {
                positions.insert(member.position);
                asked.push(one);
            }
        }
        asked
    }

    pub(crate) fn status_answered(
        &mut self,
        key: Key<StatusWork>,
        at: At,
        answer: Result<Vec<StatusRun>, Unanswered>,
    ) {
        let answer_of = match answer {
            Err(Unanswered::Refused(refusal)) => Some(refusal),
            Ok(_) | Err(Unanswered::Lost) => None,
        };
        let work = &mut self.works.statuses[key];
        let len = u64::from(work.count) * EXTENT_SIZE;
        work.outstanding -= 1;
        let told = match answer {
            Ok(runs) if is_beginning(&runs, len) => Some(runs),
            Err(
                Unanswered::Refused(Refusal::NotOpen | Refusal::NoComponent | Refusal::DeviceLost)
                | Unanswered::Lost,
            ) => None,
            Ok(_) | Err(Unanswered::Refused(_)) => Some(vec![StatusRun { len, is_set: true }]),
        };
        match told {
            Some(runs) => {
                work.told = Some(match work.told.take() {
                    Some(others) => either(&others, &runs),
                    None => runs,
                });
            }
            None => work.is_again = true,
        }
        match answer_of {
            Some(Refusal::NotOpen) => self.lost_session(at),
            Some(refusal @ (Refusal::NoComponent | Refusal::DeviceLost)) => self.unreadable(at, refusal),
            Some(_) | None => {}
        }
        let work = &mut self.works.statuses[key];
        match (work.outstanding, work.is_again, work.told.take()) {
            (0, false, Some(runs)) => self.end_status(key, runs),
            (0, ..) => self.reads_waiting.push_back(Reader::Status(key)),
            (_, _, told) => work.told = told,
        }
    }

    /// The members of a place that lack a snapshot which a question is about; `None` if the disk does not have it any more.
    fn lacking_any(&self, place: u16, of: StatusOf) -> Option<MemberSet> {
        let lacking = |number: u32| self.has_snapshot(number).then(|| self.lacking(place, number));
        match of {
            StatusOf::Disk => Some(MemberSet::EMPTY),
            StatusOf::Snapshot(snapshot) => lacking(snapshot),
            StatusOf::Changes { since, snapshot } => {
                Some(lacking(since)?.iter().chain(lacking(snapshot)?.iter()).collect())
            }
        }
    }

    fn end_status(&mut self, key: Key<StatusWork>, runs: Vec<StatusRun>) {
        self.finish_status(key, Ok(Reply::Allocation(runs)));
    }

    /// A snapshot that a question is about was deleted.
    fn status_is_gone(&mut self, key: Key<StatusWork>) {
        self.finish_status(key, Err(Failure::NoSnapshot));
    }

    fn finish_status(&mut self, key: Key<StatusWork>, result: Result<Reply, Failure>) {
        let (lock, StatusWork { token, place, .. }) = self.works.remove_status(key);
        self.out.push(Output::Done { token, result });
        let granted = self.locks.unlock_parts(lock, place);
        granted.into_iter().for_each(|lock| self.begin_work(lock));
    }
}

/// What one of two calls set is set, as far as both tell.
fn either(one: &[StatusRun], other: &[StatusRun]) -> Vec<StatusRun> {
    let mut all: Vec<StatusRun> = Vec::new();
    let (mut ones, mut others) = (one.iter().copied(), other.iter().copied());
    let (mut first, mut second) = (ones.next(), others.next());
    while let (Some(a), Some(b)) = (&mut first, &mut second) {
        let (len, is_set) = (a.len.min(b.len), a.is_set || b.is_set);
        match all.last_mut().filter(|last| last.is_set == is_set) {
            Some(last) => last.len += len,
            None => all.push(StatusRun { len, is_set }),
        }
        (a.len, b.len) = (a.len - len, b.len - len);
        if a.len == 0 {
            first = ones.next();
        }
        if b.len == 0 {
            second = others.next();
        }
    }
    all
}

/// Whether the runs cover whole parts from the first on: all of them, or as many as the component looked at.
pub(crate) fn is_beginning(runs: &[StatusRun], len: u64) -> bool {
    let covered: u64 = runs.iter().map(|run| run.len).sum();
    covered > 0 && covered <= len && covered.is_multiple_of(EXTENT_SIZE)
}
