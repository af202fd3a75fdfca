//! What the models' states are made of: ids of writes, sets of members, bits of a key.

use std::fmt;

/// Members at most, in any model.
pub const MEMBERS_MAX: usize = 4;

/// A write's identity, ordered by epoch, then sequence. Zero: never written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub u8);

impl Id {
    /// The id of a write; sequence 0 stands before an epoch's first write.
    pub fn new(epoch: u8, sequence: u8) -> Id {
        Id(epoch << 2 | sequence)
    }

    /// The epoch of its owner.
    pub fn epoch(self) -> u8 {
        self.0 >> 2
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch(), self.0 & 3)
    }
}

/// A set of components.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Set(pub u8);

impl Set {
    /// The first `count` components.
    pub fn first(count: usize) -> Set {
        Set((1 << count) - 1)
    }

    /// One component alone.
    pub fn only(component: usize) -> Set {
        Set(1 << component)
    }

    /// Whether it is in.
    pub fn has(self, component: usize) -> bool {
        self.0 >> component & 1 == 1
    }

    /// With it.
    pub fn with(self, component: usize) -> Set {
        Set(self.0 | 1 << component)
    }

    /// Without it.
    pub fn without(self, component: usize) -> Set {
        Set(self.0 & !(1 << component))
    }

    /// What is in either.
    pub fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// What is in both.
    pub fn and(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    /// Whether all of `other` are in.
    pub fn covers(self, other: Set) -> bool {
        self.0 & other.0 == other.0
    }

    /// How many are in.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether none is in.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The components in it.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MEMBERS_MAX).filter(move |component| self.has(*component))
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Bits one after the other.
#[derive(Default)]
pub struct Bits(pub u64);

impl Bits {
    /// Appends the low `bits` of a value, which has no others.
    pub fn put(&mut self, value: u8, bits: u32) {
        self.0 = self.0 << bits | u64::from(value);
    }
}
