//! What the API shows of a cluster: hosts, who owns a disk, which components count, and what is not whole.
//!
//! What only another host knows (the progress of a disk that it owns, the space its components take) is asked of its API,
//! with little patience: an answer without it is better than none.

use super::Control;
use crate::api::types::{
    EventView, HostSummary, LocalView, MemberView, PeerCountersView, ReplicationView, ResyncView,
};
use crate::cluster::{Cluster, View};
use crate::directory::shared::record::{ClusterDisk, HostEntry};
use crate::engine::ClusterState;
use crate::failure::{Code, Failure};
use crate::limits::HOST_ANSWER_WAIT;
use base::units::format_bytes;
use base::{ComponentId, DiskId, HostId, NodeId};
use replication::owner::{MemberState, OwnerState, Phase};
use replication::{Member, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the hosts that answer know.
pub(super) struct Gathered {
    pub(super) view: Arc<View>,
    me: NodeId,
    state: ClusterState,
    locals: BTreeMap<HostId, LocalView>,
}

impl Control {
    fn cluster(&self) -> Result<&Arc<Cluster>, Failure> {
        self.cluster.as_ref().ok_or_else(|| {
            Failure::refused("this host stands alone").hint("a [cluster] section makes it one of several")
        })
    }

    /// All hosts of the cluster.
    ///
    /// # Errors
    /// When this host stands alone, or its engine is gone.
    pub async fn hosts(&self) -> Result<Vec<HostSummary>, Failure> {
        let cluster = self.cluster()?;
        let state = cluster.state().await?;
        let view = cluster.view();
        let summary = |host: &Arc<HostEntry>| {
            let is_this = host.node() == cluster.me;
            host_summary(host, is_this, is_this || state.links.get(&host.node()) == Some(&true))
        };
        let mut hosts: Vec<HostSummary> = view.hosts.values().map(|host| summary(&host.entry)).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(hosts)
    }

    /// What this host alone knows.
    ///
    /// # Errors
    /// When it stands alone, or its engine is gone.
    pub async fn local(&self) -> Result<LocalView, Failure> {
        let cluster = self.cluster()?;
        Ok(local_view(cluster, &cluster.state().await?))
    }

    /// What happened to the disks that this host owned.
    ///
    /// # Errors
    /// When it stands alone.
    pub fn events(&self) -> Result<Vec<EventView>, Failure> {
        Ok(self.cluster()?.events.all())
    }

    /// Asks all hosts that can be reached; nothing on a host alone.
    pub(super) async fn gather(&self) -> Result<Option<Gathered>, Failure> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        let state = cluster.state().await?;
        let view = cluster.view();
        let mut asked = Vec::new();
        for host in view.hosts.values().filter(|host| state.links.get(&host.entry.node()) == Some(&true)) {
            let host = Arc::clone(&host.entry);
            asked.push((host.id, tokio::spawn(async move { ask_host(&host).await })));
        }
        let mut locals = BTreeMap::from([(cluster.me.host, local_view(cluster, &state))]);
        for (id, answer) in asked {
            if let Ok(Ok(local)) = answer.await {
                locals.insert(id, local);
            }
        }
        Ok(Some(Gathered { view, me: cluster.me, state, locals }))
    }
}

async fn ask_host(host: &HostEntry) -> Result<LocalView, Failure> {
    let silent = || Failure::new(Code::Unreachable, format!("host {} does not answer", host.name));
    let address = host.api.first().ok_or_else(silent)?;
    let client = crate::client::Client::parse(address)?;
    let answer = tokio::time::timeout(HOST_ANSWER_WAIT, client.get("/api/v1/cluster/local")).await;
    answer.map_err(|_| silent())?
}

impl Gathered {
    fn is_up(&self, node: NodeId) -> bool {
        node == self.me || self.state.links.get(&node) == Some(&true)
    }

    /// The disk's record.
    pub(super) fn disk(&self, id: DiskId) -> Option<&Arc<ClusterDisk>> {
        self.view.disks.get(&id)
    }

    /// What the owner of a disk says of it, if it could be asked.
    fn owner(&self, id: DiskId) -> Option<&ReplicationView> {
        let owner = self.disk(id)?.roster.owner?;
        let text = id.to_string();
        self.locals.get(&owner.node.host)?.owned.iter().find(|one| one.disk == text)
    }

    /// The name of the host that owns a disk.
    pub(super) fn owner_name(&self, id: DiskId) -> Option<String> {
        Some(self.view.host_name(self.disk(id)?.roster.owner?.node.host))
    }

    fn member_view(&self, id: DiskId, component: ComponentId) -> Option<&MemberView> {
        let text = component.to_string();
        self.owner(id)?.members.iter().find(|one| one.component == text)
    }

