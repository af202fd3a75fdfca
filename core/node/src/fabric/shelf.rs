//! What components are asked for, done by the groups that hold them.

use crate::fabric::FabricOutput;
use crate::node::{GroupKey, Node, Output, Token, Waiter};
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, Instant};
use diskgroup::format::page::ComponentRecord;
use diskgroup::{Answer, ComponentKey, GroupError, Input, Origin, WindowEntry};
use replication::components::{Store, StoreOp, Stored};
use wire::limits::ENTRIES_MAX;
use wire::{Entry, EntryKind, NewComponent, PartVersions, Refusal, Versions};

const _: () = assert!(diskgroup::format::page::PARTS_PER_HOLE == replication::limits::HOLE_PARTS);
const _: () = assert!(replication::limits::WINDOW_CHANGES_MAX as u64 == diskgroup::limits::UNDECIDED_MAX);
const _: () = assert!(WindowEntry::SPAN_PART == Entry::SPAN_PART);

impl Node {
    /// Reads what a component of this node holds, whoever owns it: to compare copies. Ends with
    /// [`crate::FabricOutput::Component`].
    pub fn inspect(
        &mut self,
        now: Instant,
        token: Token,
        component: ComponentId,
        part: u32,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some((group, key)) = self.find_component(component) else {
            let answer = Some(wire::Answer::Refused(Refusal::NoComponent));
            return out.push(Output::Fabric(FabricOutput::Component { token, answer }));
        };
        let count = BLOCKS_PER_EXTENT as u16;
        let read = |op| Input::Read { op, component: key, part, block: 0, count, verify: true };
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
            // What a group that is being opened may yet turn out to hold is not deleted.
            let stored = match (store, self.why_missing()) {
                (Store::Delete, Refusal::NoComponent) => Stored::Done { congestion: 0 },
                (_, why) => Stored::Failed(why),
            };
            return self.stored(op, stored);
        };
        // Another node names the part: it may name one that there is not.
        let parts = self.group(group).map_or(0, |group| group.part_count(key));
        if part_of(&store).is_some_and(|part| part >= parts) {
            // Behind the end of a component nothing stands anyhow.
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
            Store::Write { id, kind, part, block, data, checksums } => {
                let origin = origin(kind);
                let write =
                    |op| Input::Write { op, component: key, part, block, data, id, origin, checksums };
                self.ask(group, waiter, write, out);
            }
            Store::Trim { id, kind, part, block, count } => {
                let origin = origin(kind);
                let trim = |op| Input::Trim { op, component: key, part, block, count, id, origin };
                self.ask(group, waiter, trim, out);
            }
            Store::Read { part, block, count, verify } => {
                let read = |op| Input::Read { op, component: key, part, block, count, verify };
                self.ask(group, waiter, read, out);
            }
            Store::Changed { since, from_part } => {
                self.ask(group, waiter, |op| Input::Changed { op, component: key, since, from_part }, out);
            }
            Store::Change(new) => self.store_change((op, group, key), &new, out),
            Store::Allocation { part, count } => self.begin_survey((op, group, key), (part, count), out),
            Store::Delete => self.ask(group, waiter, |op| Input::Delete { op, component: key }, out),
            Store::Create(_) => unreachable!("a component is made where there is none"),
        }
    }

    /// Replaces what is recorded of a component. What a request that is late says of its size was true once: it never undoes
    /// what came after it.
    fn store_change(
        &mut self,
        (op, group, component): (StoreOp, GroupKey, ComponentKey),
        new: &NewComponent,
        out: &mut Vec<Output>,
    ) {
        let record = record(new);
        let before = self.group(group).and_then(|group| group.component_state(component));
        let size = before.map_or(record.size, |before| before.record.size.max(record.size));
        let record = ComponentRecord { size, ..record };
        self.ask(group, Waiter::Store { op, group }, |op| Input::Change { op, component, record }, out);
    }

    fn store_create(&mut self, op: StoreOp, new: NewComponent, out: &mut Vec<Output>) {
        let Some(group) = self.group_of(new.device) else {
            return self.stored(op, Stored::Failed(Refusal::DeviceLost));
        };
        let (device, record) = (new.device, record(&new));
        self.ask(group, Waiter::Store { op, group }, |op| Input::Create { op, device, record }, out);
    }

    pub(crate) fn find_component(&self, component: ComponentId) -> Option<(GroupKey, ComponentKey)> {
        // What a group that is being opened says is not all that it will.
        let asks_all = !self.fabric.settings.rules.hold(replication::Rule::AskRecoveredGroups);
        let open = (0u8..).zip(&self.groups).filter_map(|(index, group)| {
            let group = group.as_ref().filter(|group| asks_all || !group.is_opening())?;
            Some((GroupKey(index), group.component(component)?))
        });
        open.into_iter().next()
    }

    /// While a group is still being opened, nobody knows what it has.
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
        let entry = |one: WindowEntry, has_happened: bool| Entry {
            id: one.id,
            part: one.part,
            block: u16::from(one.block),
            count: one.count,
            is_trim: one.is_trim,
            has_happened,
            tag: one.tag,
        };
        let lately = group.decided_lately(key).into_iter().map(|one| entry(one, true));
        let window = group.window(key).into_iter().map(|one| entry(one, false));
        let window = fit_into_answer(lately.collect(), window.collect());
        Stored::State { promised: record.promised, watermark: group.watermark(key), window }
    }

    /// A group ended a store.
    pub(crate) fn group_stored(&mut self, op: StoreOp, group: GroupKey, result: Result<Answer, GroupError>) {
        let congestion = self.group(group).map_or(0, diskgroup::Group::congestion);
        let stored = match result {
            Ok(Answer::Done | Answer::Component(_)) => Stored::Done { congestion },
            Ok(Answer::Data(pieces, checksums)) => Stored::Data { pieces, checksums },
            Ok(Answer::Changed { parts, next }) => {
                Stored::Changed { parts: parts.into_iter().map(versions).collect(), next }
            }
            Err(error) => Stored::Failed(refusal(error)),
        };
        self.stored(op, stored);
    }
}

