//! Results side by side: every job that two sides have in common, by IOPS and by latency, with a verdict in words.

use results::{ResultSet, Run, Steps};
use serde::Serialize;
use statistics::compare::{self, Better, Comparison, Question};
use statistics::words;
use std::collections::BTreeMap;
use std::fmt;

/// The first side against each of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparisons {
    /// Names of the sides.
    pub sides: Vec<String>,
    /// Every job and figure that both sides have.
    pub rows: Vec<Row>,
    /// Jobs that only one side has, and figures that were left out.
    pub left_out: Vec<String>,
}

/// One figure of one job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which job.
    pub job: String,
    /// `IOPS`, `mean latency`, `p99 latency`.
    pub figure: &'static str,
    /// Index of the side that is compared with the first.
    pub side: usize,
    /// Mean of the first side's runs.
    pub a: f64,
    /// Mean of the other side's runs.
    pub b: f64,
    /// What can be said.
    pub comparison: Comparison,
    /// In words.
    pub verdict: String,
}

/// A job's name and what it keeps outstanding: what makes two runs runs of the same.
type Key = (String, String);

/// Compares `sides` (name, results). `effect` is the smallest difference that matters, as a share.
pub fn compare(sides: &[(String, Vec<ResultSet>)], effect: f64) -> Comparisons {
    let names = short_names(&sides.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    let tables: Vec<BTreeMap<Key, Vec<&Run>>> = sides.iter().map(|(_, sets)| by_job(sets)).collect();
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for (side, table) in tables.iter().enumerate().skip(1) {
        for (key, runs) in table {
            match tables[0].get(key) {
                Some(first) => rows.extend(rows_of(key, side, first, runs, effect)),
                None => left_out.push(format!("{} has {}, {} does not", names[side], key.0, names[0])),
            }
        }
        let missing = tables[0].keys().filter(|key| !table.contains_key(*key));
        left_out.extend(missing.map(|key| format!("{} has {}, {} does not", names[0], key.0, names[side])));
    }
    control_chance(&mut rows, &names);
    Comparisons { sides: names, rows, left_out }
}

/// What sides are called: what their files have in common (folders, endings) tells nobody anything.
fn short_names(sides: &[&str]) -> Vec<String> {
    let without = |side: &str| {
        let files = side.split(',').map(|file| {
            let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
            name.strip_suffix(".json").unwrap_or(name)
        });
        files.collect::<Vec<&str>>().join(" + ")
    };
    let short: Vec<String> = sides.iter().map(|side| without(side)).collect();
    let is_unique = short.iter().enumerate().all(|(at, name)| !short[..at].contains(name));
    if is_unique { short } else { sides.iter().map(|side| (*side).to_owned()).collect() }
}

/// Among many rows some would seem different by chance alone: what does not hold for all of them together is not claimed.
fn control_chance(rows: &mut [Row], names: &[String]) {
    let mut comparisons: Vec<Comparison> = rows.iter().map(|row| row.comparison.clone()).collect();
    compare::control_chance(&mut comparisons, compare::FALSE_DISCOVERIES);
    for (row, comparison) in rows.iter_mut().zip(comparisons) {
        row.verdict = comparison.verdict.sentence(&names[0], &names[row.side]);
        row.comparison = comparison;
    }
}

fn by_job(sets: &[ResultSet]) -> BTreeMap<Key, Vec<&Run>> {
    let mut table: BTreeMap<Key, Vec<&Run>> = BTreeMap::new();
    for run in sets.iter().flat_map(|set| &set.runs) {
        let outstanding = run.job.outstanding.map_or(String::new(), words::number);
        table.entry((run.label.clone(), outstanding)).or_default().push(run);
    }
    table
}

fn rows_of(key: &Key, side: usize, a: &[&Run], b: &[&Run], effect: f64) -> Vec<Row> {
    let steps_of = |runs: &[&Run], step: fn(&Steps) -> f64| {
        runs.iter().map(|run| step(&run.total().steps)).fold(0.0, f64::max)
    };
    let row = |name: &'static str,
               better: Better,
               step: fn(&Steps) -> f64,
               figure: &dyn Fn(&Run) -> Option<f64>| {
        let steps = [steps_of(a, step), steps_of(b, step)];
        let question = Question { effect, steps, ..Question::new(better) };
        let comparison = compare::compare(&figures(a, figure)?, &figures(b, figure)?, &question).ok()?;
        Some(Row {
            job: key.0.clone(),
            figure: name,
            side,
            a: comparison.a.mean,
            b: comparison.b.mean,
            // Known once chance is controlled for, over all rows together.
            verdict: String::new(),
            comparison,
        })
    };
    let rows = [
        row("IOPS", Better::Higher, |of| of.iops, &|run| run.total().iops),
        row("mean latency", Better::Lower, |of| of.latency_s, &|run| run.total().latency_s),
        row("p99 latency", Better::Lower, |_| 0.0, &|run| run.total().latencies.percentile_s(0.99)),
    ];
    rows.into_iter().flatten().collect()
}

/// One figure for each run; none if a run has it not.
fn figures(runs: &[&Run], figure: &dyn Fn(&Run) -> Option<f64>) -> Option<Vec<f64>> {
    runs.iter().map(|run| figure(run)).collect()
}

impl fmt::Display for Comparisons {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let show = |value: f64| match row.figure {
                "IOPS" => words::rate(value),
                _ => words::milliseconds(value),
            };
            let runs = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
            writeln!(
                formatter,
                "{}, {}: {} in {} ({}), {} in {} ({}): {}",
                row.job,
                row.figure,
                show(row.a),
                self.sides[0],
                runs(row.comparison.a.runs),
                show(row.b),
                self.sides[row.side],
                runs(row.comparison.b.runs),
                row.verdict
            )?;
        }
        for text in &self.left_out {
            writeln!(formatter, "Left out: {text}.")?;
        }
        if self.rows.is_empty() {
            writeln!(formatter, "the sides have no job in common, so nothing can be compared")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both columns have one digit: the published 0.5 against 0.6 ms is no certain gain.
    #[test]
    fn tables_are_compared_no_surer_than_their_digits() {
        let side = |name: &str, ms: [&str; 2]| {
            let text = format!(
                "workload,latency_ms,iops,run\n4k random read,{},1000,1\n4k random read,{},1010,2\n",
                ms[0], ms[1]
            );
            (name.to_owned(), vec![results::read(name, &text, None).expect("a table")])
        };
        let verdict = |a: [&str; 2], b: [&str; 2]| {
            let found = compare(&[side("a", a), side("b", b)], 0.02);
            let mut rows = found.rows.iter();
            rows.find(|row| row.figure == "mean latency").expect("a row of it").verdict.clone()
        };
        assert!(verdict(["0.5", "0.5"], ["0.6", "0.6"]).starts_with("cannot tell"));
        assert_eq!(verdict(["0.500", "0.501"], ["0.600", "0.601"]), "b is slower by 19 % to 21 %");
    }

    #[test]
    fn sides_are_called_by_their_files_unless_two_would_be_alike() {
        let check = |sides: &[&str], expected: &[&str]| assert_eq!(short_names(sides), expected);
        check(&["out/before.json", "out/after.json"], &["before", "after"]);
        check(&["a/1.json,a/2.json", "b/3.json,b/4.json"], &["1 + 2", "3 + 4"]);
        check(&["a/run.json", "b/run.json"], &["a/run.json", "b/run.json"]);
        check(&["hcibench/", "striping.csv"], &["hcibench", "striping.csv"]);
    }
}
