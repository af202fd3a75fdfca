//! What a reader gets from some members: plainly, from a copy, or decoded.

use crate::parity::rule::Rule;
use crate::parity::state::{DATA, NONE, State};
use crate::parts::{Id, Set};

/// Why a read gives nothing that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The members do not suffice.
    TooFew,
    /// Parity counts a version that nobody has any more.
    BaseGone,
    /// Parity counts another version than what was taken for it: the bytes are wrong.
    Wrong,
}

/// A block as `members` give it. `without` is the rule that is taken out.
///
/// # Errors
/// See [`Fault`].
pub fn read(state: &State, members: Set, block: usize, without: Option<Rule>) -> Result<Id, Fault> {
    if members.has(block) {
        return Ok(state.members[block].unit.content[block]);
    }
    decode(state, members, block, without)
}

/// The same without asking its data member.
///
/// # Errors
/// See [`Fault`].
pub fn decode(state: &State, members: Set, block: usize, without: Option<Rule>) -> Result<Id, Fault> {
    let parity = members.and(state.parity());
    let copy = parity.iter().map(|member| state.members[member].unit.layer[block]).find(|id| *id != NONE);
    if let Some(copy) = copy {
        return Ok(copy);
    }
    let other = DATA - 1 - block;
    let mut found = None;
    for member in parity.iter() {
        let unit = &state.members[member].unit;
        let takes_base = unit.layer[other] != NONE && without != Some(Rule::DecodeWithBase);
        let counted = match (members.has(other), takes_base) {
            (true, true) => state.members[other].unit.layer[other],
            (true, false) => state.members[other].unit.content[other],
            // A base that is missing is an unknown of its own: the other parity member must count the same.
            (false, true) => match same_equation(state, parity, block, other) {
                Some(both) => return both,
                None => continue,
            },
            (false, false) => match parity.iter().find(|it| state.members[*it].unit.layer[other] != NONE) {
                Some(holder) => state.members[holder].unit.layer[other],
                None => match same_equation(state, parity, block, other) {
                    Some(both) => return both,
                    None => continue,
                },
            },
        };
        if counted == NONE {
            return Err(Fault::BaseGone);
        }
        if counted != unit.content[other] || found.is_some_and(|id| id != unit.content[block]) {
            return Err(Fault::Wrong);
        }
        found = Some(unit.content[block]);
    }
    found.ok_or(Fault::TooFew)
}

/// Two equations in the same two unknowns, if there are two.
fn same_equation(state: &State, parity: Set, block: usize, other: usize) -> Option<Result<Id, Fault>> {
    let mut units = parity.iter().map(|member| &state.members[member].unit);
    let (first, second) = (units.next()?, units.next()?);
    if (first.layer[other] == NONE) != (second.layer[other] == NONE) {
        return None;
    }
    let is_same = first.content == second.content;
    Some(if is_same { Ok(first.content[block]) } else { Err(Fault::Wrong) })
}
