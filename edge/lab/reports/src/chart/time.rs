//! A stage over time: throughput, bandwidth, percentiles, and the heat map of latency.

use super::{Axis, Chart, Heat, Lines, Mark, Numbers, Scale, Series, Shape, busiest, left_out};
use crate::figures::{OPERATIONS, duration};
use crate::seconds::{Slot, Slots, slots};
use crate::{HEAT_COLUMNS_MAX, TIME_POINTS_MAX};
use measured::StageRun;
use statistics::Histogram;

/// The charts of a stage over time; none when it has no seconds.
pub fn charts(stage: &StageRun) -> Vec<Chart> {
    let seconds = slots(stage, TIME_POINTS_MAX);
    if seconds.slots.is_empty() {
        return Vec::new();
    }
    let heat = slots(stage, HEAT_COLUMNS_MAX);
    let mut charts = vec![
        rates(stage, &seconds, "Throughput over time", "I/Os per second", |(ios, _)| ios as f64),
        rates(stage, &seconds, "Bandwidth over time", "MiB per second", |(_, bytes)| {
            bytes as f64 / f64::from(1 << 20)
        }),
        percentiles(stage, &seconds),
    ];
    charts.extend(errors(stage, &seconds));
    charts.extend(heat_map(&heat));
    charts
}

/// The runs of one cell over time, a line for each; none if there is one run alone.
pub fn repeats(stages: &[&StageRun]) -> Vec<Chart> {
    let runs: Vec<Slots> = stages.iter().map(|stage| slots(stage, TIME_POINTS_MAX)).collect();
    if runs.len() < 2 || runs.iter().all(|run| run.slots.is_empty()) {
        return Vec::new();
    }
    let lines = |of: &dyn Fn(&Slot) -> f64| {
        let line = |(index, run): (usize, &Slots)| {
            let y: Numbers = run.slots.iter().map(of).collect();
            let weight: f64 = y.0.iter().filter(|value| value.is_finite()).sum();
            let name = format!("run {}", index + 1);
            (weight, Series { name, x: times(run), y, ..Series::default() })
        };
        busiest(runs.iter().enumerate().map(line).collect())
    };
    let chart = |title: &str, axis: Axis, (series, rest): (Vec<Series>, usize)| Chart {
        title: title.to_owned(),
        caption: format!("{}{}", each_point(&runs[0]), left_out(rest, "run")),
        shape: Shape::Lines(Lines { x: Axis::linear("seconds"), y: axis, series, marks: Vec::new() }),
    };
    let rate = |slot: &Slot| slot.counts.iter().map(|(ios, _)| *ios as f64).sum::<f64>() / slot.seconds;
    let p99 = |slot: &Slot| slot.latency.percentile(0.99).map_or(f64::NAN, |ns| ns.max(1) as f64);
    vec![
        chart("Throughput of every run", Axis::linear("I/Os per second"), lines(&rate)),
        chart("p99 of every run", Axis::scaled("latency", Scale::LogTime), lines(&p99)),
    ]
}

/// I/Os that failed; none where none did, or nobody knows when.
fn errors(stage: &StageRun, slots: &Slots) -> Option<Chart> {
    if slots.slots.iter().all(|slot| slot.errors == 0) {
        return None;
    }
    let y = slots.slots.iter().map(|slot| slot.errors as f64 / slot.seconds).collect();
    Some(Chart {
        title: "Errors over time".to_owned(),
        caption: format!("Failed I/Os of all groups. {}", each_point(slots)),
        shape: Shape::Lines(Lines {
            x: Axis::linear("seconds"),
            y: Axis::linear("failed I/Os per second"),
            series: vec![Series { name: "errors".to_owned(), x: times(slots), y, ..Series::default() }],
            marks: marks(stage),
        }),
    })
}

fn each_point(slots: &Slots) -> String {
    match slots.width {
        1 => "One point per second.".to_owned(),
        width => format!("Each point covers {width} s."),
    }
}

fn times(slots: &Slots) -> Numbers {
    slots.slots.iter().map(|slot| slot.at).collect()
}

/// Where stalls of note began; the longest few.
fn marks(stage: &StageRun) -> Vec<Mark> {
    const STALLS_MARKED_MAX: usize = 5;
    let mut stalls = stage.stalls_of_note();
    stalls.retain(|stall| stall.at.is_finite());
    stalls.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let stalls = stalls.into_iter().take(STALLS_MARKED_MAX);
    stalls
        .map(|stall| Mark { x: stall.at, text: format!("stall {}", duration(stall.seconds * 1e9)) })
        .collect()
}

