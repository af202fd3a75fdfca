//! A place without any active component that can be reached: put together again from an absent one and its stand-in.
//!
//! The absent component has all that was acknowledged before it left, its stand-in all that was acknowledged since, so that
//! nothing is guessed (docs/design/0013; invariant 10 as it is extended there). The order is what keeps data safe: first it
//! is made sure that the component has nothing that was decided to be void, then the window is decided between the two,
//! then what the stand-in has is copied onto the component, and only then does the record count it as active. Until that
//! moment nothing has happened: an active component that comes back ends it.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::data::Data;
use super::interface::{Event, Output, Phase};
use super::member::{At, CountedAs, Member, Opened, Wish};
use super::place::{Place, Restore};
use super::windows::{decided, is_contiguous, opened, rolls};
use crate::limits;
use crate::locks::Range;
use crate::roster::Standing;
use crate::rules::Rule;
use base::Instant;
use base::request::Piece;
use wire::{Entry, Refusal, Request, layer};

impl Place {
    /// Whether too few active components have been there for as long as one may take to come back: none, or of rows fewer than there are data units.
    fn has_lost_too_many(&self, now: Instant) -> bool {
        !self.is_enough(self.active().filter(|(_, one)| !is_lost(one, now)))
    }

    /// An absent component and its stand-in that both serve this owner; of rows, where these and others like them are what is missing.
    fn pair(&self, now: Instant) -> Option<(u8, u8)> {
        let is_there = |one: &Member| one.opened().is_some() && one.resync().is_none();
        let decided = decided(self);
        let pair = |(member, one): (u8, &Member)| {
            let (stand_in, other) = self.stand_in_of(one.component)?;
            let is_told = |one: &Member| !opened(one).entries.iter().any(Entry::is_cut);
            let is_usable = one.is_absent() && is_there(one) && is_there(other) && is_told(one);
            (is_usable && is_contiguous(opened(other), decided, false)).then_some((member, stand_in))
        };
        let named = || (0u8..).zip(&self.members).filter(|(_, one)| !one.is_gone());
        let found = named().find_map(pair)?;
        let shows = |one: &Member| one.opened().is_some_and(|opened| is_contiguous(opened, decided, false));
        let is_known = self.active().all(|(_, one)| is_lost(one, now) || shows(one));
        let is_left = |(index, one): (u8, &Member)| {
            (one.is_active() && !is_lost(one, now)) || self.restored.contains(index)
        };
        let would_have = |one: &(u8, &Member)| is_left(*one) || pair(*one).is_some();
        (is_known && (self.code.is_none() || self.is_enough(named().filter(would_have)))).then_some(found)
    }
}

/// Blocks of a component that a change is of.
fn range_of(entry: &Entry) -> Range {
    Range { part: layer::split(entry.part).1, block: entry.block, count: entry.count }
}

/// Whether a component has been away for as long as one may take to come back.
fn is_lost(one: &Member, now: Instant) -> bool {
    one.is_down().is_some_and(|(since, _)| since + limits::RECONNECT <= now)
}

impl Owner {
    /// Whether an absent component is to be opened although the disk is not served: with its stand-in it may be all that is
    /// left.
    pub(crate) fn may_be_restored(&self, at: At) -> bool {
        let place = &self.places[usize::from(at.place)];
        let member = self.member(at);
        self.phase == Phase::Opening
            && member.is_absent()
            && place.stand_in_of(member.component).is_some()
            && place.has_lost_too_many(self.now)
    }

    /// Whether a disk that was served is to be opened anew, so that a component that is there again can be restored.
    pub(crate) fn can_be_restored(&self, at: At) -> bool {
        let place = &self.places[usize::from(at.place)];
        let member = self.member(at);
        let stand_in = place.stand_in_of(member.component);
        self.phase == Phase::Serving
            && member.is_absent()
            && stand_in.is_some_and(|(_, one)| one.is_open())
            && place.has_lost_too_many(self.now)
    }

