//! The record of the disk: claimed, changed by compare-and-set one change at a time, and taken over as it is.
//!
//! The record decides who is active; what this owner wishes counts only once the record says so (invariants 4 and 8). A
//! transaction whose outcome is unknown is followed by reading the record; nothing is guessed.
//!
//! Who is not heard may be there, and this node be the one that hears nothing. Its transactions may take effect all the same,
//! where only what it receives is lost; and with a record that names its component alone nobody else could serve. So a
//! component that is not heard leaves only once the directory has answered since; and an owner that hears no other node, and
//! whose disk no guest here uses, leaves that to others for a while.

use super::Owner;
use super::interface::{Committed, End, Event, LeftBecause, Output, Phase};
use super::member::{At, Member, OutAs, Wish};
use super::place::Place;
use super::recording::Pending;
use super::resync::Resync;
use super::windows::decided;
use crate::limits;
use crate::locks::Locks;
use crate::roster::{Ceiling, Roster, Standing};
use crate::rules::Rule;
use crate::snapshots::Numbers;
use base::{Instant, WriteId};

impl Owner {
    pub(crate) fn begin_claim(&mut self) {
        let roster = Roster { epoch: self.epoch, owner: Some(self.me), ..self.recording.roster.clone() };
        self.commit(roster);
    }

    fn commit(&mut self, roster: Roster) {
        assert!(self.recording.is_idle(), "one transaction at a time");
        self.recording.pending = Pending::Commit(roster.clone());
        self.out.push(Output::Commit { expected: self.recording.version, roster });
    }

    pub(crate) fn commit_release(&mut self) {
        if self.recording.is_claimed {
            self.commit(Roster { owner: None, ..self.recording.roster.clone() });
        } else {
            self.end(End::Released);
        }
    }

    pub(crate) fn committed(&mut self, committed: Committed) {
        if self.phase == Phase::Ended {
            return;
        }
        let Pending::Commit(asked) = std::mem::replace(&mut self.recording.pending, Pending::Nothing) else {
            unreachable!("a transaction that ends was begun")
        };
        let newer = self.recording.newer.take();
        if !matches!(committed, Committed::Unknown) {
            self.recording.answered_at = self.now;
        }
        match committed {
            Committed::Done { version } => self.adopt(version, asked),
            Committed::Conflict { version, roster } => self.adopt(version, roster),
            Committed::Unknown => {
                self.recording.is_unsettled = self.holds(Rule::RuleOutUnknownCommit);
                return self.fetch();
            }
        }
        if let Some((version, roster)) = newer.filter(|(version, _)| *version > self.recording.version) {
            self.adopt_newer(version, roster);
        }
        self.check_full_changes();
    }

    /// What was heard while a transaction was under way is later than what that made. It may have led to another one.
    fn adopt_newer(&mut self, version: u64, roster: Roster) {
        match self.recording.pending {
            _ if self.phase == Phase::Ended => {}
            Pending::Nothing => self.adopt(version, roster),
            Pending::Commit(_) | Pending::Fetch => self.recording.newer = Some((version, roster)),
        }
    }

    fn fetch(&mut self) {
        self.recording.pending = Pending::Fetch;
        self.recording.retry_at = None;
        self.out.push(Output::Fetch);
    }

    pub(crate) fn fetch_failed(&mut self) {
        if self.recording.pending == Pending::Fetch {
            self.recording.retry_at = Some(self.now + limits::RETRY);
        }
    }

    /// The record as it is. While a transaction is under way, its result tells first.
    pub(crate) fn recorded(&mut self, record: Option<(u64, Roster)>) {
        if self.phase == Phase::Ended {
            return;
        }
        self.recording.answered_at = self.now;
        if matches!(self.recording.pending, Pending::Commit(_)) {
            let known = self.recording.newer.as_ref().map_or(self.recording.version, |(version, _)| *version);
            if let Some(record) = record.filter(|(version, _)| *version > known) {
                self.recording.newer = Some(record);
            }
            return;
        }
        self.recording.pending = Pending::Nothing;
        self.recording.retry_at = None;
        match record {
            None => self.end(End::Deleted),
            Some((version, roster)) => {
                self.adopt(version, roster);
                self.check_full_changes();
            }
        }
    }

