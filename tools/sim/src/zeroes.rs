//! A feature: some of what guests write are blocks of zeroes, and blocks with the checksum of zeroes that are none.
//!
//! Values of the latter are even and not 0, which no others are; `model::fill` gives them that checksum. No checksum tells such an
//! impostor from zeroes or another impostor in its place. So no crash puts these there (`device::Device::crash`), and one host,
//! whose groups never compare blocks with zeroes, has no impostors: where a log position is reused while it is read, a group tells by the checksum
//! alone that the block is another one.

use crate::model::Value;
use base::Random;

/// What becomes of the values of blocks that are about to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zeroes {
    /// Where choices come from; none: all values stay as they are.
    random: Option<Random>,
    has_impostors: bool,
}

impl Zeroes {
    /// Zeroes and impostors.
    pub(crate) fn new(random: Option<Random>) -> Zeroes {
        Zeroes { random, has_impostors: true }
    }

    /// Zeroes alone.
    pub(crate) fn without_impostors(random: Option<Random>) -> Zeroes {
        Zeroes { random, has_impostors: false }
    }

    /// Makes some of the values of one write those of zeroes or of impostors: all of them, or runs.
    pub(crate) fn mix_in(&mut self, values: &mut [Value]) {
        let Some(random) = &mut self.random else { return };
        let other = |value| if self.has_impostors { impostor(value) } else { value };
        match random.below(16) {
            0..4 => values.fill(0),
            4 => values.iter_mut().for_each(|value| *value = other(*value)),
            5 | 6 => {
                let mut at = 0;
                while at < values.len() {
                    let len = [1, 2, 15, 16, 17, 40][random.below(6) as usize];
                    let end = (at + len).min(values.len());
                    let run = &mut values[at..end];
                    at = end;
                    match random.below(4) {
                        0 | 1 => run.fill(0),
                        2 => run.iter_mut().for_each(|value| *value = other(*value)),
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
