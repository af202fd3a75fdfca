//! The state of a group that is being opened. `group/recovery.rs` and `group/beyond.rs` move it on.

use crate::compute::ComputeId;
use crate::format::batch::{BatchHeader, HEADER_BLOCKS_MAX, Record};
use crate::format::page::PageContent;
use crate::log::BatchStart;
use crate::unreadable::BadBlocks;
use base::ComponentId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A batch whose header verifies.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) start: BatchStart,
    pub(crate) header: BatchHeader,
    pub(crate) records: Vec<Record>,
    /// Which of its header and the copy of that verify.
    pub(crate) told: Told,
}

/// Where what a header says stands whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// In the header and its copy, or there is to be no copy.
    Twice,
    ByHeader,
    ByCopy,
}

/// What is to be written at the end of the log.
#[derive(Debug)]
pub(crate) enum Mend {
    /// One block, so that no header begins there.
    Erase,
    /// The header of the last batch, or its copy.
    Header(Vec<u8>),
}

/// What recovery is doing.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    #[default]
    Anchor,
    /// Reads the tables, member after member; `page` is the next page to read of the member.
    Tables { member: u8, page: u32 },
    /// Looks for the batch that follows the one before, at `position`.
    Log { position: u64 },
    /// Reads the data of the last batch, from its data block `block` on.
    LastBatch { block: u64 },
    /// Waits for the checksums of what was read there.
    Verifying { id: ComputeId, block: u64, unreadable: BadBlocks },
    /// Looks for the copy of a header, and for a later batch, behind the end, from `position` on, up to `end`.
    Beyond { position: u64, end: u64 },
    /// Reads the copy of the header at `position`; looks on up to `end` if it does not verify.
    HeaderCopy { position: u64, end: u64 },
    /// Writes over blocks at the end of the log.
    MendLog,
    /// Writes the anchor over a copy that is older or cannot be read.
    MendAnchor,
}

/// The state of opening.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    stage: Stage,
    /// The copy of the anchor that is older than the other one, or cannot be read.
    stale_anchor: Option<u64>,
    /// The last batch found; not in force yet.
    last: Option<Batch>,
    /// Number of the batch looked for.
    number: u64,
    /// What may stand in the way of finding it.
    doubt: Doubt,
    /// Checksums of the last batch's data.
    checksums: Vec<u32>,
    /// Pages whose newer copy does not verify: torn if the log names the intent, else damaged.
    suspects: Vec<(u8, u32)>,
    /// Pages of chunks among them, with what their older copies say, until all pages are read.
    chunk_suspects: Vec<(u8, u32, Option<PageContent>)>,
    /// Where batches start that are torn.
    torn: Vec<u64>,
    /// What is to be written to the end of the log before the group opens: positions, and what goes there.
    mends: Vec<(u64, Mend)>,
    /// Pages of which a checkpoint that did not end wrote the next version, and whose version that counts does not verify.
    damaged: Vec<(u8, u32)>,
    /// Pages whose newer copy does not verify, and whose older one contradicts other pages: damaged, whatever the log says.
    contradicting: Vec<(u8, u32)>,
    /// Pages of chunks whose component no slot tells of: by device and page, with the component.
    orphans: Vec<(u8, u32, ComponentId)>,
    /// By component and part: up to where in the log its map page contains all of it.
    maps: FxHashMap<(ComponentId, u32), u64>,
    /// Components that pages tell of, and that older records of the log know nothing of.
    aside: Vec<u32>,
    /// Slots (member, slot) for which the log has the record that made a component, and thus everything that changed the component since.
    made: FxHashSet<(u8, u32)>,
    /// Components that the log says to be gone, each with the position of that record.
    gone: FxHashMap<ComponentId, u64>,
    /// Extents (member, extent) that the log gives to parts, and that belonged to nobody before.
    claims: BTreeSet<(u8, u32)>,
    /// Chunks (member, number) that the log says were made, with their extents, as long as no later record gives the extent to anybody.
    chunks: BTreeMap<(u8, u32), u32>,
    /// Versions of pages (member, page, version) that the log says were about to be written.
    intents: FxHashSet<(u8, u32, u64)>,
}

