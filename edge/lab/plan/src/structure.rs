//! Plans, stages, groups and targets.

use crate::content::{Caching, Data, Verify};
use crate::note::Note;
use crate::pace::{LatencyTarget, Rate, Steady, Timing};
use crate::pattern::Pattern;
use crate::seconds;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What people call it.
    pub name: String,
    /// What groups name by index.
    pub targets: Vec<Target>,
    /// One after another.
    pub stages: Vec<Stage>,
    /// Where random numbers come from.
    #[serde(default)]
    pub seed: Seed,
    /// What the importer has to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// Where random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seed {
    /// The same I/Os in every run.
    Fixed(u64),
    /// Others in every run.
    #[default]
    Fresh,
}

/// Something that I/Os go to, as the job names it. A run may put others in the place of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Target {
    /// A path, an address or a name.
    pub name: String,
    /// How large the job says it is, in bytes. A file is made so large if it is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The machine that it is on, where a job names several: the same path on two of them is two devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Target {
    /// A target of this name, as large as it is found to be.
    pub fn named(name: impl Into<String>) -> Target {
        Target { name: name.into(), ..Target::default() }
    }

    /// Its name, with its machine where it has one: `h1:/dev/sdb`.
    pub fn label(&self) -> String {
        match &self.host {
            Some(host) => format!("{host}:{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Groups that run together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What people call it.
    pub name: String,
    /// At least one.
    pub groups: Vec<Group>,
    /// Nothing happens for so long before it begins, in seconds.
    #[serde(default, with = "seconds")]
    pub pause: Duration,
    /// It is run so many times.
    #[serde(default = "once")]
    pub repeats: u32,
    /// When it ends.
    #[serde(default)]
    pub ends: StageEnd,
    /// It ends when all its workers together have moved so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// It ends when it is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The largest depth is searched for that meets a latency; the groups' depths are the most that is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<LatencyTarget>,
}

fn once() -> u32 {
    1
}

impl Stage {
    /// A stage of these groups that is run once and ends when all of them are done.
    pub fn new(name: impl Into<String>, groups: Vec<Group>) -> Stage {
        Stage {
            name: name.into(),
            groups,
            pause: Duration::ZERO,
            repeats: 1,
            ends: StageEnd::default(),
            bytes_max: None,
            steady: None,
            search: None,
        }
    }

    /// I/Os that may be outstanding together: the N of Little's law and of every sweep.
    pub fn outstanding(&self) -> u64 {
        self.groups.iter().map(Group::outstanding).sum()
    }
}

/// When a stage ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageEnd {
    /// When all groups are done.
    #[default]
    All,
    /// When the first group is done (fio's `exitall`).
    First,
}

/// Workers that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What people call it.
    pub name: String,
    /// The virtual machine that it stands for: its workers run on one agent. None: one machine for all such groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// Indices of the plan's targets.
    pub targets: Vec<usize>,
    /// How many workers.
    pub workers: Workers,
    /// How many I/Os each keeps outstanding.
    pub depth: Depth,
    /// What the I/Os are.
    pub pattern: Pattern,
    /// How fast at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Rate>,
    /// Percent of the stage's I/Os that are this group's: who is ahead waits for the others (Vdbench's `skew` without a rate,
    /// fio's `flow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What is written.
    #[serde(default)]
    pub data: Data,
    /// How writes are verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// What stands between workers and target.
    #[serde(default)]
    pub caching: Caching,
    /// How I/Os are handed to the kernel.
    #[serde(default)]
    pub engine: Engine,
    /// How many at a time.
    #[serde(default)]
    pub batch: Batch,
    /// When it starts, counts and ends.
    pub timing: Timing,
}