/// The entries of one answer, by id: of changes that have happened those that there is room for, and of undecided ones all, or the newest
/// after a cut. A component that several owners left behind one after the other may have more than an answer takes.
fn fit_into_answer(lately: Vec<Entry>, mut undecided: Vec<Entry>) -> Vec<Entry> {
    if undecided.len() > ENTRIES_MAX {
        let newest = undecided.split_off(undecided.len() - (ENTRIES_MAX - 1));
        let cut = undecided.last().map(|left_out| Entry::cut(left_out.last()));
        undecided = cut.into_iter().chain(newest).collect();
    }
    let room = ENTRIES_MAX - undecided.len();
    let mut entries = lately;
    entries.drain(..entries.len().saturating_sub(room));
    entries.extend(undecided);
    // What a resync let it forget may be newer than what it has to keep.
    entries.sort_by_key(|entry| entry.id);
    entries
}

/// The part that a store is about, if it is about one.
fn part_of(store: &Store) -> Option<u32> {
    match store {
        Store::Write { part, .. } | Store::Trim { part, .. } | Store::Read { part, .. } => Some(*part),
        Store::State | Store::Promise { .. } | Store::Settle { .. } | Store::Forget { .. } => None,
        Store::Allocation { part, count } => Some(part.saturating_add(u32::from(*count) - 1)),
        Store::Changed { .. } | Store::Create(_) | Store::Change(_) | Store::Delete => None,
    }
}

/// What an inspection found.
pub(crate) fn inspected(result: Result<Answer, GroupError>) -> wire::Answer {
    match result {
        Ok(Answer::Data(pieces, checksums)) => wire::Answer::Data { pieces, checksums },
        Ok(other) => unreachable!("a read is not answered by {other:?}"),
        Err(error) => wire::Answer::Refused(refusal(error)),
    }
}

fn origin(kind: EntryKind) -> Origin {
    match kind {
        EntryKind::Guest(tag) => Origin::Guest(tag),
        EntryKind::Copy => Origin::Copy,
    }
}

fn record(new: &NewComponent) -> ComponentRecord {
    ComponentRecord {
        id: new.id,
        disk: new.disk,
        size: new.size,
        reservation: new.reservation,
        promised: 0,
        watermark: base::WriteId::default(),
        is_deleting: false,
        disk_record: new.disk_record.clone(),
    }
}

fn versions((part, versions): (u32, diskgroup::Versions)) -> PartVersions {
    let versions = match versions {
        diskgroup::Versions::Hole(id) => Versions::Hole(id),
        diskgroup::Versions::Regions(regions) => Versions::Regions(regions),
    };
    PartVersions { part, versions }
}

pub(crate) fn refusal(error: GroupError) -> Refusal {
    match error {
        GroupError::NoSpace => Refusal::NoSpace,
        GroupError::Damaged => Refusal::Damaged,
        GroupError::DeviceLost => Refusal::DeviceLost,
        GroupError::NoComponent => Refusal::NoComponent,
        GroupError::NoSlot | GroupError::Malformed => Refusal::NoSlot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::WriteId;

    fn entries(epoch: u32, count: u64, has_happened: bool) -> Vec<Entry> {
        let entry = |sequence| Entry {
            id: WriteId { epoch, sequence },
            part: 0,
            block: 0,
            count: 1,
            is_trim: false,
            has_happened,
            tag: base::RequestTag(sequence),
        };
        (1..=count).map(entry).collect()
    }

    #[test]
    fn an_answer_names_what_is_undecided_before_what_has_happened() {
        let all = fit_into_answer(entries(1, 500, true), entries(2, 4000, false));
        assert_eq!(all.len(), 4500);
        let most = fit_into_answer(entries(1, 500, true), entries(2, 4400, false));
        assert_eq!(most.len(), ENTRIES_MAX);
        assert_eq!(most.iter().filter(|one| !one.has_happened).count(), 4400);
        assert_eq!(most[0].id.sequence, 293, "the oldest of what has happened are left out");
    }

    #[test]
    fn an_answer_that_has_no_room_for_all_undecided_changes_says_so() {
        let cut = fit_into_answer(entries(1, 500, true), entries(2, 9000, false));
        assert_eq!(cut.len(), ENTRIES_MAX);
        let left_out = 9000 - (ENTRIES_MAX as u64 - 1);
        assert!(cut[0].is_cut());
        assert_eq!((cut[0].id.sequence, cut[1].id.sequence), (left_out, left_out + 1));
        assert!(cut.iter().all(|one| !one.has_happened));
    }
}
