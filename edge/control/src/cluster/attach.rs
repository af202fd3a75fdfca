//! Which clients have which disks here, and that the shared directory names this host for them.
//!
//! A disk is attached at one host at a time unless it is shared; the claims stand in one record of each disk, changed by
//! compare-and-set (docs/design/0017). What a claim is worth is for the crate `cluster` to say. Whoever may not have a disk any
//! more, because somebody was removed, a permission withdrawn, or the claim is another host's, is cut off within about a second.

use super::Cluster;
use super::attachments::{Attachments, Client, Local, Stage};
use crate::directory::shared::record::{Attached, ClusterDisk};
use crate::directory::shared::{Outcome, unwritten};
use crate::events::Kind;
use crate::limits::{ATTACH_HOLD, ATTACH_PERIOD, ATTACH_POLL, ATTACH_SURE, HOST_ANSWER_WAIT, KEEP_PAUSE};
use ::cluster::{Admission, Claim, Liveness, enter, leave};
use api::types::LocalView;
use base::{DiskId, HostId};
use engine::{ClusterCommand, ClusterState, Command, EngineError, Ticket, Visitor};
use failure::Failure;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

/// How an attempt to hold a disk for clients ended.
enum Attempt {
    Held,
    /// Another host has it.
    Taken(Claim),
    /// The directory does not answer, and that host owns the disk.
    Elsewhere(HostId),
    /// The record changes all the time.
    Restless,
    /// The disk is gone, or going.
    Gone,
}

