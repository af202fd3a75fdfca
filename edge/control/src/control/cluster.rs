//! What the API shows of a cluster: hosts, who owns a disk, which components count, and what is not whole.
//!
//! What only another host knows (the progress of a disk that it owns, the space its components take) is asked of its API,
//! with little patience: an answer without it is better than none.

use super::Control;
use super::snapshots::snapshot_views;
use crate::cluster::{HostCondition, Locals, View};
use crate::directory::shared::record::{ClusterDisk, ClusterHost};
use crate::words;
use ::cluster::{Claim, Compliance, Condition, DeviceState, Holder};
use api::types::{
    AllowedView, AttachedView, ComplianceView, CompressedView, CopyView, HostSummary, LimitView, LocalView,
    MemberView, MoveView, RebuildDirectory, RebuildView, ReplicationView, ResyncView, ResyncsView,
    RowChecksView, SnapshotView, StandingWord, VersionsView,
};
use base::units::format_bytes;
use base::{ComponentId, DiskId, HostId, NodeId};
use engine::ClusterState;
use failure::Failure;
use placement::ReadLocality;
use replication::{Member, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the hosts that answer know.
pub(super) struct Gathered {
    pub(super) view: Arc<View>,
    me: HostId,
    pub(super) state: ClusterState,
    locals: Locals,
    /// Where each host's answer tells of the disks that it owns.
    owned: BTreeMap<(HostId, String), usize>,
    /// In words, of disks that are not whole or move: which copies do not count, why, and what comes next.
    told: BTreeMap<DiskId, (Condition, String)>,
    /// Whether disks are as their policies say.
    compliance: BTreeMap<DiskId, Compliance>,
    /// Disks that move into another layout, in words and figures.
    moves: BTreeMap<DiskId, (String, MoveView)>,
}

/// What a host knows alone, with names by identity.
pub struct NamedLocal {
    pub local: LocalView,
    pub disks: BTreeMap<String, String>,
    pub hosts: BTreeMap<String, String>,
    /// Ends of certificates in seconds since 1970: of hosts by name, of authorities by fingerprint.
    pub certificates: Vec<(Holder, String, u64)>,
    /// Whether disks are as their policies say, or move to be, by name.
    pub compliance: Vec<(String, bool)>,
    /// The disks that move into another layout and are owned here, by name.
    pub moves: Vec<(String, MoveView)>,
}

impl Control {
    /// All hosts of the cluster.
    ///
    /// # Errors
    /// When its engine is gone.
    pub async fn hosts(&self) -> Result<Vec<HostSummary>, Failure> {
        let cluster = &self.cluster;
        let state = cluster.state().await?;
        let view = cluster.view();
        let conditions = cluster.host_conditions(&state);
        let summary = |host: &Arc<ClusterHost>| {
            let is_this = host.record.id == cluster.me;
            let is_reachable = cluster.reaches(&state, host);
            host_summary(host, is_this, is_reachable, conditions.get(&host.record.id))
        };
        let mut hosts: Vec<HostSummary> = view.hosts.values().map(|known| summary(&known.host)).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(hosts)
    }

    /// What this host alone knows.
    ///
    /// # Errors
    /// When its engine is gone.
    pub async fn local(&self) -> Result<LocalView, Failure> {
        let cluster = &self.cluster;
        Ok(cluster.local(&cluster.state().await?))
    }

    /// Which releases the hosts run, and the level of the records.
    pub fn versions(&self) -> VersionsView {
        self.cluster.versions()
    }

    /// Raises the level of the records, if all hosts understand the next.
    ///
    /// # Errors
    /// When hosts are in the way, or the directory does not answer.
    pub async fn upgrade(&self) -> Result<VersionsView, Failure> {
        self.cluster.upgrade().await
    }

    /// What this host and its devices know of the directory.
    ///
    /// # Errors
    /// When it is to be sealed and its directory answers.
    pub async fn give_copy(&self, seals: bool) -> Result<CopyView, Failure> {
        self.cluster.give_copy(seals).await
    }

    /// Makes a new directory for a cluster that lost its own, or says what would come of it.
    ///
    /// # Errors
    /// When it is not lost, hosts are missing, or it cannot be written.
    pub async fn rebuild_directory(&self, wanted: &RebuildDirectory) -> Result<RebuildView, Failure> {
        self.cluster.rebuild_directory(wanted).await
    }

    /// The same for `/metrics`, with the names of the disks that it owns and of the hosts that it knows.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn named_local(&self) -> Result<NamedLocal, Failure> {
        let cluster = &self.cluster;
        let local = cluster.local(&cluster.state().await?);
        let view = cluster.view();
        let disks = view.disks.values().map(|disk| (disk.record.id.to_string(), disk.record.name.clone()));
        let hosts = view.hosts.values().map(|one| {
            let record = &one.host.record;
            (record.id.to_string(), record.name.clone())
        });
        let certificates = cluster.lifespans().into_iter().map(|one| {
            let name = match &one.holder {
                Holder::Host(id) => view.host_name(*id),
                Holder::Authority(print) => print.clone(),
            };
            (one.holder, name, one.ends.0 / 1_000_000_000)
        });
        let compliance = cluster.compliance().into_iter().filter_map(|(id, found)| {
            let name = view.disks.get(&id)?.record.name.clone();
            Some((name, !matches!(found, Compliance::NotCompliant(_))))
        });
        let owner = |disk: &ClusterDisk| disk.record.roster.owner.map(|owner| owner.node.host);
        let moves = cluster.moves(&Locals::from([(cluster.me, local.clone())])).into_iter();
        let moves = moves.filter_map(|(id, (_, figures))| {
            let disk = view.disks.get(&id).filter(|disk| owner(disk) == Some(cluster.me))?;
            Some((disk.record.name.clone(), figures))
        });
        Ok(NamedLocal {
            compliance: compliance.collect(),
            moves: moves.collect(),
            local,
            disks: disks.collect(),
            hosts: hosts.collect(),
            certificates: certificates.collect(),
        })
    }

    /// What is copied for disks, and what that waits for.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn resync(&self) -> Result<ResyncsView, Failure> {
        let cluster = &self.cluster;
        let state = cluster.state().await?;
        let locals = cluster.locals(&state).await;
        cluster.refresh_sizes_of(&locals);
        Ok(cluster.resyncs(&state, &locals))
    }

    /// Asks all hosts that can be reached.
    pub(super) async fn gather(&self) -> Result<Gathered, Failure> {
        let cluster = &self.cluster;
        let state = cluster.state().await?;
        let view = cluster.view();
        let locals = cluster.locals(&state).await;
        let told = cluster.explain(&state, &locals);
        let compliance = cluster.compliance();
        let moves = cluster.moves(&locals);
        let of_host = |(host, local): (&HostId, &LocalView)| {
            let host = *host;
            local
                .owned
                .iter()
                .enumerate()
                .map(move |(index, one)| ((host, one.disk.clone()), index))
                .collect::<Vec<_>>()
        };
        let owned = locals.iter().flat_map(of_host).collect();
        Ok(Gathered { view, me: cluster.me, state, locals, owned, told, compliance, moves })
    }
}

