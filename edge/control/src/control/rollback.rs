//! Rollbacks of disks to snapshots (docs/design/0047, "Rolling back").
//!
//! This host keeps all clients from the disk, takes another snapshot, and copies back what differs between the two. The record of the disk says
//! that it is being rolled back from before the first block is copied until the last one is, and no host lets clients in meanwhile. So whoever
//! copies may be lost at any time: the disk waits until somebody repeats the rollback. Must never unlock the disk while it copies.

use super::Control;
use super::disks::check_confirmed;
use super::state::{LockedDisk, RollbackTask};
use crate::directory::State;
use crate::events::Kind;
use crate::limits::{HOST_ANSWER_WAIT, ROLLBACK_DEPTH};
use crate::system::{now_seconds, random_bits};
use ::cluster::Snapshot;
use api::name::check_name;
use api::types::{RollBack, RollbackView, RollbackWord};
use base::DiskId;
use base::request::{RequestError, StatusOf};
use base::units::{EXTENT_SIZE, format_bytes};
use engine::{Command, DiskLock, EngineError};
use failure::{Code, Failure};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Bytes of a disk that are asked about at once.
const ASKED_BYTES: u64 = 1 << 30;

impl Control {
    /// Begins to roll a disk back to a snapshot.
    ///
    /// # Errors
    /// When it is not confirmed, there is no such snapshot, clients have the disk and are not to lose it, or the snapshot that is taken first
    /// cannot be taken: nothing is copied then.
    pub async fn roll_back(
        self: &Arc<Control>,
        disk: &str,
        snapshot: &str,
        request: RollBack,
    ) -> Result<RollbackView, Failure> {
        let entry = self.find(disk)?;
        let record = &entry.record;
        let to = self.recorded(record, snapshot)?;
        let what = "a rollback replaces what was written since";
        check_confirmed(request.confirm.as_deref(), &record.name, what)?;
        request.keep.as_deref().map_or(Ok(()), check_name)?;
        if request.keep.is_some() && request.no_keep {
            return Err(Failure::usage("the snapshot that is taken first is named, and is not to be kept"));
        }
        if entry.state != State::Active {
            return Err(Failure::new(Code::Conflict, format!("disk {disk} is being made or deleted")));
        }
        if record.read_only {
            return Err(Failure::refused(format!("disk {} may only be read", record.name))
                .hint(format!("drystone disk set {} read-only off", record.name)));
        }
        let lock = DiskLock {
            why: format!("is being rolled back to snapshot {snapshot}"),
            // Nobody is told the name. Clients of snapshots may stay.
            export: Some(format!(".rollback-{:032x}", random_bits()?)),
            ends_connections: request.detach_clients,
        };
        let locked = self.lock(record, lock).await?;
        let task = match self.prepare_rollback(record.id, to, &request, locked.found.was_shared).await {
            Ok(task) => Arc::new(task),
            Err(failure) => {
                self.unlock(locked).await;
                return Err(failure);
            }
        };
        let kept = task.kept.as_ref();
        let kept = kept.map_or_else(String::new, |kept| format!("; snapshot {kept} has what it held before"));
        let text = format!("is being rolled back to snapshot {}{kept}", task.to.name);
        self.events.disk(Kind::DiskRollingBack, &record.name, text);
        {
            let view = self.cluster.view();
            let mut rollbacks = self.rollbacks.lock().unwrap_or_else(PoisonError::into_inner);
            rollbacks.retain(|id, _| view.disks.contains_key(id));
            rollbacks.insert(record.id, Arc::clone(&task));
        }
        tokio::spawn(Arc::clone(self).carry_out_rollback(Arc::clone(&task), locked));
        Ok(self.task_view(&task))
    }

    /// Takes the snapshot that comes first, and has the record say that the disk is rolled back from now on.
    async fn prepare_rollback(
        &self,
        disk: DiskId,
        to: Snapshot,
        request: &RollBack,
        was_shared: bool,
    ) -> Result<RollbackTask, Failure> {
        let is_repeated = self.cluster.rollback(disk).is_some();
        let name = match &request.keep {
            // What the disk held before the first attempt is kept. What it holds now is of no use when this one is done.
            _ if is_repeated => format!("rollback-{}", now_seconds()),
            Some(name) => name.clone(),
            None => format!("before-rollback-{}", now_seconds()),
        };
        self.cluster.take_before_rollback(disk, &name).await?;
        let view = self.cluster.view();
        let record = view.disks.get(&disk).map(|disk| &disk.record);
        let taken = record.and_then(|record| record.snapshots.named(&name)).cloned();
        let gone = || Failure::new(Code::Conflict, format!("snapshot {name} was deleted meanwhile"));
        let since = taken.ok_or_else(gone)?;
        let begun =
            self.cluster.begin_rollback(disk, (to.number, since.number), (!request.no_keep, was_shared));
        let rollback = match begun.await {
            Ok(rollback) => rollback,
            Err(failure) => {
                // Nobody knows whether it was written if the directory gave no answer: then the record may not say for good that this host copies.
                let _ = self.cluster.stop_rollback(disk, since.number).await;
                let _ = self.cluster.delete_snapshot(disk, &name).await;
                return Err(failure);
            }
        };
        let kept = record.map(|record| record.snapshot_name(rollback.before));
        Ok(RollbackTask::new(disk, to, since, kept.filter(|_| rollback.keeps)))
    }

