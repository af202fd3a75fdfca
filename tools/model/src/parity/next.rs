//! Which steps are possible.

use crate::parity::config::{Action, Config};
use crate::parity::rule::Rule;
use crate::parity::state::{DATA, Kind, NONE, Owner, Phase, SEQUENCE_MAX, State};
use crate::parts::{Id, Set};

/// Everything that may happen next.
pub fn next(config: &Config, state: &State, out: &mut Vec<Action>) {
    if state.epoch < config.epochs {
        out.push(Action::TakeOver);
    }
    for epoch in 1..=state.epoch {
        let owner = &state.owners[epoch as usize];
        if owner.phase == Phase::None {
            continue;
        }
        next_of_messages(config, state, epoch, owner, out);
        // What else a former owner does before it is fenced, it may as well have done before the record changed.
        if epoch < state.epoch {
            continue;
        }
        let least = if config.keeps(Rule::Enough) { DATA } else { 1 };
        if owner.active.count() > least {
            out.extend(owner.active.iter().map(|member| Action::Shrink { owner: epoch, member }));
        }
        match owner.phase {
            Phase::Opening => next_of_opening(config, state, epoch, owner, out),
            Phase::Serving | Phase::None if has_promised(state, owner.active, epoch) => {
                next_of_serving(config, state, epoch, owner, out);
            }
            Phase::Serving | Phase::None => {}
        }
    }
}

fn has_promised(state: &State, members: Set, epoch: u8) -> bool {
    members.iter().all(|member| state.members[member].promised == epoch)
}

/// Whom a write goes to.
pub fn addressed(state: &State, owner: &Owner) -> Set {
    match owner.change.kind {
        Kind::None => Set::default(),
        Kind::Small(block) => owner.addressed().and(state.parity().with(block)),
        Kind::Row => owner.addressed(),
    }
}

/// Which parity members a fold goes to.
pub fn folders(state: &State, owner: &Owner) -> Set {
    owner.right().and(state.parity())
}

/// Writes and folds that arrive, and what their answers lead to.
fn next_of_messages(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let is_open = |member: &usize| state.members[*member].promised == epoch;
    let change = &owner.change;
    if change.refused_by.is_some() {
        let holders = change.reached.iter().filter(is_open);
        out.extend(holders.map(|member| Action::TakeBack { owner: epoch, member }));
    } else if change.kind != Kind::None {
        let all = addressed(state, owner);
        let missing = all.iter().filter(|member| !change.reached.has(*member)).filter(is_open);
        out.extend(missing.map(|member| Action::Deliver { owner: epoch, member }));
        let mut awaited = if owner.is_caught_up { all } else { all.and(owner.active) };
        if let (Kind::Small(block), false) = (change.kind, config.keeps(Rule::CopiesBeforeAcknowledge)) {
            awaited = if awaited.has(block) { Set::only(block) } else { awaited };
        }
        if !change.is_acknowledged && change.reached.covers(awaited) {
            out.push(Action::Acknowledge { owner: epoch });
        }
        if change.is_acknowledged && change.reached.covers(all) {
            out.push(Action::End { owner: epoch });
        }
    }
    if let Some(fold) = owner.fold {
        let missing = folders(state, owner).iter().filter(|member| !fold.folded.has(*member));
        out.extend(missing.filter(is_open).map(|member| Action::DeliverFold { owner: epoch, member }));
    }
}

/// What the members of an opening owner show to be undecided.
#[allow(missing_docs, reason = "the fields are what the sentences name")]
pub enum Undecided {
    /// All have it, or nobody.
    Nothing,
    /// It goes to those who lack it.
    Forward { id: Id, lacking: Set, holders: Set },
    /// Its holders take it back.
    Back { id: Id, holders: Set },
}

