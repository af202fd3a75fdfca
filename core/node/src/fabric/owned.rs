//! Owners of disks on this node: their inputs and outputs.

use super::pending::For;
use crate::interface::{DiskSpec, FabricOutput, Output};
use crate::mover::Mover;
use crate::node::Node;
use crate::range::{Stretch, part_and_block};
use crate::request::{Piece, Requester};
use base::units::BLOCK_SIZE;
use base::{ComponentId, DiskId, Instant, NodeId, RequestTag};
use layout::Target;
use replication::OwnedBy;
use replication::owner::{
    Asker, Committed, End, Event, Failure, Input, LinkChange, Payload, Phase, Reading, Reply, Token,
};
use replication::{Owner, Roster, owner};
use std::collections::BTreeSet;
use std::time::Duration;

/// An upper bound for the turns that owners take in one step of a node. A greater number means that an owner retries a refused request within
/// the step and never ends it.
const TURNS_MAX: u32 = 1_000_000;

impl Node {
    pub(crate) fn owner(&self, disk: u32) -> Option<&Owner> {
        self.disks.get(disk)?.ownership.owner.as_deref()
    }

    /// Number of the present owner of a disk, different for each owner that this node has had.
    pub(crate) fn owner_number(&self, disk: u32) -> Option<u64> {
        let ownership = &self.disks.get(disk)?.ownership;
        ownership.owner.is_some().then_some(ownership.owner_number)
    }

    /// Gives an owner an input; its outputs become jobs.
    pub(crate) fn step_owner(&mut self, disk: u32, input: Input) {
        let now = self.now;
        let fabric = &mut self.fabric;
        let owner = self.disks.get_mut(disk).and_then(|disk| disk.ownership.owner.as_mut());
        let Some(owner) = owner else { return };
        owner.step(now, input, &fabric.leases, &mut fabric.said_by_owner);
        fabric.schedule.touch(disk);
        fabric.take_from_owner(disk);
    }

    /// Has the owner on this node read a piece of a request; `snapshot`: of that view, 0: the disk as it is.
    pub(crate) fn read_from_owner(&mut self, (key, piece): (u32, u32), snapshot: u32, of: Stretch) {
        let (part, block) = part_and_block(of.offset);
        let count = (of.len / BLOCK_SIZE) as u16;
        let unit = match of.target {
            None => None,
            Some(Target::Data(unit)) => Some(unit),
            Some(Target::Rows) => unreachable!("reads go unit by unit"),
        };
        let (token, place) = (Piece { request: key, piece }.into(), of.place);
        let disk = self.requests[key as usize].disk();
        self.step_owner(disk, Input::Read { token, place, part, block, count, unit, snapshot });
    }

    /// Has the owner on this node change a piece.
    pub(crate) fn change_by_owner(&mut self, key: u32, of: Stretch, payload: Payload) {
        let state = &self.requests[key as usize];
        let asker = match state.requester {
            Requester::Peer { .. } => Asker::Forwarded,
            Requester::Guest(_) | Requester::Surplus(_) | Requester::Clone { .. } => Asker::Guest,
        };
        self.change_by_name(Piece::changes_of(key), (state.tag, asker), of, payload);
    }

    /// Has the owner on this node change a piece on the other side of a disk that moves.
    pub(crate) fn follow_by_owner(&mut self, key: u32, tag: RequestTag, of: Stretch, payload: Payload) {
        self.change_by_name(Piece::follower_of(key), (tag, Asker::Move), of, payload);
    }

    fn change_by_name(
        &mut self,
        name: Piece,
        (tag, asker): (RequestTag, Asker),
        of: Stretch,
        payload: Payload,
    ) {
        let state = &mut self.requests[name.request as usize];
        state.outstanding += 1;
        let disk = state.disk();
        let (part, block) = part_and_block(of.offset);
        let token = name.into();
        let Stretch { place, target, .. } = of;
        self.step_owner(disk, Input::Change { token, place, part, block, target, tag, asker, payload });
    }

    /// Which copies of a disk guests read from: its policy says, unless all disks of this node are read locally.
    pub(crate) fn reading_of(&self, disk: u32) -> Reading {
        match self.fabric.settings.prefers_local {
            true => Reading::Local,
            false => self.disks[disk].spec.reading,
        }
    }

