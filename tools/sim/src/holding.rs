//! What layers of a component hold beside its content (docs/design/0042): a load of holds, row writes, promotions, ends and folds on
//! components of their own, and an oracle that knows what each block may read as, and what may be held of it.
//!
//! An order takes effect as a whole or not at all. After a crash, what the group says to be held decides for all blocks of an order
//! that was under way whether it took effect.

use crate::holding_marks::Marking;
use crate::model::{Value, fill, value_of};
use crate::operation::Operation;
use crate::snapshots::{OnSnapshot, with_values};
use crate::world::{Component, World};
use base::request::{Buffers, Piece};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use base::{ComponentId, Random, WriteId};
use diskgroup::{Group, GroupError, HeldBlocks, Input, LayerRange, LayerRanges, Origin, ROW_LAYER};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;

/// Numbers of components with layers begin here.
pub(crate) const FIRST: u32 = 1_000_000;
/// Layers that hold, beside that of row writes.
const LAYERS: u64 = 3;
/// What is looked at of what a block may be once its device is lost.
const STATES_MAX: usize = 64;
/// Any id.
pub(crate) const NEWEST: WriteId = WriteId { epoch: u32::MAX, sequence: u64::MAX };

/// What a block may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) content: Value,
    /// By layer: what it holds, and since which change.
    pub(crate) layers: BTreeMap<u8, (Value, WriteId)>,
    /// Whether the row write that it holds may be settled at any time.
    pub(crate) is_row_decided: bool,
}

impl State {
    pub(crate) const EMPTY: State = State { content: 0, layers: BTreeMap::new(), is_row_decided: false };

    fn read(&self, layer: u8) -> Value {
        let held = |layer: u8| self.layers.get(&layer).map(|(value, _)| *value);
        held(ROW_LAYER).or_else(|| held(layer)).unwrap_or(self.content)
    }

    pub(crate) fn settle_row(&mut self) {
        if let Some((value, id)) = self.layers.remove(&ROW_LAYER) {
            self.content = value;
            self.layers.retain(|_, (_, other)| *other > id);
        }
        self.is_row_decided = false;
    }

    /// Whether the row write that it holds may be gone from what is held: it is decided, or changes nothing, as a trim of a part that has no content, or of
    /// which nobody knows any (`is_unknown`).
    fn may_be_settled(&self, is_unknown: bool) -> bool {
        let is_empty = self.content == 0 || is_unknown;
        let is_void = || is_empty && self.layers.len() == 1 && self.read(ROW_LAYER) == 0;
        self.layers.contains_key(&ROW_LAYER) && (self.is_row_decided || is_void())
    }

    /// Whether this is what the group says to be held.
    fn is_held(&self, held: &[(u8, WriteId, bool)]) -> bool {
        self.layers.iter().map(|(layer, (value, id))| (*layer, *id, *value == 0)).eq(held.iter().copied())
    }
}

/// What was asked for.
#[derive(Clone)]
pub(crate) enum Change {
    /// A write or a trim (0) of each block of a range, in a layer.
    Put {
        layer: u8,
        values: Vec<Value>,
    },
    Promote,
    End,
}

impl fmt::Debug for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Put { layer, values } => write!(formatter, "Put in {layer}, {:x} and on", values[0]),
            Change::Promote => formatter.write_str("Promote"),
            Change::End => formatter.write_str("End"),
        }
    }
}

/// An order under way.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) component: u32,
    pub(crate) part: u32,
    /// The blocks that are written; empty where none is.
    pub(crate) blocks: std::ops::Range<u16>,
    pub(crate) change: Change,
    pub(crate) id: WriteId,
    /// That of the blocks that it puts: no less than that of what a copy takes the place of.
    pub(crate) held_id: WriteId,
    pub(crate) origin: Origin,
    pub(crate) ranges: LayerRanges,
}

/// An operation on layers.
#[derive(Debug)]
pub(crate) enum Holding {
    Order(Box<Order>),
    Read { component: u32, part: u32, layer: u8, block: u16, count: u16, began: u64 },
}

impl Holding {
    /// The component.
    pub(crate) fn component(&self) -> u32 {
        match self {
            Holding::Order(order) => order.component,
            Holding::Read { component, .. } => *component,
        }
    }
}

