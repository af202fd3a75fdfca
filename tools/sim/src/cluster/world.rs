//! One run of several hosts: events in the order of time, faults, and what must hold at the end.

use super::directory::Directory;
use super::features::{Features, Streams};
use super::guest::Guest;
use super::host::{Host, SMALL_COPY_BLOCKS_MAX, disk_spec, first_roster};
use super::members::{MemberEvent, Members};
use super::network::Network;
use super::plan::{MS, Plan};
use super::rebuilding::{RebuildEvent, Rebuilding};
use super::rollback::{Rollback, RollbackEvent};
use super::rotting;
use super::row_checks::{ROWS, SpoiledRow};
use super::scenes::SceneEvent;
use super::stand_ins::{StandInEvent, StandIns};
use super::summary::Summary;
use super::survivors::Step;
use super::together::Moments;
use super::watchers::{LastWord, Watchers};
use crate::device::joined;
use base::checksum::crc32c;
use base::request::Outcome;
use base::{DiskId, NodeId, Pool, Random};
use diskgroup::{Io, IoFailure};
use node::{DiskSpec, FabricOutput, GroupKey, Node, Output, Token};
use replication::limits::{COPY_BLOCKS_MAX, START_PATIENCE};
use replication::owner::Committed;
use replication::{Roster, Rule};
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use wire::{Answer, Message, Request};

/// Far more events than any run needs: beyond, something goes round in circles.
const EVENTS_MAX: u64 = 3_000_000;

/// When every node has noticed that a host is silent: after `SILENCE`, and the heartbeats before and after it.
pub(crate) const NOTICED_AFTER: u64 = 1600 * MS;

/// Something that happens.
#[derive(Debug)]
pub(crate) enum Event {
    Device {
        host: usize,
        incarnation: u64,
        group: GroupKey,
        io: Io,
        member: u8,
        ticket: u64,
        kind: Kind,
    },
    Computed(Box<super::computing::Late>),
    Wake {
        host: usize,
    },
    Connect {
        from: NodeId,
        to: NodeId,
        session: u64,
    },
    Connected {
        from: NodeId,
        to: NodeId,
        session: u64,
        is_there: bool,
    },
    Request {
        from: NodeId,
        to: NodeId,
        message: Message<Request>,
    },
    Answer {
        from: NodeId,
        to: NodeId,
        message: Message<Answer>,
    },
    /// The connection that `from` began with `to` is over, for `from` or for `to`.
    Closed {
        from: NodeId,
        to: NodeId,
        session: u64,
        at_acceptor: bool,
    },
    Commit {
        host: usize,
        incarnation: u64,
        disk: DiskId,
        number: u64,
        expected: u64,
        roster: Roster,
    },
    Committed {
        host: usize,
        incarnation: u64,
        disk: DiskId,
        number: u64,
        committed: Committed,
    },
    Fetch {
        host: usize,
        incarnation: u64,
        disk: DiskId,
    },
    Recorded {
        host: usize,
        incarnation: u64,
        disk: DiskId,
        record: Option<(u64, Roster)>,
    },
    Guest {
        guest: usize,
    },
    Member(MemberEvent),
    Scene(SceneEvent),
    StandIn(StandInEvent),
    Rebuild(RebuildEvent),
    Rollback(RollbackEvent),
    Survivor(Step),
    Word(LastWord),
    Together,
    Fault,
    Rules {
        host: usize,
        disk: usize,
    },
    Restart {
        host: usize,
    },
    Start {
        host: usize,
    },
}

#[derive(Debug)]
pub(crate) enum Kind {
    Read { offset: u64, buffer: base::Buffer },
    Write,
    Flush,
    Discard,
}

