//! Records that others change while a disk is served: members that come, and members that go.

mod catching_up;
mod hearing;
mod marks;
mod memory;
mod mending;
mod no_room;
mod refusals;
mod row_checks;
mod row_restore;
mod row_snapshots;
mod snapshots;

use super::member::At;
use super::*;
use crate::roster::{InRows, Member, Role, Standing};
use base::HostId;
use base::request::{StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use std::collections::BTreeMap;

const DISK: DiskId = DiskId(7);

fn node(host: u128) -> NodeId {
    NodeId { host: HostId(host), shard: 0 }
}

fn member(host: u128, standing: Standing) -> Member {
    let component = ComponentId(host as u64);
    let (base, role, ceiling) = (WriteId::default(), Role::Copy, crate::Ceiling::Unknown);
    Member {
        component,
        node: node(host),
        place: 0,
        rows: None,
        standing,
        base,
        role,
        ceiling,
        lacks: Default::default(),
    }
}

/// A member of rows of 2+1.
fn in_rows(host: u128, position: u8, standing: Standing) -> Member {
    let rows = Some(InRows { code: layout::Code::TWO_AND_ONE, position });
    Member { rows, ..member(host, standing) }
}

/// An owner on node 1 whose components answer at once, but for those that are held back or not made.
struct Bench {
    owner: Owner,
    now: Instant,
    leases: Leases,
    version: u64,
    silent: BTreeSet<NodeId>,
    /// Components whose devices are full.
    full: BTreeSet<ComponentId>,
    /// Whether components take late snapshots: they have no room for them if not.
    takes_late: bool,
    /// Whether what these were given is lost before it is stable.
    fails_to_sync: bool,
    /// Components in a disk group that is being opened.
    busy: BTreeSet<ComponentId>,
    missing: BTreeSet<ComponentId>,
    late: Vec<(Ask, Answer)>,
    asked: BTreeMap<ComponentId, Vec<&'static str>>,
    done: Vec<(Token, bool)>,
    /// What was told of allocation.
    allocations: Vec<Vec<StatusRun>>,
    /// Whether the directory's answers are kept back.
    is_slow: bool,
    /// What it was asked to say last.
    asked_for: Option<Roster>,
    /// What components tell of their watermarks.
    watermarks: BTreeMap<ComponentId, WriteId>,
    /// What they tell of their windows.
    windows: BTreeMap<ComponentId, Vec<wire::Entry>>,
    /// What they tell of the versions of their parts.
    listings: BTreeMap<ComponentId, Vec<wire::PartVersions>>,
    /// Parts that one listing looks through.
    listing_parts: u32,
    /// Bytes that fill blocks of part 0 of components; all others are zeroes.
    fills: BTreeMap<(u64, u16), u8>,
    /// Whether what is read is not allocated.
    reads_holes: bool,
    /// Snapshots that components have.
    snapshots: BTreeMap<ComponentId, BTreeSet<u32>>,
    /// Blocks that are damaged on components, and what these tell of them once.
    damaged: BTreeSet<(ComponentId, wire::DamagedBlock)>,
    damage: BTreeMap<ComponentId, Vec<wire::DamagedBlock>>,
    /// Whether components do not take blocks that are to mend others.
    mends_nothing: bool,
    /// Watermarks that came with writes, and to whom.
    told: Vec<(ComponentId, WriteId)>,
    /// Numbers of guests' changes, to which hosts, and how many before each were marks.
    numbers: Vec<(u64, u64, u8)>,
}

impl Bench {
    fn new(members: Vec<Member>) -> Bench {
        Bench::serving(members, None)
    }

    fn serving(members: Vec<Member>, removed: Option<Rule>) -> Bench {
        let mut bench = Bench::claiming(members, removed);
        bench.begin();
        assert_eq!(bench.owner.phase(), Phase::Serving);
        bench
    }

    /// An owner that has only asked for the record.
    fn claiming(members: Vec<Member>, removed: Option<Rule>) -> Bench {
        Bench::claiming_after(0, members, removed)
    }

    /// The same after an owner of that epoch.
    fn claiming_after(epoch: u32, members: Vec<Member>, removed: Option<Rule>) -> Bench {
        let roster = Roster { epoch, owner: None, members, ..Roster::default() };
        let me = OwnedBy { node: node(1), incarnation: 1 };
        let zeroes = base::Pool::new(1 << 20).take_zeroed(1 << 20).expect("there is room");
        let settings = Settings {
            zeroes,
            pool: base::Pool::new(16 << 20),
            gathers: base::Allowance::new(4 << 20),
            reading: Reading::Spread,
            verifies: true,
            copy_blocks_max: limits::COPY_BLOCKS_MAX,
            fold_after: Some(limits::FOLD_AFTER),
            starts_until: Instant(0),
            is_clone: false,
            moving: None,
            rules: removed.into(),
        };
        let (now, mut out) = (Instant(1 << 40), Vec::new());
        let up = (2..100).map(node).collect();
        let owner = Owner::claim(DISK, me, (1, roster), up, settings, now, &mut out);
        assert_eq!(out.len(), 1, "it asks for the record");
        Bench {
            owner,
            now,
            leases: Leases::default(),
            version: 1,
            silent: BTreeSet::new(),
            missing: BTreeSet::new(),
            full: BTreeSet::new(),
            takes_late: false,
            fails_to_sync: false,
            busy: BTreeSet::new(),
            late: Vec::new(),
            asked: BTreeMap::new(),
            done: Vec::new(),
            allocations: Vec::new(),
            is_slow: false,
            asked_for: None,
            watermarks: BTreeMap::new(),
            windows: BTreeMap::new(),
            listings: BTreeMap::new(),
            listing_parts: u32::MAX,
            damaged: BTreeSet::new(),
            damage: BTreeMap::new(),
            mends_nothing: false,
            snapshots: BTreeMap::new(),
            fills: BTreeMap::new(),
            reads_holes: false,
            told: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// The record names the owner: it opens the disk.
    fn begin(&mut self) {
        self.version += 1;
        self.step(Input::Committed(Committed::Done { version: self.version }));
    }

    fn perform(&mut self, mut out: Vec<Output>) {
        for rounds in 0.. {
            if out.is_empty() {
                return;
            }
            assert!(rounds < 10_000, "it gives itself work without end");
            let mut next = Vec::new();
            for output in out {
                self.perform_one(output, &mut next);
            }
            self.owner.advance(self.now, &self.leases, &mut next);
            out = next;
        }
    }

    fn perform_one(&mut self, output: Output, next: &mut Vec<Output>) {
        match output {
            Output::Send { node, ask, request } => {
                let answer = self.answer(&request);
                match self.silent.contains(&node) {
                    true => self.late.push((ask, answer)),
                    false => {
                        let input = Input::Answered { ask, answer: Ok(answer) };
                        self.owner.step(self.now, input, &self.leases, next);
                    }
                }
            }
            Output::Commit { expected, roster } => {
                assert_eq!(expected, self.version);
                self.version += 1;
                self.asked_for = Some(roster);
                if self.is_slow {
                    return;
                }
                let input = Input::Committed(Committed::Done { version: self.version });
                self.owner.step(self.now, input, &self.leases, next);
            }
            Output::Done { token, result } => {
                self.done.push((token, result.is_ok()));
                if let Ok(Reply::Allocation(runs)) = result {
                    self.allocations.push(runs);
                }
            }
            Output::Fetch => assert!(self.is_slow, "the directory always answers"),
            Output::Event(_) => {}
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        if let Request::Write { component, id, marks, .. } | Request::Trim { component, id, marks, .. } =
            request
        {
            self.numbers.push((component.0, id.sequence, *marks));
        }
        let (component, what, answer) = match request {
            Request::Open { component, .. } if self.missing.contains(component) => {
                (component, "open", Answer::Refused(Refusal::NoComponent))
            }
            Request::Open { component, .. } if !self.busy.contains(component) => {
                let watermark = self.watermarks.get(component).copied().unwrap_or_default();
                let entries = self.windows.get(component).cloned().unwrap_or_default();
                (component, "open", Answer::Opened { watermark, entries })
            }
            Request::Open { component, .. } | Request::Read { component, .. }
                if self.busy.contains(component) =>
            {
                (component, "refused", Answer::Refused(Refusal::Busy))
            }
            Request::Read { component, part, block, count, .. }
                if (*block..*block + *count).any(|at| self.is_damaged(*component, (*part, at, 0))) =>
            {
                (component, "refused", Answer::Refused(Refusal::Damaged))
            }
            Request::View { component, part, block, count: 1, snapshot, .. }
                if self.is_damaged(*component, (*part, *block, *snapshot)) =>
            {
                (component, "refused", Answer::Refused(Refusal::Damaged))
            }
            Request::Damage { component, .. } => {
                (component, "damage", Answer::Damage(self.damage.remove(component).unwrap_or_default()))
            }
            Request::Mend(wire::BackfillRequest { component, .. }) if self.mends_nothing => {
                (component, "not mended", Answer::Refused(Refusal::Damaged))
            }
            Request::Mend(wire::BackfillRequest { component, part, block, number, .. }) => {
                let block = wire::DamagedBlock { part: *part, block: *block, snapshot: *number };
                self.damaged.remove(&(*component, block));
                (component, "mend", Answer::Done { congestion: 0 })
            }
            Request::Read { component, block, count, .. } => {
                let len = usize::from(*count) * BLOCK_SIZE as usize;
                let mut data = base::Pool::new(1 << 20).take_zeroed(len).expect("there is room");
                for (at, bytes) in (*block..).zip(data.bytes_mut().chunks_mut(BLOCK_SIZE as usize)) {
                    bytes.fill(self.fills.get(&(component.0, at)).copied().unwrap_or_default());
                }
                let checksums = data.chunks(BLOCK_SIZE as usize).map(base::checksum::crc32c).collect();
                let (hole, data) =
                    (base::request::Piece::Hole(len as u32), base::request::Piece::Bytes(data));
                let (piece, checksums) =
                    if self.reads_holes { (hole, smallvec::SmallVec::new()) } else { (data, checksums) };
                (component, "read", Answer::Data { pieces: [piece].into_iter().collect(), checksums })
            }
            Request::Changed { component, from_part, .. } => {
                let end = from_part.saturating_add(self.listing_parts);
                let mut parts = self.listings.get(component).cloned().unwrap_or_default();
                let next = parts.iter().any(|one| one.part >= end).then_some(end);
                parts.retain(|one| (*from_part..end).contains(&one.part));
                (component, "changed", Answer::Changed { parts, next })
            }
            Request::Checksums { component, block, count, coefficient, .. } => {
                let of_block = |block: u16| {
                    let fill = self.fills.get(&(component.0, block))?;
                    let product = layout::code::product(*fill, *coefficient);
                    Some(base::checksum::crc32c(&[product; BLOCK_SIZE as usize]))
                };
                (component, "checksums", Answer::Checksums((*block..block + count).map(of_block).collect()))
            }
            Request::Settle { component, .. } | Request::Promote { component, .. }
                if self.missing.contains(component) =>
            {
                (component, "refused", Answer::Refused(Refusal::NoComponent))
            }
            Request::Settle { component, .. } => (component, "settle", Answer::Done { congestion: 0 }),
            Request::Promote { component, .. } => (component, "promote", Answer::Done { congestion: 0 }),
            Request::Close { component, .. } => (component, "close", Answer::Done { congestion: 0 }),
            Request::Write { component, .. } if self.full.contains(component) => {
                (component, "refused", Answer::Refused(Refusal::NoSpace))
            }
            Request::Write { component, watermark, kind, block, data, .. } => {
                for (at, bytes) in (*block..).zip(data[0].chunks(BLOCK_SIZE as usize)) {
                    self.fills.extend((bytes[0] != 0).then_some(((component.0, at), bytes[0])));
                }
                if matches!(kind, wire::EntryKind::Guest(_)) {
                    self.told.push((*component, *watermark));
                }
                (component, "write", Answer::Done { congestion: 0 })
            }
            Request::Trim { component, .. } => (component, "trim", Answer::Done { congestion: 0 }),
            Request::Allocation { component, count, .. } => {
                let len = u64::from(*count) << 20;
                (component, "allocation", Answer::Allocation(vec![StatusRun { len, is_set: false }]))
            }
            Request::Held { component, .. } => {
                (component, "held", Answer::Held { ranges: Vec::new(), next: None })
            }
            Request::Snapshots { component, .. } => {
                let numbers = self.snapshots.get(component).cloned().unwrap_or_default();
                (component, "snapshots", Answer::Snapshots(numbers.into_iter().collect()))
            }
            Request::Snapshot { component, .. } | Request::View { component, .. }
                if self.full.contains(component) =>
            {
                (component, "refused", Answer::Refused(Refusal::SnapshotRefused))
            }
            Request::Snapshot { component, number, .. } => {
                self.snapshots.entry(*component).or_default().insert(*number);
                (component, "snapshot", Answer::Done { congestion: 0 })
            }
            // What came before it is still being destaged, when it is asked for the first time.
            Request::LateSnapshot { component, number, .. } if self.takes_late => {
                let is_there = !self.snapshots.entry(*component).or_default().insert(*number);
                let there = Answer::Done { congestion: 0 };
                (component, "late", if is_there { there } else { Answer::Refused(Refusal::Busy) })
            }
            Request::LateSnapshot { component, .. } => (component, "late", Answer::Refused(Refusal::NoSpace)),
            Request::SyncBackfill { component, .. } if self.fails_to_sync => {
                (component, "sync", Answer::Refused(Refusal::DeviceLost))
            }
            Request::SyncBackfill { component, .. } => (component, "sync", Answer::Done { congestion: 0 }),
            Request::DropSnapshot { component, number, .. } => {
                self.snapshots.entry(*component).or_default().remove(number);
                (component, "drop snapshot", Answer::Done { congestion: 0 })
            }
            Request::View { component, count, .. } => {
                let pieces = [base::request::Piece::Hole(u32::from(*count) * BLOCK_SIZE as u32)];
                let checksums = smallvec::SmallVec::new();
                (component, "view", Answer::Data { pieces: pieces.into_iter().collect(), checksums })
            }
            other => panic!("nobody asks for {other:?}"),
        };
        self.asked.entry(*component).or_default().push(what);
        answer
    }

    fn is_damaged(&self, component: ComponentId, (part, block, snapshot): (u32, u16, u32)) -> bool {
        self.damaged.contains(&(component, wire::DamagedBlock { part, block, snapshot }))
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.owner.step(self.now, input, &self.leases, &mut out);
        self.owner.advance(self.now, &self.leases, &mut out);
        self.perform(out);
    }

    fn write(&mut self, token: u64) {
        self.write_at(token, 0);
    }

    fn write_at(&mut self, token: u64, block: u16) {
        self.write_of(token, block, None);
    }

    /// Writes a block of a data unit of rows, or of copies.
    fn write_of(&mut self, token: u64, block: u16, target: Option<layout::Target>) {
        self.write_for(Asker::Guest, token, block, target);
    }

    /// The same for whom it may concern; of whole rows, one of 2+1.
    fn write_for(&mut self, asker: Asker, token: u64, block: u16, target: Option<layout::Target>) {
        let blocks = if target == Some(layout::Target::Rows) { 32 } else { 1 };
        let data = base::Pool::new(1 << 20).take_zeroed(blocks * 4096).expect("there is room");
        let checksums = data.chunks(4096).map(base::checksum::crc32c).collect();
        let payload = Payload::Write { data: smallvec::smallvec![data], checksums };
        self.step(Input::Change {
            token: Token(token),
            place: 0,
            part: 0,
            block,
            target,
            tag: base::RequestTag(token),
            asker,
            payload,
        });
    }

    /// Somebody else changes the record.
    fn record(&mut self, change: impl FnOnce(&mut Vec<Member>)) {
        let mut roster = self.owner.record().1.clone();
        change(&mut roster.members);
        self.version += 1;
        self.step(Input::Recorded { record: Some((self.version, roster)) });
    }

    fn wait(&mut self, time: std::time::Duration) {
        self.now = self.now + time;
        let mut out = Vec::new();
        self.owner.advance(self.now, &self.leases, &mut out);
        self.perform(out);
    }

    /// Lets a time pass in which it is looked at often.
    fn pass(&mut self, time: std::time::Duration) {
        for _ in 0..time.as_millis() / limits::LOOK_PERIOD.as_millis() {
            self.wait(limits::LOOK_PERIOD);
        }
    }

    /// What was held back is answered.
    fn answer_late(&mut self) {
        self.silent.clear();
        for (ask, answer) in std::mem::take(&mut self.late) {
            self.step(Input::Answered { ask, answer: Ok(answer) });
        }
    }

    fn read(&mut self, token: u64) {
        self.step(Input::Read {
            token: Token(token),
            place: 0,
            part: 0,
            block: 0,
            count: 1,
            unit: None,
            snapshot: 0,
        });
    }

    fn components(&self) -> Vec<(u64, Standing)> {
        self.owner.state().members.iter().map(|one| (one.component.0, one.standing)).collect()
    }

    fn count(&self, host: u64, what: &str) -> usize {
        self.asked.get(&ComponentId(host)).map_or(0, |asked| asked.iter().filter(|one| **one == what).count())
    }
}

#[test]
fn a_member_that_comes_is_filled_and_counts_and_one_that_goes_is_forgotten() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.record(|members| members.push(member(3, Standing::Absent)));
    assert_eq!(bench.components(), [(1, Standing::Active), (2, Standing::Active), (3, Standing::Active)]);
    bench.record(|members| members.retain(|one| one.component.0 != 2));
    assert_eq!(bench.components(), [(1, Standing::Active), (3, Standing::Active)]);
    let before = bench.count(2, "write");
    bench.write(1);
    assert_eq!(bench.done, [(Token(1), true)]);
    assert_eq!((bench.count(2, "write") - before, bench.count(3, "write")), (0, 1));
    bench.step(Input::Link { node: node(2), change: LinkChange::Down });
    bench.step(Input::Link { node: node(2), change: LinkChange::Up });
    bench.wait(limits::RESYNC_RETRY);
    assert_eq!(bench.count(2, "open"), 1, "it is not asked again");
}

/// Each replacement took another index of the table, and the ninth stopped the owner by an assertion.
#[test]
fn replacements_without_end_need_no_more_than_the_table() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    for host in 3..40 {
        bench.record(|members| members.push(member(host, Standing::Absent)));
        bench.record(|members| {
            members.remove(1);
        });
        bench.write(host as u64);
        assert_eq!(bench.components(), [(1, Standing::Active), (host as u64, Standing::Active)]);
        assert!(bench.owner.places[0].members.len() <= 3);
    }
    assert!(bench.done.iter().all(|(_, is_done)| *is_done));
}

#[test]
fn a_late_answer_of_one_that_is_gone_is_not_taken_for_another() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.silent.insert(node(2));
    bench.write(1);
    assert_eq!(bench.done, [], "one has not answered");
    bench.silent.insert(node(3));
    bench.record(|members| {
        members[1] = member(3, Standing::Absent);
    });
    assert_eq!(bench.done, [(Token(1), true)], "it is waited for no more");
    let index = |bench: &Bench, component: u64| {
        bench.owner.places[0].members.iter().position(|one| one.component.0 == component)
    };
    assert_eq!((index(&bench, 2), index(&bench, 3)), (Some(1), Some(2)), "an answer is still to come");
    for (ask, answer) in std::mem::take(&mut bench.late) {
        bench.step(Input::Answered { ask, answer: Ok(answer) });
    }
    bench.record(|members| members.push(member(4, Standing::Absent)));
    assert_eq!(index(&bench, 4), Some(1), "nothing names the index any more");
}

#[test]
fn a_member_beyond_the_table_waits_until_nothing_names_one_that_is_gone() {
    let count = limits::PLACE_MEMBERS_MAX as u128;
    let first = (1..=count).map(|host| member(host, Standing::Active));
    let mut bench = Bench::new(first.collect());
    bench.silent.insert(node(count));
    bench.write(1);
    bench.record(|members| {
        members[count as usize - 1] = member(count + 1, Standing::Absent);
    });
    assert_eq!(bench.components().len(), count as usize - 1, "there is no room yet");
    for (ask, answer) in std::mem::take(&mut bench.late) {
        bench.step(Input::Answered { ask, answer: Ok(answer) });
    }
    assert_eq!(bench.components().last(), Some(&(count as u64 + 1, Standing::Active)));
}

/// A lone component was told no watermark: what its owner took over undecided was not known to have happened by the next owner, which
/// did it again (cluster seed 12060).
#[test]
fn a_lone_component_is_told_what_is_decided_like_any_other() {
    let mut bench = Bench::new(vec![member(1, Standing::Active)]);
    assert_eq!(bench.count(1, "settle"), 1, "the first of the epoch");
    bench.write(1);
    bench.write(2);
    bench.wait(limits::SETTLE_DELAY);
    assert_eq!(bench.count(1, "settle"), 2);
    bench.record(|members| members.push(member(2, Standing::Absent)));
    bench.record(|members| {
        members.remove(0);
    });
    assert!(bench.owner.places[0].is_single());
    assert_eq!(bench.components(), [(2, Standing::Active)]);
}

/// The record names a component before its node makes it: an owner that then left it alone for long delayed every repair.
#[test]
fn one_that_is_not_made_yet_is_asked_again_soon() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.missing.insert(ComponentId(3));
    bench.record(|members| members.push(member(3, Standing::Absent)));
    assert_eq!(bench.components()[2], (3, Standing::Absent));
    bench.missing.clear();
    bench.wait(limits::NEW_MEMBER_RETRY);
    assert_eq!(bench.components()[2], (3, Standing::Active));
}

