//! Handovers of attachments, for live migration.

use super::Control;
use crate::events::Kind;
use crate::limits::HANDOVER_MAX;
use ::cluster::Handover;
use api::types::{HandOver, HandoverView};
use base::DiskId;
use failure::Failure;
use std::time::Duration;

impl Control {
    /// Lets one further host attach a disk for a while.
    ///
    /// # Errors
    /// When there is no such disk or host, or the time makes no sense.
    pub async fn hand_over(&self, name: &str, request: &HandOver) -> Result<HandoverView, Failure> {
        if request.seconds == 0 || request.seconds > HANDOVER_MAX.as_secs() {
            return Err(Failure::usage(format!(
                "a handover of {} s is not possible: 1 to {} s are",
                request.seconds,
                HANDOVER_MAX.as_secs()
            )));
        }
        let entry = self.find(name)?;
        let host = self.cluster.find_host(&request.host)?;
        let until = self.cluster.directory_now() + Duration::from_secs(request.seconds);
        let handover = Handover { to: host.record.id, until };
        let is_needed = self.cluster.hand_over(entry.record.id, Some(handover)).await?;
        let view = HandoverView {
            disk: entry.record.name.clone(),
            host: host.record.name.clone(),
            until: is_needed.then_some(until.0 / 1_000_000_000),
        };
        if is_needed {
            let text = format!("host {} may attach it, too, for {} s", view.host, request.seconds);
            self.events.disk(Kind::DiskChanged, &view.disk, text);
        }
        Ok(view)
    }

    /// Ends a handover. Whoever has the disk by now keeps it.
    ///
    /// # Errors
    /// When there is no such disk, or the directory does not answer.
    pub async fn end_handover(&self, name: &str) -> Result<(), Failure> {
        let entry = self.find(name)?;
        self.cluster.hand_over(entry.record.id, None).await.map(drop)
    }

    /// The handover of a disk that has not ended.
    pub(super) fn handover_view(&self, id: DiskId, disk: &str) -> Option<HandoverView> {
        let view = self.cluster.view();
        let handover = view.attached.get(&id)?.handover?;
        let is_open = handover.admits(handover.to, self.cluster.directory_now());
        is_open.then(|| HandoverView {
            disk: disk.to_owned(),
            host: view.host_name(handover.to),
            until: Some(handover.until.0 / 1_000_000_000),
        })
    }
}
