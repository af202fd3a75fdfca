//! esxtop's batch mode (`esxtop -b`): a CSV whose first line names thousands of counters, `\\host\Group(instance)\Counter`.
//!
//! Of virtual disks and of disk devices, the rates and latencies of every sample are kept. Guests' disks come first: a device serves
//! many of them. Must never average latencies but by I/Os.

use std::collections::BTreeMap;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Interval, Note, ResultSet, Run, Tool};
use crate::text;

/// The groups that are read.
const GROUPS: [&str; 3] = ["Virtual Disk", "Physical Disk SCSI Device", "Physical Disk NFS Volume"];
const MIB: f64 = 1_048_576.0;

/// True for a first line of counters.
pub(crate) fn is_batch(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start_matches('"').starts_with("(PDH-CSV 4.0)")
}

/// The columns of one disk.
#[derive(Debug, Default)]
struct Disk {
    rate: [Option<usize>; 2],
    mib: [Option<usize>; 2],
    latency: [Option<usize>; 2],
    /// For both directions: `Average Guest MilliSec/Command`.
    latency_all: Option<usize>,
}

impl Disk {
    fn takes(&mut self, counter: &str, at: usize) {
        let place = match counter {
            "Reads/sec" => &mut self.rate[0],
            "Writes/sec" => &mut self.rate[1],
            "MBytes Read/sec" => &mut self.mib[0],
            "MBytes Written/sec" => &mut self.mib[1],
            "Average MilliSec/Read" | "Average Guest MilliSec/Read" => &mut self.latency[0],
            "Average MilliSec/Write" | "Average Guest MilliSec/Write" => &mut self.latency[1],
            "Average Guest MilliSec/Command" => &mut self.latency_all,
            _ => return,
        };
        *place = Some(at);
    }
}

/// Reads a batch: a run for each disk that did something.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::EsxtopCsv };
    let mut lines = text::numbered(text).filter(|(_, line)| !line.trim().is_empty());
    let (_, header) =
        lines.next().ok_or_else(|| origin.whole("the file is empty", "give what esxtop -b wrote"))?;
    let names = text::fields(header, ',');
    let mut disks: BTreeMap<(usize, String), Disk> = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        if let Some((group, instance, counter)) = counter_of(name) {
            disks.entry((group, instance.to_owned())).or_default().takes(counter, at);
        }
    }
    disks.retain(|_, disk| disk.rate.iter().all(Option::is_some));
    let mut samples: Vec<(f64, Vec<String>)> = Vec::new();
    for (number, line) in lines {
        let fields = text::fields(line, ',');
        if fields.len() != names.len() {
            return Err(origin.fields(number, fields.len(), names.len()));
        }
        let seconds = seconds_of(&fields[0]);
        let seconds = seconds.ok_or_else(|| {
            origin.at_column((number, 1), format!("\"{}\"", fields[0]), "expected a time MM/DD/YYYY HH:MM:SS")
        })?;
        samples.push((seconds, fields));
    }
    let mut set = ResultSet::new(file, Tool::Esxtop, vec![]);
    for ((group, instance), disk) in &disks {
        set.runs.extend(run(GROUPS[*group], instance, disk, &samples));
    }
    if set.runs.is_empty() {
        let found = "no virtual disk and no device with reads and writes";
        return Err(origin.whole(found, "record with esxtop -b -a, which writes all counters"));
    }
    let text = "esxtop has means over its interval: percentiles and outstanding I/Os are unknown";
    set.notes.push(Note::new(text));
    Ok(set)
}

/// `\\host\Virtual Disk(vm:scsi0:0)\Reads/sec`.
fn counter_of(name: &str) -> Option<(usize, &str, &str)> {
    let rest = name.trim().strip_prefix("\\\\")?;
    let (_, rest) = rest.split_once('\\')?;
    let group =
        GROUPS.iter().position(|group| rest.strip_prefix(group).is_some_and(|rest| rest.starts_with('(')))?;
    // An instance may hold brackets of its own.
    let (instance, counter) = rest[GROUPS[group].len() + 1..].rsplit_once(")\\")?;
    Some((group, instance, counter))
}