pub(crate) struct Pending {
    at: u64,
    ticket: u64,
    event: Event,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        (self.at, self.ticket) == (other.at, other.ticket)
    }
}
impl Eq for Pending {}
impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (other.at, other.ticket).cmp(&(self.at, self.ticket))
    }
}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One run.
pub struct World {
    pub(crate) random: Random,
    /// For devices that hang.
    pub(crate) hangs: Random,
    /// Where bad sectors come from.
    pub(crate) spoils: Random,
    /// For hosts that hear nothing.
    pub(crate) deafness: Random,
    /// For rules of disks that change.
    pub(crate) limits: Random,
    /// Where moves between two layouts take their turns from.
    pub(crate) moving: Random,
    /// Where snapshots come from, and who reads them.
    pub(crate) snapshots: Random,
    /// Snapshots of all disks at one moment.
    pub(crate) moments: Moments,
    pub(crate) plan: Plan,
    pub(crate) removed: Option<Rule>,
    pub(crate) prefers_local: bool,
    /// Most blocks of one copy of a resync.
    pub(crate) copy_blocks_max: u16,
    pub(crate) hosts: Vec<Host>,
    pub(crate) network: Network,
    pub(crate) directory: Directory,
    pub(crate) guests: Vec<Guest>,
    pub(crate) disks: Vec<DiskSpec>,
    pub(crate) pool: Pool,
    pub(crate) now: u64,
    pub(crate) tickets: u64,
    pub(crate) queue: BinaryHeap<Pending>,
    /// Whether faults still come.
    pub(crate) is_faulty: bool,
    /// Whether guests still ask for something new.
    pub(crate) has_load: bool,
    /// Until when guests ask as fast as they can.
    pub(crate) rush_until: u64,
    /// What inspections of the end found, by their token.
    pub(crate) inspected: BTreeMap<u64, Answer>,
    /// Members that come and go.
    pub(crate) members: Members,
    /// Components that stand in for others.
    pub(crate) stand_ins: StandIns,
    /// Who says that a process has ended.
    pub(crate) watchers: Watchers,
    /// What a directory that is lost is rebuilt from.
    pub(crate) rebuilding: Rebuilding,
    /// A directory that is set back.
    pub(crate) rollback: Rollback,
    /// Rows that were made to disagree and were not found yet.
    pub(crate) spoiled_rows: Vec<(u64, SpoiledRow)>,
    pub(crate) row_draws: Random,
    /// How disks are compressed, by the texts of their policies, and where changes come from.
    pub(crate) policies: BTreeMap<DiskId, &'static str>,
    pub(crate) compressing: Random,
    /// Which blocks rot once all is quiet.
    pub(crate) rotting: Random,
    pub(crate) summary: Summary,
    pub(crate) verbose: bool,
    pub(crate) failure: Option<String>,
}

impl World {
    /// The world of `seed` with these features.
    pub fn new(seed: u64, features: Features, removed: Option<Rule>) -> World {
        World::with_streams(seed, features, Features::draw(seed).1, removed)
    }

    /// The same with streams of their own for the features.
    pub(crate) fn with_streams(
        seed: u64,
        features: Features,
        mut streams: Streams,
        removed: Option<Rule>,
    ) -> World {
        let mut random = Random::new(seed ^ 0x5eed_c105_7e12_0000);
        let mut plan = Plan::draw(&mut random);
        plan.bring(&features, &mut streams);
        let mut world = World::with_plan(plan, random, removed);
        (world.hangs, world.deafness, world.spoils) = (streams.hangs, streams.deafness, streams.spoils);
        (world.limits, world.moving) = (streams.limits, streams.moving);
        world.compressing = streams.compressing;
        if world.plan.compressed > 0 {
            world.hosts.iter_mut().for_each(super::host::Host::convert);
            world.guests.iter_mut().for_each(|guest| guest.is_compressed = true);
        }
        (world.snapshots, world.moments.random) = (streams.snapshots, streams.together);
        world.row_draws = Random::new(seed ^ ROWS);
        world.rotting = rotting::draws(seed);
        world.watchers = Watchers::new(features.watchers.then_some(streams.watchers));
        if world.plan.snapshots > 0 {
            world.guests.iter_mut().for_each(|guest| guest.registers.remember());
        }
        if features.large_copies {
            world.copy_blocks_max = COPY_BLOCKS_MAX;
        }
        world
    }