impl Gathered {
    fn is_up(&self, node: NodeId) -> bool {
        node.host == self.me || self.state.links.get(&node) == Some(&true)
    }

    /// The disk's record.
    pub(super) fn disk(&self, id: DiskId) -> Option<&Arc<ClusterDisk>> {
        self.view.disks.get(&id)
    }

    /// Components that stand in for others of a disk.
    pub(super) fn stand_ins(&self, id: DiskId) -> Vec<layout::Component> {
        let disk = self.disk(id);
        disk.map_or_else(Vec::new, |disk| disk.record.stand_ins.iter().map(|one| one.component).collect())
    }

    /// What the owner of a disk says of it, if it could be asked.
    fn owner(&self, id: DiskId) -> Option<&ReplicationView> {
        let owner = self.disk(id)?.record.roster.owner?;
        let index = *self.owned.get(&(owner.node.host, id.to_string()))?;
        self.locals.get(&owner.node.host)?.owned.get(index)
    }

    /// The name of the host that owns a disk.
    pub(super) fn owner_name(&self, id: DiskId) -> Option<String> {
        Some(self.view.host_name(self.disk(id)?.record.roster.owner?.node.host))
    }

    /// At which hosts clients have a disk.
    pub(super) fn attached(&self, id: DiskId) -> Vec<AttachedView> {
        let claims = self.view.attached.get(&id).into_iter().flat_map(|attached| &attached.claims);
        let known = claims.filter(|claim| self.view.host(claim.host).is_some());
        let view = |claim: &Claim| {
            let local = self.locals.get(&claim.host);
            let count = local.map(|local| local.attached.get(&id.to_string()).copied().unwrap_or_default());
            AttachedView { host: self.view.host_name(claim.host), clients: count }
        };
        known.map(view).collect()
    }

