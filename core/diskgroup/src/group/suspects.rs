//! Pages of chunks whose newer copy does not verify (docs/design/0044).
//!
//! Such a page is torn, and its older copy counts, or it is damaged, and what it told is lost. The log tells which, but only once it is read. Until then
//! the older copy is taken to count. If it contradicts what other pages say, or the log has no intent, it is undone, and the page is kept as lost: a start
//! after this one must know, too, that it may have told of any part.

use super::Group;
use crate::format::batch::ExtentLocation;
use crate::format::map::{DeltaPage, Entry, MapPage};
use crate::format::page::{Descriptor, PageContent};
use crate::pools::Slot;
use crate::recovery::Recovery;
use crate::rules::Rule;
use crate::table::Content;
use base::ComponentId;

impl Group {
    /// All pages are read: the older copies of suspects count for now, but where they contradict other pages.
    pub(super) fn take_suspects(&mut self) -> Result<(), &'static str> {
        for (index, page, content) in self.recovery().take_chunk_suspects() {
            if !self.members[index].is_in_service() {
                continue;
            }
            match content {
                None => self.members[index].table.keep(page, Content::Empty),
                Some(content) if self.contradicts(index, &content) => {
                    self.members[index].table.keep(page, Content::Empty);
                    self.recovery().note_contradicting(index, page);
                    continue;
                }
                Some(content) => self.recover_content(index, page, content)?,
            }
            self.recovery().suspect(index, page);
            // A torn copy must be written over before its intent is forgotten.
            self.members[index].table.mark_dirty(page);
        }
        Ok(())
    }

    /// In recovery: the log makes a component whose slot's page is damaged. Its other pages, which counted as lost, are its own again: they contain what the log says
    /// of it, and a later start would find them beside others.
    pub(super) fn adopt_orphans(&mut self, component: ComponentId) {
        for (index, page) in self.recovery().take_orphans(component) {
            let content = match self.members[index].table.content(page).map(|content| content.clone()) {
                Some(Content::Map(map)) => PageContent::Map(map),
                Some(Content::Delta(delta)) => PageContent::Delta(delta),
                Some(Content::Snapshots(list)) => PageContent::Snapshots(list),
                Some(Content::Empty | Content::Descriptors(_)) | None => continue,
            };
            if !self.contradicts(index, &content) {
                let member = &mut self.members[index];
                member.lost_extents -= 1;
                member.table.forget(page);
                let taken = self.recover_map_page(index, page, content);
                debug_assert!(taken.is_ok(), "what contradicts nothing is taken over");
            }
        }
    }

    /// Whether a page of a chunk says what cannot be true beside the pages that were taken over.
    fn contradicts(&self, index: u8, content: &PageContent) -> bool {
        let (component, part) = match content {
            PageContent::Map(map) => (map.component, map.part),
            PageContent::Delta(delta) => (delta.component, delta.part),
            PageContent::Snapshots(list) => (list.component, 0),
            PageContent::Component(None) => return false,
            PageContent::Descriptors(_) | PageContent::Component(Some(_)) => return true,
        };
        let Some(key) = self.components.key_of(component) else {
            return component != Descriptor::LOST.component;
        };
        let found = &self.components[key];
        if found.member != index || part >= found.part_count() {
            return true;
        }
        let is_mapped = matches!(content, PageContent::Map(_)) && self.index.page_of(key, part).is_some();
        let pools = &self.members[index].pools;
        let mut slots = self.slots_of(index, &entries_of(content)).into_iter();
        is_mapped || slots.any(|slot| pools.is_used(slot))
    }

    fn slots_of(&self, index: u8, entries: &[Entry]) -> Vec<Slot> {
        let member = &self.members[index];
        entries.iter().filter_map(|entry| member.slot_of(*entry)).collect()
    }

    /// The log gives an extent to a part, and the extent's descriptor says that it is free. Usually the part is new. But a page that is lost may have told that
    /// the part is mapped since, and that its blocks stand in this extent or elsewhere: so what the log does not have of it is not known.
    pub(super) fn doubt_claims(&mut self, index: u8, recovery: &Recovery) {
        if self.members[index].lost_extents == 0 || !self.rules.hold(Rule::DoubtClaims) {
            return;
        }
        for extent in recovery.claims(index) {
            let dirty = self.index.at(ExtentLocation { member: index, extent });
            // All that came behind a record that freed it, or wrote it as a whole, stands in the log.
            let is_told = dirty.is_some_and(|dirty| dirty.is_reset() || dirty.direct().is_some());
            let owner = self.members[index].owners[extent as usize];
            let is_part = self.components.key_of(owner.component).is_some();
            if is_part && !is_told {
                self.members[index].doubt(extent);
            }
        }
    }

    /// What a page of a chunk told is not known, nor of which part: what its older copy says, if that was taken to count, does not.
    pub(super) fn lose_chunk_page(&mut self, index: u8, page: u32) {
        self.undo_chunk_page(index, page);
        let member = &mut self.members[index];
        member.lost_extents += 1;
        member.lost_pages += 1;
        let content = match self.rules.hold(Rule::KeepLostPages) {
            true => Content::Map(Box::new(MapPage::lost(Descriptor::LOST.component, 0))),
            false => Content::Empty,
        };
        member.table.keep_damaged(page, content);
    }

    fn undo_chunk_page(&mut self, index: u8, page: u32) {
        let name = self.members[index].table.take_name(page);
        let key = name.and_then(|(id, _)| self.components.key_of(id));
        let Some(content) = self.members[index].table.content(page).map(|content| content.clone()) else {
            return;
        };
        let mut entries: Vec<Entry> = Vec::new();
        match (content, key) {
            (Content::Map(map), Some(key)) if self.index.page_of(key, map.part) == Some(page) => {
                self.index.drop_page(key, map.part);
                self.with_reservation(key, crate::component::Component::give_extent_back);
                entries.extend(map.entries.iter());
            }
            (Content::Delta(delta), Some(key)) => {
                let lineage = &mut self.components[key].lineage;
                lineage.note_delta(page, &DeltaPage::empty(delta.component, delta.part));
                for group in &delta.groups {
                    lineage.count(group.snapshot, -(group.entries.len() as i64));
                    entries.extend(group.entries.iter().map(|(_, entry)| *entry));
                }
            }
            (Content::Snapshots(list), _) => {
                if let Some(key) = self.components.key_of(list.component) {
                    self.components[key].lineage.forget_listed(page, &list.snapshots);
                }
            }
            (Content::Map(_) | Content::Delta(_) | Content::Empty | Content::Descriptors(_), _) => {}
        }
        if let Some(key) = key {
            entries.iter().for_each(|entry| self.components[key].packed.remove(*entry));
        }
        for slot in self.slots_of(index, &entries) {
            self.members[index].pools.void(slot);
        }
    }
}

/// The entries of a page of a chunk.
fn entries_of(content: &PageContent) -> Vec<Entry> {
    match content {
        PageContent::Map(map) => map.entries.to_vec(),
        PageContent::Delta(delta) => {
            let entries = delta.groups.iter().flat_map(|group| group.entries.iter());
            entries.map(|(_, entry)| *entry).collect()
        }
        PageContent::Snapshots(_) | PageContent::Descriptors(_) | PageContent::Component(_) => Vec::new(),
    }
}
