//! What a step does, and what must be true after it.

use crate::parity::config::{Action, Config, Violation};
use crate::parity::next::{Undecided, addressed, folders, next, undecided, watermark};
use crate::parity::read::{Fault, decode, read};
use crate::parity::rule::Rule;
use crate::parity::state::{Change, DATA, Decode, Fold, Kind, NONE, Owner, Phase, State, Unit};
use crate::parts::{Id, Set};
use crate::world::World;

impl World for Config {
    type State = State;
    type Action = Action;
    type Violation = Violation;
    type Key = [u64; 8];
    type Rule = Rule;
    const RULES: &'static [(&'static str, Rule)] = &Rule::ALL;

    fn without(self, rule: Rule) -> Config {
        Config { without: Some(rule), ..self }
    }

    fn can_miss(&self, rule: Rule) -> bool {
        self.parity > 1 || !matches!(rule, Rule::EvenBeforeChange | Rule::PutKeepsReplaced)
    }

    fn first(&self) -> State {
        State::first(self.parity)
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

    fn key(&self, state: &State) -> [u64; 8] {
        state.key()
    }
}

fn apply(config: &Config, state: &mut State, action: Action) -> Result<(), Violation> {
    match action {
        Action::TakeOver => take_over(state),
        Action::Shrink { owner, member } => {
            state.active = state.active.without(member);
            state.owners[owner as usize].active = state.active;
        }
        Action::Open { owner, member } => state.members[member].promised = owner,
        Action::Put { member, id, .. } => put(config, state, member, id)?,
        Action::Drop { member, .. } => take_back(config, state, member)?,
        Action::Stamp { owner, member } => decide(state, member, Id::new(owner, 0)),
        Action::Serve { owner } => serve(config, state, owner)?,
        Action::Write { owner, kind } => write(state, owner, kind),
        Action::Deliver { owner, member } => {
            let Change { kind, id, .. } = state.owners[owner as usize].change;
            let is_covered = state.owners[owner as usize].addressed().and(state.parity()) != Set::default();
            match kind {
                Kind::Small(block) => store(state, member, block, id, is_covered),
                Kind::Row => store_row(config, state, member, id),
                Kind::None => unreachable!("a write is under way"),
            }
            let reached = &mut state.owners[owner as usize].change.reached;
            *reached = reached.with(member);
        }
        Action::Refuse { owner, member } => refuse(config, state, owner, member),
        Action::TakeBack { owner, member } => undo(config, state, owner, member)?,
        Action::Acknowledge { owner } => acknowledge(state, owner),
        Action::End { owner } => state.owners[owner as usize].change = Change::default(),
        Action::Fold { owner, is_delta } => fold(config, state, owner, is_delta)?,
        Action::DeliverFold { owner, member } => deliver_fold(config, state, owner, member),
        Action::EndFold { owner } => state.owners[owner as usize].fold = None,
        Action::Promote { member, .. } => state.members[member].unit.layer[member] = NONE,
        Action::BeginDecode { member, block, .. } => {
            let unit = &state.members[member].unit;
            let needs_base = unit.layer[DATA - 1 - block] != NONE;
            state.decode = Some(Decode { block, counts: unit.content, needs_base });
        }
        Action::EndDecode => end_decode(state)?,
        Action::SendWatermark { owner, member } => {
            let to = watermark(&state.owners[owner as usize], owner);
            decide(state, member, to);
        }
        Action::Attach { owner, member } => attach(config, state, owner, member),
        Action::Abandon { owner } => state.owners[owner as usize].end_resync(),
        Action::Remake { owner, member } => remake(config, state, owner, member)?,
        Action::CatchUp { owner } => state.owners[owner as usize].is_caught_up = true,
        Action::Grow { owner, member } => {
            state.active = state.active.with(member);
            let owner = &mut state.owners[owner as usize];
            owner.active = state.active;
            owner.end_resync();
        }
    }
    Ok(())
}