    /// Who alone may attach to a disk.
    pub(super) fn allowed(&self, id: DiskId) -> Option<AllowedView> {
        let limit = self.disk(id)?.record.access.limit.as_ref()?;
        Some(AllowedView {
            anybody: false,
            people: limit.people.iter().cloned().collect(),
            hosts: limit.hosts.iter().map(|host| self.view.host_name(*host)).collect(),
        })
    }

    /// What a disk is a clone of.
    pub(super) fn clone_of(&self, id: DiskId) -> Option<String> {
        let origin = self.disk(id)?.record.origin?;
        let Some(of) = self.disk(origin.disk) else {
            return Some(format!("{}@{}", origin.disk, origin.snapshot));
        };
        let named = of.record.snapshots.taken.iter().find(|one| one.number == origin.snapshot);
        let snapshot = named.map_or_else(|| origin.snapshot.to_string(), |one| one.name.clone());
        Some(format!("{}@{snapshot}", of.record.name))
    }

    /// Whether a disk is as its policy says.
    pub(super) fn compliance(&self, id: DiskId) -> ComplianceView {
        let found = self.compliance.get(&id);
        found.map_or_else(ComplianceView::default, |found| ComplianceView {
            state: words::compliance(found),
            causes: found.causes(),
        })
    }

    /// What the limits of a disk do, as its owner says.
    pub(super) fn limit(&self, id: DiskId) -> Option<LimitView> {
        self.owner(id)?.limit.clone()
    }

    /// What comparing the rows of a disk has found, as its owner says.
    pub(super) fn row_checks(&self, id: DiskId) -> Option<RowChecksView> {
        self.owner(id)?.row_checks.clone()
    }

    /// Where guests of a disk read, in words.
    pub(super) fn reads_from(&self, id: DiskId, locality: ReadLocality) -> String {
        let Some(owner) = self.owner(id) else { return String::new() };
        let host = self.owner_name(id).unwrap_or_default();
        let time =
            |one: &MemberView| one.read_us.map_or_else(String::new, |us| format!(" ({:.1} ms)", us / 1e3));
        let here = |one: &&MemberView| {
            let component = one.component.parse().ok();
            let member = component.and_then(|id_of| self.disk(id)?.record.roster.member(id_of));
            member.is_some_and(|member| {
                member.standing == Standing::Active && self.view.host_name(member.node.host) == host
            })
        };
        let own: Vec<&MemberView> = owner.members.iter().filter(here).collect();
        let slow = own.iter().find(|one| one.is_passed_over);
        match (locality, own.is_empty(), slow) {
            (ReadLocality::Spread, ..) => "all copies, by offset".to_owned(),
            (_, true, _) => format!("all copies, by offset: host {host} has none"),
            (_, false, Some(slow)) => {
                format!("other hosts: the copy on host {host} is slow{}", time(slow))
            }
            (_, false, None) => format!("the copy on host {host}"),
        }
    }

    fn member_view(&self, id: DiskId, component: ComponentId) -> Option<&MemberView> {
        let text = component.to_string();
        self.owner(id)?.members.iter().find(|one| one.component == text)
    }

    /// Whether a component of a disk is an active copy.
    pub(super) fn is_active(&self, id: DiskId, component: ComponentId) -> bool {
        let member = self.disk(id).and_then(|disk| disk.record.roster.member(component));
        member.is_some_and(|member| member.standing == Standing::Active)
    }

