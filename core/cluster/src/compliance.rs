//! Whether a disk is as its policy says.
//!
//! Says it from records, the state of hosts, and what owners report. A disk is compliant when it tolerates what its policy asks for
//! and has all that is asked for besides; it is moving when components on their way are all that it lacks, or it lacks nothing and
//! components are on their way. Must never hold a rule of placement: what is owed stands in the record, as placement found it.

use crate::disk::{DiskRecord, DiskState};
use crate::domains;
use crate::moves::MovesUnderWay;
use crate::standstill::standstill;
use crate::status::{Condition, Known, condition, missing};
use crate::view::View;
use crate::words::components;
use placement::{Debt, Policy};
use std::collections::BTreeSet;

/// Whether a disk is as its policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compliance {
    /// It is.
    Compliant,
    /// It is not: what it lacks, one phrase each, at least one.
    NotCompliant(Vec<String>),
    /// Components are on their way, and nothing else is lacking; what moves.
    Moving(String),
}

impl Compliance {
    /// As people read it: `compliant`, `moving`, `not compliant`.
    pub fn name(&self) -> &'static str {
        match self {
            Compliance::Compliant => "compliant",
            Compliance::NotCompliant(_) => "not compliant",
            Compliance::Moving(_) => "moving",
        }
    }

    /// What it lacks, or what moves.
    pub fn causes(&self) -> Vec<String> {
        match self {
            Compliance::Compliant => Vec::new(),
            Compliance::NotCompliant(causes) => causes.clone(),
            Compliance::Moving(what) => vec![what.clone()],
        }
    }
}

/// Whether a disk is as its policy says, while these moves are under way; nothing while it is made or deleted.
pub fn compliance(
    view: &View,
    disk: &DiskRecord,
    known: &Known<'_>,
    moves: &MovesUnderWay,
) -> Option<Compliance> {
    if disk.state != DiskState::Active {
        return None;
    }
    let (mut lacks, mut comes) = (Vec::new(), !disk.incoming.is_empty());
    match condition(view, disk, known.directory) {
        Condition::Whole => {}
        Condition::Inaccessible => lacks.push("it cannot be used".to_owned()),
        Condition::Reduced => {
            let missing = missing(view, disk).len();
            let count = disk.layout.component_count();
            lacks.push(format!("{missing} of {} missing", components(count)));
        }
    }
    // A copy that is on its way is owed until it has arrived.
    let is_coming = |debt: &&Debt| debt.rule == "failures_to_tolerate" && comes && lacks.is_empty();
    let (coming, owed): (Vec<&Debt>, Vec<&Debt>) = disk.debts.iter().partition(is_coming);
    lacks.extend(owed.into_iter().map(ToString::to_string));
    if !domains::to_move(view, disk, &BTreeSet::new()).is_empty() {
        lacks.push("copies share a fault domain".to_owned());
    }
    lacks.extend(differences(view, disk));
    lacks.extend(waits_for_moves(view, disk, moves));
    comes |= disk.growth.is_some();
    if let Some(moved) = moved(view, disk, known).filter(|_| lacks.is_empty()) {
        return Some(Compliance::Moving(moved));
    }
    Some(match (lacks.is_empty(), comes) {
        (false, _) => Compliance::NotCompliant(lacks),
        (true, false) => Compliance::Compliant,
        (true, true) if disk.incoming.is_empty() => Compliance::Moving("it grows".to_owned()),
        (true, true) => {
            let until = coming.first().map_or_else(String::new, |debt| format!("; until then {debt}"));
            Compliance::Moving(format!("{} on the way{until}", components(disk.incoming.len())))
        }
    })
}

/// How much of a disk that moves has moved, and whether it goes on.
fn moved(view: &View, disk: &DiskRecord, known: &Known<'_>) -> Option<String> {
    let (moved, all) = disk.moved_bytes()?;
    let percent = (u128::from(moved) * 100).checked_div(u128::from(all)).unwrap_or(0);
    let is_paused = disk.moving.as_ref().is_some_and(|moving| moving.is_paused);
    let rest = match standstill(view, disk, known.now) {
        Some(why) => format!(", stands still: {why}"),
        None if is_paused => ", paused".to_owned(),
        None => String::new(),
    };
    Some(format!("{percent} % of it moved{rest}"))
}

/// Why a disk that follows a named policy does not begin to move into the layout that the policy asks for; none where it may begin, or
/// need not.
pub(crate) fn waits_for_moves(view: &View, disk: &DiskRecord, moves: &MovesUnderWay) -> Option<String> {
    let policy = view.followed(disk).filter(|_| disk.moving.is_none())?;
    if disk.needs_move(policy) { moves.bound_on(disk) } else { None }
}

/// The rules in which a disk is not as the named policy that it follows says, and does not move to be.
pub(crate) fn differences(view: &View, disk: &DiskRecord) -> Vec<String> {
    let (Some(policy), Some(name)) = (view.followed(disk), &disk.follows) else { return Vec::new() };
    let moves_to = disk.moving.as_ref().filter(|moving| !moving.is_back).map(|moving| &moving.policy);
    let has = moves_to.unwrap_or(&disk.policy);
    let value = |policy: &Policy, rule| policy.get(rule).unwrap_or_default();
    let differs = policy.differences(has).map(|rule| {
        let (wanted, got) = (value(policy, rule.name), value(has, rule.name));
        format!("policy {name} asks for {}={wanted}, the disk has {got}", rule.name)
    });
    differs.collect()
}

#[cfg(test)]
mod tests;