    /// What is to be said of one component.
    pub(super) fn component(&self, id: DiskId, component: ComponentId) -> Option<ComponentStanding> {
        let member = self.disk(id)?.roster.member(component)?;
        let told = self.member_view(id, component);
        let local = self.locals.get(&member.node.host);
        let used = local.and_then(|local| local.used_bytes.get(&component.to_string()));
        Some(ComponentStanding {
            host: self.view.host_name(member.node.host),
            place: usize::from(member.place),
            standing: standing_text(member.standing).to_owned(),
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
        let mut places: BTreeMap<u16, u64> = BTreeMap::new();
        for member in &disk.roster.members {
            let local = self.locals.get(&member.node.host);
            let used = local.and_then(|local| local.used_bytes.get(&member.component.to_string()));
            let place = places.entry(member.place).or_default();
            *place = used.copied().unwrap_or(0).max(*place);
        }
        places.values().sum()
    }

    /// Why a disk cannot be used now, if so.
    pub(super) fn unavailable(&self, id: DiskId) -> Option<String> {
        let disk = self.disk(id)?;
        let places = 0..disk.roster.place_count() as u16;
        let lost = places
            .map(|place| self.active_of(disk, place))
            .find(|active| !active.iter().any(|member| self.is_up(member.node)))?;
        let mut hosts: Vec<String> =
            lost.iter().map(|member| self.view.host_name(member.node.host)).collect();
        hosts.sort();
        hosts.dedup();
        Some(format!("it waits for host {}, which has the last current copy", hosts.join(" or ")))
    }

    fn active_of<'a>(&self, disk: &'a ClusterDisk, place: u16) -> Vec<&'a Member> {
        let of_place = disk.roster.members.iter().filter(|member| member.place == place);
        of_place.filter(|member| member.standing == Standing::Active).collect()
    }

    /// In words: which copies of a disk do not count or cannot be reached, why, and when they will.
    pub(super) fn not_whole(&self, id: DiskId) -> Vec<String> {
        let Some(disk) = self.disk(id) else { return Vec::new() };
        let mut lines = Vec::new();
        for member in &disk.roster.members {
            let told = self.member_view(id, member.component);
            let host = self.view.host_name(member.node.host);
            let trouble = self.trouble(member, told);
            let resync = told.and_then(|told| told.resync.as_ref());
            let line = match (member.standing, trouble, resync) {
                (Standing::Active, None, _) => continue,
                (Standing::Active, Some(_), _) => format!("the copy on host {host} cannot be reached"),
                (_, _, Some(resync)) => {
                    format!("the copy on host {host} is being brought up to date: {}", resync_text(resync))
                }
                (standing, Some(why), None) => {
                    format!("the copy on host {host} is {}: {why}", standing_text(standing))
                }
                (standing, None, None) => {
                    format!(
                        "the copy on host {host} is {}, and waits to be brought up to date",
                        standing_text(standing)
                    )
                }
            };
            lines.push(line);
        }
        if let Some(owner) = self.owner(id).filter(|owner| owner.waits_for_directory && !lines.is_empty()) {
            lines.push(format!("its owner waits for the directory, in epoch {}", owner.epoch));
        }
        lines
    }
}

/// What is said of one component of a cluster's disk.
pub(super) struct ComponentStanding {
    pub(super) host: String,
    pub(super) place: usize,
    pub(super) standing: String,
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
        format!("{}{trouble}{resync}", self.standing)
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

fn standing_text(standing: Standing) -> &'static str {
    match standing {
        Standing::Active => "active",
        Standing::Absent => "absent",
        Standing::Stale => "stale",
    }
}

fn host_summary(host: &HostEntry, is_this: bool, is_reachable: bool) -> HostSummary {
    let failure = |device: &crate::directory::shared::record::DeviceEntry| {
        Some(format!("{}: {}", device.path, device.failure.as_ref()?))
    };
    HostSummary {
        name: host.name.clone(),
        id: host.id.to_string(),
        version: host.version.clone(),
        is_this,
        is_reachable,
        peers: host.peers.to_string(),
        api: host.api.clone(),
        nbd: host.nbd.clone(),
        fault_domain: host.fault_domain.clone(),
        device_count: host.devices.len(),
        capacity_bytes: host.devices.iter().map(|device| device.capacity_bytes).sum(),
        free_bytes: host.devices.iter().map(|device| device.free_bytes).sum(),
        component_count: host.devices.iter().map(|device| device.component_count).sum(),
        failures: host.devices.iter().filter_map(failure).collect(),
    }
}

fn local_view(cluster: &Cluster, state: &ClusterState) -> LocalView {
    let owned = state
        .disks
        .iter()
        .filter_map(|(id, disk)| disk.owner.as_ref().map(|owner| replication_view(cluster, *id, owner)));
    let counters = state.counters;
    LocalView {
        host: cluster.me.host.to_string(),
        owned: owned.collect(),
        used_bytes: state.used_bytes.iter().map(|(id, bytes)| (id.to_string(), *bytes)).collect(),
        links: state.links.iter().map(|(node, is_up)| (node.host.to_string(), *is_up)).collect(),
        directory_away: cluster.directory_away(),
        peers: PeerCountersView { refused: counters.refused, garbage: counters.garbage, slow: counters.slow },
    }
}

fn replication_view(cluster: &Cluster, id: DiskId, owner: &OwnerState) -> ReplicationView {
    ReplicationView {
        disk: id.to_string(),
        phase: match owner.phase {
            Phase::Claiming => "claiming",
            Phase::Opening => "opening",
            Phase::Serving => "serving",
            Phase::Releasing => "releasing",
            Phase::Ended => "ended",
        }
        .to_owned(),
        epoch: owner.epoch,
        waits_for_directory: owner.waits_for_directory,
        copied_bytes: owner.copied_bytes,
        repaired_blocks: owner.repaired_blocks,
        members: owner.members.iter().map(|member| member_view(cluster, member)).collect(),
    }
}

fn member_view(cluster: &Cluster, member: &MemberState) -> MemberView {
    let resync = member.resync.map(|(copied_bytes, remaining_bytes)| {
        let pace = cluster.pace(member.component).filter(|pace| *pace > 0.0);
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
        resync,
        trouble: member.trouble.map(|why| why.to_string()),
    }
}
