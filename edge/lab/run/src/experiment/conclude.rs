//! What follows from an experiment's cells, in sentences.

use super::expand::SCHEDULED;
use super::expect::figure;
use super::model::{Experiment, Figure, Parameter};
use measured::{Cell, Conclusion};
use statistics::compare::{self, Better, Comparison, Question};
use statistics::knee::{self, Objective, SweepPoint};
use statistics::scaling::{self, ScalePoint};
use statistics::{fairness, samples, words};
use std::collections::BTreeMap;

/// The name of a figure that is no time.
const IOPS: &str = "IOPS";

/// All conclusions.
pub fn conclude(experiment: &Experiment, cells: &[Cell]) -> Vec<Conclusion> {
    let mut found = Vec::new();
    if let Some(compare) = &experiment.compare {
        comparisons(cells, compare.effect / 100.0, &mut found);
    }
    let swept = |parameter: Parameter| experiment.sweeps.iter().any(|sweep| sweep.parameter == parameter);
    if [Parameter::Outstanding, Parameter::Depth, Parameter::Workers].into_iter().any(swept)
        || experiment.search.is_some()
    {
        let of_depth = ["outstanding", "depth", "workers"];
        for (about, series) in series(cells, &of_depth) {
            knees(&about, &series, objective(experiment), &mut found);
        }
    }
    if swept(Parameter::Vms) {
        for (about, series) in series(cells, &["vms"]) {
            scale_out(&about, &series, &mut found);
        }
    }
    interference(cells, &mut found);
    unfairness(cells, &mut found);
    repeats(experiment, cells, &mut found);
    found
}

/// Who slowed whom, where machines ran by a schedule.
fn interference(cells: &[Cell], found: &mut Vec<Conclusion>) {
    for cell in cells.iter().filter(|cell| cell.workload == SCHEDULED) {
        for run in &cell.runs {
            for stage in &run.stages {
                let capture = crate::commands::capture_of(run, stage);
                lens::interference(&capture)
                    .sentences
                    .into_iter()
                    .for_each(|text| say(found, "Who slows whom", text));
            }
        }
    }
}

fn objective(experiment: &Experiment) -> Option<Objective> {
    experiment.search.as_ref().map(|search| Objective::Percentile(search.latency_ms / 1e3))
}

fn say(found: &mut Vec<Conclusion>, about: &str, text: impl Into<String>) {
    found.push(Conclusion { about: about.to_owned(), text: text.into() });
}

/// Cells that differ in nothing but these parameters, by what they have in common.
fn series<'a>(cells: &'a [Cell], varied: &[&str]) -> BTreeMap<String, Vec<&'a Cell>> {
    let mut all: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let mut common = without_runs(cell);
        common.parameters.retain(|name, _| !varied.contains(&name.as_str()));
        all.entry(common.label()).or_default().push(cell);
    }
    all
}

