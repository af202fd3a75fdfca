//! Components with layers that have snapshots, too (docs/design/0053): what layers hold is promoted or ended before a mark is asked for, and undecided row writes are
//! decided by it.

use crate::holding::{Change, FIRST, Holding, Holdings, NEWEST, Order, State};
use crate::model::{Key, Value};
use crate::operation::Operation;
use crate::world::World;
use base::WriteId;
use base::request::Buffers;
use diskgroup::{LayerRange, LayerRanges, Origin, ROW_LAYER};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a component has layers, and neither snapshots nor compression.
pub(crate) fn is_plain_component(number: u32) -> bool {
    number >= FIRST && number.is_multiple_of(3)
}

/// What is to come once nothing is held of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Make,
    RollBack,
}

/// The component that is to have a mark. Nothing more is held of it until that is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marking {
    component: u32,
    mark: Mark,
    /// Whether the mark is on its way.
    is_sent: bool,
}

impl Holdings {
    /// What the content of each block of a component may be once its row writes are decided.
    pub(crate) fn settled_contents(&self, component: u32) -> BTreeMap<(u32, u16), BTreeSet<Value>> {
        let blocks = self.blocks.range((component, 0, 0)..(component + 1, 0, 0));
        let settled = |state: &State| {
            let mut state = state.clone();
            state.settle_row();
            state.content
        };
        blocks
            .map(|((_, part, number), block)| ((*part, *number), block.states.iter().map(settled).collect()))
            .collect()
    }

    /// A mark is on its way: row writes may be decided from now on.
    fn mark_begins(&mut self, component: u32) {
        self.decide(component, NEWEST);
    }

    /// A mark was answered: nothing is held.
    pub(crate) fn mark_ends(&mut self, component: u32) -> Result<(), String> {
        if component < FIRST {
            return Ok(());
        }
        for (key, block) in self.blocks.range_mut((component, 0, 0)..(component + 1, 0, 0)) {
            let before = block.states.clone();
            block.states.iter_mut().for_each(State::settle_row);
            block.states.retain(|state| state.layers.is_empty());
            if block.states.is_empty() {
                return Err(format!("a mark was made while block {key:?} was held: {before:?}"));
            }
        }
        Ok(())
    }

    /// A rollback gives blocks another content.
    pub(crate) fn rolled_back(&mut self, keys: &[(Key, Value)]) {
        self.clock += 1;
        for (key, value) in keys {
            let block = self.blocks.get_mut(key).expect("it was written");
            block.states = vec![State { content: *value, ..State::EMPTY }];
            block.changed = self.clock;
        }
    }

    /// Nobody knows whether a rollback has taken effect.
    pub(crate) fn lose_rollback(&mut self, keys: &[(Key, Value)]) {
        for (key, value) in keys {
            let block = self.blocks.get_mut(key).expect("it was written");
            block.states.push(State { content: *value, ..State::EMPTY });
        }
    }
}

impl World {
    /// Whether what layers of a component hold stays as it is.
    pub(crate) fn is_marking(&self, number: u32) -> bool {
        self.holdings.marking.is_some_and(|marking| marking.component == number)
    }

    /// A mark of a component was answered, or its component is gone.
    pub(crate) fn marking_ended(&mut self, number: u32) {
        self.holdings.marking.take_if(|marking| marking.component == number);
    }

    /// A component with layers is to have a snapshot, or to be rolled back to its newest one.
    pub(crate) fn want_mark(&mut self, component: u32, rolls_back: bool) -> bool {
        let mark = if rolls_back { Mark::RollBack } else { Mark::Make };
        if self.holdings.marking.is_none() {
            self.holdings.marking = Some(Marking { component, mark, is_sent: false });
        }
        false
    }

    /// Prepares the mark that is wanted, or asks for it. False if another operation is to begin.
    pub(crate) fn begin_mark(&mut self) -> bool {
        let Some(Marking { component, mark, is_sent: false }) = self.holdings.marking else { return false };
        let Some(key) = self.components.get(&component).and_then(|one| one.key) else {
            self.holdings.marking = None;
            return false;
        };
        if self.is_changing(component) {
            return false;
        }
        let group = self.group.as_ref().expect("a group is open");
        let is_layer = |layer: u8| layer != ROW_LAYER;
        let held: Vec<(u32, LayerRanges)> = group
            .held_parts(key)
            .into_iter()
            .map(|part| {
                let held = group.held(key, part).into_iter().filter(|held| is_layer(held.layer));
                let range = |held: diskgroup::HeldBlocks| LayerRange {
                    layer: held.layer,
                    block: u16::from(held.block),
                    count: held.count,
                    through: NEWEST,
                };
                (part, held.map(range).collect::<LayerRanges>())
            })
            .filter(|(_, ranges)| !ranges.is_empty())
            .collect();
        let is_bold = self.holdings.random.chance(1, 12);
        if let Some((part, ranges)) = held.into_iter().next().filter(|_| !is_bold) {
            self.settle_part(component, part, ranges);
            return true;
        }
        if let Some(marking) = &mut self.holdings.marking {
            marking.is_sent = true;
        }
        let is_asked = match mark {
            Mark::Make => {
                self.make_snapshot(component);
                true
            }
            Mark::RollBack => self.roll_back(component),
        };
        match is_asked {
            true => self.holdings.mark_begins(component),
            false => self.holdings.marking = None,
        }
        is_asked
    }

    /// Promotes or ends what layers hold of a part.
    fn settle_part(&mut self, component: u32, part: u32, mut ranges: LayerRanges) {
        let count = self.holdings.random.range(1..ranges.len() as u64 + 1) as usize;
        ranges.truncate(count);
        let change = if self.holdings.random.chance(1, 2) { Change::Promote } else { Change::End };
        let (id, held_id, blocks) = (WriteId::default(), WriteId::default(), 0..0);
        let origin = Origin::Copy;
        let order = Order { component, part, blocks, change, id, held_id, origin, ranges };
        self.submit_order(order, Buffers::new());
    }

    /// Whether layers of a component hold anything but row writes, or may.
    pub(crate) fn may_be_held(&self, component: u32) -> bool {
        component >= FIRST
            && self.holdings.blocks.range((component, 0, 0)..(component + 1, 0, 0)).any(|(_, block)| {
                block.states.iter().any(|state| state.layers.keys().any(|layer| *layer != ROW_LAYER))
            })
    }

    /// Whether an order of a component's layers is under way.
    pub(crate) fn is_ordering(operation: &Operation, component: u32) -> bool {
        matches!(operation, Operation::Holding(Holding::Order(order)) if order.component == component)
    }
}
