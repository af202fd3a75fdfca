//! The components of one node, as their owners see them: promises, sessions, grants.
//!
//! What keeps data safe here: a component serves only the session that opened it last, in the epoch that it promised
//! (invariant 2); it promises a greater epoch only when the grant of the owner before has run out or was given back, by
//! this node's clock (invariant 11); and what an older session began is over before a newer one is told what stands here.

mod store;
#[cfg(test)]
mod tests;

use crate::limits;
use crate::rules::Rule;
use base::rules::Rules;
use base::{ComponentId, Instant, NodeId, RequestTag, WriteId};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
pub use store::{Store, Stored};
use wire::{Answer, BackfillRequest, EntryKind, Refusal, Request, layer};

/// Who asks: a node, and which incarnation of the channel from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The node.
    pub node: NodeId,
    /// The session; 0 for this node itself.
    pub session: u64,
}

/// Names a store that is under way; comes back with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreOp(pub u32);

/// What the components want done.
#[derive(Debug)]
pub enum Output {
    /// An answer for a caller, or something said unasked (token 0).
    Answer {
        /// To whom.
        to: Caller,
        /// To which request.
        token: u32,
        /// What.
        answer: Answer,
    },
    /// Something for the disk group of a component. Answered by [`Components::stored`], never from within.
    Store {
        /// Comes back with the result.
        op: StoreOp,
        /// Which component.
        component: ComponentId,
        /// What.
        store: Store,
    },
    /// The owner on this very node owns the disk of this component no more.
    Revoke {
        /// The component.
        component: ComponentId,
    },
    /// The session has not given a grant back in time: it must end, so that no later answer grants anything in it.
    EndSession {
        /// Which.
        caller: Caller,
    },
}

/// Who may still read from a component by a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrantHolder {
    /// Nobody knows: the node started since.
    Unknown,
    Nobody,
    Node(NodeId),
}

/// How far the opening of a component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its state is being looked up.
    Looking,
    /// The grant of the owner before runs out at that time, or is given back.
    Granted { until: Instant },
    /// What older sessions began is not over.
    Draining,
    /// The promise is not stable.
    Promising,
    /// Its window is being looked up.
    Telling,
}

#[derive(Debug, Clone, Copy)]
struct Opening {
    caller: Caller,
    token: u32,
    epoch: u32,
    stage: Stage,
}

/// The session that a component serves.
#[derive(Debug, Clone, Copy)]
struct Attached {
    caller: Caller,
    epoch: u32,
    /// Whether the owner counts it as active: then watermarks are meant for it.
    is_settled: bool,
    /// The greatest watermark received in the session.
    watermark: WriteId,
}

#[derive(Debug)]
struct Held {
    promised: u32,
    attached: Option<Attached>,
    opening: Option<Opening>,
    grant: GrantHolder,
    /// Stores under way for any session.
    outstanding: u32,
    presence: Presence,
}

/// What is granted to one node.
#[derive(Debug, Default)]
struct Peer {
    session: Option<u64>,
    /// The newest session that there ever was.
    newest: u64,
    granted_until: Instant,
    /// Components that wait for this node to give its grant back: nothing is granted to it meanwhile.
    awaited: BTreeSet<ComponentId>,
}

/// Whether a component is there. One that is not is forgotten once nobody uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Here,
    /// It was not found; it may be found again, as when its group was closed.
    Missing,
    /// It was deleted: there is nothing left that anybody could read by a grant.
    Deleted,
}

/// What a store is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// A step of an opening.
    Opening,
    /// The request with that token is answered with its end.
    Request { token: u32 },
    /// It came along with a change: nobody waits for its end. What follows ends after it.
    Along,
}

/// A store under way.
#[derive(Debug)]
struct Pending {
    component: ComponentId,
    caller: Caller,
    purpose: Purpose,
    /// Whether the component is there or not once it is done; `None` if that stays as it is.
    leaves: Option<Presence>,
}

