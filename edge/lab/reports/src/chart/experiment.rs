//! An experiment's cells against each other: sweeps with their knee, scale-out, comparisons, every run of every cell.

use super::{
    Axis, Chart, Lines, Mark, Numbers, Scale, Series, Shape, Style, busiest, distribution, left_out,
};
use measured::{Cell, Compared, Conclusion, ExperimentRun, Run, series};
use statistics::Histogram;
use statistics::knee::{self, Sweep, SweepPoint};
use statistics::scaling::{self, ScalePoint};

/// Parameters that make up what is outstanding.
const LOADS: [&str; 3] = ["outstanding", "depth", "workers"];
/// Cells that the overview of runs shows.
const CELLS_MAX: usize = 80;

/// All charts of an experiment.
pub fn charts(experiment: &ExperimentRun) -> Vec<Chart> {
    let mut charts = sweeps(&experiment.cells);
    charts.extend(scale_out(&experiment.cells));
    charts.extend(changes(&comparisons(experiment)));
    charts.extend(every_run(&experiment.cells));
    let merged: Vec<(String, Histogram)> = (experiment.cells.iter().zip(own_labels(&experiment.cells)))
        .map(|(cell, label)| (label, cell.latency()))
        .filter(|(_, histogram)| !histogram.is_empty())
        .collect();
    // A lone cell's is among the charts of its run.
    if merged.len() > 1 {
        charts.extend(distribution::of_histograms(&merged));
    }
    charts
}

/// What cells are called beside one another: without the parts that all have.
pub fn own_labels(cells: &[Cell]) -> Vec<String> {
    let labels: Vec<String> = cells.iter().map(Cell::label).collect();
    let parts: Vec<Vec<&str>> = labels.iter().map(|label| label.split(", ").collect()).collect();
    let common = |part: &str| parts.iter().all(|of| of.contains(&part));
    let own = |(of, label): (&Vec<&str>, &String)| {
        let own: Vec<&str> = of.iter().copied().filter(|part| !common(part)).collect();
        if own.is_empty() { label.clone() } else { own.join(", ") }
    };
    parts.iter().zip(&labels).map(own).collect()
}

/// I/Os per second of a run's first stage: that is what a cell measures.
pub fn iops(run: &Run) -> Option<f64> {
    run.stages.first().map(measured::StageRun::iops)
}

/// A figure of a run, or of all runs of a cell together: I/Os per second are averaged over runs, latencies are merged.
#[derive(Debug, Clone, Copy)]
enum Figure {
    Iops,
    MeanNs,
    P99Ns,
}

impl Figure {
    fn of_latencies(self, latency: &Histogram) -> Option<f64> {
        match self {
            Figure::P99Ns => latency.percentile(0.99).map(|ns| ns as f64),
            Figure::Iops | Figure::MeanNs => latency.mean_ns(),
        }
    }

    fn of_run(self, run: &Run) -> Option<f64> {
        match self {
            Figure::Iops => iops(run),
            Figure::MeanNs | Figure::P99Ns => self.of_latencies(&run.stages.first()?.total().latency),
        }
    }

