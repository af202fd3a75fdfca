//! Moves of disks into another layout while guests use them (docs/design/0041): begun, steered, ended.
//!
//! Owners copy; here the record is changed. Must hold no rule of its own.

use super::Cluster;
use super::change::{objection, restless, unknown};
use crate::directory::shared::record::ClusterDisk;
use crate::events::Kind;
use crate::limits::{GROWTH_WAIT, SIZE_POLL};
use crate::system::{blocking_seed, component_ids};
use ::cluster::Transition;
use api::types::MoveAction;
use base::DiskId;
use failure::{Code, Failure};
use placement::Policy;
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Begins to move a disk into the layout that a policy asks for: once its components are made, the owner moves what the disk holds.
    ///
    /// # Errors
    /// When there is no room, or a host does not make its component.
    pub(super) async fn begin_move(
        &self,
        disk: &ClusterDisk,
        policy: &Policy,
        follows: Option<String>,
    ) -> Result<bool, Failure> {
        let record = &disk.record;
        let level = self.view().level.level;
        if level < ::cluster::Level::LIMITS {
            return Err(Failure::refused(format!(
                "disk {}: moving into another layout needs records of {}, and those of this cluster are at {level}",
                record.name,
                ::cluster::Level::LIMITS
            ))
            .hint("`drystone cluster upgrade` raises it once all hosts run this release"));
        }
        let (spaces, used_bytes) = (self.spaces().await?, self.keeper().facts.used(record.id).to_vec());
        let (mut ids, nodes) = (component_ids(blocking_seed()?), self.view().nodes_of_devices());
        let begun =
            record.begin_move(policy, follows, &spaces, &used_bytes, &nodes, &mut ids).map_err(|why| {
                let failure = objection(why);
                Failure { error: format!("disk {}: {}", record.name, failure.error), ..failure }
            })?;
        let next = disk.with(begun.record);
        let committed = self.commit_disk(next, record.version).await;
        if committed.map_err(|_| unknown(&record.name))?.is_none() {
            return Ok(false);
        }
        self.make_other_side(record.id).await?;
        Ok(true)
    }

    /// Makes the components of the other layout; a move whose components cannot be made is called off.
    async fn make_other_side(&self, id: DiskId) -> Result<(), Failure> {
        let until = Instant::now() + GROWTH_WAIT;
        loop {
            let disk = self.changeable(id).await?;
            if disk.record.growth.is_none() {
                return Ok(());
            }
            if let Some(why) = self.advance_move(&disk, Instant::now() >= until).await? {
                self.cancel_growth(id, disk.record.size).await?;
                return Err(Failure::refused(format!("disk {} cannot move: {why}", disk.record.name))
                    .hint("try again when the host is back"));
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    /// Has a disk that moves pause, go on, or move back. The named policy that it follows no more, if it did: it would begin the move again.
    ///
    /// # Errors
    /// When it does not move.
    pub(super) async fn steer_move(&self, id: DiskId, action: MoveAction) -> Result<Option<String>, Failure> {
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let record = &disk.record;
            let Some(moving) = record.moving.as_ref().filter(|_| record.growth.is_none()) else {
                return Err(Failure::new(
                    Code::Conflict,
                    format!("disk {} is not being moved into another layout", record.name),
                )
                .hint("`drystone disk set NAME method=parity` would begin that"));
            };
            let (is_back, is_paused) = match action {
                MoveAction::Pause => (moving.is_back, true),
                MoveAction::Resume => (moving.is_back, false),
                MoveAction::Back => (true, false),
                MoveAction::On => (false, false),
            };
            if (is_back, is_paused) == (moving.is_back, moving.is_paused) {
                return Ok(None);
            }
            let text = match action {
                MoveAction::Pause => "its move into another layout pauses",
                MoveAction::Resume => "its move into another layout goes on",
                MoveAction::Back => "it moves back into the layout that it had",
                MoveAction::On => "it moves on into the other layout",
            };
            let steered = record.steer_move(is_back, is_paused).map_err(objection)?;
            let left = record.follows.clone().filter(|_| steered.record.follows.is_none());
            let text = match &left {
                Some(policy) => {
                    format!("{text}; it follows policy {policy} no more and has rules of its own")
                }
                None => text.to_owned(),
            };
            if self.commit_move(&disk, steered, &text).await? {
                return Ok(left);
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
        Err(restless(id))
    }

    /// Ends the move of a disk of which all has moved.
    pub(super) async fn end_move(&self, id: DiskId) -> Result<(), Failure> {
        let Some(disk) = self.fetch(id).await?.filter(|disk| disk.record.has_moved()) else { return Ok(()) };
        let is_back = disk.record.moving.as_ref().is_some_and(|moving| moving.is_back);
        let ended = disk.record.end_move().map_err(objection)?;
        let text = match is_back {
            true => "it has moved back into the layout that it had".to_owned(),
            false => format!("all of it has moved: {}", ended.record.policy.short()),
        };
        self.commit_move(&disk, ended, &text).await.map(drop)
    }

    async fn commit_move(&self, disk: &ClusterDisk, change: Transition, text: &str) -> Result<bool, Failure> {
        let record = &disk.record;
        let committed = self.commit_disk(disk.with(change.record), record.version).await;
        let Some(next) = committed.map_err(|_| unknown(&record.name))? else { return Ok(false) };
        self.tell_disk(&next).await?;
        self.log(record.id, Kind::DiskChanged, text);
        Ok(true)
    }
}
