//! What is not whole, why, and what comes next: asked of the crate `cluster`, with what is known now.

use super::{Cluster, Locals};
use crate::words;
use ::cluster::{
    Absence, Code, Compliance, Condition, DiskRecord, Finding, Holder, Known, Lifespan, Liveness,
    Maintenance, MovesUnderWay, Provisioned, Reason, Remedy, Subject, Surroundings, UNKNOWN_TIME, condition,
    explain_disk, explain_move, findings, progress, remedies, standstill,
};
use api::types::{BalanceView, BalanceWord, HostWord, MoveView, ReplicationView};
use base::units::format_bytes;
use base::{DiskId, HostId};
use engine::ClusterState;
use placement::Balance;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a host is, in words.
pub struct HostCondition {
    /// Whether it is there.
    pub state: HostWord,
    /// The same in words, with the time.
    pub liveness: String,
    /// Whether it is being serviced, and what has to leave it first.
    pub maintenance: Option<String>,
}

/// A finding, as it is told.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// It.
    pub finding: Finding,
    /// The name of its subject: `disk web`.
    pub subject: String,
    /// What can be asked for to remedy it.
    pub remedies: Vec<Remedy>,
}

impl Cluster {
    /// One line for every disk of which there is something to say, and how it is.
    pub fn explain(&self, state: &ClusterState, locals: &Locals) -> BTreeMap<DiskId, (Condition, String)> {
        self.refresh(state);
        let keeper = self.keeper();
        let (facts, known) = (&keeper.facts, keeper.known());
        let line = |(id, disk): (&DiskId, &DiskRecord)| {
            if let Some((component, epoch)) = state.disks.get(id).and_then(|disk| disk.promised) {
                let host =
                    disk.roster.member(component).map(|member| self.view().host_name(member.node.host));
                let host = host.unwrap_or_else(|| "another host".to_owned());
                let text = format!(
                    "cannot be used: its record is of epoch {}, and the component on {host} knows epoch {epoch}: the directory is older \
                     than the devices; make it anew with `drystone cluster rebuild-directory`",
                    disk.roster.epoch
                );
                return Some((*id, (Condition::Inaccessible, text)));
            }
            let pace = pace_of(*id, disk, locals);
            let line = explain_disk(facts, disk, &known, pace)?;
            Some((*id, (condition(facts, disk, known.directory), line)))
        };
        facts.disks.iter().filter_map(line).collect()
    }

    /// How all hosts are.
    pub fn host_conditions(&self, state: &ClusterState) -> BTreeMap<HostId, HostCondition> {
        self.refresh(state);
        let keeper = self.keeper();
        let now = keeper.now();
        let condition = |(id, host): (&HostId, &::cluster::HostRecord)| {
            let ago = |since: base::Instant| match since {
                base::Instant(0) => UNKNOWN_TIME.to_owned(),
                since => text(now.since(since)),
            };
            let liveness = match keeper.facts.liveness(*id) {
                Liveness::Alive => "alive".to_owned(),
                Liveness::Suspect { since } => format!("suspect for {}", ago(since)),
                Liveness::Away { since, why: Absence::Unexpected } => format!("away for {}", ago(since)),
                Liveness::Away { since, why: Absence::Maintenance } => {
                    format!("away for {}, in maintenance", ago(since))
                }
            };
            let maintenance = match host.maintenance {
                Maintenance::Off => None,
                Maintenance::On { mode, since } => {
                    Some(format!("in maintenance ({mode}) for {}", ago(since)))
                }
                Maintenance::Entering { mode, .. } => {
                    let left = progress(&keeper.facts, *id);
                    Some(format!(
                        "entering maintenance ({mode}): {} components with {} of {} disks have to leave",
                        left.components_left,
                        format_bytes(left.bytes_left),
                        left.disks_left
                    ))
                }
            };
            (*id, HostCondition { state: words::host(keeper.facts.liveness(*id)), liveness, maintenance })
        };
        keeper.facts.hosts.iter().map(condition).collect()
    }

    /// How even the devices are; its list of devices is empty.
    pub fn balance(&self, state: &ClusterState) -> BalanceView {
        self.refresh(state);
        let mode = self.view().settings.balance;
        let keeper = self.keeper();
        let incoming = keeper.facts.disks.values().flat_map(|disk| &disk.incoming);
        let decided_by = keeper.coordinator();
        let knows = decided_by == Some(self.me) && keeper.has_balanced();
        BalanceView {
            mode,
            state: match keeper.balancer.balance() {
                _ if !knows => BalanceWord::Unknown,
                Balance::Even => BalanceWord::Even,
                Balance::Proactive => BalanceWord::Uneven,
                Balance::Reactive => BalanceWord::Full,
            },
            decided_by: decided_by.map(|id| keeper.facts.host_name(id)),
            paused: keeper.balancer.pause().filter(|_| knows).map(ToString::to_string),
            stuck: keeper.balancer.stuck().filter(|_| knows).map(str::to_owned),
            moving: incoming.filter(|one| one.reason == Reason::Balance).count(),
            devices: Vec::new(),
        }
    }

    /// Whether disks are as their policies say, as this host knows it.
    pub fn compliance(&self) -> BTreeMap<DiskId, Compliance> {
        let keeper = self.keeper();
        let (facts, known) = (&keeper.facts, keeper.known());
        let moves = MovesUnderWay::of(facts.disks.values());
        let found = facts
            .disks
            .values()
            .filter_map(|disk| Some((disk.id, ::cluster::compliance(facts, disk, &known, &moves)?)));
        found.collect()
    }