    fn adopt(&mut self, version: u64, roster: Roster) {
        if version < self.recording.version {
            return;
        }
        self.recording.is_unsettled &= version == self.recording.version;
        let is_mine = roster.epoch == self.epoch && roster.owner == Some(self.me);
        let is_released = roster.epoch == self.epoch && roster.owner.is_none();
        // Nobody else has the record name this node.
        let is_passed = roster.epoch > self.epoch && roster.owner == Some(self.me);
        self.recording.version = version;
        self.recording.roster = roster;
        match (self.recording.is_claimed, is_mine) {
            (false, true) => {
                self.recording.is_claimed = true;
                self.start_opening();
            }
            (false, false) if self.recording.roster.epoch < self.epoch => self.begin_claim(),
            (true, true) => self.reconcile(),
            (true, false) if is_released && self.phase == Phase::Releasing => self.end(End::Released),
            (true, false) if is_passed => self.end(End::Passed),
            (_, false) => self.end(End::Superseded),
        }
        if self.recording.roster.diverged().next().is_some() {
            self.end(End::Diverged);
        }
    }

    /// Makes the places as the record says.
    pub(crate) fn build_places(&mut self) {
        let count = self.recording.roster.place_count();
        let now = self.now;
        let place = |place: usize| {
            let of_place = || self.recording.roster.members.iter().filter(|one| one.place as usize == place);
            let code = of_place().find_map(|member| member.rows).map(|rows| rows.code);
            Place::new(code, of_place().map(|member| Member::new(member, now)).collect())
        };
        self.places = (0..count).map(place).collect();
        self.shape = self.recording.roster.shape;
        self.locks = Locks::new(count);
    }

    /// Whether the record has other places than those that were made: more, or such with other numbers.
    fn is_reshaped(&self) -> bool {
        let roster = &self.recording.roster;
        roster.place_count() > self.places.len() || roster.shape != self.shape
    }

    /// Takes over what the record says of the members now.
    fn reconcile(&mut self) {
        // None are built in an owner that is released while it claims.
        let is_built = !self.places.is_empty();
        if is_built && self.is_reshaped() {
            return self.end(End::Reshaped);
        }
        for at in self.all() {
            if self.member(at).is_gone() {
                continue;
            }
            let component = self.member(at).component;
            let recorded =
                self.recording.roster.member(component).filter(|one| one.place == at.place).cloned();
            let Some(recorded) = recorded else {
                self.member_gone(at);
                continue;
            };
            let member = self.member_mut(at);
            let (before, after) = (member.standing(), recorded.standing);
            let resync = member.record(after);
            (member.base, member.role) = (recorded.base, recorded.role);
            // What was found out here since is told with the next change.
            if recorded.ceiling == Ceiling::Unknown || before != after {
                member.ceiling = recorded.ceiling;
            }
            // It may have been opened by a record that knew less of it: that it had been restored, for one.
            if let Some(opened) = member.opened_mut() {
                opened.watermark = opened.watermark.max(recorded.base);
            }
            match (before.counts(), after.counts()) {
                (true, false) => {
                    let why = match member.wish {
                        Some(Wish::Leave(_, why)) => why,
                        Some(Wish::Join(_)) | None => LeftBecause::Directory,
                    };
                    self.member_left(at, why);
                }
                (false, true) => self.member_joined(at, resync),
                (true, true) if before != after => self.member_joined(at, resync),
                (true, true) | (false, false) => {}
            }
            if !self.recording.is_unsettled {
                self.settle_join(at);
            }
        }
        self.keep_last();
        self.end_needless();
        self.note_snapshots();
        self.take_in_new_members();
    }

    /// It is known whether the record counts the member. If it does not, one that has failed since, or that cannot
    /// be reached, need not be waited for any more.
    fn settle_join(&mut self, at: At) {
        let now = self.now;
        let member = self.member_mut(at);
        member.settle_join();
        if member.counts() {
            return;
        }
        match member.wish {
            Some(Wish::Join(_)) if !member.is_open() => {
                member.wish = None;
                self.drop_resync(at, LeftBecause::Unreachable);
            }
            Some(Wish::Leave(_, why)) => {
                member.wish = None;
                if member.resync().is_some() {
                    member.down(now, now + limits::RESYNC_RETRY);
                    self.drop_resync(at, why);
                }
            }
            Some(Wish::Join(_)) | None => {}
        }
    }

