//! A feature: some of what guests write are blocks of zeroes, and blocks with the checksum of zeroes that are none.
//!
//! Values of the latter are even and not 0, which no others are; `model::fill` gives them that checksum.

use crate::model::Value;
use base::Random;

/// What becomes of the values of blocks that are about to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zeroes {
    /// Where choices come from; none: all values stay as they are.
    random: Option<Random>,
}

impl Zeroes {
    pub(crate) fn new(random: Option<Random>) -> Zeroes {
        Zeroes { random }
    }

    /// Makes some of the values of one write those of zeroes, or of blocks that have their checksum: of half of the writes all, or runs.
    pub(crate) fn mix_in(&mut self, values: &mut [Value]) {
        let Some(random) = &mut self.random else { return };
        match random.below(8) {
            0 | 1 => values.fill(0),
            2 => values.iter_mut().for_each(|value| *value = impostor(*value)),
            3 => {
                let mut at = 0;
                while at < values.len() {
                    let len = [1, 2, 15, 16, 17, 40][random.below(6) as usize];
                    let end = (at + len).min(values.len());
                    let run = &mut values[at..end];
                    at = end;
                    match random.below(4) {
                        0 | 1 => run.fill(0),
                        2 => run.iter_mut().for_each(|value| *value = impostor(*value)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// The value of a block that has the checksum of zeroes, of the value of an ordinary one.
fn impostor(value: Value) -> Value {
    assert!(value % 2 == 1, "values of ordinary blocks are odd");
    value ^ 3
}

/// Whether the block of a value has the checksum of zeroes and is none.
pub(crate) fn is_impostor(value: Value) -> bool {
    value != 0 && value.is_multiple_of(2)
}
