//! Requests for components, carried out by the groups that hold them.

use super::gather::Taken;
use super::survey::Survey;
use super::translate::{
    checksums_of_products, damaged, ends_of, entry, fit_into_answer, held, origin, part_of, record, refusal,
    versions,
};
use crate::interface::{FabricOutput, GroupKey, Output, Token};
use crate::node::{Node, Waiter};
use base::request::StatusOf;
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, Instant, RequestTag, WriteId};
use diskgroup::format::page::ComponentRecord;
use diskgroup::{
    Backfill, Completion, ComponentKey, Giving, Group, GroupError, Input, LayerRange, LayerRanges, Op,
};
use replication::components::{Store, StoreOp, Stored};
use wire::{BackfillRequest, EntryKind, NewComponent, Refusal};

const _: () = assert!(diskgroup::format::page::PARTS_PER_HOLE == replication::limits::HOLE_PARTS);
const _: () = assert!(replication::limits::WINDOW_CHANGES_MAX as u64 == diskgroup::limits::UNDECIDED_MAX);

impl Node {
    /// Reads a component of this node, whoever owns its disk, to compare copies: a part of it, of the view of a snapshot, or with 0 as it is. Ends with
    /// [`crate::FabricOutput::Component`].
    pub fn inspect(
        &mut self,
        now: Instant,
        token: Token,
        component: ComponentId,
        (part, snapshot): (u32, u32),
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some((group, key)) = self.find_component(component) else {
            let answer = Some(wire::Answer::Refused(Refusal::NoComponent));
            return out.push(Output::Fabric(FabricOutput::Component { token, answer }));
        };
        let count = BLOCKS_PER_EXTENT as u16;
        let read =
            |op| Input::Read { op, component: key, part, layer: 0, block: 0, count, snapshot, verify: true };
        self.ask(group, Waiter::Inspection { token }, read, out);
        self.pump(out);
    }

    /// Hands a store to the group of its component.
    pub(crate) fn store_whole(
        &mut self,
        op: StoreOp,
        component: ComponentId,
        store: Store,
        out: &mut Vec<Output>,
    ) {
        if let Store::Create(new) = store {
            return self.store_create(op, new, out);
        }
        let Some((group, key)) = self.find_component(component) else {
            // A component that a group may still have when it is open must not be reported as deleted.
            let stored = match (store, self.why_missing()) {
                (Store::Delete, Refusal::NoComponent) => Stored::Done { congestion: 0 },
                (_, why) => Stored::Failed(why),
            };
            return self.stored(op, stored);
        };
        // The part comes from another node and may not exist.
        let parts = self.group(group).map_or(0, |group| group.part_count(key));
        if part_of(&store).is_some_and(|part| part >= parts) {
            // Nothing is stored behind the end of a component anyway.
            let is_hole = matches!(store, Store::Trim { kind: EntryKind::Copy, .. });
            let missing = Stored::Failed(Refusal::NoComponent);
            return self.stored(op, if is_hole { Stored::Done { congestion: 0 } } else { missing });
        }
        self.store_in(op, (group, key), store, out);
    }

