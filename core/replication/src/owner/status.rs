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
        let key = self.works.add_status(StatusWork { token, of, place, part, count });
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
        let is_near = |one: &Member| one.is_open() && one.is_prompt() && one.node == self.me.node;
        let is_told_by_none = self.places[usize::from(place)].active().all(|(one, _)| lacking.contains(one));
        if is_told_by_none {
            // No component has both snapshots: nobody can tell what is the same.
            self.end_status(key, vec![StatusRun { len: u64::from(count) * EXTENT_SIZE, is_set: true }]);
            return true;
        }
        let near = {
            let mut active = self.places[usize::from(place)].active();
            active.find(|(member, one)| is_near(one) && !lacking.contains(*member)).map(|(member, _)| member)
        };
        let Some(member) = near.or_else(|| self.choose(place, part, lacking)) else { return false };
        let at = At { place, member };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let request = Request::Allocation { component, epoch: self.epoch, of, part, count };
        self.send(node, Asked::Step(Step::Status { work: key, at }), request);
        true
    }

    pub(crate) fn status_answered(
        &mut self,
        key: Key<StatusWork>,
        at: At,
        answer: Result<Vec<StatusRun>, Unanswered>,
    ) {
        let len = u64::from(self.works.statuses[key].count) * EXTENT_SIZE;
        match answer {
            Ok(runs) if is_beginning(&runs, len) => self.end_status(key, runs),
            Err(Unanswered::Refused(Refusal::NotOpen)) => {
                self.lost_session(at);
                self.reads_waiting.push_back(Reader::Status(key));
            }
            Err(Unanswered::Refused(refusal @ (Refusal::NoComponent | Refusal::DeviceLost))) => {
                self.unreadable(at, refusal);
                self.reads_waiting.push_back(Reader::Status(key));
            }
            Err(Unanswered::Lost) => self.reads_waiting.push_back(Reader::Status(key)),
            Ok(_) | Err(Unanswered::Refused(_)) => {
                self.end_status(key, vec![StatusRun { len, is_set: true }])
            }
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

/// Whether the runs cover whole parts from the first on: all of them, or as many as the component looked at.
pub(crate) fn is_beginning(runs: &[StatusRun], len: u64) -> bool {
    let covered: u64 = runs.iter().map(|run| run.len).sum();
    covered > 0 && covered <= len && covered.is_multiple_of(EXTENT_SIZE)
}
