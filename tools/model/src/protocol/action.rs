//! What can happen next, and what it does. `next` lists the actions that are possible, `apply` performs one.

use crate::parts::{Id, Set};
use crate::protocol::rule::Rule;
use crate::protocol::state::{BLOCKS, COMPONENTS_MAX, Owner, Phase, SEQUENCE_MAX, State};
use crate::world::World;

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Components, 2 or 3.
    pub components: usize,
    /// Owners, one after the other, 1 to 3.
    pub epochs: u8,
    /// Writes in all.
    pub writes: u8,
    /// Whether guests wait for a component in resync only at its end (docs/design/0021), not all the time.
    pub is_early: bool,
    /// The rule that is taken out.
    pub without: Option<Rule>,
}

impl Config {
    fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// One step of somebody. `owner` is the epoch of who takes it.
#[allow(missing_docs, reason = "the fields are what the step's words name")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A new owner raises the epoch in the record.
    TakeOver,
    /// The same, from one component alone.
    TakeOverFrom(usize),
    /// The record has a component out of the active ones.
    Shrink { owner: u8, component: usize },
    /// An owner goes on without a component, and the record does not know.
    ForgetComponent { owner: u8, component: usize },
    /// A component promises the epoch.
    Open { owner: u8, component: usize },
    /// An uncertain block of a component is rolled forward.
    Settle { owner: u8, component: usize, block: usize, to: Id },
    /// A component has the watermark of the new epoch.
    Stamp { owner: u8, component: usize },
    /// The owner serves.
    Serve { owner: u8 },
    /// A guest writes.
    Write { owner: u8, block: usize },
    /// The guest learns that its write is done.
    Acknowledge { owner: u8, block: usize },
    /// A write that was acknowledged before has reached the component in resync, too, or there is none any more.
    End { owner: u8, block: usize },
    /// A guest reads from a component.
    Read { owner: u8, component: usize, block: usize },
    /// A component learns what is decided.
    SendWatermark { owner: u8, component: usize },
    /// A resync begins; `source` says by its region whether there is anything to copy.
    Attach { owner: u8, component: usize, source: usize },
    /// A resync is given up.
    Abandon { owner: u8 },
    /// A block is copied to the component in resync.
    Copy { owner: u8, component: usize, block: usize, source: usize },
    /// All is copied, and the component has what was acknowledged before: acknowledgements wait for it from here on.
    CatchUp { owner: u8 },
    /// The record has the component among the active ones again.
    Grow { owner: u8, component: usize },
    /// A write reaches a component; its answer arrives or is lost.
    Deliver { id: Id, block: usize, component: usize, is_answered: bool },
}

/// What went wrong.
#[allow(missing_docs, reason = "the fields are what the sentence names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A component that the record names active lacks what a guest knows.
    Lost { component: usize, block: usize, known: Id },
    /// A read returned less than a guest knew already.
    Stale { owner: u8, block: usize, found: Id, known: Id },
    /// A read returned a write that an owner had decided not to be there.
    CameBack { owner: u8, block: usize, found: Id },
}

impl World for Config {
    type State = State;
    type Action = Action;
    type Violation = Violation;
    type Key = [u64; 5];
    type Rule = Rule;
    const RULES: &'static [(&'static str, Rule)] = &Rule::ALL;

    fn without(self, rule: Rule) -> Config {
        Config { without: Some(rule), ..self }
    }

    fn first(&self) -> State {
        State::first(self.components)
    }

    fn next(&self, state: &State, out: &mut Vec<Action>) {
        next(self, state, out);
    }

    fn apply(&self, state: &State, action: Action) -> Result<State, Violation> {
        apply(self, state, action)
    }

    fn key(&self, state: &State) -> [u64; 5] {
        state.key()
    }
}

