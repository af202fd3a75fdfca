//! What a trace is like: mix, locality, working set, reuse, bursts, heat; of each disk and of all together.
//!
//! Events come one by one and are not kept. Each analysis has its own bound: counts are exact where they can be, and sampled by
//! address where they cannot.

mod burst;
mod depth;
mod distinct;
mod hash;
mod heat;
mod locality;
mod mix;
mod reuse;

use serde::Serialize;

use crate::event::{Action, Event};
use burst::Arrivals;
use depth::Depth;
use distinct::WorkingSets;
use hash::{hash, key};
use heat::HeatMap;
use locality::{Locality, Step};
use mix::Counting;
use reuse::Reuse;

pub use burst::{Burstiness, Bursts};
pub use depth::Outstanding;
pub use distinct::WorkingSet;
pub use heat::{Heat, Overwrites};
pub use locality::Sequentiality;
pub use mix::{Mix, SizeShare};
pub use reuse::{MissRatios, Sampling};

/// Disks that are looked at each; I/Os of others count in the whole alone. Each takes up to 16 MiB.
pub const DISKS_MAX: usize = 64;
/// Blocks of one I/O that are looked at (64 MiB of 4 KiB).
const BLOCKS_MAX: u64 = 16_384;
/// Equal parts of a disk in which random I/Os are counted.
pub const ZONES: usize = 20;

/// How a trace is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Options {
    /// Bytes of a block, in working sets and caches.
    pub block: u64,
    /// Seconds of a window of the working set, to begin with; they become longer in a long trace.
    pub window_s: f64,
    /// Which blocks are sampled for miss ratios.
    pub sampling: Sampling,
}

impl Default for Options {
    /// 4 KiB, a minute, 8,192 blocks: within 0.02 of the exact curve, as the paper finds.
    fn default() -> Self {
        Options { block: 4096, window_s: 60.0, sampling: Sampling::Size(8_192) }
    }
}

/// What a trace is like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analyzed {
    /// Each disk, by its index in the trace.
    pub disks: Vec<Profile>,
    /// All disks together; its sequentiality and outstanding I/Os are those of the mixture.
    pub overall: Profile,
    /// I/Os that count in the whole alone.
    pub beyond: u64,
}

/// What the I/O of a disk is like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Which disk; "all disks" of the whole.
    pub name: String,
    /// Reads and writes.
    pub ios: u64,
    /// From the first to the last, in seconds.
    pub seconds: f64,
    /// What they are.
    pub mix: Mix,
    /// Where they go.
    pub sequentiality: Sequentiality,
    /// What they touch.
    pub working_set: WorkingSet,
    /// What caches would hit.
    pub reuse: MissRatios,
    /// How unevenly they come.
    pub burstiness: Burstiness,
    /// How many are outstanding; none without latencies.
    pub outstanding: Option<Outstanding>,
    /// Which parts are hot.
    pub heat: Heat,
    /// How soon what was written is written again.
    pub overwrites: Overwrites,
    /// I/Os that go on no stream, in [`ZONES`] equal parts from the first to the last byte that was touched.
    pub random_zones: Vec<f64>,
}

/// Takes the events of a trace, in order of time.
#[derive(Debug)]
pub struct Analysis {
    options: Options,
    disks: Vec<Taking>,
    overall: Taking,
    beyond: u64,
}

/// One disk while its events come.
#[derive(Debug)]
struct Taking {
    block: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    ios: u64,
    mix: Counting,
    locality: Locality,
    working_set: WorkingSets,
    reuse: Reuse,
    arrivals: Arrivals,
    depth: Depth,
    heat: HeatMap,
}

impl Analysis {
    /// An analysis that has seen nothing.
    pub fn new(options: Options) -> Analysis {
        let options = Options { block: options.block.max(512), ..options };
        Analysis { options, disks: Vec::new(), overall: Taking::new(&options), beyond: 0 }
    }

    /// Takes an event.
    pub fn event(&mut self, event: &Event) {
        self.overall.event(event);
        let disk = event.disk as usize;
        if disk >= DISKS_MAX {
            self.beyond += 1;
            return;
        }
        while self.disks.len() <= disk {
            self.disks.push(Taking::new(&self.options));
        }
        self.disks[disk].event(event);
    }

    /// What it comes to, for disks of these names (by their index; others are named by it).
    pub fn finish(&self, names: &[String]) -> Analyzed {
        let name = |index: usize| names.get(index).cloned().unwrap_or_else(|| format!("disk {index}"));
        Analyzed {
            disks: self.disks.iter().enumerate().map(|(index, disk)| disk.finish(name(index))).collect(),
            overall: self.overall.finish("all disks".to_owned()),
            beyond: self.beyond,
        }
    }
}

impl Taking {
    fn new(options: &Options) -> Taking {
        Taking {
            block: options.block,
            first_ns: None,
            last_ns: 0,
            ios: 0,
            mix: Counting::default(),
            locality: Locality::default(),
            working_set: WorkingSets::new(options.block, options.window_s),
            reuse: Reuse::new(options.block, options.sampling),
            arrivals: Arrivals::default(),
            depth: Depth::default(),
            heat: HeatMap::default(),
        }
    }

    fn event(&mut self, event: &Event) {
        if matches!(event.action, Action::Trim | Action::Flush) {
            self.mix.other(event.action);
            return;
        }
        self.ios += 1;
        let first_ns = *self.first_ns.get_or_insert(event.at_ns);
        self.last_ns = self.last_ns.max(event.at_ns);
        // Two disks have no address in common: a stream does not go on from one to the other.
        let base = u64::from(event.disk).wrapping_mul(1 << 52);
        let step = self.locality.io(base.wrapping_add(event.offset), base.wrapping_add(event.end()));
        self.mix.io(event, step);
        self.arrivals.event(event.at_ns - first_ns.min(event.at_ns));
        if let Some(latency_ns) = event.latency_ns {
            self.depth.io(event.at_ns, latency_ns);
        }
        self.heat.io(event.disk, event.offset, step == Step::Jumps);
        self.working_set.range(event.offset, event.end());
        let write = event.action == Action::Write;
        let (first, last) = (event.offset / self.block, event.end().saturating_sub(1) / self.block);
        for block in (first..=last.max(first)).take(BLOCKS_MAX as usize) {
            let key = key(event.disk, block);
            let hash = hash(key);
            self.working_set.block(event.at_ns - first_ns.min(event.at_ns), hash, write);
            self.reuse.access(key, hash);
            self.heat.block(event.at_ns, key, hash, block == first, write);
        }
    }

    fn finish(&self, name: String) -> Profile {
        let working_set = self.working_set.finish();
        let random_zones = self.heat.random_in_zones(working_set.span.unwrap_or((0, 1)), ZONES);
        Profile {
            name,
            ios: self.ios,
            seconds: self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)) as f64 / 1e9,
            mix: self.mix.finish(),
            sequentiality: self.locality.finish(),
            working_set,
            reuse: self.reuse.finish(),
            burstiness: self.arrivals.finish(),
            outstanding: self.depth.finish(),
            heat: self.heat.heat(),
            overwrites: self.heat.overwrites(),
            random_zones,
        }
    }
}

#[cfg(test)]
pub(crate) use reuse::tests::zipf;

#[cfg(test)]
mod tests;
