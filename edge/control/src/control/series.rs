//! Series as the API shows them: those of this host and of all others, added up.

use super::Control;
use super::pulse::Of;
use crate::figures::micros;
use crate::limits::{HOST_ANSWER_WAIT, SERIES_FILES_KEPT, SERIES_KEPT, SERIES_SLOT, SERIES_STEPS_MAX};
use crate::series::{Range, Steps, Subject};
use crate::system::{blocking, now_seconds};
use api::client::escaped;
use api::types::{HeatView, HostSeriesQuery, HostSeriesView, SeriesQuery, SeriesRates, SeriesView};
use base::DeviceId;
use base::bytes::{Reader, Writer};
use failure::{Code, Failure};
use iostats::{Direction, Interval};
use std::path::Path;

/// Seconds that are told where nobody says how many.
const SECONDS_DEFAULT: u64 = 3600;
/// The same of steps.
const POINTS_DEFAULT: usize = 300;
/// log2 of the lowest limit of a heat map in ns, and of the highest.
const HEAT_OCTAVES: std::ops::Range<u32> = 10..37;

/// Whom to ask for what.
struct Source {
    /// As hosts ask each other.
    of: String,
    /// The only host that knows; nothing: all do.
    host: Option<String>,
    is_device: bool,
}

impl Control {
    /// What a subject did over time.
    ///
    /// # Errors
    /// When there is no such subject, or the range makes no sense.
    pub async fn series(&self, query: &SeriesQuery) -> Result<SeriesView, Failure> {
        let of = query.of.as_deref().unwrap_or("cluster");
        let range = range_of(query, now_seconds())?;
        let source = self.source(of)?;
        let asked = HostSeriesQuery {
            of: source.of.clone(),
            start: range.start,
            step: range.step,
            count: range.count,
        };
        let path = format!(
            "/api/v1/series/host?of={}&start={}&step={}&count={}",
            escaped(&asked.of),
            asked.start,
            asked.step,
            asked.count
        );
        let mut found = Vec::new();
        let mut silent = Vec::new();
        if source.host.as_deref().is_none_or(|host| host == self.config().name) {
            found.push(self.own_steps(&asked).await?);
        }
        match &source.host {
            Some(host) if *host != self.config().name => {
                let known = self.cluster.find_host(host)?;
                match self.cluster.ask_one::<HostSeriesView>(&known, &path, HOST_ANSWER_WAIT).await {
                    Ok(told) => found.extend(steps_of(range, &told)),
                    // It answers, and says that there is no such device.
                    Err(failure) if failure.code == Code::NotFound => return Err(failure),
                    Err(_) => silent.push(host.clone()),
                }
            }
            Some(_) => {}
            None => {
                let state = self.cluster.state().await?;
                let (others, quiet) = self.cluster.ask_others::<HostSeriesView>(&state, &path).await;
                found.extend(others.values().filter_map(|told| steps_of(range, told)));
                silent = quiet;
            }
        }
        Ok(view(of, range, &found, source.is_device, silent))
    }

    /// What this host knows of a series, for other hosts.
    ///
    /// # Errors
    /// When there is no such subject here, or the files cannot be read.
    pub async fn host_series(&self, query: &HostSeriesQuery) -> Result<HostSeriesView, Failure> {
        if query.step == 0 || query.count > SERIES_STEPS_MAX {
            return Err(Failure::usage(format!(
                "steps are of at least 1 s, and {SERIES_STEPS_MAX} of them at most"
            )));
        }
        let steps = self.own_steps(query).await?;
        let encoded = steps.intervals.iter().map(|(index, interval)| {
            let mut writer = Writer::with_capacity(128);
            interval.encode(&mut writer);
            (*index, base::hex(writer.as_bytes()))
        });
        Ok(HostSeriesView { steps: encoded.collect(), seconds: steps.seconds })
    }

    async fn own_steps(&self, query: &HostSeriesQuery) -> Result<Steps, Failure> {
        let range = Range { start: query.start, step: query.step, count: query.count };
        let subject = match query.of.split_once('/') {
            None if query.of == "host" => Subject::Host,
            Some(("disk", id)) => Subject::Disk(id.parse().map_err(|_| no_series(&query.of))?),
            Some(("device", name)) => Subject::Device(self.own_device(name).await?),
            None | Some(_) => return Err(no_series(&query.of)),
        };
        blocking(|| self.series.steps(subject, range))
            .map_err(|error| Failure::failed("read the figures that were kept", error))
    }

    /// The device of this host of a path or an id; an id may be of one that is no longer here.
    async fn own_device(&self, name: &str) -> Result<DeviceId, Failure> {
        if let Ok(id) = name.parse() {
            return Ok(id);
        }
        let host = self.host_state().await?;
        let found = host.devices.iter().find(|device| device.path == Path::new(name));
        found.map(|device| device.id).ok_or_else(|| {
            let what = format!("host {} has no device {name}", self.config().name);
            Failure::new(Code::NotFound, what).hint("see `drystone device list --cluster`")
        })
    }

