//! The state machine: inputs in, outputs out.
//!
//! [`Node::request`] takes requests, [`Node::device_done`] completions of device requests. After each batch of them
//! [`Node::advance`] lets the groups seal their batches. Outputs are appended to the vector that the caller passes.

use crate::disks::Disks;
use crate::fabric::Fabric;
use crate::fabric::translate::inspected;
use crate::interface::{DiskKey, FabricOutput, FabricSettings, GroupKey, Output, Token};
use crate::limits;
use crate::request::{RequestState, Requester};
use crate::shares::{Done, Shares};
use base::request::{Request, RequestError};
use base::units::EXTENT_SIZE;
use base::{Allowance, Buffer, DeviceId, Instant, Pool};
use diskgroup::{Completion, ComputeId, Computed, Event, Group, GroupError, Input, Io, IoFailure, Op};
use replication::components::StoreOp;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// Who waits for an operation of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waiter {
    /// A component of this node, on behalf of an owner.
    Store { op: StoreOp, group: GroupKey },
    /// A component of this node, on behalf of an owner that asked for the checksums of products.
    Products { op: StoreOp, group: GroupKey, coefficient: u8 },
    /// An inspection of a component's data.
    Inspection { token: Token },
    /// Nobody: a component was told how it is compressed.
    Compression,
}

/// The state machine.
#[derive(Debug)]
pub struct Node {
    pub(crate) now: Instant,
    pub(crate) pool: Pool,
    /// 1 MiB of zeroes, shared by all requests that write zeroes.
    pub(crate) zeroes: Buffer,
    pub(crate) groups: Vec<Option<Group>>,
    pub(crate) disks: Disks,
    pub(crate) requests: Slab<RequestState>,
    pub(crate) waiters: Slab<Waiter>,
    /// Requests that wait for their time: (time, number in order of arrival, request).
    delayed: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    delayed_count: u64,
    /// Disks whose limits let a request begin, and when.
    paced: BTreeSet<(Instant, u32)>,
    /// Requests that wait for a buffer, in order.
    pub(crate) stalled: VecDeque<u32>,
    /// Memory that guests' reads may hold, and reads that wait for it, in order.
    pub(crate) reads: Allowance,
    pub(crate) reads_waiting: VecDeque<u32>,
    /// Memory that owners here may gather units of rows in.
    pub(crate) gathers: Allowance,
    spare: Vec<Vec<diskgroup::Output>>,
    /// Bytes that inspections of components have read: work in the background, as scrubbing is.
    pub(crate) inspected_bytes: u64,
    /// Shares of destaging, scrubbing and copies.
    pub(crate) shares: Shares,
    /// Links with other nodes, components for owners elsewhere, owners of disks here.
    pub(crate) fabric: Box<Fabric>,
}

impl Node {
    /// A node without groups or disks. `pool` holds the guests' data.
    pub fn new(pool: Pool, now: Instant, settings: FabricSettings) -> Node {
        let zeroes = pool.take_zeroed(EXTENT_SIZE as usize).expect("a fresh pool has a MiB");
        let [reads, gathers] = [limits::READS_SHARE, limits::GATHERS_SHARE]
            .map(|share| Allowance::new(pool.bytes_max() as u64 / share));
        let mut shares = Shares::new(now);
        shares.copy_floor = settings.copy_floor;
        shares.copy_tail_percent = settings.copy_tail_percent;
        Node {
            fabric: Box::new(Fabric::new(settings, now)),
            now,
            pool,
            zeroes,
            groups: Vec::new(),
            disks: Disks::default(),
            requests: Slab::new(),
            waiters: Slab::new(),
            delayed: BinaryHeap::new(),
            delayed_count: 0,
            paced: BTreeSet::new(),
            stalled: VecDeque::new(),
            reads,
            reads_waiting: VecDeque::new(),
            gathers,
            spare: Vec::new(),
            inspected_bytes: 0,
            shares,
        }
    }

    /// Adds a group that is being opened; `outputs` are the first device requests of its opening.
    pub fn add_group(
        &mut self,
        group: Group,
        outputs: Vec<diskgroup::Output>,
        out: &mut Vec<Output>,
    ) -> GroupKey {
        let free = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
        assert!(free < limits::GROUPS_MAX, "a node has a bounded number of groups");
        if free == self.groups.len() {
            self.groups.push(None);
        }
        self.groups[free] = Some(group);
        let key = GroupKey(free as u8);
        self.route(key, outputs, out);
        key
    }

    /// Removes a group that has no components and nothing under way.
    pub fn remove_group(&mut self, key: GroupKey) {
        self.groups[key.0 as usize] = None;
    }

    /// A group.
    pub fn group(&self, key: GroupKey) -> Option<&Group> {
        self.groups.get(key.0 as usize)?.as_ref()
    }

