//! Clones of disks, as clients of the API see them (docs/design/0050).

use super::Control;
use crate::cluster::Rules;
use crate::directory::DiskEntry;
use crate::events::Kind;
use api::name::check_name;
use api::types::{CloneDisk, CreateDisk, DiskView, FlattenDisk, FlattenedView};
use base::DiskId;
use base::request::StatusOf;
use base::units::{EXTENT_SIZE, SECTOR_SIZE};
use engine::{Command, EngineError};
use failure::{Code, Failure};
use replication::Origin;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long one call copies.
const FLATTEN_TIME: Duration = Duration::from_secs(1);
/// MiB that are copied at once: beside guests, which feel few.
const FLATTEN_DEPTH: usize = 4;
/// Bytes of the origin that are asked about at once.
const ASKED_BYTES: u64 = 64 << 20;

impl Control {
    /// Makes a disk as a clone of a snapshot of another one, which is taken if none is named (docs/design/0050).
    ///
    /// # Errors
    /// When there is no such disk or snapshot, or no place fits the clone's policy.
    pub async fn clone_disk(&self, of: &str, request: CloneDisk) -> Result<DiskView, Failure> {
        check_name(&request.name)?;
        let origin = self.find(of)?;
        let snapshot = match &request.snapshot {
            Some(name) => self.recorded(&origin.record, name)?,
            None => {
                if self.records().disk(&request.name).is_some() {
                    let text = format!("there is a disk `{}` already", request.name);
                    return Err(Failure::new(Code::Conflict, text));
                }
                let name = format!("for-{}", request.name);
                self.cluster.take_snapshot(origin.record.id, &name).await?;
                self.recorded(&origin.record, &name)?
            }
        };
        let made = self.make_clone(&origin, &snapshot, &request).await;
        if made.is_err() && request.snapshot.is_none() {
            let _ = self.cluster.delete_snapshot(origin.record.id, &snapshot.name).await;
        }
        let name = made?;
        let text = format!("made as a clone of {}@{}", origin.record.name, snapshot.name);
        self.events.disk(Kind::DiskCreated, &name, text);
        self.disk_view(&name).await
    }

    async fn make_clone(
        &self,
        of: &DiskEntry,
        snapshot: &::cluster::Snapshot,
        request: &CloneDisk,
    ) -> Result<String, Failure> {
        let follows =
            self.cluster.view().disks.get(&of.record.id).and_then(|disk| disk.record.follows.clone());
        let as_origin = Rules { policy: of.record.policy, follows };
        let rules = match request.policy.as_deref() {
            Some(text) => self.resolve_rules(Some(text), Some(&as_origin))?,
            None => as_origin,
        };
        let size = request.size.unwrap_or(snapshot.size);
        if size == 0 || !size.is_multiple_of(SECTOR_SIZE) {
            return Err(Failure::usage(format!(
                "a disk of {size} bytes is not possible: multiples of {SECTOR_SIZE} are"
            )));
        }
        let new = CreateDisk {
            name: request.name.clone(),
            size,
            policy: None,
            read_only: request.read_only,
            share: request.share,
            ..CreateDisk::default()
        };
        let origin = Origin { disk: of.record.id, snapshot: snapshot.number, size: snapshot.size };
        let _change = self.changes.lock().await;
        self.check_disk_count()?;
        self.cluster.create_disk(new, rules, Some(origin)).await
    }

    /// Has a clone copy what it shares with its origin, from a byte on, for a moment; all of it copied, it is an ordinary disk.
    ///
    /// # Errors
    /// When it is no clone, has snapshots, or its origin cannot be read.
    pub async fn flatten(&self, name: &str, request: &FlattenDisk) -> Result<FlattenedView, Failure> {
        let entry = self.find(name)?;
        let view = self.cluster.view();
        let disk = view.disks.get(&entry.record.id);
        let disk = disk.ok_or_else(|| Failure::refused(format!("disk {name} is not there any more")))?;
        disk.record
            .expect_leaves_origin()
            .map_err(|why| Failure::refused(format!("disk {}: {why}", entry.record.name)))?;
        let Some(origin) = disk.record.origin else { return Err(Failure::refused("it is no clone")) };
        let clone_of = self.gather().await?.clone_of(entry.record.id).unwrap_or_default();
        let end = origin.size.min(entry.record.size);
        let until = Instant::now() + FLATTEN_TIME;
        let mut at = request.from - request.from % EXTENT_SIZE;
        while at < end && Instant::now() < until {
            at = self.copy_up(entry.record.id, origin, at..end).await?;
        }
        if at >= end {
            self.cluster.leave_origin(entry.record.id).await?;
            let text = format!("all is copied that it shared with {clone_of}: it is no clone any more");
            self.events.disk(Kind::DiskChanged, &entry.record.name, text);
        }
        let next = (at < end).then_some(at);
        Ok(FlattenedView { disk: entry.record.name.clone(), clone_of, size: end, next })
    }

    /// Has a clone copy the first few MiB of a range, but what the origin does not have. Gives where to go on.
    async fn copy_up(&self, clone: DiskId, origin: Origin, range: Range<u64>) -> Result<u64, Failure> {
        let asked = range.start..range.end.min(range.start + ASKED_BYTES);
        let of = StatusOf::Snapshot(origin.snapshot);
        let mut at = range.start;
        let mut parts: Vec<Range<u64>> = Vec::new();
        for run in self.states(origin.disk, of, asked).await? {
            let first = at - at % EXTENT_SIZE;
            at += run.len;
            let firsts = (first..at).step_by(EXTENT_SIZE as usize).filter(|_| run.is_set);
            for first in firsts {
                if parts.last().is_none_or(|last| last.start < first) {
                    parts.push(first..range.end.min(first + EXTENT_SIZE));
                }
            }
        }
        for parts in parts.chunks(FLATTEN_DEPTH) {
            let mut asked = Vec::new();
            for range in parts.iter().cloned() {
                let (answer, wait) = oneshot::channel();
                self.engine.tell(Command::CopyUp { disk: clone, range, answer })?;
                asked.push(wait);
            }
            for wait in asked {
                let copied = wait.await.map_err(|_| EngineError::Stopped)?;
                copied.map_err(|why| Failure::failed("copy what the clone shares with its origin", why))?;
            }
        }
        Ok(if at >= range.end { range.end } else { at - at % EXTENT_SIZE })
    }
}