impl Order {
    /// All blocks that it may change.
    fn span(&self) -> std::ops::Range<u16> {
        let ranges = self.ranges.iter().map(|range| range.block..range.block + range.count);
        let all = ranges.chain(std::iter::once(self.blocks.clone()).filter(|own| !own.is_empty()));
        all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    /// Whether it shows that a row write of the block is decided, without being about that.
    fn shows_decided(&self, block: u16) -> bool {
        let of_block = |range: &&LayerRange| (range.block..range.block + range.count).contains(&block);
        let is_own = self.blocks.contains(&block);
        let names_rows = self.ranges.iter().filter(of_block).any(|range| range.layer == ROW_LAYER);
        (is_own || self.ranges.iter().any(|range| of_block(&range))) && !names_rows
    }

    /// What a block is after it.
    fn apply(&self, before: &State, block: u16) -> State {
        let mut state = before.clone();
        let of_block = |range: &&LayerRange| (range.block..range.block + range.count).contains(&block);
        let ranges = || self.ranges.iter().filter(of_block);
        let is_own = self.blocks.contains(&block);
        if self.shows_decided(block) {
            state.settle_row();
        }
        for LayerRange { layer, through, .. } in ranges() {
            let Some((value, _)) = state.layers.get(layer).filter(|(_, id)| id <= through).copied() else {
                continue;
            };
            match self.change {
                Change::Promote if *layer == ROW_LAYER => state.settle_row(),
                Change::Promote => {
                    state.content = value;
                    state.layers.remove(layer);
                }
                Change::Put { .. } | Change::End => drop(state.layers.remove(layer)),
            }
        }
        if let Change::Put { layer, values } = &self.change
            && is_own
        {
            let value = values[usize::from(block - self.blocks.start)];
            match layer {
                0 => state.content = value,
                _ => {
                    let id = state.layers.get(layer).map_or(self.held_id, |(_, id)| self.held_id.max(*id));
                    state.layers.insert(*layer, (value, id));
                }
            }
        }
        state
    }
}

/// One block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// What it may be.
    pub(crate) states: Vec<State>,
    /// What it may be once the order under way has taken effect.
    next: Option<Vec<State>>,
    /// When it was last changed, by the oracle's clock.
    pub(crate) changed: u64,
}

impl Default for Block {
    fn default() -> Block {
        Block { states: vec![State::EMPTY], next: None, changed: 0 }
    }
}

/// The oracle.
#[derive(Debug)]
pub(crate) struct Holdings {
    pub(crate) random: Random,
    pub(crate) blocks: BTreeMap<(u32, u32, u16), Block>,
    pub(crate) clock: u64,
    next_component: u32,
    /// The component that is to have a mark.
    pub(crate) marking: Option<Marking>,
    /// Orders of the former life whose end nobody knows.
    unknown: Vec<Order>,
}

impl Holdings {
    pub(crate) fn new(random: Random) -> Holdings {
        let (blocks, unknown) = (BTreeMap::new(), Vec::new());
        Holdings { random, blocks, clock: 0, next_component: FIRST, marking: None, unknown }
    }

    fn begin(&mut self, order: &Order) {
        for block in order.span() {
            let state = self.blocks.entry((order.component, order.part, block)).or_default();
            assert!(state.next.is_none(), "the load keeps to one order of a block at a time");
            for before in state.states.iter_mut().filter(|_| order.shows_decided(block)) {
                before.is_row_decided = before.layers.contains_key(&ROW_LAYER);
            }
            let mut next: Vec<State> = Vec::new();
            for after in state.states.iter().map(|before| order.apply(before, block)) {
                if !next.contains(&after) {
                    next.push(after);
                }
            }
            state.next = Some(next);
        }
    }

    /// An order has taken effect.
    fn end(&mut self, order: &Order) {
        self.clock += 1;
        for block in order.span() {
            let state = self.blocks.get_mut(&(order.component, order.part, block)).expect("it began");
            state.states = state.next.take().expect("it began");
            state.changed = self.clock;
        }
    }

    /// An order was refused.
    fn refuse(&mut self, order: &Order) {
        for block in order.span() {
            let state = self.blocks.get_mut(&(order.component, order.part, block)).expect("it began");
            state.next = None;
        }
    }

