//! What a step does, and what must be true after it.

use crate::moves::config::{Action, Config, Violation};
use crate::moves::next::{next, targets};
use crate::moves::rule::Rule;
use crate::moves::state::{BLOCKS, Change, NEW, OLD, Owner, Phase, Stage, State};
use crate::parts::{Id, Set};
use crate::world::World;

impl World for Config {
    type State = State;
    type Action = Action;
    type Violation = Violation;
    type Key = State;
    type Rule = Rule;
    const RULES: &'static [(&'static str, Rule)] = &Rule::ALL;

    fn without(self, rule: Rule) -> Config {
        Config { without: Some(rule), ..self }
    }

    fn first(&self) -> State {
        State::first()
    }

    fn next(&self, state: &State, out: &mut Vec<Action>) {
        next(self, state, out);
    }

    fn apply(&self, state: &State, action: Action) -> Result<State, Violation> {
        let mut after = *state;
        apply(self, &mut after, action)?;
        retire(&mut after);
        check(self, &after)?;
        Ok(after)
    }

    fn key(&self, state: &State) -> State {
        *state
    }
}

fn apply(config: &Config, state: &mut State, action: Action) -> Result<(), Violation> {
    match action {
        Action::TakeOver => take_over(state),
        Action::Turn => {
            state.record.is_back ^= true;
            state.turns += 1;
            state.asked = None;
        }
        Action::Open { owner, place } => state.places[place].promised = owner,
        Action::Serve { owner } => serve(state, owner)?,
        Action::Write { owner, block, is_trim } => write(config, state, owner, block, is_trim),
        Action::LockWrite { owner, place } => {
            let change = &mut state.owners[owner as usize].change;
            change.locked = change.locked.with(place);
        }
        Action::Deliver { owner, place } => {
            let change = &mut state.owners[owner as usize].change;
            change.reached = change.reached.with(place);
            state.places[place].stored[change.block] = change.id;
        }
        Action::Acknowledge { owner } => {
            let change = &mut state.owners[owner as usize].change;
            change.is_acknowledged = true;
            state.known[change.block] = state.known[change.block].max(change.id);
        }
        Action::End { owner } => state.owners[owner as usize].change = Change::default(),
        Action::Begin { owner } => begin(config, state, owner),
        Action::LockCopy { owner, place } => {
            let locked = &mut state.owners[owner as usize].copy_locked;
            *locked = locked.with(place);
        }
        Action::Copy { owner } => copy(config, state, owner),
        Action::CatchUp { owner } => state.owners[owner as usize].stage = Stage::CaughtUp,
        Action::Ask { owner } => {
            state.owners[owner as usize].stage = Stage::Asked;
            state.asked = Some(state.record.target());
        }
        Action::Pass => state.record.boundary = state.asked.take().expect("a transaction is under way"),
        Action::Learn { owner } => {
            if config.keeps(Rule::RuleOut) || state.owners[owner as usize].seen != state.record {
                state.asked = None;
            }
            let record = state.record;
            let owner = &mut state.owners[owner as usize];
            (owner.seen, owner.stage, owner.copy_locked) = (record, Stage::Idle, Set::default());
        }
        Action::Trim { owner, place, block } => state.owners[owner as usize].trim = Some((place, block)),
        Action::DeliverTrim { owner } => {
            let trim = state.owners[owner as usize].trim.take();
            let (place, block) = trim.expect("a trim is under way");
            state.places[place].stored[block] = Id::default();
        }
    }
    Ok(())
}

fn take_over(state: &mut State) {
    let former = state.owners[state.record.epoch as usize];
    let expected = if former.stage == Stage::Asked { former.seen.target() } else { 0 };
    state.record.epoch += 1;
    state.asked = None;
    let seen = state.record;
    let inherited = (former.stage >= Stage::Copied && !seen.is_back, expected);
    let owner = Owner { phase: Phase::Opening, seen, inherited, ..Owner::default() };
    state.owners[seen.epoch as usize] = owner;
}

