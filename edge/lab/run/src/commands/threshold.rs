//! Thresholds of a plain run: what its figures must be, and whether they are.

use crate::experiment::{Expect, Figure, judge_all};
use measured::{Cell, Expected, Run};
use plan::Plan;

/// Figures by the names that thresholds give them.
const FIGURES: &[(&str, Figure)] = &[
    ("iops", Figure::Iops),
    ("mib_per_second", Figure::MibPerSecond),
    ("mean", Figure::MeanMs),
    ("p50", Figure::P50Ms),
    ("p99", Figure::P99Ms),
    ("p99.9", Figure::P999Ms),
    ("cpu_us_per_io", Figure::CpuUsPerIo),
    ("fairness", Figure::Fairness),
    ("errors", Figure::Errors),
];

/// A figure and its bound, of one stage or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    expect: Expect,
}

/// Reads `[STAGE:]FIGURE<=NUMBER` with `<`, `<=`, `>` or `>=`. Latencies may have a unit (`5ms`, `300us`, `1s`), rates a `k`.
///
/// # Errors
/// A sentence that says what is wrong and what there is.
pub fn parse(text: &str) -> Result<Threshold, String> {
    let shape =
        || format!("`{text}` is not a threshold: write FIGURE<=NUMBER, for example p99<=5ms or iops>=10k");
    let at = text.find(['<', '>']).ok_or_else(shape)?;
    let (left, right) = text.split_at(at);
    let (stage, name) = left.rsplit_once(':').map_or((None, left), |(stage, name)| (Some(stage), name));
    let figure = FIGURES.iter().find(|(known, _)| *known == name.trim()).map(|(_, figure)| *figure);
    let figure = figure.ok_or_else(|| {
        let known: Vec<&str> = FIGURES.iter().map(|(known, _)| *known).collect();
        format!("`{text}`: unknown figure `{}`; known are {}", name.trim(), known.join(", "))
    })?;
    let is_most = right.starts_with('<');
    let (is_strict, number) = match right[1..].strip_prefix('=') {
        Some(number) => (false, number),
        None => (true, &right[1..]),
    };
    let bound = number_of(number.trim(), figure).ok_or_else(shape)?;
    if !figure.can_be(bound) {
        return Err(format!("`{text}`: {} is never {bound}", figure.name()));
    }
    let (at_least, at_most) = match (is_most, is_strict) {
        (true, false) => (None, Some(bound)),
        (true, true) => (None, Some(bound.next_down())),
        (false, false) => (Some(bound), None),
        (false, true) => (Some(bound.next_up()), None),
    };
    let workload = stage.map(|stage| stage.trim().to_owned());
    let expect = Expect { workload, at_least, at_most, ..Expect::of(figure) };
    Ok(Threshold { expect })
}

fn number_of(text: &str, figure: Figure) -> Option<f64> {
    let units: &[(&str, f64)] = match figure {
        Figure::MeanMs | Figure::P50Ms | Figure::P99Ms | Figure::P999Ms => {
            &[("ms", 1.0), ("us", 1e-3), ("s", 1e3)]
        }
        Figure::Iops => &[("k", 1e3), ("M", 1e6)],
        Figure::MibPerSecond | Figure::CpuUsPerIo | Figure::Fairness | Figure::Errors => &[],
    };
    let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1.0));
    let number: f64 = number.trim().parse().ok()?;
    (number * factor).is_finite().then_some(number * factor)
}

/// Judges a run by its thresholds: each on every stage that it is about, all repeats of the stage together.
pub fn judge(thresholds: &[Threshold], plan: &Plan, run: &Run) -> Vec<Expected> {
    if thresholds.is_empty() {
        return Vec::new();
    }
    let cells: Vec<Cell> = (plan.stages.iter().enumerate())
        .map(|(index, stage)| Cell {
            workload: stage.name.clone(),
            parameters: std::collections::BTreeMap::new(),
            side: None,
            outstanding: stage.outstanding(),
            vms: 0,
            runs: (run.stages.iter().filter(|of| of.stage == index))
                .map(|of| Run { stages: vec![of.clone()], ..run.clone() })
                .collect(),
        })
        .collect();
    let expectations: Vec<Expect> = thresholds.iter().map(|of| of.expect.clone()).collect();
    judge_all(&expectations, &cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_with_units_and_refused_with_the_names_there_are() {
        let bounds = |text: &str| {
            let of = parse(text).unwrap_or_else(|error| panic!("{error}")).expect;
            (of.figure, of.workload, of.at_least, of.at_most)
        };
        assert_eq!(bounds("p99<=5ms"), (Figure::P99Ms, None, None, Some(5.0)));
        assert_eq!(bounds("mean<=300us").3, Some(0.3));
        assert_eq!(bounds("p99.9 <= 2s").3, Some(2000.0));
        assert_eq!(bounds("iops>=10k").2, Some(10_000.0));
        assert_eq!(
            bounds("rand read:errors<=0"),
            (Figure::Errors, Some("rand read".into()), None, Some(0.0))
        );
        assert!(bounds("p50<1").3 < Some(1.0), "less is not at most");
        for (text, words) in [
            ("p99", "is not a threshold"),
            ("p98<=5", "unknown figure `p98`"),
            ("p99<=fast", "is not a threshold"),
            ("fairness>=2", "is never 2"),
            ("errors<=-1", "is never -1"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(words), "{error}");
        }
    }
}