fn take_over(state: &mut State) {
    state.epoch += 1;
    state.decode = None;
    let active = state.active;
    state.owners[state.epoch as usize] = Owner { phase: Phase::Opening, active, ..Owner::default() };
}

/// A former owner of whom no message is on its way, and no acknowledgement to come, is nobody.
fn retire(state: &mut State) {
    for epoch in 1..state.epoch {
        let owner = &state.owners[epoch as usize];
        let to = addressed(state, owner).or(folders(state, owner));
        let is_heard = to.iter().any(|member| state.members[member].promised == epoch);
        let may_acknowledge = owner.change.kind != Kind::None && !owner.change.is_acknowledged;
        if !is_heard && !may_acknowledge || owner.change.kind == Kind::None && owner.fold.is_none() {
            state.owners[epoch as usize] = Owner::default();
        }
    }
}

/// A small write on a member: content and base, or a copy.
fn store(state: &mut State, member: usize, block: usize, id: Id, is_covered: bool) {
    let at = &mut state.members[member];
    at.replaced = None;
    if member >= DATA {
        at.unit.layer[block] = id;
        return;
    }
    if is_covered && at.unit.layer[block] == NONE {
        at.unit.layer[block] = at.unit.content[block];
    }
    at.unit.content[block] = id;
}

/// A row write on a member: it ends copies and bases, and keeps what it replaces.
fn store_row(config: &Config, state: &mut State, member: usize, id: Id) {
    let at = &mut state.members[member];
    at.replaced = config.keeps(Rule::KeepReplaced).then_some(at.unit);
    at.unit.layer = [NONE; DATA];
    match member < DATA {
        true => at.unit.content[member] = id,
        false => at.unit.content = [id; DATA],
    }
}

/// A write that was under way, on a member that lacks it.
fn put(config: &Config, state: &mut State, member: usize, id: Id) -> Result<(), Violation> {
    let active = state.owners[state.epoch as usize].active;
    let Undecided::Forward { holders, .. } = undecided(config, state, active) else {
        unreachable!("something is undecided");
    };
    if state.is_row(id) {
        if holders.count() < DATA {
            return Err(Violation::CannotPut { member });
        }
        store_row(config, state, member, id);
        if !config.keeps(Rule::PutKeepsReplaced) {
            state.members[member].replaced = None;
        }
        return Ok(());
    }
    let has = |block: &usize| holders.iter().any(|holder| state.newest(holder, *block) == id);
    let block = (0..DATA).find(has).expect("somebody holds it");
    store(state, member, block, id, !active.and(state.parity()).is_empty());
    Ok(())
}

fn take_back(config: &Config, state: &mut State, member: usize) -> Result<(), Violation> {
    let at = &mut state.members[member];
    let Some(replaced) = at.replaced.take() else {
        return Err(Violation::CannotDrop { member });
    };
    at.unit = replaced;
    if !config.keeps(Rule::DropRestoresLayers) {
        at.unit.layer = [NONE; DATA];
    }
    Ok(())
}

/// Notes who has no room, and reads what stands there: what stood before the write.
fn refuse(config: &Config, state: &mut State, epoch: u8, member: usize) {
    let Unit { content, layer } = state.members[member].unit;
    let change = &mut state.owners[epoch as usize].change;
    if change.reached.is_empty() {
        *change = Change::default();
        return;
    }
    change.refused_by = Some(member);
    let Kind::Small(block) = change.kind else { return };
    // A data member with a base, or a parity member with a copy: whoever took the write had two versions before, too.
    if layer[block] != NONE && (member >= DATA || config.keeps(Rule::TakeBackFormerCopy)) {
        change.former = if member >= DATA { layer[block] } else { content[block] };
    }
}