impl Group {
    /// A group over one target with defaults for what is not named.
    pub fn new(
        name: impl Into<String>,
        target: usize,
        depth: u32,
        pattern: Pattern,
        timing: Timing,
    ) -> Group {
        Group {
            name: name.into(),
            vm: None,
            targets: vec![target],
            workers: Workers::Together(1),
            depth: Depth::PerWorker(depth),
            pattern,
            rates: Vec::new(),
            share: None,
            data: Data::default(),
            verify: None,
            caching: Caching::default(),
            engine: Engine::default(),
            batch: Batch::default(),
            timing,
        }
    }

    /// Workers in all.
    pub fn worker_count(&self) -> u64 {
        match self.workers {
            Workers::PerTarget(count) => u64::from(count) * self.targets.len() as u64,
            Workers::Together(count) => u64::from(count),
        }
    }

    /// I/Os that may be outstanding together.
    pub fn outstanding(&self) -> u64 {
        let depth = match (self.engine, self.depth) {
            // A blocking call is one I/O, whatever the depth that is asked for.
            (Engine::Blocking, _) => return self.worker_count(),
            (_, Depth::PerTarget(depth)) | (_, Depth::PerWorker(depth)) => u64::from(depth),
        };
        match (self.workers, self.depth) {
            (Workers::Together(_), Depth::PerTarget(_)) => {
                self.worker_count() * self.targets.len() as u64 * depth
            }
            (Workers::PerTarget(_), _) | (Workers::Together(_), Depth::PerWorker(_)) => {
                self.worker_count() * depth
            }
        }
    }
}

/// How many workers a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workers {
    /// Each target has so many of its own.
    PerTarget(u32),
    /// So many in all; each works on all targets in turn.
    Together(u32),
}

/// How many I/Os a worker keeps outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// On each of its targets.
    PerTarget(u32),
    /// On all its targets together.
    PerWorker(u32),
}

/// How I/Os are handed to the kernel. On a target that is no file of this machine (NBD) it does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring.
    #[default]
    IoUring,
    /// Linux' older asynchronous I/O (fio's `libaio`).
    LinuxAio,
    /// One call an I/O (fio's `psync`, `sync` and others): a worker has one I/O under way, whatever its depth.
    Blocking,
}

/// How many I/Os are submitted and waited for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Most I/Os handed over with one call; 0: as many as are ready.
    pub submit: u32,
    /// Completions that are waited for.
    pub complete: u32,
    /// Most completions that are taken before new I/Os begin; 0: as many as there are.
    #[serde(default)]
    pub complete_max: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { submit: 0, complete: 1, complete_max: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Distribution, Extent, Length, Loop, Pace, RateOf, RatePer, Think, Timing, Zone};

    #[test]
    fn a_plan_reads_back_from_its_own_toml() {
        let mut group = Group::new("g", 0, 4, Pattern::simple(8192, 70.0, 100.0), Timing::seconds(10));
        group.workers = Workers::PerTarget(3);
        group.timing.length =
            Length::First { time: Duration::from_millis(1500), amount: crate::Amount::Passes(2.0) };
        group.pattern.lines[0].think = Some(Think {
            after: 8,
            pause: Duration::from_micros(250),
            spin: true,
            start: crate::PauseStart::default(),
        });
        group.pattern.distribution = Distribution::Zoned(vec![
            Zone { ios: 95.0, length: Extent::Percent(5.0) },
            Zone { ios: 5.0, length: Extent::Bytes(1 << 20) },
        ]);
        group.rates.push(Rate {
            pace: Pace::Iops(500.0),
            per: RatePer::Group,
            of: RateOf::Reads,
            arrivals: Arrivals::Poisson,
            clock: Loop::Open,
        });
        let plan = Plan {
            name: "p".into(),
            targets: vec![Target { size: Some(1 << 30), ..Target::named("/dev/x") }],
            stages: vec![Stage::new("s", vec![group])],
            seed: Seed::Fixed(7),
            notes: Vec::new(),
        };
        let text = toml::to_string(&plan).expect("a plan can be written");
        assert_eq!(toml::from_str::<Plan>(&text).expect("what was written can be read"), plan, "{text}");
    }
}
