//! Once a second: what every disk did, for `top`, live figures and histograms of the last minutes.
//!
//! Keeps one encoded difference per disk and second in which something happened. Bounded in time and in bytes; the oldest
//! go first. Must never keep the engine waiting: it only asks, and takes what comes.

use crate::limits::{SAMPLE_BYTES_MAX, SAMPLE_PERIOD, SAMPLES_KEPT};
use crate::series::{Series, Subject};
use base::{DeviceId, DiskId};
use engine::{Command, DeviceLoad, DiskState, EngineHandle};
use iostats::{Direction, FineLatency, Interval, Operations, Statistics};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The samples of all disks.
#[derive(Default)]
pub struct Sampler {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: BTreeMap<DiskId, Last>,
    series: VecDeque<Sample>,
    bytes: usize,
    sampled: Option<Instant>,
    /// Time between the last two samples.
    interval: Duration,
    /// What devices had done at the last one.
    devices: BTreeMap<DeviceId, DeviceLoad>,
    /// What they did between the last two.
    device_loads: BTreeMap<DeviceId, Interval>,
}

/// The newest of one disk.
#[derive(Clone)]
struct Last {
    cumulative: Arc<Statistics>,
    load: DiskLoad,
}

struct Sample {
    at: Instant,
    disk: DiskId,
    encoded: Box<[u8]>,
}

/// What the guests of one disk at this host did between two samples.
#[derive(Debug, Clone, Default)]
pub struct DiskLoad {
    /// Nothing: no I/O.
    pub statistics: Option<Arc<Statistics>>,
    /// Requests under way at the last one.
    pub outstanding: u32,
    /// Clients attached at the last one.
    pub client_count: usize,
}

/// What one disk did between the last two samples.
#[derive(Clone)]
pub struct Recent {
    /// Time between the two samples.
    pub interval: Duration,
    /// What it did.
    pub load: DiskLoad,
}

impl Sampler {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes samples until the engine is gone, and adds them to the series.
    pub async fn run(self: Arc<Sampler>, engine: EngineHandle, series: Arc<Series>) {
        let mut ticks = tokio::time::interval(SAMPLE_PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Ok(states) = engine.call(|answer| Command::Disks { only: None, answer }).await else {
                return;
            };
            let Ok(devices) = engine.call(|answer| Command::Loads { answer }).await else { return };
            self.take(Instant::now(), &states);
            self.take_devices(devices);
            let interval = self.interval();
            if !interval.is_zero() {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                // A machine that stood still has seconds of which it saw nothing.
                let seconds = (interval.as_secs_f64().round() as u16).max(1);
                series.take(now.as_secs(), seconds, &self.happened());
            }
        }
    }

    /// What all disks and devices did between the last two samples.
    fn happened(&self) -> BTreeMap<Subject, Interval> {
        let inner = self.lock();
        let mut happened = BTreeMap::new();
        let mut host = Interval::default();
        for (disk, last) in &inner.last {
            let Some(statistics) = &last.load.statistics else { continue };
            let interval = Interval::of(statistics);
            host.merge(&interval);
            happened.insert(Subject::Disk(*disk), interval);
        }
        happened.insert(Subject::Host, host);
        let devices = inner.device_loads.iter().filter(|(_, load)| !load.is_empty());
        happened.extend(devices.map(|(device, load)| (Subject::Device(*device), load.clone())));
        happened
    }

    /// Takes what devices have done since their groups were opened.
    fn take_devices(&self, now: Vec<DeviceLoad>) {
        let mut inner = self.lock();
        let loads = now.iter().filter_map(|load| {
            let before = inner.devices.get(&load.id)?;
            Some((load.id, device_interval(before, load)))
        });
        let loads = loads.collect();
        inner.device_loads = loads;
        inner.devices = now.into_iter().map(|load| (load.id, load)).collect();
    }

    /// What a device did between the last two samples.
    pub fn recent_device(&self, device: DeviceId) -> Option<(Duration, Interval)> {
        let inner = self.lock();
        Some((inner.interval, inner.device_loads.get(&device)?.clone()))
    }