    /// What is to leave stays if the record has taken out meanwhile what would make up for it.
    fn keep_last(&mut self) {
        for at in self.all() {
            let place = &self.places[usize::from(at.place)];
            let is_other = |(index, one): &(u8, &Member)| *index != at.member && !one.is_leaving();
            let has_other = place.is_enough(place.active().filter(is_other));
            if self.member(at).is_leaving() && !has_other && self.holds(Rule::StartFromActive) {
                self.member_mut(at).wish = None;
            }
        }
    }

    /// The record names the component no more: it is as if it had left, and it does not come back.
    fn member_gone(&mut self, at: At) {
        let member = self.member_mut(at);
        let (component, has_counted) = (member.component, member.counts());
        member.forget();
        self.forget_held(at);
        self.decide_anew(at.place);
        if has_counted {
            self.out.push(Output::Event(Event::Left { component, why: LeftBecause::Directory }));
            self.raise_barrier(at);
        }
        self.excuse(at);
    }

    /// Takes in the members that the record names and the table does not have. One for which there is no room waits until the
    /// last answer of one that is gone has come.
    pub(crate) fn take_in_new_members(&mut self) {
        let now = self.now;
        self.has_newcomers = false;
        for recorded in self.recording.roster.members.clone() {
            // There is none before the places are built: an owner released while it claimed.
            let Some(place) = self.places.get(recorded.place as usize) else { continue };
            if place.known().any(|member| member.component == recorded.component) {
                continue;
            }
            let count = place.members.len();
            let free =
                (0..count as u8).find(|member| self.is_free(At { place: recorded.place, member: *member }));
            let place = &mut self.places[recorded.place as usize];
            match free {
                Some(member) => place.members[usize::from(member)] = Member::new(&recorded, now),
                None if count < limits::PLACE_MEMBERS_MAX => place.members.push(Member::new(&recorded, now)),
                None => {
                    self.has_newcomers = true;
                    continue;
                }
            }
        }
    }

    /// Whether the index of a member that is gone may be another's: nothing under way names it, so that no late answer is
    /// taken for the other's.
    fn is_free(&self, at: At) -> bool {
        let At { place, member } = at;
        let state = &self.places[place as usize];
        let is_source = |one: &Member| one.resync().is_some_and(|resync| resync.source == member);
        self.member(at).is_gone()
            && state.deciding.is_none()
            && !state.members.iter().any(is_source)
            && state.in_flight.iter().all(|(_, change)| !change.names(member))
            && !self.works.name(at)
            && self.gathers.iter().all(|(_, gather)| !gather.names(at))
            && self.asks.iter().all(|(_, one)| one.asked.member() != Some(at))
    }

    /// The record has the component out of the active set: nothing waits for it any more.
    fn member_left(&mut self, at: At, why: LeftBecause) {
        let now = self.now;
        let member = self.member_mut(at);
        let retry_at = match why {
            LeftBecause::Unreachable | LeftBecause::Stuck | LeftBecause::Directory => now,
            LeftBecause::Refused(_) | LeftBecause::LostWrites | LeftBecause::Diverged => {
                now + member.rest_after(why, now)
            }
        };
        member.wish = None;
        member.trouble = Some(why);
        member.down(now, retry_at);
        let component = member.component;
        self.forget_held(at);
        self.decide_anew(at.place);
        self.out.push(Output::Event(Event::Left { component, why }));
        self.raise_barrier(at);
        self.excuse(at);
    }

    /// The record counts the component, which `resync` brought up to date.
    fn member_joined(&mut self, at: At, resync: Option<Resync>) {
        let now = self.now;
        let watermark = self.watermark(at.place);
        // Before the windows are decided nobody is told of a watermark.
        let (epoch, is_decided) = (self.epoch, self.has_served);
        let member = self.member_mut(at);
        member.wish = None;
        member.trouble = None;
        let (node, component, stands_in_for) = (member.node, member.component, member.stands_in_for());
        if member.is_open() && is_decided {
            member.note_told(watermark);
            let request =
                wire::Request::Settle { component, epoch, watermark, from_epoch: epoch, stable: false };
            self.send(node, super::Asked::Settle, request);
        }
        let (copied_bytes, began) = resync.map_or((0, now), |resync| (resync.copied_bytes, resync.began));
        self.out.push(Output::Event(match stands_in_for {
            None => Event::Joined { component, copied_bytes, began },
            Some(of) => Event::StandsIn { component, of, copied_bytes, began },
        }));
    }