    /// A group, mutable.
    pub fn group_mut(&mut self, key: GroupKey) -> Option<&mut Group> {
        self.groups.get_mut(key.0 as usize)?.as_mut()
    }

    /// Buffers are short: its groups give some back ([`Group::relieve`]). Says whether they kept any.
    pub fn relieve(&mut self) -> bool {
        let kept: Vec<bool> = self.groups.iter_mut().flatten().map(Group::relieve).collect();
        kept.contains(&true)
    }

    /// The groups in the order of their keys.
    pub fn groups(&self) -> impl Iterator<Item = (GroupKey, &Group)> {
        let keyed = |(index, group): (usize, &'_ Option<Group>)| (GroupKey(index as u8), group.is_some());
        let keys: Vec<_> =
            self.groups.iter().enumerate().map(keyed).filter(|(_, is_there)| *is_there).collect();
        keys.into_iter().filter_map(|(key, _)| Some((key, self.group(key)?)))
    }

    /// The group that a device belongs to.
    pub fn group_of(&self, device: DeviceId) -> Option<GroupKey> {
        self.groups().find(|(_, group)| group.member_of(device).is_some()).map(|(key, _)| key)
    }

    /// Takes a guest's request.
    pub fn request(
        &mut self,
        now: Instant,
        token: Token,
        disk: DiskKey,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let refusal = match self.disks.get(disk.0) {
            None => Some(RequestError::Stopping),
            Some(disk) if disk.closing.is_some() => Some(RequestError::Stopping),
            Some(_) => None,
        };
        if let Some(error) = refusal {
            return out.push(Output::Reply { token, outcome: Err(error) });
        }
        let tag = self.next_tag();
        self.begin_request(Requester::Guest(token), tag, disk.0, request, out);
        self.pump(out);
    }

    /// A device request ended.
    pub fn device_done(
        &mut self,
        now: Instant,
        group: GroupKey,
        io: Io,
        result: Result<(), IoFailure>,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        self.tell(group, Input::DeviceDone { io, result }, out);
        self.pump(out);
    }

    /// Work of the processor that a group asked for has ended. The group may be gone by now.
    pub fn computed(
        &mut self,
        now: Instant,
        group: GroupKey,
        id: ComputeId,
        computed: Computed,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        self.tell(group, Input::Computed { id, computed }, out);
        self.pump(out);
    }

    /// A device of a group is unfit: takes it out of service.
    pub fn fail_member(
        &mut self,
        now: Instant,
        group: GroupKey,
        index: u8,
        why: &str,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        self.with_group(group, |group, now, outputs| group.fail_member(now, index, why, outputs), out);
        self.pump(out);
    }

    /// Advances everything that waits for neither a device nor a guest.
    pub fn advance(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.now = now;
        while let Some(&Reverse((at, _, request))) = self.delayed.peek()
            && at <= now
        {
            self.delayed.pop();
            self.start_request(request, out);
        }
        while let Some((_, disk)) = self.paced.first().copied().filter(|(at, _)| *at <= now) {
            self.begin_paced(disk, out);
        }
        for _ in 0..self.stalled.len() {
            let Some(request) = self.stalled.pop_front() else { break };
            self.resume_request(request, out);
        }
        self.begin_waiting_reads(out);
        self.look_at_groups();
        self.advance_fabric(out);
        for index in 0..self.groups.len() {
            let Some(group) = self.groups[index].as_mut() else { continue };
            let mut outputs = self.spare.pop().unwrap_or_default();
            group.shares = self.shares.of_groups;
            group.advance(now, &mut outputs);
            self.route(GroupKey(index as u8), outputs, out);
        }
        self.pump(out);
    }

    fn look_at_groups(&mut self) {
        let groups = self.groups.iter().flatten();
        let before = Done { moved: self.inspected_bytes, ..Done::default() };
        let (congestion, done) = groups.fold((0, before), |(congestion, done), group| {
            let moved = done.moved + group.background_bytes();
            let copied = done.copied + group.copied_bytes();
            (group.congestion().max(congestion), Done { moved, copied })
        });
        self.shares.look(congestion, done);
    }

    /// When [`Node::advance`] has to be called at the latest.
    pub fn wake_at(&self) -> Option<Instant> {
        let delayed = self.delayed.peek().map(|Reverse((at, _, _))| *at);
        let waits = !self.stalled.is_empty() || !self.reads_waiting.is_empty();
        let stalled = waits.then(|| Instant(self.now.0 + 1_000_000));
        let groups = self.groups.iter().flatten().filter_map(Group::wake_at).min();
        let paced = self.paced.first().map(|(at, _)| *at);
        [delayed, paced, stalled, groups, self.fabric_wake_at()].into_iter().flatten().min()
    }

    /// Keeps a request back until its time.
    pub(crate) fn delay(&mut self, request: u32, until: Instant) {
        self.delayed_count += 1;
        self.delayed.push(Reverse((until, self.delayed_count, request)));
    }

    /// Notes when the limits of a disk let its next request begin. One that may begin now does at the next moment.
    pub(crate) fn set_pace_alarm(&mut self, disk: u32) {
        let Some(state) = self.disks.get_mut(disk) else { return };
        let at = state.pace.wake_at().map(|at| at.max(Instant(self.now.0 + 1)));
        if let Some(before) = std::mem::replace(&mut state.pace.alarm, at) {
            self.paced.remove(&(before, disk));
        }
        self.paced.extend(at.map(|at| (at, disk)));
    }

    /// Forgets the limits of a disk that is closed.
    pub(crate) fn clear_pace_alarm(&mut self, disk: u32) {
        let alarm = self.disks.get_mut(disk).and_then(|state| state.pace.alarm.take());
        alarm.and_then(|at| self.paced.take(&(at, disk)));
    }

    /// Gives a group an input that it answers to `waiter`.
    pub(crate) fn ask(
        &mut self,
        group: GroupKey,
        waiter: Waiter,
        input: impl FnOnce(Op) -> Input,
        out: &mut Vec<Output>,
    ) {
        let op = Op(self.waiters.insert(waiter) as u64);
        self.tell(group, input(op), out);
    }

    /// Gives a group an input that it does not answer.
    pub(crate) fn ask_quietly(&mut self, group: GroupKey, input: Input, out: &mut Vec<Output>) {
        self.tell(group, input, out);
    }

    fn tell(&mut self, key: GroupKey, input: Input, out: &mut Vec<Output>) {
        self.with_group(key, |group, now, outputs| group.step(now, input, outputs), out);
    }

    /// Runs a step of a group and routes its outputs. `None` if there is no such group.
    pub(crate) fn with_group<R>(
        &mut self,
        key: GroupKey,
        act: impl FnOnce(&mut Group, Instant, &mut Vec<diskgroup::Output>) -> R,
        out: &mut Vec<Output>,
    ) -> Option<R> {
        let group = self.groups.get_mut(key.0 as usize)?.as_mut()?;
        let mut outputs = self.spare.pop().unwrap_or_default();
        let result = act(group, self.now, &mut outputs);
        self.route(key, outputs, out);
        Some(result)
    }

    /// Routes a group's outputs: answers to their waiters, the rest to the caller.
    fn route(&mut self, key: GroupKey, mut outputs: Vec<diskgroup::Output>, out: &mut Vec<Output>) {
        for output in outputs.drain(..) {
            match output {
                diskgroup::Output::Done { op, result } => self.answered(op, result, out),
                diskgroup::Output::Event(event) => {
                    if matches!(event, Event::BlockDamaged { .. } | Event::ScrubRound { .. }) {
                        self.have_damage_mended(key);
                    }
                    out.push(Output::Event { group: key, event });
                }
                diskgroup::Output::Compute { id, task } => out.push(Output::Compute { group: key, id, task }),
                device @ (diskgroup::Output::Read { .. }
                | diskgroup::Output::Write { .. }
                | diskgroup::Output::Flush { .. }
                | diskgroup::Output::Discard { .. }) => {
                    out.push(Output::Device { group: key, output: device })
                }
            }
        }
        self.spare.push(outputs);
    }

    /// Damage was found. An owner asks for it now and then; a disk that has none gets one.
    fn have_damage_mended(&mut self, group: GroupKey) {
        let disks = self.group(group).map_or_else(Vec::new, Group::damaged_disks);
        for disk in disks {
            if let Some(key) = self.disk(disk) {
                self.disks[key.0].ownership.has_damage = true;
                self.look_soon(key.0);
            }
        }
    }

    fn answered(&mut self, op: Op, result: Result<Completion, GroupError>, out: &mut Vec<Output>) {
        match self.waiters.remove(op.0 as usize) {
            Waiter::Store { op, group } => {
                let changed = match result {
                    Ok(Completion::Component(component)) => Some(component),
                    _ => None,
                };
                self.group_stored(op, group, result);
                if let Some(component) = changed {
                    self.follow_policy(group, component, out);
                }
            }
            // Where it could not be told, it is told again.
            Waiter::Compression => {}
            Waiter::Products { op, group, coefficient } => {
                self.products_stored(op, group, coefficient, result);
            }
            Waiter::Inspection { token } => {
                let answer = Some(inspected(result));
                out.push(Output::Fabric(FabricOutput::Component { token, answer }));
            }
        }
    }
}
