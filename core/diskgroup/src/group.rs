//! A disk group: one log device and its capacity devices, as one state machine.
//!
//! Feed it inputs with [`Group::step`]; after a batch of inputs call [`Group::advance`], which seals what has been
//! gathered into one log write and moves destaging, checkpoints and scrubbing on. It performs nothing itself: device
//! requests leave as [`Output`]s and come back as [`Input::DeviceDone`].
//!
//! [`Group`] joins parts that stand at the top of the crate and know nothing of it: the log and its write buffer, the index, members
//! with their tables and space, components, destaging, the checkpoint, scrubbing, recovery. Only a part's own methods change it. The
//! modules below move several parts on together.
//!
//! The rules that keep data safe, each in one place:
//! * a write is answered when its batch is stable (`write::batch_done`);
//! * log space is reused only after what it holds is at rest, flushed, described in stable pages, and the anchor that
//!   says so is stable (`checkpoint`);
//! * a freed extent is taken again only when the record of its freeing is stable and nothing writes to it any more
//!   (`write::release_extent`);
//! * every block that is read is compared with its checksum (`read`).

mod backfill;
mod beyond;
mod carry;
mod checkpoint;
mod chunks;
mod compress;
mod copy;
mod destage;
mod hold;
mod hold_mapped;
mod install;
mod lifecycle;
mod mapping;
mod membership;
mod mend;
mod owners;
mod plain;
mod read;
mod recovery;
mod rewrite;
mod rollback;
mod room;
mod scrub;
mod scrub_mapped;
mod snapshots;
mod state;
mod survey;
mod suspects;
mod table;
mod unreadable;
mod versions;
mod window;
mod write;

use crate::backfill::Backfills;
use crate::buffer::WriteBuffer;
use crate::carry::Carrying;
use crate::checkpoint::{Checkpoint, DeletionCheckpoint};
use crate::components::Components;
use crate::compressing::Compressing;
use crate::compute::{ComputeId, ComputeIds, Computed};
use crate::destage::Destaging;
use crate::exclusive::Exclusive;
use crate::format::FORMAT_PLAIN;
use crate::format::batch::Origin;
use crate::format::superblock::Superblock;
use crate::held::Held;
use crate::index::Index;
use crate::io::{ComponentKey, Event, Input, Io, IoFailure, Output};
use crate::limits;
use crate::log::Log;
use crate::member::Member;
use crate::members::Members;
use crate::read::{BlockRange, ReadState, Reads};
use crate::recovery::Recovery;
use crate::requests::{PendingIo, Purpose, Requests};
use crate::rewrite::Rewriting;
use crate::rules::Rule;
use crate::scarcity::Scarcity;
use crate::scrub::Scrub;
use crate::share::Shares;
use crate::slots::Unpacker;
use crate::state::Counters;
use crate::table::Table;
use crate::unmapped::Unmapped;
use crate::unreadable::{BadBlocks, Ended};
use crate::versions::ChangedState;
use crate::watermarks::Watermarks;
use crate::work::{Change, Order, OwnRecord, Target, Work};
use base::rules::Rules;
use base::units::BLOCK_SIZE;
use base::{Buffer, ComponentId, DeviceId, GroupId, Instant, Pool, WriteId};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a group is run with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bound of the memory for table pages, in bytes, those apart that wait for a checkpoint. What does not fit is read again when it is needed.
    pub table_bytes_max: usize,
    /// Bound of the memory for data that waits in the log, kept to spare reading it back, in bytes.
    pub retained_bytes_max: usize,
    /// Pace of scrubbing in bytes a second; 0 switches it off.
    pub scrub_bytes_per_second: u64,
    /// Whether freed extents are handed back to the provider of the device.
    pub discard: bool,
    /// The safety rules that hold: all, but in builds with the feature `mutants`.
    pub rules: Rules<Rule>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            table_bytes_max: 512 << 20,
            retained_bytes_max: 64 << 20,
            scrub_bytes_per_second: 8 << 20,
            discard: true,
            rules: Rules::ALL,
        }
    }
}

/// Whether the group can be used.
#[derive(Debug)]
enum Phase {
    Opening(Box<Recovery>),
    Open,
    /// The log is lost, or opening failed.
    Failed,
}

