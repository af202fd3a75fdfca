//! Snapshots of disks, as clients of the API see them.

use super::Control;
use super::disks::check_confirmed;
use crate::cluster::{Locals, snapshot_bytes_of};
use crate::limits::TOGETHER_DISKS_MAX;
use ::cluster::DiskRecord;
use api::name::check_name;
use api::types::{ChangeSnapshot, ChangesView, CreateSnapshot, CreateSnapshots, RunView, SnapshotView};
use base::DiskId;
use base::request::{StatusOf, StatusRun};
use base::units::BLOCK_SIZE;
use engine::Command;
use failure::{Code, Failure};
use std::ops::Range;
use std::time::Duration;

/// Runs of one page of changes, more or less.
const PAGE_RUNS: usize = 8192;
/// Bytes of a disk that one page is about at most.
const PAGE_BYTES: u64 = 1 << 40;
/// Bytes that the engine is asked about at once.
const ASKED_BYTES: u64 = 1 << 30;
/// How long an answer may take: a disk is taken over in less.
const SURVEY_PATIENCE: Duration = Duration::from_secs(30);

impl Control {
    /// The snapshots of a disk, the oldest first.
    ///
    /// # Errors
    /// When there is no such disk.
    pub async fn snapshots(&self, disk: &str) -> Result<Vec<SnapshotView>, Failure> {
        let entry = self.find(disk)?;
        let locals = self.cluster.locals(&self.cluster.state().await?).await;
        let view = self.cluster.view();
        let record = view.disks.get(&entry.record.id).map(|disk| &disk.record);
        Ok(record.map_or_else(Vec::new, |record| snapshot_views(record, &locals)))
    }

    /// Takes a snapshot of a disk.
    ///
    /// # Errors
    /// When the request makes no sense, or the disk cannot have one.
    pub async fn create_snapshot(
        &self,
        disk: &str,
        request: &CreateSnapshot,
    ) -> Result<SnapshotView, Failure> {
        check_name(&request.name)?;
        let entry = self.find(disk)?;
        self.cluster.take_snapshot(entry.record.id, &request.name).await?;
        self.snapshot(&entry.record.name, &request.name).await
    }

    /// Takes a snapshot of several disks at one moment.
    ///
    /// # Errors
    /// When the request makes no sense, or one of the disks cannot have it: then none has.
    pub async fn create_snapshots(&self, request: &CreateSnapshots) -> Result<Vec<SnapshotView>, Failure> {
        check_name(&request.name)?;
        let mut names = Vec::new();
        let mut ids = Vec::new();
        for disk in &request.disks {
            let record = &self.find(disk)?.record;
            if ids.contains(&record.id) {
                return Err(Failure::usage(format!("disk {} is named twice", record.name)));
            }
            ids.push(record.id);
            names.push(record.name.clone());
        }
        if ids.is_empty() || ids.len() > TOGETHER_DISKS_MAX {
            return Err(Failure::usage(format!(
                "{} disks are named: a snapshot is of 1 to {TOGETHER_DISKS_MAX} disks",
                ids.len()
            )));
        }
        self.cluster.take_together(&ids, &request.name).await?;
        let mut made = Vec::new();
        for name in names {
            made.push(self.snapshot(&name, &request.name).await?);
        }
        Ok(made)
    }

    /// One snapshot of a disk.
    ///
    /// # Errors
    /// When there is no such disk or snapshot.
    pub async fn snapshot(&self, disk: &str, name: &str) -> Result<SnapshotView, Failure> {
        let entry = self.find(disk)?;
        let found = self.recorded(&entry.record, name)?;
        let all = self.snapshots(&entry.record.name).await?;
        all.into_iter().find(|one| one.number == found.number).ok_or_else(|| no_snapshot(disk, name))
    }

    /// A snapshot of a disk, as the disk's record has it.
    pub(super) fn recorded(
        &self,
        disk: &engine::DiskRecord,
        name: &str,
    ) -> Result<::cluster::Snapshot, Failure> {
        let view = self.cluster.view();
        let record = view.disks.get(&disk.id).map(|disk| &disk.record);
        let found = record.and_then(|record| record.snapshots.named(name));
        found.cloned().ok_or_else(|| no_snapshot(&disk.name, name))
    }

