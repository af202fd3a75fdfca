//! The arithmetic of parity: RAID-5 and RAID-6 over GF(2^8) with the polynomial 0x11d, as Linux `md` and ISA-L have it.
//!
//! A row has `k` data units and one or two parity units, all of one length; the code works byte by byte. P is the sum of the data
//! units, Q the sum of unit `d` times 2^d. Every unit is thus a sum of data units with known coefficients, and any one can be had from
//! `k` others. There are no tables: products are sums of doublings, which the compiler does for many bytes at once.
//!
//! Source: H. P. Anvin, "The mathematics of RAID-6" (<https://www.kernel.org/pub/linux/kernel/people/hpa/raid6.pdf>). Must never know
//! where a unit stands (that is `rows`).

/// What is added where a doubling overflows: the polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;
/// Data units of a row at most.
pub const DATA_MAX: usize = 4;
/// Parity units of a row at most.
pub const PARITY_MAX: usize = 2;
/// Units of a row at most.
pub const UNITS_MAX: usize = DATA_MAX + PARITY_MAX;

/// How many data and parity units a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    data: u8,
    parity: u8,
}

/// One unit of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Data, by its number in the row, in the order of the disk.
    Data(u8),
    /// Parity: P is 0, Q is 1.
    Parity(u8),
}

/// Coefficients of the units of a row, by [`Code::index`]; zero: the unit is not needed.
pub type Coefficients = [u8; UNITS_MAX];

impl Code {
    /// RAID-5 over three members.
    pub const TWO_AND_ONE: Code = Code { data: 2, parity: 1 };
    /// RAID-5 over four members.
    pub const THREE_AND_ONE: Code = Code { data: 3, parity: 1 };
    /// RAID-6 over six members.
    pub const FOUR_AND_TWO: Code = Code { data: 4, parity: 2 };
    /// All that a disk may have.
    pub const ALL: [Code; 3] = [Code::TWO_AND_ONE, Code::THREE_AND_ONE, Code::FOUR_AND_TWO];

    /// The code of so many units, if it is one of [`Code::ALL`].
    pub fn new(data: u8, parity: u8) -> Option<Code> {
        Code::ALL.into_iter().find(|code| (code.data, code.parity) == (data, parity))
    }

    /// Data units of a row.
    pub fn data(self) -> u8 {
        self.data
    }

    /// Parity units of a row: members that may be lost.
    pub fn parity(self) -> u8 {
        self.parity
    }

    /// Members: units of a row.
    pub fn members(self) -> u8 {
        self.data + self.parity
    }

    /// All units, data first.
    pub fn units(self) -> impl Iterator<Item = Unit> {
        (0..self.data).map(Unit::Data).chain((0..self.parity).map(Unit::Parity))
    }

    /// The number of a unit among all of the row, data first.
    pub fn index(self, unit: Unit) -> usize {
        match unit {
            Unit::Data(number) => usize::from(number),
            Unit::Parity(number) => usize::from(self.data + number),
        }
    }

    /// What a parity unit counts a data unit with.
    pub fn coefficient(self, parity: u8, data: u8) -> u8 {
        assert!(parity < self.parity && data < self.data, "a unit lies in its row");
        if parity == 0 { 1 } else { 1 << data }
    }

    /// A unit as a sum of data units.
    fn vector(self, unit: Unit) -> [u8; DATA_MAX] {
        let mut vector = [0; DATA_MAX];
        match unit {
            Unit::Data(number) => vector[usize::from(number)] = 1,
            Unit::Parity(number) => {
                for data in 0..self.data {
                    vector[usize::from(data)] = self.coefficient(number, data);
                }
            }
        }
        vector
    }

    /// With which coefficients these units add up to a wanted one; one that is among them is itself alone. None if they are too few.
    /// Of more than are needed the first are taken.
    pub fn decode(self, wanted: Unit, units: &[Unit]) -> Option<Coefficients> {
        let mut coefficients = [0; UNITS_MAX];
        if units.contains(&wanted) {
            coefficients[self.index(wanted)] = 1;
            return Some(coefficients);
        }
        let count = usize::from(self.data);
        let sources = units.get(..count)?;
        // One equation for each data unit: what the sources count it with, and what the wanted one does.
        let mut equations = [[0u8; DATA_MAX + 1]; DATA_MAX];
        for (column, source) in sources.iter().enumerate() {
            for (row, counted) in self.vector(*source).into_iter().enumerate() {
                equations[row][column] = counted;
            }
        }
        for (row, counted) in self.vector(wanted).into_iter().enumerate() {
            equations[row][count] = counted;
        }
        solve(&mut equations, count)?;
        for (column, source) in sources.iter().enumerate() {
            coefficients[self.index(*source)] = equations[column][count];
        }
        Some(coefficients)
    }
}

