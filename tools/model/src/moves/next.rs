//! Which steps are possible.

use crate::moves::config::{Action, Config};
use crate::moves::rule::Rule;
use crate::moves::state::{BLOCKS, NEW, OLD, Owner, Phase, SEQUENCE_MAX, Stage, State};
use crate::parts::Set;

/// Everything that may happen next.
pub fn next(config: &Config, state: &State, out: &mut Vec<Action>) {
    if state.record.epoch < config.epochs {
        out.push(Action::TakeOver);
    }
    if state.turns < config.turns {
        out.push(Action::Turn);
    }
    if state.asked.is_some() {
        out.push(Action::Pass);
    }
    for epoch in 1..=state.record.epoch {
        let owner = &state.owners[epoch as usize];
        next_of_messages(state, epoch, owner, out);
        // What else a former owner does before it is fenced, it may as well have done before the record changed.
        if epoch < state.record.epoch {
            continue;
        }
        let is_closed = |place: &usize| state.places[*place].promised < epoch;
        match owner.phase {
            Phase::Opening => {
                let closed = [OLD, NEW].into_iter().filter(is_closed);
                out.extend(closed.map(|place| Action::Open { owner: epoch, place }));
                if state.is_open(epoch) {
                    out.push(Action::Serve { owner: epoch });
                }
            }
            Phase::Serving => {
                next_of_guests(config, state, epoch, owner, out);
                next_of_granule(config, state, epoch, owner, out);
                next_of_trims(config, epoch, owner, out);
            }
            Phase::None => {}
        }
    }
}

/// Whose answers a write's acknowledgement waits for.
fn awaited(owner: &Owner) -> Set {
    let change = &owner.change;
    let is_granule = owner.granule() == Some(change.block);
    let waits_for_both = is_granule && owner.stage >= Stage::CaughtUp;
    match waits_for_both || change.to.count() == 1 {
        true => change.to,
        false => Set::only(owner.seen.truth(change.block)),
    }
}

fn next_of_messages(state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let change = &owner.change;
    let is_open = |place: usize| state.places[place].promised == epoch;
    if change.is_under_way() && change.locked.covers(change.to) {
        let missing = change.to.iter().filter(|place| !change.reached.has(*place));
        out.extend(missing.filter(|it| is_open(*it)).map(|place| Action::Deliver { owner: epoch, place }));
        if !change.is_acknowledged && change.reached.covers(awaited(owner)) {
            out.push(Action::Acknowledge { owner: epoch });
        }
        if change.is_acknowledged && change.reached.covers(change.to) {
            out.push(Action::End { owner: epoch });
        }
    }
    if owner.trim.is_some_and(|(place, _)| is_open(place)) {
        out.push(Action::DeliverTrim { owner: epoch });
    }
}

/// Where a write to a block goes.
pub fn targets(config: &Config, owner: &Owner, block: usize) -> Set {
    let truth = owner.seen.truth(block);
    if owner.granule() != Some(block) || !config.keeps(Rule::WriteBoth) {
        return Set::only(truth);
    }
    match owner.stage == Stage::Asked && !config.keeps(Rule::BothUntilKnown) {
        true => Set::only(OLD + NEW - truth),
        false => Set::first(2),
    }
}

fn next_of_guests(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let change = &owner.change;
    if !change.is_under_way() {
        if owner.sequence < SEQUENCE_MAX && state.writes < config.writes {
            for block in 0..BLOCKS {
                out.push(Action::Write { owner: epoch, block, is_trim: false });
                out.push(Action::Write { owner: epoch, block, is_trim: true });
            }
        }
        return;
    }
    let is_copied_now = |place| {
        owner.granule() == Some(change.block)
            && owner.copy_locked.has(place)
            && config.keeps(Rule::CopyUnderLock)
    };
    let mut wanted = change.to.iter().filter(|place| !change.locked.has(*place));
    if let Some(place) = wanted.next().filter(|place| !is_copied_now(*place)) {
        out.push(Action::LockWrite { owner: epoch, place });
    }
}

fn next_of_granule(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    if owner.seen != state.record || owner.stage == Stage::Asked {
        out.push(Action::Learn { owner: epoch });
    }
    let Some(granule) = owner.seen.granule() else { return };
    let is_trimmed_now =
        owner.trim.is_some_and(|(_, block)| block == granule) && config.keeps(Rule::TrimBeforeCopy);
    let change = &owner.change;
    let is_trailing = change.is_of(granule) && change.is_acknowledged;
    let least = match config.without {
        Some(Rule::PassAfterCopied) => Stage::Begun,
        Some(Rule::PassAfterTrailing) => Stage::Copied,
        _ => Stage::CaughtUp,
    };
    if owner.stage >= least && owner.stage < Stage::Asked && owner.seen == state.record {
        out.push(Action::Ask { owner: epoch });
    }
    match owner.stage {
        Stage::Idle if !is_trimmed_now => out.push(Action::Begin { owner: epoch }),
        Stage::Begun => {
            let order = if config.keeps(Rule::LockOrder) { [OLD, NEW] } else { [NEW, OLD] };
            let is_free = |place: &usize| {
                !(change.is_of(granule) && change.locked.has(*place) && config.keeps(Rule::CopyUnderLock))
            };
            match order.into_iter().find(|place| !owner.copy_locked.has(*place)) {
                Some(place) if is_free(&place) => out.push(Action::LockCopy { owner: epoch, place }),
                Some(_) => {}
                None => out.push(Action::Copy { owner: epoch }),
            }
        }
        Stage::Copied if !is_trailing => out.push(Action::CatchUp { owner: epoch }),
        Stage::Idle | Stage::Copied | Stage::CaughtUp | Stage::Asked => {}
    }
}

/// What does not count any more is trimmed, below the boundary on the old layout, above it on the new one.
fn next_of_trims(config: &Config, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    if owner.trim.is_some() {
        return;
    }
    for block in 0..BLOCKS {
        let truth = owner.seen.truth(block);
        let is_granule = owner.granule() == Some(block);
        let expects_passed = owner.stage == Stage::Asked && !config.keeps(Rule::TrimAfterRecord);
        let expected = !config.keeps(Rule::TrimByRead) && block < owner.inherited.1;
        let place = match (is_granule && expects_passed) || (expected && truth == OLD) {
            true => truth,
            false if is_granule => continue,
            false => OLD + NEW - truth,
        };
        if !(owner.change.is_of(block) && owner.change.to.has(place)) {
            out.push(Action::Trim { owner: epoch, place, block });
        }
    }
}
