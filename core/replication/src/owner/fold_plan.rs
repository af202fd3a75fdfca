//! What a fold reads, and the parity that follows from it (docs/design/0040, 15 and 16).
//!
//! The new parity follows from the newest version of every data unit. A unit whose member cannot give it is known from a copy, or from
//! what the parity counts: of units that a member of the parity holds a copy of it counts the base, of the others the newest version.
//! Must not ask members, nor note what they hold (`folding`).

use super::columns::Held;
use super::fold::{FoldWork, Of, Source};
use super::member::Member;
use super::place::Place;
use super::row_check::{self, by_block};
use super::rows::{bytes_in, row_of};
use base::units::BLOCK_SIZE;
use base::{Buffer, Pool};
use layout::code::{self, DATA_MAX, PARITY_MAX, UNITS_MAX};
use layout::{Code, Unit};
use smallvec::SmallVec;
use wire::layer;

/// What is to be done first.
#[derive(Debug)]
pub(crate) enum Plan {
    /// These are read.
    Read(Vec<Source>),
    /// No member of the parity holds a copy: what the others hold is promoted.
    Promote,
    /// Column after column.
    Narrow,
    /// Too little can be read.
    Impossible,
}

impl FoldWork {
    fn row(&self) -> u64 {
        row_of(self.range.part, self.range.block)
    }

    /// The active members of a unit: two, where one replaces the other.
    pub(crate) fn members_of<'a>(&self, place: &'a Place, unit: Unit) -> impl Iterator<Item = u8> + 'a {
        let position = place.code.map(|code| code.position(self.row(), unit));
        let is_its = move |one: &Member| Some(one.position) == position && one.is_open();
        place.active().filter(move |(_, one)| is_its(one)).map(|(member, _)| member)
    }

    /// Members of the parity that hold copies of what is folded now.
    pub(crate) fn parity_with_copies(&self, place: &Place, held: &Held) -> SmallVec<[(u8, u8); PARITY_MAX]> {
        let code = place.code.expect("it has parity");
        let of = |unit: u8| self.members_of(place, Unit::Parity(unit)).map(move |member| (unit, member));
        (0..code.parity()).flat_map(of).filter(|(_, member)| held.holds_any(*member, &self.now)).collect()
    }

    /// What is to be read.
    pub(crate) fn plan(&self, place: &Place, held: &Held) -> Plan {
        let code = place.code.expect("it has parity");
        if self.parity_with_copies(place, held).is_empty() {
            return Plan::Promote;
        }
        let layer_of = |unit: u8| layer::COPY_FIRST + unit;
        let source = |member, layer, of| Source { member, layer, of, data: None };
        let can_give = |member: &u8, layer: u8| !self.damaged.contains(&(*member, layer));
        let own = |unit: u8| {
            self.members_of(place, Unit::Data(unit)).find(|member| can_give(member, layer_of(unit)))
        };
        let mut sources: Vec<Source> = Vec::new();
        let mut unknown: SmallVec<[u8; DATA_MAX]> = SmallVec::new();
        for unit in 0..code.data() {
            match own(unit) {
                Some(member) => sources.push(source(member, layer_of(unit), Of::Newest(unit))),
                None => unknown.push(unit),
            }
        }
        if unknown.is_empty() {
            return Plan::Read(sources);
        }
        if self.now.count > 1 {
            return Plan::Narrow;
        }
        let holders = |unit: u8| {
            let of_parity = (0..code.parity()).flat_map(|unit| self.members_of(place, Unit::Parity(unit)));
            let holders = of_parity.filter(move |one| held.holds(*one, unit, &self.now) == Some(true));
            holders.filter(move |one| can_give(one, layer_of(unit)))
        };
        unknown.retain(|unit| match holders(*unit).next() {
            Some(member) => {
                sources.push(source(member, layer_of(*unit), Of::Newest(*unit)));
                false
            }
            None => true,
        });
        if unknown.is_empty() {
            return Plan::Read(sources);
        }
        for unit in 0..code.parity() {
            let mut members = self.members_of(place, Unit::Parity(unit));
            if let Some(member) = members.find(|member| can_give(member, layer::CONTENT)) {
                sources.push(source(member, layer::CONTENT, Of::Parity(unit)));
            }
        }
        for unit in 0..code.data() {
            let has_base = |member: &u8| held.holds(*member, unit, &self.now) == Some(true);
            let mut members = self.members_of(place, Unit::Data(unit)).filter(has_base);
            if let Some(member) = members.find(|member| can_give(member, layer::CONTENT)) {
                sources.push(source(member, layer::CONTENT, Of::Base(unit)));
            }
        }
        let is_solved = |unit: &u8| Equations::of(self, place, held, &sources).weights(*unit).is_some();
        match unknown.iter().all(is_solved) {
            true => Plan::Read(sources),
            false => Plan::Impossible,
        }
    }

    fn source(&self, of: Of) -> Option<&Source> {
        self.sources.iter().find(|source| source.of == of)
    }

    /// The parity of what is folded now, by unit, for these. None if memory is short.
    pub(crate) fn parity(
        &self,
        place: &Place,
        held: &Held,
        units: &[(u8, u8)],
        pool: &Pool,
    ) -> Option<SmallVec<[Buffer; PARITY_MAX]>> {
        let code = place.code.expect("it has parity");
        let len = usize::from(self.now.count) * BLOCK_SIZE as usize;
        let mut sums: SmallVec<[Buffer; PARITY_MAX]> = SmallVec::new();
        for _ in units {
            sums.push(pool.take_zeroed(len)?);
        }
        for unit in 0..code.data() {
            let decoded = match self.source(Of::Newest(unit)) {
                Some(_) => None,
                None => Some(self.decoded(unit, place, held, pool.take_zeroed(len)?)),
            };
            for ((parity, _), sum) in units.iter().zip(&mut sums) {
                let coefficient = code.coefficient(*parity, unit);
                match &decoded {
                    Some(data) => code::add(sum.bytes_mut(), data, coefficient),
                    None => self.add(sum.bytes_mut(), Of::Newest(unit), coefficient),
                }
            }
        }
        Some(sums)
    }

    /// Whether the checksums of the new parity follow from those of what was read. What was decoded has none.
    pub(crate) fn is_proven(&self, place: &Place, units: &[(u8, u8)], parity: &[SmallVec<[u32; 2]>]) -> bool {
        let code = place.code.expect("it has parity");
        let mut of: [Option<Vec<Option<u32>>>; UNITS_MAX] = Default::default();
        for source in &self.sources {
            let Of::Newest(unit) = source.of else { continue };
            of[usize::from(code.position(self.row(), Unit::Data(unit)))] = source.data.as_ref().map(by_block);
        }
        units.iter().zip(parity).filter(|((unit, _), _)| *unit == 0).all(|(_, checksums)| {
            let position = usize::from(code.position(self.row(), Unit::Parity(0)));
            of[position] = Some(checksums.iter().copied().map(Some).collect());
            row_check::is_proven(code, self.now, &of)
        })
    }

    /// The newest version of a data unit that nobody holds, from what the parity counts.
    fn decoded(&self, unit: u8, place: &Place, held: &Held, mut sum: Buffer) -> Buffer {
        let equations = Equations::of(self, place, held, &self.sources);
        let weights = equations.weights(unit).expect("it was planned so");
        for (equation, weight) in equations.all.iter().zip(weights) {
            self.add(sum.bytes_mut(), Of::Parity(equation.parity), weight);
            for (of, coefficient) in &equation.known {
                self.add(sum.bytes_mut(), *of, code::product(*coefficient, weight));
            }
        }
        sum
    }

    /// Adds what was read, times a coefficient.
    fn add(&self, sum: &mut [u8], of: Of, coefficient: u8) {
        let data = self.source(of).and_then(|source| source.data.as_ref()).expect("it was read");
        bytes_in(&data.pieces, &mut |at, bytes| {
            code::add(&mut sum[at..at + bytes.len()], bytes, coefficient)
        });
    }
}