    fn of_cell(self, cell: &Cell) -> Option<f64> {
        match self {
            Figure::Iops => mean(&cell.figures(iops)),
            Figure::MeanNs | Figure::P99Ns => self.of_latencies(&cell.latency()),
        }
    }
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean of a figure by cell, with the smallest and the largest run where there are several.
fn points(name: &str, cells: &[(f64, &Cell)], figure: Figure) -> Series {
    let mut line = Series { name: name.to_owned(), style: Style::Both, ..Series::default() };
    let several = cells.iter().any(|(_, cell)| cell.runs.len() > 1);
    for (x, cell) in cells {
        let Some(of_all) = figure.of_cell(cell) else { continue };
        let values = cell.figures(|run| figure.of_run(run));
        line.x.0.push(*x);
        line.y.0.push(of_all);
        if several {
            line.low.0.push(values.iter().copied().fold(f64::INFINITY, f64::min));
            line.high.0.push(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
    }
    line
}

/// A sweep over what is outstanding, when cells are one.
struct Swept<'a> {
    name: String,
    cells: Vec<(f64, &'a Cell)>,
    sweep: Option<Sweep>,
}

fn swept(cells: &[Cell]) -> Vec<Swept<'_>> {
    let all = series(cells, &LOADS).into_iter().map(|(name, cells)| {
        let mut cells: Vec<(f64, &Cell)> =
            cells.into_iter().map(|cell| (cell.outstanding as f64, cell)).collect();
        cells.sort_by(|one, other| one.0.total_cmp(&other.0));
        let point = |(outstanding, cell): &(f64, &Cell)| {
            let throughput = Figure::Iops.of_cell(cell)?;
            let latency_s = Figure::MeanNs.of_cell(cell)? / 1e9;
            Some(SweepPoint { outstanding: *outstanding, throughput, latency_s, percentile_s: None })
        };
        let points: Vec<SweepPoint> = cells.iter().filter_map(point).collect();
        Swept { name, sweep: knee::sweep(&points, None).ok(), cells }
    });
    let is_sweep = |of: &Swept| of.cells.windows(2).any(|pair| pair[0].0 != pair[1].0);
    all.filter(is_sweep).collect()
}

fn sweeps(cells: &[Cell]) -> Vec<Chart> {
    let swept = swept(cells);
    if swept.is_empty() {
        return Vec::new();
    }
    let marks: Vec<Mark> = (swept.iter())
        .filter_map(|of| {
            let spot = of.sweep.as_ref()?.sweet_spot;
            let name =
                if swept.len() == 1 { "sweet spot".to_owned() } else { format!("sweet spot: {}", of.name) };
            Some(Mark { x: spot.outstanding, text: name })
        })
        .collect();
    let lines = |figure: Figure| -> Vec<Series> {
        busiest(swept.iter().map(|of| (0.0, points(&of.name, &of.cells, figure))).collect()).0
    };
    let chart = |title: &str, caption: &str, y: Axis, series: Vec<Series>| Chart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        shape: Shape::Lines(Lines {
            x: Axis::scaled("total outstanding I/Os", Scale::Log2),
            y,
            series,
            marks: marks.clone(),
        }),
    };
    let bars = "All runs of each cell; bars reach from the lowest run to the highest.";
    let mut throughput = lines(Figure::Iops);
    if let [only] = &swept[..] {
        throughput.extend(bounds(only));
    }
    vec![
        chart("Throughput by load", bars, Axis::linear("I/Os per second"), throughput),
        chart(
            "Mean latency by load",
            bars,
            Axis::scaled("mean latency", Scale::LogTime),
            lines(Figure::MeanNs),
        ),
        chart("p99 latency by load", bars, Axis::scaled("p99 latency", Scale::LogTime), lines(Figure::P99Ns)),
        cost_of_throughput(&swept),
    ]
}

/// The asymptotic bounds of a single sweep.
fn bounds(of: &Swept) -> Option<Series> {
    let sweep = of.sweep.as_ref()?;
    let bounds = sweep.bounds;
    let last = sweep.points.last()?.outstanding;
    let first = sweep.points.first()?.outstanding;
    let bound = |n: f64| (n / bounds.unloaded_s).min(bounds.capacity);
    let x: Vec<f64> = if bounds.knee > first && bounds.knee < last {
        vec![first, bounds.knee, last]
    } else {
        vec![first, last]
    };
    let y = x.iter().map(|&n| bound(n)).collect();
    Some(Series {
        name: "asymptotic bound".to_owned(),
        style: Style::Dashed,
        x: Numbers(x),
        y,
        ..Series::default()
    })
}

fn cost_of_throughput(swept: &[Swept]) -> Chart {
    let lines = swept.iter().map(|of| {
        let cells = of
            .cells
            .iter()
            .filter_map(|(_, cell)| Some((Figure::Iops.of_cell(cell)?, Figure::P99Ns.of_cell(cell)?)));
        let (x, y): (Vec<f64>, Vec<f64>) = cells.unzip();
        let series = Series {
            name: of.name.clone(),
            style: Style::Both,
            x: Numbers(x),
            y: Numbers(y),
            ..Series::default()
        };
        (0.0, series)
    });
    let (series, rest) = busiest(lines.collect());
    Chart {
        title: "Latency against throughput".to_owned(),
        caption: format!(
            "p99 latency against throughput, one point per cell. Low and far right is better. Where the line turns upwards, more load \
             only adds queueing.{}",
            left_out(rest, "line")
        ),
        shape: Shape::Lines(Lines {
            x: Axis::linear("I/Os per second"),
            y: Axis::scaled("p99 latency", Scale::LogTime),
            series,
            marks: Vec::new(),
        }),
    }
}

fn scale_out(cells: &[Cell]) -> Option<Chart> {
    let varies = |cells: &[&Cell]| cells.windows(2).any(|pair| pair[0].vms != pair[1].vms);
    let all: Vec<(String, Vec<&Cell>)> =
        series(cells, &["vms"]).into_iter().filter(|(_, cells)| varies(cells)).collect();
    let mut lines = Vec::new();
    for (name, cells) in &all {
        let mut cells: Vec<(f64, &Cell)> = cells.iter().map(|cell| (cell.vms as f64, *cell)).collect();
        cells.sort_by(|one, other| one.0.total_cmp(&other.0));
        let line = points(name, &cells, Figure::Iops);
        let measured: Vec<ScalePoint> = (line.x.0.iter().zip(&line.y.0))
            .map(|(&members, &throughput)| ScalePoint { members, throughput })
            .collect();
        if let Some(first) = measured.first().filter(|_| all.len() == 1) {
            let y = line.x.0.iter().map(|members| first.throughput / first.members * members).collect();
            let name = "linear scaling".to_owned();
            lines.push((
                0.0,
                Series { name, style: Style::Dashed, x: line.x.clone(), y, ..Series::default() },
            ));
        }
        if let Ok(law) = scaling::scalability(&measured)
            && law.fits()
        {
            let name = format!("{name}: scalability law");
            let y = line.x.0.iter().map(|&members| law.at(members)).collect();
            lines.push((
                0.0,
                Series { name, style: Style::Dashed, x: line.x.clone(), y, ..Series::default() },
            ));
        }
        lines.push((1.0, line));
    }
    let (series, rest) = busiest(lines);
    (!series.is_empty()).then(|| Chart {
        title: "Scale-out".to_owned(),
        caption: format!("Throughput of all machines together by their number.{}", left_out(rest, "line")),
        shape: Shape::Lines(Lines {
            x: Axis::linear("virtual machines"),
            y: Axis::linear("I/Os per second"),
            series,
            marks: Vec::new(),
        }),
    })
}

/// What the experiment concluded of its two sides: what each comparison is about, and the comparison.
pub fn comparisons(experiment: &ExperimentRun) -> Vec<(&Conclusion, &Compared)> {
    let all = experiment.conclusions.iter();
    all.filter_map(|conclusion| Some((conclusion, conclusion.compared.as_deref()?))).collect()
}

fn changes(compared: &[(&Conclusion, &Compared)]) -> Option<Chart> {
    let with_interval: Vec<_> =
        compared.iter().filter_map(|of| Some((of, of.1.comparison.change?))).take(CELLS_MAX).collect();
    if with_interval.is_empty() {
        return None;
    }
    let names: Vec<String> =
        with_interval.iter().map(|((of, by), _)| format!("{}: {}", of.about, by.figure.name())).collect();
    let ratio = |share: f64| 1.0 + share;
    let series = Series {
        name: "change from A to B".to_owned(),
        style: Style::Points,
        x: with_interval.iter().map(|(_, change)| ratio(change.estimate)).collect(),
        y: (0..names.len()).map(|index| index as f64).collect(),
        low: with_interval.iter().map(|(_, change)| ratio(change.low)).collect(),
        high: with_interval.iter().map(|(_, change)| ratio(change.high)).collect(),
    };
    Some(Chart {
        title: "B against A".to_owned(),
        caption: "Change of each figure from A to B with its 95 % confidence interval. An interval across 0 shows no difference."
            .to_owned(),
        shape: Shape::Lines(Lines {
            x: Axis::scaled("change from A to B", Scale::Ratio),
            y: Axis { names, ..Axis::default() },
            series: vec![series],
            marks: vec![Mark { x: 1.0, text: String::new() }],
        }),
    })
}

/// Every run as a point: how far runs of a cell differ is seen before any mean.
fn every_run(cells: &[Cell]) -> Option<Chart> {
    let shown: Vec<(&Cell, String)> = (cells.iter().zip(own_labels(cells)))
        .filter(|(cell, _)| !cell.runs.is_empty())
        .take(CELLS_MAX)
        .collect();
    if shown.len() < 2 {
        return None;
    }
    let left_out = cells.len() - shown.len();
    let mut line = Series { name: "a run".to_owned(), style: Style::Points, ..Series::default() };
    for (row, (cell, _)) in shown.iter().enumerate() {
        for value in cell.figures(iops) {
            line.x.0.push(value);
            line.y.0.push(row as f64);
        }
    }
    let rest = if left_out > 0 {
        format!(" The table of figures has {}.", statistics::words::counted(left_out, "more cell"))
    } else {
        String::new()
    };
    Some(Chart {
        title: "Every run".to_owned(),
        caption: format!("Throughput of each run by cell. The spread of a cell's points is noise.{rest}"),
        shape: Shape::Lines(Lines {
            x: Axis::linear("I/Os per second"),
            y: Axis { names: shown.into_iter().map(|(_, label)| label).collect(), ..Axis::default() },
            series: vec![line],
            marks: Vec::new(),
        }),
    })
}
