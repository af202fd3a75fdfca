//! What only one host knows: told by each of itself, and asked of the others with little patience.

use super::pools::client_of;
use super::{Cluster, View};
use crate::directory::shared::record::{ClusterDisk, ClusterHost};
use crate::limits::HOST_ANSWER_WAIT;
use crate::words;
use ::cluster::{DiskRecord, Hindrance, Liveness, Pace, copied_and_left};
use api::Pool;
use api::client::Client;
use api::stream::Events;
use api::types::{
    CompressedView, LimitView, LocalView, MemberView, OwnerMoveView, PaceView, PackedView, PeerCountersView,
    ReplicationView, ResyncView, RowChecksView,
};
use base::{ComponentId, DiskId, HostId};
use engine::{ClusterState, MoveState, Trouble};
use failure::{Code, Failure};
use replication::Standing;
use replication::owner::{LeftBecause, MemberState, OwnerState, RowCheckState};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::Refusal;

/// What hosts know that were asked and answered.
pub type Locals = BTreeMap<HostId, LocalView>;

impl Cluster {
    /// What this host alone knows.
    pub fn local(&self, state: &ClusterState) -> LocalView {
        let owned = state.disks.iter().filter_map(|(id, disk)| {
            disk.owner.as_ref().map(|owner| self.replication_view(*id, owner, state))
        });
        let counters = state.counters;
        LocalView {
            host: self.me.to_string(),
            owned: owned.collect(),
            used_bytes: state.components.iter().map(|(id, one)| (id.to_string(), one.used_bytes)).collect(),
            snapshot_bytes: snapshot_bytes(state),
            packed: packed(state),
            attached: self.attached_here(),
            locked: self.locked_here(),
            links: state.links_of_hosts(self.me).map(|(host, is_up)| (host.to_string(), is_up)).collect(),
            directory_away: self.directory_away(),
            directory_members: self.directory().member_count(),
            directory_members_silent: self.silent_members().len(),
            paces: self.paces().iter().map(pace_view).collect(),
            peers: PeerCountersView {
                refused: counters.refused,
                garbage: counters.garbage,
                slow: counters.slow,
                received_bytes: counters.received_bytes,
                sent_bytes: counters.sent_bytes,
            },
        }
    }

    /// Asks all hosts that can be reached, at once.
    pub async fn locals(&self, state: &ClusterState) -> Locals {
        let (mut locals, _) = self.ask_others(state, "/api/v1/cluster/local").await;
        locals.insert(self.me, self.local(state));
        locals
    }