/// The state machine.
#[derive(Debug)]
pub struct Group {
    id: GroupId,
    rules: Rules<Rule>,
    settings: Settings,
    /// What its own work may take; counts from the next piece of work on.
    pub shares: Shares,
    /// Buffers of the guests' reads: shared with the sessions, and possibly used up by them.
    pool: Pool,
    /// Buffers of the group's own work, so that it never waits for a guest to let go of one.
    own_pool: Pool,
    /// For the anchor, which must never wait.
    spare: Option<Buffer>,
    now: Instant,
    phase: Phase,
    members: Members,
    components: Components,
    index: Index,
    /// What stands in the log beside the content of parts.
    held: Held,
    /// Mapped parts of which the log has promotions, with the position of the last one.
    promotions: BTreeMap<(u32, u32), u64>,
    carrying: Carrying,
    log: Log,
    buffer: WriteBuffer,
    scarcity: Scarcity,
    /// What the component waits for that is being deleted.
    deletion_checkpoint: DeletionCheckpoint,
    /// Map pages, by device and page, of parts that are plain again: they are given back before the next checkpoint.
    void_maps: BTreeSet<(u8, u32)>,
    /// Parts that got or lost their map page since the pages on the devices were written.
    unmapped: Unmapped,
    /// Components with snapshots that are being taken apart.
    dropping: BTreeSet<u32>,
    /// When the next part of these is taken apart.
    drop_at: Instant,
    /// Components whose list of snapshots lacks a page.
    lists_due: BTreeSet<u32>,
    /// Devices on which a snapshot waits for a page of its list.
    page_seekers: BTreeSet<u8>,
    /// What snapshots are given after they were made.
    backfills: Backfills,
    /// Devices on which a visit of destaging waits for a page, which was promised.
    pages_short: BTreeSet<u8>,
    exclusive: Exclusive,
    /// Whole extents that are being written, each with the record that follows.
    directs: Slab<OwnRecord>,
    /// Copies of whole extents that wait for the page that tells the versions of what they take the place of.
    copies_held: Slab<Work>,
    reads: Reads,
    /// Questions for what was changed that wait for a table page.
    changed: Slab<ChangedState>,
    watermarks: Watermarks,
    /// Table pages whose reading waits for memory.
    pages_waiting: VecDeque<(u8, u32)>,
    destaging: Destaging,
    compressing: Compressing,
    rewriting: Rewriting,
    unpacker: Unpacker,
    checkpoint: Checkpoint,
    scrub: Scrub,
    requests: Requests,
    compute_ids: ComputeIds,
    counters: Counters,
}

