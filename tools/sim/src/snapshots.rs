//! Snapshots of the components of one host (docs/design/0044): made, read, and deleted beside the load, with an oracle that knows what each block of each may
//! be. What a first read of a block finds is what all later reads must find, whatever was written, deleted or lost meanwhile.

use crate::holding::FIRST;
use crate::holding_marks::is_plain_component;
use crate::load::tag_of;
use crate::model::{Key, Value, joined_pieces, value_of};
use crate::operation::Operation;
use crate::world::World;
use base::request::Piece;
use base::units::BLOCK_SIZE;
use base::{ComponentId, Random, WriteId};
use diskgroup::format::{FORMAT_PLAIN, FORMAT_VERSION};
use diskgroup::{Completion, GroupError, Input, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// Most snapshots of a component at a time, of those with even numbers and of the others.
const LIVING_MAX: [usize; 2] = [6, 1];

/// What is known of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is being made, or was when the host crashed.
    Coming,
    There,
    /// It is being deleted, or was when the host crashed.
    Going,
}

/// What each block of a snapshot may be; zeroes where nothing is said.
#[derive(Debug)]
struct View {
    standing: Standing,
    blocks: BTreeMap<(u32, u16), BTreeSet<Value>>,
}

/// The oracle.
#[derive(Debug)]
pub(crate) struct Snapshots {
    random: Random,
    /// A component that is to be rolled back to its newest snapshot, once no change of it is under way; none begins meanwhile.
    quiet: Option<u32>,
    /// By component and number.
    views: BTreeMap<(u32, u32), View>,
    /// By component and number: snapshots that are being made, or rolled back to, and that may be refused because a rollback was in flight meanwhile.
    refusable: BTreeSet<(u32, u32)>,
    /// The greatest number of each component.
    last_numbers: BTreeMap<u32, u32>,
    /// Reads of blocks of views, and of these the ones of a part that differs from the live one.
    pub(crate) read_blocks: u64,
    /// Rollbacks that were answered.
    pub(crate) rolled_back: u64,
}

impl Snapshots {
    pub(crate) fn new(random: Random) -> Snapshots {
        Snapshots {
            random,
            quiet: None,
            views: BTreeMap::new(),
            refusable: BTreeSet::new(),
            last_numbers: BTreeMap::new(),
            read_blocks: 0,
            rolled_back: 0,
        }
    }

    /// A component is gone.
    pub(crate) fn forget_component(&mut self, component: u32) {
        self.views.retain(|(of, _), _| *of != component);
        self.last_numbers.remove(&component);
    }

    /// Whether changes of a component are kept back.
    pub(crate) fn is_quiet(&self, component: u32) -> bool {
        self.quiet == Some(component)
    }

    /// The host crashed: nothing is kept back.
    pub(crate) fn crashed(&mut self) {
        self.quiet = None;
        self.refusable.clear();
    }

    fn of(&self, component: u32) -> Vec<u32> {
        let is_there = |(_, view): &(&(u32, u32), &View)| view.standing == Standing::There;
        let all = self.views.range((component, 0)..(component + 1, 0)).filter(is_there);
        all.map(|((_, number), _)| *number).collect()
    }
}

/// An operation on a snapshot.
#[derive(Debug)]
pub(crate) enum OnSnapshot {
    Make {
        component: u32,
        number: u32,
    },
    Drop {
        component: u32,
        number: u32,
    },
    Read {
        number: u32,
        first: Key,
        count: u16,
    },
    /// A rollback, with the blocks that it changes.
    RollBack {
        component: u32,
        number: u32,
        keys: Vec<Key>,
        values: Vec<Value>,
    },
}

impl OnSnapshot {
    /// The component.
    pub(crate) fn component(&self) -> u32 {
        match self {
            OnSnapshot::Make { component, .. }
            | OnSnapshot::Drop { component, .. }
            | OnSnapshot::RollBack { component, .. } => *component,
            OnSnapshot::Read { first, .. } => first.0,
        }
    }
}

impl World {
    /// Whether the group of this life has snapshots.
    fn has_snapshots(&self) -> bool {
        self.features.snapshots && self.superblocks[0].format > FORMAT_PLAIN
    }

