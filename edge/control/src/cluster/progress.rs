//! How fast components are brought up to date and disks move into another layout: from the last few samples of what was copied.

use base::{ComponentId, DiskId};
use engine::ClusterState;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Samples that a pace is taken over: ten seconds of them.
const SAMPLES: usize = 10;

/// The samples of all resyncs and moves under way.
#[derive(Default)]
pub struct Progress {
    components: BTreeMap<ComponentId, Samples>,
    disks: BTreeMap<DiskId, Samples>,
}

/// When how many bytes had been copied of one thing.
#[derive(Default)]
struct Samples(VecDeque<(Instant, u64)>);

impl Samples {
    fn take(&mut self, now: Instant, copied: u64) {
        if self.0.back().is_some_and(|(_, before)| *before > copied) {
            self.0.clear(); // It began anew.
        }
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((now, copied));
    }

    fn pace(&self) -> Option<f64> {
        let ((first, before), (last, after)) = (self.0.front()?, self.0.back()?);
        let seconds = last.duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| (after - before) as f64 / seconds)
    }
}

impl Progress {
    /// Takes one sample.
    pub fn take(&mut self, now: Instant, state: &ClusterState) {
        let mut components = BTreeMap::new();
        let mut disks = BTreeMap::new();
        for (id, disk) in &state.disks {
            if let Some(moving) = &disk.moving {
                let mut samples = self.disks.remove(id).unwrap_or_default();
                samples.take(now, moving.copied_bytes);
                disks.insert(*id, samples);
            }
            for member in disk.owner.iter().flat_map(|owner| &owner.members) {
                let Some((copied, _)) = member.resync else { continue };
                let mut samples = self.components.remove(&member.component).unwrap_or_default();
                samples.take(now, copied);
                components.insert(member.component, samples);
            }
        }
        (self.components, self.disks) = (components, disks);
    }

    /// Bytes per second of a component's resync, once two samples tell.
    pub fn pace(&self, component: ComponentId) -> Option<f64> {
        self.components.get(&component)?.pace()
    }

    /// Bytes per second of a disk that moves, once two samples tell.
    pub fn pace_of_move(&self, disk: DiskId) -> Option<f64> {
        self.disks.get(&disk)?.pace()
    }
}
