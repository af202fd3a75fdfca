//! What guests did in a second, and what that is together.

use crate::cluster::View;
use crate::figures::rate_view;
use crate::sampler::DiskLoad;
use api::types::{DiskSample, HostSamples, LoadView, RateView};
use base::{DiskId, HostId};
use failure::Failure;
use iostats::{Operations, Statistics};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What the guests at one host did in a second.
#[derive(Debug, Default)]
pub struct HostLoad {
    /// Seconds that it is about.
    pub seconds: f64,
    /// By the disks that have clients there, or had.
    pub disks: BTreeMap<DiskId, DiskLoad>,
}

/// What the guests of all hosts did in a second.
#[derive(Debug, Default)]
pub struct Loads {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// By their hosts.
    pub hosts: BTreeMap<HostId, Arc<HostLoad>>,
    /// Names of hosts of which nothing is known.
    pub silent: Vec<String>,
}

/// Whose figures are asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// All guests of the cluster.
    Cluster,
    /// Those at a host.
    Host(String),
    /// Those of a disk, at whatever hosts.
    Disk(String),
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Of::Cluster => f.write_str("cluster"),
            Of::Host(name) => write!(f, "host/{name}"),
            Of::Disk(name) => write!(f, "disk/{name}"),
        }
    }
}

impl Of {
    /// Reads `cluster`, `host/NAME` or `disk/NAME`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Of, Failure> {
        match text.split_once('/') {
            None if text == "cluster" => Ok(Of::Cluster),
            Some(("host", name)) if !name.is_empty() => Ok(Of::Host(name.to_owned())),
            Some(("disk", name)) if !name.is_empty() => Ok(Of::Disk(name.to_owned())),
            None | Some(_) => {
                let text: String = text.chars().take(80).collect();
                Err(Failure::usage(format!("`{text}` has no figures"))
                    .hint("`cluster`, `host/NAME` and `disk/NAME` have"))
            }
        }
    }
}

impl HostLoad {
    /// As it travels between hosts.
    pub(super) fn samples(&self) -> HostSamples {
        let sample = |load: &DiskLoad| DiskSample {
            encoded: load.statistics.as_ref().map_or_else(String::new, |found| base::hex(&found.encode())),
            outstanding: load.outstanding,
            client_count: load.client_count,
        };
        let disks = self.disks.iter().map(|(disk, load)| (disk.to_string(), sample(load)));
        HostSamples { seconds: self.seconds, disks: disks.collect() }
    }

    /// What another host sent; what cannot be read of it, a host of another release has, and it is left out.
    pub(super) fn of(samples: &HostSamples) -> HostLoad {
        let load = |sample: &DiskSample| {
            let bytes = base::unhex(&sample.encoded)?;
            let statistics = match bytes.is_empty() {
                true => None,
                false => Some(Arc::new(Statistics::decode(&bytes).ok()?)),
            };
            Some(DiskLoad { statistics, outstanding: sample.outstanding, client_count: sample.client_count })
        };
        let disks =
            samples.disks.iter().filter_map(|(disk, sample)| Some((disk.parse().ok()?, load(sample)?)));
        HostLoad { seconds: samples.seconds, disks: disks.collect() }
    }
}

/// What several loads are together.
#[derive(Default)]
struct Sum {
    statistics: Statistics,
    view: LoadView,
}

impl Sum {
    fn add(&mut self, load: &DiskLoad, seconds: f64) {
        self.view.outstanding += load.outstanding;
        self.view.client_count += load.client_count;
        let Some(statistics) = &load.statistics else { return };
        for (rate, operations) in
            [(&mut self.view.read, Operations::Reads), (&mut self.view.write, Operations::Writes)]
        {
            let RateView { iops, bytes_per_second, .. } = rate_view(statistics, operations, seconds);
            rate.iops += iops;
            rate.bytes_per_second += bytes_per_second;
        }
        self.statistics.merge(statistics);
    }

