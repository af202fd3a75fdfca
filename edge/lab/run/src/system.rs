//! The system under test, watched while it is measured: metrics in Prometheus' text format, and events.
//!
//! Every source is scraped once a second on a thread of its own, so that a slow one delays nobody. Counters become rates between two
//! scrapes. A source that does not answer leaves a gap and a note, and never ends a run.

use crate::clock;
use measured::{Run, System, SystemEvent, SystemSeries};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two scrapes.
const EVERY: Duration = Duration::from_secs(1);
/// Series of one source at most: a page shows no more.
const SERIES_MAX: usize = 200;

/// Something that can be scraped.
pub trait Exporter: Send {
    /// What it is called.
    fn name(&self) -> String;

    /// Its metrics, in Prometheus' text format.
    ///
    /// # Errors
    /// When it does not answer, in a sentence.
    fn scrape(&mut self) -> Result<String, String>;

    /// What happened in the last so many seconds: milliseconds since 1970, and a text.
    ///
    /// # Errors
    /// As for a scrape.
    fn events(&mut self, seconds: u64) -> Result<Vec<(u64, String)>, String>;
}

/// A metric that is watched.
#[derive(Debug, Clone, PartialEq)]
struct Watched {
    metric: String,
    figure: String,
    unit: String,
    /// What a value is multiplied by.
    scale: f64,
    is_counter: bool,
    /// The label that tells series apart; all others are added up.
    by: Option<&'static str>,
}

/// Metrics that are watched unless others are named: those of Drystone's hosts, and of Prometheus' node exporter.
const USUAL: &[Usual] = &[
    rate("drystone_processor_seconds_total", "Processor", "processors", None),
    rate("drystone_peer_received_bytes_total", "Network received", MIB_A_SECOND, None),
    rate("drystone_peer_sent_bytes_total", "Network sent", MIB_A_SECOND, None),
    rate("drystone_device_busy_seconds_total", "Device requests under way", "requests", Some("device")),
    rate("drystone_device_requests_total", "Device requests", "requests/s", Some("device")),
    gauge("drystone_congestion", "Congestion", "of 255", Some("group")),
    gauge("drystone_destage_pending_bytes", "Waiting for destaging", MIB, Some("group")),
    rate("drystone_destaged_bytes_total", "Destaging", MIB_A_SECOND, Some("group")),
    gauge("drystone_log_used_bytes", "Log in use", MIB, Some("group")),
    rate("drystone_disk_resync_copied_bytes_total", "Resync", MIB_A_SECOND, Some("disk")),
    gauge("drystone_disk_resync_remaining_bytes", "Left to resync", MIB, Some("disk")),
    gauge("drystone_buffer_bytes", "Block buffers", MIB, None),
    rate("node_cpu_seconds_total", "Processor", "processors", Some("mode")),
    rate("node_disk_read_bytes_total", "Device reads", MIB_A_SECOND, Some("device")),
    rate("node_disk_written_bytes_total", "Device writes", MIB_A_SECOND, Some("device")),
    rate("node_disk_io_time_seconds_total", "Device busy", "of 1", Some("device")),
    rate("node_network_receive_bytes_total", "Network received", MIB_A_SECOND, Some("device")),
    rate("node_network_transmit_bytes_total", "Network sent", MIB_A_SECOND, Some("device")),
];

/// A metric in [`USUAL`]; bytes become MiB by its unit.
struct Usual {
    metric: &'static str,
    figure: &'static str,
    unit: &'static str,
    is_counter: bool,
    by: Option<&'static str>,
}

const MIB: &str = "MiB";
const MIB_A_SECOND: &str = "MiB/s";

const fn rate(
    metric: &'static str,
    figure: &'static str,
    unit: &'static str,
    by: Option<&'static str>,
) -> Usual {
    Usual { metric, figure, unit, is_counter: true, by }
}

const fn gauge(
    metric: &'static str,
    figure: &'static str,
    unit: &'static str,
    by: Option<&'static str>,
) -> Usual {
    Usual { metric, figure, unit, is_counter: false, by }
}

/// A source with the metrics that are watched of it.
pub struct Source {
    exporter: Box<dyn Exporter>,
    watched: Vec<Watched>,
}