/// Gauss and Jordan: the last of `count + 1` columns becomes the solution. None if there is no single one.
fn solve(equations: &mut [[u8; DATA_MAX + 1]; DATA_MAX], count: usize) -> Option<()> {
    for step in 0..count {
        let pivot = (step..count).find(|row| equations[*row][step] != 0)?;
        equations.swap(step, pivot);
        let inverse = inverse(equations[step][step]);
        equations[step] = equations[step].map(|value| product(value, inverse));
        let reduced = equations[step];
        for (row, equation) in equations.iter_mut().enumerate().take(count) {
            let factor = equation[step];
            if row != step {
                for (value, other) in equation.iter_mut().zip(reduced) {
                    *value ^= product(other, factor);
                }
            }
        }
    }
    Some(())
}

/// Twice a value.
fn doubled(value: u8) -> u8 {
    // All ones where the highest bit was set: a choice without a branch, so that the compiler can do many at once.
    let overflow = ((value as i8) >> 7) as u8;
    value << 1 ^ overflow & POLYNOMIAL
}

/// With which weights equations add up to one of their unknowns alone: `counted` has by unknown what each equation counts it with. None if
/// there are no such weights.
pub fn weights(counted: &[[u8; PARITY_MAX]], wanted: usize) -> Option<[u8; PARITY_MAX]> {
    let mut rows: Vec<([u8; PARITY_MAX], u8)> =
        counted.iter().enumerate().map(|(index, row)| (*row, u8::from(index == wanted))).collect();
    let (mut weights, mut solved) = ([0; PARITY_MAX], 0);
    for column in 0..PARITY_MAX {
        let Some(pivot) = (solved..rows.len()).find(|row| rows[*row].0[column] != 0) else { continue };
        rows.swap(solved, pivot);
        let (row, sum) = rows[solved];
        let factor = inverse(row[column]);
        let reduced = (row.map(|value| product(value, factor)), product(sum, factor));
        rows[solved] = reduced;
        for (_, (row, sum)) in rows.iter_mut().enumerate().filter(|(index, _)| *index != solved) {
            let factor = row[column];
            row.iter_mut().zip(reduced.0).for_each(|(value, other)| *value ^= product(other, factor));
            *sum ^= product(reduced.1, factor);
        }
        weights[column] = solved as u8 + 1;
        solved += 1;
    }
    let is_solved = rows[solved..].iter().all(|(_, sum)| *sum == 0);
    is_solved.then(|| weights.map(|row| if row == 0 { 0 } else { rows[usize::from(row) - 1].1 }))
}

/// The product of two values.
pub fn product(value: u8, factor: u8) -> u8 {
    let (mut sum, mut value) = (0, value);
    for bit in 0..u8::BITS {
        if factor >> bit & 1 == 1 {
            sum ^= value;
        }
        value = doubled(value);
    }
    sum
}

/// The value whose product with this one, which is not zero, is one: the 254th power.
fn inverse(value: u8) -> u8 {
    assert!(value != 0, "zero has no inverse");
    (0..7)
        .fold((value, 1u8), |(square, power), _| {
            let square = product(square, square);
            (square, product(power, square))
        })
        .1
}

