//! What changes of one disk did to another, where nobody else can have done it.

use super::figures::{EFFECT_MIN, Role};
use super::relation::Incident;

/// What one disk's change did to another, at one event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    pub(super) event: usize,
    /// Above 0 when the other got less from a change that can do harm, or more from one that gives relief.
    pub(super) effect: f64,
}

/// What the changes of `cause` did to `victim`, where nobody else can have done it.
pub(super) fn evidence(events: &[Incident], cause: usize, victim: usize) -> Vec<Evidence> {
    let changed = |role: Role| role.may_harm() || role.may_relieve();
    let mut all = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let change = &event.changes[victim];
        let effect = match change.role {
            Role::Slower if event.only(Role::may_harm) == Some(cause) => change.effect,
            Role::Faster if event.only(Role::may_relieve) == Some(cause) => -change.effect,
            Role::Same if event.only(changed) == Some(cause) => 0.0,
            _ => continue,
        };
        all.push(Evidence { event: index, effect });
    }
    all
}

/// The mean effect, and whether at least half of the evidence shows one.
pub(super) fn effect_of(evidence: &[Evidence]) -> Option<f64> {
    if evidence.is_empty() {
        return None;
    }
    let seen = evidence.iter().filter(|one| one.effect >= EFFECT_MIN).count();
    if seen * 2 <= evidence.len() && seen > 0 {
        // Sometimes it did and at least as often it did not.
        return Some(f64::NAN);
    }
    Some(evidence.iter().map(|one| one.effect).sum::<f64>() / evidence.len() as f64)
}
