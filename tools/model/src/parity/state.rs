//! One column of a place with parity. Parity is not computed: a unit of parity is the list of versions that it counts.

use crate::parts::{Bits, Id, MEMBERS_MAX, Set};

/// Data members, and blocks of the column: block `b` is on member `b`. Parity members come after them.
pub const DATA: usize = 2;
/// Epochs at most; the first is 1.
pub const EPOCHS_MAX: usize = 3;
/// Writes of one owner at most, so that an id fits four bits.
pub const SEQUENCE_MAX: u8 = 3;
/// No copy, no base. No write has this id.
pub const NONE: Id = Id(3);

/// What a member keeps of the column. A data member uses the place of its own block alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// The version of the data, or the versions that parity counts.
    pub content: [Id; DATA],
    /// The base of a data member, or the copies of a parity member.
    pub layer: [Id; DATA],
}

/// What a member keeps; all of it survives crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The greatest epoch promised.
    pub promised: u8,
    /// All ids up to here are decided.
    pub watermark: Id,
    /// The column.
    pub unit: Unit,
    /// What a row write replaced that is not decided.
    pub replaced: Option<Unit>,
}

impl Member {
    /// The greatest id of anything in the column.
    pub fn version(&self) -> Id {
        let Unit { content, layer } = self.unit;
        content.into_iter().chain(layer).max().unwrap_or_default()
    }
}

/// What an owner is changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Nothing.
    #[default]
    None,
    /// One block.
    Small(usize),
    /// The whole column.
    Row,
}

/// A write under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// See there.
    pub kind: Kind,
    /// Its identity.
    pub id: Id,
    /// Who has it.
    pub reached: Set,
    /// Whether the guest knows that it is done.
    pub is_acknowledged: bool,
    /// The member that has no room for it, so that the others take it back.
    pub refused_by: Option<usize>,
    /// What others had as copy or newest version then, beside an older one; zero: they had one version only.
    pub former: Id,
}

/// A fold under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fold {
    /// Whether it adds differences to the former parity, and does not replace it.
    pub is_delta: bool,
    /// The versions that are counted then.
    pub counts: [Id; DATA],
    /// Who has the new parity.
    pub written: Set,
    /// Who has ended the copies, too.
    pub folded: Set,
}

/// A decoding read that has read parity, and the other block not yet: only where nothing excludes folds meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decode {
    /// What it wants.
    pub block: usize,
    /// What parity counted.
    pub counts: [Id; DATA],
    /// Whether parity had a copy of the other block.
    pub needs_base: bool,
}

/// How far an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// How far it is.
    pub phase: Phase,
    /// The members that it takes for active.
    pub active: Set,
    /// Its last sequence number.
    pub sequence: u8,
    /// The write under way.
    pub change: Change,
    /// The fold under way.
    pub fold: Option<Fold>,
    /// The member in resync: none or one.
    pub resyncing: Set,
    /// Whether the column is right on it.
    pub is_copied: bool,
    /// Whether acknowledgements wait for it.
    pub is_caught_up: bool,
}

impl Owner {
    /// Whom changes go to.
    pub fn addressed(&self) -> Set {
        self.active.or(self.resyncing)
    }

    /// The members whose column is right.
    pub fn right(&self) -> Set {
        if self.is_copied { self.addressed() } else { self.active }
    }

    /// No member is in resync any more.
    pub fn end_resync(&mut self) {
        (self.resyncing, self.is_copied, self.is_caught_up) = (Set::default(), false, false);
    }
}

/// The world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Members of the place.
    pub members_count: usize,
    /// The directory's record: the epoch.
    pub epoch: u8,
    /// The directory's record: the active members.
    pub active: Set,
    /// The members.
    pub members: [Member; MEMBERS_MAX],
    /// Owners by epoch; the first place stays empty.
    pub owners: [Owner; EPOCHS_MAX + 1],
    /// Which ids are of row writes, by bit.
    pub rows: u16,
    /// Writes begun in all.
    pub writes: u8,
    /// Per block, what a guest knows: acknowledged or read.
    pub known: [Id; DATA],
    /// The greatest epoch that served.
    pub decided_by: u8,
    /// See there.
    pub decode: Option<Decode>,
}

impl State {
    /// An owner of epoch 1 serves; nothing was written.
    pub fn first(parity: usize) -> State {
        let unit = Unit { content: [Id::default(); DATA], layer: [NONE; DATA] };
        let member = Member { promised: 1, watermark: Id::new(1, 0), unit, replaced: None };
        let members_count = DATA + parity;
        let active = Set::first(members_count);
        let mut owners = [Owner::default(); EPOCHS_MAX + 1];
        owners[1] = Owner { phase: Phase::Serving, active, ..Owner::default() };
        State {
            members_count,
            epoch: 1,
            active,
            members: [member; MEMBERS_MAX],
            owners,
            rows: 0,
            writes: 0,
            known: [Id::default(); DATA],
            decided_by: 1,
            decode: None,
        }
    }

    /// All parity members.
    pub fn parity(&self) -> Set {
        Set(Set::first(self.members_count).0 & !Set::first(DATA).0)
    }