    fn view(mut self) -> LoadView {
        for (rate, operations) in
            [(&mut self.view.read, Operations::Reads), (&mut self.view.write, Operations::Writes)]
        {
            let all = rate_view(&self.statistics, operations, 0.0);
            (rate.latency_us_p50, rate.latency_us_p99) = (all.latency_us_p50, all.latency_us_p99);
        }
        self.view
    }
}

impl Loads {
    /// What guests did; nothing when there is no such disk or host.
    pub fn find(&self, of: &Of, view: &View) -> Option<LoadView> {
        let mut sum = Sum::default();
        match of {
            Of::Cluster => {
                for load in self.hosts.values() {
                    load.disks.values().for_each(|disk| sum.add(disk, load.seconds));
                }
            }
            Of::Host(name) => {
                let host = view.find_host(name)?;
                if let Some(load) = self.hosts.get(&host.record.id) {
                    load.disks.values().for_each(|disk| sum.add(disk, load.seconds));
                }
            }
            Of::Disk(name) => {
                let id = view.records.disk(name)?.record.id;
                for load in self.hosts.values() {
                    load.disks.get(&id).into_iter().for_each(|disk| sum.add(disk, load.seconds));
                }
            }
        }
        Some(sum.view())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;
    use iostats::{Operation, Recorder};

    fn load(writes: u64, micros: u64) -> HostLoad {
        let mut recorder = Recorder::new();
        for _ in 0..writes {
            let arrival = recorder.arrive(Instant(0), Operation::Write, 0, 8);
            recorder.complete(Instant(micros * 1000), arrival, true);
        }
        let statistics = Some(Arc::new(recorder.statistics()));
        let disk = DiskLoad { statistics, outstanding: 3, client_count: 1 };
        HostLoad { seconds: 1.0, disks: BTreeMap::from([(DiskId(7), disk)]) }
    }

    #[test]
    fn whose_figures_are_meant_is_read_as_it_is_written() {
        for text in ["cluster", "host/a", "disk/web"] {
            assert_eq!(Of::parse(text).expect("it has figures").to_string(), text);
        }
        for text in ["", "disk", "disk/", "host/", "group/x", "clusters"] {
            Of::parse(text).expect_err(text);
        }
    }

    #[test]
    fn what_travels_is_what_was_and_several_hosts_are_added_up() {
        let sent = load(300, 100).samples();
        let (first, second) = (HostLoad::of(&sent), load(100, 5000));
        assert_eq!(first.samples(), sent);
        let hosts = BTreeMap::from([(HostId(1), Arc::new(first)), (HostId(2), Arc::new(second))]);
        let loads = Loads { time_ms: 0, hosts, silent: Vec::new() };
        let found = loads.find(&Of::Cluster, &View::default()).expect("all");
        assert_eq!((found.write.iops, found.outstanding, found.client_count), (400.0, 6, 2));
        assert_eq!(found.write.bytes_per_second, 400.0 * 4096.0);
        let (p50, p99) = (found.write.latency_us_p50.expect("I/O"), found.write.latency_us_p99.expect("I/O"));
        assert!(p50 < 150.0 && p99 > 4000.0, "percentiles are those of all together: {p50} {p99}");
        assert_eq!(found.read, RateView::default());
        assert!(loads.find(&Of::Disk("none".to_owned()), &View::default()).is_none());
        assert!(loads.find(&Of::Host("none".to_owned()), &View::default()).is_none());
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let mut sent = load(1, 1).samples();
        let damaged = DiskSample { encoded: "00".to_owned(), ..DiskSample::default() };
        sent.disks.insert(DiskId(8).to_string(), damaged);
        sent.disks.insert("no id".to_owned(), DiskSample::default());
        assert_eq!(HostLoad::of(&sent).disks.keys().collect::<Vec<_>>(), [&DiskId(7)]);
    }
}