    /// Between two lives, a group of the plain format is converted now and then.
    pub(crate) fn convert(&mut self) {
        let is_plain = self.superblocks[0].format == FORMAT_PLAIN;
        let is_wanted = (self.features.snapshots && is_plain && self.snapshots.random.chance(2, 3))
            || (is_plain && self.compressing.wants_conversion());
        if is_wanted {
            self.superblocks.iter_mut().for_each(|one| one.format = FORMAT_VERSION);
            self.note("converted", u64::from(FORMAT_VERSION));
        }
    }

    /// Begins an operation on a snapshot. False if another one is to begin.
    pub(crate) fn begin_on_snapshot(&mut self) -> bool {
        if !self.has_snapshots() {
            return false;
        }
        if let Some(component) = self.snapshots.quiet
            && !self.is_changing(component)
        {
            self.snapshots.quiet = None;
            return self.roll_back(component);
        }
        if self.begin_mark() {
            return true;
        }
        if !self.snapshots.random.chance(1, 8) {
            return false;
        }
        let live: Vec<u32> = self
            .components
            .iter()
            .filter(|(number, one)| one.key.is_some() && !is_plain_component(**number))
            .map(|(number, _)| *number)
            .collect();
        if live.is_empty() {
            return false;
        }
        let component = live[self.snapshots.random.below(live.len() as u64) as usize];
        let there = self.snapshots.of(component);
        if self.snapshots.is_quiet(component) || self.is_marking(component) {
            return false;
        }
        let has_layers = component >= FIRST;
        match self.snapshots.random.below(8) {
            0..2 if there.len() < LIVING_MAX[component as usize % 2] => match has_layers {
                true => return self.want_mark(component, false),
                false => self.make_snapshot(component),
            },
            // With few of them there are times without any.
            2 | 3 if !there.is_empty() && component % 2 == 1 => {
                self.drop_snapshot(component, there[0]);
            }
            2 if !there.is_empty() => {
                let number = there[self.snapshots.random.below(there.len() as u64) as usize];
                self.drop_snapshot(component, number);
            }
            _ if there.is_empty() => return false,
            4..7 if self.features.rollbacks && has_layers => return self.want_mark(component, true),
            4 if has_layers => return self.want_mark(component, true),
            4..7 if self.features.rollbacks && self.snapshots.quiet.is_none() => {
                self.snapshots.quiet = Some(component);
                return false;
            }
            4 if self.snapshots.quiet.is_none() && self.snapshots.random.chance(1, 2) => {
                self.snapshots.quiet = Some(component);
                return false;
            }
            _ => {
                let number = there[self.snapshots.random.below(there.len() as u64) as usize];
                let parts = u64::from(self.components[&component].parts);
                let part = match self.snapshots.random.chance(1, 2) {
                    true => 0,
                    false => self.snapshots.random.below(parts) as u32,
                };
                let count = [1, 16, 256][self.snapshots.random.below(3) as usize];
                let block = self.snapshots.random.below(257 - count) as u16;
                self.read_view(number, (component, part, block), count as u16);
            }
        }
        true
    }

    pub(crate) fn make_snapshot(&mut self, component: u32) {
        let last = self.snapshots.last_numbers.entry(component).or_default();
        // Numbers may be left out, as where an attempt failed on another host.
        *last += 1 + self.snapshots.random.below(2) as u32;
        let number = *last;
        let blocks = self.contents(component);
        self.snapshots.views.insert((component, number), View { standing: Standing::Coming, blocks });
        self.note_refusable(component, number);
        let id = self.next_id();
        self.ledger.begin_mark(self.components[&component].id, id);
        let key = self.components[&component].key.expect("only live components are used");
        let tag = tag_of(id);
        let operation = Operation::OnSnapshot(OnSnapshot::Make { component, number }, Some(id));
        self.submit(operation, |op| Input::Snapshot { op, component: key, number, id, tag });
    }

    /// What the content of each block of a component may be.
    fn contents(&self, component: u32) -> BTreeMap<(u32, u16), BTreeSet<Value>> {
        match component >= FIRST {
            true => self.holdings.settled_contents(component),
            false => self.model.possible(component),
        }
    }