    /// Begins to put together the places that need it and can be.
    pub(crate) fn advance_restores(&mut self) {
        if self.phase != Phase::Opening {
            return;
        }
        for index in 0..self.places.len() as u16 {
            let place = &self.places[usize::from(index)];
            let is_busy = place.is_ready || place.deciding.is_some() || place.restore.is_some();
            let waits = place.members.iter().any(|one| one.wish.is_some());
            if is_busy || waits || !place.has_lost_too_many(self.now) || self.restores_without_rule(index) {
                continue;
            }
            if let Some((member, stand_in)) = self.places[usize::from(index)].pair(self.now) {
                self.start_restore(At { place: index, member }, stand_in);
            }
        }
    }

    /// A component begins to be restored from its stand-in.
    fn start_restore(&mut self, at: At, stand_in: u8) {
        self.attempts += 1;
        let place = &self.places[usize::from(at.place)];
        let is_of_rows = place.code.is_some();
        let doubtful = self.doubtful(at);
        let restore = Restore::new(self.attempts, (at.member, stand_in), doubtful);
        let (component, other) = (self.member(at).component, place.members[usize::from(stand_in)].component);
        self.places[usize::from(at.place)].restore = Some(restore);
        self.out.push(Output::Event(Event::RestoreBegan { component, stand_in: other }));
        match is_of_rows {
            false => self.ask_doubtful(at),
            true => self.roll_rows_for_restore(at),
        }
    }

    /// Every change that the component had beyond what is known to be on it, and that is decided, must be on its stand-in too:
    /// else it was decided without the component, and what stood there before is lost with the active components. Of rows that is said of small changes alone, whatever
    /// became of them: of others the component has what they replace.
    fn doubtful(&self, at: At) -> Vec<Range> {
        let place = &self.places[usize::from(at.place)];
        let member = self.member(at);
        let decided = decided(place);
        let is_meant = |entry: &Entry| match place.code {
            None => entry.id <= decided,
            Some(_) => layer::is_of_copies(layer::split(entry.part).0),
        };
        let is_doubtful = |entry: &&Entry| {
            entry.id > member.base && is_meant(entry) && entry.count > 0 && !entry.has_happened
        };
        if !self.holds(Rule::RestoreNothingVoid) {
            return Vec::new();
        }
        opened(member).entries.iter().filter(is_doubtful).map(range_of).collect()
    }

    /// Asks the stand-in whether it has all that is in doubt.
    pub(crate) fn ask_doubtful(&mut self, at: At) {
        let restore = self.places[usize::from(at.place)].restore.as_mut().expect("it is being restored");
        let doubtful = std::mem::take(&mut restore.doubtful);
        let attempt = restore.attempt;
        restore.checks_left = doubtful.len() as u32;
        let stand_in = restore.stand_in;
        let stand_in = self.member(At { place: at.place, member: stand_in });
        let (node, component, epoch) = (stand_in.node, stand_in.component, self.epoch);
        for Range { part, block, count } in doubtful {
            let request = Request::Read { component, epoch, part, block, count, verify: true };
            self.send(node, Asked::Doubtful { at, attempt }, request);
        }
        self.doubts_answered(at);
    }

    /// Goes on once nothing of the component is in doubt.
    fn doubts_answered(&mut self, at: At) {
        let place = &self.places[usize::from(at.place)];
        match place.restore.as_ref().filter(|restore| restore.checks_left == 0) {
            None => {}
            Some(_) if place.code.is_none() => self.roll_for_restore(at.place),
            Some(restore) => self.begin_restore(at, restore.stand_in),
        }
    }

