//! Bringing a component up to date while the disk is in use.
//!
//! From the moment it is attached every change goes to it too, those in flight included (invariant 8). Then the regions that it may
//! lack are copied, each under its range lock: those that were changed after its watermark on the source or on itself (invariant
//! 9). When the last is stable, acknowledgements wait for it; when it has what was acknowledged before, the record is asked to
//! count it as active (docs/design/0021). If it fails on the way, nothing has happened: its own watermark stands where it stood.
//!
//! A component that is to stand in for another gets the regions that were changed since that one left, and only these; one
//! that is to replace it gets the rest after that (docs/design/0013).

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::backfilling::Backfilling;
use super::copy::{Holes, Purpose};
use super::interface::{End, Event, LeftBecause, Phase};
use super::member::{At, CountedAs, Member, OutAs, Wish};
use super::place::Place;
use super::resync::{Kind, Listing, Resync, Run, hole_of, joined, push_runs};
use crate::limits;
use crate::locks::Range;
use crate::roster::Role;
use crate::rules::Rule;
use base::units::BLOCK_SIZE;
use base::{ComponentId, WriteId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use wire::{Request, Versions, layer};

impl Owner {
    /// A component that does not count serves this owner: from now on it takes part, and gets what it lacks.
    pub(crate) fn begin_resync(&mut self, at: At, watermark: WriteId) {
        let place = &self.places[at.place as usize];
        let now = self.now;
        let is_enough = place.is_enough(place.active().filter(|(_, one)| one.is_open()));
        let Some((source, _)) = place.active().find(|(_, one)| one.is_open()).filter(|_| is_enough) else {
            return match self.can_be_restored(at) {
                true => self.end(End::Restoring),
                false => self.member_mut(at).down(now, now + limits::RETRY),
            };
        };
        let is_stale = self.member(at).is_stale();
        let (kind, since) = match self.member(at).stands_in_for() {
            // What members of rows hold is counted first, so that nothing is of two versions where it stands in.
            Some(of) => match self.delta_for(place, of).filter(|_| !place.has_copies()) {
                Some(since) => (Kind::StandIn, since),
                None => return self.member_mut(at).down(now, now + limits::RETRY),
            },
            None if is_stale => (Kind::Return, WriteId::default()),
            None if self.has_cut(at) => {
                // What of it may be void is not known: all of it is copied.
                return self.want_out(at, OutAs::Stale, LeftBecause::LostWrites);
            }
            None => (Kind::Return, watermark),
        };
        self.attempts += 1;
        let mut resync = Resync::new(self.attempts, kind, since, source, now);
        if kind == Kind::Return && !is_stale && self.holds(Rule::UndoVoidFirst) {
            resync.runs = self.may_be_void(at);
            resync.is_clean = resync.runs.is_empty();
        }
        if kind == Kind::StandIn && !self.holds(Rule::FillStandInFirst) {
            resync.next = None;
        }
        let component = self.member(at).component;
        self.member_mut(at).begin_resync(resync);
        let is_rebuild = since == WriteId::default();
        self.out.push(super::Output::Event(Event::ResyncBegan { component, is_rebuild }));
        if self.holds(Rule::ResyncTakesInFlight) {
            self.send_in_flight(at, &[]);
        }
        self.places[at.place as usize].settle_at = Some(self.now);
        if self.places[usize::from(at.place)].code.is_some() {
            self.ask_held(at);
        }
    }

    /// Whether a component holds more undecided changes than it could tell of.
    fn has_cut(&self, at: At) -> bool {
        let opened = self.member(at).opened();
        opened.is_some_and(|opened| opened.entries.iter().any(wire::Entry::is_cut))
    }

    /// Since when a stand-in of that component needs what was changed: everything up to there is on the component. None if
    /// it needs no stand-in now.
    fn delta_for(&self, place: &Place, of: ComponentId) -> Option<WriteId> {
        let (_, one) = place.find(of).filter(|(_, one)| one.is_absent())?;
        let is_wrong = !self.holds(Rule::StandInDeltaFromBase);
        Some(if is_wrong { WriteId { epoch: self.epoch, sequence: place.sequence } } else { one.base })
    }

    /// The changes that a component that returns had beyond what is known to be on it: each may have been decided without it.
    /// They are undone first, so that the component need not remember them for a restore to come.
    fn may_be_void(&mut self, at: At) -> VecDeque<Run> {
        let member = self.member_mut(at);
        let base = member.base;
        let entries = member.take_opened().map_or_else(Vec::new, |opened| opened.entries);
        let beyond = entries.iter().filter(|one| one.id > base && one.count > 0 && !one.has_happened);
        let run = |one: &wire::Entry| {
            let range = Range { part: layer::split(one.part).1, block: one.block, count: one.count };
            Run { range, id: one.id }
        };
        beyond.map(run).collect()
    }

    /// What a stand-in that is to be a copy lacks of that is copied onto it while it goes on to stand in.
    fn begin_fill(&mut self, at: At) {
        let place = &self.places[at.place as usize];
        let Some((source, _)) = place.active().find(|(_, one)| one.is_open()) else { return };
        self.attempts += 1;
        let resync = Resync::new(self.attempts, Kind::Fill, WriteId::default(), source, self.now);
        let member = self.member_mut(at);
        member.begin_resync(resync);
        let component = member.component;
        self.out.push(super::Output::Event(Event::ResyncBegan { component, is_rebuild: true }));
    }

    /// A component without anything active beside it gets what its stand-in has. Everything else that changes are decided by
    /// is on both.
    pub(crate) fn begin_restore(&mut self, at: At, stand_in: u8) {
        self.attempts += 1;
        let resync = Resync::new(self.attempts, Kind::Restore, WriteId::default(), stand_in, self.now);
        self.member_mut(at).begin_resync(resync);
    }

    /// A resync is over before its end: it is as if it had never begun.
    pub(crate) fn drop_resync(&mut self, at: At, why: LeftBecause) {
        let Some(resync) = self.member_mut(at).take_resync() else { return };
        if resync.kind == Kind::Restore {
            self.places[usize::from(at.place)].end_restore();
        }
        let member = self.member_mut(at);
        member.trouble = Some(why);
        let (component, counts) = (member.component, member.counts());
        self.out.push(super::Output::Event(Event::ResyncFailed { component, why }));
        if !counts {
            self.member_mut(at).wish = None;
            self.excuse(at);
        }
    }

    /// A resync cannot go on now: it starts over in a while. Soon, where it is what it was filled from that is gone: with its
    /// stand-in it may be all that is left of the place.
    pub(crate) fn abort_resync(&mut self, at: At, why: LeftBecause) {
        let now = self.now;
        let source = self.member(at).resync().map(|resync| resync.source);
        if source.is_some() && !self.member(at).is_joining() {
            // What is asked of a node whose link breaks is answered before the link is said to be down.
            let is_lost = |index| why == LeftBecause::Unreachable && Some(index) == source;
            let place = &self.places[usize::from(at.place)];
            let has_source = place.active().any(|(index, one)| one.is_open() && !is_lost(index));
            let member = self.member_mut(at);
            let rest = member.rest_after(why, now);
            let wait = if has_source { rest } else { limits::RETRY };
            match member.counts() {
                true => member.fill_at = now + rest,
                false => member.down(now, now + wait),
            }
            self.drop_resync(at, why);
        }
    }

    /// Whether something is being copied, or waits for [`super::Input::Pace`].
    pub fn wants_pace(&self) -> bool {
        let mut resyncs = self.places.iter().flat_map(|place| &place.members).filter_map(Member::resync);
        let backfills = self.snapshots.backfilling.as_ref().is_some_and(Backfilling::wants_pace);
        backfills || resyncs.any(|resync| resync.copies > 0 || !resync.runs.is_empty())
    }

    /// Bytes that are being copied, in requests that have begun.
    pub fn copying_bytes(&self) -> u64 {
        let copies = self.works.copies.iter().filter(|copy| copy.attempt().is_some());
        let given = self.snapshots.backfilling.as_ref().map_or(0, Backfilling::bytes_under_way);
        given + copies.map(|copy| u64::from(copy.range.count) * BLOCK_SIZE).sum::<u64>()
    }

    /// More may be copied. What was not used is not saved up.
    pub(crate) fn paced(&mut self, bytes: u64) {
        self.allowance = self.allowance.min(0).saturating_add(bytes as i64);
    }

    /// Lists, copies, and at the end asks that the component counts.
    pub(crate) fn advance_resyncs(&mut self) {
        for at in self.all() {
            let member = self.member(at);
            let is_together = self.places[usize::from(at.place)].restored.contains(at.member);
            if member.is_active() || member.wish.is_some() || !member.is_open() || is_together {
                continue;
            }
            let is_heir = matches!(member.role, Role::Heir { .. }) && member.counts();
            if is_heir
                && member.resync().is_none()
                && member.fill_at <= self.now
                && self.phase == Phase::Serving
            {
                self.begin_fill(at);
            }
            let kind = self.member(at).resync().map(|resync| resync.kind);
            let is_due = match kind {
                None => false,
                Some(Kind::Restore) => self.phase == Phase::Opening,
                Some(Kind::Return | Kind::StandIn | Kind::Fill) => self.phase == Phase::Serving,
            };
            if is_due {
                self.advance_resync(at);
            }
        }
    }

    fn advance_resync(&mut self, at: At) {
        // What parity does not count yet is counted before a member is made anew from it.
        let place = &self.places[usize::from(at.place)];
        let is_restored = place.restore.is_some();
        if place.code.is_some() && !is_restored && (!self.member(at).knows_held || !place.held.is_empty()) {
            return;
        }
        let resync = self.member_mut(at).resync_mut().expect("it is being resynced");
        let is_empty = resync.runs.is_empty();
        resync.is_clean |= is_empty && resync.copies == 0;
        match (is_empty, resync.next, resync.is_listing) {
            (false, _, _) => self.begin_copies(at),
            (true, Some(from), false) if resync.is_clean => self.begin_listing(at, from),
            (true, None, false) if resync.copies == 0 => {
                let counted_as = match resync.kind {
                    Kind::Return | Kind::Fill => CountedAs::Active,
                    Kind::StandIn => CountedAs::StandIn,
                    Kind::Restore => return self.restored(at),
                };
                resync.is_ending = true;
                if !self.has_trailing(at) || !self.holds(Rule::JoinCaughtUp) {
                    self.member_mut(at).wish = Some(Wish::Join(counted_as));
                }
            }
            (true, _, _) => {}
        }
    }

    fn begin_listing(&mut self, at: At, from_part: u32) {
        let place = &self.places[usize::from(at.place)];
        // What a member of rows lacks the versions of all others tell: a change of a row may have left those of its own unit as they were
        // (docs/design/0040, "Versions of a member that comes back").
        let sources: SmallVec<[u8; 8]> = match place.code.filter(|_| place.restore.is_none()) {
            None => self.member(at).resync().map(|resync| resync.source).into_iter().collect(),
            Some(_) if place.active().any(|(_, one)| !one.is_open()) => return,
            Some(_) if self.holds(Rule::RowDecides) => place.active().map(|(member, _)| member).collect(),
            Some(_) => SmallVec::new(),
        };
        let needs_all = !self.holds(Rule::DeltaIncludesEqual) || !self.holds(Rule::DeltaIncludesOlder);
        let resync = self.member_mut(at).resync_mut().expect("it is being resynced");
        resync.is_listing = true;
        (resync.of_sources, resync.asked) = (Vec::new(), sources.len() as u8);
        let attempt = resync.attempt;
        let since = if needs_all { WriteId::default() } else { resync.since };
        let epoch = self.epoch;
        let asked = sources.into_iter().map(|member| (member, false));
        for (member, of_target) in asked.chain([(at.member, true)]) {
            let one = self.member(At { place: at.place, member });
            let (node, component) = (one.node, one.component);
            let asked = Asked::Changed { at, attempt, of_target };
            self.send(node, asked, Request::Changed { component, epoch, since, from_part });
        }
    }

    /// The source or the target told what was changed.
    pub(crate) fn listed(
        &mut self,
        at: At,
        attempt: u32,
        of_target: bool,
        answer: Result<Listing, Unanswered>,
    ) {
        let resync = self.member_mut(at).resync_mut();
        let Some(resync) = resync.filter(|resync| resync.attempt == attempt) else { return };
        match answer {
            Ok(listing) => {
                match of_target {
                    true => resync.of_target = Some(listing),
                    false => resync.of_sources.push(listing),
                }
                if resync.of_target.is_some() && resync.of_sources.len() == usize::from(resync.asked) {
                    self.merge(at);
                }
            }
            Err(Unanswered::Lost) => self.abort_resync(at, LeftBecause::Unreachable),
            Err(Unanswered::Refused(refusal)) => self.abort_resync(at, LeftBecause::Refused(refusal)),
        }
    }

    /// Both have told: the runs to copy, up to where both have told all.
    fn merge(&mut self, at: At) {
        let rules = self.settings.rules;
        let most = self.settings.copy_blocks_max;
        let resync = self.member_mut(at).resync_mut().expect("it is being resynced");
        let mut source = joined(std::mem::take(&mut resync.of_sources));
        let mut target = resync.of_target.take().expect("both have told");
        let (since, kind) = (resync.since, resync.kind);
        resync.is_listing = false;
        resync.next = [source.next, target.next].into_iter().flatten().min();
        let end = resync.next;
        // The GiB whose freeing the target is told of.
        let mut noted: Option<(u32, WriteId)> = None;
        let is_needed = |of_source: WriteId, of_target: WriteId| match kind.takes_all() {
            true => of_source > WriteId::default(),
            false if !rules.hold(Rule::DeltaIncludesTarget) => of_source > since,
            false if !rules.hold(Rule::DeltaIncludesEqual) => of_source != of_target,
            false if !rules.hold(Rule::DeltaIncludesOlder) => of_source > of_target,
            false => of_source.max(of_target) > since,
        };
        loop {
            let part = [source.parts.front(), target.parts.front()].into_iter().flatten().map(|one| one.part);
            let Some(part) = part.min().filter(|part| end.is_none_or(|end| *part < end)) else { break };
            let take = |listing: &mut Listing| match listing.parts.front() {
                Some(front) if front.part == part => listing.parts.pop_front().map(|one| one.versions),
                Some(_) | None => None,
            };
            let (of_source, of_target) = (take(&mut source), take(&mut target));
            let has_nothing = matches!(of_source, None | Some(Versions::Hole(_)));
            if has_nothing
                && (kind == Kind::Restore || (kind == Kind::Fill && !rules.hold(Rule::FillWithHoles)))
            {
                continue;
            }
            let is_hole =
                kind != Kind::StandIn && has_nothing && matches!(of_target, None | Some(Versions::Hole(_)));
            // Where both have nothing, nothing differs. A source that names no versions has none that count, but may
            // hold data; so only what both call a hole is passed over.
            let is_named = of_source.is_some() && of_target.is_some();
            // Asked for all it ever got, the target named nothing: it has nothing.
            let is_bare = since == WriteId::default() && of_target.is_none();
            if is_hole && (is_named || is_bare) {
                // No block differs. But the target may be what another is brought up to date from later, one that missed
                // the freeing and holds the data still.
                let id = hole_of(of_source.as_ref());
                let note = (part / limits::HOLE_PARTS, id);
                if id > hole_of(of_target.as_ref()) && noted != Some(note) {
                    noted = Some(note);
                    resync.runs.push_back(Run { range: Range { part, block: 0, count: 0 }, id });
                }
                continue;
            }
            push_runs(&mut resync.runs, (part, most), of_source.as_ref(), of_target.as_ref(), is_needed);
        }
        self.begin_copies(at);
    }

    fn begin_copies(&mut self, at: At) {
        loop {
            if self.allowance <= 0 {
                return;
            }
            let Some(resync) = self.member_mut(at).resync_mut() else { return };
            if resync.copies as usize >= limits::COPIES_MAX {
                return;
            }
            let Some(run) = resync.runs.pop_front() else { return };
            resync.copies += 1;
            let (kind, attempt) = (resync.kind, resync.attempt);
            let source = (kind == Kind::Restore).then_some(resync.source);
            let is_held = resync.held.iter().any(|(part, _)| *part == run.range.part);
            self.allowance -= (u64::from(run.range.count) * BLOCK_SIZE) as i64;
            let purpose = Purpose::Resync { attempt, source };
            // Where the component holds something, that ends with what is written over it.
            let holes = if is_held { Holes::Zero } else { self.holes_of(kind) };
            self.copy(at, run.range, run.id, purpose, holes);
        }
    }
}
