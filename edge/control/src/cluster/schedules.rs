//! Scheduled snapshots, asked for and deleted by the host that decides what needs no owner (docs/design/0047, "Schedules").
//!
//! `core/cluster` decides. Each change is one compare-and-set of a disk's record, which asks again whether it still holds: two hosts that
//! both believe that they decide do no harm. Must hold no rule of its own.

use super::Cluster;
use crate::events::Kind;
use crate::limits::SCHEDULE_PERIOD;
use ::cluster::{Level, Scheduled, Scheduler, late_snapshot, wall_clock};
use api::types::ScheduleView;
use base::DiskId;
use failure::Failure;
use std::sync::Arc;
use std::time::Instant;

impl Cluster {
    /// Sees to scheduled snapshots until the engine is gone.
    pub(super) async fn keep_schedules(self: Arc<Cluster>) {
        let (mut scheduler, began) = (Scheduler::default(), Instant::now());
        loop {
            tokio::time::sleep(SCHEDULE_PERIOD).await;
            if self.state().await.is_err() {
                return;
            }
            if self.view().level.level < Level::SNAPSHOTS {
                continue;
            }
            let (seconds, steps) = {
                let keeper = self.keeper();
                let decides = keeper.away_since.is_none() && keeper.coordinator() == Some(self.me);
                if !decides {
                    // What it remembers is old when it decides again.
                    scheduler = Scheduler::default();
                    continue;
                }
                let seconds = wall_clock(&keeper.facts, keeper.now());
                let steady = base::Instant(began.elapsed().as_nanos() as u64);
                (seconds, scheduler.step(seconds, steady, &keeper.facts))
            };
            for (id, step) in steps {
                if let Err(failure) = self.see_to_schedule(id, &step, seconds).await {
                    tracing::debug!("disk {}: {step:?}: {failure}", self.disk_name(id));
                }
            }
        }
    }

    async fn see_to_schedule(&self, id: DiskId, step: &Scheduled, seconds: u64) -> Result<(), Failure> {
        match step {
            Scheduled::Ask { every, name } => {
                let (level, due) = (self.view().level.level, (*every, seconds));
                self.transition(id, |record| record.ask_scheduled(name, due, level).map(Some)).await?;
            }
            Scheduled::Cancel => {
                let mut text = "";
                let cancelled = self.transition(id, |record| {
                    text = match (record.snapshots.asked_for, record.roster.snapshots.together) {
                        (Some(_), _) => {
                            "a scheduled snapshot was not taken in time, and is tried again in a minute"
                        }
                        (None, Some(_)) => {
                            "a snapshot of several disks was not taken in time, and is called off"
                        }
                        (None, None) => return Ok(None),
                    };
                    record.cancel_snapshot().map(Some)
                });
                if cancelled.await? {
                    self.log(id, Kind::SnapshotRefused, text);
                }
            }
            Scheduled::Delete { name, schedule } => {
                if self.transition(id, |record| record.expire_snapshot(name, &self.clones())).await? {
                    let text = format!("snapshot {name} is deleted: its schedule is {schedule}");
                    self.log(id, Kind::SnapshotDeleted, text);
                }
            }
        }
        Ok(())
    }

    /// The schedules of a disk: what they have taken, and when they take the next one.
    pub fn schedules(&self, id: DiskId) -> Vec<ScheduleView> {
        let view = self.view();
        let Some(record) = view.disks.get(&id).map(|disk| &disk.record) else { return Vec::new() };
        let keeper = self.keeper();
        let seconds = wall_clock(&keeper.facts, keeper.now());
        let late = late_snapshot(&keeper.facts, record, seconds);
        let schedule = |one: placement::Schedule| {
            let taken = record.snapshots.taken.iter().filter(|snapshot| snapshot.schedule == Some(one.every));
            let why = late.as_ref().filter(|(every, _)| *every == one.every).map(|(_, why)| why.to_string());
            ScheduleView {
                every: one.every.to_string(),
                keep: one.keep,
                taken: taken.count(),
                last: record.snapshots.served.get(&one.every).copied(),
                next: record.next_snapshot(one.every, seconds),
                late: why,
            }
        };
        record.policy.snapshots.iter().map(schedule).collect()
    }
}