/// A record that was pushed while a transaction was under way was passed over, and nobody told of it again: what came
/// was filled only after the next change.
#[test]
fn a_record_that_is_heard_of_during_a_transaction_is_taken_over_after_it() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.is_slow = true;
    bench.step(Input::Link { node: node(2), change: LinkChange::Silent });
    let committed = bench.version;
    let roster = Roster {
        members: vec![member(1, Standing::Active), member(2, Standing::Absent), member(3, Standing::Absent)],
        ..bench.owner.record().1.clone()
    };
    bench.version += 1;
    bench.step(Input::Recorded { record: Some((bench.version, roster)) });
    assert_eq!(bench.components().len(), 2, "the transaction comes first");
    bench.is_slow = false;
    bench.step(Input::Committed(Committed::Done { version: committed }));
    assert_eq!(bench.components().last(), Some(&(3, Standing::Active)));
}

#[test]
fn what_waits_is_not_begun_once_whoever_asked_is_gone() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.silent.insert(node(2));
    (1..=3).for_each(|token| bench.write(token));
    bench.step(Input::Abandon { token: Token(2) });
    bench.step(Input::Abandon { token: Token(1) });
    assert_eq!(bench.count(1, "write"), 1, "the others wait for the first, which is under way");
    bench.silent.clear();
    for (ask, answer) in std::mem::take(&mut bench.late) {
        bench.step(Input::Answered { ask, answer: Ok(answer) });
    }
    assert_eq!(bench.count(1, "write"), 2, "the second does not begin");
    bench.done.sort();
    assert_eq!(bench.done, [(Token(1), true), (Token(2), false), (Token(3), true)]);
}