/// Adds a source times a coefficient to a sum of the same length.
pub fn add(sum: &mut [u8], source: &[u8], coefficient: u8) {
    assert!(sum.len() == source.len(), "units of a row are of one length");
    if coefficient == 1 {
        return sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
    }
    // Through a small buffer, so that it stays in the nearest cache while it is doubled.
    let mut doubling = [0u8; 512];
    for (sum, source) in sum.chunks_mut(doubling.len()).zip(source.chunks(doubling.len())) {
        let doubling = &mut doubling[..source.len()];
        doubling.copy_from_slice(source);
        let mut left = coefficient;
        while left != 0 {
            if left & 1 == 1 {
                sum.iter_mut().zip(doubling.iter()).for_each(|(sum, byte)| *sum ^= byte);
            }
            left >>= 1;
            doubling.iter_mut().for_each(|byte| *byte = doubled(*byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    #[test]
    fn products_are_those_of_another_implementation() {
        for value in 0..=255 {
            for factor in 0..=255 {
                assert_eq!(product(value, factor), rusty_erasure::gf::mul(value, factor), "{value} {factor}");
            }
            if value > 0 {
                assert_eq!(inverse(value), rusty_erasure::gf::inv(value));
            }
        }
    }

    fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
        (0..length).map(|_| random.bits() as u8).collect()
    }

    /// A row: its units by index, parity by the other implementation.
    fn row(code: Code, random: &mut Random, length: usize) -> Vec<Vec<u8>> {
        let mut units: Vec<Vec<u8>> = (0..code.data()).map(|_| bytes(random, length)).collect();
        let (mut p, mut q) = (vec![0; length], vec![0; length]);
        let data: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
        rusty_erasure::raid::pq_gen(&data, &mut p, &mut q).expect("units of one length");
        units.extend([p, q].into_iter().take(usize::from(code.parity())));
        units
    }

    fn sum(units: &[Vec<u8>], coefficients: &Coefficients) -> Vec<u8> {
        let mut sum = vec![0; units[0].len()];
        for (unit, coefficient) in units.iter().zip(coefficients) {
            add(&mut sum, unit, *coefficient);
        }
        sum
    }

    /// Whatever `parity` units are lost, each is had from the others, whichever are preferred.
    #[test]
    fn every_unit_is_had_from_as_many_others_as_there_are_data_units() {
        let mut random = Random::new(7);
        for code in Code::ALL {
            let length = 4096 + 3;
            let units = row(code, &mut random, length);
            let all: Vec<Unit> = code.units().collect();
            assert_eq!(all.len(), usize::from(code.members()));
            for lost in 0u32..1 << all.len() {
                let mut left: Vec<Unit> =
                    all.iter().copied().filter(|unit| lost >> code.index(*unit) & 1 == 0).collect();
                for turn in 0..left.len() {
                    left.rotate_left(turn);
                    for wanted in &all {
                        let found = code.decode(*wanted, &left).map(|found| sum(&units, &found));
                        let is_there = left.contains(wanted) || left.len() >= usize::from(code.data());
                        assert_eq!(found.as_ref(), is_there.then(|| &units[code.index(*wanted)]));
                    }
                }
            }
        }
    }

    /// What changes in a data unit changes parity by the difference times its coefficient.
    #[test]
    fn a_difference_is_added_with_the_coefficient_of_its_unit() {
        let mut random = Random::new(8);
        let code = Code::FOUR_AND_TWO;
        let mut units = row(code, &mut random, 4096);
        for data in 0..code.data() {
            let newest = bytes(&mut random, 4096);
            let mut difference = units[usize::from(data)].clone();
            add(&mut difference, &newest, 1);
            units[usize::from(data)] = newest;
            for parity in 0..code.parity() {
                add(
                    &mut units[code.index(Unit::Parity(parity))],
                    &difference,
                    code.coefficient(parity, data),
                );
            }
        }
        for parity in (0..code.parity()).map(Unit::Parity) {
            let data: Vec<Unit> = (0..code.data()).map(Unit::Data).collect();
            let found = code.decode(parity, &data).expect("all data are there");
            assert_eq!(sum(&units, &found), units[code.index(parity)]);
        }
    }

    /// As an unknown is had from what both parity units count, or from one of them.
    #[test]
    fn weights_take_every_other_unknown_out() {
        for counted in
            [vec![[1, 1], [1, 8]], vec![[0, 1], [1, 4], [0, 0]], vec![[1, 0]], vec![[2, 0], [0, 7]]]
        {
            for wanted in 0..counted.len() {
                let found = weights(&counted, wanted);
                let sum = |row: &[u8; 2], of: [u8; 2]| product(row[0], of[0]) ^ product(row[1], of[1]);
                let is_right =
                    |of| counted.iter().enumerate().all(|(at, row)| sum(row, of) == u8::from(at == wanted));
                match found {
                    Some(found) => assert!(is_right(found), "{counted:?}, {wanted}"),
                    None => assert_eq!(counted[wanted], [0, 0]),
                }
            }
        }
        assert_eq!(weights(&[[1, 0], [1, 0]], 0), None, "one equation has one unknown");
    }

    #[test]
    fn only_the_shapes_of_a_disk_are_codes() {
        assert_eq!(Code::new(3, 1), Some(Code::THREE_AND_ONE));
        assert_eq!((Code::new(3, 2), Code::new(1, 1), Code::new(8, 2)), (None, None, None));
    }
}