/// See [`Undecided`]: at most the latest write of the column is undecided.
pub fn undecided(config: &Config, state: &State, active: Set) -> Undecided {
    let blocks = |member: usize| if member < DATA { member..member + 1 } else { 0..DATA };
    let versions = active
        .iter()
        .flat_map(|member| blocks(member).map(move |block| (block, state.newest(member, block))));
    let (block, id) = versions.max_by_key(|(_, id)| *id).expect("an owner has a member");
    if id == Id::default() {
        return Undecided::Nothing;
    }
    let concerned = if state.is_row(id) { active } else { active.and(state.parity().with(block)) };
    let has = |member: usize| {
        let block = if member < DATA { member } else { block };
        state.newest(member, block) == id
    };
    let holders = concerned.iter().filter(|member| has(*member)).fold(Set::default(), Set::with);
    let lacking = Set(concerned.0 & !holders.0);
    let is_enough = holders.count() >= DATA || !config.keeps(Rule::RowForwardWithEnough);
    match (lacking.is_empty(), state.is_row(id) && !is_enough) {
        (true, _) => Undecided::Nothing,
        (false, false) => Undecided::Forward { id, lacking, holders },
        (false, true) => Undecided::Back { id, holders },
    }
}

fn next_of_opening(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let closed = owner.active.iter().filter(|member| state.members[*member].promised < epoch);
    out.extend(closed.map(|member| Action::Open { owner: epoch, member }));
    if !has_promised(state, owner.active, epoch) {
        return;
    }
    if config.keeps(Rule::DecideWindow) {
        match undecided(config, state, owner.active) {
            Undecided::Nothing => {}
            Undecided::Forward { id, lacking, .. } => {
                return out.extend(lacking.iter().map(|member| Action::Put { owner: epoch, member, id }));
            }
            Undecided::Back { id, holders } => {
                return out.extend(holders.iter().map(|member| Action::Drop { owner: epoch, member, id }));
            }
        }
    }
    let before = out.len();
    let unstamped = owner.active.iter().filter(|it| state.members[*it].watermark < Id::new(epoch, 0));
    out.extend(unstamped.map(|member| Action::Stamp { owner: epoch, member }));
    if out.len() == before {
        out.push(Action::Serve { owner: epoch });
    }
}

fn next_of_serving(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let is_stale = |block: &usize| state.is_stale_base(owner, *block);
    let is_changing = owner.change.kind != Kind::None;
    let is_decoding = state.decode.is_some();
    let is_uneven = |block| state.is_uneven(owner, block) && config.keeps(Rule::EvenBeforeChange);
    let is_clear = !(0..DATA).any(|block| is_stale(&block) || is_uneven(block));
    let knows_sets = is_clear || !config.keeps(Rule::AskForSets);
    let may_overlap = !config.keeps(Rule::FoldExcludesChanges);
    let may_write = !is_changing && !is_decoding && (owner.fold.is_none() || may_overlap);
    let is_known = knows_sets || !config.keeps(Rule::WriteWaitsForPromote);
    if may_write && is_known && owner.sequence < SEQUENCE_MAX && state.writes < config.writes {
        let kinds = [Kind::Small(0), Kind::Small(1), Kind::Row];
        out.extend(kinds.map(|kind| Action::Write { owner: epoch, kind }));
    }
    next_of_fold(config, state, epoch, owner, out);
    if !is_changing && owner.fold.is_none() {
        let stale = (0..DATA).filter(is_stale).filter(|member| state.members[*member].promised == epoch);
        out.extend(stale.map(|member| Action::Promote { owner: epoch, member }));
    }
    if is_changing && !owner.change.is_acknowledged && owner.change.refused_by.is_none() {
        let full = addressed(state, owner).and(owner.active).iter();
        let full = full.filter(|member| !owner.change.reached.has(*member));
        out.extend(full.map(|member| Action::Refuse { owner: epoch, member }));
    }
    if is_decoding {
        out.push(Action::EndDecode);
    } else if !config.keeps(Rule::FoldExcludesDecoding) && !is_changing {
        let parity = owner.active.and(state.parity());
        let pairs = parity.iter().flat_map(|member| (0..DATA).map(move |block| (member, block)));
        let wanted = pairs.filter(|(member, block)| {
            state.members[*member].unit.layer[*block] == NONE && owner.active.has(DATA - 1 - *block)
        });
        out.extend(wanted.map(|(member, block)| Action::BeginDecode { owner: epoch, member, block }));
    }
    let informed = owner.active.iter().filter(|it| state.members[*it].watermark < watermark(owner, epoch));
    out.extend(informed.map(|member| Action::SendWatermark { owner: epoch, member }));
    next_of_resync(config, state, epoch, owner, out);
}