impl Group {
    /// Opens the group whose devices bear `superblocks` (in the order of their indices, one for each index in use;
    /// [`Superblock::away`] for a capacity device that is not there, and whose components are lost until it is). Its
    /// requests for recovery are appended to `out`; [`Event::Ready`] or [`Event::OpenFailed`] tells the end.
    pub fn open(
        superblocks: Vec<Superblock>,
        settings: Settings,
        pool: Pool,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Group {
        assert!(
            !superblocks.is_empty() && superblocks[0].geometry.log.len > 0,
            "the device with index 0 holds the log"
        );
        let extents = superblocks.iter().map(|one| one.geometry.extent_count());
        let index = Index::new(extents, settings.retained_bytes_max);
        let scrub = Scrub::new(now);
        let log = Log::before_recovery(&superblocks[0]);
        let id = superblocks[0].group;
        let mut group = Group {
            id,
            rules: settings.rules,
            settings,
            shares: Shares::FULL,
            pool,
            own_pool: Pool::new(limits::OWN_POOL_SIZE),
            spare: None,
            now,
            phase: Phase::Opening(Box::default()),
            members: Members::new(superblocks),
            components: Components::default(),
            index,
            held: Held::default(),
            promotions: BTreeMap::new(),
            carrying: Carrying::default(),
            log,
            buffer: WriteBuffer::default(),
            scarcity: Scarcity::default(),
            deletion_checkpoint: DeletionCheckpoint::default(),
            void_maps: BTreeSet::new(),
            unmapped: Unmapped::default(),
            dropping: BTreeSet::new(),
            drop_at: Instant(0),
            lists_due: BTreeSet::new(),
            page_seekers: BTreeSet::new(),
            backfills: Backfills::default(),
            pages_short: BTreeSet::new(),
            exclusive: Exclusive::default(),
            directs: Slab::new(),
            copies_held: Slab::new(),
            reads: Reads::default(),
            changed: Slab::new(),
            watermarks: Watermarks::default(),
            pages_waiting: VecDeque::new(),
            destaging: Destaging::default(),
            compressing: Compressing::default(),
            rewriting: Rewriting::default(),
            unpacker: Unpacker::default(),
            checkpoint: Checkpoint::default(),
            scrub,
            requests: Requests::default(),
            compute_ids: ComputeIds::from(now.0),
            counters: Counters::default(),
        };
        group.index.keeps_segments = group.rules.hold(Rule::KeepSegments);
        let freezes = group.rules.hold(Rule::WriteAsItWas);
        group.members.iter_mut().for_each(|member| member.table.freezes = freezes);
        let frees_shared_early = !group.rules.hold(Rule::KeepSharedFrames);
        group.members.iter_mut().for_each(|member| member.pools.frees_shared_early = frees_shared_early);
        group.start_recovery(out);
        group
    }

    /// Takes one input.
    pub fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.now = now;
        match input {
            Input::Read { op, component, part, layer, block, count, snapshot, verify } => {
                let range = BlockRange { component: component.0, part, layer, snapshot, block, count };
                self.read(ReadState::new(op, range, verify), out);
            }
            Input::Checksums { op, component, part, block, count } => {
                let component = component.0;
                let range = BlockRange { component, part, layer: 0, snapshot: 0, block, count };
                self.read(ReadState::of_checksums(op, range), out);
            }
            Input::Write { op, component, part, layer, block, data, id, origin, checksums, ends } => {
                let change = Change { op, component: component.0, part, layer, block, id, origin };
                self.write(change, data, (&checksums, ends), out);
            }
            Input::Trim { op, component, part, layer, block, count, id, origin } => {
                let change = Change { op, component: component.0, part, layer, block, id, origin };
                self.trim(change, count, out);
            }
            Input::Promote { op, component, part, ranges } => {
                self.order(Order::Promote, Target { op, component: component.0, part }, ranges, out);
            }
            Input::End { op, component, part, ranges } => {
                self.order(Order::End, Target { op, component: component.0, part }, ranges, out);
            }
            Input::Snapshot { op, component, number, id, tag } => {
                let origin = Origin::Guest(tag);
                let change = Change { op, component: component.0, part: 0, layer: 0, block: 0, id, origin };
                self.submit(Work::Snapshot { change, number, is_late: false }, out);
            }
            Input::LateSnapshot { op, component, number } => {
                let (id, origin) = (WriteId::default(), Origin::Copy);
                let change = Change { op, component: component.0, part: 0, layer: 0, block: 0, id, origin };
                self.submit(Work::Snapshot { change, number, is_late: true }, out);
            }
            Input::Backfill { op, component, backfill } => self.backfill(op, component, backfill, out),
            Input::SyncBackfill { op, component, number } => {
                self.sync_backfill(op, component, number, out);
            }
            Input::Rollback { op, component, number, id, tag } => {
                let origin = Origin::Guest(tag);
                let change = Change { op, component: component.0, part: 0, layer: 0, block: 0, id, origin };
                self.submit(Work::Rollback { change, number }, out);
            }
            Input::DropSnapshot { op, component, number } => self.drop_snapshot(op, component, number, out),
            Input::Promise { op, component, epoch } => self.promise(op, component, epoch, out),
            Input::Settle { op, component, watermark, from_epoch } => {
                self.settle(op, component, (watermark, from_epoch), out);
            }
            Input::Changed { op, component, since, from_part } => {
                self.changed(op, component, since, from_part, out);
            }
            Input::Create { op, device, record } => self.create(op, device, record, out),
            Input::Update { op, component, record } => self.update(op, component, record, out),
            Input::Compress { op, component, compression } => {
                let target = Target { op, component: component.0, part: 0 };
                self.submit(Work::Compress { target, compression }, out);
            }
            Input::Rewrite { op, component } => self.rewrite(op, component, out),
            Input::Delete { op, component } => self.delete(op, component, out),
            Input::DeviceDone { io, result } => self.device_done(io, result, out),
            Input::Computed { id, computed } => self.computed(id, &computed, out),
        }
    }