    /// Nobody knows whether an order has taken effect.
    fn lose(&mut self, order: &Order) {
        for block in order.span() {
            let state = self.blocks.get_mut(&(order.component, order.part, block)).expect("it began");
            // Nobody asks for what a lost device has.
            let next = state.next.take().filter(|_| state.states.len() < STATES_MAX);
            state.states.extend(next.into_iter().flatten());
        }
    }

    /// All row writes up to a watermark are decided.
    pub(crate) fn decide(&mut self, component: u32, watermark: WriteId) {
        let of_component = self.blocks.range_mut((component, 0, 0)..(component + 1, 0, 0));
        for state in
            of_component.flat_map(|(_, block)| block.states.iter_mut().chain(block.next.iter_mut().flatten()))
        {
            if state.layers.get(&ROW_LAYER).is_some_and(|(_, id)| *id <= watermark) {
                state.is_row_decided = true;
            }
        }
    }

    /// Compares what the group holds of a part with what it may hold.
    fn check_held(
        &mut self,
        (component, part): (u32, u32),
        held: &[HeldBlocks],
        is_unknown: bool,
    ) -> Result<(), String> {
        let by_block = by_block(held);
        let blocks = self.blocks.range_mut((component, part, 0)..(component, part + 1, 0));
        for ((_, _, number), block) in blocks.filter(|(_, block)| block.next.is_none()) {
            let held = by_block.get(number).map_or(&[][..], |held| held);
            let mut possible = Vec::new();
            for state in &block.states {
                let mut settled = state.clone();
                if state.may_be_settled(is_unknown) {
                    settled.settle_row();
                }
                for candidate in [state.clone(), settled] {
                    if candidate.is_held(held) && !possible.contains(&candidate) {
                        possible.push(candidate);
                    }
                }
            }
            if possible.is_empty() {
                return Err(format!(
                    "block {number} of part {part} of {component}: held are {held:?}, expected {:?}",
                    block.states
                ));
            }
            block.states = possible;
        }
        let is_known = |number: &&u16| self.blocks.contains_key(&(component, part, **number));
        match by_block.keys().find(|number| !is_known(number)) {
            Some(number) => {
                Err(format!("block {number} of part {part} of {component} is held and never was"))
            }
            None => Ok(()),
        }
    }

    /// After a crash: what is held tells whether the orders that were under way took effect, each as a whole.
    fn resolve(&mut self, order: &Order, held: &[HeldBlocks], is_unknown: bool) -> Result<(), String> {
        let by_block = by_block(held);
        let is_possible = |states: &[State], held: &[(u8, WriteId, bool)]| {
            states.iter().any(|state| {
                let mut settled = state.clone();
                settled.settle_row();
                state.is_held(held) || (state.may_be_settled(is_unknown) && settled.is_held(held))
            })
        };
        let (mut before, mut after) = (None, None);
        for number in order.span() {
            let block = &self.blocks[&(order.component, order.part, number)];
            let held = by_block.get(&number).map_or(&[][..], |held| held);
            let next = block.next.as_deref().unwrap_or_default();
            match (is_possible(&block.states, held), is_possible(next, held)) {
                (true, true) => {}
                (true, false) => before = Some(number),
                (false, true) => after = Some(number),
                (false, false) => {
                    return Err(format!("block {number}, {order:?}: held are {held:?}, expected {block:?}"));
                }
            }
        }
        if let (Some(before), Some(after)) = (before, after) {
            return Err(format!("{order:?} took effect on block {after} and not on block {before}"));
        }
        for number in order.span() {
            let block = self.blocks.get_mut(&(order.component, order.part, number)).expect("it began");
            let next = block.next.take().unwrap_or_default();
            match (before, after) {
                (None, Some(_)) => block.states = next,
                (Some(_), _) => {}
                (None, None) => block.states.extend(next),
            }
        }
        Ok(())
    }

