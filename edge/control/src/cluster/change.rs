//! Disks of the cluster that get another name, size or access (docs/design/0009).
//!
//! Everything is a compare-and-set of the disk's record; what follows from that is done again and again until it is so, by
//! whoever comes to it. Must hold no rule of its own.

use super::Cluster;
use super::repair::described;
use crate::directory::shared::now_ns;
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Change, Outcome, unwritten};
use crate::events::Kind;
use crate::limits::{BEAT_PERIOD, GROWTH_PATIENCE, GROWTH_WAIT, KEEP_PAUSE, SIZE_POLL, SURPLUS_WAIT};
use crate::system::{blocking_seed, component_ids};
use ::cluster::{DiskRecord, DiskState, Level, Limit, Objection};
use api::name::check_labels;
use api::types::{AllowedView, ChangeDisk};
use base::{DiskId, HostId, NodeId};
use engine::{ClusterCommand, ClusterState, Command, EngineError, Order, OrderFailure};
use failure::{Code, Failure};
use replication::owner::Phase;
use replication::{Member, Roster};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use wire::{NewComponent, Refusal};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

/// How far a growth is.
enum Progress {
    /// The disk has its new size.
    Done,
    /// The record changed meanwhile.
    Again,
    /// A component that is needed is not there, or not large enough.
    Lacks(NodeId, OrderFailure),
}

impl Cluster {
    /// Changes what the request names. A smaller size is confirmed. The named policy that the disk follows no more, if it moves back.
    ///
    /// # Errors
    /// When the name is taken, there is no room, or hosts that are needed do not answer.
    pub async fn change_disk(&self, id: DiskId, request: &ChangeDisk) -> Result<Option<String>, Failure> {
        if let Some(size) = request.size {
            self.resize(id, size, request.confirm.is_some()).await?;
        }
        if let Some(host) = &request.keep {
            self.resolve(id, host, request.confirm.as_deref()).await?;
        }
        let left = match request.steer {
            Some(action) => self.steer_move(id, action).await?,
            None => None,
        };
        self.edit(id, request).await?;
        Ok(left)
    }

