//! What the model's world consists of, small enough to be copied and compared by the million.

use crate::parts::{Bits, Id, Set};

/// Blocks of the disk; all in one region.
pub const BLOCKS: usize = 2;
/// Components at most.
pub const COMPONENTS_MAX: usize = 3;
/// Epochs at most; the first is 1.
pub const EPOCHS_MAX: usize = 3;
/// Writes of one owner at most, so that an id fits four bits.
pub const SEQUENCE_MAX: u8 = 3;

/// What a component keeps; all of it survives crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Component {
    /// The greatest epoch promised.
    pub promised: u8,
    /// The write that stands in each block.
    pub stored: [Id; BLOCKS],
    /// All ids up to here are decided.
    pub watermark: Id,
}

impl Component {
    /// The greatest id applied in the region.
    pub fn region(&self) -> Id {
        self.stored.into_iter().max().unwrap_or_default()
    }
}

/// How far an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// There is no owner of this epoch.
    #[default]
    None,
    /// It is taking over.
    Opening,
    /// It serves.
    Serving,
}

/// What an owner keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// How far it is.
    pub phase: Phase,
    /// The components that it takes for active.
    pub active: Set,
    /// The write under way to each block; zero: none.
    pub pending: [Id; BLOCKS],
    /// Who has answered it.
    pub answered: [Set; BLOCKS],
    /// Its last sequence number.
    pub sequence: u8,
    /// The component in resync: none or one.
    pub resyncing: Set,
    /// Blocks that are copied to it, by bit.
    pub copied: u8,
    /// Whether acknowledgements wait for it.
    pub is_caught_up: bool,
    /// Blocks whose write under way is acknowledged, and which it may not have yet, by bit.
    pub trailing: u8,
}

impl Owner {
    /// Whether the write under way to a block is acknowledged already.
    pub fn is_trailing(&self, block: usize) -> bool {
        self.trailing >> block & 1 == 1
    }

    /// No write to the block is under way any more.
    pub fn end(&mut self, block: usize) {
        self.pending[block] = Id::default();
        self.trailing &= !(1 << block);
    }

    /// No component is in resync any more.
    pub fn end_resync(&mut self) {
        (self.resyncing, self.copied, self.is_caught_up) = (Set::default(), 0, false);
    }
}

/// The world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The directory's record: the epoch.
    pub epoch: u8,
    /// The directory's record: the active components.
    pub active: Set,
    /// The components.
    pub components: [Component; COMPONENTS_MAX],
    /// Owners by epoch; the first place stays empty.
    pub owners: [Owner; EPOCHS_MAX + 1],
    /// Writes on their way: a bit for each id and component.
    messages: u64,
    /// Which block each id writes, by bit.
    second_block: u16,
    /// Writes begun in all.
    pub writes: u8,
    /// Per block, the greatest id that a guest knows: acknowledged or read.
    pub known: [Id; BLOCKS],
    /// The greatest epoch that served, and what it found decided.
    pub decided_by: u8,
    /// See there.
    pub decided: [Id; BLOCKS],
}

impl State {
    /// An owner of epoch 1 serves; nothing was written.
    pub fn first(components: usize) -> State {
        let present = Component { promised: 1, watermark: Id::new(1, 0), ..Component::default() };
        // A component that is not there promises an epoch that nobody reaches.
        let absent = Component { promised: u8::MAX >> 4, ..Component::default() };
        let component = |place| if place < components { present } else { absent };
        let mut owners = [Owner::default(); EPOCHS_MAX + 1];
        owners[1] = Owner { phase: Phase::Serving, active: Set::first(components), ..Owner::default() };
        State {
            epoch: 1,
            active: Set::first(components),
            components: [0, 1, 2].map(component),
            owners,
            messages: 0,
            second_block: 0,
            writes: 0,
            known: [Id::default(); BLOCKS],
            decided_by: 1,
            decided: [Id::default(); BLOCKS],
        }
    }

    fn bit(id: Id, component: usize) -> u64 {
        1 << (id.0 as usize * COMPONENTS_MAX + component)
    }

    /// Sends a write to a component.
    pub fn send(&mut self, id: Id, block: usize, component: usize) {
        self.messages |= State::bit(id, component);
        self.second_block |= (block as u16) << id.0;
    }

    /// Takes a write off the wire.
    pub fn take(&mut self, id: Id, component: usize) {
        self.messages &= !State::bit(id, component);
    }

    /// Drops all writes on their way to a component of epochs below `epoch`.
    pub fn drop_older(&mut self, component: usize, epoch: u8) {
        for id in (0..16).map(Id).filter(|id| id.epoch() < epoch) {
            self.take(id, component);
        }
    }

    /// The writes on their way, with the block and the component of each.
    pub fn on_their_way(&self) -> impl Iterator<Item = (Id, usize, usize)> {
        let (messages, second_block) = (self.messages, self.second_block);
        let all = (4..16).map(Id).flat_map(|id| (0..COMPONENTS_MAX).map(move |component| (id, component)));
        all.filter(move |(id, component)| messages & State::bit(*id, *component) != 0)
            .map(move |(id, component)| (id, (second_block >> id.0 & 1) as usize, component))
    }

    /// A key that is the same for states which differ in the names of components and blocks only.
    pub fn key(&self) -> [u64; 5] {
        let mut live = 0u16;
        self.on_their_way().for_each(|(id, _, _)| live |= 1 << id.0);
        let turned = [0, 1].map(|turn| self.key_with_blocks(turn, live));
        turned[0].min(turned[1])
    }

    fn key_with_blocks(&self, turn: usize, live: u16) -> [u64; 5] {
        let blocks = || (0..BLOCKS).map(move |block| block ^ turn);
        let mut of_components = [0, 1, 2].map(|place| {
            let component = &self.components[place];
            let mut bits = Bits::default();
            bits.put(component.promised, 4);
            bits.put(component.watermark.0, 4);
            bits.put(u8::from(self.active.has(place)), 1);
            for block in blocks() {
                bits.put(component.stored[block].0, 4);
            }
            for owner in &self.owners[1..] {
                bits.put(u8::from(owner.active.has(place)), 1);
                bits.put(u8::from(owner.resyncing.has(place)), 1);
                blocks().for_each(|block| bits.put(u8::from(owner.answered[block].has(place)), 1));
            }
            for id in (4..16).map(Id) {
                bits.put(u8::from(self.messages & State::bit(id, place) != 0), 1);
            }
            bits.0
        });
        of_components.sort_unstable();
        let mut owners = Bits::default();
        owners.put(self.epoch, 4);
        for owner in &self.owners[1..] {
            owners.put(owner.phase as u8, 2);
            owners.put(owner.sequence, 2);
            owners.put(u8::from(owner.is_caught_up), 1);
            for block in blocks() {
                owners.put(owner.copied >> block & 1, 1);
                owners.put(owner.trailing >> block & 1, 1);
                owners.put(owner.pending[block].0, 4);
            }
        }
        let second_block = if turn == 0 { self.second_block } else { !self.second_block };
        let mut rest = Bits(u64::from(second_block & live));
        rest.put(self.writes, 3);
        rest.put(self.decided_by, 2);
        for block in blocks() {
            rest.put(self.known[block].0, 4);
            rest.put(self.decided[block].0, 4);
        }
        [of_components[0], of_components[1], of_components[2], owners.0, rest.0]
    }
}