    fn source(&self, of: &str) -> Result<Source, Failure> {
        if let Some(("device", name)) = of.split_once('/') {
            let (host, name) = match name.split_once(':') {
                Some((host, path)) if path.starts_with('/') => (Some(host.to_owned()), path),
                // A path alone is of the host that is asked; an id may be of any.
                None | Some(_) if name.starts_with('/') => (Some(self.config().name.clone()), name),
                None | Some(_) => {
                    let _: DeviceId = name.parse().map_err(|_| no_series(of))?;
                    (None, name)
                }
            };
            return Ok(Source { of: format!("device/{name}"), host, is_device: true });
        }
        let all = |of| Source { of, host: None, is_device: false };
        match Of::parse(of)? {
            Of::Cluster => Ok(all("host".to_owned())),
            Of::Disk(name) => Ok(all(format!("disk/{}", self.find(&name)?.record.id))),
            Of::Host(name) => {
                let host = self.cluster.find_host(&name)?.record.name.clone();
                Ok(Source { host: Some(host), ..all("host".to_owned()) })
            }
        }
    }
}

fn no_series(of: &str) -> Failure {
    let of: String = of.chars().take(80).collect();
    Failure::usage(format!("`{of}` has no series"))
        .hint("`cluster`, `host/NAME`, `disk/NAME`, `device/HOST:PATH` and `device/ID` have")
}

/// The steps that fit what is asked for: of a second at least, and of five minutes where the last hour is not enough.
fn range_of(query: &SeriesQuery, now: u64) -> Result<Range, Failure> {
    let (seconds, points) =
        (query.seconds.unwrap_or(SECONDS_DEFAULT), query.points.unwrap_or(POINTS_DEFAULT));
    if seconds == 0 || seconds > SERIES_FILES_KEPT.as_secs() {
        return Err(Failure::usage(format!("{seconds} s are not kept: 1 s to 90 days are")));
    }
    if points == 0 || points > SERIES_STEPS_MAX {
        return Err(Failure::usage(format!("{points} steps are not possible: 1 to {SERIES_STEPS_MAX} are")));
    }
    let until = query.until.unwrap_or(now).min(now);
    let shortest = seconds.div_ceil(points as u64).max(1);
    let slot = SERIES_SLOT.as_secs();
    let is_recent = until.saturating_sub(seconds) + SERIES_KEPT.as_secs() >= now && shortest < slot;
    let step = if is_recent { shortest } else { shortest.next_multiple_of(slot) };
    let count = usize::try_from(seconds.div_ceil(step)).unwrap_or(points).min(SERIES_STEPS_MAX);
    // The last step is not over yet where steps are long: what is known of it counts.
    let end = until.next_multiple_of(step);
    let end = if is_recent { until / step * step } else { end };
    Ok(Range { start: end.saturating_sub(step * count as u64), step, count })
}

/// What another host told; nothing where it cannot be read: it has another release.
fn steps_of(range: Range, told: &HostSeriesView) -> Option<Steps> {
    let read = |(index, text): (&usize, &String)| {
        let bytes = base::unhex(text)?;
        let interval = Interval::decode(&mut Reader::new(&bytes)).ok()?;
        (*index < range.count).then_some((*index, interval))
    };
    let intervals = told.steps.iter().map(read).collect::<Option<_>>()?;
    (told.seconds.len() == range.count).then(|| Steps { range, seconds: told.seconds.clone(), intervals })
}

fn view(of: &str, range: Range, hosts: &[Steps], is_device: bool, silent: Vec<String>) -> SeriesView {
    let (mut read, mut write) = (SeriesRates::default(), SeriesRates::default());
    let (mut busy, mut all) = (Vec::new(), Vec::new());
    for step in 0..range.count {
        // Each host saw a part of the step of its own length.
        let seen: Vec<(f64, Option<&Interval>)> = hosts
            .iter()
            .filter(|host| host.seconds[step] > 0)
            .map(|host| (f64::from(host.seconds[step]), host.intervals.get(&step)))
            .collect();
        let mut sum = Interval::default();
        seen.iter().filter_map(|(_, interval)| *interval).for_each(|interval| sum.merge(interval));
        let rate = |of: &dyn Fn(&Interval) -> u64| {
            let rates =
                seen.iter().map(|(seconds, found)| found.map_or(0.0, |found| of(found) as f64 / seconds));
            (!seen.is_empty()).then(|| rates.sum::<f64>())
        };
        add_step(
            &mut read,
            &sum.read,
            rate(&|one| one.read.count()),
            rate(&|one| one.read.bytes).filter(|_| !is_device),
        );
        add_step(
            &mut write,
            &sum.write,
            rate(&|one| one.write.count()),
            rate(&|one| one.write.bytes).filter(|_| !is_device),
        );
        busy.push(rate(&|one| one.busy_ns).map(|busy| (busy / 1e7).min(100.0)));
        all.push(sum);
    }
    SeriesView {
        of: of.to_owned(),
        start: range.start,
        step_seconds: range.step,
        read,
        write,
        busy_percent: is_device.then_some(busy),
        heat: heat(&all),
        silent,
    }
}

