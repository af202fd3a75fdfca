//! What goes on in the background: the watch, what the engine wants of the directory, this host's record, deletions.

use super::{Cluster, View};
use crate::directory::BEFORE_ALL;
use crate::directory::shared::record::{CEILINGS, ClusterDisk, engine_record};
use crate::directory::shared::{Change, Changes, Outcome};
use crate::events::Kind;
use crate::limits::{DIRECTORY_RETRY, HOST_RECORD_PERIOD};
use ::cluster::{DiskState, NodeRecord};
use base::{ComponentId, DiskId, NodeId};
use engine::{ClusterCommand, Command, EngineError, Notice, Order};
use failure::Failure;
use replication::owner::{Committed, End, Event};
use replication::{Ceiling, Roster};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

impl Cluster {
    /// Follows the directory until the engine is gone.
    pub(super) async fn follow(self: Arc<Cluster>) {
        let mut revision = Some(self.view().revision);
        loop {
            let changes = match self.directory().watch(revision).await {
                Ok(changes) => changes,
                Err(failure) => {
                    self.set_away(Some(failure));
                    tokio::time::sleep(DIRECTORY_RETRY).await;
                    continue;
                }
            };
            self.set_away(None);
            revision = Some(changes.revision);
            if self.take_and_tell(changes).await.is_err() {
                return;
            }
        }
    }