/// Takes an input and gives what the owner wants done, without doing it.
fn wishes(bench: &mut Bench, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    bench.owner.step(bench.now, input, &bench.leases, &mut out);
    bench.owner.advance(bench.now, &bench.leases, &mut out);
    out
}

fn commit_of(out: &[Output]) -> Option<u64> {
    out.iter().find_map(|output| match output {
        Output::Commit { expected, .. } => Some(*expected),
        _ => None,
    })
}

/// As long as the record has the version that a transaction of unknown outcome expects, it may still take effect: another one
/// from the same version rules it out, even if nothing is wished any more.
#[test]
fn a_record_found_unchanged_does_not_tell_that_a_transaction_failed() {
    assert!(asks_again(None));
    if cfg!(feature = "mutants") {
        assert!(!asks_again(Some(Rule::RuleOutUnknownCommit)));
    }
}

fn asks_again(removed: Option<Rule>) -> bool {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.owner.settings.rules = removed.into();
    let (version, roster) = (bench.version, bench.owner.record().1.clone());
    let at = At { place: 0, member: 1 };
    bench.owner.want_out(at, super::member::OutAs::Absent, LeftBecause::Unreachable);
    let mut out = Vec::new();
    bench.owner.advance(bench.now, &bench.leases, &mut out);
    assert_eq!(commit_of(&out), Some(version), "one is to be taken out");
    let out = wishes(&mut bench, Input::Committed(Committed::Unknown));
    assert!(out.iter().any(|output| matches!(output, Output::Fetch)), "the record tells");
    bench.owner.member_mut(at).wish = None; // It is well again.
    let out = wishes(&mut bench, Input::Recorded { record: Some((version, roster)) });
    assert_eq!(commit_of(&out).unwrap_or(version), version, "from the same version, if at all");
    commit_of(&out).is_some()
}