    /// What differs between a snapshot and an older one, or what it holds, from a byte on.
    ///
    /// # Errors
    /// When one of them is not there, or the copies that have it cannot be reached.
    pub async fn changes(
        &self,
        (disk, snapshot): (&str, &str),
        since: Option<&str>,
        from: u64,
    ) -> Result<ChangesView, Failure> {
        let entry = self.find(disk)?;
        let newer = self.recorded(&entry.record, snapshot)?;
        let older = since.map(|since| self.recorded(&entry.record, since)).transpose()?;
        if let Some(older) = older.as_ref().filter(|older| older.number >= newer.number) {
            return Err(Failure::usage(format!("snapshot {} is not older than {snapshot}", older.name)));
        }
        let of = match &older {
            Some(older) => StatusOf::Changes { since: older.number, snapshot: newer.number },
            None => StatusOf::Snapshot(newer.number),
        };
        let mut runs: Vec<RunView> = Vec::new();
        let mut at = (from - from % BLOCK_SIZE).min(newer.size);
        let end = newer.size.min(at.saturating_add(PAGE_BYTES));
        while at < end && runs.len() < PAGE_RUNS {
            let range = at..end.min(at + ASKED_BYTES);
            for run in self.states(entry.record.id, of, range).await? {
                match runs.last_mut() {
                    Some(last) if run.is_set && last.offset + last.length == at => last.length += run.len,
                    _ if run.is_set => runs.push(RunView { offset: at, length: run.len }),
                    _ => {}
                }
                at += run.len;
            }
        }
        Ok(ChangesView {
            disk: entry.record.name.clone(),
            snapshot: newer.name,
            since: older.map(|older| older.name),
            size: newer.size,
            runs,
            next: (at < newer.size).then_some(at),
        })
    }

    /// What is told about the first blocks of a range, or about all of them.
    pub(super) async fn states(
        &self,
        disk: DiskId,
        of: StatusOf,
        range: Range<u64>,
    ) -> Result<Vec<StatusRun>, Failure> {
        let asked = self.engine.call(|answer| Command::Survey { disk, of, range, answer });
        let told = tokio::time::timeout(SURVEY_PATIENCE, asked).await.map_err(|_| {
            Failure::new(Code::Unreachable, "the disk gave no answer in time").hint("see `drystone health`")
        })??;
        match told {
            Ok(runs) if runs.iter().any(|run| run.len > 0) => Ok(runs),
            Ok(_) => Err(Failure::failed("ask for states of blocks", "nothing was told")),
            Err(error) => Err(Failure::failed("ask for states of blocks", error)),
        }
    }

    /// Renames a snapshot, or has its schedule never delete it.
    ///
    /// # Errors
    /// When there is none, the other name is taken, or nothing is to change.
    pub async fn change_snapshot(
        &self,
        disk: &str,
        name: &str,
        request: &ChangeSnapshot,
    ) -> Result<SnapshotView, Failure> {
        let entry = self.find(disk)?;
        let found = self.recorded(&entry.record, name)?;
        let to = request.name.as_deref().filter(|to| *to != name);
        to.map_or(Ok(()), check_name)?;
        if request.name.is_none() && request.pinned.is_none() {
            return Err(Failure::usage("nothing is to change: name `name` or `pinned`"));
        }
        let pinned = request.pinned.filter(|pinned| *pinned != found.is_pinned);
        self.cluster.change_snapshot(entry.record.id, name, (to, pinned)).await?;
        self.snapshot(&entry.record.name, to.unwrap_or(name)).await
    }

    /// Deletes a snapshot of a disk.
    ///
    /// # Errors
    /// When there is none, or it is not confirmed.
    pub async fn delete_snapshot(
        &self,
        disk: &str,
        name: &str,
        confirm: Option<&str>,
    ) -> Result<(), Failure> {
        let entry = self.find(disk)?;
        self.recorded(&entry.record, name)?;
        check_confirmed(confirm, name, "deleting a snapshot destroys what only it holds")?;
        self.cluster.delete_snapshot(entry.record.id, name).await
    }
}

fn no_snapshot(disk: &str, name: &str) -> Failure {
    Failure::new(Code::NotFound, format!("disk {disk} has no snapshot `{name}`"))
        .hint("see `drystone disk snapshot list`")
}

/// The snapshots of a disk, the oldest first.
pub(super) fn snapshot_views(record: &DiskRecord, locals: &Locals) -> Vec<SnapshotView> {
    record.snapshots.taken.iter().map(|one| snapshot_view(record, one, locals)).collect()
}

fn snapshot_view(record: &DiskRecord, one: &::cluster::Snapshot, locals: &Locals) -> SnapshotView {
    let (copies, copies_wanted) = record.copies_with(one.number);
    SnapshotView {
        name: one.name.clone(),
        disk: record.name.clone(),
        number: one.number,
        size: one.size,
        taken: one.taken_ns / 1_000_000_000,
        export: format!("{}@{}", record.name, one.name),
        copies,
        copies_wanted,
        bytes: snapshot_bytes_of(record, locals, one.number),
        clones: record.clones.get(&one.number).copied().unwrap_or(0),
        schedule: one.schedule.map(|every| every.to_string()),
        pinned: one.is_pinned,
    }
}