    /// A snapshot is to be made or rolled back to: that may be refused if a rollback is in flight, or parts are still to be taken back, even if that has ended
    /// when the answer comes.
    fn note_refusable(&mut self, component: u32, number: u32) {
        let key = self.components[&component].key.expect("only live components are used");
        let is_in_flight = |operation: &Operation| matches!(operation, Operation::OnSnapshot(OnSnapshot::RollBack { component: of, .. }, _) if *of == component);
        let is_rolling_back = self.group.as_ref().is_some_and(|group| group.is_rolling_back(key));
        // Content that was damaged before it could be written again stands in the way.
        let is_damaged = component >= FIRST && (self.has_rot || self.has_bad_sectors());
        match is_rolling_back
            || is_damaged
            || self.may_be_held(component)
            || self.operations.values().any(is_in_flight)
        {
            true => self.snapshots.refusable.insert((component, number)),
            false => self.snapshots.refusable.remove(&(component, number)),
        };
    }

    /// Whether any change of a component is under way.
    pub(crate) fn is_changing(&self, component: u32) -> bool {
        self.operations.values().any(|operation| match operation {
            Operation::Write { keys, .. } => keys[0].0 == component,
            Operation::Delete { component: of } => *of == component,
            Operation::OnSnapshot(OnSnapshot::Read { .. }, _) => false,
            Operation::OnSnapshot(operation, _) => operation.component() == component,
            Operation::Read { .. } | Operation::Changed { .. } => false,
            Operation::Holding(_) => Self::is_ordering(operation, component),
            Operation::Create { .. } => false,
            Operation::Compress { .. } | Operation::Rewrite { .. } => false,
        })
    }

    /// Rolls a component back to its newest snapshot, if it is known what each block is in it.
    pub(crate) fn roll_back(&mut self, component: u32) -> bool {
        let Some(key) = self.components.get(&component).and_then(|one| one.key) else { return false };
        let Some(number) = self.snapshots.of(component).last().copied() else { return false };
        let is_newest =
            self.snapshots.views.range((component, number + 1)..(component + 1, 0)).next().is_none();
        let view = &self.snapshots.views[&(component, number)];
        let zeroes = BTreeSet::from([0]);
        let mut changes: Vec<(Key, Value)> = Vec::new();
        for (place, values) in self.contents(component) {
            let then = view.blocks.get(&place).unwrap_or(&zeroes);
            let (Some(value), 1, 1) = (then.first(), then.len(), values.len()) else { return false };
            let block = (component, place.0, place.1);
            if !values.contains(value) {
                // A write of what stands there anyway may be undecided since a crash.
                if self.model.is_busy(block) {
                    return false;
                }
                changes.push((block, *value));
            }
        }
        if !is_newest {
            return false; // One that is on its way, or was when the host crashed, may be there.
        }
        if component < FIRST {
            changes.iter().for_each(|(key, value)| self.model.begin(*key, *value));
        }
        self.note_refusable(component, number);
        let id = self.next_id();
        self.ledger.begin_mark(self.components[&component].id, id);
        let ((keys, values), tag) = (changes.into_iter().unzip(), tag_of(id));
        let operation = OnSnapshot::RollBack { component, number, keys, values };
        let operation = Operation::OnSnapshot(operation, Some(id));
        self.submit(operation, |op| Input::Rollback { op, component: key, number, id, tag });
        true
    }

    fn drop_snapshot(&mut self, component: u32, number: u32) {
        let view = self.snapshots.views.get_mut(&(component, number)).expect("it is there");
        view.standing = Standing::Going;
        let key = self.components[&component].key.expect("only live components are used");
        let operation = Operation::OnSnapshot(OnSnapshot::Drop { component, number }, None);
        self.submit(operation, |op| Input::DropSnapshot { op, component: key, number });
    }

    fn read_view(&mut self, snapshot: u32, first: Key, count: u16) {
        let (component, part, block) = first;
        let key = self.components[&component].key.expect("only live components are used");
        let operation = Operation::OnSnapshot(OnSnapshot::Read { number: snapshot, first, count }, None);
        self.submit(operation, |op| Input::Read {
            op,
            component: key,
            part,
            layer: 0,
            block,
            count,
            snapshot,
            verify: true,
        });
    }

