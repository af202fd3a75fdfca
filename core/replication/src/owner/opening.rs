//! Taking over: every active component promises the epoch, then the window of each place is decided.
//!
//! Nothing is served before all that is done (invariants 2 and 3). A write that some active components hold and others
//! lack is rolled forward, with its id; then all of them make the watermark (epoch, 0) stable. Stand-ins take part in all
//! that as active components do.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::data::Data;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::happened::Known;
use super::interface::{End, Event, LeftBecause, LinkChange, Output, Phase};
use super::member::{At, CountedAs, Member, Opened, OutAs, Wish};
use super::member_set::MemberSet;
use super::place::{Deciding, Roll, RollFrom};
use super::rows::known_part;
use super::taking::SnapshotsUnderWay;
use super::windows::{RowRules, decided, is_contiguous, opened, rolls, row_rolls};
use crate::limits;
use crate::locks::Range;
use crate::roster::Standing;
use crate::rules::Rule;
use base::WriteId;
use base::request::{Buffers, Piece};
use wire::{Entry, EntryKind, Refusal, Request, layer};

impl Owner {
    pub(crate) fn start_opening(&mut self) {
        if self.phase == Phase::Claiming {
            self.phase = Phase::Opening;
            self.snapshots = SnapshotsUnderWay::of(&self.recording.roster);
            self.build_places();
        }
    }

    /// Asks components that do not serve this session to do so, and takes those out of the active set that cannot.
    pub(crate) fn advance_members(&mut self) {
        if !matches!(self.phase, Phase::Opening | Phase::Serving | Phase::Releasing) {
            return;
        }
        for at in self.all() {
            let Some((since, retry_at)) = self.member(at).is_down() else { continue };
            if self.is_reachable(at) && retry_at <= self.now && self.needs(at) {
                let member = self.member_mut(at);
                member.begin_opening();
                let (node, component) = (member.node, member.component);
                let request = Request::Open { disk: self.disk, component, epoch: self.epoch };
                self.send(node, Asked::Open(at), request);
                continue;
            }
            let member = self.member(at);
            if member.counts() && member.wish.is_none() && self.leaves_at(since) <= self.now {
                let why = member.trouble.unwrap_or(LeftBecause::Unreachable);
                self.want_out(at, OutAs::Absent, why);
            }
        }
    }

    /// When [`Owner::advance_members`] has something to do for a member if nothing happens.
    pub(crate) fn member_wake_at(&self, at: At) -> Option<base::Instant> {
        let member = self.member(at);
        let (since, retry_at) = member.is_down()?;
        let leaves_at = self.leaves_at(since);
        let asks = (self.is_reachable(at) && self.needs(at)).then_some(retry_at);
        let leaves = (member.counts() && member.wish.is_none()).then_some(leaves_at);
        let is_taken_out = self.taken_out_at(member);
        [asks, leaves.filter(|at| *at > self.now), is_taken_out].into_iter().flatten().min()
    }

    /// When a component that does not serve since that time may be counted out. Soon after this node has started others may be starting
    /// as well; before the disk is served, such a component may know more than what is here and the directory.
    fn leaves_at(&self, since: base::Instant) -> base::Instant {
        let leaves_at = since + limits::RECONNECT;
        if self.phase == Phase::Opening { leaves_at.max(self.starts_until) } else { leaves_at }
    }

    fn is_reachable(&self, at: At) -> bool {
        let node = self.member(at).node;
        node == self.me.node || self.up.contains(&node)
    }

    fn needs(&self, at: At) -> bool {
        let starts_alone = !self.holds(Rule::StartFromActive) && self.phase == Phase::Opening;
        let member = self.member(at);
        if member.is_gone() || member.counts() {
            return !member.is_gone();
        }
        let Some(of) = member.stands_in_for() else {
            return self.phase == Phase::Serving || starts_alone || self.may_be_restored(at);
        };
        let of = self.places[usize::from(at.place)].find(of);
        let is_away = of.is_some_and(|(_, one)| one.is_absent() && one.resync().is_none());
        self.phase == Phase::Serving && !member.is_stale() && is_away
    }