    /// Takes one sample, at `now`.
    pub fn take(&self, now: Instant, states: &[DiskState]) {
        let mut inner = self.lock();
        let is_first = inner.sampled.is_none();
        inner.interval = inner.sampled.map_or(Duration::ZERO, |before| now.duration_since(before));
        inner.sampled = Some(now);
        let mut last = BTreeMap::new();
        for state in states {
            let recent = match inner.last.get(&state.id) {
                Some(before) => difference(before, &state.statistics),
                // It came after the sample before: all that it did is of this interval.
                None if !is_first && state.statistics.completed(Operations::Both) > 0 => {
                    Some(Arc::clone(&state.statistics))
                }
                None => None,
            };
            if let Some(recent) = &recent {
                let encoded = recent.encode().into_boxed_slice();
                inner.bytes += encoded.len() + size_of::<Sample>();
                inner.series.push_back(Sample { at: now, disk: state.id, encoded });
            }
            let cumulative = Arc::clone(&state.statistics);
            let load = DiskLoad {
                statistics: recent,
                outstanding: state.outstanding,
                client_count: state.clients.len(),
            };
            last.insert(state.id, Last { cumulative, load });
        }
        inner.last = last;
        inner.forget(now);
    }

    /// What a disk did between the last two samples; nothing when it has no sample.
    pub fn recent(&self, disk: DiskId) -> Option<Recent> {
        let inner = self.lock();
        let load = inner.last.get(&disk)?.load.clone();
        Some(Recent { interval: inner.interval, load })
    }

    /// Time between the last two samples.
    pub fn interval(&self) -> Duration {
        self.lock().interval
    }

    /// What all disks with clients, or with I/O, did between the last two samples.
    pub fn busy(&self) -> BTreeMap<DiskId, DiskLoad> {
        let inner = self.lock();
        let is_busy =
            |load: &DiskLoad| load.statistics.is_some() || load.outstanding > 0 || load.client_count > 0;
        let busy = inner.last.iter().filter(|(_, last)| is_busy(&last.load));
        busy.map(|(disk, last)| (*disk, last.load.clone())).collect()
    }

    /// What a disk did in the `window` before `now`, up to its state `current`, which is newer than any sample.
    pub fn since(&self, now: Instant, current: &DiskState, window: Duration) -> Statistics {
        let disk = current.id;
        let inner = self.lock();
        let unsampled = inner.last.get(&disk).and_then(|last| difference(last, &current.statistics));
        let mut sum = unsampled.as_deref().cloned().unwrap_or_default();
        let newest_first = inner.series.iter().rev();
        for sample in newest_first.take_while(|sample| now.duration_since(sample.at) <= window) {
            if sample.disk == disk {
                let statistics = Statistics::decode(&sample.encoded).expect("it was encoded here");
                sum.merge(&statistics);
            }
        }
        sum
    }
}

impl Inner {
    fn forget(&mut self, now: Instant) {
        while let Some(oldest) = self.series.front() {
            if self.bytes <= SAMPLE_BYTES_MAX && now.duration_since(oldest.at) <= SAMPLES_KEPT {
                return;
            }
            self.bytes -= oldest.encoded.len() + size_of::<Sample>();
            self.series.pop_front();
        }
    }
}

