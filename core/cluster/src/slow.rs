//! Slow devices: those that are much slower than their peers for so long that it is not chance.
//!
//! The measure is the time that a device works for one request (`diskgroup::Effort`), in windows of ten seconds. A
//! window counts against a device when that time is over an absolute bound *and* several times that of its peers: the
//! other devices of the cluster for the same purpose, log or capacity, in the same moments. Load alone does not reach
//! the first bound. A host or cluster that is slow as a whole does not reach the second. A device without peers has a
//! bound of its own, ten times as high. Windows without requests are ignored. A device is slow when most of its last
//! windows count against it. It is then emptied while its components can still be read. vSAN's first version took
//! devices out after ten minutes above 50 ms of latency, and many of them were good.
//!
//! Pure: time and figures are arguments. Peers' figures are needed only while a device of this host is over the
//! bound.

use crate::limits::{
    SLOW_ALONE_FACTOR, SLOW_FACTOR, SLOW_HISTORY, SLOW_PACE, SLOW_WINDOW, SLOW_WINDOWS, WELL_WINDOWS,
};
use base::{DeviceId, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// The work of a device of this host so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The device.
    pub device: DeviceId,
    /// Whether it holds a log.
    pub is_log: bool,
    /// Time in which requests were under way, since its group was opened.
    pub busy: Duration,
    /// Requests that ended since then.
    pub requests: u64,
}

/// How long a device worked for one request in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The device.
    pub device: DeviceId,
    /// Whether it holds a log.
    pub is_log: bool,
    /// Time for one request; all of the window where none ended and some were under way.
    pub request: Duration,
}

