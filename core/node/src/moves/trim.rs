//! Freeing what does not count any more behind the boundary, once nobody reads it.

use crate::interface::Trouble;
use crate::limits;
use crate::mover::{Stage, TRIM_KEY, Trimming};
use crate::node::Node;
use crate::range::{Aim, Stretch, part_and_block, stretches};
use crate::request::Piece;
use base::RequestTag;
use base::units::BLOCK_SIZE;
use layout::Side;
use replication::owner::{Asker, Failure, Input, Payload, Reply};
use std::ops::Range;

impl Node {
    /// Begins to trim a range on the side that does not count there.
    pub(super) fn begin_trim(&mut self, disk: u32, range: Range<u64>) -> bool {
        let begun = self.requests.iter().filter(|(_, one)| one.disk() == disk && one.has_begun_in(&range));
        let awaited = begun.map(|(key, one)| (key as u32, one.tag)).collect();
        let state = &mut self.disks[disk];
        let side = if state.spec.course.is_back { Side::New } else { Side::Old };
        let side = state.spec.layout.only(side);
        let mover = state.mover.as_deref_mut().expect("it is there");
        mover.stage =
            Stage::Trimming(Trimming { side, left: range, outstanding: 0, awaited, has_failed: false });
        true
    }

    /// Hands in the next trims. Whether all is done.
    pub(super) fn trim_on(&mut self, disk: u32) -> bool {
        let now = self.now;
        let state = &mut self.disks[disk];
        let mover = state.mover.as_deref_mut().expect("it trims");
        let Stage::Trimming(trimming) = &mut mover.stage else { unreachable!("it trims") };
        let requests = &self.requests;
        let lasts = |(key, tag): &(u32, RequestTag)| {
            requests.get(*key as usize).is_some_and(|one| one.tag == *tag && one.has_begun())
        };
        trimming.awaited.retain(lasts);
        if !trimming.awaited.is_empty() || trimming.outstanding > 0 {
            return false;
        }
        if trimming.has_failed {
            mover.stage = Stage::Idle;
            mover.retry_at = Some(now + limits::MOVE_RETRY);
            return false;
        }
        if trimming.left.is_empty() {
            mover.trouble = None;
            mover.moved.trimmed = mover.moved.boundary;
            mover.stage = Stage::Idle;
            return true;
        }
        let start = trimming.left.start;
        let end = trimming.left.end.min(start + limits::MOVE_TRIM_BYTES);
        trimming.left.start = end;
        let mut found: Vec<Stretch> = Vec::new();
        stretches(&trimming.side, start, end - start, Aim::Change, &mut |one| found.push(one));
        trimming.outstanding = found.len() as u32;
        let tag = self.next_tag();
        for of in found {
            let token = Piece { request: TRIM_KEY, piece: 0 }.into();
            let (part, block) = part_and_block(of.offset);
            let payload = Payload::Trim { count: (of.len / BLOCK_SIZE) as u16 };
            let Stretch { place, target, .. } = of;
            let asker = Asker::Move;
            self.step_owner(disk, Input::Change { token, place, part, block, target, tag, asker, payload });
        }
        false
    }

    /// A trim ended.
    pub(super) fn trimmed(&mut self, disk: u32, result: &Result<Reply, Failure>) {
        let mover = self.disks[disk].mover.as_deref_mut().expect("it trims");
        if let Stage::Trimming(trimming) = &mut mover.stage {
            trimming.outstanding -= 1;
            trimming.has_failed |= result.is_err();
            mover.trouble = match result {
                Err(Failure::NoSpace) => Some(Trouble::NoSpace),
                Err(Failure::Damaged) => Some(Trouble::Damaged),
                Err(Failure::Unowned | Failure::Abandoned | Failure::NoSnapshot) | Ok(_) => mover.trouble,
            };
        }
    }
}