    /// Asks the record to count a component out, if others can do without it.
    pub(crate) fn want_out(&mut self, at: At, standing: OutAs, why: LeftBecause) {
        let place = &self.places[at.place as usize];
        if place.members[at.member as usize].is_gone() {
            return; // The record has it out already.
        }
        let is_any = || place.active().any(|(index, one)| index != at.member && one.is_open());
        let keeps_enough = place.code.is_none() || self.holds(Rule::KeepEnough);
        if place.has_other_open(at.member) || (!keeps_enough && is_any()) {
            let is_stand_in = place.members[usize::from(at.member)].standing() == Standing::StandIn;
            if is_stand_in && !self.holds(Rule::RecordFailedStandIns) {
                self.member_mut(at).record(Standing::Absent);
                return self.excuse(at);
            }
            self.member_mut(at).wish = Some(Wish::Leave(standing, why));
            if !self.holds(Rule::ShrinkBeforeAcknowledging) {
                self.excuse(at);
            }
        } else if !self.holds(Rule::StartFromActive) && self.phase == Phase::Opening {
            let stale = (0..).zip(&place.members).find(|(_, one)| !one.is_active() && one.is_open());
            if let Some((member, _)) = stale {
                let (place, why) = (at.place, LeftBecause::Unreachable);
                self.member_mut(At { place, member }).wish = Some(Wish::Join(CountedAs::Active));
                self.member_mut(at).wish = Some(Wish::Leave(standing, why));
            }
        }
    }

    pub(crate) fn link_changed(&mut self, node: base::NodeId, change: LinkChange) {
        let is_up = change == LinkChange::Up;
        match is_up {
            true => self.up.insert(node),
            false => self.up.remove(&node),
        };
        let now = self.now;
        let silent = base::Instant(now.0.saturating_sub(limits::RECONNECT.as_nanos() as u64));
        let is_final = matches!(change, LinkChange::Silent | LinkChange::Ended);
        let since = if is_final { silent } else { now };
        for at in self.all() {
            let member = self.member_mut(at);
            if member.node != node {
                continue;
            }
            match change {
                LinkChange::Down | LinkChange::Silent => member.unheard_since = Some(now),
                LinkChange::Ended => member.unheard_since = None,
                LinkChange::Up => {} // It is heard once it answers.
            }
            if member.is_open() || member.is_opening() {
                member.down(since, now);
                self.decide_anew(at.place);
                if !self.member(at).is_joining() {
                    self.drop_resync(at, LeftBecause::Unreachable);
                }
            } else if !is_up {
                member.down_since(since); // It broke before it was known why.
            } else if member.trouble.is_none_or(|why| why == LeftBecause::Unreachable) {
                member.retry_by(now);
            }
        }
    }

    pub(crate) fn opened(&mut self, at: At, answer: Result<Opened, Unanswered>) {
        let now = self.now;
        if !self.member(at).is_opening() {
            return; // The link changed since.
        }
        match answer {
            Ok(Opened { watermark, .. }) if self.is_behind(watermark) => {
                let component = self.member(at).component;
                let epoch = watermark.epoch.saturating_add(1);
                self.end(End::SupersededBy { component, epoch });
            }
            Ok(Opened { watermark, entries }) => {
                let member = self.member_mut(at);
                member.open(now, Opened { watermark: watermark.max(member.base), entries });
                self.heard_again(at);
                match (self.phase, self.member(at).counts()) {
                    // An owner that is released before it served has decided nothing: it says nothing of a watermark.
                    (Phase::Serving | Phase::Releasing, true)
                        if self.has_served || !self.holds(Rule::SettleOnlyDecided) =>
                    {
                        self.rejoined(at);
                    }
                    (Phase::Serving, false) => self.looked_at(at, watermark),
                    (_, counts) => {
                        self.decide_anew(at.place);
                        // What it holds bounds what is known of those that are taken out before the disk is served.
                        if counts && self.places[usize::from(at.place)].code.is_some() {
                            self.ask_held(at);
                        }
                    }
                }
            }
            Err(Unanswered::Lost) => self.member_mut(at).down(now, now),
            Err(Unanswered::Refused(Refusal::Busy | Refusal::NotOpen)) => {
                self.member_mut(at).down(now, now + limits::RETRY);
            }
            Err(Unanswered::Refused(refusal)) => {
                let member = self.member_mut(at);
                // One that has never counted may be named before its node has made it.
                let is_coming = member.base == WriteId::default() && refusal == Refusal::NoComponent;
                let why = LeftBecause::Refused(refusal);
                let wait = if is_coming { limits::NEW_MEMBER_RETRY } else { member.rest_after(why, now) };
                member.down(now, now + wait);
                member.trouble = Some(why);
                if member.counts() {
                    self.want_out(at, OutAs::Absent, LeftBecause::Refused(refusal));
                }
            }
        }
    }

