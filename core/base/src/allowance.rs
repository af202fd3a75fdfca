//! How much of a bounded store work of one kind may hold while it waits for more of it.
//!
//! Work that holds memory and waits for more may wait for memory that other such work holds, which waits for what this one holds. Work that begins
//! only while there is an allowance left for all that it will hold never does.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes that work of one kind may have under way. Clones share them. Belongs to one thread, as a [`crate::Pool`] does.
#[derive(Debug, Clone)]
pub struct Allowance {
    bytes_max: u64,
    used: Rc<Cell<u64>>,
}

impl Allowance {
    /// An allowance of so many bytes, of which none is used.
    pub fn new(bytes_max: u64) -> Allowance {
        Allowance { bytes_max, used: Rc::default() }
    }

    /// Whether work that will hold so many bytes fits. The first one always does: what is larger than the allowance goes alone.
    pub fn fits(&self, bytes: u64) -> bool {
        self.used.get() == 0 || self.used.get() + bytes <= self.bytes_max
    }

    /// Counts work that begins, whether it fits or not, until what this gives is dropped.
    pub fn take(&self, bytes: u64) -> Share {
        self.used.set(self.used.get() + bytes);
        Share { bytes, used: Rc::clone(&self.used) }
    }

    /// Bytes that are used.
    pub fn used(&self) -> u64 {
        self.used.get()
    }
}

/// What one piece of work has of an [`Allowance`]. It goes back when this is dropped.
#[derive(Debug)]
pub struct Share {
    bytes: u64,
    used: Rc<Cell<u64>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.set(self.used.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_begins_and_what_is_larger_goes_alone() {
        let allowance = Allowance::new(10);
        assert!(allowance.fits(11), "nothing else is under way");
        let large = allowance.take(11);
        assert!(!allowance.fits(0));
        drop(large);
        let shares = [allowance.take(4), allowance.clone().take(4)];
        assert_eq!(allowance.used(), 8);
        assert!(allowance.fits(2) && !allowance.fits(3), "clones share it");
        drop(shares);
        assert_eq!(allowance.used(), 0);
    }
}