/// Everything that may happen next.
fn next(config: &Config, state: &State, out: &mut Vec<Action>) {
    if state.epoch < config.epochs {
        out.push(Action::TakeOver);
        if !config.keeps(Rule::NoSalvage) {
            out.extend((0..config.components).map(Action::TakeOverFrom));
        }
    }
    for epoch in 1..=config.epochs {
        let owner = &state.owners[epoch as usize];
        if owner.phase == Phase::None {
            continue;
        }
        for component in owner.active.iter() {
            let is_last = state.active == Set::only(component);
            if state.epoch == epoch && state.active.has(component) && !is_last {
                out.push(Action::Shrink { owner: epoch, component });
            }
        }
        match owner.phase {
            Phase::Opening => next_of_opening(config, state, epoch, owner, out),
            Phase::Serving | Phase::None => next_of_serving(config, state, epoch, owner, out),
        }
    }
    for (id, block, component) in state.on_their_way() {
        let promised = state.components[component].promised;
        let is_taken = promised == id.epoch() || (promised > id.epoch() && !config.keeps(Rule::Fence));
        if is_taken {
            let is_awaited = state.owners[id.epoch() as usize].pending[block] == id;
            out.extend(is_awaited.then_some(Action::Deliver { id, block, component, is_answered: true }));
            out.push(Action::Deliver { id, block, component, is_answered: false });
        }
    }
}

fn have_promised(state: &State, owner: &Owner, epoch: u8) -> bool {
    owner.active.iter().all(|component| state.components[component].promised == epoch)
}

fn next_of_opening(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    for component in owner.active.iter() {
        if state.components[component].promised < epoch {
            out.push(Action::Open { owner: epoch, component });
        }
    }
    if !have_promised(state, owner, epoch) {
        return;
    }
    let mut is_decided = true;
    for block in 0..BLOCKS {
        let stored = owner.active.iter().map(|component| state.components[component].stored[block]);
        let to = stored.max().expect("an owner has a component");
        for component in owner.active.iter() {
            if state.components[component].stored[block] != to {
                is_decided = false;
                out.push(Action::Settle { owner: epoch, component, block, to });
            }
        }
    }
    if !is_decided && config.keeps(Rule::DecideWindow) {
        return;
    }
    let unstamped = |component: &usize| state.components[*component].watermark < Id::new(epoch, 0);
    let before = out.len();
    out.extend(
        owner.active.iter().filter(unstamped).map(|component| Action::Stamp { owner: epoch, component }),
    );
    if out.len() == before {
        out.push(Action::Serve { owner: epoch });
    }
}

fn next_of_serving(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    if !config.keeps(Rule::ShrinkBeforeAcknowledge) {
        let others = owner.active.iter().filter(|component| owner.active != Set::only(*component));
        out.extend(others.map(|component| Action::ForgetComponent { owner: epoch, component }));
    }
    // While all have promised this epoch and no greater one, their grants hold: no time is needed here.
    let has_lease = have_promised(state, owner, epoch) || !config.keeps(Rule::Lease);
    for block in 0..BLOCKS {
        let is_busy = owner.pending[block] != Id::default();
        if !is_busy && owner.sequence < SEQUENCE_MAX && state.writes < config.writes {
            out.push(Action::Write { owner: epoch, block });
        }
        let waits_for_resync =
            config.keeps(Rule::AcknowledgeWaitsForResync) && (owner.is_caught_up || !config.is_early);
        let all = owner.active.or(owner.resyncing);
        let awaited = if waits_for_resync { all } else { owner.active };
        let is_trailing = owner.is_trailing(block);
        if is_busy && !is_trailing && owner.answered[block].covers(awaited) {
            out.push(Action::Acknowledge { owner: epoch, block });
        }
        if is_trailing && owner.answered[block].covers(all) {
            out.push(Action::End { owner: epoch, block });
        }
        if has_lease && (!is_busy || is_trailing || !config.keeps(Rule::ReadsWait)) {
            out.extend(owner.active.iter().map(|component| Action::Read { owner: epoch, component, block }));
        }
    }
    for component in 0..COMPONENTS_MAX {
        next_of_component(config, state, epoch, owner, component, out);
    }
}