    /// Begins to own a disk: the record is changed to name this node.
    pub(crate) fn claim(&mut self, disk: u32) {
        let now = self.now;
        self.begin_to_own(disk, |id, me, record, up, settings, out| {
            Owner::claim(id, me, record, up, settings, now, out)
        });
    }

    /// Goes on with a disk that has moved on, in the epoch that its record says: what its guests asked for waits here meanwhile.
    fn go_on(&mut self, disk: u32) {
        let now = self.now;
        self.begin_to_own(disk, |id, me, record, up, settings, _| {
            Owner::go_on(id, me, record, up, settings, now)
        });
    }

    fn begin_to_own(
        &mut self,
        disk: u32,
        make: impl FnOnce(
            DiskId,
            OwnedBy,
            (u64, Roster),
            BTreeSet<NodeId>,
            owner::Settings,
            &mut Vec<owner::Output>,
        ) -> Owner,
    ) {
        let DiskSpec { id, verify_checksums: verifies, origin, .. } = self.disks[disk].spec;
        let is_clone = origin.is_some();
        let layout = &self.disks[disk].spec.layout;
        let moving = layout.boundary().is_some().then(|| Box::new(layout.clone()));
        let reading = self.reading_of(disk);
        let fabric = &mut self.fabric;
        let ownership = &mut self.disks[disk].ownership;
        assert!(ownership.owner.is_none(), "a disk has one owner");
        ownership.has_damage = false;
        let (zeroes, pool, rules) = (self.zeroes.clone(), self.pool.clone(), fabric.settings.rules);
        let gathers = self.gathers.clone();
        let (copy_blocks_max, fold_after) = (fabric.settings.copy_blocks_max, fabric.settings.fold_after);
        // Another node has changed the record since, so this directory is the one in use.
        let patience = if ownership.is_live { Duration::ZERO } else { fabric.settings.start_patience };
        let starts_until = fabric.started + patience;
        let settings = owner::Settings {
            zeroes,
            pool,
            gathers,
            reading,
            verifies,
            copy_blocks_max,
            fold_after,
            starts_until,
            is_clone,
            moving,
            rules,
        };
        let record = (ownership.version, ownership.roster.clone());
        let up = fabric.links.iter().filter(|(_, link)| link.is_up()).map(|(node, _)| *node).collect();
        let owner = make(id, fabric.settings.me, record, up, settings, &mut fabric.said_by_owner);
        ownership.owner = Some(Box::new(owner));
        fabric.next_session += 1;
        ownership.owner_number = fabric.next_session;
        fabric.schedule.touch(disk);
        fabric.take_from_owner(disk);
        let is_used = ownership.is_used;
        self.step_owner(disk, Input::Used { is_used });
    }

    pub(crate) fn owner_says(&mut self, disk: u32, output: owner::Output, out: &mut Vec<Output>) {
        let Some(state) = self.disks.get(disk) else { return };
        let id = state.spec.id;
        match output {
            owner::Output::Send { node, ask, request } => {
                if let Some(number) = self.owner_number(disk) {
                    self.ask_node(node, For::Owner { disk, number, ask }, request, out);
                }
            }
            owner::Output::Done { token, result } => self.piece_of_owner(disk, token, result, out),
            owner::Output::Commit { expected, roster } => {
                self.fabric.next_session += 1;
                let number = self.fabric.next_session;
                let ownership = &mut self.disks[disk].ownership;
                ownership.commit = Some(number);
                out.push(Output::Fabric(FabricOutput::Commit { disk: id, number, expected, roster }));
            }
            owner::Output::Fetch => out.push(Output::Fabric(FabricOutput::Fetch { disk: id })),
            owner::Output::Event(event) => self.owner_event(disk, id, event, out),
        }
    }