impl Cluster {
    fn attachments(&self) -> MutexGuard<'_, Attachments> {
        self.attachments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clients that have a disk, by the disks.
    pub(super) fn attached_here(&self) -> BTreeMap<String, usize> {
        let attachments = self.attachments();
        let count = |local: &Local| local.clients.values().filter(|one| one.stage != Stage::Waits).count();
        let all = attachments.disks.iter().map(|(disk, local)| (disk.to_string(), count(local)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// A client wants a disk.
    pub(super) fn arrived(
        self: &Arc<Cluster>,
        disk: DiskId,
        ticket: Ticket,
        (visitor, has_lock): (Visitor, bool),
    ) {
        let client = Client { visitor, has_lock, stage: Stage::Waits };
        self.attachments().disks.entry(disk).or_default().clients.insert(ticket, client);
        let cluster = Arc::clone(self);
        tokio::spawn(async move {
            let refusal = cluster.let_in(disk, ticket).await.err();
            if refusal.is_some() {
                cluster.left(disk, ticket);
            }
            let _ = cluster.engine.tell(Command::cluster(ClusterCommand::Admit { ticket, refusal }));
        });
    }

    /// A client is gone, or wants the disk no more.
    pub(super) fn left(self: &Arc<Cluster>, disk: DiskId, ticket: Ticket) {
        let mut attachments = self.attachments();
        let Some(local) = attachments.disks.get_mut(&disk) else { return };
        if local.clients.remove(&ticket).is_some() && local.clients.is_empty() {
            let cluster = Arc::clone(self);
            // What cannot be done now is done when the directory answers again.
            tokio::spawn(async move { cluster.release(disk).await });
        }
    }

    /// Whether this host needs its claim: for clients, or to keep others away.
    fn needs_claim(&self, disk: DiskId) -> bool {
        let attachments = self.attachments();
        attachments.disks.get(&disk).is_some_and(|local| !local.clients.is_empty() || local.lock.is_some())
    }

    fn visitor(&self, disk: DiskId, ticket: Ticket) -> Option<Visitor> {
        Some(self.attachments().disks.get(&disk)?.clients.get(&ticket)?.visitor.clone())
    }

    fn set_stage(&self, disk: DiskId, ticket: Ticket, stage: Stage) {
        let mut attachments = self.attachments();
        let client = attachments.disks.get_mut(&disk).and_then(|local| local.clients.get_mut(&ticket));
        if let Some(client) = client {
            client.stage = stage;
        }
    }

    pub(super) fn set_lock(&self, disk: DiskId, lock: Option<String>) {
        self.attachments().disks.entry(disk).or_default().lock = lock;
    }

    /// Disks that clients are kept from here, and why.
    pub(super) fn locked_here(&self) -> BTreeMap<String, String> {
        let attachments = self.attachments();
        let all = attachments.disks.iter();
        all.filter_map(|(disk, local)| Some((disk.to_string(), local.lock.clone()?))).collect()
    }

    /// How many clients of this host have a disk, or are losing it.
    pub(super) fn clients_here(&self, disk: DiskId) -> usize {
        let attachments = self.attachments();
        let clients = attachments.disks.get(&disk).into_iter().flat_map(|local| local.clients.values());
        clients.filter(|client| client.stage != Stage::Waits).count()
    }

    pub(super) fn turn(&self, disk: DiskId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.attachments().disks.entry(disk).or_default().turn)
    }

    /// This start of this host, as claims name it.
    pub(super) fn me(&self) -> Claim {
        Claim { host: self.me, incarnation: self.incarnation }
    }

    /// Lets a client have a disk; waits a while for another host that has it. The error is for the client.
    async fn let_in(&self, disk: DiskId, ticket: Ticket) -> Result<(), String> {
        let (asked, until) = (Instant::now(), Instant::now() + ATTACH_HOLD);
        let mut changed = self.revision.subscribe();
        let broke = |error: EngineError| error.to_string();
        loop {
            let Some(visitor) = self.visitor(disk, ticket) else { return Ok(()) };
            self.check(disk, &visitor)?;
            if let Some(why) = self.lock_against(disk, ticket) {
                return Err(format!("disk {} {why}", self.disk_name(disk)));
            }
            let turn = self.turn(disk);
            if self.joins(disk, ticket, &turn).await {
                return Ok(());
            }
            let state = self.state().await.map_err(broke)?;
            let attempt = {
                let _turn = turn.lock().await;
                let attempt = self.hold(disk, &state).await;
                if matches!(attempt, Attempt::Held) {
                    self.set_stage(disk, ticket, Stage::Attached);
                }
                attempt
            };
            let name = self.disk_name(disk);
            let why = match attempt {
                Attempt::Held => return Ok(()),
                Attempt::Taken(claim) => {
                    let told = self.local_of(claim.host, &state).await;
                    let host = self.view().host_name(claim.host);
                    let of = |told: &LocalView| told.attached.get(&disk.to_string()).copied();
                    let lock = told.as_ref().and_then(|told| told.locked.get(&disk.to_string()));
                    if let Some(why) = lock {
                        return Err(format!("disk {name} {why}, at host {host}"));
                    }
                    let count = told.as_ref().map(|told| of(told).unwrap_or_default());
                    let text = taken_text(&name, &host, count);
                    if count.is_some_and(|count| count > 0) && asked.elapsed() >= ATTACH_SURE {
                        return Err(text);
                    }
                    text
                }
                Attempt::Elsewhere(host) => format!(
                    "the directory does not answer, and nobody knows at which host disk {name} is attached: attach it at host {}, \
                     which owns it",
                    self.view().host_name(host)
                ),
                Attempt::Gone => return Err(format!("disk {name} is being deleted, or gone")),
                Attempt::Restless => format!("where disk {name} is attached changes all the time: try again"),
            };
            if Instant::now() >= until {
                return Err(why);
            }
            let _ = tokio::time::timeout(ATTACH_POLL, changed.changed()).await;
        }
    }

    /// Lets a client in where the directory names this host already, as for every client but the first.
    async fn joins(&self, disk: DiskId, ticket: Ticket, turn: &tokio::sync::Mutex<()>) -> bool {
        // Nobody takes the claim back meanwhile.
        let _turn = turn.lock().await;
        let is_held = self.attached(disk).claims.contains(&self.me());
        if is_held {
            self.set_stage(disk, ticket, Stage::Attached);
        }
        is_held
    }

    /// Whether somebody may have a disk at this host now.
    fn check(&self, disk: DiskId, visitor: &Visitor) -> Result<(), String> {
        if let Visitor::Known { identity, issued_ns } = visitor
            && self.is_revoked(identity, *issued_ns)
        {
            return Err(format!("{identity} was removed from this cluster"));
        }
        let view = self.view();
        let record = view.disks.get(&disk).map(|disk| &disk.record);
        let Some(record) = record else { return Ok(()) };
        if !record.access.admits(visitor.guest(), self.me) {
            return Err(engine::not_named(&record.name));
        }
        // It may hold part of one state and part of another, whoever copies, or has copied.
        record.expect_not_rolling_back().map_err(|why| format!("disk {}: {why}", record.name))
    }

    /// Why a client is kept from a disk.
    fn lock_against(&self, disk: DiskId, ticket: Ticket) -> Option<String> {
        let attachments = self.attachments();
        let local = attachments.disks.get(&disk)?;
        let has_lock = local.clients.get(&ticket).is_some_and(|client| client.has_lock);
        local.lock.clone().filter(|_| !has_lock)
    }

    /// What another host knows alone, if it answers.
    async fn local_of(&self, host: HostId, state: &ClusterState) -> Option<LocalView> {
        let host = Arc::clone(self.view().host(host)?);
        if !self.reaches(state, &host) {
            return None;
        }
        self.ask_one::<LocalView>(&host, "/api/v1/cluster/local", HOST_ANSWER_WAIT).await.ok()
    }

    /// How many clients have a disk at another host, if that answers.
    pub(super) async fn clients_at(&self, disk: DiskId, host: HostId, state: &ClusterState) -> Option<usize> {
        let told = self.local_of(host, state).await?;
        Some(told.attached.get(&disk.to_string()).copied().unwrap_or_default())
    }

    /// Whether the process that made a claim is known to be gone: it ended, another followed it, or its host is away for good or
    /// for so long that it counts as that.
    pub(super) fn is_void(&self, claim: &Claim, state: &ClusterState) -> bool {
        let view = self.view();
        let Some(host) = view.host(claim.host) else { return true };
        let is_followed = host.record.nodes.iter().any(|node| node.incarnation > claim.incarnation);
        let mut ended = state.ended.iter().filter(|(node, _)| node.host == claim.host);
        let has_ended = ended.any(|(_, through)| claim.incarnation <= *through);
        let is_away = || matches!(self.keeper().facts.liveness(claim.host), Liveness::Away { .. });
        is_followed || has_ended || is_away()
    }

    /// Where a disk is attached, as far as this host has heard.
    fn attached(&self, disk: DiskId) -> Attached {
        self.view().attached.get(&disk).cloned().unwrap_or_default()
    }

    /// The same as the directory has it now.
    pub(super) async fn fetch_attached(&self, disk: DiskId) -> Result<Attached, Failure> {
        let found = self.directory().get(&Attached::key(disk)).await?;
        let read = found.as_ref().map(Attached::read).transpose();
        let read = read.map_err(|why| Failure::failed("read where a disk is attached", why))?;
        Ok(read.map(|(_, attached)| attached).unwrap_or_default())
    }

    /// Makes the directory name this host for the clients of a disk. To be asked in turn.
    ///
    /// Whoever ends sharing or deletes the disk changes the record of its claims, too. The disk's record is read after that one:
    /// so one of the two notices the other.
    async fn hold(&self, disk: DiskId, state: &ClusterState) -> Attempt {
        let known = self.attached(disk);
        let may_join = self.is_shared(disk) || self.is_handed_over(&known);
        match enter(&known.claims, self.me(), may_join, |claim| self.is_void(claim, state)) {
            Admission::Held => return Attempt::Held,
            Admission::Taken(claim) => return Attempt::Taken(claim),
            Admission::Take(_) => {}
        }
        for _ in 0..ATTEMPTS {
            if self.directory_away().is_some() {
                return self.hold_alone(disk, state);
            }
            let (known, record) = match (self.fetch_attached(disk).await, self.fetch(disk).await) {
                (Ok(known), Ok(Some(record))) => (known, record.record),
                (_, Ok(None)) => return Attempt::Gone,
                (Err(_), _) | (_, Err(_)) => return self.hold_alone(disk, state),
            };
            let is_void = |claim: &Claim| self.is_void(claim, state);
            let may_join = record.access.is_shared || self.is_handed_over(&known);
            let claims = match enter(&known.claims, self.me(), may_join, is_void) {
                Admission::Held => {
                    self.note_attached(disk, known);
                    return Attempt::Held;
                }
                Admission::Taken(claim) => return Attempt::Taken(claim),
                Admission::Take(claims) => claims,
            };
            match self.commit_attached(disk, &known, &claims).await {
                Ok(None) => return Attempt::Held,
                Ok(Some(_)) => {}
                Err(_) => return self.hold_alone(disk, state),
            }
        }
        Attempt::Restless
    }

    /// Whether this host may have a disk although another one has it.
    fn is_handed_over(&self, known: &Attached) -> bool {
        known.handover.is_some_and(|handover| handover.admits(self.me, self.directory_now()))
    }

    fn is_shared(&self, disk: DiskId) -> bool {
        self.view().disks.get(&disk).is_some_and(|disk| disk.record.access.is_shared)
    }

    /// Changes where a disk is attached; what the record says if it is another by now.
    pub(super) async fn commit_attached(
        &self,
        disk: DiskId,
        known: &Attached,
        claims: &[Claim],
    ) -> Result<Option<Attached>, Failure> {
        match self.directory().commit(vec![known.change(disk, claims)?]).await {
            Outcome::Done { version } => {
                self.note_attached(disk, known.with(version, claims));
                Ok(None)
            }
            Outcome::Conflict { current } => {
                let found = current.first().map(Attached::read).transpose();
                let found = found.map_err(|why| Failure::failed("read where a disk is attached", why))?;
                Ok(Some(found.map(|(_, attached)| attached).unwrap_or_default()))
            }
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => {
                Err(Failure::new(failure::Code::Unreachable, "the directory does not answer"))
            }
        }
    }

    /// Without the directory, nobody else being known to have the disk: it may be had at the host that owns it, and where it
    /// goes on from a host that has ended. The record follows when the directory answers again.
    fn hold_alone(&self, disk: DiskId, state: &ClusterState) -> Attempt {
        let (view, known, is_shared) = (self.view(), self.attached(disk), self.is_shared(disk));
        let owner = view.disks.get(&disk).and_then(|disk| disk.record.roster.owner);
        let claim =
            |owner: &replication::OwnedBy| Claim { host: owner.node.host, incarnation: owner.incarnation };
        let owner = owner.filter(|owner| owner.node.host != self.me && !self.is_void(&claim(owner), state));
        match owner {
            Some(owner) if !is_shared && known.claims.is_empty() => Attempt::Elsewhere(owner.node.host),
            Some(_) | None => Attempt::Held,
        }
    }

    /// The last client of a disk has left: the directory names this host no more for it.
    pub(super) async fn release(&self, disk: DiskId) {
        let turn = self.turn(disk);
        let _turn = turn.lock().await;
        let mut known = self.attached(disk);
        for _ in 0..ATTEMPTS {
            // Somebody may have come meanwhile.
            if self.needs_claim(disk) {
                return;
            }
            let Some(left) = leave(&known.claims, self.me) else { return };
            match self.commit_attached(disk, &known, &left).await {
                Ok(None) | Err(_) => return,
                Ok(Some(current)) => known = current,
            }
        }
    }

    /// Sees to clients until the host ends: that each may still have its disk, and that the directory names this host for them
    /// and for no others.
    pub(super) async fn keep_attachments(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        loop {
            if self.tend_attachments().await.is_err() {
                return;
            }
            tokio::time::sleep(KEEP_PAUSE).await;
            let _ = tokio::time::timeout(ATTACH_PERIOD - KEEP_PAUSE, changed.changed()).await;
        }
    }

    async fn tend_attachments(&self) -> Result<(), EngineError> {
        let view = self.view();
        let unnamed = self.cut_off_whom_nothing_covers();
        for disk in unnamed {
            let state = self.state().await?;
            let turn = self.turn(disk);
            let _turn = turn.lock().await;
            if let Attempt::Taken(claim) = self.hold(disk, &state).await {
                let why = format!("it is attached at host {} now", view.host_name(claim.host));
                self.cut_off_all(disk, &why);
            }
        }
        let is_mine = |attached: &Attached| attached.claims.iter().any(|claim| claim.host == self.me);
        for (disk, _) in view.attached.iter().filter(|(_, attached)| is_mine(attached)) {
            if self.directory_away().is_none() && !self.needs_claim(*disk) {
                self.release(*disk).await;
            }
        }
        let mut attachments = self.attachments();
        let is_needed = |local: &Local| !local.clients.is_empty() || local.lock.is_some();
        attachments.disks.retain(|disk, local| is_needed(local) || view.disks.contains_key(disk));
        Ok(())
    }

    /// Ends the connections of clients that may not have their disks any more. Gives the disks that clients have and the
    /// directory does not name this host for, while it answers.
    fn cut_off_whom_nothing_covers(&self) -> Vec<DiskId> {
        let attached: Vec<(DiskId, Vec<(Ticket, Visitor)>)> = {
            let attachments = self.attachments();
            let of = |local: &Local| {
                let attached = local.clients.iter().filter(|(_, client)| client.stage == Stage::Attached);
                attached.map(|(ticket, client)| (*ticket, client.visitor.clone())).collect::<Vec<_>>()
            };
            attachments.disks.iter().map(|(disk, local)| (*disk, of(local))).collect()
        };
        let (me, is_away) = (self.me(), self.directory_away().is_some());
        let mut unnamed = Vec::new();
        for (disk, clients) in attached.into_iter().filter(|(_, clients)| !clients.is_empty()) {
            for (ticket, visitor) in clients {
                if let Err(why) = self.check(disk, &visitor) {
                    self.cut_off(disk, ticket, &why);
                }
            }
            if !is_away && !self.attached(disk).claims.contains(&me) {
                unnamed.push(disk);
            }
        }
        unnamed
    }

    fn cut_off_all(&self, disk: DiskId, why: &str) {
        let tickets: Vec<Ticket> = {
            let attachments = self.attachments();
            let clients = attachments.disks.get(&disk).into_iter().flat_map(|local| &local.clients);
            let attached = clients.filter(|(_, client)| client.stage == Stage::Attached);
            attached.map(|(ticket, _)| *ticket).collect()
        };
        tickets.into_iter().for_each(|ticket| self.cut_off(disk, ticket, why));
    }

    fn cut_off(&self, disk: DiskId, ticket: Ticket, why: &str) {
        self.set_stage(disk, ticket, Stage::CutOff);
        self.events.disk(Kind::DiskCutOff, &self.disk_name(disk), format!("a client was cut off: {why}"));
        let _ = self.engine.tell(Command::cluster(ClusterCommand::CutOff { ticket }));
    }

    /// Hosts where clients have a disk, and that count, with what their record says.
    pub(super) async fn attached_at(&self, disk: &ClusterDisk) -> Result<(Attached, Vec<Claim>), Failure> {
        let (found, state) = (self.fetch_attached(disk.record.id).await?, self.state().await?);
        let counts = |claim: &&Claim| !self.is_void(claim, &state);
        let claims = found.claims.iter().filter(counts).copied().collect();
        Ok((found, claims))
    }
}

/// What a client is told whose disk another host has; `count`: its clients there.
fn taken_text(disk: &str, host: &str, count: Option<usize>) -> String {
    let clients = match count {
        None => "which does not answer now, and is not known to have ended".to_owned(),
        Some(0) => "which is about to let go of it".to_owned(),
        Some(1) => "with 1 client".to_owned(),
        Some(count) => format!("with {count} clients"),
    };
    format!(
        "disk {disk} is attached at host {host}, {clients}: detach it there, or let several hosts have it with \
         `drystone disk set {disk} share on`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_disk_host_clients_and_the_way_out() {
        let text = taken_text("web", "b", Some(2));
        for part in
            ["disk web", "host b, with 2 clients", "detach it there", "`drystone disk set web share on`"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(taken_text("web", "b", Some(1)).contains("with 1 client:"));
        assert!(taken_text("web", "b", None).contains("does not answer now"));
    }
}
