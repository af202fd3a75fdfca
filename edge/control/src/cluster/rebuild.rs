//! A lost directory made anew: what every host and its devices know is asked for, `core/cluster` decides, and it is written.
//!
//! Must never begin while a host's directory answers, nor write anything before all that is asked for was given.

use super::Cluster;
use super::pools::client_of;
use crate::config::DirectoryPlace;
use crate::directory::shared::record::{
    AUTHORITIES, CLUSTER, ClusterDisk, ClusterHost, DISKS, HOSTS, LEVEL, NAMES, POLICIES, REVOKED, TOKENS,
    check_level,
};
use crate::directory::shared::{ClusterRecord, Entry, Ground, InEtcd, now_ns};
use crate::events::Kind;
use crate::limits::COPY_WAIT;
use ::cluster::{Kept, Listed, Obstacle, Rebuilt, Restored, Testimony, rebuild};
use api::types::{
    CopyView, KeptCopy, PromisedView, RebuildDirectory, RebuildDisk, RebuildHost, RebuildView, RebuildWord,
    UnknownDisk,
};
use base::{ComponentId, DiskId, HostId};
use failure::{Code, Failure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was gathered.
#[derive(Default)]
struct Heard {
    /// All copies as one.
    kept: Option<Kept<Value>>,
    /// The record of the cluster that it is of.
    cluster: Option<ClusterRecord>,
    /// What each host has, as far as it answered.
    copies: BTreeMap<HostId, (u64, u64)>,
    components: BTreeMap<HostId, BTreeMap<ComponentId, Listed>>,
    /// Hosts whose directory answers.
    content: BTreeSet<HostId>,
    /// Why others did not answer.
    silent: BTreeMap<HostId, String>,
}

/// All that is decided, before it is written.
struct Plan {
    view: RebuildView,
    record: ClusterRecord,
    entries: Vec<Entry>,
}

impl Cluster {
    /// What this host and its devices know of the directory. `seals`: it is for a new one, and nothing of the former one
    /// counts from now on.
    ///
    /// # Errors
    /// When it is to be sealed and the directory answers, or the engine is gone.
    pub async fn give_copy(&self, seals: bool) -> Result<CopyView, Failure> {
        let away = self.directory_away();
        if seals && away.is_none() {
            return Err(Failure::refused("the directory answers this host: it is not lost")
                .hint("see `drystone status` on the host that was asked to rebuild it: it may be that one that does not reach it"));
        }
        // Sealed first: what the components promise after that is from before that, or from the new directory.
        let copy = self.copy().and_then(|copy| crate::system::blocking(|| copy.contents(seals)));
        let state = self.state().await?;
        let promised = |(id, held): (&ComponentId, &engine::HeldComponent)| PromisedView {
            component: id.to_string(),
            disk: held.disk.to_string(),
            promised: held.promised,
            snapshots: held.snapshots.iter().map(|(number, _)| *number).collect(),
        };
        Ok(CopyView {
            host: self.me.to_string(),
            directory_away: away,
            copy: copy.map(|kept| KeptCopy {
                cluster: String::from_utf8_lossy(&kept.bond).into_owned(),
                generation: kept.generation,
                revision: kept.revision,
                records: kept.entries.into_iter().map(|one| (one.key, one.version, one.value)).collect(),
            }),
            components: state.components.iter().map(promised).collect(),
        })
    }

    /// Makes a new directory, or says what would come of it.
    ///
    /// # Errors
    /// When the directory is not lost, hosts are missing that were not left out by name, or it cannot be written.
    pub async fn rebuild_directory(&self, wanted: &RebuildDirectory) -> Result<RebuildView, Failure> {
        let DirectoryPlace::Etcd(place) = &self.config().cluster.directory else {
            return Err(Failure::refused("this cluster's directory does not stand in etcd"));
        };
        if self.directory_away().is_none() {
            return Err(Failure::refused("the directory answers: there is nothing to rebuild"));
        }
        let etcd = InEtcd::new(place)?;
        let ground = etcd.ground(None).await?;
        let heard = self.hear(false).await?;
        let plan = self.plan(heard, wanted)?;
        if wanted.dry_run {
            return Ok(plan.view);
        }
        possible(&plan.view)?;
        // Once more for good: from here on the hosts learn nothing more from the former directory.
        let plan = self.plan(self.hear(true).await?, wanted)?;
        possible(&plan.view)?;
        if let Ground::Leftovers(count) = ground {
            tracing::warn!("an interrupted rebuild of the directory left {count} records: they are removed");
        }
        etcd.rebuild(&plan.record, &self.config().name, plan.entries).await?;
        let text = format!(
            "made anew from the copies of {} hosts, generation {}",
            plan.view.hosts.len(),
            plan.view.generation
        );
        self.events.other(Kind::DirectoryBack, "cluster", text);
        Ok(RebuildView { is_made: true, ..plan.view })
    }

    /// Asks this host, and then all that the records name which it and those have.
    async fn hear(&self, seals: bool) -> Result<Heard, Failure> {
        let mut heard = Heard::default();
        heard.take(self.me, self.give_copy(seals).await?);
        let mut asked = BTreeSet::from([self.me]);
        loop {
            let hosts = heard.hosts().into_iter().filter(|host| asked.insert(host.record.id));
            let asking: Vec<_> = hosts.map(|host| (host.record.id, self.ask_for_copy(host, seals))).collect();
            if asking.is_empty() {
                return Ok(heard);
            }
            for (host, answer) in asking {
                match answer.await {
                    Ok(Ok(view)) => heard.take(host, view),
                    Ok(Err(failure)) => drop(heard.silent.insert(host, failure.error)),
                    Err(broken) => drop(heard.silent.insert(host, broken.to_string())),
                }
            }
        }
    }

    fn ask_for_copy(
        &self,
        host: ClusterHost,
        seals: bool,
    ) -> tokio::task::JoinHandle<Result<CopyView, Failure>> {
        let security = self.certified();
        tokio::spawn(async move {
            let client = client_of(&host, security.as_deref())?;
            let request = api::types::CopyRequest { seal: seals };
            let answer = tokio::time::timeout(COPY_WAIT, client.post("/api/v1/cluster/copy", &request)).await;
            answer.map_err(|_| Failure::new(Code::Unreachable, "it does not answer"))?
        })
    }

    fn plan(&self, heard: Heard, wanted: &RebuildDirectory) -> Result<Plan, Failure> {
        let hosts = heard.hosts();
        let without = named(&wanted.without, &hosts)?;
        let Heard { kept, cluster, copies, components, content, silent } = heard;
        let (Some(kept), Some(former)) = (kept, cluster) else {
            return Err(Failure::refused("no host that answers has a copy of the directory")
                .hint("ask another host; if none has one, only the data of etcd bring the cluster back"));
        };
        // Another host may have heard of a level that this one has not.
        let level = kept.records.get(LEVEL).map(|record| entry(LEVEL, record));
        check_level(level.as_slice())?;
        if former.id != self.id.to_string() {
            return Err(Failure::new(Code::Failed, format!("the copies are of cluster {}", former.id)));
        }
        let record = ClusterRecord { generation: kept.generation + 1, ..former };
        let mut view = RebuildView {
            cluster: record.name.clone(),
            generation: record.generation,
            ..RebuildView::default()
        };
        let mut lacking = BTreeSet::new();
        for host in &hosts {
            let (id, name) = (host.record.id, &host.record.name);
            let answers = components.contains_key(&id);
            let copy = copies.get(&id).copied();
            let trouble = match (answers, copy, content.contains(&id)) {
                (_, _, true) => Some(
                    "its directory answers: it has another one, or reaches one that this host does not"
                        .to_owned(),
                ),
                (false, ..) => {
                    Some(silent.get(&id).cloned().unwrap_or_else(|| "it does not answer".to_owned()))
                }
                (true, None, _) => Some("it has no copy of the directory".to_owned()),
                (true, Some(_), _) => None,
            };
            let is_left_out = without.contains(&id);
            match &trouble {
                Some(why) if content.contains(&id) => view.obstacles.push(format!("host {name}: {why}")),
                Some(why) => {
                    lacking.insert(id);
                    if !is_left_out {
                        view.obstacles.push(format!(
                            "host {name}: {why} (`--without {name}` goes on without what only it knows)"
                        ));
                    }
                }
                None => {}
            }
            let (name, id) = (name.clone(), id.to_string());
            view.hosts.push(RebuildHost { name, id, answers, copy, is_left_out, trouble });
        }
        let disks = read_disks(&kept, &mut view);
        let accepted = disks_named(&wanted.accept, &disks)?;
        let left_out = disks_named(&wanted.leave_out, &disks)?;
        let testimony = Testimony { components, without: lacking, accepted, left_out, now_ns: now_ns() };
        let rebuilt = rebuild(disks.values().map(|disk| disk.record.clone()), &testimony);
        show(&mut view, &rebuilt, &hosts);
        view.obstacles.extend(obstacles(&rebuilt));
        let entries = entries_of(&kept, &disks, &rebuilt, &mut view)?;
        Ok(Plan { view, record, entries })
    }
}

fn possible(view: &RebuildView) -> Result<(), Failure> {
    match view.obstacles.is_empty() {
        true => Ok(()),
        false => Err(Failure::refused(format!("the directory cannot be rebuilt yet: {}", view.obstacles.join("; ")))
            .hint("start the hosts that do not answer; one that never comes back is left out by `--without`: see what that puts at risk with `--dry-run` first")),
    }
}

impl Heard {
    /// Takes over what a host said.
    fn take(&mut self, host: HostId, told: CopyView) {
        let listed = told.components.iter().filter_map(|one| {
            let listed = Listed {
                disk: one.disk.parse().ok()?,
                promised: one.promised,
                snapshots: one.snapshots.clone(),
            };
            Some((one.component.parse().ok()?, listed))
        });
        self.components.insert(host, listed.collect());
        if told.directory_away.is_none() {
            self.content.insert(host);
        }
        let Some(copy) = told.copy else { return };
        let Ok(record) = serde_json::from_str::<ClusterRecord>(&copy.cluster) else { return };
        let (generation, revision) = (copy.generation, copy.revision);
        self.copies.insert(host, (generation, revision));
        if self.cluster.as_ref().is_none_or(|known| known.generation < record.generation) {
            self.cluster = Some(record);
        }
        let records = copy.records.into_iter().map(|(key, version, value)| (key, (version, value)));
        let kept = Kept { generation, revision, records: records.collect() };
        self.kept = Some(match self.kept.take() {
            Some(others) => others.merged(kept),
            None => kept,
        });
    }

    /// The hosts that the records name.
    fn hosts(&self) -> Vec<ClusterHost> {
        let records = self.kept.iter().flat_map(|kept| &kept.records);
        let hosts = records.filter(|(key, _)| key.starts_with(HOSTS));
        hosts.filter_map(|(key, record)| ClusterHost::read(&entry(key, record)).ok()).collect()
    }
}

fn entry(key: &str, (version, value): &(u64, Value)) -> Entry {
    Entry { key: key.to_owned(), version: *version, value: value.clone() }
}

/// The hosts that people mean.
fn named(names: &[String], hosts: &[ClusterHost]) -> Result<BTreeSet<HostId>, Failure> {
    let find = |name: &String| {
        let is_it = |host: &&ClusterHost| host.record.name == *name || host.record.id.to_string() == *name;
        let found = hosts.iter().find(is_it).map(|host| host.record.id);
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("the records name no host `{name}`")))
    };
    names.iter().map(find).collect()
}

