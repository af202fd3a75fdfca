//! Snapshots of disks, as clients of the API see them.

use super::Control;
use super::disks::check_confirmed;
use ::cluster::DiskRecord;
use api::name::check_name;
use api::types::{CreateSnapshot, SnapshotView};
use failure::{Code, Failure};
use replication::Standing;

impl Control {
    /// The snapshots of a disk, the oldest first.
    ///
    /// # Errors
    /// When there is no such disk.
    pub fn snapshots(&self, disk: &str) -> Result<Vec<SnapshotView>, Failure> {
        let entry = self.find(disk)?;
        let view = self.cluster.view();
        let record = view.disks.get(&entry.record.id).map(|disk| &disk.record);
        Ok(record.map_or_else(Vec::new, |record| {
            record.snapshots.taken.iter().map(|one| snapshot_view(record, one)).collect()
        }))
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
        self.snapshot(&entry.record.name, &request.name)
    }

    /// One snapshot of a disk.
    ///
    /// # Errors
    /// When there is no such disk or snapshot.
    pub fn snapshot(&self, disk: &str, name: &str) -> Result<SnapshotView, Failure> {
        let found = self.snapshots(disk)?.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("disk {disk} has no snapshot `{name}`"))
                .hint("see `drystone disk snapshot list`")
        })
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
        self.snapshot(&entry.record.name, name)?;
        check_confirmed(confirm, name, "deleting a snapshot destroys what only it holds")?;
        self.cluster.delete_snapshot(entry.record.id, name).await
    }
}

fn snapshot_view(record: &DiskRecord, one: &::cluster::Snapshot) -> SnapshotView {
    let active = |place: u16| {
        let members = record.roster.members.iter();
        members.filter(move |member| member.place == place && member.standing == Standing::Active)
    };
    let places = 0..record.layout.place_count() as u16;
    let with_it = |place: u16| active(place).filter(|member| !member.lacks.contains(one.number)).count();
    let wanted = |place: u16| record.layout.place(usize::from(place)).map_or(0, <[_]>::len);
    SnapshotView {
        name: one.name.clone(),
        disk: record.name.clone(),
        number: one.number,
        size: one.size,
        taken: one.taken_ns / 1_000_000_000,
        export: format!("{}@{}", record.name, one.name),
        copies: places.clone().map(with_it).min().unwrap_or(0),
        copies_wanted: places.map(wanted).min().unwrap_or(0),
    }
}
