//! Repairs under way, and the room that is left for more.

use super::decision::{Settings, Slot};
use crate::view::{Spaces, View};
use base::{DiskId, HostId, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Repairs under way, and the room that is left.
pub(super) struct Budget<'a> {
    pub coming: usize,
    pub of_host: BTreeMap<HostId, usize>,
    pub spaces: Spaces<'a>,
    /// Decided components that no record has yet, since when.
    pub awaited: BTreeMap<(DiskId, Slot), Instant>,
    /// The hosts with devices that take components.
    takers: BTreeSet<HostId>,
}

impl<'a> Budget<'a> {
    pub fn new(view: &'a View, awaited: BTreeMap<(DiskId, Slot), Instant>) -> Budget<'a> {
        let (coming, of_host) = view.coming();
        let takers = view.in_service().map(|(host, _)| host.id).collect();
        Budget { coming, of_host, spaces: Spaces::of_view(view), awaited, takers }
    }

    /// Whether a host fills as many components as it may.
    pub fn is_full(&self, host: HostId, settings: Settings) -> bool {
        self.of_host.get(&host).is_some_and(|count| *count >= settings.replacements_per_host_max)
    }

    /// Whether more components may come, on any host.
    pub fn has_room(&self, settings: Settings) -> bool {
        let takes = |host: &HostId| !self.is_full(*host, settings);
        // Where no device is in service, that is the reason to report.
        let is_anywhere = self.takers.iter().any(takes) || self.takers.is_empty();
        self.coming < settings.replacements_max && is_anywhere
    }
}