    /// The world of a plan; what it leaves open is drawn.
    pub fn with_plan(plan: Plan, mut random: Random, removed: Option<Rule>) -> World {
        let mut hosts: Vec<Host> =
            (0..plan.hosts).map(|number| Host::new(number, &plan, &mut random)).collect();
        let mut directory = Directory::default();
        let mut disks = Vec::new();
        let mut guests = Vec::new();
        for number in 0..plan.disks {
            let other = plan.other.map_or(Vec::new(), |(other, _)| vec![other.copies; other.places as usize]);
            let placed: Vec<Vec<usize>> = std::iter::repeat_n(plan.copies, plan.places as usize)
                .chain(other)
                .map(|copies| {
                    let mut order: Vec<usize> = (0..hosts.len()).collect();
                    for index in 0..order.len() {
                        let other = index + random.below((plan.hosts as usize - index) as u64) as usize;
                        order.swap(index, other);
                    }
                    order.truncate(copies as usize);
                    order
                })
                .collect();
            let on: Vec<Vec<&Host>> =
                placed.iter().map(|place| place.iter().map(|&host| &hosts[host]).collect()).collect();
            let spec = disk_spec(number, &plan, &on);
            directory.preset(spec.id, first_roster(&spec, &placed, &hosts, plan.snapshots > 0));
            guests.push(Guest::new(spec.id, spec.size, random.below(plan.hosts) as usize, plan.has_rows()));
            disks.push(spec);
        }
        let prefers_local = random.chance(1, 2);
        hosts.iter_mut().for_each(|host| host.paused_until = 0);
        World {
            random,
            hangs: Random::new(0),
            spoils: Random::new(0),
            deafness: Random::new(0),
            limits: Random::new(0),
            moving: Random::new(0),
            snapshots: Random::new(0),
            moments: Moments::default(),
            plan,
            removed,
            prefers_local,
            copy_blocks_max: SMALL_COPY_BLOCKS_MAX,
            hosts,
            network: Network::default(),
            directory,
            guests,
            disks,
            pool: Pool::new(64 << 20),
            now: 1,
            tickets: 0,
            queue: BinaryHeap::new(),
            is_faulty: true,
            has_load: false,
            rush_until: 0,
            inspected: BTreeMap::new(),
            members: Members::default(),
            stand_ins: StandIns::default(),
            watchers: Watchers::default(),
            rebuilding: Rebuilding::default(),
            rollback: Rollback::default(),
            spoiled_rows: Vec::new(),
            row_draws: Random::new(0),
            policies: BTreeMap::new(),
            compressing: Random::new(0),
            rotting: Random::new(0),
            summary: Summary::default(),
            verbose: false,
            failure: None,
        }
    }