    /// Moves everything on that does not wait for a device: to be called after each batch of inputs, and at the time
    /// that [`Group::wake_at`] tells.
    pub fn advance(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.now = now;
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        self.follow_conversion();
        self.retry_pages(out);
        self.retry_reads(out);
        self.retry_waiting(out);
        self.settle_rows();
        // Guests' writes go ahead of the group's own.
        self.seal(out);
        self.advance_deletions(out);
        self.advance_void_maps(out);
        self.advance_rollbacks(out);
        self.advance_snapshots(out);
        self.advance_rewriting(out);
        self.advance_backfills(out);
        self.advance_chunks(out);
        self.settle_away(out);
        self.advance_destaging(out);
        self.advance_checkpoint(out);
        self.advance_watermarks();
        self.advance_scrub(out);
        self.trim_caches();
        self.seal(out);
        self.check_invariants();
    }

    /// When [`Group::advance`] wants to be called at the latest even if nothing happens.
    pub fn wake_at(&self) -> Option<Instant> {
        if !matches!(self.phase, Phase::Open) {
            return None;
        }
        let soon = Instant(self.now.0 + 1_000_000);
        let wants_seal = !self.buffer.is_writing() && !self.buffer.is_empty();
        let waits_for_memory = self.reads.waiting_count() > 0
            || !self.pages_waiting.is_empty()
            || self.destaging.has_waiting()
            || self.carrying.waits_for_memory
            || self.checkpoint.is_writing_pages();
        let waits_for_room = self.waits_for_log() || self.scarcity.is_felt() || !self.backfills.is_empty();
        if wants_seal || waits_for_memory || waits_for_room {
            return Some(soon);
        }
        // While a batch is being written, its end moves the watermarks on.
        let settle_at = self.watermarks.due_at().filter(|_| !self.buffer.is_writing());
        let wakes = [self.scrub_wake_at(), self.rewrite_wake_at(), self.drops_wake_at(), settle_at];
        wakes.into_iter().flatten().min()
    }

    /// The processor's work ended. What comes too late, for the group or the work has failed, is dropped.
    fn computed(&mut self, id: ComputeId, computed: &Computed, out: &mut Vec<Output>) {
        match (&self.phase, computed) {
            (Phase::Opening(_), Computed::Checksums(checksums)) => self.recovery_computed(id, checksums, out),
            (Phase::Open, Computed::Compressed(slots)) => self.compressed(id, slots, out),
            (Phase::Open, Computed::Unpacked { blocks, bad }) => self.unpacked(id, blocks, bad, out),
            (Phase::Open, Computed::Repacked(blocks)) => self.repacked(id, blocks, out),
            (Phase::Open, Computed::Checksums(_) | Computed::SlotChecksums(_)) => {
                self.scrub_computed(id, computed, out);
            }
            (Phase::Opening(_) | Phase::Failed, _) => {}
        }
    }

    fn device_done(&mut self, io: Io, result: Result<(), IoFailure>, out: &mut Vec<Output>) {
        let PendingIo { begun, member, purpose, read } = self.requests.end(io);
        if purpose.is_effort() {
            self.members[member].meter.end(self.now, begun, purpose.direction());
        }
        let ended = match (result, read) {
            (Ok(()), _) => Ok(BadBlocks::default()),
            (Err(IoFailure::Unreadable(why)), Some(read)) if self.rules.hold(Rule::TolerateBadBlock) => {
                if read.buffer.len() > BLOCK_SIZE as usize && !matches!(self.phase, Phase::Failed) {
                    return self.narrow(member, purpose, read, out);
                }
                self.block_unreadable(member, read.offset, &why)
            }
            (Err(IoFailure::Unreadable(why) | IoFailure::Device(why)), _) => Err(why),
        };
        let is_optional = matches!(purpose, Purpose::Discard { .. });
        let is_opening = matches!(self.phase, Phase::Opening(_));
        if let Err(why) = &ended
            && !is_optional
            && !is_opening
        {
            self.member_failed(member, why, out);
        }
        match purpose {
            Purpose::Block { narrowed, index } => {
                if let Some((purpose, ended)) = self.requests.block_ended(narrowed, index, ended) {
                    self.device_ended(member, purpose, ended, out);
                }
            }
            purpose => self.device_ended(member, purpose, ended, out),
        }
    }