    /// Asks for what members wish, if nothing is under way.
    pub(crate) fn advance_record(&mut self) {
        if self.recording.pending == Pending::Fetch
            && self.recording.retry_at.is_some_and(|at| at <= self.now)
        {
            self.fetch();
        }
        let may_change = self.recording.is_claimed && self.phase != Phase::Ended;
        if !may_change || !self.recording.is_idle() {
            return;
        }
        let mut roster = self.recording.roster.clone();
        let (mut has_changed, mut joining) = (self.recording.is_unsettled, Vec::new());
        let mut lost: Vec<At> = Vec::new();
        let mut is_doubtful = false;
        let last_snapshot = roster.snapshots.last;
        for at in self.all() {
            let watermark = self.held_by_all(at.place);
            let member = self.member(at);
            has_changed |= member.tell_ceiling(&mut roster);
            let Some(standing) = member.wish.map(Wish::standing) else { continue };
            if self.is_left_to_others(member) {
                continue;
            }
            let lost_beside = self.lost_beside(at);
            if self.is_doubtful(member) || lost_beside.iter().any(|one| self.is_unheard(self.member(*one))) {
                is_doubtful = true;
                continue;
            }
            if !lost_beside.is_empty() && self.base_of_leaving(at.place).is_none() {
                continue;
            }
            let leaves = standing == Standing::Absent && member.is_active();
            let base = if leaves { self.base_of_leaving(at.place) } else { Some(watermark) };
            let Some(base) = base else { continue };
            let recorded = roster.members.iter_mut().find(|one| one.component == member.component);
            let Some(recorded) = recorded else { continue };
            recorded.standing = standing;
            recorded.ceiling = Ceiling::Unknown;
            if standing == Standing::Stale {
                recorded.lacks = Numbers::through(last_snapshot);
            }
            if leaves {
                recorded.base = base.max(recorded.base);
                recorded.ceiling = self.ceiling_of(at);
            }
            if standing.counts() {
                joining.push(at);
                lost.extend(lost_beside);
                recorded.base = watermark;
                let mut active = self.places[usize::from(at.place)].active();
                // One that was alone kept no window: from here on it must show what came after this.
                if let (Some((_, alone)), None) = (active.next(), active.next()) {
                    let alone = roster.members.iter_mut().find(|one| one.component == alone.component);
                    alone.into_iter().for_each(|one| one.base = watermark);
                }
            }
            has_changed = true;
        }
        lost.into_iter().for_each(|at| self.take_out_lost(at, &mut roster));
        has_changed |= self.dismiss_stand_ins(&mut roster);
        has_changed |= self.tell_moved(&mut roster);
        has_changed |= self.tell_snapshots(&mut roster);
        if has_changed {
            joining.into_iter().for_each(|at| self.member_mut(at).begin_join());
            self.commit(roster);
        } else if is_doubtful {
            self.fetch();
        }
    }

    /// Has the record say how far the disk has moved, if it does not yet. It says so in a new epoch, which every component promises before
    /// anything is changed on the side that counts from then on: a record from before that is known to be old (docs/design/0041).
    fn tell_moved(&mut self, roster: &mut Roster) -> bool {
        let Some(moved) = self.recording.to_pass else { return false };
        if roster.moving.is_none() || roster.moving == Some(moved) {
            self.recording.to_pass = None;
            return false;
        }
        roster.moving = Some(moved);
        roster.epoch += u32::from(self.holds(Rule::PassInNewEpoch));
        true
    }

    /// An active member of rows counts no more with this record, which counts others in its place.
    fn take_out_lost(&mut self, at: At, roster: &mut Roster) {
        let (base, ceiling) = (self.base_of_leaving(at.place), self.ceiling_of(at));
        let component = self.member(at).component;
        self.member_mut(at).wish = Some(Wish::Leave(OutAs::Absent, LeftBecause::Unreachable));
        if let Some(recorded) = roster.members.iter_mut().find(|one| one.component == component) {
            recorded.standing = Standing::Absent;
            recorded.base = base.unwrap_or_default().max(recorded.base);
            recorded.ceiling = ceiling;
        }
    }

