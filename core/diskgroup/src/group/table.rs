//! Table pages that are not in memory: read for whoever waits for them.

use super::Group;
use crate::format::page::{Copy, Page, PageContent};
use crate::io::{Event, Output};
use crate::requests::Purpose;
use crate::table::{Content, PageWaiter};
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;
use base::units::BLOCK_SIZE;

impl Group {
    /// Reads a table page for `waiter`, unless that is under way already.
    pub(super) fn need_page(&mut self, member: u8, page: u32, waiter: PageWaiter, out: &mut Vec<Output>) {
        if self.members[member].table.wait(page, waiter) {
            self.load_page(member, page, out);
        }
    }

    fn load_page(&mut self, member: u8, page: u32, out: &mut Vec<Output>) {
        let Some(buffer) = self.own_pool.take(BLOCK_SIZE as usize) else {
            self.pages_waiting.push_back((member, page));
            return;
        };
        let state = &self.members[member];
        let copy = state.table.version(page) & 1;
        let offset = state.page_offset(page, copy).expect("what is named stands in a chunk that is known");
        let purpose = Purpose::Page { member, page, buffer: buffer.clone() };
        self.issue_read(member, purpose, ReadRequest { offset, buffer, gentle: false }, out);
    }

    /// Page reads that waited for memory try again.
    pub(super) fn retry_pages(&mut self, out: &mut Vec<Output>) {
        for _ in 0..self.pages_waiting.len() {
            let Some((member, page)) = self.pages_waiting.pop_front() else { return };
            self.load_page(member, page, out);
        }
    }

    pub(super) fn page_loaded(
        &mut self,
        member: u8,
        page: u32,
        buffer: &Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let state = &mut self.members[member];
        let waiters = state.table.take_waiters(page);
        if let Ok(bad) = result
            && !state.table.is_in_memory(page)
        {
            let copy =
                if bad.is_empty() { Page::decode(buffer, state.id, page) } else { Copy::Invalid(None) };
            match copy {
                Copy::Valid(Page { version, content, .. })
                    if version == state.table.version(page)
                        && fits(&content, page < state.table.fixed_count()) =>
                {
                    state.table.keep(page, content_of(content));
                    state.settle_doubts(page);
                }
                Copy::Valid(_) | Copy::Blank | Copy::Invalid(_) => {
                    self.keep_unreadable(member, page);
                    out.push(Output::Event(Event::PageDamaged { member, page }));
                }
            }
        }
        for waiter in waiters {
            self.page_ready(waiter, out);
        }
    }

    /// Goes on with what waited for a page.
    fn page_ready(&mut self, waiter: PageWaiter, out: &mut Vec<Output>) {
        match waiter {
            PageWaiter::Read(key) => self.start_read(key, out),
            PageWaiter::Destage(key) => self.start_destage(key, out),
            PageWaiter::Scrub => self.scrub_page_ready(),
            PageWaiter::Changed(key) => self.look_for_changes(key, out),
            PageWaiter::Copy(key) => self.go_on_with_copy(key, out),
            PageWaiter::Rewrite => self.rewrite_page_ready(),
            PageWaiter::Delete => {}
            PageWaiter::Nobody => {}
        }
    }

    /// Puts a page in memory whose copy does not verify: what it said counts as damaged.
    pub(super) fn keep_unreadable(&mut self, member: u8, page: u32) {
        match self.members[member].table.chunk_of(page) {
            None => self.members[member].keep_unreadable(page),
            Some(_) => self.keep_unreadable_map(member, page),
        }
    }

    /// The device of these pages is lost: whoever waits for one finds that out by starting over.
    pub(super) fn fail_page_waiters(&mut self, member: u8, out: &mut Vec<Output>) {
        self.pages_waiting.retain(|(of, _)| *of != member);
        for waiter in self.members[member].table.take_all_waiters() {
            self.page_ready(waiter, out);
        }
    }
}

/// Whether a page that is read may hold that: descriptors in the fixed table, other things in chunks.
fn fits(content: &PageContent, is_fixed: bool) -> bool {
    match content {
        PageContent::Descriptors(_) => is_fixed,
        PageContent::Map(_) | PageContent::Delta(_) | PageContent::Snapshots(_) => !is_fixed,
        PageContent::Component(_) => false,
    }
}

/// What a page holds that is not one of a component.
pub(super) fn content_of(content: PageContent) -> Content {
    match content {
        PageContent::Descriptors(descriptors) => Content::Descriptors(descriptors),
        PageContent::Map(map) => Content::Map(map),
        PageContent::Delta(delta) => Content::Delta(delta),
        PageContent::Snapshots(list) => Content::Snapshots(list),
        PageContent::Component(_) => Content::Empty,
    }
}