/// What one parity unit counts: what is known of that, and what is not.
#[derive(Debug)]
struct Equation {
    parity: u8,
    known: SmallVec<[(Of, u8); DATA_MAX]>,
    unknown: SmallVec<[(Of, u8); DATA_MAX]>,
}

#[derive(Debug)]
struct Equations {
    all: SmallVec<[Equation; PARITY_MAX]>,
}

impl Equations {
    fn of(fold: &FoldWork, place: &Place, held: &Held, sources: &[Source]) -> Equations {
        let code = place.code.expect("it has parity");
        let parity = sources.iter().filter_map(|source| match source.of {
            Of::Parity(unit) => Some((unit, source.member)),
            Of::Newest(_) | Of::Base(_) => None,
        });
        let equation = |(parity, member): (u8, u8)| {
            let mut equation = Equation { parity, known: SmallVec::new(), unknown: SmallVec::new() };
            for unit in 0..code.data() {
                let of = match held.holds(member, unit, &fold.now) {
                    Some(false) => Of::Newest(unit),
                    Some(true) | None => Of::Base(unit),
                };
                let counted = (of, code.coefficient(parity, unit));
                match sources.iter().any(|source| source.of == of) {
                    true => equation.known.push(counted),
                    false => equation.unknown.push(counted),
                }
            }
            equation
        };
        Equations { all: parity.map(equation).collect() }
    }

    /// With which weights the equations add up to the newest version of a data unit. None if they do not.
    fn weights(&self, unit: u8) -> Option<[u8; PARITY_MAX]> {
        let mut unknown: SmallVec<[Of; UNITS_MAX]> = SmallVec::new();
        for (of, _) in self.all.iter().flat_map(|equation| &equation.unknown) {
            if !unknown.contains(of) {
                unknown.push(*of);
            }
        }
        let counted = |of: &Of| {
            let of_equation = |equation: &Equation| {
                let found = equation.unknown.iter().find(|(one, _)| one == of);
                found.map_or(0, |(_, coefficient)| *coefficient)
            };
            let mut counted = [0; PARITY_MAX];
            self.all.iter().zip(&mut counted).for_each(|(one, counted)| *counted = of_equation(one));
            counted
        };
        let wanted = unknown.iter().position(|of| *of == Of::Newest(unit))?;
        let rows: Vec<[u8; PARITY_MAX]> = unknown.iter().map(counted).collect();
        code::weights(&rows, wanted)
    }
}

/// The positions that hold small changes of a data unit: its own, and those of the parity.
pub(crate) fn positions_of(code: Code, row: u64, unit: u8) -> impl Iterator<Item = u8> {
    let parity = (0..code.parity()).map(Unit::Parity);
    std::iter::once(Unit::Data(unit)).chain(parity).map(move |unit| code.position(row, unit))
}