    /// An operation on a snapshot ended; one that is a change has an id.
    pub(crate) fn on_snapshot_ended(
        &mut self,
        operation: &OnSnapshot,
        id: Option<WriteId>,
        result: Result<Completion, GroupError>,
    ) {
        let component = ComponentId(u64::from(operation.component()));
        match (id, &result) {
            (Some(id), Ok(_)) => self.ledger.end(component, id, Origin::Guest(tag_of(id)), (0, 0..0)),
            (Some(id), Err(error)) if *error != GroupError::DeviceLost => self.ledger.refuse(component, id),
            (_, _) => {}
        }
        if let (OnSnapshot::RollBack { keys, .. }, Some(id), Ok(_)) = (operation, id, &result) {
            for (_, part, block) in keys {
                let blocks = *block..*block + 1;
                self.ledger.end(component, id, Origin::Guest(tag_of(id)), (*part, blocks));
            }
        }
        if !matches!(operation, OnSnapshot::Read { .. } | OnSnapshot::Drop { .. }) {
            self.marking_ended(operation.component());
        }
        match result {
            Ok(Completion::Data(pieces, _)) => self.on_snapshot_done(operation, Some(&pieces)),
            Ok(_) => self.on_snapshot_done(operation, None),
            Err(error) => self.on_snapshot_failed(operation, error),
        }
    }

    /// An operation on a snapshot was answered.
    fn on_snapshot_done(&mut self, operation: &OnSnapshot, pieces: Option<&[Piece]>) {
        match (operation, pieces) {
            (OnSnapshot::Make { component, number }, None) => {
                if let Some(view) = self.snapshots.views.get_mut(&(*component, *number)) {
                    view.standing = Standing::There;
                }
                self.holdings.mark_ends(*component).unwrap_or_else(|why| self.fail(why));
            }
            (OnSnapshot::Drop { component, number }, None) => {
                self.snapshots.views.remove(&(*component, *number));
            }
            (OnSnapshot::RollBack { component, keys, values, .. }, None) => {
                if *component < FIRST {
                    keys.iter().for_each(|key| self.model.acknowledge(*key));
                } else {
                    self.holdings.mark_ends(*component).unwrap_or_else(|why| self.fail(why));
                    self.holdings.rolled_back(&with_values(keys, values));
                }
                self.snapshots.rolled_back += 1;
                let snapshots = &mut self.snapshots;
                let coming = snapshots.views.range((*component, 0)..(*component + 1, 0));
                let coming = coming.filter(|(_, view)| view.standing == Standing::Coming);
                snapshots.refusable.extend(coming.map(|(name, _)| *name));
            }
            (OnSnapshot::Read { number, first, count }, Some(pieces)) => {
                if let Err(why) = self.check_view(*number, *first, *count, pieces) {
                    self.fail(why);
                }
            }
            (other, _) => self.fail(format!("{other:?} was answered as something else")),
        }
    }

    fn check_view(&mut self, number: u32, first: Key, count: u16, pieces: &[Piece]) -> Result<(), String> {
        let bytes = joined_pieces(pieces);
        let (component, part, block) = first;
        // A view that is deleted meanwhile may still be read to its end.
        let Some(view) = self.snapshots.views.get_mut(&(component, number)) else { return Ok(()) };
        if bytes.len() != usize::from(count) * BLOCK_SIZE as usize {
            return Err(format!("a read of {count} blocks of a snapshot brought {} bytes", bytes.len()));
        }
        for (bytes, block) in bytes.chunks_exact(BLOCK_SIZE as usize).zip(block..) {
            let found = value_of(bytes)
                .map_err(|why| format!("snapshot {number} of {component}, {part}/{block}: {why}"))?;
            let allowed = view.blocks.entry((part, block)).or_insert_with(|| BTreeSet::from([0]));
            if !allowed.contains(&found) {
                return Err(format!(
                    "block {part}/{block} of snapshot {number} of component {component} reads as {found:x}, \
                     expected one of {allowed:x?}"
                ));
            }
            *allowed = BTreeSet::from([found]);
            self.snapshots.read_blocks += 1;
        }
        Ok(())
    }

