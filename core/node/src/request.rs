//! Guests' requests: split into pieces by component, and joined again.
//!
//! Groups work in whole blocks. A write or zero-write that covers a block in part first reads that block. Until such
//! a change has ended, no other change of its blocks begins. Long trims and zero-writes are done in windows.

mod change;
mod clones;
mod state;
mod status;

use crate::interface::{FabricOutput, Output, Trouble};
use crate::node::Node;
use crate::pace::{Admission, Cost, congestion_delay};
use crate::pieces;
use crate::range::{Aim, Stretch, range_of, stretches};
use base::RequestTag;
use base::request::{Outcome, Pieces, Reply, Request, RequestError};
use base::units::{BLOCK_SIZE, EXTENT_SIZE, MIB, SECTOR_SIZE};
use iostats::{Arrival, Operation};
use layout::Side;
use replication::{Rule, owner};
use smallvec::SmallVec;
use state::{Admitted, Stage};
pub(crate) use state::{Piece, RequestState, Requester};
use std::time::Duration;

/// Bytes that one step of a trim covers at most: a thousand extents.
const TRIM_WINDOW: u64 = 1024 * EXTENT_SIZE;
/// Bytes of zeroes that one request writes at once.
const ZERO_WINDOW: u64 = 16 * MIB;

impl Node {
    pub(crate) fn begin_request(
        &mut self,
        requester: Requester,
        tag: RequestTag,
        disk: u32,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        let (offset, len) = range_of(&request);
        if offset.checked_add(len).is_none_or(|end| end > self.disks[disk].spec.size) {
            return self.answer_requester(requester, Err(RequestError::OutOfRange), out);
        }
        // Statistics are recorded on the guest's node.
        let arrival = match requester {
            Requester::Guest(_) => self.record_arrival(disk, &request, offset, len),
            Requester::Peer { .. } | Requester::Surplus(_) | Requester::Clone { .. } => None,
        };
        if let Request::Flush = &request {
            return self.answer_requester(requester, Ok(Reply::Done), out);
        }
        self.disks[disk].outstanding += 1;
        let is_held = !self.may_start(disk);
        let key = self.insert_request(requester, tag, disk, request, arrival);
        if is_held {
            self.requests[key as usize].admitted = Admitted::Held;
        }
        self.start_request(key, out);
    }

    fn record_arrival(&mut self, disk: u32, request: &Request, offset: u64, len: u64) -> Option<Arrival> {
        let state = &mut self.disks[disk];
        let sectors = (len / SECTOR_SIZE) as u32;
        let now = self.now;
        match request {
            Request::Read { .. } | Request::View { .. } => {
                Some(state.record().arrive(now, Operation::Read, offset / SECTOR_SIZE, sectors))
            }
            Request::Write { .. } => {
                Some(state.record().arrive(now, Operation::Write, offset / SECTOR_SIZE, sectors))
            }
            Request::Flush => {
                state.record().flushed();
                None
            }
            Request::Trim { len, .. } | Request::WriteZeroes { len, .. } => {
                state.record().trimmed(*len);
                None
            }
            Request::Status { .. } | Request::CopyUp { .. } => None,
        }
    }

    /// Answers a request to its requester.
    fn answer_requester(&mut self, requester: Requester, outcome: Outcome, out: &mut Vec<Output>) {
        match requester {
            Requester::Guest(token) => out.push(Output::Reply { token, outcome }),
            Requester::Peer { caller, token } => {
                self.answer(caller, token, wire::Answer::Guest(outcome), out);
            }
            Requester::Surplus(token) => {
                out.push(Output::Fabric(FabricOutput::given_back(token, outcome.is_ok())))
            }
            Requester::Clone { request, piece } => self.origin_answered(request, piece, outcome, out),
        }
    }

    /// Begins a request without checking that it lies within the disk.
    pub(crate) fn begin_unchecked(
        &mut self,
        requester: Requester,
        disk: u32,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        self.disks[disk].outstanding += 1;
        let tag = self.next_tag();
        let key = self.insert_request(requester, tag, disk, request, None);
        self.start_request(key, out);
    }