impl Recovery {
    /// A stage begins, with a request that was made for it.
    pub(crate) fn begin(&mut self, stage: Stage) {
        self.stage = stage;
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The request of the stage has ended.
    pub(crate) fn end_stage(&mut self) -> Stage {
        std::mem::take(&mut self.stage)
    }

    /// The anchor is read: the oldest live batch has that number, and one copy may be older or cannot be read.
    pub(crate) fn anchor_found(&mut self, number: u64, stale_copy: Option<u64>) {
        (self.number, self.stale_anchor) = (number, stale_copy);
    }

    /// The copy of the anchor that must be written again; once.
    pub(crate) fn take_stale_anchor(&mut self) -> Option<u64> {
        self.stale_anchor.take()
    }

    /// The newer copy of a page does not verify.
    pub(crate) fn suspect(&mut self, member: u8, page: u32) {
        self.suspects.push((member, page));
    }

    /// The same of a page of a chunk, with what its older copy says.
    pub(crate) fn suspect_in_chunk(&mut self, member: u8, page: u32, content: Option<PageContent>) {
        self.chunk_suspects.push((member, page, content));
    }

    /// All pages are read: gives these back.
    pub(crate) fn take_chunk_suspects(&mut self) -> Vec<(u8, u32, Option<PageContent>)> {
        std::mem::take(&mut self.chunk_suspects)
    }

    /// Whether the page of a component's slot may be damaged.
    pub(crate) fn has_suspect_slot(&self, member: u8, slots: u32) -> bool {
        let is_slot = |(of, page): &&(u8, u32)| *of == member && *page < slots;
        self.suspects.iter().chain(&self.damaged).any(|one| is_slot(&one))
    }

    /// The version of a page that counts does not verify, and the next one is of a checkpoint that did not end.
    pub(crate) fn note_damaged(&mut self, member: u8, page: u32) {
        self.damaged.push((member, page));
    }

    /// Pages of which that is so.
    pub(crate) fn damaged(&self) -> &[(u8, u32)] {
        &self.damaged
    }

    /// The newer copy of a page does not verify, and the older one contradicts other pages.
    pub(crate) fn note_contradicting(&mut self, member: u8, page: u32) {
        self.contradicting.push((member, page));
    }

    /// Pages of which that is so.
    pub(crate) fn contradicting(&self) -> &[(u8, u32)] {
        &self.contradicting
    }

    /// No slot tells of the component of a page.
    pub(crate) fn note_orphan(&mut self, member: u8, page: u32, component: ComponentId) {
        self.orphans.push((member, page, component));
    }

    /// The log makes a component: its pages of which that is so.
    pub(crate) fn take_orphans(&mut self, component: ComponentId) -> Vec<(u8, u32)> {
        let own = self.orphans.extract_if(.., |(.., of)| *of == component);
        own.map(|(member, page, _)| (member, page)).collect()
    }

    /// The map page of a part is found; it contains all that the log has of it before that position.
    pub(crate) fn note_map(&mut self, component: ComponentId, part: u32, through: u64) {
        self.maps.insert((component, part), through);
    }

    /// Up to where in the log the map page of a part contains all of it.
    pub(crate) fn through(&self, component: ComponentId, part: u32) -> Option<u64> {
        self.maps.get(&(component, part)).copied()
    }

    /// A component is set aside.
    pub(crate) fn set_aside(&mut self, key: u32) {
        self.aside.push(key);
    }

    /// Takes one of those that are set aside back.
    pub(crate) fn take_aside(&mut self, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let at = self.aside.iter().position(|key| is_it(*key))?;
        Some(self.aside.remove(at))
    }

    /// A record of the log made a component in that slot.
    pub(crate) fn note_made(&mut self, member: u8, slot: u32) {
        self.made.insert((member, slot));
    }

    /// Whether the log has the record that made the component in that slot.
    pub(crate) fn is_made(&self, member: u8, slot: u32) -> bool {
        self.made.contains(&(member, slot))
    }

    /// A record at that position of the log says that a component is gone.
    pub(crate) fn note_gone(&mut self, component: ComponentId, position: u64) {
        self.gone.insert(component, position);
    }

    /// A record of the log gives an extent to a part that belonged to nobody.
    pub(crate) fn note_claim(&mut self, member: u8, extent: u32) {
        self.claims.insert((member, extent));
    }

    /// Whether one does so of an extent.
    pub(crate) fn is_claim(&self, member: u8, extent: u32) -> bool {
        self.claims.contains(&(member, extent))
    }

    /// The extents of a device of which that is so.
    pub(crate) fn claims(&self, member: u8) -> impl Iterator<Item = u32> {
        self.claims.range((member, 0)..=(member, u32::MAX)).map(|(_, extent)| *extent)
    }

    /// A record of the log says that an extent is that chunk of the table.
    pub(crate) fn note_chunk(&mut self, member: u8, number: u32, extent: u32) {
        self.note_taken(member, extent);
        self.chunks.insert((member, number), extent);
    }

    /// A record of the log says something else of an extent.
    pub(crate) fn note_taken(&mut self, member: u8, extent: u32) {
        self.chunks.retain(|(of, _), other| (*of, *other) != (member, extent));
    }

    /// The extent of a chunk that was made and of which no descriptor tells.
    pub(crate) fn chunk_made(&self, member: u8, number: u32) -> Option<u32> {
        self.chunks.get(&(member, number)).copied()
    }

    /// Where the log says that a component is gone, if it does.
    pub(crate) fn gone_at(&self, component: ComponentId) -> Option<u64> {
        self.gone.get(&component).copied()
    }

    /// A member is out of service: nothing is said of its pages.
    pub(crate) fn forget_suspects(&mut self, member: u8) {
        self.damaged.retain(|(of, _)| *of != member);
        self.contradicting.retain(|(of, _)| *of != member);
        self.chunk_suspects.retain(|(of, ..)| *of != member);
        self.suspects.retain(|(of, _)| *of != member);
    }

    /// Number of the batch looked for.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The batch looked for may have its header at that position, of which a block cannot be read. `header_blocks`: how many blocks the header has there,
    /// without its copy, if its first block tells. No batch goes beyond `region_end`.
    pub(crate) fn note_unreadable(&mut self, position: u64, header_blocks: Option<u64>, region_end: u64) {
        let copy = match header_blocks {
            Some(blocks) => position + blocks..position + 2 * blocks,
            None => position + 1..position + HEADER_BLOCKS_MAX / 2 + 1,
        };
        self.doubt.copies.push(copy.start..copy.end.min(region_end));
    }

    /// A block behind the end of the log cannot be read.
    pub(crate) fn note_unreadable_beyond(&mut self, position: u64) {
        self.doubt.note(position);
    }

    /// Whether a batch may be missing that was written whole.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubt.is_justified()
    }