    /// Of a disk that has diverged the copies of one host are kept.
    async fn resolve(&self, id: DiskId, host: &str, confirm: Option<&str>) -> Result<(), Failure> {
        let host = self.find_host(host)?.record.id;
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let name = &disk.record.name;
            let resolved = disk.record.resolve(host).map_err(|why| {
                Failure::refused(format!("disk {name}: {why}"))
                    .hint("`drystone disk show` has its copies and what is wrong with them")
            })?;
            if confirm != Some(name) {
                let kept = self.view().host_name(host);
                return Err(Failure::refused(format!(
                    "disk {name}: keeping the copy on {kept} destroys what the other copies hold beyond it"
                ))
                .hint(format!("confirm with `--confirm {name}`")));
            }
            let mut next = disk.with(resolved.record);
            match self.directory().commit(vec![next.change(disk.record.version)?]).await {
                Outcome::Done { version } => {
                    next.record.version = version;
                    self.note(&next);
                    return Ok(self.tell_disk(&next).await?);
                }
                Outcome::Conflict { .. } => tokio::time::sleep(SIZE_POLL).await,
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => return Err(unknown(name)),
            }
        }
        Err(restless(id))
    }

    /// A disk that can be changed, as the directory has it now.
    pub(super) async fn changeable(&self, id: DiskId) -> Result<ClusterDisk, Failure> {
        let found = self.fetch(id).await?;
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("disk {id} is being deleted, or gone")))
    }

    /// Another name, access, or other labels.
    async fn edit(&self, id: DiskId, request: &ChangeDisk) -> Result<(), Failure> {
        let (name, read_only) = (request.name.as_deref(), request.read_only);
        let limit = request.allowed.as_ref().map(|allowed| self.limit_of(allowed)).transpose()?;
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let mut record = disk.record.clone();
            let new_name = name.filter(|name| *name != record.name);
            if let Some(name) = new_name {
                record = record.rename(name).map_err(refused)?.record;
            }
            record = match read_only.filter(|read_only| *read_only != record.read_only) {
                Some(true) => record.forbid_writes().map_err(refused)?.record,
                Some(false) => record.allow_writes().map_err(refused)?.record,
                None => record,
            };
            let access = ::cluster::Access {
                is_shared: request.share.unwrap_or(record.access.is_shared),
                limit: limit.clone().unwrap_or_else(|| record.access.limit.clone()),
            };
            if access != record.access {
                record = record.with_access(access).map_err(refused)?.record;
            }
            let labels = labels_after(&disk.labels, request.labels.as_ref())?;
            if record == disk.record && labels == disk.labels {
                return Ok(());
            }
            if labels != disk.labels {
                self.expect_level("a label", Level::LABELS)?;
            }
            let mut next = ClusterDisk { labels, ..disk.with(record) };
            let mut changes = vec![next.change(disk.record.version)?];
            if new_name.is_some() {
                changes.extend(self.name_changes(&disk, &next).await?);
            }
            if disk.record.access.is_shared && !next.record.access.is_shared {
                changes.push(self.end_of_sharing(&disk).await?);
            }
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    next.record.version = version;
                    self.note(&next);
                    return Ok(self.tell_disk(&next).await?);
                }
                Outcome::Conflict { .. } => {
                    let key = ClusterDisk::name_key(&next.record.name);
                    if new_name.is_some() && self.directory().get(&key).await?.is_some() {
                        let taken = format!("there is a disk `{}` already", next.record.name);
                        return Err(Failure::new(Code::Conflict, taken));
                    }
                }
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => return Err(unknown(&disk.record.name)),
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
        Err(restless(id))
    }

    /// Who is named, in the form of the record; nothing for anybody.
    fn limit_of(&self, allowed: &AllowedView) -> Result<Option<Limit>, Failure> {
        let is_nobody = allowed.people.is_empty() && allowed.hosts.is_empty();
        if allowed.anybody != is_nobody {
            return Err(Failure::usage("name people and hosts that may attach, or say that anybody may"));
        }
        if allowed.anybody {
            return Ok(None);
        }
        self.security()?;
        let mut limit = Limit::default();
        for person in &allowed.people {
            limit.people.insert(crate::security::name(person)?.to_string());
        }
        for host in &allowed.hosts {
            limit.hosts.insert(self.find_host(host)?.record.id);
        }
        Ok(Some(limit))
    }

    /// What keeps another host from attaching at the moment at which the disk is shared no more: the record changes that it
    /// would change, too.
    async fn end_of_sharing(&self, disk: &ClusterDisk) -> Result<Change, Failure> {
        let (found, claims) = self.attached_at(disk).await?;
        if claims.len() > 1 {
            let view = self.view();
            let hosts: Vec<String> = claims.iter().map(|claim| view.host_name(claim.host)).collect();
            let (name, hosts) = (&disk.record.name, hosts.join(" and "));
            return Err(Failure::refused(format!("disk {name} is attached at hosts {hosts}"))
                .hint("detach it at all of them but one first"));
        }
        found.change(disk.record.id, &claims)
    }

    /// The new name must be free, and the old one is free from then on.
    async fn name_changes(&self, before: &ClusterDisk, after: &ClusterDisk) -> Result<Vec<Change>, Failure> {
        let id = after.record.id.to_string();
        let key = ClusterDisk::name_key(&before.record.name);
        let old = self.directory().get(&key).await?.filter(|old| old.value == id);
        let old = old.map(|old| Change { key, expected: old.version, value: None });
        let key = ClusterDisk::name_key(&after.record.name);
        let new = Change { key, expected: 0, value: Some(serde_json::Value::String(id)) };
        Ok(old.into_iter().chain([new]).collect())
    }

    async fn resize(&self, id: DiskId, size: u64, is_confirmed: bool) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let record = &disk.record;
            let change = match (size.cmp(&record.size), &record.growth) {
                (std::cmp::Ordering::Greater, _) => return self.grow(id, size).await,
                (std::cmp::Ordering::Equal, None) => return Ok(()),
                // Its present size: it is not to grow after all.
                (std::cmp::Ordering::Equal, Some(_)) => record.cancel_growth(),
                (std::cmp::Ordering::Less, _) if is_confirmed => record.shrink(size),
                (std::cmp::Ordering::Less, _) => {
                    return Err(Failure::new(Code::Conflict, "the disk has another size since")
                        .hint("try again: making it smaller must be confirmed"));
                }
            };
            let next = disk.with(change.map_err(refused)?.record);
            let committed = self.commit_disk(next, record.version).await;
            if let Some(next) = committed.map_err(|_| unknown(&record.name))? {
                self.tell_disk(&next).await?;
                self.await_surplus(id).await;
                return Ok(());
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
        Err(restless(id))
    }

    /// Waits a while until a disk has given back what it has too much.
    async fn await_surplus(&self, id: DiskId) {
        let until = Instant::now() + SURPLUS_WAIT;
        let has_surplus = || self.view().disks.get(&id).is_some_and(|disk| disk.record.surplus.is_some());
        while has_surplus() && Instant::now() < until {
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    /// Begins a growth, or takes one up that was begun, and ends it. What cannot be ended is called off.
    async fn grow(&self, id: DiskId, size: u64) -> Result<(), Failure> {
        self.await_surplus(id).await;
        let until = Instant::now() + GROWTH_WAIT;
        loop {
            let disk = self.changeable(id).await?;
            let record = &disk.record;
            match record.growth.as_ref().map(|growth| growth.size) {
                None if record.size == size => return Ok(()),
                None => {
                    let spaces = self.spaces().await?;
                    let (mut ids, nodes) = (component_ids(blocking_seed()?), self.view().nodes_of_devices());
                    let change = record.begin_growth(size, &spaces, &nodes, &mut ids, blocking_seed()?);
                    let next = disk.with(change.map_err(objection)?.record);
                    self.commit_disk(next, record.version).await.map_err(|_| unknown(&record.name))?;
                    continue;
                }
                Some(other) if other != size => {
                    return Err(Failure::new(
                        Code::Conflict,
                        format!("disk {} is growing to {other} bytes already", record.name),
                    )
                    .hint("the same size goes on with that, its present size calls it off"));
                }
                Some(_) => {}
            }
            match self.advance_growth(&disk).await? {
                Progress::Done => return Ok(()),
                Progress::Lacks(node, why) if is_final(why) || Instant::now() >= until => {
                    self.cancel_growth(id, size).await?;
                    let host = self.view().host_name(node.host);
                    return Err(Failure::refused(format!(
                        "disk {} cannot grow: host {host}, which has a current copy of it or is to have one: {why}",
                        record.name
                    ))
                    .hint("try again when the host is back, or the copy does not count any more"));
                }
                Progress::Lacks(_, OrderFailure::Unreachable) => {
                    // Whoever owns the disk takes out what cannot be reached; here, if nobody does.
                    self.engine.tell(Command::cluster(ClusterCommand::Claim { disk: id }))?;
                }
                Progress::Lacks(..) | Progress::Again => {}
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    pub(super) async fn cancel_growth(&self, id: DiskId, size: u64) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            if disk.record.growth.as_ref().is_none_or(|growth| growth.size != size) {
                return Ok(());
            }
            let next = disk.with(disk.record.cancel_growth().map_err(refused)?.record);
            if let Some(next) = self.commit_disk(next, disk.record.version).await? {
                return Ok(self.tell_disk(&next).await?);
            }
        }
        Err(restless(id))
    }

    /// Makes what is missing of the other layout of a disk that is to move. Why not, where that is final, or `gives_up`.
    pub(super) async fn advance_move(
        &self,
        disk: &ClusterDisk,
        gives_up: bool,
    ) -> Result<Option<String>, Failure> {
        match self.advance_growth(disk).await? {
            Progress::Lacks(node, why) if is_final(why) || gives_up => {
                Ok(Some(format!("host {}: {why}", self.view().host_name(node.host))))
            }
            Progress::Done | Progress::Again | Progress::Lacks(..) => Ok(None),
        }
    }

    /// Gives all components of a disk that grows their size, and makes new ones; when all that count have it, guests see it.
    async fn advance_growth(&self, disk: &ClusterDisk) -> Result<Progress, Failure> {
        let record = &disk.record;
        let Some(growth) = &record.growth else { return Ok(Progress::Again) };
        let mut asked = Vec::new();
        for (node, new) in record.components() {
            let new = described(record, new)
                .ok_or_else(|| Failure::refused("the disk's record is too long for its components"))?;
            asked.push((node, new.clone(), self.ask(node, Order::Change(new))?));
        }
        let mut lacks = None;
        for (node, new, answer) in asked {
            let mut done = answer.await.map_err(|_| EngineError::Stopped)?;
            let is_new = growth.nodes.contains_key(&new.id);
            let is_missing = matches!(done, Err(OrderFailure::Refused(Refusal::NoComponent)));
            let member = record.roster.member(new.id);
            let counts = is_new || member.is_some_and(|one| one.standing.counts());
            if is_new && is_missing {
                done = self.order(node, Order::Create(new)).await?;
            }
            if let Err(why) = done
                && counts
            {
                lacks.get_or_insert((node, why));
            }
        }
        if let Some((node, why)) = lacks {
            return Ok(Progress::Lacks(node, why));
        }
        let next = disk.with(record.finish_growth().map_err(refused)?.record);
        let committed = self.commit_disk(next, record.version).await;
        let Some(next) = committed.map_err(|_| unknown(&record.name))? else { return Ok(Progress::Again) };
        self.tell_disk(&next).await?;
        let (kind, text) = match next.record.move_text() {
            Some(text) => (Kind::DiskMoving, text),
            None => {
                let size = base::units::format_bytes(next.record.size);
                (Kind::DiskChanged, format!("it has {size} from now on"))
            }
        };
        self.log(record.id, kind, text);
        Ok(Progress::Done)
    }

    /// What the record is to say as its owner asks, and whether it is all of that: who is to count from then on must have
    /// its size, and counts not yet if it cannot be given it.
    pub(super) async fn with_roster_that_fits(
        &self,
        base: &ClusterDisk,
        asked: Roster,
    ) -> Result<(ClusterDisk, bool), Objection> {
        let change = base.record.with_roster(&asked, now_ns())?;
        let mut late = Vec::new();
        for (node, new) in change.update {
            let id = new.id;
            let Some(new) = described(&base.record, new) else { continue };
            if !matches!(self.order(node, Order::Change(new)).await, Ok(Ok(()))) {
                late.push(id);
            }
        }
        if late.is_empty() {
            return Ok((base.with(change.record), true));
        }
        let mut roster = asked;
        // What stands in for one that is late goes on to.
        let stays = |member: &Member| {
            late.contains(&member.component) || member.role.of().is_some_and(|of| late.contains(&of))
        };
        for member in roster.members.iter_mut().filter(|member| stays(member)) {
            let before = base.record.roster.member(member.component);
            (member.standing, member.base) =
                before.map_or((member.standing, member.base), |one| (one.standing, one.base));
        }
        Ok((base.with(base.record.with_roster(&roster, now_ns())?.record), false))
    }

    /// Sees to sizes until the engine is gone: of what stands here, of disks that grow, of disks that give back.
    pub(super) async fn keep_sizes(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        let mut growing = BTreeMap::new();
        loop {
            let Ok(state) = self.state().await else { return };
            let is_away = self.keeper().away_since.is_some();
            if !is_away && let Err(failure) = self.keep_sizes_once(&state, &mut growing).await {
                tracing::debug!("{failure}");
            }
            tokio::time::sleep(KEEP_PAUSE).await;
            let _ = tokio::time::timeout(BEAT_PERIOD - KEEP_PAUSE, changed.changed()).await;
        }
    }

    async fn keep_sizes_once(
        &self,
        state: &ClusterState,
        growing: &mut BTreeMap<DiskId, Instant>,
    ) -> Result<(), Failure> {
        let view = self.view();
        let is_coordinator = self.keeper().coordinator() == Some(self.me);
        growing.retain(|id, _| view.disks.get(id).is_some_and(|disk| disk.record.growth.is_some()));
        for disk in view.disks.values().filter(|disk| disk.record.state == DiskState::Active) {
            let id = disk.record.id;
            for (node, new) in differing(&disk.record, self.me, state) {
                if let Err(why) = self.order(node, Order::Change(new)).await? {
                    tracing::debug!("disk {}: a component is not updated: {why}", disk.record.name);
                }
            }
            if disk.record.growth.is_some() {
                let since = *growing.entry(id).or_insert_with(Instant::now);
                if is_coordinator && since.elapsed() >= GROWTH_PATIENCE {
                    self.advance_growth(disk).await?;
                }
            }
            if is_coordinator && disk.record.has_moved() {
                self.end_move(id).await?;
            } else if is_coordinator && disk.record.moving.is_some() && disk.record.roster.owner.is_none() {
                // Somebody has to move it.
                self.engine.tell(Command::cluster(ClusterCommand::Claim { disk: id }))?;
            }
            if let Some(end) = disk.record.surplus {
                let owner = state.disks.get(&id).and_then(|disk| disk.owner.as_ref());
                match owner {
                    Some(owner) if owner.phase == Phase::Serving => {
                        self.give_back(&disk.record, owner.epoch, end).await?;
                    }
                    Some(_) => {}
                    // Done only if nobody owns it, or who does is gone.
                    None if is_coordinator => {
                        self.engine.tell(Command::cluster(ClusterCommand::Claim { disk: id }))?;
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Gives back what a disk has too much, and has the record say so, if this host has owned it all the time.
    async fn give_back(&self, record: &DiskRecord, epoch: u32, end: u64) -> Result<(), Failure> {
        let (id, size) = (record.id, record.size);
        let Some(shard) = record.roster.owner.map(|owner| owner.node.shard) else { return Ok(()) };
        let (answer, wait) = oneshot::channel();
        self.engine.tell(Command::cluster(ClusterCommand::GiveBack {
            shard,
            disk: id,
            size,
            end,
            answer,
        }))?;
        if wait.await.map_err(|_| EngineError::Stopped)?.is_err() {
            return Ok(()); // Soon again.
        }
        for _ in 0..ATTEMPTS {
            let Some(disk) = self.fetch(id).await? else { return Ok(()) };
            let record = &disk.record;
            let is_mine = record.roster.epoch == epoch
                && record.roster.owner.is_some_and(|one| one.node.host == self.me);
            if !is_mine || (record.size, record.surplus) != (size, Some(end)) {
                return Ok(());
            }
            let next = disk.with(record.finish_shrink().map_err(refused)?.record);
            if let Some(next) = self.commit_disk(next, record.version).await? {
                self.log(id, Kind::DiskChanged, "what stood beyond its end is given back");
                return Ok(self.tell_disk(&next).await?);
            }
        }
        Ok(())
    }
}

/// Components of a disk that stand on a host and are not as the record says, with their nodes.
fn differing(record: &DiskRecord, host: HostId, state: &ClusterState) -> Vec<(NodeId, NewComponent)> {
    let is_here = |id| state.components.get(&id).is_some_and(|held| held.disk == record.id);
    if !record.roster.members.iter().any(|one| one.node.host == host && is_here(one.component)) {
        return Vec::new();
    }
    let here = record.components().into_iter().filter(|(of, new)| of.host == host && is_here(new.id));
    let described = here.filter_map(|(node, new)| Some((node, described(record, new)?)));
    let differs = |(_, new): &(NodeId, NewComponent)| {
        let held = &state.components[&new.id];
        held.size < new.size
            || held.reservation != new.reservation
            || held.description != base::checksum::crc32c(&new.disk_label)
    };
    described.filter(differs).collect()
}

/// Whether waiting changes nothing.
fn is_final(why: OrderFailure) -> bool {
    matches!(why, OrderFailure::Refused(Refusal::NoSpace | Refusal::NoSlot))
}

fn refused(why: Objection) -> Failure {
    Failure::refused(why.to_string())
}

/// What placement says keeps its own code.
pub(super) fn objection(why: Objection) -> Failure {
    match why {
        Objection::Refused(refusal) => refusal.into(),
        other => refused(other),
    }
}

pub(super) fn unknown(name: &str) -> Failure {
    Failure::new(
        Code::Unreachable,
        format!("the directory does not answer: nobody knows whether disk {name} is changed"),
    )
    .hint("see `drystone disk show` when it answers again")
}

pub(super) fn restless(id: DiskId) -> Failure {
    Failure::new(Code::Conflict, format!("the record of disk {id} changes all the time")).hint("try again")
}

/// The labels of a disk with those that a request sets or removes.
fn labels_after(
    before: &BTreeMap<String, String>,
    change: Option<&BTreeMap<String, Option<String>>>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut labels = before.clone();
    for (key, value) in change.into_iter().flatten() {
        match value {
            Some(value) => labels.insert(key.clone(), value.clone()),
            None => labels.remove(key),
        };
    }
    check_labels(&labels)?;
    Ok(labels)
}
