//! The virtual time of a large cluster: hosts that decide every second and soon after a record changed, and carry out what is
//! theirs, one compare-and-set after the other.
//!
//! The loop of a host is that of `edge/control/src/cluster/keeper.rs`: beat, take over what is new, decide, carry out, pause.

use super::creation::{Creation, Loads, load, with_loads};
use super::directory::{Directory, News};
use super::keeper::Keeper;
use super::measured::{Ledger, Lost, Report, Span};
use super::{Options, owners};
use crate::memory;
use base::{DiskId, HostId, NodeId, Random};
use cluster::{Action, DiskRecord, Liveness, Step};
use replication::{Roster, Standing};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant as WallClock;

/// Nanoseconds of a millisecond.
pub(super) const MS: u64 = 1_000_000;
/// How often a host beats, and decides at least.
const BEAT_NS: u64 = 1000 * MS;
/// Pause between two looks when records change all the time, as in the server.
const KEEP_PAUSE_NS: u64 = 200 * MS;
/// How often a host that waits for a change is looked after.
const LOOK_NS: u64 = 50 * MS;
/// How long a host may be silent before its links are given up.
const SILENCE_NS: u64 = replication::limits::SILENCE.as_nanos() as u64;
/// How often the clock of the directory is written on.
const CLOCK_NS: u64 = 10_000 * MS;
/// How long nothing happens at the end.
const AFTER_NS: u64 = 10_000 * MS;
/// The way of a request to the directory, or of its answer, at least and at most.
const WAY_NS: std::ops::Range<u64> = MS..4 * MS;

/// A host.
pub(super) struct Host {
    pub id: HostId,
    pub node: NodeId,
    pub incarnation: u64,
    pub is_up: bool,
    pub keeper: Keeper,
    /// Changes of the directory that it knows.
    followed: usize,
    /// How late it hears of one.
    lag_ns: u64,
    beat_ns: Option<u64>,
    kept_ns: u64,
    to_do: VecDeque<Action>,
}

/// Who asks for a change of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A host, to carry a decision out.
    Keeper,
    /// A host, to own the disk.
    Claim,
    /// The disk's owner.
    Owner,
}

/// A compare-and-set.
pub(super) struct Commit {
    pub host: usize,
    pub expected: u64,
    pub record: DiskRecord,
    pub by: By,
}

/// What happens at a moment.
pub(super) enum Event {
    /// A host looks whether it is to decide again.
    Look { host: usize },
    /// A host carries out the next of what it decided.
    Act { host: usize },
    /// A change reaches the directory.
    Commit(Box<Commit>),
    /// Its answer reaches who asked.
    Answer { host: usize, disk: DiskId, by: By, record: Option<Arc<DiskRecord>> },
    /// The owner of a disk looks at its record.
    Owner { disk: DiskId },
    /// A component has been filled.
    Filled { filling: owners::Filling },
    /// A host tells of its devices.
    Devices { host: usize },
    /// The clock of the directory is written on.
    Clock,
    /// The links to the lost host are given up.
    Silent { host: HostId },
}

/// The cluster.
pub(super) struct World {
    pub options: Options,
    pub now: u64,
    pub random: Random,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub directory: Directory,
    pub hosts: Vec<Host>,
    pub owners: owners::Owners,
    /// Hosts that nobody reaches any more.
    pub silent: BTreeSet<HostId>,
    loads: Loads,
    ledger: Ledger,
    span: Span,
    report: Report,
}