    /// Whether a component knows changes of this very epoch to be decided although the owner has not served in it: the record has
    /// forgotten the owner who did.
    fn is_behind(&self, watermark: WriteId) -> bool {
        let first = WriteId { epoch: self.epoch, sequence: 0 };
        let told =
            if self.has_settled { first } else { WriteId { epoch: self.epoch - 1, sequence: u64::MAX } };
        self.phase == Phase::Opening && watermark > told && self.holds(Rule::RefuseOlderRecords)
    }

    /// A component that counts and was away for a moment serves again, in the same epoch: it gets what is in flight.
    fn rejoined(&mut self, at: At) {
        let watermark = self.watermark(at.place);
        let opened = self.member_mut(at).take_opened().expect("it was just opened");
        // Of one that is alone, what it says is all there is.
        let is_alone = self.places[at.place as usize].counting().count() == 1;
        let trusts_epochs = !self.holds(Rule::DoubtOlderEpochs);
        if !is_alone && !is_contiguous(&opened, watermark, trusts_epochs) {
            let why = LeftBecause::LostWrites;
            self.member_mut(at).trouble = Some(why);
            return self.want_out(at, OutAs::Stale, why);
        }
        let epoch = self.epoch;
        let tells_leaving = !self.holds(Rule::TellLeavingNothing);
        let member = self.member_mut(at);
        // The record may be being asked to count it out, with what it was told as its ceiling.
        let watermark = if member.is_leaving() && !tells_leaving { member.watermark_sent } else { watermark };
        member.note_told(watermark);
        member.trouble = None;
        let (node, component) = (member.node, member.component);
        let request = Request::Settle { component, epoch, watermark, from_epoch: epoch, stable: false };
        self.send(node, Asked::Settle, request);
        if self.places[usize::from(at.place)].code.is_some() {
            self.ask_held(at);
        }
        self.send_in_flight(at, &opened.entries);
    }

    /// Decides the windows of the places whose active components are all open; serves when that is done.
    pub(crate) fn advance_opening(&mut self) {
        if self.phase != Phase::Opening {
            return;
        }
        for index in 0..self.places.len() as u16 {
            let place = &self.places[index as usize];
            let is_complete = place.counting().all(|(_, one)| one.opened().is_some())
                && place.is_enough(place.active())
                && place.members.iter().all(|one| one.wish.is_none());
            if !place.is_ready && place.deciding.is_none() && is_complete {
                self.begin_deciding(index);
            }
        }
        if self.places.iter().all(|place| place.is_ready) && self.recording.is_idle() {
            self.phase = Phase::Serving;
            self.has_served = true;
            self.note_taken_over();
            let goes_on = std::mem::take(&mut self.goes_on);
            self.out.push(Output::Event(Event::Serving { epoch: self.epoch, rolled: self.rolled, goes_on }));
            let now = self.now;
            for member in self.places.iter_mut().flat_map(|place| &mut place.members) {
                member.take_opened();
                // One that was opened for a restore that was not needed.
                if !member.counts() && member.is_open() {
                    member.take_resync();
                    member.down(now, now);
                }
            }
        }
    }

    /// A component of the place begins a new session before the disk is served: it must be told the first watermark in
    /// that session, even if it was told in the one before.
    pub(crate) fn decide_anew(&mut self, place: u16) {
        let keeps = self.phase != Phase::Opening || !self.holds(Rule::SettleNewSessions);
        let is_opening = self.phase == Phase::Opening;
        let place = &mut self.places[place as usize];
        place.deciding = None;
        place.is_ready &= keeps;
        if is_opening {
            place.end_restore();
        }
    }

