//! Findings about scheduled snapshots.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::Surroundings;
use crate::schedules::late_snapshot;
use crate::view::View;
use crate::wall_clock::wall_clock;

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let seconds = wall_clock(view, around.now);
    for disk in view.disks.values().filter(|disk| !disk.policy.snapshots.is_empty()) {
        let Some((every, late)) = late_snapshot(view, disk, seconds) else { continue };
        found.push(Finding {
            code: Code::SnapshotsMissing,
            severity: Severity::Warning,
            subject: Subject::Disk(disk.id),
            cause: format!("snapshots of {} by its schedule ({every}) are not taken: {late}", disk.name),
            remedy: late.remedy().to_owned(),
        });
    }
}