    fn insert_request(
        &mut self,
        requester: Requester,
        tag: RequestTag,
        disk: u32,
        request: Request,
        arrival: Option<Arrival>,
    ) -> u32 {
        let state = RequestState {
            requester,
            tag,
            disk,
            request,
            arrival,
            began: self.now,
            stage: Stage::Waiting,
            outstanding: 0,
            answers: SmallVec::new(),
            error: None,
            admitted: Admitted::No,
            is_returned: false,
            is_apart: false,
            followers: Vec::new(),
            is_abandoned: false,
            reign: None,
            edges: SmallVec::new(),
            share: None,
        };
        self.requests.insert(state) as u32
    }

    /// Whether the request may begin now. Otherwise it waits: for its disk's limits, or for the congestion of components.
    fn admit(&mut self, key: u32) -> bool {
        let (now, me) = (self.now, self.fabric.me().host);
        let state = &mut self.requests[key as usize];
        let before = state.admitted;
        state.admitted = if before == Admitted::Held { Admitted::Fully } else { Admitted::ByLimits };
        let (_, len) = range_of(&state.request);
        let moved = match &state.request {
            Request::Flush | Request::Status { .. } => 0,
            Request::Read { .. } | Request::View { .. } | Request::Write { .. } => len,
            Request::WriteZeroes { allocate: true, .. } => len,
            Request::Trim { .. } | Request::WriteZeroes { .. } | Request::CopyUp { .. } => 0,
        };
        let is_free = matches!(state.request, Request::Flush | Request::Status { .. });
        let is_read = matches!(state.request, Request::Read { .. } | Request::View { .. });
        let (disk, changes) = (state.disk, !is_read && !is_free);
        let host = match state.requester {
            Requester::Guest(_) => me,
            Requester::Peer { caller, .. } => caller.node.host,
            Requester::Surplus(_) | Requester::Clone { .. } => return true,
        };
        if before != Admitted::ByLimits
            && !is_free
            && self.disks[disk].pace.admit(now, host, key, Cost::of(moved)) == Admission::Wait
        {
            self.set_pace_alarm(disk);
            return false;
        }
        self.requests[key as usize].admitted = Admitted::Fully;
        let delay = if changes && before != Admitted::Held {
            congestion_delay(self.owner_congestion(disk))
        } else {
            Duration::ZERO
        };
        if delay > Duration::ZERO {
            self.delay(key, now + delay);
        }
        delay == Duration::ZERO
    }

    /// Begins the requests of a disk that its limits let begin.
    pub(crate) fn begin_paced(&mut self, disk: u32, out: &mut Vec<Output>) {
        let now = self.now;
        while let Some(state) = self.disks.get_mut(disk)
            && let Some(key) = state.pace.take_ready(now)
        {
            self.start_request(key, out);
        }
        self.set_pace_alarm(disk);
    }

    /// Lets go of all requests of a disk that wait for its limits: it is not served here any more.
    pub(crate) fn release_paced(&mut self, disk: u32, out: &mut Vec<Output>) {
        let now = self.now;
        while let Some(state) = self.disks.get_mut(disk)
            && let Some(key) = state.pace.take_next(now)
        {
            self.requests[key as usize].admitted = Admitted::Held;
            self.start_request(key, out);
        }
        self.set_pace_alarm(disk);
    }