/// What stands against a new directory for the disks' sake, in words.
fn obstacles(rebuilt: &Rebuilt) -> Vec<String> {
    let line = |disk: &Restored| {
        let name = &disk.record.name;
        match disk.obstacle? {
            Obstacle::Undecided => Some(format!(
                "disk {name}: nobody knows whether its record is the last (`--accept {name}` takes it as it is known, and what was \
                 written last may be lost; `--leave-out {name}` gives it up)"
            )),
            Obstacle::LeftOutForNothing => {
                Some(format!("disk {name}: nothing stands against taking it, so it is not left out"))
            }
        }
    };
    rebuilt.disks.values().filter_map(line).collect()
}

/// The disks that people mean.
fn disks_named(names: &[String], disks: &BTreeMap<DiskId, ClusterDisk>) -> Result<BTreeSet<DiskId>, Failure> {
    let find = |name: &String| {
        let is_it = |disk: &&ClusterDisk| disk.record.name == *name || disk.record.id.to_string() == *name;
        let found = disks.values().find(is_it).map(|disk| disk.record.id);
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("the records name no disk `{name}`")))
    };
    names.iter().map(find).collect()
}

fn read_disks(kept: &Kept<Value>, view: &mut RebuildView) -> BTreeMap<DiskId, ClusterDisk> {
    let mut disks = BTreeMap::new();
    for (key, record) in kept.records.iter().filter(|(key, _)| key.starts_with(DISKS)) {
        match ClusterDisk::read(&entry(key, record)) {
            Ok(disk) => drop(disks.insert(disk.record.id, disk)),
            Err(why) => view.unreadable.push(why),
        }
    }
    disks
}