    fn owner_event(&mut self, disk: u32, id: DiskId, event: Event, out: &mut Vec<Output>) {
        match event {
            Event::Ended(end) => {
                let state = &mut self.disks[disk];
                let ownership = &mut state.ownership;
                ownership.commit = None; // Its result is for nobody.
                let is_lost = matches!(end, End::Superseded | End::SupersededBy { .. });
                ownership.note_end(is_lost);
                if let End::SupersededBy { component, epoch } = end {
                    let known = ownership.promised.map_or(0, |(_, epoch)| epoch);
                    ownership.promised = (epoch > known).then_some((component, epoch)).or(ownership.promised);
                }
                if let Some(owner) = ownership.owner.take() {
                    let (version, roster) = owner.record();
                    if version >= ownership.version {
                        (ownership.version, ownership.roster) = (version, roster.clone());
                    }
                }
                self.fabric.schedule.set_checking(disk, false);
                self.drop_mover(disk, out);
                if end == End::Passed && self.is_mine(disk) {
                    out.push(Output::Fabric(FabricOutput::Owner { disk: id, event }));
                    return self.go_on(disk);
                }
                self.refuse_peers(disk, out);
                self.look_soon(disk);
                out.push(Output::Fabric(FabricOutput::Fetch { disk: id }));
                self.release_paced(disk, out);
            }
            Event::Serving { .. } => {
                self.know_mover(disk);
                self.serve_held(disk, out);
            }
            Event::Left { .. } | Event::Joined { .. } | Event::StandsIn { .. } => {}
            Event::RestoreBegan { .. } | Event::Diverged { .. } => {}
            Event::ResyncBegan { .. } | Event::ResyncFailed { .. } | Event::Repaired { .. } => {}
            Event::RowDisagrees { .. } | Event::RowsChecked { .. } => {}
            Event::SnapshotTaken { .. } | Event::SnapshotNotTaken { .. } | Event::Backfilled { .. } => {}
        }
        out.push(Output::Fabric(FabricOutput::Owner { disk: id, event }));
    }

    fn piece_of_owner(
        &mut self,
        disk: u32,
        token: Token,
        result: Result<Reply, Failure>,
        out: &mut Vec<Output>,
    ) {
        let Piece { request, piece } = token.into();
        match crate::mover::is_mover(request) {
            true => self.piece_of_mover(disk, (request, piece), result, out),
            false => self.piece_done(request, piece, result, out),
        }
    }

    pub(crate) fn tell_owners_of_link(&mut self, node: NodeId, change: LinkChange) {
        let owned: Vec<u32> = self.disks.iter().map(|(key, _)| key).collect();
        for disk in owned {
            if self.owner(disk).is_some() {
                self.step_owner(disk, Input::Link { node, change });
            } else {
                self.look_soon(disk);
            }
        }
    }

    /// Grants owners bytes to copy, each the same share, when that is due.
    pub(crate) fn pace_copies(&mut self) {
        let now = self.now;
        if !self.fabric.schedule.has_copies() {
            return self.shares.rest(now);
        }
        let copying = self.fabric.schedule.copying();
        let (copying, over): (Vec<_>, Vec<_>) =
            copying.into_iter().partition(|disk| self.owner(*disk).is_some());
        over.into_iter().for_each(|disk| self.fabric.schedule.set_copying(disk, false));
        let congestion = copying.iter().map(|disk| self.owner_congestion(*disk)).max();
        let Some(congestion) = congestion else { return self.shares.rest(now) };
        let moved =
            copying.iter().filter_map(|disk| self.disks[*disk].mover.as_deref()).map(Mover::copying_bytes);
        let copied = copying.iter().filter_map(|disk| self.owner(*disk)).map(Owner::copying_bytes);
        let in_flight = copied.chain(moved).sum();
        let Some(granted) = self.shares.grant(now, congestion, in_flight) else { return };
        if granted == 0 {
            return;
        }
        let bytes = (granted / copying.len() as u64).max(1);
        for disk in copying {
            let fills = self.owner(disk).is_some_and(Owner::wants_pace);
            // Moves are last: they get what no component waits for. But one that goes back may be the way out for what waits.
            let mover = self.disks[disk].mover.as_deref();
            let goes_back = mover.is_some_and(|mover| mover.course.is_back && mover.wants_pace());
            let bytes = if fills && goes_back { (bytes / 2).max(1) } else { bytes };
            if fills {
                self.step_owner(disk, Input::Pace { bytes });
            }
            if goes_back || !fills {
                self.pace_mover(disk, bytes);
            }
        }
    }