    /// Asks all other hosts that can be reached for what their API has at a path, at once; with it the names of those from
    /// which nothing came.
    pub async fn ask_others<T: DeserializeOwned + Send + 'static>(
        &self,
        state: &ClusterState,
        path: &str,
    ) -> (BTreeMap<HostId, T>, Vec<String>) {
        self.ask_others_within(state, path, HOST_ANSWER_WAIT).await
    }

    /// The same with another patience.
    pub async fn ask_others_within<T: DeserializeOwned + Send + 'static>(
        &self,
        state: &ClusterState,
        path: &str,
        wait: Duration,
    ) -> (BTreeMap<HostId, T>, Vec<String>) {
        let view = self.view();
        self.pools.forget_others(&view);
        let mut asked = Vec::new();
        let (mut answers, mut silent) = (BTreeMap::new(), Vec::new());
        for known in view.hosts.values().filter(|known| known.host.record.id != self.me) {
            if !self.reaches(state, &known.host) {
                silent.push(known.host.record.name.clone());
                continue;
            }
            let pool = self.pools.of(&known.host, self.certified().as_deref());
            let (host, path) = (Arc::clone(&known.host), path.to_owned());
            let task = tokio::spawn(async move {
                let answer = ask_host(pool, &host, &path, wait).await;
                (host, answer)
            });
            asked.push(task);
        }
        for task in asked {
            match task.await {
                Ok((host, Ok(answer))) => drop(answers.insert(host.record.id, answer)),
                Ok((host, Err(_))) => silent.push(host.record.name.clone()),
                Err(broken) => tracing::error!("ask another host: {broken}"),
            }
        }
        silent.sort();
        (answers, silent)
    }

    /// Asks one other host for what its API has at a path.
    ///
    /// # Errors
    /// What it says, or that it does not answer.
    pub async fn ask_one<T: DeserializeOwned>(
        &self,
        host: &ClusterHost,
        path: &str,
        wait: Duration,
    ) -> Result<T, Failure> {
        ask_host(self.pools.of(host, self.certified().as_deref()), host, path, wait).await
    }

    /// A client of another host's API, as this host.
    ///
    /// # Errors
    /// When the records name no address.
    pub fn client_of(&self, host: &ClusterHost) -> Result<Client, Failure> {
        client_of(host, self.certified().as_deref())
    }

    /// Follows what the guests of another host do; nothing where that cannot be followed now.
    pub async fn follow_load(&self, host: HostId) -> Option<Events> {
        let known = Arc::clone(self.view().host(host)?);
        if !self.reaches(&self.state().await.ok()?, &known) {
            return None;
        }
        let client = client_of(&known, self.certified().as_deref()).ok()?;
        let followed = tokio::time::timeout(HOST_ANSWER_WAIT, client.events("/api/v1/stream/host")).await;
        followed.ok()?.ok()
    }

    /// How hosts seem to be, to be compared: what has no time in it.
    pub fn liveness_classes(&self, view: &View) -> BTreeMap<HostId, u8> {
        let keeper = self.keeper();
        let class = |host: HostId| match keeper.facts.liveness(host) {
            Liveness::Alive => 0,
            Liveness::Suspect { .. } => 1,
            Liveness::Away { .. } => 2,
        };
        view.hosts.keys().map(|host| (*host, class(*host))).collect()
    }

    /// What this host says, as its owner, of a disk.
    pub(super) fn replication_view(
        &self,
        id: DiskId,
        owner: &OwnerState,
        state: &ClusterState,
    ) -> ReplicationView {
        let view = self.view();
        let copied_and_left = |member: &MemberState| {
            // A record that is newer here than what the owner told may not name it any more.
            let found = view.disks.get(&id).and_then(|disk| disk.record.component(member.component));
            let size = found.map_or(0, |(_, component)| component.size);
            // A copy that counts and stands here tells how much there is.
            let whole = owner.members.iter().filter(|one| one.place == member.place);
            let whole = whole.filter(|one| one.standing == Standing::Active);
            let used = whole.filter_map(|one| state.components.get(&one.component)).map(|one| one.used_bytes);
            copied_and_left(member, size, used.max())
        };
        let record = view.disks.get(&id).map(|disk| &disk.record.roster);
        let has_rows = record.is_some_and(|record| record.members.iter().any(|one| one.rows.is_some()));
        ReplicationView {
            disk: id.to_string(),
            phase: words::phase(owner.phase),
            epoch: owner.epoch,
            waits_for_directory: owner.waits_for_directory,
            copied_bytes: owner.copied_bytes,
            repaired_blocks: owner.repaired_blocks,
            held_blocks: owner.held_blocks,
            folded_blocks: owner.folded_blocks,
            row_checks: has_rows.then(|| row_checks_view(&owner.row_checks)),
            zero_bytes_trimmed: state.disks.get(&id).map_or(0, |disk| disk.zero_bytes_trimmed),
            limit: self.limit_view(id, state),
            moving: self.owner_move_view(id, state),
            members: owner.members.iter().map(|one| self.member_view(one, copied_and_left(one))).collect(),
        }
    }

    /// What the limits of a disk do on this host; nothing where it has none.
    pub fn limit_view(&self, id: DiskId, state: &ClusterState) -> Option<LimitView> {
        let view = self.view();
        let policy = view.disks.get(&id)?.record.policy;
        let figures = state.disks.get(&id)?.limits;
        let has_limit = policy.iops_limit.is_some() || policy.bytes_limit.is_some();
        (has_limit || figures.is_limited).then(|| LimitView {
            is_limited: figures.is_limited,
            waiting: figures.waiting,
            waited: figures.waited,
            wait_us_p99: figures.wait_p99.map(|wait| wait.as_secs_f64() * 1e6),
        })
    }

    /// What this host says, as the owner, of the move of a disk.
    fn owner_move_view(&self, id: DiskId, state: &ClusterState) -> Option<OwnerMoveView> {
        let moving = state.disks.get(&id)?.moving.as_ref()?;
        Some(OwnerMoveView {
            copied_bytes: moving.copied_bytes,
            bytes_per_second: self.pace_of_move(id).filter(|pace| *pace > 0.0),
            hindrance: hindrance(moving).map(|one| one.to_string()),
        })
    }

    fn member_view(&self, member: &MemberState, copied_and_left: Option<(u64, u64)>) -> MemberView {
        let resync = copied_and_left.map(|(copied_bytes, remaining_bytes)| {
            let pace = self.pace(member.component).filter(|pace| *pace > 0.0);
            ResyncView {
                copied_bytes,
                remaining_bytes,
                bytes_per_second: pace,
                seconds_left: pace.map(|pace| remaining_bytes as f64 / pace),
            }
        });
        MemberView {
            component: member.component.to_string(),
            is_open: member.is_open,
            is_passed_over: member.is_passed_over,
            read_us: (!member.read_time.is_zero()).then_some(member.read_time.as_secs_f64() * 1e6),
            resync,
            trouble: member.trouble.map(|why| why.to_string()),
            retry_seconds: member.retry_in.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0)),
        }
    }
}

