//! Mapped parts that become plain again: a part that no snapshot sees and that is written as a whole gets an extent of its own (docs/design/0044).
//!
//! The record of the write makes the part's map page void. Its frames are free once the page is in memory, and no checkpoint begins before that: after
//! any crash there is either the page and the record, or neither page nor frames.

use super::Group;
use crate::component::Component;
use crate::format::map::Entry;
use crate::io::Output;
use crate::table::{Content, PageWaiter};
use base::ComponentId;

impl Group {
    /// Whether a write of a whole mapped part may go to an extent of its own, so that the part is plain from then on.
    pub(super) fn may_become_plain(&self, key: u32, part: u32) -> bool {
        let lineage = &self.components[key].lineage;
        // What is compressed goes through the log, where it waits for that.
        let is_compressed = self.is_to_be_compressed(key, part);
        !is_compressed
            && self.index.page_of(key, part).is_some()
            && lineage.snapshots().is_empty()
            && lineage.deltas_of(part).is_empty()
            && !self.held.touches(key, part)
            && !self.unmapped.contains((key, part))
    }

    /// The record of such a write is put into force: the part has no map page any more, and what the log had of it is void.
    pub(super) fn leave_map(&mut self, key: u32, part: u32) {
        let Some(page) = self.index.page_of(key, part) else { return };
        let index = self.components[key].member;
        self.index.leave_page(key, part);
        self.with_reservation(key, Component::give_extent_back);
        self.void_maps.insert((index, page));
    }

    /// Gives void map pages and their frames back, as soon as they are in memory.
    pub(super) fn advance_void_maps(&mut self, out: &mut Vec<Output>) {
        for (index, page) in self.void_maps.clone() {
            if !self.members[index].is_in_service() {
                self.void_maps.remove(&(index, page));
                continue;
            }
            let (id, entries): (ComponentId, Vec<Entry>) = match self.members[index].table.content(page) {
                Some(Content::Map(map)) => (map.component, map.entries.to_vec()),
                Some(
                    Content::Delta(_) | Content::Snapshots(_) | Content::Descriptors(_) | Content::Empty,
                ) => {
                    unreachable!("a void map page stays what it is")
                }
                None => {
                    self.need_page(index, page, PageWaiter::Nobody, out);
                    continue;
                }
            };
            self.void_maps.remove(&(index, page));
            self.members[index].table.give_page_back(page);
            for entry in entries {
                match self.components.key_of(id) {
                    Some(key) => self.free_entry(key, entry),
                    None => self.free_slot(index, entry),
                }
            }
        }
    }
}