fn next_of_fold(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let is_changing = owner.change.kind != Kind::None && config.keeps(Rule::FoldExcludesChanges);
    let folders = folders(state, owner);
    let Some(fold) = owner.fold else {
        let copied = || (0..DATA).filter(|block| state.is_copied_on(folders, *block));
        if is_changing || copied().next().is_none() {
            return;
        }
        let usable = match config.keeps(Rule::NoBaseOfResyncing) {
            true => owner.active,
            false => owner.addressed(),
        };
        let has_base = |block: usize| usable.has(block) && state.members[block].unit.layer[block] != NONE;
        if copied().all(has_base) {
            out.push(Action::Fold { owner: epoch, is_delta: true });
        }
        return out.push(Action::Fold { owner: epoch, is_delta: false });
    };
    let is_folded = fold.folded.covers(folders);
    let stale = |block: &usize| state.is_stale_base(owner, *block);
    let early = |block: &usize| {
        !config.keeps(Rule::PromoteAfterFold)
            && owner.active.has(*block)
            && state.members[*block].unit.layer[*block] != NONE
    };
    let promoted = (0..DATA).filter(|block| is_folded && stale(block) || early(block));
    let promoted = promoted.filter(|member| state.members[*member].promised == epoch);
    out.extend(promoted.map(|member| Action::Promote { owner: epoch, member }));
    let waits = config.keeps(Rule::WriteWaitsForPromote) && (0..DATA).any(|block| stale(&block));
    if is_folded && !waits {
        out.push(Action::EndFold { owner: epoch });
    }
}

fn next_of_resync(config: &Config, state: &State, epoch: u8, owner: &Owner, out: &mut Vec<Action>) {
    let Some(member) = owner.resyncing.iter().next() else {
        let absent = (0..state.members_count).filter(|member| !owner.active.has(*member));
        let attachable = absent.filter(|member| state.members[*member].promised <= epoch);
        out.extend(attachable.map(|member| Action::Attach { owner: epoch, member }));
        return;
    };
    out.push(Action::Abandon { owner: epoch });
    if state.members[member].promised != epoch {
        return;
    }
    let is_locked = owner.change.kind != Kind::None || owner.fold.is_some() || state.decode.is_some();
    let active = owner.active;
    let is_folded = !(0..DATA).any(|block| state.is_copied_on(active, block));
    let must_fold = member < DATA && !is_folded && config.keeps(Rule::FoldBeforeRemaking);
    if !owner.is_copied && !is_locked && !must_fold {
        out.push(Action::Remake { owner: epoch, member });
    }
    let is_trailing = owner.change.is_acknowledged && !owner.change.reached.has(member);
    let is_right = owner.is_copied && !(is_trailing && addressed(state, owner).has(member));
    if is_right && !owner.is_caught_up {
        out.push(Action::CatchUp { owner: epoch });
    }
    if owner.is_caught_up {
        out.push(Action::Grow { owner: epoch, member });
    }
}

/// All ids up to here are ended.
pub fn watermark(owner: &Owner, epoch: u8) -> Id {
    match owner.change.kind {
        Kind::None => Id::new(epoch, owner.sequence),
        Kind::Small(_) | Kind::Row => Id(owner.change.id.0 - 1),
    }
}