    /// The request's time has come.
    pub(crate) fn start_request(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &self.requests[key as usize];
        let disk = state.disk;
        if self.disks[disk].closing.is_some() {
            self.requests[key as usize].error = Some(RequestError::Stopping);
            return self.end_request(key, out);
        }
        if let Requester::Peer { caller, .. } = state.requester
            && !self.is_current(caller)
        {
            // Its sender repeats it, and what follows it. Applied late, it would undo that.
            return self.drop_request(key, out);
        }
        if state.is_abandoned && self.fabric.settings.rules.hold(Rule::BeginNothingAbandoned) {
            self.requests[key as usize].error = Some(RequestError::Stopping);
            return self.end_request(key, out);
        }
        if !self.may_start(disk) {
            return self.hold(key, out);
        }
        if !self.is_within(key) {
            // The disk became smaller while it waited.
            self.requests[key as usize].error = Some(RequestError::OutOfRange);
            return self.end_request(key, out);
        }
        if self.requests[key as usize].admitted != Admitted::Fully && !self.admit(key) {
            return;
        }
        if !self.has_memory(key) {
            return self.reads_waiting.push_back(key);
        }
        self.know_mover(disk);
        let (now, reign) = (self.now, self.owner_number(disk));
        let state = &mut self.requests[key as usize];
        (state.began, state.reign) = (now, reign);
        if self.disks[disk].spec.origin.is_some() && !self.is_prepared(key, out) {
            return;
        }
        let state = &self.requests[key as usize];
        let (offset, len) = range_of(&state.request);
        match &state.request {
            Request::Read { .. } => self.read_blocks((key, 0), offset, len, out),
            &Request::View { snapshot, .. } => self.read_blocks((key, snapshot), offset, len, out),
            Request::Status { .. } => self.ask_status(key, out),
            Request::Flush => unreachable!("a flush ends where it begins"),
            Request::Write { .. }
            | Request::Trim { .. }
            | Request::WriteZeroes { .. }
            | Request::CopyUp { .. } => {
                let change = self.change_of(key);
                if change.start >= change.end {
                    return self.end_request(key, out);
                }
                let change = self.keep_apart_in_granule(disk, change);
                if self.disks[disk].changes.begin_or_wait(change) {
                    self.start_change(key, change, out);
                }
            }
        }
    }

    /// Whether a request has memory for what it reads, or gets it now. Only reads of guests here wait for it: what other nodes forward, and what clones read
    /// of their origins, may be for a read that holds some itself.
    fn has_memory(&mut self, key: u32) -> bool {
        let state = &mut self.requests[key as usize];
        let is_read = matches!(state.request, Request::Read { .. } | Request::View { .. });
        if !is_read || state.share.is_some() || !matches!(state.requester, Requester::Guest(_)) {
            return true;
        }
        let (_, len) = range_of(&state.request);
        let is_granted = self.reads_waiting.is_empty() && self.reads.fits(len);
        state.share = is_granted.then(|| self.reads.take(len));
        is_granted
    }

    /// Guests' reads that wait for memory.
    pub fn waiting_reads(&self) -> usize {
        self.reads_waiting.len()
    }

    /// Begins the reads that waited for memory, as far as there is some.
    pub(crate) fn begin_waiting_reads(&mut self, out: &mut Vec<Output>) {
        while let Some(key) = self.reads_waiting.front().copied() {
            let (_, len) = range_of(&self.requests[key as usize].request);
            if !self.reads.fits(len) {
                return;
            }
            self.requests[key as usize].share = Some(self.reads.take(len));
            self.reads_waiting.pop_front();
            self.start_request(key, out);
        }
    }

    /// Whether a request lies within its disk, where it has to.
    pub(crate) fn is_within(&self, key: u32) -> bool {
        let state = &self.requests[key as usize];
        let is_free = matches!(state.requester, Requester::Surplus(_));
        let (offset, len) = range_of(&state.request);
        is_free || offset + len <= self.disks[state.disk].spec.size
    }

    /// The stretches of a range of what a snapshot sees, to be read; 0: of the disk as it is. While a disk moves, its snapshots are read where they were taken.
    fn view_stretches(&self, disk: u32, snapshot: u32, offset: u64, len: u64) -> SmallVec<[Stretch; 2]> {
        let layout = &self.disks[disk].spec.layout;
        let is_moving = layout.boundary().is_some() && self.fabric.settings.rules.hold(Rule::ViewWhereTaken);
        if snapshot == 0 || !is_moving {
            return self.stretches(disk, offset, len, Aim::Read);
        }
        let mut found = SmallVec::new();
        stretches(&layout.only(Side::Old), offset, len, Aim::Read, &mut |one| found.push(one));
        found
    }

    /// The stretches of a range of the disk.
    fn stretches(&self, disk: u32, offset: u64, len: u64, aim: Aim) -> SmallVec<[Stretch; 2]> {
        let mut found = SmallVec::new();
        stretches(&self.disks[disk].spec.layout, offset, len, aim, &mut |one| found.push(one));
        found
    }