    /// Prints what happens.
    pub fn verbose(mut self) -> World {
        self.verbose = true;
        println!("{:?}", self.plan);
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// What the oracle found.
    pub fn run(mut self) -> Result<Summary, String> {
        if self.rollback.leaves_behind {
            return self.play_left_behind();
        }
        self.begin_load()?;
        self.later(50 * MS, Event::Fault);
        self.begin_stand_ins();
        self.begin_survivors();
        self.begin_rollback();
        self.begin_rebuilding();
        let until = self.now + self.plan.faulty_ns;
        self.run_until(until)?;
        // Until the directory that was set back is made anew.
        while self.rollback.is_old {
            self.run_until(self.now + 100 * MS)?;
        }
        self.summary.longest_ns = self.guests.iter().map(|guest| guest.longest_ns).max().unwrap_or(0);
        self.heal();
        self.settle()?;
        self.read_everything()?;
        self.compare_copies()?;
        self.compare_views()?;
        self.make_rows_disagree()?;
        self.have_blocks_rot()?;
        self.count_compressed();
        self.summary.answered = self.guests.iter().map(|guest| guest.answered).sum();
        self.summary.repeated = self.guests.iter().map(Guest::repeated).sum();
        Ok(self.summary)
    }

    /// Makes the components, and lets the guests begin.
    pub(crate) fn begin_load(&mut self) -> Result<(), String> {
        self.make_components()?;
        self.has_load = true;
        for guest in 0..self.guests.len() {
            self.use_disk(guest, true);
            self.later(MS, Event::Guest { guest });
        }
        Ok(())
    }

    pub(crate) fn run_until(&mut self, until: u64) -> Result<(), String> {
        while self.queue.peek().is_some_and(|next| next.at <= until) {
            self.next_event()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    pub(crate) fn later(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub(crate) fn at(&mut self, at: u64, event: Event) {
        self.tickets += 1;
        self.queue.push(Pending { at, ticket: self.tickets, event });
    }

    fn note(&mut self, what: &str, value: u64) {
        let mut bytes = Vec::from(what.as_bytes());
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.extend_from_slice(&self.summary.trace.to_le_bytes());
        bytes.extend_from_slice(&self.now.to_le_bytes());
        self.summary.trace =
            u64::from(crc32c(&bytes)) << 32 | u64::from(crc32c(&[&bytes[..], b"x"].concat()));
    }

    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:>10.3} ms  {}", self.now as f64 / MS as f64, text());
        }
    }

    fn next_event(&mut self) -> Result<(), String> {
        let Pending { at, ticket, event } = self.queue.pop().expect("just seen");
        self.now = self.now.max(at);
        if self.plan.together > 0 {
            self.guests.iter_mut().for_each(|guest| guest.registers.set_moment(self.now));
        }
        self.summary.events += 1;
        self.note("event", ticket);
        if self.summary.events > EVENTS_MAX {
            let node = self.host_of(&event).and_then(|host| self.hosts[host].node.as_ref());
            let wakes = node.map(Node::wakes);
            return Err(format!("{EVENTS_MAX} events and no end: {event:?}; {wakes:?}"));
        }
        self.happen(event);
        self.note_snapshots()?;
        match self.failure.take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    pub(crate) fn index_of(&self, node: NodeId) -> usize {
        (node.host.0 - 1) as usize
    }

    pub(crate) fn latency(&mut self) -> u64 {
        5_000 + self.random.below(self.plan.network_ns)
    }

    /// Events for a host that stands still wait until it goes on.
    fn host_of(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Device { host, .. } | Event::Wake { host } | Event::Rules { host, .. } => Some(*host),
            Event::Committed { host, .. } | Event::Recorded { host, .. } => Some(*host),
            Event::Connect { to, .. } | Event::Request { to, .. } => Some(self.index_of(*to)),
            Event::Answer { to, .. } => Some(self.index_of(*to)),
            Event::Connected { from, .. } => Some(self.index_of(*from)),
            Event::Closed { from, to, at_acceptor, .. } => {
                Some(self.index_of(if *at_acceptor { *to } else { *from }))
            }
            Event::Computed(late) => Some(late.host),
            Event::Guest { guest } => self.guests.get(*guest).map(|guest| guest.host),
            Event::Word(word) => Some(self.index_of(word.to)),
            Event::Member(event) => event.host(),
            Event::Commit { .. }
            | Event::Fetch { .. }
            | Event::Scene(_)
            | Event::StandIn(_)
            | Event::Rebuild(_)
            | Event::Rollback(_)
            | Event::Survivor(_)
            | Event::Together
            | Event::Fault
            | Event::Start { .. }
            | Event::Restart { .. } => None,
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(host) = self.host_of(&event)
            && self.hosts[host].paused_until > self.now
        {
            let until = self.hosts[host].paused_until;
            return self.at(until, event);
        }
        match event {
            Event::Device { host, incarnation, group, io, member, ticket, kind } => {
                self.device_done(host, incarnation, group, io, member, ticket, kind);
            }
            Event::Computed(late) => self.computed(&late),
            Event::Wake { host } => self.wake(host),
            Event::Connect { from, to, session } => self.connect_arrives(from, to, session),
            Event::Connected { from, to, session, is_there } => {
                self.with_node(self.index_of(from), |node, now, out| match is_there {
                    true => node.connected(now, to, (session, wire::Version::LATEST), out),
                    false => node.disconnected(now, to, session, out),
                });
            }
            Event::Request { from, to, message } => {
                let host = self.index_of(to);
                self.with_node(host, |node, now, out| node.request_received(now, from, message, out));
            }
            Event::Answer { from, to, message } => {
                let host = self.index_of(to);
                self.with_node(host, |node, now, out| node.answer_received(now, from, message, out));
            }
            Event::Closed { from, to, session, at_acceptor } => {
                let host = self.index_of(if at_acceptor { to } else { from });
                self.with_node(host, |node, now, out| match at_acceptor {
                    true => node.accepted_ended(now, from, session, out),
                    false => node.disconnected(now, to, session, out),
                });
            }
            Event::Commit { host, incarnation, disk, number, expected, roster } => {
                self.commit_arrives((host, incarnation, number), disk, expected, roster);
            }
            Event::Committed { host, incarnation, disk, number, committed } => {
                if self.hosts[host].incarnation == incarnation {
                    let committed = self.copy_takes_outcome(host, disk, committed);
                    self.with_node(host, |node, now, out| node.committed(now, disk, number, committed, out));
                }
            }
            Event::Fetch { host, incarnation, disk } => self.fetch_arrives(host, incarnation, disk),
            Event::Recorded { host, incarnation, disk, record, .. } => {
                let is_current = self.hosts[host].incarnation == incarnation;
                if is_current && self.copy_takes_record(host, disk, record.as_ref()) {
                    self.with_node(host, |node, now, out| node.recorded(now, disk, record, out));
                }
            }
            Event::Guest { guest } => self.guest_turn(guest),
            Event::Member(event) => self.member_event(event),
            Event::Scene(event) => self.scene_event(event),
            Event::StandIn(event) => self.stand_in_event(event),
            Event::Rebuild(event) => self.rebuild_event(event),
            Event::Rollback(event) => self.rollback_event(event),
            Event::Survivor(step) => self.survivor_event(step),
            Event::Together => self.together_event(),
            Event::Fault => self.fault_turn(),
            Event::Rules { host, disk } => self.learn_rules(host, disk),
            Event::Word(word) => self.word_arrives(word),
            Event::Restart { host } => self.restart_guests(host),
            Event::Start { host } => self.start(host),
        }
    }

    fn wake(&mut self, host: usize) {
        if self.hosts[host].alarm <= self.now {
            self.hosts[host].alarm = u64::MAX; // If it is later, an earlier one came in its place.
            self.with_node(host, |_, _, _| {});
        }
    }

    /// Lets a node do something, then everything that follows from it at once.
    pub(crate) fn with_node(
        &mut self,
        host: usize,
        act: impl FnOnce(&mut Node, base::Instant, &mut Vec<Output>),
    ) {
        let now = self.hosts[host].clock(self.now);
        let Some(mut node) = self.hosts[host].node.take() else { return };
        let mut out = Vec::new();
        act(&mut node, now, &mut out);
        node.advance(now, &mut out);
        let wake_at = node.wake_at();
        self.hosts[host].node = Some(node);
        if let Some(at) = wake_at {
            let at = self.hosts[host].time_of(at).max(self.now + 1);
            if at < self.hosts[host].alarm {
                self.hosts[host].alarm = at;
                self.at(at, Event::Wake { host });
            }
        }
        for output in out {
            self.perform(host, output);
        }
    }

    fn perform(&mut self, host: usize, output: Output) {
        match output {
            Output::Device { group, output } => self.ask_device(host, group, output),
            Output::Compute { group, id, task } => self.compute(host, group, id, task),
            Output::Reply { token, outcome } => self.reply(token, outcome),
            Output::Event { event, .. } => {
                self.say(|| format!("host {host}: {event:?}"));
                let is_spoilt = (self.plan.spoils > 0 || self.summary.rotted > 0)
                    && matches!(
                        event,
                        diskgroup::Event::BlockDamaged { .. } | diskgroup::Event::ScrubRound { .. }
                    );
                let is_expected =
                    matches!(event, diskgroup::Event::Ready) || self.hosts[host].is_damaged || is_spoilt;
                if !is_expected {
                    self.fail(format!("host {host}: unexpected event {event:?}"));
                }
            }
            Output::Closed { .. } => unreachable!("nobody closes a disk"),
            Output::Fabric(output) => self.perform_fabric(host, output),
        }
    }

    fn perform_fabric(&mut self, host: usize, output: FabricOutput) {
        let (from, incarnation) = (self.hosts[host].id, self.hosts[host].incarnation);
        match output {
            FabricOutput::Connect { peer: to, session } => {
                let reaches =
                    self.network.reaches(from, to, self.now) && self.network.reaches(to, from, self.now);
                let latency = self.latency();
                match reaches {
                    true => self.later(latency, Event::Connect { from, to, session }),
                    false => {
                        self.later(1000 * MS, Event::Connected { from, to, session, is_there: false });
                    }
                }
            }
            FabricOutput::Disconnect { peer: to, session } => self.close(from, to, session, true),
            FabricOutput::EndAccepted { peer, session } => self.close(peer, from, session, false),
            FabricOutput::Request { peer: to, message } => self.send_request(from, to, message),
            FabricOutput::Answer { peer: to, message } => self.send_answer(from, to, message),
            FabricOutput::Commit { disk, number, expected, roster } => {
                let delay = 1 + self.random.below(self.plan.directory_ns);
                self.later(delay, Event::Commit { host, incarnation, disk, number, expected, roster });
            }
            FabricOutput::Fetch { disk } => {
                let delay = 1 + self.random.below(self.plan.directory_ns);
                self.later(delay, Event::Fetch { host, incarnation, disk });
            }
            FabricOutput::Component { token, answer } => {
                self.component_answered(token.0, answer);
            }
            FabricOutput::Owner { disk, event } => self.owner_event(host, disk, event),
        }
    }

    fn ask_device(&mut self, host: usize, group: GroupKey, output: diskgroup::Output) {
        let ticket = self.tickets;
        let slow = if self.hosts[host].slow_until > self.now { 60 } else { 1 };
        let mut delay = (10_000 + self.random.below(self.plan.device_ns)) * slow;
        let incarnation = self.hosts[host].incarnation;
        let (io, member, kind) = match output {
            diskgroup::Output::Read { io, member, offset, buffer, .. } => {
                (io, member, Kind::Read { offset, buffer })
            }
            diskgroup::Output::Write { io, member, offset, buffers, stable, .. } => {
                let bytes: Vec<u8> = joined(&buffers);
                self.hosts[host].devices[member as usize].begin_write(ticket, offset, bytes, stable);
                (io, member, Kind::Write)
            }
            diskgroup::Output::Flush { io, member } => {
                self.hosts[host].devices[member as usize].begin_flush(ticket);
                (io, member, Kind::Flush)
            }
            diskgroup::Output::Discard { io, member, .. } => (io, member, Kind::Discard),
            other => unreachable!("not for a device: {other:?}"),
        };
        let (hung, until) = self.hosts[host].hung;
        if hung == member {
            delay += until.saturating_sub(self.now);
        }
        self.later(delay, Event::Device { host, incarnation, group, io, member, ticket, kind });
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn device_done(
        &mut self,
        host: usize,
        incarnation: u64,
        group: GroupKey,
        io: Io,
        member: u8,
        ticket: u64,
        kind: Kind,
    ) {
        if self.hosts[host].incarnation != incarnation || self.hosts[host].node.is_none() {
            return;
        }
        let device = &mut self.hosts[host].devices[member as usize];
        let mut result = Ok(());
        match kind {
            Kind::Read { offset, buffer } if device.is_unreadable(offset, buffer.len()) => {
                result = Err(IoFailure::Unreadable("input/output error".to_owned()));
            }
            Kind::Read { offset, buffer } => buffer.fill_from(0, &device.read(offset, buffer.len())),
            Kind::Write => device.end_write(ticket),
            Kind::Flush => device.end_flush(ticket),
            Kind::Discard => {}
        }
        if device.is_dead {
            result = Err(IoFailure::Device("the device is dead".to_owned()));
        }
        self.with_node(host, |node, now, out| node.device_done(now, group, io, result, out));
    }

    fn reply(&mut self, token: Token, outcome: Outcome) {
        let (guest, number) = ((token.0 >> 40) as usize, token.0 & ((1 << 40) - 1));
        let may_damage = self.may_damage();
        let now = self.now;
        self.note("reply", token.0 << 1 | u64::from(outcome.is_ok()));
        if let Err(why) = self.guests[guest].answered(now, number, outcome, may_damage) {
            self.fail(why);
        }
        self.check_missing_views(guest);
    }

    pub(crate) fn may_damage(&self) -> bool {
        self.hosts.iter().any(|host| host.is_damaged)
    }

    /// Starts a host's process.
    pub(crate) fn start(&mut self, host: usize) {
        if self.hosts[host].node.is_some() {
            return;
        }
        if self.hosts[host].down_until > self.now {
            return self.at(self.hosts[host].down_until, Event::Start { host });
        }
        self.say(|| format!("host {host} starts"));
        let peers: Vec<NodeId> = self.hosts.iter().map(|host| host.id).collect();
        let disks = self.records_for_start(host);
        // Hosts start far more often here than anywhere: where no directory is old, waiting would hide what else may go wrong.
        let patience = if self.rollback.is_drawn() { START_PATIENCE } else { Duration::ZERO };
        let (now, removed) = (self.now, self.removed);
        let granule = self.plan.other.map_or(base::units::EXTENT_SIZE, |(_, granule)| granule);
        let rows = (self.plan.fold_after, self.plan.row_check_pace);
        let local = (self.prefers_local, self.copy_blocks_max, granule, patience, rows.0, rows.1);
        let out = self.hosts[host].start(now, &peers, &disks, removed, local);
        out.into_iter().for_each(|output| self.perform(host, output));
        self.tend_later(host);
        self.isolate_after_word(host);
        for guest in 0..self.guests.len() {
            if self.guests[guest].host == host && self.has_load {
                self.use_disk(guest, true);
            }
        }
        self.with_node(host, |_, _, _| {});
    }

    /// The records that a host finds when it starts: those of the directory, or of its copy where they are lost.
    fn records_for_start(&mut self, host: usize) -> Vec<(DiskSpec, (u64, Roster))> {
        let ids = self.disks.iter().map(|spec| spec.id);
        if !self.directory.is_lost && !self.has_seen_more(host) {
            let record = |id| (id, self.directory.get(id).expect("every disk has a record"));
            let records: Vec<_> = ids.map(record).collect();
            self.hosts[host].copy.restart(self.directory.generation, &records);
        }
        let (copy, directory) = (&self.hosts[host].copy, &self.directory);
        let has_none = directory.is_lost || self.has_seen_more(host);
        let record = |id| if has_none { copy.get(id) } else { directory.get(id) };
        let record = |spec: &DiskSpec| (spec.clone(), record(spec.id).expect("every disk has a record"));
        self.disks.iter().map(record).collect()
    }

    /// The process of a host ends, as by `kill -9`, or with the power.
    pub(crate) fn kill(&mut self, host: usize, with_power: bool) {
        if self.hosts[host].node.take().is_none() {
            return;
        }
        if !with_power {
            self.watcher_sees_end(host);
        }
        self.say(|| format!("host {host} {}", if with_power { "loses power" } else { "is killed" }));
        let id = self.hosts[host].id;
        self.hosts[host].alarm = u64::MAX;
        self.hosts[host].incarnation += 1; // What is under way is for nobody.
        self.hosts[host].paused_until = 0;
        let now = self.now;
        self.hosts[host].copy.crash(now);
        let mut random = self.random.fork();
        self.hosts[host].devices.iter_mut().for_each(|device| device.crash(&mut random));
        for (from, session) in self.network.of(id) {
            let to = self.network.connections[&(from, session)].to;
            if with_power {
                self.network.connections.remove(&(from, session));
            } else {
                self.close(from, to, session, from == id);
            }
        }
        // Connections that break tell at once, silence later, and so does a cut: what was sent comes once that is over.
        let is_silent = with_power || !self.hosts.iter().all(|to| self.network.reaches(id, to.id, self.now));
        let known_at = self.now + if is_silent { NOTICED_AFTER } else { MS + 2 * self.plan.network_ns };
        for guest in 0..self.guests.len() {
            self.guests[guest].lose_observers(host, known_at);
            if self.guests[guest].host == host {
                self.guests[guest].lose_host(host, known_at);
            }
        }
        let delay = MS + self.random.below(4000 * MS);
        self.later(delay, Event::Start { host });
    }

    fn fault_turn(&mut self) {
        if self.is_faulty {
            self.fault();
            self.later(25 * MS, Event::Fault);
        }
    }
}
