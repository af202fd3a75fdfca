//! Copies of a resync: what they take the place of, and with which version.
//!
//! A copy may bring a lesser write id than what it replaces, and contains all of that. What tells a region's version must never
//! become less by it (docs/design/0002, and `versions`).

use super::Group;
use crate::format::batch::{ExtentLocation, Origin};
use crate::format::page::Descriptor;
use crate::index::Dirty;
use crate::io::Output;
use crate::part_map::Placement;
use crate::rules::Rule;
use crate::table::PageWaiter;
use crate::work::{Change, Work};
use base::WriteId;
use base::units::BLOCKS_PER_REGION;
use std::ops::Range;

/// Whether a write of a whole extent may go to a fresh one, whose versions are then those of that write alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// It may, with this id.
    At(WriteId),
    /// A page of that device tells.
    Needs { member: u8, page: u32 },
    /// Nobody knows now: through the log it changes no version but its own.
    Unknown,
}

impl Group {
    /// Whether, and with what id, a write of a whole extent may go past the log. A guest's is later than all that it replaces. A copy
    /// takes the greatest version that stands there: through the log, each part that guests have written meanwhile would be
    /// written twice and read once, and a MiB of it would stand before what guests write next.
    pub(super) fn whole(&mut self, change: Change) -> Whole {
        let Change { component: key, part, id, origin, .. } = change;
        let has_place = self.index.placement(key, part).is_some();
        if !has_place || origin != Origin::Copy || !self.rules.hold(Rule::KeepReplacedId) {
            return Whole::At(id);
        }
        if self.index.of(key, part).is_some_and(Dirty::is_pending) {
            return Whole::Unknown; // What is not stable yet is in no version.
        }
        match self.versions_of(key, part) {
            Ok(versions) if versions.greatest() == Descriptor::LOST.write_id() => Whole::Unknown,
            Ok(versions) => Whole::At(id.max(versions.greatest())),
            Err(Some((member, page))) => Whole::Needs { member, page },
            Err(None) => Whole::Unknown,
        }
    }

    /// Keeps a copy until a page is read. What comes to its part meanwhile stays behind it.
    pub(super) fn hold_copy(&mut self, (member, page): (u8, u32), work: Work, out: &mut Vec<Output>) {
        let Work::Write { change, .. } = &work else { unreachable!("only writes replace extents") };
        self.exclusive.hold((change.component, change.part));
        let key = self.copies_held.insert(work) as u32;
        self.need_page(member, page, PageWaiter::Copy(key), out);
    }

    /// The page is there, or its device is lost.
    pub(super) fn go_on_with_copy(&mut self, key: u32, out: &mut Vec<Output>) {
        let Some(work) = self.copies_held.try_remove(key as usize) else { return };
        let Work::Write { change, .. } = &work else { unreachable!("only writes replace extents") };
        let part = (change.component, change.part);
        self.exclusive.let_pass(part);
        let work = self.accept(work, out);
        if !self.exclusive.is_held(part) {
            self.end_exclusive(part);
        }
        if let Some(work) = work {
            self.buffer.wait_first(work);
        }
    }

    /// A copy with an id that is no less than that of anything in the log that it takes the place of: the record of that may
    /// leave the log before the copy's own.
    pub(super) fn not_lessened(&self, change: Change, count: u16) -> Change {
        let Change { component, part, block, id, origin, .. } = change;
        if origin != Origin::Copy || !self.rules.hold(Rule::KeepReplacedId) {
            return change;
        }
        let member = self.components[component].member;
        let dirty = self.index.of(component, part);
        let blocks = block..block + count;
        let in_log = dirty.map_or(WriteId::default(), |dirty| greatest_in_log(dirty, &blocks));
        let in_memory = match self.index.placement(component, part) {
            Some(Placement::Extent(extent)) if !dirty.is_some_and(Dirty::is_reset) => {
                self.greatest_in_memory(ExtentLocation { member, extent }, &blocks)
            }
            Some(Placement::Page(page)) => self.greatest_in_map(member, page, &blocks),
            Some(Placement::Extent(_)) | None => WriteId::default(),
        };
        // A row write that this copy shows to be decided, or a promotion on its way, becomes content just before it.
        let held = self.held.of(component, part).map_or(&[][..], |held| held.entries());
        let held = held.iter().filter(|entry| blocks.contains(&u16::from(entry.block)));
        let held = held.map(|entry| entry.id).max().unwrap_or_default();
        Change { id: id.max(in_log).max(in_memory).max(held), ..change }
    }

    /// The greatest version of the regions of these blocks, where the page that tells is in memory: as long as it is not written, a
    /// crash takes it back to what the log says.
    fn greatest_in_memory(&self, location: ExtentLocation, blocks: &Range<u16>) -> WriteId {
        let member = &self.members[location.member];
        match member.table.cached_descriptor(location.extent) {
            // Word of a freeing changes no block.
            Some(_) if blocks.is_empty() => WriteId::default(),
            Some(descriptor) if self.rules.hold(Rule::KeepDescribedId) => {
                let of = |block: u16| usize::from(block) / BLOCKS_PER_REGION;
                let regions = &descriptor.regions[of(blocks.start)..=of(blocks.end - 1)];
                let known = regions.iter().filter(|id| **id != Descriptor::LOST.write_id());
                known.copied().max().unwrap_or_default()
            }
            Some(_) | None => WriteId::default(),
        }
    }
}

/// The greatest id of the changes in the log that a change of these blocks takes the place of.
fn greatest_in_log(dirty: &Dirty, blocks: &Range<u16>) -> WriteId {
    let replaced = dirty.all_entries().filter(|entry| blocks.contains(&u16::from(entry.block)));
    let direct = dirty.direct().map(|direct| direct.id);
    replaced.map(|entry| entry.id).chain(direct).max().unwrap_or_default()
}