/// What becomes of disks, in words.
fn show(view: &mut RebuildView, rebuilt: &Rebuilt, hosts: &[ClusterHost]) {
    let name = |id: &HostId| {
        let found = hosts.iter().find(|host| host.record.id == *id);
        found.map_or_else(|| id.to_string(), |host| host.record.name.clone())
    };
    let names = |ids: &mut dyn Iterator<Item = &HostId>| ids.map(name).collect::<Vec<_>>().join(", ");
    for (id, disk) in &rebuilt.disks {
        let mut notes = Vec::new();
        if let Some(why) = disk.unproven {
            notes.push(format!(
                "a component on host {} promised epoch {}, and the newest record knows {}: what was changed since is not known",
                name(&why.host),
                why.promised,
                why.known
            ));
        }
        if !disk.at_risk.is_empty() {
            let missing = names(&mut disk.at_risk.iter());
            notes.push(format!("what was changed last may be known to {missing} alone"));
        }
        if !disk.made_absent.is_empty() {
            notes.push(format!(
                "{} of its copies count no more: their hosts do not answer",
                disk.made_absent.len()
            ));
        }
        if !disk.places_missing.is_empty() {
            notes.push("it cannot be used until a host that does not answer is back".to_owned());
        }
        notes.extend(
            disk.renamed_from.as_ref().map(|former| format!("it was called {former}, as another disk is")),
        );
        notes.extend(recovered_text(disk));
        let outcome = outcome_of(disk);
        view.disks.push(RebuildDisk { name: disk.record.name.clone(), id: id.to_string(), outcome, notes });
    }
    let unknown = rebuilt.unknown.iter();
    view.unknown = unknown
        .map(|(id, hosts)| UnknownDisk { id: id.to_string(), hosts: hosts.iter().map(name).collect() })
        .collect();
}