    /// Copies, and says what became of it.
    async fn carry_out_rollback(self: Arc<Control>, task: Arc<RollbackTask>, locked: LockedDisk) {
        let copied = self.copy_all_back(&task).await;
        let ended = match copied {
            Ok(()) => self.cluster.finish_rollback(task.disk, task.since.number).await,
            Err(failure) => Err(failure),
        };
        let (name, to) = (self.name_of(task.disk), &task.to.name);
        let copied = format_bytes(task.copied.load(Ordering::Relaxed));
        match &ended {
            Ok(()) => {
                let text = format!("is as it was in snapshot {to}: {copied} were copied back");
                self.events.disk(Kind::DiskRolledBack, &name, text);
            }
            Err(failure) => {
                let text = format!(
                    "the rollback to snapshot {to} cannot go on: {}; {copied} were copied back, and no client gets the disk until it is repeated",
                    failure.error
                );
                self.events.disk(Kind::DiskRollbackFailed, &name, text);
                if let Err(why) = self.cluster.stop_rollback(task.disk, task.since.number).await {
                    tracing::debug!("disk {name}: {why}");
                }
            }
        }
        self.unlock(locked).await;
        // Told last: whoever waits for the end may have the disk at once.
        task.end(ended.err().map(|failure| failure.error));
    }

    fn name_of(&self, disk: DiskId) -> String {
        self.records().disks.get(&disk).map_or_else(|| disk.to_string(), |entry| entry.record.name.clone())
    }

    /// Copies back what differs between the two snapshots.
    async fn copy_all_back(&self, task: &RollbackTask) -> Result<(), Failure> {
        let (mut total, mut at) = (0, 0);
        while at < task.since.size {
            let (parts, next) = self.changed_parts(task, at).await?;
            total += parts.iter().map(|part| part.end - part.start).sum::<u64>();
            at = next;
        }
        let _ = task.total.set(total);
        at = 0;
        while at < task.since.size {
            let (parts, next) = self.changed_parts(task, at).await?;
            for parts in parts.chunks(ROLLBACK_DEPTH) {
                self.copy_parts_back(task, parts).await?;
            }
            at = next;
        }
        Ok(())
    }

    /// What may differ between the two snapshots from a byte on, in parts that cross neither a border of 1 MiB nor the end of the older one; and
    /// where to go on.
    async fn changed_parts(&self, task: &RollbackTask, from: u64) -> Result<(Vec<Range<u64>>, u64), Failure> {
        self.expect_turn(task)?;
        let of = StatusOf::Changes { since: task.to.number, snapshot: task.since.number };
        let (disk, range) = (task.disk, from..task.since.size.min(from + ASKED_BYTES));
        // Without patience of its own: while the disk has no owner, the answer waits.
        let told = self.engine.call(|answer| Command::Survey { disk, of, range, answer }).await?;
        let runs = told.map_err(|why| Failure::failed("ask what changed", why))?;
        let (mut parts, mut at) = (Vec::new(), from);
        for run in runs {
            let end = at + run.len;
            while run.is_set && at < end {
                let border = (at - at % EXTENT_SIZE + EXTENT_SIZE).min(end);
                let border = if at < task.to.size { border.min(task.to.size) } else { border };
                parts.push(at..border);
                at = border;
            }
            at = end;
        }
        match at > from {
            true => Ok((parts, at)),
            false => Err(Failure::failed("ask what changed", "nothing was told")),
        }
    }