/// Watermarks and resync of one component.
fn next_of_component(
    config: &Config,
    state: &State,
    epoch: u8,
    owner: &Owner,
    component: usize,
    out: &mut Vec<Action>,
) {
    let at = &state.components[component];
    let informed = match config.keeps(Rule::NoWatermarkInResync) {
        true => owner.active,
        false => owner.active.or(owner.resyncing),
    };
    if informed.has(component) && at.promised == epoch && at.watermark < watermark(owner, epoch) {
        out.push(Action::SendWatermark { owner: epoch, component });
    }
    let has_promised = |source: &usize| state.components[*source].promised == epoch;
    let sources = || owner.active.iter().filter(has_promised);
    if !owner.active.has(component) && owner.resyncing == Set::default() && at.promised <= epoch {
        out.extend(sources().map(|source| Action::Attach { owner: epoch, component, source }));
    }
    if !owner.resyncing.has(component) {
        return;
    }
    out.push(Action::Abandon { owner: epoch });
    for block in 0..BLOCKS {
        let is_locked = owner.pending[block] != Id::default() && config.keeps(Rule::CopyUnderLock);
        if at.promised == epoch && owner.copied >> block & 1 == 0 && !is_locked {
            out.extend(sources().map(|source| Action::Copy { owner: epoch, component, block, source }));
        }
    }
    let is_copied = owner.copied == (1 << BLOCKS) - 1;
    let lacks = |block| owner.is_trailing(block) && !owner.answered[block].has(component);
    let may_catch_up = !(0..BLOCKS).any(lacks) || !config.keeps(Rule::CatchUpFirst);
    if is_copied && config.is_early && !owner.is_caught_up && may_catch_up {
        out.push(Action::CatchUp { owner: epoch });
    }
    if is_copied && (owner.is_caught_up || !config.is_early) && state.epoch == epoch {
        out.push(Action::Grow { owner: epoch, component });
    }
}

/// All ids up to here are acknowledged.
fn watermark(owner: &Owner, epoch: u8) -> Id {
    let oldest = owner.pending.into_iter().filter(|id| *id != Id::default()).min();
    oldest.map_or(Id::new(epoch, owner.sequence), |id| Id(id.0 - 1))
}

/// The state after an action.
///
/// # Errors
/// What the action showed to be wrong.
fn apply(config: &Config, state: &State, action: Action) -> Result<State, Violation> {
    let mut next = *state;
    match action {
        Action::TakeOver => take_over(&mut next, state.active),
        Action::TakeOverFrom(component) => take_over(&mut next, Set::only(component)),
        Action::Shrink { owner, component } => {
            next.active = next.active.without(component);
            next.owners[owner as usize].active = next.active;
        }
        Action::ForgetComponent { owner, component } => {
            let owner = &mut next.owners[owner as usize];
            owner.active = owner.active.without(component);
        }
        Action::Open { owner, component } => {
            next.components[component].promised = owner;
            if config.keeps(Rule::Fence) {
                next.drop_older(component, owner);
            }
        }
        Action::Settle { component, block, to, .. } => {
            next.components[component].stored[block] = to;
        }
        Action::Stamp { owner, component } => next.components[component].watermark = Id::new(owner, 0),
        Action::Serve { owner } => serve(&mut next, owner),
        Action::Write { owner, block } => write(&mut next, owner, block),
        Action::Acknowledge { owner, block } => acknowledge(config, &mut next, owner, block),
        Action::End { owner, block } => next.owners[owner as usize].end(block),
        Action::CatchUp { owner } => next.owners[owner as usize].is_caught_up = true,
        Action::Read { owner, component, block } => read(&mut next, owner, component, block)?,
        Action::SendWatermark { owner, component } => {
            next.components[component].watermark = watermark(&state.owners[owner as usize], owner);
        }
        Action::Attach { owner, component, source } => attach(config, &mut next, owner, component, source),
        Action::Abandon { owner } => {
            next.owners[owner as usize].end_resync();
        }
        Action::Copy { owner, component, block, source } => {
            let copied = state.components[source].stored[block];
            next.components[component].stored[block] = copied;
            next.owners[owner as usize].copied |= 1 << block;
        }
        Action::Grow { owner, component } => {
            next.active = next.active.with(component);
            let owner = &mut next.owners[owner as usize];
            owner.active = next.active;
            owner.end_resync();
        }
        Action::Deliver { id, block, component, is_answered } => {
            next.take(id, component);
            next.components[component].stored[block] = id;
            if is_answered {
                let answered = &mut next.owners[id.epoch() as usize].answered[block];
                *answered = answered.with(component);
            }
        }
    }
    check_active(&next)?;
    Ok(next)
}

