//! What the record says of a disk's snapshots, as far as replication needs it (docs/design/0047).

use base::DiskId;

/// Numbers of snapshots, as ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// First and last, ascending; none touches the next.
    ranges: Vec<(u32, u32)>,
}

impl Numbers {
    /// All from 1 to `last`; none if that is 0.
    pub fn through(last: u32) -> Numbers {
        Numbers { ranges: if last == 0 { Vec::new() } else { vec![(1, last)] } }
    }

    /// Those of ranges, first and last of each. None if a range is empty or touches the one before it.
    pub fn of_ranges(ranges: Vec<(u32, u32)>) -> Option<Numbers> {
        let is_ascending =
            ranges.windows(2).all(|two| two[0].1.checked_add(1).is_some_and(|end| end < two[1].0));
        let is_right = ranges.iter().all(|(first, last)| 0 < *first && first <= last);
        (is_ascending && is_right).then_some(Numbers { ranges })
    }

    /// First and last of each range, ascending.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether a number is among them.
    pub fn contains(&self, number: u32) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// Adds a number, which is among them or greater than all of them.
    pub fn add(&mut self, number: u32) {
        match self.ranges.last_mut() {
            Some((_, last)) if number <= *last => {}
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => self.ranges.push((number, number)),
        }
    }

    /// Without one of them, and without those that nobody means any more, so that few ranges are left.
    #[must_use]
    pub fn without(&self, number: u32, is_meant: impl Fn(u32) -> bool) -> Numbers {
        let mut left = Numbers::default();
        let all = self.ranges.iter().flat_map(|(first, last)| *first..=*last);
        all.filter(|one| *one != number && is_meant(*one)).for_each(|one| left.add(one));
        left
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

/// A snapshot of another disk that a disk shows wherever it has no region of its own: a clone (docs/design/0050). Stripe units of a clone are
/// multiples of a region, it has no parity and does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The disk of the snapshot.
    pub disk: DiskId,
    /// The snapshot's number.
    pub snapshot: u32,
    /// Bytes of it, from the first on, that the clone shows; beyond, it is an ordinary disk.
    pub size: u64,
}

/// Why a snapshot that was asked for was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// A device has no room for what belongs to it.
    #[error("a device that holds the disk has no room for another snapshot")]
    NoSpace,
    /// A disk group cannot take one.
    #[error(
        "a disk group that holds the disk takes no snapshot: the disk has as many there as it can, those that are being deleted among them"
    )]
    Refused,
    /// The disk has rows with parity, or moves into another layout.
    #[error("a disk with parity, or one that is being moved into another layout, cannot have snapshots yet")]
    Layout,
    /// The disk is to have it together with others, and changes would have had to wait for too long: until those of all disks were held back,
    /// or until the components had it.
    #[error("changes of the disk would have to wait for longer than 1 s until all disks have it")]
    NotHeld,
    /// The disk is to have it together with others, and a component, or its owner, was not ready for it.
    #[error("a copy of the disk, or the host that owns it, was not ready for it")]
    Unready,
}

/// How far a snapshot is that a disk is to have at one moment with others (docs/design/0047, "Several disks").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// The owner is to hold changes back, and to say so.
    Hold,
    /// The owner holds changes back, and nothing is under way.
    Held,
    /// All owners said so: this one is to take it, if it has held changes back all the time.
    Mark,
    /// All components that count have it, and changes go on. It is taken once it is so of all disks.
    Marked,
}

/// The snapshots of a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// The greatest number that was given to one, or to an attempt to take one. None is given twice.
    pub last: u32,
    /// The number of one that is asked for. The owner takes it, under this number or a later one.
    pub asked: Option<u32>,
    /// Why the last one that was asked for was not taken.
    pub not_taken: Option<NotTaken>,
    /// Those that were taken and are to be kept, ascending.
    pub taken: Vec<u32>,
    /// Whether components may have snapshots of smaller numbers besides: one was deleted, and the owner has not yet seen to that.
    pub to_sweep: bool,
    /// How far the one is that is asked for, if the disk is to have it together with others.
    pub together: Option<Together>,
}

impl Snapshots {
    /// Whether there is one with that number.
    pub fn has(&self, number: u32) -> bool {
        self.taken.binary_search(&number).is_ok()
    }

    /// Deletes one; false if there is none.
    pub fn delete(&mut self, number: u32) -> bool {
        let found = self.taken.binary_search(&number);
        found.map(|index| self.taken.remove(index)).inspect(|_| self.to_sweep = true).is_ok()
    }

    /// Whether there is something that an owner has to do.
    pub fn wants_owner(&self) -> bool {
        self.asked.is_some() || self.to_sweep
    }

    /// Asks for one; false if one is asked for already.
    pub fn ask(&mut self) -> bool {
        if self.asked.is_some() {
            return false;
        }
        self.last += 1;
        (self.asked, self.not_taken, self.together) = (Some(self.last), None, None);
        true
    }

    /// Asks for one that the disk is to have together with others; false if one is asked for already.
    pub fn ask_together(&mut self) -> bool {
        let is_asked = self.ask();
        self.together = if is_asked { Some(Together::Hold) } else { self.together };
        is_asked
    }

    /// Whether all components that count have the one that is asked for, and others decide whether it is taken.
    pub fn is_marked(&self, number: u32) -> bool {
        self.asked == Some(number) && self.together == Some(Together::Marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_one_range() {
        let mut numbers = Numbers::through(3);
        [3, 4, 7, 8, 10, 10].into_iter().for_each(|number| numbers.add(number));
        assert_eq!(numbers.ranges(), [(1, 4), (7, 8), (10, 10)]);
        let has: Vec<u32> = (0..12).filter(|number| numbers.contains(*number)).collect();
        assert_eq!(has, [1, 2, 3, 4, 7, 8, 10]);
        assert!(Numbers::through(0).is_empty());
        assert_eq!(numbers.without(3, |number| number < 8).ranges(), [(1, 2), (4, 4), (7, 7)]);
        assert_eq!(
            Numbers::of_ranges(numbers.ranges().to_vec()),
            Some(numbers),
            "a record of it can be read"
        );
    }

    #[test]
    fn ranges_are_ascending_and_apart() {
        assert!(Numbers::of_ranges(vec![(1, 4), (6, 6)]).is_some());
        for wrong in [
            vec![(0, 1)],
            vec![(3, 2)],
            vec![(1, 4), (5, 6)],
            vec![(5, 6), (1, 2)],
            vec![(1, u32::MAX), (3, 4)],
        ] {
            assert_eq!(Numbers::of_ranges(wrong.clone()), None, "{wrong:?}");
        }
    }

    #[test]
    fn one_is_asked_for_at_a_time_and_no_number_is_given_twice() {
        let mut snapshots = Snapshots { last: 4, taken: vec![2], ..Snapshots::default() };
        assert!(snapshots.ask() && !snapshots.ask());
        assert_eq!((snapshots.asked, snapshots.last), (Some(5), 5));
        assert!(snapshots.has(2) && !snapshots.has(5));
    }
}