impl Source {
    /// A source; `metrics` names those that are watched instead of the usual ones.
    pub fn new(exporter: Box<dyn Exporter>, metrics: &[String]) -> Source {
        let usual = USUAL.iter().map(|of| Watched {
            metric: of.metric.to_owned(),
            figure: of.figure.to_owned(),
            unit: of.unit.to_owned(),
            scale: if of.unit.starts_with(MIB) { 1.0 / (1 << 20) as f64 } else { 1.0 },
            is_counter: of.is_counter,
            by: of.by,
        });
        let named = metrics.iter().map(|metric| Watched {
            figure: metric.clone(),
            is_counter: metric.ends_with("_total"),
            unit: if metric.ends_with("_total") { "per second".to_owned() } else { "value".to_owned() },
            metric: metric.clone(),
            scale: 1.0,
            by: None,
        });
        let watched = if metrics.is_empty() { usual.collect() } else { named.collect() };
        Source { exporter, watched }
    }
}

/// A sample of Prometheus' text format.
#[derive(Debug, Clone, PartialEq)]
struct Sample<'a> {
    metric: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// Reads a line of Prometheus' text format; nothing for comments, and for what is none.
fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' ', '\t'])?;
    let (metric, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (name, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((name.trim(), value));
            rest = after;
        }
    }
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { metric, labels, value })
}

/// A label's value up to its closing quote, and what comes behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// Values of a scrape by the watched metric's index and what they are of.
fn values(text: &str, watched: &[Watched]) -> BTreeMap<(usize, String), f64> {
    let mut found = BTreeMap::new();
    for sample in text.lines().filter_map(sample) {
        for (index, of) in watched.iter().enumerate().filter(|(_, of)| of.metric == sample.metric) {
            let part = of.by.and_then(|by| sample.labels.iter().find(|(name, _)| *name == by));
            let part = part.map_or(String::new(), |(_, value)| value.clone());
            // A processor that waits is not at work.
            if of.by == Some("mode") && matches!(part.as_str(), "idle" | "iowait") {
                continue;
            }
            *found.entry((index, part)).or_insert(0.0) += sample.value * of.scale;
        }
    }
    found
}

/// What was gathered of a source.
#[derive(Default)]
struct Gathered {
    series: BTreeMap<(usize, String), Vec<(f64, f64)>>,
    failed: Option<String>,
    failures: u32,
}

impl Gathered {
    fn take(
        &mut self,
        at: f64,
        now: &BTreeMap<(usize, String), f64>,
        before: Option<&Before>,
        of: &[Watched],
    ) {
        for (key, &value) in now {
            let value = match (of[key.0].is_counter, before) {
                (false, _) => Some(value),
                (true, Some((earlier, then))) => {
                    // A counter that fell began anew: its host was started again.
                    then.get(key)
                        .filter(|then| **then <= value && at > *earlier)
                        .map(|then| (value - then) / (at - earlier))
                }
                (true, None) => None,
            };
            let is_new = !self.series.contains_key(key);
            if is_new && self.series.len() >= SERIES_MAX {
                continue;
            }
            if let Some(value) = value.filter(|value| value.is_finite()) {
                self.series.entry(key.clone()).or_default().push((at, value));
            }
        }
    }
}

type Before = (f64, BTreeMap<(usize, String), f64>);

/// Sources that are being watched.
pub struct Watching {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<System>>,
}

impl Watching {
    /// Begins to watch; times are counted from now on.
    pub fn begin(sources: Vec<Source>) -> Watching {
        let stop = Arc::new(AtomicBool::new(false));
        let origin = (clock::now(), crate::runner::unix_ms());
        let threads = sources.into_iter().map(|source| {
            let stop = stop.clone();
            std::thread::spawn(move || watch(source, origin, &stop))
        });
        Watching { threads: threads.collect(), stop }
    }

    /// Watches while something runs; the run has what was seen then.
    ///
    /// # Errors
    /// Those of what runs.
    pub fn over<E>(watching: Option<Watching>, run: impl FnOnce() -> Result<Run, E>) -> Result<Run, E> {
        let done = run();
        let seen = watching.map(Watching::end).unwrap_or_default();
        done.map(|run| Run { system: seen, ..run })
    }

    /// Ends it, and gives what was seen.
    pub fn end(self) -> System {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = System::default();
        for thread in self.threads {
            let Ok(of) = thread.join() else { continue };
            all.series.extend(of.series);
            all.events.extend(of.events);
            all.notes.extend(of.notes);
        }
        all.events.sort_by(|one, other| one.at.total_cmp(&other.at));
        // Hosts of one cluster tell of the same events.
        all.events.dedup();
        all
    }
}

