//! What is allocated: asked of a component under the rules of a read, for "not allocated" promises zeroes.
//!
//! The parts are locked as for a read, so that no hole is told that a change under way may take back, or may not have
//! made. "Allocated" is never wrong: it is the answer wherever a component cannot say.

use super::state::{At, Member};
use super::work::Work;
use super::{Asked, Leases, Lost, Output, Owner, Reply, Token};
use crate::lanes::{Hold, Range};
use base::request::StatusRun;
use base::units::{BLOCKS_PER_EXTENT, EXTENT_SIZE};
use smallvec::SmallVec;
use wire::limits::ALLOCATION_PARTS_MAX;
use wire::{Answer, Refusal, Request};

impl Owner {
    pub(crate) fn status(&mut self, token: Token, place: u16, parts: (u32, u16), leases: &Leases) {
        let (part, count) = parts;
        assert!((1..=ALLOCATION_PARTS_MAX).contains(&usize::from(count)), "some parts, and not too many");
        let key = self.works.insert(Work::Status { token, place, part, count, locked: 0 }) as u32;
        if self.lock_parts(key) && !self.try_status(key, leases) {
            self.reads_waiting.push_back(key);
        }
    }

    /// Locks the parts that are not locked yet, up to one that it has to wait for; says whether all are.
    fn lock_parts(&mut self, key: u32) -> bool {
        loop {
            let Work::Status { place, part, count, locked, .. } = &mut self.works[key as usize] else {
                unreachable!("only questions about allocation lock several parts")
            };
            if locked == count {
                return true;
            }
            let range = whole(*part + u32::from(*locked));
            if !self.places[usize::from(*place)].lanes.lock(range, Hold::Shared, key) {
                return false;
            }
            *locked += 1;
        }
    }

    /// The part that it waited for is locked.
    pub(crate) fn status_locked(&mut self, key: u32) {
        if let Work::Status { locked, .. } = &mut self.works[key as usize] {
            *locked += 1;
        }
        if self.lock_parts(key) {
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
        let Some(member) = near.or_else(|| self.choose(place, part, 0)) else { return false };
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
            Ok(Answer::Allocation(runs)) if runs.iter().map(|run| run.len).sum::<u64>() == len => {
                self.end_status(key, runs);
            }
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
        let Work::Status { token, place, part, count, .. } = self.works.remove(key as usize) else {
            unreachable!("only questions about allocation end so")
        };
        self.out.push(Output::Done { token, result: Ok(Reply::Allocation(runs)) });
        let mut begin = SmallVec::new();
        for part in part..part + u32::from(count) {
            self.places[usize::from(place)].lanes.unlock(part, key, &mut begin);
        }
        begin.into_iter().for_each(|key| self.begin_work(key));
    }
}

/// All blocks of a part.
fn whole(part: u32) -> Range {
    Range { part, block: 0, count: BLOCKS_PER_EXTENT as u16 }
}