fn rates(stage: &StageRun, slots: &Slots, title: &str, unit: &str, of: impl Fn((u64, u64)) -> f64) -> Chart {
    let line = |name: String, columns: &[usize]| {
        let y: Numbers = (slots.slots.iter())
            .map(|slot| columns.iter().map(|&column| of(slot.counts[column])).sum::<f64>() / slot.seconds)
            .collect();
        let weight: f64 = y.0.iter().sum();
        (weight, Series { name, x: times(slots), y, ..Series::default() })
    };
    let mut lines = Vec::new();
    for (index, group) in stage.groups.iter().enumerate() {
        let busy: Vec<usize> =
            (0..3).filter(|&of| slots.slots.iter().any(|slot| slot.counts[index * 3 + of].0 > 0)).collect();
        for operation in busy {
            let name = match stage.groups.len() {
                1 => OPERATIONS[operation].to_owned(),
                _ => format!("{} {}", group.name, OPERATIONS[operation]),
            };
            lines.push(line(name, &[index * 3 + operation]));
        }
    }
    let several = lines.len() > 1;
    let (mut series, rest) = busiest(lines);
    if several {
        let all: Vec<usize> = (0..stage.groups.len() * 3).collect();
        series.insert(0, line("all".to_owned(), &all).1);
    }
    Chart {
        title: title.to_owned(),
        caption: format!("{}{}", each_point(slots), left_out(rest, "line")),
        shape: Shape::Lines(Lines {
            x: Axis::linear("seconds"),
            y: Axis::linear(unit),
            series,
            marks: marks(stage),
        }),
    }
}

fn percentile_lines(slots: &Slots, shares: &[(Option<f64>, &str)]) -> Vec<Series> {
    let figure = |histogram: &Histogram, share: Option<f64>| match share {
        Some(share) => histogram.percentile(share),
        None => histogram.max_ns(),
    };
    (shares.iter())
        .map(|&(share, name)| Series {
            name: name.to_owned(),
            x: times(slots),
            y: (slots.slots.iter())
                .map(|slot| figure(&slot.latency, share).map_or(f64::NAN, |ns| ns.max(1) as f64))
                .collect(),
            ..Series::default()
        })
        .collect()
}

fn percentiles(stage: &StageRun, slots: &Slots) -> Chart {
    let shares =
        [(Some(0.5), "p50"), (Some(0.95), "p95"), (Some(0.99), "p99"), (Some(0.999), "p99.9"), (None, "max")];
    Chart {
        title: "Latency over time".to_owned(),
        caption: format!("{} Percentiles over the I/Os of all groups in that time.", each_point(slots)),
        shape: Shape::Lines(Lines {
            x: Axis::linear("seconds"),
            y: Axis::scaled("latency", Scale::LogTime),
            series: percentile_lines(slots, &shares),
            marks: marks(stage),
        }),
    }
}

/// Buckets of the heat map: eight in each power of two, which is 9 % from one to the next.
const PER_OCTAVE: u32 = 8;

fn bucket_of(ns: u64) -> u32 {
    ((ns.max(1) as f64).log2() * f64::from(PER_OCTAVE)).floor() as u32
}

fn limit_of(bucket: u32) -> f64 {
    (f64::from(bucket) / f64::from(PER_OCTAVE)).exp2()
}

fn heat_map(slots: &Slots) -> Option<Chart> {
    let used =
        || slots.slots.iter().flat_map(|slot| slot.latency.buckets()).map(|of| bucket_of(of.middle_ns));
    let (first, last) = (used().min()?, used().max()?);
    let columns = slots.slots.iter().map(|slot| {
        let mut column = vec![0.0; (last - first) as usize + 1];
        for bucket in slot.latency.buckets() {
            column[(bucket_of(bucket.middle_ns) - first) as usize] += bucket.count as f64 / slot.seconds;
        }
        Numbers(column)
    });
    let middle = |bucket: u32| (limit_of(bucket) * limit_of(bucket + 1)).sqrt();
    let label = |bucket: u32| format!("{} to {}", duration(limit_of(bucket)), duration(limit_of(bucket + 1)));
    Some(Chart {
        title: "Heat map of latency".to_owned(),
        caption: format!(
            "Colour shows I/Os per second on a logarithmic scale, so that rare slow I/Os are visible. {}",
            each_point(slots)
        ),
        shape: Shape::Heat(Heat {
            x: times(slots),
            width: slots.width as f64,
            y: (first..=last).map(middle).collect(),
            labels: (first..=last).map(label).collect(),
            z: columns.collect(),
            lines: percentile_lines(
                slots,
                &[(Some(0.5), "p50"), (Some(0.99), "p99"), (Some(0.999), "p99.9")],
            ),
        }),
    })
}