fn take_over(state: &mut State, active: Set) {
    state.epoch += 1;
    state.active = active;
    state.owners[state.epoch as usize] = Owner { phase: Phase::Opening, active, ..Owner::default() };
}

fn serve(state: &mut State, epoch: u8) {
    let owner = &mut state.owners[epoch as usize];
    owner.phase = Phase::Serving;
    if epoch > state.decided_by {
        let first = owner.active.iter().next().expect("an owner has a component");
        state.decided_by = epoch;
        state.decided = state.components[first].stored;
    }
}

fn write(state: &mut State, epoch: u8, block: usize) {
    let owner = &mut state.owners[epoch as usize];
    owner.sequence += 1;
    let id = Id::new(epoch, owner.sequence);
    owner.pending[block] = id;
    owner.answered[block] = Set::default();
    let addressed = owner.active.or(owner.resyncing);
    state.writes += 1;
    addressed.iter().for_each(|component| state.send(id, block, component));
}

fn acknowledge(config: &Config, state: &mut State, epoch: u8, block: usize) {
    let owner = &mut state.owners[epoch as usize];
    state.known[block] = state.known[block].max(owner.pending[block]);
    // Without the rule that they wait, what is not there yet is never waited for.
    let is_trailing = config.is_early
        && config.keeps(Rule::AcknowledgeWaitsForResync)
        && !owner.answered[block].covers(owner.active.or(owner.resyncing));
    match is_trailing {
        true => owner.trailing |= 1 << block,
        false => owner.pending[block] = Id::default(),
    }
}

fn read(state: &mut State, epoch: u8, component: usize, block: usize) -> Result<(), Violation> {
    let found = state.components[component].stored[block];
    let known = state.known[block];
    if found < known {
        return Err(Violation::Stale { owner: epoch, block, found, known });
    }
    if found.epoch() < state.decided_by && found > state.decided[block] {
        return Err(Violation::CameBack { owner: epoch, block, found });
    }
    state.known[block] = found;
    Ok(())
}

fn attach(config: &Config, state: &mut State, epoch: u8, component: usize, source: usize) {
    let (from, to) = (state.components[source].region(), state.components[component].region());
    let watermark = state.components[component].watermark;
    state.components[component].promised = epoch;
    // A new session: what the former one has sent does not count any more.
    let oldest = if config.keeps(Rule::Sessions) { epoch + 1 } else { epoch };
    state.drop_older(component, oldest);
    let pending = state.owners[epoch as usize].pending;
    for (block, id) in pending.into_iter().enumerate().filter(|(_, id)| *id != Id::default()) {
        let answered = &mut state.owners[epoch as usize].answered[block];
        if config.keeps(Rule::AttachTakesWritesUnderWay) {
            *answered = answered.without(component);
            state.send(id, block, component);
        } else {
            *answered = answered.with(component);
        }
    }
    let must_copy = match config.without {
        Some(Rule::DeltaLooksAtBoth) => from > watermark,
        Some(Rule::DeltaNotByDifference) => from != to,
        Some(Rule::DeltaNotByOrder) => from > to,
        _ => from.max(to) > watermark,
    };
    let owner = &mut state.owners[epoch as usize];
    owner.resyncing = Set::only(component);
    owner.copied = if must_copy { 0 } else { (1 << BLOCKS) - 1 };
}

/// Whatever a guest knows is on every component that the record names active.
fn check_active(state: &State) -> Result<(), Violation> {
    for component in state.active.iter() {
        for block in 0..BLOCKS {
            let known = state.known[block];
            if state.components[component].stored[block] < known {
                return Err(Violation::Lost { component, block, known });
            }
        }
    }
    Ok(())
}
