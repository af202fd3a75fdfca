//! What follows from an experiment's cells, in sentences.

use super::execute::fell_behind;
use super::expand::SCHEDULED;
use super::expect::{cell_figure, cell_percentile, figure};
use super::model::{Experiment, Figure, Over, Parameter, Search};
use measured::{Cell, Compared, ComparedFigure, Conclusion, series};
use statistics::compare::{self, Comparison, Question, Verdict};
use statistics::knee::{self, Objective, SweepPoint};
use statistics::limit::{self, SearchPoint};
use statistics::scaling::{self, ScalePoint};
use statistics::{fairness, samples, words};
use std::collections::BTreeMap;

/// All conclusions.
pub fn conclude(experiment: &Experiment, cells: &[Cell]) -> Vec<Conclusion> {
    let mut found = Vec::new();
    if let Some(compare) = &experiment.compare {
        comparisons(cells, (compare.effect / 100.0, experiment.repeat), &mut found);
    }
    let swept = |parameter: Parameter| experiment.sweeps.iter().any(|sweep| sweep.parameter == parameter);
    if [Parameter::Outstanding, Parameter::Depth, Parameter::Workers].into_iter().any(swept) {
        for (about, series) in series(cells, &OF_DEPTH) {
            knees(&about, &series, None, &mut found);
        }
    }
    if let Some(search) = &experiment.search {
        searched(search, cells, &mut found);
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

/// Parameters that make up what is outstanding.
const OF_DEPTH: [&str; 3] = ["outstanding", "depth", "workers"];

/// The most that keeps the latency, of every workload, and the knee of what was tried over outstanding I/Os.
fn searched(search: &Search, cells: &[Cell], found: &mut Vec<Conclusion>) {
    let (varied, unit) = match search.over {
        Over::Outstanding => ("outstanding", "outstanding I/Os"),
        Over::Rate => ("rate", "IOPS of each machine"),
    };
    for (about, series) in series(cells, &[varied]) {
        let points: Vec<SearchPoint> = series.iter().filter_map(|cell| search_point(search, cell)).collect();
        say(found, &about, answer(search, unit, &limit::highest(&points, search.latency_ms / 1e3)));
        // Fewer points than three are an answer, and no sweep.
        if search.over == Over::Outstanding && points.len() >= 3 {
            knees(&about, &series, Some(search), found);
        }
    }
}

fn search_point(search: &Search, cell: &Cell) -> Option<SearchPoint> {
    let value = match search.over {
        Over::Outstanding => cell.outstanding as f64,
        Over::Rate => cell.parameters.get("rate")?.parse().ok()?,
    };
    Some(SearchPoint {
        value,
        throughput: cell_figure(cell, Figure::Iops)?,
        percentile_s: cell_percentile(cell, search.percentile / 100.0),
        is_kept: !cell.runs.iter().any(fell_behind),
    })
}

fn answer(search: &Search, unit: &str, found: &limit::Limit) -> String {
    let percentile = format!("p{}", words::number(search.percentile));
    let within = format!("{percentile} within {}", words::milliseconds(search.latency_ms / 1e3));
    let shown = |point: &SearchPoint| match point.percentile_s {
        _ if !point.is_kept => "the rate is not reached".to_owned(),
        Some(seconds) => format!("{percentile} is {}", words::milliseconds(seconds)),
        None => "nothing completes".to_owned(),
    };
    let number = |point: &SearchPoint| words::number(point.value);
    match (&found.highest, &found.failing) {
        (Some(highest), failing) => {
            let beyond = match failing {
                Some(failing) => format!("at {}, {}", number(failing), shown(failing)),
                None => "nothing higher was tried".to_owned(),
            };
            format!(
                "the highest load that meets {within} is {} {unit}: {} IOPS in total, {}; {beyond}",
                number(highest),
                words::rate(highest.throughput),
                shown(highest)
            )
        }
        (None, Some(failing)) => {
            format!(
                "{within} is not met at {} {unit}, the lowest load tried: {}",
                number(failing),
                shown(failing)
            )
        }
        (None, None) => format!("{within}: nothing was measured"),
    }
}

fn say(found: &mut Vec<Conclusion>, about: &str, text: impl Into<String>) {
    found.push(Conclusion::new(about, text));
}

fn knees(about: &str, cells: &[&Cell], search: Option<&Search>, found: &mut Vec<Conclusion>) {
    let point = |cell: &&Cell| {
        Some(SweepPoint {
            outstanding: cell.outstanding as f64,
            throughput: cell_figure(cell, Figure::Iops)?,
            latency_s: cell_figure(cell, Figure::MeanMs)? / 1e3,
            percentile_s: search.and_then(|search| cell_percentile(cell, search.percentile / 100.0)),
        })
    };
    let objective = search.map(|search| Objective::Percentile(search.latency_ms / 1e3));
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
            let throughput = cell_figure(cell, Figure::Iops)?;
            Some(ScalePoint { members: cell.vms as f64, throughput })
        })
        .collect();
    let linear: Vec<String> = scaling::linearity(&points)
        .into_iter()
        .map(|(members, share)| format!("{members}: {}", words::percent(share)))
        .collect();
    if !linear.is_empty() {
        say(found, about, format!("throughput as a share of linear scaling: {}", linear.join(", ")));
    }
    match scaling::scalability(&points) {
        Ok(law) => say(found, about, format!("scale-out: {law}")),
        Err(error) => say(found, about, format!("scale-out: {error}")),
    }
}