/// The state machine.
#[derive(Debug)]
pub struct Components {
    me: NodeId,
    started: Instant,
    /// Until when what the node's former process granted may last.
    former_grants_end: Instant,
    rules: Rules<Rule>,
    held: FxHashMap<ComponentId, Held>,
    peers: BTreeMap<NodeId, Peer>,
    pending: Slab<Pending>,
    /// Components whose opening waits for a time.
    waiting: BTreeSet<ComponentId>,
}

impl Components {
    /// Those of node `me`, which starts now, and whose former process can have granted what lasts for so long:
    /// [`limits::GRANT`], or nothing where no other node can have owned a disk. `rules`: those that hold; all in a product
    /// build.
    pub fn new(me: NodeId, now: Instant, former_grants: Duration, rules: Rules<Rule>) -> Components {
        Components {
            me,
            started: now,
            former_grants_end: now + former_grants,
            rules,
            held: FxHashMap::default(),
            peers: BTreeMap::new(),
            pending: Slab::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// A channel from another node begins; an older one from it is over.
    pub fn session_began(&mut self, caller: Caller) {
        self.session_ended(caller.node);
        let peer = self.peers.entry(caller.node).or_default();
        peer.session = Some(caller.session);
        peer.newest = peer.newest.max(caller.session);
    }

    /// The process of another node has ended, and with it all its sessions up to `through`: what was granted in them is used
    /// no more. False if the node has begun a later session since: then nothing changes, for what it was granted may have been
    /// granted to the process that runs now.
    pub fn process_ended(&mut self, now: Instant, node: NodeId, through: u64) -> bool {
        let buries_the_living = !self.rules.hold(Rule::SpareRestartedProcesses);
        let peer = self.peers.entry(node).or_default();
        if peer.newest > through && !buries_the_living {
            return false;
        }
        peer.granted_until = peer.granted_until.min(now);
        let awaited = peer.awaited.clone();
        for component in awaited {
            let opening = self.held.get_mut(&component).and_then(|held| held.opening.as_mut());
            if let Some(Opening { stage: Stage::Granted { until }, .. }) = opening {
                *until = now.min(*until);
            }
        }
        true
    }

    /// The channel from another node is over. Its grants last until they run out.
    pub fn session_ended(&mut self, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.session = None;
        }
        // Order does not matter: each is changed, or dropped, on its own.
        for held in self.held.values_mut() {
            held.attached = held.attached.filter(|attached| attached.caller.node != node);
        }
        // Order does not matter here, either.
        self.held.retain(|_, held| !held.is_over());
    }

    /// Forgets a component that is gone and that nobody uses.
    fn forget_gone(&mut self, component: ComponentId) {
        if self.held.get(&component).is_some_and(Held::is_over) {
            self.held.remove(&component);
        }
    }

    /// An answer is about to go to `node`, which was heard of: until when that node may read, if it may. True if the
    /// answer grants.
    pub fn grant(&mut self, now: Instant, node: NodeId) -> bool {
        let peer = self.peers.entry(node).or_default();
        if !peer.awaited.is_empty() {
            return false;
        }
        peer.granted_until = now + limits::GRANT;
        true
    }

    /// A request arrives. [`Request::Guest`], [`Request::GuestGone`], [`Request::Yield`] and [`Request::Heartbeat`] are not for components.
    pub fn request(
        &mut self,
        now: Instant,
        caller: Caller,
        token: u32,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        let purpose = Purpose::Request { token };
        match request {
            Request::Open { component, epoch, .. } => self.open(caller, token, component, epoch, out),
            Request::Close { component, epoch } => self.close(now, caller, token, component, epoch, out),
            Request::Write { component, epoch, id, watermark, marks, kind, part, block, data, checksums } => {
                if self.admit(caller, token, component, epoch, out) {
                    self.hear(caller, component, watermark, out);
                    self.mark(caller, component, (id, marks), out);
                    let (layer, part) = layer::split(part);
                    let store = Store::Write { id, kind, part, layer, block, data, checksums };
                    self.store(caller, purpose, component, store, out);
                }
            }
            Request::Trim { component, epoch, id, watermark, marks, kind, part, block, count } => {
                if self.admit(caller, token, component, epoch, out) {
                    self.hear(caller, component, watermark, out);
                    self.mark(caller, component, (id, marks), out);
                    let (layer, part) = layer::split(part);
                    let store = Store::Trim { id, kind, part, layer, block, count };
                    self.store(caller, purpose, component, store, out);
                }
            }
            Request::Read { component, epoch, part, block, count, verify } => {
                let (layer, part) = layer::split(part);
                let store = Store::Read { part, layer, block, count, verify };
                self.store_if_admitted((caller, token), component, epoch, store, out);
            }
            Request::Settle { component, epoch, watermark, from_epoch, stable } => {
                if self.admit(caller, token, component, epoch, out) {
                    self.settled(component, watermark);
                    let settle = Store::Settle { watermark, from_epoch, stable };
                    self.store(caller, purpose, component, settle, out);
                }
            }
            Request::Changed { component, epoch, .. }
            | Request::Allocation { component, epoch, .. }
            | Request::Held { component, epoch, .. }
            | Request::Checksums { component, epoch, .. }
            | Request::Promote { component, epoch, .. }
            | Request::View { component, epoch, .. }
            | Request::Snapshot { component, epoch, .. }
            | Request::DropSnapshot { component, epoch, .. }
            | Request::LateSnapshot { component, epoch, .. }
            | Request::SyncBackfill { component, epoch, .. }
            | Request::Damage { component, epoch }
            | Request::Snapshots { component, epoch } => {
                self.store_if_admitted((caller, token), component, epoch, store_of(&request), out);
            }
            Request::Backfill(given) => self.give((caller, token), given, Store::Backfill, out),
            Request::Mend(given) => self.give((caller, token), given, Store::Mend, out),
            Request::Create(new) => self.store(caller, purpose, new.id, Store::Create(new), out),
            Request::Update(new) => self.store(caller, purpose, new.id, Store::Update(new), out),
            Request::Delete { component } => self.store(caller, purpose, component, Store::Delete, out),
            Request::Heartbeat
            | Request::Guest { .. }
            | Request::GuestGone { .. }
            | Request::Yield { .. } => {
                unreachable!("the node keeps what is not for components")
            }
        }
    }

    /// Asks the group of a component for what a session may ask for.
    fn store_if_admitted(
        &mut self,
        (caller, token): (Caller, u32),
        component: ComponentId,
        epoch: u32,
        store: Store,
        out: &mut Vec<Output>,
    ) {
        if self.admit(caller, token, component, epoch, out) {
            self.store(caller, Purpose::Request { token }, component, store, out);
        }
    }

    /// Blocks for a snapshot, or in the place of damaged ones.
    fn give(
        &mut self,
        from: (Caller, u32),
        given: BackfillRequest,
        store: fn(BackfillRequest) -> Store,
        out: &mut Vec<Output>,
    ) {
        self.store_if_admitted(from, given.component, given.epoch, store(given), out);
    }

    /// A store ended.
    pub fn stored(&mut self, now: Instant, op: StoreOp, stored: Stored, out: &mut Vec<Output>) {
        let Pending { component, caller, purpose, leaves } = self.pending.remove(op.0 as usize);
        let presence = match &stored {
            Stored::Failed(Refusal::NoComponent) => Some(Presence::Missing),
            Stored::State { .. } => Some(Presence::Here),
            _ => leaves.filter(|_| !matches!(stored, Stored::Failed(_))),
        };
        if let (Some(held), Some(presence)) = (self.held.get_mut(&component), presence) {
            // What comes late to a deleted component finds it missing; it stays deleted.
            if (held.presence, presence) != (Presence::Deleted, Presence::Missing) {
                held.presence = presence;
            }
        }
        if let Purpose::Opening = purpose {
            return self.opening_stored(now, component, caller, stored, out);
        }
        if let Some(held) = self.held.get_mut(&component) {
            held.outstanding -= 1;
        }
        if let Purpose::Request { token } = purpose {
            out.push(Output::Answer { to: caller, token, answer: answer_of(stored) });
        }
        self.advance_opening(now, component, out);
        self.forget_gone(component);
    }

    /// Moves on what waits for a time.
    pub fn advance(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting: Vec<ComponentId> = self.waiting.iter().copied().collect();
        for component in waiting {
            self.advance_opening(now, component, out);
        }
    }

    /// When [`Components::advance`] wants to be called at the latest.
    pub fn wake_at(&self) -> Option<Instant> {
        let until = |component: &ComponentId| match self.held.get(component)?.opening?.stage {
            Stage::Granted { until } => Some(until),
            Stage::Looking | Stage::Draining | Stage::Promising | Stage::Telling => None,
        };
        self.waiting.iter().filter_map(until).min()
    }

    /// Whether the session may use the component in that epoch; else it is told why not.
    fn admit(
        &mut self,
        caller: Caller,
        token: u32,
        component: ComponentId,
        epoch: u32,
        out: &mut Vec<Output>,
    ) -> bool {
        let refusal = match self.held.get(&component) {
            None => Refusal::NotOpen,
            Some(held) => match held.attached {
                Some(attached) if attached.caller == caller && attached.epoch == epoch => return true,
                Some(_) | None if self.admits_without_rule(held, caller, epoch) => return true,
                Some(_) | None if held.promised > epoch => Refusal::Superseded { epoch: held.promised },
                Some(_) | None => Refusal::NotOpen,
            },
        };
        out.push(Output::Answer { to: caller, token, answer: Answer::Refused(refusal) });
        false
    }

    fn admits_without_rule(&self, held: &Held, caller: Caller, epoch: u32) -> bool {
        let ignores_epoch = !self.rules.hold(Rule::RefuseOlderEpochs);
        let ignores_session = !self.rules.hold(Rule::RefuseOldSessions);
        let is_same_owner = held.attached.is_some_and(|attached| attached.caller.node == caller.node);
        (ignores_epoch && epoch < held.promised)
            || (ignores_session && is_same_owner && epoch == held.promised)
    }

    fn store(
        &mut self,
        caller: Caller,
        purpose: Purpose,
        component: ComponentId,
        store: Store,
        out: &mut Vec<Output>,
    ) {
        let leaves = match store {
            Store::Create(_) => Some(Presence::Here),
            Store::Delete => Some(Presence::Deleted),
            _ => None,
        };
        let pending = Pending { component, caller, purpose, leaves };
        let op = StoreOp(self.pending.insert(pending) as u32);
        if let Some(held) = self.held.get_mut(&component) {
            held.outstanding += 1;
        } else {
            self.held.insert(component, Held::new(1));
        }
        out.push(Output::Store { op, component, store });
    }

    /// A watermark came along with a change.
    fn hear(&mut self, caller: Caller, component: ComponentId, watermark: WriteId, out: &mut Vec<Output>) {
        let held = self.held.get_mut(&component);
        let Some(attached) = held.and_then(|held| held.attached.as_mut()) else { return };
        if watermark <= attached.watermark {
            return;
        }
        attached.watermark = watermark;
        let store = match attached.is_settled {
            true => Store::Settle { watermark, from_epoch: watermark.epoch, stable: false },
            false => Store::Forget { through: watermark },
        };
        self.store(caller, Purpose::Along, component, store, out);
    }

    /// Marks came along with a change: the numbers directly before its own.
    fn mark(
        &mut self,
        caller: Caller,
        component: ComponentId,
        (id, marks): (WriteId, u8),
        out: &mut Vec<Output>,
    ) {
        for sequence in id.sequence - u64::from(marks)..id.sequence {
            let (id, kind) = (WriteId { sequence, ..id }, EntryKind::Guest(RequestTag::default()));
            let mark = Store::Trim { id, kind, part: 0, layer: layer::CONTENT, block: 0, count: 0 };
            self.store(caller, Purpose::Along, component, mark, out);
        }
    }

    /// The owner counts the component as active.
    fn settled(&mut self, component: ComponentId, watermark: WriteId) {
        if let Some(attached) = self.held.get_mut(&component).and_then(|held| held.attached.as_mut()) {
            attached.is_settled = true;
            attached.watermark = watermark.max(attached.watermark);
        }
    }

    fn open(
        &mut self,
        caller: Caller,
        token: u32,
        component: ComponentId,
        epoch: u32,
        out: &mut Vec<Output>,
    ) {
        let held = self.held.entry(component).or_insert_with(|| Held::new(0));
        let refusal = match held.opening {
            Some(other) if other.epoch > epoch => Some(Refusal::Superseded { epoch: other.epoch }),
            // Its steps are under way: they cannot be called back.
            Some(other) if other.caller != caller => Some(Refusal::Busy),
            Some(_) => Some(Refusal::Busy),
            None => None,
        };
        if let Some(refusal) = refusal {
            out.push(Output::Answer { to: caller, token, answer: Answer::Refused(refusal) });
            return;
        }
        held.opening = Some(Opening { caller, token, epoch, stage: Stage::Looking });
        self.opening_store(component, caller, Store::State, out);
    }

    fn opening_store(&mut self, component: ComponentId, caller: Caller, store: Store, out: &mut Vec<Output>) {
        let pending = Pending { component, caller, purpose: Purpose::Opening, leaves: None };
        let op = StoreOp(self.pending.insert(pending) as u32);
        out.push(Output::Store { op, component, store });
    }

    fn opening_stored(
        &mut self,
        now: Instant,
        component: ComponentId,
        caller: Caller,
        stored: Stored,
        out: &mut Vec<Output>,
    ) {
        let held = self.held.get_mut(&component).expect("a component that is being opened is held");
        let opening = held.opening.as_mut().expect("a step of an opening ends before the opening");
        assert!(opening.caller == caller, "an opening is not taken over");
        match (opening.stage, stored) {
            (_, Stored::Failed(refusal)) => self.end_opening(component, Answer::Refused(refusal), out),
            (Stage::Looking, Stored::State { promised, .. }) => {
                held.promised = promised;
                self.look_at_promise(now, component, out);
            }
            (Stage::Promising, Stored::Done { .. }) => {
                held.promised = opening.epoch;
                opening.stage = Stage::Telling;
                self.opening_store(component, caller, Store::State, out);
            }
            (Stage::Telling, Stored::State { watermark, window, .. }) => {
                let epoch = opening.epoch;
                let is_alive = caller.node == self.me
                    || self.peers.get(&caller.node).is_some_and(|peer| peer.session == Some(caller.session));
                if is_alive {
                    held.attached =
                        Some(Attached { caller, epoch, is_settled: false, watermark: WriteId::default() });
                    held.grant = GrantHolder::Node(caller.node);
                }
                self.end_opening(component, Answer::Opened { watermark, entries: window }, out);
            }
            (stage, stored) => unreachable!("an opening that is {stage:?} gets no {stored:?}"),
        }
    }

    /// The promise so far is known: is the epoch one that may be promised, and when?
    fn look_at_promise(&mut self, now: Instant, component: ComponentId, out: &mut Vec<Output>) {
        let held = self.held.get_mut(&component).expect("a component that is being opened is held");
        let opening = held.opening.expect("it is being opened");
        let is_other = matches!(held.grant, GrantHolder::Node(node) if node != opening.caller.node);
        let takes_older = !self.rules.hold(Rule::RefuseOlderEpochs);
        let is_older = opening.epoch < held.promised && !takes_older;
        if is_older || (opening.epoch == held.promised && is_other) {
            let epoch = held.promised.max(opening.epoch);
            return self.end_opening(component, Answer::Refused(Refusal::Superseded { epoch }), out);
        }
        // From here on no message of an older session or owner is taken.
        let attached = held.attached.take();
        let is_new = opening.epoch > held.promised;
        let until = match held.grant {
            GrantHolder::Unknown if is_new && held.promised > 0 => self.former_grants_end,
            GrantHolder::Node(node) if is_new && node != opening.caller.node => {
                self.await_grant(component, node, attached, out)
            }
            GrantHolder::Unknown | GrantHolder::Nobody | GrantHolder::Node(_) => now,
        };
        self.set_stage(component, Stage::Granted { until });
        self.waiting.insert(component);
        self.advance_opening(now, component, out);
    }

    /// Asks the node that owned the component for its grant; says when it runs out at the latest.
    fn await_grant(
        &mut self,
        component: ComponentId,
        node: NodeId,
        attached: Option<Attached>,
        out: &mut Vec<Output>,
    ) -> Instant {
        if node == self.me {
            out.push(Output::Revoke { component });
            return self.started; // The owner on this node is told before anything else happens.
        }
        let peer = self.peers.entry(node).or_default();
        peer.awaited.insert(component);
        if let Some(attached) = attached.filter(|attached| peer.session == Some(attached.caller.session)) {
            let answer = Answer::Revoke { component, epoch: attached.epoch };
            out.push(Output::Answer { to: attached.caller, token: 0, answer });
        }
        peer.granted_until
    }

    fn set_stage(&mut self, component: ComponentId, stage: Stage) {
        let held = self.held.get_mut(&component).expect("a component that is being opened is held");
        held.opening.as_mut().expect("it is being opened").stage = stage;
    }

    /// Moves an opening on as far as it goes.
    fn advance_opening(&mut self, now: Instant, component: ComponentId, out: &mut Vec<Output>) {
        let Some(held) = self.held.get_mut(&component) else { return };
        let Some(opening) = held.opening else { return };
        match opening.stage {
            Stage::Granted { until } => {
                if until > now && held.grant != GrantHolder::Nobody {
                    return;
                }
                let holder = std::mem::replace(&mut held.grant, GrantHolder::Nobody);
                self.waiting.remove(&component);
                self.grant_is_over(component, holder, opening.caller.node, out);
                self.set_stage(component, Stage::Draining);
                self.advance_opening(now, component, out);
            }
            Stage::Draining if held.outstanding == 0 => {
                let (caller, epoch) = (opening.caller, opening.epoch);
                if epoch <= held.promised {
                    self.set_stage(component, Stage::Telling);
                    return self.opening_store(component, caller, Store::State, out);
                }
                self.set_stage(component, Stage::Promising);
                self.opening_store(component, caller, Store::Promise { epoch }, out);
            }
            Stage::Looking | Stage::Draining | Stage::Promising | Stage::Telling => {}
        }
    }

    /// The grant of `holder` for the component ran out or was given back.
    fn grant_is_over(
        &mut self,
        component: ComponentId,
        holder: GrantHolder,
        by: NodeId,
        out: &mut Vec<Output>,
    ) {
        let GrantHolder::Node(node) = holder else { return };
        if node == by || node == self.me {
            return;
        }
        let peer = self.peers.entry(node).or_default();
        if peer.awaited.remove(&component)
            && let Some(session) = peer.session
        {
            let caller = Caller { node, session };
            self.session_ended(node);
            out.push(Output::EndSession { caller });
        }
    }

    fn end_opening(&mut self, component: ComponentId, answer: Answer, out: &mut Vec<Output>) {
        let held = self.held.get_mut(&component).expect("a component that is being opened is held");
        let opening = held.opening.take().expect("it is being opened");
        self.waiting.remove(&component);
        out.push(Output::Answer { to: opening.caller, token: opening.token, answer });
        self.forget_gone(component);
    }

    /// An owner gives a component back.
    fn close(
        &mut self,
        now: Instant,
        caller: Caller,
        token: u32,
        component: ComponentId,
        epoch: u32,
        out: &mut Vec<Output>,
    ) {
        if let Some(held) = self.held.get_mut(&component) {
            let is_holder = held.grant == GrantHolder::Node(caller.node);
            let is_open = |attached: &Attached| attached.caller == caller && attached.epoch == epoch;
            if (is_holder || held.presence != Presence::Here) && held.attached.as_ref().is_some_and(is_open) {
                held.attached = None;
            }
            if is_holder && held.attached.is_none() {
                held.grant = GrantHolder::Nobody;
            }
            if is_holder && let Some(peer) = self.peers.get_mut(&caller.node) {
                peer.awaited.remove(&component);
            }
        }
        out.push(Output::Answer { to: caller, token, answer: Answer::Done { congestion: 0 } });
        self.advance_opening(now, component, out);
        self.forget_gone(component);
    }
}

impl Held {
    fn new(outstanding: u32) -> Held {
        let grant = GrantHolder::Unknown;
        Held { promised: 0, attached: None, opening: None, grant, outstanding, presence: Presence::Here }
    }