    /// The next batch is found. Gives back the one before, which counts by that.
    pub(crate) fn found(&mut self, batch: Batch) -> Option<Batch> {
        self.number += 1;
        self.doubt = Doubt::after(&batch.header);
        self.mends.clear();
        self.last.replace(batch)
    }

    /// The last batch found; not in force yet.
    pub(crate) fn last(&self) -> Option<&Batch> {
        self.last.as_ref()
    }

    /// The last batch counts.
    pub(crate) fn take_last(&mut self) -> Option<Batch> {
        self.last.take()
    }

    /// The last batch is torn, so never acknowledged: the next one takes its number. Says where it stands.
    pub(crate) fn drop_torn(&mut self) -> u64 {
        let torn = self.last.take().expect("a batch was being verified");
        self.number -= 1;
        self.torn.push(torn.start.position);
        self.doubt = Doubt::after(&torn.header);
        torn.start.position
    }

    /// Whether a torn batch starts there.
    pub(crate) fn is_torn(&self, position: u64) -> bool {
        self.torn.contains(&position)
    }

    /// Something is to be written at that position of the log before the group opens.
    pub(crate) fn note_mend(&mut self, position: u64, mend: Mend) {
        self.mends.push((position, mend));
    }

    /// What is to be written next.
    pub(crate) fn next_mend(&mut self) -> Option<(u64, Mend)> {
        self.mends.pop()
    }