    fn check_read(
        &mut self,
        key: (u32, u32, u16),
        layer: u8,
        found: Value,
        began: u64,
    ) -> Result<(), String> {
        let block = self.blocks.entry(key).or_default();
        if block.changed > began {
            return Ok(());
        }
        let fits = |state: &State| state.read(layer) == found;
        match &block.next {
            Some(next) if block.states.iter().chain(next).any(fits) => Ok(()),
            None if block.states.iter().any(fits) => {
                block.states.retain(fits);
                Ok(())
            }
            Some(_) | None => {
                Err(format!("layer {layer} of block {key:?} reads as {found:x}, expected {block:?}"))
            }
        }
    }
}

/// By member: whether a page is lost that may have told of any part.
fn has_lost_extents(group: &Group) -> Vec<bool> {
    group.state().members.iter().map(|member| member.lost_extents > 0).collect()
}

/// What is held, by block: layer, id, and whether it is trimmed.
fn by_block(held: &[HeldBlocks]) -> BTreeMap<u16, Vec<(u8, WriteId, bool)>> {
    let mut blocks: BTreeMap<u16, Vec<(u8, WriteId, bool)>> = BTreeMap::new();
    for run in held {
        for block in u16::from(run.block)..u16::from(run.block) + run.count {
            blocks.entry(block).or_default().push((run.layer, run.id, run.is_trim));
        }
    }
    blocks.values_mut().for_each(|held| held.sort_unstable());
    blocks
}

impl World {
    /// Begins an operation on layers, if the run has any and it is its turn. Says whether it did.
    pub(crate) fn begin_holding(&mut self) -> bool {
        if !self.features.holding || !self.holdings.random.chance(1, 2) {
            return false;
        }
        let live: Vec<u32> =
            self.components.range(FIRST..).filter(|(_, one)| one.key.is_some()).map(|(n, _)| *n).collect();
        if live.is_empty() || (live.len() < 3 && self.holdings.random.chance(1, 40)) {
            self.create_holding();
            return true;
        }
        let number = live[self.holdings.random.below(live.len() as u64) as usize];
        match self.holdings.random.below(100) {
            0..67 | 97.. if self.is_marking(number) => return false,
            0..30 => self.begin_put(number, true),
            30..42 => self.begin_put(number, false),
            42..50 => self.begin_fold(number),
            50..60 => self.begin_order(number, Change::Promote),
            60..67 => self.begin_order(number, Change::End),
            67..86 => self.begin_layer_read(number),
            86..92 => self.settle_holding(number),
            92..97 => self.check_holding(number),
            97..99 => self.begin_changed(number),
            _ if self.holdings.random.chance(1, 4) => self.begin_delete(number),
            _ => {}
        }
        true
    }

    fn create_holding(&mut self) {
        let number = self.holdings.next_component;
        let parts = self.holdings.random.range(2..8) as u32;
        let members = self.members_for_components();
        if members.is_empty() {
            return;
        }
        self.holdings.next_component += 1;
        let member = members[self.holdings.random.below(members.len() as u64) as usize];
        self.submit_create(number, member, parts, 0);
    }

    /// Blocks of a component whose regions no order is under way in.
    fn pick_blocks(&mut self, number: u32) -> Option<(u32, std::ops::Range<u16>)> {
        let random = &mut self.holdings.random;
        let parts = u64::from(self.components[&number].parts);
        let part = if random.chance(1, 2) { 0 } else { random.below(parts) as u32 };
        let count = [1, 1, 1, 2, 4, 16, 64][random.below(7) as usize];
        let count = if random.chance(1, 20) { 256 } else { count };
        // Few blocks, so that orders meet what is held.
        let first = if count < 64 { random.below(64) } else { random.below(257 - count) };
        let blocks = first as u16..(first + count) as u16;
        (!self.is_locked(number, part, &blocks)).then_some((part, blocks))
    }

    fn is_locked(&self, number: u32, part: u32, blocks: &std::ops::Range<u16>) -> bool {
        let regions = |blocks: &std::ops::Range<u16>| {
            usize::from(blocks.start) / BLOCKS_PER_REGION..=(usize::from(blocks.end) - 1) / BLOCKS_PER_REGION
        };
        let mine = regions(blocks);
        self.operations.values().any(|operation| match operation {
            Operation::Holding(Holding::Order(order)) => {
                let theirs = regions(&order.span());
                (order.component, order.part) == (number, part)
                    && mine.start() <= theirs.end()
                    && theirs.start() <= mine.end()
            }
            _ => false,
        })
    }

