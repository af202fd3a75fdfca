//! What is allocated: asked of a component under the rules of a read, for "not allocated" promises zeroes.
//!
//! The parts are locked as for a read, so that no hole is told that a change under way may take back, or may not have
//! made. "Allocated" is never wrong: it is the answer wherever a component cannot say. A component may answer for the first
//! parts alone, so that one question never takes it long; whoever asked goes on from there.

use super::member_set::MemberSet;
use super::state::{At, Member};
use super::work::Work;
use super::{Asked, Leases, Lost, Output, Owner, Reply, Token};
use base::request::StatusRun;
use base::units::EXTENT_SIZE;
use smallvec::SmallVec;
use wire::limits::ALLOCATION_PARTS_MAX;
use wire::{Answer, Refusal, Request};

impl Owner {
    pub(crate) fn status(&mut self, token: Token, place: u16, parts: (u32, u16), leases: &Leases) {
        let (part, count) = parts;
        assert!((1..=ALLOCATION_PARTS_MAX).contains(&usize::from(count)), "some parts, and not too many");
        let key = self.works.insert(Work::Status { token, place, part, count, waits: 0 }) as u32;
        let waiting = self.places[usize::from(place)].lanes.lock_parts(part..part + u32::from(count), key);
        if let Work::Status { waits, .. } = &mut self.works[key as usize] {
            *waits = waiting;
        }
        if waiting == 0 && !self.try_status(key, leases) {
            self.reads_waiting.push_back(key);
        }
    }

    /// Whether what these places hold may be told now from what is known: under the rules of a read, though nothing is asked.
    pub fn may_tell(&self, places: impl IntoIterator<Item = u16>, leases: &Leases) -> bool {
        places.into_iter().all(|place| self.has_leases(place, leases))
    }

    /// A part that it waited for is locked.
    pub(crate) fn status_locked(&mut self, key: u32) {
        let Work::Status { waits, .. } = &mut self.works[key as usize] else {
            unreachable!("only questions about allocation lock several parts")
        };
        *waits -= 1;
        if *waits == 0 {
            self.reads_waiting.push_back(key);
        }
    }

    /// Asks a component, if that may be done now: the one on this node if it can answer, for that is quickest.
    pub(crate) fn try_status(&mut self, key: u32, leases: &Leases) -> bool {
        let Work::Status { place, part, count, .. } = self.works[key as usize] else {
            unreachable!("only questions about allocation ask for it")
        };
        if !self.has_leases(place, leases) {
            return false;
        }
        let is_near = |one: &Member| one.is_open() && one.late == 0 && one.node == self.me.node;
        let near = self.places[usize::from(place)].active().find(|(_, one)| is_near(one));
        let near = near.map(|(member, _)| member);
        let Some(member) = near.or_else(|| self.choose(place, part, MemberSet::EMPTY)) else { return false };
        let at = At { place, member };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let request = Request::Allocation { component, epoch: self.epoch, part, count };
        self.send(node, Asked::Status { work: key, at }, request);
        true
    }

    pub(crate) fn status_answered(&mut self, key: u32, at: At, answer: Result<Answer, Lost>) {
        let Work::Status { count, .. } = self.works[key as usize] else {
            unreachable!("only questions about allocation are answered so")
        };
        let len = u64::from(count) * EXTENT_SIZE;
        match answer {
            Ok(Answer::Allocation(runs)) if is_beginning(&runs, len) => self.end_status(key, runs),
            Ok(Answer::Refused(Refusal::NotOpen)) => {
                self.lost_session(at);
                self.reads_waiting.push_back(key);
            }
            Ok(Answer::Refused(refusal @ (Refusal::NoComponent | Refusal::DeviceLost))) => {
                self.unreadable(at, refusal);
                self.reads_waiting.push_back(key);
            }
            Err(Lost) => self.reads_waiting.push_back(key),
            Ok(_) => self.end_status(key, vec![StatusRun { len, allocated: true }]),
        }
    }

    fn end_status(&mut self, key: u32, runs: Vec<StatusRun>) {
        let Work::Status { token, place, .. } = self.works.remove(key as usize) else {
            unreachable!("only questions about allocation end so")
        };
        self.out.push(Output::Done { token, result: Ok(Reply::Allocation(runs)) });
        let mut begin = SmallVec::new();
        self.places[usize::from(place)].lanes.unlock_parts(key, &mut begin);
        begin.into_iter().for_each(|key| self.begin_work(key));
    }
}

/// Whether the runs cover whole parts from the first on: all of them, or as many as the component looked at.
fn is_beginning(runs: &[StatusRun], len: u64) -> bool {
    let covered: u64 = runs.iter().map(|run| run.len).sum();
    covered > 0 && covered <= len && covered.is_multiple_of(EXTENT_SIZE)
}