    fn begin_deciding(&mut self, index: u16) {
        let place = &self.places[index as usize];
        let decided = decided(place);
        let trusts_epochs = !self.holds(Rule::DoubtOlderEpochs);
        let lacks = |one: &Member| !is_contiguous(opened(one), decided, trusts_epochs);
        let liar = place.counting().find(|(_, one)| lacks(one)).map(|(at, _)| at);
        if let Some(member) = liar.filter(|member| place.has_other_open(*member)) {
            let at = At { place: index, member };
            self.member_mut(at).trouble = Some(LeftBecause::LostWrites);
            return self.want_out(at, OutAs::Stale, LeftBecause::LostWrites);
        }
        let rolls = match (self.holds(Rule::DecideBeforeServing), place.code) {
            (true, None) => rolls(&place.counting().collect::<Vec<_>>(), decided),
            (true, Some(code)) => {
                let members: Vec<_> = place.counting().collect();
                let least = if self.holds(Rule::DropWithTooFew) { code.data() } else { 1 };
                // What stands in has what it was sent, which others do not follow from.
                let position = |member: u8| {
                    let (_, one) = members.iter().find(|(index, one)| *index == member && one.is_active())?;
                    Some(one.position)
                };
                let positions =
                    |holders: MemberSet| holders.iter().filter_map(position).collect::<MemberSet>();
                let is_enough = |holders: MemberSet| positions(holders).iter().count() >= usize::from(least);
                let rules = RowRules { code, source: None, is_enough: &is_enough, are_some_away: false };
                row_rolls(&rules, &members, decided)
            }
            (false, _) => Vec::new(),
        };
        self.raise_ceilings(index);
        self.decide(index, rolls, None);
    }

    /// Rolls changes forward; what comes after that is for all that count to settle, or for one to be restored.
    pub(crate) fn decide(&mut self, index: u16, rolls: Vec<Roll>, restores: Option<u8>) {
        self.attempts += 1;
        let attempt = self.attempts;
        let (rolls_left, settles_left) = (rolls.len(), 0);
        let deciding = Deciding { attempt, rolls_left, rolls: rolls.clone(), settles_left, restores };
        self.places[index as usize].deciding = Some(deciding);
        for (number, roll) in (0u32..).zip(rolls) {
            self.begin_roll(index, attempt, number, roll);
        }
        self.settle_first(index);
    }

    fn begin_roll(&mut self, place: u16, attempt: u32, number: u32, roll: Roll) {
        let Entry { part, block, count, is_trim, .. } = roll.entry;
        let source = match roll.from {
            RollFrom::Copy(source) if !is_trim => source,
            RollFrom::Row(members) => {
                let range = Range { part: layer::split(part).1, block, count };
                let at = At { place, member: roll.target };
                let wanted = MemberSet::of(self.member(at).position);
                let others = match self.holds(Rule::DropWithTooFew) {
                    true => self.places[usize::from(place)].others(members),
                    false => MemberSet::of(roll.target),
                };
                let wanted_by = GatherFor::Roll { at, attempt, roll: number };
                return self.gather(Gather::new(place, range, wanted, others, wanted_by));
            }
            RollFrom::Copy(_) | RollFrom::Nothing => {
                return self.send_roll(place, attempt, number, roll, None);
            }
        };
        let at = At { place, member: source };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let asked = Asked::RollRead { at, attempt, roll: number };
        // A change of whole rows is what its content is.
        let part = if layer::is_of_copies(layer::split(part).0) { part } else { layer::split(part).1 };
        self.send(
            node,
            asked,
            Request::Read { component, epoch: self.epoch, part, block, count, verify: true },
        );
    }

    fn send_roll(
        &mut self,
        place: u16,
        attempt: u32,
        number: u32,
        roll: Roll,
        data: Option<(Buffers, smallvec::SmallVec<[u32; 2]>)>,
    ) {
        let at = At { place, member: roll.target };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let Entry { id, part, block, count, .. } = roll.entry;
        let (epoch, watermark, kind) = (self.epoch, WriteId::default(), EntryKind::Guest(roll.entry.tag));
        let takes_zeroes = self.member(at).stands_in_for().is_some() && count > 0;
        let data = data.or_else(|| takes_zeroes.then(|| self.settings.zero_blocks(count)));
        let request = match data {
            Some((data, checksums)) => Request::Write {
                marks: 0,
                component,
                epoch,
                id,
                watermark,
                kind,
                part,
                block,
                data,
                checksums,
            },
            None => Request::Trim { marks: 0, component, epoch, id, watermark, kind, part, block, count },
        };
        self.send(node, Asked::RollWrite { at, attempt, roll: number }, request);
    }