    /// Whether a member is to leave that is not heard, and the directory was not heard since: then this node may be the one
    /// that hears nothing.
    fn is_doubtful(&self, member: &Member) -> bool {
        member.is_leaving() && self.is_unheard(member)
    }

    fn is_unheard(&self, member: &Member) -> bool {
        let is_unheard = member.unheard_since.is_some_and(|since| since > self.recording.answered_at);
        is_unheard && self.holds(Rule::AskBeforeTakingOut)
    }

    /// Whether a member that is not heard stays for now: this node hears nobody, and no guest here waits.
    fn is_left_to_others(&self, member: &Member) -> bool {
        let waits = |since: Instant| self.now < since + limits::ALONE_PATIENCE;
        let is_unheard = member.unheard_since.is_some_and(waits);
        member.is_leaving() && is_unheard && self.up.is_empty() && !self.is_used
    }

    /// When a member that is to leave is left to others no more.
    pub(crate) fn taken_out_at(&self, member: &Member) -> Option<Instant> {
        let at = member.unheard_since.map(|since| since + limits::ALONE_PATIENCE);
        at.filter(|_| self.is_left_to_others(member))
    }

    /// A member is heard again that was to leave because it was not: it stays, if nothing was asked of the record yet.
    pub(crate) fn heard_again(&mut self, at: At) {
        let is_asked = self.recording.is_open();
        let member = self.member_mut(at);
        member.unheard_since = None;
        if member.wish == Some(Wish::Leave(OutAs::Absent, LeftBecause::Unreachable)) && !is_asked {
            member.wish = None;
        }
    }

    /// An id up to which everything is on a component that leaves, and nothing that it has of that is to be folded: what parity does not count
    /// yet the others fold without it, so that what it has of these columns is out of date. None if that is not known yet.
    fn base_of_leaving(&self, place: u16) -> Option<WriteId> {
        let (state, watermark) = (&self.places[usize::from(place)], self.held_by_all(place));
        if state.code.is_none() || !self.holds(Rule::RestoreNothingHeld) {
            return Some(watermark);
        }
        let is_asked = |one: &Member| one.is_open() && one.wish.is_none() && !one.knows_held;
        if !self.has_served && state.active().any(|(_, one)| is_asked(one)) {
            return None;
        }
        let before = |id: WriteId| WriteId { sequence: id.sequence.saturating_sub(1), ..id };
        Some(state.held.least().map_or(watermark, |id| before(id).min(watermark)))
    }

    /// An id up to which every active component of a place holds everything, those that cannot be reached included: what is
    /// decided now, or what they told before it was.
    fn held_by_all(&self, place: u16) -> WriteId {
        match self.has_served {
            true => self.watermark(place),
            false => decided(&self.places[usize::from(place)]),
        }
    }

    /// Stand-ins for components that are active, or will be with this record, or are named no more, count no more. Says
    /// whether there were any.
    fn dismiss_stand_ins(&self, roster: &mut Roster) -> bool {
        let is_absent = |roster: &Roster, of| {
            roster.member(of).is_some_and(|one| matches!(one.standing, Standing::Absent | Standing::Stale))
        };
        let is_needed = |roster: &Roster, of| is_absent(roster, of) && is_absent(&self.recording.roster, of);
        let needless: Vec<usize> = (0..roster.members.len())
            .filter(|&index| roster.members[index].standing == Standing::StandIn)
            .filter(|&index| roster.members[index].role.of().is_none_or(|of| !is_needed(roster, of)))
            .collect();
        needless.iter().for_each(|&index| roster.members[index].standing = Standing::Absent);
        !needless.is_empty()
    }

    /// What is brought up to date to stand in for a component that is active again goes on no more. One that the record may
    /// count already is waited for until that is known.
    fn end_needless(&mut self) {
        let now = self.now;
        for at in self.all() {
            let member = self.member(at);
            let is_needless = |of| {
                let of = self.places[usize::from(at.place)].find(of);
                of.is_none_or(|(_, one)| !one.is_absent())
            };
            let is_idle = !member.may_count() && member.stands_in_for().is_some_and(is_needless);
            if is_idle && member.resync().is_some() {
                self.member_mut(at).down(now, now);
                self.drop_resync(at, LeftBecause::Directory);
            }
        }
    }
}