    /// An operation on a snapshot failed.
    fn on_snapshot_failed(&mut self, operation: &OnSnapshot, error: GroupError) {
        let component = operation.component();
        let is_gone = |number: &u32| {
            let view = self.snapshots.views.get(&(component, *number));
            view.is_none_or(|view| view.standing != Standing::There)
        };
        let refusable = &self.snapshots.refusable;
        let is_refusable = |number: &u32| refusable.contains(&(component, *number));
        match (operation, error) {
            (OnSnapshot::RollBack { keys, values, .. }, GroupError::DeviceLost) if component >= FIRST => {
                self.holdings.lose_rollback(&with_values(keys, values));
                self.check_error(component, error);
            }
            (OnSnapshot::RollBack { keys, number, .. }, error) if error != GroupError::DeviceLost => {
                if component < FIRST {
                    keys.iter().for_each(|key| self.model.refuse(*key));
                }
                let is_fair = match error {
                    GroupError::SnapshotRefused => is_refusable(number),
                    // It was deleted while the rollback waited for its place in the log.
                    GroupError::NoSnapshot => is_gone(number),
                    _ => false,
                };
                if !is_fair {
                    self.check_error(component, error);
                }
            }
            (OnSnapshot::Make { number, .. }, GroupError::SnapshotRefused) if is_refusable(number) => {
                self.snapshots.views.remove(&(component, *number));
            }
            (OnSnapshot::Read { number, .. }, GroupError::NoSnapshot) if is_gone(number) => {}
            (OnSnapshot::Make { number, .. }, error) if error != GroupError::DeviceLost => {
                self.snapshots.views.remove(&(component, *number));
                self.check_error(component, error);
            }
            (_, error) => self.check_error(component, error),
        }
    }

    /// After opening: a snapshot that was made is there, one that was deleted is not, and what was under way happened or not.
    pub(crate) fn find_snapshots(&mut self) {
        let may_lose_pages = self.may_lose_pages();
        let group = self.group.as_ref().expect("a group is open");
        let mut gone = Vec::new();
        let mut wrong = None;
        for ((component, number), view) in &mut self.snapshots.views {
            let Some(found) = self.components.get(component) else {
                gone.push((*component, *number));
                continue;
            };
            let Some(key) = found.key else { continue };
            let is_there = group.snapshots(key).contains(number);
            match (view.standing, is_there) {
                (_, true) => view.standing = Standing::There,
                (Standing::Coming | Standing::Going, false) => gone.push((*component, *number)),
                (Standing::There, false) if may_lose_pages => gone.push((*component, *number)),
                (Standing::There, false) => {
                    wrong = Some(format!("snapshot {number} of component {component} is lost"));
                }
            }
        }
        gone.iter().for_each(|name| drop(self.snapshots.views.remove(name)));
        if let Some(why) = wrong {
            self.fail(why);
        }
    }

    /// Every block of every snapshot must read as it may, and the frames that are used are those that pages name.
    pub(crate) fn verify_snapshots(&mut self) -> Result<(), String> {
        if !self.has_snapshots() {
            return Ok(());
        }
        let names: Vec<(u32, u32)> = self.snapshots.views.keys().copied().collect();
        for (component, number) in names {
            let is_live = self.components.get(&component).is_some_and(|one| one.key.is_some());
            let is_there = self.snapshots.of(component).contains(&number);
            if !is_live || !is_there {
                continue;
            }
            for part in 0..self.components[&component].parts {
                self.read_view(number, (component, part, 0), 256);
            }
            self.settle()?;
        }
        self.verify_frames()
    }

    /// The frames that are used are those that pages name.
    pub(crate) fn verify_frames(&self) -> Result<(), String> {
        let group = self.group.as_ref().expect("a group is open");
        match group.frames_agree() {
            Some(false) if !self.may_lose_pages() => {
                Err("frames are used that no page names, or named and not used".to_owned())
            }
            Some(_) | None => self.verify_packed(group),
        }
    }

    /// What compressed blocks of components take is what pages tell.
    fn verify_packed(&self, group: &diskgroup::Group) -> Result<(), String> {
        match group.packed_agrees() {
            Some(false) if !self.may_lose_pages() => {
                Err("compressed blocks are not counted as pages tell".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Blocks with the values that a rollback gives them.
pub(crate) fn with_values(keys: &[Key], values: &[Value]) -> Vec<(Key, Value)> {
    keys.iter().copied().zip(values.iter().copied()).collect()
}
