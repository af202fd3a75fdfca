//! What owners say of themselves: counted, and compared with what may happen.

use super::world::World;
use base::DiskId;
use replication::owner::{End, Event as OwnerEvent};

impl World {
    pub(crate) fn owner_event(&mut self, host: usize, disk: DiskId, event: OwnerEvent) {
        self.say(|| format!("host {host}: {disk:?} {event:?}"));
        match event {
            OwnerEvent::Serving { rolled, .. } => {
                self.summary.take_overs += 1;
                self.summary.rolled += u64::from(rolled);
            }
            OwnerEvent::Left { why, .. } => {
                self.summary.left += 1;
                self.summary.stuck += u64::from(why == replication::owner::LeftBecause::Stuck);
                let is_liar = why == replication::owner::LeftBecause::LostWrites;
                if is_liar && !self.may_damage() && self.summary.rolled_back == 0 {
                    self.fail(format!("host {host}: a component of {disk:?} lost acknowledged changes"));
                }
            }
            OwnerEvent::Joined { copied_bytes, .. } => {
                self.summary.joined += 1;
                self.summary.copied_bytes += copied_bytes;
            }
            OwnerEvent::StandsIn { .. } => self.summary.stood_in += 1,
            OwnerEvent::RestoreBegan { .. } => self.summary.restored += 1,
            OwnerEvent::Diverged { component } => {
                self.summary.diverged += 1;
                if self.summary.rolled_back + self.summary.rebuilt == 0 {
                    self.fail(format!(
                        "{component:?} is taken for one that has diverged, and no directory was set back"
                    ));
                }
            }
            OwnerEvent::Ended(End::Diverged) => self.decide_later(disk),
            OwnerEvent::Repaired { .. } => self.summary.repaired += 1,
            OwnerEvent::RowsChecked { rows, .. } => self.summary.rows_checked += rows,
            OwnerEvent::RowDisagrees { component, part, implied, .. } => {
                self.row_disagrees(disk, (component, part), implied);
            }
            OwnerEvent::SnapshotTaken { held, .. } => {
                self.summary.held_ns = self.summary.held_ns.max(held.as_nanos() as u64);
            }
            OwnerEvent::Backfilled { copied_bytes, .. } => {
                self.summary.backfilled += 1;
                self.summary.backfilled_bytes += copied_bytes;
            }
            OwnerEvent::SnapshotNotTaken { why } => self.snapshot_not_taken(disk, why),
            OwnerEvent::Ended(_) | OwnerEvent::ResyncBegan { .. } | OwnerEvent::ResyncFailed { .. } => {}
        }
    }
}