fn comparisons(cells: &[Cell], (effect, repeat): (f64, u32), found: &mut Vec<Conclusion>) {
    let mut rows: Vec<(String, ComparedFigure, Comparison)> = Vec::new();
    let mut pairs: BTreeMap<String, [Option<&Cell>; 2]> = BTreeMap::new();
    for cell in cells {
        let place = usize::from(cell.side.as_deref() == Some("b"));
        pairs.entry(cell.label_of_both_sides()).or_default()[place] = Some(cell);
    }
    for (about, pair) in pairs {
        let [Some(a), Some(b)] = pair else { continue };
        for of in ComparedFigure::ALL {
            let measured = match of {
                ComparedFigure::Iops => Figure::Iops,
                ComparedFigure::MeanLatency => Figure::MeanMs,
                ComparedFigure::P99Latency => Figure::P99Ms,
            };
            let figures = |cell: &Cell| cell.figures(|run| figure(run, measured));
            let question = Question { effect, ..Question::new(of.better()) };
            match compare::compare(&figures(a), &figures(b), &question) {
                Ok(comparison) => rows.push((about.clone(), of, comparison)),
                Err(error) => say(found, &about, format!("{}: {error}", of.name())),
            }
        }
    }
    let mut all: Vec<Comparison> = rows.iter().map(|(_, _, comparison)| comparison.clone()).collect();
    compare::control_chance(&mut all, compare::FALSE_DISCOVERIES);
    for ((about, figure, _), comparison) in rows.into_iter().zip(all) {
        let text = verdict(figure, &comparison, repeat == 1);
        found.push(Conclusion { about, text, compared: Some(Box::new(Compared { figure, comparison })) });
    }
}

/// `IOPS (A 67.8 k, B 78.1 k): B is faster by 12 % to 19 %; the smallest difference …`.
/// `is_told`: that one run is inconclusive is told once for all cells.
fn verdict(figure: ComparedFigure, comparison: &Comparison, is_told: bool) -> String {
    let (a, b) = (figure.show(comparison.a.mean), figure.show(comparison.b.mean));
    // Beyond that it is no figure that helps anybody.
    const SEEN_MAX: f64 = 1.0;
    let seen = comparison.smallest_seen.filter(|&seen| seen <= SEEN_MAX);
    let seen = seen.map_or(String::new(), |seen| {
        format!("; the smallest difference that this number of runs can detect is {}", words::percent(seen))
    });
    let figures = format!("{} (A {a}, B {b})", figure.name());
    match comparison.verdict {
        Verdict::OneRun if is_told => figures,
        verdict => format!("{figures}: {}{seen}", verdict.sentence("A", "B")),
    }
}

