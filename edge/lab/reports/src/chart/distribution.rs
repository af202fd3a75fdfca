//! How latencies are distributed: the share that is done within a time, and the share that is not.

use super::{Axis, Chart, Lines, Numbers, Scale, Series, Shape, busiest, left_out};
use crate::DISTRIBUTION_POINTS_MAX;
use crate::figures::OPERATIONS;
use measured::StageRun;
use statistics::Histogram;

/// Both charts of a stage; none without I/Os.
pub fn charts(stage: &StageRun) -> Vec<Chart> {
    let mut lines: Vec<(String, Histogram)> = Vec::new();
    for group in &stage.groups {
        for (operation, of) in OPERATIONS.into_iter().zip(&group.operations) {
            let name = match stage.groups.len() {
                1 => operation.to_owned(),
                _ => format!("{} {operation}", group.name),
            };
            if of.latency.is_empty() {
                continue;
            }
            if let Some(service) = &of.service {
                lines.push((format!("{name}, service time"), service.clone()));
            }
            lines.push((name, of.latency.clone()));
        }
    }
    of_histograms(&lines)
}

/// Both charts of named histograms; none without values.
pub fn of_histograms(named: &[(String, Histogram)]) -> Vec<Chart> {
    let weighed = named.iter().filter(|(_, histogram)| !histogram.is_empty());
    let (kept, rest) = busiest(weighed.map(|named| (named.1.count() as f64, named)).collect());
    if kept.is_empty() {
        return Vec::new();
    }
    let within = kept.iter().map(|(name, histogram)| line(name, histogram, |below, _| below)).collect();
    let beyond = kept.iter().map(|(name, histogram)| line(name, histogram, |_, beyond| beyond)).collect();
    let chart = |title: &str, caption: &str, y: Axis, series| Chart {
        title: title.to_owned(),
        caption: format!("{caption}{}", left_out(rest, "line")),
        shape: Shape::Lines(Lines {
            x: Axis::scaled("latency", Scale::LogTime),
            y,
            series,
            marks: Vec::new(),
        }),
    };
    vec![
        chart(
            "Latency distribution",
            "Share of I/Os that completed within a time. Further left is faster; each step is a mode of the latency.",
            Axis::linear("share completed"),
            within,
        ),
        chart(
            "Tail of latency",
            "Share of I/Os that took longer, both axes logarithmic. A line crosses 1 % at its p99 and \
             0.1 %.",
            Axis::scaled("share slower", Scale::LogShare),
            beyond,
        ),
    ]
}

fn line(name: &str, histogram: &Histogram, of: impl Fn(f64, f64) -> f64) -> Series {
    let total = histogram.count();
    let buckets: Vec<_> = histogram.buckets().collect();
    // The tail is where few I/Os are: neighbours are joined from the fast end, evenly over buckets.
    let joined = buckets.len().div_ceil(DISTRIBUTION_POINTS_MAX).max(1);
    let mut below = 0u64;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for part in buckets.chunks(joined) {
        below += part.iter().map(|bucket| bucket.count).sum::<u64>();
        // The last bucket ends nowhere: the largest value stands for its end.
        let end = part.last().map_or(0, |bucket| bucket.to_ns).min(histogram.max_ns().unwrap_or(0).max(1));
        let beyond = (total - below) as f64 / total as f64;
        x.push(end as f64);
        // Nothing is beyond the largest, and a logarithmic scale has no zero: the line ends at it with the share that is as slow.
        let slowest = part.iter().map(|bucket| bucket.count).sum::<u64>();
        let beyond = if below == total { slowest as f64 / total as f64 } else { beyond };
        y.push(of(below as f64 / total as f64, beyond));
    }
    Series { name: name.to_owned(), x: Numbers(x), y: Numbers(y), ..Series::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight I/Os of 2 s among 32,000 were on no chart: the line ended at 6 ms.
    #[test]
    fn the_tail_reaches_to_the_slowest_io() {
        let mut histogram = Histogram::default();
        histogram.record_many(100_000, 31_992);
        histogram.record_many(2_000_000_000, 8);
        let charts = of_histograms(&[("read".to_owned(), histogram)]);
        let Shape::Lines(tail) = &charts[1].shape else { panic!("the tail is lines") };
        let (x, y) = (&tail.series[0].x.0, &tail.series[0].y.0);
        assert_eq!((x.last(), y.last()), (Some(&2e9), Some(&(8.0 / 32_000.0))));
        assert!(y.iter().all(|share| share.is_finite() && *share > 0.0), "{y:?}");
    }
}
