//! The stretch of a disk that its owner knows to be empty, from answers of components.
//!
//! Clients ask about 4 GiB at most, one request after the other, and a range of a wide stripe stands in hundreds of
//! places. So after an answer that is one hole the owner asks about more than was requested, and answers the next
//! requests from what it knows.
//!
//! All changes of a disk go through its owner. So a stretch stays empty until a change of it begins here, as long as
//! the same owner serves the same layout. Leases decide, each time, whether the owner may answer.

use std::ops::Range;

/// Most bytes asked about beyond a request. Changes in the stretch wait for the answer.
const AHEAD_MAX: u64 = 1 << 41;

/// The owner and the layout that the knowledge holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reign {
    pub(crate) owner: u64,
    pub(crate) layout: u64,
}

/// The state when a question began: its answer is valid only if no change has begun since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    reign: Reign,
    changes: u64,
}

/// The stretch of a disk that is known to be empty.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    known: Option<(Reign, Range<u64>)>,
    /// Changes of the disk that have begun.
    changes: u64,
    /// Fewest bytes of the next question.
    ahead: u64,
}

impl Holes {
    /// A change begins.
    pub(crate) fn changed(&mut self, range: Range<u64>) {
        self.changes += 1;
        let is_hit = |known: &Range<u64>| known.start < range.end && range.start < known.end;
        if self.known.as_ref().is_some_and(|(_, known)| is_hit(known)) {
            self.known = None;
        }
    }

    /// The end of the known hole at `at`; `None` if it is not known to be empty.
    pub(crate) fn end_of(&self, at: u64, reign: Reign) -> Option<u64> {
        let (of, known) = self.known.as_ref()?;
        (*of == reign && known.contains(&at)).then_some(known.end)
    }

    /// A question begins: the stamp for its answer, and its fewest bytes.
    pub(crate) fn ask(&self, reign: Reign) -> (Stamp, u64) {
        (Stamp { reign, changes: self.changes }, self.ahead)
    }

    /// The answer to a question: all of the stretch is empty.
    pub(crate) fn learn(&mut self, stamp: Stamp, empty: Range<u64>) {
        self.ahead = ((empty.end - empty.start) * 2).min(AHEAD_MAX);
        if stamp.changes == self.changes {
            self.known = Some((stamp.reign, empty));
        }
    }

    /// The answer to a question: something is allocated.
    pub(crate) fn learn_of_data(&mut self) {
        self.ahead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REIGN: Reign = Reign { owner: 1, layout: 1 };

    fn known(range: Range<u64>) -> Holes {
        let mut holes = Holes::default();
        let (stamp, ahead) = holes.ask(REIGN);
        assert_eq!(ahead, 0);
        holes.learn(stamp, range);
        holes
    }

    #[test]
    fn an_empty_stretch_is_known_until_a_change_of_it_begins() {
        let mut holes = known(10..20);
        assert_eq!((holes.end_of(9, REIGN), holes.end_of(10, REIGN)), (None, Some(20)));
        assert_eq!((holes.end_of(19, REIGN), holes.end_of(20, REIGN)), (Some(20), None));
        holes.changed(5..10);
        holes.changed(20..30);
        assert_eq!(holes.end_of(15, REIGN), Some(20), "beside it");
        holes.changed(19..20);
        assert_eq!(holes.end_of(15, REIGN), None);
    }

    #[test]
    fn an_answer_during_which_a_change_began_is_no_knowledge() {
        let mut holes = Holes::default();
        let (stamp, _) = holes.ask(REIGN);
        holes.changed(500..501);
        holes.learn(stamp, 10..20);
        assert_eq!(holes.end_of(10, REIGN), None);
    }

    #[test]
    fn another_owner_or_layout_knows_nothing() {
        let holes = known(10..20);
        for reign in [Reign { owner: 2, ..REIGN }, Reign { layout: 2, ..REIGN }] {
            assert_eq!(holes.end_of(10, reign), None);
        }
    }

    #[test]
    fn holes_have_more_asked_about_and_data_ends_that() {
        let mut holes = known(0..1 << 32);
        for _ in 0..20 {
            let (stamp, ahead) = holes.ask(REIGN);
            holes.learn(stamp, 0..ahead);
        }
        assert_eq!(holes.ask(REIGN).1, AHEAD_MAX);
        holes.learn_of_data();
        assert_eq!(holes.ask(REIGN).1, 0);
    }
}