    /// Ranges of layers, some of them with a bound.
    fn pick_ranges(&mut self, blocks: &std::ops::Range<u16>, with_rows: bool) -> LayerRanges {
        let count = self.holdings.random.range(1..3);
        let mut ranges = LayerRanges::new();
        for _ in 0..count {
            let is_bound = self.holdings.random.chance(1, 6);
            let through = if is_bound { self.earlier_id() } else { NEWEST };
            let random = &mut self.holdings.random;
            let layer = match with_rows && random.chance(1, 3) {
                true => ROW_LAYER,
                false => 1 + random.below(LAYERS) as u8,
            };
            let first = random.below(u64::from(blocks.end - blocks.start)) as u16;
            let block = if random.chance(1, 2) { blocks.start } else { blocks.start + first };
            ranges.push(LayerRange { layer, block, count: blocks.end - block, through });
        }
        ranges
    }

    pub(crate) fn submit_order(&mut self, order: Order, data: Buffers) {
        let Order { component: number, part, id, origin, .. } = order;
        let ranges = order.ranges.clone();
        let component = self.components[&number].key.expect("only live components are used");
        if let (Change::Put { .. }, Origin::Guest(_)) = (&order.change, origin) {
            self.ledger.begin(self.components[&number].id, id);
        }
        self.holdings.begin(&order);
        let (block, count) = (order.blocks.start, order.blocks.len() as u16);
        let change = order.change.clone();
        self.submit(Operation::Holding(Holding::Order(Box::new(order))), |op| match change {
            Change::Promote => Input::Promote { op, component, part, ranges },
            Change::End => Input::End { op, component, part, ranges },
            Change::Put { layer, .. } if data.is_empty() => {
                Input::Trim { op, component, part, layer, block, count, id, origin }
            }
            Change::Put { layer, .. } => {
                let (checksums, ends) = (SmallVec::new(), ranges);
                Input::Write { op, component, part, layer, block, data, id, origin, checksums, ends }
            }
        });
    }

    /// A write or a trim of some blocks in a layer, or of their content.
    fn put(
        &mut self,
        number: u32,
        (part, blocks): (u32, std::ops::Range<u16>),
        layer: u8,
        ranges: LayerRanges,
    ) {
        let random = &mut self.holdings.random;
        let is_trim = ranges.is_empty() && random.chance(1, 5);
        let is_copy = layer != ROW_LAYER && random.chance(1, 5);
        let mut values: Vec<Value> =
            blocks.clone().map(|_| if is_trim { 0 } else { random.bits() >> 16 | 1 }).collect();
        self.compressing.mix_in(&mut values);
        let mut data = Buffers::new();
        if !is_trim {
            let Some(mut buffer) = self.pool.take(values.len() * BLOCK_SIZE as usize) else { return };
            let bytes = buffer.bytes_mut().chunks_exact_mut(BLOCK_SIZE as usize);
            bytes.zip(&values).for_each(|(bytes, value)| fill(*value, bytes));
            data.push(buffer);
        }
        let id = if is_copy { self.earlier_id() } else { self.next_id() };
        let origin = if is_copy { Origin::Copy } else { Origin::Guest(crate::load::tag_of(id)) };
        let values_len = values.len();
        let change = Change::Put { layer, values };
        let mut held_id = id;
        if is_copy && layer > 0 {
            let states = self.holdings.blocks.range((number, part, blocks.start)..(number, part, blocks.end));
            let states = || states.clone().flat_map(|(_, block)| &block.states);
            let held = states().filter_map(|state| state.layers.get(&layer).map(|(_, id)| *id)).max();
            held_id = id.max(held.unwrap_or_default());
            let has_row = states().any(|state| state.layers.contains_key(&ROW_LAYER));
            let is_known = states().count() <= values_len && !has_row;
            if held_id > id && !is_known {
                return; // Nobody knows what the copy takes the place of.
            }
        }
        let order = Order { component: number, part, blocks, change, id, held_id, origin, ranges };
        self.submit_order(order, data);
    }