fn repeats(experiment: &Experiment, cells: &[Cell], found: &mut Vec<Conclusion>) {
    if experiment.repeat == 1 {
        if cells.len() > 1 {
            say(
                found,
                "all",
                "one run per cell is inconclusive: repeat the experiment at least 3 times (--repeat 3)",
            );
        }
        return;
    }
    let noisy = noisy_cells(cells);
    if noisy > 0 {
        let text = format!(
            "in {noisy} of {} cells the runs differ by more than {}: repeat them before you rely on small differences",
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
            1 => format!("{} IOPS in one run; the other runs have no figure", words::rate(mean.mean)),
            runs => format!("{} IOPS, the mean of {runs} runs{interval}{noisy}", words::rate(mean.mean)),
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
    for cell in cells.iter().filter(|cell| cell.vms > 1 && cell.workload != SCHEDULED) {
        let Some(stage) = cell.runs.first().and_then(|run| run.stages.first()) else { continue };
        let each: Vec<f64> = stage.groups.iter().map(measured::GroupRun::iops).collect();
        if let Some(of) = fairness::fairness(&each).filter(fairness::Fairness::is_unequal) {
            let text = format!("the machines got unequal shares: {of}");
            say(found, &cell.label(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_read_as_sentences_with_units() {
        let check = |figure: ComparedFigure, a: &[f64], b: &[f64], expected: &str| {
            let comparison = compare::compare(a, b, &Question::new(figure.better())).unwrap();
            assert_eq!(verdict(figure, &comparison, true), expected);
        };
        check(
            ComparedFigure::Iops,
            &[20_000.0, 20_050.0, 20_100.0],
            &[23_000.0, 23_050.0, 23_100.0],
            "IOPS (A 20.1 k, B 23.1 k): B is faster by 14 % to 16 %; the smallest difference that this number of runs can detect is \
             0.72 %",
        );
        check(ComparedFigure::MeanLatency, &[0.5], &[0.6], "mean latency (A 0.50 ms, B 0.60 ms)");
    }

    fn run_of(offered: f64, latencies_us: &[(u64, u64)]) -> measured::Run {
        let mut reads = measured::Measured::default();
        for &(us, count) in latencies_us {
            reads.latency.record_many(us * 1_000, count);
            reads.ios += count;
        }
        let group = measured::GroupRun {
            name: "vm".to_owned(),
            vm: None,
            outstanding: 8,
            outstanding_mean: None,
            seconds: reads.ios as f64 / offered,
            operations: [reads, measured::Measured::default(), measured::Measured::default()],
            intervals: Vec::new(),
            backlog_max: 0.0,
            unsent: 0,
            rated: true,
            verified: None,
        };
        let stage = measured::StageRun {
            stage: 0,
            repeat: 0,
            started: 0.0,
            seconds: group.seconds,
            ended: measured::Ended::Done,
            first_error: None,
            groups: vec![group],
            disks: Vec::new(),
            stalls: Vec::new(),
            cpu_user: 0.0,
            cpu_system: 0.0,
            start_late: 0.0,
            agents: Vec::new(),
        };
        measured::Run {
            version: measured::VERSION,
            program: String::new(),
            started_unix_ms: 0,
            plan: plan::Plan::default(),
            targets: Vec::new(),
            machines: Vec::new(),
            stages: vec![stage],
            notes: Vec::new(),
            system: measured::System::default(),
            expectations: Vec::new(),
            sources: Vec::new(),
        }
    }

    fn cell(parameter: (&str, f64), outstanding: u64, runs: Vec<measured::Run>) -> Cell {
        Cell {
            workload: "w".to_owned(),
            parameters: [(parameter.0.to_owned(), format!("{}", parameter.1))].into(),
            side: None,
            outstanding,
            vms: 1,
            runs,
        }
    }

    /// Eight are outstanding at every rate: as a sweep over outstanding I/Os, the search was told to be none.
    #[test]
    fn a_search_over_a_rate_is_answered_by_its_rates() {
        let search = Search { over: Over::Rate, percentile: 99.0, latency_ms: 1.0, from: 1.0, to: 9e9 };
        let cells: Vec<Cell> = [(100.0, 400), (200.0, 500), (400.0, 3_000), (300.0, 900)]
            .map(|(rate, us)| cell(("rate", rate), 8, vec![run_of(rate, &[(us, 10_000)])]))
            .into();
        let mut found = Vec::new();
        searched(&search, &cells, &mut found);
        assert_eq!(
            found,
            [Conclusion::new(
                "w",
                "the highest load that meets p99 within 1.00 ms is 300 IOPS of each machine: 300 IOPS in total, p99 is 0.90 ms; at 400, \
                 p99 is 3.00 ms"
            )]
        );
    }

    /// The p99 was taken for whatever percentile was asked for, and averaged over runs: 1.5 % of 5 ms in one run of two is a p99 of
    /// 2.7 ms on average, while 99 % of all I/Os of the two took 0.4 ms.
    #[test]
    fn a_search_judges_the_percentile_it_names_from_the_merged_runs() {
        let runs = || vec![run_of(1e3, &[(400, 10_000)]), run_of(1e3, &[(400, 9_850), (5_000, 150)])];
        let cells: Vec<Cell> = [1u64, 2, 4].map(|n| cell(("outstanding", n as f64), n, runs())).into();
        let said = |percentile: f64| {
            let search = Search { over: Over::Outstanding, percentile, latency_ms: 1.0, from: 1.0, to: 4.0 };
            let mut found = Vec::new();
            searched(&search, &cells, &mut found);
            found.swap_remove(0).text
        };
        assert!(
            said(99.0).starts_with("the highest load that meets p99 within 1.00 ms is 4 outstanding I/Os"),
            "{}",
            said(99.0)
        );
        assert!(
            said(99.9).starts_with("p99.9 within 1.00 ms is not met at 1 outstanding I/Os"),
            "{}",
            said(99.9)
        );
        assert_eq!(cell_figure(&cells[0], Figure::P99Ms).map(|ms| (ms * 10.0).round()), Some(4.0));
    }
}