    /// The disks that move into another layout: what there is to say of each in one line and in figures.
    pub fn moves(&self, locals: &Locals) -> BTreeMap<DiskId, (String, MoveView)> {
        let keeper = self.keeper();
        let (facts, now) = (&keeper.facts, keeper.now());
        let view = |(id, disk): (&DiskId, &DiskRecord)| {
            let moving = disk.moving.as_ref()?;
            let (moved_bytes, all) = disk.moved_bytes()?;
            let remaining_bytes = all - moved_bytes;
            let stands_still = standstill(facts, disk, now);
            let goes_on = !moving.is_paused && stands_still.is_none();
            let owned = owned_of(*id, disk, locals).and_then(|told| told.moving.as_ref());
            let pace = owned.and_then(|told| told.bytes_per_second).filter(|_| goes_on);
            let line = explain_move(facts, disk, pace.map(|pace| pace as u64), now)?;
            let figures = MoveView {
                policy: if moving.is_back { disk.policy.short() } else { moving.policy.short() },
                is_back: moving.is_back,
                is_paused: moving.is_paused,
                moved_bytes,
                remaining_bytes,
                bytes_per_second: pace,
                seconds_left: pace.map(|pace| remaining_bytes as f64 / pace),
                stands_still,
            };
            Some((*id, (line, figures)))
        };
        facts.disks.iter().filter_map(view).collect()
    }

    /// Space of the cluster, and of each host.
    pub fn provisioned(&self, state: &ClusterState) -> (Provisioned, BTreeMap<HostId, Provisioned>) {
        self.refresh(state);
        let keeper = self.keeper();
        (Provisioned::of(&keeper.facts), Provisioned::of_hosts(&keeper.facts))
    }

    /// All that is wrong.
    pub async fn findings(&self, state: &ClusterState) -> Vec<Diagnosis> {
        self.refresh(state);
        self.refresh_sizes(state, false).await;
        let certificates = self.lifespans();
        let levels = self.view().record_levels();
        let silent_members = self.silent_members();
        let keeper = self.keeper();
        let Known { now, directory, repairs } = keeper.known();
        let around = Surroundings {
            now,
            directory,
            repairs,
            balancer: &keeper.balancer,
            silent_members: &silent_members,
            links: &keeper.links,
            certificates: &certificates,
            levels: &levels,
        };
        let mut found = findings(&keeper.facts, &around);
        if let Some((why, remedy)) = self.directory_remedy() {
            // It answers, and has lost what this host knows: that is to be said, and what to do about it.
            for finding in found.iter_mut().filter(|one| one.code == Code::DirectoryUnreachable) {
                finding.cause = format!("{}; {why}", finding.cause);
                finding.remedy.clone_from(&remedy);
            }
        }
        let told = found.into_iter().map(|finding| Diagnosis {
            subject: subject_name(&keeper.facts, finding.subject),
            remedies: remedies(&keeper.facts, &finding),
            finding,
        });
        told.collect()
    }
}

impl Cluster {
    /// The certificates of hosts and authorities, as records tell of them.
    pub fn lifespans(&self) -> Vec<Lifespan> {
        let view = self.view();
        let hosts = view.hosts.values().filter_map(|known| {
            let told = known.host.certificate.as_ref()?;
            Some(Lifespan {
                holder: Holder::Host(known.host.record.id),
                issued: base::Instant(told.issued_ns),
                ends: base::Instant(told.expires_ns),
            })
        });
        let authorities = view.believed.authorities.iter().flat_map(|(_, record)| &record.authorities);
        let authorities = authorities.filter_map(|one| {
            let read = trust::Certificate::from_pem(&one.certificate).ok()?;
            Some(Lifespan {
                holder: Holder::Authority(read.fingerprint().to_string()),
                issued: base::Instant(read.issued_ns()),
                ends: base::Instant(trust::nanoseconds(read.not_after)),
            })
        });
        hosts.chain(authorities).collect()
    }
}

/// What people call what a finding is about.
fn subject_name(facts: &::cluster::View, subject: Subject) -> String {
    match subject {
        Subject::Cluster => "cluster".to_owned(),
        Subject::Host(id) => format!("host {}", facts.host_name(id)),
        Subject::Device(id) => match facts.device(id) {
            Some((host, device)) => format!("device {} of host {}", device.name, host.name),
            None => format!("device {id}"),
        },
        Subject::Disk(id) => {
            let name = facts.disks.get(&id).map(|disk| disk.name.clone());
            format!("disk {}", name.unwrap_or_else(|| id.to_string()))
        }
    }
}

/// What the owner of a disk says of it.
fn owned_of<'a>(id: DiskId, disk: &DiskRecord, locals: &'a Locals) -> Option<&'a ReplicationView> {
    let (owner, text) = (disk.roster.owner?, id.to_string());
    locals.get(&owner.node.host)?.owned.iter().find(|told| told.disk == text)
}

/// Bytes per second at which the owner of a disk copies.
pub(super) fn pace_of(id: DiskId, disk: &DiskRecord, locals: &Locals) -> Option<u64> {
    let told = owned_of(id, disk, locals)?;
    let paces = told.members.iter().filter_map(|member| member.resync.as_ref()?.bytes_per_second);
    let pace = paces.sum::<f64>() as u64;
    (pace > 0).then_some(pace)
}

/// A time for people, in its greatest unit.
fn text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