    fn begin_put(&mut self, number: u32, is_held: bool) {
        let Some(place) = self.pick_blocks(number) else { return };
        let random = &mut self.holdings.random;
        let layer = match is_held {
            true if random.chance(1, 4) => ROW_LAYER,
            true => 1 + random.below(LAYERS) as u8,
            false => 0,
        };
        self.put(number, place, layer, LayerRanges::new());
    }

    /// New content, and the end of what it counts.
    fn begin_fold(&mut self, number: u32) {
        let Some((part, blocks)) = self.pick_blocks(number) else { return };
        let ranges = self.pick_ranges(&blocks, false);
        self.put(number, (part, blocks), 0, ranges);
    }

    fn begin_order(&mut self, number: u32, change: Change) {
        let Some((part, blocks)) = self.pick_blocks(number) else { return };
        let is_end = matches!(change, Change::End);
        let mut ranges = self.pick_ranges(&blocks, true);
        // What is decided is not dropped.
        let drops = |range: &LayerRange| is_end && range.layer == ROW_LAYER;
        let is_decided = |block: u16| {
            let block = self.holdings.blocks.get(&(number, part, block));
            block.is_some_and(|block| block.states.iter().any(|state| state.is_row_decided))
        };
        ranges.retain(|range| !(drops(range) && (range.block..range.block + range.count).any(is_decided)));
        if ranges.is_empty() {
            return;
        }
        let order = Order {
            component: number,
            part,
            blocks: 0..0,
            change,
            id: WriteId::default(),
            held_id: WriteId::default(),
            origin: Origin::Copy,
            ranges,
        };
        self.submit_order(order, Buffers::new());
    }

    fn begin_layer_read(&mut self, number: u32) {
        let random = &mut self.holdings.random;
        let parts = u64::from(self.components[&number].parts);
        let part = if random.chance(1, 2) { 0 } else { random.below(parts) as u32 };
        let layer = random.below(LAYERS + 1) as u8;
        let count = [1, 4, 32, 256][random.below(4) as usize];
        let block = if count == 256 { 0 } else { random.below(80) as u16 };
        self.read_layer(number, part, layer, block, count);
    }

    fn read_layer(&mut self, number: u32, part: u32, layer: u8, block: u16, count: u16) {
        let component = self.components[&number].key.expect("only live components are used");
        let began = self.holdings.clock;
        let operation = Holding::Read { component: number, part, layer, block, count, began };
        let read = |op| Input::Read { op, component, part, layer, block, count, snapshot: 0, verify: true };
        self.submit(Operation::Holding(operation), read);
    }

    /// The group is told a watermark, which decides row writes.
    fn settle_holding(&mut self, number: u32) {
        let key = self.components[&number].key.expect("only live components are used");
        let drops_rows = |operation: &Operation| match operation {
            Operation::Holding(Holding::Order(order)) => {
                let is_end = matches!(order.change, Change::End) && order.component == number;
                is_end && order.ranges.iter().any(|range| range.layer == ROW_LAYER)
            }
            _ => false,
        };
        if self.operations.values().any(drops_rows) {
            return; // What is being dropped is not decided.
        }
        self.begin_settle(number);
        let watermark = self.group.as_ref().map(|group| group.watermark(key)).unwrap_or_default();
        self.holdings.decide(number, watermark);
    }

    /// Asks what is held of a part.
    fn check_holding(&mut self, number: u32) {
        let Component { parts, key, member, .. } = self.components[&number];
        let Some(key) = key.filter(|_| (self.dead_members | self.given_up) & (1 << member | 1) == 0) else {
            return;
        };
        let part = self.holdings.random.below(u64::from(parts)) as u32;
        let Some(group) = &self.group else { return };
        let (held, is_unknown) = (group.held(key, part), has_lost_extents(group)[usize::from(member)]);
        let checked = self.holdings.check_held((number, part), &held, is_unknown);
        checked.unwrap_or_else(|why| self.fail(why));
    }

