//! A pattern's lines as kinds of I/O, so that the same mix is one list however it is written.

use plan::{Pattern, Size, Think};

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Read,
    Write,
    Trim,
}

/// One kind of I/O: percent of all, and how much of it is random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    pub(crate) operation: Operation,
    pub(crate) size: Size,
    pub(crate) align: Option<u64>,
    pub(crate) think: Option<Think>,
    /// Percent of all I/Os.
    pub(crate) weight: f64,
    /// Percent of this kind.
    pub(crate) random: f64,
}

/// The kinds of I/O of a pattern, each once, in the order of operations and of the lines.
pub(crate) fn parts(pattern: &Pattern) -> Vec<Part> {
    let total: f64 = pattern.lines.iter().map(|line| line.weight).sum();
    let mut parts: Vec<Part> = Vec::new();
    for operation in [Operation::Read, Operation::Write, Operation::Trim] {
        for line in &pattern.lines {
            let share = match operation {
                Operation::Read => line.reads,
                Operation::Write => line.writes(),
                Operation::Trim => line.trims,
            };
            let weight = line.weight / total * share;
            if weight <= 0.0 {
                continue;
            }
            // An alignment matters to random I/Os, and one of the I/O's own size is none.
            let own = Some(line.size.min());
            let align = line.align.filter(|_| line.random > 0.0 && line.align != own);
            let part =
                Part { operation, size: line.size, align, think: line.think, weight, random: line.random };
            let known = parts.iter_mut().find(|known| {
                (known.operation, known.size, known.think) == (operation, line.size, line.think)
                    && (known.align == align)
            });
            match known {
                Some(known) => {
                    let sum = known.weight + weight;
                    // Equal shares stay what they are: their mean may differ by rounding.
                    if known.random != line.random {
                        known.random = (known.random * known.weight + line.random * weight) / sum;
                    }
                    known.weight = sum;
                }
                None => parts.push(part),
            }
        }
    }
    parts
}

/// The nearest whole number, if the number is one but for rounding.
pub(crate) fn whole(number: f64) -> Option<u64> {
    let rounded = number.round();
    ((number - rounded).abs() < 1e-6 && (0.0..1e18).contains(&rounded)).then_some(rounded as u64)
}