    /// The stand-in told what it has where the component may be wrong.
    pub(crate) fn doubt_answered(&mut self, at: At, attempt: u32, answer: Result<Data, Unanswered>) {
        let restore = self.places[usize::from(at.place)].restore.as_mut();
        let Some(restore) = restore.filter(|restore| restore.attempt == attempt) else { return };
        let is_hole = |piece: &Piece| matches!(piece, Piece::Hole(_));
        match answer {
            Ok(Data { pieces, .. }) if !pieces.iter().any(is_hole) => {
                restore.checks_left -= 1;
                self.doubts_answered(at);
            }
            Err(Unanswered::Lost) => {} // The link's change starts over.
            Err(Unanswered::Refused(Refusal::NotOpen)) => {
                let member = restore.stand_in;
                self.lost_session(At { place: at.place, member });
            }
            Ok(_) | Err(Unanswered::Refused(_)) => self.not_restored(at),
        }
    }

    /// The component cannot be restored now. An active one may come back; this is tried again in a while.
    pub(crate) fn not_restored(&mut self, at: At) {
        let now = self.now;
        let place = &mut self.places[usize::from(at.place)];
        place.deciding = None;
        place.end_restore();
        self.member_mut(at).down(now, now + limits::RESYNC_RETRY);
    }

    /// Nothing of the component is in doubt: what is not decided is rolled forward between the two, and stand-ins of others.
    fn roll_for_restore(&mut self, index: u16) {
        let place = &mut self.places[usize::from(index)];
        let Some(member) = place.restore.as_ref().map(|restore| restore.member) else { return };
        let decided = decided(place);
        if let Some(opened) = place.members[usize::from(member)].opened_mut() {
            opened.entries.retain(|entry| entry.id > decided);
        }
        let takes_part =
            |(index, one): &(u8, &Member)| *index == member || (one.counts() && one.opened().is_some());
        let members: Vec<(u8, &Member)> = (0..).zip(&place.members).filter(takes_part).collect();
        let rolls = rolls(&members, decided);
        self.decide(index, rolls, Some(member));
    }

    /// The window is decided: the component gets what its stand-in has.
    pub(crate) fn rolled_for_restore(&mut self, at: At) {
        let place = &mut self.places[usize::from(at.place)];
        place.deciding = None;
        // An earlier transaction of unknown outcome may have restored it meanwhile.
        let is_absent = place.members[usize::from(at.member)].is_absent();
        match place.restore.as_ref().map(|restore| restore.stand_in) {
            Some(_) if is_absent && place.code.is_some() => self.ask_held(at),
            Some(stand_in) if is_absent => self.begin_restore(at, stand_in),
            Some(_) => place.end_restore(),
            None => {}
        }
    }

    /// The component has all that its stand-in has: together that is all that was acknowledged, and it may be active.
    pub(crate) fn restored(&mut self, at: At) {
        if self.promote_restored(at) {
            return;
        }
        let place = &mut self.places[usize::from(at.place)];
        let watermark = decided(place);
        let is_absent = place.members[usize::from(at.member)].is_absent();
        let Some(restore) = place.restore.take().filter(|_| is_absent) else { return self.not_restored(at) };
        let entries = opened(&place.members[usize::from(restore.stand_in)]).entries.clone();
        let member = &mut place.members[usize::from(at.member)];
        // What it has now is what its stand-in has, and so is what is known of it.
        member.replace_opened(Opened { watermark, entries });
        match place.code {
            None => member.wish = Some(Wish::Join(CountedAs::Active)),
            Some(_) => self.put_together(at),
        }
    }

    /// One of the two is taken for both.
    fn restores_without_rule(&mut self, index: u16) -> bool {
        let place = &mut self.places[usize::from(index)];
        let pairs = |one: &Member| {
            one.is_absent()
                && place.stand_in_of(one.component).is_some()
                && !self.settings.rules.hold(Rule::RestoreWithStandIn)
        };
        let stands_in = |one: &Member| {
            one.standing() == Standing::StandIn && !self.settings.rules.hold(Rule::RestoreOntoCopy)
        };
        let is_open = |one: &Member| one.opened().is_some();
        let alone = place.members.iter().position(|one| is_open(one) && (pairs(one) || stands_in(one)));
        if let Some(alone) = alone {
            place.members[alone].wish = Some(Wish::Join(CountedAs::Active));
        }
        alone.is_some()
    }
}