/// A hole is promised under the rules of a read: not while a change of these parts is under way, and not without leases.
#[test]
fn what_is_allocated_is_told_when_changes_of_these_parts_have_ended_and_leases_are_held() {
    let mut bench = Bench::new(vec![member(2, Standing::Active), member(3, Standing::Active)]);
    bench.silent.insert(node(3));
    bench.write(1);
    let status =
        |token, part| Input::Status { token: Token(token), of: StatusOf::Disk, place: 0, part, count: 2 };
    bench.step(status(2, 0));
    bench.step(status(3, 7));
    assert_eq!((bench.count(2, "allocation"), bench.done.len()), (0, 0), "nobody has granted anything");
    for host in [2, 3] {
        bench.leases.granted(node(host), bench.now);
    }
    bench.wait(limits::RETRY);
    assert_eq!(bench.count(2, "allocation") + bench.count(3, "allocation"), 1, "part 0 is being written");
    bench.silent.clear();
    for (ask, answer) in std::mem::take(&mut bench.late) {
        bench.step(Input::Answered { ask, answer: Ok(answer) });
    }
    bench.done.sort();
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true), (Token(3), true)]);
    assert!(bench.owner.works.is_empty());
    bench.write(4);
    assert_eq!(bench.done.len(), 4, "nothing is locked any more");
}

/// Each question had 128 parts, and a lock for each part.
#[test]
fn one_question_is_about_thousands_of_parts_and_may_be_answered_about_the_first_of_them() {
    let mut bench = Bench::new(vec![member(1, Standing::Active)]);
    let count = wire::limits::ALLOCATION_PARTS_MAX as u16;
    bench.silent.insert(node(1));
    bench.step(Input::Status { token: Token(1), of: StatusOf::Disk, place: 0, part: 9, count });
    assert_eq!(bench.count(1, "allocation"), 1);
    let (ask, answer) = bench.late.remove(0);
    let Answer::Allocation(runs) = answer else { panic!("{answer:?}") };
    assert_eq!(runs[0].len, u64::from(count) * EXTENT_SIZE);
    let first = vec![StatusRun { len: 3 * EXTENT_SIZE, is_set: false }];
    let answer = Answer::Allocation(first.clone());
    bench.step(Input::Answered { ask, answer: Ok(answer) });
    assert_eq!(bench.allocations, [first]);
    assert!(bench.owner.works.is_empty());
}