    fn set_away(&self, why: Option<Failure>) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        match (&why, away.is_some()) {
            (Some(why), false) => {
                let text = format!("{}; guests' I/O goes on while no host fails", why.error);
                self.events.other(Kind::DirectoryAway, "cluster", text);
            }
            (None, true) => self.events.other(Kind::DirectoryBack, "cluster", "the directory answers again"),
            (Some(_), true) | (None, false) => {}
        }
        *away = why;
    }

    async fn take_and_tell(&self, changes: Changes) -> Result<(), EngineError> {
        let is_untold = self.is_untold.swap(false, Ordering::Relaxed);
        let difference = self.take(changes);
        let view = self.view();
        if difference.believed || is_untold {
            self.believe(&view.believed);
        }
        if difference.hosts || is_untold {
            self.tell_nodes(&view)?;
        }
        for id in difference.disks {
            match view.disks.get(&id) {
                Some(disk) => self.tell_disk(disk).await?,
                None => self.tell_gone(id).await?,
            }
        }
        Ok(())
    }

    /// Tells the engine which nodes there are.
    pub(super) fn tell_nodes(&self, view: &View) -> Result<(), EngineError> {
        self.engine.tell(Command::cluster(ClusterCommand::Nodes { nodes: nodes_of(view) }))
    }

    /// Tells the engine what a disk's record says.
    pub(super) async fn tell_disk(&self, disk: &ClusterDisk) -> Result<(), EngineError> {
        let id = disk.record.id;
        match disk.record.state {
            DiskState::Creating => Ok(()),
            DiskState::Deleting => self.tell_gone(id).await,
            DiskState::Active => {
                let record = (disk.record.version, disk.record.roster.clone());
                let (mut spec, first) = (engine_record(&disk.record), record.clone());
                spec.spins = self.view().spins(&disk.record);
                let open = |answer| ClusterCommand::Open { disk: Box::new(spec), record: first, answer };
                self.engine.call(|answer| Command::cluster(open(answer))).await?;
                let recorded = ClusterCommand::Recorded { disk: id, record: Some(record) };
                self.engine.tell(Command::cluster(recorded))
            }
        }
    }

    async fn tell_gone(&self, disk: DiskId) -> Result<(), EngineError> {
        let forget = |answer| Command::cluster(ClusterCommand::Forget { disk, answer });
        self.engine.call(forget).await
    }

    /// Does what the engine wants of the directory, each in its own time.
    pub(super) async fn serve_notices(self: Arc<Cluster>, mut notices: UnboundedReceiver<Notice>) {
        while let Some(notice) = notices.recv().await {
            match notice {
                Notice::Attach { disk, ticket, visitor, has_lock } => {
                    self.arrived(disk, ticket, (visitor, has_lock));
                }
                Notice::Left { disk, ticket } => self.left(disk, ticket),
                // As of a round of scrubbing, the log alone tells of it.
                Notice::Owner { disk, event: event @ Event::RowsChecked { .. }, .. } => {
                    tracing::info!("disk {disk}: {}", blocks_text(&event, |component| component.to_string()));
                }
                Notice::Owner { disk, event, at } => self.log_event(disk, &event, at),
                Notice::Commit { shard, disk, number, expected, roster } => {
                    let cluster = Arc::clone(&self);
                    tokio::spawn(async move {
                        let committed = cluster.commit_roster(disk, expected, roster).await;
                        let command = ClusterCommand::Committed { shard, disk, number, committed };
                        let _ = cluster.engine.tell(Command::cluster(command));
                    });
                }
                Notice::Fetch { disk } => {
                    let cluster = Arc::clone(&self);
                    tokio::spawn(async move {
                        let command = match cluster.fetch(disk).await {
                            Ok(found) => ClusterCommand::Recorded {
                                disk,
                                record: found.map(|disk| (disk.record.version, disk.record.roster)),
                            },
                            Err(_) => ClusterCommand::FetchFailed { disk },
                        };
                        let _ = cluster.engine.tell(Command::cluster(command));
                    });
                }
            }
        }
    }

    /// A disk's record as the directory has it now; nothing when the disk is gone, or going.
    pub(super) async fn fetch(&self, disk: DiskId) -> Result<Option<ClusterDisk>, Failure> {
        Ok(self.fetch_any(disk).await?.filter(|found| found.record.state != DiskState::Deleting))
    }

    /// A disk's record as the directory has it now, whatever becomes of the disk.
    pub(super) async fn fetch_any(&self, disk: DiskId) -> Result<Option<ClusterDisk>, Failure> {
        let Some(entry) = self.directory().get(&ClusterDisk::key(disk)).await? else { return Ok(None) };
        let found =
            ClusterDisk::read(&entry).map_err(|error| Failure::failed("read a disk's record", error))?;
        self.note(&found);
        Ok(Some(found))
    }

    /// What an owner asks of the record: only that, and everything else of the record stays as it is.
    async fn commit_roster(&self, disk: DiskId, expected: u64, mut roster: Roster) -> Committed {
        if self.view().level.level < CEILINGS {
            roster.members.iter_mut().for_each(|member| member.ceiling = Ceiling::Unknown);
        }
        let known = self.view().disks.get(&disk).filter(|known| known.record.version == expected).cloned();
        let base = match known {
            Some(known) => ClusterDisk::clone(&known),
            None => match self.fetch(disk).await {
                Ok(Some(found)) if found.record.version == expected => found,
                Ok(Some(found)) => {
                    return Committed::Conflict {
                        version: found.record.version,
                        roster: found.record.roster,
                    };
                }
                // Gone: the owner reads the record when it does not know, and finds that out.
                Ok(None) | Err(_) => return Committed::Unknown,
            },
        };
        let (mut changed, is_as_asked) = match self.with_roster_that_fits(&base, roster).await {
            Ok(found) => found,
            Err(why) => {
                tracing::error!("disk {}: its owner asks for what cannot be: {why}", base.record.name);
                return Committed::Unknown;
            }
        };
        if !is_as_asked && changed.record.roster == base.record.roster {
            tokio::time::sleep(DIRECTORY_RETRY).await;
            return Committed::Conflict { version: expected, roster: base.record.roster };
        }
        let Ok(change) = changed.change(expected) else { return Committed::Unknown };
        match self.directory().commit(vec![change]).await {
            Outcome::Done { version } => {
                changed.record.version = version;
                self.note(&changed);
                match is_as_asked {
                    true => Committed::Done { version },
                    false => Committed::Conflict { version, roster: changed.record.roster },
                }
            }
            Outcome::Conflict { current } => match current.first().map(ClusterDisk::read) {
                Some(Ok(found)) if found.record.state != DiskState::Deleting => {
                    Committed::Conflict { version: found.record.version, roster: found.record.roster }
                }
                Some(_) | None => Committed::Unknown,
            },
            Outcome::Unwritten { .. } | Outcome::Unknown => Committed::Unknown,
        }
    }

    fn log_event(&self, id: DiskId, event: &Event, at: Duration) {
        let view = self.view();
        let disk = view.disks.get(&id).map_or_else(|| id.to_string(), |disk| disk.record.name.clone());
        let whose = |component| self.component_text(&view, id, component);
        let record = view.disks.get(&id).map(|disk| &disk.record);
        let is_named = |component| record.is_none_or(|record| record.roster.member(component).is_some());
        let text = match event {
            // With every granule of a move.
            Event::Ended(End::Passed) | Event::Serving { goes_on: true, .. } => return,
            Event::Serving { epoch, rolled: 0, .. } => format!("served here from now on, epoch {epoch}"),
            Event::Serving { epoch, rolled, .. } => {
                format!(
                    "served here from now on, epoch {epoch}; {rolled} writes that were undecided are on all copies now"
                )
            }
            Event::Ended(End::Released) => "let go of".to_owned(),
            Event::Ended(End::Superseded) => "another host owns it now".to_owned(),
            Event::Ended(End::SupersededBy { component, epoch }) => format!(
                "{} has promised epoch {epoch}: another host owns the disk now, or the directory is older than the devices",
                whose(*component)
            ),
            Event::Ended(End::Diverged) => {
                format!(
                    "diverged: nobody serves it before `drystone disk resolve {disk} --keep HOST` says which copy is kept"
                )
            }
            Event::Diverged { component } => {
                format!("{} holds acknowledged writes that the other copies lack", whose(*component))
            }
            Event::Ended(End::Deleted) => "deleted".to_owned(),
            Event::Ended(End::Reshaped) => "has got more places: opened anew".to_owned(),
            Event::Ended(End::Restoring) => {
                "nothing active of it is left, but what it can be put together from: opened anew".to_owned()
            }
            Event::Left { component, .. } if !is_named(*component) => {
                "a copy that was replaced is let go of".to_owned()
            }
            Event::Left { component, why } => format!("{} does not count any more: {why}", whose(*component)),
            Event::Joined { component, copied_bytes, began } => format!(
                "{} counts again; {} copied in {:.1} s",
                whose(*component),
                base::units::format_bytes(*copied_bytes),
                at.saturating_sub(Duration::from_nanos(began.0)).as_secs_f64()
            ),
            Event::StandsIn { component, of, copied_bytes, .. } => format!(
                "{} stands in for {}; {} copied",
                whose(*component),
                whose(*of),
                base::units::format_bytes(*copied_bytes)
            ),
            Event::RestoreBegan { component, stand_in } => format!(
                "nothing active of a place is left: {} gets what {} has",
                whose(*component),
                whose(*stand_in)
            ),
            Event::ResyncBegan { component, is_rebuild: true } => {
                format!("{} is being rebuilt", whose(*component))
            }
            Event::ResyncBegan { component, is_rebuild: false } => {
                format!("{} is being brought up to date", whose(*component))
            }
            Event::ResyncFailed { component, why } => {
                format!("{} cannot be brought up to date: {why}", whose(*component))
            }
            event => other_text(event, record, whose),
        };
        self.events.disk(kind_of(event), &disk, text);
    }

    /// Keeps this host's record up to date, and the pace of resyncs.
    pub(super) async fn keep_record(self: Arc<Cluster>) {
        let mut ticks = tokio::time::interval(HOST_RECORD_PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Ok(state) = self.state().await else { return };
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now(), &state);
            let Ok(host) = self.engine.call(|answer| Command::Host { answer }).await else { return };
            self.convert_groups().await;
            // A directory that is away is told of by the watch.
            let told = self.put_host(&host).await;
            for failure in [told, self.watch_devices(&state, &host).await].into_iter().filter_map(Result::err)
            {
                tracing::debug!("{failure}");
            }
        }
    }

    /// Converts the disk groups of this host once a disk of the cluster is to have a snapshot, or is to be compressed. No host goes back then to a release that cannot read
    /// what they become: the level of the records says so.
    async fn convert_groups(&self) {
        let view = self.view();
        let is_compressed =
            |disk: &ClusterDisk| disk.record.policy.compression != placement::Compression::Off;
        let has_any = |disk: &ClusterDisk| disk.record.roster.snapshots.last > 0 || is_compressed(disk);
        if view.level.level < ::cluster::Level::SNAPSHOTS || !view.disks.values().any(|disk| has_any(disk)) {
            return;
        }
        if let Ok(left) = self.engine.call(|answer| Command::Convert { answer }).await
            && left > 0
        {
            tracing::debug!("{left} disk groups are being converted");
        }
    }

    /// Deletes components of disks that go, as far as they stand here; who removes the last removes the record.
    pub(super) async fn clean_up(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        loop {
            for disk in self.view().to_clean() {
                if let Err(failure) = self.clean(&disk).await {
                    tracing::debug!("disk {} is still being deleted: {failure}", disk.record.name);
                }
            }
            self.undo_own_creations().await;
            // Now and then without a reason too: the directory may have been away.
            let _ = tokio::time::timeout(HOST_RECORD_PERIOD * 2, changed.changed()).await;
            if self.state().await.is_err() {
                return;
            }
        }
    }

    async fn clean(&self, disk: &ClusterDisk) -> Result<(), Failure> {
        let left = disk.deletions_left();
        let mine: Vec<_> = left.iter().filter(|(node, _)| node.host == self.me).collect();
        for (node, component) in &mine {
            self.order(*node, Order::Delete(*component))
                .await?
                .map_err(|why| Failure::failed(format!("delete component {component}"), why))?;
        }
        let mut rest = disk.clone();
        rest.gone.extend(mine.iter().map(|(_, component)| component));
        if !rest.deletions_left().is_empty() {
            if mine.is_empty() {
                return Ok(());
            }
            rest.record.roster.owner = None;
            self.directory().commit(vec![rest.change(disk.record.version)?]).await;
            return Ok(());
        }
        let record = &disk.record;
        let mut changes =
            vec![Change { key: ClusterDisk::key(record.id), expected: record.version, value: None }];
        let key = ClusterDisk::name_key(&record.name);
        let name = self.directory().get(&key).await?;
        if let Some(name) = name.filter(|name| name.value == record.id.to_string()) {
            changes.push(Change { key, expected: name.version, value: None });
        }
        let attached = self.fetch_attached(record.id).await?;
        if !attached.claims.is_empty() {
            changes.push(attached.change(record.id, &[])?);
        }
        changes.extend(self.change_without_clone(disk).await?);
        self.directory().commit(changes).await;
        Ok(())
    }

    /// A creation that a former start of this host began and did not end.
    async fn undo_own_creations(&self) {
        for disk in self.view().disks.values() {
            let is_left = disk.record.state == DiskState::Creating
                && disk.maker.0 == self.me
                && ![self.incarnation, BEFORE_ALL].contains(&disk.maker.1);
            if !is_left {
                continue;
            }
            tracing::warn!("disk {} was being created when this host ended: undone", disk.record.name);
            if let Err(failure) = self.mark_deleting(disk.record.id).await {
                tracing::warn!("{failure}");
            }
        }
    }
}