    /// Reads for a guest; `snapshot`: of that view, 0: the disk as it is.
    fn read_blocks(&mut self, (key, snapshot): (u32, u32), offset: u64, len: u64, out: &mut Vec<Output>) {
        if len == 0 {
            return self.end_request(key, out);
        }
        let start = offset / BLOCK_SIZE * BLOCK_SIZE;
        let end = (offset + len).next_multiple_of(BLOCK_SIZE);
        let disk = self.requests[key as usize].disk;
        if self.disks[disk].spec.origin.is_some() {
            return self.read_clone((key, snapshot), start..end, out);
        }
        let spans = self.view_stretches(disk, snapshot, start, end - start);
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Reading;
        state.outstanding = spans.len() as u32;
        state.answers.resize(spans.len(), Pieces::new());
        for (piece, span) in spans.iter().enumerate() {
            self.read_from_owner((key, piece as u32), snapshot, *span);
        }
    }

    /// A piece of a request ended.
    pub(crate) fn piece_done(
        &mut self,
        key: u32,
        piece: u32,
        result: Result<owner::Reply, owner::Failure>,
        out: &mut Vec<Output>,
    ) {
        let state = &mut self.requests[key as usize];
        state.outstanding -= 1;
        match result {
            Ok(owner::Reply::Data(data)) => state.answers[piece as usize] = data,
            Ok(owner::Reply::Changed) => {}
            Ok(owner::Reply::Allocation(runs)) => self.allocation_told(key, piece, runs),
            Err(owner::Failure::NoSpace) if Piece::is_follower(piece) => {
                self.follower_failed(key, Trouble::NoSpace);
            }
            Err(owner::Failure::Damaged) if Piece::is_follower(piece) => {
                self.follower_failed(key, Trouble::Damaged);
            }
            Err(owner::Failure::NoSpace) => state.error = Some(RequestError::NoSpace),
            Err(owner::Failure::Damaged) => state.error = Some(RequestError::Damaged),
            Err(owner::Failure::Unowned) => state.is_returned = true,
            Err(owner::Failure::Abandoned) => state.error = Some(RequestError::Stopping),
            Err(owner::Failure::NoSnapshot) => state.error = Some(RequestError::NoSnapshot),
        }
        self.piece_ended(key, out);
    }

    fn piece_ended(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &mut self.requests[key as usize];
        if state.outstanding > 0 {
            return;
        }
        if matches!(state.stage, Stage::Learning(_)) {
            return self.learned(key, out);
        }
        // What it asked of an origin may have ended last, when the next owner serves already.
        if state.is_returned || self.is_of_former_owner(key) {
            return self.begin_anew(key, out);
        }
        let state = &mut self.requests[key as usize];
        if !state.followers.is_empty() && self.follow(key, out) {
            return;
        }
        let state = &mut self.requests[key as usize];
        if state.is_abandoned {
            state.error = Some(RequestError::Stopping); // What of it has not begun does not begin.
        }
        let has_failed = state.error.is_some();
        match state.stage {
            Stage::ReadingEdges if !has_failed => {
                state.stage = Stage::HasEdges;
                self.resume_request(key, out);
            }
            Stage::Changing { .. } if !has_failed => self.change_on(key, out),
            Stage::Asking(_) if !has_failed => self.status_told(key, out),
            Stage::Reading
            | Stage::ReadingEdges
            | Stage::Changing { .. }
            | Stage::Asking(_)
            | Stage::Told(_) => self.end_request(key, out),
            Stage::Waiting | Stage::HasEdges | Stage::Learning(_) => {
                unreachable!("a request waits for its pieces")
            }
        }
    }

    /// Continues a request that waited for memory.
    pub(crate) fn resume_request(&mut self, key: u32, out: &mut Vec<Output>) {
        match self.requests[key as usize].stage {
            Stage::HasEdges if self.is_of_former_owner(key) => self.begin_anew(key, out),
            Stage::HasEdges => self.write_edges(key, out),
            Stage::Waiting
            | Stage::Reading
            | Stage::ReadingEdges
            | Stage::Changing { .. }
            | Stage::Told(_)
            | Stage::Learning(_)
            | Stage::Asking(_) => {
                unreachable!("these wait for pieces")
            }
        }
    }

