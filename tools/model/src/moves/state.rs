//! Two granules of a block each, in two layouts of one component each.

use crate::parts::{Id, Set};

/// Granules.
pub const BLOCKS: usize = 2;
/// The place of the layout that the disk has when the move begins, and that of the layout that it gets.
pub const OLD: usize = 0;
/// See there.
pub const NEW: usize = 1;
/// Epochs at most; the first is 1.
pub const EPOCHS_MAX: usize = 3;
/// Writes of one owner at most, so that an id fits four bits.
pub const SEQUENCE_MAX: u8 = 3;

/// What a component keeps; all of it survives crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Component {
    /// The greatest epoch promised.
    pub promised: u8,
    /// The version of each block. A trim by a guest has an id; a trim by the move leaves nothing, as at first.
    pub stored: [Id; BLOCKS],
}

/// What the directory says of the move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Record {
    /// The owner's epoch.
    pub epoch: u8,
    /// Below it the new layout counts, from it on the old one.
    pub boundary: usize,
    /// Whether the boundary falls.
    pub is_back: bool,
}

impl Record {
    /// The place that counts for a block.
    pub fn truth(&self, block: usize) -> usize {
        if block < self.boundary { NEW } else { OLD }
    }

    /// The granule that comes next.
    pub fn granule(&self) -> Option<usize> {
        match self.is_back {
            true => self.boundary.checked_sub(1),
            false => (self.boundary < BLOCKS).then_some(self.boundary),
        }
    }

    /// The boundary beyond that granule.
    pub fn target(&self) -> usize {
        if self.is_back { self.boundary - 1 } else { self.boundary + 1 }
    }
}

/// How far an owner is with a granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Stage {
    /// None is under way.
    #[default]
    Idle,
    /// Writes go to both layouts.
    Begun,
    /// It is copied.
    Copied,
    /// Acknowledgements wait for both.
    CaughtUp,
    /// The record is asked to pass it.
    Asked,
}

/// A write under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Change {
    /// Its identity; zero: there is none.
    pub id: Id,
    /// What it writes.
    pub block: usize,
    /// The places that it goes to.
    pub to: Set,
    /// Where it has its lock.
    pub locked: Set,
    /// Who has it.
    pub reached: Set,
    /// Whether the guest knows that it is done.
    pub is_acknowledged: bool,
}

impl Change {
    /// Whether there is one, of a block.
    pub fn is_of(&self, block: usize) -> bool {
        self.is_under_way() && self.block == block
    }

    /// Whether there is one.
    pub fn is_under_way(&self) -> bool {
        self.id != Id::default()
    }
}

/// How far an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    /// There is no owner of this epoch, or nothing that it does matters any more.
    #[default]
    None,
    /// It is taking over.
    Opening,
    /// It serves.
    Serving,
}

/// What an owner keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Owner {
    /// How far it is.
    pub phase: Phase,
    /// The record as it read it last.
    pub seen: Record,
    /// See there.
    pub stage: Stage,
    /// Where the copy of the granule has its lock.
    pub copy_locked: Set,
    /// The write under way.
    pub change: Change,
    /// The trim under way: place and block.
    pub trim: Option<(usize, usize)>,
    /// Its last sequence number.
    pub sequence: u8,
    /// What the one before it left, for those who believe in it: whether the granule was copied, and the boundary that it expected.
    pub inherited: (bool, usize),
}

impl Owner {
    /// The granule under way.
    pub fn granule(&self) -> Option<usize> {
        if self.stage == Stage::Idle { None } else { self.seen.granule() }
    }
}

/// The world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The directory's record.
    pub record: Record,
    /// The boundary that a transaction sets once it takes effect. Another change of the record rules it out.
    pub asked: Option<usize>,
    /// The two places.
    pub places: [Component; 2],
    /// Owners by epoch; the first place stays empty.
    pub owners: [Owner; EPOCHS_MAX + 1],
    /// Which ids are of trims, by bit.
    pub trims: u16,
    /// Writes begun in all.
    pub writes: u8,
    /// How often the move was turned round.
    pub turns: u8,
    /// Per block, what a guest knows: acknowledged or read.
    pub known: [Id; BLOCKS],
    /// The greatest epoch that served.
    pub decided_by: u8,
}

impl State {
    /// An owner of epoch 1 serves; nothing was written or moved.
    pub fn first() -> State {
        let record = Record { epoch: 1, ..Record::default() };
        let mut owners = [Owner::default(); EPOCHS_MAX + 1];
        owners[1] = Owner { phase: Phase::Serving, seen: record, ..Owner::default() };
        State {
            record,
            asked: None,
            places: [Component { promised: 1, ..Component::default() }; 2],
            owners,
            trims: 0,
            writes: 0,
            turns: 0,
            known: [Id::default(); BLOCKS],
            decided_by: 1,
        }
    }

    /// Whether a version is a hole.
    pub fn is_hole(&self, id: Id) -> bool {
        id == Id::default() || self.trims >> id.0 & 1 == 1
    }

    /// Whether both places have promised an epoch and no greater one.
    pub fn is_open(&self, epoch: u8) -> bool {
        self.places.iter().all(|place| place.promised == epoch)
    }
}
