//! Chunks: extents that hold more pages of the table (docs/design/0044).
//!
//! A chunk is made in four steps: an extent is taken, its descriptor's page is brought into memory, the extent is filled with zeroes so that nothing in it
//! looks like a page, and a record in the log keeps its place among those of the extent's former use. The descriptor tells of the chunk with the next
//! checkpoint, which is also the first to write pages into it. After a crash before that there is no chunk, and the extent is free.

use super::{Group, Phase};
use crate::format::FORMAT_PLAIN;
use crate::format::batch::{ExtentLocation, Record};
use crate::format::page::{CHUNK, Descriptor};
use crate::io::Output;
use crate::member::{ChunkMaking, Owner};
use crate::recovery::Recovery;
use crate::requests::Purpose;
use crate::table::PageWaiter;
use base::units::EXTENT_SIZE;

/// Pages that a device with mapped parts keeps free, so that destaging need not wait for a chunk.
const PAGES_SPARE: u32 = 32;

impl Group {
    /// Makes chunks where pages are wanted and few are free.
    pub(super) fn advance_chunks(&mut self, out: &mut Vec<Output>) {
        if self.log.format() == FORMAT_PLAIN {
            return;
        }
        // A page may have come free since a list lacked one, or recovery may have found it later than the list.
        self.update_due_lists();
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if !member.is_in_service() || !member.is_capacity() {
                continue;
            }
            self.dissolve_pools(index);
            let member = &self.members[index];
            let (_, promised) = self.promised(index);
            let free = member.table.free_page_count();
            let lists = self.lists_due_on(index);
            // Whoever waits for a page was promised it, so an extent is spoken for as long as the free pages are fewer than the promised ones.
            // A visit that waited may have its page by now: another chunk would take an extent that frames were promised.
            let is_needed =
                (self.pages_short.contains(&index) || lists > 0) && promised + lists > u64::from(free);
            let is_in_use = promised > 0 || member.table.chunk_count() > 0;
            // What is kept in reserve takes no space that others may need: more is promised than is ever needed, so that promises alone make
            // no chunk.
            self.refresh_space(index);
            let is_low = is_in_use && promised.max(u64::from(PAGES_SPARE)) > u64::from(free);
            let is_spare = is_low || self.page_seekers.contains(&index);
            let is_wanted = is_needed || (is_spare && self.members[index].space.unreserved() > 0);
            let member = &self.members[index];
            match member.chunk {
                Some(ChunkMaking::OnItsWay { .. }) => {}
                Some(ChunkMaking::Begun { extent }) => self.zero_chunk(index, extent, out),
                None if !member.chunks_made.is_empty() => {
                    let extent = member.chunks_made[0];
                    self.members[index].chunk = Some(ChunkMaking::Begun { extent });
                    self.zero_chunk(index, extent, out);
                }
                None if is_wanted => {
                    let Some(extent) = self.members[index].space.take() else { continue };
                    self.members[index].chunk = Some(ChunkMaking::Begun { extent });
                    self.zero_chunk(index, extent, out);
                }
                None => {}
            }
        }
    }

    fn zero_chunk(&mut self, index: u8, extent: u32, out: &mut Vec<Output>) {
        let member = &mut self.members[index];
        if member.table.descriptor(extent).is_none() {
            let (page, _) = member.table.page_of(extent);
            return self.need_page(index, page, PageWaiter::Nobody, out);
        }
        let Some(mut buffer) = self.own_pool.take(EXTENT_SIZE as usize) else { return };
        buffer.bytes_mut().fill(0);
        let (page, _) = member.table.page_of(extent);
        member.table.pin(page);
        member.chunk = Some(ChunkMaking::OnItsWay { extent });
        let offset = member.geometry.block_offset(extent, 0);
        let io = self.issue(index, Purpose::Chunk { member: index, extent });
        let buffers = smallvec::smallvec![buffer];
        out.push(Output::Write { io, member: index, offset, buffers, stable: false, gentle: false });
    }

    pub(super) fn chunk_zeroed(&mut self, index: u8, extent: u32, result: Result<(), ()>) {
        let member = &mut self.members[index];
        if result.is_err() || !member.is_in_service() {
            return; // Its device is lost.
        }
        member.is_unsynced = true;
        let number = member.table.chunk_count();
        let location = ExtentLocation { member: index, extent };
        match member.chunks_made.front() == Some(&extent) {
            true => {
                member.chunks_made.pop_front();
                self.chunk_is_stable(location, number);
            }
            false => self.submit_record(None, Record::Chunk { location, number }),
        }
    }

    /// The record of a chunk is put into force. In recovery it only says again whose the extent is: what it says counts once a
    /// descriptor does.
    pub(super) fn install_chunk(&mut self, location: ExtentLocation, number: u32, position: u64) {
        if let Phase::Opening(recovery) = &mut self.phase {
            recovery.note_chunk(location.member, number, location.extent);
            // A start may have found it to be free (`left_at`), which no record tells.
            if self.index.at(location).is_some() {
                self.index.reset(location, None, position);
            }
        }
        let member = &mut self.members[location.member];
        if member.table.extent_of_chunk(number) == Some(location.extent) {
            member.owners[location.extent as usize] = Owner { component: CHUNK, part: number };
        }
    }

    /// At the end of recovery: chunks that were made, and that no descriptor tells of yet, are made again in their extents. Their records are in the log.
    pub(super) fn take_chunks_made(&mut self, index: u8, recovery: &Recovery) {
        let member = &mut self.members[index];
        let mut number = member.table.chunk_count();
        while let Some(extent) = recovery.chunk_made(index, number)
            && member.owners[extent as usize].is_free()
            && !member.pools.contains(extent)
            && member.space.take_this(extent)
        {
            member.chunks_made.push_back(extent);
            number += 1;
        }
    }

    /// In operation: the chunk's pages can be used.
    pub(super) fn chunk_is_stable(&mut self, location: ExtentLocation, number: u32) {
        let member = &mut self.members[location.member];
        member.chunk = None;
        if !member.is_in_service() {
            return;
        }
        member.owners[location.extent as usize] = Owner { component: CHUNK, part: number };
        let (page, _) = member.table.page_of(location.extent);
        member.table.mark_dirty(page);
        let descriptor = member.table.descriptor(location.extent).expect("its page is pinned");
        *descriptor = Descriptor { component: CHUNK, part: number, ..Descriptor::FREE };
        member.table.unpin(page);
        member.table.add_chunk(number, location.extent);
        member.table.free_chunk(number);
        self.update_due_lists();
    }
}