impl World {
    /// A cluster with all its disks, each opened by its first owner.
    ///
    /// # Errors
    /// When the policy is none, or the disks do not fit.
    pub fn new(options: Options) -> Result<World, String> {
        let (mut random, mut directory) = (Random::new(options.seed), Directory::default());
        (options.progress)(&format!("{} hosts make {} disks", options.hosts, options.disks));
        let mut creation = Creation::new(&options, &mut directory, &mut random)?;
        creation.make_all()?;
        let made = creation.directory.traffic;
        creation.open_all();
        let (loads, place, place_full) = (creation.loads, creation.place, creation.place_full);
        let components = directory.disks().values().map(|disk| disk.roster.members.len()).sum();
        let report = Report {
            hosts: options.hosts,
            disks: options.disks,
            components,
            delay_ns: options.settings.delay.as_nanos() as u64,
            fill_ns: options.fill.as_nanos() as u64,
            creation: made,
            opening: directory.traffic.since(&made),
            place,
            place_full,
            ..Report::default()
        };
        directory.forget_news();
        let mut world = World {
            options,
            now: 0,
            random,
            queue: BTreeMap::new(),
            sequence: 0,
            directory,
            hosts: Vec::new(),
            owners: owners::Owners::default(),
            silent: BTreeSet::new(),
            loads,
            ledger: Ledger::default(),
            span: Span::default(),
            report,
        };
        world.start_hosts();
        Ok(world)
    }

    fn start_hosts(&mut self) {
        let records: Vec<_> = self.directory.hosts().values().cloned().collect();
        let all: Vec<News> = (records.iter().cloned().map(News::Host))
            .chain(self.directory.disks().values().cloned().map(News::Disk))
            .collect();
        for (index, record) in records.iter().enumerate() {
            let mut keeper = Keeper::new(record.id, self.options.settings);
            all.iter().for_each(|news| keeper.take(news));
            self.hosts.push(Host {
                id: record.id,
                node: record.nodes[0].id,
                incarnation: record.nodes[0].incarnation,
                is_up: true,
                keeper,
                followed: 0,
                lag_ns: self.random.range(MS..10 * MS),
                beat_ns: None,
                kept_ns: 0,
                to_do: VecDeque::new(),
            });
            let (first, devices) = (self.random.below(BEAT_NS), self.random.below(BEAT_NS));
            self.at(first, Event::Look { host: index });
            self.at(devices, Event::Devices { host: index });
        }
        self.at(0, Event::Clock);
    }

    /// Lives until the lost host's components are replaced, or patience ends, and a while longer.
    pub fn run(mut self) -> Report {
        // The first round of heartbeats is no idle one.
        self.run_until(2 * BEAT_NS, |_| false);
        self.begin_span();
        (self.options.progress)("nothing happens for a while");
        let end = self.now + self.options.idle.as_nanos() as u64;
        self.run_until(end, |_| false);
        self.report.idle = self.end_span();
        self.report.memory = self.memory();
        self.lose_host();
        (self.options.progress)(&self.ledger.progress(self.now));
        self.begin_span();
        let before = self.directory.traffic;
        let due = self.now + self.report.delay_ns;
        self.run_until(due, |_| false);
        let before_delay = self.directory.traffic.since(&before);
        let end = due + self.options.patience.as_nanos() as u64;
        // All hosts know of the loss for long now, and repairs are under way.
        self.run_until(due + 30 * BEAT_NS, |world| world.ledger.is_done());
        self.report.memory_repairing = self.memory();
        self.run_until(end, |world| world.ledger.is_done());
        let span = self.end_span();
        // Until every host has heard of the last change, and told of it.
        self.run_until(self.now + 3 * BEAT_NS, |_| false);
        let before = self.directory.traffic;
        self.run_until(self.now + AFTER_NS, |_| false);
        let after = self.directory.traffic.since(&before);
        let mut report = std::mem::take(&mut self.report);
        report.failure = super::Failure { span, before_delay, after, ..self.ledger.failure() };
        report
    }

    fn begin_span(&mut self) {
        self.span = Span { virtual_ns: self.now, traffic: self.directory.traffic, ..Span::default() };
    }

    fn end_span(&mut self) -> Span {
        let span = std::mem::take(&mut self.span);
        Span {
            virtual_ns: self.now - span.virtual_ns,
            traffic: self.directory.traffic.since(&span.traffic),
            ..span
        }
    }

    /// What hosts take for what they know: the mean and the most.
    fn memory(&self) -> Option<(usize, usize)> {
        let of_hosts = self.hosts.iter().filter(|host| host.is_up).map(|host| memory::bytes_of(&host.keeper));
        let all: Vec<usize> = of_hosts.collect::<Option<_>>()?;
        Some((all.iter().sum::<usize>() / all.len().max(1), all.iter().max().copied().unwrap_or(0)))
    }

