//! A set of small numbers as bits: free extents, dirty extents.

/// Numbers below a fixed bound.
#[derive(Debug, Clone)]
pub(crate) struct BitSet {
    words: Vec<u64>,
    bound: u32,
    count: u32,
}

impl BitSet {
    pub(crate) fn new(bound: u32) -> BitSet {
        BitSet { words: vec![0; bound.div_ceil(64) as usize], bound, count: 0 }
    }

    /// Numbers up to a greater bound may be in it from now on.
    pub(crate) fn grow(&mut self, bound: u32) {
        assert!(bound >= self.bound, "a set does not shrink");
        self.bound = bound;
        self.words.resize(bound.div_ceil(64) as usize, 0);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Whether the number was not there before.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        assert!(number < self.bound, "a number lies below the set's bound");
        let word = &mut self.words[number as usize / 64];
        let is_new = *word >> (number % 64) & 1 == 0;
        *word |= 1 << (number % 64);
        if is_new {
            self.count += 1;
        }
        is_new
    }

    /// Whether the number was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let word = &mut self.words[number as usize / 64];
        let was_there = *word >> (number % 64) & 1 == 1;
        *word &= !(1 << (number % 64));
        // Not as arithmetic with the bit: LLVM 22.1 at -O2, without overflow checks, drops the decrement where two removals
        // of a number follow each other (`s.remove(5) && !s.remove(5)`).
        if was_there {
            self.count -= 1;
        }
        was_there
    }

    /// The smallest member that is at least `from`.
    pub(crate) fn next_from(&self, from: u32) -> Option<u32> {
        let mut index = from as usize / 64;
        let mut word = *self.words.get(index)? & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(index as u32 * 64 + word.trailing_zeros());
            }
            index += 1;
            word = *self.words.get(index)?;
        }
    }

    /// The members in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let next = self.next_from(from)?;
            from = next + 1;
            Some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_ascending_order() {
        let mut set = BitSet::new(1000);
        for number in [999, 0, 63, 64, 500, 64] {
            set.insert(number);
        }
        assert!(set.remove(500) && !set.remove(500));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 999]);
        assert_eq!((set.count(), set.next_from(65), set.contains(63)), (4, Some(999), true));
    }
}