    fn store_in(
        &mut self,
        op: StoreOp,
        (group, key): (GroupKey, ComponentKey),
        store: Store,
        out: &mut Vec<Output>,
    ) {
        let waiter = Waiter::Store { op, group };
        match store {
            Store::State => {
                let stored = self.component_state(group, key);
                self.stored(op, stored);
            }
            Store::Forget { through } => {
                self.groups[group.0 as usize].as_mut().expect("it is there").forget_window(key, through);
                self.stored(op, Stored::Done { congestion: 0 });
            }
            Store::Settle { watermark, from_epoch, stable: false } => {
                let settle = Input::Settle { op: None, component: key, watermark, from_epoch };
                self.ask_quietly(group, settle, out);
                self.stored(op, Stored::Done { congestion: 0 });
            }
            Store::Settle { watermark, from_epoch, stable: true } => {
                let settle = |op| Input::Settle { op: Some(op), component: key, watermark, from_epoch };
                self.ask(group, waiter, settle, out);
            }
            Store::Promise { epoch } => {
                self.ask(group, waiter, |op| Input::Promise { op, component: key, epoch }, out);
            }
            Store::Write { .. } => self.store_write(waiter, (group, key), store, out),
            Store::Trim { id, kind, part, layer, block, count } => {
                let origin = origin(kind);
                let trim = |op| Input::Trim { op, component: key, part, layer, block, count, id, origin };
                self.ask(group, waiter, trim, out);
            }
            Store::Read { part, layer, block, count, verify } => {
                let read =
                    |op| Input::Read { op, component: key, part, layer, block, count, snapshot: 0, verify };
                self.ask(group, waiter, read, out);
            }
            Store::Changed { since, from_part } => {
                self.ask(group, waiter, |op| Input::Changed { op, component: key, since, from_part }, out);
            }
            Store::Update(new) => self.store_update((op, group, key), &new, out),
            Store::Allocation { of, part, count } => {
                self.begin_survey((op, group, key), of, (part, count), out);
            }
            Store::Held { from_part } => {
                let group = self.groups[group.0 as usize].as_ref().expect("it is there");
                let stored = held(group, key, from_part);
                self.stored(op, stored);
            }
            Store::Promote { part, layer, block, count, through } => {
                let ranges = [LayerRange { layer, block, count, through }].into_iter().collect();
                self.ask(group, waiter, |op| Input::Promote { op, component: key, part, ranges }, out);
            }
            Store::Checksums { part, block, count, coefficient: 1 } => {
                let ask = |op| Input::Checksums { op, component: key, part, block, count };
                self.ask(group, waiter, ask, out);
            }
            Store::Checksums { part, block, count, coefficient } => {
                let read = |op| read_content(op, key, (part, block, count));
                self.ask(group, Waiter::Products { op, group, coefficient }, read, out);
            }
            Store::Delete => self.ask(group, waiter, |op| Input::Delete { op, component: key }, out),
            Store::Create(_) => unreachable!("a component is made where there is none"),
            store => self.store_of_snapshots((op, waiter), (group, key), store, out),
        }
    }

    fn begin_survey(
        &mut self,
        of_component: (StoreOp, GroupKey, ComponentKey),
        of: StatusOf,
        parts: (u32, u16),
        out: &mut Vec<Output>,
    ) {
        let (_, group, key) = of_component;
        let there = self.group(group).map_or(0, |group| group.part_count(key));
        self.go_on_with_survey(Survey::new(of_component, of, parts, there), out);
    }

    /// What has to do with snapshots, and with damage that is mended for them, too.
    fn store_of_snapshots(
        &mut self,
        (op, waiter): (StoreOp, Waiter),
        (group, key): (GroupKey, ComponentKey),
        store: Store,
        out: &mut Vec<Output>,
    ) {
        match store {
            Store::View { snapshot, part, block, count } => {
                let read = |op| Input::Read {
                    op,
                    component: key,
                    part,
                    layer: 0,
                    block,
                    count,
                    snapshot,
                    verify: true,
                };
                self.ask(group, waiter, read, out);
            }
            // Its group is converted in a moment, for the record asks for a snapshot.
            Store::Snapshot { .. } | Store::LateSnapshot { .. } if self.is_plain(group) => {
                self.stored(op, Stored::Failed(Refusal::Busy));
            }
            // It is no entry of the window, so it has no id (docs/design/0047).
            Store::Snapshot { number } => {
                let (id, tag) = (WriteId::default(), RequestTag::default());
                self.ask(group, waiter, |op| Input::Snapshot { op, component: key, number, id, tag }, out);
            }
            Store::LateSnapshot { number } => {
                self.ask(group, waiter, |op| Input::LateSnapshot { op, component: key, number }, out);
            }
            // Nothing is shared there.
            Store::Mend(_) if self.is_plain(group) => {
                self.stored(op, Stored::Failed(Refusal::SnapshotRefused));
            }
            Store::Mend(given) => self.give(waiter, (group, key), (given, Some(Giving::Mend)), out),
            Store::Backfill(given) => self.give(waiter, (group, key), (given, None), out),
            Store::SyncBackfill { number } => {
                self.ask(group, waiter, |op| Input::SyncBackfill { op, component: key, number }, out);
            }
            Store::DropSnapshot { number } => {
                self.ask(group, waiter, |op| Input::DropSnapshot { op, component: key, number }, out);
            }
            Store::Damage => {
                let found = self.groups[group.0 as usize].as_mut().expect("it is there");
                let found = found.take_damage(key, wire::limits::DAMAGED_MAX);
                self.stored(op, Stored::Damage(found.into_iter().map(damaged).collect()));
            }
            Store::Snapshots => {
                let numbers = self.group(group).map_or_else(Vec::new, |group| group.snapshots(key));
                self.stored(op, Stored::Snapshots(numbers));
            }
            _ => unreachable!("it has to do with snapshots"),
        }
    }