/// Takes a write back that another member has no room for.
fn undo(config: &Config, state: &mut State, epoch: u8, member: usize) -> Result<(), Violation> {
    let Change { kind, former, .. } = state.owners[epoch as usize].change;
    let is_right = state.owners[epoch as usize].right().has(member);
    match kind {
        // It keeps the write, and so shows that it is to be made anew, whoever attaches it next.
        _ if !is_right => {}
        Kind::Small(block) => {
            let unit = &mut state.members[member].unit;
            match (member >= DATA, former != Id::default()) {
                (true, true) => unit.layer[block] = former,
                (true, false) => unit.layer[block] = NONE,
                (false, true) => unit.content[block] = former,
                (false, false) => (unit.content[block], unit.layer[block]) = (unit.layer[block], NONE),
            }
        }
        Kind::Row => take_back(config, state, member)?,
        Kind::None => unreachable!("a write is under way"),
    }
    let change = &mut state.owners[epoch as usize].change;
    change.reached = change.reached.without(member);
    if change.reached.is_empty() {
        *change = Change::default();
    }
    Ok(())
}

/// Tells a member that all ids up to `to` are decided.
fn decide(state: &mut State, member: usize, to: Id) {
    let at = &mut state.members[member];
    at.watermark = to;
    let id = if member < DATA { at.unit.content[member] } else { at.unit.content[0] };
    if id <= to {
        at.replaced = None;
    }
}