fn watch(mut source: Source, (origin, origin_unix_ms): (u64, u64), stop: &AtomicBool) -> System {
    let mut gathered = Gathered::default();
    let mut before: Option<Before> = None;
    while !stop.load(Ordering::Relaxed) {
        let asked = clock::now();
        match source.exporter.scrape() {
            Ok(text) => {
                let at = (asked - origin) as f64 / 1e9;
                let now = values(&text, &source.watched);
                gathered.take(at, &now, before.as_ref(), &source.watched);
                before = Some((at, now));
            }
            Err(error) => {
                gathered.failures += 1;
                gathered.failed.get_or_insert(error);
                before = None;
            }
        }
        let next = asked + clock::ns(EVERY);
        while clock::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let name = source.exporter.name();
    let seconds = (clock::now() - origin) / 1_000_000_000 + 1;
    let mut notes = Vec::new();
    let events = source.exporter.events(seconds).unwrap_or_else(|error| {
        notes.push(format!("{name}: events are missing: {error}"));
        Vec::new()
    });
    if let Some(error) = gathered.failed {
        let times =
            if gathered.failures == 1 { "once".to_owned() } else { format!("{} times", gathered.failures) };
        notes.push(format!("{name} did not answer {times}: {error}"));
    } else if gathered.series.is_empty() {
        notes.push(format!("{name} has none of the metrics that are watched; name them: ADDRESS#METRIC"));
    }
    let series = gathered.series.into_iter().map(|((index, part), points)| {
        let of = &source.watched[index];
        let of_what = if part.is_empty() { name.clone() } else { format!("{name} {part}") };
        SystemSeries { figure: of.figure.clone(), unit: of.unit.clone(), of: of_what, points }
    });
    let events = events.into_iter().filter(|(time, _)| *time >= origin_unix_ms);
    let events = events.map(|(time, text)| SystemEvent { at: (time - origin_unix_ms) as f64 / 1e3, text });
    System { series: series.collect(), events: events.collect(), notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_prometheus_are_read_and_others_are_not() {
        let read = |line| sample(line).map(|of| (of.metric, of.labels, of.value));
        assert_eq!(read("up 1"), Some(("up", vec![], 1.0)));
        let labels = vec![("device", "a \"b\" }".to_owned()), ("mode", "x".to_owned())];
        assert_eq!(
            read("m_total{device=\"a \\\"b\\\" }\", mode=\"x\"} 2.5 1700"),
            Some(("m_total", labels, 2.5))
        );
        for line in ["# HELP up x", "", "up", "up{a=\"b\" 1", "up one"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    /// Tells of a counter that grows by 2 MiB a second on each of two devices, and began anew once.
    struct Played(Vec<&'static str>);

    impl Exporter for Played {
        fn name(&self) -> String {
            "host".to_owned()
        }

        fn scrape(&mut self) -> Result<String, String> {
            if self.0.is_empty() { Err("it is gone".to_owned()) } else { Ok(self.0.remove(0).to_owned()) }
        }

        fn events(&mut self, _seconds: u64) -> Result<Vec<(u64, String)>, String> {
            Ok(vec![(1, "long ago".to_owned()), (u64::MAX, "at the end of time".to_owned())])
        }
    }

    #[test]
    fn counters_become_rates_gauges_stay_and_a_source_that_is_gone_is_told() {
        let source = Source::new(Box::new(Played(Vec::new())), &[]);
        let watched = source.watched.clone();
        let text = |written: u64, congestion: u32| {
            format!(
                "node_disk_written_bytes_total{{device=\"a\"}} {written}\nnode_disk_written_bytes_total{{device=\"b\"}} 0\n\
                 drystone_congestion{{group=\"g\"}} {congestion}\nnode_cpu_seconds_total{{mode=\"idle\",cpu=\"0\"}} 5\nother 7\n"
            )
        };
        let mut gathered = Gathered::default();
        let mut before: Option<Before> = None;
        for (at, written, congestion) in [(0.0, 0, 1), (1.0, 2 << 20, 9), (3.0, 6 << 20, 4), (4.0, 0, 4)] {
            let now = values(&text(written, congestion), &watched);
            gathered.take(at, &now, before.as_ref(), &watched);
            before = Some((at, now));
        }
        let of = |figure: &str, part: &str| {
            let found = gathered
                .series
                .iter()
                .find(|((index, of), _)| watched[*index].figure == figure && of == part);
            found.map(|(_, points)| points.clone())
        };
        assert_eq!(of("Device writes", "a"), Some(vec![(1.0, 2.0), (3.0, 2.0)]), "it began anew at 4 s");
        assert_eq!(of("Congestion", "g"), Some(vec![(0.0, 1.0), (1.0, 9.0), (3.0, 4.0), (4.0, 4.0)]));
        assert_eq!(of("Processor", "idle"), None, "idle is not work");

        let watching = Watching::begin(vec![source]);
        std::thread::sleep(Duration::from_millis(50));
        let seen = watching.end();
        assert_eq!(seen.notes, ["host did not answer once: it is gone"]);
        assert_eq!(seen.events.len(), 1, "what was before is no news: {:?}", seen.events);
    }
}