fn pace_view(pace: &Pace) -> PaceView {
    let request_us = u64::try_from(pace.request.as_micros()).unwrap_or(u64::MAX);
    PaceView { device: pace.device.to_string(), is_log: pace.is_log, request_us }
}

async fn ask_host<T: DeserializeOwned>(
    pool: Result<Pool, Failure>,
    host: &ClusterHost,
    path: &str,
    wait: Duration,
) -> Result<T, Failure> {
    let answer = tokio::time::timeout(wait, pool?.get(path)).await;
    answer
        .map_err(|_| Failure::new(Code::Unreachable, format!("host {} does not answer", host.record.name)))?
}

/// Bytes of data in each disk's places, as far as hosts told.
pub(super) fn used_bytes(view: &View, locals: &Locals) -> BTreeMap<DiskId, Vec<u64>> {
    view.disks.iter().map(|(id, disk)| (*id, used_bytes_of(disk, locals))).collect()
}

/// Bytes of data in a disk's places: of every place the copy that has most, as far as hosts told.
pub fn used_bytes_of(disk: &ClusterDisk, locals: &Locals) -> Vec<u64> {
    let mut places = vec![0; disk.record.layout.place_count()];
    for member in &disk.record.roster.members {
        let local = locals.get(&member.node.host);
        let used = local.and_then(|local| local.used_bytes.get(&member.component.to_string()));
        if let (Some(used), Some(place)) = (used, places.get_mut(usize::from(member.place))) {
            *place = (*used).max(*place);
        }
    }
    places
}

/// What snapshots hold of each component that has any.
fn snapshot_bytes(state: &ClusterState) -> BTreeMap<String, BTreeMap<u32, u64>> {
    let with_some = state.components.iter().filter(|(_, one)| !one.snapshots.is_empty());
    with_some.map(|(id, one)| (id.to_string(), one.snapshots.iter().copied().collect())).collect()
}

/// What compressed blocks take of each component that has any, or is being written anew.
fn packed(state: &ClusterState) -> BTreeMap<String, PackedView> {
    let with_some = state.components.iter().filter(|(_, one)| one.compressed_bytes > 0 || one.is_rewriting);
    let view = |one: &engine::HeldComponent| PackedView {
        compressed_bytes: one.compressed_bytes,
        packed_bytes: one.packed_bytes,
        is_rewriting: one.is_rewriting,
    };
    with_some.map(|(id, one)| (id.to_string(), view(one))).collect()
}

/// What compressed blocks of a disk take, with all copies that hosts told of; nothing if none is compressed or to be.
pub fn compressed_of(disk: &DiskRecord, locals: &Locals) -> Option<CompressedView> {
    let told = disk
        .roster
        .members
        .iter()
        .filter_map(|member| locals.get(&member.node.host)?.packed.get(&member.component.to_string()));
    let told: Vec<PackedView> = told.copied().collect();
    let compressed_bytes: u64 = told.iter().map(|one| one.compressed_bytes).sum();
    let packed_bytes: u64 = told.iter().map(|one| one.packed_bytes).sum();
    let ratio = (packed_bytes > 0).then(|| compressed_bytes as f64 / packed_bytes as f64);
    let rewriting = told.iter().filter(|one| one.is_rewriting).count();
    (!told.is_empty()).then_some(CompressedView { compressed_bytes, packed_bytes, ratio, rewriting })
}

/// Bytes that a snapshot of a disk holds in one copy: of every place the copy that has most, as far as hosts told.
pub fn snapshot_bytes_of(disk: &DiskRecord, locals: &Locals, number: u32) -> u64 {
    let mut places = vec![0; disk.layout.place_count()];
    for member in &disk.roster.members {
        let local = locals.get(&member.node.host);
        let held = local.and_then(|local| local.snapshot_bytes.get(&member.component.to_string()));
        let bytes = held.and_then(|held| held.get(&number));
        if let (Some(bytes), Some(place)) = (bytes, places.get_mut(usize::from(member.place))) {
            *place = (*bytes).max(*place);
        }
    }
    places.iter().sum()
}