    /// Blocks for a snapshot, or to mend others.
    fn give(
        &mut self,
        waiter: Waiter,
        (group, component): (GroupKey, ComponentKey),
        (given, giving): (BackfillRequest, Option<Giving>),
        out: &mut Vec<Output>,
    ) {
        let BackfillRequest { number, part, block, count, as_seen_by, data, checksums, .. } = given;
        let seen = as_seen_by.map_or(Giving::New, |newer| Giving::AsSeenBy { newer });
        let giving = giving.unwrap_or(seen);
        let backfill = Backfill { number, part, block, count, data, checksums, giving };
        self.ask(group, waiter, |op| Input::Backfill { op, component, backfill }, out);
    }

    /// Whether a group is of the format that has no snapshots.
    pub(crate) fn is_plain(&self, group: GroupKey) -> bool {
        self.group(group)
            .is_some_and(|group| group.superblocks()[0].format == diskgroup::format::FORMAT_PLAIN)
    }

    /// Writes; a copy onto the content ends what layers of copies hold there.
    fn store_write(
        &mut self,
        waiter: Waiter,
        (group, key): (GroupKey, ComponentKey),
        store: Store,
        out: &mut Vec<Output>,
    ) {
        let Store::Write { id, kind, part, layer, block, data, checksums } = store else {
            unreachable!("it writes")
        };
        let ends = match kind {
            EntryKind::Copy if layer == wire::layer::CONTENT => {
                let blocks = block..block + checksums.len() as u16;
                ends_of(self.groups[group.0 as usize].as_ref().expect("it is there"), key, part, &blocks)
            }
            EntryKind::Copy | EntryKind::Guest(_) => LayerRanges::new(),
        };
        let origin = origin(kind);
        let write =
            |op| Input::Write { op, component: key, part, layer, block, data, id, origin, checksums, ends };
        self.ask(group, waiter, write, out);
    }

    /// Replaces the record of a component. A request that comes late carries a former size: it never undoes a later
    /// one.
    fn store_update(
        &mut self,
        (op, group, component): (StoreOp, GroupKey, ComponentKey),
        new: &NewComponent,
        out: &mut Vec<Output>,
    ) {
        let record = record(new);
        let before = self.group(group).and_then(|group| group.component_state(component));
        let size = before.map_or(record.size, |before| before.record.size.max(record.size));
        let record = ComponentRecord { size, ..record };
        self.ask(group, Waiter::Store { op, group }, |op| Input::Update { op, component, record }, out);
    }

    fn store_create(&mut self, op: StoreOp, new: NewComponent, out: &mut Vec<Output>) {
        let Some(group) = self.group_of(new.device) else {
            return self.stored(op, Stored::Failed(Refusal::DeviceLost));
        };
        let (device, record) = (new.device, record(&new));
        self.ask(group, Waiter::Store { op, group }, |op| Input::Create { op, device, record }, out);
    }

    pub(crate) fn find_component(&self, component: ComponentId) -> Option<(GroupKey, ComponentKey)> {
        // The components of a group that is being opened are not complete.
        let asks_all = !self.fabric.settings.rules.hold(replication::Rule::AskRecoveredGroups);
        let open = (0u8..).zip(&self.groups).filter_map(|(index, group)| {
            let group = group.as_ref().filter(|group| asks_all || !group.is_opening())?;
            Some((GroupKey(index), group.component(component)?))
        });
        open.into_iter().next()
    }

    /// While a group is being opened, its components are unknown.
    fn why_missing(&self) -> Refusal {
        let is_opening = self.groups.iter().flatten().any(|group| group.is_opening());
        if is_opening { Refusal::Busy } else { Refusal::NoComponent }
    }

    fn component_state(&self, group: GroupKey, key: ComponentKey) -> Stored {
        let group = self.groups[group.0 as usize].as_ref().expect("it holds a component");
        if group.failure_of(key).is_some() {
            return Stored::Failed(Refusal::DeviceLost);
        }
        let record = group.component_state(key).expect("it is there").record;
        let lately = group.decided_lately(key).into_iter().map(|one| entry(one, true));
        let window = group.window(key).into_iter().map(|one| entry(one, false));
        let window = fit_into_answer(lately.collect(), window.collect());
        Stored::State { promised: record.promised, watermark: group.watermark(key), window }
    }

