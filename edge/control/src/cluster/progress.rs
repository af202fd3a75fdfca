//! How fast components are brought up to date: from the last few samples of what was copied.

use base::ComponentId;
use engine::ClusterState;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Samples that a pace is taken over: ten seconds of them.
const SAMPLES: usize = 10;

/// The samples of all resyncs under way.
#[derive(Default)]
pub struct Progress {
    samples: BTreeMap<ComponentId, VecDeque<(Instant, u64)>>,
}

impl Progress {
    /// Takes one sample.
    pub fn take(&mut self, now: Instant, state: &ClusterState) {
        let mut next = BTreeMap::new();
        for owner in state.disks.values().filter_map(|disk| disk.owner.as_ref()) {
            for member in &owner.members {
                let Some((copied, _)) = member.resync else { continue };
                let mut samples = self.samples.remove(&member.component).unwrap_or_default();
                if samples.back().is_some_and(|(_, before)| *before > copied) {
                    samples.clear(); // Another resync of the same component.
                }
                if samples.len() == SAMPLES {
                    samples.pop_front();
                }
                samples.push_back((now, copied));
                next.insert(member.component, samples);
            }
        }
        self.samples = next;
    }

    /// Bytes per second of a component's resync, once two samples tell.
    pub fn pace(&self, component: ComponentId) -> Option<f64> {
        let samples = self.samples.get(&component)?;
        let ((first, before), (last, after)) = (samples.front()?, samples.back()?);
        let seconds = last.duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| (after - before) as f64 / seconds)
    }
}