#[test]
fn two_questions_and_two_changes_do_not_wait_for_one_another() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.leases.granted(node(2), bench.now);
    bench.silent.insert(node(2));
    for token in 0..6 {
        bench.write(10 + token);
        bench.step(Input::Status {
            token: Token(token),
            of: StatusOf::Disk,
            place: 0,
            part: token as u32 % 2,
            count: 2,
        });
    }
    while !bench.late.is_empty() {
        for (ask, answer) in std::mem::take(&mut bench.late) {
            bench.step(Input::Answered { ask, answer: Ok(answer) });
        }
    }
    assert_eq!(bench.done.len(), 12, "{:?}", bench.done);
}

#[test]
fn a_disk_that_has_got_places_is_opened_anew() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.step(Input::Read {
        token: Token(1),
        place: 1,
        part: 0,
        block: 0,
        count: 1,
        unit: None,
        snapshot: 0,
    });
    assert_eq!(bench.done, [(Token(1), false)], "there is no such place yet");
    bench.silent.insert(node(2));
    bench.write(2);
    bench.record(|members| members.push(Member { place: 1, ..member(3, Standing::Active) }));
    assert_eq!(bench.owner.phase(), Phase::Ended);
    assert_eq!(bench.done[1], (Token(2), false), "it is submitted again to the next owner");
}

/// A place of which component 2 is absent and not there, and component 3 is to stand in for it.
fn with_stand_in() -> Bench {
    with_stand_in_and(None)
}

fn with_stand_in_and(removed: Option<Rule>) -> Bench {
    let members = vec![member(1, Standing::Active), member(2, Standing::Active)];
    let mut bench = Bench::serving(members, removed);
    (1..=5).for_each(|token| bench.write(token));
    bench.missing.insert(ComponentId(2));
    bench.step(Input::Link { node: node(2), change: LinkChange::Silent });
    assert_eq!(bench.components(), [(1, Standing::Active), (2, Standing::Absent)]);
    let role = Role::StandIn { of: ComponentId(2) };
    bench.record(|members| members.push(Member { role, ..member(3, Standing::Absent) }));
    bench
}

#[test]
fn what_a_component_holds_is_recorded_when_it_leaves() {
    let bench = with_stand_in();
    let base = bench.owner.record().1.member(ComponentId(2)).map(|one| one.base);
    assert_eq!(base, Some(WriteId { epoch: 1, sequence: 5 }));
}

#[test]
fn a_stand_in_is_waited_for_and_takes_zeroes_for_a_trim_and_is_not_read_from() {
    let mut bench = with_stand_in();
    assert_eq!(bench.components()[2], (3, Standing::StandIn));
    let marks = bench.count(1, "trim");
    let (token, tag) = (Token(9), base::RequestTag(9));
    let payload = Payload::Trim { count: 4 };
    bench.step(Input::Change {
        token,
        place: 0,
        part: 0,
        block: 0,
        target: None,
        tag,
        asker: Asker::Guest,
        payload,
    });
    let counts = |bench: &Bench, host| (bench.count(host, "write"), bench.count(host, "trim"));
    assert_eq!((counts(&bench, 1), counts(&bench, 3)), ((5, marks + 1), (1, 0)));
    bench.silent.insert(node(3));
    bench.write(10);
    assert_eq!(bench.done.last(), Some(&(token, true)), "the stand-in has not got the write");
    bench.step(Input::Link { node: node(3), change: LinkChange::Silent });
    assert_eq!(bench.done.last(), Some(&(Token(10), true)));
    assert_eq!(bench.components()[2], (3, Standing::Absent), "and that is recorded");
}

#[test]
fn one_transaction_has_the_component_back_and_its_stand_in_out() {
    let mut bench = with_stand_in();
    bench.missing.clear();
    let before = bench.version;
    bench.step(Input::Link { node: node(2), change: LinkChange::Up });
    let standings = [(1, Standing::Active), (2, Standing::Active), (3, Standing::Absent)];
    assert_eq!((bench.components(), bench.version - before), (standings.to_vec(), 1));
    let opened = bench.count(3, "open");
    bench.wait(limits::RESYNC_RETRY);
    assert_eq!(bench.count(3, "open"), opened, "it stands in for nothing that is missing");
}

#[test]
fn an_heir_is_filled_while_it_stands_in() {
    let mut bench = with_stand_in();
    let of = ComponentId(2);
    bench.record(|members| members[2].role = Role::Heir { of });
    assert_eq!(bench.components()[2], (3, Standing::Active));
    bench.write(11);
    assert_eq!(bench.done.last(), Some(&(Token(11), true)));
}

/// Not for itself: one that missed the freeing may be brought up to date from it later, and takes only what has a version.
#[test]
fn an_heir_gets_the_versions_of_what_was_freed_before_it_came() {
    for (removed, writes_and_trims) in [(None, (1, 1)), (Some(Rule::FillWithHoles), (0, 0))] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        let mut bench = with_stand_in_and(removed);
        let before = (bench.count(3, "write"), bench.count(3, "trim"));
        let mut regions = Box::new([WriteId::default(); 16]);
        regions[0] = WriteId { epoch: 1, sequence: 3 };
        let freed = WriteId { epoch: 1, sequence: 4 };
        let listing = [wire::Versions::Regions(regions), wire::Versions::Hole(freed)];
        let of_part = |(part, versions)| wire::PartVersions { part, versions };
        bench.listings.insert(ComponentId(1), (0..).zip(listing).map(of_part).collect());
        bench.reads_holes = true;
        let of = ComponentId(2);
        bench.record(|members| members[2].role = Role::Heir { of });
        for _ in 0..3 {
            bench.step(Input::Pace { bytes: 1 << 20 });
        }
        let after = (bench.count(3, "write"), bench.count(3, "trim"));
        assert_eq!((after.0 - before.0, after.1 - before.1), writes_and_trims, "{removed:?}");
        assert_eq!(bench.components()[2], (3, Standing::Active));
    }
}

#[test]
fn an_owner_lets_go_of_a_disk_that_it_can_put_together_but_not_serve() {
    let mut bench = with_stand_in();
    // The only active component is refused from now on; the absent one is there again.
    bench.missing.insert(ComponentId(1));
    bench.step(Input::Link { node: node(1), change: LinkChange::Down });
    bench.wait(limits::RECONNECT * 2);
    assert_eq!(bench.owner.phase(), Phase::Serving, "nothing can be done about it");
    bench.missing.remove(&ComponentId(2));
    bench.step(Input::Link { node: node(2), change: LinkChange::Up });
    assert_eq!(bench.owner.phase(), Phase::Ended, "it is opened anew, in the next epoch");
}

