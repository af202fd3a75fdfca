//! Disks that one further host may attach for a while, so that a running guest can move there (docs/design/0017).
//!
//! It stands in the record of the disk's claims, so one compare-and-set decides between it, an attachment and a release.

use super::Cluster;
use crate::directory::shared::record::Attached;
use ::cluster::{Handover, Level};
use base::DiskId;
use failure::{Code, Failure};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Lets a host attach a disk that another one has, or ends that. False where no other host has it: nothing is needed then.
    ///
    /// # Errors
    /// When the records are of a level without it, or the directory does not answer.
    pub async fn hand_over(&self, id: DiskId, handover: Option<Handover>) -> Result<bool, Failure> {
        self.expect_level("a handover", Level::LABELS)?;
        for _ in 0..ATTEMPTS {
            let known = self.fetch_attached(id).await?;
            let is_needed = handover.is_none_or(|handover| handover.goes_on(&known.claims));
            if !is_needed || known.handover == handover {
                return Ok(is_needed);
            }
            let next = Attached { handover, ..known };
            if self.commit_attached(id, &next, &next.claims.clone()).await?.is_none() {
                return Ok(true);
            }
        }
        Err(Failure::new(Code::Conflict, "where the disk is attached changes all the time").hint("try again"))
    }
}
