//! What the definitions of a parameter file say, with Vdbench's defaults.

use plan::{Arrivals, Place, WriteThrough};

/// `openflags=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    pub(crate) direct: bool,
    pub(crate) through: WriteThrough,
    pub(crate) flush_end: bool,
}

/// `range=`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Part {
    Percent(f64, f64),
    Bytes(u64, u64),
}

/// A storage definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sd {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// With the hosts that each was given for: none where no host= stands.
    pub(crate) luns: Vec<String>,
    pub(crate) hosts: Vec<Vec<String>>,
    pub(crate) size: Option<u64>,
    pub(crate) flags: Flags,
    pub(crate) threads: u32,
    pub(crate) part: Option<Part>,
    pub(crate) hit_area: u64,
    pub(crate) offset: u64,
    pub(crate) align: Option<u64>,
    pub(crate) count: Option<(u64, u64)>,
}

impl Sd {
    /// Every lun with the hosts that have it, as Vdbench pairs `lun=` and `host=`; no hosts for all of them.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.luns.iter().enumerate().map(|(index, lun)| {
            let hosts = self.hosts.get(index).map_or(&[][..], Vec::as_slice);
            (lun.as_str(), hosts)
        })
    }
}

/// `xfersize=`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Transfer {
    Mix(Vec<(u64, f64)>),
    Range { min: u64, max: u64, step: u64 },
}

impl Default for Transfer {
    fn default() -> Transfer {
        Transfer::Mix(vec![(4096, 100.0)])
    }
}

/// `seekpct=`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Seek {
    pub(crate) random: f64,
    pub(crate) stops: bool,
}

/// A workload definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wd {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) sds: Option<Vec<String>>,
    /// None for all.
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) transfer: Transfer,
    pub(crate) reads: f64,
    pub(crate) seek: Seek,
    pub(crate) read_hits: f64,
    pub(crate) write_hits: f64,
    pub(crate) skew: Option<f64>,
    pub(crate) part: Option<Part>,
    pub(crate) flags: Option<Flags>,
}

/// `iorate=`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    Max,
    Iops(f64),
    Curve,
}

/// One value of a loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    Threads(u32),
    Transfer(Transfer),
    Reads(f64),
    Seek(Seek),
    ReadHits(f64),
    WriteHits(f64),
    HitArea(u64),
    Deduplication(f64),
    Compression(f64),
}

/// A loop of a run definition: `forthreads=` and others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    /// Without `for`.
    pub(crate) key: &'static str,
    /// How each value is written, and what it sets.
    pub(crate) values: Vec<(String, Setting)>,
    /// Whether it names its runs: a single value does not.
    pub(crate) named: bool,
}

/// A run definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rd {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) wds: Vec<String>,
    pub(crate) sds: Option<Vec<String>>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) curve: Vec<f64>,
    pub(crate) elapsed: u64,
    pub(crate) interval: u64,
    pub(crate) warmup: Option<u64>,
    pub(crate) pause: u64,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) flags: Option<Flags>,
    pub(crate) loops: Vec<Loop>,
}

/// What stands before all definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct General {
    pub(crate) compression: f64,
    pub(crate) deduplication: f64,
    pub(crate) unit: u64,
}

/// All of a parameter file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) place: Place,
    pub(crate) general: General,
    pub(crate) hosts: Vec<String>,
    /// `wd=default`, as it is at the end: the workload of a run that names devices alone.
    pub(crate) wd_default: Wd,
    pub(crate) sds: Vec<Sd>,
    pub(crate) wds: Vec<Wd>,
    pub(crate) rds: Vec<Rd>,
}

impl Job {
    /// The hosts that may be named: Vdbench has `localhost` where none is defined.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = &str> {
        let local = self.hosts.is_empty().then_some("localhost");
        self.hosts.iter().map(String::as_str).chain(local)
    }
}
