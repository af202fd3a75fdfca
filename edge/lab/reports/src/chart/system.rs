//! The system under test beside the load: a chart for each figure, and events as marks.

use super::{Axis, Chart, Lines, Mark, Series, Shape, busiest, left_out};
use crate::TIME_POINTS_MAX;
use measured::{System, SystemSeries};

/// Events that are drawn into one chart: more would hide it.
const EVENTS_MARKED_MAX: usize = 8;
/// Letters of an event beside its mark.
const EVENT_LETTERS_MAX: usize = 48;

/// A chart for each figure, in the order in which figures were watched; none without series.
pub fn charts(system: &System) -> Vec<Chart> {
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for series in &system.series {
        if !figures.contains(&(&series.figure, &series.unit)) {
            figures.push((&series.figure, &series.unit));
        }
    }
    figures.into_iter().filter_map(|(figure, unit)| chart(system, figure, unit)).collect()
}

fn chart(system: &System, figure: &str, unit: &str) -> Option<Chart> {
    let of = system.series.iter().filter(|series| series.figure == figure && series.unit == unit);
    // What did nothing all the time is no news.
    let busy = of.filter(|series| series.points.iter().any(|(_, value)| *value != 0.0));
    let weighed: Vec<(f64, Series)> =
        busy.map(|series| (series.points.iter().map(|(_, value)| value.abs()).sum(), line(series))).collect();
    let (series, rest) = busiest(weighed);
    (!series.is_empty()).then(|| Chart {
        title: format!("System under test: {}", figure.to_lowercase()),
        caption: format!(
            "From the metrics of the system under test, about once a second.{}",
            left_out(rest, "line")
        ),
        shape: Shape::Lines(Lines {
            x: Axis::linear("seconds"),
            y: Axis::linear(unit),
            series,
            marks: marks(system),
        }),
    })
}

fn line(series: &SystemSeries) -> Series {
    let step = series.points.len().div_ceil(TIME_POINTS_MAX).max(1);
    let points = || series.points.iter().step_by(step);
    Series {
        name: series.of.clone(),
        x: points().map(|(at, _)| *at).collect(),
        y: points().map(|(_, value)| *value).collect(),
        ..Series::default()
    }
}

/// The first events, where they happened.
pub fn marks(system: &System) -> Vec<Mark> {
    let shown = system.events.iter().take(EVENTS_MARKED_MAX);
    shown
        .map(|event| {
            let mut text: String = event.text.chars().take(EVENT_LETTERS_MAX).collect();
            if text.len() < event.text.len() {
                text.push('…');
            }
            Mark { x: event.at, text }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::SystemEvent;

    #[test]
    fn each_figure_is_a_chart_with_the_events_in_it_and_idle_series_are_left_out() {
        let series = |figure: &str, of: &str, value: f64| SystemSeries {
            figure: figure.into(),
            unit: "MiB/s".into(),
            of: of.into(),
            points: vec![(0.0, value), (1.0, value)],
        };
        let system = System {
            series: vec![
                series("Resync", "a", 3.0),
                series("Resync", "b", 0.0),
                series("Destaging", "a", 0.0),
            ],
            events: vec![SystemEvent {
                at: 0.5,
                text: "host b: is suspect, and what else there is to say of it".into(),
            }],
            notes: Vec::new(),
        };
        let drawn = charts(&system);
        assert_eq!(drawn.len(), 1);
        let Shape::Lines(lines) = &drawn[0].shape else { panic!("lines") };
        assert_eq!(lines.series.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(lines.marks[0].x == 0.5 && lines.marks[0].text.starts_with("host b: is suspect"));
        assert!(lines.marks[0].text.ends_with('…'));
    }
}