/// What another host said, as its owner, of a disk; nothing when it makes no sense.
pub(super) fn owner_state(view: &View, told: &ReplicationView) -> Option<(DiskId, OwnerState)> {
    let id: DiskId = told.disk.parse().ok()?;
    let disk = view.disks.get(&id)?;
    let member = |told: &MemberView| {
        let component: ComponentId = told.component.parse().ok()?;
        let recorded = disk.record.roster.member(component)?;
        Some(MemberState {
            component,
            node: recorded.node,
            place: recorded.place,
            standing: recorded.standing,
            role: recorded.role,
            is_open: told.is_open,
            is_passed_over: told.is_passed_over,
            read_time: told.read_us.map_or(Duration::ZERO, |us| Duration::from_secs_f64(us.max(0.0) / 1e6)),
            resync: told.resync.as_ref().map(|resync| (resync.copied_bytes, resync.remaining_bytes)),
            looked_through: None, // What is left was told of all.
            trouble: told.trouble.as_deref().and_then(trouble),
            retry_in: told.retry_seconds.map(Duration::from_secs),
        })
    };
    let state = OwnerState {
        phase: words::phase_of(told.phase)?,
        epoch: told.epoch,
        members: told.members.iter().filter_map(member).collect(),
        waits_for_directory: told.waits_for_directory,
        copied_bytes: told.copied_bytes,
        repaired_blocks: told.repaired_blocks,
        held_blocks: told.held_blocks,
        folded_blocks: told.folded_blocks,
        row_checks: told.row_checks.as_ref().map(row_checks_of).unwrap_or_default(),
    };
    Some((id, state))
}

fn row_checks_view(state: &RowCheckState) -> RowChecksView {
    let RowCheckState { checked, disagreeing, mended, skipped, passed_ago } = *state;
    RowChecksView {
        checked_rows: checked,
        disagreeing_rows: disagreeing,
        mended_rows: mended,
        skipped_rows: skipped,
        passed_seconds: passed_ago.map(|ago| ago.as_secs()),
    }
}

fn row_checks_of(told: &RowChecksView) -> RowCheckState {
    RowCheckState {
        checked: told.checked_rows,
        disagreeing: told.disagreeing_rows,
        mended: told.mended_rows,
        skipped: told.skipped_rows,
        passed_ago: told.passed_seconds.map(Duration::from_secs),
    }
}

/// What keeps the move of a disk that is owned here from going on: a component that is missing before what the last attempt met.
pub(super) fn hindrance(moving: &MoveState) -> Option<Hindrance> {
    match moving.trouble {
        _ if moving.awaits_component => Some(Hindrance::AwaitsComponent),
        Some(Trouble::NoSpace) => Some(Hindrance::NoSpace),
        Some(Trouble::Damaged) => Some(Hindrance::Damaged),
        None => None,
    }
}

/// What another host says, as its owner, of the move of a disk.
pub(super) fn hindrance_told(told: &ReplicationView) -> Option<(DiskId, Hindrance)> {
    Some((told.disk.parse().ok()?, Hindrance::read(told.moving.as_ref()?.hindrance.as_deref()?)?))
}

/// The reason that another host wrote out.
fn trouble(text: &str) -> Option<LeftBecause> {
    let refusals = [
        Refusal::NotOpen,
        Refusal::NoComponent,
        Refusal::DeviceLost,
        Refusal::NoSpace,
        Refusal::Damaged,
        Refusal::NoSlot,
        Refusal::NotOwner,
        Refusal::InUse,
        Refusal::Busy,
    ];
    let mut all =
        vec![LeftBecause::Unreachable, LeftBecause::Stuck, LeftBecause::LostWrites, LeftBecause::Directory];
    all.extend(refusals.map(LeftBecause::Refused));
    all.into_iter().find(|one| one.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_understood_by_the_host_that_reads_them() {
        for why in [
            LeftBecause::LostWrites,
            LeftBecause::Unreachable,
            LeftBecause::Stuck,
            LeftBecause::Refused(Refusal::NoComponent),
            LeftBecause::Refused(Refusal::NoSpace),
            LeftBecause::Refused(Refusal::NoSlot),
        ] {
            assert_eq!(trouble(&why.to_string()), Some(why));
        }
        assert_eq!(trouble("it rains"), None);
    }
}