/// Snapshots that the disk's record did not know.
fn recovered_text(disk: &Restored) -> Option<String> {
    let names: Vec<String> = disk.recovered.iter().map(|number| disk.record.snapshot_name(*number)).collect();
    (!names.is_empty()).then(|| {
        format!("its copies have snapshots whose names are lost; they are named {}", names.join(", "))
    })
}

fn outcome_of(disk: &Restored) -> RebuildWord {
    match (disk.is_taken(), disk.is_accepted, disk.at_risk.is_empty()) {
        (false, ..) => RebuildWord::Unproven,
        (true, true, _) => RebuildWord::Accepted,
        (true, false, false) => RebuildWord::AtRisk,
        (true, false, true) => RebuildWord::Taken,
    }
}

/// The records of the new directory.
fn entries_of(
    kept: &Kept<Value>,
    disks: &BTreeMap<DiskId, ClusterDisk>,
    rebuilt: &Rebuilt,
    view: &mut RebuildView,
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for (id, restored) in rebuilt.disks.iter().filter(|(_, one)| one.is_taken()) {
        let disk = disks[id].with(restored.record.clone());
        let value = disk.change(0)?.value.unwrap_or_default();
        entries.push(Entry { key: ClusterDisk::key(*id), version: 0, value });
        let value = Value::from(id.to_string());
        entries.push(Entry { key: ClusterDisk::name_key(&disk.record.name), version: 0, value });
    }
    for (key, record) in &kept.records {
        if key.starts_with(DISKS) || key.starts_with(NAMES) || key == CLUSTER {
            continue;
        }
        if key.starts_with(TOKENS) {
            view.tokens_dropped += 1;
            continue;
        }
        view.policies += usize::from(key.starts_with(POLICIES));
        view.revoked += usize::from(key.starts_with(REVOKED) && key != LEVEL);
        if key == AUTHORITIES {
            view.authorities = record.1["authorities"].as_array().map_or(0, Vec::len);
        }
        entries.push(Entry { version: 0, ..entry(key, record) });
    }
    Ok(entries)
}