    /// Whether nothing of it matters any more.
    fn is_over(&self) -> bool {
        let is_used = self.attached.is_some() || self.opening.is_some() || self.outstanding > 0;
        match self.presence {
            Presence::Here => false,
            Presence::Missing => !is_used && !matches!(self.grant, GrantHolder::Node(_)),
            Presence::Deleted => !is_used,
        }
    }
}

/// What the group does for a request that needs nothing but a session.
fn store_of(request: &Request) -> Store {
    match *request {
        Request::Changed { since, from_part, .. } => Store::Changed { since, from_part },
        Request::Allocation { of, part, count, .. } => Store::Allocation { of, part, count },
        Request::Held { from_part, .. } => Store::Held { from_part },
        Request::Checksums { part, block, count, coefficient, .. } => {
            Store::Checksums { part, block, count, coefficient }
        }
        Request::View { snapshot, part, block, count, .. } => Store::View { snapshot, part, block, count },
        Request::Snapshot { number, .. } => Store::Snapshot { number },
        Request::DropSnapshot { number, .. } => Store::DropSnapshot { number },
        Request::LateSnapshot { number, .. } => Store::LateSnapshot { number },
        Request::SyncBackfill { number, .. } => Store::SyncBackfill { number },
        Request::Snapshots { .. } => Store::Snapshots,
        Request::Damage { .. } => Store::Damage,
        Request::Promote { part, block, count, through, .. } => {
            let (layer, part) = layer::split(part);
            Store::Promote { part, layer, block, count, through }
        }
        _ => unreachable!("it is carried out otherwise"),
    }
}

fn answer_of(stored: Stored) -> Answer {
    match stored {
        Stored::Done { congestion } => Answer::Done { congestion },
        Stored::Data { pieces, checksums } => Answer::Data { pieces, checksums },
        Stored::Changed { parts, next } => Answer::Changed { parts, next },
        Stored::Allocation(runs) => Answer::Allocation(runs),
        Stored::Held { ranges, next } => Answer::Held { ranges, next },
        Stored::Checksums(checksums) => Answer::Checksums(checksums),
        Stored::Snapshots(numbers) => Answer::Snapshots(numbers),
        Stored::Damage(blocks) => Answer::Damage(blocks),
        Stored::Failed(refusal) => Answer::Refused(refusal),
        Stored::State { .. } => unreachable!("only openings ask for the state"),
    }
}