    /// Whether an id is of a row write.
    pub fn is_row(&self, id: Id) -> bool {
        self.rows >> id.0 & 1 == 1
    }

    /// The newest version of a block on a member that has it.
    pub fn newest(&self, member: usize, block: usize) -> Id {
        let unit = &self.members[member].unit;
        match member >= DATA && unit.layer[block] != NONE {
            true => unit.layer[block],
            false => unit.content[block],
        }
    }

    /// Whether a parity member of these has a copy of a block.
    pub fn is_copied_on(&self, members: Set, block: usize) -> bool {
        members.and(self.parity()).iter().any(|member| self.members[member].unit.layer[block] != NONE)
    }

    /// Whether a data member has a base that no parity member counts.
    pub fn is_stale_base(&self, owner: &Owner, block: usize) -> bool {
        owner.addressed().has(block)
            && self.members[block].unit.layer[block] != NONE
            && !self.is_copied_on(owner.right(), block)
    }

    /// Whether some parity members have a copy of a block, and others do not.
    pub fn is_uneven(&self, owner: &Owner, block: usize) -> bool {
        let parity = owner.right().and(self.parity());
        let holders = parity.iter().filter(|member| self.members[*member].unit.layer[block] != NONE).count();
        holders != 0 && holders != parity.count()
    }

    /// The same for states which differ in the names of members and blocks only.
    pub fn key(&self) -> [u64; 8] {
        let turned = [0, 1].map(|turn| self.key_with_blocks(turn));
        turned[0].min(turned[1])
    }

    fn key_with_blocks(&self, turn: usize) -> [u64; 8] {
        let mut members = [0u64; MEMBERS_MAX];
        for (place, bits) in members.iter_mut().enumerate().take(self.members_count) {
            let member = if place < DATA { place ^ turn } else { place };
            *bits = self.key_of_member(member, turn);
        }
        members[DATA..].sort_unstable();
        let mut rest = Bits(0);
        let mut live = 0u16;
        for member in &self.members[..self.members_count] {
            let Unit { content, layer } = member.unit;
            content.into_iter().chain(layer).for_each(|id| live |= 1 << id.0);
        }
        (1..4).for_each(|epoch| rest.put(((self.rows & live) >> (epoch * 4 + 1)) as u8 & 7, 3));
        rest.put(self.epoch, 2);
        rest.put(self.writes, 3);
        rest.put(self.decided_by, 2);
        (0..DATA).for_each(|block| rest.put(self.known[block ^ turn].0, 4));
        if let Some(decode) = self.decode {
            rest.put(1, 1);
            rest.put((decode.block ^ turn) as u8, 1);
            rest.put(u8::from(decode.needs_base), 1);
            (0..DATA).for_each(|block| rest.put(decode.counts[block ^ turn].0, 4));
        }
        let owners = [1, 2, 3].map(|epoch| key_of_owner(&self.owners[epoch], turn));
        let [a, b, c, d] = members;
        [a, b, c, d, owners[0], owners[1], owners[2], rest.0]
    }

    fn key_of_member(&self, place: usize, turn: usize) -> u64 {
        let member = &self.members[place];
        let mut bits = Bits(1);
        bits.put(member.promised, 2);
        bits.put(member.watermark.0, 4);
        bits.put(u8::from(self.active.has(place)), 1);
        let units = [Some(member.unit), member.replaced];
        for unit in units.into_iter().flatten() {
            for block in (0..DATA).map(|block| block ^ turn) {
                bits.put(unit.content[block].0, 4);
                bits.put(unit.layer[block].0, 4);
            }
        }
        for owner in &self.owners[1..] {
            bits.put(u8::from(owner.active.has(place)), 1);
            bits.put(u8::from(owner.resyncing.has(place)), 1);
            bits.put(u8::from(owner.change.reached.has(place)), 1);
            bits.put(u8::from(owner.change.refused_by == Some(place)), 1);
            let fold = owner.fold.unwrap_or_default();
            bits.put(u8::from(fold.written.has(place)) + u8::from(fold.folded.has(place)), 2);
        }
        bits.0
    }
}

fn key_of_owner(owner: &Owner, turn: usize) -> u64 {
    let mut bits = Bits(0);
    bits.put(owner.phase as u8, 2);
    bits.put(owner.sequence, 2);
    let kind = match owner.change.kind {
        Kind::None => 0,
        Kind::Small(block) => 1 + (block ^ turn) as u8,
        Kind::Row => 3,
    };
    bits.put(kind, 2);
    bits.put(owner.change.id.0, 4);
    bits.put(owner.change.former.0, 4);
    bits.put(u8::from(owner.change.is_acknowledged), 1);
    bits.put(u8::from(owner.is_copied), 1);
    bits.put(u8::from(owner.is_caught_up), 1);
    if let Some(fold) = owner.fold {
        bits.put(2 + u8::from(fold.is_delta), 2);
        (0..DATA).for_each(|block| bits.put(fold.counts[block ^ turn].0, 4));
    }
    bits.0
}