/// A disk whose only active component is lost, with an absent one that had a change beyond its base, and its stand-in.
fn lost(removed: Option<Rule>, stand_in_has_it: bool) -> Bench {
    let mut bench = losing(removed, stand_in_has_it);
    bench.wait(limits::RECONNECT * 2);
    bench.step(Input::Pace { bytes: 1 << 30 });
    bench
}

/// The same, before the active component is given up.
fn losing(removed: Option<Rule>, stand_in_has_it: bool) -> Bench {
    let of = ComponentId(2);
    let base = WriteId { epoch: 1, sequence: 5 };
    let (id, tag) = (WriteId { epoch: 1, sequence: 7 }, base::RequestTag(7));
    let stand_in = Member {
        base: WriteId { epoch: 1, sequence: 9 },
        role: Role::StandIn { of },
        ..member(3, Standing::StandIn)
    };
    let members = vec![
        Member { base, ..member(1, Standing::Active) },
        Member { base, ..member(2, Standing::Absent) },
        stand_in,
    ];
    let mut bench = Bench::claiming_after(1, members, removed);
    let entry = wire::Entry { id, part: 0, block: 3, count: 1, is_trim: false, has_happened: false, tag };
    bench.windows.insert(of, vec![entry]);
    bench.missing.insert(ComponentId(1));
    bench.reads_holes = !stand_in_has_it;
    bench.begin();
    bench
}

#[test]
fn a_component_and_its_stand_in_make_a_disk_whose_last_active_component_is_lost() {
    let bench = lost(None, true);
    let standings = [(1, Standing::Absent), (2, Standing::Active), (3, Standing::Absent)];
    assert_eq!((bench.components(), bench.owner.phase()), (standings.to_vec(), Phase::Serving));
}

/// Nobody knows yet that the record says that a component is restored when it comes back from a short absence, with nothing of
/// its own to show for what its stand-in gave it, and the active one that was lost comes back, too.
#[test]
fn a_restored_component_is_not_taken_for_one_that_lost_changes() {
    let mut bench = losing(None, true);
    bench.is_slow = true;
    bench.wait(limits::RECONNECT * 2);
    bench.step(Input::Committed(Committed::Unknown));
    bench.step(Input::Link { node: node(2), change: LinkChange::Down });
    bench.step(Input::Link { node: node(2), change: LinkChange::Up });
    bench.missing.clear();
    bench.watermarks.insert(ComponentId(1), WriteId { epoch: 1, sequence: 9 });
    bench.wait(limits::RESYNC_RETRY * 2);
    bench.is_slow = false;
    let (restored, version) = (bench.asked_for.clone(), bench.version);
    bench.step(Input::Recorded { record: restored.map(|roster| (version, roster)) });
    assert_eq!((bench.components()[1], bench.owner.phase()), ((2, Standing::Active), Phase::Serving));
}

/// What was decided without the component must not come back with it, and what stood there before is nowhere.
#[test]
fn a_component_with_a_change_that_its_stand_in_lacks_makes_nothing() {
    let bench = lost(None, false);
    assert_eq!((bench.components()[1], bench.owner.phase()), ((2, Standing::Absent), Phase::Opening));
    if cfg!(feature = "mutants") {
        assert_eq!(lost(Some(Rule::RestoreNothingVoid), false).owner.phase(), Phase::Serving);
    }
}

/// A component in resync forgets what the watermark passes. What it has changed last, and may be void, is copied over before.
#[test]
fn what_may_be_void_is_undone_before_the_component_may_forget_it() {
    assert_eq!(told_in_resync(None), [WriteId::default(), WriteId { epoch: 1, sequence: 2 }]);
    if cfg!(feature = "mutants") {
        assert_ne!(told_in_resync(Some(Rule::UndoVoidFirst))[0], WriteId::default());
    }
}

/// The watermarks that come with changes to a component that returns: before anything could be copied to it, and after.
fn told_in_resync(removed: Option<Rule>) -> Vec<WriteId> {
    let mut bench = Bench::claiming(vec![member(1, Standing::Active), member(2, Standing::Absent)], removed);
    let (id, tag) = (WriteId { epoch: 1, sequence: 7 }, base::RequestTag(7));
    let entry = wire::Entry { id, part: 9, block: 3, count: 1, is_trim: false, has_happened: false, tag };
    bench.windows.insert(ComponentId(2), vec![entry]);
    // What could be copied is not written before the bytes for it are granted; nor is it recorded after.
    bench.begin();
    let mut told = Vec::new();
    for token in 1..=3 {
        if token == 3 {
            bench.silent.insert(node(2));
            bench.step(Input::Pace { bytes: 1 << 20 });
            for (ask, answer) in std::mem::take(&mut bench.late) {
                bench.owner.step(
                    bench.now,
                    Input::Answered { ask, answer: Ok(answer) },
                    &bench.leases,
                    &mut Vec::new(),
                );
            }
            bench.wait(std::time::Duration::ZERO);
        }
        let before = bench.told.len();
        bench.write(token);
        told.extend(bench.told[before..].iter().filter(|(to, _)| *to == ComponentId(2)).map(|(_, id)| *id));
    }
    told.split_off(1)
}

#[test]
fn a_component_that_ends_no_change_leaves_if_another_one_does() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.silent.insert(node(2));
    bench.write(1);
    bench.pass(limits::SILENCE);
    assert_eq!((bench.components()[1], bench.done.len()), ((2, Standing::Active), 0), "it may be slow");
    bench.pass(limits::LOOK_PERIOD * 2);
    assert_eq!(bench.components()[1], (2, Standing::Absent));
    assert_eq!(bench.done, [(Token(1), true)]);
    bench.write(2);
    assert_eq!(bench.done.len(), 2, "nobody waits for it");
}

#[test]
fn a_component_that_ends_changes_slowly_stays() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.silent.insert(node(2));
    (0..10).for_each(|token| bench.write(token));
    while !bench.late.is_empty() {
        bench.pass(limits::SILENCE - limits::LOOK_PERIOD);
        let (ask, answer) = bench.late.remove(0);
        bench.step(Input::Answered { ask, answer: Ok(answer) });
    }
    assert_eq!((bench.components()[1], bench.done.len()), ((2, Standing::Active), 10));
}

#[test]
fn none_leaves_where_all_are_stuck() {
    let mut bench = Bench::new(vec![member(2, Standing::Active), member(3, Standing::Active)]);
    bench.silent.extend([node(2), node(3)]);
    bench.write(1);
    bench.pass(limits::SILENCE * 10);
    assert_eq!(bench.components(), [(2, Standing::Active), (3, Standing::Active)]);
    bench.answer_late();
    assert_eq!(bench.done, [(Token(1), true)]);
}