    /// What is to be said of one component.
    pub(super) fn component(&self, id: DiskId, component: ComponentId) -> Option<ComponentStanding> {
        let member = self.disk(id)?.record.roster.member(component)?;
        let told = self.member_view(id, component);
        let local = self.locals.get(&member.node.host);
        let used = local.and_then(|local| local.used_bytes.get(&component.to_string()));
        Some(ComponentStanding {
            host: self.view.host_name(member.node.host),
            place: usize::from(member.place),
            standing: words::standing(member.standing),
            stands_in_for: member.stands_in_for().map(|of| of.to_string()),
            trouble: self.trouble(member, told),
            resync: told.and_then(|told| told.resync.clone()),
            used_bytes: used.copied(),
        })
    }

    fn trouble(&self, member: &Member, told: Option<&MemberView>) -> Option<String> {
        if !self.is_up(member.node) {
            return Some("its host cannot be reached".to_owned());
        }
        if member.standing == Standing::Active {
            return None;
        }
        told.and_then(|told| told.trouble.clone())
    }

    /// Bytes of a disk that are backed by space: of every place the copy that has most.
    pub(super) fn allocated_bytes(&self, id: DiskId) -> u64 {
        let Some(disk) = self.disk(id) else { return 0 };
        crate::cluster::used_bytes_of(disk, &self.locals).iter().sum()
    }

    /// What its compressed blocks take, with all copies.
    pub(super) fn compressed(&self, id: DiskId) -> Option<CompressedView> {
        self.disk(id).and_then(|disk| crate::cluster::compressed_of(&disk.record, &self.locals))
    }

    /// Its snapshots, the oldest first.
    pub(super) fn snapshots(&self, id: DiskId) -> Vec<SnapshotView> {
        self.disk(id).map_or_else(Vec::new, |disk| snapshot_views(&disk.record, &self.locals))
    }

    /// Why a disk cannot be used now, if so.
    pub(super) fn unavailable(&self, id: DiskId) -> Option<String> {
        let disk = self.disk(id)?;
        let places = 0..disk.record.roster.place_count() as u16;
        let lost = places
            .filter(|place| !self.has_pair(disk, *place))
            .map(|place| (place, self.active_of(disk, place)))
            .find(|(place, active)| {
                let up =
                    active.iter().filter(|member| self.is_up(member.node)).map(|member| member.component);
                disk.record.left(usize::from(*place), up) == 0
            })
            .map(|(_, active)| active);
        let Some(lost) = lost else { return self.held_up(id) };
        let mut hosts: Vec<String> =
            lost.iter().map(|member| self.view.host_name(member.node.host)).collect();
        hosts.sort();
        hosts.dedup();
        Some(format!("it waits for host {}, which has the last current copy", hosts.join(" or ")))
    }

    /// Why a disk whose copies can all be reached cannot be used: it diverged, or its owner waits for the directory.
    fn held_up(&self, id: DiskId) -> Option<String> {
        let (_, line) = self.told.get(&id).filter(|(condition, _)| *condition == Condition::Inaccessible)?;
        Some(line.strip_prefix("cannot be used: ").unwrap_or(line).to_owned())
    }

    /// Whether an absent component of a place and its stand-in can both be reached: together they have all.
    fn has_pair(&self, disk: &ClusterDisk, place: u16) -> bool {
        let roster = &disk.record.roster;
        let is_pair = |member: &Member| {
            let stand_in = roster.stand_in_of(member.component);
            member.standing == Standing::Absent
                && self.is_up(member.node)
                && stand_in.is_some_and(|stand_in| self.is_up(stand_in.node))
        };
        roster.members.iter().any(|member| member.place == place && is_pair(member))
    }