    /// A component gave what is to be rolled forward, or cannot.
    pub(crate) fn roll_read(&mut self, at: At, attempt: u32, number: u32, answer: Result<Data, Unanswered>) {
        let Some(roll) = self.roll(at.place, attempt, number) else { return };
        match answer {
            Ok(Data { pieces, checksums }) => {
                let bytes = |piece: &Piece| match piece {
                    Piece::Bytes(buffer) => Some(buffer.clone()),
                    Piece::Hole(_) => None,
                };
                let data: Option<Buffers> = pieces.iter().map(bytes).collect();
                self.send_roll(at.place, attempt, number, roll, data.map(|data| (data, checksums)));
            }
            // What it holds it cannot give.
            Err(why) => self.roll_failed(at, why, OutAs::Stale),
        }
    }

    /// What a member of rows lacks was put together, or cannot be.
    pub(crate) fn roll_gathered(
        &mut self,
        at: At,
        attempt: u32,
        number: u32,
        result: Result<Found, GatherFailure>,
    ) {
        let Some(mut roll) = self.roll(at.place, attempt, number) else { return };
        let Data { pieces, checksums } = match result {
            Ok(mut found) => found.take(self.member(at).position),
            // What it lacks nobody can give.
            Err(GatherFailure::Damaged) => {
                let why = Unanswered::Refused(Refusal::Damaged);
                return self.roll_failed(at, why, OutAs::Absent);
            }
            // Somebody that was asked did not answer, or has too much to do; or there is memory again in a while.
            Err(GatherFailure::Unreachable | GatherFailure::Memory) => return self.lost_session(at),
        };
        let is_hole = pieces.iter().all(|piece| matches!(piece, Piece::Hole(_)));
        roll.entry.is_trim = is_hole;
        let data = match is_hole {
            true => None,
            false => Some(self.filled(pieces, checksums)),
        };
        self.send_roll(at.place, attempt, number, roll, data);
    }

    /// Pieces as bytes, with zeroes for holes.
    fn filled(
        &self,
        pieces: base::request::Pieces,
        checksums: smallvec::SmallVec<[u32; 2]>,
    ) -> (Buffers, smallvec::SmallVec<[u32; 2]>) {
        let mut given = checksums.into_iter();
        let (mut data, mut checksums) = (Buffers::new(), smallvec::SmallVec::new());
        for piece in pieces {
            match piece {
                Piece::Bytes(buffer) => {
                    checksums.extend(given.by_ref().take(buffer.len() / base::units::BLOCK_SIZE as usize));
                    data.push(buffer);
                }
                Piece::Hole(len) => {
                    let blocks = (u64::from(len) / base::units::BLOCK_SIZE) as u16;
                    let (zeroes, sums) = self.settings.zero_blocks(blocks);
                    data.extend(zeroes);
                    checksums.extend(sums);
                }
            }
        }
        (data, checksums)
    }

    /// A component took what was rolled forward, or cannot.
    pub(crate) fn roll_written(&mut self, at: At, attempt: u32, number: u32, answer: Result<u8, Unanswered>) {
        let Some(roll) = self.roll(at.place, attempt, number) else { return };
        match answer {
            Ok(_) => {
                if let Some(opened) = self.member_mut(at).opened_mut() {
                    opened.entries.retain(|entry| entry.id != roll.entry.id); // It may have dropped it.
                    opened.entries.push(roll.entry);
                }
                self.rolled += 1;
                if let Some(deciding) = &mut self.places[at.place as usize].deciding {
                    deciding.rolls_left -= 1;
                }
                self.settle_first(at.place);
            }
            // What it lacks it cannot take.
            Err(why) => self.roll_failed(at, why, OutAs::Absent),
        }
    }

    /// A change that is being rolled forward, unless another attempt was begun since.
    fn roll(&self, place: u16, attempt: u32, number: u32) -> Option<Roll> {
        let deciding = self.places[usize::from(place)].deciding.as_ref();
        let deciding = deciding.filter(|deciding| deciding.attempt == attempt)?;
        Some(deciding.rolls[number as usize])
    }