    /// A device request ended, and its member counts as failed if it failed.
    fn device_ended(&mut self, member: u8, purpose: Purpose, ended: Ended, out: &mut Vec<Output>) {
        if let (Phase::Opening(_), Purpose::Recovery { buffer }) = (&self.phase, &purpose) {
            let buffer = buffer.clone();
            return self.recovery_done(member, &buffer, ended, out);
        }
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        let result = ended.map_err(drop);
        match purpose {
            Purpose::Batch => self.batch_done(out),
            Purpose::Direct(key) => self.direct_done(key, result.map(drop), out),
            Purpose::Read { read, run } => self.read_io_done(read, run, result, out),
            Purpose::Page { member, page, buffer } => self.page_loaded(member, page, &buffer, result, out),
            Purpose::DestageRead { destage, run, buffer } => {
                self.destage_read_done(destage, run, &buffer, result, out);
            }
            Purpose::CarryRead { run, buffer } => self.carry_read_done(run, &buffer, result, out),
            Purpose::DestageWrite { destage } => self.destage_write_done(destage, result.map(drop), out),
            Purpose::Backfill(key) => self.backfill_written(key as usize, member, result.map(drop)),
            Purpose::RewriteRead { first } => self.rewrite_read_done(first, result, out),
            Purpose::RewriteWrite => self.rewrite_write_done(member, result.map(drop), out),
            Purpose::Chunk { member, extent } => self.chunk_zeroed(member, extent, result.map(drop)),
            Purpose::CheckpointFlush => self.checkpoint_flushed(out),
            Purpose::PageWrite { member, page } => self.page_written(member, page, out),
            Purpose::AnchorCheck { anchor, buffer } => {
                let bad = result.expect("a failed log device closes the group");
                self.anchor_checked(anchor, buffer, &bad, out);
            }
            Purpose::Anchor(copy) => self.anchor_written(copy, out),
            Purpose::Discard { member, extent } => self.discarded(member, extent),
            Purpose::Scrub { buffer } => self.scrub_read_done(buffer, result, out),
            Purpose::Recovery { .. } => unreachable!("recovery ends before the group opens"),
            Purpose::Block { .. } => unreachable!("blocks end with the read that they are of"),
        }
    }

    /// Takes a member out of service: what stands on it is lost until it is replaced. Without the log all is.
    fn member_failed(&mut self, member: u8, why: &str, out: &mut Vec<Output>) {
        if member == 0 {
            if !matches!(self.phase, Phase::Failed) {
                self.phase = Phase::Failed;
                self.members[0].fail(why.to_owned());
                out.push(Output::Event(Event::GroupFailed { why: why.to_owned() }));
                self.fail_everything(out);
            }
            return;
        }
        if !self.members[member].is_in_service() {
            return;
        }
        self.members.fail(member, why.to_owned());
        out.push(Output::Event(Event::MemberFailed { member, why: why.to_owned() }));
        self.fail_member_work(member, out);
    }

    fn issue(&mut self, member: u8, purpose: Purpose) -> Io {
        self.begin(PendingIo { begun: self.now, member, purpose, read: None })
    }

    fn begin(&mut self, request: PendingIo) -> Io {
        if request.purpose.is_effort() {
            self.members[request.member].meter.begin(self.now);
        }
        self.requests.begin(request)
    }

    fn log_offset(&self, position: u64) -> u64 {
        self.members[0].geometry.log.offset + position % self.log.blocks() * BLOCK_SIZE
    }

    /// How full the log is, or the memory of its index where that is fuller, in thousandths.
    fn fill_permille(&self) -> u64 {
        self.log.fill_permille().max(self.index.fill(self.log.blocks(), 1000))
    }