    fn active_of<'a>(&self, disk: &'a ClusterDisk, place: u16) -> Vec<&'a Member> {
        let of_place = disk.record.roster.members.iter().filter(|member| member.place == place);
        of_place.filter(|member| member.standing == Standing::Active).collect()
    }

    /// In words: which copies of a disk do not count or cannot be reached, why, and what comes next.
    pub(super) fn not_whole(&self, id: DiskId) -> Vec<String> {
        let told = self.told.get(&id).filter(|(condition, _)| *condition != Condition::Whole);
        told.map(|(_, line)| line.clone()).into_iter().collect()
    }

    /// How far a disk is that moves into another layout.
    pub(super) fn moving(&self, id: DiskId) -> Option<MoveView> {
        self.moves.get(&id).map(|(_, figures)| figures.clone())
    }

    /// In words: what goes on with a disk that is whole, and what becomes of its size and its layout.
    pub(super) fn under_way(&self, id: DiskId) -> Option<String> {
        let told = self.told.get(&id).filter(|(condition, _)| *condition == Condition::Whole);
        let record = self.disk(id).map(|disk| &disk.record);
        let growth = record.and_then(|record| record.growth.as_ref());
        let moves = self.moves.get(&id).map(|(line, _)| line.clone());
        let growth = growth.filter(|_| moves.is_none());
        let growth = growth.map(|growth| format!("it grows to {}", format_bytes(growth.size))).or(moves);
        let surplus = record.and_then(|record| record.surplus);
        let surplus = surplus.map(|_| "it gives back what stood beyond its end".to_owned());
        let lines: Vec<String> =
            told.map(|(_, line)| line.clone()).into_iter().chain(growth).chain(surplus).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// What is said of one component of a cluster's disk.
pub(super) struct ComponentStanding {
    pub(super) host: String,
    pub(super) place: usize,
    pub(super) standing: StandingWord,
    /// The component that it stands in for, or is to.
    pub(super) stands_in_for: Option<String>,
    pub(super) trouble: Option<String>,
    pub(super) resync: Option<ResyncView>,
    pub(super) used_bytes: Option<u64>,
}

impl ComponentStanding {
    /// In a line of a layout.
    pub(super) fn text(&self) -> String {
        let trouble = self.trouble.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let resync =
            self.resync.as_ref().map_or_else(String::new, |one| format!(", resync {}", resync_text(one)));
        let of = self.stands_in_for.as_ref().map_or_else(String::new, |of| format!(", for {of}"));
        format!("{}{of}{trouble}{resync}", self.standing)
    }
}

/// `120 MiB copied, 1 GiB left at 80 MiB/s: 13 s`.
fn resync_text(resync: &ResyncView) -> String {
    let (copied, left) = (format_bytes(resync.copied_bytes), format_bytes(resync.remaining_bytes));
    match (resync.bytes_per_second, resync.seconds_left) {
        (Some(pace), Some(seconds)) => {
            format!("{copied} copied, {left} left at {}/s: {seconds:.0} s", format_bytes(pace as u64))
        }
        _ => format!("{copied} copied, {left} left"),
    }
}

fn host_summary(
    host: &ClusterHost,
    is_this: bool,
    is_reachable: bool,
    condition: Option<&HostCondition>,
) -> HostSummary {
    let record = &host.record;
    let failure = |device: &::cluster::DeviceRecord| match &device.state {
        DeviceState::InService => None,
        DeviceState::Away { .. } => Some(format!("{}: it is not there", device.name)),
        DeviceState::Failed { error, .. } => Some(format!("{}: {error}", device.name)),
    };
    HostSummary {
        name: record.name.clone(),
        id: record.id.to_string(),
        version: record.release.clone(),
        is_this,
        is_reachable,
        state: condition.map(|condition| condition.state).unwrap_or_default(),
        liveness: condition.map_or_else(String::new, |condition| condition.liveness.clone()),
        maintenance: condition.and_then(|condition| condition.maintenance.clone()),
        peers: host.peers().collect::<Vec<_>>().join(" "),
        api: host.api.clone(),
        nbd: host.nbd.clone(),
        fault_domain: record.fault_domain.clone(),
        device_count: record.devices.len(),
        capacity_bytes: record.devices.iter().map(|device| device.capacity_bytes).sum(),
        free_bytes: record.devices.iter().map(|device| device.free_bytes).sum(),
        component_count: record.devices.iter().map(|device| device.component_count).sum(),
        failures: record.devices.iter().filter_map(failure).collect(),
    }
}
