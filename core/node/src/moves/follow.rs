//! What guests change in a granule that is copied happens on the other side, too, once it has happened on the truth.

use crate::changes::ChangedRange;
use crate::interface::{Output, Trouble};
use crate::mover::Follower;
use crate::node::Node;
use crate::range::{Aim, Stretch, checksums, part_and_block, stretches};
use crate::request::Requester;
use base::request::{Buffers, cut};
use base::units::BLOCK_SIZE;
use layout::Side;
use replication::Rule;
use replication::owner::Payload;
use std::ops::Range;

impl Node {
    /// Whether a change has blocks of a granule that is copied: then it has them for itself.
    pub(crate) fn keep_apart_in_granule(&self, disk: u32, change: ChangedRange) -> ChangedRange {
        let granule = self.disks[disk].mover.as_deref().and_then(|mover| mover.granule());
        let is_in = granule.is_some_and(|one| one.range.start < change.end && change.start < one.range.end);
        ChangedRange { is_apart: change.is_apart || is_in, ..change }
    }

    /// A change of a request that is kept apart is handed to the owner: what of it is in a granule, and has not happened, follows.
    pub(crate) fn note_followers(
        &mut self,
        key: u32,
        of: Range<u64>,
        happened: &[Range<u64>],
        data: Option<&Buffers>,
    ) {
        let state = &self.requests[key as usize];
        if !state.is_apart || !self.fabric.settings.rules.hold(Rule::FollowInGranule) {
            return;
        }
        let Some(mover) = self.disks[state.disk()].mover.as_deref() else { return };
        let Some(granule) = mover.granule() else { return };
        let end = granule.range.end.min(of.end);
        let mut at = granule.range.start.max(of.start);
        let mut followers = Vec::new();
        let behind = end..end;
        for gap in happened.iter().chain([&behind]) {
            let range = at..gap.start.min(end);
            at = at.max(gap.end);
            if range.is_empty() {
                continue;
            }
            let place = (range.start - of.start) as usize;
            let data = data.map(|data| cut(data, place, (range.end - range.start) as usize));
            followers.push(Follower { number: mover.number, range, data });
        }
        self.requests[key as usize].followers.extend(followers);
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
        let mut changes: Vec<(Stretch, Payload)> = Vec::new();
        for Follower { range, data, .. } in followers.into_iter().filter(|one| one.number == number) {
            stretches(&granule.other, range.start, range.end - range.start, Aim::Change, &mut |span| {
                let payload = match &data {
                    Some(data) => {
                        let data = cut(data, (span.disk_offset - range.start) as usize, span.len as usize);
                        Payload::Write { checksums: checksums(&data), data }
                    }
                    None => Payload::Trim { count: (span.len / BLOCK_SIZE) as u16 },
                };
                changes.push((span, payload));
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

    /// What of a range of a forwarded request has happened on either side of a disk that moves: a request that is submitted again may have
    /// been done while the other side was the truth, and what was done was copied since.
    pub(crate) fn happened_on_a_side(&self, key: u32, range: Range<u64>) -> Vec<Range<u64>> {
        let state = &self.requests[key as usize];
        let (disk, tag) = (state.disk(), state.tag);
        let layout = &self.disks[disk].spec.layout;
        let is_forwarded = matches!(state.requester, Requester::Peer { .. });
        let Some(owner) = self.owner(disk).filter(|_| is_forwarded && layout.boundary().is_some()) else {
            return Vec::new();
        };
        let mut found: Vec<Range<u64>> = Vec::new();
        for side in [Side::Old, Side::New] {
            stretches(&layout.only(side), range.start, range.end - range.start, Aim::Change, &mut |one| {
                let (part, block) = part_and_block(one.offset);
                if owner.knows(tag, (one.place, part, block)) {
                    found.push(one.disk_offset..one.disk_offset + one.len);
                }
            });
        }
        found.sort_by_key(|one| one.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for one in found {
            match joined.last_mut().filter(|last| last.end >= one.start) {
                Some(last) => last.end = last.end.max(one.end),
                None => joined.push(one),
            }
        }
        joined
    }

    /// A change did not get onto the other side: the granule starts over.
    pub(crate) fn follower_failed(&mut self, key: u32, trouble: Trouble) {
        let (now, disk) = (self.now, self.requests[key as usize].disk());
        if let Some(mover) = self.disks[disk].mover.as_deref_mut() {
            mover.drop_granule(now, Some(trouble));
        }
    }
}