/// A former owner of whom no message is on its way, and no acknowledgement to come, is nobody.
fn retire(state: &mut State) {
    for epoch in 1..state.record.epoch {
        let owner = &state.owners[epoch as usize];
        let change = &owner.change;
        let is_sent = change.is_under_way() && change.locked.covers(change.to);
        let is_open = |place: usize| state.places[place].promised == epoch;
        let is_heard = is_sent && change.to.iter().any(is_open);
        let may_acknowledge = is_sent && !change.is_acknowledged && !change.reached.is_empty();
        let may_trim = owner.trim.is_some_and(|(place, _)| is_open(place));
        if !is_heard && !may_acknowledge && !may_trim {
            state.owners[epoch as usize] = Owner::default();
        }
    }
}

fn serve(state: &mut State, epoch: u8) -> Result<(), Violation> {
    let owner = &mut state.owners[epoch as usize];
    owner.phase = Phase::Serving;
    for block in 0..BLOCKS {
        let found = state.places[owner.seen.truth(block)].stored[block];
        let known = state.known[block];
        if found < known {
            return Err(Violation::Lost { block, found, known });
        }
        if found > known && found.epoch() < state.decided_by {
            return Err(Violation::CameBack { block, found, known });
        }
        // A guest reads everything at once: what it could know later, it knows now.
        state.known[block] = found;
    }
    state.decided_by = epoch;
    Ok(())
}

fn write(config: &Config, state: &mut State, epoch: u8, block: usize, is_trim: bool) {
    let owner = &mut state.owners[epoch as usize];
    owner.sequence += 1;
    let id = Id::new(epoch, owner.sequence);
    let to = targets(config, owner, block);
    let locked = if to.count() == 1 && owner.granule() != Some(block) { to } else { Set::default() };
    owner.change = Change { id, block, to, locked, ..Change::default() };
    state.trims |= u16::from(is_trim) << id.0;
    state.writes += 1;
}

fn begin(config: &Config, state: &mut State, epoch: u8) {
    let owner = &mut state.owners[epoch as usize];
    let believes_former = owner.inherited.0 && !config.keeps(Rule::StartOver);
    let believes_place = owner.seen.is_back && !config.keeps(Rule::CopyBack);
    owner.stage = if believes_former || believes_place { Stage::Copied } else { Stage::Begun };
}

fn copy(config: &Config, state: &mut State, epoch: u8) {
    let owner = &mut state.owners[epoch as usize];
    let block = owner.granule().expect("a granule is under way");
    (owner.stage, owner.copy_locked) = (Stage::Copied, Set::default());
    let from = owner.seen.truth(block);
    let found = state.places[from].stored[block];
    if !state.is_hole(found) || config.keeps(Rule::CopyHoles) {
        state.places[OLD + NEW - from].stored[block] = found;
    }
}

/// Whoever serves reads what guests know, where nothing is under way; and nobody waits for ever.
fn check(config: &Config, state: &State) -> Result<(), Violation> {
    let epoch = state.record.epoch;
    let owner = &state.owners[epoch as usize];
    if owner.phase != Phase::Serving || !state.is_open(epoch) {
        return Ok(());
    }
    let change = &owner.change;
    for block in 0..BLOCKS {
        if change.is_of(block) && !change.is_acknowledged {
            continue;
        }
        let is_early = owner.granule() == Some(block) && owner.stage >= Stage::Copied;
        let truth = owner.seen.truth(block);
        let from = if is_early && !config.keeps(Rule::ReadByRecord) { OLD + NEW - truth } else { truth };
        let (found, known) = (state.places[from].stored[block], state.known[block]);
        if found != known {
            return Err(match found < known {
                true => Violation::Lost { block, found, known },
                false => Violation::CameBack { block, found, known },
            });
        }
    }
    let block = change.block;
    let is_same = change.is_of(block) && owner.granule() == Some(block) && change.to.count() == 2;
    if is_same && change.locked == Set::only(OLD) && owner.copy_locked == Set::only(NEW) {
        return Err(Violation::Deadlock { block });
    }
    Ok(())
}