#[test]
fn an_owner_that_stood_still_takes_nobody_out_for_it() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    bench.silent.insert(node(2));
    bench.write(1);
    bench.wait(limits::SILENCE * 10);
    bench.answer_late();
    bench.pass(limits::SILENCE * 2);
    assert_eq!((bench.components()[1], bench.done.len()), ((2, Standing::Active), 1));
}

#[test]
fn a_read_that_takes_long_is_asked_elsewhere_and_its_late_answer_is_dropped() {
    let mut bench = Bench::new(vec![member(2, Standing::Active), member(3, Standing::Active)]);
    let lease = |bench: &mut Bench| {
        [2, 3].into_iter().for_each(|host| bench.leases.granted(node(host), bench.now));
    };
    lease(&mut bench);
    bench.silent.insert(node(2));
    bench.read(1);
    bench.pass(limits::READ_PATIENCE - limits::LOOK_PERIOD);
    assert_eq!((bench.count(2, "read"), bench.done.len()), (1, 0));
    lease(&mut bench);
    bench.pass(limits::LOOK_PERIOD * 2);
    assert_eq!((bench.count(3, "read"), &bench.done[..]), (1, &[(Token(1), true)][..]));
    let second = bench.owner.member(At { place: 0, member: 1 });
    assert!(second.read_ns < limits::LOOK_PERIOD.as_nanos() as u64, "what the first took is not its");
    bench.read(2);
    assert_eq!((bench.count(2, "read"), bench.count(3, "read")), (1, 2), "it is asked nothing more");
    bench.answer_late();
    bench.read(3);
    assert_eq!((bench.count(2, "read"), bench.done.len()), (2, 3), "it is well again");
    assert_eq!(bench.components(), [(2, Standing::Active), (3, Standing::Active)]);
}

#[test]
fn one_that_takes_for_ever_to_be_opened_keeps_the_disk_from_nobody() {
    let mut bench = Bench::claiming(vec![member(2, Standing::Active), member(3, Standing::Active)], None);
    bench.silent.insert(node(2));
    bench.begin();
    assert_eq!(bench.owner.phase(), Phase::Opening);
    bench.pass(limits::OPENING_PATIENCE + limits::LOOK_PERIOD * 2);
    assert_eq!((bench.components()[0], bench.owner.phase()), ((2, Standing::Absent), Phase::Serving));
}

/// A peer whose tags began with the same 16 bits as those of the owner's node was taken for it: what the peer submitted again, since an
/// answer was lost, was done again.
#[test]
fn a_request_that_was_forwarded_takes_effect_once_whatever_its_tag_looks_like() {
    let mut bench = Bench::new(vec![member(1, Standing::Active), member(2, Standing::Active)]);
    let tag = base::RequestTag::first(node(1), 1).next();
    let mut submit = |token| {
        let payload = Payload::Trim { count: 4 };
        let token = Token(token);
        bench.step(Input::Change {
            token,
            place: 0,
            part: 0,
            block: 0,
            target: None,
            tag,
            asker: Asker::Forwarded,
            payload,
        });
        (bench.done.last().copied(), bench.count(2, "trim"))
    };
    assert_eq!(submit(1), (Some((Token(1), true)), 1));
    assert_eq!(submit(2), (Some((Token(2), true)), 1), "it is answered, and not done again");
}

fn held(sequence: u64) -> wire::Entry {
    let id = WriteId { epoch: 1, sequence };
    let tag = base::RequestTag(sequence);
    wire::Entry { id, part: 0, block: 0, count: 1, is_trim: false, has_happened: false, tag }
}

fn span(first: u64, last: u64) -> wire::Entry {
    let tag = base::RequestTag(last - first);
    wire::Entry { part: wire::Entry::SPAN_PART, count: 0, is_trim: true, tag, ..held(first) }
}

/// A component that counted by a transaction whose answer was lost while the directory was away: its own watermark is long past, and it shows
/// what came after the base that the record names by a span.
#[test]
fn a_span_shows_that_nothing_is_missing_and_is_not_rolled_forward() {
    let base = WriteId { epoch: 1, sequence: 40 };
    let joined = Member { base, ..member(2, Standing::Active) };
    let mut bench = Bench::claiming_after(1, vec![member(1, Standing::Active), joined], None);
    bench.watermarks.insert(ComponentId(1), WriteId { epoch: 1, sequence: 7_000 });
    bench.windows.insert(ComponentId(1), (7_001..=7_100).map(held).collect());
    let entries = [span(30, 8_000 - 1_024)].into_iter().chain((8_000 - 1_023..=8_000).map(held)).collect();
    bench.windows.insert(ComponentId(2), entries);
    bench.begin();
    assert_eq!(bench.owner.phase(), Phase::Serving);
    assert_eq!(bench.components()[1], (2, Standing::Active));
    assert_eq!(bench.count(1, "write"), 900, "the first lacks 7,101 to 8,000");
    assert_eq!(bench.count(2, "write"), 0);
}

#[test]
fn a_gap_before_a_span_is_a_loss() {
    let base = WriteId { epoch: 1, sequence: 40 };
    let joined = Member { base, ..member(2, Standing::Active) };
    let mut bench = Bench::claiming_after(1, vec![member(1, Standing::Active), joined], None);
    bench.watermarks.insert(ComponentId(1), WriteId { epoch: 1, sequence: 7_000 });
    bench.windows.insert(ComponentId(2), vec![span(42, 6_000), held(7_001)]);
    bench.begin();
    assert_eq!(bench.components()[1].1, Standing::Stale);
}

#[test]
fn a_component_that_cannot_tell_all_that_may_be_void_is_filled_anew() {
    let mut bench = Bench::claiming(vec![member(1, Standing::Active), member(2, Standing::Absent)], None);
    let cut = wire::Entry::cut(WriteId { epoch: 1, sequence: 9 });
    bench.windows.insert(ComponentId(2), vec![cut, held(10)]);
    bench.is_slow = true;
    bench.begin();
    let asked_for = bench.asked_for.as_ref().and_then(|roster| roster.member(ComponentId(2)));
    assert_eq!(asked_for.map(|one| one.standing), Some(Standing::Stale));
    assert_eq!(bench.count(2, "write"), 0, "nothing is copied by the delta rule");
}

/// What an owner does by a record of epoch 1 with two active components of which the first knows more than the second.
fn after_a_restore(first: WriteId, second: WriteId, removed: Option<Rule>) -> Bench {
    let members = vec![member(1, Standing::Active), member(2, Standing::Active)];
    let mut bench = Bench::claiming_after(1, members, removed);
    bench.watermarks.insert(ComponentId(1), first);
    bench.watermarks.insert(ComponentId(2), second);
    bench.begin();
    bench
}

/// A restored directory gave an epoch away for the second time. The component had served the first owner of that epoch, so its changes were
/// taken for those of the new one.
#[test]
fn a_record_that_is_older_than_what_a_component_was_told_is_not_served() {
    let id = |epoch, sequence| WriteId { epoch, sequence };
    let phase = |removed| after_a_restore(id(2, 5), id(1, 9), removed).owner.phase();
    assert_eq!(phase(None), Phase::Ended);
    if cfg!(feature = "mutants") {
        assert_eq!(phase(Some(Rule::RefuseOlderRecords)), Phase::Serving);
    }
}

