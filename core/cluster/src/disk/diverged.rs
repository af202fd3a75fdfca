//! Diverged disks: a component that is not active holds acknowledged changes that the active ones lack
//! (docs/design/0023). A person decides which copies are kept. Must never choose by itself.

use super::{DiskRecord, Objection, Transition};
use crate::view::View;
use crate::words::listed;
use base::{ComponentId, HostId};
use replication::{Ceiling, Member, Standing};

impl DiskRecord {
    /// Keeps the copies of one host: its component becomes active in each place that has diverged, and the other
    /// components of the place are filled from it.
    ///
    /// # Errors
    /// When the disk has not diverged, or the host has no copy of a place that has.
    pub fn resolve(&self, host: HostId) -> Result<Transition, Objection> {
        self.expect_active()?;
        let mut next = self.clone();
        loop {
            let first = next.roster.diverged().next().map(|member| member.place);
            let Some(place) = first else { break };
            let kept = kept_in(&next, place, host)?;
            next.roster = next.roster.decided_in(place, kept).ok_or(Objection::NotKept(place))?;
        }
        if next == *self {
            return Err(Objection::NotDiverged);
        }
        Ok(self.changed(next))
    }
}

/// The component of a host that has diverged in a place; none where an active one is there.
fn kept_in(disk: &DiskRecord, place: u16, host: HostId) -> Result<Option<ComponentId>, Objection> {
    let is_here = |one: &&Member| one.place == place && one.node.host == host;
    match disk.roster.members.iter().find(is_here) {
        Some(one) if one.ceiling == Ceiling::Passed => Ok(Some(one.component)),
        Some(one) if one.standing == Standing::Active => Ok(None),
        Some(_) | None => Err(Objection::NotKept(place)),
    }
}

/// The decision that a diverged disk waits for; none for another disk.
pub(crate) fn explain(view: &View, disk: &DiskRecord) -> Option<String> {
    let place = disk.roster.diverged().next()?.place;
    let hosts = |is_it: fn(&Member) -> bool| {
        let members = disk.roster.members.iter().filter(|one| one.place == place && is_it(one));
        listed(&members.map(|one| view.host_name(one.node.host)).collect::<Vec<_>>())
    };
    let ahead = hosts(|one| one.ceiling == Ceiling::Passed);
    let counting = hosts(|one| one.standing == Standing::Active);
    Some(format!(
        "diverged: the copy on {ahead} holds acknowledged writes that the copy on {counting} lacks, because the directory was older than \
         the devices; nothing is served. Keep one: `drystone disk resolve {} --keep HOST`",
        disk.name
    ))
}