    fn roll_failed(&mut self, at: At, why: Unanswered, standing: OutAs) {
        let restores = self.places[usize::from(at.place)].deciding.as_ref().and_then(|one| one.restores);
        match (why, restores) {
            (Unanswered::Lost, _) => {} // The link's change starts over.
            (Unanswered::Refused(Refusal::NotOpen), _) => self.lost_session(at),
            (Unanswered::Refused(_), Some(member)) => self.not_restored(At { place: at.place, member }),
            (Unanswered::Refused(refusal), None) => {
                let why = LeftBecause::Refused(refusal);
                self.member_mut(at).trouble = Some(why);
                self.want_out(at, standing, why);
                // One that cannot be spared has room again in a while.
                let lacks_room = matches!(refusal, Refusal::Busy | Refusal::NoSpace);
                if lacks_room && !self.member(at).is_leaving() {
                    self.lost_session(at);
                }
            }
        }
    }

    /// The session with a component is not what it was thought to be: it is opened again.
    pub(crate) fn lost_session(&mut self, at: At) {
        let now = self.now;
        if self.member(at).is_open() {
            self.member_mut(at).down(now, now + limits::RETRY);
            self.decide_anew(at.place);
            if !self.member(at).is_joining() {
                self.drop_resync(at, LeftBecause::Refused(Refusal::NotOpen));
            }
        }
    }

    /// When all is rolled forward, the components that count make the first watermark of the epoch stable.
    fn settle_first(&mut self, index: u16) {
        let place = &self.places[index as usize];
        let Some(deciding) = place.deciding.as_ref().filter(|deciding| deciding.rolls_left == 0) else {
            return;
        };
        let attempt = deciding.attempt;
        if let Some(member) = deciding.restores {
            return self.rolled_for_restore(At { place: index, member });
        }
        let from_epoch = decided(place).epoch;
        let targets: Vec<(u8, base::NodeId, base::ComponentId)> =
            place.counting().map(|(member, one)| (member, one.node, one.component)).collect();
        let deciding = self.places[index as usize].deciding.as_mut().expect("just seen");
        deciding.settles_left = targets.len() as u32;
        self.has_settled = true;
        let watermark = WriteId { epoch: self.epoch, sequence: 0 };
        for (member, node, component) in targets {
            let at = At { place: index, member };
            let epoch = self.epoch;
            let request = Request::Settle { component, epoch, watermark, from_epoch, stable: true };
            self.send(node, Asked::FirstSettle { at, attempt }, request);
        }
    }

    pub(crate) fn first_settled(&mut self, at: At, attempt: u32, answer: Result<u8, Unanswered>) {
        let watermark = WriteId { epoch: self.epoch, sequence: 0 };
        let deciding = self.places[at.place as usize].deciding.as_mut();
        let Some(deciding) = deciding.filter(|deciding| deciding.attempt == attempt) else { return };
        match answer {
            Ok(_) => {
                deciding.settles_left -= 1;
                let is_last = deciding.settles_left == 0;
                self.member_mut(at).note_told(watermark);
                match self.places[usize::from(at.place)].code {
                    Some(_) if is_last && self.holds(Rule::AskForHeld) => self.ask_held_of_all(at.place),
                    _ if is_last => {
                        let place = &mut self.places[usize::from(at.place)];
                        place.members.iter_mut().for_each(|member| member.knows_held = true);
                        place.is_ready = true;
                    }
                    _ => {}
                }
            }
            Err(Unanswered::Lost) => {}
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(Unanswered::Refused(refusal)) => {
                self.want_out(at, OutAs::Absent, LeftBecause::Refused(refusal));
            }
        }
    }

    /// The windows are decided: what the components that count told of has happened.
    pub(crate) fn note_taken_over(&mut self) {
        for (place, state) in (0u16..).zip(&self.places) {
            let decided = decided(state);
            // Of an epoch before that, a component may have kept what a resync has undone.
            let has_happened =
                |entry: &&Entry| entry.has_happened || entry.id > decided || entry.id.epoch == decided.epoch;
            let is_change = |entry: &&Entry| entry.count > 0 && entry.tag != base::RequestTag::default();
            let told = state.counting().filter_map(|(_, member)| member.opened());
            let entries = told.flat_map(|opened| &opened.entries);
            let entries = entries.filter(is_change).filter(has_happened);
            self.happened.take_over(entries.map(|entry| Known {
                tag: entry.tag,
                place,
                part: known_part(entry.part),
                block: entry.block,
                count: entry.count,
            }));
        }
    }
}