/// One step more.
fn add_step(to: &mut SeriesRates, sum: &Direction, iops: Option<f64>, bytes_per_second: Option<f64>) {
    to.iops.push(iops);
    to.bytes_per_second.push(bytes_per_second);
    to.latency_us_mean.push(micros(sum.mean()));
    to.latency_us_p50.push(micros(sum.percentile(0.5)));
    to.latency_us_p99.push(micros(sum.percentile(0.99)));
}

/// The counts of those octaves in which anything lies. The lowest limit has all that is faster, the highest all that is slower.
fn heat(steps: &[Interval]) -> HeatView {
    let bounds = |octave: u32| {
        let from = if octave == HEAT_OCTAVES.start { 0 } else { 1 << (octave - 1) };
        let to = if octave == HEAT_OCTAVES.end { u64::MAX } else { 1 << octave };
        (from, to)
    };
    let count = |direction: &Direction, octave| {
        let (from, to) = bounds(octave);
        direction.between(from, to)
    };
    let is_used =
        |octave: &u32| steps.iter().any(|step| count(&step.read, *octave) + count(&step.write, *octave) > 0);
    let all = || HEAT_OCTAVES.start..=HEAT_OCTAVES.end;
    let (Some(first), Some(last)) = (all().find(is_used), all().rev().find(is_used)) else {
        return HeatView {
            limits_us: Vec::new(),
            read: vec![Vec::new(); steps.len()],
            write: vec![Vec::new(); steps.len()],
        };
    };
    let row = |direction: &Direction| match direction.count() {
        0 => Vec::new(),
        _ => (first..=last).map(|octave| count(direction, octave)).collect(),
    };
    HeatView {
        limits_us: (first..=last).map(|octave| (1u64 << octave) as f64 / 1000.0).collect(),
        read: steps.iter().map(|step| row(&step.read)).collect(),
        write: steps.iter().map(|step| row(&step.write)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::tests::writes;
    use std::collections::BTreeMap;

    fn query(seconds: u64, points: usize, until: Option<u64>) -> SeriesQuery {
        SeriesQuery { of: None, seconds: Some(seconds), until, points: Some(points) }
    }

    #[test]
    fn steps_fit_what_is_kept() {
        let now = 20_000 * 86_400 + 777;
        let range =
            |seconds, points, until| range_of(&query(seconds, points, until), now).expect("it is kept");
        assert_eq!(range(60, 300, None), Range { start: now - 60, step: 1, count: 60 });
        let hour = range(3600, 300, None);
        assert_eq!((hour.step, hour.count, hour.end()), (12, 300, now / 12 * 12));
        // A day is in rows; the slot that is not over is in it.
        let day = range(86_400, 1000, None);
        assert_eq!((day.step, day.count, day.end()), (300, 288, now.next_multiple_of(300)));
        let quarter = range(90 * 86_400, 300, None);
        assert_eq!((quarter.step % 300, quarter.count <= 300), (0, true));
        // A minute of yesterday is a row.
        assert_eq!(range(60, 300, Some(now - 86_400)).step, 300);
        // The future is not known.
        assert_eq!(range(60, 300, Some(now + 500)), range(60, 300, None));
        for (seconds, points) in [(0, 1), (1, 0), (90 * 86_400 + 1, 1), (1, 1001)] {
            range_of(&query(seconds, points, None), now).expect_err("it makes no sense");
        }
    }

    #[test]
    fn hosts_are_added_up_each_by_what_it_saw() {
        let range = Range { start: 0, step: 10, count: 4 };
        let steps = |seconds: [u32; 4], found: &[(usize, Interval)]| Steps {
            range,
            seconds: seconds.to_vec(),
            intervals: found.iter().cloned().collect::<BTreeMap<_, _>>(),
        };
        let hosts = [
            steps([10, 10, 0, 0], &[(0, writes(100, 100))]),
            steps([0, 5, 10, 0], &[(1, writes(100, 5000)), (2, writes(10, 100))]),
        ];
        let found = view("cluster", range, &hosts, false, Vec::new());
        assert_eq!(found.write.iops, [Some(10.0), Some(20.0), Some(1.0), None]);
        assert_eq!(found.write.bytes_per_second[1], Some(20.0 * 4096.0));
        assert_eq!((found.read.iops[0], found.read.latency_us_p50[0]), (Some(0.0), None), "idle");
        let p99: Vec<bool> = found.write.latency_us_p99.iter().map(Option::is_some).collect();
        assert_eq!(p99, [true, true, true, false]);
        // 100 us lie below 131 us, 5 ms below 8.4 ms.
        assert_eq!((found.heat.limits_us[0], found.heat.limits_us.len()), (131.072, 7));
        assert_eq!(found.heat.write[0], [100, 0, 0, 0, 0, 0, 0]);
        assert_eq!(found.heat.write[1], [0, 0, 0, 0, 0, 0, 100]);
        assert_eq!((found.heat.write[3].len(), found.heat.read.len()), (0, 4));
        assert_eq!(found.busy_percent, None);
    }
}