    /// Back-pressure, 0..=255: rises with what fills up, the log or the memory of its index.
    pub fn congestion(&self) -> u8 {
        let fill = self.fill_permille();
        let (start, full) = (limits::CONGESTION_START_PERCENT * 10, limits::CONGESTION_FULL_PERCENT * 10);
        let by_fill = fill.saturating_sub(start) * 255 / (full - start);
        // Likewise with what is held, from where owners are asked to fold up to where holds are refused.
        let (start, full) =
            (limits::held_blocks_wanted(self.log.blocks()), limits::held_blocks_max(self.log.blocks()));
        let by_held = (self.held.count() as u64).saturating_sub(start) * 255 / (full - start);
        by_fill.max(by_held).min(255) as u8
    }

    /// Bytes that scrubbing and destaging have moved since the group was opened.
    pub fn background_bytes(&self) -> u64 {
        self.counters.scrubbed_bytes + self.counters.destaged_bytes
    }

    /// Bytes of copies that were taken in since the group was opened.
    pub fn copied_bytes(&self) -> u64 {
        self.counters.copied_bytes
    }

    /// The superblocks say that the group was converted: what is written from now on is of that format. Not amid a checkpoint, whose pages and
    /// anchor are of one.
    fn follow_conversion(&mut self) {
        let format = self.members.superblocks()[0].format;
        if format != self.log.format() && self.checkpoint.is_idle() {
            self.log.convert(format);
        }
    }

    /// Another bound of the memory for table pages, in bytes: groups that share one divide it among them.
    pub fn bound_tables(&mut self, bytes: usize) {
        self.settings.table_bytes_max = bytes;
    }

    /// The bound of the memory for table pages.
    pub fn table_bytes_max(&self) -> usize {
        self.settings.table_bytes_max
    }

    fn trim_caches(&mut self) {
        let budget = self.settings.table_bytes_max / Table::PAGE_BYTES;
        // A visit of destaging may need three pages at once. If pages that must stay filled the budget, each would drive the others out.
        let is_plain = self.log.format() == FORMAT_PLAIN;
        let counted =
            |member: &Member| if is_plain { member.table.cached_count() } else { member.table.clean_count() };
        let mut cached: usize = self.members.iter().map(|(_, member)| counted(member)).sum();
        while cached > budget.max(64) {
            let fullest = self.members.iter_mut().max_by_key(|member| member.table.cached_count());
            if !fullest.is_some_and(|member| member.table.evict()) {
                break;
            }
            cached -= 1;
        }
    }

    fn check_invariants(&self) {
        assert!(self.log.used_blocks() <= self.log.blocks(), "live batches fit the log");
        assert!(self.log.tail() <= self.log.head(), "the tail follows the head");
        for (_, member) in self.members.iter() {
            assert!(member.space.free_count() as usize <= member.owners.len(), "free extents exist");
        }
        debug_assert!(self.keeps_promises(), "promised frames can be had");
        // Looking at all of it each time would take longer than what is tested.
        let is_looked_at = cfg!(debug_assertions) && self.counters.batches.is_multiple_of(64);
        assert!(!is_looked_at || self.index.is_consistent(), "parts and extents lead to the same");
        assert!(!is_looked_at || self.held.is_consistent(), "held blocks are counted");
        debug_assert!(self.components.is_consistent(), "undecided changes are counted");
    }

    /// Whether something waits for room in the log, or in the next batch.
    fn waits_for_log(&self) -> bool {
        self.buffer.has_waiting()
    }

    /// Whether nothing is under way: no operation, device request, record or work of the processor.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.buffer.is_empty()
            && !self.buffer.is_writing()
            && !self.waits_for_log()
            && !self.scarcity.is_felt()
            && self.reads.is_empty()
            && self.copies_held.is_empty()
            && self.changed.is_empty()
            && self.backfills.is_empty()
            && !self.scrub.is_computing()
            && self.compressing.is_idle()
            && !self.rewriting.is_computing()
            && self.watermarks.is_empty()
            && self.components.deletion().is_none()
    }

    /// The group's identity.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// The component with that id, if it stands in this group and is not being deleted.
    pub fn component(&self, id: ComponentId) -> Option<ComponentKey> {
        let key = self.components.key_of(id)?;
        let component = &self.components[key];
        (!component.record.is_deleting && component.is_stable).then_some(ComponentKey(key))
    }

    /// The index of a device in this group.
    pub fn member_of(&self, device: DeviceId) -> Option<u8> {
        self.members.index_of(device)
    }
}