/// What a cell is called by, without what it measured: histograms of many runs are large.
fn without_runs(cell: &Cell) -> Cell {
    Cell {
        workload: cell.workload.clone(),
        parameters: cell.parameters.clone(),
        side: cell.side.clone(),
        outstanding: cell.outstanding,
        vms: cell.vms,
        runs: Vec::new(),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn knees(about: &str, cells: &[&Cell], objective: Option<Objective>, found: &mut Vec<Conclusion>) {
    let point = |cell: &&Cell| {
        let throughput = mean(&cell.figures(|run| figure(run, Figure::Iops)))?;
        let latency_s = mean(&cell.figures(|run| figure(run, Figure::MeanMs)))? / 1e3;
        let percentile_s = mean(&cell.figures(|run| figure(run, Figure::P99Ms))).map(|ms| ms / 1e3);
        Some(SweepPoint { outstanding: cell.outstanding as f64, throughput, latency_s, percentile_s })
    };
    let points: Vec<SweepPoint> = cells.iter().filter_map(point).collect();
    match knee::sweep(&points, objective) {
        Ok(sweep) => {
            say(found, about, sweep.to_string());
            sweep.estimators().into_iter().for_each(|line| say(found, about, line));
        }
        Err(error) => say(found, about, format!("no sweet spot: {error}")),
    }
}

fn scale_out(about: &str, cells: &[&Cell], found: &mut Vec<Conclusion>) {
    let points: Vec<ScalePoint> = cells
        .iter()
        .filter_map(|cell| {
            let throughput = mean(&cell.figures(|run| figure(run, Figure::Iops)))?;
            Some(ScalePoint { members: cell.vms as f64, throughput })
        })
        .collect();
    let linear: Vec<String> = scaling::linearity(&points)
        .into_iter()
        .map(|(members, share)| format!("{members}: {}", words::percent(share)))
        .collect();
    if !linear.is_empty() {
        say(
            found,
            about,
            format!("throughput of what so many machines alone would give: {}", linear.join(", ")),
        );
    }
    match scaling::scalability(&points) {
        Ok(law) => say(found, about, format!("scale-out: {law}")),
        Err(error) => say(found, about, format!("scale-out: {error}")),
    }
}

fn comparisons(cells: &[Cell], effect: f64, found: &mut Vec<Conclusion>) {
    let mut rows: Vec<(String, &'static str, Comparison)> = Vec::new();
    let mut pairs: BTreeMap<String, [Option<&Cell>; 2]> = BTreeMap::new();
    for cell in cells {
        let common = Cell { side: None, ..without_runs(cell) };
        let place = usize::from(cell.side.as_deref() == Some("b"));
        pairs.entry(common.label()).or_default()[place] = Some(cell);
    }
    for (about, pair) in pairs {
        let [Some(a), Some(b)] = pair else { continue };
        for (name, of, better) in [
            (IOPS, Figure::Iops, Better::Higher),
            ("mean latency", Figure::MeanMs, Better::Lower),
            ("p99 latency", Figure::P99Ms, Better::Lower),
        ] {
            let figures = |cell: &Cell| cell.figures(|run| figure(run, of));
            let question = Question { effect, ..Question::new(better) };
            match compare::compare(&figures(a), &figures(b), &question) {
                Ok(comparison) => rows.push((about.clone(), name, comparison)),
                Err(error) => say(found, &about, format!("{name}: {error}")),
            }
        }
    }
    let mut all: Vec<Comparison> = rows.iter().map(|(_, _, comparison)| comparison.clone()).collect();
    compare::control_chance(&mut all, 0.05);
    for ((about, name, _), comparison) in rows.into_iter().zip(all) {
        say(found, &about, verdict(name, &comparison));
    }
}

/// `IOPS (A 67.8 k, B 78.1 k): B is faster by 12 % to 19 %; the smallest difference …`. What stands before "): " are figures, and
/// what follows is a sentence of its own.
fn verdict(name: &str, comparison: &Comparison) -> String {
    let show = |value: f64| match name {
        IOPS => words::rate(value),
        _ => words::milliseconds(value / 1e3),
    };
    let (a, b) = (show(comparison.a.mean), show(comparison.b.mean));
    // Beyond that it is no figure that helps anybody.
    const SEEN_MAX: f64 = 1.0;
    let seen = comparison.smallest_seen.filter(|&seen| seen <= SEEN_MAX);
    let seen = seen.map_or(String::new(), |seen| {
        format!("; the smallest difference that so many runs can show is {}", words::percent(seen))
    });
    format!("{name} (A {a}, B {b}): {}{seen}", comparison.verdict.sentence("A", "B"))
}

fn repeats(experiment: &Experiment, cells: &[Cell], found: &mut Vec<Conclusion>) {
    if experiment.repeat == 1 {
        if cells.len() > 1 {
            say(
                found,
                "all",
                "one run a cell supports no claim that one cell is faster than another: repeat it",
            );
        }
        return;
    }
    let noisy = noisy_cells(cells);
    if noisy > 0 {
        let text = format!(
            "in {noisy} of {} cells the runs differ by more than {}: repeat them before small differences are believed",
            cells.len(),
            words::percent(samples::NOISE_BETWEEN_MAX)
        );
        say(found, "all", text);
    }
    for cell in cells {
        let Some(mean) = samples::mean_of_runs(&cell.figures(|run| figure(run, Figure::Iops)), 0.95) else {
            continue;
        };
        let noisy = match mean.variation {
            Some(variation) if mean.is_noisy() => format!("; runs differ by {}", words::percent(variation)),
            _ => String::new(),
        };
        let interval = mean.interval.map_or(", too few for an interval".to_owned(), |(low, high)| {
            format!(", between {} and {} (95 %)", words::rate(low), words::rate(high))
        });
        let text = match mean.runs {
            1 => format!("{} IOPS of one run: the others gave no figure", words::rate(mean.mean)),
            runs => format!("{} IOPS on average of {runs} runs{interval}{noisy}", words::rate(mean.mean)),
        };
        say(found, &cell.label(), text);
    }
}

/// Cells whose runs differ too much for small differences.
fn noisy_cells(cells: &[Cell]) -> usize {
    let mean = |cell: &&Cell| samples::mean_of_runs(&cell.figures(|run| figure(run, Figure::Iops)), 0.95);
    cells.iter().filter(|cell| mean(cell).is_some_and(|mean| mean.is_noisy())).count()
}

/// Machines that ran the same and got unequal shares.
fn unfairness(cells: &[Cell], found: &mut Vec<Conclusion>) {
    const JAIN_MIN: f64 = 0.95;
    for cell in cells.iter().filter(|cell| cell.vms > 1 && cell.workload != SCHEDULED) {
        let Some(stage) = cell.runs.first().and_then(|run| run.stages.first()) else { continue };
        let each: Vec<f64> = stage.groups.iter().map(measured::GroupRun::iops).collect();
        if let Some(of) = fairness::fairness(&each)
            && of.jain < JAIN_MIN
        {
            let text = format!(
                "machines were served unequally: Jain's index {:.3}, the least served had {} of the median, the best served {}",
                of.jain,
                words::percent(of.smallest),
                words::percent(of.largest)
            );
            say(found, &cell.label(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_read_as_sentences_with_units() {
        let check = |name: &str, a: &[f64], b: &[f64], better: Better, expected: &str| {
            let comparison = compare::compare(a, b, &Question::new(better)).unwrap();
            assert_eq!(verdict(name, &comparison), expected);
        };
        check(
            IOPS,
            &[20_000.0, 20_050.0, 20_100.0],
            &[23_000.0, 23_050.0, 23_100.0],
            Better::Higher,
            "IOPS (A 20.1 k, B 23.1 k): B is faster by 14 % to 16 %; the smallest difference that so many runs can show is \
             0.72 %",
        );
        check(
            "mean latency",
            &[0.5],
            &[0.6],
            Better::Lower,
            "mean latency (A 0.50 ms, B 0.60 ms): a single run supports no claim: repeat both",
        );
    }
}
