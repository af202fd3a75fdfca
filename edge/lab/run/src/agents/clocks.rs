//! How far another machine's clock is from ours.

/// The offset of a clock, and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Its reading less ours, in nanoseconds.
    pub ns: i64,
    /// The true offset is within this of it, in nanoseconds.
    pub error_ns: u64,
}

impl Offset {
    /// From exchanges (asked at, its reading, answered at), ours in nanoseconds: the reading was taken at some moment between,
    /// so the exchange that took the shortest tells most.
    pub fn of(exchanges: &[(u64, u64, u64)]) -> Option<Offset> {
        let &(asked, reading, answered) =
            exchanges.iter().min_by_key(|(asked, _, answered)| answered - asked)?;
        let took = answered - asked;
        let middle = asked + took / 2;
        Some(Offset { ns: reading.wrapping_sub(middle) as i64, error_ns: took / 2 + 1 })
    }

    /// What that clock shows when ours shows `time`.
    pub fn there(self, time: u64) -> u64 {
        time.wrapping_add_signed(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_within_its_error_however_the_way_is_divided() {
        for there in [5_000_000u64, 90_000_000_000] {
            for (way, back) in [(10, 990), (500, 500), (990, 10)] {
                let ours = 1_000_000u64;
                let reading = there + way;
                let offset =
                    Offset::of(&[(ours, reading, ours + way + back), (0, 77, 1_000_000)]).expect("exchanges");
                let true_offset = (there as i64) - (ours as i64);
                assert!(offset.ns.abs_diff(true_offset) <= offset.error_ns, "{offset:?} of {true_offset}");
                assert!(offset.error_ns <= 501);
                assert_eq!(offset.there(ours), ours.wrapping_add_signed(offset.ns));
            }
        }
        assert_eq!(Offset::of(&[]), None);
    }
}