/// What a device did since; all of it where its group was opened anew meanwhile.
fn device_interval(before: &DeviceLoad, now: &DeviceLoad) -> Interval {
    let started_again = now.busy < before.busy || now.read.count < before.read.count;
    let direction = |before: &FineLatency, now: &FineLatency| match started_again {
        true => Direction::new(now, 0, 0),
        false => Direction::new(&now.difference(before), 0, 0),
    };
    let busy = if started_again { now.busy } else { now.busy - before.busy };
    Interval {
        read: direction(&before.read, &now.read),
        write: direction(&before.write, &now.write),
        busy_ns: u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// What came since `before`; nothing when nothing did, or when the engine counts from the start again.
fn difference(before: &Last, now: &Arc<Statistics>) -> Option<Arc<Statistics>> {
    if Arc::ptr_eq(&before.cumulative, now) || *before.cumulative == **now {
        return None;
    }
    let started_again = now.completed(Operations::Both) < before.cumulative.completed(Operations::Both);
    (!started_again).then(|| Arc::new(now.difference(&before.cumulative)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostats::{Operation, Recorder};

    fn state(id: u128, recorder: &Recorder) -> DiskState {
        DiskState {
            id: DiskId(id),
            clients: Vec::new(),
            outstanding: 2,
            overdue: 0,
            statistics: Arc::new(recorder.statistics()),
        }
    }

    fn write(recorder: &mut Recorder, count: u64) {
        for _ in 0..count {
            let at = base::Instant(1000);
            let arrival = recorder.arrive(at, Operation::Write, 0, 8);
            recorder.complete(base::Instant(51_000), arrival, true);
        }
    }

    #[test]
    fn an_interval_holds_what_happened_in_it_alone() {
        let sampler = Sampler::default();
        let start = Instant::now();
        let second = |n| start + Duration::from_secs(n);
        let mut recorder = Recorder::new();
        write(&mut recorder, 5);
        sampler.take(second(0), &[state(1, &recorder)]);
        assert!(sampler.recent(DiskId(1)).expect("a sample").load.statistics.is_none(), "no interval yet");
        write(&mut recorder, 3);
        sampler.take(second(1), &[state(1, &recorder)]);
        write(&mut recorder, 4);
        sampler.take(second(2), &[state(1, &recorder)]);
        let recent = sampler.recent(DiskId(1)).expect("a sample");
        assert_eq!(recent.load.statistics.as_ref().expect("I/Os").completed(Operations::Writes), 4);
        assert_eq!((recent.interval, recent.load.outstanding), (Duration::from_secs(1), 2));
        for (window, count) in [(0, 4), (1, 7), (60, 7)] {
            let since = sampler.since(second(2), &state(1, &recorder), Duration::from_secs(window));
            assert_eq!(since.completed(Operations::Writes), count, "{window} s");
        }
        let other = sampler.since(second(2), &state(2, &recorder), SAMPLES_KEPT);
        assert_eq!(other.completed(Operations::Both), 0, "it has no sample to start from");
        write(&mut recorder, 2);
        let since = sampler.since(second(2), &state(1, &recorder), Duration::ZERO);
        assert_eq!(since.completed(Operations::Writes), 6, "what no sample holds yet counts too");
    }

    #[test]
    fn what_a_new_disk_did_before_its_first_sample_counts() {
        let sampler = Sampler::default();
        let start = Instant::now();
        sampler.take(start, &[]);
        let mut recorder = Recorder::new();
        write(&mut recorder, 5);
        sampler.take(start + SAMPLE_PERIOD, &[state(1, &recorder)]);
        let recent = sampler.recent(DiskId(1)).expect("a sample").load.statistics.expect("I/Os");
        assert_eq!(recent.completed(Operations::Writes), 5);
    }

    #[test]
    fn idle_disks_cost_nothing_and_old_samples_go() {
        let sampler = Sampler::default();
        let start = Instant::now();
        let mut recorder = Recorder::new();
        sampler.take(start, &[state(1, &recorder)]);
        for n in 1..100 {
            sampler.take(start + Duration::from_secs(n), &[state(1, &recorder)]);
        }
        assert_eq!(sampler.lock().series.len(), 0);
        write(&mut recorder, 1);
        sampler.take(start + Duration::from_secs(100), &[state(1, &recorder)]);
        assert_eq!(sampler.lock().series.len(), 1);
        assert!(sampler.lock().bytes > 0);
        sampler.take(start + Duration::from_secs(101) + SAMPLES_KEPT, &[state(1, &recorder)]);
        let inner = sampler.lock();
        assert_eq!((inner.series.len(), inner.bytes), (0, 0));
    }

    #[test]
    fn a_disk_that_counts_from_the_start_again_gives_no_nonsense() {
        let sampler = Sampler::default();
        let start = Instant::now();
        let mut recorder = Recorder::new();
        write(&mut recorder, 5);
        sampler.take(start, &[state(1, &recorder)]);
        let mut again = Recorder::new();
        write(&mut again, 2);
        sampler.take(start + SAMPLE_PERIOD, &[state(1, &again)]);
        assert!(sampler.recent(DiskId(1)).expect("a sample").load.statistics.is_none());
    }
}