fn serve(config: &Config, state: &mut State, epoch: u8) -> Result<(), Violation> {
    let owner = &mut state.owners[epoch as usize];
    owner.phase = Phase::Serving;
    let from = owner.active;
    for block in 0..DATA {
        let known = state.known[block];
        let found = read(state, from, block, config.without).map_err(|fault| Violation::Unreadable {
            block,
            from,
            fault,
        })?;
        if found < known {
            return Err(Violation::Lost { block, from, found, known });
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

fn write(state: &mut State, epoch: u8, kind: Kind) {
    let owner = &mut state.owners[epoch as usize];
    owner.sequence += 1;
    let id = Id::new(epoch, owner.sequence);
    owner.change = Change { kind, id, ..Change::default() };
    state.rows |= u16::from(kind == Kind::Row) << id.0;
    state.writes += 1;
}

fn acknowledge(state: &mut State, epoch: u8) {
    let change = &mut state.owners[epoch as usize].change;
    change.is_acknowledged = true;
    let blocks = match change.kind {
        Kind::Small(block) => block..block + 1,
        Kind::Row | Kind::None => 0..DATA,
    };
    for block in blocks {
        state.known[block] = state.known[block].max(change.id);
    }
    let owner = &state.owners[epoch as usize];
    if owner.change.reached.covers(addressed(state, owner)) {
        state.owners[epoch as usize].change = Change::default();
    }
}

fn fold(config: &Config, state: &mut State, epoch: u8, is_delta: bool) -> Result<(), Violation> {
    let owner = state.owners[epoch as usize];
    let mut counts = [Id::default(); DATA];
    for (block, count) in counts.iter_mut().enumerate() {
        *count = read(state, owner.active, block, config.without).map_err(|fault| Violation::Unreadable {
            block,
            from: owner.active,
            fault,
        })?;
    }
    for member in folders(state, &owner).iter().filter(|_| is_delta) {
        let unit = &state.members[member].unit;
        let begins = |block: usize| state.members[block].unit.layer[block];
        let is_wrong = |block: &usize| unit.layer[*block] != NONE && unit.content[*block] != begins(*block);
        if (0..DATA).any(|block| is_wrong(&block)) {
            return Err(Violation::WrongFold { member });
        }
    }
    state.owners[epoch as usize].fold = Some(Fold { is_delta, counts, ..Fold::default() });
    Ok(())
}

fn deliver_fold(config: &Config, state: &mut State, epoch: u8, member: usize) {
    let fold = state.owners[epoch as usize].fold.as_mut().expect("a fold is under way");
    let at = &mut state.members[member];
    if !fold.written.has(member) {
        fold.written = fold.written.with(member);
        at.replaced = None;
        for block in 0..DATA {
            if !fold.is_delta || at.unit.layer[block] != NONE {
                at.unit.content[block] = fold.counts[block];
            }
        }
        if !config.keeps(Rule::FoldInOneBatch) {
            return;
        }
    }
    fold.folded = fold.folded.with(member);
    at.unit.layer = [NONE; DATA];
}

fn end_decode(state: &mut State) -> Result<(), Violation> {
    let Some(Decode { block, counts, needs_base }) = state.decode.take() else {
        unreachable!("a read is under way");
    };
    let other = DATA - 1 - block;
    let unit = &state.members[other].unit;
    let taken = if needs_base { unit.layer[other] } else { unit.content[other] };
    let from = Set::only(other);
    match taken {
        NONE => Err(Violation::Unreadable { block, from, fault: Fault::BaseGone }),
        taken if taken != counts[other] => Err(Violation::Unreadable { block, from, fault: Fault::Wrong }),
        _ => Ok(()),
    }
}

fn attach(config: &Config, state: &mut State, epoch: u8, member: usize) {
    let at = &mut state.members[member];
    at.promised = epoch;
    let (watermark, own) = (at.watermark, at.version());
    let active = state.owners[epoch as usize].active;
    let row = active.iter().map(|member| state.members[member].version()).max().unwrap_or_default();
    let version = if config.keeps(Rule::RowDecides) { own.max(row) } else { own };
    let holds = member >= DATA && state.members[member].unit.layer != [NONE; DATA];
    let owner = &mut state.owners[epoch as usize];
    let is_changing = owner.change.kind != Kind::None && config.keeps(Rule::RemakeUnderWay);
    let must_remake = version > watermark || is_changing || holds && config.keeps(Rule::RemakeHeldCopies);
    owner.resyncing = Set::only(member);
    owner.is_copied = !must_remake;
    owner.change.reached = owner.change.reached.without(member);
}

fn remake(config: &Config, state: &mut State, epoch: u8, member: usize) -> Result<(), Violation> {
    let from = state.owners[epoch as usize].active;
    let mut unit = Unit { content: [Id::default(); DATA], layer: [NONE; DATA] };
    for block in (0..DATA).filter(|block| member >= DATA || *block == member) {
        unit.content[block] = read(state, from, block, config.without)
            .map_err(|fault| Violation::Unreadable { block, from, fault })?;
    }
    let at = &mut state.members[member];
    if member >= DATA && !config.keeps(Rule::RemadeEndsCopies) {
        unit.layer = at.unit.layer;
    }
    at.unit = unit;
    at.replaced = None;
    state.owners[epoch as usize].is_copied = true;
    Ok(())
}

/// While nothing is under way, whoever serves reads what guests know, from any members that suffice.
fn check(config: &Config, state: &State) -> Result<(), Violation> {
    for epoch in 1..=state.epoch {
        let owner = &state.owners[epoch as usize];
        let has_lease = owner.active.iter().all(|member| state.members[member].promised == epoch);
        if owner.phase != Phase::Serving || !has_lease || owner.change.kind != Kind::None {
            continue;
        }
        for block in 0..DATA {
            let verify = |from: Set, found: Result<Id, Fault>| {
                let found = found.map_err(|fault| Violation::Unreadable { block, from, fault })?;
                let known = state.known[block];
                let violation = match found < known {
                    true => Violation::Lost { block, from, found, known },
                    false => Violation::CameBack { block, found, known },
                };
                if found == known { Ok(()) } else { Err(violation) }
            };
            if owner.active.has(block) {
                verify(Set::only(block), Ok(state.members[block].unit.content[block]))?;
            }
            if owner.fold.is_some() {
                continue;
            }
            for from in (1..1 << state.members_count).map(Set) {
                if owner.active.covers(from) && !from.has(block) && from.count() >= DATA {
                    verify(from, decode(state, from, block, config.without))?;
                }
            }
            if !owner.active.has(block) {
                verify(owner.active, read(state, owner.active, block, config.without))?;
            }
        }
    }
    Ok(())
}