/// Seconds of "MM/DD/YYYY HH:MM:SS", from any beginning, by the days of the Gregorian calendar.
fn seconds_of(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(' ')?;
    let numbers = |text: &str, by: char| {
        text.split(by).map(|part| part.trim().parse::<f64>().ok()).collect::<Option<Vec<f64>>>()
    };
    let (date, time) = (numbers(date, '/')?, numbers(time, ':')?);
    let ([month, day, year], [hours, minutes, seconds]) = (&date[..], &time[..]) else { return None };
    // March is the first month: the leap day is the last of a year.
    let (year, month) = if *month < 3.0 { (year - 1.0, month + 9.0) } else { (*year, month - 3.0) };
    let days = 365.0 * year + (year / 4.0).floor() - (year / 100.0).floor()
        + (year / 400.0).floor()
        + ((153.0 * month + 2.0) / 5.0).floor()
        + day;
    Some(((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds).filter(|seconds| seconds.is_finite())
}

fn run(group: &str, instance: &str, disk: &Disk, samples: &[(f64, Vec<String>)]) -> Option<Run> {
    let begin = samples.first()?.0;
    let mut run = Run { label: format!("{group} {instance}"), ..Run::default() };
    run.job.target = Some(instance.to_owned());
    // Of each direction: I/Os and bytes a second, latency times I/Os.
    let mut sums = [[0.0; 3]; 2];
    let mut has_latency = [true; 2];
    for (index, (at, fields)) in samples.iter().enumerate() {
        let figure = |column: Option<usize>| column.and_then(|column| text::number(&fields[column]));
        let to = samples.get(index + 1).map_or(*at, |(next, _)| *next);
        let mut all = 0.0;
        for side in 0..2 {
            let rate = figure(disk.rate[side]).unwrap_or(0.0).max(0.0);
            let latency = figure(disk.latency[side]).or_else(|| figure(disk.latency_all));
            sums[side][0] += rate;
            sums[side][1] += figure(disk.mib[side]).unwrap_or(0.0).max(0.0) * MIB;
            sums[side][2] += latency.unwrap_or(0.0).max(0.0) * rate;
            has_latency[side] &= rate == 0.0 || latency.is_some();
            all += rate;
        }
        run.intervals.push(Interval {
            from_s: at - begin,
            to_s: to.max(*at) - begin,
            direction: Direction::Total,
            iops: Some(all),
            bytes_per_s: None,
            latency_s: None,
            histogram: None,
        });
    }
    let count = samples.len() as f64;
    for (side, direction) in [Direction::Read, Direction::Write].into_iter().enumerate() {
        let [rate, bytes, weighted] = sums[side];
        if rate > 0.0 {
            let figures = Figures {
                iops: Some(rate / count),
                bytes_per_s: Some(bytes / count),
                latency_s: has_latency[side].then(|| weighted / rate / 1e3).filter(|latency| *latency > 0.0),
                ..Figures::default()
            };
            run.directions.insert(direction, figures);
        }
    }
    run.seconds = samples.last().map(|(end, _)| end - begin).filter(|seconds| *seconds > 0.0);
    (!run.directions.is_empty()).then_some(run)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\esx01.example.com\\Memory\\Memory Overcommit (1 Minute Avg)\",\
\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\Reads/sec\",\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\Writes/sec\",\
\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\MBytes Read/sec\",\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\MBytes Written/sec\",\
\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\Average MilliSec/Read\",\"\\\\esx01.example.com\\Virtual Disk(web (old):scsi0:0)\\Average MilliSec/Write\",\
\"\\\\esx01.example.com\\Physical Disk SCSI Device(naa.6000)\\Reads/sec\",\"\\\\esx01.example.com\\Physical Disk SCSI Device(naa.6000)\\Writes/sec\",\
\"\\\\esx01.example.com\\Physical Disk SCSI Device(naa.6000)\\Average Guest MilliSec/Command\"
\"02/28/2026 23:59:55\",\"0.00\",\"100.00\",\"0.00\",\"0.39\",\"0.00\",\"1.00\",\"0.00\",\"300.00\",\"100.00\",\"2.00\"
\"03/01/2026 00:00:00\",\"0.00\",\"300.00\",\"0.00\",\"1.17\",\"0.00\",\"5.00\",\"0.00\",\"300.00\",\"100.00\",\"4.00\"
";

    #[test]
    fn a_batch_of_esxtop_is_a_run_for_each_disk_with_latencies_weighted_by_ios() {
        let set = read("esxtop.csv", TEXT).unwrap();
        let labels: Vec<&str> = set.runs.iter().map(|run| run.label.as_str()).collect();
        assert_eq!(labels, ["Virtual Disk web (old):scsi0:0", "Physical Disk SCSI Device naa.6000"]);
        let disk = set.runs[0].total();
        assert_eq!((disk.iops, disk.latency_s), (Some(200.0), Some(0.004)), "(100 x 1 + 300 x 5) / 400 ms");
        // From February to March of a year without leap day.
        assert_eq!((set.runs[0].seconds, set.runs[0].intervals.len()), (Some(5.0), 2));
        let device = set.runs[1].total();
        assert_eq!((device.iops, device.latency_s), (Some(400.0), Some(0.003)));
        let audit = crate::audit(&[set], &crate::Claims::default());
        assert_eq!(audit.of(crate::Code::NoisyRuns).count(), 0, "two disks are no repeats: {audit}");
    }

    #[test]
    fn a_batch_that_is_cut_off_says_where() {
        let cut = TEXT.trim_end().rsplit_once(',').unwrap().0;
        assert_eq!(read("e.csv", cut).unwrap_err().line, Some(3));
        let odd = TEXT.replace("03/01/2026 00", "tomorrow");
        assert_eq!(read("e.csv", &odd).unwrap_err().column, Some(1));
    }
}