/// Why a device is to be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slow {
    /// Time for one of its requests in the last window that counted against it.
    pub request: Duration,
    /// The median of its peers then, and their number; none without peers.
    pub peers: Option<(Duration, usize)>,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        // If no request ended within a window, the time is a lower bound.
        match self.request >= SLOW_WINDOW {
            true => {
                write!(f, "it is slow, {:.0} s of work and more for a request", self.request.as_secs_f64())?
            }
            false => write!(f, "it is slow, {:.0} ms of work for a request", ms(self.request))?,
        }
        match self.peers {
            Some((peers, 1)) => write!(f, " where its one peer needs {:.1} ms", ms(peers)),
            Some((peers, count)) => {
                write!(f, " where the middle one of its {count} peers needs {:.1} ms", ms(peers))
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct History {
    /// Whether each of the last windows counted against it, the newest last.
    windows: VecDeque<bool>,
    last: Option<Slow>,
    is_slow: bool,
}

/// Watches the devices of one host.
#[derive(Debug, Default)]
pub struct SlowWatch {
    /// The start of the present window, and the work of devices up to then.
    began: Option<Instant>,
    before: BTreeMap<DeviceId, Effort>,
    /// Figures of the last complete window.
    paces: Vec<Pace>,
    histories: BTreeMap<DeviceId, History>,
}

impl SlowWatch {
    /// Takes in the work of the host's devices. True when a window ended: then [`SlowWatch::judge`] is due.
    pub fn note(&mut self, now: Instant, efforts: &[Effort]) -> bool {
        let Some(began) = self.began else {
            self.begin(now, efforts);
            return false;
        };
        let lasted = now.since(began);
        if lasted < SLOW_WINDOW {
            return false;
        }
        let pace = |one: &Effort| {
            let before = self.before.get(&one.device)?;
            let busy = one.busy.checked_sub(before.busy)?;
            let requests = one.requests.checked_sub(before.requests)?;
            let request = match u32::try_from(requests).unwrap_or(u32::MAX) {
                // A request that began a moment ago says nothing yet.
                0 if busy < lasted / 2 => return None,
                0 => lasted,
                count => busy / count,
            };
            Some(Pace { device: one.device, is_log: one.is_log, request })
        };
        self.paces = efforts.iter().filter_map(pace).collect();
        self.histories.retain(|device, _| efforts.iter().any(|one| one.device == *device));
        self.begin(now, efforts);
        true
    }

    fn begin(&mut self, now: Instant, efforts: &[Effort]) {
        self.began = Some(now);
        self.before = efforts.iter().map(|one| (one.device, *one)).collect();
    }

    /// Figures of the host's devices in the last window, for the other hosts.
    pub fn paces(&self) -> &[Pace] {
        &self.paces
    }

    /// Whether a device was over the bound in the last window, so that other hosts' figures are needed.
    pub fn has_suspect(&self) -> bool {
        self.paces.iter().any(|pace| pace.request > SLOW_PACE)
    }

    /// Judges the last window, with the figures of other hosts' devices.
    pub fn judge(&mut self, others: &[Pace]) {
        for pace in &self.paces {
            let alike = |one: &&Pace| one.is_log == pace.is_log && one.device != pace.device;
            let mut peers: Vec<Duration> =
                self.paces.iter().chain(others).filter(alike).map(|one| one.request).collect();
            peers.sort_unstable();
            // Of two peers the slower one: a device is slow only beside both.
            let median = peers.get(peers.len() / 2).map(|median| (*median, peers.len()));
            let bound = match median {
                Some((median, _)) => SLOW_PACE.max(median * SLOW_FACTOR),
                None => SLOW_PACE * SLOW_ALONE_FACTOR,
            };
            let history = self.histories.entry(pace.device).or_default();
            let counts = pace.request > bound;
            if counts {
                history.last = Some(Slow { request: pace.request, peers: median });
            }
            history.windows.push_back(counts);
            if history.windows.len() > SLOW_HISTORY {
                history.windows.pop_front();
            }
            let count = history.windows.iter().filter(|counts| **counts).count();
            history.is_slow = count >= if history.is_slow { WELL_WINDOWS } else { SLOW_WINDOWS };
        }
    }

    /// The devices that are slow, and how.
    pub fn slow(&self) -> impl Iterator<Item = (DeviceId, Slow)> {
        let slow = self.histories.iter().filter(|(_, history)| history.is_slow);
        slow.filter_map(|(device, history)| Some((*device, history.last?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// Devices of this host, each with the time for a request and the requests of a window.
    struct Bench {
        now: Instant,
        watch: SlowWatch,
        efforts: Vec<Effort>,
    }

    impl Bench {
        fn new(count: u128) -> Bench {
            let effort =
                |id| Effort { device: DeviceId(id), is_log: false, busy: Duration::ZERO, requests: 0 };
            let mut bench = Bench {
                now: Instant(1),
                watch: SlowWatch::default(),
                efforts: (1..=count).map(effort).collect(),
            };
            assert!(!bench.watch.note(bench.now, &bench.efforts));
            bench
        }

        fn window(&mut self, times: &[(Duration, u64)], others: &[Duration]) -> Vec<DeviceId> {
            self.now = self.now + SLOW_WINDOW;
            for (effort, (request, count)) in self.efforts.iter_mut().zip(times) {
                effort.busy += *request * *count as u32;
                effort.requests += count;
            }
            assert!(self.watch.note(self.now, &self.efforts));
            let peer = |(id, request): (usize, &Duration)| Pace {
                device: DeviceId(1_000 + id as u128),
                is_log: false,
                request: *request,
            };
            let others: Vec<Pace> = others.iter().enumerate().map(peer).collect();
            self.watch.judge(&others);
            self.watch.slow().map(|(device, _)| device).collect()
        }

        /// Windows until the first device is slow.
        fn windows_until_slow(&mut self, times: &[(Duration, u64)], others: &[Duration]) -> Option<usize> {
            (1..=3 * SLOW_HISTORY).find(|_| self.window(times, others) == [DeviceId(1)])
        }
    }

    #[test]
    fn a_device_that_is_much_slower_than_its_peers_is_slow_after_minutes_and_well_again_after_more() {
        let mut bench = Bench::new(3);
        let times = [(300 * MS, 20), (2 * MS, 900), (3 * MS, 900)];
        assert_eq!(bench.windows_until_slow(&times, &[]), Some(SLOW_WINDOWS));
        let text = bench.watch.slow().next().expect("it is slow").1.to_string();
        assert_eq!(
            text,
            "it is slow, 300 ms of work for a request where the middle one of its 2 peers needs 3.0 ms"
        );
        let well = [(2 * MS, 900); 3];
        let until = (1..=SLOW_HISTORY).find(|_| bench.window(&well, &[]).is_empty());
        assert_eq!(until, Some(SLOW_HISTORY - WELL_WINDOWS + 1));
    }

    #[test]
    fn of_a_device_that_ends_nothing_it_is_said_that_a_request_takes_a_window_and_more() {
        let mut bench = Bench::new(2);
        let times = [(11_000 * MS, 1), (2 * MS, 900)];
        assert_eq!(bench.windows_until_slow(&times, &[]), Some(SLOW_WINDOWS));
        let text = bench.watch.slow().next().expect("it is slow").1.to_string();
        assert_eq!(text, "it is slow, 11 s of work and more for a request where its one peer needs 2.0 ms");
    }

    #[test]
    fn one_that_answers_nothing_at_all_is_slow() {
        let mut bench = Bench::new(2);
        for _ in 0..SLOW_WINDOWS {
            bench.efforts[0].busy += SLOW_WINDOW;
            bench.window(&[(MS, 0), (MS, 900)], &[]);
        }
        assert_eq!(bench.watch.slow().map(|(device, _)| device).collect::<Vec<_>>(), [DeviceId(1)]);
    }

    #[test]
    fn peers_of_other_hosts_and_of_the_same_purpose_alone_count() {
        let one = [(200 * MS, 30)];
        let mut bench = Bench::new(1);
        assert_eq!(bench.windows_until_slow(&one, &[5 * MS]), Some(SLOW_WINDOWS));
        let mut bench = Bench::new(2);
        bench.efforts[1].is_log = true;
        // The log is no peer, so the device is judged alone.
        assert_eq!(bench.windows_until_slow(&[one[0], (MS, 900)], &[]), None);
        assert_eq!(bench.windows_until_slow(&[(700 * MS, 10), (MS, 900)], &[]), Some(SLOW_WINDOWS));
    }

    #[test]
    fn a_cluster_that_is_slow_as_a_whole_has_no_slow_device() {
        let mut bench = Bench::new(2);
        assert_eq!(bench.windows_until_slow(&[(200 * MS, 30), (80 * MS, 30)], &[90 * MS, 70 * MS]), None);
    }

    #[test]
    fn quiet_times_neither_count_against_a_device_nor_for_it() {
        let mut bench = Bench::new(2);
        let (slow, quiet) = ([(300 * MS, 20), (2 * MS, 900)], [(MS, 0), (2 * MS, 900)]);
        for _ in 1..SLOW_WINDOWS {
            assert!(bench.window(&slow, &[]).is_empty());
            assert!(bench.window(&quiet, &[]).is_empty());
        }
        assert_eq!(bench.window(&slow, &[]), [DeviceId(1)]);
    }

    #[test]
    fn a_device_that_was_replaced_begins_anew() {
        let mut bench = Bench::new(2);
        let slow = [(300 * MS, 20), (2 * MS, 900)];
        assert!(bench.windows_until_slow(&slow, &[]).is_some());
        bench.efforts.remove(0);
        assert!(bench.window(&[(2 * MS, 900)], &[]).is_empty());
    }

    proptest! {
        /// Devices under any load, of which each takes up to 50 ms for a request, or which all take the same within three
        /// times, are never slow.
        #[test]
        fn load_is_no_reason(seed in any::<u64>(), slowest in 1..2_000u32) {
            let mut random = Random::new(seed);
            let mut bench = Bench::new(4);
            for _ in 0..2 * SLOW_HISTORY {
                let times: Vec<(Duration, u64)> = (0..4)
                    .map(|_| {
                        let least = if slowest <= 50 { 0 } else { u64::from(slowest) / 3 };
                        let request = random.range(least..u64::from(slowest) + 1) as u32;
                        (MS * request, random.below(10_000 / u64::from(slowest) + 1))
                    })
                    .collect();
                prop_assert!(bench.window(&times, &[]).is_empty());
            }
        }
    }
}