    /// An operation on layers ended well.
    pub(crate) fn holding_done(&mut self, holding: Holding, pieces: Option<&[Piece]>) {
        match (holding, pieces) {
            (Holding::Order(order), None) => {
                self.holdings.end(&order);
                if let Change::Put { .. } = order.change {
                    let id = ComponentId(u64::from(order.component));
                    self.ledger.end(id, order.id, order.origin, (order.part, order.blocks));
                }
            }
            (Holding::Read { component, part, layer, block, count, began }, Some(pieces)) => {
                let bytes = crate::model::joined_pieces(pieces);
                if bytes.len() != usize::from(count) * BLOCK_SIZE as usize {
                    return self.fail(format!("a read of {count} blocks brought {} bytes", bytes.len()));
                }
                for (number, bytes) in (block..).zip(bytes.chunks_exact(BLOCK_SIZE as usize)) {
                    let checked = value_of(bytes).and_then(|found| {
                        self.holdings.check_read((component, part, number), layer, found, began)
                    });
                    if let Err(why) = checked {
                        return self.fail(why);
                    }
                }
            }
            (holding, _) => self.fail(format!("{holding:?} was answered wrongly")),
        }
    }

    /// An operation on layers failed. What was refused has not happened; of what a lost device failed nobody knows.
    pub(crate) fn holding_failed(&mut self, holding: &Holding, error: GroupError) {
        if let Holding::Read { component, part, block, count: 1, .. } = holding
            && error == GroupError::Damaged
        {
            self.damaged_alone.insert((*component, *part, *block));
        }
        self.check_error(holding.component(), error);
        let Holding::Order(order) = holding else { return };
        if error == GroupError::DeviceLost {
            self.holdings.lose(order);
        } else {
            if let (Change::Put { .. }, Origin::Guest(_)) = (&order.change, order.origin) {
                self.ledger.refuse(ComponentId(u64::from(order.component)), order.id);
            }
            self.holdings.refuse(order);
        }
    }

    /// The host crashed: nobody knows of the orders under way.
    pub(crate) fn crash_holdings(&mut self) {
        self.holdings.marking = None;
        for operation in self.operations.values() {
            if let Operation::Holding(Holding::Order(order)) = operation {
                self.holdings.unknown.push(Order::clone(order));
            }
            if let Operation::OnSnapshot(OnSnapshot::RollBack { component: FIRST.., keys, values, .. }, _) =
                operation
            {
                self.holdings.lose_rollback(&with_values(keys, values));
            }
        }
    }

    /// After opening: what is held is what was, and orders took effect as a whole or not at all.
    pub(crate) fn find_holdings(&mut self) {
        let Some(group) = &self.group else { return };
        let losses = has_lost_extents(group);
        let mut checked = Ok(());
        let is_lost = |component: &Component| {
            (self.dead_members | self.given_up) >> component.member & 1 == 1 || component.key.is_none()
        };
        for order in std::mem::take(&mut self.holdings.unknown) {
            let Some(component) = self.components.get(&order.component) else { continue };
            match component.key.filter(|_| !is_lost(component)) {
                Some(key) => {
                    let held = group.held(key, order.part);
                    let is_unknown = losses[usize::from(component.member)];
                    checked = checked.and_then(|()| self.holdings.resolve(&order, &held, is_unknown));
                }
                // Its device may be away: then nobody can tell.
                None => self.holdings.lose(&order),
            }
        }
        for (number, component) in self.components.range(FIRST..).filter(|(_, one)| !is_lost(one)) {
            let Some(key) = component.key else { continue };
            for part in 0..component.parts {
                let held = group.held(key, part);
                let is_unknown = losses[usize::from(component.member)];
                checked = checked.and_then(|()| self.holdings.check_held((*number, part), &held, is_unknown));
            }
        }
        checked.unwrap_or_else(|why| self.fail(why));
    }

    /// Every block that layers ever held reads as it may, in each layer.
    pub(crate) fn verify_holdings(&mut self) -> Result<(), String> {
        let mut parts: Vec<(u32, u32)> = self.holdings.blocks.keys().map(|key| (key.0, key.1)).collect();
        parts.dedup();
        for (number, part) in parts {
            for layer in 0..=LAYERS as u8 {
                let is_live = self.components.get(&number).is_some_and(|component| component.key.is_some());
                if !is_live {
                    continue;
                }
                self.read_layer(number, part, layer, 0, 256);
                if self.has_rot || self.has_bad_sectors() {
                    (0..256).for_each(|block| self.read_layer(number, part, layer, block, 1));
                }
                self.settle()?;
            }
        }
        Ok(())
    }
}
