//! What guests change in a granule that is copied happens on the other side, too, once it has happened on the truth.

use crate::changes::ChangedRange;
use crate::interface::{Output, Trouble};
use crate::mover::Follower;
use crate::node::Node;
use crate::range::{Aim, part_and_block, stretches};
use crate::zeroes::{Change, changes_of_write};
use base::request::{Buffers, cut};
use base::units::BLOCK_SIZE;
use layout::Side;
use replication::Rule;
use replication::owner::Payload;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

impl Node {
    /// Whether a change has blocks of a granule that is copied: then it has them for itself.
    pub(crate) fn keep_apart_in_granule(&self, disk: u32, change: ChangedRange) -> ChangedRange {
        let granule = self.disks[disk].mover.as_deref().and_then(|mover| mover.granule());
        let is_in = granule.is_some_and(|one| one.range.start < change.end && change.start < one.range.end);
        ChangedRange { is_apart: change.is_apart || is_in, ..change }
    }

    /// A change of a request that is kept apart is handed to the owner: what of it is in a granule follows.
    pub(crate) fn note_followers(&mut self, key: u32, of: Range<u64>, data: Option<&Buffers>) {
        let state = &self.requests[key as usize];
        if !state.is_apart || !self.fabric.settings.rules.hold(Rule::FollowInGranule) {
            return;
        }
        let Some(mover) = self.disks[state.disk()].mover.as_deref() else { return };
        let Some(granule) = mover.granule() else { return };
        let range = granule.range.start.max(of.start)..granule.range.end.min(of.end);
        if range.is_empty() {
            return;
        }
        let place = (range.start - of.start) as usize;
        let data = data.map(|data| cut(data, place, (range.end - range.start) as usize));
        let follower = Follower { number: mover.number, range, data };
        self.requests[key as usize].followers.push(follower);
    }

    /// What follows of a request happens on the other side, if that may yet count. Whether anything was begun.
    pub(crate) fn follow(&mut self, key: u32, out: &mut Vec<Output>) -> bool {
        let state = &mut self.requests[key as usize];
        let disk = state.disk();
        let followers = std::mem::take(&mut state.followers);
        if state.has_failed() {
            // It may have happened on the truth in part.
            self.follower_failed(key, Trouble::NoSpace);
            return false;
        }
        let mover = self.disks[disk].mover.as_deref();
        let Some((number, granule)) = mover.and_then(|mover| Some((mover.number, mover.granule()?))) else {
            return false;
        };
        let zeroes = self.zeroes_of(key);
        let mut changes: Vec<Change> = Vec::new();
        for Follower { range, data, .. } in followers.into_iter().filter(|one| one.number == number) {
            stretches(&granule.other, range.start, range.end - range.start, Aim::Change, &mut |span| {
                match &data {
                    Some(data) => {
                        let data = cut(data, (span.disk_offset - range.start) as usize, span.len as usize);
                        changes.extend(changes_of_write(&granule.other, span, data, zeroes));
                    }
                    None => {
                        changes.push((span, Payload::Trim { count: (span.len / BLOCK_SIZE) as u16 }));
                    }
                }
            });
        }
        if changes.is_empty() {
            return false;
        }
        // What happens here is not what a request that is submitted again asks for: only what happened on the truth is.
        let tag = self.next_tag();
        self.requests[key as usize].outstanding = 1; // Until all are handed in.
        for (span, payload) in changes {
            self.follow_by_owner(key, tag, span, payload);
        }
        self.all_handed_in(key, out);
        true
    }

    /// What of a range of a request is still to be done. One that is submitted again may have been done in part, and on either side of a disk
    /// that moves: what was done was copied since.
    pub(crate) fn still_to_do(&self, key: u32, range: Range<u64>) -> SmallVec<[Range<u64>; 1]> {
        let state = &self.requests[key as usize];
        let tag = state.tag;
        let Some(owner) = self.owner(state.disk()).filter(|owner| owner.knows(tag)) else {
            return smallvec![range];
        };
        let layout = &self.disks[state.disk()].spec.layout;
        let mut found: Vec<Range<u64>> = Vec::new();
        let sides = match layout.boundary() {
            Some(_) => &[Side::Old, Side::New][..],
            None => &[Side::New][..],
        };
        for side in sides {
            stretches(&layout.only(*side), range.start, range.end - range.start, Aim::Change, &mut |one| {
                let (part, block) = part_and_block(one.offset);
                let wide = one.bytes_of_column(layout);
                let blocks = block..block + (one.len / wide) as u16;
                let happened = owner.happened(tag, (one.place, one.target), (part, blocks));
                found.extend(happened.map(|done| {
                    let at = |end: u16| one.disk_offset + u64::from(end - block) * wide;
                    at(done.start)..at(done.end)
                }));
            });
        }
        gaps(range, found)
    }

    /// A change did not get onto the other side: the granule starts over.
    pub(crate) fn follower_failed(&mut self, key: u32, trouble: Trouble) {
        let (now, disk) = (self.now, self.requests[key as usize].disk());
        if let Some(mover) = self.disks[disk].mover.as_deref_mut() {
            mover.drop_granule(now, Some(trouble));
        }
    }
}

/// What of a range is in none of some ranges within it.
fn gaps(range: Range<u64>, mut found: Vec<Range<u64>>) -> SmallVec<[Range<u64>; 1]> {
    found.sort_by_key(|one| one.start);
    let mut at = range.start;
    let mut gaps = SmallVec::new();
    for one in found {
        if at < one.start {
            gaps.push(at..one.start);
        }
        at = at.max(one.end);
    }
    if at < range.end {
        gaps.push(at..range.end);
    }
    gaps
}