/// The nodes of all hosts, and where they listen.
pub(super) fn nodes_of(view: &View) -> Vec<(NodeId, SocketAddr)> {
    let address = |node: &NodeRecord| Some((node.id, node.peer_addresses.first()?.parse().ok()?));
    view.hosts.values().flat_map(|known| &known.host.record.nodes).filter_map(address).collect()
}

/// What is told of snapshots and of blocks.
fn other_text(
    event: &Event,
    record: Option<&::cluster::DiskRecord>,
    whose: impl Fn(ComponentId) -> String,
) -> String {
    match event {
        Event::SnapshotTaken { .. } | Event::SnapshotNotTaken { .. } | Event::Backfilled { .. } => {
            snapshot_text(event, record, whose)
        }
        event => blocks_text(event, whose),
    }
}

/// What is told of blocks that were written again, and of rows that were compared.
fn blocks_text(event: &Event, whose: impl Fn(ComponentId) -> String) -> String {
    match event {
        Event::Repaired { component, blocks: 1 } => {
            format!("1 damaged block of {} was written again", whose(*component))
        }
        Event::Repaired { component, blocks } => {
            format!("{blocks} damaged blocks of {} were written again", whose(*component))
        }
        Event::RowDisagrees { component, part, blocks, implied } => {
            let blocks = if *blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
            let implied = implied.map_or_else(String::new, |implied| {
                let whose = whose(implied);
                format!("; both parity units imply other data on {whose}: its device may have lost a write")
            });
            let whose = whose(*component);
            format!(
                "{blocks} of parity on {whose}, in its MiB {part}, did not agree with the data; they are written again from the data{implied}"
            )
        }
        Event::RowsChecked { rows, disagreeing, skipped } => {
            format!(
                "{rows} rows compared with their parity, {disagreeing} did not agree, {skipped} were passed over"
            )
        }
        _ => unreachable!("it is about no blocks"),
    }
}