    /// A group ended a store.
    pub(crate) fn group_stored(
        &mut self,
        op: StoreOp,
        group: GroupKey,
        result: Result<Completion, GroupError>,
    ) {
        let congestion = self.group(group).map_or(0, diskgroup::Group::congestion);
        let stored = match result {
            Ok(Completion::Done | Completion::Component(_)) => Stored::Done { congestion },
            Ok(Completion::Data(pieces, checksums)) => Stored::Data { pieces, checksums },
            Ok(Completion::Checksums(checksums)) => Stored::Checksums(checksums),
            Ok(Completion::Changed { parts, next }) => {
                Stored::Changed { parts: parts.into_iter().map(versions).collect(), next }
            }
            Err(error) => Stored::Failed(refusal(error)),
        };
        self.stored(op, stored);
    }

    /// Blocks were read whose products' checksums are asked for.
    pub(crate) fn products_stored(
        &mut self,
        op: StoreOp,
        group: GroupKey,
        coefficient: u8,
        result: Result<Completion, GroupError>,
    ) {
        match result {
            Ok(Completion::Data(pieces, _)) => {
                self.stored(op, Stored::Checksums(checksums_of_products(&pieces, coefficient)));
            }
            result => self.group_stored(op, group, result),
        }
    }

    /// A store for a component of this node: a slice of a copy waits for the others, anything else goes to the group.
    pub(crate) fn store(&mut self, op: StoreOp, component: ComponentId, store: Store, out: &mut Vec<Output>) {
        if self.fabric.gathers.is_empty() && !store.is_of_copy() {
            return self.store_whole(op, component, store, out);
        }
        let now = self.now;
        let mut store = match self.fabric.gathers.take(now, op, component, store) {
            Ok(Taken { part, is_whole: true }) => return self.release((component, part), out),
            Ok(Taken { is_whole: false, .. }) => return,
            Err(store) => store,
        };
        let before = self.fabric.gathers.before(component, &store);
        let is_after = !before.is_empty();
        for part in before {
            self.release((component, part), out);
        }
        // It may be the first slice of another copy.
        if is_after {
            match self.fabric.gathers.take(now, op, component, store) {
                Ok(_) => return,
                Err(given_back) => store = given_back,
            }
        }
        self.store_whole(op, component, store, out);
    }

    /// Passes slices that have waited for too long to their group.
    pub(crate) fn release_overdue(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        for key in self.fabric.gathers.overdue(now) {
            self.release(key, out);
        }
    }

    fn release(&mut self, key: (ComponentId, u32), out: &mut Vec<Output>) {
        if let Some((op, store)) = self.fabric.gathers.release(key) {
            self.store_whole(op, key.0, store, out);
        }
    }

    /// A store has ended, and with it all slices that it was made of.
    pub(crate) fn stored(&mut self, op: StoreOp, stored: Stored) {
        let now = self.now;
        let others = self.fabric.gathers.ended(op);
        self.fabric.with_components(|components, said| {
            for other in others {
                components.stored(now, other, stored.clone(), said);
            }
            components.stored(now, op, stored, said);
        });
    }

    /// Continues questions that waited for table pages.
    pub(crate) fn go_on_with_surveys(&mut self, out: &mut Vec<Output>) {
        for survey in std::mem::take(&mut self.fabric.surveys) {
            self.go_on_with_survey(survey, out);
        }
    }

    fn go_on_with_survey(&mut self, mut survey: Survey, out: &mut Vec<Output>) {
        let group = survey.group;
        let go_on = |group: &mut Group, _: Instant, outputs: &mut Vec<_>| survey.go_on(group, outputs);
        let told = self.with_group(group, go_on, out);
        match told {
            Some(Some(stored)) => self.stored(survey.op, stored),
            Some(None) => self.fabric.surveys.push_back(survey),
            None => self.stored(survey.op, Stored::Failed(Refusal::NoComponent)),
        }
    }
}

/// A verified read of blocks of the content of one part, as the live disk has it.
fn read_content(op: Op, component: ComponentKey, (part, block, count): (u32, u16, u16)) -> Input {
    Input::Read { op, component, part, layer: 0, block, count, snapshot: 0, verify: true }
}