    /// Copies parts back at once. All of them have ended when this does, well or not: nothing is written once the disk is unlocked.
    async fn copy_parts_back(&self, task: &RollbackTask, parts: &[Range<u64>]) -> Result<(), Failure> {
        self.expect_turn(task)?;
        let mut asked = Vec::new();
        for range in parts.iter().cloned() {
            let (answer, wait) = oneshot::channel::<Result<(), RequestError>>();
            let snapshot = (range.start < task.to.size).then_some(task.to.number);
            let bytes = range.end - range.start;
            self.engine.tell(Command::CopyBack { disk: task.disk, snapshot, range, answer })?;
            asked.push((wait, bytes));
        }
        let mut ended = Ok(());
        for (wait, bytes) in asked {
            match wait.await.map_err(|_| EngineError::Stopped)? {
                Ok(()) => drop(task.copied.fetch_add(bytes, Ordering::Relaxed)),
                Err(why) => ended = ended.and(Err(Failure::failed("copy back what the snapshot has", why))),
            }
        }
        ended
    }

    /// Whether this host still is to copy.
    fn expect_turn(&self, task: &RollbackTask) -> Result<(), Failure> {
        match self.cluster.is_rolling_back(task.disk, task.since.number) {
            true => Ok(()),
            false => Err(Failure::new(Code::Conflict, "another host has the disk by now")),
        }
    }

    /// How far the rollback of a disk is, or how the last one here ended.
    ///
    /// # Errors
    /// When there is no such disk, or it is not being rolled back.
    pub async fn rollback(&self, disk: &str) -> Result<RollbackView, Failure> {
        let entry = self.find(disk)?;
        if let Some(found) = self.rollback_view(entry.record.id).await {
            return Ok(found);
        }
        let last =
            self.rollbacks.lock().unwrap_or_else(PoisonError::into_inner).get(&entry.record.id).cloned();
        let last = last.map(|task| self.task_view(&task));
        last.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("disk {} is not being rolled back", entry.record.name))
                .hint("see `drystone events --kind disk`")
        })
    }

    /// The rollback of a disk that is not done. Only the host that copies knows how far it is.
    pub(super) async fn rollback_view(&self, disk: DiskId) -> Option<RollbackView> {
        let (rollback, by) = self.cluster.rollback(disk)?;
        let here = self.rollbacks.lock().unwrap_or_else(PoisonError::into_inner).get(&disk).cloned();
        if let Some(task) = here.filter(|task| task.since.number == rollback.since) {
            return Some(self.task_view(&task));
        }
        let view = self.cluster.view();
        if let Some(host) = by.filter(|by| by.host != self.cluster.me).and_then(|by| view.host(by.host)) {
            let path = format!("/api/v1/disks/{disk}/rollback");
            if let Ok(told) = self.cluster.ask_one::<RollbackView>(host, &path, HOST_ANSWER_WAIT).await {
                return Some(told);
            }
        }
        let record = &view.disks.get(&disk)?.record;
        Some(RollbackView {
            disk: record.name.clone(),
            snapshot: record.snapshot_name(rollback.to),
            kept: rollback.keeps.then(|| record.snapshot_name(rollback.before)),
            state: if by.is_some() { RollbackWord::Copying } else { RollbackWord::Unfinished },
            host: rollback.by.map(|by| view.host_name(by.host)),
            ..RollbackView::default()
        })
    }

    /// The rollbacks that this host carries out.
    pub(super) fn rollbacks_here(&self) -> Vec<RollbackView> {
        let tasks = self.rollbacks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tasks.values().filter(|task| task.ended().is_none()).map(|task| self.task_view(task)).collect()
    }

    fn task_view(&self, task: &RollbackTask) -> RollbackView {
        let (state, failure, seconds) = match task.ended() {
            None => (RollbackWord::Copying, None, task.began.elapsed().as_secs_f64()),
            Some((None, at)) => (RollbackWord::Done, None, (at - task.began).as_secs_f64()),
            Some((failure, at)) => (RollbackWord::Unfinished, failure, (at - task.began).as_secs_f64()),
        };
        RollbackView {
            disk: self.name_of(task.disk),
            snapshot: task.to.name.clone(),
            kept: task.kept.clone(),
            state,
            host: Some(self.config().name.clone()),
            changed_bytes: task.total.get().copied(),
            copied_bytes: task.copied.load(Ordering::Relaxed),
            seconds,
            failure,
        }
    }
}

impl RollbackTask {
    fn new(disk: DiskId, to: Snapshot, since: Snapshot, kept: Option<String>) -> RollbackTask {
        RollbackTask {
            disk,
            to,
            since,
            kept,
            began: Instant::now(),
            total: std::sync::OnceLock::new(),
            copied: std::sync::atomic::AtomicU64::new(0),
            ended: std::sync::OnceLock::new(),
        }
    }

    fn end(&self, failure: Option<String>) {
        let _ = self.ended.set((failure, Instant::now()));
    }

    fn ended(&self) -> Option<(Option<String>, Instant)> {
        self.ended.get().cloned()
    }
}