/// The name of a snapshot, or its number where the record does not have it.
fn snapshot_name(record: Option<&::cluster::DiskRecord>, number: u32) -> String {
    let named = record.and_then(|record| record.snapshots.taken.iter().find(|one| one.number == number));
    named.map_or_else(|| number.to_string(), |one| one.name.clone())
}

/// What is told of a snapshot that was to be taken, or that a copy got.
fn snapshot_text(
    event: &Event,
    record: Option<&::cluster::DiskRecord>,
    whose: impl Fn(ComponentId) -> String,
) -> String {
    match event {
        Event::Backfilled { component, number, copied_bytes, .. } => {
            let (name, copied) = (snapshot_name(record, *number), base::units::format_bytes(*copied_bytes));
            format!("{} has snapshot {name}, too; {copied} copied", whose(*component))
        }
        Event::SnapshotTaken { number, held } => {
            let name = snapshot_name(record, *number);
            format!("snapshot {name} was taken; writes waited for {:.1} ms", held.as_secs_f64() * 1e3)
        }
        Event::SnapshotNotTaken { why } => format!("a snapshot was not taken: {why}"),
        _ => unreachable!("it is about no snapshot"),
    }
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Serving { .. } => Kind::DiskServed,
        Event::Diverged { .. } | Event::Ended(End::Diverged) => Kind::DiskDiverged,
        Event::Ended(_) => Kind::DiskReleased,
        Event::Left { .. } => Kind::CopyLeft,
        Event::Joined { .. } => Kind::CopyJoined,
        Event::StandsIn { .. } => Kind::StandIn,
        Event::RestoreBegan { .. } | Event::ResyncBegan { .. } => Kind::ResyncBegan,
        Event::ResyncFailed { .. } => Kind::ResyncFailed,
        Event::Repaired { .. } => Kind::CopyRepaired,
        Event::SnapshotTaken { .. } => Kind::SnapshotTaken,
        Event::SnapshotNotTaken { .. } => Kind::SnapshotRefused,
        Event::Backfilled { .. } => Kind::SnapshotCopied,
        Event::RowDisagrees { .. } => Kind::RowsDisagreed,
        Event::RowsChecked { .. } => unreachable!("it is told to the log alone"),
    }
}
