//! Waits of a machine's own disk, and which of them stood beside something.

use std::time::Instant;

/// The waits of a stretch of time, with when each began and ended.
#[derive(Debug, Default)]
pub struct Spell(Vec<(Instant, Instant)>);

impl Spell {
    /// Of these.
    pub fn new(waits: Vec<(Instant, Instant)>) -> Spell {
        Spell(waits)
    }

    /// The longest, milliseconds.
    pub fn longest_ms(&self) -> f64 {
        longest_ms(self.0.iter())
    }

    /// All of those together that are longer than so many milliseconds, milliseconds.
    pub fn over_ms(&self, least_ms: f64) -> f64 {
        self.0
            .iter()
            .map(|(began, ended)| (*ended - *began).as_secs_f64() * 1e3)
            .filter(|ms| *ms > least_ms)
            .fold(0.0, |all, ms| all + ms) // A sum of none is -0.
    }

    /// The longest of those that were under way at any moment from one to another, milliseconds.
    pub fn beside_ms(&self, from: Instant, to: Instant) -> f64 {
        longest_ms(self.0.iter().filter(|(began, ended)| *began < to && from < *ended))
    }
}

fn longest_ms<'a>(waits: impl Iterator<Item = &'a (Instant, Instant)>) -> f64 {
    let longest = waits.map(|(began, ended)| *ended - *began).max();
    longest.map_or(0.0, |longest| longest.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_under_way_beside_something_is_told_apart_from_what_was_not() {
        let now = Instant::now();
        let at = |ms: u64| now + Duration::from_millis(ms);
        let spell = Spell::new(vec![(at(0), at(7)), (at(10), at(400)), (at(500), at(530))]);
        assert_eq!((spell.longest_ms(), spell.over_ms(10.0)), (390.0, 420.0));
        let beside = [(8, 10), (0, 3), (399, 520), (520, 600), (531, 600)];
        assert_eq!(beside.map(|(from, to)| spell.beside_ms(at(from), at(to))), [0.0, 7.0, 390.0, 30.0, 0.0]);
    }
}