/// A component that had missed an epoch with changes counted as complete, and was read from.
#[test]
fn a_component_that_missed_an_epoch_with_changes_does_not_count() {
    let standing = |first, removed| {
        let members = vec![member(1, Standing::Active), member(2, Standing::Active)];
        let mut bench = Bench::claiming_after(5, members, removed);
        bench.watermarks.insert(ComponentId(1), first);
        bench.watermarks.insert(ComponentId(2), WriteId { epoch: 2, sequence: 100 });
        bench.is_slow = true;
        bench.begin();
        let asked_for = bench.asked_for.as_ref().and_then(|roster| roster.member(ComponentId(2)).cloned());
        asked_for.map_or(Standing::Active, |one| one.standing)
    };
    let id = |sequence| WriteId { epoch: 4, sequence };
    assert_eq!(standing(id(9), None), Standing::Stale);
    assert_eq!(standing(id(0), None), Standing::Active, "the first watermark of an epoch was under way");
    if cfg!(feature = "mutants") {
        assert_eq!(standing(id(9), Some(Rule::DoubtOlderEpochs)), Standing::Active);
    }
}

/// Power failed right after a component had left and a change was acknowledged: nothing told that change from one that never happened.
#[test]
fn the_first_change_that_a_departed_component_lacks_waits_until_its_decision_is_durable() {
    let settles_before_done = |removed| {
        let members = [1, 2, 3].map(|host| member(host, Standing::Active)).to_vec();
        let mut bench = Bench::serving(members, removed);
        bench.silent.insert(node(3));
        bench.write(1);
        bench.silent.insert(node(2));
        bench.late.clear();
        bench.step(Input::Link { node: node(3), change: LinkChange::Silent });
        bench.wait(limits::RECONNECT);
        let before = bench.done.len();
        bench.answer_late();
        (before, bench.done.clone())
    };
    assert_eq!(settles_before_done(None), (0, vec![(Token(1), true)]), "the second had not made it durable");
    if cfg!(feature = "mutants") {
        assert_eq!(settles_before_done(Some(Rule::RaiseBarrier)).0, 1);
    }
}

#[test]
fn a_component_that_knows_more_than_its_record_says_is_not_filled() {
    let ceiling = crate::Ceiling::At(WriteId { epoch: 1, sequence: 9 });
    let outcome = |watermark, listing: Vec<wire::PartVersions>| {
        let absent = Member { ceiling, ..member(2, Standing::Absent) };
        let mut bench = Bench::claiming_after(4, vec![member(1, Standing::Active), absent], None);
        bench.watermarks.insert(ComponentId(2), watermark);
        bench.listings.insert(ComponentId(2), listing);
        bench.begin();
        bench.step(Input::Pace { bytes: 1 << 30 });
        let recorded = bench.owner.record().1.member(ComponentId(2)).map(|one| (one.standing, one.ceiling));
        (bench.owner.phase(), recorded.expect("it is named"))
    };
    let id = |epoch, sequence| WriteId { epoch, sequence };
    let diverged = (Phase::Ended, (Standing::Absent, crate::Ceiling::Passed));
    let joined = (Phase::Serving, (Standing::Active, crate::Ceiling::Unknown));
    let part = |version| {
        let versions = wire::Versions::Regions(Box::new([version; 16]));
        vec![wire::PartVersions { part: 0, versions }]
    };
    assert_eq!(outcome(id(1, 9), Vec::new()), joined);
    assert_eq!(outcome(id(1, 10), Vec::new()), diverged);
    assert_eq!(outcome(id(3, 0), part(id(1, 9))), joined, "that epoch had no change");
    assert_eq!(outcome(id(3, 0), part(id(2, 4))), diverged, "the epoch before had");
}

#[test]
fn a_component_that_leaves_gets_a_ceiling_and_soon_after_a_start_none_leaves_unheard() {
    let mut bench =
        Bench::claiming_after(1, vec![member(1, Standing::Active), member(2, Standing::Active)], None);
    bench.owner.starts_until = bench.now + limits::START_PATIENCE;
    bench.owner.up.remove(&node(2));
    bench.watermarks.insert(ComponentId(1), WriteId { epoch: 1, sequence: 7 });
    bench.windows.insert(ComponentId(1), vec![held(8), held(10)]);
    bench.begin();
    bench.wait(limits::RECONNECT * 4);
    assert_eq!(
        (bench.owner.phase(), bench.asked_for.is_none()),
        (Phase::Opening, true),
        "it may be starting"
    );
    bench.wait(limits::START_PATIENCE);
    let left = bench.owner.record().1.member(ComponentId(2)).cloned().expect("it is named");
    let ceiling = crate::Ceiling::At(WriteId { epoch: 1, sequence: 8 });
    assert_eq!((left.standing, left.ceiling), (Standing::Absent, ceiling), "what is held without a gap");
}

#[test]
fn the_rule_for_reads_of_a_disk_in_use_changes_at_once() {
    let mut bench = Bench::new([1, 2, 3].map(|host| member(host, Standing::Active)).to_vec());
    let reads_of_own = |bench: &mut Bench, reading: Reading| {
        bench.step(Input::Reading(reading));
        [2, 3].into_iter().for_each(|host| bench.leases.granted(node(host), bench.now));
        let before = bench.count(1, "read");
        for part in 0..6 {
            let token = Token(1000 + u64::from(part));
            bench.step(Input::Read { token, place: 0, part, block: 0, count: 1, unit: None, snapshot: 0 });
        }
        bench.count(1, "read") - before
    };
    assert_eq!(reads_of_own(&mut bench, Reading::Spread), 2);
    assert_eq!(reads_of_own(&mut bench, Reading::Local), 6);
    assert_eq!(reads_of_own(&mut bench, Reading::Auto), 6);

    // Its device becomes slow: the others are measured, then it is passed over unless that is forbidden.
    let slow = |bench: &mut Bench| {
        for _ in 0..20 {
            bench.wait(limits::OTHER_PROBE_INTERVAL);
            [2, 3].into_iter().for_each(|host| bench.leases.granted(node(host), bench.now));
            let (now, took) = (bench.now, 20_000_000);
            bench.owner.member_mut(At { place: 0, member: 0 }).recent.note(now, took);
            bench.read(7);
        }
    };
    slow(&mut bench);
    assert!(bench.owner.state().members[0].is_passed_over);
    assert!(reads_of_own(&mut bench, Reading::Auto) <= 1);
    assert_eq!(reads_of_own(&mut bench, Reading::Local), 6, "`local` reads there whatever it takes");
    assert!(!bench.owner.state().members[0].is_passed_over);
}