    /// Advances the owners with new inputs and those that are due.
    pub(crate) fn advance_owners(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        self.fabric.schedule.ring(now);
        let mut turns = 0;
        while let Some(disk) = self.fabric.schedule.next_touched() {
            turns += 1;
            debug_assert!(turns < TURNS_MAX, "the owner of {disk:?} gives itself work without end");
            let fabric = &mut self.fabric;
            let owner = self.disks.get_mut(disk).and_then(|disk| disk.ownership.owner.as_mut());
            let Some(owner) = owner else { continue };
            let pace = self.shares.of_groups.scrub.of(fabric.settings.row_check_pace);
            let least = u64::from(fabric.settings.row_check_pace > 0);
            owner.set_row_check_pace((pace / fabric.schedule.checking()).max(least));
            owner.advance(now, &fabric.leases, &mut fabric.said_by_owner);
            if owner.has_waiting_reads() {
                fabric.schedule.await_lease(disk);
            }
            let is_copying = owner.wants_pace();
            fabric.schedule.set_checking(disk, owner.checks_rows());
            // An alarm for now would be handled in this very loop.
            if let Some(at) = owner.wake_at() {
                fabric.schedule.arm(disk, at.max(Instant(now.0 + 1)));
            }
            fabric.take_from_owner(disk);
            self.pump(out);
            self.advance_move(disk, out);
            self.pump(out);
            let mover = self.disks.get(disk).and_then(|state| state.mover.as_deref());
            let moves = mover.is_some_and(Mover::wants_pace);
            if let Some(at) = mover.and_then(Mover::wake_at) {
                self.fabric.schedule.arm(disk, at.max(Instant(now.0 + 1)));
            }
            self.fabric.schedule.set_copying(disk, is_copying || moves);
        }
    }

    /// A compare-and-set of a disk's record ended.
    pub fn committed(
        &mut self,
        now: Instant,
        disk: DiskId,
        number: u64,
        committed: Committed,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        if let Committed::Conflict { version, roster } = &committed {
            self.note_record(key.0, *version, roster);
        }
        let commit = &mut self.disks[key.0].ownership.commit;
        if *commit == Some(number) {
            *commit = None;
            self.step_owner(key.0, Input::Committed(committed));
        }
        self.pump(out);
    }

    /// A disk's record, read or pushed; `None` if the disk is gone.
    pub fn recorded(
        &mut self,
        now: Instant,
        disk: DiskId,
        record: Option<(u64, Roster)>,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        if let Some((version, roster)) = &record {
            self.note_record(key.0, *version, roster);
        }
        self.step_owner(key.0, Input::Recorded { record });
        self.pump(out);
    }

    /// A disk's record could not be read.
    pub fn fetch_failed(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        self.step_owner(key.0, Input::FetchFailed);
        self.look_soon(key.0);
        self.pump(out);
    }

    /// The device of a component has room again: if the disk is owned here, the component is tried again at once.
    pub fn has_room(&mut self, now: Instant, disk: DiskId, component: ComponentId, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        self.step_owner(key.0, Input::Room { component });
        self.pump(out);
    }

    fn note_record(&mut self, disk: u32, version: u64, roster: &Roster) {
        let me = self.fabric.me();
        let ownership = &mut self.disks[disk].ownership;
        // The record is not older than any component's promise.
        if ownership.promised.is_some_and(|(_, epoch)| roster.epoch >= epoch) {
            ownership.promised = None;
        }
        if ownership.version >= version {
            return;
        }
        ownership.is_live |= roster.owner.is_some_and(|owner| owner.node != me);
        (ownership.version, ownership.roster) = (version, roster.clone());
        self.look_soon(disk);
    }

    /// Whether the record names this node, since it started, as the disk's owner.
    pub(crate) fn is_mine(&self, disk: u32) -> bool {
        self.disks[disk].ownership.roster.owner == Some(self.fabric.settings.me)
    }

    /// Whether this node owns the disk and serves it.
    pub(crate) fn is_serving(&self, disk: u32) -> bool {
        self.owner(disk).is_some_and(|owner| owner.phase() == Phase::Serving)
    }
}