    /// The middle host dies: it is not the one that evens devices out.
    fn lose_host(&mut self) {
        let lost = self.hosts.len() / 2;
        let id = self.hosts[lost].id;
        self.hosts[lost].is_up = false;
        self.ledger.lost_ns = self.now;
        for disk in self.directory.disks().values() {
            let mut stood_there = false;
            for member in disk.roster.members.iter().filter(|one| one.node.host == id) {
                self.ledger.lost.insert((disk.id, member.component), Lost::default());
                stood_there = true;
            }
            // What is whole nobody claims but a guest.
            if stood_there && disk.roster.owner.is_some_and(|owner| owner.node.host == id) {
                self.ledger.owned.insert(disk.id, None);
            }
        }
        self.at(self.now + SILENCE_NS, Event::Silent { host: id });
    }

    pub fn at(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), event);
    }

    pub fn later(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn run_until(&mut self, end: u64, is_enough: impl Fn(&World) -> bool) {
        while !is_enough(self) {
            let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) else { break };
            self.now = entry.key().0;
            let event = entry.remove();
            self.happen(event);
        }
        if !is_enough(self) {
            self.now = self.now.max(end);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Look { host } => self.look(host),
            Event::Act { host } => self.act(host),
            Event::Commit(commit) => self.commit_arrives(*commit),
            Event::Answer { host, disk, by, record } => self.answer_arrives(host, disk, by, record),
            Event::Owner { disk } => self.owner_looks(disk),
            Event::Filled { filling } => self.filled(filling),
            Event::Devices { host } => {
                if self.hosts[host].is_up {
                    let known = &self.directory.hosts()[&self.hosts[host].id];
                    let record = with_loads(known, &self.loads);
                    self.directory.set_host(self.now, record);
                    self.later(BEAT_NS, Event::Devices { host });
                }
            }
            Event::Clock => {
                self.directory.write_clock(self.now);
                if !self.ledger.lost.is_empty() {
                    (self.options.progress)(&self.ledger.progress(self.now));
                }
                self.later(CLOCK_NS, Event::Clock);
            }
            Event::Silent { host } => self.links_break(host),
        }
    }

    fn look(&mut self, index: usize) {
        let host = &self.hosts[index];
        if !host.is_up {
            return;
        }
        let is_due = self.now >= host.kept_ns + BEAT_NS || host.beat_ns.is_none();
        if !is_due && !self.directory.has_news(host.followed, self.now.saturating_sub(host.lag_ns)) {
            return self.later(LOOK_NS, Event::Look { host: index });
        }
        if host.beat_ns.is_none_or(|at| self.now >= at + BEAT_NS) {
            self.beat(index);
        }
        self.decide(index);
        self.later(0, Event::Act { host: index });
    }

    fn beat(&mut self, index: usize) {
        let id = self.hosts[index].id;
        let others = self.directory.hosts().keys().filter(|other| **other != id);
        let links = others.map(|other| (*other, !self.silent.contains(other))).collect();
        let owned = self.owned_to_tell(id);
        self.directory.beat(self.now, id, links, owned);
        self.hosts[index].beat_ns = Some(self.now);
    }

    /// A host takes over what is new, and decides. That is what is timed.
    fn decide(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.kept_ns = self.now;
        let mut random = self.random.fork();
        let began = WallClock::now();
        let mut followed = host.followed;
        for news in self.directory.news(host.followed, self.now.saturating_sub(host.lag_ns)) {
            host.keeper.take(news);
            followed += 1;
        }
        host.followed = followed;
        host.keeper.refresh(self.now, self.directory.beats(), &self.silent);
        let decided = host.keeper.decide(self.now, self.options.stand_ins, &mut random);
        let took = began.elapsed();
        let times = if decided.has_balanced { &mut self.span.balance } else { &mut self.span.decide };
        times.add(took);
        host.to_do = decided.actions.into();
        for lost in &self.silent {
            let ledger = &mut self.ledger;
            match host.keeper.facts.liveness(*lost) {
                Liveness::Alive => {}
                Liveness::Suspect { .. } => {
                    ledger.suspect.entry(host.id).or_insert(self.now);
                }
                Liveness::Away { .. } => {
                    ledger.suspect.entry(host.id).or_insert(self.now);
                    ledger.away.entry(host.id).or_insert(self.now);
                }
            }
        }
    }

    fn act(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if !host.is_up {
            return;
        }
        let Some(action) = host.to_do.pop_front() else {
            return self.later(KEEP_PAUSE_NS, Event::Look { host: index });
        };
        let Some(disk) = host.keeper.facts.disks.get(&action.disk) else {
            return self.later(0, Event::Act { host: index });
        };
        let expected = disk.version;
        let (record, by) = match (&action.step, action.step.apply(disk)) {
            (Step::Claim, _) => {
                let owner = replication::OwnedBy { node: host.node, incarnation: host.incarnation };
                let roster =
                    Roster { epoch: disk.roster.epoch + 1, owner: Some(owner), ..disk.roster.clone() };
                let change = disk.with_roster(&roster, 0).expect("only the owner changes");
                (change.record, By::Claim)
            }
            (_, Ok(Some(change))) => (change.record, By::Keeper),
            (_, Ok(None)) => unreachable!("only a claim changes nothing of the record"),
            (_, Err(_)) => {
                self.ledger.objections += 1;
                return self.later(0, Event::Act { host: index });
            }
        };
        self.send(Commit { host: index, expected, record, by });
    }

    /// Asks the directory for a change.
    pub fn send(&mut self, commit: Commit) {
        let way = self.random.range(WAY_NS);
        self.later(way, Event::Commit(Box::new(commit)));
    }

    fn commit_arrives(&mut self, commit: Commit) {
        let Commit { host, expected, record, by } = commit;
        let disk = record.id;
        let before = self.directory.disk(disk).cloned();
        let (record, is_done) = match self.directory.set_disk(self.now, expected, record) {
            Ok(record) => (record, true),
            Err(record) => (record, false),
        };
        if is_done {
            self.stored(before.as_deref(), &record);
        }
        if is_done && by == By::Claim {
            self.owners.opened(disk);
        }
        let way = self.random.range(WAY_NS);
        self.later(way, Event::Answer { host, disk, by, record: is_done.then_some(record) });
    }

    fn answer_arrives(&mut self, index: usize, disk: DiskId, by: By, record: Option<Arc<DiskRecord>>) {
        let host = &mut self.hosts[index];
        if let Some(record) = record {
            host.keeper.take(&News::Disk(record));
        }
        match by {
            By::Owner => self.owner_answered(disk),
            By::Keeper | By::Claim => self.later(0, Event::Act { host: index }),
        }
    }

    /// A record is another one now.
    fn stored(&mut self, before: Option<&DiskRecord>, after: &DiskRecord) {
        load(&mut self.loads, before, after);
        self.note_owner(after);
        let came = before.map_or(0, |disk| disk.incoming.len());
        let ledger = &mut self.ledger;
        ledger.coming = ledger.coming + after.incoming.len() - came;
        ledger.coming_max = ledger.coming_max.max(ledger.coming);
        let now = self.now;
        if let Some(claimed) = ledger.owned.get_mut(&after.id)
            && after.roster.owner.is_some_and(|owner| !self.silent.contains(&owner.node.host))
        {
            claimed.get_or_insert(now);
        }
        for ((_, component), lost) in
            ledger.lost.range_mut((after.id, base::ComponentId(0))..=(after.id, base::ComponentId(u64::MAX)))
        {
            let is_active = |one: &replication::Member| one.standing == Standing::Active;
            if !after.roster.member(*component).is_some_and(is_active) {
                lost.out_ns.get_or_insert(now);
            }
            if after.stand_in_for(*component).is_some() {
                lost.stood_in_ns.get_or_insert(now);
            }
            let was_planned = before.is_some_and(|disk| disk.incoming_for(*component).is_some());
            if after.incoming_for(*component).is_some() && !was_planned {
                lost.plans += 1;
                lost.planned_ns.get_or_insert(now);
            }
            if after.component(*component).is_none() {
                lost.replaced_ns.get_or_insert(now);
            }
        }
        self.later(self.hosts[0].lag_ns, Event::Owner { disk: after.id });
    }
}