    /// The data of the last batch are to have these checksums.
    pub(crate) fn expect(&mut self, checksums: Vec<u32>) {
        self.checksums = checksums;
    }

    /// The checksums that the data of the last batch are to have.
    pub(crate) fn expected(&self) -> &[u32] {
        &self.checksums
    }

    /// The log says that this version of a page was about to be written.
    pub(crate) fn note_intent(&mut self, member: u8, page: u32, version: u64) {
        self.intents.insert((member, page, version));
    }

    /// Whether the log says that this version of a page was about to be written.
    pub(crate) fn is_intended(&self, member: u8, page: u32, version: u64) -> bool {
        self.intents.contains(&(member, page, version))
    }

    /// Pages whose newer copy does not verify.
    pub(crate) fn suspects(&self) -> &[(u8, u32)] {
        &self.suspects
    }
}

/// What may hide the batch that is looked for.
#[derive(Debug, Default)]
struct Doubt {
    /// For each header that it could have and that cannot be read: the blocks in which the copy could begin, or stand.
    copies: Vec<Range<u64>>,
    /// The batch before has no copy of its header, so this one may have none either. Of the first of a log nobody can tell;
    /// it counts as one that has.
    may_lack_copy: bool,
    /// Nor can a block be read where the copy could stand.
    may_hide_copy: bool,
}

impl Doubt {
    /// What is known behind a batch with that header.
    fn after(header: &BatchHeader) -> Doubt {
        Doubt { may_lack_copy: !header.has_copy(), ..Doubt::default() }
    }

    /// Whether a batch may have stood there all the same. Where neither its header can be read nor a copy is found, though
    /// copies are written, it was never written whole, and never acknowledged.
    fn is_justified(&self) -> bool {
        !self.copies.is_empty() && (self.may_lack_copy || self.may_hide_copy)
    }

    /// A block behind the end cannot be read.
    fn note(&mut self, position: u64) {
        self.may_hide_copy |= self.copies.iter().any(|copy| copy.contains(&position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those behind a header that cannot be read, with which it is doubtful where the log ends.
    fn hiding(header_blocks: Option<u64>, region_end: u64) -> Vec<u64> {
        let is_hiding = |position: &u64| {
            let mut recovery = Recovery::default();
            recovery.note_unreadable(100, header_blocks, region_end);
            recovery.note_unreadable_beyond(100);
            assert!(!recovery.is_doubtful(), "the header itself hides no copy");
            recovery.note_unreadable_beyond(*position);
            recovery.is_doubtful()
        };
        (101..400).filter(is_hiding).collect()
    }

    /// A group stayed closed for the sake of a sector beyond the end of the ring, or of another one of the same header.
    #[test]
    fn a_bad_sector_hides_the_copy_of_a_header_only_where_that_can_stand() {
        assert_eq!(hiding(None, 1000), (101..=100 + HEADER_BLOCKS_MAX / 2).collect::<Vec<u64>>());
        assert_eq!(hiding(None, 120), (101..120).collect::<Vec<u64>>());
        assert_eq!(hiding(Some(8), 1000), (108..116).collect::<Vec<u64>>());
    }
}