    /// A step is over: all pieces are done, or one failed and none is under way.
    fn end_request(&mut self, key: u32, out: &mut Vec<Output>) {
        let (requester, is_ok) = {
            let state = &self.requests[key as usize];
            (state.requester, state.error.is_none())
        };
        self.settle_regions(key);
        let had_change = self.end_change(key);
        let state = self.requests.remove(key as usize);
        let now = self.now;
        let disk = &mut self.disks[state.disk];
        disk.outstanding -= 1;
        if let Some(arrival) = state.arrival {
            disk.record().complete(now, arrival, is_ok);
        }
        let disk_key = state.disk;
        if disk.mover.is_some() {
            self.fabric.schedule.touch(disk_key); // It may wait for this one.
        }
        self.shares.guest_done(now.since(state.began));
        self.answer_requester(requester, outcome_of(state), out);
        if had_change {
            self.unblock(disk_key, out);
        }
        self.disk_quieter(disk_key, out);
    }

    /// Ends the change of a request. Returns whether it had one.
    fn end_change(&mut self, key: u32) -> bool {
        let disk = self.requests[key as usize].disk;
        self.disks[disk].changes.end(key)
    }

    /// The owner that had begun the request is gone: it begins anew with the next owner.
    fn return_request(&mut self, key: u32, out: &mut Vec<Output>) {
        self.requests[key as usize].error = Some(RequestError::Stopping); // As far as anybody knows.
        self.settle_regions(key);
        let had_change = self.end_change(key);
        let state = &mut self.requests[key as usize];
        state.is_returned = false;
        state.followers.clear();
        state.error = None;
        state.stage = Stage::Waiting;
        state.answers.clear();
        state.edges.clear();
        state.share = None;
        let disk = state.disk;
        self.hold(key, out);
        if had_change {
            self.unblock(disk, out);
        }
    }

    /// The same where another owner may serve here already.
    fn begin_anew(&mut self, key: u32, out: &mut Vec<Output>) {
        let disk = self.requests[key as usize].disk;
        self.return_request(key, out);
        // With its last request a disk that is being closed is gone.
        if self.disks.get(disk).is_some() {
            self.serve_held_if_serving(disk, out);
        }
    }

    /// Drops a request that nobody waits for.
    pub(crate) fn drop_request(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = self.requests.remove(key as usize);
        self.disks[state.disk].outstanding -= 1;
        self.disk_quieter(state.disk, out);
    }

    /// A forwarded request ended, or could not be forwarded.
    pub(crate) fn end_forwarded(&mut self, key: u32, outcome: Outcome, out: &mut Vec<Output>) {
        let state = self.requests.remove(key as usize);
        let now = self.now;
        let disk = &mut self.disks[state.disk];
        disk.outstanding -= 1;
        if let Some(arrival) = state.arrival {
            disk.record().complete(now, arrival, outcome.is_ok());
        }
        self.answer_requester(state.requester, outcome, out);
        self.disk_quieter(state.disk, out);
    }

    /// A change has ended: changes that waited for it may begin.
    pub(crate) fn unblock(&mut self, disk: u32, out: &mut Vec<Output>) {
        let mut from = 0;
        while let Some(disk_state) = self.disks.get_mut(disk)
            && let Some(change) = disk_state.changes.take_ready(&mut from)
        {
            if crate::mover::is_mover(change.request) {
                self.disks[disk].changes.begin(change);
                self.mover_may_begin(disk, change.request, out);
                continue;
            }
            if self.requests[change.request as usize].is_abandoned {
                self.requests[change.request as usize].error = Some(RequestError::Stopping);
                self.end_request(change.request, out);
                continue;
            }
            if self.owner(disk).is_none() {
                self.return_request(change.request, out);
                continue;
            }
            self.disks[disk].changes.begin(change);
            self.start_change(change.request, change, out);
        }
    }
}

fn outcome_of(state: RequestState) -> Outcome {
    if let Some(error) = state.error {
        return Err(error);
    }
    match (&state.request, state.stage) {
        (Request::Read { offset, len } | Request::View { snapshot: _, offset, len }, _) => {
            let mut all = Pieces::new();
            for answer in state.answers {
                pieces::append(&mut all, answer);
            }
            let head = (offset % BLOCK_SIZE) as u32;
            let is_whole = head == 0 && u64::from(*len).is_multiple_of(BLOCK_SIZE);
            Ok(Reply::Data(if is_whole { all } else { pieces::trim(all, head, *len) }))
        }
        (Request::Status { .. }, Stage::Told(runs)) => Ok(Reply::Status(runs)),
        _ => Ok(Reply::Done),
    }
}
